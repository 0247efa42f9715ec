"""Dates, times and timestamps as ISO 8601 text, for the whole range of their types."""

import datetime as dt

import pytest
from hypothesis import given, strategies as st

from icefloe.errors import InvalidValueError
from icefloe.schema.temporal import (
    MICROS_PER_SECOND,
    NANOS_PER_SECOND,
    civil_from_days,
    days_from_civil,
    format_date,
    format_time,
    format_timestamp,
    parse_date,
    parse_time,
    parse_timestamp,
)
from tests.strategies import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN


@given(st.dates())
def test_agrees_with_datetime_where_datetime_reaches(day: dt.date) -> None:
    days = (day - dt.date(1970, 1, 1)).days
    assert days_from_civil(day.year, day.month, day.day) == days
    assert civil_from_days(days) == (day.year, day.month, day.day)
    assert format_date(days) == day.isoformat()


@given(st.integers(INT_MIN, INT_MAX))
def test_every_day_of_the_type_can_be_written_and_read(days: int) -> None:
    assert parse_date(format_date(days)) == days


@pytest.mark.parametrize(
    ("days", "text"),
    [
        (0, "1970-01-01"),
        (-1, "1969-12-31"),
        (17486, "2017-11-16"),
        (2932897, "+10000-01-01"),
        (-719528, "0000-01-01"),
        (-719529, "-0001-12-31"),
        (INT_MAX, "+5881580-07-11"),
        (INT_MIN, "-5877641-06-23"),
    ],
)
def test_dates_outside_of_four_digit_years_carry_a_sign(days: int, text: str) -> None:
    assert format_date(days) == text
    assert parse_date(text) == days


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2017-11",
        "2017-13-01",
        "2017-00-01",
        "2017-02-29",
        "2017-04-31",
        "17-01-01",
        "12017-01-01",
        "2017-11-16T00:00:00",
        "2017-11-16 ",
        "２０１７-11-16",
    ],
)
def test_what_is_not_a_date_is_refused(text: str) -> None:
    with pytest.raises(InvalidValueError):
        parse_date(text)


def test_leap_days() -> None:
    assert format_date(parse_date("2000-02-29")) == "2000-02-29"
    with pytest.raises(InvalidValueError, match="01 to 28"):
        parse_date("1900-02-29")


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("00:00", 0),
        ("22:31:08", 81068000000),
        ("22:31:08.123456", 81068123456),
        ("22:31:08.1", 81068100000),
        ("22:31:08.123456000", 81068123456),
        ("23:59:59.999999", 86399999999),
    ],
)
def test_times(text: str, micros: int) -> None:
    assert parse_time(text) == micros
    assert parse_time(format_time(micros)) == micros


@pytest.mark.parametrize(
    "text", ["24:00", "23:60", "23:59:60", "1:00", "12", "12:00:00.", "12:00Z", "12:00:00.0000001"]
)
def test_what_is_not_a_time_is_refused(text: str) -> None:
    with pytest.raises(InvalidValueError):
        parse_time(text)


@given(st.integers(LONG_MIN, LONG_MAX), st.sampled_from((MICROS_PER_SECOND, NANOS_PER_SECOND)))
def test_every_timestamp_of_the_type_can_be_written_and_read(ticks: int, per_second: int) -> None:
    nanos, offset = parse_timestamp(format_timestamp(ticks, per_second))
    assert (nanos, offset) == (ticks * (NANOS_PER_SECOND // per_second), None)


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        ("2017-11-16T22:31:08", None),
        ("2017-11-16 22:31:08Z", 0),
        ("2017-11-16T22:31:08-00:00", 0),
        ("2017-11-16T22:31:08-08:00", -28800),
        ("2017-11-16T22:31:08+0530", 19800),
        ("2017-11-16T22:31:08+05", 18000),
        ("2017-11-16T22:31:08+05:30:15", 19815),
    ],
)
def test_offsets(text: str, offset: int | None) -> None:
    assert parse_timestamp(text) == (1510871468 * NANOS_PER_SECOND, offset)


def test_a_date_alone_is_its_midnight() -> None:
    assert parse_timestamp("1970-01-02") == (86400 * NANOS_PER_SECOND, None)


@pytest.mark.parametrize("text", ["2017-11-16T", "2017-11-16T22", "2017-11-16Z", "2017-11-16T22:31:08+19:00", "now"])
def test_what_is_not_a_timestamp_is_refused(text: str) -> None:
    with pytest.raises(InvalidValueError):
        parse_timestamp(text)
