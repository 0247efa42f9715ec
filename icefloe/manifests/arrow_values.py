"""Partition values in Arrow: the type of a column for each Iceberg type, internal values to and from it, and which types a
manifest has them in."""

import json
import uuid
from collections.abc import Mapping, Sequence
from functools import lru_cache

import pyarrow as pa

from icefloe import errors, partitioning as pt
from icefloe.schema import Value, arrow_value_type, decode_array, decode_bounds, is_promotion, schema_from_json, types

_MICROS_AND_NANOS = (
    types.TimeType,
    types.TimestampType,
    types.TimestamptzType,
    types.TimestampNanoType,
    types.TimestamptzNanoType,
)


def value_array_type(field_type: types.IcebergType) -> pa.DataType:
    """The Arrow type of a column of values."""
    return pa.null() if isinstance(field_type, types.UnknownType) else arrow_value_type(field_type)


def from_internal(values: Sequence[Value], field_type: types.IcebergType) -> pa.Array:
    """A column of internal values; None becomes null."""
    target = value_array_type(field_type)
    try:
        if isinstance(field_type, types.UUIDType):
            return pa.array([None if value is None else value.bytes for value in values], target)
        if isinstance(field_type, types.DateType):
            return pa.array(values, pa.int32()).view(target)
        if isinstance(field_type, _MICROS_AND_NANOS):
            return pa.array(values, pa.int64()).view(target)
        return pa.array(values, target)
    except (pa.ArrowException, AttributeError, TypeError, OverflowError, ValueError) as error:
        raise errors.InvalidValueError(
            f"a partition value is not an internal value of type {field_type}: {error}"
        ) from error


def to_internal(column: pa.Array, field_type: types.IcebergType) -> list[Value]:
    """The internal values of a column; null becomes None."""
    if isinstance(field_type, types.UUIDType):
        return [None if value is None else uuid.UUID(bytes=value) for value in column.to_pylist()]
    if isinstance(field_type, types.DateType):
        column = column.view(pa.int32())
    elif isinstance(field_type, _MICROS_AND_NANOS):
        column = column.view(pa.int64())
    values: list[Value] = column.to_pylist()
    return values


def bound_values(column: pa.Array, field_type: types.IcebergType) -> pa.Array | None:
    """Bounds in binary form as values of the type; None if they are not.

    A scan that takes them for unknown is right, if slower; one that fails for them would make the table unreadable.
    """
    try:
        return decode_bounds(column, field_type)
    except errors.InvalidValueError:
        return None


def as_values(column: pa.Array, field_type: types.IcebergType) -> pa.Array:
    """A column as stored in a file (numbers, text, bytes) as values of the type, promoted where that is allowed."""
    target = value_array_type(field_type)
    if column.type == target:
        return column
    stored_as_bytes = isinstance(field_type, types.DecimalType | types.UUIDType | types.FixedType | types.BinaryType)
    if stored_as_bytes and (pa.types.is_binary(column.type) or pa.types.is_fixed_size_binary(column.type)):
        return decode_array(column, field_type)
    if isinstance(field_type, types.StringType) or pa.types.is_binary(column.type) or pa.types.is_string(column.type):
        raise errors.InvalidValueError(f"a column of {column.type} does not hold values of {field_type}")
    try:
        return column.cast(target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise errors.InvalidValueError(
            f"a column of {column.type} does not hold values of {field_type}: {error}"
        ) from error


def partition_columns(
    stored: Mapping[int, tuple[pa.Array, types.IcebergType]],
    of_spec: types.StructType | None,
    header: Mapping[str, str],
) -> tuple[types.StructType, dict[int, pa.Array]]:
    """The partition tuple in the types of the spec; where those cannot hold its values, in those of the file.

    A table that replaces another keeps the ids of its columns by their names, whatever their types (Java's rule), so that
    manifests of one spec can be of several types. Without `of_spec` the types are those of the file.
    """
    if of_spec is None:
        of_spec = types.StructType(
            *(types.NestedField(key, str(key), field_type) for key, (_, field_type) in sorted(stored.items()))
        )
    has_ids = any(field.field_id in stored for field in of_spec.fields)
    fields, columns = [], {}
    for index, field in enumerate(of_spec.fields):
        # Fields of files without ids are numbered -1, -2, ... in their order.
        entry = stored.get(field.field_id if has_ids else -1 - index)
        if entry is None:
            fields.append(field)
            continue
        column, stored_type = entry
        actual = _actual_type(field, stored_type, header)
        fields.append(types.NestedField(field.field_id, field.name, actual))
        if not isinstance(actual, types.UnknownType):
            columns[field.field_id] = as_values(column, actual)
    return types.StructType(*fields), columns


def _actual_type(field: types.NestedField, stored: types.IcebergType, header: Mapping[str, str]) -> types.IcebergType:
    target = field.field_type
    if stored == target or isinstance(stored, types.UnknownType):
        return target
    if isinstance(target, types.UnknownType | types.StringType):
        return stored
    # What the file calls a number may be a date or a time for the spec: only the schema that it was written with can tell.
    written = _written_types(header.get("schema", ""), header.get("partition-spec", "")).get(field.field_id)
    return target if written is None or is_promotion(written, target) else written


@lru_cache(maxsize=64)
def _written_types(schema: str, spec: str) -> Mapping[int, types.IcebergType]:
    try:
        struct = pt.partition_type(pt.fields_from_json(json.loads(spec)), schema_from_json(json.loads(schema)))
    except (errors.IcefloeError, ValueError, RecursionError):
        return {}
    return {field.field_id: field.field_type for field in struct.fields}
