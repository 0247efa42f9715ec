"""The metrics of each column as values of its type: the `readable_metrics` column of the metadata tables."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.errors import InvalidValueError
from icefloe.manifests import Metric, MetricColumns
from icefloe.schema import Schema, decode_array, decode_bounds, types

READABLE_METRICS = "readable_metrics"

METRIC_NAMES = {
    "column_size": Metric.COLUMN_SIZES,
    "value_count": Metric.VALUE_COUNTS,
    "null_value_count": Metric.NULL_VALUE_COUNTS,
    "nan_value_count": Metric.NAN_VALUE_COUNTS,
    "lower_bound": Metric.LOWER_BOUNDS,
    "upper_bound": Metric.UPPER_BOUNDS,
}
"""What is said of each column, in order."""

_POINT, _Z, _M = 1, 1000, 2000
"""Numbers of WKB types: a point, and what a third or fourth coordinate adds."""


def readable_metrics_field(schema: Schema, next_id: Callable[[], int]) -> types.NestedField:
    """The column: a struct with a struct of metrics for each primitive column, by full name, sorted by it."""
    columns = []
    for name, field in sorted(_measured(schema)):
        members = []
        own_id = next_id()
        for metric_name, metric in METRIC_NAMES.items():
            kind = field.field_type if metric.is_bound else types.LongType()
            members.append(types.NestedField(next_id(), metric_name, kind))
        columns.append(types.NestedField(own_id, name, types.StructType(*members)))
    return types.NestedField(next_id(), READABLE_METRICS, types.StructType(*columns))


def _measured(schema: Schema) -> Iterator[tuple[str, types.NestedField]]:
    for field_id, name in schema.names_by_id.items():
        field = schema.fields_by_id[field_id]
        if isinstance(field.field_type, types.PrimitiveType):
            yield name, field


def metrics_needed(kind: types.StructType, schema: Schema) -> tuple[frozenset[Metric], frozenset[int]]:
    """Which metrics of which columns a selection from `readable_metrics` needs."""
    ids = {schema.ids_by_name[column.name] for column in kind.fields}
    names = {member.name for column in kind.fields for member in _members(column)}
    return frozenset(METRIC_NAMES[name] for name in names), frozenset(ids)


def _members(column: types.NestedField) -> tuple[types.NestedField, ...]:
    assert isinstance(column.field_type, types.StructType)
    return column.field_type.fields


def readable_metrics(metrics: MetricColumns, kind: types.StructType, target: Any, schema: Schema) -> Any:
    """The column for all files at once; `kind` may be a part of its type, `target` is that in Arrow."""
    if not kind.fields:
        return pa.array([{}] * metrics.length, pa.struct([]))
    spread: dict[Metric, dict[int, Any]] = {}
    structs = []
    for column, place in zip(kind.fields, target, strict=True):
        field = schema.fields_by_id[schema.ids_by_name[column.name]]
        arrays = []
        for member, inner in zip(_members(column), place.type, strict=True):
            metric = METRIC_NAMES[member.name]
            if metric not in spread:
                spread[metric] = _spread(metrics, metric)
            found = spread[metric].get(field.field_id)
            if found is None or isinstance(member.field_type, types.UnknownType):
                arrays.append(pa.nulls(metrics.length, inner.type))
            else:
                arrays.append(bound_column(found, field.field_type, inner.type) if metric.is_bound else found)
        structs.append(pa.StructArray.from_arrays(arrays, fields=list(place.type)))
    return pa.StructArray.from_arrays(structs, fields=list(target))


def bound_column(values: Any, kind: types.IcebergType, target: Any) -> Any:
    """Bounds in binary form as values of the type, in its Arrow form `target`; null where they are no such values.

    Corners of geometries are points in WKB. Bounds of `fixed` that were cut are filled up with zeros: that is a lower
    bound still, and an upper one too, as cutting made that larger.
    """
    try:
        return _decoded(values, kind, target)
    except InvalidValueError:
        return pa.concat_arrays([_decoded_one(values.slice(place, 1), kind, target) for place in range(len(values))])


def _decoded(values: Any, kind: types.IcebergType, target: Any) -> Any:
    match kind:
        case types.GeometryType() | types.GeographyType():
            return _points(values)
        case types.FixedType():
            return _filled_up(values, kind.length).cast(target)
        case _:
            found = decode_array(values, kind)
    if isinstance(target, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(target, found.cast(target.storage_type))
    return found if found.type == target else found.cast(target)


def _decoded_one(value: Any, kind: types.IcebergType, target: Any) -> Any:
    try:
        return _decoded(value, kind, target)
    except InvalidValueError:
        return pa.nulls(1, target)


def _filled_up(values: Any, length: int) -> Any:
    longer = pc.binary_join_element_wise(values, bytes(length), b"")
    return pc.binary_slice(longer, 0, length)


def _points(values: Any) -> Any:
    corners = decode_bounds(values, types.GeometryType())
    has_z, has_m = (pc.is_valid(pc.struct_field(corners, axis)) for axis in ("z", "m"))
    header = pc.if_else(has_m, _wkb_header(_POINT + _M), _wkb_header(_POINT))
    header = pc.if_else(has_z, pc.if_else(has_m, _wkb_header(_POINT + _Z + _M), _wkb_header(_POINT + _Z)), header)
    x_and_y, z, m = (pc.binary_slice(values, *place) for place in ((0, 16), (16, 24), (24, 32)))
    nothing = pa.scalar(b"", pa.binary())
    return pc.binary_join_element_wise(
        header, x_and_y, pc.if_else(has_z, z, nothing), pc.if_else(has_m, m, nothing), b""
    )


def _wkb_header(number: int) -> Any:
    return pa.scalar(b"\x01" + number.to_bytes(4, "little"), pa.binary())


def _spread(metrics: MetricColumns, metric: Metric) -> dict[int, Any]:
    """A column for each field that some file has the metric of."""
    found = {field_id: column for (kind, field_id), column in metrics.spread.items() if kind is metric}
    if metric in metrics.maps:
        for field_id, column in _columns_of_map(metrics.maps[metric]):
            found[field_id] = pc.coalesce(found[field_id], column) if field_id in found else column
    return found


def _columns_of_map(maps: Any) -> Iterator[tuple[int, Any]]:
    """The values of each key, one for each map; all keys are looked at once, however many there are."""
    if not len(maps):
        return
    offsets = np.frombuffer(maps.buffers()[1], np.int32, len(maps) + 1, maps.offset * 4)
    first, last = int(offsets[0]), int(offsets[-1])
    keys = maps.keys.slice(first, last - first).to_numpy(zero_copy_only=False)
    items = maps.items.slice(first, last - first)
    lengths = np.diff(offsets)
    if (shared := _shared_keys(keys, lengths)) is not None and not maps.null_count:
        for place, field_id in enumerate(shared):
            yield field_id, _every(items, place, len(shared))
        return
    rows = np.repeat(np.arange(len(maps)), lengths)
    missing = maps.is_null().to_numpy(zero_copy_only=False)
    order = np.argsort(keys, kind="stable")
    bounds = np.flatnonzero(np.diff(keys[order])) + 1
    for part in np.split(order, bounds) if len(order) else ():
        places = np.full(len(maps), -1, np.int64)
        places[rows[part]] = part
        yield int(keys[part[0]]), items.take(pa.array(places, mask=(places < 0) | missing))


def _every(items: Any, first: int, step: int) -> Any:
    if pa.types.is_integer(items.type) and not items.null_count:
        return pa.array(np.ascontiguousarray(items.to_numpy()[first::step]))
    return items.take(pa.array(np.arange(first, len(items), step)))


def _shared_keys(keys: Any, lengths: Any) -> list[int] | None:
    """The keys of every map, if all have the same ones in the same order, as files of one manifest mostly do."""
    width = int(lengths[0])
    if not width or not bool((lengths == width).all()):
        return None
    table = keys.reshape(-1, width)
    found: list[int] = table[0].tolist()
    return found if len(set(found)) == width and bool((table == table[0]).all()) else None
