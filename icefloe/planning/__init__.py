"""From a snapshot and a predicate to tasks: pruning, deletes, residuals, splits, incremental scans."""

from icefloe.planning.batches import ScanBatch
from icefloe.planning.counted import counted_tasks
from icefloe.planning.delete_files import WANTED_OF_DELETES, scopes_of
from icefloe.planning.delete_index import DeleteIndex
from icefloe.planning.equality_pruning import KeyFacts, key_columns, may_apply
from icefloe.planning.incremental import ChangelogScan, ChangelogScanTask, ChangeType, IncrementalAppendScan
from icefloe.planning.manifest_pruning import ManifestPruning, PrunedFiles
from icefloe.planning.named_tasks import tasks_of_files
from icefloe.planning.options import PRUNING_SWITCHES, default_workers, scan_options
from icefloe.planning.packing import pack, pack_from_end
from icefloe.planning.partitions import Numbers, PartitionGroups, PartitionKey, group_partitions, number_partitions
from icefloe.planning.plan import Plan, PlanRequest, Progress, Spread, manifests_of_plan
from icefloe.planning.pruning import sequence_numbers
from icefloe.planning.reading import ManifestSource, ReplacedColumns, differing_types, without_values
from icefloe.planning.report import (
    LOGGING,
    CallingReporter,
    LoggingReporter,
    Reporter,
    ScanCounts,
    ScanReport,
    deliver,
    reporter_named,
)
from icefloe.planning.scan import (
    ALL_COLUMNS,
    Planner,
    ServicePlanner,
    TableScan,
    check_names,
    choose_snapshot,
    milliseconds,
    parsed_filter,
    plan_entries,
    single_file_deletes,
)
from icefloe.planning.tasks import CombinedScanTask, FileScanTask, cut_task, pack_tasks, split_task
from icefloe.planning.vector_deletes import PathTable
