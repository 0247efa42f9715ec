"""Bounds: cut but never on the wrong side, and geo corners as bytes."""

import math
import struct
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from icefloe.errors import InvalidValueError
from icefloe.schema import GeoPoint, decode_bound, decode_bounds, encode_bound, truncate_lower, truncate_upper, types
from icefloe.schema.binary import encode
from icefloe.schema.bounds import decode_geo_bound, encode_geo_bound
from tests.strategies import texts, values_of

LAST = "\U0010ffff"
GEO: tuple[types.PrimitiveType, ...] = (types.GeometryType(), types.GeographyType())


@pytest.mark.parametrize(
    ("value", "width", "lower", "upper"),
    [
        ("abcde", 3, "abc", "abd"),
        ("abc", 3, "abc", "abc"),
        ("", 3, "", ""),
        ("ab\ud7ffx", 3, "ab\ud7ff", "ab\ue000"),
        (f"a{LAST}x", 2, f"a{LAST}", "b"),
        (f"a{LAST}", 2, f"a{LAST}", f"a{LAST}"),
        (LAST * 3, 2, LAST * 2, None),
        ("\U00010000bc", 1, "\U00010000", "\U00010001"),
        ("\uffffx", 1, "\uffff", "\U00010000"),
        ("a\x7fx", 2, "a\x7f", "a\x80"),
    ],
)
def test_strings_are_cut_by_code_points(value: str, width: int, lower: str, upper: str | None) -> None:
    assert truncate_lower(value, types.StringType(), width) == lower
    assert truncate_upper(value, types.StringType(), width) == upper


@pytest.mark.parametrize(
    ("value", "width", "lower", "upper"),
    [
        (b"\x01\x02\x03", 2, b"\x01\x02", b"\x01\x03"),
        (b"\x01\x02", 2, b"\x01\x02", b"\x01\x02"),
        (b"\x01\xff\x03", 2, b"\x01\xff", b"\x02"),
        (b"\xff\xff\x00", 2, b"\xff\xff", None),
        (b"\xff\xff", 2, b"\xff\xff", b"\xff\xff"),
        (b"", 2, b"", b""),
    ],
)
def test_bytes_are_cut_by_bytes(value: bytes, width: int, lower: bytes, upper: bytes | None) -> None:
    assert truncate_lower(value, types.BinaryType(), width) == lower
    assert truncate_upper(value, types.BinaryType(), width) == upper


@given(texts(), st.integers(1, 8))
def test_string_bounds_are_on_the_right_side(value: str, width: int) -> None:
    lower, upper = truncate_lower(value, types.StringType(), width), truncate_upper(value, types.StringType(), width)
    assert lower.encode() <= value.encode()
    assert len(lower) <= width
    if len(value) <= width:
        assert lower == upper == value
    elif upper is None:
        assert value[:width] == LAST * width
    else:
        # Above every string with that beginning, as UTF-8 bytes and as code points.
        assert upper.encode() > (value[:width] + LAST * 3).encode()
        assert upper > value[:width] + LAST * 3
        assert len(upper) <= width


@given(st.binary(max_size=12) | st.binary(max_size=4).map(lambda tail: b"\xff" * 3 + tail), st.integers(1, 8))
def test_binary_bounds_are_on_the_right_side(value: bytes, width: int) -> None:
    lower, upper = truncate_lower(value, types.BinaryType(), width), truncate_upper(value, types.BinaryType(), width)
    assert lower <= value
    assert len(lower) <= width
    if len(value) <= width:
        assert lower == upper == value
    elif upper is None:
        assert value[:width] == b"\xff" * width
    else:
        assert upper > value[:width] + b"\xff" * 8
        assert len(upper) <= width


@pytest.mark.parametrize(
    ("value", "kind"), [(7, types.LongType()), (b"abcdef", types.FixedType(6)), (12, types.DateType())]
)
def test_other_types_are_not_cut(value: Any, kind: types.IcebergType) -> None:
    assert truncate_lower(value, kind, 2) == value
    assert truncate_upper(value, kind, 2) == value


@pytest.mark.parametrize("width", [0, -1, True, 1.5, None])
def test_the_width_must_be_positive(width: Any) -> None:
    with pytest.raises(InvalidValueError, match="positive int"):
        truncate_lower("abc", types.StringType(), width)
    with pytest.raises(InvalidValueError, match="positive int"):
        truncate_upper("abc", types.StringType(), width)


X, Y, Z, M = (struct.pack("<d", number) for number in (10.0, 13.0, 15.0, 20.0))
NAN = struct.pack("<d", math.nan)


@pytest.mark.parametrize("kind", GEO, ids=str)
@pytest.mark.parametrize(
    ("point", "data"),
    [
        (GeoPoint(10, 13), X + Y),
        (GeoPoint(10, 13, 15), X + Y + Z),
        (GeoPoint(10, 13, None, 20), X + Y + NAN + M),
        (GeoPoint(10, 13, 15, 20), X + Y + Z + M),
    ],
)
def test_corners_as_bytes(point: GeoPoint, data: bytes, kind: types.PrimitiveType) -> None:
    assert encode_bound(point, kind) == encode_geo_bound(point) == data
    assert decode_bound(data, kind) == decode_geo_bound(data) == point


numbers = st.floats(allow_nan=False)
corners = st.builds(GeoPoint, numbers, numbers, st.none() | numbers, st.none() | numbers)


@given(st.lists(st.none() | corners, max_size=6), st.sampled_from(GEO))
def test_corners_round_trip(points: list[GeoPoint | None], kind: types.PrimitiveType) -> None:
    for point in points:
        assert point is None or decode_bound(encode_bound(point, kind), kind) == point
    stored = pa.array([None if point is None else encode_bound(point, kind) for point in points], pa.binary())
    found = decode_bounds(pa.chunked_array([stored]), kind)
    found.validate(full=True)
    assert [None if row is None else GeoPoint(**row) for row in found.to_pylist()] == points


def test_nan_at_the_end_means_that_there_is_nothing() -> None:
    assert decode_geo_bound(X + Y + NAN) == GeoPoint(10, 13)
    assert decode_geo_bound(X + Y + Z + NAN) == GeoPoint(10, 13, 15)


@pytest.mark.parametrize("data", [b"", X, X + Y + b"a", X * 5, None])
def test_bytes_that_are_no_corner_are_refused(data: Any) -> None:
    with pytest.raises(InvalidValueError, match="16, 24 or 32 bytes"):
        decode_bound(data, types.GeometryType())


@pytest.mark.parametrize("data", [b"", X, X + Y + b"a", X * 5])
def test_columns_of_corners_say_nothing_where_there_is_none(data: bytes) -> None:
    corner = {"x": 10.0, "y": 13.0, "z": None, "m": None}
    assert decode_bounds(pa.array([None, X + Y, data]), types.GeometryType()).to_pylist() == [None, corner, None]


@pytest.mark.parametrize("point", [GeoPoint(math.nan, 1), GeoPoint(1, math.nan, 2), "POINT", GeoPoint(None, 2)])  # type: ignore[arg-type]  # that is the point
def test_what_is_no_corner_is_refused(point: Any) -> None:
    with pytest.raises(InvalidValueError):
        encode_bound(point, types.GeometryType())


def test_bounds_of_fixed_may_be_cut() -> None:
    kind = types.FixedType(4)
    assert decode_bound(b"ab", kind) == b"ab"
    assert decode_bounds(pa.array([b"ab", None, b"abcd"]), kind).to_pylist() == [b"ab", None, b"abcd"]
    assert encode_bound(b"ab", kind) == b"ab"


@given(values_of(types.LongType()))
def test_bounds_of_other_types_are_plain_values(value: int) -> None:
    data = encode_bound(value, types.LongType())
    assert data == encode(value, types.LongType())
    assert decode_bound(data, types.LongType()) == value
    assert decode_bounds(pa.array([data]), types.LongType()).to_pylist() == [value]
