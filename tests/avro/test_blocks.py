"""Deflated blocks against zlib: the same bytes from every stream, never more than the limit, and bad ones refused."""

import zlib
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, strategies as st

from icefloe.avro import container as containers, decode as decoding, open_container
from icefloe.avro.blocks import CODEC_ERRORS, inflate
from icefloe.errors import CorruptFileError
from icefloe.manifests import decode_manifest
from tests.avro.strategies import container


def packed(data: bytes, level: int = 6, strategy: int = zlib.Z_DEFAULT_STRATEGY, flush_every: int = 0) -> bytes:
    packer = zlib.compressobj(level, zlib.DEFLATED, -zlib.MAX_WBITS, 8, strategy)
    step = flush_every or max(len(data), 1)
    parts = [
        packer.compress(data[at : at + step]) + packer.flush(zlib.Z_FULL_FLUSH) for at in range(0, len(data), step)
    ]
    return b"".join((*parts, packer.flush()))


def inflated(stream: bytes, limit: int) -> bytes | None:
    """What comes out, or None if it is refused."""
    try:
        found = bytes(inflate("deflate", stream, limit))
    except CODEC_ERRORS:
        return None
    assert len(found) <= limit
    return found


def by_zlib(stream: bytes) -> bytes | None:
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        found = inflater.decompress(stream)
    except zlib.error:
        return None
    return found if inflater.eof else None


repetitive = st.lists(st.tuples(st.binary(min_size=1, max_size=12), st.integers(1, 400)), max_size=30).map(
    lambda parts: b"".join(part * times for part, times in parts)
)
skewed = st.lists(st.integers(0, 17), max_size=600).map(
    lambda steps: bytes(max(0, 250 - 3 * each**2) for each in steps)
)
payloads = st.one_of(st.binary(max_size=600), repetitive, skewed)
strategies = st.sampled_from((zlib.Z_DEFAULT_STRATEGY, zlib.Z_FIXED, zlib.Z_HUFFMAN_ONLY, zlib.Z_RLE, zlib.Z_FILTERED))


@given(payloads, st.integers(0, 9), strategies, st.sampled_from((0, 7, 100)))
@example(b"", 6, zlib.Z_DEFAULT_STRATEGY, 0)
@example(bytes(100_000), 0, zlib.Z_DEFAULT_STRATEGY, 0)
def test_it_gives_what_was_packed(data: bytes, level: int, strategy: int, flush_every: int) -> None:
    assert inflated(packed(data, level, strategy, flush_every), len(data)) == data


def test_long_codes_and_distances_are_read() -> None:
    random = np.random.default_rng(5)
    # Lengths of codes up to 15 bits need counts that grow as Fibonacci's numbers do.
    counts = [1, 1]
    while len(counts) < 24:
        counts.append(counts[-1] + counts[-2])
    letters = np.repeat(np.arange(len(counts), dtype=np.uint8), counts)
    random.shuffle(letters)
    far = random.integers(0, 256, 30_000, np.uint8).tobytes()
    data = letters.tobytes() + far + bytes(1000) + far
    for strategy in (zlib.Z_DEFAULT_STRATEGY, zlib.Z_HUFFMAN_ONLY):
        assert inflated(packed(data, 9, strategy), len(data)) == data


@given(payloads, st.integers(0, 9), st.data())
def test_spoiled_streams_that_zlib_reads_give_the_same(data: bytes, level: int, draw: Any) -> None:
    stream = bytearray(packed(data, level))
    for _ in range(draw.draw(st.integers(1, 3))):
        stream[draw.draw(st.integers(0, len(stream) - 1))] = draw.draw(st.integers(0, 255))
    check_as_zlib(bytes(stream), len(data) + 5000)


@given(st.binary(max_size=200))
def test_any_bytes_that_zlib_reads_give_the_same(stream: bytes) -> None:
    check_as_zlib(stream, 70_000)


def check_as_zlib(stream: bytes, limit: int) -> None:
    """What zlib reads gives the same bytes; of some streams that zlib refuses, the library makes something within the limit."""
    expected = by_zlib(stream)
    found = inflated(stream, limit)
    if expected is not None:
        assert found == (expected if len(expected) <= limit else None)


@given(payloads.filter(len), st.integers(0, 9), st.data())
def test_streams_that_are_cut_off_are_found_out(data: bytes, level: int, draw: Any) -> None:
    stream = packed(data, level)
    assert inflated(stream[: draw.draw(st.integers(0, len(stream) - 1))], len(data)) is None


def test_a_limit_that_is_too_small_is_said() -> None:
    data = b"abc" * 100
    assert inflated(packed(data), 300) == data
    with pytest.raises(ValueError, match="it holds more than 299 bytes"):
        inflate("deflate", packed(data), 299)
    with pytest.raises(ValueError, match="cut off"):
        inflate("deflate", packed(data)[:-2], 300)


ROW = {"type": "record", "name": "manifest_entry", "fields": [{"name": "status", "type": "int", "field-id": 0}]}
WIDE = {"name": "record_count", "type": "long", "field-id": 103}
FILE = {"name": "data_file", "type": {"type": "record", "name": "r2", "fields": [WIDE]}, "field-id": 2}


def manifest(rows: int, per_block: int) -> bytes:
    schema = {**ROW, "fields": [*ROW["fields"], FILE]}
    return container(
        schema, [{"status": 1, "data_file": {"record_count": number}} for number in range(rows)], per_block=per_block
    )


@pytest.fixture(params=[1, 1000, 4 << 20])
def chunks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks are walked over in chunks of that many bytes."""
    monkeypatch.setattr(decoding, "CHUNK_BYTES", request.param)


@pytest.mark.usefixtures("chunks")
@pytest.mark.parametrize("per_block", [16, 16_000])
def test_manifests_are_read_chunk_by_chunk(per_block: int) -> None:
    found = decode_manifest(manifest(3000, per_block), "s3://b/m.avro")
    assert found.column("record_count").to_pylist() == list(range(3000))


@pytest.mark.usefixtures("chunks")
def test_a_spoiled_block_is_named() -> None:
    data = bytearray(manifest(3000, 500))
    blocks = open_container(bytes(data), "m").blocks
    data[int(blocks[2, 1])] = 0xFF
    with pytest.raises(CorruptFileError, match=f"block 2 at byte {blocks[2, 1]} does not inflate with deflate"):
        decode_manifest(bytes(data), "m")


@pytest.mark.usefixtures("chunks")
def test_a_block_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(containers, "MAX_BLOCK_BYTES", 4000)
    monkeypatch.setattr(decoding, "CHUNK_BYTES", 1)
    with pytest.raises(CorruptFileError, match="it holds more than 4000 bytes"):
        decode_manifest(manifest(3000, 1 << 20), "m")
