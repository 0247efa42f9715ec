"""Ranges of columns that functions of time leave: against the functions themselves, which Python has too."""

import datetime as dt
from typing import Any

import pytest
from hypothesis import given, strategies as st

from icefloe.schema import IcebergType, NestedField
from icefloe.schema.types import DateType, TimestampType
from icefloe.spark.catalyst import Node, NotUnderstood, Range, days_of, source_range

EPOCH = dt.date(1970, 1, 1)
DAY = 86_400_000_000


def node(kind: str, /, *children: Node, **facts: Any) -> Node:
    return Node(kind, facts, children, lambda: None)


COLUMN = node("AttributeReference", name="d")


def of(function: Node, wanted: Range, kind: IcebergType) -> Range:
    """The range of a column of a type."""
    field = NestedField(1, "d", kind)
    return source_range(function, wanted, lambda _: field)[1]


def number(date: dt.date) -> int:
    return (date - EPOCH).days


def truncated(date: dt.date, unit: str) -> dt.date:
    match unit:
        case "week":
            return date - dt.timedelta(days=date.weekday())
        case "MM":
            return date.replace(day=1)
        case "Quarter":
            return date.replace(month=(date.month - 1) // 3 * 3 + 1, day=1)
        case _:
            return date.replace(month=1, day=1)


DATES = st.dates(dt.date(2, 1, 1), dt.date(9990, 1, 1))


@given(DATES)
def test_days_are_counted(date: dt.date) -> None:
    assert days_of(date.year, date.month) + date.day - 1 == number(date)
    assert days_of(date.year - 1, date.month + 12) == days_of(date.year, date.month)


@given(DATES, DATES, st.sampled_from(["week", "MM", "Quarter", "yyyy"]))
def test_truncated_dates_are_exact(date: dt.date, bound: dt.date, unit: str) -> None:
    """Those that are close to each other, too."""
    function = node("TruncDate", COLUMN, node("Literal", value=unit))
    for other in (bound, truncated(date, unit), truncated(date, unit) + dt.timedelta(days=1), date):
        found = of(function, Range(number(other), number(other) + 1), DateType())
        assert found.low is not None
        assert found.high is not None
        is_equal = truncated(date, unit) == other
        assert (found.low <= number(date) < found.high) is is_equal


@given(st.datetimes(dt.datetime(2, 1, 1), dt.datetime(9990, 1, 1)), st.integers(-3, 3))
def test_years_of_moments_are_exact(moment: dt.datetime, step: int) -> None:
    function = node("Year", node("Cast", COLUMN, dataType="date"))
    micros = (moment - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)
    year = moment.year + step
    found = of(function, Range(year, year + 1), TimestampType())
    assert found.low is not None
    assert found.high is not None
    assert (found.low <= micros < found.high) is (step == 0)
    assert of(function, Range(None, year), TimestampType()) == Range(None, found.low)
    assert of(function, Range(year, None), TimestampType()) == Range(found.low, None)


def test_dates_as_moments() -> None:
    function = node("Cast", COLUMN, dataType="timestamp_ntz")
    assert of(function, Range(DAY, DAY + 1), DateType()) == Range(1, 2)
    assert of(function, Range(DAY + 1, 2 * DAY), DateType()) == Range(2, 2)


@pytest.mark.parametrize(
    "function",
    [
        node("TruncDate", COLUMN, node("Literal", value="DAY")),
        node("TruncDate", COLUMN, node("AttributeReference", name="f")),
        node("Year", node("Cast", COLUMN, dataType="string")),
        node("Cast", COLUMN, dataType="integer"),
        node("Year", node("DateAdd", COLUMN)),
    ],
)
def test_others_are_not_understood(function: Node) -> None:
    with pytest.raises(NotUnderstood):
        of(function, Range(1, 2), DateType())
