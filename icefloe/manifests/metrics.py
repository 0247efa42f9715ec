"""Metrics of all files of a manifest: as maps by field id, as one column for each field, or both, asked in one way."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.manifests.values import Metric

Key = TypeVar("Key")

MAP_OF_LONGS = pa.map_(pa.int32(), pa.int64())
MAP_OF_BYTES = pa.map_(pa.int32(), pa.binary())


def take_columns(columns: Mapping[Key, Any], places: Any) -> dict[Key, Any]:
    """The values at these places of several columns of one length, in one call: each has its price."""
    if not columns:
        return {}
    batch = pa.RecordBatch.from_arrays(list(columns.values()), [""] * len(columns))
    return dict(zip(columns, batch.take(places).columns, strict=True))


def map_type(metric: Metric) -> Any:
    """The Arrow type of a metric's map."""
    return MAP_OF_BYTES if metric.is_bound else MAP_OF_LONGS


def value_type(metric: Metric) -> Any:
    """The Arrow type of a metric's values."""
    return pa.binary() if metric.is_bound else pa.int64()


@dataclass(frozen=True, slots=True, eq=False)
class MetricColumns:
    """`maps` holds a map column for a metric, `spread` a column for a metric of one field; bounds are in binary form."""

    length: int
    maps: Mapping[Metric, Any] = field(default_factory=dict)
    spread: Mapping[tuple[Metric, int], Any] = field(default_factory=dict)

    def column(self, metric: Metric, field_id: int) -> Any:
        """The metric of one field for each file; null where it is not known."""
        found = self.spread.get((metric, field_id))
        if metric in self.maps:
            mapped = _from_map(self.maps[metric], field_id)
            found = mapped if found is None else pc.coalesce(found, mapped)
        return pa.nulls(self.length, value_type(metric)) if found is None else found

    def field_ids(self, metric: Metric) -> set[int]:
        """The fields for which some file has the metric."""
        found = {field_id for kind, field_id in self.spread if kind is metric}
        if metric in self.maps:
            found.update(pc.unique(self.maps[metric].keys).to_pylist())
        return found

    def as_map(self, metric: Metric) -> Any:
        """The metric of all known fields as one map column."""
        ids = sorted(field_id for kind, field_id in self.spread if kind is metric)
        if not ids:
            return self.maps.get(metric, pa.nulls(self.length, map_type(metric)))
        if metric in self.maps:
            ids = sorted({*ids, *self.field_ids(metric)})
        return _to_map(metric, {field_id: self.column(metric, field_id) for field_id in ids}, self.length)

    def take(self, indices: Any) -> "MetricColumns":
        """The metrics of some files, by position."""
        return MetricColumns(len(indices), take_columns(self.maps, indices), take_columns(self.spread, indices))

    def slice(self, start: int, length: int) -> "MetricColumns":
        """The metrics of a run of files."""
        return MetricColumns(
            length,
            {metric: column.slice(start, length) for metric, column in self.maps.items()},
            {key: column.slice(start, length) for key, column in self.spread.items()},
        )

    @property
    def nbytes(self) -> int:
        """How much memory the columns take."""
        return sum(column.nbytes for column in (*self.maps.values(), *self.spread.values()))


def _offsets(column: Any) -> Any:
    """Where the items of each list or map start, as numbers into its children."""
    return np.frombuffer(column.buffers()[1], np.int32, len(column) + 1, column.offset * 4)


def _from_map(column: Any, field_id: int) -> Any:
    if not len(column):
        return pa.nulls(0, column.type.item_type)
    offsets = _offsets(column)
    keys = column.keys.to_numpy(zero_copy_only=False)
    found = np.flatnonzero(keys == field_id)
    found = found[(found >= offsets[0]) & (found < offsets[-1])]
    places = np.zeros(len(column), np.int64)
    is_known = np.zeros(len(column), bool)
    rows = np.searchsorted(offsets, found, side="right") - 1
    places[rows] = found
    is_known[rows] = True
    if column.null_count:
        is_known &= column.is_valid().to_numpy(zero_copy_only=False)
    return column.items.take(pa.array(places, mask=~is_known))


def _to_map(metric: Metric, columns: Mapping[int, Any], length: int) -> Any:
    """A map for each row from the known values of columns, in the order of the columns."""
    is_known = np.column_stack([column.is_valid().to_numpy(zero_copy_only=False) for column in columns.values()])
    offsets = np.zeros(length + 1, np.int32)
    offsets[1:] = np.cumsum(is_known.sum(axis=1))
    keys = np.broadcast_to(np.array(list(columns), np.int32), is_known.shape)[is_known]
    # Values of all columns, one column after the other, taken row by row.
    values = pa.concat_arrays([column.cast(value_type(metric)) for column in columns.values()])
    places = np.arange(length)[:, None] + np.arange(len(columns))[None, :] * length
    items = values.take(pa.array(places[is_known]))
    return pa.MapArray.from_arrays(pa.array(offsets), pa.array(keys), items)
