"""Theta sketches against their definition: the smallest hashes of single-value bytes, in the compact form of DataSketches."""

import struct
from collections.abc import Sequence

import mmh3
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from icefloe.errors import CorruptFileError
from icefloe.formats.theta import ALL, NOMINAL, ThetaBuilder, ThetaSketch, unite
from icefloe.formats.theta_codec import decode_sketch, encode_sketch
from icefloe.schema import IcebergType, Value, arrow_value_type, types
from icefloe.schema.binary import encode
from tests import strategies as some

SEED = 9001
HASHES = st.lists(st.integers(1, ALL - 1), max_size=40, unique=True)


def hash_of(data: bytes) -> int:
    """The hash of DataSketches, by another implementation of Murmur3."""
    return mmh3.hash64(data, SEED, signed=False)[0] >> 1


def defined(hashes: set[int], theta: int = ALL) -> ThetaSketch:
    """The sketch of these hashes, by definition."""
    kept = sorted(code for code in hashes if 0 < code < theta)
    if len(kept) > NOMINAL:
        kept, theta = kept[:NOMINAL], kept[NOMINAL]
    return ThetaSketch(np.array(kept, np.int64), theta)


def sketch_of(field_type: IcebergType, *arrays: pa.Array) -> ThetaSketch:
    builder = ThetaBuilder(field_type)
    for array in arrays:
        builder.update(array)
    return builder.sketch()


def arrow(values: Sequence[Value], field_type: IcebergType) -> pa.Array:
    shown = [value.bytes if isinstance(field_type, types.UUIDType) and value is not None else value for value in values]
    return pa.array(shown, arrow_value_type(field_type))


def same(one: ThetaSketch, other: ThetaSketch) -> bool:
    return encode_sketch(one) == encode_sketch(other)


@given(st.data())
def test_values_of_every_type_are_hashed_by_their_single_value_bytes(data: st.DataObject) -> None:
    field_type = data.draw(some.primitive_types().filter(lambda kind: not isinstance(kind, types.UnknownType)))
    values = data.draw(st.lists(some.nullable_values_of(field_type), max_size=20))
    stored = [encode(value, field_type) for value in values if value is not None]
    expected = defined({hash_of(each) for each in stored if each})
    array = arrow(values, field_type)
    cut = data.draw(st.integers(0, len(values)))
    assert same(sketch_of(field_type, array), expected)
    assert same(sketch_of(field_type, array.slice(cut), array.slice(0, cut)), expected)


@given(st.lists(st.binary(max_size=70), max_size=30))
def test_bytes_of_any_length(values: list[bytes]) -> None:
    expected = defined({hash_of(value) for value in values if value})
    assert same(sketch_of(types.BinaryType(), pa.array(values, pa.binary())), expected)


def test_nulls_and_empty_values_are_left_out() -> None:
    assert len(sketch_of(types.StringType(), pa.array(["", None, "a"])).hashes) == 1
    assert len(sketch_of(types.BinaryType(), pa.array([b"", None])).hashes) == 0
    assert len(sketch_of(types.UnknownType(), pa.nulls(3)).hashes) == 0


@pytest.mark.parametrize("count", [NOMINAL - 1, NOMINAL, NOMINAL + 1, 13_000, 60_000])
def test_more_values_than_are_kept(count: int) -> None:
    values = np.random.default_rng(count).permutation(count).astype(np.int64)
    expected = defined({hash_of(struct.pack("<q", value)) for value in range(count)})
    parts = np.array_split(np.concatenate([values, values[: count // 2]]), 7)
    whole = sketch_of(types.LongType(), *map(pa.array, parts))
    united = unite(sketch_of(types.LongType(), pa.array(part)) for part in parts)
    assert same(whole, expected)
    assert same(united, expected)
    assert whole.is_exact == (count <= NOMINAL)
    assert abs(whole.estimate - count) <= 0.05 * count
    assert whole.is_exact is False or whole.estimate == count


@given(st.lists(st.tuples(HASHES, st.sampled_from([ALL, 2**62, 2**60])), max_size=5), st.randoms())
def test_union_in_any_order(parts: list[tuple[list[int], int]], random: object) -> None:
    sketches = [defined(set(hashes), theta) for hashes, theta in parts]
    least = min((theta for _, theta in parts), default=ALL)
    expected = defined({code for hashes, _ in parts for code in hashes}, least)
    random.shuffle(sketches)  # type: ignore[attr-defined]  # hypothesis gives a Random
    half = len(sketches) // 2
    assert same(unite(sketches), expected)
    assert same(unite([unite(sketches[half:]), unite(sketches[:half])]), expected)


@given(HASHES, st.sampled_from([ALL, 2**62]))
def test_bytes_read_back(hashes: list[int], theta: int) -> None:
    sketch = defined(set(hashes), theta)
    again = decode_sketch(encode_sketch(sketch), "a.stats")
    assert (again.hashes.tolist(), again.theta) == (sketch.hashes.tolist(), sketch.theta)


def test_layout() -> None:
    """The forms that Java writes: empty, one value, exact, estimated."""
    forms = [defined(set()), defined({5}), defined({5, 7}), defined({5}, 2**62)]
    heads = ["01030300001ecc93", "01030300003acc93", "02030300001acc93", "03030300001acc93"]
    tails = [
        b"",
        struct.pack("<q", 5),
        struct.pack("<ifqq", 2, 1.0, 5, 7),
        struct.pack("<ifqq", 1, 1.0, 2**62, 5),
    ]
    for sketch, head, tail in zip(forms, heads, tails, strict=True):
        assert encode_sketch(sketch) == bytes.fromhex(head) + tail


def test_unordered_hashes_of_others_are_read() -> None:
    data = bytes.fromhex("02030300000acc93") + struct.pack("<ifqq", 2, 1.0, 7, 5)
    assert decode_sketch(data, "a.stats").hashes.tolist() == [5, 7]


@given(st.one_of(st.binary(max_size=64), HASHES.map(lambda codes: encode_sketch(defined(set(codes))))), st.data())
def test_hostile_bytes_fail_cleanly(data: bytes, more: st.DataObject) -> None:
    changed = bytearray(data)
    for _ in range(more.draw(st.integers(0, 3))):
        if changed:
            changed[more.draw(st.integers(0, len(changed) - 1))] = more.draw(st.integers(0, 255))
    try:
        sketch = decode_sketch(bytes(changed[: more.draw(st.integers(0, len(changed)))]), "a.stats")
    except CorruptFileError:
        return
    assert all(0 < code < sketch.theta for code in sketch.hashes.tolist())


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("02030300", "too few"),
        ("02020300001acc93", "version 2"),
        ("02030300001bcc93", "flags 0x1b"),
        ("02030300001a0000", "seed hash 0000"),
        ("04030300001acc93", "1 to 3 words"),
        ("02030300001acc93", "shorter than its own header"),
        ("02030300001acc93ffffffff0000803f", "4294967295 hashes"),
        ("02030300001acc93020000000000803f05000000000000000500000000000000", "not distinct"),
    ],
)
def test_bytes_that_are_no_sketch(data: str, message: str) -> None:
    with pytest.raises(CorruptFileError, match=message):
        decode_sketch(bytes.fromhex(data), "a.stats")
