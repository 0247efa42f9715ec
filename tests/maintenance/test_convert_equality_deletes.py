"""Conversion of equality deletes: the same rows are deleted, by position, whoever writes meanwhile."""

import datetime as dt
import json
import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings, strategies as st

from icefloe import Table, load_catalog
from icefloe.commit import Planned
from icefloe.data import WriteRequest, write_data_files
from icefloe.errors import InvalidPropertyError, NoSuchSnapshotError, ValidationError
from icefloe.maintenance import Item, Result, Threads
from icefloe.maintenance.deletes.equality import ConvertedDeletes, convert_equality_deletes
from icefloe.maintenance.deletes.request import DeletesRequest
from icefloe.manifests import DataFile, FileContent
from icefloe.schema import types
from icefloe.sql.procedures import call
from icefloe.verification import silent
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.maintenance.histories import (
    LINEAGE,
    History,
    check_same_rows,
    new_table,
    rows_of_snapshots,
    some_rows,
    steps,
)
from tests.maintenance.test_expire_snapshots import drop_old_metadata_files, needed, on_disk
from tests.spark.reading import delete_equal

WITH_DELETES = [
    pytest.param(version, marks=pytest.mark.slow) if version > 3 else version
    for version in ALL_VERSIONS
    if allows(version, Feature.DELETE_FILES)
]
"""The newest version differs from v3 in nothing that matters here."""
WITH_VECTORS = [version for version in ALL_VERSIONS if allows(version, Feature.DELETION_VECTORS)]
STEPS = (
    "append",
    "delete",
    "delete equal",
    "delete equal",
    "delete equal in a partition",
    "delete equal in a partition",
    "overwrite",
    "partition",
    "unpartition",
    "drop column",
    "add column",
    "promote",
    "upgrade",
)


def deletes_of(table: Table, content: FileContent | None = None) -> list[DataFile]:
    files = {(d.file_path, d.content_offset): d for task in table.scan().plan_files() for d in task.deletes}
    return [file for file in files.values() if content in (None, file.content)]


@pytest.mark.parametrize("version", WITH_DELETES)
@settings(max_examples=2, phases=(Phase.generate,), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_rows_stay_and_no_equality_delete_is_left(
    version: int, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    history = History(new_table(tmp_path_factory.mktemp("convert"), version))
    for name, number in [("append", 0), *data.draw(steps(*STEPS, min_size=5, max_size=12))]:
        history.step(name, number)
    # Rows have ids only once something was committed since the upgrade.
    history.step("append", 40)
    table = history.table
    options = data.draw(
        st.sampled_from(
            (
                {},
                {"key-memory-bytes": "64", "max-file-group-input-files": "2"},
                {"partial-progress.enabled": "true", "max-file-group-input-files": "1"},
            )
        )
    )
    before = rows_of_snapshots(table)
    had = len(deletes_of(table, FileContent.EQUALITY_DELETES))
    try:
        done = table.maintenance.convert_equality_deletes(options=options)
        check_same_rows(before, table)
    except Exception as error:
        error.add_note(f"{options} after {history.steps}")
        raise
    assert deletes_of(table, FileContent.EQUALITY_DELETES) == []
    assert done.converted_equality_delete_files_count >= had
    assert done.kept == ()
    assert table.maintenance.convert_equality_deletes() == ConvertedDeletes()


# -- others at work


@dataclass(frozen=True)
class Meanwhile(Threads):
    """An engine in whose time somebody else does something: between plan and commit."""

    happens: Callable[[], object] = lambda: None

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        yield from map(function, items)
        self.happens()


def with_deleted_keys(folder: Path, version: int) -> Table:
    """Two files of rows 0 to 5 and 10 to 15, and an equality delete of 1, 2 and 11."""
    table = new_table(folder, version)
    table.append(some_rows(table, 0))
    table.append(some_rows(table, 10))
    delete_equal(table, {"k": [1, 2, 11]})
    return table


def keys(table: Table) -> list[int]:
    return sorted(table.scan(selected_fields=("k",)).to_arrow()["k"].to_pylist())


def lineage(table: Table) -> tuple[str, ...]:
    return LINEAGE if allows(table.format_version, Feature.ROW_LINEAGE) else ()


def another(table: Table) -> Table:
    """A handle of the same table, as another process would have it."""
    return pickle.loads(pickle.dumps(table)).refresh()  # type: ignore[no-any-return]


def check_files(table: Table) -> None:
    """No file of a failed or superseded attempt is left behind."""
    assert drop_old_metadata_files(on_disk(table)) == drop_old_metadata_files(needed(table.refresh()))


@pytest.mark.parametrize("version", WITH_DELETES)
def test_a_compaction_that_began_before_the_delete_keeps_it(version: int, tmp_path: Path) -> None:
    table = new_table(tmp_path, version)
    table.append(some_rows(table, 0))
    table.append(some_rows(table, 10))
    other, planned = another(table), Planned.on(table.metadata)
    old = [task.file for task in table.scan().plan_files()]
    rows = table.scan(selected_fields=("*", *lineage(table))).to_arrow()
    delete_equal(table, {"k": [1, 2, 11]})
    expected = keys(table)

    def compact() -> None:
        new = write_data_files(rows, WriteRequest(table.metadata, table.storage, lineage=bool(lineage(table))))
        other.refresh().update_snapshot().rewrite_files(planned, remove=old, add=new)

    done = convert_equality_deletes(DeletesRequest(table, Meanwhile(happens=compact)))
    assert (done.converted_equality_delete_files_count, done.kept_equality_delete_files_count) == (0, 1)
    assert [reason for _, reason in done.kept] == ["a data file that came meanwhile needs it"]
    assert keys(table.refresh()) == expected
    done = table.maintenance.convert_equality_deletes()
    assert (done.converted_equality_delete_files_count, done.rewritten_rows_count) == (1, 3)
    assert keys(table) == expected
    check_files(table)


OTHERS: dict[str, Callable[[Table], object]] = {
    "delete of another row": lambda table: table.delete("k = 4 or k = 14"),
    "the same conversion": lambda table: table.maintenance.convert_equality_deletes(),
    "removal of a file": lambda table: table.delete("k >= 10 and k < 20"),
    "upgrade": lambda table: table.format_version == 2 and table.upgrade_format_version(3),
    "another equality delete": lambda table: delete_equal(table, {"k": [3]}),
    "column dropped": lambda table: drop_name(table),
}


LEFT = {0, 3, 4, 5, 10, 12, 13, 14, 15}
EXPECTED: dict[str, set[int]] = {
    "delete of another row": LEFT - {4, 14},
    "removal of a file": LEFT - set(range(10, 20)),
    "another equality delete": LEFT - {3},
}
"""The rows that are left; as before without a word."""


def drop_name(table: Table) -> None:
    with table.update_schema() as schema:
        schema.delete_column("name")


@pytest.mark.parametrize("name", sorted(OTHERS))
@pytest.mark.parametrize("version", WITH_DELETES)
def test_others_do_not_make_it_fail(version: int, name: str, tmp_path: Path) -> None:
    table = with_deleted_keys(tmp_path, version)
    other = another(table)
    done = convert_equality_deletes(DeletesRequest(table, Meanwhile(happens=lambda: OTHERS[name](other))))
    table.refresh()
    assert keys(table) == sorted(EXPECTED.get(name, LEFT))
    assert done.kept == ()
    left = deletes_of(table, FileContent.EQUALITY_DELETES)
    assert len(left) == (1 if name == "another equality delete" else 0)
    assert table.verify(level="data", progress=silent).ok
    check_files(table)


@pytest.mark.parametrize("version", WITH_VECTORS)
def test_rows_that_somebody_deletes_by_position_at_the_same_time(version: int, tmp_path: Path) -> None:
    table = new_table(tmp_path, version)
    table.append(some_rows(table, 0))
    planned = Planned.on(table.metadata)
    file = next(iter(table.scan().plan_files())).file.file_path
    delete_equal(table, {"k": [1, 2]})
    other = another(table)
    # Row 1 is one of those that the equality delete deleted, row 4 is not.
    both = lambda: other.update_snapshot().row_delta(planned.reading("k = 1 or k = 4"), vectors={file: [1, 4]})  # noqa: E731
    done = convert_equality_deletes(DeletesRequest(table, Meanwhile(happens=both)))
    assert (done.converted_equality_delete_files_count, done.added_position_delete_files_count) == (1, 1)
    assert keys(table.refresh()) == [0, 3, 5]
    assert [deletes.record_count for deletes in deletes_of(table)] == [3]
    check_files(table)


def test_a_rollback_meanwhile_is_a_conflict(tmp_path: Path) -> None:
    table = with_deleted_keys(tmp_path, 3)
    other = another(table)
    back = table.history()[1].snapshot_id
    with pytest.raises(ValidationError, match="plan the operation again"):
        convert_equality_deletes(
            DeletesRequest(
                table, Meanwhile(happens=lambda: other.manage_snapshots().rollback_to_snapshot(back).commit())
            )
        )
    assert len(keys(table.refresh())) == 12


# -- what it takes


@pytest.mark.parametrize("version", WITH_DELETES)
def test_a_file_without_rows_left_goes(version: int, tmp_path: Path) -> None:
    table = new_table(tmp_path, version)
    table.append(some_rows(table, 0, 3))
    table.append(some_rows(table, 10, 3))
    table.delete("k = 1")
    delete_equal(table, {"k": [0, 2, 10]})
    done = table.maintenance.convert_equality_deletes()
    assert (done.removed_data_files_count, done.rewritten_rows_count) == (1, 3)
    assert len(list(table.scan().plan_files())) == 1
    assert keys(table) == [11, 12]
    assert table.verify(level="data", progress=silent).ok


@pytest.mark.parametrize("version", WITH_DELETES)
def test_only_whole_partitions(version: int, tmp_path: Path) -> None:
    table = new_table(tmp_path, version)
    table.append(some_rows(table, 0))
    delete_equal(table, {"k": [1]})
    with table.update_spec() as spec:
        spec.add_field("name")
    table.append(some_rows(table, 10))
    files = {task.partition: task.file for task in table.scan().plan_files() if task.partition}
    for name in ("a", "b"):
        delete_equal(table, {"k": list(range(20))}, of=files[name,])
    expected = keys(table)
    planned = table.maintenance.convert_equality_deletes("name = 'a'", dry_run=True)
    assert str(planned) == "convert 1 equality delete files, by the keys of 1 data files"
    assert json.loads(planned.to_json())["data-files"] == [files["a",].file_path]
    done = planned.run()
    assert done.converted_equality_delete_files_count == 1
    assert [reason for _, reason in done.kept] == ["it holds in all partitions, and only some were chosen"]
    assert len(deletes_of(table, FileContent.EQUALITY_DELETES)) == 2
    assert keys(table) == expected
    assert table.maintenance.convert_equality_deletes().converted_equality_delete_files_count == 2
    assert keys(table) == expected


@pytest.mark.parametrize("version", WITH_DELETES)
def test_keys_that_are_null_nested_dropped_and_promoted(version: int, tmp_path: Path) -> None:
    table = new_table(tmp_path, version)
    with table.update_schema() as schema:
        schema.add_column("n", types.IntegerType())
    table.append(some_rows(table, 0, 9))
    delete_equal(table, {"name": [None]})
    delete_equal(table, {"n": [4, None], "day": [dt.date(2026, 1, 5), None]})
    with table.update_schema() as schema:
        schema.update_column("n", types.LongType())
        schema.delete_column("name")
    delete_equal(table, {"n": [7]})
    before = rows_of_snapshots(table)
    done = table.maintenance.convert_equality_deletes()
    assert done.converted_equality_delete_files_count == 3
    check_same_rows(before, table)
    assert deletes_of(table, FileContent.EQUALITY_DELETES) == []


def test_a_branch_and_the_procedure(tmp_path: Path) -> None:
    table = with_deleted_keys(tmp_path, 3)
    table.manage_snapshots().create_branch("side").commit()
    head = table.metadata.current_snapshot_id
    assert table.maintenance.convert_equality_deletes(branch="side").rewritten_rows_count == 3
    assert table.metadata.current_snapshot_id == head
    with pytest.raises(NoSuchSnapshotError, match="no branch 'other'"):
        table.maintenance.convert_equality_deletes(branch="other")
    with pytest.raises(InvalidPropertyError, match=r"did you mean 'partial-progress\.enabled'"):
        table.maintenance.convert_equality_deletes(options={"partial-progress.enable": "true"})
    catalog = load_catalog("lake", type="sql", uri=f"sqlite:///{tmp_path}/catalog.db")
    name = ".".join(table.name())
    assert call(catalog, "convert_equality_deletes", (name,)).to_pylist() == [
        {
            "converted_equality_delete_files_count": 1,
            "added_position_delete_files_count": 2,
            "removed_data_files_count": 0,
            "rewritten_rows_count": 3,
            "kept_equality_delete_files_count": 0,
        }
    ]
    assert str(table.refresh().maintenance.convert_equality_deletes(dry_run=True)) == "no equality deletes to convert"
