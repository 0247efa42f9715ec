"""Which rows of a task are deleted: by its deletion vector, by position delete files, by equality delete files.

A deletion vector stands for all position deletes of its file (spec: Scan Planning). Delete files that several tasks share
are read once, within a bound of memory.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icefloe import errors, manifests as mf, metadata as md, parallel, planning
from icefloe.bounded_cache import BoundedCache
from icefloe.data.vector_reads import VectorPlace, read_one_vector, read_vectors
from icefloe.formats.deletion_vectors import DeletionVector
from icefloe.formats.equality_deletes import read_equality_deletes
from icefloe.formats.equality_keys import EqualityKeys
from icefloe.formats.position_deletes import read_position_deletes
from icefloe.schema import Schema
from icefloe.storage import Storage, identity

Loaded = TypeVar("Loaded")
CACHE_BYTES = 256 << 20
"""How much memory deletes that may be asked for again take."""

_BYTES_PER_FILE = 1024
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


DeleteCache = BoundedCache[Hashable, Any]
"""Deletes as they were read, by the place where they are; files never change, so tables of one catalog may share it."""


def new_delete_cache(capacity: int = CACHE_BYTES) -> DeleteCache:
    """A cache for about so many bytes, or for the newest deletes if they take more."""
    return BoundedCache(capacity, keeps_newest=True)


class DeleteLoader:
    """Reads the deletes of tasks; threads share it."""

    def __init__(self, metadata: md.TableMetadata, storage: Storage, cache: DeleteCache | None = None) -> None:
        self._metadata = metadata
        self._storage = storage
        self._cache = new_delete_cache() if cache is None else cache

    def load(self, task: planning.FileScanTask, columns: Schema) -> TaskDeletes:
        """The deletes of a task; `columns` are those read for it, key columns among them."""
        return TaskDeletes(self.positions(task), tuple(self._keys(task, columns)))

    def positions(self, task: planning.FileScanTask) -> DeletionVector:
        """The rows that are deleted by position."""
        if task.deletion_vector is not None:
            return self._vector(task.deletion_vector, task.file)
        return DeletionVector().union(*(self._positions(deletes, task.file) for deletes in task.position_deletes))

    def positions_of_all(self, tasks: Sequence[planning.FileScanTask], workers: int) -> list[DeletionVector]:
        """The same for many tasks. Vectors that are near each other in their file are read by one request."""
        places = [
            None if (deletes := task.deletion_vector) is None else VectorPlace.of(deletes, task.file) for task in tasks
        ]
        kept = {place: self._cache.find(place) for place in places if place is not None}
        known = {place: vector for place, vector in kept.items() if vector is not None}
        missing = (place for place in kept if place not in known)
        for place, vector in read_vectors(missing, self._storage, workers):
            self._cache.keep(place, vector, _weight(place.file))
            known[place] = vector
        others = (task for task, place in zip(tasks, places, strict=True) if place is None)
        loaded = parallel.in_order(self.positions, others, workers)
        return [next(loaded) if place is None else known[place] for place in places]

    def _vector(self, deletes: mf.DataFile, file: mf.DataFile) -> DeletionVector:
        place = VectorPlace.of(deletes, file)
        # Its file may be read in pieces, or for one column after the other.
        return self._cached(place, deletes, partial(read_one_vector, place, self._storage))

    def _positions(self, deletes: mf.DataFile, file: mf.DataFile) -> DeletionVector:
        names = self._names(file.file_path)
        if deletes.record_count * _BYTES_PER_POSITION > self._cache.capacity:
            vectors = [self._read_positions(deletes, name).get(identity(name)) for name in names]
        else:
            load = partial(self._read_positions, deletes)
            by_file = self._cached(("positions", deletes.file_path), deletes, load)
            vectors = [by_file.get(identity(name)) for name in names]
        return DeletionVector().union(*(vector for vector in vectors if vector is not None))

    def _cached(self, key: Hashable, deletes: mf.DataFile, load: Callable[[], Loaded]) -> Loaded:
        loaded: Loaded = self._cache.load(key, load, _weight(deletes))
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


def _weight(deletes: mf.DataFile) -> int:
    """About how much memory the rows of a delete file take, with what is known of it."""
    return _BYTES_PER_FILE + deletes.record_count * _BYTES_PER_POSITION
