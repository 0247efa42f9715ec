"""The text of a partition value for people and in paths, the same as the Java library's."""

import base64
from decimal import Decimal

import numpy as np

from icefloe.schema import Value, temporal, types

NULL_TEXT = "null"
EPOCH_YEAR = 1970


def human_day(days: int) -> str:
    """Days since 1970-01-01 as `2017-12-01`."""
    year, month, day = temporal.civil_from_days(days)
    return f"{year:04d}-{month:02d}-{day:02d}"


def human_value(value: Value, field_type: types.IcebergType) -> str:
    """A value of the type as text."""
    if value is None:
        return NULL_TEXT
    match field_type:
        case types.BooleanType():
            return "true" if value else "false"
        case types.DateType():
            return human_day(value)
        case types.TimeType():
            return _time_text(value)
        case types.TimestampType():
            return _timestamp_text(value, temporal.MICROS_PER_SECOND)
        case types.TimestamptzType():
            return _timestamp_text(value, temporal.MICROS_PER_SECOND) + "+00:00"
        case types.TimestampNanoType():
            return _timestamp_text(value, temporal.NANOS_PER_SECOND)
        case types.TimestamptzNanoType():
            return _timestamp_text(value, temporal.NANOS_PER_SECOND) + "+00:00"
        case types.FixedType() | types.BinaryType():
            return base64.b64encode(value).decode("ascii")
        case types.FloatType():
            return _float_text(value, np.format_float_scientific(np.float32(value), unique=True))
        case types.DoubleType():
            return _float_text(value, np.format_float_scientific(np.float64(value), unique=True))
        case _:
            return str(value)


def _time_text(micros: int) -> str:
    # Java's LocalTime.toString leaves out zero seconds and writes fractions in groups of three digits.
    seconds, fraction = divmod(micros, temporal.MICROS_PER_SECOND)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}"
    if seconds % 60 or fraction:
        text += f":{seconds % 60:02d}"
    if fraction:
        text += f".{fraction // 1000:03d}" if fraction % 1000 == 0 else f".{fraction:06d}"
    return text


def _timestamp_text(value: int, per_second: int) -> str:
    # Java's ISO_LOCAL_DATE_TIME: a sign before years of more than four digits, a fraction without trailing zeros.
    seconds, fraction = divmod(value, per_second)
    days, second = divmod(seconds, temporal.SECONDS_PER_DAY)
    clock = f"{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}"
    digits = f"{fraction:0{len(str(per_second)) - 1}d}".rstrip("0")
    return f"{temporal.format_date(days)}T{clock}" + (f".{digits}" if digits else "")


def _float_text(value: float, scientific: str) -> str:
    # Java writes plain digits from 10^-3 up to 10^7 and `1.0E10` outside, always with a digit after the point.
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    mantissa, exponent = scientific.split("e")
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        plain = format(Decimal(f"{mantissa}E{int(exponent)}"), "f")
        whole, _, digits = plain.partition(".")
        return f"{whole}.{digits.rstrip('0') or '0'}"
    return f"{mantissa if not mantissa.endswith('.') else mantissa + '0'}E{int(exponent)}"
