"""How the requested columns are read from a data file: by field id, never by name (spec: Column Projection)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from icefloe.errors import IncompatibleChangeError, NoSuchColumnError
from icefloe.schema import types
from icefloe.schema.promotion import is_promotion
from icefloe.schema.schema import Schema


@dataclass(frozen=True, slots=True)
class Keep:
    """The file's value as it is: same type, and for nested types the same fields in the same order."""


@dataclass(frozen=True, slots=True)
class Promote:
    """The file's value, promoted from type `old` to type `new`."""

    old: types.IcebergType
    new: types.IcebergType


@dataclass(frozen=True, slots=True)
class ProjectList:
    """The file's list with a change to each element."""

    element: "ValuePlan"


@dataclass(frozen=True, slots=True)
class ProjectMap:
    """The file's map with a change to each key or value."""

    key: "ValuePlan"
    value: "ValuePlan"


@dataclass(frozen=True, slots=True)
class FromFile:
    """The field is in the file, as the field `position` of the struct there."""

    position: int
    file_field: types.NestedField
    plan: "ValuePlan"


@dataclass(frozen=True, slots=True)
class Constant:
    """One value for all rows of the file: an identity partition value, or another fact about the file."""

    value: types.Value


@dataclass(frozen=True, slots=True)
class Default:
    """The file is older than the field: its initial default, with the defaults of a struct's fields filled in."""

    value: types.Value


@dataclass(frozen=True, slots=True)
class Null:
    """The file lacks the field, and there is no value for it."""


@dataclass(frozen=True, slots=True)
class ProjectField:
    """A requested field and where its values come from."""

    field: types.NestedField
    source: "FromFile | Constant | Default | Null"


@dataclass(frozen=True, slots=True)
class ProjectStruct:
    """A struct of requested fields, in the order requested; null where the file's struct is null.

    If no field comes from the file, a reader must still read some other field to know which structs are null.
    """

    fields: tuple[ProjectField, ...]


ValuePlan: TypeAlias = Keep | Promote | ProjectStruct | ProjectList | ProjectMap


def plan_projection(
    requested: Schema, file: Schema, constants: Mapping[int, types.Value] | None = None
) -> ProjectStruct:
    """How to build rows of `requested` from rows of a file with the schema `file`.

    `constants` are values by field id for fields that the file lacks, first of all its identity partition values.
    A required field without any value, or a type change that is not a promotion, is an error.
    """
    return _project_fields(requested.fields, file.fields, constants or {}, "")


def default_value(field: types.NestedField) -> types.Value:
    """The initial default of a field; for a struct with the empty default, the struct of its fields' defaults.

    (spec: Default values)
    """
    if isinstance(field.field_type, types.StructType) and field.initial_default == ():
        return tuple((inner.field_id, default_value(inner)) for inner in field.field_type)
    return field.initial_default


def select(schema: Schema, names: Iterable[str], case_sensitive: bool = True) -> Schema:
    """The schema with only the columns of these full names, in its own order; `*` stands for all of them.

    A nested name keeps that field in its parents; the name of a struct keeps all of it.
    """
    requested = tuple(names)
    if "*" in requested:
        return schema
    return select_ids(schema, [schema.find_field(name, case_sensitive).field_id for name in requested])


def select_ids(schema: Schema, field_ids: Iterable[int]) -> Schema:
    """The schema with only the fields of these ids, what is in them, and the parents they need."""
    requested = frozenset(field_ids)
    for field_id in requested:
        schema.find_field(field_id)
    fields = _select_fields(schema.fields, requested)
    selected = Schema(*fields).fields_by_id
    return Schema(
        *fields,
        schema_id=schema.schema_id,
        identifier_field_ids=[field_id for field_id in schema.identifier_field_ids if field_id in selected],
    )


def _project_fields(
    requested: tuple[types.NestedField, ...],
    present: tuple[types.NestedField, ...],
    constants: Mapping[int, types.Value],
    around: str,
) -> ProjectStruct:
    stored = {field.field_id: (position, field) for position, field in enumerate(present)}
    return ProjectStruct(
        tuple(
            ProjectField(field, _source(field, stored.get(field.field_id), constants, around + field.name))
            for field in requested
        )
    )


def _source(
    field: types.NestedField,
    stored: tuple[int, types.NestedField] | None,
    constants: Mapping[int, types.Value],
    name: str,
) -> FromFile | Constant | Default | Null:
    # A column of type unknown is not in data files, whatever a file may hold under its id.
    if stored is not None and not isinstance(field.field_type, types.UnknownType):
        position, file_field = stored
        if not isinstance(file_field.field_type, types.UnknownType):
            plan = _project_type(field.field_type, file_field.field_type, constants, name)
            return FromFile(position, file_field, plan)
    if field.field_id in constants:
        return Constant(constants[field.field_id])
    if (default := default_value(field)) is not None:
        return Default(default)
    if field.required:
        raise NoSuchColumnError(
            f"required column {name!r} (id {field.field_id}) is not in the file,"
            " and neither a partition value nor an initial default stands in for it"
        )
    return Null()


def _project_type(
    requested: types.IcebergType, present: types.IcebergType, constants: Mapping[int, types.Value], name: str
) -> ValuePlan:
    if not isinstance(requested, types.NestedType):
        return _project_leaf(requested, present, name)
    match requested, present:
        case types.StructType(), types.StructType():
            plan = _project_fields(requested.fields, present.fields, constants, f"{name}.")
            return Keep() if _is_same(plan, present) else plan
        # An element, key or value lasts as long as its list or map, so it needs no id in the file to be known.
        case types.ListType(), types.ListType():
            element = _project_type(requested.element_type, present.element_type, constants, f"{name}.element")
            return element if isinstance(element, Keep) else ProjectList(element)
        case types.MapType(), types.MapType():
            key = _project_type(requested.key_type, present.key_type, constants, f"{name}.key")
            value = _project_type(requested.value_type, present.value_type, constants, f"{name}.value")
            return Keep() if isinstance(key, Keep) and isinstance(value, Keep) else ProjectMap(key, value)
        case _:
            raise _cannot_read(requested, present, name)


def _project_leaf(requested: types.IcebergType, present: types.IcebergType, name: str) -> ValuePlan:
    if requested == present:
        return Keep()
    if is_promotion(present, requested) or _same_bytes(present, requested):
        return Promote(present, requested)
    raise _cannot_read(requested, present, name)


def _same_bytes(present: types.IcebergType, requested: types.IcebergType) -> bool:
    """Whether a file written without the type's annotation holds the requested values all the same."""
    match present, requested:
        case types.FixedType(length=16), types.UUIDType():
            return True
        case types.BinaryType(), types.StringType() | types.GeometryType() | types.GeographyType():
            return True
        case _:
            return False


def _cannot_read(requested: types.IcebergType, present: types.IcebergType, name: str) -> IncompatibleChangeError:
    return IncompatibleChangeError(f"column {name!r} is {present} in the file, which cannot be read as {requested}")


def _is_same(plan: ProjectStruct, present: types.StructType) -> bool:
    return len(plan.fields) == len(present) and all(
        isinstance(planned.source, FromFile)
        and planned.source.position == position
        and planned.field.name == planned.source.file_field.name
        and isinstance(planned.source.plan, Keep)
        for position, planned in enumerate(plan.fields)
    )


def _select_fields(fields: tuple[types.NestedField, ...], requested: frozenset[int]) -> list[types.NestedField]:
    selected = []
    for field in fields:
        if field.field_id in requested:
            selected.append(field)
        elif (field_type := _select_type(field.field_type, requested)) is not None:
            selected.append(replace(field, field_type=field_type))
    return selected


def _select_type(field_type: types.IcebergType, requested: frozenset[int]) -> types.IcebergType | None:
    """The selected part of a type that is not requested as a whole, or None if nothing in it is requested."""
    match field_type:
        case types.StructType():
            fields = _select_fields(field_type.fields, requested)
            return types.StructType(*fields) if fields else None
        case types.ListType():
            if field_type.element_id in requested:
                return field_type
            element = _select_type(field_type.element_type, requested)
            return None if element is None else replace(field_type, element_type=element)
        case types.MapType():
            if field_type.value_id in requested:
                return field_type
            value = _select_type(field_type.value_type, requested)
            if value is not None:  # the key of a map is never cut
                return replace(field_type, value_type=value)
            if field_type.key_id in requested or _select_type(field_type.key_type, requested) is not None:
                return field_type
            return None
        case _:
            return None
