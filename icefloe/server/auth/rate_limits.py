"""Decides how many requests a principal, and how many failed attempts an address, may send: buckets that fill up again."""

import threading
import time
from dataclasses import dataclass

from icefloe.bounded_cache import BoundedCache

_REMEMBERED_KEYS = 100_000


@dataclass(frozen=True, slots=True)
class RateLimit:
    """`burst` requests at once, and `per_second` in the long run."""

    per_second: float
    burst: float


class RateLimiter:
    """A bucket for each key, in this process; a key that was not seen for long starts with a full one."""

    def __init__(self, limit: RateLimit) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._buckets: BoundedCache[str, tuple[float, float]] = BoundedCache(_REMEMBERED_KEYS)

    def take(self, key: str) -> float:
        """Take one from the bucket: 0.0, or if it is empty, after how many seconds it is not."""
        with self._lock:
            now = time.monotonic()
            level = self._level(key, now)
            if level < 1:
                return (1 - level) / self._limit.per_second
            self._buckets.keep(key, (level - 1, now))
            return 0.0

    def wait(self, key: str) -> float:
        """After how many seconds something can be taken; 0.0: now. Nothing is taken."""
        with self._lock:
            return max(0.0, (1 - self._level(key, time.monotonic())) / self._limit.per_second)

    def _level(self, key: str, now: float) -> float:
        level, seen = self._buckets.find(key) or (self._limit.burst, now)
        return min(self._limit.burst, level + (now - seen) * self._limit.per_second)
