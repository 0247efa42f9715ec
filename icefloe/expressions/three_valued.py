"""How SQL's three-valued logic becomes predicates that are true or false for every row.

In SQL a comparison with null is unknown, and `not unknown` is unknown too. A `Truth` keeps apart where something is
true and where it is false; elsewhere it is unknown. WHERE wants the rows of `is_true`, a CHECK constraint refuses those
of `is_false` (expressions spec: Boolean logic).
"""

from collections.abc import Iterable
from dataclasses import dataclass

from icefloe.expressions import values as ex


@dataclass(frozen=True, slots=True)
class Truth:
    """Where a SQL condition is true and where it is false; `~` exchanges the two."""

    is_true: ex.Expression
    is_false: ex.Expression

    def __invert__(self) -> "Truth":
        return Truth(self.is_false, self.is_true)


def all_of(conditions: Iterable[Truth]) -> Truth:
    """SQL's AND."""
    parts = list(conditions)
    return Truth(ex.conjunction(*(part.is_true for part in parts)), ex.disjunction(*(part.is_false for part in parts)))


def any_of(conditions: Iterable[Truth]) -> Truth:
    """SQL's OR."""
    parts = list(conditions)
    return Truth(ex.disjunction(*(part.is_true for part in parts)), ex.conjunction(*(part.is_false for part in parts)))


def truth(predicate: ex.Expression) -> Truth:
    """SQL's reading of a single test: unknown for null, unless it tests for null or NaN, or is a constant."""
    match predicate:
        case ex.AlwaysTrue() | ex.AlwaysFalse() | ex.IsNull() | ex.NotNull() | ex.IsNaN() | ex.NotNaN():
            return certain(predicate)
        case ex.Predicate():
            return Truth(_for_known(predicate, predicate), _for_known(ex.negation(predicate), predicate))
        case _:
            raise AssertionError(f"{predicate} is not a single test; combine the truths of its parts")


def certain(predicate: ex.Expression) -> Truth:
    """A condition that is never unknown: `a <=> 5`, `(...) is true`."""
    return Truth(predicate, ex.negation(predicate))


def _for_known(test: ex.Expression, predicate: ex.Predicate) -> ex.Expression:
    """The test, false for null."""
    if isinstance(test, ex.NotEqualTo | ex.NotIn | ex.NotStartsWith | ex.Not):
        return ex.conjunction(test, ex.NotNull(predicate.term))
    return test
