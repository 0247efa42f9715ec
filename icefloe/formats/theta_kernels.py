"""Compiled code that puts values into the hash table of a theta sketch: MurmurHash3 (x64, 128 bits) of their bytes.

Imported when the first values come, since importing numba takes a while.
"""

import numpy as np

from icefloe.avro.memory import Bytes, Int, Longs, byte_at, eight_at, helper, kernel

_SEED = np.uint64(9001)
_C1 = np.uint64(0x87C37B91114253D5)
_C2 = np.uint64(0x4CF5AD432745937F)
_FIVE = np.uint64(5)
_ADDED_1 = np.uint64(0x52DCE729)
_ADDED_2 = np.uint64(0x38495AB5)
_FINAL_1 = np.uint64(0xFF51AFD7ED558CCD)
_FINAL_2 = np.uint64(0xC4CEB9FE1A85EC53)
_ONE = np.uint64(1)
_EIGHT = np.uint64(8)
_27 = np.uint64(27)
_31 = np.uint64(31)
_33 = np.uint64(33)
_37 = np.uint64(37)
_64 = np.uint64(64)


@helper
def _rotated(word: np.uint64, by: np.uint64) -> np.uint64:
    return (word << by) | (word >> (_64 - by))


@helper
def _finished(word: np.uint64) -> np.uint64:
    word ^= word >> _33
    word *= _FINAL_1
    word ^= word >> _33
    word *= _FINAL_2
    word ^= word >> _33
    return word


@helper
def _word(data: Int, at: Int, size: Int, limit: Int) -> np.uint64:
    """The next 1 to 8 bytes, the first one lowest; nothing beyond `limit` is read."""
    if at + 8 <= limit:
        return np.uint64(eight_at(data, at)) & (~np.uint64(0) >> (_EIGHT * np.uint64(8 - size)))
    word = np.uint64(0)
    for index in range(size):
        word |= np.uint64(byte_at(data, at + index)) << (_EIGHT * np.uint64(index))
    return word


@helper
def _hash(data: Int, start: Int, end: Int, limit: Int) -> np.int64:
    """The first 64 bits of the hash, shifted right by one."""
    one = _SEED
    two = _SEED
    at = start
    while at + 16 <= end:
        one ^= _rotated(np.uint64(eight_at(data, at)) * _C1, _31) * _C2
        one = (_rotated(one, _27) + two) * _FIVE + _ADDED_1
        two ^= _rotated(np.uint64(eight_at(data, at + 8)) * _C2, _33) * _C1
        two = (_rotated(two, _31) + one) * _FIVE + _ADDED_2
        at += 16
    if at + 8 < end:
        two ^= _rotated(_word(data, at + 8, end - at - 8, limit) * _C2, _33) * _C1
    if at < end:
        one ^= _rotated(_word(data, at, min(end - at, np.int64(8)), limit) * _C1, _31) * _C2
    length = np.uint64(end - start)
    one ^= length
    two ^= length
    one += two
    two += one
    return np.int64((_finished(one) + _finished(two)) >> _ONE)


@helper
def _is_new(table: Longs, code: Int, theta: Int) -> bool:
    """Whether a hash was put into the table just now; 0 is an empty slot, and never a hash."""
    if code <= 0 or code >= theta:
        return False
    mask = table.shape[0] - 1
    slot = code & mask
    while table[slot] != 0:
        if table[slot] == code:
            return False
        slot = (slot + 1) & mask
    table[slot] = code
    return True


@kernel
def put_values(data: Bytes, offsets: Longs, first: Int, table: Longs, theta: Int, room: Int) -> tuple[Int, Int]:
    """Put values into the table until it has no room: (how many were looked at, how many hashes are new)."""
    base = np.int64(data.ctypes.data)
    limit = np.int64(data.shape[0])
    new = np.int64(0)
    for row in range(first, offsets.shape[0] - 1):
        start = offsets[row]
        end = offsets[row + 1]
        if start < end and _is_new(table, _hash(base, start, end, limit), theta):
            new += 1
            if new == room:
                return np.int64(row + 1), new
    return np.int64(offsets.shape[0] - 1), new


@kernel
def put_equal_widths(data: Bytes, width: Int, first: Int, table: Longs, theta: Int, room: Int) -> tuple[Int, Int]:
    """The same for values of one width."""
    base = np.int64(data.ctypes.data)
    limit = np.int64(data.shape[0])
    count = limit // width
    new = np.int64(0)
    for row in range(first, count):
        start = row * width
        if _is_new(table, _hash(base, start, start + width, limit), theta):
            new += 1
            if new == room:
                return np.int64(row + 1), new
    return count, new


@kernel
def put_hashes(hashes: Longs, table: Longs) -> None:
    """Put hashes into a table that has room for all of them."""
    for code in hashes:
        _is_new(table, code, np.int64(np.iinfo(np.int64).max))
