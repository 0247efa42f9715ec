"""Which tables a statement scans, and as of when: targets, temporary views and cached rows."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException

from icefloe import load_catalog
from icefloe.errors import InvalidInputError, NoSuchTableError
from icefloe.manifests import ManifestColumns, ManifestFile, of_snapshot
from icefloe.spark.session import Session
from icefloe.spark.sql.names import Source
from tests.shared_rows import sorted_rows


@pytest.fixture(scope="module")
def ice(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("scans")
    catalog = load_catalog("scanned", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=str(folder))
    catalog.create_namespace("db")
    yield Session(spark, {"scanned": catalog})
    spark.sql("USE spark_catalog.default")


def test_the_target_of_a_change_is_not_scanned_as_a_query_would(ice: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    ice.sql("CREATE TABLE db.target AS SELECT id, id AS v FROM range(4)").collect()
    ice.sql("CREATE TABLE db.other AS SELECT id FROM range(2)").collect()
    read: list[str] = []

    def frame(source: Source, metadata_columns: Sequence[str] = ()) -> Any:
        read.append(source.identifier[-1])
        return ice._source_frame(source, metadata_columns)

    monkeypatch.setattr(ice._door, "_read", frame)
    ice.sql("UPDATE db.target SET v = 10 WHERE id IN (SELECT id FROM db.other)").collect()
    ice.sql("DELETE FROM db.target t WHERE t.id = (SELECT max(id) FROM db.target)").collect()
    assert read == ["other", "target"]
    ice.sql(
        "MERGE INTO db.target t USING db.other s ON t.id = s.id + 1 WHEN MATCHED THEN UPDATE SET v = t.v + 1"
    ).collect()
    assert read == ["other", "target", "other"]
    assert sorted_rows(ice, "SELECT * FROM db.target") == [(0, 10), (1, 11), (2, 3)]


# -- temporary views


def test_a_temporary_view_shows_what_its_table_has_now(ice: Session) -> None:
    spark, table = ice.spark, "scanned.db.viewed"
    ice.sql("CREATE TABLE db.viewed AS SELECT 1 AS id").collect()
    spark.sql(f"CREATE TEMP VIEW fresh AS SELECT * FROM {table}")
    spark.sql(f"CREATE GLOBAL TEMP VIEW fresh AS SELECT * FROM {table}")
    spark.sql("CREATE TEMP VIEW over_views (a) AS WITH c AS (SELECT id FROM fresh) SELECT id + 10 FROM c")

    def shown() -> list[Any]:
        names = ("fresh", "global_temp.fresh", "over_views")
        assert [sorted(spark.table(each).collect()) for each in names] == [
            sorted(spark.sql(f"TABLE {each}").collect()) for each in names
        ]
        return [[each for (each,) in sorted_rows(spark, f"TABLE {name}")] for name in names]

    assert shown() == [[1], [1], [11]]
    ice.sql("INSERT INTO db.viewed VALUES (2)").collect()
    assert shown() == [[1, 2], [1, 2], [11, 12]]
    ice.sql("DELETE FROM db.viewed WHERE id = 1").collect()
    assert shown() == [[2], [2], [12]]
    # The columns of a view are those of its making, and so are their types.
    ice.sql("ALTER TABLE db.viewed ADD COLUMN more INT").collect()
    ice.load_table("db.viewed").append(pa.table({"id": pa.array([3], pa.int32()), "more": pa.array([1], pa.int32())}))
    assert shown() == [[2, 3], [2, 3], [12, 13]]
    ice.sql("ALTER TABLE db.viewed ALTER COLUMN id TYPE BIGINT").collect()
    with pytest.raises(AnalysisException, match="CANNOT_UP_CAST_DATATYPE"):
        spark.sql("TABLE fresh")
    ice.sql("DROP TABLE db.viewed").collect()
    with pytest.raises(NoSuchTableError, match=r"no table or view db\.viewed"):
        spark.sql("TABLE over_views")
    ice.sql("CREATE TABLE db.viewed AS SELECT 7 AS id").collect()
    assert shown() == [[7], [7], [17]]


def test_a_temporary_view_finds_the_names_of_where_it_was_made(ice: Session) -> None:
    spark = ice.spark
    ice.sql("CREATE TABLE db.near AS SELECT 1 AS id").collect()
    ice.sql("CREATE VIEW db.kept AS SELECT id FROM db.near").collect()
    spark.sql("CREATE OR REPLACE TEMP VIEW nearby AS SELECT 100 AS id")
    spark.sql("USE scanned.db")
    try:
        spark.sql("CREATE OR REPLACE TEMP VIEW here AS SELECT id FROM near UNION ALL SELECT id FROM nearby")
        spark.sql("CREATE OR REPLACE TEMP VIEW of_kept AS SELECT id FROM kept")
        # What comes to have these names later is not what the view was made of.
        spark.sql("CREATE TEMP VIEW near AS SELECT 1000 AS id")
        spark.sql("CREATE TABLE nearby AS SELECT 2000 AS id")
        assert sorted_rows(spark, "TABLE here") == [(1,), (100,)]
        assert "Location" not in [row[0] for row in spark.sql("DESCRIBE EXTENDED near").collect()]
        spark.sql("USE spark_catalog.default")
        spark.sql("INSERT INTO scanned.db.near VALUES (2)").collect()
        assert sorted_rows(spark, "TABLE here") == [(1,), (100,), (2,)]
        assert sorted_rows(spark, "TABLE of_kept") == [(1,), (2,)]
        spark.sql("USE scanned.db")
        spark.sql("ALTER VIEW here AS SELECT id + 1 AS i FROM nearby")
        assert sorted_rows(spark, "TABLE here") == [(101,)]
        spark.sql("DROP VIEW here")
        assert not spark.catalog.tableExists("here")
    finally:
        spark.sql("USE spark_catalog.default")
        for name in ("near", "nearby", "of_kept"):
            spark.catalog.dropTempView(name)


def test_a_view_of_a_frame_shows_what_its_table_has_now(ice: Session) -> None:
    spark = ice.spark
    ice.sql("CREATE TABLE db.framed AS SELECT 1 AS id, 'a' AS v").collect()
    held = ice.table("db.framed")
    held.filter("id < 100").groupBy("v").count().createOrReplaceTempView("counted")
    ice.sql("SELECT t.v, t.id FROM db.framed t JOIN db.framed s ON t.id = s.id").createOrReplaceTempView("joined")
    ice.table("db.framed", ref="main").createOrReplaceGlobalTempView("whole")
    spark.sql("CREATE TEMP VIEW over_frame AS SELECT count FROM counted")
    ice.table("db.framed", snapshot_id=ice.load_table("db.framed").snapshots()[0].snapshot_id).createTempView("past")
    ice.sql("INSERT INTO db.framed VALUES (2, 'b'), (200, 'b')").collect()
    ice.sql("DELETE FROM db.framed WHERE id = 1").collect()
    ice.sql("ALTER TABLE db.framed ADD COLUMN more INT FIRST").collect()
    assert sorted_rows(spark, "TABLE counted") == [("b", 1)]
    assert sorted_rows(spark, "SELECT one.v, one.id FROM joined one JOIN joined two USING (id)") == [
        ("b", 2),
        ("b", 200),
    ]
    assert sorted_rows(spark, "SELECT id FROM global_temp.whole WHERE v IN (SELECT v FROM counted)") == [(2,), (200,)]
    assert sorted_rows(spark, "TABLE over_frame") == [(1,)]
    # A frame itself, and what is chosen by a snapshot, stay what they are.
    assert sorted_rows(spark, "TABLE past") == [(1, "a")]
    assert held.collect() == spark.sql("SELECT * FROM {held}", held=held).collect() == [(1, "a")]
    ice.sql("ALTER TABLE db.framed ALTER COLUMN id TYPE BIGINT").collect()
    with pytest.raises(InvalidInputError, match=r"view joined .* 'id' was int and is bigint; create the view again"):
        spark.sql("TABLE joined")
    for name in ("counted", "joined", "over_frame", "past"):
        spark.catalog.dropTempView(name)
    spark.catalog.dropGlobalTempView("whole")


# -- cached rows


def test_what_is_cached_under_a_name_is_of_the_newest_snapshot(ice: Session) -> None:
    spark, table = ice.spark, "scanned.db.cached"
    ice.sql("CREATE TABLE db.cached AS SELECT 1 AS id").collect()
    spark.sql(f"CREATE OR REPLACE TEMP VIEW passing AS SELECT id + 1 AS i FROM {table}")

    def from_memory(name: str) -> list[Any] | None:
        frame = spark.sql(f"TABLE {name}")
        plan = frame._jdf.queryExecution().executedPlan().toString()
        return sorted(each for (each,) in frame.collect()) if "InMemoryRelation" in plan else None

    spark.sql("USE scanned.db")
    spark.sql("CACHE TABLE cached")
    spark.sql("USE spark_catalog.default")
    spark.sql("CACHE LAZY TABLE passing OPTIONS ('storageLevel' = 'DISK_ONLY')")
    spark.sql(f"CACHE TABLE chosen AS SELECT id FROM {table} WHERE id > 1")
    assert [from_memory(each) for each in (table, "passing", "chosen")] == [[1], [2], []]
    ice.sql("INSERT INTO db.cached VALUES (5)").collect()
    assert [from_memory(each) for each in (table, "passing", "chosen")] == [[1, 5], [2, 6], [5]]
    # What others commit is seen at once, and held again when that is asked for.
    ice.load_table("db.cached").append(pa.table({"id": pa.array([7], pa.int32())}))
    assert sorted_rows(spark, f"TABLE {table}") == [(1,), (5,), (7,)]
    assert from_memory(table) is None
    spark.sql(f"REFRESH TABLE {table}")
    assert [from_memory(each) for each in (table, "passing", "chosen")] == [[1, 5, 7], [2, 6, 8], [5, 7]]
    spark.sql(f"UNCACHE TABLE {table}")
    assert from_memory(table) is None
    assert from_memory("passing") == [2, 6, 8]
    ice.sql("DROP TABLE db.cached").collect()
    spark.sql(f"UNCACHE TABLE IF EXISTS {table}")
    for text in ("UNCACHE TABLE", "REFRESH TABLE", "CACHE TABLE"):
        with pytest.raises(NoSuchTableError):
            spark.sql(f"{text} {table}")
    assert spark._jsparkSession.sharedState().cacheManager().isEmpty()


# -- views that are kept


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("SELECT id FROM db.cycle_b", "scanned.db.cycle_a -> scanned.db.cycle_b -> scanned.db.cycle_a"),
        ("SELECT id FROM db.cycle_a", "scanned.db.cycle_a -> scanned.db.cycle_a"),
        ("WITH c AS (SELECT id FROM db.cycle_b) SELECT * FROM c WHERE id IN (SELECT id FROM c)", "would be part of itself"),
        ("SELECT 1 AS id WHERE 1 IN (SELECT id FROM passing)", "temporary view passing only exists in this one"),
        ("SELECT passing_function(1) AS id", "temporary function passing_function only exists in this one"),
    ],
)  # fmt: skip
def test_views_that_could_not_be_read_are_refused(ice: Session, query: str, problem: str) -> None:
    ice.sql("CREATE VIEW IF NOT EXISTS db.cycle_a AS SELECT 1 AS id").collect()
    ice.sql("CREATE VIEW IF NOT EXISTS db.cycle_b AS SELECT id FROM db.cycle_a").collect()
    ice.spark.sql("CREATE OR REPLACE TEMP VIEW passing AS SELECT 1 AS id")
    ice.spark.udf.register("passing_function", lambda value: value, "int")
    for statement in ("CREATE OR REPLACE VIEW", "ALTER VIEW"):
        with pytest.raises(InvalidInputError, match=problem):
            ice.sql(f"{statement} db.cycle_a AS {query}")
    assert sorted_rows(ice, "TABLE db.cycle_b") == [(1,)]


def test_a_cycle_that_another_program_made_is_told(ice: Session) -> None:
    ice.sql("CREATE VIEW db.round_a AS SELECT 1 AS id").collect()
    ice.sql("CREATE VIEW db.round_b AS SELECT id FROM db.round_a").collect()
    view = ice.catalog.load_view("db.round_a")
    ice.catalog.views.replace("db.round_a", view.schema(), {"spark": "SELECT id FROM scanned.db.round_b"})
    with pytest.raises(InvalidInputError, match=r"round_a -> scanned.db.round_b -> scanned.db.round_a"):
        ice.sql("TABLE db.round_a")
    # A name of a common table expression may be that of a temporary view.
    ice.spark.sql("CREATE OR REPLACE TEMP VIEW passing AS SELECT 1 AS id")
    ice.sql("CREATE VIEW db.own_name AS WITH passing AS (SELECT 2 AS id) SELECT * FROM passing").collect()
    assert sorted_rows(ice, "TABLE db.own_name") == [(2,)]


# -- what is told of tables


def test_a_table_whose_name_two_catalogs_have_is_told_by_its_own(ice: Session, tmp_path: Path) -> None:
    other = load_catalog("elsewhere", type="sql", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path))
    other.create_namespace("db")
    both = Session(ice.spark, {**ice.catalogs, "elsewhere": other})
    for name in ("scanned", "elsewhere"):
        both.sql(f"CREATE TABLE {name}.db.twin (id INT)").collect()
        told = {row[0]: row[1] for row in both.sql(f"DESCRIBE EXTENDED {name}.db.twin").collect()}
        assert told["Name"] == f"{name}.db.twin"
        assert str(told["Location"]) == both.load_table(f"{name}.db.twin").location()
        assert f"CREATE TABLE {name}.db.twin (" in both.sql(f"SHOW CREATE TABLE {name}.db.twin").collect()[0][0]


def test_tables_are_shown_with_all_that_is_known_of_them(ice: Session) -> None:
    ice.sql("CREATE NAMESPACE shown").collect()
    ice.sql("CREATE TABLE shown.one (id INT NOT NULL) COMMENT 'the first' TBLPROPERTIES ('a' = 'b')").collect()
    ice.sql("CREATE TABLE shown.two (id INT)").collect()
    ice.spark.sql("CREATE OR REPLACE TEMP VIEW one_passing AS SELECT 1 AS id")
    found = ice.sql("SHOW TABLE EXTENDED IN scanned.shown LIKE 'one*'").collect()
    assert [tuple(row)[:3] for row in found] == [("shown", "one", False), ("", "one_passing", True)]
    location = ice.load_table("shown.one").location()
    lines = found[0]["information"].splitlines()
    for line in (
        "Catalog: scanned",
        "Comment: the first",
        f"Location: {location}",
        " |-- id: integer (nullable = false)",
    ):
        assert line in lines
    assert any(line.startswith("Table Properties: [a=b,") for line in lines)


# -- tables that take the place of others


def test_rows_of_a_replaced_table_are_an_overwrite(ice: Session) -> None:
    def operations(name: str) -> list[Any]:
        return [(each.operation, each.parent_snapshot_id) for each in ice.load_table(name).snapshots()]

    ice.sql("CREATE TABLE db.replaced AS SELECT 1 AS id").collect()
    ice.sql("CREATE OR REPLACE TABLE db.replaced AS SELECT 'x' AS id").collect()
    ice.sql("REPLACE TABLE db.replaced AS SELECT true AS id").collect()
    ice.write(ice.spark.range(1)).to("db.replaced").create_or_replace()
    assert operations("db.replaced") == [("append", None), *[("overwrite", None)] * 3]
    assert ice.load_table("db.replaced").verify(level="data").clean
    ice.sql("CREATE OR REPLACE TABLE db.not_there AS SELECT 1 AS id").collect()
    assert operations("db.not_there") == [("overwrite", None)]


def test_statements_read_a_manifest_once(ice: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them loads its table anew, but manifests never change; a handle that is loaded in Python reads for itself."""
    ice.sql("CREATE TABLE db.read_again (id INT)")
    ice.sql("INSERT INTO db.read_again VALUES (1), (2)")
    query = "SELECT * FROM db.read_again WHERE id > 1"
    assert len(ice.sql(query).collect()) == 1
    read: list[str] = []
    real = of_snapshot.read_manifest

    def noted(manifest: ManifestFile, *arguments: Any, **named: Any) -> ManifestColumns:
        read.append(manifest.manifest_path)
        return real(manifest, *arguments, **named)

    monkeypatch.setattr(of_snapshot, "read_manifest", noted)
    assert len(ice.sql(query).collect()) == 1
    assert read == []
    assert ice.catalog.load_table("db.read_again").scan("id > 1").to_arrow().num_rows == 1
    assert len(read) == 1
