"""From Arrow columns to Avro rows: lays the columns out for the encoder, makes its program, and cuts rows into blocks."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icefloe.avro import operations as op
from icefloe.avro.iceberg_schema_codec import decimal_width
from icefloe.avro.kernels import encoder_for
from icefloe.avro.plain_walker import Bytes, Longs
from icefloe.schema import types

BLOCK_BYTES = 128 << 10
"""How large the rows of one block grow before they are compressed."""

SLICE_ROWS = 16_384
"""How many rows are laid out at once."""

Lookup = Mapping[int, pa.Array | bytes]
"""Columns by field id. A list of structs has its lengths under its own id and items under the ids of their fields."""


def encode_rows(struct: types.StructType, columns: Lookup, rows: int) -> Iterator[tuple[int, memoryview]]:
    """The rows as Avro, block by block: (rows, bytes). Required fields without a column must not exist."""
    for start in range(0, rows, SLICE_ROWS):
        count = min(SLICE_ROWS, rows - start)
        part = {field_id: _sliced(column, start, count) for field_id, column in columns.items()}
        yield from _encode_slice(struct, part, count)


def _sliced(column: pa.Array | bytes, start: int, count: int) -> pa.Array | bytes:
    return column if isinstance(column, bytes) or len(column) == count else column.slice(start, count)


def _encode_slice(struct: types.StructType, columns: Lookup, rows: int) -> Iterator[tuple[int, memoryview]]:
    layout = _Layout()
    for field in struct.fields:
        layout.field(field, columns)
    program, numbers, valid, arena = layout.finish()
    room = max(4 * BLOCK_BYTES, len(arena) + 8 * len(numbers) // 2)
    encode = encoder_for(len(arena) + 2 * len(numbers)).encode
    done = 0
    while done < rows:
        target = np.empty(room, np.uint8)
        blocks = np.empty((room // BLOCK_BYTES + 2, 2), np.int64)
        written, noted, _ = encode(program, numbers, valid, arena, done, rows, target, BLOCK_BYTES, blocks)
        if written == 0:
            room *= 4
            continue
        done += int(written)
        view, start = target.data, 0
        for count, end in blocks[:noted].tolist():
            yield count, view[start:end]
            start = end


class _Run:
    """Arrays put one behind the other, after some zeros; `add` says where an array starts."""

    def __init__(self, dtype: type[np.generic], start: int) -> None:
        self.parts: list[npt.NDArray[Any]] = [np.zeros(start, dtype)]
        self.size = start

    def add(self, values: npt.NDArray[Any]) -> int:
        self.parts.append(values.astype(self.parts[0].dtype, copy=False))
        self.size += len(values)
        return self.size - len(values)


class _Layout:
    """Columns side by side in three arrays, and the operations over them."""

    def __init__(self) -> None:
        self.ops: list[int] = []
        self.numbers, self.marks, self.texts = _Run(np.int64, 1), _Run(np.uint8, 1), _Run(np.uint8, 8)

    def finish(self) -> tuple[Longs, Longs, Bytes, Bytes]:
        self.put(op.PUT_END)
        numbers, marks, texts = (np.concatenate(run.parts) for run in (self.numbers, self.marks, self.texts))
        return np.array(self.ops, np.int64), numbers, marks, texts

    def add_marks(self, column: pa.Array) -> int:
        if not column.null_count:
            return -1
        return self.marks.add(column.is_valid().to_numpy(zero_copy_only=False))

    def add_texts(self, column: pa.Array) -> int:
        """Text or bytes of any length: the numbers are where each starts in the arena."""
        offsets = np.frombuffer(column.buffers()[1], np.int32, len(column) + 1, column.offset * 4).astype(np.int64)
        if len(column) == 0:
            offsets = np.zeros(1, np.int64)
        data = column.buffers()[2]
        raw = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(0, np.uint8)
        start = self.texts.add(raw[offsets[0] : offsets[-1]])
        return self.numbers.add(offsets - offsets[0] + start)

    # -- operations

    def field(self, field: types.NestedField, columns: Lookup) -> None:
        column = columns.get(field.field_id)
        if isinstance(field.field_type, types.StructType):
            self.struct(field, field.field_type, columns)
        elif isinstance(field.field_type, types.UnknownType):
            pass
        elif isinstance(field.field_type, types.VariantType):
            self.variant(column)
        elif column is None:
            if field.required:
                raise AssertionError(f"required field {field.name!r} has no column")
            self.raw(b"\x00")
        elif isinstance(column, bytes):
            self.raw(column)
        else:
            self.value(field.field_type, column, int(field.optional), columns)

    def put(self, *ops: int) -> None:
        self.ops += ops

    def raw(self, data: bytes) -> None:
        self.put(op.PUT_RAW, len(data), *data)

    def struct(self, field: types.NestedField, struct: types.StructType, columns: Lookup) -> None:
        """An optional struct is there where its own column, a boolean mark, is true."""
        jump = None
        if field.optional:
            mark = columns.get(field.field_id)
            if mark is None:
                self.raw(b"\x00")
                return
            assert not isinstance(mark, bytes)
            self.put(op.PUT_IF, 0, self.marks.add(mark.to_numpy(zero_copy_only=False)), 1, 0)
            jump = len(self.ops) - 1
        for child in struct.fields:
            self.field(child, columns)
        if jump is not None:
            self.ops[jump] = len(self.ops)

    def variant(self, column: pa.StructArray | None) -> None:
        """An optional variant, from a column of its two parts."""
        if column is None:
            self.raw(b"\x00")
            return
        self.put(op.PUT_IF, 0, self.marks.add(column.is_valid().to_numpy(zero_copy_only=False)), 1, 0)
        jump = len(self.ops) - 1
        for name in ("metadata", "value"):
            self.put(op.PUT_TEXT, self.add_texts(column.field(name)), -1, 0)
        self.ops[jump] = len(self.ops)

    def value(self, kind: types.IcebergType, column: pa.Array, optional: int, columns: Lookup) -> None:
        marks = self.add_marks(column)
        match kind:
            case types.BooleanType():
                numbers = column.cast(pa.uint8()).fill_null(0).to_numpy()
                self.put(op.PUT_BOOL, self.numbers.add(numbers), marks, optional)
            case types.FloatType():
                self.put(op.PUT_FLOAT, self.numbers.add(_plain(column).to_numpy().view(np.int32)), marks, optional)
            case types.DoubleType():
                self.put(op.PUT_DOUBLE, self.numbers.add(_plain(column).to_numpy().view(np.int64)), marks, optional)
            case types.StringType() | types.BinaryType() | types.GeometryType() | types.GeographyType():
                self.put(op.PUT_TEXT, self.add_texts(column), marks, optional)
            case types.DecimalType() | types.UUIDType() | types.FixedType():
                raw, length = _fixed_bytes(column, kind)
                self.put(op.PUT_FIXED, self.texts.add(raw), marks, optional, length)
            case types.ListType():
                self.each(kind, column, marks, optional, columns)
            case types.MapType():
                self.pairs(kind, column, marks, optional)
            case _:
                self.put(op.PUT_LONG, self.numbers.add(_numbers(column)), marks, optional)

    def pairs(self, kind: types.MapType, column: pa.Array, marks: int, optional: int) -> None:
        items, offsets = _items(column)
        base = self.numbers.add(offsets)
        keys = self.numbers.add(items.field(0).to_numpy())
        if isinstance(kind.value_type, types.BinaryType):
            self.put(op.PUT_PAIRS_TEXT, base, marks, optional, keys, self.add_texts(items.field(1)))
        else:
            values = self.numbers.add(items.field(1).to_numpy())
            self.put(op.PUT_PAIRS_LONG, base, marks, optional, keys, values)

    def each(self, kind: types.ListType, column: pa.ListArray, marks: int, optional: int, columns: Lookup) -> None:
        items, offsets = _items(column)
        self.put(op.PUT_EACH, self.numbers.add(offsets), marks, optional, 0)
        jump = len(self.ops) - 1
        start = len(self.ops)
        element = kind.element_type
        if isinstance(element, types.StructType):
            names = {field.field_id: items.field(i) for i, field in enumerate(element.fields)}
            for child in element.fields:
                self.field(child, {**columns, **names})
        else:
            self.value(element, items, int(not kind.element_required), columns)
        self.put(op.PUT_NEXT, start)
        self.ops[jump] = len(self.ops)


def _items(column: pa.ListArray | pa.MapArray) -> tuple[pa.Array, Longs]:
    """The items of a list or map column that its rows use, and where each row's start among them."""
    if len(column) == 0:
        return column.values.slice(0, 0), np.zeros(1, np.int64)
    offsets = np.frombuffer(column.buffers()[1], np.int32, len(column) + 1, column.offset * 4).astype(np.int64)
    first, last = int(offsets[0]), int(offsets[-1])
    return column.values.slice(first, last - first), offsets - first


def _plain(column: pa.Array) -> pa.Array:
    """The same values with something in the place of nulls, so that they are one run of memory."""
    return column.fill_null(0) if column.null_count else column


def _numbers(column: pa.Array) -> Any:
    if pa.types.is_date(column.type):
        column = column.view(pa.int32())
    elif not pa.types.is_integer(column.type):
        column = column.view(pa.int64())
    return _plain(column).to_numpy()


def _fixed_bytes(column: pa.Array, kind: types.IcebergType) -> tuple[Bytes, int]:
    width = column.type.byte_width if hasattr(column.type, "byte_width") else 16
    raw = np.frombuffer(column.buffers()[1], np.uint8, len(column) * width, column.offset * width)
    if isinstance(kind, types.DecimalType):
        length = decimal_width(kind.precision)
        return np.ascontiguousarray(raw.reshape(-1, width)[:, :length][:, ::-1]).reshape(-1), length
    return raw, width
