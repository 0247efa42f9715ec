"""What a REST server is asked to plan for a scan, and which scans must be planned here instead.

The server gets the part of the filter that it can read: JSON has no infinities, and Java's servers take no constants of bytes.
The rest is kept, and asked of the rows of every task.
"""

from dataclasses import dataclass

from icefloe import errors, metadata as md
from icefloe.expressions import (
    AlwaysTrue,
    And,
    Expression,
    LiteralPredicate,
    Predicate,
    SetPredicate,
    conjunction,
    expression_to_term_json,
    predicates,
)
from icefloe.planning import FileScanTask, TableScan
from icefloe.rest import PlanTableScanRequest, TaskContext, task_context
from icefloe.schema import Schema, reserved, types

_BYTES = (types.BinaryType, types.FixedType, types.GeometryType, types.GeographyType, types.VariantType)


@dataclass(frozen=True, slots=True)
class RemoteScan:
    """A scan as a server is asked for it."""

    request: PlanTableScanRequest
    context: TaskContext
    """What is needed to read its tasks."""
    kept: Expression
    """What the server is not asked, and rows are."""

    def own(self, task: FileScanTask) -> FileScanTask:
        """A task of the server with all that is to be asked of its rows."""
        if isinstance(self.kept, AlwaysTrue):
            return task
        return task.replace(residual=conjunction(task.residual, self.kept))


def why_planned_here(scan: TableScan) -> str | None:
    """Why no server can plan the scan; None if one can."""
    if scan.whole_files:
        return "all deletes of its files are needed, not only those of rows that match"
    if any(field.field_id == reserved.LAST_UPDATED_SEQUENCE_NUMBER.field_id for field in scan.table_columns().fields):
        return f"{reserved.LAST_UPDATED_SEQUENCE_NUMBER.name} needs sequence numbers, which servers do not tell"
    return None


def remote_scan(scan: TableScan, snapshot: md.Snapshot) -> RemoteScan:
    """What a server is asked for the scan of this snapshot."""
    sent, kept = _divided(scan.bound_filter)
    schema = scan.schema
    request = PlanTableScanRequest(
        snapshot_id=snapshot.snapshot_id,
        select=_selected(scan),
        filter=expression_to_term_json(sent),
        # The server counts rows by the filter that it knows.
        min_rows_requested=scan.limit if isinstance(kept, AlwaysTrue) else None,
        case_sensitive=True,
        # The schema of the snapshot stays what it is, whatever the server's newest one is by then.
        use_snapshot_schema=snapshot.schema_id == schema.schema_id,
        stats_fields=_with_metrics(schema) if scan.keep_metrics else None,
    )
    return RemoteScan(request, task_context(scan.metadata, schema, sent), kept)


def _divided(bound: Expression) -> tuple[Expression, Expression]:
    """What a server can be asked of a bound filter, and the rest."""
    parts = bound.children if isinstance(bound, And) else (bound,)
    sent = [part for part in parts if _can_be_sent(part)]
    return conjunction(*sent), conjunction(*(part for part in parts if part not in sent))


def _can_be_sent(part: Expression) -> bool:
    if any(isinstance(field_type, _BYTES) for test in predicates(part) for field_type in _constant_types(test)):
        return False
    try:
        expression_to_term_json(part)
    except errors.InvalidExpressionError:
        return False
    return True


def _constant_types(test: Predicate) -> list[types.IcebergType]:
    match test:
        case LiteralPredicate(literal=constant):
            return [constant.field_type]
        case SetPredicate(literals=constants):
            return [constant.field_type for constant in constants]
        case _:
            return []


def _selected(scan: TableScan) -> tuple[str, ...] | None:
    """The names of all selected columns and of what is in them; None if that is everything."""
    schema, shown = scan.schema, scan.table_columns()
    inside = {term.reference.field_id for term in scan.extracted.values()}
    ids = [field_id for field_id in schema.fields_by_id if field_id in shown.fields_by_id or field_id in inside]
    if len(ids) == len(schema.fields_by_id):
        return None
    return tuple(schema.names_by_id[field_id] for field_id in ids) or None


def _with_metrics(schema: Schema) -> tuple[str, ...]:
    """The names of the columns that files may have metrics of."""
    return tuple(
        name
        for field_id, name in schema.names_by_id.items()
        if not isinstance(schema.fields_by_id[field_id].field_type, types.NestedType)
    )
