"""How dates, times and timestamps are written as ISO 8601 text, for every value that their types can hold.

`datetime` ends at the years 1 and 9999 and at microseconds; the types of the format do not, so the calendar is computed
here. Years outside 0000 to 9999 carry a sign, as ISO 8601 and the Java library have it: `+12000-01-01`, `-0044-03-15`.
"""

import re

from icefloe.errors import InvalidValueError

MICROS_PER_SECOND = 1_000_000
NANOS_PER_SECOND = 1_000_000_000
SECONDS_PER_DAY = 86_400
MICROS_PER_DAY = SECONDS_PER_DAY * MICROS_PER_SECOND
NANOS_PER_DAY = SECONDS_PER_DAY * NANOS_PER_SECOND

_DATE = r"([0-9]{4}|-[0-9]{4,10}|\+[0-9]{5,10})-([0-9]{2})-([0-9]{2})"
_TIME = r"([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,9}))?)?"
_OFFSET = r"([Zz]|[+-][0-9]{2}(?::?[0-9]{2}(?::?[0-9]{2})?)?)"
_DATE_PATTERN = re.compile(_DATE)
_TIME_PATTERN = re.compile(_TIME)
_TIMESTAMP_PATTERN = re.compile(rf"{_DATE}(?:[Tt ]{_TIME}{_OFFSET}?)?")
_DAYS_IN_MONTH = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def days_from_civil(year: int, month: int, day: int) -> int:
    """Days from 1970-01-01 to a day of the proleptic Gregorian calendar, of any year."""
    # Years run from March here, so that the leap day is the last day of its year.
    march_year = year - (month <= 2)
    era, year_of_era = divmod(march_year, 400)
    day_of_year = (153 * ((month - 3) % 12) + 2) // 5 + day - 1
    return era * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719_468


def civil_from_days(days: int) -> tuple[int, int, int]:
    """Year, month and day of a number of days after 1970-01-01."""
    era, day_of_era = divmod(days + 719_468, 146_097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    march_month = (5 * day_of_year + 2) // 153
    month = (march_month + 2) % 12 + 1
    return era * 400 + year_of_era + (month <= 2), month, day_of_year - (153 * march_month + 2) // 5 + 1


def format_date(days: int) -> str:
    """The day as `2017-11-16`."""
    year, month, day = civil_from_days(days)
    return f"{_format_year(year)}-{month:02}-{day:02}"


def format_time(micros: int) -> str:
    """The time of day as `22:31:08` or `22:31:08.123456`."""
    return _format_clock(micros, MICROS_PER_SECOND)


def format_timestamp(ticks: int, per_second: int) -> str:
    """The moment as `2017-11-16T22:31:08`, with a fraction of full precision when it is not zero."""
    days, rest = divmod(ticks, SECONDS_PER_DAY * per_second)
    return f"{format_date(days)}T{_format_clock(rest, per_second)}"


def parse_date(text: str) -> int:
    """Days from 1970-01-01 to an ISO date."""
    match = _DATE_PATTERN.fullmatch(text)
    if match is None:
        raise InvalidValueError(f"{text!r} is not a date; write it like '2017-11-16'")
    return _days(text, match[1], match[2], match[3])


def parse_time(text: str) -> int:
    """Microseconds from midnight to an ISO time without offset."""
    match = _TIME_PATTERN.fullmatch(text)
    if match is None:
        raise InvalidValueError(f"{text!r} is not a time of day; write it like '22:31:08.123456', without an offset")
    nanos = _nanos_of_day(text, match[1], match[2], match[3], match[4])
    return to_precision(nanos, MICROS_PER_SECOND, text)


def parse_timestamp(text: str) -> tuple[int, int | None]:
    """Nanoseconds from the epoch as the text's own clock shows them, and its offset in seconds, or None without one.

    A date alone means its midnight. A space may replace the `T`.
    """
    match = _TIMESTAMP_PATTERN.fullmatch(text)
    if match is None:
        raise InvalidValueError(
            f"{text!r} is not a timestamp; write it like '2017-11-16T22:31:08.123456', with an offset like '+00:00' for a zoned one"
        )
    nanos = _days(text, match[1], match[2], match[3]) * NANOS_PER_DAY
    if match[4] is not None:
        nanos += _nanos_of_day(text, match[4], match[5], match[6], match[7])
    return nanos, _offset_seconds(text, match[8])


def to_precision(nanos: int, per_second: int, shown: object) -> int:
    """Nanoseconds as ticks of another precision; an error that shows `shown` when something would be cut off."""
    ticks, rest = divmod(nanos, NANOS_PER_SECOND // per_second)
    if rest:
        raise InvalidValueError(f"{shown!r} has nanoseconds, but the type holds microseconds; round it first")
    return ticks


def _format_year(year: int) -> str:
    if 0 <= year <= 9999:
        return f"{year:04}"
    return f"{'-' if year < 0 else '+'}{abs(year):04}"


def _format_clock(ticks: int, per_second: int) -> str:
    seconds, fraction = divmod(ticks, per_second)
    minutes, second = divmod(seconds, 60)
    text = f"{minutes // 60:02}:{minutes % 60:02}:{second:02}"
    if not fraction:
        return text
    return f"{text}.{fraction:0{6 if per_second == MICROS_PER_SECOND else 9}}"


def _days(text: str, year_text: str, month_text: str, day_text: str) -> int:
    year, month, day = int(year_text), int(month_text), int(day_text)
    if not 1 <= month <= 12:
        raise InvalidValueError(f"{text!r} has the month {month}; months are 01 to 12")
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    last = _DAYS_IN_MONTH[month - 1] + (month == 2 and is_leap)
    if not 1 <= day <= last:
        raise InvalidValueError(f"{text!r} has the day {day}; that month has days 01 to {last}")
    return days_from_civil(year, month, day)


def _nanos_of_day(text: str, hour: str, minute: str, second: str | None, fraction: str | None) -> int:
    hours, minutes, seconds = int(hour), int(minute), int(second or 0)
    if hours > 23 or minutes > 59 or seconds > 59:
        raise InvalidValueError(f"{text!r} has a time of day beyond 23:59:59")
    return (hours * 3600 + minutes * 60 + seconds) * NANOS_PER_SECOND + int((fraction or "").ljust(9, "0"))


def _offset_seconds(text: str, offset: str | None) -> int | None:
    if offset is None:
        return None
    if offset in "Zz":
        return 0
    digits = offset[1:].replace(":", "").ljust(6, "0")
    hours, minutes, seconds = int(digits[:2]), int(digits[2:4]), int(digits[4:])
    if hours > 18 or minutes > 59 or seconds > 59:
        raise InvalidValueError(f"{text!r} has the offset {offset}; offsets are within 18 hours")
    return (hours * 3600 + minutes * 60 + seconds) * (-1 if offset[0] == "-" else 1)
