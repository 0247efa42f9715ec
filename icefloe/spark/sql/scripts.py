"""Scripts, `BEGIN ... END`: Spark runs them, and asks us for the plan of each statement when it is its turn.

Spark's parser plans all statements before the first one runs, and never asks for them again. So each becomes a call of a
table function of ours with the plan as its argument. Spark's analyzer calls the function in the thread of the script, where the
script's variables are known.
"""

from collections.abc import Callable

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JJavaError
from pyspark.sql.types import StringType

from icefloe.errors import InvalidInputError, NoSuchTableError
from icefloe.spark.gateway import Gateway
from icefloe.spark.sql.context import SqlContext
from icefloe.spark.sql.nodes import Callback, arguments, class_of, copy, items, rebuilt_expression

FUNCTION = "icefloe_statement"
_STATEMENT = "org.apache.spark.sql.catalyst.plans.logical.CompoundPlanStatement"
_SUBQUERY = "org.apache.spark.sql.catalyst.expressions.SubqueryExpression"
_EXPRESSION = "org.apache.spark.sql.catalyst.expressions.Expression"
_PLAN = "org.apache.spark.sql.catalyst.plans.logical.LogicalPlan"
_SPARKS_OWN = ("CreateVariable", "DropVariable", "DeclareCursor", "OpenCursor", "FetchCursor", "CloseCursor")
"""Statements that Spark recognises in a script by their class, and that cannot name a table."""


def is_script(node: JavaObject) -> bool:
    """Whether a text is a script."""
    return class_of(node) == "CompoundBody"


def deferred(script: JavaObject, context: SqlContext) -> JavaObject:
    """The script with statements that are planned when they run."""
    return _Deferring(context).statement(script)


class _Deferring:
    """Goes through the parts of a script; Spark's own transformations would lose its handlers."""

    def __init__(self, context: SqlContext) -> None:
        self._context = context
        self._gateway = context.gateway
        self._is_statement = self._gateway.load_class(_STATEMENT).isInstance
        self._is_query = self._gateway.load_class(_SUBQUERY).isInstance
        self._is_expression = self._gateway.load_class(_EXPRESSION).isInstance
        self._is_sequence = self._gateway.load_class("scala.collection.immutable.Seq").isInstance
        self._is_option = self._gateway.load_class("scala.Option").isInstance

    def statement(self, node: JavaObject) -> JavaObject:
        if class_of(node) == "SingleStatement":
            return copy(self._gateway, node, parsedPlan=self._plan(node.parsedPlan()))
        return copy(self._gateway, node, **{name: self._part(part) for name, part in arguments(node).items()})

    def _part(self, part: object) -> object:
        if not isinstance(part, JavaObject):
            return part
        if self._is_statement(part):
            return self.statement(part)
        if self._is_expression(part):
            return rebuilt_expression(part, self._expression)
        if self._is_sequence(part):
            return self._gateway.seq(map(self._part, items(part)))
        if self._is_option(part) and part.isDefined():
            return self._gateway.jvm.scala.Option.apply(self._part(part.get()))
        return part

    def _plan(self, plan: JavaObject) -> JavaObject:
        if class_of(plan) == "SetVariable":
            return copy(self._gateway, plan, sourceQuery=_call(plan.sourceQuery(), self._context))
        if class_of(plan) in _SPARKS_OWN:
            return plan
        return _call(plan, self._context)

    def _expression(self, node: JavaObject) -> JavaObject:
        return node.withNewPlan(_call(node.plan(), self._context)) if self._is_query(node) else node


def _call(plan: JavaObject, context: SqlContext) -> JavaObject:
    gateway, catalyst = context.gateway, context.catalyst
    object_type = gateway.jvm.org.apache.spark.sql.types.ObjectType(gateway.load_class(_PLAN))
    arguments = [catalyst.expressions.Literal(plan, object_type)]
    arguments += [text_literal(text, gateway) for text in (context.default, context.mentions)]
    return catalyst.analysis.UnresolvedTableValuedFunction(gateway.seq((FUNCTION,)), gateway.seq(arguments), False)


def text_literal(text: str | None, gateway: Gateway) -> JavaObject:
    """The Catalyst literal of a text."""
    value = gateway.jvm.org.apache.spark.unsafe.types.UTF8String.fromString(text)
    return gateway.jvm.org.apache.spark.sql.catalyst.expressions.Literal(value, gateway.type(StringType()))


def statement_in(arguments: JavaObject, gateway: Gateway) -> tuple[JavaObject, str | None, str]:
    """The arguments of a call: the plan of a statement, the catalog that names without one may be in, and the text of the script."""
    values = [argument.value() if class_of(argument) == "Literal" else None for argument in items(arguments)]
    if len(values) != 3 or not gateway.load_class(_PLAN).isInstance(values[0]):
        raise InvalidInputError(f"{FUNCTION} is for the statements of scripts, BEGIN ... END, and cannot be called")
    plan, default, text = values
    return plan, None if default is None else str(default), str(text)


def install_scripts(gateway: Gateway, plan: Callable[[JavaObject], JavaObject]) -> None:
    """Let the session find the table function: it returns the plan of a statement, which has already run if it is a command."""
    registry = gateway.spark._jsparkSession.sessionState().tableFunctionRegistry()
    # Under the catalog and database, if any, that this release of Spark has for its own.
    known = registry.listFunction().head()
    name = known.copy(FUNCTION, known.database(), known.catalog())
    registry.registerFunction(name, Callback(plan), "scala_udf")
    # Else py4j would make a text of every exception, which no handler in a script would know.
    gateway.spark.sparkContext._gateway.python_parameters.propagate_java_exceptions = True


def command_result(plan: JavaObject, context: SqlContext) -> JavaObject:
    """The plan of a command that has run: it is no query, and its rows are not those of the script."""
    query = context.frame_of(plan)._jdf.queryExecution()
    logical = context.catalyst.plans.logical
    return logical.CommandResult(query.analyzed().output(), plan, query.executedPlan(), context.gateway.seq(()))


def thrown(error: Exception, token: str, gateway: Gateway) -> Py4JJavaError:
    """An error as one that a handler in a script can catch: under the condition that Spark has for it, with a token in its message.

    Proxies of Java let exceptions pass that are not declared only if they are runtime exceptions, and many of Spark's are not.
    """
    condition, values = _condition(error, gateway)
    contexts = gateway.array(gateway.jvm.org.apache.spark.QueryContext, ())
    parameters = gateway.jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(values)
    exception = gateway.jvm.org.apache.spark.SparkRuntimeException(condition, parameters, None, contexts, f"({token})")
    return Py4JJavaError(token, exception)


def _condition(error: Exception, gateway: Gateway) -> tuple[str, JavaObject]:
    """The name of an error and the values in its message, as Spark has them."""
    sparks = getattr(error, "_origin", None) or getattr(error, "java_exception", None)
    if sparks is not None and gateway.load_class("org.apache.spark.SparkThrowable").isInstance(sparks):
        condition = sparks.getCondition()
        if condition is not None:
            return str(condition), sparks.getMessageParameters()
    values = gateway.jvm.java.util.HashMap()
    if isinstance(error, NoSuchTableError):
        values.put("relationName", str(error))
        # In the message of newer releases.
        values.put("searchPath", "")
        return "TABLE_OR_VIEW_NOT_FOUND", values
    values.put("errorMessage", str(error))
    return "USER_RAISED_EXCEPTION", values
