"""What the Avro schema of a file says, as nodes, for files of any writer.

Unions may have null in either order, times may be in milliseconds, UUIDs may be strings and decimals may be bytes.
"""

import json
from typing import Any

from icefloe.avro import nodes as av
from icefloe.errors import CorruptFileError
from icefloe.schema import JSON, types

MAX_DEPTH = 64
"""How deep a schema may be nested; deeper ones are refused, not followed."""

MAX_NODES = 100_000
"""How many nodes a schema may have with its named types written out; more are refused, since names can multiply."""


def parse_avro_schema(text: bytes | str, location: str) -> av.AvroNode:
    """The tree of an Avro schema; `location` names the file in errors."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CorruptFileError(location, f"its Avro schema is not one: {error}") from error
    return _Parser(location).node(document, "", 0)


class _Parser:
    def __init__(self, location: str) -> None:
        self._location = location
        self._named: dict[str, tuple[JSON, str]] = {}
        self._open: list[str] = []
        self._nodes = 0

    def bad(self, problem: str) -> CorruptFileError:
        return CorruptFileError(self._location, f"its Avro schema is not one: {problem}")

    def node(self, document: Any, space: str, depth: int) -> av.AvroNode:
        self._nodes += 1
        if depth > MAX_DEPTH or self._nodes > MAX_NODES:
            raise self.bad(f"it is nested deeper than {MAX_DEPTH} levels or has more than {MAX_NODES} parts")
        match document:
            case str() if document in av.PLAIN_TYPES:
                return av.AvroPrimitive(document)
            case str():
                return self.reference(document, space, depth)
            case list():
                return av.AvroUnion(tuple(self.node(branch, space, depth + 1) for branch in document))
            case {"type": str(kind)} if kind in av.PLAIN_TYPES:
                return _logical(kind, document)
            case {"type": "record" | "error" | "fixed" | "enum"}:
                return self.definition(document, space, depth)
            case {"type": "array"}:
                return self.array(document, self.node(document.get("items"), space, depth + 1))
            case {"type": "map"}:
                values = self.node(document.get("values"), space, depth + 1)
                return av.AvroMap(values, _id(document, "key-id"), _id(document, "value-id"))
            case {"type": (str() | dict() | list()) as inner}:
                return self.node(inner, space, depth + 1)
            case _:
                raise self.bad(f"{document!r:.200} is not a type")

    def reference(self, name: str, space: str, depth: int) -> av.AvroNode:
        for full in (f"{space}.{name}", name):
            if full in self._named:
                document, inner = self._named[full]
                return self.named(document, full, inner, depth)
        raise self.bad(f"type {name!r:.200} is unknown")

    def definition(self, document: JSON, space: str, depth: int) -> av.AvroNode:
        name = document.get("name")
        if not isinstance(name, str) or not name:
            raise self.bad("a named type has no name")
        namespace = document.get("namespace", space)
        inner = name.rpartition(".")[0] if "." in name else namespace if isinstance(namespace, str) else space
        full = name if "." in name or not inner else f"{inner}.{name}"
        self._named[full] = document, inner
        return self.named(document, full, inner, depth)

    def named(self, document: JSON, full: str, space: str, depth: int) -> av.AvroNode:
        match document["type"]:
            case "fixed":
                return self.fixed(document)
            case "enum":
                return self.enum(document, full)
            case _ if full in self._open:
                return av.AvroRecursion(len(self._open) - self._open.index(full))
            case _:
                self._open.append(full)
                record = self.record(document, full, space, depth)
                self._open.pop()
                return record

    def fixed(self, document: JSON) -> av.AvroFixed:
        size = document.get("size")
        if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size < 1 << 30:
            raise self.bad(f"a fixed type has the size {size!r:.50}")
        return av.AvroFixed(size, _fixed_meaning(document, size))

    def enum(self, document: JSON, full: str) -> av.AvroEnum:
        symbols = document.get("symbols")
        if not isinstance(symbols, list) or not all(isinstance(symbol, str) for symbol in symbols):
            raise self.bad(f"the enum {full!r} has no list of symbols")
        return av.AvroEnum(tuple(symbols))

    def record(self, document: JSON, full: str, space: str, depth: int) -> av.AvroRecord:
        fields = document.get("fields")
        if not isinstance(fields, list):
            raise self.bad(f"record {full!r} has no list of fields")
        parsed = tuple(self.field(field, full, space, depth) for field in fields)
        is_variant = document.get("logicalType") == "variant" and {"metadata", "value"} == {f.column for f in parsed}
        return av.AvroRecord(parsed, is_variant)

    def field(self, field: object, full: str, space: str, depth: int) -> av.AvroField:
        if not isinstance(field, dict) or not isinstance(field.get("name"), str):
            raise self.bad(f"record {full!r} has a field without a name")
        name, column, doc = field["name"], field.get("iceberg-field-name"), field.get("doc")
        node = self.node(field.get("type"), space, depth + 1)
        return av.AvroField(
            name,
            _id(field, "field-id"),
            node,
            column if isinstance(column, str) else name,
            doc if isinstance(doc, str) else None,
        )

    def array(self, document: JSON, items: av.AvroNode) -> av.AvroArray:
        is_map = document.get("logicalType") == "map" and isinstance(items, av.AvroRecord) and len(items.fields) == 2
        return av.AvroArray(items, _id(document, "element-id"), is_map)


def _id(document: JSON, key: str) -> int | None:
    number = document.get(key)
    return number if isinstance(number, int) and not isinstance(number, bool) and 0 <= number < 1 << 31 else None


_LOGICAL: dict[tuple[str, str], tuple[types.IcebergType, int]] = {
    ("int", "date"): (types.DateType(), 1),
    ("int", "time-millis"): (types.TimeType(), 1000),
    ("long", "time-micros"): (types.TimeType(), 1),
    ("long", "local-timestamp-millis"): (types.TimestampType(), 1000),
    ("long", "local-timestamp-micros"): (types.TimestampType(), 1),
    ("long", "local-timestamp-nanos"): (types.TimestampNanoType(), 1),
    ("string", "uuid"): (types.UUIDType(), 1),
}
"""What a logical type stands for, and how many of its units one of the stored ones is."""

_MICROS = types.TimestampType(), types.TimestamptzType()
_ZONED: dict[str, tuple[tuple[types.IcebergType, types.IcebergType], int]] = {
    "timestamp-millis": (_MICROS, 1000),
    "timestamp-micros": (_MICROS, 1),
    "timestamp-nanos": ((types.TimestampNanoType(), types.TimestamptzNanoType()), 1),
}
"""The same for those that `adjust-to-utc` speaks of, without and with a zone."""


def _logical(kind: str, document: JSON) -> av.AvroPrimitive:
    """A primitive with what its logical type says; one that is not known says nothing (Avro: Logical Types)."""
    logical, utc = str(document.get("logicalType")), document.get("adjust-to-utc")
    if (kind, logical) == ("bytes", "decimal"):
        return av.AvroPrimitive(kind, _decimal(document))
    if kind == "long" and logical in _ZONED:
        meanings, scale = _ZONED[logical]
        return av.AvroPrimitive(kind, meanings[utc is True], scale, utc is None)
    return av.AvroPrimitive(kind, *_LOGICAL.get((kind, logical), ()))


def _fixed_meaning(document: JSON, size: int) -> types.IcebergType:
    match document.get("logicalType"):
        case "uuid" if size == 16:
            return types.UUIDType()
        case "decimal" if decimal := _decimal(document):
            return decimal
        case _:
            return types.FixedType(size) if size else types.UnknownType()


def _decimal(document: JSON) -> types.DecimalType | None:
    precision, scale = document.get("precision"), document.get("scale", 0)
    if isinstance(precision, int) and isinstance(scale, int) and 1 <= precision <= 38 and 0 <= scale <= precision:
        return types.DecimalType(precision, scale)
    return None
