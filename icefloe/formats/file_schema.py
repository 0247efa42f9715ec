"""What the columns of a file stand for: field ids from the file, else from a name mapping; types as the table has them.

Spec: Column Projection. A file may lack the annotation that tells a variant from a struct; the table's type decides then.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from icefloe import schema as sc
from icefloe.schema import projection as plans, reserved, types


def file_columns(
    arrow_schema: pa.Schema,
    wanted: sc.Schema,
    mapping: sc.NameMapping | None = None,
    constants: Mapping[int, sc.Value] | None = None,
) -> sc.Schema:
    """The schema of a file with the ids and types to project by."""
    return known_columns(sc.file_schema_from_arrow(arrow_schema), wanted, mapping, constants)


def known_columns(
    file: sc.Schema,
    wanted: sc.Schema,
    mapping: sc.NameMapping | None = None,
    constants: Mapping[int, sc.Value] | None = None,
) -> sc.Schema:
    """The columns of a file, negative ids where it has none, with the ids and types to project by."""
    if mapping is not None:
        file = _without_constants(file, sc.apply_name_mapping(file, mapping), constants or {})
    variants = {
        field_id for field_id, field in wanted.fields_by_id.items() if isinstance(field.field_type, types.VariantType)
    }

    def as_variant(field: types.NestedField) -> types.IcebergType | None:
        is_variant = field.field_id in variants and isinstance(field.field_type, types.StructType)
        return types.VariantType() if is_variant else None

    if not variants & file.fields_by_id.keys():
        return file
    return sc.Schema(*(_retyped(field, as_variant) for field in file.fields))


def _without_constants(plain: sc.Schema, mapped: sc.Schema, constants: Mapping[int, sc.Value]) -> sc.Schema:
    """A partition value comes before a column that is known by its name only."""
    fields = [
        before if before.field_id < 0 and after.field_id in constants else after
        for before, after in zip(plain.fields, mapped.fields, strict=True)
    ]
    return sc.Schema(*fields)


def with_types(schema: sc.Schema, others: Mapping[int, types.IcebergType]) -> sc.Schema:
    """The same columns, some of them with other types, by field id."""
    fields = (_retyped(field, lambda field: others.get(field.field_id)) for field in schema.fields)
    return sc.Schema(*fields, schema_id=schema.schema_id)


def _retyped(
    field: types.NestedField, other_type: Callable[[types.NestedField], types.IcebergType | None]
) -> types.NestedField:
    """The field with other types, at every level, where there is one."""
    other, kind = other_type(field), field.field_type
    if other is None and isinstance(kind, types.NestedType):
        other = with_fields(kind, [_retyped(inner, other_type) for inner in kind.fields])
    return field if other is None else replace(field, field_type=other)


def with_fields(kind: types.NestedType, fields: Sequence[types.NestedField]) -> types.IcebergType:
    """The type with other fields in the places of its own."""
    match kind:
        case types.ListType():
            return replace(kind, element_type=fields[0].field_type)
        case types.MapType():
            return replace(kind, key_type=fields[0].field_type, value_type=fields[1].field_type)
        case _:
            return types.StructType(*fields)


def columns_to_read(wanted: sc.Schema, file: sc.Schema, constants: Mapping[int, sc.Value] | None = None) -> sc.Schema:
    """The part of the file's schema that the wanted columns need; one column at least if the file has any.

    Positions are not in the file. A struct of which only missing fields are wanted keeps one, to tell where it is null.
    """
    return sc.select_ids(file, _needed(sc.plan_projection(without_positions(wanted), file, constants)))


def without_positions(wanted: sc.Schema) -> sc.Schema:
    """The wanted columns that come from the file or from constants."""
    return sc.Schema(
        *(field for field in wanted.fields if field.field_id != reserved.POS.field_id), schema_id=wanted.schema_id
    )


def _needed(plan: plans.ProjectStruct) -> set[int]:
    sources = (field.source for field in plan.fields)
    needed = (_needed_below(source.plan, source.file_field) for source in sources if isinstance(source, plans.FromFile))
    return set().union(*needed)


def _needed_below(plan: plans.ValuePlan, field: types.NestedField) -> set[int]:
    match plan, field.field_type:
        case plans.ProjectStruct(), types.StructType():
            return _needed(plan) or {_first_leaf(field)}
        case plans.ProjectList(), types.ListType():
            return _needed_below(plan.element, field.field_type.element_field)
        case plans.ProjectMap(), types.MapType():
            is_whole = isinstance(plan.value, plans.Keep)
            return {field.field_id} if is_whole else _needed_below(plan.value, field.field_type.value_field)
        case _:
            return {field.field_id}


def _first_leaf(field: types.NestedField) -> int:
    leaves = (leaf.field_id for leaf in types.walk_fields([field]) if not isinstance(leaf.field_type, types.NestedType))
    # A struct of nothing has none.
    return next(leaves, field.field_id)
