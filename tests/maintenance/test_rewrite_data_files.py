"""Rewrites of data files: which files, in which groups, to how many files, and what is said of each group."""

from pathlib import Path

import pyarrow as pa
import pytest

from icefloe import load_catalog
from icefloe.errors import (
    IcefloeError,
    InvalidInputError,
    InvalidPropertyError,
    NoSuchColumnError,
    StateError,
    ValidationError,
)
from icefloe.maintenance import GroupOutcome, RewritePlan
from icefloe.maintenance.rewrite.strategies import split_terms
from icefloe.maintenance.rewrite.traces import GROUP, RUN
from icefloe.schema import types
from icefloe.sql.procedures import call
from icefloe.versions import ALL_VERSIONS
from tests.maintenance.rewriting import ALL, V3_ON, check, filled, keys, lineage, new_table, rows, stored_data
from tests.spark.reading import delete_equal


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
        with pytest.raises(InvalidInputError, match="not a saved plan"):
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
        ({"options": {"compression-factor": "2"}}, InvalidPropertyError, "is unknown"),
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


def test_columns_of_today_are_written(tmp_path: Path) -> None:
    table = filled(tmp_path, 3, files=2)
    with table.update_schema() as schema:
        schema.add_column("more", types.IntegerType(), default_value=5)
    table.append(pa.table({"k": [70], "part": ["a"], "more": pa.array([1], pa.int32())}))
    before = table.scan().to_arrow().sort_by("k").to_pylist()
    table.maintenance.rewrite_data_files(options=ALL)
    assert table.scan().to_arrow().sort_by("k").to_pylist() == before
    check(table)


@pytest.mark.parametrize("sort_order", [None, "k"])
def test_files_of_rows_that_shrink_are_near_a_small_target(tmp_path: Path, sort_order: str | None) -> None:
    """A target of less than a row group takes in memory: the size in the file counts, not that in memory."""
    table = new_table(tmp_path, 2, None)
    values = pa.array(range(50_000), pa.int64())
    for _ in range(6):
        table.append(pa.table({"k": values, "part": pa.array([f"a text that shrinks {n % 7}" for n in range(50_000)])}))
    total = sum(task.file.file_size_in_bytes for task in table.scan().plan_files())
    target = total // 3
    table.maintenance.rewrite_data_files(sort_order=sort_order, rewrite_all=True, target_file_size_bytes=target)
    sizes = [task.file.file_size_in_bytes for task in table.scan().plan_files()]
    assert len(sizes) <= 4
    assert all(0.5 * target < size < 1.6 * target for size in sorted(sizes)[1:])
    check(table)


def test_conditions_and_curves_are_checked_also_where_nothing_is_to_be_done(tmp_path: Path) -> None:
    table = new_table(tmp_path, 3)
    for method in ("rewrite_data_files", "rewrite_position_delete_files", "convert_equality_deletes"):
        with pytest.raises(NoSuchColumnError, match="no column named 'nosuch'"):
            getattr(table.maintenance, method)(where="nosuch = 1")
    with pytest.raises(InvalidInputError, match=r"zorder is given no columns; name some, such as zorder\(a, b\)"):
        table.maintenance.rewrite_data_files(sort_order="zorder( )")
