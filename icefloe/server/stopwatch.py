"""How long the parts of a request took, for the log of slow ones."""

import time


class Stopwatch:
    """Seconds by part; one request has one, and works on one thing at a time."""

    __slots__ = ("_started", "parts")

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self.parts: dict[str, float] = {}

    def part(self, name: str) -> "_Part":
        """Count what the block takes as a part."""
        return _Part(self, name)

    def add(self, name: str, seconds: float) -> None:
        """Count so much time as a part."""
        self.parts[name] = self.parts.get(name, 0.0) + seconds

    def seconds(self) -> float:
        """How long it is since the request came."""
        return time.perf_counter() - self._started

    def milliseconds(self) -> dict[str, float]:
        """The parts in milliseconds, for people."""
        return {name: round(seconds * 1000, 1) for name, seconds in self.parts.items()}


class _Part:
    """A block whose time counts; a generator would cost more than what is measured."""

    __slots__ = ("_name", "_started", "_watch")

    def __init__(self, watch: Stopwatch, name: str) -> None:
        self._watch, self._name = watch, name

    def __enter__(self) -> None:
        self._started = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self._watch.add(self._name, time.perf_counter() - self._started)
