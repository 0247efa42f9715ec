"""AES GCM streams: what they hold comes back, any part of it, and nothing that was changed is ever opened."""

import io

import pytest
from hypothesis import given, settings, strategies as st

from icefloe.encryption import FileKey, SealingSink, UnsealedInput, open_stream, seal_stream
from icefloe.encryption.gcm import KEY_LENGTHS
from icefloe.encryption.streams import BLOCK_LENGTH, sealed_length
from icefloe.errors import CorruptFileError

PLACE = "s3://b/t/data/file.avro"


class File(io.BytesIO):
    """A file that knows its size."""

    def size(self) -> int:
        return len(self.getvalue())


def plain_of(size: int) -> bytes:
    return (b"0123456789abcdef" * (size // 16 + 1))[:size]


lengths = st.sampled_from([0, 1, 15, BLOCK_LENGTH - 1, BLOCK_LENGTH, BLOCK_LENGTH + 1, 2 * BLOCK_LENGTH + 7])
small = st.sampled_from([0, 1, 15, 1000])


@settings(max_examples=20)
@given(lengths, st.sampled_from(KEY_LENGTHS), st.data())
def test_any_part_comes_back(size: int, key_length: int, data: st.DataObject) -> None:
    plain, key = plain_of(size), FileKey.new(key_length)
    sealed = seal_stream(plain, key)
    known = key.of_length(len(sealed))
    assert len(sealed) == sealed_length(size)
    assert open_stream(sealed, known, PLACE) == plain
    with UnsealedInput(File(sealed), known, PLACE) as stream:
        assert stream.size() == size
        start, length = data.draw(st.integers(0, size + 3)), data.draw(st.integers(0, size + 3))
        assert stream.read_range(start, length) == plain[start : start + length]
        stream.seek(-min(5, size), 2)
        assert stream.read() == plain[max(0, size - 5) :]


@settings(max_examples=10)
@given(st.lists(st.integers(0, BLOCK_LENGTH + 9), max_size=3))
def test_written_in_pieces(sizes: list[int]) -> None:
    key, sink = FileKey.new(16), io.BytesIO()
    sealing = SealingSink(sink, key)
    for size in sizes:
        sealing.write(plain_of(size))
    assert sealing.finish() == len(sink.getvalue())
    assert open_stream(sink.getvalue(), key, PLACE) == b"".join(map(plain_of, sizes))


@given(small, st.data())
def test_a_flipped_bit_is_noticed(size: int, data: st.DataObject) -> None:
    key = FileKey.new(16)
    sealed = bytearray(seal_stream(plain_of(size), key))
    place = data.draw(st.integers(0, len(sealed) - 1))
    sealed[place] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(CorruptFileError, match=PLACE):
        open_stream(bytes(sealed), key, PLACE)
    with pytest.raises(CorruptFileError, match=PLACE):
        UnsealedInput(File(sealed), key, PLACE).read()


@pytest.mark.parametrize("kept", [1, 2])
def test_blocks_that_are_left_out_are_noticed_by_the_length(kept: int) -> None:
    key = FileKey.new(32)
    sealed = seal_stream(plain_of(3 * BLOCK_LENGTH), key)
    cut = sealed[: 8 + kept * (BLOCK_LENGTH + 28)]
    assert open_stream(cut, key, PLACE) == plain_of(kept * BLOCK_LENGTH), (
        "whole blocks say nothing of those behind them"
    )
    with pytest.raises(CorruptFileError, match="was changed"):
        open_stream(cut, key.of_length(len(sealed)), PLACE)
    with pytest.raises(CorruptFileError, match="was changed"):
        UnsealedInput(File(cut), key.of_length(len(sealed)), PLACE)


def test_blocks_keep_their_places() -> None:
    key = FileKey.new(16)
    sealed = seal_stream(plain_of(2 * BLOCK_LENGTH), key)
    one, two = sealed[8 : 8 + BLOCK_LENGTH + 28], sealed[8 + BLOCK_LENGTH + 28 :]
    with pytest.raises(CorruptFileError, match="block 0"):
        open_stream(sealed[:8] + two + one, key, PLACE)


def test_another_file_or_key_is_noticed() -> None:
    key, other = FileKey.new(16), FileKey.new(16)
    for wrong in (other, FileKey(key.key, other.aad_prefix), FileKey(other.key, key.aad_prefix), FileKey(key.key)):
        with pytest.raises(CorruptFileError, match="block 0"):
            open_stream(seal_stream(b"rows", key), wrong, PLACE)


@given(st.integers(0, 60))
def test_no_prefix_of_a_stream_is_one(length: int) -> None:
    sealed = seal_stream(plain_of(40), FileKey.new(16))
    with pytest.raises(CorruptFileError):
        open_stream(sealed[:length], FileKey.new(16), PLACE)


def test_plain_files_and_other_block_lengths_are_refused() -> None:
    key = FileKey.new(16)
    with pytest.raises(CorruptFileError, match=r"should be encrypted.*Obj"):
        open_stream(b"Obj\x01" + bytes(100), key, PLACE)
    with pytest.raises(CorruptFileError, match="of 4096 bytes"):
        open_stream(b"AGS1" + (4096).to_bytes(4, "little") + bytes(100), key, PLACE)


def test_the_bytes_of_the_spec() -> None:
    sealed = seal_stream(b"", FileKey.new(16))
    assert sealed[:8] == b"AGS1\x00\x00\x10\x00"
    assert len(sealed) == 36
