"""Compiled code for tables of paths: an open hash table of places, compared byte by byte.

Imported when there are many paths, since importing numba takes a while.
"""

from typing import Any

import numpy as np

from icefloe.avro.memory import byte_at, eight_at, helper, kernel

_MIXER = np.int64(-7046029254386353131)
_U29 = np.uint64(29)
_U32 = np.uint64(32)


@helper
def _hash(data: Any, start: Any, end: Any) -> Any:
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
def _is_same(one: Any, start: Any, end: Any, other: Any, other_start: Any, other_end: Any) -> Any:
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
def fill_table(texts: Any, offsets: Any, hashes: Any, table: Any) -> Any:
    """Put the place of each path into the table, which has a free slot; two equal paths end it: (the first, the second)."""
    data = np.int64(texts.ctypes.data)
    mask = table.shape[0] - 1
    for place in range(offsets.shape[0] - 1):
        start = np.int64(offsets[place])
        end = np.int64(offsets[place + 1])
        found = _hash(data, start, end)
        hashes[place] = found
        slot = found & mask
        while table[slot] >= 0:
            other = np.int64(table[slot])
            if hashes[other] == found and _is_same(
                data, start, end, data, np.int64(offsets[other]), np.int64(offsets[other + 1])
            ):
                return other, np.int64(place)
            slot = (slot + 1) & mask
        table[slot] = place
    return np.int64(-1), np.int64(-1)


@kernel
def find_in_table(
    texts: Any, offsets: Any, known_texts: Any, known_offsets: Any, hashes: Any, table: Any, places: Any
) -> Any:
    """The place of each path among the known ones, or -1."""
    data = np.int64(texts.ctypes.data)
    known = np.int64(known_texts.ctypes.data)
    mask = table.shape[0] - 1
    for row in range(offsets.shape[0] - 1):
        start = np.int64(offsets[row])
        end = np.int64(offsets[row + 1])
        found = _hash(data, start, end)
        slot = found & mask
        places[row] = -1
        while table[slot] >= 0:
            other = np.int64(table[slot])
            if hashes[other] == found and _is_same(
                data, start, end, known, np.int64(known_offsets[other]), np.int64(known_offsets[other + 1])
            ):
                places[row] = other
                break
            slot = (slot + 1) & mask
