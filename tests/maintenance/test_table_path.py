"""Copies of tables beneath another location: the same rows in every snapshot, read from the copy alone."""

import csv
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from icefloe import Table, load_catalog
from icefloe.catalog import Catalog
from icefloe.errors import InvalidInputError, StateError
from icefloe.formats.file_formats import DATA_FORMATS, reader_of, writer_of
from icefloe.formats.position_deletes import POSITION_DELETE_SCHEMA, relocate_position_deletes
from icefloe.maintenance.copies.prefixes import Prefixes
from icefloe.maintenance.copies.table_path import RewrittenTablePath
from icefloe.manifests import SnapshotManifests
from icefloe.schema import Schema, reserved, schema_to_arrow, types
from icefloe.verification import silent
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.catalog.faults import KILL_BEFORE, Killed, Wire, wired
from tests.maintenance.histories import History, new_table, rows_of_snapshots, steps
from tests.maintenance.worn import FUTURE, NAME, check_whole, new_rows, worn_table
from tests.spark.reading import delete_equal

WITH_DELETE_FILES = [version for version in ALL_VERSIONS if allows(version, Feature.DELETE_FILES)]
ABSOLUTE = [version for version in ALL_VERSIONS if not allows(version, Feature.RELATIVE_PATHS)]


def new_catalog(folder: Path) -> Catalog:
    return load_catalog("lake", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=str(folder / "files"))


def lines(done: RewrittenTablePath, table: Table) -> list[tuple[str, str]]:
    """The list, each line a pair."""
    text = table.storage.read(done.file_list_location).decode()
    return [(source, target) for source, target in csv.reader(text.splitlines())]


def copy_all(done: RewrittenTablePath, table: Table) -> None:
    pairs = lines(done, table)
    assert len({target for _, target in pairs}) == len(pairs) == done.listed_files_count
    for source, target in pairs:
        table.storage.write(target, table.storage.read(source))


def registered(done: RewrittenTablePath, table: Table, folder: Path) -> Table:
    """The copy under a name of its own, while the source is out of reach."""
    catalog = new_catalog(folder)
    catalog.create_namespace_if_not_exists("copies")
    return catalog.register_table(("copies", "t"), done.metadata_location, overwrite=True)


def source_of(table: Table) -> Path:
    return Path(str(table.location()).removeprefix("file://"))


def check_alone(copy: Table, table: Table, rows: dict[str, Counter[str]]) -> None:
    """The copy has these rows in every snapshot, and is whole, without the source."""
    with out_of_reach(source_of(table)):
        assert rows_of_snapshots(copy) == rows
        report = copy.verify(level="data", progress=silent)
        assert report.ok, report
        _check_lengths(copy)


@contextmanager
def out_of_reach(folder: Path) -> Iterator[None]:
    """Nobody finds what is in the folder meanwhile."""
    hidden = folder.rename(folder.with_name("hidden"))
    yield
    hidden.rename(folder)


def _check_lengths(copy: Table) -> None:
    source = SnapshotManifests(copy.metadata, copy.storage.read)
    for snapshot in copy.snapshots():
        for manifest in source.of(snapshot):
            assert manifest.manifest_length == copy.storage.stat(manifest.manifest_path).size


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_a_copy_is_the_table(version: int, tmp_path: Path) -> None:
    table = worn_table(new_catalog(tmp_path), version)
    table.maintenance.compute_table_stats()
    table.maintenance.compute_partition_stats()
    rows, target = rows_of_snapshots(table), tmp_path / "moved, here"
    done = table.maintenance.rewrite_table_path(str(table.location()), f"{target}/")
    copy_all(done, table)
    copy = registered(done, table, tmp_path)
    check_alone(copy, table, rows)
    statistics = [file.statistics_path for file in copy.metadata.statistics]
    statistics += [file.statistics_path for file in copy.metadata.partition_statistics]
    assert len(statistics) == 2
    assert all((target / "metadata" / Path(path).name).exists() for path in statistics)
    staged = [source for source, _ in lines(done, table) if "copy-table-staging" in source]
    if allows(version, Feature.RELATIVE_PATHS):
        assert all(source.endswith(".metadata.json") for source in staged)
        assert (done.rewritten_manifest_file_paths_count, done.rewritten_delete_file_paths_count) == (0, 0)
    else:
        manifests = {manifest["path"] for manifest in table.inspect.all_manifests().to_pylist()}
        assert done.rewritten_manifest_file_paths_count == len(manifests)
        assert (done.rewritten_delete_file_paths_count > 0) == allows(version, Feature.DELETE_FILES)
    assert done.latest_version == str(table.metadata_location).rpartition("/")[2]


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_incremental_copies_have_files_of_expired_snapshots(version: int, tmp_path: Path) -> None:
    """[J #14458]: what a snapshot added that expired since is live all the same."""
    table, target = worn_table(new_catalog(tmp_path), version), str(tmp_path / "moved")
    source = str(table.location())
    table.set_properties({"write.metadata.previous-versions-max": "100"})
    first = table.maintenance.rewrite_table_path(source, target)
    copy_all(first, table)
    start = str(table.metadata_location)
    table.append(new_rows(200))
    table.delete("k = 200 or k = 12")
    table.append(new_rows(201))
    table.update_snapshot().rewrite_manifests()
    if allows(version, Feature.DELETE_FILES):
        delete_equal(table, {"k": [201]}, of=next(table.scan("k = 201").plan_files()).file)
    table.append(new_rows(202))
    table.maintenance.expire_snapshots(older_than=FUTURE, retain_last=1)
    with out_of_reach(Path(target)) if version % 2 else nullcontext():
        second = table.maintenance.rewrite_table_path(source, target, start_version=start)
    known = {target for _, target in lines(first, table)}
    again = known & {target for _, target in lines(second, table)}
    assert not again, "what was copied is not copied again"
    copy_all(second, table)
    check_alone(registered(second, table, tmp_path), table, rows_of_snapshots(table))
    assert table.maintenance.rewrite_table_path(source, target, create_file_list=False).file_list_location == "N/A"


@pytest.mark.parametrize("file_format", ["parquet", "avro", "orc"])
def test_position_deletes_of_every_format(file_format: str, tmp_path: Path) -> None:
    table = worn_table(new_catalog(tmp_path), 2)
    folder = f"{table.location()}/described/here"
    gzip = {"write.metadata.compression-codec": "gzip", "write.metadata.path": folder}
    table.set_properties({"write.delete.format.default": file_format, **gzip})
    table.delete("k = 2 or k = 22 or k = 42")
    done = table.maintenance.rewrite_table_path(str(table.location()), str(tmp_path / "moved"))
    copy_all(done, table)
    copy = registered(done, table, tmp_path)
    formats = {file["file_format"].lower() for file in copy.inspect.delete_files().to_pylist()}
    assert file_format in formats
    assert copy.properties["write.metadata.path"] == f"file://{tmp_path}/moved/described/here"
    check_alone(copy, table, rows_of_snapshots(table))
    copy.delete("k = 3")
    assert 3 not in copy.scan().to_arrow()["k"].to_pylist()


def test_absolute_paths_of_a_table_that_has_relative_ones_now(tmp_path: Path) -> None:
    table = worn_table(new_catalog(tmp_path), ABSOLUTE[-1])
    table.upgrade_format_version(ALL_VERSIONS[-1])
    table.append(new_rows(200))
    done = table.maintenance.rewrite_table_path(str(table.location()), str(tmp_path / "moved"))
    copy_all(done, table)
    check_alone(registered(done, table, tmp_path), table, rows_of_snapshots(table))
    assert 0 < done.rewritten_manifest_file_paths_count < len(table.inspect.all_manifests())


@pytest.mark.parametrize("file_format", DATA_FORMATS)
def test_deleted_rows_in_position_deletes_stay(file_format: str) -> None:
    row = reserved.deleted_row_column(types.StructType(types.NestedField(1, "id", types.LongType())))
    schema = Schema(*POSITION_DELETE_SCHEMA.fields, row)
    rows = {"file_path": ["/a/x", "/a/y"], "pos": [4, 2], "row": [{"id": 7}, None]}
    written, moved = pa.BufferOutputStream(), pa.BufferOutputStream()
    writer = writer_of(file_format)(written, schema, {}, metadata={"delete-type": "position"})
    writer.write(pa.RecordBatch.from_pydict(rows, schema_to_arrow(schema)))
    writer.close()
    change = Prefixes.of("/a", "/b").moved_column
    relocate_position_deletes(pa.BufferReader(written.getvalue()), "deletes", file_format, moved, change)
    [batch] = reader_of(file_format)(pa.BufferReader(moved.getvalue()), "deletes", schema).batches()
    assert batch.to_pydict() == rows | {"file_path": ["file:///b/x", "file:///b/y"]}


@pytest.mark.slow
@pytest.mark.parametrize("version", ALL_VERSIONS)
@settings(max_examples=5)
@given(chosen=steps(), cut=st.integers(0, 8))
def test_copies_of_any_table(
    version: int, tmp_path_factory: pytest.TempPathFactory, chosen: list[tuple[str, int]], cut: int
) -> None:
    folder = tmp_path_factory.mktemp("copies")
    history = History(new_table(folder, version))
    table, target = history.table, str(folder / "moved")
    for name, number in chosen[:cut]:
        history.step(name, number)
    start = str(table.metadata_location)
    copy_all(table.maintenance.rewrite_table_path(str(table.location()), target), table)
    for name, number in chosen[cut:]:
        history.step(name, number)
    if table.refresh().metadata_location != start:
        done = table.maintenance.rewrite_table_path(str(table.location()), target, start_version=start)
        copy_all(done, table)
        check_alone(registered(done, table, folder), table, rows_of_snapshots(table))
    shutil.rmtree(folder)


def killed(catalog: Catalog, stage: Path, target: Path, number: int) -> int:
    """Rewrite the table's paths, killed before a step that writes; without such a step, how many there are."""
    wire = Wire(KILL_BEFORE, number)
    table = wired(catalog, wire).load_table(NAME)
    wire.begin()
    with suppress(Killed):
        table.maintenance.rewrite_table_path(str(table.location()), str(target), staging_location=str(stage))
    return len(KILL_BEFORE.places(wire.steps))


@pytest.mark.parametrize(
    "version", [pytest.param(each, marks=() if each == 3 else pytest.mark.slow) for each in ABSOLUTE]
)
def test_a_copy_whose_preparation_was_killed_is_prepared_again(version: int, tmp_path: Path) -> None:
    """A staging folder without its list is not complete; the same one can be used again."""
    catalog = new_catalog(tmp_path)
    table = worn_table(catalog, version)
    before = (table.metadata_location, rows_of_snapshots(table))
    stored = {info.location for info in table.storage.list_prefix(str(table.location()))}
    count = killed(catalog, tmp_path / "whole", tmp_path / "there", -1)
    assert (tmp_path / "whole" / "file-list").exists()
    # The list is the last of all; every step before it may be the one at which it ends.
    for number in range(count) if version != 3 else (0, count // 2, count - 1):
        stage, target = tmp_path / f"stage {number}", tmp_path / f"moved {number}"
        killed(catalog, stage, target, number)
        assert not (stage / "file-list").exists()
        fresh = catalog.load_table(NAME)
        assert (fresh.metadata_location, rows_of_snapshots(fresh)) == before
        assert {info.location for info in table.storage.list_prefix(str(table.location()))} == stored
        done = fresh.maintenance.rewrite_table_path(str(table.location()), str(target), staging_location=str(stage))
        assert done.listed_files_count == len(lines(done, table))
        if number in (0, count - 1):
            copy_all(done, table)
            check_alone(registered(done, table, tmp_path), table, before[1])


def test_what_is_refused(tmp_path: Path) -> None:
    table = worn_table(new_catalog(tmp_path), 2)
    source, call = str(table.location()), table.maintenance.rewrite_table_path
    for arguments, match in (
        ((source, f"{source}/"), "same location"),
        (("", "/x"), "source_prefix"),
        ((f"{source}/data", "/x"), "not beneath the source prefix"),
        ((source, "/x", "v7"), "'v7' is no metadata file"),
        ((source, "/x", str(table.metadata_location)), "not before the end"),
    ):
        with pytest.raises(InvalidInputError, match=match):
            call(*arguments)
    gone = table.metadata.metadata_log[0].metadata_file
    Path(gone.removeprefix("file://")).unlink()
    with pytest.raises(StateError, match="the file is gone"):
        call(source, str(tmp_path / "moved"), gone)
    done = call(source, str(tmp_path / "moved"), staging_location=str(tmp_path / "stage"))
    assert done.missing_metadata_files == (gone,)
    assert done.file_list_location == f"file://{tmp_path}/stage/file-list"
    check_whole(table)
