"""A remote file read in pieces is the file, whatever pieces are asked for or were brought before."""

import io
import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given, strategies as st

from icefloe.storage import Storage, parse_location
from icefloe.storage.locations import Location
from icefloe.storage.memory import MemoryFiles
from icefloe.storage.protocol import Files
from icefloe.storage.streams import JOINED_GAP, LARGEST_REQUEST, TAIL_LENGTH, RangedInput, joined_ranges

DATA = bytes(number * 7 % 251 for number in range(700_000))
LOCATION = "memory://streams/data"


class CountingFiles(MemoryFiles):
    """Files in memory that note what is asked of them."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, int]] = []

    def read_ranges(self, location: Location, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        self.asked.extend(ranges)
        return super().read_ranges(location, ranges)


@pytest.fixture(scope="module")
def files() -> Files:
    Storage().write(LOCATION, DATA)
    return MemoryFiles()


offsets = st.integers(0, len(DATA) + 10)
steps = st.one_of(
    st.tuples(st.just("read"), st.integers(-1, 300_000)),
    st.tuples(st.just("seek"), offsets),
    st.tuples(st.just("end"), st.integers(-len(DATA), 0)),
    st.tuples(
        st.just("prefetch"),
        st.lists(st.tuples(st.integers(0, len(DATA) - 1), st.integers(0, 100_000)), max_size=4),
    ),
)


@given(st.lists(steps, max_size=12))
def test_it_reads_like_a_file(files: Files, taken: list[tuple[str, object]]) -> None:
    ours, theirs = RangedInput(files, parse_location(LOCATION), len(DATA), None), io.BytesIO(DATA)
    for step in taken:
        match step:
            case ("read", int(length)):
                assert ours.read(length) == theirs.read(length)
            case ("seek", int(offset)):
                assert ours.seek(offset) == theirs.seek(offset)
            case ("end", int(offset)):
                assert ours.seek(offset, 2) == theirs.seek(offset, 2)
            case ("prefetch", list(ranges)):
                ours.prefetch([(at, min(length, len(DATA) - at)) for at, length in ranges])
        assert ours.tell() == theirs.tell()


def test_what_was_brought_is_not_asked_for_again(files: Files) -> None:
    counting = CountingFiles()
    handle = RangedInput(counting, parse_location(LOCATION), len(DATA), None)
    handle.seek(-8, 2)
    handle.read()
    assert counting.asked == [(len(DATA) - TAIL_LENGTH, TAIL_LENGTH)]
    handle.prefetch([(5000, 100), (0, 100), (len(DATA) - 50, 50)])
    assert counting.asked[1:] == [(0, 5100)]
    assert handle.read_at(2000, 3000) == DATA[2000:5000]
    assert len(counting.asked) == 2
    handle.prefetch([(100_000, 10)])
    assert handle.read_at(0, 10) == DATA[:10]
    assert counting.asked[2:] == [(100_000, 10), (0, 10)]


def test_a_long_range_is_fetched_in_pieces() -> None:
    Storage().write("memory://streams/long", b"x" * (LARGEST_REQUEST + 10))
    counting = CountingFiles()
    handle = RangedInput(counting, parse_location("memory://streams/long"), LARGEST_REQUEST + 10, None)
    handle.prefetch([(0, LARGEST_REQUEST + 1)])
    assert counting.asked == [(0, LARGEST_REQUEST), (LARGEST_REQUEST, 1)]
    assert handle.read(LARGEST_REQUEST + 1) == b"x" * (LARGEST_REQUEST + 1)
    assert len(counting.asked) == 2
    Storage().delete(["memory://streams/long"])


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**5)), max_size=20))
def test_joined_ranges_cover_and_stay_apart(ranges: list[tuple[int, int]]) -> None:
    joined = joined_ranges(ranges)
    for offset, length in ranges:
        assert length == 0 or any(at <= offset and offset + length <= at + size for at, size in joined)
    for (at, size), (following, _) in itertools.pairwise(joined):
        assert following > at + size + JOINED_GAP
