"""The endpoints for operators: whether the server lives, whether it can work, and its metrics."""

import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import prometheus_client as prometheus
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from icefloe.errors import IcefloeError
from icefloe.server.auth import principal_of
from icefloe.server.auth.protocols import Authorizer, Privilege, Target
from icefloe.server.logs import log_request, request_id
from icefloe.server.routes import error_answer
from icefloe.server.server import Server
from icefloe.server.stopwatch import Stopwatch
from icefloe.server.workers import SHARED_COUNTS

OPEN_PATHS = frozenset({"/health/live", "/health/ready"})
"""What needs no principal."""

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_UNKNOWN = "none"


class Metrics:
    """Counters of a server."""

    def __init__(self, server: Server) -> None:
        self.registry = prometheus.CollectorRegistry()
        self.requests = prometheus.Counter(
            "icefloe_requests", "Requests by operation and status", ["operation", "status"], registry=self.registry
        )
        self.seconds = prometheus.Histogram(
            "icefloe_request_seconds", "Time of requests", ["operation"], buckets=_BUCKETS, registry=self.registry
        )
        self.under_way = prometheus.Gauge(
            "icefloe_requests_under_way", "Requests under way", registry=self.registry, multiprocess_mode="livesum"
        )
        cached = prometheus.Gauge(
            "icefloe_cached_metadata_bytes",
            "Metadata kept in memory",
            ["warehouse"],
            registry=self.registry,
            multiprocess_mode="livesum",
        )
        self._cached = [(cached.labels(warehouse.name), warehouse.texts) for warehouse in server.warehouses.all]
        self._weights = [-1] * len(self._cached)
        self._counted: dict[tuple[str, int], tuple[prometheus.Counter, prometheus.Histogram]] = {}
        self._folder = os.environ.get(SHARED_COUNTS)
        """Where all processes of the server count; None: there is only this one."""

    def count(self, operation: str, status: int, seconds: float) -> None:
        """One more request."""
        counted = self._counted.get((operation, status))
        if counted is None:
            counted = self.requests.labels(operation, str(status)), self.seconds.labels(operation)
            self._counted[operation, status] = counted
        counted[0].inc()
        counted[1].observe(seconds)
        if self._folder is not None:
            self._weigh()

    def text(self) -> bytes:
        """The counters of all processes of the server, as Prometheus reads them."""
        self._weigh()
        if self._folder is None:
            return prometheus.generate_latest(self.registry)
        for file in Path(self._folder).glob("gauge_live*.db"):
            if not _is_alive(int(file.stem.rpartition("_")[2])):
                file.unlink(missing_ok=True)
        registry = prometheus.CollectorRegistry()
        MultiProcessCollector(registry, self._folder)  # type: ignore[no-untyped-call]
        return prometheus.generate_latest(registry)

    def _weigh(self) -> None:
        for place, (gauge, texts) in enumerate(self._cached):
            if texts.weight != self._weights[place]:
                self._weights[place] = texts.weight
                gauge.set(texts.weight)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


class Observer:
    """Counts, times and logs every request; routes see the path as it came, so that an encoded slash is no slash."""

    def __init__(self, app: ASGIApp, metrics: Metrics, slow_seconds: float) -> None:
        self._app = app
        self._metrics = metrics
        self._slow_seconds = slow_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope["path"] = scope["raw_path"].decode("ascii", "replace")
        state = scope.setdefault("state", {})
        state["watch"], state["request_id"] = Stopwatch(), request_id(dict(scope["headers"]))
        status = 500

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", state["request_id"].encode())]
            await send(message)

        self._metrics.under_way.inc()
        try:
            await self._app(scope, receive, answer)
        finally:
            self._metrics.under_way.dec()
            seconds = state["watch"].seconds()
            self._metrics.count(state.get("operation", _UNKNOWN), status, seconds)
            log_request(scope, status, seconds, self._slow_seconds)


def routes(server: Server, metrics: Metrics, authorizer: Authorizer) -> list[Route]:
    """The routes; metrics name warehouses, and are for those who may read the whole server."""

    async def live(request: Request) -> Response:  # noqa: ARG001 - the signature of a route
        return PlainTextResponse("live\n")

    def metrics_text(request: Request) -> Response:
        try:
            authorizer.check(principal_of(request), Privilege.READ, Target())
        except IcefloeError as error:
            return error_answer(error, request)
        return Response(metrics.text(), media_type=prometheus.CONTENT_TYPE_LATEST)

    return [
        Route("/health/live", live),
        Route("/health/ready", _ready(server)),
        Route("/metrics", metrics_text),
    ]


def _ready(server: Server) -> Callable[[Request], Awaitable[Response]]:
    checked = 0.0

    def ready(request: Request) -> Response:  # noqa: ARG001 - the signature of a route
        nonlocal checked
        # Anybody may ask: the databases are asked at most once a second.
        if time.monotonic() - checked < 1:
            return PlainTextResponse("ready\n")
        try:
            server.check_ready()
        except IcefloeError as error:
            return PlainTextResponse(f"not ready: {type(error).__name__}\n", 503)
        checked = time.monotonic()
        return PlainTextResponse("ready\n")

    return ready  # type: ignore[return-value]  # Starlette runs a plain function in a thread
