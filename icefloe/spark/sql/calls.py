"""`CALL catalog.system.procedure(...)`: the arguments become Python values, and the rows a frame."""

import datetime as dt
from typing import Any

from pyspark.sql import functions, types as spark_types

from icefloe.errors import InvalidInputError
from icefloe.spark.sql.context import SqlContext, plan_of
from icefloe.spark.sql.foreign import sparks_table
from icefloe.spark.sql.nodes import items, kind_of, parts
from icefloe.sql.calling import Parameter, ParameterType
from icefloe.sql.procedures import NAMESPACE, PROCEDURES, call

_CAST_TEXTS = {ParameterType.TIMESTAMP: "timestamp", ParameterType.LONG: "bigint", ParameterType.INTEGER: "int"}
"""The types to which Spark casts a string argument, by kind of parameter; times are in the session's time zone."""
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def run_call(node: Any, context: SqlContext) -> Any | None:
    """The plan of a procedure's rows; None if the node is no call, or the procedure is not in one of our catalogs."""
    if kind_of(node) != "Call":
        return None
    name = parts(node.procedure())
    home = context.names.home(context.default)
    if len(name) == 3 and name[0] in context.names.catalogs:
        catalog, rest = context.names.catalogs[name[0]], name[1:]
    elif len(name) == 2 and home is not None:
        catalog, rest = context.names.catalogs[home[0]], name
    else:
        return None
    if rest[0].lower() != NAMESPACE:
        raise InvalidInputError(f"procedures are in the namespace {NAMESPACE!r}, not in {rest[0]!r}")
    known = PROCEDURES[rest[1].lower()].parameters if rest[1].lower() in PROCEDURES else ()
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for index, expression in enumerate(items(node.args())):
        if kind_of(expression) == "NamedArgumentExpression":
            key = expression.key()
            if key in named:
                raise InvalidInputError(f"{key!r} is given twice")
            parameter = next((one for one in known if one.name.lower() == key.lower()), None)
            named[key] = value_of(expression.value(), context, parameter)
        elif named:
            raise InvalidInputError("arguments by position come before those by name")
        else:
            positional.append(value_of(expression, context, known[index] if index < len(known) else None))
    namespace = home[1] if home is not None and context.names.catalogs[home[0]] is catalog else ()
    rows = call(catalog, rest[1], positional, named, namespace, lambda source: sparks_table(source, context))
    return plan_of(context.gateway.spark.createDataFrame(rows))


def value_of(expression: Any, context: SqlContext, parameter: Parameter | None = None) -> Any:
    """The Python value of a constant expression, cast for its parameter if it has one; timestamps have a time zone."""
    frame = context.gateway.spark.range(1).select(context.gateway.column(expression).alias("value"))
    if parameter is not None and isinstance(frame.schema[0].dataType, spark_types.StringType):
        cast_type = _CAST_TEXTS.get(parameter.type)
        frame = frame if cast_type is None else frame.select(functions.col("value").cast(cast_type).alias("value"))
    if isinstance(frame.schema[0].dataType, spark_types.TimestampType | spark_types.TimestampNTZType):
        micros = frame.select(functions.unix_micros(functions.col("value").cast("timestamp"))).first()
        return None if micros is None or micros[0] is None else _EPOCH + dt.timedelta(microseconds=micros[0])
    row = frame.first()
    return None if row is None else row[0]
