"""The Avro schema that columns have in a file: types, ids, names and defaults (spec: Appendix A, Avro)."""

import re

from icefloe.schema import JSON, Schema, Value, projection as plans, types

AvroSchema = str | JSON | list["AvroSchema"]
"""An Avro schema as JSON."""

ROOT_NAME = "table"
_AVRO_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_PLAIN: dict[type[types.IcebergType], AvroSchema] = {
    types.UnknownType: "null",
    types.BooleanType: "boolean",
    types.IntegerType: "int",
    types.LongType: "long",
    types.FloatType: "float",
    types.DoubleType: "double",
    types.StringType: "string",
    types.BinaryType: "bytes",
    types.GeometryType: "bytes",
    types.GeographyType: "bytes",
    types.DateType: {"type": "int", "logicalType": "date"},
    types.TimeType: {"type": "long", "logicalType": "time-micros"},
    types.TimestampType: {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": False},
    types.TimestamptzType: {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": True},
    types.TimestampNanoType: {"type": "long", "logicalType": "timestamp-nanos", "adjust-to-utc": False},
    types.TimestamptzNanoType: {"type": "long", "logicalType": "timestamp-nanos", "adjust-to-utc": True},
}


def avro_schema_of(schema: Schema) -> JSON:
    """The Avro schema of data files with these columns."""
    return avro_record(schema.fields, ROOT_NAME)


def avro_record(fields: tuple[types.NestedField, ...], name: str) -> JSON:
    """The Avro record of that name with these fields and their ids, as the Java library writes it."""
    return _Emitter().record(fields, name)


def null_comes_second(field: types.NestedField) -> bool:
    """Whether the union of an optional field has null as its second branch: Avro wants the default's type first."""
    return field.optional and _has_avro_default(field)


def decimal_width(precision: int) -> int:
    """The fewest bytes that hold every decimal of that precision."""
    limit: int = 10**precision - 1
    return (limit.bit_length() + 8) // 8


def avro_name(name: str) -> str:
    """The name as Avro allows it: other characters as `_x` and their code, a leading digit after an underscore."""
    if _AVRO_NAME.fullmatch(name):
        return name
    fixed = "".join(c if c == "_" or (c.isascii() and c.isalnum()) else f"_x{ord(c):X}" for c in name)
    return f"_{fixed}" if fixed[:1].isdigit() else fixed


class _Emitter:
    """Named types are written out once and by name after that, as Avro demands."""

    def __init__(self) -> None:
        self._named: set[str] = set()

    def record(self, fields: tuple[types.NestedField, ...], name: str) -> JSON:
        names = _unique_names(fields)
        return {
            "type": "record",
            "name": name,
            "fields": [self.field(field, names[field.field_id]) for field in fields],
        }

    def field(self, field: types.NestedField, name: str) -> JSON:
        avro_type = self.type(field.field_type, field.field_id)
        document: JSON = {"name": name, "type": avro_type}
        if field.optional and avro_type != "null":
            document["type"] = [avro_type, "null"] if null_comes_second(field) else ["null", avro_type]
        if _has_avro_default(field):
            document["default"] = _avro_default(plans.default_value(field), field.field_type)
        elif field.optional:
            document["default"] = None
        if field.doc:
            document["doc"] = field.doc
        if name != field.name:
            document["iceberg-field-name"] = field.name
        document["field-id"] = field.field_id
        return document

    def type(self, kind: types.IcebergType, field_id: int) -> AvroSchema:
        match kind:
            case types.StructType():
                return self.record(kind.fields, f"r{field_id}")
            case types.ListType():
                items = _option(self.type(kind.element_type, kind.element_id), kind.element_required)
                return {"type": "array", "items": items, "element-id": kind.element_id}
            case types.MapType():
                return self.map(kind)
            case types.VariantType():
                parts = [{"name": "metadata", "type": "bytes"}, {"name": "value", "type": "bytes"}]
                return {"type": "record", "logicalType": "variant", "name": f"r{field_id}", "fields": parts}
            case types.UUIDType():
                return self.once("uuid_fixed", {"type": "fixed", "size": 16, "logicalType": "uuid"})
            case types.FixedType():
                return self.once(f"fixed_{kind.length}", {"type": "fixed", "size": kind.length})
            case types.DecimalType():
                logical = {"logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
                fixed = {"type": "fixed", "size": decimal_width(kind.precision)} | logical
                return self.once(f"decimal_{kind.precision}_{kind.scale}", fixed)
            case _:
                return _PLAIN[type(kind)]

    def map(self, kind: types.MapType) -> JSON:
        """Avro's own map for string keys; an array of pairs for others."""
        key = self.type(kind.key_type, kind.key_id)
        value = _option(self.type(kind.value_type, kind.value_id), kind.value_required)
        if isinstance(kind.key_type, types.StringType):
            return {"type": "map", "values": value, "key-id": kind.key_id, "value-id": kind.value_id}
        pair: list[JSON] = [
            {"name": "key", "type": key, "field-id": kind.key_id},
            {"name": "value", "type": value, "field-id": kind.value_id},
        ]
        if not kind.value_required:
            pair[1]["default"] = None
        record = {"type": "record", "name": f"k{kind.key_id}_v{kind.value_id}", "fields": pair}
        return {"type": "array", "logicalType": "map", "items": record}

    def once(self, name: str, document: JSON) -> AvroSchema:
        if name in self._named:
            return name
        self._named.add(name)
        return document | {"name": name}


def _option(avro_type: AvroSchema, required: bool) -> AvroSchema:
    return avro_type if required else ["null", avro_type]


def _unique_names(fields: tuple[types.NestedField, ...]) -> dict[int, str]:
    """Avro names by field id; the id distinguishes names that become the same."""
    taken = {field.name for field in fields if avro_name(field.name) == field.name}
    names: dict[int, str] = {}
    for field in fields:
        name = avro_name(field.name)
        if name != field.name:
            while name in taken:
                name = f"{name}_{field.field_id}"
            taken.add(name)
        names[field.field_id] = name
    return names


def _has_avro_default(field: types.NestedField) -> bool:
    """Lists and maps have none: Avro could not say a value for an optional element."""
    if field.initial_default is None:
        return False
    match field.field_type:
        case types.StructType():
            return all(inner.optional or _has_avro_default(inner) for inner in field.field_type)
        case types.PrimitiveType():
            return True
        case _:
            return False


def _avro_default(value: Value, kind: types.IcebergType) -> object:
    if value is None:
        return None
    match kind:
        case types.StructType():
            names = _unique_names(kind.fields)
            by_id = dict(value)
            return {
                names[field.field_id]: _avro_default(by_id[field.field_id], field.field_type)
                if _has_avro_default(field)
                else None
                for field in kind.fields
            }
        case types.DecimalType():
            unscaled = int(value.scaleb(kind.scale))
            return unscaled.to_bytes(decimal_width(kind.precision), "big", signed=True).decode("latin-1")
        case types.UUIDType():
            return value.bytes.decode("latin-1")
        case types.FixedType() | types.BinaryType() | types.GeometryType() | types.GeographyType():
            return value.decode("latin-1")
        case _:
            return value
