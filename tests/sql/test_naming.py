"""Errors name the statement and what it is about."""

import pytest

from icefloe.errors import CorruptFileError, InvalidInputError
from icefloe.sql.parser import head_of, name_statement


@pytest.mark.parametrize(
    ("text", "head"),
    [
        ("ALTER TABLE lake.db.t ADD COLUMN id INT", "ALTER TABLE lake.db.t ADD COLUMN id"),
        ("alter table `a.b`.t\n  DROP PARTITION FIELD x", "alter table `a.b`.t DROP PARTITION FIELD"),
        ("CREATE TABLE IF NOT EXISTS db.t (id INT)", "CREATE TABLE IF NOT EXISTS db.t"),
        ("CREATE OR REPLACE TABLE t AS SELECT 1", "CREATE OR REPLACE TABLE t"),
        ("INSERT INTO db.t VALUES (1)", "INSERT INTO db.t"),
        ("DELETE FROM db.t.branch_x WHERE a = 1", "DELETE FROM db.t.branch_x"),
        ("UPDATE db.t SET a = 1", "UPDATE db.t"),
        ("MERGE INTO t USING s ON true", "MERGE INTO t"),
        ("MERGE WITH SCHEMA EVOLUTION INTO t USING s ON true", "MERGE WITH SCHEMA EVOLUTION INTO t"),
        ("CREATE GLOBAL TEMPORARY VIEW v AS SELECT 1", "CREATE GLOBAL TEMPORARY VIEW v"),
        ("DROP VIEW IF EXISTS a.b", "DROP VIEW IF EXISTS a.b"),
        ("CALL lake.system.ancestors_of('t')", "CALL lake.system.ancestors_of"),
        ("SHOW PARTITIONS db.t", "SHOW PARTITIONS db.t"),
        ("SELECT * FROM db.t", None),
        ("WITH x AS (SELECT 1) SELECT * FROM x", None),
        ("/* said */ SELECT 1", None),
        ("", None),
    ],
)
def test_the_head_of_a_statement(text: str, head: str | None) -> None:
    assert head_of(text) == head


def test_an_error_gets_it_once() -> None:
    error = InvalidInputError("no column named 'x'")
    for _ in range(2):
        name_statement(error, "UPDATE db.t SET x = 1")
    assert str(error) == "UPDATE db.t: no column named 'x'"
    name_statement(error, "SELECT 1")
    assert str(error) == "UPDATE db.t: no column named 'x'"
    corrupt = CorruptFileError("/place", "bad")
    name_statement(corrupt, "UPDATE db.t SET x = 1")
    assert str(corrupt) == "/place: bad"
