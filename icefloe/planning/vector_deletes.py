"""Which deletion vector is that of each data file: by path, in columns, with the files of vectors made when asked for."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.errors import CorruptFileError
from icefloe.manifests import DataFile, ManifestColumns
from icefloe.planning.file_values import data_files
from icefloe.planning.partitions import Numbers, PartitionGroups, PartitionKey
from icefloe.planning.path_table import PathTable
from icefloe.storage.identities import identities

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class VectorFiles:
    """The deletion vectors of one manifest; `scopes` has the path of the data file of each, in its normal form."""

    columns: ManifestColumns
    groups: PartitionGroups
    sequence_numbers: Numbers
    scopes: Any


class VectorIndex:
    """All deletion vectors of a scan, found by data file. Threads may share it."""

    def __init__(self, parts: Sequence[VectorFiles]) -> None:
        self._parts = list(parts)
        self._starts = np.cumsum([0, *(len(part.columns) for part in parts)])
        self.sequence_numbers = np.concatenate([part.sequence_numbers for part in parts])
        scopes = pa.concat_arrays([part.scopes for part in parts])
        if scopes.null_count:
            place = int(pc.index(scopes.is_null(), True).as_py())
            raise CorruptFileError(
                self.file(place).file_path, "a deletion vector does not say which data file it is about"
            )
        self._table = PathTable(scopes)
        if self._table.twins is not None:
            other, place = self._table.twins
            raise CorruptFileError(
                self.file(place).file_path,
                f"data file {scopes[place].as_py()!r} has two deletion vectors, the other one in "
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

    def file(self, place: int) -> DataFile:
        """One vector."""
        return self.files(np.array([place]))[0]

    def files(self, places: Numbers) -> list[DataFile]:
        """The vectors at these places, in their order."""
        found: list[Any] = [None] * len(places)
        part_of = np.searchsorted(self._starts, places, side="right") - 1
        for number in np.unique(part_of).tolist():
            where = np.flatnonzero(part_of == number)
            rows = places[where] - self._starts[number]
            part = self._parts[number]
            columns, group_of = part.columns.take(pa.array(rows)), part.groups.of[rows]
            for at, file in zip(where.tolist(), data_files(columns, group_of, part.groups.tuples), strict=True):
                found[at] = file
        return found

    def match(self, files: ManifestColumns, numbers: Numbers, groups: PartitionGroups) -> "VectorDeletes | None":
        """The vector of each data file, if any has one. A vector must be of its file's partition, and not older."""
        places = self._table.find(identities(files.column("file_path")))
        rows = np.flatnonzero(places >= 0)
        if not len(rows):
            return None
        chosen = places[rows]
        keys = groups.keys()
        key_numbers = np.array([self._key_numbers.get(key, -1) for key in keys], np.int64)
        for row in rows[key_numbers[groups.of[rows]] != self._keys[chosen]][:1].tolist():
            self._refuse_partition(int(places[row]), files, row)
        for row in rows[self.sequence_numbers[chosen] < numbers[rows]][:1].tolist():
            raise CorruptFileError(
                self.file(int(places[row])).file_path,
                f"the deletion vector of {files.column('file_path')[row].as_py()!r} has the sequence number "
                f"{self.sequence_numbers[places[row]]}, below {numbers[row]}, that of the data file; it cannot be about "
                "rows that came later",
            )
        return VectorDeletes(self, places)

    def _refuse_partition(self, place: int, files: ManifestColumns, row: int) -> None:
        vector = self.file(place)
        raise CorruptFileError(
            vector.file_path,
            f"it deletes rows of {files.column('file_path')[row].as_py()!r} but is in partition {vector.partition} of spec "
            f"{vector.spec_id}, while the data file is in another one, of spec {files.spec_id}; they must be the same",
        )


class VectorDeletes(Sequence[tuple[DataFile, ...]]):
    """The deletes of some data files of which each has a vector or none; values are made when they are asked for."""

    def __init__(self, index: VectorIndex, places: Numbers) -> None:
        self._index = index
        self._places = places

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, row: int) -> tuple[DataFile, ...]: ...

    @overload
    def __getitem__(self, row: slice) -> list[tuple[DataFile, ...]]: ...

    def __getitem__(self, row: int | slice) -> tuple[DataFile, ...] | list[tuple[DataFile, ...]]:
        if isinstance(row, slice):
            return self._made(self._places[row])
        return self._made(self._places[[row]])[0]

    def _made(self, places: Numbers) -> list[tuple[DataFile, ...]]:
        found: list[tuple[DataFile, ...]] = [()] * len(places)
        rows = np.flatnonzero(places >= 0)
        for row, file in zip(rows.tolist(), self._index.files(places[rows]), strict=True):
            found[row] = (file,)
        return found

    @property
    def exists(self) -> Mask:
        """Which of the data files have a vector."""
        return self._places >= 0

    @property
    def total(self) -> int:
        """How many there are."""
        return int(self.exists.sum())

    @property
    def total_bytes(self) -> int:
        """What they take to read."""
        return int(self._index.sizes[self._places[self.exists]].sum())
