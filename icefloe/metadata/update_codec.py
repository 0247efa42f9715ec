"""The JSON form of updates and requirements, both ways (REST: TableUpdate, ViewUpdate, TableRequirement, ViewRequirement).

An object names its action or type; its other keys are the names of the value's fields, with dashes.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar, cast

import msgspec

from icefloe import errors, partitioning as pt
from icefloe.metadata import requirements as r, updates as u, wire_codec as wires
from icefloe.metadata.view_codec import view_version_from_json, view_version_to_json
from icefloe.metadata.wire_codec import Int, Long
from icefloe.schema import JSON, schema_from_json, schema_to_json
from icefloe.versions import ALL_VERSIONS

Value = TypeVar("Value")

_ACTION = "action"
_TYPE = "type"
_NEWEST = ALL_VERSIONS[-1]

_COMMON_UPDATES: dict[str, type[u.CommonUpdate]] = {
    "assign-uuid": u.AssignUUIDUpdate,
    "upgrade-format-version": u.UpgradeFormatVersionUpdate,
    "add-schema": u.AddSchemaUpdate,
    "set-location": u.SetLocationUpdate,
    "set-properties": u.SetPropertiesUpdate,
    "remove-properties": u.RemovePropertiesUpdate,
}
_TABLE_UPDATES: dict[str, type[u.TableUpdate]] = {
    **_COMMON_UPDATES,
    "set-current-schema": u.SetCurrentSchemaUpdate,
    "add-spec": u.AddPartitionSpecUpdate,
    "set-default-spec": u.SetDefaultSpecUpdate,
    "add-sort-order": u.AddSortOrderUpdate,
    "set-default-sort-order": u.SetDefaultSortOrderUpdate,
    "add-snapshot": u.AddSnapshotUpdate,
    "set-snapshot-ref": u.SetSnapshotRefUpdate,
    "remove-snapshots": u.RemoveSnapshotsUpdate,
    "remove-snapshot-ref": u.RemoveSnapshotRefUpdate,
    "set-statistics": u.SetStatisticsUpdate,
    "remove-statistics": u.RemoveStatisticsUpdate,
    "set-partition-statistics": u.SetPartitionStatisticsUpdate,
    "remove-partition-statistics": u.RemovePartitionStatisticsUpdate,
    "remove-partition-specs": u.RemovePartitionSpecsUpdate,
    "remove-schemas": u.RemoveSchemasUpdate,
    "add-encryption-key": u.AddEncryptionKeyUpdate,
    "remove-encryption-key": u.RemoveEncryptionKeyUpdate,
}
_VIEW_UPDATES: dict[str, type[u.ViewUpdate]] = {
    **_COMMON_UPDATES,
    "add-view-version": u.AddViewVersionUpdate,
    "set-current-view-version": u.SetCurrentViewVersionUpdate,
}
_TABLE_REQUIREMENTS: dict[str, type[r.TableRequirement]] = {
    "assert-create": r.AssertCreate,
    "assert-table-uuid": r.AssertTableUUID,
    "assert-ref-snapshot-id": r.AssertRefSnapshotId,
    "assert-last-assigned-field-id": r.AssertLastAssignedFieldId,
    "assert-current-schema-id": r.AssertCurrentSchemaId,
    "assert-last-assigned-partition-id": r.AssertLastAssignedPartitionId,
    "assert-default-spec-id": r.AssertDefaultSpecId,
    "assert-default-sort-order-id": r.AssertDefaultSortOrderId,
}
_VIEW_REQUIREMENTS: dict[str, type[r.ViewRequirement]] = {
    "assert-create": r.AssertCreate,
    "assert-view-uuid": r.AssertViewUUID,
}
_NAMES: dict[type, str] = {
    value_class: name
    for classes in (_TABLE_UPDATES, _VIEW_UPDATES, _TABLE_REQUIREMENTS, _VIEW_REQUIREMENTS)
    for name, value_class in classes.items()
}


def update_to_json(update: u.Update) -> JSON:
    """An update as a JSON object."""
    match update:
        case u.SetSnapshotRefUpdate(name, ref):
            return {_ACTION: _NAMES[type(update)], "ref-name": name, **wires.ref_to_json(ref)}
        case u.AddSchemaUpdate(schema):
            # Deprecated, but older servers ask for it.
            return {**_write(update, _ACTION), "last-column-id": schema.highest_field_id}
        case u.SetStatisticsUpdate(statistics):
            return {**_write(update, _ACTION), "snapshot-id": statistics.snapshot_id}
        case _:
            return _write(update, _ACTION)


def table_update_from_json(document: object) -> u.TableUpdate:
    """The update of a table that a JSON object describes; an action that is not one is an error."""
    return _read(document, _ACTION, _TABLE_UPDATES, "table update")


def view_update_from_json(document: object) -> u.ViewUpdate:
    """The update of a view that a JSON object describes; an action that is not one is an error."""
    return _read(document, _ACTION, _VIEW_UPDATES, "view update")


def check_codable(updates: Iterable[u.TableUpdate]) -> None:
    """Fail if an update holds something that JSON cannot represent, or that no reader would accept.

    Type hints do not protect at run time: a number in place of a string would be written, and make the table unreadable.
    """
    for update in updates:
        try:
            document = msgspec.json.decode(msgspec.json.encode(update_to_json(update)))
        except (TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
            raise errors.InvalidMetadataError(f"{update!r:.300} cannot be written as JSON: {error}") from error
        table_update_from_json(document)


def requirement_to_json(requirement: r.Requirement) -> JSON:
    """A requirement as a JSON object."""
    return _write(requirement, _TYPE)


def table_requirement_from_json(document: object) -> r.TableRequirement:
    """The requirement on a table that a JSON object describes; a type that is not one is an error."""
    return _read(document, _TYPE, _TABLE_REQUIREMENTS, "table requirement")


def view_requirement_from_json(document: object) -> r.ViewRequirement:
    """The requirement on a view that a JSON object describes; a type that is not one is an error."""
    return _read(document, _TYPE, _VIEW_REQUIREMENTS, "view requirement")


def _unchanged(value: Value) -> Value:
    return value


def _spec(document: object) -> pt.PartitionSpec:
    return pt.spec_from_json(document, default_id=0)


def _order(document: JSON) -> pt.SortOrder:
    return pt.order_from_json(document, default_id=1 if document.get("fields") else 0)


@dataclass(frozen=True, slots=True)
class _Form:
    """How a field is read from a JSON value of the type, and written."""

    wire_type: Any
    read: Callable[[Any], object] = _unchanged
    write: Callable[[Any], object] = _unchanged


_TEXT, _INT, _INTS, _LONG = _Form(str), _Form(Int), _Form(list[Int], tuple, list), _Form(Long)
_FORMS = {
    **dict.fromkeys(("uuid", "location", "ref", "ref_name", "key_id"), _TEXT),
    **dict.fromkeys(("format_version", "schema_id", "spec_id", "sort_order_id", "view_version_id"), _INT),
    **dict.fromkeys(("current_schema_id", "default_spec_id", "default_sort_order_id"), _INT),
    **dict.fromkeys(("last_assigned_field_id", "last_assigned_partition_id"), _INT),
    "snapshot_id": _LONG,
    "snapshot_ids": _Form(list[Long], tuple, list),
    "spec_ids": _INTS,
    "schema_ids": _INTS,
    "updates": _Form(dict[str, str], write=dict),
    "removals": _Form(list[str], tuple, list),
    "schema": _Form(dict, schema_from_json, schema_to_json),
    "spec": _Form(dict, _spec, lambda spec: pt.spec_to_json(spec, _NEWEST)),
    "sort_order": _Form(dict, _order, lambda order: pt.order_to_json(order, _NEWEST)),
    "snapshot": _Form(dict, wires.snapshot_from_json, wires.snapshot_to_json),
    "statistics": _Form(wires.StatisticsWire, wires.statistics_from_wire, wires.statistics_to_json),
    "partition_statistics": _Form(
        wires.PartitionStatisticsWire, wires.partition_statistics_from_wire, wires.partition_statistics_to_json
    ),
    "encryption_key": _Form(wires.EncryptedKeyWire, wires.key_from_wire, wires.key_to_json),
    "view_version": _Form(dict, view_version_from_json, view_version_to_json),
}
_OLDER_KEYS = {"updates": "updated", "removals": "removed"}
"""What older writers call a key."""


def _write(value: u.Update | r.Requirement, tag: str) -> JSON:
    document: JSON = {tag: _NAMES[type(value)]}
    for field in fields(value):
        content = getattr(value, field.name)
        document[_key(field.name)] = None if content is None else _FORMS[field.name].write(content)
    return document


def _read(document: object, tag: str, classes: Mapping[str, type[Value]], what: str) -> Value:
    if not isinstance(document, Mapping):
        raise errors.InvalidMetadataError(f"a {what} is {document!r:.100}; it must be a JSON object")
    name = document.get(tag)
    if not isinstance(name, str):
        raise errors.InvalidMetadataError(f"a {what} has the `{tag}` {name!r:.100}; it must be a string")
    if (value_class := classes.get(name.lower())) is None:
        raise errors.InvalidMetadataError(f"{name!r:.100} is not a `{tag}` of a {what}; known: {', '.join(classes)}")
    values = [
        _field(document, field.name, value_class, name.lower())
        for field in fields(value_class)  # type: ignore[arg-type]  # every class here is a dataclass
    ]
    return cast(Any, value_class)(*values)  # type: ignore[no-any-return]  # of the class


def _field(document: Mapping[str, Any], name: str, value_class: type, what: str) -> object:
    if value_class is u.SetSnapshotRefUpdate and name == "ref":
        return wires.named(what, wires.ref_from_wire, wires.convert_wire(document, wires.RefWire, what))
    for key in (_key(name), _OLDER_KEYS.get(name, "")):
        if document.get(key) is not None:
            form, where = _FORMS[name], f"{what}: `{key}`"
            return wires.named(where, form.read, wires.convert_wire(document[key], form.wire_type, where))
    if value_class is r.AssertRefSnapshotId and name == "snapshot_id":
        return None
    raise errors.InvalidMetadataError(f"{what}: `{_key(name)}` is missing; it is required")


def _key(name: str) -> str:
    return name.replace("_", "-")
