"""The JSON form of views, both ways (view spec: Appendix A)."""

import msgspec

from icefloe.errors import InvalidMetadataError
from icefloe.metadata import view as v
from icefloe.metadata.check_codec import check_view
from icefloe.metadata.codec import pack_metadata_file, unpack_metadata_file
from icefloe.metadata.files import MetadataCompression
from icefloe.metadata.limits import DEFAULT_LIMITS, Limits
from icefloe.metadata.view import ViewMetadata, ViewVersion
from icefloe.metadata.wire_codec import Int, Long, WireStruct, convert_wire, named, present, read_wire
from icefloe.schema import JSON, schema_from_json, schema_to_json

_WHAT = "view metadata"
_SQL = "sql"


class _VersionWire(WireStruct):
    version_id: Int
    schema_id: Int
    timestamp_ms: Long
    summary: dict[str, str]
    representations: list[JSON]
    default_namespace: list[str]
    default_catalog: str | None = None


class _LogWire(WireStruct):
    version_id: Int
    timestamp_ms: Long


class _ViewWire(WireStruct):
    view_uuid: str
    format_version: Int
    location: str
    schemas: list[JSON]
    current_version_id: Int
    versions: list[_VersionWire]
    version_log: list[_LogWire]
    properties: dict[str, str] | None = None


class _SQLWire(WireStruct):
    sql: str
    dialect: str


def view_from_json(document: str | bytes | JSON) -> ViewMetadata:
    """The view of a JSON text, or of a parsed JSON object."""
    wire = read_wire(document, _ViewWire, _WHAT)
    v.check_view_format_version(wire.format_version)
    schemas = tuple(
        named(f"{_WHAT}: `schemas[{position}]`", schema_from_json, schema)
        for position, schema in enumerate(wire.schemas)
    )
    versions = tuple(
        named(f"{_WHAT}: `versions[{position}]`", _version_from_wire, version)
        for position, version in enumerate(wire.versions)
    )
    view = ViewMetadata(
        view_uuid=wire.view_uuid,
        location=wire.location,
        schemas=schemas,
        current_version_id=wire.current_version_id,
        versions=versions,
        version_log=tuple(v.ViewVersionLogEntry(entry.version_id, entry.timestamp_ms) for entry in wire.version_log),
        properties=wire.properties or {},
        format_version=wire.format_version,
    )
    check_view(view)
    return view


def view_to_json(view: ViewMetadata) -> bytes:
    """The view as JSON text."""
    try:
        return msgspec.json.encode(view_to_object(view))
    except (TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise InvalidMetadataError(f"view metadata cannot be written as JSON: {error}") from error


def view_to_object(view: ViewMetadata) -> JSON:
    """The same as a dictionary, for documents that embed a view."""
    return {
        "view-uuid": view.view_uuid,
        "format-version": view.format_version,
        "location": view.location,
        **present("properties", dict(view.properties) or None),
        "schemas": [schema_to_json(schema) for schema in view.schemas],
        "current-version-id": view.current_version_id,
        "versions": [view_version_to_json(version) for version in view.versions],
        "version-log": [
            {"timestamp-ms": entry.timestamp_ms, "version-id": entry.version_id} for entry in view.version_log
        ],
    }


def decode_view_file(data: bytes, limits: Limits = DEFAULT_LIMITS) -> ViewMetadata:
    """The view in a metadata file's bytes, gzip or not."""
    return view_from_json(unpack_metadata_file(data, limits))


def encode_view_file(view: ViewMetadata, compression: MetadataCompression = MetadataCompression.NONE) -> bytes:
    """The bytes of a view's metadata file."""
    return pack_metadata_file(view_to_json(view), compression)


def view_version_from_json(document: object) -> ViewVersion:
    """Reads a standalone view version, as in a REST update."""
    return named("view-version", _version_from_wire, convert_wire(document, _VersionWire, "view-version"))


def view_version_to_json(version: ViewVersion) -> JSON:
    """A view version as JSON."""
    return {
        "version-id": version.version_id,
        "timestamp-ms": version.timestamp_ms,
        "schema-id": version.schema_id,
        "summary": dict(version.summary),
        **present("default-catalog", version.default_catalog),
        "default-namespace": list(version.default_namespace),
        "representations": [_representation_to_json(representation) for representation in version.representations],
    }


def _version_from_wire(wire: _VersionWire) -> ViewVersion:
    return ViewVersion(
        wire.version_id,
        wire.schema_id,
        wire.timestamp_ms,
        tuple(_representation_from_json(query, position) for position, query in enumerate(wire.representations)),
        tuple(wire.default_namespace),
        wire.default_catalog,
        wire.summary,
    )


def _representation_from_json(document: JSON, position: int) -> v.ViewRepresentation:
    what = f"`representations[{position}]`"
    type_name = document.get("type")
    if not isinstance(type_name, str):
        raise InvalidMetadataError(f"{what}: `type` is {type_name!r:.100}; it must be a string")
    if type_name.lower() != _SQL:
        return v.OtherViewRepresentation(type_name, {key: value for key, value in document.items() if key != "type"})
    wire = convert_wire(document, _SQLWire, what)
    return v.SQLViewRepresentation(wire.sql, wire.dialect)


def _representation_to_json(representation: v.ViewRepresentation) -> JSON:
    match representation:
        case v.SQLViewRepresentation(sql, dialect):
            return {"type": _SQL, "sql": sql, "dialect": dialect}
        case v.OtherViewRepresentation(type_name, content):
            return {"type": type_name, **content}
