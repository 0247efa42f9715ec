"""Rows of the types that every peer writes too."""

import datetime as dt
import decimal
import math
from typing import Any

from icefloe.schema import parse_ddl

SCHEMA = parse_ddl(
    "id long not null, flag boolean, n int, ratio float, score double, price decimal(12,2), big decimal(30,4), day date,"
    " ts timestamp, tz timestamptz, name string, raw binary, tags list<string>, props map<string, long>,"
    " place struct<zip: string, at: struct<x: double, y: double>>"
)


def row(i: int) -> dict[str, Any]:
    """A row that shows the extremes now and then."""
    if i % 5 == 4:
        return {field.name: i if field.name == "id" else None for field in SCHEMA.fields}
    moment = dt.datetime(2024, 1, 1) + dt.timedelta(days=i, microseconds=i)
    return {
        "id": i,
        "flag": i % 2 == 0,
        "n": (-1) ** i * 2**31 // 2 + i,
        "ratio": [0.5, math.nan, -0.0, math.inf][i % 4],
        "score": i / 3,
        "price": decimal.Decimal(i).scaleb(-2),
        "big": decimal.Decimal("-99999999999999999999.1234"),
        "day": moment.date(),
        "ts": moment,
        "tz": moment.replace(tzinfo=dt.UTC),
        "name": ["", "é😀", "x" * 40, "plain"][i % 4],
        "raw": bytes([i % 256, 255, 0]),
        "tags": ["a", None, "ü"][: i % 4],
        "props": [("k", i), ("v", None)][: i % 3],
        "place": {"zip": str(i), "at": None if i % 3 else {"x": 1.5, "y": None}},
    }


ROWS = [row(i) for i in range(20)]
