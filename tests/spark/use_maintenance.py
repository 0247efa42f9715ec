"""A program that maintains a table on Spark until it is killed; run by test_maintenance_killed."""

import sys

from pyspark.sql import SparkSession

import icefloe
from icefloe.catalog import load_catalog
from tests.maintenance.worn import NAME

CALLS = (
    "rewrite_data_files('{0}', options => map('rewrite-all', 'true', 'partial-progress.enabled', 'true'))",
    "rewrite_data_files('{0}', strategy => 'sort', sort_order => 'name, k', options => map('rewrite-all', 'true'))",
    "rewrite_manifests('{0}')",
    "expire_snapshots('{0}', older_than => TIMESTAMP '2999-01-01 00:00:00', retain_last => 2)",
    "compute_table_stats('{0}')",
)


def main(folder: str) -> None:
    """Every procedure over and over, and rows in between, which never change what the keys below 1,000 are."""
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
    ice = icefloe.connect(catalog, spark=spark)
    print("ready", flush=True)  # noqa: T201 - the test waits for it
    while True:
        for call in CALLS:
            ice.sql(f"CALL system.{call.format(NAME)}").collect()


if __name__ == "__main__":
    main(sys.argv[1])
