"""Two questions about one test, answered for many files at once from the facts about its column.

`might_match`: may some row match? `must_match`: does every row match? Bounds may be loose, so that a lower bound is not
known to be a value; but when both are equal, they are the only ordinary value.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.expressions import values as ex
from icefloe.expressions.arrow import to_scalar, to_value_set
from icefloe.expressions.binding import geo_type
from icefloe.expressions.facts import Bounds, Facts, Mask, known
from icefloe.expressions.terms import Literal
from icefloe.schema import boxes_may_intersect

Compare: TypeAlias = Callable[[pa.Array, pa.Scalar], pa.Array]

_FEW = 16
"""Up to so many constants are compared one by one; more are looked up in order."""


def might_match(predicate: ex.Predicate, facts: Facts) -> Mask:
    """Where some row may match the bound test."""
    match predicate:
        case ex.IsNull():
            return facts.may_be_null
        case ex.NotNull():
            return ~facts.is_all_null
        case ex.IsNaN():
            return facts.may_be_nan & ~facts.is_all_null
        case ex.NotNaN():
            return ~facts.is_all_nan
        case ex.NotIntersects():
            # Shapes without positions are in no box, and meet none.
            return np.ones(facts.size, dtype=np.bool_)
        case ex.NotEqualTo() | ex.NotIn() | ex.NotStartsWith():
            is_ordinary = ~facts.may_be_null & ~facts.may_be_nan
            return ~(is_ordinary & _all_hit(predicate, facts.bounds()))
        case _:
            return ~facts.has_no_ordinary & _may_hit(predicate, facts.bounds())


def must_match(predicate: ex.Predicate, facts: Facts) -> Mask:
    """Where every row is sure to match the bound test."""
    match predicate:
        case ex.IsNull():
            return facts.is_all_null
        case ex.NotNull():
            return ~facts.may_be_null
        case ex.IsNaN():
            return facts.is_all_nan
        case ex.NotNaN():
            return ~facts.may_be_nan | facts.is_all_null
        case ex.Intersects():
            return np.zeros(facts.size, dtype=np.bool_)
        case ex.NotEqualTo() | ex.NotIn() | ex.NotStartsWith() | ex.NotIntersects():
            return facts.has_no_ordinary | ~_may_hit(predicate, facts.bounds())
        case _:
            is_ordinary = ~facts.may_be_null & ~facts.may_be_nan
            return is_ordinary & _all_hit(predicate, facts.bounds())


def _may_hit(predicate: ex.Predicate, bounds: Bounds) -> Mask:
    """Where some ordinary value within the bounds passes the test; for a negated test, the one that it negates."""
    lower, upper = _comparer(bounds.lower, bounds.size), _comparer(bounds.upper, bounds.size)
    match predicate:
        case ex.LessThan(literal=constant):
            return ~lower(pc.greater_equal, constant)
        case ex.LessThanOrEqual(literal=constant):
            return ~lower(pc.greater, constant)
        case ex.GreaterThan(literal=constant):
            return ~upper(pc.less_equal, constant)
        case ex.GreaterThanOrEqual(literal=constant):
            return ~upper(pc.less, constant)
        case ex.EqualTo(literal=constant) | ex.NotEqualTo(literal=constant):
            return ~(lower(pc.greater, constant) | upper(pc.less, constant))
        case ex.StartsWith(literal=constant) | ex.NotStartsWith(literal=constant):
            # What starts with the prefix is not less than it, and what is greater but does not start so is greater than all.
            is_above = lower(pc.greater, constant) & ~_starts(bounds.lower, constant, bounds.size)
            return ~(is_above | upper(pc.less, constant))
        case ex.SpatialPredicate(box=box):
            may = boxes_may_intersect(bounds.lower, bounds.upper, box, geo_type(predicate))
            return np.ones(bounds.size, dtype=np.bool_) if may is None else may
        case ex.In(literals=constants) | ex.NotIn(literals=constants):
            return _any_within(constants, bounds)
        case _:
            raise AssertionError(f"no rule answers {predicate!r}")


def _all_hit(predicate: ex.Predicate, bounds: Bounds) -> Mask:
    """Where every ordinary value within the bounds passes the test; for a negated test, the one that it negates."""
    lower, upper = _comparer(bounds.lower, bounds.size), _comparer(bounds.upper, bounds.size)
    match predicate:
        case ex.LessThan(literal=constant):
            return upper(pc.less, constant)
        case ex.LessThanOrEqual(literal=constant):
            return upper(pc.less_equal, constant)
        case ex.GreaterThan(literal=constant):
            return lower(pc.greater, constant)
        case ex.GreaterThanOrEqual(literal=constant):
            return lower(pc.greater_equal, constant)
        case ex.EqualTo(literal=constant) | ex.NotEqualTo(literal=constant):
            return lower(pc.equal, constant) & upper(pc.equal, constant)
        case ex.StartsWith(literal=constant) | ex.NotStartsWith(literal=constant):
            return _starts(bounds.lower, constant, bounds.size) & _starts(bounds.upper, constant, bounds.size)
        case ex.In(literals=constants) | ex.NotIn(literals=constants):
            if bounds.lower is None or bounds.upper is None:
                return np.zeros(bounds.size, dtype=np.bool_)
            is_one = known(pc.equal(bounds.lower, bounds.upper))
            return is_one & known(pc.is_in(bounds.lower, value_set=to_value_set(constants)))
        case _:
            raise AssertionError(f"no rule answers {predicate!r}")


def _comparer(bounds: pa.Array | None, size: int) -> Callable[[Compare, Literal], Mask]:
    """Where a comparison of the bounds with a constant is known to hold."""
    if bounds is None:
        return lambda _compare, _constant: np.zeros(size, dtype=np.bool_)
    return lambda compare, constant: known(compare(bounds, to_scalar(constant)))


def _starts(bounds: pa.Array | None, prefix: Literal, size: int) -> Mask:
    return np.zeros(size, dtype=np.bool_) if bounds is None else known(pc.starts_with(bounds, prefix.value))


def _any_within(constants: tuple[Literal, ...], bounds: Bounds) -> Mask:
    """Where some constant lies within the bounds."""
    if len(constants) <= _FEW:
        lower, upper = _comparer(bounds.lower, bounds.size), _comparer(bounds.upper, bounds.size)
        within = np.zeros(bounds.size, dtype=np.bool_)
        for constant in constants:
            within |= ~(lower(pc.greater, constant) | upper(pc.less, constant))
        return within
    values = to_value_set(constants)
    values = values.take(pc.sort_indices(values))
    first = _search(values, bounds.lower, bounds.size)
    is_there = first < len(values)
    if bounds.upper is None:
        return is_there
    nearest = values.take(pa.array(np.minimum(first, len(values) - 1)))
    return is_there & ~known(pc.greater(nearest, bounds.upper))


def _search(values: pa.Array, lower: pa.Array | None, size: int) -> npt.NDArray[np.int64]:
    """For each bound, the position of the first sorted value that is not below it: a vectorized binary search."""
    low, high = np.zeros(size, dtype=np.int64), np.full(size, len(values), dtype=np.int64)
    if lower is None:
        return low
    for _ in range(len(values).bit_length()):
        middle = (low + high) // 2
        is_below = known(pc.less(values.take(pa.array(np.minimum(middle, len(values) - 1))), lower)) & (low < high)
        low = np.where(is_below, middle + 1, low)
        high = np.where(is_below, high, middle)
    return low
