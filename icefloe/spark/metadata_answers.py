"""Aggregates of whole tables that metadata answers: how many rows, and the least and greatest values of columns.

An answer is exact or there is none. Rows are counted where every row of every planned file matches the filter, and deletes are
vectors, which say how many rows they delete. Values come from bounds, where no row is deleted: those of numbers and times are
values of the file, those of texts only where v4 says so; NaN is in no bounds, and a bound of zero may be either zero.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.expressions import Expression, conjunction
from icefloe.manifests import ManifestColumns, Metric
from icefloe.planning import ScanBatch, TableScan, parsed_filter
from icefloe.schema import NestedField, Value, types

_OF_FLOATS = (types.FloatType, types.DoubleType)
_OF_TEXTS = (types.StringType,)
_OF_NUMBERS = (
    types.BooleanType,
    types.IntegerType,
    types.LongType,
    types.DateType,
    types.TimestampType,
    types.TimestamptzType,
    types.DecimalType,
)


@dataclass(frozen=True, slots=True)
class Aggregate:
    """`count`, `min` or `max` of a column, or `count` of rows."""

    name: str
    field: NestedField | None

    @classmethod
    def parse(cls, text: str, columns: Mapping[str, NestedField]) -> "Aggregate | None":
        """An aggregate as Java writes it; None if it is of no column of files."""
        name, colon, column = text.partition(":")
        if not colon:
            return cls(name, None)
        return cls(name, columns[column]) if column in columns else None


def answers(scan: TableScan, where: Expression, asked: Sequence[Aggregate]) -> list[Value | None] | None:
    """The aggregates of the rows of a scan that match a filter; None if metadata does not tell them all."""
    if scan.planner is not None or any(not _is_answerable(scan, aggregate) for aggregate in asked):
        return None
    fields = {aggregate.field.field_id for aggregate in asked if aggregate.field is not None}
    narrowed = replace(scan, row_filter=conjunction(parsed_filter(scan.row_filter), where), limit=None)
    totals = [_Total(aggregate) for aggregate in asked]
    plan = narrowed.plan(tuple(sorted(fields)))
    if plan is None:
        return [total.value for total in totals]
    with plan:
        for batch in plan:
            deleted = _deleted_rows(batch)
            if batch.without_residual < len(batch) or deleted is None:
                return None
            if any(not total.add(batch.files, deleted) for total in totals):
                return None
    return [total.value for total in totals]


def as_text(value: Value | None) -> str:
    """A value as Java reads it: nothing for null, else a sign of a value and its digits."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return f"={str(value).lower()}"
    return f"={value:f}" if isinstance(value, Decimal) else f"={value!r}" if isinstance(value, float) else f"={value}"


def _is_answerable(scan: TableScan, aggregate: Aggregate) -> bool:
    field = aggregate.field
    if field is None:
        return aggregate.name == "count"
    if scan.schema.fields_by_id.get(field.field_id) is None or field.field_id in scan.schema.parents:
        return False
    if aggregate.name != "count" and not isinstance(field.field_type, (*_OF_NUMBERS, *_OF_FLOATS, *_OF_TEXTS)):
        return False
    written = (schema.fields_by_id.get(field.field_id) for schema in scan.metadata.schemas)
    # Wider numbers have the same values; a date as a timestamp, or what took the place of a column, has not.
    return isinstance(field.field_type, types.PrimitiveType) and all(
        before is None or is_alike(before.field_type, field.field_type) for before in written
    )


def is_alike(before: types.IcebergType, now: types.IcebergType) -> bool:
    """Whether values of a column's type before are the same values of its type now."""
    match before, now:
        case types.IntegerType(), types.LongType():
            return True
        case types.FloatType(), types.DoubleType():
            return True
        case types.DecimalType(), types.DecimalType():
            return before.scale == now.scale
        case _:
            return before == now


def _deleted_rows(batch: ScanBatch) -> int | None:
    """How many rows of the files are deleted; None if only the deletes themselves tell."""
    if batch.deletes is None:
        return 0
    of_vectors = batch.rows_of_vectors
    if of_vectors is not None:
        return int(np.maximum(of_vectors, 0).sum())
    return None if any(batch.deletes) else 0


class _Total:
    """An aggregate of the files so far."""

    def __init__(self, aggregate: Aggregate) -> None:
        self._name = aggregate.name
        self._field = aggregate.field
        self.value: Any = 0 if aggregate.name == "count" else None

    def add(self, files: ManifestColumns, deleted: int) -> bool:
        """Add files with so many deleted rows; whether that could be done exactly."""
        if self._field is None:
            self.value += (pc.sum(files.record_counts).as_py() or 0) - deleted
            return True
        if deleted:
            return False
        filled = self._filled(files)
        if filled is None:
            return False
        if self._name == "count":
            self.value += pc.sum(filled).as_py() or 0
            return True
        return self._add_bounds(files, self._field, pc.greater(filled, 0))

    def _filled(self, files: ManifestColumns) -> pa.Array | None:
        """How many values each file has that are not null; None if not known of all."""
        assert self._field is not None
        field_id = self._field.field_id
        values, nulls = files.value_counts(field_id), files.null_counts(field_id)
        if values.null_count or nulls.null_count or not values.equals(files.record_counts.cast(values.type)):
            return None
        return pc.subtract(values, nulls)

    def _add_bounds(self, files: ManifestColumns, field: NestedField, has_values: pa.Array) -> bool:
        files = files.filter(has_values)
        if not len(files):
            return True
        is_least = self._name == "min"
        bounds = (files.lower_bounds if is_least else files.upper_bounds)(field.field_id, field.field_type)
        if bounds is None or bounds.null_count or not self._are_values(files, field, bounds):
            return False
        bound = (pc.min if is_least else pc.max)(bounds)
        if isinstance(field.field_type, types.DateType | types.TimestampType | types.TimestamptzType):
            bound = bound.cast(pa.int32() if isinstance(field.field_type, types.DateType) else pa.int64())
        value = bound.as_py()
        if self.value is None or (value < self.value if is_least else value > self.value):
            self.value = value
        return True

    def _are_values(self, files: ManifestColumns, field: NestedField, bounds: pa.Array) -> bool:
        """Whether bounds are sure to be values of the files, in Spark's order."""
        tight = files.metrics.column(Metric.TIGHT_BOUNDS, field.field_id)
        if pc.any(pc.equal(tight, 0)).as_py():
            return False
        if isinstance(field.field_type, _OF_TEXTS):
            return bool(tight.null_count == 0)
        if isinstance(field.field_type, _OF_FLOATS):
            nan = files.nan_counts(field.field_id)
            if nan.null_count or pc.any(pc.not_equal(nan, 0)).as_py():
                return False
            return not pc.any(pc.or_(pc.equal(bounds, 0.0), pc.is_nan(bounds))).as_py()
        return True
