"""`rewrite_data_files` beside Java's: the same files are chosen, the same counts come out, and Java reads and goes on."""

from collections.abc import Mapping

from icefloe.table import Table
from icefloe.verification import silent
from tests.peers.lake import MODES, Lake
from tests.spark.reading import delete_equal

Options = Mapping[str, str]
OPTIONS: tuple[Options, ...] = (
    {"min-input-files": "2"},
    {"min-input-files": "3", "delete-ratio-threshold": "1.0"},
    {"target-file-size-bytes": "100000", "min-file-size-bytes": "20000"},
    {"target-file-size-bytes": "100000", "min-file-size-bytes": "20000", "delete-ratio-threshold": "0.9"},
    {"min-input-files": "100", "delete-ratio-threshold": "0.2"},
)
"""Each chooses other files of the table below, by a rule of its own."""


def worn(lake: Lake) -> tuple[Table, str]:
    """Files of Java of many sizes in two partitions, some with rows deleted."""
    name, there = lake.made_by_java(3, "id BIGINT, part STRING, text STRING", "PARTITIONED BY (part)", MODES[1])
    for first, count in ((0, 10), (10, 20), (100, 2000), (10_000, 12_000)):
        lake.java.sql(
            f"INSERT INTO {there} SELECT /*+ COALESCE(1) */ id, 'x', sha2(CAST(id AS STRING), 256)"
            f" FROM range({first}, {first + count}, 1, 1)"
        )
    for first in (50_000, 50_100):
        lake.java.sql(
            f"INSERT INTO {there} SELECT /*+ COALESCE(1) */ id, 'y', 'a' FROM range({first}, {first + 100}, 1, 1)"
        )
    lake.java.sql(f"DELETE FROM {there} WHERE id >= 50000 AND id < 50060")
    lake.java.sql(f"DELETE FROM {there} WHERE id = 500")
    return lake.sql_catalog.load_table(name), name


def live(table: Table) -> frozenset[str]:
    return frozenset(task.file.file_path for task in table.refresh().scan().plan_files())


def by_java(lake: Lake, name: str, options: Options, where: str | None = None) -> tuple[int, ...]:
    texts = ", ".join(f"'{key}', '{value}'" for key, value in options.items())
    condition = "" if where is None else f', where => "{where}"'
    call = f"CALL peers.system.rewrite_data_files(table => '{name}', options => map({texts}){condition})"
    (row,) = lake.java.sql(call).to_pylist()
    return tuple(row.values())


def back_to(table: Table, snapshot_id: int) -> None:
    table.refresh().manage_snapshots().set_current_snapshot(snapshot_id).commit()


def test_the_same_files_are_chosen_and_counted(lake: Lake) -> None:
    table, name = worn(lake)
    start, files = table.metadata.current_snapshot_id, live(table)
    assert start is not None
    seen = set()
    for options in OPTIONS:
        plan = table.refresh().maintenance.rewrite_data_files(options=options, dry_run=True)
        ours = frozenset(path for group in plan.groups for path in group.files)
        counts = by_java(lake, name, options)
        assert ours == files - live(table), options
        assert counts[0] == plan.file_count, options
        seen.add(ours)
        back_to(table, start)
    assert len(seen) == len(OPTIONS), "options that choose the same files tell little"
    result = table.maintenance.rewrite_data_files(options=OPTIONS[0])
    back_to(table, start)
    assert by_java(lake, name, OPTIONS[0]) == result.counts


def test_java_reads_ours_and_goes_on(lake: Lake) -> None:
    table, name = worn(lake)
    columns = ("id", "part", "text", "_row_id", "_last_updated_sequence_number")
    before = lake.same(table, columns=columns)
    result = table.maintenance.rewrite_data_files(sort_order="id DESC", options={"rewrite-all": "true"})
    assert result.counts[0] == 6
    assert lake.same(table, columns=columns) == before
    lake.java.sql(f"DELETE FROM peers.{name} WHERE id = 501")
    lake.java.sql(f"INSERT INTO peers.{name} VALUES (7, 'x', 'new')")
    assert by_java(lake, name, {"rewrite-all": "true"})[0] == 3
    after = lake.same(table.refresh(), columns=columns)
    assert len(after) == len(before)
    kept = [row for row in after if row["text"] != "new"]
    assert kept == [row for row in before if row["id"] != 501]
    assert table.verify(level="data", progress=silent).ok


def test_where_and_the_deletes_of_other_rows(lake: Lake) -> None:
    """Deletes of rows that `where` does not match stay applied."""
    name, there = lake.made_by_java(2, "id BIGINT, text STRING")
    lake.java.sql(f"INSERT INTO {there} SELECT /*+ COALESCE(1) */ id, 'a' FROM range(0, 10, 1, 1)")
    table = lake.sql_catalog.load_table(name)
    delete_equal(table, {"id": [1, 2]})
    start = table.refresh().metadata.current_snapshot_id
    assert start is not None
    table.maintenance.rewrite_data_files(where="id = 5", options={"rewrite-all": "true"})
    assert [row["id"] for row in lake.same(table)] == [0, 3, 4, 5, 6, 7, 8, 9]
    back_to(table, start)
    by_java(lake, name, {"rewrite-all": "true"}, "id = 5")
    assert [row["id"] for row in lake.same(table.refresh())] == [0, 3, 4, 5, 6, 7, 8, 9]
