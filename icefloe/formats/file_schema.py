"""What the columns of a file stand for: field ids from the file, else from a name mapping; types as the table has them.

Spec: Column Projection. A file may lack the annotation that tells a variant from a struct; the table's type decides then.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from icefloe.schema import (
    FromFile,
    IcebergType,
    Keep,
    ListType,
    MapType,
    NameMapping,
    NestedField,
    NestedType,
    ProjectList,
    ProjectMap,
    ProjectStruct,
    Schema,
    StructType,
    ValuePlan,
    VariantType,
    apply_name_mapping,
    file_schema_from_arrow,
    plan_projection,
    reserved,
    select_ids,
    walk_fields,
)


def file_columns(
    arrow_schema: Any, wanted: Schema, mapping: NameMapping | None = None, constants: Mapping[int, Any] | None = None
) -> Schema:
    """The schema of a file with the ids and types to project by."""
    return known_columns(file_schema_from_arrow(arrow_schema), wanted, mapping, constants)


def known_columns(
    found: Schema, wanted: Schema, mapping: NameMapping | None = None, constants: Mapping[int, Any] | None = None
) -> Schema:
    """The columns of a file, negative ids where it has none, with the ids and types to project by."""
    if mapping is not None:
        found = _without_constants(found, apply_name_mapping(found, mapping), constants or {})
    variants = {
        field_id for field_id, field in wanted.fields_by_id.items() if isinstance(field.field_type, VariantType)
    }
    if not variants & found.fields_by_id.keys():
        return found
    return Schema(*(_with_variants(field, variants) for field in found.fields))


def _without_constants(plain: Schema, mapped: Schema, constants: Mapping[int, Any]) -> Schema:
    """A partition value comes before a column that is known by its name only."""
    fields = [
        before if before.field_id < 0 and after.field_id in constants else after
        for before, after in zip(plain.fields, mapped.fields, strict=True)
    ]
    return Schema(*fields)


def _with_variants(field: NestedField, variants: set[int]) -> NestedField:
    if field.field_id in variants and isinstance(field.field_type, StructType):
        return replace(field, field_type=VariantType())
    return replace(field, field_type=_types_with_variants(field.field_type, variants))


def _types_with_variants(kind: IcebergType, variants: set[int]) -> IcebergType:
    match kind:
        case StructType():
            return StructType(*(_with_variants(field, variants) for field in kind.fields))
        case ListType():
            return replace(kind, element_type=_with_variants(kind.element_field, variants).field_type)
        case MapType():
            return replace(
                kind,
                key_type=_with_variants(kind.key_field, variants).field_type,
                value_type=_with_variants(kind.value_field, variants).field_type,
            )
        case _:
            return kind


def with_types(schema: Schema, types: Mapping[int, IcebergType]) -> Schema:
    """The same columns, some of them with other types, by field id."""
    return Schema(*(_with_type(field, types) for field in schema.fields), schema_id=schema.schema_id)


def _with_type(field: NestedField, types: Mapping[int, IcebergType]) -> NestedField:
    if field.field_id in types:
        return replace(field, field_type=types[field.field_id])
    match field.field_type:
        case StructType() as kind:
            return replace(field, field_type=StructType(*(_with_type(each, types) for each in kind.fields)))
        case ListType() as kind:
            return replace(
                field, field_type=replace(kind, element_type=_with_type(kind.element_field, types).field_type)
            )
        case MapType() as kind:
            key, value = (_with_type(each, types).field_type for each in (kind.key_field, kind.value_field))
            return replace(field, field_type=replace(kind, key_type=key, value_type=value))
        case _:
            return field


def columns_to_read(wanted: Schema, file: Schema, constants: Mapping[int, Any] | None = None) -> Schema:
    """The part of the file's schema that the wanted columns need; one column at least if the file has any.

    Positions are not in the file. A struct of which only missing fields are wanted keeps one, to tell where it is null.
    """
    plan = plan_projection(without_positions(wanted), file, constants)
    needed = _needed(plan)
    return select_ids(file, needed)


def without_positions(wanted: Schema) -> Schema:
    """The wanted columns that come from the file or from constants."""
    return Schema(
        *(field for field in wanted.fields if field.field_id != reserved.POS.field_id), schema_id=wanted.schema_id
    )


def _needed(plan: ProjectStruct) -> set[int]:
    found: set[int] = set()
    for each in plan.fields:
        if isinstance(each.source, FromFile):
            found |= _needed_below(each.source.plan, each.source.file_field)
    return found


def _needed_below(plan: ValuePlan, field: NestedField) -> set[int]:
    match plan, field.field_type:
        case ProjectStruct(), StructType():
            return _needed(plan) or {_first_leaf(field)}
        case ProjectList(), ListType():
            return _needed_below(plan.element, field.field_type.element_field)
        case ProjectMap(), MapType():
            return (
                {field.field_id}
                if isinstance(plan.value, Keep)
                else _needed_below(plan.value, field.field_type.value_field)
            )
        case _:
            return {field.field_id}


def _first_leaf(field: NestedField) -> int:
    leaves = (each.field_id for each in walk_fields([field]) if not isinstance(each.field_type, NestedType))
    # A struct of nothing has none.
    return next(leaves, field.field_id)
