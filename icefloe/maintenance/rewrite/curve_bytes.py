"""The bytes of column values that curves are made of: their order as unsigned bytes is that of the values.

They are those of Java Iceberg: eight bytes of numbers, the first bytes of texts; nulls are all zero.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.errors import InvalidInputError
from icefloe.schema import types

ByteRows = npt.NDArray[np.uint8]
"""So many bytes for each row."""
Ordered = npt.NDArray[np.uint64]

WHOLE_WIDTH = 8
_SIGN = np.uint64(1 << 63)
_TEXTS = types.StringType | types.BinaryType | types.FixedType | types.UUIDType
_DASHES = (8, 13, 18, 23)


def is_text(field_type: types.IcebergType) -> bool:
    """Whether values contribute their first bytes."""
    return isinstance(field_type, _TEXTS)


def check_bytes(name: str, field_type: types.IcebergType) -> None:
    """Fail if values of the type have no such bytes."""
    if not isinstance(field_type, types.PrimitiveType) or isinstance(
        field_type, types.DecimalType | types.UnknownType | types.GeometryType | types.GeographyType
    ):
        raise InvalidInputError(
            f"column {name!r} of type {field_type} cannot be part of a curve by bytes; use numbers, dates, times, booleans,"
            " texts, binary or uuid"
        )


def column_bytes(values: pa.Array, field_type: types.IcebergType, text_width: int) -> ByteRows:
    """The bytes of a column."""
    if is_text(field_type):
        return text_bytes(values, field_type, text_width)
    if isinstance(field_type, types.BooleanType):
        rows = np.zeros((len(values), WHOLE_WIDTH), np.uint8)
        rows[:, 0] = np.where(pc.fill_null(values, False).to_numpy(zero_copy_only=False), 0x81, 0)
        return rows
    numbers = ordered_numbers(values, field_type)
    numbers[np.asarray(values.is_null())] = 0
    return numbers.astype(">u8").view(np.uint8).reshape(len(values), WHOLE_WIDTH)


def ordered_numbers(values: pa.Array, field_type: types.IcebergType) -> Ordered:
    """Unsigned numbers that are in the order of the values; whatever for nulls."""
    if isinstance(field_type, types.FloatType | types.DoubleType | types.DecimalType):
        floats = pc.fill_null(values.cast(pa.float64()), 0.0).to_numpy(zero_copy_only=False)
        # One NaN, as in Java.
        bits: Ordered = np.where(np.isnan(floats), np.nan, floats).view(np.uint64)
        return np.where(bits & _SIGN, ~bits, bits | _SIGN)
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.int8())
    elif pa.types.is_temporal(values.type):
        values = values.cast(pa.int32() if values.type.bit_width == 32 else pa.int64())
    numbers = pc.fill_null(values, 0).to_numpy(zero_copy_only=False).astype(np.int64)
    if isinstance(field_type, types.TimestamptzType):
        numbers = numbers // 1_000_000  # Java's casts to whole seconds
    ordered: Ordered = numbers.view(np.uint64) ^ _SIGN
    return ordered


def text_bytes(values: pa.Array, field_type: types.IcebergType, width: int) -> ByteRows:
    """The first bytes of texts, filled up with zeros; characters are not cut."""
    if isinstance(values.type, pa.BaseExtensionType):
        values = values.cast(values.type.storage_type)
    if isinstance(field_type, types.UUIDType) and pa.types.is_fixed_size_binary(values.type):
        return _uuid_texts(values)[:, :width] if width < 36 else _widened(_uuid_texts(values), width)
    values = values.cast(pa.large_binary())
    if not len(values):
        return np.empty((0, width), np.uint8)
    offsets = np.frombuffer(values.buffers()[1], np.int64, len(values) + 1, values.offset * 8)
    data = np.frombuffer(values.buffers()[2] or b"", np.uint8)
    # One byte more, so that the end of the last text can be looked at.
    data = np.append(data, np.uint8(0))
    starts, lengths = offsets[:-1], np.where(np.asarray(values.is_null()), 0, np.diff(offsets))
    if isinstance(field_type, types.StringType):
        lengths = _whole_characters(data, starts, lengths, width)
    column = np.arange(width)
    inside = column < lengths[:, None]
    at = np.where(inside, starts[:, None] + column, len(data) - 1)
    return np.where(inside, data[at], np.uint8(0))


def _whole_characters(
    data: ByteRows, starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64], width: int
) -> npt.NDArray[np.int64]:
    """How many of the first bytes of texts are whole characters."""
    cut = np.minimum(lengths, width)
    for _ in range(3):
        is_inside = (cut < lengths) & ((data[np.minimum(starts + cut, len(data) - 1)] & 0xC0) == 0x80)
        cut = np.where(is_inside, cut - 1, cut)
    return cut


def _uuid_texts(values: pa.Array) -> ByteRows:
    """UUIDs as their texts, which is what Spark has of them."""
    rows = np.zeros((len(values), 36), np.uint8)
    raw = np.frombuffer(b"".join(each or bytes(16) for each in values.to_pylist()), np.uint8).reshape(len(values), 16)
    digits = np.stack([raw >> 4, raw & 15], axis=2).reshape(len(values), 32)
    letters = np.frombuffer(b"0123456789abcdef", np.uint8)[digits]
    rows[:, [each for each in range(36) if each not in _DASHES]] = letters
    rows[:, list(_DASHES)] = ord("-")
    rows[np.asarray(values.is_null())] = 0
    return rows


def _widened(rows: ByteRows, width: int) -> ByteRows:
    return np.pad(rows, ((0, 0), (0, width - rows.shape[1])))
