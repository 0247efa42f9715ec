"""AES GCM streams (AGS1): a file in sealed blocks, each of which is bound to its place, so that any of them can be read alone.

A stream is a header, magic and block length, and blocks of nonce, encrypted bytes and tag; the additional data of a block are
the file's prefix and the block's number (spec: AES GCM Stream). What is left out at the end is noticed by the length alone, so
that comes from a trusted place.
"""

import threading
from collections.abc import Iterator
from typing import Protocol, Self

from icefloe.encryption.file_keys import FileKey
from icefloe.encryption.gcm import OVERHEAD, NotAuthenticError, seal, unseal
from icefloe.errors import CorruptFileError

MAGIC = b"AGS1"
BLOCK_LENGTH = 1 << 20
"""Plain bytes in a block; the Java library writes and reads no other length."""
HEADER = MAGIC + BLOCK_LENGTH.to_bytes(4, "little")

_SEALED_BLOCK = BLOCK_LENGTH + OVERHEAD
_MOST_BLOCKS = (1 << 31) - 1
_KEPT_BLOCKS = 4


def sealed_length(plain: int) -> int:
    """How long the stream of so many plain bytes is."""
    return len(HEADER) + plain + OVERHEAD * max(1, -(-plain // BLOCK_LENGTH))


def seal_stream(plain: bytes | memoryview, key: FileKey) -> bytes:
    """A whole stream; nothing at all becomes one empty block."""
    view = memoryview(plain)
    return b"".join([HEADER, *_sealed_blocks(view, key, 0)])


def _sealed_blocks(view: memoryview, key: FileKey, first: int) -> Iterator[bytes]:
    for number, start in enumerate(range(0, max(len(view), 1), BLOCK_LENGTH), first):
        yield seal(key.key, view[start : start + BLOCK_LENGTH], _aad(key, number))


def open_stream(sealed: bytes, key: FileKey, location: str) -> bytes:
    """The plain bytes of a whole stream; CorruptFileError if anything about it is not as it was sealed."""
    layout = _Layout(len(sealed), key, location)
    layout.check_header(sealed[: len(HEADER)])
    view = memoryview(sealed)
    return b"".join(
        layout.unsealed(number, view[layout.start(number) : layout.start(number + 1)])
        for number in range(layout.blocks)
    )


def _aad(key: FileKey, number: int) -> bytes:
    return key.aad_prefix + number.to_bytes(4, "little")


class _Layout:
    """Where the blocks of a stream of some length are."""

    def __init__(self, length: int, key: FileKey, location: str) -> None:
        if key.file_length is not None and length != key.file_length:
            raise CorruptFileError(
                location,
                f"it is encrypted and has {length} bytes, where its key says {key.file_length}: it was changed",
            )
        inner = length - len(HEADER)
        self.blocks = -(-inner // _SEALED_BLOCK)
        self.plain_length = inner - self.blocks * OVERHEAD
        last = inner - (self.blocks - 1) * _SEALED_BLOCK
        # Only the one block of an empty stream is empty.
        if not 0 < self.blocks <= _MOST_BLOCKS or last < OVERHEAD or (last == OVERHEAD and self.blocks > 1):
            raise CorruptFileError(location, f"no AES GCM stream has {length} bytes: it was cut off")
        self._length = length
        self._key = key
        self._location = location

    def start(self, number: int) -> int:
        """Where a block begins, or the file ends."""
        return min(len(HEADER) + number * _SEALED_BLOCK, self._length)

    def check_header(self, header: bytes) -> None:
        """Fail unless the file begins as a stream."""
        if header[: len(MAGIC)] != MAGIC:
            raise CorruptFileError(
                self._location,
                f"it should be encrypted, and does not begin as an AES GCM stream but with {header[:4]!r}",
            )
        if header != HEADER:
            raise CorruptFileError(
                self._location,
                f"its encrypted blocks are of {int.from_bytes(header[4:8], 'little')} bytes; only {BLOCK_LENGTH} are supported",
            )

    def unsealed(self, number: int, sealed: bytes | memoryview) -> bytes:
        """The plain bytes of a block."""
        try:
            return unseal(self._key.key, sealed, _aad(self._key, number))
        except NotAuthenticError as error:
            raise CorruptFileError(self._location, f"encrypted block {number} cannot be opened: {error}") from None


class Sink(Protocol):
    """Where sealed bytes go."""

    def write(self, data: bytes, /) -> object:
        """Append the bytes."""


class SealingSink:
    """Takes plain bytes and passes on sealed ones, block by block; `finish` ends the stream."""

    def __init__(self, sink: Sink, key: FileKey) -> None:
        self._sink = sink
        self._key = key
        self._waiting = bytearray()
        self._blocks = 0
        self.written = len(HEADER)
        """How long the stream is so far."""
        sink.write(HEADER)

    def write(self, data: bytes | bytearray | memoryview, /) -> int:
        """Append plain bytes."""
        self._waiting += data
        while len(self._waiting) > BLOCK_LENGTH:
            # The last block stays back: nothing may follow one that is full.
            self._put(bytes(self._waiting[:BLOCK_LENGTH]))
            del self._waiting[:BLOCK_LENGTH]
        return len(data)

    def finish(self) -> int:
        """Seal what is left; how long the stream is."""
        self._put(bytes(self._waiting))
        self._waiting.clear()
        return self.written

    def _put(self, plain: bytes) -> None:
        sealed = seal(self._key.key, plain, _aad(self._key, self._blocks))
        self._blocks += 1
        self.written += len(sealed)
        self._sink.write(sealed)


class Source(Protocol):
    """A seekable file."""

    def read(self, length: int = -1, /) -> bytes:
        """The next bytes."""

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """Move to a position."""

    def size(self) -> int:
        """The size of the file."""

    def close(self) -> None:
        """Release what is held."""


class UnsealedInput:
    """A stream as the plain file that it holds: seekable, and only the blocks that are read are opened."""

    def __init__(self, source: Source, key: FileKey, location: str) -> None:
        self._source = source
        self._layout = _Layout(source.size(), key, location)
        source.seek(0)
        self._layout.check_header(bytes(source.read(len(HEADER))))
        self._location = location
        self._position = 0
        self._kept: dict[int, bytes] = {}
        self._lock = threading.RLock()
        self.closed = False
        if not self.size():
            # No read would ever look at the one empty block.
            self._block(0)

    def size(self) -> int:
        """How many plain bytes there are."""
        return self._layout.plain_length

    def read_range(self, offset: int, length: int) -> bytes:
        """The plain bytes from an offset, fewer only at the end."""
        with self._lock:
            end = min(offset + length, self.size())
            if offset >= end:
                return b""
            first, last = offset // BLOCK_LENGTH, (end - 1) // BLOCK_LENGTH
            plain = b"".join(self._block(number) for number in range(first, last + 1))
            return plain[offset - first * BLOCK_LENGTH : end - first * BLOCK_LENGTH]

    def read(self, length: int | None = -1, /) -> bytes:
        """The next plain bytes; all that are left without a length."""
        with self._lock:
            wanted = self.size() - self._position if length is None or length < 0 else length
            data = self.read_range(self._position, wanted)
            self._position += len(data)
            return data

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """Move to a position from the start (0), from here (1) or from the end (2)."""
        with self._lock:
            self._position = max(0, (0, self._position, self.size())[whence] + offset)
            return self._position

    def tell(self) -> int:
        """The position of the next read."""
        return self._position

    def close(self) -> None:
        """Release what is held."""
        self.closed = True
        self._kept.clear()
        self._source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _block(self, number: int) -> bytes:
        if number in self._kept:
            return self._kept[number]
        start = self._layout.start(number)
        self._source.seek(start)
        plain = self._layout.unsealed(number, bytes(self._source.read(self._layout.start(number + 1) - start)))
        if len(self._kept) >= _KEPT_BLOCKS:
            del self._kept[next(iter(self._kept))]
        self._kept[number] = plain
        return plain
