"""From the blocks of an Avro file to Arrow columns: inflates, runs the walker, and wraps what it noted."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import numpy as np
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

Numbers = np.ndarray[Any, np.dtype[np.int64]]
Bytes = np.ndarray[Any, np.dtype[np.uint8]]


@dataclass(frozen=True, slots=True)
class Decoded:
    """What came out: `columns` by key; a list column holds its items as a struct if there are several."""

    rows: int
    columns: dict[Key, Any]
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


def decode_tree(container: Container, program: Program, root: Branch, empty_rows: int = 0) -> Any:
    """The parts of every row that `compile_rows` chose, as one struct array; so many rows may take no bytes at all."""
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
        others = [pool.submit(each.run, cells) for each in decoders[1:]]
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

    def array(self, node: av.AvroNode) -> Any:
        offsets, valid = self.offsets[: self.rows + 1], self.valid[: self.rows]
        kind = pa.string() if isinstance(node, av.AvroPrimitive) and node.kind == "string" else pa.binary()
        if isinstance(node, av.AvroFixed):
            return self._fixed(node.size, valid)
        buffers = [_bitmap(valid), pa.py_buffer(offsets), pa.py_buffer(self.data[: self.at])]
        return pa.Array.from_buffers(kind, self.rows, buffers)

    def _fixed(self, size: int, valid: Bytes) -> Any:
        """Values of one length need room for nulls too."""
        values = self.data[: self.at].reshape(-1, size)
        if len(values) != self.rows:
            spread = np.zeros((self.rows, size), np.uint8)
            spread[valid.astype(bool)] = values
            values = spread
        return pa.Array.from_buffers(pa.binary(size), self.rows, [_bitmap(valid), pa.py_buffer(values.reshape(-1))])


def _grown(old: Any, capacity: int, used: int) -> Any:
    new = np.empty(capacity, old.dtype)
    new[:used] = old[:used]
    return new


def _bitmap(valid: Bytes) -> Any:
    if valid.all():
        return None
    return pa.py_buffer(np.packbits(valid, bitorder="little"))


class _Cells:
    """The numbers of all rows, by column and row, and marks of those that are there."""

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
        self.item_longs: dict[int, list[Numbers]] = {}
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

    def _check_counts(self) -> Callable[[int], Any]:
        """Counts are only announced until the blocks are inflated: believe them while they cost little.

        Gives the bytes of a block, by number.
        """
        if self.program.smallest == 0 and self.rows > self.empty_rows:
            raise CorruptFileError(self.container.location, f"{self.rows} rows that take no bytes")
        if _is_plausible(self.container, self.program):
            return lambda block: self.container.inflated(block)
        kept, size = [], 0
        for block in range(len(self.container.blocks)):
            kept.append(self.container.inflated(block))
            self._check_count(block, kept[-1])
            size += len(kept[-1])
            self.container.check_room(size)
        return kept.__getitem__

    def _check_count(self, block: int, data: Any) -> None:
        rows = int(self.container.blocks[block, 0])
        if rows * self.program.smallest > len(data):
            problem = f"block {block} announces {rows} rows but has {len(data)} bytes"
            raise CorruptFileError(self.container.location, problem)

    def _chunks(self, inflated: Callable[[int], Any]) -> Iterator[tuple[Bytes, Numbers]]:
        parts: list[Any] = []
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
            # So many items there are for certain; room that stays empty takes no memory.
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
        for found in self.program.lists:
            used = int(fill[found.number])
            self.item_counts[found.number] = self.item_counts.get(found.number, 0) + used
            for output in found.items:
                stream = -1 - output.index
                values = items[stream, :used]
                if output.place == "note":
                    nulls = values if found.fused else np.where(item_valid[stream, :used], values, -1)
                    texts = self.item_texts.setdefault(stream, _Texts(0))
                    texts.append(kernels, data, nulls, 1.0, self.container.location)
                else:
                    # Numbers are checked and narrowed while they are in cache.
                    is_int = output.node == av.AvroPrimitive("int")
                    marks = None if found.fused else item_valid[stream, :used].copy()
                    if marks is not None:
                        values = np.where(marks, values, 0)
                    kept = _narrow(values, self.container.location) if is_int else values.copy()
                    self.item_longs.setdefault(stream, []).append(kept)
                    if marks is not None:
                        self.item_valid.setdefault(stream, []).append(marks)

    def text_column(self, output: Output) -> Any:
        """A column of text or bytes."""
        return self._checked(self.texts[output.index].array(output.node))

    def list_column(self, found: ListOutput) -> Any:
        """A column of lists."""
        rows = slice(self.first_row, self.first_row + self.rows)
        offsets = self._offsets(self.cells.longs[found.lengths, rows])
        arrays = [self._items(found, output) for output in found.items]
        count = int(offsets[-1])
        if found.records:
            items = _struct(arrays, _item_names(found), count)
        elif arrays or not count:
            items = arrays[0] if arrays else pa.nulls(0)
        else:
            raise CorruptFileError(self.container.location, f"the list {found.key[0]} holds items of no type")
        kind = pa.list_(pa.field("item", items.type))
        bitmap = _bitmap(self.cells.valid[found.lengths, rows])
        return pa.Array.from_buffers(kind, self.rows, [bitmap, pa.py_buffer(offsets)], children=[items])

    def _offsets(self, lengths: Any) -> Any:
        """Where each list starts and the last one ends."""
        ends = np.cumsum(lengths)
        if len(ends) and int(ends[-1]) > MAX_COLUMN_BYTES:
            raise CorruptFileError(self.container.location, "a list column has too many items")
        return np.append(0, ends).astype(np.int32)

    def _items(self, found: ListOutput, output: Output) -> Any:
        stream = -1 - output.index
        if output.place == "note":
            return self._checked(self.item_texts.get(stream, _Texts(0)).array(output.node))
        values = np.concatenate(self.item_longs.get(stream, [np.zeros(0, np.int64)]))
        if found.fused:
            return _numbers(output.node, values, _ALL_VALID, self.container.location)
        valid = np.concatenate(self.item_valid.get(stream, [np.zeros(0, np.uint8)]))
        return _numbers(output.node, values, valid, self.container.location)

    def tree(self, branch: Branch, level: int = ROWS) -> Any:
        """A value with its parts, as it is stored: structs, lists, and lists of pairs of key and value."""
        if branch.output is None and not isinstance(branch.node, av.AvroRecord):
            return pa.nulls(self._count(level))
        match branch.node:
            case av.AvroRecord():
                valid = _ALL_VALID if branch.output is None else self._marked(branch.output)[1]
                parts = [self.tree(child, level) for child in branch.children]
                return _struct(parts, [str(place) for place in range(len(parts))], self._count(level), valid)
            case av.AvroArray(is_map=False):
                return self._list(branch, self.tree(branch.children[0], branch.level))
            case av.AvroArray() | av.AvroMap():
                pair = [self.tree(child, branch.level) for child in branch.children]
                return self._list(branch, _struct(pair, ["key", "value"], self._count(branch.level)))
            case _:
                assert branch.output is not None
                return self._leaf(branch.output)

    def _count(self, level: int) -> int:
        return self.rows if level == ROWS else self.item_counts.get(level, 0)

    def _leaf(self, output: Output) -> Any:
        if output.place == "note":
            texts = self.texts[output.index] if output.index >= 0 else self.item_texts.get(-1 - output.index, _Texts(0))
            return self._checked(texts.array(output.node))
        values, valid = self._marked(output)
        return _numbers(output.node, values, valid, self.container.location)

    def _marked(self, output: Output) -> tuple[Any, Bytes]:
        """Numbers, and which of them are there."""
        if output.index >= 0:
            return self.cells.longs[output.index], self.cells.valid[output.index]
        stream = -1 - output.index
        values = np.concatenate(self.item_longs.get(stream, [np.zeros(0, np.int64)]))
        return values, np.concatenate(self.item_valid.get(stream, [np.zeros(0, np.uint8)]))

    def _list(self, branch: Branch, items: Any) -> Any:
        assert branch.output is not None
        lengths, valid = self._marked(branch.output)
        offsets = self._offsets(lengths)
        kind = pa.list_(pa.field("item", items.type))
        return pa.Array.from_buffers(kind, len(lengths), [_bitmap(valid), pa.py_buffer(offsets)], children=[items])

    def _checked(self, array: Any) -> Any:
        try:
            array.validate(full=array.type == pa.string())
        except pa.ArrowInvalid as error:
            raise CorruptFileError(self.container.location, f"text that is not UTF-8: {error}") from error
        return array


def _finish(decoders: list[_Decoder], cells: _Cells) -> Decoded:
    program, location = decoders[0].program, decoders[0].container.location
    columns: dict[Key, Any] = {}
    nodes: dict[Key, av.AvroNode] = {}
    is_whole = cells.valid.min(axis=1, initial=1)
    for output in program.outputs:
        nodes[output.key] = output.node
        if output.place == "note":
            columns[output.key] = _one([each.text_column(output) for each in decoders])
        else:
            valid = _ALL_VALID if is_whole[output.index] else cells.valid[output.index]
            columns[output.key] = _numbers(output.node, cells.longs[output.index], valid, location)
    for found in program.lists:
        columns[found.key] = _one([each.list_column(found) for each in decoders])
    return Decoded(cells.rows, columns, nodes)


def _one(parts: list[Any]) -> Any:
    return parts[0] if len(parts) == 1 else pa.concat_arrays(parts)


def _numbers(node: av.AvroNode, values: Any, valid: Bytes, location: str) -> Any:
    bitmap = _bitmap(valid)
    match node.kind if isinstance(node, av.AvroPrimitive) else "int":
        case "int":
            narrow = _narrow(values, location)
            return pa.Array.from_buffers(pa.int32(), len(values), [bitmap, pa.py_buffer(narrow)])
        case "long":
            return pa.Array.from_buffers(pa.int64(), len(values), [bitmap, pa.py_buffer(values)])
        case "boolean":
            bits = pa.py_buffer(np.packbits(values.astype(np.uint8), bitorder="little"))
            return pa.Array.from_buffers(pa.bool_(), len(values), [bitmap, bits])
        case "float":
            floats = values.astype(np.uint32)
            return pa.Array.from_buffers(pa.float32(), len(values), [bitmap, pa.py_buffer(floats)])
        case "double":
            return pa.Array.from_buffers(pa.float64(), len(values), [bitmap, pa.py_buffer(values)])
        case _:
            raise AssertionError(f"not a number: {node}")


def _narrow(values: Any, location: str) -> Any:
    narrow = values.astype(np.int32, copy=False)
    if narrow is not values and not np.array_equal(narrow, values):
        raise CorruptFileError(location, "an int has more than 32 bits")
    return narrow


def _item_names(found: ListOutput) -> list[str]:
    return [f"{output.key[0]}:{output.key[1]}" for output in found.items]


def _struct(arrays: list[Any], names: list[str], length: int, valid: Bytes = _ALL_VALID) -> Any:
    kind = pa.struct([pa.field(name, array.type) for name, array in zip(names, arrays, strict=True)])
    return pa.Array.from_buffers(kind, length, [_bitmap(valid)], children=arrays)


def _joined(parts: list[Any]) -> Bytes:
    return np.frombuffer(parts[0] if len(parts) == 1 else b"".join(parts), np.uint8)
