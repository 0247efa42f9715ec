"""What a metadata file says that means nothing here: top-level fields in every version, and in v4, whose text still grows, those of
snapshots and inside of schemas, specs, sort orders and refs. Commits write them again as they were.
"""

from collections.abc import Callable, Hashable, Mapping
from typing import Any

import msgspec

from icefloe.metadata import wire_codec as wires
from icefloe.schema import JSON
from icefloe.versions import Feature, allows

Parts = dict[tuple[str, Hashable], Any]
"""Unknown fields inside of the parts of a document, by the kind and the id or name of the part: trees as `_unknown` gives them."""

_IDS: dict[str, Callable[[JSON], Hashable]] = {
    "schemas": lambda part: part.get("schema-id"),
    "partition-specs": lambda part: part.get("spec-id"),
    "sort-orders": lambda part: part.get("order-id"),
}
_KNOWN_INSIDE = frozenset(
    (
        *("schema-id", "spec-id", "order-id", "identifier-field-ids", "fields", "type"),
        *("id", "name", "required", "doc", "initial-default", "write-default"),
        *("element", "element-id", "element-required", "key", "key-id", "value", "value-id", "value-required"),
        *("source-id", "source-ids", "field-id", "transform", "direction", "null-order"),
    )
)
_KNOWN_OF_REFS = frozenset(wires.RefWire.__struct_encode_fields__)
_KNOWN_OF_SNAPSHOTS = frozenset(wires.SnapshotWire.__struct_encode_fields__)
_FREE = frozenset(("initial-default", "write-default"))
"""Fields with values of users, whose keys are theirs."""


class _PartsWire(msgspec.Struct, rename="kebab"):
    snapshots: list[dict[str, msgspec.Raw]] | None = None
    schemas: list[JSON] | None = None
    partition_specs: list[JSON] | None = None
    sort_orders: list[JSON] | None = None
    refs: dict[str, JSON] | None = None


def unknown_fields(
    document: str | bytes | JSON, version: int, known: frozenset[str]
) -> tuple[dict[str, Any], dict[int, dict[str, Any]], Parts]:
    """The fields of a document besides the known ones, those of its snapshots by their ids, and those inside of other parts."""
    text = document if isinstance(document, str | bytes) else msgspec.json.encode(document)
    fields = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    unknown = {key: msgspec.json.decode(value) for key, value in fields.items() if key not in known}
    if not allows(version, Feature.RELATIVE_PATHS):
        return unknown, {}, {}
    wire = msgspec.json.decode(text, type=_PartsWire)
    of_snapshots = {}
    for snapshot in wire.snapshots or ():
        if others := snapshot.keys() - _KNOWN_OF_SNAPSHOTS:
            snapshot_id = msgspec.json.decode(snapshot["snapshot-id"], type=int)
            of_snapshots[snapshot_id] = {key: msgspec.json.decode(snapshot[key]) for key in sorted(others)}
    return unknown, of_snapshots, _parts(wire)


def _parts(wire: _PartsWire) -> Parts:
    parts: Parts = {}
    for kind, part_id in _IDS.items():
        for part in getattr(wire, kind.replace("-", "_")) or ():
            if inside := _unknown(part, _KNOWN_INSIDE):
                parts[kind, part_id(part)] = inside
    for name, ref in (wire.refs or {}).items():
        if others := {key: value for key, value in ref.items() if key not in _KNOWN_OF_REFS}:
            parts["refs", name] = others
    return parts


def _unknown(part: Any, known: frozenset[str]) -> dict[Any, Any]:
    """The unknown fields of an object with their values, and of known ones what is unknown in them; of a list by position."""
    match part:
        case dict():
            inside = {
                key: value if key not in known else _unknown(value, known)
                for key, value in part.items()
                if key not in _FREE
            }
            return {key: value for key, value in inside.items() if key not in known or value}
        case list():
            return {position: tree for position, each in enumerate(part) if (tree := _unknown(each, known))}
        case _:
            return {}


def with_unknown(document: JSON, parts: Mapping[tuple[str, Hashable], Any]) -> JSON:
    """The document of a table with the unknown fields of its parts where they were."""
    if not parts:
        return document
    for kind, part_id in _IDS.items():
        document[kind] = [_restored(part, parts.get((kind, part_id(part)), {})) for part in document[kind]]
    document["refs"] = {name: {**parts.get(("refs", name), {}), **ref} for name, ref in document["refs"].items()}
    return document


def _restored(part: Any, tree: Any) -> Any:
    match part:
        case dict() if isinstance(tree, dict):
            known = {key: _restored(value, tree[key]) if key in tree else value for key, value in part.items()}
            return known | {key: value for key, value in tree.items() if key not in part}
        case list() if isinstance(tree, dict):
            return [_restored(each, tree.get(position, {})) for position, each in enumerate(part)]
        case _:
            return part


def names_of(tree: Any) -> set[str]:
    """The names of the unknown fields in a part."""
    if not isinstance(tree, dict):
        return set()
    own = {key for key in tree if isinstance(key, str) and key not in _KNOWN_INSIDE}
    return own.union(*(names_of(value) for key, value in tree.items() if key not in own))
