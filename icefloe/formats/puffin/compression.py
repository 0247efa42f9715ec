"""How Puffin blobs and footers are compressed: one zstd or LZ4 frame that states its content size, nothing else.

LZ4 is read through Arrow, and not written: Arrow's frames lack the content size that the Puffin spec asks for.
"""

import pyarrow as pa
import zstandard

from icefloe.errors import CorruptFileError, InvalidValueError

ZSTD = "zstd"
LZ4 = "lz4"
CODECS = (LZ4, ZSTD)

_LONGEST_EMPTY_ZSTD = 32
_LZ4_MAGIC = b"\x04\x22\x4d\x18"
_LZ4_CONTENT_SIZE = 0b0000_1000
_LZ4_DICTIONARY = 0b0000_0001
_LZ4_HEADER_SIZE = 7
_LZ4_END = bytes(4)


def compress(data: bytes, codec: str | None) -> bytes:
    """The data as one frame of the codec, with its content size; as it is without a codec."""
    match codec:
        case None:
            return data
        case "zstd":
            return zstandard.ZstdCompressor().compress(data)
        case _:
            raise InvalidValueError(f"Puffin compression codec {codec!r} is not written; zstd is, or none")


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
