"""Our client on Nessie: all that it does on Java's server, with keys of the client, and with requests that Nessie signs."""

from collections.abc import Iterator

import pyarrow as pa
import pytest

from icefloe.catalog import Catalog, load_catalog
from icefloe.errors import InvalidPropertyError, NoSuchTableError, TableAlreadyExistsError
from tests.peers.conftest import RESULTS
from tests.peers.nessie import find_nessie, running_nessie
from tests.peers.page import THROUGH_REST
from tests.storage.servers import S3Server

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
VERSION = 2
"""Nessie makes tables of this version, whatever is asked for."""


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "name": pa.array([f"n{value}" for value in ids], pa.string())})


def ids(catalog: Catalog, name: str) -> list[int]:
    return sorted(catalog.load_table(name).scan().to_arrow()["id"].to_pylist())


@pytest.fixture(scope="module")
def nessie(s3_server: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    found = find_nessie()
    if isinstance(found, str):
        pytest.skip(found)
    RESULTS.versions["nessie"] = found.version
    with running_nessie(found, s3_server, tmp_path_factory.mktemp("nessie")) as uri:
        yield uri


@pytest.fixture(params=["keys", "signed"])
def catalog(request: pytest.FixtureRequest, nessie: str, s3_server: S3Server) -> Iterator[Catalog]:
    own = s3_server.properties() | {"s3.remote-signing-enabled": "false"} if request.param == "keys" else {}
    # It does not say what it offers, and has views.
    own["view-endpoints-supported"] = "true"
    with load_catalog("nessie", type="rest", uri=nessie, warehouse="lake", **own) as made:
        made.create_namespace(request.param, {"owner": "us"})
        yield made


@pytest.mark.cell(direction=THROUGH_REST, peer="nessie", scenario="our client on its server")
@pytest.mark.parametrize("version", [VERSION])
def test_our_client_on_nessie(catalog: Catalog, request: pytest.FixtureRequest, version: int) -> None:
    namespace = str(request.node.callspec.params["catalog"])
    assert catalog.load_namespace_properties(namespace)["owner"] == "us"
    one, two = f"{namespace}.one", f"{namespace}.two"
    for name in (one, two):
        table = catalog.create_table(name, "id bigint, name string", partition_spec=["truncate(2, name)"])
        assert table.format_version == version
        behind = catalog.load_table(name)
        table.append(rows(1, 2, 3))
        behind.append(rows(4))
        table.refresh().delete("id = 2")
        with table.update_schema() as update:
            update.add_column("more", "int")
        assert ids(catalog, name) == [1, 3, 4]
        assert table.verify(level="data").ok
    with pytest.raises(TableAlreadyExistsError):
        catalog.create_table(one, "id bigint")
    with catalog.transaction() as tx:
        tx.table(one).append(rows(8))
        tx.table(two).append(rows(8))
    assert [8 in ids(catalog, name) for name in (one, two)] == [True, True]
    table = catalog.load_table(two)
    table.maintenance.rewrite_data_files(options={"min-input-files": "2"})
    table.refresh().maintenance.rewrite_manifests()
    # Branches of Nessie, which we do not see, may need any file: it says so, and we keep to it.
    with pytest.raises(InvalidPropertyError, match=r"gc\.enabled"):
        table.refresh().maintenance.remove_orphan_files()
    assert table.refresh().verify(level="data").ok
    assert ids(catalog, two) == [1, 3, 4, 8]
    catalog.rename_table(one, f"{namespace}.renamed")
    catalog.create_view(f"{namespace}.seen", "id bigint", f"SELECT id FROM {two}")
    assert catalog.list_views(namespace) == [(namespace, "seen")]
    assert catalog.list_tables(namespace) == [(namespace, "renamed"), (namespace, "two")]
    catalog.drop_table(f"{namespace}.renamed")
    with pytest.raises(NoSuchTableError):
        catalog.load_table(f"{namespace}.renamed")
