"""Which row groups of a Parquet file may hold rows that match a predicate, by their statistics in the footer."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from icefloe.expressions import Expression, bound_references, might_match
from icefloe.formats.metrics import FULL, Metrics
from icefloe.formats.parquet.metrics import row_group_metrics
from icefloe.schema import IcebergType, Schema, decode_bounds


def row_group_filter(predicate: Expression, schema: Schema) -> Callable[[Any, Schema], Any]:
    """A filter for `ParquetFileReader.batches` from a predicate that is bound to the table's schema."""
    modes = {column.field_id: FULL for column in bound_references(predicate)}

    def choose(footer: Any, file_schema: Schema) -> Any:
        groups = row_group_metrics(footer, schema, modes, file_schema)
        return might_match(predicate, MetricsColumns(groups))

    return choose


class MetricsColumns:
    """The metrics of several files or row groups as the columns that the statistics kernels ask for."""

    def __init__(self, metrics: Sequence[Metrics]) -> None:
        self._metrics = metrics

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self._metrics)

    @property
    def record_counts(self) -> Any:
        """Rows of each."""
        return pa.array([each.record_count for each in self._metrics], pa.int64())

    def value_counts(self, field_id: int) -> Any:
        """Values of the column in each."""
        return self._counts(lambda each: each.value_counts, field_id)

    def null_counts(self, field_id: int) -> Any:
        """Nulls of the column in each."""
        return self._counts(lambda each: each.null_value_counts, field_id)

    def nan_counts(self, field_id: int) -> Any:
        """NaNs of the column in each."""
        return self._counts(lambda each: each.nan_value_counts, field_id)

    def lower_bounds(self, field_id: int, kind: IcebergType) -> Any:
        """The lower bound of the column in each."""
        return decode_bounds(pa.array([each.lower_bounds.get(field_id) for each in self._metrics], pa.binary()), kind)

    def upper_bounds(self, field_id: int, kind: IcebergType) -> Any:
        """The upper bound of the column in each."""
        return decode_bounds(pa.array([each.upper_bounds.get(field_id) for each in self._metrics], pa.binary()), kind)

    def _counts(self, of: Callable[[Metrics], Mapping[int, int]], field_id: int) -> Any:
        return pa.array([of(each).get(field_id) for each in self._metrics], pa.int64())
