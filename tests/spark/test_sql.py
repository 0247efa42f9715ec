"""SQL on tables: what each statement does, by `ice.sql` and by plain `spark.sql`, and whose error a mistake gives."""

import datetime
import re
import threading
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, ParseException, PySparkException

from icefloe import load_catalog
from icefloe.errors import (
    AlreadyExistsError,
    IcefloeError,
    IncompatibleChangeError,
    InvalidInputError,
    InvalidValueError,
    NoSuchColumnError,
    NoSuchNamespaceError,
    NoSuchSnapshotError,
    NoSuchTableError,
)
from icefloe.spark.session import Session
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.shared_rows import sql_rows

MODES = ("copy-on-write", "merge-on-read")


@pytest.fixture(scope="module")
def ice(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("sql")
    catalog = load_catalog("lake", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=str(folder))
    catalog.create_namespace("db")
    yield Session(spark, {"lake": catalog})
    spark.sql("USE spark_catalog.default")


def create(
    ice: Session, name: str, version: int = 3, mode: str = MODES[1], columns: str = "id BIGINT, v STRING, p INT"
) -> None:
    ice.sql(
        f"CREATE OR REPLACE TABLE db.{name} ({columns}) USING iceberg PARTITIONED BY (p) TBLPROPERTIES"
        f" ('format-version' = '{version}', 'write.delete.mode' = '{mode}', 'write.update.mode' = '{mode}',"
        f" 'write.merge.mode' = '{mode}')"
    )


# -- tables and namespaces


def test_a_table_is_made_as_its_statement_says(ice: Session) -> None:
    ice.sql(
        """CREATE TABLE IF NOT EXISTS db.made (id BIGINT NOT NULL COMMENT 'the key', s STRUCT<a: INT, b: STRING>,
           ts TIMESTAMP, d STRING DEFAULT 'x') USING iceberg PARTITIONED BY (days(ts), bucket(4, id), truncate(2, d))
           COMMENT 'all of it' TBLPROPERTIES ('format-version' = '3', 'a' = 'b')"""
    )
    table = ice.load_table("db.made")
    assert str(table.schema().find_type("ts")) == "timestamptz"
    assert table.schema().find_field("id").required
    assert table.schema().find_field("id").doc == "the key"
    assert table.schema().find_field("d").write_default == "x"
    assert [str(each.transform) for each in table.spec().fields] == ["day", "bucket[4]", "truncate[2]"]
    assert (table.format_version, table.properties["a"], table.properties["comment"]) == (3, "b", "all of it")
    ice.sql("CREATE TABLE IF NOT EXISTS db.made (other INT)")
    assert len(ice.load_table("db.made").schema()) == 4
    with pytest.raises(IcefloeError, match="already exists"):
        ice.sql("CREATE TABLE db.made (other INT)")
    shown = sql_rows(ice, "SHOW CREATE TABLE db.made")[0][0]
    ice.sql("CREATE TABLE db.again (id INT)")
    ice.sql("DROP TABLE db.again")
    ice.sql(re.sub(r"LOCATION '.*'", "", shown.replace("lake.db.made", "lake.db.again")))
    again = ice.load_table("db.again")
    assert again.schema().same_columns(table.schema())
    assert [str(each) for each in again.spec().fields] == [str(each) for each in table.spec().fields]
    ice.sql("CREATE TABLE db.like_it LIKE db.made")
    assert ice.load_table("db.like_it").schema().same_columns(table.schema())


def test_tables_from_queries(ice: Session) -> None:
    create(ice, "source")
    ice.sql("INSERT INTO db.source SELECT id, 'v', 1 FROM range(5)")
    ice.sql("CREATE TABLE db.copied PARTITIONED BY (p) AS SELECT id, p FROM db.source WHERE id > 1")
    assert sql_rows(ice, "SELECT id FROM db.copied ORDER BY id") == [(2,), (3,), (4,)]
    uuid = ice.load_table("db.copied").metadata.table_uuid
    ice.sql("CREATE OR REPLACE TABLE db.copied AS SELECT id + 10 AS id FROM db.copied")
    assert sql_rows(ice, "SELECT id FROM db.copied ORDER BY id") == [(12,), (13,), (14,)]
    assert ice.load_table("db.copied").metadata.table_uuid == uuid
    with pytest.raises(IcefloeError, match="nothing"):
        ice.sql("REPLACE TABLE db.nothing AS SELECT 1 AS a")
    with pytest.raises(Exception, match=r"CAST_INVALID|DIVIDE|cast"):
        ice.sql("CREATE TABLE db.failed AS SELECT CAST('x' || id AS INT) AS a FROM range(3)").collect()
    assert not ice.catalog.table_exists("db.failed")


def test_columns_are_altered(ice: Session) -> None:
    create(ice, "altered")
    ice.sql("INSERT INTO db.altered VALUES (1, 'a', 1)")
    for clause in (
        "ADD COLUMN e INT COMMENT 'new' AFTER id",
        "ADD COLUMNS (f INT DEFAULT 7, g STRUCT<x: INT>)",
        "ADD COLUMN g.y DOUBLE FIRST",
        "RENAME COLUMN v TO vv",
        "ALTER COLUMN e TYPE BIGINT",
        "ALTER COLUMN e COMMENT 'other'",
        "ALTER COLUMN f FIRST",
        "ALTER COLUMN vv SET DEFAULT 'zz'",
        "DROP COLUMN IF EXISTS nowhere",
    ):
        ice.sql(f"ALTER TABLE db.altered {clause}")
    schema = ice.load_table("db.altered").schema()
    assert [each.name for each in schema.fields] == ["f", "id", "e", "vv", "p", "g"]
    assert (str(schema.find_type("e")), schema.find_field("e").doc) == ("long", "other")
    assert sql_rows(ice, "SELECT f, vv, g FROM db.altered") == [(7, "a", None)]
    ice.sql("INSERT INTO db.altered (id, p) VALUES (2, 2)")
    assert sql_rows(ice, "SELECT vv, f FROM db.altered WHERE id = 2") == [("zz", 7)]
    ice.sql("ALTER TABLE db.altered ALTER COLUMN vv DROP DEFAULT")
    ice.sql("ALTER TABLE db.altered DROP COLUMNS (e, g)")
    assert [each.name for each in ice.load_table("db.altered").schema().fields] == ["f", "id", "vv", "p"]
    with pytest.raises(NoSuchColumnError, match="nowhere"):
        ice.sql("ALTER TABLE db.altered DROP COLUMN nowhere")
    with pytest.raises(IcefloeError, match="id"):
        ice.sql("ALTER TABLE db.altered ALTER COLUMN id TYPE INT")


def test_properties_extensions_and_refs(ice: Session) -> None:
    create(ice, "settings", 2)
    ice.sql("INSERT INTO db.settings VALUES (1, 'a', 1)")
    ice.sql("ALTER TABLE db.settings SET TBLPROPERTIES ('x' = 'y', 'format-version' = '3')")
    ice.sql("ALTER TABLE db.settings UNSET TBLPROPERTIES IF EXISTS ('x', 'z')")
    ice.sql("ALTER TABLE db.settings ADD PARTITION FIELD bucket(4, id) AS shard")
    ice.sql("ALTER TABLE db.settings WRITE ORDERED BY id DESC")
    ice.sql("ALTER TABLE db.settings CREATE BRANCH audit RETAIN 7 DAYS")
    ice.sql("ALTER TABLE db.settings CREATE TAG v1")
    table = ice.load_table("db.settings")
    assert table.format_version == 3
    assert "x" not in table.properties
    assert [each.name for each in table.spec().fields] == ["p", "shard"]
    assert set(table.refs()) == {"main", "audit", "v1"}
    ice.sql("INSERT INTO db.settings.branch_audit VALUES (2, 'b', 2)")
    assert sql_rows(ice, "SELECT count(*) FROM db.settings") == [(1,)]
    assert sql_rows(ice, "SELECT count(*) FROM db.settings VERSION AS OF 'audit'") == [(2,)]
    assert sql_rows(ice, "SELECT count(*) FROM db.settings.branch_audit") == [(2,)]
    ice.sql("DELETE FROM db.settings.branch_audit WHERE id = 1")
    assert sql_rows(ice, "SELECT id FROM db.settings.branch_audit") == [(2,)]
    done = ice.sql("CALL system.fast_forward('db.settings', 'main', 'audit')").collect()[0]
    assert done["branch_updated"] == "main"
    assert sql_rows(ice, "SELECT id FROM db.settings") == [(2,)]
    assert sql_rows(ice, "SELECT id FROM db.settings.tag_v1") == [(1,)]
    with pytest.raises(InvalidInputError, match="DAYS, HOURS or MINUTES"):
        ice.sql("ALTER TABLE db.settings CREATE BRANCH c RETAIN 7 WEEKS")


SCOPES = {
    "WITH t AS (SELECT a + 1 AS a FROM t) SELECT a FROM t": [(2,)],
    "WITH u AS (SELECT a + 2 AS a FROM t), t AS (SELECT 9 AS a) SELECT u.a, t.a FROM t, u": [(3, 9)],
    "WITH t AS (SELECT 5 AS a), u AS (SELECT a FROM t) SELECT a FROM u": [(5,)],
    "SELECT t.a, x.a FROM t, (WITH t AS (SELECT 7 AS a) SELECT a FROM t) x": [(1, 7)],
    "SELECT a FROM t WHERE a IN (WITH t AS (SELECT 1 AS a) SELECT a FROM t)": [(1,)],
    "WITH t AS (SELECT 5 AS a) SELECT (WITH t AS (SELECT a + 1 AS a FROM t) SELECT a FROM t) AS a, t.a FROM t": [
        (6, 5)
    ],
    "WITH t AS (SELECT 5 AS a) SELECT a FROM t UNION ALL SELECT a FROM lake.other.t ORDER BY a": [(1,), (5,)],
}
"""Queries where `t` is a table whose only row has 1, or an expression of that name, by where it stands."""


def test_namespaces_and_what_is_current(ice: Session, spark: Any) -> None:
    ice.sql("CREATE NAMESPACE IF NOT EXISTS lake.other COMMENT 'c' WITH DBPROPERTIES ('a' = 'b')")
    assert ("other",) in sql_rows(spark, "SHOW NAMESPACES IN lake")
    described = dict(sql_rows(spark, "DESCRIBE NAMESPACE EXTENDED lake.other"))
    assert (described["Comment"], described["Properties"]) == ("c", "((a,b))")
    spark.sql("CREATE TABLE lake.other.t AS SELECT 1 AS a")
    assert sql_rows(spark, "SHOW TABLES IN lake.other") == [("other", "t", False)]
    try:
        spark.sql("USE lake.other")
        assert sql_rows(spark, "SHOW CURRENT NAMESPACE") == [("lake", "other")]
        assert sql_rows(spark, "SELECT a FROM t") == [(1,)]
        for text, found in SCOPES.items():
            assert sql_rows(spark, text) == found, text
        assert sql_rows(spark, "SHOW TABLES LIKE 't*'") == [("other", "t", False)]
        with pytest.raises(NoSuchNamespaceError, match="nowhere"):
            spark.sql("USE lake.nowhere")
    finally:
        spark.sql("USE spark_catalog.default")
    with pytest.raises(IcefloeError, match="is not empty"):
        spark.sql("DROP NAMESPACE lake.other")
    spark.sql("DROP NAMESPACE lake.other CASCADE")
    spark.sql("DROP NAMESPACE IF EXISTS lake.other")
    assert ("other",) not in sql_rows(spark, "SHOW NAMESPACES IN lake")


# -- queries


def test_queries_of_all_shapes(ice: Session, spark: Any) -> None:
    create(ice, "q")
    ice.sql("INSERT INTO db.q SELECT id, concat('v', id), CAST(id % 3 AS INT) FROM range(9)")
    spark.createDataFrame([(1, "one")], "id long, name string").createOrReplaceTempView("names")
    assert sql_rows(ice, "WITH q AS (SELECT * FROM db.q WHERE id > 6) SELECT id FROM q ORDER BY id") == [(7,), (8,)]
    assert sql_rows(spark, "SELECT lake.db.q.id FROM lake.db.q WHERE id IN (SELECT max(id) FROM lake.db.q)") == [(8,)]
    assert sql_rows(ice, "SELECT a.id, n.name FROM db.q a JOIN names n ON a.id = n.id") == [(1, "one")]
    assert sql_rows(ice, "SELECT count(*) FROM db.q a JOIN db.q b ON a.id = b.id + 1") == [(8,)]
    assert sql_rows(ice, "SELECT (SELECT max(id) FROM db.q) AS m") == [(8,)]
    assert sql_rows(ice, "SELECT id FROM db.q WHERE id = :wanted", args={"wanted": 4}) == [(4,)]
    assert sql_rows(ice, "SELECT id FROM db.q WHERE id = ?", args=[5]) == [(5,)]
    assert sql_rows(ice, "SELECT operation FROM db.q.snapshots") == [("append",)]
    assert sql_rows(ice, "SELECT count(DISTINCT _file), max(_pos) FROM db.q") == [(3, 2)]
    assert ice.sql("SELECT *, _file FROM db.q").columns == ["id", "v", "p", "_file"]
    assert ice.sql("SELECT q.*, '_file' AS said FROM db.q").columns == ["id", "v", "p", "said"]
    assert "db.q" in sql_rows(ice, "EXPLAIN SELECT * FROM db.q WHERE id > 3")[0][0]
    ice.sql("CREATE OR REPLACE TEMP VIEW some AS SELECT id FROM db.q WHERE p = 0")
    assert sql_rows(spark, "SELECT count(*) FROM some") == [(3,)]


def test_functions_of_catalogs(ice: Session, spark: Any) -> None:
    create(ice, "f", columns="id BIGINT, ts TIMESTAMP, v STRING, p INT")
    ice.sql("INSERT INTO db.f VALUES (34, TIMESTAMP '2017-11-16 22:31:08', 'iceberg', 1), (NULL, NULL, NULL, 2)")
    # The hashes are those of the spec, Appendix B.
    text = (
        "SELECT lake.system.bucket(100, id), lake.System.Bucket(100, v), lake.system.truncate(3, v), lake.system.truncate(10, id),"
        " lake.system.years(ts), lake.system.months(ts), lake.system.days(ts), lake.system.hours(ts) FROM lake.db.f ORDER BY p"
    )
    assert sql_rows(spark, text) == [
        (2017239379 % 100, 1210000089 % 100, "ice", 30, 47, 574, datetime.date(2017, 11, 16), 419686),
        (None,) * 8,
    ]
    assert sql_rows(ice, "SELECT p FROM db.f WHERE system.days(ts) = date('2017-11-16')") == [(1,)]
    found = ice.sql(
        "SELECT system.truncate(2Y, 5Y) AS a, system.bucket(8, 1S) AS b, `lake`.`system`.`truncate`(1, 1.25BD) AS c"
    )
    assert (found.dtypes, found.collect()[0]["a"]) == ([("a", "tinyint"), ("b", "int"), ("c", "decimal(3,2)")], 4)
    assert sql_rows(ice, "SELECT system.iceberg_version()")[0][0].startswith("icefloe ")
    for wrong, told in {
        "bucket(0, id)": "between 1 and",
        "bucket(p, id)": "must be a constant",
        "days(v)": "does not support columns of type string",
        "hours(ts, ts)": "takes 1 arguments",
    }.items():
        with pytest.raises(PySparkException, match=told):
            sql_rows(ice, f"SELECT system.{wrong} FROM db.f")
    with pytest.raises(AnalysisException, match="nothing"):
        ice.sql("SELECT system.nothing(1)")
    ice.sql("DELETE FROM db.f WHERE system.bucket(100, id) = 79")
    assert sql_rows(ice, "SELECT count(*) FROM db.f") == [(1,)]


def test_views_keep_their_query_and_where_it_was_written(ice: Session, spark: Any) -> None:
    create(ice, "viewed")
    ice.sql("INSERT INTO db.viewed VALUES (1, 'a', 1), (2, 'b', 2)")
    ice.sql("CREATE VIEW db.v (key COMMENT 'k') AS SELECT id FROM db.viewed WHERE id > 1")
    assert sql_rows(spark, "SELECT key FROM lake.db.v") == [(2,)]
    ice.sql("CREATE OR REPLACE VIEW db.v AS SELECT id AS k2 FROM db.viewed")
    assert sql_rows(ice, "SELECT k2 FROM db.v ORDER BY k2") == [(1,), (2,)]
    ice.sql("ALTER VIEW db.v AS SELECT v FROM db.viewed WHERE id = 1")
    assert sql_rows(ice, "SELECT * FROM db.v") == [("a",)]
    assert ("db", "v", False) in sql_rows(spark, "SHOW VIEWS IN lake.db")
    ice.sql("DROP VIEW db.v")
    ice.sql("DROP VIEW IF EXISTS db.v")


def test_replaced_columns_are_new_ones(ice: Session) -> None:
    ice.sql("CREATE TABLE db.replaced AS SELECT 1 AS id, 'a' AS s")
    ice.sql("ALTER TABLE db.replaced REPLACE COLUMNS (s STRING COMMENT 'again', id INT)")
    assert sql_rows(ice, "SELECT * FROM db.replaced") == [(None, None)]
    ice.sql("INSERT INTO db.replaced VALUES ('b', 2)")
    assert sql_rows(ice, "SELECT id FROM db.replaced WHERE s = 'b' OR s = 'a'") == [(2,)]
    fields = ice.load_table("db.replaced").schema().fields
    assert [(each.field_id, each.name, each.doc) for each in fields] == [(3, "s", "again"), (4, "id", None)]
    with pytest.raises(AlreadyExistsError, match="FIELD_ALREADY_EXISTS"):
        ice.sql("ALTER TABLE db.replaced REPLACE COLUMNS (a INT, A INT)")
    ice.sql("ALTER TABLE db.replaced ADD PARTITION FIELD s")
    with pytest.raises(IncompatibleChangeError, match="partition spec uses s"):
        ice.sql("ALTER TABLE db.replaced REPLACE COLUMNS (s STRING)")


def test_time_travel(ice: Session) -> None:
    create(ice, "past")
    ice.sql("INSERT INTO db.past VALUES (1, 'a', 1)")
    first = ice.load_table("db.past").current_snapshot()
    assert first is not None
    ice.sql("ALTER TABLE db.past ADD COLUMN later INT")
    ice.sql("INSERT INTO db.past VALUES (2, 'b', 2, 3)")
    assert sql_rows(ice, f"SELECT * FROM db.past VERSION AS OF {first.snapshot_id}") == [(1, "a", 1)]
    moment = f"timestamp_millis({first.timestamp_ms})"
    assert sql_rows(ice, f"SELECT * FROM db.past TIMESTAMP AS OF {moment}") == [(1, "a", 1)]
    with pytest.raises(NoSuchSnapshotError, match="nowhere"):
        ice.sql("SELECT * FROM db.past VERSION AS OF 'nowhere'")
    with pytest.raises(InvalidInputError, match=r"says already what is read of table db\.past"):
        ice.sql(f"SELECT * FROM db.past.snapshot_id_{first.snapshot_id} VERSION AS OF {first.snapshot_id}")


# -- changes of rows


def test_metadata_tables_show_times_without_a_zone_as_they_are(ice: Session, spark: Any) -> None:
    ice.sql("CREATE TABLE lake.db.local_times (tn TIMESTAMP_NTZ) PARTITIONED BY (tn)")
    # One does not exist in Los Angeles, and the other one exists twice.
    gap, twice = "2020-03-08 02:30:00", "2020-11-01 01:30:00"
    ice.sql(f"INSERT INTO lake.db.local_times VALUES (TIMESTAMP_NTZ'{gap}'), (TIMESTAMP_NTZ'{twice}')")
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/Los_Angeles")
    try:
        shown = ice.sql("SELECT partition.tn FROM lake.db.local_times.files ORDER BY 1")
        assert [str(each.tn) for each in shown.collect()] == [gap, twice]
        assert shown.dtypes == [("tn", "timestamp_ntz")]
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


@pytest.mark.parametrize(
    ("version", "mode"),
    [
        pytest.param(version, mode, marks=() if mode == quick else pytest.mark.slow)
        for version, quick in zip(ALL_VERSIONS, cycle(MODES), strict=False)
        for mode in MODES
    ],
)
def test_deletes_updates_and_merges(ice: Session, version: int, mode: str) -> None:
    create(ice, "changed", version, mode)
    ice.sql("INSERT INTO db.changed SELECT id, concat('v', id), CAST(id % 3 AS INT) FROM range(10)")
    lineage = allows(version, Feature.ROW_LINEAGE)
    before = row_ids(ice) if lineage else {}
    ice.sql("DELETE FROM db.changed AS x WHERE x.id = 3 OR x.id IN (SELECT max(id) FROM db.changed)")
    ice.sql("UPDATE db.changed SET v = concat(v, '!') WHERE id < 2")
    ice.sql(
        """MERGE INTO db.changed t USING (SELECT id, concat('m', id) AS v FROM range(5, 15)) s ON t.id = s.id
           WHEN MATCHED AND s.id = 5 THEN DELETE
           WHEN MATCHED THEN UPDATE SET t.v = s.v
           WHEN NOT MATCHED AND s.id < 12 THEN INSERT (id, v, p) VALUES (s.id, s.v, 9)
           WHEN NOT MATCHED BY SOURCE AND t.id = 4 THEN UPDATE SET v = 'alone'
           WHEN NOT MATCHED BY SOURCE AND t.id = 2 THEN DELETE"""
    )
    assert sql_rows(ice, "SELECT * FROM db.changed ORDER BY id") == [
        (0, "v0!", 0),
        (1, "v1!", 1),
        (4, "alone", 1),
        (6, "m6", 0),
        (7, "m7", 1),
        (8, "m8", 2),
        (9, "m9", 9),
        (10, "m10", 9),
        (11, "m11", 9),
    ]
    if lineage:
        after = row_ids(ice)
        assert {key: after[key] for key in (0, 1, 4, 6, 7, 8)} == {key: before[key] for key in (0, 1, 4, 6, 7, 8)}
        assert len(set(after.values())) == len(after)
        assert not {after[key] for key in (9, 10, 11)} & set(before.values())
    assert ice.load_table("db.changed").verify().ok


def row_ids(ice: Session) -> dict[int, int]:
    found = ice.table("db.changed", selected_fields=("id", "_row_id")).collect()
    return {row["id"]: row["_row_id"] for row in found}


@pytest.mark.parametrize("mode", MODES)
def test_merge_with_stars_and_its_limits(ice: Session, spark: Any, mode: str) -> None:
    create(ice, "stars", 3, mode)
    ice.sql("INSERT INTO db.stars VALUES (1, 'a', 1), (2, 'b', 1)")
    spark.createDataFrame([(2, "B", 2), (3, "C", 2)], "id long, v string, p int").createOrReplaceTempView("changes")
    text = "MERGE INTO db.stars t USING changes s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    ice.sql(text)
    assert sql_rows(ice, "SELECT * FROM db.stars ORDER BY id") == [(1, "a", 1), (2, "B", 2), (3, "C", 2)]
    twice = spark.createDataFrame([(2, "x", 1), (2, "y", 1)], "id long, v string, p int")
    twice.createOrReplaceTempView("changes")
    with pytest.raises(InvalidValueError, match="more than one row of the source"):
        ice.sql(text)
    spark.createDataFrame([(2, "x")], "id long, v string").createOrReplaceTempView("changes")
    with pytest.raises(InvalidInputError, match="'p'"):
        ice.sql(text)
    wider = spark.createDataFrame([(1, "w", 1, 5)], "id long, v string, p int, extra int")
    wider.createOrReplaceTempView("changes")
    ice.sql(text.replace("MERGE INTO", "MERGE WITH SCHEMA EVOLUTION INTO"))
    assert sql_rows(ice, "SELECT * FROM db.stars WHERE id = 1") == [(1, "w", 1, 5)]


def test_inserts_of_all_kinds(ice: Session, spark: Any) -> None:
    create(ice, "into", columns="id BIGINT, s STRUCT<a: INT, b: STRING>, p INT")
    ice.sql("INSERT INTO db.into VALUES (1, struct(1, 'x'), 1)")
    ice.sql("INSERT INTO db.into BY NAME SELECT 2 AS p, 2L AS id")
    ice.sql("WITH c AS (SELECT 3L AS id) INSERT INTO db.into (id) SELECT id FROM c")
    assert sql_rows(ice, "SELECT id, s.a, p FROM db.into ORDER BY id") == [(1, 1, 1), (2, None, 2), (3, None, None)]
    ice.sql("INSERT OVERWRITE db.into PARTITION (p = 2) SELECT 20L, NULL")
    assert sql_rows(ice, "SELECT id FROM db.into ORDER BY id") == [(1,), (3,), (20,)]
    before = spark.conf.get("spark.sql.sources.partitionOverwriteMode")
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        ice.sql("INSERT OVERWRITE db.into SELECT 10L, NULL, 1")
    finally:
        spark.conf.set("spark.sql.sources.partitionOverwriteMode", before)
    assert sql_rows(ice, "SELECT id FROM db.into ORDER BY id") == [(3,), (10,), (20,)]
    ice.sql("INSERT INTO db.into REPLACE WHERE p = 1 SELECT 11L, NULL, 1")
    assert sql_rows(ice, "SELECT id FROM db.into ORDER BY id") == [(3,), (11,), (20,)]
    ice.sql("INSERT INTO db.into REPLACE WHERE p BETWEEN 1 AND 1 SELECT 12L, NULL, 1")
    assert sql_rows(ice, "SELECT id FROM db.into ORDER BY id") == [(3,), (12,), (20,)]
    create(ice, "reals", columns="f FLOAT, d DOUBLE, p INT")
    ice.sql("INSERT INTO db.reals VALUES (0.1F, 1D, 1), (-2.0F, 2D, 1), (float('inf'), double('-inf'), 1)")
    ice.sql("INSERT INTO db.reals REPLACE WHERE f <= 0.1F AND f > -2.0F SELECT 0.5F, 3D, 1")
    ice.sql("INSERT INTO db.reals REPLACE WHERE d = double('-inf') OR d > 2.5D SELECT 9F, 9D, 1")
    assert sql_rows(ice, "SELECT f, d FROM db.reals ORDER BY f") == [(-2.0, 2.0), (9.0, 9.0)]
    ice.sql("INSERT OVERWRITE db.into SELECT 99L, NULL, 9")
    assert sql_rows(ice, "SELECT id FROM db.into") == [(99,)]
    with pytest.raises(InvalidInputError, match="2 columns"):
        ice.sql("INSERT INTO db.into VALUES (1, 2)")
    ice.sql("TRUNCATE TABLE db.into")
    assert sql_rows(ice, "SELECT count(*) FROM db.into") == [(0,)]


def test_merge_as_a_python_call(ice: Session, spark: Any) -> None:
    create(ice, "called")
    ice.sql("INSERT INTO db.called VALUES (1, 'a', 1), (2, 'b', 1), (3, 'c', 1)")
    source = spark.createDataFrame([(2, "B"), (4, "D")], "id long, v string")
    made = (
        ice.merge("db.called")
        .using(source, ["id"])
        .when_matched_update({"v": "concat(t.v, s.v)"})
        .when_not_matched_insert({"id": "s.id", "v": "s.v", "p": 7})
        .when_not_matched_by_source_delete("t.id = 3")
        .with_snapshot_properties({"by": "test"})
        .execute()
    )
    assert made is not None
    assert made.summary is not None
    assert made.summary["by"] == "test"
    assert sql_rows(ice, "SELECT * FROM db.called ORDER BY id") == [(1, "a", 1), (2, "bB", 1), (4, "D", 7)]
    ice.update("db.called", {"v": "upper(v)"}, "id = 1")
    ice.delete("db.called", "id = 4")
    assert sql_rows(ice, "SELECT id, v FROM db.called ORDER BY id") == [(1, "A"), (2, "bB")]
    assert ice.update("db.called", {"v": "'x'"}, "id = 77") is None
    with pytest.raises(InvalidInputError, match="using"):
        ice.merge("db.called").when_matched_delete().execute()


# -- errors


@pytest.fixture(scope="module")
def errors_table(ice: Session) -> None:
    create(ice, "errors")


@pytest.mark.parametrize(
    ("text", "error", "problem"),
    [
        ("SELECT * FROM lake.db.nowhere", NoSuchTableError, "db.nowhere"),
        ("INSERT INTO lake.db.nowhere VALUES (1)", NoSuchTableError, "nowhere"),
        ("DELETE FROM lake.db.nowhere WHERE id = 1", NoSuchTableError, "nowhere"),
        ("DROP TABLE lake.db.nowhere", NoSuchTableError, "nowhere"),
        ("ALTER TABLE lake.db.nowhere ADD COLUMN a INT", NoSuchTableError, "nowhere"),
        ("CREATE TABLE lake.nowhere.t (id INT)", NoSuchNamespaceError, "nowhere"),
        ("CREATE TABLE lake.db.x (id INT) USING csv", InvalidInputError, "USING csv"),
        ("CALL lake.system.nothing('db.t')", IcefloeError, "no procedure"),
        ("UPDATE lake.db.errors SET nope = 1", NoSuchColumnError, "nope"),
        ("UPDATE lake.db.errors SET id = 1, ID = 2", InvalidInputError, "twice"),
        ("INSERT INTO lake.db.errors.snapshots SELECT 1", InvalidInputError, "cannot be changed"),
        ("DELETE FROM lake.db.errors WHERE rand() < 0.5", InvalidInputError, "deterministic"),
        ("EXPLAIN DELETE FROM lake.db.errors", InvalidInputError, "EXPLAIN"),
        ("CREATE TABLE lake.db.x (a INT, a INT)", InvalidInputError, "CREATE TABLE lake.db.x: two fields"),
        ("CREATE TABLE lake.db.x (a INT) PARTITIONED BY (b)", NoSuchColumnError, "CREATE TABLE lake.db.x: no column"),
        ("CREATE TABLE lake.db.errors (a INT)", IcefloeError, "CREATE TABLE lake.db.errors: .* already exists"),
        ("ALTER TABLE lake.db.errors ADD COLUMN id INT", IcefloeError, "ALTER TABLE lake.db.errors ADD COLUMN id: "),
        ("ALTER TABLE lake.db.errors DROP COLUMN nope", NoSuchColumnError, "lake.db.errors DROP COLUMN nope: .*'nope'"),
        ("ALTER TABLE lake.db.errors DROP COLUMN p", IcefloeError, "lake.db.errors .*partition spec"),
        ("ALTER TABLE lake.db.errors ALTER COLUMN v TYPE INT", IcefloeError, "lake.db.errors .*string to int"),
        ("ALTER TABLE lake.db.errors ADD PARTITION FIELD nope", NoSuchColumnError, "lake.db.errors .*'nope'"),
        ("ALTER TABLE lake.db.errors DROP PARTITION FIELD nope", IcefloeError, "lake.db.errors .*'nope'"),
        ("ALTER TABLE lake.db.errors WRITE ORDERED BY nope", NoSuchColumnError, "lake.db.errors .*'nope'"),
        ("ALTER TABLE lake.db.errors SET IDENTIFIER FIELDS v", InvalidInputError, "lake.db.errors .*required"),
        ("ALTER TABLE lake.db.errors DROP BRANCH nope", NoSuchSnapshotError, "lake.db.errors DROP BRANCH nope: "),
        ("ALTER TABLE lake.db.errors CREATE TAG x AS OF VERSION 7", NoSuchSnapshotError, "lake.db.errors .*snapshot 7"),
        ("ALTER TABLE lake.db.errors UNSET TBLPROPERTIES ('a')", InvalidInputError, "lake.db.errors .*'a'"),
        ("ALTER TABLE lake.db.errors SET TBLPROPERTIES ('format-version'='1')", IcefloeError, "lake.db.errors .*v1"),
        ("SELECT * FROM lake.db.errors VERSION AS OF 7", NoSuchSnapshotError, "db.errors: no snapshot 7"),
        ("SELECT * FROM lake.db.errors.branch_nope", NoSuchSnapshotError, "db.errors: .*'nope'"),
        ("INSERT INTO lake.db.errors.branch_nope VALUES (1, 'a', 1)", NoSuchSnapshotError, "db.errors has no branch"),
        ("INSERT INTO lake.db.errors VALUES (1)", InvalidInputError, "INSERT INTO lake.db.errors: .*1 columns"),
        (
            "INSERT INTO lake.db.errors (id, nope) VALUES (1, 2)",
            NoSuchColumnError,
            "INSERT INTO lake.db.errors: .*'nope'",
        ),
        (
            "INSERT INTO lake.db.errors VALUES (1, 'a', 'x')",
            InvalidValueError,
            "INSERT INTO lake.db.errors: .*`p`",
        ),
        (
            "CALL lake.system.rollback_to_snapshot('db.errors', 7)",
            NoSuchSnapshotError,
            "rollback_to_snapshot: no snapshot 7",
        ),
        ("DROP NAMESPACE lake.nowhere", NoSuchNamespaceError, "DROP NAMESPACE lake.nowhere: "),
        ("DESCRIBE lake.db.nowhere", NoSuchTableError, "DESCRIBE lake.db.nowhere: "),
    ],
)
def test_errors_of_ours_reach_the_user_as_they_are(
    ice: Session, spark: Any, errors_table: None, text: str, error: type[Exception], problem: str
) -> None:
    location = ice.load_table("db.errors").metadata_location
    with pytest.raises(error, match=problem):
        spark.sql(text)
    assert ice.load_table("db.errors").metadata_location == location


def test_errors_of_spark_stay_sparks(ice: Session, spark: Any) -> None:

    create(ice, "theirs")
    with pytest.raises(ParseException, match="SELEC"):
        spark.sql("SELEC 1")
    with pytest.raises(AnalysisException, match="nope"):
        spark.sql("SELECT nope FROM lake.db.theirs")
    with pytest.raises(AnalysisException, match="nope"):
        spark.sql("DELETE FROM lake.db.theirs WHERE nope = 1")
    with pytest.raises(AnalysisException, match="no_such_thing"):
        spark.sql("SELECT * FROM no_such_thing")


def test_threads_do_not_mix(ice: Session) -> None:
    create(ice, "threads")
    problems: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for step in range(2):
                ice.sql(f"INSERT INTO db.threads VALUES ({number * 10 + step}, 'x', {number})")
                assert sql_rows(ice, f"SELECT count(*) FROM db.threads WHERE p = {number}") == [(step + 1,)]
        except BaseException as problem:  # noqa: BLE001 - told below
            problems.append(problem)

    workers = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(200)
    assert problems == []
    assert sql_rows(ice, "SELECT count(*) FROM db.threads") == [(6,)]


def test_describing(ice: Session, tmp_path: Path) -> None:
    create(ice, "told")
    ice.sql("INSERT INTO db.told VALUES (1, 'a', 1)")
    described = sql_rows(ice, "DESCRIBE TABLE EXTENDED db.told")
    assert described[:3] == [("id", "bigint", None), ("v", "string", None), ("p", "int", None)]
    assert ("Name", "lake.db.told", "") in described
    assert dict(sql_rows(ice, "DESCRIBE db.told id"))["data_type"] == "bigint"
    assert sql_rows(ice, "SHOW COLUMNS IN db.told") == [("id",), ("v",), ("p",)]
    assert sql_rows(ice, "SHOW PARTITIONS db.told") == [("p=1",)]
    assert sql_rows(ice, "SHOW TBLPROPERTIES db.told ('format-version')") == [("format-version", "3")]
