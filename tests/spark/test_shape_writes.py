"""Geometries in files of Spark's own writer: with the types, values and boxes that our writer gives them, and only whole WKB."""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icefloe.errors import InvalidValueError
from icefloe.schema import bounding_box, decode_bound, types
from icefloe.schema.wkb import check_wkb, wkt_to_wkb
from icefloe.spark.connect import connect
from icefloe.spark.engine import why_not_written
from icefloe.spark.jvm import door
from icefloe.spark.session import Session
from icefloe.spark.shape_writes import FIRST_WITH_SHAPES
from icefloe.table import Table
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.geo_shapes import planar_shape, wkb
from tests.shared_rows import row_modes
from tests.spark.conftest import SPARK
from tests.spark.reading import ENGINES, new_catalog, plain_rows, spark_rows
from tests.spark.sessions import settings

WITH_SHAPES = [each for each in ALL_VERSIONS if allows(each, Feature.GEO_TYPES)]
KNOWS_SHAPES = SPARK >= FIRST_WITH_SHAPES
WRITERS = {"native": "true", "arrow": "false"}
"""By which writer geometries are written, as Java classes are in use or not."""
METRICS = ("value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")
ODD = (
    "POINT EMPTY",
    "POINT ZM (1 2 3 4)",
    "POINT M (1 2 3)",
    "POINT (NaN 5)",
    "POINT (Infinity 5)",
    "LINESTRING (NaN 0, 1 1, 5 5)",
    "LINESTRING (3 4)",
    "LINESTRING Z (1 2 NaN, 3 4 5)",
    "POLYGON ((0 0, 1 0, 1 1))",
    "POLYGON ((NaN 0, 1 0, 1 1, 7 8))",
    "POLYGON (EMPTY, (0 0, 1 0, 1 1, 0 0))",
    "MULTIPOINT (EMPTY, (1 2))",
    "GEOMETRYCOLLECTION (POINT Z (1 2 3), LINESTRING M (4 5 6, 7 8 9), GEOMETRYCOLLECTION EMPTY)",
    "TIN (((0 0, 1 0, 1 1, 0 0)))",
)
"""Shapes that the libraries of Spark and of Parquet for them refuse, change or leave out of boxes."""
GOOD = wkt_to_wkb("POINT (1 2)")
BROKEN = (
    GOOD[:-1],
    GOOD + b"\0",
    b"",
    b"POINT (1 2)",
    struct.pack("<BIIdd", 1, 1 | 1 << 29, 4326, 1, 2),
    struct.pack("<BII", 1, 2, 0xFFFFFFFF),
    struct.pack("<BII", 1, 4, 1) + wkt_to_wkb("LINESTRING Z (1 2 3, 4 5 6)"),
    struct.pack("<BII", 1, 7, 1) * 70 + GOOD,
)


@pytest.fixture(scope="module")
def ice(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    yield connect(new_catalog(tmp_path_factory.mktemp("shapes")), spark=spark)
    spark.sql("USE spark_catalog.default")


def new_table(ice: Session, name: str, columns: str, version: int = WITH_SHAPES[0], **more: Any) -> Table:
    properties = {"format-version": str(version), **more.pop("properties", {})}
    return ice.catalog.create_table(f"db.{name}", columns, properties=properties, **more)


def append_by(ice: Session, writer: str, frame: Any, table: Table) -> None:
    with settings(ice.spark, {door.ENABLED: WRITERS[writer]}):
        is_native = why_not_written(ice.spark, table.metadata) is None
        assert is_native is (writer == "native" and KNOWS_SHAPES)
        ice.write(frame).to(table.name()).append()
    table.refresh()


def footers(table: Table) -> list[Any]:
    return [pq.read_metadata(task.file.file_path.removeprefix("file://")) for task in table.scan().plan_files()]


def are_sparks(table: Table) -> bool:
    """Whether Spark's own writer made all files of the table."""
    return all(footer.created_by.startswith("parquet-mr") for footer in footers(table))


def about_files(table: Table) -> dict[Any, Any]:
    """By partition, what the manifest and the footer of its one file say."""
    found = {}
    for file in table.inspect.files().to_pylist():
        footer = pq.read_metadata(file["file_path"].removeprefix("file://"))
        boxes = [str(footer.row_group(0).column(index).geo_statistics).partition("\n")[2] for index in (2, 3)]
        metrics = {name: dict(file[name] or ()) for name in METRICS}
        schema = str(footer.schema).partition("\n")[2].partition("\n")[2]
        found[str(file["partition"])] = (file["record_count"], metrics, boxes, schema)
    return found


@pytest.mark.parametrize("version", WITH_SHAPES)
def test_both_writers_write_the_same(ice: Session, version: int) -> None:
    rng = np.random.default_rng(version)
    shapes = [*map(wkt_to_wkb, ODD), *(wkb(planar_shape(rng), rng) for _ in range(12))]
    rows = [(n, part, value, (value,)) for part, shape in enumerate(shapes) for n, value in enumerate((None, shape))]
    frame = ice.spark.createDataFrame(rows, "id bigint, part int, g binary, s struct<h: binary>").coalesce(1)
    tables = {}
    for writer in WRITERS:
        tables[writer] = table = new_table(
            ice,
            f"{writer}{version}",
            "id bigint, part int, g geometry(EPSG:25832), s struct<h: geometry(OGC:CRS27)>",
            version,
            partition_spec=["part"],
            # A page without any shape, and one with it.
            properties={"write.parquet.page-row-limit": "1"},
        )
        append_by(ice, writer, frame, table)
    native, arrow = tables.values()
    assert are_sparks(native) is KNOWS_SHAPES
    assert about_files(native) == about_files(arrow)
    expected = sorted(repr({"id": n, "part": part, "g": g, "s": {"h": h}}) for n, part, g, (h,) in rows)
    assert plain_rows(native) == plain_rows(arrow) == expected
    assert spark_rows(ice, native, "native" if KNOWS_SHAPES else "arrow") == expected


def test_every_row_group_has_its_box(ice: Session) -> None:
    table = new_table(
        ice,
        "groups",
        "id bigint, g geometry",
        properties={"write.parquet.row-group-size-bytes": "4000", "write.parquet.page-row-limit": "50"},
    )
    rows = [(n, None if n < 1200 or n % 3 else struct.pack("<BIdd", 1, 1, n, -n)) for n in range(3000)]
    with settings(ice.spark, {"parquet.validation": "true"}):
        append_by(ice, "native", ice.spark.createDataFrame(rows, "id bigint, g binary").coalesce(1), table)
    (footer,) = footers(table)
    assert footer.num_row_groups > 1
    at = 0
    for group in (footer.row_group(index) for index in range(footer.num_row_groups)):
        given = [value for _, value in rows[at : at + group.num_rows]]
        at += group.num_rows
        if (corners := bounding_box(given, types.GeometryType())) is not None:
            box = group.column(1).geo_statistics
            assert (box.xmin, box.ymin, box.xmax, box.ymax) == (
                corners[0].x,
                corners[0].y,
                corners[1].x,
                corners[1].y,
            )
    assert table.scan("st_intersects(g, 1500, -1510, 1510, -1500)").to_arrow()["id"].to_pylist() == [
        1500,
        1503,
        1506,
        1509,
    ]
    if KNOWS_SHAPES:
        assert footer.row_group(0).column(1).statistics.null_count == footer.row_group(0).num_rows
        (file,) = table.inspect.files().to_pylist()
        bounds = [dict(file[name])[2] for name in ("lower_bounds", "upper_bounds")]
        whole = bounding_box([value for _, value in rows], types.GeometryType())
        assert tuple(decode_bound(bound, types.GeometryType()) for bound in bounds) == whole


@pytest.mark.parametrize("writer", WRITERS)
def test_what_is_no_wkb_is_refused(ice: Session, writer: str) -> None:
    table = new_table(ice, f"refusing_{writer}", "g geometry, s struct<`h i`: geometry(EPSG:3857)>")
    # The rules are those of plain Python there.
    for number, value in enumerate(BROKEN if writer == "native" else BROKEN[:3]):
        with pytest.raises(InvalidValueError) as alone:
            check_wkb(value)
        column, row = ("g", (value, None)) if number % 2 else ("s.h i", (None, (value,)))
        frame = ice.spark.createDataFrame([(GOOD, (GOOD,)), row], "g binary, s struct<`h i`: binary>").coalesce(1)
        with pytest.raises(InvalidValueError) as caught:
            append_by(ice, writer, frame, table)
        assert str(caught.value) == f"column {column!r}, row 1: {alone.value}"
    with pytest.raises(InvalidValueError, match="column 'g' is string in the data"):
        append_by(ice, writer, ice.spark.sql("SELECT 'POINT (1 2)' g"), table)
    assert table.refresh().current_snapshot() is None
    data = Path((table.location() or "").removeprefix("file://")) / "data"
    assert not [each for each in data.rglob("*") if each.is_file()]


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_statements_change_rows_with_geometries(ice: Session, mode: str) -> None:
    columns = "id bigint, part int, g geometry, s struct<h: geometry(EPSG:25832)>"
    name = "changed_" + mode.replace("-", "_")
    t = f"db.{name}"
    table = new_table(ice, name, columns, partition_spec=["part"], sort_order=["id desc"], properties=row_modes(mode))
    expected = {n: (n % 3, struct.pack("<BIdd", 1, 1, n, -n)) for n in range(12)}
    rows = [(n, part, value, (value,)) for n, (part, value) in expected.items()]
    frame = ice.spark.createDataFrame(rows, "id bigint, part int, g binary, s struct<h: binary>")
    append_by(ice, "native", frame, table)
    new = wkt_to_wkb("LINESTRING (50 60, 70 80)")
    # Spark's own type where it has one.
    is_shown = dict(ice.table(t).dtypes)["g"] != "binary"
    told = f"st_geomfromwkb(X'{new.hex()}', 4326)" if is_shown else f"X'{new.hex()}'"
    ice.sql(f"DELETE FROM {t} WHERE id = 5")
    ice.sql(f"UPDATE {t} SET part = 7 WHERE id IN (1, 2)")
    ice.sql(f"UPDATE {t} SET g = {told} WHERE id = 3")
    ice.sql(
        f"""MERGE INTO {t} t USING (SELECT id + 8 AS id, {told} AS g FROM range(6)) s ON t.id = s.id
        WHEN MATCHED AND s.id = 8 THEN DELETE WHEN MATCHED THEN UPDATE SET g = s.g
        WHEN NOT MATCHED THEN INSERT (id, part, g, s) VALUES (s.id, 0, s.g, null)"""
    )
    ice.sql(f"INSERT INTO {t} SELECT id + 100, part, g, s FROM {t} WHERE id = 3")
    table.refresh()
    own: dict[int, tuple[int, bytes, bytes | None]] = {
        n: (part, value, value) for n, (part, value) in expected.items() if n not in (5, 8)
    }
    for n in (1, 2):
        own[n] = (7, *own[n][1:])
    for n in (3, 9, 10, 11):
        own[n] = (own[n][0], new, own[n][2])
    own |= {12: (0, new, None), 13: (0, new, None), 103: own[3]}
    found = table.scan().to_arrow().to_pylist()
    assert {row["id"]: (row["part"], row["g"], row["s"] and row["s"]["h"]) for row in found} == own
    asked = f"SELECT id, {'st_asbinary(g)' if is_shown else 'g'} AS g, s.h FROM {t}"
    assert {row.id: (row.g, row.h) for row in ice.sql(asked).collect()} == {n: each[1:] for n, each in own.items()}
    assert table.verify(level="data").ok
    assert are_sparks(table) is KNOWS_SHAPES


def test_streams_carry_geometries(ice: Session, tmp_path: Path) -> None:
    source, target = (new_table(ice, name, "id bigint, g geometry") for name in ("source", "target"))
    values = [struct.pack("<BIdd", 1, 1, n, n) for n in range(5)]
    source.append(pa.table({"id": range(5), "g": values}))
    write = ice.write_stream(ice.read_stream("db.source")).to("db.target").trigger(availableNow=True)
    write.option("checkpointLocation", str(tmp_path)).start().awaitTermination()
    assert plain_rows(target.refresh()) == plain_rows(source)
    assert are_sparks(target) is KNOWS_SHAPES


def test_geometries_beside_variants(ice: Session) -> None:
    table = new_table(
        ice, "variants", "id bigint, v variant, g geometry", properties={"write.parquet.shred-variants": "true"}
    )
    append_by(ice, "native", ice.spark.sql(f"SELECT 1L id, parse_json('{{\"a\": 1}}') v, X'{GOOD.hex()}' g"), table)
    (footer,) = footers(table)
    texts = str(footer.schema)
    assert "g (Geometry(crs=))" in texts
    assert "typed_value" in texts
    assert table.scan("st_intersects(g, 0, 0, 3, 3)").count() == 1
    for engine in ENGINES[not KNOWS_SHAPES :]:
        assert (
            ice.table("db.variants", options={"read.engine": engine})
            .selectExpr("variant_get(v, '$.a', 'int') a")
            .first()
            .a
            == 1
        )


def test_what_is_left_to_our_own_writer(ice: Session) -> None:
    for number, (columns, reason) in enumerate(
        (
            ("g geography", "no form for column 'g' of type geography"),
            ("s struct<g: geography>", "no form for column 's.g' of type geography"),
            ("l list<geometry>", "no form for column 'l' of type list"),
            ("g geometry", None if KNOWS_SHAPES else "column 'g' is a geometry: the Parquet library of Spark 4.0"),
        )
    ):
        table = new_table(ice, f"left{number}", columns)
        found = why_not_written(ice.spark, table.metadata)
        assert found is None if reason is None else reason in str(found)
    with settings(ice.spark, {door.ENABLED: "false"}):
        assert "'g' is a geometry" in str(why_not_written(ice.spark, table.metadata))
