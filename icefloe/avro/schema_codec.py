"""What an Avro schema says about the bytes of a row: its JSON as a tree of nodes."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from icefloe.errors import CorruptFileError
from icefloe.schema import types

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
MAX_DEPTH = 64
"""How deep a schema may be nested; deeper ones are refused, not followed."""

MAX_NODES = 100_000
"""How many nodes a schema may have with its named types written out; more are refused, since names can multiply."""


@dataclass(frozen=True, slots=True)
class AvroNode:
    """Any node of an Avro schema."""


@dataclass(frozen=True, slots=True)
class AvroPrimitive(AvroNode):
    """`kind` is one of Avro's primitive names; `meaning` is the Iceberg type that its logical type stands for."""

    kind: str
    meaning: types.IcebergType | None = None


@dataclass(frozen=True, slots=True)
class AvroFixed(AvroNode):
    """Bytes of one length."""

    size: int
    meaning: types.IcebergType


@dataclass(frozen=True, slots=True)
class AvroEnum(AvroNode):
    """One of some names, stored as a number."""


@dataclass(frozen=True, slots=True)
class AvroField:
    """A field of a record; `field_id` is None in files that carry no ids."""

    name: str
    field_id: int | None
    node: AvroNode


@dataclass(frozen=True, slots=True)
class AvroRecord(AvroNode):
    """Fields, one after the other."""

    fields: tuple[AvroField, ...]


@dataclass(frozen=True, slots=True)
class AvroArray(AvroNode):
    """Items in counted blocks."""

    items: AvroNode


@dataclass(frozen=True, slots=True)
class AvroMap(AvroNode):
    """Pairs of a string and a value, in counted blocks."""

    values: AvroNode


@dataclass(frozen=True, slots=True)
class AvroUnion(AvroNode):
    """One of several, after its number."""

    branches: tuple[AvroNode, ...]


@dataclass(frozen=True, slots=True)
class AvroRecursion(AvroNode):
    """A named type inside itself, which no program can follow."""


def parse_avro_schema(text: bytes | str, location: str) -> AvroNode:
    """The tree of an Avro schema; `location` names the file in errors."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CorruptFileError(location, f"its Avro schema is not one: {error}") from error
    return _Parser(location).node(document, "", 0)


class _Parser:
    def __init__(self, location: str) -> None:
        self.location = location
        self.named: dict[str, AvroNode] = {}
        self.weights: dict[str, int] = {}
        self.nodes = 0

    def bad(self, problem: str) -> CorruptFileError:
        return CorruptFileError(self.location, f"its Avro schema is not one: {problem}")

    def node(self, document: object, space: str, depth: int) -> AvroNode:
        if depth > MAX_DEPTH:
            raise self.bad(f"it is nested deeper than {MAX_DEPTH} levels")
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise self.bad(f"it has more than {MAX_NODES} parts")
        match document:
            case str():
                return self.by_name(document, space)
            case list():
                return AvroUnion(tuple(self.node(branch, space, depth + 1) for branch in document))
            case dict():
                return self.complex(document, space, depth)
            case _:
                raise self.bad(f"{document!r} is not a type")

    def by_name(self, name: str, space: str) -> AvroNode:
        if name in PRIMITIVES:
            return AvroPrimitive(name)
        for full in (name if "." in name or not space else f"{space}.{name}", name):
            if full in self.named:
                self.nodes += self.weights.get(full, 0)
                return self.named[full]
        raise self.bad(f"type {name!r} is unknown")

    def complex(self, document: dict[str, Any], space: str, depth: int) -> AvroNode:
        kind = document.get("type")
        match kind:
            case "record" | "error":
                return self.record(document, space, depth)
            case "array":
                return AvroArray(self.node(document.get("items"), space, depth + 1))
            case "map":
                return AvroMap(self.node(document.get("values"), space, depth + 1))
            case "enum":
                return self.name_it(document, space, AvroEnum())
            case "fixed":
                size = document.get("size")
                if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size < 1 << 30:
                    raise self.bad(f"a fixed type has size {size!r}")
                return self.name_it(document, space, AvroFixed(size, _fixed_meaning(document, size)))
            case str() if kind in PRIMITIVES:
                return AvroPrimitive(kind, _meaning(kind, document))
            case str() | dict() | list():
                return self.node(kind, space, depth + 1)
            case _:
                raise self.bad(f"{kind!r} is not a type")

    def record(self, document: dict[str, Any], space: str, depth: int) -> AvroNode:
        full, inner = self.full_name(document, space)
        self.named[full] = AvroRecursion()
        before = self.nodes
        fields = document.get("fields")
        if not isinstance(fields, list):
            raise self.bad(f"record {full!r} has no list of fields")
        found = []
        for field in fields:
            if not isinstance(field, dict) or not isinstance(field.get("name"), str):
                raise self.bad(f"record {full!r} has a field without a name")
            field_id = field.get("field-id")
            number = field_id if isinstance(field_id, int) and not isinstance(field_id, bool) else None
            found.append(AvroField(field["name"], number, self.node(field.get("type"), inner, depth + 1)))
        self.named[full] = AvroRecord(tuple(found))
        self.weights[full] = self.nodes - before
        return self.named[full]

    def full_name(self, document: dict[str, Any], space: str) -> tuple[str, str]:
        name = document.get("name")
        if not isinstance(name, str) or not name:
            raise self.bad("a named type has no name")
        if "." in name:
            return name, name.rpartition(".")[0]
        inner = document.get("namespace", space)
        inner = inner if isinstance(inner, str) else space
        return (f"{inner}.{name}" if inner else name), inner

    def name_it(self, document: dict[str, Any], space: str, node: AvroNode) -> AvroNode:
        self.named[self.full_name(document, space)[0]] = node
        return node


def _meaning(kind: str, document: Mapping[str, Any]) -> types.IcebergType | None:
    utc = document.get("adjust-to-utc") is True
    match kind, document.get("logicalType"):
        case "int", "date":
            return types.DateType()
        case "long", "time-micros":
            return types.TimeType()
        case "long", "timestamp-micros":
            return types.TimestamptzType() if utc else types.TimestampType()
        case "long", "timestamp-nanos":
            return types.TimestamptzNanoType() if utc else types.TimestampNanoType()
        case "bytes", "decimal":
            return _decimal(document)
        case _:
            return None


def _fixed_meaning(document: Mapping[str, Any], size: int) -> types.IcebergType:
    match document.get("logicalType"):
        case "uuid" if size == 16:
            return types.UUIDType()
        case "decimal" if decimal := _decimal(document):
            return decimal
        case _:
            return types.FixedType(size) if size else types.BinaryType()


def _decimal(document: Mapping[str, Any]) -> types.DecimalType | None:
    precision, scale = document.get("precision"), document.get("scale", 0)
    if isinstance(precision, int) and isinstance(scale, int) and 1 <= precision <= 38 and 0 <= scale <= precision:
        return types.DecimalType(precision, scale)
    return None


def plain_meaning(node: AvroNode) -> types.IcebergType | None:
    """The Iceberg type of a leaf, with null taken out of unions; None where it has none."""
    match node:
        case AvroUnion(branches):
            found = [branch for branch in branches if branch != AvroPrimitive("null")]
            return plain_meaning(found[0]) if len(found) == 1 else None
        case AvroPrimitive(kind, meaning):
            return meaning or _PLAIN_MEANINGS.get(kind)
        case AvroFixed(_, meaning):
            return meaning
        case _:
            return None


_PLAIN_MEANINGS: dict[str, types.IcebergType] = {
    "null": types.UnknownType(),
    "boolean": types.BooleanType(),
    "int": types.IntegerType(),
    "long": types.LongType(),
    "float": types.FloatType(),
    "double": types.DoubleType(),
    "bytes": types.BinaryType(),
    "string": types.StringType(),
}
