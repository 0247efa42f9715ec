"""The hashes of the spec's tables, and mmh3 as a second opinion."""

import struct
from decimal import Decimal
from typing import Any
from uuid import UUID

import mmh3
import numpy as np
import pytest
from hypothesis import given, strategies as st

from icefloe.errors import InvalidTransformError, InvalidValueError
from icefloe.partitioning import minimal_big_endian, transforms as tr, unscaled
from icefloe.partitioning.hashing import bytes_to_hash, hash_value
from icefloe.partitioning.murmur import BLOCK, LONGEST_IN_ROUNDS, hash_longs, hash_ranges
from icefloe.schema import coerce, types
from tests.strategies import LONG_MAX, LONG_MIN, decimal_types, decimals, texts

SPEC_VALUES: list[tuple[types.IcebergType, Any, int]] = [
    (types.IntegerType(), 34, 2017239379),
    (types.LongType(), 34, 2017239379),
    (types.DecimalType(9, 2), "14.20", -500754589),
    (types.DateType(), "2017-11-16", -653330422),
    (types.TimeType(), "22:31:08", -662762989),
    (types.TimestampType(), "2017-11-16T22:31:08", -2047944441),
    (types.TimestampType(), "2017-11-16T22:31:08.000001", -1207196810),
    (types.TimestamptzType(), "2017-11-16T14:31:08-08:00", -2047944441),
    (types.TimestamptzType(), "2017-11-16T14:31:08.000001-08:00", -1207196810),
    (types.TimestampNanoType(), "2017-11-16T22:31:08", -2047944441),
    (types.TimestampNanoType(), "2017-11-16T22:31:08.000001001", -1207196810),
    (types.TimestamptzNanoType(), "2017-11-16T14:31:08-08:00", -2047944441),
    (types.TimestamptzNanoType(), "2017-11-16T14:31:08.000001001-08:00", -1207196810),
    (types.StringType(), "iceberg", 1210000089),
    (types.StringType(), "34", -427558391),
    (types.UUIDType(), "f79c3e09-677c-4bbd-a479-3f349cb785e7", 1488055340),
    (types.FixedType(4), b"\x00\x01\x02\x03", -188683207),
    (types.BinaryType(), b"\x00\x01\x02\x03", -188683207),
    (types.BooleanType(), True, 1392991556),
    (types.FloatType(), 1.0, -142385009),
    (types.DoubleType(), 1.0, -142385009),
    (types.FloatType(), 0.0, 1669671676),
    (types.FloatType(), -0.0, 1669671676),
    (types.DoubleType(), 0.0, 1669671676),
    (types.DoubleType(), -0.0, 1669671676),
]


@pytest.mark.parametrize(("kind", "value", "expected"), SPEC_VALUES, ids=lambda item: str(item))
def test_the_hashes_of_appendix_b(kind: types.IcebergType, value: object, expected: int) -> None:
    assert hash_value(coerce(value, kind), kind) == expected


def test_every_nan_hashes_as_the_canonical_one() -> None:
    negative = struct.unpack("<d", struct.pack("<Q", 0xFFF8000000000001))[0]
    assert bytes_to_hash(negative, types.DoubleType()) == (0x7FF8000000000000).to_bytes(8, "little")


@pytest.mark.parametrize("kind", [types.GeometryType(), types.VariantType(), types.UnknownType()], ids=str)
def test_types_without_a_hash_are_refused(kind: types.IcebergType) -> None:
    with pytest.raises(InvalidTransformError, match=r"have no hash|does not support"):
        hash_value(b"", kind)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (types.IntegerType(), "x"),
        (types.LongType(), 2**63),
        (types.LongType(), 1.5),
        (types.StringType(), b"x"),
        (types.StringType(), "\ud800"),
        (types.UUIDType(), "f79c3e09-677c-4bbd-a479-3f349cb785e7"),
        (types.BinaryType(), "x"),
        (types.BinaryType(), 7),
        (types.DecimalType(9, 2), 1.5),
        (types.DecimalType(9, 2), Decimal("NaN")),
        (types.DecimalType(9, 2), Decimal("1.234")),
        (types.DoubleType(), "x"),
    ],
    ids=repr,
)
def test_values_of_another_type_are_refused(kind: types.IcebergType, value: object) -> None:
    with pytest.raises(InvalidValueError, match="is not a value of type"):
        hash_value(value, kind)


@pytest.mark.parametrize(
    ("number", "data"),
    [(1420, "058c"), (-1420, "fa74"), (128, "0080"), (-129, "ff7f"), (0, "00"), (-1, "ff"), (-128, "80"), (127, "7f")],
)
def test_decimals_are_hashed_over_the_fewest_bytes(number: int, data: str) -> None:
    assert minimal_big_endian(number).hex() == data


@given(st.integers(-(2**127), 2**127 - 1))
def test_the_fewest_bytes_hold_the_number_and_no_byte_less_does(number: int) -> None:
    data = minimal_big_endian(number)
    assert int.from_bytes(data, "big", signed=True) == number
    if len(data) > 1:
        with pytest.raises(OverflowError):
            number.to_bytes(len(data) - 1, "big", signed=True)


@given(decimal_types().flatmap(lambda kind: st.tuples(st.just(kind), decimals(kind))))
def test_unscaled_values_are_exact(pair: tuple[types.DecimalType, Decimal]) -> None:
    kind, value = pair
    sign, digits, _ = value.as_tuple()
    assert unscaled(value, kind) == (-1 if sign else 1) * int("".join(map(str, digits)))


@given(st.integers(LONG_MIN, LONG_MAX), st.integers(1, 1000))
def test_buckets_of_longs_agree_with_mmh3(value: int, buckets: int) -> None:
    expected = (mmh3.hash(value.to_bytes(8, "little", signed=True), 0) & 0x7FFFFFFF) % buckets
    assert tr.BucketTransform(buckets).apply(value, types.LongType()) == expected


@given(texts(60))
def test_hashes_of_strings_agree_with_mmh3(value: str) -> None:
    assert hash_value(value, types.StringType()) == mmh3.hash(value, 0)


@given(st.integers(LONG_MIN, LONG_MAX))
def test_int_long_and_nanosecond_hashes_agree(value: int) -> None:
    assert hash_value(value, types.TimestampNanoType()) == hash_value(value // 1000, types.TimestampType())


@given(st.lists(st.integers(LONG_MIN, LONG_MAX), max_size=50))
def test_many_longs_at_once_agree_with_mmh3(numbers: list[int]) -> None:
    found = hash_longs(np.array(numbers, np.int64))
    assert found.tolist() == [mmh3.hash(n.to_bytes(8, "little", signed=True), 0, signed=False) for n in numbers]


@given(
    st.lists(
        st.one_of(st.binary(max_size=20), st.binary(min_size=LONGEST_IN_ROUNDS - 3, max_size=LONGEST_IN_ROUNDS + 5)),
        min_size=1,
        max_size=40,
    )
)
def test_many_byte_strings_at_once_agree_with_mmh3(items: list[bytes]) -> None:
    ends = np.cumsum([0, *map(len, items)])
    data = np.frombuffer(b"".join(items), np.uint8)
    found = hash_ranges(data, ends[:-1], np.diff(ends))
    assert found.tolist() == [mmh3.hash(item, 0, signed=False) for item in items]


@pytest.mark.parametrize("size", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 5])
def test_blocks_join_without_a_seam(size: int) -> None:
    numbers = np.arange(size, dtype=np.int64) * 7919 - 5
    sample = range(0, size, max(1, size // 50))
    hashes = hash_longs(numbers)
    assert len(hashes) == size
    for index in [*sample, *([size - 1] if size else [])]:
        assert hashes[index] == mmh3.hash(numbers[index].tobytes(), 0, signed=False)
    ranges = hash_ranges(numbers.view(np.uint8), np.arange(size, dtype=np.int64) * 8, np.full(size, 8, np.int64))
    assert (ranges == hashes).all()


def test_a_uuid_is_hashed_over_its_sixteen_bytes() -> None:
    value = UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")
    assert bytes_to_hash(value, types.UUIDType()) == value.bytes
