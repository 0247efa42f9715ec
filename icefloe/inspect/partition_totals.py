"""Sums over partitions, in columns: what files, or partitions of several manifests, add up to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icefloe.manifests import ManifestColumns, MetricColumns
from icefloe.planning import Numbers, number_partitions
from icefloe.schema import NestedField, StructType, types

NEVER = -1
"""The time of a commit that nobody knows any more."""

_SCOPE_ID = -1


@dataclass(frozen=True, slots=True, eq=False)
class PartitionTotals:
    """Sums for some partitions, or for files, which are partitions of their own until they are merged."""

    rows: ManifestColumns
    """A partition each, and the scope within which equal tuples are one partition."""
    sums: Mapping[str, Numbers]
    updated_at: Numbers
    updated_by: Numbers
    spec_ids: Numbers

    def __len__(self) -> int:
        return len(self.rows)

    def filter(self, mask: npt.NDArray[np.bool_]) -> "PartitionTotals":
        """Those for which the mask is true."""
        return PartitionTotals(
            self.rows.filter(mask),
            {name: amounts[mask] for name, amounts in self.sums.items()},
            self.updated_at[mask],
            self.updated_by[mask],
            self.spec_ids[mask],
        )


def partition_rows(partition: pa.StructArray | None, struct: StructType, scope: Numbers) -> ManifestColumns:
    """Partition tuples of a type of fields of several specs as rows; None if it has no fields."""
    columns = {
        field.field_id: column.storage if isinstance(column, pa.ExtensionArray) else column
        for field, column in zip(struct.fields, [] if partition is None else partition.flatten(), strict=True)
        if not isinstance(field.field_type, types.UnknownType)
    }
    columns[_SCOPE_ID] = pa.array(scope.astype(np.int32))
    both = StructType(*struct.fields, NestedField(_SCOPE_ID, "scope", types.IntegerType()))
    return ManifestColumns(len(scope), {}, both, columns, MetricColumns(len(scope)))


def join_totals(parts: Sequence[PartitionTotals]) -> PartitionTotals:
    """The rows of several parts, at least one, one after the other."""
    first = parts[0]
    partition = {key: pa.concat_arrays([part.rows.partition[key] for part in parts]) for key in first.rows.partition}
    length = sum(len(part.rows) for part in parts)
    return PartitionTotals(
        ManifestColumns(length, {}, first.rows.partition_type, partition, MetricColumns(length)),
        {name: np.concatenate([part.sums[name] for part in parts]) for name in first.sums},
        np.concatenate([part.updated_at for part in parts]),
        np.concatenate([part.updated_by for part in parts]),
        np.concatenate([part.spec_ids for part in parts]),
    )


def merge_totals(totals: PartitionTotals) -> PartitionTotals:
    """The same with one row for each partition; what the latest commit says of it counts, and of several, the first."""
    of, first = number_partitions(totals.rows)
    rows = np.arange(len(of))
    order = np.argsort(first)
    number = np.empty(len(first), np.int64)
    number[order] = np.arange(len(first))
    of, first = number[of], first[order]
    newest = np.full(len(first), NEVER, np.int64)
    np.maximum.at(newest, of, totals.updated_at)
    latest = np.full(len(first), len(of), np.int64)
    is_newest = totals.updated_at == newest[of]
    np.minimum.at(latest, of[is_newest], rows[is_newest])
    sums = {}
    for name, amounts in totals.sums.items():
        sums[name] = np.zeros(len(first), np.int64)
        np.add.at(sums[name], of, amounts)
    return PartitionTotals(
        totals.rows.take(pa.array(first)), sums, newest, totals.updated_by[latest], totals.spec_ids[latest]
    )
