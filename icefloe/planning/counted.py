"""Reports of scans that a service plans: what it chose is counted as its tasks are handed out."""

import time
from collections.abc import Generator
from contextlib import closing

from icefloe.planning.pruning import shown_filter
from icefloe.planning.report import ScanCounts, ScanReport, deliver
from icefloe.planning.scan import TableScan
from icefloe.planning.tasks import FileScanTask


def counted_tasks(scan: TableScan, tasks: Generator[FileScanTask, None, None]) -> Generator[FileScanTask, None, None]:
    """The tasks, with a report when they end, however they end; of manifests and files that were skipped it knows nothing."""
    counts, started, first, is_complete = ScanCounts(), time.perf_counter(), None, False
    try:
        with closing(tasks):
            for task in tasks:
                if first is None:
                    first = time.perf_counter() - started
                counts.result_data_files += 1
                counts.result_bytes += task.file.file_size_in_bytes
                counts.result_delete_files += len(task.deletes)
                counts.result_delete_bytes += sum(file.file_size_in_bytes for file in task.deletes)
                yield task
            is_complete = True
    finally:
        snapshot = scan.snapshot()
        report = ScanReport(
            scan.metadata.table_uuid,
            None if snapshot is None else snapshot.snapshot_id,
            scan.schema.schema_id,
            shown_filter(scan.bound_filter),
            (*scan.table_columns().column_names, *scan.extracted),
            counts,
            time.perf_counter() - started,
            first,
            is_complete,
            scan.table_name,
            scan.metadata.location,
            scan.schema,
        )
        deliver(report, scan.reporter)
