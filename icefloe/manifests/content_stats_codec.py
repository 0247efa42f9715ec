"""Typed statistics of v4 manifests: the `content_stats` struct, to and from metrics by field id (spec: Content Stats).

Bounds, value counts, null counts and NaN counts are kept. `tight_bounds` and `avg_value_size_in_bytes`, which are optional
and which nothing here computes, are not written, and are dropped when read.
"""

from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.avro import Key, nodes as av
from icefloe.manifests.arrow_values import as_values
from icefloe.manifests.entry_codec import CONTENT_STATS_ROLE, stats_base_id, stats_field_of
from icefloe.manifests.metrics import MetricColumns
from icefloe.manifests.values import Metric
from icefloe.schema import Schema, decode_bounds, encode_array, types

Spread = dict[tuple[Metric, int], pa.Array]
"""A column for a metric of a field."""

_LOWER, _UPPER, _VALUES, _NULLS, _NANS = 1, 2, 4, 5, 6
_METRIC_OFFSETS = {_VALUES: Metric.VALUE_COUNTS, _NULLS: Metric.NULL_VALUE_COUNTS, _NANS: Metric.NAN_VALUE_COUNTS}
_BOUND_OFFSETS = {_LOWER: Metric.LOWER_BOUNDS, _UPPER: Metric.UPPER_BOUNDS}
_GEO_OFFSETS = {_LOWER: 10, _UPPER: 14}
_AXES = ("x", "y", "z", "m")


def metrics_from_stats(columns: Mapping[Key, pa.Array], nodes: Mapping[Key, av.AvroNode]) -> Spread:
    """Metrics of each field from the columns of `content_stats`, with bounds in binary form."""
    return metrics_of_members(
        {key[1]: column for key, column in columns.items() if key[0] == CONTENT_STATS_ROLE},
        {key[1]: av.plain_meaning(node) for key, node in nodes.items() if key[0] == CONTENT_STATS_ROLE},
    )


def metrics_of_members(members: Mapping[int, pa.Array], stored_types: Mapping[int, types.IcebergType | None]) -> Spread:
    """Metrics of each field from members of `content_stats` by their ids, and the types that these are stored in."""
    metrics: Spread = {}
    for stats_id, column in members.items():
        member = stats_field_of(stats_id)
        if member is None:
            continue
        field_id, offset = member
        if offset in _METRIC_OFFSETS:
            metrics[_METRIC_OFFSETS[offset], field_id] = column.cast(pa.int64())
        elif offset in _BOUND_OFFSETS:
            field_type = stored_types.get(stats_id) or types.BinaryType()
            metrics[_BOUND_OFFSETS[offset], field_id] = encode_array(as_values(column, field_type), field_type)
        else:
            for bound, first in _GEO_OFFSETS.items():
                if offset == first:
                    axes = [members.get(stats_id + axis) for axis in range(4)]
                    metrics[_BOUND_OFFSETS[bound], field_id] = _encode_corners(axes)
    return metrics


def _encode_corners(axes: list[pa.Array | None]) -> pa.Array:
    """Corners as little-endian doubles: x:y, x:y:z, x:y:z:m, or x:y:NaN:m; null where x or y is."""
    count = max(len(axis) for axis in axes if axis is not None)
    numbers = [pa.nulls(count, pa.float64()) if axis is None else axis for axis in axes]
    known = [number.is_valid().to_numpy(zero_copy_only=False) for number in numbers]
    values = np.column_stack([pc.fill_null(number, np.nan).to_numpy(zero_copy_only=False) for number in numbers])
    lengths = np.where(known[3], 4, np.where(known[2], 3, 2)) * (known[0] & known[1])
    stored = values.astype("<f8")[np.arange(4)[None, :] < lengths[:, None]]
    offsets = np.zeros(count + 1, np.int32)
    offsets[1:] = np.cumsum(lengths * 8)
    bitmap = pa.py_buffer(np.packbits(lengths > 0, bitorder="little"))
    return pa.Array.from_buffers(pa.binary(), count, [bitmap, pa.py_buffer(offsets), pa.py_buffer(stored)])


def content_stats_type(schema: Schema, field_ids: Iterable[int]) -> types.StructType:
    """The `content_stats` struct with stats of these fields, those that may have some."""
    inside = {
        child.field_id
        for field in schema.fields_by_id.values()
        if isinstance(field.field_type, types.ListType | types.MapType)
        for child in Schema(*field.field_type.fields).fields_by_id.values()
    }
    structs = []
    for field_id in sorted(set(field_ids) & set(schema.fields_by_id) - inside):
        field_type, base = schema.fields_by_id[field_id].field_type, stats_base_id(field_id)
        if base < 0 or not isinstance(field_type, types.PrimitiveType) or isinstance(field_type, types.UnknownType):
            continue
        struct = types.StructType(*_members(base, field_type))
        structs.append(types.NestedField(base, schema.names_by_id[field_id], struct))
    return types.StructType(*structs)


def _members(base: int, field_type: types.IcebergType) -> list[types.NestedField]:
    if isinstance(field_type, types.GeometryType | types.GeographyType):
        bounds = [_corner(base, offset, name) for offset, name in ((_LOWER, "lower_bound"), (_UPPER, "upper_bound"))]
    else:
        # Bounds of `fixed` may be shorter than its values, which only binary can hold.
        stored = types.BinaryType() if isinstance(field_type, types.FixedType) else field_type
        bounds = [
            types.NestedField(base + _LOWER, "lower_bound", stored),
            types.NestedField(base + _UPPER, "upper_bound", stored),
        ]
    counts = [types.NestedField(base + _VALUES, "value_count", types.LongType())]
    counts.append(types.NestedField(base + _NULLS, "null_value_count", types.LongType()))
    if isinstance(field_type, types.FloatType | types.DoubleType):
        counts.append(types.NestedField(base + _NANS, "nan_value_count", types.LongType()))
    return [*bounds, *counts]


def _corner(base: int, offset: int, name: str) -> types.NestedField:
    first = base + _GEO_OFFSETS[offset]
    axes = [types.NestedField(first + i, axis, types.DoubleType(), axis in "xy") for i, axis in enumerate(_AXES)]
    return types.NestedField(base + offset, name, types.StructType(*axes))


def stats_columns(metrics: MetricColumns, stats: types.StructType, schema: Schema) -> dict[int, pa.Array]:
    """The columns of `content_stats`, by the ids of its members."""
    columns: dict[int, pa.Array] = {}
    for struct in stats.fields:
        member, base = stats_field_of(struct.field_id), struct.field_id
        assert member is not None
        field_id = member[0]
        field_type = schema.fields_by_id[field_id].field_type
        for offset, metric in _METRIC_OFFSETS.items():
            columns[base + offset] = metrics.column(metric, field_id)
        for offset, metric in _BOUND_OFFSETS.items():
            bounds = decode_bounds(metrics.column(metric, field_id), field_type)
            if isinstance(field_type, types.GeometryType | types.GeographyType):
                columns[base + offset] = bounds.is_valid()
                for i, axis in enumerate(_AXES):
                    columns[base + _GEO_OFFSETS[offset] + i] = pc.struct_field(bounds, axis)
            else:
                columns[base + offset] = bounds
    return columns
