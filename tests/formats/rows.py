"""Random rows of a schema, as internal values and as Arrow tables."""

import math
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from icefloe.formats.projection import arrow_object, storage_type
from icefloe.schema import Schema, schema_to_arrow, types
from tests.strategies import values_of

VARIANTS = (
    {"metadata": b"\x01\x00\x00", "value": b"\x00"},
    {"metadata": b"\x01\x00\x00", "value": b"\x0c\x07"},
    {"metadata": b"\x01\x01\x00\x01a", "value": b"\x02\x01\x00\x00\x02\x0c\x05"},
    {"metadata": b"\x01\x00\x00", "value": b"\x0dice"},
)
"""Null, 7, {"a": 5} and "ice"."""


def objects_of(kind: types.IcebergType, required: bool) -> st.SearchStrategy[Any]:
    """What pyarrow takes for values of a type, None among them unless required."""
    found: st.SearchStrategy[Any]
    match kind:
        case types.VariantType():
            found = st.sampled_from(VARIANTS)
        case types.StructType():
            found = st.fixed_dictionaries({field.name: objects_of(field.field_type, field.required) for field in kind})
        case types.ListType():
            found = st.lists(objects_of(kind.element_type, kind.element_required), max_size=3)
        case types.MapType():
            pair = st.tuples(objects_of(kind.key_type, True), objects_of(kind.value_type, kind.value_required))
            found = st.lists(pair, max_size=3, unique_by=lambda pair: repr(pair[0]))
        case _:
            found = values_of(kind).map(lambda value: arrow_object(value, kind))
    return found if required or _has_unknown(kind) else st.one_of(st.none(), found)


def _has_unknown(kind: types.IcebergType) -> bool:
    """pyarrow makes broken arrays of null structs in lists where a field is of Arrow's null type."""
    return isinstance(kind, types.StructType) and any(isinstance(field.field_type, types.UnknownType) for field in kind)


def tables_of(schema: Schema, max_rows: int = 12) -> st.SearchStrategy[Any]:
    """Arrow tables with the columns of a schema."""
    row = st.fixed_dictionaries({field.name: objects_of(field.field_type, field.required) for field in schema.fields})
    return st.lists(row, max_size=max_rows).map(lambda rows: arrow_table(schema, rows))


def arrow_table(schema: Schema, rows: list[dict[str, Any]]) -> Any:
    """Rows as an Arrow table of the schema."""
    target = schema_to_arrow(schema)
    columns = [_array([row[field.name] for row in rows], field.type) for field in target]
    return pa.Table.from_arrays(columns, schema=target)


def _array(values: list[Any], arrow_type: Any) -> Any:
    """pyarrow makes broken arrays where it casts a map to its own type and has structs with fields of Arrow's null type in it."""
    found = pa.array(values, storage_type(arrow_type))
    return found if found.type.equals(arrow_type) else found.cast(arrow_type)


def plain(value: Any) -> Any:
    """The value with NaN and -0.0 made comparable."""
    match value:
        case float():
            return "NaN" if math.isnan(value) else (value, math.copysign(1, value))
        case dict():
            return {key: plain(inner) for key, inner in value.items()}
        case list() | tuple():
            return [plain(inner) for inner in value]
        case _:
            return value


def contents(table: Any) -> Any:
    """All rows of a table, comparable."""
    ticks = pa.table([_as_numbers(column) for column in table.columns], names=table.schema.names)
    return plain(ticks.to_pylist()) if table.num_columns else table.num_rows


def _as_numbers(column: Any) -> Any:
    """Timestamps as integers, since Python's end at microseconds and at the year 9999."""
    return column.cast(_numeric(column.type))


def _numeric(kind: Any) -> Any:
    if pa.types.is_timestamp(kind) or pa.types.is_time64(kind):
        return pa.int64()
    if pa.types.is_date32(kind) or pa.types.is_null(kind):
        # pyarrow makes broken lists of lists of nulls that it casts to themselves.
        return pa.int32()
    if isinstance(kind, pa.BaseExtensionType):
        return kind.storage_type
    if pa.types.is_struct(kind):
        # Nullable: pyarrow has nulls below null structs, and refuses to cast them to what is not.
        return pa.struct([field.with_type(_numeric(field.type)).with_nullable(True) for field in kind])
    if pa.types.is_map(kind):
        key, item = kind.key_field, kind.item_field
        return pa.map_(key.with_type(_numeric(key.type)), item.with_type(_numeric(item.type)))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_numeric(kind.value_type)))
    return kind
