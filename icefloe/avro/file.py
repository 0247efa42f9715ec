"""An open Avro file whose blocks are read on demand, all of them or those of a split."""

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from icefloe.avro.blocks import SYNC_SIZE
from icefloe.avro.container import Container, Header, read_header
from icefloe.avro.values import ValueReader
from icefloe.errors import CorruptFileError
from icefloe.metadata import Limits

_PART_ROWS = 1 << 15
_PART_BYTES = 1 << 20
"""About how much of a file one part holds: enough to pay for a call, little enough to stay in memory as columns."""

_LIMITS = Limits(metadata_bytes=1 << 32, expansion=1 << 32)
"""Data may be as small as its codec makes it: what a part may take is bounded by its rows and by the size of a block."""

_WINDOW = 1 << 22
"""How much is read at a time: a request to a store is dearer than bytes that are not needed."""
_SMALL_WINDOW = 1 << 12
_MAX_HEADER = 64 << 20
_MAX_HEAD = 20


class Source(Protocol):
    """A seekable file."""

    def read(self, length: int = -1, /) -> bytes:
        """The next bytes, up to that many; all that are left without a length."""

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """Move to a position from the start (0), from here (1) or from the end (2), and return it."""


class AvroFile:
    """A seekable source with its header, and its blocks on demand."""

    def __init__(self, source: Source, location: str) -> None:
        self._source = source
        self._location = location
        self._size = source.seek(0, 2)
        self._window_start, self._window = 0, b""
        self.header = self._read_header()

    def parts(self, split: tuple[int, int] | None, with_rows: bool) -> Iterator[tuple[int, Container]]:
        """The blocks that begin in the split, (start, length) in bytes, a few at a time, with the number of their first row.

        The first rows are right if `with_rows`: rows before the split can only be counted by a walk over the heads of all
        earlier blocks; without them, its sync marker tells where the split's first block begins.
        """
        start, length = split or (0, self._size)
        at, row = self.header.end, 0
        if start > at:
            at, row = self._walk_to(start) if with_rows else (self._next_block(start), 0)
        stop = min(self._size, start + length)
        while at < stop:
            part, at = self._part(at, stop)
            yield row, part
            row += part.rows

    def _walk_to(self, start: int) -> tuple[int, int]:
        """The first block at or after a byte, and how many rows precede it."""
        at, row = self.header.end, 0
        while at < min(start, self._size):
            rows, _, end = self._block(at, _SMALL_WINDOW)
            at, row = end, row + rows
        return at, row

    def _part(self, first: int, stop: int) -> tuple[Container, int]:
        """The blocks from a byte on, as many as make a part and are in the window; one at least."""
        table: list[tuple[int, int, int]] = []
        at, rows = first, 0
        while at < stop and rows < _PART_ROWS and at - first < _PART_BYTES:
            if table and not self._has(first, min(at + _MAX_HEAD, self._size) - first):
                break
            count, data_at, end = self._block(at, _WINDOW)
            if table and not self._has(first, end - first):
                break
            table.append((count, data_at - first, end - SYNC_SIZE - first))
            at, rows = end, rows + count
        data = self._at(first, at - first)
        for _, _, end in table:
            if data[end : end + SYNC_SIZE] != self.header.sync:
                raise self._bad(f"the block before byte {first + end} does not end in the file's sync marker")
        blocks = np.array(table, np.int64)
        return Container(self._location, memoryview(data), self.header, blocks, _LIMITS, first), at

    def _bad(self, problem: str) -> CorruptFileError:
        return CorruptFileError(self._location, problem)

    def _has(self, offset: int, length: int) -> bool:
        """Whether these bytes are in the window."""
        relative = offset - self._window_start
        return 0 <= relative <= relative + length <= len(self._window)

    def _at(self, offset: int, length: int, window: int = _WINDOW) -> bytes:
        """The bytes from an offset on, by way of a window that is read at a time."""
        if not self._has(offset, length):
            requested = min(max(length, window), self._size - offset)
            self._source.seek(offset)
            parts, missing = [], requested
            while missing > 0 and (part := self._source.read(missing)):
                parts.append(bytes(part))
                missing -= len(part)
            self._window_start, self._window = offset, b"".join(parts)
            if missing > 0 or requested < length:
                raise self._bad(f"it ends early, at byte {offset + requested - missing}")
        relative = offset - self._window_start
        return self._window[relative : relative + length]

    def _block(self, at: int, window: int) -> tuple[int, int, int]:
        """The rows of the block at a byte, where its data begins, and where the block ends."""
        head = self._at(at, min(_MAX_HEAD, self._size - at), window)
        reader = ValueReader(head)
        try:
            rows, size, used = reader.number(), reader.number(), reader.at
        except ValueError as error:
            raise self._bad(f"the block at byte {at}: {error}") from error
        if rows < 0 or not 0 <= size <= self._size:
            raise self._bad(f"the block at byte {at} says that it has {rows} rows and {size} bytes")
        end = at + used + size + SYNC_SIZE
        if end > self._size:
            raise self._bad(f"the block at byte {at} ends after the end of the file")
        return rows, at + used, end

    def _next_block(self, start: int) -> int:
        """Where the first block at or after a byte begins: right after a sync marker."""
        at = start - SYNC_SIZE
        while at + SYNC_SIZE <= self._size:
            chunk = self._at(at, min(_WINDOW, self._size - at))
            index = chunk.find(self.header.sync)
            if index >= 0:
                return at + index + SYNC_SIZE
            at += max(1, len(chunk) - SYNC_SIZE + 1)
        return self._size

    def _read_header(self) -> Header:
        data = self._at(0, min(self._size, _WINDOW))
        while True:
            try:
                return read_header(memoryview(data), self._location)
            except CorruptFileError:
                if len(data) >= min(self._size, _MAX_HEADER):
                    raise
                data = self._at(0, min(self._size, len(data) * 8))
