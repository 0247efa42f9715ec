"""What a server on the open network meets: odd paths, large and slow bodies, methods that are none; nothing breaks it."""

import socket
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from icefloe.catalog import load_catalog
from icefloe.errors import StorageError
from icefloe.server.settings import ServerSettings
from tests.server.running import SCHEMA, Client, serving


@pytest.fixture
def strict(tmp_path: Path) -> Iterator[Client]:
    catalog = load_catalog(
        "lake", type="sql", uri=f"sqlite:///{tmp_path}/lake.db", warehouse=str(tmp_path / "warehouse")
    )
    settings = ServerSettings(max_body_bytes=10_000, body_timeout=timedelta(seconds=0.5))
    with serving({"lake": catalog}, settings) as client:
        client.done("POST", "namespaces", {"namespace": ["ns"]})
        yield client


def raw(client: Client, request: bytes, wait: float = 20) -> bytes:
    """The answer to bytes as they are."""
    host, port = client.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=wait) as connection:
        connection.sendall(request)
        answer = b""
        while part := connection.recv(65536):
            answer += part
            head, _, body = answer.partition(b"\r\n\r\n")
            for line in head.lower().split(b"\r\n"):
                if line.startswith(b"content-length:") and len(body) >= int(line.partition(b":")[2]):
                    return answer
    return answer


def get(client: Client, path: str) -> int:
    head = raw(client, f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode("latin-1"))
    return int(head.split(b" ")[1])


PATHS = (
    "/v1/lake/namespaces/../config",
    "/v1/lake/namespaces/%2e%2e/tables",
    "/v1/lake/namespaces/..%2f..%2fetc/tables/passwd",
    "/v1/lake/namespaces/ns/tables/..%2F..%2F..%2Fetc%2Fpasswd",
    "/v1/lake/namespaces/ns%00/tables",
    "/v1/lake/namespaces/%1F/tables",
    "/v1/lake/namespaces/ns%1F/tables",
    "/v1/lake/namespaces/%1Fns/tables/t",
    "/v1/lake/namespaces/%FF/tables",
    "/v1/lake/namespaces/ns/tables/%FF",
    "/v1/lake/namespaces//tables",
    "/v1/lake/namespaces/ns/tables//",
    "/v1/..%2Flake/namespaces",
    "/v1/%FF/namespaces",
    "/v1/other/namespaces",
    "/v1/lake/namespaces/%E2%80%AE/tables",
    "//v1/config",
    "/v1/lake/namespaces/" + "a" * 5000,
    "/",
    "/..",
    "/metrics/../v1/config",
)


def test_paths_that_lead_nowhere(strict: Client) -> None:
    for path in PATHS:
        assert get(strict, path) in (400, 404, 405), path
    assert get(strict, "/v1/lake/namespaces") == 200


def test_names_stay_in_the_warehouse(strict: Client, tmp_path: Path) -> None:
    for name in ("..", "../../escaped", "/etc", "a/b", "%2e%2e", ".", "a\\..\\b", "ü ?#%"):
        created = strict.done("POST", "namespaces/ns/tables", {"name": name, "schema": SCHEMA})
        folder = created["metadata"]["location"].removeprefix("file://")
        assert Path(folder).resolve().is_relative_to(tmp_path / "warehouse" / "ns"), name
    names = {each["name"] for each in strict.done("GET", "namespaces/ns/tables")["identifiers"]}
    assert {"..", "../../escaped", "/etc"} <= names
    assert strict.done("GET", "namespaces/ns/tables/%2E%2E")["metadata"]["location"].endswith("%2E%2E")
    assert strict.done("GET", "namespaces/ns/tables/..%2F..%2Fescaped")
    for name in ("", " ", "a\x00b", "a\nb", "\ud800"):
        body = {"name": name, "schema": SCHEMA}
        assert strict.ask("POST", "namespaces/ns/tables", body).status_code == 400, name
    assert not list(tmp_path.glob("escaped*"))


def test_large_bodies(strict: Client) -> None:
    large = {"namespace": ["x"], "properties": {"a": "x" * 20_000}}
    strict.refused(413, "RequestEntityTooLargeException", "POST", "namespaces", large)
    chunk = b"2000\r\n" + b"x" * 0x2000 + b"\r\n"
    head = b"POST /v1/lake/namespaces HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert b" 413 " in raw(strict, head + chunk * 2)
    assert strict.ask("POST", "namespaces", b"[" * 9_000).status_code == 400
    assert strict.ask("POST", "namespaces", b'{"namespace":["' + b"a" * 400 + b'"]}').status_code == 400


def test_slow_bodies(strict: Client) -> None:
    began = time.monotonic()
    head = b"POST /v1/lake/namespaces HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"
    assert b" 408 " in raw(strict, head)
    assert time.monotonic() - began < 15


def test_requests_that_are_cut_off(strict: Client) -> None:
    host, port = strict.url.removeprefix("http://").split(":")
    body = b'{"namespace": ["cut"]}'
    head = b"POST /v1/lake/namespaces HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body)
    for sent in (head[:20], head, head + body[:5]):
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(sent)
    assert strict.done("GET", "namespaces")["namespaces"] == [["ns"]]


def test_methods_and_what_is_no_path(strict: Client) -> None:
    for method, path, status in (("PUT", "namespaces", 405), ("PATCH", "namespaces/ns", 405), ("GET", "nothing", 404)):
        answer = strict.ask(method, path)
        assert answer.status_code == status
        assert answer.json()["error"]["code"] == status


def test_an_error_that_nobody_foresaw_tells_nothing(strict: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("the password is hidden42")

    monkeypatch.setattr("icefloe.catalog.sql.SqlCatalog.list_tables", fail)
    answer = strict.ask("GET", "namespaces/ns/tables")
    assert answer.status_code == 500
    assert "hidden42" not in answer.text
    assert answer.headers["x-request-id"]


def test_where_the_database_is_is_not_told(strict: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise StorageError("postgresql://db.internal/lake", "no route to host")

    monkeypatch.setattr("icefloe.catalog.sql_database.Database.read", fail)
    for method, status in (("GET", 503), ("DELETE", 500)):
        answer = strict.ask(method, "namespaces/ns/tables/t")
        assert answer.status_code == status
        assert "internal" not in answer.text
    assert strict.ask("GET", "namespaces/ns/tables/t").headers["retry-after"] == "1"


def test_health_and_metrics(strict: Client) -> None:
    for path in ("/health/live", "/health/ready"):
        assert strict.http.get(strict.url + path).status_code == 200
    strict.ask("GET", "namespaces/ns")
    text = strict.http.get(f"{strict.url}/metrics").text
    assert 'icefloe_requests_total{operation="GET /v1/{prefix}/namespaces/{namespace}",status="200"} 1.0' in text


def test_ids_of_requests(strict: Client) -> None:
    assert strict.ask("GET", "namespaces", headers={"X-Request-Id": "abc-1"}).headers["x-request-id"] == "abc-1"
    trace = f"00-{'a' * 32}-{'b' * 16}-01"
    assert strict.ask("GET", "namespaces", headers={"traceparent": trace}).headers["x-request-id"] == "a" * 32
    odd = strict.ask("GET", "namespaces", headers={"X-Request-Id": "a b"}).headers["x-request-id"]
    assert len(odd) == 32
