"""Files of a commit are written side by side, and no pointer moves before all of them are there."""

import multiprocessing
import threading
import time
import warnings
from collections.abc import Callable

import pyarrow as pa
import pytest

from icefloe.catalog import Catalog, Identifier, load_catalog
from icefloe.catalog.pointers import PointerCatalog
from icefloe.catalog.seals import Seal
from icefloe.errors import StorageError
from icefloe.manifests import DataFile
from icefloe.table import Table

NAME = "db.t"
KINDS = ("-m0.avro", "/snap-", ".metadata.json")


@pytest.fixture
def catalog() -> Catalog:
    found = load_catalog("settling", type="memory")
    found.create_namespace("db")
    found.create_table(NAME, pa.schema([pa.field("id", pa.int64())]))
    return found


def file(number: int = 0) -> DataFile:
    return DataFile(f"memory://d/{number}.parquet", "parquet", 1, 10)


def wrap_writes(catalog: Catalog, around: Callable[[str, Callable[[], None]], None]) -> None:
    real = catalog.storage.write

    def write(location: str, data: bytes) -> None:
        around(location, lambda: real(location, data))

    catalog.storage.write = write  # type: ignore[method-assign]  # to see and delay what is written


def wrap_swap(catalog: Catalog, before: Callable[[], None]) -> None:
    assert isinstance(catalog, PointerCatalog)
    pointers = catalog._table_pointers
    real = pointers.swap

    def swap(identifier: Identifier, expected: str, location: str, seal: Seal | None = None) -> bool:
        before()
        return real(identifier, expected, location, seal)

    pointers.swap = swap  # type: ignore[method-assign]  # the moment that everything must come before


def metadata_files(table: Table) -> set[str]:
    return {info.location for info in table.storage.list_prefix(f"{table.location()}/metadata")}


@pytest.mark.parametrize("slow", KINDS)
def test_the_swap_waits_for_every_file(catalog: Catalog, slow: str) -> None:
    table = catalog.load_table(NAME)
    done: list[str] = []

    def around(location: str, write: Callable[[], None]) -> None:
        if slow in location:
            time.sleep(0.2)
        write()
        done.append(next(kind for kind in KINDS if kind in location))

    wrap_writes(catalog, around)
    wrap_swap(catalog, lambda: done.append("swap"))
    table.update_snapshot().fast_append([file()])
    assert sorted(done[:3]) == sorted(KINDS)
    assert done[3:] == ["swap"]


def test_the_files_of_a_commit_are_written_side_by_side(catalog: Catalog) -> None:
    table = catalog.load_table(NAME)
    # It opens only when all three are being written at the same time.
    barrier = threading.Barrier(len(KINDS), timeout=20)

    def around(location: str, write: Callable[[], None]) -> None:
        barrier.wait()
        write()

    wrap_writes(catalog, around)
    table.update_snapshot().fast_append([file()])
    assert table.scan().count() == 1


@pytest.mark.parametrize("full", KINDS[:2])
def test_a_file_that_cannot_be_written_rejects_the_commit_and_leaves_nothing(catalog: Catalog, full: str) -> None:
    table = catalog.load_table(NAME)
    before = metadata_files(table)
    swaps: list[None] = []
    failures = iter([StorageError("disk", "no space left on device")])

    def around(location: str, write: Callable[[], None]) -> None:
        # The disk is full once only: another attempt would find room, but must not rely on the file that is missing.
        if full in location and (failure := next(failures, None)) is not None:
            time.sleep(0.1)
            raise failure
        write()

    wrap_writes(catalog, around)
    wrap_swap(catalog, lambda: swaps.append(None))
    with pytest.raises(StorageError, match="no space left"):
        table.update_snapshot().fast_append([file()])
    assert swaps == []
    assert metadata_files(table) == before
    table.update_snapshot().fast_append([file()])
    assert catalog.load_table(NAME).scan().count() == 1


def test_a_transaction_reads_what_it_wrote_itself(catalog: Catalog) -> None:
    table = catalog.load_table(NAME)

    def around(location: str, write: Callable[[], None]) -> None:
        if location.endswith(".avro"):
            time.sleep(0.1)
        write()

    wrap_writes(catalog, around)
    rows = pa.table({"id": [1, 2, 3]})
    with table.transaction() as tx:
        tx.append(rows)
        tx.delete("id = 2")
        tx.append(rows)
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 1, 2, 3, 3]


def test_a_transaction_that_is_given_up_waits_before_it_deletes(catalog: Catalog) -> None:
    table = catalog.load_table(NAME)
    before = metadata_files(table)

    def around(location: str, write: Callable[[], None]) -> None:
        time.sleep(0.1)
        write()

    wrap_writes(catalog, around)
    tx = table.transaction()
    tx.update_snapshot().fast_append([file(1)])
    tx.__exit__(ZeroDivisionError, ZeroDivisionError(), None)
    time.sleep(0.2)
    assert metadata_files(table) == before


def test_commits_share_a_few_threads_and_a_forked_process_has_its_own(catalog: Catalog) -> None:
    def count() -> int:
        return len([each for each in threading.enumerate() if each.name.startswith("icefloe-commit")])

    table = catalog.load_table(NAME)
    for number in range(20):
        table.update_snapshot().fast_append([file(number)])
    assert count() <= 8
    fork = multiprocessing.get_context("fork")
    with warnings.catch_warnings():
        # That forking is risky with threads is what this is about.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = fork.Process(target=table.update_snapshot().fast_append, args=([file(99)],))
        child.start()
    child.join(30)
    assert child.exitcode == 0
