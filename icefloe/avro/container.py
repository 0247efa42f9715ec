"""An Avro file before its rows are read: its header and its blocks, with every length checked (Avro: Object Container Files)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from icefloe.avro import operations as op, plain_walker
from icefloe.avro.blocks import CODEC_ERRORS, CODECS, MAGIC, SYNC_SIZE, deflate as pack, inflate as unpack
from icefloe.errors import CorruptFileError, InvalidPropertyError
from icefloe.metadata import DEFAULT_LIMITS, Limits

MAX_BLOCK_BYTES = 256 << 20
"""The most that one block may hold when inflated; writers stay far below it, and a hostile one may not fill the memory."""


@dataclass(frozen=True, slots=True)
class Header:
    """What stands before the blocks; `end` is where the first one begins."""

    schema: bytes
    metadata: Mapping[str, str]
    codec: str
    sync: bytes
    end: int


@dataclass(frozen=True, slots=True)
class Container:
    """Some blocks of a file, all of them mostly: `blocks` has a line (rows, start, end) for each one in `data`.

    `start` is where `data` begins in the file.
    """

    location: str
    data: memoryview
    header: Header
    blocks: "np.ndarray[Any, np.dtype[np.int64]]"
    limits: Limits = DEFAULT_LIMITS
    start: int = 0

    @property
    def metadata(self) -> Mapping[str, str]:
        """What its writer says about the file, by key."""
        return {key: value for key, value in self.header.metadata.items() if not key.startswith("avro.")}

    @property
    def allowed(self) -> int:
        """How many bytes it may take in memory."""
        return self.limits.allowed(len(self.data))

    def check_room(self, size: int) -> None:
        """Fail before memory is taken for more than the file may have."""
        if size > self.allowed:
            raise CorruptFileError(self.location, self.limits.refusal(len(self.data)))

    @property
    def rows(self) -> int:
        """How many rows the blocks say that they hold."""
        return int(self.blocks[:, 0].sum())


class _HeaderReader:
    """Reads the header's few values; a cut-off one is a CorruptFileError."""

    def __init__(self, data: memoryview, location: str) -> None:
        self.data, self.location, self.at = data, location, len(MAGIC)

    def number(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            if self.at >= len(self.data):
                raise CorruptFileError(self.location, "the Avro header is cut off")
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return (value >> 1) ^ -(value & 1)
        raise CorruptFileError(self.location, "a number in the Avro header has more than 64 bits")

    def take(self, length: int | None = None) -> bytes:
        length = self.number() if length is None else length
        if not 0 <= length <= len(self.data) - self.at:
            raise CorruptFileError(self.location, f"the Avro header has a value of {length} bytes, beyond its end")
        self.at += length
        return bytes(self.data[self.at - length : self.at])

    def metadata(self) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        while (count := self.number()) != 0:
            if count < 0:
                self.number()
            if abs(count) > len(self.data) - self.at:
                raise CorruptFileError(self.location, f"the Avro header announces {abs(count)} values")
            for _ in range(abs(count)):
                key = self.take().decode("utf-8", "replace")
                found[key] = self.take()
        return found


def read_header(view: memoryview, location: str) -> Header:
    """The header of a file from its first bytes."""
    if bytes(view[: len(MAGIC)]) != MAGIC:
        # What it starts with instead is not said: it may be anything that can be read here.
        raise CorruptFileError(location, f"not an Avro file: it does not start with {MAGIC!r}")
    reader = _HeaderReader(view, location)
    metadata = reader.metadata()
    sync = reader.take(SYNC_SIZE)
    codec = metadata.get("avro.codec", b"null").decode("utf-8", "replace")
    if codec not in CODECS.values():
        known = ", ".join(sorted(set(CODECS.values())))
        raise CorruptFileError(location, f"Avro codec {codec!r} is not known; codecs are {known}")
    texts = {key: value.decode("utf-8", "replace") for key, value in metadata.items()}
    return Header(metadata.get("avro.schema", b""), texts, codec, sync, reader.at)


def open_container(data: bytes | memoryview, location: str, limits: Limits = DEFAULT_LIMITS) -> Container:
    """Header and block table of a whole file; nothing is inflated yet."""
    view = memoryview(data).cast("B")
    header = read_header(view, location)
    return Container(location, view, header, _find_blocks(view, header.end, header.sync, location), limits)


def _find_blocks(view: memoryview, start: int, sync: bytes, location: str) -> "np.ndarray[Any, np.dtype[np.int64]]":
    data = np.frombuffer(view, np.uint8)
    marker = np.frombuffer(sync, np.uint8)
    table = np.empty((0, 3), np.int64)
    # Few files have so many blocks that compiled code would find them faster than it is loaded.
    find, room = plain_walker.find_blocks, 4096
    while True:
        part = np.empty((room, 3), np.int64)
        status, found, start = find(data, start, marker, part)
        table = np.concatenate((table, part[:found]))
        if status == op.STATUS_OK:
            break
        if status != op.STATUS_GROW:
            raise CorruptFileError(location, f"block {len(table)} at byte {start}: {op.PROBLEMS[status]}")
        from icefloe.avro.walker import find_blocks as find

        room *= 2
    if len(table) and int(table[:, 0].max()) >= 1 << 40:
        raise CorruptFileError(location, f"a block announces {int(table[:, 0].max())} rows")
    return table


def inflate(container: Container, block: int) -> bytes | memoryview:
    """The bytes of one block's rows."""
    _, start, end = container.blocks[block]
    data = container.data[int(start) : int(end)]
    try:
        return unpack(container.header.codec, data, min(MAX_BLOCK_BYTES, container.allowed))
    except CODEC_ERRORS as error:
        problem = (
            f"block {block} at byte {container.start + start} does not inflate with {container.header.codec}: {error}"
        )
        raise CorruptFileError(container.location, problem) from error


def codec_named(text: str) -> str:
    """Avro's name for a value of `write.manifest.compression-codec`."""
    codec = CODECS.get(text.strip().lower())
    if codec is None:
        raise InvalidPropertyError(
            f"compression codec {text!r} is not one that manifests can have; codecs are {', '.join(sorted(CODECS))}"
        )
    return codec


def deflate(codec: str, data: bytes | memoryview, level: int | None = None) -> bytes:
    """Compress the rows of one block with a codec of Avro's name."""
    default = DEFLATE_LEVEL if codec == "deflate" else ZSTD_LEVEL
    return pack(codec, data, default if level is None else level)


DEFLATE_LEVEL = 1
"""What deflate uses when no level is asked for: three times as fast as zlib's own choice, for manifests a twentieth larger."""
ZSTD_LEVEL = 3
