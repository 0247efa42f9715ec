"""What pyarrow does not say of an ORC file, or write to one: where its stripes begin, and its key-value metadata.

Protocol Buffers are walked only as far as that needs (ORC: File Tail).
"""

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from icefloe.avro import Source
from icefloe.errors import CorruptFileError

_POSTSCRIPT_FOOTER_LENGTH, _POSTSCRIPT_COMPRESSION, _POSTSCRIPT_BLOCK_SIZE = 1, 2, 3
_TAIL_POSTSCRIPT, _TAIL_FOOTER = 1, 2
_FOOTER_STRIPES, _FOOTER_METADATA = 3, 5
_STRIPE_ROWS = 5
_BYTES = 2

FieldValue: TypeAlias = Any
"""A number, or the bytes of anything else."""


@dataclass(frozen=True, slots=True)
class Stripe:
    """Some rows of a file: the position of the first row, how many there are, and where their bytes are."""

    first_row: int
    rows: int
    offset: int
    index_length: int
    data_length: int
    footer_length: int


@dataclass(frozen=True, slots=True)
class OrcTail:
    """The end of a file: its postscript by field number, its footer serialized, and its stripes."""

    postscript: Mapping[int, FieldValue]
    footer: bytes
    stripes: tuple[Stripe, ...]

    @property
    def compression(self) -> int:
        """The number of the codec."""
        return int(self.postscript.get(_POSTSCRIPT_COMPRESSION, 0))

    @property
    def block_size(self) -> int:
        """The most that one compressed piece holds."""
        return int(self.postscript.get(_POSTSCRIPT_BLOCK_SIZE, 1 << 18))


def parse_tail(serialized: bytes, location: str) -> OrcTail:
    """The end of a file from what pyarrow gives as its serialized tail."""
    try:
        parts = dict(fields_of(serialized))
        stripes: list[Stripe] = []
        row = 0
        for number, value in fields_of(parts[_TAIL_FOOTER]):
            if number == _FOOTER_STRIPES:
                about = dict(fields_of(value))
                stripes.append(Stripe(row, about.get(_STRIPE_ROWS, 0), *(about.get(i, 0) for i in (1, 2, 3, 4))))
                row += stripes[-1].rows
        return OrcTail(dict(fields_of(parts[_TAIL_POSTSCRIPT])), parts[_TAIL_FOOTER], tuple(stripes))
    except (LookupError, TypeError, ValueError) as problem:
        raise CorruptFileError(location, f"its ORC footer cannot be read: {problem}") from None


class TailFile(io.RawIOBase):
    """A file of `size` bytes that ends in `tail`; what is before comes from another file, or is not asked for."""

    def __init__(self, tail: bytes, size: int, source: Source | None = None) -> None:
        self._tail = tail
        self._size = size
        self._source = source
        self._position = 0

    def read(self, length: int = -1) -> bytes:
        """The next bytes; zeros before the tail if no file has them."""
        left = self._size - self._position
        length = left if length < 0 else min(length, left)
        start = self._position - (self._size - len(self._tail))
        before = min(max(0, -start), length)
        head = b"\x00" * before
        if before and self._source is not None:
            self._source.seek(self._position)
            head = bytes(self._source.read(before))
        self._position += length
        return head + self._tail[max(0, start) : max(0, start + length)]

    def seek(self, offset: int, whence: int = 0) -> int:
        """Move to a position from the start (0), from here (1) or from the end (2)."""
        self._position = (0, self._position, self._size)[whence] + offset
        return self._position

    def tell(self) -> int:
        """The position of the next read."""
        return self._position

    def readable(self) -> bool:
        """True."""
        return True

    def seekable(self) -> bool:
        """True."""
        return True


def with_metadata(tail: bytes, metadata: Mapping[str, str]) -> bytes:
    """The end of an ORC file with entries added to its footer.

    Serialized messages put one behind the other are one message with the fields of both, so that nothing of the footer
    has to be read or compressed again: the entries come as one more piece of the footer, stored as it is.
    """
    script = tail[-1 - tail[-1] : -1]
    about = dict(fields_of(script))
    entries = b"".join(
        message(_FOOTER_METADATA, message(1, key.encode()) + message(2, value.encode()))
        for key, value in metadata.items()
    )
    entries = _stored(entries, about)
    script = _with_footer_length(script, about[_POSTSCRIPT_FOOTER_LENGTH] + len(entries))
    return b"".join((tail[: -1 - tail[-1]], entries, script, bytes([len(script)])))


def with_footer(source: Source, tail: OrcTail, footer: bytes) -> TailFile:
    """The same file with another footer."""
    size = source.seek(0, 2)
    source.seek(size - 1)
    script_length = bytes(source.read(1))[0]
    source.seek(size - 1 - script_length)
    script = bytes(source.read(script_length))
    stored = _stored(footer, tail.postscript)
    end_of_rows = size - 1 - script_length - tail.postscript[_POSTSCRIPT_FOOTER_LENGTH]
    script = _with_footer_length(script, len(stored))
    end = b"".join((stored, script, bytes([len(script)])))
    return TailFile(end, end_of_rows + len(end), source)


def _stored(data: bytes, postscript: Mapping[int, FieldValue]) -> bytes:
    """Bytes as a part of a footer, in pieces that are not compressed where the others are."""
    if not postscript.get(_POSTSCRIPT_COMPRESSION, 0):
        return data
    limit = min(postscript.get(_POSTSCRIPT_BLOCK_SIZE, 1 << 16), 1 << 22)
    pieces = [data[at : at + limit] for at in range(0, len(data), limit)]
    return b"".join((len(piece) << 1 | 1).to_bytes(3, "little") + piece for piece in pieces)


def _with_footer_length(script: bytes, length: int) -> bytes:
    """The postscript with another length of the footer; the file's magic must stay its end."""
    others = b"".join(raw for number, _, raw in raw_fields(script) if number != _POSTSCRIPT_FOOTER_LENGTH)
    return message(_POSTSCRIPT_FOOTER_LENGTH, length) + others


def fields_of(data: bytes) -> Iterator[tuple[int, FieldValue]]:
    """The fields of a serialized message: numbers as ints, everything else as bytes."""
    return ((number, value) for number, value, _ in raw_fields(data))


def raw_fields(data: bytes) -> Iterator[tuple[int, FieldValue, bytes]]:
    """The fields of a serialized message, each with the bytes that it is made of."""
    at = 0
    while at < len(data):
        start = at
        tag, at = read_varint(data, at)
        value: FieldValue = None
        match tag & 7:
            case 0:
                value, at = read_varint(data, at)
            case 2:
                length, at = read_varint(data, at)
                if length > len(data) - at:
                    raise ValueError("a field is longer than its message")
                value, at = data[at : at + length], at + length
            case 1 | 5 as kind:
                at += 8 if kind == 1 else 4
            case kind:
                raise ValueError(f"a field is of the unknown kind {kind}")
        yield tag >> 3, value, data[start:at]


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """A number at a position, and the position after it."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
        shift += 7


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*encoded, number])


def message(number: int, value: bytes | int) -> bytes:
    """A field of a serialized message."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    return _varint(number << 3 | _BYTES) + _varint(len(value)) + value
