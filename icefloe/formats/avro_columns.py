"""The columns that an Avro file holds, and the parts of its rows that some of them are."""

from collections.abc import Callable
from dataclasses import replace
from itertools import count

from icefloe.avro import Part, nodes as av, parse_avro_schema
from icefloe.errors import CorruptFileError, InvalidInputError
from icefloe.formats.file_schema import with_fields
from icefloe.schema import Schema, types

_KEY = av.AvroPrimitive("string")
_ZONED: dict[type[types.IcebergType], types.IcebergType] = {
    types.TimestampType: types.TimestamptzType(),
    types.TimestampNanoType: types.TimestamptzNanoType(),
}


def file_record(text: bytes | str, location: str) -> av.AvroRecord:
    """What rows of a file are by its Avro schema, which must be one that a table can have."""
    record = parse_avro_schema(text, location)
    if not isinstance(record, av.AvroRecord):
        raise CorruptFileError(location, "its rows are not Avro records")
    if av.holds_itself(record):
        raise CorruptFileError(location, "its Avro schema has a type that holds itself, which no table can")
    if av.holds_empty_items(record):
        raise CorruptFileError(location, "its Avro schema has an array whose items take no bytes, which no table can")
    return record


def iceberg_schema(record: av.AvroRecord, location: str) -> Schema:
    """The columns of a file; those without a field id get negative ids, which no column of a table has."""
    try:
        return Schema(*_struct(record, count(-1, -1).__next__).fields)
    except InvalidInputError as problem:
        raise CorruptFileError(location, f"its Avro schema is not one of a table: {problem}") from None


def nodes_below(node: av.AvroNode) -> tuple[av.AvroNode, ...]:
    """The nodes of the fields of the type that a node holds: those of a struct, an element, or a key and a value."""
    match av.option_of(node) or node:
        case av.AvroRecord(fields, is_variant=False):
            return tuple(field.node for field in fields)
        case av.AvroArray(av.AvroRecord(fields), is_map=True):
            return tuple(field.node for field in fields)
        case av.AvroArray(items):
            return (items,)
        case av.AvroMap(values):
            return _KEY, values
        case _:
            return ()


def _struct(record: av.AvroRecord, fresh: Callable[[], int]) -> types.StructType:
    return types.StructType(
        *(_field(field.field_id, field.column, field.node, fresh, field.doc) for field in record.fields)
    )


def _field(
    field_id: int | None, name: str, node: av.AvroNode, fresh: Callable[[], int], doc: str | None = None
) -> types.NestedField:
    number = fresh() if field_id is None else field_id
    value = av.option_of(node)
    kind = _kind(node if value is None else value, fresh)
    return types.NestedField(number, name, kind, value is None and not isinstance(kind, types.UnknownType), doc)


def _kind(node: av.AvroNode, fresh: Callable[[], int]) -> types.IcebergType:
    match node:
        case av.AvroPrimitive(kind, meaning):
            return meaning or av.PLAIN_TYPES[kind]
        case av.AvroFixed(_, meaning):
            return meaning
        case av.AvroEnum():
            return types.StringType()
        case av.AvroRecord(is_variant=True):
            return types.VariantType()
        case av.AvroRecord():
            return _struct(node, fresh)
        case av.AvroArray(av.AvroRecord((key, value)), is_map=True):
            return _map((key.field_id, value.field_id), (key.node, value.node), fresh)
        case av.AvroArray(items, element_id):
            element = _field(element_id, "element", items, fresh)
            return types.ListType(element.field_id, element.field_type, element.required)
        case av.AvroMap(values, key_id, value_id):
            return _map((key_id, value_id), (_KEY, values), fresh)
        case _:
            # A union of several types: there is no Iceberg type for it, and it can only be left out.
            return types.UnknownType()


def _map(
    ids: tuple[int | None, int | None], nodes: tuple[av.AvroNode, av.AvroNode], fresh: Callable[[], int]
) -> types.MapType:
    key, value = (
        _field(field_id, name, node, fresh) for field_id, name, node in zip(ids, ("key", "value"), nodes, strict=True)
    )
    return types.MapType(key.field_id, key.field_type, value.field_id, value.field_type, value.required)


def chosen_part(file_kind: types.IcebergType, read_kind: types.IcebergType) -> Part:
    """The parts of a value of a file that are in `read_kind`, which has some of its fields, in their order."""
    if isinstance(file_kind, types.VariantType):
        return Part(((0, Part()), (1, Part())))
    if not isinstance(file_kind, types.NestedType) or not isinstance(read_kind, types.NestedType):
        return Part()
    read_types = {field.field_id: field.field_type for field in read_kind.fields}
    return Part(
        tuple(
            (i, chosen_part(field.field_type, read_types[field.field_id]))
            for i, field in enumerate(file_kind.fields)
            if field.field_id in read_types
        )
    )


def with_wanted_zones(
    fields: tuple[types.NestedField, ...], nodes: tuple[av.AvroNode, ...], wanted: Schema
) -> tuple[types.NestedField, ...]:
    """The fields of a file with the table's word on zones where the file's writer said nothing."""
    return tuple(_with_zone(field, node, wanted) for field, node in zip(fields, nodes, strict=True))


def _with_zone(field: types.NestedField, node: av.AvroNode, wanted: Schema) -> types.NestedField:
    node = av.option_of(node) or node
    kind = field.field_type
    if isinstance(kind, types.NestedType):
        return replace(field, field_type=with_fields(kind, with_wanted_zones(kind.fields, nodes_below(node), wanted)))
    if isinstance(node, av.AvroPrimitive) and node.zone_unknown and type(kind) in _ZONED:
        table_field = wanted.fields_by_id.get(field.field_id)
        if table_field is not None and table_field.field_type == _ZONED[type(kind)]:
            return replace(field, field_type=_ZONED[type(kind)])
    return field
