"""ORC timestamps that pyarrow cannot hold, read all the same.

pyarrow gives timestamps in nanoseconds, which end in 1677 and 2262. ORC keeps the seconds of a timestamp in one stream of
numbers and the nanoseconds in another. In a copy of the footer the type of such columns is made a plain number: pyarrow then
gives the seconds, with every null and list in its place, and only the other stream is left to be decoded here, run by run
(ORC: Integer Run Length Encoding, versions 1 and 2).
"""

import zlib
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.orc as orc
import zstandard

from icefloe.avro import Source
from icefloe.errors import InvalidValueError
from icefloe.formats.orc.footer import FieldValue, OrcTail, fields_of, message, raw_fields, read_varint, with_footer

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


_FOOTER_TYPES, _FOOTER_STATISTICS = 4, 7
_TYPE_KIND, _LONG, _TIMESTAMP, _TIMESTAMP_INSTANT = 1, 4, 9, 18
_STATISTICS_TIMESTAMP = 9
_STREAM, _ENCODING, _TIME_ZONE = 1, 2, 3
_SECONDARY = 5

_LZ4_FRAME = bytes.fromhex("04224d18607073")
"""The head of a frame of independent blocks without checksums."""

_SAFE_MILLIS = (2**63 - 1) // 1_000_000 - 2 * 86_400_000
"""How far from 1970 nanoseconds reach, less two days for zones."""
_EPOCH = 1_420_070_400
"""ORC counts seconds from 2015-01-01."""
_UTC = (b"", b"UTC", b"GMT", b"Etc/UTC", b"Etc/GMT", b"Z")


def far_types(tail: OrcTail) -> frozenset[int]:
    """The numbers of those ORC types that are timestamps of which the statistics say that pyarrow cannot hold them all."""
    statistics = [value for number, value in fields_of(tail.footer) if number == _FOOTER_STATISTICS]
    return frozenset(
        number
        for number, (kind, about) in enumerate(zip(_kinds(tail), statistics, strict=False))
        if kind in (_TIMESTAMP, _TIMESTAMP_INSTANT) and _is_far(dict(fields_of(about)))
    )


def _kinds(tail: OrcTail) -> list[int]:
    types = (value for number, value in fields_of(tail.footer) if number == _FOOTER_TYPES)
    return [dict(fields_of(orc_type)).get(_TYPE_KIND, 0) for orc_type in types]


def _is_far(statistics: dict[int, FieldValue]) -> bool:
    """Bounds are milliseconds: with the fields 3 and 4 in UTC, before these were added with 1 and 2 in the writer's zone."""
    bounds = dict(fields_of(statistics.get(_STATISTICS_TIMESTAMP, b"")))
    return any(abs(_signed(bounds[i])) >= _SAFE_MILLIS for i in (1, 2, 3, 4) if i in bounds)


def _signed(number: int) -> int:
    return (number >> 1) ^ -(number & 1)


class FarTimestamps:
    """An ORC file of which the columns of the types `far` are read as numbers."""

    def __init__(self, source: Source, location: str, tail: OrcTail, far: frozenset[int]) -> None:
        self._source = source
        self._location = location
        self._tail = tail
        self.far = far
        self._kinds = _kinds(tail)
        self.file = orc.ORCFile(with_footer(source, tail, self._footer()))

    def ticks(self, stripe: int, seconds: pa.Int64Array, type_number: int, per_second: int) -> pa.Int64Array:
        """An int64 array of ticks since 1970, of which there are `per_second` in a second, from what was read as the seconds of a column."""
        stored = self._stream(stripe, type_number)
        valid = np.asarray(seconds.is_valid())
        nanos = decode_unsigned(stored[0], stored[1])
        if len(nanos) != int(valid.sum()):
            raise ValueError(f"a column has {int(valid.sum())} seconds and {len(nanos)} nanoseconds")
        zeros = nanos & 7
        nanos = (nanos >> 3) * np.where(zeros > 0, 10 ** (zeros + 1), 1)
        whole = seconds.drop_null().to_numpy() + _EPOCH
        # Before 1970 most writers count the second from its other end (ORC: Timestamp Columns). pyarrow cuts it towards 1970
        # and writes what is left as a negative number, which needs no correction.
        whole = whole - ((whole < 0) & (nanos > 999_999))
        ticks = np.zeros(len(valid), np.int64)
        ticks[valid] = _ticks(whole, nanos, per_second, self._location)
        return pa.array(ticks, mask=~valid)

    def _footer(self) -> bytes:
        parts, number = [], 0
        for field, value, raw in raw_fields(self._tail.footer):
            if field == _FOOTER_TYPES:
                parts.append(_as_long(value) if number in self.far else raw)
                number += 1
            else:
                parts.append(raw)
        return b"".join(parts)

    def _stream(self, number: int, type_number: int) -> tuple[bytes, int]:
        """The bytes of the nanoseconds of a column in a stripe, and their encoding."""
        stripe = self._tail.stripes[number]
        footer = self._unpacked(stripe.offset + stripe.index_length + stripe.data_length, stripe.footer_length)
        at, stream = stripe.offset, None
        encodings = []
        zone = b""
        for field, value in fields_of(footer):
            if field == _STREAM:
                about = dict(fields_of(value))
                if about.get(1, 0) == _SECONDARY and about.get(2, 0) == type_number:
                    stream = at, about.get(3, 0)
                at += about.get(3, 0)
            elif field == _ENCODING:
                encodings.append(dict(fields_of(value)).get(1, 0))
            elif field == _TIME_ZONE:
                zone = value
        if zone not in _UTC and self._kinds[type_number] == _TIMESTAMP:
            raise InvalidValueError(
                f"{self._location}: a timestamp is before 1677 or after 2262 and written in the zone"
                f" {zone.decode('utf-8', 'replace')}; only UTC is read for those"
            )
        return (self._unpacked(*stream) if stream is not None else b""), encodings[type_number]

    def _unpacked(self, offset: int, length: int) -> bytes:
        self._source.seek(offset)
        data = bytes(self._source.read(length))
        if not self._tail.compression:
            return data
        return b"".join(_pieces(data, self._tail.compression, self._tail.block_size))


def _ticks(whole: Numbers, nanos: Numbers, per_second: int, location: str) -> Numbers:
    """Seconds and nanoseconds as one number; a sum that does not fit has wrapped around to the other sign."""
    ticks = whole * per_second + nanos // (1_000_000_000 // per_second)
    distance = np.abs(whole)
    if bool(((distance > 2**63 // per_second + 1) | ((distance > 1) & ((ticks < 0) != (whole < 0)))).any()):
        raise InvalidValueError(f"{location}: a timestamp is outside of the range of its column's type")
    return ticks


def _as_long(kind: bytes) -> bytes:
    """A type with the kind of a plain number in the place of its own."""
    others = b"".join(raw for field, _, raw in raw_fields(kind) if field != _TYPE_KIND)
    return message(_FOOTER_TYPES, message(_TYPE_KIND, _LONG) + others)


def _pieces(data: bytes, compression: int, block_size: int) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        head = int.from_bytes(data[at : at + 3], "little")
        piece = data[at + 3 : at + 3 + (head >> 1)]
        at += 3 + len(piece)
        yield piece if head & 1 else _inflated(piece, compression, block_size)


def _inflated(data: bytes, compression: int, block_size: int) -> bytes:
    match compression:
        case 1:
            return zlib.decompressobj(-zlib.MAX_WBITS).decompress(data, block_size)
        case 4:
            frame = _LZ4_FRAME + len(data).to_bytes(4, "little") + data + bytes(4)
            return bytes(pa.input_stream(pa.py_buffer(frame), compression="lz4").read())
        case 5:
            return zstandard.ZstdDecompressor().decompress(data, max_output_size=block_size)
        case 2:
            return bytes(pa.Codec("snappy").decompress(data, _snappy_length(data), asbytes=True))
        case _:
            raise ValueError(f"the codec number {compression} is not known")


def _snappy_length(data: bytes) -> int:
    length = 0
    for place, byte in enumerate(data[:5]):
        length |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            break
    return length
