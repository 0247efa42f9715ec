"""Walks over all tests of a predicate: to replace each of them, to combine their results, to list them."""

from collections.abc import Callable, Iterator
from functools import reduce
from typing import TypeVar

from icefloe.expressions import values as ex

Result = TypeVar("Result")


def rewrite(expression: ex.Expression, change: Callable[[ex.Predicate], ex.Expression]) -> ex.Expression:
    """The expression with each of its tests replaced by what `change` gives for it."""
    match expression:
        case ex.And():
            return ex.conjunction(*(rewrite(child, change) for child in expression.children))
        case ex.Or():
            return ex.disjunction(*(rewrite(child, change) for child in expression.children))
        case ex.Not():
            return ex.negation(rewrite(expression.child, change))
        case ex.Predicate():
            return change(expression)
        case ex.AlwaysTrue() | ex.AlwaysFalse():
            return expression
        case _:
            raise ex.not_a_predicate(expression)


def fold(
    expression: ex.Expression,
    constant: Callable[[bool], Result],
    test: Callable[[ex.Predicate], Result],
    both: Callable[[Result, Result], Result],
    either: Callable[[Result, Result], Result],
    opposite: Callable[[Result], Result],
) -> Result:
    """The results of the tests of an expression, combined as it combines them."""

    def of(part: ex.Expression) -> Result:
        match part:
            case ex.AlwaysTrue() | ex.AlwaysFalse():
                return constant(isinstance(part, ex.AlwaysTrue))
            case ex.And() | ex.Or():
                return reduce(both if isinstance(part, ex.And) else either, map(of, part.children))
            case ex.Not():
                return opposite(of(part.child))
            case ex.Predicate():
                return test(part)
            case _:
                raise ex.not_a_predicate(part)

    return of(expression)


def predicates(expression: ex.Expression) -> Iterator[ex.Predicate]:
    """Every test in the expression."""
    match expression:
        case ex.And() | ex.Or():
            for child in expression.children:
                yield from predicates(child)
        case ex.Not():
            yield from predicates(expression.child)
        case ex.Predicate():
            yield expression
