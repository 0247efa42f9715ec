"""A server that issues tokens, and remembers what it was asked."""

import base64
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qsl

import httpx2
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from icefloe.catalog.rest.auth import Answer, OutgoingRequest
from icefloe.errors import ServiceUnavailableError
from tests.catalog.rest.loopback import LoopbackServer

EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
ACCESS = "urn:ietf:params:oauth:token-type:access_token"
ID, SECRET = "the-client", "sEcReT:that must+not/show="

Reply = Callable[[dict[str, str]], Response]


class Sent:
    """An answer, as the transport gives it."""

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status, self.headers, self.body = status, headers, body


_CLIENT = httpx2.Client(trust_env=False, verify=False, limits=httpx2.Limits(max_keepalive_connections=0))


def send(request: OutgoingRequest) -> Answer:
    """Sends a request without more ado."""
    try:
        answer = _CLIENT.request(
            request.method, request.url, headers=dict(request.headers), content=request.body or None
        )
    except httpx2.TransportError as error:
        raise ServiceUnavailableError(f"no answer: {type(error).__name__}") from None
    return Sent(answer.status_code, {key.lower(): value for key, value in answer.headers.items()}, answer.content)


class TokenServer:
    """Issues `token-1`, `token-2` and so on to the client that it knows, and in exchange for tokens that it issued."""

    def __init__(self) -> None:
        self.app = Starlette(routes=[Route("/{path:path}", self._route, methods=["POST"])])
        self.url = ""
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self.forms: list[dict[str, str]] = []
        self.headers: list[dict[str, str]] = []
        self.more: dict[str, Any] = {"expires_in": 3600}
        """What answers say besides the token."""
        self.exchanges = True
        self.reply: Reply | None = None
        """Answers in its place."""
        self.seconds = 0.0
        """How long it takes to answer."""
        self.most_at_a_time = 0
        self._now = 0
        self._lock = threading.Lock()

    async def _route(self, request: Request) -> Response:
        body, headers = await request.body(), dict(request.headers)
        headers["path"] = request.url.path
        return await run_in_threadpool(self._answer, dict(parse_qsl(body.decode())), headers)

    def _answer(self, form: dict[str, str], headers: dict[str, str]) -> Response:
        with self._lock:
            self.forms.append(form)
            self.headers.append(headers)
            self._now += 1
            self.most_at_a_time = max(self.most_at_a_time, self._now)
            number = len(self.forms)
        time.sleep(self.seconds)
        with self._lock:
            self._now -= 1
        if self.reply is not None:
            return self.reply(form)
        if form["grant_type"] == EXCHANGE:
            if not self.exchanges:
                return problem("unsupported_grant_type")
        elif (form.get("client_id"), form.get("client_secret")) != (ID, SECRET):
            return problem("invalid_client", 401)
        return JSONResponse({"access_token": f"token-{number}", "token_type": "bearer", **self.more})


def problem(error: str, status: int = 400, description: str = "no") -> Response:
    """A refusal as OAuth 2 words it."""
    return JSONResponse({"error": error, "error_description": description}, status)


@contextmanager
def token_server() -> Iterator[TokenServer]:
    """A server of tokens on the loopback."""
    server = TokenServer()
    with LoopbackServer(server.app) as loopback:
        server.url = loopback.url
        yield server


def jwt(**claims: object) -> str:
    """A token with claims, whose signature nobody checks here."""
    parts = [json.dumps(part).encode() for part in ({"alg": "RS256"}, claims)] + [b"signature"]
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)


def a_request(url: str = "https://catalog.example/v1/config", **headers: str) -> OutgoingRequest:
    """Some request that needs headers."""
    return OutgoingRequest("GET", url, headers, b"")
