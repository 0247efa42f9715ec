"""The bodies of requests and answers about namespaces, and the lists of all kinds with their pages; both ways."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from icefloe.metadata.wire_codec import WireStruct, read_wire
from icefloe.rest.paths_codec import Levels
from icefloe.schema import JSON


@dataclass(frozen=True, slots=True)
class NamespaceProperties:
    """A namespace with its properties, as it is created or loaded."""

    namespace: Levels
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PropertiesChange:
    """Properties to be removed and set."""

    removals: tuple[str, ...] = ()
    updates: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PropertiesChanged:
    """What became of a change of properties."""

    updated: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Page:
    """Names in order, each with the levels of its namespace, and the token of the next page; None for the last."""

    names: tuple[Levels, ...]
    next_token: str | None = None


class _NamespaceWire(WireStruct):
    namespace: list[str]
    properties: dict[str, str] | None = None


class _ChangeWire(WireStruct):
    removals: list[str] | None = None
    updates: dict[str, str] | None = None


class _ChangedWire(WireStruct):
    updated: list[str]
    removed: list[str]
    missing: list[str] | None = None


class _NamespacesWire(WireStruct):
    namespaces: list[list[str]]
    next_page_token: str | None = None


class IdentifierWire(WireStruct):
    """The name of a table or view."""

    namespace: list[str]
    name: str


class _IdentifiersWire(WireStruct):
    identifiers: list[IdentifierWire]
    next_page_token: str | None = None


def encode_namespace_properties(namespace: NamespaceProperties) -> bytes:
    """The body of a request to create a namespace, and of the answer to that and to loading one."""
    return msgspec.json.encode(
        {"namespace": list(namespace.namespace), "properties": dict(namespace.properties)},
    )


def decode_namespace_properties(body: bytes) -> NamespaceProperties:
    """What such a body says."""
    wire = read_wire(body, _NamespaceWire, "the namespace")
    return NamespaceProperties(tuple(wire.namespace), wire.properties or {})


def encode_properties_change(change: PropertiesChange) -> bytes:
    """The body of a request to change properties."""
    return msgspec.json.encode({"removals": list(change.removals), "updates": dict(change.updates)})


def decode_properties_change(body: bytes) -> PropertiesChange:
    """What such a body says."""
    wire = read_wire(body, _ChangeWire, "the change of properties")
    return PropertiesChange(tuple(wire.removals or ()), wire.updates or {})


def encode_properties_changed(changed: PropertiesChanged) -> bytes:
    """The body of the answer to a change of properties."""
    return msgspec.json.encode(
        {"updated": list(changed.updated), "removed": list(changed.removed), "missing": list(changed.missing)}
    )


def decode_properties_changed(body: bytes) -> PropertiesChanged:
    """What such a body says."""
    wire = read_wire(body, _ChangedWire, "the answer to a change of properties")
    return PropertiesChanged(tuple(wire.updated), tuple(wire.removed), tuple(wire.missing or ()))


def encode_namespaces(page: Page) -> bytes:
    """A page of a list of namespaces."""
    return _page("namespaces", [list(name) for name in page.names], page.next_token)


def decode_namespaces(body: bytes) -> Page:
    """What such a page says."""
    wire = read_wire(body, _NamespacesWire, "the list of namespaces")
    return Page(tuple(map(tuple, wire.namespaces)), wire.next_page_token or None)


def encode_identifiers(page: Page) -> bytes:
    """A page of a list of tables or views."""
    return _page("identifiers", [identifier_to_json(name) for name in page.names], page.next_token)


def decode_identifiers(body: bytes) -> Page:
    """What such a page says."""
    wire = read_wire(body, _IdentifiersWire, "the list of names")
    return Page(tuple(map(identifier_from_wire, wire.identifiers)), wire.next_page_token or None)


def identifier_to_json(name: Sequence[str]) -> JSON:
    """The name of a table or view as JSON."""
    *namespace, own = name
    return {"namespace": namespace, "name": own}


def identifier_from_wire(wire: IdentifierWire) -> Levels:
    """The name of a table or view."""
    return (*wire.namespace, wire.name)


def _page(key: str, names: Iterable[object], next_token: str | None) -> bytes:
    return msgspec.json.encode({key: names, "next-page-token": next_token})
