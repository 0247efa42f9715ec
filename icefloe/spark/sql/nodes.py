"""How the nodes that Spark's parser makes are read and rebuilt from Python, whatever they mean."""

import json
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import types as spark_types

from icefloe.spark.gateway import Gateway, Returned, items as items

_CLASS = "_icefloe_class"
_NAMES = frozenset(
    f"Unresolved{what}" for what in ("Identifier", "Namespace", "Procedure", "Relation", "Table", "TableOrView", "View")
) | {"CurrentNamespace"}

Function = Callable[[JavaObject], JavaObject]
"""What a node is replaced by."""


def class_of(node: JavaObject) -> str:
    """The simple class name of a node, cached because every statement handler asks for it."""
    known: dict[str, str] = node.__dict__
    if _CLASS not in known:
        known[_CLASS] = str(node.getClass().getSimpleName()).removesuffix("$")
    return known[_CLASS]


def option(value: JavaObject) -> Any:
    """What is in a Scala `Option`, or None."""
    return value.get() if value.isDefined() else None


@dataclass(frozen=True, slots=True)
class Description:
    """A node: its class, and of an unresolved relation its name, the options behind that, and whether it is read as a stream."""

    node_class: str
    name: tuple[str, ...] = ()
    options: dict[str, str] = field(default_factory=dict)
    is_stream: bool = False


def described(node: JavaObject, java: JavaObject | None) -> Description:
    """What a node is; by one call if there are classes of ours in Java (icefloe/spark/jvm/parsers.java)."""
    if java is not None:
        node_class, *relation = json.loads(java.described(node))
        node.__dict__[_CLASS] = node_class.removesuffix("$")
        name, options, is_stream = relation or ((), {}, False)
        return Description(class_of(node), tuple(name), options, is_stream)
    if class_of(node) != "UnresolvedRelation":
        return Description(class_of(node))
    behind = node.options()
    options = {} if behind.isEmpty() else dict(behind.asCaseSensitiveMap())
    return Description(class_of(node), parts(node), options, argument(node, "isStreaming", False) is True)


def mapping(gateway: Gateway, value: JavaObject) -> dict[str, Any]:
    """The entries of a Scala `Map`."""
    return dict(gateway.jvm.scala.jdk.javaapi.CollectionConverters.asJava(value))


def parts(node: JavaObject) -> tuple[str, ...]:
    """The parts of the unresolved name of a table, view, namespace or procedure."""
    if class_of(node) == "CurrentNamespace":
        return ()
    has_parts = class_of(node) in ("UnresolvedIdentifier", "UnresolvedProcedure")
    return tuple(items(node.nameParts() if has_parts else node.multipartIdentifier()))


def alias_of(node: JavaObject) -> tuple[str, ...] | None:
    """All parts of a relation's alias."""
    if class_of(node) != "SubqueryAlias":
        return None
    return (*items(node.identifier().qualifier()), node.identifier().name())


def is_name(node: JavaObject) -> bool:
    """Whether the node is an unresolved name."""
    return class_of(node) in _NAMES


def argument(node: JavaObject, name: str, missing: object = None) -> Any:
    """A constructor argument of a node that not every release of Spark has."""
    for index in range(node.productArity()):
        if node.productElementName(index) == name:
            return node.productElement(index)
    return missing


def spark_type(java_type: JavaObject) -> spark_types.DataType:
    """A type of the JVM as PySpark has it."""
    return spark_types._parse_datatype_json_value(json.loads(java_type.json()))


def arguments(node: JavaObject) -> dict[str, Any]:
    """The constructor arguments of a node, or the elements of a tuple, by name."""
    return {node.productElementName(index): node.productElement(index) for index in range(node.productArity())}


def copy(gateway: Gateway, node: JavaObject, **changes: object) -> JavaObject:
    """The same node with other constructor arguments, by name."""
    return node.makeCopy(gateway.array(gateway.jvm.java.lang.Object, {**arguments(node), **changes}.values()))


class Callback:
    """A Python function that Java calls as one of Scala's."""

    def __init__(self, function: Function) -> None:
        self._function = function
        self._returned = Returned()

    def apply(self, argument: JavaObject) -> JavaObject:
        return self._returned(self._function(argument))

    class Java:
        implements = ("scala.Function1",)


class Rewrite:
    """A Python function as the partial function over nodes that Spark's tree transformations take."""

    def __init__(self, function: Function) -> None:
        self._function = function
        self.problem: Exception | None = None

    def isDefinedAt(self, node: JavaObject) -> bool:  # noqa: N802, ARG002 - names of the interface
        return True

    def apply(self, node: JavaObject) -> JavaObject:
        try:
            return self._function(node)
        except Exception as problem:
            self.problem = problem
            raise

    def applyOrElse(self, node: JavaObject, default: JavaObject) -> JavaObject:  # noqa: N802, ARG002 - names of the interface
        return self.apply(node)

    class Java:
        implements = ("scala.PartialFunction",)


def rebuilt(plan: JavaObject, function: Function) -> JavaObject:
    """The plan with each node replaced by what the function returns for it, leaves first, subqueries included."""
    return _rewritten(Rewrite(function), plan.transformUpWithSubqueries)


def rebuilt_of(classes: Collection[str], plan: JavaObject, function: Function, java: JavaObject) -> JavaObject:
    """The same where the function would return nodes of all other classes as they are: Java asks for those of these alone."""
    return _rewritten(Rewrite(function), lambda rewrite: java.rebuilt(plan, rewrite, " ".join(classes)))


def rebuilt_from_above(plan: JavaObject, function: Function) -> JavaObject:
    """The same from the root down: the children visited are those of what the function returned."""
    return _rewritten(Rewrite(function), plan.transformDownWithSubqueries)


def rebuilt_expressions(node: JavaObject, function: Function) -> JavaObject:
    """The node with each of its own expressions replaced by what the function returns for it, leaves first."""
    return _rewritten(Rewrite(function), node.transformExpressionsUp)


def rebuilt_expression(expression: JavaObject, function: Function) -> JavaObject:
    """The same for one expression."""
    return _rewritten(Rewrite(function), expression.transformUp)


def _rewritten(rewrite: Rewrite, transform: Callable[[Rewrite], JavaObject]) -> JavaObject:
    try:
        return transform(rewrite)
    except (Py4JError, PySparkException):
        # The function's own error, and not what py4j makes of it.
        if rewrite.problem is not None:
            raise rewrite.problem from None
        raise
