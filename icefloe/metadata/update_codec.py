"""The JSON form of updates and requirements, both ways (REST: TableUpdate, ViewUpdate, TableRequirement, ViewRequirement)."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from icefloe.errors import InvalidMetadataError
from icefloe.metadata import requirements as r, updates as u
from icefloe.metadata.refs import SnapshotRef
from icefloe.metadata.view_codec import view_version_from_json, view_version_to_json
from icefloe.metadata.wire_codec import (
    JSON,
    EncryptedKeyWire,
    Int,
    Long,
    PartitionStatisticsWire,
    RefWire,
    StatisticsWire,
    convert_wire,
    key_from_wire,
    key_to_json,
    named,
    partition_statistics_from_wire,
    partition_statistics_to_json,
    ref_from_wire,
    ref_to_json,
    snapshot_from_json,
    snapshot_to_json,
    statistics_from_wire,
    statistics_to_json,
)
from icefloe.partitioning import PartitionSpec, SortOrder, order_from_json, order_to_json, spec_from_json, spec_to_json
from icefloe.schema import schema_from_json, schema_to_json
from icefloe.versions import ALL_VERSIONS

Value = TypeVar("Value")

_ACTION = "action"
_TYPE = "type"
_NEWEST = ALL_VERSIONS[-1]


def update_to_json(update: u.Update) -> JSON:
    """An update as a JSON object."""
    match update:
        case u.AssignUUIDUpdate(uuid):
            return {_ACTION: "assign-uuid", "uuid": uuid}
        case u.UpgradeFormatVersionUpdate(version):
            return {_ACTION: "upgrade-format-version", "format-version": version}
        case u.AddSchemaUpdate(schema):
            # Deprecated, but older servers ask for it.
            last = schema.highest_field_id
            return {_ACTION: "add-schema", "schema": schema_to_json(schema), "last-column-id": last}
        case u.SetCurrentSchemaUpdate(schema_id):
            return {_ACTION: "set-current-schema", "schema-id": schema_id}
        case u.AddPartitionSpecUpdate(spec):
            return {_ACTION: "add-spec", "spec": spec_to_json(spec, _NEWEST)}
        case u.SetDefaultSpecUpdate(spec_id):
            return {_ACTION: "set-default-spec", "spec-id": spec_id}
        case u.AddSortOrderUpdate(order):
            return {_ACTION: "add-sort-order", "sort-order": order_to_json(order, _NEWEST)}
        case u.SetDefaultSortOrderUpdate(order_id):
            return {_ACTION: "set-default-sort-order", "sort-order-id": order_id}
        case u.SetLocationUpdate(location):
            return {_ACTION: "set-location", "location": location}
        case u.SetPropertiesUpdate(updates):
            return {_ACTION: "set-properties", "updates": dict(updates)}
        case u.RemovePropertiesUpdate(removals):
            return {_ACTION: "remove-properties", "removals": list(removals)}
        case u.RemovePartitionSpecsUpdate(spec_ids):
            return {_ACTION: "remove-partition-specs", "spec-ids": list(spec_ids)}
        case u.RemoveSchemasUpdate(schema_ids):
            return {_ACTION: "remove-schemas", "schema-ids": list(schema_ids)}
        case u.AddViewVersionUpdate(version):
            return {_ACTION: "add-view-version", "view-version": view_version_to_json(version)}
        case u.SetCurrentViewVersionUpdate(version_id):
            return {_ACTION: "set-current-view-version", "view-version-id": version_id}
        case _:
            return _snapshot_update_to_json(update)


_SnapshotUpdate = (
    u.AddSnapshotUpdate
    | u.SetSnapshotRefUpdate
    | u.RemoveSnapshotsUpdate
    | u.RemoveSnapshotRefUpdate
    | u.SetStatisticsUpdate
    | u.RemoveStatisticsUpdate
    | u.SetPartitionStatisticsUpdate
    | u.RemovePartitionStatisticsUpdate
    | u.AddEncryptionKeyUpdate
    | u.RemoveEncryptionKeyUpdate
)


def _snapshot_update_to_json(update: _SnapshotUpdate) -> JSON:
    match update:
        case u.AddSnapshotUpdate(snapshot):
            return {_ACTION: "add-snapshot", "snapshot": snapshot_to_json(snapshot)}
        case u.SetSnapshotRefUpdate(name, ref):
            return {_ACTION: "set-snapshot-ref", "ref-name": name, **ref_to_json(ref)}
        case u.RemoveSnapshotsUpdate(snapshot_ids):
            return {_ACTION: "remove-snapshots", "snapshot-ids": list(snapshot_ids)}
        case u.RemoveSnapshotRefUpdate(name):
            return {_ACTION: "remove-snapshot-ref", "ref-name": name}
        case u.SetStatisticsUpdate(statistics):
            return {
                _ACTION: "set-statistics",
                "snapshot-id": statistics.snapshot_id,
                "statistics": statistics_to_json(statistics),
            }
        case u.RemoveStatisticsUpdate(snapshot_id):
            return {_ACTION: "remove-statistics", "snapshot-id": snapshot_id}
        case u.SetPartitionStatisticsUpdate(file):
            return {_ACTION: "set-partition-statistics", "partition-statistics": partition_statistics_to_json(file)}
        case u.RemovePartitionStatisticsUpdate(snapshot_id):
            return {_ACTION: "remove-partition-statistics", "snapshot-id": snapshot_id}
        case u.AddEncryptionKeyUpdate(key):
            return {_ACTION: "add-encryption-key", "encryption-key": key_to_json(key)}
        case u.RemoveEncryptionKeyUpdate(key_id):
            return {_ACTION: "remove-encryption-key", "key-id": key_id}


def table_update_from_json(document: object) -> u.TableUpdate:
    """The update of a table that a JSON object describes; an action that is not one is an error."""
    return _read(document, _ACTION, _COMMON_UPDATES | _TABLE_UPDATES, "table update")


def check_codable(updates: Iterable[u.TableUpdate]) -> None:
    """Fail if an update holds something that JSON cannot represent, or that no reader would accept.

    Type hints do not protect at run time: a number in place of a string would be written, and make the table unreadable.
    """
    for update in updates:
        try:
            document = msgspec.json.decode(msgspec.json.encode(update_to_json(update)))
        except (TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
            raise InvalidMetadataError(f"{update!r:.300} cannot be written as JSON: {error}") from error
        table_update_from_json(document)


def view_update_from_json(document: object) -> u.ViewUpdate:
    """The update of a view that a JSON object describes; an action that is not one is an error."""
    return _read(document, _ACTION, _COMMON_UPDATES | _VIEW_UPDATES, "view update")


def requirement_to_json(requirement: r.Requirement) -> JSON:
    """A requirement as a JSON object."""
    match requirement:
        case r.AssertCreate():
            return {_TYPE: "assert-create"}
        case r.AssertTableUUID(uuid):
            return {_TYPE: "assert-table-uuid", "uuid": uuid}
        case r.AssertViewUUID(uuid):
            return {_TYPE: "assert-view-uuid", "uuid": uuid}
        case r.AssertRefSnapshotId(ref, snapshot_id):
            return {_TYPE: "assert-ref-snapshot-id", "ref": ref, "snapshot-id": snapshot_id}
        case r.AssertLastAssignedFieldId(last):
            return {_TYPE: "assert-last-assigned-field-id", "last-assigned-field-id": last}
        case r.AssertCurrentSchemaId(schema_id):
            return {_TYPE: "assert-current-schema-id", "current-schema-id": schema_id}
        case r.AssertLastAssignedPartitionId(last):
            return {_TYPE: "assert-last-assigned-partition-id", "last-assigned-partition-id": last}
        case r.AssertDefaultSpecId(spec_id):
            return {_TYPE: "assert-default-spec-id", "default-spec-id": spec_id}
        case r.AssertDefaultSortOrderId(order_id):
            return {_TYPE: "assert-default-sort-order-id", "default-sort-order-id": order_id}


def table_requirement_from_json(document: object) -> r.TableRequirement:
    """The requirement on a table that a JSON object describes; a type that is not one is an error."""
    return _read(document, _TYPE, _TABLE_REQUIREMENTS, "table requirement")


def view_requirement_from_json(document: object) -> r.ViewRequirement:
    """The requirement on a view that a JSON object describes; a type that is not one is an error."""
    return _read(document, _TYPE, _VIEW_REQUIREMENTS, "view requirement")


class _Object:
    """A JSON object whose fields are read by name and type; errors name the field."""

    def __init__(self, document: Mapping[str, Any], what: str) -> None:
        self.document = document
        self.what = what

    def get(self, key: str, value_type: type[Value], *older: str) -> Value:
        """The value of a required field, which older writers may have named differently."""
        for name in (key, *older):
            if self.document.get(name) is not None:
                return convert_wire(self.document[name], value_type, f"{self.what}: `{name}`")
        raise InvalidMetadataError(f"{self.what}: `{key}` is missing; it is required")

    def part(self, key: str, read: Callable[[Any], Value]) -> Value:
        """A required field that holds an object, read by a function of its own."""
        return named(f"{self.what}: `{key}`", read, self.get(key, dict))

    def wire(self, key: str, wire_type: type[Any], read: Callable[[Any], Value]) -> Value:
        """A required field that holds an object of this form."""
        return named(f"{self.what}: `{key}`", read, self.get(key, wire_type))


def _read(document: object, tag: str, readers: Mapping[str, Callable[[_Object], Value]], what: str) -> Value:
    if not isinstance(document, Mapping):
        raise InvalidMetadataError(f"a {what} is {document!r:.100}; it must be a JSON object")
    name = document.get(tag)
    if not isinstance(name, str):
        raise InvalidMetadataError(f"a {what} has the `{tag}` {name!r:.100}; it must be a string")
    if (read := readers.get(name.lower())) is None:
        raise InvalidMetadataError(f"{name!r:.100} is not a `{tag}` of a {what}; known: {', '.join(readers)}")
    return read(_Object(document, name.lower()))


def _spec(document: object) -> PartitionSpec:
    return spec_from_json(document, default_id=0)


def _order(document: object) -> SortOrder:
    assert isinstance(document, Mapping)
    return order_from_json(document, default_id=1 if document.get("fields") else 0)


def _ref(fields: _Object) -> SnapshotRef:
    return named(fields.what, ref_from_wire, convert_wire(fields.document, RefWire, fields.what))


def _ref_snapshot_id(fields: _Object) -> int | None:
    return None if fields.document.get("snapshot-id") is None else fields.get("snapshot-id", Long)


_COMMON_UPDATES: dict[str, Callable[[_Object], u.CommonUpdate]] = {
    "assign-uuid": lambda o: u.AssignUUIDUpdate(o.get("uuid", str)),
    "upgrade-format-version": lambda o: u.UpgradeFormatVersionUpdate(o.get("format-version", Int)),
    "add-schema": lambda o: u.AddSchemaUpdate(o.part("schema", schema_from_json)),
    "set-location": lambda o: u.SetLocationUpdate(o.get("location", str)),
    "set-properties": lambda o: u.SetPropertiesUpdate(o.get("updates", dict[str, str], "updated")),
    "remove-properties": lambda o: u.RemovePropertiesUpdate(tuple(o.get("removals", list[str], "removed"))),
}

_TABLE_UPDATES: dict[str, Callable[[_Object], u.TableUpdate]] = {
    "set-current-schema": lambda o: u.SetCurrentSchemaUpdate(o.get("schema-id", Int)),
    "add-spec": lambda o: u.AddPartitionSpecUpdate(o.part("spec", _spec)),
    "set-default-spec": lambda o: u.SetDefaultSpecUpdate(o.get("spec-id", Int)),
    "add-sort-order": lambda o: u.AddSortOrderUpdate(o.part("sort-order", _order)),
    "set-default-sort-order": lambda o: u.SetDefaultSortOrderUpdate(o.get("sort-order-id", Int)),
    "add-snapshot": lambda o: u.AddSnapshotUpdate(snapshot_from_json(o.get("snapshot", dict), f"{o.what}: snapshot")),
    "set-snapshot-ref": lambda o: u.SetSnapshotRefUpdate(o.get("ref-name", str), _ref(o)),
    "remove-snapshots": lambda o: u.RemoveSnapshotsUpdate(tuple(o.get("snapshot-ids", list[Long]))),
    "remove-snapshot-ref": lambda o: u.RemoveSnapshotRefUpdate(o.get("ref-name", str)),
    "set-statistics": lambda o: u.SetStatisticsUpdate(o.wire("statistics", StatisticsWire, statistics_from_wire)),
    "remove-statistics": lambda o: u.RemoveStatisticsUpdate(o.get("snapshot-id", Long)),
    "set-partition-statistics": lambda o: u.SetPartitionStatisticsUpdate(
        o.wire("partition-statistics", PartitionStatisticsWire, partition_statistics_from_wire)
    ),
    "remove-partition-statistics": lambda o: u.RemovePartitionStatisticsUpdate(o.get("snapshot-id", Long)),
    "remove-partition-specs": lambda o: u.RemovePartitionSpecsUpdate(tuple(o.get("spec-ids", list[Int]))),
    "remove-schemas": lambda o: u.RemoveSchemasUpdate(tuple(o.get("schema-ids", list[Int]))),
    "add-encryption-key": lambda o: u.AddEncryptionKeyUpdate(o.wire("encryption-key", EncryptedKeyWire, key_from_wire)),
    "remove-encryption-key": lambda o: u.RemoveEncryptionKeyUpdate(o.get("key-id", str)),
}

_VIEW_UPDATES: dict[str, Callable[[_Object], u.ViewUpdate]] = {
    "add-view-version": lambda o: u.AddViewVersionUpdate(o.part("view-version", view_version_from_json)),
    "set-current-view-version": lambda o: u.SetCurrentViewVersionUpdate(o.get("view-version-id", Int)),
}

_TABLE_REQUIREMENTS: dict[str, Callable[[_Object], r.TableRequirement]] = {
    "assert-create": lambda _: r.AssertCreate(),
    "assert-table-uuid": lambda o: r.AssertTableUUID(o.get("uuid", str)),
    "assert-ref-snapshot-id": lambda o: r.AssertRefSnapshotId(o.get("ref", str), _ref_snapshot_id(o)),
    "assert-last-assigned-field-id": lambda o: r.AssertLastAssignedFieldId(o.get("last-assigned-field-id", Int)),
    "assert-current-schema-id": lambda o: r.AssertCurrentSchemaId(o.get("current-schema-id", Int)),
    "assert-last-assigned-partition-id": lambda o: r.AssertLastAssignedPartitionId(
        o.get("last-assigned-partition-id", Int)
    ),
    "assert-default-spec-id": lambda o: r.AssertDefaultSpecId(o.get("default-spec-id", Int)),
    "assert-default-sort-order-id": lambda o: r.AssertDefaultSortOrderId(o.get("default-sort-order-id", Int)),
}

_VIEW_REQUIREMENTS: dict[str, Callable[[_Object], r.ViewRequirement]] = {
    "assert-create": lambda _: r.AssertCreate(),
    "assert-view-uuid": lambda o: r.AssertViewUUID(o.get("uuid", str)),
}
