"""Servers as processes of their own, which can be killed."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).parents[2]
_ONE_PROCESS = {"ICEFLOE_SERVER__WORKERS": "1"}
"""Killed, it is gone at once."""


@dataclass
class ServerProcess:
    """`python -m icefloe serve` with some arguments."""

    arguments: tuple[str, ...]
    log: Path
    process: "subprocess.Popen[bytes] | None" = None
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self, environment: Mapping[str, str] | None = None) -> None:
        """Start it, at the port that it had before, and wait until it listens."""
        self.begin(environment)
        self.wait()

    def begin(self, environment: Mapping[str, str] | None = None) -> None:
        """Start it, at the port that it had before."""
        command = [sys.executable, "-m", "icefloe", "serve", "--port", str(self.port), *self.arguments]
        settings = {**os.environ, "PYTHONPATH": str(PROJECT), **_ONE_PROCESS, **(environment or {})}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=subprocess.PIPE, env=settings, cwd=self.log.parent
            )

    def wait(self) -> None:
        """Wait until it listens."""
        assert self.process is not None
        assert self.process.stderr is not None
        for line in self.process.stderr:
            event = json.loads(line)
            if event["message"].startswith("serving "):
                self.port = int(event["message"].rpartition(":")[2])
            if event["message"] == "Application startup complete.":
                break
        else:
            raise AssertionError(f"the server did not start: {self.process.wait()}")
        # Nobody reads what comes later.
        self.process.stderr.close()
        self._wait_until_it_listens()

    def _wait_until_it_listens(self) -> None:
        """It says that it has started a moment before it does."""
        deadline = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
            except ConnectionRefusedError:
                assert time.monotonic() < deadline, "the server does not listen"
                time.sleep(0.01)
            else:
                return

    def kill(self, how: int = signal.SIGKILL) -> int:
        """End it, by default without a word."""
        assert self.process is not None
        self.process.send_signal(how)
        return self.process.wait(30)


@contextmanager
def server_processes(folder: Path, *arguments: str, count: int = 1) -> Iterator[list[ServerProcess]]:
    """Several servers of one configuration."""
    servers = [ServerProcess(arguments, folder / f"server{number}.log") for number in range(count)]
    try:
        for server in servers:
            server.begin()
        for server in servers:
            server.wait()
        yield servers
    finally:
        for server in servers:
            if server.process is not None and server.process.poll() is None:
                server.kill()
