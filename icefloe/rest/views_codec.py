"""The bodies of requests and answers about views: create, load, replace; both ways."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from icefloe.metadata import ViewMetadata, ViewVersion, requirements as req, updates as up
from icefloe.metadata.update_codec import (
    requirement_to_json,
    update_to_json,
    view_requirement_from_json,
    view_update_from_json,
)
from icefloe.metadata.view_codec import view_from_json, view_to_json, view_version_from_json, view_version_to_json
from icefloe.metadata.wire_codec import WireStruct, named, present, read_wire
from icefloe.rest.namespaces_codec import IdentifierWire, identifier_from_wire, identifier_to_json
from icefloe.rest.paths_codec import Levels
from icefloe.rest.tables_codec import LabelsWire, Surplus, join_loaded, labels_from_wire
from icefloe.schema import JSON, Schema, schema_from_json, schema_to_json


@dataclass(frozen=True, slots=True)
class NewView:
    """A view that is to be created; the schema of its version is the one that comes along, whatever its id."""

    name: str
    schema: Schema
    version: ViewVersion
    location: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LoadedView:
    """A view as a server gives it."""

    metadata: ViewMetadata
    metadata_location: str
    surplus: Surplus = field(default_factory=Surplus)


@dataclass(frozen=True, slots=True)
class ViewCommit:
    """Updates of a view under requirements."""

    updates: tuple[up.ViewUpdate, ...]
    requirements: tuple[req.ViewRequirement, ...] = ()
    identifier: Levels | None = None


class _CreateWire(WireStruct):
    name: str
    schema: JSON
    view_version: JSON
    properties: dict[str, str] | None = None
    location: str | None = None


class _LoadWire(WireStruct):
    metadata: msgspec.Raw
    metadata_location: str
    config: dict[str, str] | None = None
    labels: LabelsWire | None = None


class _CommitWire(WireStruct):
    updates: list[JSON]
    requirements: list[JSON] | None = None
    identifier: IdentifierWire | None = None


def encode_new_view(view: NewView) -> bytes:
    """The body of a request to create a view."""
    return msgspec.json.encode(
        {
            "name": view.name,
            **present("location", view.location),
            "view-version": view_version_to_json(view.version),
            "schema": schema_to_json(view.schema),
            "properties": dict(view.properties),
        }
    )


def decode_new_view(body: bytes) -> NewView:
    """What such a body says."""
    wire = read_wire(body, _CreateWire, "the new view")
    schema = named("`schema`", schema_from_json, wire.schema)
    version = view_version_from_json(wire.view_version)
    return NewView(wire.name, schema, version, wire.location, wire.properties or {})


def encode_loaded_view(view: LoadedView) -> bytes:
    """The body of an answer with a view."""
    return join_loaded(view_to_json(view.metadata), view.metadata_location, view.surplus)


def decode_loaded_view(body: bytes) -> LoadedView:
    """What such a body says."""
    wire = read_wire(body, _LoadWire, "the answer with a view")
    surplus = Surplus(wire.config or {}, labels=labels_from_wire(wire.labels))
    return LoadedView(view_from_json(bytes(wire.metadata)), wire.metadata_location, surplus)


def encode_view_commit(commit: ViewCommit) -> bytes:
    """The body of a commit to a view."""
    identifier = commit.identifier
    return msgspec.json.encode(
        {
            **present("identifier", None if identifier is None else identifier_to_json(identifier)),
            "requirements": [requirement_to_json(requirement) for requirement in commit.requirements],
            "updates": [update_to_json(update) for update in commit.updates],
        }
    )


def decode_view_commit(body: bytes) -> ViewCommit:
    """What such a body says; an unknown update or requirement is an error."""
    wire = read_wire(body, _CommitWire, "the commit")
    return ViewCommit(
        tuple(map(view_update_from_json, wire.updates)),
        tuple(map(view_requirement_from_json, wire.requirements or ())),
        None if wire.identifier is None else identifier_from_wire(wire.identifier),
    )
