"""The procedures that keep a table healthy, under their names: `table.maintenance.expire_snapshots(...)`."""

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, overload

from icefloe.commit import Expire, now_ms
from icefloe.errors import InvalidInputError
from icefloe.expressions import Expression
from icefloe.maintenance.delete_maintenance import DeleteMaintenance
from icefloe.maintenance.engines import engine_of
from icefloe.maintenance.expire_snapshots import (
    Cleanup,
    ExpiryRequest,
    expire_snapshots,
    plan_expiry,
)
from icefloe.maintenance.expired_files import ExpiredFiles, ExpiryPlan
from icefloe.maintenance.expiry_builder import ExpireSnapshots
from icefloe.maintenance.health import TableHealth, health
from icefloe.maintenance.maintain import MaintenancePlan, MaintenanceReport, plan_maintenance
from icefloe.maintenance.manifests import (
    RewriteManifestsPlan,
    RewrittenManifests,
    manifest_choice,
    plan_manifests,
    rewrite_manifests,
)
from icefloe.maintenance.options import OptionValue
from icefloe.maintenance.orphan_files import (
    MOST_STREAMED,
    OrphanFiles,
    OrphanPlan,
    OrphanRequest,
    PrefixMismatch,
    plan_orphan_files,
    remove_orphan_files,
)
from icefloe.maintenance.orphan_keys import Prefixes
from icefloe.maintenance.orphan_listing import FileList
from icefloe.maintenance.orphan_refusals import DAY_MS, check_age
from icefloe.maintenance.partition_statistics import ComputedPartitionStats, compute_partition_stats
from icefloe.maintenance.policy import MaintenancePolicy
from icefloe.maintenance.repair import RepairPlan, plan_repair
from icefloe.maintenance.rewrite_plan import RewritePlan, plan_rewrite
from icefloe.maintenance.rewrite_result import RewriteResult
from icefloe.maintenance.table_path import PathRequest, RewrittenTablePath, rewrite_table_path
from icefloe.maintenance.table_statistics import ComputedTableStats, compute_table_stats
from icefloe.manifests import ManifestFile
from icefloe.planning import milliseconds
from icefloe.progress import Listener, listener_or_bar
from icefloe.verification import Level


class Maintenance(DeleteMaintenance):
    """What can be done for the health of one table; every call is its own commit."""

    def health(self, branch: str | None = None, *, progress: Listener | None = None) -> TableHealth:
        """How healthy the table is: files, deletes and overlap by partition, manifests, snapshots and logs.

        Args:
            branch: the branch to look at, `main` by default.
            progress: called for each manifest that is read.

        `str()` of the answer is made to be read, `to_arrow()` has one row for each partition. Only manifests are read.
        """
        return health(self._table, branch, progress)

    @overload
    def maintain(
        self,
        policy: MaintenancePolicy | Mapping[str, object] | None = None,
        budget: int | None = None,
        *,
        dry_run: Literal[False] = False,
        engine: object | None = None,
        progress: Listener | None = None,
    ) -> MaintenanceReport: ...

    @overload
    def maintain(
        self,
        policy: MaintenancePolicy | Mapping[str, object] | None = None,
        budget: int | None = None,
        *,
        dry_run: Literal[True],
        engine: object | None = None,
        progress: Listener | None = None,
    ) -> MaintenancePlan: ...

    def maintain(
        self,
        policy: MaintenancePolicy | Mapping[str, object] | None = None,
        budget: int | None = None,
        *,
        dry_run: bool = False,
        engine: object | None = None,
        progress: Listener | None = None,
    ) -> MaintenanceReport | MaintenancePlan:
        """Do what pays by the table's health, in the right order, and report what was done, what it cost and what is left.

        Args:
            policy: properties `maintenance.*` for this run, written over those of the table, such as
                `{"maintenance.expire.enabled": False}`.
            budget: how many bytes of data files may be rewritten, `maintenance.rewrite.max-bytes` by default.
            dry_run: return the plan: each step with what health says about it.
            engine: what does the heavy part: None for this process, `"spark"` or a Spark session.
            progress: called for each step of the procedures.

        Each step works on the newest state of the table; one that fails does not keep the others from being done.
        """
        plan = plan_maintenance(self._table, policy, budget)
        return plan if dry_run else plan.run(engine, progress)

    def repair(
        self, branch: str | None = None, *, level: Level | str = Level.DATA, progress: Listener | None = None
    ) -> RepairPlan:
        """Look for what is wrong with a branch, and return a plan of what can be done about it; nothing is changed yet.

        Args:
            branch: the branch to repair, `main` by default.
            level: how deep to look, as in `table.verify`.
            progress: called for each step of the check.

        `plan.apply(accept=[...])` repairs. What changes rows, such as `"missing-data-files"`, is done only if it is accepted
        by name; a tag keeps the head as it was, and no file is deleted.
        """
        return plan_repair(self._table, branch, level, progress)

    @overload
    def rewrite_manifests(
        self,
        spec_id: int | None = None,
        sort_by: Iterable[str] | None = None,
        choose: Callable[[ManifestFile], bool] | None = None,
        *,
        branch: str | None = None,
        dry_run: Literal[False] = False,
        progress: Listener | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
    ) -> RewrittenManifests: ...

    @overload
    def rewrite_manifests(
        self,
        spec_id: int | None = None,
        sort_by: Iterable[str] | None = None,
        choose: Callable[[ManifestFile], bool] | None = None,
        *,
        branch: str | None = None,
        dry_run: Literal[True],
        progress: Listener | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
    ) -> RewriteManifestsPlan: ...

    def rewrite_manifests(
        self,
        spec_id: int | None = None,
        sort_by: Iterable[str] | None = None,
        choose: Callable[[ManifestFile], bool] | None = None,
        *,
        branch: str | None = None,
        dry_run: bool = False,
        progress: Listener | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
    ) -> RewrittenManifests | RewriteManifestsPlan:
        """Write manifests anew, of the right size and sorted by partition, of data and of deletes in one commit.

        Args:
            spec_id: only manifests of this partition spec; those of all specs, each for itself, if not given.
            sort_by: names of partition fields by which entries are sorted first; the order of the spec if not given.
            choose: which manifests are written anew; all of them if not given.
            branch: the branch whose manifests they are, `main` if not given.
            dry_run: return a plan instead.
            progress: called for each manifest that is done.
            snapshot_properties: more for the summary of the snapshot.

        No file comes or goes, and every entry keeps its numbers. Nothing happens if sizes and order are good already.
        """
        choice = manifest_choice(spec_id, sort_by, choose)
        if dry_run:
            return plan_manifests(self._table, choice, branch)
        return rewrite_manifests(self._table, choice, branch, snapshot_properties, progress)

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
            Expire(None if older_than is None else milliseconds(older_than), retain_last, ids),
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
        now = now_ms()
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

    def compute_table_stats(
        self,
        snapshot_id: int | None = None,
        columns: Sequence[str] | None = None,
        *,
        engine: object | None = None,
        progress: Listener | None = None,
    ) -> ComputedTableStats:
        """Count the distinct values of columns in one pass, and commit a statistics file with their sketches.

        Args:
            snapshot_id: the snapshot to read, in place of the current one.
            columns: names of primitive columns, nested ones with dots; all primitive columns at the top without it.
            engine: what reads the rows: this process, or `"spark"` or a Spark session.
            progress: called for each part of the table that is done.

        A file that the snapshot had before is deleted, unless the table says `gc.enabled=false`.
        """
        return compute_table_stats(self._table, snapshot_id, columns, engine=engine, progress=progress)

    def compute_partition_stats(self, snapshot_id: int | None = None) -> ComputedPartitionStats:
        """Count the files and rows of each partition, and commit a partition statistics file; only manifests are read.

        Args:
            snapshot_id: the snapshot to count, in place of the current one.

        A snapshot that has such a file keeps it. If an earlier one has, only what changed since is read.
        """
        return compute_partition_stats(self._table, snapshot_id)

    @overload
    def rewrite_data_files(
        self,
        strategy: str | None = None,
        sort_order: str | None = None,
        where: str | Expression | None = None,
        options: Mapping[str, OptionValue] | None = None,
        branch: str | None = None,
        *,
        engine: object | None = None,
        dry_run: Literal[False] = False,
        progress: Listener | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        **keywords: OptionValue | None,
    ) -> RewriteResult: ...

    @overload
    def rewrite_data_files(
        self,
        strategy: str | None = None,
        sort_order: str | None = None,
        where: str | Expression | None = None,
        options: Mapping[str, OptionValue] | None = None,
        branch: str | None = None,
        *,
        engine: object | None = None,
        dry_run: Literal[True],
        progress: Listener | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        **keywords: OptionValue | None,
    ) -> RewritePlan: ...

    def rewrite_data_files(
        self,
        strategy: str | None = None,
        sort_order: str | None = None,
        where: str | Expression | None = None,
        options: Mapping[str, OptionValue] | None = None,
        branch: str | None = None,
        *,
        engine: object | None = None,
        dry_run: bool = False,
        progress: Listener | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        **keywords: OptionValue | None,
    ) -> RewriteResult | RewritePlan:
        """Rewrite data files that are too small, too large or full of deleted rows; no row changes, and none its id.

        Args:
            strategy: `"binpack"`, which leaves rows in their order, or `"sort"`.
            sort_order: what to sort by, such as `"ts DESC NULLS LAST, bucket(16, id)"`; by default the table's order.
            where: only files that may hold a matching row, as SQL text or as an expression; they are rewritten whole.
            options: options by Java's names, such as `{"min-input-files": "2"}` (docs/maintenance.md).
            branch: the branch to change, in place of `main`.
            engine: None for this process, `"spark"` or a Spark session.
            dry_run: return the plan, which can be shown, saved and run, and do nothing.
            progress: called with how far it is.
            snapshot_properties: properties for the summaries of the new snapshots.
            **keywords: options as keywords, such as `min_input_files=2`.
        """
        plan = plan_rewrite(
            self._table,
            strategy=strategy,
            sort_order=sort_order,
            where=where,
            options=options,
            keywords=keywords,
            branch=branch,
            snapshot_properties=snapshot_properties,
        )
        return plan if dry_run else plan.run(engine, progress)

    compact = rewrite_data_files

    def rewrite_table_path(
        self,
        source_prefix: str,
        target_prefix: str,
        start_version: str | None = None,
        end_version: str | None = None,
        staging_location: str | None = None,
        create_file_list: bool = True,
        *,
        engine: object | None = None,
        progress: Listener | None = None,
    ) -> RewrittenTablePath:
        """Stage what a copy of the table beneath another location needs, and list what is to be copied; nothing is committed.

        Args:
            source_prefix: what all paths of the table begin with, such as its location.
            target_prefix: what they begin with in the copy.
            start_version: a metadata file of the log, by name or location, whose files are at the target already.
            end_version: the metadata file that the copy ends with; by default the current one.
            staging_location: where files with other paths in them are kept; by default a new folder beside the metadata.
            create_file_list: whether the list of what is to be copied is written; it comes last, so it means done.
            engine: what does the work: None is this process, `"spark"` or a Spark session is Spark.
            progress: called for each step; without it, a bar on terminals.

        Once all files of the list are copied, `catalog.register_table(name, result.metadata_location)` gives the copy a name.
        """
        request = PathRequest(
            source_prefix, target_prefix, start_version, end_version, staging_location, create_file_list
        )
        return rewrite_table_path(self._table, request, engine_of(engine), progress)


def _cleanup(text: str) -> Cleanup:
    try:
        return Cleanup(text)
    except ValueError:
        raise InvalidInputError(f"cleanup is {text!r}; it must be 'all', 'metadata' or 'none'") from None
