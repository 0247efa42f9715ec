"""Progress of long operations, reported to a callable, or on a terminal, in a notebook or in the log after a while."""

import html
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TextIO, TypeVar

_SECONDS_BEFORE = 2.0
"""Seconds before a bar is shown: most work is done by then, and a flickering line would only disturb."""
_SECONDS_BETWEEN = 0.1
_SECONDS_BETWEEN_LINES = 10.0
_WIDTH = 30

LOG = logging.getLogger("icefloe.progress")
Step = TypeVar("Step")


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a stage."""

    stage: str
    done: int
    total: int | None
    """None while unknown, as for streamed rows; in the last step of a stage it equals `done`."""

    @property
    def is_end(self) -> bool:
        """Whether the stage is finished."""
        return self.total is not None and self.done >= self.total

    @property
    def counts(self) -> str:
        """What is done, and the total if known."""
        return f"{self.done:,}" if self.total is None else f"{self.done:,}/{self.total:,}"


Listener = Callable[[Progress], object]
"""Called for each step, from one thread at a time."""


def silent(_: Progress) -> None:
    """Ignore progress."""


class ProgressBar:
    """A line on a terminal that is redrawn at a limited rate, first after two seconds."""

    def __init__(self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._clock = clock
        self._start = clock()
        self._last = float("-inf")
        self._shown = 0

    def __call__(self, progress: Progress) -> None:
        now = self._clock()
        is_end = progress.is_end
        if now - self._start < _SECONDS_BEFORE or (not is_end and now - self._last < _SECONDS_BETWEEN):
            return
        self._last = now
        line = f"{progress.stage:<10} {_bar(progress)}{progress.counts}"
        self._stream.write(f"\r{line:<{self._shown}}" + ("\n" if is_end else ""))
        self._stream.flush()
        self._shown = 0 if is_end else len(line)


def _bar(progress: Progress) -> str:
    if progress.total is None:
        return ""
    filled = _WIDTH * progress.done // max(progress.total, 1)
    return f"[{'#' * filled}{'.' * (_WIDTH - filled)}] "


class NotebookLine:
    """A line in a notebook that is redrawn like the bar of a terminal."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._start = clock()
        self._last = float("-inf")
        self._shown: Any = None

    def __call__(self, progress: Progress) -> None:
        now = self._clock()
        if now - self._start < _SECONDS_BEFORE or (not progress.is_end and now - self._last < _SECONDS_BETWEEN):
            return
        self._last = now
        from IPython.display import HTML, display

        range_of = "" if progress.total is None else f' max="{max(progress.total, 1)}" value="{progress.done}"'
        line = HTML(f"{html.escape(progress.stage)} <progress{range_of}></progress> {progress.counts}")
        if self._shown is None:
            self._shown = display(line, display_id=True)
        else:
            self._shown.update(line)


class LogLines:
    """A line in the log every ten seconds, for unattended work."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last = clock()

    def __call__(self, progress: Progress) -> None:
        now = self._clock()
        if now - self._last >= _SECONDS_BETWEEN_LINES:
            self._last = now
            of_all = "" if progress.total is None else f" of {progress.total}"
            LOG.info("%s: %d%s", progress.stage, progress.done, of_all)


def listener_or_bar(progress: Listener | None) -> Listener:
    """Return the listener, or the default: a bar on a terminal or in a notebook, log lines if enabled, otherwise none."""
    if progress is not None:
        return progress
    if sys.stderr is not None and sys.stderr.isatty():
        return ProgressBar()
    if _is_notebook():
        return NotebookLine()
    return LogLines() if LOG.isEnabledFor(logging.INFO) else silent


def _is_notebook() -> bool:
    """Whether this is a notebook kernel; IPython in a terminal has an error stream to write to."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return shell is not None and hasattr(shell, "kernel")


def watched(stage: str, steps: Iterable[Step], progress: Listener | None) -> Iterable[Step]:
    """Report steps as they are handed out; unchanged without a listener, as reporting needs the number of steps."""
    listener = listener_or_bar(progress)
    if listener is silent:
        return steps
    listed = list(steps)
    return _told(Stage(stage, len(listed), listener), listed)


def counted(stage: str, steps: Iterable[Step], listener: Listener) -> Iterator[Step]:
    """Report steps of unknown number as they are handed out."""
    counter = Stage(stage, None, listener)
    for step in steps:
        yield step
        counter.step()
    counter.finish()


def _told(stage: "Stage", steps: list[Step]) -> Iterator[Step]:
    for step in steps:
        yield step
        stage.step()


class Stage:
    """Counts the steps of one stage, from any thread."""

    def __init__(self, name: str, total: int | None, listener: Listener) -> None:
        self._name = name
        self._total = total
        self._done = 0
        self._listener = listener
        self._lock = threading.Lock()

    def step(self, count: int = 1) -> None:
        """Record completed steps."""
        with self._lock:
            self._done += count
            self._listener(Progress(self._name, self._done, self._total))

    def finish(self) -> None:
        """Finish a stage of unknown size, if it was started."""
        with self._lock:
            if self._total is None and self._done:
                self._total = self._done
                self._listener(Progress(self._name, self._done, self._done))
