"""Under which names a relation has the columns of a table, so that Spark's reader never takes one field of a file for another.

Spark finds columns by field id, but not always:

- Filters go into files by *name*, whatever the id of the column of that name there. So a field whose name some other field
  has had goes by a name that no file has. So does a number that may be NaN, as statistics in files leave NaN out, which
  Spark's filters do not: row groups with NaN would be lost.
- Where a query asks for parts of a nested column, Spark forgets the id of the column (not those inside it) and looks for its
  name. So a nested column keeps its name if every file has it under that one; if not, nothing inside of it may be pruned.
- The types of fields inside a struct are looked up by name before they are by id, so names inside must be safe everywhere.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from icefloe.avro import avro_name
from icefloe.formats.file_schema import with_fields
from icefloe.metadata import TableMetadata
from icefloe.schema import types

PREFIX = "__icefloe_"
"""Begins the names that are ours."""
_SPARKS_OWN = "_metadata"
_ROOT = 0
"""Stands for the id of the enclosing field of columns; fields have ids from 1."""


@dataclass(frozen=True, slots=True)
class InnerColumns:
    """Columns under the names that a relation has for them, at every level."""

    fields: tuple[types.NestedField, ...]
    whole: frozenset[int]
    """Nested columns that files may have under other names: Spark must read all of them, or it looks for the name."""
    needs_ids: bool
    """Whether some field goes by a name here that it does not have in every file."""


def inner_columns(fields: Sequence[types.NestedField], metadata: TableMetadata) -> InnerColumns:
    """The columns of a relation. Those that we named, being in no schema, keep their names."""
    names = _Names(metadata)
    together = Counter(field.name.lower() for field in fields)
    columns, whole = [], set()
    for field in fields:
        is_own = together[field.name.lower()] == 1 and field.name.lower() != _SPARKS_OWN
        if not isinstance(field.field_type, types.NestedType):
            is_safe = is_own and names.is_free(_ROOT, field) and not _has_nan(field.field_type)
            columns.append(field if is_safe or names.is_ours(field) else replace(field, name=_inner_name(field)))
            continue
        is_safe = is_own and names.is_free(_ROOT, field) and names.is_constant(field)
        if not is_safe:
            whole.add(field.field_id)
        inner_type = names.inside(field.field_type, field.field_id, is_filtered=is_safe)
        name = field.name if is_safe or names.is_ours(field) else _inner_name(field)
        columns.append(replace(field, name=name, field_type=inner_type))
    needs_ids = not all(names.is_constant(column) for column in types.walk_fields(columns))
    return InnerColumns(tuple(columns), frozenset(whole), needs_ids)


class _Names:
    """The present and past names of a table's fields."""

    def __init__(self, metadata: TableMetadata) -> None:
        # The names of the fields of a removed schema are unknown.
        self._is_known = len(metadata.schemas) == max(schema.schema_id for schema in metadata.schemas) + 1
        self._owners: dict[tuple[int, str], set[int]] = {}
        self._had: dict[int, set[str]] = {}
        for schema in metadata.schemas:
            for field in schema.fields_by_id.values():
                around = schema.parents.get(field.field_id, _ROOT)
                for name in _names_in_files(field):
                    self._owners.setdefault((around, name.lower()), set()).add(field.field_id)
                    self._had.setdefault(field.field_id, set()).add(name)

    def is_free(self, around: int, field: types.NestedField) -> bool:
        """Whether no file has another field under the name."""
        return self._is_known and self._owners.get((around, field.name.lower())) == {field.field_id}

    def is_constant(self, field: types.NestedField) -> bool:
        """Whether every file that has the field has it under its name."""
        return self._is_known and self._had.get(field.field_id) == {field.name}

    def is_ours(self, field: types.NestedField) -> bool:
        """Whether the name is one of ours, which no file has."""
        return field.name.startswith(PREFIX) and field.name not in self._had.get(field.field_id, ())

    def inside(self, field_type: types.IcebergType, around: int, *, is_filtered: bool) -> types.IcebergType:
        """A type with safe names in it; `is_filtered` says whether filters on fields may go into files."""
        match field_type:
            case types.StructType():
                together = Counter(field.name.lower() for field in field_type)
                return types.StructType(*(self._field(field, around, together, is_filtered) for field in field_type))
            case types.NestedType():
                fields = [
                    replace(field, field_type=self.inside(field.field_type, field.field_id, is_filtered=False))
                    for field in field_type.fields
                ]
                return with_fields(field_type, fields)
            case _:
                return field_type

    def _field(
        self, field: types.NestedField, around: int, together: Counter[str], is_filtered: bool
    ) -> types.NestedField:
        is_safe = self.is_free(around, field) and together[field.name.lower()] == 1
        is_safe = is_safe and not (is_filtered and _has_nan(field.field_type))
        inner_type = self.inside(field.field_type, field.field_id, is_filtered=is_filtered)
        return replace(field, name=field.name if is_safe else _inner_name(field), field_type=inner_type)


def _names_in_files(field: types.NestedField) -> Iterable[str]:
    """The name, and its form in files of Java's writers."""
    return {field.name, avro_name(field.name)}


def _has_nan(field_type: types.IcebergType) -> bool:
    return isinstance(field_type, types.FloatType | types.DoubleType)


def _inner_name(field: types.NestedField) -> str:
    return f"{PREFIX}{field.field_id}"
