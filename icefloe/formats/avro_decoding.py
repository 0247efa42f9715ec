"""Blocks of Avro rows as Arrow arrays of the types that a file's columns stand for."""

import io
import struct
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from fastavro.types import Schema as FastSchema

from icefloe.avro.blocks import zigzag
from icefloe.avro.container import Container, inflate
from icefloe.errors import CorruptFileError
from icefloe.formats.avro_nodes import (
    AvroArray,
    AvroLeaf,
    AvroMap,
    AvroNode,
    AvroOption,
    AvroRecord,
    smallest_size,
    wire_schema,
)
from icefloe.schema import types
from icefloe.schema.arrow import schema_to_arrow
from icefloe.schema.schema import Schema

_RAW = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
}
_DAMAGE = (
    EOFError,
    IndexError,
    KeyError,
    MemoryError,
    OverflowError,
    RecursionError,
    TypeError,
    ValueError,
    struct.error,
    fastavro.read.SchemaResolutionError,
    pa.ArrowException,
)
"""What fastavro and pyarrow raise over bytes that are not what the schema says."""

_MOST_ROWS = 1 << 22
"""How many rows one block may hold; writers end a block after some ten thousand bytes."""


@dataclass(frozen=True, slots=True)
class AvroBlock:
    """Rows of a file, still as Avro bytes; `first_row` is the position of the first one where it was asked for."""

    first_row: int
    rows: int
    data: bytes


def blocks_of(first_row: int, part: Container) -> Iterator[AvroBlock]:
    """The blocks of a part of a file, inflated."""
    for index, rows in enumerate(part.blocks[:, 0].tolist()):
        yield AvroBlock(first_row, rows, bytes(inflate(part, index)))
        first_row += rows


class RowDecoder:
    """Decodes blocks of one file: `record` is the whole row, `wanted` the part of it with the columns of `schema`."""

    def __init__(self, record: AvroRecord, wanted: AvroRecord, schema: Schema, location: str) -> None:
        self._location = location
        self._wanted = wanted
        self._schema = schema
        self._target = schema_to_arrow(schema)
        self._raw_type = _raw_type(wanted)
        self._row_bytes = smallest_size(record)
        self._writer = _array_of(record)
        self._reader = None if wanted == record else _array_of(wanted)

    def batch(self, block: AvroBlock) -> Any:
        """The rows of a block as a record batch."""
        check_rows(block, self._row_bytes, self._location)
        if not block.rows:
            return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in self._target], schema=self._target)
        try:
            raw = pa.array(self._objects(block), self._raw_type)
            columns = [
                _values(raw.field(i), inner.node, field.field_type, arrow_field.type)
                for i, (inner, field, arrow_field) in enumerate(
                    zip(self._wanted.fields, self._schema.fields, self._target, strict=True)
                )
            ]
        except _DAMAGE as problem:
            raise self._bad(f"its rows are not what its schema says: {type(problem).__name__}: {problem}") from problem
        return pa.RecordBatch.from_arrays(columns, schema=self._target)

    def _objects(self, block: AvroBlock) -> Any:
        """All rows at once: with their count before and a zero behind, they are an Avro array."""
        data = b"".join((zigzag(block.rows), block.data, b"\x00"))
        stream = io.BytesIO(data)
        found = fastavro.schemaless_reader(stream, self._writer, self._reader)
        if not isinstance(found, list) or len(found) != block.rows or stream.tell() != len(data):
            raise ValueError(f"a block holds other than the {block.rows} rows it speaks of")
        return found

    def _bad(self, problem: str) -> CorruptFileError:
        return CorruptFileError(self._location, problem)


def check_rows(block: AvroBlock, smallest: int, location: str) -> None:
    """Fail if the block has more rows than its bytes can hold, or than memory should: they become values of Python."""
    most = min(len(block.data) // smallest, _MOST_ROWS) if smallest else _MOST_ROWS
    if block.rows > most:
        raise CorruptFileError(location, f"a block of {len(block.data)} bytes says that it holds {block.rows} rows")


def _array_of(record: AvroRecord) -> FastSchema:
    return fastavro.parse_schema({"type": "array", "items": wire_schema(record)})


def _raw_type(node: AvroNode) -> Any:
    """The Arrow type of what fastavro makes of a node."""
    match node:
        case AvroLeaf(wire="fixed"):
            return pa.binary(node.size) if node.size else pa.binary()
        case AvroLeaf():
            return _RAW[node.wire]
        case AvroOption():
            return _raw_type(node.value)
        case AvroRecord():
            return pa.struct([(field.wire_name, _raw_type(field.node)) for field in node.fields])
        case AvroArray():
            return pa.list_(_raw_type(node.items))
        case AvroMap():
            return pa.list_(pa.struct([("key", _raw_type(node.key)), ("value", _raw_type(node.value))]))
        case _:
            raise AssertionError(f"{node} is never read")


def _values(array: Any, node: AvroNode, kind: types.IcebergType, arrow_type: Any) -> Any:
    match node, kind:
        case AvroOption(), _:
            return _values(array, node.value, kind, arrow_type)
        case AvroLeaf(), _:
            return _leaf(array, node, kind, arrow_type)
        case AvroRecord(), types.VariantType():
            parts = {field.name: array.field(field.wire_name) for field in node.fields}
            return pa.StructArray.from_arrays(
                [parts["metadata"], parts["value"]], fields=list(arrow_type), mask=_nulls(array)
            )
        case AvroRecord(), types.StructType():
            children = [
                _values(array.field(inner.wire_name), inner.node, field.field_type, arrow_field.type)
                for inner, field, arrow_field in zip(node.fields, kind.fields, arrow_type, strict=True)
            ]
            return pa.StructArray.from_arrays(children, fields=list(arrow_type), mask=_nulls(array))
        case AvroArray(), types.ListType():
            items = _values(array.values, node.items, kind.element_type, arrow_type.value_type)
            return pa.ListArray.from_arrays(array.offsets, items, type=arrow_type, mask=_nulls(array))
        case AvroMap(), types.MapType():
            keys = _values(array.values.field("key"), node.key, kind.key_type, arrow_type.key_type)
            items = _values(array.values.field("value"), node.value, kind.value_type, arrow_type.item_type)
            return pa.MapArray.from_arrays(array.offsets, keys, items, type=arrow_type, mask=_nulls(array))
        case _:
            raise AssertionError(f"{node} does not hold {kind}")


def _leaf(array: Any, node: AvroLeaf, kind: types.IcebergType, arrow_type: Any) -> Any:
    if node.wire == "enum":
        places = pc.index_in(array, pa.array([f"s{i}" for i in range(len(node.symbols))]))
        return pa.array(node.symbols, pa.string()).take(places)
    match kind:
        case types.DecimalType():
            return _decimals(array, arrow_type)
        case types.UUIDType() if node.wire == "string":
            found = [None if text is None else uuid.UUID(text).bytes for text in array.to_pylist()]
            return pa.array(found, pa.binary(16)).cast(arrow_type)
        case _:
            if node.scale != 1:
                array = pc.multiply_checked(array.cast(pa.int64()), node.scale)
            return array if array.type.equals(arrow_type) else array.cast(arrow_type)


def _decimals(array: Any, arrow_type: Any) -> Any:
    """Decimals from two's complement, most significant byte first."""
    if not pa.types.is_fixed_size_binary(array.type):
        array = _same_width(array)
    width, rows = array.type.byte_width, len(array)
    if not rows:
        return pa.array([], arrow_type)
    big = np.frombuffer(array.buffers()[1], np.uint8, rows * width, array.offset * width).reshape(rows, width)
    sign = np.where(big[:, :1] & 0x80, 0xFF, 0).astype(np.uint8)
    if width > 16 and bool(((big[:, : width - 16] != sign).any(axis=1) & ~np.asarray(pc.is_null(array))).any()):
        raise ValueError("a decimal has more than 16 bytes")
    little = np.broadcast_to(sign, (rows, 16)).copy()
    used = min(width, 16)
    little[:, :used] = big[:, ::-1][:, :used]
    mask = None
    if array.null_count:
        mask = pa.py_buffer(np.packbits(np.asarray(pc.is_valid(array)), bitorder="little"))
    found = pa.Array.from_buffers(arrow_type, rows, [mask, pa.py_buffer(little)])
    found.validate(full=True)
    return found


def _same_width(array: Any) -> Any:
    """Numbers of any width as 16 bytes each."""
    found = [
        None if data is None else int.from_bytes(data, "big", signed=True).to_bytes(16, "big", signed=True)
        for data in array.to_pylist()
    ]
    return pa.array(found, pa.binary(16))


def _nulls(array: Any) -> Any:
    return pc.is_null(array) if array.null_count else None
