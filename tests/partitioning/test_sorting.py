"""Sort orders: rules, which order has which, and orders from texts."""

import pickle
from typing import Any

import pytest
from hypothesis import given, strategies as st

from icefloe.errors import IcefloeError, InvalidSortOrderError, InvalidTransformError, NoSuchColumnError
from icefloe.partitioning import (
    UNSORTED,
    NullOrder,
    SortDirection,
    SortField,
    SortOrder,
    check_order,
    parse_sort_order,
    rebind_order,
    transforms as tr,
)
from icefloe.partitioning.sorting import id_for_order
from icefloe.schema import Schema, assign_fresh_ids
from tests.partitioning.test_spec import SCHEMA
from tests.strategies import schemas, sort_orders

ASC, DESC = SortDirection.ASC, SortDirection.DESC
FIRST, LAST = NullOrder.NULLS_FIRST, NullOrder.NULLS_LAST


def test_defaults() -> None:
    assert SortField(1) == SortField((1,), tr.IdentityTransform(), ASC, FIRST)
    assert SortField(1, direction=DESC).null_order is LAST
    assert SortField(1).source_id == 1
    assert (SortOrder().order_id, SortOrder(SortField(1)).order_id) == (0, 1)
    assert UNSORTED.is_unsorted
    assert not SortOrder(SortField(1)).is_unsorted


def test_id_0_is_for_unsorted_and_only_for_that() -> None:
    with pytest.raises(InvalidSortOrderError, match="reserved for unsorted"):
        SortOrder(SortField(1), order_id=0)
    with pytest.raises(InvalidSortOrderError, match="has no fields"):
        SortOrder(order_id=3)
    with pytest.raises(InvalidSortOrderError, match="no source column"):
        SortField(())
    assert UNSORTED.with_id(5) == UNSORTED


@pytest.mark.parametrize(
    ("field", "problem"),
    [
        (SortField(99), "source column 99 is not in the schema"),
        (SortField(4), "it must be primitive"),
        (SortField(3, tr.DayTransform()), "transform day does not support columns of type"),
        (SortField(8), "inside the list or map"),
        (SortField((1, 3), tr.BucketTransform(3)), "takes one source column"),
    ],
    ids=str,
)
def test_broken_orders_are_refused(field: SortField, problem: str) -> None:
    with pytest.raises(InvalidSortOrderError, match=problem):
        check_order(SortOrder(field), SCHEMA)


def test_orders_of_unknown_transforms_pass() -> None:
    check_order(SortOrder(SortField((1, 3), tr.UnknownTransform("zorder"))), SCHEMA)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ts", SortField(2)),
        ("ts asc", SortField(2)),
        ("ts DESC", SortField(2, direction=DESC, null_order=LAST)),
        ("ts desc nulls first", SortField(2, direction=DESC, null_order=FIRST)),
        ("ts NULLS   last", SortField(2, null_order=LAST)),
        ("bucket(16, id) asc", SortField(1, tr.BucketTransform(16))),
        ("truncate(region, 3) desc nulls last", SortField(3, tr.TruncateTransform(3), DESC, LAST)),
        ("days(ts) desc", SortField(2, tr.DayTransform(), DESC, LAST)),
        ("`a b` desc", SortField(14, direction=DESC)),
        ("a b desc", SortField(14, direction=DESC)),
        ("addr.zip", SortField(5)),
    ],
)
def test_orders_from_texts(text: str, expected: SortField) -> None:
    assert parse_sort_order([text], SCHEMA) == SortOrder(expected)
    assert parse_sort_order(text, SCHEMA, order_id=7) == SortOrder(expected, order_id=7)


def test_no_text_is_unsorted() -> None:
    assert parse_sort_order([], SCHEMA) == UNSORTED


@pytest.mark.parametrize(
    ("texts", "error"),
    [
        (["nope"], NoSuchColumnError),
        (["ts upwards"], NoSuchColumnError),
        (["zorder(ts)"], InvalidTransformError),
        (["days(region)"], InvalidTransformError),
        ([""], InvalidTransformError),
        ([None], InvalidTransformError),
        (["tags.element"], InvalidSortOrderError),
    ],
)
def test_bad_texts_are_refused(texts: Any, error: type[IcefloeError]) -> None:
    with pytest.raises(error):
        parse_sort_order(texts, SCHEMA)


def test_ids_for_orders() -> None:
    orders = [UNSORTED, SortOrder(SortField(1), order_id=4)]
    assert id_for_order(SortOrder(SortField(1)), orders) == 4
    assert id_for_order(SortOrder(SortField(2)), orders) == 5
    assert id_for_order(SortOrder(SortField(2)), []) == 1
    assert id_for_order(UNSORTED, orders) == 0


@given(schemas().flatmap(lambda schema: st.tuples(st.just(schema), sort_orders(schema))))
def test_orders_over_any_schema(case: tuple[Schema, SortOrder]) -> None:
    schema, order = case
    check_order(order, schema)
    assert order.same_order(order.with_id(9))
    assert pickle.loads(pickle.dumps(order)) == order
    fresh = assign_fresh_ids(schema, 100)
    rebound = rebind_order(order, schema, fresh)
    for old, new in zip(order.fields, rebound.fields, strict=True):
        assert schema.names_by_id[old.source_id] == fresh.names_by_id[new.source_id]
        assert (old.transform, old.direction, old.null_order) == (new.transform, new.direction, new.null_order)
