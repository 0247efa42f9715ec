"""Rewrites of position deletes: the same rows are deleted by fewer files, by vectors, by Puffin files without dead ones."""

import json
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings, strategies as st

from icefloe import Table, load_catalog
from icefloe.commit import Planned
from icefloe.errors import CorruptFileError, InvalidPropertyError
from icefloe.formats.deletion_vectors import DeletionVector
from icefloe.maintenance.deletes.position import RewrittenPositionDeletes, rewrite_position_delete_files
from icefloe.maintenance.deletes.request import DeletesRequest
from icefloe.maintenance.deletes.writing import DeleteWriter
from icefloe.manifests import DataFile, FileContent
from icefloe.schema import types
from icefloe.sql.procedures import call
from icefloe.verification import silent
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.maintenance.histories import History, check_same_rows, new_table, rows_of_snapshots, some_rows, steps
from tests.maintenance.test_convert_equality_deletes import (
    Meanwhile,
    another,
    check_files,
    deletes_of,
    keys,
)

WITH_DELETES = [
    pytest.param(version, marks=pytest.mark.slow) if version > 3 else version
    for version in ALL_VERSIONS
    if allows(version, Feature.DELETE_FILES)
]
"""The newest version differs from v3 in nothing that matters here."""
WITH_VECTORS = [version for version in WITH_DELETES if version != 2]
STEPS = ("append", "delete", "delete", "delete", "delete equal", "overwrite", "partition", "unpartition", "drop column")
OPTIONS: tuple[dict[str, str], ...] = (
    {},
    {"rewrite-all": "true"},
    {"min-input-files": "1"},
    {"min-input-files": "2", "partial-progress.enabled": "true"},
    {"rewrite-all": "true", "target-file-size-bytes": "1000"},
    {"min-input-files": "2", "max-files-to-rewrite": "2", "rewrite-job-order": "bytes-desc"},
)


def position_deletes(table: Table) -> list[DataFile]:
    return deletes_of(table, FileContent.POSITION_DELETES)


@pytest.mark.parametrize("version", WITH_DELETES)
@settings(max_examples=2, phases=(Phase.generate,), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_rows_stay_and_a_second_run_does_nothing(
    version: int, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    history = History(new_table(tmp_path_factory.mktemp("positions"), version))
    for name, number in [("append", 0), *data.draw(steps(*STEPS, "upgrade", min_size=5, max_size=12))]:
        history.step(name, number)
    history.step("append", 40)
    table, options = history.table, data.draw(st.sampled_from(OPTIONS))
    table.set_properties({"write.delete.granularity": data.draw(st.sampled_from(("file", "partition")))})
    before = rows_of_snapshots(table)
    try:
        table.maintenance.rewrite_position_delete_files(options)
        check_same_rows(before, table)
    except Exception as error:
        error.add_note(f"{options} after {history.steps}")
        raise
    if allows(table.format_version, Feature.DELETION_VECTORS) and "max-files-to-rewrite" not in options:
        assert all(file.is_deletion_vector for file in position_deletes(table))
    if not options:
        again = table.maintenance.rewrite_position_delete_files(options)
        assert again == RewrittenPositionDeletes()


def with_small_deletes(folder: Path, version: int, count: int = 3, granularity: str = "partition") -> Table:
    """Two files of rows 0 to 9 and 20 to 29, of which the first rows are deleted, each by a commit of its own."""
    table = new_table(folder, version)
    table.set_properties({"write.delete.granularity": granularity})
    table.append(some_rows(table, 0, 10))
    table.append(some_rows(table, 20, 10))
    for number in range(count):
        table.delete(f"k = {number}")
        table.delete(f"k = {20 + number}")
    return table


@pytest.mark.parametrize(("granularity", "after"), [("partition", 1), ("file", 2)])
def test_small_files_become_few(granularity: str, after: int, tmp_path: Path) -> None:
    table = with_small_deletes(tmp_path, 2, granularity=granularity)
    had = len(position_deletes(table))
    before, numbers = rows_of_snapshots(table), table.metadata.last_sequence_number
    planned = table.maintenance.rewrite_position_delete_files(dry_run=True)
    assert str(planned).startswith(f"rewrite {had} position deletes of ")
    assert [len(group) for group in json.loads(planned.to_json())["groups"]] == [had]
    done = planned.run()
    assert (done.rewritten_delete_files_count, done.added_delete_files_count) == (had, after)
    assert (done.rewritten_bytes_count > done.added_bytes_count > 0, done.skipped_delete_files_count) == (True, 0)
    check_same_rows(before, table)
    files = position_deletes(table)
    assert len(files) == after
    assert all((file.referenced_data_file is not None) == (granularity == "file") for file in files)
    # The highest number of those that were replaced.
    assert {row["data_sequence_number"] for row in delete_entries(table)} == {numbers}
    assert table.maintenance.rewrite_position_delete_files() == RewrittenPositionDeletes()


def delete_entries(table: Table) -> list[dict[str, object]]:
    rows = table.inspect.entries().to_pylist()
    entries = [{**row, "data_sequence_number": row["sequence_number"]} for row in rows]
    return [row for row in entries if row["status"] != 2 and row["data_file"]["content"] != 0]


def test_deletes_of_two_specs_never_mix(tmp_path: Path) -> None:
    table = new_table(tmp_path, 2)
    with table.update_schema() as schema:
        schema.add_column("n", types.IntegerType())
    with table.update_spec() as spec:
        spec.add_field("k", "truncate[100]")
    table.append(some_rows(table, 0, 12))
    with table.update_spec() as spec:
        spec.add_field("n")
    table.append(some_rows(table, 20, 12))
    # The rows of the second spec have no value of the new field, so that both have equal partitions but for the spec.
    for number in range(3):
        table.delete(f"k = {number} or k = {21 + 3 * number}")
    assert {(file.spec_id, file.partition) for file in position_deletes(table)} == {(1, (0,)), (2, (0, None))}
    before = rows_of_snapshots(table)
    done = table.maintenance.rewrite_position_delete_files(rewrite_all=True)
    assert (done.rewritten_delete_files_count, done.added_delete_files_count) == (6, 2)
    check_same_rows(before, table)


def test_only_the_chosen_partitions(tmp_path: Path) -> None:
    table = new_table(tmp_path, 2)
    with table.update_spec() as spec:
        spec.add_field("k", "truncate[10]")
    table.append(some_rows(table, 0, 10))
    table.append(some_rows(table, 10, 10))
    for number in range(2):
        table.delete(f"k = {number}")
        table.delete(f"k = {10 + number}")
    before = rows_of_snapshots(table)
    done = table.maintenance.rewrite_position_delete_files({"min-input-files": 2}, "k < 5")
    assert done.rewritten_delete_files_count == 2
    assert sorted(file.partition for file in position_deletes(table)) == [(0,), (10,), (10,)]
    check_same_rows(before, table)
    # Nothing but deletes of a data file that is gone.
    table.overwrite(some_rows(table, 50, 1), "k >= 10 and k < 20")
    done = table.maintenance.rewrite_position_delete_files({"min-input-files": 2}, "k >= 10 and k < 20")
    assert done.added_delete_files_count == 0
    assert [file.partition for file in position_deletes(table)] == [(0,)]
    assert table.verify(level="data", progress=silent).ok


def test_files_of_the_time_before_vectors_become_vectors(tmp_path: Path) -> None:
    table = with_small_deletes(tmp_path, 2, count=2)
    table.upgrade_format_version(3)
    table.delete("k = 9")
    kept = [file for file in position_deletes(table) if file.is_deletion_vector]
    assert len(kept) == 1
    before = rows_of_snapshots(table)
    done = table.maintenance.rewrite_position_delete_files()
    assert (done.rewritten_delete_files_count, done.added_delete_files_count) == (2, 1)
    check_same_rows(before, table)
    vectors = position_deletes(table)
    assert sorted(file.record_count for file in vectors) == [2, 3]
    assert kept[0] in vectors
    assert table.maintenance.rewrite_position_delete_files() == RewrittenPositionDeletes()
    check_files(table)


@pytest.mark.parametrize("version", WITH_VECTORS)
def test_puffin_files_lose_their_dead_vectors(version: int, tmp_path: Path) -> None:
    table = new_table(tmp_path, version)
    for number in range(8):
        table.append(some_rows(table, 10 * number, 4))
    # One Puffin file of eight vectors, and seven that replace all of them but one.
    table.delete("k = 0 or k = 10 or k = 20 or k = 30 or k = 40 or k = 50 or k = 60 or k = 70")
    table.delete("k = 1 or k = 11 or k = 21 or k = 31 or k = 41 or k = 51 or k = 61")
    before, had = rows_of_snapshots(table), {file.referenced_data_file: file for file in position_deletes(table)}
    done = table.maintenance.rewrite_position_delete_files()
    assert (done.rewritten_delete_files_count, done.added_delete_files_count) == (1, 1)
    assert done.rewritten_bytes_count == done.added_bytes_count
    check_same_rows(before, table)
    changed = [file for file in position_deletes(table) if file != had[file.referenced_data_file]]
    assert len(changed) == 1
    assert changed[0].file_size_in_bytes < had[changed[0].referenced_data_file].file_size_in_bytes / 2
    assert stored(table, changed[0]) == stored(table, had[changed[0].referenced_data_file])
    assert table.maintenance.rewrite_position_delete_files() == RewrittenPositionDeletes()
    # Small ones go together.
    assert table.maintenance.rewrite_position_delete_files(min_input_files=2).added_delete_files_count == 8
    assert len({file.file_path for file in position_deletes(table)}) == 1
    check_same_rows(before, table)
    assert table.maintenance.rewrite_position_delete_files(min_input_files=2) == RewrittenPositionDeletes()


def stored(table: Table, vector: DataFile) -> bytes:
    assert vector.content_offset is not None
    assert vector.content_size_in_bytes is not None
    return table.storage.read_range(vector.file_path, vector.content_offset, vector.content_size_in_bytes)


def compact(table: Table) -> None:
    table.maintenance.rewrite_data_files(options={"rewrite-all": "true"})


OTHERS: dict[str, Callable[[Table], object]] = {
    "delete of another row": lambda table: table.delete("k = 8 or k = 28"),
    "the same rewrite": lambda table: table.maintenance.rewrite_position_delete_files(min_input_files=2),
    "compaction": compact,
    "upgrade": lambda table: table.format_version == 2 and table.upgrade_format_version(3),
}


@pytest.mark.parametrize(
    ("start", "name"),
    [(start, name) for start in ("v2", "upgraded", "v3") for name in OTHERS if name != "upgrade" or start == "v2"],
)
def test_others_do_not_make_it_fail(start: str, name: str, tmp_path: Path) -> None:
    table = with_small_deletes(tmp_path, 3 if start == "v3" else 2, count=2)
    if start == "upgraded":
        table.upgrade_format_version(3)
    other = another(table)
    rewrite_position_delete_files(
        DeletesRequest(table, Meanwhile(happens=lambda: OTHERS[name](other)), {"min-input-files": "2"})
    )
    deleted = {0, 1, 20, 21} | ({8, 28} if name == "delete of another row" else set())
    assert keys(table.refresh()) == sorted({*range(10), *range(20, 30)} - deleted)
    assert table.verify(level="data", progress=silent).ok
    check_files(table)


def test_positions_beyond_the_end_of_a_file_are_an_error(tmp_path: Path) -> None:
    table = with_small_deletes(tmp_path, 2, count=1)
    file = next(iter(table.scan().plan_files())).file
    writer = DeleteWriter(table.metadata, table.storage, str(uuid.uuid4()))
    beyond = writer.positions([(file, DeletionVector.from_positions([99]))])
    table.update_snapshot().row_delta(Planned.on(table.metadata), deletes=[beyond])
    with pytest.raises(CorruptFileError, match=r"deletes row 99 of .* which has 10 rows"):
        table.maintenance.rewrite_position_delete_files(rewrite_all=True)


def test_the_procedure(tmp_path: Path) -> None:
    table = with_small_deletes(tmp_path, 2)
    catalog = load_catalog("lake", type="sql", uri=f"sqlite:///{tmp_path}/catalog.db")
    name = ".".join(table.name())
    with pytest.raises(InvalidPropertyError, match="did you mean 'min-input-files'"):
        call(catalog, "rewrite_position_delete_files", (name, {"min-input-file": "1"}))
    done = call(catalog, "rewrite_position_delete_files", (name, None, "k >= 0"))
    assert done.schema.names == [
        "rewritten_delete_files_count",
        "added_delete_files_count",
        "rewritten_bytes_count",
        "added_bytes_count",
    ]
    assert list(map(str, done.schema.types)) == ["int32", "int32", "int64", "int64"]
    assert done.to_pylist()[0]["added_delete_files_count"] == 1
