"""Functions in queries that we answer: partition transforms, a spatial test, and what is current.

`system.bucket(16, id)` and the like are partition transforms, in any catalog of ours. What a function does depends on the type of its column, which Spark knows only when it analyses the query. So a name of ours
becomes that of a temporary function, and Spark asks Python for its expression as soon as its arguments are known.

`current_catalog()` and its like tell what `USE` made current in a catalog of ours, of which Spark knows nothing.
"""

import re
import threading
from collections.abc import Callable, MutableMapping
from functools import partial
from importlib.metadata import version
from weakref import WeakKeyDictionary

from py4j.java_gateway import JavaObject
from pyspark.sql import Column, SparkSession, functions

from icefloe.errors import IcefloeError, InvalidInputError
from icefloe.partitioning import transforms as tr
from icefloe.schema import GeoBox, types
from icefloe.spark.gateway import Gateway, lit
from icefloe.spark.spatial import as_wkb, intersects_column, marked
from icefloe.spark.sql.context import SqlContext
from icefloe.spark.sql.namespaces import shown_namespace
from icefloe.spark.sql.nodes import Callback, class_of, copy, items, rebuilt_expression, rebuilt_expressions, spark_type
from icefloe.spark.transforms import transform_column
from icefloe.spark.types import EXACT_TYPE, type_from_spark

_SYSTEM = "system"
_PREFIX = "__icefloe_"
_VERSION = "iceberg_version"
_OF_COLUMN: dict[str, Callable[[], tr.Transform]] = {
    "years": tr.YearTransform,
    "months": tr.MonthTransform,
    "days": tr.DayTransform,
    "hours": tr.HourTransform,
}
_OF_NUMBER: dict[str, Callable[[int], tr.Transform]] = {"bucket": tr.BucketTransform, "truncate": tr.TruncateTransform}
_INTERSECTS = "st_intersects"
_NAMES = (*_OF_COLUMN, *_OF_NUMBER, _VERSION, _INTERSECTS)
_MENTIONED = re.compile(rf"\b{_SYSTEM}`?\s*\.\s*`?({'|'.join(_NAMES)})\b|\b{_INTERSECTS}\b", re.IGNORECASE)
_ASKED = re.compile(r"\bcurrent_(catalog|database|schema)`?\s*\(", re.IGNORECASE)
_SPARKS = {"current_catalog": "CurrentCatalog"} | dict.fromkeys(
    ("current_database", "current_schema"), "CurrentDatabase"
)
"""Spark's expressions of what is current."""
_SMALL = {"tinyint": 1 << 7, "smallint": 1 << 15}
"""Types that are ints in Iceberg, with the number of their negative values."""

_INTERSECTS_ARGUMENTS = (5, 6)
"""The column and the sides of the box, and the CRS."""

_REGISTERED: MutableMapping[SparkSession, set[str]] = WeakKeyDictionary()
_LOCK = threading.Lock()


def rewriter(context: SqlContext) -> Callable[[JavaObject], JavaObject] | None:
    """What replaces our functions in the expressions of a node; None if the statement names none of them, as most."""
    calls_ours = _MENTIONED.search(context.mentions) is not None
    asks = _ASKED.search(context.mentions) is not None and context.home() is not None

    def rewrite(node: JavaObject) -> JavaObject:
        node = _with_current(node, context) if asks else node
        return _with_transforms(node, context) if calls_ours else node

    return rewrite if calls_ours or asks else None


def _with_transforms(node: JavaObject, context: SqlContext) -> JavaObject:
    """The node with our functions in its expressions by the names under which Spark finds them."""

    def replace(expression: JavaObject) -> JavaObject:
        name = _own_name(expression, context)
        if name is None:
            return expression
        return copy(context.gateway, expression, nameParts=context.gateway.seq((_registered(name, context.gateway),)))

    return rebuilt_expressions(node, replace)


def _own_name(expression: JavaObject, context: SqlContext) -> str | None:
    if class_of(expression) != "UnresolvedFunction":
        return None
    *around, name = items(expression.nameParts())
    if not around and name.lower() == _INTERSECTS and expression.arguments().size() in _INTERSECTS_ARGUMENTS:
        # Functions of the same name in other libraries take two shapes.
        return _INTERSECTS
    if [part.lower() for part in around[-1:]] != [_SYSTEM] or name.lower() not in _NAMES:
        return None
    has_home = context.names.home(context.default) is not None
    is_ours = around[0] in context.names.catalogs if len(around) == 2 else len(around) == 1 and has_home
    return name.lower() if is_ours else None


def _registered(name: str, gateway: Gateway) -> str:
    """The name of the temporary function, which is registered once per session and is inherited by its clones."""
    known = f"{_PREFIX}{name}"
    with _LOCK:
        registered = _REGISTERED.setdefault(gateway.spark, set())
        if name not in registered:
            registry = gateway.spark._jsparkSession.sessionState().functionRegistry()
            builder = Callback(partial(_expression, name, gateway.callbacks()))
            registry.createOrReplaceTempFunction(known, builder, "scala_udf")
            registered.add(name)
    return known


def _expression(name: str, gateway: Gateway, arguments: JavaObject) -> JavaObject:
    """The expression of a function whose arguments Spark has analysed.

    For a wrong call it is one that raises the error, since an exception here would reach the user as py4j's.
    """
    try:
        column = _column(name, gateway, items(arguments))
    except IcefloeError as problem:
        column = functions.raise_error(functions.lit(f"{_SYSTEM}.{name}: {problem}"))
        column = column.cast("boolean") if name == _INTERSECTS else column
    # A Catalyst expression, since Spark no longer converts columns when it resolves functions.
    return gateway.spark._jsparkSession.expression(column._jc)


def _column(name: str, gateway: Gateway, arguments: list[JavaObject]) -> Column:
    if name == _INTERSECTS:
        return _intersects(gateway, arguments)
    count = 0 if name == _VERSION else 1 if name in _OF_COLUMN else 2
    if len(arguments) != count:
        raise InvalidInputError(f"it takes {count} arguments, and {len(arguments)} are given")
    if name == _VERSION:
        return functions.lit(f"icefloe {version('icefloe')}")
    if name in _OF_COLUMN:
        return _transformed(_OF_COLUMN[name](), arguments[0], gateway)
    number, argument = arguments
    if not number.foldable():
        raise InvalidInputError(f"its first argument must be a constant, and is {number.sql()}")
    return _transformed(_OF_NUMBER[name](number.eval(None)), argument, gateway)


def _intersects(gateway: Gateway, arguments: list[JavaObject]) -> Column:
    if len(arguments) not in _INTERSECTS_ARGUMENTS:
        raise InvalidInputError(
            f"it takes a column, xmin, ymin, xmax, ymax and perhaps a CRS, and {len(arguments)} arguments are given"
        )
    shape, *constants = arguments
    for constant in constants:
        if not constant.foldable() or constant.eval(None) is None:
            raise InvalidInputError(f"{constant.sql()} is not a constant; the sides of the box must be numbers")
    texts = [str(constant.eval(None)) for constant in constants]
    try:
        xmin, ymin, xmax, ymax = map(float, texts[:4])
    except ValueError:
        raise InvalidInputError(f"the sides of the box are {', '.join(texts[:4])}; they must be numbers") from None
    field_type, data_type = _geo_type(shape), spark_type(shape.dataType())
    box = GeoBox(xmin, ymin, xmax, ymax, crs=texts[4] if len(texts) > 4 else None)
    box.check(field_type)
    column = as_wkb(gateway.column(shape), data_type)
    return marked(column, box) & intersects_column(column, box, field_type)


def _geo_type(shape: JavaObject) -> types.GeometryType | types.GeographyType:
    """The type of a column of shapes, also where Spark shows it as bytes."""
    field_type: types.IcebergType | None = None
    if spark_type(shape.dataType()).typeName() != "binary":
        field_type = type_from_spark(spark_type(shape.dataType()))
    elif class_of(shape) == "AttributeReference" and shape.metadata().contains(EXACT_TYPE):
        field_type = types.parse_type(shape.metadata().getString(EXACT_TYPE))
    if not isinstance(field_type, types.GeometryType | types.GeographyType):
        raise InvalidInputError(
            f"{shape.sql()} is not a known geometry or geography; give a table column of that type or, where Spark shows"
            " a field of a struct as bytes, a row filter"
        )
    return field_type


def _transformed(transform: tr.Transform, argument: JavaObject, gateway: Gateway) -> Column:
    column, data_type = gateway.column(argument), spark_type(argument.dataType())
    if data_type.simpleString() not in _SMALL:
        return transform_column(gateway, transform, column, type_from_spark(data_type))
    transformed = transform_column(gateway, transform, column.cast("int"), type_from_spark(data_type))
    if not isinstance(transform, tr.TruncateTransform):
        return transformed
    # A result below the least value of the small type wraps around.
    half = _SMALL[data_type.simpleString()]
    return (functions.pmod(transformed + half, functions.lit(2 * half)) - half).cast(data_type)


def _with_current(node: JavaObject, context: SqlContext) -> JavaObject:
    """The node with the answers in its expressions; columns are named after the functions, as in Spark."""
    named = rebuilt_expressions(node, lambda expression: _named(expression, context))
    return rebuilt_expressions(named, lambda expression: _answer(expression, context))


def _named(expression: JavaObject, context: SqlContext) -> JavaObject:
    if class_of(expression) != "UnresolvedAlias":
        return expression
    answered: list[str] = []

    def look(inner: JavaObject) -> JavaObject:
        asked = _asked(inner)
        if asked is None:
            return inner
        answered.append(asked)
        return getattr(context.catalyst.expressions, _SPARKS[asked])()

    name = rebuilt_expression(expression.child(), look).sql()
    if not answered:
        return expression
    return context.spark._jsparkSession.expression(context.gateway.column(expression.child()).alias(name)._jc)


def _answer(expression: JavaObject, context: SqlContext) -> JavaObject:
    asked, home = _asked(expression), context.home()
    if asked is None or home is None:
        return expression
    value = home[0] if asked == "current_catalog" else shown_namespace(home)
    return context.spark._jsparkSession.expression(lit(value)._jc)


def _asked(expression: JavaObject) -> str | None:
    if class_of(expression) != "UnresolvedFunction" or expression.arguments().size():
        return None
    *around, name = (part.lower() for part in items(expression.nameParts()))
    return name if name in _SPARKS and around in ([], ["builtin"], ["system", "builtin"]) else None
