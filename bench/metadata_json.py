"""Reading and writing a metadata file with many snapshots, against the standard library's JSON on the same text."""

import json
from collections.abc import Callable

from bench.report import Row, interleave
from icefloe.metadata import (
    MAIN_BRANCH,
    Operation,
    Snapshot,
    SnapshotLogEntry,
    SnapshotRef,
    SnapshotRefType,
    TableMetadata,
    branch,
    new_table_metadata,
)
from icefloe.metadata.codec import metadata_from_json, metadata_to_json
from icefloe.metadata.snapshot import Summary
from icefloe.schema import NestedField, Schema
from icefloe.schema.types import LongType, StringType, TimestampType

SNAPSHOTS = {"small": 1_000, "medium": 10_000, "full": 50_000}
FIRST_MS = 1_700_000_000_000
READ_GOAL = 2.0
WRITE_GOAL = 2.0


def run(size: str) -> list[Row]:
    """Rows for reading from bytes and for writing."""
    count = SNAPSHOTS[size]
    metadata = example(count)
    text = metadata_to_json(metadata)
    document = json.loads(text)
    note = f"{count} snapshots, {len(text) / 1e6:.1f} MB"
    return [
        _row(
            "read", lambda: metadata_from_json(text), lambda: json.loads(text), READ_GOAL, f"{note}; peer: json.loads"
        ),
        _row(
            "write",
            lambda: metadata_to_json(metadata),
            lambda: json.dumps(document),
            WRITE_GOAL,
            f"{note}; peer: json.dumps",
        ),
    ]


def example(count: int) -> TableMetadata:
    """A v3 table with that many snapshots, each with a summary of 15 keys, a hundred tags, and a full snapshot log."""
    schema = Schema(
        NestedField(1, "id", LongType(), True),
        NestedField(2, "ts", TimestampType()),
        *(NestedField(number, f"column_{number}", StringType()) for number in range(3, 23)),
    )
    base = new_table_metadata(
        schema,
        location="s3://bucket/warehouse/db/table",
        format_version=3,
        uuid="9c12d441-03fe-4693-9a96-a0705ddf69c1",
        timestamp_ms=FIRST_MS,
    )
    snapshots = tuple(_snapshot(number) for number in range(1, count + 1))
    tags = {
        f"release-{number}": SnapshotRef(snapshots[number * count // 100].snapshot_id, SnapshotRefType.TAG)
        for number in range(100)
    }
    return base.evolve(
        snapshots=snapshots,
        snapshot_log=tuple(SnapshotLogEntry(each.snapshot_id, each.timestamp_ms) for each in snapshots),
        current_snapshot_id=snapshots[-1].snapshot_id,
        refs={MAIN_BRANCH: branch(snapshots[-1].snapshot_id), **tags},
        last_sequence_number=count,
        next_row_id=count * 1_000,
    )


def _snapshot(number: int) -> Snapshot:
    snapshot_id = _snapshot_id(number)
    return Snapshot(
        snapshot_id,
        FIRST_MS + number * 60_000,
        f"s3://bucket/warehouse/db/table/metadata/snap-{snapshot_id}-1-0f6d3c1a-{number:012x}.avro",
        Summary(
            Operation.APPEND,
            {
                "spark.app.id": f"application_1700000000000_{number:06d}",
                "engine-name": "spark",
                "engine-version": "4.0.1",
                "added-data-files": "12",
                "added-records": "1000",
                "added-files-size": str(1_234_567 + number),
                "changed-partition-count": "3",
                "manifests-created": "1",
                "manifests-kept": str(number),
                "total-records": str(number * 1_000),
                "total-files-size": str(number * 1_234_567),
                "total-data-files": str(number * 12),
                "total-delete-files": "0",
                "total-position-deletes": "0",
                "total-equality-deletes": "0",
            },
        ),
        None if number == 1 else _snapshot_id(number - 1),
        number,
        0,
        (number - 1) * 1_000,
        1_000,
    )


def _snapshot_id(number: int) -> int:
    """Ids without a pattern, as the real ones are."""
    return number * 6_364_136_223_846_793_005 % (2**63 - 1) or 1


def _row(case: str, ours: Callable[[], object], theirs: Callable[[], object], goal: float, note: str) -> Row:
    return Row(case, *interleave(ours, theirs, repeat=5), goal, note)
