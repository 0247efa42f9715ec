"""What a manifest that is lost must have held: entries that other manifests still know, if they add up to it exactly.

A manifest list tells of each manifest how many files and rows it has, added and taken over, the bounds of their partitions and
their lowest sequence number. Entries that the manifest took over are live in the snapshot before; entries that it added may have
been taken over by manifests of later snapshots. Nothing else is taken, and nothing is left out to make numbers fit.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TypeVar

from icefloe import commit as cm, errors, manifests as mf, metadata as md
from icefloe.storage import identity
from icefloe.versions import Feature, allows

Value = TypeVar("Value")
Key = tuple[str, int | None]


class NotKnownError(errors.IcefloeError):
    """Why the entries of a manifest cannot be told."""


def unreadable_manifests(parent: cm.Parent, snapshot: md.Snapshot) -> list[mf.ManifestFile]:
    """The manifests of a snapshot that cannot be read; an error if its list cannot."""
    return [manifest for manifest in parent.manifests_of(snapshot) if _read(parent, manifest) is None]


def rebuilt(parent: cm.Parent, lost: mf.ManifestFile) -> mf.ManifestColumns:
    """The live entries of a manifest that is lost, with all their numbers; an error that says why, if they are not known."""
    maker = parent.metadata.snapshot_by_id(lost.added_snapshot_id)
    if maker is None:
        raise NotKnownError(f"snapshot {lost.added_snapshot_id}, which wrote it, has expired")
    if lost.deleted_files_count:
        raise NotKnownError(f"it also told which {lost.deleted_files_count} files were removed")
    beside = list(_entries(parent, maker, lost))
    taken = {_key(entry) for entry in beside if entry.status is not mf.EntryStatus.DELETED or _is_of(entry, maker)}
    existing = _existing(parent, maker, lost, taken)
    added = _added(parent, maker, lost, taken)
    _check("files that it took over", lost.existing_files_count, len(existing))
    _check("rows of those", lost.existing_rows_count, _rows(existing))
    _check("files that it added", lost.added_files_count, len(added))
    _check("rows of those", lost.added_rows_count, _rows(added))
    entries = [replace(entry, status=mf.EntryStatus.EXISTING) for entry in (*existing, *added)]
    columns = mf.columns_of(entries, parent.metadata.partition_type(lost.partition_spec_id), lost.partition_spec_id)
    _check_list(parent, lost, entries, columns)
    return columns


def _existing(parent: cm.Parent, maker: md.Snapshot, lost: mf.ManifestFile, taken: set[Key]) -> list[mf.ManifestEntry]:
    """The entries of the snapshot before that went nowhere else."""
    if not lost.existing_files_count:
        return []
    before = parent.metadata.snapshot_by_id(maker.parent_snapshot_id or 0)
    if before is None:
        raise NotKnownError(f"the snapshot before {maker.snapshot_id}, which wrote it, has expired")
    return _distinct(
        entry
        for entry in _entries(parent, before, lost)
        if entry.status is not mf.EntryStatus.DELETED and _key(entry) not in taken
    )


def _added(parent: cm.Parent, maker: md.Snapshot, lost: mf.ManifestFile, taken: set[Key]) -> list[mf.ManifestEntry]:
    """The entries of its snapshot that manifests of others have taken over."""
    if not lost.added_files_count:
        return []
    seen = {
        manifest.manifest_path: manifest for each in parent.metadata.snapshots for manifest in _listed(parent, each)
    }
    readable = (manifest for manifest in seen.values() if _is_alike(manifest, lost))
    return _distinct(
        entry
        for manifest in readable
        if (columns := _read(parent, manifest)) is not None
        for entry in columns.entries()
        if entry.status is mf.EntryStatus.EXISTING and _is_of(entry, maker) and _key(entry) not in taken
    )


def _check_list(
    parent: cm.Parent, lost: mf.ManifestFile, entries: list[mf.ManifestEntry], columns: mf.ManifestColumns
) -> None:
    """What else the list says of the manifest."""
    if allows(parent.metadata.format_version, Feature.SEQUENCE_NUMBERS):
        lowest = min((entry.sequence_number or 0 for entry in entries), default=lost.min_sequence_number)
        _check("lowest sequence number", lost.min_sequence_number, lowest)
    if allows(parent.metadata.format_version, Feature.ROW_LINEAGE) and any(
        entry.data_file.first_row_id is None for entry in entries if not entry.data_file.content
    ):
        raise NotKnownError("row ids that it gave to files are known nowhere else")
    if lost.partitions is not None and tuple(lost.partitions) != mf.summarize_partitions(columns):
        raise NotKnownError("the bounds of its partitions are not those of the entries that are known")


def _check(what: str, expected: object, known: object) -> None:
    if expected != known:
        raise NotKnownError(f"by the manifest list its {what} are {expected}, of which other manifests know {known}")


def _entries(parent: cm.Parent, snapshot: md.Snapshot, lost: mf.ManifestFile) -> Iterator[mf.ManifestEntry]:
    """The entries of all other manifests of a snapshot of the same spec and kind, which must all be readable."""
    for manifest in parent.manifests_of(snapshot):
        if _is_alike(manifest, lost):
            columns = _read(parent, manifest)
            if columns is None:
                raise NotKnownError(f"{manifest.manifest_path} of snapshot {snapshot.snapshot_id} is lost, too")
            yield from columns.entries()


def _is_alike(manifest: mf.ManifestFile, lost: mf.ManifestFile) -> bool:
    same_kind = (manifest.content, manifest.partition_spec_id) == (lost.content, lost.partition_spec_id)
    return same_kind and manifest.manifest_path != lost.manifest_path


def _listed(parent: cm.Parent, snapshot: md.Snapshot) -> tuple[mf.ManifestFile, ...]:
    return _quietly(lambda: parent.manifests_of(snapshot)) or ()


def _read(parent: cm.Parent, manifest: mf.ManifestFile) -> mf.ManifestColumns | None:
    return _quietly(lambda: parent.read(manifest))


def _quietly(read: Callable[[], Value]) -> Value | None:
    try:
        return read()
    except errors.IcefloeError:
        return None


def _is_of(entry: mf.ManifestEntry, snapshot: md.Snapshot) -> bool:
    return entry.snapshot_id == snapshot.snapshot_id


def _key(entry: mf.ManifestEntry) -> Key:
    return identity(entry.data_file.file_path), entry.data_file.content_offset


def _distinct(entries: Iterable[mf.ManifestEntry]) -> list[mf.ManifestEntry]:
    return list({_key(entry): entry for entry in entries}.values())


def _rows(entries: Iterable[mf.ManifestEntry]) -> int:
    return sum(entry.data_file.record_count for entry in entries)
