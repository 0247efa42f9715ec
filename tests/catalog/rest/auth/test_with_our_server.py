"""Our client at the token endpoint of our server: both sides of OAuth 2 fit together, over real HTTP."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from icefloe.catalog import Database
from icefloe.catalog.rest.auth import auth_session
from icefloe.catalog.rest.auth.oauth2 import OAuth2Session
from icefloe.catalog.rest.http import RestClient, Transport, sender
from icefloe.catalog.rest.settings import ClientSettings
from icefloe.errors import NotAuthorizedError
from icefloe.server.auth import (
    AccessMiddleware,
    AuthSettings,
    DirectoryStore,
    guarded_access,
    principal_of,
    routes,
)
from icefloe.server.tables import OWN_TABLES
from tests.catalog.rest.loopback import LoopbackServer


@dataclass(frozen=True)
class World:
    """A server, the API token of its principal `etl`, and how to make clients of it."""

    store: DirectoryStore
    token: str
    number: str
    client: Callable[..., RestClient]
    asked: list[str]
    """The grants of all requests for tokens."""


async def _show(request: Request) -> Response:
    return JSONResponse({"name": principal_of(request).name})


@pytest.fixture(name="lifetime")
def _lifetime() -> int:
    return 3600


@pytest.fixture(name="world")
def _world(tmp_path: Path, lifetime: int) -> Iterator[World]:
    database = Database("server", f"sqlite:///{tmp_path}/server.db")
    database.create_tables(OWN_TABLES)
    store = DirectoryStore(database)
    store.add_principal("etl")
    credential, token = store.add_token("etl", "tests")
    access = guarded_access(AuthSettings(refresh_seconds=0.0, token_seconds=lifetime), database)
    app = Starlette(
        routes=[*routes(access), Route("/who", _show)], middleware=[Middleware(AccessMiddleware, access=access)]
    )
    with ExitStack() as cleanup:
        uri = cleanup.enter_context(LoopbackServer(app)).url
        asked: list[str] = []

        def client(**properties: str) -> RestClient:
            texts = {"uri": uri, **{key.replace("_", "-"): value for key, value in properties.items()}}
            settings = ClientSettings.of(texts)
            transport = Transport(settings)
            cleanup.callback(transport.close)
            send = sender(transport)

            def noted(request):  # type: ignore[no-untyped-def]  # as Send has it
                asked.append("exchange" if b"token-exchange" in request.body else "credential")
                return send(request)

            auth = auth_session(texts, noted)
            cleanup.callback(auth.close)
            return RestClient(uri, transport, settings.headers, auth)

        yield World(store, token, credential.id, client, asked)
    database.close()


def who(client: RestClient) -> str | int:
    """Whom the server takes the client for, or the status of its refusal."""
    answer = client.request("GET", "who")
    return str(json.loads(answer.body)["name"]) if answer.status == 200 else answer.status


def test_all_ways_to_show_an_api_token(world: World) -> None:
    assert who(world.client(credential=f"etl:{world.token}")) == "etl"
    assert who(world.client(credential=world.token)) == "etl"
    assert who(world.client(token=world.token)) == "etl"
    basic = {"rest.auth.type": "basic", "rest.auth.basic.username": "etl", "rest.auth.basic.password": world.token}
    assert who(world.client(**basic)) == "etl"
    assert who(world.client()) == 401
    with pytest.raises(NotAuthorizedError, match="invalid_client"):
        who(world.client(credential=f"other:{world.token}"))


@pytest.mark.parametrize("lifetime", [2])
def test_nobody_notices_that_tokens_are_short_lived(world: World) -> None:
    client = world.client(credential=f"etl:{world.token}")
    begun, seconds = time.monotonic(), 0.0
    # On a busy machine one request may take as long as a token lives.
    while seconds < 2.5 or (len(world.asked) < 2 and seconds < 60):
        assert who(client) == "etl"
        time.sleep(0.02)
        seconds = time.monotonic() - begun
    # The server counts in whole seconds, so it may find a token expired just before the client renews it.
    assert 2 <= len(world.asked) <= 3 + seconds / 2


def test_a_token_is_renewed_by_exchange(world: World) -> None:
    client = world.client(credential=f"etl:{world.token}")
    assert who(client) == "etl"
    auth = client._auth
    assert isinstance(auth, OAuth2Session)
    auth._endpoint.clock = lambda: time.time() + 3500
    assert who(client) == "etl"
    auth.renew_ahead()
    assert who(client) == "etl"
    assert world.asked == ["credential", "exchange"]


def test_an_unknown_signing_key_costs_one_request_more(world: World) -> None:
    client = world.client(credential=f"etl:{world.token}")
    assert who(client) == "etl"
    old = next(iter(world.store.signing_keys()))
    time.sleep(0.002)
    world.store.rotate_signing_key()
    world.store.remove_signing_key(old)
    other = world.client(credential=f"etl:{world.token}")
    assert who(other) == "etl"
    assert who(client) == "etl"


def test_a_revoked_api_token_ends_all(world: World) -> None:
    client = world.client(credential=f"etl:{world.token}")
    assert who(client) == "etl"
    world.store.revoke_token(world.number)
    assert who(client) == 401
    with pytest.raises(NotAuthorizedError, match="invalid_client"):
        who(world.client(credential=f"etl:{world.token}"))
