"""Variants written in shredded form: what goes where, and that every variant means the same afterwards."""

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from icefloe.errors import InvalidValueError
from icefloe.formats.variant.inference import infer_form
from icefloe.formats.variant.shredding import unshred
from icefloe.formats.variant.splitting import ShreddedForm, shred
from icefloe.schema import VARIANT_STORAGE
from icefloe.variant.reading import decode
from icefloe.variant.values import Variant, VariantKind, VariantPrimitive
from icefloe.variant.writing import encode, encode_dictionary, encode_primitive
from tests.formats.test_variant_shredding import SHREDDINGS, assert_same
from tests.formats.variant_strategies import NATURAL, TYPED, variant_values

VALUES = st.lists(st.one_of(st.just(...), variant_values(st.one_of(NATURAL, TYPED))), min_size=1, max_size=8)
DOCUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "id": st.one_of(st.integers(-300, 300), st.integers(-(2**70), 2**70)),
        "price": st.one_of(st.integers(-5, 5), st.decimals(-100, 100, places=2), st.decimals(0, 1, places=5)),
        "name": st.one_of(st.text(max_size=5), st.none(), st.text(min_size=64, max_size=70)),
        "tags": st.lists(st.one_of(st.text(max_size=3), st.none(), st.integers(0, 9)), max_size=3),
        "deep": st.fixed_dictionaries({"x": st.floats()}, optional={"y": NATURAL}),
        "any": variant_values(max_leaves=4),
    },
)
"""Objects as tables of events have them: mostly alike, with odd ones among them."""


def plain(values: list[Any]) -> Any:
    encoded = [None if value is ... else encode(value) for value in values]
    rows = [None if each is None else {"metadata": each.metadata, "value": each.value} for each in encoded]
    return pa.array(rows, VARIANT_STORAGE)


def form_of(shredding: Any) -> ShreddedForm:
    match shredding:
        case None:
            return ShreddedForm()
        case dict():
            return ShreddedForm(fields={name: form_of(inner) for name, inner in shredding.items()})
        case [inner]:
            return ShreddedForm(element=form_of(inner))
        case _:
            return ShreddedForm(primitive=shredding)


def inferred(column: Any) -> ShreddedForm:
    return infer_form(Variant(**row) for row in column.to_pylist() if row is not None)


def typed_column(*values: Any) -> Any:
    """The typed values of a column that is shredded by its own values."""
    column = plain(list(values))
    shredded = shred(column, inferred(column))
    shredded.validate(full=True)
    return shredded


@pytest.mark.parametrize("shredding", SHREDDINGS, ids=str)
@settings(max_examples=40)
@given(values=VALUES)
def test_every_form_holds_every_variant(shredding: Any, values: list[Any]) -> None:
    column = plain(values)
    shredded = shred(column, form_of(shredding))
    shredded.validate(full=True)
    assert_same(unshred(shredded, "file"), values)
    assert_same(unshred(shred(column.slice(1), form_of(shredding)), "file"), values[1:])


@settings(max_examples=150)
@given(values=st.one_of(VALUES, st.lists(st.one_of(st.just(...), DOCUMENTS), min_size=1, max_size=20)))
def test_a_form_from_the_rows_holds_them_and_others(values: list[Any]) -> None:
    column = plain(values)
    for sample in (column, column.slice(0, 2)):
        assert_same(unshred(shred(column, inferred(sample)), "file"), values)


def test_the_commonest_type_is_chosen_and_the_rest_stays() -> None:
    shredded = typed_column({"a": 1}, {"a": 300}, {"a": "x"}, {"a": None}, [1], {})
    kind = pa.struct([pa.field("a", pa.struct([("value", pa.binary()), ("typed_value", pa.int64())]), False)])
    assert shredded.type.field("typed_value").type == kind
    rows = shredded.to_pylist()
    assert [row["typed_value"] and row["typed_value"]["a"]["typed_value"] for row in rows] == [
        1,
        300,
        None,
        None,
        None,
        None,
    ]
    assert [row["typed_value"] is None for row in rows] == [False] * 4 + [True, False]
    assert [row["typed_value"] and row["typed_value"]["a"]["value"] for row in rows] == [
        None, None, encode_primitive("x"), b"\0", None, None,
    ]  # fmt: skip
    assert [row["value"] is None for row in rows] == [True] * 4 + [False, True]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 300, 2**40], pa.int64()),
        ([1, Decimal("1.5"), Decimal("10.25")], pa.decimal128(9, 2)),
        ([2**40, Decimal("0.5")], pa.decimal128(18, 1)),
        ([10**30, Decimal("0.5")], pa.decimal128(38, 1)),
        ([True, False, 1], pa.bool_()),
        ([1.5, 2.5], pa.float64()),
        (["a", "b" * 100], pa.string()),
        ([VariantPrimitive(VariantKind.TIMESTAMPTZ, 5)], pa.timestamp("us", "UTC")),
    ],
)
def test_types_of_typed_columns(values: list[Any], expected: Any) -> None:
    shredded = typed_column(*values)
    assert shredded.type.field("typed_value").type == expected
    assert shredded.field("typed_value").null_count == sum(
        isinstance(value, int) for value in values[2:] if expected == pa.bool_()
    )
    assert_same(unshred(shredded, "file"), values)


def test_fields_that_few_rows_have_are_not_shredded() -> None:
    column = plain([{"often": 1} | ({"rare": 2} if row == 0 else {}) for row in range(11)])
    assert inferred(column) == form_of({"often": pa.int64()})
    assert inferred(column.slice(0, 10)) == form_of({"often": pa.int64(), "rare": pa.int64()})


def test_the_most_fields_are_the_commonest() -> None:
    rows = [{f"f{number:03}": 1 for number in range(400) if number >= 350 or row % 2} for row in range(10)]
    found = inferred(plain(rows)).fields
    assert found is not None
    assert list(found) == sorted(found)
    assert len(found) == 300
    assert all(f"f{number}" in found for number in range(350, 400))


@pytest.mark.parametrize("value", [None, {}, [], [None], {"a": None}])
def test_nothing_to_shred(value: Any) -> None:
    assert inferred(plain([value, ...])).is_empty


def test_objects_that_share_a_value_are_shredded() -> None:
    metadata, _ = encode_dictionary(["a", "b"])
    shared = Variant(metadata, bytes([0b10, 2, 0, 1, 0, 0, 2, 0x0C, 7]))
    assert decode(shared) == {"a": 7, "b": 7}
    column = pa.array([{"metadata": shared.metadata, "value": shared.value}], VARIANT_STORAGE)
    found = shred(column, form_of({"a": pa.int64()}))
    assert_same(unshred(found, "file"), [{"a": 7, "b": 7}])


@pytest.mark.parametrize("value", [b"", b"\x02\x05", b"\x0c", b"\x41\x01", b"\x05\xff", b"\x03\x01\x05"])
def test_bytes_that_mean_nothing_are_refused(value: bytes) -> None:
    column = pa.array([{"metadata": b"\x01\x00\x00", "value": value}], VARIANT_STORAGE)
    for form in (form_of({"a": pa.int64()}), form_of([pa.int64()]), form_of(pa.int64()), form_of(pa.string())):
        try:
            found = shred(column, form)
        except InvalidValueError:
            continue
        # What the form does not look into is passed on as it is.
        assert found.field("value").to_pylist() == [value]


@given(value=st.binary(max_size=30), names=st.lists(st.sampled_from("abc"), unique=True))
def test_any_bytes_are_refused_or_kept(value: bytes, names: list[str]) -> None:
    metadata, _ = encode_dictionary(names)
    column = pa.array([{"metadata": metadata, "value": value}], VARIANT_STORAGE)
    try:
        expected: Any = decode(Variant(metadata, value))
        # A time beyond the end of a day is read, and is not written again.
        encode(expected)
    except InvalidValueError:
        expected = ...
    for form in (form_of({"a": pa.int64(), "b": [pa.string()]}), form_of([pa.int64()])):
        try:
            found = shred(column, form)
        except InvalidValueError:
            assert expected is ..., expected
            continue
        if expected is not ...:
            assert_same(unshred(found, "file"), [expected])
