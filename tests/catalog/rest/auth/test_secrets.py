"""Whatever a secret is, nothing that is printed, logged or raised holds it."""

import logging
import traceback
from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from starlette.responses import JSONResponse, Response

from icefloe.catalog.rest.auth import AuthSession, auth_session, table_session
from icefloe.catalog.rest.auth.settings import Credential, OAuth2Settings
from icefloe.catalog.rest.auth.tokens import BearerToken
from icefloe.errors import IcefloeError
from tests.catalog.rest.auth.token_server import TokenServer, a_request, problem, send, token_server

_VISIBLE = st.characters(min_codepoint=0x21, max_codepoint=0x7E)
SECRETS = st.text(_VISIBLE, min_size=12, max_size=40)
PASSWORDS = st.text(min_size=12, max_size=40).filter(lambda text: text.strip() == text and len(set(text)) > 4)
SECRET_KEYS = (
    "credential",
    "token",
    "rest.auth.basic.password",
    "rest.secret-access-key",
    "rest.session-token",
    "gcp.auth.credentials-json",
)
KINDS = ("oauth2", "basic", "sigv4", "google", "none")


@pytest.fixture(name="server", scope="module")
def _server() -> Iterator[TokenServer]:
    with token_server() as server:
        yield server


def printed(calls: list[Callable[[], object]], caplog: pytest.LogCaptureFixture) -> str:
    """All that calls print: results, errors with their tracebacks, and the log."""
    texts = []
    for call in calls:
        try:
            result = call()
            texts.append(f"{result!r} {result}")
        except IcefloeError as error:
            texts.append("".join(traceback.format_exception(error)) + repr(error) + repr(error.args))
    return "\n".join([*texts, caplog.text])


def _quoting(secret: str) -> Callable[[dict[str, str]], Response]:
    return lambda form: problem("invalid_client", 401, f"{form} {secret}")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    secrets=st.tuples(*[SECRETS] * 3), kind=st.sampled_from(KINDS), mode=st.sampled_from(["quotes", "serves", "html"])
)
def test_no_secret_is_ever_printed(
    server: TokenServer, caplog: pytest.LogCaptureFixture, secrets: tuple[str, str, str], kind: str, mode: str
) -> None:
    caplog.clear()
    caplog.set_level(logging.DEBUG)
    one, two, three = secrets
    server.reply = {
        "quotes": _quoting(one),
        "serves": lambda _: JSONResponse({"access_token": three, "token_type": "bearer"}),
        "html": lambda form: Response(str(form), 400),
    }[mode]
    properties = dict.fromkeys(SECRET_KEYS, one) | {
        "uri": server.url,
        "rest.auth.type": kind,
        "credential": f"id:{two}",
        "rest.auth.basic.username": "user",
        "rest.access-key-id": "AKIDEXAMPLE",
        "rest.signing-region": "x",
    }
    if mode != "serves":
        del properties["token"]
    made: list[AuthSession] = []

    def session() -> AuthSession:
        made.append(auth_session(properties, send))
        return made[0]

    def shown() -> int:
        return len(made[0].headers(a_request()))

    def table() -> AuthSession:
        return table_session(made[0], {"token": three, "urn:ietf:params:oauth:token-type:jwt": one})

    def exchanged() -> AuthSession:
        return table_session(made[0], {"urn:ietf:params:oauth:token-type:jwt": one})

    text = printed(
        [session, shown, table, exchanged, lambda: made[0].renew({"Authorization": f"Bearer {one}"})], caplog
    )
    for secret in secrets:
        assert secret not in text


@given(secret=PASSWORDS)
def test_no_value_shows_a_secret(secret: str) -> None:
    values = (
        Credential("id", secret),
        BearerToken(secret),
        OAuth2Settings("https://user:x@h/t", Credential(None, secret)),
        a_request(f"https://u:{secret}@host/path?token={secret}", Authorization=secret),
    )
    for value in values:
        assert secret not in repr(value)
        assert secret not in str(value)


@given(secret=PASSWORDS)
def test_properties_that_are_refused_do_not_show_secrets(secret: str) -> None:
    for properties in (
        {"token": f"{secret} {secret}"},
        {"credential": f"{secret}:"},
        {"rest.auth.type": "google", "gcp.auth.credentials-json": secret},
        {"rest.auth.type": "basic", "rest.auth.basic.username": "a:b", "rest.auth.basic.password": secret},
    ):
        with pytest.raises(IcefloeError) as caught:
            auth_session({"uri": "https://h", **properties}, send).headers(a_request())
        assert secret not in "".join(traceback.format_exception(caught.value))
