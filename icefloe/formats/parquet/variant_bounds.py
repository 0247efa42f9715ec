"""The bounds of shredded variants from the footer of a Parquet file, for files of any writer (spec: Bounds for Variant).

A path has bounds only if all values there but null are in its typed column: the column of other values beside it must be
empty, or hold nothing but variant nulls. Nothing is known of what is in arrays.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import count
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq

from icefloe import schema as sc
from icefloe.formats.metrics import MetricsMode
from icefloe.formats.variant.shredding import primitive_kind
from icefloe.schema import types
from icefloe.variant import VARIANT_NULL, Path, VariantKind, VariantPrimitive, encode_variant_bounds, normalized

_MOST_PATHS = 1000
_TEXTS = {VariantKind.STRING: types.StringType(), VariantKind.BINARY: types.BinaryType()}


@dataclass(frozen=True, slots=True)
class _Typed:
    """A typed column of primitives: the path of its values, the column itself and that of other values, by position."""

    path: Path
    arrow_type: pa.DataType
    typed: int
    value: int | None


def variant_file_bounds(
    arrow_type: pa.DataType, position: int, groups: Sequence[pq.RowGroupMetaData], mode: MetricsMode
) -> tuple[bytes | None, bytes | None]:
    """Lower and upper bounds of a variant column, whose first column in the file is at this position."""
    lower: dict[str, VariantPrimitive] = {}
    upper: dict[str, VariantPrimitive] = {}
    for column in _typed_columns(arrow_type, position):
        if len(lower) >= _MOST_PATHS:
            break
        if not all(_is_all_typed(group, column.value) for group in groups):
            continue
        low, high = _range(column, groups, mode)
        path = normalized(column.path)
        if low is not None:
            lower[path] = low
        if high is not None:
            upper[path] = high
    return (
        encode_variant_bounds(lower) if lower else None,
        encode_variant_bounds(upper) if upper else None,
    )


def has_only_nulls(footer: pq.FileMetaData, first: int, value: int) -> bool:
    """Whether the column of other values at a position, counted from `first`, has none in any row group, or variant nulls only."""
    return all(_is_all_typed(footer.row_group(i), first + value) for i in range(footer.num_row_groups))


def _typed_columns(arrow_type: pa.DataType, position: int) -> Iterator[_Typed]:
    return _below(arrow_type, (), count(position), is_listed=False)


def _below(group: pa.DataType, path: Path, positions: "count[int]", *, is_listed: bool) -> Iterator[_Typed]:
    """The typed columns of a group of `value` and `typed_value`, in the order of the file."""
    if not pa.types.is_struct(group):
        # Not a form of shredding; its columns only count.
        for _ in range(_leaf_count(group)):
            next(positions)
        return
    value: int | None = None
    typed: list[_Typed] = []
    for field in group:
        kind = field.type.storage_type if isinstance(field.type, pa.BaseExtensionType) else field.type
        if field.name == "typed_value" and pa.types.is_struct(kind):
            for inner in kind:
                yield from _below(inner.type, (*path, inner.name), positions, is_listed=is_listed)
        elif field.name == "typed_value" and pa.types.is_nested(kind):
            for _ in range(_leaf_count(kind)):
                next(positions)
        elif field.name == "typed_value":
            typed.append(_Typed(path, kind, next(positions), None))
        else:
            at = next(positions)
            value = at if field.name == "value" else value
    yield from (_Typed(path, column.arrow_type, column.typed, value) for column in typed if not is_listed)


def _leaf_count(kind: pa.DataType) -> int:
    return sum(_leaf_count(kind.field(i).type) for i in range(kind.num_fields)) if pa.types.is_nested(kind) else 1


def _is_all_typed(group: pq.RowGroupMetaData, value: int | None) -> bool:
    """Whether the column of other values has none but null."""
    if value is None:
        return True
    chunk = group.column(value)
    statistics = chunk.statistics
    if statistics is None:
        return False
    if statistics.has_null_count and statistics.null_count == chunk.num_values:
        return True
    return bool(statistics.has_min_max and statistics.min_raw == statistics.max_raw == VARIANT_NULL)


def _range(
    column: _Typed, groups: Sequence[pq.RowGroupMetaData], mode: MetricsMode
) -> tuple[VariantPrimitive | None, VariantPrimitive | None]:
    kind = primitive_kind(column.arrow_type)
    low = high = None
    for group in groups:
        chunk = group.column(column.typed)
        statistics = chunk.statistics
        if kind is None or statistics is None or not statistics.has_null_count:
            return None, None
        if statistics.null_count == chunk.num_values:
            continue
        if not statistics.has_min_max:
            return None, None
        try:
            least, most = (_value(raw, kind, column.arrow_type) for raw in (statistics.min_raw, statistics.max_raw))
        except UnicodeDecodeError:
            # Another writer cut a text in the middle of a character.
            return None, None
        if isinstance(least, float) and (math.isnan(least) or math.isnan(most)):
            return None, None
        low = least if low is None else min(low, least)
        high = most if high is None else max(high, most)
    return (None, None) if low is None or kind is None else _bounds(kind, low, high, mode)


def _bounds(
    kind: VariantKind, low: Any, high: Any, mode: MetricsMode
) -> tuple[VariantPrimitive | None, VariantPrimitive | None]:
    """Both bounds, cut as the mode says; the upper one goes where it cannot be rounded up."""
    if kind is VariantKind.TRUE:
        return tuple(VariantPrimitive(VariantKind.TRUE if end else VariantKind.FALSE, end) for end in (low, high))  # type: ignore[return-value]  # two of them
    if isinstance(low, float):
        low, high = (-0.0 if low == 0 else low), (0.0 if high == 0 else high)
    if kind in _TEXTS and mode.width is not None:
        low = sc.truncate_lower(low, _TEXTS[kind], mode.width)
        high = sc.truncate_upper(high, _TEXTS[kind], mode.width)
    return VariantPrimitive(kind, low), None if high is None else VariantPrimitive(kind, high)


def _value(raw: Any, kind: VariantKind, arrow_type: pa.DataType) -> Any:
    """The value of a physical one, as `VariantPrimitive` has it."""
    match kind:
        case VariantKind.TRUE:
            return bool(raw)
        case VariantKind.STRING:
            return raw.decode()
        case VariantKind.BINARY:
            return bytes(raw)
        case VariantKind.UUID:
            return UUID(bytes=bytes(raw))
        case VariantKind.DECIMAL4 | VariantKind.DECIMAL8 | VariantKind.DECIMAL16:
            number = raw if isinstance(raw, int) else int.from_bytes(raw, "big", signed=True)
            return Decimal(f"{number}E-{arrow_type.scale}")
        case _:
            return raw
