"""A peer in a process of its own, which answers one JSON object a line; it never outlives the tests that started it."""

import base64
import json
import os
import queue
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

import pyarrow as pa

PATIENCE = 240.0
"""Seconds that one answer may take, on a machine that does other things too."""


class PeerError(Exception):
    """What a peer says of a statement that failed."""


def arrow_of(answer: Mapping[str, Any]) -> Any:
    """The Arrow table in an answer."""
    with pa.ipc.open_stream(base64.b64decode(answer["arrow"])) as reader:
        return reader.read_all()


class Worker:
    """A script that runs in another Python; `sql` gives the rows of a statement."""

    usual: Mapping[str, str] = MappingProxyType({})
    """What is set for each statement of `sql`."""

    def __init__(
        self, python: Path, script: str, folder: Path, settings: Mapping[str, str], **environment: str
    ) -> None:
        self.log = folder / f"{script}.log"
        inherited = {key: value for key, value in os.environ.items() if key not in ("SPARK_HOME", "PYTHONPATH")}
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [str(python), str(Path(__file__).with_name(script))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=folder,
                env=inherited | {"TZ": "UTC"} | environment,
                text=True,
            )
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()
        started = self._ask(settings)
        self.version = str(started["version"])
        self.settings: dict[str, str] = started.get("settings", {})
        """All settings of its session, where it has one."""

    def sql(self, text: str, **conf: str) -> Any:
        """The rows of a statement as an Arrow table; `conf` is set for this one only."""
        found = self._ask({"sql": text, "conf": {**self.usual, **conf}})
        if "error" in found:
            raise PeerError(found["error"])
        return arrow_of(found)

    def rows(self, text: str, **conf: str) -> list[dict[str, Any]]:
        """The rows of a statement as dicts."""
        return list(self.sql(text, **conf).to_pylist())

    def stream(
        self,
        table: str,
        checkpoint: Path,
        options: Mapping[str, str] | None = None,
        *,
        to: str | None = None,
        fail_at: int | None = None,
    ) -> list[list[Any]]:
        """The ids that a stream of a table shows, batch by batch, unless they go to another table."""
        request = {"table": table, "checkpoint": str(checkpoint), "options": dict(options or {})}
        found = self._ask({"stream": request | {"to": to, "fail_at": fail_at}})
        if "error" in found:
            raise PeerError(found["error"])
        return list(found["batches"])

    def stop(self) -> None:
        """End it: politely, then by force."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def tell(self, request: Mapping[str, Any]) -> None:
        """Send a request, whose answer `hear` waits for; requests are answered in their order."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except OSError as error:
            raise PeerError(self._last_words(f"cannot be asked {request}: {error}")) from error

    def hear(self) -> dict[str, Any]:
        """The next answer."""
        try:
            line = self._lines.get(timeout=PATIENCE)
        except queue.Empty:
            self._process.kill()
            raise PeerError(self._last_words(f"no answer within {PATIENCE} s")) from None
        if not line:
            raise PeerError(self._last_words("it ended"))
        return dict(json.loads(line))

    def _ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        self.tell(request)
        return self.hear()

    def _last_words(self, reason: str) -> str:
        return f"{reason}; its last words:\n{self.log.read_text()[-3000:]}"

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._process.stdout.close()
        self._lines.put("")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()
