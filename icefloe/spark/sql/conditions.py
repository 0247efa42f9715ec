"""Conditions of Spark as texts of our own predicates: the same constants, written as we read them."""

import datetime as dt
import re

from py4j.java_gateway import JavaObject
from pyspark.sql import Column, DataFrame, SparkSession, functions

from icefloe.errors import InvalidInputError
from icefloe.schema import Schema
from icefloe.spark.gateway import Gateway
from icefloe.spark.sql.context import constant
from icefloe.spark.sql.nodes import class_of, copy, items, rebuilt_expressions
from icefloe.spark.types import mapping_of, user_schema

_TOKEN = re.compile(
    r"""TIMESTAMP\ '(?P<moment>[^']*)'          # in the time zone of the session
      | TIMESTAMP_NTZ\ '(?P<local>[^']*)'
      | CAST\('(?P<real>[^']*)'\ AS\ (?P<type>FLOAT|DOUBLE)\)   # numbers that have no letter of their own
      | (?P<text>'(?:[^'\\]|\\.|'')*')            # quotes and backslashes come after a backslash
      | (?P<name>`(?:[^`]|``)*`)
      | (?<![\w.])(?P<number>\d+(?:\.\d*)?(?:E[+-]?\d+)?)(?:L|S|Y|D|F|BD)\b""",
    re.VERBOSE,
)
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def predicate_text(sql: str, spark: SparkSession) -> str:
    """What Spark writes for a condition, as we read it."""

    def ours(token: re.Match[str]) -> str:
        if (moment := token["moment"]) is not None:
            return f"TIMESTAMP '{_in_utc(moment, spark)}'"
        if (local := token["local"]) is not None:
            return f"TIMESTAMP '{local}'"
        if (real := token["real"]) is not None:
            return f"{token['type']} '{real}'"
        if (text := token["text"]) is not None:
            plain = re.sub(r"\\(.)|''", lambda escape: escape[1] or "'", text[1:-1])
            return "'" + plain.replace("'", "''") + "'"
        return str(token["number"] or token["name"])

    return _TOKEN.sub(ours, sql)


def predicate_of(condition: str | Column, schema: Schema, spark: SparkSession) -> str:
    """A condition over the columns of a table, resolved by Spark, as text of ours."""
    frame = spark.createDataFrame([], user_schema(schema, mapping_of(spark)))
    column = functions.expr(condition) if isinstance(condition, str) else condition
    plan = frame.filter(column)._jdf.queryExecution().analyzed()
    rules = spark._jvm.org.apache.spark.sql.catalyst.optimizer
    # BETWEEN and the like stand for plainer comparisons; literals come with casts around them until these rules take them away.
    for rule in (
        rules.ReplaceExpressions,
        rules.RewriteWithExpression,
        rules.ConstantFolding,
        rules.UnwrapCastInBinaryComparison,
    ):
        plan = rule.apply(plan)
    if class_of(plan) != "Filter":
        raise InvalidInputError(f"{condition} is not a condition on columns alone, as overwriting requires")
    return predicate_text(_with_exact_names(plan, frame).condition().sql(), spark)


def _with_exact_names(plan: JavaObject, frame: DataFrame) -> JavaObject:
    """The filter with columns and fields as the frame writes them, and not in the case that the condition does."""
    gateway = Gateway(frame.sparkSession).callbacks()
    output = frame._jdf.queryExecution().analyzed().output()
    columns = {attribute.exprId().id(): attribute for attribute in items(output)}

    def exact(node: JavaObject) -> JavaObject:
        match class_of(node):
            case "AttributeReference":
                return columns.get(node.exprId().id(), node)
            case "GetStructField":
                return copy(gateway, node, name=gateway.none())
            case _:
                return node

    return rebuilt_expressions(plan, exact)


def _in_utc(text: str, spark: SparkSession) -> str:
    micros = constant(functions.unix_micros(functions.lit(text).try_cast("timestamp")), spark)
    if micros is None:
        raise InvalidInputError(f"TIMESTAMP {text!r} is not a valid timestamp")
    return (_EPOCH + dt.timedelta(microseconds=micros)).isoformat()
