"""Conversion of natural Python objects to the internal values of a type (see `values`)."""

import datetime as dt
import re
import struct
import uuid
from collections.abc import Callable, Iterable, Mapping
from decimal import Context, Decimal, DecimalException, Inexact, InvalidOperation
from typing import Any, NoReturn

import numpy as np

from icefloe.errors import InvalidValueError
from icefloe.schema import temporal, types
from icefloe.schema.wkb import check_wkb, wkt_to_wkb

AnyTimestampType = types.TimestampType | types.TimestamptzType | types.TimestampNanoType | types.TimestamptzNanoType

_INT32 = (-(2**31), 2**31 - 1)
_INT64 = (-(2**63), 2**63 - 1)
_EPOCH_DAY = dt.date(1970, 1, 1).toordinal()
_EPOCH = dt.datetime(1970, 1, 1)
_EPOCH_UTC = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)
# Room for every digit, so that nothing is rounded without an error.
_EXACT = Context(prec=100, traps=[InvalidOperation, Inexact])
_NUMPY_UNITS = {
    "W": 7 * temporal.NANOS_PER_DAY,
    "D": temporal.NANOS_PER_DAY,
    "h": 3600 * temporal.NANOS_PER_SECOND,
    "m": 60 * temporal.NANOS_PER_SECOND,
    "s": temporal.NANOS_PER_SECOND,
    "ms": 1_000_000,
    "us": 1_000,
    "ns": 1,
}
NUMBER_TEXT = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_UUID_TEXT = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[0-9a-fA-F]{32}")


def coerce(value: object, field_type: types.IcebergType) -> types.Value:
    """The internal value for a natural Python one: `date(2017, 11, 16)`, '2017-11-16', `Decimal("14.20")`, a dict for a struct.

    Only floats are rounded, to the nearest value; anything else that does not fit exactly is an InvalidValueError.
    """
    if value is None:
        return None
    rule = _RULES.get(type(field_type))
    if rule is None:
        raise misfit(value, field_type, "only its null is a single value")
    return rule(value, field_type)


def ticks_per_second(field_type: AnyTimestampType) -> int:
    """The resolution of a timestamp type: a million or a billion ticks per second."""
    if isinstance(field_type, types.TimestampNanoType | types.TimestamptzNanoType):
        return temporal.NANOS_PER_SECOND
    return temporal.MICROS_PER_SECOND


def bytes_from_hex(text: str, field_type: types.IcebergType) -> bytes:
    """Bytes from pairs of hexadecimal digits, with nothing between them."""
    try:
        data = bytes.fromhex(text)
    except ValueError:
        data = None
    if data is None or 2 * len(data) != len(text):
        raise misfit(text, field_type, "write pairs of hexadecimal digits like 000102ff")
    return data


def misfit(value: object, field_type: types.IcebergType, right: str) -> InvalidValueError:
    """The error for a value that does not fit the type; `right` says what would."""
    try:
        shown = repr(value)
    except ValueError:
        # Python does not write integers of more than some thousand digits.
        shown = f"a huge {type(value).__name__}"
    if len(shown) > 120:
        shown = f"{shown[:120]}..."
    return InvalidValueError(f"{shown} is not a value of type {field_type}: {right}")


def _coerce_boolean(value: object, field_type: types.BooleanType) -> bool:
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise misfit(value, field_type, "give True or False")


def _coerce_integer(value: object, field_type: types.IcebergType, limits: tuple[int, int]) -> int:
    if not isinstance(value, int | np.integer) or isinstance(value, bool):
        raise misfit(value, field_type, "give an int")
    number = int(value)
    if not limits[0] <= number <= limits[1]:
        raise misfit(value, field_type, f"it must be from {limits[0]} to {limits[1]}")
    return number


def _coerce_float(value: object, field_type: types.FloatType | types.DoubleType) -> float:
    if not isinstance(value, float | int | Decimal | np.floating | np.integer) or isinstance(value, bool):
        raise misfit(value, field_type, "give a float or an int")
    try:
        number = float(value)
        if isinstance(field_type, types.FloatType):
            number = struct.unpack("<f", struct.pack("<f", number))[0]
    except (OverflowError, ValueError):
        raise misfit(value, field_type, "it is beyond the largest number of the type") from None
    return number


def _coerce_decimal(value: object, field_type: types.DecimalType) -> Decimal:
    if isinstance(value, str):
        if NUMBER_TEXT.fullmatch(value) is None:
            raise misfit(value, field_type, "write a number like 14.20")
        number = Decimal(value)
    elif isinstance(value, int | np.integer) and not isinstance(value, bool):
        if abs(int(value)) >= 10**38:
            raise _too_long(value, field_type)
        number = Decimal(int(value))
    elif isinstance(value, Decimal):
        number = value
    else:
        raise misfit(value, field_type, "give a Decimal, an int or a string like '14.20'; a float is not exact")
    if not number.is_finite():
        raise misfit(value, field_type, "it must be a finite number")
    try:
        exact = number.quantize(Decimal((0, (1,), -field_type.scale)), context=_EXACT)
    except DecimalException:
        right = f"it must have at most {field_type.scale} digits after the point and {field_type.precision} in all"
        raise misfit(value, field_type, right) from None
    if len(exact.as_tuple().digits) > field_type.precision:
        raise _too_long(value, field_type)
    return exact.copy_abs() if exact.is_zero() else exact


def _too_long(value: object, field_type: types.DecimalType) -> InvalidValueError:
    right = f"it must have at most {field_type.precision - field_type.scale} digits before the point"
    return misfit(value, field_type, right)


def _coerce_date(value: object, field_type: types.DateType) -> int:
    if isinstance(value, dt.datetime):
        raise misfit(value, field_type, "it has a time of day; give its .date()")
    if isinstance(value, np.datetime64):
        nanos = _nanos_from_numpy(value, field_type)
        if nanos % temporal.NANOS_PER_DAY:
            raise misfit(value, field_type, "it has a time of day")
        value = nanos // temporal.NANOS_PER_DAY
    if isinstance(value, dt.date):
        return value.toordinal() - _EPOCH_DAY
    if isinstance(value, str):
        value = temporal.parse_date(value)
    elif isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise misfit(value, field_type, "give a datetime.date, a string like '2017-11-16' or days from 1970-01-01")
    return _coerce_integer(value, field_type, _INT32)


def _coerce_time(value: object, field_type: types.TimeType) -> int:
    if isinstance(value, dt.time):
        if value.tzinfo is not None:
            raise misfit(value, field_type, "it has a zone; give a time without tzinfo")
        seconds = (value.hour * 60 + value.minute) * 60 + value.second
        return seconds * temporal.MICROS_PER_SECOND + value.microsecond
    if isinstance(value, str):
        return temporal.parse_time(value)
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise misfit(value, field_type, "give a datetime.time, a string like '22:31:08' or microseconds from midnight")
    return _coerce_integer(value, field_type, (0, temporal.MICROS_PER_DAY - 1))


def _coerce_timestamp(value: object, field_type: AnyTimestampType) -> int:
    per_second = ticks_per_second(field_type)
    is_zoned = isinstance(field_type, types.TimestamptzType | types.TimestamptzNanoType)
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return _coerce_integer(value, field_type, _INT64)
    if isinstance(value, str):
        nanos, offset = temporal.parse_timestamp(value)
        has_zone = offset is not None
        nanos -= (offset or 0) * temporal.NANOS_PER_SECOND
    elif isinstance(value, dt.datetime):
        has_zone = value.utcoffset() is not None
        elapsed = value - _EPOCH_UTC if has_zone else value.replace(tzinfo=None) - _EPOCH
        # A pandas Timestamp is a datetime that also counts nanoseconds.
        nanos = elapsed // _MICROSECOND * 1000 + getattr(value, "nanosecond", 0)
    elif isinstance(value, np.datetime64):
        # numpy's moments are UTC by its own definition, and written without an offset: they fit both.
        nanos, has_zone = _nanos_from_numpy(value, field_type), is_zoned
    elif isinstance(value, dt.date):
        nanos, has_zone = (value.toordinal() - _EPOCH_DAY) * temporal.NANOS_PER_DAY, False
    else:
        raise misfit(value, field_type, "give a datetime, a string like '2017-11-16T22:31:08.123456' or an int")
    if is_zoned and not has_zone:
        raise misfit(value, field_type, "it has no zone; give an aware datetime or an offset such as +00:00")
    if has_zone and not is_zoned:
        raise misfit(value, field_type, "it has a zone or offset; give it without one, or use the type with zone")
    return _coerce_integer(temporal.to_precision(nanos, per_second, value), field_type, _INT64)


def _nanos_from_numpy(value: np.datetime64, field_type: types.IcebergType) -> int:
    if np.isnat(value):
        raise misfit(value, field_type, "NaT is not a moment; give None for null")
    # In Python's integers: numpy's own change of unit wraps around silently.
    unit, step = np.datetime_data(value.dtype)
    ticks = int(value.astype(np.int64)) * step
    if unit in ("Y", "M"):
        year, month = divmod(ticks * (12 if unit == "Y" else 1), 12)
        return temporal.days_from_civil(1970 + year, month + 1, 1) * temporal.NANOS_PER_DAY
    if unit in _NUMPY_UNITS:
        return ticks * _NUMPY_UNITS[unit]
    raise misfit(value, field_type, f"its unit {unit!r} is not one of Y, M, {', '.join(_NUMPY_UNITS)}")


def _coerce_string(value: object, field_type: types.StringType) -> str:
    if not isinstance(value, str):
        raise misfit(value, field_type, "give a str")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise misfit(value, field_type, "it has half of a surrogate pair, which UTF-8 cannot hold") from None
    return str(value)


def _coerce_uuid(value: object, field_type: types.UUIDType) -> uuid.UUID:
    if isinstance(value, uuid.UUID):
        return value
    if isinstance(value, str) and _UUID_TEXT.fullmatch(value):
        return uuid.UUID(value)
    if isinstance(value, bytes | bytearray | memoryview) and len(data := bytes(value)) == 16:
        return uuid.UUID(bytes=data)
    raise misfit(value, field_type, "give a UUID, a string like 'f79c3e09-677c-4bbd-a479-3f349cb785e7' or 16 bytes")


def _coerce_bytes(value: object, field_type: types.FixedType | types.BinaryType) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise misfit(value, field_type, "give bytes; bytes.fromhex('00ff') makes them from text")
    data = bytes(value)
    if isinstance(field_type, types.FixedType) and len(data) != field_type.length:
        raise misfit(value, field_type, f"it has {len(data)} bytes, not {field_type.length}")
    return data


def _coerce_geo(value: object, field_type: types.GeometryType | types.GeographyType) -> bytes:
    if isinstance(value, str):
        return wkt_to_wkb(value)
    if not isinstance(value, bytes | bytearray | memoryview):
        raise misfit(value, field_type, "give ISO WKB as bytes, or WKT like 'POINT (30 10)'")
    data = bytes(value)
    check_wkb(data)
    return data


def _coerce_list(value: object, field_type: types.ListType) -> tuple[types.Value, ...]:
    if isinstance(value, str | bytes | bytearray | Mapping) or not isinstance(value, Iterable):
        raise misfit(value, field_type, "give a list")
    return tuple(_coerce_child(element, field_type.element_field, field_type) for element in value)


def _coerce_map(value: object, field_type: types.MapType) -> tuple[tuple[types.Value, types.Value], ...]:
    pairs = _pairs(value, field_type, "give a dict, or pairs of key and value")
    key_field, value_field = field_type.fields
    return tuple((_coerce_child(k, key_field, field_type), _coerce_child(v, value_field, field_type)) for k, v in pairs)


def _coerce_struct(value: object, field_type: types.StructType) -> tuple[tuple[int, types.Value], ...]:
    """Fields that are not given stay out of the value, so that their defaults apply."""
    rest = dict(_pairs(value, field_type, "give a dict by field name"))
    children = []
    for field in field_type.fields:
        for key in (field.name, field.field_id):
            if key in rest:
                children.append((field.field_id, _coerce_child(rest.pop(key), field, field_type)))
                break
    if rest:
        names = ", ".join(field.name for field in field_type.fields)
        raise misfit(value, field_type, f"it has no field {next(iter(rest))!r}; its fields are {names or 'none'}")
    return tuple(children)


def _coerce_child(value: object, field: types.NestedField, field_type: types.IcebergType) -> types.Value:
    if value is None and field.required:
        raise misfit(value, field_type, f"its {field.name} is required")
    return coerce(value, field.field_type)


def _pairs(value: object, field_type: types.IcebergType, right: str) -> list[tuple[object, object]]:
    if isinstance(value, Mapping):
        return list(value.items())
    if not isinstance(value, list | tuple) or not all(isinstance(p, list | tuple) and len(p) == 2 for p in value):
        raise misfit(value, field_type, right)
    return [(key, item) for key, item in value]


def _coerce_unknown(value: object, field_type: types.UnknownType) -> NoReturn:
    raise misfit(value, field_type, "it holds only null")


_RULES: dict[type[types.IcebergType], Callable[[object, Any], types.Value]] = {
    types.UnknownType: _coerce_unknown,
    types.BooleanType: _coerce_boolean,
    types.IntegerType: lambda value, field_type: _coerce_integer(value, field_type, _INT32),
    types.LongType: lambda value, field_type: _coerce_integer(value, field_type, _INT64),
    types.FloatType: _coerce_float,
    types.DoubleType: _coerce_float,
    types.DecimalType: _coerce_decimal,
    types.DateType: _coerce_date,
    types.TimeType: _coerce_time,
    types.TimestampType: _coerce_timestamp,
    types.TimestamptzType: _coerce_timestamp,
    types.TimestampNanoType: _coerce_timestamp,
    types.TimestamptzNanoType: _coerce_timestamp,
    types.StringType: _coerce_string,
    types.UUIDType: _coerce_uuid,
    types.FixedType: _coerce_bytes,
    types.BinaryType: _coerce_bytes,
    types.GeometryType: _coerce_geo,
    types.GeographyType: _coerce_geo,
    types.StructType: _coerce_struct,
    types.ListType: _coerce_list,
    types.MapType: _coerce_map,
}
