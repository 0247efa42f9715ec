"""Rewrites of data files: which files, in which groups, to how many files, and what is said of each group."""

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest

from icefloe import Table, load_catalog
from icefloe.errors import (
    IcefloeError,
    IncompleteRewriteError,
    InvalidInputError,
    InvalidPropertyError,
    StateError,
    ValidationError,
)
from icefloe.maintenance import GroupOutcome, GroupRewrite, RewritePlan, RewrittenGroup, Threads
from icefloe.maintenance.rewrite.run import run_rewrite
from icefloe.maintenance.rewrite.strategies import split_terms
from icefloe.maintenance.rewrite.traces import GROUP, RUN
from icefloe.schema import types
from icefloe.sql.procedures import call
from icefloe.verification import Progress, silent
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.shared_rows import row_modes
from tests.spark.reading import delete_equal

V3_ON = [version for version in ALL_VERSIONS if allows(version, Feature.ROW_LINEAGE)]
ALL = {"rewrite-all": "true"}


def rows(*keys: int, part: str = "a") -> pa.Table:
    return pa.table({"k": pa.array(keys, pa.int64()), "part": pa.array([part] * len(keys))})


def new_table(folder: Path, version: int = 3, partition: str | None = "part") -> Table:
    catalog = load_catalog("lake", type="sql", uri=f"sqlite:///{folder}/c.db", warehouse=str(folder / "files"))
    catalog.create_namespace_if_not_exists("db")
    properties = {"format-version": str(version), "commit.retry.num-retries": "2"} | row_modes("merge-on-read")
    table = catalog.create_table("db.t", "k BIGINT, part STRING", properties=properties)
    if partition is not None:
        with table.update_spec() as spec:
            spec.add_field(partition, "identity")
    return table


def filled(folder: Path, version: int = 3, files: int = 3, partition: str | None = "part") -> Table:
    """Some small files in each of two partitions."""
    table = new_table(folder, version, partition)
    for number in range(files):
        table.append(pa.concat_tables([rows(number, part="a"), rows(10 + number, 20 + number, part="b")]))
    return table


def keys(table: Table, ref: str | None = None) -> list[int]:
    return sorted(table.scan(selected_fields=("k",), ref=ref).to_arrow()["k"].to_pylist())


def lineage(table: Table) -> dict[int, tuple[int, int]]:
    columns = ("k", "_row_id", "_last_updated_sequence_number")
    read = table.scan(selected_fields=columns).to_arrow().to_pylist()
    return {row["k"]: (row["_row_id"], row["_last_updated_sequence_number"]) for row in read}


def check(table: Table) -> None:
    report = table.refresh().verify(level="data", progress=silent)
    assert report.ok, report


def live_files(table: Table) -> int:
    return sum(1 for _ in table.scan().plan_files())


def stored_data(table: Table) -> set[str]:
    return {info.location for info in table.storage.list_prefix(f"{table.location()}/data")}


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_small_files_become_one_of_each_partition(tmp_path: Path, version: int) -> None:
    table = filled(tmp_path, version)
    before = lineage(table) if version in V3_ON else None
    result = table.maintenance.rewrite_data_files(min_input_files=2)
    size = result.rewritten_bytes_count
    assert result.counts == (6, 2, size, 0, 0)
    assert size > 0
    assert keys(table) == [0, 1, 2, 10, 11, 12, 20, 21, 22]
    assert before is None or lineage(table) == before
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert snapshot.summary is not None
    assert (snapshot.operation, snapshot.summary[RUN], snapshot.summary[GROUP]) == ("replace", result.run, "1,2")
    assert {group.outcome for group in result.groups} == {GroupOutcome.COMMITTED}
    assert all(result.run is not None and result.run in task.file.file_path for task in table.scan().plan_files())
    assert table.maintenance.compact(min_input_files=2).counts == (0, 0, 0, 0, 0)
    check(table)


def test_the_procedure_takes_and_returns_what_javas_does(tmp_path: Path) -> None:
    table = filled(tmp_path)
    catalog = load_catalog("lake", type="sql", uri=f"sqlite:///{tmp_path}/c.db")
    options = {"rewrite-all": "true"}
    done = call(catalog, "rewrite_data_files", ("db.t", "sort", "k DESC", options, "part = 'a'", "main"))
    assert [(column.name, str(column.type)) for column in done.schema] == [
        ("rewritten_data_files_count", "int32"),
        ("added_data_files_count", "int32"),
        ("rewritten_bytes_count", "int64"),
        ("failed_data_files_count", "int32"),
        ("removed_delete_files_count", "int32"),
    ]
    (row,) = done.to_pylist()
    assert (row["rewritten_data_files_count"], row["added_data_files_count"]) == (3, 1)
    assert table.refresh().scan("part = 'a'").to_arrow()["k"].to_pylist() == [2, 1, 0]
    with pytest.raises(InvalidPropertyError, match="did you mean 'rewrite-all'"):
        call(catalog, "rewrite_data_files", ("db.t",), {"options": {"rewrite-al": "true"}})
    check(table)


def test_nothing_to_do_reads_no_data_and_commits_nothing(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    assert table.maintenance.rewrite_data_files(options=ALL).counts == (0, 0, 0, 0, 0)
    table.append(rows(1))
    location = table.metadata_location
    assert table.maintenance.rewrite_data_files().run is None
    assert table.refresh().metadata_location == location


def test_a_plan_is_shown_saved_and_run_as_it_is(tmp_path: Path) -> None:
    table = filled(tmp_path)
    plan = table.maintenance.rewrite_data_files(dry_run=True, min_input_files=2, where="part = 'a'")
    assert plan == table.maintenance.rewrite_data_files(dry_run=True, min_input_files=2, where="part = 'a'")
    assert "3 files in 1 groups" in str(plan)
    assert "part=a" in str(plan)
    saved = RewritePlan.from_json(plan.to_json(), table)
    assert saved == plan
    table.append(rows(7, part="a"))
    assert saved.run().counts[:2] == (3, 1)
    assert keys(table) == [0, 1, 2, 7, 10, 11, 12, 20, 21, 22]
    with pytest.raises(ValidationError, match="not in the table"):
        saved.run()
    table.maintenance.expire_snapshots(older_than=32_503_680_000_000)
    with pytest.raises(StateError, match="not in the table any more"):
        saved.run()
    check(table)


def test_a_plan_of_another_table_or_another_text_is_refused(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    plan = filled(tmp_path / "one").maintenance.rewrite_data_files(dry_run=True, options=ALL)
    other = new_table(tmp_path / "two")
    with pytest.raises(StateError, match="the plan is for table"):
        RewritePlan.from_json(plan.to_json(), other)
    for text in ("{}", "no", "[]"):
        with pytest.raises(InvalidInputError, match="no saved plan"):
            RewritePlan.from_json(text, other)


def test_where_chooses_files_and_keeps_their_other_rows_with_their_deletes(tmp_path: Path) -> None:
    """StarRocks #77797: the rows of a chosen file that do not match stay; and so do deletes that concern only those."""
    table = new_table(tmp_path, 2, None)
    table.append(rows(*range(10)))
    table.append(rows(*range(100, 110)))
    delete_equal(table, {"k": [1, 2]})
    result = table.maintenance.rewrite_data_files(where="k = 5", options=ALL)
    assert result.rewritten_data_files_count == 1
    assert keys(table) == [0, *range(3, 10), *range(100, 110)]
    check(table)


def test_files_full_of_deletes_are_rewritten_whatever_their_number(tmp_path: Path) -> None:
    table = new_table(tmp_path, 3, None)
    table.append(rows(*range(10)))
    table.append(rows(*range(10, 20)))
    table.delete("k < 3")
    table.delete("k = 10")
    plan = table.maintenance.rewrite_data_files(dry_run=True)
    # The second file is in the group, being small; it alone would not have been a reason.
    assert [len(group.files) for group in plan.groups] == [2]
    alone = {"max-file-group-input-files": "1"}
    for options, count in (
        ({}, 1),
        ({"delete-ratio-threshold": "0.31"}, 0),
        ({"delete-ratio-threshold": "0.1"}, 2),
        ({"delete-ratio-threshold": "1", "delete-file-threshold": "1"}, 2),
        ({"delete-ratio-threshold": "1", "delete-file-threshold": "2"}, 0),
    ):
        plan = table.maintenance.rewrite_data_files(dry_run=True, options={**alone, **options})
        assert plan.file_count == count, options
    before = lineage(table)
    result = table.maintenance.rewrite_data_files(options=alone)
    assert result.counts[:2] == (1, 1)
    assert result.removed_delete_files_count == 1
    assert lineage(table) == before
    check(table)


def test_a_group_whose_rows_are_all_deleted_leaves_no_file(tmp_path: Path) -> None:
    table = new_table(tmp_path, 2, None)
    table.append(rows(1, 2))
    table.append(rows(3))
    delete_equal(table, {"k": [1, 2]})
    result = table.maintenance.rewrite_data_files(where="k < 3", options=ALL)
    assert result.counts[:2] == (1, 0)
    assert keys(table) == [3]
    check(table)


def test_old_specs_move_to_the_new_one_and_only_once(tmp_path: Path) -> None:
    table = filled(tmp_path, 3, partition=None)
    with table.update_spec() as spec:
        spec.add_field("part", "identity")
    before = lineage(table)
    old = {"rewrite-old-specs": "true", "target-file-size-bytes": "2000", "min-file-size-bytes": "0"}
    plan = table.maintenance.rewrite_data_files(dry_run=True, options=old)
    assert [(group.spec_id, len(group.files)) for group in plan.groups] == [(0, 3)]
    assert plan.run().counts[:2] == (3, 2)
    assert {task.file.spec_id for task in table.scan().plan_files()} == {1}
    assert table.maintenance.rewrite_data_files(options=old).run is None
    assert lineage(table) == before
    back = table.maintenance.rewrite_data_files(options={**ALL, "output-spec-id": "0"})
    assert back.added_data_files_count >= 1
    assert {task.file.spec_id for task in table.scan().plan_files()} == {0}
    check(table)


def test_limits_and_orders_of_groups(tmp_path: Path) -> None:
    table = filled(tmp_path, 3, files=4)
    table.append(rows(50, 51, part="b"))

    def groups(**options: str) -> list[tuple[str, int]]:
        plan = table.maintenance.rewrite_data_files(dry_run=True, options={**ALL, **options})
        return [(group.partition, len(group.files)) for group in plan.groups]

    assert groups() == [("part=a", 4), ("part=b", 5)]
    assert groups(**{"rewrite-job-order": "files-desc"}) == [("part=b", 5), ("part=a", 4)]
    assert groups(**{"rewrite-job-order": "bytes-asc"}) == [("part=a", 4), ("part=b", 5)]
    assert groups(**{"max-files-to-rewrite": "6"}) == [("part=a", 4), ("part=b", 2)]
    assert groups(**{"max-files-to-rewrite": "4"}) == [("part=a", 4)]
    assert groups(**{"max-file-group-input-files": "3"}) == [("part=a", 3), ("part=b", 3), ("part=a", 1), ("part=b", 2)]


def test_a_large_file_is_split_and_sizes_are_near_the_target(tmp_path: Path) -> None:
    table = new_table(tmp_path, 2, None)
    table.set_properties({"write.parquet.row-group-size-bytes": "20000", "write.parquet.compression-codec": "none"})
    table.append(rows(*range(40_000)))
    (size,) = (task.file.file_size_in_bytes for task in table.scan().plan_files())
    result = table.maintenance.rewrite_data_files(target_file_size_bytes=size // 4)
    assert result.rewritten_data_files_count == 1
    assert 3 <= result.added_data_files_count <= 5
    assert keys(table) == list(range(40_000))
    check(table)


def test_bad_input_is_refused_before_anything_happens(tmp_path: Path) -> None:
    table = filled(tmp_path)
    rewrite = table.maintenance.rewrite_data_files
    for arguments, error, message in (
        ({"strategy": "zip"}, InvalidInputError, "must be binpack or sort"),
        ({"strategy": "binpack", "sort_order": "k"}, InvalidInputError, "sorts nothing"),
        ({"strategy": "sort"}, InvalidInputError, "has no sort order"),
        ({"sort_order": "nothing"}, IcefloeError, "nothing"),
        ({"sort_order": "k,,part"}, InvalidInputError, "no list of columns"),
        ({"branch": "none"}, StateError, "no branch 'none'"),
        ({"options": {"output-spec-id": "7"}}, InvalidPropertyError, "partition specs 0, 1"),
        ({"options": {"compression-factor": "2"}}, InvalidPropertyError, "not known"),
        ({"options": {"min-input-files": "0"}}, InvalidPropertyError, "from 1"),
        ({"min_input_file": 2}, InvalidPropertyError, "did you mean 'min_input_files'"),
        ({"where": "nothing = 1"}, IcefloeError, "nothing"),
    ):
        with pytest.raises(error, match=message):
            rewrite(**arguments)
    assert len(table.refresh().snapshots()) == 3


def test_terms_of_an_order() -> None:
    assert split_terms("ts DESC NULLS LAST, bucket(16, id),`a,b`") == ["ts DESC NULLS LAST", "bucket(16, id)", "`a,b`"]
    for text in ("", "a,", "f(a", "`a"):
        with pytest.raises(InvalidInputError):
            split_terms(text)


def test_sorted_groups_and_what_files_say_of_their_order(tmp_path: Path) -> None:
    table = new_table(tmp_path, 3, None)
    for number in range(4):
        table.append(rows(*range(number, 40, 4), part=str(number)))
    before = lineage(table)
    result = table.maintenance.rewrite_data_files(sort_order="k DESC", options=ALL)
    assert result.added_data_files_count == 1
    assert table.scan().to_arrow()["k"].to_pylist() == sorted(range(40), reverse=True)
    assert {task.file.sort_order_id for task in table.scan().plan_files()} == {None}
    with table.update_sort_order() as order:
        order.asc("part").desc("k")
    table.maintenance.rewrite_data_files(strategy="sort", options=ALL)
    assert {task.file.sort_order_id for task in table.scan().plan_files()} == {1}
    assert table.scan(limit=2).to_arrow()["k"].to_pylist() == [36, 32]
    assert lineage(table) == before
    check(table)


def test_a_sorted_group_becomes_files_of_one_size_that_do_not_overlap(tmp_path: Path) -> None:
    table = new_table(tmp_path, 2, None)
    table.set_properties({"write.parquet.compression-codec": "none"})
    for number in range(4):
        table.append(rows(*range(number, 4000, 4), part=str(number)))
    size = sum(task.file.file_size_in_bytes for task in table.scan().plan_files())
    result = table.maintenance.rewrite_data_files(sort_order="k", options={**ALL, "target-file-size-bytes": size // 4})
    assert result.added_data_files_count == 4
    by_file: dict[str, list[int]] = {}
    for row in table.scan(selected_fields=("k", "_file")).to_arrow().to_pylist():
        by_file.setdefault(row["_file"], []).append(row["k"])
    assert [sorted(part) for part in sorted(by_file.values())] == [
        list(range(n, n + 1000)) for n in range(0, 4000, 1000)
    ]
    assert all(part == sorted(part) for part in by_file.values())
    check(table)


def test_files_of_a_sorted_table_stay_sorted(tmp_path: Path) -> None:
    table = new_table(tmp_path, 3, None)
    with table.update_sort_order() as order:
        order.desc("k")
    for number in range(3):
        table.append(rows(*range(number, 30, 3)))
    assert table.maintenance.rewrite_data_files(options=ALL).added_data_files_count == 1
    assert table.scan().to_arrow()["k"].to_pylist() == sorted(range(30), reverse=True)
    assert {task.file.sort_order_id for task in table.scan().plan_files()} == {1}
    check(table)


def test_a_branch_is_rewritten_alone(tmp_path: Path) -> None:
    table = filled(tmp_path)
    table.manage_snapshots().create_branch("dev").commit()
    table.append(rows(99), branch="dev")
    head = table.refresh().refs()["main"].snapshot_id
    result = table.maintenance.rewrite_data_files(branch="dev", options=ALL, snapshot_properties={"why": "test"})
    assert result.counts[:2] == (7, 2)
    assert table.refs()["main"].snapshot_id == head
    assert keys(table, "dev") == [0, 1, 2, 10, 11, 12, 20, 21, 22, 99]
    snapshot = table.snapshot_by_id(table.refs()["dev"].snapshot_id)
    assert snapshot is not None
    assert snapshot.summary is not None
    assert snapshot.summary["why"] == "test"
    check(table)


def test_deletes_without_rows_go_with_the_files_on_the_branch_of_the_rewrite(tmp_path: Path) -> None:
    table = new_table(tmp_path, 2)
    table.append(rows(1, 2, 3))
    table.manage_snapshots().create_branch("dev").commit()
    table.delete("k = 1", branch="dev")
    table.delete("k = 2")
    result = table.maintenance.rewrite_data_files(branch="dev", options={**ALL, "remove-dangling-deletes": "true"})
    assert result.counts[:2] == (1, 1)
    assert result.removed_delete_files_count == 1
    assert keys(table, "dev") == [2, 3]
    assert keys(table) == [1, 3]
    assert sum(len(task.deletes) for task in table.scan().plan_files()) == 1
    check(table)


def test_rows_of_before_an_upgrade_keep_company_with_those_that_have_ids(tmp_path: Path) -> None:
    """iceberg-go #1295: rows of a group that have ids keep them, whatever else is in the group."""
    table = filled(tmp_path, 2)
    table.upgrade_format_version(3)
    table.append(rows(50, 51))
    before = lineage(table)
    assert all(row_id is not None for row_id, _ in before.values())
    table.maintenance.rewrite_data_files(options=ALL)
    assert lineage(table) == before
    check(table)


def test_rows_of_before_an_upgrade_are_rewritten_in_one_commit(tmp_path: Path) -> None:
    table = filled(tmp_path, 2)
    table.upgrade_format_version(3)
    count = len(table.snapshots())
    options = {**ALL, "partial-progress.enabled": "true", "max-file-group-input-files": "1"}
    result = table.maintenance.rewrite_data_files(options=options)
    assert [group.outcome for group in result.groups] == [GroupOutcome.COMMITTED] * 6
    assert len(table.snapshots()) == count + 1
    check(table)


def test_rows_that_get_ids_while_they_are_rewritten_are_a_conflict(tmp_path: Path) -> None:
    table = filled(tmp_path, 2)
    plan = table.maintenance.rewrite_data_files(dry_run=True, options=ALL)
    table.upgrade_format_version(3)
    table.append(rows(50))
    before = lineage(table)
    files = stored_data(table)
    with pytest.raises(ValidationError, match="had no ids"):
        plan.run()
    assert lineage(table.refresh()) == before
    assert stored_data(table) == files


# -- what others do meanwhile, and what fails


@dataclass(frozen=True)
class Between(Threads):
    """Rewrites as threads do, and lets something happen after each group is written."""

    happen: Callable[[GroupRewrite], object] = lambda _: None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def rewrite(self, work: GroupRewrite) -> RewrittenGroup:
        new = Threads.rewrite(self, work)
        with self.lock:
            self.happen(work)
        return new


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
    assert "another commit removed it" in str(result.groups[1].reason)
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
    with pytest.raises(ValidationError, match="another commit removed it"):
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


def test_columns_of_today_are_written(tmp_path: Path) -> None:
    table = filled(tmp_path, 3, files=2)
    with table.update_schema() as schema:
        schema.add_column("more", types.IntegerType(), default_value=5)
    table.append(pa.table({"k": [70], "part": ["a"], "more": pa.array([1], pa.int32())}))
    before = table.scan().to_arrow().sort_by("k").to_pylist()
    table.maintenance.rewrite_data_files(options=ALL)
    assert table.scan().to_arrow().sort_by("k").to_pylist() == before
    check(table)
