"""Internal values from Python objects and text, and back."""

import datetime as dt
import pickle
import re
import uuid
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from icefloe.errors import InvalidValueError
from icefloe.schema import IcebergType, NestedField, StructType, coerce, parse_text, to_text
from icefloe.schema.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    GeographyType,
    GeometryType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedType,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UnknownType,
    UUIDType,
    VariantType,
    walk_fields,
)
from tests.strategies import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN, primitive_types, types, values_of

POINT = StructType(
    NestedField(1, "x", IntegerType(), required=True), NestedField(2, "y", DateType()), NestedField(3, "z", LongType())
)
UUID = uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")
EVENING = 1510871468_000000  # 2017-11-16T22:31:08
NANOS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9, "D": 86400 * 10**9}
WEST = dt.timezone(dt.timedelta(hours=-8))


def without_variant(kind: IcebergType) -> bool:
    inner = walk_fields(kind.fields) if isinstance(kind, NestedType) else ()
    return not any(isinstance(k, VariantType) for k in (kind, *(field.field_type for field in inner)))


def typed_values(kinds: st.SearchStrategy[Any] | None = None) -> st.SearchStrategy[tuple[IcebergType, Any]]:
    """A type and an internal value of it."""
    kinds = types().filter(without_variant) if kinds is None else kinds
    return kinds.flatmap(lambda kind: st.tuples(st.just(kind), values_of(kind)))


def same(left: Any, right: Any) -> bool:
    """Equality that tells -0.0 from 0.0, and finds NaN equal to itself."""
    return repr(left) == repr(right)


@given(typed_values())
def test_internal_values_stay_as_they_are(pair: tuple[IcebergType, Any]) -> None:
    kind, value = pair
    assert same(coerce(value, kind), value)
    assert same(pickle.loads(pickle.dumps(value)), value)
    hash(value)


@given(typed_values(primitive_types().filter(lambda kind: not isinstance(kind, UnknownType))))
def test_text_round_trips(pair: tuple[IcebergType, Any]) -> None:
    kind, value = pair
    assert same(parse_text(to_text(value, kind), kind), value)


@given(st.integers(LONG_MIN, LONG_MAX), st.sampled_from((TimestampType(), TimestamptzType(), TimestamptzNanoType())))
def test_text_reaches_beyond_datetime(value: int, kind: IcebergType) -> None:
    assert parse_text(to_text(value, kind), kind) == value


@given(typed_values())
def test_every_value_has_text(pair: tuple[IcebergType, Any]) -> None:
    assert isinstance(to_text(pair[1], pair[0]), str)


@pytest.mark.parametrize(
    ("given_value", "kind", "value"),
    [
        (True, BooleanType(), True),
        (np.bool_(False), BooleanType(), False),
        (np.int64(5), IntegerType(), 5),
        (INT_MIN, IntegerType(), INT_MIN),
        (LONG_MAX, LongType(), LONG_MAX),
        (np.float32(0.5), FloatType(), 0.5),
        (0.1, FloatType(), 0.10000000149011612),
        (3, DoubleType(), 3.0),
        (Decimal("1.5"), DoubleType(), 1.5),
        ("14.2", DecimalType(9, 2), Decimal("14.20")),
        (14, DecimalType(9, 2), Decimal("14.00")),
        (Decimal("1.42E+1"), DecimalType(9, 2), Decimal("14.20")),
        (Decimal("14.2000"), DecimalType(9, 2), Decimal("14.20")),
        ("9" * 38, DecimalType(38, 0), Decimal("9" * 38)),
        ("-0.00", DecimalType(9, 2), Decimal("0.00")),
        (dt.date(2017, 11, 16), DateType(), 17486),
        ("2017-11-16", DateType(), 17486),
        ("-0044-03-15", DateType(), -735525),
        (np.datetime64("2017-11-16"), DateType(), 17486),
        (np.datetime64("2017-11"), DateType(), 17471),
        (np.datetime64("2017"), DateType(), 17167),
        (dt.time(22, 31, 8, 5), TimeType(), 81068000005),
        ("22:31:08.000005", TimeType(), 81068000005),
        (dt.datetime(2017, 11, 16, 22, 31, 8), TimestampType(), EVENING),
        ("2017-11-16T22:31:08", TimestampType(), EVENING),
        ("2017-11-16 22:31:08", TimestampType(), EVENING),
        ("2017-11-16T22:31:08.000001000", TimestampType(), EVENING + 1),
        ("2017-11-16", TimestampType(), 17486 * 86_400_000_000),
        (dt.date(2017, 11, 16), TimestampType(), 17486 * 86_400_000_000),
        (np.datetime64("2017-11-16T22:31:08.000000000"), TimestampType(), EVENING),
        (dt.datetime(2017, 11, 16, 14, 31, 8, tzinfo=WEST), TimestamptzType(), EVENING),
        ("2017-11-16T14:31:08-08:00", TimestamptzType(), EVENING),
        ("2017-11-16T22:31:08Z", TimestamptzType(), EVENING),
        (np.datetime64("2017-11-16T22:31:08"), TimestamptzType(), EVENING),
        ("2017-11-16T22:31:08.000001001", TimestampNanoType(), EVENING * 1000 + 1001),
        ("2017-11-16T14:31:08.000001001-08:00", TimestamptzNanoType(), EVENING * 1000 + 1001),
        (dt.datetime(2017, 11, 16, 22, 31, 8, 1, tzinfo=dt.UTC), TimestamptzNanoType(), EVENING * 1000 + 1000),
        (EVENING, TimestamptzType(), EVENING),
        (np.str_("a"), StringType(), "a"),
        (str(UUID), UUIDType(), UUID),
        (UUID.hex.upper(), UUIDType(), UUID),
        (UUID.bytes, UUIDType(), UUID),
        (bytearray(b"ab"), FixedType(2), b"ab"),
        (memoryview(b"ab"), BinaryType(), b"ab"),
        ("POINT (30 10)", GeometryType(), bytes.fromhex("01010000000000000000003e400000000000002440")),
        ({"x": 1, "y": "1970-01-02"}, POINT, ((1, 1), (2, 1))),
        ({"z": None, "x": 1}, POINT, ((1, 1), (3, None))),
        ({}, POINT, ()),
        ([1, None], ListType(1, IntegerType(), element_required=False), (1, None)),
        (np.array([1, 2]), ListType(1, IntegerType()), (1, 2)),
        ({"a": dt.date(1970, 1, 2)}, MapType(1, StringType(), 2, DateType()), (("a", 1),)),
        ([("a", 1)], MapType(1, StringType(), 2, DateType()), (("a", 1),)),
    ],
)
def test_natural_python_values(given_value: object, kind: IcebergType, value: Any) -> None:
    found = coerce(given_value, kind)
    assert same(found, value)
    assert type(found) is type(value)


def test_null_is_a_value_of_every_type() -> None:
    for kind in (IntegerType(), UnknownType(), VariantType(), POINT):
        assert coerce(None, kind) is None
        assert to_text(None, kind) == "null"


@pytest.mark.parametrize(
    ("value", "kind", "right"),
    [
        (1, BooleanType(), "True or False"),
        (True, IntegerType(), "give an int"),
        (np.bool_(True), LongType(), "give an int"),
        (1.0, IntegerType(), "give an int"),
        ("1", LongType(), "give an int"),
        (INT_MAX + 1, IntegerType(), "from -2147483648 to 2147483647"),
        (LONG_MIN - 1, LongType(), "from -9223372036854775808"),
        (1e39, FloatType(), "beyond the largest"),
        (10**400, DoubleType(), "beyond the largest"),
        (Decimal("sNaN"), DoubleType(), "beyond the largest"),
        ("1.0", DoubleType(), "give a float"),
        (True, DoubleType(), "give a float"),
        (1.5, DecimalType(9, 2), "not exact"),
        ("1.555", DecimalType(9, 2), "at most 2 digits after the point"),
        ("1E-999999", DecimalType(9, 2), "at most 2 digits after the point"),
        ("1E+999999", DecimalType(9, 2), "digits"),
        ("1" * 8, DecimalType(9, 2), "at most 7 digits before the point"),
        (10**40, DecimalType(38, 0), "at most 38 digits before the point"),
        ("1_0", DecimalType(9, 2), "a number like"),
        (Decimal("NaN"), DecimalType(9, 2), "finite"),
        (dt.datetime(2017, 11, 16), DateType(), "give its .date()"),
        (1.0, DateType(), "datetime.date"),
        (INT_MAX + 1, DateType(), "from -2147483648"),
        ("+9999999-01-01", DateType(), "from -2147483648"),
        (np.datetime64("2017-11-16T01"), DateType(), "time of day"),
        (np.datetime64("NaT", "D"), DateType(), "NaT"),
        (np.datetime64(1, "as"), TimestampNanoType(), "unit 'as'"),
        (dt.time(1, tzinfo=dt.UTC), TimeType(), "without tzinfo"),
        (86_400_000_000, TimeType(), "from 0 to 86399999999"),
        (-1, TimeType(), "from 0 to 86399999999"),
        (1.5, TimeType(), "datetime.time"),
        (dt.datetime(2017, 11, 16), TimestamptzType(), "aware datetime"),
        ("2017-11-16T22:31:08", TimestamptzNanoType(), "an offset such as"),
        (dt.date(2017, 11, 16), TimestamptzType(), "an offset such as"),
        (dt.datetime(2017, 11, 16, tzinfo=dt.UTC), TimestampType(), "without one"),
        ("2017-11-16T22:31:08Z", TimestampNanoType(), "without one"),
        ("2500-01-01T00:00:00", TimestampNanoType(), "from -9223372036854775808"),
        (dt.datetime(9999, 1, 1), TimestampNanoType(), "from -9223372036854775808"),
        (np.datetime64("9999-01-01", "ms"), TimestampNanoType(), "from -9223372036854775808"),
        (True, TimestampType(), "give a datetime"),
        (b"a", StringType(), "give a str"),
        ("\ud800", StringType(), "surrogate"),
        ("f79c3e09", UUIDType(), "16 bytes"),
        (b"short", UUIDType(), "16 bytes"),
        ("00ff", BinaryType(), "bytes.fromhex"),
        (b"abc", FixedType(2), "3 bytes, not 2"),
        (1, GeometryType(), "WKB"),
        (1, UnknownType(), "only null"),
        ("x", VariantType(), "only its null"),
        ({"q": 1}, POINT, "no field 'q'; its fields are x, y, z"),
        ({"x": None}, POINT, "its x is required"),
        (5, POINT, "give a dict"),
        ("ab", ListType(1, StringType()), "give a list"),
        (5, ListType(1, StringType()), "give a list"),
        ([None], ListType(1, StringType()), "its element is required"),
        (["ab", 5], MapType(1, StringType(), 2, IntegerType()), "give a dict"),
        ({None: 1}, MapType(1, StringType(), 2, IntegerType()), "its key is required"),
        ({"a": None}, MapType(1, StringType(), 2, IntegerType()), "its value is required"),
    ],
)
def test_what_does_not_fit_is_refused_with_what_would_be_right(value: object, kind: IcebergType, right: str) -> None:
    with pytest.raises(InvalidValueError, match=re.escape(right)) as caught:
        coerce(value, kind)
    assert f"is not a value of type {kind}: " in str(caught.value)


def test_nanoseconds_are_not_cut_off_silently() -> None:
    with pytest.raises(InvalidValueError, match="round it first"):
        coerce("2017-11-16T22:31:08.000001001", TimestampType())
    with pytest.raises(InvalidValueError, match="round it first"):
        coerce(np.datetime64("2017-11-16T22:31:08.000001001"), TimestampType())

    class Stamp(dt.datetime):
        """What pandas has: a datetime that also counts nanoseconds."""

        nanosecond = 7

    stamp = Stamp(2017, 11, 16, 22, 31, 8)
    assert coerce(stamp, TimestampNanoType()) == EVENING * 1000 + 7
    with pytest.raises(InvalidValueError, match="round it first"):
        coerce(stamp, TimestampType())


@given(st.datetimes(timezones=st.none() | st.just(WEST) | st.just(dt.UTC)))
def test_datetimes_are_exact(moment: dt.datetime) -> None:
    kind = TimestampType() if moment.tzinfo is None else TimestamptzType()
    micros = coerce(moment, kind)
    epoch = dt.datetime(1970, 1, 1, tzinfo=None if moment.tzinfo is None else dt.UTC)
    assert micros * dt.timedelta(microseconds=1) == moment - epoch
    assert coerce(moment.isoformat(), kind) == micros


@given(st.integers(LONG_MIN + 1, LONG_MAX), st.sampled_from(tuple(NANOS)))
def test_numpy_moments_are_exact_or_refused(ticks: int, unit: str) -> None:
    moment = np.datetime64(ticks, unit)  # type: ignore[call-overload]  # the stubs know units as literals only
    exact = ticks * NANOS[unit]
    try:
        assert coerce(moment, TimestampNanoType()) == exact
    except InvalidValueError:
        assert not LONG_MIN <= exact <= LONG_MAX


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (True, BooleanType(), "true"),
        (-34, LongType(), "-34"),
        (0.10000000149011612, FloatType(), "0.1"),
        (0.1, DoubleType(), "0.1"),
        (float("nan"), DoubleType(), "NaN"),
        (float("-inf"), FloatType(), "-Infinity"),
        (-0.0, FloatType(), "-0.0"),
        (Decimal("14.20"), DecimalType(9, 2), "14.20"),
        (Decimal("0E-10"), DecimalType(20, 10), "0.0000000000"),
        (17486, DateType(), "2017-11-16"),
        (81068123456, TimeType(), "22:31:08.123456"),
        (EVENING + 123456, TimestampType(), "2017-11-16T22:31:08.123456"),
        (EVENING, TimestamptzType(), "2017-11-16T22:31:08+00:00"),
        (EVENING * 1000 + 123456789, TimestamptzNanoType(), "2017-11-16T22:31:08.123456789+00:00"),
        ("iceberg", StringType(), "iceberg"),
        (UUID, UUIDType(), "f79c3e09-677c-4bbd-a479-3f349cb785e7"),
        (b"\x00\x01\x02\xff", BinaryType(), "000102ff"),
        (((1, 5), (2, None)), POINT, "{x: 5, y: null}"),
        ((1, None), ListType(1, IntegerType(), False), "[1, null]"),
        ((("a", 1),), MapType(1, StringType(), 2, DateType()), "{a: 1970-01-02}"),
    ],
)
def test_text_for_people(value: Any, kind: IcebergType, text: str) -> None:
    assert to_text(value, kind) == text


def test_other_spellings_are_read() -> None:
    assert parse_text("TRUE", BooleanType()) is True
    assert parse_text("+7", IntegerType()) == 7
    assert parse_text("1e3", DoubleType()) == 1000.0
    assert parse_text("inf", DoubleType()) == float("inf")
    assert parse_text("00FF", FixedType(2)) == b"\x00\xff"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("yes", BooleanType()),
        ("1.0", IntegerType()),
        ("1_0", IntegerType()),
        ("9" * 5000, LongType()),
        ("２", LongType()),
        ("2147483648", IntegerType()),
        ("1_0.0", DoubleType()),
        ("1e400", DoubleType()),
        ("1e39", FloatType()),
        ("0f 0f", BinaryType()),
        ("0", BinaryType()),
        ("zz", BinaryType()),
        ("00", FixedType(2)),
        ("null", UnknownType()),
        ("{}", POINT),
        ("x", VariantType()),
        ("POINT", GeographyType()),
    ],
)
def test_bad_text_is_refused(text: str, kind: IcebergType) -> None:
    with pytest.raises(InvalidValueError):
        parse_text(text, kind)


@pytest.mark.parametrize("kind", [LongType(), DoubleType(), DecimalType(38, 0), TimestampType()])
def test_a_number_too_long_to_show_is_refused_all_the_same(kind: IcebergType) -> None:
    with pytest.raises(InvalidValueError, match=re.escape(f"is not a value of type {kind}")):
        coerce(10**5000, kind)


def test_long_values_are_cut_in_messages() -> None:
    with pytest.raises(InvalidValueError) as caught:
        coerce("x" * 100_000, LongType())
    assert len(str(caught.value)) < 300
