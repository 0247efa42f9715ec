"""TLS, proxies and redirects of a REST client against real servers: whom it trusts, and where credentials never go."""

import base64
import logging
import socket
import ssl
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from icefloe.catalog.rest.auth import auth_session
from icefloe.catalog.rest.http import Response as Answer, RestClient, Transport, sender
from icefloe.catalog.rest.settings import ClientSettings
from icefloe.errors import IcefloeError, InvalidPropertyError, ServiceUnavailableError
from tests.catalog.rest.certificates import Authority
from tests.catalog.rest.loopback import LoopbackServer

TOKEN = "sEcReT-token"
PASSWORD = "pAsSwOrD-of-proxy"


class Catalog:
    """Remembers the requests that it gets, and answers them, or sends them elsewhere."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, dict[str, str], bytes]] = []
        self.reply: Callable[[Request], Response] = lambda _: JSONResponse({})
        methods = ["GET", "POST", "DELETE", "HEAD"]
        self.app = Starlette(routes=[Route("/{path:path}", self._route, methods=methods)])

    async def _route(self, request: Request) -> Response:
        self.requests.append((request.method, request.url.path, dict(request.headers), await request.body()))
        return self.reply(request)

    def headers(self) -> dict[str, str]:
        """Those of the last request."""
        return self.requests[-1][2]


@pytest.fixture(name="cleanup")
def _cleanup() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture(autouse=True)
def _no_proxies_around(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def client(uri: str, cleanup: ExitStack, **properties: str) -> RestClient:
    """A client with a token."""
    texts = {"uri": uri, "token": TOKEN, "rest.client.max-retries": "0", **properties}
    settings = ClientSettings.of(texts)
    transport = Transport(settings)
    cleanup.callback(transport.close)
    return RestClient(uri, transport, settings.headers, auth_session(texts, sender(transport)))


def failure(call: Callable[[], Answer]) -> str:
    """The text of the error, traceback included."""
    with pytest.raises(IcefloeError) as caught:
        call()
    text = "".join(traceback.format_exception(caught.value))
    assert TOKEN not in text
    assert PASSWORD not in text
    return text


# TLS


@pytest.fixture(name="authority")
def _authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def tls_server(catalog: Catalog, authority: Authority, cleanup: ExitStack, clients: Authority | None = None) -> str:
    """The URL of a server with a certificate of the authority; it asks for those of clients, if an authority for them is given."""
    own = authority.issue("server")
    options: dict[str, object] = {"ssl_certfile": str(own.certificate), "ssl_keyfile": str(own.key)}
    if clients is not None:
        options |= {"ssl_cert_reqs": ssl.CERT_REQUIRED, "ssl_ca_certs": str(clients.path)}
    return cleanup.enter_context(LoopbackServer(catalog.app, **options)).url


def test_a_server_of_an_unknown_authority_gets_no_credentials(authority: Authority, cleanup: ExitStack) -> None:
    catalog = Catalog()
    url = tls_server(catalog, authority, cleanup)
    with pytest.raises(ServiceUnavailableError, match="CERTIFICATE_VERIFY_FAILED"):
        client(url, cleanup).request("GET", "v1/config")
    assert not catalog.requests


def test_an_authority_of_ones_own_is_trusted_by_a_bundle(authority: Authority, cleanup: ExitStack) -> None:
    catalog = Catalog()
    trusting = client(tls_server(catalog, authority, cleanup), cleanup, **{"ssl.cabundle": str(authority.path)})
    assert trusting.request("GET", "v1/config").status == 200
    assert catalog.headers()["authorization"] == f"Bearer {TOKEN}"


def test_a_certificate_of_another_host_is_refused(authority: Authority, cleanup: ExitStack) -> None:
    catalog = Catalog()
    url = tls_server(catalog, authority, cleanup).replace("127.0.0.1", "localhost")
    with pytest.raises(ServiceUnavailableError, match="CERTIFICATE_VERIFY_FAILED"):
        client(url, cleanup, **{"ssl.cabundle": str(authority.path)}).request("GET", "v1/config")
    assert not catalog.requests


def test_a_bundle_takes_the_place_of_other_authorities(
    authority: Authority, cleanup: ExitStack, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    other = Authority(tmp_path / "other")
    url = tls_server(Catalog(), authority, cleanup)
    with pytest.raises(ServiceUnavailableError, match="CERTIFICATE_VERIFY_FAILED"):
        client(url, cleanup, **{"ssl.cabundle": str(other.path)}).request("GET", "v1/config")


def test_a_client_shows_its_certificate(authority: Authority, cleanup: ExitStack) -> None:
    catalog, own = Catalog(), authority.issue("client")
    url = tls_server(catalog, authority, cleanup, clients=authority)
    trust = {"ssl.cabundle": str(authority.path)}
    with pytest.raises(ServiceUnavailableError):
        client(url, cleanup, **trust).request("GET", "v1/config")
    assert not catalog.requests
    shows = trust | {"ssl.client.cert": str(own.certificate), "ssl.client.key": str(own.key)}
    assert client(url, cleanup, **shows).request("GET", "v1/config").status == 200
    together = own.certificate.with_name("both.pem")
    together.write_bytes(own.certificate.read_bytes() + own.key.read_bytes())
    both = trust | {"ssl.client.cert": str(together)}
    assert client(url, cleanup, **both).request("GET", "v1/config").status == 200


def test_files_that_are_no_certificates_are_refused(
    authority: Authority, cleanup: ExitStack, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    locked = authority.issue("locked", password=b"secret")
    (tmp_path / "empty.pem").write_text("")
    for properties in (
        {"ssl.cabundle": "/nowhere/bundle.pem"},
        {"ssl.cabundle": str(tmp_path / "empty.pem")},
        {"ssl.client.cert": str(authority.path)},
        {"ssl.client.cert": str(locked.certificate), "ssl.client.key": str(locked.key)},
        {"ssl.client.key": str(locked.key)},
    ):
        with pytest.raises(InvalidPropertyError, match=r"ssl\."):
            client("https://127.0.0.1:1", cleanup, **properties).request("GET", "v1/config")
    assert "pass phrase" not in capfd.readouterr().err, "nobody is asked for it on the terminal"


# Proxies


class Proxy(threading.Thread):
    """A proxy of HTTP that lets through who logs in, by CONNECT or by whole URLs."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.heads: list[bytes] = []

    def run(self) -> None:
        """Serve one connection after the other, until the listener is closed."""
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def stop(self) -> None:
        """Accept no more."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _serve(self, client: socket.socket) -> None:
        with client:
            head = b""
            while b"\r\n\r\n" not in head:
                head += client.recv(65536)
            self.heads.append(head)
            login = base64.b64encode(f"user:{PASSWORD}".encode())
            if b"Proxy-Authorization: Basic " + login not in head:
                client.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
                return
            target = head.split(b" ")[1].decode()
            is_tunnel = head.startswith(b"CONNECT")
            host, _, port = (target if is_tunnel else target.split("/")[2]).rpartition(":")
            with socket.create_connection((host, int(port))) as server:
                if is_tunnel:
                    client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                else:
                    server.sendall(head)
                back = threading.Thread(target=_pump, args=(server, client), daemon=True)
                back.start()
                _pump(client, server)
                back.join(5)


def _pump(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        return


@contextmanager
def a_proxy() -> Iterator[Proxy]:
    """A proxy until the block ends."""
    proxy = Proxy()
    proxy.start()
    yield proxy
    proxy.stop()


def through(proxy: Proxy, **more: str) -> dict[str, str]:
    """The properties of a client that goes through the proxy."""
    place = {"rest.client.proxy.hostname": "127.0.0.1", "rest.client.proxy.port": str(proxy.port)}
    return place | {f"rest.client.proxy.{key}": value for key, value in more.items()}


@pytest.mark.parametrize("by_tls", [True, False])
def test_requests_go_through_the_proxy_that_is_set(by_tls: bool, authority: Authority, cleanup: ExitStack) -> None:
    catalog = Catalog()
    url = tls_server(catalog, authority, cleanup) if by_tls else cleanup.enter_context(LoopbackServer(catalog.app)).url
    proxy = cleanup.enter_context(a_proxy())
    properties = through(proxy, username="user", password=PASSWORD) | {"ssl.cabundle": str(authority.path)}
    assert client(url, cleanup, **properties).request("GET", "v1/config").status == 200
    assert len(proxy.heads) == 1
    assert catalog.headers()["authorization"] == f"Bearer {TOKEN}"
    assert "proxy-authorization" not in catalog.headers() or not by_tls
    assert (TOKEN.encode() in proxy.heads[0]) == (not by_tls), "a tunnel hides it from the proxy"


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_that_refuses_the_login_says_so_without_it(scheme: str, cleanup: ExitStack) -> None:
    proxy = cleanup.enter_context(a_proxy())
    properties = through(proxy, username="other", password=PASSWORD)
    refused = client(f"{scheme}://127.0.0.1:1", cleanup, **properties)
    if scheme == "https":
        assert "407" in failure(lambda: refused.request("GET", "v1/config"))
    else:
        assert refused.request("GET", "v1/config").status == 407


def test_half_a_proxy_is_refused(cleanup: ExitStack) -> None:
    for properties in (
        {"rest.client.proxy.hostname": "h"},
        {"rest.client.proxy.port": "1"},
        {"rest.client.proxy.hostname": "h", "rest.client.proxy.port": "none"},
        {"rest.client.proxy.hostname": "h", "rest.client.proxy.port": "1", "rest.client.proxy.username": "u"},
    ):
        with pytest.raises(InvalidPropertyError, match=r"rest\.client\.proxy"):
            client("https://127.0.0.1:1", cleanup, **properties)


def test_settings_show_neither_password_nor_headers() -> None:
    proxy = {"rest.client.proxy.hostname": "h", "rest.client.proxy.port": "1"}
    settings = ClientSettings.of(
        proxy | {"rest.client.proxy.username": "u", "rest.client.proxy.password": PASSWORD, "header.X-Key": TOKEN}
    )
    assert PASSWORD not in repr(settings)
    assert TOKEN not in repr(settings)


# Redirects


@pytest.fixture(name="servers", scope="module")
def _servers() -> Iterator[tuple[Catalog, str, Catalog, str]]:
    one, two = Catalog(), Catalog()
    with LoopbackServer(one.app) as first, LoopbackServer(two.app) as second:
        yield one, first.url, two, second.url


@pytest.fixture(name="pair")
def _pair(servers: tuple[Catalog, str, Catalog, str]) -> tuple[Catalog, str, Catalog, str]:
    for catalog in (servers[0], servers[2]):
        catalog.requests.clear()
        catalog.reply = lambda _: JSONResponse({})
    return servers


def redirecting(catalog: Catalog, target: str, status: int = 307) -> None:
    """Send all requests for `old` to the target."""
    catalog.reply = lambda request: (
        RedirectResponse(target, status) if request.url.path.startswith("/old") else JSONResponse({})
    )


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_another_port_gets_a_question_without_credentials(
    pair: tuple[Catalog, str, Catalog, str], status: int, cleanup: ExitStack
) -> None:
    one, first, two, second = pair
    redirecting(one, f"{second}/new", status)
    answer = client(first, cleanup, **{"header.X-Api-Key": TOKEN}).request(
        "GET", "old", headers={"X-Iceberg-Access-Delegation": "vended-credentials"}
    )
    assert answer.status == 200
    assert one.headers()["authorization"] == f"Bearer {TOKEN}"
    assert len(two.requests) == 1
    assert TOKEN not in str(two.requests)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_another_port_never_gets_a_change(
    pair: tuple[Catalog, str, Catalog, str], status: int, method: str, cleanup: ExitStack
) -> None:
    one, first, two, second = pair
    redirecting(one, f"{second}/new", status)
    sending = client(first, cleanup)
    assert "redirects" in failure(lambda: sending.request(method, "old", body=b"{}"))
    assert not two.requests


@pytest.mark.parametrize("status", [307, 308])
def test_the_same_server_gets_the_request_where_it_points_to(
    pair: tuple[Catalog, str, Catalog, str], status: int, cleanup: ExitStack
) -> None:
    one, first, _, _ = pair
    redirecting(one, "/new", status)
    assert client(first, cleanup).request("POST", "old", body=b'{"a": 1}').status == 200
    method, path, headers, body = one.requests[-1]
    assert (method, path, body) == ("POST", "/new", b'{"a": 1}')
    assert headers["authorization"] == f"Bearer {TOKEN}"


def test_credentials_do_not_come_back_by_way_of_another_server(
    pair: tuple[Catalog, str, Catalog, str], cleanup: ExitStack
) -> None:
    one, first, two, second = pair
    redirecting(one, f"{second}/old")
    redirecting(two, f"{first}/new")
    client(first, cleanup).request("GET", "old")
    assert "authorization" not in one.headers()
    assert "authorization" not in two.headers()


def test_encryption_does_not_end_by_a_redirect(authority: Authority, cleanup: ExitStack) -> None:
    catalog, plain = Catalog(), Catalog()
    url = cleanup.enter_context(LoopbackServer(plain.app)).url
    redirecting(catalog, f"{url}/new")
    secure = client(tls_server(catalog, authority, cleanup), cleanup, **{"ssl.cabundle": str(authority.path)})
    assert "redirects" in failure(lambda: secure.request("GET", "old"))
    assert not plain.requests


def test_a_whole_url_of_another_server_gets_no_credentials(
    pair: tuple[Catalog, str, Catalog, str], cleanup: ExitStack
) -> None:
    _, first, two, second = pair
    client(first, cleanup, **{"header.X-Api-Key": TOKEN}).request("GET", f"{second}/v1/credentials")
    assert TOKEN not in str(two.requests)


def test_a_request_for_a_token_is_not_redirected_to_another_server(
    pair: tuple[Catalog, str, Catalog, str], cleanup: ExitStack
) -> None:
    one, first, two, second = pair
    redirecting(one, f"{second}/new", 308)
    asking = client(first, cleanup, token="", credential=f"id:{TOKEN}", **{"oauth2-server-uri": "old/tokens"})
    assert "redirects" in failure(lambda: asking.request("GET", "v1/config"))
    assert not two.requests


def test_redirects_end(pair: tuple[Catalog, str, Catalog, str], cleanup: ExitStack) -> None:
    one, first, _, _ = pair
    redirecting(one, "/old")
    endless = client(first, cleanup)
    assert "more than" in failure(lambda: endless.request("GET", "old"))
    assert len(one.requests) < 10


# What is not shown


def test_the_log_of_the_transport_never_has_a_token(
    pair: tuple[Catalog, str, Catalog, str], cleanup: ExitStack, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    _, first, _, _ = pair
    client(first, cleanup, **{"header.X-Api-Key": TOKEN}).request("POST", "v1/config", body=b"{}")
    assert TOKEN not in caplog.text


@pytest.mark.parametrize("value", [f"{TOKEN} ", f" {TOKEN}", f"{TOKEN}\r\nX: y", f"{TOKEN}é€", f"{TOKEN}\x7f"])
def test_headers_that_http_refuses_are_not_shown(
    pair: tuple[Catalog, str, Catalog, str], value: str, cleanup: ExitStack
) -> None:
    _, first, _, _ = pair
    text = failure(lambda: client(first, cleanup, **{"header.X-Api-Key": value}).request("GET", "v1/config"))
    assert "X-Api-Key" in text


def test_a_uri_with_a_password_is_refused_without_showing_it(cleanup: ExitStack) -> None:
    text = failure(lambda: client(f"https://user:{PASSWORD}@127.0.0.1:1", cleanup).request("GET", "v1/config"))
    assert "rest.auth.basic" in text


def test_a_refused_token_is_renewed_and_the_request_sent_again(
    pair: tuple[Catalog, str, Catalog, str], cleanup: ExitStack
) -> None:
    one, first, _, _ = pair

    def reply(request: Request) -> Response:
        if request.url.path == "/v1/oauth/tokens":
            count = sum(path == "/v1/oauth/tokens" for _, path, _, _ in one.requests)
            return JSONResponse({"access_token": f"issued-{count}", "token_type": "bearer", "expires_in": 3600})
        return JSONResponse({}, 200 if request.headers["authorization"] == "Bearer issued-2" else 401)

    one.reply = reply
    renewing = client(first, cleanup, token="", credential="id:secret")
    assert renewing.request("POST", "v1/x", body=b"{}").status == 200
    assert [path for _, path, _, _ in one.requests] == ["/v1/oauth/tokens", "/v1/x", "/v1/oauth/tokens", "/v1/x"]
