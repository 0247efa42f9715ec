"""What maintenance makes of delete files is read by Java with the same rows; deletes that Java wrote are rewritten by us."""

import pytest

from icefloe.table import Table
from icefloe.verification import silent
from tests.peers.lake import MODES, Lake
from tests.spark.reading import delete_equal

MERGE_ON_READ = MODES[True]
VERSIONS = [pytest.param(2, marks=pytest.mark.slow), 3]


def made(lake: Lake, version: int) -> tuple[Table, str]:
    """Rows of two partitions whose positions Java deleted in several commits, and equality deletes as Flink writes them."""
    name, there = lake.made_by_java(version, "id BIGINT, region STRING", "PARTITIONED BY (region)", MERGE_ON_READ)
    lake.java.sql(f"ALTER TABLE {there} SET TBLPROPERTIES ('write.delete.granularity' = 'partition')")
    values = ", ".join(f"({number}, '{'eu' if number % 2 else 'us'}')" for number in range(40))
    lake.java.sql(f"INSERT INTO {there} VALUES {values}")
    for number in (1, 2, 3, 4):
        lake.java.sql(f"DELETE FROM {there} WHERE id = {number} OR id = {number + 10}")
    table = lake.sql_catalog.load_table(name)
    files = {task.partition: task.file for task in table.scan().plan_files()}
    delete_equal(table, {"id": [5, 7, 3]}, of=files["eu",])
    delete_equal(table, {"id": [6], "region": ["us"]}, of=files["us",])
    return table, there


def ids(rows: list[dict[str, int]]) -> list[int]:
    return [row["id"] for row in rows]


GONE = {1, 2, 3, 4, 11, 12, 13, 14, 5, 6, 7}
LEFT = [number for number in range(40) if number not in GONE]


@pytest.mark.parametrize("version", VERSIONS)
def test_deletes_of_both(lake: Lake, version: int) -> None:
    table, there = made(lake, version)
    assert ids(lake.same(table)) == LEFT
    rewritten = table.maintenance.rewrite_position_delete_files(min_input_files=2)
    if version == 2:
        assert (rewritten.rewritten_delete_files_count, rewritten.added_delete_files_count) == (4, 2)
    assert ids(lake.same(table)) == LEFT
    converted = table.maintenance.convert_equality_deletes()
    assert (converted.converted_equality_delete_files_count, converted.rewritten_rows_count) == (2, 3)
    assert ids(lake.same(table)) == LEFT
    # Java works on with what we left, and we with what Java makes of it.
    lake.java.sql(f"DELETE FROM {there} WHERE id = 20")
    rewrite = f"CALL {there.split('.')[0]}.system.rewrite_data_files"
    lake.java.sql(f"{rewrite}(table => '{there}', options => map('rewrite-all', 'true'))")
    left = [number for number in LEFT if number != 20]
    assert ids(lake.same(table.refresh())) == left
    table.maintenance.remove_dangling_deletes()
    assert ids(lake.same(table)) == left
    assert not [file for task in table.scan().plan_files() for file in task.deletes]
    assert table.verify(level="data", progress=silent).ok


def test_upgraded_deletes(lake: Lake) -> None:
    table, there = made(lake, 2)
    other, other_there = made(lake, 2)
    for each, name in ((table, there), (other, other_there)):
        lake.java.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('format-version' = '3')")
        each.refresh()
    ours = table.maintenance.rewrite_position_delete_files()
    procedure = f"{other_there.split('.')[0]}.system.rewrite_position_delete_files"
    [theirs] = lake.java.sql(
        f"CALL {procedure}(table => '{other_there}', options => map('rewrite-all', 'true'))"
    ).to_pylist()
    counts = {name: theirs[name] for name in ("rewritten_delete_files_count", "added_delete_files_count")}
    assert counts == {name: getattr(ours, name) for name in counts}
    assert ids(lake.same(table)) == ids(lake.same(other.refresh())) == LEFT
    assert vectors(table) == vectors(other)
    assert table.verify(level="data", progress=silent).ok


def vectors(table: Table) -> dict[object, int]:
    """How many rows the vector of each partition deletes; there is nothing but vectors and equality deletes."""
    files = [(task.partition, file) for task in table.scan().plan_files() for file in task.deletes]
    positions = [(partition, file) for partition, file in files if not file.equality_ids]
    assert all(file.is_deletion_vector for _, file in positions)
    return {partition: file.record_count for partition, file in positions}
