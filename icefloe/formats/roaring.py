"""The portable form of a 32-bit Roaring bitmap: what is accepted when read, and the one form that is written.

Bytes from outside are checked here, completely, before the Roaring library sees them: it trusts counts and order.
Written bitmaps have each container in the form that the Java library takes after its run optimisation, whatever the
history of the bitmap in memory, so equal bitmaps have equal bytes.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap, FrozenBitMap

from icefloe.errors import CorruptFileError

COOKIE_WITHOUT_RUNS = 12346
COOKIE_WITH_RUNS = 12347
EMPTY_BITMAP_SIZE = 8
"""How long an empty bitmap is; none is shorter."""

_EMPTY = COOKIE_WITHOUT_RUNS.to_bytes(4, "little") + bytes(4)
_ARRAY, _BITSET, _RUN = 0, 1, 2
_MAX_CONTAINERS = 1 << 16
_MAX_ARRAY = 4096
_BITSET_BYTES = 8192
_OFFSETS_FROM = 4
"""The number of containers from which bitmaps with runs carry offsets too."""

_Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Layout:
    """Where the containers of one bitmap are: per container its key, cardinality, kind, start and size in bytes."""

    keys: npt.NDArray[np.uint16]
    cardinalities: _Ints
    kinds: npt.NDArray[np.int8]
    starts: _Ints
    sizes: _Ints
    end: int

    def payload(self, data: bytes, index: int) -> bytes:
        start = int(self.starts[index])
        return data[start : start + int(self.sizes[index])]


def read_bitmap(data: bytes, start: int, location: str) -> tuple[FrozenBitMap, int]:
    """The bitmap that starts there, and where it ends; refuses everything that the form does not allow."""
    if data[start : start + EMPTY_BITMAP_SIZE] == _EMPTY:
        return FrozenBitMap(), start + EMPTY_BITMAP_SIZE
    layout = _read_layout(data, start, location)
    has_adjacent_runs = _check_contents(data, layout, location)
    portable = _rebuild(data, layout) if has_adjacent_runs else data[start : layout.end]
    try:
        return FrozenBitMap.deserialize(portable), layout.end
    except (ValueError, IndexError) as error:
        raise CorruptFileError(location, f"not a Roaring bitmap: {error}") from error


def write_bitmap(bitmap: FrozenBitMap) -> bytes:
    """The bitmap in portable form, each container as small as can be."""
    optimised = BitMap(bitmap)
    optimised.run_optimize()
    data = optimised.serialize()
    layout = _read_layout(data, 0, "a bitmap in memory")
    # A run container that is not smaller than the array stays one here if it was built from ranges; Java compares
    # the sizes of array and runs again for each vector that it collects row by row.
    runs = layout.kinds == _RUN
    if np.any(runs & (layout.sizes >= _size_without_runs(layout.cardinalities))):
        return _rebuild(data, layout)
    return data


def _size_without_runs(cardinalities: _Ints) -> _Ints:
    return np.where(cardinalities > _MAX_ARRAY, _BITSET_BYTES, 2 * cardinalities)


def _read_layout(data: bytes, start: int, location: str) -> _Layout:
    cookie = int.from_bytes(_take(data, start, 4, location), "little")
    if cookie == COOKIE_WITHOUT_RUNS:
        count = int.from_bytes(_take(data, start + 4, 4, location), "little")
        position = start + 8
        is_run = np.zeros(min(count, _MAX_CONTAINERS), np.bool_)
    elif cookie & 0xFFFF == COOKIE_WITH_RUNS:
        count = (cookie >> 16) + 1
        flags = np.frombuffer(_take(data, start + 4, (count + 7) // 8, location), np.uint8)
        is_run = np.unpackbits(flags, count=count, bitorder="little").astype(np.bool_)
        position = start + 4 + len(flags)
    else:
        raise CorruptFileError(location, f"a Roaring bitmap starts with {cookie:#x}, which is none of its cookies")
    if count > _MAX_CONTAINERS:
        raise CorruptFileError(
            location, f"a Roaring bitmap states {count} containers; there are at most {_MAX_CONTAINERS}"
        )
    described = np.frombuffer(_take(data, position, 4 * count, location), "<u2").reshape(-1, 2)
    position += 4 * count
    keys, cardinalities = described[:, 0], described[:, 1].astype(np.int64) + 1
    if np.any(keys[1:] <= keys[:-1]):
        raise CorruptFileError(location, "the containers of a Roaring bitmap are not in ascending order of their keys")
    offsets = None
    if cookie == COOKIE_WITHOUT_RUNS or count >= _OFFSETS_FROM:
        offsets = np.frombuffer(_take(data, position, 4 * count, location), "<u4")
        position += 4 * count
    kinds = np.where(is_run, _RUN, np.where(cardinalities > _MAX_ARRAY, _BITSET, _ARRAY)).astype(np.int8)
    sizes = _size_without_runs(cardinalities)
    if is_run.any():
        _measure_runs(data, position, is_run, sizes, location)
    ends = position + np.cumsum(sizes)
    end = int(ends[-1]) if count else position
    if end > len(data):
        raise CorruptFileError(location, f"a Roaring bitmap ends at byte {end} of {len(data)}")
    starts = ends - sizes
    if offsets is not None and np.any(offsets != starts - start):
        raise CorruptFileError(location, "the offsets of a Roaring bitmap do not point at its containers")
    return _Layout(keys, cardinalities, kinds, starts, sizes, end)


def _take(data: bytes, start: int, length: int, location: str) -> bytes:
    if start + length > len(data):
        raise CorruptFileError(location, f"a Roaring bitmap is cut off: {length} bytes are missing at byte {start}")
    return data[start : start + length]


def _measure_runs(data: bytes, position: int, is_run: npt.NDArray[np.bool_], sizes: _Ints, location: str) -> None:
    """Set the sizes of run containers, which only they themselves tell, one after the other."""
    measured = sizes.tolist()
    for index, run in enumerate(is_run.tolist()):
        if run:
            runs = int.from_bytes(data[position : position + 2], "little")
            if position + 2 > len(data) or runs == 0:
                raise CorruptFileError(location, f"a Roaring container of runs at byte {position} is cut off or empty")
            measured[index] = 2 + 4 * runs
        position += measured[index]
    sizes[:] = measured


def _check_contents(data: bytes, layout: _Layout, location: str) -> bool:
    """Whether some runs touch each other, which is legal but not what the Roaring library expects."""
    if not len(layout.keys):
        return False
    first = int(layout.starts[0])
    # Every container has an even size, so all of them together are a row of 16-bit words.
    words = np.frombuffer(data, "<u2", (layout.end - first) // 2, first)
    word_starts = (layout.starts - first) // 2
    kind_of_word = np.repeat(layout.kinds, layout.sizes // 2)
    rises = np.ones(len(words), np.bool_)
    rises[1:] = words[1:] > words[:-1]
    rises[word_starts] = True
    if not np.all(rises[kind_of_word == _ARRAY]):
        raise CorruptFileError(location, "the values of a Roaring array container are not in ascending order")
    for index in np.flatnonzero(layout.kinds == _BITSET).tolist():
        bits = np.frombuffer(data, np.uint8, _BITSET_BYTES, int(layout.starts[index]))
        count = int(np.bitwise_count(bits).sum(dtype=np.int64))
        if count != layout.cardinalities[index]:
            raise CorruptFileError(
                location, f"a Roaring bitset holds {count} values, but states {layout.cardinalities[index]}"
            )
    return _check_runs(layout, words, word_starts, kind_of_word == _RUN, location)


def _check_runs(
    layout: _Layout, words: npt.NDArray[np.uint16], word_starts: _Ints, in_runs: npt.NDArray[np.bool_], location: str
) -> bool:
    runs = np.flatnonzero(layout.kinds == _RUN)
    if not len(runs):
        return False
    in_runs[word_starts[runs]] = False  # the count of runs itself
    pairs = words[in_runs].astype(np.int64).reshape(-1, 2)
    starts, ends = pairs[:, 0], pairs[:, 0] + pairs[:, 1]
    counts = (layout.sizes[runs] - 2) // 4
    firsts = np.cumsum(counts) - counts
    gaps = np.full(len(pairs), 2, np.int64)
    gaps[1:] = starts[1:] - ends[:-1]
    gaps[firsts] = 2
    if np.any(ends > 0xFFFF) or np.any(gaps < 1):
        raise CorruptFileError(location, "the runs of a Roaring container overlap, are out of order or leave it")
    cardinalities = np.add.reduceat(pairs[:, 1] + 1, firsts)
    if np.any(cardinalities != layout.cardinalities[runs]):
        raise CorruptFileError(location, "a Roaring container of runs holds another number of values than it states")
    return bool(np.any(gaps == 1))


def _rebuild(data: bytes, layout: _Layout) -> bytes:
    """The same bitmap with touching runs joined, and runs only where they are smaller than the other form."""
    payloads, is_run = [], []
    for index in range(len(layout.keys)):
        payload = layout.payload(data, index)
        run = layout.kinds[index] == _RUN
        if run:
            payload, run = _rebuild_runs(payload, int(layout.cardinalities[index]))
        payloads.append(payload)
        is_run.append(bool(run))
    count = len(payloads)
    head = bytearray()
    if any(is_run):
        head += (COOKIE_WITH_RUNS | (count - 1) << 16).to_bytes(4, "little")
        head += np.packbits(np.array(is_run, np.bool_), bitorder="little").tobytes()
    else:
        head += COOKIE_WITHOUT_RUNS.to_bytes(4, "little") + count.to_bytes(4, "little")
    head += np.column_stack((layout.keys, layout.cardinalities - 1)).astype("<u2").tobytes()
    if not any(is_run) or count >= _OFFSETS_FROM:
        sizes = np.array([len(payload) for payload in payloads])
        head += (len(head) + 4 * count + np.cumsum(sizes) - sizes).astype("<u4").tobytes()
    return bytes(head) + b"".join(payloads)


def _rebuild_runs(payload: bytes, cardinality: int) -> tuple[bytes, bool]:
    pairs = np.frombuffer(payload, "<u2", offset=2).astype(np.int64).reshape(-1, 2)
    starts, ends = pairs[:, 0], pairs[:, 0] + pairs[:, 1]
    apart = starts[1:] > ends[:-1] + 1
    starts, ends = starts[np.r_[True, apart]], ends[np.r_[apart, True]]
    if 2 + 4 * len(starts) < int(_size_without_runs(np.array(cardinality))):
        joined = np.column_stack((starts, ends - starts)).astype("<u2").tobytes()
        return len(starts).to_bytes(2, "little") + joined, True
    values = np.concatenate([np.arange(a, b + 1) for a, b in zip(starts.tolist(), ends.tolist(), strict=True)])
    if cardinality <= _MAX_ARRAY:
        return values.astype("<u2").tobytes(), False
    bits = np.zeros(8 * _BITSET_BYTES, np.bool_)
    bits[values] = True
    return np.packbits(bits, bitorder="little").tobytes(), False
