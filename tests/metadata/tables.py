"""Small tables that the tests of this room start from."""

from icefloe.metadata import (
    MAIN_BRANCH,
    Operation,
    Snapshot,
    TableMetadata,
    apply_all,
    branch,
    new_table_metadata,
    updates as up,
)
from icefloe.metadata.snapshot import Summary
from icefloe.partitioning import UNPARTITIONED, UNSORTED, PartitionSpec, SortOrder, parse_partition_spec
from icefloe.schema import NestedField, Schema
from icefloe.schema.types import DateType, LongType, StringType
from icefloe.versions import Feature, allows

UUID = "9c12d441-03fe-4693-9a96-a0705ddf69c1"
CREATED_MS = 1_700_000_000_000
NOW_MS = CREATED_MS + 1_000_000
SCHEMA = Schema(
    NestedField(1, "id", LongType(), True),
    NestedField(2, "day", DateType()),
    NestedField(3, "name", StringType()),
)
BY_DAY = parse_partition_spec(["day"], SCHEMA)


def new_table(version: int, spec: PartitionSpec = UNPARTITIONED, order: SortOrder = UNSORTED) -> TableMetadata:
    """A table that nothing was committed to."""
    return new_table_metadata(
        SCHEMA,
        spec,
        order,
        "s3://bucket/db/table",
        {"owner": "me"},
        version,
        uuid=UUID,
        timestamp_ms=CREATED_MS,
    )


def next_snapshot(
    metadata: TableMetadata,
    snapshot_id: int,
    parent: int | None = None,
    rows: int = 10,
    timestamp_ms: int | None = None,
) -> Snapshot:
    """A snapshot that may be added to the table now."""
    lineage = allows(metadata.format_version, Feature.ROW_LINEAGE)
    return Snapshot(
        snapshot_id,
        CREATED_MS + snapshot_id if timestamp_ms is None else timestamp_ms,
        f"s3://bucket/db/table/metadata/snap-{snapshot_id}.avro",
        Summary(Operation.APPEND, {"added-records": str(rows)}),
        parent,
        metadata.next_sequence_number,
        metadata.current_schema_id,
        metadata.next_row_id if lineage else None,
        rows if lineage else None,
    )


def commit(metadata: TableMetadata, *updates: up.TableUpdate, now_ms: int = NOW_MS) -> TableMetadata:
    """The table after a commit of these updates."""
    return apply_all(metadata, updates, now_ms)


def append(metadata: TableMetadata, snapshot_id: int, name: str = MAIN_BRANCH) -> TableMetadata:
    """The table after a commit of one more snapshot to a branch."""
    head = metadata.snapshot_by_name(name)
    snapshot = next_snapshot(metadata, snapshot_id, None if head is None else head.snapshot_id)
    return commit(metadata, up.AddSnapshotUpdate(snapshot), up.SetSnapshotRefUpdate(name, branch(snapshot_id)))
