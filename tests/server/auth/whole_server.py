"""A whole server with access control on the loopback: two namespaces, one of which is nobody's business, and who may what."""

import http.client
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from icefloe.catalog import Catalog, Database, load_catalog
from icefloe.server.app import create_app
from icefloe.server.auth import Audit, DirectoryStore, Grant, Privilege, Target, guarded_access
from icefloe.server.auth.audit import Record
from icefloe.server.auth.settings_codec import AuthSettings
from icefloe.server.file_access import files_of
from icefloe.server.migrations import migrate
from icefloe.server.settings import ServerSettings
from tests.catalog.rest.loopback import LoopbackServer

SCHEMA = "id long"
OPEN, SECRET, ABSENT = "public", "secret", "absent"
"""Namespaces of equal length, so that answers about them can be compared."""


@dataclass(frozen=True)
class Reply:
    """An answer, whole."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def about(self, name: str) -> tuple[int, bytes]:
        """What is left if a name is taken out of it."""
        return self.status, self.body.replace(name.encode(), b"NAME")


@dataclass
class WholeServer:
    """A running server, its store of grants, its records, and the tokens of its principals."""

    url: str
    store: DirectoryStore
    catalog: Catalog
    records: list[Record]
    tokens: dict[str, str] = field(default_factory=dict)

    def principal(self, name: str, *grants: tuple[Privilege, Target]) -> str:
        """A new principal with these grants; its API token."""
        self.store.add_principal(name)
        self.tokens[name] = self.store.add_token(name, "tests")[1]
        self.store.add_grants(*(Grant(f"principal:{name}", privilege, target) for privilege, target in grants))
        return self.tokens[name]

    def ask(self, who: str | None, method: str, path: str, body: Any = None, **headers: str) -> Reply:
        """Send exactly this path, whatever it is like."""
        connection = http.client.HTTPConnection(str(urlsplit(self.url).netloc), timeout=30)
        if who is not None:
            headers["Authorization"] = f"Bearer {self.tokens[who]}"
        text = None if body is None else json.dumps(body)
        if text is not None:
            headers["Content-Type"] = "application/json"
        try:
            connection.request(method, path, text, headers)
            response = connection.getresponse()
            return Reply(response.status, dict(response.headers), response.read())
        finally:
            connection.close()


@contextmanager
def whole_server(
    folder: Path,
    *,
    place: str | None = None,
    properties: Mapping[str, str] | None = None,
    files: Mapping[str, object] | None = None,
    server_settings: ServerSettings | None = None,
    **settings: Any,
) -> Iterator[WholeServer]:
    """A server with the warehouses `lake` and `other`, on disk or where `place` says; `files` is how clients get at those."""
    uri = f"sqlite:///{folder}/catalog.db"
    catalogs = {
        name: load_catalog(
            name, type="sql", uri=uri, warehouse=f"{place or f'file://{folder}'}/{name}", **(properties or {})
        )
        for name in ("lake", "other")
    }
    for catalog, namespaces in ((catalogs["lake"], (OPEN, SECRET)), (catalogs["other"], (OPEN,))):
        for namespace in namespaces:
            catalog.create_namespace(namespace)
            catalog.create_namespace((namespace, "deep"))
            catalog.create_table((namespace, "t"), SCHEMA)
            catalog.create_view((namespace, "v"), SCHEMA, "SELECT 1 AS id")
    catalogs["lake"].create_table((SECRET, "deep", "t"), SCHEMA)
    database = Database("server", uri)
    migrate(database)
    records: list[Record] = []
    access = guarded_access(
        AuthSettings(refresh_seconds=0.0, **settings), database, Audit(lambda record, _: records.append(record))
    )
    given = None if files is None else files_of({"access": {"lake": files}}, catalogs)
    app = create_app(catalogs, server_settings, access, given)
    with LoopbackServer(app) as server:
        world = WholeServer(server.url, DirectoryStore(database), catalogs["lake"], records)
        world.principal("admin", (Privilege.MANAGE, Target()))
        world.principal("reader", (Privilege.READ, Target("lake", (OPEN,))))
        editing = (Privilege.WRITE, Privilege.CREATE, Privilege.DROP)
        world.principal("editor", *((privilege, Target("lake", (OPEN,))) for privilege in editing))
        world.principal("owner", (Privilege.MANAGE, Target("lake", (OPEN,))))
        world.principal("nobody")
        yield world
    database.close()
