"""From a snapshot and a predicate to tasks: pruning, deletes, residuals, splits, incremental scans."""

from icefloe.planning.tasks import CombinedScanTask, FileScanTask, exact_count

__all__ = [
    "CombinedScanTask",
    "FileScanTask",
    "exact_count",
]
