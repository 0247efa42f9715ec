"""Decides what a user can ask a catalog about namespaces, and what their properties may be."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass

from icefloe import errors
from icefloe.catalog.definitions import property_texts
from icefloe.catalog.identifiers import Identifier, Name, parse_namespace, show

EXISTS = "exists"
"""The property by which SQL catalogs record that a namespace exists; never shown, never set by users."""


@dataclass(frozen=True, slots=True)
class PropertiesUpdateSummary:
    """What became of a change of properties."""

    removed: tuple[str, ...]
    updated: tuple[str, ...]
    missing: tuple[str, ...]
    """Keys that were to be removed and did not exist."""


class NamespaceOperations(ABC):
    """What a user can ask a catalog about namespaces."""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def name(self) -> str:
        """The catalog's own name."""
        return self._name

    def create_namespace(self, namespace: Name, properties: Mapping[str, object] | None = None) -> None:
        """Create a namespace; those around it need not exist."""
        parsed = parse_namespace(namespace)
        self._check_name(parsed)
        texts = namespace_properties(properties)
        if self._namespace_exists(parsed):
            raise self._namespace_taken(parsed)
        self._create_namespace(parsed, texts)

    def create_namespace_if_not_exists(self, namespace: Name, properties: Mapping[str, object] | None = None) -> None:
        """Create a namespace unless it exists."""
        with suppress(errors.NamespaceAlreadyExistsError):
            self.create_namespace(namespace, properties)

    def drop_namespace(self, namespace: Name) -> None:
        """Drop an empty namespace."""
        parsed = self._existing_namespace(namespace)
        self._check_empty(parsed)
        self._drop_namespace(parsed)

    def list_namespaces(self, namespace: Name = ()) -> list[Identifier]:
        """The namespaces directly in another, or at the top, in order."""
        parent = self._existing_namespace(namespace) if namespace else ()
        return sorted(self._child_namespaces(parent))

    def namespace_exists(self, namespace: Name) -> bool:
        """Whether the namespace exists, by itself or because something is in it."""
        return self._namespace_exists(parse_namespace(namespace))

    def load_namespace_properties(self, namespace: Name) -> dict[str, str]:
        """The properties of a namespace."""
        return self._load_namespace(self._existing_namespace(namespace))

    def update_namespace_properties(
        self, namespace: Name, removals: Collection[str] | None = None, updates: Mapping[str, object] | None = None
    ) -> PropertiesUpdateSummary:
        """Remove and set properties of a namespace, in one step."""
        parsed = self._existing_namespace(namespace)
        texts = namespace_properties(updates)
        if isinstance(removals, str):
            raise errors.InvalidInputError(f"removals must be a set of keys, not the string {removals!r}")
        removed = frozenset(removals or ())
        if both := sorted(removed & texts.keys()):
            raise errors.InvalidInputError(f"property {both[0]!r} cannot be both removed and set")
        before = frozenset(self._change_namespace(parsed, removed, texts))
        return PropertiesUpdateSummary(
            tuple(sorted(removed & before)), tuple(sorted(texts)), tuple(sorted(removed - before))
        )

    @abstractmethod
    def _check_name(self, identifier: Identifier) -> None:
        """Fail if the catalog cannot keep the name."""

    @abstractmethod
    def _namespace_exists(self, namespace: Identifier) -> bool: ...

    @abstractmethod
    def _create_namespace(self, namespace: Identifier, properties: dict[str, str]) -> None: ...

    @abstractmethod
    def _drop_namespace(self, namespace: Identifier) -> None: ...

    @abstractmethod
    def _child_namespaces(self, parent: Identifier) -> set[Identifier]: ...

    @abstractmethod
    def _load_namespace(self, namespace: Identifier) -> dict[str, str]: ...

    @abstractmethod
    def _change_namespace(
        self, namespace: Identifier, removals: frozenset[str], updates: dict[str, str]
    ) -> Collection[str]:
        """Change the properties, and return the keys of those to be removed, and maybe of others, that were there before."""

    @abstractmethod
    def _table_names(self, namespace: Identifier) -> set[Identifier]: ...

    @abstractmethod
    def _view_names(self, namespace: Identifier) -> set[Identifier]: ...

    def _existing_namespace(self, namespace: Name) -> Identifier:
        parsed = parse_namespace(namespace)
        self._require_namespace(parsed)
        return parsed

    def _require_namespace(self, namespace: Identifier) -> None:
        if not self._namespace_exists(namespace):
            raise self._no_namespace(namespace)

    def _check_empty(self, namespace: Identifier) -> None:
        """Fail if the namespace holds something."""
        for noun, names in (
            ("namespaces", self._child_namespaces(namespace)),
            ("tables", self._table_names(namespace)),
            ("views", self._view_names(namespace)),
        ):
            if names:
                shown = ", ".join(show(name) for name in sorted(names)[:3]) + (", ..." if len(names) > 3 else "")
                raise errors.NamespaceNotEmptyError(
                    f"namespace {show(namespace)} is not empty; it has {len(names)} {noun}: {shown}"
                )

    def _no_namespace(self, namespace: Identifier) -> errors.NoSuchNamespaceError:
        return errors.NoSuchNamespaceError(
            f"no namespace {show(namespace)} in catalog {self._name!r}; create_namespace makes one"
        )

    def _namespace_taken(self, namespace: Identifier) -> errors.NamespaceAlreadyExistsError:
        return errors.NamespaceAlreadyExistsError(
            f"namespace {show(namespace)} already exists in catalog {self._name!r}"
        )


def namespace_properties(properties: Mapping[str, object] | None) -> dict[str, str]:
    """The properties of a namespace as texts."""
    texts = property_texts(properties)
    if EXISTS in texts:
        raise errors.InvalidPropertyError(f"property {EXISTS!r} is reserved: it marks a namespace as existing")
    return texts
