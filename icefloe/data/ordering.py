"""How rows are put in the sort order of their table: transforms, directions, nulls, and the order of floats (spec: Sorting)."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.data.grouping import source_column
from icefloe.errors import InvalidSortOrderError
from icefloe.partitioning import NullOrder, SortDirection, SortField, SortOrder, transform_array, transforms as tr
from icefloe.schema import Schema, UnknownType


def sort_rows(table: Any, order: SortOrder, schema: Schema) -> Any:
    """The rows in order; rows that are equal in it stay as they were."""
    keys: dict[str, Any] = {}
    directions: list[tuple[str, str]] = []
    for place, field in enumerate(order.fields):
        values = _key(table, field, schema)
        if values is None:
            continue
        if values.null_count:
            keys[f"null {place}"] = pc.is_null(values)
            directions.append(
                (f"null {place}", "descending" if field.null_order is NullOrder.NULLS_FIRST else "ascending")
            )
        keys[f"key {place}"] = values
        directions.append((f"key {place}", "ascending" if field.direction is SortDirection.ASC else "descending"))
    if not directions or table.num_rows < 2:
        return table
    return table.take(pc.sort_indices(pa.table(keys), sort_keys=directions))


def _key(table: Any, field: SortField, schema: Schema) -> Any:
    """What rows are compared by; None if they are all equal."""
    source = schema.fields_by_id.get(field.source_id)
    if source is None or isinstance(field.transform, tr.UnknownTransform):
        raise InvalidSortOrderError(f"rows cannot be sorted by {field}, as its column or its transform is not known")
    if isinstance(source.field_type, UnknownType):
        return None
    values = transform_array(field.transform, source_column(table, field.source_id, schema), source.field_type)
    if pa.types.is_null(values.type):
        return None
    if isinstance(values.type, pa.BaseExtensionType):
        values = values.cast(values.type.storage_type)
    return _total_order(values.combine_chunks()) if pa.types.is_floating(values.type) else values


def _total_order(floats: Any) -> Any:
    """Numbers that are in the order of the floats: -NaN, -infinity, ..., -0.0, 0.0, ..., infinity, NaN (spec: Sorting)."""
    width: Any = np.int32 if floats.type.bit_width == 32 else np.int64
    bits = np.frombuffer(floats.buffers()[1], width, len(floats), floats.offset * np.dtype(width).itemsize)
    keys = bits ^ ((bits >> (8 * bits.itemsize - 1)) & np.iinfo(width).max)
    return pa.array(keys, mask=np.asarray(floats.is_null()))
