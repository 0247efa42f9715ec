"""Keeping a table healthy: what may be deleted, and what should be rewritten; decided here, run by any engine."""

from icefloe.maintenance.curve_keys import ByteKeys, Curve, CurveColumn, RankKeys
from icefloe.maintenance.curves import SAMPLE_ROWS, CurveOrder
from icefloe.maintenance.engines import Item, MaintenanceEngine, Result, Threads, engine_of
from icefloe.maintenance.group_rewrite import GroupRewrite, RewrittenGroup
from icefloe.maintenance.health import HEALTH_SCHEMA, PartitionHealth, TableHealth
from icefloe.maintenance.maintain import MaintenancePlan, MaintenanceReport, StepOutcome, StepReport
from icefloe.maintenance.maintenance import Maintenance
from icefloe.maintenance.manifests import RewriteManifestsPlan, RewrittenManifests
from icefloe.maintenance.ownership import Ownership, delete_own, delete_quietly
from icefloe.maintenance.policy import MaintenancePolicy, Step
from icefloe.maintenance.reachable import ReachableFiles, reachable_files
from icefloe.maintenance.reachable_deletes import DeletedReachableFiles, delete_contents, reachable_contents
from icefloe.maintenance.repair import RepairPlan, RepairReport
from icefloe.maintenance.repair_plan import RepairKind
from icefloe.maintenance.rewrite_job import RewriteGroup
from icefloe.maintenance.rewrite_plan import RewritePlan
from icefloe.maintenance.rewrite_result import GroupOutcome, GroupResult, RewriteResult
from icefloe.maintenance.strategies import ColumnOrder, RowOrder
