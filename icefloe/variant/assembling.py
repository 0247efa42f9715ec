"""How whole columns of values become columns of encoded variant values: primitives, arrays and objects, without a loop over rows.

The bytes are those that `writing` gives for the same values one by one. An encoded column is a binary array; null is no value.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.variant.values import VARIANT_NULL, VariantKind

Integers = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]

MAX_SHORT_STRING = 63
"""The length of the longest text that has its length in its first byte."""
MAX_SMALL_COUNT = 255
"""How many values a container holds whose number of values takes one byte."""
_BYTE = 0xFF
_LONG_TEXT = 5
"""The bytes before the text of a long string: its type, and its length in four."""


def encode_column(typed: pa.Array, kind: VariantKind | None) -> pa.BinaryArray:
    """Each value of an Arrow column of primitives as a variant of this kind; None is for booleans and texts."""
    if pa.types.is_boolean(typed.type):
        numbers = pc.fill_null(typed, False).to_numpy(zero_copy_only=False)
        kinds = np.where(numbers, VariantKind.TRUE << 2, VariantKind.FALSE << 2).astype(np.uint8)
        return _fixed(kinds.reshape(-1, 1), typed)
    if kind is None:
        return _texts(typed)
    if kind is VariantKind.BINARY:
        return _binaries(typed)
    if pa.types.is_decimal(typed.type):
        return _decimals(typed, kind)
    if kind is VariantKind.UUID:
        body = _fixed_bytes(pc.fill_null(typed, bytes(16)), 16)
    else:
        numbers = pc.fill_null(typed, 0).to_numpy(zero_copy_only=False)
        little = numbers.astype(numbers.dtype.newbyteorder("<"), copy=False)
        body = np.ascontiguousarray(little).view(np.uint8).reshape(len(typed), little.itemsize)
    return _fixed(np.hstack([_repeated(kind << 2, len(typed)), body]), typed)


def encode_lists(
    elements: pa.BinaryArray, lengths: Integers, is_there: Mask, ids: Integers | None = None
) -> pa.BinaryArray:
    """Arrays of encoded elements, which stand one after the other; null where the array is not there.

    With ids in the dictionaries, they are objects of fields in the order of their names.
    """
    if elements.null_count:
        elements = pc.fill_null(elements, VARIANT_NULL)
    ends = binary_offsets(elements)
    borders = np.concatenate([[0], np.cumsum(lengths)])
    firsts = ends[borders[:-1]]
    sizes = ends[borders[1:]] - firsts
    widths, is_large = widths_of(sizes), lengths > MAX_SMALL_COUNT
    rows = np.repeat(np.arange(len(lengths)), lengths + 1)
    entries = ends[np.arange(len(rows)) - rows] - firsts[rows]
    tables = [_tables(entries, widths[rows], (lengths + 1) * widths)]
    if ids is None:
        first = ((widths - 1) | is_large << 2) << 2 | 0b11
    else:
        owners = np.repeat(np.arange(len(lengths)), lengths)
        highest = np.zeros(len(lengths), np.int64)
        np.maximum.at(highest, owners, ids)
        id_widths = widths_of(highest)
        first = (widths - 1 | (id_widths - 1) << 2 | is_large << 4) << 2 | 0b10
        tables.insert(0, _tables(ids, id_widths[owners], lengths * id_widths))
    heads = _heads(first, lengths, is_large)
    bodies = pa.BinaryArray.from_buffers(
        pa.binary(), len(lengths), [None, pa.py_buffer(ends[borders].astype(np.int32)), elements.buffers()[2]]
    )
    return _joined([heads, *tables, bodies], is_there)


def encode_objects(fields: Mapping[str, pa.BinaryArray], ids: Mapping[str, Integers], is_there: Mask) -> pa.BinaryArray:
    """Objects of encoded fields, where a field is null that an object lacks; null where the object is not there.

    `ids` has the id of each name in the dictionary of each row.
    """
    names = sorted(fields, key=str.encode)
    rows, count = len(is_there), len(names)
    columns = [fields[name] for name in names]
    if (prefix := _small_prefix(columns, [ids[name] for name in names], rows)) is not None:
        return _joined([prefix, *columns], is_there)
    is_present = _columns((column.is_valid().to_numpy(zero_copy_only=False) for column in columns), rows, np.bool_)
    is_present &= is_there[:, None]
    lengths = _columns((_lengths(column) for column in columns), rows, np.int64) * is_present
    numbers = _columns((ids[name] for name in names), rows, np.int64) * is_present
    offsets = np.zeros((rows, count + 1), np.int64)
    np.cumsum(lengths, axis=1, out=offsets[:, 1:])
    widths = widths_of(offsets[:, -1])
    id_widths = widths_of(numbers.max(axis=1, initial=0))
    counts = is_present.sum(axis=1)
    is_large = counts > MAX_SMALL_COUNT
    heads = _heads((widths - 1 | (id_widths - 1) << 2 | is_large << 4) << 2 | 0b10, counts, is_large)
    # Of a field that is missing, the offset is left out too; the last one is the size of all.
    has_offset = np.hstack([is_present, np.ones((rows, 1), np.bool_)])
    entries, entry_widths = np.hstack([numbers, offsets]), np.repeat([id_widths, widths], [count, count + 1], axis=0).T
    is_entry = np.hstack([is_present, has_offset])
    tables = _tables(entries[is_entry], entry_widths[is_entry], counts * id_widths + (counts + 1) * widths)
    return _joined([heads, tables, *columns], is_there)


def _small_prefix(columns: list[pa.BinaryArray], ids: list[Integers], rows: int) -> pa.BinaryArray | None:
    """What comes before the fields of objects that all have the same few fields, and are small; None if not all are so."""
    count = len(columns)
    if count > MAX_SMALL_COUNT or any(column.null_count for column in columns):
        return None
    prefix = np.empty((rows, 3 + 2 * count), np.uint8)
    prefix[:, :2] = 0b10, count
    offsets = np.zeros(rows, np.int64)
    for position, (column, numbers) in enumerate(zip(columns, ids, strict=True)):
        if rows and (numbers.min() < 0 or numbers.max() > _BYTE):
            return None
        prefix[:, 2 + position] = numbers
        prefix[:, 2 + count + position] = offsets
        offsets += np.diff(binary_offsets(column))
    if rows and offsets.max() > _BYTE:
        return None
    prefix[:, -1] = offsets
    return to_binary(prefix.reshape(-1), np.full(rows, prefix.shape[1]))


def widths_of(numbers: Integers) -> Integers:
    """How many bytes each number needs, one at least."""
    return 1 + (numbers > 0xFF).astype(np.int64) + (numbers > 0xFFFF) + (numbers > 0xFFFFFF)


def binary_offsets(array: pa.BinaryArray) -> Integers:
    """Where in its buffer of bytes each value begins, and where the last one ends."""
    raw = np.frombuffer(array.buffers()[1], np.int32, len(array) + 1, array.offset * 4) if len(array) else np.zeros(1)
    return raw.astype(np.int64)


def to_binary(data: Bytes, lengths: Integers, is_valid: Mask | None = None) -> pa.BinaryArray:
    """Bytes that stand one after the other as values of these lengths."""
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    validity = None if is_valid is None else pa.py_buffer(np.packbits(is_valid, bitorder="little"))
    return pa.BinaryArray.from_buffers(
        pa.binary(), len(lengths), [validity, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(data))]
    )


def _texts(typed: pa.Array) -> pa.BinaryArray:
    plain = typed.cast(pa.binary())
    plain.cast(pa.string())  # an error for bytes that are no UTF-8
    lengths = _lengths(plain)
    is_long = lengths > MAX_SHORT_STRING
    first = np.where(is_long, VariantKind.STRING << 2, lengths << 2 | 0b01)
    return _prefixed(first, is_long, plain)


def _binaries(typed: pa.Array) -> pa.BinaryArray:
    plain = typed.cast(pa.binary())
    return _prefixed(np.full(len(plain), VariantKind.BINARY << 2), np.ones(len(plain), np.bool_), plain)


def _prefixed(first: Integers, is_long: Mask, plain: pa.BinaryArray) -> pa.BinaryArray:
    if not is_long.any():
        prefix = to_binary(first.astype(np.uint8), np.ones(len(plain), np.int64))
        return pc.binary_join_element_wise(prefix, plain, b"", null_handling="emit_null")
    heads = np.hstack([first.astype(np.uint8).reshape(-1, 1), _little(_lengths(plain), 4)])
    has = np.ones((len(plain), _LONG_TEXT), np.bool_)
    has[:, 1:] = is_long[:, None]
    prefix = to_binary(heads[has], np.where(is_long, _LONG_TEXT, 1))
    return pc.binary_join_element_wise(prefix, plain, b"", null_handling="emit_null")


def _decimals(typed: pa.Array, kind: VariantKind) -> pa.BinaryArray:
    width = {VariantKind.DECIMAL4: 4, VariantKind.DECIMAL8: 8, VariantKind.DECIMAL16: 16}[kind]
    wide = typed.cast(pa.decimal128(typed.type.precision, typed.type.scale))
    unscaled = _fixed_bytes(wide, 16)[:, :width]
    heads = np.hstack([_repeated(kind << 2, len(typed)), _repeated(typed.type.scale, len(typed))])
    return _fixed(np.hstack([heads, unscaled]), typed)


def _fixed_bytes(array: pa.Array, width: int) -> Bytes:
    raw = np.frombuffer(array.buffers()[1] or b"", np.uint8, len(array) * width, array.offset * width)
    return raw.reshape(-1, width)


def _fixed(rows: Bytes, typed: pa.Array) -> pa.BinaryArray:
    """Rows of equally many bytes; null where the typed value is."""
    is_valid = typed.is_valid().to_numpy(zero_copy_only=False) if typed.null_count else None
    return to_binary(rows.reshape(-1), np.full(len(rows), rows.shape[1]), is_valid)


def _heads(first: Integers, counts: Integers, is_large: Mask) -> pa.BinaryArray:
    heads = np.hstack([first.astype(np.uint8).reshape(-1, 1), _little(counts, 4)])
    has = np.ones(heads.shape, np.bool_)
    has[:, 2:] = is_large[:, None]
    return to_binary(heads[has], np.where(is_large, 5, 2))


def _tables(entries: Integers, widths: Integers, lengths: Integers) -> pa.BinaryArray:
    """The entries, each in so many bytes, as values of these lengths."""
    if (widths == 1).all():
        return to_binary(entries.astype(np.uint8), lengths)
    return to_binary(_little(entries, 4)[np.arange(4) < widths[:, None]], lengths)


def _little(numbers: Integers, width: int) -> Bytes:
    return numbers.astype("<u4").view(np.uint8).reshape(-1, 4)[:, :width]


def _repeated(byte: int, rows: int) -> Bytes:
    return np.full((rows, 1), byte, np.uint8)


def _columns(columns: Iterable[npt.NDArray[Any]], rows: int, kind: type[Any]) -> npt.NDArray[Any]:
    listed = list(columns)
    return np.column_stack(listed).astype(kind, copy=False) if listed else np.zeros((rows, 0), kind)


def _lengths(array: pa.BinaryArray) -> Integers:
    lengths: Integers = pc.fill_null(pc.binary_length(array), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    return lengths


def _joined(parts: Sequence[pa.BinaryArray], is_there: Mask) -> pa.BinaryArray:
    joined = pc.binary_join_element_wise(*parts, b"", null_handling="skip")
    return joined if is_there.all() else pc.if_else(pa.array(is_there), joined, pa.scalar(None, pa.binary()))
