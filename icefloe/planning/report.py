"""What a scan did: how many manifests and files it looked at, what it skipped and why, and how long; and where reports go."""

import importlib
import logging
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, Protocol, cast

from icefloe.errors import InvalidPropertyError
from icefloe.schema import Schema

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
        for count in fields(self):
            setattr(self, count.name, getattr(self, count.name) + getattr(other, count.name))


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
    table: str = ""
    """The table's name, that of its catalog included; empty if nobody named it, as in scans of maintenance."""
    location: str | None = None
    """Where the table is; None in a report that came over the REST protocol, which does not say it."""
    schema: Schema | None = field(default=None, compare=False, repr=False)
    """The columns of the rows, all of them; None as for the location."""

    def line(self) -> str:
        """The report in one line."""
        counts = self.counts
        return (
            f"scan of table {self.table or self.table_uuid}, snapshot {self.snapshot_id}, filter {self.row_filter}: "
            f"{counts.result_data_files} of {counts.data_files} data files in {counts.data_manifests_read} of "
            f"{counts.data_manifests} data manifests, {counts.result_delete_files} deletes, {self.seconds:.3f} s"
        )


class Report(Protocol):
    """What reports of any kind can do."""

    def line(self) -> str:
        """The report in one line."""


class Reporter(Protocol):
    """Where reports go, those of scans (`ScanReport`) and of commits (`CommitReport`)."""

    def report(self, report: Any) -> None:
        """Take a report; what it raises is logged and disturbs neither scan nor commit."""


class LoggingReporter:
    """Writes each report to the log of the room that it is from, such as `icefloe.planning`."""

    def report(self, report: Report) -> None:
        """Log one line."""
        log = logging.getLogger(type(report).__module__.rpartition(".")[0])
        if log.isEnabledFor(logging.INFO):
            log.info("%s", report.line())


@dataclass(frozen=True, slots=True)
class CallingReporter:
    """Hands each report to a function."""

    function: Callable[[Any], object]

    def report(self, report: Any) -> None:
        """Call it."""
        self.function(report)


LOGGING = "logging"
"""The name of the reporter that is used when none is named."""


def reporter_named(name: str) -> Reporter:
    """A reporter by name: `logging`, or the dotted path of one, of a class without arguments, or of a function."""
    if name == LOGGING:
        return LoggingReporter()
    module, _, attribute = name.strip().rpartition(".")
    try:
        named = getattr(importlib.import_module(module), attribute)
        reporter: Any = named() if isinstance(named, type) else named
    except Exception as error:
        raise InvalidPropertyError(
            f"the reporter {name!r} cannot be had: {error}; name {LOGGING!r}, or a class or function as 'package.module.name'"
        ) from error
    if callable(getattr(reporter, "report", None)):
        return cast(Reporter, reporter)
    if not callable(reporter):
        raise InvalidPropertyError(
            f"the reporter {name!r} is {reporter!r}; it has no `report` and cannot be called either"
        )
    return CallingReporter(reporter)


def deliver(report: Report, reporter: Reporter) -> None:
    """Hand a report to a reporter; its failures are logged, for neither scan nor commit may fail of them."""
    try:
        reporter.report(report)
    except Exception:
        logger.exception("the reporter %r failed", reporter)
