"""What the files of each partition sum up to: counted in columns, manifest by manifest, and put together by partition."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe import (
    commit as cm,
    expressions as ex,
    manifests as mf,
    metadata as md,
    parallel,
    partitioning as pt,
    planning,
)
from icefloe.maintenance.rewrite.file_sizes import FileSizes
from icefloe.progress import Listener, Stage
from icefloe.schema import IcebergType, Schema, Value, types

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
_COLUMNS = ("content", "file_format", "file_size_in_bytes", "content_size_in_bytes", "record_count")


@dataclass(frozen=True, slots=True)
class CommitTimes:
    """When snapshots were made: those that change rows, and those that only rewrite."""

    changed: Mapping[int, int]
    maintained: Mapping[int, int]

    @staticmethod
    def of(metadata: md.TableMetadata) -> "CommitTimes":
        """The times of a table's snapshots."""
        changed: dict[int, int] = {}
        maintained: dict[int, int] = {}
        for snapshot in metadata.snapshots:
            side = maintained if snapshot.operation == md.Operation.REPLACE else changed
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
    _numbers: dict[planning.PartitionKey, int] = field(default_factory=dict)
    _sums: dict[str, planning.Numbers] = field(default_factory=dict)
    _ranges: list[tuple[planning.Numbers, pa.Array, pa.Array]] = field(default_factory=list)

    def add(self, files: mf.ManifestColumns) -> None:
        """The live files of a manifest."""
        groups = planning.group_partitions(files)
        numbers = np.array(
            [self._number(key, files.spec_id, at) for key, at in zip(groups.keys(), groups.tuples, strict=True)]
        )
        of = numbers[groups.of] if len(files) else np.empty(0, np.int64)
        for name, amounts in _amounts(files, self.sizes):
            np.add.at(self._column(name, 0), of, amounts)
        for name, times in zip(TIMES, (self.times.changed, self.times.maintained), strict=True):
            np.maximum.at(self._column(name, NEVER), of, _times(files, times))
        self._add_ranges(files, of)

    def column(self, name: str) -> planning.Numbers:
        """One counter for all partitions."""
        return self._column(name, NEVER if name in TIMES else 0)[: len(self.tuples)]

    def keys_where(self, chosen: ex.Mask) -> frozenset[planning.PartitionKey]:
        """The partitions that are chosen, in the order of `tuples`."""
        return frozenset(key for key, number in self._numbers.items() if chosen[number])

    def _number(self, key: planning.PartitionKey, spec_id: int, values: tuple[Value, ...]) -> int:
        number = self._numbers.setdefault(key, len(self.tuples))
        if number == len(self.tuples):
            self.tuples.append((spec_id, values))
        return number

    def _column(self, name: str, start: int) -> planning.Numbers:
        """The sums of one name, with room for all partitions."""
        column = self._sums.get(name, np.empty(0, np.int64))
        if len(column) < len(self.tuples):
            more = np.full(max(len(self.tuples), 2 * len(column)) - len(column), start, np.int64)
            column = self._sums[name] = np.concatenate([column, more])
        return column

    # -- overlap of ranges

    def _add_ranges(self, files: mf.ManifestColumns, of: planning.Numbers) -> None:
        if self.sort_field is None:
            return
        lower, upper = (side(*self.sort_field) for side in (files.lower_bounds, files.upper_bounds))
        if lower is None or upper is None or not len(files):
            return
        is_data = pc.equal(files.column("content"), int(mf.FileContent.DATA))
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


def overlap_depth(low: planning.Numbers, high: planning.Numbers) -> float:
    """With how many ranges each one overlaps on average, itself among them."""
    begun = np.searchsorted(np.sort(low), high, side="right")
    ended = np.searchsorted(np.sort(high), low, side="left")
    return float((begun - ended).mean())


def _amounts(files: mf.ManifestColumns, sizes: FileSizes) -> Iterator[tuple[str, planning.Numbers]]:
    content = files.column("content").to_numpy(zero_copy_only=False)
    size = files.column("file_size_in_bytes").to_numpy(zero_copy_only=False).astype(np.int64)
    rows = files.column("record_count").to_numpy(zero_copy_only=False).astype(np.int64)
    is_vector = cm.vector_mask(files)
    own = pc.if_else(is_vector, files.column("content_size_in_bytes"), files.column("file_size_in_bytes"))
    stored = pc.fill_null(own, 0).to_numpy(zero_copy_only=False).astype(np.int64)
    vector = pc.fill_null(is_vector, False).to_numpy(zero_copy_only=False)
    data, positions, equality = (content == int(each) for each in mf.FileContent)
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


def _times(files: mf.ManifestColumns, times: Mapping[int, int]) -> planning.Numbers:
    """When each file came, as far as a snapshot of that kind says so."""
    ids, indices = np.unique(files.column("snapshot_id").to_numpy(zero_copy_only=False), return_inverse=True)
    known = np.array([times.get(snapshot_id, NEVER) for snapshot_id in ids.tolist()], np.int64)
    return known[indices] if len(ids) else np.empty(0, np.int64)


def range_field(order: pt.SortOrder, schema: Schema) -> tuple[int, IcebergType] | None:
    """The first column of an order, if bounds of files tell how it is kept."""
    if not order.fields or not order.fields[0].transform.preserves_order:
        return None
    column = schema.fields_by_id.get(order.fields[0].source_ids[0])
    is_ordered = column is not None and not isinstance(column.field_type, types.UUIDType | types.FixedType)
    return (column.field_id, column.field_type) if column is not None and is_ordered else None


def count_partitions(
    parent: cm.Parent, manifests: Sequence[mf.ManifestFile], counts: PartitionCounts, listener: Listener
) -> None:
    """Count the live files of manifests, which are read by several threads."""
    ids = () if counts.sort_field is None else (counts.sort_field[0],)
    chosen = mf.wanted(*_COLUMNS, field_ids=ids, metrics=(mf.Metric.LOWER_BOUNDS, mf.Metric.UPPER_BOUNDS))
    stage = Stage("manifests", len(manifests), listener)

    def read(manifest: mf.ManifestFile) -> mf.ManifestColumns:
        columns = parent.read(manifest, chosen)
        return columns.filter(columns.is_live)

    for columns in parallel.in_order(read, manifests, planning.default_workers(), "icefloe-health"):
        counts.add(columns)
        stage.step()
