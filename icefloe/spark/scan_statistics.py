"""What Spark's cost-based optimizer learns of the files that are left of a scan: rows, nulls, bounds and distinct values.

Spark takes a number without bounds for a column of nulls where it knows its distinct values, so such a column is left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field as attribute, replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.expressions import Expression, conjunction
from icefloe.manifests import ManifestColumns
from icefloe.partitioning.transforms import VoidTransform
from icefloe.planning import TableScan, parsed_filter
from icefloe.schema import NestedField, types

_WITH_BOUNDS = (
    types.IntegerType,
    types.LongType,
    types.FloatType,
    types.DoubleType,
    types.DecimalType,
    types.DateType,
    types.TimestamptzType,
)
_COUNTED = (types.IntegerType, types.LongType, types.DateType, types.TimestampType, types.TimestamptzType)
_MOST_OF_ALL = 0.9
"""The part of all values that files may have between their bounds, in the middle, if a few values are to leave out some of them."""
_FEW_FILES = 4
_FEW_BYTES = 256 << 20
"""Fewer files of less than this are read at once: to wait for keys, and to ask for the files of them, mostly takes longer."""
_WITHOUT_BOUNDS = (types.StringType, types.BinaryType)
"""Spark asks for no bounds of these."""


@dataclass
class ColumnStatistics:
    """A column of the files so far; None is not known."""

    nulls: int | None = 0
    least: Any = None
    greatest: Any = None
    is_bounded: bool = True

    def add(self, files: ManifestColumns, field: NestedField) -> None:
        """Add files."""
        values, nulls = files.value_counts(field.field_id), files.null_counts(field.field_id)
        if field.required:
            nulls = pa.array([0] * len(files), pa.int64())
        elif nulls.null_count or values.null_count:
            self.nulls = None
        if self.nulls is not None:
            self.nulls += pc.sum(nulls).as_py() or 0
        if isinstance(field.field_type, _WITH_BOUNDS):
            self._add_bounds(files if self.nulls is None or field.required else _filled(files, values, nulls), field)

    def _add_bounds(self, files: ManifestColumns, field: NestedField) -> None:
        if not len(files):
            return
        lower = files.lower_bounds(field.field_id, field.field_type)
        upper = files.upper_bounds(field.field_id, field.field_type)
        if lower is None or upper is None or lower.null_count or upper.null_count:
            self.is_bounded = False
            return
        least, greatest = pc.min(lower).as_py(), pc.max(upper).as_py()
        self.least = least if self.least is None else min(self.least, least)
        self.greatest = greatest if self.greatest is None else max(self.greatest, greatest)

    def texts(self, field: NestedField, rows: int, distinct: int | None) -> dict[str, str] | None:
        """As Spark reads them; None if there is nothing that it can use."""
        if self.nulls is None:
            return None
        found = {"nullCount": str(self.nulls)}
        if isinstance(field.field_type, _WITH_BOUNDS):
            least, greatest = _text(self.least), _text(self.greatest)
            if not self.is_bounded or least is None or greatest is None:
                return None
            found |= {"min": least, "max": greatest}
        elif not isinstance(field.field_type, _WITHOUT_BOUNDS):
            return None
        if distinct is not None:
            found["distinctCount"] = str(max(0, min(distinct, rows - self.nulls, self._most_values(distinct))))
        return found

    def _most_values(self, unknown: int) -> int:
        """How many values there are between the bounds."""
        if isinstance(self.least, int):
            return int(self.greatest - self.least) + 1
        is_date = isinstance(self.least, date) and not isinstance(self.least, datetime)
        return (self.greatest - self.least).days + 1 if is_date else unknown


def _filled(files: ManifestColumns, values: pa.Array, nulls: pa.Array) -> ManifestColumns:
    """Those with a value that is not null; others have no bounds."""
    return files.filter(pc.greater(values, nulls))


def _text(value: Any) -> str | None:
    match value:
        case datetime():
            return value.strftime("%Y-%m-%d %H:%M:%S.%f") if value.year > 999 else None
        case date():
            return value.isoformat()
        case Decimal():
            return f"{value:f}"
        case int():
            return str(value)
        case float() if value == value and abs(value) != float("inf"):
            return repr(value)
        case _:
            return None


@dataclass
class ScanStatistics:
    """Rows of the files that are left of a scan, those that vectors delete included, and its columns by name."""

    rows: int = 0
    columns: dict[str, ColumnStatistics] = attribute(default_factory=dict)


def statistics_of(scan: TableScan, columns: Mapping[str, NestedField], where: Expression) -> ScanStatistics | None:
    """What manifests tell of the files that may have rows for a filter; None if a server plans them."""
    if scan.planner is not None:
        return None
    known = {
        name: field
        for name, field in columns.items()
        if isinstance(field.field_type, _WITH_BOUNDS + _WITHOUT_BOUNDS) and field.field_id in scan.schema.fields_by_id
    }
    narrowed = replace(scan, row_filter=conjunction(parsed_filter(scan.row_filter), where), limit=None)
    total = ScanStatistics(columns={name: ColumnStatistics() for name in known})
    plan = narrowed.plan(tuple(sorted(field.field_id for field in known.values())))
    if plan is None:
        return total
    with plan:
        for batch in plan:
            total.rows += pc.sum(batch.files.record_counts).as_py() or 0
            for name, field in known.items():
                total.columns[name].add(batch.files, field)
    return total


def may_choose_files(scan: TableScan, field: NestedField, where: Expression) -> bool:
    """Whether some values of a column are likely to leave out files, and enough of them to be worth a question.

    Not if nearly all files have values from end to end, and not of few files that are soon read.
    """
    partitions = (each for spec in scan.metadata.partition_specs for each in spec.fields)
    if any(field.field_id in each.source_ids and not isinstance(each.transform, VoidTransform) for each in partitions):
        return True
    if scan.planner is not None or not isinstance(field.field_type, _COUNTED):
        return True
    narrowed = replace(scan, row_filter=conjunction(parsed_filter(scan.row_filter), where), limit=None)
    plan = narrowed.plan((field.field_id,))
    if plan is None:
        return False
    bounds: list[pa.Table] = []
    files = size = 0
    with plan:
        for batch in plan:
            files += len(batch)
            size += pc.sum(batch.files.column("file_size_in_bytes")).as_py() or 0
            lower = batch.files.lower_bounds(field.field_id, field.field_type)
            upper = batch.files.upper_bounds(field.field_id, field.field_type)
            if lower is not None and upper is not None:
                bounds.append(pa.table({"lower": _counts(lower), "upper": _counts(upper)}).drop_null())
    known = pa.concat_tables(bounds) if bounds else None
    if not known or (files < _FEW_FILES and size < _FEW_BYTES):
        return False
    lower, upper = (known[name].to_numpy().astype(float) for name in ("lower", "upper"))
    widest = upper.max() - lower.min()
    return bool((upper - lower).mean() <= _MOST_OF_ALL * widest)


def _counts(bounds: pa.Array) -> pa.Array:
    return (bounds.view(pa.int32()) if bounds.type == pa.date32() else bounds).cast(pa.int64())
