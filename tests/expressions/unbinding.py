"""Bound predicates with their columns by name again."""

from icefloe import expressions as ex
from icefloe.expressions.values import with_term
from icefloe.expressions.walks import rewrite


def unbind(expression: ex.Expression) -> ex.Expression:
    """The predicate with columns by name, and constants of the columns' types."""
    return rewrite(expression, lambda predicate: with_term(predicate, _unbound_term(predicate.term)))


def _unbound_term(term: ex.Term) -> ex.Term:
    match term:
        case ex.BoundReference():
            return ex.Reference(term.name)
        case ex.BoundTransform():
            return ex.Transformed(term.transform, ex.Reference(term.reference.name))
        case _:
            return term
