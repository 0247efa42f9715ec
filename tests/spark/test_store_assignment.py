"""What value lands in a column: only those that a statement assigns change, and these by Spark's rules of store assignment."""

import datetime as dt
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812 - its usual name

import icefloe
from icefloe import load_catalog, properties as props
from icefloe.errors import IcefloeError, InvalidInputError, InvalidValueError
from icefloe.rows import UPDATE
from icefloe.schema import Schema, parse_ddl
from icefloe.spark.row_level import TargetTable
from icefloe.spark.session import Session
from icefloe.spark.store_assignment import store_assigned
from icefloe.spark.types import user_type
from tests.shared_rows import sql_modes, sql_rows

COPY, MERGE = "copy-on-write", "merge-on-read"
POLICY = "spark.sql.storeAssignmentPolicy"
KEPT = (9007199254740993, 16777217, Decimal("1234567890.123456789012345678"), "2024-03-10 02:30:00", "007")
"""Values that a double, a float, a decimal of no fraction, a timestamp of New York and a number cannot hold."""


@pytest.fixture(scope="module")
def ice(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("assigned")
    catalog = load_catalog("lake", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=str(folder))
    catalog.create_namespace("db")
    with icefloe.connect(catalog, spark=spark, drop_in=True) as session:
        yield session


@contextmanager
def setting(spark: Any, key: str, value: str) -> Iterator[None]:
    before = spark.conf.get(key)
    spark.conf.set(key, value)
    try:
        yield
    finally:
        spark.conf.set(key, before)


def create(ice: Session, name: str, columns: str, version: int = 3, mode: str = COPY) -> None:
    modes = sql_modes(mode)
    ice.sql(
        f"CREATE OR REPLACE TABLE lake.db.{name} ({columns}) TBLPROPERTIES ('format-version' = '{version}', {modes})"
    )


# -- values that nobody assigned


@pytest.mark.parametrize(
    ("version", "mode"),
    [
        (2, COPY),
        (3, MERGE),
        *(pytest.param(*each, marks=pytest.mark.slow) for each in ((1, COPY), (2, MERGE), (4, COPY))),
    ],
)
def test_only_what_is_assigned_changes(ice: Session, spark: Any, version: int, mode: str) -> None:
    create(
        ice,
        "kept",
        "id INT, l BIGINT, i INT, d DECIMAL(38,18), n TIMESTAMP_NTZ, s STRING, st STRUCT<a: BIGINT, b: STRUCT<c: STRING, d: INT>>",
        version,
        mode,
    )
    kept = "9007199254740993, 16777217, 1234567890.123456789012345678, TIMESTAMP_NTZ'2024-03-10 02:30:00', '007'"
    ice.sql(
        "INSERT INTO lake.db.kept SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 1, 1, 1.5, TIMESTAMP_NTZ'2024-01-01 00:00:00', '1', NULL),"
        f" (2, {kept}, named_struct('a', 9007199254740993, 'b', NULL))"
    )
    found = "SELECT id, l, i, d, CAST(n AS STRING), s, st FROM lake.db.kept ORDER BY id"
    new = (
        "l = 5.9D, i = FLOAT(5), d = CAST(5 AS DECIMAL(38,0)), n = TIMESTAMP'2024-01-02 03:04:05', s = 5, st.a = 7.5D,"
        " st.b.c = DATE'2020-01-01'"
    )
    nested = ((7, ("2020-01-01", None)), (9007199254740993, None))
    # In this zone, there is no such hour as the one that is kept.
    with setting(spark, "spark.sql.session.timeZone", "America/New_York"):
        ice.sql(f"UPDATE lake.db.kept SET {new} WHERE id = 1")
        first = (5, 5, Decimal(5), "2024-01-02 03:04:05", "5")
        assert sql_rows(ice, found) == [(1, *first, nested[0]), (2, *KEPT, nested[1])]
        ice.sql(
            "MERGE INTO lake.db.kept t USING (SELECT col1 AS id, col2 AS x, col3 AS y FROM VALUES (1, 5.5D, 0L), (2, 5.5D, 0L),"
            " (3, 6.5D, 0L), (4, 0D, 9007199254740993L)) s ON t.id = s.id"
            f" WHEN MATCHED AND s.id = 1 THEN UPDATE SET {new} WHEN MATCHED THEN UPDATE SET id = t.id * 10"
            " WHEN NOT MATCHED AND s.id = 3 THEN INSERT (id, l) VALUES (s.id, s.x)"
            " WHEN NOT MATCHED THEN INSERT (id, l, i) VALUES (s.id, s.y, 1.9)"
        )
        assert sql_rows(ice, found) == [
            (1, *first, nested[0]),
            (3, 6, None, None, None, None, None),
            (4, 9007199254740993, 1, None, None, None, None),
            (20, *KEPT, nested[1]),
        ]
        ice.sql(
            "MERGE INTO lake.db.kept t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET st.b.d = 8.5,"
            " st.b.c = 9 WHEN NOT MATCHED BY SOURCE AND t.id = 3 THEN UPDATE SET l = 1.5D"
        )
        assert sql_rows(ice, f"SELECT id, l, st FROM ({found}) WHERE id IN (1, 3, 20)") == [
            (1, 5, (7, ("9", 8))),
            (3, 1, None),
            (20, KEPT[0], nested[1]),
        ]
    assert not ice.load_table("lake.db.kept").verify(level="data").findings


def test_a_plan_that_casts_what_it_keeps_writes_nothing(ice: Session, spark: Any) -> None:
    create(ice, "guarded", "id INT, l BIGINT, st STRUCT<a: INT>")
    table = ice.load_table("lake.db.guarded")
    change = TargetTable(spark, table).change(UPDATE, table.transaction())
    good = spark.range(1).select(
        F.lit(1).alias("id"), F.lit(1).cast("long").alias("l"), F.struct(F.lit(1).alias("a")).alias("st")
    )
    for name, value in (
        ("l", F.lit(1.0)),
        ("st", F.struct(F.lit("1").alias("a"))),
        ("st", F.struct(F.lit(1).alias("b"))),
    ):
        with pytest.raises(AssertionError, match=f"'{name}' of db.guarded"):
            change.write(good.withColumn(name, value))
    assert len(change.write(good)) == 1


def test_values_are_those_of_one_row(ice: Session) -> None:
    create(ice, "single", "id INT, x INT")
    ice.sql("INSERT INTO lake.db.single VALUES (1, 1), (2, 2)")
    ranked = "(SELECT id, row_number() OVER (ORDER BY id DESC) AS n FROM lake.db.single) s ON t.id = s.id + 10"
    for text in (
        "UPDATE lake.db.single SET x = explode(array(1, 2))",
        "UPDATE lake.db.single SET x = row_number() OVER (ORDER BY id DESC) * 1.5D",
        "UPDATE lake.db.single SET x = (WITH w AS (SELECT 7L AS v) SELECT max(v) FROM w) + rank() OVER (ORDER BY id)",
        f"MERGE INTO lake.db.single t USING {ranked} WHEN NOT MATCHED THEN INSERT (id, x) VALUES (s.id, rank() OVER (ORDER BY s.n))",
    ):
        with pytest.raises(InvalidInputError, match="that of one row"):
            ice.sql(text)
    ice.sql(
        f"MERGE INTO lake.db.single t USING {ranked} WHEN NOT MATCHED AND s.id < 3 THEN INSERT (id, x) VALUES (s.id + 10, s.n)"
    )
    assert sql_rows(ice, "SELECT * FROM lake.db.single ORDER BY id") == [(1, 1), (2, 2), (11, 2), (12, 1)]
    ice.sql("DELETE FROM lake.db.single WHERE id > 2")
    ice.sql("UPDATE lake.db.single SET x = 10 / (id - 1) WHERE id > 1")
    ice.sql("UPDATE lake.db.single SET x = (WITH w AS (SELECT 7L AS v) SELECT max(v) FROM w) WHERE id = 1")
    assert sql_rows(ice, "SELECT * FROM lake.db.single ORDER BY id") == [(1, 7), (2, 10)]


# -- values of no type


def test_values_that_are_errors_are_asked(ice: Session) -> None:
    create(ice, "errors", "id INT, x INT, s STRUCT<a: INT>")
    ice.sql("INSERT INTO lake.db.errors VALUES (1, 1, NULL)")
    ice.sql(
        "CREATE OR REPLACE TABLE lake.db.unknown TBLPROPERTIES ('format-version' = '3') AS SELECT 1 AS id, NULL AS e"
    )
    for text in (
        "INSERT INTO lake.db.errors SELECT 2, raise_error('boom'), NULL",
        "INSERT INTO lake.db.errors SELECT 2, assert_true(id = 1, 'boom'), NULL FROM range(1)",
        "INSERT INTO lake.db.errors SELECT 2, 2, named_struct('a', raise_error('boom'))",
        "UPDATE lake.db.errors SET x = raise_error('boom') WHERE id = 1",
        "MERGE INTO lake.db.errors t USING (SELECT 2 AS id) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, x) VALUES (2, raise_error('boom'))",
        "CREATE TABLE lake.db.never TBLPROPERTIES ('format-version' = '3') AS SELECT 1 AS id, raise_error('boom') AS e",
        "INSERT INTO lake.db.unknown SELECT 2, raise_error('boom')",
        "UPDATE lake.db.unknown SET e = raise_error('boom') WHERE id = 1",
    ):
        with pytest.raises(PySparkException, match="boom"):
            ice.sql(text)
    ice.sql("UPDATE lake.db.errors SET x = raise_error('boom') WHERE id = 77")
    ice.sql("INSERT INTO lake.db.unknown SELECT 2, assert_true(true)")
    assert sql_rows(ice, "SELECT * FROM lake.db.errors") == [(1, 1, None)]
    assert sql_rows(ice, "SELECT * FROM lake.db.unknown ORDER BY id") == [(1, None), (2, None)]
    assert not ice.catalogs["lake"].table_exists("db.never")


# -- structs


def test_structs_are_given_whole(ice: Session) -> None:
    create(ice, "whole", "id INT, s STRUCT<a: INT, b: STRING>, l ARRAY<STRUCT<x: INT, y: INT>>")
    ice.sql("INSERT INTO lake.db.whole VALUES (1, struct(1.9, 2), array(struct(3L, 4)))")
    ice.sql(
        "INSERT INTO lake.db.whole BY NAME SELECT array(named_struct('y', 5, 'x', 6)) AS l, named_struct('b', 7, 'a', 8) AS s, 2 AS id"
    )
    ice.sql(
        "INSERT INTO lake.db.whole (l, id, s) SELECT array(named_struct('y', 5, 'x', 6)), 3, named_struct('b', 11, 'a', 12)"
    )
    ice.sql("UPDATE lake.db.whole SET s = named_struct('b', 9, 'a', 10L) WHERE id = 1")
    whole = [(1, (10, "9"), [(3, 4)]), (2, (8, "7"), [(6, 5)]), (3, (11, "12"), [(6, 5)])]
    assert sql_rows(ice, "SELECT * FROM lake.db.whole ORDER BY id") == whole
    source = "USING (SELECT {} AS id, named_struct('a', 1) AS s, NULL AS l) s ON t.id = s.id"
    for text in (
        "INSERT INTO lake.db.whole SELECT 3, named_struct('a', 1), NULL",
        "INSERT INTO lake.db.whole BY NAME SELECT 3 AS id, named_struct('a', 1) AS s",
        "INSERT INTO lake.db.whole BY NAME SELECT 3 AS id, array(named_struct('x', 1)) AS l",
        "UPDATE lake.db.whole SET s = named_struct('a', 1) WHERE id = 1",
        "UPDATE lake.db.whole SET s = named_struct('a', 1) WHERE id = 77",
        "UPDATE lake.db.whole SET s = named_struct('a', 1, 'b', '2', 'c', 3)",
        "UPDATE lake.db.whole SET l = array(named_struct('x', 1))",
        f"MERGE INTO lake.db.whole t {source.format(1)} WHEN MATCHED THEN UPDATE SET *",
        f"MERGE INTO lake.db.whole t {source.format(1)} WHEN MATCHED THEN UPDATE SET s = s.s",
        f"MERGE INTO lake.db.whole t {source.format(3)} WHEN NOT MATCHED THEN INSERT *",
        f"MERGE INTO lake.db.whole t {source.format(3)} WHEN NOT MATCHED THEN INSERT (id, s.a) VALUES (3, 1)",
    ):
        with pytest.raises(IcefloeError, match=r"`(s|l)`|'s.a'"):
            ice.sql(text)
    assert sql_rows(ice, "SELECT * FROM lake.db.whole ORDER BY id") == whole


# -- store assignment

TARGETS = (
    "boolean",
    "int",
    "long",
    "float",
    "double",
    "decimal(9, 2)",
    "date",
    "timestamptz",
    "timestamp",
    "string",
    "binary",
)
ASSIGNED = """
type           ANSI         STRICT
BOOLEAN        x........x.  x........x.
TINYINT        .xxxxx...x.  .xxxxx...x.
SMALLINT       .xxxxx...x.  .xxxxx...x.
INT            .xxxxx...x.  .xxxx....x.
BIGINT         .xxxxx...x.  ..xxx..x.x.
FLOAT          .xxxxx...x.  ...xx....x.
DOUBLE         .xxxxx...x.  ....x....x.
DECIMAL(9,2)   .xxxxx...x.  .....x...x.
DECIMAL(20,5)  .xxxxx...x.  .........x.
DATE           ......xxxx.  ......xxxx.
TIMESTAMP      ......xxxx.  ..x....xxx.
TIMESTAMP_NTZ  ......xxxx.  .......xxx.
STRING         .........x.  .........x.
BINARY         .........xx  .........xx
INTERVAL_DAY   .........x.  .........x.
VOID           xxxxxxxxxxx  ...........
"""
"""Which types Java Iceberg takes for which of the columns above, as its statements are analyzed by Spark 4.1."""


@pytest.mark.parametrize("policy", ["ANSI", "STRICT"])
def test_types_are_taken_for_others_as_java_takes_them(spark: Any, policy: str) -> None:
    header, *lines = (line.split() for line in ASSIGNED.strip().splitlines())
    schemas = [parse_ddl(f"c {each}") for each in TARGETS]
    found = {}
    with setting(spark, POLICY, policy):
        for name, *_ in lines:
            value = "NULL" if name == "VOID" else f"CAST(NULL AS {name.replace('_D', ' D')})"
            frame = spark.sql(f"SELECT {value} AS c")
            found[name] = "".join("x" if is_taken(frame, schema) else "." for schema in schemas)
    assert found == {line[0]: line[header.index(policy)] for line in lines}


def is_taken(frame: Any, schema: Schema) -> bool:
    try:
        assigned = store_assigned(frame, schema, "t")
    except InvalidValueError:
        return False
    assert assigned.schema[0].dataType == user_type(schema.fields[0].field_type)
    return True


def test_frames_are_assigned_as_statements_are(ice: Session, spark: Any) -> None:
    create(ice, "frames", "id INT, d DECIMAL(5,2), t TIMESTAMP, n TIMESTAMP_NTZ, s STRING, m MAP<STRING, INT>")
    frame = spark.sql(
        "SELECT DATE'2020-01-01' t, 1.005 d, TIMESTAMP'2020-01-02 00:00:00' n, true s, map(1, 2.9) m, 1L id"
    )
    frame.writeTo("lake.db.frames").append()
    frame.select("id", "d", "t", "n", "s", "m").write.insertInto("lake.db.frames")
    frame.select("id", "s").write.mode("append").saveAsTable("lake.db.frames")
    day, none = dt.datetime(2020, 1, 1), (None,) * 3
    made = (1, Decimal("1.01"), day, dt.datetime(2020, 1, 2), "true", {"1": 2})
    assert sql_rows(ice, "SELECT * FROM lake.db.frames ORDER BY d DESC") == [made, made, (1, *none, "true", None)]
    with pytest.raises(InvalidValueError, match="`id`"):
        frame.withColumn("id", F.lit("5")).writeTo("lake.db.frames").append()
    with pytest.raises(PySparkException, match="CAST_OVERFLOW_IN_TABLE_INSERT"):
        frame.withColumn("id", F.lit(3_000_000_000)).writeTo("lake.db.frames").append()
    with pytest.raises(InvalidValueError, match="column 't' is date in the data"):
        ice.write(frame).to("lake.db.frames").append()


def test_policies(ice: Session, spark: Any) -> None:
    create(ice, "policies", "id INT, s STRING")
    ice.sql("INSERT INTO lake.db.policies VALUES (1, 'a')")
    merge = "MERGE INTO lake.db.policies t USING (SELECT 1 AS id, 5L AS l) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET id = s.l"
    refused = ("INSERT INTO lake.db.policies VALUES (2L, 'b')", "UPDATE lake.db.policies SET id = 2L", merge)
    with setting(spark, POLICY, "STRICT"):
        for text in (*refused, "UPDATE lake.db.policies SET s = NULL"):
            with pytest.raises(InvalidValueError, match="Cannot safely cast"):
                ice.sql(text)
        ice.sql("UPDATE lake.db.policies SET s = 5")
        ice.sql("UPDATE lake.db.policies SET s = DEFAULT WHERE s = 'b'")
    with setting(spark, POLICY, "LEGACY"):
        for text in (*refused, "INSERT INTO lake.db.policies VALUES (2, 'b')", "UPDATE lake.db.policies SET id = 2"):
            with pytest.raises(InvalidInputError, match="LEGACY"):
                ice.sql(text)
        ice.sql("INSERT INTO lake.db.policies SELECT * FROM lake.db.policies")
        ice.sql("CREATE OR REPLACE TABLE lake.db.copied AS SELECT CAST(1 AS TINYINT) AS b")
    with setting(spark, "spark.sql.ansi.enabled", "false"), pytest.raises(PySparkException, match="CAST_OVERFLOW"):
        ice.sql("UPDATE lake.db.policies SET id = 3000000000")
    ice.sql(merge)
    assert sql_rows(ice, "SELECT * FROM lake.db.policies") == [(5, "5"), (5, "5")]


def test_types_that_spark_lacks(ice: Session) -> None:
    schema = parse_ddl("id int, u uuid, n timestamp_ns, f fixed[2]")
    ice.catalogs["lake"].create_table(
        "db.lacking", schema, properties={"format-version": "3", props.UPDATE_MODE.key: COPY}
    )
    some = uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")
    ice.sql(
        f"INSERT INTO lake.db.lacking VALUES (1, X'{some.hex}', TIMESTAMP_NTZ'1970-01-01 00:00:01', X'0001'), (2, NULL, NULL, NULL)"
    )
    ice.sql(
        f"UPDATE lake.db.lacking SET u = X'{uuid.UUID(int=5).hex}', n = TIMESTAMP_NTZ'1970-01-01 00:00:02', f = X'0203' WHERE id = 2"
    )
    assert sql_rows(ice, "SELECT * FROM lake.db.lacking ORDER BY id") == [
        (1, str(some), 10**9, b"\0\1"),
        (2, str(uuid.UUID(int=5)), 2 * 10**9, b"\2\3"),
    ]
    with pytest.raises(IcefloeError, match="'f'"):
        ice.sql("UPDATE lake.db.lacking SET f = X'00' WHERE id = 1")
