"""The compiled reader of deflate streams (RFC 1951): many blocks in one call, without the interpreter lock between them.

zlib would do, but gives up the lock and takes it again for each block, which stalls threads that share it, and copies what
it made. Nothing is read beyond 16 bytes after a stream, which in Avro files are its sync marker, and nothing is written
beyond the room given; hostile bytes end in a status.
"""

from typing import Any

import numpy as np

from icefloe.avro.memory import byte_at, eight_at, helper, kernel, put_byte, put_eight

INFLATED = 0
NO_ROOM = 1
CUT_OFF = 2
BAD_BLOCK = 3
BAD_LENGTHS = 4
BAD_DISTANCE = 5
BAD_CODE = 6

PROBLEMS = {
    CUT_OFF: "the data is cut off",
    BAD_BLOCK: "a block is of no known kind or has a wrong length",
    BAD_LENGTHS: "code lengths that make no code",
    BAD_DISTANCE: "a distance that reaches before the start",
    BAD_CODE: "a code that stands for nothing",
}

SLACK = 300
"""Room that must be left after what may be written: the longest match, and eight bytes that are written at once."""

_LITERAL = 1 << 30
_END = 1 << 29
_LONGER = 1 << 28
_VALUE = 0xFFFF
_MOST_BITS = 15
_LITERAL_BITS = 11
_DISTANCE_BITS = 8
_SYMBOLS = 320

# An entry of a table: bits of the code, << 4 extra bits to read, << 8 a value, and what it is.
_LENGTH_BASE = np.array(
    [3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258],
    np.int64,
)
_LENGTH_EXTRA = np.array(
    [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0], np.int64
)
_DISTANCE_EXTRA = np.array([max(0, each // 2 - 1) for each in range(30)], np.int64)
_DISTANCE_BASE = np.array([1, *(1 + np.cumsum(1 << _DISTANCE_EXTRA)[:-1])], np.int64)
_ORDER = np.array([16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15], np.int64)

_U0 = np.uint64(0)
_U1 = np.uint64(1)
_U3 = np.uint64(3)
_U4 = np.uint64(4)
_U7 = np.uint64(7)
_U8 = np.uint64(8)
_U15 = np.uint64(15)
_U56 = np.uint64(56)
_U63 = np.uint64(63)
_ONES = np.int64(0x0101010101010101)


@kernel
def _meaning(symbol: Any, kind: Any) -> Any:
    """The entry of a symbol without the bits of its code, or -1; kinds are code lengths, literals and distances."""
    if kind == 0:
        return symbol << 8
    if kind == 1:
        if symbol < 256:
            return _LITERAL | (symbol << 8)
        if symbol == 256:
            return _END
        if symbol < 286:
            return (_LENGTH_BASE[symbol - 257] << 8) | (_LENGTH_EXTRA[symbol - 257] << 4)
        return -1
    if symbol < 30:
        return (_DISTANCE_BASE[symbol] << 8) | (_DISTANCE_EXTRA[symbol] << 4)
    return -1


@kernel
def _build(lengths: Any, first: Any, count: Any, bits: Any, kind: Any, table: Any) -> Any:
    """Fill a table for a code given by its lengths: found by the next `bits` bits, longer codes by a second step."""
    counts = np.zeros(_MOST_BITS + 1, np.int64)
    for i in range(count):
        counts[lengths[first + i]] += 1
    counts[0] = 0
    left = 1
    longest = 0
    codes = np.zeros(_MOST_BITS + 2, np.int64)
    for length in range(1, _MOST_BITS + 1):
        left = (left << 1) - counts[length]
        if left < 0:
            return BAD_LENGTHS
        codes[length + 1] = (codes[length] + counts[length]) << 1
        if counts[length] > 0:
            longest = length
    # A code with gaps is legal only where a single one-bit code is all, or none at all.
    if left > 0 and longest > 0 and (kind == 0 or longest > 1):
        return BAD_LENGTHS
    size = 1 << bits
    for i in range(size):
        table[i] = 0
    deeper = np.zeros(size if longest > bits else 1, np.int64)
    backwards = np.zeros(count, np.int64)
    for i in range(count):
        length = lengths[first + i]
        if length == 0:
            continue
        code = codes[length]
        codes[length] += 1
        turned = 0
        for _ in range(length):
            turned = (turned << 1) | (code & 1)
            code >>= 1
        backwards[i] = turned
        if length > bits:
            start = turned & (size - 1)
            deeper[start] = max(deeper[start], length - bits)
    used = size
    for i in range(count):
        length = lengths[first + i]
        if length == 0:
            continue
        entry = _meaning(i, kind)
        if entry < 0:
            entry = 0
        else:
            entry |= length
        turned = backwards[i]
        if length <= bits:
            step = 1 << length
            for at in range(turned, size, step):
                table[at] = entry
            continue
        start = turned & (size - 1)
        depth = deeper[start]
        if table[start] == 0:
            if used + (1 << depth) > table.shape[0]:
                return BAD_LENGTHS
            table[start] = _LONGER | (used << 8) | (depth << 4)
            for at in range(used, used + (1 << depth)):
                table[at] = 0
            used += 1 << depth
        base = (table[start] >> 8) & _VALUE
        for at in range(turned >> bits, 1 << depth, 1 << (length - bits)):
            table[base + at] = entry
    return INFLATED


@helper
def _copy_match(out: Any, at: Any, distance: Any, length: Any) -> Any:
    """Repeat what is `distance` bytes before `at`; up to eight bytes more than `length` may be written."""
    if distance >= 8:
        put_eight(out, at, eight_at(out, at - distance))
        done = 8
        while done < length:
            put_eight(out, at + done, eight_at(out, at + done - distance))
            done += 8
    elif distance == 1:
        pattern = byte_at(out, at - 1) * _ONES
        done = 0
        while done < length:
            put_eight(out, at + done, pattern)
            done += 8
    else:
        # Of the eight bytes only as many as the distance are right; the next step writes over the others.
        done = 0
        while done < length:
            put_eight(out, at + done, eight_at(out, at + done - distance))
            done += distance


@kernel
def _inflate(data: Any, at: Any, end: Any, out: Any, begin: Any, room: Any, literals: Any, distances: Any) -> Any:
    """One stream, from bytes `at` to `end`, to `out` from `begin` on, below `room`: (status, place after the last byte)."""
    lengths = np.zeros(_SYMBOLS + 256, np.int64)
    place = begin
    bits = _U0
    count = _U0
    literal_mask = np.uint64((1 << _LITERAL_BITS) - 1)
    distance_mask = np.uint64((1 << _DISTANCE_BITS) - 1)
    is_last = False
    while not is_last:
        if at > end + 8:
            return CUT_OFF, place
        bits |= np.uint64(eight_at(data, at)) << count
        at += np.int64((_U63 - count) >> _U3)
        count |= _U56
        is_last = (bits & _U1) == _U1
        kind = np.int64((bits >> _U1) & _U3)
        bits >>= _U3
        count -= _U3
        if kind == 0:
            at -= np.int64(count >> _U3)
            bits = _U0
            count = _U0
            if at + 4 > end:
                return CUT_OFF, place
            size = byte_at(data, at) | (byte_at(data, at + 1) << 8)
            if size ^ 0xFFFF != byte_at(data, at + 2) | (byte_at(data, at + 3) << 8):
                return BAD_BLOCK, place
            at += 4
            if size > end - at:
                return CUT_OFF, place
            if size > room - place:
                return NO_ROOM, place
            for i in range(size):
                put_byte(out, place + i, byte_at(data, at + i))
            at += size
            place += size
            continue
        if kind == 3:
            return BAD_BLOCK, place
        if kind == 1:
            for i in range(288):
                lengths[i] = 8 if i < 144 else (9 if i < 256 else (7 if i < 280 else 8))
            for i in range(32):
                lengths[288 + i] = 5
            literal_count = np.int64(288)
            distance_count = np.int64(32)
        else:
            literal_count = np.int64(bits & np.uint64(31)) + 257
            distance_count = np.int64((bits >> np.uint64(5)) & np.uint64(31)) + 1
            code_count = np.int64((bits >> np.uint64(10)) & _U15) + 4
            bits >>= np.uint64(14)
            count -= np.uint64(14)
            if literal_count > 286 or distance_count > 30:
                return BAD_LENGTHS, place
            for i in range(19):
                lengths[i] = 0
            for i in range(code_count):
                if count < _U3:
                    if at > end + 8:
                        return CUT_OFF, place
                    bits |= np.uint64(eight_at(data, at)) << count
                    at += np.int64((_U63 - count) >> _U3)
                    count |= _U56
                lengths[_ORDER[i]] = np.int64(bits & _U7)
                bits >>= _U3
                count -= _U3
            if _build(lengths, 0, 19, 7, 0, literals) != INFLATED:
                return BAD_LENGTHS, place
            done = np.int64(0)
            total = literal_count + distance_count
            while done < total:
                if at > end + 8:
                    return CUT_OFF, place
                bits |= np.uint64(eight_at(data, at)) << count
                at += np.int64((_U63 - count) >> _U3)
                count |= _U56
                entry = np.int64(literals[bits & np.uint64(127)])
                used = np.uint64(entry & 15)
                if used == _U0:
                    return BAD_CODE, place
                bits >>= used
                count -= used
                symbol = entry >> 8
                if symbol < 16:
                    lengths[done] = symbol
                    done += 1
                    continue
                value = np.int64(0)
                if symbol == 16:
                    if done == 0:
                        return BAD_LENGTHS, place
                    value = lengths[done - 1]
                    repeat = 3 + np.int64(bits & _U3)
                    used = np.uint64(2)
                elif symbol == 17:
                    repeat = 3 + np.int64(bits & _U7)
                    used = _U3
                else:
                    repeat = 11 + np.int64(bits & np.uint64(127))
                    used = _U7
                bits >>= used
                count -= used
                if done + repeat > total:
                    return BAD_LENGTHS, place
                for i in range(repeat):
                    lengths[done + i] = value
                done += repeat
            if lengths[256] == 0:
                return BAD_LENGTHS, place
        if _build(lengths, literal_count, distance_count, _DISTANCE_BITS, 2, distances) != INFLATED:
            return BAD_LENGTHS, place
        if _build(lengths, 0, literal_count, _LITERAL_BITS, 1, literals) != INFLATED:
            return BAD_LENGTHS, place
        if at > end + 8:
            return CUT_OFF, place
        bits |= np.uint64(eight_at(data, at)) << count
        at += np.int64((_U63 - count) >> _U3)
        count |= _U56
        entry = np.int64(literals[bits & literal_mask])
        while True:
            if place > room:
                return NO_ROOM, place
            if entry & _LITERAL:
                put_byte(out, place, entry >> 8)
                place += 1
                used = np.uint64(entry & 15)
                bits >>= used
                count -= used
                entry = np.int64(literals[bits & literal_mask])
                if entry & _LITERAL:
                    put_byte(out, place, entry >> 8)
                    place += 1
                    used = np.uint64(entry & 15)
                    bits >>= used
                    count -= used
                    entry = np.int64(literals[bits & literal_mask])
                    if entry & _LITERAL:
                        put_byte(out, place, entry >> 8)
                        place += 1
                        used = np.uint64(entry & 15)
                        bits >>= used
                        count -= used
                        if at > end + 8:
                            return CUT_OFF, place
                        bits |= np.uint64(eight_at(data, at)) << count
                        at += np.int64((_U63 - count) >> _U3)
                        count |= _U56
                        entry = np.int64(literals[bits & literal_mask])
                        continue
                if at > end + 8:
                    return CUT_OFF, place
                bits |= np.uint64(eight_at(data, at)) << count
                at += np.int64((_U63 - count) >> _U3)
                count |= _U56
            if entry & _LONGER:
                extra = np.uint64((entry >> 4) & 15)
                below = (bits >> np.uint64(_LITERAL_BITS)) & ((_U1 << extra) - _U1)
                entry = np.int64(literals[np.uint64((entry >> 8) & _VALUE) + below])
                if entry & _LITERAL:
                    put_byte(out, place, entry >> 8)
                    place += 1
                    used = np.uint64(entry & 15)
                    bits >>= used
                    count -= used
                    if at > end + 8:
                        return CUT_OFF, place
                    bits |= np.uint64(eight_at(data, at)) << count
                    at += np.int64((_U63 - count) >> _U3)
                    count |= _U56
                    entry = np.int64(literals[bits & literal_mask])
                    continue
            used = np.uint64(entry & 15)
            bits >>= used
            count -= used
            if entry & _END:
                break
            extra = np.uint64((entry >> 4) & 15)
            length = ((entry >> 8) & _VALUE) + np.int64(bits & ((_U1 << extra) - _U1))
            bits >>= extra
            count -= extra
            if length == 0:
                return BAD_CODE, place
            entry = np.int64(distances[bits & distance_mask])
            if entry & _LONGER:
                extra = np.uint64((entry >> 4) & 15)
                below = (bits >> np.uint64(_DISTANCE_BITS)) & ((_U1 << extra) - _U1)
                entry = np.int64(distances[np.uint64((entry >> 8) & _VALUE) + below])
            used = np.uint64(entry & 15)
            bits >>= used
            count -= used
            extra = np.uint64((entry >> 4) & 15)
            distance = ((entry >> 8) & _VALUE) + np.int64(bits & ((_U1 << extra) - _U1))
            bits >>= extra
            count -= extra
            if distance == 0:
                return BAD_CODE, place
            if distance > place - begin:
                return BAD_DISTANCE, place
            # The next entry is on its way from memory while the match is copied.
            if at > end + 8:
                return CUT_OFF, place
            bits |= np.uint64(eight_at(data, at)) << count
            at += np.int64((_U63 - count) >> _U3)
            count |= _U56
            entry = np.int64(literals[bits & literal_mask])
            _copy_match(out, place, distance, length)
            place += length
    if at - np.int64(count >> _U3) > end:
        return CUT_OFF, place
    if place > room:
        return NO_ROOM, place
    return INFLATED, place


@kernel
def inflate_blocks(source: Any, blocks: Any, first: Any, enough: Any, target: Any, ends: Any) -> Any:
    """Inflate blocks (rows, start, end) from `first` on into `target` until there is enough: (status, blocks done).

    The end of each goes to `ends`. NO_ROOM speaks of the block after those that are done; those are whole.
    """
    literals = np.zeros(1 << (_LITERAL_BITS + 1), np.int32)
    distances = np.zeros(1 << (_DISTANCE_BITS + 2), np.int32)
    data = np.int64(source.ctypes.data)
    out = np.int64(target.ctypes.data)
    room = target.shape[0] - SLACK
    place = np.int64(0)
    done = 0
    while first + done < blocks.shape[0] and place < enough:
        status, place = _inflate(
            data, blocks[first + done, 1], blocks[first + done, 2], out, place, room, literals, distances
        )
        if status != INFLATED:
            return status, done
        ends[done] = place
        done += 1
    return INFLATED, done
