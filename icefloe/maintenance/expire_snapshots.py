"""Expiry of snapshots with their files: what was reachable before the commit, and is not by metadata read after it.

Before is what the commit was prepared on, not what the handle knew when it was asked for. Once the commit happened, nothing
is an error any more: files that cannot be told to be unneeded stay behind, with a note in the log.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace

from icefloe.commit import CleanMetadata, Expire
from icefloe.errors import LocationNotFoundError
from icefloe.maintenance.deleting import LOG, delete_quietly
from icefloe.maintenance.maintained import MaintainedTable
from icefloe.maintenance.ownership import Ownership, note_foreign
from icefloe.maintenance.reachable import live_content, manifest_lists_of, manifests_of, statistics_of
from icefloe.manifests import FileContent, ManifestFile
from icefloe.metadata import TableMetadata
from icefloe.storage import Storage, deletion_key

_ATTEMPTS = 3


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
    problem: str | None = field(default=None, kw_only=True)
    """Why no file was deleted, although snapshots are gone: their files stay behind."""

    @property
    def counts(self) -> tuple[int, ...]:
        """The counts of files, in the order of Java's procedure."""
        return (
            self.deleted_data_files_count,
            self.deleted_position_delete_files_count,
            self.deleted_equality_delete_files_count,
            self.deleted_manifest_files_count,
            self.deleted_manifest_lists_count,
            self.deleted_statistics_files_count,
        )


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
    with table.transaction() as tx:
        tx.add(expire)
        if clean_metadata:
            tx.add(CleanMetadata())
        done = tx.commit()
    before = (done.base or done.state).metadata
    made = done.state.metadata.snapshots_by_id
    gone = tuple(each.snapshot_id for each in before.snapshots if each.snapshot_id not in made)
    if not gone or not delete_files:
        return ExpiredFiles(gone)
    try:
        unneeded, foreign = _unneeded_now(table, before, gone)
    except Exception as error:  # noqa: BLE001 - the commit happened, whatever is the matter with files
        LOG.warning("files of %d expired snapshots stay behind: %s", len(gone), error)
        return ExpiredFiles(gone, problem=str(error))
    return replace(_delete(unneeded, gone, table.storage), left_alone=foreign)


def _unneeded_now(
    table: MaintainedTable, before: TableMetadata, gone: tuple[int, ...], attempts: int = _ATTEMPTS
) -> tuple[_Unneeded, tuple[str, ...]]:
    """What the table does not need any more, as it is now, and what of that is not its own."""
    # Others may have committed meanwhile, so what is still needed is read anew (FAILURES, rule 8).
    after = table.refresh().metadata
    try:
        unneeded = _unneeded(before, after, gone, table.storage)
    except LocationNotFoundError:
        # What is missing may have expired since the table was read, with files that others delete.
        if attempts == 1:
            raise
        return _unneeded_now(table, before, gone, attempts - 1)
    return _owned(unneeded, Ownership.of(after, None, before))


def _unneeded(before: TableMetadata, after: TableMetadata, gone: Iterable[int], storage: Storage) -> _Unneeded:
    kept = manifests_of(after, after.snapshots, storage)
    leaving = _manifests_leaving(before, gone, storage)
    manifests = {path: leaving[path] for path in _certain(leaving, kept)}
    doomed = dict(_content_leaving(before, manifests.values(), storage))
    key = deletion_key(doomed)
    content = {key(path): (path, kind) for path, kind in doomed.items()}
    if content:
        for paths, _ in live_content(after, kept.values(), storage):
            for path in content.keys() & set(map(key, paths)):
                del content[path]
    return _Unneeded(
        dict(content.values()),
        frozenset(manifests),
        _certain(manifest_lists_of(before), manifest_lists_of(after)),
        _certain(statistics_of(before), statistics_of(after)),
    )


def _certain(paths: Collection[str], needed: Iterable[str]) -> frozenset[str]:
    """The paths that are certain to be none of those that are needed."""
    key = deletion_key(paths)
    possible = set(map(key, needed))
    return frozenset(each for each in paths if key(each) not in possible)


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


def _manifests_leaving(before: TableMetadata, gone: Iterable[int], storage: Storage) -> dict[str, ManifestFile]:
    """The manifests of snapshots that left; of one whose list is gone, somebody else has deleted all that was to be."""
    found: dict[str, ManifestFile] = {}
    for each in gone:
        try:
            found |= manifests_of(before, [before.snapshot(each)], storage)
        except LocationNotFoundError as error:
            LOG.warning("files of an expired snapshot are deleted by others, or stay behind: %s", error)
    return found


def _content_leaving(
    before: TableMetadata, manifests: Iterable[ManifestFile], storage: Storage
) -> Iterator[tuple[str, int]]:
    """The files of these manifests, with what they hold; one that is gone was deleted by others, after its files."""
    asked = list(manifests)
    try:
        parts = list(live_content(before, asked, storage))
    except LocationNotFoundError as error:
        if len(asked) > 1:
            for each in asked:
                yield from _content_leaving(before, [each], storage)
        else:
            LOG.warning("files of an expired snapshot are deleted by others, or stay behind: %s", error)
        return
    for paths, kinds in parts:
        yield from zip(paths, kinds, strict=True)


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
