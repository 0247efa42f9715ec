"""Decides how reports of scans and commits get to the server: by one thread in the background, which nothing waits for."""

import atexit
import logging
import os
import queue
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from icefloe.catalog.identifiers import Identifier, show
from icefloe.commit import CommitReport
from icefloe.planning import Reporter, ScanReport
from icefloe.rest import encode_commit_report, encode_scan_report

if TYPE_CHECKING:
    from icefloe.catalog.rest.catalog import RestCatalog

LOG = logging.getLogger("icefloe.catalog.rest")

_MOST_WAITING = 1000
_CLOSING_SECONDS = 5.0
_IDLE_SECONDS = 2.0
"""After what time without a report the thread ends, so that nothing keeps a catalog that nobody holds."""

Send = Callable[[Identifier, bytes], None]


class RestReporter:
    """Hands each report of a table to the reporter of its catalog, and sends it to the server."""

    def __init__(self, catalog: "RestCatalog", identifier: Identifier, inner: Reporter) -> None:
        self._catalog = catalog
        self._identifier = identifier
        self._inner = inner

    def report(self, report: Any) -> None:
        """Take a report."""
        self._inner.report(report)
        body = None
        match report:
            case ScanReport():
                body = encode_scan_report(report, show(self._identifier))
            case CommitReport():
                body = encode_commit_report(report)
        if body is not None:
            self._catalog._send_report(self._identifier, body)


class ReportQueue:
    """Reports on their way to the server. Those that do not get there are lost, and the log says so."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._waiting: queue.Queue[tuple[Identifier, bytes] | None] = queue.Queue(_MOST_WAITING)
        self._lock = threading.Lock()
        self._thread: tuple[int, threading.Thread] | None = None

    def put(self, identifier: Identifier, body: bytes) -> None:
        """Send a report later; if too many are waiting, it is left out."""
        try:
            self._waiting.put_nowait((identifier, body))
        except queue.Full:
            LOG.warning("a report of table %s is left out: %d others wait", show(identifier), _MOST_WAITING)
            return
        with self._lock:
            if self._thread is None or self._thread[0] != os.getpid():
                thread = threading.Thread(target=self._work, name="icefloe-reports", daemon=True)
                self._thread = os.getpid(), thread
                atexit.register(self.close)
                thread.start()

    def close(self) -> None:
        """Wait a moment for what is under way."""
        with self._lock:
            known, self._thread = self._thread, None
        if known is not None and known[0] == os.getpid():
            self._waiting.put(None)
            known[1].join(_CLOSING_SECONDS)
            atexit.unregister(self.close)

    def _next(self) -> tuple[Identifier, bytes] | None:
        """The next report; None if it is time to end."""
        try:
            return self._waiting.get(timeout=_IDLE_SECONDS)
        except queue.Empty:
            with self._lock:
                # What came at the last moment has no other thread to send it.
                if not self._waiting.empty():
                    return self._waiting.get_nowait()
                self._thread = None
            atexit.unregister(self.close)
            return None

    def _work(self) -> None:
        while (waiting := self._next()) is not None:
            identifier, body = waiting
            try:
                self._send(identifier, body)
            except Exception as error:  # noqa: BLE001 - a report disturbs nothing
                LOG.warning("a report of table %s was not sent: %s", show(identifier), error)
