"""Statistics computed by Spark are those of plain Python, and Spark's own sketch library reads our sketches."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from icefloe import Table, load_catalog
from icefloe.spark.session import Session
from tests.maintenance.histories import History, new_table
from tests.puffin_files import decode_puffin
from tests.spark.conftest import SPARK
from tests.spark.sessions import settings


@pytest.fixture(scope="module")
def ice(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("statistics")
    catalog = load_catalog("lake", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=str(folder))
    catalog.create_namespace("db")
    yield Session(spark, {"lake": catalog})
    spark.sql("USE spark_catalog.default")


def blobs_of(table: Table, engine: object | None) -> list[bytes]:
    done = table.maintenance.compute_table_stats(columns=["k", "name", "price", "amount", "part.x"], engine=engine)
    return decode_puffin(table.storage.read(str(done.statistics_file)), "a.stats")[1]


def test_same_sketches_as_plain_python(spark: SparkSession, tmp_path: Path) -> None:
    history = History(new_table(tmp_path, 3))
    for step, number in (
        ("append", 0),
        ("append", 5),
        ("partition", 0),
        ("append", 9),
        ("delete", 3),
    ):
        history.step(step, number)
    history.table.append(pa.table({"k": range(20_000), "name": [f"n{i % 5000}" for i in range(20_000)]}))
    assert blobs_of(history.table, spark) == blobs_of(history.table, None)


@pytest.mark.skipif(SPARK < (4, 1), reason="Spark has theta sketches since 4.1")
def test_spark_reads_our_sketches(spark: SparkSession, tmp_path: Path) -> None:
    table = new_table(tmp_path, 3)
    table.append(pa.table({"k": range(9000), "name": [f"n{i % 4096}" for i in range(9000)], "price": [1.5] * 9000}))
    blobs = blobs_of(table, None)
    [entry] = table.statistics()
    frame = spark.createDataFrame([(bytearray(blob),) for blob in blobs], "sketch binary")
    estimates = [row[0] for row in frame.selectExpr("theta_sketch_estimate(sketch)").collect()]
    assert [str(each) for each in estimates[1:]] == [blob.properties["ndv"] for blob in entry.blob_metadata][1:]
    # Spark rounds where Java Iceberg cuts off.
    assert abs(estimates[0] - int(entry.blob_metadata[0].properties["ndv"])) <= 1
    assert estimates[1:] == [4096, 1, 0, 0]


def test_call(ice: Session) -> None:
    ice.spark.sql("CREATE TABLE lake.db.counted (id bigint, name string) USING iceberg")
    ice.spark.sql("INSERT INTO lake.db.counted VALUES (1, 'a'), (2, 'a')")
    [row] = ice.spark.sql("CALL lake.system.compute_table_stats('db.counted', columns => array('name'))").collect()
    [file] = ice.load_table("lake.db.counted").statistics()
    assert row["statistics_file"] == file.statistics_path
    assert [blob.properties["ndv"] for blob in file.blob_metadata] == ["1"]


def optimized(frame: DataFrame) -> str:
    """What the optimizer believes of a frame: rows, and distinct values of columns."""
    found = frame._jdf.queryExecution().optimizedPlan().stats()
    return f"{found.simpleString()} {found.attributeStats().toString()}"


def test_the_optimizer_knows_distinct_values(ice: Session) -> None:
    ice.spark.sql("CREATE TABLE lake.db.known (id bigint NOT NULL, name string, more string) USING iceberg")
    ice.spark.sql("INSERT INTO lake.db.known SELECT id, concat('n', id % 10), 'x' FROM range(1000)")
    query = "SELECT name FROM lake.db.known WHERE name = 'n1'"
    by_id = "SELECT id, count(*) FROM lake.db.known GROUP BY id"
    ice.spark.sql("CALL lake.system.compute_table_stats('db.known', columns => array('id', 'name'))").collect()
    assert "rowCount" not in optimized(ice.spark.sql(query))
    ice.spark.conf.set("spark.sql.cbo.enabled", "true")
    try:
        assert "rowCount=100 " in optimized(ice.spark.sql(query))
        assert "rowCount=1.00E+3 " in optimized(ice.spark.sql(by_id))
        assert ice.spark.sql(query).count() == 100
        assert ice.spark.sql(by_id).count() == 1000
        ice.spark.conf.set("spark.sql.iceberg.report-column-stats", "false")
        assert "rowCount=1.00E+3 " in optimized(ice.spark.sql(query))
        ice.spark.conf.unset("spark.sql.iceberg.report-column-stats")
        ice.spark.sql("INSERT INTO lake.db.known VALUES (1, 'n1', 'y')")
        # Rows are those of the files; distinct values of an older snapshot are not taken for those of a newer one.
        assert "rowCount=1.00E+3 " in optimized(ice.spark.sql(query))
    finally:
        ice.spark.conf.unset("spark.sql.cbo.enabled")
        ice.spark.conf.unset("spark.sql.iceberg.report-column-stats")


def test_the_optimizer_knows_the_rows_that_pruning_leaves(ice: Session) -> None:
    """Rows and bounds are those of the files for the filter, and joins are estimated by them."""
    spark = ice.spark
    for name in ("left", "right", "third"):
        spark.sql(f"CREATE TABLE lake.db.{name} (id bigint, part int, at date) USING iceberg PARTITIONED BY (part)")
        spark.sql(
            f"INSERT INTO lake.db.{name} SELECT id, CAST(id DIV 100 AS INT), date_add(date'2024-01-01', CAST(id DIV 100 AS INT))"
            " FROM range(1000)"
        )
        spark.sql(f"CALL lake.system.compute_table_stats('db.{name}')").collect()
    with settings(spark, {"spark.sql.cbo.enabled": "true"}):
        assert "rowCount=1.00E+3 " in optimized(spark.sql("SELECT * FROM lake.db.left"))
        one = spark.sql("SELECT * FROM lake.db.left WHERE part = 3")
        assert "rowCount=100 " in optimized(one)
        assert "Some(300),Some(399)" in optimized(one)
        days = spark.sql("SELECT id FROM lake.db.left WHERE at >= date'2024-01-08'")
        assert "rowCount=300 " in optimized(days)
        joined = spark.sql("SELECT l.id FROM lake.db.left l JOIN lake.db.right r ON l.id = r.id WHERE r.part = 3")
        assert "rowCount=100 " in optimized(joined)
        assert joined.count() == 100
