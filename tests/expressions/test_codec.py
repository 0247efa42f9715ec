"""Predicates as JSON: both forms are written and read, anything else is refused."""

import json
import math
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, strategies as st

from icefloe import expressions as ex
from icefloe.errors import IcefloeError, InvalidExpressionError
from icefloe.expressions import IdReference
from icefloe.schema.types import DateType, DecimalType, TimestampNanoType, TimestamptzType
from tests.expressions.unbinding import unbind
from tests.strategies import FILTER_SCHEMA, expressions

UUID_TEXT = "f79c3e09-677c-4bbd-a479-3f349cb785e7"
REF = {"type": "reference", "name": "a"}
WRITTEN: list[tuple[ex.Expression, Any]] = [
    (ex.AlwaysTrue(), True),
    (ex.AlwaysFalse(), False),
    (ex.IsNull("a"), {"type": "is-null", "child": REF}),
    (ex.NotNull(IdReference(7)), {"type": "not-null", "child": {"type": "reference", "id": 7}}),
    (ex.IsNaN("a"), {"type": "is-nan", "child": REF}),
    (ex.LessThan("a", 5), {"type": "lt", "left": REF, "right": 5}),
    (ex.EqualTo("a", 1.5), {"type": "eq", "left": REF, "right": 1.5}),
    (ex.EqualTo("a", True), {"type": "eq", "left": REF, "right": True}),
    (ex.StartsWith("a", "x"), {"type": "starts-with", "left": REF, "right": "x"}),
    (~ex.StartsWith("a", "x"), {"type": "not-starts-with", "left": REF, "right": "x"}),
    (ex.In("a", [1, 2]), {"type": "in", "child": REF, "values": [1, 2]}),
    (~ex.In("a", ["x", "y"]), {"type": "not-in", "child": REF, "values": ["x", "y"]}),
    (
        ex.EqualTo("a", ex.Literal(19753, DateType())),
        {"type": "eq", "left": REF, "right": {"type": "literal", "value": "2024-01-31", "data-type": "date"}},
    ),
    (
        ex.In("a", [Decimal("1.50"), Decimal("2.50")]),
        {
            "type": "in",
            "child": REF,
            "values": {"type": "literals", "values": ["1.50", "2.50"], "data-type": "decimal(3, 2)"},
        },
    ),
    (
        ex.In("a", [1, Decimal("2.50")]),
        {
            "type": "in",
            "child": REF,
            "values": [1, {"type": "literal", "value": "2.50", "data-type": "decimal(3, 2)"}],
        },
    ),
    (
        ex.bucket(16, "a") == 3,
        {
            "type": "eq",
            "left": {
                "type": "apply",
                "function": {"catalog": "iceberg_functions", "identifier": ["bucket"]},
                "arguments": [16, REF],
            },
            "right": 3,
        },
    ),
    (
        ex.Not(ex.LessThan("a", 5)),
        {"type": "not", "child": {"type": "lt", "left": REF, "right": 5}},
    ),
    (
        ex.And(ex.IsNull("a"), ex.IsNaN("a")),
        {"type": "and", "left": {"type": "is-null", "child": REF}, "right": {"type": "is-nan", "child": REF}},
    ),
]


@pytest.mark.parametrize(("expression", "document"), WRITTEN)
def test_the_form_of_the_spec(expression: ex.Expression, document: Any) -> None:
    assert ex.expression_to_json(expression) == document
    assert ex.expression_from_json(json.loads(json.dumps(document))) == expression


TERMS: list[tuple[ex.Expression, Any]] = [
    (ex.IsNull("a"), {"type": "is-null", "term": "a"}),
    (ex.LessThan("a", 5), {"type": "lt", "term": "a", "value": 5}),
    (ex.In("a", [1, 2]), {"type": "in", "term": "a", "values": [1, 2]}),
    (
        ex.bucket(16, "a") == 3,
        {"type": "eq", "term": {"type": "transform", "transform": "bucket[16]", "term": "a"}, "value": 3},
    ),
    (ex.days("a") < 5, {"type": "lt", "term": {"type": "transform", "transform": "day", "term": "a"}, "value": 5}),
]


@pytest.mark.parametrize(("expression", "document"), TERMS)
def test_the_older_form(expression: ex.Expression, document: Any) -> None:
    assert ex.expression_to_term_json(expression) == document
    assert ex.expression_from_json(document) == expression


ACCEPTED: list[tuple[Any, ex.Expression]] = [
    ({"type": "true"}, ex.AlwaysTrue()),
    ({"type": "false"}, ex.AlwaysFalse()),
    ({"type": "literal", "value": True}, ex.AlwaysTrue()),
    ({"type": "lt", "term": {"type": "reference", "term": "a"}, "value": 5}, ex.LessThan("a", 5)),
    ({"type": "LT_EQ", "term": "a", "value": {"type": "literal", "value": 5}}, ex.col("a") <= 5),
    ({"type": "in", "term": "a", "values": [{"type": "literal", "value": 5}, 6]}, ex.In("a", [5, 6])),
    ({"type": "gt", "left": 5, "right": REF}, ex.LessThan("a", 5)),
    ({"type": "eq", "left": {"type": "apply", "function": "truncate", "arguments": [4, REF]}, "right": "x"}, ex.truncate(4, "a") == "x"),
    ({"type": "eq", "left": {"type": "apply", "function": ["day"], "arguments": [REF]}, "right": 5}, ex.days("a") == 5),
    ({"type": "eq", "left": {"type": "apply", "function": {"identifier": ["day"]}, "arguments": [REF]}, "right": 5}, ex.days("a") == 5),
    ({"type": "eq", "term": {"type": "transform", "transform": "day", "term": {"type": "reference", "term": "a"}}, "value": 5}, ex.days("a") == 5),
]  # fmt: skip


@pytest.mark.parametrize(("document", "expression"), ACCEPTED)
def test_other_spellings_are_accepted(document: Any, expression: ex.Expression) -> None:
    assert ex.expression_from_json(document) == expression


@given(expressions())
def test_json_keeps_every_predicate(expression: ex.Expression) -> None:
    if "Infinity" in str(expression):
        with pytest.raises(InvalidExpressionError, match="has no JSON form"):
            ex.expression_to_json(expression)
        return
    document = json.loads(json.dumps(ex.expression_to_json(expression), allow_nan=False))
    assert ex.expression_from_json(document) == expression


@given(expressions())
def test_json_of_a_bound_predicate_is_bound_to_the_same(expression: ex.Expression) -> None:
    bound = ex.bind(expression, FILTER_SCHEMA)
    try:
        document = ex.expression_to_json(bound)
    except InvalidExpressionError:
        return
    assert ex.bind(ex.expression_from_json(document), FILTER_SCHEMA) == bound


@given(expressions())
def test_the_older_form_is_read_with_a_schema(expression: ex.Expression) -> None:
    plain = unbind(ex.bind(expression, FILTER_SCHEMA))
    try:
        document = json.loads(json.dumps(ex.expression_to_term_json(plain), allow_nan=False))
    except InvalidExpressionError:
        return
    assert ex.bind(ex.expression_from_json(document, FILTER_SCHEMA), FILTER_SCHEMA) == ex.bind(
        expression, FILTER_SCHEMA
    )


TYPED: list[tuple[Any, ex.Expression]] = [
    ({"type": "eq", "term": "blob", "value": "00ff"}, ex.EqualTo("blob", b"\x00\xff")),
    ({"type": "eq", "term": "key", "value": UUID_TEXT}, ex.EqualTo("key", UUID(UUID_TEXT))),
    (
        {"type": "eq", "term": "price", "value": "14.20"},
        ex.EqualTo("price", ex.Literal(Decimal("14.20"), DecimalType(9, 2))),
    ),
    ({"type": "gt", "term": "small", "value": 3_000_000_000}, ex.GreaterThan("small", 3_000_000_000)),
    (
        {"type": "eq", "term": "TS_TZ", "value": "1970-01-01T00:00:00+00:00"},
        ex.EqualTo("TS_TZ", ex.Literal(0, TimestamptzType())),
    ),
    (
        {"type": "lt", "term": "ts_tz", "value": 86_400_000_000},
        ex.LessThan("ts_tz", ex.Literal(86_400_000_000, TimestamptzType())),
    ),
    ({"type": "lt", "term": "ts_ns", "value": 7}, ex.LessThan("ts_ns", ex.Literal(7_000, TimestampNanoType()))),
    (
        {"type": "in", "term": "day", "values": [0, 19_000]},
        ex.In("day", [ex.Literal(0, DateType()), ex.Literal(19_000, DateType())]),
    ),
]


@pytest.mark.parametrize(("document", "expression"), TYPED)
def test_a_schema_gives_constants_their_types(document: Any, expression: ex.Expression) -> None:
    assert ex.expression_from_json(document, FILTER_SCHEMA, case_sensitive=False) == expression


REFUSED: list[tuple[Any, str]] = [
    (None, "None is not a predicate; its JSON is an object"),
    (5, "5 is not a predicate"),
    ([], "is not a predicate"),
    ({}, "has no 'type'"),
    ({"type": 5}, "has no 'type'"),
    ({"type": "bogus", "term": "a"}, "'bogus' is not a type of predicates; those are and, or, not, is-null"),
    ({"type": "literal", "value": 5}, "the constant 5 is not a predicate"),
    ({"type": "not"}, "has no 'child'"),
    ({"type": "and", "left": True}, "has no 'right'"),
    ({"type": "lt", "left": REF}, "has no 'right'"),
    ({"type": "lt", "term": "a"}, "has no 'value'"),
    ({"type": "lt", "left": REF, "right": REF}, "does not compare a column with a constant"),
    ({"type": "lt", "left": 1, "right": 2}, "does not compare a column with a constant"),
    ({"type": "starts-with", "left": "x", "right": REF}, "does not compare"),
    ({"type": "is-null", "child": "a"}, "does not test a column"),
    ({"type": "lt", "left": REF, "right": None}, "test with `is null`"),
    ({"type": "lt", "left": REF, "right": math.nan}, "test with `is nan`"),
    ({"type": "lt", "left": REF, "right": [1]}, "is not a constant"),
    ({"type": "lt", "left": REF, "right": {"type": "literal", "value": "x", "data-type": "int"}}, "cannot be read"),
    ({"type": "lt", "left": REF, "right": {"type": "literal", "value": 5, "data-type": "bogus"}}, "unknown type 'bogus'"),
    ({"type": "lt", "left": REF, "right": {"type": "literal", "value": 5, "data-type": 7}}, "cannot be read"),
    ({"type": "in", "child": REF, "values": 5}, "5 is not a list of constants"),
    ({"type": "in", "child": REF, "values": [REF]}, "has a column among its constants"),
    ({"type": "lt", "term": 5, "value": 5}, "5 is not a column"),
    ({"type": "lt", "term": {"type": "reference"}, "value": 5}, "has no 'term'"),
    ({"type": "lt", "term": {"type": "reference", "name": 7}, "value": 5}, "7 is not the name of a column"),
    ({"type": "lt", "term": {"type": "reference", "id": "x"}, "value": 5}, "'x' is not a field id"),
    ({"type": "lt", "term": {"type": "bogus"}, "value": 5}, "'bogus' is not a column"),
    ({"type": "lt", "term": {"type": "transform", "transform": "zorder", "term": "a"}, "value": 5}, "is not a transform"),
    ({"type": "lt", "term": {"type": "transform", "transform": "void", "term": "a"}, "value": 5}, "is not a transform"),
    ({"type": "lt", "term": {"type": "transform", "transform": "bucket[0]", "term": "a"}, "value": 5}, "number of buckets 0"),
    ({"type": "lt", "left": {"type": "apply", "function": "sqrt", "arguments": [REF]}, "right": 5}, "is not a transform"),
    ({"type": "lt", "left": {"type": "apply", "function": {"catalog": "sql_functions", "identifier": ["day"]}, "arguments": [REF]}, "right": 5}, "unknown function"),
    ({"type": "lt", "left": {"type": "apply", "function": ["a", "day"], "arguments": [REF]}, "right": 5}, "unknown function"),
    ({"type": "lt", "left": {"type": "apply", "function": "day", "arguments": 5}, "right": 5}, "has no list of arguments"),
    ({"type": "lt", "left": {"type": "apply", "function": "day", "arguments": [5]}, "right": 5}, "is not a transform of a column"),
    ({"type": "lt", "left": {"type": "apply", "function": "bucket", "arguments": [1, 2, REF]}, "right": 5}, "too many arguments"),
]  # fmt: skip


@pytest.mark.parametrize(("document", "message"), REFUSED)
def test_other_documents_are_refused(document: Any, message: str) -> None:
    with pytest.raises(InvalidExpressionError, match=message):
        ex.expression_from_json(document)


KEYS = st.sampled_from(("type", "term", "value", "values", "left", "right", "child", "name", "id", "function", "arguments", "data-type"))  # fmt: skip
ATOMS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.floats(),
    st.sampled_from(
        ("and", "or", "not", "lt", "eq", "in", "is-null", "starts-with", "reference", "literal", "literals", "apply",
         "transform", "day", "bucket[4]", "a", "int", "date", "")
    ),
)  # fmt: skip


@given(
    st.recursive(
        ATOMS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=12
    )
)
def test_any_document_is_read_or_refused(document: Any) -> None:
    for schema in (None, FILTER_SCHEMA):
        try:
            ex.expression_from_json(document, schema)
        except IcefloeError:
            continue


def test_long_chains_are_written_flat_and_read_deep() -> None:
    chain = ex.Or(*(ex.EqualTo("a", number) for number in range(3000)))
    assert ex.expression_from_json(json.loads(json.dumps(ex.expression_to_json(chain)))) == chain
    deep: Any = ex.expression_to_json(ex.EqualTo("a", 0))
    for number in range(1, 3000):
        deep = {"type": "or", "left": deep, "right": ex.expression_to_json(ex.EqualTo("a", number))}
    assert ex.expression_from_json(deep) == chain


def test_nesting_that_is_too_deep_is_refused() -> None:
    deep: Any = {"type": "is-null", "term": "a"}
    for _ in range(500):
        deep = {"type": "not", "child": {"type": "and", "left": deep, "right": {"type": "is-nan", "term": "b"}}}
    with pytest.raises(InvalidExpressionError, match="levels deep"):
        ex.expression_from_json(deep)


def test_what_the_older_form_cannot_say_is_refused() -> None:
    with pytest.raises(InvalidExpressionError, match="names columns"):
        ex.expression_to_term_json(ex.IsNull(IdReference(7)))
