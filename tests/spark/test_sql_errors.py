"""What users read when a statement is wrong: names of their own, and what would be right."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, ParseException

from icefloe import load_catalog
from icefloe.errors import IcefloeError, InvalidInputError, InvalidLocationError, NoSuchColumnError
from icefloe.spark.session import Session


@pytest.fixture(scope="module")
def ice(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Session:
    folder = tmp_path_factory.mktemp("wrong")
    catalog = load_catalog("wrong", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=str(folder))
    catalog.create_namespace("db")
    session = Session(spark, {"wrong": catalog})
    session.sql("CREATE TABLE db.t (id INT, amount DOUBLE, list ARRAY<STRUCT<x: INT>>, m MAP<STRING, INT>)").collect()
    session.sql("INSERT INTO db.t VALUES (1, 2.5, array(named_struct('x', 1)), map('k', 1))").collect()
    session.sql("CREATE TABLE db.s (id INT, price INT)").collect()
    return session


_MERGE = "MERGE INTO db.t t USING db.s s ON t.id = s.id"


@pytest.mark.parametrize(
    ("statement", "proposed"),
    [
        ("SELECT amont FROM db.t", "`amount`"),
        ("UPDATE db.t SET id = amont", "`amount`"),
        ("DELETE FROM db.t WHERE amont = 1", "`amount`"),
        ("MERGE INTO db.t t USING db.s s ON t.id = s.prise WHEN MATCHED THEN DELETE", "`s`.`price`"),
        (f"{_MERGE} WHEN MATCHED THEN UPDATE SET id = s.prise", "`s`.`price`"),
        (f"{_MERGE} WHEN NOT MATCHED THEN INSERT (id) VALUES (t.id)", "`s`.`id`"),
        (f"{_MERGE} WHEN NOT MATCHED BY SOURCE AND amont = 1 THEN DELETE", "`amount`"),
    ],
)
def test_no_name_of_ours_is_proposed_for_an_unknown_column(ice: Session, statement: str, proposed: str) -> None:
    with pytest.raises(AnalysisException, match="UNRESOLVED_COLUMN") as raised:
        ice.sql(statement).collect()
    text = str(raised.value).partition("JVM stacktrace")[0]
    assert "__icefloe" not in text
    assert proposed in text.partition("Did you mean one of the following? [")[2]


@pytest.mark.parametrize(
    ("assignment", "kind", "told"),
    [
        ("list.x = 1", InvalidInputError, r"'list' is an array, .* as a whole, as with list = transform\(list, each"),
        ("list.element.x = 1", InvalidInputError, "cannot set 'list.element.x': 'list' is an array"),
        ("m.k = 1", InvalidInputError, r"'m' is a map, .* as a whole, as with m = map_concat\(m, map"),
        ("id.x = 1", NoSuchColumnError, r"no column 'id\.x': 'id' is int, which has no fields"),
        ("none = 1", NoSuchColumnError, r"no column '(t\.)?none'; there are id, amount, list, m"),
    ],
)
def test_assigning_what_is_no_field(ice: Session, assignment: str, kind: type[IcefloeError], told: str) -> None:
    for statement in (f"UPDATE db.t SET {assignment}", f"{_MERGE} WHEN MATCHED THEN UPDATE SET t.{assignment}"):
        with pytest.raises(kind, match=told):
            ice.sql(statement)


def test_a_location_is_whole(ice: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ice.sql(f"CREATE TABLE db.placed (id INT) LOCATION '{tmp_path}/a place'").collect()
    before = sorted(tmp_path.iterdir())
    for statement in (
        "CREATE TABLE db.nowhere (id INT) LOCATION 'elsewhere'",
        "CREATE OR REPLACE TABLE db.placed LOCATION 'elsewhere' AS SELECT 1 AS id",
        "CREATE TABLE db.nowhere LIKE db.placed LOCATION 'elsewhere'",
        "ALTER TABLE db.placed SET LOCATION 'elsewhere'",
        "CREATE NAMESPACE wrong.nowhere LOCATION 'elsewhere'",
        "ALTER NAMESPACE wrong.db SET LOCATION 'elsewhere'",
        "CREATE VIEW db.nowhere TBLPROPERTIES ('location'='elsewhere') AS SELECT 1 AS id",
    ):
        with pytest.raises(InvalidLocationError, match="LOCATION 'elsewhere' is relative"):
            ice.sql(statement)
    with pytest.raises(InvalidLocationError, match="an empty text is not a location"):
        ice.sql("CREATE TABLE db.nowhere (id INT) LOCATION ''")
    assert sorted(tmp_path.iterdir()) == before
    assert not ice.catalog.namespace_exists("nowhere")


def test_errors_of_sparks_parser_are_sparks(ice: Session) -> None:
    """Beside our answers to some calls of the parser: Spark itself catches errors of it by their class, and users do."""
    rows = ice.spark.range(3)
    with pytest.raises(ParseException, match="end of input"):
        rows.selectExpr("id +")
    with pytest.raises(ParseException, match="unquoted identifier my-table"):
        ice.spark.table("my-table")
    with pytest.raises(AnalysisException, match="Invalid view name: a-b"):
        rows.createTempView("a-b")
    with pytest.raises(ParseException, match="SELEC"):
        ice.sql("SELEC 1")
    key = "spark.sql.iceberg.planning.preserve-data-grouping"
    assert [tuple(row) for row in ice.sql(f"SET `{key}`=true").collect()] == [(key, "true")]
    ice.spark.conf.unset(key)
