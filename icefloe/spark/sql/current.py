"""`current_catalog()` and its like: what `USE` made current in a catalog of ours, of which Spark knows nothing."""

import re
from typing import Any

from icefloe.catalog import show
from icefloe.spark.gateway import lit
from icefloe.spark.sql.context import SqlContext
from icefloe.spark.sql.nodes import items, kind_of, rebuilt_expression, rebuilt_expressions

_MENTIONED = re.compile(r"\bcurrent_(catalog|database|schema)`?\s*\(", re.IGNORECASE)
_SPARKS = {
    "current_catalog": "CurrentCatalog",
    "current_database": "CurrentDatabase",
    "current_schema": "CurrentDatabase",
}


def asks_what_is_current(context: SqlContext) -> bool:
    """Whether the statement may call one of these functions while a catalog of ours is current."""
    return _MENTIONED.search(context.mentions) is not None and context.home() is not None


def with_current(node: Any, context: SqlContext) -> Any:
    """The node with the answers in its expressions; columns are named after the functions, as in Spark."""
    return rebuilt_expressions(
        rebuilt_expressions(node, lambda expression: _named(expression, context)),
        lambda expression: _answer(expression, context),
    )


def _named(expression: Any, context: SqlContext) -> Any:
    if kind_of(expression) != "UnresolvedAlias":
        return expression
    answered: list[str] = []
    expressions = context.gateway.jvm.org.apache.spark.sql.catalyst.expressions

    def look(inner: Any) -> Any:
        asked = _asked(inner)
        if asked is None:
            return inner
        answered.append(asked)
        return getattr(expressions, _SPARKS[asked])()

    name = rebuilt_expression(expression.child(), look).sql()
    if not answered:
        return expression
    session = context.gateway.spark._jsparkSession
    return session.expression(context.gateway.column(expression.child()).alias(name)._jc)


def _answer(expression: Any, context: SqlContext) -> Any:
    asked, home = _asked(expression), context.home()
    if asked is None or home is None:
        return expression
    value = home[0] if asked == "current_catalog" else show(home[1]) if home[1] else ""
    return context.gateway.spark._jsparkSession.expression(lit(value)._jc)


def _asked(expression: Any) -> str | None:
    if kind_of(expression) != "UnresolvedFunction" or expression.arguments().size():
        return None
    *around, name = (part.lower() for part in items(expression.nameParts()))
    return name if name in _SPARKS and around in ([], ["builtin"], ["system", "builtin"]) else None
