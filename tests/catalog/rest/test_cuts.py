"""Connections that break on the way to a real server, in every place: nothing is lost, nothing is done twice, and outcomes are true."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from icefloe import errors
from icefloe.catalog import Catalog, RestCatalog, load_catalog
from icefloe.commit import Timing
from icefloe.server.app import create_app
from icefloe.table import Table
from tests.catalog.rest.loopback import LoopbackServer
from tests.catalog.rest.proxy import BEFORE, CUTS, Cut, Proxy, proxy_to
from tests.catalog.rest.scripted import Received
from tests.catalog.tables import files_below

NO_WAITS = Timing(lambda _: None, lambda: 0, lambda: 0.0)
every_cut = pytest.mark.parametrize("cut", CUTS, ids=str)
ROWS = pa.table({"id": [7]})


@pytest.fixture(params=["with keys", "without keys"])
def keys(request: pytest.FixtureRequest) -> bool:
    return bool(request.param == "with keys")


@pytest.fixture
def proxy(keys: bool, tmp_path: Path) -> Iterator[Proxy]:
    """The way to a server that takes idempotency keys, as it has a database for them, or to one that does not."""
    database = {"type": "sql", "uri": f"sqlite:///{tmp_path}/lake.db"} if keys else {"type": "memory"}
    with (
        load_catalog("lake", **database, warehouse=str(tmp_path / "warehouse")) as lake,
        LoopbackServer(create_app({"lake": lake}), lifespan="on") as running,
        proxy_to(running.url) as started,
    ):
        yield started


@pytest.fixture
def catalog(proxy: Proxy, keys: bool) -> Iterator[Catalog]:
    quiet = {"rest-metrics-reporting-enabled": "false"}
    with RestCatalog("lake", {"uri": proxy.uri, **quiet}, NO_WAITS) as made:
        made.create_namespace("shop")
        assert has_keys(made) is keys
        yield made


@pytest.fixture
def table(catalog: Catalog) -> Table:
    properties = {"commit.status-check.min-wait-ms": "1", "commit.status-check.num-retries": "1"}
    made = catalog.create_table("shop.t", "id bigint", properties=properties)
    made.append(pa.table({"id": [1, 2, 3]}))
    return made


def has_keys(catalog: Catalog) -> bool:
    assert isinstance(catalog, RestCatalog)
    return catalog._tables.session.key_lifetime is not None


def is_commit(request: Received) -> bool:
    return b'"updates"' in request.body


def expect(catalog: Catalog, cut: Cut, do: Callable[[], object]) -> bool:
    """Whether it was done, when nobody may be wrong about it: only what never arrived may be unknown, and only without keys."""
    try:
        do()
    except errors.CommitStateUnknown:
        assert cut is BEFORE
        assert not has_keys(catalog)
        return False
    return True


@every_cut
def test_an_append_is_done_once_or_unknown(catalog: Catalog, table: Table, proxy: Proxy, cut: Cut) -> None:
    proxy.is_meant, proxy.cuts = is_commit, [cut]
    done = expect(catalog, cut, lambda: table.append(ROWS))
    proxy.cuts = []
    ids = sorted(catalog.load_table("shop.t").scan().to_arrow().column("id").to_pylist())
    assert ids == ([1, 2, 3, 7] if done else [1, 2, 3])
    if done:
        assert table.scan().count() == 4
    catalog.load_table("shop.t").append(ROWS)


@every_cut
def test_a_change_without_a_snapshot_is_done_once_or_unknown(
    catalog: Catalog, table: Table, proxy: Proxy, cut: Cut
) -> None:
    def add() -> None:
        with table.update_schema() as update:
            update.add_column("more", "int")

    proxy.is_meant, proxy.cuts = is_commit, [cut]
    done = expect(catalog, cut, add)
    assert catalog.load_table("shop.t").schema().column_names == (("id", "more") if done else ("id",))


@every_cut
def test_a_staged_table_is_created_once_or_unknown(catalog: Catalog, proxy: Proxy, cut: Cut) -> None:
    properties = {"commit.status-check.min-wait-ms": "1", "commit.status-check.num-retries": "1"}
    tx = catalog.create_table_transaction("shop.new", "id bigint", properties=properties)
    tx.append(ROWS)
    proxy.is_meant, proxy.cuts = is_commit, [cut]
    done = expect(catalog, cut, tx.commit_transaction)
    assert catalog.table_exists("shop.new") is done
    if done:
        assert catalog.load_table("shop.new").scan().count() == 1
    else:
        assert files_below(catalog, tx.table_metadata.location)


@every_cut
def test_several_tables_are_changed_once_or_unknown(catalog: Catalog, table: Table, proxy: Proxy, cut: Cut) -> None:
    catalog.create_table("shop.u", "id bigint", properties=dict(table.properties))
    tx = catalog.transaction()
    tx.table("shop.t").append(ROWS)
    tx.table("shop.u").append(ROWS)
    proxy.is_meant, proxy.cuts = is_commit, [cut]
    done = expect(catalog, cut, tx.commit)
    assert [catalog.load_table(name).scan().count() for name in ("shop.t", "shop.u")] == ([4, 1] if done else [3, 0])


@every_cut
def test_a_view_is_changed_once_or_unknown(catalog: Catalog, proxy: Proxy, cut: Cut) -> None:
    catalog.create_view("shop.v", "id bigint", "SELECT 1 AS id")
    proxy.is_meant, proxy.cuts = is_commit, [cut]
    done = expect(catalog, cut, lambda: catalog.views.replace("shop.v", "id bigint", "SELECT 2 AS id"))
    assert catalog.load_view("shop.v").sql_for() == ("SELECT 2 AS id" if done else "SELECT 1 AS id")


@every_cut
def test_names_change_once_or_it_is_said_that_nobody_knows(
    catalog: Catalog, table: Table, proxy: Proxy, cut: Cut
) -> None:
    def attempt(do: Callable[[], object], method: str = "POST") -> bool:
        """Whether it was acknowledged; what is not may have happened, and must not be called a failure."""
        proxy.is_meant, proxy.cuts = (lambda request: request.method == method), [cut]
        try:
            do()
        except errors.CommitStateUnknown:
            assert not has_keys(catalog)
            return False
        return True

    if attempt(lambda: catalog.create_namespace("more")):
        assert catalog.namespace_exists("more")
    if attempt(lambda: catalog.create_table("shop.new", "id bigint")):
        assert catalog.table_exists("shop.new")
    if attempt(lambda: catalog.rename_table("shop.t", "shop.old")):
        assert catalog.list_tables("shop")[-1] == ("shop", "old")
    # A request to drop may be sent twice in any case.
    name = catalog.list_tables("shop")[-1]
    assert attempt(lambda: catalog.drop_table(name), "DELETE")
    assert not catalog.table_exists(name)


@every_cut
def test_reading_survives(catalog: Catalog, table: Table, proxy: Proxy, cut: Cut) -> None:
    proxy.is_meant, proxy.cuts = (lambda request: request.method == "GET"), [cut, cut]
    assert catalog.load_table("shop.t").scan().count() == 3
    proxy.is_meant, proxy.cuts = (lambda request: request.method == "GET"), [cut, cut]
    assert catalog.list_tables("shop") == [("shop", "t")]
