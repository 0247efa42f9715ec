"""A program that asks the metadata tables of a million files, with a driver of 1 GB; run by test_metadata_tables."""

import resource
import sys
import time
from dataclasses import replace
from typing import Any

import pyarrow as pa

from icefloe.catalog import load_catalog
from icefloe.spark.connect import connect, local_spark

FILES = 1_000_000
PER_COMMIT = 100_000
QUERIES = {
    "SELECT count(*) FROM db.t.files": FILES,
    "SELECT count(*) FROM db.t.all_entries": FILES,
    "SELECT sum(record_count) FROM db.t.files": FILES,
    "SELECT count(DISTINCT file_path) FROM db.t.files": FILES,
    "SELECT count(*) FROM db.t.files WHERE file_path LIKE '%-99999'": 1,
}


def main(folder: str) -> None:
    """One file of one row, known under a million names; then the queries, each with its answer."""
    catalog = load_catalog("lake", type="sql", uri=f"sqlite:///{folder}/c.db", warehouse=f"{folder}/warehouse")
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", "id long, name string")
    table.append(pa.table({"id": [1], "name": ["a"]}))
    [file] = [task.file for task in table.scan().with_metrics().plan_files()]
    for start in range(1, FILES, PER_COMMIT):
        names = range(start, min(start + PER_COMMIT, FILES))
        copies = [replace(file, file_path=f"{file.file_path}-{name}") for name in names]
        table.update_snapshot().fast_append(copies, check_duplicates=False)
    del copies
    settings = {
        "spark.master": "local[2]",
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": f"{folder}/local",
        "spark.sql.shuffle.partitions": "8",
    }
    ask(connect(catalog, spark=local_spark(settings)))


def ask(ice: Any) -> None:
    """All queries; how long each takes, and how much memory this process had at most."""
    for text, expected in QUERIES.items():
        begin = time.perf_counter()
        [row] = ice.sql(text).collect()
        assert row[0] == expected, (text, row)
        sys.stdout.write(f"{time.perf_counter() - begin:.1f} s: {text}\n")
    sys.stdout.write(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10} MiB\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
