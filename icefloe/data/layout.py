"""Which columns are read for a task: those wanted, and those that only its filter or its deletes need.

Columns that the table dropped since are found in its older schemas; where one has the name of a column of today, it gets
another name, as it is found by its id.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from icefloe import errors, expressions as ex, metadata as md, planning
from icefloe.schema import NestedField, Schema, StructType, reserved, select_ids


def table_columns(wanted: Schema) -> Schema:
    """The wanted columns that are columns of the table."""
    return Schema(*(field for field in wanted.fields if not reserved.is_reserved_id(field.field_id)))


def columns_to_read(
    task: planning.FileScanTask,
    wanted: Schema,
    metadata: md.TableMetadata,
    more: Iterable[ex.BoundReference] = (),
) -> Schema:
    """The columns to ask of the task's file, `more` among them; `_pos` and those of row lineage where they matter."""
    fields = table_columns(wanted).fields
    references = {*ex.bound_references(task.residual), *more}
    for reference in sorted(references, key=lambda bound: bound.field.field_id):
        schema = _schema_of(reference, wanted, metadata)
        fields = _merged(fields, select_ids(schema, [reference.field.field_id]).fields)
    for field_id in sorted(_equality_ids(task)):
        if field_id not in Schema(*fields).fields_by_id:
            keys = select_ids(_schema_with(field_id, wanted, metadata), [field_id]).fields
            fields = _merged(fields, map(_optional, keys))
    # Without any column, nothing would tell how many rows there are.
    return Schema(*fields, *(tuple(_about_rows(task, wanted)) or (() if fields else (reserved.POS,))))


def key_columns(field_ids: Iterable[int], metadata: md.TableMetadata) -> Schema:
    """The columns of these ids as rows are compared by them, those that were dropped among them."""
    fields: tuple[NestedField, ...] = ()
    for field_id in sorted(field_ids):
        if field_id not in Schema(*fields).fields_by_id:
            keys = select_ids(_schema_with(field_id, Schema(), metadata), [field_id]).fields
            fields = _merged(fields, map(_optional, keys))
    return Schema(*fields)


def _about_rows(task: planning.FileScanTask, wanted: Schema) -> Iterator[NestedField]:
    ids = {field.field_id for field in wanted.fields}
    has_ids = task.first_row_id is not None
    by_position = task.deletion_vector is not None or bool(task.position_deletes)
    if reserved.POS.field_id in ids or by_position or (has_ids and reserved.ROW_ID.field_id in ids):
        yield reserved.POS
    yield from (
        field for field in (reserved.ROW_ID, reserved.LAST_UPDATED_SEQUENCE_NUMBER) if has_ids and field.field_id in ids
    )


def _equality_ids(task: planning.FileScanTask) -> set[int]:
    return {field_id for deletes in task.equality_deletes for field_id in deletes.equality_ids or ()}


def _candidates(wanted: Schema, metadata: md.TableMetadata) -> Iterator[Schema]:
    """The schema that the scan is of, that of today, and the others, the newest first."""
    if wanted.schema_id in metadata.schemas_by_id:
        yield metadata.schema(wanted.schema_id)
    yield metadata.schema()
    yield from metadata.schemas_newest_first


def _schema_of(reference: ex.BoundReference, wanted: Schema, metadata: md.TableMetadata) -> Schema:
    """The schema that a predicate was bound to, as far as its column is concerned."""
    field_id = reference.field.field_id
    for schema in _candidates(wanted, metadata):
        along = (*reversed(schema.ancestors(field_id)), schema.fields_by_id.get(field_id))
        if along[-1] == reference.field and tuple(field.name for field in along if field) == reference.names:
            return schema
    raise errors.NoSuchColumnError(f"the filter asks for column {reference.name!r}, which no schema of the table has")


def _schema_with(field_id: int, wanted: Schema, metadata: md.TableMetadata) -> Schema:
    """Where a key column is that nobody asked for: of its newest type, as which every file of it can be read."""
    for schema in (table_columns(wanted), metadata.schema(), *metadata.schemas_newest_first):
        if field_id in schema.fields_by_id:
            return schema
    raise errors.NoSuchColumnError(
        f"rows are deleted by a column with field id {field_id}, which no schema of the table has"
    )


def _merged(present: Sequence[NestedField], more: Iterable[NestedField]) -> tuple[NestedField, ...]:
    """The fields of both, by id; structs that are in both with the fields of both."""
    merged = {field.field_id: field for field in present}
    for field in more:
        before = merged.get(field.field_id)
        if before is None:
            merged[field.field_id] = replace(field, name=_free_name(field, merged.values()))
        elif isinstance(before.field_type, StructType) and isinstance(field.field_type, StructType):
            both = StructType(*_merged(before.field_type.fields, field.field_type.fields))
            merged[field.field_id] = replace(before, field_type=both)
    return tuple(merged.values())


def _free_name(field: NestedField, others: Iterable[NestedField]) -> str:
    taken = {other.name for other in others}
    name = field.name
    while name in taken:
        name = f"{name} ({field.field_id})"
    return name


def _optional(field: NestedField) -> NestedField:
    """The field as one that older and newer files may lack."""
    field_type = field.field_type
    if isinstance(field_type, StructType):
        field_type = StructType(*map(_optional, field_type.fields))
    return replace(field, field_type=field_type, required=False)
