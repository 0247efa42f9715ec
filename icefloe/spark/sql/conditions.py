"""Conditions of Spark as texts of our own predicates: the same constants, written as we read them."""

import datetime as dt
import re
from typing import Any

from pyspark.sql import Column, DataFrame, functions

from icefloe.errors import InvalidInputError
from icefloe.spark.gateway import Gateway
from icefloe.spark.sql.nodes import copy, items, kind_of, rebuilt_expressions

_TOKEN = re.compile(
    r"""TIMESTAMP\ '(?P<moment>[^']*)'          # in the time zone of the session
      | TIMESTAMP_NTZ\ '(?P<local>[^']*)'
      | CAST\('(?P<real>[^']*)'\ AS\ (?P<kind>FLOAT|DOUBLE)\)   # numbers that have no letter of their own
      | (?P<text>'(?:[^'\\]|\\.|'')*')            # quotes and backslashes come after a backslash
      | (?P<name>`(?:[^`]|``)*`)
      | (?<![\w.])(?P<number>\d+(?:\.\d*)?(?:E[+-]?\d+)?)(?:L|S|Y|D|F|BD)\b""",
    re.VERBOSE,
)
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def predicate_text(sql: str, spark: Any) -> str:
    """What Spark writes for a condition, as we read it."""

    def ours(token: re.Match[str]) -> str:
        if (moment := token["moment"]) is not None:
            return f"TIMESTAMP '{_in_utc(moment, spark)}'"
        if (local := token["local"]) is not None:
            return f"TIMESTAMP '{local}'"
        if (real := token["real"]) is not None:
            return f"{token['kind']} '{real}'"
        if (text := token["text"]) is not None:
            plain = re.sub(r"\\(.)|''", lambda escape: escape[1] or "'", text[1:-1])
            return "'" + plain.replace("'", "''") + "'"
        return str(token["number"] or token["name"])

    return _TOKEN.sub(ours, sql)


def predicate_of(condition: str | Column, frame: DataFrame) -> str:
    """A condition over the columns of a frame, resolved by Spark, as text of ours."""
    chosen = functions.expr(condition) if isinstance(condition, str) else condition
    spark = frame.sparkSession
    plan: Any = frame.filter(chosen)._jdf.queryExecution().analyzed()
    rules = spark._jvm.org.apache.spark.sql.catalyst.optimizer
    # BETWEEN and the like stand for plainer comparisons; literals come with casts around them until these rules take them away.
    for rule in (
        rules.ReplaceExpressions,
        rules.RewriteWithExpression,
        rules.ConstantFolding,
        rules.UnwrapCastInBinaryComparison,
    ):
        plan = rule.apply(plan)
    if plan.getClass().getSimpleName() != "Filter":
        raise InvalidInputError(f"{condition} is no condition of columns alone; only those choose what is overwritten")
    return predicate_text(_with_exact_names(plan, frame).condition().sql(), spark)


def _with_exact_names(plan: Any, frame: DataFrame) -> Any:
    """The filter with columns and fields as the frame writes them, and not in the case that the condition does."""
    gateway = Gateway(frame.sparkSession).callbacks()
    output = frame._jdf.queryExecution().analyzed().output()
    columns = {attribute.exprId().id(): attribute for attribute in items(output)}

    def exact(node: Any) -> Any:
        match kind_of(node):
            case "AttributeReference":
                return columns.get(node.exprId().id(), node)
            case "GetStructField":
                return copy(gateway, node, name=gateway.none())
            case _:
                return node

    return rebuilt_expressions(plan, exact)


def _in_utc(text: str, spark: Any) -> str:
    micros = functions.unix_micros(functions.lit(text).try_cast("timestamp"))
    (row,) = spark.range(1).select(micros).collect()
    if row[0] is None:
        raise InvalidInputError(f"TIMESTAMP {text!r} is no timestamp")
    return (_EPOCH + dt.timedelta(microseconds=row[0])).isoformat()
