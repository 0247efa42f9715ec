"""Several tables of a catalog are changed in one commit, or none of them is."""

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from icefloe import errors
from icefloe.catalog import Catalog, SqlCatalog, load_catalog
from icefloe.catalog.pointers import PointerSwap
from icefloe.commit import Part, TableState
from tests.catalog.tables import Maker, files_below

ONE, TWO = "shop.one", "shop.two"
Commit = Callable[[Sequence[Part]], list[TableState]]

with_pointers = pytest.mark.parametrize("kind", ["memory", "sqlite", "postgres", "rest"])
in_memory = pytest.mark.parametrize("kind", ["memory"])


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def ids(catalog: Catalog, name: str) -> list[int]:
    found: list[int] = catalog.load_table(name).scan().to_arrow().column("id").to_pylist()
    return sorted(found)


@pytest.fixture
def shop(catalog: Catalog) -> Catalog:
    """A catalog with two tables of three rows each."""
    for name in (ONE, TWO):
        properties = {
            "commit.retry.min-wait-ms": 1,
            "commit.status-check.min-wait-ms": 1,
            "commit.status-check.num-retries": 1,
        }
        catalog.create_table(name, "id bigint", properties=properties).append(rows(1, 2, 3))
    return catalog


def files(catalog: Catalog) -> set[str]:
    return {file for name in (ONE, TWO) for file in files_below(catalog, catalog.load_table(name).location())}


def intercept(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch, around: Callable[[Commit, Sequence[Part]], list[TableState]]
) -> None:
    """Let something happen around each commit to several tables."""
    inner = catalog._commit_tables
    monkeypatch.setattr(catalog, "_commit_tables", lambda parts: around(inner, parts))


@with_pointers
def test_all_tables_are_changed_in_one_commit(shop: Catalog) -> None:
    with shop.transaction() as tx:
        tx.table(ONE).delete("id = 1")
        tx.table(TWO).append(rows(4))
        tx.table(ONE).append(rows(5))
        assert ids(shop, ONE) == ids(shop, TWO) == [1, 2, 3]
    assert (ids(shop, ONE), ids(shop, TWO)) == ([2, 3, 5], [1, 2, 3, 4])
    assert len(shop.load_table(ONE).snapshots()) == 3


@with_pointers
def test_a_commit_gives_the_tables_as_they_are_then(shop: Catalog) -> None:
    tx = shop.transaction()
    tx.table(ONE).append(rows(4))
    tx.table(TWO).set_properties({"owner": "me"})
    done = tx.commit()
    assert done["shop", "one"].scan().count() == 4
    assert done["shop", "two"].properties["owner"] == "me"
    assert shop.transaction().commit() == {}
    with pytest.raises(errors.InvalidInputError, match="the transaction has ended"):
        tx.table(ONE)
    with pytest.raises(errors.InvalidInputError, match="the transaction has ended"):
        tx.commit()


@with_pointers
def test_tables_are_created_with_the_changes_of_others(shop: Catalog) -> None:
    with shop.transaction() as tx:
        tx.table(ONE).delete("id = 1")
        new = tx.create_table("shop.new", "id bigint", properties={"owner": "me"})
        new.append(rows(7, 8))
        tx.create_table("shop.empty", "id bigint")
        assert not shop.table_exists("shop.new")
        with pytest.raises(errors.InvalidInputError, match="already part of the transaction"):
            tx.create_table("shop.new", "id bigint")
    assert (ids(shop, ONE), ids(shop, "shop.new"), ids(shop, "shop.empty")) == ([2, 3], [7, 8], [])
    assert shop.load_table("shop.new").properties["owner"] == "me"
    shop.load_table("shop.new").append(rows(9))


@with_pointers
def test_a_name_that_is_taken_meanwhile_refuses_all(shop: Catalog) -> None:
    tx = shop.transaction()
    tx.table(ONE).append(rows(4))
    tx.create_table("shop.new", "id bigint").append(rows(7))
    shop.create_table("shop.new", "id bigint")
    with pytest.raises((errors.TableAlreadyExistsError, errors.CommitFailed)):
        tx.commit()
    assert ids(shop, ONE) == [1, 2, 3]
    assert ids(shop, "shop.new") == []


@in_memory
def test_a_table_is_not_committed_alone(shop: Catalog) -> None:
    with shop.transaction() as tx:
        assert tx.table(ONE) is tx.table(("shop", "one"))
        with tx.table(ONE) as one:
            one.append(rows(4))
        assert ids(shop, ONE) == [1, 2, 3]
        with pytest.raises(errors.InvalidInputError, match="committed together with the other tables"):
            one.commit_transaction()
    assert ids(shop, ONE) == [1, 2, 3, 4]


@in_memory
def test_an_error_discards_everything(shop: Catalog) -> None:
    before = files(shop)
    with pytest.raises(errors.NoSuchTableError), shop.transaction() as tx:  # noqa: PT012 - the block is what is tested
        tx.table(ONE).append(rows(4))
        tx.table(TWO).delete("id = 1")
        tx.table("shop.three").append(rows(5))
    assert files(shop) == before
    assert ids(shop, ONE) == ids(shop, TWO) == [1, 2, 3]


@with_pointers
@pytest.mark.parametrize("name", [ONE, TWO])
def test_what_others_append_meanwhile_stays(shop: Catalog, name: str) -> None:
    with shop.transaction() as tx:
        tx.table(ONE).append(rows(4))
        tx.table(TWO).append(rows(4))
        shop.load_table(name).append(rows(9))
    assert sorted((ids(shop, ONE), ids(shop, TWO))) == [[1, 2, 3, 4], [1, 2, 3, 4, 9]]


@in_memory
@pytest.mark.parametrize("name", [ONE, TWO])
def test_a_race_that_is_lost_at_the_last_moment_is_run_again(
    shop: Catalog, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    raced: list[str] = []

    def around(commit: Commit, parts: Sequence[Part]) -> list[TableState]:
        if not raced:
            raced.append(name)
            shop.load_table(name).append(rows(9))
            raise errors.CommitFailed("another writer was faster")
        return commit(parts)

    intercept(shop, monkeypatch, around)
    with shop.transaction() as tx:
        tx.table(ONE).append(rows(4))
        tx.table(TWO).append(rows(4))
    assert sorted((ids(shop, ONE), ids(shop, TWO))) == [[1, 2, 3, 4], [1, 2, 3, 4, 9]]


@in_memory
@pytest.mark.parametrize("name", [ONE, TWO])
def test_a_conflict_in_one_table_refuses_all(shop: Catalog, name: str) -> None:
    tx = shop.transaction()
    for each in (ONE, TWO):
        tx.table(each).delete("id = 1")
        tx.table(each).append(rows(4))
        assert tx.table(each).table_metadata.snapshots
    # What is deleted here is deleted there, too.
    shop.load_table(name).delete("id = 1")
    before = files(shop)
    with pytest.raises(errors.IcefloeError):
        tx.commit()
    assert sorted((ids(shop, ONE), ids(shop, TWO))) == [[1, 2, 3], [2, 3]]
    assert files(shop) < before


@in_memory
def test_an_answer_that_is_lost_is_settled_by_reading(shop: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    def around(commit: Commit, parts: Sequence[Part]) -> list[TableState]:
        commit(parts)
        raise errors.CommitStateUnknown("the answer was lost")

    intercept(shop, monkeypatch, around)
    with shop.transaction() as tx:
        tx.table(ONE).append(rows(4))
        tx.table(TWO).set_properties({"owner": "me"})
    assert ids(shop, ONE) == [1, 2, 3, 4]
    assert shop.load_table(TWO).properties["owner"] == "me"


@in_memory
def test_what_nobody_knows_deletes_nothing(shop: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    def around(_commit: Commit, _parts: Sequence[Part]) -> list[TableState]:
        raise errors.CommitStateUnknown("the answer was lost")

    intercept(shop, monkeypatch, around)
    tx = shop.transaction()
    for name in (ONE, TWO):
        tx.table(name).append(rows(4))
        # All files are there once it is asked for.
        assert tx.table(name).table_metadata.snapshots
    before = files(shop)
    with pytest.raises(errors.CommitStateUnknown):
        tx.commit()
    assert files(shop) == before


@in_memory
@pytest.mark.parametrize("first", [0, 1])
def test_a_server_that_commits_one_table_of_two_is_found_out(
    shop: Catalog, monkeypatch: pytest.MonkeyPatch, first: int
) -> None:
    def around(commit: Commit, parts: Sequence[Part]) -> list[TableState]:
        commit([parts[first]])
        raise errors.ForbiddenError("not the other one")

    intercept(shop, monkeypatch, around)
    tx = shop.transaction()
    tx.table(ONE).append(rows(4))
    tx.table(TWO).append(rows(4))
    with pytest.raises(errors.CommitStateUnknown, match=r"(has|lacks) the commit"):
        tx.commit()
    assert [ids(shop, ONE), ids(shop, TWO)][first] == [1, 2, 3, 4]


@in_memory
def test_whoever_may_not_leaves_no_files(shop: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    def around(_commit: Commit, _parts: Sequence[Part]) -> list[TableState]:
        raise errors.ForbiddenError("not you")

    before = files(shop)
    intercept(shop, monkeypatch, around)
    tx = shop.transaction()
    tx.table(ONE).append(rows(4))
    tx.table(TWO).append(rows(4))
    with pytest.raises(errors.ForbiddenError):
        tx.commit()
    assert files(shop) == before


@pytest.mark.parametrize("kind", ["hadoop"])
def test_a_catalog_that_cannot_says_so(make: Maker) -> None:
    catalog = make()
    catalog.create_namespace("shop")
    for name in (ONE, TWO):
        catalog.create_table(name, "id bigint")
    tx = catalog.transaction()
    tx.table(ONE).append(rows(4))
    tx.table(TWO).append(rows(4))
    with pytest.raises(errors.UnsupportedOperationError, match="cannot commit to several tables atomically"):
        tx.commit()
    assert ids(catalog, ONE) == []


def test_an_error_that_nobody_foresaw_deletes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The swap may have happened: the files that it names must still be there."""
    with load_catalog("lake", type="sql", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path)) as catalog:
        assert isinstance(catalog, SqlCatalog)
        catalog.create_namespace("db")
        for name in ("one", "two"):
            catalog.create_table(f"db.{name}", "id bigint")
        swap_all = catalog._table_pointers.swap_all

        def lost(swaps: Sequence[PointerSwap]) -> bool:
            swap_all(swaps)
            raise RuntimeError("the connection broke in a way that no driver tells")

        monkeypatch.setattr(catalog._table_pointers, "swap_all", lost)
        with contextlib.suppress(RuntimeError, errors.CommitStateUnknown), catalog.transaction() as tx:
            for name in ("one", "two"):
                tx.table(f"db.{name}").append(pa.table({"id": pa.array([1], pa.int64())}))
        for name in ("one", "two"):
            table = catalog.load_table(f"db.{name}")
            assert table.scan().to_arrow()["id"].to_pylist() == [1]
            assert table.verify(level="data").ok
