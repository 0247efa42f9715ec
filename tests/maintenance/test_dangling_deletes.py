"""Dangling deletes: exactly those that no task of a scan has, and none that a file that comes meanwhile needs."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings, strategies as st

from icefloe import Table
from icefloe.commit import Caches, Parent, Planned, Workbench
from icefloe.errors import InvalidInputError, NoSuchSnapshotError, ValidationError
from icefloe.maintenance.deletes.dangling import RemovedDeletes
from icefloe.manifests import ManifestContent
from icefloe.table import Table as Handle
from icefloe.verification import silent
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.commit.tables import (
    BY_REGION,
    data_file,
    entries,
    equality_deletes,
    handle,
    new_table as new_table_of_entries,
)
from tests.maintenance.histories import History, check_same_rows, new_table, rows_of_snapshots, some_rows, steps

WITH_DELETES = [
    pytest.param(version, marks=pytest.mark.slow) if version > 3 else version
    for version in ALL_VERSIONS
    if allows(version, Feature.DELETE_FILES)
]
"""The newest version differs from v3 in nothing that matters here."""
Key = tuple[str, int | None]


def live_deletes(table: Table) -> set[Key]:
    parent = Parent(table.metadata, Workbench(table.storage, Caches(), lambda: 0), table.current_snapshot())
    parts = [parent.read(manifest) for manifest in parent.manifests(ManifestContent.DELETES)]
    files = [file for part in parts for file in part.filter(part.is_live).files()]
    return {(file.file_path, file.content_offset) for file in files}


def needed_deletes(table: Table) -> set[Key]:
    return {(d.file_path, d.content_offset) for task in table.scan().plan_files() for d in task.deletes}


@pytest.mark.parametrize("version", WITH_DELETES)
@settings(max_examples=2, phases=(Phase.generate,), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_what_no_scan_needs_goes_and_rows_stay(
    version: int, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    history = History(new_table(tmp_path_factory.mktemp("dangling"), version))
    history.step("append", 0)
    names = ("append", "delete", "delete equal", "delete equal in a partition", "overwrite", "partition", "unpartition")
    for name, number in data.draw(steps(*names, "upgrade", "drop column", "mode", max_size=10)):
        history.step(name, number)
    # Rows have ids only once something was committed since the upgrade.
    history.step("append", 40)
    table = history.table
    before, expected = rows_of_snapshots(table), live_deletes(table) - needed_deletes(table)
    planned = table.maintenance.remove_dangling_deletes(dry_run=True)
    assert {(file.file_path, file.content_offset) for file in planned.files} == expected, history.steps
    done = table.maintenance.remove_dangling_deletes()
    assert done.removed_delete_files_count == len(expected)
    assert live_deletes(table) == needed_deletes(table)
    check_same_rows(before, table)
    assert table.maintenance.remove_dangling_deletes() == RemovedDeletes()


@pytest.mark.parametrize("version", WITH_DELETES)
def test_a_global_equality_delete_lives_as_long_as_older_data_of_any_spec(version: int) -> None:
    table, _ = new_table_of_entries(version)
    table.update_snapshot().fast_append([data_file("memory://d/plain", 10, ids=(1, 10))])
    with table.update_spec() as spec:
        spec.add_field("region")
    of_region = data_file("memory://d/eu", 10, "eu", (1, 10), spec_id=table.spec().spec_id)
    table.update_snapshot().fast_append([of_region])
    table.update_snapshot().row_delta(None, deletes=[equality_deletes(ids=(1,), spec_id=0, partitioned=False)])
    # No data file of the spec that the delete was written with is left, but an older one of the other spec.
    table.update_snapshot().delete_files(["memory://d/plain"], Planned.on(table.metadata))
    assert table.maintenance.remove_dangling_deletes() == RemovedDeletes()
    table.update_snapshot().delete_files(["memory://d/eu"], Planned.on(table.metadata))
    assert table.maintenance.remove_dangling_deletes().removed_equality_delete_files_count == 1


def filled(version: int) -> Handle:
    """A file of the partition eu, an equality delete for it, and then other rows in its place."""
    table, _ = new_table_of_entries(version, BY_REGION)
    table.update_snapshot().fast_append([data_file("memory://d/old", 10, "eu", (1, 10))])
    table.update_snapshot().row_delta(None, deletes=[equality_deletes(region="eu")])
    table.update_snapshot().overwrite(
        None, row_filter="region = 'eu'", add=[data_file("memory://d/new", 10, "eu", (1, 10))]
    )
    return table


@pytest.mark.parametrize("version", WITH_DELETES)
def test_a_file_that_comes_back_meanwhile_keeps_its_deletes(version: int) -> None:
    table = filled(version)
    other = handle(table._committer)
    planned = table.maintenance.remove_dangling_deletes(dry_run=True)
    assert len(planned.files) == 1
    back = table.history()[1].snapshot_id

    def roll_back(boundary: str) -> None:
        if boundary == "before swap":
            table._committer.fault = lambda boundary: None  # type: ignore[attr-defined]  # of the tests' committer
            other.manage_snapshots().rollback_to_snapshot(back).commit()

    table._committer.fault = roll_back  # type: ignore[attr-defined]  # of the tests' committer
    assert table.maintenance.remove_dangling_deletes() == RemovedDeletes()
    assert table.refresh().metadata.current_snapshot_id == back
    assert len(entries(table, ManifestContent.DELETES)) == 1
    with pytest.raises(ValidationError, match="not dangling any more"):
        planned.run()


@pytest.mark.parametrize("version", WITH_DELETES)
def test_a_plan_removes_what_it_shows(version: int) -> None:
    table = filled(version)
    planned = table.maintenance.remove_dangling_deletes(dry_run=True)
    assert "1 delete files" in str(planned)
    assert "equality_deletes" in planned.to_json()
    assert len(entries(table, ManifestContent.DELETES)) == 1
    done = planned.run()
    assert (done.removed_delete_files_count, done.removed_equality_delete_files_count) == (1, 1)
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert (snapshot.snapshot_id, snapshot.operation) == (done.snapshot_id, "replace")
    assert entries(table, ManifestContent.DELETES) == []


@pytest.mark.parametrize("version", WITH_DELETES)
def test_only_the_branch_that_is_asked_for(version: int) -> None:
    table, _ = new_table_of_entries(version, BY_REGION)
    table.update_snapshot().fast_append([data_file("memory://d/old", 10, "eu")])
    table.update_snapshot().row_delta(None, deletes=[equality_deletes(region="eu")])
    table.manage_snapshots().create_branch("side").commit()
    table.update_snapshot("side").delete("region = 'eu'")
    head = table.metadata.current_snapshot_id
    assert table.maintenance.remove_dangling_deletes() == RemovedDeletes()
    assert table.maintenance.remove_dangling_deletes("side").removed_delete_files_count == 1
    assert table.metadata.current_snapshot_id == head
    assert len(entries(table, ManifestContent.DELETES)) == 1
    assert entries(table, ManifestContent.DELETES, table.refs()["side"].snapshot_id) == []
    with pytest.raises(NoSuchSnapshotError, match="no branch 'sde'; existing branches and tags are main, side"):
        table.maintenance.remove_dangling_deletes("sde")
    table.manage_snapshots().create_tag("fixed").commit()
    with pytest.raises(InvalidInputError, match="is a tag"):
        table.maintenance.remove_dangling_deletes("fixed")


def test_position_delete_files_end_with_a_vector_or_their_data_files(tmp_path: Path) -> None:
    table = new_table(tmp_path, 2)
    table.append(some_rows(table, 0, 4))
    table.append(some_rows(table, 10, 4))
    table.delete("k = 1 or k = 11")
    table.upgrade_format_version(3)
    assert table.maintenance.remove_dangling_deletes() == RemovedDeletes()
    # Vectors take over what the file says of both data files, one after the other.
    table.delete("k = 2")
    assert table.maintenance.remove_dangling_deletes() == RemovedDeletes()
    table.delete("k = 12")
    before = rows_of_snapshots(table)
    done = table.maintenance.remove_dangling_deletes()
    assert (done.removed_position_delete_files_count, done.removed_deletion_vectors_count) == (1, 0)
    check_same_rows(before, table)
    assert len(live_deletes(table)) == 2


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_nothing_to_do(version: int, tmp_path: Path) -> None:
    table = new_table(tmp_path, version)
    assert table.maintenance.remove_dangling_deletes() == RemovedDeletes()
    assert table.maintenance.remove_dangling_deletes(dry_run=True).files == ()
    table.append(some_rows(table, 0))
    table.delete("k = 1")
    snapshots = len(table.snapshots())
    assert table.maintenance.remove_dangling_deletes() == RemovedDeletes()
    assert len(table.refresh().snapshots()) == snapshots
    assert table.verify(level="data", progress=silent).ok
