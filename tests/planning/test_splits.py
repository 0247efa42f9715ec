"""Files become work of even size: nothing is lost, nothing is read twice, and bins are as full as they may be."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from icefloe.errors import InvalidPropertyError
from icefloe.expressions import AlwaysTrue
from icefloe.manifests import DataFile, FileContent
from icefloe.planning import CombinedScanTask, FileScanTask, TableScan, cut_task, scan_options
from icefloe.planning.tasks import pack_tasks, split_task
from icefloe.schema import NestedField, Schema
from icefloe.schema.types import LongType
from tests.planning.tables import SyntheticTable


def task(
    size: int, offsets: tuple[int, ...] | None = None, file_format: str = "parquet", path: str = "f"
) -> FileScanTask:
    return FileScanTask(DataFile(path, file_format, 10, size, split_offsets=offsets), (), AlwaysTrue(), 1)


def ranges(found: FileScanTask, split_size: int) -> list[tuple[int, int | None]]:
    return [(each.start, each.length) for each in split_task(found, split_size)]


SPLITS = [
    # a split for each offset, whatever the size; the first one starts with the file
    (task(100, (4, 30, 60)), 1000, [(0, 30), (30, 30), (60, 40)]),
    (task(100, (4,)), 10, [(0, None)]),
    # offsets that cannot be true are not used
    (task(100, (4, 200)), 60, [(0, 60), (60, 40)]),
    (task(100, (4, 50, 50)), 60, [(0, 60), (60, 40)]),
    (task(100, (50, 4)), 60, [(0, 60), (60, 40)]),
    (task(100, (-4, 50)), 60, [(0, 60), (60, 40)]),
    (task(100, ()), 60, [(0, 60), (60, 40)]),
    (task(100, None), 60, [(0, 60), (60, 40)]),
    (task(100, None), 100, [(0, None)]),
    (task(0, None), 60, [(0, None)]),
    # formats that cannot be split, and what is split already
    (task(100, (4, 30), "puffin"), 10, [(0, None)]),
    (replace(task(100, (4, 30)), start=30, length=70), 10, [(30, 70)]),
]


@pytest.mark.parametrize(("whole", "split_size", "expected"), SPLITS)
def test_splits(whole: FileScanTask, split_size: int, expected: list[tuple[int, int | None]]) -> None:
    assert ranges(whole, split_size) == expected


CUTS = [
    (task(100, (4, 30, 60, 80)), 2, [(0, 60), (60, 40)]),
    (task(100, (4, 30, 60)), 2, [(0, 30), (30, 70)]),
    (task(100, (4, 30, 60)), 8, [(0, 30), (30, 30), (60, 40)]),
    (task(100, (4,)), 8, [(0, None)]),
    (task(100, (4, 30, 60)), 1, [(0, None)]),
    # without offsets, of even size
    (task(100, None), 3, [(0, 34), (34, 34), (68, 32)]),
    (task(0, None), 3, [(0, None)]),
    (replace(task(100, (4, 30)), start=30, length=70), 4, [(30, 70)]),
]


@pytest.mark.parametrize(("whole", "parts", "expected"), CUTS)
def test_cuts(whole: FileScanTask, parts: int, expected: list[tuple[int, int | None]]) -> None:
    assert [(each.start, each.length) for each in cut_task(whole, parts)] == expected


def pack(tasks: list[FileScanTask], size: int, lookback: int = 10, cost: int = 0) -> list[CombinedScanTask]:
    options = {
        "read.split.target-size": str(size),
        "read.split.planning-lookback": str(lookback),
        "read.split.open-file-cost": str(cost),
    }
    return list(pack_tasks(tasks, scan_options(options, {})))


def sizes(bins: list[CombinedScanTask]) -> list[list[int]]:
    return [[each.data_bytes for each in found.tasks] for found in bins]


def test_bins_are_filled_up_to_the_target() -> None:
    tasks = [task(size, (4,), path=str(place)) for place, size in enumerate((60, 50, 40, 30, 20))]
    assert sizes(pack(tasks, 100)) == [[60, 40], [50, 30, 20]]


def test_the_fullest_bin_goes_first_when_too_many_are_open() -> None:
    tasks = [task(size, (4,), path=str(place)) for place, size in enumerate((60, 90, 70, 30))]
    assert sizes(pack(tasks, 100, lookback=1)) == [[90], [70], [60, 30]]


def test_opening_a_file_has_a_price() -> None:
    tasks = [task(1, (4,), path=str(place)) for place in range(4)]
    assert [len(each.tasks) for each in pack(tasks, 100, cost=50)] == [2, 2]
    delete = DataFile("d", "parquet", 1, 10, FileContent.POSITION_DELETES)
    with_deletes = [replace(each, deletes=(delete,)) for each in tasks]
    assert [len(each.tasks) for each in pack(with_deletes, 100, cost=50)] == [1, 1, 1, 1]


def test_a_vector_weighs_its_blob_only() -> None:
    vector = DataFile(
        "v", "puffin", 1, 10_000, FileContent.POSITION_DELETES, content_offset=4, content_size_in_bytes=40
    )
    assert replace(task(100), deletes=(vector,)).size_bytes == 140


def test_neighbours_in_one_bin_are_joined() -> None:
    (found,) = pack([task(100, (4, 30, 60))], 1000)
    assert [(each.start, each.length, each.is_whole_file) for each in found.tasks] == [(0, 100, True)]


@given(
    files=st.lists(st.tuples(st.integers(0, 300), st.lists(st.integers(0, 300), max_size=4)), max_size=12),
    size=st.integers(1, 200),
    lookback=st.integers(1, 4),
    cost=st.integers(0, 50),
)
def test_every_byte_is_in_exactly_one_task(
    files: list[tuple[int, list[int]]], size: int, lookback: int, cost: int
) -> None:
    tasks = [task(length, tuple(offsets), path=str(place)) for place, (length, offsets) in enumerate(files)]
    bins = pack(tasks, size, lookback, cost)
    found: dict[str, list[tuple[int, int]]] = {}
    for each in (split for combined in bins for split in combined.tasks):
        found.setdefault(each.file.file_path, []).append((each.start, each.start + each.data_bytes))
    assert set(found) == {each.file.file_path for each in tasks}
    for whole in tasks:
        parts = sorted(found[whole.file.file_path])
        assert parts[0][0] == 0
        assert parts[-1][1] == whole.file.file_size_in_bytes
        assert all(one[1] == two[0] for one, two in pairwise(parts))
    for combined in bins:
        assert len(combined.tasks) == 1 or combined.size_bytes <= size


def test_the_table_sets_the_size_and_the_scan_may_change_it() -> None:
    schema = Schema(NestedField(1, "id", LongType()))
    table = SyntheticTable(schema, 2)
    table.metadata = table.metadata.evolve(
        properties={"read.split.target-size": "1500", "read.split.open-file-cost": "0"}
    )
    table.add(*(table.data([{1: number}]) for number in range(4)))
    scan = TableScan(table.metadata, table.storage)
    assert [len(each.tasks) for each in scan.plan_tasks()] == [1, 1, 1, 1]
    wide = scan.with_option("read.split.target-size", "2002")
    assert [len(each.tasks) for each in wide.plan_tasks()] == [2, 2]
    with pytest.raises(InvalidPropertyError, match="open-file-cost"):
        list(scan.with_option("read.split.open-file-cost", "-1").plan_tasks())
    with pytest.raises(InvalidPropertyError, match="target-size"):
        list(scan.with_option("read.split.target-size", "0").plan_tasks())
