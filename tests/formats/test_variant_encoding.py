"""Variants as bytes: golden pairs, round trips through Python objects, equality, and bytes that mean harm."""

import json
import math
import pickle
import re
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, strategies as st

from icefloe.errors import InvalidValueError
from icefloe.variant.reading import decode, read_dictionary, read_elements, walk
from icefloe.variant.values import EMPTY_METADATA, MAX_DEPTH, Variant, VariantKind, VariantPrimitive
from icefloe.variant.writing import encode, encode_array, encode_dictionary, encode_primitive
from tests.formats.variant_json import same_meaning, to_json
from tests.formats.variant_strategies import NATURAL, TYPED, variant_values
from tests.golden import golden

NOT_JSON = {
    # What JSON cannot say of a golden value, and the one whose text in the dictionary is not ISO.
    "primitive_binary": bytes.fromhex("031337deadbeefcafe"),
    "primitive_date": date(2025, 4, 16),
    "primitive_time": time(12, 33, 54, 123456),
    "primitive_timestamp": datetime(2025, 4, 16, 12, 34, 56, 780000, timezone(timedelta(hours=-4))),
    "primitive_timestampntz": datetime(2025, 4, 16, 12, 34, 56, 780000),
    "primitive_timestamp_nanos": VariantPrimitive(VariantKind.TIMESTAMPTZ_NANOS, 1730982834123456789),
    "primitive_timestampntz_nanos": VariantPrimitive(VariantKind.TIMESTAMP_NANOS, 1730982834123456789),
    "primitive_uuid": UUID("f24f9b64-81fa-49d1-b74e-8c09a6e31c56"),
    "primitive_decimal4": Decimal("12.34"),
    "primitive_decimal8": Decimal("12345678.90"),
    "primitive_decimal16": Decimal("12345678912345678.90"),
    "primitive_float": 1234567936.0,
}
KINDS = {
    "primitive_null": VariantKind.NULL,
    "primitive_boolean_true": VariantKind.TRUE,
    "primitive_boolean_false": VariantKind.FALSE,
    "primitive_int8": VariantKind.INT8,
    "primitive_int16": VariantKind.INT16,
    "primitive_int32": VariantKind.INT32,
    "primitive_int64": VariantKind.INT64,
    "primitive_double": VariantKind.DOUBLE,
    "primitive_decimal4": VariantKind.DECIMAL4,
    "primitive_decimal8": VariantKind.DECIMAL8,
    "primitive_decimal16": VariantKind.DECIMAL16,
    "primitive_date": VariantKind.DATE,
    "primitive_timestamp": VariantKind.TIMESTAMPTZ,
    "primitive_timestampntz": VariantKind.TIMESTAMP,
    "primitive_float": VariantKind.FLOAT,
    "primitive_binary": VariantKind.BINARY,
    "primitive_string": VariantKind.STRING,
    "primitive_time": VariantKind.TIME,
    "primitive_timestamp_nanos": VariantKind.TIMESTAMPTZ_NANOS,
    "primitive_timestampntz_nanos": VariantKind.TIMESTAMP_NANOS,
    "primitive_uuid": VariantKind.UUID,
}


def golden_variants() -> dict[str, Variant]:
    folder = golden("variant")
    return {
        path.stem: Variant(path.read_bytes(), path.with_suffix(".value").read_bytes())
        for path in sorted(folder.glob("*.metadata"))
    }


def golden_contents() -> dict[str, Any]:
    text = (golden("variant") / "data_dictionary.json").read_text()
    contents: dict[str, Any] = json.loads(re.sub(r",\s*}\s*$", "}", text))  # it ends in a comma too many
    return contents | NOT_JSON


def same_floats(left: Any, right: Any) -> bool:
    """Equality of nested values in which NaN equals NaN."""
    if isinstance(left, float) and isinstance(right, float):
        return left == right or (math.isnan(left) and math.isnan(right))
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same_floats, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same_floats(left[key], right[key]) for key in left)
    return type(left) is type(right) and bool(left == right)


def test_golden_pairs_hold_what_the_dictionary_says() -> None:
    variants, contents = golden_variants(), golden_contents()
    assert set(contents) <= set(variants)
    for name, content in contents.items():
        found = decode(variants[name])
        if name == "object_primitive":
            found["double_field"] = float(found["double_field"])  # Spark made a decimal of the JSON number
        assert found == content, name
    for name, kind in KINDS.items():
        primitive = walk(variants[name], lambda found: found)
        assert primitive.kind is kind
    assert set(KINDS.values()) == set(VariantKind)


def test_golden_values_are_written_to_the_same_bytes() -> None:
    for name, variant in golden_variants().items():
        again = encode(walk(variant, lambda primitive: primitive))
        assert same_meaning(again, variant), name
        assert len(again.value) == len(variant.value), name
        if variant.metadata == EMPTY_METADATA:
            assert again == variant, name


@given(variant_values())
def test_python_values_come_back(value: Any) -> None:
    variant = encode(value)
    expected = value
    found = decode(variant)
    assert same_floats(_plain(found), _plain(expected))
    assert pickle.loads(pickle.dumps(variant)) == variant
    assert same_meaning(variant, encode(found))


def _plain(value: Any) -> Any:
    """Integers beyond 64 bits come back as decimals of the same number."""
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**63:
        return Decimal(value)
    return value


@given(st.one_of(NATURAL, TYPED), st.one_of(NATURAL, TYPED))
def test_primitives_keep_their_type_and_are_equal_only_to_their_like(left: Any, right: Any) -> None:
    variants = encode(left), encode(right)
    kinds = [walk(variant, lambda primitive: primitive) for variant in variants]
    if isinstance(left, VariantPrimitive):
        assert kinds[0].kind is left.kind
    numbers = [isinstance(kind.value, int | Decimal) and kind.kind in range(3, 11) for kind in kinds]
    if all(numbers):
        assert same_meaning(*variants) == (kinds[0].value == kinds[1].value)
    elif kinds[0].kind is not kinds[1].kind:
        assert not same_meaning(*variants)
    assert same_meaning(variants[0], variants[0])
    assert encode_primitive(kinds[0]) == variants[0].value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "00"),
        (True, "04"),
        (False, "08"),
        (0, "0c00"),
        (-128, "0c80"),
        (128, "108000"),
        (-(2**15), "100080"),
        (2**15, "1400800000"),
        (2**31, "180000008000000000"),
        (2**63, "2800" + "0000000000000080" + "00" * 8),
        (1.0, "1c000000000000f03f"),
        (Decimal("-1.5"), "2001f1ffffff"),
        (Decimal("1E+3"), "2000e8030000"),
        (Decimal("0E+50"), "200000000000"),
        (Decimal("9999999999"), "2400ffe30b5402000000"),
        (date(1970, 1, 2), "2c01000000"),
        (datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), "3040420f0000000000"),
        (datetime(1969, 12, 31, 23, 59, 59, 999999), "34ffffffffffffffff"),
        (VariantPrimitive(VariantKind.FLOAT, 1.0), "380000803f"),
        (b"\x01\x02", "3c020000000102"),
        ("", "01"),
        ("é", "09c3a9"),
        ("x" * 63, "fd" + "78" * 63),
        ("x" * 64, "4040000000" + "78" * 64),
        (time(0, 0, 1), "4440420f0000000000"),
        (VariantPrimitive(VariantKind.TIMESTAMPTZ_NANOS, 5), "480500000000000000"),
        (VariantPrimitive(VariantKind.TIMESTAMP_NANOS, 5), "4c0500000000000000"),
        (UUID("00112233-4455-6677-8899-aabbccddeeff"), "5000112233445566778899aabbccddeeff"),
        ([], "030000"),
        ([None, True], "030200010200" + "04"),
        ({}, "020000"),
    ],
)
def test_values_have_these_bytes(value: Any, text: str) -> None:
    assert encode(value) == Variant(EMPTY_METADATA, bytes.fromhex(text))


def test_names_are_sorted_by_their_bytes_and_stored_once() -> None:
    variant = encode({"b": 1, "a": {"b": None}, "\U0001f600": 2, "\uffff": 3})
    assert variant.metadata == bytes.fromhex("11 04 00 01 02 05 09 61 62 efbfbf f09f9880")
    assert list(decode(variant)) == ["a", "b", "\uffff", "\U0001f600"]
    assert variant.value == bytes.fromhex("02 04 00010203 00 06 08 0a 0c02 01 01 00 01 000c010c030c02")


@pytest.mark.parametrize("count", [0, 1, 255, 256, 70_000])
def test_containers_of_every_size_come_back(count: int) -> None:
    values = list(range(count))
    assert decode(encode(values)) == values
    fields = {f"name{value}": value for value in values}
    assert decode(encode(fields)) == fields


def test_wide_tables_come_back() -> None:
    value = {"long": "x" * 70_000, "longer": ["y" * 17_000_000, 1], "last": None}
    assert decode(encode(value)) == value


def test_values_may_be_stored_in_any_order_and_shared() -> None:
    metadata, _ = encode_dictionary(["a", "b", "c"])
    backwards = bytes.fromhex("02 03 000102 04 02 00 06 0c03 0c02 0c01")
    assert decode(Variant(metadata, backwards)) == {"a": 1, "b": 2, "c": 3}
    shared = bytes.fromhex("02 03 000102 00 00 00 02 0c07")
    assert decode(Variant(metadata, shared)) == {"a": 7, "b": 7, "c": 7}


def test_a_dictionary_that_only_claims_to_be_sorted_is_read() -> None:
    # DuckDB writes a name once for each place where it stands, and sets the flag all the same.
    metadata = bytes.fromhex("11 03 00 01 02 03 62 61 62")
    value = bytes.fromhex("02 02 01 02 00 02 04 0c01 0c02")
    assert decode(Variant(metadata, value)) == {"a": 1, "b": 2}


def test_the_short_form_of_the_empty_dictionary_is_read() -> None:
    assert decode(Variant(b"\x01\x00", b"\x0c\x05")) == 5
    assert read_dictionary(EMPTY_METADATA).names == ()


def test_larger_widths_than_needed_are_read() -> None:
    metadata = bytes.fromhex("c1 01000000 00000000 01000000 61")
    value = bytes.fromhex("7e 01000000 00000000 00000000 02000000 0c05")
    assert decode(Variant(metadata, value)) == {"a": 5}
    assert decode(Variant(metadata, bytes.fromhex("1f 01000000 00000000 02000000 0c05"))) == [5]


@pytest.mark.parametrize(
    "value",
    [
        object(),
        {1: 2},
        {"\ud800": 1},
        "\ud800",
        10**38,
        -(10**38),
        Decimal("NaN"),
        Decimal("Infinity"),
        Decimal("1E-39"),
        Decimal("1E+38"),
        Decimal("1." + "1" * 38),
        time(1, tzinfo=UTC),
        {1, 2},
        1j,
        VariantPrimitive(VariantKind.INT8, 128),
        VariantPrimitive(VariantKind.INT8, True),
        VariantPrimitive(VariantKind.INT64, "1"),
        VariantPrimitive(VariantKind.DECIMAL4, Decimal(10**9)),
        VariantPrimitive(VariantKind.DECIMAL4, 1.5),
        VariantPrimitive(VariantKind.STRING, b""),
        VariantPrimitive(VariantKind.BINARY, "x"),
        VariantPrimitive(VariantKind.UUID, "x"),
        VariantPrimitive(VariantKind.DOUBLE, "x"),
        VariantPrimitive(VariantKind.FLOAT, 1e300),
        VariantPrimitive(VariantKind.NULL, 0),
        VariantPrimitive(VariantKind.TRUE, False),
        VariantPrimitive(VariantKind.DATE, 2**31),
    ],
)
def test_what_has_no_form_is_refused(value: Any) -> None:
    with pytest.raises(InvalidValueError):
        encode([value])


def test_depth_is_limited_both_ways() -> None:
    deep: Any = []
    value = b"\x03\x00\x00"
    for _ in range(MAX_DEPTH):
        deep, value = [deep], encode_array([value])
    variant = encode(deep)
    assert variant.value == value
    assert to_json(variant) == "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1)
    assert same_meaning(variant, variant)
    with pytest.raises(InvalidValueError, match="deeper"):
        encode([deep])
    with pytest.raises(InvalidValueError, match="deeper"):
        decode(Variant(EMPTY_METADATA, encode_array([value])))
    itself: list[Any] = []
    itself += [itself, itself]
    with pytest.raises(InvalidValueError, match="deeper"):
        encode(itself)


def test_parts_that_are_shared_again_and_again_do_not_explode() -> None:
    metadata, ids = encode_dictionary([f"{index:02}" for index in range(60)])
    value = encode_primitive("x" * 1000)
    for _ in range(8):
        header = bytes((0b10 | 1 << 2,)) + bytes((60,)) + bytes(range(60))
        value = header + bytes(120) + len(value).to_bytes(2, "little") + value
    for read in (decode, to_json):
        with pytest.raises(InvalidValueError, match="shares"):
            read(Variant(metadata, value))
    assert len(ids) == 60


@pytest.mark.parametrize(
    ("metadata", "value"),
    [
        ("", "00"),
        ("02 00 00", "00"),
        ("01", "00"),
        ("01 ff", "00"),
        ("01 01 00 02 61", "00"),
        ("01 01 01 01 61", "00"),
        ("01 02 00 01 00 61", "00"),
        ("01 01 00 01 ff", "00"),
        ("c1 ffffffff", "00"),
        ("c1 00000000 ffffffff", "00"),
        ("01 00 00", ""),
        ("01 00 00", "54"),
        ("01 00 00", "fc"),
        ("01 00 00", "0c"),
        ("01 00 00", "2027 00000000"),
        ("01 00 00", "40 ffffff7f"),
        ("01 00 00", "3c 01000000"),
        ("01 00 00", "05"),
        ("01 00 00", "05ff"),
        ("01 00 00", "40 01000000 ff"),
        ("01 00 00", "02 01 05 00 01 00"),
        ("01 00 00", "03 01 ff 01 00"),
        ("01 00 00", "03 02 00 00 01 00"),
        ("01 00 00", "13 00001000 00"),
        ("01 00 00", "42 00001000 00"),
        ("01 00 00", "4e 33333333 ffff3f"),
        ("01 00 00", "03"),
        ("01 00 00", "02"),
        ("01 00 00", "0300"),
        ("01 01 00 01 61", "02 01 00 32 00 00"),
        ("01 01 00 01 61", "02 01 00 00 00 00"),
        ("01 02 00 01 02 61 61", "02 02 00 01 00 01 02 00 00"),
        ("01 01 00 01 61", "02 02 00 00 00 01 02 00 00"),
    ],
)
def test_impossible_bytes_are_refused(metadata: str, value: str) -> None:
    variant = Variant(bytes.fromhex(metadata), bytes.fromhex(value))
    for read in (decode, to_json):
        with pytest.raises(InvalidValueError):
            read(variant)


@given(st.binary(max_size=12), st.binary(max_size=40))
def test_any_bytes_are_a_variant_or_refused(metadata: bytes, value: bytes) -> None:
    for candidate in (
        Variant(metadata, value),
        Variant(b"\x01\x02\x00\x01\x02ab", value),
        Variant(b"\x01" + metadata, value),
    ):
        for read in (decode, to_json):
            with suppress(InvalidValueError):
                read(candidate)


@given(variant_values(st.one_of(NATURAL, TYPED)), st.data())
def test_changed_bytes_are_a_variant_or_refused(value: Any, data: st.DataObject) -> None:
    variant = encode(value)
    changed = [bytearray(variant.metadata), bytearray(variant.value)]
    for _ in range(data.draw(st.integers(1, 4))):
        part = data.draw(st.sampled_from(changed))
        part[data.draw(st.integers(0, len(part) - 1))] = data.draw(st.integers(0, 255))
    candidate = Variant(bytes(changed[0]), bytes(changed[1])[: data.draw(st.sampled_from([None, None, -1]))])
    with suppress(InvalidValueError):
        found = decode(candidate)
        to_json(candidate)
        assert same_meaning(candidate, candidate)
        del found


@given(variant_values())
def test_equality_ignores_how_a_value_is_stored(value: Any) -> None:
    variant = encode(value)
    with_more_names = encode([value, {"aaa": 1, "zzz": 2, "0": 3}])
    start, end = read_elements(with_more_names.value, 0, len(with_more_names.value))[0]
    assert same_meaning(Variant(with_more_names.metadata, with_more_names.value[start:end]), variant)
    assert not same_meaning(variant, encode([value]))
    assert not same_meaning(variant, encode({"x": value}))


def test_numbers_are_equal_across_widths_and_scales_but_not_to_floats() -> None:
    one = [
        1,
        Decimal("1.00"),
        VariantPrimitive(VariantKind.INT64, 1),
        VariantPrimitive(VariantKind.DECIMAL16, Decimal("1.0")),
    ]
    for left in one:
        for right in one:
            assert same_meaning(encode(left), encode(right))
        assert not same_meaning(encode(left), encode(1.0))
        assert not same_meaning(encode(left), encode(True))
    short, long = encode("abc"), Variant(EMPTY_METADATA, bytes.fromhex("40 03000000 616263"))
    assert same_meaning(short, long)
    assert same_meaning(encode(math.nan), encode(math.nan))
    assert same_meaning(encode(0.0), encode(-0.0))
    assert not same_meaning(encode(1.5), encode(VariantPrimitive(VariantKind.FLOAT, 1.5)))
    assert not same_meaning(encode({"a": 1}), encode({"a": 1, "b": 2}))
    assert not same_meaning(encode([1]), encode([2]))
