"""Maintenance procedures by name: `table.maintenance.expire_snapshots(...)`."""

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
    """Maintenance procedures of one table; each call is its own commit."""

    def health(self, branch: str | None = None, *, progress: Listener | None = None) -> TableHealth:
        """Return the health of the table: files, deletes and overlap by partition, manifests, snapshots and logs.

        Args:
            branch: the branch to check, `main` by default.
            progress: called for each manifest read.

        `str()` of the result is human-readable, `to_arrow()` has one row per partition. Only manifests are read.
        """
        return health(self._table, branch, progress)

    def storage_layout(self, *, progress: Listener | None = None) -> StorageLayout:
        """Return the storage used by current rows, by history alone, by metadata, and by unreferenced files.

        Reads the manifests of all snapshots and lists the table's location.
        """
        return storage_layout(self._table, progress)

    def storage_by_partition(self) -> list[PartitionShare]:
        """Return the size of data and delete files by partition, for current rows and history alone, largest first."""
        return storage_by_partition(self._table)

    def storage_by_ref(self) -> list[RefShare]:
        """Return the size of data and delete files by branch and tag, in total and exclusively, largest first."""
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
        """Run the maintenance that the table's health calls for, in the right order, and report results, costs and remaining work.

        Args:
            policy: `maintenance.*` properties for this run, which override those of the table, such as
                `{"maintenance.expire.enabled": False}`.
            budget: maximum bytes of data files to rewrite, `maintenance.rewrite.max-bytes` by default.
            max_time: time limit after which no step and no part of a rewrite is started; running work is finished.
            dry_run: return the plan: each step with its reason.
            engine: what runs the heavy part: None for this process, `"spark"` or a Spark session.
            progress: called for each manifest read for the plan, and for each step of the procedures.

        Each step works on the latest state of the table; a failed step does not prevent the others.
        """
        plan = plan_maintenance(self._table, policy, budget, progress)
        return plan if dry_run else plan.run(engine, progress, max_time)

    def repair(
        self, branch: str | None = None, *, level: Level | str = Level.DATA, progress: Listener | None = None
    ) -> RepairPlan:
        """Verify a branch and return a plan of possible repairs, without changing anything.

        Args:
            branch: the branch to repair, `main` by default.
            level: the depth of verification, as in `table.verify`.
            progress: called for each step of the verification.

        `plan.apply(accept=[...])` runs the repairs. Repairs that change rows, such as `"missing-data-files"`, must be
        accepted by name. A tag preserves the previous head, and no files are deleted.
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
        """Rewrite data and delete manifests to the target size, sorted by partition, in one commit.

        Args:
            spec_id: only manifests of this partition spec; by default those of each spec separately.
            sort_by: names of partition fields to sort entries by first; by default in the order of the spec.
            choose: selects the manifests to rewrite; all by default.
            branch: the branch to change, `main` by default.
            dry_run: return a plan instead.
            progress: called for each manifest completed.
            snapshot_properties: properties to add to the snapshot summary.

        The set of files stays the same, and entries keep their sequence numbers and row ids. Does nothing if sizes and
        order are already good.
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
        """Compute the distinct counts of columns in one pass, and commit a statistics file with their sketches.

        Args:
            snapshot_id: the snapshot to read instead of the current one.
            columns: names of primitive columns, with dots for nested ones; by default all top-level primitive columns.
            engine: what reads the rows: None for this process, `"spark"` or a Spark session.
            progress: called for each completed part of the table.

        A previous statistics file of the snapshot is deleted, unless the table has `gc.enabled=false`.
        """
        return compute_table_stats(self._table, snapshot_id, columns, engine=engine, progress=progress)

    def compute_partition_stats(self, snapshot_id: int | None = None) -> ComputedPartitionStats:
        """Count the files and rows of each partition and commit a partition statistics file, reading only manifests.

        Args:
            snapshot_id: the snapshot to read instead of the current one.

        An existing file of the snapshot is kept. If an earlier snapshot has one, only the changes since are read.
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
        """Stage the metadata for a copy of the table at another location, and list the files to copy; nothing is committed.

        Args:
            source_prefix: the common prefix of all paths of the table, such as its location.
            target_prefix: the prefix that replaces it in the copy.
            start_version: a metadata file of the log, by name or location, whose files are already at the target.
            end_version: the last metadata file to copy; by default the current one.
            staging_location: where rewritten metadata files are stored; by default a new folder next to the metadata.
            create_file_list: whether to write the list of files to copy; it is written last, as a sign of completion.
            engine: what does the work: None for this process, `"spark"` or a Spark session.
            progress: called for each step; by default a progress bar is shown on terminals.

        Once all listed files are copied, register the copy with `catalog.register_table(name, result.metadata_location)`.
        """
        request = PathRequest(
            source_prefix, target_prefix, start_version, end_version, staging_location, create_file_list
        )
        return rewrite_table_path(self._table, request, engine_of(engine), progress)
