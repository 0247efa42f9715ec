"""Which changes a table's schema allows, and the resulting schema (spec: Schema Evolution)."""

from collections.abc import Iterable
from dataclasses import replace

import pyarrow as pa

from icefloe import errors
from icefloe.schema import types
from icefloe.schema.arrow import schema_from_arrow
from icefloe.schema.ddl import parse_type
from icefloe.schema.field_tree import ROOT, FieldTree, Path, is_name, show
from icefloe.schema.ids import assign_fresh_type_ids
from icefloe.schema.projection import default_value
from icefloe.schema.promotion import can_promote, promote_value
from icefloe.schema.rules import check_defaults, check_schema_for_version
from icefloe.schema.schema import Schema
from icefloe.schema.values import coerce
from icefloe.versions import DEFAULT_VERSION, Feature, require


class SchemaUpdate:
    """Changes to a schema, collected one by one; `apply()` returns the resulting schema, any number of times.

    A column is named by its dotted name (`addr.zip`, `tags.element`, `props.value.x`) or by a tuple of names, which is
    needed where a name has a dot in it. Names are those of the schema before all changes, and of columns added since.
    Every method that changes something returns the update itself.

    `partition_source_ids` and `sort_source_ids` are the columns that the default partition spec and sort order use: they
    cannot be dropped. `type_bound_source_ids` are those that feed, in any spec, a partition transform which would give
    other values once a date is a timestamp; without them, all partition sources are taken.
    """

    def __init__(
        self,
        schema: Schema,
        last_column_id: int | None = None,
        version: int = DEFAULT_VERSION,
        *,
        partition_source_ids: Iterable[int] = (),
        sort_source_ids: Iterable[int] = (),
        type_bound_source_ids: Iterable[int] | None = None,
        allow_incompatible_changes: bool = False,
        case_sensitive: bool = True,
    ) -> None:
        self._schema = schema
        self._version = version
        self._last_column_id = max(last_column_id or 0, schema.highest_field_id)
        self._allow_incompatible = allow_incompatible_changes
        self._case_sensitive = case_sensitive
        self._tree = FieldTree(schema, case_sensitive)
        self._partition_sources = frozenset(partition_source_ids)
        self._sort_sources = frozenset(sort_source_ids)
        bound = partition_source_ids if type_bound_source_ids is None else type_bound_source_ids
        self._type_bound_sources = frozenset(bound)
        self._added: set[int] = set()
        self._touched: set[int] = set()
        self._identifier_paths: tuple[Path, ...] | None = None

    @property
    def last_column_id(self) -> int:
        """The highest field id ever assigned to a column, including those added here."""
        return self._last_column_id

    def apply(self) -> Schema:
        """The schema with all changes, under the id of the old one, without side effects."""
        fields = self._tree.build()
        schema = Schema(*fields, schema_id=self._schema.schema_id)
        identified = Schema(
            *fields, schema_id=self._schema.schema_id, identifier_field_ids=self._identifier_ids(schema)
        )
        check_schema_for_version(identified, self._version)
        return identified

    def add_column(
        self,
        path: Path,
        field_type: types.IcebergType | str,
        doc: str | None = None,
        required: bool = False,
        default_value: object = None,
    ) -> "SchemaUpdate":
        """Add a column at the end of the table or of a struct; its value in old rows is the default, else null.

        The type may be a text, such as `"decimal(9, 2)"`. Below a list or map of structs the column is added to the element or
        value. All ids in the type are reassigned.
        """
        parent, name = self._tree.find_new(path)
        if parent != ROOT:
            self._check_changeable(parent, "add a field below")
        _check_doc(doc, path)
        known_type = _type_of(field_type, path)
        field_id = self._next_id()
        new_type = assign_fresh_type_ids(known_type, self._next_id)
        default = self._coerce_default(default_value, new_type, path)
        field = types.NestedField(field_id, name, new_type, required, doc, default, default)
        check_defaults(field, show(path))
        if required and not self._allow_incompatible and not _fills_old_rows(field):
            raise errors.IncompatibleChangeError(
                f"cannot add the required column {show(path)!r} without a default for existing rows;"
                " give one (v3 tables have them), or make the column optional"
            )
        self._tree.add(parent, field)
        self._added.add(field_id)
        return self

    def delete_column(self, path: Path) -> "SchemaUpdate":
        """Drop a column with all its nested fields."""
        field = self._find(path, "delete")
        field_id = field.field_id
        if not self._tree.is_struct_field(field_id):
            raise errors.IncompatibleChangeError(f"cannot delete {show(path)!r}: it is part of a list or map")
        if field_id in self._added:
            raise errors.IncompatibleChangeError(
                f"cannot delete {show(path)!r}: this update adds it; leave that out instead"
            )
        inside = self._tree.subtree(field_id)
        if changed := inside & (self._touched | self._added):
            names = ", ".join(sorted(map(self._tree.name, changed)))
            raise errors.IncompatibleChangeError(
                f"cannot delete {show(path)!r}: this update also changes or adds {names}"
            )
        for used, by in ((self._partition_sources, "partition spec"), (self._sort_sources, "sort order")):
            if taken := inside & used:
                names = ", ".join(sorted(map(self._tree.name, taken)))
                raise errors.IncompatibleChangeError(f"cannot delete {show(path)!r}: the table's {by} uses {names}")
        self._tree.remove(field_id)
        return self

    def rename_column(self, path: Path, new_name: str) -> "SchemaUpdate":
        """Rename a column within its struct; its id and position stay."""
        field = self._find_struct_field(path, "rename")
        if not is_name(new_name):
            raise errors.InvalidSchemaError(
                f"cannot rename {show(path)!r} to {new_name!r}; a name is a string that is not empty"
            )
        return self._put(replace(field, name=new_name))

    def update_column(
        self,
        path: Path,
        field_type: types.IcebergType | str | None = None,
        required: bool | None = None,
        doc: str | None = None,
    ) -> "SchemaUpdate":
        """Change a column: promote its type, make it required or optional, set its doc; None leaves that part unchanged."""
        if field_type is not None:
            self._promote(path, _type_of(field_type, path))
        if required is not None:
            if required:
                self.require_column(path)
            else:
                self.make_column_optional(path)
        if doc is not None:
            self.set_doc(path, doc)
        return self

    def make_column_optional(self, path: Path) -> "SchemaUpdate":
        """Let a column, element or map value be null."""
        field = self._find(path, "make optional")
        return self._put(replace(field, required=False)) if field.required else self

    def require_column(self, path: Path) -> "SchemaUpdate":
        """Forbid null in a column: only for columns added here with a default, or with incompatible changes allowed."""
        field = self._find(path, "require")
        if field.required:
            return self
        defaulted = field.field_id in self._added and _fills_old_rows(field)
        if not defaulted and not self._allow_incompatible:
            raise errors.IncompatibleChangeError(
                f"cannot make {show(path)!r} required: rows may hold null there; it takes allow_incompatible_changes"
            )
        return self._put(replace(field, required=True))

    def set_doc(self, path: Path, doc: str | None) -> "SchemaUpdate":
        """Replace or remove the doc of a column."""
        _check_doc(doc, path)
        field = self._find_struct_field(path, "document")
        return self._put(replace(field, doc=doc)) if field.doc != doc else self

    def set_default_value(self, path: Path, default_value: object) -> "SchemaUpdate":
        """Change the value that writers use where none is given; existing rows do not change."""
        field = self._find_struct_field(path, "change the default of")
        default = self._coerce_default(default_value, field.field_type, path)
        if default is None and field.required and field.write_default is not None and not self._allow_incompatible:
            raise errors.IncompatibleChangeError(
                f"cannot take the default from the required column {show(path)!r}: writers may count on it;"
                " it takes allow_incompatible_changes"
            )
        changed = replace(field, write_default=default)
        check_defaults(changed, show(path))
        return self._put(changed)

    def move_first(self, path: Path) -> "SchemaUpdate":
        """Make a column the first one of its struct."""
        field = self._find_struct_field(path, "move")
        self._tree.move(field.field_id, 0)
        return self

    def move_before(self, path: Path, before_path: Path) -> "SchemaUpdate":
        """Put a column just before another one of the same struct."""
        return self._move_beside(path, before_path, 0)

    def move_after(self, path: Path, after_path: Path) -> "SchemaUpdate":
        """Put a column just after another one of the same struct."""
        return self._move_beside(path, after_path, 1)

    def set_identifier_fields(self, *paths: Path) -> "SchemaUpdate":
        """Make these columns, by their names after all changes, the identifier fields."""
        self._identifier_paths = paths
        return self

    def union_by_name(self, new_schema: Schema | pa.Schema) -> "SchemaUpdate":
        """Merge another schema: add its missing columns as optional, and promote or relax those that it needs wider.

        Columns that are narrower in the other schema, or missing there, stay as they are.
        """
        other = new_schema if isinstance(new_schema, Schema) else schema_from_arrow(new_schema)
        self._union_fields(ROOT, other.fields, ())
        return self

    def _union_fields(self, parent: int, fields: Iterable[types.NestedField], around: tuple[str, ...]) -> None:
        for field in fields:
            path = (*around, field.name)
            child = self._tree.child(parent, field.name)
            if child is None:
                self.add_column(path, field.field_type, field.doc, False, field.initial_default)
                if field.write_default != field.initial_default:
                    self.set_default_value(path, field.write_default)
            else:
                self._union_field(self._tree.field(child), field, path)

    def _union_field(self, mine: types.NestedField, other: types.NestedField, path: tuple[str, ...]) -> None:
        if other.optional and mine.required:
            self.make_column_optional(path)
        if other.doc is not None and other.doc != mine.doc:
            self.set_doc(path, other.doc)
        if other.write_default is not None and other.write_default != mine.write_default:
            self.set_default_value(path, other.write_default)
        match mine.field_type, other.field_type:
            case _, types.UnknownType():
                pass
            case (
                (types.StructType(), types.StructType())
                | (types.ListType(), types.ListType())
                | (types.MapType(), types.MapType())
            ):
                assert isinstance(other.field_type, types.NestedType)
                self._union_fields(mine.field_id, other.field_type.fields, path)
            case wide, narrow if not can_promote(narrow, wide, self._version):
                self._promote(path, narrow)
            case _:
                pass

    def _promote(self, path: Path, field_type: types.IcebergType) -> None:
        field = self._find(path, "change the type of")
        old = field.field_type
        if old == field_type:
            return
        if not can_promote(old, field_type, self._version):
            raise errors.IncompatibleChangeError(
                f"cannot change {show(path)!r} from {old} to {field_type}: v{self._version} tables do not allow this type promotion"
            )
        if isinstance(old, types.DateType) and field.field_id in self._type_bound_sources:
            raise errors.IncompatibleChangeError(
                f"cannot promote {show(path)!r} from {old} to {field_type}: a partition field made from it would change its values"
            )
        self._put(
            replace(
                field,
                initial_default=promote_value(field.initial_default, old, field_type),
                write_default=promote_value(field.write_default, old, field_type),
            )
        )
        self._tree.set_type(field.field_id, assign_fresh_type_ids(field_type, self._next_id))

    def _move_beside(self, path: Path, other_path: Path, offset: int) -> "SchemaUpdate":
        field = self._find_struct_field(path, "move")
        other = self._find(other_path, "move a column beside")
        if field.field_id == other.field_id:
            raise errors.IncompatibleChangeError(f"cannot move {show(path)!r} beside itself")
        if self._tree.parent(field.field_id) != self._tree.parent(other.field_id):
            raise errors.IncompatibleChangeError(
                f"cannot move {show(path)!r} beside {show(other_path)!r}: they are not in the same struct"
            )
        self._tree.move(field.field_id, self._tree.position_without(field.field_id, other.field_id) + offset)
        return self

    def _find(self, path: Path, action: str) -> types.NestedField:
        field_id = self._tree.find(path)
        if field_id is None:
            is_deleted = self._schema.find_id(show(path), self._case_sensitive) is not None
            why = (
                "this update deletes it"
                if is_deleted
                else f"columns are {', '.join(self._schema.column_names) or 'none'}"
            )
            error = errors.IncompatibleChangeError if is_deleted else errors.NoSuchColumnError
            raise error(
                f"cannot {action} {show(path)!r}: " + (why if is_deleted else f"there is no such column; {why}")
            )
        self._check_changeable(field_id, action)
        return self._tree.field(field_id)

    def _find_struct_field(self, path: Path, action: str) -> types.NestedField:
        field = self._find(path, action)
        if not self._tree.is_struct_field(field.field_id):
            raise errors.IncompatibleChangeError(
                f"cannot {action} {show(path)!r}: only the fields of structs may change so"
            )
        return field

    def _check_changeable(self, field_id: int, action: str) -> None:
        """Keys of maps decide which entries are the same, so nothing about them may change."""
        if self._tree.is_in_map_key(field_id):
            raise errors.IncompatibleChangeError(
                f"cannot {action} {self._tree.name(field_id)!r}: map keys never change"
            )

    def _put(self, field: types.NestedField) -> "SchemaUpdate":
        self._touched.add(field.field_id)
        self._tree.replace(field)
        return self

    def _next_id(self) -> int:
        self._last_column_id += 1
        return self._last_column_id

    def _coerce_default(self, value: object, field_type: types.IcebergType, path: Path) -> types.Value:
        if value is None:
            return None
        require(self._version, Feature.COLUMN_DEFAULTS, f"the default of column {show(path)!r}")
        try:
            return coerce(value, field_type)
        except errors.InvalidInputError as problem:
            raise type(problem)(f"the default of column {show(path)!r}: {problem}") from None

    def _identifier_ids(self, schema: Schema) -> list[int]:
        if self._identifier_paths is not None:
            tree = FieldTree(schema, self._case_sensitive)
            columns = [(path, tree.find(path)) for path in self._identifier_paths]
            for path, field_id in columns:
                if field_id is None:
                    raise errors.NoSuchColumnError(f"identifier field {show(path)!r} is not a column after the changes")
            return [field_id for _, field_id in columns if field_id is not None]
        for field_id in self._schema.identifier_field_ids:
            if field_id not in schema.fields_by_id:
                name = self._schema.names_by_id[field_id]
                raise errors.IncompatibleChangeError(
                    f"cannot delete the identifier field {name!r}, or what it is in; set other identifier fields as well"
                )
        return list(self._schema.identifier_field_ids)


def _type_of(field_type: object, path: Path) -> types.IcebergType:
    if isinstance(field_type, str):
        return parse_type(field_type)
    if not isinstance(field_type, types.IcebergType):
        raise errors.InvalidTypeError(
            f"the type of column {show(path)!r} is {field_type!r:.100}; it must be a type like LongType() or a text like 'long'"
        )
    return field_type


def _check_doc(doc: object, path: Path) -> None:
    if doc is not None and not isinstance(doc, str):
        raise errors.InvalidSchemaError(
            f"the doc of column {show(path)!r} is {doc!r:.100}; it must be a string or None"
        )


def _fills_old_rows(field: types.NestedField) -> bool:
    """Whether the initial default gives every existing row a value that the field allows."""
    if field.initial_default is None:
        return False
    if isinstance(field.field_type, types.StructType):
        return all(inner.optional or _fills_old_rows(inner) for inner in field.field_type)
    return default_value(field) is not None
