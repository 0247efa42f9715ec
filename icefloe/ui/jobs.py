"""Background jobs for work that takes too long for a request: shared by equal requests, with progress."""

import itertools
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from icefloe.bounded_cache import BoundedCache
from icefloe.catalog import Identifier
from icefloe.errors import IcefloeError
from icefloe.progress import Listener, Progress

LOG = logging.getLogger("icefloe.ui")

PATIENCE = 1.5
"""Seconds that a page waits for a job before it shows its progress."""
_THREADS = 3
_SHOWN = 200
_A_RESULT = 4096


@dataclass(eq=False)
class Job:
    """A running or finished job."""

    number: int
    key: Hashable
    title: str
    catalog: str
    identifier: Identifier
    is_listed: bool
    """Whether a user started the job, as opposed to a page that needs its result."""
    started: float = field(default_factory=time.time)
    ended: float | None = None
    progress: Progress | None = None
    result: Any = None
    error: BaseException | None = None
    done: threading.Event = field(default_factory=threading.Event, repr=False)

    @property
    def seconds(self) -> float:
        """Elapsed time."""
        return (self.ended or time.time()) - self.started

    @property
    def state(self) -> str:
        """The state in one word."""
        if not self.done.is_set():
            return "running" if self.progress is not None else "waiting"
        return "failed" if self.error is not None else "done"

    @property
    def message(self) -> str:
        """The error message; internal errors are only in the log."""
        if self.error is None:
            return ""
        return str(self.error) if isinstance(self.error, IcefloeError) else "failed; see the server log"


Work = Callable[[Listener], Any]


class Jobs:
    """Jobs by key; results are cached up to a total size."""

    def __init__(self, capacity: int = 256 << 20) -> None:
        self._pages = ThreadPoolExecutor(_THREADS, thread_name_prefix="icefloe-ui")
        self._long = ThreadPoolExecutor(_THREADS, thread_name_prefix="icefloe-ui-jobs")
        """Pool for jobs that users start, which may take hours; no page waits for them."""
        self._lock = threading.Lock()
        self._running: dict[Hashable, Job] = {}
        self._results: BoundedCache[Hashable, Job] = BoundedCache(capacity, _weight, keeps_newest=True)
        self._listed: deque[Job] = deque(maxlen=_SHOWN)
        self._numbers = itertools.count(1)

    def ask(
        self, key: Hashable, title: str, place: tuple[str, Identifier], work: Work, *, patience: float = PATIENCE
    ) -> Job:
        """Return the job for this work, started unless it exists, after a short wait for its result."""
        with self._lock:
            job = self._results.find(key) or self._running.get(key)
            if job is None:
                job = self._start(key, title, place, work, is_listed=False)
        job.done.wait(patience)
        if job.error is not None:
            # A failed job is started again by the next request.
            self._results.pop(key)
        return job

    def begin(self, key: Hashable, title: str, place: tuple[str, Identifier], work: Work) -> Job:
        """Start a job for a user, unless the same job is running."""
        with self._lock:
            job = self._running.get(key)
            return job or self._start(key, title, place, work, is_listed=True)

    def forget(self, key: Hashable) -> None:
        """Discard a result, so that it is computed again."""
        self._results.pop(key)

    def peek(self, key: Hashable) -> Job | None:
        """Return the job of a key, if there is one."""
        return self._running.get(key) or self._results.find(key)

    def numbered(self, number: int) -> Job | None:
        """Return a job that a user started, by number."""
        return next((job for job in self.listed() if job.number == number), None)

    def listed(self) -> list[Job]:
        """Return the jobs that users started, newest first."""
        with self._lock:
            return list(self._listed)

    def close(self) -> None:
        """Start no further jobs."""
        for pool in (self._pages, self._long):
            pool.shutdown(wait=False, cancel_futures=True)

    def _start(self, key: Hashable, title: str, place: tuple[str, Identifier], work: Work, *, is_listed: bool) -> Job:
        job = Job(next(self._numbers), key, title, *place, is_listed)
        self._running[key] = job
        if is_listed:
            self._listed.appendleft(job)
        (self._long if is_listed else self._pages).submit(self._run, job, work)
        return job

    def _run(self, job: Job, work: Work) -> None:
        def listen(progress: Progress) -> None:
            job.progress = progress

        listen(Progress("starting", 0, 0))
        try:
            job.result = work(listen)
        except Exception as error:
            if not isinstance(error, IcefloeError):
                LOG.error("%s failed", job.title, exc_info=error)
            job.error = error
        finally:
            job.ended = time.time()
            with self._lock:
                self._running.pop(job.key, None)
                self._results.keep(job.key, job)
            job.done.set()


def _weight(job: Job) -> int:
    return _A_RESULT + int(getattr(job.result, "nbytes", 0))
