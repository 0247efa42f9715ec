"""Single values as bytes, one by one and as whole arrays; PyIceberg is the oracle for the bytes."""

import math
import struct
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st
from pyiceberg import conversions, types as peer

from icefloe.errors import InvalidValueError
from icefloe.schema import arrow_value_type, decode, decode_array, encode_array, promote_value, types
from icefloe.schema.binary import encode
from tests.strategies import decimal_types, decimals, primitive_types, values_of

PLAIN = (
    types.BooleanType(),
    types.IntegerType(),
    types.LongType(),
    types.FloatType(),
    types.DoubleType(),
    types.DecimalType(38, 10),
    types.DecimalType(9, 2),
    types.DateType(),
    types.TimeType(),
    types.TimestampType(),
    types.TimestamptzType(),
    types.TimestampNanoType(),
    types.TimestamptzNanoType(),
    types.StringType(),
    types.UUIDType(),
    types.FixedType(5),
    types.BinaryType(),
    types.GeometryType(),
    types.GeographyType(),
)
PROMOTIONS: tuple[tuple[types.PrimitiveType, types.PrimitiveType], ...] = (
    (types.IntegerType(), types.LongType()),
    (types.FloatType(), types.DoubleType()),
    (types.DecimalType(9, 2), types.DecimalType(38, 2)),
    (types.DateType(), types.TimestampType()),
)
NO_FORM = (
    types.UnknownType(),
    types.VariantType(),
    types.StructType(),
    types.ListType(1, types.IntegerType()),
    types.MapType(1, types.StringType(), 2, types.IntegerType()),
)


def same(left: Any, right: Any) -> bool:
    return repr(left) == repr(right)


def kinds() -> st.SearchStrategy[types.PrimitiveType]:
    return primitive_types().filter(lambda kind: not isinstance(kind, types.UnknownType))


def in_arrow(value: Any, kind: types.IcebergType) -> Any:
    """What the Arrow array of a type holds for an internal value, as a plain Python value."""
    return value.bytes if isinstance(kind, types.UUIDType) else value


def out_of_arrow(array: Any, kind: types.IcebergType) -> list[Any]:
    """The internal values of an array; times as integers, because as_py rounds and refuses."""
    array.validate(full=True)
    assert array.type == arrow_value_type(kind)
    if pa.types.is_temporal(array.type):
        array = array.view(pa.int32() if pa.types.is_date32(array.type) else pa.int64())
    return list(array.to_pylist())


@pytest.mark.parametrize(
    ("value", "kind", "hexadecimal"),
    [
        (False, types.BooleanType(), "00"),
        (True, types.BooleanType(), "01"),
        (84202, types.IntegerType(), "ea480100"),
        (200, types.LongType(), "c800000000000000"),
        (-4.5, types.FloatType(), "000090c0"),
        (6.0, types.DoubleType(), "0000000000001840"),
        (1000, types.DateType(), "e8030000"),
        (10000, types.TimeType(), "1027000000000000"),
        (400000, types.TimestampType(), "801a060000000000"),
        (400000, types.TimestamptzType(), "801a060000000000"),
        (400000000, types.TimestampNanoType(), "0084d71700000000"),
        (400000000, types.TimestamptzNanoType(), "0084d71700000000"),
        ("ABC", types.StringType(), "414243"),
        ("é\U00010000", types.StringType(), "c3a9f0908080"),
        (uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7"), types.UUIDType(), "f79c3e09677c4bbda4793f349cb785e7"),
        (b"ab", types.FixedType(2), "6162"),
        (b"Z", types.BinaryType(), "5a"),
        (b"", types.BinaryType(), ""),
        (Decimal("14.20"), types.DecimalType(4, 2), "058c"),
        (Decimal("-14.20"), types.DecimalType(4, 2), "fa74"),
        (Decimal("1.28"), types.DecimalType(4, 2), "0080"),
        (Decimal("-1.28"), types.DecimalType(4, 2), "80"),
        (Decimal("-1.29"), types.DecimalType(4, 2), "ff7f"),
        (Decimal("0.00"), types.DecimalType(4, 2), "00"),
        (Decimal("3.45"), types.DecimalType(3, 2), "0159"),
        (Decimal("123.4567"), types.DecimalType(7, 4), "12d687"),
        (Decimal("-123.4567"), types.DecimalType(7, 4), "ed2979"),
        (Decimal("0.011"), types.DecimalType(10, 3), "0b"),
    ],
)
def test_known_bytes(value: Any, kind: types.IcebergType, hexadecimal: str) -> None:
    assert encode(value, kind).hex() == hexadecimal
    assert decode(bytes.fromhex(hexadecimal), kind) == value


@given(kinds().flatmap(lambda kind: st.tuples(st.just(kind), values_of(kind))))
def test_values_round_trip(pair: tuple[types.PrimitiveType, Any]) -> None:
    kind, value = pair
    assert same(decode(encode(value, kind), kind), value)


PEERS: tuple[tuple[types.PrimitiveType, Any], ...] = (
    (types.BooleanType(), peer.BooleanType()),
    (types.IntegerType(), peer.IntegerType()),
    (types.LongType(), peer.LongType()),
    (types.FloatType(), peer.FloatType()),
    (types.DoubleType(), peer.DoubleType()),
    (types.DecimalType(38, 10), peer.DecimalType(38, 10)),
    (types.DecimalType(9, 2), peer.DecimalType(9, 2)),
    (types.DateType(), peer.DateType()),
    (types.TimeType(), peer.TimeType()),
    (types.TimestampType(), peer.TimestampType()),
    (types.StringType(), peer.StringType()),
    (types.UUIDType(), peer.UUIDType()),
    (types.FixedType(5), peer.FixedType(5)),
    (types.BinaryType(), peer.BinaryType()),
)


@pytest.mark.parametrize(("kind", "theirs"), PEERS, ids=str)
@given(data=st.data())
def test_bytes_are_those_of_pyiceberg(kind: types.PrimitiveType, theirs: Any, data: st.DataObject) -> None:
    value = data.draw(values_of(kind))
    assert encode(value, kind) == conversions.to_bytes(theirs, value)


@pytest.mark.parametrize("byte", [1, 2, 0x80, 0xFF])
def test_any_byte_but_zero_is_true(byte: int) -> None:
    assert decode(bytes([byte]), types.BooleanType()) is True
    assert decode_array(pa.array([bytes([byte])]), types.BooleanType()).to_pylist() == [True]


@given(st.integers(-(2**127), 2**127 - 1), st.integers(0, 3))
def test_decimals_take_the_fewest_bytes_and_are_read_with_more(number: int, padding: int) -> None:
    kind = types.DecimalType(38, 0)
    if abs(number) >= 10**38:
        number //= 10
    data = encode(Decimal(number), kind)
    assert int.from_bytes(data, "big", signed=True) == number
    assert len(data) == 1 or int.from_bytes(data[1:], "big", signed=True) != number
    padded = number.to_bytes(len(data) + padding, "big", signed=True)
    assert decode(padded, kind) == number
    assert decode_array(pa.array([padded]), kind).to_pylist() == [number]


@given(decimal_types().flatmap(lambda kind: st.tuples(st.just(kind), decimals(kind), decimals(kind))))
def test_decimals_of_equal_bytes_are_equal(case: tuple[types.DecimalType, Decimal, Decimal]) -> None:
    kind, left, right = case
    assert (encode(left, kind) == encode(right, kind)) is (left == right)


@given(values_of(types.StringType()), values_of(types.StringType()))
def test_strings_sort_as_their_bytes(left: str, right: str) -> None:
    assert (left < right) is (encode(left, types.StringType()) < encode(right, types.StringType()))


@pytest.mark.parametrize(("old", "new"), PROMOTIONS, ids=str)
@given(data=st.data())
def test_bytes_from_before_a_promotion(old: types.PrimitiveType, new: types.PrimitiveType, data: st.DataObject) -> None:
    olds = data.draw(st.lists(values_of(old), max_size=5))
    news = data.draw(st.lists(values_of(new), max_size=5))
    for value in olds:
        assert same(decode(encode(value, old), new), promote_value(value, old, new))
    expected = [promote_value(value, old, new) for value in olds] + [None, *news]
    order = data.draw(st.permutations(range(len(expected))))
    stored = [encode(value, old) for value in olds] + [None, *(encode(value, new) for value in news)]
    found = decode_array(pa.array([stored[i] for i in order], pa.binary()), new)
    assert same(out_of_arrow(found, new), [expected[i] for i in order])


def test_dates_from_before_a_promotion_to_nanoseconds() -> None:
    kind = types.TimestampNanoType()
    stored = [encode(106751, types.DateType()), None, encode(7, kind), encode(-106751, types.DateType())]
    expected = [106751 * 86_400_000_000_000, None, 7, -106751 * 86_400_000_000_000]
    assert out_of_arrow(decode_array(pa.array(stored), kind), kind) == expected
    beyond = encode(106752, types.DateType())
    with pytest.raises(InvalidValueError, match="outside the range"):
        decode(beyond, kind)
    with pytest.raises(InvalidValueError, match="outside the range"):
        decode_array(pa.array([encode(0, kind), beyond]), kind)


@pytest.mark.parametrize(
    ("kind", "lengths"),
    [
        (types.BooleanType(), {1}),
        (types.IntegerType(), {4}),
        (types.LongType(), {4, 8}),
        (types.FloatType(), {4}),
        (types.DoubleType(), {4, 8}),
        (types.DateType(), {4}),
        (types.TimeType(), {8}),
        (types.TimestampType(), {4, 8}),
        (types.TimestamptzType(), {8}),
        (types.TimestampNanoType(), {4, 8}),
        (types.TimestamptzNanoType(), {8}),
        (types.UUIDType(), {16}),
        (types.FixedType(5), {5}),
        (types.DecimalType(38, 0), set(range(1, 20))),
    ],
    ids=str,
)
def test_wrong_lengths_are_refused(kind: types.PrimitiveType, lengths: set[int]) -> None:
    for length in range(20):
        data = bytes(length)
        if length in lengths:
            assert decode_array(pa.array([data]), kind).null_count == 0
            decode(data, kind)
        else:
            with pytest.raises(InvalidValueError, match=r"bytes|empty"):
                decode(data, kind)
            with pytest.raises(InvalidValueError, match=r"bytes|empty"):
                decode_array(pa.array([None, data]), kind)


@pytest.mark.parametrize("precision", [1, 9, 18, 19, 37, 38])
@pytest.mark.parametrize("sign", [1, -1])
def test_decimals_beyond_the_precision_are_refused(precision: int, sign: int) -> None:
    kind = types.DecimalType(precision, 0)
    most, beyond = sign * (10**precision - 1), sign * 10**precision
    fits = most.to_bytes(16, "big", signed=True)
    assert decode(fits, kind) == most
    assert decode_array(pa.array([fits]), kind).to_pylist() == [most]
    for length in (16, 17, 20):
        data = beyond.to_bytes(length, "big", signed=True)
        with pytest.raises(InvalidValueError, match="more digits"):
            decode(data, kind)
        with pytest.raises(InvalidValueError, match="more digits"):
            decode_array(pa.array([fits, data]), kind)
    huge = (sign * 2**130).to_bytes(17, "big", signed=True)
    with pytest.raises(InvalidValueError, match="more digits"):
        decode_array(pa.array([huge]), kind)


def test_bad_text_is_refused() -> None:
    for data in (b"\xff", b"\xed\xa0\x80", b"\xc3"):
        with pytest.raises(InvalidValueError):
            decode(data, types.StringType())
        with pytest.raises(InvalidValueError):
            decode_array(pa.array([b"good", data]), types.StringType())


@pytest.mark.parametrize("kind", NO_FORM, ids=str)
def test_types_without_a_binary_form(kind: types.IcebergType) -> None:
    with pytest.raises(InvalidValueError, match="no binary single-value form"):
        encode((), kind)
    with pytest.raises(InvalidValueError, match="no binary single-value form"):
        decode(b"", kind)
    with pytest.raises(InvalidValueError, match="no binary single-value form"):
        decode_array(pa.array([b""]), kind)
    with pytest.raises(InvalidValueError, match="no binary single-value form"):
        encode_array(pa.array([b""]), kind)


@pytest.mark.parametrize("kind", PLAIN, ids=str)
def test_what_is_not_an_internal_value_is_refused(kind: types.PrimitiveType) -> None:
    for value in (None, object(), {}):
        with pytest.raises(InvalidValueError):
            encode(value, kind)
    with pytest.raises(InvalidValueError):
        decode(None, kind)  # type: ignore[arg-type]  # that is the point


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (2**31, types.IntegerType()),
        (2**63, types.LongType()),
        (1e39, types.FloatType()),
        ("\ud800", types.StringType()),
        (Decimal("1.5"), types.DecimalType(9, 2)),
        (Decimal("123.45"), types.DecimalType(4, 2)),
        (1, types.DecimalType(4, 2)),
        (b"abc", types.FixedType(2)),
        ("abc", types.BinaryType()),
    ],
)
def test_values_that_do_not_fit_are_refused(value: Any, kind: types.IcebergType) -> None:
    with pytest.raises(InvalidValueError):
        encode(value, kind)


# --- arrays ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", PLAIN, ids=str)
@given(data=st.data())
def test_arrays_hold_what_single_values_do(kind: types.PrimitiveType, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.none() | values_of(kind), max_size=12))
    stored = pa.array([None if value is None else encode(value, kind) for value in values], pa.binary())
    found = decode_array(stored, kind)
    assert same(out_of_arrow(found, kind), [None if v is None else in_arrow(v, kind) for v in values])
    back = encode_array(found, kind)
    back.validate(full=True)
    assert back.to_pylist() == stored.to_pylist()
    start = data.draw(st.integers(0, len(values)))
    assert decode_array(stored[start:], kind).equals(found[start:]) or any(map(_is_nan, values))
    assert encode_array(found[start:], kind).to_pylist() == stored.to_pylist()[start:]


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


@pytest.mark.parametrize("kind", PLAIN, ids=str)
@pytest.mark.parametrize("count", [0, 3])
def test_arrays_of_nothing_but_null(kind: types.PrimitiveType, count: int) -> None:
    stored = pa.nulls(count, pa.binary())
    found = decode_array(stored, kind)
    assert out_of_arrow(found, kind) == [None] * count
    assert encode_array(found, kind).equals(stored)


@pytest.mark.parametrize("arrow_type", [pa.large_binary(), pa.binary_view(), pa.binary(8)], ids=str)
def test_other_binary_arrays_are_read(arrow_type: Any) -> None:
    stored = pa.array([struct.pack("<q", 7), None], arrow_type)
    assert decode_array(stored, types.LongType()).to_pylist() == [7, None]
    assert decode_array(pa.chunked_array([stored, stored[1:]]), types.LongType()).to_pylist() == [7, None, None]


def test_bytes_under_a_null_do_not_matter() -> None:
    offsets = pa.py_buffer(struct.pack("<4i", 0, 8, 11, 19))
    data = pa.py_buffer(struct.pack("<q", 1) + b"xyz" + struct.pack("<q", 2))
    stored = pa.Array.from_buffers(pa.binary(), 3, [pa.py_buffer(b"\x05"), offsets, data])
    assert decode_array(stored, types.LongType()).to_pylist() == [1, None, 2]


def test_values_at_odd_addresses_are_read() -> None:
    stored = pa.array([b"x", struct.pack("<q", 1), struct.pack("<q", 2)])[1:]
    assert decode_array(stored, types.LongType()).to_pylist() == [1, 2]
    assert pa.compute.sum(decode_array(stored, types.LongType())).as_py() == 3


def test_arrays_of_another_type_are_cast_or_refused() -> None:
    assert encode_array(pa.array([5], pa.int16()), types.IntegerType()).to_pylist() == [struct.pack("<i", 5)]
    assert encode_array(pa.array(["a"], pa.large_string()), types.StringType()).to_pylist() == [b"a"]
    with pytest.raises(InvalidValueError):
        encode_array(pa.array([2**40]), types.IntegerType())
    with pytest.raises(InvalidValueError, match="give binary"):
        decode_array(pa.array([5]), types.IntegerType())
    with pytest.raises(InvalidValueError, match="not an Arrow array"):
        decode_array([b"a"], types.StringType())
