"""The constants of a filter text: `-34`, `1.5`, `1.5e0`, `X'00ff'`, `DATE '2024-01-31'`."""

import math
from decimal import Decimal, DecimalException

from icefloe.errors import InvalidExpressionError
from icefloe.expressions.terms import Literal, literal
from icefloe.schema import NANOS_PER_SECOND, coerce, parse_text, parse_timestamp, types

_TIMESTAMPS = types.TimestampType | types.TimestamptzType | types.TimestampNanoType | types.TimestamptzNanoType
_TYPES: dict[str, types.IcebergType] = {
    str(field_type): field_type
    for field_type in (
        types.DateType(),
        types.TimeType(),
        types.TimestampType(),
        types.TimestamptzType(),
        types.TimestampNanoType(),
        types.TimestamptzNanoType(),
        types.UUIDType(),
        types.FloatType(),
        types.DoubleType(),
    )
}
_MOST_DIGITS = 100
_NANOS_PER_MICRO = 1000


def integer_literal(digits: str) -> Literal:
    """A whole number: a long, or a decimal when it is too large for one."""
    return literal(whole_number(digits))


def whole_number(digits: str) -> int:
    """A whole number of any sane length; Python itself refuses thousands of digits."""
    if len(digits) > _MOST_DIGITS:
        raise InvalidExpressionError(f"a number of {len(digits)} digits is larger than any type holds")
    return int(digits)


def decimal_literal(text: str) -> Literal:
    """A decimal with exactly the digits written."""
    try:
        return literal(Decimal(text))
    except DecimalException:
        raise InvalidExpressionError(f"{text!r} is not a decimal number; write it like 14.20") from None


def float_literal(text: str) -> Literal:
    """A double."""
    number = float(text)
    if math.isinf(number):
        raise InvalidExpressionError(f"{text} is beyond the largest double; write DOUBLE 'Infinity' if that is meant")
    return literal(number)


def binary_literal(digits: str) -> Literal:
    """Bytes from pairs of hexadecimal digits."""
    try:
        data = bytes.fromhex(digits)
    except ValueError:
        data = None
    if data is None or 2 * len(data) != len(digits):
        raise InvalidExpressionError(f"X'{digits}' is not pairs of hexadecimal digits; write it like X'00ff'")
    return literal(data)


def typed_literal(type_name: str, text: str) -> Literal:
    """A constant with an explicit type. A timestamp with an offset is zoned; TIMESTAMPTZ without one is UTC."""
    name = type_name.lower()
    if name == "decimal":
        return decimal_literal(text)
    field_type = _TYPES.get(name)
    if field_type is None:
        known = ", ".join(("DECIMAL", *(name.upper() for name in _TYPES)))
        raise InvalidExpressionError(f"{type_name} is not a type of constants; those are {known}")
    if isinstance(field_type, _TIMESTAMPS):
        return _timestamp_literal(text, field_type)
    return Literal(parse_text(text, field_type), field_type)


def _timestamp_literal(text: str, field_type: types.IcebergType) -> Literal:
    nanos, offset = parse_timestamp(text)
    nanos -= (offset or 0) * NANOS_PER_SECOND
    is_zoned = offset is not None or isinstance(field_type, types.TimestamptzType | types.TimestamptzNanoType)
    if isinstance(field_type, types.TimestampNanoType | types.TimestamptzNanoType) or nanos % _NANOS_PER_MICRO:
        fine = types.TimestamptzNanoType() if is_zoned else types.TimestampNanoType()
        return Literal(coerce(nanos, fine), fine)
    coarse = types.TimestamptzType() if is_zoned else types.TimestampType()
    return Literal(coerce(nanos // _NANOS_PER_MICRO, coarse), coarse)
