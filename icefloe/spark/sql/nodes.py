"""How the nodes that Spark's parser makes are read and rebuilt from Python, whatever they mean."""

import json
from collections.abc import Callable, Iterable
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import types as spark_types

from icefloe.spark.gateway import Gateway

_KIND = "_icefloe_kind"


def kind_of(node: Any) -> str:
    """The simple class name of a node, cached because every statement handler asks for it."""
    known: dict[str, Any] = node.__dict__
    if _KIND not in known:
        known[_KIND] = str(node.getClass().getSimpleName()).removesuffix("$")
    return str(known[_KIND])


def items(sequence: Any) -> list[Any]:
    """The elements of a Scala `Seq`."""
    return [sequence.apply(index) for index in range(sequence.size())]


def option(value: Any) -> Any:
    """What is in a Scala `Option`, or None."""
    return value.get() if value.isDefined() else None


def mapping(gateway: Gateway, value: Any) -> dict[str, Any]:
    """The entries of a Scala `Map`."""
    return dict(gateway.jvm.scala.jdk.javaapi.CollectionConverters.asJava(value))


def parts(node: Any) -> tuple[str, ...]:
    """The parts of the unresolved name of a table, view, namespace or procedure."""
    if kind_of(node) == "CurrentNamespace":
        return ()
    held = node.nameParts() if kind_of(node) in ("UnresolvedIdentifier", "UnresolvedProcedure") else None
    return tuple(items(node.multipartIdentifier() if held is None else held))


def is_name(node: Any) -> bool:
    """Whether the node is an unresolved name."""
    return kind_of(node) in _NAMES


def argument(node: Any, name: str, missing: Any = None) -> Any:
    """A constructor argument of a node that not every release of Spark has."""
    for index in range(node.productArity()):
        if node.productElementName(index) == name:
            return node.productElement(index)
    return missing


def spark_type(java_type: Any) -> Any:
    """A type of the JVM as PySpark has it."""
    return spark_types._parse_datatype_json_value(json.loads(java_type.json()))


def copy(gateway: Gateway, node: Any, **changes: Any) -> Any:
    """The same node with other constructor arguments, by name."""
    names = [node.productElementName(index) for index in range(node.productArity())]
    values = [changes.get(name, node.productElement(index)) for index, name in enumerate(names)]
    return node.makeCopy(gateway.array(gateway.jvm.java.lang.Object, values))


class Rewrite:
    """A Python function as the partial function over nodes that Spark's tree transformations take."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function
        self.problem: Exception | None = None

    def isDefinedAt(self, node: Any) -> bool:  # noqa: N802, ARG002 - names of the interface
        return True

    def apply(self, node: Any) -> Any:
        try:
            return self._function(node)
        except Exception as problem:
            self.problem = problem
            raise

    def applyOrElse(self, node: Any, default: Any) -> Any:  # noqa: N802, ARG002 - names of the interface
        return self.apply(node)

    class Java:
        implements = ("scala.PartialFunction",)


def rebuilt(plan: Any, function: Callable[[Any], Any]) -> Any:
    """The plan with each node replaced by what the function returns for it, leaves first, subqueries included."""
    return _rewritten(Rewrite(function), plan.transformUpWithSubqueries)


def rebuilt_from_above(plan: Any, function: Callable[[Any], Any]) -> Any:
    """The same from the root down: the children visited are those of what the function returned."""
    return _rewritten(Rewrite(function), plan.transformDownWithSubqueries)


def rebuilt_expressions(node: Any, function: Callable[[Any], Any]) -> Any:
    """The node with each of its own expressions replaced by what the function returns for it, leaves first."""
    return _rewritten(Rewrite(function), node.transformExpressionsUp)


def rebuilt_expression(expression: Any, function: Callable[[Any], Any]) -> Any:
    """The same for one expression."""
    return _rewritten(Rewrite(function), expression.transformUp)


def _rewritten(rewrite: Rewrite, transform: Callable[[Rewrite], Any]) -> Any:
    try:
        return transform(rewrite)
    except (Py4JError, PySparkException):
        # The function's own error, and not what py4j makes of it.
        if rewrite.problem is not None:
            raise rewrite.problem from None
        raise


def tuple_of(gateway: Gateway, values: Iterable[Any]) -> Any:
    """A Scala tuple of two or three."""
    held = tuple(values)
    return (gateway.jvm.scala.Tuple2 if len(held) == 2 else gateway.jvm.scala.Tuple3)(*held)


_NAMES = frozenset(
    (
        "CurrentNamespace",
        "UnresolvedIdentifier",
        "UnresolvedNamespace",
        "UnresolvedProcedure",
        "UnresolvedRelation",
        "UnresolvedTable",
        "UnresolvedTableOrView",
        "UnresolvedView",
    )
)


def default_text(default: Any) -> str:
    """The text of a default value in a statement, which is all that Spark 4.0 has."""
    return default if isinstance(default, str) else str(default.originalSQL())


def drops_default(spec: Any) -> bool:
    """Whether a column change drops its default; Spark 4.0 uses an empty default for that."""
    return "dropDefault" in items(spec.productElementNames().toSeq()) and bool(spec.dropDefault())
