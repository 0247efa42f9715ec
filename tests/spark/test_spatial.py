"""st_intersects on Spark: in SQL, in row filters, and as a filter that files are chosen by; and the predicates of Sedona."""

import struct
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from icefloe.schema import GeoBox, types
from icefloe.spark import spatial
from icefloe.spark.catalyst import Node, NotUnderstood
from icefloe.spark.connect import connect
from icefloe.spark.engine import FIRST_WITH_VARIANT_MARKS
from icefloe.spark.gateway import is_at_least
from icefloe.spark.session import Session
from icefloe.table import Table
from tests.spark.reading import ENGINES, new_catalog, planned

KINDS = ("geometry", "geography", "geometry(EPSG:4326)")
"""The last one is no type of Spark's, so that it is shown as bytes."""
INSIDE = "st_intersects(g, 11, 0, 12.5, 9)"


def point(x: float, y: float) -> bytes:
    return struct.pack("<BIdd", 1, 1, x, y)


@pytest.fixture(scope="module")
def ice(spark: Any, tmp_path_factory: Any) -> Session:
    session = connect(new_catalog(tmp_path_factory.mktemp("spatial")), spark=spark)
    for number, kind in enumerate(KINDS):
        table = session.catalog.create_table(
            f"db.t{number}", f"id bigint, g {kind}, s struct<g: {kind}>", properties={"format-version": "3"}
        )
        for tile in range(3):
            shapes = [*(point(10 * tile + i, i) for i in range(5)), None]
            rows = {"id": range(10 * tile, 10 * tile + 6), "g": shapes, "s": [{"g": shape} for shape in shapes]}
            table.append(pa.table(rows))
    return session


@pytest.fixture(params=range(len(KINDS)), ids=KINDS)
def table(request: Any, ice: Session) -> Table:
    return ice.catalog.load_table(f"db.t{request.param}")


def ids(frame: Any) -> list[int]:
    return sorted(row.id for row in frame.select("id").collect())


def test_sql_finds_rows_and_leaves_out_files(ice: Session, table: Table) -> None:
    shown = ".".join(table.name()[-2:])
    assert ids(ice.sql(f"SELECT id FROM {shown} WHERE {INSIDE}")) == [11, 12]
    assert planned(ice, ice.sql(f"SELECT id, g FROM {shown} WHERE {INSIDE} AND id > -1")).result_data_files == 1
    # The name of Java's draft.
    assert ids(ice.sql(f"SELECT id FROM {shown} WHERE system.ST_Intersects(g, 11, 0, 12.5, 9)")) == [11, 12]
    assert ids(ice.sql(f"SELECT id FROM {shown} WHERE NOT st_intersects(g, -1, 0, 12.5, 9)")) == [
        13,
        14,
        *range(20, 25),
    ]
    answers = ice.sql(f"SELECT id, {INSIDE} AS met FROM {shown} WHERE id IN (11, 13, 15)").collect()
    assert {row.id: row.met for row in answers} == {11: True, 13: False, 15: None}


@pytest.mark.parametrize("engine", ENGINES)
def test_row_filters_find_rows_and_leave_out_files(ice: Session, table: Table, engine: str) -> None:
    if engine == "native" and not is_at_least(ice.spark, FIRST_WITH_VARIANT_MARKS):
        pytest.skip("the Parquet library of this Spark fails at geometries")
    options = {"read.engine": engine}
    nested = INSIDE.replace("g", "s.g")
    for text, expected in (
        (INSIDE, [11, 12]),
        (nested, [11, 12]),
        (f"({INSIDE}) is not true and id between 11 and 15", [13, 14, 15]),
    ):
        assert ids(ice.table(table.name(), row_filter=text, options=options)) == expected


def test_rows_are_deleted_by_where_they_are(ice: Session) -> None:
    table = ice.catalog.create_table("db.deleted", "id bigint, g geometry", properties={"format-version": "3"})
    for tile in range(2):
        table.append(pa.table({"id": range(5 * tile, 5 * tile + 5), "g": [point(5 * tile + i, 0) for i in range(5)]}))
    ice.sql("DELETE FROM db.deleted WHERE st_intersects(g, 3, 0, 6, 0)").collect()
    assert ids(ice.table("db.deleted")) == [0, 1, 2, 7, 8, 9]


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        ("st_intersects(id, 1, 2, 3, 4)", "not a known geometry or geography"),
        ("st_intersects(g, id, 2, 3, 4)", "not a constant"),
        ("st_intersects(g, 'a', 2, 3, 4)", "must be numbers"),
        ("st_intersects(g, 1, 2, 3, 4, 'EPSG:3857')", "transform the box"),
        ("st_intersects(g, 1, 4, 3, 2)", "ymin 4.0 above ymax 2.0"),
        ("system.st_intersects(g, 1, 4)", "3 arguments are given"),
    ],
)
def test_wrong_calls_say_what_is_wrong(ice: Session, call: str, problem: str) -> None:
    with pytest.raises(PySparkException, match=problem):
        ice.sql(f"SELECT id FROM db.t0 WHERE {call}").collect()


# -- Sedona, by the names of its classes


class Constant:
    """A foldable expression, or one that is not."""

    def __init__(self, is_foldable: bool) -> None:
        self.foldable = lambda: is_foldable


def node(name: str, *children: Node, foldable: bool = False) -> Node:
    return Node(name, {"class": name}, children, lambda: Constant(foldable))


SEDONA = "org.apache.spark.sql.sedona_sql.expressions."
COLUMN = node("AttributeReference")
GEOMETRY = types.NestedField(1, "g", types.GeometryType())
CONSTANT = node("Literal", foldable=True)


def field_of(asked: Node) -> types.NestedField:
    assert asked is COLUMN
    return GEOMETRY


@pytest.mark.parametrize("name", sorted(spatial._SEDONA_MEETINGS))
def test_predicates_of_sedona_are_known_by_name(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    box = GeoBox(1, 2, 3, 4)
    monkeypatch.setattr(spatial, "_envelope", lambda _: box)  # only Sedona's own classes read its constants
    read = node(f"{SEDONA}ST_GeomFromWKB", COLUMN)
    for sides in ((read, CONSTANT), (CONSTANT, read), (COLUMN, CONSTANT)):
        assert spatial.box_of(node(f"{SEDONA}{name}", *sides), field_of) == (GEOMETRY, box)
    with pytest.raises(NotUnderstood):
        spatial.box_of(node(f"{SEDONA}{name}", read, COLUMN), field_of)
    with pytest.raises(NotUnderstood):
        spatial.box_of(
            node(f"{SEDONA}{name}", read, CONSTANT), lambda _: types.NestedField(1, "g", types.GeographyType())
        )


def test_what_does_not_imply_that_shapes_meet_says_nothing() -> None:
    for name in (f"{SEDONA}ST_Disjoint", f"{SEDONA}ST_DWithin", "ST_Intersects", "com.other.ST_Intersects"):
        assert spatial.box_of(node(name, COLUMN, CONSTANT), field_of) is None
