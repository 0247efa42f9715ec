"""The JSON form of table metadata, both ways, for every format version (spec: Appendix C, Table Metadata and Snapshots).

Reading is strict about what the spec requires of the document's version, and every error names the field.
It is tolerant of what older writers left out of v1, of unknown fields, which are written again as they were, and of snapshots that
an upgrade carried over.
"""

import gzip
import io
import zlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from icefloe import errors, partitioning as pt, properties as props
from icefloe.metadata import wire_codec as wires
from icefloe.metadata.check_codec import check_member, check_table
from icefloe.metadata.files import MetadataCompression
from icefloe.metadata.limits import DEFAULT_LIMITS, Limits
from icefloe.metadata.refs import MAIN_BRANCH, SnapshotRef, branch
from icefloe.metadata.snapshot import MetadataLogEntry, SnapshotLogEntry
from icefloe.metadata.table import ROOT_MANIFEST, TableMetadata
from icefloe.metadata.unknown_codec import unknown_fields, with_unknown
from icefloe.metadata.wire_codec import Int, Long, WireStruct, named, present
from icefloe.partitioning import codec as structure
from icefloe.schema import JSON, Schema, schema_from_json, schema_to_json
from icefloe.versions import Feature, allows, check_version

_WHAT = "table metadata"
_GZIP_MAGIC = b"\x1f\x8b"
_PIECE = 4 << 20
_NO_SNAPSHOT = -1
_INITIAL_SPEC_ID = 0

Wire = TypeVar("Wire")
Part = TypeVar("Part")


class _VersionWire(msgspec.Struct, rename="kebab"):
    format_version: object = None


class _MetadataWire(WireStruct):
    format_version: Int
    last_updated_ms: Long
    last_column_id: Int
    table_uuid: str | None = None
    location: str | None = None
    last_sequence_number: Long | None = None
    schema: JSON | None = None
    schemas: list[JSON] | None = None
    current_schema_id: Int | None = None
    partition_spec: list[JSON] | None = None
    partition_specs: list[JSON] | None = None
    default_spec_id: Int | None = None
    last_partition_id: Int | None = None
    sort_orders: list[JSON] | None = None
    default_sort_order_id: Int | None = None
    properties: dict[str, str] | None = None
    current_snapshot_id: Long | None = None
    snapshots: list[wires.SnapshotWire] | None = None
    snapshot_log: list[wires.SnapshotLogWire] | None = None
    metadata_log: list[wires.MetadataLogWire] | None = None
    refs: dict[str, wires.RefWire] | None = None
    statistics: list[wires.StatisticsWire] | None = None
    partition_statistics: list[wires.PartitionStatisticsWire] | None = None
    next_row_id: Long | None = None
    encryption_keys: list[wires.EncryptedKeyWire] | None = None


def metadata_from_json(document: str | bytes | JSON) -> TableMetadata:
    """The table metadata of a JSON text, or of a parsed JSON object."""
    try:
        wire = wires.read_wire(document, _MetadataWire, _WHAT)
    except errors.InvalidMetadataError:
        # A future version may differ anywhere; that it is one says more than what differs.
        version = wires.read_wire(document, _VersionWire, _WHAT).format_version
        if isinstance(version, int):
            check_version(version, f"{_WHAT}: format-version")
        raise
    version = check_version(wire.format_version, f"{_WHAT}: format-version")
    try:
        unknown, of_snapshots, parts = unknown_fields(document, version, _KNOWN)
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError) as problem:
        raise errors.InvalidMetadataError(f"{_WHAT} has an unknown field that is not JSON: {problem}") from None
    roots = {each: others[ROOT_MANIFEST] for each, others in of_snapshots.items() if ROOT_MANIFEST in others}
    if roots:
        _check_preview(roots, wire.properties or {})
        for snapshot in wire.snapshots or ():
            snapshot.manifest_list = roots.get(snapshot.snapshot_id, snapshot.manifest_list)
    metadata = _from_wire(wire, version)
    if unknown or of_snapshots or parts:
        metadata = metadata.evolve(unknown_fields=unknown, unknown_snapshot_fields=of_snapshots, unknown_parts=parts)
    check_table(metadata)
    return metadata


_KNOWN = frozenset(_MetadataWire.__struct_encode_fields__)


def _check_preview(roots: Mapping[int, Any], properties: Mapping[str, str]) -> None:
    """Fail unless the table asks for the preview of root manifests that is known here."""
    switch, snapshot_id = props.V4_ROOT_MANIFEST, min(roots)
    if properties.get(switch.key) != props.PREVIEW_2026_08_10:
        raise errors.UnsupportedVersionError(
            f"{_WHAT}: snapshot {snapshot_id} has a `{ROOT_MANIFEST}`, of the proposal #16025 for v4; it is read, and only read, "
            f"in tables with the property {switch.key!r} = {props.PREVIEW_2026_08_10!r}"
        )
    if not all(isinstance(location, str) and location for location in roots.values()):
        raise errors.InvalidMetadataError(f"{_WHAT}: a `{ROOT_MANIFEST}` is not a location")


def metadata_to_json(metadata: TableMetadata) -> bytes:
    """The metadata as the JSON text that a table of its version stores."""
    try:
        return msgspec.json.encode(metadata_to_object(metadata))
    except (TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise errors.InvalidMetadataError(f"{_WHAT} cannot be written as JSON: {error}") from error


def metadata_to_object(metadata: TableMetadata) -> JSON:
    """The same as a dictionary, for documents that embed table metadata."""
    version = metadata.format_version
    document: JSON = {"format-version": version, **present("table-uuid", metadata.table_uuid)}
    document |= present("location", metadata.location)
    if allows(version, Feature.SEQUENCE_NUMBERS):
        document["last-sequence-number"] = metadata.last_sequence_number
    document["last-updated-ms"] = metadata.last_updated_ms
    document["last-column-id"] = metadata.last_column_id
    document |= _structure_to_json(metadata)
    document["properties"] = dict(metadata.properties)
    document["current-snapshot-id"] = metadata.current_snapshot_id
    if metadata.current_snapshot_id is None and allows(version, Feature.MINUS_ONE_FOR_NO_SNAPSHOT):
        document["current-snapshot-id"] = _NO_SNAPSHOT
    if allows(version, Feature.ROW_LINEAGE):
        document["next-row-id"] = metadata.next_row_id
    if metadata.encryption_keys and allows(version, Feature.ENCRYPTION_KEYS):
        document["encryption-keys"] = [wires.key_to_json(key) for key in metadata.encryption_keys]
    # v1 has no `refs`: `main` is the current snapshot. Other refs would be lost without the map, so
    # then it is written all the same, as Java does.
    if allows(version, Feature.REFS) or metadata.refs != _implied_refs(metadata.current_snapshot_id):
        document["refs"] = {name: wires.ref_to_json(ref) for name, ref in metadata.refs.items()}
    unknown = metadata.unknown_snapshot_fields
    document["snapshots"] = [
        {**unknown.get(snapshot.snapshot_id, {}), **wires.snapshot_to_json(snapshot, version)}
        for snapshot in metadata.snapshots
    ]
    for snapshot in document["snapshots"]:
        if ROOT_MANIFEST in snapshot:
            del snapshot["manifest-list"]
    document["statistics"] = [wires.statistics_to_json(file) for file in metadata.statistics]
    document["partition-statistics"] = [
        wires.partition_statistics_to_json(file) for file in metadata.partition_statistics
    ]
    document["snapshot-log"] = [
        {"timestamp-ms": entry.timestamp_ms, "snapshot-id": entry.snapshot_id} for entry in metadata.snapshot_log
    ]
    document["metadata-log"] = [
        {"timestamp-ms": entry.timestamp_ms, "metadata-file": entry.metadata_file} for entry in metadata.metadata_log
    ]
    return {**metadata.unknown_fields, **with_unknown(document, metadata.unknown_parts)}


def decode_metadata_file(data: bytes, limits: Limits = DEFAULT_LIMITS) -> TableMetadata:
    """The table metadata in a file's bytes; gzip is detected from the bytes, not from the file's name."""
    return metadata_from_json(unpack_metadata_file(data, limits))


def unpack_metadata_file(data: bytes, limits: Limits = DEFAULT_LIMITS) -> bytes:
    """The JSON text in a metadata file's bytes."""
    allowed = limits.allowed(len(data))
    if not data.startswith(_GZIP_MAGIC):
        if len(data) > limits.metadata_bytes:
            raise errors.InvalidMetadataError(f"{_WHAT} is too large: {limits.refusal(len(data))}")
        return data
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
            parts, size = [], 0
            # In pieces, so that too large a text is noticed before it is in memory.
            while part := stream.read(min(_PIECE, allowed + 1 - size)):
                parts.append(part)
                size += len(part)
                if size > allowed:
                    raise errors.InvalidMetadataError(f"{_WHAT} is too large: {limits.refusal(len(data))}")
    except (OSError, EOFError, zlib.error) as problem:
        raise errors.InvalidMetadataError(f"{_WHAT} is not whole gzip data: {problem}") from None
    return b"".join(parts)


def encode_metadata_file(metadata: TableMetadata, compression: MetadataCompression = MetadataCompression.NONE) -> bytes:
    """The bytes of a metadata file; `metadata.files` has the name that goes with the compression."""
    # What the catalog supplies is not the table's to say: it may be elsewhere tomorrow.
    stored = metadata.evolve(location=None) if metadata.location_of_catalog else metadata
    return pack_metadata_file(metadata_to_json(stored), compression)


def pack_metadata_file(text: bytes, compression: MetadataCompression) -> bytes:
    """A JSON text as the bytes of a metadata file."""
    # A fixed time in the gzip header: the same metadata is the same bytes.
    return gzip.compress(text, mtime=0) if compression is MetadataCompression.GZIP else text


def _structure_to_json(metadata: TableMetadata) -> JSON:
    version = metadata.format_version
    document: JSON = {}
    single = allows(version, Feature.SINGLE_SCHEMA_AND_SPEC)
    if single:
        document["schema"] = schema_to_json(metadata.schema())
    document["current-schema-id"] = metadata.current_schema_id
    document["schemas"] = [schema_to_json(schema) for schema in metadata.schemas]
    if single:
        document["partition-spec"] = structure.fields_to_json(metadata.spec(), version)
    document["default-spec-id"] = metadata.default_spec_id
    document["partition-specs"] = [structure.spec_to_json(spec, version) for spec in metadata.partition_specs]
    document["last-partition-id"] = metadata.last_partition_id
    document["default-sort-order-id"] = metadata.default_sort_order_id
    document["sort-orders"] = [structure.order_to_json(order, version) for order in metadata.sort_orders]
    return document


def _from_wire(wire: _MetadataWire, version: int) -> TableMetadata:
    numbered, lineage = allows(version, Feature.SEQUENCE_NUMBERS), allows(version, Feature.ROW_LINEAGE)
    if allows(version, Feature.TABLE_UUID_REQUIRED):
        _need(wire.table_uuid, "table-uuid", version)
    if not allows(version, Feature.OPTIONAL_LOCATION):
        _need(wire.location, "location", version)
    schemas, current_schema_id = _schemas(wire, version)
    specs, default_spec_id = _specs(wire, version)
    orders, default_order_id = _orders(wire, version)
    current_snapshot_id = None if wire.current_snapshot_id == _NO_SNAPSHOT else wire.current_snapshot_id
    return TableMetadata(
        format_version=version,
        table_uuid=wire.table_uuid,
        location=wire.location,
        last_updated_ms=wire.last_updated_ms,
        last_column_id=wire.last_column_id,
        schemas=schemas,
        current_schema_id=current_schema_id,
        partition_specs=specs,
        default_spec_id=default_spec_id,
        last_partition_id=_last_partition_id(wire, specs, version),
        sort_orders=orders,
        default_sort_order_id=default_order_id,
        # Versions without these numbers have 0, whatever a document says.
        last_sequence_number=_need(wire.last_sequence_number, "last-sequence-number", version) if numbered else 0,
        properties=wire.properties or {},
        current_snapshot_id=current_snapshot_id,
        snapshots=wires.snapshots_from_wires(wire.snapshots or [], f"{_WHAT}: snapshots"),
        snapshot_log=msgspec.convert(wire.snapshot_log or (), type=tuple[SnapshotLogEntry, ...], from_attributes=True),
        metadata_log=tuple([MetadataLogEntry(e.metadata_file, e.timestamp_ms) for e in wire.metadata_log or ()]),
        refs=_refs(wire.refs or {}, current_snapshot_id),
        statistics=_each("statistics", wires.statistics_from_wire, wire.statistics),
        partition_statistics=_each(
            "partition-statistics", wires.partition_statistics_from_wire, wire.partition_statistics
        ),
        next_row_id=_need(wire.next_row_id, "next-row-id", version) if lineage else 0,
        encryption_keys=_each("encryption-keys", wires.key_from_wire, wire.encryption_keys),
    )


def _schemas(wire: _MetadataWire, version: int) -> tuple[tuple[Schema, ...], int]:
    if wire.schemas is None and wire.schema is not None and not allows(version, Feature.SCHEMA_LISTS_REQUIRED):
        schema = named(f"{_WHAT}: `schema`", schema_from_json, wire.schema)
        return (schema,), schema.schema_id
    schemas = _each("schemas", schema_from_json, _need(wire.schemas, "schemas", version))
    current_id = _need(wire.current_schema_id, "current-schema-id", version)
    check_member("current-schema-id", current_id, "schemas", [schema.schema_id for schema in schemas])
    return schemas, current_id


def _specs(wire: _MetadataWire, version: int) -> tuple[tuple[pt.PartitionSpec, ...], int]:
    single = wire.partition_spec
    if wire.partition_specs is None and single is not None and not allows(version, Feature.SCHEMA_LISTS_REQUIRED):
        return (named(f"{_WHAT}: `partition-spec`", structure.fields_from_json, single),), _INITIAL_SPEC_ID
    specs = _each("partition-specs", structure.spec_from_json, _need(wire.partition_specs, "partition-specs", version))
    return specs, _need(wire.default_spec_id, "default-spec-id", version)


def _last_partition_id(wire: _MetadataWire, specs: Iterable[pt.PartitionSpec], version: int) -> int:
    if wire.last_partition_id is None and not allows(version, Feature.SCHEMA_LISTS_REQUIRED):
        return max((spec.last_field_id for spec in specs), default=pt.NO_PARTITION_FIELD_ID)
    return _need(wire.last_partition_id, "last-partition-id", version)


def _orders(wire: _MetadataWire, version: int) -> tuple[tuple[pt.SortOrder, ...], int]:
    if wire.sort_orders is None and not allows(version, Feature.SCHEMA_LISTS_REQUIRED):
        return (pt.UNSORTED,), pt.UNSORTED_ORDER_ID
    orders = _each("sort-orders", structure.order_from_json, _need(wire.sort_orders, "sort-orders", version))
    default_id = _need(wire.default_sort_order_id, "default-sort-order-id", version)
    # Order 0 means unsorted whether it is listed or not (spec: Sorting).
    if default_id == pt.UNSORTED_ORDER_ID and pt.UNSORTED not in orders:
        orders = (*orders, pt.UNSORTED)
    return orders, default_id


def _need(value: Part | None, field: str, version: int) -> Part:
    if value is None:
        raise errors.InvalidMetadataError(f"{_WHAT}: `{field}` is missing; v{version} requires it")
    return value


def _refs(named_refs: Mapping[str, wires.RefWire], current_snapshot_id: int | None) -> dict[str, SnapshotRef]:
    refs = {name: named(f"{_WHAT}: `refs.{name}`", wires.ref_from_wire, ref) for name, ref in named_refs.items()}
    return refs if MAIN_BRANCH in refs else refs | _implied_refs(current_snapshot_id)


def _implied_refs(current_snapshot_id: int | None) -> dict[str, SnapshotRef]:
    return {} if current_snapshot_id is None else {MAIN_BRANCH: branch(current_snapshot_id)}


def _each(field: str, read: Callable[[Wire], Part], parts: Iterable[Wire] | None) -> tuple[Part, ...]:
    return tuple([named(f"{_WHAT}: `{field}[{position}]`", read, part) for position, part in enumerate(parts or ())])
