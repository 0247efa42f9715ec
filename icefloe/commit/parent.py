"""What an operation sees of the table that it changes: the manifests of the snapshot it builds on, and their entries."""

from dataclasses import dataclass

from icefloe import manifests as mf, metadata as md
from icefloe.commit.change import Workbench

_NO_SNAPSHOT = -(1 << 63)
"""An id that no snapshot has."""


@dataclass(frozen=True, slots=True)
class Parent:
    """A table's metadata, the snapshot that a commit builds on, and the id that the new snapshot will have, if any."""

    metadata: md.TableMetadata
    bench: Workbench
    snapshot: md.Snapshot | None = None
    snapshot_id: int = _NO_SNAPSHOT

    def manifests(self, content: mf.ManifestContent | None = None) -> tuple[mf.ManifestFile, ...]:
        """The manifests of the parent that hold live files, of one kind or all."""
        return tuple(
            manifest
            for manifest in self.manifests_of(self.snapshot)
            if manifest.has_live_files and content in (None, manifest.content)
        )

    def manifests_of(self, snapshot: md.Snapshot | None) -> tuple[mf.ManifestFile, ...]:
        """All manifests of a snapshot of the table, with their counts; read once, since lists never change."""
        return () if snapshot is None else self._source().counted(snapshot)

    def read(self, manifest: mf.ManifestFile, wanted: mf.Wanted = mf.EVERYTHING) -> mf.ManifestColumns:
        """The entries of a manifest, deleted ones among them, with all that they inherit.

        Entries without metrics are kept for the next time; those of manifests of this commit still wait for their numbers.
        """
        return self._source().entries(
            manifest,
            wanted,
            self.metadata.partition_type(manifest.partition_spec_id),
            committed=manifest.added_snapshot_id != self.snapshot_id,
            keep=not wanted.metrics,
        )

    def _source(self) -> mf.SnapshotManifests:
        storage = self.bench.storage
        return mf.SnapshotManifests(
            self.metadata, self.bench.read, storage.limits, self.bench.caches.manifests, storage.keyring
        )
