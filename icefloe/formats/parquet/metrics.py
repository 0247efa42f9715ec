"""The statistics of a Parquet file from its footer alone, whoever wrote it."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

from icefloe.errors import InvalidValueError
from icefloe.formats.array_metrics import encode_bounds
from icefloe.formats.metrics import NO_METRICS, Metrics, MetricsMode
from icefloe.schema import GeoPoint, Schema, coerce, file_schema_from_arrow, promote_value, types

_POINT_CODES = {1, 4}
"""WKB codes of points and multi-points, whose box is that of their coordinates on a sphere too."""


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A column of the file: the field that it belongs to, and its Arrow type; `is_part`: one more column of a variant."""

    field: types.NestedField
    arrow_type: Any
    is_repeated: bool
    is_part: bool = False


def parquet_metrics(
    footer: Any,
    schema: Schema,
    modes: Mapping[int, MetricsMode],
    seen: Metrics | None = None,
    file_schema: Schema | None = None,
) -> Metrics:
    """Metrics of the columns of `schema`, by the field ids in the file, or in `file_schema` when the file has none.

    `seen` are counts by whoever saw the values: a footer does not tell how many are NaN, nor how many shapes are null.
    """
    groups = [footer.row_group(i) for i in range(footer.num_row_groups)]
    return _metrics(footer, groups, schema, modes, seen or Metrics(footer.num_rows), file_schema)


def row_group_metrics(
    footer: Any, schema: Schema, modes: Mapping[int, MetricsMode], file_schema: Schema
) -> list[Metrics]:
    """The metrics of each row group by itself."""
    groups = [footer.row_group(i) for i in range(footer.num_row_groups)]
    return [_metrics(footer, [each], schema, modes, Metrics(each.num_rows), file_schema) for each in groups]


def _metrics(
    footer: Any,
    groups: list[Any],
    schema: Schema,
    modes: Mapping[int, MetricsMode],
    seen: Metrics,
    file_schema: Schema | None,
) -> Metrics:
    arrow_schema = footer.schema.to_arrow_schema()
    ids = file_schema if file_schema is not None else file_schema_from_arrow(arrow_schema)
    found = _Found(seen)
    for position, leaf in enumerate(_leaves(ids.fields, list(arrow_schema), False)):
        mode = modes.get(leaf.field.field_id, NO_METRICS)
        if mode.counts and not leaf.is_part and leaf.field.field_id in schema.fields_by_id:
            wanted = schema.fields_by_id[leaf.field.field_id].field_type
            found.add(leaf, wanted, mode, [group.column(position) for group in groups])
    return Metrics(seen.record_count, found.sizes, found.values, found.nulls, found.nans, found.lower, found.upper)


def leaf_fields(file_schema: Schema, arrow_schema: Any) -> list[int]:
    """The field id that each column of a Parquet file belongs to, in the order of the columns."""
    return [leaf.field.field_id for leaf in _leaves(file_schema.fields, list(arrow_schema), False)]


def split_offsets(footer: Any) -> tuple[int, ...]:
    """Where each row group begins."""
    starts = []
    for i in range(footer.num_row_groups):
        group = footer.row_group(i)
        if group.num_columns:
            column = group.column(0)
            pages = (column.dictionary_page_offset, column.data_page_offset)
            starts.append(min(offset for offset in pages if offset))
    return tuple(sorted(starts))


class _Found:
    """The maps of the metrics as they fill, column by column."""

    def __init__(self, seen: Metrics) -> None:
        self.sizes: dict[int, int] = {}
        self.values = dict(seen.value_counts)
        self.nulls = dict(seen.null_value_counts)
        self.nans = dict(seen.nan_value_counts)
        self.lower: dict[int, bytes] = {}
        self.upper: dict[int, bytes] = {}

    def add(self, leaf: _Leaf, kind: types.IcebergType, mode: MetricsMode, chunks: list[Any]) -> None:
        field_id = leaf.field.field_id
        self.sizes[field_id] = sum(chunk.total_compressed_size for chunk in chunks)
        if leaf.is_repeated:
            return
        if all(_counts_nulls(chunk) for chunk in chunks):
            self.values[field_id] = sum(chunk.num_values for chunk in chunks)
            self.nulls[field_id] = sum(chunk.statistics.null_count for chunk in chunks)
        if (
            mode.bounds
            and isinstance(kind, types.PrimitiveType)
            and isinstance(leaf.field.field_type, types.PrimitiveType)
        ):
            self._add_bounds(field_id, leaf, kind, mode, chunks)

    def _add_bounds(
        self, field_id: int, leaf: _Leaf, kind: types.PrimitiveType, mode: MetricsMode, chunks: list[Any]
    ) -> None:
        if isinstance(kind, types.GeometryType | types.GeographyType):
            low, high = _box(chunks, kind)
        elif field_id in self.nulls:
            low, high = _range(chunks, leaf, self.nans.get(field_id, 0))
            if low is not None:
                low, high = (promote_value(each, leaf.field.field_type, kind) for each in (low, high))
        else:
            return
        lower, upper = encode_bounds(low, high, kind, mode)
        if lower is not None:
            self.lower[field_id] = lower
        if upper is not None:
            self.upper[field_id] = upper


def _counts_nulls(chunk: Any) -> bool:
    return bool(chunk.is_stats_set and chunk.statistics.has_null_count)


def _range(chunks: list[Any], leaf: _Leaf, nans: int) -> tuple[Any, Any]:
    """The smallest and largest value over all row groups, or nothing when one of them does not tell."""
    low = high = None
    for chunk in chunks:
        statistics = chunk.statistics
        if not statistics.has_min_max:
            if chunk.num_values - statistics.null_count <= nans:
                continue
            return None, None
        try:
            smallest, largest = (_value(raw, leaf) for raw in (statistics.min_raw, statistics.max_raw))
        except (InvalidValueError, UnicodeDecodeError):
            # Another writer cut a string in the middle of a character: a bound that cannot be read is no bound.
            return None, None
        low = smallest if low is None else min(low, smallest)
        high = largest if high is None else max(high, largest)
    return low, high


def _value(raw: Any, leaf: _Leaf) -> Any:
    """The internal value of a physical one."""
    kind, arrow_type = leaf.field.field_type, leaf.arrow_type
    match kind:
        case types.DecimalType():
            number = raw if isinstance(raw, int) else int.from_bytes(raw, "big", signed=True)
            return Decimal(number).scaleb(-kind.scale) if abs(number) < 10**28 else Decimal(f"{number}e-{kind.scale}")
        case types.StringType():
            return raw.decode()
        case types.UUIDType():
            return coerce(bytes(raw), kind)
        case types.BooleanType():
            return bool(raw)
        case types.BinaryType():
            return bytes(raw)
        case _ if pa.types.is_unsigned_integer(arrow_type):
            return raw % 2**arrow_type.bit_width
        case _ if pa.types.is_timestamp(arrow_type) or pa.types.is_time(arrow_type):
            return raw * {"s": 1_000_000, "ms": 1000}.get(arrow_type.unit, 1)
        case _:
            return raw


def _box(chunks: list[Any], kind: types.GeometryType | types.GeographyType) -> tuple[GeoPoint | None, GeoPoint | None]:
    """The corners over all row groups, or nothing where one has no box or one that crosses the antimeridian.

    Edges of a geography bulge beyond their ends, so only points have a box there.
    """
    boxes = [chunk.geo_statistics for chunk in chunks]
    for box in boxes:
        if box is None or not _has(box, "x") or not _has(box, "y") or box.xmin > box.xmax:
            return None, None
        codes = {code % 1000 for code in box.geospatial_types or [0]}
        if isinstance(kind, types.GeographyType) and not codes <= _POINT_CODES:
            return None, None
    return (_corner(boxes, "min", min), _corner(boxes, "max", max)) if boxes else (None, None)


def _corner(boxes: list[Any], end: str, choose: Callable[..., float]) -> GeoPoint:
    """One corner; z and m only when every box has them."""
    sides = {
        name: choose(getattr(box, name + end) for box in boxes)
        for name in "xyzm"
        if all(_has(box, name) for box in boxes)
    }
    return GeoPoint(sides["x"], sides["y"], sides.get("z"), sides.get("m"))


def _has(box: Any, name: str) -> bool:
    ends = (getattr(box, f"{name}min"), getattr(box, f"{name}max"))
    return all(end is not None and math.isfinite(end) for end in ends)


def _leaves(fields: tuple[types.NestedField, ...], arrow_fields: list[Any], is_repeated: bool) -> Iterator[_Leaf]:
    """The columns of the file in their order: depth first, as Parquet lays them out."""
    for each, arrow_field in zip(fields, arrow_fields, strict=True):
        yield from _leaves_below(each, arrow_field.type, is_repeated)


def _leaves_below(each: types.NestedField, arrow_type: Any, is_repeated: bool) -> Iterator[_Leaf]:
    match each.field_type:
        case types.StructType():
            yield from _leaves(each.field_type.fields, list(arrow_type), is_repeated)
        case types.ListType():
            yield from _leaves_below(each.field_type.element_field, arrow_type.value_field.type, True)
        case types.MapType():
            yield from _leaves_below(each.field_type.key_field, arrow_type.key_field.type, True)
            yield from _leaves_below(each.field_type.value_field, arrow_type.item_field.type, True)
        case types.VariantType():
            # The `metadata` of a variant is null where the variant is, so it counts for the whole.
            for position, _ in enumerate(_plain_leaves(arrow_type)):
                yield _Leaf(each, arrow_type, is_repeated, is_part=position > 0)
        case _:
            yield _Leaf(each, arrow_type, is_repeated)


def _plain_leaves(arrow_type: Any) -> Iterator[Any]:
    if pa.types.is_nested(arrow_type):
        for i in range(arrow_type.num_fields):
            yield from _plain_leaves(arrow_type.field(i).type)
    else:
        yield arrow_type
