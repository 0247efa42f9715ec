"""What pays is done, in order, and said; what does not pay is left alone, and why is said, too."""

import json
import os
import subprocess
import time
from dataclasses import asdict, replace
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from icefloe import Table, load_catalog
from icefloe.catalog import Catalog
from icefloe.errors import InvalidInputError, InvalidPropertyError, StateError
from icefloe.maintenance import MaintenancePolicy, PartitionHealth, Step, StepOutcome, TableHealth
from icefloe.maintenance.care.health import ManifestHealth
from icefloe.maintenance.care.lease import NAME, Holder, Lease
from icefloe.maintenance.care.policy import choose_groups, decide, gain
from icefloe.maintenance.deletes.dangling import RemovedDeletes
from icefloe.maintenance.rewrite.file_sizes import FileSizes
from icefloe.maintenance.rewrite.job import RewriteGroup
from icefloe.progress import Progress
from icefloe.sql.procedures import call
from icefloe.verification import silent
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.shared_rows import row_modes
from tests.spark.reading import delete_equal

MIB = 1 << 20
NOW = 1_800_000_000_000
HOUR = 3_600_000
FUTURE = 32_503_680_000_000
SETTLED = {"maintenance.rewrite.quiet-ms": 0, "maintenance.rewrite.cooldown-ms": 0}


def policy(**properties: object) -> MaintenancePolicy:
    return MaintenancePolicy.of({}, {f"maintenance.{key}": value for key, value in properties.items()})


def health_of(*partitions: PartitionHealth, **changes: object) -> TableHealth:
    empty = TableHealth(
        snapshot_id=1,
        format_version=2,
        now_ms=NOW,
        sizes=FileSizes.of({}, 512 * MIB),
        partitions=partitions,
        data_manifests=ManifestHealth(),
        delete_manifests=ManifestHealth(),
        dangling=RemovedDeletes(),
        snapshots=1,
        oldest_snapshot_ms=NOW,
        refs=1,
        metadata_log=0,
        statistics_files=0,
        partition_statistics_files=0,
        manifest_target=8 * MIB,
        has_statistics=False,
    )
    return replace(empty, **changes)  # type: ignore[arg-type]


def due(health: TableHealth, chosen: MaintenancePolicy | None = None) -> list[Step]:
    decisions = decide(health, chosen or policy())
    assert [each.step for each in decisions] == list(Step), "every step is decided on, in order"
    assert all(each.reason for each in decisions)
    return [each.step for each in decisions if each.is_due]


SMALL = PartitionHealth(
    0, "p=1", data_files=100, data_bytes=MIB, records=100, small_files=100, changed_ms=NOW - 2 * HOUR
)


def test_a_table_that_is_well_needs_nothing() -> None:
    assert due(health_of()) == []
    well = PartitionHealth(0, "p=1", data_files=2, data_bytes=1024 * MIB, records=100, changed_ms=0, overlap_depth=1.0)
    assert due(health_of(well)) == []


def test_small_files_are_compacted_unless_hot() -> None:
    assert due(health_of(SMALL)) == [Step.COMPACT]
    assert due(health_of(SMALL), policy(**{"rewrite.enabled": False})) == []
    for hot in (replace(SMALL, changed_ms=NOW - HOUR // 2), replace(SMALL, maintained_ms=NOW - 2 * HOUR)):
        assert due(health_of(hot)) == []
        assert due(health_of(replace(hot, small_files=1000))) == [Step.COMPACT]
    assert due(health_of(replace(SMALL, small_files=1))) == []


def test_deletes_are_due_when_they_delete_much_or_nothing() -> None:
    large = replace(SMALL, small_files=0, deletion_vectors=2, vector_deletes=30)
    some = health_of(large, delete_manifests=ManifestHealth(1, 10, 2))
    assert due(some) == [Step.COMPACT, Step.DANGLING_DELETES]
    assert due(replace(some, partitions=(replace(large, vector_deletes=29),))) == []
    assert due(health_of(dangling=RemovedDeletes(3))) == [Step.DANGLING_DELETES]
    assert due(health_of(dangling=RemovedDeletes(3)), policy(**{"deletes.enabled": False})) == []


def test_equality_and_position_deletes() -> None:
    keys = replace(SMALL, small_files=0, equality_delete_files=2)
    third = health_of(keys, format_version=3, delete_manifests=ManifestHealth(1, 10, 2))
    assert due(third) == [Step.CONVERT, Step.DANGLING_DELETES]
    assert due(replace(third, format_version=2)) == []
    assert due(replace(third, partitions=(replace(keys, changed_ms=NOW),))) == []
    assert due(third, policy(**{"deletes.convert-equality": False})) == []
    assert due(replace(third, dangling=RemovedDeletes(2, 0, 2))) == [Step.DANGLING_DELETES]
    positions = replace(SMALL, small_files=0, position_delete_files=4)
    assert due(health_of(positions)) == []
    assert due(health_of(positions, format_version=3)) == [Step.POSITION_DELETES]
    assert due(health_of(replace(positions, position_delete_files=5))) == [Step.POSITION_DELETES]


def test_orphans_only_if_asked_for() -> None:
    assert due(health_of(), policy(**{"orphans.enabled": True})) == [Step.ORPHANS]
    assert due(health_of(), MaintenancePolicy.of({"gc.enabled": "false", "maintenance.orphans.enabled": "true"})) == []


def test_overlapping_files_are_sorted() -> None:
    well = PartitionHealth(0, "p=1", data_files=9, data_bytes=9 << 29, records=100, changed_ms=0, overlap_depth=4.0)
    assert due(health_of(well)) == [Step.SORT]
    assert due(health_of(replace(well, overlap_depth=3.9))) == []
    assert due(health_of(replace(well, maintained_ms=NOW - HOUR))) == []


def test_manifests_expiry_and_statistics() -> None:
    thin = ManifestHealth(21, 21 * MIB, 100, ("spec 0: 21 manifests hold what fits into 3",))
    assert due(health_of(data_manifests=thin)) == [Step.MANIFESTS]
    assert due(health_of(delete_manifests=thin)) == [Step.MANIFESTS]
    assert due(health_of(data_manifests=replace(thin, count=20))) == []
    assert due(health_of(data_manifests=replace(thin, bytes=21 * 5 * MIB))) == []
    spread = replace(thin, bytes=21 * 5 * MIB, reasons=("spec 0: partitions are spread over several manifests",))
    assert due(health_of(data_manifests=spread)) == [Step.MANIFESTS]
    old = health_of(snapshots=2, oldest_snapshot_ms=NOW - 6 * 24 * HOUR)
    assert due(old) == [Step.EXPIRE]
    assert due(replace(old, snapshots=1)) == []
    assert due(old, policy(**{"expire.enabled": False})) == []
    assert due(old, MaintenancePolicy.of({"gc.enabled": "false"})) == []
    assert due(health_of(), policy(**{"statistics.enabled": True})) == [Step.STATISTICS]
    assert due(health_of(has_statistics=True), policy(**{"statistics.enabled": True})) == []


def group(number: int, files: int, size: int, partition: str = "p=1") -> RewriteGroup:
    return RewriteGroup(number, 0, partition, tuple(f"f{index}" for index in range(files)), size, 100, 1)


def test_groups_that_pay_come_first_within_the_budget() -> None:
    many, few, dear = group(1, 100, MIB), group(2, 10, MIB), group(3, 2, 300 * MIB)
    chosen = choose_groups([dear, few, many], health_of(SMALL), policy(), 10 * MIB)
    assert chosen.groups == (many, few)
    assert [text.partition(":")[0] for text in chosen.left] == ["p=1 (spec 0, 2 files)"]
    assert "the rewrite costs" in chosen.left[0]
    assert "exceed the budget" in choose_groups([few, many], health_of(SMALL), policy(), MIB).left[0]
    hot = health_of(replace(SMALL, changed_ms=NOW))
    assert "a writer changed it 0 s ago" in choose_groups([many], hot, policy(), MIB).left[0]


@given(st.lists(st.tuples(st.integers(1, 200), st.integers(0, 1000)), max_size=12), st.integers(0, 2000))
def test_the_budget_is_kept_and_nothing_is_lost(parts: list[tuple[int, int]], budget: int) -> None:
    groups = [group(number, files, size * MIB) for number, (files, size) in enumerate(parts)]
    chosen = choose_groups(groups, health_of(SMALL), policy(), budget * MIB)
    assert chosen.bytes == sum(each.size_in_bytes for each in chosen.groups) <= budget * MIB
    assert len(chosen.groups) + len(chosen.left) == len(groups)
    assert all(gain(each, SMALL) * 20 >= 3 * each.size_in_bytes for each in chosen.groups)


def test_a_policy_is_checked() -> None:
    with pytest.raises(
        InvalidInputError,
        match=r"option 'maintenance.rewrite.enable' of a policy is unknown; did you mean 'maintenance.rewrite.enabled'",
    ):
        MaintenancePolicy.of({}, {"maintenance.rewrite.enable": "true"})
    with pytest.raises(InvalidInputError, match=r"option 'gc.enabled' of a policy is unknown"):
        MaintenancePolicy.of({"gc.enabled": "false"}, {"gc.enabled": True})
    with pytest.raises(InvalidPropertyError):
        MaintenancePolicy.of({"maintenance.rewrite.scans-expected": "often"})


def worn(folder: Path, version: int) -> tuple[Catalog, Table]:
    """Many small files, deletes, and one that deletes nothing."""
    catalog = load_catalog("lake", type="memory", warehouse=str(folder))
    catalog.create_namespace("db")
    properties = {"format-version": str(version), "maintenance.manifests.min-count": "2"} | row_modes("merge-on-read")
    table = catalog.create_table("db.t", "k bigint, name string", properties=properties)
    if allows(version, Feature.DELETE_FILES):
        delete_equal(table, {"k": [3]})
    for start in range(0, 60, 10):
        table.append(pa.table({"k": pa.array(range(start, start + 10), pa.int64()), "name": ["x"] * 10}))
    table.delete("k = 5")
    if allows(version, Feature.DELETE_FILES):
        delete_equal(table, {"k": [7]})
    return catalog, table


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_a_run_does_what_is_due_and_a_second_one_nothing(tmp_path: Path, version: int) -> None:
    catalog, table = worn(tmp_path, version)
    before = sorted(table.scan().to_arrow()["k"].to_pylist())
    table.set_properties({"history.expire.max-snapshot-age-ms": "1"})
    plan = table.maintenance.maintain(SETTLED, dry_run=True)
    planned = [each.step for each in plan.decisions if each.is_due]
    assert {Step.COMPACT, Step.MANIFESTS, Step.EXPIRE} <= set(planned)
    assert (Step.CONVERT in planned) == allows(version, Feature.DELETION_VECTORS)
    assert json.dumps(plan.to_json())
    assert str(Step.COMPACT) in str(plan)
    report = plan.run(progress=silent)
    assert report.exit_code == 0, report
    assert [each.step for each in report.steps if each.outcome is StepOutcome.DONE] == planned
    assert json.dumps(report.to_json())
    assert report.after.total("data_files") == 1
    assert report.after.total("small_files") == 1
    assert report.after.dangling == RemovedDeletes()
    assert report.after.snapshots < report.before.snapshots, report
    assert sorted(table.refresh().scan().to_arrow()["k"].to_pylist()) == before
    assert table.verify(level="data", progress=silent).ok
    runs = {each.summary["icefloe.maintain-run"] for each in table.snapshots() if each.summary is not None}
    assert runs == {report.run}
    table.set_properties({"history.expire.max-snapshot-age-ms": "1000000"})
    again = call(catalog, "maintain", ("db.t",), {"options": {key: str(value) for key, value in SETTLED.items()}})
    assert set(again["outcome"].to_pylist()) == {"not due"}
    assert not table.storage.exists(f"{table.location()}/metadata/{NAME}")


def test_position_deletes_statistics_and_orphans(tmp_path: Path) -> None:
    _, table = worn(tmp_path, 2)
    for key in (11, 12, 21, 22):
        table.delete(f"k = {key}")
    before = sorted(table.scan().to_arrow()["k"].to_pylist())
    on = {"maintenance.orphans.enabled": True, "maintenance.statistics.enabled": True}
    report = table.maintenance.maintain({**SETTLED, **on, "maintenance.rewrite.enabled": False}, progress=silent)
    assert report.exit_code == 0, report
    done = [each.step for each in report.steps if each.outcome is StepOutcome.DONE]
    assert {Step.POSITION_DELETES, Step.STATISTICS, Step.ORPHANS} <= set(done)
    assert report.after.total("position_delete_files") == 1
    assert report.after.has_statistics
    assert sorted(table.refresh().scan().to_arrow()["k"].to_pylist()) == before
    assert table.verify(level="data", progress=silent).ok


def test_a_table_may_be_left_alone(tmp_path: Path) -> None:
    _, table = worn(tmp_path, 2)
    table.set_properties({"maintenance.enabled": "false"})
    with pytest.raises(StateError, match=r"is disabled by maintenance\.enabled"):
        table.maintenance.maintain()
    with pytest.raises(InvalidInputError, match="budget must be a non-negative number of bytes, not '10'"):
        table.maintenance.maintain({"maintenance.enabled": True}, budget="10")  # type: ignore[call-overload]  # that is the point
    with pytest.raises(InvalidInputError, match="not -1"):
        table.maintenance.maintain({"maintenance.enabled": True}, budget=-1)


def test_few_small_files_of_a_partition_are_left_and_not_called_done(tmp_path: Path) -> None:
    catalog = load_catalog("lake", type="memory", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", "k bigint", properties={"format-version": "3"} | row_modes("merge-on-read"))
    for number in range(4):
        table.append(pa.table({"k": list(range(number * 10, number * 10 + 10))}))
    table.delete("k = 3")
    step = next(
        step for step in table.maintenance.maintain(SETTLED, progress=silent).steps if step.step is Step.COMPACT
    )
    assert (step.outcome, step.result) == (StepOutcome.NOT_DUE, None)
    assert "4 small files" in step.reason
    assert step.reason.endswith("too few in any partition to rewrite")


def test_nothing_is_rewritten_beyond_the_budget(tmp_path: Path) -> None:
    _, table = worn(tmp_path, 2)
    report = table.maintenance.maintain(SETTLED, budget=10, progress=silent)
    [compact] = [each for each in report.steps if each.step is Step.COMPACT]
    assert "exceed the budget" in compact.left[0]
    assert compact.result is None
    assert "left: " in str(report)


def test_nothing_is_begun_when_the_time_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("icefloe.maintenance.care.maintain._GROUPS_AT_A_TIME", 1)
    catalog = load_catalog("lake", type="memory", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", "k bigint, p int", partition_spec=["p"])
    for _ in range(5):
        table.append(pa.table({"k": [1, 2, 3], "p": pa.array([1, 2, 3], pa.int32())}))
    report = table.maintenance.maintain(SETTLED, max_time=timedelta(microseconds=1), progress=silent)
    assert {each.outcome for each in report.steps} == {StepOutcome.NO_TIME, StepOutcome.NOT_DUE}
    slept: list[Progress] = []

    def slow(progress: Progress) -> None:
        # Manifests are read before the time runs.
        if progress.stage == "rewrite" and not slept:
            slept.append(progress)
            time.sleep(1)

    report = table.maintenance.maintain(SETTLED, max_time=timedelta(seconds=0.9), progress=slow)
    [compact] = [each for each in report.steps if each.step is Step.COMPACT]
    assert compact.left == ("2 file groups: out of time",)
    assert table.refresh().inspect.files().num_rows == 11
    assert StepOutcome.DONE not in {each.outcome for each in report.steps if each.step is not Step.COMPACT}
    assert table.maintenance.maintain(SETTLED, max_time=timedelta(hours=1), progress=silent).exit_code == 0
    assert table.refresh().inspect.files().num_rows == 3
    assert sorted(table.scan().to_arrow()["k"].to_pylist()) == [1] * 5 + [2] * 5 + [3] * 5
    with pytest.raises(InvalidInputError, match="max_time must be a positive duration"):
        table.maintenance.maintain(SETTLED, max_time=timedelta(0))


def test_one_run_at_a_time(tmp_path: Path) -> None:
    _, table = worn(tmp_path, 2)
    lease = Lease.take(table.storage, table.metadata)
    with pytest.raises(StateError, match=f"run {lease.run} maintains the table"):
        table.maintenance.maintain(SETTLED)
    lease.release()
    assert table.maintenance.maintain(SETTLED, progress=silent).exit_code == 0


def test_a_lease_of_a_dead_run_is_taken_over(tmp_path: Path) -> None:
    _, table = worn(tmp_path, 2)
    dead = Lease.take(table.storage, table.metadata)
    for text in (b'{"run": "dead", "expires-at-ms": 5}', b"{"):
        table.storage.write(dead.location, text)
        lease = Lease.take(table.storage, table.metadata)
        dead.refresh()
        dead.release()
        assert lease.run.encode() in table.storage.read(lease.location), "a dead run does not take it back"
        lease.release()
        assert not table.storage.exists(lease.location)


def held_by(process: int | None, **changed: object) -> bytes:
    """A lease that is not over, of another process."""
    holder = {**asdict(Holder.this()), "process": process, **changed}
    return json.dumps({"run": "another", "expires-at-ms": FUTURE, "holder": holder}).encode()


def test_a_lease_is_taken_over_as_soon_as_its_process_is_known_to_have_ended(tmp_path: Path) -> None:
    _, table = worn(tmp_path, 2)
    lease = Lease.take(table.storage, table.metadata)
    other = subprocess.Popen(["sleep", "60"])
    began = Path(f"/proc/{other.pid}/stat").read_text().rpartition(")")[2].split()[19]
    running = held_by(other.pid, began=began)
    elsewhere = held_by(other.pid, began=began, machine="another machine")
    try:
        table.storage.write(lease.location, running)
        with pytest.raises(StateError, match="run another maintains the table"):
            Lease.take(table.storage, table.metadata)
    finally:
        other.kill()
        other.wait()
    table.storage.write(lease.location, elsewhere)
    with pytest.raises(StateError, match="run another maintains the table"):
        Lease.take(table.storage, table.metadata)
    # Its number is that of a process which began later.
    for ended in (running, held_by(os.getpid(), began="1")):
        table.storage.write(lease.location, ended)
        Lease.take(table.storage, table.metadata).release()


def test_a_step_that_fails_does_not_stop_the_others(tmp_path: Path) -> None:
    _, table = worn(tmp_path, 2)
    paths = [task.file.file_path for task in table.scan().plan_files()]
    list(table.storage.delete(paths[:1]))
    report = table.maintenance.maintain(SETTLED, progress=silent)
    outcomes = {each.step: each.outcome for each in report.steps}
    assert outcomes[Step.COMPACT] is StepOutcome.FAILED
    assert outcomes[Step.MANIFESTS] is StepOutcome.DONE
    assert report.exit_code == 1
