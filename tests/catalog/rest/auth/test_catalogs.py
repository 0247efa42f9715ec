"""Catalogs with authentication, as users load them: what their servers may not change, and what a pickle of them holds."""

import pickle
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

import icefloe
from icefloe.errors import InvalidPropertyError, NotAuthorizedError
from tests.catalog.rest.auth.token_server import ID, SECRET, TokenServer, token_server
from tests.catalog.rest.loopback import LoopbackServer


class CatalogServer:
    """Lists one namespace to whoever shows a token of the token server."""

    def __init__(self) -> None:
        self.overrides: dict[str, str] = {}
        self.authorizations: list[str | None] = []
        routes = [Route("/v1/config", self._config), Route("/v1/namespaces", self._namespaces)]
        self.app = Starlette(routes=routes)
        self.url = ""

    async def _config(self, request: Request) -> Response:
        return self._let_in(request, {"defaults": {}, "overrides": self.overrides})

    async def _namespaces(self, request: Request) -> Response:
        return self._let_in(request, {"namespaces": [["sales"]]})

    def _let_in(self, request: Request, body: dict[str, Any]) -> Response:
        shown = request.headers.get("authorization")
        self.authorizations.append(shown)
        if shown is None or not shown.startswith("Bearer token-"):
            problem = {"message": "who?", "type": "NotAuthorizedException", "code": 401}
            return JSONResponse({"error": problem}, 401)
        return JSONResponse(body)


@pytest.fixture(name="tokens")
def _tokens() -> Iterator[TokenServer]:
    with token_server() as server:
        yield server


@pytest.fixture(name="server")
def _server() -> Iterator[CatalogServer]:
    server = CatalogServer()
    with LoopbackServer(server.app) as loopback:
        server.url = loopback.url
        yield server


Load = Callable[..., icefloe.Catalog]


@pytest.fixture(name="load")
def _load(server: CatalogServer, tokens: TokenServer) -> Iterator[Load]:
    """Makes catalogs whose tokens come from another server."""
    given = {"uri": server.url, "credential": f"{ID}:{SECRET}", "oauth2-server-uri": f"{tokens.url}/token"}
    with ExitStack() as cleanup:

        def load(**properties: str) -> icefloe.Catalog:
            return cleanup.enter_context(closing(icefloe.load_catalog("lake", type="rest", **{**given, **properties})))

        yield load


def test_a_catalog_asks_with_a_token_and_so_does_its_pickle(
    load: Load, server: CatalogServer, tokens: TokenServer
) -> None:
    catalog = load()
    assert catalog.list_namespaces() == [("sales",)]
    assert set(server.authorizations) == {"Bearer token-1"}
    assert len(tokens.forms) == 1
    pickled = pickle.dumps(catalog)
    assert b"token-1" not in pickled
    other = pickle.loads(pickled)
    assert other.list_namespaces() == [("sales",)]
    assert server.authorizations[-1] == "Bearer token-2"
    other.close()
    assert SECRET not in f"{catalog!r} {catalog}"


def test_wrong_credentials_are_said_so_without_showing_them(
    load: Load, server: CatalogServer, tokens: TokenServer
) -> None:
    with pytest.raises(NotAuthorizedError, match="invalid_client") as caught:
        load(credential="other:sEcReT-of-another").list_namespaces()
    assert "sEcReT" not in str(caught.value)
    assert not server.authorizations
    with pytest.raises(NotAuthorizedError, match="who"):
        load(credential="", token="stale").list_namespaces()


def test_what_the_server_says_of_authentication_is_ignored(
    load: Load, server: CatalogServer, tokens: TokenServer
) -> None:
    with token_server() as evil:
        server.overrides = {
            "oauth2-server-uri": f"{evil.url}/token",
            "rest.auth.type": "os.system",
            "rest.client.proxy.hostname": "127.0.0.1",
            "rest.client.proxy.port": "1",
            "ssl.cabundle": "/etc/passwd",
            "scope": "lake",
        }
        assert load().list_namespaces() == [("sales",)]
        assert not evil.forms
    assert tokens.forms[-1]["scope"] == "lake", "a scope is for the server to say"


def test_a_server_cannot_make_a_client_show_a_user_of_its_own(
    load: Load, server: CatalogServer, tokens: TokenServer
) -> None:
    server.overrides = {"uri": "http://user:secret@catalog.example"}
    with pytest.raises(InvalidPropertyError, match="contains a user") as caught:
        load().list_namespaces()
    assert "secret" not in str(caught.value)
