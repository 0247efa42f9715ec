"""Human-readable formatting of values: cells, times, sizes and counts."""

import datetime as dt
from collections.abc import Mapping
from typing import Any

NULL = "null"


def cell(value: Any) -> str:
    """Format a value as text."""
    match value:
        case None:
            return NULL
        case str():
            return value
        case bool():
            return str(value).lower()
        case dt.datetime():
            return shown_time(value)
        case bytes():
            return f"0x{value.hex()}"
        case Mapping():
            return "{" + ", ".join(f"{key}: {cell(item)}" for key, item in value.items()) + "}"
        case tuple() if len(value) == 2 and isinstance(value[0], str | int):
            return f"{value[0]}: {cell(value[1])}"
        case list() | tuple():
            return "[" + ", ".join(map(cell, value)) + "]"
        case _:
            return str(value)


def rfc3339(moment: dt.datetime) -> str:
    """Format a time with Z for UTC; without an offset if it has no time zone."""
    if moment.tzinfo is None:
        return moment.isoformat()
    return moment.astimezone(dt.UTC).isoformat().replace("+00:00", "Z")


def shown_time(moment: dt.datetime) -> str:
    """Format a time for display, in UTC if it has a time zone."""
    if moment.tzinfo is not None:
        moment = moment.astimezone(dt.UTC).replace(tzinfo=None)
    return moment.isoformat(sep=" ")


def utc(timestamp_ms: int | None) -> dt.datetime | None:
    """Convert milliseconds since the epoch to a UTC time."""
    return None if timestamp_ms is None else dt.datetime.fromtimestamp(timestamp_ms / 1000, dt.UTC)


def minute(timestamp_ms: int | None) -> str:
    """Format a time to the minute."""
    moment = utc(timestamp_ms)
    return "-" if moment is None else f"{moment:%Y-%m-%d %H:%M}"


def size(count: float) -> str:
    """Format a number of bytes."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(count) < 1024 or unit == "TiB":
            break
        count /= 1024
    return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """Format a count with its noun."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"
