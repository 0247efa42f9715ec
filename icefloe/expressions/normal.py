"""The normal form of a predicate: no negation but in the tests themselves, no test that its neighbours decide.

Not every rule of textbooks holds here: `a < 5` is false for null and NaN, so its negation is `a >= 5 or a is null or
a is nan`. That needs the type, so in a predicate that is not bound yet, `not (a < 5)` stays.
"""

from collections.abc import Iterable

from icefloe.expressions.terms import BoundReference, BoundTransform, Term
from icefloe.expressions.values import (
    And,
    EqualTo,
    Expression,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNaN,
    IsNull,
    LessThan,
    LessThanOrEqual,
    LiteralPredicate,
    Not,
    NotEqualTo,
    NotIn,
    NotNaN,
    NotNull,
    NotStartsWith,
    Or,
    Predicate,
    StartsWith,
    conjunction,
    disjunction,
    is_in,
    negation,
    not_in,
)
from icefloe.schema.types import DoubleType, FloatType

_REVERSED: dict[type[LiteralPredicate], type[LiteralPredicate]] = {
    LessThan: GreaterThanOrEqual,
    LessThanOrEqual: GreaterThan,
    GreaterThan: LessThanOrEqual,
    GreaterThanOrEqual: LessThan,
}

_FALSE_FOR_NULL = (EqualTo, LessThan, LessThanOrEqual, GreaterThan, GreaterThanOrEqual, In, StartsWith, IsNaN)
_TRUE_FOR_NULL = (NotEqualTo, NotIn, NotStartsWith, NotNaN)


def rewrite_not(expression: Expression) -> Expression:
    """The same predicate with every negation moved into the tests."""
    match expression:
        case And():
            return conjunction(*map(rewrite_not, expression.children))
        case Or():
            return disjunction(*map(rewrite_not, expression.children))
        case Not():
            return _opposite(expression.child)
        case _:
            return expression


def simplify(expression: Expression) -> Expression:
    """The same predicate, without duplicates and what its neighbours decide; equalities of one term become one `in`."""
    match expression:
        case And():
            return conjunction(*_resolved([simplify(child) for child in expression.children], is_and=True))
        case Or():
            return disjunction(*_resolved([simplify(child) for child in expression.children], is_and=False))
        case Not():
            return negation(simplify(expression.child))
        case _:
            return expression


def _opposite(expression: Expression) -> Expression:
    match expression:
        case And():
            return disjunction(*map(_opposite, expression.children))
        case Or():
            return conjunction(*map(_opposite, expression.children))
        case Not():
            return rewrite_not(expression.child)
        case LiteralPredicate() if reversed_test := _REVERSED.get(type(expression)):
            term = expression.term
            if not isinstance(term, BoundReference | BoundTransform):
                return negation(expression)
            others: list[Expression] = [reversed_test(term, expression.literal)]
            if term.is_nullable:
                others.append(IsNull(term.reference))
            if isinstance(term.kind, FloatType | DoubleType):
                others.append(IsNaN(term))
            return disjunction(*others)
        case _:
            return negation(expression)


def _resolved(children: list[Expression], is_and: bool) -> list[Expression]:
    """What is left of the parts of an `and` (or of an `or`) when each may rely on the single tests among them.

    In `a is not null and (a >= 5 or a is null)` the first part decides the last test, and then the second the first.
    """
    children = _merged(_flat(children, And if is_and else Or), is_and)
    units = {child for child in children if isinstance(child, Predicate | Not)}
    implied = {_implied(unit, is_and) for unit in units}
    decided = units | implied
    opposites = {negation(unit) for unit in decided if unit is not None}
    if not decided.isdisjoint(opposites):
        return [disjunction() if is_and else conjunction()]
    found: dict[Expression, None] = {}
    is_shorter = False
    for child in children:
        if isinstance(child, And | Or):
            if not decided.isdisjoint(child.children):
                continue  # `a and (a or b)` is `a`.
            rest = [part for part in child.children if part not in opposites]
            if len(rest) < len(child.children):
                is_shorter = True
                child = disjunction(*rest) if is_and else conjunction(*rest)
            found[child] = None
        elif child not in implied:
            found[child] = None
    # What became shorter may be a single test by now, and decide others.
    return _resolved(list(found), is_and) if is_shorter else list(found)


def _implied(unit: Expression, is_and: bool) -> Expression | None:
    """What a test says about null: in an `and`, that the value is not null; in an `or`, that null is included already."""
    if isinstance(unit, Predicate):
        term = unit.term.reference if isinstance(unit.term, BoundTransform) else unit.term
        if is_and and isinstance(unit, _FALSE_FOR_NULL):
            return NotNull(term)
        if not is_and and isinstance(unit, _TRUE_FOR_NULL):
            return IsNull(term)
    return None


def _flat(children: Iterable[Expression], kind: type[And] | type[Or]) -> list[Expression]:
    combined = (conjunction if kind is And else disjunction)(*children)
    return list(combined.children) if isinstance(combined, And | Or) and type(combined) is kind else [combined]


def _merged(children: list[Expression], is_and: bool) -> list[Expression]:
    """Equalities of one term in an `or`, inequalities in an `and`, made one test at the place of the first."""
    wanted = (NotEqualTo, NotIn) if is_and else (EqualTo, In)
    groups: dict[Term, list[Expression]] = {}
    for child in children:
        if isinstance(child, wanted):
            groups.setdefault(child.term, []).append(child)
    if all(len(group) == 1 for group in groups.values()):
        return children
    found: list[Expression] = []
    for child in children:
        if not isinstance(child, wanted):
            found.append(child)
        elif group := groups.pop(child.term, None):
            constants = [one for test in group for one in _constants(test)]
            found.append((not_in if is_and else is_in)(child.term, constants))
    return found


def _constants(test: Expression) -> Iterable[object]:
    match test:
        case In() | NotIn():
            return test.literals
        case LiteralPredicate():
            return (test.literal,)
        case _:
            raise AssertionError(f"{test} has no constants")
