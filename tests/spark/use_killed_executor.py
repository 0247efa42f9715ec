"""A program whose executors are killed in every way to write; run by test_cluster, on a driver that shares only the tables' folder."""

import sys
from pathlib import Path

import icefloe
from icefloe.catalog import load_catalog
from tests.spark.losing_executors import LISTS, PLAIN, LosingExecutors
from tests.spark.use_cluster import cluster_session


def main(folder: str, master: str) -> None:
    """All ways to write, with another try and without."""
    for tries in (4, 1):
        spark = cluster_session(master, spark_task_maxFailures=str(tries))
        catalog = load_catalog(
            "lake", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"{folder}/warehouse"
        )
        losing = LosingExecutors(icefloe.connect(catalog, spark=spark), Path(folder), tries)
        for name in ("db.plain", "db.copied"):
            losing.append(name, PLAIN)
            losing.statements(name, "delete", "update", "merge")
        for name in ("db.lists", "db.spread"):
            losing.append(name, LISTS)
            losing.append_whole_file(name)
        assert tries == 1 or losing.failed == [], losing.failed
        spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
