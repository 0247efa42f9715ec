"""Whether the metadata of a table holds together: ids, refs, logs, sequence numbers and row ids of snapshots."""

from collections.abc import Iterator
from itertools import pairwise

from icefloe import errors
from icefloe.commit import check_writable
from icefloe.metadata import MAIN_BRANCH, Snapshot, TableMetadata
from icefloe.partitioning import transforms as tr
from icefloe.verification.codes import Code
from icefloe.verification.subject import Subject
from icefloe.versions import Feature, allows

Problem = tuple[Code, str] | tuple[Code, str, str | None, int | None]


def check_document(subject: Subject) -> None:
    """Check all that can be checked without reading another file."""
    metadata = subject.metadata
    for check in (_ids, _columns, _refs, _logs, _sequence_numbers, _row_ids, _statistics, _text):
        for problem in check(metadata):
            subject.findings.add(*problem)


def _text(metadata: TableMetadata) -> Iterator[Problem]:
    try:
        check_writable(metadata)
    except errors.StateError as problem:
        yield Code.NEWER_TEXT, str(problem)


def _ids(metadata: TableMetadata) -> Iterator[Problem]:
    schema, spec, order = metadata.current_schema_id, metadata.default_spec_id, metadata.default_sort_order_id
    if schema not in metadata.schemas_by_id:
        yield Code.SCHEMA_UNRESOLVED, f"the current schema id is {schema}; the table has no such schema"
    if spec not in metadata.specs_by_id:
        yield Code.SPEC_UNRESOLVED, f"the default spec id is {spec}; the table has no such spec"
    if order not in metadata.sort_orders_by_id:
        yield Code.SORT_ORDER_UNRESOLVED, f"the default sort order id is {order}; the table has no such order"
    for snapshot in metadata.snapshots:
        if snapshot.schema_id is not None and snapshot.schema_id not in metadata.schemas_by_id:
            message = f"its schema id is {snapshot.schema_id}; the table has no such schema"
            yield Code.SCHEMA_UNRESOLVED, message, None, snapshot.snapshot_id
    highest, last = max((each.highest_field_id for each in metadata.schemas), default=0), metadata.last_column_id
    if highest > last:
        yield Code.LAST_ASSIGNED_ID, f"the last column id is {last}, but a column has {highest}"
    highest, last = (
        max((each.last_field_id for each in metadata.partition_specs), default=0),
        metadata.last_partition_id,
    )
    if highest > last:
        yield Code.LAST_ASSIGNED_ID, f"the last partition field id is {last}, but a field has {highest}"


def _columns(metadata: TableMetadata) -> Iterator[Problem]:
    """Sources of the default spec and order are current columns; others may be columns that were dropped."""
    every = {field_id for schema in metadata.schemas for field_id in schema.fields_by_id}
    schema = metadata.schemas_by_id.get(metadata.current_schema_id)
    current = every if schema is None else schema.fields_by_id.keys()
    for spec in metadata.partition_specs:
        columns = current if spec.spec_id == metadata.default_spec_id else every
        for field in spec.fields:
            missing = [source for source in field.source_ids if source not in columns]
            if missing and not isinstance(field.transform, tr.VoidTransform):
                message = f"partition field {field.name!r} of spec {spec.spec_id} is of column {missing[0]}"
                yield Code.COLUMN_UNRESOLVED, message
    for order in metadata.sort_orders:
        columns = current if order.order_id == metadata.default_sort_order_id else every
        for key in order.fields:
            if missing := [source for source in key.source_ids if source not in columns]:
                yield Code.COLUMN_UNRESOLVED, f"sort order {order.order_id} sorts by column {missing[0]}"


def _refs(metadata: TableMetadata) -> Iterator[Problem]:
    current, main = metadata.current_snapshot_id, metadata.refs.get(MAIN_BRANCH)
    if current is not None and current not in metadata.snapshots_by_id:
        yield Code.CURRENT_SNAPSHOT, f"the current snapshot id is {current}; the table has no such snapshot"
    elif main is not None and main.snapshot_id != current:
        yield Code.CURRENT_SNAPSHOT, f"the current snapshot id is {current}, but `main` is at {main.snapshot_id}"
    for name, ref in metadata.refs.items():
        if ref.snapshot_id not in metadata.snapshots_by_id:
            message = f"the {ref.ref_type} {name!r} is at snapshot {ref.snapshot_id}; the table has no such snapshot"
            yield Code.REF_UNRESOLVED, message


def _logs(metadata: TableMetadata) -> Iterator[Problem]:
    for entry in metadata.snapshot_log:
        if entry.snapshot_id not in metadata.snapshots_by_id:
            yield Code.LOG_UNRESOLVED, f"the snapshot log names snapshot {entry.snapshot_id}, which does not exist"


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
        (snapshot.first_row_id, snapshot.first_row_id + (snapshot.added_rows or 0), snapshot.snapshot_id)
        for snapshot in metadata.snapshots
        if snapshot.first_row_id is not None
    )
    for _, end, snapshot_id in ranges:
        if end > metadata.next_row_id:
            message = f"it reserves row ids up to {end}; the next row id of the table is {metadata.next_row_id}"
            yield Code.SNAPSHOT_ROW_IDS, message, None, snapshot_id
    for (_, end, before), (start, _, snapshot_id) in pairwise(each for each in ranges if each[1] > each[0]):
        if start < end:
            message = f"it reserves row ids from {start} on; snapshot {before} has those below {end}"
            yield Code.SNAPSHOT_ROW_IDS, message, None, snapshot_id


def _statistics(metadata: TableMetadata) -> Iterator[Problem]:
    files = [(file.snapshot_id, file.statistics_path) for file in metadata.statistics]
    files += [(file.snapshot_id, file.statistics_path) for file in metadata.partition_statistics]
    for snapshot_id, path in files:
        if snapshot_id not in metadata.snapshots_by_id:
            message = f"they are of snapshot {snapshot_id}, which does not exist"
            yield Code.STATISTICS_UNRESOLVED, message, path, snapshot_id
