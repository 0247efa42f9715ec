"""A server on the loopback for tests, over a real database, and how it is asked."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from icefloe.catalog import Catalog, load_catalog
from icefloe.server import auth
from icefloe.server.app import create_app
from icefloe.server.file_access import WarehouseFiles
from icefloe.server.settings import ServerSettings
from tests.catalog.databases import PostgresServer
from tests.catalog.rest.loopback import LoopbackServer

SCHEMA = {
    "type": "struct",
    "fields": [
        {"id": 7, "name": "id", "type": "long", "required": False},
        {"id": 3, "name": "name", "type": "string", "required": False},
    ],
}


@dataclass(frozen=True)
class Client:
    """A client of one warehouse that says things as they are on the wire."""

    http: httpx.Client
    url: str
    prefix: str = "lake"

    def ask(
        self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> httpx.Response:
        """One request; the path is what comes after the prefix."""
        content = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.http.request(method, f"{self.url}/v1/{self.prefix}/{path}", content=content, headers=headers)

    def done(self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None) -> Any:
        """The body of a request that must succeed."""
        answer = self.ask(method, path, body, headers)
        assert answer.status_code in (200, 204), answer.text
        return answer.json() if answer.content else None

    def refused(self, status: int, java_type: str, method: str, path: str, body: object = None) -> str:
        """What the server says to a request that it must refuse."""
        answer = self.ask(method, path, body)
        assert answer.status_code == status, answer.text
        error = answer.json()["error"]
        assert (error["code"], error["type"]) == (status, java_type)
        return str(error["message"])

    def create(self, name: str = "t", **more: object) -> Any:
        """A table in the namespace `ns`."""
        return self.done("POST", "namespaces/ns/tables", {"name": name, "schema": SCHEMA, **more})

    def set_property(self, name: str, key: str, value: str, *requirements: object) -> httpx.Response:
        """A commit to a table in the namespace `ns`."""
        return self.ask("POST", f"namespaces/ns/tables/{name}", commit({key: value}, *requirements))


def commit(properties: Mapping[str, str], *requirements: object) -> dict[str, object]:
    """The body of a commit that sets properties."""
    update = {"action": "set-properties", "updates": dict(properties)}
    return {"requirements": list(requirements), "updates": [update]}


@contextmanager
def serving(
    catalogs: Mapping[str, Catalog],
    settings: ServerSettings | None = None,
    access: auth.Access | None = None,
    files: WarehouseFiles | None = None,
) -> Iterator[Client]:
    """A server, and a client of the warehouse `lake`."""
    app = create_app(catalogs, settings, access, files)
    with LoopbackServer(app, lifespan="on") as server, httpx.Client(trust_env=False, timeout=30) as http:
        yield Client(http, server.url)


Maker = Callable[[], Catalog]


@pytest.fixture(params=["sqlite", "postgres"])
def make_catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Maker:
    """Makes catalogs over one database."""
    if request.param == "sqlite":
        uri = f"sqlite:///{tmp_path}/lake.db"
    else:
        postgres: PostgresServer = request.getfixturevalue("postgres")
        uri = postgres.new_database()
    return lambda: load_catalog("lake", type="sql", uri=uri, warehouse=str(tmp_path / "warehouse"))


@pytest.fixture
def client(make_catalog: Maker) -> Iterator[Client]:
    """A client of a server with the namespace `ns`."""
    with serving({"lake": make_catalog()}) as running:
        running.done("POST", "namespaces", {"namespace": ["ns"]})
        yield running


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Client]:
    """The same over SQLite alone, for what does not depend on the database."""
    catalog = load_catalog(
        "lake", type="sql", uri=f"sqlite:///{tmp_path}/lake.db", warehouse=str(tmp_path / "warehouse")
    )
    with serving({"lake": catalog}) as running:
        running.done("POST", "namespaces", {"namespace": ["ns"]})
        yield running
