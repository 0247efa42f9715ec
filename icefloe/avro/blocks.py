"""The parts that every Avro container is made of, data files and manifests alike: header, blocks, codecs (Avro: Object Container Files)."""

import json
import zlib
from collections.abc import Mapping
from typing import cast

import pyarrow as pa
import zstandard
from isal import isal_zlib

from icefloe.errors import InvalidPropertyError
from icefloe.schema import JSON

MAGIC = b"Obj\x01"
SYNC_SIZE = 16

CODECS = {
    "gzip": "deflate",
    "deflate": "deflate",
    "zstd": "zstandard",
    "zstandard": "zstandard",
    "snappy": "snappy",
    "uncompressed": "null",
    "none": "null",
    "null": "null",
}
"""Avro's name for each codec that a property may name."""

_LEVELS = {"deflate": 1, "zstandard": 3}
"""What is used when no level is asked for. Deflate is three times as fast as with zlib's own choice, for manifests a
twentieth larger."""

# The stub of isal says that its error is an instance.
_ISAL_ERROR = cast("type[Exception]", isal_zlib.error)
CODEC_ERRORS = (_ISAL_ERROR, zstandard.ZstdError, pa.ArrowException, OSError, ValueError, MemoryError)
"""What `inflate` raises on bytes that its codec did not make."""


def zigzag(number: int) -> bytes:
    """A number as Avro writes it."""
    rest = (number << 1) ^ (number >> 63)
    encoded = bytearray()
    while rest > 0x7F:
        encoded.append(rest & 0x7F | 0x80)
        rest >>= 7
    encoded.append(rest)
    return bytes(encoded)


def codec_named(text: str) -> str:
    """Avro's name for a value of `write.manifest.compression-codec`."""
    codec = CODECS.get(text.strip().lower())
    if codec is None:
        raise InvalidPropertyError(
            f"compression codec {text!r} is not one that manifests can have; codecs are {', '.join(sorted(CODECS))}"
        )
    return codec


def container_header(schema: JSON, metadata: Mapping[str, str], codec: str, sync: bytes) -> bytes:
    """The start of a file."""
    entries = {"avro.schema": json.dumps(schema, separators=(",", ":")), "avro.codec": codec} | dict(metadata)
    parts = [MAGIC, zigzag(len(entries))]
    for key, value in entries.items():
        for text in (key.encode(), value.encode()):
            parts += [zigzag(len(text)), text]
    return b"".join((*parts, zigzag(0), sync))


def container_block(rows: int, packed: bytes, sync: bytes) -> bytes:
    """One compressed block with its counts and marker."""
    return b"".join((zigzag(rows), zigzag(len(packed)), packed, sync))


def deflate(codec: str, data: bytes | memoryview, level: int | None = None) -> bytes:
    """Compress the rows of one block with a codec of Avro's name; the level is for those that have some."""
    level = _LEVELS.get(codec, 0) if level is None else level
    match codec:
        case "null":
            return bytes(data)
        case "deflate":
            packer = zlib.compressobj(level, zlib.DEFLATED, -zlib.MAX_WBITS)
            return packer.compress(data) + packer.flush()
        case "zstandard":
            return zstandard.ZstdCompressor(level=level).compress(data)
        case "snappy":
            packed: bytes = pa.compress(data, codec="snappy", asbytes=True)
            return packed + zlib.crc32(data).to_bytes(4, "big")
        case _:
            raise AssertionError(f"no such codec: {codec}")


def inflate(codec: str, data: bytes | memoryview, limit: int) -> bytes | memoryview:
    """The rows of one block; what would be larger than the limit is refused before it fills the memory."""
    match codec:
        case "null":
            return data
        case "deflate":
            return _inflate_deflate(data, limit)
        case "zstandard":
            return _inflate_zstd(data, limit)
        case "snappy":
            return _inflate_snappy(data, limit)
        case _:
            raise ValueError(f"unknown codec {codec!r}; codecs are {', '.join(sorted(set(CODECS.values())))}")


def _too_large(limit: int) -> ValueError:
    return ValueError(f"it holds more than {limit} bytes")


def _inflate_deflate(data: bytes | memoryview, limit: int) -> bytes:
    inflater = isal_zlib.decompressobj(-zlib.MAX_WBITS)
    rows = inflater.decompress(data, limit + 1)
    if len(rows) > limit:
        raise _too_large(limit)
    if not inflater.eof:
        raise ValueError("the data is cut off")
    return rows


def _inflate_zstd(data: bytes | memoryview, limit: int) -> bytes:
    size = zstandard.frame_content_size(data)
    if size > limit:
        raise _too_large(limit)
    inflater = zstandard.ZstdDecompressor(max_window_size=1 << 27)
    if size >= 0:
        return inflater.decompress(data, max_output_size=max(size, 1))
    rows = inflater.stream_reader(data).read(limit + 1)
    if len(rows) > limit:
        raise _too_large(limit)
    return rows


def _inflate_snappy(data: bytes | memoryview, limit: int) -> bytes:
    if len(data) < 5:
        raise ValueError("the data is cut off")
    body, checksum = data[:-4], int.from_bytes(data[-4:], "big")
    size = shift = 0
    for byte in body[:5]:
        size |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            break
    if size > limit:
        raise _too_large(limit)
    rows: bytes = pa.decompress(body, size, codec="snappy", asbytes=True)
    if zlib.crc32(rows) != checksum:
        raise ValueError("its checksum is wrong")
    return rows
