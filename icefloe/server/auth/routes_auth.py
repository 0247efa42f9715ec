"""Decides how access control speaks HTTP: who is let in to a request, the token endpoint, and what refusals look like."""

import logging
import math
import uuid
from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache
from urllib.parse import urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from icefloe.errors import ForbiddenError, IcefloeError, NotAuthorizedError, ServiceUnavailableError
from icefloe.rest import oauth_codec as oauth
from icefloe.rest.errors_codec import Problem, encode_error, error_response
from icefloe.server.auth.access import Access
from icefloe.server.auth.audit import CURRENT_REQUEST, Outcome, RequestFacts
from icefloe.server.auth.protocols import Principal
from icefloe.server.auth.token_endpoint import FORM_BYTES, OAuthRefusal, TokenEndpoint, TooManyAttempts
from icefloe.server.loopback import is_loopback

LOG = logging.getLogger("icefloe.server.auth")

TOKENS_PATH = "/v1/oauth/tokens"

SHOWN_HEADERS = frozenset(
    {
        "accept",
        "accept-encoding",
        "content-encoding",
        "content-length",
        "content-type",
        "host",
        "idempotency-key",
        "if-none-match",
        "traceparent",
        "user-agent",
        "x-client-git-commit-short",
        "x-client-version",
        "x-iceberg-access-delegation",
        "x-request-id",
    }
)
"""Headers whose values may be in logs; of all others there is only the name."""

_JSON = "application/json"
_NOT_KEPT = {"cache-control": "no-store", "pragma": "no-cache"}


def shown_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers as logs may show them."""
    return {name: value if name.lower() in SHOWN_HEADERS else "***" for name, value in headers.items()}


def principal_of(request: Request) -> Principal:
    """The principal of a request that the middleware let in."""
    principal = request.scope["state"]["principal"]
    assert isinstance(principal, Principal)
    return principal


class AccessMiddleware:
    """Lets a request in as a principal, or answers 401 or 429; what its threads do is recorded under the request's id.

    `open_paths` are reached by anybody: they have no principal.
    """

    def __init__(self, app: ASGIApp, access: Access, open_paths: frozenset[str] = frozenset({TOKENS_PATH})) -> None:
        self._app = app
        self._access = access
        self._open_paths = open_paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        state = scope.setdefault("state", {})
        token = CURRENT_REQUEST.set(_facts(scope, state))
        try:
            if scope["path"] not in self._open_paths:
                refusal = await self._let_in(scope, state)
                if refusal is not None:
                    await refusal(scope, receive, send)
                    return
            await self._app(scope, receive, send)
        finally:
            CURRENT_REQUEST.reset(token)

    async def _let_in(self, scope: Scope, state: dict[str, object]) -> Response | None:
        """Put the principal into the state of the request; an answer if it is not let in."""
        headers = state["headers"] = first_headers(scope)
        audit = self._access.audit
        if self._access.is_local and _is_of_a_page(headers.get("host", ""), headers.get("origin")):
            status, body = error_response(
                ForbiddenError("this server is for its own machine: a Host or Origin of elsewhere is refused")
            )
            return Response(body, status, media_type=_JSON)
        try:
            if len(headers) < len(scope["headers"]) and _count(scope, b"authorization") > 1:
                raise NotAuthorizedError("the request has more than one Authorization header")
            principal = self._access.authenticator.remembered(headers)
            if principal is None:
                principal = await run_in_threadpool(self._access.authenticator.authenticate, headers)
        except NotAuthorizedError as error:
            audit.authentication(Outcome.DENIED, str(error))
            return _not_authorized(error, "authorization" in headers)
        except IcefloeError as error:
            # Nothing was done yet, whatever failed: the request can be sent again.
            LOG.warning("who is calling cannot be looked up: %s", error)
            status, body = error_response(ServiceUnavailableError("who is calling cannot be looked up for now"))
            return Response(body, status, _retry_after(1), _JSON)
        state["principal"] = principal
        seconds = 0.0 if self._access.requests is None else self._access.requests.take(principal.name)
        if not seconds:
            return None
        audit.authentication(Outcome.LIMITED, "too many requests", principal)
        body = encode_error(Problem(429, "TooManyRequestsException", "too many requests; wait before the next one"))
        return Response(body, 429, _retry_after(seconds), _JSON)


def first_headers(scope: Scope) -> dict[str, str]:
    """Headers by name in lower case, as ASGI has them; of one that comes twice the first counts."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(scope["headers"])}


def _count(scope: Scope, header: bytes) -> int:
    return sum(name == header for name, _ in scope["headers"])


@lru_cache(maxsize=1024)
def _is_of_a_page(host: str, origin: str | None) -> bool:
    """Whether a browser sent it for a page of elsewhere: under a name that is not of this machine, or with another origin."""
    try:
        is_here = is_loopback(urlsplit(f"//{host}").hostname or "")
        return not is_here or (origin is not None and urlsplit(origin).netloc != host)
    except ValueError:
        return True


def _facts(scope: Scope, state: dict[str, object]) -> RequestFacts:
    client = scope.get("client")
    number = state.get("request_id")
    if number is None:
        number = state["request_id"] = uuid.uuid4().hex
    return RequestFacts(str(number), scope["method"], scope["path"], client[0] if client else "")


def _not_authorized(error: NotAuthorizedError, had_credential: bool) -> Response:
    status, body = error_response(error)
    challenge = 'Bearer realm="icefloe"' + (', error="invalid_token"' if had_credential else "")
    return Response(body, status, {"www-authenticate": challenge}, _JSON)


def _retry_after(seconds: float) -> dict[str, str]:
    return {"retry-after": str(max(1, math.ceil(seconds)))}


def routes(access: Access) -> list[Route]:
    """The token endpoint, if this server issues tokens."""
    return [] if access.tokens is None else [Route(TOKENS_PATH, _tokens_route(access.tokens), methods=["POST"])]


def _tokens_route(endpoint: TokenEndpoint) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        body = await _form_body(request)
        if body is None:
            return _refused(OAuthRefusal(oauth.INVALID_REQUEST, f"a form of at most {FORM_BYTES} bytes is expected"))
        address = request.client.host if request.client else ""
        try:
            token = await run_in_threadpool(endpoint.answer, body, request.headers.get("authorization"), address)
        except OAuthRefusal as refusal:
            return _refused(refusal)
        except TooManyAttempts as error:
            problem = oauth.OAuthProblem("temporarily_unavailable", str(error))
            return Response(oauth.encode_problem(problem), 429, _NOT_KEPT | _retry_after(error.seconds), _JSON)
        return Response(oauth.encode_token(token), 200, _NOT_KEPT, _JSON)

    return answer


async def _form_body(request: Request) -> bytes | None:
    """The body of a request, if it is a form and not too long."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != oauth.FORM:
        return None
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > FORM_BYTES:
            return None
    return body


def _refused(refusal: OAuthRefusal) -> Response:
    is_unknown = refusal.problem.error == oauth.INVALID_CLIENT
    headers = _NOT_KEPT | ({"www-authenticate": 'Basic realm="icefloe"'} if is_unknown else {})
    return Response(oauth.encode_problem(refusal.problem), 401 if is_unknown else 400, headers, _JSON)
