"""Which Python objects stand for a value of a type: natural ones in, internal values out (see `values`)."""

import datetime as dt
import re
import struct
import uuid
from collections.abc import Iterable, Mapping
from decimal import Context, Decimal, DecimalException, Inexact, InvalidOperation
from typing import Any

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


def coerce(value: object, kind: types.IcebergType) -> Any:
    """The internal value for a natural Python one: `date(2017, 11, 16)`, '2017-11-16', `Decimal("14.20")`, a dict for a struct.

    Nothing is rounded or cut but floats to their nearest; what does not fit exactly is an InvalidValueError.
    """
    if value is None:
        return None
    match kind:
        case types.BooleanType():
            return _coerce_boolean(value, kind)
        case types.IntegerType():
            return _coerce_integer(value, kind, _INT32)
        case types.LongType():
            return _coerce_integer(value, kind, _INT64)
        case types.FloatType() | types.DoubleType():
            return _coerce_float(value, kind)
        case types.DecimalType():
            return _coerce_decimal(value, kind)
        case types.DateType():
            return _coerce_date(value, kind)
        case types.TimeType():
            return _coerce_time(value, kind)
        case types.TimestampType() | types.TimestamptzType() | types.TimestampNanoType() | types.TimestamptzNanoType():
            return _coerce_timestamp(value, kind)
        case types.StringType():
            return _coerce_string(value, kind)
        case types.UUIDType():
            return _coerce_uuid(value, kind)
        case types.FixedType() | types.BinaryType():
            return _coerce_bytes(value, kind)
        case types.GeometryType() | types.GeographyType():
            return _coerce_geo(value, kind)
        case types.NestedType():
            return _coerce_nested(value, kind)
        case types.UnknownType():
            raise misfit(value, kind, "it holds only null")
        case _:
            raise misfit(value, kind, "only its null is a single value")


def ticks_per_second(kind: AnyTimestampType) -> int:
    """How finely a timestamp type counts: a million or a thousand million to the second."""
    if isinstance(kind, types.TimestampNanoType | types.TimestamptzNanoType):
        return temporal.NANOS_PER_SECOND
    return temporal.MICROS_PER_SECOND


def bytes_from_hex(text: str, kind: types.IcebergType) -> bytes:
    """Bytes from pairs of hexadecimal digits, and nothing else between them."""
    try:
        data = bytes.fromhex(text)
    except ValueError:
        data = None
    if data is None or 2 * len(data) != len(text):
        raise misfit(text, kind, "write pairs of hexadecimal digits like 000102ff")
    return data


def misfit(value: object, kind: types.IcebergType, right: str) -> InvalidValueError:
    """The error for a value that does not fit the type, with what would be right."""
    try:
        shown = repr(value)
    except ValueError:
        # Python does not write integers of more than some thousand digits.
        shown = f"a huge {type(value).__name__}"
    if len(shown) > 120:
        shown = f"{shown[:120]}..."
    return InvalidValueError(f"{shown} is not a value of type {kind}: {right}")


def _coerce_boolean(value: object, kind: types.IcebergType) -> bool:
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise misfit(value, kind, "give True or False")


def _coerce_integer(value: object, kind: types.IcebergType, limits: tuple[int, int]) -> int:
    if not isinstance(value, int | np.integer) or isinstance(value, bool):
        raise misfit(value, kind, "give an int")
    number = int(value)
    if not limits[0] <= number <= limits[1]:
        raise misfit(value, kind, f"it must be from {limits[0]} to {limits[1]}")
    return number


def _coerce_float(value: object, kind: types.FloatType | types.DoubleType) -> float:
    if not isinstance(value, float | int | Decimal | np.floating | np.integer) or isinstance(value, bool):
        raise misfit(value, kind, "give a float or an int")
    try:
        number = float(value)
        if isinstance(kind, types.FloatType):
            number = struct.unpack("<f", struct.pack("<f", number))[0]
    except (OverflowError, ValueError):
        raise misfit(value, kind, "it is beyond the largest number of the type") from None
    return number


def _coerce_decimal(value: object, kind: types.DecimalType) -> Decimal:
    if isinstance(value, str):
        if NUMBER_TEXT.fullmatch(value) is None:
            raise misfit(value, kind, "write a number like 14.20")
        number = Decimal(value)
    elif isinstance(value, int | np.integer) and not isinstance(value, bool):
        if abs(int(value)) >= 10**38:
            raise misfit(value, kind, f"it must have at most {kind.precision - kind.scale} digits before the point")
        number = Decimal(int(value))
    elif isinstance(value, Decimal):
        number = value
    else:
        raise misfit(value, kind, "give a Decimal, an int or a string like '14.20'; a float is not exact")
    if not number.is_finite():
        raise misfit(value, kind, "it must be a finite number")
    try:
        exact = number.quantize(Decimal((0, (1,), -kind.scale)), context=_EXACT)
    except DecimalException:
        raise misfit(
            value, kind, f"it must have at most {kind.scale} digits after the point and {kind.precision} in all"
        ) from None
    if len(exact.as_tuple().digits) > kind.precision:
        raise misfit(value, kind, f"it must have at most {kind.precision - kind.scale} digits before the point")
    return exact.copy_abs() if exact.is_zero() else exact


def _coerce_date(value: object, kind: types.DateType) -> int:
    if isinstance(value, dt.datetime):
        raise misfit(value, kind, "it has a time of day; give its .date()")
    if isinstance(value, np.datetime64):
        nanos = _nanos_from_numpy(value, kind)
        if nanos % temporal.NANOS_PER_DAY:
            raise misfit(value, kind, "it has a time of day")
        value = nanos // temporal.NANOS_PER_DAY
    if isinstance(value, dt.date):
        return value.toordinal() - _EPOCH_DAY
    if isinstance(value, str):
        value = temporal.parse_date(value)
    elif isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise misfit(value, kind, "give a datetime.date, a string like '2017-11-16' or days from 1970-01-01")
    return _coerce_integer(value, kind, _INT32)


def _coerce_time(value: object, kind: types.TimeType) -> int:
    if isinstance(value, dt.time):
        if value.tzinfo is not None:
            raise misfit(value, kind, "it has a zone; give a time without tzinfo")
        seconds = (value.hour * 60 + value.minute) * 60 + value.second
        return seconds * temporal.MICROS_PER_SECOND + value.microsecond
    if isinstance(value, str):
        return temporal.parse_time(value)
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise misfit(value, kind, "give a datetime.time, a string like '22:31:08' or microseconds from midnight")
    return _coerce_integer(value, kind, (0, temporal.MICROS_PER_DAY - 1))


def _coerce_timestamp(value: object, kind: AnyTimestampType) -> int:
    per_second = ticks_per_second(kind)
    is_zoned = isinstance(kind, types.TimestamptzType | types.TimestamptzNanoType)
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return _coerce_integer(value, kind, _INT64)
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
        nanos, has_zone = _nanos_from_numpy(value, kind), is_zoned
    elif isinstance(value, dt.date):
        nanos, has_zone = (value.toordinal() - _EPOCH_DAY) * temporal.NANOS_PER_DAY, False
    else:
        raise misfit(value, kind, "give a datetime, a string like '2017-11-16T22:31:08.123456' or an int")
    if is_zoned and not has_zone:
        raise misfit(value, kind, "it has no zone; give an aware datetime or an offset such as +00:00")
    if has_zone and not is_zoned:
        raise misfit(value, kind, "it has a zone or offset; give it without one, or use the type with zone")
    return _coerce_integer(temporal.to_precision(nanos, per_second, value), kind, _INT64)


def _nanos_from_numpy(value: np.datetime64, kind: types.IcebergType) -> int:
    if np.isnat(value):
        raise misfit(value, kind, "NaT is not a moment; give None for null")
    # In Python's integers: numpy's own change of unit wraps around silently.
    unit, step = np.datetime_data(value.dtype)
    ticks = int(value.astype(np.int64)) * step
    if unit in ("Y", "M"):
        year, month = divmod(ticks * (12 if unit == "Y" else 1), 12)
        return temporal.days_from_civil(1970 + year, month + 1, 1) * temporal.NANOS_PER_DAY
    if unit in _NUMPY_UNITS:
        return ticks * _NUMPY_UNITS[unit]
    raise misfit(value, kind, f"its unit {unit!r} is not one of Y, M, {', '.join(_NUMPY_UNITS)}")


def _coerce_string(value: object, kind: types.StringType) -> str:
    if not isinstance(value, str):
        raise misfit(value, kind, "give a str")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise misfit(value, kind, "it has half of a surrogate pair, which UTF-8 cannot hold") from None
    return str(value)


def _coerce_uuid(value: object, kind: types.UUIDType) -> uuid.UUID:
    if isinstance(value, uuid.UUID):
        return value
    if isinstance(value, str) and _UUID_TEXT.fullmatch(value):
        return uuid.UUID(value)
    if isinstance(value, bytes | bytearray | memoryview) and len(data := bytes(value)) == 16:
        return uuid.UUID(bytes=data)
    raise misfit(value, kind, "give a UUID, a string like 'f79c3e09-677c-4bbd-a479-3f349cb785e7' or 16 bytes")


def _coerce_bytes(value: object, kind: types.FixedType | types.BinaryType) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise misfit(value, kind, "give bytes; bytes.fromhex('00ff') makes them from text")
    data = bytes(value)
    if isinstance(kind, types.FixedType) and len(data) != kind.length:
        raise misfit(value, kind, f"it has {len(data)} bytes, not {kind.length}")
    return data


def _coerce_geo(value: object, kind: types.GeometryType | types.GeographyType) -> bytes:
    if isinstance(value, str):
        return wkt_to_wkb(value)
    if not isinstance(value, bytes | bytearray | memoryview):
        raise misfit(value, kind, "give ISO WKB as bytes, or WKT like 'POINT (30 10)'")
    data = bytes(value)
    check_wkb(data)
    return data


def _coerce_nested(value: object, kind: types.NestedType) -> tuple[Any, ...]:
    match kind:
        case types.StructType():
            return _coerce_struct(value, kind)
        case types.ListType():
            if isinstance(value, str | bytes | bytearray | Mapping) or not isinstance(value, Iterable):
                raise misfit(value, kind, "give a list")
            return tuple(_coerce_child(element, kind.element_field, kind) for element in value)
        case types.MapType():
            pairs = _pairs(value, kind, "give a dict, or pairs of key and value")
            return tuple(
                (_coerce_child(k, kind.key_field, kind), _coerce_child(v, kind.value_field, kind)) for k, v in pairs
            )
        case _:
            raise AssertionError(f"{kind} is not a nested type")


def _coerce_struct(value: object, kind: types.StructType) -> tuple[tuple[int, Any], ...]:
    """Fields that are not named stay out of the value, so that their defaults can stand in."""
    given = dict(_pairs(value, kind, "give a dict by field name"))
    found = []
    for field in kind.fields:
        for key in (field.name, field.field_id):
            if key in given:
                found.append((field.field_id, _coerce_child(given.pop(key), field, kind)))
                break
    if given:
        names = ", ".join(field.name for field in kind.fields)
        raise misfit(value, kind, f"it has no field {next(iter(given))!r}; its fields are {names or 'none'}")
    return tuple(found)


def _coerce_child(value: object, field: types.NestedField, kind: types.IcebergType) -> Any:
    if value is None and field.required:
        raise misfit(value, kind, f"its {field.name} is required")
    return coerce(value, field.field_type)


def _pairs(value: object, kind: types.IcebergType, right: str) -> list[tuple[Any, Any]]:
    if isinstance(value, Mapping):
        return list(value.items())
    if not isinstance(value, list | tuple) or not all(isinstance(p, list | tuple) and len(p) == 2 for p in value):
        raise misfit(value, kind, right)
    return [(key, item) for key, item in value]
