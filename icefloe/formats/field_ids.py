"""Whether the columns of a file have field ids, at every level, that are those of a table: readers go by nothing else.

A column without its id is null to every reader, for ever, and so is one in another place than the schema has it. The spec
wants ids on columns, fields of structs, elements of lists, keys and values of maps; not on the parts of a variant.
"""

from collections.abc import Collection, Iterable, Iterator

from icefloe.errors import CorruptFileError
from icefloe.schema import Schema, reserved, types


def check_written_ids(file: Schema, schema: Schema, location: str) -> None:
    """Fail if a file that was just written has not exactly the fields of a schema; ids that it lacks are negative."""
    problem = next(_differences(file.fields, schema.fields, ""), None)
    if problem is not None:
        raise CorruptFileError(location, f"it was written with other field ids than the schema's: {problem}")


def _differences(file: Iterable[types.NestedField], table: Iterable[types.NestedField], around: str) -> Iterator[str]:
    present = {field.field_id: field for field in file}
    for field in table:
        path = f"{around}{field.name}"
        if field.field_id not in present:
            names = ", ".join(f"{field.name!r} {_id_text(field.field_id)}" for field in present.values())
            yield f"none is {field.field_id}, that of column {path!r}; there are {names}"
            continue
        yield from _type_differences(present.pop(field.field_id).field_type, field.field_type, path)
    for field in present.values():
        yield f"{around}{field.name!r} {_id_text(field.field_id)}, and the schema has no such column"


def _type_differences(file: types.IcebergType, table: types.IcebergType, path: str) -> Iterator[str]:
    match file, table:
        case _, types.VariantType():
            # Its parts have no ids, and not all libraries tell a variant from a struct.
            if not isinstance(file, types.VariantType | types.StructType):
                yield f"column {path!r} is {file} and no variant"
        case types.NestedType(), types.NestedType() if type(file) is type(table):
            yield from _differences(file.fields, table.fields, f"{path}.")
        case _ if isinstance(file, types.NestedType) or isinstance(table, types.NestedType):
            yield f"column {path!r} is {file} and not {table}"
        case _:
            return


def missing_ids(file: Schema, variants: Collection[int]) -> list[str]:
    """The full names of fields that have no id where others of the file have one; all of them, if none has.

    `variants` are the ids of columns that are variants, whatever a file says of them.
    """
    return [file.names_by_id[field.field_id] for field in _with_ids_wanted(file.fields, variants) if field.field_id < 0]


def misplaced_ids(file: Schema, schemas: Iterable[Schema], variants: Collection[int]) -> list[str]:
    """Fields whose ids are, in every schema that has them, somewhere else: at the top, or inside of another field."""
    known = tuple(schemas)
    misplaced = []
    for field in _with_ids_wanted(file.fields, variants):
        owners = [schema for schema in known if field.field_id in schema.fields_by_id]
        around = file.parents.get(field.field_id)
        if owners and all(schema.parents.get(field.field_id) != around for schema in owners):
            owner = owners[-1].names_by_id[field.field_id]
            name = file.names_by_id[field.field_id]
            misplaced.append(f"{name!r} has the field id {field.field_id}, that of {owner!r}")
    return misplaced


def foreign_ids(file: Schema, schemas: Iterable[Schema], variants: Collection[int]) -> list[str]:
    """Fields whose ids no schema has, and that are no metadata columns."""
    known = {field_id for schema in schemas for field_id in schema.fields_by_id}
    return [
        f"{file.names_by_id[field.field_id]!r} has the field id {field.field_id}"
        for field in _with_ids_wanted(file.fields, variants)
        if field.field_id >= 0 and field.field_id not in known and not reserved.is_reserved_id(field.field_id)
    ]


def variant_ids(schemas: Iterable[Schema]) -> frozenset[int]:
    """The ids of all variants of some schemas."""
    return frozenset(
        field.field_id
        for schema in schemas
        for field in types.walk_fields(schema.fields)
        if isinstance(field.field_type, types.VariantType)
    )


def _with_ids_wanted(fields: Iterable[types.NestedField], variants: Collection[int]) -> Iterator[types.NestedField]:
    for field in fields:
        yield field
        if isinstance(field.field_type, types.NestedType) and field.field_id not in variants:
            yield from _with_ids_wanted(field.field_type.fields, variants)


def _id_text(field_id: int) -> str:
    return "without an id" if field_id < 0 else f"with the id {field_id}"
