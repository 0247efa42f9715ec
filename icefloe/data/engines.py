"""Which engine writes data that is not in memory here, and which one runs a scan: found as plug-ins, so that no room imports one.

An engine is an entry point of the group `icefloe.engines`. It replaces only the step that makes data files of rows; what is
committed, and how, is the same for all data.
"""

import importlib.metadata
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Protocol

import pyarrow as pa

from icefloe.errors import NotInstalledError
from icefloe.manifests import DataFile
from icefloe.metadata import TableMetadata
from icefloe.schema import Schema
from icefloe.storage import Storage

GROUP = "icefloe.engines"
_IN_MEMORY = ("pyarrow", "pandas", "polars", "builtins")


@dataclass(frozen=True)
class WriteRequest:
    """What is to be written where. `written` gets every file that is whole, for whoever must clean up."""

    metadata: TableMetadata
    storage: Storage
    written: list[DataFile] = field(default_factory=list)


class Engine(Protocol):
    """Rows of another system: how they become data files, and how it reads a table."""

    def accepts(self, data: Any) -> bool:
        """Whether the data is its own."""
        ...

    def write(self, data: Any, request: WriteRequest) -> list[DataFile]:
        """Write the data as data files of the table. On an error, nothing of it is left."""
        ...

    def scan(self, scan: Any, session: Any) -> Any:
        """The rows of a scan as data of its own, in a session of its own."""
        ...

    def read_schema(self, schema: object) -> Schema:
        """The schema that one of its own means."""
        ...


def engine_for(data: Any) -> Engine | None:
    """The engine that the data belongs to; None if it is in memory here, or a stream."""
    kind = type(data)
    if isinstance(data, pa.Table | pa.RecordBatch) or kind.__module__.split(".")[0] in _IN_MEMORY:
        return None
    for name in _names():
        engine = _load(name)
        if engine is not None and engine.accepts(data):
            return engine
    return None


def engine_named(name: str) -> Engine:
    """The engine of that name, or an error that says how to get it."""
    engine = _load(name) if name in _names() else None
    if engine is None:
        raise NotInstalledError(f"the engine {name!r} is not installed; get it by: pip install 'icefloe[{name}]'")
    return engine


@lru_cache(maxsize=1)
def _names() -> tuple[str, ...]:
    return tuple(sorted(point.name for point in importlib.metadata.entry_points(group=GROUP)))


@lru_cache
def _load(name: str) -> Engine | None:
    """The engine, if all that it needs is installed."""
    (point, *_) = importlib.metadata.entry_points(group=GROUP, name=name)
    try:
        made: Engine = point.load()()
    except ModuleNotFoundError as problem:
        if (problem.name or "").partition(".")[0] == "icefloe":
            raise
        return None
    return made
