"""One 64-bit number for each location, the same in every process: what a set of millions of paths is made of.

A text is read as words of eight bytes; each is mixed with its place in the text, and the sum is mixed again with the length. Two
texts share a number about as often as random numbers do.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.storage import identities

Hashes = npt.NDArray[np.uint64]

_WORD = 8
_AT_ONCE = 1 << 14
"""Texts that are hashed together: few enough for the processor's cache."""
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_27, _30, _31 = np.uint64(27), np.uint64(30), np.uint64(31)
_MASKS = np.array([(1 << 8 * size) - 1 for size in range(_WORD + 1)], np.uint64)
_DEFAULT_NODE, _ANY_NODE = "hdfs:/", r"^hdfs://[^/]*/?"


def location_hashes(locations: pa.Array) -> Hashes:
    """The numbers of locations; equal for all that may name the same file, however they are spelled."""
    return text_hashes(possible_identities(locations))


def possible_identities(locations: pa.Array) -> pa.Array:
    """The normal forms of locations, without the names of name nodes: one has several names, and maybe none."""
    normal = identities(locations)
    if not pc.any(pc.starts_with(normal, _DEFAULT_NODE), min_count=0).as_py():
        return normal
    return pc.replace_substring_regex(normal, _ANY_NODE, _DEFAULT_NODE, max_replacements=1)


def text_hashes(texts: pa.Array) -> Hashes:
    """The number of each text; none of them is null."""
    parts = list(_of_pieces(texts))
    return np.concatenate(parts) if parts else np.zeros(0, np.uint64)


def _of_pieces(texts: pa.Array) -> Iterator[Hashes]:
    wide = texts.cast(pa.large_binary())
    for start in range(0, len(wide), _AT_ONCE):
        piece = wide.slice(start, _AT_ONCE)
        _, offsets, data = piece.buffers()
        ends = np.frombuffer(offsets, np.int64, len(piece) + 1, piece.offset * 8)
        # As many bytes behind the last text as the word has that it ends in.
        padded = np.zeros(int(ends[-1] - ends[0]) + _WORD, np.uint8)
        if data is not None:
            padded[:-_WORD] = np.frombuffer(data, np.uint8)[ends[0] : ends[-1]]
        yield _hashed(padded, ends[:-1] - ends[0], np.diff(ends))


def _hashed(data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]) -> Hashes:
    # An empty text has a word, too, of which nothing counts.
    counts = np.maximum((lengths + _WORD - 1) // _WORD, 1)
    first = np.cumsum(counts) - counts
    places = np.arange(int(counts.sum())) - np.repeat(first, counts)
    left = np.repeat(lengths, counts) - places * _WORD
    unaligned = np.ndarray((len(data) - _WORD + 1,), "<u8", data, strides=(1,))
    words = unaligned[np.repeat(starts, counts) + places * _WORD] & _MASKS[np.minimum(left, _WORD)]
    mixed = _mixed(words + _mixed(places.astype(np.uint64) * _GOLDEN + _GOLDEN))
    return _mixed(np.add.reduceat(mixed, first) + lengths.astype(np.uint64) * _GOLDEN)


def _mixed(numbers: Hashes) -> Hashes:
    """Every bit of a number depends on all of it: the end of splitmix64."""
    numbers = (numbers ^ (numbers >> _30)) * _FIRST
    numbers = (numbers ^ (numbers >> _27)) * _SECOND
    return numbers ^ (numbers >> _31)
