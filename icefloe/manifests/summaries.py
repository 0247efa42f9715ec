"""What a manifest list says about a manifest: counts, the smallest sequence number, and summaries of partition values."""

from collections.abc import Sequence
from typing import TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.manifests.arrow_values import bound_values
from icefloe.manifests.columns import ManifestColumns
from icefloe.manifests.values import UNASSIGNED_SEQUENCE_NUMBER, EntryStatus, ManifestFile, PartitionFieldSummary
from icefloe.schema import IcebergType, encode_array


class SummaryColumns:
    """Partition summaries of manifests of one spec, in columns, as `expressions.facts.PartitionSummaries` wants them."""

    def __init__(self, manifests: Sequence[ManifestFile]) -> None:
        self._manifests = manifests

    @property
    def size(self) -> int:
        """How many manifests there are."""
        return len(self._manifests)

    def contains_null(self, position: int) -> pa.Array:
        """Whether the field is null in some file; null where not known."""
        return self._column(position, "contains_null", pa.bool_())

    def contains_nan(self, position: int) -> pa.Array:
        """Whether the field is NaN in some file; null where not known."""
        return self._column(position, "contains_nan", pa.bool_())

    def lower_bounds(self, position: int, field_type: IcebergType) -> pa.Array | None:
        """Lower bounds of the field as values of its type; None if some are no such values."""
        return bound_values(self._column(position, "lower_bound", pa.binary()), field_type)

    def upper_bounds(self, position: int, field_type: IcebergType) -> pa.Array | None:
        """Upper bounds of the field as values of its type; None if some are no such values."""
        return bound_values(self._column(position, "upper_bound", pa.binary()), field_type)

    def _column(self, position: int, name: str, arrow_type: pa.DataType) -> pa.Array:
        lists = (manifest.partitions or () for manifest in self._manifests)
        return pa.array([getattr(each[position], name) if position < len(each) else None for each in lists], arrow_type)


class EntryCounts(TypedDict):
    """Files and rows by status, under the names that ManifestFile has for them."""

    added_files_count: int
    existing_files_count: int
    deleted_files_count: int
    added_rows_count: int
    existing_rows_count: int
    deleted_rows_count: int


def count_entries(columns: ManifestColumns) -> EntryCounts:
    """How many files there are of each status, and how many rows they have."""
    status, rows = columns.column("status").to_numpy(), columns.column("record_count").to_numpy()
    added, existing, deleted = (
        rows[status == int(which)] for which in (EntryStatus.ADDED, EntryStatus.EXISTING, EntryStatus.DELETED)
    )
    return EntryCounts(
        added_files_count=len(added),
        existing_files_count=len(existing),
        deleted_files_count=len(deleted),
        added_rows_count=int(added.sum()),
        existing_rows_count=int(existing.sum()),
        deleted_rows_count=int(deleted.sum()),
    )


def min_sequence_number(columns: ManifestColumns) -> int:
    """The smallest known data sequence number of live files; unassigned if all of them wait for theirs."""
    # Numbers that are still to be inherited are larger than all that exist.
    smallest = pc.min(columns.column("sequence_number").filter(columns.is_live)).as_py()
    return UNASSIGNED_SEQUENCE_NUMBER if smallest is None else int(smallest)


def summarize_partitions(columns: ManifestColumns) -> tuple[PartitionFieldSummary, ...]:
    """One summary for each field of the spec, over all entries."""
    return tuple(
        summarize(columns.partition[field.field_id], field.field_type)
        if field.field_id in columns.partition
        else PartitionFieldSummary(columns.length > 0, False)
        for field in columns.partition_type.fields
    )


def summarize(values: pa.Array, field_type: IcebergType) -> PartitionFieldSummary:
    """Whether there are nulls and NaNs, and the bounds of the rest."""
    contains_null = values.null_count > 0
    is_float = pa.types.is_floating(values.type)
    contains_nan = False
    if is_float:
        is_nan = pc.is_nan(values)
        contains_nan = bool(pc.any(is_nan).as_py())
        values = values.filter(pc.invert(is_nan)) if contains_nan else values
    known = values.drop_null()
    if not len(known):
        return PartitionFieldSummary(contains_null, contains_nan)
    low, high = _float_bounds(known) if is_float else _bounds(known)
    lower, upper = encode_array(pa.concat_arrays([low, high]), field_type).to_pylist()
    return PartitionFieldSummary(contains_null, contains_nan, lower, upper)


def _bounds(known: pa.Array) -> tuple[pa.Array, pa.Array]:
    if pa.types.is_fixed_size_binary(known.type):
        order = pc.sort_indices(known.cast(pa.binary()))
        return known.take(order[:1]), known.take(order[-1:])
    if pa.types.is_temporal(known.type):
        # Python has no nanoseconds, so bounds stay numbers.
        plain = known.view(pa.int32() if pa.types.is_date(known.type) else pa.int64())
        low, high = _bounds(plain)
        return low.view(known.type), high.view(known.type)
    low, high = pc.min_max(known).values()
    return pa.array([low.as_py()], known.type), pa.array([high.as_py()], known.type)


def _float_bounds(known: pa.Array) -> tuple[pa.Array, pa.Array]:
    """-0.0 comes before 0.0, though they are equal (spec: Manifest Lists, field summaries)."""
    values = known.to_numpy()
    low, high = values.min(), values.max()
    if low == 0 and np.signbit(values[values == 0]).any():
        low = values.dtype.type(-0.0)
    if high == 0:
        high = values.dtype.type(0.0 if not np.signbit(values[values == 0]).all() else -0.0)
    return pa.array([low], known.type), pa.array([high], known.type)
