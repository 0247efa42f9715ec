"""Partition values in Arrow: the type of a column for each Iceberg type, and internal values to and from it."""

import uuid
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from icefloe.errors import InvalidValueError
from icefloe.schema import arrow_value_type, decode_array, decode_bounds, types

_MICROS_AND_NANOS = (
    types.TimeType,
    types.TimestampType,
    types.TimestamptzType,
    types.TimestampNanoType,
    types.TimestamptzNanoType,
)


def value_array_type(kind: types.IcebergType) -> Any:
    """The Arrow type of a column of values."""
    return pa.null() if isinstance(kind, types.UnknownType) else arrow_value_type(kind)


def from_internal(values: Sequence[Any], kind: types.IcebergType) -> Any:
    """A column of internal values; None becomes null."""
    target = value_array_type(kind)
    try:
        if isinstance(kind, types.UUIDType):
            return pa.array([None if value is None else value.bytes for value in values], target)
        if isinstance(kind, types.DateType):
            return pa.array(values, pa.int32()).view(target)
        if isinstance(kind, _MICROS_AND_NANOS):
            return pa.array(values, pa.int64()).view(target)
        return pa.array(values, target)
    except (pa.ArrowException, AttributeError, TypeError, OverflowError, ValueError) as error:
        raise InvalidValueError(f"a partition value is not an internal value of type {kind}: {error}") from error


def to_internal(column: Any, kind: types.IcebergType) -> list[Any]:
    """The internal values of a column; null becomes None."""
    if isinstance(kind, types.UUIDType):
        return [None if value is None else uuid.UUID(bytes=value) for value in column.to_pylist()]
    if isinstance(kind, types.DateType):
        column = column.view(pa.int32())
    elif isinstance(kind, _MICROS_AND_NANOS):
        column = column.view(pa.int64())
    found: list[Any] = column.to_pylist()
    return found


def bound_values(column: Any, kind: types.IcebergType) -> Any | None:
    """Bounds in binary form as values of the type; None if they are not.

    A scan that takes them for unknown is right, if slower; one that fails for them would make the table unreadable.
    """
    try:
        return decode_bounds(column, kind)
    except InvalidValueError:
        return None


def as_values(column: Any, kind: types.IcebergType) -> Any:
    """A column as stored in a file (numbers, text, bytes) as values of the type, promoted where that is allowed."""
    target = value_array_type(kind)
    if column.type == target:
        return column
    stored_as_bytes = isinstance(kind, types.DecimalType | types.UUIDType | types.FixedType | types.BinaryType)
    if stored_as_bytes and (pa.types.is_binary(column.type) or pa.types.is_fixed_size_binary(column.type)):
        return decode_array(column, kind)
    if isinstance(kind, types.StringType) or pa.types.is_binary(column.type) or pa.types.is_string(column.type):
        raise InvalidValueError(f"a column of {column.type} does not hold values of {kind}")
    try:
        return column.cast(target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidValueError(f"a column of {column.type} does not hold values of {kind}: {error}") from error
