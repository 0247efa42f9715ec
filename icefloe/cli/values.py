"""JSON representation of a single value."""

import base64
import datetime as dt
import decimal
import math
import uuid
from collections.abc import Mapping
from typing import Any

from icefloe.shown import rfc3339

_IDS = frozenset(
    (
        "_commit_snapshot_id",
        "_last_updated_sequence_number",
        "_row_id",
        "added_snapshot_id",
        "base_snapshot_id",
        "committed_snapshot_id",
        "current_snapshot_id",
        "data_sequence_number",
        "file_sequence_number",
        "first_row_id",
        "from_snapshot_id",
        "last_sequence_number",
        "last_updated_snapshot_id",
        "latest_sequence_number",
        "latest_snapshot_id",
        "min_sequence_number",
        "next_row_id",
        "parent_id",
        "parent_snapshot_id",
        "reference_snapshot_id",
        "row_id",
        "sequence_number",
        "snapshot_id",
        "source_snapshot_id",
        "to_snapshot_id",
    )
)
"""Fields with 64-bit ids: written as strings, as programs that read JSON numbers as doubles would change them."""


def json_value(value: Any, name: str | None = None) -> Any:
    """Return a value as JSON: ids and decimals as strings, times in RFC 3339, bytes in base64."""
    match value:
        case bool() | None | str():
            return value
        case int():
            return str(value) if name in _IDS else value
        case float():
            return value if math.isfinite(value) else str(value)
        case dt.datetime():
            return rfc3339(value)
        case dt.date() | dt.time():
            return value.isoformat()
        case dt.timedelta():
            return value.total_seconds()
        case decimal.Decimal() if value.is_finite() and value.as_tuple().exponent == 0:
            return int(value)
        case decimal.Decimal() | uuid.UUID():
            return str(value)
        case bytes() | bytearray() | memoryview():
            return base64.b64encode(bytes(value)).decode()
        case Mapping():
            return {str(key): json_value(item, str(key)) for key, item in value.items()}
        case list() | tuple():
            return _json_list(value, name)
        case _:
            return str(value)


def _json_list(values: list[Any] | tuple[Any, ...], name: str | None) -> Any:
    # Arrow returns maps as lists of pairs; maps with string or integer keys become objects.
    if values and all(isinstance(each, tuple) and len(each) == 2 and isinstance(each[0], str | int) for each in values):
        return {str(key): json_value(item) for key, item in values}
    return [json_value(each, name) for each in values]
