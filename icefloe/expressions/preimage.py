"""The column values that match a predicate on an order-preserving transform: `days(ts) = '2024-01-31'` is a range of `ts`.

So nothing after binding has to handle these transforms; only buckets, which have no order, stay as they are.
"""

import re

from icefloe.errors import InvalidExpressionError
from icefloe.expressions import values as ex
from icefloe.expressions.conversion import Exact, Position, compare, not_null, position_of_steps, steps
from icefloe.expressions.terms import BoundReference, Literal
from icefloe.partitioning import transforms as tr
from icefloe.schema import next_prefix, temporal, types

_HOURS_PER_DAY = 24
_MONTHS_PER_YEAR = 12
_EPOCH_YEAR = 1970
_UNIT_TEXTS: dict[type[tr.TimeTransform], tuple[re.Pattern[str], str]] = {
    tr.YearTransform: (re.compile(r"([+-]?[0-9]{4,9})"), "2024"),
    tr.MonthTransform: (re.compile(r"([+-]?[0-9]{4,9})-([0-9]{2})"), "2024-01"),
    tr.HourTransform: (re.compile(r"([+-]?[0-9]{4,9})-([0-9]{2})-([0-9]{2})[-T ]([0-9]{2})"), "2024-01-31-07"),
}


def unit_count(transform: tr.TimeTransform, text: str) -> int:
    """Years, months or hours from 1970 to a text such as '2024-01'."""
    pattern, example = _UNIT_TEXTS[type(transform)]
    match = pattern.fullmatch(text)
    if match is None:
        raise InvalidExpressionError(
            f"{text!r} is not a text for {transform.unit}s; write it like {example!r}, or a number"
        )
    year, month, day, hour = (int(part) for part in (*match.groups(), "01", "01", "00")[:4])
    if isinstance(transform, tr.YearTransform):
        return year - _EPOCH_YEAR
    if not (1 <= month <= _MONTHS_PER_YEAR and 1 <= day <= 31 and hour < _HOURS_PER_DAY):
        raise InvalidExpressionError(f"{text!r} is not a moment of the calendar; write it like {example!r}")
    if isinstance(transform, tr.MonthTransform):
        return (year - _EPOCH_YEAR) * _MONTHS_PER_YEAR + month - 1
    return temporal.days_from_civil(year, month, day) * _HOURS_PER_DAY + hour


def without_transform(predicate: ex.LiteralPredicate, transform: tr.Transform, column: BoundReference) -> ex.Expression:
    """The predicate on the column that is equivalent to this one on its transform."""
    test = _in_order(predicate, transform, column)
    wrapped = tr.wrapped_range(transform, column.field_type)
    if wrapped is None or isinstance(predicate, ex.NotEqualTo):
        return test
    edge = Literal(wrapped.end, column.field_type)
    if ex.COMPARE[type(predicate)](wrapped.result, predicate.literal.value):
        return ex.disjunction(ex.LessThan(column, edge), test)
    is_open_below = isinstance(predicate, ex.LessThan | ex.LessThanOrEqual)
    return ex.conjunction(ex.GreaterThanOrEqual(column, edge), test) if is_open_below else test


def _in_order(predicate: ex.LiteralPredicate, transform: tr.Transform, column: BoundReference) -> ex.Expression:
    """The same for a transform that preserves the order of all values."""
    constant = predicate.literal
    match predicate:
        case ex.LessThan():
            return _below(_first(constant, transform, column.field_type), column)
        case ex.LessThanOrEqual():
            return _below(_after(constant, transform, column.field_type), column)
        case ex.GreaterThan():
            return _from(_after(constant, transform, column.field_type), column)
        case ex.GreaterThanOrEqual():
            return _from(_first(constant, transform, column.field_type), column)
        case ex.EqualTo():
            first, after = (
                _first(constant, transform, column.field_type),
                _after(constant, transform, column.field_type),
            )
            # Nothing lies between them if the constant is no result of the transform.
            return ex.AlwaysFalse() if first == after else ex.conjunction(_from(first, column), _below(after, column))
        case ex.NotEqualTo():
            return ex.negation(without_transform(ex.EqualTo(column, constant), transform, column))
        case ex.StartsWith():
            assert isinstance(transform, tr.TruncateTransform), f"{transform} gives no text"
            return ex.StartsWith(column, constant) if len(constant.value) <= transform.width else ex.AlwaysFalse()
        case _:
            return ex.negation(without_transform(ex.StartsWith(column, constant), transform, column))


def _below(edge: Position | None, column: BoundReference) -> ex.Expression:
    return not_null(column) if edge is None else compare(ex.LessThan, column, edge)


def _from(edge: Position | None, column: BoundReference) -> ex.Expression:
    return ex.AlwaysFalse() if edge is None else compare(ex.GreaterThanOrEqual, column, edge)


def _first(constant: Literal, transform: tr.Transform, field_type: types.IcebergType) -> Position | None:
    """The least column value whose result is at least the constant; None if no result is."""
    match transform:
        case tr.TruncateTransform() if isinstance(field_type, types.StringType | types.BinaryType):
            is_result = len(constant.value) <= transform.width
            # Between a longer text and its own beginning there is no result.
            return Exact(constant.value) if is_result else _after(constant, transform, field_type)
        case tr.TruncateTransform():
            return position_of_steps(
                -(-steps(constant.value, field_type) // transform.width) * transform.width, True, field_type
            )
        case tr.TimeTransform():
            return position_of_steps(_start(transform, constant.value, field_type), True, field_type)
        case _:
            raise AssertionError(f"{transform} does not preserve order")


def _after(constant: Literal, transform: tr.Transform, field_type: types.IcebergType) -> Position | None:
    """The least column value whose result is greater than the constant; None if no result is."""
    match transform:
        case tr.TruncateTransform() if isinstance(field_type, types.StringType | types.BinaryType):
            value, width = constant.value, transform.width
            if len(value) < width:
                return Exact(value + ("\x00" if isinstance(value, str) else b"\x00"))
            following = next_prefix(value[:width])
            return None if following is None else Exact(following)
        case tr.TruncateTransform():
            return position_of_steps(
                (steps(constant.value, field_type) // transform.width + 1) * transform.width, True, field_type
            )
        case tr.TimeTransform():
            return position_of_steps(_start(transform, constant.value + 1, field_type), True, field_type)
        case _:
            raise AssertionError(f"{transform} does not preserve order")


def _start(transform: tr.TimeTransform, count: int, field_type: types.IcebergType) -> int:
    """The start of the unit with that number, in steps of the column."""
    per_hour = tr.per_hour(field_type)
    match transform:
        case tr.HourTransform():
            return count * per_hour
        case tr.DayTransform():
            days = count
        case tr.MonthTransform():
            years, month = divmod(count, _MONTHS_PER_YEAR)
            days = temporal.days_from_civil(_EPOCH_YEAR + years, month + 1, 1)
        case tr.YearTransform():
            days = temporal.days_from_civil(_EPOCH_YEAR + count, 1, 1)
        case _:
            raise AssertionError(f"{transform} is no unit of time")
    return days if isinstance(field_type, types.DateType) else days * _HOURS_PER_DAY * per_hour
