"""Deletion vectors against a plain set of positions, golden bytes, PyIceberg, and bytes that mean harm."""

import pickle
import struct
from contextlib import suppress
from zlib import crc32

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st
from pyiceberg.table.deletion_vector import deletion_vectors_from_puffin_file
from pyiceberg.table.puffin import PuffinFile
from pyroaring import BitMap, FrozenBitMap

from icefloe.errors import CorruptFileError, InvalidValueError
from icefloe.formats.deletion_vector_codec import (
    BLOB_TYPE,
    StoredVector,
    decode_vector,
    encode_vector,
    read_vector,
    write_deletion_vectors,
)
from icefloe.formats.deletion_vectors import MAX_KEY, MAX_POSITION, DeletionVector
from icefloe.formats.puffin.files import BlobMetadata, read_footer
from icefloe.formats.roaring import read_bitmap, write_bitmap
from tests.golden import golden
from tests.puffin_files import bytes_reader

GOLDEN = {
    "empty-position-index.bin": [],
    "small-alternating-values-position-index.bin": [1, 3, 5, 7, 9],
    "small-and-large-values-position-index.bin": [100, 101, 2**31 + 99, 2**31 + 100],
}
HEX = {
    "0000000c d1d33964 0000000000000000 bf18480c": [],
    "0000002a d1d33964 0100000000000000 00000000 3a300000 01000000 0000 0400 10000000 0100 0300 0500 0700 0900 b3fb20be": [
        1,
        3,
        5,
        7,
        9,
    ],
    "00000044 d1d33964 0200000000000000 00000000 3a300000 02000000 0000 0100 0100 0000 18000000 1c000000 0000 0200 0000"
    " 01000000 3a300000 01000000 0000 0000 10000000 0700 579937de": [0, 2, 65536, 4294967303],
}


@st.composite
def position_sets(draw: st.DrawFn) -> set[int]:
    """Positions with runs, dense and sparse stretches, at the borders of containers and of 32-bit bitmaps."""
    found: set[int] = set()
    for _ in range(draw(st.integers(0, 4))):
        key = draw(st.sampled_from([0, 0, 0, 1, 3]))
        base = (key << 32) + draw(st.sampled_from([0, 65_530, 65_536, 200_000, 2**31, 2**32 - 70_000]))
        start = base + draw(st.integers(0, 20))
        step = draw(st.sampled_from([1, 1, 2, 3, 7]))
        count = draw(st.sampled_from([1, 2, 3, 4, 5, 100, 4096, 4097, 9000]))
        found |= {start + step * i for i in range(count) if start + step * i >> 32 == key}
    found |= set(draw(st.lists(st.integers(0, 3 << 32), max_size=5)))
    return found


def blob_of(vector: bytes) -> bytes:
    body = bytes.fromhex("d1d33964") + vector
    return struct.pack(">I", len(body)) + body + struct.pack(">I", crc32(body))


def blob_of_bitmaps(*bitmaps: tuple[int, bytes]) -> bytes:
    return blob_of(struct.pack("<Q", len(bitmaps)) + b"".join(struct.pack("<I", key) + data for key, data in bitmaps))


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_blobs_read_and_write_to_the_same_bytes(name: str) -> None:
    data = (golden("deletion-vectors") / name).read_bytes()
    vector = decode_vector(data, name, cardinality=len(GOLDEN[name]), row_count=2**32)
    assert vector.positions().tolist() == GOLDEN[name]
    assert encode_vector(vector) == data
    assert encode_vector(DeletionVector.from_positions(GOLDEN[name])) == data


@pytest.mark.parametrize("text", HEX)
def test_positions_have_these_bytes(text: str) -> None:
    data = bytes.fromhex(text)
    assert encode_vector(DeletionVector.from_positions(HEX[text])) == data
    assert list(decode_vector(data, "blob")) == HEX[text]


def test_every_kind_of_container_has_the_bytes_of_the_java_library() -> None:
    # Arrays of two values, runs of hundreds and of nearly a whole container, under two keys.
    data = bytes.fromhex(
        "00000056 d1d33964 0200000000000000"
        " 00000000 3b300200 06 0000 0100 0100 e603 0200 fdff 0500 0700 0100 0100 e603 0100 0100 fdff"
        " 01000000 3b300200 06 0000 0100 0100 e901 0200 fdff 0a00 1400 0100 0a00 e901 0100 0100 fdff"
        " c89be397"
    )
    low = [5, 7, *range(65_537, 66_536), *range(131_073, 196_607)]
    high = [2**32 + low for low in (10, 20, *range(65_546, 66_036), *range(131_073, 196_607))]
    vector = DeletionVector.from_positions(low + high)
    assert encode_vector(vector) == data
    assert decode_vector(data, "blob", cardinality=132_561, row_count=2**32 + 196_607) == vector


@given(position_sets())
def test_a_vector_is_a_set_of_positions(positions: set[int]) -> None:
    ordered = sorted(positions)
    vector = DeletionVector.from_positions(np.array(ordered[::-1] + ordered[:3], np.int64))
    assert vector.positions().tolist() == ordered
    assert list(vector) == ordered
    assert vector.cardinality == len(ordered)
    assert vector.highest == (ordered[-1] if ordered else None)
    assert bool(vector) == bool(ordered)
    for position in (*ordered[:20], 0, 5, 2**32, 2**33 + 1, 2**40):
        assert (position in vector) == (position in positions)
    assert pickle.loads(pickle.dumps(vector)) == vector
    assert hash(pickle.loads(pickle.dumps(vector))) == hash(vector)


@given(position_sets())
def test_every_form_of_input_gives_the_same_vector(positions: set[int]) -> None:
    ordered = np.array(sorted(positions), np.int64)
    vector = DeletionVector.from_positions(ordered)
    half = len(ordered) // 2
    forms = [
        ordered.astype(np.uint64),
        pa.array(ordered, pa.int64()),
        pa.chunked_array([pa.array(ordered[half:], pa.int64()), pa.array(ordered[:half], pa.int64())], pa.int64()),
        positions,
        (int(position) for position in ordered),
    ]
    for form in forms:
        assert DeletionVector.from_positions(form) == vector


@given(position_sets())
def test_blobs_are_read_back_and_have_one_form(positions: set[int]) -> None:
    vector = DeletionVector.from_positions(np.array(sorted(positions), np.int64))
    data = encode_vector(vector)
    assert decode_vector(data, "blob", cardinality=len(positions)) == vector
    one_by_one = {}
    for key, _ in vector.bitmaps:
        bitmap = BitMap()
        for position in sorted(positions):
            if position >> 32 == key:
                bitmap.add_range(position & 0xFFFFFFFF, (position & 0xFFFFFFFF) + 1)
        one_by_one[key] = FrozenBitMap(bitmap)
    assert encode_vector(DeletionVector(tuple(one_by_one.items()))) == data


@given(position_sets(), position_sets())
def test_unions_are_those_of_sets(left: set[int], right: set[int]) -> None:
    a, b = DeletionVector.from_positions(left), DeletionVector.from_positions(right)
    both = a | b
    assert set(both.positions().tolist()) == left | right
    assert encode_vector(both) == encode_vector(DeletionVector.from_positions(left | right))


@given(position_sets(), st.integers(0, 2**32), st.integers(0, 300_000))
def test_a_mask_says_which_rows_of_a_range_are_gone(positions: set[int], start: int, length: int) -> None:
    vector = DeletionVector.from_positions(positions)
    for first in (start, min(positions, default=0)):
        mask = vector.mask(first, first + length)
        expected = [position - first for position in sorted(positions) if first <= position < first + length]
        assert len(mask) == length
        assert np.flatnonzero(mask).tolist() == expected


def test_a_mask_crosses_bitmaps_and_chunks() -> None:
    positions = np.array([2**32 - 2, 2**32 - 1, 2**32, 2**32 + 1, 2**32 + (5 << 22)])
    mask = DeletionVector.from_positions(positions).mask(2**32 - 3, 2**32 + (5 << 22) + 1)
    assert (np.flatnonzero(mask) + 2**32 - 3).tolist() == positions.tolist()


def test_rows_that_a_file_does_not_have_cannot_be_deleted_in_it() -> None:
    vector = DeletionVector.from_positions([9])
    vector.check_rows(10)
    with pytest.raises(InvalidValueError, match="position 9"):
        vector.check_rows(9)
    with pytest.raises(InvalidValueError, match="range"):
        vector.mask(3, 2)
    with pytest.raises(InvalidValueError, match="range"):
        vector.mask(-1, 2)


@pytest.mark.parametrize(
    "positions",
    [
        [-1],
        [MAX_POSITION + 1],
        [2**70],
        [1.5],
        [True],
        ["1"],
        [None],
        7,
        None,
        np.array([-5]),
        np.array([2**64 - 1], np.uint64),
        np.array([1.0]),
        np.array([[1]]),
        pa.array([1, None]),
        pa.array([1.5]),
        pa.array(["1"]),
    ],
)
def test_what_is_not_a_position_is_refused(positions: object) -> None:
    with pytest.raises(InvalidValueError):
        DeletionVector.from_positions(positions)


def test_the_highest_position_is_held_but_too_long_to_write() -> None:
    vector = DeletionVector.from_positions([MAX_POSITION])
    assert vector.positions().tolist() == [MAX_POSITION]
    with pytest.raises(InvalidValueError, match="too high"):
        encode_vector(vector)
    assert decode_vector(blob_of_bitmaps((MAX_KEY, write_bitmap(vector.bitmaps[0][1]))), "blob") == vector


@given(st.dictionaries(st.text(min_size=1, max_size=9), position_sets().filter(bool), max_size=4))
def test_files_of_vectors_are_read_by_us_and_by_pyiceberg(sets: dict[str, set[int]]) -> None:
    vectors = {path: DeletionVector.from_positions(positions) for path, positions in sets.items()}
    data, stored = write_deletion_vectors(vectors)
    for place in stored:
        assert place.cardinality == len(sets[place.referenced_data_file])
        found = read_vector(
            bytes_reader(data), place.offset, place.length, "file", cardinality=place.cardinality, row_count=2**40
        )
        assert found == vectors[place.referenced_data_file]
    theirs = deletion_vectors_from_puffin_file(PuffinFile(data))
    assert sets == {
        # Its `to_vector` fails on an empty bitmap, such as that of key 0 when all positions are high.
        vector.referenced_data_file: {key << 32 | low for key, bitmap in enumerate(vector._bitmaps) for low in bitmap}
        for vector in theirs
    }


def test_vectors_are_described_as_the_java_library_does() -> None:
    vectors = {"s3://bucket/a.parquet": DeletionVector.from_positions([1, 5])}
    data, stored = write_deletion_vectors(vectors)
    footer = read_footer(bytes_reader(data), len(data), "file")
    assert footer.properties == {"created-by": "icefloe"}
    properties = {"referenced-data-file": "s3://bucket/a.parquet", "cardinality": "2"}
    length = len(encode_vector(vectors["s3://bucket/a.parquet"]))
    assert footer.blobs == (BlobMetadata(BLOB_TYPE, (2147483645,), -1, -1, 4, length, None, properties),)
    assert stored == [StoredVector("s3://bucket/a.parquet", 4, length, 2)]


def test_files_of_vectors_name_their_data_files_and_delete_something() -> None:
    vector = DeletionVector.from_positions([1])
    with pytest.raises(InvalidValueError, match="no data file"):
        write_deletion_vectors({"": vector})
    with pytest.raises(InvalidValueError, match="deletes nothing"):
        write_deletion_vectors({"a": DeletionVector()})


def test_blobs_are_checked_against_the_manifest() -> None:
    data = encode_vector(DeletionVector.from_positions([1, 9]))
    decode_vector(data, "blob", cardinality=2, row_count=10)
    with pytest.raises(CorruptFileError, match="2 positions, not 3"):
        decode_vector(data, "blob", cardinality=3)
    with pytest.raises(CorruptFileError, match="position 9"):
        decode_vector(data, "blob", row_count=9)
    for offset, length in ((-1, 20), (0, -1), (0, 2**31)):
        with pytest.raises(CorruptFileError, match="cannot be"):
            read_vector(bytes_reader(data), offset, length, "blob")
    with pytest.raises(CorruptFileError, match="ends inside"):
        read_vector(bytes_reader(data), 0, len(data) + 1, "blob")


def test_bitmaps_beyond_the_rows_of_a_file_are_refused_at_the_first() -> None:
    seven, broken = write_bitmap(FrozenBitMap([7])), b"never looked at"
    blob = blob_of_bitmaps((0, seven), (3, seven), (4, broken))
    with pytest.raises(CorruptFileError, match=f"position {(3 << 32) + 7} of a data file with 100 rows"):
        decode_vector(blob, "blob", row_count=100)


def test_blobs_with_wrong_frames_are_refused() -> None:
    data = encode_vector(DeletionVector.from_positions([1, 9]))
    broken = {
        "too short": data[:19],
        "states a length": data + b"\0",
        "does not start with": data[:4] + b"\0" + data[5:],
        "checksum": data[:-1] + bytes([data[-1] ^ 1]),
        "do not fit": blob_of(struct.pack("<Q", 2**63)),
        "follow the last": blob_of(struct.pack("<Q", 0) + b"\0"),
    }
    for problem, changed in broken.items():
        with pytest.raises(CorruptFileError, match=problem):
            decode_vector(changed, "blob")


def test_keys_may_leave_gaps_but_must_ascend() -> None:
    seven, empty = write_bitmap(FrozenBitMap([7])), write_bitmap(FrozenBitMap())
    sparse = decode_vector(blob_of_bitmaps((2, seven), (5, empty), (9, seven)), "blob")
    assert sparse.positions().tolist() == [(2 << 32) + 7, (9 << 32) + 7]
    assert decode_vector(encode_vector(sparse), "blob") == sparse
    for keys in ((1, 1), (2, 1), (0, 2**31 - 1), (0, 2**32 - 1)):
        with pytest.raises(CorruptFileError, match="keys ascend"):
            decode_vector(blob_of_bitmaps(*((key, seven) for key in keys)), "blob")


def run_bitmap(*containers: tuple[int, int, list[tuple[int, int]]]) -> bytes:
    """A bitmap of run containers: (key, stated cardinality, (start, length) of each run)."""
    count = len(containers)
    head = struct.pack("<HH", 12347, count - 1) + b"\xff" * ((count + 7) // 8)
    head += b"".join(struct.pack("<HH", key, cardinality - 1) for key, cardinality, _ in containers)
    bodies = [
        struct.pack("<H", len(runs)) + b"".join(struct.pack("<HH", start, length - 1) for start, length in runs)
        for _, _, runs in containers
    ]
    if count >= 4:
        start = len(head) + 4 * count
        for body in bodies:
            head += struct.pack("<I", start)
            start += len(body)
    return head + b"".join(bodies)


def test_touching_runs_are_joined() -> None:
    touching = run_bitmap((0, 9, [(0, 4), (4, 5)]), (1, 2, [(3, 1), (4, 1)]), (2, 65536, [(0, 1), (1, 65535)]))
    bitmap, end = read_bitmap(touching, 0, "bitmap")
    assert end == len(touching)
    assert bitmap == FrozenBitMap([*range(9), 65539, 65540, *range(2 * 65536, 3 * 65536)])
    assert write_bitmap(bitmap) == write_bitmap(FrozenBitMap([*range(9), 65539, 65540, *range(2 * 65536, 3 * 65536)]))
    singles = run_bitmap((7, 5000, [(2 * i, 1) for i in range(4998)] + [(60_000, 1), (60_001, 1)]))
    bitmap, _ = read_bitmap(singles, 0, "bitmap")
    assert len(bitmap) == 5000
    assert bitmap.max() == 7 * 65536 + 60_001


@pytest.mark.parametrize(
    "bitmap",
    [
        run_bitmap((0, 5, [(0, 4)])),
        run_bitmap((0, 1, [])),
        run_bitmap((0, 3, [(65535, 3)])),
        run_bitmap((0, 4, [(5, 2), (1, 2)])),
        run_bitmap((0, 4, [(1, 3), (3, 1)])),
        run_bitmap((1, 1, [(1, 1)]), (0, 1, [(1, 1)])),
        run_bitmap((0, 1, [(1, 1)]))[:-1],
        run_bitmap(*((i, 1, [(1, 1)]) for i in range(5)))[:-3],
        struct.pack("<I", 12345),
        struct.pack("<II", 12346, 2**32 - 1),
        struct.pack("<II", 12346, 65537) + bytes(100),
        struct.pack("<IIHHI", 12346, 1, 0, 65535, 16) + b"\xff" * 8191,
        struct.pack("<IIHHI", 12346, 1, 0, 65534, 16) + b"\xff" * 8192,
        struct.pack("<IIHHIHH", 12346, 1, 0, 1, 17, 1, 2),
        struct.pack("<IIHHIHH", 12346, 1, 0, 1, 16, 2, 2),
        struct.pack("<IIHHIHH", 12346, 1, 0, 1, 16, 3, 2),
        struct.pack("<IIHHHHIIHH", 12346, 2, 1, 0, 1, 0, 24, 26, 1, 1),
        b"",
    ],
)
def test_impossible_bitmaps_are_refused(bitmap: bytes) -> None:
    with pytest.raises(CorruptFileError):
        decode_vector(blob_of_bitmaps((0, bitmap)), "blob")


def test_a_small_blob_with_billions_of_positions_costs_little() -> None:
    whole = run_bitmap(*((key, 65536, [(0, 65536)]) for key in range(65536)))
    blob = blob_of_bitmaps((0, whole), (1, whole))
    vector = decode_vector(blob, "blob")
    assert vector.cardinality == 2**33
    assert vector.mask(2**32 - 5, 2**32 + 5).all()
    assert encode_vector(vector) == blob
    with pytest.raises(CorruptFileError, match="positions, not"):
        decode_vector(blob, "blob", cardinality=12)


@given(st.binary(max_size=80))
def test_any_bytes_are_a_vector_or_refused(data: bytes) -> None:
    for candidate in (data, blob_of(data), blob_of_bitmaps((0, data)), blob_of_bitmaps((0, b"\x3a\x30\0\0" + data))):
        with suppress(CorruptFileError):
            found = decode_vector(candidate, "blob")
            assert np.all(np.diff(found.positions()) > 0)


@given(position_sets(), st.data())
def test_changed_bytes_are_a_vector_or_refused(positions: set[int], data: st.DataObject) -> None:
    vector = bytearray(encode_vector(DeletionVector.from_positions(positions))[8:-4])
    for _ in range(data.draw(st.integers(1, 4))):
        place = min(data.draw(st.integers(0, 60)), len(vector) - 1)
        vector[place] = data.draw(st.integers(0, 255))
    cut = data.draw(st.sampled_from([0, 0, 0, 1, 7]))
    changed = blob_of(bytes(vector[: len(vector) - cut]))
    with suppress(CorruptFileError):
        found = decode_vector(changed, "blob")
        assert found.cardinality == len(found.positions())
        assert np.all(np.diff(found.positions()) > 0)


@given(position_sets(), position_sets(), st.integers(0, 1 << 31))
def test_positions_in_both_and_those_of_a_file(one: set[int], other: set[int], rows: int) -> None:
    vector = DeletionVector.from_positions(one)
    assert set(vector.intersection(DeletionVector.from_positions(other))) == one & other
    portable = vector.portable(rows)
    kept = {position for position in one if position < rows}
    assert bool(portable) == bool(kept)
    assert not kept or set(DeletionVector.from_portable(portable)) == kept
    upper = DeletionVector.from_portable(bytes(BitMap([7]).serialize()), 3)
    assert set(upper) == {(3 << 32) + 7}


def test_positions_of_files_that_32_bits_do_not_count() -> None:
    with pytest.raises(InvalidValueError, match="more than 32 bits"):
        DeletionVector.from_positions([1]).portable(1 << 32)
