"""What an operation sees of the table that it changes: the manifests of the snapshot it builds on, and their entries."""

from dataclasses import dataclass, replace
from typing import Any

from icefloe.commit.change import Workbench
from icefloe.manifests import (
    EVERYTHING,
    WITHOUT_METRICS,
    ManifestColumns,
    ManifestContent,
    ManifestFile,
    Wanted,
    count_entries,
    inline_manifests,
    min_sequence_number,
    read_manifest,
    read_manifest_list,
)
from icefloe.metadata import Snapshot, TableMetadata


@dataclass(frozen=True, slots=True)
class Parent:
    """A table's metadata, the snapshot that a commit builds on, and the id that the new snapshot will have."""

    metadata: TableMetadata
    snapshot: Snapshot | None
    snapshot_id: int
    bench: Workbench

    def manifests(self, content: ManifestContent | None = None) -> tuple[ManifestFile, ...]:
        """The manifests of the parent, of one kind or all."""
        found = () if self.snapshot is None else manifests_of(self.snapshot, self.metadata, self.bench)
        return found if content is None else tuple(each for each in found if each.content is content)

    def read(self, manifest: ManifestFile, wanted: Wanted = EVERYTHING) -> ManifestColumns:
        """The entries of a manifest, deleted ones among them, with all that they inherit."""
        is_own = manifest.added_snapshot_id == self.snapshot_id
        return read_entries(manifest, self.metadata, self.bench, wanted, committed=not is_own)


def manifests_of(snapshot: Snapshot, metadata: TableMetadata, bench: Workbench) -> tuple[ManifestFile, ...]:
    """The manifests of a snapshot; read once, since lists never change."""
    place = list_location(snapshot, metadata)
    if place is None:
        return _counted(inline_manifests(snapshot.manifests or (), snapshot.snapshot_id, bench.read), metadata, bench)
    found = bench.caches.lists.find(place)
    if found is None:
        found = read_manifest_list(place, bench.read, table_location=metadata.relative_to, limits=bench.storage.limits)
        found = _counted(found, metadata, bench)
        bench.caches.lists.keep(place, found)
    return found


def list_location(snapshot: Snapshot, metadata: TableMetadata) -> str | None:
    """Where the manifest list of a snapshot is; None for one of v1 that has none."""
    return None if snapshot.manifest_list is None else metadata.resolve(snapshot.manifest_list)


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

    kind = metadata.partition_type(manifest.partition_spec_id)

    def load() -> ManifestColumns:
        return read_manifest(
            manifest,
            bench.read,
            wanted,
            partition_type=kind,
            table_location=metadata.relative_to,
            committed=committed,
            limits=bench.storage.limits,
        )

    if wanted.metrics or not committed:
        return load()
    return bench.caches.manifests.load((manifest, wanted, kind, metadata.location), load)


def _counted(
    manifests: tuple[ManifestFile, ...], metadata: TableMetadata, bench: Workbench
) -> tuple[ManifestFile, ...]:
    """The manifests with their counts, which v1 writers may leave out and later versions need."""

    def complete(manifest: ManifestFile) -> ManifestFile:
        columns = read_entries(manifest, metadata, bench, WITHOUT_METRICS)
        counts: dict[str, Any] = {**count_entries(columns)}
        return replace(manifest, min_sequence_number=max(min_sequence_number(columns), 0), **counts)

    return tuple(complete(each) if None in _counts(each) else each for each in manifests)


def _counts(manifest: ManifestFile) -> tuple[int | None, ...]:
    return (
        manifest.added_files_count,
        manifest.existing_files_count,
        manifest.deleted_files_count,
        manifest.added_rows_count,
        manifest.existing_rows_count,
        manifest.deleted_rows_count,
    )
