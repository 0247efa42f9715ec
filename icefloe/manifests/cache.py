"""Decoded manifests kept in memory up to a bound: they never change, so a location is as good as their content."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable

from icefloe.errors import InvalidInputError
from icefloe.manifests.columns import ManifestColumns

DEFAULT_CACHE_BYTES = 256 << 20


class ManifestCache:
    """The manifests used last, as many as fit in `capacity` bytes; threads may share it.

    Keys must hold all that the columns depend on: location, wanted columns, and what was inherited.
    """

    def __init__(self, capacity: int = DEFAULT_CACHE_BYTES) -> None:
        if capacity < 0:
            raise InvalidInputError(f"a cache cannot hold {capacity} bytes")
        self.capacity = capacity
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, tuple[ManifestColumns, int]] = OrderedDict()
        self._busy: dict[Hashable, threading.Lock] = {}
        self._size = 0

    def find(self, key: Hashable) -> ManifestColumns | None:
        """What is kept under the key, if anything."""
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                return None
            self._kept.move_to_end(key)
            return found[0]

    def keep(self, key: Hashable, columns: ManifestColumns) -> None:
        """Keep the columns, and let go of what was not used for the longest time; too large ones are not kept."""
        size = columns.nbytes
        if size > self.capacity:
            return
        with self._lock:
            if key in self._kept:
                self._size -= self._kept.pop(key)[1]
            self._kept[key] = (columns, size)
            self._size += size
            while self._size > self.capacity:
                self._size -= self._kept.popitem(last=False)[1][1]

    def load(self, key: Hashable, make: Callable[[], ManifestColumns]) -> ManifestColumns:
        """What is kept under the key, or what `make` gives; threads that ask for one key at a time make it once."""
        if (found := self.find(key)) is not None:
            return found
        with self._lock:
            busy = self._busy.setdefault(key, threading.Lock())
        try:
            with busy:
                if (found := self.find(key)) is None:
                    found = make()
                    self.keep(key, found)
                return found
        finally:
            with self._lock:
                self._busy.pop(key, None)

    def clear(self) -> None:
        """Let go of everything."""
        with self._lock:
            self._kept.clear()
            self._size = 0

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def nbytes(self) -> int:
        """How much memory the kept columns take."""
        return self._size
