"""Work that takes longer than a page may wait for: in the background, once for all who ask for the same, with how far it is."""

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
"""How many seconds a page waits for work before it shows how far it is."""
_THREADS = 3
_SHOWN = 200
_A_RESULT = 4096


@dataclass(eq=False)
class Job:
    """Some work, under way or done."""

    number: int
    key: Hashable
    title: str
    catalog: str
    identifier: Identifier
    is_listed: bool
    """Whether it is one that a user started, and not what a page needs."""
    started: float = field(default_factory=time.time)
    ended: float | None = None
    progress: Progress | None = None
    result: Any = None
    error: BaseException | None = None
    done: threading.Event = field(default_factory=threading.Event, repr=False)

    @property
    def seconds(self) -> float:
        """How long it took, or takes by now."""
        return (self.ended or time.time()) - self.started

    @property
    def state(self) -> str:
        """A word for how it stands."""
        if not self.done.is_set():
            return "running" if self.progress is not None else "waiting"
        return "failed" if self.error is not None else "done"

    @property
    def message(self) -> str:
        """What went wrong; faults of our own are in the log alone."""
        if self.error is None:
            return ""
        return str(self.error) if isinstance(self.error, IcefloeError) else "it failed; the log says why"


Work = Callable[[Listener], Any]


class Jobs:
    """Jobs by key; results are kept while there is room for them."""

    def __init__(self, capacity: int = 256 << 20) -> None:
        self._pages = ThreadPoolExecutor(_THREADS, thread_name_prefix="icefloe-ui")
        self._long = ThreadPoolExecutor(_THREADS, thread_name_prefix="icefloe-ui-jobs")
        """What users start may take hours, and no page waits for that."""
        self._lock = threading.Lock()
        self._running: dict[Hashable, Job] = {}
        self._results: BoundedCache[Hashable, Job] = BoundedCache(capacity, _weight, keeps_newest=True)
        self._listed: deque[Job] = deque(maxlen=_SHOWN)
        self._numbers = itertools.count(1)

    def ask(
        self, key: Hashable, title: str, place: tuple[str, Identifier], work: Work, *, patience: float = PATIENCE
    ) -> Job:
        """The job that does this work, started now unless it is there already; a page waits for it, but not for long."""
        with self._lock:
            job = self._results.find(key) or self._running.get(key)
            if job is None:
                job = self._start(key, title, place, work, is_listed=False)
        job.done.wait(patience)
        if job.error is not None:
            # What failed once may work when the page is asked for again.
            self._results.pop(key)
        return job

    def begin(self, key: Hashable, title: str, place: tuple[str, Identifier], work: Work) -> Job:
        """Start what a user asks for, unless the same is under way."""
        with self._lock:
            job = self._running.get(key)
            return job or self._start(key, title, place, work, is_listed=True)

    def forget(self, key: Hashable) -> None:
        """Let go of a result, so that it is made anew."""
        self._results.pop(key)

    def peek(self, key: Hashable) -> Job | None:
        """The job of a key, if there is one."""
        return self._running.get(key) or self._results.find(key)

    def numbered(self, number: int) -> Job | None:
        """A job that a user started."""
        return next((job for job in self.listed() if job.number == number), None)

    def listed(self) -> list[Job]:
        """The jobs that users started, the newest first."""
        with self._lock:
            return list(self._listed)

    def close(self) -> None:
        """Begin nothing any more."""
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
