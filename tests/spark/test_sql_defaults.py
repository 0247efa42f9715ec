"""The word DEFAULT in INSERT, columns that a statement leaves out, and what the columns of new tables are."""

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.errors import AnalysisException

from icefloe.errors import IcefloeError, InvalidInputError, InvalidValueError
from icefloe.schema.types import StringType, walk_fields
from icefloe.spark.connect import connect
from icefloe.spark.session import Session
from icefloe.table import Table
from icefloe.versions import ALL_VERSIONS
from tests.shared_rows import sorted_rows
from tests.spark.reading import new_catalog
from tests.spark.sessions import settings

NO_NULLS = {"spark.sql.defaultColumn.useNullsForMissingDefaultValues": "false"}
NESTED = "array(1) AS a, map('k', array(named_struct('x', 1))) AS m, named_struct('y', 1, 'z', array('s')) AS s"


@pytest.fixture(scope="module")
def ice(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with connect(new_catalog(tmp_path_factory.mktemp("defaults")), spark=spark) as session:
        yield session


def test_default_is_what_a_column_has_by_default(ice: Session) -> None:
    ice.sql(
        "CREATE TABLE db.t (id INT, n INT DEFAULT 5, s STRING DEFAULT 'it''s', p STRING, d DATE DEFAULT DATE'2020-01-02')"
        " PARTITIONED BY (p) TBLPROPERTIES ('format-version' = '3')"
    )
    ice.sql("INSERT INTO db.t VALUES (1, DEFAULT, default, 'a', DEFAULT), (DEFAULT, 2, 'x', DEFAULT, NULL)")
    ice.sql("INSERT INTO db.t (s, id) VALUES (DEFAULT, 3)")
    ice.sql("INSERT INTO db.t (d, n, id) SELECT DEFAULT, DEFAULT, id FROM VALUES (4) AS v(id)")
    ice.sql("INSERT INTO db.t PARTITION (p = 'b') SELECT 5, DEFAULT, 'y', DEFAULT")
    day = ice.sql("SELECT DATE'2020-01-02'").collect()[0][0]
    assert sorted_rows(ice, "SELECT * FROM db.t") == [
        (1, 5, "it's", "a", day),
        (3, 5, "it's", None, day),
        (4, 5, "it's", None, day),
        (5, 5, "y", "b", day),
        (None, 2, "x", None, None),
    ]
    for text in (
        "INSERT INTO db.t VALUES (DEFAULT + 1, 1, 'a', 'b', NULL)",
        "INSERT INTO db.t SELECT 1, 2, concat(DEFAULT, 'x'), 'p', NULL",
        "INSERT INTO db.t SELECT 1, DEFAULT, 's', 'p', NULL UNION ALL SELECT 1, 2, 's', 'p', NULL",
    ):
        with pytest.raises(AnalysisException, match="DEFAULT"):
            ice.sql(text)


def test_a_column_named_default_is_meant_first(ice: Session) -> None:
    ice.sql("CREATE TABLE db.named (id INT, n INT DEFAULT 5) TBLPROPERTIES ('format-version' = '3')")
    ice.sql("INSERT INTO db.named SELECT 1, default FROM VALUES (7) AS v(default)")
    ice.sql("CREATE TABLE db.required (id INT NOT NULL, s STRING)")
    with pytest.raises((IcefloeError, AnalysisException)):
        ice.sql("INSERT INTO db.required VALUES (DEFAULT, 'a')")
    assert sorted_rows(ice, "SELECT * FROM db.named") == [(1, 7)]


def test_columns_without_a_default_are_left_out_only_if_null_is_one(ice: Session, spark: Any) -> None:
    ice.sql("CREATE TABLE db.left (id INT, n INT DEFAULT 5, s STRING) TBLPROPERTIES ('format-version' = '3')")
    merge = "MERGE INTO db.left t USING (SELECT 9 AS id) q ON t.id = q.id WHEN NOT MATCHED THEN INSERT (id{}) VALUES (q.id{})"
    short = ("INSERT INTO db.left (id) VALUES (1)", "INSERT INTO db.left BY NAME SELECT 2 AS id", merge.format("", ""))
    with settings(spark, NO_NULLS):
        for text in short:
            with pytest.raises(InvalidValueError, match="column 's' is given no value and has no default"):
                ice.sql(text)
        ice.sql("INSERT INTO db.left (id, s) VALUES (0, 'a')")
        ice.sql(merge.format(", s", ", NULL"))
    assert sorted_rows(ice, "SELECT * FROM db.left") == [(0, 5, "a"), (9, 5, None)]
    ice.sql("DELETE FROM db.left")
    for text in short:
        ice.sql(text)
    assert sorted_rows(ice, "SELECT * FROM db.left") == [(1, 5, None), (2, 5, None), (9, 5, None)]


def all_optional(table: Table) -> bool:
    names = table.schema().names_by_id
    keys = {each.field_id for each in walk_fields(table.schema().fields) if names[each.field_id].endswith(".key")}
    return all(each.optional for each in walk_fields(table.schema().fields) if each.field_id not in keys)


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_all_columns_of_a_query_are_optional_in_a_new_table(ice: Session, spark: Any, version: int) -> None:
    properties = f"TBLPROPERTIES ('format-version' = '{version}')"
    frame = spark.sql(f"SELECT 1 AS id, {NESTED}")
    ice.sql(f"CREATE OR REPLACE TABLE db.made {properties} AS SELECT 1 AS id, {NESTED}")
    assert all_optional(ice.load_table("db.made"))
    ice.sql(f"REPLACE TABLE db.made {properties} AS SELECT * FROM db.made")
    assert all_optional(ice.load_table("db.made"))
    write = ice.write(frame).to("db.made").table_property("format-version", version)
    for make in (write.replace, write.create_or_replace):
        make()
        assert all_optional(ice.load_table("db.made"))
    ice.sql("DROP TABLE db.made")
    write.create()
    assert all_optional(ice.load_table("db.made"))
    ice.sql("INSERT INTO db.made VALUES (2, array(NULL), map('k', NULL), named_struct('y', NULL, 'z', array(NULL)))")
    assert len(sorted_rows(ice, "SELECT * FROM db.made")) == 2
    ice.sql("DROP TABLE db.made")


def test_columns_that_a_table_takes_in_are_optional(ice: Session, spark: Any) -> None:
    frame = spark.sql(f"SELECT 1 AS id, {NESTED}")
    required = "CREATE OR REPLACE TABLE db.grown (id INT NOT NULL)"
    source = f"(SELECT 1 AS id, {NESTED})"
    merge = "MERGE WITH SCHEMA EVOLUTION INTO db.grown t USING {} q ON t.id = q.id WHEN NOT MATCHED THEN INSERT *"
    for add in (
        lambda: ice.write(frame).to("db.grown").option("mergeSchema", True).append(),
        lambda: ice.sql(f"INSERT WITH SCHEMA EVOLUTION INTO db.grown BY NAME SELECT * FROM {source}"),
        lambda: ice.sql(merge.format(source)),
    ):
        ice.sql(required)
        add()
        table = ice.load_table("db.grown")
        assert table.schema().find_field("id").required
        with table.update_schema(allow_incompatible_changes=True) as update:
            update.make_column_optional("id")
        assert all_optional(ice.load_table("db.grown"))


def test_char_and_varchar_are_strings_of_any_length(ice: Session) -> None:
    """Java's tables say string to Spark, so that it neither pads nor checks what goes into them."""
    ice.sql("CREATE TABLE db.chars (id INT, c CHAR(3), v VARCHAR(3), a ARRAY<CHAR(2)>)")
    schema = ice.load_table("db.chars").schema()
    assert {type(schema.find_type(name)) for name in ("c", "v", "a.element")} == {StringType}
    ice.sql("INSERT INTO db.chars VALUES (1, 'a', 'b ', array('c')), (2, 'abcdef', 'abcdef', array('long'))")
    ice.sql("UPDATE db.chars SET c = 'longer' WHERE c = 'a'")
    ice.sql(
        "MERGE INTO db.chars t USING (SELECT 3 AS i) q ON t.id = q.i WHEN NOT MATCHED THEN INSERT (id, v) VALUES (3, 'long')"
    )
    assert sorted_rows(ice, "SELECT id, c, v, a[0] FROM db.chars") == [
        (1, "longer", "b ", "c"),
        (2, "abcdef", "abcdef", "long"),
        (3, None, "long", None),
    ]
    for kind in ("VARCHAR(9)", "CHAR(9)"):
        with pytest.raises(InvalidInputError, match=r"(?i)NOT_SUPPORTED_CHANGE_COLUMN.*cannot become (var)?char\(9\)"):
            ice.sql(f"ALTER TABLE db.chars ALTER COLUMN v TYPE {kind}")
    ice.sql("ALTER TABLE db.chars ADD COLUMN w VARCHAR(2)")
    ice.sql("CREATE TABLE db.cast AS SELECT CAST('a' AS CHAR(3)) AS c")
    assert sorted_rows(ice, "SELECT c FROM db.cast") == [("a",)]
