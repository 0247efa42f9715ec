"""`ALTER TABLE` of columns: add, drop, rename, replace all, and change type, position, comment, nullability and default."""

from typing import Any

from pyspark.sql import types as spark_types

from icefloe.errors import AlreadyExistsError, InvalidInputError, NoSuchColumnError
from icefloe.schema import NestedField, Schema, SchemaUpdate
from icefloe.spark.column_names import check_no_twins
from icefloe.spark.literals import value_of_literal
from icefloe.spark.sql.context import SqlContext
from icefloe.spark.sql.nodes import default_text, drops_default, items, kind_of, option, spark_type
from icefloe.spark.types import CURRENT_DEFAULT, EXISTS_DEFAULT, schema_from_spark, type_from_spark
from icefloe.table import Table


def run_columns(node: Any, context: SqlContext) -> Any | None:
    """The result plan of a statement about columns; None if it is none, or not about a table of ours."""
    if kind_of(node) not in ("AddColumns", "DropColumns", "RenameColumn", "AlterColumns", "ReplaceColumns"):
        return None
    table = context.existing(node.child())
    if table is None:
        return None
    sensitive = context.is_case_sensitive
    with table.update_schema(case_sensitive=sensitive) as update:
        match kind_of(node):
            case "AddColumns":
                for column in items(node.columnsToAdd()):
                    _add(column, update, sensitive)
            case "DropColumns":
                _drop(node, update, sensitive)
            case "ReplaceColumns":
                # New columns have new ids, whatever their names: what the files have under the old ones is not shown any more.
                for field in table.schema().fields:
                    update.delete_column((field.name,))
                for column in items(node.columnsToAdd()):
                    _add(column, update, sensitive)
            case "RenameColumn":
                _rename(_path(node.column()), node.newName(), update, table, sensitive)
            case _:
                for spec in items(node.specs()):
                    _alter(spec, update, table, sensitive)
    return context.result()


def _path(name: Any) -> tuple[str, ...]:
    return tuple(items(name.name()))


def _add(column: Any, update: SchemaUpdate, case_sensitive: bool) -> None:
    around = option(column.path())
    path = (*(() if around is None else _path(around)), column.colName())
    field = _field(column)
    check_no_twins(Schema(field), case_sensitive)
    try:
        update.add_column(
            path,
            field.field_type,
            doc=option(column.comment()),
            required=not column.nullable(),
            default_value=field.initial_default,
        )
    except AlreadyExistsError as error:
        raise AlreadyExistsError(f"[FIELD_ALREADY_EXISTS] {error}") from None
    _move(path, option(column.position()), update)


def _rename(path: tuple[str, ...], name: str, update: SchemaUpdate, table: Table, case_sensitive: bool) -> None:
    """As in Spark, an existing name cannot be taken, not even by the same column in another case."""
    new_path = ".".join((*path[:-1], name))
    same = [column for column in table.schema().column_names if _is_same(column, new_path, case_sensitive)]
    update.rename_column(path, name)
    if same:
        raise AlreadyExistsError(
            f"[FIELD_ALREADY_EXISTS] cannot rename {'.'.join(path)!r} to {name!r}: there is a column {same[0]!r}"
        )


def _is_same(one: str, other: str, case_sensitive: bool) -> bool:
    return one == other or (not case_sensitive and one.lower() == other.lower())


def _field(column: Any) -> NestedField:
    default = option(column.default())
    metadata = {} if default is None else dict.fromkeys((CURRENT_DEFAULT, EXISTS_DEFAULT), default_text(default))
    shown = spark_types.StructField(column.colName(), spark_type(column.dataType()), column.nullable(), metadata)
    return schema_from_spark(spark_types.StructType([shown])).fields[0]


def _drop(node: Any, update: SchemaUpdate, case_sensitive: bool) -> None:
    paths = [_path(name) for name in items(node.columnsToDrop())]
    # Spark accepts a column that is named twice.
    for path in {tuple(part if case_sensitive else part.lower() for part in path): path for path in paths}.values():
        try:
            update.delete_column(path)
        except NoSuchColumnError:
            if not node.ifExists():
                raise


def _alter(spec: Any, update: SchemaUpdate, table: Table, case_sensitive: bool) -> None:
    path = _path(spec.column())
    data_type, nullable, comment = (
        option(change) for change in (spec.newDataType(), spec.newNullability(), spec.newComment())
    )
    if data_type is not None:
        shown = spark_type(data_type)
        if isinstance(shown, spark_types.CharType | spark_types.VarcharType):
            raise InvalidInputError(
                f"[NOT_SUPPORTED_CHANGE_COLUMN] column {'.'.join(path)!r} cannot become {shown.simpleString()}: Iceberg's strings"
                " have no lengths; write STRING"
            )
        update.update_column(path, type_from_spark(shown))
    if nullable is not None:
        if nullable:
            update.make_column_optional(path)
        else:
            update.require_column(path)
    if comment is not None:
        update.set_doc(path, comment)
    _move(path, option(spec.newPosition()), update)
    _default(spec, path, update, table, case_sensitive)


def _default(spec: Any, path: tuple[str, ...], update: SchemaUpdate, table: Table, case_sensitive: bool) -> None:
    default = option(spec.newDefaultExpression())
    text = "" if default is None else default_text(default).strip()
    if text:
        field_type = table.schema().find_type(".".join(path), case_sensitive)
        update.set_default_value(path, value_of_literal(text, field_type))
    elif default is not None or drops_default(spec):
        update.set_default_value(path, None)


def _move(path: tuple[str, ...], position: Any, update: SchemaUpdate) -> None:
    if position is None:
        return
    target = position.position() if kind_of(position).startswith("Unresolved") else position
    if kind_of(target).startswith("First"):
        update.move_first(path)
    else:
        update.move_after(path, (*path[:-1], target.column()))
