"""Arrow columns from internal values, and internal values from Arrow columns."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pyarrow as pa

from icefloe.schema import type_to_arrow, types

COUNTED = (
    types.TimeType,
    types.TimestampType,
    types.TimestamptzType,
    types.TimestampNanoType,
    types.TimestamptzNanoType,
)


def column(values: Sequence[Any], kind: types.IcebergType) -> Any:
    """The values as an Arrow array of the type's own Arrow type."""
    target = type_to_arrow(kind)
    if isinstance(kind, types.DateType):
        return pa.array(values, pa.int32()).view(target)
    if isinstance(kind, COUNTED):
        return pa.array(values, pa.int64()).view(target)
    if isinstance(kind, types.UUIDType):
        stored = pa.array([None if value is None else value.bytes for value in values], pa.binary(16))
        return pa.ExtensionArray.from_storage(target, stored)
    return pa.array(values, target)


def values(array: Any, kind: types.IcebergType) -> list[Any]:
    """The internal values that an Arrow array of the type holds."""
    if isinstance(array, pa.ChunkedArray):
        return [value for chunk in array.chunks for value in values(chunk, kind)]
    assert array.type == type_to_arrow(kind)
    array.validate(full=True)
    if isinstance(kind, types.DateType):
        return array.view(pa.int32()).to_pylist()  # type: ignore[no-any-return]  # pyarrow has no types
    if isinstance(kind, COUNTED):
        return array.view(pa.int64()).to_pylist()  # type: ignore[no-any-return]  # pyarrow has no types
    if isinstance(kind, types.UUIDType):
        return [None if value is None else UUID(bytes=value) for value in array.storage.to_pylist()]
    return array.to_pylist()  # type: ignore[no-any-return]  # pyarrow has no types
