"""An HTTP server that does what a script says, faults included: it breaks connections wherever they can break."""

import json
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import BinaryIO


@dataclass(frozen=True)
class Answer:
    """A whole answer, or the beginning of one."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    cut_after: int | None = None
    """How many bytes of it are sent before the connection breaks; all if None."""

    def text(self) -> bytes:
        lines = [f"HTTP/1.1 {self.status} Answer", *(f"{name}: {value}" for name, value in self.headers.items())]
        if self.status not in (204, 304):
            lines.append(f"Content-Length: {len(self.body)}")
        return ("\r\n".join(lines) + "\r\n\r\n").encode() + self.body


CUT_BEFORE = "before the request is read"
CUT_AFTER = "after the request is read"


@dataclass(frozen=True)
class Received:
    """A request as it came."""

    method: str
    target: str
    headers: Mapping[str, str]
    """By names in lower case."""
    body: bytes

    def json(self) -> object:
        return json.loads(self.body)


class ScriptedServer:
    """Answers its requests with the steps of a script, in order, and with the last one from then on."""

    def __init__(self) -> None:
        self.script: list[Answer | str] = []
        self.received: list[Received] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.uri = f"http://127.0.0.1:{self.port}"
        self._threads: list[threading.Thread] = []
        self._connections: list[socket.socket] = []
        thread = threading.Thread(target=self._accept, daemon=True)
        thread.start()
        self._threads.append(thread)

    def answer(self, *steps: Answer | str) -> None:
        """What to do from now on."""
        self.script = list(steps)

    def close(self) -> None:
        # A listener that is only closed goes on accepting.
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()
        for thread in self._threads:
            thread.join(5)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._connections.append(connection)
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            thread.start()
            self._threads.append(thread)

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError), connection, connection.makefile("rb") as stream:
            while True:
                if self.script and self.script[0] == CUT_BEFORE:
                    # The client has sent, or is about to.
                    connection.recv(1)
                    self._next()
                    return
                request = _read(stream)
                if request is None:
                    return
                self.received.append(request)
                step = self.next_step(request)
                connection.sendall(step if isinstance(step, bytes) else step.text())
                if not self.is_whole(step):
                    return

    def next_step(self, request: Received) -> Answer | bytes:
        """What to answer; bytes are sent as they are, and the connection ends."""
        step = self._next()
        if isinstance(step, str):
            return b""
        return step if step.cut_after is None else step.text()[: step.cut_after]

    def is_whole(self, step: Answer | bytes) -> bool:
        """Whether the connection goes on."""
        return isinstance(step, Answer)

    def _next(self) -> Answer | str:
        return self.script.pop(0) if len(self.script) > 1 else self.script[0]


def _read(stream: BinaryIO) -> Received | None:
    line = stream.readline()
    if not line:
        return None
    method, target, _ = line.decode().split()
    headers: dict[str, str] = {}
    while line := stream.readline().strip():
        name, _, value = line.decode().partition(":")
        headers[name.lower()] = value.strip()
    body: bytes = stream.read(int(headers.get("content-length", "0")))
    return Received(method, target, headers, body)


@contextmanager
def scripted_server() -> Iterator[ScriptedServer]:
    """A server that ends with the block."""
    server = ScriptedServer()
    try:
        yield server
    finally:
        server.close()
