"""`rewrite_manifests` side by side: Java on one table, we on its twin, and every entry the same as before."""

from typing import Any

import pytest

from icefloe.manifests import EntryStatus, ManifestContent
from icefloe.sql.procedures import call
from icefloe.table import Table
from tests.commit.tables import entries, manifests
from tests.peers.java import JAVA_VERSIONS
from tests.peers.lake import Lake
from tests.shared_rows import row_modes

versions = pytest.mark.parametrize(
    "version", [*(pytest.param(each, marks=pytest.mark.slow) for each in JAVA_VERSIONS[:-1]), JAVA_VERSIONS[-1]]
)


def twin(lake: Lake, version: int) -> Table:
    """A table of Java's: three appends in two partitions, and deletes where there are delete files."""
    name, there = lake.made_by_java(version, "id BIGINT, name STRING", "PARTITIONED BY (name)")
    modes = ", ".join(
        f"'{key}'='{value}'" for key, value in row_modes("merge-on-read" if version > 1 else "copy-on-write").items()
    )
    lake.java.sql(f"ALTER TABLE {there} SET TBLPROPERTIES ({modes})")
    for i in range(3):
        lake.java.sql(f"INSERT INTO {there} VALUES ({i}, 'x'), ({10 + i}, 'y')")
    for i in (1, 11):
        lake.java.sql(f"DELETE FROM {there} WHERE id = {i}")
    return lake.sql_catalog.load_table(name)


def facts(table: Table, content: ManifestContent) -> list[Any]:
    """What entries say, without ids and paths that differ from table to table: those are by the order of snapshots."""
    order = {snapshot.snapshot_id: number for number, snapshot in enumerate(table.metadata.snapshots)}
    return sorted(
        (
            each.status is not EntryStatus.DELETED,
            order[each.snapshot_id or 0],
            each.sequence_number,
            each.file_sequence_number,
            each.data_file.partition,
            each.data_file.record_count,
            each.data_file.first_row_id,
            sorted(each.data_file.lower_bounds.items()) if content is ManifestContent.DATA else [],
            sorted(each.data_file.value_counts.items()) if content is ManifestContent.DATA else [],
        )
        for each in entries(table, content)
    )


@versions
def test_the_same_entries_in_as_many_manifests(lake: Lake, version: int) -> None:
    theirs, ours = twin(lake, version), twin(lake, version)
    before = {each.data_file.file_path: each.data_file for each in entries(ours)}
    [counts] = lake.java.sql(f"CALL peers.system.rewrite_manifests('{'.'.join(theirs.name())}')").to_pylist()
    [own] = call(lake.sql_catalog, "rewrite_manifests", (".".join(ours.name()),)).to_pylist()
    assert own == counts
    theirs.refresh()
    assert {each.data_file.file_path: each.data_file for each in entries(ours)} == before
    assert len(ours.refresh().metadata.snapshots) == len(theirs.metadata.snapshots)
    for content in ManifestContent:
        assert facts(ours, content) == facts(theirs, content)
        assert _count(ours, content) == _count(theirs, content)
    assert [each["id"] for each in lake.same(ours)] == [0, 2, 10, 12]
    # Java finds nothing to do in what we wrote, and we nothing in what it wrote.
    again = call(lake.sql_catalog, "rewrite_manifests", (".".join(theirs.name()),)).to_pylist()
    assert again == [dict.fromkeys(counts, 0)]
    ours.append(ours.scan(limit=1).to_arrow())
    lake.java.sql(f"CALL peers.system.rewrite_manifests(table => '{'.'.join(ours.name())}', sort_by => array('name'))")
    assert ours.refresh().verify(level="data").ok


def _count(table: Table, content: ManifestContent) -> int:
    return sum(each.content is content and each.has_live_files for each in manifests(table))
