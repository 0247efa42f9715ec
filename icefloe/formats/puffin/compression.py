"""How Puffin blobs and footers are compressed: one zstd or LZ4 frame that states its content size, nothing else.

LZ4 goes through Arrow, which every reader has already; Arrow's frames lack the content size that the Puffin spec asks
for, so the frame header is written here.
"""

import struct

import pyarrow as pa
import zstandard

from icefloe.errors import CorruptFileError, InvalidValueError

ZSTD = "zstd"
LZ4 = "lz4"
CODECS = (LZ4, ZSTD)

_LONGEST_EMPTY_ZSTD = 32
_LZ4_MAGIC = b"\x04\x22\x4d\x18"
_LZ4_VERSION = 0b0100_0000
_LZ4_CONTENT_SIZE = 0b0000_1000
_LZ4_DICTIONARY = 0b0000_0001
_LZ4_HEADER_SIZE = 7
_LZ4_END = bytes(4)
_MASK = 0xFFFF_FFFF


def compress(data: bytes, codec: str | None) -> bytes:
    """The data as one frame of the codec, with its content size; as it is without a codec."""
    match codec:
        case None:
            return data
        case "zstd":
            return zstandard.ZstdCompressor().compress(data)
        case "lz4":
            return _compress_lz4(data)
        case _:
            raise InvalidValueError(
                f"unknown Puffin compression codec {codec!r}; codecs are {', '.join(CODECS)}, or none"
            )


def decompress(data: bytes, codec: str | None, location: str, limit: int) -> bytes:
    """The content of one frame of at most `limit` bytes; without a codec the data itself."""
    match codec:
        case None:
            return data
        case "zstd":
            return _decompress_zstd(data, location, limit)
        case "lz4":
            return _decompress_lz4(data, location, limit)
        case _:
            raise CorruptFileError(
                location, f"unknown Puffin compression codec {codec!r}; codecs are {', '.join(CODECS)}, or none"
            )


def _decompress_zstd(data: bytes, location: str, limit: int) -> bytes:
    try:
        size = zstandard.frame_content_size(data)
    except zstandard.ZstdError as error:
        raise CorruptFileError(location, f"not a zstd frame: {error}") from error
    if size < 0:
        raise CorruptFileError(location, "a zstd frame does not state its content size, which Puffin requires")
    _check_size(size, location, limit)
    try:
        if size == 0:
            return _decompress_empty_zstd(data, location)
        content = zstandard.ZstdDecompressor().decompress(data, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise CorruptFileError(location, f"a zstd frame does not decompress: {error}") from error
    return _checked(content, size, location)


def _decompress_empty_zstd(data: bytes, location: str) -> bytes:
    # The library does not look at the rest of a frame that states no content, so it is read as a stream.
    stream = zstandard.ZstdDecompressor().decompressobj()
    content = stream.decompress(data) if len(data) <= _LONGEST_EMPTY_ZSTD else data
    if content or not stream.eof or stream.unused_data:
        raise CorruptFileError(location, "a zstd frame states no content, but is more or less than an empty frame")
    return content


def _decompress_lz4(data: bytes, location: str, limit: int) -> bytes:
    size = _lz4_content_size(data, location)
    _check_size(size, location, limit)
    try:
        content: bytes = pa.Codec("lz4").decompress(data, size, asbytes=True)
    except OSError as error:
        raise CorruptFileError(location, f"an LZ4 frame does not decompress: {error}") from error
    return _checked(content, size, location)


def _check_size(size: int, location: str, limit: int) -> None:
    if size > limit:
        raise CorruptFileError(location, f"a compressed part claims {size} bytes of content; at most {limit} are read")


def _checked(content: bytes, size: int, location: str) -> bytes:
    if len(content) != size:
        raise CorruptFileError(location, f"a compressed frame holds {len(content)} bytes, but states {size}")
    return content


def _lz4_content_size(data: bytes, location: str) -> int:
    if len(data) < _LZ4_HEADER_SIZE + len(_LZ4_END) or data[:4] != _LZ4_MAGIC:
        raise CorruptFileError(location, "not an LZ4 frame: it is too short or its magic bytes are missing")
    if data[4] & _LZ4_DICTIONARY:
        raise CorruptFileError(location, "an LZ4 frame needs a dictionary, which Puffin does not have")
    if data[4] & _LZ4_CONTENT_SIZE:
        return int.from_bytes(data[6:14], "little")
    # liblz4 takes a content size of 0 for an unknown one, so frames of nothing never state it.
    if data[_LZ4_HEADER_SIZE:][: len(_LZ4_END)] == _LZ4_END:
        return 0
    raise CorruptFileError(location, "an LZ4 frame does not state its content size, which Puffin requires")


def _compress_lz4(data: bytes) -> bytes:
    frame: bytes = pa.Codec("lz4").compress(data, asbytes=True)
    if frame[:4] != _LZ4_MAGIC or frame[4] & ~0b0111_0100 or not frame[4] & _LZ4_VERSION:
        raise AssertionError(
            f"Arrow wrote an LZ4 frame header that is not known here: {frame[:_LZ4_HEADER_SIZE].hex()}"
        )
    descriptor = bytes((frame[4] | _LZ4_CONTENT_SIZE, frame[5])) + struct.pack("<Q", len(data))
    checksum = _xxh32_short(descriptor) >> 8 & 0xFF
    return _LZ4_MAGIC + descriptor + bytes((checksum,)) + frame[_LZ4_HEADER_SIZE:]


def _xxh32_short(data: bytes) -> int:
    """xxHash-32 with seed 0 of fewer than 16 bytes: what the LZ4 frame format takes its header checksum from."""
    value = 374761393 + len(data)
    whole = len(data) // 4 * 4
    for (lane,) in struct.iter_unpack("<I", data[:whole]):
        value = _rotate(value + lane * 3266489917 & _MASK, 17) * 668265263 & _MASK
    for byte in data[whole:]:
        value = _rotate(value + byte * 374761393 & _MASK, 11) * 2654435761 & _MASK
    value = (value ^ value >> 15) * 2246822519 & _MASK
    value = (value ^ value >> 13) * 3266489917 & _MASK
    return value ^ value >> 16


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> 32 - bits) & _MASK
