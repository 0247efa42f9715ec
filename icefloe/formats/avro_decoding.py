"""Parts of an Avro file as Arrow batches of the types that its columns stand for."""

import uuid
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.avro import Branch, Container, UnknownShape, compile_rows, decode_tree, nodes as av
from icefloe.errors import CorruptFileError
from icefloe.formats.avro_columns import chosen_part
from icefloe.schema import Schema, schema_to_arrow, types

_MOST_ROWS = 1 << 22
"""How many rows one block may hold; writers end a block after some ten thousand bytes."""


class RowDecoder:
    """Decodes parts of one file, whose rows are `record`, with the columns `file`, of which `schema` has some."""

    def __init__(self, record: av.AvroRecord, file: Schema, schema: Schema, location: str) -> None:
        self._location = location
        self._schema = schema
        self._target = schema_to_arrow(schema)
        try:
            self._program, self._root = compile_rows(record, chosen_part(file.as_struct, schema.as_struct))
        except UnknownShape as problem:
            raise CorruptFileError(location, f"its rows cannot be read: {problem}") from None

    def batch(self, part: Container) -> Any:
        """The rows of a part as a record batch; only its number of rows counts if there are no columns."""
        if len(part.blocks) and int(part.blocks[:, 0].max()) > _MOST_ROWS:
            raise CorruptFileError(self._location, f"a block says that it holds {int(part.blocks[:, 0].max())} rows")
        rows = decode_tree(part, self._program, self._root, _MOST_ROWS)
        try:
            columns = [
                _values(rows.field(place), branch, field.field_type, arrow_field.type)
                for place, (branch, field, arrow_field) in enumerate(
                    zip(self._root.children, self._schema.fields, self._target, strict=True)
                )
            ]
        except (ValueError, IndexError, MemoryError, pa.ArrowException) as problem:
            reason = f"{type(problem).__name__}: {problem}"
            raise CorruptFileError(self._location, f"its rows are not what its schema says: {reason}") from problem
        return pa.RecordBatch.from_arrays(columns, schema=self._target)


def _values(array: Any, branch: Branch, kind: types.IcebergType, arrow_type: Any) -> Any:
    """An array as it is stored, as one of the type that it stands for."""
    match kind:
        case types.VariantType():
            assert isinstance(branch.node, av.AvroRecord)
            parts = {field.column: array.field(place) for place, field in enumerate(branch.node.fields)}
            return pa.StructArray.from_arrays(
                [parts["metadata"], parts["value"]], fields=list(arrow_type), mask=_nulls(array)
            )
        case types.StructType():
            children = [
                _values(array.field(place), inner, field.field_type, arrow_field.type)
                for place, (inner, field, arrow_field) in enumerate(
                    zip(branch.children, kind.fields, arrow_type, strict=True)
                )
            ]
            if not children:
                return pa.Array.from_buffers(arrow_type, len(array), [array.buffers()[0]], children=[])
            return pa.StructArray.from_arrays(children, fields=list(arrow_type), mask=_nulls(array))
        case types.ListType():
            items = _values(array.values, branch.children[0], kind.element_type, arrow_type.value_type)
            return pa.ListArray.from_arrays(array.offsets, items, type=arrow_type, mask=_nulls(array))
        case types.MapType():
            key, value = branch.children
            keys = _values(array.values.field(0), key, kind.key_type, arrow_type.key_type)
            items = _values(array.values.field(1), value, kind.value_type, arrow_type.item_type)
            return pa.MapArray.from_arrays(array.offsets, keys, items, type=arrow_type, mask=_nulls(array))
        case _:
            return _leaf(array, branch, kind, arrow_type)


def _leaf(array: Any, branch: Branch, kind: types.IcebergType, arrow_type: Any) -> Any:
    node = branch.node
    match kind:
        case _ if isinstance(node, av.AvroEnum):
            return pa.array(node.symbols, pa.string()).take(array)
        case types.DecimalType():
            return _decimals(array, arrow_type)
        case types.UUIDType() if isinstance(node, av.AvroPrimitive):
            found = [None if text is None else uuid.UUID(text).bytes for text in array.to_pylist()]
            return pa.array(found, pa.binary(16)).cast(arrow_type)
        case _:
            if isinstance(node, av.AvroPrimitive) and node.scale != 1:
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
