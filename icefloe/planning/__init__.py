"""From a snapshot and a predicate to tasks: pruning, deletes, residuals, splits, incremental scans."""

from icefloe.planning.batches import ScanBatch
from icefloe.planning.changelog import ChangelogScan, ChangelogScanTask, ChangeType
from icefloe.planning.incremental import IncrementalAppendScan
from icefloe.planning.options import PRUNING_SWITCHES
from icefloe.planning.plan import Plan
from icefloe.planning.report import LoggingReporter, Reporter, ScanCounts, ScanReport, reporter_named
from icefloe.planning.scan import LocalPlanner, Planner, TableScan
from icefloe.planning.tasks import CombinedScanTask, FileScanTask, exact_count

__all__ = [
    "PRUNING_SWITCHES",
    "ChangeType",
    "ChangelogScan",
    "ChangelogScanTask",
    "CombinedScanTask",
    "FileScanTask",
    "IncrementalAppendScan",
    "LocalPlanner",
    "LoggingReporter",
    "Plan",
    "Planner",
    "Reporter",
    "ScanBatch",
    "ScanCounts",
    "ScanReport",
    "TableScan",
    "exact_count",
    "reporter_named",
]
