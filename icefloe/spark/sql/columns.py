"""`ALTER TABLE` of columns: add, drop, rename, replace all, and change type, position, comment, nullability and default."""

from collections.abc import Callable

from py4j.java_gateway import JavaObject
from pyspark.sql.types import CharType, StructField, StructType, VarcharType

from icefloe.errors import AlreadyExistsError, InvalidInputError, NoSuchColumnError
from icefloe.schema import SchemaUpdate
from icefloe.spark.column_names import check_no_twins
from icefloe.spark.literals import value_of_literal
from icefloe.spark.sql.context import SqlContext, Statement, about_table
from icefloe.spark.sql.names import Parts
from icefloe.spark.sql.nodes import argument, class_of, items, option, spark_type
from icefloe.spark.types import COMMENT, CURRENT_DEFAULT, EXISTS_DEFAULT, schema_from_spark, type_from_spark
from icefloe.table import Table


@about_table
def _change(node: JavaObject, table: Table, context: SqlContext) -> None:
    sensitive = context.is_case_sensitive
    with table.update_schema(case_sensitive=sensitive) as update:
        match class_of(node):
            case "DropColumns":
                _drop(node, update, sensitive)
            case "RenameColumn":
                _rename(_path(node.column()), node.newName(), update, table, sensitive)
            case "AlterColumns":
                for spec in items(node.specs()):
                    _alter(spec, update, table, sensitive)
            case name:
                # New columns have new ids, whatever their names: what the files have under the old ones is not shown any more.
                for field in table.schema().fields if name == "ReplaceColumns" else ():
                    update.delete_column((field.name,))
                for column in items(node.columnsToAdd()):
                    _add(column, update, sensitive)


STATEMENTS: dict[str, Statement] = dict.fromkeys(
    ("AddColumns", "DropColumns", "RenameColumn", "AlterColumns", "ReplaceColumns"), _change
)


def _path(name: JavaObject) -> Parts:
    return tuple(items(name.name()))


def _add(column: JavaObject, update: SchemaUpdate, case_sensitive: bool) -> None:
    around = option(column.path())
    path = (*(() if around is None else _path(around)), column.colName())
    schema = schema_from_spark(StructType([struct_field(column.colName(), column, option(column.default()))]))
    check_no_twins(schema, case_sensitive)
    field = schema.fields[0]
    try:
        update.add_column(
            path,
            field.field_type,
            doc=field.doc,
            required=field.required,
            default_value=field.initial_default,
        )
    except AlreadyExistsError as error:
        raise AlreadyExistsError(f"[FIELD_ALREADY_EXISTS] {error}") from None
    _move(path, option(column.position()), update)


def _rename(path: Parts, name: str, update: SchemaUpdate, table: Table, case_sensitive: bool) -> None:
    """As in Spark, an existing name cannot be taken, not even by the same column in another case."""
    folded: Callable[[str], str] = str if case_sensitive else str.lower
    new_path = folded(".".join((*path[:-1], name)))
    same = [column for column in table.schema().column_names if folded(column) == new_path]
    update.rename_column(path, name)
    if same:
        raise AlreadyExistsError(
            f"[FIELD_ALREADY_EXISTS] cannot rename {'.'.join(path)!r} to {name!r}: there is a column {same[0]!r}"
        )


def struct_field(name: str, column: JavaObject, default: str | JavaObject | None) -> StructField:
    """The column of a statement, with its comment and default, as Spark has it."""
    comment = option(column.comment())
    metadata = {} if comment is None else {COMMENT: comment}
    if default is not None:
        metadata |= dict.fromkeys((CURRENT_DEFAULT, EXISTS_DEFAULT), _default_text(default))
    return StructField(name, spark_type(column.dataType()), column.nullable(), metadata)


def _default_text(default: str | JavaObject) -> str:
    """The text of a default value, which is all that Spark 4.0 has."""
    return default if isinstance(default, str) else str(default.originalSQL())


def _drop(node: JavaObject, update: SchemaUpdate, case_sensitive: bool) -> None:
    paths = [_path(name) for name in items(node.columnsToDrop())]
    # Spark accepts a column that is named twice.
    for path in {tuple(part if case_sensitive else part.lower() for part in path): path for path in paths}.values():
        try:
            update.delete_column(path)
        except NoSuchColumnError:
            if not node.ifExists():
                raise


def _alter(spec: JavaObject, update: SchemaUpdate, table: Table, case_sensitive: bool) -> None:
    path = _path(spec.column())
    data_type, nullable, comment = (
        option(change) for change in (spec.newDataType(), spec.newNullability(), spec.newComment())
    )
    if data_type is not None:
        shown = spark_type(data_type)
        if isinstance(shown, CharType | VarcharType):
            raise InvalidInputError(
                f"[NOT_SUPPORTED_CHANGE_COLUMN] column {'.'.join(path)!r} cannot become {shown.simpleString()}: Iceberg's strings"
                " have no lengths; write STRING"
            )
        update.update_column(path, type_from_spark(shown))
    if nullable is not None:
        change = update.make_column_optional if nullable else update.require_column
        change(path)
    if comment is not None:
        update.set_doc(path, comment)
    _move(path, option(spec.newPosition()), update)
    _default(spec, path, update, table, case_sensitive)


def _default(spec: JavaObject, path: Parts, update: SchemaUpdate, table: Table, case_sensitive: bool) -> None:
    default = option(spec.newDefaultExpression())
    text = "" if default is None else _default_text(default).strip()
    if text:
        field_type = table.schema().find_type(".".join(path), case_sensitive)
        update.set_default_value(path, value_of_literal(text, field_type))
    elif default is not None or argument(spec, "dropDefault", False):
        # Spark 4.0 drops a default by an empty one.
        update.set_default_value(path, None)


def _move(path: Parts, position: JavaObject | None, update: SchemaUpdate) -> None:
    if position is None:
        return
    target = position.position() if class_of(position).startswith("Unresolved") else position
    if class_of(target).startswith("First"):
        update.move_first(path)
    else:
        update.move_after(path, (*path[:-1], target.column()))
