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
from icefloe.formats.projection import as_stored, list_offsets, map_parts
from icefloe.schema import Schema, types

_FIRST, _SECOND = b"\x00", b"\x02"
"""The numbers of the branches of a union."""

_WHOLE_NUMBERS = (
    types.IntegerType,
    types.LongType,
    types.DateType,
    types.TimeType,
    types.TimestampType,
    types.TimestamptzType,
    types.TimestampNanoType,
    types.TimestamptzNanoType,
)


def encode_rows(batch: pa.RecordBatch, schema: Schema) -> pa.BinaryArray:
    """A binary array with the Avro bytes of each row of a record batch, whose columns are those of the schema."""
    columns = [_field(as_stored(batch.column(i)), field, 0) for i, field in enumerate(schema.fields)]
    return _joined(*columns)


def varints(numbers: npt.NDArray[np.int64]) -> pa.BinaryArray:
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
    indices = np.arange(width, dtype=np.int32)
    septets |= np.where(indices < widths[:, None] - 1, 0x80, 0).astype(np.uint8)
    return _binary(_offsets(widths), septets[indices < widths[:, None]])


def _field(array: pa.Array, field: types.NestedField, expected_nulls: int) -> pa.BinaryArray:
    """The bytes of a field; `expected_nulls` are below nulls of the struct around it, where nothing is written."""
    if field.required:
        if array.null_count > expected_nulls:
            raise InvalidValueError(
                f"required column {field.name!r} has {array.null_count - expected_nulls} nulls inside {array.type}"
            )
        return _values(array, field.field_type)
    null, value = (_SECOND, _FIRST) if null_comes_second(field) else (_FIRST, _SECOND)
    values = _joined(pa.scalar(value, pa.binary()), _values(array, field.field_type))
    return pc.if_else(pc.is_valid(array), values, pa.scalar(null, pa.binary())) if array.null_count else values


def _values(array: pa.Array, kind: types.IcebergType) -> pa.BinaryArray:
    """The bytes of values; what stands for nulls does not matter."""
    if isinstance(kind, _WHOLE_NUMBERS):
        stored = pa.int32() if array.type.bit_width == 32 else pa.int64()
        return varints(_numbers(array.cast(stored)).astype(np.int64, copy=False))
    match kind:
        case types.BooleanType():
            return _fixed(_numbers(array.cast(pa.uint8())), 1)
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
            parts = zip(array.flatten(), kind.fields, strict=True)
            return _joined(*(_field(part, field, array.null_count) for part, field in parts))
        case types.ListType():
            offsets = list_offsets(array).to_numpy()
            return _items(offsets, _field(array.flatten(), kind.element_field, 0))
        case types.MapType():
            map_offsets, keys, items = map_parts(array)
            pairs = _joined(_field(keys, kind.key_field, 0), _field(items, kind.value_field, 0))
            return _items(map_offsets.to_numpy(), pairs)
        case _:
            raise AssertionError(f"{kind} is not stored")


def _joined(*parts: pa.BinaryArray | pa.BinaryScalar) -> pa.BinaryArray:
    if len(parts) == 1:
        return parts[0]
    return pc.binary_join_element_wise(*parts, pa.scalar(b"", pa.binary()), null_handling="replace")


def _numbers(array: pa.Array) -> npt.NDArray[Any]:
    if array.null_count:
        array = pc.fill_null(array, pa.scalar(0, array.type))
    numbers: npt.NDArray[Any] = array.to_numpy(zero_copy_only=False)
    return numbers


def _fixed(numbers: npt.NDArray[Any], width: int) -> pa.BinaryArray:
    offsets = np.arange(len(numbers) + 1, dtype=np.int32) * width
    return _binary(offsets, np.ascontiguousarray(numbers))


def _binary(offsets: npt.NDArray[np.int32], data: npt.NDArray[Any]) -> pa.BinaryArray:
    return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(data)])


def _offsets(lengths: npt.NDArray[Any]) -> npt.NDArray[np.int32]:
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def _sized(array: pa.Array) -> pa.BinaryArray:
    lengths = _numbers(pc.binary_length(array)).astype(np.int64)
    return _joined(varints(lengths), array.cast(pa.binary()))


def _decimals(array: pa.Array, width: int) -> pa.BinaryArray:
    if not len(array):
        return pa.array([], pa.binary())
    little = np.frombuffer(array.buffers()[1], np.uint8, len(array) * 16, array.offset * 16).reshape(-1, 16)
    return _fixed(little[:, :width][:, ::-1], width)


def _items(offsets: npt.NDArray[np.int32], encoded: pa.BinaryArray) -> pa.BinaryArray:
    """The bytes of lists or maps whose items, one behind the other, are encoded: one counted block, then the end."""
    if encoded.offset:
        encoded = pa.concat_arrays([encoded, pa.array([], pa.binary())])
    item_offsets = np.frombuffer(encoded.buffers()[1], np.int32, len(encoded) + 1, encoded.offset * 4)
    together = pa.Array.from_buffers(
        pa.binary(),
        len(offsets) - 1,
        [None, pa.py_buffer(np.ascontiguousarray(item_offsets[offsets])), encoded.buffers()[2]],
    )
    lengths = np.diff(offsets).astype(np.int64)
    end = pa.scalar(b"\x00", pa.binary())
    return pc.if_else(pa.array(lengths > 0), _joined(varints(lengths), together, end), end)
