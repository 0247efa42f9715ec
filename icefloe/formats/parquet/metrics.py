"""The statistics of a Parquet file from its footer alone, for files of any writer, and which of its row groups they rule out."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from icefloe import errors, schema as sc
from icefloe.expressions import Expression, bound_references, might_match
from icefloe.formats.array_metrics import are_tight, encode_bounds
from icefloe.formats.metrics import FULL, NO_METRICS, Metrics, MetricsMode
from icefloe.formats.parquet.variant_bounds import variant_file_bounds
from icefloe.schema import types

Chunks = list[pq.ColumnChunkMetaData]

_POINT_CODES = {1, 4}
"""WKB codes of points and multi-points, whose box is that of their coordinates on a sphere too."""


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A column of the file: the field that it belongs to, and its Arrow type; `is_part`: one more column of a variant."""

    field: types.NestedField
    arrow_type: pa.DataType
    is_repeated: bool
    is_part: bool = False


def parquet_metrics(
    footer: pq.FileMetaData,
    schema: sc.Schema,
    modes: Mapping[int, MetricsMode],
    seen: Metrics | None = None,
    file_schema: sc.Schema | None = None,
) -> Metrics:
    """Metrics of the columns of `schema`, by the field ids in the file, or in `file_schema` when the file has none.

    `seen` is from the writer, who saw the values: a footer does not tell how many are NaN, nor how many shapes are null, and
    pyarrow writes no boxes of geographies.
    """
    file_schema = file_schema or sc.file_schema_from_arrow(footer.schema.to_arrow_schema())
    return _metrics(footer, _groups(footer), schema, modes, seen or Metrics(footer.num_rows), file_schema)


def row_group_filter(
    predicate: Expression, schema: sc.Schema
) -> Callable[[pq.FileMetaData, sc.Schema], npt.NDArray[np.bool_]]:
    """A filter for `ParquetFileReader.batches` from a predicate that is bound to the table's schema."""
    modes = {column.field_id: FULL for column in bound_references(predicate)}

    def choose(footer: pq.FileMetaData, file_schema: sc.Schema) -> npt.NDArray[np.bool_]:
        metrics = [
            _metrics(footer, [group], schema, modes, Metrics(group.num_rows), file_schema) for group in _groups(footer)
        ]
        return might_match(predicate, _MetricsColumns(metrics))

    return choose


class _MetricsColumns:
    """The metrics of several row groups as the columns that the statistics kernels ask for."""

    def __init__(self, metrics: Sequence[Metrics]) -> None:
        self._metrics = metrics

    @property
    def size(self) -> int:
        return len(self._metrics)

    @property
    def record_counts(self) -> pa.Array:
        return pa.array([metrics.record_count for metrics in self._metrics], pa.int64())

    def value_counts(self, field_id: int) -> pa.Array:
        return pa.array([metrics.value_counts.get(field_id) for metrics in self._metrics], pa.int64())

    def null_counts(self, field_id: int) -> pa.Array:
        return pa.array([metrics.null_value_counts.get(field_id) for metrics in self._metrics], pa.int64())

    def nan_counts(self, field_id: int) -> pa.Array:
        return pa.array([metrics.nan_value_counts.get(field_id) for metrics in self._metrics], pa.int64())

    def lower_bounds(self, field_id: int, kind: types.IcebergType) -> pa.Array:
        bounds = [metrics.lower_bounds.get(field_id) for metrics in self._metrics]
        return sc.decode_bounds(pa.array(bounds, pa.binary()), kind)

    def upper_bounds(self, field_id: int, kind: types.IcebergType) -> pa.Array:
        bounds = [metrics.upper_bounds.get(field_id) for metrics in self._metrics]
        return sc.decode_bounds(pa.array(bounds, pa.binary()), kind)


def _groups(footer: pq.FileMetaData) -> list[pq.RowGroupMetaData]:
    return [footer.row_group(i) for i in range(footer.num_row_groups)]


def _metrics(
    footer: pq.FileMetaData,
    groups: list[pq.RowGroupMetaData],
    schema: sc.Schema,
    modes: Mapping[int, MetricsMode],
    seen: Metrics,
    file_schema: sc.Schema,
) -> Metrics:
    columns = _Columns(seen)
    for position, leaf in enumerate(_leaves(file_schema.fields, footer.schema.to_arrow_schema(), False)):
        mode = modes.get(leaf.field.field_id, NO_METRICS)
        if mode.counts and not leaf.is_part and leaf.field.field_id in schema.fields_by_id:
            wanted = schema.fields_by_id[leaf.field.field_id].field_type
            columns.add(leaf, wanted, mode, [group.column(position) for group in groups])
            if mode.bounds and not leaf.is_repeated and isinstance(wanted, types.VariantType):
                columns.add_variant_bounds(leaf, variant_file_bounds(leaf.arrow_type, position, groups, mode))
    return Metrics(
        seen.record_count,
        columns.sizes,
        columns.values,
        columns.nulls,
        columns.nans,
        columns.lower,
        columns.upper,
        columns.tight,
        seen.avg_value_sizes,
    )


def leaf_fields(file_schema: sc.Schema, arrow_schema: pa.Schema) -> list[int]:
    """The field id that each column of a Parquet file belongs to, in the order of the columns."""
    return [leaf.field.field_id for leaf in _leaves(file_schema.fields, arrow_schema, False)]


def split_offsets(footer: pq.FileMetaData) -> tuple[int, ...]:
    """Where each row group begins."""
    return tuple(sorted(first_page(group.column(0)) for group in _groups(footer) if group.num_columns))


def first_page(chunk: pq.ColumnChunkMetaData) -> int:
    """Where the first page of a column chunk is; 0 if the footer does not say."""
    return min((offset for offset in (chunk.dictionary_page_offset, chunk.data_page_offset) if offset), default=0)


class _Columns:
    """The maps of the metrics as they fill, column by column."""

    def __init__(self, seen: Metrics) -> None:
        self.sizes: dict[int, int] = {}
        self.values = dict(seen.value_counts)
        self.nulls = dict(seen.null_value_counts)
        self.nans = dict(seen.nan_value_counts)
        self.lower = dict(seen.lower_bounds)
        self.upper = dict(seen.upper_bounds)
        self.tight: dict[int, int] = {}
        self._is_own = bool(seen.avg_value_sizes)

    def add(self, leaf: _Leaf, kind: types.IcebergType, mode: MetricsMode, chunks: Chunks) -> None:
        field_id = leaf.field.field_id
        self.sizes[field_id] = sum(chunk.total_compressed_size for chunk in chunks)
        if leaf.is_repeated:
            return
        if all(_counts_nulls(chunk) for chunk in chunks):
            self.values[field_id] = sum(chunk.num_values for chunk in chunks)
            self.nulls[field_id] = sum(chunk.statistics.null_count for chunk in chunks)
        if (
            mode.bounds
            and field_id not in self.lower
            and isinstance(kind, types.PrimitiveType)
            and isinstance(leaf.field.field_type, types.PrimitiveType)
        ):
            self._add_bounds(field_id, leaf, kind, mode, chunks)

    def add_variant_bounds(self, leaf: _Leaf, bounds: tuple[bytes | None, bytes | None]) -> None:
        for side, bound in zip((self.lower, self.upper), bounds, strict=True):
            if bound is not None:
                side[leaf.field.field_id] = bound

    def _add_bounds(
        self, field_id: int, leaf: _Leaf, kind: types.PrimitiveType, mode: MetricsMode, chunks: Chunks
    ) -> None:
        if isinstance(kind, types.GeometryType | types.GeographyType):
            low, high = _box(chunks, kind)
        elif field_id in self.nulls:
            low, high = _range(chunks, leaf, self.nans.get(field_id, 0))
            if low is not None:
                low, high = (sc.promote_value(bound, leaf.field.field_type, kind) for bound in (low, high))
        else:
            return
        lower, upper = encode_bounds(low, high, kind, mode)
        if lower is not None:
            self.lower[field_id] = lower
        if upper is not None:
            self.upper[field_id] = upper
        # Other writers may have cut a text or bytes before they noted them.
        is_exact = self._is_own or not isinstance(kind, types.StringType | types.BinaryType)
        if lower is not None and upper is not None and is_exact and not isinstance(low, sc.GeoPoint):
            self.tight[field_id] = int(are_tight(low, high, kind, mode))


def _counts_nulls(chunk: pq.ColumnChunkMetaData) -> bool:
    return bool(chunk.is_stats_set and chunk.statistics.has_null_count)


def _is_all_null(chunk: pq.ColumnChunkMetaData) -> bool:
    return _counts_nulls(chunk) and bool(chunk.statistics.null_count == chunk.num_values)


def _range(chunks: Chunks, leaf: _Leaf, nans: int) -> tuple[sc.Value | None, sc.Value | None]:
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
        except (errors.InvalidValueError, UnicodeDecodeError):
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
            return sc.coerce(bytes(raw), kind)
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


def _box(
    chunks: Chunks, kind: types.GeometryType | types.GeographyType
) -> tuple[sc.GeoPoint | None, sc.GeoPoint | None]:
    """The corners over all row groups, or nothing where one has no box, or one of several that crosses the antimeridian.

    Row groups that are known to have none of the shapes do not count.
    Edges of a geography bulge beyond their ends, and nobody says whether a writer thought of that, so only points have a box.
    """
    boxes = [chunk.geo_statistics for chunk in chunks if not _is_all_null(chunk)]
    may_wrap = isinstance(kind, types.GeographyType) and len(boxes) == 1
    for box in boxes:
        if box is None or not _has(box, "x") or not _has(box, "y") or (box.xmin > box.xmax and not may_wrap):
            return None, None
        codes = {code % 1000 for code in box.geospatial_types or [0]}
        if isinstance(kind, types.GeographyType) and not codes <= _POINT_CODES:
            return None, None
    return (_corner(boxes, "min", min), _corner(boxes, "max", max)) if boxes else (None, None)


def _corner(boxes: list[Any], end: str, choose: Callable[..., float]) -> sc.GeoPoint:
    """One corner; z and m only when every box has them."""
    sides = {
        name: choose(getattr(box, name + end) for box in boxes)
        for name in "xyzm"
        if all(_has(box, name) for box in boxes)
    }
    return sc.GeoPoint(sides["x"], sides["y"], sides.get("z"), sides.get("m"))


def _has(box: Any, name: str) -> bool:
    ends = (getattr(box, f"{name}min"), getattr(box, f"{name}max"))
    return all(end is not None and math.isfinite(end) for end in ends)


def _leaves(
    fields: tuple[types.NestedField, ...], arrow_fields: Iterable[pa.Field], is_repeated: bool
) -> Iterator[_Leaf]:
    """The columns of the file in their order: depth first, as Parquet lays them out."""
    for field, arrow_field in zip(fields, arrow_fields, strict=True):
        yield from _leaves_below(field, arrow_field.type, is_repeated)


def _leaves_below(field: types.NestedField, arrow_type: pa.DataType, is_repeated: bool) -> Iterator[_Leaf]:
    match field.field_type:
        case types.StructType():
            yield from _leaves(field.field_type.fields, arrow_type, is_repeated)
        case types.ListType():
            yield from _leaves_below(field.field_type.element_field, arrow_type.value_field.type, True)
        case types.MapType():
            yield from _leaves_below(field.field_type.key_field, arrow_type.key_field.type, True)
            yield from _leaves_below(field.field_type.value_field, arrow_type.item_field.type, True)
        case types.VariantType():
            # The `metadata` of a variant is null where the variant is, so it counts for the whole.
            for position in range(_leaf_count(arrow_type)):
                yield _Leaf(field, arrow_type, is_repeated, is_part=position > 0)
        case _:
            yield _Leaf(field, arrow_type, is_repeated)


def _leaf_count(arrow_type: pa.DataType) -> int:
    if not pa.types.is_nested(arrow_type):
        return 1
    return sum(_leaf_count(arrow_type.field(i).type) for i in range(arrow_type.num_fields))
