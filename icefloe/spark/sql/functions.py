"""Iceberg's functions in queries: `system.bucket(16, id)` and the like are partition transforms, in any catalog of ours.

What a function does depends on the type of its column, which Spark knows only when it analyses the query. So a name of ours
becomes that of a temporary function, and Spark asks Python for its expression as soon as its arguments are known.
"""

import re
import threading
from collections.abc import Callable, MutableMapping
from importlib.metadata import version
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.sql import (
    Column,
    functions as F,  # noqa: N812 - its usual name
)

from icefloe.errors import IcefloeError, InvalidInputError
from icefloe.partitioning import transforms as tr
from icefloe.spark.gateway import Gateway, Returned
from icefloe.spark.sql.context import SqlContext
from icefloe.spark.sql.nodes import copy, items, kind_of, rebuilt_expressions, spark_type
from icefloe.spark.transforms import transform_column
from icefloe.spark.types import type_from_spark

_SYSTEM = "system"
_PREFIX = "__icefloe_"
_VERSION = "iceberg_version"
_OF_COLUMN: dict[str, Callable[[], tr.Transform]] = {
    "years": tr.YearTransform,
    "months": tr.MonthTransform,
    "days": tr.DayTransform,
    "hours": tr.HourTransform,
}
_OF_NUMBER: dict[str, Callable[[Any], tr.Transform]] = {"bucket": tr.BucketTransform, "truncate": tr.TruncateTransform}
_NAMES = (*_OF_COLUMN, *_OF_NUMBER, _VERSION)
_MENTIONED = re.compile(rf"\b{_SYSTEM}`?\s*\.\s*`?({'|'.join(_NAMES)})\b", re.IGNORECASE)
_SMALL = {"tinyint": 1 << 7, "smallint": 1 << 15}
"""Types that are ints in Iceberg, with the number of their negative values."""

_REGISTERED: MutableMapping[Any, set[str]] = WeakKeyDictionary()
_LOCK = threading.Lock()


def names_functions(text: str) -> bool:
    """Whether a statement may name a function of ours."""
    return _MENTIONED.search(text) is not None


def with_functions(node: Any, context: SqlContext) -> Any:
    """The node with our functions in its expressions by the names under which Spark finds them."""

    def replace(expression: Any) -> Any:
        if kind_of(expression) != "UnresolvedFunction":
            return expression
        name = _own_name(tuple(items(expression.nameParts())), context)
        if name is None:
            return expression
        return copy(context.gateway, expression, nameParts=context.gateway.seq((_registered(name, context.gateway),)))

    return rebuilt_expressions(node, replace)


def _own_name(parts: tuple[str, ...], context: SqlContext) -> str | None:
    *around, name = parts
    if [part.lower() for part in around[-1:]] != [_SYSTEM] or name.lower() not in _NAMES:
        return None
    is_ours = around[0] in context.names.catalogs if len(around) == 2 else len(around) == 1 and _is_home(context)
    return name.lower() if is_ours else None


def _is_home(context: SqlContext) -> bool:
    """Whether names without a catalog are ours."""
    return context.names.home(context.default) is not None


def _registered(name: str, gateway: Gateway) -> str:
    """The name of the temporary function, which is registered once per session and is inherited by its clones."""
    known = f"{_PREFIX}{name}"
    with _LOCK:
        registered = _REGISTERED.setdefault(gateway.spark, set())
        if name not in registered:
            registry = gateway.spark._jsparkSession.sessionState().functionRegistry()
            registry.createOrReplaceTempFunction(known, _Builder(name, gateway.callbacks()), "scala_udf")
            registered.add(name)
    return known


class _Builder:
    """Builds the expression of a function when Spark has analysed its arguments."""

    def __init__(self, name: str, gateway: Gateway) -> None:
        self._name = name
        self._gateway = gateway
        self._returned = Returned()

    def apply(self, arguments: Any) -> Any:
        """The expression; for a wrong call, one that raises the error, since an exception here would reach the user as py4j's."""
        try:
            column = self._column(items(arguments))
        except IcefloeError as problem:
            column = F.raise_error(F.lit(f"{_SYSTEM}.{self._name}: {problem}"))
        # A Catalyst expression, since Spark no longer converts columns when it resolves functions.
        return self._returned(self._gateway.spark._jsparkSession.expression(column._jc))

    def _column(self, arguments: list[Any]) -> Column:
        if self._name == _VERSION and not arguments:
            return F.lit(f"icefloe {version('icefloe')}")
        if self._name in _OF_COLUMN and len(arguments) == 1:
            return self._transformed(_OF_COLUMN[self._name](), arguments[0])
        if self._name in _OF_NUMBER and len(arguments) == 2:
            return self._transformed(_OF_NUMBER[self._name](self._number(arguments[0])), arguments[1])
        wanted = 0 if self._name == _VERSION else 1 if self._name in _OF_COLUMN else 2
        raise InvalidInputError(f"it takes {wanted} arguments, and {len(arguments)} are given")

    def _number(self, argument: Any) -> Any:
        if not argument.foldable():
            raise InvalidInputError(f"its first argument must be a constant, and is {argument.sql()}")
        return argument.eval(None)

    def _transformed(self, transform: tr.Transform, argument: Any) -> Column:
        column = self._gateway.column(argument)
        given = spark_type(argument.dataType())
        if given.simpleString() not in _SMALL:
            return transform_column(self._gateway, transform, column, type_from_spark(given))
        transformed = transform_column(self._gateway, transform, column.cast("int"), type_from_spark(given))
        if not isinstance(transform, tr.TruncateTransform):
            return transformed
        # A result below the least value of the small type wraps around.
        half = _SMALL[given.simpleString()]
        return (F.pmod(transformed + half, F.lit(2 * half)) - half).cast(given)

    class Java:
        """What py4j makes of it."""

        implements = ("scala.Function1",)
