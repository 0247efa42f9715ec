"""Whole Puffin files in memory."""

import struct
from collections.abc import Iterable, Mapping
from dataclasses import replace

import lz4.frame

from icefloe.errors import CorruptFileError
from icefloe.formats.puffin.compression import compress
from icefloe.formats.puffin.files import (
    MAGIC,
    MAX_BLOB_BYTES,
    Blob,
    PuffinFooter,
    PuffinWriter,
    ReadRange,
    read_blob,
    read_footer,
)


def packed(data: bytes, codec: str) -> bytes:
    """The data as one frame."""
    if codec == "lz4":
        return bytes(lz4.frame.compress(data, store_size=True))
    return compress(data, codec)


def decode_puffin(data: bytes, location: str, *, limit: int = MAX_BLOB_BYTES) -> tuple[PuffinFooter, list[bytes]]:
    """Footer and contents of all blobs of a whole file in memory; `limit` bounds the contents together."""
    if data[: len(MAGIC)] != MAGIC:
        raise CorruptFileError(location, f"the file does not start with the magic {MAGIC.hex()}")
    read_range = bytes_reader(data)
    footer = read_footer(read_range, len(data), location)
    contents: list[bytes] = []
    for blob in footer.blobs:
        contents.append(read_blob(read_range, blob, location, limit=limit))
        limit -= len(contents[-1])
    return footer, contents


def bytes_reader(data: bytes) -> ReadRange:
    """A reader of ranges of bytes in memory."""
    return lambda offset, length: data[offset : offset + length]


def encode_puffin(
    blobs: Iterable[Blob], properties: Mapping[str, str] | None = None, *, compress_footer: bool = False
) -> tuple[bytes, PuffinFooter]:
    """A whole Puffin file in memory, and its footer."""
    data = bytearray()
    writer = PuffinWriter(data.extend, properties)
    for blob in blobs:
        writer.add(blob)
    footer = writer.finish()
    if not compress_footer:
        return bytes(data), footer
    payload = packed(bytes(data[4 - footer.size : -12]), "lz4")
    tail = MAGIC + payload + struct.pack("<iI", len(payload), 1) + MAGIC
    return bytes(data[: -footer.size]) + tail, replace(footer, size=len(tail))
