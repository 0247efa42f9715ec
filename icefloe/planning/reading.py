"""How the manifests of a snapshot are read: once each, several at a time, a few ahead of whoever waits for them."""

import os
from dataclasses import dataclass, field
from typing import TypeVar

from icefloe.errors import CorruptFileError, NoSuchObjectError, StorageError
from icefloe.manifests import (
    ManifestCache,
    ManifestColumns,
    ManifestContent,
    ManifestFile,
    Wanted,
    inline_manifests,
    read_manifest,
    read_manifest_list,
)
from icefloe.metadata import Snapshot, TableMetadata
from icefloe.partitioning import PartitionSpec, partition_type
from icefloe.planning.replaced_columns import ReplacedColumns
from icefloe.schema import Schema, StructType
from icefloe.storage import Storage

Item = TypeVar("Item")
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class ManifestSource:
    """Where the manifests of one snapshot come from. Errors of files name the snapshot too."""

    metadata: TableMetadata
    storage: Storage
    snapshot_id: int
    schema: Schema
    cache: ManifestCache | None = None
    _partition_types: dict[int, StructType] = field(default_factory=dict, init=False, repr=False, compare=False)
    replaced: ReplacedColumns = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "replaced", ReplacedColumns(self.metadata, self.schema))

    def manifests(self, snapshot: Snapshot) -> tuple[ManifestFile, ...]:
        """The manifests of a snapshot, in the order of its list."""
        try:
            if snapshot.manifest_list is None:
                return inline_manifests(snapshot.manifests or (), snapshot.snapshot_id, self.storage.read)
            place = self.metadata.resolve(snapshot.manifest_list)
            found = None if self.cache is None else self.cache.lists.find(place)
            if found is None:
                found = read_manifest_list(
                    place, self.storage.read, table_location=self.metadata.relative_to, limits=self.storage.limits
                )
                if self.cache is not None:
                    self.cache.lists.keep(place, found)
            return found
        except (CorruptFileError, StorageError) as error:
            raise of_snapshot(error, snapshot.snapshot_id) from error

    def read(self, manifest: ManifestFile, wanted: Wanted, threads: int = 1) -> ManifestColumns:
        """The entries of a manifest, from memory if they were read before; several threads may decode a large one."""
        kind = self.partition_type(manifest)

        def load() -> ManifestColumns:
            return read_manifest(
                manifest,
                self.storage.read,
                wanted,
                partition_type=kind,
                table_location=self.metadata.relative_to,
                threads=threads,
                limits=self.storage.limits,
            )

        try:
            if self.cache is None:
                return _checked(load(), manifest)
            return _checked(self.cache.load((manifest, wanted, kind, self.metadata.relative_to), load), manifest)
        except (CorruptFileError, StorageError) as error:
            raise of_snapshot(error, self.snapshot_id) from error

    def spec(self, manifest: ManifestFile) -> PartitionSpec:
        """The partition spec of a manifest."""
        try:
            return self.metadata.spec(manifest.partition_spec_id)
        except NoSuchObjectError as error:
            raise CorruptFileError(manifest.manifest_path, f"the table has no spec for it: {error}") from None

    def partition_type(self, manifest: ManifestFile) -> StructType:
        """The type of the partition tuples of a manifest for the scan; lost source columns are looked for in older schemas."""
        found = self._partition_types.get(manifest.partition_spec_id)
        if found is None:
            found = partition_type(self.spec(manifest), self.schema, *self.metadata.schemas_newest_first)
            self._partition_types[manifest.partition_spec_id] = found
        return found


def _checked(columns: ManifestColumns, manifest: ManifestFile) -> ManifestColumns:
    """The entries, if they are of the kind that the manifest is for and have what every file has."""
    is_data = manifest.content is ManifestContent.DATA
    # What is no kind of file at all was refused where it was read.
    if ((columns.column("content").to_numpy() == 0) != is_data).any():
        kind = "data" if is_data else "delete"
        raise CorruptFileError(manifest.manifest_path, f"it is a manifest of {kind} files and holds other ones")
    for name in ("file_path", "record_count", "file_size_in_bytes"):
        if columns.column(name).null_count:
            raise CorruptFileError(manifest.manifest_path, f"{columns.column(name).null_count} entries have no {name}")
    return columns


def of_snapshot(error: CorruptFileError | StorageError, snapshot_id: int) -> CorruptFileError | StorageError:
    """The same error, which says too which snapshot the file is of."""
    return type(error)(error.location, f"{error.problem} (a file of snapshot {snapshot_id})")


def decoding_threads(manifests: int, workers: int) -> int:
    """How many threads decode one manifest: as many as processors, unless there are manifests enough to keep them busy."""
    processors = os.cpu_count() or 1
    return min(workers, processors) if manifests <= 2 * processors else 1
