"""Names that differ only by case: refused where the session does not look at it, and told apart where it does."""

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.errors import AnalysisException

from icefloe import load_catalog
from icefloe.errors import AlreadyExistsError, InvalidSchemaError, NoSuchColumnError
from icefloe.schema import NestedField, Schema
from icefloe.schema.types import IntegerType, LongType
from icefloe.spark.connect import connect
from icefloe.spark.session import Session
from tests.shared_rows import sql_modes, sql_rows

SENSITIVE = "spark.sql.caseSensitive"
MODES = ("copy-on-write", "merge-on-read")


@pytest.fixture(scope="module")
def ice(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("case")
    catalog = load_catalog("lake", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=str(folder))
    catalog.create_namespace("db")
    made = connect(catalog, spark=spark, drop_in=True)
    yield made
    made.stop()


@pytest.fixture
def sensitive(spark: Any) -> Iterator[None]:
    spark.conf.set(SENSITIVE, "true")
    yield
    spark.conf.set(SENSITIVE, "false")


def test_twins_are_refused_where_case_is_not_looked_at(ice: Session) -> None:
    spark = ice.spark
    for statement in (
        "(id BIGINT, ID INT)",
        "(s STRUCT<a: INT, A: INT>)",
        "(l ARRAY<STRUCT<a: INT, A: INT>>)",
        "(m MAP<STRING, STRUCT<a: INT, A: INT>>)",
        "AS SELECT 1 a, 2 A",
        "AS SELECT named_struct('x', 1, 'X', 2) a",
    ):
        for verb in ("CREATE TABLE", "CREATE OR REPLACE TABLE"):
            head, _, query = statement.partition("AS ")
            text = f"{verb} lake.db.twins {head} USING iceberg" + (f" AS {query}" if query else "")
            with pytest.raises(InvalidSchemaError, match="COLUMN_ALREADY_EXISTS"):
                spark.sql(text)
    frame = spark.range(1).selectExpr("id", "id AS other").toDF("id", "ID")
    for make in (
        lambda: frame.writeTo("lake.db.twins").create(),
        lambda: frame.write.format("iceberg").saveAsTable("lake.db.twins"),
        lambda: ice.write(frame).to("db.twins").create(),
        lambda: spark.sql("CREATE VIEW lake.db.twins (a, A) AS SELECT 1, 2"),
    ):
        with pytest.raises(InvalidSchemaError, match="COLUMN_ALREADY_EXISTS"):
            make()
    assert not ice.catalog.table_exists("db.twins")


def test_a_column_cannot_get_the_name_of_another_in_another_case(ice: Session) -> None:
    spark, t = ice.spark, "lake.db.altered"
    spark.sql(f"CREATE TABLE {t} (id INT, s STRUCT<a: INT, b: INT>, l ARRAY<STRUCT<a: INT>>, x INT) USING iceberg")
    before = ice.load_table(t).schema()
    for clause, error, condition in (
        ("ADD COLUMN ID INT", AlreadyExistsError, "FIELD_ALREADY_EXISTS"),
        ("ADD COLUMNS (y INT, Y INT)", AlreadyExistsError, "FIELD_ALREADY_EXISTS"),
        ("ADD COLUMN s.A INT", AlreadyExistsError, "FIELD_ALREADY_EXISTS"),
        ("ADD COLUMN l.element.A INT", AlreadyExistsError, "FIELD_ALREADY_EXISTS"),
        ("ADD COLUMN w STRUCT<q: INT, Q: INT>", InvalidSchemaError, "COLUMN_ALREADY_EXISTS"),
        ("RENAME COLUMN x TO Id", AlreadyExistsError, "FIELD_ALREADY_EXISTS"),
        ("RENAME COLUMN x TO X", AlreadyExistsError, "FIELD_ALREADY_EXISTS"),
        ("RENAME COLUMN s.b TO A", AlreadyExistsError, "FIELD_ALREADY_EXISTS"),
    ):
        with pytest.raises(error, match=condition):
            spark.sql(f"ALTER TABLE {t} {clause}")
    assert ice.load_table(t).schema() == before


def test_columns_are_found_in_any_case(ice: Session) -> None:
    spark, t = ice.spark, "lake.db.any_case"
    spark.sql(f"CREATE TABLE {t} (Id INT NOT NULL, d DATE, q INT) USING iceberg PARTITIONED BY (ID, days(D))")
    spark.sql(f"ALTER TABLE {t} SET IDENTIFIER FIELDS ID")
    spark.sql(f"ALTER TABLE {t} DROP IDENTIFIER FIELDS iD")
    spark.sql(f"ALTER TABLE {t} ADD PARTITION FIELD bucket(4, ID)")
    spark.sql(f"ALTER TABLE {t} WRITE ORDERED BY D")
    spark.sql(f"ALTER TABLE {t} DROP COLUMNS (q, Q)")
    assert [each.name for each in ice.load_table(t).spec().fields] == ["Id", "d_day", "Id_bucket_4"]
    spark.sql(f"INSERT INTO {t} (D, ID) VALUES (DATE'2020-01-01', 1), (NULL, 2)")
    spark.sql(f"INSERT INTO {t} REPLACE WHERE ID = 2 VALUES (2, DATE'2021-01-01')")
    spark.sql(f"UPDATE {t} SET ID = 3 WHERE iD = 1")
    assert [each[0] for each in sql_rows(ice.spark, f"SELECT ID FROM {t} WHERE id > 0 ORDER BY 1")] == [2, 3]


TWINS = "id BIGINT, ID INT, s STRUCT<a: INT, A: INT, n: STRUCT<x: INT, X: STRING>>, p STRING, P STRING, d DECIMAL(9, 2), D INT"


@pytest.mark.usefixtures("sensitive")
@pytest.mark.parametrize(("version", "mode"), [(2, MODES[1]), pytest.param(3, MODES[0], marks=pytest.mark.slow)])
def test_twins_where_case_is_looked_at(ice: Session, version: int, mode: str) -> None:
    spark, t = ice.spark, f"lake.db.both_{version}"
    modes = sql_modes(mode)
    spark.sql(
        f"CREATE TABLE {t} ({TWINS}) USING iceberg PARTITIONED BY (P) TBLPROPERTIES ('format-version' = '{version}', {modes})"
    )
    nested = "named_struct('a', {0}, 'A', {0}0, 'n', named_struct('x', {0}, 'X', 'x{0}'))"
    values = (f"({n}, {n}0, {nested.format(n)}, 'p{n}', 'P{n}', {n}.25, {n})" for n in (1, 2))
    spark.sql(f"INSERT INTO {t} VALUES {', '.join(values)}")
    spark.sql(f"INSERT INTO {t} (ID, id, P, p, D, d) VALUES (30, 3, 'P3', 'p3', 4, 3.75)")
    spark.sql(f"INSERT INTO {t} PARTITION (P = 'P4') SELECT 4, 40, NULL, 'p4', 4.5, 5")
    spark.sql(f"INSERT INTO {t} BY NAME SELECT 50 ID, 5L id, 'P5' P, 'p5' p, 6 D, 5.5BD d")
    assert sql_rows(ice.spark, f"SELECT id, ID, p, P, d * 4, D FROM {t} ORDER BY id") == [
        (n, n * 10, f"p{n}", f"P{n}", {1: 5, 2: 9, 3: 15, 4: 18, 5: 22}[n], n if n < 3 else n + 1) for n in range(1, 6)
    ]
    assert sql_rows(ice.spark, f"SELECT s.a, s.A, s.n.x, s.n.X FROM {t} WHERE ID < 25 ORDER BY id") == [
        (1, 10, 1, "x1"), (2, 20, 2, "x2"),
    ]  # fmt: skip
    for condition, found in (("ID = 10", [1]), ("id = 10", []), ("P = 'P3'", [3]), ("p = 'P3'", []), ("d > 5", [5])):
        assert [each[0] for each in sql_rows(ice.spark, f"SELECT id FROM {t} WHERE {condition}")] == found, condition
    assert sql_rows(ice.spark, f"SELECT partition.P, record_count FROM {t}.partitions ORDER BY 1")[0] == ("P1", 1)
    metrics = f"SELECT readable_metrics.id.upper_bound, readable_metrics.ID.upper_bound FROM {t}.files ORDER BY 1"
    assert sql_rows(ice.spark, metrics)[:2] == [(1, 10), (2, 20)]
    spark.sql(f"UPDATE {t} SET ID = 11, s.A = 7, s.n.X = 'new' WHERE id = 1")
    spark.sql(f"UPDATE {t} SET id = ID, ID = CAST(id AS INT) WHERE P = 'P2'")
    spark.sql(f"DELETE FROM {t} WHERE ID = 30")
    spark.sql(
        f"MERGE INTO {t} t USING (SELECT 4L id, 99 ID, 'pm' p, 'PM' P) s ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET ID = s.ID, p = s.P, P = s.p WHEN NOT MATCHED BY SOURCE AND ID = 50 THEN UPDATE SET id = 55"
    )
    star = "SELECT 60L ID_, * FROM (SELECT 6L id, 66 ID, CAST(NULL AS {0}) s, 'p6' p, 'P6' P, 1.5BD d, 2 D)"
    kind = "STRUCT<a: INT, A: INT, n: STRUCT<x: INT, X: STRING>>"
    spark.sql(f"MERGE INTO {t} t USING ({star.format(kind)}) s ON t.id = s.ID_ WHEN NOT MATCHED THEN INSERT *")
    assert sql_rows(ice.spark, f"SELECT id, ID, p, P FROM {t} ORDER BY id") == [
        (1, 11, "p1", "P1"), (4, 99, "PM", "pm"), (6, 66, "p6", "P6"), (20, 2, "p2", "P2"), (55, 50, "p5", "P5"),
    ]  # fmt: skip
    assert sql_rows(ice.spark, f"SELECT s.a, s.A, s.n.x, s.n.X FROM {t} WHERE id = 1") == [(1, 7, 1, "new")]
    for statement in (f"UPDATE {t} SET Id = 5", f"INSERT INTO {t} (Id) VALUES (1)", f"ALTER TABLE {t} DROP COLUMN Id"):
        with pytest.raises(NoSuchColumnError, match="Id"):
            spark.sql(statement)
    for clause in ("ADD COLUMN Id STRING", "RENAME COLUMN ID TO iD", "ALTER COLUMN iD TYPE BIGINT", "DROP COLUMN s.a"):
        spark.sql(f"ALTER TABLE {t} {clause}")
    assert [each.name for each in ice.load_table(t).schema().fields] == ["id", "iD", "s", "p", "P", "d", "D", "Id"]
    [(renamed, struct, added)] = sql_rows(ice.spark, f"SELECT iD, s, Id FROM {t} WHERE id = 1")
    assert (renamed, struct.asDict(recursive=True), added) == (11, {"A": 7, "n": {"x": 1, "X": "new"}}, None)


def test_a_table_of_twins_where_case_is_not_looked_at(ice: Session) -> None:
    spark, t, nested = ice.spark, "lake.db.seen_otherwise", "lake.db.seen_nested"
    spark.conf.set(SENSITIVE, "true")
    try:
        spark.sql(f"CREATE TABLE {t} (id BIGINT, ID INT, p STRING) USING iceberg")
        spark.sql(f"INSERT INTO {t} VALUES (1, 10, 'a'), (2, 20, 'b')")
        spark.sql(f"CREATE TABLE {nested} (k INT, s STRUCT<a: INT, A: INT>) USING iceberg")
        spark.sql(f"INSERT INTO {nested} VALUES (1, named_struct('a', 1, 'A', 2))")
        assert sql_rows(ice.spark, f"SELECT s.A, s.a FROM {nested} WHERE s.A = 2") == [(2, 1)]
    finally:
        spark.conf.set(SENSITIVE, "false")
    assert sql_rows(ice.spark, f"SELECT * FROM {t} ORDER BY p") == [(1, 10, "a"), (2, 20, "b")]
    assert sql_rows(ice.spark, f"SELECT count(*) FROM {t}.files")[0][0] > 0
    for statement in (
        f"SELECT id FROM {t}",
        f"SELECT p FROM {t} WHERE ID = 10",
        f"UPDATE {t} SET id = 5",
        f"UPDATE {t} SET p = 'z' WHERE ID = 10",
        f"DELETE FROM {t} WHERE id = 1",
        f"MERGE INTO {t} t USING (SELECT 1 k) s ON t.id = s.k WHEN MATCHED THEN DELETE",
        f"MERGE INTO {t} t USING (SELECT 'a' k) s ON t.p = s.k WHEN MATCHED THEN UPDATE SET ID = 4",
        f"INSERT INTO {t} (id, p) VALUES (4, 'd')",
        f"INSERT INTO {t} BY NAME SELECT 6L id, 'f' p",
        f"ALTER TABLE {t} DROP COLUMN ID",
        f"ALTER TABLE {t} ADD PARTITION FIELD id",
        f"SELECT s.a FROM {nested}",
        f"UPDATE {nested} SET s.a = 2",
        f"DELETE FROM {nested} WHERE s.a = 1",
    ):
        with pytest.raises((AnalysisException, NoSuchColumnError), match=r"(?i)ambiguous"):
            spark.sql(statement)
    spark.sql(f"UPDATE {nested} SET k = 3")
    spark.sql(f"INSERT INTO {t} VALUES (3, 30, 'c')")
    assert sql_rows(ice.spark, f"SELECT * FROM {t} ORDER BY p") == [(1, 10, "a"), (2, 20, "b"), (3, 30, "c")]
    assert [(each[0], *each[1]) for each in sql_rows(ice.spark, f"SELECT * FROM {nested}")] == [(3, 1, 2)]


def test_python_takes_twins_as_the_format_does(ice: Session) -> None:
    schema = Schema(NestedField(1, "id", IntegerType()), NestedField(2, "ID", IntegerType()))
    table = ice.catalog.create_table("db.plain", schema)
    with table.update_schema() as update:
        update.add_column("Id", LongType()).rename_column("ID", "iD")
    assert [each.name for each in table.schema().fields] == ["id", "iD", "Id"]
    with pytest.raises(AlreadyExistsError), table.update_schema(case_sensitive=False) as update:
        update.add_column("iD2", LongType()).add_column("ID2", LongType())
