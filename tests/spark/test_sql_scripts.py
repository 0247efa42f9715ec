"""Scripts, `BEGIN ... END`, on our tables; `tests/peers/sql/scenarios/sessions.sql` compares more of them with Java Iceberg."""

from pathlib import Path
from typing import Any

import pytest

from icefloe import load_catalog
from icefloe.errors import InvalidInputError, NoSuchColumnError
from icefloe.spark.gateway import is_at_least
from icefloe.spark.session import Session
from tests.shared_rows import sorted_rows


@pytest.fixture
def ice(spark: Any, tmp_path: Path) -> Session:
    if not is_at_least(spark, (4, 1)):
        pytest.skip("Spark 4.0 has no scripts unless asked to")
    catalog = load_catalog("lake", type="sql", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    session = Session(spark, {"lake": catalog})
    session.sql("CREATE TABLE db.t (id INT)")
    return session


def test_each_statement_sees_the_variables_and_what_was_done_before_it(ice: Session) -> None:
    text = """
    BEGIN
      DECLARE i INT DEFAULT 0;
      WHILE (SELECT count(*) FROM db.t) < :most DO INSERT INTO db.t SELECT i; SET i = i + 1; END WHILE;
      SET i = (SELECT sum(id) FROM db.t);
      SELECT i, count(*) FROM lake.db.t;
      DELETE FROM db.t WHERE id = 0;
    END"""
    assert sorted_rows(ice, text, {"most": 3}) == [(3, 3)]
    assert sorted_rows(ice, "SELECT * FROM db.t") == [(1,), (2,)]
    assert sorted_rows(ice, "BEGIN SELECT 1 AS one; SELECT 2 AS two; END") == [(2,)]


def test_an_error_of_ours_is_itself_or_is_handled(ice: Session) -> None:
    with pytest.raises(NoSuchColumnError, match="nix"):
        ice.sql("BEGIN INSERT INTO db.t VALUES (1); ALTER TABLE db.t DROP COLUMN nix; INSERT INTO db.t VALUES (2); END")
    assert sorted_rows(ice, "SELECT * FROM db.t") == [(1,)]
    failing = "BEGIN DECLARE EXIT HANDLER FOR {} INSERT INTO db.t VALUES ({}); {}; INSERT INTO db.t VALUES (0); END"
    ice.sql(failing.format("SQLEXCEPTION", 3, "ALTER TABLE db.t DROP COLUMN nix"))
    ice.sql(failing.format("TABLE_OR_VIEW_NOT_FOUND", 4, "DELETE FROM lake.db.none"))
    assert sorted_rows(ice, "SELECT * FROM db.t") == [(1,), (3,), (4,)]


def test_immediate_statements_find_tables_by_the_same_names(ice: Session) -> None:
    ice.sql("EXECUTE IMMEDIATE 'INSERT INTO db.t VALUES (?)' USING 5")
    text = (
        "BEGIN DECLARE name STRING DEFAULT 'db.t'; EXECUTE IMMEDIATE 'SELECT * FROM ' || name || ' WHERE id = 5'; END"
    )
    assert sorted_rows(ice, text) == [(5,)]


def test_the_function_behind_it_is_not_for_users(ice: Session) -> None:
    with pytest.raises(InvalidInputError, match="is for the statements of scripts"):
        ice.sql("SELECT * FROM icefloe_statement(1)")
