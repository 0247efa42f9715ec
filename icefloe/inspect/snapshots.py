"""The metadata tables that the table's metadata alone answers: history, snapshots, refs and the log of metadata files."""

from collections.abc import Callable, Iterator

import pyarrow as pa

from icefloe.inspect.request import MetadataRequest, Row
from icefloe.metadata import TableMetadata

_MICROS = 1000
"""In a millisecond."""


def _history(request: MetadataRequest) -> Iterator[Row]:
    """Which snapshot was current from when on."""
    metadata = request.metadata
    current = metadata.current_snapshot_id
    ancestors = set() if current is None else {snapshot.snapshot_id for snapshot in metadata.ancestors(current)}
    for entry in metadata.snapshot_log:
        snapshot = metadata.snapshot_by_id(entry.snapshot_id)
        yield {
            "made_current_at": entry.timestamp_ms * _MICROS,
            "snapshot_id": entry.snapshot_id,
            "parent_id": None if snapshot is None else snapshot.parent_snapshot_id,
            "is_current_ancestor": entry.snapshot_id in ancestors,
        }


def _snapshots(request: MetadataRequest) -> Iterator[Row]:
    """All snapshots."""
    metadata = request.metadata
    for snapshot in metadata.snapshots:
        location, summary = snapshot.manifest_list, snapshot.summary
        yield {
            "committed_at": snapshot.timestamp_ms * _MICROS,
            "snapshot_id": snapshot.snapshot_id,
            "parent_id": snapshot.parent_snapshot_id,
            "operation": snapshot.operation,
            "manifest_list": None if location is None else metadata.resolve(location),
            "summary": None if summary is None else list(summary.properties.items()),
        }


def _refs(request: MetadataRequest) -> Iterator[Row]:
    """Branches and tags."""
    metadata = request.metadata
    for name, ref in metadata.refs.items():
        yield {
            "name": name,
            "type": ref.ref_type.name,
            "snapshot_id": ref.snapshot_id,
            "max_reference_age_in_ms": ref.max_ref_age_ms,
            "min_snapshots_to_keep": ref.min_snapshots_to_keep,
            "max_snapshot_age_in_ms": ref.max_snapshot_age_ms,
        }


def _metadata_log(request: MetadataRequest) -> Iterator[Row]:
    """The metadata files that the table had, and the one that it has."""
    metadata = request.metadata
    files = [(entry.timestamp_ms, entry.metadata_file) for entry in metadata.metadata_log]
    if request.metadata_location is not None:
        files.append((metadata.last_updated_ms, request.metadata_location))
    for timestamp_ms, file in files:
        latest = _latest_at(metadata, timestamp_ms)
        snapshot = None if latest is None else metadata.snapshot_by_id(latest)
        yield {
            "timestamp": timestamp_ms * _MICROS,
            "file": metadata.resolve(file),
            "latest_snapshot_id": latest,
            "latest_schema_id": None if snapshot is None else snapshot.schema_id,
            "latest_sequence_number": None if snapshot is None else snapshot.sequence_number,
        }


def _latest_at(metadata: TableMetadata, timestamp_ms: int) -> int | None:
    """What was current then, by the snapshot log; it may be expired."""
    earlier = (entry for entry in reversed(metadata.snapshot_log) if entry.timestamp_ms <= timestamp_ms)
    return next((entry.snapshot_id for entry in earlier), None)


_ROWS: dict[str, Callable[[MetadataRequest], Iterator[Row]]] = {
    "history": _history,
    "metadata_log_entries": _metadata_log,
    "snapshots": _snapshots,
    "refs": _refs,
}


def snapshot_batches(request: MetadataRequest) -> Iterator[pa.RecordBatch]:
    """The rows of one of these tables."""
    return request.few(_ROWS[request.name](request))
