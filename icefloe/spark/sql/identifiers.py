"""`IDENTIFIER(...)`: is replaced by the name that its expression yields, before names are resolved."""

import re
from typing import Any

from icefloe.errors import InvalidInputError
from icefloe.spark.sql.calls import value_of
from icefloe.spark.sql.context import SqlContext
from icefloe.spark.sql.nodes import copy, items, kind_of, rebuilt_from_above, tuple_of

_MENTIONED = re.compile(r"\bidentifier\s*\(", re.IGNORECASE)
_CLAUSE = "PlanWithUnresolvedIdentifier"


def with_identifiers(plan: Any, context: SqlContext) -> Any:
    """The plan of a statement with plain names of tables and namespaces in it; those of columns are left to Spark."""
    return _replaced(plan, context) if _MENTIONED.search(context.mentions) else plan


def _replaced(plan: Any, context: SqlContext) -> Any:
    def replace(node: Any) -> Any:
        match kind_of(node):
            case kind if kind == _CLAUSE:
                return _named(node, context)
            case "InsertIntoStatement" | "OverwriteByExpression" if kind_of(node.table()) == _CLAUSE:
                # The table that rows go into is no child of the node.
                return copy(context.gateway, node, table=_named(node.table(), context))
            case "UnresolvedInsert" if kind_of(node.table()) == _CLAUSE:
                return _insert(node, context)
            case "UnresolvedWith":
                # Nor are these.
                relations = [_relation(relation, context) for relation in items(node.cteRelations())]
                return copy(context.gateway, node, cteRelations=context.gateway.seq(relations))
            case _:
                return node

    return rebuilt_from_above(plan, replace)


def _insert(node: Any, context: SqlContext) -> Any:
    """From Spark 4.3 on, an INSERT into what a clause names is a node of its own until the name is known."""
    target = _named(node.table(), context)
    name = target.multipartIdentifier()
    if context.names.table(tuple(items(name)), default=context.default) is None:
        return copy(context.gateway, node, table=target)
    relation = context.gateway.jvm.org.apache.spark.sql.catalyst.analysis.UnresolvedRelation
    return node.toInsertIntoStatement(relation(name, target.options(), False))


def _relation(relation: Any, context: SqlContext) -> Any:
    name, plan, *others = (relation.productElement(index) for index in range(relation.productArity()))
    return tuple_of(context.gateway, (name, _replaced(plan, context), *others))


def _named(node: Any, context: SqlContext) -> Any:
    expression = node.identifierExpr()
    name = value_of(expression, context)
    if not isinstance(name, str):
        raise InvalidInputError(f"IDENTIFIER({expression.sql()}) is {name!r}; it must be a text that names something")
    parser = context.gateway.spark._jsparkSession.sessionState().sqlParser()
    built = node.planBuilder().apply(parser.parseMultipartIdentifier(name), node.children())
    # One may be inside another: the query of CREATE TABLE AS SELECT.
    return _replaced(built, context)
