"""Metrics of all files of a manifest: as maps by field id, as one column for each field, or both, asked in one way."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.manifests.values import Metric

Key = TypeVar("Key")

MAP_OF_LONGS = pa.map_(pa.int32(), pa.int64())
MAP_OF_BYTES = pa.map_(pa.int32(), pa.binary())


def take_columns(columns: Mapping[Key, pa.Array], rows: pa.Array) -> dict[Key, pa.Array]:
    """The values at these rows of several columns of one length, in one call: each has its price."""
    if not columns:
        return {}
    batch = pa.RecordBatch.from_arrays(list(columns.values()), [""] * len(columns))
    return dict(zip(columns, batch.take(rows).columns, strict=True))


def joined_columns(
    parts: Sequence[tuple[Mapping[Key, pa.Array], int]], type_of: Callable[[Key], pa.DataType]
) -> dict[Key, pa.Array]:
    """Columns of several tables of so many rows, one table after the other; null where a table lacks one."""
    keys = dict.fromkeys(key for columns, _ in parts for key in columns)
    return {
        key: pa.concat_arrays(
            [columns[key] if key in columns else pa.nulls(rows, type_of(key)) for columns, rows in parts]
        )
        for key in keys
    }


def map_type(metric: Metric) -> pa.MapType:
    """The Arrow type of a metric's map."""
    return MAP_OF_BYTES if metric.is_bound else MAP_OF_LONGS


def value_type(metric: Metric) -> pa.DataType:
    """The Arrow type of a metric's values."""
    return pa.binary() if metric.is_bound else pa.int64()


@dataclass(frozen=True, slots=True, eq=False)
class MetricColumns:
    """`maps` holds a map column for a metric, `spread` a column for a metric of one field; bounds are in binary form."""

    length: int
    maps: Mapping[Metric, pa.MapArray] = field(default_factory=dict)
    spread: Mapping[tuple[Metric, int], pa.Array] = field(default_factory=dict)

    def column(self, metric: Metric, field_id: int) -> pa.Array:
        """The metric of one field for each file; null where it is not known."""
        column = self.spread.get((metric, field_id))
        if metric in self.maps:
            mapped = _from_map(self.maps[metric], field_id)
            column = mapped if column is None else pc.coalesce(column, mapped)
        return pa.nulls(self.length, value_type(metric)) if column is None else column

    def field_ids(self, metric: Metric) -> set[int]:
        """The fields for which some file has the metric."""
        ids = {field_id for own, field_id in self.spread if own is metric}
        if metric in self.maps:
            ids.update(pc.unique(self.maps[metric].keys).to_pylist())
        return ids

    def as_map(self, metric: Metric) -> pa.MapArray:
        """The metric of all known fields as one map column."""
        if not any(own is metric for own, _ in self.spread):
            return self.maps.get(metric, pa.nulls(self.length, map_type(metric)))
        ids = sorted(self.field_ids(metric))
        return _to_map(metric, {field_id: self.column(metric, field_id) for field_id in ids}, self.length)

    def take(self, indices: pa.Array) -> "MetricColumns":
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


def joined_metrics(parts: Sequence[MetricColumns]) -> MetricColumns:
    """The metrics of all files of several manifests, one manifest after the other."""
    return MetricColumns(
        sum(part.length for part in parts),
        joined_columns([(part.maps, part.length) for part in parts], map_type),
        joined_columns([(part.spread, part.length) for part in parts], lambda key: value_type(key[0])),
    )


def list_offsets(column: pa.ListArray | pa.MapArray) -> npt.NDArray[np.int32]:
    """Where the items of each list or map start, as numbers into its children."""
    return np.frombuffer(column.buffers()[1], np.int32, len(column) + 1, column.offset * 4)


def _from_map(column: pa.MapArray, field_id: int) -> pa.Array:
    if not len(column):
        return pa.nulls(0, column.type.item_type)
    offsets = list_offsets(column)
    keys = column.keys.to_numpy(zero_copy_only=False)
    matches = np.flatnonzero(keys == field_id)
    matches = matches[(matches >= offsets[0]) & (matches < offsets[-1])]
    indices = np.zeros(len(column), np.int64)
    is_known = np.zeros(len(column), bool)
    rows = np.searchsorted(offsets, matches, side="right") - 1
    indices[rows] = matches
    is_known[rows] = True
    if column.null_count:
        is_known &= column.is_valid().to_numpy(zero_copy_only=False)
    return column.items.take(pa.array(indices, mask=~is_known))


def _to_map(metric: Metric, columns: Mapping[int, pa.Array], length: int) -> pa.MapArray:
    """A map for each row from the known values of columns, in the order of the columns."""
    is_known = np.column_stack([column.is_valid().to_numpy(zero_copy_only=False) for column in columns.values()])
    offsets = np.zeros(length + 1, np.int32)
    offsets[1:] = np.cumsum(is_known.sum(axis=1))
    keys = np.broadcast_to(np.array(list(columns), np.int32), is_known.shape)[is_known]
    # Values of all columns, one column after the other, taken row by row.
    values = pa.concat_arrays([column.cast(value_type(metric)) for column in columns.values()])
    indices = np.arange(length)[:, None] + np.arange(len(columns))[None, :] * length
    items = values.take(pa.array(indices[is_known]))
    return pa.MapArray.from_arrays(pa.array(offsets), pa.array(keys), items)
