"""How metadata tables show a partition value in the type that its field has now: as it is, promoted, as text, or not at all."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.manifests import to_internal
from icefloe.partitioning import human_value
from icefloe.schema import IcebergType, NestedField, StringType, field_to_arrow, is_promotion


def shown_values(stored: Any | None, kind: IcebergType | None, field: NestedField, rows: int) -> Any:
    """The values of a partition field, stored as `kind`, in the type of `field`.

    A column that was replaced by one of another type under the same id leaves values that the type of now may not hold:
    strings show them as text, numbers show equal numbers, all else is null.
    """
    target = field_to_arrow(field, ids=False).type
    # A void field is stored in its source's type (spec: Partition Transforms), while other specs have that of a transform.
    if stored is None or kind is None or stored.null_count == len(stored):
        return pa.nulls(rows, target)
    if isinstance(target, pa.BaseExtensionType):
        if stored.type != target.storage_type:
            return pa.nulls(rows, target)
        return pa.ExtensionArray.from_storage(target, stored)
    if stored.type == target:
        return stored
    if isinstance(field.field_type, StringType):
        values = to_internal(stored, kind)
        return pa.array([None if value is None else human_value(value, kind) for value in values], target)
    if is_promotion(kind, field.field_type):
        return stored.cast(target)
    return _equal_numbers(stored, target)


def _equal_numbers(stored: Any, target: Any) -> Any:
    if not all(pa.types.is_integer(each) or pa.types.is_floating(each) for each in (stored.type, target)):
        return pa.nulls(len(stored), target)
    found = stored.cast(target, safe=False)
    is_equal = pc.equal(found.cast(stored.type, safe=False), stored)
    return pc.if_else(pc.fill_null(is_equal, False), found, pa.scalar(None, target))
