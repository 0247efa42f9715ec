"""Changes between snapshots and copies of tables, beside those of Java Iceberg."""

from collections import Counter

import pyarrow as pa
import pytest

from icefloe.table import Table
from tests.peers.java import JAVA_VERSIONS
from tests.peers.lake import SQL, Lake


def cell(scenario: str) -> pytest.MarkDecorator:
    """The mark of a test of what this peer writes."""
    return pytest.mark.cell(direction="they write", peer="java", scenario=scenario)


def counted(rows: pa.Table) -> Counter[str]:
    return Counter(repr(tuple(row.values())) for row in rows.to_pylist())


def their_changes(lake: Lake, there: str, **more: str) -> Counter[str]:
    """The rows of Java's view."""
    options = "".join(f", {key} => {value}" for key, value in more.items())
    lake.java.sql(f"CALL {SQL}.system.create_changelog_view(table => '{there}', changelog_view => 'seen'{options})")
    return counted(lake.java.sql("SELECT * FROM seen"))


@cell("create_changelog_view: rows of all modes")
@pytest.mark.parametrize("version", [JAVA_VERSIONS[0], JAVA_VERSIONS[-1]])
def test_changes(lake: Lake, version: int) -> None:
    columns = "id BIGINT, name STRING, d DOUBLE, s STRUCT<a: INT>"
    name, there = lake.made_by_java(version, columns, "PARTITIONED BY (bucket(2, id))")
    row = "CAST('NaN' AS DOUBLE), named_struct('a', 1)"
    for statement in (
        f"INSERT INTO {there} VALUES (1, 'a', null, null), (2, 'b', {row}), (3, 'c', {row}), (3, 'c', {row})",
        f"UPDATE {there} SET name = 'new' WHERE id = 2",
        f"DELETE FROM {there} WHERE id = 1",
        f"INSERT INTO {there} VALUES (1, 'a', null, null), (1, 'a', null, null)",
        f"INSERT OVERWRITE {there} VALUES (2, 'b', {row}), (3, 'c', {row}), (4, 'd', null, null)",
    ):
        lake.java.sql(statement)
    table: Table = lake.sql_catalog.load_table(name)
    first, second, third, *_ = table.snapshots()
    assert counted(table.scan_changes().to_arrow()) == their_changes(lake, there)
    after = f"map('start-snapshot-id', '{first.snapshot_id}', 'end-snapshot-id', '{third.snapshot_id}')"
    ranged = table.scan_changes(first.snapshot_id, third.snapshot_id, identifier_columns=["id"])
    assert counted(ranged.to_arrow()) == their_changes(
        lake, there, options=after, identifier_columns="array('id')", compute_updates="true"
    )
    until = f"map('end-snapshot-id', '{second.snapshot_id}')"
    net = table.scan_changes(None, second.snapshot_id, net_changes=True)
    assert counted(net.to_arrow()) == their_changes(lake, there, options=until, net_changes="true")
