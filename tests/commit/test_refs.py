"""Branches, tags, rollbacks, staged snapshots and picks."""

from collections.abc import Callable

import pytest

from icefloe.commit import Planned
from icefloe.errors import (
    AlreadyExistsError,
    InvalidInputError,
    InvalidPropertyError,
    NoSuchSnapshotError,
    ValidationError,
)
from icefloe.metadata import SnapshotRef, SnapshotRefType
from icefloe.table import Table
from icefloe.table.manage_snapshots import ManageSnapshots
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.commit.tables import BY_REGION, data_file, handle, live_paths, new_table


def filled(version: int, **properties: str) -> tuple[Table, list[int]]:
    """Three commits to `main`, and their snapshot ids."""
    table, _ = new_table(version, BY_REGION, {key.replace("_", "."): value for key, value in properties.items()})
    ids = []
    for name in ("a", "b", "c"):
        made = table.update_snapshot().fast_append([data_file(f"memory://d/{name}", 10, "eu")])
        assert made is not None
        ids.append(made.snapshot_id)
    return table, ids


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_refs_are_made_moved_and_dropped(version: int) -> None:
    table, ids = filled(version)
    table.manage_snapshots().create_branch("dev", ids[0], max_ref_age_ms=5, min_snapshots_to_keep=2).create_tag(
        "v1", ids[1]
    ).commit()
    assert table.refs()["dev"].snapshot_id == ids[0]
    assert table.refs()["dev"].min_snapshots_to_keep == 2
    assert table.refs()["v1"].is_tag
    with table.manage_snapshots() as change:
        change.fast_forward("dev", "main")
        change.replace_tag("v1", ids[0])
        change.set_retention("dev", max_snapshot_age_ms=7)
        change.rename_branch("dev", "next")
    assert table.refs()["next"].snapshot_id == ids[2]
    assert (table.refs()["next"].max_ref_age_ms, table.refs()["next"].max_snapshot_age_ms) == (5, 7)
    assert table.refs()["v1"].snapshot_id == ids[0]
    table.manage_snapshots().remove_branch("next").remove_tag("v1").commit()
    assert list(table.refs()) == ["main"]


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_impossible_changes_of_refs_change_nothing(version: int) -> None:
    table, ids = filled(version)
    table.manage_snapshots().create_tag("v1").create_branch("side", ids[0]).commit()
    table.update_snapshot(branch="side").fast_append([data_file(region="eu")])
    before = table.metadata
    impossible: list[tuple[type[Exception], Callable[[ManageSnapshots], ManageSnapshots]]] = [
        (AlreadyExistsError, lambda m: m.create_tag("v1")),
        (AlreadyExistsError, lambda m: m.create_branch("main")),
        (NoSuchSnapshotError, lambda m: m.create_tag("v2", 4711)),
        (NoSuchSnapshotError, lambda m: m.remove_tag("v7")),
        (InvalidInputError, lambda m: m.remove_branch("v1")),
        (InvalidInputError, lambda m: m.remove_branch("main")),
        (InvalidInputError, lambda m: m.create_branch(" ")),
        (NoSuchSnapshotError, lambda m: m.fast_forward("main", "nowhere")),
        (ValidationError, lambda m: m.fast_forward("side", "main")),
        (NoSuchSnapshotError, lambda m: m.set_current_snapshot(4711)),
        (ValidationError, lambda m: m.rollback_to_snapshot(table.refs()["side"].snapshot_id)),
        (NoSuchSnapshotError, lambda m: m.rollback_to_timestamp(1)),
    ]
    for error, change in impossible:
        with pytest.raises(error):
            change(table.manage_snapshots()).commit()
        assert table.refresh().metadata == before
    with pytest.raises(InvalidInputError, match="is a tag"):
        table.update_snapshot(branch="v1").fast_append([data_file(region="eu")])
    empty, _ = new_table(version)
    with pytest.raises(NoSuchSnapshotError, match="none yet"):
        empty.manage_snapshots().create_tag("v1").commit()


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_main_goes_back_and_the_log_tells(version: int) -> None:
    table, ids = filled(version)
    table.manage_snapshots().rollback_to_snapshot(ids[0]).commit()
    assert live_paths(table) == ["memory://d/a"]
    assert [each.snapshot_id for each in table.history()] == [*ids, ids[0]]
    table.manage_snapshots().set_current_snapshot(ids[2]).commit()
    second = table.metadata.snapshot(ids[2])
    table.manage_snapshots().rollback_to_timestamp(second.timestamp_ms).commit()
    current = table.current_snapshot()
    assert current is not None
    assert current.snapshot_id == ids[1]
    table.update_snapshot().fast_append([data_file("memory://d/d", region="eu")])
    assert live_paths(table) == ["memory://d/a", "memory://d/b", "memory://d/d"]
    if allows(version, Feature.SEQUENCE_NUMBERS):
        assert table.metadata.last_sequence_number == 4


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_a_rollback_does_not_undo_a_commit_that_nobody_saw(version: int) -> None:
    table, ids = filled(version)
    other = handle(table._committer)
    with table.transaction() as tx:
        tx.manage_snapshots().rollback_to_snapshot(ids[0]).commit()
        other.update_snapshot().fast_append([data_file("memory://d/new", region="eu")])
        with pytest.raises(ValidationError, match="moved by another commit"):
            tx.commit_transaction()
    assert "memory://d/new" in live_paths(table.refresh())


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_staged_snapshots_are_published_once(version: int) -> None:
    table, _ = filled(version, write_wap_enabled="true")
    staged = table.update_snapshot(snapshot_properties={"wap.id": "w1"}).fast_append(
        [data_file("memory://d/w", region="us")]
    )
    assert staged is not None
    assert staged.summary is not None
    assert staged.summary["wap.id"] == "w1"
    assert live_paths(table) == ["memory://d/a", "memory://d/b", "memory://d/c"]
    table.update_snapshot().fast_append([data_file("memory://d/x", region="eu")])
    table.manage_snapshots().cherrypick(staged.snapshot_id).commit()
    made = table.current_snapshot()
    assert made is not None
    assert made.summary is not None
    assert made.summary["source-snapshot-id"] == str(staged.snapshot_id)
    assert made.summary["published-wap-id"] == "w1"
    assert live_paths(table) == ["memory://d/a", "memory://d/b", "memory://d/c", "memory://d/w", "memory://d/x"]
    with pytest.raises(ValidationError, match="it already was"):
        table.manage_snapshots().cherrypick(staged.snapshot_id).commit()
    with pytest.raises(ValidationError, match="already published"):
        table.update_snapshot(snapshot_properties={"wap.id": "w1"}).fast_append([data_file(region="us")])


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_the_next_snapshot_after_the_head_is_picked_as_it_is(version: int) -> None:
    table, _ = filled(version, write_wap_enabled="true")
    staged = table.update_snapshot(stage_only=True).delete("region = 'eu'")
    assert staged is not None
    table.manage_snapshots().cherrypick(staged.snapshot_id).commit()
    assert table.current_snapshot() == staged
    with pytest.raises(ValidationError, match="already in the branch"):
        table.manage_snapshots().cherrypick(staged.snapshot_id).commit()
    other = table.update_snapshot(stage_only=True).overwrite(None, row_filter=True, add=[data_file(region="us")])
    assert other is not None
    replaced = table.update_snapshot(stage_only=True).replace_partitions(
        [data_file("memory://d/r", region="eu")], Planned.on(table.metadata)
    )
    assert replaced is not None
    table.update_snapshot().fast_append([data_file("memory://d/us", region="us")])
    table.manage_snapshots().cherrypick(replaced.snapshot_id).commit()
    assert live_paths(table) == ["memory://d/r", "memory://d/us"]
    again = table.update_snapshot(stage_only=True).replace_partitions([data_file(region="eu")], None)
    assert again is not None
    table.update_snapshot().fast_append([data_file(region="eu")])
    with pytest.raises(ValidationError, match="may affect"):
        table.manage_snapshots().cherrypick(again.snapshot_id).commit()


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_what_is_neither_append_nor_replacement_is_not_picked(version: int) -> None:
    table, _ = filled(version)
    staged = table.update_snapshot(stage_only=True).delete("region = 'eu'")
    assert staged is not None
    table.update_snapshot().fast_append([data_file(region="us")])
    with pytest.raises(ValidationError, match="cannot be cherry-picked"):
        table.manage_snapshots().cherrypick(staged.snapshot_id).commit()


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_wap_branches(version: int) -> None:
    table, _ = filled(version)
    with pytest.raises(InvalidPropertyError, match=r"write\.wap\.enabled"):
        table.update_snapshot(snapshot_properties={"wap.branch": "audit"})
    table.set_properties({"write.wap.enabled": "true"})
    table.update_snapshot(snapshot_properties={"wap.branch": "audit"}).fast_append(
        [data_file("memory://d/w", region="us")]
    )
    assert live_paths(table) == ["memory://d/a", "memory://d/b", "memory://d/c"]
    table.manage_snapshots().fast_forward("main", "audit").commit()
    assert live_paths(table) == ["memory://d/a", "memory://d/b", "memory://d/c", "memory://d/w"]
    with pytest.raises(InvalidInputError, match="are mutually exclusive"):
        table.update_snapshot(snapshot_properties={"wap.branch": "audit", "wap.id": "1"})
    with pytest.raises(InvalidInputError, match="'other'"):
        table.update_snapshot("other", {"wap.branch": "audit"})


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_a_branch_of_an_empty_table_begins_with_an_empty_snapshot(version: int) -> None:
    table, committer = new_table(version)
    behind = handle(committer)
    table.manage_snapshots().create_branch("b", min_snapshots_to_keep=3).set_retention("b", 1000).commit()
    assert table.current_snapshot() is None
    [first] = table.snapshots()
    assert table.refs() == {"b": SnapshotRef(first.snapshot_id, SnapshotRefType.BRANCH, 3, None, 1000)}
    table.update_snapshot(branch="b").fast_append([data_file("memory://d/a")])
    assert live_paths(table, table.refs()["b"].snapshot_id) == ["memory://d/a"]
    # Another who thinks that the table is empty takes what main has by then.
    table.update_snapshot().fast_append([data_file("memory://d/m")])
    behind.manage_snapshots().create_branch("c").commit()
    assert live_paths(behind, behind.refs()["c"].snapshot_id) == ["memory://d/m"]
    with pytest.raises(AlreadyExistsError, match="'b'"):
        behind.manage_snapshots().create_branch("b").commit()


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_a_ref_is_kept_for_longer_wherever_it_is(version: int) -> None:
    table, committer = new_table(version)
    table.update_snapshot().fast_append([data_file("memory://d/a")])
    table.manage_snapshots().create_branch("b").commit()
    behind = handle(committer)
    table.update_snapshot(branch="b").fast_append([data_file("memory://d/b")])
    behind.manage_snapshots().set_retention("b", 1000, min_snapshots_to_keep=3).commit()
    head = table.refs()["b"].snapshot_id
    assert behind.refs()["b"] == SnapshotRef(head, SnapshotRefType.BRANCH, 3, None, 1000)
    table.refresh().manage_snapshots().remove_branch("b").commit()
    with pytest.raises(NoSuchSnapshotError, match="'b'"):
        behind.manage_snapshots().set_retention("b", 2000).commit()
