"""Typed statistics of v4 manifests: the `content_stats` struct, to and from metrics by field id (spec: Content Stats).

Bounds, value counts, null counts and NaN counts are kept. `tight_bounds` and `avg_value_size_in_bytes`, which are optional
and which nothing here computes, are not written, and are dropped when read.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.avro import Key, nodes as av
from icefloe.manifests.arrow_values import as_values
from icefloe.manifests.entry_codec import CONTENT_STATS_ROLE, stats_base_id, stats_field_of
from icefloe.manifests.metrics import MetricColumns
from icefloe.manifests.values import Metric
from icefloe.schema import Schema, decode_bounds, encode_array, types

_LOWER, _UPPER, _VALUES, _NULLS, _NANS = 1, 2, 4, 5, 6
_METRIC_OFFSETS = {_VALUES: Metric.VALUE_COUNTS, _NULLS: Metric.NULL_VALUE_COUNTS, _NANS: Metric.NAN_VALUE_COUNTS}
_BOUND_OFFSETS = {_LOWER: Metric.LOWER_BOUNDS, _UPPER: Metric.UPPER_BOUNDS}
_GEO_OFFSETS = {_LOWER: 10, _UPPER: 14}
_AXES = ("x", "y", "z", "m")


def metrics_from_stats(columns: Mapping[Key, Any], nodes: Mapping[Key, av.AvroNode]) -> dict[tuple[Metric, int], Any]:
    """Metrics of each field from the columns of `content_stats`, with bounds in binary form."""
    kinds = {key: av.plain_meaning(node) for key, node in nodes.items()}
    return metrics_of_members(
        {key[1]: column for key, column in columns.items() if key[0] == CONTENT_STATS_ROLE},
        {key[1]: kind for key, kind in kinds.items() if key[0] == CONTENT_STATS_ROLE},
    )


def metrics_of_members(
    members: Mapping[int, Any], kinds: Mapping[int, types.IcebergType | None]
) -> dict[tuple[Metric, int], Any]:
    """Metrics of each field from members of `content_stats` by their ids, whose types are `kinds`."""
    found: dict[tuple[Metric, int], Any] = {}
    for stats_id, column in members.items():
        place = stats_field_of(stats_id)
        if place is None:
            continue
        field_id, offset = place
        if offset in _METRIC_OFFSETS:
            found[_METRIC_OFFSETS[offset], field_id] = column.cast(pa.int64())
        elif offset in _BOUND_OFFSETS:
            kind = kinds.get(stats_id) or types.BinaryType()
            found[_BOUND_OFFSETS[offset], field_id] = encode_array(as_values(column, kind), kind)
        else:
            for bound, first in _GEO_OFFSETS.items():
                if offset == first:
                    axes = [members.get(stats_id + axis) for axis in range(4)]
                    found[_BOUND_OFFSETS[bound], field_id] = _encode_corners(axes)
    return found


def _encode_corners(axes: list[Any]) -> Any:
    """Corners as little-endian doubles: x:y, x:y:z, x:y:z:m, or x:y:NaN:m; null where x or y is."""
    count = len(axes[0])
    numbers = [pa.nulls(count, pa.float64()) if axis is None else axis for axis in axes]
    known = [number.is_valid().to_numpy(zero_copy_only=False) for number in numbers]
    values = np.column_stack([pc.fill_null(number, np.nan).to_numpy(zero_copy_only=False) for number in numbers])
    lengths = np.where(known[3], 4, np.where(known[2], 3, 2)) * (known[0] & known[1])
    kept = values.astype("<f8")[np.arange(4)[None, :] < lengths[:, None]]
    offsets = np.zeros(count + 1, np.int32)
    offsets[1:] = np.cumsum(lengths * 8)
    bitmap = pa.py_buffer(np.packbits(lengths > 0, bitorder="little"))
    return pa.Array.from_buffers(pa.binary(), count, [bitmap, pa.py_buffer(offsets), pa.py_buffer(kept)])


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
        kind, base = schema.fields_by_id[field_id].field_type, stats_base_id(field_id)
        if base < 0 or not isinstance(kind, types.PrimitiveType) or isinstance(kind, types.UnknownType):
            continue
        structs.append(types.NestedField(base, schema.names_by_id[field_id], types.StructType(*_members(base, kind))))
    return types.StructType(*structs)


def _members(base: int, kind: types.IcebergType) -> list[types.NestedField]:
    if isinstance(kind, types.GeometryType | types.GeographyType):
        bounds = [_corner(base, offset, name) for offset, name in ((_LOWER, "lower_bound"), (_UPPER, "upper_bound"))]
    else:
        # Bounds of `fixed` may be shorter than its values, which only binary can hold.
        stored = types.BinaryType() if isinstance(kind, types.FixedType) else kind
        bounds = [
            types.NestedField(base + _LOWER, "lower_bound", stored),
            types.NestedField(base + _UPPER, "upper_bound", stored),
        ]
    counts = [types.NestedField(base + _VALUES, "value_count", types.LongType())]
    counts.append(types.NestedField(base + _NULLS, "null_value_count", types.LongType()))
    if isinstance(kind, types.FloatType | types.DoubleType):
        counts.append(types.NestedField(base + _NANS, "nan_value_count", types.LongType()))
    return [*bounds, *counts]


def _corner(base: int, offset: int, name: str) -> types.NestedField:
    first = base + _GEO_OFFSETS[offset]
    axes = [types.NestedField(first + i, axis, types.DoubleType(), axis in "xy") for i, axis in enumerate(_AXES)]
    return types.NestedField(base + offset, name, types.StructType(*axes))


def stats_columns(metrics: MetricColumns, stats: types.StructType, schema: Schema) -> dict[int, Any]:
    """The columns of `content_stats`, by the ids of its members."""
    found: dict[int, Any] = {}
    for struct in stats.fields:
        place = stats_field_of(struct.field_id)
        assert place is not None
        field_id = place[0]
        kind = schema.fields_by_id[field_id].field_type
        base = struct.field_id
        for offset, metric in _METRIC_OFFSETS.items():
            found[base + offset] = metrics.column(metric, field_id)
        for offset, metric in _BOUND_OFFSETS.items():
            bounds = decode_bounds(metrics.column(metric, field_id), kind)
            if isinstance(kind, types.GeometryType | types.GeographyType):
                found[base + offset] = bounds.is_valid()
                for i, axis in enumerate(_AXES):
                    found[base + _GEO_OFFSETS[offset] + i] = pc.struct_field(bounds, axis)
            else:
                found[base + offset] = bounds
    return found
