"""Tokens of OAuth 2: asked for once, renewed ahead of their end, exchanged, and kept per table."""

import gc
import logging
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from starlette.responses import JSONResponse, PlainTextResponse, Response

from icefloe.catalog.rest.auth import AuthSession, auth_session, table_session
from icefloe.catalog.rest.auth.background import RENEWALS
from icefloe.catalog.rest.auth.oauth2 import OAuth2Session
from icefloe.errors import (
    ForbiddenError,
    IcefloeError,
    InvalidPropertyError,
    NotAuthorizedError,
    ServiceUnavailableError,
)
from tests.catalog.rest.auth.token_server import (
    ACCESS,
    EXCHANGE,
    ID,
    SECRET,
    TokenServer,
    a_request,
    jwt,
    problem,
    send,
    token_server,
)

CREDENTIAL = f"{ID}:{SECRET}"


@pytest.fixture(name="one_server", scope="module")
def _one_server() -> Iterator[TokenServer]:
    with token_server() as server:
        yield server


@pytest.fixture(name="server")
def _server(one_server: TokenServer) -> TokenServer:
    one_server.reset()
    return one_server


class Clock:
    """A clock that goes when it is told to."""

    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def session(server: TokenServer, clock: Callable[[], float] = time.time, **properties: str) -> AuthSession:
    """A session by OAuth 2 at the server, with its endpoint given."""
    texts = {key.replace("_", "-"): value for key, value in properties.items()}
    return auth_session({"uri": server.url, "oauth2-server-uri": f"{server.url}/tokens", **texts}, send, clock)


def shown(auth: AuthSession) -> str | None:
    """The token that a request shows."""
    return auth.headers(a_request()).get("Authorization")


def eventually(condition: Callable[[], bool]) -> None:
    """Wait for what happens in the background."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def hurry(auth: AuthSession, seconds: float) -> None:
    """Let the clock of the session go ahead, and the thread in the background look after it now."""
    assert isinstance(auth, OAuth2Session)
    start = auth._endpoint.clock() + seconds - time.time()
    auth._endpoint.clock = lambda: time.time() + start
    RENEWALS.schedule(auth, 0)


def test_a_credential_gets_a_token_when_it_is_first_needed_and_keeps_it(server: TokenServer) -> None:
    auth = session(server, credential=CREDENTIAL)
    assert not server.forms
    assert [shown(auth) for _ in range(3)] == ["Bearer token-1"] * 3
    form = {"grant_type": "client_credentials", "client_id": ID, "client_secret": SECRET, "scope": "catalog"}
    assert server.forms == [form]
    assert server.headers[0]["content-type"] == "application/x-www-form-urlencoded"
    assert "authorization" not in server.headers[0]


def test_a_secret_may_come_without_an_id_and_with_scope_audience_and_resource(server: TokenServer) -> None:
    server.reply = lambda _: JSONResponse({"access_token": "t", "token_type": "Bearer"})
    auth = session(server, credential=" alone ", scope="a b", audience="warehouse", resource="https://r")
    assert shown(auth) == "Bearer t"
    assert server.forms == [
        {
            "grant_type": "client_credentials",
            "client_secret": "alone",
            "scope": "a b",
            "audience": "warehouse",
            "resource": "https://r",
        }
    ]


@pytest.mark.parametrize(
    ("uri", "endpoint", "path"),
    [
        ("", None, "/v1/oauth/tokens"),
        ("/base/", None, "/base/v1/oauth/tokens"),
        ("/base", "realm/token", "/base/realm/token"),
        ("/base", "/realm/token", "/base/realm/token"),
        ("/base", "{url}/else", "/else"),
    ],
)
def test_the_endpoint_is_absolute_or_below_the_catalog(
    server: TokenServer, uri: str, endpoint: str | None, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    properties = {"uri": server.url + uri, "credential": CREDENTIAL}
    if endpoint is not None:
        properties["oauth2-server-uri"] = endpoint.format(url=server.url)
    assert shown(auth_session(properties, send)) == "Bearer token-1"
    assert [headers["path"] for headers in server.headers] == [path]
    assert ("oauth2-server-uri is not set" in caplog.text) == (endpoint is None)


def test_a_header_of_the_user_is_left_alone(server: TokenServer) -> None:
    auth = session(server, credential=CREDENTIAL)
    assert auth.headers(a_request(authorization="Mine")) == {}
    assert not server.forms


def test_a_token_is_preferred_to_a_credential_and_costs_no_request(server: TokenServer) -> None:
    assert shown(session(server, credential=CREDENTIAL, token="given")) == "Bearer given"
    assert not server.forms


def test_without_token_and_credential_nothing_is_shown(server: TokenServer) -> None:
    assert shown(auth_session({"uri": server.url, "rest.auth.type": "oauth2"}, send)) is None


# Renewal


def test_a_token_in_use_is_renewed_ahead_of_its_end_by_exchange(server: TokenServer) -> None:
    server.more = {"expires_in": 100, "issued_token_type": ACCESS}
    auth = session(server, credential=CREDENTIAL)
    assert [shown(auth), shown(auth)] == ["Bearer token-1"] * 2
    hurry(auth, 88)
    time.sleep(0.1)
    assert len(server.forms) == 1, "it is not time yet"
    hurry(auth, 2.5)
    eventually(lambda: len(server.forms) == 2)
    assert server.forms[1] == {
        "grant_type": EXCHANGE,
        "subject_token": "token-1",
        "subject_token_type": ACCESS,
        "scope": "catalog",
    }
    assert server.headers[1]["authorization"] == "Bearer token-1"
    eventually(lambda: shown(auth) == "Bearer token-2")
    auth.close()


def test_a_token_that_nobody_uses_is_not_renewed_if_it_can_be_had_again(server: TokenServer) -> None:
    server.more = {"expires_in": 100}
    auth = session(server, credential=CREDENTIAL)
    shown(auth)
    hurry(auth, 95)
    time.sleep(0.2)
    assert len(server.forms) == 1
    hurry(auth, 6)
    assert shown(auth) == "Bearer token-2"
    assert server.forms[1]["grant_type"] == "client_credentials"


def test_a_token_that_only_an_exchange_renews_is_renewed_although_nobody_uses_it(server: TokenServer) -> None:
    auth = session(server, token=jwt(exp=time.time() + 3))
    eventually(lambda: bool(server.forms))
    eventually(lambda: shown(auth) == "Bearer token-1")
    auth.close()


def test_renewal_begins_a_tenth_of_the_time_or_five_minutes_ahead(server: TokenServer) -> None:
    from icefloe.catalog.rest.auth.tokens import BearerToken

    assert BearerToken("t", since=1000.0, expires=1100.0).renewal() == 1090.0
    assert BearerToken("t", since=1000.0, expires=101_000.0).renewal() == 100_700.0
    assert BearerToken("t", since=1000.0).renewal() is None


def test_where_tokens_are_not_exchanged_the_credential_gets_the_next_one(server: TokenServer) -> None:
    server.exchanges = False
    server.more = {"expires_in": 100}
    auth = session(server, credential=CREDENTIAL)
    shown(auth)
    shown(auth)
    hurry(auth, 92)
    eventually(lambda: shown(auth) == "Bearer token-3")
    hurry(auth, 92)
    eventually(lambda: shown(auth) == "Bearer token-4")
    grants = [form["grant_type"] for form in server.forms[:4]]
    assert grants == ["client_credentials", EXCHANGE, "client_credentials", "client_credentials"]
    auth.close()


def test_exchange_can_be_switched_off(server: TokenServer) -> None:
    server.more = {"expires_in": 100}
    auth = session(server, credential=CREDENTIAL, token_exchange_enabled="false")
    shown(auth)
    shown(auth)
    hurry(auth, 92)
    eventually(lambda: shown(auth) == "Bearer token-2")
    assert {form["grant_type"] for form in server.forms} == {"client_credentials"}
    auth.close()


def test_renewal_can_be_switched_off(server: TokenServer) -> None:
    clock = Clock()
    server.more = {"expires_in": 60}
    auth = session(server, clock, credential=CREDENTIAL, token_refresh_enabled="false")
    assert shown(auth) == "Bearer token-1"
    clock.now += 3600
    assert shown(auth) == "Bearer token-1"
    assert not auth.renew({"Authorization": "Bearer token-1"})


def test_a_closed_session_does_nothing_in_the_background(server: TokenServer) -> None:
    auth = session(server, token=jwt(exp=time.time() + 100))
    auth.close()
    hurry(auth, 95)
    time.sleep(0.2)
    assert not server.forms


def test_a_session_that_nobody_holds_goes_away_although_its_renewal_is_due(server: TokenServer) -> None:
    auth = session(server, token=jwt(exp=time.time() + 3600))
    reference = weakref.ref(auth)
    del auth
    gc.collect()
    assert reference() is None


def test_an_expired_token_of_the_client_is_asked_for_by_its_credential(server: TokenServer) -> None:
    clock = Clock()
    auth = session(server, clock, credential=CREDENTIAL)
    assert shown(auth) == "Bearer token-1"
    clock.now += 3599
    assert shown(auth) == "Bearer token-1"
    clock.now += 2
    assert shown(auth) == "Bearer token-2"
    assert [form["grant_type"] for form in server.forms] == ["client_credentials"] * 2


def test_an_expired_token_of_the_user_is_exchanged_by_the_client_in_its_own_name(server: TokenServer) -> None:
    old = jwt(exp=time.time() - 5)
    auth = session(server, credential=CREDENTIAL, token=old)
    assert shown(auth) == "Bearer token-1"
    assert server.forms[0]["subject_token"] == old
    assert server.headers[0]["authorization"].startswith("Basic ")


def test_an_expired_token_that_cannot_be_renewed_is_sent_since_the_clock_may_be_wrong(
    server: TokenServer, caplog: pytest.LogCaptureFixture
) -> None:
    old = jwt(exp=time.time() - 5)
    assert shown(session(server, token=old)) == f"Bearer {old}"
    assert not server.forms
    server.exchanges = False
    auth = session(server, credential=CREDENTIAL, token=old)
    assert [shown(auth), shown(auth)] == [f"Bearer {old}"] * 2
    assert len(server.forms) == 1
    assert old not in caplog.text
    assert "cannot be renewed" in caplog.text


def test_how_long_a_token_is_good_can_be_said_by_the_user(server: TokenServer) -> None:
    clock = Clock()
    auth = session(server, clock, token="opaque", token_expires_in_ms="60000", credential=CREDENTIAL)
    assert shown(auth) == "Bearer opaque"
    clock.now += 61
    assert shown(auth) == "Bearer token-1"


@pytest.mark.parametrize("skew", [-86_400.0, 86_400.0])
@pytest.mark.parametrize("states_lifetime", [True, False])
def test_a_clock_that_is_wrong_by_a_day_does_not_matter_for_issued_tokens(
    server: TokenServer, skew: float, states_lifetime: bool
) -> None:
    def reply(_: dict[str, str]) -> Response:
        token = jwt(iat=time.time(), exp=time.time() + 3600)
        lifetime = {"expires_in": 3600} if states_lifetime else {}
        return JSONResponse({"access_token": token, "token_type": "bearer", **lifetime})

    server.reply = reply
    clock = Clock(time.time() + skew)
    auth = session(server, clock, credential=CREDENTIAL)
    for _ in range(5):
        shown(auth)
        clock.now += 600
    assert len(server.forms) == 1
    clock.now += 700
    shown(auth)
    assert len(server.forms) == 2


@pytest.mark.parametrize("lifetime", [0, -5])
def test_a_lifetime_that_is_over_at_once_does_not_ask_for_tokens_without_end(
    server: TokenServer, lifetime: int
) -> None:
    server.more = {"expires_in": lifetime}
    auth = session(server, credential=CREDENTIAL)
    assert [shown(auth) for _ in range(5)] == ["Bearer token-1"] * 5


# Many threads


def test_many_threads_ask_for_one_token(server: TokenServer) -> None:
    server.seconds = 0.2
    auth = session(server, credential=CREDENTIAL)
    barrier = threading.Barrier(32)

    def ask(_: int) -> str | None:
        barrier.wait()
        return shown(auth)

    with ThreadPoolExecutor(32) as pool:
        assert set(pool.map(ask, range(32))) == {"Bearer token-1"}
    assert len(server.forms) == 1


def test_many_threads_whose_token_is_refused_renew_it_once(server: TokenServer) -> None:
    auth = session(server, credential=CREDENTIAL)
    refused = {"Authorization": str(shown(auth))}
    server.seconds = 0.1
    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(lambda _: auth.renew(refused), range(16)))
    assert shown(auth) == "Bearer token-2"
    assert len(server.forms) == 2


def test_threads_that_waited_in_vain_do_not_ask_one_after_the_other(server: TokenServer) -> None:
    server.seconds, server.reply = 0.3, lambda _: PlainTextResponse("down", 503)
    auth = session(server, credential=CREDENTIAL)
    barrier = threading.Barrier(8)

    def ask(_: int) -> type[Exception] | None:
        barrier.wait()
        try:
            shown(auth)
        except IcefloeError as error:
            return type(error)
        return None

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(ask, range(8))) == {ServiceUnavailableError}
    assert len(server.forms) <= 2, "a thread that came late may ask again"


def test_threads_go_on_with_a_good_token_while_it_is_renewed(server: TokenServer) -> None:
    server.more = {"expires_in": 100}
    auth = session(server, credential=CREDENTIAL)
    shown(auth)
    shown(auth)
    server.seconds = 0.5
    hurry(auth, 92)
    eventually(lambda: len(server.forms) == 2)
    assert shown(auth) == "Bearer token-1"
    assert server.most_at_a_time == 1
    eventually(lambda: shown(auth) == "Bearer token-2")
    assert server.most_at_a_time == 1
    auth.close()


# Refusals


def test_a_refused_token_is_renewed_but_not_over_and_over(server: TokenServer) -> None:
    clock = Clock()
    auth = session(server, clock, credential=CREDENTIAL)
    first = {"Authorization": str(shown(auth))}
    assert auth.renew(first)
    second = {"Authorization": str(shown(auth))}
    assert second != first
    assert auth.renew(first), "another thread may have renewed it"
    assert not auth.renew(second), "it is new: age is not what is wrong with it"
    clock.now += 60
    assert auth.renew(second)
    assert len(server.forms) == 3


def test_a_refused_token_without_a_claim_to_another_is_not_renewed(server: TokenServer) -> None:
    auth = session(server, token="opaque")
    assert not auth.renew({"Authorization": "Bearer opaque"})
    assert not server.forms


@pytest.mark.parametrize(
    ("reply", "error", "text"),
    [
        (problem("invalid_client", 401, "who?"), NotAuthorizedError, "invalid_client: who?"),
        (problem("invalid_grant"), NotAuthorizedError, "invalid_grant"),
        (problem("invalid_scope"), InvalidPropertyError, "check scope"),
        (problem("invalid_request", 403), ForbiddenError, "invalid_request"),
        (PlainTextResponse("<html>", 401), NotAuthorizedError, "status 401"),
        (PlainTextResponse("<html>", 404), InvalidPropertyError, "is it the token endpoint"),
        (PlainTextResponse("", 302, {"location": "http://127.0.0.1:1/"}), InvalidPropertyError, "status 302"),
        (PlainTextResponse("slow down", 429), ServiceUnavailableError, "status 429"),
        (PlainTextResponse("down", 502), ServiceUnavailableError, "status 502"),
        (PlainTextResponse("<html>", 200), InvalidPropertyError, "did not return a token"),
        (JSONResponse({"token_type": "bearer"}), InvalidPropertyError, "did not return a token"),
        (JSONResponse({"access_token": "a", "token_type": "mac"}), InvalidPropertyError, "not a bearer token"),
        (
            JSONResponse({"access_token": "a\nb: c", "token_type": "bearer"}),
            InvalidPropertyError,
            "not allowed in a header",
        ),
    ],
)
def test_what_a_refusal_means(server: TokenServer, reply: Response, error: type[IcefloeError], text: str) -> None:
    server.reply = lambda _: reply
    with pytest.raises(error, match=text) as caught:
        shown(session(server, credential=CREDENTIAL))
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "quoted", [SECRET, "sEcReT%3Athat%20must%2Bnot%2Fshow%3D", "sEcReT%3Athat+must%2Bnot%2Fshow%3D"]
)
def test_a_server_that_quotes_the_secret_is_not_quoted(server: TokenServer, quoted: str) -> None:
    server.reply = lambda _: problem("invalid_client", 401, f"no client {ID} with {quoted}")
    with pytest.raises(NotAuthorizedError, match="not shown") as caught:
        shown(session(server, credential=CREDENTIAL))
    assert quoted not in str(caught.value)


def test_a_server_out_of_reach_is_unavailable_and_asked_again_by_the_next_request(server: TokenServer) -> None:
    auth = auth_session({"uri": "http://127.0.0.1:1", "credential": CREDENTIAL}, send)
    for _ in range(2):
        with pytest.raises(ServiceUnavailableError):
            shown(auth)


def test_a_renewal_that_fails_for_now_is_tried_again_before_the_end(
    server: TokenServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.more = {"expires_in": 30}
    auth = session(server, credential=CREDENTIAL)
    shown(auth)
    shown(auth)
    auth._endpoint.clock = lambda: time.time() + 28  # type: ignore[attr-defined]  # so that it does not take long
    server.reply = lambda _: PlainTextResponse("down", 503)
    auth.renew_ahead()  # type: ignore[attr-defined]  # the thread in the background calls it
    assert shown(auth) == "Bearer token-1"
    assert "not renewed yet" in caplog.text
    server.reply = None
    eventually(lambda: shown(auth) == "Bearer token-3")
    assert [form["grant_type"] for form in server.forms] == ["client_credentials", EXCHANGE, EXCHANGE]
    auth.close()


def test_a_token_that_a_request_renewed_is_not_renewed_again_at_the_time_of_the_old_one(server: TokenServer) -> None:
    server.more = {"expires_in": 100}
    auth = session(server, credential=CREDENTIAL)
    token = str(shown(auth))
    server.more = {"expires_in": 3600}
    assert auth.renew({"Authorization": token})
    shown(auth)
    hurry(auth, 95)
    time.sleep(0.2)
    assert len(server.forms) == 2


# Tables


def test_a_table_with_a_token_has_its_own_session(server: TokenServer) -> None:
    catalog = session(server, credential=CREDENTIAL)
    table = table_session(catalog, {"token": "of-the-table", "s3.region": "x"})
    assert shown(table) == "Bearer of-the-table"
    assert shown(catalog) == "Bearer token-1"
    assert table_session(catalog, {"token": "of-the-table"}) is table
    assert table_session(catalog, {"s3.region": "x"}) is catalog


def test_a_table_with_a_token_to_exchange_gets_one_in_the_name_of_the_catalog(server: TokenServer) -> None:
    catalog = session(server, credential=CREDENTIAL)
    prefix = "urn:ietf:params:oauth:token-type:"
    config = {prefix + "saml2": "worse", prefix + "jwt": "to-exchange"}
    table = table_session(catalog, config)
    assert shown(table) == "Bearer token-2"
    assert server.forms[1] == {
        "grant_type": EXCHANGE,
        "subject_token": "to-exchange",
        "subject_token_type": prefix + "jwt",
        "actor_token": "token-1",
        "actor_token_type": ACCESS,
        "scope": "catalog",
    }
    assert server.headers[1]["authorization"] == "Bearer token-1"
    assert table_session(catalog, config) is table
    assert len(server.forms) == 2


def test_the_session_of_a_table_is_made_anew_when_nobody_asked_for_long(server: TokenServer) -> None:
    clock = Clock()
    catalog = auth_session({"uri": server.url, "token": "t", "auth.session-timeout-ms": "60000"}, send, clock)
    table = table_session(catalog, {"token": "x"})
    clock.now += 30
    assert table_session(catalog, {"token": "x"}) is table
    clock.now += 31
    assert table_session(catalog, {"token": "x"}) is not table


def test_the_token_of_a_table_is_renewed_like_any_other(server: TokenServer) -> None:
    catalog = session(server, token="catalog")
    table = table_session(catalog, {"token": jwt(exp=time.time() + 100)})
    hurry(table, 92)
    eventually(lambda: shown(table) == "Bearer token-1")
    assert shown(catalog) == "Bearer catalog"
    table.close()


def test_many_threads_exchange_the_token_of_a_table_once(server: TokenServer) -> None:
    catalog = session(server, token="catalog")
    server.seconds = 0.1
    config = {"urn:ietf:params:oauth:token-type:jwt": "to-exchange"}
    with ThreadPoolExecutor(8) as pool:
        assert len({id(table) for table in pool.map(lambda _: table_session(catalog, config), range(8))}) == 1
    assert len(server.forms) == 1


@pytest.mark.parametrize(
    ("properties", "text"),
    [
        ({"credential": "id:"}, "no secret"),
        ({"token": "two words"}, "not allowed in a header"),
        ({"token": "t", "token-refresh-enabled": "maybe"}, "true or false"),
        ({"token": "t", "token-expires-in-ms": "0"}, "whole number"),
        ({"token": "t", "uri": "ftp://x"}, "http or https URL"),
    ],
)
def test_wrong_properties_are_refused_at_once(properties: dict[str, str], text: str) -> None:
    with pytest.raises(InvalidPropertyError, match=text):
        auth_session({"uri": "http://127.0.0.1:1", **properties}, send)


def test_the_log_never_has_a_token(server: TokenServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    auth = session(server, credential=CREDENTIAL)
    token = shown(auth)
    auth.renew({"Authorization": str(token)})
    assert SECRET not in caplog.text
    assert "token-1" not in caplog.text
