"""Decides how a catalog lives in the memory of one process: for tests and notebooks."""

import threading
import uuid
from collections.abc import Mapping, Sequence
from weakref import WeakValueDictionary

from icefloe.catalog.identifiers import Identifier, show
from icefloe.catalog.pointers import TABLE, VIEW, Pointer, PointerCatalog, Pointers, PointerSwap
from icefloe.catalog.seals import Seal
from icefloe.errors import InvalidInputError, TableAlreadyExistsError


class _Content:
    """The names of one catalog. Pickles of it have the same content again, but only in the process that it lives in."""

    def __init__(self) -> None:
        self.token = uuid.uuid4().hex
        self.lock = threading.RLock()
        self.namespaces: dict[Identifier, dict[str, str]] = {}
        self.pointers: dict[Identifier, tuple[str, str]] = {}
        """What each name stands for, and its metadata location."""
        self.seals: dict[Identifier, Seal] = {}
        """What is kept of the metadata files of encrypted tables."""


_ALIVE: WeakValueDictionary[str, _Content] = WeakValueDictionary()


class MemoryPointers(Pointers):
    """Pointers in a dictionary."""

    def __init__(self, catalog: str, noun: str, content: _Content) -> None:
        super().__init__(catalog, noun)
        self._content = content

    def find(self, identifier: Identifier) -> str | None:
        noun, location = self._content.pointers.get(identifier, (None, None))
        return location if noun == self._noun else None

    def located(self, identifier: Identifier) -> Pointer | None:
        with self._content.lock:
            location = self.find(identifier)
            return None if location is None else Pointer(location, self._content.seals.get(identifier))

    def insert(self, identifier: Identifier, location: str, seal: Seal | None = None) -> bool:
        pointer = (self._noun, location)
        with self._content.lock:
            is_done = self._content.pointers.setdefault(identifier, pointer) == pointer
            if is_done:
                self._keep(identifier, seal)
            return is_done

    def swap(self, identifier: Identifier, expected: str, location: str, seal: Seal | None = None) -> bool:
        with self._content.lock:
            if self.find(identifier) != expected:
                return False
            self._content.pointers[identifier] = (self._noun, location)
            self._keep(identifier, seal)
            return True

    def _keep(self, identifier: Identifier, seal: Seal | None) -> None:
        if seal is None:
            self._content.seals.pop(identifier, None)
        else:
            self._content.seals[identifier] = seal

    def remove(self, identifier: Identifier, expected: str | None = None) -> bool:
        with self._content.lock:
            location = self.find(identifier)
            if location is None or expected not in (None, location):
                return False
            del self._content.pointers[identifier]
            self._keep(identifier, None)
            return True

    def move(self, source: Identifier, target: Identifier) -> bool:
        with self._content.lock:
            if self.find(source) is None:
                return False
            if target in self._content.pointers:
                raise TableAlreadyExistsError(f"{show(target)} already exists in catalog {self._catalog!r}")
            self._content.pointers[target] = self._content.pointers.pop(source)
            self._keep(target, self._content.seals.pop(source, None))
            return True

    def names(self, namespace: Identifier) -> set[Identifier]:
        with self._content.lock:
            pointers = self._content.pointers.items()
            return {name for name, (noun, _) in pointers if noun == self._noun and name[:-1] == namespace}

    def swap_all(self, swaps: Sequence[PointerSwap]) -> bool:
        with self._content.lock:
            if any(self._occupant(each.identifier) != each.expected for each in swaps):
                return False
            self._content.pointers |= {each.identifier: (self._noun, each.location) for each in swaps}
            for each in swaps:
                self._keep(each.identifier, each.seal)
            return True

    def _occupant(self, identifier: Identifier) -> str | None:
        """What has the name, a table or a view."""
        return self._content.pointers.get(identifier, (None, None))[1]


class MemoryCatalog(PointerCatalog):
    """A catalog that ends with its process; files go into memory too, unless a warehouse is given."""

    def __init__(self, name: str, properties: Mapping[str, str], content: _Content | None = None) -> None:
        self._content = content or _Content()
        _ALIVE[self._content.token] = self._content
        super().__init__(name, {"warehouse": f"memory://{self._content.token}/warehouse", **properties})
        self._table_pointers = MemoryPointers(name, TABLE, self._content)
        self._view_pointers = MemoryPointers(name, VIEW, self._content)

    def _check_name(self, identifier: Identifier) -> None:
        """Any name will do."""

    def _namespace_exists(self, namespace: Identifier) -> bool:
        with self._content.lock:
            return any(_is_in(occupied, namespace) for occupied in self._occupied())

    def _occupied(self) -> set[Identifier]:
        """Every namespace that was created or holds something."""
        return {*self._content.namespaces, *(name[:-1] for name in self._content.pointers)}

    def _create_namespace(self, namespace: Identifier, properties: dict[str, str]) -> None:
        with self._content.lock:
            self._content.namespaces[namespace] = dict(properties)

    def _drop_namespace(self, namespace: Identifier) -> None:
        with self._content.lock:
            self._content.namespaces.pop(namespace, None)

    def _child_namespaces(self, parent: Identifier) -> set[Identifier]:
        depth = len(parent) + 1
        with self._content.lock:
            return {name[:depth] for name in self._occupied() if len(name) >= depth and _is_in(name, parent)}

    def _load_namespace(self, namespace: Identifier) -> dict[str, str]:
        with self._content.lock:
            return dict(self._content.namespaces.get(namespace, {}))

    def _change_namespace(
        self, namespace: Identifier, removals: frozenset[str], updates: dict[str, str]
    ) -> dict[str, str]:
        with self._content.lock:
            before = self._load_namespace(namespace)
            rest = {key: value for key, value in before.items() if key not in removals}
            self._content.namespaces[namespace] = {**rest, **updates}
            return before

    def __reduce__(self) -> tuple[object, tuple[str, dict[str, str], str]]:
        return _revived, (self._name, self._properties, self._content.token)


def _is_in(inner: Identifier, outer: Identifier) -> bool:
    return inner[: len(outer)] == outer


def _revived(name: str, properties: dict[str, str], token: str) -> MemoryCatalog:
    content = _ALIVE.get(token)
    if content is None:
        raise InvalidInputError(
            f"catalog {name!r} is in the memory of another process or was closed; use type='sql' to share a catalog"
        )
    return MemoryCatalog(name, properties, content)
