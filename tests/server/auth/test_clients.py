"""Real clients, PyIceberg and ours, that are configured with a credential, at a whole server with access control."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import (
    ForbiddenError as TheirForbiddenError,
    NoSuchNamespaceError as TheirNoSuchNamespaceError,
    NoSuchTableError as TheirNoSuchTableError,
    OAuthError,
)

from icefloe.catalog import Catalog, load_catalog
from icefloe.errors import ForbiddenError, NoSuchTableError, NotAuthorizedError
from tests.server.auth.whole_server import OPEN, SECRET, WholeServer, whole_server

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64())})


@pytest.fixture
def server(tmp_path: Path) -> Iterator[WholeServer]:
    with whole_server(tmp_path) as server:
        yield server


def theirs(server: WholeServer, who: str) -> RestCatalog:
    credential = f"{who}:{server.tokens[who]}"
    settings = {"uri": server.url, "warehouse": "lake", "credential": credential, "scope": "catalog"}
    return RestCatalog("lake", **settings, **{"oauth2-server-uri": f"{server.url}/v1/oauth/tokens"})


def ours(server: WholeServer, who: str) -> Catalog:
    credential = f"{who}:{server.tokens[who]}"
    return load_catalog("lake", type="rest", uri=server.url, warehouse="lake", credential=credential)


def test_pyiceberg_with_a_credential(server: WholeServer) -> None:
    editor, reader = theirs(server, "editor"), theirs(server, "reader")
    assert editor.list_namespaces() == [(OPEN,)]
    table = editor.create_table((OPEN, "new"), ROWS.schema)
    table.append(ROWS)
    assert reader.load_table((OPEN, "new")).scan().to_arrow().num_rows == 3
    assert set(reader.list_tables(OPEN)) == {(OPEN, "new"), (OPEN, "t")}
    with pytest.raises(TheirForbiddenError):
        reader.load_table((OPEN, "new")).append(ROWS)
    with pytest.raises(TheirNoSuchTableError):
        reader.load_table((SECRET, "t"))
    with pytest.raises(TheirNoSuchNamespaceError):
        reader.list_tables(SECRET)
    assert not reader.table_exists((SECRET, "t"))
    assert not reader.namespace_exists(SECRET)


def test_pyiceberg_with_a_wrong_credential(server: WholeServer) -> None:
    server.tokens["reader"] = server.tokens["nobody"]
    with pytest.raises(OAuthError, match="invalid_client"):
        theirs(server, "reader")


def test_our_client_with_a_credential(server: WholeServer) -> None:
    editor, reader = ours(server, "editor"), ours(server, "reader")
    editor.create_table((OPEN, "new"), "id long").append(ROWS)
    assert reader.load_table((OPEN, "new")).scan().to_arrow().num_rows == 3
    assert reader.list_namespaces() == [(OPEN,)]
    with pytest.raises(ForbiddenError):
        reader.load_table((OPEN, "new")).append(ROWS)
    with pytest.raises(NoSuchTableError):
        reader.load_table((SECRET, "t"))
    server.store.set_enabled("reader", False)
    with pytest.raises(NotAuthorizedError):
        reader.load_table((OPEN, "new"))
