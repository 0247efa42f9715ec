"""Which rows of a task are deleted: by its deletion vector, by position delete files, by equality delete files.

A deletion vector stands for all position deletes of its file (spec: Scan Planning). Delete files that several tasks share
are read once, within a bound of memory.
"""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icefloe import errors, manifests as mf, metadata as md, planning
from icefloe.bounded_cache import BoundedCache
from icefloe.formats.deletion_vector_codec import read_vector
from icefloe.formats.deletion_vectors import DeletionVector
from icefloe.formats.equality_deletes import read_equality_deletes
from icefloe.formats.equality_keys import EqualityKeys
from icefloe.formats.position_deletes import read_position_deletes
from icefloe.schema import Schema
from icefloe.storage import Storage, identity, is_same_file

Loaded = TypeVar("Loaded")
CACHE_BYTES = 256 << 20
"""How much memory deletes that may be asked for again take."""

_BYTES_PER_POSITION = 8
_BYTES_PER_KEY = 64


@dataclass(frozen=True, slots=True, eq=False)
class TaskDeletes:
    """The deletes of one task, ready to be asked."""

    vector: DeletionVector
    keys: tuple[EqualityKeys, ...]

    def mask(self, batch: pa.RecordBatch, positions: npt.NDArray[np.int64] | None) -> npt.NDArray[np.bool_] | None:
        """For each row of a batch whether it is deleted; None if none is. `positions` are ascending."""
        deleted: npt.NDArray[np.bool_] | None = None
        if self.vector and positions is not None and len(positions):
            first, last = int(positions[0]), int(positions[-1])
            deleted = self.vector.mask(first, last + 1)
            if len(deleted) != len(positions):
                deleted = deleted[positions - first]
        for keys in self.keys:
            by_keys = keys.mask(batch)
            deleted = by_keys if deleted is None else deleted | by_keys
        return deleted


class DeleteLoader:
    """Reads the deletes of tasks; threads share it."""

    def __init__(self, metadata: md.TableMetadata, storage: Storage, cache_bytes: int = CACHE_BYTES) -> None:
        self._metadata = metadata
        self._storage = storage
        self._limit = cache_bytes
        self._cache: BoundedCache[Hashable, Any] = BoundedCache(cache_bytes, keeps_newest=True)

    def load(self, task: planning.FileScanTask, columns: Schema) -> TaskDeletes:
        """The deletes of a task; `columns` are those read for it, key columns among them."""
        return TaskDeletes(self.positions(task), tuple(self._keys(task, columns)))

    def positions(self, task: planning.FileScanTask) -> DeletionVector:
        """The rows that are deleted by position."""
        if task.deletion_vector is not None:
            return self._vector(task.deletion_vector, task.file)
        return DeletionVector().union(*(self._positions(deletes, task.file) for deletes in task.position_deletes))

    def _vector(self, deletes: mf.DataFile, file: mf.DataFile) -> DeletionVector:
        location = deletes.file_path
        if deletes.content_offset is None or deletes.content_size_in_bytes is None:
            raise errors.CorruptFileError(location, "its manifest does not say where in it the deletion vector is")
        if not is_same_file(deletes.referenced_data_file, file.file_path):
            raise errors.CorruptFileError(
                location, f"a deletion vector of {deletes.referenced_data_file} is planned for {file.file_path}"
            )
        load = partial(
            read_vector,
            mf.range_reader(deletes, self._storage),
            deletes.content_offset,
            deletes.content_size_in_bytes,
            location,
            cardinality=deletes.record_count,
            row_count=file.record_count,
        )
        # Its file may be read in pieces, or for one column after the other.
        return self._cached(("vector", location, deletes.content_offset), deletes, load)

    def _positions(self, deletes: mf.DataFile, file: mf.DataFile) -> DeletionVector:
        names = self._names(file.file_path)
        if deletes.record_count * _BYTES_PER_POSITION > self._limit:
            vectors = [self._read_positions(deletes, name).get(identity(name)) for name in names]
        else:
            load = partial(self._read_positions, deletes)
            by_file = self._cached(("positions", deletes.file_path), deletes, load)
            vectors = [by_file.get(identity(name)) for name in names]
        return DeletionVector().union(*(vector for vector in vectors if vector is not None))

    def _cached(self, key: Hashable, deletes: mf.DataFile, load: Callable[[], Loaded]) -> Loaded:
        loaded: Loaded = self._cache.load(key, load, deletes.record_count * _BYTES_PER_POSITION)
        return loaded

    def _names(self, path: str) -> tuple[str, ...]:
        """How a position delete file may name the data file; the spec does not say whether paths there may be relative."""
        return tuple(dict.fromkeys((path, md.relativize(self._metadata.relative_to, path))))

    def _read_positions(self, deletes: mf.DataFile, data_file: str | None = None) -> dict[str, DeletionVector]:
        with mf.open_file(deletes, self._storage) as source:
            return read_position_deletes(source, deletes.file_path, deletes.file_format, data_file)

    def _keys(self, task: planning.FileScanTask, columns: Schema) -> Iterable[EqualityKeys]:
        groups: dict[tuple[int, ...], list[mf.DataFile]] = {}
        for deletes in task.equality_deletes:
            if not deletes.equality_ids:
                raise errors.CorruptFileError(deletes.file_path, "an equality delete file without equality field ids")
            groups.setdefault(tuple(sorted(deletes.equality_ids)), []).append(deletes)
        for ids, files in groups.items():
            types = tuple(columns.fields_by_id[field_id].field_type for field_id in ids)
            key = ("keys", ids, types, frozenset(file.file_path for file in files))
            weight = sum(file.record_count for file in files) * _BYTES_PER_KEY
            yield self._cache.load(key, partial(self._read_keys, files, ids, columns), weight)

    def _read_keys(self, files: list[mf.DataFile], ids: tuple[int, ...], columns: Schema) -> EqualityKeys:
        tables = []
        for deletes in files:
            with mf.open_file(deletes, self._storage) as source:
                tables.append(
                    read_equality_deletes(source, deletes.file_path, columns, ids, deletes.file_format).combine_chunks()
                )
        return EqualityKeys(pa.concat_tables(tables), ids)
