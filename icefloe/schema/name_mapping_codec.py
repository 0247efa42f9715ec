"""The JSON form of a name mapping, which is the value of a table property (spec: Appendix C, Name Mapping)."""

import json
from collections.abc import Mapping

from icefloe.errors import InvalidSchemaError
from icefloe.schema.name_mapping import MappedField, NameMapping
from icefloe.schema.types import JSON


def parse_name_mapping(text: str) -> NameMapping:
    """The mapping that a JSON text describes."""
    try:
        return name_mapping_from_json(json.loads(text))
    except (TypeError, ValueError) as problem:
        if isinstance(problem, InvalidSchemaError):
            raise
        raise InvalidSchemaError(f"name mapping {text!r:.200} is not JSON: {problem}") from None
    except RecursionError:
        raise InvalidSchemaError("the name mapping is nested too deeply to be read") from None


def format_name_mapping(mapping: NameMapping) -> str:
    """The mapping as JSON text."""
    return json.dumps(name_mapping_to_json(mapping), ensure_ascii=False)


def name_mapping_from_json(document: object) -> NameMapping:
    """The mapping that a JSON list describes."""
    return NameMapping(_fields_from_json(document, "the name mapping"))


def name_mapping_to_json(mapping: NameMapping) -> list[JSON]:
    """The mapping as a JSON list."""
    return [_field_to_json(field) for field in mapping.fields]


def _field_to_json(field: MappedField) -> JSON:
    document: JSON = {}
    if field.field_id is not None:
        document["field-id"] = field.field_id
    document["names"] = list(field.names)
    if field.fields:
        document["fields"] = [_field_to_json(inner) for inner in field.fields]
    return document


def _fields_from_json(document: object, what: str) -> tuple[MappedField, ...]:
    if not isinstance(document, list | tuple):
        raise _wrong(what, "a list of mapped fields", document)
    return tuple(_field_from_json(entry, f"entry {index} of {what}") for index, entry in enumerate(document))


def _field_from_json(document: object, what: str) -> MappedField:
    if not isinstance(document, Mapping):
        raise _wrong(what, "a JSON object", document)
    field_id = document.get("field-id")
    if field_id is not None and (isinstance(field_id, bool) or not isinstance(field_id, int) or field_id < 0):
        raise _wrong(f"field-id in {what}", "a field id", field_id)
    # Java reads a mapping without `names` as one with none.
    names = document.get("names", ())
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise _wrong(f"names in {what}", "a list of strings", names)
    inner = document.get("fields")
    fields = () if inner is None else _fields_from_json(inner, f"fields in {what}")
    return MappedField(field_id, tuple(dict.fromkeys(names)), fields)


def _wrong(what: str, wanted: str, value: object) -> InvalidSchemaError:
    return InvalidSchemaError(f"{what} is {value!r:.200}; it must be {wanted}")
