"""Tokens of Google: from a key of a service account in a file or a property, by a real server, renewed and never shown."""

import json
from collections.abc import Iterator
from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from starlette.responses import PlainTextResponse

from icefloe.catalog.rest.auth import AuthSession, auth_session, table_session
from icefloe.errors import InvalidPropertyError, NotAuthorizedError, ServiceUnavailableError
from tests.catalog.rest.auth.token_server import TokenServer, a_request, problem, send, token_server

_KEY = rsa.generate_private_key(65537, 2048)
_PEM = _KEY.private_bytes(
    serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
).decode()


@pytest.fixture(name="server")
def _server() -> Iterator[TokenServer]:
    with token_server() as server:
        server.reply = None
        yield server


def account(server: TokenServer) -> dict[str, str]:
    """The key of a service account, whose tokens the server issues."""
    return {
        "type": "service_account",
        "client_email": "lake@project.example",
        "private_key_id": "1",
        "private_key": _PEM,
        "token_uri": f"{server.url}/token",
    }


def session(**properties: str) -> AuthSession:
    """A session by Google."""
    given = {f"gcp.auth.{key.replace('_', '-')}": value for key, value in properties.items()}
    return auth_session({"uri": "https://biglake.example", "rest.auth.type": "google", **given}, send)


@pytest.mark.parametrize("by_file", [True, False])
def test_a_service_account_signs_for_its_token(server: TokenServer, tmp_path: Path, by_file: bool) -> None:
    document = json.dumps(account(server))
    (tmp_path / "key.json").write_text(document)
    auth = session(credentials_path=str(tmp_path / "key.json")) if by_file else session(credentials_json=document)
    assert not server.forms
    assertions: list[dict[str, object]] = []

    def reply(form: dict[str, str]) -> PlainTextResponse:
        # The independent check: PyJWT verifies what google-auth signed.
        audience = "https://oauth2.googleapis.com/token"
        assertions.append(jwt.decode(form["assertion"], _KEY.public_key(), algorithms=["RS256"], audience=audience))
        body = {"access_token": f"google-{len(assertions)}", "expires_in": 3600, "token_type": "Bearer"}
        return PlainTextResponse(json.dumps(body))

    server.reply = reply
    assert [auth.headers(a_request())["Authorization"] for _ in range(3)] == ["Bearer google-1"] * 3
    assert [claims["iss"] for claims in assertions] == ["lake@project.example"]
    assert assertions[0]["scope"] == "https://www.googleapis.com/auth/cloud-platform"
    assert auth.headers(a_request(authorization="Mine")) == {}
    assert auth.renew({"Authorization": "Bearer google-1"})
    assert auth.headers(a_request())["Authorization"] == "Bearer google-2"
    assert auth.renew({"Authorization": "Bearer google-1"}), "another thread has renewed it"
    assert table_session(auth, {"token": "x"}) is auth


def test_application_default_credentials_and_scopes(
    server: TokenServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "key.json").write_text(json.dumps(account(server)))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "key.json"))

    def reply(form: dict[str, str]) -> PlainTextResponse:
        claims = jwt.decode(form["assertion"], options={"verify_signature": False})
        return PlainTextResponse(json.dumps({"access_token": claims["scope"].replace(" ", "+"), "expires_in": 3600}))

    server.reply = reply
    assert session(scopes="a, b").headers(a_request())["Authorization"] == "Bearer a+b"


def test_refusals_show_no_key(server: TokenServer, tmp_path: Path) -> None:
    server.reply = lambda _: problem("invalid_grant", 400, f"quoted: {_PEM}")
    auth = session(credentials_json=json.dumps(account(server)))
    with pytest.raises(NotAuthorizedError, match="RefreshError") as caught:
        auth.headers(a_request())
    assert "PRIVATE" not in f"{caught.value} {auth!r}"
    gone = account(server) | {"token_uri": "http://127.0.0.1:1/token"}
    with pytest.raises(ServiceUnavailableError):
        session(credentials_json=json.dumps(gone)).headers(a_request())
    assert not auth.renew({"Authorization": "Bearer x"}), "it never had a token"


@pytest.mark.parametrize(
    "properties",
    [
        {"credentials_path": "/nowhere/key.json"},
        {"credentials_json": "{sEcReT"},
        {"credentials_json": "[1]"},
        {
            "credentials_json": '{"type": "service_account", "private_key": "sEcReT", "client_email": "e", "token_uri": "u"}'
        },
        {"credentials_json": "{}", "credentials_path": "x"},
    ],
)
def test_keys_that_are_none_are_refused_without_showing_them(properties: dict[str, str]) -> None:
    with pytest.raises((InvalidPropertyError, NotAuthorizedError)) as caught:
        session(**properties).headers(a_request())
    assert "sEcReT" not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
