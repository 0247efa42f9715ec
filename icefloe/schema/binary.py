"""The bytes of a single value, as bounds and partition summaries hold them (spec: Appendix D, Binary single-value serialization).

Decoding also accepts the bytes of the types that a column may have been promoted from, recognized by length
(spec: Schema Evolution, type promotion). Geometry and geography are WKB here; their bounds have a form of their own in `bounds`.
"""

import struct
import uuid
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.errors import InvalidValueError
from icefloe.schema import types
from icefloe.schema.arrow import type_to_arrow
from icefloe.schema.promotion import days_to_ticks
from icefloe.schema.temporal import MICROS_PER_DAY, NANOS_PER_DAY

_FORMATS: dict[type[types.IcebergType], str] = {
    types.IntegerType: "<i",
    types.DateType: "<i",
    types.LongType: "<q",
    types.TimeType: "<q",
    types.TimestampType: "<q",
    types.TimestamptzType: "<q",
    types.TimestampNanoType: "<q",
    types.TimestamptzNanoType: "<q",
    types.FloatType: "<f",
    types.DoubleType: "<d",
}
_FORMATS_BEFORE_PROMOTION: dict[type[types.IcebergType], str] = {
    types.LongType: "<i",
    types.DoubleType: "<f",
    types.TimestampType: "<i",
    types.TimestampNanoType: "<i",
}
_PER_DAY: dict[type[types.IcebergType], int] = {
    types.TimestampType: MICROS_PER_DAY,
    types.TimestampNanoType: NANOS_PER_DAY,
}
"""What a date is multiplied by to become a timestamp."""

Bytes: TypeAlias = npt.NDArray[np.uint8]
Numbers: TypeAlias = npt.NDArray[np.int64]
Array: TypeAlias = pa.Array | pa.ChunkedArray


def encode(value: types.Value, field_type: types.IcebergType) -> bytes:
    """The bytes of a non-null value."""
    try:
        if (layout := _FORMATS.get(type(field_type))) is not None:
            return struct.pack(layout, value)
        match field_type:
            case types.BooleanType():
                if not isinstance(value, bool):
                    raise TypeError("give True or False")
                return b"\x01" if value else b"\x00"
            case types.StringType():
                return bytes(value.encode())
            case types.UUIDType():
                return bytes(value.bytes)
            case types.FixedType() | types.BinaryType() | types.GeometryType() | types.GeographyType():
                data = bytes(memoryview(value))
                if isinstance(field_type, types.FixedType):
                    _check_length(data, field_type, field_type.length)
                return data
            case types.DecimalType():
                return _encode_unscaled(_unscaled(value, field_type))
    except (struct.error, OverflowError, AttributeError, TypeError, UnicodeEncodeError) as error:
        raise InvalidValueError(f"{value!r} is not an internal value of type {field_type}: {error}") from None
    raise _no_form(field_type)


def decode(data: bytes, field_type: types.IcebergType) -> types.Value:
    """The decoded value, promoted to the type if the bytes were written for a narrower form."""
    if not isinstance(data, bytes | bytearray | memoryview):
        raise InvalidValueError(f"{data!r} is not the binary form of a {field_type}; give bytes")
    data = bytes(data)
    if type(field_type) in _FORMATS:
        return _decode_number(data, field_type)
    match field_type:
        case types.BooleanType():
            _check_length(data, field_type, 1)
            return data != b"\x00"
        case types.StringType():
            try:
                return data.decode()
            except UnicodeDecodeError as error:
                raise InvalidValueError(f"{data!r} is not a string: {error}") from None
        case types.UUIDType():
            _check_length(data, field_type, 16)
            return uuid.UUID(bytes=data)
        case types.FixedType():
            _check_length(data, field_type, field_type.length)
            return data
        case types.BinaryType() | types.GeometryType() | types.GeographyType():
            return data
        case types.DecimalType():
            return _decode_decimal(data, field_type)
    raise _no_form(field_type)


def _decode_number(data: bytes, field_type: types.IcebergType) -> int | float:
    layout, narrow = _FORMATS[type(field_type)], _FORMATS_BEFORE_PROMOTION.get(type(field_type))
    _check_length(data, field_type, *(struct.calcsize(form) for form in (narrow, layout) if form is not None))
    if narrow is None or len(data) == struct.calcsize(layout):
        return struct.unpack(layout, data)[0]  # type: ignore[no-any-return]  # a number, by the layout
    value = struct.unpack(narrow, data)[0]
    return days_to_ticks(value, _PER_DAY[type(field_type)], field_type) if type(field_type) in _PER_DAY else value


def _no_form(field_type: types.IcebergType) -> InvalidValueError:
    return InvalidValueError(f"{field_type} has no binary single-value form; primitive types but unknown have form")


def _check_length(data: bytes, field_type: types.IcebergType, *lengths: int) -> None:
    if len(data) not in lengths:
        right = " or ".join(map(str, lengths))
        raise InvalidValueError(f"{data[:32]!r} has {len(data)} bytes; the binary form of {field_type} has {right}")


def _unscaled(value: object, field_type: types.DecimalType) -> int:
    if not isinstance(value, Decimal):
        raise InvalidValueError(f"{value!r} is not an internal value of type {field_type}: give a Decimal")
    sign, digits, exponent = value.as_tuple()
    if exponent != -field_type.scale or len(digits) > field_type.precision:
        raise InvalidValueError(
            f"{value!r} is not an internal value of type {field_type}: its scale or precision differs"
        )
    number = int("".join(map(str, digits)))
    return -number if sign else number


def _encode_unscaled(number: int) -> bytes:
    # One bit more than the magnitude needs, for the sign.
    bits = (number if number >= 0 else ~number).bit_length() + 1
    return number.to_bytes((bits + 7) // 8, "big", signed=True)


def _decode_decimal(data: bytes, field_type: types.DecimalType) -> Decimal:
    if not data:
        raise InvalidValueError(f"the binary form of {field_type} is empty; it has at least form byte")
    number = int.from_bytes(data, "big", signed=True)
    if abs(number) >= 10**field_type.precision:
        raise InvalidValueError(
            f"{data[:32]!r} is the unscaled number {number}, which has more digits than {field_type}"
        )
    return Decimal((number < 0, tuple(map(int, str(abs(number)))), -field_type.scale))


# --- whole arrays ----------------------------------------------------------------------------------------------------


def arrow_value_type(field_type: types.IcebergType) -> pa.DataType:
    """The Arrow type that `decode_array` gives for a primitive type; a UUID is 16 bytes."""
    if isinstance(field_type, types.UUIDType):
        return pa.binary(16)
    if not isinstance(field_type, types.PrimitiveType) or isinstance(field_type, types.UnknownType):
        raise _no_form(field_type)
    return type_to_arrow(field_type)


def decode_array(data: Array, field_type: types.IcebergType) -> pa.Array:
    """All values of an Arrow array of bytes, as an array of the natural Arrow type; null stays null."""
    arrow_type = arrow_value_type(field_type)
    array = _one_array(data)
    if pa.types.is_fixed_size_binary(array.type) or array.type == pa.binary_view():
        array = array.cast(pa.binary())
    if not pa.types.is_binary(array.type) and not pa.types.is_large_binary(array.type):
        raise InvalidValueError(f"an array of {array.type} does not hold binary values; give binary")
    if isinstance(field_type, types.StringType | types.BinaryType | types.GeometryType | types.GeographyType):
        return _cast(array, arrow_type, field_type)
    raw, offsets = _bytes_and_offsets(array)
    match field_type:
        case types.BooleanType():
            return pc.not_equal(_with_nulls(_fixed_width(raw, offsets, 1, field_type), array, pa.uint8()), 0)
        case types.UUIDType() | types.FixedType():
            return _with_nulls(_fixed_width(raw, offsets, arrow_type.byte_width, field_type), array, arrow_type)
        case types.DecimalType():
            return _with_nulls(_decode_decimals(raw, offsets, field_type), array, arrow_type)
        case _:
            return _with_nulls(_decode_numbers(raw, offsets, field_type), array, arrow_type)


def encode_array(values: Array, field_type: types.IcebergType) -> pa.Array:
    """The bytes of all values of an Arrow array as a binary array; null stays null."""
    array = _cast(_one_array(values), arrow_value_type(field_type), field_type)
    if pa.types.is_string(array.type) or pa.types.is_binary(array.type) or pa.types.is_fixed_size_binary(array.type):
        return array.cast(pa.binary())
    if isinstance(field_type, types.BooleanType):
        array = array.cast(pa.uint8())
    dense = array.drop_null()
    width = dense.type.bit_width // 8
    raw = np.empty(0, np.uint8)
    if len(dense):
        raw = np.frombuffer(dense.buffers()[1], np.uint8, len(dense) * width, dense.offset * width)
    if isinstance(field_type, types.DecimalType):
        raw, lengths = _encode_decimals(raw.reshape(-1, 16))
    else:
        lengths = np.full(len(dense), width, np.int64)
    sizes = np.zeros(len(array) + 1, np.int64)
    valid = _valid(array)
    sizes[1:][slice(None) if valid is None else valid] = lengths
    offsets = np.cumsum(sizes)
    if offsets[-1] > np.iinfo(np.int32).max:
        raise InvalidValueError(
            f"{len(array)} values of {field_type} are too many for form array; encode them in parts"
        )
    buffers = [_bitmap(valid), pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(np.ascontiguousarray(raw))]
    return pa.Array.from_buffers(pa.binary(), len(array), buffers)


def _one_array(data: Array) -> pa.Array:
    if isinstance(data, pa.ChunkedArray):
        data = data.combine_chunks()
    if isinstance(data, pa.ExtensionArray):
        data = data.storage
    if not isinstance(data, pa.Array):
        raise InvalidValueError(f"{type(data).__name__} is not an Arrow array")
    return data


def _cast(array: pa.Array, arrow_type: pa.DataType, field_type: types.IcebergType) -> pa.Array:
    try:
        return array.cast(arrow_type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidValueError(f"an array of {array.type} does not hold values of {field_type}: {error}") from None


def _bytes_and_offsets(array: pa.Array) -> tuple[Bytes, Numbers]:
    """The concatenated bytes of all non-null values, and the offset of each."""
    dense = array.drop_null()
    _, offset_buffer, data_buffer = dense.buffers()
    if not len(dense):
        return np.empty(0, np.uint8), np.zeros(1, np.int64)
    integer = np.dtype(np.int32 if pa.types.is_binary(dense.type) else np.int64)
    offsets = np.frombuffer(offset_buffer, integer, len(dense) + 1, dense.offset * integer.itemsize).astype(np.int64)
    raw = (
        np.frombuffer(data_buffer, np.uint8) if data_buffer is not None and data_buffer.size else np.empty(0, np.uint8)
    )
    return raw[offsets[0] : offsets[-1]], offsets - offsets[0]


def _fixed_width(raw: Bytes, offsets: Numbers, width: int, field_type: types.IcebergType) -> Bytes:
    """One row of bytes per value, all of the given width."""
    _check_lengths(raw, offsets, field_type, width)
    return raw.reshape(-1, width)


def _check_lengths(raw: Bytes, offsets: Numbers, field_type: types.IcebergType, *widths: int) -> None:
    lengths = np.diff(offsets)
    wrong = np.logical_and.reduce([lengths != width for width in widths])
    if wrong.any():
        at = int(np.argmax(wrong))
        _check_length(raw[offsets[at] : offsets[at + 1]].tobytes(), field_type, *widths)


def _gather(raw: Bytes, starts: Numbers, width: int) -> Bytes:
    """One row of `width` bytes from each start."""
    return np.lib.stride_tricks.sliding_window_view(raw, width)[starts]


def _decode_numbers(raw: Bytes, offsets: Numbers, field_type: types.IcebergType) -> npt.NDArray[Any]:
    layout, narrow = np.dtype(_FORMATS[type(field_type)]), _FORMATS_BEFORE_PROMOTION.get(type(field_type))
    lengths = np.diff(offsets)
    if narrow is None or bool((lengths == layout.itemsize).all()):
        _check_lengths(raw, offsets, field_type, layout.itemsize)
        return raw.view(layout)
    _check_lengths(raw, offsets, field_type, np.dtype(narrow).itemsize, layout.itemsize)
    is_narrow = lengths == np.dtype(narrow).itemsize
    numbers = np.empty(len(lengths), layout)
    old = _gather(raw, offsets[:-1][is_narrow], np.dtype(narrow).itemsize).reshape(-1).view(narrow)
    if (per_day := _PER_DAY.get(type(field_type))) is not None and len(old):
        days_to_ticks(int(old.min()), per_day, field_type)
        days_to_ticks(int(old.max()), per_day, field_type)
        numbers[is_narrow] = old.astype(np.int64) * per_day
    else:
        numbers[is_narrow] = old
    if not is_narrow.all():
        numbers[~is_narrow] = _gather(raw, offsets[:-1][~is_narrow], layout.itemsize).reshape(-1).view(layout)
    return numbers


def _decode_decimals(raw: Bytes, offsets: Numbers, field_type: types.DecimalType) -> Bytes:
    """Rows of 16 little-endian bytes, from big-endian ones of any length."""
    lengths = np.diff(offsets)
    decimals = np.empty((len(lengths), 16), np.uint8)
    for length in np.unique(lengths).tolist():
        if not length:
            raise InvalidValueError(f"the binary form of {field_type} is empty; it has at least form byte")
        rows = np.flatnonzero(lengths == length)
        big_endian = _gather(raw, offsets[rows], length)
        fill = np.where(big_endian[:, :1] & 0x80, 0xFF, 0).astype(np.uint8)
        if length > 16:
            longer = (big_endian[:, :-16] != fill).any() or ((big_endian[:, -16:-15] ^ fill) & 0x80).any()
            if longer:
                raise InvalidValueError(f"a value of {length} bytes has more digits than {field_type}")
            big_endian = big_endian[:, -16:]
        decimals[rows, : big_endian.shape[1]] = big_endian[:, ::-1]
        decimals[rows, big_endian.shape[1] :] = fill
    _check_precision(decimals, field_type)
    return decimals


def _check_precision(rows: Bytes, field_type: types.DecimalType) -> None:
    low, high = rows.reshape(-1).view("<u8")[::2], rows.reshape(-1).view("<i8")[1::2]
    limit_high, limit_low = divmod(10**field_type.precision - 1, 2**64)
    floor_high, floor_low = divmod(1 - 10**field_type.precision, 2**64)
    above = (high > limit_high) | ((high == limit_high) & (low > np.uint64(limit_low)))
    below = (high < floor_high) | ((high == floor_high) & (low < np.uint64(floor_low)))
    if (wrong := above | below).any():
        at = int(np.argmax(wrong))
        _decode_decimal(rows[at, ::-1].tobytes(), field_type)


def _encode_decimals(rows: Bytes) -> tuple[Bytes, Numbers]:
    """Big-endian bytes of 16-byte little-endian rows, each as short as possible, and their lengths."""
    big_endian = rows[:, ::-1]
    fill = np.where(big_endian[:, :1] & 0x80, 0xFF, 0).astype(np.uint8)
    # A byte at the front says nothing when it is all sign and the next byte has the same sign.
    is_idle = (big_endian[:, :-1] == fill) & (((big_endian[:, 1:] ^ fill) & 0x80) == 0)
    idle = np.logical_and.accumulate(is_idle, axis=1).sum(axis=1)
    return big_endian[np.arange(16) >= idle[:, None]], 16 - idle


def _valid(array: pa.Array) -> npt.NDArray[np.bool_] | None:
    """Which values are not null, or None when all are."""
    return array.is_valid().to_numpy(zero_copy_only=False) if array.null_count else None


def _bitmap(valid: npt.NDArray[np.bool_] | None) -> pa.Buffer | None:
    return None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))


def _with_nulls(dense: npt.NDArray[Any], array: pa.Array, arrow_type: pa.DataType) -> pa.Array:
    """The dense values, spread over the positions where the array is not null."""
    valid = _valid(array)
    full = dense
    if valid is not None:
        full = np.zeros((len(array), *dense.shape[1:]), dense.dtype)
        full[valid] = dense
    buffers = [_bitmap(valid), pa.py_buffer(np.require(full, requirements=["C", "A"]))]
    return pa.Array.from_buffers(arrow_type, len(array), buffers, null_count=array.null_count)
