"""What is current after USE, and which catalog a name means then: one of ours, or one of Spark's."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException

from icefloe import load_catalog
from icefloe.errors import NoSuchNamespaceError
from icefloe.spark.session import Session
from tests.shared_rows import sorted_rows

CURRENT = "SELECT current_catalog(), current_database(), current_schema()"


@pytest.fixture(scope="module")
def ice(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Session:
    folder = tmp_path_factory.mktemp("near")
    catalog = load_catalog("near", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=str(folder))
    catalog.create_namespace("db")
    catalog.create_namespace("db.inner")
    return Session(spark, {"near": catalog})


@pytest.fixture(autouse=True)
def back(spark: Any) -> Iterator[None]:
    yield
    spark.sql("USE spark_catalog.default")


def test_functions_tell_what_use_made_current(ice: Session) -> None:
    spark = ice.spark
    sparks_own = spark.sql(CURRENT)
    assert sorted_rows(ice.spark, CURRENT) == [("spark_catalog", "default", "default")]
    spark.sql("USE near.db")
    assert sorted_rows(ice.spark, CURRENT) == [("near", "db", "db")]
    assert spark.sql(CURRENT).columns == sparks_own.columns
    spark.sql("USE db.inner")
    assert sorted_rows(ice.spark, CURRENT) == [("near", "db.inner", "db.inner")]
    spark.sql("USE near")
    assert sorted_rows(ice.spark, CURRENT)[0][1] == "db.inner", "the namespace stays where the catalog does"
    nested = spark.sql("SELECT upper(current_catalog()), count(*) AS n FROM range(3) GROUP BY current_catalog()")
    assert (nested.columns[0], [tuple(row) for row in nested.collect()]) == ("upper(current_catalog())", [("NEAR", 3)])
    spark.sql("CREATE TABLE near.db.noted AS SELECT current_catalog() AS c").collect()
    spark.sql("DELETE FROM near.db.noted WHERE c <> current_catalog()").collect()
    assert sorted_rows(ice.spark, "SELECT c FROM near.db.noted WHERE c = (SELECT current_catalog())") == [("near",)]
    spark.sql("SET CATALOG spark_catalog")
    assert sorted_rows(ice.spark, CURRENT) == [("spark_catalog", "default", "default")]


def test_views_tell_what_is_current_for_their_reader(ice: Session) -> None:
    spark = ice.spark
    spark.sql("USE near.db")
    spark.sql("CREATE VIEW near.db.here AS SELECT current_catalog() AS c, current_schema() AS s").collect()
    spark.sql("CREATE TEMP VIEW here_too AS SELECT current_catalog() AS c, current_schema() AS s")
    spark.sql("USE near.db.inner")
    assert (
        sorted_rows(ice.spark, "TABLE near.db.here")
        == sorted_rows(ice.spark, "TABLE here_too")
        == [("near", "db.inner")]
    )
    spark.sql("USE spark_catalog.default")
    assert (
        sorted_rows(ice.spark, "TABLE near.db.here")
        == sorted_rows(ice.spark, "TABLE here_too")
        == [("spark_catalog", "default")]
    )
    spark.sql("DROP VIEW here_too")


def test_a_catalog_of_sparks_in_front_of_a_name_is_meant(ice: Session, tmp_path: Path) -> None:
    spark, theirs = ice.spark, "spark_catalog.default.plain_rows"
    spark.sql("USE near.db")
    spark.sql("CREATE TABLE ours AS SELECT 5 AS id").collect()
    try:
        for run, ours in ((spark.sql, "ours"), (ice.sql, "db.ours")):
            run(f"CREATE TABLE {theirs} USING parquet LOCATION '{tmp_path}/{ours}' AS SELECT id FROM {ours}")
            run(f"INSERT INTO {theirs} SELECT id + 1 FROM {ours}").collect()
            assert sorted(run(f"SELECT * FROM {theirs}").collect()) == [(5,), (6,)]
            assert run(f"DESCRIBE {theirs}").collect()[0][0] == "id"
            assert "plain_rows" in [row[1] for row in run("SHOW TABLES IN spark_catalog.default").collect()]
            run(f"DROP TABLE {theirs}")
            with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
                run(f"SELECT * FROM {theirs}")
            spark.sql("USE spark_catalog.default")
    finally:
        spark.sql(f"DROP TABLE IF EXISTS {theirs}")


def test_what_use_cannot_find_changes_nothing(ice: Session) -> None:
    spark = ice.spark
    spark.sql("USE near.db")
    with pytest.raises(NoSuchNamespaceError, match="no namespace default in catalog 'near'"):
        spark.sql("USE default")
    with pytest.raises(NoSuchNamespaceError, match="no namespace none in catalog 'near'"):
        spark.sql("USE near.none")
    with pytest.raises(Exception, match="none"):
        spark.sql("SET CATALOG none")
    assert sorted_rows(ice.spark, CURRENT) == [("near", "db", "db")]
