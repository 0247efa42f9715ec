"""The manifests of a snapshot are found with and without a list, and read once; the cache keeps what was used last."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from icefloe.errors import CorruptFileError, InvalidInputError
from icefloe.manifests import (
    DataFile,
    EntryStatus,
    ManifestCache,
    ManifestColumns,
    ManifestEntry,
    ManifestFile,
    ManifestFormat,
    SnapshotManifests,
    columns_of,
    encode_manifest_list,
    wanted,
    write_manifest,
)
from icefloe.metadata import Snapshot, TableMetadata, new_table_metadata
from icefloe.partitioning import UNPARTITIONED
from icefloe.schema import NestedField, Schema, StructType
from icefloe.schema.types import LongType


def columns(count: int = 1) -> ManifestColumns:
    rows = [ManifestEntry(EntryStatus.ADDED, DataFile(f"s3://b/{i}", "parquet", 1, 1)) for i in range(count)]
    return columns_of(rows, StructType())


def test_what_was_used_last_is_kept() -> None:
    one = columns()
    cache = ManifestCache(2 * one.nbytes + 1)
    cache.keep("a", one)
    cache.keep("b", columns())
    assert cache.find("a") is one
    cache.keep("c", columns())
    assert cache.find("b") is None
    assert cache.find("a") is one
    assert len(cache) == 2
    assert cache.weight <= cache.capacity
    cache.keep("a", columns())
    assert len(cache) == 2
    cache.clear()
    assert (len(cache), cache.weight) == (0, 0)


def test_what_is_larger_than_the_cache_is_not_kept() -> None:
    cache = ManifestCache(10)
    made = cache.load("a", lambda: columns(100))
    assert len(made) == 100
    assert len(cache) == 0
    with pytest.raises(InvalidInputError):
        ManifestCache(-1)


def test_threads_make_each_thing_once() -> None:
    cache = ManifestCache()
    made: list[int] = []
    gate = threading.Barrier(4)

    def make() -> ManifestColumns:
        made.append(1)
        return columns()

    def work(_: int) -> ManifestColumns:
        gate.wait()
        return cache.load("a", make)

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(work, range(4)))
    assert len(made) == 1
    assert all(each is found[0] for each in found)


def test_a_failure_is_not_kept() -> None:
    cache = ManifestCache()

    def fail() -> ManifestColumns:
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        cache.load("a", fail)
    assert len(cache.load("a", columns)) == 1


SCHEMA = Schema(NestedField(1, "id", LongType()))


class Files(dict[str, bytes]):
    """Files in memory, and which of them were read."""

    def __init__(self) -> None:
        super().__init__()
        self.read: list[str] = []

    def bytes_at(self, location: str) -> bytes:
        self.read.append(location)
        return self[location]

    def manifest(self, version: int, location: str = "m") -> ManifestFile:
        entry = ManifestEntry(EntryStatus.ADDED, DataFile("s3://b/1", "parquet", 7, 1))
        return write_manifest([entry], ManifestFormat(version, SCHEMA, UNPARTITIONED, 1), location, self.__setitem__)

    def manifests(self, version: int, cache: ManifestCache | None = None) -> SnapshotManifests:
        return SnapshotManifests(metadata(version), self.bytes_at, cache=cache)


def metadata(version: int) -> TableMetadata:
    uuid = "9c12d441-03fe-4693-9a96-a0705ddf69c1"
    return new_table_metadata(SCHEMA, location="s3://b", format_version=version, uuid=uuid, timestamp_ms=1)


def test_a_manifest_is_read_once_for_each_question() -> None:
    files = Files()
    committed = replace(files.manifest(3), sequence_number=1, first_row_id=10)
    source = files.manifests(3, ManifestCache())
    first = source.entries(committed)
    assert source.entries(committed) is first
    assert len(files.read) == 1
    other = source.entries(replace(committed, first_row_id=90))
    assert [found.file_at(0).first_row_id for found in (first, other)] == [10, 90]
    assert source.entries(committed, wanted("file_path")) is not first
    assert len(files.read) == 3
    assert source.entries(committed, wanted("content"), keep=False) is not source.entries(committed, wanted("content"))


def test_manifests_of_a_list_are_read_once() -> None:
    files = Files()
    listed = encode_manifest_list(
        [files.manifest(2)], 2, snapshot_id=1, parent_snapshot_id=None, sequence_number=1
    ).data
    files["l"] = listed
    snapshot = Snapshot(1, 1, "l", sequence_number=1)
    source = files.manifests(2, ManifestCache())
    (found,) = source.of(snapshot)
    assert (found.manifest_path, found.sequence_number) == ("m", 1)
    assert source.counted(snapshot) == source.of(snapshot) == (found,)
    assert files.read == ["l"]
    assert files.manifests(2).of(snapshot) == (found,)
    assert files.read == ["l", "l"]


def test_manifests_that_a_snapshot_of_v1_names_itself_are_counted_where_that_is_needed() -> None:
    files = Files()
    files.manifest(1)
    snapshot = Snapshot(1, 1, manifests=("m",))
    for cache in (None, ManifestCache()):
        source = files.manifests(1, cache)
        assert source.list_location(snapshot) is None
        (found,) = source.of(snapshot)
        assert found.added_files_count is None
        (counted,) = source.counted(snapshot)
        assert counted.manifest_path == "m"
        assert (counted.added_files_count, counted.added_rows_count, counted.deleted_files_count) == (1, 7, 0)


def test_errors_name_the_snapshot() -> None:
    files = Files()
    files["l"] = b"no list"
    with pytest.raises(CorruptFileError, match=r"l.*\(a file of snapshot 5\)"):
        files.manifests(2).of(Snapshot(5, 1, "l"))
