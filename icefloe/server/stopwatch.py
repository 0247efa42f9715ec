"""How long the parts of a request took, for the log of slow ones."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Stopwatch:
    """Seconds by part; one request has one, and works on one thing at a time."""

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self.parts: dict[str, float] = {}

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Count what the block takes as a part."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self.add(name, time.perf_counter() - started)

    def add(self, name: str, seconds: float) -> None:
        """Count so much time as a part."""
        self.parts[name] = self.parts.get(name, 0.0) + seconds

    def seconds(self) -> float:
        """How long it is since the request came."""
        return time.perf_counter() - self._started

    def milliseconds(self) -> dict[str, float]:
        """The parts in milliseconds, for people."""
        return {name: round(seconds * 1000, 1) for name, seconds in self.parts.items()}
