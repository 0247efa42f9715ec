"""Which bytes a Puffin file is made of: magic, blobs, footer (spec: Puffin).

Reading takes a callable that reads ranges, so that only the footer and the wanted blobs are fetched; nothing in the file
is believed before it is checked.
"""

from collections.abc import Callable, Iterable, Mapping

from icefloe.errors import CorruptFileError, InvalidValueError
from icefloe.formats.puffin.codec import footer_from_json, footer_to_json
from icefloe.formats.puffin.compression import LZ4, compress, decompress
from icefloe.formats.puffin.values import Blob, BlobMetadata, PuffinFooter, ReadRange

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
    blobs, properties = footer_from_json(payload, location)
    _check_layout(blobs, file_size - size, location)
    return PuffinFooter(blobs, properties, size)


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


class PuffinWriter:
    """Writes a Puffin file piece by piece into `sink`, so that no more than one blob is held in memory."""

    def __init__(
        self,
        sink: Callable[[bytes], object],
        properties: Mapping[str, str] | None = None,
        *,
        compress_footer: bool = False,
    ) -> None:
        self._sink = sink
        self._properties = dict(properties or {})
        self._compress_footer = compress_footer
        self._blobs: list[BlobMetadata] = []
        self._position = 0
        self._finished = False
        self._put(MAGIC)

    @property
    def position(self) -> int:
        """How many bytes are written so far; the file's size once it is finished."""
        return self._position

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
            blob.properties,
        )
        self._put(stored)
        self._blobs.append(metadata)
        return metadata

    def finish(self) -> PuffinFooter:
        """Write the footer, after which the file is whole."""
        if self._finished:
            raise InvalidValueError("the Puffin file is finished already")
        self._finished = True
        payload = compress(footer_to_json(tuple(self._blobs), self._properties), LZ4 if self._compress_footer else None)
        if len(payload) > _MAX_PAYLOAD:
            raise InvalidValueError(f"a Puffin footer of {len(payload)} bytes is too long; split the file")
        flags = _COMPRESSED_FLAG if self._compress_footer else 0
        self._put(MAGIC + payload + len(payload).to_bytes(4, "little") + flags.to_bytes(4, "little") + MAGIC)
        return PuffinFooter(tuple(self._blobs), self._properties, len(payload) + _FOOTER_OVERHEAD)

    def _put(self, data: bytes) -> None:
        self._sink(data)
        self._position += len(data)


def encode_puffin(
    blobs: Iterable[Blob], properties: Mapping[str, str] | None = None, *, compress_footer: bool = False
) -> tuple[bytes, PuffinFooter]:
    """A whole Puffin file in memory, and its footer."""
    data = bytearray()
    writer = PuffinWriter(data.extend, properties, compress_footer=compress_footer)
    for blob in blobs:
        writer.add(blob)
    footer = writer.finish()
    return bytes(data), footer


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
