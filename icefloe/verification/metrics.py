"""Whether the recorded metrics of a file agree with those that its footer, or its rows, give."""

from collections.abc import Iterator
from typing import Any

from icefloe.errors import InvalidValueError
from icefloe.formats.metrics import Metrics
from icefloe.manifests import DataFile
from icefloe.schema import GeoPoint, Schema, decode_bound, types
from icefloe.verification.codes import Code

_WHOLE_TEXT = 64
"""Bounds of text and bytes in a footer that are this long may have been cut by the writer."""


def compare_metrics(file: DataFile, found: Metrics, schema: Schema, is_exact: bool) -> Iterator[tuple[Code, str]]:
    """What is wrong with the metrics of a file; `is_exact` says that `found` comes from rows and not from a footer."""
    for name in ("value_counts", "null_value_counts", "nan_value_counts"):
        said, counted = getattr(file, name), getattr(found, name)
        for field_id in sorted(said.keys() & counted.keys()):
            if said[field_id] != counted[field_id]:
                what = name.removesuffix("_counts").replace("_", " ")
                yield (
                    Code.COLUMN_COUNTS,
                    f"the {what} count of column {_name(schema, field_id)} is {said[field_id]}; "
                    f"the file has {counted[field_id]}",
                )
    for field_id in sorted({*file.lower_bounds, *file.upper_bounds} & schema.fields_by_id.keys()):
        kind = schema.fields_by_id[field_id].field_type
        if not isinstance(kind, types.VariantType):
            yield from _compare_bounds(file, found, field_id, kind, _name(schema, field_id), is_exact)


def _compare_bounds(
    file: DataFile, found: Metrics, field_id: int, kind: types.IcebergType, name: str, is_exact: bool
) -> Iterator[tuple[Code, str]]:
    for word, said, actual, is_lower in (
        ("lower", file.lower_bounds.get(field_id), found.lower_bounds.get(field_id), True),
        ("upper", file.upper_bounds.get(field_id), found.upper_bounds.get(field_id), False),
    ):
        if said is None:
            continue
        try:
            bound = decode_bound(said, kind)
        except InvalidValueError as error:
            yield Code.COLUMN_BOUNDS, f"the {word} bound of column {name} is no value of type {kind}: {error}"
            continue
        if actual is None or (not is_exact and _may_be_cut(actual, kind)):
            continue
        value = decode_bound(actual, kind)
        if not _covers(bound, value, is_lower):
            shown = f"{bound!r}; the file has {value!r}"
            yield Code.COLUMN_BOUNDS, f"the {word} bound of column {name} is {shown}"


def _may_be_cut(actual: bytes, kind: types.IcebergType) -> bool:
    return isinstance(kind, types.StringType | types.BinaryType | types.FixedType) and len(actual) >= _WHOLE_TEXT


def _covers(bound: Any, value: Any, is_lower: bool) -> bool:
    if isinstance(bound, GeoPoint) and isinstance(value, GeoPoint):
        # A box whose west is east of its east goes over the antimeridian, which only both corners tell.
        return bound.y <= value.y if is_lower else bound.y >= value.y
    return bool(bound <= value if is_lower else bound >= value)


def _name(schema: Schema, field_id: int) -> str:
    return repr(schema.names_by_id.get(field_id, str(field_id)))
