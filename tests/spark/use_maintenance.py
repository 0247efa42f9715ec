"""A program that maintains a table on Spark until it is killed; run by test_maintenance_killed."""

import sys

from pyspark.sql import SparkSession

from icefloe.catalog import load_catalog
from tests.maintenance.worn import ALL_FILES, FUTURE, NAME


def main(folder: str) -> None:
    """Procedures over and over, as jobs of Spark."""
    catalog = load_catalog("lake", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"{folder}/files")
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.log.level", "OFF")
        .getOrCreate()
    )
    print("ready", flush=True)  # noqa: T201 - the test waits for it
    while True:
        maintenance = catalog.load_table(NAME).maintenance
        maintenance.rewrite_data_files(options={**ALL_FILES}, engine=spark)
        maintenance.rewrite_data_files("sort", "name, k", options={"rewrite-all": "true"}, engine=spark)
        maintenance.convert_equality_deletes(engine=spark)
        maintenance.rewrite_position_delete_files(rewrite_all="true", engine=spark)
        maintenance.expire_snapshots(older_than=FUTURE, retain_last=2, engine=spark)
        maintenance.compute_table_stats(engine=spark)


if __name__ == "__main__":
    main(sys.argv[1])
