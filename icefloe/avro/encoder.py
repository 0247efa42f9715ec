"""The compiled encoder that runs a program over columns and writes Avro rows: the inverse of the walker.

All numbers are in one array, all marks of what is not null in another, all text in a third; operations carry the places
where their columns start (see `encode.py`). Each operation makes sure that its bytes fit before it writes them.
"""

import numpy as np

from icefloe.avro import operations as op
from icefloe.avro.memory import Bytes, Int, Longs, helper, kernel, put_byte
from icefloe.avro.walker import copy_bytes

_U1 = np.uint64(1)
_U7 = np.uint64(7)
_U127 = np.uint64(127)
_U128 = np.uint64(128)
_NULL = 0
_PRESENT = 2  # branch 1 of a union, as Avro writes numbers


@helper
def _put_long(out: Int, at: Int, value: Int) -> Int:
    """Write a number at an address and give the place after it; ten bytes must be free."""
    rest = (np.uint64(value) << _U1) ^ np.uint64(value >> 63)
    while rest >= _U128:
        put_byte(out, at, np.int64((rest & _U127) | _U128))
        at += 1
        rest >>= _U7
    put_byte(out, at, np.int64(rest))
    return at + 1


@helper
def _long_size(value: Int) -> Int:
    """How many bytes a number takes."""
    rest = (np.uint64(value) << _U1) ^ np.uint64(value >> 63)
    size = np.int64(1)
    while rest >= _U128:
        size += 1
        rest >>= _U7
    return size


@kernel
def encode(
    program: Longs,
    numbers: Longs,
    valid: Bytes,
    arena: Bytes,
    first: Int,
    last: Int,
    target: Bytes,
    block_bytes: Int,
    blocks: Longs,
) -> tuple[Int, int, Int]:
    """Write rows from `first` on until `last`, or until `target` is full; returns (rows written, blocks, bytes).

    Each block is noted as (rows, end). A row that did not fit is not counted, and what was written of it is dropped.
    """
    out = np.int64(target.ctypes.data)
    capacity = np.int64(target.shape[0])
    text = np.int64(arena.ctypes.data)
    at: Int = np.int64(0)
    block_start: Int = np.int64(0)
    block_rows = np.int64(0)
    noted = 0
    row = np.int64(first)
    while row < last:
        row_start = at
        pc = 0
        i = row
        each_end = np.int64(0)
        full = False
        while True:
            code = program[pc]
            if code == op.PUT_END:
                break
            if at + 16 > capacity:
                full = True
                break
            if code == op.PUT_RAW:
                count = program[pc + 1]
                if at + count > capacity:
                    full = True
                    break
                for k in range(count):
                    put_byte(out, at + k, program[pc + 2 + k])
                at += count
                pc += 2 + count
                continue
            if code == op.PUT_NEXT:
                i += 1
                if i < each_end:
                    pc = program[pc + 1]
                else:
                    at = _put_long(out, at, 0)
                    i = row
                    pc += 2
                continue
            base = program[pc + 1]
            marks = program[pc + 2]
            optional = program[pc + 3]
            is_present = marks < 0 or valid[marks + i] != 0
            if optional:
                put_byte(out, at, _PRESENT if is_present else _NULL)
                at += 1
            if code == op.PUT_IF:
                pc = pc + 5 if is_present else program[pc + 4]
                continue
            if code == op.PUT_EACH:
                start = numbers[base + i]
                each_end = numbers[base + i + 1]
                if is_present and each_end > start:
                    at = _put_long(out, at, each_end - start)
                    i = start
                    pc += 5
                else:
                    if is_present:
                        at = _put_long(out, at, 0)
                    pc = program[pc + 4]
                continue
            if code == op.PUT_LONG:
                if is_present:
                    at = _put_long(out, at, numbers[base + i])
                pc += 4
            elif code == op.PUT_TEXT:
                if is_present:
                    start = numbers[base + i]
                    length = numbers[base + i + 1] - start
                    if at + 16 + length > capacity:
                        full = True
                        break
                    at = _put_long(out, at, length)
                    copy_bytes(text, start, out, at, length)
                    at += length
                pc += 4
            elif code == op.PUT_PAIRS_LONG:
                if is_present:
                    start = numbers[base + i]
                    end = numbers[base + i + 1]
                    if at + 32 + 20 * (end - start) > capacity:
                        full = True
                        break
                    if end > start:
                        keys = program[pc + 4]
                        values = program[pc + 5]
                        size: Int = np.int64(0)
                        for k in range(start, end):
                            size += _long_size(numbers[keys + k]) + _long_size(numbers[values + k])
                        # With the bytes that the items take, for readers who go past them.
                        at = _put_long(out, at, start - end)
                        at = _put_long(out, at, size)
                        for k in range(start, end):
                            at = _put_long(out, at, numbers[keys + k])
                            at = _put_long(out, at, numbers[values + k])
                    at = _put_long(out, at, 0)
                pc += 6
            elif code == op.PUT_PAIRS_TEXT:
                if is_present:
                    start = numbers[base + i]
                    end = numbers[base + i + 1]
                    keys = program[pc + 4]
                    values = program[pc + 5]
                    size = numbers[values + end] - numbers[values + start]
                    if at + 32 + 20 * (end - start) + size > capacity:
                        full = True
                        break
                    if end > start:
                        for k in range(start, end):
                            length = numbers[values + k + 1] - numbers[values + k]
                            size += _long_size(numbers[keys + k]) + _long_size(length)
                        at = _put_long(out, at, start - end)
                        at = _put_long(out, at, size)
                        for k in range(start, end):
                            at = _put_long(out, at, numbers[keys + k])
                            place = numbers[values + k]
                            length = numbers[values + k + 1] - place
                            at = _put_long(out, at, length)
                            copy_bytes(text, place, out, at, length)
                            at += length
                    at = _put_long(out, at, 0)
                pc += 6
            elif code == op.PUT_FIXED:
                length = program[pc + 4]
                if is_present:
                    if at + 16 + length > capacity:
                        full = True
                        break
                    copy_bytes(text, base + i * length, out, at, length)
                    at += length
                pc += 5
            else:
                # op.PUT_BOOL, op.PUT_FLOAT, PUT_DOUBLE: the bytes of the number
                width = 1 if code == op.PUT_BOOL else (4 if code == op.PUT_FLOAT else 8)
                if is_present:
                    value = numbers[base + i]
                    for k in range(width):
                        put_byte(out, at + k, value >> (8 * k))
                    at += width
                pc += 4
        if full:
            at = row_start
            break
        row += 1
        block_rows += 1
        if at - block_start >= block_bytes:
            if noted == blocks.shape[0]:
                at = row_start
                row -= 1
                block_rows -= 1
                break
            blocks[noted, 0] = block_rows
            blocks[noted, 1] = at
            noted += 1
            block_start = at
            block_rows = np.int64(0)
    if block_rows > 0 and noted < blocks.shape[0]:
        blocks[noted, 0] = block_rows
        blocks[noted, 1] = at
        noted += 1
    return row - first, noted, at
