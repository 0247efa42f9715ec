"""Table maintenance: what may be deleted and what should be rewritten, run by any engine."""

from icefloe.maintenance.care.health import HEALTH_SCHEMA, PartitionHealth, TableHealth
from icefloe.maintenance.care.lost_pointer import LostTable, find_lost_table
from icefloe.maintenance.care.maintain import MaintenancePlan, MaintenanceReport, StepOutcome, StepReport
from icefloe.maintenance.care.policy import MaintenancePolicy, Step
from icefloe.maintenance.care.remedies import REMEDIES, Remedy
from icefloe.maintenance.care.repair import RepairPlan, RepairReport
from icefloe.maintenance.care.repair_plan import RepairKind
from icefloe.maintenance.copies.reachable_deletes import DeletedReachableFiles, delete_contents, reachable_contents
from icefloe.maintenance.engines import Item, MaintenanceEngine, Result, Threads, engine_of
from icefloe.maintenance.files.layout import Share, StorageLayout
from icefloe.maintenance.files.reachable import ReachableFiles, reachable_files
from icefloe.maintenance.maintenance import Maintenance
from icefloe.maintenance.manifests import RewriteManifestsPlan, RewrittenManifests
from icefloe.maintenance.options import OptionValue, optional, options_of
from icefloe.maintenance.rewrite.curve_keys import ByteKeys, Curve, CurveColumn, RankKeys
from icefloe.maintenance.rewrite.curves import CurveOrder
from icefloe.maintenance.rewrite.groups import (
    GroupRewrite,
    RewrittenGroup,
    joined,
    order_keys,
    parts_of,
    rewrite_group,
    rewrite_part,
    sample_of,
)
from icefloe.maintenance.rewrite.job import RewriteGroup
from icefloe.maintenance.rewrite.plan import RewritePlan, RewriteRequest, plan_rewrite
from icefloe.maintenance.rewrite.ranges import RangedRewrite
from icefloe.maintenance.rewrite.result import GroupOutcome, GroupResult, RewriteResult
from icefloe.maintenance.rewrite.run import run_rewrite
from icefloe.maintenance.rewrite.sampling import Sample, Tasks, splits_of
from icefloe.maintenance.rewrite.strategies import ColumnOrder, RowOrder
