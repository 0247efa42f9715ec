"""Compiled code for tables of paths: an open hash table of rows, compared byte by byte.

Imported when there are many paths, since importing numba takes a while.
"""

import numpy as np
import numpy.typing as npt

from icefloe.avro.memory import byte_at, eight_at, helper, kernel
from icefloe.planning.partitions import Numbers

Bytes = npt.NDArray[np.uint8]
Int32s = npt.NDArray[np.int32]

_MIXER = np.int64(-7046029254386353131)
_U29 = np.uint64(29)
_U32 = np.uint64(32)


@helper
def _hash(data: np.int64, start: np.int64, end: np.int64) -> np.int64:
    value = (end - start) * _MIXER
    at = start
    while at + 8 <= end:
        value = (value ^ eight_at(data, at)) * _MIXER
        value ^= np.int64(np.uint64(value) >> _U29)
        at += 8
    while at < end:
        value = (value ^ byte_at(data, at)) * _MIXER
        at += 1
    return value ^ np.int64(np.uint64(value) >> _U32)


@helper
def _is_same(
    one: np.int64, start: np.int64, end: np.int64, other: np.int64, other_start: np.int64, other_end: np.int64
) -> bool:
    if end - start != other_end - other_start:
        return False
    at = start
    shift = other_start - start
    while at + 8 <= end:
        if eight_at(one, at) != eight_at(other, at + shift):
            return False
        at += 8
    while at < end:
        if byte_at(one, at) != byte_at(other, at + shift):
            return False
        at += 1
    return True


@kernel
def fill_table(texts: Bytes, offsets: Int32s, hashes: Numbers, table: Int32s) -> tuple[np.int64, np.int64]:
    """Put the row of each path into the table, which has a free slot; two equal paths end it: (the first, the second)."""
    data = np.int64(texts.ctypes.data)
    mask = table.shape[0] - 1
    for row in range(offsets.shape[0] - 1):
        start = np.int64(offsets[row])
        end = np.int64(offsets[row + 1])
        code = _hash(data, start, end)
        hashes[row] = code
        slot = code & mask
        while table[slot] >= 0:
            other = np.int64(table[slot])
            if hashes[other] == code and _is_same(
                data, start, end, data, np.int64(offsets[other]), np.int64(offsets[other + 1])
            ):
                return other, np.int64(row)
            slot = (slot + 1) & mask
        table[slot] = row
    return np.int64(-1), np.int64(-1)


@kernel
def find_in_table(
    texts: Bytes,
    offsets: Int32s,
    known_texts: Bytes,
    known_offsets: Int32s,
    hashes: Numbers,
    table: Int32s,
    numbers: Numbers,
) -> None:
    """The row of each path among the known ones, or -1."""
    data = np.int64(texts.ctypes.data)
    known = np.int64(known_texts.ctypes.data)
    mask = table.shape[0] - 1
    for row in range(offsets.shape[0] - 1):
        start = np.int64(offsets[row])
        end = np.int64(offsets[row + 1])
        code = _hash(data, start, end)
        slot = code & mask
        numbers[row] = -1
        while table[slot] >= 0:
            other = np.int64(table[slot])
            if hashes[other] == code and _is_same(
                data, start, end, known, np.int64(known_offsets[other]), np.int64(known_offsets[other + 1])
            ):
                numbers[row] = other
                break
            slot = (slot + 1) & mask
