"""Scans of tables with geometries and geographies: st_intersects gives the rows that the naive definition gives, and leaves
out files and row groups by their boxes; in all versions, formats and forms of statistics."""

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

import icefloe
from icefloe import errors
from icefloe.expressions import AlwaysTrue, Expression, Intersects, bind, evaluate, might_match, parse_expression
from icefloe.formats.arrow_types import WkbType
from icefloe.formats.metrics import Metrics
from icefloe.formats.parquet.metrics import _MetricsColumns, row_group_filter
from icefloe.schema import GeoBox, types
from icefloe.schema.wkb import wkt_to_wkb
from icefloe.table import Table
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.geo_shapes import Rng, SphereShape, planar_box, planar_shape, sphere_box, wkb

VERSIONS = [version for version in ALL_VERSIONS if allows(version, Feature.GEO_TYPES)]
FORMATS = ("parquet", "avro", "orc")
GEO = {"geometry": types.GeometryType(), "geography": types.GeographyType()}
DEEP = 20_000


def point(x: float, y: float) -> bytes:
    return struct.pack("<BIdd", 1, 1, x, y)


def new_table(version: int, file_format: str, kind: str, **properties: str) -> Table:
    catalog = icefloe.load_catalog("lake", type="memory", warehouse=f"memory://geo/{id(object())}/{kind}/{version}")
    catalog.create_namespace("db")
    settings = {"format-version": str(version), "write.format.default": file_format} | properties
    return catalog.create_table("db.t", f"id bigint, g {kind}", properties=settings)


def add(table: Table, first: int, shapes: Sequence[bytes | None]) -> None:
    table.append(pa.table({"id": pa.array(range(first, first + len(shapes))), "g": pa.array(shapes, pa.binary())}))


def ids(table: Table, row_filter: str | Expression) -> list[int]:
    return sorted(table.scan(row_filter, selected_fields=("id",)).to_arrow().column("id").to_pylist())


def files(table: Table, row_filter: str | Expression) -> int:
    return len(list(table.scan(row_filter).plan_files()))


@pytest.mark.parametrize("kind", GEO)
@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("version", VERSIONS)
def test_points_are_pruned_by_file_and_found_by_row(version: int, file_format: str, kind: str) -> None:
    table = new_table(version, file_format, kind)
    for tile in range(4):
        add(table, 10 * tile, [*(point(10 * tile + 0.5 * i, i) for i in range(8)), None, point(float("nan"), 1)])
    assert files(table, "st_intersects(g, 11, 0, 12, 9)") == 1
    assert ids(table, "st_intersects(g, 11, 0, 12, 9)") == [12, 13, 14]
    assert ids(table, "id >= 20 and ST_Intersects(g, -5, 2, 25.5, 3)") == [22, 23]
    assert ids(table, icefloe.col("g").st_intersects(0, 0, 0, 0) | (icefloe.col("id") == 35)) == [0, 35]
    assert ids(table, "st_intersects(g, 50, 50, 60, 60)") == []
    assert files(table, "st_intersects(g, 50, 50, 60, 60)") == 0
    # Rows without a shape are not known to be outside; SQL leaves them out, the exact negation has them.
    assert files(table, "not st_intersects(g, -90, -90, 90, 90)") == 4
    assert ids(table, "not st_intersects(g, -90, -90, 90, 90)") == [9, 19, 29, 39]
    assert ids(table, ~icefloe.col("g").st_intersects(-90, -90, 90, 90)) == [8, 9, 18, 19, 28, 29, 38, 39]
    table.delete("st_intersects(g, 0, 0, 19, 90)")
    assert len(ids(table, AlwaysTrue())) == 40 - 16


@pytest.mark.parametrize("kind", GEO)
@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("version", VERSIONS)
def test_boxes_are_in_the_manifests_whatever_the_format(version: int, file_format: str, kind: str) -> None:
    table = new_table(version, file_format, kind)
    shapes = ["POINT Z (1 2 3)", "LINESTRING Z (0 0 9, 10 0 7)", "POINT ZM (5 5 1 -4)"]
    add(table, 0, [shapely.to_wkb(shapely.from_wkt(text), flavor="iso") for text in shapes])
    metrics = table.inspect.files().column("readable_metrics").to_pylist()[0]["g"]
    numbers = [struct.unpack_from("<4d", metrics[bound], 5) for bound in ("lower_bound", "upper_bound")]
    assert np.allclose(numbers, [(0, 0, 1, -4), (10, 5, 9, -4)], atol=1e-8)
    assert table.verify(level="data").ok


@pytest.mark.parametrize("kind", GEO)
def test_row_groups_are_left_out_by_their_boxes(kind: str, tmp_path: Any) -> None:
    table = new_table(3, "parquet", kind)
    schema = table.schema()
    plain = pa.field("g", pa.binary())
    rows = pa.table({"id": range(100), "g": pa.array([point(i, 0) for i in range(100)])})
    path = tmp_path / "file.parquet"
    if kind == "geometry":
        rows = rows.cast(pa.schema([rows.schema.field("id"), plain.with_type(WkbType(types.GeometryType()))]))
    pq.write_table(rows, path, row_group_size=10)
    chosen = row_group_filter(bind(parse_expression("st_intersects(g, 25, -1, 31, 1)"), schema), schema)
    kept = chosen(pq.read_metadata(path), schema)
    # pyarrow writes no boxes of geographies, and what has none is read.
    assert np.flatnonzero(kept).tolist() == ([2, 3] if kind == "geometry" else list(range(10)))


def test_a_geography_over_the_antimeridian_is_one_narrow_box() -> None:
    table = new_table(3, "parquet", "geography")
    add(table, 0, [point(179, 0), point(-179, 1)])
    add(table, 10, [point(-10, 0), point(10, 1)])
    assert files(table, "st_intersects(g, -5, -5, 5, 5)") == 1
    assert ids(table, "st_intersects(g, 178, -5, -178, 5)") == [0, 1]
    assert files(table, "st_intersects(g, 178, -5, -178, 5)") == 1


@pytest.mark.parametrize("bounds", [b"", b"12345678", b"\x00" * 24 + b"\xff" * 16, point(1, 2)])
def test_bounds_of_no_use_keep_their_file(bounds: bytes) -> None:
    schema = icefloe.Schema(types.NestedField(1, "g", types.GeometryType(), required=False))
    predicate = bind(parse_expression("st_intersects(g, 50, 50, 60, 60)"), schema)
    statistics = _MetricsColumns([Metrics(5, lower_bounds={1: bounds}, upper_bounds={1: bounds})])
    assert might_match(predicate, statistics).tolist() == [True]


# -- against the naive definition


def shapes_of(kind: str, rng: Rng, count: int) -> list[bytes | None]:
    if kind == "geometry":
        made = [wkb(planar_shape(rng), rng) for _ in range(count)]
    else:
        made = [SphereShape(rng).wkb for _ in range(count)]
    return [None if rng.random() < 0.1 else shape for shape in made]


def check_random(version: int, file_format: str, kind: str, rng: Rng, tables: int, boxes: int) -> int:
    """How many files were left out."""
    pruned = 0
    for _ in range(tables):
        table = new_table(version, file_format, kind, **{"write.parquet.row-group-size-bytes": "300"})
        rows: list[bytes | None] = []
        for _ in range(4):
            added = shapes_of(kind, rng, int(rng.integers(1, 5)))
            add(table, len(rows), added)
            rows += added
        for _ in range(boxes):
            box = GeoBox(*(planar_box if kind == "geometry" else sphere_box)(rng))
            predicate: Expression = Intersects("g", box)
            predicate = ~predicate if rng.random() < 0.2 else predicate
            bound = bind(predicate, table.schema())
            expected = [i for i, shape in enumerate(rows) if evaluate(bound, (i, shape))]
            assert ids(table, predicate) == expected, box
            pruned += 4 - files(table, predicate)
    return pruned


@pytest.mark.parametrize("kind", GEO)
def test_no_row_is_lost_by_boxes(kind: str) -> None:
    rng = np.random.default_rng(31)
    pruned = [check_random(version, file_format, kind, rng, 1, 8) for version in VERSIONS for file_format in FORMATS]
    assert sum(pruned)


@pytest.mark.deep
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", GEO)
@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("version", VERSIONS)
def test_no_row_is_lost_by_many_boxes(version: int, file_format: str, kind: str) -> None:
    rng = np.random.default_rng(32)
    tables = 10
    cases = len(VERSIONS) * len(FORMATS) * len(GEO) * tables
    assert check_random(version, file_format, kind, rng, tables, -(-DEEP // cases))


# -- what is refused


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("st_intersects(g, 1, 2, 3)", "four numbers"),
        ("st_intersects(g, 1, 2, 3, 'x')", "four numbers"),
        ("st_intersects(g, 1, 2, 3, 4, 'EPSG:3857')", "CRS 'EPSG:3857', and the column in 'OGC:CRS84'"),
        ("st_intersects(g, 1, 2, 3, 4, 5)", "four numbers"),
        ("st_intersects(g, 1, 5, 3, 4)", "ymin 5.0 above ymax 4.0"),
        ("st_intersects(g, 3, 1, 1, 4)", "only in a geography"),
        ("st_intersects(id, 1, 2, 3, 4)", "only geometry and geography have shapes"),
        ("st_intersects(5, 1, 2, 3, 4)", "four numbers"),
        ("g = 'POINT (1 2)'", "only be tested for null and by st_intersects"),
    ],
)
def test_calls_that_cannot_be_meant_are_refused(text: str, problem: str) -> None:
    table = new_table(3, "parquet", "geometry")
    add(table, 0, [point(1, 2)])
    with pytest.raises(errors.InvalidExpressionError, match=problem):
        table.scan(text).to_arrow()


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("kind", GEO)
def test_ewkb_is_refused_when_written(kind: str, file_format: str) -> None:
    table = new_table(3, file_format, kind)
    ewkb = shapely.to_wkb(shapely.set_srid(shapely.Point(1, 2), 4326), include_srid=True)
    with pytest.raises(errors.InvalidValueError, match=r"column 'g', row 1.*EWKB.*ST_AsBinary"):
        add(table, 0, [point(1, 2), ewkb])
    assert table.current_snapshot() is None


def test_a_call_is_its_own_text() -> None:
    for text in ("st_intersects(g, 1, 2, 3, 4)", "not st_intersects(g, 1.5, -2, 1e3, 4, 'OGC:CRS84')"):
        predicate = parse_expression(text)
        assert parse_expression(str(predicate)) == predicate
        assert parse_expression(str(~predicate)) == ~predicate


@pytest.mark.commits_wrong_files
@pytest.mark.parametrize("kind", ["geometry", "geography"])
def test_shapes_that_are_not_whole_are_refused_and_named_in_files_of_others(kind: str, tmp_path: Any) -> None:
    catalog = icefloe.load_catalog("lake", type="memory", warehouse=str(tmp_path / "lake"))
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", f"id long, g {kind}", properties={"format-version": "3"})
    good = wkt_to_wkb("POINT (1 1)")
    for bad in (good + b"x", good[:5], wkt_to_wkb("MULTIPOINT (1 1, 2 2)")[:-1]):
        with pytest.raises(errors.InvalidValueError, match="column 'g', row 1: WKB"):
            table.append(pa.table({"id": [1, 2], "g": pa.array([good, bad], pa.binary())}))
    path = tmp_path / "foreign.parquet"
    pq.write_table(pa.table({"id": pa.array([1]), "g": pa.array([good + b"x"], pa.binary())}), path)
    table.add_files([str(path)])
    with pytest.raises(
        errors.CorruptFileError, match=r"foreign\.parquet: a value that the filter needs.*1 bytes after its end"
    ):
        table.scan("st_intersects(g, 0, 0, 2, 2)").to_arrow()
    assert table.scan("id = 1").to_arrow().num_rows == 1
