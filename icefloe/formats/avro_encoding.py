"""Arrow batches as the bytes of Avro rows, column by column without a loop over rows (Avro: Binary Encoding).

Every column becomes a column of bytes; rows are these joined. The bytes of a list are those of its elements, which lie one
behind the other already, so that a list costs no copy.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.avro import decimal_width, null_comes_second
from icefloe.errors import InvalidValueError
from icefloe.formats.projection import as_stored, compacted
from icefloe.schema import Schema, types

_FIRST, _SECOND = b"\x00", b"\x02"
"""The numbers of the branches of a union."""


def encode_rows(batch: Any, schema: Schema) -> Any:
    """A binary array with the Avro bytes of each row of a record batch, whose columns are those of the schema."""
    columns = [_field(as_stored(batch.column(i)), field, 0) for i, field in enumerate(schema.fields)]
    return _joined(*columns)


def varints(numbers: npt.NDArray[np.int64]) -> Any:
    """A binary array of zigzag numbers."""
    folded = ((numbers << 1) ^ (numbers >> 63)).view(np.uint64)
    widths = np.ones(len(numbers), np.int32)
    bits = 7
    while bits < 64 and bool((more := folded >> np.uint64(bits) != 0).any()):
        widths += more
        bits += 7
    width = int(widths.max(initial=1))
    shifts = np.arange(width, dtype=np.uint64) * np.uint64(7)
    septets = ((folded[:, None] >> shifts) & np.uint64(0x7F)).astype(np.uint8)
    places = np.arange(width, dtype=np.int32)
    septets |= np.where(places < widths[:, None] - 1, 0x80, 0).astype(np.uint8)
    return _binary(_offsets(widths), septets[places < widths[:, None]])


def _field(array: Any, field: types.NestedField, expected_nulls: int) -> Any:
    """The bytes of a field; `expected_nulls` are below nulls of the struct around it, where nothing is written."""
    if field.required:
        if array.null_count > expected_nulls:
            raise InvalidValueError(
                f"required column {field.name!r} has {array.null_count - expected_nulls} nulls inside of {array.type}"
            )
        return _values(array, field.field_type)
    null, value = (_SECOND, _FIRST) if null_comes_second(field) else (_FIRST, _SECOND)
    found = _joined(pa.scalar(value, pa.binary()), _values(array, field.field_type))
    return pc.if_else(pc.is_valid(array), found, pa.scalar(null, pa.binary())) if array.null_count else found


def _values(array: Any, kind: types.IcebergType) -> Any:
    """The bytes of values; what stands for nulls does not matter."""
    match kind:
        case types.BooleanType():
            return _fixed(_numbers(array.cast(pa.uint8())), 1)
        case types.IntegerType() | types.DateType():
            return varints(_numbers(array.cast(pa.int32())).astype(np.int64))
        case (
            types.LongType()
            | types.TimeType()
            | types.TimestampType()
            | types.TimestamptzType()
            | types.TimestampNanoType()
            | types.TimestamptzNanoType()
        ):
            return varints(_numbers(array.cast(pa.int64())))
        case types.FloatType():
            return _fixed(_numbers(array).astype("<f4", copy=False), 4)
        case types.DoubleType():
            return _fixed(_numbers(array).astype("<f8", copy=False), 8)
        case types.StringType() | types.BinaryType() | types.GeometryType() | types.GeographyType():
            return _sized(array)
        case types.FixedType() | types.UUIDType():
            return array.cast(pa.binary())
        case types.DecimalType():
            return _decimals(array, decimal_width(kind.precision))
        case types.VariantType():
            return _joined(*(_sized(part) for part in array.flatten()))
        case types.StructType():
            return _joined(
                *(
                    _field(part, field, array.null_count)
                    for part, field in zip(array.flatten(), kind.fields, strict=True)
                )
            )
        case types.ListType():
            return _items(array, _field(array.flatten(), kind.element_field, 0))
        case types.MapType():
            array = _plain_map(array)
            keys, items = _entries(array)
            return _items(array, _joined(_field(keys, kind.key_field, 0), _field(items, kind.value_field, 0)))
        case _:
            raise AssertionError(f"{kind} is not stored")


def _joined(*parts: Any) -> Any:
    if len(parts) == 1:
        return parts[0]
    return pc.binary_join_element_wise(*parts, pa.scalar(b"", pa.binary()), null_handling="replace")


def _numbers(array: Any) -> npt.NDArray[Any]:
    if array.null_count:
        array = pc.fill_null(array, pa.scalar(0, array.type))
    found: npt.NDArray[Any] = array.to_numpy(zero_copy_only=False)
    return found


def _fixed(numbers: npt.NDArray[Any], width: int) -> Any:
    offsets = np.arange(len(numbers) + 1, dtype=np.int32) * width
    return _binary(offsets, np.ascontiguousarray(numbers))


def _binary(offsets: npt.NDArray[np.int32], data: npt.NDArray[Any]) -> Any:
    return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(data)])


def _offsets(lengths: npt.NDArray[Any]) -> npt.NDArray[np.int32]:
    found = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=found[1:])
    return found


def _sized(array: Any) -> Any:
    lengths = _numbers(pc.binary_length(array)).astype(np.int64)
    return _joined(varints(lengths), array.cast(pa.binary()))


def _decimals(array: Any, width: int) -> Any:
    if not len(array):
        return pa.array([], pa.binary())
    little = np.frombuffer(array.buffers()[1], np.uint8, len(array) * 16, array.offset * 16).reshape(-1, 16)
    return _fixed(little[:, :width][:, ::-1], width)


def _plain_map(array: Any) -> Any:
    """The same maps without what lies below nulls and outside of a slice, of which keys and items know nothing."""
    return compacted(array) if array.offset or array.null_count else array


def _entries(array: Any) -> tuple[Any, Any]:
    first, last = array.offsets[0].as_py(), array.offsets[-1].as_py()
    return array.keys.slice(first, last - first), array.items.slice(first, last - first)


def _items(array: Any, encoded: Any) -> Any:
    """The bytes of lists or maps whose items, one behind the other, are encoded: one counted block, then the end."""
    lengths = _numbers(_lengths(array)).astype(np.int64)
    places = _offsets(lengths)
    if encoded.offset:
        encoded = pa.concat_arrays([encoded, pa.array([], pa.binary())])
    item_offsets = np.frombuffer(encoded.buffers()[1], np.int32, len(encoded) + 1, encoded.offset * 4)
    data = encoded.buffers()[2]
    together = pa.Array.from_buffers(
        pa.binary(), len(array), [None, pa.py_buffer(np.ascontiguousarray(item_offsets[places])), data]
    )
    end = pa.scalar(b"\x00", pa.binary())
    filled = _joined(varints(lengths), together, end)
    return pc.if_else(pa.array(lengths > 0), filled, end)


def _lengths(array: Any) -> Any:
    if pa.types.is_map(array.type):
        offsets = array.offsets
        lengths = pc.subtract(offsets[1:], offsets[:-1])
        return pc.if_else(pc.is_valid(array), lengths, 0)
    return pc.fill_null(pc.list_value_length(array), 0)
