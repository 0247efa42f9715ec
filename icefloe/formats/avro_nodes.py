"""The Avro schema of a file as a tree of nodes, and the Iceberg types that these hold.

Named types are written out wherever they are used, under names of our own: references then need no care when columns are
left out, and names that only other libraries allow do not matter.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from icefloe.errors import CorruptFileError, InvalidInputError
from icefloe.schema import types
from icefloe.schema.schema import Schema


@dataclass(frozen=True, slots=True)
class AvroLeaf:
    """A value without parts: `wire` is Avro's type; numbers times `scale` are in the unit of `kind`.

    `zone_unknown` is set for a timestamp whose writer did not say whether it is adjusted to UTC.
    """

    wire: str
    kind: types.IcebergType
    scale: int = 1
    size: int = 0
    symbols: tuple[str, ...] = ()
    zone_unknown: bool = False
    wire_name: str = ""


@dataclass(frozen=True, slots=True)
class AvroField:
    """A field of a record; `wire_name` is what it is called while it is decoded."""

    name: str
    field_id: int | None
    doc: str | None
    node: "AvroNode"
    wire_name: str


@dataclass(frozen=True, slots=True)
class AvroRecord:
    """Fields, one after the other."""

    fields: tuple[AvroField, ...]
    is_variant: bool
    wire_name: str


@dataclass(frozen=True, slots=True)
class AvroArray:
    """Items in counted blocks."""

    items: "AvroNode"
    element_id: int | None


@dataclass(frozen=True, slots=True)
class AvroMap:
    """Pairs in counted blocks: Avro's map and an array of pairs have the same bytes."""

    key: "AvroNode"
    value: "AvroNode"
    key_id: int | None
    value_id: int | None
    wire_name: str


@dataclass(frozen=True, slots=True)
class AvroOption:
    """A value or null."""

    value: "AvroNode"
    null_first: bool


@dataclass(frozen=True, slots=True)
class AvroUnion:
    """Any other union, for which there is no Iceberg type; it can only be left out."""

    branches: tuple["AvroNode", ...]


AvroNode = AvroLeaf | AvroRecord | AvroArray | AvroMap | AvroOption | AvroUnion


def iceberg_schema(record: AvroRecord, location: str) -> Schema:
    """The columns of a file; those without a field id get negative ids, which no column of a table has."""
    try:
        return Schema(*_struct(record, count(-1, -1).__next__).fields)
    except InvalidInputError as problem:
        raise CorruptFileError(location, f"its Avro schema is not one of a table: {problem}") from None


def _struct(record: AvroRecord, fresh: Callable[[], int]) -> types.StructType:
    return types.StructType(
        *(_field(field.field_id, field.name, field.node, fresh, field.doc) for field in record.fields)
    )


def _field(
    field_id: int | None, name: str, node: AvroNode, fresh: Callable[[], int], doc: str | None = None
) -> types.NestedField:
    number = fresh() if field_id is None else field_id
    required = not isinstance(node, AvroOption)
    kind = _kind(node, fresh)
    return types.NestedField(number, name, kind, required and not isinstance(kind, types.UnknownType), doc)


def _kind(node: AvroNode, fresh: Callable[[], int]) -> types.IcebergType:
    match node:
        case AvroLeaf():
            return node.kind
        case AvroOption():
            return _kind(node.value, fresh)
        case AvroRecord(is_variant=True):
            return types.VariantType()
        case AvroRecord():
            return _struct(node, fresh)
        case AvroArray():
            element = _field(node.element_id, "element", node.items, fresh)
            return types.ListType(element.field_id, element.field_type, element.required)
        case AvroMap():
            key = _field(node.key_id, "key", node.key, fresh)
            value = _field(node.value_id, "value", node.value, fresh)
            return types.MapType(key.field_id, key.field_type, value.field_id, value.field_type, value.required)
        case AvroUnion():
            return types.UnknownType()


def pruned(node: AvroNode, file_kind: types.IcebergType, read_kind: types.IcebergType) -> AvroNode:
    """The node with only the fields that `read_kind`, a part of `file_kind`, has."""
    match node, file_kind, read_kind:
        case AvroOption(), _, _:
            return replace(node, value=pruned(node.value, file_kind, read_kind))
        case AvroRecord(), types.StructType(), types.StructType():
            kept = {field.field_id: field.field_type for field in read_kind.fields}
            fields = [
                replace(field, node=pruned(field.node, inner.field_type, kept[inner.field_id]))
                for field, inner in zip(node.fields, file_kind.fields, strict=True)
                if inner.field_id in kept
            ]
            return replace(node, fields=tuple(fields))
        case AvroArray(), types.ListType(), types.ListType():
            return replace(node, items=pruned(node.items, file_kind.element_type, read_kind.element_type))
        case AvroMap(), types.MapType(), types.MapType():
            return replace(
                node,
                key=pruned(node.key, file_kind.key_type, read_kind.key_type),
                value=pruned(node.value, file_kind.value_type, read_kind.value_type),
            )
        case _:
            return node


def with_wanted_zones(
    fields: tuple[types.NestedField, ...], record: AvroRecord, wanted: Schema
) -> tuple[types.NestedField, ...]:
    """The fields of a file with the table's word on zones where the file's writer said nothing."""
    return tuple(_with_zone(field, inner.node, wanted) for field, inner in zip(fields, record.fields, strict=True))


def _with_zone(field: types.NestedField, node: AvroNode, wanted: Schema) -> types.NestedField:
    if isinstance(node, AvroOption):
        node = node.value
    kind = field.field_type
    match node, kind:
        case AvroLeaf(zone_unknown=True), types.TimestampType() | types.TimestampNanoType():
            zoned = types.TimestamptzType() if isinstance(kind, types.TimestampType) else types.TimestamptzNanoType()
            asked = wanted.fields_by_id.get(field.field_id)
            return field if asked is None or asked.field_type != zoned else replace(field, field_type=zoned)
        case AvroRecord(), types.StructType():
            return replace(field, field_type=types.StructType(*with_wanted_zones(kind.fields, node, wanted)))
        case AvroArray(), types.ListType():
            return replace(
                field,
                field_type=replace(kind, element_type=_with_zone(kind.element_field, node.items, wanted).field_type),
            )
        case AvroMap(), types.MapType():
            key = _with_zone(kind.key_field, node.key, wanted).field_type
            value = _with_zone(kind.value_field, node.value, wanted).field_type
            return replace(field, field_type=replace(kind, key_type=key, value_type=value))
        case _:
            return field


def wire_schema(node: AvroNode) -> Any:
    """The Avro schema by which a node is decoded: no logical types, maps as arrays of pairs, names of our own."""
    match node:
        case AvroLeaf(wire="fixed"):
            return {"type": "fixed", "name": node.wire_name, "size": node.size}
        case AvroLeaf(wire="enum"):
            return {"type": "enum", "name": node.wire_name, "symbols": [f"s{i}" for i in range(len(node.symbols))]}
        case AvroLeaf():
            return node.wire
        case AvroRecord():
            return _wire_record(node.wire_name, {field.wire_name: field.node for field in node.fields})
        case AvroArray():
            return {"type": "array", "items": wire_schema(node.items)}
        case AvroMap():
            return {"type": "array", "items": _wire_record(node.wire_name, {"key": node.key, "value": node.value})}
        case AvroOption():
            value = wire_schema(node.value)
            return ["null", value] if node.null_first else [value, "null"]
        case AvroUnion():
            return [wire_schema(branch) for branch in node.branches]


def _wire_record(name: str, fields: Mapping[str, AvroNode]) -> dict[str, Any]:
    return {
        "type": "record",
        "name": name,
        "fields": [{"name": inner, "type": wire_schema(node)} for inner, node in fields.items()],
    }


def smallest_size(node: AvroNode) -> int:
    """The fewest bytes that a value takes."""
    match node:
        case AvroLeaf():
            return {"null": 0, "float": 4, "double": 8, "fixed": node.size}.get(node.wire, 1)
        case AvroRecord():
            return sum(smallest_size(field.node) for field in node.fields)
        case _:
            return 1
