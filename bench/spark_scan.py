"""Scans by Spark of a table against `spark.read.parquet` of the same files, in one session, in turn; and of deleted rows
against the clean table.

Every answer is compared before its time is printed. Files that no query needs must cost nothing, so one that needs a few is
measured against Spark reading just those.
"""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import icefloe
from bench.report import Row, interleave
from icefloe.commit import Planned

ROWS = {"small": 200_000, "medium": 16_000_000, "full": 64_000_000}
FILES = {"small": 8, "medium": 64, "full": 128}
MANY_FILES = {"small": 100, "medium": 20_000, "full": 20_000}
REPEAT = {"small": 1, "medium": 15, "full": 7}
WARM = {"small": 1, "medium": 8, "full": 8}
"""Runs of each query that do not count: Java compiles what runs often, and the first of two would pay for both."""
SHORT = {"small": 2, "medium": 150, "full": 150}
"""How often a plan of a few milliseconds is made."""
APPENDS = 20
ONE_IN = 20
"""So many rows have one that is deleted."""

CLEAN, DELETED, APPENDED = "bench.clean", "bench.deleted", "bench.appended"
MANY, MANY_DELETED = "bench.many", "bench.many_deleted"
SUM_TWO = ("count(*) n", "sum(id) a", "sum(v1) b")
SUM_WITH_TEXT = ("count(*) n", "sum(id) a", "sum(length(name)) b")
SUM_FIVE = (*SUM_TWO, "sum(v2) c", "sum(v3) d", "sum(length(name)) e")


def run(size: str) -> Iterator[Row]:
    """All cases."""
    home = Path(tempfile.mkdtemp(prefix="icefloe-bench-"))
    try:
        with icefloe.connect(warehouse=home, config={"spark.driver.memory": "4g"}) as ice:
            yield from _Bench(ice, size).rows()
    finally:
        shutil.rmtree(home, ignore_errors=True)


class _Bench:
    def __init__(self, ice: Any, size: str) -> None:
        self.ice = ice
        self.size = size
        self.total = ROWS[size]
        self.in_file = ROWS[size] // FILES[size]
        ice.catalog.create_namespace("bench")
        self._write()
        tasks = sorted(ice.load_table(CLEAN).scan().plan_files(), key=lambda task: str(task.file.file_path))
        self.files = [task.file for task in tasks]
        self._share(DELETED, self.files)
        self._delete(DELETED, np.arange(0, self.in_file, ONE_IN))

    # -- data

    def _write(self) -> None:
        """One file for each task, with ids in order, so that a filter on them needs few files."""
        rows = self.ice.spark.range(0, self.total, 1, FILES[self.size]).selectExpr(
            "id",
            "pmod(xxhash64(id), 1000) v1",
            "pmod(xxhash64(id, 1), 1000000) / 7.0D v2",
            "cast(pmod(xxhash64(id, 2), 100) as int) v3",
            "concat('name-', pmod(xxhash64(id, 3), 5000)) name",
            f"date_add(date'2020-01-01', cast(id div {self.in_file} as int)) day",
        )
        writer = self.ice.write(rows).to(CLEAN)
        writer.table_property("format-version", 3).table_property("write.distribution-mode", "none").create()

    def _share(self, name: str, files: list[Any]) -> None:
        """Another table of the same files."""
        schema = self.ice.load_table(CLEAN).schema()
        table = self.ice.catalog.create_table(name, schema=schema, properties={"format-version": "3"})
        table.update_snapshot().fast_append([replace(each, first_row_id=None) for each in files])

    def _delete(self, name: str, positions: Any) -> None:
        table = self.ice.load_table(name)
        vectors = {task.file.file_path: positions for task in table.scan().plan_files()}
        table.update_snapshot().row_delta(Planned.on(table.metadata), vectors=vectors)

    # -- cases

    def rows(self) -> Iterator[Row]:
        """Every case, as it is measured."""
        yield self._against_parquet("aggregate", lambda frame: frame.selectExpr(*SUM_TWO))
        yield self._against_parquet("filter", lambda frame: frame.filter("v1 = 7 and v3 < 50").selectExpr(*SUM_FIVE))
        yield self._against_parquet("wide", lambda frame: frame.selectExpr(*SUM_FIVE, "count(day) f"))
        yield self._with_deletes("deleted-five-columns", SUM_FIVE, 1.15)
        yield self._with_deletes("deleted-number-and-text", SUM_WITH_TEXT, 1.25)
        yield self._with_deletes("deleted-two-numbers", SUM_TWO, 1.25)
        for count in (1, FILES[self.size] // 8):
            yield self._pruned(count)
        yield from self._small_plans()
        yield from self._many()

    def _against_parquet(self, case: str, query: Callable[[Any], Any]) -> Row:
        theirs = query(self.ice.spark.read.parquet(*(each.file_path for each in self.files)))
        return self._measured(case, query(self.ice.table(CLEAN)), theirs, 1.03, f"{self.total:,} rows")

    def _with_deletes(self, case: str, columns: tuple[str, ...], goal: float) -> Row:
        clean = self.ice.table(CLEAN)
        ours = self.ice.table(DELETED).selectExpr(*columns)
        _check_same(ours, clean.filter(f"id % {self.in_file} % {ONE_IN} <> 0").selectExpr(*columns))
        note = f"1 in {ONE_IN} rows deleted; theirs is the clean table"
        return Row(case, *self._interleaved(ours, clean.selectExpr(*columns)), goal, note)

    def _pruned(self, count: int) -> Row:
        """A filter that leaves some of the files, against Spark reading those."""
        which = f"id < {count * self.in_file}"
        ours = self.ice.table(CLEAN).filter(which).selectExpr(*SUM_FIVE)
        chosen = [each.file_path for each in self.files if each.file_path in self._holding(count)]
        theirs = self.ice.spark.read.parquet(*chosen).filter(which).selectExpr(*SUM_FIVE)
        note = f"{len(chosen)} of {len(self.files)} files"
        return self._measured(f"pruned-to-{count}", ours, theirs, 1.25, note)

    def _holding(self, count: int) -> set[str]:
        tasks = self.ice.load_table(CLEAN).scan(f"id < {count * self.in_file}").plan_files()
        return {task.file.file_path for task in tasks}

    def _small_plans(self) -> Iterator[Row]:
        """What planning a short query by SQL takes beyond the same over plain Parquet: over one manifest, and one of each append."""
        self._share(APPENDED, self.files[:1])
        table = self.ice.load_table(APPENDED)
        for number in range(1, APPENDS):
            copy = replace(self.files[0], file_path=f"{self.files[0].file_path}-{number}", first_row_id=None)
            table.update_snapshot().fast_append([copy])
        self.ice.spark.read.parquet(*(each.file_path for each in self.files)).createOrReplaceTempView("files")
        for case, name in (("plan-small", CLEAN), ("plan-small-appends", APPENDED)):
            query = "SELECT count(*), sum(v1), min(name) FROM {} WHERE id < 500 AND v3 > 7"
            plans = [partial(self._planned, query.format(source)) for source in (name, "files")]
            for plan in plans * SHORT[self.size]:
                plan()
            ours, theirs = interleave(plans[0], plans[1], SHORT[self.size])
            note = f"ours {1000 * ours:.3g} ms, plain Parquet {1000 * theirs:.3g} ms; the difference against 8 ms"
            yield Row(case, ours - theirs, 0.008, 1, note)

    def _planned(self, text: str) -> Any:
        return self.ice.sql(text)._jdf.queryExecution().executedPlan()

    def _many(self) -> Iterator[Row]:
        """How long it takes to plan a table of many files; none of them is there, as none is read."""
        count = MANY_FILES[self.size]
        made = [replace(self.files[0], file_path=f"{self.files[0].file_path}-{number}") for number in range(count)]
        self._share(MANY, made)
        self._share(MANY_DELETED, made)
        self._delete(MANY_DELETED, np.arange(0, 1000))
        theirs = self.ice.spark.read.parquet(*(each.file_path for each in self.files))
        few = lambda: _plan(theirs)  # noqa: E731  # one of two things to do in turn
        clean, listed = interleave(lambda: _plan(self.ice.table(MANY)), few, 3)
        yield Row("plan-many", clean, listed, float("inf"), f"{count} files; theirs lists {len(self.files)}")
        deleted, clean = interleave(lambda: _plan(self.ice.table(MANY_DELETED)), lambda: _plan(self.ice.table(MANY)), 3)
        yield Row("plan-many-deleted", deleted, clean, float("inf"), f"{count} files with vectors; theirs without")

    # -- measuring

    def _measured(self, case: str, ours: Any, theirs: Any, goal: float, note: str) -> Row:
        _check_same(ours, theirs)
        return Row(case, *self._interleaved(ours, theirs), goal, note)

    def _interleaved(self, ours: Any, theirs: Any) -> tuple[float, float]:
        for frame in (ours, theirs) * WARM[self.size]:
            _fresh(frame)
        return interleave(lambda: _fresh(ours), lambda: _fresh(theirs), REPEAT[self.size])


def _plan(frame: Any) -> int:
    return int(frame.filter("v1 >= 0")._jdf.queryExecution().toRdd().getNumPartitions())


def _fresh(frame: Any) -> Any:
    """Plan and run the query again; a frame alone would keep its plan."""
    return frame.select("*").collect()


def _check_same(ours: Any, theirs: Any) -> None:
    """Sums of floating numbers depend on the order in which tasks end."""
    one, other = (np.array(frame.collect(), float) for frame in (ours, theirs))
    if not np.allclose(one, other, rtol=1e-9):
        raise AssertionError(f"the table gives {one}, its files give {other}")
