"""Views of a catalog: they show the columns that they were made with, whatever became of the tables since."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException

from icefloe import load_catalog
from icefloe.errors import InvalidInputError
from icefloe.spark.session import Session
from tests.shared_rows import sorted_rows


@pytest.fixture(scope="module")
def ice(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Session:
    folder = tmp_path_factory.mktemp("seen")
    catalog = load_catalog("seen", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=str(folder))
    catalog.create_namespace("db")
    return Session(spark, {"seen": catalog})


def shown(session: Any, text: str) -> Any:
    return session.sql(text).schema.simpleString()


def test_columns_are_those_of_the_making_by_their_places(ice: Session) -> None:
    ice.sql("CREATE TABLE db.grown AS SELECT 1 AS id, 2 AS s").collect()
    ice.sql("CREATE VIEW db.all_of_it AS SELECT * FROM db.grown").collect()
    ice.sql("CREATE VIEW db.named AS SELECT id FROM db.grown").collect()
    ice.sql("ALTER TABLE db.grown ADD COLUMN n STRING")
    assert sorted_rows(ice, "SELECT * FROM db.all_of_it") == [(1, 2)]
    ice.sql("ALTER TABLE db.grown RENAME COLUMN s TO z")
    assert sorted_rows(ice, "SELECT s FROM db.all_of_it") == [(2,)]
    ice.sql("ALTER TABLE db.grown DROP COLUMN z")
    with pytest.raises(InvalidInputError, match=r"column 's' was int when the view was created.*now returns string"):
        ice.sql("SELECT * FROM db.all_of_it")
    ice.sql("ALTER TABLE db.grown DROP COLUMN n")
    with pytest.raises(InvalidInputError, match="created with 2 columns and its query now returns 1"):
        ice.sql("SELECT * FROM db.all_of_it")
    ice.sql("ALTER TABLE db.grown ALTER COLUMN id TYPE BIGINT")
    with pytest.raises(InvalidInputError, match=r"'id' was int when the view was created.*bigint, which may not fit"):
        ice.sql("SELECT * FROM db.named")


def test_columns_of_narrower_types_are_widened(ice: Session) -> None:
    ice.sql("CREATE TABLE db.wide AS SELECT 1L AS id, named_struct('x', 1.5D) AS s").collect()
    ice.sql("CREATE VIEW db.widened AS SELECT * FROM db.wide").collect()
    ice.sql("DROP TABLE db.wide")
    ice.sql("CREATE TABLE db.wide AS SELECT 1 AS id, named_struct('x', 1) AS s").collect()
    assert sorted_rows(ice, "SELECT * FROM db.widened") == [(1, (1.0,))]
    assert shown(ice, "SELECT * FROM db.widened") == "struct<id:bigint,s:struct<x:double>>"


def test_two_columns_may_be_of_one_field(ice: Session) -> None:
    ice.sql("CREATE TABLE db.twice (id INT NOT NULL, s STRUCT<x: INT NOT NULL> COMMENT 'c')").collect()
    ice.sql("INSERT INTO db.twice VALUES (1, named_struct('x', 7))").collect()
    query = "SELECT t.id, u.id AS other, t.s AS s1, u.s AS s2 FROM db.twice t JOIN db.twice u ON t.id = u.id"
    ice.sql(f"CREATE VIEW db.joined AS {query}").collect()
    ice.sql("CREATE VIEW db.over (a, b) AS SELECT s2.x, s1.x FROM db.joined").collect()
    ice.sql(f"CREATE TABLE db.joined_rows AS {query}").collect()
    assert sorted_rows(ice, "TABLE db.joined") == sorted_rows(ice, "TABLE db.joined_rows") == [(1, 1, (7,), (7,))]
    assert sorted_rows(ice, "TABLE db.over") == [(7, 7)]
    ice.sql("CREATE TABLE db.evolved (id INT) TBLPROPERTIES ('write.spark.accept-any-schema'='true')").collect()
    merge = (
        f"MERGE WITH SCHEMA EVOLUTION INTO db.evolved t USING ({query}) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *"
    )
    ice.sql(merge).collect()
    assert sorted_rows(ice, "TABLE db.evolved") == [(1, 1, (7,), (7,))]
    ice.sql(f"ALTER VIEW db.over AS {query}").collect()
    for schema in (ice.catalog.load_view("db.joined").schema(), ice.catalog.load_table("db.joined_rows").schema()):
        assert [field.doc for field in schema.fields] == [None, None, "c", "c"]
        assert not any(field.required for field in schema.fields_by_id.values())
        assert sorted(schema.fields_by_id) == [1, 2, 3, 4, 5, 6]


def test_a_view_has_no_defaults_of_its_tables(ice: Session) -> None:
    ice.sql("CREATE TABLE db.filled (id INT DEFAULT 5) TBLPROPERTIES ('format-version'='3')").collect()
    ice.sql("CREATE VIEW db.of_filled AS SELECT id FROM db.filled").collect()
    [field] = ice.catalog.load_view("db.of_filled").schema().fields
    assert (field.initial_default, field.write_default) == (None, None)


def test_properties_that_are_not_there_or_not_for_users(ice: Session, tmp_path: Path) -> None:
    ice.sql(
        "CREATE VIEW db.told TBLPROPERTIES"
        f" ('a'='1', 'location'='{tmp_path}/there', 'provider'='iceberg', 'format-version'='1') AS SELECT 1 AS id"
    ).collect()
    view = ice.catalog.load_view("db.told")
    assert (dict(view.properties), view.location()) == ({"a": "1"}, f"file://{tmp_path}/there")
    with pytest.raises(InvalidInputError, match=r"view db\.told has no property 'none'"):
        ice.sql("ALTER VIEW db.told UNSET TBLPROPERTIES ('a', 'none')")
    ice.sql("ALTER VIEW db.told UNSET TBLPROPERTIES IF EXISTS ('a', 'none')")
    assert dict(ice.catalog.load_view("db.told").properties) == {}
    for key in ("format-version", "spark.query-column-names"):
        with pytest.raises(InvalidInputError, match=f"'{key}' is not a view property"):
            ice.sql(f"ALTER VIEW db.told SET TBLPROPERTIES ('{key}'='2')")
        with pytest.raises(InvalidInputError, match=f"'{key}' is not a view property"):
            ice.sql(f"ALTER VIEW db.told UNSET TBLPROPERTIES IF EXISTS ('{key}')")
    with pytest.raises(InvalidInputError, match="'provider'='parquet' is not for views"):
        ice.sql("CREATE VIEW db.odd TBLPROPERTIES ('provider'='parquet') AS SELECT 1 AS id")
    with pytest.raises(InvalidInputError, match="stays where it was created"):
        ice.sql(f"CREATE OR REPLACE VIEW db.told TBLPROPERTIES ('location'='{tmp_path}/no') AS SELECT 1 AS id")
    with pytest.raises(AnalysisException):
        ice.sql("SELECT none FROM db.told")
