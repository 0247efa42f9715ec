"""Binding finds columns, converts constants soundly, and refuses what cannot be compared."""

import datetime as dt
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, strategies as st

from icefloe import expressions as ex
from icefloe.errors import InvalidExpressionError, NoSuchColumnError
from icefloe.expressions import BoundReference, IdReference, Predicate, Reference
from icefloe.partitioning import transforms as tr
from icefloe.schema import Schema, types
from tests.expressions.unbinding import unbind
from tests.strategies import FILTER_SCHEMA, common_values_of, expressions

BOUND: list[tuple[str, str]] = [
    ("small = 5", "small = 5"),
    ("small > 3000000000", "false"),
    ("small < 3000000000", "small is not null"),
    ("small >= -3000000000", "small is not null"),
    ("small is distinct from 3000000000", "true"),
    ("id < 99999999999999999999", "true"),
    ("small = 1.5", "false"),
    ("small is distinct from 1.5", "true"),
    ("small < 1.5", "small <= 1"),
    ("small <= 1.5", "small <= 1"),
    ("small > 1.5", "small >= 2"),
    ("small >= -1.5", "small >= -1"),
    ("small = 2.0", "small = 2"),
    ("small > 1.5e0", "small >= 2"),
    ("small < DOUBLE 'Infinity'", "small is not null"),
    ("small > DOUBLE 'Infinity'", "false"),
    ("small in (1, 1.5, 3000000000, 2)", "small in (1, 2)"),
    ("small in (1.5, 3000000000)", "false"),
    ("small not in (1.5)", "small is not null"),
    ("price = 1.5", "price = 1.50"),
    ("price = 5", "price = 5.00"),
    ("price = '1.50'", "price = 1.50"),
    ("price < 1.505", "price <= 1.50"),
    ("price > 1.505", "price >= 1.51"),
    ("price = 1.505", "false"),
    ("price = 1.5e0", "price = 1.50"),
    ("price < 99999999", "price is not null"),
    ("price < 9999999", "price < 9999999.00"),
    ("ratio = 0.1", "ratio = 0.10000000149011612e0"),
    ("ratio < 1e300", "ratio <= 3.4028234663852886e+38"),
    ("ratio > 1e300", "ratio >= DOUBLE 'Infinity'"),
    ("ratio < -1e300", "ratio <= DOUBLE '-Infinity'"),
    ("score > 5", "score > 5.0e0"),
    ("day = '2024-01-31'", "day = DATE '2024-01-31'"),
    ("day < TIMESTAMP '2024-01-31 12:00:00'", "day <= DATE '2024-01-31'"),
    ("day > '2024-01-31T12:00:00'", "day >= DATE '2024-02-01'"),
    ("day = TIMESTAMP '2024-01-31 00:00:00'", "day = DATE '2024-01-31'"),
    ("day = 19753", "day = DATE '2024-01-31'"),
    ("ts >= DATE '2024-01-31'", "ts >= TIMESTAMP '2024-01-31T00:00:00'"),
    ("ts >= '2024-01-31 10:00'", "ts >= TIMESTAMP '2024-01-31T10:00:00'"),
    ("ts < '1970-01-01T00:00:00.000000001'", "ts <= TIMESTAMP '1970-01-01T00:00:00'"),
    ("ts_tz >= '2024-01-31'", "ts_tz >= TIMESTAMPTZ '2024-01-31T00:00:00+00:00'"),
    ("ts_tz >= '2024-01-31T00:00:00+01:00'", "ts_tz >= TIMESTAMPTZ '2024-01-30T23:00:00+00:00'"),
    ("ts_tz >= TIMESTAMP '2024-01-31'", "ts_tz >= TIMESTAMPTZ '2024-01-31T00:00:00+00:00'"),
    ("ts_ns = '1970-01-01T00:00:00.000000001'", "ts_ns = TIMESTAMP_NS '1970-01-01T00:00:00.000000001'"),
    ("ts_ns < '2300-01-01'", "ts_ns is not null"),
    ("clock < '12:00:00'", "clock < TIME '12:00:00'"),
    ("key = 'f79c3e09-677c-4bbd-a479-3f349cb785e7'", "key = UUID 'f79c3e09-677c-4bbd-a479-3f349cb785e7'"),
    ("code = X'616263'", "code = X'616263'"),
    ("id is null", "false"),
    ("id is not null", "true"),
    ("place.town is null", "place.town is null"),
    ("inner.deep.n is null", "false"),
    ("not small < 5", "small >= 5"),
    ("(small < 5) is not true", "small >= 5 or small is null"),
    ("(ratio < 5) is not true", "ratio >= 5.0e0 or ratio is null or ratio is nan"),
    ("(id < 5) is not true", "id >= 5"),
    ("small = 1 or small = 2 or small in (3, 2)", "small in (1, 2, 3)"),
    ("small != 1 and small != 2", "small not in (1, 2)"),
    ("small > 5 and small is null", "false"),
    ("small > 5 and small is not null", "small > 5"),
    ("small = 5 and small = 5", "small = 5"),
    ("small is null or small is not null", "true"),
    ("identity(small) = 5", "small = 5"),
    ("days(ts) = '2024-01-31'", "ts >= TIMESTAMP '2024-01-31T00:00:00' and ts < TIMESTAMP '2024-02-01T00:00:00'"),
    ("days(ts) = 19753", "ts >= TIMESTAMP '2024-01-31T00:00:00' and ts < TIMESTAMP '2024-02-01T00:00:00'"),
    ("months(day) <= '2024-01'", "day < DATE '2024-02-01'"),
    ("years(day) > '2023'", "day >= DATE '2024-01-01'"),
    ("years(day) > 53", "day >= DATE '2024-01-01'"),
    ("hours(ts) < '2024-01-31-07'", "ts < TIMESTAMP '2024-01-31T07:00:00'"),
    ("hours(ts) >= 0", "ts >= TIMESTAMP '1970-01-01T00:00:00'"),
    ("years(ts) < 3000000000", "ts is not null"),
    ("days(ts) is null", "ts is null"),
    ("days(ts) in (0, 1)", "ts >= TIMESTAMP '1970-01-01T00:00:00' and ts < TIMESTAMP '1970-01-02T00:00:00' or ts >= TIMESTAMP '1970-01-02T00:00:00' and ts < TIMESTAMP '1970-01-03T00:00:00'"),
    ("truncate(10, small) = 20", "small >= 20 and small < 30"),
    ("truncate(10, small) = 25", "false"),
    ("truncate(10, small) < 25", "small >= -2147483640 and small < 30"),
    ("truncate(10, small) > 25", "small < -2147483640 or small >= 30"),
    ("truncate(10, small) = 2147483646", "small < -2147483640"),
    ("truncate(16, small) < 25", "small < 32"),
    ("truncate(50, price) = 10.50", "price >= 10.50 and price < 11.00"),
    ("truncate(3, name) = 'abc'", "name >= 'abc' and name < 'abd'"),
    ("truncate(3, name) = 'ab'", "name >= 'ab' and name < 'ab\x00'"),
    ("truncate(3, name) = 'abcd'", "false"),
    ("truncate(3, name) like 'ab%'", "name like 'ab%'"),
    ("truncate(3, name) like 'abcd%'", "false"),
    ("truncate(2, blob) > X'ffff'", "false"),
    ("bucket(16, id) = 3", "bucket(16, id) = 3"),
    ("bucket(16, id) is null", "false"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "bound"), BOUND)
def test_binding(text: str, bound: str) -> None:
    found = ex.bind(ex.parse_expression(text), FILTER_SCHEMA)
    assert str(found) == bound


REFUSED: list[tuple[str, str]] = [
    ("small = 'x'", "small = 'x': the constant 'x' of type string cannot be compared with values of type int"),
    ("small = true", "type boolean cannot be compared with values of type int"),
    ("flag = 1", "type long cannot be compared with values of type boolean"),
    ("name = 5", "type long cannot be compared with values of type string"),
    ("name like 'a%' and small like 'a%'", "only strings have prefixes"),
    ("price = 'abc'", "is not a number like '14.20'"),
    ("day = 'soon'", "'soon' is not a timestamp"),
    ("day = '2024-01-31T00:00:00Z'", "has an offset, but values of type date have no zone"),
    ("ts = TIMESTAMPTZ '2024-01-31'", "type timestamptz cannot be compared with values of type timestamp"),
    ("clock = 'x'", "is not a time of day"),
    ("key = 'x'", "is not a value of type uuid"),
    ("code = X'00'", "it has 1 bytes, not 3"),
    ("blob = 'x'", "type string cannot be compared with values of type binary"),
    ("small is nan", "small is of type int; only float and double have NaN"),
    ("place = 5", "place is of type struct<.*>; it can only be tested for null"),
    ("tags = 'x'", "can only be tested for null"),
    ("tags.element = 'x'", "'tags.element' is inside the list or map 'tags'"),
    ("days(small) = 5", "day does not support columns of type int, such as small"),
    ("years(ts) = 'x'", "is not a text for years; write it like '2024'"),
    ("months(ts) = '2024-13'", "is not a moment of the calendar"),
    ("bucket(4, flag) = 1", "bucket\\[4\\] does not support columns of type boolean"),
    ("bucket(4, id) = 'x'", "cannot be compared with values of type int"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_what_cannot_be_compared_is_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidExpressionError, match=message):
        ex.bind(ex.parse_expression(text), FILTER_SCHEMA)


def test_void_is_no_term() -> None:
    with pytest.raises(InvalidExpressionError, match="transform void of small cannot be used in a predicate"):
        ex.bind(ex.IsNull(ex.Transformed(tr.VoidTransform(), Reference("small"))), FILTER_SCHEMA)


def test_only_null_tests_take_types_without_order() -> None:
    schema = Schema(
        types.NestedField(1, "g", types.GeometryType()),
        types.NestedField(2, "v", types.VariantType()),
        types.NestedField(3, "u", types.UnknownType()),
    )
    assert str(ex.bind(ex.IsNull("g"), schema)) == "g is null"
    assert str(ex.bind(ex.NotNull("v"), schema)) == "v is not null"
    assert str(ex.bind(ex.IsNull("u"), schema)) == "true"
    assert str(ex.bind(ex.NotNull("u"), schema)) == "false"
    for name in ("g", "v", "u"):
        with pytest.raises(InvalidExpressionError, match="it can only be tested for null"):
            ex.bind(ex.In(name, ["a", "b"]), schema)


def test_columns_are_found_by_name_id_and_in_any_case() -> None:
    by_name = ex.bind(ex.EqualTo("place.zip", 5), FILTER_SCHEMA)
    assert ex.bind(ex.EqualTo(IdReference(19), 5), FILTER_SCHEMA) == by_name
    assert ex.bind(ex.EqualTo("Place.ZIP", 5), FILTER_SCHEMA, case_sensitive=False) == by_name
    assert isinstance(by_name, Predicate)
    assert isinstance(by_name.term, BoundReference)
    assert (by_name.term.path, by_name.term.names, by_name.term.position) == ((18, 19), ("place", "zip"), 17)
    assert by_name.term.is_nullable
    with pytest.raises(NoSuchColumnError, match=r"no column named 'Place\.ZIP'"):
        ex.bind(ex.EqualTo("Place.ZIP", 5), FILTER_SCHEMA)
    with pytest.raises(NoSuchColumnError, match="no column with id 99"):
        ex.bind(ex.EqualTo(IdReference(99), 5), FILTER_SCHEMA)


def test_a_struct_is_a_schema_too() -> None:
    struct = types.StructType(types.NestedField(1000, "p", types.IntegerType()))
    assert ex.evaluate(ex.bind(ex.EqualTo("p", 5), struct), (5,))


@given(expressions())
def test_binding_again_changes_nothing(expression: ex.Expression) -> None:
    bound = ex.bind(expression, FILTER_SCHEMA)
    assert ex.bind(bound, FILTER_SCHEMA) == bound
    assert ex.bind(unbind(bound), FILTER_SCHEMA) == bound


def test_a_bound_predicate_follows_its_column_through_a_rename_and_promotion() -> None:
    bound = ex.bind(ex.LessThan("a", 5), Schema(types.NestedField(1, "a", types.IntegerType())))
    again = ex.bind(
        bound, Schema(types.NestedField(2, "a", types.StringType()), types.NestedField(1, "b", types.LongType()))
    )
    assert str(again) == "b < 5"
    assert ex.evaluate(again, ("x", 4))


NUMBERS = st.one_of(
    st.integers(-(2**70), 2**70),
    st.integers(-3, 3),
    st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-(10**12), max_value=10**12),
    st.sampled_from((1.5, -1.5, 0.0, 1e300, -1e300, 2.0**31, 2.0**63, -(2.0**63))),
)
TESTS: tuple[tuple[Any, Any], ...] = (
    (ex.EqualTo, lambda a, b: a == b),
    (ex.NotEqualTo, lambda a, b: a != b),
    (ex.LessThan, lambda a, b: a < b),
    (ex.LessThanOrEqual, lambda a, b: a <= b),
    (ex.GreaterThan, lambda a, b: a > b),
    (ex.GreaterThanOrEqual, lambda a, b: a >= b),
)


@given(
    st.sampled_from((types.IntegerType(), types.LongType(), types.DecimalType(9, 2), types.DecimalType(38, 10))),
    NUMBERS,
    st.data(),
)
def test_numbers_are_compared_by_their_exact_value(kind: types.IcebergType, number: Any, data: st.DataObject) -> None:
    schema = Schema(types.NestedField(1, "a", kind))
    value = data.draw(common_values_of(kind))
    test, meaning = data.draw(st.sampled_from(TESTS))
    # A float stands for the digits that it is shown with among decimals, and for itself among whole numbers.
    is_shown = isinstance(number, float) and isinstance(kind, types.DecimalType)
    exact = Fraction(repr(number)) if is_shown else Fraction(number)
    assert ex.evaluate(ex.bind(test("a", number), schema), (value,)) == meaning(Fraction(value), exact)
    assert ex.evaluate(ex.bind(test("a", number), schema), (None,)) == (test is ex.NotEqualTo)


@given(st.sampled_from((types.DateType(), types.TimestampType())), st.datetimes(), st.data())
def test_moments_are_compared_as_moments(kind: types.IcebergType, moment: dt.datetime, data: st.DataObject) -> None:
    schema = Schema(types.NestedField(1, "a", kind))
    value = data.draw(common_values_of(kind))
    test, meaning = data.draw(st.sampled_from(TESTS))
    micros = value * 86_400_000_000 if isinstance(kind, types.DateType) else value
    wanted = (moment - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)
    for constant in (moment, moment.isoformat()):
        assert ex.evaluate(ex.bind(test("a", constant), schema), (value,)) == meaning(micros, wanted)


def test_floats_are_rounded_to_the_column() -> None:
    schema = Schema(types.NestedField(1, "a", types.FloatType()))
    tenth = 0.10000000149011612
    assert ex.evaluate(ex.bind(ex.EqualTo("a", 0.1), schema), (tenth,))
    assert ex.evaluate(ex.bind(ex.EqualTo("a", Decimal("0.1")), schema), (tenth,))
    assert ex.evaluate(ex.bind(ex.LessThan("a", 1e300), schema), (3e38,))
    assert not ex.evaluate(ex.bind(ex.LessThan("a", 1e300), schema), (float("inf"),))
    assert ex.evaluate(ex.bind(ex.IsNaN("a"), schema), (float("nan"),))


def test_uuids_are_ordered_by_unsigned_bytes() -> None:
    bound = ex.bind(ex.LessThan("key", UUID(int=2**127)), FILTER_SCHEMA)
    assert ex.evaluate(bound, {14: UUID(int=2**127 - 1)})
    assert not ex.evaluate(bound, {14: UUID(int=2**128 - 1)})


def test_large_sets_are_bound() -> None:
    bound = ex.bind(ex.In("id", range(50_000)), FILTER_SCHEMA)
    assert len(bound.literals) == 50_000  # type: ignore[attr-defined]  # it is an In


def test_constants_keep_the_type_of_the_column() -> None:
    bound = ex.bind(ex.StartsWith("name", "x") & ex.EqualTo("small", 5), FILTER_SCHEMA)
    assert {child.literal for child in bound.children} == {  # type: ignore[attr-defined]  # it is an And
        ex.Literal("x", types.StringType()),
        ex.Literal(5, types.IntegerType()),
    }


def test_what_is_no_predicate_is_refused() -> None:
    with pytest.raises(InvalidExpressionError, match="is not a predicate"):
        ex.bind("a = 5", FILTER_SCHEMA)  # type: ignore[arg-type]  # that is the point
    assert ex.bind(ex.AlwaysTrue(), FILTER_SCHEMA) == ex.AlwaysTrue()
