"""When sessions are renewed in the background: one thread for all of a process, which ends when it has nothing to do."""

import contextlib
import os
import threading
import time
import weakref
from operator import itemgetter
from typing import Protocol

_LONGEST_WAIT = 60.0
"""Seconds after which it looks whether sessions that it waits for are still there."""


class Renewable(Protocol):
    """What can be renewed."""

    def renew_ahead(self) -> None:
        """Renew it now; errors are its own business."""


class Renewals:
    """Sessions by the time of their next renewal. It holds none of them alive."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._due: weakref.WeakKeyDictionary[Renewable, float] = weakref.WeakKeyDictionary()
        self._is_running = False

    def schedule(self, session: Renewable, seconds: float) -> None:
        """Have a session renewed after that time, and not at the time that was set before, unless it is gone by then."""
        with self._condition:
            self._due[session] = time.monotonic() + seconds
            if not self._is_running:
                self._is_running = True
                threading.Thread(target=self._run, name="icefloe-token-renewal", daemon=True).start()
            self._condition.notify()

    def _run(self) -> None:
        while (session := self._next()) is not None:
            with contextlib.suppress(Exception):
                session.renew_ahead()
            del session

    def _next(self) -> Renewable | None:
        """The next session, when its time has come; None when none is left."""
        with self._condition:
            while sessions := list(self._due.items()):
                session, due = min(sessions, key=itemgetter(1))
                wait = due - time.monotonic()
                if wait <= 0:
                    del self._due[session]
                    return session
                del sessions, session
                self._condition.wait(min(wait, _LONGEST_WAIT))
            self._is_running = False
            return None


RENEWALS = Renewals()
"""Those of this process."""

if hasattr(os, "register_at_fork"):
    # Neither the thread nor a lock that it held is of use in a child, whose sessions are renewed when they are asked.
    os.register_at_fork(after_in_child=RENEWALS.__init__)  # type: ignore[misc]  # begins anew, on purpose
