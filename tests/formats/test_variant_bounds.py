"""Bounds of variants from the footers of shredded files, and paths into variants."""

import datetime as dt
import io
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st

from icefloe.errors import InvalidInputError
from icefloe.formats.metrics import DEFAULT_MODE, FULL, MetricsMode
from icefloe.formats.parquet.variant_bounds import variant_file_bounds
from icefloe.formats.variant.splitting import shred
from icefloe.variant import (
    Variant,
    VariantKind,
    VariantPrimitive,
    encode_variant_bounds,
    normalized,
    parse_path,
    variant_bound,
    variant_bounds_of,
    walk,
)
from tests.formats.test_variant_splitting import DOCUMENTS, inferred, plain


def bounds_of(
    values: list[Any], mode: MetricsMode = DEFAULT_MODE, groups: int = 2
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Lower and upper bounds, by path, of a file with these values."""
    column = plain(values)
    shredded = shred(column, inferred(column))
    file = io.BytesIO()
    pq.write_table(
        pa.table({"id": range(len(values)), "v": shredded}), file, row_group_size=max(1, -(-len(values) // groups))
    )
    footer = pq.read_metadata(pa.BufferReader(file.getvalue()))
    row_groups = [footer.row_group(index) for index in range(footer.num_row_groups)]
    lower, upper = variant_file_bounds(shredded.type, 1, row_groups, mode)
    return variant_bounds_of(lower) if lower else {}, variant_bounds_of(upper) if upper else {}


def plain_bounds(values: list[Any], mode: MetricsMode = DEFAULT_MODE) -> dict[str, tuple[Any, Any]]:
    lower, upper = bounds_of(values, mode)
    return {path: (lower[path].value, upper[path].value if path in upper else None) for path in lower}


def test_every_path_with_one_type_has_bounds() -> None:
    day = dt.date(2026, 1, 1)
    values = [
        {"a": i, "s": f"t{i}", "d": Decimal(i) / 8, "o": {"x": i * 0.5, "n": None}, "t": [i], "day": day + dt.timedelta(i), "b": i > 1}
        for i in range(4)
    ]  # fmt: skip
    days = day.toordinal() - dt.date(1970, 1, 1).toordinal()
    assert plain_bounds(values) == {
        "$['a']": (0, 3),
        "$['b']": (False, True),
        "$['d']": (Decimal("0.000"), Decimal("0.375")),
        "$['day']": (days, days + 3),
        "$['o']['x']": (0.0, 1.5),
        "$['s']": ("t0", "t3"),
    }


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 2, 300], {"$": (1, 300)}),
        ([{"a": 1}, {"a": None}, {}, ..., None, {"a": 7}], {"$['a']": (1, 7)}),
        # A value of another type is in no bound, so that there is none.
        ([{"a": 1}, {"a": "x"}, {"a": 7}], {}),
        # The root has no field, or another type, and says nothing of fields.
        ([{"a": 1}, [1], "text", {"a": 2}], {"$['a']": (1, 2)}),
        ([{"a": {"b": 1}}, {"a": 5}, {"a": {"b": 3}}], {"$['a']['b']": (1, 3)}),
        ([{"x": float("nan")}], {}),
        ([["a"], ["b"]], {}),
        ([{"a'\\\n\x01é": 1}], {"$['a\\'\\\\\\n\\u0001é']": (1, 1)}),
        ([], {}),
    ],
)
def test_bounds(values: list[Any], expected: dict[str, Any]) -> None:
    assert plain_bounds(values) == expected


def test_texts_are_cut() -> None:
    assert plain_bounds([{"s": "z" * 20}]) == {"$['s']": ("z" * 16, "z" * 15 + "{")}
    assert plain_bounds([{"s": "z" * 20}], FULL) == {"$['s']": ("z" * 20, "z" * 20)}
    assert plain_bounds([{"s": "\U0010ffff" * 20}]) == {"$['s']": ("\U0010ffff" * 16, None)}


@settings(max_examples=100)
@given(values=st.lists(st.one_of(st.just(...), DOCUMENTS), min_size=1, max_size=12))
def test_bounds_hold_every_value(values: list[Any]) -> None:
    lower, upper = bounds_of(values)
    for value in values:
        if value is ...:
            continue
        leaves = walk(Variant(*plain([value])[0].as_py().values()), lambda leaf: leaf)
        for path in lower.keys() | upper.keys():
            found = leaves
            for name in parse_path(path):
                found = found.get(name) if isinstance(found, dict) else None
            if found is None or found.kind is VariantKind.NULL or found.value != found.value:
                continue
            assert path not in lower or lower[path].value <= found.value
            assert path not in upper or found.value <= upper[path].value


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("$", ()),
        ("$.a.b", ("a", "b")),
        ("$['a']['b c']", ("a", "b c")),
        ('$.a["b"]', ("a", "b")),
        ("$['it\\'s'].é_1", ("it's", "é_1")),
        ("$['\\u0041\\n']", ("A\n",)),
    ],
)
def test_paths(text: str, names: tuple[str, ...]) -> None:
    assert parse_path(text) == names
    assert parse_path(normalized(names)) == names


@given(names=st.lists(st.text(max_size=5), max_size=4))
def test_every_path_has_a_normalized_text(names: list[str]) -> None:
    assert parse_path(normalized(tuple(names))) == tuple(names)


@pytest.mark.parametrize("text", ["", "a", "$a", "$.", "$[0]", "$..a", "$.*", "$['a'", "$.a b", "$.1"])
def test_paths_that_lead_to_no_field_are_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="path"):
        parse_path(text)


def test_bytes_that_are_no_bounds_bound_nothing() -> None:
    good = encode_variant_bounds({"$['a']": VariantPrimitive(VariantKind.INT8, 5)})
    assert variant_bound(good, "$['a']") == VariantPrimitive(VariantKind.INT8, 5)
    assert variant_bound(good, "$['b']") is None
    for size in range(len(good)):
        assert variant_bound(good[:size], "$['a']") is None
    assert variant_bound(b"\x01\x00\x00\x0c\x05", "$") is None
