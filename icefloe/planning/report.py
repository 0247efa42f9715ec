"""What a scan did: how many manifests and files it looked at, what it skipped and why, and how long that took."""

import logging
from dataclasses import dataclass, fields
from typing import Protocol

logger = logging.getLogger("icefloe.planning")


@dataclass(slots=True)
class ScanCounts:
    """Counts that grow while a plan is made; those of threads are added up by the one that gives out the tasks."""

    data_manifests: int = 0
    """All data manifests of the snapshot."""
    delete_manifests: int = 0
    manifests_skipped_empty: int = 0
    """Manifests without live files, by their counts."""
    manifests_skipped_by_partition: int = 0
    """Manifests whose partition summaries rule out a match."""
    data_manifests_read: int = 0
    delete_manifests_read: int = 0
    data_files: int = 0
    """Live data files in the manifests that were read."""
    data_files_skipped_by_partition: int = 0
    data_files_skipped_by_metrics: int = 0
    delete_files: int = 0
    """Live delete files in the manifests that were read."""
    delete_files_skipped: int = 0
    """Delete files that can delete no row that matches."""
    indexed_deletion_vectors: int = 0
    indexed_position_deletes: int = 0
    indexed_equality_deletes: int = 0
    result_data_files: int = 0
    result_delete_files: int = 0
    """Deletes of all tasks; one that applies to two files counts twice."""
    result_bytes: int = 0
    result_delete_bytes: int = 0
    files_without_residual: int = 0
    """Data files of which every row is known to match."""

    def add(self, other: "ScanCounts") -> None:
        """Add up."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))


@dataclass(frozen=True, slots=True)
class ScanReport:
    """One plan from its first manifest to its last task, or to where its reader stopped."""

    table_uuid: str | None
    snapshot_id: int | None
    schema_id: int
    row_filter: str
    """The filter with its constants left out, since those may be secret."""
    projected_fields: tuple[str, ...]
    counts: ScanCounts
    seconds: float
    """From the start of the plan to its end, the reader's own pauses included."""
    seconds_to_first_task: float | None
    """None if there was no task."""
    is_complete: bool
    """Whether every task was given out; not when a limit was reached or the reader stopped."""


class Reporter(Protocol):
    """Where reports go."""

    def report(self, report: ScanReport) -> None:
        """Take a report; what it raises is logged and does not disturb the scan."""


class LoggingReporter:
    """Writes reports to the log `icefloe.planning`."""

    def report(self, report: ScanReport) -> None:
        """Log one line."""
        counts = report.counts
        logger.info(
            "scan of table %s, snapshot %s, filter %s: %d of %d data files in %d of %d data manifests, %d deletes, %.3f s",
            report.table_uuid,
            report.snapshot_id,
            report.row_filter,
            counts.result_data_files,
            counts.data_files,
            counts.data_manifests_read,
            counts.data_manifests,
            counts.result_delete_files,
            report.seconds,
        )


def deliver(report: ScanReport, reporter: Reporter) -> None:
    """Hand a report to a reporter; its failures are logged, for no scan may fail of them."""
    try:
        reporter.report(report)
    except Exception:
        logger.exception("the reporter %r failed", reporter)
