"""Where a constant lies among the values of a column's type, so that a comparison with it means the same to every reader.

A constant that the type can hold is `Exact`. One that it cannot hold, like 1.5 or 3,000,000,000 among ints, lies
`Between` two of its values, or beyond the first or last. Numbers go to every numeric type, and to float types by
rounding; texts to dates, times, timestamps, decimals and uuids; dates and timestamps to each other. A moment without
a zone is UTC for a column that has one. Anything else is refused.
"""

import math
import re
import struct
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from icefloe.errors import InvalidExpressionError, InvalidInputError
from icefloe.expressions import values as ex
from icefloe.expressions.terms import BoundTerm, Literal
from icefloe.schema import Value, coerce, temporal, types

_INT32 = (-(2**31), 2**31 - 1)
_INT64 = (-(2**63), 2**63 - 1)
_NANOS_PER_MICRO = 1000
MAX_FLOAT = struct.unpack("<f", b"\xff\xff\x7f\x7f")[0]
"""The largest finite 32-bit float."""

_NUMBERS = types.IntegerType | types.LongType | types.FloatType | types.DoubleType | types.DecimalType
_WHOLE = types.IntegerType | types.LongType
_NAIVE = types.TimestampType | types.TimestampNanoType
_ZONED = types.TimestamptzType | types.TimestamptzNanoType
_NUMBER_TEXT = re.compile(r"[+-]?(?:[0-9]{1,60}\.?[0-9]{0,60}|\.[0-9]{1,60})(?:[eE][+-]?[0-9]{1,3})?")


@dataclass(frozen=True, slots=True)
class Exact:
    """The type holds this value."""

    value: Value


@dataclass(frozen=True, slots=True)
class Between:
    """The type's values below and above; None where it has none there."""

    below: Value
    above: Value


Position = Exact | Between


def locate(constant: Literal, field_type: types.IcebergType) -> Position:
    """Where the constant lies among the values of the type."""
    if constant.field_type == field_type:
        return Exact(constant.value)
    try:
        position = _locate(constant, field_type)
    except InvalidExpressionError:
        raise
    except InvalidInputError as error:
        raise InvalidExpressionError(str(error)) from None
    if position is None:
        raise InvalidExpressionError(
            f"the constant {constant} of type {constant.field_type} cannot be compared with values of type {field_type}"
        )
    return position


def compare(comparison: type[ex.LiteralPredicate], term: BoundTerm, position: Position) -> ex.Expression:
    """The comparison of a term with a constant at that position among the type's values."""
    if isinstance(position, Exact):
        return comparison(term, Literal(position.value, term.field_type))
    if comparison is ex.EqualTo:
        return ex.AlwaysFalse()
    if comparison is ex.NotEqualTo:
        return ex.AlwaysTrue()
    inclusive: type[ex.LiteralPredicate]
    if comparison in (ex.LessThan, ex.LessThanOrEqual):
        reached, opposite, inclusive = position.below, position.above, ex.LessThanOrEqual
    else:
        reached, opposite, inclusive = position.above, position.below, ex.GreaterThanOrEqual
    if reached is None:
        return ex.AlwaysFalse()
    return not_null(term) if opposite is None else inclusive(term, Literal(reached, term.field_type))


def not_null(term: BoundTerm) -> ex.Expression:
    """The test that the term, and so its column, is not null; always true if it cannot be null."""
    return ex.NotNull(term.null_term) if term.is_nullable else ex.AlwaysTrue()


def limits(field_type: types.IcebergType) -> tuple[int, int] | None:
    """The least and greatest value of a type that counts in whole steps; of a decimal, unscaled."""
    match field_type:
        case types.IntegerType() | types.DateType():
            return _INT32
        case (
            types.LongType()
            | types.TimestampType()
            | types.TimestamptzType()
            | types.TimestampNanoType()
            | types.TimestamptzNanoType()
        ):
            return _INT64
        case types.TimeType():
            return 0, temporal.MICROS_PER_DAY - 1
        case types.DecimalType():
            return 1 - 10**field_type.precision, 10**field_type.precision - 1
        case _:
            return None


def steps(value: Value, field_type: types.IcebergType) -> int:
    """A value of a type with limits, as a count of its steps."""
    return int(value.scaleb(field_type.scale)) if isinstance(field_type, types.DecimalType) else value


def from_steps(count: int, field_type: types.IcebergType) -> Value:
    """The value for a count of steps."""
    if isinstance(field_type, types.DecimalType):
        return Decimal((int(count < 0), tuple(map(int, str(abs(count)))), -field_type.scale))
    return count


def position_of_steps(floor: int, is_exact: bool, field_type: types.IcebergType) -> Position:
    """The position of a number of steps: `floor` or, if not exact, between it and the next."""
    bounds = limits(field_type)
    assert bounds is not None, f"{field_type} has no steps"
    low, high = bounds
    if is_exact and low <= floor <= high:
        return Exact(from_steps(floor, field_type))
    below = None if floor < low else from_steps(min(floor, high), field_type)
    above = None if floor + 1 > high else from_steps(max(floor + 1, low), field_type)
    return Between(below, above)


def _locate(constant: Literal, field_type: types.IcebergType) -> Position | None:
    source = constant.field_type
    if isinstance(field_type, types.IntegerType | types.LongType | types.DecimalType) and isinstance(source, _NUMBERS):
        return _locate_number(constant.value, field_type)
    if isinstance(field_type, types.DecimalType) and isinstance(source, types.StringType):
        if _NUMBER_TEXT.fullmatch(constant.value) is None:
            raise InvalidExpressionError(f"{constant} is not a number like '14.20'")
        return _locate_number(Decimal(constant.value), field_type)
    if isinstance(field_type, types.FloatType | types.DoubleType) and isinstance(source, _NUMBERS):
        return _locate_float(constant.value, field_type)
    if isinstance(field_type, types.DateType | _NAIVE | _ZONED):
        return _locate_moment(constant, field_type)
    if isinstance(field_type, types.TimeType) and isinstance(source, _WHOLE):
        return position_of_steps(constant.value, True, field_type)
    fits = (
        (isinstance(field_type, types.TimeType | types.UUIDType) and isinstance(source, types.StringType))
        or (isinstance(field_type, types.BinaryType | types.FixedType) and isinstance(source, types.BinaryType | types.FixedType))
    )  # fmt: skip
    return Exact(coerce(constant.value, field_type)) if fits else None


def _locate_number(number: int | float | Decimal, field_type: types.IcebergType) -> Position:
    if isinstance(number, float):
        if math.isinf(number):
            beyond = 10 ** (types.MAX_DECIMAL_PRECISION + 1)
            return position_of_steps(beyond if number > 0 else -beyond, True, field_type)
        if isinstance(field_type, types.DecimalType):
            # The digits that people see: 0.1 is a tenth, not the binary fraction next to it.
            number = Decimal(repr(number))
    count = Fraction(number) * (10**field_type.scale if isinstance(field_type, types.DecimalType) else 1)
    floor = math.floor(count)
    return position_of_steps(floor, floor == count, field_type)


def _locate_float(number: int | float | Decimal, field_type: types.IcebergType) -> Position:
    value = float(number)
    if isinstance(field_type, types.FloatType) and not math.isinf(value):
        try:
            value = struct.unpack("<f", struct.pack("<f", value))[0]
        except OverflowError:
            infinity = math.inf
            return Between(MAX_FLOAT, infinity) if value > 0 else Between(-infinity, -MAX_FLOAT)
    return Exact(value)


def _locate_moment(constant: Literal, field_type: types.IcebergType) -> Position | None:
    if isinstance(constant.field_type, _WHOLE):
        return position_of_steps(constant.value, True, field_type)
    nanos = _nanos(constant, field_type)
    if nanos is None:
        return None
    step = temporal.NANOS_PER_DAY
    if not isinstance(field_type, types.DateType):
        step = 1 if isinstance(field_type, types.TimestampNanoType | types.TimestamptzNanoType) else _NANOS_PER_MICRO
    floor, rest = divmod(nanos, step)
    return position_of_steps(floor, rest == 0, field_type)


def _nanos(constant: Literal, field_type: types.IcebergType) -> int | None:
    """Nanoseconds since the epoch; None if the constant is not a moment, or has a zone that the column lacks."""
    is_zoned = isinstance(field_type, _ZONED)
    match constant.field_type:
        case types.StringType():
            nanos, offset = temporal.parse_timestamp(constant.value)
            if offset is not None and not is_zoned:
                raise InvalidExpressionError(f"{constant} has an offset, but values of type {field_type} have no zone")
            return nanos - (offset or 0) * temporal.NANOS_PER_SECOND
        case types.DateType():
            return int(constant.value) * temporal.NANOS_PER_DAY
        case types.TimestampType():
            return int(constant.value) * _NANOS_PER_MICRO
        case types.TimestampNanoType():
            return int(constant.value)
        case types.TimestamptzType() if is_zoned:
            return int(constant.value) * _NANOS_PER_MICRO
        case types.TimestamptzNanoType() if is_zoned:
            return int(constant.value)
        case _:
            return None
