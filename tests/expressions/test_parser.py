"""Filter texts mean what SQL means by them, and every predicate can be written as one."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID

import duckdb
import pytest
from hypothesis import given, strategies as st

from icefloe import expressions as ex
from icefloe.errors import InvalidExpressionError
from icefloe.expressions import IdReference
from icefloe.schema import Schema, types
from tests.strategies import FILTER_SCHEMA, expressions

PARSED: list[tuple[str, ex.Expression]] = [
    ("a = 5", ex.EqualTo("a", 5)),
    ("a == 5", ex.EqualTo("a", 5)),
    ("a<5", ex.LessThan("a", 5)),
    ("A.B.c >= -5", ex.GreaterThanOrEqual("A.B.c", -5)),
    ("5 < a", ex.GreaterThan("a", 5)),
    ("'x' >= a", ex.LessThanOrEqual("a", "x")),
    ("true = a", ex.EqualTo("a", True)),
    ("a != 5", ex.And(ex.NotEqualTo("a", 5), ex.NotNull("a"))),
    ("a <> 5", ex.And(ex.NotEqualTo("a", 5), ex.NotNull("a"))),
    ("5 != a", ex.And(ex.NotEqualTo("a", 5), ex.NotNull("a"))),
    ("a is distinct from 5", ex.NotEqualTo("a", 5)),
    ("a is not distinct from 5", ex.EqualTo("a", 5)),
    ("a is distinct from null", ex.NotNull("a")),
    ("a <=> 5", ex.EqualTo("a", 5)),
    ("5 <=> a", ex.EqualTo("a", 5)),
    ("a <=> null", ex.IsNull("a")),
    ("not a <=> 5", ex.NotEqualTo("a", 5)),
    ("a in (1, 2)", ex.In("a", [1, 2])),
    ("a in (1)", ex.EqualTo("a", 1)),
    ("a not in (1, 2)", ex.And(~ex.In("a", [1, 2]), ex.NotNull("a"))),
    ("a between 1 and 2 and b = 3", ex.And(ex.GreaterThanOrEqual("a", 1), ex.LessThanOrEqual("a", 2), ex.EqualTo("b", 3))),
    ("a is null", ex.IsNull("a")),
    ("a IS NOT NULL", ex.NotNull("a")),
    ("a is nan", ex.IsNaN("a")),
    ("a is not nan", ex.NotNaN("a")),
    ("a like 'abc%'", ex.StartsWith("a", "abc")),
    ("a like 'abc'", ex.EqualTo("a", "abc")),
    ("a like '%'", ex.StartsWith("a", "")),
    (r"a like 'a\%b\_c\\%'", ex.StartsWith("a", "a%b_c\\")),
    ("a not like 'abc%'", ex.And(~ex.StartsWith("a", "abc"), ex.NotNull("a"))),
    ("starts_with(a, 'abc')", ex.StartsWith("a", "abc")),
    ("not (a < 5)", ex.And(ex.Not(ex.LessThan("a", 5)), ex.NotNull("a"))),
    ("not not a < 5", ex.LessThan("a", 5)),
    ("(a < 5) is not true", ex.Not(ex.LessThan("a", 5))),
    ("(a < 5) is true", ex.LessThan("a", 5)),
    ("(a = 5) is false", ex.And(ex.NotEqualTo("a", 5), ex.NotNull("a"))),
    ("(a = 5) is not unknown", ex.Or(ex.EqualTo("a", 5), ex.And(ex.NotEqualTo("a", 5), ex.NotNull("a")))),
    ("a = 1 or b = 2 and c = 3", ex.Or(ex.EqualTo("a", 1), ex.And(ex.EqualTo("b", 2), ex.EqualTo("c", 3)))),
    ("(a = 1 or b = 2) and c = 3", ex.And(ex.Or(ex.EqualTo("a", 1), ex.EqualTo("b", 2)), ex.EqualTo("c", 3))),
    ("true", ex.AlwaysTrue()),
    ("FALSE", ex.AlwaysFalse()),
    ("a and not b", ex.And(ex.EqualTo("a", True), ex.NotEqualTo("b", True), ex.NotNull("b"))),
    ("a is true", ex.EqualTo("a", True)),
    ("a is not true", ex.NotEqualTo("a", True)),
    ('"a b".c = 1', ex.EqualTo("a b.c", 1)),
    ("`a b` = 1", ex.EqualTo("a b", 1)),
    ('"say ""x""" = 1', ex.EqualTo('say "x"', 1)),
    ("größe = 1", ex.EqualTo("größe", 1)),
    ("date >= DATE '2024-01-31'", ex.GreaterThanOrEqual("date", ex.Literal(19753, types.DateType()))),
    ("a = TIME '00:00:01'", ex.EqualTo("a", ex.Literal(1_000_000, types.TimeType()))),
    ("a = TIMESTAMP '1970-01-01 00:00:01'", ex.EqualTo("a", ex.Literal(1_000_000, types.TimestampType()))),
    ("a = TIMESTAMP '1970-01-01 00:00:01Z'", ex.EqualTo("a", ex.Literal(1_000_000, types.TimestamptzType()))),
    ("a = TIMESTAMPTZ '1970-01-01'", ex.EqualTo("a", ex.Literal(0, types.TimestamptzType()))),
    ("a = TIMESTAMP '1970-01-01 00:00:00.000000001'", ex.EqualTo("a", ex.Literal(1, types.TimestampNanoType()))),
    ("a = TIMESTAMPTZ_NS '1970-01-01T01:00+01:00'", ex.EqualTo("a", ex.Literal(0, types.TimestamptzNanoType()))),
    ("a = uuid 'f79c3e09-677c-4bbd-a479-3f349cb785e7'", ex.EqualTo("a", UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7"))),
    ("a = X'00ff'", ex.EqualTo("a", b"\x00\xff")),
    ("a = 1.50", ex.EqualTo("a", Decimal("1.50"))),
    ("a = -.5", ex.EqualTo("a", Decimal("-0.5"))),
    ("a = 1.5e3", ex.EqualTo("a", 1500.0)),
    ("a = +7", ex.EqualTo("a", 7)),
    ("a = 9223372036854775808", ex.EqualTo("a", 2**63)),
    ("a = DOUBLE '-inf'", ex.EqualTo("a", -math.inf)),
    ("a = DECIMAL '5'", ex.EqualTo("a", Decimal(5))),
    ("a = 'it''s'", ex.EqualTo("a", "it's")),
    ("a = ''", ex.EqualTo("a", "")),
    ("days(ts) = '2024-01-31'", ex.days("ts") == "2024-01-31"),
    ("'2024-01-31' < days(ts)", ex.days("ts") > "2024-01-31"),
    ("bucket(16, id) = 3", ex.bucket(16, "id") == 3),
    ("3 = bucket(id, 16)", ex.bucket(16, "id") == 3),
    ("truncate(name, 4) in ('abcd', 'efgh')", ex.truncate(4, "name").is_in(["abcd", "efgh"])),
    ("field_id(7) is null", ex.IsNull(IdReference(7))),
    ("  a\n=\t5 ", ex.EqualTo("a", 5)),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expression"), PARSED)
def test_texts_are_read(text: str, expression: ex.Expression) -> None:
    assert ex.parse_expression(text) == expression
    assert ex.parse_expression(str(expression)) == expression


@given(expressions())
def test_every_predicate_can_be_written_as_text(expression: ex.Expression) -> None:
    """Constants of column types may come back as wider ones; binding makes them the same."""
    again = ex.parse_expression(str(expression))
    assert ex.bind(again, FILTER_SCHEMA) == ex.bind(expression, FILTER_SCHEMA)
    assert ex.parse_expression(str(again)) == again


REFUSED = [
    ("", "expected a column or a constant but found the end, at position 0"),
    ("a =", "but found the end, at position 3"),
    ("a = b", "columns cannot be compared with each other"),
    ("a = null", "null is not a constant; test with IS NULL"),
    ("a = nan", "nan is not a constant; test with IS NAN"),
    ("a in ()", r"expected a column or a constant but found \)"),
    ("a in (1, b)", "expected a constant but found the column b"),
    ("a in 5", "expected '\\(' but found 5"),
    ("a like '%x'", "only a % at the end"),
    ("a like 'x_%'", "the wildcard _"),
    ("a like 'x\\'", "lone backslash"),
    ("a like 5", "expected a pattern"),
    ("a not 5", "expected IN, LIKE or BETWEEN after NOT"),
    ("a is 5", "expected NULL, NAN, TRUE, FALSE or DISTINCT FROM but found 5"),
    ("(a = 1) is 5", "expected TRUE, FALSE or UNKNOWN"),
    ("a between 1 or 2", "expected AND but found or"),
    ("a > 5 b", "expected AND, OR or the end but found b, at position 6"),
    ("(a = 1", "expected '\\)' but found the end"),
    ("a = 1)", r"expected AND, OR or the end but found \)"),
    ("'x", "a string is not closed"),
    ('"x = 1', "a quoted name is empty or not closed"),
    ("a @ 5", "'@' has no meaning here, at position 2"),
    ("1 = 1", "both sides of the comparison are constants"),
    ("5", "expected a comparison of 5 with a column but found the end"),
    ("a = 5x", "the number 5 runs into a name"),
    ("a = 1e999", "beyond the largest double"),
    ("a = X'0'", "pairs of hexadecimal digits"),
    ("a = X'zz'", "pairs of hexadecimal digits"),
    ("a = DATE '2024-13-01'", "months are 01 to 12"),
    ("a = MONEY '5'", "MONEY is not a type of constants; those are DECIMAL, DATE"),
    ("a = DECIMAL 'x'", "is not a decimal number"),
    ("a = DOUBLE 'nan'", "test with `is nan`"),
    ("a = - 'x'", "expected a number after -"),
    (f"a = {'9' * 39}", "has 39 digits; 38 are the most"),
    (f"a = {'9' * 5000}", "larger than any type holds"),
    ("year(ts) = 2024", r"write a range, or years\(...\)"),
    ("upper(a) = 'X'", "the function upper is not known; known are years"),
    ("bucket(id, id) = 3", "takes a whole number and a column"),
    ("bucket(0, id) = 3", "number of buckets 0 is not"),
    ("days(5) = 3", "expected a column but found 5"),
    ("days(days(ts)) = 3", "expected a column but found days"),
    ("days(ts)", r"expected a comparison of days\(ts\)"),
    ("starts_with(a, 5)", "takes a column and a string"),
    ("field_id(x) = 1", "is not a field id"),
    ("a.5 = 3", "found .5"),
    ("a. = 3", "expected the name of a nested column"),
    ("in = 3", "expected a column or a constant but found in"),
    ("(" * 5000 + "a = 1" + ")" * 5000, "nested more than 100 levels deep"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_other_texts_are_refused_with_a_position(text: str, message: str) -> None:
    with pytest.raises(InvalidExpressionError, match=message) as caught:
        ex.parse_expression(text)
    assert "at position" in str(caught.value)


@given(st.text(st.sampled_from("ab1.5'\"()<>=!,-+ %_\\eXinotrulksdDATE`[]\n"), max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        expression = ex.parse_expression(text)
    except InvalidExpressionError:
        return
    assert ex.parse_expression(str(expression)) == expression


def test_only_texts_are_read() -> None:
    with pytest.raises(InvalidExpressionError, match="5 is not a filter text"):
        ex.parse_expression(5)  # type: ignore[arg-type]  # that is the point


def test_long_chains_are_read() -> None:
    text = " or ".join(f"a = {number}" for number in range(5000))
    expression = ex.parse_expression(text)
    assert ex.bind(expression, Schema(types.NestedField(1, "a", types.IntegerType()))) == ex.bind(
        ex.In("a", range(5000)), Schema(types.NestedField(1, "a", types.IntegerType()))
    )


# --- SQL's three values ---

NULLS = Schema(
    types.NestedField(1, "a", types.IntegerType()),
    types.NestedField(2, "b", types.StringType()),
    types.NestedField(3, "d", types.DoubleType()),
)
ROWS = [(a, b, d) for a in (None, 1, 5) for b in (None, "x", "xy", "y") for d in (None, 0.5, 2.0)]


@dataclass
class Condition:
    """A condition as text, and what SQL says of it: True, False or None for unknown."""

    text: str
    meaning: Any


def _known(*values: Any) -> bool:
    return None not in values


LEAVES: list[Condition] = [
    Condition("a = 1", lambda a, b, d: a == 1 if _known(a) else None),
    Condition("a != 1", lambda a, b, d: a != 1 if _known(a) else None),
    Condition("a < 5", lambda a, b, d: a < 5 if _known(a) else None),
    Condition("a >= 5", lambda a, b, d: a >= 5 if _known(a) else None),
    Condition("a in (1, 2)", lambda a, b, d: a in (1, 2) if _known(a) else None),
    Condition("a not in (1, 2)", lambda a, b, d: a not in (1, 2) if _known(a) else None),
    Condition("a not between 0 and 2", lambda a, b, d: not 0 <= a <= 2 if _known(a) else None),
    Condition("a is null", lambda a, b, d: a is None),
    Condition("a is distinct from 1", lambda a, b, d: a != 1),
    Condition("b like 'x%'", lambda a, b, d: b.startswith("x") if _known(b) else None),
    Condition("b not like 'x%'", lambda a, b, d: not b.startswith("x") if _known(b) else None),
    Condition("d > 1.5", lambda a, b, d: d > 1.5 if _known(d) else None),
    Condition("true", lambda a, b, d: True),
]  # fmt: skip


def _and(left: Any, right: Any) -> Any:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def _not(value: Any) -> Any:
    return None if value is None else not value


def conditions() -> st.SearchStrategy[Condition]:
    return st.recursive(
        st.sampled_from(LEAVES),
        lambda inner: st.one_of(
            st.builds(
                lambda x, y: Condition(
                    f"({x.text}) and ({y.text})", lambda *row: _and(x.meaning(*row), y.meaning(*row))
                ),
                inner,
                inner,
            ),
            st.builds(
                lambda x, y: Condition(
                    f"({x.text}) or ({y.text})",
                    lambda *row: _not(_and(_not(x.meaning(*row)), _not(y.meaning(*row)))),
                ),
                inner,
                inner,
            ),
            inner.map(lambda x: Condition(f"not ({x.text})", lambda *row: _not(x.meaning(*row)))),
            inner.map(lambda x: Condition(f"({x.text}) is not true", lambda *row: x.meaning(*row) is not True)),
            inner.map(lambda x: Condition(f"({x.text}) is false", lambda *row: x.meaning(*row) is False)),
            inner.map(lambda x: Condition(f"({x.text}) is unknown", lambda *row: x.meaning(*row) is None)),
        ),
        max_leaves=4,
    )


@given(conditions())
def test_texts_keep_the_rows_that_where_keeps(condition: Condition) -> None:
    bound = ex.bind(ex.parse_expression(condition.text), NULLS)
    assert [ex.evaluate(bound, row) for row in ROWS] == [condition.meaning(*row) is True for row in ROWS]


@pytest.fixture(scope="module")
def database() -> Iterator[Any]:
    with duckdb.connect() as connection:
        connection.execute("create table t (n int, a int, b varchar, d double)")
        connection.executemany("insert into t values (?, ?, ?, ?)", [(n, *row) for n, row in enumerate(ROWS)])
        yield connection


@given(condition=conditions())
def test_duckdb_reads_texts_as_we_do(database: Any, condition: Condition) -> None:
    expression = ex.parse_expression(condition.text)
    bound = ex.bind(expression, NULLS)
    wanted = [n for n, row in enumerate(ROWS) if ex.evaluate(bound, row)]
    # DuckDB has no word for unknown.
    for query in (condition.text.replace("is unknown", "is null"), str(expression)):
        rows = database.execute(f"select n from t where {query} order by n").fetchall()
        assert [row[0] for row in rows] == wanted


def test_sql_and_json_give_the_same_predicate() -> None:
    document = {"type": "gt", "term": "a", "value": 5}
    assert ex.parse_expression("a > 5") == ex.expression_from_json(document) == (ex.col("a") > 5)
