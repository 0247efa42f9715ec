"""How rows come out of an Avro file: only the wanted columns, by field id, from the blocks of a split."""

import uuid
from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.avro import AvroFile, Branch, Container, UnknownShape, compile_rows, decode_tree, nodes as av
from icefloe.errors import CorruptFileError, IncompatibleChangeError
from icefloe.formats.avro_columns import chosen_part, file_record, iceberg_schema, nodes_below, with_wanted_zones
from icefloe.formats.file_reading import DEFAULT_BATCH_ROWS, FileReader, Split
from icefloe.formats.file_schema import known_columns
from icefloe.formats.projection import null_mask
from icefloe.schema import NameMapping, Schema, Value, reserved, schema_to_arrow, types

_BATCH_BYTES = 1 << 26
_MOST_ROWS = 1 << 22
"""How many rows one block may hold; writers end a block after some ten thousand bytes."""


class AvroFileReader(FileReader):
    """An open Avro file."""

    def _open(self, mapping: NameMapping | None, constants: Mapping[int, Value] | None) -> Schema:
        self._file = AvroFile(self._source, self._location)
        self._record = file_record(self._file.header.schema, self._location)
        known = known_columns(iceberg_schema(self._record, self._location), self._wanted, mapping, constants)
        file_schema = Schema(*with_wanted_zones(known.fields, nodes_below(self._record), self._wanted))
        for field, inner in zip(file_schema.fields, self._record.fields, strict=True):
            _check_unions(field, inner.node, self._wanted, self._location)
        return file_schema

    def _columns_to_read(self, needed: Schema) -> Schema:
        self._target = schema_to_arrow(needed)
        part = chosen_part(self.file_schema.as_struct, needed.as_struct)
        try:
            self._program, self._root = compile_rows(self._record, part)
        except UnknownShape as problem:
            raise CorruptFileError(self._location, f"its rows cannot be read: {problem}") from None
        return needed

    def batches(self, split: Split | None = None, batch_rows: int = DEFAULT_BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """Record batches of the wanted columns, in the order of the file.

        `split` is (start, length) in bytes: the blocks that begin in it.
        """
        with_rows = any(field.field_id == reserved.POS.field_id for field in self._wanted.fields)
        waiting: list[pa.RecordBatch] = []
        rows = size = 0
        for first_row, part in self._file.parts(split, with_rows):
            for batch in self._pieces(self._decoded(part), first_row, part.rows, batch_rows):
                if waiting and (rows + batch.num_rows > batch_rows or size + batch.nbytes > _BATCH_BYTES):
                    yield _together(waiting)
                    waiting, rows, size = [], 0, 0
                waiting.append(batch)
                rows, size = rows + batch.num_rows, size + batch.nbytes
        if waiting:
            yield _together(waiting)

    def _decoded(self, part: Container) -> pa.RecordBatch:
        """The rows of a part as they are read; only its number of rows counts if there are no columns."""
        if len(part.blocks) and int(part.blocks[:, 0].max()) > _MOST_ROWS:
            raise CorruptFileError(self._location, f"a block says that it holds {int(part.blocks[:, 0].max())} rows")
        rows = decode_tree(part, self._program, self._root, _MOST_ROWS)
        try:
            columns = [
                _values(rows.field(i), branch, field.field_type, arrow_field.type)
                for i, (branch, field, arrow_field) in enumerate(
                    zip(self._root.children, self._read_schema.fields, self._target, strict=True)
                )
            ]
        except (ValueError, IndexError, MemoryError, pa.ArrowException) as problem:
            reason = f"{type(problem).__name__}: {problem}"
            raise CorruptFileError(self._location, f"its rows are not what its schema says: {reason}") from problem
        return pa.RecordBatch.from_arrays(columns, schema=self._target)


def _together(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _check_unions(field: types.NestedField, node: av.AvroNode, wanted: Schema, location: str) -> None:
    """A union of several types is not a column; to read it as missing would hide its values."""
    if isinstance(av.option_of(node) or node, av.AvroUnion):
        if field.field_id in wanted.fields_by_id:
            raise IncompatibleChangeError(
                f"{location}: column {field.name!r} is a union of several Avro types;"
                " a column is one type, or that and null (spec: Appendix A)"
            )
    elif isinstance(field.field_type, types.NestedType):
        for child, inner in zip(field.field_type.fields, nodes_below(node), strict=True):
            _check_unions(child, inner, wanted, location)


def _values(array: pa.Array, branch: Branch, kind: types.IcebergType, arrow_type: pa.DataType) -> pa.Array:
    """An array as it is stored, as one of the type that it stands for."""
    match kind:
        case types.VariantType():
            assert isinstance(branch.node, av.AvroRecord)
            parts = {field.column: array.field(i) for i, field in enumerate(branch.node.fields)}
            return pa.StructArray.from_arrays(
                [parts["metadata"], parts["value"]], fields=list(arrow_type), mask=null_mask(array)
            )
        case types.StructType():
            children = [
                _values(array.field(i), inner, field.field_type, arrow_field.type)
                for i, (inner, field, arrow_field) in enumerate(
                    zip(branch.children, kind.fields, arrow_type, strict=True)
                )
            ]
            if not children:
                return pa.Array.from_buffers(arrow_type, len(array), [array.buffers()[0]], children=[])
            return pa.StructArray.from_arrays(children, fields=list(arrow_type), mask=null_mask(array))
        case types.ListType():
            items = _values(array.values, branch.children[0], kind.element_type, arrow_type.value_type)
            return pa.ListArray.from_arrays(array.offsets, items, type=arrow_type, mask=null_mask(array))
        case types.MapType():
            key, value = branch.children
            keys = _values(array.values.field(0), key, kind.key_type, arrow_type.key_type)
            items = _values(array.values.field(1), value, kind.value_type, arrow_type.item_type)
            return pa.MapArray.from_arrays(array.offsets, keys, items, type=arrow_type, mask=null_mask(array))
        case _:
            return _leaf(array, branch, kind, arrow_type)


def _leaf(array: pa.Array, branch: Branch, kind: types.IcebergType, arrow_type: pa.DataType) -> pa.Array:
    node = branch.node
    match kind:
        case _ if isinstance(node, av.AvroEnum):
            return pa.array(node.symbols, pa.string()).take(array)
        case types.DecimalType():
            return _decimals(array, arrow_type)
        case types.UUIDType() if isinstance(node, av.AvroPrimitive):
            uuids = [None if text is None else uuid.UUID(text).bytes for text in array.to_pylist()]
            return pa.array(uuids, pa.binary(16)).cast(arrow_type)
        case _:
            if isinstance(node, av.AvroPrimitive) and node.scale != 1:
                array = pc.multiply_checked(array.cast(pa.int64()), node.scale)
            return array if array.type.equals(arrow_type) else array.cast(arrow_type)


def _decimals(array: pa.Array, arrow_type: pa.DataType) -> pa.Array:
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
    decimals = pa.Array.from_buffers(arrow_type, rows, [mask, pa.py_buffer(little)])
    decimals.validate(full=True)
    return decimals


def _same_width(array: pa.BinaryArray) -> pa.FixedSizeBinaryArray:
    """Numbers of any width as 16 bytes each."""
    numbers = [
        None if data is None else int.from_bytes(data, "big", signed=True).to_bytes(16, "big", signed=True)
        for data in array.to_pylist()
    ]
    return pa.array(numbers, pa.binary(16))
