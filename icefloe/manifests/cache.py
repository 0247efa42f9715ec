"""Decoded manifests and their lists, kept in memory up to a bound: neither changes, so a location is as good as content."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable

from icefloe.errors import InvalidInputError
from icefloe.manifests.columns import ManifestColumns
from icefloe.manifests.values import ManifestFile

DEFAULT_CACHE_BYTES = 256 << 20
_LISTS_KEPT = 64


class ManifestLists:
    """The manifest lists used last, by location: they never change. Threads may share it."""

    def __init__(self, capacity: int = _LISTS_KEPT) -> None:
        self._capacity = capacity
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, tuple[ManifestFile, ...]] = OrderedDict()

    def find(self, location: str) -> tuple[ManifestFile, ...] | None:
        """The manifests of the list at a location, if they are kept."""
        with self._lock:
            if location in self._kept:
                self._kept.move_to_end(location)
            return self._kept.get(location)

    def keep(self, location: str, manifests: tuple[ManifestFile, ...]) -> None:
        """Keep the manifests of a list."""
        with self._lock:
            self._kept[location] = manifests
            self._kept.move_to_end(location)
            while len(self._kept) > self._capacity:
                self._kept.popitem(last=False)

    def clear(self) -> None:
        """Let go of everything."""
        with self._lock:
            self._kept.clear()


class ManifestCache:
    """The manifests used last, as many as fit in `capacity` bytes, and some lists; threads may share it.

    Keys must hold all that the columns depend on: location, wanted columns, and what was inherited.
    """

    def __init__(self, capacity: int = DEFAULT_CACHE_BYTES) -> None:
        if capacity < 0:
            raise InvalidInputError(f"a cache cannot hold {capacity} bytes")
        self.capacity = capacity
        self.lists = ManifestLists()
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
        self.lists.clear()

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def nbytes(self) -> int:
        """How much memory the kept columns take."""
        return self._size
