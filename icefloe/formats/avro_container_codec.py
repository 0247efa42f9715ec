"""The Avro container around rows: header, blocks, sync markers and codecs, read with every length checked, and written."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from icefloe.avro.blocks import (
    CODEC_ERRORS,
    CODECS,
    MAGIC,
    SYNC_SIZE,
    container_block,
    container_header,
    deflate,
    inflate,
)
from icefloe.errors import CorruptFileError, InvalidPropertyError
from icefloe.metadata.limits import DEFAULT_LIMITS
from icefloe.metadata.properties import AVRO_COMPRESSION, AVRO_COMPRESSION_LEVEL, property_as_int

MAX_BLOCK_BYTES = 256 << 20
"""The most that one block may hold when inflated; writers stay far below it, and a hostile one may not fill the memory."""

_WINDOW = 1 << 22
"""How much is read at a time: a request to a store is dearer than bytes that are not needed."""
_SMALL_WINDOW = 1 << 12
_MAX_HEADER = 64 << 20
_SCHEMA_KEY, _CODEC_KEY = "avro.schema", "avro.codec"
_LEVELS = {"deflate": (9, 0, 9), "zstandard": (1, -7, 22)}
"""Default, lowest and highest level; the defaults are Java's."""


@dataclass(frozen=True, slots=True)
class Codec:
    """How blocks are compressed: Avro's name, and the level where there is one."""

    name: str
    level: int = 0


@dataclass(frozen=True, slots=True)
class AvroHeader:
    """What stands before the blocks; `data_start` is where the first one begins."""

    schema: Any
    metadata: Mapping[str, bytes]
    codec: str
    sync: bytes
    data_start: int


@dataclass(frozen=True, slots=True)
class AvroBlock:
    """Rows of a file, still as Avro bytes; `first_row` is the position of the first one where it was asked for."""

    first_row: int
    rows: int
    data: bytes


def codec_of(properties: Mapping[str, str]) -> Codec:
    """The codec that the table's properties ask for."""
    text = AVRO_COMPRESSION.of(properties).lower()
    if text not in CODECS:
        raise InvalidPropertyError(
            f"property {AVRO_COMPRESSION.key!r} is {text!r}; it must be one of {', '.join(CODECS)}"
        )
    name = CODECS[text]
    if name not in _LEVELS:
        return Codec(name)
    default, lowest, highest = _LEVELS[name]
    level = default
    if AVRO_COMPRESSION_LEVEL.of(properties) is not None:
        level = property_as_int(properties, AVRO_COMPRESSION_LEVEL.key, default)
    if not lowest <= level <= highest:
        raise InvalidPropertyError(
            f"property {AVRO_COMPRESSION_LEVEL.key!r} is {level}; {text} takes {lowest} to {highest}"
        )
    return Codec(name, level)


def header_bytes(schema: Any, metadata: Mapping[str, str], codec: Codec, sync: bytes) -> bytes:
    """The header of a file."""
    return container_header(schema, metadata, codec.name, sync)


def block_bytes(rows: int, data: Any, codec: Codec, sync: bytes) -> bytes:
    """A block of so many rows whose Avro bytes are `data`."""
    return container_block(rows, deflate(codec.name, memoryview(data), codec.level), sync)


class AvroContainer:
    """An open Avro file: its header, and its blocks on demand."""

    def __init__(self, source: Any, location: str) -> None:
        self._source = source
        self._location = location
        self._size = source.seek(0, 2)
        if self._size is None:
            self._size = source.tell()
        self._window_start, self._window = 0, b""
        self.header = self._read_header()

    def blocks(self, split: tuple[int, int] | None, with_rows: bool) -> Iterator[AvroBlock]:
        """The blocks that begin in the split, (start, length) in bytes; their first rows are right if `with_rows`.

        Rows before the split can only be counted by a walk over the heads of all earlier blocks; without them, the split's
        first block is found by its sync marker.
        """
        start, length = split or (0, self._size)
        at, row = self.header.data_start, 0
        if not with_rows and start > at:
            at = self._next_block(start)
        while at < min(self._size, start + length):
            rows, size, data_at = self._block_head(at, _WINDOW if at >= start else _SMALL_WINDOW)
            end = data_at + size + SYNC_SIZE
            if end > self._size:
                raise self._bad(f"the block at byte {at} ends behind the end of the file")
            if at >= start:
                packed = self._at(data_at, size + SYNC_SIZE)
                if packed[size:] != self.header.sync:
                    raise self._bad(f"the block at byte {at} does not end in the file's sync marker")
                yield AvroBlock(row, rows, self._inflated(packed[:size], at))
            at, row = end, row + rows

    def _bad(self, problem: str) -> CorruptFileError:
        return CorruptFileError(self._location, problem)

    def _at(self, offset: int, length: int, window: int = _WINDOW) -> bytes:
        """The bytes from an offset on, by way of a window that is read at a time."""
        relative = offset - self._window_start
        if not 0 <= relative <= relative + length <= len(self._window):
            wanted = min(max(length, window), self._size - offset)
            self._source.seek(offset)
            parts, missing = [], wanted
            while missing > 0 and (part := self._source.read(missing)):
                parts.append(bytes(part))
                missing -= len(part)
            self._window_start, self._window, relative = offset, b"".join(parts), 0
            if missing > 0 or wanted < length:
                raise self._bad(f"it ends early, at byte {offset + wanted - missing}")
        return self._window[relative : relative + length]

    def _block_head(self, at: int, window: int) -> tuple[int, int, int]:
        head = self._at(at, min(20, self._size - at), window)
        rows, used = self._number(head, 0)
        size, used = self._number(head, used)
        if rows < 0 or not 0 <= size <= self._size:
            raise self._bad(f"the block at byte {at} says that it has {rows} rows and {size} bytes")
        return rows, size, at + used

    def _number(self, data: bytes, at: int) -> tuple[int, int]:
        value = 0
        for place in range(10):
            if at + place >= len(data):
                break
            byte = data[at + place]
            value |= (byte & 0x7F) << (7 * place)
            if byte < 0x80 and value < 1 << 64:
                return (value >> 1) ^ -(value & 1), at + place + 1
        raise self._bad("a number is cut off or too long")

    def _next_block(self, start: int) -> int:
        """Where the first block at or behind a byte begins: right behind a sync marker."""
        at = start - SYNC_SIZE
        while at + SYNC_SIZE <= self._size:
            chunk = self._at(at, min(_WINDOW, self._size - at))
            found = chunk.find(self.header.sync)
            if found >= 0:
                return at + found + SYNC_SIZE
            at += max(1, len(chunk) - SYNC_SIZE + 1)
        return int(self._size)

    def _read_header(self) -> AvroHeader:
        data = self._at(0, min(self._size, _WINDOW))
        if data[: len(MAGIC)] != MAGIC:
            raise self._bad("it is not an Avro file: it does not begin with 'Obj' and 1")
        while True:
            try:
                return self._parse_header(data)
            except CorruptFileError:
                if len(data) >= min(self._size, _MAX_HEADER):
                    raise
                data = self._at(0, min(self._size, len(data) * 8))

    def _parse_header(self, data: bytes) -> AvroHeader:
        metadata: dict[str, bytes] = {}
        at = len(MAGIC)
        while True:
            count, at = self._number(data, at)
            if count == 0:
                break
            if count < 0:
                count = -count
                _, at = self._number(data, at)
            for _ in range(count):
                key, at = self._text(data, at)
                value, at = self._text(data, at)
                metadata[key.decode("utf-8", "replace")] = value
        sync = data[at : at + SYNC_SIZE]
        if len(sync) < SYNC_SIZE:
            raise self._bad("it ends within its header")
        codec = metadata.get(_CODEC_KEY, b"null").decode("utf-8", "replace")
        return AvroHeader(self._schema(metadata), metadata, codec, sync, at + SYNC_SIZE)

    def _text(self, data: bytes, at: int) -> tuple[bytes, int]:
        length, at = self._number(data, at)
        if not 0 <= length <= len(data) - at:
            raise self._bad("it ends within its header")
        return data[at : at + length], at + length

    def _schema(self, metadata: Mapping[str, bytes]) -> Any:
        if _SCHEMA_KEY not in metadata:
            raise self._bad(f"its header has no {_SCHEMA_KEY!r}")
        try:
            return json.loads(metadata[_SCHEMA_KEY])
        except (ValueError, RecursionError) as problem:
            raise self._bad(f"its Avro schema is not JSON: {problem}") from None

    def _inflated(self, data: bytes, at: int) -> bytes:
        try:
            return bytes(inflate(self.header.codec, data, min(MAX_BLOCK_BYTES, DEFAULT_LIMITS.allowed(len(data)))))
        except CODEC_ERRORS as problem:
            raise self._bad(f"the block at byte {at} cannot be decompressed: {problem}") from None
