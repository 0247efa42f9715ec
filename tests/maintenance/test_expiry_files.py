"""Expiry and files: what is told before, what is deleted how, and what the next run does for one that was killed."""

import datetime as dt
import json
import random
import uuid
from contextlib import suppress

import pytest
from hypothesis import given, settings, strategies as st

from icefloe import Table, load_catalog
from icefloe.catalog import Catalog
from icefloe.commit import StatisticsChange
from icefloe.data import WriteRequest, write_data_files
from icefloe.errors import CommitFailed, CommitStateUnknown, InvalidInputError, ValidationError
from icefloe.maintenance import reachable_files
from icefloe.metadata import StatisticsFile
from icefloe.progress import Progress
from icefloe.verification import silent
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.catalog import faults
from tests.catalog.faults import Killed, Wire, wired
from tests.maintenance.histories import (
    History,
    check_same_rows,
    new_table as table_with_columns,
    rows_of_snapshots,
    steps,
)
from tests.shared_rows import ids_in, rows_of

FUTURE = 32_503_680_000_000
NAME = "db.t"


def new_catalog() -> Catalog:
    """A catalog of its own, in memory."""
    catalog = load_catalog(f"c{uuid.uuid4().hex}", type="memory")
    catalog.create_namespace("db")
    return catalog


def new_table(version: int = 3, catalog: Catalog | None = None) -> Table:
    properties = {"format-version": str(version), "write.delete.mode": "merge-on-read"}
    return (catalog or new_catalog()).create_table(NAME, "id BIGINT", properties=properties)


def stored(table: Table) -> set[str]:
    """All files of the table but metadata files, which nobody counts."""
    files = {info.location for info in table.storage.list_prefix(str(table.location()))}
    return {location for location in files if not location.endswith(".metadata.json")}


def needed(table: Table) -> set[str]:
    files = reachable_files(table.metadata, table.metadata_location, table.storage)
    return set(files.all()) - set(files.metadata)


def check_exact(table: Table) -> None:
    """The table has the files that it needs, and no others."""
    assert stored(table.refresh()) == needed(table)
    report = table.verify(level="data", progress=silent)
    assert report.ok, report


def last_id(table: Table) -> int:
    return table.snapshots()[-1].snapshot_id


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_a_plan_says_what_goes_and_its_run_does_just_that(version: int) -> None:
    table = new_table(version)
    for number in range(4):
        table.overwrite(rows_of(number))
    table.manage_snapshots().create_branch("old", table.snapshots()[0].snapshot_id).commit()
    table.manage_snapshots().set_retention("old", max_ref_age_ms=1).commit()
    before, location = stored(table), table.metadata_location
    plan = table.maintenance.expire_snapshots(older_than=FUTURE, retain_last=2, dry_run=True)
    assert (stored(table), table.refresh().metadata_location) == (before, location)
    assert [name for name, _ in plan.refs] == ["old"]
    assert json.loads(plan.to_json())["files"]["data"] == plan.counts[0] == len(plan.snapshot_ids)
    assert "1 refs (old)" in str(plan)
    sizes = {info.location: info.size for info in table.storage.list_prefix(str(table.location()))}
    assert plan.bytes == sum(sizes[each] for each in plan.locations)
    # What came after the plan is not touched.
    table.overwrite(rows_of(9))
    done = plan.run()
    assert set(done.snapshot_ids) == set(plan.snapshot_ids)
    assert (done.counts, done.deleted_bytes, done.refs) == (plan.counts, plan.bytes, ("old",))
    assert before - stored(table) == set(plan.locations)
    check_exact(table)


def test_a_plan_that_does_not_hold_any_more_is_refused() -> None:
    table = new_table()
    for number in range(3):
        table.overwrite(rows_of(number))
    plan = table.maintenance.expire_snapshots(older_than=FUTURE, dry_run=True)
    table.manage_snapshots().create_tag("needed", plan.snapshot_ids[0]).commit()
    with pytest.raises(ValidationError, match="'needed' now refers to snapshot"):
        plan.run()
    check_exact(table)


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_metadata_files_alone(version: int) -> None:
    table = new_table(version)
    for number in range(3):
        table.overwrite(rows_of(number))
    data = {location for location in stored(table) if location.endswith(".parquet")}
    done = table.maintenance.expire_snapshots(older_than=FUTURE, cleanup="metadata")
    assert (done.deleted_data_files_count, done.deleted_manifest_lists_count) == (0, 2)
    assert done.deleted_manifest_files_count >= 2
    assert stored(table) == needed(table) | data


def test_what_nothing_was_said_about_is_refused() -> None:
    table = new_table()
    table.overwrite(rows_of(1))
    table.overwrite(rows_of(2))
    for bad in (0, -1):
        with pytest.raises(InvalidInputError, match="max_concurrent_deletes"):
            table.maintenance.expire_snapshots(older_than=FUTURE, max_concurrent_deletes=bad)
    with pytest.raises(InvalidInputError, match="'all', 'metadata' or 'none'"):
        table.maintenance.expire_snapshots(older_than=FUTURE, cleanup="some")  # type: ignore[call-overload]  # refused
    assert len(table.refresh().snapshots()) == 2
    assert table.maintenance.expire_snapshots(older_than=FUTURE, max_concurrent_deletes=1).deleted_data_files_count == 1


def test_a_time_to_come_takes_snapshots_of_this_very_moment() -> None:
    table = new_table()
    for number in range(5):
        table.overwrite(rows_of(number))
    now = table.snapshots()[-1].timestamp_ms
    table.maintenance.expire_snapshots(older_than=now + 1)
    assert len(table.snapshots()) == 1
    table.overwrite(rows_of(9))
    table.maintenance.expire_snapshots(older_than=table.snapshots()[0].timestamp_ms)
    assert len(table.snapshots()) == 2
    check_exact(table)


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_files_of_a_staged_snapshot_stay_after_it_was_picked(version: int) -> None:
    table = new_table(version)
    table.append(rows_of(1))
    files = write_data_files(rows_of(2), WriteRequest(table.metadata, table.storage))
    table.update_snapshot(stage_only=True).fast_append(files)
    staged = last_id(table)
    table.append(rows_of(3))
    table.manage_snapshots().cherrypick(staged).commit()
    table.append(rows_of(4))
    # The picked file has other numbers in the manifest that stays than in the one that goes.
    done = table.maintenance.expire_snapshots(older_than=FUTURE)
    assert staged in done.snapshot_ids
    assert ids_in(table) == [1, 2, 3, 4]
    check_exact(table)


@pytest.mark.parametrize("version", ALL_VERSIONS)
@pytest.mark.parametrize("new_spec", [False, True])
def test_a_file_that_was_removed_and_added_again_stays(version: int, new_spec: bool) -> None:
    table = new_table(version)
    table.append(rows_of(1))
    (file,) = (task.file.file_path for task in table.scan().plan_files())
    table.append(rows_of(2))
    table.delete("id = 1")
    if new_spec:
        with table.update_spec() as spec:
            spec.add_field("id", "identity")
    table.add_files([file])
    table.maintenance.expire_snapshots(older_than=FUTURE)
    assert ids_in(table) == [1, 2]
    check_exact(table)


@pytest.mark.parametrize("version", [each for each in ALL_VERSIONS if allows(each, Feature.DELETION_VECTORS)])
def test_a_file_of_vectors_stays_while_one_of_them_is_needed(version: int) -> None:
    table = new_table(version)
    for first in (0, 10):
        table.append(rows_of(first, first + 1, first + 2))
    table.delete("id = 1 or id = 11")
    table.delete("id = 2")
    done = table.maintenance.expire_snapshots(older_than=FUTURE)
    assert done.deleted_position_delete_files_count == 0
    assert ids_in(table) == [0, 10, 12]
    table.overwrite(rows_of(5))
    done = table.maintenance.expire_snapshots(older_than=FUTURE)
    assert done.deleted_position_delete_files_count == 2
    check_exact(table)


def test_statistics_go_when_no_entry_names_them() -> None:
    table = new_table()
    for number in range(3):
        table.overwrite(rows_of(number))
    first, second, third = (each.snapshot_id for each in table.snapshots())
    shared, own = (f"{table.location()}/metadata/{name}.stats" for name in ("shared", "own"))
    for location in (shared, own):
        table.storage.write(location, b"PFA1")
    for snapshot_id, location in ((first, own), (second, shared), (third, shared)):
        statistics = StatisticsFile(snapshot_id, location, 4, 4, ())
        with table.transaction() as changes:
            changes.update_statistics(StatisticsChange(set_files=(statistics,)))
    done = table.maintenance.expire_snapshots(older_than=FUTURE)
    assert done.deleted_statistics_files_count == 1
    assert stored(table) == needed(table)
    assert table.storage.exists(shared)


def test_progress_is_told() -> None:
    table = new_table()
    for number in range(3):
        table.overwrite(rows_of(number))
    told: list[Progress] = []
    table.maintenance.expire_snapshots(older_than=FUTURE, progress=told.append)
    assert {each.stage for each in told} == {"lists", "manifests", "delete"}
    assert all(max(each.done for each in told if each.stage == stage) > 0 for stage in ("lists", "delete"))


def test_manifests_that_stay_are_read_only_until_all_files_are_met() -> None:
    table = new_table()
    table.set_properties({"commit.manifest.min-count-to-merge": "3"})
    table.append(rows_of(0))
    (old,) = table.inspect.manifests().to_pylist()
    with table.update_spec() as spec:
        spec.add_field("id", "bucket[2]")
    for number in range(4):
        table.append(rows_of(number))
    strange = stored(table) - needed(table)
    for dead in (False, True):
        wire = Wire()
        watched = wired(load_of(table), wire).load_table(NAME)
        if dead:
            table.refresh().delete("id = 3")
        wire.begin()
        done = watched.refresh().maintenance.expire_snapshots(older_than=FUTURE)
        read = [step.what for step in wire.steps if step.action == "read"]
        # To know that a file is dead, all that stays must be read; those that were merged are met at once.
        assert (done.deleted_data_files_count, old["path"] in read) == (int(dead), dead)
        assert len(read) == len(set(read))
    assert stored(table.refresh()) == needed(table) | strange


def load_of(table: Table) -> Catalog:
    return table._committer._catalog  # type: ignore[attr-defined,no-any-return]  # the catalog lives in memory alone


def history(version: int) -> Table:
    """A table with files of all kinds that go with its first snapshots."""
    table = new_table(version)
    table.append(rows_of(1, 2))
    table.append(rows_of(3))
    table.delete("id = 1")
    table.manage_snapshots().create_tag("kept").commit()
    table.overwrite(rows_of(4))
    table.append(rows_of(5))
    return table


def run_killed(table: Table, fault: faults.Fault, at: int) -> int:
    wire = Wire(fault, at)
    expiring = wired(load_of(table), wire).load_table(NAME)
    wire.begin()
    with suppress(Killed):
        expiring.maintenance.expire_snapshots(older_than=FUTURE)
    return len(fault.places(wire.steps))


def check_finished(table: Table, at: int) -> None:
    refs = {"main": [4, 5], "kept": [2, 3]}
    assert {ref: ids_in(table.refresh(), ref=ref) for ref in refs} == refs
    done = table.maintenance.expire_snapshots(older_than=FUTURE)
    assert done.problem is None
    assert {ref: ids_in(table, ref=ref) for ref in refs} == refs, at
    check_exact(table)


def test_the_next_run_finishes_one_that_was_killed() -> None:
    rng = random.Random(7)
    version = rng.choice(ALL_VERSIONS)
    count = run_killed(history(version), faults.KILL_BEFORE, -1)
    for at in rng.sample(range(count), 4):
        table = history(version)
        run_killed(table, faults.KILL_BEFORE, at)
        check_finished(table, at)


@pytest.mark.slow
@pytest.mark.parametrize("fault", [faults.KILL_BEFORE, faults.KILL_AFTER])
@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_the_next_run_finishes_one_that_was_killed_at_any_step(version: int, fault: faults.Fault) -> None:
    for at in range(run_killed(history(version), fault, -1)):
        table = history(version)
        run_killed(table, fault, at)
        check_finished(table, at)


def test_files_that_were_kept_on_purpose_are_not_finished() -> None:
    table = history(3)
    before = stored(table)
    table.maintenance.expire_snapshots(older_than=FUTURE, delete_files=False)
    table.maintenance.expire_snapshots(older_than=FUTURE)
    assert before <= stored(table)


def test_files_that_could_not_be_deleted_are_tried_again() -> None:
    table = history(3)
    wire = Wire(faults.UNDELETABLE, 0)
    expiring = wired(load_of(table), wire).load_table(NAME)
    wire.begin()
    done = expiring.maintenance.expire_snapshots(older_than=FUTURE)
    assert done.failed
    assert (done.deleted_data_files_count, done.deleted_manifest_lists_count) == (0, 0)
    check_finished(table, 0)


@pytest.mark.parametrize("fault", [faults.LOST_REPLY_AND_CATALOG, faults.LOST_REQUEST])
def test_an_unknown_outcome_deletes_nothing_until_it_is_known(fault: faults.Fault) -> None:
    table = history(3)
    table.set_properties({"commit.status-check.num-retries": "1", "commit.status-check.min-wait-ms": "1"})
    before = stored(table)
    wire = Wire(fault, 0)
    expiring = wired(load_of(table), wire).load_table(NAME)
    wire.begin()
    with suppress(CommitStateUnknown, CommitFailed):
        expiring.maintenance.expire_snapshots(older_than=FUTURE)
    assert before <= stored(table)
    check_finished(table, 0)


def test_files_of_staged_snapshots_wait_where_a_catalog_may_miss_a_commit() -> None:
    table = new_table()
    table.append(rows_of(1))
    files = write_data_files(rows_of(2), WriteRequest(table.metadata, table.storage))
    table.update_snapshot(stage_only=True).fast_append(files)
    staged = last_id(table)
    table.overwrite(rows_of(3))
    table.overwrite(rows_of(4))
    table.append(rows_of(5))
    expire = table.maintenance.expire_snapshots
    done = expire(older_than=FUTURE, grace=dt.timedelta(milliseconds=300))
    assert done.held_back == (staged,)
    assert all(table.storage.exists(file.file_path) for file in files)
    assert done.deleted_data_files_count == 1
    # Before the time is over, a run leaves them alone, too.
    assert expire(by_retention=True).deleted_data_files_count == 0
    (intent,) = (each for each in stored(table) if each.endswith(".expiry.json"))
    document = json.loads(table.storage.read(intent))
    table.storage.write(intent, json.dumps(document | {"not-before-ms": 0}).encode())
    # The staged snapshot has the rows of the first one, too.
    assert expire(by_retention=True).deleted_data_files_count == 2
    check_exact(table)


def test_a_broken_intent_is_left_alone() -> None:
    table = history(3)
    location = f"{table.location()}/metadata/expiring/x.expiry.json"
    table.storage.write(location, b"{")
    done = table.maintenance.expire_snapshots(older_than=FUTURE)
    assert done.problem is None
    assert stored(table) == needed(table) | {location}


@pytest.mark.parametrize("version", ALL_VERSIONS)
@given(life=steps(max_size=8), retained=st.integers(1, 3))
@settings(max_examples=3)
def test_any_history_keeps_its_rows_and_exactly_its_files(
    version: int, life: list[tuple[str, int]], retained: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    history = History(table_with_columns(tmp_path_factory.mktemp("life"), version))
    table = history.table
    for name, number in life:
        history.step(name, number)
    before = rows_of_snapshots(table)
    table.maintenance.expire_snapshots(older_than=FUTURE, retain_last=retained)
    check_same_rows(before, table)
    stored_now = stored(table)
    assert needed(table) <= stored_now
    again = table.maintenance.expire_snapshots(older_than=FUTURE, retain_last=retained)
    assert (again.snapshot_ids, again.counts) == ((), (0,) * 6)
    assert stored(table) == stored_now == needed(table)
