"""An Avro file before its rows are read: its header and its blocks, with every length checked (Avro: Object Container Files)."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from icefloe.avro import nodes as av, operations as op
from icefloe.avro.blocks import CODEC_ERRORS, CODECS, MAGIC, SYNC_SIZE, inflate
from icefloe.avro.values import ValueReader
from icefloe.errors import CorruptFileError
from icefloe.metadata import DEFAULT_LIMITS, Limits
from icefloe.schema import types

_METADATA = av.AvroMap(av.AvroPrimitive("bytes"))
_SYNC = av.AvroFixed(SYNC_SIZE, types.FixedType(SYNC_SIZE))

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
    blocks: npt.NDArray[np.int64]
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

    def inflated(self, block: int) -> bytes | memoryview:
        """The bytes of one block's rows."""
        _, start, end = self.blocks[block].tolist()
        codec = self.header.codec
        try:
            return inflate(codec, self.data[start:end], min(MAX_BLOCK_BYTES, self.allowed))
        except CODEC_ERRORS as error:
            problem = f"block {block} at byte {self.start + start} does not inflate with {codec}: {error}"
            raise CorruptFileError(self.location, problem) from error


def read_header(view: memoryview, location: str) -> Header:
    """The header of a file from its first bytes."""
    if bytes(view[: len(MAGIC)]) != MAGIC:
        # What it starts with instead is not said: it may be anything that can be read here.
        raise CorruptFileError(location, f"not an Avro file: it does not start with {MAGIC!r}")
    reader = ValueReader(view, len(MAGIC))
    try:
        metadata: dict[str, bytes] = reader.value(_METADATA)
        sync: bytes = reader.value(_SYNC)
    except ValueError as error:
        raise CorruptFileError(location, f"its Avro header cannot be read: {error}") from error
    codec = metadata.get("avro.codec", b"null").decode("utf-8", "replace")
    if codec not in CODECS.values():
        known = ", ".join(sorted(set(CODECS.values())))
        raise CorruptFileError(location, f"unknown Avro codec {codec!r}; codecs are {known}")
    texts = {key: value.decode("utf-8", "replace") for key, value in metadata.items()}
    return Header(metadata.get("avro.schema", b""), texts, codec, sync, reader.at)


def open_container(data: bytes | memoryview, location: str, limits: Limits = DEFAULT_LIMITS) -> Container:
    """Header and block table of a whole file; nothing is inflated yet."""
    view = memoryview(data).cast("B")
    header = read_header(view, location)
    return Container(location, view, header, _find_blocks(view, header, location), limits)


def _find_blocks(view: memoryview, header: Header, location: str) -> npt.NDArray[np.int64]:
    """A line (rows, start, end) for each block."""
    table: list[tuple[int, int, int]] = []
    reader = ValueReader(view, header.end)
    while reader.left:
        start = reader.at
        try:
            rows, length = reader.number(), reader.number()
        except ValueError:
            raise _bad_block(op.STATUS_BAD_VARINT, len(table), start, location) from None
        if rows < 0 or length < 0:
            raise _bad_block(op.STATUS_BAD_COUNT, len(table), start, location)
        if length + SYNC_SIZE > reader.left:
            raise _bad_block(op.STATUS_BAD_LENGTH, len(table), start, location)
        if rows >= 1 << 40:
            raise CorruptFileError(location, f"a block announces {rows} rows")
        end = reader.at + length
        if view[end : end + SYNC_SIZE] != header.sync:
            raise _bad_block(op.STATUS_LEFT_OVER, len(table), end, location)
        table.append((rows, reader.at, end))
        reader.at = end + SYNC_SIZE
    return np.array(table, np.int64).reshape(-1, 3)


def _bad_block(status: int, block: int, at: int, location: str) -> CorruptFileError:
    return CorruptFileError(location, f"block {block} at byte {at}: {op.PROBLEMS[status]}")
