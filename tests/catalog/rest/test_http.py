"""How a request gets to a server: what is sent again, what a broken connection means, and where credentials go."""

import datetime as dt
import pickle
import socket
import time
from collections.abc import Iterator, Mapping
from email.utils import format_datetime

import pytest

from icefloe.catalog.rest.auth import AuthSession, OutgoingRequest
from icefloe.catalog.rest.http import NoAnswerError, NotSentError, RestClient, Transport
from icefloe.catalog.rest.settings import ClientSettings
from icefloe.commit import Timing
from icefloe.errors import InvalidPropertyError, ServiceUnavailableError
from icefloe.rest.headers_codec import IDEMPOTENCY_KEY
from tests.catalog.rest.scripted import CUT_AFTER, CUT_BEFORE, Answer, ScriptedServer, scripted_server

KEY = {IDEMPOTENCY_KEY: "0199"}
DONE = Answer(200, b"{}")


class Tokens:
    """Credentials whose next token is another one."""

    def __init__(self) -> None:
        self.number = 0

    def headers(self, _request: OutgoingRequest) -> Mapping[str, str]:
        return {"Authorization": f"Bearer secret-{self.number}"}

    def renew(self, refused: Mapping[str, str]) -> bool:
        self.number += 1
        return refused["Authorization"] == f"Bearer secret-{self.number - 1}"

    def close(self) -> None:
        """Nothing to end."""


class Waits:
    """The time of a client, in which waiting takes none."""

    def __init__(self) -> None:
        self.waited: list[float] = []
        self.transports: list[Transport] = []

    def timing(self) -> Timing:
        def clock_ms() -> int:
            return int(sum(self.waited) * 1000)

        return Timing(self.waited.append, clock_ms, lambda: 0.0)


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with scripted_server() as started:
        yield started


@pytest.fixture
def waits() -> Iterator[Waits]:
    known = Waits()
    yield known
    for transport in known.transports:
        transport.close()


def client_of(
    uri: str, waits: Waits, auth: AuthSession | None = None, properties: Mapping[str, str] | None = None
) -> RestClient:
    settings = ClientSettings.of(properties or {})
    waits.transports.append(Transport(settings, waits.timing()))
    return RestClient(uri, waits.transports[-1], settings.headers, auth)


# What is sent again


@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE"])
@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_a_request_that_may_be_sent_twice_is(server: ScriptedServer, waits: Waits, method: str, status: int) -> None:
    server.answer(Answer(status), Answer(status), Answer(204))
    assert client_of(server.uri, waits).request(method, "v1/x").status == 204
    assert len(server.received) == 3
    assert waits.waited == [1, 2]


@pytest.mark.parametrize("status", [408, 500, 502, 503, 504])
def test_a_change_is_sent_once(server: ScriptedServer, waits: Waits, status: int) -> None:
    server.answer(Answer(status))
    answer = client_of(server.uri, waits).request("POST", "v1/x", body=b"{}")
    assert (answer.status, answer.repeated, len(server.received)) == (status, False, 1)


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_a_change_with_a_key_is_sent_again_with_that_key(server: ScriptedServer, waits: Waits, status: int) -> None:
    server.answer(Answer(status), DONE)
    answer = client_of(server.uri, waits).request("POST", "v1/x", body=b"{}", headers=KEY)
    assert (answer.status, answer.repeated) == (200, status != 429)
    assert [each.headers["idempotency-key"] for each in server.received] == ["0199", "0199"]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 406, 409, 419, 422, 501, 505])
def test_what_is_certain_is_not_asked_again(server: ScriptedServer, waits: Waits, status: int) -> None:
    server.answer(Answer(status))
    assert client_of(server.uri, waits).request("GET", "v1/x").status == status
    assert len(server.received) == 1


def test_a_busy_server_is_asked_again_for_anything(server: ScriptedServer, waits: Waits) -> None:
    server.answer(Answer(429), Answer(503, headers={"Retry-After": "7"}), DONE)
    answer = client_of(server.uri, waits).request("POST", "v1/x", body=b"{}")
    assert (answer.status, len(server.received), waits.waited) == (200, 3, [1, 7])
    assert answer.repeated


def test_waits_are_as_long_as_the_server_says_or_twice_as_long_each_time(server: ScriptedServer, waits: Waits) -> None:
    later = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=30)
    server.answer(
        Answer(503, headers={"Retry-After": format_datetime(later, usegmt=True)}),
        Answer(503, headers={"Retry-After": "soon"}),
        Answer(503),
        Answer(503),
        Answer(503),
        Answer(503),
    )
    assert client_of(server.uri, waits).request("GET", "v1/x").status == 503
    assert 27 < waits.waited[0] <= 30
    assert waits.waited[1:] == [2, 4, 8, 16]
    assert len(server.received) == 6


def test_a_server_that_asks_to_wait_for_hours_is_not_waited_for(server: ScriptedServer, waits: Waits) -> None:
    server.answer(Answer(503, headers={"Retry-After": "36000"}))
    assert client_of(server.uri, waits).request("GET", "v1/x").status == 503
    assert waits.waited == []


def test_a_key_is_used_no_longer_than_the_server_remembers_it(server: ScriptedServer, waits: Waits) -> None:
    server.answer(Answer(503))
    within = dt.timedelta(seconds=4)
    assert client_of(server.uri, waits).request("POST", "v1/x", headers=KEY, within=within).status == 503
    assert waits.waited == [1, 2]


def test_the_number_of_retries_is_set(server: ScriptedServer, waits: Waits) -> None:
    server.answer(Answer(500))
    client_of(server.uri, waits, properties={"rest.client.max-retries": "1"}).request("GET", "v1/x")
    assert len(server.received) == 2


# Broken connections


def test_a_server_that_is_not_there_has_not_been_asked(waits: Waits) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(NotSentError, match=rf"GET http://127.0.0.1:{port}/v1/x: ConnectError"):
        client_of(f"http://127.0.0.1:{port}", waits).request("GET", "v1/x")
    assert waits.waited == []


@pytest.mark.parametrize(
    "fault", [CUT_BEFORE, CUT_AFTER, Answer(200, b"{}" * 50, cut_after=9), Answer(200, b"{}" * 50, cut_after=80)]
)
def test_a_change_without_an_answer_may_have_happened(
    server: ScriptedServer, waits: Waits, fault: Answer | str
) -> None:
    server.answer(fault)
    with pytest.raises(NoAnswerError):
        client_of(server.uri, waits).request("POST", "v1/x", body=b"{}")
    assert waits.waited == []


@pytest.mark.parametrize(
    "fault", [CUT_BEFORE, CUT_AFTER, Answer(200, b"{}" * 50, cut_after=9), Answer(200, b"{}" * 50, cut_after=80)]
)
@pytest.mark.parametrize(("method", "headers"), [("GET", {}), ("DELETE", {}), ("POST", KEY)])
def test_what_may_be_sent_twice_is_sent_again(
    server: ScriptedServer, waits: Waits, fault: Answer | str, method: str, headers: Mapping[str, str]
) -> None:
    server.answer(fault, fault, DONE)
    answer = client_of(server.uri, waits).request(method, "v1/x", headers=headers)
    assert (answer.status, answer.repeated, waits.waited) == (200, True, [0.1, 1])


def test_the_first_sending_may_have_happened_whatever_becomes_of_the_second(
    server: ScriptedServer, waits: Waits
) -> None:
    def sleep(_seconds: float) -> None:
        server.close()

    settings = ClientSettings.of({})
    waits.transports.append(Transport(settings, Timing(sleep, lambda: 0, lambda: 0.0)))
    client = RestClient(server.uri, waits.transports[-1], settings.headers)
    server.answer(CUT_AFTER)
    with pytest.raises(
        NoAnswerError, match=r"an earlier attempt .* may have succeeded; the last one failed: .*ConnectError"
    ):
        client.request("POST", "v1/x", headers=KEY)


def test_a_silent_server_is_given_up(server: ScriptedServer, waits: Waits) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        uri = f"http://127.0.0.1:{silent.getsockname()[1]}"
        client = client_of(uri, waits, properties={"rest.client.socket-timeout-ms": "50"})
        started = time.monotonic()
        with pytest.raises(NoAnswerError, match="ReadTimeout"):
            client.request("GET", "v1/x")
    assert time.monotonic() - started < 20
    assert waits.waited == []


# Credentials, headers and redirects


def test_credentials_go_with_every_sending_and_are_renewed_once(server: ScriptedServer, waits: Waits) -> None:
    server.answer(Answer(401), Answer(503), DONE)
    assert client_of(server.uri, waits, Tokens()).request("GET", "v1/x").status == 200
    assert [each.headers["authorization"] for each in server.received] == [
        "Bearer secret-0",
        "Bearer secret-1",
        "Bearer secret-1",
    ]


def test_without_credentials_nothing_is_sent(server: ScriptedServer, waits: Waits) -> None:
    class Broken(Tokens):
        def headers(self, _request: OutgoingRequest) -> Mapping[str, str]:
            raise ServiceUnavailableError("no token")

    with pytest.raises(NotSentError, match="because there are no credentials: no token"):
        client_of(server.uri, waits, Broken()).request("POST", "v1/x")
    assert server.received == []


def test_headers_of_the_catalog_go_with_every_request(server: ScriptedServer, waits: Waits) -> None:
    server.answer(DONE)
    properties = {"header.X-Tenant": "blue", "header.accept": "application/iceberg", "rest.client.user-agent": "me"}
    client_of(server.uri, waits, properties=properties).request("GET", "v1/x", query={"parent": "a\x1fb c", "e": ""})
    received = server.received[0]
    assert received.target == "/v1/x?parent=a%1Fb%20c&e="
    assert received.headers["x-tenant"] == "blue"
    assert received.headers["accept"] == "application/iceberg"
    assert received.headers["user-agent"] == "me"
    assert received.headers["x-client-version"].startswith("icefloe/")


@pytest.mark.parametrize(
    "path", ["v1/namespaces/a%1Fb", "v1/namespaces/a%2Fb", "v1/namespaces/%2E%2E/tables/x", "v1/a+b%20c"]
)
def test_a_path_is_sent_as_it_is_encoded(server: ScriptedServer, waits: Waits, path: str) -> None:
    server.answer(DONE)
    client_of(f"{server.uri}/base/", waits).request("GET", path)
    assert server.received[0].target == f"/base/{path}"


@pytest.mark.parametrize("status", [307, 308])
def test_a_redirect_on_the_same_host_is_followed(server: ScriptedServer, waits: Waits, status: int) -> None:
    server.answer(Answer(status, headers={"Location": "/v2/x"}), DONE)
    assert client_of(server.uri, waits, Tokens()).request("POST", "v1/x", body=b"{1}").status == 200
    assert [(each.target, each.body) for each in server.received] == [("/v1/x", b"{1}"), ("/v2/x", b"{1}")]
    assert server.received[1].headers["authorization"] == "Bearer secret-0"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_credentials_do_not_go_to_another_host(server: ScriptedServer, waits: Waits, status: int) -> None:
    properties = {"header.X-Api-Key": "hidden"}
    with scripted_server() as other:
        server.answer(Answer(status, headers={"Location": f"{other.uri}/x"}))
        other.answer(DONE)
        client = client_of(server.uri, waits, Tokens(), properties)
        assert client.request("GET", "v1/x").status == 200
        assert not {"authorization", "x-api-key"} & other.received[0].headers.keys()
        with pytest.raises(NotSentError, match="the request and its credentials are not sent there"):
            client.request("POST", "v1/x", body=b"{}")
        server.answer(Answer(status, headers={"Location": "/x"}))
        with pytest.raises(NotSentError, match="more than 5 times"):
            client.request("GET", "v1/x")
        assert len(other.received) == 1
        # The same for whole URLs that a server names.
        client.request("GET", f"{other.uri}/y")
        assert not {"authorization", "x-api-key"} & other.received[1].headers.keys()


@pytest.mark.parametrize("status", [301, 302, 303])
def test_a_change_is_not_made_a_question_by_a_redirect(server: ScriptedServer, waits: Waits, status: int) -> None:
    server.answer(Answer(status, headers={"Location": "/v2/x"}))
    with pytest.raises(NotSentError, match="does not preserve the request"):
        client_of(server.uri, waits).request("POST", "v1/x", body=b"{}")


def test_a_proxy_is_asked_with_its_login(server: ScriptedServer, waits: Waits) -> None:
    server.answer(DONE)
    properties = {
        "rest.client.proxy.hostname": "127.0.0.1",
        "rest.client.proxy.port": str(server.port),
        "rest.client.proxy.username": "me",
        "rest.client.proxy.password": "hidden",
    }
    client_of("http://catalog.invalid", waits, properties=properties).request("GET", "v1/x")
    assert server.received[0].target == "http://catalog.invalid/v1/x"
    assert server.received[0].headers["proxy-authorization"].startswith("Basic ")
    assert "hidden" not in repr(ClientSettings.of(properties))


# Settings


@pytest.mark.parametrize(
    ("properties", "problem"),
    [
        ({"rest.client.proxy.hostname": "h"}, "a proxy needs both"),
        ({"rest.client.proxy.username": "h"}, "proxy authentication needs both"),
        ({"rest.client.tls.configurer-impl": "a.B"}, "names a Java class"),
        ({"header.": "x"}, "is not a valid HTTP header"),
        ({"header.X": "a\r\nY: b"}, "is not a valid HTTP header"),
        ({"rest.client.max-retries": "-1"}, "rest.client.max-retries"),
        ({"rest.client.socket-timeout-ms": "soon"}, "socket-timeout-ms"),
    ],
)
def test_settings_that_mean_nothing_are_refused(properties: dict[str, str], problem: str) -> None:
    with pytest.raises(InvalidPropertyError, match=problem):
        ClientSettings.of(properties)


def test_a_certificate_that_is_not_there_is_an_error(waits: Waits) -> None:
    with pytest.raises(InvalidPropertyError, match=r"ssl\.cabundle"):
        client_of("https://127.0.0.1:1", waits, properties={"ssl.cabundle": "/nowhere.pem"})


def test_secrets_are_not_shown(server: ScriptedServer, waits: Waits) -> None:
    settings = ClientSettings.of({"header.X-Api-Key": "hidden"})
    assert "hidden" not in repr(settings)
    assert pickle.loads(pickle.dumps(settings)) == settings
    server.answer(CUT_AFTER)
    client = client_of(server.uri, waits, Tokens())
    with pytest.raises(NoAnswerError) as caught:
        client.request("POST", "v1/x", query={"token": "hidden"})
    assert "hidden" not in str(caught.value) + repr(client)
