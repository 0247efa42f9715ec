"""The internal value of each type, and its conversion from and to text; `coercion` has the one from Python objects.

| Type | Internal value |
|---|---|
| boolean, int, long, float, double, string | bool, int, int, float, float, str |
| decimal | `Decimal` with exactly the scale of the type |
| date; time; timestamps | int: days from 1970-01-01; microseconds from midnight; micro- or nanoseconds from 1970-01-01T00:00:00 (UTC) |
| uuid; fixed, binary; geometry, geography | `uuid.UUID`; bytes; bytes of ISO WKB |
| struct; list; map | tuple of (field id, value); tuple of values; tuple of (key, value) |

Null is None for every type. Internal values are hashable, and `coerce` leaves them as they are.
"""

import re
import struct
from collections.abc import Iterable

import numpy as np

from icefloe.schema import temporal, types
from icefloe.schema.coercion import NUMBER_TEXT, bytes_from_hex, coerce, misfit, ticks_per_second
from icefloe.schema.wkb import wkb_to_wkt

_INTEGER_TEXT = re.compile(r"[+-]?[0-9]+")
_SPECIAL_FLOATS = {
    "nan": float("nan"),
    "infinity": float("inf"),
    "inf": float("inf"),
    "-infinity": float("-inf"),
    "-inf": float("-inf"),
}


def to_text(value: types.Value, field_type: types.IcebergType) -> str:
    """The value for people: ISO 8601 for times, hexadecimal for bytes, WKT for shapes; `parse_text` reads all but nested types."""
    if value is None:
        return "null"
    match field_type:
        case types.BooleanType():
            return "true" if value else "false"
        case types.FloatType():
            return _float_text(shortest_float(value))
        case types.DoubleType():
            return _float_text(value)
        case types.DecimalType():
            return format(value, "f")
        case types.DateType():
            return temporal.format_date(value)
        case types.TimeType():
            return temporal.format_time(value)
        case types.TimestampType() | types.TimestampNanoType():
            return temporal.format_timestamp(value, ticks_per_second(field_type))
        case types.TimestamptzType() | types.TimestamptzNanoType():
            return temporal.format_timestamp(value, ticks_per_second(field_type)) + "+00:00"
        case types.FixedType() | types.BinaryType():
            return str(value.hex())
        case types.GeometryType() | types.GeographyType():
            return wkb_to_wkt(value)
        case types.StructType():
            fields = {field.field_id: field for field in field_type.fields}
            return _braced(f"{fields[i].name}: {to_text(child, fields[i].field_type)}" for i, child in value)
        case types.ListType():
            return f"[{', '.join(to_text(element, field_type.element_type) for element in value)}]"
        case types.MapType():
            return _braced(f"{to_text(k, field_type.key_type)}: {to_text(v, field_type.value_type)}" for k, v in value)
        case _:
            return str(value)


def parse_text(text: str, field_type: types.IcebergType) -> types.Value:
    """The value of a text from `to_text`, for every primitive type; never null."""
    if not isinstance(text, str):
        raise misfit(text, field_type, "give its text as a string")
    match field_type:
        case types.BooleanType():
            if (lower := text.lower()) in ("true", "false"):
                return lower == "true"
            raise misfit(text, field_type, "write true or false")
        case types.IntegerType() | types.LongType():
            # Python refuses to read numbers of thousands of digits; no type here has more than 19.
            if _INTEGER_TEXT.fullmatch(text) is None or len(text) > 100:
                raise misfit(text, field_type, "write digits like -34")
            return coerce(int(text), field_type)
        case types.FloatType() | types.DoubleType():
            if (special := _SPECIAL_FLOATS.get(text.lower().removeprefix("+"))) is not None:
                return special
            if NUMBER_TEXT.fullmatch(text) is None:
                raise misfit(text, field_type, "write a number like 1.5e3, NaN or -Infinity")
            number = float(text)
            if number in (float("inf"), float("-inf")):
                raise misfit(text, field_type, "it is beyond the largest number of the type")
            return coerce(number, field_type)
        case types.FixedType() | types.BinaryType():
            return coerce(bytes_from_hex(text, field_type), field_type)
        case types.UnknownType():
            raise misfit(text, field_type, "it holds only null")
        case types.NestedType():
            raise misfit(text, field_type, "only primitive types are read from text")
        case _:
            return coerce(text, field_type)


def shortest_float(value: float) -> float:
    """The double with the fewest digits that still parses as this 32-bit float."""
    shortest = float(str(np.float32(value)))
    return shortest if struct.pack("<f", shortest) == struct.pack("<f", value) else value


def _float_text(value: float) -> str:
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    return repr(value)


def _braced(parts: Iterable[str]) -> str:
    return "{" + ", ".join(parts) + "}"
