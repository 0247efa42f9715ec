"""Rows, Arrow masks and Arrow expressions agree with the definition of the expressions spec."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from icefloe import expressions as ex
from icefloe.errors import InvalidExpressionError, InvalidInputError
from icefloe.expressions import And, Or, Predicate
from icefloe.schema import NestedField, Schema
from icefloe.schema.types import DoubleType
from tests.expressions.rows import Row, arrow_table, naive
from tests.strategies import FILTER_SCHEMA, expressions, filter_rows as rows_of_filter_schema


def has_bucket(expression: ex.Expression) -> bool:
    if isinstance(expression, And | Or):
        return any(map(has_bucket, expression.children))
    return isinstance(expression, Predicate) and isinstance(expression.term, ex.BoundTransform)


def expected(expression: ex.Expression, row: Row) -> bool | None:
    """The naive meaning; None where a transform has no value so close to the end of a type."""
    try:
        return naive(expression, row)
    except InvalidInputError:
        return None


@given(expressions(), rows_of_filter_schema())
def test_a_row_matches_as_the_spec_says(expression: ex.Expression, row: Row) -> None:
    wanted = expected(expression, row)
    if wanted is not None:
        assert ex.evaluate(ex.bind(expression, FILTER_SCHEMA), row) == wanted


@given(expressions(), rows_of_filter_schema())
def test_rows_may_be_given_by_field_id(expression: ex.Expression, row: Row) -> None:
    bound = ex.bind(expression, FILTER_SCHEMA)
    by_id = {field.field_id: value for field, value in zip(FILTER_SCHEMA.fields, row, strict=True)}
    assert ex.evaluate(bound, by_id) == ex.evaluate(bound, row)


@given(expressions(), st.lists(rows_of_filter_schema(), max_size=6))
def test_masks_agree_with_rows(expression: ex.Expression, rows: list[Row]) -> None:
    bound = ex.bind(expression, FILTER_SCHEMA)
    found = ex.mask(bound, arrow_table(rows))
    assert found.null_count == 0
    assert found.to_pylist() == [ex.evaluate(bound, row) for row in rows]


@given(expressions(), st.lists(rows_of_filter_schema(), max_size=6))
def test_masks_of_dictionaries_agree_with_rows(expression: ex.Expression, rows: list[Row]) -> None:
    bound = ex.bind(expression, FILTER_SCHEMA)
    for batch in arrow_table(rows).to_batches():
        columns = [_encoded(column) for column in batch.columns]
        found = ex.mask(bound, pa.RecordBatch.from_arrays(columns, batch.schema.names))
        assert found.null_count == 0
        assert found.to_pylist() == [ex.evaluate(bound, row) for row in rows]


def _encoded(column: Any) -> Any:
    """Texts as dictionaries, without a null among their values."""
    return column.dictionary_encode() if pa.types.is_string(column.type) else column


@given(expressions(), st.lists(rows_of_filter_schema(), max_size=6))
def test_arrow_expressions_agree_with_rows_and_may_be_negated(expression: ex.Expression, rows: list[Row]) -> None:
    bound = ex.bind(expression, FILTER_SCHEMA)
    if has_bucket(bound):
        with pytest.raises(InvalidExpressionError, match="no form as an Arrow expression"):
            ex.to_arrow(bound)
        return
    table = arrow_table(rows).append_column("number", pa.array(range(len(rows)), pa.int64()))
    wanted = [i for i, row in enumerate(rows) if ex.evaluate(bound, row)]
    assert table.filter(ex.to_arrow(bound))["number"].to_pylist() == wanted
    assert table.filter(~ex.to_arrow(bound))["number"].to_pylist() == [i for i in range(len(rows)) if i not in wanted]


@pytest.mark.parametrize("kind", [pa.large_string(), pa.string(), pa.dictionary(pa.int8(), pa.string())])
def test_masks_take_columns_of_other_arrow_types(kind: Any) -> None:
    table = pa.table({"name": pa.array(["a", "b", None]).cast(kind)})
    assert ex.mask(ex.bind(ex.In("name", ["a", "c"]), FILTER_SCHEMA), table).to_pylist() == [True, False, False]
    assert ex.mask(ex.bind(ex.LessThan("name", "b"), FILTER_SCHEMA), table.to_batches()[0]).to_pylist() == [
        True,
        False,
        False,
    ]


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_negative_zero_is_zero(zero: float) -> None:
    rows = [(0.0,), (-0.0,), (1.0,), (float("nan"),)]
    schema = Schema(NestedField(1, "score", DoubleType()))
    table = arrow_table(rows, schema)
    for expression in (ex.EqualTo("score", zero), ex.In("score", [zero, 7.0]), ~ex.NotEqualTo("score", zero)):
        bound = ex.bind(expression, schema)
        assert [ex.evaluate(bound, row) for row in rows] == [True, True, False, False]
        assert ex.mask(bound, table).to_pylist() == [True, True, False, False]
        assert table.filter(ex.to_arrow(bound)).num_rows == 2
    assert ex.mask(ex.bind(ex.LessThan("score", zero), schema), table).to_pylist() == [False] * 4


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_comparisons_with_null_and_nan_are_false_and_their_negations_true(missing: float | None) -> None:
    schema = Schema(NestedField(1, "score", DoubleType()))
    tests = [ex.col("score") < 5, ex.col("score") <= 5, ex.col("score") > 5, ex.col("score") >= 5, ex.col("score") == 5]
    for test in [*tests, ex.col("score").is_in([5, 6])]:
        for expression, wanted in ((test, False), (~test, True)):
            bound = ex.bind(expression, schema)
            assert ex.evaluate(bound, (missing,)) == wanted
            assert ex.mask(bound, arrow_table([(missing,)], schema)).to_pylist() == [wanted]


def test_the_null_of_a_struct_is_the_null_of_its_fields() -> None:
    inner = pa.StructArray.from_arrays([pa.array([5, 6], pa.int32())], names=["zip"], mask=pa.array([True, False]))
    table = pa.table({"place": inner})
    bound = ex.bind(ex.col("place.zip").is_null(), FILTER_SCHEMA)
    assert ex.mask(bound, table).to_pylist() == [True, False]
    assert table.filter(ex.to_arrow(bound)).num_rows == 1


def test_a_mask_keeps_matching_rows() -> None:
    table = pa.table({"small": pa.array([1, None, 3], pa.int32()), "other": ["a", "b", "c"]})
    kept = table.filter(ex.mask(ex.bind(ex.NotEqualTo("small", 1), FILTER_SCHEMA), table))
    assert kept["other"].to_pylist() == ["b", "c"]
    assert table.filter(ex.mask(ex.AlwaysTrue(), table)).equals(table)


def test_a_predicate_must_be_bound() -> None:
    with pytest.raises(InvalidExpressionError, match="small < 5 is not bound to a schema; bind it first"):
        ex.evaluate(ex.LessThan("small", 5), (1,))
    with pytest.raises(InvalidExpressionError, match="is not bound"):
        ex.to_arrow(ex.EqualTo("small", 5))


def test_rows_that_are_too_short_and_tables_without_the_column_are_refused() -> None:
    bound = ex.bind(ex.LessThan("name", "a"), FILTER_SCHEMA)
    with pytest.raises(InvalidExpressionError, match="has 2 values, but name is number 13"):
        ex.evaluate(bound, (True, 1))
    with pytest.raises(InvalidExpressionError, match="have no column 'name'"):
        ex.mask(bound, pa.table({"a": [1]}))
    with pytest.raises(InvalidExpressionError, match=r"have no column 'place.zip'"):
        ex.mask(ex.bind(ex.EqualTo("place.zip", 1), FILTER_SCHEMA), pa.table({"place": [{"a": 1}]}))


def test_references_of_a_predicate_are_its_columns() -> None:
    bound = ex.bind(
        (ex.col("small") > 5) & (ex.Not(ex.col("place.zip") > 1) | (ex.bucket(4, "id") == 3)), FILTER_SCHEMA
    )
    assert {reference.name for reference in ex.bound_references(bound)} == {"small", "place.zip", "id"}
