"""How SQL's three-valued logic becomes predicates that are true or false for every row.

In SQL a comparison with null is unknown, and `not unknown` is unknown too. A `Truth` keeps apart where something is
true and where it is false; elsewhere it is unknown. WHERE wants the rows of `is_true`, a CHECK constraint refuses those
of `is_false` (expressions spec: Boolean logic).
"""

from collections.abc import Iterable
from dataclasses import dataclass

from icefloe.expressions.values import (
    AlwaysFalse,
    AlwaysTrue,
    Expression,
    IsNaN,
    IsNull,
    Not,
    NotEqualTo,
    NotIn,
    NotNaN,
    NotNull,
    NotStartsWith,
    Predicate,
    conjunction,
    disjunction,
    negation,
)


@dataclass(frozen=True, slots=True)
class Truth:
    """Where a SQL condition is true and where it is false; `~` exchanges the two."""

    is_true: Expression
    is_false: Expression

    def __invert__(self) -> "Truth":
        return Truth(self.is_false, self.is_true)


def all_of(conditions: Iterable[Truth]) -> Truth:
    """SQL's AND."""
    found = list(conditions)
    return Truth(conjunction(*(one.is_true for one in found)), disjunction(*(one.is_false for one in found)))


def any_of(conditions: Iterable[Truth]) -> Truth:
    """SQL's OR."""
    found = list(conditions)
    return Truth(disjunction(*(one.is_true for one in found)), conjunction(*(one.is_false for one in found)))


def truth(predicate: Expression) -> Truth:
    """SQL's reading of a single test: unknown for null, unless it tests for null or NaN, or is a constant."""
    match predicate:
        case AlwaysTrue() | AlwaysFalse() | IsNull() | NotNull() | IsNaN() | NotNaN():
            return certain(predicate)
        case Predicate():
            return Truth(_for_known(predicate, predicate), _for_known(negation(predicate), predicate))
        case _:
            raise AssertionError(f"{predicate} is not a single test; combine the truths of its parts")


def certain(predicate: Expression) -> Truth:
    """A condition that is never unknown: `a <=> 5`, `(...) is true`."""
    return Truth(predicate, negation(predicate))


def _for_known(test: Expression, predicate: Predicate) -> Expression:
    """The test, false for null."""
    if isinstance(test, NotEqualTo | NotIn | NotStartsWith | Not):
        return conjunction(test, NotNull(predicate.term))
    return test
