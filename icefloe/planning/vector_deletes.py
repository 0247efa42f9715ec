"""Which deletion vector is that of each data file: by path, in columns, with the files of vectors made when asked for."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe import errors, expressions as ex, manifests as mf
from icefloe.planning.file_values import data_files
from icefloe.planning.partitions import Numbers, PartitionGroups, PartitionKey
from icefloe.storage.identities import identities

_FEW = 4096
"""So many paths are looked up by Arrow, which makes its table each time, and needs no compiler."""


@dataclass(frozen=True, slots=True, eq=False)
class VectorFiles:
    """The deletion vectors of one manifest; `scopes` has the path of the data file of each, in its normal form."""

    columns: mf.ManifestColumns
    groups: PartitionGroups
    sequence_numbers: Numbers
    scopes: pa.Array


class VectorIndex:
    """All deletion vectors of a scan, by data file. Threads may share it."""

    def __init__(self, parts: Sequence[VectorFiles]) -> None:
        self._parts = list(parts)
        self._starts = np.cumsum([0, *(len(part.columns) for part in parts)])
        self.sequence_numbers = np.concatenate([part.sequence_numbers for part in parts])
        scopes = pa.concat_arrays([part.scopes for part in parts])
        if scopes.null_count:
            row = int(pc.index(scopes.is_null(), True).as_py())
            raise errors.CorruptFileError(
                self.file(row).file_path, "a deletion vector does not say which data file it is about"
            )
        self._table = PathTable(scopes)
        if self._table.twins is not None:
            other, row = self._table.twins
            raise errors.CorruptFileError(
                self.file(row).file_path,
                f"data file {scopes[row].as_py()!r} has two deletion vectors, the other one in "
                f"{self.file(other).file_path!r}; a snapshot may have one for each file",
            )
        self._key_numbers: dict[PartitionKey, int] = {}
        self._keys = np.concatenate([self._numbered(part.groups)[part.groups.of] for part in parts])

    def __len__(self) -> int:
        return len(self.sequence_numbers)

    def _numbered(self, groups: PartitionGroups) -> Numbers:
        keys = groups.keys()
        numbers = [self._key_numbers.setdefault(key, len(self._key_numbers)) for key in keys]
        return np.array(numbers, np.int64)

    @cached_property
    def sizes(self) -> Numbers:
        """The bytes of each vector: those of its blob, or of its file if that does not say."""
        parts = [
            pc.coalesce(part.columns.column("content_size_in_bytes"), part.columns.column("file_size_in_bytes"))
            for part in self._parts
        ]
        return np.concatenate([part.to_numpy(zero_copy_only=False) for part in parts]).astype(np.int64)

    @cached_property
    def deleted_rows(self) -> Numbers:
        """How many rows each vector deletes."""
        parts = [part.columns.column("record_count").to_numpy(zero_copy_only=False) for part in self._parts]
        return np.concatenate(parts).astype(np.int64)

    def file(self, row: int) -> mf.DataFile:
        """One vector."""
        return self.files(np.array([row]))[0]

    def files(self, rows: Numbers) -> list[mf.DataFile]:
        """The vectors at these rows, in their order."""
        files = np.empty(len(rows), object)
        part_of = np.searchsorted(self._starts, rows, side="right") - 1
        for number in np.unique(part_of).tolist():
            chosen = np.flatnonzero(part_of == number)
            own_rows, part = rows[chosen] - self._starts[number], self._parts[number]
            columns, group_of = part.columns.take(pa.array(own_rows)), part.groups.of[own_rows]
            files[chosen] = list(data_files(columns, group_of, part.groups.tuples))
        return files.tolist()

    def match(self, files: mf.ManifestColumns, numbers: Numbers, groups: PartitionGroups) -> "VectorDeletes | None":
        """The vector of each data file, if any has one. A vector must be of its file's partition, and not older."""
        vectors = self._table.find(identities(files.column("file_path")))
        rows = np.flatnonzero(vectors >= 0)
        if not len(rows):
            return None
        chosen = vectors[rows]
        keys = groups.keys()
        key_numbers = np.array([self._key_numbers.get(key, -1) for key in keys], np.int64)
        for row in rows[key_numbers[groups.of[rows]] != self._keys[chosen]][:1].tolist():
            self._refuse_partition(self.file(int(vectors[row])), files, row)
        for row in rows[self.sequence_numbers[chosen] < numbers[rows]][:1].tolist():
            raise errors.CorruptFileError(
                self.file(int(vectors[row])).file_path,
                f"the deletion vector of {files.column('file_path')[row].as_py()!r} has the sequence number "
                f"{self.sequence_numbers[vectors[row]]}, below {numbers[row]}, that of the data file; it cannot be about "
                "rows that came later",
            )
        return VectorDeletes(self, vectors)

    def _refuse_partition(self, vector: mf.DataFile, files: mf.ManifestColumns, row: int) -> None:
        raise errors.CorruptFileError(
            vector.file_path,
            f"it deletes rows of {files.column('file_path')[row].as_py()!r} but is in partition {vector.partition} of spec "
            f"{vector.spec_id}, while the data file is in another one, of spec {files.spec_id}; they must be the same",
        )


class VectorDeletes(Sequence[tuple[mf.DataFile, ...]]):
    """The deletes of some data files of which each has a vector or none; values are made when they are asked for."""

    def __init__(self, index: VectorIndex, vectors: Numbers) -> None:
        self._index = index
        self._vectors = vectors

    def __len__(self) -> int:
        return len(self._vectors)

    @overload
    def __getitem__(self, row: int) -> tuple[mf.DataFile, ...]: ...

    @overload
    def __getitem__(self, row: slice) -> list[tuple[mf.DataFile, ...]]: ...

    def __getitem__(self, row: int | slice) -> tuple[mf.DataFile, ...] | list[tuple[mf.DataFile, ...]]:
        if isinstance(row, slice):
            return self._deletes(self._vectors[row])
        return self._deletes(self._vectors[[row]])[0]

    def _deletes(self, vectors: Numbers) -> list[tuple[mf.DataFile, ...]]:
        deletes: list[tuple[mf.DataFile, ...]] = [()] * len(vectors)
        rows = np.flatnonzero(vectors >= 0)
        for row, file in zip(rows.tolist(), self._index.files(vectors[rows]), strict=True):
            deletes[row] = (file,)
        return deletes

    @property
    def exists(self) -> ex.Mask:
        """Which of the data files have a vector."""
        return self._vectors >= 0

    @property
    def deleted_rows(self) -> Numbers:
        """How many rows of each data file its vector deletes; -1 without one."""
        return np.where(self.exists, self._index.deleted_rows[self._vectors], -1)

    @property
    def total(self) -> int:
        """How many there are."""
        return int(self.exists.sum())

    @property
    def total_bytes(self) -> int:
        """What they take to read."""
        return int(self._index.sizes[self._vectors[self.exists]].sum())


class PathTable:
    """Distinct paths and the row of each, looked up for a column at a time, exactly, whatever the hashes are. Threads may share it."""

    def __init__(self, paths: pa.Array) -> None:
        self._paths = paths
        self._table: npt.NDArray[np.int32] | None = None
        self.twins: tuple[int, int] | None = None
        """The rows of two paths that are the same, if there are such."""
        if len(paths) <= _FEW:
            self.twins = _twins(paths)
            return
        from icefloe.planning.path_kernels import fill_table

        self._texts, self._offsets = _parts(paths)
        size = 1 << (2 * len(paths)).bit_length()
        self._hashes, table = np.zeros(len(paths), np.int64), np.full(size, -1, np.int32)
        first, second = fill_table(self._texts, self._offsets, self._hashes, table)
        self.twins = None if first < 0 else (int(first), int(second))
        self._table = table

    def find(self, paths: pa.Array) -> Numbers:
        """The row of each path, or -1."""
        if self._table is None:
            rows = pc.fill_null(pc.index_in(paths, value_set=self._paths), -1)
            return np.asarray(rows.to_numpy(zero_copy_only=False), np.int64)
        from icefloe.planning.path_kernels import find_in_table

        numbers = np.empty(len(paths), np.int64)
        find_in_table(*_parts(paths), self._texts, self._offsets, self._hashes, self._table, numbers)
        return numbers


def _twins(paths: pa.Array) -> tuple[int, int] | None:
    seen: dict[str, int] = {}
    for row, path in enumerate(paths.to_pylist()):
        if seen.setdefault(path, row) != row:
            return seen[path], row
    return None


def _parts(paths: pa.Array) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int32]]:
    """The bytes of all paths, and where each begins and the last one ends."""
    texts = paths.cast(pa.string()) if paths.type != pa.string() else paths
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, np.int32, len(texts) + 1, texts.offset * 4) if len(texts) else np.zeros(1, np.int32)
    return np.frombuffer(data if data is not None and data.size else bytes(1), np.uint8), ends
