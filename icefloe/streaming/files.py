"""The data files of snapshots in the order of their positions, as the Java library counts them: by manifests, then by entries."""

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow.compute as pc

from icefloe.expressions import Mask
from icefloe.manifests import EntryStatus, ManifestCache, ManifestColumns, ManifestContent, ManifestFile, Wanted, wanted
from icefloe.metadata import Snapshot, TableMetadata, summary as totals
from icefloe.planning import FileScanTask, ManifestSource, Plan, TableScan, plan_entries
from icefloe.storage import Storage, identity
from icefloe.streaming.steps import FileTotals, Part

_SIZES = wanted("file_path", "record_count", "file_size_in_bytes")


@dataclass(frozen=True)
class TableFiles:
    """The files of a table's snapshots: `SnapshotFiles` by its manifests."""

    metadata: TableMetadata
    storage: Storage
    cache: ManifestCache | None = field(default=None, compare=False, repr=False)

    def totals(self, snapshot: Snapshot, is_full_load: bool) -> FileTotals:
        """By the summary, or by reading manifests where it says nothing."""
        keys = (totals.TOTAL_DATA_FILES, totals.TOTAL_RECORDS, totals.TOTAL_FILES_SIZE)
        if not is_full_load:
            keys = (totals.ADDED_DATA_FILES, totals.ADDED_RECORDS, totals.ADDED_FILES_SIZE)
        known = {} if snapshot.summary is None else snapshot.summary.properties
        # The size of files counts delete files, too, which only ends a batch earlier.
        if all(known.get(key, "").isdigit() for key in keys):
            return FileTotals(*(int(known[key]) for key in keys))
        sizes = self.sizes(snapshot, is_full_load)
        return FileTotals(len(sizes), sum(rows for rows, _ in sizes), sum(size for _, size in sizes))

    def sizes(self, snapshot: Snapshot, is_full_load: bool) -> Sequence[tuple[int, int]]:
        """Rows and bytes of each file, by reading the manifests."""
        part = Part(snapshot, is_full_load=is_full_load)
        sizes: list[tuple[int, int]] = []
        for chosen in self.entries(part, _SIZES):
            rows, lengths = (chosen.column(name).to_pylist() for name in ("record_count", "file_size_in_bytes"))
            sizes += zip(rows, lengths, strict=True)
        return sizes

    def entries(self, part: Part, columns: Wanted) -> Iterator[ManifestColumns]:
        """The entries of a part's files, whether the part has all of them or not, manifest by manifest."""
        source = self._source(part.snapshot)
        for manifest in self.manifests(part):
            entries = source.read(manifest, columns)
            yield entries.filter(_of_part(entries, part))

    def manifests(self, part: Part) -> list[ManifestFile]:
        """The data manifests that hold a part's files, in the order of positions."""
        listed = self._source(part.snapshot).manifests(part.snapshot)
        return [
            manifest
            for manifest in listed
            if manifest.content is ManifestContent.DATA
            and (part.is_full_load or manifest.added_snapshot_id == part.snapshot.snapshot_id)
        ]

    def delete_manifests(self, part: Part) -> list[ManifestFile]:
        """The delete manifests that matter to a full load; deletes of later commits do not matter to what is added."""
        listed = self._source(part.snapshot).manifests(part.snapshot) if part.is_full_load else ()
        return [manifest for manifest in listed if manifest.content is ManifestContent.DELETES]

    def _source(self, snapshot: Snapshot) -> ManifestSource:
        return ManifestSource(self.metadata, self.storage, snapshot.snapshot_id, self.metadata.schema(), self.cache)


@dataclass(frozen=True)
class PartsPlanner:
    """Plans the files of a micro-batch, in the place of those of a snapshot: a `Planner` of `TableScan`."""

    files: TableFiles
    parts: Iterable[Part]
    """Looked up when files are planned, not before."""

    def plan_files(self, scan: TableScan) -> Generator[FileScanTask, None, None]:
        """A task for each file that may hold a row which the scan wants."""
        for part in self.parts:
            yield from _Chosen(self.files, part).plan(scan).tasks()


@dataclass(frozen=True)
class _Chosen:
    """The files of one part."""

    files: TableFiles
    part: Part

    def plan(self, scan: TableScan) -> Plan:
        """The plan of a scan over these files alone."""
        manifests = [*self.files.manifests(self.part), *self.files.delete_manifests(self.part)]
        return plan_entries(scan, self.part.snapshot, manifests, self._mask, with_deletes=self.part.is_full_load)

    def _mask(self, columns: ManifestColumns) -> Mask:
        chosen = _of_part(columns, self.part)
        if self.part.is_whole:
            return chosen
        positions = self._before[identity(columns.location)] + np.cumsum(chosen) - 1
        last = self.part.last
        within = positions >= self.part.first
        return np.asarray(chosen & (within if last is None else within & (positions < last)))

    @cached_property
    def _before(self) -> Mapping[str, int]:
        """How many files there are before each manifest."""
        return dict(self._counted())

    def _counted(self) -> Iterator[tuple[str, int]]:
        count = 0
        for chosen in self.files.entries(self.part, _SIZES):
            yield identity(chosen.location), count
            count += len(chosen)


def _of_part(columns: ManifestColumns, part: Part) -> Mask:
    """Which entries of a manifest have a position: what the snapshot added, or all that is live."""
    if part.is_full_load:
        return np.asarray(columns.is_live.to_numpy(zero_copy_only=False))
    is_added = pc.equal(columns.column("status"), int(EntryStatus.ADDED))
    is_own = pc.equal(columns.column("snapshot_id"), part.snapshot.snapshot_id)
    return np.asarray(pc.fill_null(pc.and_(is_added, is_own), False).to_numpy(zero_copy_only=False))
