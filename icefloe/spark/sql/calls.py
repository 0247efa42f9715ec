"""`CALL catalog.system.procedure(...)`: the arguments become Python values, the rows a frame."""

import datetime as dt
from typing import Any

from py4j.java_gateway import JavaObject
from pyspark.sql import functions
from pyspark.sql.types import DataType, IntegerType, LongType, StringType, TimestampNTZType, TimestampType

from icefloe.errors import InvalidInputError
from icefloe.spark.sql.context import SqlContext, Statement, constant, plan_of
from icefloe.spark.sql.nodes import class_of, items, parts
from icefloe.spark.sql.sparks_tables import SparksTables
from icefloe.sql.calling import Parameter, ParameterType
from icefloe.sql.procedures import NAMESPACE, PROCEDURES, call

_CAST_TEXTS: dict[ParameterType, DataType] = {
    ParameterType.TIMESTAMP: TimestampType(),
    ParameterType.LONG: LongType(),
    ParameterType.INTEGER: IntegerType(),
}
"""The types to which Spark casts a string argument, by the type of the parameter; times are in the session's time zone."""
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def _call(node: JavaObject, context: SqlContext) -> JavaObject | None:
    """The plan of a procedure's rows; None if the procedure is not in one of our catalogs."""
    name, home = parts(node.procedure()), context.names.home(context.default)
    if len(name) == 3 and name[0] in context.names.catalogs:
        catalog, namespace, procedure = context.names.catalogs[name[0]], *name[1:]
    elif len(name) == 2 and home is not None:
        catalog, namespace, procedure = context.names.catalogs[home[0]], *name
    else:
        return None
    if namespace.lower() != NAMESPACE:
        raise InvalidInputError(f"procedures are in the namespace {NAMESPACE!r}, not in {namespace!r}")
    known = PROCEDURES[procedure.lower()].parameters if procedure.lower() in PROCEDURES else ()
    positional: list[object] = []
    named: dict[str, object] = {}
    for index, expression in enumerate(items(node.args())):
        if class_of(expression) == "NamedArgumentExpression":
            key = expression.key()
            if key in named:
                raise InvalidInputError(f"{key!r} is given twice")
            parameter = next((parameter for parameter in known if parameter.name.lower() == key.lower()), None)
            named[key] = value_of(expression.value(), context, parameter)
        elif named:
            raise InvalidInputError("arguments by position come before those by name")
        else:
            positional.append(value_of(expression, context, known[index] if index < len(known) else None))
    current = home[1] if home is not None and context.names.catalogs[home[0]] is catalog else ()
    rows = call(catalog, procedure, positional, named, current, SparksTables(context), context.spark)
    return plan_of(context.spark.createDataFrame(rows))


STATEMENTS: dict[str, Statement] = {"Call": _call}


def value_of(expression: JavaObject, context: SqlContext, parameter: Parameter | None = None) -> Any:
    """The Python value of a constant expression, cast for its parameter if it has one; timestamps have a time zone."""
    column = context.gateway.column(expression)
    data_type = context.spark.range(1).select(column).schema[0].dataType
    if parameter is not None and isinstance(data_type, StringType) and parameter.type in _CAST_TEXTS:
        data_type = _CAST_TEXTS[parameter.type]
        column = column.cast(data_type)
    if isinstance(data_type, TimestampType | TimestampNTZType):
        micros = constant(functions.unix_micros(column.cast("timestamp")), context.spark)
        return None if micros is None else _EPOCH + dt.timedelta(microseconds=micros)
    return constant(column, context.spark)
