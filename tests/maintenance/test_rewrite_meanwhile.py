"""Rewrites of data files among others: what these do meanwhile, what fails, and what killed runs leave."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from icefloe import Table, load_catalog
from icefloe.errors import (
    IncompleteRewriteError,
    StateError,
    ValidationError,
)
from icefloe.maintenance import GroupOutcome, GroupRewrite, RewriteResult
from icefloe.maintenance.rewrite.commits import Commits
from icefloe.maintenance.rewrite.plan import RewriteRequest, plan_rewrite
from icefloe.maintenance.rewrite.run import run_rewrite
from icefloe.verification import Progress
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.maintenance.rewriting import (
    ALL,
    Between,
    check,
    filled,
    keys,
    lineage,
    live_files,
    new_table,
    rows,
    stored_data,
)
from tests.shared_rows import row_modes
from tests.spark.reading import delete_equal


def is_part(work: GroupRewrite, part: str) -> bool:
    return work.tasks[0].partition == (part,)


PARTIAL = {"partial-progress.enabled": "true", "max-concurrent-file-group-rewrites": "1", **ALL}


def test_a_group_whose_files_went_fails_alone_and_leaves_nothing(tmp_path: Path) -> None:
    table = filled(tmp_path)
    other = load_catalog("lake", type="sql", uri=f"sqlite:///{tmp_path}/c.db").load_table("db.t")
    plan = table.maintenance.rewrite_data_files(dry_run=True, options={**PARTIAL, "partial-progress.max-commits": "1"})
    result = run_rewrite(plan, Between(happen=lambda work: drop_part(other) if is_part(work, "b") else None))
    outcomes = {group.partition: group.outcome for group in result.groups}
    assert outcomes == {"part=a": GroupOutcome.COMMITTED, "part=b": GroupOutcome.COMMIT_FAILED}
    assert result.failed_data_files_count == 3
    assert "another commit removed or rewrote it" in str(result.groups[1].reason)
    assert keys(table.refresh()) == [0, 1, 2]
    live = {task.file.file_path for task in table.scan().plan_files()}
    assert {path for path in stored_data(table) if str(result.run) in path} == live
    check(table)


def drop_part(other: Table) -> None:
    other.refresh().set_properties(row_modes("copy-on-write"))
    other.delete("part = 'b'")


def test_without_partial_progress_it_is_all_or_nothing(tmp_path: Path) -> None:
    table = filled(tmp_path)
    other = load_catalog("lake", type="sql", uri=f"sqlite:///{tmp_path}/c.db").load_table("db.t")
    plan = table.maintenance.rewrite_data_files(dry_run=True, options=ALL)
    files = stored_data(table)
    with pytest.raises(ValidationError, match="another commit removed or rewrote it"):
        run_rewrite(plan, Between(happen=lambda work: drop_part(other) if is_part(work, "b") else None))
    assert keys(table.refresh()) == [0, 1, 2]
    assert stored_data(table) <= files
    check(table)


def fail(work: GroupRewrite) -> None:
    if is_part(work, "b"):
        raise OSError("the disk is gone")


def test_a_group_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    table = filled(tmp_path)
    files = stored_data(table)
    plan = table.maintenance.rewrite_data_files(dry_run=True, options=ALL)
    with pytest.raises(OSError, match="the disk is gone"):
        run_rewrite(plan, Between(happen=fail))
    assert stored_data(table) == files
    plan = table.maintenance.rewrite_data_files(dry_run=True, options=PARTIAL)
    steps: list[Progress] = []
    result = run_rewrite(plan, Between(happen=fail), steps.append)
    assert result.counts[3] == 3
    assert [group.outcome for group in result.groups] == [GroupOutcome.COMMITTED, GroupOutcome.WRITE_FAILED]
    assert (steps[-1].stage, steps[-1].done, steps[-1].total) == ("rewrite", 2, 2)
    assert live_files(table) == 1 + 3
    check(table)


def test_commits_are_as_many_as_allowed_and_failures_are_counted_as_they_happened(tmp_path: Path) -> None:
    """J #16971, #15226: what failed is what happened; more commits allowed than there are groups is no failure."""
    table = filled(tmp_path)
    count = len(table.snapshots())
    limited = {**PARTIAL, "partial-progress.max-commits": "10", "partial-progress.max-failed-commits": "0"}
    assert table.maintenance.rewrite_data_files(options={**limited, "max-files-to-rewrite": "5"}).counts[:2] == (5, 2)
    assert len(table.snapshots()) == count + 2
    table.append(rows(70, part="a"))
    table.append(rows(80, part="b"))
    other = load_catalog("lake", type="sql", uri=f"sqlite:///{tmp_path}/c.db").load_table("db.t")
    plan = table.maintenance.rewrite_data_files(dry_run=True, options=limited)
    with pytest.raises(IncompleteRewriteError, match="1 commits of the rewrite failed") as failed:
        run_rewrite(plan, Between(happen=lambda work: drop_part(other) if is_part(work, "b") else None))
    result = failed.value.result
    assert "commit failed" in str(result)
    assert "committed" in str(result)
    check(table)


@pytest.mark.parametrize("version", [version for version in ALL_VERSIONS if allows(version, Feature.DELETE_FILES)])
def test_equality_deletes_that_come_meanwhile_reach_the_new_files(tmp_path: Path, version: int) -> None:
    """J #2196, #3842, #9230."""
    table = new_table(tmp_path, version, None)
    for number in range(3):
        table.append(rows(number, number + 10))
    other = load_catalog("lake", type="sql", uri=f"sqlite:///{tmp_path}/c.db").load_table("db.t")
    plan = table.maintenance.rewrite_data_files(dry_run=True, options=ALL)
    run_rewrite(plan, Between(happen=lambda _: delete_equal(other, {"k": [1, 12]})))
    assert keys(table.refresh()) == [0, 2, 10, 11]
    other.refresh()
    plan = table.maintenance.rewrite_data_files(dry_run=True, options={**ALL, "use-starting-sequence-number": "false"})
    with pytest.raises(ValidationError):
        run_rewrite(plan, Between(happen=lambda _: delete_equal(other, {"k": [0]})))
    assert keys(table.refresh()) == [2, 10, 11]
    check(table)


@pytest.mark.parametrize("sort_order", [None, "k DESC"])
def test_rows_that_others_delete_and_update_meanwhile_are_deleted_in_the_new_files(
    tmp_path: Path, sort_order: str | None
) -> None:
    table = new_table(tmp_path, 3, None)
    for number in range(3):
        table.append(rows(number, number + 10))
    table.delete("k = 10")
    before = lineage(table)
    other = load_catalog("lake", type="sql", uri=f"sqlite:///{tmp_path}/c.db").load_table("db.t")
    plan = table.maintenance.rewrite_data_files(dry_run=True, sort_order=sort_order, options=ALL)

    def change(_: GroupRewrite) -> None:
        other.delete("k = 1")
        other.upsert(rows(12, part="new"), ["k"])

    result = run_rewrite(plan, Between(happen=change))
    assert result.counts[:2] == (3, 1)
    after = lineage(table.refresh())
    assert sorted(after) == [0, 2, 11, 12]
    assert {key: after[key] for key in (0, 2, 11)} == {key: before[key] for key in (0, 2, 11)}
    assert after[12][0] == before[12][0]
    assert table.scan("part = 'new'").count() == 1
    check(table)


def test_in_v2_rows_that_others_delete_meanwhile_stop_their_group_alone(tmp_path: Path) -> None:
    table = filled(tmp_path, 2)
    other = load_catalog("lake", type="sql", uri=f"sqlite:///{tmp_path}/c.db").load_table("db.t")
    plan = table.maintenance.rewrite_data_files(dry_run=True, options=PARTIAL)
    result = run_rewrite(plan, Between(happen=lambda work: other.delete("k = 10") if is_part(work, "b") else None))
    assert [group.outcome for group in result.groups] == [GroupOutcome.COMMITTED, GroupOutcome.COMMIT_FAILED]
    assert keys(table.refresh()) == [0, 1, 2, 11, 12, 20, 21, 22]
    assert table.maintenance.rewrite_data_files(options=PARTIAL).failed_data_files_count == 0
    assert keys(table.refresh()) == [0, 1, 2, 11, 12, 20, 21, 22]
    check(table)


def test_equality_deletes_that_come_while_rows_move_to_another_spec_are_a_conflict(tmp_path: Path) -> None:
    table = filled(tmp_path, 2)
    with table.update_spec() as spec:
        spec.remove_field("part")
    other = load_catalog("lake", type="sql", uri=f"sqlite:///{tmp_path}/c.db").load_table("db.t")
    (file, *_) = (task.file for task in other.scan("part = 'a'").plan_files())
    plan = table.maintenance.rewrite_data_files(dry_run=True, options=ALL)
    with pytest.raises(ValidationError):
        run_rewrite(
            plan, Between(happen=lambda work: delete_equal(other, {"k": [0]}, of=file) if is_part(work, "a") else None)
        )
    assert keys(table.refresh()) == [1, 2, 10, 11, 12, 20, 21, 22]
    check(table)


class KilledError(BaseException):
    """Ends a run as a kill would: nothing is cleaned up."""


def kill(work: GroupRewrite) -> None:
    if is_part(work, "b"):
        raise KilledError


def test_what_a_killed_run_leaves_goes_with_a_later_one(tmp_path: Path) -> None:
    table = filled(tmp_path)
    before = stored_data(table)
    plan = table.maintenance.rewrite_data_files(dry_run=True, options=PARTIAL)
    with pytest.raises(KilledError):
        run_rewrite(plan, Between(happen=kill))
    left = stored_data(table) - before - {task.file.file_path for task in table.refresh().scan().plan_files()}
    assert len(left) == 1
    (trace,) = table.storage.list_prefix(f"{table.location()}/metadata/rewriting")
    assert table.maintenance.rewrite_data_files().run is None
    assert left <= stored_data(table), "the run may still be alive"
    old = re.sub(rb'"written-ms": \d+', b'"written-ms": 1', table.storage.read(trace.location))
    table.storage.write(trace.location, old)
    table.set_properties({"gc.enabled": "false"})
    table.maintenance.rewrite_data_files()
    assert left <= stored_data(table)
    table.set_properties({"gc.enabled": "true"})
    table.maintenance.rewrite_data_files()
    assert not left & stored_data(table)
    assert not list(table.storage.list_prefix(f"{table.location()}/metadata/rewriting"))
    assert keys(table.refresh()) == [0, 1, 2, 10, 11, 12, 20, 21, 22]
    check(table)


def test_a_run_that_was_taken_for_dead_commits_nothing(tmp_path: Path) -> None:
    table = filled(tmp_path)
    plan = table.maintenance.rewrite_data_files(dry_run=True, options=ALL)

    def sweep(_: GroupRewrite) -> None:
        traces = [info.location for info in table.storage.list_prefix(f"{table.location()}/metadata/rewriting")]
        table.storage.delete(traces)

    with pytest.raises(StateError, match="another run may have deleted the new files"):
        run_rewrite(plan, Between(happen=sweep))
    check(table)


def test_files_of_a_commit_that_happened_stay_whatever_goes_wrong_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = filled(tmp_path)
    plan = table.maintenance.rewrite_data_files(dry_run=True, options=ALL)

    def fail_to_note(*_: object) -> None:
        raise OSError("after the commit")

    monkeypatch.setattr(Commits, "_note", fail_to_note)
    with pytest.raises(OSError, match="after the commit"):
        plan.run()
    assert live_files(table.refresh()) == 2
    assert keys(table) == [0, 1, 2, 10, 11, 12, 20, 21, 22]
    check(table)


# -- groups that lost to another commit, and are tried again


def rewritten(table: Table, options: dict[str, str], happen: Callable[[GroupRewrite], object]) -> RewriteResult:
    request = RewriteRequest(table, options=options)
    return run_rewrite(plan_rewrite(request), Between(happen=happen), again=request.again)


def others(*changes: Callable[[], object]) -> Callable[[GroupRewrite], None]:
    """One change after each time that a group of part b is written, as long as there are some."""
    left = list(changes)

    def change(work: GroupRewrite) -> None:
        if is_part(work, "b") and left:
            left.pop(0)()

    return change


@pytest.mark.parametrize("options", [ALL, PARTIAL], ids=["all or nothing", "partial progress"])
def test_a_group_that_lost_to_another_commit_is_tried_again_on_its_state(
    tmp_path: Path, options: dict[str, str]
) -> None:
    table = filled(tmp_path, 2)
    other = load_catalog("lake", type="sql", uri=f"sqlite:///{tmp_path}/c.db").load_table("db.t")
    happen = others(lambda: other.delete("k = 10"), lambda: other.refresh().delete("k = 22"))
    result = rewritten(table, options, happen)
    assert result.failed_data_files_count == 0
    assert {group.partition: group.outcome for group in result.groups} == {
        "part=a": GroupOutcome.COMMITTED,
        "part=b": GroupOutcome.COMMITTED,
    }
    assert len({group.number for group in result.groups}) == 2
    assert live_files(table.refresh()) == 2
    assert keys(table) == [0, 1, 2, 11, 12, 20, 21]
    written = {path for path in stored_data(table) if str(result.run) in path}
    assert written == {task.file.file_path for task in table.scan().plan_files()}
    check(table)


@pytest.mark.parametrize("options", [ALL, PARTIAL], ids=["all or nothing", "partial progress"])
def test_a_group_that_always_loses_fails_in_the_end(tmp_path: Path, options: dict[str, str]) -> None:
    table = filled(tmp_path, 2)
    other = load_catalog("lake", type="sql", uri=f"sqlite:///{tmp_path}/c.db").load_table("db.t")
    happen = others(*(lambda key=key: other.refresh().delete(f"k = {key}") for key in (10, 11, 20)))
    if options is ALL:
        with pytest.raises(ValidationError):
            rewritten(table, options, happen)
    else:
        result = rewritten(table, {**options, "partial-progress.max-failed-commits": "1"}, happen)
        outcomes = {group.partition: group.outcome for group in result.groups}
        assert outcomes == {"part=a": GroupOutcome.COMMITTED, "part=b": GroupOutcome.COMMIT_FAILED}
        assert result.failed_data_files_count == 3
    assert keys(table.refresh()) == [0, 1, 2, 12, 21, 22]
    check(table)


def test_a_group_whose_rows_are_gone_is_not_needed_any_more(tmp_path: Path) -> None:
    table = filled(tmp_path)
    other = load_catalog("lake", type="sql", uri=f"sqlite:///{tmp_path}/c.db").load_table("db.t")
    limits = {"partial-progress.max-failed-commits": "0", "max-files-to-rewrite": "6"}
    result = rewritten(table, {**PARTIAL, **limits}, others(lambda: drop_part(other)))
    assert [group.outcome for group in result.groups] == [GroupOutcome.COMMITTED, GroupOutcome.NOT_NEEDED]
    assert result.counts[0::3] == (3, 0)
    assert keys(table.refresh()) == [0, 1, 2]
    check(table)
