"""The compiled interpreter that runs a program over Avro rows and notes their values; it decides nothing about what they mean.

A program (see `program.py`) is a flat array of operations. Every value lands in a cell: numbers as 64-bit patterns in
`longs`, text and bytes as a note (where << 32 | length) in `notes`, items of lists in `streams`. Nothing is read outside
of a block: every operation checks what is left of it, so hostile bytes end in a status, never in a loop or a bad read.

This module is imported when the first file is read, since importing numba takes a while; kernels are compiled on their
first call and cached on disk.
"""

import numpy as np

from icefloe.avro import operations as op
from icefloe.avro.memory import Bytes, Int, Longs, Offsets, byte_at, eight_at, helper, kernel, put_byte, put_eight

_U0 = np.uint64(0)
_U1 = np.uint64(1)
_U7 = np.uint64(7)
_U127 = np.uint64(127)
_DEPTH = 64


@kernel
def _long_varint(data: Int, at: Int, end: Int) -> tuple[Int, Int]:
    """A zigzag number of more than one byte; `at` is negative when it is cut off or does not fit 64 bits."""
    value = _U0
    shift = _U0
    for i in range(10):
        if at >= end:
            return np.int64(0), np.int64(-1)
        byte = np.uint64(byte_at(data, at))
        at += 1
        value |= (byte & _U127) << shift
        if byte < 128:
            if i == 9 and byte > 1:
                return np.int64(0), np.int64(-1)
            return np.int64(value >> _U1) ^ -np.int64(value & _U1), at
        shift += _U7
    return np.int64(0), np.int64(-1)


@helper
def _varint(data: Int, at: Int, end: Int) -> tuple[Int, Int]:
    """A zigzag number at `at` and the place after it; that is negative when there is none."""
    if at < end:
        byte = byte_at(data, at)
        if byte < 128:
            return (byte >> 1) ^ -(byte & 1), at + 1
        if at + 1 < end:
            byte = (byte & 127) | (byte_at(data, at + 1) << 7)
            if byte < 16384:
                return (byte >> 1) ^ -(byte & 1), at + 2
    return _long_varint(data, at, end)


@kernel
def _slot_of(keys: Int, first: Int, count: Int, key: Int, hint: Int) -> Int:
    """Which of `count` sorted keys from `first` on is `key`, or -1; `hint` is tried before searching."""
    if hint < count and eight_at(keys, 8 * (first + hint)) == key:
        return hint
    low: Int = 0
    high = count
    while low < high:
        middle = (low + high) >> 1
        if eight_at(keys, 8 * (first + middle)) < key:
            low = middle + 1
        else:
            high = middle
    if low < count and eight_at(keys, 8 * (first + low)) == key:
        return low
    return -1


@kernel
def _array_count(data: Int, at: Int, end: Int, smallest: Int) -> tuple[Int, Int, Int, int]:
    """The next count of an array: (count, place after, place after its items or -1, status).

    Writers may say how many bytes the items take. Counts that cannot fit in what is left are refused.
    """
    after: Int = np.int64(-1)
    count, at = _varint(data, at, end)
    if at < 0:
        return np.int64(0), at, after, op.STATUS_BAD_VARINT
    if count < 0:
        size, at = _varint(data, at, end)
        if at < 0:
            return np.int64(0), at, after, op.STATUS_BAD_VARINT
        if size < 0 or size > end - at or count == np.int64(-9223372036854775808):
            return np.int64(0), at, after, op.STATUS_BAD_COUNT
        count = -count
        after = at + size
    if smallest > 0 and count > (end - at) // smallest:
        return np.int64(0), at, after, op.STATUS_BAD_COUNT
    return count, at, after, op.STATUS_OK


@kernel
def walk(
    source: Bytes,
    blocks: Longs,
    program: Longs,
    key_list: Longs,
    longs: Longs,
    valid: Bytes,
    first_row: Int,
    notes: Longs,
    streams: Longs,
    stream_valid: Bytes,
    fill: Longs,
) -> tuple[int, Int, Int]:
    """Run `program` once for each row of each block (start, end, rows); returns (status, row, place of trouble).

    `longs` and `valid` are indexed by column and by row of the file, `notes` by column and by row of this call.
    """
    data = np.int64(source.ctypes.data)
    keys = np.int64(key_list.ctypes.data)
    remaining = np.zeros(_DEPTH, np.int64)
    list_starts = np.zeros(_DEPTH, np.int64)
    outer_items = np.zeros(_DEPTH, np.int64)
    capacity = streams.shape[1]
    row = np.int64(first_row)
    note = np.int64(0)
    for block in range(blocks.shape[0]):
        at = blocks[block, 0]
        end = blocks[block, 1]
        for _ in range(blocks[block, 2]):
            pc = 0
            depth = 0
            item = np.int64(0)
            slot: Int = np.int64(-1)
            hint: Int = np.int64(0)
            while True:
                code = program[pc]
                if code <= op.LAST_VARINT_OP:
                    value, at = _varint(data, at, end)
                    if at < 0:
                        return op.STATUS_BAD_VARINT, row, at
                    if code == op.LONG:
                        target = program[pc + 1]
                        if target >= 0:
                            longs[target, row] = value
                            valid[target, row] = 1
                        else:
                            streams[-1 - target, item] = value
                            stream_valid[-1 - target, item] = 1
                        pc += 2
                    elif code == op.SKIP_LONG:
                        pc += 1
                    elif code == op.UNION:
                        if value < 0 or value >= program[pc + 1]:
                            return op.STATUS_BAD_BRANCH, row, at
                        pc = program[pc + 2 + value]
                    else:
                        # op.BYTES, op.SKIP_BYTES: the number is a length
                        if value < 0 or value > end - at:
                            return op.STATUS_BAD_LENGTH, row, at
                        if code == op.BYTES:
                            target = program[pc + 1]
                            if target >= 0:
                                notes[target, note] = (at << 32) | value
                            else:
                                streams[-1 - target, item] = (at << 32) | value
                                stream_valid[-1 - target, item] = 1
                            pc += 2
                        else:
                            pc += 1
                        at += value
                elif code == op.PAIRS:
                    mode = program[pc + 1]
                    first = program[pc + 2]
                    wanted = program[pc + 3]
                    start = program[pc + 4]
                    value_stream = program[pc + 5]
                    place = np.int64(0)
                    matched = np.int64(0)
                    if mode >= op.PAIRS_LONG:
                        place = fill[wanted]
                    while True:
                        count, at, after, status = _array_count(data, at, end, 2)
                        if status != op.STATUS_OK:
                            return status, row, at
                        if count == 0:
                            break
                        if mode >= op.PAIRS_LONG and place + count > capacity:
                            return op.STATUS_GROW, row, at
                        if mode < op.PAIRS_LONG and after >= 0 and matched == wanted:
                            at = after
                            continue
                        hint = np.int64(0)
                        for _ in range(count):
                            key, at = _varint(data, at, end)
                            if at < 0:
                                return op.STATUS_BAD_VARINT, row, at
                            value, at = _varint(data, at, end)
                            if at < 0:
                                return op.STATUS_BAD_VARINT, row, at
                            if mode & op.SPREAD_BYTES:
                                # the number is a length: note where the bytes are
                                if value < 0 or value > end - at:
                                    return op.STATUS_BAD_LENGTH, row, at
                                at += value
                                value = ((at - value) << 32) | value
                            if mode >= op.PAIRS_LONG:
                                streams[start, place] = key
                                streams[value_stream, place] = value
                                place += 1
                            elif wanted > 0:
                                if hint < wanted and eight_at(keys, 8 * (start + hint)) == key:
                                    slot = hint
                                else:
                                    slot = _slot_of(keys, start, wanted, key, hint)
                                if slot >= 0:
                                    hint = slot + 1
                                    if mode == op.SPREAD_BYTES:
                                        notes[first + slot, note] = value
                                    else:
                                        longs[first + slot, row] = value
                                        valid[first + slot, row] = 1
                                    if slot == matched:
                                        matched += 1
                                        if after >= 0 and matched == wanted:
                                            # All that is wanted was there, and where the rest ends is known.
                                            at = after
                                            break
                    if mode >= op.PAIRS_LONG:
                        longs[first, row] = place - fill[wanted]
                        valid[first, row] = 1
                        fill[wanted] = place
                    pc += 6
                elif code == op.END:
                    break
                elif code == op.JUMP:
                    pc = program[pc + 1]
                elif code in (op.BOOL, op.FLOAT, op.DOUBLE):
                    width = 1 if code == op.BOOL else (4 if code == op.FLOAT else 8)
                    if width > end - at:
                        return op.STATUS_BAD_LENGTH, row, at
                    bits = _U0
                    for i in range(width):
                        bits |= np.uint64(byte_at(data, at + i)) << np.uint64(8 * i)
                    if code == op.BOOL and bits > 1:
                        return op.STATUS_BAD_BOOLEAN, row, at
                    at += width
                    target = program[pc + 1]
                    if target >= 0:
                        longs[target, row] = np.int64(bits)
                        valid[target, row] = 1
                    else:
                        streams[-1 - target, item] = np.int64(bits)
                        stream_valid[-1 - target, item] = 1
                    pc += 2
                elif code == op.FIXED:
                    length = program[pc + 2]
                    if length > end - at:
                        return op.STATUS_BAD_LENGTH, row, at
                    target = program[pc + 1]
                    if target >= 0:
                        notes[target, note] = (at << 32) | length
                    else:
                        streams[-1 - target, item] = (at << 32) | length
                        stream_valid[-1 - target, item] = 1
                    at += length
                    pc += 3
                elif code == op.SKIP:
                    if program[pc + 1] > end - at:
                        return op.STATUS_BAD_LENGTH, row, at
                    at += program[pc + 1]
                    pc += 2
                elif code == op.ENTER:
                    remaining[depth] = 0
                    outer_items[depth] = item
                    if program[pc + 1] >= 0:
                        list_starts[depth] = fill[program[pc + 1]]
                    depth += 1
                    hint = np.int64(0)
                    pc += 2
                elif code == op.LOOP:
                    array = program[pc + 1]
                    if remaining[depth - 1] == 0:
                        count, at, _, status = _array_count(data, at, end, program[pc + 3])
                        if status != op.STATUS_OK:
                            return status, row, at
                        if count == 0:
                            depth -= 1
                            item = outer_items[depth]
                            if array >= 0:
                                target = program[pc + 2]
                                if target >= 0:
                                    longs[target, row] = fill[array] - list_starts[depth]
                                    valid[target, row] = 1
                                else:
                                    streams[-1 - target, item] = fill[array] - list_starts[depth]
                                    stream_valid[-1 - target, item] = 1
                            pc = program[pc + 4]
                            continue
                        remaining[depth - 1] = count
                    remaining[depth - 1] -= 1
                    if array >= 0:
                        item = fill[array]
                        if item >= capacity:
                            return op.STATUS_GROW, row, at
                        fill[array] = item + 1
                    pc += 5
                elif code == op.MARK:
                    target = program[pc + 1]
                    if target >= 0:
                        longs[target, row] = 1
                        valid[target, row] = 1
                    else:
                        streams[-1 - target, item] = 1
                        stream_valid[-1 - target, item] = 1
                    pc += 2
                else:
                    # op.EMPTY_ITEMS: items take no bytes, so counting them would be the only work
                    count, at, _, status = _array_count(data, at, end, 0)
                    if status != op.STATUS_OK:
                        return status, row, at
                    if count == 0:
                        pc += 1
            row += 1
            note += 1
        if at != end:
            return op.STATUS_LEFT_OVER, row, at
    return op.STATUS_OK, row, np.int64(0)


@kernel
def measure(notes: Longs) -> Int:
    """How many bytes the notes speak of; a negative note is a null."""
    total = np.int64(0)
    for i in range(notes.shape[0]):
        if notes[i] > 0:
            total += notes[i] & 0xFFFFFFFF
    return total


@helper
def copy_bytes(source: Int, start: Int, out: Int, at: Int, length: Int) -> None:
    """Copy bytes between addresses, eight at a time; nothing outside of the two ranges is touched."""
    if length >= 8:
        last = length - 8
        done = 0
        while done < last:
            put_eight(out, at + done, eight_at(source, start + done))
            done += 8
        put_eight(out, at + last, eight_at(source, start + last))
    else:
        for i in range(length):
            put_byte(out, at + i, byte_at(source, start + i))


@kernel
def gather(source: Bytes, notes: Longs, target: Bytes, offsets: Offsets, valid: Bytes, base: Int, at: Int) -> Int:
    """Copy what the notes speak of to `target` from `at` on, ends into offsets[base + 1:], and mark what is there.

    The notes come from `walk` over the same bytes, and `target` has room for what `measure` counted.
    """
    data = np.int64(source.ctypes.data)
    out = np.int64(target.ctypes.data)
    for i in range(notes.shape[0]):
        note = notes[i]
        if note >= 0:
            length = note & 0xFFFFFFFF
            copy_bytes(data, note >> 32, out, at, length)
            at += length
            valid[base + i] = 1
        offsets[base + i + 1] = at
    return at
