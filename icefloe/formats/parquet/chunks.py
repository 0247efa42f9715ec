"""How the columns of a row group are encoded side by side: each as a Parquet file of its own in memory, all joined into one file.

pyarrow encodes the columns of a file one after the other, in one thread. Column chunks know nothing of each other, so those of
several files make one row group as they are, once the offsets in their metadata say where they are now (Parquet: File Format).
"""

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from icefloe.formats.file_writing import HoldingSink
from icefloe.formats.parquet import thrift_codec as thrift
from icefloe.formats.parquet.footer import MAGIC, footer_of
from icefloe.formats.parquet.thrift_codec import ThriftList, ThriftReader, ThriftStruct, write_struct

LEAST_BYTES = 4 << 20
"""Row groups of fewer bytes in memory are not worth the threads."""

_MOST_THREADS = 8
# Numbers of fields in Parquet's Thrift structs.
_FILE_ROWS, _FILE_GROUPS = 3, 4
_GROUP_CHUNKS, _GROUP_BYTES, _GROUP_ROWS, _GROUP_OFFSET, _GROUP_COMPRESSED = 1, 2, 3, 5, 6
_CHUNK_OFFSET, _CHUNK_METADATA = 2, 3
_OFFSET_INDEX, _OFFSET_INDEX_LENGTH, _COLUMN_INDEX, _COLUMN_INDEX_LENGTH = 4, 5, 6, 7
_COMPRESSED, _DATA_PAGE, _INDEX_PAGE, _DICTIONARY_PAGE = 7, 9, 10, 11
_PAGE_LOCATIONS, _PAGE_OFFSET = 1, 1


def encoding_threads() -> int:
    """How many columns are encoded at once."""
    return min(_MOST_THREADS, os.cpu_count() or 1)


@dataclass(slots=True)
class _Index:
    """What is written near the footer of the file about one column chunk."""

    chunk: ThriftStruct
    columns: bytes | None
    offsets: ThriftStruct | None


class ParquetChunksWriter:
    """Writes row groups whose columns are encoded by several threads; it takes the place of a `pq.ParquetWriter`."""

    def __init__(self, sink: HoldingSink, schema: pa.Schema, options: Mapping[str, Any]) -> None:
        self._sink = sink
        self._schema = schema
        self._options = dict(options)
        self._metadata: dict[str, str] = {}
        self._groups: list[ThriftStruct] = []
        self._indexes: list[_Index] = []
        self._rows = 0
        self._sink.write(MAGIC)

    def add_key_value_metadata(self, metadata: Mapping[str, str]) -> None:
        """Keep these in the footer."""
        self._metadata.update(metadata)

    def write_table(self, table: pa.Table, row_group_size: int) -> None:
        """Write rows as row groups of that size."""
        for start in range(0, table.num_rows, row_group_size):
            self._write_group(table.slice(start, row_group_size))

    def close(self) -> pq.FileMetaData:
        """Write the footer; the metadata of the file, as pyarrow gives it."""
        for index in self._indexes:
            if index.columns is not None:
                self._place(index.chunk, _COLUMN_INDEX, _COLUMN_INDEX_LENGTH, index.columns)
        for index in self._indexes:
            if index.offsets is not None:
                self._place(index.chunk, _OFFSET_INDEX, _OFFSET_INDEX_LENGTH, write_struct(index.offsets))
        footer = ThriftReader(footer_of(self._empty_file())).struct()
        footer.set(_FILE_ROWS, thrift.I64, self._rows)
        footer.set(_FILE_GROUPS, thrift.LIST, ThriftList(thrift.STRUCT, self._groups))
        data = write_struct(footer)
        tail = data + len(data).to_bytes(4, "little") + MAGIC
        self._sink.write(tail)
        return pq.read_metadata(pa.BufferReader(MAGIC + tail))

    def _place(self, chunk: ThriftStruct, offset: int, length: int, data: bytes) -> None:
        chunk.set(offset, thrift.I64, self._sink.written)
        chunk.set(length, thrift.I32, len(data))
        self._sink.write(data)

    def _write_group(self, rows: pa.Table) -> None:
        indices = range(rows.num_columns)
        with ThreadPoolExecutor(encoding_threads(), thread_name_prefix="icefloe-encode") as pool:
            # The widest first, so that none is left to the end by itself.
            order = sorted(indices, key=lambda index: -rows.column(index).nbytes)
            files = dict(zip(order, pool.map(lambda index: self._encoded(rows, index), order), strict=True))
            group = self._joined([files[index] for index in indices])
        group.set(_GROUP_ROWS, thrift.I64, rows.num_rows)
        self._groups.append(group)
        self._rows += rows.num_rows

    def _encoded(self, rows: pa.Table, index: int) -> pa.Buffer:
        """One column as a file of its own."""
        out = pa.BufferOutputStream()
        with pq.ParquetWriter(out, pa.schema([self._schema.field(index)]), **self._options) as writer:
            writer.write_table(rows.select([index]), row_group_size=rows.num_rows)
        return out.getvalue()

    def _joined(self, files: list[pa.Buffer]) -> ThriftStruct:
        """One row group of the column chunks of these files, which are written on."""
        start = self._sink.written
        chunks: list[ThriftStruct] = []
        sizes, compressed = 0, 0
        group = ThriftStruct()
        for file in files:
            [group] = ThriftReader(footer_of(file)).struct().get(_FILE_GROUPS).values
            own = group.get(_GROUP_CHUNKS).values
            sizes += group.get(_GROUP_BYTES)
            compressed += group.get(_GROUP_COMPRESSED, 0)
            spans = [_span(chunk) for chunk in own]
            first, last = min(span[0] for span in spans), max(span[1] for span in spans)
            for chunk in own:
                self._indexes.append(_moved(chunk, file, self._sink.written - first))
            chunks += own
            self._sink.write(file.slice(first, last - first).to_pybytes())
        # What else pyarrow says of a group is the same for all of its columns.
        group.set(_GROUP_CHUNKS, thrift.LIST, ThriftList(thrift.STRUCT, chunks))
        group.set(_GROUP_BYTES, thrift.I64, sizes)
        group.set(_GROUP_COMPRESSED, thrift.I64, compressed)
        group.set(_GROUP_OFFSET, thrift.I64, start)
        return group

    def _empty_file(self) -> pa.Buffer:
        """A file without rows, for all in its footer that is not about row groups."""
        out = pa.BufferOutputStream()
        with pq.ParquetWriter(out, self._schema, **self._options) as writer:
            writer.add_key_value_metadata(self._metadata)
        return out.getvalue()


def _span(chunk: ThriftStruct) -> tuple[int, int]:
    """Where the pages of a column chunk begin and end."""
    metadata = chunk.get(_CHUNK_METADATA)
    start = min(at for at in (metadata.get(_DICTIONARY_PAGE), metadata.get(_DATA_PAGE)) if at)
    return start, start + metadata.get(_COMPRESSED)


def _moved(chunk: ThriftStruct, file: pa.Buffer, distance: int) -> _Index:
    """Say that the pages of a column chunk are so much further on; what the file holds of its pages beside them."""
    metadata = chunk.get(_CHUNK_METADATA)
    _shift(metadata, (_DATA_PAGE, _INDEX_PAGE, _DICTIONARY_PAGE), distance)
    _shift(chunk, (_CHUNK_OFFSET,), distance)
    columns, offsets = (
        None if chunk.get(at) is None else file.slice(chunk.get(at), chunk.get(length)).to_pybytes()
        for at, length in ((_COLUMN_INDEX, _COLUMN_INDEX_LENGTH), (_OFFSET_INDEX, _OFFSET_INDEX_LENGTH))
    )
    if offsets is None:
        return _Index(chunk, columns, None)
    pages = ThriftReader(offsets).struct()
    for page in pages.get(_PAGE_LOCATIONS).values:
        _shift(page, (_PAGE_OFFSET,), distance)
    return _Index(chunk, columns, pages)


def _shift(struct: ThriftStruct, fields: tuple[int, ...], distance: int) -> None:
    """Add to offsets; zero stands for none."""
    for field in fields:
        if struct.get(field):
            struct.set(field, thrift.I64, struct.get(field) + distance)
