"""The normal form of a predicate: negations only in the tests themselves, no test that its neighbours decide.

Not every textbook rule holds here: `a < 5` is false for null and NaN, so its negation is `a >= 5 or a is null or
a is nan`. That needs the type, so in an unbound predicate, `not (a < 5)` stays.
"""

from collections.abc import Iterable

from icefloe.expressions import values as ex
from icefloe.expressions.terms import BoundTerm, BoundTransform, Term
from icefloe.schema import types

_REVERSED: dict[type[ex.LiteralPredicate], type[ex.LiteralPredicate]] = {
    ex.LessThan: ex.GreaterThanOrEqual,
    ex.LessThanOrEqual: ex.GreaterThan,
    ex.GreaterThan: ex.LessThanOrEqual,
    ex.GreaterThanOrEqual: ex.LessThan,
}

_FALSE_FOR_NULL = (
    ex.EqualTo,
    ex.LessThan,
    ex.LessThanOrEqual,
    ex.GreaterThan,
    ex.GreaterThanOrEqual,
    ex.In,
    ex.StartsWith,
    ex.Intersects,
    ex.IsNaN,
)
_TRUE_FOR_NULL = (ex.NotEqualTo, ex.NotIn, ex.NotStartsWith, ex.NotIntersects, ex.NotNaN)


def rewrite_not(expression: ex.Expression) -> ex.Expression:
    """The same predicate with every negation moved into the tests."""
    match expression:
        case ex.And():
            return ex.conjunction(*map(rewrite_not, expression.children))
        case ex.Or():
            return ex.disjunction(*map(rewrite_not, expression.children))
        case ex.Not():
            return _opposite(expression.child)
        case _:
            return expression


def simplify(expression: ex.Expression) -> ex.Expression:
    """The same predicate, without duplicates and what its neighbours decide; equalities of one term become one `in`."""
    match expression:
        case ex.And():
            return ex.conjunction(*_resolved([simplify(child) for child in expression.children], is_and=True))
        case ex.Or():
            return ex.disjunction(*_resolved([simplify(child) for child in expression.children], is_and=False))
        case ex.Not():
            return ex.negation(simplify(expression.child))
        case _:
            return expression


def _opposite(expression: ex.Expression) -> ex.Expression:
    match expression:
        case ex.And():
            return ex.disjunction(*map(_opposite, expression.children))
        case ex.Or():
            return ex.conjunction(*map(_opposite, expression.children))
        case ex.Not():
            return rewrite_not(expression.child)
        case ex.LiteralPredicate() if reversed_test := _REVERSED.get(type(expression)):
            term = expression.term
            if not isinstance(term, BoundTerm):
                return ex.negation(expression)
            others: list[ex.Expression] = [reversed_test(term, expression.literal)]
            if term.is_nullable:
                others.append(ex.IsNull(term.null_term))
            if isinstance(term.field_type, types.FloatType | types.DoubleType):
                others.append(ex.IsNaN(term))
            return ex.disjunction(*others)
        case _:
            return ex.negation(expression)


def _resolved(children: list[ex.Expression], is_and: bool) -> list[ex.Expression]:
    """The parts of an `and` (or of an `or`) that remain when each may rely on the single tests among them.

    In `a is not null and (a >= 5 or a is null)` the first part decides the last test, and then the second the first.
    """
    children = _merged(_flat(children, ex.And if is_and else ex.Or), is_and)
    units = {child for child in children if isinstance(child, ex.Predicate | ex.Not)}
    implied = {_implied(unit, is_and) for unit in units}
    decided = units | implied
    opposites = {ex.negation(unit) for unit in decided if unit is not None}
    if not decided.isdisjoint(opposites):
        return [ex.disjunction() if is_and else ex.conjunction()]
    remaining: dict[ex.Expression, None] = {}
    is_shorter = False
    for child in children:
        if isinstance(child, ex.And | ex.Or):
            if not decided.isdisjoint(child.children):
                continue  # `a and (a or b)` is `a`.
            rest = [part for part in child.children if part not in opposites]
            if len(rest) < len(child.children):
                is_shorter = True
                child = ex.disjunction(*rest) if is_and else ex.conjunction(*rest)
            remaining[child] = None
        elif child not in implied:
            remaining[child] = None
    # What became shorter may be a single test by now, and decide others.
    return _resolved(list(remaining), is_and) if is_shorter else list(remaining)


def _implied(unit: ex.Expression, is_and: bool) -> ex.Expression | None:
    """What a test says about null: in an `and`, that the value is not null; in an `or`, that null is included already."""
    if isinstance(unit, ex.Predicate):
        term = unit.term.reference if isinstance(unit.term, BoundTransform) else unit.term
        if is_and and isinstance(unit, _FALSE_FOR_NULL):
            return ex.NotNull(term)
        if not is_and and isinstance(unit, _TRUE_FOR_NULL):
            return ex.IsNull(term)
    return None


def _flat(children: Iterable[ex.Expression], chain: type[ex.And] | type[ex.Or]) -> list[ex.Expression]:
    combined = (ex.conjunction if chain is ex.And else ex.disjunction)(*children)
    return list(combined.children) if isinstance(combined, ex.And | ex.Or) and type(combined) is chain else [combined]


def _merged(children: list[ex.Expression], is_and: bool) -> list[ex.Expression]:
    """Equalities of one term in an `or`, inequalities in an `and`, merged into one test at the position of the first."""
    mergeable = (ex.NotEqualTo, ex.NotIn) if is_and else (ex.EqualTo, ex.In)
    groups: dict[Term, list[ex.LiteralPredicate | ex.SetPredicate]] = {}
    for child in children:
        if isinstance(child, mergeable):
            groups.setdefault(child.term, []).append(child)
    if all(len(group) == 1 for group in groups.values()):
        return children
    merged: list[ex.Expression] = []
    for child in children:
        if not isinstance(child, mergeable):
            merged.append(child)
        elif group := groups.pop(child.term, None):
            constants = [constant for test in group for constant in test.literals]
            merged.append((ex.not_in if is_and else ex.is_in)(child.term, constants))
    return merged
