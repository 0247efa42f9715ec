"""What a scan gives, in order, with bounded memory, and with nothing left open."""

import gc
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from icefloe.data.in_order import TASKS_PER_WORKER, read_in_order
from icefloe.data.scanning import (
    count,
    read_tasks,
    to_arrow,
    to_arrow_batch_reader,
)
from icefloe.errors import InvalidValueError, LocationNotFoundError, NotInstalledError
from icefloe.planning import FileScanTask
from icefloe.schema import parse_ddl, schema_to_arrow
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.data.tables import PlannedScan, RowTable, numbers

SCHEMA = parse_ddl("id bigint, name string")


def table_of(files: int, rows: int = 3, version: int = 2, location: str | None = None) -> RowTable:
    """A table of several files; ids count on."""
    table = RowTable(SCHEMA, version, location=location)
    for number in range(files):
        table.append(numbers(*range(number * rows, number * rows + rows)))
    return table


def ids(rows: Any) -> list[int]:
    found: list[int] = rows.column("id").to_pylist()
    return found


BEFORE: set[threading.Thread] = set()


@pytest.fixture(autouse=True)
def _threads_of_others() -> None:
    """What other tests of this process left running has nothing to do with these."""
    BEFORE.clear()
    BEFORE.update(threading.enumerate())


def reading_threads() -> list[str]:
    """Threads of reads that are still there; those that write for commits stay for the next one."""
    names = [thread.name for thread in threading.enumerate() if thread not in BEFORE]
    return [name for name in names if name.startswith("icefloe") and not name.startswith("icefloe-commit")]


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_rows_come_in_the_order_of_the_plan(workers: int) -> None:
    scan = table_of(9).scan()
    assert ids(to_arrow_batch_reader(scan, workers=workers, read_ahead_bytes=1).read_all()) == list(range(27))
    assert not reading_threads()


@pytest.mark.parametrize("limit", [0, 1, 3, 4, 26, 27, 100])
def test_a_limit_cuts_the_rows(limit: int) -> None:
    scan = table_of(9).scan(None, limit=limit)
    assert ids(to_arrow(scan)) == list(range(27))[:limit]
    assert count(scan) == min(limit, 27)
    with pytest.raises(InvalidValueError, match="-1"):
        list(read_tasks((), SCHEMA, scan.metadata, scan.storage, limit=-1))


def test_a_limit_stops_the_work() -> None:
    table = table_of(50)
    taken: list[FileScanTask] = []

    def plan() -> Iterator[FileScanTask]:
        for task in table.tasks():
            taken.append(task)
            yield task

    batches = list(read_tasks(plan(), SCHEMA, table.metadata, table.storage, limit=2, workers=2))
    assert [batch.num_rows for batch in batches] == [2]
    assert len(taken) <= 2 * TASKS_PER_WORKER


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_no_rows_have_the_types_of_the_table(version: int) -> None:
    empty = RowTable(SCHEMA, version)
    for rows in (to_arrow(empty.scan()), to_arrow_batch_reader(empty.scan()).read_all(), table_of(2).read("id > 99")):
        assert rows.num_rows == 0
        assert rows.schema.equals(schema_to_arrow(SCHEMA), check_metadata=True)
    assert count(empty.scan()) == 0


def test_an_error_comes_in_its_place_and_closes_everything() -> None:
    table = table_of(6)
    table.storage.delete([table.data[3].file.file_path])
    batches = read_tasks(table.tasks(), SCHEMA, table.metadata, table.storage, workers=3)
    found = [number for _ in range(3) for number in ids(next(batches))]
    with pytest.raises(LocationNotFoundError):
        next(batches)
    assert found == list(range(9))
    assert not reading_threads()


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_rows_are_counted_without_data_files_where_that_is_exact(version: int) -> None:
    table = table_of(3, rows=4, version=version)
    expected = 12
    if allows(version, Feature.DELETE_FILES):
        table.delete_positions({table.data[0].file.file_path: [1, 2], table.data[1].file.file_path: [0]})
        expected = 9
    table.storage.delete([each.file.file_path for each in table.data])
    assert count(table.scan()) == expected
    with pytest.raises(LocationNotFoundError):
        count(table.scan("id = 1"))


def test_rows_deleted_by_equality_are_counted_by_reading() -> None:
    table = table_of(3)
    table.commit([table.equality_file(numbers(1, 99), (1,))])
    assert count(table.scan()) == 8


def test_position_deletes_that_overlap_are_counted_once() -> None:
    table = table_of(1, rows=5)
    path = table.data[0].file.file_path
    table.delete_positions({path: [0, 1]})
    table.delete_positions({path: [1, 2, 77]})
    assert count(table.scan()) == 2 == len(ids(table.read()))


def test_frames_of_libraries_that_are_missing_are_told() -> None:
    scan = table_of(1).scan()
    for name, convert in (("pandas", scan.to_pandas), ("polars", scan.to_polars)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(sys.modules, name, None)
            with pytest.raises(NotInstalledError, match=f"pip install {name}"):
                convert()


def test_duckdb_asks_the_rows() -> None:
    connection = table_of(3).scan("id > 2").to_duckdb("found")
    assert connection.sql("select count(*), min(id) from found").fetchall() == [(6, 3)]
    own = duckdb.connect()
    assert table_of(3).scan().to_duckdb("found", own) is own
    assert own.sql("select sum(id) from found").fetchall() == [(36,)]


# --- nothing stays open -----------------------------------------------------------------------------------------------


def open_files(folder: Path) -> list[str]:
    """The files beneath a folder that this process holds open."""
    found = []
    for number in os.listdir("/proc/self/fd"):
        try:
            place = os.readlink(f"/proc/self/fd/{number}")
        except OSError:
            continue
        if place.startswith(str(folder)):
            found.append(place)
    return found


@pytest.mark.parametrize("workers", [1, 4])
def test_a_stream_that_is_dropped_closes_its_files_and_threads(tmp_path: Path, workers: int) -> None:
    table = table_of(20, rows=5, location=tmp_path.as_uri())
    reader = to_arrow_batch_reader(table.scan(), workers=workers, read_ahead_bytes=1)
    assert not open_files(tmp_path), "nothing is read before it is asked for"
    assert ids(reader.read_next_batch()) == [0, 1, 2, 3, 4]
    assert len(open_files(tmp_path)) <= workers
    del reader
    gc.collect()
    assert not open_files(tmp_path)
    assert not reading_threads()


def test_a_stream_that_is_read_to_its_end_holds_nothing(tmp_path: Path) -> None:
    table = table_of(20, rows=5, location=tmp_path.as_uri())
    reader = to_arrow_batch_reader(table.scan("id >= 0"))
    assert len(ids(reader.read_all())) == 100
    assert not open_files(tmp_path)
    assert not reading_threads()


class Gauge:
    """Batches that know how many of them were read and not yet taken."""

    def __init__(self) -> None:
        self.waiting = 0
        self.most = 0
        self.lock = threading.Lock()

    def read(self, task: int) -> Iterator[Any]:
        for _ in range(10):
            with self.lock:
                self.waiting += 1
                self.most = max(self.most, self.waiting)
            yield pa.record_batch({"task": pa.array([task] * 100)})


def test_a_slow_reader_bounds_what_waits_for_it() -> None:
    gauge, workers, size = Gauge(), 3, 800
    ahead = 2 * size * workers * TASKS_PER_WORKER
    for batch in read_in_order(range(12), gauge.read, workers, ahead):
        time.sleep(0.001)
        assert batch.nbytes == size
        with gauge.lock:
            gauge.waiting -= 1
    # Two for each channel; one more for each thread that holds one it cannot hand over, and the one just taken.
    assert gauge.most <= 2 * workers * TASKS_PER_WORKER + workers + 1


@given(
    st.lists(st.lists(st.integers(0, 9), max_size=4), max_size=12),
    st.integers(1, 4),
    st.sampled_from((None, 1, 100)),
    st.integers(0, 40),
)
def test_batches_are_in_order_whatever_is_read_when(
    tasks: list[list[int]], workers: int, ahead: int | None, stop: int
) -> None:
    closed = []

    def read(task: list[int]) -> Iterator[Any]:
        try:
            for value in task:
                yield pa.record_batch({"value": [value]})
        finally:
            closed.append(id(task))

    batches = read_in_order(iter(tasks), read, workers, ahead)
    found = []
    for batch in batches:
        found.append(batch.column(0)[0].as_py())
        if len(found) == stop:
            break
    batches.close()
    flat = [value for task in tasks for value in task]
    assert found == (flat[:stop] if stop else flat)
    assert not reading_threads()


def test_an_error_of_the_plan_itself_is_raised() -> None:
    table = table_of(2)

    def plan() -> Iterator[FileScanTask]:
        yield table.tasks()[0]
        raise LocationNotFoundError("memory://tables/manifest.avro", "does not exist")

    scan = read_tasks(plan(), SCHEMA, table.metadata, table.storage)
    with pytest.raises(LocationNotFoundError, match=r"manifest\.avro"):
        list(scan)
    assert not reading_threads()


def test_a_planned_scan_is_what_the_functions_ask_for() -> None:
    table = table_of(1)
    scan = PlannedScan(table.metadata, table.storage, columns=table.columns("id"), tasks=table.tasks(), limit=1)
    assert to_arrow(scan).to_pylist() == [{"id": 0}]
