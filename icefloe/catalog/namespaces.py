"""Decides what a user can ask a catalog about namespaces, and what their properties may be."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass

from icefloe.catalog.identifiers import Identifier, Name, parse_namespace, show
from icefloe.errors import (
    InvalidInputError,
    InvalidPropertyError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
)

EXISTS = "exists"
"""The property by which SQL catalogs note that a namespace is there; never shown, never set by users."""


@dataclass(frozen=True, slots=True)
class PropertiesUpdateSummary:
    """What became of a change of properties."""

    removed: tuple[str, ...]
    updated: tuple[str, ...]
    missing: tuple[str, ...]
    """Keys that were to be removed and were not there."""


def checked_namespace_properties(properties: Mapping[str, object] | None) -> dict[str, str]:
    """Properties as texts."""
    given: object = properties
    if given is not None and not isinstance(given, Mapping):
        raise InvalidPropertyError(f"properties are a mapping from texts to texts, not {type(given).__name__}")
    checked = {}
    for key, value in (given or {}).items():
        if not isinstance(key, str) or not key or not isinstance(value, str | int | float):
            raise InvalidPropertyError(f"property {key!r} is {value!r:.100}; a text, number or truth value is expected")
        if key == EXISTS:
            raise InvalidPropertyError(f"property {EXISTS!r} is reserved: it says that a namespace is there")
        checked[key] = str(value).lower() if isinstance(value, bool) else str(value)
    return checked


def summarize_change(
    before: Mapping[str, str], removals: Collection[str], updates: Mapping[str, str]
) -> PropertiesUpdateSummary:
    """What a change does to these properties."""
    return PropertiesUpdateSummary(
        tuple(sorted(key for key in removals if key in before)),
        tuple(sorted(updates)),
        tuple(sorted(key for key in removals if key not in before)),
    )


class NamespaceOperations(ABC):
    """What a user can ask a catalog about namespaces."""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def name(self) -> str:
        """The catalog's own name."""
        return self._name

    def create_namespace(self, namespace: Name, properties: Mapping[str, object] | None = None) -> None:
        """Create a namespace; the ones around it need not exist."""
        wanted = parse_namespace(namespace)
        self._check_name(wanted)
        settings = checked_namespace_properties(properties)
        if self._namespace_exists(wanted):
            raise NamespaceAlreadyExistsError(f"namespace {show(wanted)} already exists in catalog {self._name!r}")
        self._create_namespace(wanted, settings)

    def create_namespace_if_not_exists(self, namespace: Name, properties: Mapping[str, object] | None = None) -> None:
        """Create a namespace unless it is there."""
        with suppress(NamespaceAlreadyExistsError):
            self.create_namespace(namespace, properties)

    def drop_namespace(self, namespace: Name) -> None:
        """Drop a namespace that holds nothing."""
        wanted = self._existing_namespace(namespace)
        for what, found in (
            ("namespaces", self._child_namespaces(wanted)),
            ("tables", self._table_names(wanted)),
            ("views", self._view_names(wanted)),
        ):
            if found:
                names = ", ".join(show(each) for each in sorted(found)[:3]) + (", ..." if len(found) > 3 else "")
                raise NamespaceNotEmptyError(f"namespace {show(wanted)} still holds {len(found)} {what}: {names}")
        self._drop_namespace(wanted)

    def list_namespaces(self, namespace: Name = ()) -> list[Identifier]:
        """The namespaces directly in another, or at the top, in order."""
        parent = self._existing_namespace(namespace) if namespace else ()
        return sorted(self._child_namespaces(parent))

    def namespace_exists(self, namespace: Name) -> bool:
        """Whether the namespace is there, by itself or because something is in it."""
        return self._namespace_exists(parse_namespace(namespace))

    def load_namespace_properties(self, namespace: Name) -> dict[str, str]:
        """The properties of a namespace."""
        return self._load_namespace(self._existing_namespace(namespace))

    def update_namespace_properties(
        self, namespace: Name, removals: Collection[str] | None = None, updates: Mapping[str, object] | None = None
    ) -> PropertiesUpdateSummary:
        """Remove and set properties of a namespace, in one step."""
        wanted = self._existing_namespace(namespace)
        settings = checked_namespace_properties(updates)
        if isinstance(removals, str):
            raise InvalidInputError(f"removals are a set of keys, not the text {removals!r}")
        gone = frozenset(removals or ())
        if both := sorted(gone & settings.keys()):
            raise InvalidInputError(f"property {both[0]!r} is to be both removed and set; choose one")
        before = self._change_namespace(wanted, gone, settings)
        return summarize_change(before, gone, settings)

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
    ) -> dict[str, str]:
        """Change the properties, and say what they were before."""

    @abstractmethod
    def _table_names(self, namespace: Identifier) -> set[Identifier]: ...

    @abstractmethod
    def _view_names(self, namespace: Identifier) -> set[Identifier]: ...

    def _existing_namespace(self, namespace: Name) -> Identifier:
        wanted = parse_namespace(namespace)
        self._require_namespace(wanted)
        return wanted

    def _require_namespace(self, namespace: Identifier) -> None:
        if not self._namespace_exists(namespace):
            raise NoSuchNamespaceError(
                f"no namespace {show(namespace)} in catalog {self._name!r}; create_namespace makes one"
            )
