"""Mumbling bitmaps: the vectors of the draft, every set there and back, and bytes that are none."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from icefloe.errors import InvalidInputError, InvalidValueError
from icefloe.formats.mumbling import (
    MOST_POSITIONS,
    decode_mumbling,
    decode_pfor,
    encode_mumbling,
    encode_pfor,
)


@pytest.mark.parametrize(
    ("values", "packed"),
    [
        ([0] * 256, "000000"),
        ([5] * 51, "000005"),
        ([0, 0, 0, 0, 255, 0, 0, 254], "80020004 07FFFE"),
        ([6, 7, 8], "02000618"),
        ([6, 34, 8, 7], "320106 09 01 E0"),
    ],
)
def test_packed_bytes_of_the_draft(values: list[int], packed: str) -> None:
    data = bytes.fromhex(packed)
    found, end = decode_pfor(data, 0, len(values))
    assert (found.tolist(), end) == (values, len(data))
    assert encode_pfor(np.array(values, np.uint8)) == data


def test_a_whole_bitmap() -> None:
    data = bytes.fromhex("01 030000 0100 000003 0022FF")
    assert encode_mumbling([255, 0, 34, 0]) == data
    assert decode_mumbling(data).tolist() == [0, 34, 255]
    assert decode_mumbling(encode_mumbling([])).tolist() == []
    dense = encode_mumbling(range(32))
    assert dense[9:] == b"\xff" * 4 + bytes(28), "position 0 is the highest bit of the first byte"


@given(
    st.sets(st.integers(0, MOST_POSITIONS - 1), max_size=20),
    st.lists(st.tuples(st.integers(0, 70_000), st.integers(1, 400)), max_size=4),
)
@settings(max_examples=60)
def test_every_set_comes_back(single: set[int], runs: list[tuple[int, int]]) -> None:
    positions = single.union(*(range(start, start + length) for start, length in runs))
    data = encode_mumbling(positions)
    assert decode_mumbling(data).tolist() == sorted(positions)
    # By the definition: a byte for each value of a sparse container, 32 for a dense one.
    counts: dict[int, int] = {}
    for position in positions:
        counts[position >> 8] = counts.get(position >> 8, 0) + 1
    containers = sum(32 if count >= 32 else count for count in counts.values())
    highest = max(positions) >> 8 if positions else -1
    packed = encode_pfor(np.array([min(counts.get(i, 0), 32) for i in range(highest + 1)], np.uint8))
    assert len(data) == 6 + len(packed) + containers


@given(st.binary(max_size=700))
@settings(max_examples=100)
def test_any_bytes_are_packed(values: bytes) -> None:
    packed = encode_pfor(np.frombuffer(values, np.uint8))
    found, end = decode_pfor(packed, 0, len(values))
    assert (found.tobytes(), end) == (values, len(packed))
    assert len(packed) <= len(values) + 3 * -(-len(values) // 256)


@given(st.binary(max_size=60), st.sets(st.integers(0, 2000), max_size=60), st.integers(0, 200), st.integers(0, 255))
@settings(max_examples=150)
def test_other_bytes_are_an_error_or_a_bitmap(noise: bytes, positions: set[int], place: int, value: int) -> None:
    damaged = bytearray(encode_mumbling(positions))
    damaged[place % len(damaged)] = value
    for data in (noise, b"\x01" + noise, bytes(damaged), bytes(damaged[:-1]), bytes(damaged) + b"\x00"):
        try:
            found = decode_mumbling(data)
        except InvalidValueError:
            continue
        assert (np.diff(found) > 0).all()
        assert not len(found) or 0 <= found[0] <= found[-1] < MOST_POSITIONS


def test_positions_beyond_the_limit_are_refused() -> None:
    for wrong in (-1, MOST_POSITIONS):
        with pytest.raises(InvalidInputError, match=str(wrong)):
            encode_mumbling([3, wrong])
