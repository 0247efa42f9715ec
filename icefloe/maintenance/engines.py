"""Engines for the heavy part of maintenance: threads of this process, or Spark, with the same results."""

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
    """Runs maintenance work on many files."""

    @property
    def cores(self) -> int:
        """The maximum number of concurrent tasks, if known."""

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Apply a picklable function to each item and yield the results in any order."""
        ...

    def rows_of_view(self, name: str, *columns: str) -> Iterator[pa.RecordBatch]:
        """Stream columns of a view or table of the engine."""
        ...

    def rewrite(self, work: GroupRewrite) -> RewrittenGroup:
        """Read the files of a group, apply deletes, and write the rows to new files."""
        ...


@dataclass(frozen=True, slots=True)
class Threads:
    """Threads of this process, by default one per processor."""

    workers: int | None = None

    @property
    def cores(self) -> int:
        """The number of threads."""
        return self.workers or default_workers()

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Apply a function to each item and yield the results in order."""
        return parallel.in_order(function, items, self.cores, "icefloe-maintenance")

    def rows_of_view(self, name: str, *columns: str) -> Iterator[pa.RecordBatch]:  # noqa: ARG002 - not supported
        """Raise an error: there are no views without an engine."""
        raise errors.InvalidInputError(f"the view {name!r} needs Spark; without it, give the files as an Arrow table")

    def rewrite(self, work: GroupRewrite) -> RewrittenGroup:
        """Stream rows from the old files to the new ones."""
        return rewrite_group(work)


WORTH_A_JOB = 256 << 20
"""Bytes of manifests that this process reads faster than an engine can start a job."""


def reader_of(engine: MaintenanceEngine, size: int) -> MaintenanceEngine:
    """Return the engine that reads manifests of this total size."""
    return Threads() if size < WORTH_A_JOB else engine


def in_rounds(
    engine: MaintenanceEngine, function: Callable[[Item], Result], items: Iterable[Item], a_round: int = 1024
) -> Iterator[Result]:
    """Apply a function to any number of items in rounds, as an engine may serialize all items of a call at once."""
    if isinstance(engine, Threads):
        yield from engine.map(function, items)
        return
    todo = iter(items)
    while batch := list(islice(todo, a_round)):
        yield from engine.map(function, batch)


def engine_of(engine: object | None) -> MaintenanceEngine:
    """Return the engine for an argument: None for this process, `"spark"` for the active Spark session, or a session."""
    if engine is None:
        return Threads()
    is_session = type(engine).__module__.partition(".")[0] == "pyspark"
    if engine != "spark" and not is_session:
        raise errors.InvalidInputError(f"engine must be None, 'spark' or a Spark session, not {engine!r}")
    chosen: MaintenanceEngine = engine_named("spark").maintenance(engine if is_session else None)
    return chosen
