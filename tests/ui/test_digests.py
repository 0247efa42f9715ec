"""What pages say of files, partitions and bounds is what the metadata tables say, however they are added up."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, strategies as st

from icefloe.catalog import Catalog
from icefloe.progress import Progress, silent
from icefloe.table import Table
from icefloe.ui import digests
from icefloe.ui.digests import _overlap, digest_column, digest_files, size_bars
from icefloe.ui.figures import change_of, glance, history_of, refs_of, totals_of
from icefloe.ui.partitions import (
    counted_fields,
    digest_partitions,
    partition_filter,
    shown_partition,
    sorted_partitions,
)
from icefloe.ui.properties import shown_properties
from icefloe.ui.reading import first_rows
from tests.ui.lake import HOSTILE


@pytest.fixture
def orders(shown_lake: Catalog) -> Table:
    return shown_lake.load_table("shop.orders")


@pytest.mark.parametrize("where", [None, "content = 0", "record_count > 100", "file_path = 'nothing'"])
def test_files_are_counted_and_ordered_as_the_metadata_table_has_them(
    orders: Table, where: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Batches of few rows, and fewer kept than there are.
    monkeypatch.setattr(digests, "_BUFFERED", 4)
    monkeypatch.setattr(digests, "MOST", 5)
    told: list[Progress] = []
    digest = digest_files(orders, {}, where, told.append)
    files = orders.inspect.files(row_filter=where)
    data = files.filter(pc.equal(files.column("content"), 0))
    sizes = data.column("file_size_in_bytes").to_pylist()
    assert (digest.files, digest.data_files) == (files.num_rows, data.num_rows)
    assert digest.bytes == sum(sizes)
    assert digest.records == sum(data.column("record_count").to_pylist())
    assert sum(count for _, count, _ in size_bars(digest)) == len(sizes)
    assert sum(total for _, _, total in size_bars(digest)) == sum(sizes)
    for power, count, _ in size_bars(digest):
        assert count == sum(2**power <= size < 2 ** (power + 1) for size in sizes)
    for name, order in digests.ORDERS.items():
        if files.num_rows and order is not None:
            every = sorted(files.column(order[0]).to_pylist(), reverse=order[1] == "descending")
            assert digest.first[name].column(order[0]).to_pylist() == every[:5]
    if files.num_rows:
        assert digest.first["listed"].column("file_path").to_pylist() == files.column("file_path").to_pylist()[:5]
        assert told[-1].done == files.num_rows
        assert told[-1].done <= (told[-1].total or 0)


def test_the_filter_of_a_partition_finds_its_files(orders: Table) -> None:
    partitions = digest_partitions(orders, {}, silent)
    for row in sorted_partitions(partitions, "file_count", 0, 5):
        where = f"({partition_filter(row['partition'])}) and content = 0"
        assert orders.inspect.files(row_filter=where).num_rows == row["file_count"]


@pytest.mark.parametrize("value", ["it's", None, 7, True, "a`b", 1.5])
def test_values_of_partitions_are_quoted(value: object) -> None:
    text = partition_filter({"a`b": value})
    assert text.startswith("partition.`a``b`")
    assert ("is null" in text) is (value is None)
    assert "it's" not in text


def test_partitions_by_month_are_shown_as_months(shown_lake: Catalog, tmp_path_factory: pytest.TempPathFactory) -> None:
    import icefloe

    folder = tmp_path_factory.mktemp("months")
    with icefloe.load_catalog("m", type="sql", uri=f"sqlite:///{folder}/c.db", warehouse=str(folder)) as catalog:
        catalog.create_namespace("n")
        table = catalog.create_table("n.t", schema="d date, k string", partition_spec=["months(d)", "k"])
        counted = counted_fields(table.metadata)
        assert shown_partition({"d_month": 681, "k": None}, counted) == "d_month=2026-10 / k=null"
        assert shown_partition(None, counted) == ""


def test_metrics_of_a_column_are_those_of_all_files(orders: Table) -> None:
    digest = digest_column(orders, {}, "id", silent)
    metrics = orders.inspect.data_files().column("readable_metrics").to_pylist()
    assert digest.low == min(each["id"]["lower_bound"] for each in metrics)
    assert digest.high == max(each["id"]["upper_bound"] for each in metrics)
    assert digest.values == sum(each["id"]["value_count"] for each in metrics)
    assert digest.bytes == sum(each["id"]["column_size"] for each in metrics)
    assert digest.overlap is not None
    assert digest.overlap.files == len(metrics)
    by_text = digest_column(orders, {}, "region", silent).overlap
    assert by_text is not None
    # Every file is of one region, so that a region is in as many files as it has.
    counts = pc.value_counts(pa.array([each["region"]["lower_bound"] for each in metrics])).to_pylist()
    assert by_text.mean_depth == pytest.approx(sum(each["counts"] ** 2 for each in counts) / len(metrics))


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20)), min_size=1, max_size=40))
def test_the_depth_of_bounds_is_how_many_ranges_hold_a_place(ranges: list[tuple[int, int]]) -> None:
    starts = np.array([low for low, _ in ranges], np.float64)
    ends = np.array([low + length for low, length in ranges], np.float64)
    overlap = _overlap(starts, ends, "a", "z")
    low, span = starts.min(), (ends.max() - starts.min()) or 1.0
    for number, depth in enumerate(overlap.depths):
        place = low + (number + 0.5) / len(overlap.depths) * span
        assert depth == int(((starts <= place) & (place <= ends)).sum())
    assert overlap.mean_depth == pytest.approx(np.mean([((starts <= at) & (at <= ends)).sum() for at in starts]))
    assert len(overlap.ranges) == len(ranges)


def test_figures_are_those_of_the_summaries(orders: Table) -> None:
    now = totals_of(orders.current_snapshot())
    assert now.rows == orders.scan().count()
    assert now.data_files == orders.inspect.data_files().num_rows
    line = history_of(orders.metadata, orders.metadata.current_snapshot_id)
    assert [each.snapshot_id for each in line][-1] == orders.metadata.current_snapshot_id
    assert change_of(line[0]).added_rows == 600
    assert str(change_of(line[0])).startswith("+600 rows, +")
    states = {ref.name: (ref.ahead, ref.behind) for ref in refs_of(orders.metadata)}
    assert states["audit"] == (1, 2)
    assert states["main"] == (0, 0)
    assert glance(orders.metadata, now).reasons == ["small files"]


def test_a_rewrite_changes_no_rows(tmp_path_factory: pytest.TempPathFactory) -> None:
    import icefloe

    folder = tmp_path_factory.mktemp("rewrite")
    with icefloe.load_catalog("m", type="sql", uri=f"sqlite:///{folder}/c.db", warehouse=str(folder)) as catalog:
        catalog.create_namespace("n")
        table = catalog.create_table("n.t", schema="id long")
        for number in range(3):
            table.append(pa.table({"id": pa.array([number], pa.int64())}))
        table.maintenance.rewrite_data_files(options={"rewrite-all": "true"})
        snapshot = table.current_snapshot()
        assert snapshot is not None
        change = change_of(snapshot)
    assert (change.added_rows, change.removed_rows, change.rewritten_rows) == (0, 0, 3)
    assert str(change).startswith("3 rows rewritten, +1 −3 files")


def test_reading_ends_with_enough_rows_or_when_time_is_up() -> None:
    taken = 0

    def batches(count: int) -> pa.RecordBatchReader:
        def made() -> Iterator[pa.RecordBatch]:
            nonlocal taken
            for _ in range(count):
                taken += 1
                yield pa.record_batch({"a": pa.array([1, 2, 3])})

        return pa.RecordBatchReader.from_batches(pa.schema([("a", pa.int64())]), made())

    some = first_rows(batches(10), 7)
    assert (some.table.num_rows, some.is_whole, taken) == (7, False, 3)
    every = first_rows(batches(2), 6)
    assert (every.table.num_rows, every.is_whole) == (6, True)
    late = first_rows(batches(10), 100, seconds=-1)
    assert (late.table.num_rows, late.is_whole, late.is_late) == (3, False, True)
    assert every.rows()[0] == [1]


def test_values_of_unknown_properties_are_struck_out() -> None:
    shown = shown_properties(
        {
            "write.format.default": "orc",
            "s3.secret-access-key": "x",
            "comment": "see https://user:pass@host/",
            HOSTILE: "x",
            "write.": "x",
            "api-token": "x",
        }
    )
    assert shown["write.format.default"] == "orc"
    assert shown["comment"] == "see https://***@host/"
    assert [key for key, value in shown.items() if value == "***"] == sorted(
        [HOSTILE, "api-token", "s3.secret-access-key", "write."]
    )


def test_health_tells_how_many_manifests_are_read(orders: Table) -> None:
    told: list[Progress] = []
    orders.maintenance.maintain(dry_run=True, progress=told.append)
    assert told[-1].done == told[-1].total == orders.inspect.manifests().num_rows
