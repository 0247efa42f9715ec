"""How Iceberg types are named in ORC: the attributes of ORC types, which pyarrow keeps as field metadata (spec: Appendix A, ORC)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import count

import pyarrow as pa

from icefloe.errors import InvalidInputError, InvalidTypeError
from icefloe.formats.file_schema import with_fields
from icefloe.schema import VARIANT_STORAGE, Schema, type_from_arrow, type_to_arrow, types

_ID, _REQUIRED = b"iceberg.id", b"iceberg.required"
_LONG_TYPE, _BINARY_TYPE, _LENGTH = b"iceberg.long-type", b"iceberg.binary-type", b"iceberg.length"
_UNIT, _STRUCT_TYPE = b"iceberg.timestamp-unit", b"iceberg.struct-type"

_ATTRIBUTES: dict[type[types.IcebergType], dict[bytes, bytes]] = {
    types.LongType: {_LONG_TYPE: b"LONG"},
    types.TimeType: {_LONG_TYPE: b"TIME"},
    types.TimestampType: {_UNIT: b"MICROS"},
    types.TimestamptzType: {_UNIT: b"MICROS"},
    types.TimestampNanoType: {_UNIT: b"NANOS"},
    types.TimestamptzNanoType: {_UNIT: b"NANOS"},
    types.UUIDType: {_BINARY_TYPE: b"UUID"},
    types.FixedType: {_BINARY_TYPE: b"FIXED"},
    types.BinaryType: {_BINARY_TYPE: b"BINARY"},
    types.GeometryType: {_BINARY_TYPE: b"GEOMETRY"},
    types.GeographyType: {_BINARY_TYPE: b"GEOGRAPHY"},
    types.VariantType: {_STRUCT_TYPE: b"VARIANT"},
}


def orc_schema(schema: Schema) -> pa.Schema:
    """The Arrow schema by which pyarrow writes an ORC file with these columns, none of them of type unknown."""
    return pa.schema([_orc_field(field) for field in schema.fields])


def _orc_field(field: types.NestedField) -> pa.Field:
    attributes = {
        _ID: str(field.field_id).encode(),
        _REQUIRED: b"true" if field.required else b"false",
        **_ATTRIBUTES.get(type(field.field_type), {}),
    }
    if isinstance(field.field_type, types.FixedType):
        attributes[_LENGTH] = str(field.field_type.length).encode()
    return pa.field(field.name, _orc_type(field.field_type), True, attributes)


def _orc_type(kind: types.IcebergType) -> pa.DataType:
    match kind:
        case types.TimeType():
            return pa.int64()
        case types.UUIDType() | types.FixedType() | types.BinaryType() | types.GeometryType() | types.GeographyType():
            return pa.binary()
        case types.VariantType():
            return pa.struct([field.with_nullable(True) for field in VARIANT_STORAGE])
        case types.StructType():
            return pa.struct([_orc_field(field) for field in kind.fields])
        case types.ListType():
            return pa.list_(_orc_field(kind.element_field))
        case types.MapType():
            return pa.map_(_orc_field(kind.key_field).with_nullable(False), _orc_field(kind.value_field))
        case _:
            return type_to_arrow(kind)


Path = tuple[int, ...]
"""The positions that lead to a field from the row."""


@dataclass(frozen=True, slots=True)
class OrcColumns:
    """The columns of a file, negative ids where it has none, and where it does not say the whole type of a column."""

    schema: Schema
    vague: frozenset[Path]


def columns_of_orc(arrow_schema: pa.Schema) -> OrcColumns:
    """The columns of a file from the Arrow schema that pyarrow makes of it."""
    reader = _Reader()
    fields = [reader.field(field, (i,), field.name) for i, field in enumerate(arrow_schema)]
    return OrcColumns(Schema(*fields), frozenset(reader.vague))


def with_wanted_types(schema: Schema, vague: frozenset[Path], wanted: Schema) -> Schema:
    """The columns with the table's word on times, UUIDs and fixed where the file's writer said nothing of them."""
    return Schema(*(_retyped(field, (i,), vague, wanted) for i, field in enumerate(schema.fields)))


def _retyped(field: types.NestedField, path: Path, vague: frozenset[Path], wanted: Schema) -> types.NestedField:
    kind = field.field_type
    if isinstance(kind, types.NestedType):
        below = [_retyped(inner, (*path, i), vague, wanted) for i, inner in enumerate(kind.fields)]
        return replace(field, field_type=with_fields(kind, below))
    if path in vague and field.field_id in wanted.fields_by_id:
        table_type = wanted.fields_by_id[field.field_id].field_type
        fits = types.TimeType if isinstance(kind, types.LongType) else types.UUIDType | types.FixedType
        return replace(field, field_type=table_type) if isinstance(table_type, fits) else field
    return field


class _Reader:
    def __init__(self) -> None:
        self.vague: set[Path] = set()
        self._fresh: Callable[[], int] = count(-1, -1).__next__

    def field(self, field: pa.Field, path: Path, name: str) -> types.NestedField:
        attributes = field.metadata or {}
        field_id = _number(attributes.get(_ID))
        if field_id is None:
            field_id = self._fresh()
        kind = self.type(field.type, attributes, path, name)
        if isinstance(kind, types.LongType | types.BinaryType) and not attributes.keys() & {_LONG_TYPE, _BINARY_TYPE}:
            self.vague.add(path)
        required = attributes.get(_REQUIRED) == b"true" and not isinstance(kind, types.UnknownType)
        return types.NestedField(field_id, field.name, kind, required)

    def type(self, kind: pa.DataType, attributes: Mapping[bytes, bytes], path: Path, name: str) -> types.IcebergType:
        if pa.types.is_struct(kind):
            if attributes.get(_STRUCT_TYPE) == b"VARIANT":
                return types.VariantType()
            return types.StructType(
                *(self.field(field, (*path, i), f"{name}.{field.name}") for i, field in enumerate(kind))
            )
        if pa.types.is_map(kind):
            key = self.field(kind.key_field, (*path, 0), f"{name}.key")
            value = self.field(kind.item_field, (*path, 1), f"{name}.value")
            return types.MapType(key.field_id, key.field_type, value.field_id, value.field_type, value.required)
        if pa.types.is_list(kind):
            element = self.field(kind.value_field, (*path, 0), f"{name}.element")
            return types.ListType(element.field_id, element.field_type, element.required)
        return self.leaf(kind, attributes, name)

    def leaf(self, kind: pa.DataType, attributes: Mapping[bytes, bytes], name: str) -> types.IcebergType:
        if pa.types.is_timestamp(kind):
            nanos = attributes.get(_UNIT) == b"NANOS"
            if kind.tz is None:
                return types.TimestampNanoType() if nanos else types.TimestampType()
            return types.TimestamptzNanoType() if nanos else types.TimestamptzType()
        if pa.types.is_int64(kind) and attributes.get(_LONG_TYPE) == b"TIME":
            return types.TimeType()
        if pa.types.is_binary(kind):
            match attributes.get(_BINARY_TYPE):
                case b"UUID":
                    return types.UUIDType()
                case b"FIXED":
                    length = _number(attributes.get(_LENGTH))
                    if not length:
                        raise InvalidTypeError(f"column {name!r} is fixed, but its length is not said")
                    return types.FixedType(length)
                case _:
                    return types.BinaryType()
        try:
            return type_from_arrow(kind)
        except InvalidInputError:
            # A union, say: it can only be left out.
            return types.UnknownType()


def _number(text: bytes | None) -> int | None:
    try:
        number = -1 if text is None else int(text)
    except ValueError:
        return None
    return number if 0 <= number < 1 << 31 else None
