"""What was appended between two snapshots."""

from dataclasses import replace
from typing import Any

import pytest

from icefloe.errors import NoSuchColumnError, NoSuchSnapshotError, StateError
from icefloe.metadata import apply_all, branch, updates as up
from icefloe.partitioning import parse_partition_spec
from icefloe.planning import IncrementalAppendScan
from icefloe.schema import NestedField, Schema
from icefloe.schema.types import LongType, StringType
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.planning.tables import SyntheticTable

SCHEMA = Schema(NestedField(1, "id", LongType(), required=True), NestedField(2, "region", StringType()))


def row(number: int, region: str = "eu") -> dict[int, Any]:
    return {1: number, 2: region}


def appended(table: SyntheticTable, first: int | None = None, last: int | None = None, **more: Any) -> list[str]:
    scan = IncrementalAppendScan(table.metadata, table.storage, first, last, **more)
    tasks = list(scan.plan_files())
    assert all(task.deletes == () for task in tasks)
    return sorted(task.file.file_path for task in tasks)


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_the_range_excludes_its_start_and_includes_its_end(version: int) -> None:
    table = SyntheticTable(SCHEMA, version)
    files = [table.data([row(number)]) for number in range(4)]
    ids = [table.add(file) for file in files]
    names = [file.file_path for file in files]
    assert appended(table) == names
    assert appended(table, ids[0]) == names[1:]
    assert appended(table, ids[0], ids[2]) == names[1:3]
    assert appended(table, None, ids[1]) == names[:2]
    assert appended(table, ids[3], ids[3]) == []


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_only_append_commits_count(version: int) -> None:
    table = SyntheticTable(SCHEMA, version)
    one, replaced, two = table.data([row(1)]), table.data([row(2)]), table.data([row(3)])
    first = table.add(one)
    table.add(replaced, removed=[one], operation="overwrite")
    table.add(two, rewrite=True)
    if allows(version, Feature.DELETE_FILES):
        table.add(table.equality((1,), [(3,)], 0), operation="delete")
    assert appended(table, first) == [two.file_path]
    assert appended(table) == sorted([one.file_path, two.file_path])


def test_filters_and_partitions_prune_as_in_any_scan() -> None:
    table = SyntheticTable(SCHEMA, 2, parse_partition_spec(["region"], SCHEMA))
    first = table.add(table.data([row(1)]))
    kept = table.data([row(5, "us")])
    table.add(kept, table.data([row(7)]), table.data([row(1, "us")]))
    assert appended(table, first, row_filter="region = 'us' and id > 3") == [kept.file_path]
    scan = IncrementalAppendScan(table.metadata, table.storage, first, selected_fields=("id",))
    assert scan.projection().column_names == ("id",)
    assert sum(len(each.tasks) for each in scan.plan_tasks()) == 3
    with pytest.raises(NoSuchColumnError):
        appended(table, first, row_filter="nothing = 1")


def test_an_expired_start_is_known_by_its_child() -> None:
    table = SyntheticTable(SCHEMA, 2)
    first, _ = table.add(table.data([row(1)])), table.add(table.data([row(2)]))
    third = table.data([row(3)])
    second_id = table.metadata.current_snapshot_id
    table.add(third)
    table.metadata = apply_all(table.metadata, [up.RemoveSnapshotsUpdate((first,))], 9)
    assert len(appended(table, first)) == 2
    table.metadata = apply_all(table.metadata, [up.RemoveSnapshotsUpdate((second_id or 0,))], 9)
    with pytest.raises(StateError, match="is not an ancestor"):
        appended(table, first)


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_rows_of_expired_snapshots_are_not_left_out_silently(version: int) -> None:
    table = SyntheticTable(SCHEMA, version)
    ids = [table.add(table.data([row(number)])) for number in range(3)]
    table.metadata = apply_all(table.metadata, [up.RemoveSnapshotsUpdate((ids[0],))], 9)
    with pytest.raises(NoSuchSnapshotError, match=f"{ids[0]} has expired.*scan snapshot {ids[1]}"):
        appended(table)
    assert len(appended(table, ids[0])) == 2


def test_a_snapshot_that_does_not_say_what_it_did_is_not_left_out_silently() -> None:
    table = SyntheticTable(SCHEMA, 1)
    first, second = (table.add(table.data([row(number)])) for number in range(2))
    old, new = table.metadata.snapshots
    table.metadata = table.metadata.evolve(snapshots=(replace(old, summary=None), new))
    with pytest.raises(StateError, match=f"summary of snapshot {first} does not say"):
        appended(table)
    assert len(appended(table, first, second)) == 1


def test_branches() -> None:
    table = SyntheticTable(SCHEMA, 2)
    first = table.add(table.data([row(1)]))
    table.metadata = apply_all(table.metadata, [up.SetSnapshotRefUpdate("work", branch(first))], 9)
    second = table.add(table.data([row(2)]))
    assert len(appended(table, branch="work")) == 1
    with pytest.raises(StateError, match="not in branch 'work'"):
        appended(table, None, second, branch="work")
    with pytest.raises(StateError, match="is not an ancestor"):
        appended(table, second, first)


def test_empty_and_unknown() -> None:
    table = SyntheticTable(SCHEMA, 2)
    assert appended(table) == []
    with pytest.raises(NoSuchSnapshotError, match="the table is empty"):
        appended(table, 5)
    with pytest.raises(NoSuchSnapshotError, match="no snapshot 7"):
        appended(table, None, 7)
    table.add(table.data([row(1)]))
    with pytest.raises(StateError, match="5 is not an ancestor"):
        appended(table, 5)
