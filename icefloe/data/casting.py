"""Which Arrow types may be given for a column of a primitive type, and how values are made those of the column.

Only what keeps every value is done: wider and narrower numbers that fit, exact fractions, finer units of time. Text is not
parsed, and timestamps with and without a zone are never taken for each other.
"""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.errors import InvalidValueError
from icefloe.schema import types


def cast_leaf(array: Any, kind: types.IcebergType, arrow_type: Any, path: str) -> Any:
    """The array as values of the column's type; an error if that loses anything."""
    if array.type.equals(arrow_type):
        return array
    if isinstance(array.type, pa.BaseExtensionType) and not isinstance(kind, types.UUIDType):
        array = array.storage
    if not _fits(array.type, kind):
        raise InvalidValueError(f"column {path!r} is {array.type} in the data; the table has {kind}")
    try:
        return _cast(array, kind, arrow_type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as problem:
        raise InvalidValueError(
            f"column {path!r} is {array.type} in the data and cannot be stored as {kind} without loss: {problem}"
        ) from None


def _fits(given: Any, kind: types.IcebergType) -> bool:
    """Whether values of the Arrow type can be values of the column at all."""
    is_a = pa.types
    match kind:
        case types.UnknownType():
            return False
        case types.BooleanType():
            return bool(is_a.is_boolean(given))
        case types.IntegerType() | types.LongType():
            return bool(is_a.is_integer(given))
        case types.FloatType() | types.DoubleType():
            return bool(is_a.is_floating(given) or is_a.is_integer(given))
        case types.DecimalType():
            return bool(is_a.is_decimal(given) or is_a.is_integer(given))
        case types.DateType():
            return bool(is_a.is_date(given))
        case types.TimeType():
            return bool(is_a.is_time(given))
        case types.TimestampType() | types.TimestampNanoType():
            return bool((is_a.is_timestamp(given) and given.tz is None) or is_a.is_date(given))
        case types.TimestamptzType() | types.TimestamptzNanoType():
            return bool(is_a.is_timestamp(given) and given.tz is not None)
        case types.StringType():
            return bool(is_a.is_string(given) or is_a.is_large_string(given) or is_a.is_string_view(given))
        case types.UUIDType():
            return bool(is_a.is_fixed_size_binary(given) and given.byte_width == 16)
        case types.FixedType():
            return bool(is_a.is_fixed_size_binary(given) or _is_binary(given))
        case types.BinaryType() | types.GeometryType() | types.GeographyType():
            return bool(is_a.is_fixed_size_binary(given) or _is_binary(given))
        case _:
            return False


def _is_binary(given: Any) -> bool:
    is_a = pa.types
    return bool(is_a.is_binary(given) or is_a.is_large_binary(given) or is_a.is_binary_view(given))


def _cast(array: Any, kind: types.IcebergType, arrow_type: Any) -> Any:
    match kind:
        case types.UUIDType():
            return pa.ExtensionArray.from_storage(arrow_type, array.cast(arrow_type.storage_type))
        case types.FloatType() if array.type.bit_width == 64:
            return _as_floats(array, arrow_type)
        case types.FixedType() if pa.types.is_binary_view(array.type) or pa.types.is_large_binary(array.type):
            return array.cast(pa.binary()).cast(arrow_type)
        case types.TimestampType() | types.TimestampNanoType() if pa.types.is_date(array.type):
            return array.cast(pa.date32()).cast(arrow_type)
        case _:
            return array.cast(arrow_type)


def _as_floats(array: Any, arrow_type: Any) -> Any:
    """64-bit numbers as 32-bit ones, if each is the same number then."""
    found = array.cast(arrow_type)
    if pa.types.is_floating(array.type):
        same = pc.or_(pc.equal(found.cast(array.type), array), pc.is_nan(array))
        if not pc.all(same, min_count=0).as_py():
            raise pa.ArrowInvalid("a value is not one of 32 bits")
    return found
