"""Parsing of times in options: ISO 8601, or an age such as 7d."""

import datetime as dt
import re

from icefloe.catalog import read_time
from icefloe.errors import InvalidInputError
from icefloe.planning import milliseconds

_AGE = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|w)")
_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}


def moment(text: str) -> int:
    """Parse a time or an age to milliseconds since the epoch."""
    if _AGE.fullmatch(text.strip()):
        return milliseconds(dt.datetime.now(dt.UTC)) - duration(text)
    known = read_time(text)
    if known is None:
        raise InvalidInputError(f"{text!r} is neither a time like 2026-11-01T00:00Z nor an age like 7d or 12h")
    return known


def duration(text: str) -> int:
    """Parse a duration such as 7d or 90m to milliseconds."""
    match = _AGE.fullmatch(text.strip())
    if match is None:
        raise InvalidInputError(f"{text!r} is not a duration like 7d, 12h or 30m")
    return int(float(match[1]) * _UNITS[match[2]])
