"""How rows are grouped by their partition tuples, whole columns at a time (spec: Partition Transforms)."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.errors import InvalidPartitionSpecError, InvalidValueError
from icefloe.manifests import to_internal
from icefloe.partitioning import PartitionField, PartitionSpec, transform_array, transforms as tr
from icefloe.schema import Schema, UnknownType

Partition = tuple[Any, ...]

_SHORT = 1 << 16


def group_rows(table: Any, spec: PartitionSpec, schema: Schema) -> Iterator[tuple[Partition, Any]]:
    """The rows of a table by partition tuple, each group in the order of the rows; groups in the order of their first row."""
    if not table.num_rows:
        return
    columns = [_Column(table, field, schema) for field in spec.fields]
    codes, groups = np.zeros(table.num_rows, np.int64), 1
    for column in columns:
        # Numbered anew after each column, so that products stay far below 2^63.
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


def _renumbered(codes: npt.NDArray[np.int64], limit: int) -> tuple[npt.NDArray[np.int64], int]:
    """Numbers below a limit as numbers without gaps, in the same order, and how many different ones there are."""
    if limit > max(_SHORT, 4 * len(codes)):
        known, found = np.unique(codes, return_inverse=True)
        return found.astype(np.int64), len(known)
    is_used = np.zeros(limit, np.bool_)
    is_used[codes] = True
    return (np.cumsum(is_used) - 1)[codes], int(is_used.sum())


def source_column(table: Any, field_id: int, schema: Schema) -> Any:
    """A column of the table, at the top or nested in structs; null where one of these is."""
    along = [schema.fields_by_id[field_id], *schema.ancestors(field_id)]
    top, *below = [field.name for field in reversed(along)]
    column = table.column(top)
    return pc.struct_field(column, below) if below else column


class _Column:
    """The values of one partition field, numbered."""

    def __init__(self, table: Any, field: PartitionField, schema: Schema) -> None:
        self.codes: npt.NDArray[np.int64]
        if isinstance(field.transform, tr.VoidTransform):
            self.codes, self._values, self.count = np.zeros(table.num_rows, np.int64), [None], 1
            return
        source = schema.fields_by_id.get(field.source_id)
        if source is None:
            raise InvalidPartitionSpecError(f"partition field {field.name!r}: its source column is not in the schema")
        if isinstance(source.field_type, UnknownType):
            self.codes, self._values, self.count = np.zeros(table.num_rows, np.int64), [None], 1
            return
        try:
            values = transform_array(field.transform, source_column(table, field.source_id, schema), source.field_type)
        except pa.ArrowInvalid as problem:
            raise InvalidValueError(
                f"column {source.name!r} has a value that {field.transform} cannot take: {problem}"
            ) from None
        if isinstance(values.type, pa.BaseExtensionType):
            values = values.cast(values.type.storage_type)
        encoded = pc.dictionary_encode(values.combine_chunks(), null_encoding="encode")
        self.codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        self._values = to_internal(encoded.dictionary, field.transform.result_type(source.field_type))
        self.count = max(1, len(self._values))

    def value(self, row: int) -> Any:
        """The partition value of a row."""
        return self._values[int(self.codes[row])]
