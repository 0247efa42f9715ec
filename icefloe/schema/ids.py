"""Ids for the fields of a schema or type that comes from outside the table."""

from collections.abc import Callable
from dataclasses import replace
from itertools import count

from icefloe.schema import types
from icefloe.schema.schema import Schema

Renumber = Callable[[int], int]
"""From the id that a field has to the one it gets."""


def assign_fresh_ids(schema: Schema, next_id: int = 1, base: Schema | None = None) -> Schema:
    """The same columns with new ids, `next_id` the first; fields that `base` has by full name get the ids they have there.

    The ids below one struct are given to its own fields first and then to what is nested in them, in the order in which
    the Java library and PyIceberg give them.
    """
    counter = count(next_id)
    base_ids = {name: field_id for field_id, name in base.names_by_id.items()} if base is not None else {}
    fresh: dict[int, int] = {}

    def new_id(old: int) -> int:
        known = base_ids.get(schema.names_by_id[old])
        fresh[old] = next(counter) if known is None else known
        return fresh[old]

    fields = _renumber_fields(schema.fields, new_id)
    return Schema(
        *fields,
        schema_id=schema.schema_id,
        identifier_field_ids=[fresh[field_id] for field_id in schema.identifier_field_ids],
    )


def assign_fresh_type_ids(field_type: types.IcebergType, next_id: Callable[[], int]) -> types.IcebergType:
    """The same type with ids from `next_id` for all fields nested in it."""
    return renumber_type(field_type, lambda _: next_id())


def renumber_type(field_type: types.IcebergType, new_id: Renumber) -> types.IcebergType:
    """The same type with new ids for all nested fields."""
    match field_type:
        case types.StructType():
            return types.StructType(*_renumber_fields(field_type.fields, new_id))
        case types.ListType():
            element_id = new_id(field_type.element_id)
            element = renumber_type(field_type.element_type, new_id)
            return types.ListType(element_id, element, field_type.element_required)
        case types.MapType():
            key_id, value_id = new_id(field_type.key_id), new_id(field_type.value_id)
            key, value = renumber_type(field_type.key_type, new_id), renumber_type(field_type.value_type, new_id)
            return types.MapType(key_id, key, value_id, value, field_type.value_required)
        case _:
            return field_type


def _renumber_fields(fields: tuple[types.NestedField, ...], new_id: Renumber) -> list[types.NestedField]:
    ids = [new_id(field.field_id) for field in fields]
    return [_renumber_field(field, field_id, new_id) for field, field_id in zip(fields, ids, strict=True)]


def _renumber_field(field: types.NestedField, field_id: int, new_id: Renumber) -> types.NestedField:
    new_type = renumber_type(field.field_type, new_id)
    return replace(
        field,
        field_id=field_id,
        field_type=new_type,
        initial_default=_renumber_value(field.initial_default, field.field_type, new_type),
        write_default=_renumber_value(field.write_default, field.field_type, new_type),
    )


def _renumber_value(value: types.Value, old: types.IcebergType, new: types.IcebergType) -> types.Value:
    """A default value with the new ids in its structs."""
    if value is None or not isinstance(old, types.NestedType) or not isinstance(new, types.NestedType):
        return value
    pairs = list(zip(old.fields, new.fields, strict=True))
    match old:
        case types.StructType():
            fields = {before.field_id: (before, after) for before, after in pairs}
            return tuple((fields[key][1].field_id, _renumber_part(part, *fields[key])) for key, part in value)
        case types.ListType():
            return tuple(_renumber_part(part, *pairs[0]) for part in value)
        case _:
            return tuple(
                tuple(_renumber_part(part, *pair) for part, pair in zip(entry, pairs, strict=True)) for entry in value
            )


def _renumber_part(value: types.Value, old: types.NestedField, new: types.NestedField) -> types.Value:
    return _renumber_value(value, old.field_type, new.field_type)
