"""Which bytes a Puffin file is made of: magic, blobs, footer (spec: Puffin).

Reading takes a callable that reads ranges, so that only the footer and the wanted blobs are fetched; nothing in the file
is believed before it is checked.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated

import msgspec

from icefloe.errors import CorruptFileError, InvalidValueError
from icefloe.formats.puffin.compression import LZ4, compress, decompress

MAGIC = b"PFA1"
MAX_FOOTER_BYTES = 1 << 28
"""The longest footer, before and after decompression, that is read unless the caller says otherwise."""
MAX_BLOB_BYTES = 1 << 30
"""The longest blob, before and after decompression, that is read unless the caller says otherwise."""

_TAIL_SIZE = 12
_FOOTER_OVERHEAD = len(MAGIC) + _TAIL_SIZE
_SMALLEST_FILE = len(MAGIC) + _FOOTER_OVERHEAD + len(b'{"blobs":[]}')
_FIRST_READ = 16 * 1024
_COMPRESSED_FLAG = 1
_MAX_PAYLOAD = 2**31 - 1

_Long = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
_Size = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
_FieldId = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]

ReadRange = Callable[[int, int], bytes]
"""Reads `(offset, length)` of a file; fewer bytes than asked for mean that the file ends there."""


@dataclass(frozen=True, slots=True)
class Blob:
    """Content to be written, and what is to be said of it."""

    type: str
    fields: tuple[int, ...]
    snapshot_id: int
    sequence_number: int
    data: bytes
    compression_codec: str | None = None
    properties: dict[str, str] = field(default_factory=dict)


class BlobMetadata(msgspec.Struct, rename="kebab", omit_defaults=True, frozen=True):
    """Where a blob is in its file, and what it is, as the footer has it; `length` is that of the bytes as stored."""

    # The order of the fields is the order in which the Java library writes them.
    type: str
    fields: tuple[_FieldId, ...]
    snapshot_id: _Long
    sequence_number: _Long
    offset: _Size
    length: _Size
    compression_codec: str | None = None
    properties: dict[str, str] | None = None


@dataclass(frozen=True, slots=True)
class PuffinFooter:
    """All blobs of a file in the order of the footer; `size` is the whole footer's, both of its magics included."""

    blobs: tuple[BlobMetadata, ...]
    properties: dict[str, str]
    size: int


class _FooterPayload(msgspec.Struct, omit_defaults=True, frozen=True):
    blobs: tuple[BlobMetadata, ...]
    properties: dict[str, str] | None = None


_DECODER = msgspec.json.Decoder(_FooterPayload)


def read_footer(
    read_range: ReadRange,
    file_size: int,
    location: str,
    *,
    footer_size: int | None = None,
    limit: int = MAX_FOOTER_BYTES,
) -> PuffinFooter:
    """The footer, with one read, or two when it is longer than the first one guessed.

    `footer_size` is what table metadata may say of the file's footer; it only has to be right, not to be there.
    """
    if file_size < _SMALLEST_FILE:
        raise CorruptFileError(location, f"{file_size} bytes are too few for a Puffin file")
    if footer_size is not None and not _FOOTER_OVERHEAD < footer_size <= file_size - len(MAGIC):
        raise CorruptFileError(location, f"a footer of {footer_size} bytes does not fit in a file of {file_size}")
    if footer_size is not None and footer_size > limit + _FOOTER_OVERHEAD:
        raise CorruptFileError(location, f"a footer of {footer_size} bytes is longer than {limit}")
    end = _read_exactly(read_range, file_size, min(file_size, footer_size or _FIRST_READ), location)
    payload_size, compressed = _parse_tail(end, location)
    size = payload_size + _FOOTER_OVERHEAD
    if payload_size > limit or size > file_size - len(MAGIC):
        raise CorruptFileError(
            location, f"a footer payload of {payload_size} bytes is too long for this file or reader"
        )
    if footer_size is not None and size != footer_size:
        raise CorruptFileError(location, f"the footer is {size} bytes long, not {footer_size} as expected")
    if size > len(end):
        end = _read_exactly(read_range, file_size, size, location)
    footer = end[len(end) - size :]
    if footer[: len(MAGIC)] != MAGIC:
        raise CorruptFileError(location, f"the footer starts with {footer[:4].hex()}, not with the magic {MAGIC.hex()}")
    payload = decompress(footer[len(MAGIC) : -_TAIL_SIZE], LZ4 if compressed else None, location, limit)
    try:
        content = _DECODER.decode(payload)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise CorruptFileError(location, f"the Puffin footer is not the JSON that it must be: {error}") from error
    _check_layout(content.blobs, file_size - size, location)
    return PuffinFooter(content.blobs, content.properties or {}, size)


def read_blob(read_range: ReadRange, blob: BlobMetadata, location: str, *, limit: int = MAX_BLOB_BYTES) -> bytes:
    """The content of one blob, decompressed, of at most `limit` bytes."""
    if blob.length > limit:
        raise CorruptFileError(location, f"a blob of {blob.length} bytes is longer than {limit}")
    stored = read_range(blob.offset, blob.length)
    if len(stored) != blob.length:
        raise CorruptFileError(
            location, f"the file ends inside the blob of {blob.length} bytes at offset {blob.offset}"
        )
    return decompress(stored, blob.compression_codec, location, limit)


class PuffinWriter:
    """Writes a Puffin file piece by piece into `sink`, so that no more than one blob is held in memory."""

    def __init__(self, sink: Callable[[bytes], object], properties: Mapping[str, str] | None = None) -> None:
        self._sink = sink
        self._properties = dict(properties or {})
        self._blobs: list[BlobMetadata] = []
        self._position = 0
        self._finished = False
        self._put(MAGIC)

    def add(self, blob: Blob) -> BlobMetadata:
        """Write one blob; says where it is."""
        if self._finished:
            raise InvalidValueError("the Puffin file is finished: no blob can follow its footer")
        stored = compress(blob.data, blob.compression_codec)
        metadata = BlobMetadata(
            blob.type,
            blob.fields,
            blob.snapshot_id,
            blob.sequence_number,
            self._position,
            len(stored),
            blob.compression_codec,
            blob.properties or None,
        )
        self._put(stored)
        self._blobs.append(metadata)
        return metadata

    def finish(self) -> PuffinFooter:
        """Write the footer, after which the file is whole."""
        if self._finished:
            raise InvalidValueError("the Puffin file is finished already")
        self._finished = True
        footer = _footer(tuple(self._blobs), self._properties)
        self._put(footer)
        return PuffinFooter(tuple(self._blobs), self._properties, len(footer))

    def _put(self, data: bytes) -> None:
        self._sink(data)
        self._position += len(data)


def with_blob_properties(data: bytes, location: str, change: Callable[[Mapping[str, str]], Mapping[str, str]]) -> bytes:
    """A whole file with other properties of its blobs, which stay where they are."""
    footer = read_footer(lambda offset, length: data[offset : offset + length], len(data), location)
    changed = [dict(change(blob.properties or {})) or None for blob in footer.blobs]
    if changed == [blob.properties for blob in footer.blobs]:
        return data
    blobs = [msgspec.structs.replace(blob, properties=new) for blob, new in zip(footer.blobs, changed, strict=True)]
    return data[: len(data) - footer.size] + _footer(tuple(blobs), footer.properties)


def _footer(blobs: tuple[BlobMetadata, ...], properties: Mapping[str, str]) -> bytes:
    try:
        payload = msgspec.json.encode(_FooterPayload(blobs, dict(properties) or None))
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidValueError(f"a Puffin footer cannot be written as JSON: {error}") from error
    if len(payload) > _MAX_PAYLOAD:
        raise InvalidValueError(f"a Puffin footer of {len(payload)} bytes is too long; split the file")
    return MAGIC + payload + len(payload).to_bytes(4, "little") + bytes(4) + MAGIC


def _read_exactly(read_range: ReadRange, file_size: int, length: int, location: str) -> bytes:
    data = read_range(file_size - length, length)
    if len(data) != length:
        raise CorruptFileError(location, f"the file is shorter than the {file_size} bytes that it should have")
    return data


def _parse_tail(end: bytes, location: str) -> tuple[int, bool]:
    tail = end[-_TAIL_SIZE:]
    if tail[8:] != MAGIC:
        raise CorruptFileError(location, f"the file does not end with the magic {MAGIC.hex()}")
    payload_size = int.from_bytes(tail[:4], "little", signed=True)
    if payload_size < 0:
        raise CorruptFileError(location, f"the footer states a payload of {payload_size} bytes")
    flags = int.from_bytes(tail[4:8], "little")
    if flags & ~_COMPRESSED_FLAG:
        raise CorruptFileError(location, "the footer has unknown flags")
    return payload_size, bool(flags & _COMPRESSED_FLAG)


def _check_layout(blobs: tuple[BlobMetadata, ...], footer_start: int, location: str) -> None:
    end = len(MAGIC)
    for blob in sorted(blobs, key=lambda blob: (blob.offset, blob.length)):
        if blob.offset < end:
            raise CorruptFileError(
                location, f"the blob at offset {blob.offset} overlaps what is before it, up to {end}"
            )
        end = blob.offset + blob.length
        if end > footer_start:
            raise CorruptFileError(
                location, f"the blob at offset {blob.offset} ends at {end}, inside the footer at {footer_start}"
            )
