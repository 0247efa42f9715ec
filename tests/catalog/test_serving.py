"""What servers ask of catalogs: several tables in one step, and more work in the transaction of a change."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from hypothesis import given, strategies as st
from sqlalchemy.engine import Connection

from icefloe.catalog import Catalog, RefusedAlongsideError, ServedCatalog, TableChange, load_catalog
from icefloe.catalog.sql import _namespace_parts, _namespace_text
from icefloe.commit import Prepared
from icefloe.errors import CommitFailed, StaleBaseError, UnsupportedOperationError
from icefloe.metadata import updates as up
from tests.catalog.databases import PostgresServer

ONE, TWO, NEW = ("shop", "one"), ("shop", "two"), ("shop", "new")


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def served(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ServedCatalog]:
    with _catalog(request, tmp_path) as catalog:
        catalog.create_namespace("shop")
        for name in (ONE, TWO):
            catalog.create_table(name, "id bigint")
        yield ServedCatalog(catalog)


def _catalog(request: pytest.FixtureRequest, folder: Path) -> Catalog:
    match request.param:
        case "memory":
            return load_catalog("lake", type="memory", warehouse=str(folder))
        case "sqlite":
            return load_catalog("lake", type="sql", uri=f"sqlite:///{folder}/lake.db", warehouse=str(folder))
        case _:
            server: PostgresServer = request.getfixturevalue("postgres")
            return load_catalog("lake", type="sql", uri=server.new_database(), warehouse=str(folder))


def change(served: ServedCatalog, name: tuple[str, ...], value: str) -> TableChange:
    return TableChange(name, served.committer(name).load(), Prepared((up.SetPropertiesUpdate({"p": value}),)))


def creation(served: ServedCatalog, name: tuple[str, ...]) -> TableChange:
    metadata = served.read_table(str(served.table_location(ONE))).evolve(table_uuid="9" * 8, location="memory://new/t")
    return TableChange(name, None, created=metadata)


def value(served: ServedCatalog, name: tuple[str, ...]) -> str | None:
    return served.catalog.load_table(name).properties.get("p")


def test_several_tables_change_in_one_step(served: ServedCatalog) -> None:
    first, second = served.commit_all([change(served, ONE, "1"), change(served, TWO, "2")])
    assert (value(served, ONE), value(served, TWO)) == ("1", "2")
    assert served.table_location(ONE) == first.metadata_location
    assert served.table_location(TWO) == second.metadata_location
    again = served.commit_all([change(served, ONE, "1"), change(served, TWO, "2")])
    assert again == [first, second]


def test_a_table_is_created_in_the_same_step(served: ServedCatalog) -> None:
    served.commit_all([creation(served, NEW), change(served, ONE, "1")])
    assert served.catalog.table_exists(NEW)
    assert value(served, ONE) == "1"


def test_several_tables_are_located_as_each_of_them_is(served: ServedCatalog) -> None:
    served.catalog.create_namespace(("sh%2Eop", "in.ner"))
    odd = [("sh%2Eop", "in.ner", "it's"), ("shop", 'qu"ote'), ("shop", "ONE"), ("shop", "é\N{BLACK HEART SUIT}")]
    for name in odd:
        served.catalog.create_table(name, "id bigint")
    served.catalog.create_view(("shop", "view"), "id bigint", "SELECT 1 AS id")
    names = [ONE, TWO, NEW, ("shop", "view"), ("sh", "op", "one"), *odd]
    alone = {name: served.table_location(name) for name in names}
    assert dict(served.table_locations(names)) == {name: place for name, place in alone.items() if place is not None}
    assert len(served.table_locations(names)) == 6
    assert not served.table_locations([])


def test_all_or_none(served: ServedCatalog) -> None:
    stale = [change(served, ONE, "1"), change(served, TWO, "2")]
    served.catalog.load_table(TWO).set_properties({"p": "mine"})
    before = files(served)
    with pytest.raises(StaleBaseError, match=r"shop\.two is at"):
        served.commit_all(stale)
    assert (value(served, ONE), value(served, TWO)) == (None, "mine")
    assert files(served) == before


def test_a_race_that_is_lost_at_the_swap(served: ServedCatalog, monkeypatch: pytest.MonkeyPatch) -> None:
    changes = [change(served, ONE, "1"), change(served, TWO, "2")]
    catalog = served.catalog
    find = catalog._table_pointers.swap_all  # type: ignore[attr-defined]  # every catalog here has it

    def slow(swaps: object) -> object:
        monkeypatch.undo()
        catalog.load_table(TWO).set_properties({"p": "mine"})
        return find(swaps)

    monkeypatch.setattr(catalog._table_pointers, "swap_all", slow)  # type: ignore[attr-defined]
    with pytest.raises(CommitFailed, match="another writer committed first"):
        served.commit_all(changes)
    assert (value(served, ONE), value(served, TWO)) == (None, "mine")
    # The files of the lost race go once the tables show that they need none of them.
    for name in (ONE, TWO):
        served.committer(name).load()
    assert {served.table_location(ONE), served.table_location(TWO)} <= files(served)
    assert not [file for file in files(served) if "00001-" in file and "one" in file]


def files(served: ServedCatalog) -> set[str]:
    return {entry.location for entry in served.catalog.storage.list_prefix(str(served.catalog.warehouse))}


@pytest.mark.parametrize("served", ["sqlite", "postgres"], indirect=True)
def test_more_work_is_done_in_the_transaction_of_a_change_or_not_at_all(served: ServedCatalog) -> None:
    catalog, notes = served.catalog, sa.MetaData()
    table = sa.Table("notes", notes, sa.Column("text", sa.String(99)))
    database = served.database
    assert database is not None
    database.create_tables(notes)

    def count() -> int:
        return len(database.read(sa.select(table)))

    def note(connection: Connection, location: str | None) -> None:
        connection.execute(sa.insert(table).values(text=(location or "")[-90:]))

    def refuse(connection: Connection, location: str | None) -> None:
        note(connection, location)
        raise RefusedAlongsideError

    def commit() -> object:
        one = change(served, ONE, "1")
        assert one.base is not None
        return served.committer(ONE).commit(one.base, one.prepared, lambda: None)

    actions: tuple[Callable[[], object], ...] = (
        commit,
        lambda: catalog.create_table(NEW, "id bigint"),
        lambda: catalog.rename_table(NEW, ("shop", "newer")),
        lambda: catalog.drop_table(("shop", "newer")),
        lambda: catalog.create_namespace("more"),
        lambda: catalog.update_namespace_properties("more", updates={"a": "b"}),
        lambda: catalog.drop_namespace("more"),
        lambda: catalog.create_view(("shop", "v"), "id bigint", "SELECT 1"),
        lambda: served.commit_all([change(served, ONE, "3"), change(served, TWO, "3")]),
    )
    for number, action in enumerate(actions):
        before = files(served)
        with served.alongside(refuse), pytest.raises(RefusedAlongsideError):
            action()
        assert (count(), files(served)) == (number, before)
        with served.alongside(note):
            action()
        assert count() == number + 1


def test_catalogs_that_cannot(tmp_path: Path) -> None:
    with load_catalog("lake", type="hadoop", warehouse=str(tmp_path)) as catalog:
        served = ServedCatalog(catalog)
        with pytest.raises(UnsupportedOperationError, match="several tables"):
            served.commit_all([])
        with (
            pytest.raises(UnsupportedOperationError, match="not store its names in a database"),
            served.alongside(lambda *_: None),
        ):
            pass


PARTS = st.text(st.sampled_from(".%25E2Fa"), min_size=1, max_size=8)


@given(st.lists(PARTS, min_size=1, max_size=3).map(tuple), st.lists(PARTS, min_size=1, max_size=3).map(tuple))
def test_dots_in_names_are_kept(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    assert _namespace_parts(_namespace_text(one)) == one
    assert (_namespace_text(one) == _namespace_text(other)) is (one == other)


def test_ordinary_names_are_kept_as_others_keep_them() -> None:
    assert _namespace_text(("a", "b c", "50%", "x%20y")) == "a.b c.50%.x%20y"


def test_namespaces_with_dots(tmp_path: Path) -> None:
    with load_catalog("lake", type="sql", uri=f"sqlite:///{tmp_path}/l.db", warehouse=str(tmp_path)) as catalog:
        for namespace in (("a.b",), ("a", "b"), ("a.b", "c")):
            catalog.create_namespace(namespace)
            catalog.create_table((*namespace, "t.1"), "id bigint")
        assert catalog.list_namespaces() == [("a",), ("a.b",)]
        assert catalog.list_namespaces(("a.b",)) == [("a.b", "c")]
        assert catalog.list_tables(("a.b",)) == [("a.b", "t.1")]
        assert {name for name, _ in catalog._metadata_locations()} == {
            ("a.b", "t.1"),
            ("a", "b", "t.1"),
            ("a.b", "c", "t.1"),
        }
