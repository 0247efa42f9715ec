"""Which type changes are allowed in which format version, and what old values become."""

import datetime as dt
from decimal import Decimal
from itertools import product
from typing import Any

import pytest
from hypothesis import given, strategies as st

from icefloe.errors import IncompatibleChangeError, InvalidValueError
from icefloe.schema import can_promote, coerce, promote_value, types
from icefloe.versions import ALL_VERSIONS
from tests.strategies import DAYS_MAX, DAYS_MIN

TYPES: tuple[types.IcebergType, ...] = (
    *types.PLAIN_TYPES.values(),
    types.DecimalType(9, 2),
    types.DecimalType(10, 2),
    types.DecimalType(10, 3),
    types.FixedType(4),
    types.FixedType(8),
    types.GeometryType(),
    types.GeographyType(),
    types.ListType(1, types.IntegerType()),
    types.ListType(1, types.LongType()),
    types.MapType(1, types.StringType(), 2, types.IntegerType()),
    types.StructType(types.NestedField(1, "a", types.IntegerType())),
)


def allowed(old: types.IcebergType, new: types.IcebergType, version: int) -> bool:
    """The table of the spec, word by word."""
    if old == new:
        return True
    pairs: set[tuple[types.IcebergType, types.IcebergType]]
    pairs = {
        (types.IntegerType(), types.LongType()),
        (types.FloatType(), types.DoubleType()),
        (types.DecimalType(9, 2), types.DecimalType(10, 2)),
    }
    if version in (3, 4):
        pairs |= {(types.DateType(), types.TimestampType()), (types.DateType(), types.TimestampNanoType())}
        pairs |= {(types.UnknownType(), kind) for kind in TYPES}
    return (old, new) in pairs


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_every_pair_of_types(version: int) -> None:
    for old, new in product(TYPES, TYPES):
        assert can_promote(old, new, version) is allowed(old, new, version), (old, new)


@given(st.integers(1, 38), st.integers(1, 38), st.integers(0, 38), st.integers(0, 38))
def test_decimals_grow_in_precision_only(p1: int, p2: int, s1: int, s2: int) -> None:
    old, new = types.DecimalType(p1, min(s1, p1)), types.DecimalType(p2, min(s2, p2))
    assert can_promote(old, new, 1) is (old.scale == new.scale and p1 <= p2)


@pytest.mark.parametrize(
    ("value", "old", "new", "promoted"),
    [
        (34, types.IntegerType(), types.LongType(), 34),
        (0.5, types.FloatType(), types.DoubleType(), 0.5),
        (Decimal("14.20"), types.DecimalType(4, 2), types.DecimalType(38, 2), Decimal("14.20")),
        (-1, types.DateType(), types.TimestampType(), -86_400_000_000),
        (1, types.DateType(), types.TimestampNanoType(), 86_400_000_000_000),
        (None, types.UnknownType(), types.StringType(), None),
        (None, types.DateType(), types.TimestampType(), None),
        ("a", types.StringType(), types.StringType(), "a"),
    ],
)
def test_promoted_values(value: Any, old: types.IcebergType, new: types.IcebergType, promoted: Any) -> None:
    assert promote_value(value, old, new) == promoted


@given(st.integers(DAYS_MIN, DAYS_MAX))
def test_a_date_becomes_its_midnight(days: int) -> None:
    midnight = dt.datetime(1, 1, 1) + dt.timedelta(days=days - DAYS_MIN)
    assert promote_value(days, types.DateType(), types.TimestampType()) == coerce(midnight, types.TimestampType())


@pytest.mark.parametrize(
    ("kind", "last"),
    [(types.TimestampType(), 2**63 // 86_400_000_000), (types.TimestampNanoType(), 2**63 // 86_400_000_000_000)],
)
def test_a_date_beyond_the_range_of_the_timestamp_fails(kind: types.IcebergType, last: int) -> None:
    promote_value(last, types.DateType(), kind)
    promote_value(-last, types.DateType(), kind)
    for beyond in (last + 1, -last - 1):
        with pytest.raises(InvalidValueError, match="outside the range"):
            promote_value(beyond, types.DateType(), kind)


def test_a_value_is_not_promoted_where_the_type_may_not_be() -> None:
    with pytest.raises(IncompatibleChangeError, match="long cannot be promoted to int"):
        promote_value(1, types.LongType(), types.IntegerType())
    with pytest.raises(InvalidValueError, match="only null"):
        promote_value(1, types.UnknownType(), types.IntegerType())
