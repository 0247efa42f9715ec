"""Which files share a partition: the distinct tuples of a manifest, and keys that are equal for equal partitions only."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.manifests import ManifestColumns, MetricColumns, to_internal
from icefloe.schema import IcebergType, Value, types

Numbers = npt.NDArray[np.int64]
PartitionKey = tuple[int, tuple[Value, ...]]
"""A spec id, and the values of a partition in a form that compares as the spec asks."""

_MOST_CODES = 2**62
_DENSE_CODES = 2**20


@dataclass(frozen=True, slots=True, eq=False)
class PartitionGroups:
    """The distinct partitions of some files: `of` gives the group of each file, `tuples` the values of each group."""

    of: Numbers
    rows: ManifestColumns
    """One file of each group, with nothing but its partition."""
    tuples: tuple[tuple[Value, ...], ...]

    def __len__(self) -> int:
        return len(self.tuples)

    def keys(self) -> list[PartitionKey]:
        """The key of each group."""
        field_types = [field.field_type for field in self.rows.partition_type.fields]
        return [partition_key(self.rows.spec_id, values, field_types) for values in self.tuples]

    def at(self, files: Numbers) -> "PartitionGroups":
        """The groups of some of the files only, by position; groups that no file is in any more stay."""
        return replace(self, of=self.of[files])


def partition_key(spec_id: int, values: Sequence[Value], field_types: Sequence[IcebergType]) -> PartitionKey:
    """A key for a partition: NaNs are one value, -0.0 and 0.0 are two (spec: Scan Planning)."""
    return spec_id, tuple(
        _bits(value) if value is not None and isinstance(type_, types.FloatType | types.DoubleType) else value
        for value, type_ in zip(values, field_types, strict=True)
    )


def _bits(value: float) -> bytes:
    return struct.pack("<d", value if value == value else float("nan"))


def group_partitions(columns: ManifestColumns) -> PartitionGroups:
    """The distinct partitions of the entries of a manifest."""
    codes, first = number_partitions(columns)
    plain = replace(columns, columns={}, metrics=MetricColumns(len(columns)), header=None)
    rows = plain.take(pa.array(first))
    values = [
        to_internal(rows.partition[field.field_id], field.field_type)
        if field.field_id in rows.partition
        else [None] * len(rows)
        for field in columns.partition_type.fields
    ]
    tuples = tuple(zip(*values, strict=True)) if values else ((),) * len(rows)
    return PartitionGroups(codes, rows, tuples)


def number_partitions(columns: ManifestColumns) -> tuple[Numbers, Numbers]:
    """A number from 0 for the partition of each row, and the first row of each."""
    codes = np.zeros(len(columns), np.int64)
    count = 1
    for field in columns.partition_type.fields:
        column = columns.partition.get(field.field_id)
        if column is None:
            continue
        encoded = _canonical(column, field.field_type).dictionary_encode(null_encoding="encode")
        size = max(len(encoded.dictionary), 1)
        if count > _MOST_CODES // size:
            codes = np.unique(codes, return_inverse=True)[1].astype(np.int64)
            count = int(codes.max(initial=0)) + 1
        indices = encoded.indices.to_numpy(zero_copy_only=False)
        codes = indices.astype(np.int64) if count == 1 else codes * size + indices
        count *= size
    if count > max(_DENSE_CODES, len(codes)):
        _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
        return inverse.astype(np.int64), first.astype(np.int64)
    return _renumbered(codes, count)


def _renumbered(codes: Numbers, count: int) -> tuple[Numbers, Numbers]:
    """The same without sorting, for codes below a count that is not too large."""
    first = np.full(count, -1, np.int64)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    used = np.flatnonzero(first >= 0)
    number = np.zeros(count, np.int64)
    number[used] = np.arange(len(used))
    return number[codes], first[used]


def _canonical(column: pa.Array, type_: IcebergType) -> pa.Array:
    if not isinstance(type_, types.FloatType | types.DoubleType):
        return column
    values = column.to_numpy(zero_copy_only=False).astype(np.float64)
    values[np.isnan(values)] = np.nan
    return pc.if_else(column.is_valid(), pa.array(values.view(np.int64)), pa.scalar(None, pa.int64()))
