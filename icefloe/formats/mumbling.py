"""Mumbling bitmaps, both ways: small sets of positions inside of metadata (the draft of 2026-06-09, version 1).

The text of v4 does not refer to them; the vectors of manifests in root manifests are such bitmaps.
"""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from icefloe.errors import InvalidInputError, InvalidValueError

VERSION = 1
CONTAINER_BITS = 256
MOST_CONTAINERS = 8192
MOST_POSITIONS = CONTAINER_BITS * MOST_CONTAINERS
"""Positions are below this number."""

_HEADER = 6
_DENSE = 0x20
_SPARSE_LIMIT = 32
_DENSE_BYTES = 32
_CHUNK = 256

Positions = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]


def encode_mumbling(positions: Iterable[int]) -> bytes:
    """The bitmap of these positions, which may come in any order."""
    ordered = np.unique(np.fromiter(positions, np.int64))
    if len(ordered) and not 0 <= ordered[0] <= ordered[-1] < MOST_POSITIONS:
        wrong = int(ordered[0] if ordered[0] < 0 else ordered[-1])
        raise InvalidInputError(f"a Mumbling bitmap has positions from 0 to {MOST_POSITIONS - 1}; {wrong} is none")
    count = int(ordered[-1] >> 8) + 1 if len(ordered) else 0
    sizes = np.bincount(ordered >> 8, minlength=count).astype(np.int64)
    descriptors = np.where(sizes < _SPARSE_LIMIT, sizes, _DENSE).astype(np.uint8)
    ends = np.cumsum(sizes)
    containers = []
    for index in np.flatnonzero(sizes).tolist():
        inside = (ordered[ends[index] - sizes[index] : ends[index]] & 0xFF).astype(np.uint8)
        containers.append(inside.tobytes() if sizes[index] < _SPARSE_LIMIT else _dense(inside))
    header = bytes((VERSION,)) + len(ordered).to_bytes(3, "little") + count.to_bytes(2, "little")
    return header + encode_pfor(descriptors) + b"".join(containers)


def decode_mumbling(data: bytes) -> Positions:
    """The positions in a bitmap, in order; bytes that are none are an error."""
    if len(data) < _HEADER:
        raise InvalidValueError(f"a Mumbling bitmap has at least {_HEADER} bytes; these are {len(data)}")
    if data[0] != VERSION:
        raise InvalidValueError(f"the Mumbling bitmap is of version {data[0]}; {VERSION} is known")
    cardinality, count = int.from_bytes(data[1:4], "little"), int.from_bytes(data[4:6], "little")
    if count > MOST_CONTAINERS:
        raise InvalidValueError(f"the Mumbling bitmap has {count} containers; {MOST_CONTAINERS} is the most")
    descriptors, start = decode_pfor(data, _HEADER, count)
    parts = []
    for index, descriptor in enumerate(descriptors.tolist()):
        kind, size = descriptor & 0xE0, descriptor & 0x1F
        length = _DENSE_BYTES if kind == _DENSE else size
        if kind not in (0, _DENSE):
            raise InvalidValueError(
                f"container {index} of the Mumbling bitmap has the unknown descriptor {descriptor:#x}"
            )
        stored = np.frombuffer(data, np.uint8, length, start) if start + length <= len(data) else None
        if stored is None:
            raise InvalidValueError(f"the Mumbling bitmap ends within container {index} of {count}")
        start += length
        parts.append((index << 8) + _inside(stored, kind == _DENSE, index))
    if start != len(data):
        raise InvalidValueError(f"the Mumbling bitmap has {len(data) - start} bytes behind its end")
    positions = np.concatenate(parts) if parts else np.empty(0, np.int64)
    if len(positions) != cardinality:
        raise InvalidValueError(f"the Mumbling bitmap says {cardinality} positions, and has {len(positions)}")
    return positions


def _dense(inside: Bytes) -> bytes:
    bits = np.zeros(CONTAINER_BITS, np.uint8)
    bits[inside] = 1
    return np.packbits(bits).tobytes()


def _inside(stored: Bytes, is_dense: bool, index: int) -> Positions:
    if not is_dense:
        values = stored.astype(np.int64)
        if (np.diff(values) <= 0).any():
            raise InvalidValueError(f"container {index} of the Mumbling bitmap is not sorted")
        return values
    values = np.flatnonzero(np.unpackbits(stored))
    if len(values) < _SPARSE_LIMIT:
        raise InvalidValueError(
            f"container {index} of the Mumbling bitmap is dense with {len(values)} positions; below {_SPARSE_LIMIT} it is sparse"
        )
    return values


# -- bytes packed by a frame of reference with exceptions


def encode_pfor(values: Bytes) -> bytes:
    """Bytes in chunks of 256, each as small as it gets."""
    return b"".join(_encode_chunk(values[start : start + _CHUNK]) for start in range(0, len(values), _CHUNK))


def decode_pfor(data: bytes, start: int, count: int) -> tuple[Bytes, int]:
    """So many packed bytes from a place on, and where they end."""
    parts = []
    for first in range(0, count, _CHUNK):
        part, start = _decode_chunk(data, start, min(_CHUNK, count - first))
        parts.append(part)
    return np.concatenate(parts) if parts else np.empty(0, np.uint8), start


def _encode_chunk(values: Bytes) -> bytes:
    low = int(values.min())
    rest = (values - low).astype(np.uint8)
    widths = np.array([int(value).bit_length() for value in range(256)], np.int64)[rest]
    widest = int(widths.max())
    best = min(range(min(widest, 8) + 1), key=lambda width: _cost(widths, width, widest))
    if best == 8:
        return bytes((8, 0, 0)) + values.tobytes()
    exceptions = np.flatnonzero(widths > best)
    more = widest - best if len(exceptions) else 0
    header = bytes((best | more << 4, len(exceptions), low))
    primary = _pack((rest & ((1 << best) - 1)).astype(np.uint8), best)
    high = _pack((rest[exceptions] >> best).astype(np.uint8), more)
    return header + primary + exceptions.astype(np.uint8).tobytes() + high


def _cost(widths: npt.NDArray[np.int64], width: int, widest: int) -> float:
    count = int((widths > width).sum())
    # The number of exceptions is one byte.
    bits = len(widths) * width
    return float("inf") if count > 255 else -(-bits // 8) + count + -(-count * (widest - width) // 8)


def _decode_chunk(data: bytes, start: int, count: int) -> tuple[Bytes, int]:
    _check_room(data, start, 3)
    width, more, exceptions, low = data[start] & 0x0F, data[start] >> 4, data[start + 1], data[start + 2]
    start += 3
    if width + more > 8 or (width == 8 and exceptions):
        raise InvalidValueError(f"packed bytes have widths of {width} and {more} bits, which are more than 8")
    values, start = _unpack(data, start, count, width)
    _check_room(data, start, exceptions)
    places = np.frombuffer(data, np.uint8, exceptions, start)
    if exceptions and int(places.max()) >= count:
        raise InvalidValueError(f"packed bytes have an exception at {int(places.max())} of {count}")
    high, start = _unpack(data, start + exceptions, exceptions, more)
    values[places] |= high << width
    numbers = values + low
    if len(numbers) and int(numbers.max()) > 0xFF:
        raise InvalidValueError(f"packed bytes come to {int(numbers.max())}, which is more than a byte")
    return numbers.astype(np.uint8), start


def _pack(values: Bytes, width: int) -> bytes:
    """The low bits of each value, the first one in the highest bits; zeros at the end."""
    if not width or not len(values):
        return b""
    return np.packbits(np.unpackbits(values[:, None], axis=1)[:, 8 - width :].ravel()).tobytes()


def _unpack(data: bytes, start: int, count: int, width: int) -> tuple[npt.NDArray[np.int64], int]:
    length = -(-count * width // 8)
    _check_room(data, start, length)
    if not length:
        return np.zeros(count, np.int64), start
    bits = np.unpackbits(np.frombuffer(data, np.uint8, length, start))[: count * width].reshape(count, width)
    weights = 1 << np.arange(width - 1, -1, -1, dtype=np.int64)
    return bits.astype(np.int64) @ weights, start + length


def _check_room(data: bytes, start: int, length: int) -> None:
    if start + length > len(data):
        raise InvalidValueError(f"packed bytes end at {len(data)}; {start + length - len(data)} more are expected")
