"""Boxes around shapes, and which shapes meet a box, against shapely, against fine nets over the globe, and by example."""

import math
import struct
from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pytest
import shapely

from icefloe.errors import InvalidValueError
from icefloe.schema import GeoBox, GeoPoint, bounding_box, boxes_may_intersect, check_wkb_column, intersects, types
from icefloe.schema.geo_boxes import BoxCollector
from icefloe.schema.wkb import check_wkb, wkt_to_wkb
from tests.geo_shapes import (
    Rng,
    SphereShape,
    is_in_sphere_box,
    planar_box,
    planar_shape,
    sphere_box,
    sphere_positions,
    wkb,
)

GEOMETRY, GEOGRAPHY = types.GeometryType(), types.GeographyType()
MANY = 20_000
FEW = 300


def meets(text: str | None, *sides: float, kind: types.GeometryType | types.GeographyType = GEOMETRY) -> bool:
    value = None if text is None else wkt_to_wkb(text)
    return bool(intersects(pa.array([value], pa.binary()), GeoBox(*sides), kind)[0])


def may(
    low: GeoPoint, high: GeoPoint, *sides: float, kind: types.GeometryType | types.GeographyType = GEOMETRY
) -> bool:
    corners = [
        pa.StructArray.from_arrays([pa.array([getattr(p, n)], pa.float64()) for n in "xyzm"], list("xyzm"))
        for p in (low, high)
    ]
    answer = boxes_may_intersect(corners[0], corners[1], GeoBox(*sides), kind)
    assert answer is not None
    return bool(answer[0])


# -- in the plane


def check_planar(rng: Rng, rounds: int) -> None:
    for _ in range(rounds):
        shapes = [planar_shape(rng) for _ in range(20)]
        values = [wkb(shape, rng) for shape in shapes]
        sides = planar_box(rng)
        box = GeoBox(*sides)
        found = intersects(pa.array(values, pa.binary()), box, GEOMETRY)
        expected = shapely.intersects(
            shapes, shapely.box(*sides) if sides[:2] != sides[2:] else shapely.Point(sides[:2])
        )
        assert found.tolist() == expected.tolist(), (sides, [str(s) for s in shapes])
        check_corners(values, box, GEOMETRY, bool(found.any()))
        corners = bounding_box(values, GEOMETRY)
        assert corners is not None
        bounds = shapely.total_bounds(shapes).tolist()
        assert [corners[0].x, corners[0].y, corners[1].x, corners[1].y] == bounds


def check_corners(
    values: list[bytes], box: GeoBox, kind: types.GeometryType | types.GeographyType, is_met: bool
) -> None:
    corners = bounding_box(values, kind)
    if is_met:
        assert corners is None or may(*corners, box.xmin, box.ymin, box.xmax, box.ymax, kind=kind), (box, corners)


def test_shapes_in_the_plane_meet_boxes_as_shapely_says() -> None:
    check_planar(np.random.default_rng(21), FEW // 3)


@pytest.mark.deep
@pytest.mark.timeout(1800)
def test_many_shapes_in_the_plane_meet_boxes_as_shapely_says() -> None:
    check_planar(np.random.default_rng(22), MANY // 20)


def test_a_polygon_around_the_box_meets_it_and_one_with_a_hole_around_it_does_not() -> None:
    outer = "(0 0, 9 0, 9 9, 0 9, 0 0)"
    assert meets(f"POLYGON ({outer})", 4, 4, 5, 5)
    assert not meets(f"POLYGON ({outer}, (3 3, 6 3, 6 6, 3 6, 3 3))", 4, 4, 5, 5)
    assert meets(f"POLYGON ({outer}, (3 3, 6 3, 6 6, 3 6, 3 3))", 4, 4, 6, 5)
    assert meets("MULTIPOLYGON (((20 0, 21 0, 21 1, 20 0)), ((0 0, 9 0, 9 9, 0 9, 0 0)))", 4, 4, 5, 5)
    # A ring that its writer did not close.
    assert meets("POLYGON ((0 0, 9 0, 9 9, 0 9))", 4, 4, 5, 5)


def test_lines_that_pass_a_corner_meet_it_exactly() -> None:
    assert meets("LINESTRING (0 2, 2 0)", 1, 1, 3, 3)
    assert not meets("LINESTRING (0 2, 2 0)", 1.0000000000000002, 1, 3, 3)
    # Rounded products cannot tell these: the corner is beside the line by less than their last digit.
    assert meets("LINESTRING (0 0, 3e15 1e15)", 3, 1, 4, 1)
    assert not meets("LINESTRING (0 0, 3000000000000001 1e15)", 3, 1, 3, 1)
    assert meets("LINESTRING (-1e308 -1e308, 1e308 1e308)", 5, 5, 6, 6)
    assert not meets("LINESTRING (-1e308 -1e308, 1e308 1e308)", 5, 1, 6, 2)


def test_what_has_no_positions_meets_nothing() -> None:
    everything = (-math.inf, -math.inf, math.inf, math.inf)
    for text in (None, "POINT EMPTY", "POINT (1 NaN)", "LINESTRING EMPTY", "POLYGON EMPTY", "GEOMETRYCOLLECTION EMPTY"):
        assert not meets(text, *everything)
    assert meets("POINT (1 2)", *everything)
    assert meets("LINESTRING (0 0, 1 NaN, 5 5)", 4, 4, 6, 6)
    assert not meets("LINESTRING (0 0, 1 NaN, 5 5)", 2, 2, 3, 3)


@pytest.mark.parametrize("z", ["", "Z", "M", "ZM"])
def test_heights_and_measures_do_not_count(z: str) -> None:
    more = {"": "", "Z": " 7", "M": " 8", "ZM": " 7 8"}[z]
    assert meets(f"POINT {z} (1 2{more})", 0, 0, 1, 2)
    assert not meets(f"POINT {z} (1 2{more})", 5, 5, 9, 9)
    assert meets(f"LINESTRING {z} (0 0{more}, 4 4{more})", 1, 1, 2, 2)


def test_points_are_read_in_both_byte_orders_with_all_dimensions() -> None:
    values = [
        struct.pack(f"{order}BI{2 + len(more)}d", order == "<", code, 1.5, -2.5, *more)
        for order in "<>"
        for code, more in ((1, ()), (1001, (3.0,)), (2001, (4.0,)), (3001, (3.0, 4.0)))
    ]
    column = pa.chunked_array([pa.array([None, *values], pa.binary())[1:], pa.array([None], pa.binary())])
    assert intersects(column, GeoBox(1.5, -2.5, 1.5, -2.5), GEOMETRY).tolist() == [True] * 8 + [False]
    assert bounding_box(values, GEOMETRY) == (GeoPoint(1.5, -2.5, 3.0, 4.0), GeoPoint(1.5, -2.5, 3.0, 4.0))


# -- on a sphere


def check_sphere(rng: Rng, rounds: int) -> None:
    for _ in range(rounds):
        shape, sides = SphereShape(rng), sphere_box(rng)
        value, box = shape.wkb, GeoBox(*sides)
        found = bool(intersects(pa.array([value]), box, GEOGRAPHY)[0])
        edges = shape.edge_positions()
        inside = edges[is_in_sphere_box(edges, sides)]
        corner = np.array([sides[:2]])
        case = (shape.kind, shape.positions.tolist(), sides)
        if len(inside) or shape.contains(corner)[0]:
            assert found, case
        else:
            # It may only be that the net is too coarse.
            assert not found or is_in_sphere_box(edges, sides, margin=0.2).any(), case
        check_corners([value], box, GEOGRAPHY, found)
        net = sphere_positions(rng, 300)
        held = np.vstack([edges, net[shape.contains(net)]])
        corners = bounding_box([value], GEOGRAPHY)
        assert corners is not None, case
        west, south, east, north = corners[0].x, corners[0].y, corners[1].x, corners[1].y
        assert is_in_sphere_box(held, (west, south, east, north), margin=1e-9).all(), (case, corners)


def test_shapes_on_a_sphere_meet_boxes_as_a_fine_net_says() -> None:
    check_sphere(np.random.default_rng(23), FEW // 2)


@pytest.mark.deep
@pytest.mark.timeout(1800)
def test_many_shapes_on_a_sphere_meet_boxes_as_a_fine_net_says() -> None:
    check_sphere(np.random.default_rng(24), MANY)


def test_great_circles_reach_further_than_their_ends() -> None:
    corners = bounding_box([wkt_to_wkb("LINESTRING (0 60, 90 60)")], GEOGRAPHY)
    assert corners is not None
    assert corners[1].y == pytest.approx(67.7923457, abs=1e-6)
    assert corners[0].y == pytest.approx(60, abs=1e-8)
    assert (corners[0].x, corners[1].x) == (0, 90)
    assert meets("LINESTRING (0 60, 90 60)", 40, 67, 50, 70, kind=GEOGRAPHY)
    assert not meets("LINESTRING (0 60, 90 60)", 40, 59, 50, 61, kind=GEOGRAPHY)
    assert not meets("LINESTRING (0 60, 90 60)", 40, 67, 50, 70)


@pytest.mark.parametrize("algorithm", types.EDGE_ALGORITHMS[1:])
def test_edges_on_an_ellipsoid_have_no_box_and_are_not_guessed(algorithm: str) -> None:
    kind = types.GeographyType(algorithm=algorithm)
    assert bounding_box([wkt_to_wkb("POINT (1 2)"), wkt_to_wkb("LINESTRING (0 1, 1 1)")], kind) is None
    assert bounding_box([wkt_to_wkb("MULTIPOINT (1 2, 3 4)")], kind) == (GeoPoint(1, 2), GeoPoint(3, 4))
    assert meets("POINT (1 2)", 0, 0, 2, 2, kind=kind)
    with pytest.raises(InvalidValueError, match=f"{algorithm} edges meets is not computed"):
        meets("LINESTRING (20 20, 30 30)", 0, 0, 2, 2, kind=kind)


def geography_box(*texts: str) -> tuple[float, float, float, float] | None:
    corners = bounding_box([wkt_to_wkb(text) for text in texts], GEOGRAPHY)
    return None if corners is None else (corners[0].x, corners[0].y, corners[1].x, corners[1].y)


def rounded(box: Iterable[float] | None) -> list[float]:
    assert box is not None
    return [round(number, 6) + 0.0 for number in box]


def test_boxes_go_over_the_antimeridian_where_that_is_shorter() -> None:
    assert geography_box("POINT (170 1)", "POINT (-170 2)") == (170, 1, -170, 2)
    assert geography_box("POINT (170 1)", "POINT (-170 2)", "POINT (10 0)") == (10, 0, -170, 2)
    assert geography_box("POINT (-100 1)", "POINT (70 2)") == (-100, 1, 70, 2)
    assert rounded(geography_box("LINESTRING (179 0, -179 0)")) == [179, 0, -179, 0]
    assert rounded(geography_box("POLYGON ((170 0, -170 0, -170 5, 170 5, 170 0))"))[::2] == [170, -170]
    assert geography_box("POINT (0.1 0)", "POINT (-179.3 0)", "POINT (179.7 0)") == (179.7, 0, 0.1, 0)


def test_rings_around_a_pole_have_it_in_their_box() -> None:
    north = "POLYGON ((0 80, 90 80, 180 80, -90 80, 0 80))"
    assert rounded(geography_box(north))[1:] == [80, 180, 90]
    assert rounded(geography_box("POLYGON ((0 -80, -90 -80, 180 -80, 90 -80, 0 -80))"))[:2] == [-180, -90]
    assert meets(north, 20, 88, 30, 89, kind=GEOGRAPHY)
    assert not meets(north, 20, 60, 30, 70, kind=GEOGRAPHY)
    # One eighth of the globe has a corner at the pole, and does not go around it.
    eighth = "POLYGON ((0 0, 90 0, 0 90, 0 0))"
    assert rounded(geography_box(eighth)) == [0, 0, 90, 90]
    assert meets(eighth, 40, 40, 50, 50, kind=GEOGRAPHY)
    assert not meets(eighth, 100, 40, 110, 50, kind=GEOGRAPHY)
    # What is larger than half of the globe is outside: the ring is around the rest.
    assert meets(
        "POLYGON ((-100 -80, 0 -80, 100 -80, 100 80, 0 80, -100 80, -100 -80))", 180, 0, 180, 0, kind=GEOGRAPHY
    )


def test_the_pole_is_at_all_longitudes() -> None:
    assert meets("POINT (10 90)", 20, 80, 30, 90, kind=GEOGRAPHY)
    assert may(GeoPoint(10, 90), GeoPoint(10, 90), 20, 80, 30, 90, kind=GEOGRAPHY)
    assert meets("LINESTRING (10 80, -170 80)", 100, 85, 110, 90, kind=GEOGRAPHY)
    assert meets("LINESTRING (10 80, -170 80)", -170, 85, -170, 86, kind=GEOGRAPHY)


def test_180_degrees_west_and_east_are_one_meridian() -> None:
    assert meets("POINT (-180 0)", 170, -1, 180, 1, kind=GEOGRAPHY)
    assert meets("POINT (180 0)", -180, -1, -170, 1, kind=GEOGRAPHY)
    assert meets("POINT (180 0)", 170, -1, -170, 1, kind=GEOGRAPHY)
    assert not meets("POINT (160 0)", 170, -1, -170, 1, kind=GEOGRAPHY)
    assert may(GeoPoint(170, 0), GeoPoint(180, 0), -180, -1, -170, 1, kind=GEOGRAPHY)
    assert not may(GeoPoint(170, 0), GeoPoint(179, 0), -180, -1, -170, 1, kind=GEOGRAPHY)
    assert may(GeoPoint(170, 0), GeoPoint(-170, 0), 175, -1, 176, 1, kind=GEOGRAPHY)
    assert not may(GeoPoint(170, 0), GeoPoint(-170, 0), -160, -1, 160, 1, kind=GEOGRAPHY)


@pytest.mark.parametrize(
    ("low", "high", "kind"),
    [
        (GeoPoint(5, 0), GeoPoint(1, 1), GEOMETRY),
        (GeoPoint(0, 5), GeoPoint(1, 1), GEOMETRY),
        (GeoPoint(math.nan, 0), GeoPoint(1, 1), GEOMETRY),
        (GeoPoint(0, 0), GeoPoint(1, math.nan), GEOGRAPHY),
        (GeoPoint(0, 0), GeoPoint(181, 1), GEOGRAPHY),
        (GeoPoint(0, -91), GeoPoint(1, 1), GEOGRAPHY),
        (GeoPoint(0, 5), GeoPoint(1, 1), GEOGRAPHY),
    ],
)
def test_boxes_that_make_no_sense_rule_nothing_out(
    low: GeoPoint, high: GeoPoint, kind: types.GeometryType | types.GeographyType
) -> None:
    assert may(low, high, 50, 50, 60, 60, kind=kind)


def test_boxes_of_batches_are_the_box_of_all() -> None:
    rng = np.random.default_rng(25)
    for kind in (GEOMETRY, GEOGRAPHY):
        for _ in range(5):
            values = [SphereShape(rng).wkb for _ in range(12)]
            collector = BoxCollector(kind)
            for start in range(0, 12, 5):
                collector.add(pa.array(values[start : start + 5]))
            assert collector.corners() == bounding_box(values, kind)


def test_very_many_longitudes_stay_a_box_around_all() -> None:
    rng = np.random.default_rng(26)
    x = rng.uniform(60, 300, 5000)
    x = np.where(x > 180, x - 360, x)
    points = pa.array([struct.pack("<BIdd", 1, 1, one, 0) for one in x.tolist()])
    collector = BoxCollector(GEOGRAPHY)
    for start in range(0, 5000, 1000):
        collector.add(points[start : start + 1000])
    corners = collector.corners()
    assert corners is not None
    assert (corners[0].x, corners[1].x) == (x[x > 0].min(), x[x < 0].max())


# -- what is refused


@pytest.mark.parametrize(
    ("sides", "kind", "problem"),
    [
        ((0, 5, 1, 1), GEOMETRY, "ymin 5.0 above ymax 1.0"),
        ((5, 0, 1, 1), GEOMETRY, "only in a geography"),
        ((0, 0, math.nan, 1), GEOMETRY, "must be a number"),
        ((0, 0, "1", 1), GEOMETRY, "must be a number"),
        ((0, 0, 181, 1), GEOGRAPHY, "not on the globe"),
        ((0, -91, 1, 1), GEOGRAPHY, "not on the globe"),
        ((0, 0, 1, 1), types.GeometryType("EPSG:3857"), "CRS 'OGC:CRS84', and the column in 'EPSG:3857'"),
    ],
)
def test_boxes_that_cannot_be_asked_for_are_refused(
    sides: tuple[float, ...], kind: types.GeometryType | types.GeographyType, problem: str
) -> None:
    crs = "OGC:CRS84" if "CRS" in problem else None
    with pytest.raises(InvalidValueError, match=problem):
        GeoBox(*sides, crs=crs).check(kind)


def test_the_crs_of_a_box_may_be_named_in_any_case() -> None:
    GeoBox(0, 0, 1, 1, crs="ogc:crs84").check(GEOMETRY)


NESTED = [
    "POINT ZM (1 2 3 4)", "LINESTRING M (1 2 3, 4 5 6)", "LINESTRING EMPTY", "POLYGON Z ((0 0 1, 1 0 1, 1 1 1, 0 0 1))",
    "POLYGON ((0 0, 9 0, 9 9, 0 0), (1 1, 2 1, 2 2, 1 1))", "POLYGON EMPTY", "MULTIPOINT ZM (1 2 3 4, 5 6 7 8)",
    "MULTIPOINT EMPTY", "MULTILINESTRING ((1 2, 3 4), EMPTY, (5 6, 7 8, 9 9))", "TRIANGLE ((0 0, 1 0, 1 1, 0 0))",
    "MULTIPOLYGON (((0 0, 9 0, 9 9, 0 0), (1 1, 2 1, 2 2, 1 1)), EMPTY, ((5 5, 6 5, 6 6, 5 5)))",
    "TIN (((0 0, 1 0, 1 1, 0 0)), ((0 0, 1 0, 1 1, 0 0)))", "POLYHEDRALSURFACE M (((0 0 1, 1 0 1, 1 1 1, 0 0 1)))",
    "GEOMETRYCOLLECTION (POINT (1 2), MULTIPOINT (3 4), GEOMETRYCOLLECTION EMPTY)",
]  # fmt: skip


def test_values_that_are_not_whole_are_refused() -> None:
    """In vectors exactly those that are refused one by one: changed at any place, cut anywhere, longer."""
    rng = np.random.default_rng(5)
    good = [*map(wkt_to_wkb, NESTED), *(wkb(planar_shape(rng), rng) for _ in range(20))]
    check_wkb_column(pa.array([None, *good, None]), "g")
    check_wkb_column(pa.chunked_array([pa.array(good).slice(3), pa.array(good).slice(0, 5)]), "g")
    others = [value + b"\x00" for value in good]
    for value in good:
        others += [value[:end] for end in range(len(value))]
        for at in range(min(len(value), 60)):
            others.append(value[:at] + bytes([value[at] ^ (1 << int(rng.integers(8)))]) + value[at + 1 :])
    for value in others:
        expected = None
        try:
            check_wkb(value)
        except InvalidValueError as problem:
            expected = f"column 'g', row 1: {problem}"
        found = None
        try:
            check_wkb_column(pa.array([good[0], value, good[1]]), "g")
        except InvalidValueError as problem:
            found = str(problem)
        assert found == expected, value.hex()


def test_values_that_no_table_may_have_are_refused_with_the_remedy() -> None:
    ewkb = shapely.to_wkb(shapely.set_srid(shapely.Point(1, 2), 4326), include_srid=True)
    good = wkt_to_wkb("POINT (1 2)")
    with pytest.raises(InvalidValueError, match=r"column 'g', row 2.*EWKB.*ST_AsBinary"):
        check_wkb_column(pa.array([good, None, ewkb]), "g")
    with pytest.raises(InvalidValueError, match=r"column 'g', row 0.*byte order"):
        check_wkb_column(pa.array([b"POINT (1 2)"]), "g")
    with pytest.raises(InvalidValueError, match="ends early"):
        check_wkb_column(pa.array([b"\x01\x01"]), "g")
    check_wkb_column(pa.array([good, None, wkt_to_wkb("POLYGON ZM EMPTY")]), "g")
    check_wkb_column(pa.array([], pa.binary()), "g")
