"""How rows are arranged for their files, whole columns at a time: grouped by partition (spec: Partition Transforms), and in
the sort order of their table (spec: Sorting)."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe import errors, manifests as mf
from icefloe.partitioning import PartitionField, PartitionSpec, sorting, transform_array, transforms as tr
from icefloe.schema import Schema, Value, types

Partition = tuple[Value, ...]
Numbers = npt.NDArray[np.int64]

_SHORT = 1 << 16


def group_rows(table: pa.Table, spec: PartitionSpec, schema: Schema) -> Iterator[tuple[Partition, pa.Table]]:
    """The rows of a table by partition tuple, each group in the order of the rows; groups in the order of their first row."""
    if not table.num_rows:
        return
    columns = [_PartitionValues(table, field, schema) for field in spec.fields]
    codes, groups = np.zeros(table.num_rows, np.int64), 1
    for column in columns:
        # Renumbered after each column, so that products stay far below 2^63.
        codes, groups = _renumbered(codes * column.count + column.codes, groups * column.count)
    if groups == 1:
        yield tuple(column.value(0) for column in columns), table
        return
    firsts = np.empty(groups, np.int64)
    firsts[codes[::-1]] = np.arange(table.num_rows - 1, -1, -1)  # of several rows of a group, the last one set stays
    # Numbers of 16 bits are sorted in one pass.
    order = np.argsort(codes.astype(np.uint16) if groups <= _SHORT else codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=groups))
    for first in np.sort(firsts).tolist():
        group = int(codes[first])
        rows = order[(ends[group - 1] if group else 0) : ends[group]]
        yield tuple(column.value(first) for column in columns), table.take(pa.array(rows))


def _renumbered(codes: Numbers, limit: int) -> tuple[Numbers, int]:
    """Numbers below a limit as numbers without gaps, in the same order, and how many different ones there are."""
    if limit > max(_SHORT, 4 * len(codes)):
        known, numbers = np.unique(codes, return_inverse=True)
        return numbers.astype(np.int64), len(known)
    is_used = np.zeros(limit, np.bool_)
    is_used[codes] = True
    return (np.cumsum(is_used) - 1)[codes], int(is_used.sum())


class _PartitionValues:
    """The values of one partition field, numbered."""

    def __init__(self, table: pa.Table, field: PartitionField, schema: Schema) -> None:
        self.codes: Numbers = np.zeros(table.num_rows, np.int64)
        self.count = 1
        self._values: list[Value] = [None]
        if isinstance(field.transform, tr.VoidTransform):
            return
        source = schema.fields_by_id.get(field.source_id)
        if source is None:
            raise errors.InvalidPartitionSpecError(
                f"partition field {field.name!r}: its source column is not in the schema"
            )
        if isinstance(source.field_type, types.UnknownType):
            return
        try:
            values = transform_array(field.transform, _source_column(table, field.source_id, schema), source.field_type)
        except pa.ArrowInvalid as problem:
            raise errors.InvalidValueError(
                f"column {source.name!r} has a value that {field.transform} cannot take: {problem}"
            ) from None
        encoded = pc.dictionary_encode(_stored(values).combine_chunks(), null_encoding="encode")
        self.codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        self._values = mf.to_internal(encoded.dictionary, field.transform.result_type(source.field_type))
        self.count = max(1, len(self._values))

    def value(self, row: int) -> Value:
        """The partition value of a row."""
        return self._values[int(self.codes[row])]


def sort_rows(table: pa.Table, order: sorting.SortOrder, schema: Schema) -> pa.Table:
    """The rows in order; rows that are equal in it stay as they were."""
    return sort_by_keys(table, OrderKeys(order, schema)(table))


@dataclass(frozen=True, slots=True, eq=False)
class SortKey:
    """What rows are compared by, one value for each of them, in which direction, and where nulls go."""

    values: pa.Array | pa.ChunkedArray
    is_ascending: bool = True
    nulls_first: bool = True


KeyMaker: TypeAlias = Callable[[pa.Table], Sequence[SortKey]]
"""Makes the keys of rows: as many for any rows, and comparable with those of others."""


@dataclass(frozen=True, slots=True)
class OrderKeys:
    """Makes the keys of a sort order."""

    order: sorting.SortOrder
    schema: Schema

    def __call__(self, rows: pa.Table) -> list[SortKey]:
        """The keys of the rows."""
        keys = ((field, _sort_key(rows, field, self.schema)) for field in self.order.fields)
        return [
            SortKey(
                values,
                field.direction is sorting.SortDirection.ASC,
                field.null_order is sorting.NullOrder.NULLS_FIRST,
            )
            for field, values in keys
            if values is not None
        ]


def sort_by_keys(table: pa.Table, keys: Sequence[SortKey]) -> pa.Table:
    """The rows in the order of their keys; rows that are equal in it stay as they were."""
    columns: dict[str, pa.Array | pa.ChunkedArray] = {}
    directions: list[tuple[str, str]] = []
    for index, key in enumerate(keys):
        if key.values.null_count:
            columns[f"null {index}"] = pc.is_null(key.values)
            directions.append((f"null {index}", "descending" if key.nulls_first else "ascending"))
        columns[f"key {index}"] = key.values
        directions.append((f"key {index}", "ascending" if key.is_ascending else "descending"))
    if not directions or table.num_rows < 2:
        return table
    return table.take(pc.sort_indices(pa.table(columns), sort_keys=directions))


def _sort_key(table: pa.Table, field: sorting.SortField, schema: Schema) -> pa.Array | pa.ChunkedArray | None:
    """What rows are compared by; None if they are all equal."""
    source = schema.fields_by_id.get(field.source_id)
    if source is None or isinstance(field.transform, tr.UnknownTransform):
        raise errors.InvalidSortOrderError(
            f"rows cannot be sorted by {field} because its column or transform is unknown"
        )
    if isinstance(source.field_type, types.UnknownType):
        return None
    values = transform_array(field.transform, _source_column(table, field.source_id, schema), source.field_type)
    if pa.types.is_null(values.type):
        return None
    values = _stored(values)
    return _total_order(values.combine_chunks()) if pa.types.is_floating(values.type) else values


def _total_order(floats: pa.Array) -> pa.Array:
    """Numbers that are in the order of the floats: -NaN, -infinity, ..., -0.0, 0.0, ..., infinity, NaN (spec: Sorting)."""
    width = np.dtype(f"i{floats.type.bit_width // 8}")
    bits = np.frombuffer(floats.buffers()[1], width, len(floats), floats.offset * width.itemsize)
    keys = bits ^ ((bits >> (8 * width.itemsize - 1)) & np.iinfo(width).max)
    return pa.array(keys, mask=np.asarray(floats.is_null()))


def _source_column(table: pa.Table, field_id: int, schema: Schema) -> pa.ChunkedArray:
    """A column of the table, at the top or nested in structs; null where one of these is."""
    along = [schema.fields_by_id[field_id], *schema.ancestors(field_id)]
    top, *below = [field.name for field in reversed(along)]
    column = table.column(top)
    return pc.struct_field(column, below) if below else column


def _stored(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """The values without an extension type, which Arrow neither groups nor sorts by."""
    return values.cast(values.type.storage_type) if isinstance(values.type, pa.BaseExtensionType) else values
