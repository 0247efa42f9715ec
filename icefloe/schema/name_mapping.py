"""Field ids, by column name, for files without ids, and their JSON in a table property (spec: Column Projection, Name Mapping)."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from icefloe.errors import InvalidSchemaError
from icefloe.schema.ids import renumber_type
from icefloe.schema.schema import Schema
from icefloe.schema.types import JSON, NestedField, NestedType


@dataclass(frozen=True, slots=True)
class MappedField:
    """Names that stand for one field, and the mapping of what is nested in it.

    Without an id: a column of the file that the schema lacks. Without names: a field that imported files lack. A dot is
    part of a name. A list's element is named `element`, a map's key and value `key` and `value`.
    """

    field_id: int | None
    names: tuple[str, ...]
    fields: tuple["MappedField", ...] = ()


@dataclass(frozen=True, slots=True)
class NameMapping:
    """The mapping of a whole schema; ids are unique in it, names among the fields of one parent."""

    fields: tuple[MappedField, ...] = ()

    def __post_init__(self) -> None:
        _check_names(self.fields, "")
        ids = Counter(field.field_id for field in _walk(self.fields) if field.field_id is not None)
        for field_id, count in ids.most_common(1):
            if count > 1:
                raise InvalidSchemaError(f"name mapping has the field id {field_id} twice; ids must be unique")

    def holds(self, other: "NameMapping") -> bool:
        """Whether every name of the other mapping stands for the same field in this one."""
        return _holds(self.fields, other.fields)


def create_name_mapping(schema: Schema) -> NameMapping:
    """The mapping in which every field has the one name that it has in the schema."""
    return NameMapping(tuple(map(_map_field, schema.fields)))


def update_name_mapping(mapping: NameMapping, before: Schema, after: Schema) -> NameMapping:
    """The mapping after an evolution of the schema: new names beside the old ones, and new fields.

    A name that another field of the same struct gets now no longer stands for the one that had it. Fields that were
    dropped keep their names, since older files still have them.
    """
    renamed = {
        field_id: field.name
        for field_id, field in after.fields_by_id.items()
        if field_id in before.fields_by_id and before.fields_by_id[field_id].name != field.name
    }
    added: dict[int | None, list[NestedField]] = {}
    for field_id, field in after.fields_by_id.items():
        parent = after.parents.get(field_id)
        if field_id not in before.fields_by_id and (parent is None or parent in before.fields_by_id):
            added.setdefault(parent, []).append(field)
    return NameMapping(_update_fields(mapping.fields, None, renamed, added))


def apply_name_mapping(schema: Schema, mapping: NameMapping) -> Schema:
    """The schema of a file, with ids from the mapping for the fields that have none (a negative id).

    Ids in the file itself are never overridden; fields that the mapping does not know stay as they are.
    """
    present = {field_id for field_id in schema.fields_by_id if field_id >= 0}
    new_ids: dict[int, int] = {}
    _match(schema.fields, mapping.fields, present, new_ids)

    def new_id(old: int) -> int:
        return new_ids.get(old, old)

    return Schema(
        *(
            replace(field, field_id=new_id(field.field_id), field_type=renumber_type(field.field_type, new_id))
            for field in schema.fields
        ),
        schema_id=schema.schema_id,
    )


def _holds(fields: Sequence[MappedField], others: Sequence[MappedField]) -> bool:
    for other in others:
        for name in other.names:
            match = next((field for field in fields if name in field.names), None)
            if match is None or match.field_id != other.field_id or not _holds(match.fields, other.fields):
                return False
    return True


def _map_field(field: NestedField) -> MappedField:
    inner = field.field_type.fields if isinstance(field.field_type, NestedType) else ()
    return MappedField(field.field_id, (field.name,), tuple(map(_map_field, inner)))


def _walk(fields: Iterable[MappedField]) -> Iterable[MappedField]:
    for field in fields:
        yield field
        yield from _walk(field.fields)


def _check_names(fields: tuple[MappedField, ...], around: str) -> None:
    seen: set[str] = set()
    for field in fields:
        for name in field.names:
            if name in seen:
                raise InvalidSchemaError(
                    f"name mapping has the name {name!r} twice" + (f" below {around!r}" if around else " at the top")
                )
            seen.add(name)
        _check_names(field.fields, field.names[0] if field.names else str(field.field_id))


def _update_fields(
    fields: tuple[MappedField, ...],
    parent: int | None,
    renamed: dict[int, str],
    added: dict[int | None, list[NestedField]],
) -> tuple[MappedField, ...]:
    new = added.get(parent, [])
    taken = {field.name: field.field_id for field in new}
    for field in fields:
        if field.field_id in renamed:
            taken[renamed[field.field_id]] = field.field_id
    updated = [_update_field(field, taken, renamed, added) for field in fields]
    return (*updated, *map(_map_field, new))


def _update_field(
    field: MappedField,
    taken: dict[str, int],
    renamed: dict[int, str],
    added: dict[int | None, list[NestedField]],
) -> MappedField:
    names = [name for name in field.names if taken.get(name, field.field_id) == field.field_id]
    if field.field_id is None:
        return replace(field, names=tuple(names))
    if field.field_id in renamed and renamed[field.field_id] not in names:
        names.append(renamed[field.field_id])
    return MappedField(field.field_id, tuple(names), _update_fields(field.fields, field.field_id, renamed, added))


def _match(
    fields: Iterable[NestedField], mapped: tuple[MappedField, ...], present: set[int], new_ids: dict[int, int]
) -> None:
    by_name = {name: field for field in mapped for name in field.names}
    for field in fields:
        match = by_name.get(field.name)
        if match is None:
            continue
        if field.field_id < 0 and match.field_id is not None and match.field_id not in present:
            present.add(match.field_id)
            new_ids[field.field_id] = match.field_id
        if isinstance(field.field_type, NestedType):
            _match(field.field_type.fields, match.fields, present, new_ids)


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
    return NameMapping(_all_from_json(document, "the name mapping"))


def name_mapping_to_json(mapping: NameMapping) -> list[JSON]:
    """The mapping as a JSON list."""
    return [_mapped_to_json(field) for field in mapping.fields]


def _mapped_to_json(field: MappedField) -> JSON:
    document: JSON = {}
    if field.field_id is not None:
        document["field-id"] = field.field_id
    document["names"] = list(field.names)
    if field.fields:
        document["fields"] = [_mapped_to_json(inner) for inner in field.fields]
    return document


def _all_from_json(document: object, what: str) -> tuple[MappedField, ...]:
    if not isinstance(document, list | tuple):
        raise _wrong(what, "a list of mapped fields", document)
    return tuple(_mapped_from_json(entry, f"entry {index} of {what}") for index, entry in enumerate(document))


def _mapped_from_json(document: object, what: str) -> MappedField:
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
    fields = () if inner is None else _all_from_json(inner, f"fields in {what}")
    return MappedField(field_id, tuple(dict.fromkeys(names)), fields)


def _wrong(what: str, expected: str, value: object) -> InvalidSchemaError:
    return InvalidSchemaError(f"{what} is {value!r:.200}; it must be {expected}")
