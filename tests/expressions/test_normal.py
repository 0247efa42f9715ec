"""The normal form means the same, and has no negation but in the tests."""

import pytest
from hypothesis import given, strategies as st

from icefloe import expressions as ex
from icefloe.expressions import Predicate, conjunction, disjunction
from icefloe.expressions.binding import bound_term
from icefloe.expressions.values import negation
from tests.expressions.rows import Row, naive
from tests.strategies import FILTER_SCHEMA, expressions, filter_rows, predicates


def bound_expressions() -> st.SearchStrategy[ex.Expression]:
    """Combinations of bound tests, negations among them."""
    return expressions(predicates().map(lambda one: ex.bind(one, FILTER_SCHEMA)))


def has_negation(expression: ex.Expression) -> bool:
    if isinstance(expression, ex.And | ex.Or):
        return any(map(has_negation, expression.children))
    return isinstance(expression, ex.Not)


@given(bound_expressions(), filter_rows())
def test_moving_negations_keeps_the_meaning(expression: ex.Expression, row: Row) -> None:
    rewritten = ex.rewrite_not(expression)
    assert not has_negation(rewritten)
    assert ex.evaluate(rewritten, row) == ex.evaluate(expression, row)
    assert ex.evaluate(ex.rewrite_not(negation(expression)), row) != ex.evaluate(expression, row)


@given(bound_expressions(), filter_rows())
def test_simplifying_keeps_the_meaning(expression: ex.Expression, row: Row) -> None:
    assert ex.evaluate(ex.simplify(expression), row) == ex.evaluate(expression, row)


@given(st.data(), filter_rows())
def test_simplifying_tests_of_one_column_keeps_the_meaning(data: st.DataObject, row: Row) -> None:
    """Few tests, often the same ones, so that they decide each other."""
    few = data.draw(st.lists(predicates().map(lambda one: ex.bind(one, FILTER_SCHEMA)), min_size=1, max_size=3))
    more = [test for one in few if isinstance(one, Predicate) for test in _null_tests(one)]
    leaves = st.sampled_from([*few, *more, *map(negation, few)])
    inner = st.lists(leaves, min_size=1, max_size=3).map(lambda parts: conjunction(*parts))
    outer = st.lists(inner | leaves, min_size=1, max_size=3).map(lambda parts: disjunction(*parts))
    expression = data.draw(st.lists(outer | leaves, min_size=1, max_size=4).map(lambda parts: conjunction(*parts)))
    assert ex.evaluate(ex.simplify(expression), row) == ex.evaluate(expression, row)
    assert ex.evaluate(ex.simplify(ex.rewrite_not(expression)), row) == ex.evaluate(expression, row)


def _null_tests(predicate: Predicate) -> list[ex.Expression]:
    name = bound_term(predicate).reference.name
    return [ex.bind(ex.parse_expression(f'"{name}" is {test}'), FILTER_SCHEMA) for test in ("null", "not null")]


@given(expressions(), filter_rows())
def test_without_types_inequalities_stay_negated(expression: ex.Expression, row: Row) -> None:
    rewritten = ex.rewrite_not(expression)
    assert ex.rewrite_not(rewritten) == rewritten
    try:
        wanted = naive(expression, row)
    except ValueError:
        return  # A transform has no value there.
    assert naive(rewritten, row) == wanted


@pytest.mark.parametrize(
    ("text", "simple"),
    [
        ("a = 1 and a = 1", "a = 1"),
        ("a = 1 or a = 2", "a in (1, 2)"),
        ("a = 1 and (a = 1 or b = 2)", "a = 1"),
        ("a is not null and (a is null or b = 2)", "a is not null and b = 2"),
        ("a is null and a is not null", "false"),
        ("a is null or a is not null", "true"),
        ("a > 5 and a is not null", "a > 5"),
        ("a is distinct from 5 or a is null", "a is distinct from 5"),
        ("a = 1 and b = 2", "a = 1 and b = 2"),
        ("(a < 1) is not true and a < 1", "false"),
    ],
)
def test_neighbours_decide(text: str, simple: str) -> None:
    assert str(ex.simplify(ex.parse_expression(text))) == simple


def test_an_unbound_inequality_has_no_opposite() -> None:
    assert ex.rewrite_not(ex.Not(ex.LessThan("a", 5))) == ex.Not(ex.LessThan("a", 5))
