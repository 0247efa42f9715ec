"""The JSON form of types, fields and schemas, both ways (spec: Appendix C, Schemas)."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TypeGuard

from icefloe.errors import InvalidInputError, InvalidSchemaError
from icefloe.schema import types
from icefloe.schema.schema import Schema
from icefloe.schema.value_codec import value_from_json, value_to_json

_MAX_ID = 2**31 - 1
_plain_type = lru_cache(maxsize=1024)(types.parse_type)


def schema_to_json(schema: Schema) -> types.JSON:
    """The schema as a JSON object."""
    document: types.JSON = {"type": "struct", "schema-id": schema.schema_id}
    if schema.identifier_field_ids:
        document["identifier-field-ids"] = list(schema.identifier_field_ids)
    document["fields"] = [field_to_json(field) for field in schema.fields]
    return document


def schema_from_json(document: object) -> Schema:
    """The schema that a JSON object describes; a v1 schema without an id gets 0."""
    if not isinstance(document, Mapping):
        raise _wrong("schema", "a JSON object", document)
    if document.get("type") != "struct":
        raise _wrong("schema", '{"type": "struct", ...}', document.get("type"))
    try:
        fields = _fields_from_json(document, "schema")
    except RecursionError:
        raise InvalidSchemaError("the schema is nested too deeply to be read") from None
    schema_id = document.get("schema-id")
    identifiers = document.get("identifier-field-ids")
    if identifiers is not None and not _is_list(identifiers):
        raise _wrong("schema: identifier-field-ids", "a list of field ids", identifiers)
    return Schema(
        *fields,
        schema_id=0 if schema_id is None else _integer(schema_id, "schema: schema-id"),
        identifier_field_ids=[_field_id(field_id, "schema: identifier-field-ids") for field_id in identifiers or ()],
    )


def field_to_json(field: types.NestedField) -> types.JSON:
    """A field of a struct as a JSON object."""
    document: types.JSON = {
        "id": field.field_id,
        "name": field.name,
        "required": field.required,
        "type": type_to_json(field.field_type),
    }
    if field.doc is not None:
        document["doc"] = field.doc
    if field.initial_default is not None:
        document["initial-default"] = value_to_json(field.initial_default, field.field_type)
    if field.write_default is not None:
        document["write-default"] = value_to_json(field.write_default, field.field_type)
    return document


def field_from_json(document: object, around: str = "") -> types.NestedField:
    """The field that a JSON object describes; `around` is the dotted name of the struct that holds it."""
    if not isinstance(document, Mapping):
        raise _wrong(f"a field of {around or 'a struct'}", "a JSON object", document)
    name = document.get("name")
    if not isinstance(name, str):
        raise _wrong(f"the name of a field of {around or 'a struct'}", "a string", name)
    path = f"{around}.{name}" if around else name
    required = document.get("required")
    if not isinstance(required, bool):
        raise _wrong(f"{path}: required", "true or false", required)
    doc = document.get("doc")
    if doc is not None and not isinstance(doc, str):
        raise _wrong(f"{path}: doc", "a string", doc)
    field_type = type_from_json(document.get("type"), path)
    return types.NestedField(
        _field_id(document.get("id"), f"{path}: id"),
        name,
        field_type,
        required,
        doc,
        _default_from_json(document, "initial-default", field_type, path),
        _default_from_json(document, "write-default", field_type, path),
    )


def type_to_json(field_type: types.IcebergType) -> str | types.JSON:
    """A type as JSON: its name, or an object for nested types."""
    match field_type:
        case types.StructType():
            return {"type": "struct", "fields": [field_to_json(field) for field in field_type]}
        case types.ListType():
            return {
                "type": "list",
                "element-id": field_type.element_id,
                "element": type_to_json(field_type.element_type),
                "element-required": field_type.element_required,
            }
        case types.MapType():
            return {
                "type": "map",
                "key-id": field_type.key_id,
                "key": type_to_json(field_type.key_type),
                "value-id": field_type.value_id,
                "value": type_to_json(field_type.value_type),
                "value-required": field_type.value_required,
            }
        case types.PrimitiveType() | types.VariantType():
            return str(field_type)
        case _:
            raise AssertionError(f"every type has a JSON form: {field_type!r}")


def type_from_json(document: object, path: str = "type") -> types.IcebergType:
    """The type that a JSON string or object describes; `path` names the field in errors."""
    if isinstance(document, str):
        try:
            return _plain_type(document)
        except InvalidInputError as problem:
            raise type(problem)(f"{path}: {problem}") from None
    if not isinstance(document, Mapping):
        raise _wrong(f"{path}: type", "a type name or a JSON object", document)
    match document.get("type"):
        case "struct":
            return types.StructType(*_fields_from_json(document, path))
        case "list":
            return types.ListType(
                _field_id(document.get("element-id"), f"{path}: element-id"),
                type_from_json(document.get("element"), f"{path}.element"),
                _boolean(document.get("element-required"), f"{path}: element-required"),
            )
        case "map":
            return types.MapType(
                _field_id(document.get("key-id"), f"{path}: key-id"),
                type_from_json(document.get("key"), f"{path}.key"),
                _field_id(document.get("value-id"), f"{path}: value-id"),
                type_from_json(document.get("value"), f"{path}.value"),
                _boolean(document.get("value-required"), f"{path}: value-required"),
            )
        case other:
            raise _wrong(f"{path}: type", "struct, list or map in a JSON object", other)


def _fields_from_json(document: Mapping[str, object], path: str) -> list[types.NestedField]:
    fields = document.get("fields")
    if not _is_list(fields):
        raise _wrong(f"{path}: fields", "a list", fields)
    around = "" if path == "schema" else path
    return [_plain_field(field) or field_from_json(field, around) for field in fields]


def _plain_field(document: object) -> types.NestedField | None:
    """A field without nested fields or defaults, cached because the schemas of a table share most of their fields."""
    if type(document) is not dict or type(document.get("type")) is not str:
        return None
    if "initial-default" in document or "write-default" in document:
        return None
    try:
        return _shared_field(
            document["id"], document["name"], document["required"], document["type"], document.get("doc")
        )
    except (KeyError, TypeError, InvalidInputError):
        return None


@lru_cache(maxsize=16_384, typed=True)
def _shared_field(
    field_id: object, name: object, required: object, field_type: object, doc: object
) -> types.NestedField:
    return field_from_json({"id": field_id, "name": name, "required": required, "type": field_type, "doc": doc})


def _default_from_json(
    document: Mapping[str, object], key: str, field_type: types.IcebergType, path: str
) -> types.Value:
    value = document.get(key)
    if value is None:
        return None
    try:
        return value_from_json(value, field_type)
    except InvalidInputError as problem:
        raise InvalidSchemaError(f"{path}: {key}: {problem}") from None


def _field_id(value: object, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MAX_ID:
        raise _wrong(what, f"an integer from 0 to {_MAX_ID}", value)
    return value


def _integer(value: object, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise _wrong(what, "an integer", value)
    return value


def _boolean(value: object, what: str) -> bool:
    if not isinstance(value, bool):
        raise _wrong(what, "true or false", value)
    return value


def _is_list(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _wrong(what: str, expected: str, value: object) -> InvalidSchemaError:
    shown = "missing" if value is None else f"{value!r:.200}"
    return InvalidSchemaError(f"{what} is {shown}; it must be {expected}")
