"""What stays of a commit that is cut off, and what is said of one whose outcome nobody saw."""

import multiprocessing
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import sqlalchemy as sa
from sqlalchemy.exc import OperationalError

from icefloe.catalog import Catalog, Identifier, MemoryCatalog, SqlCatalog, load_catalog
from icefloe.catalog.memory import MemoryPointers
from icefloe.catalog.pointers import TABLE, VIEW
from icefloe.catalog.seals import Seal
from icefloe.errors import CommitFailed, CommitStateUnknown, StorageError
from icefloe.schema.types import LongType
from icefloe.storage import Storage
from icefloe.storage.protocol import DeleteFailure
from icefloe.table import Table
from tests.catalog.databases import PostgresServer
from tests.catalog.tables import SCHEMA, Maker, append, files_below, is_linear, live_files, write_rows
from tests.catalog.workers import BOUNDARIES, NAME, append_and_die

QUICK = {
    "commit.retry.num-retries": "2",
    "commit.retry.min-wait-ms": "1",
    "commit.retry.max-wait-ms": "2",
    "commit.status-check.num-retries": "1",
    "commit.status-check.min-wait-ms": "1",
}


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("kind", ["sqlite", "postgres", "hadoop"])
@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_a_killed_writer_leaves_all_or_nothing(catalog: Catalog, make: Maker, boundary: str) -> None:
    if boundary == "metadata written" and make.kind == "hadoop":
        boundary = "after swap"
    table = catalog.create_table(NAME, SCHEMA)
    kept = append(table, 1).file_path
    context = multiprocessing.get_context("fork")
    path = context.Queue()
    writer = context.Process(target=append_and_die, args=(make.name, make.properties, boundary, path))
    writer.start()
    file = path.get(timeout=60)
    writer.join(60)
    assert writer.exitcode == -9
    found = catalog.load_table(NAME)
    expected = {kept, file} if boundary == "after swap" else {kept}
    assert sorted(live_files(found)) == sorted(expected)
    # The next writer, with a handle from before, is not hindered.
    expected.add(append(table, 2).file_path)
    found = catalog.load_table(NAME)
    assert sorted(live_files(found)) == sorted(expected)
    assert is_linear(found)
    assert all(catalog.storage.exists(each) for each in expected)


class LostPointers(MemoryPointers):
    """Pointers whose answers are lost, before or after the step was done."""

    catalog: "LostReplies"

    def swap(self, identifier: Identifier, expected: str, location: str, seal: Seal | None = None) -> bool:
        return self._lost(lambda: super(LostPointers, self).swap(identifier, expected, location, seal))

    def insert(self, identifier: Identifier, location: str, seal: Seal | None = None) -> bool:
        return self._lost(lambda: super(LostPointers, self).insert(identifier, location, seal))

    def _lost(self, step: Callable[[], bool]) -> bool:
        if not self.catalog.losing:
            return step()
        if self.catalog.happens:
            assert step()
        raise CommitStateUnknown("the reply was lost")


class LostReplies(MemoryCatalog):
    """A catalog whose answers are lost."""

    happens = True
    losing = False

    def __init__(self, name: str, properties: Mapping[str, str]) -> None:
        super().__init__(name, properties)
        tables, views = (LostPointers(name, noun, self._content) for noun in (TABLE, VIEW))
        tables.catalog = views.catalog = self
        self._table_pointers, self._view_pointers = tables, views


@pytest.fixture
def losing() -> LostReplies:
    made = LostReplies("lake", {})
    made.create_namespace("shop")
    return made


def test_a_lost_reply_is_not_a_lost_commit(losing: LostReplies) -> None:
    table = losing.create_table(NAME, SCHEMA, properties=QUICK)
    losing.losing = True
    file = append(table, 1)
    table.set_properties({"a": "b"})
    losing.losing = False
    view = losing.create_view("shop.view", "a int", "SELECT 1")
    losing.losing = True
    assert losing.views.replace("shop.view", "a int", "SELECT 2").metadata_location != view.metadata_location
    losing.losing = False
    assert losing.load_view("shop.view").sql_for() == "SELECT 2"
    loaded = losing.load_table(NAME)
    assert live_files(loaded) == [file.file_path]
    assert len(loaded.snapshots()) == 1
    assert loaded.properties["a"] == "b"


def test_an_unknown_outcome_deletes_nothing(losing: LostReplies) -> None:
    table = losing.create_table(NAME, SCHEMA, properties=QUICK)
    losing.losing, losing.happens = True, False
    file = write_rows(table, 1)
    before = files_below(losing, table.location())
    with pytest.raises(CommitStateUnknown, match="the reply was lost"):
        table.update_snapshot().fast_append([file])
    losing.losing = False
    assert losing.load_table(NAME).snapshots() == []
    left = files_below(losing, table.location()) - before
    assert {each.rpartition("/")[2].rpartition(".")[2] for each in left} == {"avro", "json"}
    assert len(left) == 3


def test_a_table_is_created_though_the_reply_was_lost(losing: LostReplies) -> None:
    losing.losing = True
    table = losing.create_table("shop.one", SCHEMA)
    view = losing.create_view("shop.view", "a int", "SELECT 1")
    with losing.create_table_transaction("shop.two", SCHEMA):
        pass
    losing.happens = False
    with pytest.raises(CommitStateUnknown):
        losing.create_table("shop.three", SCHEMA)
    losing.losing = False
    assert losing.load_table("shop.one").metadata == table.metadata
    assert losing.load_view("shop.view") == view
    assert losing.list_tables("shop") == [("shop", "one"), ("shop", "two")]
    assert len(files_below(losing, f"{losing.warehouse}/shop/three")) == 1


def test_a_staged_table_without_rows_that_was_not_created_is_not_said_to_be(losing: LostReplies) -> None:
    losing.losing, losing.happens = True, False
    with pytest.raises(CommitStateUnknown, match="the reply was lost"):
        losing.create_table_transaction("shop.new", SCHEMA, properties=QUICK).commit_transaction()
    losing.losing = False
    losing._storage = store = Failing()
    store.full_for = ".metadata.json"
    with pytest.raises(CommitFailed, match=r"was not created; nothing was changed: .*no space left"):
        losing.create_table_transaction("shop.new", SCHEMA, properties=QUICK).commit_transaction()
    assert not losing.table_exists("shop.new")


class TwicePointers(MemoryPointers):
    """Pointers to which something on the way sends every request twice; others may come in between."""

    between: Callable[[], object] | None = None

    def swap(self, identifier: Identifier, expected: str, location: str, seal: Seal | None = None) -> bool:
        assert super().swap(identifier, expected, location, seal)
        between, self.between = self.between, None
        if between is not None:
            between()
        return super().swap(identifier, expected, location, seal)

    def insert(self, identifier: Identifier, location: str, seal: Seal | None = None) -> bool:
        super().insert(identifier, location, seal)
        # What is there is ours, but the second request cannot tell.
        return False


class SentTwice(MemoryCatalog):
    """A catalog of such pointers."""

    def __init__(self, name: str, properties: Mapping[str, str]) -> None:
        super().__init__(name, properties)
        self.tables = self._table_pointers = TwicePointers(name, TABLE, self._content)
        self._view_pointers = TwicePointers(name, VIEW, self._content)


def test_a_request_that_is_sent_twice_counts_once() -> None:
    catalog = SentTwice("lake", {})
    catalog.create_namespace("shop")
    table = catalog.create_table(NAME, SCHEMA, properties=QUICK)
    catalog.create_view("shop.view", "a int", "SELECT 1")
    catalog.views.replace("shop.view", "a int", "SELECT 2")
    file = append(table, 1)
    table.manage_snapshots().create_branch("dev").commit()
    with table.update_schema() as update:
        update.add_column("more", LongType())
    catalog.create_table_transaction("shop.new", SCHEMA).commit_transaction()
    found = catalog.load_table(NAME)
    assert live_files(found) == [file.file_path]
    assert len(found.snapshots()) == 1
    assert [each.name for each in found.schema().fields] == ["id", "name", "more"]
    assert catalog.load_view("shop.view").sql_for() == "SELECT 2"
    assert catalog.load_table("shop.new").snapshots() == []


@pytest.mark.parametrize("change", ["append", "properties"])
def test_a_file_that_another_writer_has_built_on_stays(change: str) -> None:
    catalog = SentTwice("lake", {})
    catalog.create_namespace("shop")
    table = catalog.create_table(NAME, SCHEMA, properties=QUICK)
    other = catalog.load_table(NAME)
    catalog.tables.between = lambda: append(other, 2)
    if change == "append":
        append(table, 1)
    else:
        table.set_properties({"a": "b"})
        assert catalog.load_table(NAME).properties["a"] == "b"
    found = catalog.load_table(NAME)
    assert len(live_files(found)) == (2 if change == "append" else 1)
    log = [found.metadata.resolve(each.metadata_file) for each in found.metadata.metadata_log]
    assert len(log) == 2
    assert all(catalog.storage.exists(each) for each in log)


def test_the_file_of_a_lost_race_goes_when_the_table_was_read_again(
    losing: LostReplies, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = losing.create_table(NAME, SCHEMA, properties=QUICK)
    other = losing.load_table(NAME)
    swap = losing._table_pointers.swap

    def slow(*arguments: Any) -> bool:
        monkeypatch.undo()
        append(other, 1)
        return swap(*arguments)

    monkeypatch.setattr(losing._table_pointers, "swap", slow)
    table.set_properties({"a": "b"})
    names = {each for each in files_below(losing, table.location()) if each.endswith(".metadata.json")}
    found = losing.load_table(NAME)
    assert names == {
        found.metadata_location,
        *(found.metadata.resolve(each.metadata_file) for each in found.metadata.metadata_log),
    }
    assert found.properties["a"] == "b"


def test_a_purge_with_an_unknown_outcome_deletes_nothing(losing: LostReplies, monkeypatch: pytest.MonkeyPatch) -> None:
    table = losing.create_table(NAME, SCHEMA)
    append(table, 1)
    before = files_below(losing, table.location())

    def lost(*arguments: object) -> bool:
        raise CommitStateUnknown("the reply was lost")

    monkeypatch.setattr(losing._table_pointers, "remove", lost)
    with pytest.raises(CommitStateUnknown):
        losing.purge_table(NAME)
    assert files_below(losing, table.location()) == before


# A database that fails at the worst moment


def break_commits(catalog: SqlCatalog, *, after: bool) -> Any:
    """Let every COMMIT of the catalog fail, before or after the database did it."""
    engine = catalog._database._opened()

    def fail(connection: Any) -> None:
        if after:
            raw = connection.connection.dbapi_connection
            raw.execute("COMMIT")
        raise OperationalError("COMMIT", None, Exception("server closed the connection"))

    sa.event.listen(engine, "commit", fail)
    return lambda: sa.event.remove(engine, "commit", fail)


@pytest.fixture(params=["sqlite", "postgres"])
def sql_catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    uri = f"sqlite:///{tmp_path}/catalog.db"
    if request.param == "postgres":
        server: PostgresServer = request.getfixturevalue("postgres")
        uri = server.new_database()
    with load_catalog("lake", type="sql", uri=uri, warehouse=str(tmp_path / "w")) as made:
        made.create_namespace("shop")
        yield made


@pytest.mark.parametrize("after", [True, False])
def test_a_failing_commit_of_the_database_is_unknown(sql_catalog: SqlCatalog, after: bool) -> None:
    table = sql_catalog.create_table(NAME, SCHEMA, properties=QUICK)
    file = write_rows(table, 1)
    mend = break_commits(sql_catalog, after=after)
    if after:
        table.update_snapshot().fast_append([file])
    else:
        with pytest.raises(CommitStateUnknown, match=r"unknown whether a change of .*: server closed the connection"):
            table.update_snapshot().fast_append([file])
    with pytest.raises(CommitStateUnknown):
        sql_catalog.drop_table(NAME) if not after else sql_catalog.create_namespace("other")
    mend()
    assert live_files(sql_catalog.load_table(NAME)) == ([file.file_path] if after else [])
    append(sql_catalog.load_table(NAME), 2)


def test_a_statement_that_fails_changed_nothing(sql_catalog: SqlCatalog) -> None:
    table = sql_catalog.create_table(NAME, SCHEMA, properties=QUICK)
    engine = sql_catalog._database._opened()
    failures = []

    def fail(connection: Any, cursor: Any, statement: str, *_: object) -> None:
        if statement.startswith("UPDATE"):
            failures.append(statement)
            raise OperationalError(statement, None, Exception("server closed the connection"))

    sa.event.listen(engine, "before_cursor_execute", fail)
    before = files_below(sql_catalog, table.location())
    with pytest.raises(CommitFailed, match=r"nothing was changed: .*server closed the connection"):
        table.set_properties({"a": "b"})
    sa.event.remove(engine, "before_cursor_execute", fail)
    assert len(failures) == 3
    assert "metadata_location = " in failures[0].partition("WHERE")[2]
    assert files_below(sql_catalog, table.location()) == before
    table.set_properties({"a": "b"})
    assert sql_catalog.load_table(NAME).properties["a"] == "b"


# A store that fails


class Failing(Storage):
    """A store that is full for some files, or deletes nothing."""

    full_for = "nothing"
    deletes = True

    def write(self, location: str, data: bytes) -> None:
        if self.full_for in location:
            raise StorageError(location, "no space left on device")
        super().write(location, data)

    def create_exclusive(self, location: str, data: bytes) -> None:
        if self.full_for in location:
            raise StorageError(location, "no space left on device")
        super().create_exclusive(location, data)

    def delete(self, locations: Iterable[str]) -> list[DeleteFailure]:
        if not self.deletes:
            raise StorageError("everything", "cannot be deleted")
        return super().delete(locations)


@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgres", "hadoop"])
@pytest.mark.parametrize("what", [".metadata.json", "/snap-", "-m0.avro"])
def test_a_full_disk_changes_nothing(catalog: Catalog, make: Maker, what: str) -> None:
    table = catalog.create_table(NAME, SCHEMA, properties=QUICK)
    kept = append(table, 1)
    file = write_rows(table, 2)
    before = files_below(catalog, table.location())
    store = Failing()
    catalog._storage = store
    store.full_for = what
    full = catalog.load_table(NAME)
    # What an exclusive create did before it failed is not known; anything else is certain.
    unknown = make.kind == "hadoop" and what == ".metadata.json"
    with pytest.raises(CommitStateUnknown if unknown else (CommitFailed, StorageError), match="no space left"):
        full.update_snapshot().fast_append([file])
    store.full_for = "nothing"
    assert live_files(catalog.load_table(NAME)) == [kept.file_path]
    left = files_below(catalog, table.location()) - before
    assert (len(left) == 2) if unknown else (left == set())
    append(full.refresh(), 3)
    assert len(live_files(catalog.load_table(NAME))) == 2


@pytest.mark.parametrize("kind", ["hadoop"])
def test_a_version_that_is_created_twice_by_one_request_is_ours(catalog: Catalog) -> None:
    class Twice(Storage):
        def create_exclusive(self, location: str, data: bytes) -> None:
            super().create_exclusive(location, data)
            super().create_exclusive(location, data)

    catalog._storage = Twice()
    table = catalog.create_table(NAME, SCHEMA, properties=QUICK)
    append(table, 1)
    table.manage_snapshots().create_branch("dev").commit()
    found = catalog.load_table(NAME)
    assert len(live_files(found)) == 1
    assert set(found.refs()) == {"main", "dev"}
    assert str(found.metadata_location).endswith("/v3.metadata.json")


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_rows_that_cannot_be_deleted_do_not_hide_why_they_were_refused(catalog: Catalog) -> None:
    table = catalog.create_table(NAME, SCHEMA, properties=QUICK)
    store = catalog._storage = Failing()
    store.full_for, store.deletes = "-m0.avro", False
    with pytest.raises(StorageError, match="no space left"):
        catalog.load_table(NAME).append(pa.table({"id": [1], "name": ["a"]}))
    assert table.refresh().snapshots() == []


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_leftovers_that_stay_change_no_outcome(catalog: Catalog) -> None:
    store = Failing()
    catalog._storage = store
    store.deletes = False
    properties = {
        **QUICK,
        "write.metadata.previous-versions-max": "1",
        "write.metadata.delete-after-commit.enabled": "true",
    }
    table: Table = catalog.create_table(NAME, SCHEMA, properties=properties)
    stale = catalog.load_table(NAME)
    for number in range(3):
        append(table, number)
    append(stale, 9)
    assert len(live_files(catalog.load_table(NAME))) == 4
    catalog.purge_table(NAME)
    assert not catalog.table_exists(NAME)
