"""Spark on tables behind a REST server: scripts for Iceberg's jar find them by their settings, and SQL does all of its work."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from icefloe import load_catalog
from icefloe.catalog import RestCatalog
from icefloe.server.app import create_app
from icefloe.spark.connect import catalogs_in, connect
from icefloe.spark.session import Session
from tests.catalog.rest.loopback import LoopbackServer

JARS_CLASS = "org.apache.iceberg.spark.SparkCatalog"


@pytest.fixture
def ice(spark: Any, tmp_path: Path) -> Iterator[Session]:
    with (
        load_catalog("lake", type="sql", uri=f"sqlite:///{tmp_path}/lake.db", warehouse=str(tmp_path)) as lake,
        LoopbackServer(create_app({"lake": lake}), lifespan="on") as server,
    ):
        # As `connect` reads them of a session that was made for the jar.
        settings = {
            "spark.sql.catalog.prod": JARS_CLASS,
            "spark.sql.catalog.prod.type": "rest",
            "spark.sql.catalog.prod.uri": server.url,
            "spark.sql.catalog.other": JARS_CLASS,
            "spark.sql.catalog.other.catalog-impl": "org.apache.iceberg.rest.RESTCatalog",
            "spark.sql.catalog.other.uri": server.url,
        }
        catalogs = {name: load_catalog(name, **properties) for name, properties in catalogs_in(settings).items()}
        assert all(isinstance(catalog, RestCatalog) for catalog in catalogs.values())
        catalogs["prod"].create_namespace("db")
        with connect(catalogs, spark=spark) as session:
            yield session
        for catalog in catalogs.values():
            catalog.close()


def test_sql_on_a_rest_catalog(ice: Session) -> None:
    ice.sql("CREATE TABLE prod.db.t (id BIGINT, name STRING) USING iceberg PARTITIONED BY (bucket(2, id))")
    ice.sql("INSERT INTO prod.db.t VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    ice.sql("DELETE FROM prod.db.t WHERE id = 1")
    ice.sql(
        "MERGE INTO prod.db.t t USING (SELECT 2 AS id, 'z' AS name UNION ALL SELECT 9, 'n') s ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET name = s.name WHEN NOT MATCHED THEN INSERT *"
    )
    rows = ice.sql("SELECT id, name FROM other.db.t ORDER BY id").collect()
    assert [tuple(row) for row in rows] == [(2, "z"), (3, "c"), (9, "n")]
    ice.sql("CREATE OR REPLACE TABLE prod.db.u USING iceberg AS SELECT * FROM prod.db.t WHERE id > 2")
    ice.sql("CREATE VIEW prod.db.v AS SELECT count(*) AS n FROM prod.db.u")
    assert ice.sql("SELECT n FROM prod.db.v").collect()[0].n == 2
    ice.sql("DROP TABLE prod.db.u PURGE")
    assert [row.tableName for row in ice.sql("SHOW TABLES IN prod.db").collect()] == ["t"]
