"""Hypothesis strategies for variants: Python values of every type that a variant holds, nested."""

from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

from hypothesis import strategies as st

from icefloe.variant.values import VariantKind, VariantPrimitive

LONGS = st.integers(-(2**63), 2**63 - 1)
NAMES = st.one_of(st.sampled_from(["a", "b", "c", "id", "é", "z" * 70, ""]), st.text(max_size=6))
EXACT_DECIMALS = st.builds(
    lambda unscaled, scale: Decimal(f"{unscaled}E-{scale}"), st.integers(1 - 10**38, 10**38 - 1), st.integers(0, 38)
)


def _shortened(kind: VariantKind, values: st.SearchStrategy[Any]) -> st.SearchStrategy[VariantPrimitive]:
    return st.builds(VariantPrimitive, st.just(kind), values)


TYPED = st.one_of(
    _shortened(VariantKind.INT64, LONGS),
    _shortened(VariantKind.INT32, st.integers(-(2**31), 2**31 - 1)),
    _shortened(VariantKind.FLOAT, st.floats(width=32)),
    _shortened(VariantKind.DECIMAL16, EXACT_DECIMALS),
    _shortened(VariantKind.DATE, st.integers(-(2**31), 2**31 - 1)),
    _shortened(VariantKind.TIME, LONGS),
    _shortened(VariantKind.TIMESTAMP, LONGS),
    _shortened(VariantKind.TIMESTAMPTZ, LONGS),
    _shortened(VariantKind.TIMESTAMP_NANOS, LONGS),
    _shortened(VariantKind.TIMESTAMPTZ_NANOS, LONGS),
)
"""Primitives whose type Python's own objects do not tell."""

NATURAL = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-130, 130),
    LONGS,
    st.integers(1 - 10**38, 10**38 - 1),
    st.floats(),
    EXACT_DECIMALS,
    st.text(max_size=80),
    st.binary(max_size=80),
    st.dates(date.min, date.max),
    st.datetimes(datetime.min, datetime.max),
    st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1), timezones=st.just(UTC)),
    st.times(time.min, time.max),
    st.uuids().map(lambda found: UUID(bytes=found.bytes)),
)


def variant_values(leaves: st.SearchStrategy[Any] = NATURAL, max_leaves: int = 12) -> st.SearchStrategy[Any]:
    """Values with lists and dicts inside."""
    return st.recursive(
        leaves,
        lambda inner: st.one_of(st.lists(inner, max_size=5), st.dictionaries(NAMES, inner, max_size=5)),
        max_leaves=max_leaves,
    )


JSON_NUMBERS = st.one_of(LONGS, EXACT_DECIMALS, st.floats(allow_nan=False, allow_infinity=False))
JSON_VALUES = variant_values(st.one_of(st.none(), st.booleans(), JSON_NUMBERS, st.text(max_size=10)))
