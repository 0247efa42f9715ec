"""Changes between snapshots and copies of tables, beside those of Java Iceberg."""

import json
import shutil
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from icefloe.storage import identity
from icefloe.table import Table
from tests.peers.comparing import comparable
from tests.peers.engines import DuckDB, PyIceberg
from tests.peers.java import JAVA_VERSIONS
from tests.peers.lake import MODES, SESSION, SQL, Lake
from tests.peers.scenarios import Read


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
@pytest.mark.parametrize("version", [pytest.param(JAVA_VERSIONS[0], marks=pytest.mark.slow), JAVA_VERSIONS[-1]])
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


@cell("rewrite_table_path: a copy read by Java, PyIceberg, DuckDB and us")
@pytest.mark.parametrize("version", [pytest.param(2, marks=pytest.mark.slow), JAVA_VERSIONS[-1]])
def test_a_copy(lake: Lake, version: int, tmp_path: Path) -> None:
    name, there = lake.made_by_java(version, "id BIGINT, name STRING", "PARTITIONED BY (bucket(2, id))", MODES[1])
    for statement in (
        f"INSERT INTO {there} VALUES {', '.join(f'({i}, {chr(39)}x{chr(39)})' for i in range(8))}",
        f"DELETE FROM {there} WHERE id IN (1, 4)",
        f"UPDATE {there} SET name = 'new' WHERE id = 2",
        f"CALL {SQL}.system.rewrite_manifests('{there}')",
    ):
        lake.java.sql(statement)
    table = lake.sql_catalog.load_table(name)
    # Java spells paths as file:/ here, and its location as file:///, which its own procedure does not take.
    source, target = str(table.location()), (tmp_path / "copy").as_uri()
    done = table.maintenance.rewrite_table_path(source, target)
    for line in table.storage.read(done.file_list_location).decode().splitlines():
        here, copied = line.split(",")
        table.storage.write(copied, table.storage.read(here))
    files = Path(source.removeprefix("file://"))
    files.rename(files.with_name(f"{files.name}-hidden"))
    copy = lake.sql_catalog.register_table(lake.new_name(), done.metadata_location)
    expected = lake.same(copy)
    assert [row["id"] for row in expected] == [0, 2, 3, 5, 6, 7]
    assert copy.verify(level="data").ok
    for reader in (PyIceberg(), DuckDB()) if version == 2 else (DuckDB(),):
        assert comparable(reader.read(copy, Read(())), "id", copy.scan().to_arrow().schema) == expected


@cell("rewrite_table_path: counts and files")
@pytest.mark.parametrize("version", [2, pytest.param(JAVA_VERSIONS[-1], marks=pytest.mark.slow)])
def test_counts_of_a_copy(lake: Lake, version: int, tmp_path: Path) -> None:
    # Java spells files as file:/, so its procedure takes a location that is spelled so.
    source, target = f"file:{tmp_path}/source", f"file:{tmp_path}/target"
    columns, tail = "id BIGINT, name STRING", f"PARTITIONED BY (bucket(2, id)) LOCATION '{source}'"
    name, there = lake.made_by_java(version, columns, tail, MODES[1])
    values = ", ".join(f"({number}, 'x')" for number in range(8))
    for statement in (
        f"INSERT INTO {there} VALUES {values}",
        f"DELETE FROM {there} WHERE id IN (1, 4)",
        f"UPDATE {there} SET name = 'new' WHERE id = 2",
    ):
        lake.java.sql(statement)
    table = lake.sql_catalog.load_table(name)
    start = str(table.metadata_location).rpartition("/")[2]
    first = paths_rewritten(lake, table, source, target)
    assert first[1] > 0
    lake.java.sql(f"INSERT INTO {there} VALUES (20, 'y')")
    lake.java.sql(f"DELETE FROM {there} WHERE id = 5")
    paths_rewritten(lake, table.refresh(), source, target, start)


def paths_rewritten(lake: Lake, table: Table, source: str, target: str, start: str | None = None) -> tuple[int, int]:
    """The counts of both, which must be alike, as must be the files that they list."""
    options = "" if start is None else f", '{start}'"
    call = f"CALL {SQL}.system.rewrite_table_path('{'.'.join(table.name())}', '{source}', '{target}'{options})"
    [theirs] = lake.java.rows(call)
    ours = table.maintenance.rewrite_table_path(source, target, start)
    counts = ours.rewritten_manifest_file_paths_count, ours.rewritten_delete_file_paths_count
    assert ours.latest_version == theirs["latest_version"]
    their_counts = theirs["rewritten_manifest_file_paths_count"], theirs["rewritten_delete_file_paths_count"]
    assert counts == their_counts

    def listed(location: str) -> set[str]:
        files = (
            file for file in table.storage.list_prefix(location) if not file.location.endswith((".crc", "_SUCCESS"))
        )
        text = "".join(table.storage.read(file.location).decode() for file in files)
        return {identity(line.rpartition(",")[2]) for line in text.splitlines()}

    assert listed(ours.file_list_location) == listed(theirs["file_list_location"])
    return counts


@cell("snapshot: rows, properties and files")
@pytest.mark.parametrize("version", [2])
def test_a_snapshot(lake: Lake, tmp_path: Path, version: int) -> None:
    folder = tmp_path / "files"
    lake.java.sql(
        f"CREATE TABLE spark_catalog.default.old (id BIGINT, p INT) USING parquet PARTITIONED BY (p) LOCATION '{folder}'"
    )
    lake.java.sql("INSERT INTO spark_catalog.default.old VALUES (1, 1), (2, 2), (3, null)")
    name = lake.new_name()
    there = f"{SQL}.{name}"
    counted_there = lake.java.sql(f"CALL {SQL}.system.snapshot('spark_catalog.default.old', '{there}')")
    theirs = lake.sql_catalog.load_table(name)
    properties = {"format-version": str(version)}
    ours = lake.sql_catalog.snapshot(str(folder), lake.new_name(), properties=properties, schema="id bigint, p int")
    assert counted_there["imported_files_count"][0].as_py() == len(list(ours.scan().plan_files()))
    assert lake.same(ours) == lake.same(theirs)
    for key in ("gc.enabled", "snapshot"):
        assert ours.properties[key] == theirs.properties[key]

    assert entries(ours) == entries(theirs)
    assert name_mapping(ours) == name_mapping(theirs)


def entries(table: Table) -> list[tuple[str, int, object]]:
    """The files of a table, with their rows and partitions."""
    files = (task.file for task in table.scan().plan_files())
    return sorted((identity(file.file_path), file.record_count, file.partition) for file in files)


def name_mapping(table: Table) -> object:
    return json.loads(table.properties["schema.name-mapping.default"])


@cell("migrate: rows, properties and files")
@pytest.mark.parametrize(("file_format", "version"), [("parquet", 2), pytest.param("orc", 2, marks=pytest.mark.slow)])
def test_a_migration(lake: Lake, tmp_path: Path, file_format: str, version: int) -> None:
    old, folder, twin = f"{SESSION}.default.to_{file_format}", tmp_path / "files", tmp_path / "twin"
    lake.java.sql(
        f"CREATE TABLE {old} (id BIGINT, name STRING, p INT) USING {file_format} PARTITIONED BY (p) LOCATION '{folder}'"
        " TBLPROPERTIES ('team' = 'me')"
    )
    lake.java.sql(f"INSERT INTO {old} VALUES (1, 'a', 1), (2, null, 2), (3, 'c', null), (4, 'd', 1)")
    shutil.copytree(folder, twin)
    [done] = lake.java.rows(f"CALL {SESSION}.system.migrate('default.to_{file_format}')")
    theirs = lake.session_catalog.load_table(f"default.to_{file_format}")
    properties = {"format-version": str(version), "team": "me"}
    schema = "id bigint, name string, p int"
    ours = lake.sql_catalog.migrate(
        str(twin), lake.new_name(), file_format=file_format, schema=schema, properties=properties
    )
    assert done["migrated_files_count"] == len(list(ours.scan().plan_files()))
    assert comparable(ours.scan().to_arrow(), "id") == comparable(theirs.scan().to_arrow(), "id")
    assert comparable(lake.java.sql(f"SELECT * FROM {old}"), "id", ours.scan().to_arrow().schema) == lake.same(ours)
    for key in ("migrated", "team"):
        assert ours.properties[key] == theirs.properties[key]
    assert name_mapping(ours) == name_mapping(theirs)
    assert [field.name for field in ours.spec().fields] == [field.name for field in theirs.spec().fields]
    assert ours.schema().same_columns(theirs.schema())
    assert sorted((path.replace(str(twin), str(folder)), *rest) for path, *rest in entries(ours)) == entries(theirs)
    assert theirs.verify(level="data").ok
    # Each goes on with what the other has made.
    lake.java.sql(f"INSERT INTO {lake.their_name(ours)} VALUES (5, 'e', 2)")
    theirs.append(pa.table({"id": [5], "name": ["e"], "p": pa.array([2], pa.int32())}))
    lake.java.sql(f"DELETE FROM {old} WHERE id = 1")
    lake.java.sql(f"DELETE FROM {lake.their_name(ours)} WHERE id = 1")
    assert lake.same(ours.refresh()) == comparable(theirs.refresh().scan().to_arrow(), "id")
    lake.java.sql(f"DROP TABLE {old}_BACKUP_")
