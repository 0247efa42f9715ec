"""Predicates as values: how they are built, folded, shown and copied."""

import copy
import datetime as dt
import pickle
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given

from icefloe import expressions as ex
from icefloe.errors import InvalidExpressionError
from icefloe.expressions.values import MAX_DEPTH
from icefloe.schema import types
from tests.strategies import expressions

A, B, C = ex.EqualTo("a", 1), ex.EqualTo("b", 2), ex.EqualTo("c", 3)


FOLDED: list[tuple[ex.Expression, ex.Expression]] = [
    (ex.And(A, ex.AlwaysTrue()), A),
    (ex.And(A, ex.AlwaysFalse()), ex.AlwaysFalse()),
    (ex.Or(A, ex.AlwaysFalse()), A),
    (ex.Or(A, ex.AlwaysTrue()), ex.AlwaysTrue()),
    (ex.And(), ex.AlwaysTrue()),
    (ex.Or(), ex.AlwaysFalse()),
    (ex.Not(ex.AlwaysTrue()), ex.AlwaysFalse()),
    (ex.Not(ex.AlwaysFalse()), ex.AlwaysTrue()),
    (ex.Not(ex.Not(ex.LessThan("a", 5))), ex.LessThan("a", 5)),
    (ex.In("a", []), ex.AlwaysFalse()),
    (ex.NotIn("a", []), ex.AlwaysTrue()),
    (ex.In("a", [1, 1]), ex.EqualTo("a", 1)),
    (ex.NotIn("a", {1}), ex.NotEqualTo("a", 1)),
]


@pytest.mark.parametrize(("made", "folded"), FOLDED)
def test_constants_and_small_sets_are_folded(made: ex.Expression, folded: ex.Expression) -> None:
    assert made == folded


def test_chains_are_flat() -> None:
    assert ex.And(ex.And(A, B), C) == ex.And(A, B, C) == A & B & C
    assert ex.Or(A, ex.Or(B, C)) == ex.Or(A, B, C) == A | B | C
    assert (A & B | C).children == (ex.And(A, B), C)  # type: ignore[attr-defined]  # it is an Or


def test_exact_opposites_are_taken() -> None:
    assert ~ex.EqualTo("a", 1) == ex.NotEqualTo("a", 1)
    assert ~ex.In("a", [1, 2]) == ex.NotIn("a", [1, 2])
    assert ~ex.IsNull("a") == ex.NotNull("a")
    assert ~ex.StartsWith("a", "x") == ex.NotStartsWith("a", "x")
    assert isinstance(~ex.LessThan("a", 1), ex.Not)


def test_constants_of_other_types_are_other_constants() -> None:
    assert ex.EqualTo("a", True) != ex.EqualTo("a", 1)
    assert ex.EqualTo("a", 1) != ex.EqualTo("a", 1.0)
    assert len({ex.EqualTo("a", True), ex.EqualTo("a", 1), ex.EqualTo("a", Decimal(1))}) == 3


LITERALS: list[tuple[object, object, types.IcebergType]] = [
    (True, True, types.BooleanType()),
    (np.bool_(False), False, types.BooleanType()),
    (5, 5, types.LongType()),
    (np.int32(5), 5, types.LongType()),
    (2**63, Decimal(2**63), types.DecimalType(19, 0)),
    (1.5, 1.5, types.DoubleType()),
    (np.float32(1.5), 1.5, types.DoubleType()),
    (Decimal("14.20"), Decimal("14.20"), types.DecimalType(4, 2)),
    (Decimal("0.001"), Decimal("0.001"), types.DecimalType(3, 3)),
    (Decimal("2E+3"), Decimal(2000), types.DecimalType(4, 0)),
    ("x", "x", types.StringType()),
    (b"\x00", b"\x00", types.BinaryType()),
    (UUID(int=5), UUID(int=5), types.UUIDType()),
    (dt.date(1970, 1, 2), 1, types.DateType()),
    (dt.time(0, 0, 1), 1_000_000, types.TimeType()),
    (dt.datetime(1970, 1, 1, 0, 0, 1), 1_000_000, types.TimestampType()),
    (dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.UTC), 1_000_000, types.TimestamptzType()),
    (np.datetime64("1970-01-01T00:00:00.000000005", "ns"), 5, types.TimestampNanoType()),
]


@pytest.mark.parametrize(("value", "internal", "kind"), LITERALS)
def test_constants_know_their_type(value: object, internal: object, kind: types.IcebergType) -> None:
    assert ex.literal(value) == ex.Literal(internal, kind)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "test with `is null`"),
        (float("nan"), "test with `is nan`"),
        (Decimal("NaN"), "not a finite decimal"),
        (10**50, "has 51 digits; 38 are the most"),
        ([1], "is not a constant for a predicate"),
        ("\ud800", "surrogate"),
    ],
)
def test_what_is_no_constant_is_refused(value: object, message: str) -> None:
    with pytest.raises(InvalidExpressionError, match=message):
        ex.EqualTo("a", value)


@pytest.mark.parametrize(
    "make",
    [
        lambda: ex.EqualTo("", 1),
        lambda: ex.EqualTo(5, 1),  # type: ignore[arg-type]  # that is the point
        lambda: ex.In("a", "abc"),
        lambda: ex.In("a", 5),  # type: ignore[arg-type]  # that is the point
        lambda: ex.And(A, True),  # type: ignore[arg-type]  # that is the point
        lambda: ex.Not("a = 1"),
        lambda: ex.StartsWith("a", 5),
        lambda: ex.days(ex.days("ts")),
        lambda: ex.as_expression(5),  # type: ignore[arg-type]  # that is the point
    ],
)
def test_what_is_no_predicate_is_refused(make: Any) -> None:
    with pytest.raises(InvalidExpressionError):
        make()


def test_python_operators_make_predicates() -> None:
    assert (ex.col("a") == 5) == ex.EqualTo("a", 5)
    assert (ex.col("a") != 5) == ex.NotEqualTo("a", 5)
    assert (ex.col("a") > 5) == ex.GreaterThan("a", 5)
    assert ex.col("a.b").between(1, 2) == ex.And(ex.col("a.b") >= 1, ex.col("a.b") <= 2)
    assert ex.col("a").is_in([1, 2]) == ~ex.col("a").not_in([1, 2])
    assert ex.col("a").starts_with("x") == ~ex.col("a").not_starts_with("x")
    assert ex.col("a").is_null() == ~ex.col("a").not_null()
    assert ex.col("a").is_nan() == ~ex.col("a").not_nan()
    assert str(ex.bucket(16, ex.col("id")) == 3) == "bucket(16, id) = 3"
    assert str(ex.truncate(4, "name") == "abcd") == "truncate(4, name) = 'abcd'"
    texts = [str(make("ts") == 1) for make in (ex.years, ex.months, ex.days, ex.hours)]
    assert texts == ["years(ts) = 1", "months(ts) = 1", "days(ts) = 1", "hours(ts) = 1"]
    assert repr(ex.col("a")) == "col('a')"


def test_a_predicate_has_no_truth_value() -> None:
    with pytest.raises(InvalidExpressionError, match="combine predicates with &"):
        bool(ex.col("a") > 5)
    with pytest.raises(InvalidExpressionError):
        assert 1 < ex.col("a") < 5


def test_nesting_has_an_end_but_chains_have_none() -> None:
    chain: ex.Expression = A
    for number in range(3000):
        chain = chain | ex.EqualTo("a", number)
    assert len(chain.children) == 3001  # type: ignore[attr-defined]  # it is an Or
    nested: ex.Expression = A
    for _ in range(MAX_DEPTH // 2):
        nested = (nested & B) | C
    with pytest.raises(InvalidExpressionError, match=f"more than {MAX_DEPTH} levels"):
        nested & B


@given(expressions())
def test_predicates_are_copied_by_pickle_and_copy(expression: ex.Expression) -> None:
    assert pickle.loads(pickle.dumps(expression)) == expression
    assert copy.deepcopy(expression) == expression
    assert hash(copy.copy(expression)) == hash(expression)


def test_row_filters_may_be_texts_predicates_or_nothing() -> None:
    assert ex.as_expression(None) == ex.AlwaysTrue()
    assert ex.as_expression(A) is A
    assert ex.as_expression("a = 1") == A


def test_names_are_quoted_when_they_must_be() -> None:
    assert str(ex.Reference("a.b_1")) == "a.b_1"
    assert str(ex.Reference("a b")) == '"a b"'
    assert str(ex.Reference("order.in")) == '"order.in"'
    assert str(ex.Reference('say "x"')) == '"say ""x"""'
