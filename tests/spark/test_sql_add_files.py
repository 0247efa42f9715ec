"""`CALL ... add_files` with what Spark itself wrote: folders, and tables of its own catalog."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from icefloe import load_catalog
from icefloe.errors import InvalidInputError, NoSuchTableError, ValidationError
from icefloe.spark.session import Session
from tests.shared_rows import sql_rows

COLUMNS = "id bigint, price decimal(9,2), tags array<string>, s struct<a: int, b: string>"
QUERY = """SELECT id, cast(id AS decimal(9,2)) AS price, array('x', null) AS tags,
  named_struct('a', cast(id AS int), 'b', 'é') AS s, {more} cast(id % 3 AS int) AS p FROM range(9)"""
MOMENT = """timestamp '2024-01-02 03:04:05.000006' + make_dt_interval(id) AS at,
  timestamp_ntz '2024-01-02 03:04:05' AS local,"""
# Timestamps of Spark in ORC say nothing of a zone, and those without one are numbers, so they do not become Iceberg's.
KINDS = [("parquet", "at timestamp, local timestamp_ntz,", MOMENT), ("orc", "", "")]


@pytest.fixture(scope="module")
def ice(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("adding")
    catalog = load_catalog("adding", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=str(folder))
    catalog.create_namespace("db")
    yield Session(spark, {"adding": catalog})
    spark.sql("USE spark_catalog.default")


@pytest.mark.parametrize(("kind", "column", "value"), KINDS, ids=["parquet", "orc"])
def test_folders_that_spark_wrote(ice: Session, spark: Any, tmp_path: Path, kind: str, column: str, value: str) -> None:
    frame = spark.sql(QUERY.format(more=value)).coalesce(1)
    spark.conf.set("spark.sql.parquet.outputTimestampType", "INT96")
    try:
        frame.write.partitionBy("p").format(kind).save(str(tmp_path / "in"))
    finally:
        spark.conf.unset("spark.sql.parquet.outputTimestampType")
    ice.sql("DROP TABLE IF EXISTS db.t")
    ice.sql(f"CREATE TABLE db.t ({COLUMNS}, {column} p int) USING iceberg PARTITIONED BY (p)")
    ice.sql("INSERT INTO db.t (id, p) VALUES (100, 1)")
    some = f"CALL system.add_files('db.t', '`{kind}`.`{tmp_path}/in`', map('p', 1))"
    assert sql_rows(ice, some) == [(1, 1)]
    call = f"CALL adding.system.add_files(table => 'adding.db.t', source_table => '{kind}.`{tmp_path}/in`', {{more}})"
    with pytest.raises(ValidationError, match="already"):
        spark.sql(call.format(more="parallelism => 2"))
    assert sql_rows(spark, call.format(more="partition_filter => map('p', 0)")) == [(1, 1)]
    expected = [tuple(row) for row in frame.where("p < 2").collect()]
    found = sql_rows(ice, "SELECT * FROM db.t ORDER BY id")
    assert found[:-1] == sorted(expected)
    assert found[-1][0] == 100
    plain = ice.load_table("db.t").scan("p = 1").to_arrow()
    assert sorted(plain["id"].to_pylist()) == [1, 4, 7, 100]
    ice.sql("DELETE FROM db.t WHERE id = 4 OR p = 0")
    assert ice.load_table("db.t").scan().count() == 3


def test_tables_of_sparks_own_catalog(ice: Session, spark: Any, tmp_path: Path) -> None:
    ice.sql("DROP TABLE IF EXISTS db.t")
    ice.sql("CREATE TABLE db.t (id BIGINT, p INT) USING iceberg PARTITIONED BY (p)")
    ice.sql("CREATE TABLE IF NOT EXISTS db.flat (id BIGINT, p INT) USING iceberg")
    spark.sql(
        f"CREATE TABLE default.parts (id BIGINT, p INT) USING parquet PARTITIONED BY (p) LOCATION '{tmp_path}/a b'"
    )
    spark.sql(f"CREATE TABLE default.plain (id BIGINT, p INT) USING orc LOCATION '{tmp_path}/plain'")
    spark.sql("CREATE OR REPLACE TEMP VIEW some_view AS SELECT 1 AS id")
    try:
        spark.sql("INSERT INTO default.parts VALUES (1, 1), (2, 2), (3, NULL)")
        spark.sql("INSERT INTO default.plain VALUES (5, 5)")
        assert sql_rows(spark, "CALL adding.system.add_files('db.t', 'default.parts', map('p', 2))") == [(1, 1)]
        assert sql_rows(spark, "CALL adding.system.add_files('db.t', 'parts', map('p', NULL))") == [(1, 1)]
        assert sql_rows(spark, "CALL adding.system.add_files('db.flat', 'spark_catalog.default.plain')") == [(1, 1)]
        assert sql_rows(ice, "SELECT id, p FROM db.t ORDER BY id") == [(2, 2), (3, None)]
        assert sql_rows(ice, "SELECT * FROM db.flat") == [(5, 5)]
        for source, error, problem in (
            ("default.plain", InvalidInputError, "no partition spec"),
            ("default.nowhere", NoSuchTableError, "nowhere"),
            ("adding.db.flat", InvalidInputError, "table of Iceberg"),
            ("some_view", NoSuchTableError, "some_view"),
        ):
            with pytest.raises(error, match=problem):
                spark.sql(f"CALL adding.system.add_files('db.t', '{source}')")
        assert sql_rows(ice, "SELECT count(*) FROM db.t") == [(2,)]
    finally:
        spark.sql("DROP TABLE default.parts")
        spark.sql("DROP TABLE default.plain")
        spark.catalog.dropTempView("some_view")
