"""Which files a table needs: everything that some snapshot, statistics entry or log of its metadata leads to.

All locations are in their normal form, so that a file is needed however those that need it spell its path.
An unreadable list or manifest is an error, so that nothing is ever deleted on half an answer (FAILURES, rules 8 and 9).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from icefloe import manifests as mf, metadata as md, parallel
from icefloe.storage import Storage, identities, identity

_WORKERS = 4


@dataclass(frozen=True, slots=True)
class ReachableFiles:
    """Every file that some snapshot of a table needs, and those that describe the table itself."""

    content: frozenset[str]
    """Data files, delete files and files of deletion vectors."""
    manifests: frozenset[str]
    manifest_lists: frozenset[str]
    statistics: frozenset[str]
    metadata: tuple[str, ...]
    """Metadata files, the current one last."""

    def all(self) -> frozenset[str]:
        """All of them."""
        return self.content | self.manifests | self.manifest_lists | self.statistics | frozenset(self.metadata)


def reachable_files(metadata: md.TableMetadata, metadata_location: str | None, storage: Storage) -> ReachableFiles:
    """The files of the table, read from every snapshot."""
    manifests = manifests_of(metadata, metadata.snapshots, storage)
    content: set[str] = set()
    for paths, _ in live_content(metadata, manifests.values(), storage):
        content.update(paths)
    return ReachableFiles(
        frozenset(content),
        frozenset(manifests),
        manifest_lists_of(metadata),
        frozenset(statistics_in(metadata)),
        metadata_files_of(metadata, metadata_location),
    )


def manifests_of(
    metadata: md.TableMetadata, snapshots: Iterable[md.Snapshot], storage: Storage
) -> dict[str, mf.ManifestFile]:
    """The manifests of some snapshots by location, each once."""
    source = mf.SnapshotManifests(metadata, storage.read, storage.limits, keyring=storage.keyring)
    manifests = (manifest for snapshot in snapshots for manifest in source.of(snapshot))
    return {identity(manifest.manifest_path): manifest for manifest in manifests}


def live_content(
    metadata: md.TableMetadata, manifests: Iterable[mf.ManifestFile], storage: Storage
) -> Iterator[tuple[list[str], list[int]]]:
    """The live data and delete files, manifest by manifest: their locations, and what they hold by the spec's number."""
    source = mf.SnapshotManifests(metadata, storage.read, storage.limits, keyring=storage.keyring)
    columns = mf.wanted("file_path", "content", partition=False)
    for entries in parallel.in_order(lambda manifest: source.entries(manifest, columns), manifests, _WORKERS):
        live = entries.filter(entries.is_live)
        yield identities(live.column("file_path")).to_pylist(), live.column("content").to_pylist()


def manifest_lists_of(metadata: md.TableMetadata) -> frozenset[str]:
    """The manifest lists of all snapshots."""
    paths = (snapshot.manifest_list for snapshot in metadata.snapshots)
    return frozenset(_location(metadata, path) for path in paths if path)


def statistics_in(metadata: md.TableMetadata) -> dict[str, int]:
    """The statistics files, of the table and of partitions, with their sizes."""
    files: list[md.StatisticsFile | md.PartitionStatisticsFile] = [*metadata.statistics, *metadata.partition_statistics]
    return {_location(metadata, file.statistics_path): file.file_size_in_bytes for file in files}


def metadata_files_of(metadata: md.TableMetadata, metadata_location: str | None) -> tuple[str, ...]:
    """The metadata files that the log names, and the current one last."""
    log = (*(entry.metadata_file for entry in metadata.metadata_log), metadata_location)
    return tuple(dict.fromkeys(_location(metadata, path) for path in log if path is not None))


def _location(metadata: md.TableMetadata, path: str) -> str:
    return identity(metadata.resolve(path))
