"""The bodies of requests and answers about tables: create, load, commit, register, rename; both ways."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from icefloe.metadata import TableMetadata, requirements as req, updates as up
from icefloe.metadata.codec import metadata_from_json, metadata_to_json
from icefloe.metadata.update_codec import (
    requirement_to_json,
    table_requirement_from_json,
    table_update_from_json,
    update_to_json,
)
from icefloe.metadata.wire_codec import Int, WireStruct, named, present, read_wire
from icefloe.partitioning import PartitionSpec, SortOrder, order_from_json, order_to_json, spec_from_json, spec_to_json
from icefloe.rest.namespaces_codec import IdentifierWire, identifier_from_wire, identifier_to_json
from icefloe.rest.paths_codec import Levels
from icefloe.schema import JSON, Schema, schema_from_json, schema_to_json
from icefloe.storage import StorageCredential
from icefloe.versions import ALL_VERSIONS

ALL_SNAPSHOTS, REFERENCED_SNAPSHOTS = "all", "refs"
"""What a client may ask for in the parameter `snapshots`."""

_NEWEST = ALL_VERSIONS[-1]


@dataclass(frozen=True, slots=True)
class NewTable:
    """A table that is to be created; the ids of its schema are the client's, and the server assigns fresh ones."""

    name: str
    schema: Schema
    location: str | None = None
    spec: PartitionSpec | None = None
    order: SortOrder | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    is_staged: bool = False
    """Whether nothing is to be created yet: a commit will do that."""


@dataclass(frozen=True, slots=True)
class RemoteSigning:
    """What a client sends along with each request to sign."""

    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    headers: Mapping[str, Sequence[str]] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Labels:
    """Labels of a table or view, and of its columns by id; they are no part of its metadata."""

    of_object: Mapping[str, str] = field(default_factory=dict)
    of_fields: Mapping[int, Mapping[str, str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Surplus:
    """What comes with a table or view besides its metadata."""

    config: Mapping[str, str] = field(default_factory=dict, repr=False)
    credentials: tuple[StorageCredential, ...] = ()
    signing: RemoteSigning | None = None
    labels: Labels | None = None


@dataclass(frozen=True, slots=True)
class LoadedTable:
    """A table as a server gives it; without a location of its metadata if it is staged."""

    metadata: TableMetadata
    metadata_location: str | None = None
    surplus: Surplus = field(default_factory=Surplus)


@dataclass(frozen=True, slots=True)
class TableCommit:
    """Updates of a table under requirements; it names the table if it is one commit of several."""

    updates: tuple[up.TableUpdate, ...]
    requirements: tuple[req.TableRequirement, ...] = ()
    identifier: Levels | None = None


@dataclass(frozen=True, slots=True)
class Registration:
    """A name for a table or view that exists as a metadata file."""

    name: str
    metadata_location: str
    overwrite: bool = False


@dataclass(frozen=True, slots=True)
class Rename:
    """Another name for a table or view."""

    source: Levels
    destination: Levels


class _CreateWire(WireStruct):
    name: str
    schema: JSON
    location: str | None = None
    partition_spec: JSON | None = None
    write_order: JSON | None = None
    stage_create: bool | None = None
    properties: dict[str, str] | None = None


class CredentialWire(WireStruct):
    """Settings of a store for a prefix."""

    prefix: str
    config: dict[str, str]


class _SigningWire(WireStruct):
    properties: dict[str, str] | None = None
    headers: dict[str, list[str]] | None = None


class _FieldLabelsWire(WireStruct):
    field_id: Int
    labels: dict[str, str]


class LabelsWire(WireStruct):
    """Labels of a table or view."""

    object_labels: dict[str, str] | None = None
    fields: list[_FieldLabelsWire] | None = None


class _LoadWire(WireStruct):
    metadata: msgspec.Raw
    metadata_location: str | None = None
    config: dict[str, str] | None = None
    storage_credentials: list[CredentialWire] | None = None
    remote_signing_config: _SigningWire | None = None
    labels: LabelsWire | None = None


class _CredentialsWire(WireStruct):
    storage_credentials: list[CredentialWire]


class _CommitWire(WireStruct):
    updates: list[JSON]
    requirements: list[JSON] | None = None
    identifier: IdentifierWire | None = None


class _TransactionWire(WireStruct):
    table_changes: list[_CommitWire]


class _RegisterWire(WireStruct):
    name: str
    metadata_location: str
    overwrite: bool | None = None


class _NameWire(WireStruct):
    name: str


class _RenameWire(WireStruct):
    source: IdentifierWire
    destination: IdentifierWire


def encode_new_table(table: NewTable) -> bytes:
    """The body of a request to create a table."""
    return msgspec.json.encode(
        {
            "name": table.name,
            **present("location", table.location),
            "schema": schema_to_json(table.schema),
            **present("partition-spec", None if table.spec is None else spec_to_json(table.spec, _NEWEST)),
            **present("write-order", None if table.order is None else order_to_json(table.order, _NEWEST)),
            # Java's server insists on it.
            "stage-create": table.is_staged,
            "properties": dict(table.properties),
        }
    )


def decode_new_table(body: bytes) -> NewTable:
    """What such a body says."""
    wire = read_wire(body, _CreateWire, "the new table")
    spec, order = wire.partition_spec, wire.write_order
    return NewTable(
        wire.name,
        named("`schema`", schema_from_json, wire.schema),
        wire.location,
        None if spec is None else named("`partition-spec`", lambda each: spec_from_json(each, default_id=0), spec),
        None if order is None else named("`write-order`", lambda each: order_from_json(each, default_id=1), order),
        wire.properties or {},
        bool(wire.stage_create),
    )


def encode_loaded_table(table: LoadedTable) -> bytes:
    """The body of an answer with a table."""
    return join_loaded(metadata_to_json(table.metadata), table.metadata_location, table.surplus)


def join_loaded(metadata: bytes, metadata_location: str | None, surplus: Surplus) -> bytes:
    """The same from metadata that is JSON already, of a table or of a view."""
    return msgspec.json.encode(
        {
            **present("metadata-location", metadata_location),
            "metadata": msgspec.Raw(metadata),
            "config": dict(surplus.config),
            **present("storage-credentials", credentials_to_json(surplus.credentials) or None),
            **present("remote-signing-config", _signing_to_json(surplus.signing)),
            **present("labels", labels_to_json(surplus.labels)),
        }
    )


def decode_loaded_table(body: bytes) -> LoadedTable:
    """What an answer with a table says; that of a commit and of unregistering has fewer parts."""
    wire = read_wire(body, _LoadWire, "the answer with a table")
    surplus = Surplus(
        wire.config or {},
        credentials_from_wires(wire.storage_credentials or ()),
        _signing(wire.remote_signing_config),
        labels_from_wire(wire.labels),
    )
    return LoadedTable(metadata_from_json(bytes(wire.metadata)), wire.metadata_location, surplus)


def encode_committed(metadata: bytes, metadata_location: str) -> bytes:
    """The body of the answer to a commit or to unregistering; the metadata is JSON."""
    return msgspec.json.encode({"metadata-location": metadata_location, "metadata": msgspec.Raw(metadata)})


def encode_credentials(credentials: Iterable[StorageCredential]) -> bytes:
    """The body of an answer with credentials alone."""
    return msgspec.json.encode({"storage-credentials": credentials_to_json(credentials)})


def decode_credentials(body: bytes) -> tuple[StorageCredential, ...]:
    """What such a body says."""
    return credentials_from_wires(read_wire(body, _CredentialsWire, "the credentials").storage_credentials)


def encode_commit(commit: TableCommit) -> bytes:
    """The body of a commit to one table."""
    return msgspec.json.encode(_commit_to_json(commit))


def decode_commit(body: bytes) -> TableCommit:
    """What such a body says; an unknown update or requirement is an error."""
    return _commit(read_wire(body, _CommitWire, "the commit"))


def encode_transaction(commits: Sequence[TableCommit]) -> bytes:
    """The body of a commit to several tables."""
    return msgspec.json.encode({"table-changes": [_commit_to_json(commit) for commit in commits]})


def decode_transaction(body: bytes) -> tuple[TableCommit, ...]:
    """What such a body says."""
    wire = read_wire(body, _TransactionWire, "the transaction")
    return tuple(
        named(f"`table-changes[{position}]`", _commit, change) for position, change in enumerate(wire.table_changes)
    )


def encode_registration(registration: Registration) -> bytes:
    """The body of a request to register a table or view."""
    return msgspec.json.encode(
        {
            "name": registration.name,
            "metadata-location": registration.metadata_location,
            **present("overwrite", registration.overwrite or None),
        }
    )


def decode_registration(body: bytes) -> Registration:
    """What such a body says."""
    wire = read_wire(body, _RegisterWire, "the registration")
    return Registration(wire.name, wire.metadata_location, bool(wire.overwrite))


def decode_own_name(body: bytes) -> str:
    """The name of what a request creates or registers, a table or a view."""
    return read_wire(body, _NameWire, "the request").name


def encode_rename(rename: Rename) -> bytes:
    """The body of a request to rename a table or view."""
    return msgspec.json.encode(
        {"source": identifier_to_json(rename.source), "destination": identifier_to_json(rename.destination)}
    )


def decode_rename(body: bytes) -> Rename:
    """What such a body says."""
    wire = read_wire(body, _RenameWire, "the rename")
    return Rename(identifier_from_wire(wire.source), identifier_from_wire(wire.destination))


def labels_to_json(labels: Labels | None) -> JSON | None:
    """Labels as JSON."""
    if labels is None:
        return None
    fields = [{"field-id": field_id, "labels": dict(texts)} for field_id, texts in labels.of_fields.items()]
    return {**present("object-labels", dict(labels.of_object) or None), **present("fields", fields or None)}


def labels_from_wire(wire: LabelsWire | None) -> Labels | None:
    """The labels that a JSON object describes."""
    if wire is None:
        return None
    return Labels(wire.object_labels or {}, {each.field_id: each.labels for each in wire.fields or ()})


def _commit_to_json(commit: TableCommit) -> JSON:
    identifier = commit.identifier
    return {
        **present("identifier", None if identifier is None else identifier_to_json(identifier)),
        "requirements": [requirement_to_json(requirement) for requirement in commit.requirements],
        "updates": [update_to_json(update) for update in commit.updates],
    }


def _commit(wire: _CommitWire) -> TableCommit:
    return TableCommit(
        tuple(map(table_update_from_json, wire.updates)),
        tuple(map(table_requirement_from_json, wire.requirements or ())),
        None if wire.identifier is None else identifier_from_wire(wire.identifier),
    )


def credentials_to_json(credentials: Iterable[StorageCredential]) -> list[JSON]:
    """Credentials as JSON."""
    return [{"prefix": each.prefix, "config": dict(each.config)} for each in credentials]


def credentials_from_wires(wires: Iterable[CredentialWire]) -> tuple[StorageCredential, ...]:
    """The credentials that JSON objects describe."""
    return tuple(StorageCredential(wire.prefix, wire.config) for wire in wires)


def _signing_to_json(signing: RemoteSigning | None) -> JSON | None:
    if signing is None:
        return None
    headers = {name: list(values) for name, values in signing.headers.items()}
    return {"properties": dict(signing.properties), "headers": headers}


def _signing(wire: _SigningWire | None) -> RemoteSigning | None:
    return None if wire is None else RemoteSigning(wire.properties or {}, wire.headers or {})
