"""The 32-bit Murmur3 hash (x86, seed 0) of many values at once, on numpy arrays.

Values are hashed in blocks that stay in the processor's cache. Within a block, values with more 4-byte words come
first, so that round `i` works on the leading values that still have a word `i`.
"""

import mmh3
import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.uint32]
Positions = npt.NDArray[np.int64]

BLOCK = 1 << 15
LONGEST_IN_ROUNDS = 96
"""Longer values are hashed one by one in C: measured, one call costs less than 24 rounds of numpy."""

_TAIL_MASKS = np.array([0, 0xFF, 0xFFFF, 0xFFFFFF], np.uint32)
_C1 = np.uint32(0xCC9E2D51)
_C2 = np.uint32(0x1B873593)
_FIVE = np.uint32(5)
_ADDED = np.uint32(0xE6546B64)
_FINAL_1 = np.uint32(0x85EBCA6B)
_FINAL_2 = np.uint32(0xC2B2AE35)


def hash_longs(values: npt.NDArray[np.int64]) -> Hashes:
    """The hashes of the values' 8 little-endian bytes."""
    hashes = np.empty(len(values), np.uint32)
    words = np.ascontiguousarray(values, "<i8").view("<u4").reshape(-1, 2)
    for start in range(0, len(values), BLOCK):
        block = words[start : start + BLOCK]
        partial = _mix(np.zeros(len(block), np.uint32), block[:, 0])
        hashes[start : start + BLOCK] = _finish(_mix(partial, block[:, 1]), np.uint32(8))
    return hashes


def hash_ranges(data: npt.NDArray[np.uint8], starts: Positions, lengths: Positions) -> Hashes:
    """The hashes of ranges of bytes: `data[start : start + length]` for each pair."""
    hashes = np.empty(len(starts), np.uint32)
    for first in range(0, len(starts), BLOCK):
        block = slice(first, first + BLOCK)
        hashes[block] = _hash_block(data, starts[block], lengths[block])
    return hashes


def _hash_block(data: npt.NDArray[np.uint8], starts: Positions, lengths: Positions) -> Hashes:
    is_long = lengths > LONGEST_IN_ROUNDS
    if not is_long.any():
        return _hash_in_rounds(data, starts, lengths)
    hashes = np.empty(len(starts), np.uint32)
    is_short = ~is_long
    if is_short.any():
        hashes[is_short] = _hash_in_rounds(data, starts[is_short], lengths[is_short])
    view = np.ascontiguousarray(data).data
    ranges = zip(starts[is_long].tolist(), lengths[is_long].tolist(), strict=True)
    hashes[is_long] = [mmh3.mmh3_32_uintdigest(view[start : start + length]) for start, length in ranges]
    return hashes


def _hash_in_rounds(data: npt.NDArray[np.uint8], starts: Positions, lengths: Positions) -> Hashes:
    words_of, positions = _words(data, starts, lengths)
    counts = lengths >> 2
    rounds = int(counts.max())
    # Small unsigned keys make numpy take its radix sort.
    order = np.argsort((rounds - counts).astype(np.uint8), kind="stable")
    positions, lengths = positions[order], lengths[order]
    still_active = len(starts) - np.cumsum(np.bincount(counts, minlength=rounds + 1))
    partial = np.zeros(len(starts), np.uint32)
    for index in range(rounds):
        active = still_active[index]
        partial[:active] = _mix(partial[:active], words_of[positions[:active] + 4 * index])
    rest = lengths & 3
    tail = words_of[positions + (lengths - rest)] & _TAIL_MASKS[rest]
    hashes = np.empty_like(partial)
    hashes[order] = _finish(partial ^ _scramble(tail), lengths.astype(np.uint32))
    return hashes


def _words(
    data: npt.NDArray[np.uint8], starts: Positions, lengths: Positions
) -> tuple[npt.NDArray[np.uint32], Positions]:
    """The 4-byte word at every byte position of the block's bytes, and where the ranges begin among them."""
    low, high = int(starts.min()), int((starts + lengths).max())
    padded = np.zeros(high - low + 4, np.uint8)
    padded[: high - low] = data[low:high]
    return np.ndarray((high - low + 1,), "<u4", padded, 0, (1,)), starts - low


def _scramble(words: npt.NDArray[np.uint32]) -> Hashes:
    scrambled = words * _C1
    scrambled = _rotated(scrambled, 15)
    scrambled *= _C2
    return scrambled


def _mix(partial: Hashes, words: npt.NDArray[np.uint32]) -> Hashes:
    mixed = _rotated(partial ^ _scramble(words), 13)
    mixed *= _FIVE
    mixed += _ADDED
    return mixed


def _finish(partial: Hashes, lengths: Hashes | np.uint32) -> Hashes:
    hashes = partial ^ lengths
    hashes ^= hashes >> np.uint32(16)
    hashes *= _FINAL_1
    hashes ^= hashes >> np.uint32(13)
    hashes *= _FINAL_2
    hashes ^= hashes >> np.uint32(16)
    return hashes


def _rotated(words: Hashes, by: int) -> Hashes:
    return (words << np.uint32(by)) | (words >> np.uint32(32 - by))
