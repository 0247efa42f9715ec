"""The procedures that keep a table healthy, under their names: `table.maintenance.expire_snapshots(...)`."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Literal, overload

from icefloe.maintenance.care.health import TableHealth, health
from icefloe.maintenance.care.maintain import MaintenancePlan, MaintenanceReport, plan_maintenance
from icefloe.maintenance.care.policy import MaintenancePolicy
from icefloe.maintenance.care.repair import RepairPlan, plan_repair
from icefloe.maintenance.copies.table_path import PathRequest, RewrittenTablePath, rewrite_table_path
from icefloe.maintenance.deletes.maintenance import DeleteMaintenance
from icefloe.maintenance.engines import engine_of
from icefloe.maintenance.expiry.maintenance import CleanupMaintenance
from icefloe.maintenance.files.layout import (
    PartitionShare,
    RefShare,
    StorageLayout,
    storage_by_partition,
    storage_by_ref,
    storage_layout,
)
from icefloe.maintenance.manifests import (
    RewriteManifestsPlan,
    RewrittenManifests,
    manifest_choice,
    plan_manifests,
    rewrite_manifests,
)
from icefloe.maintenance.rewrite.maintenance import RewriteMaintenance
from icefloe.maintenance.statistics.partitions import ComputedPartitionStats, compute_partition_stats
from icefloe.maintenance.statistics.table import ComputedTableStats, compute_table_stats
from icefloe.manifests import ManifestFile
from icefloe.progress import Listener
from icefloe.verification import Level


class Maintenance(RewriteMaintenance, DeleteMaintenance, CleanupMaintenance):
    """What can be done for the health of one table; every call is its own commit."""

    def health(self, branch: str | None = None, *, progress: Listener | None = None) -> TableHealth:
        """How healthy the table is: files, deletes and overlap by partition, manifests, snapshots and logs.

        Args:
            branch: the branch to look at, `main` by default.
            progress: called for each manifest that is read.

        `str()` of the answer is made to be read, `to_arrow()` has one row for each partition. Only manifests are read.
        """
        return health(self._table, branch, progress)

    def storage_layout(self, *, progress: Listener | None = None) -> StorageLayout:
        """What the table's files take: of the current rows, of history alone, of metadata, and of files that nothing names.

        Manifests of all snapshots are read, and the table's location is listed.
        """
        return storage_layout(self._table, progress)

    def storage_by_partition(self) -> list[PartitionShare]:
        """What data and delete files take in each partition, of the current rows and of history alone; the largest first."""
        return storage_by_partition(self._table)

    def storage_by_ref(self) -> list[RefShare]:
        """What data and delete files take of each branch and tag, and those that no other one has; the largest first."""
        return storage_by_ref(self._table)

    @overload
    def maintain(
        self,
        policy: MaintenancePolicy | Mapping[str, object] | None = None,
        budget: int | None = None,
        *,
        max_time: timedelta | None = None,
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
        max_time: timedelta | None = None,
        dry_run: Literal[True],
        engine: object | None = None,
        progress: Listener | None = None,
    ) -> MaintenancePlan: ...

    def maintain(
        self,
        policy: MaintenancePolicy | Mapping[str, object] | None = None,
        budget: int | None = None,
        *,
        max_time: timedelta | None = None,
        dry_run: bool = False,
        engine: object | None = None,
        progress: Listener | None = None,
    ) -> MaintenanceReport | MaintenancePlan:
        """Do what pays by the table's health, in the right order, and report what was done, what it cost and what is left.

        Args:
            policy: properties `maintenance.*` for this run, written over those of the table, such as
                `{"maintenance.expire.enabled": False}`.
            budget: how many bytes of data files may be rewritten, `maintenance.rewrite.max-bytes` by default.
            max_time: when it is over nothing more is begun, neither a step nor a part of a rewrite; what is under way ends.
            dry_run: return the plan: each step with what health says about it.
            engine: what does the heavy part: None for this process, `"spark"` or a Spark session.
            progress: called for each manifest that is read for the plan, and for each step of the procedures.

        Each step works on the newest state of the table; one that fails does not keep the others from being done.
        """
        plan = plan_maintenance(self._table, policy, budget, progress)
        return plan if dry_run else plan.run(engine, progress, max_time)

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
