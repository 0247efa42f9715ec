"""Deletion vectors as Puffin blobs: their bytes, what is said of them, and files of many (spec: Puffin, deletion-vector-v1)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from zlib import crc32

import numpy as np
from pyroaring import FrozenBitMap

from icefloe import errors, metadata as md
from icefloe.formats.deletion_vectors import MAX_KEY, DeletionVector
from icefloe.formats.puffin import files as puffin
from icefloe.formats.roaring import COOKIE_WITHOUT_RUNS, EMPTY_BITMAP_SIZE, read_bitmap, write_bitmap
from icefloe.schema import reserved

BLOB_TYPE = "deletion-vector-v1"
POSITION_FIELD_ID = reserved.POS.field_id
"""The id of the metadata column `_pos`, which vectors are said to be about."""

_MAGIC = bytes.fromhex("d1d33964")
_KEY_SIZE = 4
_COUNT_SIZE = 8
_SMALLEST_BLOB = 4 + len(_MAGIC) + _COUNT_SIZE + 4
_MAX_BLOB = 2**31 - 1
_INHERITED = -1
REFERENCED_DATA_FILE = "referenced-data-file"
"""The property of a blob that names the data file of its vector."""
_CARDINALITY = "cardinality"
_CREATED_BY = "created-by"


@dataclass(frozen=True, slots=True)
class StoredVector:
    """Where a vector is in its Puffin file, of which data file it is, and how many rows it deletes."""

    referenced_data_file: str
    offset: int
    length: int
    cardinality: int


def encode_vector(vector: DeletionVector) -> bytes:
    """The vector as a blob, byte for byte as the Java library writes it: a bitmap for each key up to the highest."""
    count = vector.bitmaps[-1][0] + 1 if vector.bitmaps else 0
    if count * (_KEY_SIZE + EMPTY_BITMAP_SIZE) > _MAX_BLOB:
        raise errors.InvalidValueError(
            f"position {vector.highest} is too high: its deletion vector would be longer than 2 GiB"
        )
    parts = [_MAGIC, count.to_bytes(_COUNT_SIZE, "little")]
    next_key = 0
    for key, bitmap in vector.bitmaps:
        parts += (_empty_bitmaps(next_key, key), key.to_bytes(_KEY_SIZE, "little"), write_bitmap(bitmap))
        next_key = key + 1
    body = b"".join(parts)
    if len(body) + 8 > _MAX_BLOB:
        raise errors.InvalidValueError(f"a deletion vector of {len(body)} bytes is too long; 2 GiB is the most")
    return len(body).to_bytes(4, "big") + body + crc32(body).to_bytes(4, "big")


def _empty_bitmaps(first_key: int, end_key: int) -> bytes:
    entries = np.zeros((end_key - first_key, 3), "<u4")
    entries[:, 0] = np.arange(first_key, end_key)
    entries[:, 1] = COOKIE_WITHOUT_RUNS
    return entries.tobytes()


def decode_vector(
    blob: bytes, location: str, *, cardinality: int | None = None, row_count: int | None = None
) -> DeletionVector:
    """The vector of a blob, checked against what the manifest says.

    `cardinality` is the record count of the vector's own entry, `row_count` that of the data file.
    """
    if len(blob) < _SMALLEST_BLOB:
        raise errors.CorruptFileError(location, f"a deletion vector of {len(blob)} bytes is too short")
    length = int.from_bytes(blob[:4], "big")
    if length != len(blob) - 8:
        raise errors.CorruptFileError(
            location, f"a deletion vector states a length of {length}, but has {len(blob) - 8}"
        )
    body = blob[4:-4]
    if body[:4] != _MAGIC:
        raise errors.CorruptFileError(location, f"a deletion vector does not start with {_MAGIC.hex()}")
    if crc32(body) != int.from_bytes(blob[-4:], "big"):
        raise errors.CorruptFileError(
            location, f"the checksum of a deletion vector is wrong; computed {crc32(body):#010x}"
        )
    vector = DeletionVector(_read_bitmaps(body, location, row_count))
    if cardinality is not None and vector.cardinality != cardinality:
        raise errors.CorruptFileError(
            location, f"a deletion vector has {vector.cardinality} positions, not {cardinality}"
        )
    if row_count is not None and vector.highest is not None and vector.highest >= row_count:
        raise errors.CorruptFileError(
            location, f"a deletion vector deletes position {vector.highest} of a data file with {row_count} rows"
        )
    return vector


def _read_bitmaps(body: bytes, location: str, row_count: int | None) -> tuple[tuple[int, FrozenBitMap], ...]:
    count = int.from_bytes(body[4:12], "little")
    position = len(_MAGIC) + _COUNT_SIZE
    if count > (len(body) - position) // (_KEY_SIZE + EMPTY_BITMAP_SIZE):
        raise errors.CorruptFileError(
            location, f"a deletion vector states {count} bitmaps, which do not fit in {len(body)} bytes"
        )
    bitmaps: list[tuple[int, FrozenBitMap]] = []
    last = -1
    for _ in range(count):
        key = int.from_bytes(body[position : position + _KEY_SIZE], "little")
        if not last < key <= MAX_KEY:
            raise errors.CorruptFileError(
                location, f"a deletion vector has the key {key} after {last}; keys ascend up to {MAX_KEY}"
            )
        bitmap, position = read_bitmap(body, position + _KEY_SIZE, location)
        if bitmap:
            # Known at once, so that a blob of millions of bitmaps for a small file is not read to its end.
            if row_count is not None and key << 32 >= row_count:
                raise errors.CorruptFileError(
                    location,
                    f"a deletion vector deletes position {key << 32 | bitmap.min()} of a data file with {row_count} rows",
                )
            bitmaps.append((key, bitmap))
        last = key
    if position != len(body):
        raise errors.CorruptFileError(
            location, f"{len(body) - position} bytes follow the last bitmap of a deletion vector"
        )
    return tuple(bitmaps)


def read_vector(
    read_range: puffin.ReadRange,
    offset: int,
    length: int,
    location: str,
    *,
    cardinality: int | None = None,
    row_count: int | None = None,
) -> DeletionVector:
    """The vector at that place of a Puffin file, as the manifest names it; the footer is not read."""
    if offset < 0 or not 0 <= length <= _MAX_BLOB:
        raise errors.CorruptFileError(location, f"a deletion vector cannot be {length} bytes long at offset {offset}")
    blob = puffin.BlobMetadata(BLOB_TYPE, (POSITION_FIELD_ID,), _INHERITED, _INHERITED, offset, length)
    data = puffin.read_blob(read_range, blob, location, limit=_MAX_BLOB)
    return decode_vector(data, location, cardinality=cardinality, row_count=row_count)


def write_deletion_vectors(
    vectors: Mapping[str, DeletionVector], table_location: str | None = None
) -> tuple[bytes, list[StoredVector]]:
    """A Puffin file of the vectors of these data files, and where each one is in it.

    Where the version has relative paths, the file names data files relative to the table location (spec: Paths in Metadata).
    """
    encoded = ((path, vector.cardinality, _encoded(path, vector)) for path, vector in vectors.items())
    return _write(encoded, table_location)


def copy_deletion_vectors(
    blobs: Iterable[tuple[str, bytes, int, str]], table_location: str | None = None
) -> tuple[bytes, list[StoredVector]]:
    """A Puffin file of vectors of other files, byte for byte, and where each one is in it.

    Each is the path of its data file, its bytes, its cardinality, and the file that it is from. A blob that is no sound vector of
    that cardinality is an error.
    """

    def checked(blob: bytes, cardinality: int, location: str) -> bytes:
        decode_vector(blob, location, cardinality=cardinality)
        return blob

    return _write(
        ((path, count, checked(blob, count, location)) for path, blob, count, location in blobs), table_location
    )


def _encoded(path: str, vector: DeletionVector) -> bytes:
    if not vector:
        raise errors.InvalidValueError(f"the deletion vector of {path!r} deletes nothing; leave it out")
    return encode_vector(vector)


def _write(vectors: Iterable[tuple[str, int, bytes]], table_location: str | None) -> tuple[bytes, list[StoredVector]]:
    data = bytearray()
    writer = puffin.PuffinWriter(data.extend, {_CREATED_BY: "icefloe"})
    stored: list[StoredVector] = []
    for path, cardinality, encoded in vectors:
        if not path:
            raise errors.InvalidValueError("a deletion vector names no data file")
        named = path if table_location is None else md.relativize(table_location, path)
        properties = {REFERENCED_DATA_FILE: named, _CARDINALITY: str(cardinality)}
        blob = writer.add(
            puffin.Blob(BLOB_TYPE, (POSITION_FIELD_ID,), _INHERITED, _INHERITED, encoded, None, properties)
        )
        stored.append(StoredVector(path, blob.offset, blob.length, cardinality))
    writer.finish()
    return bytes(data), stored
