"""Arrow arrays of a table's types as what pyarrow writes to ORC, and back."""

from collections.abc import Callable
from itertools import accumulate

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.errors import InvalidValueError
from icefloe.formats.projection import compacted, list_offsets, map_parts, null_mask
from icefloe.schema import types

Ticks = Callable[[pa.Array, int, int], pa.Array]
"""From an array of seconds, the number of its ORC type and the ticks per second to an array of ticks since 1970."""


def to_orc(array: pa.Array, kind: types.IcebergType, orc_type: pa.DataType, name: str) -> pa.Array:
    """An array of the table's type as the one that pyarrow writes; nulls in required places are refused."""
    match kind:
        case types.StructType():
            children = []
            for part, field, inner in zip(array.flatten(), kind.fields, orc_type, strict=True):
                _check_required(part, field.required, array.null_count, f"{name}.{field.name}")
                children.append(to_orc(part, field.field_type, inner.type, f"{name}.{field.name}"))
            return pa.StructArray.from_arrays(children, fields=list(orc_type), mask=null_mask(array))
        case types.ListType():
            values = array.flatten()
            _check_required(values, kind.element_required, 0, f"{name}.element")
            items = to_orc(values, kind.element_type, orc_type.value_type, f"{name}.element")
            return pa.ListArray.from_arrays(list_offsets(array), items, type=orc_type, mask=null_mask(array))
        case types.MapType():
            offsets, keys, items = map_parts(array)
            _check_required(items, kind.value_required, 0, f"{name}.value")
            keys = to_orc(keys, kind.key_type, orc_type.key_type, f"{name}.key")
            items = to_orc(items, kind.value_type, orc_type.item_type, f"{name}.value")
            return pa.MapArray.from_arrays(offsets, keys, items, type=orc_type, mask=null_mask(array))
        case types.VariantType():
            # pyarrow's writer looks for the nulls of a nested struct in its fields too.
            return pa.StructArray.from_arrays(array.flatten(), fields=list(orc_type), mask=null_mask(array))
        case types.UUIDType() | types.FixedType():
            return (array.storage if isinstance(array, pa.ExtensionArray) else array).cast(pa.binary())
        case _:
            return array if array.type.equals(orc_type) else array.cast(orc_type)


def unsliced(array: pa.Array) -> pa.Array:
    """A copy of nested values that is no slice: pyarrow's ORC writer takes the nulls of slices from wrong places."""
    return compacted(array) if pa.types.is_nested(array.type) else array


def from_orc(
    array: pa.Array, kind: types.IcebergType, arrow_type: pa.DataType, number: int = 0, ticks: Ticks | None = None
) -> pa.Array:
    """An array as pyarrow reads it made one of the table's type; raises ArrowInvalid where a length is wrong.

    `number` is that of the array's type in the file, and `ticks` is for timestamps that were read as seconds.
    """
    match kind:
        case types.StructType():
            numbers = child_numbers(array.type, number)
            children = [
                from_orc(array.field(i), field.field_type, inner.type, numbers[i], ticks)
                for i, (field, inner) in enumerate(zip(kind.fields, arrow_type, strict=True))
            ]
            return pa.StructArray.from_arrays(children, fields=list(arrow_type), mask=null_mask(array))
        case types.ListType():
            items = from_orc(array.flatten(), kind.element_type, arrow_type.value_type, number + 1, ticks)
            return pa.ListArray.from_arrays(list_offsets(array), items, type=arrow_type, mask=null_mask(array))
        case types.MapType():
            first, second = child_numbers(array.type, number)
            offsets, keys, items = map_parts(array)
            keys = from_orc(keys, kind.key_type, arrow_type.key_type, first, ticks)
            items = from_orc(items, kind.value_type, arrow_type.item_type, second, ticks)
            return pa.MapArray.from_arrays(offsets, keys, items, type=arrow_type, mask=null_mask(array))
        case types.VariantType():
            parts = [array.field(field.name) for field in arrow_type]
            return pa.StructArray.from_arrays(parts, fields=list(arrow_type), mask=null_mask(array))
        case types.UnknownType():
            return pa.nulls(len(array))
        case types.UUIDType():
            return array.cast(pa.binary(16)).cast(arrow_type)
        case types.TimestampType() | types.TimestamptzType() | types.TimestampNanoType() | types.TimestamptzNanoType():
            return _timestamps(array, arrow_type, number, ticks)
        case _:
            return array if array.type.equals(arrow_type) else array.cast(arrow_type)


def child_numbers(arrow_type: pa.DataType, number: int) -> list[int]:
    """The numbers of the types nested in an ORC type, which are counted parents first."""
    counts = [type_count(child) for child in _children(arrow_type)]
    return list(accumulate(counts[:-1], initial=number + 1)) if counts else []


def type_count(arrow_type: pa.DataType) -> int:
    """How many ORC types an Arrow type of an ORC file stands for: itself and all that are in it."""
    return 1 + sum(map(type_count, _children(arrow_type)))


def _children(arrow_type: pa.DataType) -> list[pa.DataType]:
    if pa.types.is_map(arrow_type):
        return [arrow_type.key_type, arrow_type.item_type]
    return [arrow_type.field(i).type for i in range(arrow_type.num_fields)]


def _timestamps(array: pa.Array, arrow_type: pa.DataType, number: int, ticks: Ticks | None) -> pa.Array:
    if ticks is not None and not pa.types.is_timestamp(array.type):
        return ticks(array, number, 1_000_000 if arrow_type.unit == "us" else 1_000_000_000).cast(arrow_type)
    return (_micros(array) if arrow_type.unit == "us" else array.cast(pa.int64())).cast(arrow_type)


def _micros(array: pa.Array) -> pa.Array:
    """Nanoseconds cut to microseconds, downwards on both sides of 1970."""
    nanos = array.cast(pa.int64())
    ticks = pc.fill_null(nanos, 0).to_numpy(zero_copy_only=False) // 1000
    return pa.array(ticks, mask=np.asarray(pc.is_null(array))) if array.null_count else pa.array(ticks)


def _check_required(array: pa.Array, required: bool, expected_nulls: int, name: str) -> None:
    if required and array.null_count > expected_nulls:
        raise InvalidValueError(f"required column {name!r} has {array.null_count - expected_nulls} nulls")
