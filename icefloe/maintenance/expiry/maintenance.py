"""Snapshot expiry and orphan file removal, as methods of `Maintenance`."""

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
    """A builder that selects snapshots to expire; nothing happens before `commit` or the end of a `with` block.

    Unlike in PyIceberg, `commit` also deletes the files that only these snapshots reference.
    """

    def __init__(self, expire: Callable[[cm.Expire], ExpiredFiles]) -> None:
        self._expire = expire
        self._ids: tuple[int, ...] = ()
        self._older_than_ms: int | None = None
        self._retain_last: int | None = None

    def by_id(self, snapshot_id: int) -> Self:
        """Expire this snapshot."""
        return self.by_ids([snapshot_id])

    def by_ids(self, snapshot_ids: Iterable[int]) -> Self:
        """Expire these snapshots."""
        self._ids += tuple(snapshot_ids)
        return self

    def older_than(self, moment: int | dt.datetime) -> Self:
        """Expire snapshots older than a time, in milliseconds or as a datetime with a time zone."""
        self._older_than_ms = milliseconds(moment)
        return self

    def retain_last(self, count: int) -> Self:
        """Always keep this many snapshots of each branch."""
        self._retain_last = count
        return self

    def commit(self) -> ExpiredFiles:
        """Expire the selected snapshots; does nothing if none were selected."""
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
    """Procedures that remove files that a table does not need."""

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
        """Expire snapshots and delete the files that only they reference.

        Args:
            older_than: expire snapshots older than this time, in milliseconds or as a datetime with a time zone.
            retain_last: always keep this many snapshots of each branch.
            snapshot_ids: expire these snapshots.
            by_retention: expire according to the table's retention (`history.expire.max-snapshot-age-ms` and related
                properties); implied by any call with arguments but neither a time nor snapshots.
            delete_files: whether to delete files that are no longer referenced; False is the same as `cleanup="none"`.
            clean_expired_metadata: also remove schemas and partition specs that no remaining snapshot uses.
            cleanup: which files to delete: all, only manifests, manifest lists and statistics (`"metadata"`), or none.
            max_concurrent_deletes: number of concurrent batches of 1,000 deletes.
            grace: grace period for files of snapshots that were on no branch, which are left to a later expiry; by default
                5 minutes if the catalog cannot detect that a commit restores them, otherwise none.
            engine: what reads manifests and deletes files: None for this process, `"spark"` or a Spark session.
            progress: called for each step; by default a progress bar is shown on terminals.
            dry_run: return a plan with the snapshots, refs, files and bytes to remove.

        Snapshots retained by a branch or tag are kept, and so are younger ones that are on no branch. A call without
        arguments does nothing yet and returns a builder that expires the selected snapshots on `commit`, as in PyIceberg.
        Also finishes earlier expiries that were killed.
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
        """Delete files under the table's location that the table does not reference.

        Args:
            older_than: only files older than this time, in milliseconds or as a datetime with a time zone; 3 days ago by
                default, and at least 24 hours ago.
            location: where to search instead of the table's location; must be one of its own folders.
            equal_schemes: schemes to treat as equal, such as `{"s3a,s3n": "s3"}` (always included).
            equal_authorities: authorities to treat as equal, such as `{"nn1,nn2": "cluster"}`.
            prefix_mismatch_mode: what to do if a path is referenced with another scheme or authority: `"error"` deletes
                nothing, `"ignore"` keeps such files, `"delete"` deletes them.
            file_list: files to use instead of a listing: `file_path`, `last_modified` and optionally `size`.
            force: allow younger files, and a location that does not belong to the table.
            max_files: maximum number of files to delete; the next run continues.
            max_concurrent_deletes: number of concurrent batches of 1,000 deletes.
            stream_results: report only the first 20,000 orphan files.
            engine: what lists folders and deletes files: None for this process, `"spark"` or a Spark session.
            progress: called for each step; by default a progress bar is shown on terminals.
            dry_run: return the orphan files as a plan without deleting them.

        Raises an error if the table has `gc.enabled=false`, or if another table is under the location.
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
        raise errors.InvalidInputError(f"cleanup must be 'all', 'metadata' or 'none', not {text!r}") from None
