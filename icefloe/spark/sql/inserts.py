"""`INSERT`: which columns its query fills, by position or by name, what DEFAULT is there, and which rows the new ones replace."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from py4j.java_gateway import JavaObject
from pyspark.sql import DataFrame, SparkSession, functions
from pyspark.sql.types import StructField, StructType

from icefloe import errors, expressions as ex
from icefloe.data import write_default
from icefloe.partitioning import transforms as tr
from icefloe.schema import Schema, Value, parse_text, types
from icefloe.spark.auditing import destination
from icefloe.spark.column_names import column_path, take_in_columns
from icefloe.spark.literals import sql_literal, text_literal
from icefloe.spark.shaping import shape_frame
from icefloe.spark.spark_sessions import is_case_sensitive
from icefloe.spark.sql.conditions import predicate_of
from icefloe.spark.sql.context import SqlContext, constant
from icefloe.spark.sql.names import Source
from icefloe.spark.sql.nodes import argument, class_of, copy, items, mapping as entries, option
from icefloe.spark.sql.queries import resolve
from icefloe.spark.store_assignment import check_policy, store_assigned, with_names_of
from icefloe.spark.types import CURRENT_DEFAULT, TypeMapping, mapping_of, user_type
from icefloe.spark.user_side import quoted_name
from icefloe.spark.writing import session_properties
from icefloe.table import Table

_OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"
_DEFAULT = re.compile(r"\bdefault\b", re.IGNORECASE)


def insert(node: JavaObject, target: Source, context: SqlContext, *, is_checked: bool = False) -> Callable[[], None]:
    """A function that runs an INSERT; everything that can be checked without running it is checked first."""
    table = target.load_table()
    partition = entries(context.gateway, node.partitionSpec())
    static = _static_partition(partition, table, context)
    listed = items(node.userSpecifiedCols())
    query = resolve(node.query(), context)
    if _DEFAULT.search(context.mentions):
        columns = _filled_columns(listed, static, table.schema(), context.is_case_sensitive)
        query = _with_defaults(node, query, [table.schema().find_field(name) for name in columns], context)
    frame = context.frame_of(query)
    if (listed or frame.columns) != [field.name for field in table.schema().fields]:
        check_policy(context.spark)
    frame = _named(frame, table, static, by_name=node.byName(), listed=listed)
    where = _replaced_rows(node, table, context)
    evolves = bool(argument(node, "withSchemaEvolution", False))

    def assigned(schema: Schema) -> DataFrame:
        by_position = not node.byName() and not listed
        return store_assigned(frame, schema, ".".join(table.name()), by_position=by_position, evolves=evolves)

    if is_checked and not evolves:
        shape_frame(assigned(table.schema()), table.schema())

    def run() -> None:
        with table.transaction() as tx:
            if evolves:
                take_in_columns(tx, frame)
            new_rows = assigned(tx.table_metadata.schema())
            to = destination(context.spark, table, target.ref)
            rows = tx.rows(to.branch, to.snapshot_properties)
            rows = replace(rows, write_properties=session_properties(context.spark))
            if where is not None:
                rows.overwrite(new_rows, where)
            elif not node.overwrite():
                rows.append(new_rows)
            elif str(context.spark.conf.get(_OVERWRITE_MODE)).lower() == "dynamic":
                rows.dynamic_partition_overwrite(new_rows)
            else:
                rows.overwrite(new_rows, _static_filter(static, table, context.spark))

    return run


def _replaced_rows(node: JavaObject, table: Table, context: SqlContext) -> str | None:
    """The condition of REPLACE WHERE, if the statement has one."""
    criteria = argument(node, "replaceCriteriaOpt")
    criteria = None if criteria is None else option(criteria)
    if criteria is None:
        return None
    if class_of(criteria) != "InsertReplaceWhere":
        raise errors.InvalidInputError("only REPLACE WHERE says which rows an INSERT replaces")
    return predicate_of(context.gateway.column(criteria.cond()), table.schema(), context.spark)


def _filled_columns(
    listed: Sequence[str], static: Mapping[str, str | None], schema: Schema, case_sensitive: bool
) -> list[str]:
    """The columns that the query of an INSERT fills, in the order of the query."""
    names = [column_path((name,), schema, case_sensitive)[0] for name in listed]
    if twice := [name for name in names if name in static]:
        raise errors.InvalidInputError(
            f"[STATIC_PARTITION_COLUMN_IN_INSERT_COLUMN_LIST] {twice[0]!r} has a value in PARTITION, and is in the"
            " list of columns; leave it out of one of them"
        )
    return names or [field.name for field in schema.fields if field.name not in static]


def _static_partition(partition: Mapping[str, JavaObject], table: Table, context: SqlContext) -> dict[str, str | None]:
    """The values of a PARTITION clause by column, where None is NULL; columns without a value there come from the query."""
    sources = {field.source_id for field in table.spec().fields if isinstance(field.transform, tr.IdentityTransform)}
    by = {field.field_id: field.name for field in table.schema().fields if field.field_id in sources}
    values = {}
    for name, value in partition.items():
        column = by.get(table.schema().find_id(name, context.is_case_sensitive) or 0)
        if column is None:
            raise errors.InvalidInputError(
                f"[NON_PARTITION_COLUMN] PARTITION names {name!r}, by whose values the table is not partitioned;"
                f" it is by those of {', '.join(by.values()) or 'no column'}"
            )
        if value.isDefined():
            values[column] = value.get()
    return values


def replace_where(node: JavaObject, target: Source, context: SqlContext) -> None:
    table = target.load_table()
    frame = _named(context.frame_of(resolve(node.query(), context)), table, {}, by_name=node.isByName())
    where = predicate_of(context.gateway.column(node.deleteExpr()), table.schema(), context.spark)
    frame = store_assigned(frame, table.schema(), ".".join(table.name()), by_position=not node.isByName())
    to = destination(context.spark, table, target.ref)
    table.overwrite(frame, where, to.snapshot_properties, branch=to.branch)


def _named(
    frame: DataFrame,
    table: Table,
    static: Mapping[str, str | None],
    *,
    by_name: bool = False,
    listed: Sequence[str] = (),
) -> DataFrame:
    """The frame with the table's column names, by position unless the statement says otherwise."""
    schema, sensitive = table.schema(), is_case_sensitive(frame.sparkSession)
    if by_name:
        for name in frame.columns:
            schema.find_id(name, sensitive)
    else:
        names = _filled_columns(listed, static, schema, sensitive)
        if len(frame.columns) != len(names):
            raise errors.InvalidInputError(
                f"INSERT INTO {'.'.join(table.name())}: the data has {len(frame.columns)} columns"
                f" ({', '.join(frame.columns)}), and {len(names)} are wanted: {', '.join(names)}"
            )
        frame = frame.toDF(*names)
        frame = _renamed(frame, schema) if listed else frame
    for name, value in static.items():
        shown = user_type(schema.find_type(name), mapping_of(frame.sparkSession))
        frame = frame.withColumn(name, functions.lit(value).cast(shown))
    return frame


def _renamed(frame: DataFrame, schema: Schema) -> DataFrame:
    """The frame for a list of columns: as in Spark, columns then match by name, and the fields of their structs by position."""
    changed = {}
    for field in frame.schema.fields:
        renamed = with_names_of(field.dataType, schema.find_type(field.name))
        if renamed != field.dataType:
            changed[field.name] = frame[quoted_name(field.name)].cast(renamed)
    return frame.withColumns(changed) if changed else frame


def _static_filter(static: Mapping[str, str | None], table: Table, spark: SparkSession) -> ex.Expression:
    """The filter of the rows that an overwrite of these partitions removes: all rows if none is given."""

    def predicate(field: types.NestedField, text: str | None) -> ex.Expression:
        column = ex.IdReference(field.field_id)
        if text is None:
            return ex.IsNull(column)
        return ex.EqualTo(column, ex.Literal(_cast_text(text, field.field_type, spark), field.field_type))

    return ex.conjunction(*(predicate(table.schema().find_field(name), text) for name, text in static.items()))


def _cast_text(text: str, field_type: types.IcebergType, spark: SparkSession) -> Value:
    """The value of a PARTITION clause, a text, cast as Spark casts it for the new rows."""
    match field_type:
        case types.BinaryType() | types.FixedType():
            return text.encode()
        case types.TimestamptzType():
            number = functions.unix_micros(functions.lit(text).cast("timestamp"))
        case types.DateType():
            number = functions.unix_date(functions.lit(text).cast("date"))
        case _:
            return parse_text(text, field_type)
    value = constant(number, spark)
    if value is None:
        raise errors.InvalidValueError(f"{text!r} is not a value of type {field_type}")
    return value


def _with_defaults(
    node: JavaObject, query: JavaObject, fields: Sequence[types.NestedField], context: SqlContext
) -> JavaObject:
    """The query of an INSERT for these columns, with the word DEFAULT replaced by each column's default, by Spark's own rule.

    The rule is one for INSERT alone. So it is given the statement, about a relation that has the columns in question.
    """
    gateway, catalyst, mapping = context.gateway, context.catalyst, mapping_of(context.spark)
    columns = StructType([_column(field, mapping) for field in fields])
    attributes = catalyst.types.DataTypeUtils.toAttributes(gateway.type(columns))
    table = catalyst.plans.logical.LocalRelation(attributes, gateway.seq(()), False, gateway.none())
    nothing = gateway.jvm.PythonUtils.toScalaMap(gateway.jvm.java.util.HashMap())
    insertion = copy(
        gateway, node, table=table, query=query, partitionSpec=nothing, userSpecifiedCols=gateway.seq(()), byName=False
    )
    return context.state.analyzer().execute(insertion).query()


def _column(field: types.NestedField, mapping: TypeMapping) -> StructField:
    default = write_default(field)
    text = None if default is None else _text(default, field.field_type, mapping)
    metadata = {} if text is None else {CURRENT_DEFAULT: text}
    return StructField(field.name, user_type(field.field_type, mapping), field.optional, metadata)


def _text(value: Value, field_type: types.IcebergType, mapping: TypeMapping) -> str:
    """A value as a SQL literal."""
    if value is None:
        return "NULL"
    if isinstance(field_type, types.StructType):
        inner = dict(value)
        fields = (
            f"{text_literal(field.name)}, {_text(inner[field.field_id], field.field_type, mapping)}"
            for field in field_type
        )
        return f"named_struct({', '.join(fields)})"
    return str(sql_literal(value, field_type, user_type(field_type, mapping)))
