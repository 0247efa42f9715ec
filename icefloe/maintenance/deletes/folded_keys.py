"""Which rows equal a key of many equality delete files, each with its own sequence number, by one look for each row.

Equal keys of all files are one, with the highest of their numbers: it deletes the rows of data files that are older than that.
Keys beyond a budget, and the rows to compare, go to buckets on disk by their values, and are compared bucket by bucket.
"""

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icefloe import expressions as ex, manifests as mf, partitioning as pt, planning
from icefloe.formats.equality_deletes import read_equality_deletes
from icefloe.formats.equality_keys import EqualityKeys, key_columns
from icefloe.partitioning import transforms as tr
from icefloe.schema import Schema
from icefloe.storage import Storage

BYTES_PER_KEY = 64
_NUMBER, _FILE, _POSITION = "number", "file", "position"
_MOST_BUCKETS = 256

Rows = Iterable[tuple[int, planning.Numbers, pa.RecordBatch]]
"""Rows of data files, by the number of the file: their positions, and a batch with the key columns."""
Hits = Iterator[tuple[int, planning.Numbers]]
"""Positions of rows that are deleted, by the number of the file."""


@dataclass(frozen=True, slots=True)
class KeySet:
    """Equality delete files of one scope and of the same key columns, with their sequence numbers."""

    field_ids: tuple[int, ...]
    files: tuple[tuple[mf.DataFile, int], ...]

    @property
    def rows(self) -> int:
        """How many keys there are, equal ones counted for each file."""
        return sum(file.record_count for file, _ in self.files)

    def tables(self, schema: Schema, storage: Storage) -> Iterator[pa.Table]:
        """The keys of each file, with a column of sequence numbers after the others."""
        for file, number in self.files:
            with mf.open_file(file, storage) as source:
                keys = read_equality_deletes(source, file.file_path, schema, self.field_ids, file.file_format)
            numbers = pa.array(np.full(keys.num_rows, number, np.int64))
            yield keys.combine_chunks().append_column(_NUMBER, numbers)


class FoldedKeys:
    """Distinct keys with the highest of their sequence numbers."""

    def __init__(self, tables: Iterable[pa.Table], field_ids: Sequence[int]) -> None:
        keys = pa.concat_tables(tables)
        self._keys = EqualityKeys(keys.drop_columns([_NUMBER]), field_ids)
        self._highest = np.full(max(self._keys.count, 1), -1, np.int64)
        np.maximum.at(self._highest, self._keys.own_numbers, keys.column(_NUMBER).to_numpy())

    def mask(self, rows: pa.RecordBatch | pa.Table, sequence_numbers: int | planning.Numbers) -> ex.Mask:
        """Which rows are deleted; the sequence numbers are those of their files."""
        numbers = self._keys.numbers(rows)
        return (numbers >= 0) & (self._highest[numbers] > sequence_numbers)


def hits_in_memory(keys: FoldedKeys, rows: Rows, sequence_numbers: Sequence[int]) -> Hits:
    """The rows that are deleted, by keys that fit into memory."""
    for file, positions, batch in rows:
        deleted = keys.mask(batch, sequence_numbers[file])
        if deleted.any():
            yield file, positions[deleted]


def hits_by_buckets(
    key_set: KeySet, schema: Schema, storage: Storage, rows: Rows, sequence_numbers: Sequence[int], budget: int
) -> Hits:
    """The same by keys that do not, in a folder that is gone afterwards."""
    count = min(_MOST_BUCKETS, -(-key_set.rows * BYTES_PER_KEY // budget) + 1)
    ids = key_set.field_ids
    with tempfile.TemporaryDirectory(prefix="icefloe-keys-") as folder:
        bucket_of = _bucketing(schema, ids, count)
        with _Buckets(Path(folder), "keys", count) as keys:
            for table in key_set.tables(schema, storage):
                keys.add(table, bucket_of(table))
        with _Buckets(Path(folder), "rows", count) as spilled:
            for file, positions, batch in rows:
                spilled.add(_with_place(key_columns(batch, ids), file, positions), bucket_of(batch))
        limits = np.asarray(sequence_numbers, np.int64)
        for number in range(count):
            stored = list(keys.tables(number))
            if not stored:
                continue
            folded = FoldedKeys(stored, ids)
            for table in spilled.tables(number):
                yield from _hits(folded, table, limits)


def _hits(folded: FoldedKeys, table: pa.Table, limits: planning.Numbers) -> Hits:
    files = table.column(_FILE).to_numpy()
    deleted = folded.mask(table, limits[files])
    positions = table.column(_POSITION).to_numpy()[deleted]
    files = files[deleted]
    for file in np.unique(files).tolist():
        yield file, positions[files == file]


def _with_place(keys: pa.Table, file: int, positions: planning.Numbers) -> pa.Table:
    files = pa.array(np.full(keys.num_rows, file, np.int64))
    return keys.append_column(_FILE, files).append_column(_POSITION, pa.array(positions))


def _bucketing(
    schema: Schema, field_ids: Sequence[int], count: int
) -> Callable[[pa.RecordBatch | pa.Table], npt.NDArray[np.int64]]:
    """Into which bucket each row goes: equal keys into the same."""
    bucket = tr.BucketTransform(count)
    types = {field_id: schema.fields_by_id[field_id].field_type for field_id in field_ids}
    hashed = {field_id: each for field_id, each in types.items() if bucket.can_transform(each)}

    def bucket_of(rows: pa.RecordBatch | pa.Table) -> npt.NDArray[np.int64]:
        codes = np.zeros(rows.num_rows, np.int64)
        for field_id, column in zip(hashed, key_columns(rows, hashed).columns, strict=True):
            plain = column.cast(column.type.storage_type) if isinstance(column.type, pa.BaseExtensionType) else column
            own = pt.transform_array(bucket, plain.combine_chunks(), hashed[field_id])
            codes = codes * 31 + own.fill_null(count).to_numpy(zero_copy_only=False)
        return codes % count

    return bucket_of


class _Buckets:
    """Tables cut by bucket, in one file each."""

    def __init__(self, folder: Path, name: str, count: int) -> None:
        self._paths = [folder / f"{name}-{number}.arrow" for number in range(count)]
        self._writers: dict[int, pa.RecordBatchFileWriter] = {}
        self._open = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    def add(self, table: pa.Table, bucket_of: npt.NDArray[np.int64]) -> None:
        """Take in rows."""
        for number in np.unique(bucket_of).tolist():
            part = table.filter(pa.array(bucket_of == number))
            if number not in self._writers:
                writer = pa.ipc.new_file(str(self._paths[number]), part.schema)
                self._writers[number] = self._open.enter_context(writer)
            self._writers[number].write_table(part)

    def tables(self, number: int) -> Iterator[pa.Table]:
        """The rows of a bucket, piece by piece."""
        if number in self._writers:
            with pa.ipc.open_file(pa.memory_map(str(self._paths[number]))) as reader:
                for index in range(reader.num_record_batches):
                    yield pa.Table.from_batches([reader.get_batch(index)])
