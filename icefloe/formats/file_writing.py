"""What the writers of all file formats share: their settings, and what they say of a finished file."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from icefloe.errors import InvalidPropertyError
from icefloe.formats.arrow_types import stored_schema
from icefloe.formats.metrics import Metrics, MetricsMode, metrics_modes
from icefloe.partitioning import UNSORTED, SortOrder
from icefloe.properties import Property
from icefloe.schema import Schema, schema_to_json

JUST_WRITTEN = "the file just written"
"""What errors call a file whose writer does not know where it is."""


class Sink(Protocol):
    """Where the bytes of a file go, in order."""

    def write(self, data: bytes, /) -> object:
        """Append the bytes."""
        ...


class HoldingSink:
    """A writable file that passes bytes on until `hold`, and then keeps them, the end of the file, until `release`.

    Once the sink has failed it gets nothing more, and the file cannot be finished.
    """

    def __init__(self, sink: Sink) -> None:
        self.written = 0
        self.closed = False
        self._sink = sink
        self._held: list[bytes] | None = None
        self._problem: BaseException | None = None

    def write(self, data: bytes) -> int:
        """Append the bytes to the sink, or to what is held."""
        if self._held is not None:
            self._held.append(bytes(data))
        elif self._problem is None:
            # After an error nothing goes to the sink any more: pyarrow's writer still ends the file when it is collected.
            try:
                self._sink.write(data)
            except BaseException as problem:
                self._problem = problem
                raise
        self.written += len(data)
        return len(data)

    def tell(self) -> int:
        """How many bytes were written."""
        return self.written

    def flush(self) -> None:
        """Nothing waits here but the end of the file."""

    def close(self) -> None:
        """Nothing more is written; the sink itself stays open."""
        self.closed = True

    def hold(self) -> None:
        """Keep what comes from now on."""
        self._held = []

    def release(self, finish: Callable[[bytes], bytes]) -> bytes:
        """Pass on what `finish` makes of the bytes that were held, and return it."""
        if self._problem is not None:
            raise self._problem
        held = b"".join(self._held or [])
        tail = finish(held)
        self._held = None
        self._sink.write(tail)
        self.written += len(tail) - len(held)
        return tail


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """What a finished file says of itself."""

    metrics: Metrics
    split_offsets: tuple[int, ...]
    file_size_in_bytes: int


class FileWriter(ABC):
    """Writes batches of a table's columns to a sink; `close` gives the metrics.

    Nothing is written to the sink after an error, and it is the caller who closes or aborts the sink. `schema` has the
    columns that are stored.
    """

    def __init__(
        self,
        sink: Sink,
        schema: Schema,
        properties: Mapping[str, str] | None = None,
        *,
        sort_order: SortOrder = UNSORTED,
        modes: dict[int, MetricsMode] | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> None:
        self.schema = stored_schema(schema)
        self._properties = properties or {}
        self._modes = metrics_modes(self.schema, self._properties, sort_order) if modes is None else modes
        self._metadata = {"iceberg.schema": json.dumps(schema_to_json(schema)), **(metadata or {})}
        self._open(sink)

    @abstractmethod
    def _open(self, sink: Sink) -> None:
        """Begin the file."""

    @property
    @abstractmethod
    def bytes_written(self) -> int:
        """About how large the file would be if it were closed now; for rolling to the next file at a target size."""

    def settle(self) -> None:
        """Make `bytes_written` a measured number, as far as that is possible now; rows that wait may be written for it."""
        return

    @abstractmethod
    def write(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Take in a record batch or table with the columns of the schema, matched by name."""

    @abstractmethod
    def close(self) -> WrittenFile:
        """Finish the file, and say what it holds. The sink is left open."""

    def _codec(self, setting: Property[str], codecs: Mapping[str, str]) -> tuple[str, str]:
        """The codec that the table's properties name, and the format's own name for it."""
        codec = setting.of(self._properties).lower()
        if codec not in codecs:
            raise InvalidPropertyError(f"property {setting.key!r} is {codec!r}; it must be one of {', '.join(codecs)}")
        return codec, codecs[codec]
