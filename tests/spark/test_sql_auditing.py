"""Write, audit, publish by the settings of a session: what is read and changed is the branch, wherever no other is named."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from icefloe import load_catalog
from icefloe.errors import InvalidInputError
from icefloe.spark.session import Session
from tests.shared_rows import sql_modes

BRANCH, ID = "spark.wap.branch", "spark.wap.id"


@pytest.fixture(scope="module")
def ice(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Session:
    folder = tmp_path_factory.mktemp("auditing")
    catalog = load_catalog("audited", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=str(folder))
    catalog.create_namespace("db")
    return Session(spark, {"audited": catalog})


@pytest.fixture
def setting(ice: Session) -> Iterator[Callable[[str, str], None]]:
    yield ice.spark.conf.set
    for key in (BRANCH, ID):
        ice.spark.conf.unset(key)


def ids(session: Any, text: str) -> list[int]:
    return sorted(row[0] for row in session.sql(text).collect())


def create(ice: Session, name: str, *values: int, enabled: bool = True, mode: str = "copy-on-write") -> str:
    modes = sql_modes(mode)
    ice.sql(
        f"CREATE TABLE audited.db.{name} (id INT, v INT) TBLPROPERTIES ('write.wap.enabled'='{enabled}', {modes})"
    ).collect()
    if values:
        rows = ", ".join(f"({each}, 0)" for each in values)
        ice.sql(f"INSERT INTO audited.db.{name} SELECT /*+ COALESCE(1) */ * FROM VALUES {rows}").collect()
    return f"audited.db.{name}"


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_statements_read_and_change_the_branch(ice: Session, setting: Any, mode: str) -> None:
    table = create(ice, f"rows_{mode[0]}", 1, 2, mode=mode)
    setting(BRANCH, "audit")
    # A branch that is not there yet is main.
    assert ids(ice, f"SELECT id FROM {table}") == [1, 2]
    ice.sql(f"INSERT INTO {table} VALUES (5, 0)").collect()
    ice.sql(f"UPDATE {table} SET id = 50 WHERE id = 5").collect()
    ice.sql(f"DELETE FROM {table} WHERE id = 1").collect()
    ice.sql(f"UPDATE {table} SET v = 9 WHERE id = 1").collect()
    ice.sql(f"INSERT INTO {table} SELECT id + 100, v FROM {table}").collect()
    assert ids(ice, f"SELECT id FROM {table}") == [2, 50, 102, 150]
    ice.sql(
        f"MERGE INTO {table} t USING {table} s ON t.id = s.id + 100 WHEN MATCHED THEN DELETE"
        " WHEN NOT MATCHED AND s.id > 100 THEN INSERT (id, v) VALUES (s.id + 1, 0)"
    ).collect()
    assert ids(ice, f"SELECT id FROM {table}") == [2, 50, 103, 151]
    ice.spark.conf.unset(BRANCH)
    assert ids(ice, f"SELECT id FROM {table}") == [1, 2]
    assert ids(ice, f"SELECT id FROM {table}.branch_audit") == [2, 50, 103, 151]


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_a_branch_among_snapshot_properties_is_read_and_changed(ice: Session, mode: str) -> None:
    table = create(ice, f"noted_{mode[0]}", 1, 2, mode=mode)
    ice.sql(f"ALTER TABLE {table} CREATE BRANCH audit").collect()
    ice.sql(f"INSERT INTO {table}.branch_audit VALUES (5, 0)").collect()
    ice.delete(table, "id >= 2", snapshot_properties={"wap.branch": "audit"})
    assert ids(ice, f"SELECT id FROM {table}.branch_audit") == [1]
    assert ids(ice, f"SELECT id FROM {table}") == [1, 2]


def test_what_is_named_comes_before_the_setting(ice: Session, setting: Any) -> None:
    table = create(ice, "named", 1)
    ice.sql(f"ALTER TABLE {table} CREATE BRANCH other").collect()
    ice.sql(f"ALTER TABLE {table} CREATE TAG first").collect()
    (first,) = ice.load_table("db.named").snapshots()
    setting(BRANCH, "audit")
    ice.sql(f"INSERT INTO {table} VALUES (2, 0)").collect()
    ice.sql(f"INSERT INTO {table}.branch_other VALUES (3, 0)").collect()
    for text, expected in (
        (table, [1, 2]),
        (f"{table}.branch_other", [1, 3]),
        (f"{table}.branch_main", [1]),
        (f"{table}.tag_first", [1]),
        (f"{table}.snapshot_id_{first.snapshot_id}", [1]),
        (f"{table} VERSION AS OF 'other'", [1, 3]),
        (f"{table} VERSION AS OF {first.snapshot_id}", [1]),
    ):
        assert ids(ice, f"SELECT id FROM {text}") == expected, text
    ice.sql(f"TRUNCATE TABLE {table}").collect()
    assert ids(ice, f"SELECT id FROM {table}") == []
    assert ids(ice, f"SELECT id FROM {table}.branch_main") == [1]
    ice.sql(f"TRUNCATE TABLE {table}.branch_other").collect()
    assert ids(ice, f"SELECT id FROM {table}.branch_other") == []
    assert ids(ice, f"SELECT id FROM {table}.branch_main") == [1]
    with pytest.raises(InvalidInputError, match="tag"):
        ice.sql(f"TRUNCATE TABLE {table}.tag_first")


def test_calls_of_python_do_the_same(ice: Session, setting: Any) -> None:
    create(ice, "calls", 1, 2)
    setting(BRANCH, "audit")
    ice.write(ice.spark.sql("SELECT 5 AS id, 0 AS v")).to("db.calls").append()
    ice.update("db.calls", {"id": "id + 10"}, "id = 5")
    ice.delete("db.calls", "id = 1")
    ice.merge("db.calls").using(ice.table("db.calls"), ["id"]).when_matched_update({"v": "7"}).execute()
    assert sorted(map(tuple, ice.table("db.calls").collect())) == [(2, 7), (15, 7)]
    assert sorted(map(tuple, ice.table("db.calls", ref="main").collect())) == [(1, 0), (2, 0)]


def test_the_first_change_of_an_empty_table_makes_the_branch(ice: Session, setting: Any) -> None:
    table = create(ice, "empty")
    setting(BRANCH, "audit")
    assert ids(ice, f"SELECT id FROM {table}") == []
    ice.sql(f"INSERT INTO {table} VALUES (1, 0)").collect()
    ice.sql(f"UPDATE {table} SET id = 2").collect()
    assert ids(ice, f"SELECT id FROM {table}") == [2]
    assert list(ice.load_table("db.empty").refs()) == ["audit"]


def test_an_id_stages_and_is_not_read(ice: Session, setting: Any) -> None:
    table = create(ice, "staged", 1)
    setting(ID, "w1")
    ice.sql(f"UPDATE {table} SET id = 2").collect()
    assert ids(ice, f"SELECT id FROM {table}") == [1]
    setting(BRANCH, "audit")
    for text in (f"SELECT id FROM {table}", f"INSERT INTO {table} VALUES (3, 0)"):
        with pytest.raises(InvalidInputError, match=r"'w1'.*'audit'.*are mutually exclusive"):
            ice.sql(text)
    ice.spark.conf.unset(ID)
    ice.spark.conf.unset(BRANCH)
    ice.sql("CALL audited.system.publish_changes('db.staged', 'w1')").collect()
    assert ids(ice, f"SELECT id FROM {table}") == [2]


def test_tables_that_are_not_audited_take_no_notice(ice: Session, setting: Any) -> None:
    table = create(ice, "plain", enabled=False)
    setting(BRANCH, "audit")
    ice.sql(f"INSERT INTO {table} VALUES (1, 0)").collect()
    setting(ID, "w1")
    ice.sql(f"INSERT INTO {table} VALUES (2, 0)").collect()
    assert ids(ice, f"SELECT id FROM {table}") == [1, 2]
    assert list(ice.load_table("db.plain").refs()) == ["main"]
