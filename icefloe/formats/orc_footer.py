"""What pyarrow does not say of an ORC file, or write to one: where its stripes begin, and its key-value metadata.

Protocol Buffers are walked only as far as that needs (ORC: File Tail).
"""

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from icefloe.errors import CorruptFileError
from icefloe.formats.parquet_footer import Sink

_POSTSCRIPT_FOOTER_LENGTH, _POSTSCRIPT_COMPRESSION, _POSTSCRIPT_BLOCK_SIZE = 1, 2, 3
_TAIL_FOOTER = 2
_FOOTER_STRIPES, _FOOTER_METADATA = 3, 5
_STRIPE_OFFSET, _STRIPE_ROWS = 1, 5
_BYTES = 2


@dataclass(frozen=True, slots=True)
class Stripe:
    """Some rows of a file: where their bytes begin, the position of the first row, and how many there are."""

    offset: int
    first_row: int
    rows: int


def stripes(tail: bytes, location: str) -> tuple[Stripe, ...]:
    """The stripes of a file, from what pyarrow gives as the serialized tail of the file."""
    try:
        footer = next(value for number, value in _fields(tail) if number == _TAIL_FOOTER)
        found, row = [], 0
        for number, value in _fields(footer):
            if number == _FOOTER_STRIPES:
                about = dict(_fields(value))
                found.append(Stripe(about.get(_STRIPE_OFFSET, 0), row, about.get(_STRIPE_ROWS, 0)))
                row += found[-1].rows
    except (StopIteration, IndexError, TypeError, ValueError) as problem:
        raise CorruptFileError(location, f"its ORC footer cannot be read: {problem}") from None
    return tuple(found)


class TailSink:
    """A writable file that passes bytes on until `hold`, and then keeps them until `release` has added metadata."""

    def __init__(self, sink: Sink) -> None:
        self.written = 0
        self.closed = False
        self._sink = sink
        self._held: list[bytes] | None = None

    def write(self, data: Any) -> int:
        """Append the bytes to the sink, or to what is held."""
        found = bytes(data)
        if self._held is None:
            self._sink.write(found)
        else:
            self._held.append(found)
        self.written += len(found)
        return len(found)

    def hold(self) -> None:
        """Keep what comes, the end of the file."""
        self._held = []

    def release(self, metadata: Mapping[str, str]) -> bytes:
        """Write the end of the file, with the metadata in its footer; what was written."""
        held, self._held = b"".join(self._held or ()), None
        self.written -= len(held)
        held = with_metadata(held, metadata)
        self.write(held)
        return held

    def flush(self) -> None:
        """Nothing: the sink is flushed by whoever closes it."""

    def close(self) -> None:
        """Nothing more is written; the sink itself stays open."""
        self.closed = True


class TailFile(io.RawIOBase):
    """A file of which only the end is at hand, for a reader that asks for nothing else."""

    def __init__(self, tail: bytes, size: int) -> None:
        self._tail = tail
        self._size = size
        self._position = 0

    def read(self, length: int = -1) -> bytes:
        """The next bytes; zeros before the end that is at hand."""
        wanted = self._size - self._position if length < 0 else min(length, self._size - self._position)
        start = self._position - (self._size - len(self._tail))
        self._position += wanted
        missing = min(max(0, -start), wanted)
        return b"\x00" * missing + self._tail[max(0, start) : max(0, start + wanted)]

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

    Serialized messages put one behind the other are one message with the fields of both, so that nothing that is there
    has to be read or compressed anew: the entries come as one more piece of the footer, stored as it is.
    """
    script = tail[-1 - tail[-1] : -1]
    about = dict(_fields(script))
    footer_length = about[_POSTSCRIPT_FOOTER_LENGTH]
    entries = b"".join(
        _message(_FOOTER_METADATA, _message(1, key.encode()) + _message(2, value.encode()))
        for key, value in metadata.items()
    )
    if about.get(_POSTSCRIPT_COMPRESSION, 0):
        limit = min(about.get(_POSTSCRIPT_BLOCK_SIZE, 1 << 16), 1 << 22)
        pieces = [entries[at : at + limit] for at in range(0, len(entries), limit)]
        entries = b"".join((len(piece) << 1 | 1).to_bytes(3, "little") + piece for piece in pieces)
    old = b"\x08" + _varint(footer_length)
    if not script.startswith(old):
        raise AssertionError("pyarrow writes the length of the footer first")
    script = b"\x08" + _varint(footer_length + len(entries)) + script[len(old) :]
    return b"".join((tail[: -1 - tail[-1]], entries, script, bytes([len(script)])))


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """The fields of a serialized message: numbers as ints, everything else as bytes."""
    at = 0
    while at < len(data):
        tag, at = _read_varint(data, at)
        match tag & 7:
            case 0:
                value, at = _read_varint(data, at)
                yield tag >> 3, value
            case 2:
                length, at = _read_varint(data, at)
                if length > len(data) - at:
                    raise ValueError("a field is longer than its message")
                yield tag >> 3, data[at : at + length]
                at += length
            case 1 | 5 as kind:
                at += 8 if kind == 1 else 4
            case kind:
                raise ValueError(f"a field is of the unknown kind {kind}")


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
        shift += 7


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def _message(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | _BYTES) + _varint(len(data)) + data
