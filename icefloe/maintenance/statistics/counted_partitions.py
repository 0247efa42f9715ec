"""Counts per partition, from the entries of manifests: of a whole snapshot, or of what changed since an earlier one.

A partition is a spec id and values by the field ids of all specs, so that it is the same one whatever the specs became.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.inspect import (
    NEVER,
    PartitionTotals,
    join_totals,
    merge_totals,
    partition_column,
    partition_rows,
    partition_statistics as stats,
)
from icefloe.manifests import (
    EntryStatus,
    FileContent,
    ManifestColumns,
    ManifestContent,
    ManifestFile,
    SnapshotManifests,
    wanted,
)
from icefloe.metadata import Snapshot, TableMetadata
from icefloe.parallel import in_order
from icefloe.planning import ManifestSource, Numbers, default_workers
from icefloe.schema import StructType, type_to_arrow
from icefloe.storage import Storage

_WANTED = wanted("content", "file_path", "file_format", "file_size_in_bytes")
_MOST_PARTS = 64
"""How many manifests' counts are held before they are merged."""
_NO_NUMBERS = np.empty(0, np.int64)
_VECTOR = "vector"
_SUMS: tuple[tuple[str, FileContent | str, str | None], ...] = (
    (stats.DATA_RECORDS, FileContent.DATA, "record_count"),
    (stats.DATA_FILES, FileContent.DATA, None),
    (stats.DATA_BYTES, FileContent.DATA, "file_size_in_bytes"),
    (stats.POSITION_DELETE_RECORDS, FileContent.POSITION_DELETES, "record_count"),
    (stats.POSITION_DELETE_RECORDS, _VECTOR, "record_count"),
    (stats.POSITION_DELETE_FILES, FileContent.POSITION_DELETES, None),
    (stats.VECTORS, _VECTOR, None),
    (stats.EQUALITY_DELETE_RECORDS, FileContent.EQUALITY_DELETES, "record_count"),
    (stats.EQUALITY_DELETE_FILES, FileContent.EQUALITY_DELETES, None),
)
"""Each count, the files that it is of, and what is summed of them; None counts them."""


@dataclass(frozen=True)
class PartitionCounter:
    """Counts the entries of manifests of a table."""

    metadata: TableMetadata
    storage: Storage
    struct: StructType

    def of_snapshot(self, snapshot: Snapshot) -> PartitionTotals:
        """What the live files of a snapshot add up to."""
        source = self._source(snapshot)
        count = _CountEntries(source, self.struct, self._times(), changes_only=False)
        return self.folded(in_order(count, source.manifests(snapshot), default_workers()))

    def of_changes(self, snapshots: Iterable[Snapshot]) -> Iterator[PartitionTotals]:
        """What was added less what was removed, for each manifest that one of these snapshots wrote."""
        times = self._times()
        for snapshot in snapshots:
            source = self._source(snapshot)
            own = [each for each in source.manifests(snapshot) if each.added_snapshot_id == snapshot.snapshot_id]
            yield from in_order(_CountEntries(source, self.struct, times, changes_only=True), own, default_workers())

    def folded(self, parts: Iterable[PartitionTotals]) -> PartitionTotals:
        """The sum of all parts, with a row for each partition."""
        nothing = pa.array([], type_to_arrow(self.struct, ids=False))
        rows = partition_rows(nothing, self.struct, _NO_NUMBERS)
        waiting = [PartitionTotals(rows, dict.fromkeys(stats.COUNTS, _NO_NUMBERS), *[_NO_NUMBERS] * 3)]
        for part in parts:
            waiting.append(part)
            if len(waiting) == _MOST_PARTS:
                waiting = [merge_totals(join_totals(waiting))]
        return merge_totals(join_totals(waiting))

    def totals_by_spec(self, snapshot: Snapshot) -> dict[int, list[int]]:
        """Rows and files of data, rows and files of deletes, by spec, as the manifest list alone says."""
        totals: dict[int, Numbers] = defaultdict(lambda: np.zeros(4, np.int64))
        source = SnapshotManifests(self.metadata, self.storage.read, self.storage.limits)
        for manifest in source.counted(snapshot):
            files = (manifest.added_files_count or 0) + (manifest.existing_files_count or 0)
            rows = (manifest.added_rows_count or 0) + (manifest.existing_rows_count or 0)
            is_data = manifest.content is ManifestContent.DATA
            counts = np.array((rows, files, 0, 0) if is_data else (0, 0, rows, files), np.int64)
            totals[manifest.partition_spec_id] += counts
        return {spec_id: counts.tolist() for spec_id, counts in totals.items() if counts.any()}

    def _source(self, snapshot: Snapshot) -> ManifestSource:
        return ManifestSource(self.metadata, self.storage, snapshot.snapshot_id, self.metadata.schema())

    def _times(self) -> dict[int, int]:
        return {snapshot.snapshot_id: snapshot.timestamp_ms for snapshot in self.metadata.snapshots}


@dataclass(frozen=True)
class _CountEntries:
    """The counts of one manifest; runs in threads."""

    source: ManifestSource
    struct: StructType
    commit_times: Mapping[int, int]
    changes_only: bool

    def __call__(self, manifest: ManifestFile) -> PartitionTotals:
        entries = self.source.read(manifest, _WANTED)
        if self.changes_only:
            entries = entries.filter(pc.not_equal(entries.column("status"), int(EntryStatus.EXISTING)))
        is_deleted = _numpy(entries.column("status")) == int(EntryStatus.DELETED)
        sign = np.where(is_deleted, -1 if self.changes_only else 0, 1)
        spec_ids = np.full(len(entries), manifest.partition_spec_id, np.int64)
        partition = partition_column(entries, self.struct)
        rows = partition_rows(partition, self.struct, spec_ids)
        ids = _numpy(entries.column("snapshot_id"))
        return merge_totals(PartitionTotals(rows, _sums(entries, sign), self._times(ids), ids, spec_ids))

    def _times(self, snapshot_ids: Numbers) -> Numbers:
        distinct, indices = np.unique(snapshot_ids, return_inverse=True)
        times = [self.commit_times.get(snapshot_id, NEVER) for snapshot_id in distinct.tolist()]
        return np.array(times, np.int64)[indices]


def _sums(entries: ManifestColumns, sign: Numbers) -> dict[str, Numbers]:
    content = _numpy(entries.column("content"))
    is_vector = _numpy(pc.equal(pc.utf8_lower(entries.column("file_format")), "puffin"))
    is_vector &= content == int(FileContent.POSITION_DELETES)
    sums = {name: np.zeros(len(entries), np.int64) for name in stats.COUNTS}
    for name, counted, column in _SUMS:
        is_counted = is_vector if isinstance(counted, str) else (content == int(counted)) & ~is_vector
        amounts = np.int64(1) if column is None else _numpy(entries.column(column))
        sums[name] += np.where(is_counted, amounts, 0) * sign
    return sums


def totals_of_rows(rows: pa.Table, struct: StructType) -> PartitionTotals:
    """The rows of a partition statistics file as totals."""
    spec_ids = _numpy(rows.column(stats.SPEC_ID)).astype(np.int64)
    partition = rows.column(stats.PARTITION_COLUMN).combine_chunks()
    at, by = (pc.fill_null(rows.column(name), NEVER) for name in (stats.UPDATED_AT, stats.UPDATED_BY))
    sums = {name: _numpy(rows.column(name)).astype(np.int64) for name in stats.COUNTS}
    return PartitionTotals(partition_rows(partition, struct, spec_ids), sums, _numpy(at), _numpy(by), spec_ids)


def _numpy(column: pa.Array | pa.ChunkedArray) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    values: np.ndarray[tuple[int], np.dtype[np.int64]] = array.to_numpy(zero_copy_only=False)
    return values
