"""Health: the figures are those of the files, whatever the partitions, deletes and manifests are like."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from icefloe import Table, load_catalog
from icefloe.catalog import Catalog
from icefloe.commit import Planned
from icefloe.maintenance.statistics.partition_counts import overlap_depth
from icefloe.manifests import ManifestContent
from icefloe.progress import Progress
from icefloe.sql.procedures import call
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.commit.tables import BY_REGION, data_file, entries, equality_deletes, handle, new_table, position_deletes

MIB = 1 << 20
REGIONS = ("eu", "us", None)


def by_definition(table: Table, region: str | None) -> dict[str, int]:
    """The counters of a partition, file by file."""
    files = [each.data_file for each in entries(table) if each.data_file.partition == (region,)]
    data = [file for file in files if file.content == 0]
    small = [file for file in data if file.file_size_in_bytes < 384 * MIB]
    vectors = [file for file in files if file.is_deletion_vector]
    positions = [file for file in files if file.content == 1 and not file.is_deletion_vector]
    equality = [file for file in files if file.content == 2]
    return {
        "data_files": len(data),
        "data_bytes": sum(file.file_size_in_bytes for file in data),
        "records": sum(file.record_count for file in data),
        "small_files": len(small),
        "small_bytes": sum(file.file_size_in_bytes for file in small),
        "large_files": sum(file.file_size_in_bytes > 921 * MIB for file in data),
        "position_delete_files": len(positions),
        "position_deletes": sum(file.record_count for file in positions),
        "deletion_vectors": len(vectors),
        "vector_deletes": sum(file.record_count for file in vectors),
        "equality_delete_files": len(equality),
        "equality_deletes": sum(file.record_count for file in equality),
        "delete_bytes": sum(file.file_size_in_bytes for file in (*positions, *equality))
        + sum(file.content_size_in_bytes or 0 for file in vectors),
    }


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_counts_are_those_of_the_files(version: int) -> None:
    table, _ = new_table(version, BY_REGION)
    sizes = (1000, 500 * MIB, 2000 * MIB)
    for number in range(7):
        files = [
            replace(data_file(region=region, partitioned=True, rows=5 + number), file_size_in_bytes=sizes[number % 3])
            for region in REGIONS[: 1 + number % 3]
        ]
        table.update_snapshot().fast_append(files)
    if allows(version, Feature.DELETE_FILES):
        table.update_snapshot().row_delta(
            None, deletes=[equality_deletes(2, region="eu"), equality_deletes(3, region="us")]
        )
    path = next(each.data_file.file_path for each in entries(table) if each.data_file.partition == ("us",))
    if allows(version, Feature.DELETION_VECTORS):
        table.update_snapshot().row_delta(Planned.on(table.metadata), vectors={path: [1, 2]})
    elif allows(version, Feature.DELETE_FILES):
        table.update_snapshot().row_delta(Planned.on(table.metadata), deletes=[position_deletes(4, region="us")])
    health = table.health()
    read = {row["partition"]: row for row in health.to_arrow().to_pylist()}
    assert set(read) == {"region=eu", "region=us", "region=null"}
    for region in REGIONS:
        row = read[f"region={region or 'null'}"]
        expected = by_definition(table, region)
        assert {name: row[name] for name in expected} == expected
        assert row["spec_id"] == 0
        assert row["changed_ms"] is not None
        assert row["maintained_ms"] is None
    assert health.total("data_files") == len(entries(table, ManifestContent.DATA))
    assert health.snapshots == len(table.metadata.snapshots)
    assert health.data_manifests.entries == health.total("data_files")
    assert str(health).startswith(f"{health.total('data_files')} data files")


def test_what_needs_care_is_said(tmp_path: Path) -> None:
    table = _sorted_table(_catalog(tmp_path))
    for start in (0, 5, 10):
        table.append(pa.table({"id": pa.array(range(start, start + 10), pa.int64()), "name": ["x"] * 10}))
    told: list[Progress] = []
    health = table.maintenance.health(progress=told.append)
    assert [each.done for each in told] == [1, 2, 3]
    [partition] = health.partitions
    assert partition.partition == ""
    # The middle one overlaps with both others.
    assert partition.overlap_depth == pytest.approx((2 + 3 + 2) / 3)
    assert "3 manifests hold what fits into 1" in health.data_manifests.reasons[0]
    assert "3 small and 0 large files" in str(health)
    table.maintenance.rewrite_manifests()
    again = table.maintenance.health()
    assert again.data_manifests.reasons == ()
    assert again.partitions[0].changed_ms == partition.changed_ms, "maintenance is no change of rows"


def test_deletes_that_delete_nothing_are_counted() -> None:
    table, _ = new_table(2, BY_REGION)
    table.update_snapshot().row_delta(None, deletes=[equality_deletes(region="eu")])
    table.update_snapshot().fast_append([data_file(region="eu")])
    assert table.maintenance.health().dangling.removed_equality_delete_files_count == 1


def test_an_empty_table_and_branches(tmp_path: Path) -> None:
    catalog = _catalog(tmp_path)
    table = _sorted_table(catalog)
    health = table.maintenance.health()
    assert health.partitions == ()
    assert health.to_arrow().num_rows == 0
    assert "the table is empty" in str(health)
    table.append(pa.table({"id": pa.array([1], pa.int64()), "name": ["x"]}))
    table.manage_snapshots().create_branch("dev").commit()
    table.append(pa.table({"id": pa.array([2], pa.int64()), "name": ["x"]}), branch="dev")
    assert [table.maintenance.health(name).total("records") for name in (None, "dev")] == [1, 2]
    [row] = call(catalog, "health", ("db.t", "dev")).to_pylist()
    assert (row["data_files"], row["records"], row["overlap_depth"]) == (2, 2, 1.0)


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 5)), min_size=1, max_size=20))
def test_overlap_is_that_of_all_pairs(ranges: list[tuple[int, int]]) -> None:
    pairs = [(low, low + length) for low, length in ranges]
    expected = np.mean([sum(a <= d and c <= b for c, d in pairs) for a, b in pairs])
    low, high = np.array(pairs, np.int64).T
    assert overlap_depth(low, high) == pytest.approx(expected)


def test_another_handle_sees_the_same() -> None:
    table, committer = new_table(2, BY_REGION)
    table.update_snapshot().fast_append([data_file(region="eu")])
    other = handle(committer)
    assert other.maintenance.health().partitions == table.maintenance.health().partitions


def _catalog(folder: Path) -> Catalog:
    catalog = load_catalog("lake", type="memory", warehouse=str(folder))
    catalog.create_namespace("db")
    return catalog


def _sorted_table(catalog: Catalog) -> Table:
    table = catalog.create_table("db.t", "id bigint, name string")
    with table.update_sort_order() as order:
        order.asc("id")
    return table
