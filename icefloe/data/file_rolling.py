"""How the rows of one partition become data files: one after the other, each closed at the target size."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from icefloe import manifests as mf, metadata as md, partitioning as pt, properties as props
from icefloe.data.locations import NewLocations
from icefloe.data.new_files import NewFile
from icefloe.formats.file_formats import FileWriter, writer_of
from icefloe.formats.file_writing import WrittenFile
from icefloe.formats.metrics import MetricsMode
from icefloe.schema import Schema, Value
from icefloe.storage import OutputStream, Storage

_PIECE_BYTES = 8 << 20
_LEAST_PIECE_BYTES = 1 << 14
_PIECE_ROWS = 1 << 17


@dataclass(frozen=True, eq=False)
class WritePlan:
    """What all files of one write share. `schema` holds the columns of the files, those of row lineage among them."""

    metadata: md.TableMetadata
    storage: Storage
    schema: Schema
    spec: pt.PartitionSpec
    order: pt.SortOrder
    modes: dict[int, MetricsMode]
    locations: NewLocations
    finished: Callable[[mf.DataFile], None]
    """Called with every file that is whole."""
    target_bytes: int
    """How large a file gets before the next one is begun."""
    wrote: Callable[[int], None]
    """Called with the number of rows that were just written, by any thread."""


class RollingWriter:
    """Writes the rows of one partition; one thread at a time holds it."""

    def __init__(self, plan: WritePlan, partition: tuple[Value, ...]) -> None:
        self._plan = plan
        self._partition = partition
        self._format = props.WRITE_FORMAT.of(plan.metadata.properties)
        self._target = plan.target_bytes
        self._writer: FileWriter | None = None
        self._sink: _Sink | None = None
        self._file: NewFile | None = None
        self._location = ""
        self.files: list[mf.DataFile] = []

    def write(self, table: pa.Table) -> None:
        """Take in rows; a failure drops the file that is being written."""
        for piece in _pieces(table, self._target):
            try:
                writer = self._writer or self._open()
                writer.write(piece)
                is_full = self._is_full(writer)
            except BaseException:
                self.abort()
                raise
            self._plan.wrote(piece.num_rows)
            if is_full:
                self.finish()

    def _is_full(self, writer: FileWriter) -> bool:
        if writer.bytes_written < self._target:
            return False
        writer.settle()
        return writer.bytes_written >= self._target

    def finish(self) -> None:
        """Close the file that is being written, if there is one."""
        if self._writer is None or self._sink is None:
            return
        try:
            assert self._file is not None, "an open writer has its file"
            done, key_metadata = self._file.finish(self._writer.close())
            self._sink.close()
        except BaseException:
            self.abort()
            raise
        self._writer = self._sink = None
        self.files.append(self._data_file(done, key_metadata))
        self._plan.finished(self.files[-1])

    def abort(self) -> None:
        """Drop the file that is being written."""
        # The sink first: without its last holder the writer ends its file at once, and that must reach nothing.
        if self._sink is not None:
            self._sink.abort()
        self._sink = self._writer = None

    def _open(self) -> FileWriter:
        plan = self._plan
        self._location = plan.locations.next(plan.spec, self._partition, self._format)
        self._sink = _Sink(plan.storage.open_output(self._location))
        self._file = NewFile(self._sink, self._format, plan.metadata)
        self._writer = writer_of(self._format)(
            self._file.sink,
            plan.schema,
            plan.metadata.properties,
            sort_order=plan.order,
            modes=plan.modes,
        )
        return self._writer

    def _data_file(self, done: WrittenFile, key_metadata: bytes | None) -> mf.DataFile:
        order = self._plan.order
        return data_file_of(
            done,
            self._location,
            self._format,
            spec_id=self._plan.spec.spec_id,
            partition=self._partition,
            sort_order_id=None if order == pt.UNSORTED else order.order_id,
            key_metadata=key_metadata,
        )


class _Sink:
    """A file that is being written, which takes in nothing any more once it is dropped.

    Writers of pyarrow write their footers when they are collected, even those that failed.
    """

    def __init__(self, stream: OutputStream) -> None:
        self._stream = stream
        self._is_dropped = False

    def write(self, data: bytes | bytearray | memoryview | pa.Buffer, /) -> int:
        return memoryview(data).nbytes if self._is_dropped else self._stream.write(data)

    def close(self) -> None:
        self._stream.close()

    def abort(self) -> None:
        self._is_dropped = True
        self._stream.abort()


def data_file_of(done: WrittenFile, location: str, file_format: str, **fields: Any) -> mf.DataFile:
    """The entry of a file that was just written."""
    metrics = done.metrics
    return mf.DataFile(
        location,
        file_format,
        metrics.record_count,
        done.file_size_in_bytes,
        column_sizes=metrics.column_sizes,
        value_counts=metrics.value_counts,
        null_value_counts=metrics.null_value_counts,
        nan_value_counts=metrics.nan_value_counts,
        lower_bounds=metrics.lower_bounds,
        upper_bounds=metrics.upper_bounds,
        tight_bounds=metrics.tight_bounds,
        avg_value_sizes=metrics.avg_value_sizes,
        split_offsets=done.split_offsets or None,
        **fields,
    )


def _pieces(table: pa.Table, target: int) -> Iterator[pa.Table]:
    """The table in parts small enough to stop near the target size."""
    if not table.num_rows:
        return
    size = min(_PIECE_BYTES, max(_LEAST_PIECE_BYTES, target // 8))
    rows = max(1, min(_PIECE_ROWS, table.num_rows * size // max(1, table.nbytes)))
    for start in range(0, table.num_rows, rows):
        yield table.slice(start, rows)
