"""The metrics of each column as values of its type: the `readable_metrics` column of the metadata tables."""

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe import errors, manifests as mf
from icefloe.schema import Schema, decode_array, decode_bounds, types

READABLE_METRICS = "readable_metrics"

METRIC_NAMES = {
    "column_size": mf.Metric.COLUMN_SIZES,
    "value_count": mf.Metric.VALUE_COUNTS,
    "null_value_count": mf.Metric.NULL_VALUE_COUNTS,
    "nan_value_count": mf.Metric.NAN_VALUE_COUNTS,
    "lower_bound": mf.Metric.LOWER_BOUNDS,
    "upper_bound": mf.Metric.UPPER_BOUNDS,
}
"""What is said of each column, in order."""

_POINT, _Z, _M = 1, 1000, 2000
"""Numbers of WKB types: a point, and what a third or fourth coordinate adds."""


def readable_metrics_field(schema: Schema, next_id: Callable[[], int]) -> types.NestedField:
    """The column: a struct with a struct of metrics for each primitive column, by full name, sorted by it."""
    columns = []
    measured = ((name, schema.fields_by_id[field_id]) for field_id, name in schema.names_by_id.items())
    for name, field in sorted(pair for pair in measured if isinstance(pair[1].field_type, types.PrimitiveType)):
        own_id = next_id()
        members = [
            types.NestedField(next_id(), metric_name, field.field_type if metric.is_bound else types.LongType())
            for metric_name, metric in METRIC_NAMES.items()
        ]
        columns.append(types.NestedField(own_id, name, types.StructType(*members)))
    return types.NestedField(next_id(), READABLE_METRICS, types.StructType(*columns))


def metrics_needed(struct: types.StructType, schema: Schema) -> tuple[frozenset[mf.Metric], frozenset[int]]:
    """Which metrics of which columns a selection from `readable_metrics` needs."""
    ids = {schema.ids_by_name[column.name] for column in struct.fields}
    names = {member.name for column in struct.fields for member in _members(column)}
    return frozenset(METRIC_NAMES[name] for name in names), frozenset(ids)


def _members(column: types.NestedField) -> tuple[types.NestedField, ...]:
    assert isinstance(column.field_type, types.StructType)
    return column.field_type.fields


def readable_metrics(
    metrics: mf.MetricColumns, struct: types.StructType, target: pa.StructType, schema: Schema
) -> pa.StructArray:
    """The column for all files at once; `struct` may be a part of its type, `target` is that in Arrow."""
    if not struct.fields:
        return pa.array([{}] * metrics.length, pa.struct([]))
    spread: dict[mf.Metric, dict[int, pa.Array]] = {}
    structs = []
    for column, arrow_field in zip(struct.fields, target, strict=True):
        field = schema.fields_by_id[schema.ids_by_name[column.name]]
        arrays = []
        for member, inner in zip(_members(column), arrow_field.type, strict=True):
            metric = METRIC_NAMES[member.name]
            if metric not in spread:
                spread[metric] = _spread(metrics, metric)
            values = spread[metric].get(field.field_id)
            if values is None or isinstance(member.field_type, types.UnknownType):
                arrays.append(pa.nulls(metrics.length, inner.type))
            else:
                arrays.append(bound_column(values, field.field_type, inner.type) if metric.is_bound else values)
        structs.append(pa.StructArray.from_arrays(arrays, fields=list(arrow_field.type)))
    return pa.StructArray.from_arrays(structs, fields=list(target))


def bound_column(values: pa.Array, field_type: types.IcebergType, target: pa.DataType) -> pa.Array:
    """Bounds in binary form as values of the type, in its Arrow form `target`; null where they are no such values.

    Corners of geometries are points in WKB. Bounds of `fixed` that were cut are filled up with zeros: that is a lower
    bound still, and an upper one too, as cutting made that larger.
    """
    try:
        return _decoded(values, field_type, target)
    except errors.InvalidValueError:
        if len(values) == 1:
            return pa.nulls(1, target)
        return pa.concat_arrays([bound_column(values.slice(row, 1), field_type, target) for row in range(len(values))])


def _decoded(values: pa.Array, field_type: types.IcebergType, target: pa.DataType) -> pa.Array:
    match field_type:
        case types.GeometryType() | types.GeographyType():
            return _points(values)
        case types.FixedType(length):
            longer = pc.binary_join_element_wise(values, bytes(length), b"")
            return pc.binary_slice(longer, 0, length).cast(target)
    decoded = decode_array(values, field_type)
    if isinstance(target, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(target, decoded.cast(target.storage_type))
    return decoded if decoded.type == target else decoded.cast(target)


def _points(values: pa.Array) -> pa.Array:
    corners = decode_bounds(values, types.GeometryType())
    has_z, has_m = (pc.is_valid(pc.struct_field(corners, axis)) for axis in ("z", "m"))
    header = pc.if_else(has_m, _wkb_header(_POINT + _M), _wkb_header(_POINT))
    header = pc.if_else(has_z, pc.if_else(has_m, _wkb_header(_POINT + _Z + _M), _wkb_header(_POINT + _Z)), header)
    x_and_y, z, m = (pc.binary_slice(values, *ends) for ends in ((0, 16), (16, 24), (24, 32)))
    nothing = pa.scalar(b"", pa.binary())
    points = pc.binary_join_element_wise(
        header, x_and_y, pc.if_else(has_z, z, nothing), pc.if_else(has_m, m, nothing), b""
    )
    return pc.if_else(pc.is_valid(corners), points, None)


def _wkb_header(number: int) -> pa.Scalar:
    return pa.scalar(b"\x01" + number.to_bytes(4, "little"), pa.binary())


def _spread(metrics: mf.MetricColumns, metric: mf.Metric) -> dict[int, pa.Array]:
    """A column for each field that some file has the metric of."""
    columns = {field_id: column for (own, field_id), column in metrics.spread.items() if own is metric}
    if metric in metrics.maps:
        for field_id, column in _columns_of_map(metrics.maps[metric]):
            columns[field_id] = pc.coalesce(columns[field_id], column) if field_id in columns else column
    return columns


def _columns_of_map(maps: pa.MapArray) -> Iterator[tuple[int, pa.Array]]:
    """The values of each key, one for each map; all keys are looked at once, however many there are."""
    if not len(maps):
        return
    offsets = mf.list_offsets(maps)
    first, last = int(offsets[0]), int(offsets[-1])
    keys = maps.keys.slice(first, last - first).to_numpy(zero_copy_only=False)
    items = maps.items.slice(first, last - first)
    lengths = np.diff(offsets)
    if (shared := _shared_keys(keys, lengths)) is not None and not maps.null_count:
        for index, field_id in enumerate(shared):
            yield field_id, _every(items, index, len(shared))
        return
    rows = np.repeat(np.arange(len(maps)), lengths)
    missing = maps.is_null().to_numpy(zero_copy_only=False)
    order = np.argsort(keys, kind="stable")
    bounds = np.flatnonzero(np.diff(keys[order])) + 1
    for part in np.split(order, bounds) if len(order) else ():
        indices = np.full(len(maps), -1, np.int64)
        indices[rows[part]] = part
        yield int(keys[part[0]]), items.take(pa.array(indices, mask=(indices < 0) | missing))


def _every(items: pa.Array, first: int, step: int) -> pa.Array:
    if pa.types.is_integer(items.type) and not items.null_count:
        return pa.array(np.ascontiguousarray(items.to_numpy()[first::step]))
    return items.take(pa.array(np.arange(first, len(items), step)))


def _shared_keys(keys: npt.NDArray[np.int32], lengths: npt.NDArray[np.int32]) -> list[int] | None:
    """The keys of every map, if all have the same ones in the same order, as files of one manifest mostly do."""
    width = int(lengths[0])
    if not width or not bool((lengths == width).all()):
        return None
    table = keys.reshape(-1, width)
    first: list[int] = table[0].tolist()
    return first if len(set(first)) == width and bool((table == table[0]).all()) else None
