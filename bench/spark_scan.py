"""Scans by Spark of a table against `spark.read.parquet` of the same files, in one session, in turn; and of deleted rows
against the clean table.

Every answer is compared before times are printed. One case counts files instead of time: filters that prune must take time
with the files left.
"""

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import icefloe
from bench.report import Row, interleave
from icefloe.commit import Planned

ROWS = {"small": 400_000, "medium": 4_000_000, "full": 16_000_000}
FILES = {"small": 8, "medium": 32, "full": 64}
MANY_FILES = {"small": 2_000, "medium": 20_000, "full": 20_000}
REPEAT = {"small": 5, "medium": 7, "full": 7}
DELETED = 0.05

SUM_TWO = ("sum(id) a", "sum(v1) b")
SUM_FIVE = ("sum(id) a", "sum(v1) b", "sum(v2) c", "sum(v3) d", "sum(length(name)) e")


def run(size: str) -> list[Row]:
    """All cases."""
    home = Path(tempfile.mkdtemp(prefix="icefloe-bench-"))
    with icefloe.connect(warehouse=home, config={"spark.driver.memory": "4g"}) as ice:
        try:
            return _Bench(ice, size).rows()
        finally:
            shutil.rmtree(home, ignore_errors=True)


class _Bench:
    def __init__(self, ice: Any, size: str) -> None:
        self.ice = ice
        self.size = size
        self.repeat = REPEAT[size]
        ice.catalog.create_namespace("bench")
        self.clean = self._table("clean")
        self.deleted = self._table("deleted")
        self._delete(self.deleted)
        self.paths = [task.file.file_path for task in self.clean.scan().plan_files()]
        self.total = ROWS[size]

    def _table(self, name: str) -> Any:
        table = self.ice.catalog.create_table(
            f"bench.{name}",
            schema="id long, v1 long, v2 double, v3 int, name string, day date",
            properties={"format-version": "3", "write.delete.mode": "merge-on-read"},
        )
        each = ROWS[self.size] // FILES[self.size]
        random = np.random.default_rng(0)
        with table.transaction() as tx:
            for number in range(FILES[self.size]):
                ids = np.arange(each) + number * each
                tx.append(
                    pa.table(
                        {
                            "id": ids,
                            "v1": random.integers(0, 1000, each),
                            "v2": random.random(each),
                            "v3": random.integers(0, 100, each).astype(np.int32),
                            "name": pa.array(np.char.add("name-", (ids % 5000).astype("U5"))),
                            "day": pa.array(np.full(each, number, np.int32)).cast(pa.date32()),
                        }
                    )
                )
        return table

    def _delete(self, table: Any) -> None:
        random = np.random.default_rng(1)
        vectors = {
            task.file.file_path: np.flatnonzero(random.random(task.file.record_count) < DELETED)
            for task in table.scan().plan_files()
        }
        table.update_snapshot().row_delta(Planned.on(table.metadata), vectors=vectors)

    def rows(self) -> list[Row]:
        """Every case, measured."""
        spark = self.ice.spark
        third = f"id >= {self.total // 3} and id < {self.total // 3 + self.total // 100}"
        return [
            self._against_parquet("aggregate", lambda frame: frame.selectExpr(*SUM_TWO)),
            self._against_parquet("filter", lambda frame: frame.filter("v1 = 7 and v3 < 50").selectExpr(*SUM_FIVE)),
            self._against_parquet("selective", lambda frame: frame.filter(third).selectExpr(*SUM_FIVE)),
            self._against_parquet("wide", lambda frame: frame.selectExpr(*SUM_FIVE, "count(day) f")),
            self._with_deletes("deleted-five-columns", SUM_FIVE, 1.15),
            self._with_deletes("deleted-two-columns", SUM_TWO, 1.25),
            self._pruned(),
            self._many(spark),
        ]

    def _against_parquet(self, case: str, query: Callable[[Any], Any]) -> Row:
        theirs = query(self.ice.spark.read.parquet(*self.paths))
        ours = query(self.ice.table("bench.clean"))
        _same(ours, theirs)
        return Row(case, *self._interleaved(ours, theirs), 1.03)

    def _with_deletes(self, case: str, columns: tuple[str, ...], goal: float) -> Row:
        clean = self.ice.table("bench.clean").selectExpr(*columns)
        deleted = self.ice.table("bench.deleted")
        if deleted.count() != self.deleted.scan().count():
            raise AssertionError("deleted rows are counted wrong")
        return Row(case, *self._interleaved(deleted.selectExpr(*columns), clean), goal, "theirs: the clean table")

    def _pruned(self) -> Row:
        """A filter that leaves one file of all, against Spark reading that one file."""
        table, spark = self.ice.table("bench.clean"), self.ice.spark
        ours = table.filter("day = date'1970-01-02'").selectExpr(*SUM_FIVE)
        theirs = spark.read.parquet(self.paths[1]).filter("day = date'1970-01-02'").selectExpr(*SUM_FIVE)
        _same(ours, theirs)
        return Row("pruned-to-one-file", *self._interleaved(ours, theirs), 1.25, f"1 of {len(self.paths)} files")

    def _many(self, spark: Any) -> Row:
        """How long it takes to plan a table of many files, against Spark listing as many by name."""
        count = MANY_FILES[self.size]
        table = self.ice.catalog.create_table("bench.many", schema=self.clean.schema())
        file = next(self.clean.scan().plan_files()).file
        table.update_snapshot().fast_append(
            [replace(file, file_path=f"{file.file_path}-{number}", first_row_id=None) for number in range(count)]
        )

        def ours() -> int:
            frame = self.ice.table("bench.many").filter("v1 >= 0")
            return int(frame._jdf.queryExecution().toRdd().getNumPartitions())

        def theirs() -> int:
            return int(spark.read.parquet(*self.paths)._jdf.queryExecution().toRdd().getNumPartitions())

        ours()
        first, other = interleave(ours, theirs, 3)
        return Row("plan-many-files", first, other, float("inf"), f"{count} files; theirs lists {len(self.paths)}")

    def _interleaved(self, ours: Any, theirs: Any) -> tuple[float, float]:
        for frame in (ours, theirs):
            frame.collect()
        return interleave(lambda: _fresh(ours), lambda: _fresh(theirs), self.repeat)


def _fresh(frame: Any) -> Any:
    """Plan and run the query again; a frame alone would keep its plan."""
    return frame.select("*").collect()


def _same(ours: Any, theirs: Any) -> None:
    one, other = ours.collect(), theirs.collect()
    if [list(map(str, row)) for row in one] != [list(map(str, row)) for row in other] and not _close(one, other):
        raise AssertionError(f"the table gives {one}, its files give {other}")


def _close(one: list[Any], other: list[Any]) -> bool:
    """Sums of floating numbers depend on the order in which tasks end."""
    return bool(np.allclose(np.array(one, float), np.array(other, float)))
