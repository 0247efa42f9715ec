"""What a DataFrame adds to the schema of a table when it may: columns that the table lacks, and wider types."""

from typing import Any

from icefloe.errors import InvalidValueError
from icefloe.schema import Schema, can_promote, types
from icefloe.spark.shaping import is_case_sensitive
from icefloe.spark.types import schema_of_query
from icefloe.table import Transaction


def take_in_columns(tx: Transaction, frame: Any) -> None:
    """Give the table of a transaction the columns of the frame that it lacks, and wider types."""
    metadata = tx.table_metadata
    more = schema_to_merge(frame, metadata.schema(), metadata.format_version)
    if more is not None:
        with tx.update_schema() as update:
            update.union_by_name(more)


def schema_to_merge(frame: Any, schema: Schema, version: int) -> Schema | None:
    """The additions to a table's schema before the frame is written; None if there are none.

    Columns that are there stay as they are unless their type can be promoted to the frame's; a type that fits neither way
    is left to be refused when the frame is shaped.
    """
    sensitive = is_case_sensitive(frame.sparkSession)
    merged, changed = _merged(schema_of_query(frame.schema).as_struct, schema.as_struct, version, sensitive)
    return Schema(*merged) if changed else None


def check_nullability(frame: Any, schema: Schema) -> None:
    """Raise if a column that Spark considers nullable is given for a required one."""
    sensitive = is_case_sensitive(frame.sparkSession)
    for field in schema.fields:
        for given in frame.schema.fields:
            same = given.name == field.name or (not sensitive and given.name.lower() == field.name.lower())
            if same and field.required and given.nullable:
                raise InvalidValueError(
                    f"column {given.name!r} may have null in the data; the table requires {field.field_type} there;"
                    " filter the nulls out, or leave 'check-nullability' off to have values checked instead"
                )


def _merged(
    given: types.StructType, mine: types.StructType, version: int, case_sensitive: bool
) -> tuple[list[types.NestedField], bool]:
    """The fields of the frame that say something new, under the table's names, and whether there are any."""
    fields, changed = [], False
    for field in given.fields:
        own = _own(field.name, mine, case_sensitive)
        if own is None:
            fields.append(field)
            changed = True
            continue
        merged_type, is_new = _merged_type(field.field_type, own.field_type, version, case_sensitive)
        fields.append(types.NestedField(field.field_id, own.name, merged_type, own.required))
        changed |= is_new
    return fields, changed


def _merged_type(
    given: types.IcebergType, mine: types.IcebergType, version: int, case_sensitive: bool
) -> tuple[types.IcebergType, bool]:
    if isinstance(given, types.StructType) and isinstance(mine, types.StructType):
        fields, changed = _merged(given, mine, version, case_sensitive)
        return types.StructType(*fields), changed
    if isinstance(given, types.ListType) and isinstance(mine, types.ListType):
        merged_type, changed = _merged_type(given.element_type, mine.element_type, version, case_sensitive)
        return types.ListType(given.element_id, merged_type, mine.element_required), changed
    if isinstance(given, types.MapType) and isinstance(mine, types.MapType):
        merged_type, changed = _merged_type(given.value_type, mine.value_type, version, case_sensitive)
        return types.MapType(given.key_id, mine.key_type, given.value_id, merged_type, mine.value_required), changed
    if given != mine and can_promote(mine, given, version):
        return given, True
    return mine, False


def _own(name: str, mine: types.StructType, case_sensitive: bool) -> types.NestedField | None:
    exact = [field for field in mine.fields if field.name == name]
    same = [field for field in mine.fields if not case_sensitive and field.name.lower() == name.lower()]
    return next(iter([*exact, *same]), None)
