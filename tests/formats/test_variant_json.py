"""JSON text to variants and back: which numbers are exact, and how types that JSON lacks are written."""

import json
import math
from contextlib import suppress
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given, strategies as st

from icefloe.errors import InvalidValueError
from icefloe.variant.reading import walk
from icefloe.variant.values import VariantKind, VariantPrimitive
from icefloe.variant.writing import encode
from tests.formats.variant_json import parse_json, same_meaning, to_json
from tests.formats.variant_strategies import JSON_VALUES, NATURAL, TYPED, variant_values


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("1", VariantKind.INT8, 1),
        ("-0", VariantKind.INT8, 0),
        ("300", VariantKind.INT16, 300),
        ("9223372036854775807", VariantKind.INT64, 2**63 - 1),
        ("9223372036854775808", VariantKind.DECIMAL16, Decimal(2**63)),
        ("9" * 38, VariantKind.DECIMAL16, Decimal("9" * 38)),
        ("1" + "0" * 38, VariantKind.DOUBLE, 1e38),
        ("1" * 5000, VariantKind.DOUBLE, math.inf),
        ("1.10", VariantKind.DECIMAL4, Decimal("1.10")),
        ("-0.0", VariantKind.DECIMAL4, Decimal("0.0")),
        ("1234567890.5", VariantKind.DECIMAL8, Decimal("1234567890.5")),
        ("0.000000001", VariantKind.DECIMAL4, Decimal("1E-9")),
        ("0.0000000001", VariantKind.DECIMAL8, Decimal("1E-10")),
        ("0." + "0" * 37 + "1", VariantKind.DECIMAL16, Decimal("1E-38")),
        ("0." + "0" * 38 + "1", VariantKind.DOUBLE, 1e-39),
        ("1." + "1" * 38, VariantKind.DOUBLE, float("1." + "1" * 38)),
        ("1e2", VariantKind.DOUBLE, 100.0),
        ("1E-2", VariantKind.DOUBLE, 0.01),
        ("1.5e0", VariantKind.DOUBLE, 1.5),
        ("1e999", VariantKind.DOUBLE, math.inf),
        ("true", VariantKind.TRUE, True),
        ("null", VariantKind.NULL, None),
        ('"2025-04-16"', VariantKind.STRING, "2025-04-16"),
    ],
)
def test_texts_become_these_types(text: str, kind: VariantKind, value: Any) -> None:
    for form in (text, text.encode(), f" {text}\n"):
        found = walk(parse_json(form), lambda primitive: primitive)
        assert (found.kind, found.value) == (kind, value)


@given(JSON_VALUES)
def test_json_comes_back(value: Any) -> None:
    text = to_json(encode(value))
    again = to_json(parse_json(text))
    assert to_json(parse_json(again)) == again
    assert _with_floats(json.loads(text)) == _with_floats(json.loads(again)) == _with_floats(value)


@given(variant_values(st.one_of(st.none(), st.booleans(), st.integers(1 - 10**38, 10**38 - 1), st.text(max_size=9))))
def test_exact_json_keeps_its_meaning(value: Any) -> None:
    assert same_meaning(parse_json(to_json(encode(value))), encode(value))


@given(variant_values(st.one_of(NATURAL, TYPED)))
def test_every_type_becomes_json_that_can_be_read(value: Any) -> None:
    text = to_json(encode(value))
    json.loads(text)
    parse_json(text)


def _with_floats(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _with_floats(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_with_floats(inner) for inner in value]
    return float(value) if isinstance(value, int | float | Decimal) and not isinstance(value, bool) else value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Decimal("12.30"), "12.30"),
        (Decimal("1E-10"), "0.0000000001"),
        (1.5, "1.5"),
        (1e300, "1e+300"),
        (math.nan, '"NaN"'),
        (math.inf, '"Infinity"'),
        (-math.inf, '"-Infinity"'),
        (VariantPrimitive(VariantKind.FLOAT, float(np.float32(0.1))), "0.1"),
        (VariantPrimitive(VariantKind.FLOAT, math.nan), '"NaN"'),
        (date(2025, 4, 16), '"2025-04-16"'),
        (VariantPrimitive(VariantKind.DATE, 2_932_897), '"+10000-01-01"'),
        (time(12, 33, 54, 120000), '"12:33:54.12"'),
        (datetime(2025, 4, 16, 12, 34, 56, 780000), '"2025-04-16 12:34:56.78"'),
        (datetime(2025, 4, 16, 12, 0, tzinfo=UTC), '"2025-04-16 12:00:00+00:00"'),
        (VariantPrimitive(VariantKind.TIMESTAMP_NANOS, 1), '"1970-01-01 00:00:00.000000001"'),
        (VariantPrimitive(VariantKind.TIMESTAMPTZ_NANOS, -1), '"1969-12-31 23:59:59.999999999+00:00"'),
        (b"\x00\xff", '"AP8="'),
        (UUID(int=5), '"00000000-0000-0000-0000-000000000005"'),
        ('a"\\\n\x00é', '"a\\"\\\\\\n\\u0000é"'),
        ({"b": [1, {}, []], "a": None}, '{"a":null,"b":[1,{},[]]}'),
    ],
)
def test_values_have_this_text(value: Any, text: str) -> None:
    assert to_json(encode(value)) == text


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_floats_of_32_bits_are_written_exactly(value: float) -> None:
    text = to_json(encode(VariantPrimitive(VariantKind.FLOAT, value)))
    assert np.float32(float(text)) == np.float32(value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nul",
        "{",
        "[1,]",
        "01",
        "NaN",
        "[Infinity]",
        "-Infinity",
        '{"a":1,"a":2}',
        '"\\ud800"',
        "'a'",
        b"\xff",
        b"\xff\xfe1\0",
    ],
)
def test_texts_that_are_not_json_are_refused(text: str | bytes) -> None:
    with pytest.raises(InvalidValueError):
        parse_json(text)


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "[" * 100_000 + "]" * 100_000, '{"a":' * 100_000 + "1" + "}" * 100_000]
)
def test_texts_that_are_nested_too_deep_are_refused(text: str) -> None:
    with pytest.raises(InvalidValueError):
        parse_json(text)


@given(st.one_of(st.text(max_size=30), st.text(alphabet='{}[],:"\\ 0123456789.eE-+truefalsn', max_size=12)))
def test_any_text_is_the_variant_that_it_says_or_refused(text: str) -> None:
    with suppress(InvalidValueError):
        found = to_json(parse_json(text))
        assert _with_floats(json.loads(found)) == _with_floats(json.loads(text))
