"""Whether a row matches a bound predicate.

A row is a mapping from field id to value, or a sequence of values in the order of the columns that the predicate was
bound to; a partition tuple is such a sequence. Values are in the form of `schema.values`.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from icefloe.errors import InvalidExpressionError
from icefloe.expressions.binding import bound_term
from icefloe.expressions.terms import BoundReference, BoundTerm
from icefloe.expressions.values import (
    AlwaysFalse,
    AlwaysTrue,
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
    Not,
    NotEqualTo,
    NotIn,
    NotNaN,
    NotNull,
    NotStartsWith,
    Or,
    Predicate,
    StartsWith,
)

Row = Mapping[int, Any] | Sequence[Any]


def evaluate(expression: Expression, row: Row) -> bool:
    """Whether the row matches the bound predicate."""
    match expression:
        case AlwaysTrue():
            return True
        case AlwaysFalse():
            return False
        case And():
            return all(evaluate(child, row) for child in expression.children)
        case Or():
            return any(evaluate(child, row) for child in expression.children)
        case Not():
            return not evaluate(expression.child, row)
        case Predicate():
            return _test(expression, value_of(bound_term(expression), row))
        case _:
            raise InvalidExpressionError(f"{expression!r} is not a predicate")


def value_of(term: BoundTerm, row: Row) -> Any:
    """The value of a bound term in a row."""
    if not isinstance(term, BoundReference):
        return term.transform.apply(value_of(term.reference, row), term.reference.kind)
    if isinstance(row, Mapping):
        value = row.get(term.path[0])
    elif term.position < len(row):
        value = row[term.position]
    else:
        raise InvalidExpressionError(f"the row {row!r} has {len(row)} values, but {term} is number {term.position + 1}")
    for field_id in term.path[1:]:
        value = None if value is None else dict(value).get(field_id)
    return value


def _test(predicate: Predicate, value: Any) -> bool:
    is_nan = isinstance(value, float) and math.isnan(value)
    match predicate:
        case IsNull():
            return value is None
        case NotNull():
            return value is not None
        case IsNaN():
            return is_nan
        case NotNaN():
            return not is_nan
        case NotEqualTo() | NotIn() | NotStartsWith():
            return value is None or is_nan or not _holds(predicate, value)
        case _:
            return value is not None and not is_nan and _holds(predicate, value)


def _holds(predicate: Predicate, value: Any) -> bool:
    """The comparison with an ordinary value; of a negated test, the one that it negates."""
    match predicate:
        case EqualTo(literal=constant) | NotEqualTo(literal=constant):
            return bool(value == constant.value)
        case LessThan(literal=constant):
            return bool(value < constant.value)
        case LessThanOrEqual(literal=constant):
            return bool(value <= constant.value)
        case GreaterThan(literal=constant):
            return bool(value > constant.value)
        case GreaterThanOrEqual(literal=constant):
            return bool(value >= constant.value)
        case In(literals=constants) | NotIn(literals=constants):
            return any(value == constant.value for constant in constants)
        case StartsWith(literal=constant) | NotStartsWith(literal=constant):
            return bool(value.startswith(constant.value))
        case _:
            raise AssertionError(f"no rule evaluates {predicate!r}")
