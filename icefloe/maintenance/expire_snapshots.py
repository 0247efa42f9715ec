"""Expiry of snapshots with their files: what was reachable before the commit, and is not by metadata read after it.

Before is what the commit was prepared on, not what the handle knew when it was asked for. Once the commit happened, nothing
is an error any more: files that cannot be told to be unneeded stay behind, with a note in the log.
"""

from collections.abc import Collection, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Protocol, Self

from icefloe.commit import Change, CleanMetadata, Committed, Expire, Outcome
from icefloe.errors import LocationNotFoundError
from icefloe.maintenance.ownership import LOG, Ownership, delete_quietly, note_foreign
from icefloe.maintenance.reachable import live_content, manifest_lists_of, manifests_of, statistics_of
from icefloe.manifests import FileContent, ManifestFile
from icefloe.metadata import TableMetadata
from icefloe.storage import Storage, deletion_key

_ATTEMPTS = 3


class Changes(Protocol):
    """Changes of a table that are committed together."""

    def add(self, change: Change, /) -> object:
        """One more change."""

    def commit(self) -> Committed:
        """Commit all changes, or fail as a whole."""

    def try_commit(self) -> Outcome:
        """The same, with the outcome as a value instead of an error."""


class MaintainedTable(Protocol):
    """A handle of a table."""

    def name(self) -> tuple[str, ...]:
        """Its identifier."""

    @property
    def metadata(self) -> TableMetadata:
        """The metadata as the handle knows it."""

    @property
    def storage(self) -> Storage:
        """Where its files are."""

    def refresh(self) -> Self:
        """The same handle at the newest state."""

    def transaction(self) -> AbstractContextManager[Changes]:
        """Changes that are committed together, when the block ends at the latest."""


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
    after = done.state.metadata.snapshots_by_id
    expired = tuple(snapshot.snapshot_id for snapshot in before.snapshots if snapshot.snapshot_id not in after)
    if not expired or not delete_files:
        return ExpiredFiles(expired)
    try:
        unneeded, foreign = _unneeded_now(table, before, expired)
    except Exception as error:  # noqa: BLE001 - the commit happened, whatever is the matter with files
        LOG.warning("files of %d expired snapshots stay behind: %s", len(expired), error)
        return ExpiredFiles(expired, problem=str(error))
    return replace(_delete(unneeded, expired, table.storage), left_alone=foreign)


def _unneeded_now(
    table: MaintainedTable, before: TableMetadata, expired: tuple[int, ...], attempts: int = _ATTEMPTS
) -> tuple[_Unneeded, tuple[str, ...]]:
    """What the table does not need any more, as it is now, and what of that is not its own."""
    # Others may have committed meanwhile, so what is still needed is read anew (FAILURES, rule 8).
    after = table.refresh().metadata
    try:
        unneeded = _unneeded(before, after, expired, table.storage)
    except LocationNotFoundError:
        # What is missing may have expired since the table was read, with files that others delete.
        if attempts == 1:
            raise
        return _unneeded_now(table, before, expired, attempts - 1)
    return _owned(unneeded, Ownership.of(after, None, before))


def _unneeded(before: TableMetadata, after: TableMetadata, expired: Iterable[int], storage: Storage) -> _Unneeded:
    needed = manifests_of(after, after.snapshots, storage)
    leaving = _manifests_leaving(before, expired, storage)
    manifests = {path: leaving[path] for path in _certain(leaving, needed)}
    doomed = dict(_content_leaving(before, manifests.values(), storage))
    key = deletion_key(doomed)
    content = {key(path): (path, holding) for path, holding in doomed.items()}
    if content:
        for paths, _ in live_content(after, needed.values(), storage):
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
    return frozenset(path for path in paths if key(path) not in possible)


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


def _manifests_leaving(before: TableMetadata, expired: Iterable[int], storage: Storage) -> dict[str, ManifestFile]:
    """The manifests of expired snapshots; of one whose list is missing, somebody else has deleted all that was to be."""
    manifests: dict[str, ManifestFile] = {}
    for snapshot_id in expired:
        try:
            manifests |= manifests_of(before, [before.snapshot(snapshot_id)], storage)
        except LocationNotFoundError as error:
            LOG.warning("files of an expired snapshot are deleted by others, or stay behind: %s", error)
    return manifests


def _content_leaving(
    before: TableMetadata, manifests: Iterable[ManifestFile], storage: Storage
) -> Iterator[tuple[str, int]]:
    """The files of these manifests, with what they hold; a missing one was deleted by others, after its files."""
    leaving = list(manifests)
    try:
        parts = list(live_content(before, leaving, storage))
    except LocationNotFoundError as error:
        if len(leaving) > 1:
            for manifest in leaving:
                yield from _content_leaving(before, [manifest], storage)
        else:
            LOG.warning("files of an expired snapshot are deleted by others, or stay behind: %s", error)
        return
    for paths, contents in parts:
        yield from zip(paths, contents, strict=True)


def _delete(unneeded: _Unneeded, expired: tuple[int, ...], storage: Storage) -> ExpiredFiles:
    """Delete what leads to others last, so that an interrupted expiry leaves nothing that points to nothing."""
    why = "needed by no snapshot any more"
    stayed = delete_quietly(storage, unneeded.content, why)
    deleted = [content for path, content in unneeded.content.items() if path not in stayed]
    counts = [
        len(group) - len(delete_quietly(storage, group, why))
        for group in (unneeded.manifests, unneeded.manifest_lists, unneeded.statistics)
    ]
    return ExpiredFiles(expired, *map(deleted.count, FileContent), *counts)
