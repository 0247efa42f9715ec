"""Which kind of authentication properties ask for, and what a server may not change."""

import pickle
import re
import sys
from collections.abc import Mapping

import pytest

from icefloe.catalog.rest.auth import AuthSession, OutgoingRequest, auth_session, table_session, trusted_properties
from icefloe.errors import InvalidPropertyError, NotInstalledError
from tests.catalog.rest.auth.token_server import a_request, send

BASIC = {"rest.auth.basic.username": "Aladdin", "rest.auth.basic.password": "open sesame"}
URI = {"uri": "https://catalog.example"}


def headers(properties: dict[str, str], request: OutgoingRequest | None = None) -> Mapping[str, str]:
    """The headers that a session adds."""
    return auth_session({**URI, **properties}, send).headers(request or a_request())


@pytest.mark.parametrize(
    ("properties", "kind"),
    [
        ({}, "NoAuth"),
        ({"rest.auth.type": "none", "token": "t"}, "NoAuth"),
        ({"rest.auth.type": "Basic", **BASIC}, "BasicAuth"),
        ({"token": "t"}, "OAuth2Session"),
        ({"credential": "a:b"}, "OAuth2Session"),
        ({"rest.auth.type": "oauth2"}, "OAuth2Session"),
        ({"rest.sigv4-enabled": "true"}, "SigV4Session"),
        ({"rest.sigv4-enabled": "false"}, "NoAuth"),
        ({"rest.auth.type": "sigv4"}, "SigV4Session"),
        ({"rest.auth.type": "google"}, "GoogleSession"),
        ({"rest.auth.type": f"{__name__}.Own"}, "CustomAuth"),
    ],
)
def test_the_kind_by_properties(properties: dict[str, str], kind: str) -> None:
    session = auth_session({**URI, **properties}, send)
    assert type(session).__name__ == kind
    assert repr(session) == f"{kind}()"
    with pytest.raises(TypeError, match="from the catalog properties"):
        pickle.dumps(session)
    session.close()


@pytest.mark.parametrize(
    ("properties", "text"),
    [
        ({"rest.auth.type": "kerberos"}, "it must be none, basic, oauth2, sigv4, google, or a class"),
        ({"rest.auth.type": "basic", "rest.auth.basic.username": "u"}, "needs the properties"),
        ({"rest.auth.type": "basic", **BASIC, "rest.auth.basic.username": "a:b"}, "contains a colon"),
        ({"rest.auth.type": "no.such.Class"}, "names a class that cannot be imported"),
        ({"rest.auth.type": "builtins.nothing"}, "names a class that cannot be imported"),
        ({"rest.auth.type": "builtins.dict"}, "without a method headers"),
        ({"rest.auth.type": "sys.path"}, "is not a class"),
    ],
)
def test_what_is_no_kind_is_refused(properties: dict[str, str], text: str) -> None:
    with pytest.raises(InvalidPropertyError, match=text):
        auth_session({**URI, **properties}, send)


def test_basic_is_as_the_rfc_has_it() -> None:
    assert headers({"rest.auth.type": "basic", **BASIC}) == {"Authorization": "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="}
    unicode = {"rest.auth.basic.username": "test", "rest.auth.basic.password": "123£"}
    assert headers({"rest.auth.type": "basic", **unicode}) == {"Authorization": "Basic dGVzdDoxMjPCow=="}
    assert headers({"rest.auth.type": "basic", **BASIC}, a_request(authorization="Mine")) == {}


class Own:
    """A class of a user."""

    def __init__(self, properties: dict[str, str]) -> None:
        self.properties = properties

    def headers(self, request: OutgoingRequest) -> dict[str, str]:
        """Says what it knows."""
        return {"X-Own": f"{request.method} {self.properties['own']}"}


class Whole(Own):
    """One with all methods."""

    is_closed = False

    def renew(self, refused: Mapping[str, str]) -> bool:
        """Always."""
        return bool(refused)

    def close(self) -> None:
        """Remember it."""
        Whole.is_closed = True


def test_a_class_of_ones_own() -> None:
    session: AuthSession = auth_session({**URI, "own": "yes", "rest.auth.type": f"{__name__}.Own"}, send)
    assert session.headers(a_request()) == {"X-Own": "GET yes"}
    assert not session.renew({"X-Own": "x"})
    session.close()
    assert table_session(session, {"token": "x"}) is session
    whole = auth_session({**URI, "own": "yes", "rest.auth.type": f"{__name__}.Whole"}, send)
    assert whole.renew({"X-Own": "x"})
    whole.close()
    assert Whole.is_closed


@pytest.mark.parametrize(
    ("kind", "package", "command"),
    [("sigv4", "botocore.auth", "pip install 'icefloe[aws]'"), ("google", "google.auth", "pip install 'icefloe[gcp]'")],
)
def test_a_missing_package_is_named_with_the_command(
    kind: str, package: str, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, f"icefloe.catalog.rest.auth.{kind}", raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(NotInstalledError, match=re.escape(command)):
        auth_session({**URI, "rest.auth.type": kind}, send)


# What the server may say


def test_a_server_sets_what_is_its_own() -> None:
    given = {**URI, "token": "mine"}
    merged = {**given, "token": "theirs", "prefix": "p", "scope": "s", "oauth2-server-uri": "https://idp.example/t"}
    assert trusted_properties(given, merged) == merged


@pytest.mark.parametrize(
    "key",
    [
        "rest.auth.type",
        "rest.auth.basic.username",
        "rest.sigv4-enabled",
        "credential",
        "gcp.auth.credentials-path",
        "ssl.cabundle",
        "ssl.client.key",
        "rest.client.proxy.hostname",
        "metrics-reporter-impl",
        "client.profile-name",
    ],
)
@pytest.mark.parametrize("is_given", [True, False])
def test_a_server_sets_neither_code_nor_files_nor_proxies(
    key: str, is_given: bool, caplog: pytest.LogCaptureFixture
) -> None:
    given = {**URI, key: "mine"} if is_given else URI
    assert trusted_properties(given, {**given, key: "os.system"}) == given
    assert key in caplog.text
    assert "os.system" not in caplog.text


def test_a_server_does_not_send_the_secret_elsewhere() -> None:
    given = {**URI, "credential": "a:b", "oauth2-server-uri": "https://idp.example/token"}
    assert trusted_properties(given, {**given, "oauth2-server-uri": "https://evil.example/token"}) == given


@pytest.mark.parametrize("key", ["uri", "oauth2-server-uri"])
def test_a_server_does_not_end_encryption(key: str) -> None:
    with pytest.raises(InvalidPropertyError, match="unencrypted"):
        trusted_properties(URI, {**URI, key: "http://user:secret@catalog.example/a?token=secret"})
    assert trusted_properties(URI, {**URI, key: "https://other.example"})[key] == "https://other.example"
    plain = {"uri": "http://127.0.0.1:8181"}
    assert trusted_properties(plain, {**plain, key: "http://127.0.0.1:8182"})[key] == "http://127.0.0.1:8182"
