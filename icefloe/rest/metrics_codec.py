"""Reports of scans and commits as the REST protocol has them, both ways; names and units are those of the Java library."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import msgspec

from icefloe.commit import CommitCounts, CommitReport
from icefloe.metadata.wire_codec import Int, Long, WireStruct, present, read_wire
from icefloe.planning import ScanCounts, ScanReport
from icefloe.schema import JSON

_SCAN, _COMMIT = "scan-report", "commit-report"
_COUNT, _BYTES, _NANOSECONDS = "count", "bytes", "nanoseconds"
_NANOSECONDS_OF = {
    "nanoseconds": 1,
    "microseconds": 1_000,
    "milliseconds": 1_000_000,
    "seconds": 1_000_000_000,
    "minutes": 60_000_000_000,
    "hours": 3_600_000_000_000,
    "days": 86_400_000_000_000,
}
_PLANNING_TIME, _COMMIT_TIME, _ATTEMPTS = "total-planning-duration", "total-duration", "attempts"
_SCAN_COUNTERS = {
    "result-data-files": "result_data_files",
    "result-delete-files": "result_delete_files",
    "total-data-manifests": "data_manifests",
    "total-delete-manifests": "delete_manifests",
    "scanned-data-manifests": "data_manifests_read",
    "scanned-delete-manifests": "delete_manifests_read",
    "total-file-size-in-bytes": "result_bytes",
    "total-delete-file-size-in-bytes": "result_delete_bytes",
    "skipped-delete-files": "delete_files_skipped",
    "equality-delete-files": "indexed_equality_deletes",
    "positional-delete-files": "indexed_position_deletes",
    "dvs": "indexed_deletion_vectors",
}
_SKIPPED_FILES = "skipped-data-files"
_COMMIT_COUNTERS = {
    "added-data-files": "added_data_files",
    "removed-data-files": "removed_data_files",
    "added-delete-files": "added_delete_files",
    "removed-delete-files": "removed_delete_files",
    "added-dvs": "added_deletion_vectors",
    "removed-dvs": "removed_deletion_vectors",
    "added-records": "added_records",
    "removed-records": "removed_records",
    "added-files-size-bytes": "added_bytes",
    "removed-files-size-bytes": "removed_bytes",
    "manifests-created": "manifests_created",
    "manifests-kept": "manifests_kept",
    "manifests-replaced": "manifests_replaced",
    "manifest-entries-processed": "entries_processed",
}
_UNKNOWN_SCHEMA = -1
_COMMITTED = "committed"


@dataclass(frozen=True, slots=True)
class OtherReport:
    """A report of a kind that is not known here."""

    report_type: str

    def line(self) -> str:
        """The report in one line."""
        return f"a report of type {self.report_type}"


@dataclass(frozen=True, slots=True)
class Received:
    """A report with the name of its table, as it came from a client."""

    table: str
    report: "ScanReport | CommitReport | OtherReport"
    metadata: Mapping[str, str] = field(default_factory=dict)
    """What the client says of itself."""


Report: TypeAlias = ScanReport | CommitReport | OtherReport


class _MetricWire(WireStruct):
    unit: str | None = None
    value: Long | None = None
    count: Long | None = None
    time_unit: str | None = None
    total_duration: Long | None = None


class _ReportWire(WireStruct):
    report_type: str
    table_name: str = ""
    snapshot_id: Long | None = None
    sequence_number: Long | None = None
    operation: str | None = None
    schema_id: Int | None = None
    projected_field_names: list[str] | None = None
    filter: msgspec.Raw = msgspec.Raw(b"true")
    metrics: dict[str, _MetricWire] | None = None
    metadata: dict[str, str] | None = None


def encode_scan_report(report: ScanReport, table: str, metadata: Mapping[str, str] | None = None) -> bytes:
    """The body of a report of a scan. The filter goes without its constants, as text, in the metadata."""
    counts = report.counts
    skipped = counts.data_files_skipped_by_partition + counts.data_files_skipped_by_metrics
    metrics: JSON = {
        _PLANNING_TIME: _timer(report.seconds),
        **{key: _counter(key, getattr(counts, name)) for key, name in _SCAN_COUNTERS.items()},
        _SKIPPED_FILES: _counter(_SKIPPED_FILES, skipped),
    }
    return msgspec.json.encode(
        {
            "report-type": _SCAN,
            "table-name": table,
            # Java's server takes -1 for none; the document requires a number.
            "snapshot-id": -1 if report.snapshot_id is None else report.snapshot_id,
            "filter": True,
            "schema-id": report.schema_id,
            "projected-field-ids": [],
            "projected-field-names": list(report.projected_fields),
            "metrics": metrics,
            "metadata": {**(metadata or {}), "filter": report.row_filter},
        }
    )


def encode_commit_report(report: CommitReport, metadata: Mapping[str, str] | None = None) -> bytes | None:
    """The body of a report of a commit; None if it made no snapshot, which the protocol cannot say."""
    if report.snapshot_id is None:
        return None
    metrics: JSON = {
        _COMMIT_TIME: _timer(report.seconds),
        _ATTEMPTS: _counter(_ATTEMPTS, report.attempts),
        **{key: _counter(key, getattr(report.counts, name)) for key, name in _COMMIT_COUNTERS.items()},
    }
    return msgspec.json.encode(
        {
            "report-type": _COMMIT,
            "table-name": report.table,
            "snapshot-id": report.snapshot_id,
            "sequence-number": report.sequence_number or 0,
            "operation": report.operation or "",
            "metrics": metrics,
            **present("metadata", dict(metadata or {}) or None),
        }
    )


def decode_report(body: bytes) -> Received:
    """The report of a body; kinds that are not known are told as such, and metrics that are not known left out."""
    wire = read_wire(body, _ReportWire, "the report")
    metadata = wire.metadata or {}
    match wire.report_type:
        case "scan-report":
            return Received(wire.table_name, _scan(wire, metadata), metadata)
        case "commit-report":
            return Received(wire.table_name, _commit(wire), metadata)
        case other:
            return Received(wire.table_name, OtherReport(other), metadata)


def _scan(wire: _ReportWire, metadata: Mapping[str, str]) -> ScanReport:
    metrics = wire.metrics or {}
    counts = ScanCounts(**{name: _value(metrics, key) for key, name in _SCAN_COUNTERS.items()})
    # Why a file was skipped is not told.
    counts = replace(counts, data_files_skipped_by_metrics=_value(metrics, _SKIPPED_FILES))
    return ScanReport(
        None,
        None if wire.snapshot_id == -1 else wire.snapshot_id,
        _UNKNOWN_SCHEMA if wire.schema_id is None else wire.schema_id,
        metadata.get("filter", ""),
        tuple(wire.projected_field_names or ()),
        counts,
        _seconds(metrics, _PLANNING_TIME),
        None,
        True,
        wire.table_name,
    )


def _commit(wire: _ReportWire) -> CommitReport:
    metrics = wire.metrics or {}
    counts = CommitCounts(**{name: _value(metrics, key) for key, name in _COMMIT_COUNTERS.items()})
    seconds, attempts = _seconds(metrics, _COMMIT_TIME), _value(metrics, _ATTEMPTS)
    return CommitReport(
        wire.table_name,
        None,
        _COMMITTED,
        wire.snapshot_id,
        wire.sequence_number,
        wire.operation or None,
        attempts,
        seconds,
        counts,
    )


def _counter(key: str, value: int) -> JSON:
    return {"unit": _BYTES if "bytes" in key else _COUNT, "value": value}


def _timer(seconds: float) -> JSON:
    return {"count": 1, "time-unit": _NANOSECONDS, "total-duration": round(seconds * 1e9)}


def _value(metrics: Mapping[str, _MetricWire], key: str) -> int:
    metric = metrics.get(key)
    return 0 if metric is None or metric.value is None else metric.value


def _seconds(metrics: Mapping[str, _MetricWire], key: str) -> float:
    metric = metrics.get(key)
    if metric is None or metric.total_duration is None:
        return 0.0
    return metric.total_duration * _NANOSECONDS_OF.get((metric.time_unit or _NANOSECONDS).lower(), 1) / 1e9
