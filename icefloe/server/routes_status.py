"""The endpoints for operators: whether the server lives, whether it can work, and its metrics."""

import asyncio
import os
import time
from bisect import bisect_left
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import prometheus_client as prometheus
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.concurrency import run_in_threadpool
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
_UNTOLD_SECONDS = 0.25
"""How long a count of one of several processes may be its own."""


@dataclass(slots=True)
class _Counted:
    """Requests of one operation with one status since they were told."""

    requests: int = 0
    seconds: float = 0.0
    in_buckets: list[int] = field(default_factory=lambda: [0] * (len(_BUCKETS) + 1))


class Metrics:
    """Counters of a server. They are told from time to time: to tell of each request, all processes of a server together,
    would take longer than many a request. One thread, that of the event loop, counts and tells.
    """

    def __init__(self, server: Server) -> None:
        self.registry = prometheus.CollectorRegistry()
        self._requests = prometheus.Counter(
            "icefloe_requests", "Requests by operation and status", ["operation", "status"], registry=self.registry
        )
        self._seconds = prometheus.Histogram(
            "icefloe_request_seconds", "Time of requests", ["operation"], buckets=_BUCKETS, registry=self.registry
        )
        self._under_way = prometheus.Gauge(
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
        self._folder = os.environ.get(SHARED_COUNTS)
        """Where all processes of the server count; None: there is only this one."""
        self._begun = 0
        self._untold: dict[tuple[str, int], _Counted] = {}
        self._is_due = False

    def begin(self) -> None:
        """A request came."""
        self._begun += 1
        self._tell_soon()

    def end(self, operation: str, status: int, seconds: float) -> None:
        """It is answered."""
        self._begun -= 1
        counted = self._untold.get((operation, status))
        if counted is None:
            counted = self._untold[operation, status] = _Counted()
        counted.requests += 1
        counted.seconds += seconds
        counted.in_buckets[bisect_left(_BUCKETS, seconds)] += 1
        self._tell_soon()

    def _tell_soon(self) -> None:
        if self._folder is not None and not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_later(_UNTOLD_SECONDS, self.tell)

    def tell(self) -> None:
        """Hand over what was counted."""
        self._is_due = False
        self._under_way.set(self._begun)
        for gauge, texts in self._cached:
            gauge.set(texts.weight)
        for (operation, status), counted in self._untold.items():
            self._requests.labels(operation, str(status)).inc(counted.requests)
            seconds = self._seconds.labels(operation)
            # The library itself takes one at a time.
            seconds._sum.inc(counted.seconds)
            for bucket, number in zip(seconds._buckets, counted.in_buckets, strict=True):
                if number:
                    bucket.inc(number)
        self._untold.clear()

    def text(self) -> bytes:
        """The counters of all processes of the server as they were told last, as Prometheus reads them."""
        if self._folder is None:
            return prometheus.generate_latest(self.registry)
        for file in Path(self._folder).glob("gauge_live*.db"):
            if not _is_alive(int(file.stem.rpartition("_")[2])):
                file.unlink(missing_ok=True)
        registry = prometheus.CollectorRegistry()
        MultiProcessCollector(registry, self._folder)  # type: ignore[no-untyped-call]
        return prometheus.generate_latest(registry)


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

        self._metrics.begin()
        try:
            await self._app(scope, receive, answer)
        finally:
            seconds = state["watch"].seconds()
            self._metrics.end(state.get("operation", _UNKNOWN), status, seconds)
            log_request(scope, status, seconds, self._slow_seconds)


def routes(server: Server, metrics: Metrics, authorizer: Authorizer) -> list[Route]:
    """The routes; metrics name warehouses, and are for those who may read the whole server."""

    async def live(request: Request) -> Response:  # noqa: ARG001 - the signature of a route
        return PlainTextResponse("live\n")

    async def metrics_text(request: Request) -> Response:
        try:
            await run_in_threadpool(authorizer.check, principal_of(request), Privilege.READ, Target())
        except IcefloeError as error:
            return error_answer(error, request)
        metrics.tell()
        return Response(await run_in_threadpool(metrics.text), media_type=prometheus.CONTENT_TYPE_LATEST)

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
