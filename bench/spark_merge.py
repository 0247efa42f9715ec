"""`MERGE` of a few rows into many, and `DELETE` of one in a hundred, against rewriting the whole table in the same Spark.

All of it is done on one table, which goes back to its first snapshot before each statement. Half of the rows that are merged
are there already.
"""

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql import (
    DataFrame,
    SparkSession,
    functions as F,  # noqa: N812  # its usual name
)

from bench.report import Row
from bench.spark_write import TASKS, spark_session
from icefloe.catalog import load_catalog
from icefloe.spark.session import Session
from icefloe.table import Table

ROWS = {"small": 100_000, "medium": 10_000_000, "full": 20_000_000}
WARM_ROWS = 100_000
ROUNDS = 3
SHARE = 100
"""One source row for so many of the table; half of them are updates."""
GOAL = 0.35
MODES = ("merge-on-read", "copy-on-write")
MERGE = "MERGE INTO db.{name} t USING changes s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"


def run(size: str) -> Iterator[Row]:
    """Each statement in each mode; the goal counts for merge-on-read, and copy-on-write must leave other files alone."""
    spark = spark_session()
    with tempfile.TemporaryDirectory(prefix="icefloe-bench-") as folder:
        catalog = load_catalog("bench", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"{folder}/w")
        catalog.create_namespace("db")
        ice = Session(spark, {"bench": catalog})
        try:
            for work in _works(ice, "warm", WARM_ROWS):
                work.measure(rounds=1)
            for work in _works(ice, "big", ROWS[size]):
                yield from work.measure(ROUNDS)
        finally:
            spark.stop()


def _works(ice: Session, name: str, rows: int) -> "list[_Work]":
    table = _table(ice, name, rows)
    changes = _changes(ice.spark, rows)
    changes.createOrReplaceTempView("changes")
    first, limit = rows - rows // SHARE // 2, rows // SHARE

    def merged(now: DataFrame) -> DataFrame:
        return now.join(changes, "id", "left_anti").unionByName(changes)

    return [
        _Work(ice, table, "merge", MERGE.format(name=name), merged, f"id >= {first}", rows),
        _Work(
            ice,
            table,
            "delete",
            f"DELETE FROM db.{name} WHERE id < {limit}",
            lambda now: now.filter(F.col("id") >= limit),
            f"id < {limit}",
            rows,
        ),
    ]


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


def _table(ice: Session, name: str, rows: int) -> Table:
    size = str(max(1 << 20, rows * 20 // 64))
    properties = {"format-version": "3", "write.target-file-size-bytes": size}
    table = ice.catalog.create_table(
        f"db.{name}", "id bigint, kind string, score double, amount bigint", properties=properties
    )
    table.append(_rows(ice.spark, 0, rows))
    return table


@dataclass(frozen=True)
class _Work:
    """One statement, and the same by rewriting all rows; `touched` is what the rows match that it changes."""

    ice: Session
    table: Table
    name: str
    text: str
    rewrite: Callable[[DataFrame], DataFrame]
    touched: str
    rows: int

    def measure(self, rounds: int) -> list[Row]:
        """A row for each mode; all ways take turns, so that a slow moment of the machine hits all."""
        base = _current(self.table)
        files = self._files()
        touched = self._files(self.touched)
        ways = {"rewrite": self._rewrite, **dict.fromkeys(MODES, self._statement)}
        seconds: dict[str, list[float]] = {way: [] for way in ways}
        sums, notes = {}, {}
        for _ in range(rounds):
            for way, work in ways.items():
                self._begin(base, way)
                jobs = self._jobs()
                start = time.perf_counter()
                work()
                seconds[way].append(time.perf_counter() - start)
                jobs = self._jobs() - jobs
                self.table.refresh()
                sums[way] = self._sums()
                notes[way] = f"{_written(self.table)}, {jobs} jobs"
                if way == MODES[1]:
                    gone = files - self._files()
                    assert gone == touched, f"{len(gone)} files are replaced, and {len(touched)} hold changed rows"
        assert len(set(sums.values())) == 1, sums
        assert len(touched) < len(files), f"all {len(files)} files are touched"
        self._begin(base, MODES[0])
        return [self._row(mode, seconds, notes, f"{len(touched)} of {len(files)} files touched") for mode in MODES]

    def _row(self, mode: str, seconds: dict[str, list[float]], notes: dict[str, str], touched: str) -> Row:
        note = f"{self.rows:,} rows; {touched}; ours {notes[mode]}; rewrite {notes['rewrite']}"
        ours, theirs = (statistics.median(seconds[way]) for way in (mode, "rewrite"))
        return Row(f"{self.name}-{mode}", ours, theirs, GOAL if mode == MODES[0] else 1.0, note)

    def _begin(self, base: int, way: str) -> None:
        mode = way if way in MODES else MODES[1]
        self.table.refresh().manage_snapshots().set_current_snapshot(base).commit()
        with self.table.transaction() as tx:
            tx.set_properties({f"write.{each}.mode": mode for each in ("delete", "update", "merge")})

    def _statement(self) -> None:
        self.ice.sql(self.text)

    def _rewrite(self) -> None:
        self.table.overwrite(self.rewrite(self.ice.table(self.table.name())))

    def _jobs(self) -> int:
        scheduler: Any = self.ice.spark.sparkContext._jsc.sc().dagScheduler()
        count: int = scheduler.numTotalJobs()
        return count

    def _files(self, row_filter: str | None = None) -> set[str]:
        return {task.file.file_path for task in self.table.scan(row_filter).plan_files()}

    def _sums(self) -> tuple[int, ...]:
        """What tells whether two ways gave the same rows."""
        found = self.table.scan(None, ("id", "amount", "kind")).to_arrow()
        changed = found.column("kind").to_numpy() == "changed"
        return found.num_rows, int(found["id"].to_numpy().sum()), int(found["amount"].to_numpy().sum()), changed.sum()


def _current(table: Table) -> int:
    found = table.current_snapshot()
    assert found is not None
    return found.snapshot_id


def _written(table: Table) -> str:
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert snapshot.summary is not None
    summary = snapshot.summary
    megabytes = int(summary.get("added-files-size") or 0) / 1e6
    files = sum(int(summary.get(key) or 0) for key in ("added-data-files", "added-delete-files"))
    return f"{megabytes:.2f} MB in {files} files"
