"""Decides how calls come over HTTP, and how answers and errors go back: paths, bodies with their limits, statuses, headers."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TypeVar

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route, compile_path
from starlette.types import ASGIApp, Receive, Scope, Send

from icefloe.errors import IcefloeError, InvalidInputError, LocationNotFoundError, StorageError
from icefloe.rest import paths_codec as paths
from icefloe.rest.config_codec import WAREHOUSE, encode_config
from icefloe.rest.errors_codec import Problem, encode_error, problem_of
from icefloe.rest.headers_codec import CACHE_CONTROL, ETAG, RETRY_AFTER, quoted_tag
from icefloe.server.auth import principal_of
from icefloe.server.auth.protocols import Authorizer, Privilege, Target
from icefloe.server.calls import Answer, Call, FileAccess, Operation
from icefloe.server.idempotency import ToldBeforeError
from icefloe.server.loads import Loads
from icefloe.server.server import Server
from icefloe.server.stopwatch import Stopwatch
from icefloe.server.warehouses import Warehouse

LOG = logging.getLogger("icefloe.server")
JSON = "application/json"
Result = TypeVar("Result")
Handler = Callable[[Request], Awaitable[Response]]

_NO_BODY = (204, 304)
_RETRY_SECONDS = "1"
_UNAVAILABLE = "ServiceUnavailableException"


class BodyError(Exception):
    """A body that is too large, too slow or cut off."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


class CatalogRoutes:
    """The routes of a server."""

    def __init__(self, server: Server, authorizer: Authorizer, access: FileAccess) -> None:
        self._server = server
        self._authorizer = authorizer
        self._access = access
        self._threads = CapacityLimiter(server.settings.threads)
        self._loads = Loads(server, self._threads)

    def routes(self, operations: tuple[Operation, ...]) -> list[Route]:
        """A route for each operation, and the configuration."""
        return [
            *(Route(_path(each.endpoint), self._handler(each), methods=[each.endpoint.method]) for each in operations),
            Route(paths.CONFIG.path, self._config, methods=[paths.CONFIG.method]),
        ]

    def direct(self, operation: Operation) -> Middleware:
        """What answers the requests to one operation before the router sees them."""
        return Middleware(Direct, endpoint=operation.endpoint, handle=self._handler(operation))

    async def in_thread(self, work: Callable[[], Result]) -> Result:
        """Do work that waits for files or databases, beside other requests."""
        return await run_sync(work, limiter=self._threads)

    def _handler(self, operation: Operation) -> Handler:
        name, has_body = str(operation.endpoint), operation.endpoint.method == "POST"

        async def handle(request: Request) -> Response:
            state = request.scope["state"]
            watch, state["operation"] = state["watch"], name
            try:
                body = b""
                if has_body:
                    with watch.part("body"):
                        body = await self._body(request)
                answer = await self._answer(operation, request, body, watch)
            except Exception as error:  # noqa: BLE001 - every error is answered, and those that nobody foresaw are logged
                return error_answer(error, request)
            return _response(answer)

        return handle

    async def _answer(self, operation: Operation, request: Request, body: bytes, watch: Stopwatch) -> Answer:
        understand = partial(self._call, operation, request, body, watch)
        if operation.if_unchanged is not None:
            warehouse = self._server.warehouses.of_prefix(request.path_params["prefix"])
            return await self._loads.answer(warehouse, understand, watch)
        return await self.in_thread(lambda: self._server.run(understand()))

    async def _config(self, request: Request) -> Response:
        request.scope["state"]["operation"] = str(paths.CONFIG)
        try:
            warehouse = self._server.warehouses.named(request.query_params.get(WAREHOUSE))
            await self.in_thread(lambda: self._check_seen(request, warehouse))
            return Response(encode_config(self._server.config(warehouse)), media_type=JSON)
        except Exception as error:  # noqa: BLE001 - as above
            return error_answer(error, request)

    def _call(self, operation: Operation, request: Request, body: bytes, watch: Stopwatch) -> Call:
        names = request.path_params
        warehouse = self._server.warehouses.of_prefix(names["prefix"])
        segment = names.get("namespace", "")
        try:
            namespace = _checked_levels(segment) if segment else ()
            name = paths.decode_name(names.get("table") or names.get("view") or "")
        except InvalidInputError:
            # What is wrong with a name must not tell a hidden warehouse from a missing one.
            self._check_seen(request, warehouse)
            raise
        return Call(
            operation=operation,
            warehouse=warehouse,
            principal=principal_of(request),
            authorizer=self._authorizer,
            settings=self._server.settings,
            namespace=namespace,
            name=name,
            query=_query(request),
            headers=request.scope["state"]["headers"],
            body=body,
            watch=watch,
            access=self._access,
            plan_id=paths.decode_name(names.get("plan_id", "")),
        )

    def _check_seen(self, request: Request, warehouse: Warehouse) -> None:
        self._authorizer.check(principal_of(request), Privilege.LIST, Target(warehouse.name))

    async def _body(self, request: Request) -> bytes:
        """The body of a request, unless it is too large or takes too long."""
        limit, seconds = self._server.settings.max_body_bytes, self._server.settings.body_timeout.total_seconds()
        too_large = Problem(413, "RequestEntityTooLargeException", f"a request has at most {limit} bytes")
        declared = request.headers.get("content-length", "0")
        if declared.isdecimal() and int(declared) > limit:
            raise BodyError(too_large)
        parts, size = [], 0
        try:
            async with asyncio.timeout(seconds):
                async for part in request.stream():
                    size += len(part)
                    if size > limit:
                        raise BodyError(too_large)
                    parts.append(part)
        except TimeoutError:
            problem = Problem(408, "RequestTimeoutException", f"the request took longer than {seconds:g} s to arrive")
            raise BodyError(problem) from None
        except ClientDisconnect:
            raise BodyError(Problem(400, "BadRequestException", "the request was cut off")) from None
        return b"".join(parts)


class Unchanged(Response):
    """304, with nothing but its headers; what a response usually finds out about itself is known here."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        self.status_code, self.body, self.background = 304, b"", None
        self.raw_headers = [(name.lower().encode(), value.encode()) for name, value in headers.items()]


class Direct:
    """Answers the requests to one endpoint, whose handler answers its errors, too, without looking through all routes."""

    def __init__(self, app: ASGIApp, endpoint: paths.Endpoint, handle: Handler) -> None:
        self._app = app
        self._method = endpoint.method
        self._path = compile_path(_path(endpoint))[0]
        self._handle = handle

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        names = self._path.match(scope["path"]) if scope.get("method") == self._method else None
        if names is None:
            await self._app(scope, receive, send)
            return
        scope["path_params"] = names.groupdict()
        response = await self._handle(Request(scope, receive))
        await response(scope, receive, send)


def _path(endpoint: paths.Endpoint) -> str:
    """The path as Starlette has it: dashes are no part of its names."""
    return endpoint.path.replace("{plan-id}", "{plan_id}")


def error_answer(error: BaseException, request: Request) -> Response:
    """The answer that tells of an error; one that nobody foresaw is in the log alone."""
    match error:
        case BodyError() | ToldBeforeError():
            problem = error.problem
        case StorageError() if not isinstance(error, LocationNotFoundError):
            # Where databases and stores are, and what they say, is not for clients.
            LOG.error("a store or database failed: %s", error)
            status = 503 if request.method in ("GET", "HEAD") else 500
            problem = Problem(status, _UNAVAILABLE, "a store or database of this server failed; its log says why")
        case _:
            problem = problem_of(error)
    if not isinstance(error, IcefloeError | BodyError | ToldBeforeError):
        LOG.error("a request failed", exc_info=error)
    request.scope["state"]["problem"] = f"{problem.error_type}: {problem.message}"
    headers = {RETRY_AFTER: _RETRY_SECONDS} if problem.status == 503 else {}
    if problem.status in (408, 413):
        # What is left of the body would be taken for the next request.
        headers["Connection"] = "close"
    body = b"" if request.method == "HEAD" else encode_error(problem)
    return Response(body, problem.status, headers, JSON)


def not_there(request: Request) -> Response:
    """The answer at a path that is none of this server."""
    problem = Problem(404, "NotFoundException", f"there is nothing at {request.method} {request.url.path}")
    return Response(encode_error(problem), problem.status, media_type=JSON)


def not_allowed(request: Request) -> Response:
    """The answer to a method that a path does not have."""
    problem = Problem(405, "MethodNotAllowedException", f"{request.url.path} has no {request.method}")
    return Response(encode_error(problem), problem.status, media_type=JSON)


def _response(answer: Answer) -> Response:
    headers = {} if answer.tag is None else {ETAG: quoted_tag(answer.tag)}
    if answer.caching is not None:
        headers[CACHE_CONTROL] = answer.caching
    if answer.is_unchanged:
        return Unchanged(headers)
    if answer.body is None:
        return Response(None, 204, headers)
    return Response(answer.body, 200, headers, JSON)


def _checked_levels(segment: str) -> paths.Levels:
    levels = paths.decode_namespace(segment)
    if not all(levels):
        raise InvalidInputError(f"the namespace {segment!r:.200} has an empty level")
    return levels


def _query(request: Request) -> Mapping[str, str]:
    return dict(request.query_params) if request.scope["query_string"] else {}
