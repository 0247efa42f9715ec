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
from typing import Any

from icefloe.errors import InvalidExpressionError, InvalidInputError
from icefloe.expressions import values as ex
from icefloe.expressions.terms import BoundTerm, Literal
from icefloe.schema import types
from icefloe.schema.temporal import MICROS_PER_DAY, NANOS_PER_DAY, NANOS_PER_SECOND, parse_timestamp
from icefloe.schema.values import coerce

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

    value: Any


@dataclass(frozen=True, slots=True)
class Between:
    """The type's values below and above; None where it has none there."""

    below: Any
    above: Any


Place = Exact | Between


def locate(constant: Literal, kind: types.IcebergType) -> Place:
    """Where the constant lies among the values of the type."""
    if constant.kind == kind:
        return Exact(constant.value)
    try:
        place = _locate(constant, kind)
    except InvalidExpressionError:
        raise
    except InvalidInputError as error:
        raise InvalidExpressionError(str(error)) from None
    if place is None:
        raise InvalidExpressionError(
            f"the constant {constant} of type {constant.kind} cannot be compared with values of type {kind}"
        )
    return place


def compare(comparison: type[ex.LiteralPredicate], term: BoundTerm, place: Place) -> ex.Expression:
    """The comparison of a term with a constant that lies at that place."""
    if isinstance(place, Exact):
        return comparison(term, Literal(place.value, term.kind))
    if comparison is ex.EqualTo:
        return ex.AlwaysFalse()
    if comparison is ex.NotEqualTo:
        return ex.AlwaysTrue()
    inclusive: type[ex.LiteralPredicate]
    if comparison in (ex.LessThan, ex.LessThanOrEqual):
        reached, opposite, inclusive = place.below, place.above, ex.LessThanOrEqual
    else:
        reached, opposite, inclusive = place.above, place.below, ex.GreaterThanOrEqual
    if reached is None:
        return ex.AlwaysFalse()
    return not_null(term) if opposite is None else inclusive(term, Literal(reached, term.kind))


def not_null(term: BoundTerm) -> ex.Expression:
    """The term is not null, and so its column is not; true when it cannot be."""
    return ex.NotNull(term.reference) if term.is_nullable else ex.AlwaysTrue()


def limits(kind: types.IcebergType) -> tuple[int, int] | None:
    """The least and greatest value of a type that counts in whole steps; of a decimal, unscaled."""
    match kind:
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
            return 0, MICROS_PER_DAY - 1
        case types.DecimalType():
            return 1 - 10**kind.precision, 10**kind.precision - 1
        case _:
            return None


def steps(value: Any, kind: types.IcebergType) -> int:
    """A value of a type with limits as a count of its steps."""
    return int(value.scaleb(kind.scale)) if isinstance(kind, types.DecimalType) else value


def from_steps(count: int, kind: types.IcebergType) -> Any:
    """The value of so many steps."""
    if isinstance(kind, types.DecimalType):
        return Decimal((int(count < 0), tuple(map(int, str(abs(count)))), -kind.scale))
    return count


def place_of_steps(floor: int, is_exact: bool, kind: types.IcebergType) -> Place:
    """Where a number of steps lies, that is `floor` or, if not exact, between it and the next."""
    bounds = limits(kind)
    assert bounds is not None, f"{kind} has no steps"
    low, high = bounds
    if is_exact and low <= floor <= high:
        return Exact(from_steps(floor, kind))
    below = None if floor < low else from_steps(min(floor, high), kind)
    above = None if floor + 1 > high else from_steps(max(floor + 1, low), kind)
    return Between(below, above)


def _locate(constant: Literal, kind: types.IcebergType) -> Place | None:
    source = constant.kind
    if isinstance(kind, types.IntegerType | types.LongType | types.DecimalType) and isinstance(source, _NUMBERS):
        return _place_number(constant.value, kind)
    if isinstance(kind, types.DecimalType) and isinstance(source, types.StringType):
        if _NUMBER_TEXT.fullmatch(constant.value) is None:
            raise InvalidExpressionError(f"{constant} is not a number like '14.20'")
        return _place_number(Decimal(constant.value), kind)
    if isinstance(kind, types.FloatType | types.DoubleType) and isinstance(source, _NUMBERS):
        return _place_float(constant.value, kind)
    if isinstance(kind, types.DateType | _NAIVE | _ZONED):
        return _place_moment(constant, kind)
    if isinstance(kind, types.TimeType) and isinstance(source, _WHOLE):
        return place_of_steps(constant.value, True, kind)
    fits = (
        (isinstance(kind, types.TimeType | types.UUIDType) and isinstance(source, types.StringType))
        or (isinstance(kind, types.BinaryType | types.FixedType) and isinstance(source, types.BinaryType | types.FixedType))
    )  # fmt: skip
    return Exact(coerce(constant.value, kind)) if fits else None


def _place_number(number: int | float | Decimal, kind: types.IcebergType) -> Place:
    if isinstance(number, float):
        if math.isinf(number):
            beyond = 10 ** (types.MAX_DECIMAL_PRECISION + 1)
            return place_of_steps(beyond if number > 0 else -beyond, True, kind)
        if isinstance(kind, types.DecimalType):
            # The digits that people see: 0.1 is a tenth, not the binary fraction next to it.
            number = Decimal(repr(number))
    count = Fraction(number) * (10**kind.scale if isinstance(kind, types.DecimalType) else 1)
    floor = math.floor(count)
    return place_of_steps(floor, floor == count, kind)


def _place_float(number: int | float | Decimal, kind: types.IcebergType) -> Place:
    value = float(number)
    if isinstance(kind, types.FloatType) and not math.isinf(value):
        try:
            value = struct.unpack("<f", struct.pack("<f", value))[0]
        except OverflowError:
            infinity = math.inf
            return Between(MAX_FLOAT, infinity) if value > 0 else Between(-infinity, -MAX_FLOAT)
    return Exact(value)


def _place_moment(constant: Literal, kind: types.IcebergType) -> Place | None:
    if isinstance(constant.kind, _WHOLE):
        return place_of_steps(constant.value, True, kind)
    nanos = _nanos(constant, kind)
    if nanos is None:
        return None
    step = NANOS_PER_DAY
    if not isinstance(kind, types.DateType):
        step = 1 if isinstance(kind, types.TimestampNanoType | types.TimestamptzNanoType) else _NANOS_PER_MICRO
    floor, rest = divmod(nanos, step)
    return place_of_steps(floor, rest == 0, kind)


def _nanos(constant: Literal, kind: types.IcebergType) -> int | None:
    """Nanoseconds since the epoch; None for what is no moment, or has a zone that the column lacks."""
    is_zoned = isinstance(kind, _ZONED)
    match constant.kind:
        case types.StringType():
            nanos, offset = parse_timestamp(constant.value)
            if offset is not None and not is_zoned:
                raise InvalidExpressionError(f"{constant} has an offset, but values of type {kind} have no zone")
            return nanos - (offset or 0) * NANOS_PER_SECOND
        case types.DateType():
            return int(constant.value) * NANOS_PER_DAY
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
