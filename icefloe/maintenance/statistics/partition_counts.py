"""What the files of each partition sum up to: counted in columns, manifest by manifest, and put together by partition."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.commit import vector_mask
from icefloe.maintenance.rewrite.file_sizes import FileSizes
from icefloe.manifests import FileContent, ManifestColumns
from icefloe.metadata import Operation, TableMetadata
from icefloe.planning import Numbers, PartitionKey, group_partitions
from icefloe.schema import IcebergType, Value

NEVER = -1
COUNTERS = (
    "data_files",
    "data_bytes",
    "records",
    "small_files",
    "small_bytes",
    "large_files",
    "position_delete_files",
    "position_deletes",
    "deletion_vectors",
    "vector_deletes",
    "equality_delete_files",
    "equality_deletes",
    "delete_bytes",
)
"""What is added up for each partition."""
TIMES = ("changed_ms", "maintained_ms")
"""When files came last, by writers and by maintenance; -1 if no snapshot says so."""


@dataclass(frozen=True, slots=True)
class CommitTimes:
    """When snapshots were made: those that change rows, and those that only rewrite."""

    changed: Mapping[int, int]
    maintained: Mapping[int, int]

    @staticmethod
    def of(metadata: TableMetadata) -> "CommitTimes":
        """The times of a table's snapshots."""
        changed: dict[int, int] = {}
        maintained: dict[int, int] = {}
        for snapshot in metadata.snapshots:
            side = maintained if snapshot.operation == Operation.REPLACE else changed
            side[snapshot.snapshot_id] = snapshot.timestamp_ms
        return CommitTimes(changed, maintained)


@dataclass(slots=True, eq=False)
class PartitionCounts:
    """Sums by spec and partition, which grow with each manifest."""

    sizes: FileSizes
    times: CommitTimes
    sort_field: tuple[int, IcebergType] | None = None
    """The column whose ranges are compared, if the table has an order."""
    tuples: list[tuple[int, tuple[Value, ...]]] = field(default_factory=list)
    """The spec and the values of each partition."""
    _numbers: dict[PartitionKey, int] = field(default_factory=dict)
    _sums: dict[str, Numbers] = field(default_factory=dict)
    _ranges: list[tuple[Numbers, pa.Array, pa.Array]] = field(default_factory=list)

    def add(self, files: ManifestColumns) -> None:
        """The live files of a manifest."""
        groups = group_partitions(files)
        numbers = np.array(
            [self._number(key, files.spec_id, at) for key, at in zip(groups.keys(), groups.tuples, strict=True)]
        )
        of = numbers[groups.of] if len(files) else np.empty(0, np.int64)
        for name, amounts in _amounts(files, self.sizes):
            np.add.at(self._column(name, 0), of, amounts)
        for name, times in zip(TIMES, (self.times.changed, self.times.maintained), strict=True):
            np.maximum.at(self._column(name, NEVER), of, _times(files, times))
        self._add_ranges(files, of)

    def column(self, name: str) -> Numbers:
        """One counter for all partitions."""
        return self._column(name, NEVER if name in TIMES else 0)[: len(self.tuples)]

    def _number(self, key: PartitionKey, spec_id: int, values: tuple[Value, ...]) -> int:
        number = self._numbers.setdefault(key, len(self.tuples))
        if number == len(self.tuples):
            self.tuples.append((spec_id, values))
        return number

    def _column(self, name: str, start: int) -> Numbers:
        """The sums of one name, with room for all partitions."""
        column = self._sums.get(name, np.empty(0, np.int64))
        if len(column) < len(self.tuples):
            more = np.full(max(len(self.tuples), 2 * len(column)) - len(column), start, np.int64)
            column = self._sums[name] = np.concatenate([column, more])
        return column

    # -- overlap of ranges

    def _add_ranges(self, files: ManifestColumns, of: Numbers) -> None:
        if self.sort_field is None:
            return
        lower, upper = (side(*self.sort_field) for side in (files.lower_bounds, files.upper_bounds))
        if lower is None or upper is None or not len(files):
            return
        is_data = pc.equal(files.column("content"), int(FileContent.DATA))
        known = pc.and_(is_data, pc.and_(lower.is_valid(), upper.is_valid()))
        chosen = pc.indices_nonzero(known)
        self._ranges.append((of[chosen.to_numpy()], lower.take(chosen), upper.take(chosen)))

    def overlap_depths(self) -> npt.NDArray[np.float64]:
        """With how many files' ranges that of a file overlaps on average, itself among them; NaN where not known."""
        depths = np.full(len(self.tuples), np.nan)
        if not self._ranges:
            return depths
        of = np.concatenate([part[0] for part in self._ranges])
        lower = pa.concat_arrays([part[1] for part in self._ranges])
        upper = pa.concat_arrays([part[2] for part in self._ranges])
        ranks = np.asarray(pc.rank(pa.concat_arrays([lower, upper]), tiebreaker="dense").to_numpy(), np.int64)
        low, high = ranks[: len(of)], ranks[len(of) :]
        order = np.argsort(of, kind="stable")
        bounds = np.flatnonzero(np.diff(of[order])) + 1
        for members in np.split(order, bounds):
            if len(members):
                depths[of[members[0]]] = overlap_depth(low[members], high[members])
        return depths


def overlap_depth(low: Numbers, high: Numbers) -> float:
    """With how many ranges each one overlaps on average, itself among them."""
    begun = np.searchsorted(np.sort(low), high, side="right")
    ended = np.searchsorted(np.sort(high), low, side="left")
    return float((begun - ended).mean())


def _amounts(files: ManifestColumns, sizes: FileSizes) -> Iterator[tuple[str, Numbers]]:
    content = files.column("content").to_numpy(zero_copy_only=False)
    size = files.column("file_size_in_bytes").to_numpy(zero_copy_only=False).astype(np.int64)
    rows = files.column("record_count").to_numpy(zero_copy_only=False).astype(np.int64)
    is_vector = vector_mask(files)
    own = pc.if_else(is_vector, files.column("content_size_in_bytes"), files.column("file_size_in_bytes"))
    stored = pc.fill_null(own, 0).to_numpy(zero_copy_only=False).astype(np.int64)
    vector = pc.fill_null(is_vector, False).to_numpy(zero_copy_only=False)
    data, positions, equality = (content == int(each) for each in FileContent)
    small, large = data & (size < sizes.minimum), data & (size > sizes.maximum)
    files_of_positions = positions & ~vector
    one = np.ones(len(files), np.int64)
    masks = (
        ("data_files", data, one),
        ("data_bytes", data, size),
        ("records", data, rows),
        ("small_files", small, one),
        ("small_bytes", small, size),
        ("large_files", large, one),
        ("position_delete_files", files_of_positions, one),
        ("position_deletes", files_of_positions, rows),
        ("deletion_vectors", vector, one),
        ("vector_deletes", vector, rows),
        ("equality_delete_files", equality, one),
        ("equality_deletes", equality, rows),
        ("delete_bytes", ~data, stored),
    )
    for name, mask, amounts in masks:
        yield name, np.where(mask, amounts, 0)


def _times(files: ManifestColumns, times: Mapping[int, int]) -> Numbers:
    """When each file came, as far as a snapshot of that kind says so."""
    ids, indices = np.unique(files.column("snapshot_id").to_numpy(zero_copy_only=False), return_inverse=True)
    known = np.array([times.get(snapshot_id, NEVER) for snapshot_id in ids.tolist()], np.int64)
    return known[indices] if len(ids) else np.empty(0, np.int64)
