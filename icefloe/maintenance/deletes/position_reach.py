"""Which position deletes may delete rows of some data files: by path, partition and sequence number.

A vector takes the place of all position delete files of its data file (spec: Scan Planning). A file whose rows are all about one
data file needs that one; another needs a data file of its partition that is not newer, and has no vector.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe import commit as cm, expressions as ex, manifests as mf, planning
from icefloe.maintenance.deletes.equality_reach import rows_by_group
from icefloe.storage import identities

_NOWHERE = np.iinfo(np.int64).max
"""The sequence number of a data file that does not exist: newer than all deletes."""


class PositionReach:
    """Vectors and position delete files, those of all parts one after the other, and the data files that they may be about."""

    def __init__(self, parts: Sequence[mf.ManifestColumns]) -> None:
        self._numbers = _joined([planning.sequence_numbers(part) for part in parts], np.int64)
        self._is_vector = _joined([cm.vector_mask(part).to_numpy(zero_copy_only=False) for part in parts], bool)
        scopes = pa.chunked_array([planning.scopes_of(part) for part in parts], pa.string())
        paths = pc.unique(scopes.drop_null())
        self._paths = planning.PathTable(paths)
        self._path_of = pc.fill_null(pc.index_in(scopes, value_set=paths), -1).to_numpy().astype(np.int64)
        self._data_numbers = np.full(len(paths), _NOWHERE)
        self._vector_numbers = np.full(len(paths), -1)
        own = self._is_vector & (self._path_of >= 0)
        self._vector_numbers[self._path_of[own]] = self._numbers[own]
        self._keys = [keys[group] for keys, of in map(_keys, parts) for group in of.tolist()]
        self._lowest: dict[planning.PartitionKey, int] = {}

    @property
    def highest(self) -> int:
        """The highest sequence number of the deletes; -1 if there are none."""
        return int(self._numbers.max(initial=-1))

    def add(self, data: mf.ManifestColumns) -> None:
        """Take in data files."""
        if not len(self._numbers) or not len(data):
            return
        numbers = planning.sequence_numbers(data)
        paths = self._paths.find(identities(data.column("file_path")))
        known = paths >= 0
        self._data_numbers[paths[known]] = numbers[known]
        has_vector = known.copy()
        has_vector[known] = self._vector_numbers[paths[known]] >= numbers[known]
        others = data.filter(~has_vector)
        for key, rows in rows_by_group(planning.group_partitions(others)) if len(others) else ():
            lowest = int(numbers[~has_vector][rows].min())
            self._lowest[key] = min(lowest, self._lowest.get(key, _NOWHERE))

    @property
    def is_needed(self) -> ex.Mask:
        """Which deletes may delete a row of the data files."""
        is_scoped = self._path_of >= 0
        paths = self._path_of[is_scoped]
        data, vectors = self._data_numbers[paths], self._vector_numbers[paths]
        needed = np.zeros(len(self._numbers), bool)
        needed[is_scoped] = (self._numbers[is_scoped] >= data) & (self._is_vector[is_scoped] | (vectors < data))
        for row in np.flatnonzero(~is_scoped).tolist():
            needed[row] = self._lowest.get(self._keys[row], _NOWHERE) <= self._numbers[row]
        return needed


def _joined(parts: Sequence[planning.Numbers | ex.Mask], kind: type) -> planning.Numbers:
    return np.concatenate([np.empty(0, kind), *parts])


def _keys(part: mf.ManifestColumns) -> tuple[list[planning.PartitionKey], planning.Numbers]:
    groups = planning.group_partitions(part)
    return groups.keys(), groups.of
