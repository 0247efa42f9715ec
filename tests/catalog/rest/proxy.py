"""A proxy that sees every request to a server, and breaks connections where a test says so."""

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

from tests.catalog.rest.scripted import Answer, Received, ScriptedServer


@dataclass(frozen=True)
class Cut:
    """The connection breaks: before the server sees the request, or after that many bytes of its answer."""

    is_before: bool = False
    answered: int = 0

    def __str__(self) -> str:
        return "before the request" if self.is_before else f"after {self.answered} bytes of the answer"


BEFORE, AFTER, IN_STATUS, IN_HEADERS, IN_BODY = Cut(True), Cut(), Cut(answered=5), Cut(answered=30), Cut(answered=400)
CUTS = (BEFORE, AFTER, IN_STATUS, IN_HEADERS, IN_BODY)


class Proxy(ScriptedServer):
    """Passes requests on, one connection for each."""

    def __init__(self, upstream: str) -> None:
        parts = urlsplit(upstream)
        self._upstream = (str(parts.hostname), int(parts.port or 80))
        self.cuts: list[Cut] = []
        self.is_meant: Callable[[Received], bool] = lambda _: True
        """Which requests the cuts are for."""
        super().__init__()

    def next_step(self, request: Received) -> Answer | bytes:
        cut = self.cuts.pop(0) if self.cuts and self.is_meant(request) else None
        if cut is not None and cut.is_before:
            return b""
        answer = self._ask(request)
        return answer if cut is None else answer[: cut.answered]

    def is_whole(self, step: Answer | bytes) -> bool:
        # Its answer says that the connection is closed after it.
        return False

    def _ask(self, request: Received) -> bytes:
        names = {name: value for name, value in request.headers.items() if name != "connection"}
        lines = [f"{request.method} {request.target} HTTP/1.1", *(f"{name}: {value}" for name, value in names.items())]
        with socket.create_connection(self._upstream) as connection, connection.makefile("rb") as stream:
            connection.sendall("\r\n".join((*lines, "Connection: close", "", "")).encode() + request.body)
            return stream.read()


@contextmanager
def proxy_to(upstream: str) -> Iterator[Proxy]:
    """A proxy that ends with the block."""
    proxy = Proxy(upstream)
    try:
        yield proxy
    finally:
        proxy.close()
