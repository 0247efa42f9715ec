"""All files that a metadata file leads to, deleted: those by which others are located last."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from icefloe import manifests as mf, metadata as md
from icefloe.commit import Ownership, delete_quietly, note_foreign
from icefloe.maintenance.files.reachable import (
    live_content,
    manifest_lists_of,
    manifests_of,
    metadata_files_of,
    statistics_in,
)
from icefloe.storage import Storage

_WHY = "part of a purged table"


@dataclass(frozen=True, slots=True)
class DeletedReachableFiles:
    """How many files were deleted, as Java's action counts them, and those that were left alone."""

    deleted_data_files_count: int = 0
    deleted_position_delete_files_count: int = 0
    deleted_equality_delete_files_count: int = 0
    deleted_manifests_count: int = 0
    deleted_manifest_lists_count: int = 0
    deleted_other_files_count: int = 0
    """Metadata files and statistics."""
    left_alone: tuple[str, ...] = field(default=(), kw_only=True)
    """Files outside of the table's locations, which may belong to others."""


Contents = dict[int, tuple[str, ...]]
"""Files by kind, in the order in which they are deleted: what data files hold by the spec's number, then the rest."""


def reachable_contents(metadata: md.TableMetadata, metadata_location: str | None, storage: Storage) -> Contents:
    """All files that the metadata leads to; a list or manifest that cannot be read is an error."""
    manifests = manifests_of(metadata, metadata.snapshots, storage)
    content: dict[str, int] = {}
    for paths, kinds in live_content(metadata, manifests.values(), storage):
        content.update(zip(paths, kinds, strict=True))
    files = [tuple(path for path, kind in content.items() if kind == known) for known in mf.FileContent]
    others = (*statistics_in(metadata), *metadata_files_of(metadata, metadata_location))
    groups = (*files, tuple(manifests), tuple(manifest_lists_of(metadata)), others)
    return dict(enumerate(groups))


def delete_contents(
    files: Contents, metadata: md.TableMetadata, metadata_location: str | None, storage: Storage
) -> DeletedReachableFiles:
    """Delete the files that are the table's own; what cannot be deleted is noted in the log."""
    ownership = Ownership.of(metadata, metadata_location)
    counts, foreign = [], list[str]()
    for group in files.values():
        own, others = ownership.split(group)
        counts.append(len(own) - len(_delete(storage, own)))
        foreign += others
    note_foreign(foreign, _WHY)
    return DeletedReachableFiles(*counts, left_alone=tuple(foreign))


def _delete(storage: Storage, locations: Iterable[str]) -> frozenset[str]:
    return delete_quietly(storage, locations, _WHY)
