"""`CALL catalog.system.procedure(...)`: the arguments become Python values, and the rows a frame."""

import datetime as dt
from typing import Any

from pyspark.sql import functions
from pyspark.sql import types as spark_types

from icefloe.errors import InvalidInputError
from icefloe.spark.sql_context import SqlContext, plan_of
from icefloe.spark.sql_foreign import sparks_table
from icefloe.spark.sql_nodes import items, kind_of, parts
from icefloe.sql.procedures import NAMESPACE, call

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
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for each in items(node.args()):
        if kind_of(each) == "NamedArgumentExpression":
            named[each.key()] = value_of(each.value(), context)
        elif named:
            raise InvalidInputError("arguments by position come before those by name")
        else:
            positional.append(value_of(each, context))
    namespace = home[1] if home is not None and context.names.catalogs[home[0]] is catalog else ()
    rows = call(catalog, rest[1], positional, named, namespace, lambda source: sparks_table(source, context))
    return plan_of(context.gateway.spark.createDataFrame(rows))


def value_of(expression: Any, context: SqlContext) -> Any:
    """What a constant expression is worth, as a Python value; timestamps with their zone."""
    frame = context.gateway.spark.range(1).select(context.gateway.column(expression).alias("value"))
    if isinstance(frame.schema[0].dataType, spark_types.TimestampType | spark_types.TimestampNTZType):
        micros = frame.select(functions.unix_micros(functions.col("value").cast("timestamp"))).first()
        return None if micros is None or micros[0] is None else _EPOCH + dt.timedelta(microseconds=micros[0])
    row = frame.first()
    return None if row is None else row[0]
