"""What each transform does to single values."""

import datetime as dt
import pickle
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import assume, given, strategies as st

from icefloe.errors import InvalidTransformError, InvalidValueError
from icefloe.partitioning import transforms as tr
from icefloe.schema import coerce, types
from tests.strategies import (
    DAYS_MAX,
    DAYS_MIN,
    INT_MAX,
    INT_MIN,
    LONG_MAX,
    LONG_MIN,
    decimal_types,
    decimals,
    primitive_types,
    texts,
    transforms,
    transforms_of,
    values_of,
)

EPOCH = dt.datetime(1970, 1, 1)
TIMESTAMPS: tuple[types.IcebergType, ...] = (
    types.TimestampType(),
    types.TimestamptzType(),
    types.TimestampNanoType(),
    types.TimestamptzNanoType(),
)
DATES: tuple[types.IcebergType, ...] = (types.DateType(), *TIMESTAMPS)
ALL_KINDS: tuple[types.IcebergType, ...] = (
    *DATES,
    types.BooleanType(),
    types.IntegerType(),
    types.LongType(),
    types.FloatType(),
    types.DoubleType(),
    types.DecimalType(9, 2),
    types.TimeType(),
    types.StringType(),
    types.UUIDType(),
    types.FixedType(3),
    types.BinaryType(),
    types.GeometryType(),
    types.GeographyType(),
    types.UnknownType(),
    types.VariantType(),
    types.ListType(1, types.IntegerType()),
)

SOURCES: list[tuple[tr.Transform, set[types.IcebergType]]] = [
    (
        tr.IdentityTransform(),
        set(ALL_KINDS)
        - {types.GeometryType(), types.GeographyType(), types.VariantType(), types.ListType(1, types.IntegerType())},
    ),
    (
        tr.BucketTransform(4),
        {
            *DATES,
            types.IntegerType(),
            types.LongType(),
            types.DecimalType(9, 2),
            types.TimeType(),
            types.StringType(),
            types.UUIDType(),
            types.FixedType(3),
            types.BinaryType(),
        },
    ),
    (
        tr.TruncateTransform(4),
        {types.IntegerType(), types.LongType(), types.DecimalType(9, 2), types.StringType(), types.BinaryType()},
    ),
    (tr.YearTransform(), set(DATES)),
    (tr.MonthTransform(), set(DATES)),
    (tr.DayTransform(), set(DATES)),
    (tr.HourTransform(), set(TIMESTAMPS)),
    (tr.VoidTransform(), set(ALL_KINDS)),
    (tr.UnknownTransform("zorder"), set(ALL_KINDS)),
]


@pytest.mark.parametrize(
    ("transform", "kinds"), SOURCES, ids=lambda item: str(item) if isinstance(item, tr.Transform) else ""
)
def test_source_types_are_those_of_the_spec(transform: tr.Transform, kinds: set[types.IcebergType]) -> None:
    assert {kind for kind in ALL_KINDS if transform.can_transform(kind)} == kinds
    for kind in set(ALL_KINDS) - kinds:
        with pytest.raises(InvalidTransformError, match="does not support columns of type"):
            transform.apply(None, kind)


@pytest.mark.parametrize(
    ("transform", "kind", "expected"),
    [
        (tr.IdentityTransform(), types.StringType(), types.StringType()),
        (tr.BucketTransform(4), types.StringType(), types.IntegerType()),
        (tr.TruncateTransform(4), types.DecimalType(9, 2), types.DecimalType(9, 2)),
        (tr.YearTransform(), types.DateType(), types.IntegerType()),
        (tr.MonthTransform(), types.TimestampType(), types.IntegerType()),
        (tr.DayTransform(), types.TimestampNanoType(), types.DateType()),
        (tr.HourTransform(), types.TimestamptzType(), types.IntegerType()),
        (tr.VoidTransform(), types.UUIDType(), types.UUIDType()),
        (tr.UnknownTransform("zorder"), types.LongType(), types.StringType()),
        (tr.DayTransform(), types.UnknownType(), types.DateType()),
        (tr.IdentityTransform(), types.UnknownType(), types.UnknownType()),
    ],
    ids=str,
)
def test_result_types(transform: tr.Transform, kind: types.IcebergType, expected: types.IcebergType) -> None:
    assert transform.result_type(kind) == expected


@pytest.mark.parametrize(
    ("text", "transform"),
    [
        ("identity", tr.IdentityTransform()),
        ("bucket[16]", tr.BucketTransform(16)),
        ("BUCKET[16]", tr.BucketTransform(16)),
        ("Truncate[007]", tr.TruncateTransform(7)),
        ("year", tr.YearTransform()),
        ("month", tr.MonthTransform()),
        ("Day", tr.DayTransform()),
        ("hour", tr.HourTransform()),
        ("VOID", tr.VoidTransform()),
        ("bucket", tr.UnknownTransform("bucket")),
        ("bucket[x]", tr.UnknownTransform("bucket[x]")),
        ("bucket[-1]", tr.UnknownTransform("bucket[-1]")),
        ("days", tr.UnknownTransform("days")),
        ("zOrder[4]", tr.UnknownTransform("zOrder[4]")),
        ("", tr.UnknownTransform("")),
        ("bucket[١٦]", tr.UnknownTransform("bucket[١٦]")),
    ],
)
def test_transforms_are_read_without_regard_to_case_and_unknown_ones_kept(text: str, transform: tr.Transform) -> None:
    assert tr.parse_transform(text) == transform


@pytest.mark.parametrize("text", ["bucket[0]", "truncate[0]", "bucket[2147483648]", f"truncate[{'9' * 5000}]", None, 7])
def test_impossible_parameters_are_refused(text: Any) -> None:
    with pytest.raises(InvalidTransformError, match=r"whole number between 1|is not a string"):
        tr.parse_transform(text)


@pytest.mark.parametrize("number", [0, -1, 2**31, 1.5, True, "4", None])
def test_bad_numbers_are_refused(number: Any) -> None:
    for kind in (tr.BucketTransform, tr.TruncateTransform):
        with pytest.raises(InvalidTransformError, match="whole number"):
            kind(number)


@given(transforms())
def test_text_and_pickle_round_trips(transform: tr.Transform) -> None:
    assert tr.parse_transform(str(transform)) == transform
    assert tr.parse_transform(str(transform).upper()) == transform
    assert pickle.loads(pickle.dumps(transform)) == transform
    assert hash(tr.parse_transform(str(transform))) == hash(transform)


@given(primitive_types().flatmap(lambda kind: st.tuples(st.just(kind), transforms_of(kind))))
def test_null_gives_null(pair: tuple[types.IcebergType, tr.Transform]) -> None:
    kind, transform = pair
    assert transform.apply(None, kind) is None
    assert transform.to_human(None, kind) == "null"


def test_an_unknown_transform_cannot_be_applied() -> None:
    with pytest.raises(InvalidTransformError, match="'zorder' is unknown"):
        tr.UnknownTransform("zorder").apply(1, types.LongType())


@pytest.mark.parametrize(
    ("width", "kind", "value", "expected"),
    [
        (10, types.IntegerType(), 1, 0),
        (10, types.IntegerType(), -1, -10),
        (10, types.LongType(), 1, 0),
        (10, types.LongType(), -1, -10),
        (10, types.LongType(), -10, -10),
        (50, types.DecimalType(9, 2), "10.65", "10.50"),
        (10, types.DecimalType(9, 2), "-0.05", "-0.10"),
        (10, types.DecimalType(38, 0), "-" + "9" * 37, "-1" + "0" * 37),
        (3, types.StringType(), "iceberg", "ice"),
        (3, types.StringType(), "ic", "ic"),
        (2, types.StringType(), "a😀b", "a😀"),
        (2, types.StringType(), "é́x", "é́"[:2]),
        (1, types.BinaryType(), b"\x01\x02", b"\x01"),
        (8, types.BinaryType(), b"\x01\x02", b"\x01\x02"),
    ],
)
def test_truncate_as_in_the_spec(width: int, kind: types.IcebergType, value: object, expected: object) -> None:
    assert tr.TruncateTransform(width).apply(coerce(value, kind), kind) == coerce(expected, kind)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (types.DecimalType(4, 2), Decimal("-99.99")),
        (types.DecimalType(38, 0), Decimal("-" + "9" * 38)),
    ],
    ids=str,
)
def test_truncated_decimals_below_the_least_value_are_refused(kind: types.IcebergType, value: object) -> None:
    with pytest.raises(InvalidValueError, match="below the least value"):
        tr.TruncateTransform(7).apply(value, kind)


def test_truncate_comes_round_below_the_least_value_as_in_java() -> None:
    for width, kind, value, result in (
        (10, types.IntegerType(), INT_MIN, 2147483646),
        (10, types.IntegerType(), INT_MIN + 7, 2147483646),
        (10, types.IntegerType(), INT_MIN + 8, INT_MIN + 8),
        (7, types.IntegerType(), INT_MIN + 1, 2147483643),
        (10, types.LongType(), LONG_MIN, 9223372036854775806),
        (16, types.LongType(), LONG_MIN, LONG_MIN),
    ):
        assert tr.TruncateTransform(width).apply(value, kind) == result


@pytest.mark.parametrize("kind", [types.IntegerType(), types.LongType()], ids=str)
def test_the_values_that_come_round_are_known(kind: types.IcebergType) -> None:
    least = INT_MIN if isinstance(kind, types.IntegerType) else LONG_MIN
    for width in (1, 7, 10, 16, 1000, 2**30 + 1):
        found = tr.wrapped_range(tr.TruncateTransform(width), kind)
        values = range(least, least + min(3 * width, 4000))
        round_about = [each for each in values if tr.TruncateTransform(width).apply(each, kind) > each]
        assert round_about == ([] if found is None else list(range(least, min(found.end, values.stop))))
        results = {tr.TruncateTransform(width).apply(each, kind) for each in round_about}
        assert results == (set() if found is None else {found.result})
    assert tr.wrapped_range(tr.TruncateTransform(3), types.StringType()) is None


@given(st.integers(INT_MIN, INT_MAX), st.integers(1, INT_MAX))
def test_truncate_follows_the_formula_of_the_spec(value: int, width: int) -> None:
    assume(value - value % width >= INT_MIN)
    remainder = abs(value) % width * (1 if value >= 0 else -1)  # the remainder of C and Java
    expected = value - ((remainder + width) % width)
    assert tr.TruncateTransform(width).apply(value, types.IntegerType()) == expected


@given(decimal_types().flatmap(lambda kind: st.tuples(st.just(kind), decimals(kind))), st.integers(1, 10**6))
def test_truncated_decimals_are_multiples_of_the_width_at_the_scale(
    pair: tuple[types.DecimalType, Decimal], width: int
) -> None:
    kind, value = pair
    try:
        result = tr.TruncateTransform(width).apply(value, kind)
    except InvalidValueError:
        assert value < 0
        return
    _, digits, exponent = result.as_tuple()
    assert exponent == -kind.scale
    assert int("".join(map(str, digits))) % width == 0
    assert result <= value


@given(texts(), st.integers(1, 10))
def test_truncated_strings_are_prefixes_by_code_point(value: str, width: int) -> None:
    result = tr.TruncateTransform(width).apply(value, types.StringType())
    assert value.startswith(result)
    assert len(result) == min(width, len(value))


@pytest.mark.parametrize(
    ("value", "year", "month", "day", "hour"),
    [
        ("1970-01-01T00:00:00", 0, 0, 0, 0),
        ("1969-12-31T23:59:59.999999", -1, -1, -1, -1),
        ("1969-01-01T00:00:00", -1, -12, -365, -8760),
        ("1968-12-31T23:00:00", -2, -13, -366, -8761),
        ("2017-11-16T22:31:08.000001", 47, 574, 17486, 419686),
        ("1582-10-15T00:00:00", -388, -4647, -141427, -3394248),
    ],
)
def test_units_of_time_round_down(value: str, year: int, month: int, day: int, hour: int) -> None:
    for kind in TIMESTAMPS:
        zoned = f"{value}+00:00" if isinstance(kind, types.TimestamptzType | types.TimestamptzNanoType) else value
        if isinstance(kind, types.TimestampNanoType | types.TimestamptzNanoType) and "1582" in value:
            continue  # nanoseconds do not reach that far
        ticks = coerce(zoned, kind)
        found = [
            t.apply(ticks, kind)
            for t in (tr.YearTransform(), tr.MonthTransform(), tr.DayTransform(), tr.HourTransform())
        ]
        assert found == [year, month, day, hour]
    days = coerce(value[:10], types.DateType())
    assert [t.apply(days, types.DateType()) for t in (tr.YearTransform(), tr.MonthTransform(), tr.DayTransform())] == [
        year,
        month,
        day,
    ]


@given(st.integers(DAYS_MIN * 86_400_000_000, DAYS_MAX * 86_400_000_000))
def test_units_of_time_agree_with_datetime(micros: int) -> None:
    moment = EPOCH + dt.timedelta(microseconds=micros)
    kind = types.TimestampType()
    assert tr.YearTransform().apply(micros, kind) == moment.year - 1970
    assert tr.MonthTransform().apply(micros, kind) == (moment.year - 1970) * 12 + moment.month - 1
    assert tr.DayTransform().apply(micros, kind) == (moment.date() - EPOCH.date()).days
    assert tr.HourTransform().apply(micros, kind) == (moment - EPOCH) // dt.timedelta(hours=1)


@pytest.mark.parametrize(("days", "year", "month"), [(INT_MIN, -5877641, 6), (INT_MAX, 5881580, 7)])
def test_dates_at_the_ends_of_the_type(days: int, year: int, month: int) -> None:
    assert tr.YearTransform().apply(days, types.DateType()) == year - 1970
    assert tr.MonthTransform().apply(days, types.DateType()) == (year - 1970) * 12 + month - 1


@pytest.mark.parametrize("value", [LONG_MIN, LONG_MAX])
def test_hours_that_do_not_fit_are_refused(value: int) -> None:
    assert tr.HourTransform().apply(value, types.TimestampNanoType()) == value // 3_600_000_000_000
    with pytest.raises(InvalidValueError, match="does not fit in an int"):
        tr.HourTransform().apply(value, types.TimestampType())


@pytest.mark.parametrize(
    ("transform", "kind"),
    [
        (tr.DayTransform(), types.DateType()),
        (tr.HourTransform(), types.TimestampType()),
        (tr.TruncateTransform(3), types.LongType()),
    ],
)
def test_values_of_the_wrong_kind_are_our_error(transform: tr.Transform, kind: types.IcebergType) -> None:
    for value in (object(), [1]):
        with pytest.raises(InvalidValueError, match="is not a value of type"):
            transform.apply(value, kind)


ORDERED = st.sampled_from(
    (
        types.IntegerType(),
        types.LongType(),
        types.DateType(),
        *TIMESTAMPS,
        types.StringType(),
        types.BinaryType(),
        types.DecimalType(9, 2),
        types.TimeType(),
    )
)


@given(
    ORDERED.flatmap(
        lambda kind: st.tuples(st.just(kind), transforms_of(kind), st.lists(values_of(kind), min_size=2, max_size=6))
    )
)
def test_what_preserves_order_does(case: tuple[types.IcebergType, tr.Transform, list[Any]]) -> None:
    kind, transform, items = case
    assume(transform.preserves_order)
    wrapped = tr.wrapped_range(transform, kind)
    assume(wrapped is None or min(items) >= wrapped.end)
    try:
        results = [transform.apply(value, kind) for value in sorted(items)]
    except InvalidValueError:
        return
    assert results == sorted(results)


@pytest.mark.parametrize(
    ("transform", "kind", "value", "text"),
    [
        (tr.YearTransform(), types.DateType(), 47, "2017"),
        (tr.YearTransform(), types.DateType(), -1, "1969"),
        (tr.YearTransform(), types.DateType(), -1971, "-001"),
        (tr.MonthTransform(), types.DateType(), 575, "2017-12"),
        (tr.MonthTransform(), types.DateType(), -1, "1969-12"),
        (tr.DayTransform(), types.TimestampType(), 17501, "2017-12-01"),
        (tr.DayTransform(), types.TimestampType(), -1, "1969-12-31"),
        (tr.DayTransform(), types.TimestampType(), 2932897, "10000-01-01"),
        (tr.HourTransform(), types.TimestampType(), 420034, "2017-12-01-10"),
        (tr.HourTransform(), types.TimestampType(), -1, "1969-12-31-23"),
        (tr.BucketTransform(4), types.StringType(), 3, "3"),
        (tr.VoidTransform(), types.StringType(), None, "null"),
        (tr.TruncateTransform(3), types.StringType(), "ice", "ice"),
        (tr.IdentityTransform(), types.BooleanType(), True, "true"),
        (tr.IdentityTransform(), types.LongType(), -34, "-34"),
        (tr.IdentityTransform(), types.FloatType(), 1.100000023841858, "1.1"),
        (tr.IdentityTransform(), types.DoubleType(), 1.0, "1.0"),
        (tr.IdentityTransform(), types.DoubleType(), 1e7, "1.0E7"),
        (tr.IdentityTransform(), types.DoubleType(), 1.25e-4, "1.25E-4"),
        (tr.IdentityTransform(), types.DoubleType(), 0.001, "0.001"),
        (tr.IdentityTransform(), types.DoubleType(), 9999999.0, "9999999.0"),
        (tr.IdentityTransform(), types.DoubleType(), -0.0, "-0.0"),
        (tr.IdentityTransform(), types.DoubleType(), float("nan"), "NaN"),
        (tr.IdentityTransform(), types.DoubleType(), float("-inf"), "-Infinity"),
        (tr.IdentityTransform(), types.DecimalType(9, 2), Decimal("-1.50"), "-1.50"),
        (tr.IdentityTransform(), types.DecimalType(9, 8), Decimal("0.00000010"), "1.0E-7"),
        (tr.IdentityTransform(), types.DateType(), 17501, "2017-12-01"),
        (tr.IdentityTransform(), types.TimeType(), 36_775_038_194, "10:12:55.038194"),
        (tr.IdentityTransform(), types.TimeType(), 36_775_038_000, "10:12:55.038"),
        (tr.IdentityTransform(), types.TimeType(), 36_720_000_000, "10:12"),
        (tr.IdentityTransform(), types.TimeType(), 36_775_000_000, "10:12:55"),
        (tr.IdentityTransform(), types.TimestampType(), 1512123175038194, "2017-12-01T10:12:55.038194"),
        (tr.IdentityTransform(), types.TimestampType(), 1512123175500000, "2017-12-01T10:12:55.5"),
        (tr.IdentityTransform(), types.TimestamptzType(), 1512123175038194, "2017-12-01T10:12:55.038194+00:00"),
        (tr.IdentityTransform(), types.TimestamptzType(), 0, "1970-01-01T00:00:00+00:00"),
        (tr.IdentityTransform(), types.TimestampNanoType(), -1, "1969-12-31T23:59:59.999999999"),
        (tr.IdentityTransform(), types.TimestamptzNanoType(), 1000, "1970-01-01T00:00:00.000001+00:00"),
        (tr.IdentityTransform(), types.TimestampType(), 253402300800000000, "+10000-01-01T00:00:00"),
        (tr.IdentityTransform(), types.StringType(), "a/b=c", "a/b=c"),
        (tr.IdentityTransform(), types.UUIDType(), UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (tr.IdentityTransform(), types.FixedType(3), b"\x01\x02\x03", "AQID"),
        (tr.IdentityTransform(), types.BinaryType(), b"\x00\x01\x02\x03", "AAECAw=="),
    ],
    ids=str,
)
def test_texts_for_people_are_those_of_the_java_library(
    transform: tr.Transform, kind: types.IcebergType, value: object, text: str
) -> None:
    assert transform.to_human(value, kind) == text
