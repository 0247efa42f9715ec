"""Whether a row matches a bound predicate.

A row is a mapping from field id to value, or a sequence of values in the order of the columns that the predicate was
bound to; a partition tuple is such a sequence. Values are in the form of `schema.values`.
"""

import math
from collections.abc import Mapping, Sequence

import pyarrow as pa

from icefloe.errors import InvalidExpressionError
from icefloe.expressions import values as ex
from icefloe.expressions.binding import bound_term, geo_type
from icefloe.expressions.terms import BoundExtract, BoundReference, BoundTerm
from icefloe.schema import Value, intersects
from icefloe.variant import value_at

Row = Mapping[int, Value] | Sequence[Value]


def evaluate(expression: ex.Expression, row: Row) -> bool:
    """Whether the row matches the bound predicate."""
    match expression:
        case ex.AlwaysTrue():
            return True
        case ex.AlwaysFalse():
            return False
        case ex.And():
            return all(evaluate(child, row) for child in expression.children)
        case ex.Or():
            return any(evaluate(child, row) for child in expression.children)
        case ex.Not():
            return not evaluate(expression.child, row)
        case ex.Predicate():
            return _test(expression, value_of(bound_term(expression), row))
        case _:
            raise InvalidExpressionError(f"{expression!r} is not a predicate")


def value_of(term: BoundTerm, row: Row) -> Value:
    """The value of a bound term in a row."""
    if isinstance(term, BoundExtract):
        variant = value_of(term.reference, row)
        return None if variant is None else value_at(variant, term.path, term.field_type)
    if not isinstance(term, BoundReference):
        return term.transform.apply(value_of(term.reference, row), term.reference.field_type)
    if isinstance(row, Mapping):
        value = row.get(term.path[0])
    elif term.position < len(row):
        value = row[term.position]
    else:
        raise InvalidExpressionError(f"the row {row!r} has {len(row)} values, but {term} is number {term.position + 1}")
    for field_id in term.path[1:]:
        value = None if value is None else dict(value).get(field_id)
    return value


def _test(predicate: ex.Predicate, value: Value) -> bool:
    is_nan = isinstance(value, float) and math.isnan(value)
    match predicate:
        case ex.IsNull():
            return value is None
        case ex.NotNull():
            return value is not None
        case ex.IsNaN():
            return is_nan
        case ex.NotNaN():
            return not is_nan
        case ex.NotEqualTo() | ex.NotIn() | ex.NotStartsWith() | ex.NotIntersects():
            return value is None or is_nan or not _holds(predicate, value)
        case _:
            return value is not None and not is_nan and _holds(predicate, value)


def _holds(predicate: ex.Predicate, value: Value) -> bool:
    """The comparison with an ordinary value; of a negated test, the one that it negates."""
    match predicate:
        case ex.SpatialPredicate(box=box):
            return bool(intersects(pa.array([value], pa.binary()), box, geo_type(predicate))[0])
        case ex.SetPredicate(literals=constants):
            return any(value == constant.value for constant in constants)
        case ex.LiteralPredicate(literal=constant):
            return bool(ex.COMPARE[type(predicate)](value, constant.value))
        case _:
            raise AssertionError(f"no rule evaluates {predicate!r}")
