"""Decides how reports of scans and commits leave: by one thread in the background, which nothing waits for."""

import atexit
import logging
import os
import queue
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from icefloe.errors import without_credentials

LOG = logging.getLogger("icefloe.catalog")

_MOST_WAITING = 1000
_CLOSING_SECONDS = 5.0
_IDLE_SECONDS = 2.0
"""After what time without a report the thread ends, so that nothing keeps a catalog that nobody holds."""

Item = TypeVar("Item")


class ReportQueue(Generic[Item]):
    """Reports on their way. Those that do not get there are lost, and the log says so."""

    def __init__(self, send: Callable[[Item], None]) -> None:
        self._send = send
        self._waiting: queue.Queue[tuple[str, Item] | None] = queue.Queue(_MOST_WAITING)
        self._lock = threading.Lock()
        self._thread: tuple[int, threading.Thread] | None = None
        self.is_failing = False
        """Whether the newest report did not get there."""

    def put(self, table: str, item: Item) -> None:
        """Send a report of a table later; if too many are waiting, it is left out."""
        try:
            self._waiting.put_nowait((table, item))
        except queue.Full:
            LOG.warning("a report of table %s is left out: %d others wait", table, _MOST_WAITING)
            return
        with self._lock:
            if self._thread is None or self._thread[0] != os.getpid():
                thread = threading.Thread(target=self._work, name="icefloe-reports", daemon=True)
                self._thread = os.getpid(), thread
                atexit.register(self.close)
                thread.start()

    def close(self) -> bool:
        """Wait a moment for what is under way; whether all of it has been sent, or has failed."""
        with self._lock:
            known, self._thread = self._thread, None
        if known is None or known[0] != os.getpid():
            return True
        atexit.unregister(self.close)
        try:
            self._waiting.put(None, timeout=_CLOSING_SECONDS)
        except queue.Full:
            LOG.warning("%d reports were not sent in time", self._waiting.qsize())
            return False
        known[1].join(_CLOSING_SECONDS)
        return not known[1].is_alive()

    def _next(self) -> tuple[str, Item] | None:
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
            table, item = waiting
            try:
                self._send(item)
                self.is_failing = False
            except Exception as error:  # noqa: BLE001 - a report disturbs nothing
                self.is_failing = True
                LOG.warning("a report of table %s was not sent: %s", table, without_credentials(str(error)))
