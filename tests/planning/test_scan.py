"""Scans as values: which snapshot, schema and columns they mean, what their plans skip, report and leave behind."""

import datetime as dt
import logging
import pickle
import threading
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from icefloe.errors import (
    CorruptFileError,
    InvalidExpressionError,
    InvalidInputError,
    InvalidPropertyError,
    LocationNotFoundError,
    NoSuchColumnError,
    NoSuchSnapshotError,
)
from icefloe.expressions import AlwaysFalse, AlwaysTrue, bind, col
from icefloe.manifests import ManifestCache, encode_manifest_list
from icefloe.metadata import SnapshotLogEntry, apply_all, branch, updates as up
from icefloe.metadata.refs import tag
from icefloe.partitioning import parse_partition_spec
from icefloe.planning import FileScanTask, ScanReport, TableScan
from icefloe.planning.tasks import PlannedTask
from icefloe.schema import NestedField, Schema, StructType
from icefloe.schema.types import LongType, StringType
from icefloe.storage import Storage
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.own_threads import OwnThreads
from tests.planning.tables import SyntheticTable

ID, REGION = NestedField(1, "id", LongType(), required=True), NestedField(2, "region", StringType())
SCHEMA = Schema(ID, REGION)
BY_REGION = parse_partition_spec(["region"], SCHEMA)
PLANNING = "icefloe-planning"


def row(number: int, region: str | None = "eu") -> dict[int, Any]:
    return {1: number, 2: region}


def scan(table: SyntheticTable, row_filter: Any = "", **more: Any) -> TableScan:
    return TableScan(table.metadata, table.storage, row_filter, **more)


def paths(tasks: Iterator[FileScanTask]) -> list[str]:
    return sorted(task.file.file_path for task in tasks)


class CountingStorage(Storage):
    """Counts how often each location is read."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: Counter[str] = Counter()
        self.lock = threading.Lock()

    def read(self, location: str) -> bytes:
        with self.lock:
            self.reads[location] += 1
        return super().read(location)


@pytest.fixture
def two_regions() -> SyntheticTable:
    """Two snapshots, of which each adds a manifest with a file of one region."""
    table = SyntheticTable(SCHEMA, 2, BY_REGION)
    table.add(table.data([row(1), row(2)]))
    table.add(table.data([row(10, "us"), row(20, "us")]))
    return table


# -- snapshots and schemas


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_an_empty_table_has_no_tasks(version: int) -> None:
    table = SyntheticTable(SCHEMA, version)
    assert list(scan(table, "id > 5").plan_files()) == []
    assert list(scan(table).plan_tasks()) == []
    assert scan(table).snapshot() is None
    assert scan(table).report is None


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_snapshots_by_id_ref_and_time(version: int) -> None:
    table = SyntheticTable(SCHEMA, version)
    one, two = table.data([row(1)]), table.data([row(2)])
    first = table.add(one)
    then = table.metadata.snapshot(first).timestamp_ms
    second = table.add(two)
    table.metadata = apply_all(
        table.metadata, [up.SetSnapshotRefUpdate("old", tag(first)), up.SetSnapshotRefUpdate("work", branch(first))], 9
    )
    both = sorted([one.file_path, two.file_path])
    assert paths(scan(table).plan_files()) == both
    assert paths(scan(table).use_ref("main").plan_files()) == both
    assert paths(scan(table, snapshot_id=second).plan_files()) == both
    for past in (
        scan(table, snapshot_id=first),
        scan(table, ref="old"),
        scan(table).use_ref("work"),
        scan(table, as_of=then),
        scan(table).as_of_time(then + 999),
        scan(table).use_snapshot(first),
        scan(table, as_of=dt.datetime.fromtimestamp(then / 1000, dt.UTC)),
    ):
        assert paths(past.plan_files()) == [one.file_path]


def test_the_snapshot_log_need_not_be_sorted(two_regions: SyntheticTable) -> None:
    first, second = (each.snapshot_id for each in two_regions.metadata.snapshots)
    log = (SnapshotLogEntry(second, 2000), SnapshotLogEntry(first, 1000))
    two_regions.metadata = two_regions.metadata.evolve(snapshot_log=log)
    assert scan(two_regions, as_of=1500).snapshot() == two_regions.metadata.snapshot(first)
    assert scan(two_regions, as_of=2500).snapshot() == two_regions.metadata.snapshot(second)


def test_what_is_not_there_is_named(two_regions: SyntheticTable) -> None:
    with pytest.raises(NoSuchSnapshotError, match="no snapshot 5"):
        scan(two_regions).use_snapshot(5)
    with pytest.raises(NoSuchSnapshotError, match="no branch or tag named 'x'; there are: main"):
        scan(two_regions).use_ref("x")
    with pytest.raises(NoSuchSnapshotError, match="was current at 5 ms"):
        list(scan(two_regions, as_of=5).plan_files())
    with pytest.raises(InvalidInputError, match="give only one of snapshot id and ref"):
        list(scan(two_regions, snapshot_id=1, ref="main").plan_files())
    with pytest.raises(InvalidInputError, match="has no time zone"):
        scan(two_regions, as_of=dt.datetime(2026, 1, 1)).snapshot()
    wrong: Any = "yesterday"
    with pytest.raises(InvalidInputError, match="'yesterday'"):
        scan(two_regions, as_of=wrong).snapshot()


def test_time_travel_reads_under_the_schema_of_its_snapshot() -> None:
    table = SyntheticTable(SCHEMA, 2)
    first = table.add(table.data([row(1)]))
    table.evolve_schema(Schema(ID, NestedField(3, "added", LongType())))
    table.metadata = apply_all(
        table.metadata, [up.SetSnapshotRefUpdate("old", tag(first)), up.SetSnapshotRefUpdate("work", branch(first))], 9
    )
    assert scan(table).projection().column_names == ("id", "added")
    assert scan(table, ref="work").projection().column_names == ("id", "added")
    assert scan(table, snapshot_id=first).projection().column_names == ("id", "region")
    assert scan(table, ref="old").projection().column_names == ("id", "region")
    assert len(list(scan(table, "region = 'eu'", snapshot_id=first).plan_files())) == 1
    with pytest.raises(NoSuchColumnError):
        list(scan(table, "region = 'eu'").plan_files())


# -- columns and filters


def test_columns_are_selected_by_name_and_metadata_columns_on_request(two_regions: SyntheticTable) -> None:
    whole = scan(two_regions)
    assert whole.projection() == SCHEMA
    assert whole.select("region").projection().column_names == ("region",)
    assert whole.select("region", "id").select("id").projection().column_names == ("id",)
    chosen = whole.select("id", "_file", "_pos", "_spec_id", "_partition", "_row_id", "_deleted").projection()
    assert [each.name for each in chosen.fields] == [
        "id",
        "_file",
        "_pos",
        "_spec_id",
        "_partition",
        "_row_id",
        "_deleted",
    ]
    partition = chosen.find_field("_partition").field_type
    assert isinstance(partition, StructType)
    assert [each.name for each in partition.fields] == ["region"]
    every = TableScan(two_regions.metadata, two_regions.storage, selected_fields=("*", "_file")).projection()
    assert [each.name for each in every.fields] == ["id", "region", "_file"]
    assert whole.with_case_sensitive(False).select("ID").projection().column_names == ("id",)
    with pytest.raises(NoSuchColumnError, match="_last_updated_sequence_number"):
        whole.select("nothing").projection()


def test_wrong_arguments_are_refused(two_regions: SyntheticTable) -> None:
    wrong: Any = "id"
    with pytest.raises(InvalidInputError, match="tuple of names"):
        scan(two_regions, selected_fields=wrong)
    with pytest.raises(InvalidInputError, match="limit"):
        scan(two_regions, limit=-1)
    with pytest.raises(InvalidPropertyError, match="prune-metrics"):
        list(scan(two_regions, options={"planning.prune-metrics": "perhaps"}).plan_files())
    with pytest.raises(InvalidPropertyError, match="text"):
        list(scan(two_regions, options={"planning.workers": 1}).plan_files())
    with pytest.raises(InvalidExpressionError):
        list(scan(two_regions, "id >").plan_files())
    with pytest.raises(NoSuchColumnError):
        list(scan(two_regions, "nothing = 1").plan_files())


def test_filters_add_up(two_regions: SyntheticTable) -> None:
    found = scan(two_regions).filter("id > 5").filter(col("region") == "us")
    assert found.bound_filter == bind((col("id") > 5) & (col("region") == "us"), SCHEMA)
    assert len(list(found.plan_files())) == 1
    assert list(scan(two_regions, "false").plan_files()) == []


def test_a_scan_is_a_value(two_regions: SyntheticTable) -> None:
    one = scan(two_regions, "id > 5", limit=3)
    list(one.plan_files())
    copied = pickle.loads(pickle.dumps(one))
    assert copied == one
    assert paths(copied.plan_files()) == paths(one.plan_files())
    tasks = list(one.plan_files())
    assert pickle.loads(pickle.dumps(tasks)) == tasks


# -- residuals


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_residuals_are_what_partition_and_metrics_leave_open(version: int) -> None:
    table = SyntheticTable(SCHEMA, version, BY_REGION)
    low, high = table.data([row(1), row(2)]), table.data([row(2), row(9)])
    table.add(low, high)

    def residuals(row_filter: str, **options: str) -> dict[str, Any]:
        return {task.file.file_path: task.residual for task in scan(table, row_filter, options=options).plan_files()}

    assert residuals("region = 'eu'") == {low.file_path: AlwaysTrue(), high.file_path: AlwaysTrue()}
    left = bind(col("id") < 5, SCHEMA)
    assert residuals("region = 'eu' and id < 5") == {low.file_path: AlwaysTrue(), high.file_path: left}
    whole = bind((col("region") == "eu") & (col("id") < 5), SCHEMA)
    kept = residuals("region = 'eu' and id < 5", **{"planning.drop-residuals": "false"})
    assert kept == {low.file_path: whole, high.file_path: whole}


def test_files_that_no_partition_allows_have_the_residual_false(two_regions: SyntheticTable) -> None:
    off = {"planning.prune-partitions": "false", "planning.prune-manifests": "false", "planning.prune-metrics": "false"}
    found = [task.residual for task in scan(two_regions, "region = 'eu'", options=off).plan_files()]
    assert sorted(map(type, found), key=str) == [AlwaysFalse, AlwaysTrue]


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_tasks_hold_what_readers_need(version: int) -> None:
    table = SyntheticTable(SCHEMA, version, BY_REGION)
    file = table.data([row(1), row(2)], split_offsets=(4, 90), key_metadata=b"key")
    table.add(file, table.data([row(3)]))
    (task,) = [each for each in scan(table).plan_files() if each.file.file_path == file.file_path]
    bare = replace(file, value_counts={}, null_value_counts={}, nan_value_counts={}, lower_bounds={}, upper_bounds={})
    first_row_id = task.first_row_id
    assert (first_row_id is not None) == allows(version, Feature.ROW_LINEAGE)
    assert task.file == replace(bare, first_row_id=first_row_id)
    assert (task.spec_id, task.partition, task.start, task.length) == (0, ("eu",), 0, None)
    (kept,) = [each for each in scan(table).with_metrics().plan_files() if each.file.file_path == file.file_path]
    assert kept.file == replace(file, first_row_id=first_row_id)


# -- work that is not done


class Reports:
    """Keeps reports."""

    def __init__(self) -> None:
        self.found: list[ScanReport] = []

    def report(self, report: ScanReport) -> None:
        self.found.append(report)


def test_reports_say_what_was_skipped_and_why(two_regions: SyntheticTable) -> None:
    two_regions.add(two_regions.data([row(3), row(4)]), two_regions.data([row(30), row(40)]))
    reports = Reports()
    found = scan(two_regions, "region = 'eu' and id > 25", reporter=reports)
    assert len(list(found.plan_files())) == 1
    (report,) = reports.found
    assert found.report == report
    counts = report.counts
    assert (counts.data_manifests, counts.manifests_skipped_by_partition, counts.data_manifests_read) == (3, 1, 2)
    assert (counts.data_files, counts.data_files_skipped_by_metrics, counts.result_data_files) == (3, 2, 1)
    assert counts.files_without_residual == 1
    assert report.is_complete
    assert report.seconds_to_first_task is not None
    assert "25" not in report.row_filter
    assert report.row_filter == "(EqualTo(region) and GreaterThan(id))"
    assert report.projected_fields == ("id", "region")


def test_reports_go_to_the_log_by_default(two_regions: SyntheticTable, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "icefloe.planning"):
        list(scan(two_regions).plan_files())
    assert "2 of 2 data files in 2 of 2 data manifests" in caplog.text


def test_a_reporter_that_fails_does_not_disturb_the_scan(
    two_regions: SyntheticTable, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken:
        def report(self, report: ScanReport) -> None:
            raise RuntimeError("no")

    assert len(list(scan(two_regions, reporter=Broken()).plan_files())) == 2
    assert "failed" in caplog.text


def test_each_manifest_is_read_once_and_none_that_is_not_needed(two_regions: SyntheticTable) -> None:
    storage = CountingStorage()
    found = TableScan(two_regions.metadata, storage, "region = 'us'")
    assert len(list(found.plan_files())) == 1
    snapshot = two_regions.metadata.current_snapshot()
    assert snapshot is not None
    needed = next(each for each in two_regions.manifests if each.added_snapshot_id == snapshot.snapshot_id)
    assert storage.reads == {snapshot.manifest_list: 1, needed.manifest_path: 1}


def test_a_shared_cache_saves_reading_again(two_regions: SyntheticTable) -> None:
    storage, cache = CountingStorage(), ManifestCache()
    first = TableScan(two_regions.metadata, storage, cache=cache)
    expected = list(first.plan_files())
    storage.reads.clear()
    assert list(first.plan_files()) == expected
    assert not storage.reads


@pytest.fixture
def many_manifests() -> SyntheticTable:
    table = SyntheticTable(SCHEMA, 2)
    for number in range(24):
        table.add(table.data([row(number)]))
    return table


def test_small_manifests_in_memory_are_looked_at_together(many_manifests: SyntheticTable) -> None:
    cache = ManifestCache()
    first = scan(many_manifests, "id >= 20", cache=cache)
    expected, before = list(first.plan_files()), len(cache)
    with first.plan() or pytest.fail("the table has a snapshot") as plan:
        assert [len(batch) for batch in plan] == [4]
    assert len(cache) == before + 1
    assert list(first.plan_files()) == expected
    assert first.report is not None
    assert first.report.counts.data_manifests_read == 24


def test_a_damaged_entry_among_manifests_in_memory_is_told_with_its_manifest(two_regions: SyntheticTable) -> None:
    table, cache = two_regions, ManifestCache()
    list(scan(table, cache=cache).plan_files())
    place, *_ = list[Any](cache._entries)
    columns = cache.find(place) or pytest.fail("it was read")
    cache.keep(place, columns.with_columns(file_path=pa.nulls(len(columns), pa.string())))
    with pytest.raises(CorruptFileError, match="entries have no file_path") as error:
        list(scan(table, cache=cache).plan_files())
    assert error.value.location == place[0].manifest_path


def test_a_plan_that_is_dropped_leaves_no_threads_and_reads_little(
    many_manifests: SyntheticTable, own_threads: OwnThreads
) -> None:
    storage, reports = CountingStorage(), Reports()
    tasks = TableScan(
        many_manifests.metadata, storage, options={"planning.workers": "3"}, reporter=reports
    ).plan_files()
    next(tasks)
    assert own_threads(PLANNING)
    del tasks
    assert own_threads(PLANNING) == []
    assert len(storage.reads) <= 1 + 2 * 3 + 3
    assert [report.is_complete for report in reports.found] == [False]


def test_tasks_come_in_the_order_of_manifests_however_many_threads(many_manifests: SyntheticTable) -> None:
    found = [
        [task.file.file_path for task in scan(many_manifests, options={"planning.workers": workers}).plan_files()]
        for workers in ("1", "2", "7")
    ]
    assert found[0] == found[1] == found[2]
    assert len(found[0]) == 24


def test_a_limit_stops_the_work(many_manifests: SyntheticTable, own_threads: OwnThreads) -> None:
    storage = CountingStorage()
    limited = TableScan(many_manifests.metadata, storage, limit=2, options={"planning.workers": "4"})
    assert len(list(limited.plan_files())) == 2
    assert sum(storage.reads.values()) <= 1 + 4
    assert own_threads(PLANNING) == []
    assert list(scan(many_manifests, limit=0).plan_files()) == []


def test_a_limit_counts_only_rows_that_are_sure() -> None:
    table = SyntheticTable(SCHEMA, 2)
    files = [table.data([row(1), row(9)]) for _ in range(3)]
    table.add(*files)
    assert len(list(scan(table, "id > 5", limit=1).plan_files())) == 3
    table.add(table.equality((1,), [(1,)], 0))
    assert len(list(scan(table, limit=1).plan_files())) == 3


def test_an_error_in_a_thread_reaches_the_reader(many_manifests: SyntheticTable, own_threads: OwnThreads) -> None:
    lost = many_manifests.manifests[7].manifest_path
    snapshot_id = many_manifests.metadata.current_snapshot_id
    content = many_manifests.storage.read(lost)
    many_manifests.storage.write(lost, content[:-40])
    with pytest.raises(CorruptFileError, match=f"snapshot {snapshot_id}") as cut:
        list(scan(many_manifests, options={"planning.workers": "3"}).plan_files())
    assert cut.value.location == lost
    many_manifests.storage.delete([lost])
    with pytest.raises(LocationNotFoundError, match=f"snapshot {snapshot_id}") as missing:
        list(scan(many_manifests, options={"planning.workers": "3"}).plan_files())
    assert missing.value.location == lost
    assert own_threads(PLANNING) == []


def test_a_missing_manifest_list_is_named(two_regions: SyntheticTable) -> None:
    snapshot = two_regions.metadata.current_snapshot()
    assert snapshot is not None
    assert snapshot.manifest_list is not None
    two_regions.storage.delete([snapshot.manifest_list])
    with pytest.raises(LocationNotFoundError, match=f"snapshot {snapshot.snapshot_id}"):
        list(scan(two_regions).plan_files())


def test_a_plan_can_be_had_in_columns(two_regions: SyntheticTable) -> None:
    plan = scan(two_regions, "region = 'us' or id > 1").plan()
    assert plan is not None
    with plan:
        batches = list(plan)
    assert [len(batch) for batch in batches] == [1, 1]
    found = [task for batch in batches for task in batch.tasks()]
    assert found == list(scan(two_regions, "region = 'us' or id > 1").plan_files())
    assert plan.report.counts.result_data_files == 2


# -- old and new forms of metadata


def test_names_may_differ_in_case_if_asked_to(two_regions: SyntheticTable) -> None:
    assert len(list(scan(two_regions, "ID > 5 and Region = 'us'", case_sensitive=False).plan_files())) == 1
    with pytest.raises(NoSuchColumnError):
        list(scan(two_regions, "ID > 5").plan_files())


@pytest.mark.parametrize("version", [version for version in ALL_VERSIONS if allows(version, Feature.INLINE_MANIFESTS)])
def test_snapshots_may_list_their_manifests_themselves(version: int) -> None:
    table = SyntheticTable(SCHEMA, version, BY_REGION)
    one, two = table.data([row(1)]), table.data([row(2, "us")])
    table.add(one)
    table.add(two)
    inline = tuple(each.manifest_path for each in table.manifests)
    last = replace(table.metadata.snapshots[-1], manifest_list=None, manifests=inline)
    table.metadata = table.metadata.evolve(snapshots=(*table.metadata.snapshots[:-1], last))
    assert paths(scan(table).plan_files()) == sorted([one.file_path, two.file_path])
    assert paths(scan(table, "region = 'us'").plan_files()) == [two.file_path]


@pytest.mark.parametrize("version", [version for version in ALL_VERSIONS if allows(version, Feature.RELATIVE_PATHS)])
def test_relative_paths_are_resolved_everywhere(version: int) -> None:
    table = SyntheticTable(SCHEMA, version)
    file = table.data([row(1), row(2)])
    vector = table.vector(file, [0])
    table.add(file, vector)
    last = table.metadata.snapshots[-1]
    assert last.manifest_list is not None
    short = replace(last, manifest_list=last.manifest_list.removeprefix(f"{table.location}/"))
    # The whole table is somewhere else now, with not a byte of it changed but the table's own location.
    moved = f"{table.location}-moved"
    for stored in list(table.storage.list_prefix(table.location)):
        content = table.storage.read(stored.location)
        table.storage.write(stored.location.replace(table.location, moved, 1), content)
    data = encode_manifest_list(
        [replace(each, manifest_path=each.manifest_path.replace(table.location, moved, 1)) for each in table.manifests],
        version,
        snapshot_id=last.snapshot_id,
        parent_snapshot_id=None,
        sequence_number=last.sequence_number,
        first_row_id=0,
        table_location=moved,
    ).data
    table.storage.write(f"{moved}/{short.manifest_list}", data)
    metadata = table.metadata.evolve(location=moved, snapshots=(short,))
    (task,) = TableScan(metadata, table.storage).plan_files()
    assert task.file.file_path == file.file_path.replace(table.location, moved)
    assert task.deletion_vector is not None
    assert task.deletion_vector.referenced_data_file == task.file.file_path


# -- planners


class FixedPlanner:
    """Stands for a service that plans: it knows the answer, and reads no manifest."""

    def __init__(self, tasks: list[FileScanTask]) -> None:
        self.tasks = tasks
        self.asked: list[TableScan] = []

    def plan_files(self, scan: TableScan) -> Generator[FileScanTask, None, None]:
        self.asked.append(scan)
        yield from self.tasks


def test_another_planner_can_find_the_files(two_regions: SyntheticTable) -> None:
    planner = FixedPlanner(list(scan(two_regions).plan_files())[:1])
    two_regions.storage.delete([each.manifest_path for each in two_regions.manifests])
    asked = scan(two_regions, "region = 'us'", planner=planner)
    assert list(asked.plan_files()) == planner.tasks
    assert [each for combined in asked.select("id").plan_tasks() for each in combined.tasks] == planner.tasks
    assert [(each.row_filter, each.selected_fields) for each in planner.asked] == [
        ("region = 'us'", ("*",)),
        ("region = 'us'", ("id",)),
    ]
    assert asked == scan(two_regions, "region = 'us'")


# -- tasks of many files


@pytest.fixture(scope="module")
def many_files() -> SyntheticTable:
    table = SyntheticTable(SCHEMA, 2, BY_REGION)
    table.add(*(table.data([row(number, "eu" if number % 3 else "us")]) for number in range(2500)))
    return table


@pytest.mark.parametrize("step", [1, 7, -1, 613])
def test_tasks_are_the_same_in_whatever_order_they_are_looked_at(many_files: SyntheticTable, step: int) -> None:
    expected = dict(_regions(many_files))
    tasks = list(scan(many_files).plan_files())
    assert len(tasks) == 2500
    for place in range(0, 2500 * step, step) if abs(step) > 1 else range(2500)[::step]:
        task = tasks[place % 2500]
        assert task.partition == (expected[task.file.file_path],)
    assert [task.file.file_path for task in tasks] == list(expected)


def _regions(table: SyntheticTable) -> Iterator[tuple[str, str]]:
    (manifest,) = table.manifests
    for entry in table.entries_of(manifest):
        yield entry.data_file.file_path, entry.data_file.partition[0]


def test_a_plan_keeps_few_of_the_tasks_that_it_made(many_files: SyntheticTable) -> None:
    plan = scan(many_files).plan()
    assert plan is not None
    (batch,) = list(plan)
    for task in batch.tasks():
        assert task.sequence_number == 1
    assert sum(map(len, batch._recent.blocks.values())) <= 2048


@pytest.mark.parametrize("offsets", [lambda n: None, lambda n: (4,), lambda n: tuple(range(4, 4 + n % 3)) or None])
def test_tasks_that_are_asked_as_they_come_are_the_same(offsets: Callable[[int], tuple[int, ...] | None]) -> None:
    table = SyntheticTable(SCHEMA, 2, BY_REGION)
    rows = ((number, row(number, "eu" if number % 3 else "us")) for number in range(2500))
    table.add(*(table.data([each], split_offsets=offsets(number), key_metadata=b"key") for number, each in rows))
    kinds: list[type] = []
    for task, unasked in zip(scan(table).plan_files(), list(scan(table).plan_files()), strict=True):
        assert task.file.split_offsets == offsets(len(kinds))
        assert type(unasked) is PlannedTask
        assert task == unasked
        kinds.append(type(task))
    assert kinds == [*[PlannedTask] * 1024, *[FileScanTask] * 1476]


def test_tasks_are_made_whole_only_while_most_are_asked(many_files: SyntheticTable) -> None:
    kinds: list[type] = []
    for number, task in enumerate(scan(many_files).plan_files()):
        if number % 10 == 0:
            assert task.file.record_count == 1
        kinds.append(type(task))
    assert kinds == [PlannedTask] * 2500
