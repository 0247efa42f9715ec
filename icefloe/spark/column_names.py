"""Which column a name in a statement or a DataFrame means, in the session's view of case, and what a frame adds to a table.

Spark looks for a column behind the longest part of the table's name first, and takes the name as it is only if that finds
nothing: with an alias `s` and columns `a` and `s`, `s.a` is the column `a`, and `s.s.a` a field of the column `s`.
"""

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import DataFrame

from icefloe.errors import IcefloeError, InvalidInputError, InvalidSchemaError, InvalidValueError, NoSuchColumnError
from icefloe.schema import Schema, can_promote, types
from icefloe.spark.spark_sessions import is_case_sensitive
from icefloe.spark.types import schema_of_query
from icefloe.table import Transaction

Qualifier = Sequence[str]
"""What columns of a table may be qualified by: its alias, or the parts of its name, catalog first."""


def column_path(
    path: Sequence[str], schema: Schema, case_sensitive: bool, qualifier: Qualifier | None = None
) -> tuple[str, ...]:
    """The names of a column and of the fields in it, as the table has them, without what qualifies them."""
    around = tuple(qualifier or ())
    for length in range(len(around), 0, -1):
        is_qualified = _are_same(path[:length], around[-length:], case_sensitive)
        if is_qualified and len(path) > length and _named(path[length], schema.fields, case_sensitive):
            return _exact(path[length:], schema, case_sensitive)
    return _exact(path, schema, case_sensitive)


def bare_path(path: Sequence[str], qualifier: Qualifier | None) -> tuple[str, ...]:
    """The names of a column that the table may not have yet, without what qualifies them."""
    around = tuple(qualifier or ())
    for length in range(len(around), 0, -1):
        if len(path) > length and _are_same(path[:length], around[-length:], False):
            return tuple(path[length:])
    return tuple(path)


def check_no_twins(schema: Schema, case_sensitive: bool) -> None:
    """Raise if two columns, or two fields of a struct, differ only by case in a case-insensitive session."""
    if not case_sensitive:
        _check_no_twins(schema.fields, ())


def _check_no_twins(fields: Sequence[types.NestedField], around: tuple[str, ...]) -> None:
    seen: dict[str, str] = {}
    for field in fields:
        if (other := seen.get(field.name.lower())) is not None:
            name, twin = ".".join((*around, field.name)), ".".join((*around, other))
            raise InvalidSchemaError(
                f"[COLUMN_ALREADY_EXISTS] {name!r} and {twin!r} are the same name while spark.sql.caseSensitive is false;"
                " give one of them another name"
            )
        seen[field.name.lower()] = field.name
        if isinstance(field.field_type, types.NestedType):
            _check_no_twins(field.field_type.fields, (*around, field.name))


def _exact(path: Sequence[str], schema: Schema, case_sensitive: bool) -> tuple[str, ...]:
    names: list[str] = []
    field_type: types.IcebergType = schema.as_struct
    for part in path:
        if not isinstance(field_type, types.StructType):
            raise _no_struct(names, path, field_type)
        fields = field_type.fields
        match = _named(part, fields, case_sensitive)
        if not match:
            raise NoSuchColumnError(
                f"no column {'.'.join(path)!r}; there are {', '.join(field.name for field in fields)}"
            )
        if len(match) > 1:
            condition = "AMBIGUOUS_REFERENCE" if not names else "AMBIGUOUS_REFERENCE_TO_FIELDS"
            raise NoSuchColumnError(
                f"[{condition}] {'.'.join(path)!r} may be any of {', '.join(field.name for field in match)};"
                " set spark.sql.caseSensitive to true to distinguish them"
            )
        names.append(match[0].name)
        field_type = match[0].field_type
    return tuple(names)


def _no_struct(names: Sequence[str], path: Sequence[str], field_type: types.IcebergType) -> IcefloeError:
    name, target = ".".join(names), ".".join(path)
    match field_type:
        case types.ListType():
            hint = f"set it as a whole, as with {name} = transform({name}, each -> ...)"
            return InvalidInputError(f"cannot set {target!r}: {name!r} is an array, which is not set in parts; {hint}")
        case types.MapType():
            hint = f"set it as a whole, as with {name} = map_concat({name}, map(...))"
            return InvalidInputError(f"cannot set {target!r}: {name!r} is a map, which is not set in parts; {hint}")
        case _:
            return NoSuchColumnError(f"no column {target!r}: {name!r} is {field_type}, which has no fields")


def _named(name: str, fields: Sequence[types.NestedField], case_sensitive: bool) -> list[types.NestedField]:
    return [field for field in fields if _is_same(field.name, name, case_sensitive)]


def _are_same(some: Sequence[str], others: Sequence[str], case_sensitive: bool) -> bool:
    pairs = zip(some, others, strict=False)
    return len(some) == len(others) and all(_is_same(one, other, case_sensitive) for one, other in pairs)


def _is_same(one: str, other: str, case_sensitive: bool) -> bool:
    return one == other or (not case_sensitive and one.lower() == other.lower())


def take_in_columns(tx: Transaction, frame: DataFrame) -> None:
    """Give the table of a transaction the columns of the frame that it lacks, and wider types."""
    metadata = tx.table_metadata
    more = schema_to_merge(frame, metadata.schema(), metadata.format_version)
    if more is not None:
        with tx.update_schema() as update:
            update.union_by_name(more)


def schema_to_merge(frame: DataFrame, schema: Schema, version: int) -> Schema | None:
    """The additions to a table's schema before the frame is written; None if there are none.

    Columns that are there stay as they are unless their type can be promoted to the frame's; a type that fits neither way
    is left to be refused when the frame is shaped.
    """
    sensitive = is_case_sensitive(frame.sparkSession)
    merged, changed = _merged(schema_of_query(frame.schema).as_struct, schema.as_struct, version, sensitive)
    return Schema(*merged) if changed else None


def check_nullability(frame: DataFrame, schema: Schema) -> None:
    """Raise if a column that Spark considers nullable is given for a required one."""
    sensitive = is_case_sensitive(frame.sparkSession)
    for field in schema.fields:
        for column in frame.schema.fields:
            if field.required and column.nullable and _is_same(column.name, field.name, sensitive):
                raise InvalidValueError(
                    f"column {column.name!r} may have null in the data; the table requires {field.field_type} there;"
                    " filter the nulls out, or leave 'check-nullability' off to have values checked instead"
                )


def _merged(
    of_frame: types.StructType, of_table: types.StructType, version: int, case_sensitive: bool
) -> tuple[list[types.NestedField], bool]:
    """The fields of the frame under the table's names, and whether any of them is new or of a wider type."""
    fields, changed = [], False
    for field in of_frame.fields:
        # The exact name comes first.
        same = sorted(_named(field.name, of_table.fields, case_sensitive), key=lambda own: own.name != field.name)
        if not same:
            fields.append(field)
            changed = True
            continue
        merged_type, is_new = _merged_type(field.field_type, same[0].field_type, version, case_sensitive)
        fields.append(types.NestedField(field.field_id, same[0].name, merged_type, same[0].required))
        changed |= is_new
    return fields, changed


def _merged_type(
    of_frame: types.IcebergType, of_table: types.IcebergType, version: int, case_sensitive: bool
) -> tuple[types.IcebergType, bool]:
    match of_frame, of_table:
        case types.StructType(), types.StructType():
            fields, changed = _merged(of_frame, of_table, version, case_sensitive)
            return types.StructType(*fields), changed
        case types.ListType(), types.ListType():
            element, changed = _merged_type(of_frame.element_type, of_table.element_type, version, case_sensitive)
            return replace(of_table, element_id=of_frame.element_id, element_type=element), changed
        case types.MapType(), types.MapType():
            value, changed = _merged_type(of_frame.value_type, of_table.value_type, version, case_sensitive)
            return replace(of_table, key_id=of_frame.key_id, value_id=of_frame.value_id, value_type=value), changed
        case _ if of_frame != of_table and can_promote(of_table, of_frame, version):
            return of_frame, True
        case _:
            return of_table, False
