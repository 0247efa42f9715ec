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

from icefloe.errors import InvalidExpressionError
from icefloe.expressions import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    EqualTo,
    Expression,
    GreaterThan,
    In,
    IsNull,
    LessThan,
    Literal,
    Not,
    NotEqualTo,
    NotIn,
    NotNull,
    NotStartsWith,
    Or,
    Reference,
    StartsWith,
    as_expression,
    bucket,
    col,
    days,
    hours,
    literal,
    months,
    truncate,
    years,
)
from icefloe.expressions.values import MAX_DEPTH
from icefloe.schema.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    IcebergType,
    LongType,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)
from tests.strategies import expressions

A, B, C = EqualTo("a", 1), EqualTo("b", 2), EqualTo("c", 3)


FOLDED: list[tuple[Expression, Expression]] = [
    (And(A, AlwaysTrue()), A),
    (And(A, AlwaysFalse()), AlwaysFalse()),
    (Or(A, AlwaysFalse()), A),
    (Or(A, AlwaysTrue()), AlwaysTrue()),
    (And(), AlwaysTrue()),
    (Or(), AlwaysFalse()),
    (Not(AlwaysTrue()), AlwaysFalse()),
    (Not(AlwaysFalse()), AlwaysTrue()),
    (Not(Not(LessThan("a", 5))), LessThan("a", 5)),
    (In("a", []), AlwaysFalse()),
    (NotIn("a", []), AlwaysTrue()),
    (In("a", [1, 1]), EqualTo("a", 1)),
    (NotIn("a", {1}), NotEqualTo("a", 1)),
]


@pytest.mark.parametrize(("made", "folded"), FOLDED)
def test_constants_and_small_sets_are_folded(made: Expression, folded: Expression) -> None:
    assert made == folded


def test_chains_are_flat() -> None:
    assert And(And(A, B), C) == And(A, B, C) == A & B & C
    assert Or(A, Or(B, C)) == Or(A, B, C) == A | B | C
    assert (A & B | C).children == (And(A, B), C)  # type: ignore[attr-defined]  # it is an Or


def test_exact_opposites_are_taken() -> None:
    assert ~EqualTo("a", 1) == NotEqualTo("a", 1)
    assert ~In("a", [1, 2]) == NotIn("a", [1, 2])
    assert ~IsNull("a") == NotNull("a")
    assert ~StartsWith("a", "x") == NotStartsWith("a", "x")
    assert isinstance(~LessThan("a", 1), Not)


def test_constants_of_other_types_are_other_constants() -> None:
    assert EqualTo("a", True) != EqualTo("a", 1)
    assert EqualTo("a", 1) != EqualTo("a", 1.0)
    assert len({EqualTo("a", True), EqualTo("a", 1), EqualTo("a", Decimal(1))}) == 3


LITERALS: list[tuple[object, object, IcebergType]] = [
    (True, True, BooleanType()),
    (np.bool_(False), False, BooleanType()),
    (5, 5, LongType()),
    (np.int32(5), 5, LongType()),
    (2**63, Decimal(2**63), DecimalType(19, 0)),
    (1.5, 1.5, DoubleType()),
    (np.float32(1.5), 1.5, DoubleType()),
    (Decimal("14.20"), Decimal("14.20"), DecimalType(4, 2)),
    (Decimal("0.001"), Decimal("0.001"), DecimalType(3, 3)),
    (Decimal("2E+3"), Decimal(2000), DecimalType(4, 0)),
    ("x", "x", StringType()),
    (b"\x00", b"\x00", BinaryType()),
    (UUID(int=5), UUID(int=5), UUIDType()),
    (dt.date(1970, 1, 2), 1, DateType()),
    (dt.time(0, 0, 1), 1_000_000, TimeType()),
    (dt.datetime(1970, 1, 1, 0, 0, 1), 1_000_000, TimestampType()),
    (dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.UTC), 1_000_000, TimestamptzType()),
    (np.datetime64("1970-01-01T00:00:00.000000005", "ns"), 5, TimestampNanoType()),
]


@pytest.mark.parametrize(("value", "internal", "kind"), LITERALS)
def test_constants_know_their_type(value: object, internal: object, kind: IcebergType) -> None:
    assert literal(value) == Literal(internal, kind)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "test with `is null`"),
        (float("nan"), "test with `is nan`"),
        (Decimal("NaN"), "not a finite decimal"),
        (10**50, "has 51 digits; 38 are the most"),
        ([1], "is no constant of a predicate"),
        ("\ud800", "surrogate"),
    ],
)
def test_what_is_no_constant_is_refused(value: object, message: str) -> None:
    with pytest.raises(InvalidExpressionError, match=message):
        EqualTo("a", value)


@pytest.mark.parametrize(
    "make",
    [
        lambda: EqualTo("", 1),
        lambda: EqualTo(5, 1),  # type: ignore[arg-type]  # that is the point
        lambda: In("a", "abc"),
        lambda: In("a", 5),  # type: ignore[arg-type]  # that is the point
        lambda: And(A, True),
        lambda: Not("a = 1"),
        lambda: StartsWith("a", 5),
        lambda: days(days("ts")),
        lambda: as_expression(5),  # type: ignore[arg-type]  # that is the point
    ],
)
def test_what_is_no_predicate_is_refused(make: Any) -> None:
    with pytest.raises(InvalidExpressionError):
        make()


def test_python_operators_make_predicates() -> None:
    assert (col("a") == 5) == EqualTo("a", 5)
    assert (col("a") != 5) == NotEqualTo("a", 5)
    assert (col("a") > 5) == GreaterThan("a", 5)
    assert col("a.b").between(1, 2) == And(col("a.b") >= 1, col("a.b") <= 2)
    assert col("a").is_in([1, 2]) == ~col("a").not_in([1, 2])
    assert col("a").starts_with("x") == ~col("a").not_starts_with("x")
    assert col("a").is_null() == ~col("a").not_null()
    assert col("a").is_nan() == ~col("a").not_nan()
    assert str(bucket(16, col("id")) == 3) == "bucket(16, id) = 3"
    assert str(truncate(4, "name") == "abcd") == "truncate(4, name) = 'abcd'"
    texts = [str(make("ts") == 1) for make in (years, months, days, hours)]
    assert texts == ["years(ts) = 1", "months(ts) = 1", "days(ts) = 1", "hours(ts) = 1"]
    assert repr(col("a")) == "col('a')"


def test_a_predicate_has_no_truth_value() -> None:
    with pytest.raises(InvalidExpressionError, match="combine predicates with &"):
        bool(col("a") > 5)
    with pytest.raises(InvalidExpressionError):
        assert 1 < col("a") < 5


def test_nesting_has_an_end_but_chains_have_none() -> None:
    chain: Expression = A
    for number in range(3000):
        chain = chain | EqualTo("a", number)
    assert len(chain.children) == 3001  # type: ignore[attr-defined]  # it is an Or
    nested: Expression = A
    for _ in range(MAX_DEPTH // 2):
        nested = (nested & B) | C
    with pytest.raises(InvalidExpressionError, match=f"more than {MAX_DEPTH} levels"):
        nested & B


@given(expressions())
def test_predicates_are_copied_by_pickle_and_copy(expression: Expression) -> None:
    assert pickle.loads(pickle.dumps(expression)) == expression
    assert copy.deepcopy(expression) == expression
    assert hash(copy.copy(expression)) == hash(expression)


def test_row_filters_may_be_texts_predicates_or_nothing() -> None:
    assert as_expression(None) == AlwaysTrue()
    assert as_expression(A) is A
    assert as_expression("a = 1") == A


def test_names_are_quoted_when_they_must_be() -> None:
    assert str(Reference("a.b_1")) == "a.b_1"
    assert str(Reference("a b")) == '"a b"'
    assert str(Reference("order.in")) == '"order.in"'
    assert str(Reference('say "x"')) == '"say ""x"""'
