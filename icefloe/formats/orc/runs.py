"""Unsigned numbers out of ORC's run-length encodings, run by run (ORC: Integer Run Length Encoding, versions 1 and 2)."""

import numpy as np
import numpy.typing as npt

from icefloe.formats.orc.footer import read_varint

_DIRECT, _DIRECT_V2 = 0, 2
_MASK = (1 << 64) - 1
_WIDTHS = (*range(1, 25), 26, 28, 30, 32, 40, 48, 56, 64)
"""Bits per number by their code."""

Numbers = npt.NDArray[np.int64]


def decode_unsigned(data: bytes, encoding: int) -> Numbers:
    """All numbers of a stream; `encoding` is that of its column. Bytes that are no runs raise ValueError or IndexError."""
    if encoding not in (_DIRECT, _DIRECT_V2):
        raise ValueError(f"the encoding number {encoding} does not hold numbers")
    step = _run_v2 if encoding == _DIRECT_V2 else _run_v1
    runs, at = [np.empty(0, np.int64)], 0
    while at < len(data):
        numbers, at = step(data, at)
        runs.append(numbers)
    return np.concatenate(runs)


def _run_v1(data: bytes, at: int) -> tuple[Numbers, int]:
    control = data[at]
    if control < 128:
        delta = data[at + 1] - 256 * (data[at + 1] > 127)
        base, at = read_varint(data, at + 2)
        return _wrapped(base) + delta * np.arange(control + 3, dtype=np.int64), at
    at += 1
    numbers = []
    for _ in range(256 - control):
        number, at = read_varint(data, at)
        numbers.append(number & _MASK)
    return np.array(numbers, np.uint64).astype(np.int64), at


def _run_v2(data: bytes, at: int) -> tuple[Numbers, int]:
    head = data[at]
    if head >> 6 == 0:
        width, count = (head >> 3 & 7) + 1, (head & 7) + 3
        value = int.from_bytes(_take(data, at + 1, width), "big")
        return np.full(count, _wrapped(value), np.int64), at + 1 + width
    code, count = head >> 1 & 31, ((head & 1) << 8 | data[at + 1]) + 1
    match head >> 6:
        case 1:
            return _packed(data, at + 2, count, _WIDTHS[code])
        case 2:
            return _patched(data, at, count, _WIDTHS[code])
        case _:
            return _deltas(data, at + 2, count, _WIDTHS[code] if code else 0)


def _deltas(data: bytes, at: int, count: int, width: int) -> tuple[Numbers, int]:
    base, at = read_varint(data, at)
    base = _wrapped(base)
    first, at = read_varint(data, at)
    first &= _MASK
    first = (first >> 1) ^ -(first & 1)
    steps = np.full(max(count - 1, 0), first, np.int64)
    if width:
        rest, at = _packed(data, at, count - 2, width)
        steps[1:] = rest if first >= 0 else -rest
    return np.concatenate(([base], base + np.cumsum(steps))).astype(np.int64), at


def _patched(data: bytes, at: int, count: int, width: int) -> tuple[Numbers, int]:
    base_width, patch_width = (data[at + 2] >> 5) + 1, _WIDTHS[data[at + 2] & 31]
    gap_width, patches = (data[at + 3] >> 5) + 1, data[at + 3] & 31
    base = int.from_bytes(_take(data, at + 4, base_width), "big")
    sign = 1 << (8 * base_width - 1)
    base = -(base & ~sign) if base & sign else base
    numbers, at = _packed(data, at + 4 + base_width, count, width)
    entry_width = next(bits for bits in _WIDTHS if bits >= gap_width + patch_width)
    entries, at = _packed(data, at, patches, entry_width)
    index = 0
    for entry in entries.tolist():
        index += entry >> patch_width
        numbers[index] |= (entry & ((1 << patch_width) - 1)) << width
    return numbers + base, at


def _packed(data: bytes, at: int, count: int, width: int) -> tuple[Numbers, int]:
    """Numbers of `width` bits each, most significant first, up to a whole byte."""
    length = (count * width + 7) // 8
    bits = np.unpackbits(np.frombuffer(_take(data, at, length), np.uint8))[: count * width].reshape(count, width)
    weights = np.uint64(1) << np.arange(width - 1, -1, -1, dtype=np.uint64)
    return (bits * weights).sum(axis=1, dtype=np.uint64).astype(np.int64), at + length


def _take(data: bytes, at: int, length: int) -> bytes:
    if at + length > len(data):
        raise ValueError("a run of numbers is cut off")
    return data[at : at + length]


def _wrapped(number: int) -> int:
    """A 64-bit pattern as the signed number it is: pyarrow writes negative nanoseconds before 1970."""
    number &= _MASK
    return number - (1 << 64) if number >> 63 else number
