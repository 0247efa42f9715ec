"""How days from 1970-01-01 become years and months, also far outside of the years that `datetime` knows.

The proleptic Gregorian calendar repeats every 400 years, or 146097 days; counting years from March puts the leap day at
the end of the year, so that no table of months is needed.
"""

from typing import NamedTuple

EPOCH_YEAR = 1970
DAYS_FROM_ERA_TO_EPOCH = 719468
"""Days from 0000-03-01, where a 400-year era begins, to 1970-01-01."""
DAYS_PER_ERA = 146097


class CivilDate(NamedTuple):
    """A day of the proleptic Gregorian calendar; year 0 is 1 BC."""

    year: int
    month: int
    day: int


def date_of_days(days: int) -> CivilDate:
    """The calendar date that many days after 1970-01-01."""
    era, day_of_era = divmod(days + DAYS_FROM_ERA_TO_EPOCH, DAYS_PER_ERA)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36524 - day_of_era // 146096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted_month = (5 * day_of_year + 2) // 153
    month = shifted_month + 3 if shifted_month < 10 else shifted_month - 9
    year = era * 400 + year_of_era + (1 if month <= 2 else 0)
    return CivilDate(year, month, day_of_year - (153 * shifted_month + 2) // 5 + 1)


def days_of_date(year: int, month: int, day: int) -> int:
    """Days from 1970-01-01 to the calendar date; the date is taken as valid."""
    shifted_year = year - 1 if month <= 2 else year
    era, year_of_era = divmod(shifted_year, 400)
    day_of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return era * DAYS_PER_ERA + day_of_era - DAYS_FROM_ERA_TO_EPOCH


def years_since_epoch(days: int) -> int:
    """Whole years from 1970 to the day, rounded down."""
    return date_of_days(days).year - EPOCH_YEAR


def months_since_epoch(days: int) -> int:
    """Whole months from 1970-01 to the day, rounded down."""
    date = date_of_days(days)
    return (date.year - EPOCH_YEAR) * 12 + date.month - 1
