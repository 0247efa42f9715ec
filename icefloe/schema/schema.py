"""A table schema: a struct with an id of its own, identifier fields, and lookup by id and by dotted name."""

import html
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from icefloe.errors import InvalidSchemaError, NoSuchColumnError
from icefloe.schema import types

MAX_COLUMN_ID = 2147483447
"""The highest id a user's column may have; those above are reserved (spec: Reserved Field IDs)."""


@dataclass(frozen=True, init=False)
class Schema:
    """The columns of a table at one time. `fields` are the top-level columns.

    Field ids are unique in the whole schema; names are unique within their struct. Not slotted, so that the lookup
    tables are built once, on first use.
    """

    fields: tuple[types.NestedField, ...]
    schema_id: int = 0
    identifier_field_ids: tuple[int, ...] = ()

    def __init__(
        self, *fields: types.NestedField, schema_id: int = 0, identifier_field_ids: Iterable[int] = ()
    ) -> None:
        object.__setattr__(self, "fields", tuple(fields))
        object.__setattr__(self, "schema_id", schema_id)
        object.__setattr__(self, "identifier_field_ids", tuple(sorted(set(identifier_field_ids))))
        _check_fields(self.fields)
        for field_id in self.identifier_field_ids:
            self._check_identifier(field_id)

    def __getstate__(self) -> tuple[tuple[types.NestedField, ...], int, tuple[int, ...]]:
        return self.fields, self.schema_id, self.identifier_field_ids

    def __setstate__(self, state: tuple[tuple[types.NestedField, ...], int, tuple[int, ...]]) -> None:
        for name, value in zip(("fields", "schema_id", "identifier_field_ids"), state, strict=True):
            object.__setattr__(self, name, value)

    def __iter__(self) -> Iterator[types.NestedField]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    def __str__(self) -> str:
        return "\n".join(["table {", *(f"  {field}" for field in self.fields), "}"])

    def _repr_html_(self) -> str:
        """The columns as a table of a notebook."""
        heads = ("id", "name", "type", "required", "doc")
        rows = [
            (each.field_id, each.name, each.field_type, "yes" if each.required else "", each.doc or "")
            for each in self.fields
        ]
        lines = ["".join(f"<td>{html.escape(str(value))}</td>" for value in row) for row in rows]
        head = "".join(f"<th>{name}</th>" for name in heads)
        return f"<table><tr>{head}</tr>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"

    @cached_property
    def as_struct(self) -> types.StructType:
        """The columns as a struct type."""
        return types.StructType(*self.fields)

    @cached_property
    def fields_by_id(self) -> dict[int, types.NestedField]:
        """Every field at every level, by its id."""
        return {field.field_id: field for field in types.walk_fields(self.fields)}

    @cached_property
    def parents(self) -> dict[int, int]:
        """The id of the field around each nested field."""
        return {
            child.field_id: field.field_id
            for field in types.walk_fields(self.fields)
            if isinstance(field.field_type, types.NestedType)
            for child in field.field_type.fields
        }

    @cached_property
    def names_by_id(self) -> dict[int, str]:
        """The full dotted name of every field, by its id: `addr.zip`, `tags.element`, `props.key`."""
        return dict(_full_names(self.fields, ""))

    @cached_property
    def ids_by_name(self) -> dict[str, int]:
        """Field ids by full name, and by the short form that leaves out `element` and `value` before a struct field."""
        short = {name: field_id for field_id, name in _full_names(self.fields, "", short=True)}
        return short | {name: field_id for field_id, name in self.names_by_id.items()}

    @cached_property
    def ids_by_lower_name(self) -> dict[str, tuple[int, ...]]:
        """Field ids by name in lower case; several where names differ in case only."""
        ids_by_lower_name: dict[str, tuple[int, ...]] = {}
        for name, field_id in self.ids_by_name.items():
            ids = ids_by_lower_name.get(name.lower(), ())
            ids_by_lower_name[name.lower()] = ids if field_id in ids else (*ids, field_id)
        return ids_by_lower_name

    @cached_property
    def highest_field_id(self) -> int:
        """The highest id in use, 0 in an empty schema."""
        return max(self.fields_by_id, default=0)

    @property
    def column_names(self) -> tuple[str, ...]:
        """Full names of all fields, nested ones too."""
        return tuple(self.names_by_id.values())

    @property
    def identifier_field_names(self) -> tuple[str, ...]:
        """Full names of the identifier fields."""
        return tuple(self.names_by_id[field_id] for field_id in self.identifier_field_ids)

    def find_field(self, name_or_id: str | int, case_sensitive: bool = True) -> types.NestedField:
        """The field of that full name or id; an error that lists the columns if there is none."""
        field_id = self.find_id(name_or_id, case_sensitive) if isinstance(name_or_id, str) else name_or_id
        if field_id is None or field_id not in self.fields_by_id:
            wording = "named" if isinstance(name_or_id, str) else "with id"
            raise NoSuchColumnError(
                f"no column {wording} {name_or_id!r}; columns are {', '.join(self.column_names) or 'none'}"
            )
        return self.fields_by_id[field_id]

    def find_id(self, name: str, case_sensitive: bool = True) -> int | None:
        """The id of the field of that full name, if there is one; ambiguous names are an error."""
        if case_sensitive:
            return self.ids_by_name.get(name)
        ids = self.ids_by_lower_name.get(name.lower(), ())
        if len(ids) > 1:
            names = ", ".join(self.names_by_id[i] for i in ids)
            raise NoSuchColumnError(f"column {name!r} is ambiguous when case is ignored: it may be any of {names}")
        return ids[0] if ids else None

    def find_type(self, name_or_id: str | int, case_sensitive: bool = True) -> types.IcebergType:
        """The type of the field of that full name or id."""
        return self.find_field(name_or_id, case_sensitive).field_type

    def find_column_name(self, field_id: int) -> str | None:
        """The full name of the field with that id, if there is one."""
        return self.names_by_id.get(field_id)

    def ancestors(self, field_id: int) -> tuple[types.NestedField, ...]:
        """The fields around a nested field, innermost first."""
        ancestors = []
        while (parent := self.parents.get(field_id)) is not None:
            ancestors.append(self.fields_by_id[parent])
            field_id = parent
        return tuple(ancestors)

    def with_id(self, schema_id: int) -> "Schema":
        """The same columns under another schema id."""
        return Schema(*self.fields, schema_id=schema_id, identifier_field_ids=self.identifier_field_ids)

    def same_columns(self, other: "Schema") -> bool:
        """Whether the schemas are equal but for their ids."""
        return self.fields == other.fields and self.identifier_field_ids == other.identifier_field_ids

    def key_field(self, field_id: int, noun: str) -> types.NestedField:
        """The column, if rows can be told apart by it; an error names it as a field of that noun."""
        field = self.fields_by_id.get(field_id)
        if field is None:
            raise InvalidSchemaError(f"{noun} field id {field_id} is not in the schema")
        name = self.names_by_id[field_id]
        if not isinstance(field.field_type, types.PrimitiveType) or isinstance(
            field.field_type, types.FloatType | types.DoubleType
        ):
            raise InvalidSchemaError(
                f"{noun} field {name!r} is of type {field.field_type}; it must be primitive and neither float nor double"
            )
        for parent in self.ancestors(field_id):
            if isinstance(parent.field_type, types.ListType | types.MapType):
                raise InvalidSchemaError(f"{noun} field {name!r} is inside the list or map {parent.name!r}")
        return field

    def _check_identifier(self, field_id: int) -> None:
        field, name = self.key_field(field_id, "identifier"), self.names_by_id[field_id]
        if not field.required:
            raise InvalidSchemaError(f"identifier field {name!r} is optional; it must be required")
        for parent in self.ancestors(field_id):
            if not parent.required:
                raise InvalidSchemaError(f"identifier field {name!r} is inside the optional struct {parent.name!r}")


def _check_fields(fields: tuple[types.NestedField, ...]) -> None:
    """Runs for every schema of every metadata file that is read, so the valid case is the fast path."""
    walked = list(types.walk_fields(fields))
    if len({field.field_id for field in walked}) != len(walked):
        _name_duplicate_ids(walked)
    _check_names(fields, "")
    for field in walked:
        type_class = type(field.field_type)
        if type_class is types.StructType:
            _check_names(field.field_type.fields, field.name)  # type: ignore[attr-defined]  # a struct, by its class
        elif type_class is types.UnknownType and field.required:
            raise InvalidSchemaError(f"field {field.name!r} of type unknown is required; it must be optional")
    if any("." in field.name for field in walked):
        _check_full_names(fields)


def _name_duplicate_ids(fields: list[types.NestedField]) -> None:
    seen: dict[int, str] = {}
    for field in fields:
        if field.field_id in seen:
            raise InvalidSchemaError(
                f"field id {field.field_id} is used by both {seen[field.field_id]!r} and {field.name!r}; ids must be unique"
            )
        seen[field.field_id] = field.name


def _check_full_names(fields: tuple[types.NestedField, ...]) -> None:
    """Unless a name has a dot, names that are unique within their struct are unique in full."""
    seen: dict[str, int] = {}
    for field_id, name in _full_names(fields, ""):
        if name in seen:
            raise InvalidSchemaError(f"the fields with ids {seen[name]} and {field_id} are both named {name!r} in full")
        seen[name] = field_id


def _check_names(fields: tuple[types.NestedField, ...], around: str) -> None:
    names = {field.name for field in fields}
    if len(names) == len(fields) and "" not in names:
        return
    for index, field in enumerate(fields):
        if not field.name:
            raise InvalidSchemaError(f"field {field.field_id} has an empty name")
        if any(field.name == other.name for other in fields[:index]):
            where = f" in struct {around!r}" if around else ""
            raise InvalidSchemaError(f"two fields are named {field.name!r}{where}")


def _full_names(
    fields: Iterable[types.NestedField], prefix: str, short: bool = False, in_container: bool = False
) -> Iterator[tuple[int, str]]:
    for field in fields:
        name = prefix + field.name
        yield field.field_id, name
        if isinstance(field.field_type, types.NestedType):
            is_struct = isinstance(field.field_type, types.StructType)
            skipped = short and in_container and is_struct and field.name != "key"
            yield from _full_names(field.field_type.fields, prefix if skipped else f"{name}.", short, not is_struct)
