"""A program whose tables are on a disk that gets full while Spark writes; run by test_full_disk, which gives it such a disk."""

import os
import sys
from collections.abc import Callable
from typing import Any

import icefloe
from icefloe.catalog import load_catalog
from icefloe.spark.session import Session
from icefloe.table import Table
from tests.spark.leftovers import missing_files, stray_files

TABLES = {
    "plain": ("id bigint, b binary", {}),
    "lists": ("id bigint, b binary, l list<string>", {}),
    "spread": ("id bigint, b binary, l list<string>", {"write.object-storage.enabled": "true"}),
}
"""One for each way to write: Spark's own writer, ours, and ours with files in the folders of others."""
NOISE = "unhex(array_join(transform(sequence(1, {}), n -> sha2(concat(n, ' ', id), 512)), ''))"
"""So many times 64 bytes that no codec makes smaller."""
CHANGES = (
    f"UPDATE db.{{0}} SET b = {NOISE.format(64)}",
    "MERGE INTO db.{0} t USING more s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *",
)


def some_rows(spark: Any, table: Table, count: int) -> Any:
    """Rows whose last tasks have much to write, and whose first ones have little."""
    frame = spark.range(0, count, 1, 8).selectExpr("id", f"if(id < {count // 2}, X'00', {NOISE.format(2)}) b")
    return frame.selectExpr("*", "array(cast(id as string)) l") if len(table.schema()) == 3 else frame


def free_bytes(table: Table) -> int:
    """What is left of the table's disk."""
    found = os.statvfs((table.location() or "").removeprefix("file://"))
    return found.f_bavail * found.f_frsize


def check_refused(table: Table, change: Callable[[], object], reason: str) -> None:
    """A change that must fail for the reason, and leave the table as it was: no row, no file more or less."""
    before, rows = table.refresh().metadata, table.scan().to_arrow()
    try:
        change()
    except Exception as error:  # noqa: BLE001  # of Spark, of the JVM, of ours: what it says is what matters
        problem = str(error)
    else:
        raise AssertionError("there was room enough")
    assert reason in problem, problem
    assert table.refresh().metadata == before
    assert table.scan().to_arrow().equals(rows)
    assert stray_files(table) == set()
    assert missing_files(table) == set()


def make(catalog: Any, name: str) -> Table:
    """One of the tables, empty."""
    columns, properties = TABLES[name]
    return catalog.create_table(f"db.{name}", columns, properties={"format-version": "3", **properties})  # type: ignore[no-any-return]


def main(folder: str) -> None:
    """Appends and changes that do not fit, each followed by what does."""
    catalog = load_catalog("lake", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"{folder}/warehouse")
    catalog.create_namespace("db")
    ice = _session(catalog)
    for name in TABLES:
        table = make(catalog, name)
        table.append(some_rows(ice.spark, table, 2000))
        free = free_bytes(table)
        check_refused(table, lambda: table.append(some_rows(ice.spark, table, 100_000)), "No space left")  # noqa: B023  # run at once
        some_rows(ice.spark, table, 100_000).createOrReplaceTempView("more")
        for statement in CHANGES:
            check_refused(table, lambda: ice.sql(statement.format(name)), "No space left")  # noqa: B023
        assert free_bytes(table) >= free, "a failed write still takes space"
        table.append(some_rows(ice.spark, table, 2000))
        assert table.scan().count() == 4000
        table.verify().raise_if_broken()
    ice.spark.stop()


def _session(catalog: Any) -> Session:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").appName("icefloe-full-disk")
    for key, value in {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.log.level": "OFF",
    }.items():
        builder = builder.config(key, value)
    return icefloe.connect(catalog, spark=builder.getOrCreate())


if __name__ == "__main__":
    main(*sys.argv[1:])
