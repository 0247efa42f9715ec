"""Requests over real HTTP: who is let in, the token endpoint, limits, and what is recorded of it."""

import base64
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2 as httpx
import jwt
import pytest
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from icefloe.catalog import Database
from icefloe.errors import IcefloeError
from icefloe.rest.errors_codec import error_response
from icefloe.server.auth import Privilege, Target
from icefloe.server.auth.access import Access, guarded_access, open_access
from icefloe.server.auth.audit import Audit, Record
from icefloe.server.auth.directory_store import DirectoryStore
from icefloe.server.auth.grants import Grant
from icefloe.server.auth.rate_limits import RateLimit
from icefloe.server.auth.routes_auth import AccessMiddleware, principal_of, routes, shown_headers
from icefloe.server.auth.settings_codec import AuthSettings
from icefloe.server.tables import OWN_TABLES
from tests.catalog.rest.loopback import LoopbackServer

EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"
KEY = "a signing key of the configuration, for all servers"


@dataclass
class World:
    """A server with its store, a principal `etl` with a token, and what was recorded."""

    store: DirectoryStore
    records: list[Record]
    token: str
    credential: str
    client: httpx.Client

    def who(self, token: str | None = None, **headers: str) -> httpx.Response:
        if token is not None:
            headers["authorization"] = f"Bearer {token}"
        return self.client.get("/who", headers=headers)

    def ask(self, *, auth: Any = None, **form: str) -> httpx.Response:
        return self.client.post("/v1/oauth/tokens", data=form, auth=auth)

    def issued(self) -> str:
        answer = self.ask(grant_type="client_credentials", client_id="etl", client_secret=self.token, scope="catalog")
        assert answer.status_code == 200, answer.text
        return str(answer.json()["access_token"])


def application(access: Access) -> Starlette:
    async def show(request: Request) -> Response:
        principal = principal_of(request)
        return JSONResponse({"name": principal.name, "credential": principal.credential})

    async def read(request: Request) -> Response:
        try:
            await run_in_threadpool(
                access.authorizer.check, principal_of(request), Privilege.READ, Target(request.path_params["w"])
            )
        except IcefloeError as error:
            status, body = error_response(error)
            return Response(body, status)
        return Response(status_code=204)

    return Starlette(
        routes=[*routes(access), Route("/who", show), Route("/read/{w}", read)],
        middleware=[Middleware(AccessMiddleware, access=access)],
    )


@pytest.fixture
def settings() -> AuthSettings:
    return AuthSettings(refresh_seconds=0.0)


@pytest.fixture
def world(settings: AuthSettings, tmp_path: Path) -> Iterator[World]:
    database = Database("server", f"sqlite:///{tmp_path}/server.db")
    database.create_tables(OWN_TABLES)
    store, records = DirectoryStore(database), list[Record]()
    store.add_principal("etl")
    credential, token = store.add_token("etl", "tests")
    access = guarded_access(settings, database, Audit(lambda record, _: records.append(record)))
    with LoopbackServer(application(access)) as server, httpx.Client(base_url=server.url, trust_env=False) as client:
        yield World(store, records, token, credential.id, client)
    database.close()


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def test_an_api_token_lets_in(world: World) -> None:
    for header in (
        f"Bearer {world.token}",
        f"bearer  {world.token}",
        basic("etl", world.token),
        basic("", world.token),
    ):
        answer = world.who(authorization=header)
        assert answer.json() == {"name": "etl", "credential": world.credential}


@pytest.mark.parametrize("scheme", ["", "Bearer", "Negotiate x", "Basic !", "Basic eDp5", "Bearer a b", "Bearer \xe9"])
def test_other_headers_do_not(world: World, scheme: str) -> None:
    answer = world.client.get("/who", headers=[(b"authorization", scheme.encode("latin-1"))])
    assert answer.status_code == 401
    assert answer.json()["error"]["type"] == "NotAuthorizedException"
    assert answer.headers["www-authenticate"].startswith("Bearer")


def test_nobody_is_not_let_in(world: World) -> None:
    assert world.who().status_code == 401
    assert world.records[-1]["outcome"] == "denied"
    assert world.who(authorization=basic("another", world.token)).status_code == 401
    twice = [("authorization", f"Bearer {world.token}")] * 2
    assert world.client.get("/who", headers=twice).status_code == 401


def test_a_revoked_token_is_refused_at_once_and_its_short_lived_ones_with_it(world: World) -> None:
    issued = world.issued()
    assert world.who(issued).status_code == 200
    world.store.revoke_token(world.credential)
    assert world.who(world.token).status_code == 401
    assert world.who(issued).status_code == 401
    assert world.ask(grant_type=EXCHANGE, subject_token=issued, subject_token_type=ACCESS_TOKEN).status_code == 400


def test_client_credentials(world: World) -> None:
    answer = world.ask(grant_type="client_credentials", client_id="etl", client_secret=world.token, scope="catalog")
    assert answer.headers["cache-control"] == "no-store"
    body = answer.json()
    assert (body["token_type"], body["expires_in"], body["scope"]) == ("bearer", 3600, "catalog")
    assert body["issued_token_type"] == ACCESS_TOKEN
    assert world.who(body["access_token"]).json() == {"name": "etl", "credential": world.credential}
    for form, auth in (
        ({"client_secret": world.token}, None),
        ({}, httpx.BasicAuth("etl", world.token)),
    ):
        assert world.ask(grant_type="client_credentials", auth=auth, **form).status_code == 200


def test_a_token_is_exchanged_for_a_fresh_one(world: World) -> None:
    issued = world.issued()
    answer = world.ask(grant_type=EXCHANGE, subject_token=issued, subject_token_type=ACCESS_TOKEN, scope="catalog")
    assert world.who(answer.json()["access_token"]).json()["name"] == "etl"


def remade(token: str, key: bytes | str, **claims: Any) -> str:
    header = jwt.get_unverified_header(token)
    said = jwt.decode(token, options={"verify_signature": False}) | claims
    return jwt.encode(said, key, algorithm="HS256", headers={"kid": header["kid"]})


def test_an_expired_token_is_renewed_with_the_api_token_alone(world: World) -> None:
    key = next(iter(world.store.signing_keys().values()))
    expired = remade(world.issued(), key, exp=int(time.time()) - 5)
    assert world.who(expired).status_code == 401
    form = {"grant_type": EXCHANGE, "subject_token": expired, "subject_token_type": ACCESS_TOKEN}
    assert world.ask(**form).json()["error"] == "invalid_grant"
    assert world.ask(auth=httpx.BasicAuth("etl", world.token), **form).status_code == 200
    world.store.add_principal("other")
    _, other = world.store.add_token("other", "x")
    assert world.ask(auth=httpx.BasicAuth("other", other), **form).json()["error"] == "invalid_grant"


def test_a_session_ends_though_it_is_renewed(world: World) -> None:
    key = next(iter(world.store.signing_keys().values()))
    old = remade(world.issued(), key, auth_time=int(time.time()) - 86401)
    assert world.who(old).status_code == 200
    answer = world.ask(grant_type=EXCHANGE, subject_token=old, subject_token_type=ACCESS_TOKEN)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant")


def test_forged_tokens_of_the_server_itself(world: World) -> None:
    issued = world.issued()
    assert world.who(remade(issued, "another key that is long enough, too")).status_code == 401
    claims = jwt.decode(issued, options={"verify_signature": False})
    header = {"kid": jwt.get_unverified_header(issued)["kid"]}
    assert world.who(jwt.encode(claims, "", algorithm="none", headers=header)).status_code == 401
    key = next(iter(world.store.signing_keys().values()))
    assert world.who(jwt.encode(claims, key * 2, algorithm="HS512", headers=header)).status_code == 401
    for change in ({"sub": "admin"}, {"cid": "0" * 16}, {"aud": "other"}, {"auth_time": None}, {"sub": 5}):
        said = json.dumps(claims | change).encode()
        assert world.who(jwt.api_jws.encode(said, key, algorithm="HS256", headers=header)).status_code == 401


def test_a_rotated_signing_key(world: World) -> None:
    issued = world.issued()
    number = next(iter(world.store.signing_keys()))
    time.sleep(0.002)
    world.store.rotate_signing_key()
    assert world.who(issued).status_code == 200
    world.store.remove_signing_key(number)
    assert number not in world.store.signing_keys()


@pytest.mark.parametrize(
    ("form", "error", "status"),
    [
        ({}, "invalid_request", 400),
        ({"grant_type": "password", "client_secret": "x"}, "unsupported_grant_type", 400),
        ({"grant_type": "client_credentials"}, "invalid_client", 401),
        ({"grant_type": "client_credentials", "client_secret": "wrong"}, "invalid_client", 401),
        ({"grant_type": EXCHANGE}, "invalid_request", 400),
        ({"grant_type": EXCHANGE, "subject_token": "x", "subject_token_type": "urn:x"}, "invalid_request", 400),
        ({"grant_type": EXCHANGE, "subject_token": "x", "subject_token_type": ACCESS_TOKEN}, "invalid_grant", 400),
    ],
)
def test_refusals_of_the_token_endpoint(world: World, form: dict[str, str], error: str, status: int) -> None:
    answer = world.ask(**form)
    assert (answer.status_code, answer.json()["error"]) == (status, error)
    assert "error_description" in answer.json()
    assert (answer.headers.get("www-authenticate") is not None) == (status == 401)


def test_requests_that_are_no_forms(world: World) -> None:
    def post(content: bytes, kind: str = "application/x-www-form-urlencoded", **headers: str) -> httpx.Response:
        return world.client.post("/v1/oauth/tokens", content=content, headers={"content-type": kind, **headers})

    twice = b"grant_type=client_credentials&grant_type=client_credentials"
    both = f"grant_type=client_credentials&client_secret={world.token}".encode()
    for answer in (
        post(b"{}", "application/json"),
        post(b"x" * 70_000),
        post(b"\xff=1"),
        post(b"grant_type"),
        post(twice),
        post(both, authorization=basic("etl", world.token)),
    ):
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")
    assert post(both, authorization="Basic !").json()["error"] == "invalid_client"
    assert world.client.get("/v1/oauth/tokens").status_code == 405


def test_failed_attempts_are_limited_by_client(world: World) -> None:
    wrong = {"grant_type": "client_credentials", "client_secret": "wrong"}
    answers = [world.ask(client_id="etl", **wrong) for _ in range(12)]
    assert [answer.status_code for answer in answers] == [401] * 10 + [429] * 2
    assert 1 <= int(answers[-1].headers["retry-after"]) <= 5
    assert world.ask(grant_type="client_credentials", client_id="etl", client_secret=world.token).status_code == 429
    assert world.ask(client_id="another", **wrong).status_code == 401
    assert world.who(world.token).status_code == 200
    assert world.records[-3]["outcome"] == "limited"


def test_a_decision_is_recorded_with_its_request(world: World) -> None:
    world.store.add_grants(
        Grant("principal:etl", Privilege.READ, Target("open")), Grant("principal:etl", Privilege.LIST, Target("seen"))
    )
    outcomes = {}
    for warehouse in ("open", "seen", "hidden"):
        answer = world.client.get(f"/read/{warehouse}?secret=1", headers={"authorization": f"Bearer {world.token}"})
        outcomes[warehouse] = (answer.status_code, world.records[-1]["outcome"])
    assert outcomes == {"open": (204, "allowed"), "seen": (403, "denied"), "hidden": (404, "hidden")}
    record = world.records[-1]
    assert record["principal"] == "etl"
    assert record["credential"] == world.credential
    assert record["privilege"] == "read"
    assert record["target"] == {"kind": "warehouse", "warehouse": "hidden"}
    assert (record["method"], record["path"], record["address"]) == ("GET", "/read/hidden", "127.0.0.1")
    assert len({record["request"] for record in world.records[-3:]}) == 3


def test_records_and_answers_hold_no_secret(world: World, caplog: pytest.LogCaptureFixture) -> None:
    issued = world.issued()
    answers = [
        world.ask(grant_type="client_credentials", client_id="x", client_secret=world.token),
        world.ask(grant_type=EXCHANGE, subject_token=issued + "x", subject_token_type=ACCESS_TOKEN),
        world.who(issued[:-4] + "AAAA"),
        world.who(world.token[:-1] + "_"),
    ]
    told = json.dumps(world.records) + caplog.text + "".join(answer.text + str(answer.headers) for answer in answers)
    for secret in (world.token[26:50], issued[:40], issued.split(".")[1][:30]):
        assert secret not in told


def test_headers_in_logs() -> None:
    headers = {"Authorization": "Bearer x", "Cookie": "x", "User-Agent": "java", "X-Own": "x"}
    assert shown_headers(headers) == {"Authorization": "***", "Cookie": "***", "User-Agent": "java", "X-Own": "***"}


@pytest.mark.parametrize("settings", [AuthSettings(refresh_seconds=0.0, request_limit=RateLimit(0.5, 3))])
def test_requests_of_a_principal_are_limited(world: World) -> None:
    world.store.add_principal("other")
    _, other = world.store.add_token("other", "x")
    answers = [world.who(world.token) for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert answers[-1].json()["error"]["code"] == 429
    assert 1 <= int(answers[-1].headers["retry-after"]) <= 2
    assert world.who(other).status_code == 200
    assert world.who("wrong").status_code == 401


@pytest.mark.parametrize("settings", [AuthSettings(refresh_seconds=0.0, allows_anonymous=True)])
def test_the_anonymous_principal_may_do_what_it_was_granted(world: World) -> None:
    assert world.who().json()["name"] == "anonymous"
    assert world.client.get("/read/open").status_code == 404
    world.store.add_grants(Grant("principal:anonymous", Privilege.READ, Target("open")))
    assert world.client.get("/read/open").status_code == 204
    assert world.who("wrong").status_code == 401


@pytest.mark.parametrize("settings", [AuthSettings(refresh_seconds=0.0, signing_keys=[KEY])])
def test_a_signing_key_of_the_configuration(world: World) -> None:
    issued = world.issued()
    assert jwt.decode(issued, KEY, algorithms=["HS256"], audience="icefloe")["sub"] == "etl"
    assert world.who(issued).status_code == 200


def test_a_database_that_is_gone_lets_nobody_in(settings: AuthSettings, tmp_path: Path) -> None:
    access = guarded_access(settings, Database("server", f"sqlite:///{tmp_path}/without-tables.db"))
    with LoopbackServer(application(access)) as server, httpx.Client(base_url=server.url, trust_env=False) as client:
        answer = client.get("/who", headers={"authorization": "Bearer icefloe_x"})
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        assert answer.json()["error"]["type"] == "ServiceUnavailableException"
        assert client.get("/who").status_code == 401


def test_an_open_server_lets_everybody_do_everything() -> None:
    with (
        LoopbackServer(application(open_access())) as server,
        httpx.Client(base_url=server.url, trust_env=False) as client,
    ):
        assert client.get("/who").json()["name"] == "anonymous"
        assert client.get("/read/any").status_code == 204
        assert client.get("/who", headers={"authorization": "Bearer whatever"}).json()["name"] == "anonymous"
        assert client.post("/v1/oauth/tokens").status_code == 404


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"host": "localhost:8181"}, 200),
        ({"host": "[::1]:8181"}, 200),
        ({"host": "localhost:8181", "origin": "http://localhost:8181"}, 200),
        ({"host": "evil.example:8181"}, 403),
        ({"host": "127.0.0.1.evil.example"}, 403),
        ({"host": "[::1"}, 403),
        ({"host": "evil.example:8181", "origin": "http://evil.example:8181"}, 403),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
    ],
)
def test_pages_of_the_web_do_not_reach_an_open_server(headers: dict[str, str], status: int) -> None:
    with (
        LoopbackServer(application(open_access())) as server,
        httpx.Client(base_url=server.url, trust_env=False) as client,
    ):
        assert client.get("/who", headers=headers).status_code == status
    insecure = open_access(is_local=False)
    with LoopbackServer(application(insecure)) as server, httpx.Client(base_url=server.url, trust_env=False) as client:
        assert client.get("/who", headers=headers).status_code == 200
