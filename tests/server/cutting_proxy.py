"""A proxy on the way to servers that cuts connections: before the request, after it, or in the middle of the answer."""

import random
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self

CUTS = ("before", "request", "answer", "end")


class CuttingProxy:
    """Passes each connection on to one of the servers, and cuts some of them."""

    def __init__(self, ports: Callable[[], Sequence[int]], share: float, seed: int) -> None:
        self._ports = ports
        self._share = share
        self._random = random.Random(seed)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.cuts: list[str] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.close()
        self._thread.join(1)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._pass, args=(client,), daemon=True).start()

    def _draw(self) -> str | None:
        """How the connection is cut around the next piece of a request, if it is."""
        if self._random.random() >= self._share:
            return None
        self.cuts.append(self._random.choice(CUTS))
        return self.cuts[-1]

    def _pass(self, client: socket.socket) -> None:
        cuts: list[str | None] = [None]
        with (
            client,
            suppress(OSError),
            socket.create_connection(("127.0.0.1", self._random.choice(self._ports()))) as server,
        ):
            back = threading.Thread(target=self._answer, args=(server, client, cuts), daemon=True)
            back.start()
            while data := client.recv(65536):
                cuts[0] = self._draw()
                if cuts[0] == "before":
                    return
                server.sendall(data)
                if cuts[0] == "request":
                    return
            server.shutdown(socket.SHUT_WR)
            back.join(30)

    def _answer(self, server: socket.socket, client: socket.socket, cuts: list[str | None]) -> None:
        with suppress(OSError):
            while data := server.recv(65536):
                client.sendall(data[: self._random.randrange(1, len(data))] if cuts[0] == "answer" else data)
                if cuts[0] is not None:
                    break
        # Also when the server ended the connection, as one does that is killed.
        with suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)
