"""What each extension statement does to its table."""

from icefloe import properties as props
from icefloe.errors import NoSuchColumnError, NoSuchSnapshotError
from icefloe.metadata import SnapshotRefType, TableMetadata
from icefloe.partitioning import SortDirection
from icefloe.sql.statements import (
    AddPartitionField,
    CreateRef,
    DropIdentifierFields,
    DropPartitionField,
    DropRef,
    ReplacePartitionField,
    SetIdentifierFields,
    SetWriteOrder,
    Statement,
    WhenRefExists,
)
from icefloe.table import Table


def run(statement: Statement, table: Table, case_sensitive: bool = True) -> None:
    """Do it, in one commit; columns may be named in another case unless names are told apart by it."""
    match statement:
        case AddPartitionField(term=term, name=name):
            with table.update_spec(case_sensitive) as spec:
                spec.add_field(term, name=name)
        case DropPartitionField(term=term):
            with table.update_spec(case_sensitive) as spec:
                spec.remove_field(term)
        case ReplacePartitionField(old=old, new=new, name=name):
            with table.update_spec(case_sensitive) as spec:
                spec.remove_field(old)
                spec.add_field(new, name=name)
        case SetWriteOrder():
            _set_write_order(statement, table, case_sensitive)
        case SetIdentifierFields(columns=columns):
            with table.update_schema(case_sensitive=case_sensitive) as schema:
                schema.set_identifier_fields(*columns)
        case DropIdentifierFields(columns=columns):
            _drop_identifier_fields(columns, table, case_sensitive)
        case CreateRef():
            _create_ref(statement, table)
        case DropRef():
            _drop_ref(statement, table)
        case _:
            raise AssertionError(f"{statement} is of no known kind")


def _set_write_order(statement: SetWriteOrder, table: Table, case_sensitive: bool) -> None:
    with table.transaction() as tx:
        with tx.update_sort_order(case_sensitive) as order:
            for key in statement.order:
                by = order.asc if key.direction is SortDirection.ASC else order.desc
                by(key.term, null_order=key.null_order)
        if statement.distribution is not None:
            tx.set_properties({props.DISTRIBUTION_MODE.key: statement.distribution})


def _drop_identifier_fields(columns: tuple[str, ...], table: Table, case_sensitive: bool) -> None:
    current = table.schema()
    held = current.identifier_field_names
    dropped = []
    for column in columns:
        field_id = current.find_id(column, case_sensitive)
        if field_id not in current.identifier_field_ids:
            raise NoSuchColumnError(
                f"{column!r} is no identifier field; identifier fields are {', '.join(held) or 'none'}"
            )
        dropped.append(current.find_column_name(field_id))
    with table.update_schema() as schema:
        schema.set_identifier_fields(*(name for name in held if name not in dropped))


def _create_ref(statement: CreateRef, table: Table) -> None:
    exists = statement.name in table.metadata.refs
    when = statement.when_exists
    if when is WhenRefExists.KEEP and exists:
        return
    replaces = when is WhenRefExists.REPLACE or (when is WhenRefExists.CREATE_OR_REPLACE and exists)
    ages = (statement.max_ref_age_ms, statement.max_snapshot_age_ms, statement.min_snapshots_to_keep)
    with table.manage_snapshots() as refs:
        match statement.kind, replaces:
            case SnapshotRefType.BRANCH, False:
                refs.create_branch(statement.name, statement.snapshot_id, *ages)
            case SnapshotRefType.TAG, False:
                refs.create_tag(statement.name, statement.snapshot_id, statement.max_ref_age_ms)
            case SnapshotRefType.BRANCH, True:
                refs.replace_branch(statement.name, _target(statement, table.metadata))
            case _:
                refs.replace_tag(statement.name, _target(statement, table.metadata))
        if replaces and any(age is not None for age in ages):
            refs.set_retention(statement.name, *ages)


def _target(statement: CreateRef, metadata: TableMetadata) -> int:
    if statement.snapshot_id is not None:
        return statement.snapshot_id
    current = metadata.current_snapshot()
    if current is None:
        raise NoSuchSnapshotError(f"{statement.name!r} cannot be replaced: main has no snapshot to point to")
    return current.snapshot_id


def _drop_ref(statement: DropRef, table: Table) -> None:
    if statement.if_exists and statement.name not in table.metadata.refs:
        return
    with table.manage_snapshots() as refs:
        if statement.kind is SnapshotRefType.BRANCH:
            refs.remove_branch(statement.name)
        else:
            refs.remove_tag(statement.name)
