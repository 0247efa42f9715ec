"""Typed statistics of v4 manifests: the `content_stats` struct, to and from metrics by field id (spec: Content Stats).

Stats of columns that the schema lacks are not written: so they go when a column was removed, and entries are written anew.
"""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.avro import Key, nodes as av, variant_parts
from icefloe.manifests.arrow_values import as_values, bound_values
from icefloe.manifests.entry_codec import CONTENT_STATS_ROLE, stats_base_id, stats_field_of
from icefloe.manifests.metrics import MetricColumns
from icefloe.manifests.values import Metric
from icefloe.schema import VARIANT_STORAGE, Schema, encode_array, reserved, types
from icefloe.variant import split_variant

Spread = dict[tuple[Metric, int], pa.Array]
"""A column for a metric of a field."""

_LOWER, _UPPER, _TIGHT, _VALUES, _NULLS, _NANS, _SIZES = 1, 2, 3, 4, 5, 6, 7
_METRIC_OFFSETS = {
    _TIGHT: Metric.TIGHT_BOUNDS,
    _VALUES: Metric.VALUE_COUNTS,
    _NULLS: Metric.NULL_VALUE_COUNTS,
    _NANS: Metric.NAN_VALUE_COUNTS,
    _SIZES: Metric.AVG_VALUE_SIZES,
}
_BOUND_OFFSETS = {_LOWER: Metric.LOWER_BOUNDS, _UPPER: Metric.UPPER_BOUNDS}
_GEO_OFFSETS = {_LOWER: 10, _UPPER: 14}
_MAX_INT = 2**31 - 1
_AXES = ("x", "y", "z", "m")
_LINEAGE = (reserved.LAST_UPDATED_SEQUENCE_NUMBER, reserved.ROW_ID)
_SIZED = (types.StringType, types.BinaryType, types.VariantType, types.GeometryType, types.GeographyType)
"""The types whose values have sizes of their own."""


def metrics_from_stats(columns: Mapping[Key, pa.Array], nodes: Mapping[Key, av.AvroNode]) -> Spread:
    """Metrics of each field from the columns of `content_stats`, with bounds in binary form."""
    return metrics_of_members(
        {key[1]: column for key, column in columns.items() if key[0] == CONTENT_STATS_ROLE},
        {key[1]: av.plain_meaning(node) for key, node in nodes.items() if key[0] == CONTENT_STATS_ROLE},
    )


def metrics_of_members(members: Mapping[int, pa.Array], stored_types: Mapping[int, types.IcebergType | None]) -> Spread:
    """Metrics of each field from members of `content_stats` by their ids, and the types that these are stored in."""
    metrics: Spread = {}
    for stats_id, column in _with_variants(members).items():
        member = stats_field_of(stats_id)
        if member is None:
            continue
        field_id, offset = member
        if offset in _METRIC_OFFSETS:
            metrics[_METRIC_OFFSETS[offset], field_id] = column.cast(pa.int64())
        elif offset in _BOUND_OFFSETS:
            field_type = stored_types.get(stats_id) or types.BinaryType()  # a variant, too
            metrics[_BOUND_OFFSETS[offset], field_id] = encode_array(as_values(column, field_type), field_type)
        else:
            for bound, first in _GEO_OFFSETS.items():
                if offset == first:
                    axes = [members.get(stats_id + axis) for axis in range(4)]
                    metrics[_BOUND_OFFSETS[bound], field_id] = _encode_corners(axes)
    return metrics


def _with_variants(members: Mapping[int, pa.Array]) -> dict[int, pa.Array]:
    """The members with the parts of variants put together, as the maps of older versions have them."""
    whole = {stats_id: column for stats_id, column in members.items() if stats_id >= 0}
    for part in (stats_id for stats_id in members if stats_id < 0):
        stats_id = (-1 - part) // 2
        metadata, value = variant_parts(stats_id)
        if part == metadata and value in members:
            parts = (members[metadata], members[value], pa.scalar(b"", pa.binary()))
            whole[stats_id] = pc.binary_join_element_wise(*parts)
    return whole


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


def content_stats_type(schema: Schema, metrics: MetricColumns) -> types.StructType:
    """The `content_stats` struct for these metrics: of columns of the schema and of lineage, those that may have some."""
    known: dict[int, set[Metric]] = {}
    for metric in Metric:
        for field_id in metrics.field_ids(metric):
            known.setdefault(field_id, set()).add(metric)
    inside = {
        child.field_id
        for field in schema.fields_by_id.values()
        if isinstance(field.field_type, types.ListType | types.MapType)
        for child in Schema(*field.field_type.fields).fields_by_id.values()
    }
    columns = stats_columns_of(schema)
    structs = []
    for field_id in sorted(known.keys() & columns.keys() - inside):
        name, field_type = columns[field_id]
        if (base := stats_base_id(field_id)) >= 0 and (members := _members(base, field_type, known[field_id])):
            structs.append(types.NestedField(base, name, types.StructType(*members)))
    return types.StructType(*structs)


def stats_columns_of(schema: Schema) -> dict[int, tuple[str, types.IcebergType]]:
    """The columns that may have stats, with their names and types: those of the table and of lineage."""
    own = {
        field_id: (schema.names_by_id[field_id], field.field_type) for field_id, field in schema.fields_by_id.items()
    }
    return own | {field.field_id: (field.name, field.field_type) for field in _LINEAGE}


def _members(base: int, field_type: types.IcebergType, known: set[Metric]) -> list[types.NestedField]:
    if isinstance(field_type, types.UnknownType) or not isinstance(field_type, types.PrimitiveType | types.VariantType):
        return []
    members = _bounds(base, field_type)
    if isinstance(field_type, types.VariantType) and not known & {Metric.LOWER_BOUNDS, Metric.UPPER_BOUNDS}:
        members = []
    is_geo = isinstance(field_type, types.GeometryType | types.GeographyType)
    is_exact = not is_geo and not isinstance(field_type, types.VariantType)
    if members and is_exact and Metric.TIGHT_BOUNDS in known:
        members.append(types.NestedField(base + _TIGHT, "tight_bounds", types.BooleanType()))
    members.append(types.NestedField(base + _VALUES, "value_count", types.LongType()))
    members.append(types.NestedField(base + _NULLS, "null_value_count", types.LongType()))
    if isinstance(field_type, types.FloatType | types.DoubleType):
        members.append(types.NestedField(base + _NANS, "nan_value_count", types.LongType()))
    if isinstance(field_type, _SIZED) and Metric.AVG_VALUE_SIZES in known:
        members.append(types.NestedField(base + _SIZES, "avg_value_size_in_bytes", types.IntegerType()))
    return members


def _bounds(base: int, field_type: types.IcebergType) -> list[types.NestedField]:
    if isinstance(field_type, types.GeometryType | types.GeographyType):
        return [_corner(base, offset, name) for offset, name in ((_LOWER, "lower_bound"), (_UPPER, "upper_bound"))]
    # Bounds of `fixed` may be shorter than its values, which only binary can hold.
    stored = types.BinaryType() if isinstance(field_type, types.FixedType) else field_type
    return [
        types.NestedField(base + _LOWER, "lower_bound", stored),
        types.NestedField(base + _UPPER, "upper_bound", stored),
    ]


def _corner(base: int, offset: int, name: str) -> types.NestedField:
    first = base + _GEO_OFFSETS[offset]
    axes = [types.NestedField(first + i, axis, types.DoubleType(), axis in "xy") for i, axis in enumerate(_AXES)]
    return types.NestedField(base + offset, name, types.StructType(*axes))


def stats_columns(metrics: MetricColumns, stats: types.StructType, schema: Schema) -> dict[int, pa.Array]:
    """The columns of `content_stats`, by the ids of its members; bounds are in the types that the columns have now."""
    columns: dict[int, pa.Array] = {}
    kinds = stats_columns_of(schema)
    for struct in stats.fields:
        member, base = stats_field_of(struct.field_id), struct.field_id
        assert member is not None
        assert isinstance(struct.field_type, types.StructType)
        field_id = member[0]
        offsets = {field.field_id - base: field.field_type for field in struct.field_type.fields}
        for offset, metric in _METRIC_OFFSETS.items():
            if offset in offsets:
                columns[base + offset] = _typed(metrics.column(metric, field_id), offsets[offset])
        for offset, metric in _BOUND_OFFSETS.items():
            if offset in offsets:
                encoded, kind = metrics.column(metric, field_id), kinds[field_id][1]
                if isinstance(kind, types.VariantType):
                    columns[base + offset] = _variants(encoded)
                else:
                    columns |= _bound_columns(_typed_bounds(encoded, kind), base, offset)
    return columns


def _typed(numbers: pa.Array, field_type: types.IcebergType) -> pa.Array:
    if isinstance(field_type, types.BooleanType):
        return pc.not_equal(numbers, 0)
    # A size beyond the type is none that anybody could use.
    is_int = isinstance(field_type, types.IntegerType)
    return pc.if_else(pc.less_equal(numbers, _MAX_INT), numbers, None).cast(pa.int32()) if is_int else numbers


def _typed_bounds(encoded: pa.Array, field_type: types.IcebergType) -> pa.Array:
    """Bounds as values; what is no value of the column's type is no bound."""
    values = bound_values(encoded, field_type)
    if values is not None:
        return values
    one_by_one = [bound_values(encoded.slice(index, 1), field_type) for index in range(len(encoded))]
    known = next((each.type for each in one_by_one if each is not None), None)
    if known is None:
        return bound_values(pa.nulls(len(encoded), pa.binary()), field_type)
    return pa.concat_arrays([pa.nulls(1, known) if each is None else each for each in one_by_one])


def _variants(encoded: pa.Array) -> pa.StructArray:
    """Bounds of variants in their two parts; what is none is no bound."""
    bounds = [None if data is None else split_variant(data) for data in encoded.to_pylist()]
    parts = [pa.array([b"" if bound is None else bound[part] for bound in bounds], pa.binary()) for part in (0, 1)]
    mask = pa.array([bound is None for bound in bounds], pa.bool_())
    return pa.StructArray.from_arrays(parts, fields=list(VARIANT_STORAGE), mask=mask)


def _bound_columns(bounds: pa.Array, base: int, offset: int) -> dict[int, pa.Array]:
    if not pa.types.is_struct(bounds.type):
        return {base + offset: bounds}
    corners = {base + _GEO_OFFSETS[offset] + i: pc.struct_field(bounds, axis) for i, axis in enumerate(_AXES)}
    return {base + offset: bounds.is_valid(), **corners}
