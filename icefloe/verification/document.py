"""Whether the metadata of a table holds together: ids, refs, logs, sequence numbers and row ids of snapshots."""

from collections.abc import Iterator
from itertools import pairwise

from icefloe.metadata import MAIN_BRANCH, Snapshot, TableMetadata
from icefloe.partitioning import transforms as tr
from icefloe.verification.codes import Code
from icefloe.verification.subject import Subject
from icefloe.versions import Feature, allows

Problem = tuple[Code, str] | tuple[Code, str, str | None, int | None]


def check_document(subject: Subject) -> None:
    """Check all that can be checked without reading another file."""
    metadata = subject.metadata
    for check in (_ids, _columns, _refs, _logs, _sequence_numbers, _row_ids, _statistics):
        for problem in check(metadata):
            subject.findings.add(*problem)


def _ids(metadata: TableMetadata) -> Iterator[Problem]:
    if metadata.current_schema_id not in metadata.schemas_by_id:
        yield (
            Code.SCHEMA_UNRESOLVED,
            f"the current schema id is {metadata.current_schema_id}; the table has no such schema",
        )
    if metadata.default_spec_id not in metadata.specs_by_id:
        yield Code.SPEC_UNRESOLVED, f"the default spec id is {metadata.default_spec_id}; the table has no such spec"
    if metadata.default_sort_order_id not in metadata.sort_orders_by_id:
        yield (
            Code.SORT_ORDER_UNRESOLVED,
            f"the default sort order id is {metadata.default_sort_order_id}; the table has no such order",
        )
    for snapshot in metadata.snapshots:
        if snapshot.schema_id is not None and snapshot.schema_id not in metadata.schemas_by_id:
            message = f"its schema id is {snapshot.schema_id}; the table has no such schema"
            yield Code.SCHEMA_UNRESOLVED, message, None, snapshot.snapshot_id
    highest = max((schema.highest_field_id for schema in metadata.schemas), default=0)
    if highest > metadata.last_column_id:
        yield Code.LAST_ASSIGNED_ID, f"the last column id is {metadata.last_column_id}, but a column has {highest}"
    highest = max((spec.last_field_id for spec in metadata.partition_specs), default=0)
    if highest > metadata.last_partition_id:
        yield (
            Code.LAST_ASSIGNED_ID,
            f"the last partition field id is {metadata.last_partition_id}, but a field has {highest}",
        )


def _columns(metadata: TableMetadata) -> Iterator[Problem]:
    """Sources of the default spec and order are columns of today; others may be columns that were dropped."""
    current = metadata.schemas_by_id.get(metadata.current_schema_id)
    known = {field_id for schema in metadata.schemas for field_id in schema.fields_by_id}
    for spec in metadata.partition_specs:
        is_default = current is not None and spec.spec_id == metadata.default_spec_id
        columns = current.fields_by_id.keys() if is_default and current is not None else known
        for field in spec.fields:
            missing = [each for each in field.source_ids if each not in columns]
            if missing and not isinstance(field.transform, tr.VoidTransform):
                yield (
                    Code.COLUMN_UNRESOLVED,
                    f"partition field {field.name!r} of spec {spec.spec_id} is of column {missing[0]}",
                )
    for order in metadata.sort_orders:
        is_default = current is not None and order.order_id == metadata.default_sort_order_id
        columns = current.fields_by_id.keys() if is_default and current is not None else known
        for key in order.fields:
            if missing := [each for each in key.source_ids if each not in columns]:
                yield Code.COLUMN_UNRESOLVED, f"sort order {order.order_id} sorts by column {missing[0]}"


def _refs(metadata: TableMetadata) -> Iterator[Problem]:
    current, main = metadata.current_snapshot_id, metadata.refs.get(MAIN_BRANCH)
    if current is not None and current not in metadata.snapshots_by_id:
        yield Code.CURRENT_SNAPSHOT, f"the current snapshot id is {current}; the table has no such snapshot"
    elif main is not None and main.snapshot_id != current:
        yield Code.CURRENT_SNAPSHOT, f"the current snapshot id is {current}, but `main` is at {main.snapshot_id}"
    for name, ref in metadata.refs.items():
        if ref.snapshot_id not in metadata.snapshots_by_id:
            yield (
                Code.REF_UNRESOLVED,
                f"the {ref.ref_type} {name!r} is at snapshot {ref.snapshot_id}; the table has no such snapshot",
            )


def _logs(metadata: TableMetadata) -> Iterator[Problem]:
    for entry in metadata.snapshot_log:
        if entry.snapshot_id not in metadata.snapshots_by_id:
            message = f"the snapshot log names snapshot {entry.snapshot_id}, which is not there"
            yield Code.LOG_UNRESOLVED, message


def _sequence_numbers(metadata: TableMetadata) -> Iterator[Problem]:
    if not allows(metadata.format_version, Feature.SEQUENCE_NUMBERS):
        return
    taken: dict[int, Snapshot] = {}
    for snapshot in metadata.snapshots:
        number = snapshot.sequence_number
        if number > metadata.last_sequence_number:
            message = f"its sequence number is {number}; the last that was assigned is {metadata.last_sequence_number}"
            yield Code.SNAPSHOT_SEQUENCE, message, None, snapshot.snapshot_id
        # Snapshots from before v2 all have 0.
        other = taken.setdefault(number, snapshot) if number else snapshot
        if other is not snapshot:
            message = f"its sequence number {number} is that of snapshot {other.snapshot_id} too"
            yield Code.SNAPSHOT_SEQUENCE, message, None, snapshot.snapshot_id
        parent = metadata.snapshots_by_id.get(snapshot.parent_snapshot_id or 0)
        if parent is not None and number and other is snapshot and number <= parent.sequence_number:
            message = f"its sequence number {number} does not come after {parent.sequence_number}, that of its parent"
            yield Code.SNAPSHOT_SEQUENCE, message, None, snapshot.snapshot_id


def _row_ids(metadata: TableMetadata) -> Iterator[Problem]:
    if not allows(metadata.format_version, Feature.ROW_LINEAGE):
        return
    ranges = sorted(
        (each.first_row_id, each.first_row_id + (each.added_rows or 0), each.snapshot_id)
        for each in metadata.snapshots
        if each.first_row_id is not None
    )
    for _, end, snapshot_id in ranges:
        if end > metadata.next_row_id:
            message = f"it reserves row ids up to {end}; the next row id of the table is {metadata.next_row_id}"
            yield Code.SNAPSHOT_ROW_IDS, message, None, snapshot_id
    taken = [each for each in ranges if each[1] > each[0]]
    for (_, end, before), (start, _, snapshot_id) in pairwise(taken):
        if start < end:
            message = f"it reserves row ids from {start} on; snapshot {before} has those below {end}"
            yield Code.SNAPSHOT_ROW_IDS, message, None, snapshot_id


def _statistics(metadata: TableMetadata) -> Iterator[Problem]:
    files = [(each.snapshot_id, each.statistics_path) for each in metadata.statistics]
    files += [(each.snapshot_id, each.statistics_path) for each in metadata.partition_statistics]
    for snapshot_id, path in files:
        if snapshot_id not in metadata.snapshots_by_id:
            yield (
                Code.STATISTICS_UNRESOLVED,
                f"they are of snapshot {snapshot_id}, which is not there",
                path,
                snapshot_id,
            )
