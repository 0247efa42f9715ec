"""Single values in JSON: the examples of the spec, round trips, and what is refused."""

import json
import math
import uuid
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import assume, given, strategies as st

from icefloe.errors import InvalidValueError
from icefloe.schema import IcebergType, NestedField, StructType, value_from_json, value_to_json
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
from icefloe.schema.wkb import wkt_to_wkb
from tests.strategies import types, values_of

PAIR = StructType(NestedField(1, "a", IntegerType(), required=True), NestedField(2, "b", StringType()))
MAP = MapType(1, StringType(), 2, IntegerType())
EVENING = 1510871468_000000  # 2017-11-16T22:31:08
EXAMPLES: list[tuple[IcebergType, Any, Any]] = [
    (BooleanType(), True, True),
    (IntegerType(), 34, 34),
    (LongType(), 34, 34),
    (FloatType(), 1.0, 1.0),
    (FloatType(), 1.2300000190734863, 1.23),
    (DoubleType(), 1.0, 1.0),
    (DecimalType(4, 2), Decimal("14.20"), "14.20"),
    (DecimalType(9, 0), Decimal("2"), "2"),
    (DecimalType(9, 9), Decimal("0E-9"), "0.000000000"),
    (DateType(), 17486, "2017-11-16"),
    (TimeType(), 81068123456, "22:31:08.123456"),
    (TimeType(), 36930000000, "10:15:30"),
    (TimestampType(), EVENING + 123456, "2017-11-16T22:31:08.123456"),
    (TimestamptzType(), EVENING + 123456, "2017-11-16T22:31:08.123456+00:00"),
    (TimestampNanoType(), EVENING * 1000 + 123456789, "2017-11-16T22:31:08.123456789"),
    (TimestamptzNanoType(), EVENING * 1000 + 123456789, "2017-11-16T22:31:08.123456789+00:00"),
    (StringType(), "iceberg", "iceberg"),
    (
        UUIDType(),
        uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7"),
        "f79c3e09-677c-4bbd-a479-3f349cb785e7",
    ),
    (FixedType(4), b"\x00\x01\x02\xff", "000102ff"),
    (BinaryType(), b"\x00\x01\x02\xff", "000102ff"),
    (PAIR, ((1, 1), (2, "bar")), {"1": 1, "2": "bar"}),
    (PAIR, (), {}),
    (PAIR, ((1, 1), (2, None)), {"1": 1, "2": None}),
    (ListType(1, IntegerType()), (1, 2, 3), [1, 2, 3]),
    (MAP, (("a", 1), ("b", 2)), {"keys": ["a", "b"], "values": [1, 2]}),
    (ListType(3, PAIR), (((1, 1), (2, "bar")), ()), [{"1": 1, "2": "bar"}, {}]),
    (GeometryType(), wkt_to_wkb("POINT (30 10)"), "POINT (30 10)"),
    (GeographyType(), wkt_to_wkb("POINT (30 10)"), "POINT (30 10)"),
    (IntegerType(), None, None),
    (UnknownType(), None, None),
    (VariantType(), None, None),
]


@pytest.mark.parametrize(("kind", "value", "form"), EXAMPLES)
def test_examples(kind: IcebergType, value: Any, form: Any) -> None:
    assert value_to_json(value, kind) == form
    assert type(value_to_json(value, kind)) is type(form)
    found = value_from_json(form, kind)
    assert repr(found) == repr(value)


def has_form(kind: IcebergType) -> bool:
    inner = walk_fields(kind.fields) if isinstance(kind, NestedType) else ()
    return not any(isinstance(k, VariantType) for k in (kind, *(field.field_type for field in inner)))


@given(types().filter(has_form).flatmap(lambda kind: st.tuples(st.just(kind), values_of(kind))))
def test_values_round_trip_through_json_text(pair: tuple[IcebergType, Any]) -> None:
    kind, value = pair
    assume("nan" not in repr(value))
    assume("inf" not in repr(value))
    text = json.dumps(value_to_json(value, kind), allow_nan=False)
    assert repr(value_from_json(json.loads(text), kind)) == repr(value)


@pytest.mark.parametrize(
    ("form", "kind", "value"),
    [
        (1, DoubleType(), 1.0),
        ("F79C3E09-677C-4BBD-A479-3F349CB785E7", UUIDType(), uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")),
        ("000102FF", BinaryType(), b"\x00\x01\x02\xff"),
        ("2007-12-03T10:15", TimestampType(), 1196676900000000),
        ("2007-12-03T10:15:30Z", TimestamptzType(), 1196676930000000),
        ("1420E-2", DecimalType(9, 2), Decimal("14.20")),
    ],
)
def test_what_other_writers_may_say(form: Any, kind: IcebergType, value: Any) -> None:
    assert value_from_json(form, kind) == value


@pytest.mark.parametrize(
    ("form", "kind"),
    [
        (1, BooleanType()),
        ("true", BooleanType()),
        (1.0, IntegerType()),
        (True, IntegerType()),
        ("1", IntegerType()),
        (2**31, IntegerType()),
        (2**63, LongType()),
        (True, FloatType()),
        ("1.0", DoubleType()),
        (1e39, FloatType()),
        (math.nan, DoubleType()),
        (math.inf, DoubleType()),
        (123.45, DecimalType(5, 2)),
        ("123.456", DecimalType(5, 2)),
        ("123.4", DecimalType(5, 2)),
        ("1234.50", DecimalType(5, 2)),
        ("2E+20", DecimalType(38, 0)),
        ("NaN", DecimalType(5, 2)),
        (" 1.00", DecimalType(5, 2)),
        (17486, DateType()),
        ("2017-11-31", DateType()),
        ("2017-11-16T00:00:00", DateType()),
        (5, TimeType()),
        ("22:31:08.1234567", TimeType()),
        ("2017-11-16", TimestampType()),
        ("2017-11-16 22:31:08", TimestampType()),
        ("2017-11-16T22:31:08+00:00", TimestampType()),
        ("2017-11-16T22:31:08.0000001", TimestampType()),
        (EVENING, TimestampType()),
        ("2007-12-03T10:15:30", TimestamptzType()),
        ("2007-12-03T10:15:30+01:00", TimestamptzType()),
        ("2007-12-03T10:15:30+01:00", TimestamptzNanoType()),
        ("2500-12-03T10:15:30", TimestampNanoType()),
        (5, StringType()),
        ("\udc00", StringType()),
        ("eb26bdb1-a1d8-4aa6-990e-da940875492c-abcde", UUIDType()),
        ("eb26bdb1a1d84aa6990eda940875492c", UUIDType()),
        ("111ff", FixedType(2)),
        ("1111ff", FixedType(2)),
        ("11 1f", BinaryType()),
        (b"\x00", BinaryType()),
        ([1], PAIR),
        ({"a": 1}, PAIR),
        ({"3": 1}, PAIR),
        ({1: 1}, PAIR),
        ({"1": None}, PAIR),
        ({"1": "x"}, PAIR),
        ({"0": 1}, ListType(1, IntegerType())),
        ([None], ListType(1, IntegerType())),
        ([1, "2"], ListType(1, IntegerType())),
        ([], MAP),
        ({"a": 1}, MAP),
        ({"keys": ["a"]}, MAP),
        ({"keys": ["a"], "values": []}, MAP),
        ({"keys": "a", "values": [1]}, MAP),
        ({"keys": ["a"], "values": [1], "more": 1}, MAP),
        ({"keys": ["a", "a"], "values": [1, 2]}, MAP),
        ({"keys": [None], "values": [1]}, MAP),
        ({"keys": ["a"], "values": [None]}, MAP),
        ("POINT 30 10", GeometryType()),
        ({"type": "Point"}, GeographyType()),
        (1, UnknownType()),
        ("x", UnknownType()),
        ({}, VariantType()),
        ("x", VariantType()),
    ],
)
def test_bad_json_is_refused(form: Any, kind: IcebergType) -> None:
    with pytest.raises(InvalidValueError):
        value_from_json(form, kind)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (math.nan, DoubleType()),
        (math.inf, FloatType()),
        ("x", IntegerType()),
        ((1.0, -math.inf), ListType(1, DoubleType())),
        (((9, 1),), PAIR),
        (1, UnknownType()),
        (b"", VariantType()),
        (b"\x01", GeometryType()),
    ],
)
def test_values_without_a_json_form_are_refused(value: Any, kind: IcebergType) -> None:
    with pytest.raises(InvalidValueError):
        value_to_json(value, kind)
