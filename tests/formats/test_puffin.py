"""Puffin files: golden bytes, round trips, what is refused, and how little is read."""

import json
import struct
from contextlib import suppress

import lz4.frame
import pytest
import zstandard
from hypothesis import given, strategies as st
from pyiceberg.table.puffin import PuffinFile

from icefloe.errors import CorruptFileError, InvalidValueError
from icefloe.formats.puffin.compression import CODECS, ZSTD, compress, decompress
from icefloe.formats.puffin.files import MAGIC, Blob, BlobMetadata, PuffinWriter, read_blob, read_footer
from tests.golden import golden
from tests.puffin_files import bytes_reader, decode_puffin, encode_puffin, packed

LONGS = st.integers(-(2**63), 2**63 - 1)
STRING_MAPS = st.dictionaries(st.text(max_size=8), st.text(max_size=8), max_size=3)
BLOBS = st.builds(
    Blob,
    type=st.text(max_size=12),
    fields=st.lists(st.integers(-(2**31), 2**31 - 1), max_size=3).map(tuple),
    snapshot_id=LONGS,
    sequence_number=LONGS,
    data=st.binary(max_size=200),
    compression_codec=st.sampled_from((None, ZSTD)),
    properties=STRING_MAPS,
)
FOOTER = {"type": "t", "fields": [1], "snapshot-id": 1, "sequence-number": 1, "offset": 4, "length": 0}


def same_blob(metadata: BlobMetadata, content: bytes) -> Blob:
    return Blob(
        metadata.type,
        metadata.fields,
        metadata.snapshot_id,
        metadata.sequence_number,
        content,
        metadata.compression_codec,
        metadata.properties or {},
    )


def file_with_payload(payload: bytes, flags: int = 0, before: bytes = b"") -> bytes:
    return MAGIC + before + MAGIC + payload + struct.pack("<iI", len(payload), flags) + MAGIC


@pytest.mark.parametrize("name", ["empty-puffin-uncompressed.bin", "sample-metric-data-uncompressed.bin"])
def test_golden_files_read_and_write_to_the_same_bytes(name: str) -> None:
    data = (golden("puffin") / name).read_bytes()
    footer, contents = decode_puffin(data, name)
    blobs = [same_blob(*pair) for pair in zip(footer.blobs, contents, strict=True)]
    assert encode_puffin(blobs, footer.properties) == (data, footer)


def test_the_golden_sample_holds_what_it_is_said_to_hold() -> None:
    footer, contents = decode_puffin((golden("puffin") / "sample-metric-data-uncompressed.bin").read_bytes(), "sample")
    assert footer.properties == {"created-by": "Test 1234"}
    assert footer.blobs == (
        BlobMetadata("some-blob", (1,), 2, 1, 4, 9),
        BlobMetadata("some-other-blob", (2,), 2, 1, 13, 83),
    )
    assert contents[0] == b"abcdefghi"
    assert contents[1].decode() == "some blob \0 binary data 🤯 that is not very very very very very very long, is it?"


def test_blobs_that_the_java_library_compressed_are_read() -> None:
    stored = bytes.fromhex("28b52ffd2409490000616263646566676869135eb9db")
    assert decompress(stored, "zstd", "blob", 100) == b"abcdefghi"


@given(st.lists(BLOBS, max_size=4), STRING_MAPS, st.booleans())
def test_what_is_written_is_read_back(blobs: list[Blob], properties: dict[str, str], compress_footer: bool) -> None:
    data, written = encode_puffin(blobs, properties, compress_footer=compress_footer)
    footer, contents = decode_puffin(data, "file")
    assert footer == written
    assert footer.properties == properties
    assert [same_blob(*pair) for pair in zip(footer.blobs, contents, strict=True)] == blobs


@given(st.lists(BLOBS, max_size=3), STRING_MAPS)
def test_pyiceberg_reads_what_is_written(blobs: list[Blob], properties: dict[str, str]) -> None:
    data, _ = encode_puffin(blobs, properties)
    theirs = PuffinFile(data)
    assert theirs.footer.properties == properties
    assert [theirs.get_blob_payload(blob) for blob in theirs.footer.blobs] == [blob.data for blob in blobs]


@given(st.binary(max_size=300), st.integers(0, 400))
def test_lz4_frames_agree_with_the_lz4_library(data: bytes, repeat: int) -> None:
    data *= repeat
    for theirs in (
        lz4.frame.compress(data),
        lz4.frame.compress(data, block_linked=True, content_checksum=True, block_checksum=True, compression_level=9),
    ):
        assert decompress(theirs, "lz4", "frame", len(data)) == data


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("data", [b"", b"x", b"0123456789" * 20_000])
def test_frames_state_their_content_size_and_are_bounded_by_it(codec: str, data: bytes) -> None:
    frame = packed(data, codec)
    assert decompress(frame, codec, "frame", len(data)) == data
    if data:
        with pytest.raises(CorruptFileError, match="at most"):
            decompress(frame, codec, "frame", len(data) - 1)
    for broken in (frame + b"\0", frame + frame, frame[:-1], frame[:5], b"", b"\0" * 40):
        with pytest.raises(CorruptFileError):
            decompress(broken, codec, "frame", 1 << 20)


def test_frames_without_content_size_are_refused() -> None:
    unsized_zstd = zstandard.ZstdCompressor(write_content_size=False).compress(b"abc")
    unsized_lz4 = lz4.frame.compress(b"abc", store_size=False)
    for frame, codec in ((unsized_zstd, "zstd"), (unsized_lz4, "lz4")):
        with pytest.raises(CorruptFileError, match="content size"):
            decompress(frame, codec, "frame", 100)


def test_frames_that_lie_about_their_content_size_are_refused() -> None:
    frame = bytearray(packed(b"abc" * 50, "lz4"))
    frame[6:14] = struct.pack("<Q", 1 << 40)
    with pytest.raises(CorruptFileError, match="at most"):
        decompress(bytes(frame), "lz4", "frame", 1 << 30)
    frame[6:14] = struct.pack("<Q", 151)
    with pytest.raises(CorruptFileError):
        decompress(bytes(frame), "lz4", "frame", 1 << 30)


def test_unknown_codecs_are_refused() -> None:
    with pytest.raises(InvalidValueError, match="snappy"):
        compress(b"", "snappy")
    blob = {**FOOTER, "compression-codec": "snappy"}
    with pytest.raises(CorruptFileError, match="snappy"):
        decode_puffin(file_with_payload(json.dumps({"blobs": [blob]}).encode()), "file")


@pytest.mark.parametrize(
    ("known_size", "properties", "reads"),
    [(False, 1, 1), (True, 1, 1), (False, 4000, 2), (True, 4000, 1)],
)
def test_a_footer_takes_one_read_or_two(known_size: bool, properties: int, reads: int) -> None:
    blob = Blob("t", (1,), 1, 1, b"z" * 100_000)
    data, written = encode_puffin([blob], {str(i): "v" for i in range(properties)})
    calls: list[tuple[int, int]] = []

    def read_range(offset: int, length: int) -> bytes:
        calls.append((offset, length))
        return data[offset : offset + length]

    footer = read_footer(read_range, len(data), "file", footer_size=written.size if known_size else None)
    assert footer == written
    assert len(calls) == reads
    assert read_blob(read_range, footer.blobs[0], "file") == blob.data
    assert calls[-1] == (4, 100_000)


@pytest.mark.parametrize(
    ("payload", "problem"),
    [
        (b"", "JSON"),
        (b"[]", "object"),
        (b"\xff\xfe{}", "JSON"),
        (b"[" * 100_000, "JSON"),
        (b'{"blobs":' + b"[" * 100_000, "JSON"),
        (b"{}", "blobs"),
        (b'{"blobs":{}}', "array"),
        (b'{"blobs":[1]}', "object"),
        (b'{"blobs":[],"properties":{"a":1}}', "str"),
        (b'{"blobs":[],"properties":[]}', "object"),
    ],
)
def test_footers_of_other_json_are_refused(payload: bytes, problem: str) -> None:
    with pytest.raises(CorruptFileError, match=problem):
        decode_puffin(file_with_payload(payload.ljust(12)), "file")


@pytest.mark.parametrize(
    "change",
    [
        {"type": None},
        {"type": 1},
        {"fields": "1"},
        {"fields": ["1"]},
        {"fields": [2**31]},
        {"snapshot-id": "1"},
        {"snapshot-id": 2**63},
        {"sequence-number": 1.5},
        {"offset": -1},
        {"offset": 3},
        {"offset": 2**62, "length": 2**62},
        {"offset": 2**70},
        {"length": -1},
        {"length": 1},
        {"length": True},
        {"compression-codec": 1},
        {"properties": {"a": None}},
    ],
)
def test_blobs_with_impossible_metadata_are_refused(change: dict[str, object]) -> None:
    good = file_with_payload(json.dumps({"blobs": [FOOTER]}).encode())
    assert decode_puffin(good, "file")[1] == [b""]
    with pytest.raises(CorruptFileError) as caught:
        decode_puffin(file_with_payload(json.dumps({"blobs": [FOOTER | change]}).encode()), "there")
    assert caught.value.location == "there"


@pytest.mark.parametrize("field", ["type", "fields", "snapshot-id", "sequence-number", "offset", "length"])
def test_blobs_with_missing_metadata_are_refused(field: str) -> None:
    blob = {key: value for key, value in FOOTER.items() if key != field}
    with pytest.raises(CorruptFileError, match=field):
        decode_puffin(file_with_payload(json.dumps({"blobs": [blob]}).encode()), "file")


def test_overlapping_blobs_are_refused() -> None:
    first, second = FOOTER | {"length": 6}, FOOTER | {"offset": 9, "length": 5}
    payload = json.dumps({"blobs": [second, first]}).encode()
    with pytest.raises(CorruptFileError, match="overlaps"):
        decode_puffin(file_with_payload(payload, before=b"0123456789"), "file")


def test_files_that_are_cut_or_lie_about_their_footer_are_refused() -> None:
    data, footer = encode_puffin([Blob("t", (1,), 1, 1, b"content")])
    broken = {
        "too few": data[:31],
        "does not start with": b"PFA2" + data[4:],
        "does not end with": data[:-1] + b"2",
        "unknown flags": data[:-8] + b"\x02\0\0\0" + MAGIC,
        "payload of -": data[:-12] + b"\xff" * 4 + bytes(4) + MAGIC,
        "too long": data[:-12] + b"\xff\xff\xff\x7f" + bytes(4) + MAGIC,
        "footer starts": data[:-12] + struct.pack("<i", footer.size - 17) + bytes(4) + MAGIC,
        "not an LZ4 frame": data[:-8] + b"\x01\0\0\0" + MAGIC,
    }
    for problem, changed in broken.items():
        with pytest.raises(CorruptFileError, match=problem):
            decode_puffin(changed, "file")
    with pytest.raises(CorruptFileError, match="shorter"):
        read_footer(bytes_reader(data), len(data) + 1, "file")
    for wrong in (0, -1, 16, footer.size + 1, len(data), 1 << 40):
        with pytest.raises(CorruptFileError):
            read_footer(bytes_reader(data), len(data), "file", footer_size=wrong)
    with pytest.raises(CorruptFileError, match="too long"):
        read_footer(bytes_reader(data), len(data), "file", limit=10)
    with pytest.raises(CorruptFileError, match="longer"):
        read_footer(bytes_reader(data), len(data), "file", footer_size=footer.size, limit=10)
    with pytest.raises(CorruptFileError, match="longer than 6"):
        read_blob(bytes_reader(data), footer.blobs[0], "file", limit=6)
    with pytest.raises(CorruptFileError, match="ends inside"):
        read_blob(bytes_reader(data[:6]), footer.blobs[0], "file")


@given(st.binary(max_size=120))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for candidate in (data, file_with_payload(data), file_with_payload(packed(data, "lz4"), 1)):
        with suppress(CorruptFileError):
            decode_puffin(candidate, "file")


@given(st.lists(BLOBS, max_size=3), STRING_MAPS, st.booleans(), st.data())
def test_changed_bytes_are_read_or_refused(
    blobs: list[Blob], properties: dict[str, str], compress_footer: bool, data: st.DataObject
) -> None:
    changed = bytearray(encode_puffin(blobs, properties, compress_footer=compress_footer)[0])
    for _ in range(data.draw(st.integers(1, 3))):
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    with suppress(CorruptFileError):
        decode_puffin(bytes(changed), "file", limit=1 << 20)


def test_the_limit_bounds_all_blobs_of_a_file_together() -> None:
    data, _ = encode_puffin([Blob("t", (), 1, 1, bytes(1000), "zstd")] * 3)
    assert len(decode_puffin(data, "file", limit=3000)[1]) == 3
    with pytest.raises(CorruptFileError, match="at most"):
        decode_puffin(data, "file", limit=2999)


def test_a_finished_writer_takes_nothing_more() -> None:
    pieces: list[bytes] = []
    writer = PuffinWriter(pieces.append)
    writer.add(Blob("t", (), 1, 1, b"one"))
    writer.finish()
    with pytest.raises(InvalidValueError, match="finished"):
        writer.add(Blob("t", (), 1, 1, b"two"))
    with pytest.raises(InvalidValueError, match="finished"):
        writer.finish()


def test_text_that_is_not_unicode_cannot_be_written() -> None:
    with pytest.raises(InvalidValueError, match="JSON"):
        encode_puffin([], {"a": "\ud800"})
