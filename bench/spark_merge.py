"""`MERGE` of a few rows into many, and `DELETE` of one in a hundred, against rewriting the whole table in the same Spark."""

import tempfile
from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # its usual name

from bench.report import Row, interleave
from bench.spark_write import TASKS, spark_session
from icefloe.catalog import load_catalog
from icefloe.spark.session import Session
from icefloe.table import Table

ROWS = {"small": 200_000, "medium": 2_000_000, "full": 10_000_000}
SHARE = 100
"""One source row for so many of the table; half of them are updates."""
GOAL = 0.35
MODES = ("merge-on-read", "copy-on-write")
MERGE = "MERGE INTO db.{name} t USING changes s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"


def run(size: str) -> list[Row]:
    """Each mode, and a delete; the goal counts for merge-on-read, and copy-on-write must leave other files alone."""
    spark = spark_session()
    rows = ROWS[size]
    with tempfile.TemporaryDirectory(prefix="icefloe-bench-") as folder:
        catalog = load_catalog("bench", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"{folder}/w")
        catalog.create_namespace("db")
        ice = Session(spark, {"bench": catalog})
        try:
            _changes(spark, rows).createOrReplaceTempView("changes")
            found = [_merge(ice, mode, rows) for mode in MODES]
            return [*found, *(_delete(ice, mode, rows) for mode in MODES)]
        finally:
            spark.stop()


def _rows(spark: SparkSession, first: int, last: int) -> DataFrame:
    return spark.range(first, last, numPartitions=TASKS).select(
        "id",
        F.concat(F.lit("value "), F.pmod(F.xxhash64("id"), F.lit(1000))).alias("kind"),
        F.rand(7).alias("score"),
        (F.col("id") % 97).alias("amount"),
    )


def _changes(spark: SparkSession, rows: int) -> DataFrame:
    count = rows // SHARE
    return _rows(spark, rows - count // 2, rows + count - count // 2).withColumn("kind", F.lit("changed"))


def _table(ice: Session, name: str, mode: str, rows: int) -> Table:
    settings = {f"write.{each}.mode": mode for each in ("delete", "update", "merge")}
    size = str(max(1 << 20, rows * 20 // 64))
    properties = {"format-version": "3", "write.target-file-size-bytes": size, **settings}
    table = ice.catalog.create_table(
        f"db.{name}", "id bigint, kind string, score double, amount bigint", properties=properties
    )
    table.append(_rows(ice.spark, 0, rows))
    return table


def _merge(ice: Session, mode: str, rows: int) -> Row:
    name = f"merge_{mode.replace('-', '_')}"
    table = _table(ice, name, mode, rows)
    base = _current(table)
    kept: dict[str, Any] = {}

    def ours() -> None:
        ice.sql(MERGE.format(name=name))
        kept["ours"] = table.refresh().current_snapshot()

    def theirs() -> None:
        old, new = ice.table(f"db.{name}"), ice.spark.table("changes")
        rest = old.join(new, "id", "left_anti")
        table.refresh().overwrite(rest.unionByName(new))
        kept["theirs"] = table.current_snapshot()

    seconds = _timed(table, base, ours, theirs)
    _check_same(table, kept)
    return Row(f"merge-{mode}", *seconds, GOAL if mode == MODES[0] else 1.0, _told(kept["ours"], rows))


def _delete(ice: Session, mode: str, rows: int) -> Row:
    name = f"delete_{mode.replace('-', '_')}"
    table = _table(ice, name, mode, rows)
    base = _current(table)
    limit = rows // SHARE
    kept: dict[str, Any] = {}

    def ours() -> None:
        ice.sql(f"DELETE FROM db.{name} WHERE id < {limit}")
        kept["ours"] = table.refresh().current_snapshot()

    def theirs() -> None:
        table.refresh().overwrite(ice.table(f"db.{name}").filter(f"id >= {limit}"))
        kept["theirs"] = table.current_snapshot()

    seconds = _timed(table, base, ours, theirs)
    _check_same(table, kept)
    return Row(f"delete-{mode}", *seconds, GOAL if mode == MODES[0] else 1.0, _told(kept["ours"], rows))


def _current(table: Table) -> int:
    found = table.current_snapshot()
    assert found is not None
    return found.snapshot_id


def _timed(table: Table, base: int, ours: Callable[[], None], theirs: Callable[[], None]) -> tuple[float, float]:
    """Both on the table as it was; going back to that is one small commit, which both pay."""

    def again(work: Callable[[], None]) -> Callable[[], None]:
        def run_again() -> None:
            table.refresh().manage_snapshots().set_current_snapshot(base).commit()
            work()

        return run_again

    again(ours)()
    again(theirs)()
    return interleave(again(ours), again(theirs))


def _check_same(table: Table, kept: dict[str, Any]) -> None:
    """Both ways gave the same rows."""
    sums = []
    for side in ("ours", "theirs"):
        found = table.refresh().scan(None, ("id", "amount"), snapshot_id=kept[side].snapshot_id).to_arrow()
        sums.append((found.num_rows, sum(found["id"].to_numpy()), sum(found["amount"].to_numpy())))
    assert sums[0] == sums[1], sums


def _told(snapshot: Any, rows: int) -> str:
    summary = snapshot.summary
    added = int(summary.get("added-files-size") or 0) / 1e6
    files = summary.get("added-data-files") or 0
    removed = summary.get("deleted-data-files") or 0
    return f"{rows:,} rows; {added:.1f} MB in {files} files written, {removed} files replaced; theirs rewrites all"
