"""Transforms of whole Arrow columns, with the same results as `Transform.apply` value by value.

Columns may come in any Arrow type that holds values of the source type without loss: large or view strings,
dictionaries, plain `fixed_size_binary(16)` for a uuid. Results are in the Arrow type of the result type.
"""

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.errors import InvalidTransformError, InvalidValueError
from icefloe.partitioning import transforms as tr
from icefloe.partitioning.murmur import BLOCK, hash_longs, hash_ranges
from icefloe.schema import type_to_arrow, types

Column: TypeAlias = pa.Array | pa.ChunkedArray
Ranges: TypeAlias = tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64], npt.NDArray[np.int64]]
"""Bytes, and where in them each value starts and how long it is."""

DECIMAL_BYTES = 16
_NUMPY_UNITS = {"year": "datetime64[Y]", "month": "datetime64[M]", "day": "datetime64[D]"}
NANOS_PER_MICRO = 1000


def transform_array(transform: tr.Transform, array: Column, field_type: types.IcebergType) -> Column:
    """The partition values of a column of the type: an `Array` for an `Array`, a `ChunkedArray` for a `ChunkedArray`."""
    if isinstance(transform, tr.UnknownTransform):
        raise InvalidTransformError(f"transform {transform.text!r} is unknown, so it cannot be applied")
    if not transform.can_transform(field_type):
        raise InvalidTransformError(f"transform {transform} does not support columns of type {field_type}")
    if isinstance(array, pa.ChunkedArray):
        chunks = [_transform(transform, chunk, field_type) for chunk in array.chunks]
        return pa.chunked_array(chunks, type_to_arrow(transform.result_type(field_type)))
    return _transform(transform, array, field_type)


def _transform(transform: tr.Transform, array: pa.Array, field_type: types.IcebergType) -> pa.Array:
    result_type = type_to_arrow(transform.result_type(field_type))
    if len(array) == 0 or isinstance(transform, tr.VoidTransform):
        return pa.nulls(len(array), result_type)
    if pa.types.is_dictionary(array.type):
        if len(array.dictionary) <= len(array):
            return _transform(transform, array.dictionary, field_type).take(array.indices)
        array = array.dictionary_decode()
    if pa.types.is_run_end_encoded(array.type):
        array = pc.run_end_decode(array)
    match transform:
        case tr.IdentityTransform():
            return _as_type(array, field_type)
        case tr.BucketTransform():
            hashes = _hashes(array, field_type)
            hashes &= np.uint32(tr.MAX_INT)
            hashes %= np.uint32(transform.num_buckets)
            return _with_nulls_of(array, hashes.astype(np.int32), result_type)
        case tr.TruncateTransform():
            return _truncated(transform, array, field_type)
        case tr.TimeTransform():
            return _with_nulls_of(array, _units(transform, _as_type(array, field_type), field_type), result_type)
        case _:
            raise AssertionError(f"transform {transform!r} has no form for arrays")


def _hashes(array: pa.Array, field_type: types.IcebergType) -> npt.NDArray[np.uint32]:
    match field_type:
        case types.StringType() | types.BinaryType():
            return hash_ranges(*_byte_ranges(array, field_type))
        case types.FixedType() | types.UUIDType():
            typed = _as_type(array, field_type)
            storage = typed.storage if isinstance(typed, pa.ExtensionArray) else typed
            return _hash_fixed(storage)
        case types.DecimalType():
            typed = _as_type(array, field_type)
            blocks = [typed.slice(start, BLOCK) for start in range(0, len(typed), BLOCK)]
            return np.concatenate([hash_ranges(*_decimal_ranges(block)) for block in blocks])
        case _:
            values = _integers(_as_type(array, field_type))
            return hash_longs(values // NANOS_PER_MICRO if isinstance(field_type, tr.NANOSECOND_TYPES) else values)


def _hash_fixed(array: pa.Array) -> npt.NDArray[np.uint32]:
    width = array.type.byte_width
    starts = (np.arange(len(array), dtype=np.int64) + array.offset) * width
    return hash_ranges(_bytes_of(array.buffers()[1]), starts, np.full(len(array), width, np.int64))


def _byte_ranges(array: pa.Array, field_type: types.IcebergType) -> Ranges:
    if pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type):
        width: type[np.int32 | np.int64] = np.int64
    else:
        array, width = _as_type(array, field_type), np.int32
    _, offsets, data = array.buffers()
    size = np.dtype(width).itemsize
    ends = np.frombuffer(offsets, width, len(array) + 1, array.offset * size).astype(np.int64)
    return _bytes_of(data), ends[:-1], np.diff(ends)


def _decimal_ranges(array: pa.Array) -> Ranges:
    """The ranges of the minimal big-endian bytes of all unscaled values."""
    size, offset = DECIMAL_BYTES * len(array), DECIMAL_BYTES * array.offset
    little = np.frombuffer(array.buffers()[1], np.uint8, size, offset).reshape(-1, DECIMAL_BYTES)
    big = np.ascontiguousarray(little[:, ::-1])
    high, low = _halves(array)
    sign = high >> 63
    # Flipping the bits of negative numbers leaves the leading zeros that two's complement does not need.
    flipped = np.stack([(low ^ sign).view(np.uint64), (high ^ sign).view(np.uint64)])
    lengths = np.ones(len(array), np.int64)
    for index in range(1, DECIMAL_BYTES):
        half, shift = divmod(8 * index - 1, 64)
        rest = flipped[half] >> np.uint64(shift)
        lengths += (rest != 0) | (flipped[1] != 0) if half == 0 else rest != 0
    starts = np.arange(1, len(array) + 1, dtype=np.int64) * DECIMAL_BYTES - lengths
    return big.reshape(-1), starts, lengths


def _truncated(transform: tr.TruncateTransform, array: pa.Array, field_type: types.IcebergType) -> pa.Array:
    match field_type:
        case types.StringType():
            text = _as_type(array, field_type) if not pa.types.is_large_string(array.type) else array
            return _as_type(pc.utf8_slice_codeunits(text, 0, transform.width), field_type)
        case types.BinaryType():
            data = _as_type(array, field_type) if not pa.types.is_large_binary(array.type) else array
            return _as_type(pc.binary_slice(data, 0, transform.width), field_type)
        case types.DecimalType():
            return _truncated_decimals(transform, _as_type(array, field_type), field_type)
        case _:
            typed = _as_type(array, field_type)
            values = _values(typed, np.int32 if isinstance(field_type, types.IntegerType) else np.int64)
            width = values.dtype.type(transform.width)
            # Below the least value of the type subtraction comes round to the greatest ones, as it does in Java.
            return _with_nulls_of(typed, values - values % width, typed.type)


def _truncated_decimals(transform: tr.TruncateTransform, array: pa.Array, field_type: types.DecimalType) -> pa.Array:
    high, low = _halves(array)
    width = np.int64(transform.width)
    words = low.view("<u4").reshape(-1, 2).astype(np.int64)
    # The remainder, 32 bits at a time from the top: it stays below 2^31, so that nothing overflows.
    remainder = (high >> 32) % width
    for word in (high & 0xFFFFFFFF, words[:, 1], words[:, 0]):
        remainder = ((remainder << 32) | word) % width
    unsigned = low.view(np.uint64)
    results = np.empty((len(array), 2), "<i8")
    results[:, 0] = (unsigned - remainder.view(np.uint64)).view(np.int64)
    results[:, 1] = high - (unsigned < remainder.view(np.uint64))
    truncated = _with_nulls_of(array, results, array.type)
    try:
        truncated.validate(full=True)
    except pa.ArrowInvalid as error:
        raise InvalidValueError(f"{transform} of a value does not fit in type {field_type}: {error}") from None
    return truncated


def _units(transform: tr.TimeTransform, array: pa.Array, field_type: types.IcebergType) -> npt.NDArray[np.int32]:
    values = _integers(array)
    if isinstance(transform, tr.HourTransform):
        hours = values // tr.per_hour(field_type)
        _refuse(array, (hours > tr.MAX_INT) | (hours < -tr.MAX_INT - 1), "its hours from 1970 do not fit in an int")
        return hours.astype(np.int32)
    if not isinstance(field_type, types.DateType):
        values = values // (tr.per_hour(field_type) * tr.HOURS_PER_DAY)
    return values.view("datetime64[D]").astype(_NUMPY_UNITS[transform.unit]).astype(np.int32)


def _as_type(array: pa.Array, field_type: types.IcebergType) -> pa.Array:
    target = type_to_arrow(field_type)
    if array.type == target:
        return array
    try:
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
        if isinstance(field_type, types.UUIDType):
            return pa.ExtensionArray.from_storage(target, array.cast(target.storage_type))
        return array.cast(target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise InvalidValueError(
            f"Arrow column of type {array.type} does not hold values of type {field_type}: {error}"
        ) from None


def _refuse(array: pa.Array, bad: npt.NDArray[np.bool_], why: str) -> None:
    if bad.any():
        first = pc.drop_null(array.filter(pa.array(bad))).slice(0, 1)
        if len(first):
            raise InvalidValueError(f"value {_integers(first)[0]} of type {array.type} is refused: {why}")


def _with_nulls_of(array: pa.Array, values: npt.NDArray[Any], arrow_type: pa.DataType) -> pa.Array:
    filled = pa.Array.from_buffers(arrow_type, len(array), [None, pa.py_buffer(np.ascontiguousarray(values))])
    return pc.if_else(array.is_valid(), filled, pa.scalar(None, arrow_type)) if array.null_count else filled


def _integers(array: pa.Array) -> npt.NDArray[np.int64]:
    return _values(array, np.int32 if array.type.bit_width == 32 else np.int64).astype(np.int64, copy=False)


def _values(array: pa.Array, width: type[np.int32 | np.int64]) -> npt.NDArray[Any]:
    size = np.dtype(width).itemsize
    return np.frombuffer(array.buffers()[1], width, len(array), array.offset * size)


def _halves(array: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The high and low 64 bits of decimals."""
    pairs = np.frombuffer(array.buffers()[1], "<i8", 2 * len(array), array.offset * DECIMAL_BYTES).reshape(-1, 2)
    return np.ascontiguousarray(pairs[:, 1]), np.ascontiguousarray(pairs[:, 0])


def _bytes_of(buffer: pa.Buffer | None) -> npt.NDArray[np.uint8]:
    return np.frombuffer(buffer, np.uint8) if buffer is not None and buffer.size else np.empty(0, np.uint8)
