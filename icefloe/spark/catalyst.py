"""Catalyst expressions in Python: trees that are read by one call, and which values of a column a function of time can come
from: `year(ts)` from 2020 on is `ts` from a moment on.

A range of results becomes a range of the column that holds at least all values with such results. It is exact wherever the
offset of the time zone does not change near its ends; where it does, it is wider by the change. Spark takes zones and their
offsets from Java, so Java is asked.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from py4j.java_gateway import JavaClass, JavaObject

from icefloe import expressions as ex
from icefloe.schema import JSON, types

_CATALYST = "org.apache.spark.sql.catalyst.expressions."
_SECOND = 1_000_000
_MINUTE = 60 * _SECOND
_HOUR = 60 * _MINUTE
_DAY_SECONDS = 86_400
_DAY = _DAY_SECONDS * _SECOND
_NEAR_SECONDS = 2 * _DAY_SECONDS
"""Longer than any offset: what is further from a moment than this is on the same side of it in every zone."""

_TIMES = {"MICROSECOND": 1, "MILLISECOND": 1000, "SECOND": _SECOND, "MINUTE": _MINUTE, "HOUR": _HOUR}
_DATES = {
    "WEEK": "week",
    "MON": "month",
    "MONTH": "month",
    "MM": "month",
    "QUARTER": "quarter",
    "YEAR": "year",
    "YYYY": "year",
    "YY": "year",
}
_TYPES: dict[str, types.IcebergType] = {
    "date": types.DateType(),
    "timestamp": types.TimestamptzType(),
    "timestamp_ntz": types.TimestampType(),
}
_BITS: dict[type[types.IcebergType], int] = {types.DateType: 32, types.TimestampType: 64, types.TimestamptzType: 64}
_MONDAY = 4
"""1970-01-05 is one."""


@dataclass(frozen=True, slots=True)
class Node:
    """A Catalyst expression: the name of its class, its JSON, its children, and a way to the original."""

    name: str
    facts: JSON
    children: tuple["Node", ...]
    real: Callable[[], JavaObject]

    def walk(self) -> Iterator["Node"]:
        """The node and all beneath it."""
        yield self
        for child in self.children:
            yield from child.walk()


class NotUnderstood(Exception):
    """Part of a predicate that says nothing about files."""


@dataclass(frozen=True, slots=True)
class SentExpression:
    """A Catalyst expression whose JSON is known already, and a way to the original."""

    nodes: Sequence[JSON]
    real: Callable[[], JavaObject]


def tree(expression: JavaObject | SentExpression) -> Node:
    """The tree of a Catalyst expression, read by one call, or by none."""
    if isinstance(expression, SentExpression):
        nodes, real = expression.nodes, expression.real
    else:
        nodes, real = json.loads(expression.toJSON()), lambda: expression
    node, used = _read(nodes, 0, real)
    if used != len(nodes):
        raise NotUnderstood
    return node


def is_same(one: Node, other: Node) -> bool:
    """Whether two nodes stand for the same value."""
    return (
        one.facts == other.facts
        and len(one.children) == len(other.children)
        and all(map(is_same, one.children, other.children))
    )


def _read(nodes: Sequence[JSON], position: int, real: Callable[[], JavaObject]) -> tuple[Node, int]:
    facts = nodes[position]
    children, position = [], position + 1
    for index in range(int(facts["num-children"])):
        child, position = _read(nodes, position, partial(_child, real, index))
        children.append(child)
    return Node(str(facts["class"]).removeprefix(_CATALYST), facts, tuple(children), real), position


def _child(real: Callable[[], JavaObject], index: int) -> JavaObject:
    return real().children().apply(index)


# -- functions of time


@dataclass(frozen=True, slots=True)
class Range:
    """From one number (inclusive) to another (exclusive); None is unbounded."""

    low: int | None
    high: int | None

    def map(self, low: Callable[[int], int], high: Callable[[int], int] | None = None) -> "Range":
        """The range with functions applied to its ends."""
        of_high = low if high is None else high
        return Range(None if self.low is None else low(self.low), None if self.high is None else of_high(self.high))


def function_type(node: Node, field_of: Callable[[Node], types.NestedField]) -> types.IcebergType:
    """The type of a node's values, if it is a function that is understood, or a column."""
    match node.name:
        case "Year":
            return types.IntegerType()
        case "TruncDate":
            return types.DateType()
        case "TruncTimestamp":
            return types.TimestamptzType()
        case "Cast" if node.facts.get("dataType") in _TYPES:
            return _TYPES[str(node.facts["dataType"])]
        case "AttributeReference" | "GetStructField":
            return field_of(node).field_type
        case _:
            raise NotUnderstood


def source_range(
    node: Node, results: Range, field_of: Callable[[Node], types.NestedField]
) -> tuple[types.NestedField, Range]:
    """The column under a function, and the range of its values whose results may be in the range."""
    match node.name:
        case "AttributeReference" | "GetStructField":
            return field_of(node), results
        case "Year":
            days = results.map(lambda year: days_of(year, 1))
            return _of_date(node.children[0], days, field_of)
        case "TruncDate":
            unit = _DATES.get(_format(node.children[1]))
            return _of_date(node.children[0], _ceiled(results, unit), field_of)
        case "TruncTimestamp":
            return source_range(node.children[1], _truncated(node, results), field_of)
        case "Cast":
            source_type = function_type(node.children[0], field_of)
            return source_range(node.children[0], _cast(node, source_type, results), field_of)
        case _:
            raise NotUnderstood


def _of_date(
    node: Node, results: Range, field_of: Callable[[Node], types.NestedField]
) -> tuple[types.NestedField, Range]:
    if not isinstance(function_type(node, field_of), types.DateType):
        raise NotUnderstood
    return source_range(node, results, field_of)


def _format(node: Node) -> str:
    if node.name != "Literal":
        raise NotUnderstood
    return str(node.facts.get("value")).upper()


def range_filter(field: types.NestedField, results: Range) -> ex.Expression:
    """A column's values in a range, as a predicate; null is in none."""
    field_type = field.field_type
    bits = _BITS.get(type(field_type))
    if bits is None:
        raise NotUnderstood
    term = ex.IdReference(field.field_id)
    least, greatest = -(1 << bits - 1), (1 << bits - 1) - 1
    parts: list[ex.Expression] = []
    if results.low is not None and results.low > least:
        parts.append(
            ex.GreaterThanOrEqual(term, ex.Literal(results.low, field_type))
            if results.low <= greatest
            else ex.AlwaysFalse()
        )
    if results.high is not None and results.high <= greatest:
        parts.append(
            ex.LessThan(term, ex.Literal(results.high, field_type)) if results.high > least else ex.AlwaysFalse()
        )
    return ex.conjunction(*parts) if parts else ex.NotNull(term)


# -- dates


def days_of(year: int, month: int) -> int:
    """Days from 1970-01-01 to the first of a month; a month outside of 1 to 12 is one of another year."""
    year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
    # Years that begin in March have the leap day at their end.
    year, month = (year, month - 3) if month > 2 else (year - 1, month + 9)
    return year * 365 + year // 4 - year // 100 + year // 400 + (month * 153 + 2) // 5 - 719468


def _ceiled(results: Range, unit: str | None) -> Range:
    if unit is None:
        raise NotUnderstood
    return results.map(lambda day: _first_from(day, unit))


def _first_from(day: int, unit: str) -> int:
    """The first day of a unit, on a day or after it."""
    if unit == "week":
        return day + (_MONDAY - day) % 7
    months = {"month": 1, "quarter": 3, "year": 12}[unit]
    # Months have 28 to 31 days, so it begins there or later.
    at = 1970 * 12 + (day // 31 if day >= 0 else day // 28)
    at -= at % months
    while days_of(0, at + 1) < day:
        at += months
    return days_of(0, at + 1)


# -- moments


def _cast(node: Node, source: types.IcebergType, results: Range) -> Range:
    target = _TYPES.get(str(node.facts.get("dataType")))
    match source, target:
        case _ if source == target:
            return results
        case types.TimestampType(), types.DateType():
            return results.map(lambda day: day * _DAY)
        case types.DateType(), types.TimestampType():
            return results.map(lambda micros: _up(micros, _DAY) // _DAY)
        case types.TimestamptzType(), types.DateType():
            return _from_local(node, results.map(lambda day: day * _DAY))
        case types.TimestamptzType(), types.TimestampType():
            return _from_local(node, results)
        case types.TimestampType(), types.TimestamptzType():
            return _to_local(node, results)
        case types.DateType(), types.TimestamptzType():
            return _to_local(node, results).map(lambda micros: _up(micros, _DAY) // _DAY)
        case _:
            raise NotUnderstood


def _truncated(node: Node, results: Range) -> Range:
    unit = _format(node.children[0])
    width = _TIMES.get(unit)
    if width is not None and width <= _SECOND:
        return results.map(lambda micros: _up(micros, width))
    local = _to_local(node, results)
    if width is not None:
        return _from_local(node, local.map(lambda micros: _up(micros, width)))
    days = local.map(lambda micros: _up(micros, _DAY) // _DAY)
    if unit not in ("DAY", "DD"):
        days = _ceiled(days, _DATES.get(unit))
    return _from_local(node, days.map(lambda day: day * _DAY))


def _from_local(node: Node, local: Range) -> Range:
    """Moments whose local time may be in a range."""
    return local.map(
        lambda micros: micros - offsets_near(node, micros)[1] * _SECOND,
        lambda micros: micros - offsets_near(node, micros)[0] * _SECOND,
    )


def _to_local(node: Node, moments: Range) -> Range:
    """Local times whose moment may be in a range."""
    return moments.map(
        lambda micros: micros + offsets_near(node, micros)[0] * _SECOND,
        lambda micros: micros + offsets_near(node, micros)[1] * _SECOND,
    )


def _up(number: int, width: int) -> int:
    return -(-number // width) * width


def offsets_near(node: Node, micros: int) -> tuple[int, int]:
    """The least and the greatest offset in seconds, of the zone of an expression, that holds in the days around a moment."""
    expression = node.real()
    rules = expression.zoneId().getRules()
    second = micros // _SECOND
    moment = JavaClass("java.time.Instant", expression._gateway_client).ofEpochSecond(second - _NEAR_SECONDS)
    offsets = {int(rules.getOffset(moment).getTotalSeconds())}
    if rules.isFixedOffset():
        return min(offsets), max(offsets)
    while (change := rules.nextTransition(moment)) is not None and change.toEpochSecond() <= second + _NEAR_SECONDS:
        offsets.add(int(change.getOffsetAfter().getTotalSeconds()))
        moment = change.getInstant()
    return min(offsets), max(offsets)
