"""The manifests of a snapshot and their entries, from memory where they were read before: neither lists nor manifests change."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

from icefloe import errors, metadata as md
from icefloe.bounded_cache import BoundedCache
from icefloe.encryption import Keyring
from icefloe.manifests.columns import ManifestColumns, joined
from icefloe.manifests.entry_codec import EVERYTHING, WITHOUT_METRICS, Wanted
from icefloe.manifests.list_codec import inline_manifests, read_manifest_list
from icefloe.manifests.reader import Read, read_manifest
from icefloe.manifests.sealing import is_encrypted, key_of_manifest, list_key
from icefloe.manifests.summaries import count_entries, min_sequence_number
from icefloe.manifests.values import ManifestFile
from icefloe.schema import StructType

DEFAULT_CACHE_BYTES = 256 << 20
_MOST_LISTS = 128


class ManifestCache(BoundedCache[Hashable, ManifestColumns]):
    """The manifests used last, as many as fit in `capacity` bytes, and some lists by location.

    Keys must hold all that the columns depend on: location, wanted columns, and what was inherited.
    """

    def __init__(self, capacity: int = DEFAULT_CACHE_BYTES) -> None:
        if capacity < 0:
            raise errors.InvalidInputError(f"a cache cannot hold {capacity} bytes")
        super().__init__(capacity, lambda columns: columns.nbytes)
        self.lists: BoundedCache[Hashable, tuple[ManifestFile, ...]] = BoundedCache(_MOST_LISTS)

    def clear(self) -> None:
        """Let go of everything."""
        super().clear()
        self.lists.clear()


@dataclass(frozen=True, slots=True)
class SnapshotManifests:
    """The manifests of a table's snapshots; `read` gives the bytes at a location. Threads may share it.

    The `keyring` opens the lists of encrypted tables.
    """

    metadata: md.TableMetadata
    read: Read
    limits: md.Limits = md.DEFAULT_LIMITS
    cache: ManifestCache | None = None
    keyring: Keyring | None = None

    def list_location(self, snapshot: md.Snapshot) -> str | None:
        """Where the manifest list of a snapshot is; None for one of v1 that has none."""
        return None if snapshot.manifest_list is None else self.metadata.resolve(snapshot.manifest_list)

    def of(self, snapshot: md.Snapshot) -> tuple[ManifestFile, ...]:
        """The manifests of a snapshot, in the order of its list. Errors of files name the snapshot too."""
        location = self.list_location(snapshot)
        try:
            if location is None:
                return inline_manifests(snapshot.manifests or (), snapshot.snapshot_id, self.read)
            if self.cache is None:
                return self._read_list(snapshot, location)
            return self.cache.lists.load(list_place(snapshot, location), lambda: self._read_list(snapshot, location))
        except (errors.CorruptFileError, errors.StorageError) as error:
            raise error_of_snapshot(error, snapshot.snapshot_id) from error

    def counted(self, snapshot: md.Snapshot) -> tuple[ManifestFile, ...]:
        """The same with all counts, which v1 writers may leave out and later versions need."""

        def count() -> tuple[ManifestFile, ...]:
            return tuple(self._with_counts(manifest) for manifest in self.of(snapshot))

        location = self.list_location(snapshot)
        if self.cache is None or location is None:
            return count()
        return self.cache.lists.load((list_place(snapshot, location), "counted"), count)

    def entries(
        self,
        manifest: ManifestFile,
        wanted: Wanted = EVERYTHING,
        partition_type: StructType | None = None,
        *,
        committed: bool = True,
        keep: bool = True,
        threads: int = 1,
    ) -> ManifestColumns:
        """The entries of a manifest with all that they inherit, as `read_manifest` gives them; `keep` is for the cache."""

        def load() -> ManifestColumns:
            if type(manifest) is not ManifestFile:
                return self._content_entries(manifest, wanted, partition_type)
            key_of_manifest(manifest, is_needed=is_encrypted(self.metadata))
            return read_manifest(
                manifest,
                self.read,
                wanted,
                partition_type=partition_type,
                table_location=self.metadata.relative_to,
                committed=committed,
                threads=threads,
                limits=self.limits,
            )

        if self.cache is None or not committed or not keep:
            return load()
        return self.cache.load(self._place(manifest, wanted, partition_type), load)

    def together(
        self, manifests: Sequence[ManifestFile], wanted: Wanted, partition_type: StructType
    ) -> ManifestColumns | None:
        """The entries of several manifests of one spec as those of one, if all of them are in memory and alike; else None."""
        if self.cache is None:
            return None
        place = (tuple(manifests), wanted, partition_type, self.metadata.relative_to)
        columns = self.cache.find(place)
        if columns is None:
            parts = [self.cache.find(self._place(manifest, wanted, partition_type)) for manifest in manifests]
            read = [part for part in parts if part is not None]
            columns = joined(read) if len(read) == len(parts) else None
            if columns is not None:
                self.cache.keep(place, columns)
        return columns

    def _place(self, manifest: ManifestFile, wanted: Wanted, partition_type: StructType | None) -> Hashable:
        """What entries are kept under in memory."""
        # The same file may be part of several lists, which can give it other row ids.
        return manifest, wanted, partition_type, self.metadata.relative_to

    def _content_entries(
        self, manifest: ManifestFile, wanted: Wanted, partition_type: StructType | None
    ) -> ManifestColumns:
        # Only tables of a preview have such entries.
        from icefloe.manifests.root_manifests import ContentManifest, read_content_manifest

        assert isinstance(manifest, ContentManifest), "the manifests of a root manifest are such"
        return read_content_manifest(
            manifest, self.read, wanted, partition_type, self.metadata.relative_to, self.limits
        )

    def _read_list(self, snapshot: md.Snapshot, location: str) -> tuple[ManifestFile, ...]:
        if self.metadata.has_root_manifest(snapshot):
            from icefloe.manifests.root_manifests import read_root_manifest

            return read_root_manifest(location, self.read, self.metadata, snapshot, self.limits)
        key = list_key(self.metadata, snapshot, self.keyring)
        return read_manifest_list(
            location, self.read, table_location=self.metadata.relative_to, limits=self.limits, key=key
        )

    def _with_counts(self, manifest: ManifestFile) -> ManifestFile:
        if None not in _COUNTS(manifest):
            return manifest
        struct = self.metadata.partition_type(manifest.partition_spec_id)
        columns = self.entries(manifest, WITHOUT_METRICS, struct)
        smallest = max(min_sequence_number(columns), 0)
        return replace(manifest, min_sequence_number=smallest, **count_entries(columns))


def list_place(snapshot: md.Snapshot, location: str) -> Hashable:
    """What a list is kept under in memory: its location, and its key if it has one."""
    return location if snapshot.key_id is None else (location, snapshot.key_id)


_COUNTS = attrgetter(
    *(f"{status}_{what}_count" for status in ("added", "existing", "deleted") for what in ("files", "rows"))
)


def error_of_snapshot(
    error: errors.CorruptFileError | errors.StorageError, snapshot_id: int
) -> errors.CorruptFileError | errors.StorageError:
    """The same error, which says too which snapshot the file is of."""
    return type(error)(error.location, f"{error.problem} (a file of snapshot {snapshot_id})")
