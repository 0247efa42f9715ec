"""Signatures of SigV4: those of Amazon's own examples, and such that a server finds right which computes them itself."""

import datetime as dt
import logging
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, urlencode

import httpx2
import pytest
from botocore.credentials import ReadOnlyCredentials
from hypothesis import given, settings, strategies as st
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from icefloe.catalog.rest.auth import AuthSession, OutgoingRequest, auth_session, table_session
from icefloe.catalog.rest.auth.sigv4 import signed_headers
from icefloe.errors import InvalidPropertyError, NotAuthorizedError
from tests.catalog.rest.auth.signatures import SignatureError, check_signature
from tests.catalog.rest.auth.token_server import a_request, send
from tests.catalog.rest.loopback import LoopbackServer

KEYS = {"rest.access-key-id": "AKIDEXAMPLE", "rest.secret-access-key": "sEcReT/kEy+x"}
SECRETS = {"AKIDEXAMPLE": "sEcReT/kEy+x", "AKIDCHAIN": "of the chain", "AKIDTABLE": "of the table"}
CLIENT = httpx2.Client(verify=False, trust_env=False, limits=httpx2.Limits(max_keepalive_connections=0))
SIGV4 = {"rest.auth.type": "sigv4", "rest.signing-region": "eu-central-1", "uri": "https://127.0.0.1:1", **KEYS}


async def _check(request: Request) -> Response:
    headers = dict(request.headers)
    try:
        region, service = check_signature(
            request.method,
            request.scope["raw_path"],
            request.scope["query_string"],
            headers,
            await request.body(),
            SECRETS,
        )
    except SignatureError as error:
        return JSONResponse({"error": str(error)}, 403)
    return JSONResponse({"region": region, "service": service, "headers": headers})


@pytest.fixture(name="url", scope="module")
def _url() -> Iterator[str]:
    methods = ["GET", "POST", "DELETE", "HEAD"]
    with LoopbackServer(Starlette(routes=[Route("/{path:path}", _check, methods=methods)])) as server:
        yield server.url


@pytest.fixture(autouse=True)
def _no_credentials_around(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))


def asked(auth: AuthSession, request: OutgoingRequest) -> httpx2.Response:
    """Send a request with the headers of the session."""
    headers = {**request.headers, **auth.headers(request)}
    return CLIENT.request(request.method, request.url, headers=headers, content=request.body or None)


@pytest.mark.parametrize(
    ("path", "headers", "signature"),
    [
        ("test.txt", {"Range": "bytes=0-9"}, "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"),
        ("?lifecycle", {}, "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
        ("?max-keys=2&prefix=J", {}, "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"),
    ],
)
def test_the_examples_of_amazon(path: str, headers: dict[str, str], signature: str) -> None:
    keys = ReadOnlyCredentials("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", None)
    request = OutgoingRequest("GET", f"https://examplebucket.s3.amazonaws.com/{path}", headers, b"")
    signed = signed_headers(request, keys, "s3", "us-east-1", dt.datetime(2013, 5, 24, tzinfo=dt.UTC))
    assert signed["Authorization"].endswith(f"Signature={signature}")
    assert signed["X-Amz-Date"] == "20130524T000000Z"


_NAMES = st.text(st.characters(exclude_categories=("Cs", "Cc"), include_characters="\x1f"), min_size=1, max_size=8)


@settings(max_examples=60, deadline=None)
@given(
    names=st.lists(_NAMES.filter(lambda name: name not in (".", "..")), max_size=3),
    query=st.dictionaries(_NAMES, _NAMES | st.just(""), max_size=3),
    safe=st.sampled_from(["", "/"]),
    body=st.binary(max_size=50),
)
def test_a_server_finds_every_signature_right(
    url: str, names: list[str], query: dict[str, str], safe: str, body: bytes
) -> None:
    path = "/".join(quote(name, safe="") for name in ("v1", *names))
    target = f"{url}/{path}" + (f"?{urlencode(query, quote_via=quote, safe=safe)}" if query else "")
    request = OutgoingRequest("POST" if body else "GET", target, {"Accept": "application/json", "X-A": "a  b"}, body)
    answer = asked(auth_session(SIGV4, send), request)
    assert answer.status_code == 200, answer.text
    assert answer.json()["service"] == "execute-api"
    assert answer.json()["region"] == "eu-central-1"


@pytest.mark.parametrize("changed", ["body", "path", "query", "header", "method"])
def test_a_server_finds_every_change_on_the_way(url: str, changed: str) -> None:
    request = OutgoingRequest("POST", f"{url}/v1/a?b=c", {"Accept": "x"}, b"{}")
    headers = {**request.headers, **auth_session(SIGV4, send).headers(request)}
    method, target, body = "POST", request.url, b"{}"
    match changed:
        case "body":
            body = b"{ }"
        case "path":
            target = target.replace("/a", "/b")
        case "query":
            target += "d"
        case "header":
            headers["Accept"] = "y"
        case _:
            method = "DELETE"
    assert CLIENT.request(method, target, headers=headers, content=body).status_code == 403


def test_service_and_session_token_are_signed(url: str) -> None:
    auth = auth_session({**SIGV4, "rest.signing-name": "glue", "rest.session-token": "of the session"}, send)
    answer = asked(auth, a_request(f"{url}/iceberg/v1/config")).json()
    assert answer["service"] == "glue"
    assert answer["headers"]["x-amz-security-token"] == "of the session"
    assert "x-amz-security-token" in answer["headers"]["authorization"]


@pytest.mark.parametrize("old", [True, False])
def test_what_the_inner_kind_says_moves_aside_and_is_signed(url: str, old: bool) -> None:
    kind = {"rest.sigv4-enabled": "true", "rest.auth.type": "none"} if old else {}
    auth = auth_session({**SIGV4, **kind, "token": "inner"}, send)
    answer = asked(auth, a_request(f"{url}/v1/config")).json()
    assert answer["headers"]["original-authorization"] == "Bearer inner"
    assert "original-authorization" in answer["headers"]["authorization"]


def test_a_header_of_the_user_moves_aside_too(url: str) -> None:
    answer = asked(auth_session(SIGV4, send), a_request(f"{url}/v1/config", authorization="Mine")).json()
    assert answer["headers"]["original-authorization"] == "Mine"
    assert answer["headers"]["authorization"].startswith("AWS4-HMAC-SHA256")


def test_the_inner_kind_can_be_chosen(url: str) -> None:
    basic = {"rest.auth.basic.username": "u", "rest.auth.basic.password": "p"}
    auth = auth_session({**SIGV4, "rest.auth.sigv4.delegate-auth-type": "basic", **basic}, send)
    assert asked(auth, a_request(f"{url}/x")).json()["headers"]["original-authorization"] == "Basic dTpw"
    with pytest.raises(InvalidPropertyError, match="cannot be nested"):
        auth_session({**SIGV4, "rest.auth.sigv4.delegate-auth-type": "SigV4"}, send)


def test_keys_and_region_come_from_amazons_chain(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDCHAIN")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "of the chain")
    monkeypatch.setenv("AWS_REGION", "us-west-2")
    auth = auth_session({"rest.auth.type": "sigv4", "uri": url}, send)
    assert asked(auth, a_request(f"{url}/x")).json()["region"] == "us-west-2"
    monkeypatch.delenv("AWS_REGION")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-west-1")
    assert asked(auth, a_request(f"{url}/x")).json()["region"] == "us-west-1"


def test_keys_come_from_a_profile(url: str, tmp_path: Path) -> None:
    lines = ("[lake]", "aws_access_key_id = AKIDCHAIN", "aws_secret_access_key = of the chain", "region = sa-east-1")
    (tmp_path / "credentials").write_text("\n".join(lines))
    auth = auth_session({"rest.auth.type": "sigv4", "uri": url, "client.profile-name": "lake"}, send)
    assert asked(auth, a_request(f"{url}/x")).json()["region"] == "sa-east-1"
    with pytest.raises(InvalidPropertyError, match="nobody"):
        auth_session({"rest.auth.type": "sigv4", "uri": url, "client.profile-name": "nobody"}, send).headers(
            a_request()
        )


@pytest.mark.parametrize(
    ("properties", "kind", "text"),
    [
        ({}, NotAuthorizedError, "has no credentials"),
        (KEYS, InvalidPropertyError, "needs a region"),
        ({"rest.access-key-id": "a"}, InvalidPropertyError, "must both be set"),
    ],
)
def test_what_is_missing_is_said(properties: dict[str, str], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        auth_session({"rest.auth.type": "sigv4", "uri": "https://h", **properties}, send).headers(a_request())


def test_a_table_may_bring_keys_and_a_token(url: str) -> None:
    auth = auth_session({**SIGV4, "rest.session-token": "of the catalog", "token": "of-the-catalog"}, send)
    assert table_session(auth, {"s3.region": "x"}) is auth
    config = {"rest.access-key-id": "AKIDTABLE", "rest.secret-access-key": "of the table", "token": "of-the-table"}
    answer = asked(table_session(auth, config), a_request(f"{url}/x")).json()["headers"]
    assert "Credential=AKIDTABLE/" in answer["authorization"]
    assert answer["original-authorization"] == "Bearer of-the-table"
    assert "x-amz-security-token" not in answer


def test_the_log_never_has_tokens(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    auth = auth_session({**SIGV4, "rest.session-token": "of-the-session", "token": "inner-token"}, send)
    auth.headers(a_request())
    for secret in ("of-the-session", "inner-token", "sEcReT/kEy+x"):
        assert secret not in caplog.text
