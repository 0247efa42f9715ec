"""The fields of a schema as a mutable tree, which schema evolution works on."""

from collections.abc import Iterator
from dataclasses import replace
from typing import TypeAlias

from icefloe.errors import AlreadyExistsError, IncompatibleChangeError, InvalidSchemaError, NoSuchColumnError
from icefloe.schema import types
from icefloe.schema.schema import Schema

Path: TypeAlias = str | tuple[str, ...]
"""A column: its dotted name, or one name per level."""

ROOT = -(2**31)
"""Stands for the table itself where the id of a parent is wanted; no field has it."""


def show(path: Path) -> str:
    """A path as text, for messages."""
    return path if isinstance(path, str) else ".".join(map(str, path))


def is_name(name: object) -> bool:
    """Whether this is a valid field name."""
    return isinstance(name, str) and bool(name)


def _parts(path: object) -> tuple[str, ...]:
    parts = path.split(".") if isinstance(path, str) else path
    if not isinstance(parts, list | tuple) or not parts or not all(map(is_name, parts)):
        raise InvalidSchemaError(f"{path!r} does not name a column; give a dotted name or a tuple of names")
    return tuple(parts)


class FieldTree:
    """Fields by id, with their order in each parent, and lookup by their original names."""

    def __init__(self, schema: Schema, case_sensitive: bool = True) -> None:
        self._case_sensitive = case_sensitive
        self._fields: dict[int, types.NestedField] = {}
        self._parents: dict[int, int] = {}
        self._order: dict[int, list[int]] = {ROOT: []}
        self._ids: dict[int, dict[str, list[int]]] = {ROOT: {}}
        for field in schema.fields:
            self.add(ROOT, field)

    def field(self, field_id: int) -> types.NestedField:
        """The current field; the type of a nested one is still the original."""
        return self._fields[field_id]

    def parent(self, field_id: int) -> int:
        """The id of the field around this one, or ROOT."""
        return self._parents[field_id]

    def name(self, field_id: int) -> str:
        """The current full dotted name of a field."""
        names = []
        while field_id != ROOT:
            names.append(self._fields[field_id].name)
            field_id = self._parents[field_id]
        return ".".join(reversed(names))

    def subtree(self, field_id: int) -> set[int]:
        """The ids of a field and of all its nested fields."""
        return {field_id}.union(*(self.subtree(child) for child in self._order[field_id]))

    def is_struct_field(self, field_id: int) -> bool:
        """Whether the field is a column or a field of a struct, and not an element, key or value."""
        return self._is_struct(self._parents[field_id])

    def is_in_map_key(self, field_id: int) -> bool:
        """Whether the field is a map key, or nested in one."""
        while field_id != ROOT:
            parent = self._parents[field_id]
            if (
                parent != ROOT
                and isinstance(map_type := self._fields[parent].field_type, types.MapType)
                and map_type.key_id == field_id
            ):
                return True
            field_id = parent
        return False

    def find(self, path: Path) -> int | None:
        """The id of the field at a path, if there is one; an ambiguous path is an error."""
        is_dotted = isinstance(path, str)
        parts = _parts(path)
        matches = set(self._walk(ROOT, parts, is_dotted, False)) or set(self._walk(ROOT, parts, is_dotted, True))
        if len(matches) > 1:
            names = ", ".join(sorted(map(self.name, matches)))
            raise NoSuchColumnError(f"column {show(path)!r} is ambiguous: it may be any of {names}")
        return matches.pop() if matches else None

    def find_new(self, path: Path) -> tuple[int, str]:
        """The parent, a struct, and the name of a new field at this path; the name must be free."""
        *names, name = _parts(path)
        around: Path = ".".join(names) if isinstance(path, str) else tuple(names)
        parent = ROOT
        if around:
            field_id = self.find(around)
            if field_id is None:
                raise NoSuchColumnError(f"cannot add {show(path)!r}: there is no column {show(around)!r} to add it to")
            parent = self._struct_below(field_id)
        if not self._is_struct(parent):
            field_type = self._fields[parent].field_type
            raise IncompatibleChangeError(
                f"cannot add {show(path)!r}: {show(around)!r} is {field_type} and not a struct"
            )
        if self.child(parent, name) is not None:
            raise AlreadyExistsError(f"cannot add {show(path)!r}: a column of that name exists")
        return parent, name

    def child(self, parent: int, name: str) -> int | None:
        """The id of the field of that name directly below a parent, if there is one."""
        ids = self._ids[parent].get(self._fold(name), [])
        if len(ids) > 1:
            raise NoSuchColumnError(f"column {name!r} is ambiguous when case is ignored")
        return ids[0] if ids else None

    def remove(self, field_id: int) -> None:
        """Take a field out of its struct."""
        parent = self._parents[field_id]
        self._order[parent].remove(field_id)
        for ids in self._ids[parent].values():
            if field_id in ids:
                ids.remove(field_id)

    def replace(self, field: types.NestedField) -> None:
        """Change the attributes of a field; it is still found by its original name."""
        self._fields[field.field_id] = field

    def set_type(self, field_id: int, field_type: types.IcebergType) -> None:
        """Change the type of a field that has no nested fields; the new type may have some."""
        self._fields[field_id] = replace(self._fields[field_id], field_type=field_type)
        self._insert_children(field_id, field_type)

    def move(self, field_id: int, position: int) -> None:
        """Put a field at another position of its struct, counted without itself."""
        order = self._order[self._parents[field_id]]
        order.remove(field_id)
        order.insert(position, field_id)

    def position_without(self, field_id: int, other_id: int) -> int:
        """The position of the other field in the struct of both, were the first not there."""
        order = self._order[self._parents[other_id]]
        position = order.index(other_id)
        return position - 1 if order.index(field_id) < position else position

    def build(self) -> list[types.NestedField]:
        """The current columns."""
        return [self._build(field_id) for field_id in self._order[ROOT]]

    def _build(self, field_id: int) -> types.NestedField:
        field = self._fields[field_id]
        match field.field_type:
            case types.StructType():
                field_type: types.IcebergType = types.StructType(*map(self._build, self._order[field_id]))
            case types.ListType() as listed:
                element = self._build(listed.element_id)
                field_type = replace(listed, element_type=element.field_type, element_required=element.required)
            case types.MapType() as mapped:
                key, value = self._build(mapped.key_id), self._build(mapped.value_id)
                field_type = replace(
                    mapped, key_type=key.field_type, value_type=value.field_type, value_required=value.required
                )
            case _:
                return field
        return replace(field, field_type=field_type)

    def add(self, parent: int, field: types.NestedField) -> None:
        """Append a field, with all its nested fields, to a struct, list or map."""
        self._fields[field.field_id] = field
        self._parents[field.field_id] = parent
        self._order[parent].append(field.field_id)
        self._ids[parent].setdefault(self._fold(field.name), []).append(field.field_id)
        self._insert_children(field.field_id, field.field_type)

    def _insert_children(self, field_id: int, field_type: types.IcebergType) -> None:
        self._order[field_id], self._ids[field_id] = [], {}
        if isinstance(field_type, types.NestedType):
            for child in field_type.fields:
                self.add(field_id, child)

    def _walk(self, parent: int, parts: tuple[str, ...], is_dotted: bool, is_short: bool) -> Iterator[int]:
        """Every field at the path below the parent; short paths may leave out `element` and `value` before a struct."""
        if not parts:
            yield parent
            return
        for length in range(1, len(parts) + 1 if is_dotted else 2):
            for child in self._ids[parent].get(self._fold(".".join(parts[:length])), []):
                yield from self._walk(child, parts[length:], is_dotted, is_short)
        if is_short and (inner := self._struct_below(parent)) != parent:
            yield from self._walk(inner, parts, is_dotted, is_short)

    def _struct_below(self, field_id: int) -> int:
        """The element or value of a list or map of structs; any other field as it is."""
        if field_id == ROOT:
            return ROOT
        match self._fields[field_id].field_type:
            case types.ListType(element_id=inner) | types.MapType(value_id=inner):
                return inner if self._is_struct(inner) else field_id
            case _:
                return field_id

    def _is_struct(self, field_id: int) -> bool:
        return field_id == ROOT or isinstance(self._fields[field_id].field_type, types.StructType)

    def _fold(self, name: str) -> str:
        return name if self._case_sensitive else name.lower()
