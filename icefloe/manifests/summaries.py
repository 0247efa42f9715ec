"""What a manifest list says about a manifest: counts, the smallest sequence number, and summaries of partition values."""

from collections.abc import Iterator, Sequence
from typing import Any, TypedDict

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

    def contains_null(self, position: int) -> Any:
        """Whether the field is null in some file; null where not known."""
        return pa.array([found and found.contains_null for found in self._at(position)], pa.bool_())

    def contains_nan(self, position: int) -> Any:
        """Whether the field is NaN in some file; null where not known."""
        return pa.array([found and found.contains_nan for found in self._at(position)], pa.bool_())

    def lower_bounds(self, position: int, kind: IcebergType) -> Any | None:
        """Lower bounds of the field as values of its type; None if some are no such values."""
        return bound_values(pa.array([found and found.lower_bound for found in self._at(position)], pa.binary()), kind)

    def upper_bounds(self, position: int, kind: IcebergType) -> Any | None:
        """Upper bounds of the field as values of its type; None if some are no such values."""
        return bound_values(pa.array([found and found.upper_bound for found in self._at(position)], pa.binary()), kind)

    def _at(self, position: int) -> Iterator[PartitionFieldSummary | None]:
        for manifest in self._manifests:
            summaries = manifest.partitions or ()
            yield summaries[position] if position < len(summaries) else None


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


def summarize(values: Any, kind: IcebergType) -> PartitionFieldSummary:
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
    lower, upper = encode_array(pa.concat_arrays([low, high]), kind).to_pylist()
    return PartitionFieldSummary(contains_null, contains_nan, lower, upper)


def _bounds(known: Any) -> tuple[Any, Any]:
    if pa.types.is_fixed_size_binary(known.type):
        order = pc.sort_indices(known.cast(pa.binary()))
        return known.take(order[:1]), known.take(order[-1:])
    if pa.types.is_temporal(known.type):
        # Python has no nanoseconds, so bounds stay numbers.
        plain = known.view(pa.int32() if pa.types.is_date(known.type) else pa.int64())
        low, high = _bounds(plain)
        return low.view(known.type), high.view(known.type)
    found = pc.min_max(known)
    return pa.array([found["min"].as_py()], known.type), pa.array([found["max"].as_py()], known.type)


def _float_bounds(known: Any) -> tuple[Any, Any]:
    """-0.0 comes before 0.0, though they are equal (spec: Manifest Lists, field summaries)."""
    values = known.to_numpy()
    low, high = values.min(), values.max()
    if low == 0 and np.signbit(values[values == 0]).any():
        low = values.dtype.type(-0.0)
    if high == 0:
        high = values.dtype.type(0.0 if not np.signbit(values[values == 0]).all() else -0.0)
    return pa.array([low], known.type), pa.array([high], known.type)
