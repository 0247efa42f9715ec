"""When sessions are renewed in the background: one thread for all of a process, which ends when it has nothing to do."""

import contextlib
import os
import threading
import time
import weakref
from operator import itemgetter
from typing import Protocol


class Renewable(Protocol):
    """What can be renewed."""

    def renew_ahead(self) -> None:
        """Renew it now; errors are its own business."""


class Renewals:
    """Sessions by the time of their next renewal. It holds none of them alive, and waits for none that is gone."""

    def __init__(self) -> None:
        # One that a thread can take twice: sessions may go wherever memory is asked for, also in here.
        self._condition = threading.Condition(threading.RLock())
        self._due: dict[weakref.ref[Renewable], float] = {}
        self._is_running = False

    def schedule(self, session: Renewable, seconds: float) -> None:
        """Have a session renewed after that time, and not at the time that was set before, unless it is gone by then."""
        with self._condition:
            self._due[weakref.ref(session, self._forget)] = time.monotonic() + seconds
            if not self._is_running:
                self._is_running = True
                threading.Thread(target=self._run, name="icefloe-token-renewal", daemon=True).start()
            self._condition.notify()

    def cancel(self, session: Renewable) -> None:
        """Let a session be."""
        self._forget(weakref.ref(session))

    def _forget(self, session: "weakref.ref[Renewable]") -> None:
        with self._condition:
            if self._due.pop(session, None) is not None:
                self._condition.notify()

    def _run(self) -> None:
        while (session := self._next()) is not None:
            with contextlib.suppress(Exception):
                session.renew_ahead()
            del session

    def _next(self) -> Renewable | None:
        """The next session, when its time has come; None when none is left."""
        with self._condition:
            while self._due:
                reference, due = min(self._due.items(), key=itemgetter(1))
                wait = due - time.monotonic()
                if wait > 0:
                    self._condition.wait(min(wait, threading.TIMEOUT_MAX))
                    continue
                del self._due[reference]
                if (session := reference()) is not None:
                    return session
            self._is_running = False
            return None


RENEWALS = Renewals()
"""Those of this process."""

if hasattr(os, "register_at_fork"):
    # Neither the thread nor a lock that it held is of use in a child, whose sessions are renewed when they are asked.
    os.register_at_fork(after_in_child=RENEWALS.__init__)  # type: ignore[misc]  # begins anew, on purpose
