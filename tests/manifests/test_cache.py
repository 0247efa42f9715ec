"""The cache keeps what was used last, within its bound, and makes each thing once."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from icefloe.errors import InvalidInputError
from icefloe.manifests import (
    DataFile,
    EntryStatus,
    ManifestCache,
    ManifestColumns,
    ManifestEntry,
    ManifestFormat,
    columns_of,
    read_manifest,
    wanted,
    write_manifest,
)
from icefloe.partitioning import UNPARTITIONED
from icefloe.schema import LongType, NestedField, Schema, StructType


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


def test_a_manifest_is_read_once_for_each_question() -> None:
    schema = Schema(NestedField(1, "id", LongType()))
    files: dict[str, bytes] = {}
    entry = ManifestEntry(EntryStatus.ADDED, DataFile("s3://b/1", "parquet", 1, 1))
    manifest = write_manifest([entry], ManifestFormat(3, schema, UNPARTITIONED, 1), "m", files.__setitem__)
    asked: list[str] = []

    def read(location: str) -> bytes:
        asked.append(location)
        return files[location]

    cache = ManifestCache()
    committed = replace(manifest, sequence_number=1, first_row_id=10)
    first = read_manifest(committed, read, cache=cache)
    assert read_manifest(committed, read, cache=cache) is first
    assert len(asked) == 1
    other = read_manifest(replace(committed, first_row_id=90), read, cache=cache)
    assert [found.file_at(0).first_row_id for found in (first, other)] == [10, 90]
    assert read_manifest(committed, read, wanted("file_path"), cache=cache) is not first
    assert len(asked) == 3
