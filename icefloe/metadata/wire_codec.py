"""The JSON form of the parts of table metadata, both ways: snapshots, refs, logs, statistics and keys (spec: Appendix C).

The structs mirror the JSON; msgspec checks types while it decodes, and its errors are rephrased with the path of the field.
"""

import binascii
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeVar, cast

import msgspec

from icefloe.errors import InvalidInputError, InvalidMetadataError
from icefloe.metadata.refs import SnapshotRef, SnapshotRefType
from icefloe.metadata.snapshot import INITIAL_SEQUENCE_NUMBER, Operation, Snapshot, Summary
from icefloe.metadata.table import BlobMetadata, EncryptedKey, PartitionStatisticsFile, StatisticsFile
from icefloe.schema import JSON
from icefloe.versions import Feature, allows

Wire = TypeVar("Wire")
Part = TypeVar("Part")

Int = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Long = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]

_OPERATION = "operation"
_OPERATIONS: dict[str, str] = {operation.value: operation for operation in Operation}
_REF_TYPES = {ref_type.value: ref_type for ref_type in SnapshotRefType}
_PROBLEM = re.compile(r"(?s)(?P<problem>.*?)(?: - at `\$(?P<path>.*)`)?")
_MISSING = re.compile(r"Object missing required field `(?P<field>.*)`")


class WireStruct(msgspec.Struct, rename="kebab", gc=False):
    """A JSON object whose keys are the field names with dashes; other keys are ignored."""


class SnapshotWire(WireStruct):
    """A snapshot; fields that only some versions require are optional."""

    snapshot_id: Long
    timestamp_ms: Long
    manifest_list: str | None = None
    summary: dict[str, str] | None = None
    parent_snapshot_id: Long | None = None
    sequence_number: Long | None = None
    schema_id: Int | None = None
    first_row_id: Long | None = None
    added_rows: Long | None = None
    key_id: str | None = None
    manifests: list[str] | None = None


class SnapshotLogWire(WireStruct):
    """An entry of the snapshot log."""

    snapshot_id: Long
    timestamp_ms: Long


class MetadataLogWire(WireStruct):
    """An entry of the metadata log."""

    metadata_file: str
    timestamp_ms: Long


class RefWire(WireStruct):
    """A branch or tag."""

    snapshot_id: Long
    type: str
    min_snapshots_to_keep: Int | None = None
    max_snapshot_age_ms: Long | None = None
    max_ref_age_ms: Long | None = None


class BlobWire(WireStruct):
    """A blob of a statistics file."""

    type: str
    snapshot_id: Long
    sequence_number: Long
    fields: list[Int]
    properties: dict[str, str] | None = None


class StatisticsWire(WireStruct):
    """A statistics file."""

    snapshot_id: Long
    statistics_path: str
    file_size_in_bytes: Long
    file_footer_size_in_bytes: Long
    blob_metadata: list[BlobWire]
    key_metadata: str | None = None


class PartitionStatisticsWire(WireStruct):
    """A partition statistics file."""

    snapshot_id: Long
    statistics_path: str
    file_size_in_bytes: Long


class EncryptedKeyWire(WireStruct):
    """An encryption key."""

    key_id: str
    encrypted_key_metadata: str
    encrypted_by_id: str | None = None
    properties: dict[str, str] | None = None


def read_wire(document: object, wire_type: type[Wire], what: str) -> Wire:
    """A document, as JSON text or as parsed JSON, converted to a struct; `what` names it in errors."""
    if not isinstance(document, str | bytes | bytearray | memoryview):
        return convert_wire(document, wire_type, what)
    try:
        return msgspec.json.decode(document, type=wire_type)
    except msgspec.ValidationError as problem:
        raise InvalidMetadataError(f"{what}: {explain(problem)}") from None
    except (msgspec.DecodeError, UnicodeError) as problem:
        raise InvalidMetadataError(f"{what} is not JSON: {problem}") from None
    except RecursionError:
        raise InvalidMetadataError(f"{what} is nested too deeply to be read") from None


def convert_wire(value: object, wire_type: type[Wire], what: str) -> Wire:
    """A parsed JSON value, converted to this type; `what` names it in errors."""
    try:
        return msgspec.convert(dict(value) if isinstance(value, Mapping) else value, type=wire_type)
    except msgspec.ValidationError as problem:
        raise InvalidMetadataError(f"{what}: {explain(problem)}") from None
    except RecursionError:
        raise InvalidMetadataError(f"{what} is nested too deeply to be read") from None


def explain(problem: msgspec.ValidationError) -> str:
    """The problem that msgspec reports, prefixed with the path of the field."""
    match = _PROBLEM.fullmatch(str(problem))
    assert match is not None  # the pattern takes any text
    path = (match["path"] or "").removeprefix(".")
    if missing := _MISSING.fullmatch(match["problem"]):
        field = missing["field"]
        return f"`{f'{path}.{field}' if path else field}` is missing; it is required"
    text = match["problem"].replace("Expected", "expected", 1)
    return f"`{path}`: {text}" if path else text


def snapshots_from_wires(wires: list[SnapshotWire], what: str) -> tuple[Snapshot, ...]:
    """The snapshots that JSON objects describe; the structs are used up.

    A summary without operation counts as an overwrite, and added rows without a first row id count for nothing, as in Java.
    msgspec makes the snapshots, from the structs' attributes: with ten thousand of them that takes half of the time.
    """
    for wire in wires:
        # What is put here is what the snapshot holds, not what the JSON held.
        target = cast(Any, wire)
        if wire.summary is not None:
            has_content = bool(wire.summary)
            operation = wire.summary.pop(_OPERATION, Operation.OVERWRITE)
            target.summary = Summary(_OPERATIONS.get(operation, operation), wire.summary) if has_content else None
        if wire.manifests is not None and wire.manifest_list is not None:
            target.manifests = None
        if wire.sequence_number is None:
            target.sequence_number = INITIAL_SEQUENCE_NUMBER
        if wire.first_row_id is None:
            target.added_rows = None
    try:
        return msgspec.convert(wires, type=tuple[Snapshot, ...], from_attributes=True)
    except msgspec.ValidationError as problem:
        raise InvalidMetadataError(f"{what}{explain(problem)}") from None


def snapshot_from_json(document: object, what: str = "snapshot") -> Snapshot:
    """Reads a standalone snapshot, as in a REST update."""
    [snapshot] = snapshots_from_wires([convert_wire(document, SnapshotWire, what)], what)
    return snapshot


def snapshot_to_json(snapshot: Snapshot, version: int | None = None) -> JSON:
    """A snapshot as a table of this version stores it; without a version, as in REST updates: all that it has."""
    document: JSON = {}
    numbered = snapshot.sequence_number > INITIAL_SEQUENCE_NUMBER
    if numbered if version is None else allows(version, Feature.SEQUENCE_NUMBERS):
        document["sequence-number"] = snapshot.sequence_number
    document["snapshot-id"] = snapshot.snapshot_id
    if snapshot.parent_snapshot_id is not None:
        document["parent-snapshot-id"] = snapshot.parent_snapshot_id
    document["timestamp-ms"] = snapshot.timestamp_ms
    if snapshot.summary is not None:
        document["summary"] = {_OPERATION: snapshot.summary.operation, **snapshot.summary.properties}
    if snapshot.manifest_list is not None:
        document["manifest-list"] = snapshot.manifest_list
    else:
        document["manifests"] = list(snapshot.manifests or ())
    if snapshot.schema_id is not None:
        document["schema-id"] = snapshot.schema_id
    if snapshot.first_row_id is not None and (version is None or allows(version, Feature.ROW_LINEAGE)):
        document["first-row-id"] = snapshot.first_row_id
        document["added-rows"] = snapshot.added_rows
    if snapshot.key_id is not None and (version is None or allows(version, Feature.ENCRYPTION_KEYS)):
        document["key-id"] = snapshot.key_id
    return document


def ref_from_wire(wire: RefWire) -> SnapshotRef:
    """The branch or tag that a JSON object describes."""
    ref_type = _REF_TYPES.get(wire.type.lower())
    if ref_type is None:
        raise InvalidMetadataError(f"`type` is {wire.type!r}; it must be one of {', '.join(_REF_TYPES)}")
    return SnapshotRef(
        wire.snapshot_id, ref_type, wire.min_snapshots_to_keep, wire.max_snapshot_age_ms, wire.max_ref_age_ms
    )


def ref_to_json(ref: SnapshotRef) -> JSON:
    """A branch or tag as JSON."""
    return {
        "snapshot-id": ref.snapshot_id,
        "type": ref.ref_type.value,
        **present("min-snapshots-to-keep", ref.min_snapshots_to_keep),
        **present("max-snapshot-age-ms", ref.max_snapshot_age_ms),
        **present("max-ref-age-ms", ref.max_ref_age_ms),
    }


def statistics_from_wire(wire: StatisticsWire) -> StatisticsFile:
    """The statistics file that a JSON object describes."""
    return StatisticsFile(
        wire.snapshot_id,
        wire.statistics_path,
        wire.file_size_in_bytes,
        wire.file_footer_size_in_bytes,
        tuple(
            BlobMetadata(blob.type, blob.snapshot_id, blob.sequence_number, tuple(blob.fields), blob.properties or {})
            for blob in wire.blob_metadata
        ),
        None if wire.key_metadata is None else _from_base64(wire.key_metadata, "key-metadata"),
    )


def statistics_to_json(file: StatisticsFile) -> JSON:
    """A statistics file as JSON."""
    return {
        "snapshot-id": file.snapshot_id,
        "statistics-path": file.statistics_path,
        "file-size-in-bytes": file.file_size_in_bytes,
        "file-footer-size-in-bytes": file.file_footer_size_in_bytes,
        **present("key-metadata", None if file.key_metadata is None else b64encode(file.key_metadata).decode()),
        "blob-metadata": [
            {
                "type": blob.blob_type,
                "snapshot-id": blob.snapshot_id,
                "sequence-number": blob.sequence_number,
                "fields": list(blob.fields),
                **present("properties", dict(blob.properties) or None),
            }
            for blob in file.blob_metadata
        ],
    }


def partition_statistics_from_wire(wire: PartitionStatisticsWire) -> PartitionStatisticsFile:
    """The partition statistics file that a JSON object describes."""
    return PartitionStatisticsFile(wire.snapshot_id, wire.statistics_path, wire.file_size_in_bytes)


def partition_statistics_to_json(file: PartitionStatisticsFile) -> JSON:
    """A partition statistics file as JSON."""
    return {
        "snapshot-id": file.snapshot_id,
        "statistics-path": file.statistics_path,
        "file-size-in-bytes": file.file_size_in_bytes,
    }


def key_from_wire(wire: EncryptedKeyWire) -> EncryptedKey:
    """The encryption key that a JSON object describes."""
    packed = _from_base64(wire.encrypted_key_metadata, "encrypted-key-metadata")
    return EncryptedKey(wire.key_id, packed, wire.encrypted_by_id, wire.properties or {})


def key_to_json(key: EncryptedKey) -> JSON:
    """An encryption key as JSON."""
    return {
        "key-id": key.key_id,
        "encrypted-key-metadata": b64encode(key.encrypted_key_metadata).decode(),
        **present("encrypted-by-id", key.encrypted_by_id),
        **present("properties", dict(key.properties) or None),
    }


def named(what: str, read: Callable[[Wire], Part], wire: Wire) -> Part:
    """The result of `read` for a part; errors are prefixed with the name of the part."""
    try:
        return read(wire)
    except InvalidInputError as problem:
        raise InvalidMetadataError(f"{what}: {problem}") from None


def present(key: str, value: Any) -> JSON:
    """The key and value as a dictionary, empty if the value is None."""
    return {} if value is None else {key: value}


def _from_base64(text: str, field: str) -> bytes:
    try:
        return b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise InvalidMetadataError(f"`{field}` is {text!r:.100}; it must be Base64") from None
