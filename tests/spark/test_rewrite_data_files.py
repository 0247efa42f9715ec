"""Rewrites as jobs of Spark: the same rows and ids, as many files as planned, and the procedure in SQL."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from icefloe import Table, load_catalog
from icefloe.errors import ValidationError
from icefloe.spark.maintenance import rewriting
from icefloe.verification import silent
from tests.shared_rows import row_modes
from tests.spark.reading import delete_equal

ALL = {"rewrite-all": "true"}


def new_table(folder: Path, version: int, file_format: str = "parquet") -> Table:
    catalog = load_catalog("lake", type="sql", uri=f"sqlite:///{folder}/c.db", warehouse=str(folder / "files"))
    catalog.create_namespace_if_not_exists("db")
    properties = {"format-version": str(version), "write.format.default": file_format} | row_modes("merge-on-read")
    table = catalog.create_table("db.t", "k BIGINT, part STRING, x DOUBLE", properties=properties)
    for number in range(4):
        keys = list(range(number, 40, 4))
        table.append(pa.table({"k": keys, "part": ["ab"[key % 2] for key in keys], "x": [key / 2 for key in keys]}))
    return table


def rows(table: Table) -> dict[int, dict[str, Any]]:
    lineage = ("_row_id", "_last_updated_sequence_number") if table.format_version > 2 else ()
    return {row["k"]: row for row in table.scan(selected_fields=("*", *lineage)).to_arrow().to_pylist()}


def check(table: Table) -> None:
    report = table.refresh().verify(level="data", progress=silent)
    assert report.ok, report


@pytest.mark.parametrize(
    ("version", "file_format"),
    [
        pytest.param(2, "parquet", marks=pytest.mark.slow),
        (3, "parquet"),
        pytest.param(3, "avro", marks=pytest.mark.slow),
    ],
)
def test_small_files_become_one_with_their_deletes_applied(
    spark: Any, tmp_path: Path, version: int, file_format: str
) -> None:
    table = new_table(tmp_path, version, file_format)
    table.delete("k = 4 or k = 9")
    delete_equal(table, {"k": [1, 2]})
    before = rows(table)
    result = table.maintenance.rewrite_data_files(options=ALL, engine=spark)
    assert result.counts[:2] == (4, 1)
    assert rows(table) == before
    assert all(str(result.run) in task.file.file_path for task in table.scan().plan_files())
    check(table)


def test_rows_that_spark_loses_are_noticed_also_among_equality_deletes(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = new_table(tmp_path, 3)
    delete_equal(table, {"k": [1, 2]})
    before = rows(table)
    files = {info.location for info in table.storage.list_prefix(f"{table.location()}/data")}
    # The first piece of all goes, and what says how many rows were read stays.
    spread = rewriting.spread
    lossy = lambda pieces, tasks: spread(pieces.where("range <> 0 or piece is null"), tasks)  # noqa: E731 - it is short
    monkeypatch.setattr(rewriting, "_shuffled", lossy)
    with pytest.raises(ValidationError, match=r"writes 1\d rows in place of the 38 that were read"):
        table.maintenance.rewrite_data_files(sort_order="k", options=two_files(table), engine=spark)
    assert rows(table.refresh()) == before
    assert {info.location for info in table.storage.list_prefix(f"{table.location()}/data")} == files


def two_files(table: Table) -> dict[str, str]:
    """Options by which all rows go to two new files."""
    size = sum(task.file.file_size_in_bytes for task in table.scan().plan_files())
    return {**ALL, "target-file-size-bytes": str(size // 2), "max-file-size-bytes": str(100 * size)}


@pytest.mark.parametrize("ranges", [1, 3])
def test_sorted_rows_are_ranged_over_as_many_files_as_expected(spark: Any, tmp_path: Path, ranges: int) -> None:
    table = new_table(tmp_path, 3)
    before = rows(table)
    options = {**two_files(table), "shuffle-partitions-per-file": str(ranges)}
    result = table.maintenance.rewrite_data_files(sort_order="k DESC", options=options, engine="spark")
    assert result.counts[:2] == (4, 2)
    assert rows(table) == before
    by_file: dict[str, list[int]] = {}
    for row in table.scan(selected_fields=("k", "_file")).to_arrow().to_pylist():
        by_file.setdefault(row["_file"], []).append(row["k"])
    parts = list(by_file.values())
    assert all(part == sorted(part, reverse=True) for part in parts)
    (low, high) = sorted(parts)
    assert max(low) < min(high)
    assert {task.file.sort_order_id for task in table.scan().plan_files()} == {None}
    check(table)


def test_rows_move_to_another_spec(spark: Any, tmp_path: Path) -> None:
    table = new_table(tmp_path, 3)
    with table.update_spec() as spec:
        spec.add_field("part", "identity")
    before = rows(table)
    result = table.maintenance.rewrite_data_files(rewrite_old_specs=True, engine=spark)
    assert result.counts[:2] == (4, 2)
    assert {(task.file.spec_id, task.partition) for task in table.scan().plan_files()} == {(1, ("a",)), (1, ("b",))}
    assert rows(table) == before
    check(table)


def test_a_job_that_fails_leaves_nothing(spark: Any, tmp_path: Path) -> None:
    table = new_table(tmp_path, 3)
    (first, *_) = (task.file.file_path for task in table.scan().plan_files())
    plan = table.maintenance.rewrite_data_files(options=ALL, dry_run=True)
    content = table.storage.read(first)
    table.storage.write(first, content[:100] + b"?" * (len(content) - 100))
    files = {info.location for info in table.storage.list_prefix(f"{table.location()}/data")}
    with pytest.raises(Exception, match=r"(?i)parquet|corrupt|footer"):
        plan.run(spark)
    assert {info.location for info in table.storage.list_prefix(f"{table.location()}/data")} == files
    assert len(table.refresh().snapshots()) == 4
