"""From the blocks of an Avro file to Arrow columns: inflates, runs the walker, and wraps what it noted."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from types import ModuleType
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icefloe.avro import nodes as av, operations as op
from icefloe.avro.branches import ROWS, Branch
from icefloe.avro.choices import Key
from icefloe.avro.container import Container
from icefloe.avro.kernels import walker_for
from icefloe.avro.program import ListOutput, Output, Program
from icefloe.errors import CorruptFileError

CHUNK_BYTES = 4 << 20
"""How much is inflated before the walker runs over it: enough to pay for the call, little enough to stay in cache."""

MAX_COLUMN_BYTES = (1 << 31) - 1

ROWS_A_THREAD = 2048
"""How many rows are worth a thread of their own."""

Numbers = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
Number = TypeVar("Number", bound=np.generic)


@dataclass(frozen=True, slots=True)
class Decoded:
    """What came out: `columns` by key; a list column holds its items as a struct if there are several."""

    rows: int
    columns: dict[Key, pa.Array]
    nodes: dict[Key, av.AvroNode]


def decode(container: Container, program: Program, threads: int = 1) -> Decoded:
    """Run the program over every row of the file, by several threads if it is large."""
    container.check_room(container.rows * _row_bytes(program))
    parts = min(threads, container.rows // ROWS_A_THREAD)
    if parts < 2 or not _is_plausible(container, program):
        return _decode_whole(container, program)
    try:
        return _decode_parts(container, program, parts)
    except (CorruptFileError, pa.ArrowInvalid):
        # A part knows neither the row nor the block of the file that is at fault, nor how large the whole is.
        return _decode_whole(container, program)


def decode_tree(container: Container, program: Program, root: Branch, empty_rows: int = 0) -> pa.StructArray:
    """The parts of every row that `compile_rows` chose, as one struct array; up to `empty_rows` rows may take no bytes at all."""
    container.check_room(container.rows * _row_bytes(program))
    decoder = _Decoder(container, program, 0, empty_rows)
    decoder.run(_Cells(program, container.rows))
    return decoder.tree(root)


def _is_plausible(container: Container, program: Program) -> bool:
    """Whether the rows that a file announces, before its blocks are inflated, cost too little to doubt them."""
    return container.rows * program.smallest <= 64 * len(container.data)


def _row_bytes(program: Program) -> int:
    """What the cells of a row take, without the bytes of its texts and without items of lists."""
    return 9 * program.longs + 5 * program.notes


def _decode_whole(container: Container, program: Program) -> Decoded:
    # First, since this is where counts are checked that would ask for too much room.
    decoder = _Decoder(container, program)
    cells = _Cells(program, container.rows)
    decoder.run(cells)
    return _finish([decoder], cells)


def _decode_parts(container: Container, program: Program, parts: int) -> Decoded:
    ends = container.blocks[:, 2]
    cuts = np.searchsorted(ends, np.linspace(int(container.blocks[0, 1]), int(ends[-1]), parts + 1)[1:-1])
    cells = _Cells(program, container.rows)
    decoders: list[_Decoder] = []
    for blocks in filter(len, np.split(container.blocks, cuts)):
        first_row = decoders[-1].first_row + decoders[-1].rows if decoders else 0
        decoders.append(_Decoder(replace(container, blocks=blocks), program, first_row))
    # A part is left to this thread, which would only wait.
    with ThreadPoolExecutor(max(1, len(decoders) - 1), thread_name_prefix="icefloe-decode") as pool:
        others = [pool.submit(decoder.run, cells) for decoder in decoders[1:]]
        decoders[0].run(cells)
        for other in others:
            other.result()
    return _finish(decoders, cells)


_ALL_VALID = np.zeros(0, np.uint8)
"""Marks that say that nothing is null."""


class _Texts:
    """A growing column of text or bytes."""

    def __init__(self, capacity: int) -> None:
        self.offsets = np.zeros(capacity + 1, np.int32)
        self.valid = np.zeros(capacity, np.uint8)
        self.data = np.empty(0, np.uint8)
        self.rows = self.at = 0

    def append(self, kernels: ModuleType, data: Bytes, notes: Numbers, share: float, location: str) -> None:
        size = int(kernels.measure(notes))
        if self.at + size > MAX_COLUMN_BYTES:
            raise CorruptFileError(location, f"a column of text or bytes has more than {MAX_COLUMN_BYTES} bytes")
        if self.at + size > len(self.data):
            capacity = max(self.at + size, int(size / share * 1.1), 2 * len(self.data))
            self.data = _grown(self.data, min(capacity, MAX_COLUMN_BYTES), self.at)
        if self.rows + len(notes) > len(self.valid):
            capacity = max(self.rows + len(notes), 2 * len(self.valid))
            self.offsets = _grown(self.offsets, capacity + 1, self.rows + 1)
            self.valid = _grown(self.valid, capacity, self.rows)
            self.valid[self.rows :] = 0
        self.at = int(kernels.gather(data, notes, self.data, self.offsets, self.valid, self.rows, self.at))
        self.rows += len(notes)

    def array(self, node: av.AvroNode) -> pa.Array:
        offsets, valid = self.offsets[: self.rows + 1], self.valid[: self.rows]
        kind = pa.string() if isinstance(node, av.AvroPrimitive) and node.kind == "string" else pa.binary()
        if isinstance(node, av.AvroFixed):
            return self._fixed(node.size, valid)
        buffers = [_bitmap(valid), pa.py_buffer(offsets), pa.py_buffer(self.data[: self.at])]
        return pa.Array.from_buffers(kind, self.rows, buffers)

    def _fixed(self, size: int, valid: Bytes) -> pa.FixedSizeBinaryArray:
        """Values of one length need room for nulls too."""
        values = self.data[: self.at].reshape(-1, size)
        if len(values) != self.rows:
            spread = np.zeros((self.rows, size), np.uint8)
            spread[valid.astype(bool)] = values
            values = spread
        return pa.Array.from_buffers(pa.binary(size), self.rows, [_bitmap(valid), pa.py_buffer(values.reshape(-1))])


def _grown(old: npt.NDArray[Number], capacity: int, used: int) -> npt.NDArray[Number]:
    new = np.empty(capacity, old.dtype)
    new[:used] = old[:used]
    return new


def _bitmap(valid: Bytes) -> pa.Buffer | None:
    if valid.all():
        return None
    return pa.py_buffer(np.packbits(valid, bitorder="little"))


class _Cells:
    """The numbers of all rows, by column and row, and marks of those that are not null."""

    def __init__(self, program: Program, rows: int) -> None:
        self.rows = rows
        self.longs = np.zeros((program.longs, rows), np.int64)
        self.valid = np.zeros((program.longs, rows), np.uint8)


class _Decoder:
    """Some blocks of a file, whose rows begin at `first_row`: their numbers go to cells, the rest stays here."""

    def __init__(self, container: Container, program: Program, first_row: int = 0, empty_rows: int = 0) -> None:
        self.container = container
        self.empty_rows = empty_rows
        self.program = program
        self.first_row = first_row
        self.ops = np.array(program.ops, np.int64)
        self.keys = np.array(program.keys or [0], np.int64)
        self.rows = container.rows
        self.stream_room = 1024
        self.item_counts: dict[int, int] = {}
        self.item_longs: dict[int, list[npt.NDArray[np.int32 | np.int64]]] = {}
        self.item_valid: dict[int, list[Bytes]] = {}
        self.item_texts: dict[int, _Texts] = {}
        self.inflated = self._check_counts()

    def run(self, cells: _Cells) -> None:
        self.cells = cells
        self.texts = [_Texts(self.rows) for _ in range(self.program.notes)]
        row = self.first_row
        for data, blocks in self._chunks(self.inflated):
            count = int(blocks[:, 2].sum())
            self._walk(data, blocks, row, count)
            row += count

    def _check_counts(self) -> Callable[[int], bytes | memoryview]:
        """Counts are only announced until the blocks are inflated: believe them while they cost little.

        Gives the bytes of a block, by number.
        """
        if self.program.smallest == 0 and self.rows > self.empty_rows:
            raise CorruptFileError(self.container.location, f"{self.rows} rows that take no bytes")
        if _is_plausible(self.container, self.program):
            return self.container.inflated
        inflated, size = [], 0
        for block in range(len(self.container.blocks)):
            inflated.append(self.container.inflated(block))
            self._check_count(block, inflated[-1])
            size += len(inflated[-1])
            self.container.check_room(size)
        return inflated.__getitem__

    def _check_count(self, block: int, data: bytes | memoryview) -> None:
        rows = int(self.container.blocks[block, 0])
        if rows * self.program.smallest > len(data):
            problem = f"block {block} announces {rows} rows but has {len(data)} bytes"
            raise CorruptFileError(self.container.location, problem)

    def _chunks(self, inflated: Callable[[int], bytes | memoryview]) -> Iterator[tuple[Bytes, Numbers]]:
        parts: list[bytes | memoryview] = []
        table: list[tuple[int, int, int]] = []
        size = whole = 0
        for block in range(len(self.container.blocks)):
            data = inflated(block)
            self._check_count(block, data)
            parts.append(data)
            table.append((size, size + len(data), int(self.container.blocks[block, 0])))
            size += len(data)
            whole += len(data)
            self.container.check_room(whole)
            if size >= CHUNK_BYTES:
                yield _joined(parts), np.array(table, np.int64)
                parts, table, size = [], [], 0
        if table:
            yield _joined(parts), np.array(table, np.int64)

    def _walk(self, data: Bytes, blocks: Numbers, row: int, count: int) -> None:
        kernels = walker_for(len(data))
        longs, valid = self.cells.longs, self.cells.valid
        notes = np.full((self.program.notes, count), -1, np.int64)
        fill = np.zeros(max(len(self.program.lists), 1), np.int64)
        streams = max(self.program.streams, 1)
        room = min(max(self.stream_room, 12 * count), len(data) + 1)
        while True:
            # Items that nothing is taken of are counted all the same, and that takes a place for each.
            items = np.empty((streams, room if self.program.lists else 1), np.int64)
            item_valid = np.zeros((streams, items.shape[1]), np.uint8)
            status, where, _ = kernels.walk(
                data, blocks, self.ops, self.keys, longs, valid, row, notes, items, item_valid, fill
            )
            if status != op.STATUS_GROW:
                break
            # The walk starts again with more room for items; an item takes a byte at least, so this ends.
            if room > len(data):
                raise CorruptFileError(self.container.location, f"row {where}: it has more items than bytes")
            # There are certainly that many items; room that stays empty takes no memory.
            self.container.check_room(9 * room)
            room = min(4 * room, len(data) + 1)
            self.stream_room = room
            fill[:] = 0
            notes.fill(-1)
            valid[:, row : row + count] = 0
        if status != op.STATUS_OK:
            raise CorruptFileError(self.container.location, f"row {where}: {op.PROBLEMS[status]}")
        share = max(count, 1) / max(self.rows, 1)
        for column, texts in enumerate(self.texts):
            texts.append(kernels, data, notes[column], share, self.container.location)
        self._keep_items(kernels, data, items, item_valid, fill)

    def _keep_items(self, kernels: ModuleType, data: Bytes, items: Numbers, item_valid: Bytes, fill: Numbers) -> None:
        for listed in self.program.lists:
            used = int(fill[listed.number])
            self.item_counts[listed.number] = self.item_counts.get(listed.number, 0) + used
            for output in listed.items:
                stream = -1 - output.index
                values, marks = items[stream, :used], item_valid[stream, :used]
                if av.is_bytes(output.node):
                    notes = values if listed.fused else np.where(marks, values, -1)
                    texts = self.item_texts.setdefault(stream, _Texts(0))
                    texts.append(kernels, data, notes, 1.0, self.container.location)
                    continue
                if not listed.fused:
                    values = np.where(marks, values, 0)
                    self.item_valid.setdefault(stream, []).append(marks.copy())
                # Numbers are checked and narrowed while they are in cache.
                is_int = output.node == av.AvroPrimitive("int")
                stored = _narrow(values, self.container.location) if is_int else values.copy()
                self.item_longs.setdefault(stream, []).append(stored)

    def leaf(self, output: Output) -> pa.Array:
        """The values of an output, for each row or for each item of its list."""
        if av.is_bytes(output.node):
            texts = self.texts[output.index] if output.index >= 0 else self.item_texts.get(-1 - output.index, _Texts(0))
            return self._checked(texts.array(output.node))
        return _numbers(output.node, *self._marked(output.index), self.container.location)

    def _marked(self, index: int) -> tuple[npt.NDArray[np.int32 | np.int64], Bytes]:
        """Numbers, and which of them are not null."""
        if index >= 0:
            rows = slice(self.first_row, self.first_row + self.rows)
            return self.cells.longs[index, rows], self.cells.valid[index, rows]
        values = np.concatenate(self.item_longs.get(-1 - index, [np.zeros(0, np.int64)]))
        # Items of fused pairs are never null and have no marks.
        return values, np.concatenate(self.item_valid.get(-1 - index, [_ALL_VALID]))

    def list_column(self, output: ListOutput) -> pa.ListArray:
        """A column of lists."""
        arrays = [self.leaf(item) for item in output.items]
        count = self._count(output.number)
        if output.records:
            items = _struct(arrays, [f"{item.key[0]}:{item.key[1]}" for item in output.items], count)
        elif arrays or not count:
            items = arrays[0] if arrays else pa.nulls(0)
        else:
            raise CorruptFileError(self.container.location, f"the list {output.key[0]} holds items of no type")
        return self._list(output.lengths, items)

    def _list(self, lengths_index: int, items: pa.Array) -> pa.ListArray:
        lengths, valid = self._marked(lengths_index)
        ends = np.cumsum(lengths)
        if len(ends) and int(ends[-1]) > MAX_COLUMN_BYTES:
            raise CorruptFileError(self.container.location, "a list column has too many items")
        offsets = np.append(0, ends).astype(np.int32)
        list_type = pa.list_(pa.field("item", items.type))
        return pa.Array.from_buffers(list_type, len(lengths), [_bitmap(valid), pa.py_buffer(offsets)], children=[items])

    def tree(self, branch: Branch, level: int = ROWS) -> pa.Array:
        """A value with its parts, as it is stored: structs, lists, and lists of pairs of key and value."""
        count = self._count(level)
        if isinstance(branch.node, av.AvroRecord):
            valid = _ALL_VALID if branch.output is None else self._marked(branch.output.index)[1]
            parts = [self.tree(child, level) for child in branch.children]
            return _struct(parts, [str(i) for i in range(len(parts))], count, valid)
        if branch.output is None:
            return pa.nulls(count)
        match branch.node:
            case av.AvroArray(is_map=False):
                return self._list(branch.output.index, self.tree(branch.children[0], branch.level))
            case av.AvroArray() | av.AvroMap():
                pair = [self.tree(child, branch.level) for child in branch.children]
                return self._list(branch.output.index, _struct(pair, ["key", "value"], self._count(branch.level)))
            case _:
                return self.leaf(branch.output)

    def _count(self, level: int) -> int:
        return self.rows if level == ROWS else self.item_counts.get(level, 0)

    def _checked(self, array: pa.Array) -> pa.Array:
        try:
            array.validate(full=array.type == pa.string())
        except pa.ArrowInvalid as error:
            raise CorruptFileError(self.container.location, f"text that is not UTF-8: {error}") from error
        return array


def _finish(decoders: list[_Decoder], cells: _Cells) -> Decoded:
    program, location = decoders[0].program, decoders[0].container.location
    columns: dict[Key, pa.Array] = {}
    is_whole = cells.valid.min(axis=1, initial=1)
    for output in program.outputs:
        if av.is_bytes(output.node):
            columns[output.key] = _one([decoder.leaf(output) for decoder in decoders])
        else:
            valid = _ALL_VALID if is_whole[output.index] else cells.valid[output.index]
            columns[output.key] = _numbers(output.node, cells.longs[output.index], valid, location)
    for listed in program.lists:
        columns[listed.key] = _one([decoder.list_column(listed) for decoder in decoders])
    return Decoded(cells.rows, columns, {output.key: output.node for output in program.outputs})


def _one(parts: list[pa.Array]) -> pa.Array:
    return parts[0] if len(parts) == 1 else pa.concat_arrays(parts)


def _numbers(node: av.AvroNode, values: npt.NDArray[np.int32 | np.int64], valid: Bytes, location: str) -> pa.Array:
    stored: npt.NDArray[np.generic]
    match node.kind if isinstance(node, av.AvroPrimitive) else "int":
        case "int":
            arrow_type, stored = pa.int32(), _narrow(values, location)
        case "boolean":
            arrow_type, stored = pa.bool_(), np.packbits(values.astype(np.uint8), bitorder="little")
        case "float":
            arrow_type, stored = pa.float32(), values.astype(np.uint32)
        case "long" | "double" as kind:
            arrow_type, stored = pa.int64() if kind == "long" else pa.float64(), values
        case _:
            raise AssertionError(f"not a number: {node}")
    return pa.Array.from_buffers(arrow_type, len(values), [_bitmap(valid), pa.py_buffer(stored)])


def _narrow(values: npt.NDArray[np.int32 | np.int64], location: str) -> npt.NDArray[np.int32]:
    narrow = values.astype(np.int32, copy=False)
    if narrow is not values and not np.array_equal(narrow, values):
        raise CorruptFileError(location, "an int has more than 32 bits")
    return narrow


def _struct(arrays: list[pa.Array], names: list[str], length: int, valid: Bytes = _ALL_VALID) -> pa.Array:
    struct = pa.struct([pa.field(name, array.type) for name, array in zip(names, arrays, strict=True)])
    return pa.Array.from_buffers(struct, length, [_bitmap(valid)], children=arrays)


def _joined(parts: list[bytes | memoryview]) -> Bytes:
    return np.frombuffer(parts[0] if len(parts) == 1 else b"".join(parts), np.uint8)
