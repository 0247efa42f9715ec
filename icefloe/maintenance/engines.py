"""What does the heavy part of maintenance: threads of this process, or an engine such as Spark, by the same decisions."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Protocol, TypeVar

import pyarrow as pa

from icefloe import errors, parallel
from icefloe.data import default_workers
from icefloe.maintenance.rewrite.groups import GroupRewrite, RewrittenGroup, rewrite_group
from icefloe.rows import engine_named

Item = TypeVar("Item")
Result = TypeVar("Result")


class MaintenanceEngine(Protocol):
    """Runs steps of maintenance that concern many files."""

    @property
    def cores(self) -> int:
        """How many steps it runs at a time at most, as far as that is known."""

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """The results of a function that can be sent elsewhere, such as one of a module, for each item, in any order."""
        ...

    def rows_of_view(self, name: str, *columns: str) -> Iterator[pa.RecordBatch]:
        """Columns of a view or table that the engine knows, as a stream."""
        ...

    def rewrite(self, work: GroupRewrite) -> RewrittenGroup:
        """Read the files of a group with their deletes, and write their rows to new files."""
        ...


@dataclass(frozen=True, slots=True)
class Threads:
    """This process, by several threads: as many as there are processors, if nobody says."""

    workers: int | None = None

    @property
    def cores(self) -> int:
        """As many as there are threads."""
        return self.workers or default_workers()

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """The results in the order of the items."""
        return parallel.in_order(function, items, self.cores, "icefloe-maintenance")

    def rows_of_view(self, name: str, *columns: str) -> Iterator[pa.RecordBatch]:  # noqa: ARG002 - there is none
        """There are no views here."""
        raise errors.InvalidInputError(
            f"there is no view {name!r}: there is no Spark here; give the files as a table of Arrow"
        )

    def rewrite(self, work: GroupRewrite) -> RewrittenGroup:
        """Stream the rows from the old files to the new ones."""
        return rewrite_group(work)


WORTH_A_JOB = 256 << 20
"""Bytes of manifests that are read here sooner than a job of an engine has begun."""


def reader_of(engine: MaintenanceEngine, size: int) -> MaintenanceEngine:
    """Who reads manifests of so many bytes."""
    return Threads() if size < WORTH_A_JOB else engine


def in_rounds(
    engine: MaintenanceEngine, function: Callable[[Item], Result], items: Iterable[Item], a_round: int = 1024
) -> Iterator[Result]:
    """The same results for any number of items, few of which are taken at a time: an engine may send all that it gets."""
    if isinstance(engine, Threads):
        yield from engine.map(function, items)
        return
    todo = iter(items)
    while batch := list(islice(todo, a_round)):
        yield from engine.map(function, batch)


def engine_of(engine: object | None) -> MaintenanceEngine:
    """The engine that a caller means: None is this process, `"spark"` the active Spark session, a session itself."""
    if engine is None:
        return Threads()
    is_session = type(engine).__module__.partition(".")[0] == "pyspark"
    if engine != "spark" and not is_session:
        raise errors.InvalidInputError(f"engine is {engine!r}; it must be None, 'spark' or a Spark session")
    chosen: MaintenanceEngine = engine_named("spark").maintenance(engine if is_session else None)
    return chosen
