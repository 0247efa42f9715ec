"""What the Avro schema of a file says, as nodes, whoever wrote it.

Unions may have null in either order, times may be in milliseconds, UUIDs may be strings and decimals may be bytes.
"""

import json
from collections.abc import Mapping
from typing import Any

from icefloe.errors import CorruptFileError, InvalidInputError, InvalidTypeError
from icefloe.formats.avro_nodes import (
    AvroArray,
    AvroField,
    AvroLeaf,
    AvroMap,
    AvroNode,
    AvroOption,
    AvroRecord,
    AvroUnion,
    smallest_size,
)
from icefloe.schema import types

MAX_DEPTH = 64
MAX_NODES = 100_000

_PLAIN: dict[str, types.IcebergType] = {
    "null": types.UnknownType(),
    "boolean": types.BooleanType(),
    "int": types.IntegerType(),
    "long": types.LongType(),
    "float": types.FloatType(),
    "double": types.DoubleType(),
    "bytes": types.BinaryType(),
    "string": types.StringType(),
}


def parse_file_schema(text: bytes | str, location: str) -> AvroRecord:
    """The tree of a file's Avro schema, which must be a record."""
    try:
        found = _Parser(location).node(json.loads(text), "", 0)
    except (ValueError, RecursionError, InvalidInputError) as problem:
        raise CorruptFileError(location, f"its Avro schema is not one: {problem}") from None
    if not isinstance(found, AvroRecord):
        raise CorruptFileError(location, "its rows are not Avro records")
    return found


class _Parser:
    def __init__(self, location: str) -> None:
        self._location = location
        self._named: dict[str, tuple[dict[str, Any], str]] = {}
        self._open: set[str] = set()
        self._nodes = 0

    def node(self, document: Any, space: str, depth: int) -> AvroNode:
        self._nodes += 1
        if depth > MAX_DEPTH or self._nodes > MAX_NODES:
            raise InvalidTypeError(f"it is nested deeper than {MAX_DEPTH} levels or has more than {MAX_NODES} parts")
        match document:
            case str() if document in _PLAIN:
                return AvroLeaf(document, _PLAIN[document])
            case str():
                return self.reference(document, space, depth)
            case list():
                return self.union([self.node(branch, space, depth + 1) for branch in document])
            case {"type": str(kind)} if kind in _PLAIN:
                return _logical(kind, document)
            case {"type": "record" | "error" | "fixed" | "enum"}:
                return self.definition(document, space, depth)
            case {"type": "array", "items": items}:
                return self.array(document, self.node(items, space, depth + 1))
            case {"type": "map", "values": values}:
                return AvroMap(
                    AvroLeaf("string", types.StringType()),
                    self.node(values, space, depth + 1),
                    _id(document, "key-id"),
                    _id(document, "value-id"),
                    self.wire_name(),
                )
            case {"type": (str() | dict() | list()) as inner} if inner not in ("array", "map"):
                return self.node(inner, space, depth + 1)
            case _:
                raise InvalidTypeError(f"{document!r:.200} is not a type")

    def wire_name(self) -> str:
        self._nodes += 1
        return f"n{self._nodes}"

    def reference(self, name: str, space: str, depth: int) -> AvroNode:
        for full in (f"{space}.{name}", name):
            if full in self._named:
                document, inner = self._named[full]
                return self.named(document, full, inner, depth)
        raise InvalidTypeError(f"type {name!r:.200} is unknown")

    def definition(self, document: dict[str, Any], space: str, depth: int) -> AvroNode:
        name = document.get("name")
        if not isinstance(name, str) or not name:
            raise InvalidTypeError("a named type has no name")
        given = document.get("namespace", space)
        inner = name.rpartition(".")[0] if "." in name else given if isinstance(given, str) else space
        full = name if "." in name or not inner else f"{inner}.{name}"
        self._named[full] = document, inner
        return self.named(document, full, inner, depth)

    def named(self, document: dict[str, Any], full: str, space: str, depth: int) -> AvroNode:
        if full in self._open:
            raise InvalidTypeError(f"type {full!r} holds itself, which no table can")
        match document["type"]:
            case "fixed":
                return _fixed(document, self.wire_name())
            case "enum":
                symbols = document.get("symbols")
                if not isinstance(symbols, list) or not all(isinstance(each, str) for each in symbols):
                    raise InvalidTypeError(f"the enum {full!r} has no list of symbols")
                return AvroLeaf("enum", types.StringType(), symbols=tuple(symbols), wire_name=self.wire_name())
            case _:
                self._open.add(full)
                found = self.record(document, full, space, depth)
                self._open.discard(full)
                return found

    def record(self, document: dict[str, Any], full: str, space: str, depth: int) -> AvroRecord:
        fields = document.get("fields")
        if not isinstance(fields, list):
            raise InvalidTypeError(f"record {full!r} has no list of fields")
        found = []
        for place, field in enumerate(fields):
            if not isinstance(field, dict) or not isinstance(field.get("name"), str):
                raise InvalidTypeError(f"record {full!r} has a field without a name")
            name = field.get("iceberg-field-name", field["name"])
            doc = field.get("doc")
            found.append(
                AvroField(
                    name if isinstance(name, str) else field["name"],
                    _id(field, "field-id"),
                    doc if isinstance(doc, str) else None,
                    self.node(field.get("type"), space, depth + 1),
                    f"f{place}",
                )
            )
        is_variant = document.get("logicalType") == "variant" and {"metadata", "value"} == {f.name for f in found}
        return AvroRecord(tuple(found), is_variant, self.wire_name())

    def array(self, document: Mapping[str, Any], items: AvroNode) -> AvroNode:
        if smallest_size(items) == 0:
            raise InvalidTypeError("it has an array whose items take no bytes, which no table can")
        if document.get("logicalType") == "map" and isinstance(items, AvroRecord) and len(items.fields) == 2:
            key, value = items.fields
            return AvroMap(key.node, value.node, key.field_id, value.field_id, items.wire_name)
        return AvroArray(items, _id(document, "element-id"))

    def union(self, branches: list[AvroNode]) -> AvroNode:
        nulls = [isinstance(branch, AvroLeaf) and branch.wire == "null" for branch in branches]
        if len(branches) == 2 and sum(nulls) == 1:
            return AvroOption(branches[nulls.index(False)], nulls[0])
        return AvroUnion(tuple(branches))


def _id(document: Mapping[str, Any], key: str) -> int | None:
    found = document.get(key)
    return found if isinstance(found, int) and not isinstance(found, bool) and 0 <= found < 1 << 31 else None


def _logical(wire: str, document: Mapping[str, Any]) -> AvroLeaf:
    """A primitive with what its logical type says; one that is not known says nothing (Avro: Logical Types)."""
    utc = document.get("adjust-to-utc")
    match wire, document.get("logicalType"):
        case "int", "date":
            return AvroLeaf(wire, types.DateType())
        case "int", "time-millis":
            return AvroLeaf(wire, types.TimeType(), 1000)
        case "long", "time-micros":
            return AvroLeaf(wire, types.TimeType())
        case "long", "timestamp-millis" | "timestamp-micros":
            kind: types.IcebergType = types.TimestamptzType() if utc is True else types.TimestampType()
            scale = 1000 if document["logicalType"] == "timestamp-millis" else 1
            return AvroLeaf(wire, kind, scale, zone_unknown=utc is None)
        case "long", "timestamp-nanos":
            kind = types.TimestamptzNanoType() if utc is True else types.TimestampNanoType()
            return AvroLeaf(wire, kind, zone_unknown=utc is None)
        case "long", "local-timestamp-millis" | "local-timestamp-micros":
            return AvroLeaf(wire, types.TimestampType(), 1000 if document["logicalType"].endswith("millis") else 1)
        case "long", "local-timestamp-nanos":
            return AvroLeaf(wire, types.TimestampNanoType())
        case "string", "uuid":
            return AvroLeaf(wire, types.UUIDType())
        case "bytes", "decimal" if decimal := _decimal(document):
            return AvroLeaf(wire, decimal)
        case _:
            return AvroLeaf(wire, _PLAIN[wire])


def _fixed(document: Mapping[str, Any], wire_name: str) -> AvroLeaf:
    size = document.get("size")
    if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size < 1 << 30:
        raise InvalidTypeError(f"a fixed type has the size {size!r:.50}")
    match document.get("logicalType"):
        case "uuid" if size == 16:
            kind: types.IcebergType = types.UUIDType()
        case "decimal" if decimal := _decimal(document):
            kind = decimal
        case _:
            kind = types.FixedType(size) if size else types.UnknownType()
    return AvroLeaf("fixed", kind, size=size, wire_name=wire_name)


def _decimal(document: Mapping[str, Any]) -> types.DecimalType | None:
    precision, scale = document.get("precision"), document.get("scale", 0)
    if isinstance(precision, int) and isinstance(scale, int) and 1 <= precision <= 38 and 0 <= scale <= precision:
        return types.DecimalType(precision, scale)
    return None
