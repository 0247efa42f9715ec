"""How far long work is, told to whoever asks: a callable, or a line on a terminal once the work has taken a while."""

import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TextIO

_SECONDS_BEFORE = 2.0
"""Most work is done by then, and a line that comes and goes would only disturb."""
_SECONDS_BETWEEN = 0.1
_WIDTH = 30


@dataclass(frozen=True, slots=True)
class Progress:
    """So much of a stage is done."""

    stage: str
    done: int
    total: int


Listener = Callable[[Progress], object]
"""Called from one thread at a time, for each step."""


def silent(_: Progress) -> None:
    """Tell nobody."""


class ProgressBar:
    """One line that is written over and over, not too often, and for the first time after two seconds of work."""

    def __init__(self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._clock = clock
        self._start = clock()
        self._last = float("-inf")
        self._shown = 0

    def __call__(self, progress: Progress) -> None:
        now = self._clock()
        is_end = progress.done >= progress.total
        if now - self._start < _SECONDS_BEFORE or (not is_end and now - self._last < _SECONDS_BETWEEN):
            return
        self._last = now
        filled = _WIDTH * progress.done // max(progress.total, 1)
        bar = "#" * filled + "." * (_WIDTH - filled)
        line = f"{progress.stage:<10} [{bar}] {progress.done}/{progress.total}"
        self._stream.write(f"\r{line:<{self._shown}}" + ("\n" if is_end else ""))
        self._stream.flush()
        self._shown = 0 if is_end else len(line)


def listener_or_bar(progress: Listener | None) -> Listener:
    """The listener; without one, a bar if a person looks at the error stream, and silence otherwise."""
    if progress is not None:
        return progress
    return ProgressBar() if sys.stderr is not None and sys.stderr.isatty() else silent


class Stage:
    """Counts the steps of one stage, from any thread."""

    def __init__(self, name: str, total: int, listener: Listener) -> None:
        self._name = name
        self._total = total
        self._done = 0
        self._listener = listener
        self._lock = threading.Lock()

    def step(self) -> None:
        """One step is done."""
        with self._lock:
            self._done += 1
            self._listener(Progress(self._name, self._done, self._total))
