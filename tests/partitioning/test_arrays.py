"""Transforms of Arrow columns give what the transforms of single values give."""

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from icefloe.errors import InvalidTransformError, InvalidValueError
from icefloe.partitioning import transform_array, transforms as tr
from icefloe.schema import type_to_arrow, types
from tests.partitioning.columns import column, values
from tests.strategies import (
    INT_MAX,
    INT_MIN,
    LONG_MAX,
    LONG_MIN,
    nullable_values_of,
    primitive_types,
    texts,
    transforms_of,
)

SOURCE_TYPES: tuple[types.IcebergType, ...] = (
    types.IntegerType(),
    types.LongType(),
    types.DecimalType(9, 2),
    types.DecimalType(18, 0),
    types.DecimalType(38, 10),
    types.DateType(),
    types.TimeType(),
    types.TimestampType(),
    types.TimestamptzType(),
    types.TimestampNanoType(),
    types.TimestamptzNanoType(),
    types.StringType(),
    types.UUIDType(),
    types.FixedType(5),
    types.BinaryType(),
)


def one_by_one(transform: tr.Transform, items: list[Any], kind: types.IcebergType) -> list[Any] | None:
    """The results of single values, or None when one of them is refused."""
    try:
        return [transform.apply(item, kind) for item in items]
    except InvalidValueError:
        return None


def check(transform: tr.Transform, array: Any, items: list[Any], kind: types.IcebergType) -> None:
    expected = one_by_one(transform, items, kind)
    if expected is None:
        with pytest.raises(InvalidValueError):
            transform_array(transform, array, kind)
        return
    found = values(transform_array(transform, array, kind), transform.result_type(kind))
    assert list(map(repr, found)) == list(map(repr, expected))  # repr, so that NaN equals NaN and 0.0 is not -0.0


CASES = st.one_of(st.sampled_from(SOURCE_TYPES), primitive_types()).flatmap(
    lambda kind: st.tuples(
        st.just(kind),
        transforms_of(kind),
        st.lists(nullable_values_of(kind), max_size=12),
        st.integers(0, 3),
        st.integers(0, 3),
    )
)


@given(CASES)
def test_columns_equal_single_values(case: tuple[types.IcebergType, tr.Transform, list[Any], int, int]) -> None:
    kind, transform, items, front, back = case
    array = column(items, kind)
    check(transform, array, items, kind)
    end = max(front, len(items) - back)
    check(transform, array.slice(front, end - front), items[front:end], kind)
    chunks = [column(items[:front], kind), column(items[front:], kind)]
    check(transform, pa.chunked_array(chunks, type_to_arrow(kind)), items, kind)


@pytest.mark.parametrize("kind", SOURCE_TYPES, ids=str)
@pytest.mark.parametrize(
    "transform",
    [
        tr.IdentityTransform(),
        tr.BucketTransform(7),
        tr.TruncateTransform(3),
        tr.YearTransform(),
        tr.MonthTransform(),
        tr.DayTransform(),
        tr.HourTransform(),
        tr.VoidTransform(),
    ],
    ids=str,
)
def test_empty_and_all_null_columns(transform: tr.Transform, kind: types.IcebergType) -> None:
    if not transform.can_transform(kind):
        with pytest.raises(InvalidTransformError, match="does not support columns of type"):
            transform_array(transform, column([None], kind), kind)
        return
    result_type = type_to_arrow(transform.result_type(kind))
    for size in (0, 3):
        found = transform_array(transform, column([None] * size, kind), kind)
        assert (found.type, len(found), found.null_count) == (result_type, size, size)
    chunked = transform_array(transform, pa.chunked_array([], type_to_arrow(kind)), kind)
    assert isinstance(chunked, pa.ChunkedArray)
    assert (chunked.type, len(chunked)) == (result_type, 0)


@given(
    st.lists(st.one_of(st.none(), texts()), max_size=12),
    st.sampled_from((tr.BucketTransform(5), tr.TruncateTransform(2))),
)
def test_strings_in_every_arrow_form(items: list[str | None], transform: tr.Transform) -> None:
    plain = pa.array(items, pa.string())
    forms = [
        plain.cast(pa.large_string()),
        plain.cast(pa.string_view()),
        plain.dictionary_encode(),
        plain.cast(pa.large_string()).dictionary_encode(),
        pa.array([None, *items, "x"], pa.large_string()).slice(1, len(items)),
    ]
    for form in forms:
        check(transform, form, items, types.StringType())


@given(st.lists(st.one_of(st.none(), st.binary(max_size=9)), max_size=12))
def test_bytes_in_every_arrow_form(items: list[bytes | None]) -> None:
    plain = pa.array(items, pa.binary())
    for form in (plain.cast(pa.large_binary()), plain.cast(pa.binary_view()), plain.dictionary_encode()):
        for transform in (tr.BucketTransform(5), tr.TruncateTransform(2), tr.IdentityTransform()):
            check(transform, form, items, types.BinaryType())


def test_a_dictionary_larger_than_the_column_and_a_null_in_it() -> None:
    indices = pa.array([1, None, 2, 3], pa.int8())
    dictionary = pa.array(["a", "b", None, "dd", "e", "f"])
    array = pa.DictionaryArray.from_arrays(indices, dictionary)
    check(tr.BucketTransform(100), array, ["b", None, None, "dd"], types.StringType())
    small = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0, None, 1]), pa.array(["a", None]))
    check(tr.BucketTransform(100), small, ["a", None, "a", None, None], types.StringType())


def test_run_end_encoded_columns() -> None:
    array = pa.RunEndEncodedArray.from_arrays(pa.array([2, 5], pa.int32()), pa.array([34, None], pa.int64()))
    check(tr.BucketTransform(100), array, [34, 34, None, None, None], types.LongType())


def test_uuids_as_plain_bytes() -> None:
    from uuid import UUID

    items = [UUID(int=5), None, UUID(int=2**127)]
    stored = pa.array([None if item is None else item.bytes for item in items], pa.binary(16))
    for transform in (tr.BucketTransform(9), tr.IdentityTransform()):
        check(transform, stored, items, types.UUIDType())


@pytest.mark.parametrize(
    ("array", "kind", "items"),
    [
        (pa.array([1, None, -3], pa.int32()), types.LongType(), [1, None, -3]),
        (pa.array([1, None, -3], pa.int8()), types.IntegerType(), [1, None, -3]),
        (pa.array([1, None], pa.timestamp("s")), types.TimestampType(), [1_000_000, None]),
        (pa.array([1, None], pa.timestamp("ms", "America/Lima")), types.TimestamptzType(), [1000, None]),
        (pa.array([86_400_000, None], pa.date64()), types.DateType(), [1, None]),
        (pa.array([7, None], pa.time32("s")), types.TimeType(), [7_000_000, None]),
        (pa.array([Decimal("1.5"), None], pa.decimal128(5, 1)), types.DecimalType(9, 2), [Decimal("1.50"), None]),
        (pa.array([Decimal("1.5"), None], pa.decimal256(50, 1)), types.DecimalType(9, 2), [Decimal("1.50"), None]),
    ],
    ids=lambda item: str(getattr(item, "type", item)),
)
def test_narrower_arrow_types_are_widened(array: Any, kind: types.IcebergType, items: list[Any]) -> None:
    check(tr.BucketTransform(64), array, items, kind)
    check(tr.IdentityTransform(), array, items, kind)


@pytest.mark.parametrize(
    ("array", "kind"),
    [
        (pa.array(["x"]), types.LongType()),
        (pa.array([2**40]), types.IntegerType()),
        (pa.array([1], pa.timestamp("ns")), types.TimestampType()),
        (pa.array([b"\xff"]), types.StringType()),
        (pa.array([b"abc"], pa.binary(3)), types.UUIDType()),
        (pa.array([[1]]), types.LongType()),
    ],
    ids=lambda item: str(getattr(item, "type", item)),
)
def test_columns_of_another_type_are_refused(array: Any, kind: types.IcebergType) -> None:
    with pytest.raises(InvalidValueError, match="does not hold values of type"):
        transform_array(tr.BucketTransform(4), array, kind)


def test_what_the_transform_cannot_take_is_refused() -> None:
    with pytest.raises(InvalidTransformError, match="does not support columns of type double"):
        transform_array(tr.BucketTransform(4), pa.array([1.0]), types.DoubleType())
    with pytest.raises(InvalidTransformError, match="does not support columns of type boolean"):
        transform_array(tr.BucketTransform(4), pa.array([True]), types.BooleanType())
    with pytest.raises(InvalidTransformError, match="'zorder' is unknown"):
        transform_array(tr.UnknownTransform("zorder"), pa.array([1]), types.LongType())


@pytest.mark.parametrize(
    ("kind", "least"),
    [
        (types.DecimalType(4, 2), Decimal("-99.99")),
        (types.DecimalType(20, 0), Decimal("-" + "9" * 20)),
        (types.DecimalType(38, 0), Decimal("-" + "9" * 38)),
    ],
    ids=str,
)
def test_truncated_decimals_below_the_least_value_are_refused(kind: types.IcebergType, least: Any) -> None:
    with pytest.raises(InvalidValueError, match="does not fit"):
        transform_array(tr.TruncateTransform(7), column([None, least], kind), kind)


@pytest.mark.parametrize(("kind", "least"), [(types.IntegerType(), INT_MIN), (types.LongType(), LONG_MIN)], ids=str)
def test_truncate_comes_round_below_the_least_value(kind: types.IcebergType, least: int) -> None:
    values = [None, least, least + 1, least + 20, -1, 0]
    check(tr.TruncateTransform(7), column(values, kind), values, kind)


def test_garbage_under_a_null_is_not_a_value() -> None:
    least = pa.py_buffer(INT_MIN.to_bytes(4, "little", signed=True) + (5).to_bytes(4, "little"))
    array = pa.Array.from_buffers(pa.int32(), 2, [pa.py_buffer(b"\x02"), least])
    assert transform_array(tr.TruncateTransform(7), array, types.IntegerType()).to_pylist() == [None, 0]


@pytest.mark.parametrize("extreme", [LONG_MIN, LONG_MAX])
def test_timestamps_at_the_ends_of_the_type(extreme: int) -> None:
    kinds: tuple[types.IcebergType, ...] = (
        types.TimestampType(),
        types.TimestamptzType(),
        types.TimestampNanoType(),
        types.TimestamptzNanoType(),
    )
    for kind in kinds:
        for transform in (
            tr.YearTransform(),
            tr.MonthTransform(),
            tr.DayTransform(),
            tr.HourTransform(),
            tr.BucketTransform(99),
        ):
            check(transform, column([extreme, None, -1, 0], kind), [extreme, None, -1, 0], kind)
    for transform in (tr.YearTransform(), tr.MonthTransform(), tr.DayTransform()):
        check(transform, column([INT_MIN, INT_MAX], types.DateType()), [INT_MIN, INT_MAX], types.DateType())


@given(st.lists(st.integers(-(2**126), 2**126).map(lambda n: n % (2 * 10**38 - 1) - 10**38 + 1), max_size=8))
def test_wide_decimals(numbers: list[int]) -> None:
    kind = types.DecimalType(38, 6)
    items = [Decimal((int(n < 0), tuple(map(int, str(abs(n)))), -6)) for n in numbers]
    for transform in (tr.BucketTransform(1000), tr.TruncateTransform(999_983), tr.TruncateTransform(INT_MAX)):
        check(transform, column(items, kind), items, kind)


def test_long_columns_cross_blocks_with_nulls_and_long_strings() -> None:
    items = [None if i % 11 == 0 else "é" * (i % 70) for i in range(70_000)]
    check(tr.BucketTransform(1 << 20), pa.array(items), items, types.StringType())


def test_decimals_cross_blocks() -> None:
    kind = types.DecimalType(20, 2)
    items = [None if i % 7 == 0 else Decimal((i % 2, tuple(map(int, str(i**4))), -2)) for i in range(40_000)]
    check(tr.BucketTransform(1 << 20), column(items, kind), items, kind)
