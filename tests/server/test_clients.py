"""Other people's clients on our server, and ours: what one writes the others read."""

import gc
import weakref
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog as PyIcebergCatalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.types import StringType

from icefloe.catalog import RestCatalog, load_catalog
from tests.server.running import Client, Maker, serving


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def test_pyiceberg(make_catalog: Maker) -> None:
    with serving({"lake": make_catalog()}) as server:
        peer = PyIcebergCatalog("peer", uri=server.url, warehouse="lake")
        peer.create_namespace(("a.b", "c"))
        name = ("a.b", "c", "t 1")
        table = peer.create_table(name, rows().schema)
        table.append(rows(1, 2))
        stale = peer.load_table(name)
        with load_catalog("ours", type="rest", uri=server.url, warehouse="lake") as ours:
            assert ours.load_table(name).scan().to_arrow()["id"].to_pylist() == [1, 2]
            ours.load_table(name).append(rows(3))
        # It is told of the conflict, and tries again on what is there.
        stale.append(rows(9))
        assert sorted(peer.load_table(name).scan().to_arrow()["id"].to_pylist()) == [1, 2, 3, 9]
        with peer.load_table(name).update_schema() as update:
            update.add_column("more", StringType())
        peer.rename_table(name, ("a.b", "c", "t2"))
        assert peer.list_tables(("a.b", "c")) == [("a.b", "c", "t2")]
        peer.purge_table(("a.b", "c", "t2"))
        with pytest.raises(NoSuchTableError):
            peer.load_table(("a.b", "c", "t2"))
        peer.drop_namespace(("a.b", "c"))


def test_a_catalog_of_the_file_system_is_served_as_far_as_it_goes(tmp_path: Path) -> None:
    """No database, so no keys; no views and no transactions, so that none are announced."""
    with serving({"lake": load_catalog("lake", type="hadoop", warehouse=str(tmp_path))}) as server:
        config = server.http.get(f"{server.url}/v1/config").json()
        assert "idempotency-key-lifetime" not in config
        assert not [each for each in config["endpoints"] if "view" in each or "transactions" in each]
        server.done("POST", "namespaces", {"namespace": ["ns"]})
        with load_catalog("ours", type="rest", uri=server.url, warehouse="lake") as ours:
            ours.create_table("ns.t", "id bigint").append(rows(1))
            assert ours.load_table("ns.t").scan().to_arrow()["id"].to_pylist() == [1]
        body = {
            "table-changes": [
                {"identifier": {"namespace": ["ns"], "name": name}, "requirements": [], "updates": []} for name in "tu"
            ]
        }
        server.create("u")
        server.refused(406, "UnsupportedOperationException", "POST", "transactions/commit", body)


def test_a_server_before_a_server_reads(lake: Client) -> None:
    """A catalog of type rest is served, too: what is read there is read here, and changes go to its own server."""
    lake.create()
    front = load_catalog("front", type="rest", uri=lake.url, warehouse="lake")
    with serving({"lake": front}) as server:
        assert server.done("GET", "namespaces/ns/tables/t") == lake.done("GET", "namespaces/ns/tables/t")
        server.refused(404, "NoSuchTableException", "GET", "namespaces/ns/tables/absent")
        assert server.set_property("t", "p", "1").status_code == 406
        config = server.http.get(f"{server.url}/v1/config").json()
        assert not [each for each in config["endpoints"] if each.startswith("DELETE") and "plan" not in each]
    assert "p" not in lake.done("GET", "namespaces/ns/tables/t")["metadata"]["properties"]


def test_a_catalog_that_nobody_closed_goes_with_its_connections(lake: Client) -> None:
    """At once, not when the garbage collector comes: a long program may make many of them."""
    gc.collect()
    gc.disable()
    try:
        catalog = load_catalog("ours", type="rest", uri=lake.url, warehouse="lake")
        table = catalog.create_table("ns.t", "id bigint")
        table.append(rows(1))
        assert table.scan().count() == 1
        assert isinstance(catalog, RestCatalog)
        transport, connections = weakref.ref(catalog._connected), catalog._connected.session.client._transport
        http = connections._connections()
        # Reports are on their way for a moment.
        catalog._connected.reports.close()
        del catalog, table, connections
        assert transport() is None
        assert http.is_closed
    finally:
        gc.enable()
