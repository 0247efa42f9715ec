"""What an operation sees of the table that it changes: the manifests of the snapshot it builds on, and their entries."""

from dataclasses import dataclass

from icefloe.commit.change import Workbench
from icefloe.manifests import EVERYTHING, ManifestColumns, ManifestContent, ManifestFile, SnapshotManifests, Wanted
from icefloe.metadata import Snapshot, TableMetadata


@dataclass(frozen=True, slots=True)
class Parent:
    """A table's metadata, the snapshot that a commit builds on, and the id that the new snapshot will have."""

    metadata: TableMetadata
    snapshot: Snapshot | None
    snapshot_id: int
    bench: Workbench

    def manifests(self, content: ManifestContent | None = None) -> tuple[ManifestFile, ...]:
        """The manifests of the parent that hold live files, of one kind or all."""
        return tuple(
            manifest
            for manifest in self.manifests_of(self.snapshot)
            if manifest.has_live_files and content in (None, manifest.content)
        )

    def manifests_of(self, snapshot: Snapshot | None) -> tuple[ManifestFile, ...]:
        """All manifests of a snapshot of the table."""
        return () if snapshot is None else manifests_of(snapshot, self.metadata, self.bench)

    def read(self, manifest: ManifestFile, wanted: Wanted = EVERYTHING) -> ManifestColumns:
        """The entries of a manifest, deleted ones among them, with all that they inherit."""
        is_own = manifest.added_snapshot_id == self.snapshot_id
        return read_entries(manifest, self.metadata, self.bench, wanted, committed=not is_own)


def manifests_of(snapshot: Snapshot, metadata: TableMetadata, bench: Workbench) -> tuple[ManifestFile, ...]:
    """The manifests of a snapshot with all their counts; read once, since lists never change."""
    return _manifests(metadata, bench).counted(snapshot)


def read_entries(
    manifest: ManifestFile,
    metadata: TableMetadata,
    bench: Workbench,
    wanted: Wanted = EVERYTHING,
    *,
    committed: bool = True,
) -> ManifestColumns:
    """The entries of a manifest; those that were decoded without metrics are kept for the next time.

    `committed` is off for manifests of the commit itself, whose entries still wait for their numbers.
    """
    partition_type = metadata.partition_type(manifest.partition_spec_id)
    keep = not wanted.metrics
    return _manifests(metadata, bench).entries(manifest, wanted, partition_type, committed=committed, keep=keep)


def _manifests(metadata: TableMetadata, bench: Workbench) -> SnapshotManifests:
    return SnapshotManifests(metadata, bench.read, bench.storage.limits, bench.caches.manifests)
