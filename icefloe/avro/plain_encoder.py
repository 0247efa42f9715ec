"""The encoder without compiled code: the same programs with the same bytes, hundreds of times slower, but ready at once."""

from collections.abc import Callable
from itertools import pairwise

from icefloe.avro import operations as op
from icefloe.avro.blocks import zigzag
from icefloe.avro.plain_walker import Bytes, Longs

_WIDTHS = {op.PUT_BOOL: 1, op.PUT_FLOAT: 4, op.PUT_DOUBLE: 8}
_ABSENT, _PRESENT = b"\x00", b"\x02"
_LAST = b"\x00"


def _sized(count: int, items: bytes) -> bytes:
    """The items of an array with the bytes that they take, for readers who go past them."""
    return zigzag(-count) + zigzag(len(items)) + items + _LAST if count else _LAST


class _Encode:
    """The state of one run; each method puts one present value and says how many numbers its operation takes."""

    def __init__(self, ops: list[int], numbers: list[int], valid: bytes, text: bytes) -> None:
        self.ops, self.numbers, self.valid, self.text = ops, numbers, valid, text
        self.out = bytearray()
        self.row = self.i = self.each_end = 0

    def run(self, row: int) -> None:
        """One row."""
        ops, out = self.ops, self.out
        self.row = self.i = row
        pc = 0
        while (code := ops[pc]) != op.PUT_END:
            if code == op.PUT_RAW:
                out += bytes(ops[pc + 2 : pc + 2 + ops[pc + 1]])
                pc += 2 + ops[pc + 1]
            elif code == op.PUT_NEXT:
                pc = self.next(pc)
            else:
                marks = ops[pc + 2]
                is_present = marks < 0 or self.valid[marks + self.i] != 0
                if ops[pc + 3]:
                    out += _PRESENT if is_present else _ABSENT
                if code == op.PUT_IF:
                    pc = pc + 5 if is_present else ops[pc + 4]
                elif code == op.PUT_EACH:
                    pc = self.each(pc, is_present)
                else:
                    put, size = _PUTS[code]
                    if is_present:
                        put(self, pc)
                    pc += size

    def each(self, pc: int, is_present: bool) -> int:
        start, self.each_end = self.span(pc)
        if is_present and self.each_end > start:
            self.out += zigzag(self.each_end - start)
            self.i = start
            return pc + 5
        if is_present:
            self.out += _LAST
        return self.ops[pc + 4]

    def next(self, pc: int) -> int:
        self.i += 1
        if self.i < self.each_end:
            return self.ops[pc + 1]
        self.out += _LAST
        self.i = self.row
        return pc + 2

    def span(self, pc: int) -> tuple[int, int]:
        index = self.ops[pc + 1] + self.i
        return self.numbers[index], self.numbers[index + 1]

    def put_text(self, start: int, end: int) -> None:
        self.out += zigzag(end - start)
        self.out += self.text[start:end]

    # -- values

    def long(self, pc: int) -> None:
        self.out += zigzag(self.numbers[self.ops[pc + 1] + self.i])

    def bits(self, pc: int) -> None:
        width = _WIDTHS[self.ops[pc]]
        number = self.numbers[self.ops[pc + 1] + self.i]
        self.out += number.to_bytes(8, "little", signed=True)[:width]

    def bytes(self, pc: int) -> None:
        self.put_text(*self.span(pc))

    def fixed(self, pc: int) -> None:
        base, length = self.ops[pc + 1], self.ops[pc + 4]
        self.out += self.text[base + self.i * length : base + (self.i + 1) * length]

    def pairs_of_longs(self, pc: int) -> None:
        start, end = self.span(pc)
        keys, values = self.ops[pc + 4], self.ops[pc + 5]
        numbers = (self.numbers[column + k] for k in range(start, end) for column in (keys, values))
        self.out += _sized(end - start, b"".join(map(zigzag, numbers)))

    def pairs_of_texts(self, pc: int) -> None:
        start, end = self.span(pc)
        keys, values = self.ops[pc + 4], self.ops[pc + 5]
        bounds = self.numbers[values + start : values + end + 1]
        texts = (self.text[first:last] for first, last in pairwise(bounds))
        pairs = zip(self.numbers[keys + start : keys + end], texts, strict=True)
        self.out += _sized(end - start, b"".join(zigzag(key) + zigzag(len(text)) + text for key, text in pairs))


_PUTS: dict[int, tuple[Callable[[_Encode, int], None], int]] = {
    op.PUT_LONG: (_Encode.long, 4),
    op.PUT_BOOL: (_Encode.bits, 4),
    op.PUT_FLOAT: (_Encode.bits, 4),
    op.PUT_DOUBLE: (_Encode.bits, 4),
    op.PUT_TEXT: (_Encode.bytes, 4),
    op.PUT_FIXED: (_Encode.fixed, 5),
    op.PUT_PAIRS_LONG: (_Encode.pairs_of_longs, 6),
    op.PUT_PAIRS_TEXT: (_Encode.pairs_of_texts, 6),
}


def encode(
    program: Longs,
    numbers: Longs,
    valid: Bytes,
    arena: Bytes,
    first: int,
    last: int,
    target: Bytes,
    block_bytes: int,
    blocks: Longs,
) -> tuple[int, int, int]:
    """As `encoder.encode`: returns (rows written, blocks, bytes)."""
    state = _Encode(program.tolist(), numbers.tolist(), valid.tobytes(), arena.tobytes())
    out = state.out
    noted = done = block_start = block_row = 0
    for row in range(first, last):
        row_start = len(out)
        state.run(row)
        is_block = len(out) - block_start >= block_bytes
        if len(out) > len(target) or (is_block and noted == len(blocks)):
            del out[row_start:]
            break
        done += 1
        if is_block:
            blocks[noted] = done - block_row, len(out)
            noted, block_start, block_row = noted + 1, len(out), done
    if done > block_row and noted < len(blocks):
        blocks[noted] = done - block_row, len(out)
        noted += 1
    target[: len(out)] = memoryview(out)
    return done, noted, len(out)
