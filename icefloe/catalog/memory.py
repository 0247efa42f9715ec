"""Decides how a catalog lives in the memory of one process: for tests and notebooks."""

import threading
import uuid
from collections.abc import Mapping
from weakref import WeakValueDictionary

from icefloe.catalog.identifiers import Identifier, show
from icefloe.catalog.pointers import Kind, PointerCatalog
from icefloe.errors import InvalidInputError, TableAlreadyExistsError


class _Content:
    """The names of one catalog. Pickles of it find the same content again, but only in the process that it lives in."""

    def __init__(self) -> None:
        self.token = uuid.uuid4().hex
        self.lock = threading.RLock()
        self.namespaces: dict[Identifier, dict[str, str]] = {}
        self.pointers: dict[Identifier, tuple[Kind, str]] = {}


_ALIVE: WeakValueDictionary[str, _Content] = WeakValueDictionary()


class MemoryCatalog(PointerCatalog):
    """A catalog that is gone with its process; files go into memory too, unless a warehouse is given."""

    def __init__(self, name: str, properties: Mapping[str, str]) -> None:
        self._content = _Content()
        _ALIVE[self._content.token] = self._content
        super().__init__(name, {"warehouse": f"memory://{self._content.token}/warehouse", **properties})

    def _check_name(self, identifier: Identifier) -> None:
        """Any name will do."""

    def _namespace_exists(self, namespace: Identifier) -> bool:
        with self._content.lock:
            return any(_is_in(each, namespace) for each in self._occupied())

    def _occupied(self) -> set[Identifier]:
        """Every namespace that was created or holds something."""
        return {*self._content.namespaces, *(each[:-1] for each in self._content.pointers)}

    def _create_namespace(self, namespace: Identifier, properties: dict[str, str]) -> None:
        with self._content.lock:
            self._content.namespaces[namespace] = dict(properties)

    def _drop_namespace(self, namespace: Identifier) -> None:
        with self._content.lock:
            self._content.namespaces.pop(namespace, None)

    def _child_namespaces(self, parent: Identifier) -> set[Identifier]:
        depth = len(parent) + 1
        with self._content.lock:
            return {each[:depth] for each in self._occupied() if len(each) >= depth and _is_in(each, parent)}

    def _load_namespace(self, namespace: Identifier) -> dict[str, str]:
        with self._content.lock:
            return dict(self._content.namespaces.get(namespace, {}))

    def _change_namespace(
        self, namespace: Identifier, removals: frozenset[str], updates: dict[str, str]
    ) -> dict[str, str]:
        with self._content.lock:
            before = self._load_namespace(namespace)
            kept = {key: value for key, value in before.items() if key not in removals}
            self._content.namespaces[namespace] = {**kept, **updates}
            return before

    def _pointer(self, kind: Kind, identifier: Identifier) -> str | None:
        with self._content.lock:
            found = self._content.pointers.get(identifier)
        return found[1] if found is not None and found[0] is kind else None

    def _insert_pointer(self, kind: Kind, identifier: Identifier, location: str) -> bool:
        with self._content.lock:
            return self._content.pointers.setdefault(identifier, (kind, location)) == (kind, location)

    def _swap_pointer(self, kind: Kind, identifier: Identifier, expected: str, location: str) -> bool:
        with self._content.lock:
            if self._content.pointers.get(identifier) != (kind, expected):
                return False
            self._content.pointers[identifier] = (kind, location)
            return True

    def _remove_pointer(self, kind: Kind, identifier: Identifier, expected: str | None) -> bool:
        with self._content.lock:
            found = self._pointer(kind, identifier)
            if found is None or expected not in (None, found):
                return False
            del self._content.pointers[identifier]
            return True

    def _move_pointer(self, kind: Kind, source: Identifier, target: Identifier) -> bool:
        with self._content.lock:
            if self._pointer(kind, source) is None:
                return False
            if target in self._content.pointers:
                raise TableAlreadyExistsError(f"{show(target)} already exists in catalog {self._name!r}")
            self._content.pointers[target] = self._content.pointers.pop(source)
            return True

    def _names(self, kind: Kind, namespace: Identifier) -> set[Identifier]:
        with self._content.lock:
            return {
                each for each, (found, _) in self._content.pointers.items() if found is kind and each[:-1] == namespace
            }

    def __reduce__(self) -> tuple[object, tuple[str, dict[str, str], str]]:
        return _revived, (self._name, self._properties, self._content.token)


def _is_in(inner: Identifier, outer: Identifier) -> bool:
    return inner[: len(outer)] == outer


def _revived(name: str, properties: dict[str, str], token: str) -> MemoryCatalog:
    content = _ALIVE.get(token)
    if content is None:
        raise InvalidInputError(
            f"catalog {name!r} lives in the memory of another process, or is gone; use type='sql' to share one"
        )
    catalog = MemoryCatalog(name, properties)
    catalog._content = content
    return catalog
