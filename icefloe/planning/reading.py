"""What a scan asks of manifests: their entries under the schema of the scan, checked, and the specs that they are of."""

import os
from dataclasses import dataclass, field

from icefloe.errors import CorruptFileError, NoSuchObjectError, StorageError
from icefloe.manifests import (
    ManifestCache,
    ManifestColumns,
    ManifestContent,
    ManifestFile,
    SnapshotManifests,
    Wanted,
    error_of_snapshot,
)
from icefloe.metadata import Snapshot, TableMetadata
from icefloe.partitioning import PartitionSpec, partition_type
from icefloe.planning.replaced_columns import ReplacedColumns
from icefloe.schema import Schema, StructType
from icefloe.storage import Storage


@dataclass(frozen=True, slots=True)
class ManifestSource:
    """Where the manifests of one snapshot come from. Errors of files name the snapshot too."""

    metadata: TableMetadata
    storage: Storage
    snapshot_id: int
    schema: Schema
    cache: ManifestCache | None = None
    replaced: ReplacedColumns = field(init=False, repr=False, compare=False)
    _manifests: SnapshotManifests = field(init=False, repr=False, compare=False)
    _partition_types: dict[int, StructType] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "replaced", ReplacedColumns(self.metadata, self.schema))
        manifests = SnapshotManifests(self.metadata, self.storage.read, self.storage.limits, self.cache)
        object.__setattr__(self, "_manifests", manifests)

    def manifests(self, snapshot: Snapshot) -> tuple[ManifestFile, ...]:
        """The manifests of a snapshot, in the order of its list."""
        return self._manifests.of(snapshot)

    def read(self, manifest: ManifestFile, wanted: Wanted, threads: int = 1) -> ManifestColumns:
        """The entries of a manifest, from memory if they were read before; several threads may decode a large one."""
        struct = self.partition_type(manifest)
        try:
            return _checked(self._manifests.entries(manifest, wanted, struct, threads=threads), manifest)
        except (CorruptFileError, StorageError) as error:
            raise error_of_snapshot(error, self.snapshot_id) from error

    def spec(self, manifest: ManifestFile) -> PartitionSpec:
        """The partition spec of a manifest."""
        try:
            return self.metadata.spec(manifest.partition_spec_id)
        except NoSuchObjectError as error:
            raise CorruptFileError(manifest.manifest_path, f"the table has no spec for it: {error}") from None

    def partition_type(self, manifest: ManifestFile) -> StructType:
        """The type of the partition tuples of a manifest for the scan; lost source columns are looked for in older schemas."""
        known = self._partition_types.get(manifest.partition_spec_id)
        if known is None:
            known = partition_type(self.spec(manifest), self.schema, *self.metadata.schemas_newest_first)
            self._partition_types[manifest.partition_spec_id] = known
        return known


def _checked(columns: ManifestColumns, manifest: ManifestFile) -> ManifestColumns:
    """The entries, if they are of the kind that the manifest is for and have what every file has."""
    is_data = manifest.content is ManifestContent.DATA
    # What is no kind of file at all was refused where it was read.
    if ((columns.column("content").to_numpy() == 0) != is_data).any():
        content = "data" if is_data else "delete"
        raise CorruptFileError(manifest.manifest_path, f"it is a manifest of {content} files and holds other ones")
    for name in ("file_path", "record_count", "file_size_in_bytes"):
        if columns.column(name).null_count:
            raise CorruptFileError(manifest.manifest_path, f"{columns.column(name).null_count} entries have no {name}")
    return columns


def decoding_threads(manifests: int, workers: int) -> int:
    """How many threads decode one manifest: as many as processors, unless there are manifests enough to keep them busy."""
    processors = os.cpu_count() or 1
    return min(workers, processors) if manifests <= 2 * processors else 1
