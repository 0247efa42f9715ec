"""The walker without compiled code: the same programs with the same results, hundreds of times slower, but ready at once.

Importing numba and loading kernels takes longer than reading the manifests of a small table here; `decode.py` says which of
the two is due. What `walker.py` says of hostile bytes holds here too.
"""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from icefloe.avro import operations as op

Longs = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

_WIDTHS = {op.BOOL: 1, op.FLOAT: 4, op.DOUBLE: 8}


class _Stop(Exception):
    """Ends a walk with a status."""

    def __init__(self, status: int) -> None:
        self.status = status


def _varint(data: bytes | memoryview, at: int, end: int) -> tuple[int, int]:
    """A zigzag number at `at` and the place after it."""
    if at < end and (byte := data[at]) < 128:
        return (byte >> 1) ^ -(byte & 1), at + 1
    value = 0
    for shift in range(0, 70, 7):
        if at >= end:
            raise _Stop(op.STATUS_BAD_VARINT)
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            if value >> 64:
                break
            return (value >> 1) ^ -(value & 1), at
    raise _Stop(op.STATUS_BAD_VARINT)


class _Walk:
    """The state of one walk; each method runs one operation and says where the next one is."""

    def __init__(
        self,
        data: bytes,
        ops: list[int],
        keys: list[int],
        cells: tuple[Longs, Bytes, Longs, Longs, Bytes],
        fill: list[int],
    ) -> None:
        self.data, self.ops, self.fill = data, ops, fill
        self.capacity = cells[3].shape[1]
        # Python puts numbers into a view of memory in half the time that it takes for an array.
        self.longs, self.valid, self.notes, self.streams, self.stream_valid = (
            [memoryview(column) for column in columns] for columns in cells
        )
        self.slots = lru_cache(maxsize=None)(lambda first, count: {keys[first + i]: i for i in range(count)})
        self.at = self.end = self.row = self.note = 0
        self.item = self.list_start = 0
        self.outer: list[tuple[int, int]] = []
        self.after = -1
        self.remaining: list[int] = []

    def run(self) -> None:
        """One row."""
        ops, data, end, pc = self.ops, self.data, self.end, 0
        while (code := ops[pc]) != op.END:
            if code > op.LAST_VARINT_OP:
                pc = _WITHOUT[code](self, pc)
                continue
            # Numbers of one byte and branches are most of what there is: no calls for them.
            if self.at < end and (byte := data[self.at]) < 128:
                value = (byte >> 1) ^ -(byte & 1)
                self.at += 1
            else:
                value, self.at = _varint(data, self.at, end)
            if code == op.LONG:
                self.put(ops[pc + 1], value)
                pc += 2
            elif code != op.UNION:
                pc = _WITH_NUMBER[code](self, pc, value)
            elif 0 <= value < ops[pc + 1]:
                pc = ops[pc + 2 + value]
            else:
                raise _Stop(op.STATUS_BAD_BRANCH)

    # -- cells

    def put(self, target: int, value: int) -> None:
        if target >= 0:
            self.longs[target][self.row] = value
            self.valid[target][self.row] = 1
        else:
            self.put_item(target, value)

    def put_item(self, target: int, value: int) -> None:
        self.streams[-1 - target][self.item] = value
        self.stream_valid[-1 - target][self.item] = 1

    def put_note(self, target: int, length: int) -> None:
        """Note the bytes from here on, and go behind them."""
        note = self.at << 32 | length
        if target >= 0:
            self.notes[target][self.note] = note
        else:
            self.put_item(target, note)
        self.at += length

    def fits(self, length: int) -> int:
        if not 0 <= length <= self.end - self.at:
            raise _Stop(op.STATUS_BAD_LENGTH)
        return length

    def count(self, smallest: int) -> int:
        """The next count of an array; `after` is where its items end, or -1. Counts that cannot fit in what is left are refused."""
        self.after = -1
        count, self.at = _varint(self.data, self.at, self.end)
        if count < 0:
            size, self.at = _varint(self.data, self.at, self.end)
            if not 0 <= size <= self.end - self.at or count == -(2**63):
                raise _Stop(op.STATUS_BAD_COUNT)
            count = -count
            self.after = self.at + size
        if smallest > 0 and count > (self.end - self.at) // smallest:
            raise _Stop(op.STATUS_BAD_COUNT)
        return count

    # -- operations that begin with a number

    def skip_long(self, pc: int, _: int) -> int:
        return pc + 1

    def bytes(self, pc: int, value: int) -> int:
        self.put_note(self.ops[pc + 1], self.fits(value))
        return pc + 2

    def skip_bytes(self, pc: int, value: int) -> int:
        self.at += self.fits(value)
        return pc + 1

    # -- the others

    def jump(self, pc: int) -> int:
        return self.ops[pc + 1]

    def bits(self, pc: int) -> int:
        code = self.ops[pc]
        width = self.fits(_WIDTHS[code])
        value = int.from_bytes(self.data[self.at : self.at + width], "little", signed=code == op.DOUBLE)
        if code == op.BOOL and value > 1:
            raise _Stop(op.STATUS_BAD_BOOLEAN)
        self.at += width
        self.put(self.ops[pc + 1], value)
        return pc + 2

    def fixed(self, pc: int) -> int:
        self.put_note(self.ops[pc + 1], self.fits(self.ops[pc + 2]))
        return pc + 3

    def skip(self, pc: int) -> int:
        self.at += self.fits(self.ops[pc + 1])
        return pc + 2

    def enter(self, pc: int) -> int:
        array = self.ops[pc + 1]
        self.remaining.append(0)
        self.outer.append((self.item, self.fill[array] if array >= 0 else 0))
        return pc + 2

    def loop(self, pc: int) -> int:
        _, array, lengths, smallest, after = self.ops[pc : pc + 5]
        if not self.remaining[-1]:
            self.remaining[-1] = self.count(smallest)
            if not self.remaining[-1]:
                self.remaining.pop()
                self.item, start = self.outer.pop()
                if array >= 0:
                    self.put(lengths, self.fill[array] - start)
                return after
        self.remaining[-1] -= 1
        if array >= 0:
            self.item = self.fill[array]
            if self.item >= self.capacity:
                raise _Stop(op.STATUS_GROW)
            self.fill[array] += 1
        return pc + 5

    def mark(self, pc: int) -> int:
        self.put(self.ops[pc + 1], 1)
        return pc + 2

    def empty_items(self, pc: int) -> int:
        # Items take no bytes, so counting them would be the only work.
        return pc if self.count(0) else pc + 1

    def pairs(self, pc: int) -> int:
        _, mode, first, wanted, start, values = self.ops[pc : pc + 6]
        if mode >= op.PAIRS_LONG:
            self.pairs_to_streams(mode, wanted, (start, values))
            self.put(first, self.fill[wanted] - self.list_start)
            return pc + 6
        slots = self.slots(start, wanted)
        matched = 0
        while count := self.count(2):
            for _ in range(0 if self.is_past(matched == wanted) else count):
                key, value = self.pair(mode)
                slot = slots.get(key)
                if slot is None:
                    continue
                if mode == op.SPREAD_BYTES:
                    self.notes[first + slot][self.note] = value
                else:
                    self.put(first + slot, value)
                matched += slot == matched
                if slot == matched - 1 and self.is_past(matched == wanted):
                    break
        return pc + 6

    def is_past(self, has_all: bool) -> bool:
        """Whether the rest of the items was left out: all that is wanted was there, and where they end is known."""
        if has_all and self.after >= 0:
            self.at = self.after
            return True
        return False

    def pairs_to_streams(self, mode: int, number: int, streams: tuple[int, int]) -> None:
        keys, values = (self.streams[stream] for stream in streams)
        self.list_start = item = self.fill[number]
        while count := self.count(2):
            if item + count > self.capacity:
                raise _Stop(op.STATUS_GROW)
            for _ in range(count):
                keys[item], values[item] = self.pair(mode)
                item += 1
        self.fill[number] = item

    def pair(self, mode: int) -> tuple[int, int]:
        """A key and its value; where that is bytes, a note of them."""
        key, at = _varint(self.data, self.at, self.end)
        value, self.at = _varint(self.data, at, self.end)
        if mode & op.SPREAD_BYTES:
            self.at += self.fits(value)
            value |= self.at - value << 32
        return key, value


_WITH_NUMBER: dict[int, Callable[[_Walk, int, int], int]] = {
    op.SKIP_LONG: _Walk.skip_long,
    op.BYTES: _Walk.bytes,
    op.SKIP_BYTES: _Walk.skip_bytes,
}
_WITHOUT: dict[int, Callable[[_Walk, int], int]] = {
    op.PAIRS: _Walk.pairs,
    op.JUMP: _Walk.jump,
    op.BOOL: _Walk.bits,
    op.FLOAT: _Walk.bits,
    op.DOUBLE: _Walk.bits,
    op.FIXED: _Walk.fixed,
    op.SKIP: _Walk.skip,
    op.ENTER: _Walk.enter,
    op.LOOP: _Walk.loop,
    op.EMPTY_ITEMS: _Walk.empty_items,
    op.MARK: _Walk.mark,
}


def walk(
    source: Bytes,
    blocks: Longs,
    program: Longs,
    key_list: Longs,
    longs: Longs,
    valid: Bytes,
    first_row: int,
    notes: Longs,
    streams: Longs,
    stream_valid: Bytes,
    fill: Longs,
) -> tuple[int, int, int]:
    """As `walker.walk`: returns (status, row, place of trouble)."""
    counts = fill.tolist()
    state = _Walk(
        source.tobytes(), program.tolist(), key_list.tolist(), (longs, valid, notes, streams, stream_valid), counts
    )
    state.row = first_row
    try:
        for start, end, rows in blocks.tolist():
            state.at, state.end = start, end
            for _ in range(rows):
                state.run()
                state.row += 1
                state.note += 1
            if state.at != end:
                return op.STATUS_LEFT_OVER, state.row, state.at
    except _Stop as stop:
        return stop.status, state.row, state.at
    fill[:] = counts
    return op.STATUS_OK, state.row, 0


def measure(notes: Longs) -> int:
    """How many bytes the notes speak of; a negative note is a null."""
    return int((notes[notes > 0] & 0xFFFFFFFF).sum())


def gather(
    source: Bytes, notes: Longs, target: Bytes, offsets: npt.NDArray[np.int32], valid: Bytes, base: int, at: int
) -> int:
    """As `walker.gather`: copies what the notes speak of, and says where it ends."""
    is_there = notes >= 0
    lengths = np.where(is_there, notes & 0xFFFFFFFF, 0)
    data = source.data
    parts = [data[note >> 32 : (note >> 32) + (note & 0xFFFFFFFF)] for note in notes[is_there].tolist()]
    joined = b"".join(parts)
    target[at : at + len(joined)] = np.frombuffer(joined, np.uint8)
    offsets[base + 1 : base + 1 + len(notes)] = at + np.cumsum(lengths)
    valid[base : base + len(notes)][is_there] = 1
    return at + len(joined)
