"""Vectors of many files by few requests: they are those that are read one by one, and so are the errors."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from icefloe.data import vector_reads
from icefloe.data.vector_reads import VectorPlace, read_one_vector, read_vectors
from icefloe.errors import CorruptFileError, IcefloeError
from icefloe.formats.deletion_vector_codec import encode_vector
from icefloe.formats.deletion_vectors import DeletionVector
from icefloe.manifests import DataFile, FileContent
from icefloe.storage import Storage

ROWS = 1_000


class NotingStorage(Storage):
    """Notes the ranges that are read."""

    def __init__(self) -> None:
        super().__init__()
        self.ranges: list[tuple[str, int, int]] = []

    def read_range(self, location: str, offset: int, length: int) -> bytes:
        self.ranges.append((location, offset, length))
        return super().read_range(location, offset, length)


def place(location: str, offset: int, length: int, cardinality: int) -> VectorPlace:
    entry = DataFile(location, "puffin", cardinality, 0, FileContent.POSITION_DELETES)
    return VectorPlace(location, offset, length, cardinality, ROWS, entry)


def written(folder: Path, name: str, vectors: list[DeletionVector], gaps: list[int]) -> Iterator[VectorPlace]:
    """A file of these vectors, with so many other bytes before each, and where they are in it."""
    data = bytearray()
    for vector, gap in zip(vectors, gaps, strict=True):
        data += b"?" * gap
        blob = encode_vector(vector)
        yield place(str(folder / name), len(data), len(blob), vector.cardinality)
        data += blob
    (folder / name).write_bytes(data)


VECTORS = st.sets(st.integers(0, ROWS - 1), min_size=1, max_size=30).map(DeletionVector.from_positions)
FILES = st.lists(st.lists(st.tuples(VECTORS, st.integers(0, 60)), min_size=1, max_size=6), min_size=1, max_size=3)


@given(
    files=FILES, most=st.sampled_from([1, 100, 8 << 20]), gap=st.sampled_from([0, 30]), workers=st.sampled_from([1, 3])
)
def test_many_vectors_are_those_that_are_read_one_by_one(
    tmp_path_factory: pytest.TempPathFactory,
    files: list[list[tuple[DeletionVector, int]]],
    most: int,
    gap: int,
    workers: int,
) -> None:
    folder = tmp_path_factory.mktemp("vectors")
    expected: dict[VectorPlace, DeletionVector] = {}
    for number, content in enumerate(files):
        vectors, gaps = [vector for vector, _ in content], [before for _, before in content]
        expected |= dict(zip(written(folder, f"{number}.puffin", vectors, gaps), vectors, strict=True))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vector_reads, "_MOST_BYTES", most)
        patch.setattr(vector_reads, "_WIDEST_GAP", gap)
        assert dict(read_vectors(reversed(expected), Storage(), workers)) == expected
    assert {each: read_one_vector(each, Storage()) for each in expected} == expected


def test_neighbours_are_read_by_one_request(tmp_path: Path) -> None:
    vectors = [DeletionVector.from_positions([number]) for number in range(500)]
    gaps = [0] * 499 + [vector_reads._WIDEST_GAP + 1]
    places = list(written(tmp_path, "a.puffin", vectors, gaps))
    places += written(tmp_path, "b.puffin", vectors[:2], [4, 0])
    storage = NotingStorage()
    assert len(list(read_vectors(places, storage, 4))) == 502
    near, far = places[0], places[499]
    assert sorted(storage.ranges) == [
        (near.location, 0, places[498].end),
        (far.location, far.offset, far.length),
        (places[500].location, 4, 2 * places[500].length),
    ]


@pytest.mark.parametrize(
    ("offset", "length", "cardinality"),
    [
        (-4, 42, 1),
        (0, -1, 1),
        (0, 41, 1),
        (0, 43, 1),
        (10, 42, 1),
        (0, 42, 2),
        (0, 2**31 - 1, 1),
        (2**62, 42, 1),
        (0, 0, 1),
    ],
)
def test_a_place_that_is_wrong_is_an_error_among_others_too(
    tmp_path: Path, offset: int, length: int, cardinality: int
) -> None:
    good = list(written(tmp_path, "a.puffin", [DeletionVector.from_positions([7])] * 3, [0, 0, 0]))
    assert good[0].length == 42
    wrong = place(good[0].location, offset, length, cardinality)
    with pytest.raises(IcefloeError) as alone:
        read_one_vector(wrong, Storage())
    with pytest.raises(IcefloeError) as among:
        list(read_vectors([*good, wrong], Storage(), 2))
    assert wrong.location in str(alone.value)
    assert wrong.location in str(among.value)


def test_a_vector_beyond_its_data_file_is_an_error(tmp_path: Path) -> None:
    places = list(
        written(
            tmp_path, "a.puffin", [DeletionVector.from_positions([ROWS]), DeletionVector.from_positions([1])], [0, 0]
        )
    )
    with pytest.raises(CorruptFileError, match=f"deletes position {ROWS} of a data file with {ROWS} rows"):
        list(read_vectors(places, Storage(), 1))
