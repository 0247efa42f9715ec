"""One cache: values by key up to a total weight, of which those go first that were not used for longest."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class BoundedCache(Generic[Key, Value]):
    """The values used last, as many as fit into `capacity`, by bytes or whatever `weigh` tells; threads may share it.

    A value heavier than the capacity is not kept, unless `keeps_newest` says that the newest one always is.
    """

    def __init__(
        self, capacity: int, weigh: Callable[[Value], int] = lambda _: 1, *, keeps_newest: bool = False
    ) -> None:
        self.capacity = capacity
        self._weigh = weigh
        self._keeps_newest = keeps_newest
        self._lock = threading.Lock()
        self._entries: OrderedDict[Key, tuple[Value, int]] = OrderedDict()
        self._busy: dict[Key, threading.Lock] = {}
        self._weight = 0

    def find(self, key: Key) -> Value | None:
        """The value that is kept under the key, if any."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            self._entries.move_to_end(key)
            return entry[0]

    def keep(self, key: Key, value: Value, weight: int | None = None) -> None:
        """Keep a value under the key, in place of an older one."""
        weight = self._weigh(value) if weight is None else weight
        with self._lock:
            self._drop(key)
            if weight > self.capacity and not self._keeps_newest:
                return
            self._entries[key] = (value, weight)
            self._weight += weight
            while self._weight > self.capacity and len(self._entries) > 1:
                self._drop(next(iter(self._entries)))

    def load(self, key: Key, make: Callable[[], Value], weight: int | None = None) -> Value:
        """The value that is kept under the key, or what `make` gives; threads that ask at the same time make it once."""
        value = self.find(key)
        if value is not None:
            return value
        with self._lock:
            busy = self._busy.setdefault(key, threading.Lock())
        try:
            with busy:
                value = self.find(key)
                if value is None:
                    value = make()
                    self.keep(key, value, weight)
                return value
        finally:
            with self._lock:
                self._busy.pop(key, None)

    def pop(self, key: Key) -> Value | None:
        """Let go of the value of a key, and give it."""
        with self._lock:
            entry = self._entries.get(key)
            self._drop(key)
            return None if entry is None else entry[0]

    def clear(self) -> None:
        """Let go of everything."""
        with self._lock:
            self._entries.clear()
            self._weight = 0

    def _drop(self, key: Key) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._weight -= entry[1]

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: Key) -> bool:
        return key in self._entries

    @property
    def weight(self) -> int:
        """How much the values weigh together."""
        return self._weight
