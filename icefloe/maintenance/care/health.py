"""Health of a table, from its metadata and manifests alone: files and deletes by partition, manifests, snapshots, logs."""

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from icefloe import properties as props
from icefloe.commit import Caches, ManifestChoice, Parent, Workbench, groups_to_rewrite, now_ms
from icefloe.errors import IcefloeError
from icefloe.maintenance.branches import branch_head
from icefloe.maintenance.deletes.dangling import RemovedDeletes, dangling_deletes
from icefloe.maintenance.maintained_table import MaintainedTable
from icefloe.maintenance.rewrite.file_sizes import FileSizes
from icefloe.maintenance.statistics.partition_counts import (
    COUNTERS,
    NEVER,
    TIMES,
    CommitTimes,
    PartitionCounts,
    count_partitions,
    range_field,
)
from icefloe.manifests import ManifestContent, ManifestFile
from icefloe.metadata import TableMetadata
from icefloe.partitioning import partition_path
from icefloe.progress import Listener, listener_or_bar
from icefloe.schema import types

_SHOWN = 10


@dataclass(frozen=True, slots=True)
class PartitionHealth:
    """Totals of the files of one partition."""

    spec_id: int
    partition: str
    """The partition as a path, such as `region=eu`; empty in an unpartitioned spec."""
    data_files: int = 0
    data_bytes: int = 0
    records: int = 0
    small_files: int = 0
    """Data files below the minimum size that compaction keeps."""
    small_bytes: int = 0
    large_files: int = 0
    position_delete_files: int = 0
    position_deletes: int = 0
    deletion_vectors: int = 0
    vector_deletes: int = 0
    equality_delete_files: int = 0
    equality_deletes: int = 0
    delete_bytes: int = 0
    changed_ms: int | None = None
    """When a writer last added a file that is still live."""
    maintained_ms: int | None = None
    """When maintenance last added a file that is still live."""
    overlap_depth: float | None = None
    """Average number of files that overlap with a file, itself included, by the first column of the sort order."""


@dataclass(frozen=True, slots=True)
class ManifestHealth:
    """Manifests of one content type."""

    count: int = 0
    bytes: int = 0
    entries: int = 0
    reasons: tuple[str, ...] = ()
    """Why `rewrite_manifests` would rewrite some of them; empty if it would not."""


@dataclass(frozen=True)
class TableHealth:
    """Health of a branch and of its table."""

    snapshot_id: int | None
    format_version: int
    now_ms: int
    sizes: FileSizes
    partitions: tuple[PartitionHealth, ...] = field(repr=False)
    data_manifests: ManifestHealth
    delete_manifests: ManifestHealth
    dangling: RemovedDeletes
    """Dangling delete files, by content."""
    snapshots: int
    oldest_snapshot_ms: int | None
    refs: int
    metadata_log: int
    """Previous metadata files in the metadata log."""
    statistics_files: int
    partition_statistics_files: int
    manifest_target: int
    """Target size of manifests."""
    has_statistics: bool
    """Whether the current snapshot has table statistics."""

    def total(self, counter: str) -> int:
        """Return the sum of a counter, such as `small_files`, over all partitions."""
        return sum(getattr(each, counter) for each in self.partitions)

    def to_arrow(self) -> pa.Table:
        """Return one row per partition."""
        rows = {name: [getattr(each, name) for each in self.partitions] for name in HEALTH_SCHEMA.names}
        return pa.table(rows, HEALTH_SCHEMA)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        total = self.total
        if self.snapshot_id is None:
            yield "the table is empty"
        yield (
            f"{total('data_files')} data files, {_size(total('data_bytes'))}, {total('records')} rows in "
            f"{len(self.partitions)} partitions; {total('small_files')} small and {total('large_files')} large files"
        )
        yield (
            f"deletes: {total('deletion_vectors')} vectors of {total('vector_deletes')} rows, "
            f"{total('position_delete_files')} position delete files, {total('equality_delete_files')} equality delete files; "
            f"{self.dangling.removed_delete_files_count} dangling"
        )
        for name, side in (("data", self.data_manifests), ("deletes", self.delete_manifests)):
            why = "; ".join(side.reasons) or "good"
            yield f"manifests of {name}: {side.count} of {_size(side.bytes)} with {side.entries} entries: {why}"
        yield (
            f"{self.snapshots} snapshots{_since(self.oldest_snapshot_ms)}, {self.refs} branches and tags, "
            f"{self.metadata_log} previous metadata files, {self.statistics_files} statistics files"
        )
        worst = sorted(self.partitions, key=lambda each: each.small_files, reverse=True)
        for each in worst[:_SHOWN] if len(worst) > 1 else ():
            yield _line(each)
        if len(worst) > _SHOWN:
            yield f"  ... and {len(worst) - _SHOWN} more partitions"


HEALTH_SCHEMA = pa.schema(
    [
        pa.field("spec_id", pa.int32()),
        pa.field("partition", pa.string()),
        *(pa.field(name, pa.int64()) for name in COUNTERS),
        *(pa.field(name, pa.int64()) for name in TIMES),
        pa.field("overlap_depth", pa.float64()),
    ]
)
"""The columns of `TableHealth.to_arrow`."""


def health(table: MaintainedTable, branch: str | None = None, progress: Listener | None = None) -> TableHealth:
    """Return the health of the latest state of a branch, reading only manifests."""
    metadata = table.refresh().metadata
    head = branch_head(metadata, branch)
    parent = Parent(metadata, Workbench(table.storage, Caches(), now_ms), head)
    manifests = {content: parent.manifests(content) for content in ManifestContent}
    sizes = FileSizes.of({}, props.WRITE_TARGET_FILE_SIZE_BYTES.of(metadata.properties))
    order = metadata.sort_orders_by_id.get(metadata.default_sort_order_id)
    field_of_order = None if order is None else range_field(order, metadata.schema())
    counts = PartitionCounts(sizes, CommitTimes.of(metadata), field_of_order)
    everything = [each for group in manifests.values() for each in group]
    count_partitions(parent, everything, counts, listener_or_bar(progress))
    has_deletes = bool(manifests[ManifestContent.DELETES])
    statistics = {file.snapshot_id for file in metadata.statistics}
    return TableHealth(
        snapshot_id=None if head is None else head.snapshot_id,
        format_version=metadata.format_version,
        now_ms=now_ms(),
        sizes=sizes,
        partitions=tuple(_partitions(counts, metadata)),
        data_manifests=_manifest_health(metadata, manifests[ManifestContent.DATA]),
        delete_manifests=_manifest_health(metadata, manifests[ManifestContent.DELETES]),
        dangling=RemovedDeletes.of(dangling_deletes(parent)) if has_deletes else RemovedDeletes(),
        snapshots=len(metadata.snapshots),
        oldest_snapshot_ms=min((each.timestamp_ms for each in metadata.snapshots), default=None),
        refs=len(metadata.refs),
        metadata_log=len(metadata.metadata_log),
        statistics_files=len(metadata.statistics),
        partition_statistics_files=len(metadata.partition_statistics),
        manifest_target=props.MANIFEST_TARGET_SIZE_BYTES.of(metadata.properties),
        has_statistics=head is not None and head.snapshot_id in statistics,
    )


def _partitions(counts: PartitionCounts, metadata: TableMetadata) -> Iterator[PartitionHealth]:
    sums = [counts.column(name).tolist() for name in COUNTERS]
    times = [[None if time == NEVER else time for time in counts.column(name).tolist()] for name in TIMES]
    depths = [None if np.isnan(depth) else depth for depth in counts.overlap_depths().tolist()]
    for (spec_id, values), *rest in zip(counts.tuples, *sums, *times, depths, strict=True):
        yield PartitionHealth(spec_id, _path(metadata, spec_id, values), *rest)


def _path(metadata: TableMetadata, spec_id: int, values: tuple[types.Value, ...]) -> str:
    try:
        return partition_path(metadata.spec(spec_id), values, metadata.schema())
    except IcefloeError:
        # The column may have been dropped.
        return ", ".join(map(str, values))


def _manifest_health(metadata: TableMetadata, manifests: tuple[ManifestFile, ...]) -> ManifestHealth:
    groups = groups_to_rewrite(metadata, manifests, ManifestChoice())
    entries = sum((each.added_files_count or 0) + (each.existing_files_count or 0) for each in manifests)
    size = sum(each.manifest_length for each in manifests)
    return ManifestHealth(
        len(manifests), size, entries, tuple(f"spec {group.spec_id}: {group.reason}" for group in groups)
    )


def _size(count: float) -> str:
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if count < 1024 or unit == "TiB":
            break
        count /= 1024
    return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"


def _since(moment: int | None) -> str:
    return "" if moment is None else f" since {dt.datetime.fromtimestamp(moment / 1000, dt.UTC):%Y-%m-%d %H:%M}"


def _line(each: PartitionHealth) -> str:
    depth = "" if each.overlap_depth is None else f", overlap {each.overlap_depth:.1f}"
    return (
        f"  {each.partition or 'unpartitioned'} (spec {each.spec_id}): {each.data_files} files, {_size(each.data_bytes)}, "
        f"{each.small_files} small{depth}"
    )
