"""Decides which files belong to a table as a whole, and deletes them after its name is gone."""

from collections.abc import Iterator
from dataclasses import dataclass

from icefloe.catalog.metadata_files import delete_quietly
from icefloe.commit.committer import TableState
from icefloe.errors import ValidationError
from icefloe.manifests.files import ManifestFile
from icefloe.manifests.list_codec import inline_manifests, read_manifest_list
from icefloe.manifests.reader import read_manifests
from icefloe.manifests.wanted import wanted
from icefloe.metadata.locations import resolve_location
from icefloe.metadata.properties import GC_ENABLED
from icefloe.metadata.table import TableMetadata
from icefloe.storage.storage import Storage
from icefloe.versions import Feature, allows

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


def check_purgeable(metadata: TableMetadata, name: str) -> None:
    """Fail if the table says that its files may belong to others too."""
    if not GC_ENABLED.of(metadata.properties):
        raise ValidationError(
            f"table {name} has {GC_ENABLED.key}=false: its files may belong to other tables and are not deleted;"
            " drop_table drops the name alone"
        )


def reachable_files(state: TableState, storage: Storage) -> ReachableFiles:
    """The files of the table, read from every snapshot; an unreadable one is an error, so that nothing is half done."""
    metadata = state.metadata
    manifests = {each.manifest_path: each for each in _manifests(metadata, storage)}
    content: set[str] = set()
    columns = read_manifests(
        manifests.values(),
        storage.read,
        wanted("file_path", partition=False),
        table_location=_relative_to(metadata),
        workers=_WORKERS,
    )
    for each in columns:
        content.update(each.filter(each.is_live).column("file_path").to_pylist())
    log = (*(each.metadata_file for each in metadata.metadata_log), state.metadata_location)
    statistics = (
        *(each.statistics_path for each in metadata.statistics),
        *(each.statistics_path for each in metadata.partition_statistics),
    )
    return ReachableFiles(
        frozenset(content),
        frozenset(manifests),
        frozenset(_place(metadata, each.manifest_list) for each in metadata.snapshots if each.manifest_list),
        frozenset(_place(metadata, each) for each in statistics),
        tuple(dict.fromkeys(_place(metadata, each) for each in log if each is not None)),
    )


def delete_reachable(files: ReachableFiles, storage: Storage) -> None:
    """Delete the files, those first that others are found by last; what cannot be deleted is noted in the log."""
    for group in (files.content, files.manifests, files.manifest_lists, files.statistics, files.metadata):
        delete_quietly(storage, group, "part of a purged table")


def _manifests(metadata: TableMetadata, storage: Storage) -> Iterator[ManifestFile]:
    for snapshot in metadata.snapshots:
        if snapshot.manifest_list is None:
            yield from inline_manifests(snapshot.manifests or (), snapshot.snapshot_id, storage.read)
        else:
            place = _place(metadata, snapshot.manifest_list)
            yield from read_manifest_list(place, storage.read, table_location=_relative_to(metadata))


def _relative_to(metadata: TableMetadata) -> str | None:
    return metadata.location if allows(metadata.format_version, Feature.RELATIVE_PATHS) else None


def _place(metadata: TableMetadata, path: str) -> str:
    if not allows(metadata.format_version, Feature.RELATIVE_PATHS):
        return path
    return resolve_location(metadata.location, path)
