"""Which engine reads and writes rows: Arrow for data in memory, others as plug-ins, so that no room imports one.

An engine is an entry point of the group `icefloe.engines`. It finds rows that are to change, and makes data files of rows;
what is committed, and how, is the same for all of them.
"""

import importlib.metadata
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Protocol

import pyarrow as pa

from icefloe import errors, expressions as ex, manifests as mf, planning
from icefloe.data import WriteRequest, write_data_files
from icefloe.progress import counted
from icefloe.rows.branch import Branch
from icefloe.rows.matching import MatchedRows, find_matching_rows
from icefloe.schema import Schema

GROUP = "icefloe.engines"
_IN_MEMORY = ("pyarrow", "pandas", "polars", "builtins")


class Engine(Protocol):
    """Rows in the form of one system: where they are in a table, and how they become data files of it."""

    def find(self, chosen: Any, branch: Branch, row_filter: ex.Expression) -> Sequence[MatchedRows]:
        """Chosen rows of a branch by file and position; all of them match the filter, which need not choose them."""
        ...

    def write(self, data: Any, request: WriteRequest) -> list[mf.DataFile]:
        """Write the data as data files of the table. On an error, nothing of it is left."""
        ...


class InstalledEngine(Engine, Protocol):
    """An engine that an installed package brings."""

    def accepts(self, data: object) -> bool:
        """Whether the data is its own."""
        ...

    def scan(self, scan: planning.TableScan, session: Any) -> Any:
        """The rows of a scan as data of its own, in a session of its own."""
        ...

    def changes(self, scan: planning.ChangelogScan, session: Any) -> Any:
        """The changes between snapshots as data of its own, in a session of its own."""
        ...

    def read_schema(self, schema: object) -> Schema:
        """The schema that one of its own means."""
        ...

    def maintenance(self, session: Any) -> Any:
        """Its engine of maintenance (`icefloe.maintenance.MaintenanceEngine`), in that session or the active one."""
        ...


class ArrowEngine:
    """Arrow data, frames of other libraries, and streams of batches: all that is read and written in this process."""

    def find(
        self,
        chosen: planning.TableScan,
        branch: Branch,
        row_filter: ex.Expression,  # noqa: ARG002 - it is the one of the scan
    ) -> Sequence[MatchedRows]:
        """The rows of a scan by file and position."""
        tasks = counted("search", chosen.plan_files(), branch.progress)
        return list(find_matching_rows(tasks, branch.context))

    write = staticmethod(write_data_files)


ARROW = ArrowEngine()


def engine_for(data: object) -> Engine:
    """The engine that the data belongs to."""
    if isinstance(data, pa.Table | pa.RecordBatch) or type(data).__module__.split(".")[0] in _IN_MEMORY:
        return ARROW
    engines = (engine for name in _names() if (engine := _load(name)) is not None)
    return next((engine for engine in engines if engine.accepts(data)), ARROW)


def engine_named(name: str) -> InstalledEngine:
    """The engine of that name, or an error that says how to get it."""
    engine = _load(name) if name in _names() else None
    if engine is None:
        raise errors.NotInstalledError(f"the engine {name!r} is not installed; run: pip install 'icefloe[{name}]'")
    return engine


@lru_cache(maxsize=1)
def _names() -> tuple[str, ...]:
    return tuple(sorted(point.name for point in importlib.metadata.entry_points(group=GROUP)))


@lru_cache
def _load(name: str) -> InstalledEngine | None:
    """The engine, if all that it needs is installed."""
    (point, *_) = importlib.metadata.entry_points(group=GROUP, name=name)
    try:
        engine: InstalledEngine = point.load()()
    except ModuleNotFoundError as problem:
        if (problem.name or "").partition(".")[0] == "icefloe":
            raise
        return None
    return engine
