"""Which bytes of a remote file are requested when it is read as a seekable file.

Nothing is read ahead. One request brings the end of the file, where Parquet and ORC keep their footers;
`prefetch` loads the ranges that a reader knows it will need, in parallel.
"""

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Self

import pyarrow as pa

from icefloe.storage.locations import Location
from icefloe.storage.protocol import Files, Input, Tail

SMALL_FILE = 1 << 20
"""A file known to be no longer than this is read whole, in one request."""

TAIL_LENGTH = 256 << 10
"""How much of a file's end the first request brings."""

JOINED_GAP = 64 << 10
"""Ranges no further apart than this are fetched as one: a gap is cheaper than a request."""

LARGEST_REQUEST = 8 << 20
"""A longer range is fetched in pieces, side by side."""

_LARGEST_SMALL_FILE = 64 << 20


class RangedInput(Input):
    """A seekable file over ranged reads; one thread at a time holds it."""

    def __init__(self, files: Files, location: Location, size: int, tail: Tail | None) -> None:
        self._files = files
        self._location = location
        self._size = size
        self._position = 0
        self._tail = tail
        self._blocks: list[tuple[int, bytes]] = []
        self._lock = threading.RLock()
        self.closed = False

    def size(self) -> int:
        return self._size

    def read_at(self, offset: int, length: int) -> bytes:
        """The bytes from an offset, fewer only at the end of the file."""
        with self._lock:
            length = max(0, min(length, self._size - offset))
            if length == 0:
                return b""
            if self._tail is None and offset >= self._size - TAIL_LENGTH:
                start = max(0, self._size - TAIL_LENGTH)
                self._tail = Tail(self._files.read_range(self._location, start, self._size - start), self._size)
            cached = self._cached(offset, length)
            return self._files.read_range(self._location, offset, length) if cached is None else cached

    def _cached(self, offset: int, length: int) -> bytes | None:
        tail = [(self._size - len(self._tail.data), self._tail.data)] if self._tail else []
        for start, data in (*tail, *self._blocks):
            if start <= offset and offset + length <= start + len(data):
                return data[offset - start : offset - start + length]
        return None

    def prefetch(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Load (offset, length) ranges that will be read soon, and drop those loaded before."""
        with self._lock:
            missing = joined_ranges([(at, length) for at, length in ranges if self._cached(at, length) is None])
            pieces = [_pieces(offset, length) for offset, length in missing]
            fetched = iter(self._files.read_ranges(self._location, [piece for block in pieces for piece in block]))
            self._blocks = [(block[0][0], b"".join(next(fetched) for _ in block)) for block in pieces]

    def read(self, length: int | None = -1, /) -> bytes:
        with self._lock:
            remaining = self._size - self._position if length is None or length < 0 else length
            data = self.read_at(self._position, remaining)
            self._position += len(data)
            return data

    def seek(self, offset: int, whence: int = 0, /) -> int:
        with self._lock:
            base = (0, self._position, self._size)[whence]
            self._position = max(0, base + offset)
            return self._position

    def tell(self) -> int:
        return self._position

    def readable(self) -> bool:
        """True."""
        return True

    def seekable(self) -> bool:
        """True."""
        return True

    def writable(self) -> bool:
        """False."""
        return False

    def flush(self) -> None:
        """Nothing."""

    def close(self) -> None:
        self.closed = True
        self._blocks = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def open_ranged(files: Files, location: Location, size: int | None) -> pa.NativeFile | RangedInput:
    """A reader of a remote file that requests only what is read; a small file is read whole, in one request."""
    if size is None:
        tail = files.read_tail(location, TAIL_LENGTH)
        if len(tail.data) == tail.size:
            return pa.BufferReader(tail.data)
        return RangedInput(files, location, tail.size, tail)
    if size <= SMALL_FILE:
        # What is recorded of the size may be wrong, but not by any amount.
        return pa.BufferReader(files.read(location, _LARGEST_SMALL_FILE))
    return RangedInput(files, location, size, None)


def prefetch(handle: object, ranges: Iterable[tuple[int, int]]) -> None:
    """Tell an open input which (offset, length) ranges will be read; local inputs ignore it."""
    bring: Callable[[Iterable[tuple[int, int]]], None] | None = getattr(handle, "prefetch", None)
    if bring is not None:
        bring(ranges)


def joined_ranges(ranges: Sequence[tuple[int, int]], gap: int = JOINED_GAP) -> list[tuple[int, int]]:
    """The ranges in order of offset, with neighbours joined."""
    joined: list[tuple[int, int]] = []
    for offset, length in sorted(part for part in ranges if part[1]):
        if joined and offset <= joined[-1][0] + joined[-1][1] + gap:
            start, before = joined[-1]
            joined[-1] = (start, max(before, offset + length - start))
        else:
            joined.append((offset, length))
    return joined


def _pieces(offset: int, length: int) -> list[tuple[int, int]]:
    end = offset + length
    return [(at, min(LARGEST_REQUEST, end - at)) for at in range(offset, end, LARGEST_REQUEST)]
