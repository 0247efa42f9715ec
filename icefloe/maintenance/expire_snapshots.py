"""Expiry of snapshots with their files: what was reachable before the commit, and is not by metadata read after it."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from icefloe.commit.clean_metadata import CleanMetadata
from icefloe.commit.expire import Expire
from icefloe.maintenance.deleting import delete_quietly
from icefloe.maintenance.maintained import MaintainedTable
from icefloe.maintenance.ownership import Ownership, note_foreign
from icefloe.maintenance.reachable import live_content, manifest_lists_of, manifests_of, statistics_of
from icefloe.manifests.files import FileContent
from icefloe.metadata.table import TableMetadata
from icefloe.storage.storage import Storage


@dataclass(frozen=True, slots=True)
class ExpiredFiles:
    """What an expiry deleted, or would have: the counts of Java's procedure, and the snapshots."""

    snapshot_ids: tuple[int, ...] = ()
    deleted_data_files_count: int = 0
    deleted_position_delete_files_count: int = 0
    deleted_equality_delete_files_count: int = 0
    deleted_manifest_files_count: int = 0
    deleted_manifest_lists_count: int = 0
    deleted_statistics_files_count: int = 0
    left_alone: tuple[str, ...] = field(default=(), kw_only=True)
    """Files that nothing needs any more, and that are not deleted: they lie outside of the table's locations."""


@dataclass(frozen=True, slots=True)
class _Unneeded:
    content: dict[str, int]
    """What each file holds, by the spec's number."""
    manifests: frozenset[str]
    manifest_lists: frozenset[str]
    statistics: frozenset[str]


def expire_snapshots(
    table: MaintainedTable, expire: Expire, *, delete_files: bool = True, clean_metadata: bool = False
) -> ExpiredFiles:
    """Drop snapshots from the table, and on request what only they needed of its metadata; then delete their files."""
    before = table.metadata
    with table.transaction() as tx:
        tx.add(expire)
        if clean_metadata:
            tx.add(CleanMetadata())
    # Others may have committed meanwhile, so what is still needed is read anew (FAILURES, rule 8).
    after = table.refresh().metadata
    gone = tuple(each.snapshot_id for each in before.snapshots if each.snapshot_id not in after.snapshots_by_id)
    if not gone:
        return ExpiredFiles()
    if not delete_files:
        return ExpiredFiles(gone)
    unneeded, foreign = _owned(_unneeded(before, after, gone, table.storage), Ownership.of(after, None, before))
    return replace(_delete(unneeded, gone, table.storage), left_alone=foreign)


def _unneeded(before: TableMetadata, after: TableMetadata, gone: Iterable[int], storage: Storage) -> _Unneeded:
    kept = manifests_of(after, after.snapshots, storage)
    leaving = manifests_of(before, (before.snapshot(each) for each in gone), storage)
    manifests = {path: each for path, each in leaving.items() if path not in kept}
    content: dict[str, int] = {}
    for paths, kinds in live_content(before, manifests.values(), storage):
        content.update(zip(paths, kinds, strict=True))
    if content:
        for paths, _ in live_content(after, kept.values(), storage):
            for path in content.keys() & set(paths):
                del content[path]
    return _Unneeded(
        content,
        frozenset(manifests),
        manifest_lists_of(before) - manifest_lists_of(after),
        statistics_of(before) - statistics_of(after),
    )


def _owned(unneeded: _Unneeded, ownership: Ownership) -> tuple[_Unneeded, tuple[str, ...]]:
    """What of it is the table's own, and the rest."""
    content, foreign = ownership.split(unneeded.content)
    groups = []
    for group in (unneeded.manifests, unneeded.manifest_lists, unneeded.statistics):
        own, others = ownership.split(sorted(group))
        groups.append(frozenset(own))
        foreign += others
    note_foreign(foreign, "needed by no snapshot any more")
    return _Unneeded({path: unneeded.content[path] for path in content}, *groups), tuple(foreign)


def _delete(unneeded: _Unneeded, gone: tuple[int, ...], storage: Storage) -> ExpiredFiles:
    """Delete what leads to others last, so that an interrupted expiry leaves nothing that points to nothing."""
    why = "needed by no snapshot any more"
    stayed = delete_quietly(storage, unneeded.content, why)
    deleted = [kind for path, kind in unneeded.content.items() if path not in stayed]
    counts = [
        len(group) - len(delete_quietly(storage, group, why))
        for group in (unneeded.manifests, unneeded.manifest_lists, unneeded.statistics)
    ]
    by_kind = [
        deleted.count(kind) for kind in (FileContent.DATA, FileContent.POSITION_DELETES, FileContent.EQUALITY_DELETES)
    ]
    return ExpiredFiles(gone, *by_kind, *counts)
