"""What every store must do, run over the local disk, memory, a real S3 server, and pyarrow's file systems."""

import pickle
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Barrier
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from pyarrow import fs

from icefloe.errors import InvalidLocationError, LocationExistsError, LocationNotFoundError, StorageError
from icefloe.storage import Storage, prefetch
from icefloe.storage.hadoop import ArrowFiles
from icefloe.storage.protocol import Files
from tests.storage.servers import S3Server

NAMES = [
    "plain",
    "with space",
    "ünïcode-漢字-🧊",
    "k=v",
    "100%",
    "a%20b",
    "a#b",
    "q?x=1&y",
    "a+b",
    "~'\"()!*,;:@$",
    "a\\b|c^`{}[]<>",
]


@dataclass(frozen=True)
class Place:
    """A store and an empty folder in it."""

    storage: Storage
    folder: str

    def at(self, name: str) -> str:
        return f"{self.folder}/{name}"

    def names(self, folder: str | None = None) -> set[str]:
        found = self.storage.list_prefix(folder or self.folder)
        return {info.location.removeprefix(f"{self.folder}/") for info in found}


class ArrowStorage(Storage):
    """HDFS's code over a file system that needs no cluster."""

    def _resolve(self, location: str) -> tuple[Files, Any]:
        return ArrowFiles(fs.LocalFileSystem()), super()._resolve(location)[1]


def make_place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    match request.param:
        case "local":
            return Place(Storage(), f"file://{tmp_path}/base")
        case "bare-path":
            return Place(Storage(), f"{tmp_path}/base")
        case "memory":
            return Place(Storage(), f"memory://{uuid4().hex}/base")
        case "s3":
            server: S3Server = request.getfixturevalue("s3_server")
            return Place(server.storage(), f"s3://{server.new_bucket()}/base")
        case "signed":
            server = request.getfixturevalue("strict_s3_server")
            return Place(server.signed_storage(), f"s3://{server.new_bucket()}/base")
        case _:
            return Place(ArrowStorage(), f"file://{tmp_path}/base")


@pytest.fixture(params=["local", "bare-path", "memory", "s3", "signed", "arrow"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return make_place(request, tmp_path)


@pytest.fixture(params=["local", "memory", "s3", "signed"])
def exclusive_place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return make_place(request, tmp_path)


@pytest.mark.parametrize("name", NAMES)
def test_any_name_is_written_read_listed_and_deleted(place: Place, name: str) -> None:
    for location in (place.at(name), place.at(f"{name}/deep/{name}.bin"))[: 1 if name == "plain" else 2]:
        data = f"in {name}".encode()
        if "/" in location.removeprefix(place.folder + "/"):
            assert place.storage.delete([place.at(name)]) == []
        place.storage.write(location, data)
        assert place.storage.read(location) == data
        assert [info.location for info in place.storage.list_prefix(place.folder)] == [location]
        assert place.storage.delete([location]) == []
        assert not place.storage.exists(location)


def test_an_empty_file_is_a_file(place: Place) -> None:
    location = place.at("empty")
    place.storage.write(location, b"")
    assert place.storage.read(location) == b""
    assert place.storage.stat(location).size == 0
    assert place.storage.read_tail(location, 8).size == 0
    assert place.storage.read_tail(location, 8).data == b""
    assert place.storage.read_range(location, 0, 0) == b""
    assert place.storage.open_input(location).read() == b""


def test_write_replaces_what_was_there(place: Place) -> None:
    location = place.at("hint")
    place.storage.write(location, b"one" * 100)
    place.storage.write(location, b"two")
    assert place.storage.read(location) == b"two"


def test_ranges_come_in_the_order_asked_for(place: Place) -> None:
    location = place.at("ranged")
    data = bytes(range(256)) * 40
    place.storage.write(location, data)
    ranges = [(9000, 1000), (0, 1), (5, 0), (4, 600), (10, 10), (10239, 1)]
    assert place.storage.read_ranges(location, ranges) == [data[at : at + length] for at, length in ranges]
    assert place.storage.read_ranges(location, []) == []
    assert place.storage.read_range(location, 100, 7) == data[100:107]


@pytest.mark.parametrize(("offset", "length"), [(0, 11), (5, 6), (10, 1), (400, 10), (-1, 2), (0, -1)])
def test_a_range_that_the_file_lacks_is_an_error(place: Place, offset: int, length: int) -> None:
    location = place.at("short")
    place.storage.write(location, b"0123456789")
    with pytest.raises(StorageError, match="short"):
        place.storage.read_range(location, offset, length)
    with pytest.raises(StorageError, match="short"):
        place.storage.read_ranges(location, [(0, 1), (offset, length)])


@pytest.mark.parametrize("length", [0, 1, 4, 10, 1000])
def test_the_tail_comes_with_the_size(place: Place, length: int) -> None:
    location = place.at("tailed")
    place.storage.write(location, b"0123456789")
    tail = place.storage.read_tail(location, length)
    assert tail.size == 10
    assert tail.data == b"0123456789"[max(0, 10 - length) :]


@pytest.mark.parametrize(
    "ask",
    [
        lambda storage, location: storage.read(location),
        lambda storage, location: storage.read_range(location, 0, 4),
        lambda storage, location: storage.read_ranges(location, [(0, 4)]),
        lambda storage, location: storage.read_tail(location, 4),
        lambda storage, location: storage.stat(location),
        lambda storage, location: storage.open_input(location),
    ],
    ids=["read", "read_range", "read_ranges", "read_tail", "stat", "open_input"],
)
def test_a_missing_file_is_named(place: Place, ask: Callable[[Storage, str], object]) -> None:
    location = place.at("not here")
    with pytest.raises(LocationNotFoundError) as caught:
        ask(place.storage, location)
    assert location in str(caught.value)
    assert isinstance(caught.value, FileNotFoundError)
    assert not place.storage.exists(location)


def test_a_folder_is_not_a_file(place: Place) -> None:
    place.storage.write(place.at("folder/file"), b"x")
    assert not place.storage.exists(place.at("folder"))
    with pytest.raises(StorageError):
        place.storage.read(place.at("folder"))


def test_a_listing_counts_the_location_as_a_folder(place: Place) -> None:
    for name in ("t/a", "t/b/c", "t/b/d/e", "t2/a", "t.a"):
        place.storage.write(place.at(name), name.encode())
    assert place.names(place.at("t")) == {"t/a", "t/b/c", "t/b/d/e"}
    assert place.names(place.at("t/")) == {"t/a", "t/b/c", "t/b/d/e"}
    assert place.names(place.at("t/b")) == {"t/b/c", "t/b/d/e"}
    assert place.names(place.at("t/a")) == set()
    assert place.names(place.at("none")) == set()


def test_a_listing_tells_size_and_time(place: Place) -> None:
    before = time.time() * 1000
    place.storage.write(place.at("sized"), b"12345")
    (info,) = place.storage.list_prefix(place.folder)
    assert info.size == 5
    # S3 counts whole seconds.
    assert before - 2000 <= info.modified_ms <= time.time() * 1000 + 2000
    assert place.storage.stat(place.at("sized")) == info


def test_a_listing_is_a_stream(place: Place) -> None:
    for number in range(5):
        place.storage.write(place.at(f"{number}"), b"")
    stream = place.storage.list_prefix(place.folder)
    assert isinstance(stream, Iterator)
    assert next(stream).size == 0


def test_more_files_than_a_page_are_listed_and_deleted(place: Place) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: place.storage.write(place.at(f"n/{number}"), b""), range(1003)))
    locations = [info.location for info in place.storage.list_prefix(place.folder)]
    assert len(locations) == len(set(locations)) == 1003
    assert place.storage.delete(iter([*locations, place.at("never was")])) == []
    assert place.names() == set()


def test_deleting_what_is_not_there_is_no_failure(place: Place) -> None:
    place.storage.write(place.at("there"), b"x")
    assert place.storage.delete([place.at("not"), place.at("there"), place.at("there/not"), place.at("there")]) == []
    assert place.storage.delete([]) == []
    assert place.names() == set()


def test_of_two_exclusive_creates_the_first_wins(exclusive_place: Place) -> None:
    storage, location = exclusive_place.storage, exclusive_place.at("v1.metadata.json")
    assert storage.supports_exclusive_create(location)
    storage.create_exclusive(location, b"first")
    with pytest.raises(LocationExistsError) as caught:
        storage.create_exclusive(location, b"second, and longer")
    assert location in str(caught.value)
    assert isinstance(caught.value, FileExistsError)
    assert storage.read(location) == b"first"
    assert exclusive_place.names() == {"v1.metadata.json"}


def test_sixteen_threads_race_and_one_wins(exclusive_place: Place) -> None:
    storage = exclusive_place.storage
    for turn in range(4):
        location = exclusive_place.at(f"race-{turn}")
        barrier = Barrier(16)

        def create(number: int, location: str = location, barrier: Barrier = barrier) -> int | None:
            barrier.wait()
            try:
                storage.create_exclusive(location, str(number).encode() * 50_000)
            except LocationExistsError:
                return None
            return number

        with ThreadPoolExecutor(16) as pool:
            winners = [number for number in pool.map(create, range(16)) if number is not None]
        assert len(winners) == 1
        assert storage.read(location) == str(winners[0]).encode() * 50_000
    assert len(exclusive_place.names()) == 4


def test_a_stream_publishes_when_it_is_closed(place: Place) -> None:
    location = place.at("streamed")
    with place.storage.open_output(location) as output:
        assert output.write(b"some ") == 5
        assert output.write(memoryview(b"bytes")) == 5
        assert output.write(pa.py_buffer(b"!")) == 1
        assert output.tell() == 11
        assert not place.storage.exists(location)
    assert output.closed
    assert place.storage.read(location) == b"some bytes!"
    output.close()
    with pytest.raises(StorageError, match="closed"):
        output.write(b"more")
    assert place.names() == {"streamed"}


@pytest.mark.parametrize("size", [10, 40 << 20], ids=["small", "large"])
def test_an_aborted_stream_leaves_nothing(place: Place, size: int) -> None:
    chunk = b"x" * min(size, 4 << 20)

    def write_and_fail() -> None:
        with place.storage.open_output(place.at("failed")) as output:
            for _ in range(max(1, size // len(chunk))):
                output.write(chunk)
            raise KeyError("on purpose")

    with pytest.raises(KeyError):
        write_and_fail()
    output = place.storage.open_output(place.at("aborted"))
    output.write(chunk)
    output.abort()
    output.close()
    forgotten = place.storage.open_output(place.at("forgotten"))
    forgotten.write(chunk)
    del forgotten
    assert place.names() == set()


def test_an_aborted_stream_keeps_the_old_file(place: Place) -> None:
    place.storage.write(place.at("kept"), b"old")
    output = place.storage.open_output(place.at("kept"))
    output.write(b"new")
    output.abort()
    assert place.storage.read(place.at("kept")) == b"old"


def test_a_large_stream_arrives_whole(place: Place) -> None:
    location = place.at("large")
    chunks = [bytes([number]) * (3 << 20) for number in range(14)]
    with place.storage.open_output(location) as output:
        for chunk in chunks:
            output.write(chunk)
    assert place.storage.stat(location).size == 42 << 20
    assert place.storage.read(location) == b"".join(chunks)


def test_parquet_is_written_and_read_through_the_streams(place: Place) -> None:
    table = pa.table({"id": range(300_000), "text": [f"row {number * 7919 % 300_000}" for number in range(300_000)]})
    location = place.at("data.parquet")
    with place.storage.open_output(location) as output:
        pq.write_table(table, output, row_group_size=50_000)
    size = place.storage.stat(location).size
    assert size > 1 << 20
    for known in (None, size):
        with place.storage.open_input(location, size=known) as source:
            file = pq.ParquetFile(source)
            column = file.metadata.row_group(2).column(0)
            prefetch(source, [(column.dictionary_page_offset or column.data_page_offset, column.total_compressed_size)])
            assert file.read_row_group(2, columns=["id"]).column("id").to_pylist() == list(range(100_000, 150_000))
            assert file.read().equals(table)


def test_a_failing_parquet_writer_leaves_nothing(place: Place) -> None:
    def rows() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"id": [1, 2, 3]})
        raise RuntimeError("on purpose")

    def write() -> None:
        with (
            place.storage.open_output(place.at("half.parquet")) as output,
            pq.ParquetWriter(output, pa.schema({"id": pa.int64()})) as writer,
        ):
            for batch in rows():
                writer.write_batch(batch)

    with pytest.raises(RuntimeError):
        write()
    assert place.names() == set()


def test_an_input_seeks(place: Place) -> None:
    location = place.at("sought")
    data = bytes(range(256)) * 8192
    place.storage.write(location, data)
    for size in (None, len(data)):
        with place.storage.open_input(location, size=size) as source:
            assert source.seek(1000) == 1000
            assert source.read(10) == data[1000:1010]
            assert source.tell() == 1010
            source.seek(-5, 2)
            assert source.read(100) == data[-5:]
            source.seek(0)
            assert source.read() == data
            assert source.read(1) == b""


def test_a_pickle_reaches_the_same_files(place: Place) -> None:
    place.storage.write(place.at("x"), b"1")
    copy = pickle.loads(pickle.dumps(place.storage))
    assert copy.read(place.at("x")) == b"1"
    assert copy == place.storage


def test_a_relative_location_is_refused(place: Place) -> None:
    with pytest.raises(InvalidLocationError, match="relative"):
        place.storage.read("data/0.parquet")


def test_refuses_exclusive_creates_where_none_is_possible(tmp_path: Path) -> None:
    storage, location = ArrowStorage(), f"file://{tmp_path}/v1"
    assert not storage.supports_exclusive_create(location)
    with pytest.raises(StorageError, match="exclusively"):
        storage.create_exclusive(location, b"x")
    assert not (tmp_path / "v1").exists()


segments = st.text(
    st.characters(exclude_categories=("Cs", "Cc", "Cn"), exclude_characters="/"), min_size=1, max_size=40
).filter(lambda name: name not in (".", "..") and len(name.encode()) <= 200)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(names=st.lists(segments, min_size=1, max_size=3), data=st.binary(max_size=50))
def test_random_names_round_trip(place: Place, names: list[str], data: bytes) -> None:
    location = f"{place.folder}/{uuid4().hex}/{'/'.join(names)}"
    place.storage.write(location, data)
    assert place.storage.read(location) == data
    assert [info.location for info in place.storage.list_prefix(place.folder)] == [location]
    assert place.storage.delete([location]) == []
    assert not place.storage.exists(location)
