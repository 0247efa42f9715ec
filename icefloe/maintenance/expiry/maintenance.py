"""Expiry and the removal of orphans, under their names; `Maintenance` offers them beside the others."""

import datetime as dt
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import TracebackType
from typing import Literal, Self, overload

from icefloe import commit as cm, errors
from icefloe.maintenance.engines import engine_of
from icefloe.maintenance.expiry.expire_snapshots import (
    Cleanup,
    ExpiryRequest,
    expire_snapshots,
    plan_expiry,
)
from icefloe.maintenance.expiry.expired_files import ExpiredFiles, ExpiryPlan
from icefloe.maintenance.maintained_table import OfTable
from icefloe.maintenance.orphans.keys import Prefixes
from icefloe.maintenance.orphans.listing import FileList
from icefloe.maintenance.orphans.orphan_files import (
    MOST_STREAMED,
    OrphanFiles,
    OrphanPlan,
    OrphanRequest,
    PrefixMismatch,
    plan_orphan_files,
    remove_orphan_files,
)
from icefloe.maintenance.orphans.refusals import DAY_MS, check_age
from icefloe.planning import milliseconds
from icefloe.progress import Listener, listener_or_bar


class ExpireSnapshots:
    """Snapshots to drop, chosen one after the other; nothing happens before `commit`, or the end of a `with` block.

    Unlike PyIceberg, `commit` deletes the files, too, that only these snapshots needed.
    """

    def __init__(self, expire: Callable[[cm.Expire], ExpiredFiles]) -> None:
        self._expire = expire
        self._ids: tuple[int, ...] = ()
        self._older_than_ms: int | None = None
        self._retain_last: int | None = None

    def by_id(self, snapshot_id: int) -> Self:
        """Drop this snapshot."""
        return self.by_ids([snapshot_id])

    def by_ids(self, snapshot_ids: Iterable[int]) -> Self:
        """Drop these snapshots."""
        self._ids += tuple(snapshot_ids)
        return self

    def older_than(self, moment: int | dt.datetime) -> Self:
        """Drop snapshots older than a time, in milliseconds or as a datetime with a zone."""
        self._older_than_ms = milliseconds(moment)
        return self

    def retain_last(self, count: int) -> Self:
        """Keep this many snapshots of each branch in any case."""
        self._retain_last = count
        return self

    def commit(self) -> ExpiredFiles:
        """Do it; nothing if nothing was chosen."""
        if self._older_than_ms is None and self._retain_last is None and not self._ids:
            return ExpiredFiles()
        return self._expire(cm.Expire(self._older_than_ms, self._retain_last, self._ids))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.commit()


class CleanupMaintenance(OfTable):
    """What can be done about files that one table does not need."""

    @overload
    def expire_snapshots(self) -> ExpireSnapshots: ...

    @overload
    def expire_snapshots(
        self,
        older_than: int | dt.datetime | None = None,
        retain_last: int | None = None,
        snapshot_ids: Iterable[int] = (),
        *,
        by_retention: bool = False,
        delete_files: bool = True,
        clean_expired_metadata: bool = False,
        cleanup: Literal["all", "metadata", "none"] = "all",
        max_concurrent_deletes: int | None = None,
        grace: dt.timedelta | None = None,
        engine: object | None = None,
        progress: Listener | None = None,
        dry_run: Literal[False] = False,
    ) -> ExpiredFiles: ...

    @overload
    def expire_snapshots(
        self,
        older_than: int | dt.datetime | None = None,
        retain_last: int | None = None,
        snapshot_ids: Iterable[int] = (),
        *,
        by_retention: bool = False,
        delete_files: bool = True,
        clean_expired_metadata: bool = False,
        cleanup: Literal["all", "metadata", "none"] = "all",
        max_concurrent_deletes: int | None = None,
        grace: dt.timedelta | None = None,
        engine: object | None = None,
        progress: Listener | None = None,
        dry_run: Literal[True],
    ) -> ExpiryPlan: ...

    def expire_snapshots(
        self,
        older_than: int | dt.datetime | None = None,
        retain_last: int | None = None,
        snapshot_ids: Iterable[int] = (),
        *,
        by_retention: bool = False,
        delete_files: bool = True,
        clean_expired_metadata: bool = False,
        cleanup: Literal["all", "metadata", "none"] = "all",
        max_concurrent_deletes: int | None = None,
        grace: dt.timedelta | None = None,
        engine: object | None = None,
        progress: Listener | None = None,
        dry_run: bool = False,
    ) -> ExpiredFiles | ExpiryPlan | ExpireSnapshots:
        """Drop snapshots, and delete the files that only they needed.

        Args:
            older_than: drop snapshots older than this time, in milliseconds or as a datetime with a zone.
            retain_last: keep this many snapshots of each branch in any case.
            snapshot_ids: drop these snapshots.
            by_retention: drop what the table's own retention lets go (`history.expire.max-snapshot-age-ms` and its siblings),
                as any call with arguments does that names neither a time nor snapshots.
            delete_files: whether files that nothing needs any more are deleted; False is `cleanup="none"`.
            clean_expired_metadata: also drop schemas and partition specs that no remaining snapshot needs.
            cleanup: which files are deleted: all, only manifests, manifest lists and statistics, or none.
            max_concurrent_deletes: how many batches of 1,000 files are deleted at a time.
            grace: how long files of snapshots that were on no branch are left to a later expiry; by default 5 minutes where
                the catalog cannot see that a commit brings them back, and else not at all.
            engine: what reads manifests and deletes files: None for this process, a Spark session, or `"spark"`.
            progress: called for each step; a bar on a terminal without it.
            dry_run: return a plan: which snapshots, refs and files would go, and how many bytes.

        Snapshots that a branch or tag keeps stay, and so do younger ones that no branch leads to. Without any argument nothing
        happens yet: what is returned can be told what to drop, and does it on `commit`, as in PyIceberg. What an expiry that
        was killed has left is deleted, too.
        """
        ids = tuple(snapshot_ids)
        request = ExpiryRequest(
            cm.Expire(None if older_than is None else milliseconds(older_than), retain_last, ids),
            clean_expired_metadata,
            _cleanup(cleanup) if delete_files else Cleanup.NONE,
            engine_of(engine),
            max_concurrent_deletes,
            listener_or_bar(progress),
            None if grace is None else grace // dt.timedelta(milliseconds=1),
        )
        says_nothing = (older_than, retain_last, ids) == (None, None, ()) and request.cleanup is Cleanup.ALL
        if says_nothing and not (by_retention or clean_expired_metadata or dry_run):
            return ExpireSnapshots(lambda chosen: expire_snapshots(self._table, replace(request, change=chosen)))
        return (plan_expiry if dry_run else expire_snapshots)(self._table, request)

    @overload
    def remove_orphan_files(
        self,
        older_than: int | dt.datetime | None = None,
        location: str | None = None,
        *,
        equal_schemes: Mapping[str, str] | None = None,
        equal_authorities: Mapping[str, str] | None = None,
        prefix_mismatch_mode: str = "error",
        file_list: FileList | None = None,
        force: bool = False,
        max_files: int | None = None,
        max_concurrent_deletes: int | None = None,
        stream_results: bool = False,
        engine: object | None = None,
        progress: Listener | None = None,
        dry_run: Literal[False] = False,
    ) -> OrphanFiles: ...

    @overload
    def remove_orphan_files(
        self,
        older_than: int | dt.datetime | None = None,
        location: str | None = None,
        *,
        equal_schemes: Mapping[str, str] | None = None,
        equal_authorities: Mapping[str, str] | None = None,
        prefix_mismatch_mode: str = "error",
        file_list: FileList | None = None,
        force: bool = False,
        max_files: int | None = None,
        max_concurrent_deletes: int | None = None,
        stream_results: bool = False,
        engine: object | None = None,
        progress: Listener | None = None,
        dry_run: Literal[True],
    ) -> OrphanPlan: ...

    def remove_orphan_files(
        self,
        older_than: int | dt.datetime | None = None,
        location: str | None = None,
        *,
        equal_schemes: Mapping[str, str] | None = None,
        equal_authorities: Mapping[str, str] | None = None,
        prefix_mismatch_mode: str = "error",
        file_list: FileList | None = None,
        force: bool = False,
        max_files: int | None = None,
        max_concurrent_deletes: int | None = None,
        stream_results: bool = False,
        engine: object | None = None,
        progress: Listener | None = None,
        dry_run: bool = False,
    ) -> OrphanFiles | OrphanPlan:
        """Delete files beneath the table's location that nothing of the table needs.

        Args:
            older_than: only files older than this time, in milliseconds or as a datetime with a zone; 3 days ago by default,
                and at least 24 hours ago.
            location: where to look, in place of the table's location; one of its own folders.
            equal_schemes: schemes that are equal, such as `{"s3a,s3n": "s3"}`, which are in any case.
            equal_authorities: authorities that are equal, such as `{"nn1,nn2": "cluster"}`.
            prefix_mismatch_mode: what to do if a path is needed under another scheme or authority: `"error"` deletes nothing,
                `"ignore"` keeps such files, `"delete"` deletes them.
            file_list: the files in place of a listing: `file_path` and `last_modified`, and maybe `size`.
            force: take younger files, and a location that is not one of the table's.
            max_files: delete at most so many; the next run goes on.
            max_concurrent_deletes: how many batches of 1,000 files are deleted at a time.
            stream_results: name the first 20,000 orphans only.
            engine: what lists folders and deletes files: None for this process, a Spark session, or `"spark"`.
            progress: called for each step; a bar on a terminal without it.
            dry_run: return the orphans as a plan, and delete nothing.

        Refused if the table says `gc.enabled=false`, or if another table lives beneath the location.
        """
        now = cm.now_ms()
        limit = now - 3 * DAY_MS if older_than is None else milliseconds(older_than)
        check_age(limit, now, force=force)
        request = OrphanRequest(
            limit,
            engine_of(engine),
            listener_or_bar(progress),
            location,
            Prefixes.of(equal_schemes or {}, equal_authorities or {}),
            PrefixMismatch.named(prefix_mismatch_mode),
            file_list,
            force,
            max_files,
            max_concurrent_deletes,
            MOST_STREAMED if stream_results else None,
        )
        return (plan_orphan_files if dry_run else remove_orphan_files)(self._table, request)


def _cleanup(text: str) -> Cleanup:
    try:
        return Cleanup(text)
    except ValueError:
        raise errors.InvalidInputError(f"cleanup is {text!r}; it must be 'all', 'metadata' or 'none'") from None
