"""What is kept in memory for several tasks: loaded once though many threads ask, and the oldest forgotten beyond a limit."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any


class _Slot:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.is_loaded = False
        self.value: Any = None
        self.weight = 0


class SharedCache:
    """Values by key, up to a total weight in bytes; what was not used for longest goes first."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._weight = 0
        self._slots: OrderedDict[Hashable, _Slot] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, weight: int, load: Callable[[], Any]) -> Any:
        """The value of the key, loaded if it is not there; others that ask meanwhile wait for it."""
        with self._lock:
            slot = self._slots.setdefault(key, _Slot())
            self._slots.move_to_end(key)
        with slot.lock:
            if not slot.is_loaded:
                slot.value = load()
                slot.is_loaded = True
                with self._lock:
                    slot.weight = weight
                    if self._slots.get(key) is slot:
                        self._weight += weight
                        self._forget(key)
            return slot.value

    def _forget(self, newest: Hashable) -> None:
        if self._weight <= self._limit:
            return
        for key in list(self._slots):
            if self._weight <= self._limit:
                return
            if key != newest and self._slots[key].is_loaded:
                self._weight -= self._slots.pop(key).weight

    @property
    def weight(self) -> int:
        """How much is kept."""
        return self._weight
