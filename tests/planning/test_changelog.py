"""Changes between snapshots equal the naive difference of their rows."""

from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from icefloe.errors import NoSuchSnapshotError, StateError
from icefloe.expressions import AlwaysTrue, Expression, evaluate
from icefloe.metadata import apply_all, updates as up
from icefloe.planning import ChangelogScan, ChangelogScanTask, ChangeType
from icefloe.schema import NestedField, Schema
from icefloe.schema.types import LongType
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.planning.histories import histories, leaves
from tests.planning.tables import SyntheticTable
from tests.strategies import expressions

SCHEMA = Schema(NestedField(1, "id", LongType(), required=True))


def changed_rows(table: SyntheticTable, change: ChangelogScanTask) -> set[tuple[str, int]]:
    """The rows that a reader of the task would give."""
    path = change.task.file.file_path
    found = set(table.surviving(path, change.task.deletes))
    if change.deleted_by is not None:
        found -= set(table.surviving(path, change.deleted_by))
    rows = table.model.rows[path]
    return {(path, position) for position in found if evaluate(change.task.residual, rows[position])}


def by_kind(table: SyntheticTable, changes: list[ChangelogScanTask], kind: ChangeType) -> list[tuple[str, int]]:
    return sorted(row for change in changes if change.change_type is kind for row in changed_rows(table, change))


@pytest.mark.parametrize("version", ALL_VERSIONS)
@settings(max_examples=15)
@given(data=st.data())
def test_changes_are_the_difference_of_rows(version: int, data: st.DataObject) -> None:
    table = data.draw(histories(version)).table
    predicate: Expression = data.draw(st.one_of(st.just(AlwaysTrue()), expressions(leaves(table.schema))))
    options = {"planning.workers": "1"}
    changes = list(ChangelogScan(table.metadata, table.storage, row_filter=predicate, options=options).plan_files())
    before: set[tuple[str, int]] = set()
    for ordinal, snapshot in enumerate(table.metadata.snapshots):
        now = set(table.naive_rows(predicate, snapshot.snapshot_id))
        own = [each for each in changes if each.ordinal == ordinal]
        assert all(each.snapshot_id == snapshot.snapshot_id for each in own)
        assert by_kind(table, own, ChangeType.DELETE) == sorted(before - now)
        files = {
            each.data_file.file_path
            for each in table.live(snapshot.snapshot_id)
            if each.snapshot_id == snapshot.snapshot_id
        }
        # A vector that forgets rows is against the spec, and brings nothing back.
        assert by_kind(table, own, ChangeType.INSERT) == sorted(row for row in now - before if row[0] in files)
        before = now


WITH_DELETES = [version for version in ALL_VERSIONS if allows(version, Feature.DELETE_FILES)]


def rows(*numbers: int) -> list[dict[int, Any]]:
    return [{1: number} for number in numbers]


@pytest.mark.parametrize("version", WITH_DELETES)
def test_rows_are_deleted_once(version: int) -> None:
    table = SyntheticTable(SCHEMA, version)
    file = table.data(rows(1, 2, 3))
    table.add(file)
    table.add(table.equality((1,), [(1,)], 0), operation="delete")
    table.add(table.equality((1,), [(1,), (2,)], 0), operation="delete")
    table.add(removed=[file], operation="delete")
    changes = list(ChangelogScan(table.metadata, table.storage).plan_files())
    found = [
        (each.ordinal, str(each.change_type), sorted(at for _, at in changed_rows(table, each))) for each in changes
    ]
    assert found == [(0, "INSERT", [0, 1, 2]), (1, "DELETE", [0]), (2, "DELETE", [1]), (3, "DELETE", [2])]


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_rewrites_change_nothing(version: int) -> None:
    table = SyntheticTable(SCHEMA, version)
    one, two = table.data(rows(1)), table.data(rows(2))
    first = table.add(one, two)
    table.add(table.data(rows(1, 2)), removed=[one, two], operation="replace")
    assert list(ChangelogScan(table.metadata, table.storage, first).plan_files()) == []
    with pytest.raises(StateError, match="not an ancestor"):
        list(ChangelogScan(table.metadata, table.storage, 5).plan_files())


def test_an_expired_parent_matters_unless_rows_were_only_added() -> None:
    table = SyntheticTable(SCHEMA, 2)
    file = table.data(rows(1))
    first, second = table.add(file), table.add(table.data(rows(2)))
    third = table.add(removed=[file], operation="delete")
    table.metadata = apply_all(table.metadata, [up.RemoveSnapshotsUpdate((first,))], 9)
    found = [str(each.change_type) for each in ChangelogScan(table.metadata, table.storage, first).plan_files()]
    assert found == ["INSERT", "DELETE"]
    table.metadata = apply_all(table.metadata, [up.RemoveSnapshotsUpdate((second,))], 9)
    with pytest.raises(NoSuchSnapshotError, match=f"start the changes after {third}"):
        list(ChangelogScan(table.metadata, table.storage, second).plan_files())
    with pytest.raises(NoSuchSnapshotError, match=f"{second} has expired.*start after it"):
        list(ChangelogScan(table.metadata, table.storage).plan_files())
