"""Which files a rewrite takes whatever their size, and which it leaves alone: by order, overlap and age."""

from pathlib import Path

import pyarrow as pa
import pytest

from icefloe import Table
from icefloe.errors import InvalidInputError
from tests.maintenance.rewriting import check, filled, keys, new_table, rows

WELL_SIZED: dict[str, str | int] = {"min-file-size-bytes": 0}
"""Sizes by which no file is a candidate."""
LONG = 3_600_000


def chosen(table: Table, **call: str) -> dict[str, int]:
    """How many files of each partition a plan takes."""
    options: dict[str, str | int] = {
        **WELL_SIZED,
        **{key.replace("_", "-"): value for key, value in call.items() if key != "sort_order"},
    }
    plan = table.maintenance.rewrite_data_files(dry_run=True, sort_order=call.get("sort_order"), options=options)
    return {group.partition: len(group.files) for group in plan.groups}


def ordered(folder: Path) -> Table:
    """Two files of before the table had an order, two of after, in each of two partitions."""
    table = filled(folder, files=2)
    with table.update_sort_order() as order:
        order.asc("k")
    for number in range(2, 4):
        table.append(pa.concat_tables([rows(number, part="a"), rows(10 + number, 20 + number, part="b")]))
    return table


def test_files_without_the_order_of_the_table_are_sorted_once(tmp_path: Path) -> None:
    table = ordered(tmp_path)
    assert chosen(table) == {}
    assert chosen(table, rewrite_stale_sort_order="true") == {"part=a": 2, "part=b": 2}
    before = keys(table)
    options: dict[str, str | int] = {**WELL_SIZED, "rewrite-stale-sort-order": "true"}
    assert table.maintenance.rewrite_data_files(strategy="sort", options=options).counts[:2] == (4, 2)
    assert chosen(table, rewrite_stale_sort_order="true") == {}
    assert keys(table) == before
    check(table)


def test_an_order_that_files_cannot_tell_is_refused(tmp_path: Path) -> None:
    plain = filled(tmp_path, files=1)
    with pytest.raises(InvalidInputError, match="a rewrite without an order"):
        chosen(plain, rewrite_stale_sort_order="true")
    with plain.update_sort_order() as order:
        order.asc("k")
    table = plain.refresh()
    with pytest.raises(InvalidInputError, match="by an id of the table's sort orders"):
        chosen(table, rewrite_stale_sort_order="true", sort_order="part DESC")
    with pytest.raises(InvalidInputError, match="begins with a column"):
        chosen(table, min_overlap_depth="2", sort_order="bucket(4, k)")
    with pytest.raises(InvalidInputError, match="begins with a column"):
        chosen(table, min_overlap_depth="2", sort_order="zorder(k)")
    with pytest.raises(InvalidInputError, match="min-overlap-depth"):
        chosen(table, min_overlap_depth="2")
    with pytest.raises(InvalidInputError, match=r"min-overlap-depth.* greater than 0"):
        chosen(table, min_overlap_depth="0", sort_order="k")


def test_partitions_whose_files_overlap_are_sorted_once(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    for number in range(3):
        table.append(pa.concat_tables([rows(number, part="a"), rows(number, 10 + number, part="b")]))
    assert chosen(table, sort_order="k", min_overlap_depth="2") == {"part=b": 3}
    assert chosen(table, sort_order="k", min_overlap_depth="3.5") == {}
    options = {**WELL_SIZED, "min-overlap-depth": 2}
    assert table.maintenance.rewrite_data_files(sort_order="k", options=options).counts[:2] == (3, 1)
    assert chosen(table, sort_order="k", min_overlap_depth="2") == {}
    check(table)


def test_partitions_that_were_written_to_lately_are_left_alone(tmp_path: Path) -> None:
    table = filled(tmp_path)
    assert chosen(table, rewrite_all="true") == {"part=a": 3, "part=b": 3}
    assert chosen(table, rewrite_all="true", min_partition_age_ms=str(LONG)) == {}
    table.maintenance.rewrite_data_files(where="part = 'a'", rewrite_all=True)
    table.maintenance.expire_snapshots(older_than=32_503_680_000_000, retain_last=1)
    # Who wrote the files of b is not known any more, and those of a are of maintenance.
    assert chosen(table, rewrite_all="true", min_partition_age_ms=str(LONG)) == {"part=a": 1, "part=b": 3}
    table.delete("k = 10")
    assert chosen(table, rewrite_all="true", min_partition_age_ms=str(LONG)) == {"part=a": 1}


def test_files_that_a_rewrite_has_just_written_are_no_candidates_by_size(tmp_path: Path) -> None:
    table = filled(tmp_path, files=2)
    table.maintenance.rewrite_data_files(min_input_files=2, max_file_group_input_files=1, rewrite_all=True)
    small = {"min_input_files": "2", "min_file_size_bytes": "9999"}
    assert chosen(table, **small) == {"part=a": 2, "part=b": 2}
    assert chosen(table, **small, rewrite_cooldown_ms=str(LONG)) == {}
    table.delete("k = 10")
    assert chosen(table, **small, rewrite_cooldown_ms=str(LONG)) == {"part=b": 1}
