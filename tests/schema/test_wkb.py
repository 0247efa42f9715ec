"""ISO WKB to and from WKT, hostile bytes, and bounding boxes."""

import math
import struct
from collections.abc import Callable

import pytest
from hypothesis import given, strategies as st

from icefloe.errors import InvalidValueError
from icefloe.schema import GeoPoint, bounding_box
from icefloe.schema.types import GeographyType, GeometryType
from icefloe.schema.wkb import check_wkb, wkb_to_wkt, wkt_to_wkb


def numbers() -> st.SearchStrategy[float]:
    return st.floats(allow_nan=False) | st.integers(-180, 180).map(float)


def shown(number: float) -> str:
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    return repr(number).removesuffix(".0")


@st.composite
def wkt(draw: st.DrawFn, depth: int = 2) -> str:
    """Well-known text of any shape in the form that we write."""
    suffix = draw(st.sampled_from(("", "Z", "M", "ZM")))
    width = 2 + len(suffix)

    def position() -> str:
        return " ".join(shown(draw(numbers())) for _ in range(width))

    def sequence(least: int = 0) -> str:
        count = draw(st.integers(least, 3))
        return f"({', '.join(position() for _ in range(count))})" if count else "EMPTY"

    def several(part: Callable[[], str]) -> str:
        count = draw(st.integers(0, 3))
        return f"({', '.join(part() for _ in range(count))})" if count else "EMPTY"

    def point() -> str:
        return f"({position()})" if draw(st.booleans()) else "EMPTY"

    bodies: dict[str, Callable[[], str]] = {
        "POINT": point,
        "LINESTRING": sequence,
        "POLYGON": lambda: several(sequence),
        "TRIANGLE": lambda: several(sequence),
        "MULTIPOINT": lambda: several(point),
        "MULTILINESTRING": lambda: several(sequence),
        "MULTIPOLYGON": lambda: several(lambda: several(sequence)),
        "POLYHEDRALSURFACE": lambda: several(lambda: several(sequence)),
        "TIN": lambda: several(lambda: several(sequence)),
        "GEOMETRYCOLLECTION": lambda: several(lambda: draw(wkt(depth - 1))),
    }
    choices = [name for name in bodies if depth or name != "GEOMETRYCOLLECTION"]
    name = draw(st.sampled_from(choices))
    return f"{name} {suffix} {bodies[name]()}" if suffix else f"{name} {bodies[name]()}"


@given(wkt())
def test_text_to_bytes_and_back(text: str) -> None:
    data = wkt_to_wkb(text)
    assert wkb_to_wkt(data) == text
    assert wkt_to_wkb(wkb_to_wkt(data)) == data


@pytest.mark.parametrize(
    ("text", "hexadecimal"),
    [
        ("POINT (30 10)", "01010000000000000000003e400000000000002440"),
        ("POINT Z (1 2 3)", "01e9030000000000000000f03f00000000000000400000000000000840"),
        ("POINT M (1 2 3)", "01d1070000000000000000f03f00000000000000400000000000000840"),
        ("POINT ZM (1 2 3 4)", "01b90b0000000000000000f03f000000000000004000000000000008400000000000001040"),
        ("LINESTRING (1 2)", "010200000001000000000000000000f03f0000000000000040"),
        ("POLYGON EMPTY", "010300000000000000"),
        ("GEOMETRYCOLLECTION (POINT EMPTY)", "0107000000010000000101000000000000000000f87f000000000000f87f"),
    ],
)
def test_known_bytes(text: str, hexadecimal: str) -> None:
    assert wkt_to_wkb(text).hex() == hexadecimal
    assert wkb_to_wkt(bytes.fromhex(hexadecimal)) == text


def test_big_endian_is_read() -> None:
    assert wkb_to_wkt(struct.pack(">BIdd", 0, 1, 30.0, 10.0)) == "POINT (30 10)"
    mixed = struct.pack(">BII", 0, 4, 1) + struct.pack("<BIdd", 1, 1, 1.5, -2.0)
    assert wkb_to_wkt(mixed) == "MULTIPOINT ((1.5 -2))"


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("point(30 10)", "POINT (30 10)"),
        ("  POINT  Z( 1 2 3 ) ", "POINT Z (1 2 3)"),
        ("POINTZM (1 2 3 4)", "POINT ZM (1 2 3 4)"),
        ("MULTIPOINT (1 2, 3 4)", "MULTIPOINT ((1 2), (3 4))"),
        ("POINT (1e2 .5)", "POINT (100 0.5)"),
        ("POINT (nan 1)", "POINT (NaN 1)"),
        ("POINT (-inf +1)", "POINT (-Infinity 1)"),
    ],
)
def test_other_spellings_are_read(text: str, same: str) -> None:
    assert wkb_to_wkt(wkt_to_wkb(text)) == same


@pytest.mark.parametrize(
    "text",
    [
        "",
        "POINT",
        "POINT (1)",
        "POINT (1 2 3)",
        "POINT Z (1 2)",
        "POINT (1 2, 3 4)",
        "POINT (1 2",
        "POINT (1 2) x",
        "POINT (1.5.2)",
        "POINT (1 EMPTY)",
        "SRID=4326;POINT (1 2)",
        "CIRCLE (1 2)",
        "POINTQ (1 2)",
        "LINESTRING 1 2",
        "GEOMETRYCOLLECTION (" * 70,
    ],
)
def test_what_is_not_text_of_a_shape_is_refused(text: str) -> None:
    with pytest.raises(InvalidValueError, match="is not WKT"):
        wkt_to_wkb(text)


@pytest.mark.parametrize(
    ("hexadecimal", "problem"),
    [
        ("", "no byte order"),
        ("02", "no byte order"),
        ("01", "ends early"),
        ("0101000000", "ends early"),
        ("01010000000000000000003e40000000000000244000", "after its end"),
        ("0101000080000000000000f03f00000000000000400000000000000840", "EWKB"),
        ("0108000000", "unknown geometry type 8"),
        ("01a10f0000", "unknown geometry type 4001"),
        ("0102000000ffffffff", "ends early"),
        ("0107000000ffffffff", "ends early"),
        ("0103000000ffffffff", "ends early"),
        ("0104000000010000000102000000" + "00" * 4, "LINESTRING inside a MULTIPOINT"),
    ],
)
def test_bytes_that_are_not_wkb_are_refused(hexadecimal: str, problem: str) -> None:
    with pytest.raises(InvalidValueError, match=problem):
        check_wkb(bytes.fromhex(hexadecimal))


def test_deep_nesting_is_refused() -> None:
    data = bytes.fromhex("010700000001000000") * 5000 + bytes.fromhex("010700000000000000")
    with pytest.raises(InvalidValueError, match="deep"):
        check_wkb(data)


@given(st.binary(max_size=60) | st.binary(max_size=40).map(lambda tail: b"\x01\x07\x00\x00\x00\x02\x00\x00\x00" + tail))
def test_hostile_bytes_never_fail_otherwise(data: bytes) -> None:
    try:
        check_wkb(data)
    except InvalidValueError:
        return
    assert wkt_to_wkb(wkb_to_wkt(data))


# --- boxes -----------------------------------------------------------------------------------------------------------


def box(*texts: str | None, kind: GeometryType | GeographyType | None = None) -> tuple[GeoPoint, GeoPoint] | None:
    return bounding_box([None if text is None else wkt_to_wkb(text) for text in texts], kind or GeometryType())


def test_a_box_holds_all_positions_of_all_values() -> None:
    assert box("POINT (1 2)") == (GeoPoint(1, 2), GeoPoint(1, 2))
    assert box("POINT (1 2)", None, "LINESTRING (0 5, 3 4)") == (GeoPoint(0, 2), GeoPoint(3, 5))
    assert box("POLYGON ((0 0, 9 0, 9 8, 0 0), (1 1, 2 1, 2 -2, 1 1))") == (GeoPoint(0, -2), GeoPoint(9, 8))
    assert box("GEOMETRYCOLLECTION (MULTIPOINT ((5 5)), POINT Z (1 2 3))") == (GeoPoint(1, 2, 3), GeoPoint(5, 5, 3))
    assert box("POINT M (1 2 3)", "POINT ZM (1 2 8 4)") == (GeoPoint(1, 2, 8, 3), GeoPoint(1, 2, 8, 4))


def test_nan_is_skipped_in_each_dimension_by_itself() -> None:
    assert box("POINT (1 NaN)") is None
    assert box("POINT (1 NaN)", "POINT (NaN 2)") == (GeoPoint(1, 2), GeoPoint(1, 2))
    assert box("LINESTRING Z (1 2 NaN, 3 NaN NaN)") == (GeoPoint(1, 2), GeoPoint(3, 2))


@pytest.mark.parametrize("bits", [0x7FF0000000000001, 0xFFF0000000000001, 0x7FF8000000000001, 0xFFFFFFFFFFFFFFFF])
@pytest.mark.parametrize("at", range(3))
def test_nan_of_any_bits_is_skipped(bits: int, at: int) -> None:
    """Signalling ones are stronger than numbers in comparisons of IEEE 754."""
    values = [struct.pack("<BIdd", 1, 1, 3, 4), struct.pack("<BIdd", 1, 1, 5, 6)]
    values.insert(at, struct.pack("<BIQd", 1, 1, bits, 2))
    for kind in (GeometryType(), GeographyType()):
        assert bounding_box(values, kind) == (GeoPoint(3, 2), GeoPoint(5, 6))
    line = struct.pack("<BIIQddd", 1, 2, 2, bits, 2, 3, 4)
    assert bounding_box([line], GeometryType()) == (GeoPoint(3, 2), GeoPoint(3, 4))


def test_there_is_no_box_around_nothing() -> None:
    assert box() is None
    assert box(None, "POINT EMPTY", "POLYGON EMPTY", "GEOMETRYCOLLECTION EMPTY") is None


def test_infinite_coordinates_count() -> None:
    assert box("POINT (Infinity 1)") == (GeoPoint(math.inf, 1), GeoPoint(math.inf, 1))


def test_a_geography_has_a_box_for_points_in_range_only() -> None:
    geography = GeographyType()
    assert box("POINT (-180 90)", "MULTIPOINT ((180 0))", kind=geography) == (GeoPoint(180, 0), GeoPoint(-180, 90))
    assert box("POINT (181 0)", kind=geography) is None
    assert box("POINT (0 -91)", kind=geography) is None


@given(st.lists(wkt(), max_size=4))
def test_every_position_is_inside_the_box(texts: list[str]) -> None:
    found = box(*texts)
    points = [wkt_to_wkb(text) for text in texts if text.startswith("POINT") and "EMPTY" not in text]
    for data in points:
        x, y = struct.unpack_from("<dd", data, 5)
        assert found is not None
        assert found[0].x <= x <= found[1].x
        assert found[0].y <= y <= found[1].y
