"""Rewrites of files and of manifests: the rows stay the same, and so do numbers and ids."""

import pytest

from icefloe.commit import Planned
from icefloe.errors import InvalidInputError, ValidationError
from icefloe.manifests import DataFile, EntryStatus, ManifestContent
from icefloe.schema.types import LongType
from icefloe.table import Table
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.commit.tables import (
    BY_REGION,
    data_file,
    entries,
    equality_deletes,
    handle,
    live_paths,
    manifests,
    new_table,
)

WITH_VECTORS = [each for each in ALL_VERSIONS if allows(each, Feature.DELETION_VECTORS)]
WITH_DELETES = [each for each in ALL_VERSIONS if allows(each, Feature.DELETE_FILES)]


def filled(version: int) -> Table:
    """Three files of ten rows, each of a commit of its own."""
    table, _ = new_table(version, BY_REGION)
    for name in ("a", "b", "c"):
        table.update_snapshot().fast_append([data_file(f"memory://d/{name}", 10, "eu")])
    return table


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_new_files_carry_the_sequence_number_of_the_plan(version: int) -> None:
    table = filled(version)
    planned = Planned.on(table.metadata)
    table.update_snapshot().fast_append([data_file("memory://d/later", 1, "eu")])
    made = table.update_snapshot().rewrite_files(
        planned, remove=["memory://d/a", "memory://d/b"], add=[data_file("memory://d/ab", 20, "eu")]
    )
    assert made is not None
    assert made.summary is not None
    assert made.operation == "replace"
    assert made.summary["total-records"] == "31"
    assert live_paths(table) == ["memory://d/ab", "memory://d/c", "memory://d/later"]
    entry = next(each for each in entries(table) if each.data_file.file_path == "memory://d/ab")
    numbered = allows(version, Feature.SEQUENCE_NUMBERS)
    assert entry.sequence_number == (3 if numbered else 0)
    assert entry.file_sequence_number == made.sequence_number
    smallest = {each.min_sequence_number for each in manifests(table) if each.added_snapshot_id == made.snapshot_id}
    assert (3 if numbered else 0) in smallest


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_rows_must_not_come_or_go(version: int) -> None:
    table = filled(version)
    planned = Planned.on(table.metadata)
    for rows in (19, 21):
        with pytest.raises(ValidationError, match=f"{rows} rows in place of 20"):
            table.update_snapshot().rewrite_files(
                planned, remove=["memory://d/a", "memory://d/b"], add=[data_file(rows=rows, region="eu")]
            )
    with pytest.raises(InvalidInputError, match="must name files"):
        table.update_snapshot().rewrite_files(planned, add=[data_file(region="eu")])
    with pytest.raises(ValidationError, match="nowhere"):
        table.update_snapshot().rewrite_files(planned, remove=["nowhere"], add=[data_file(region="eu")])
    assert len(live_paths(table.refresh())) == 3


@pytest.mark.parametrize("version", WITH_VECTORS)
def test_deleted_rows_are_left_out_exactly(version: int) -> None:
    table = filled(version)
    table.update_snapshot().row_delta(Planned.on(table.metadata), vectors={"memory://d/a": [1, 2, 3]})
    planned = Planned.on(table.metadata)
    with pytest.raises(ValidationError, match="20 rows in place of 17"):
        table.update_snapshot().rewrite_files(
            planned, remove=["memory://d/a", "memory://d/b"], add=[data_file(rows=20, region="eu")]
        )
    made = table.update_snapshot().rewrite_files(
        planned, remove=["memory://d/a", "memory://d/b"], add=[data_file(rows=17, region="eu")]
    )
    assert made is not None
    assert made.summary is not None
    assert made.summary["removed-dvs"] == "1"
    assert entries(table, ManifestContent.DELETES) == []


@pytest.mark.parametrize("version", WITH_DELETES)
def test_with_equality_deletes_there_may_be_fewer_rows(version: int) -> None:
    table = filled(version)
    deletes = equality_deletes(region="eu")
    table.update_snapshot().row_delta(None, deletes=[deletes])
    planned = Planned.on(table.metadata)
    with pytest.raises(ValidationError, match="at most 10"):
        table.update_snapshot().rewrite_files(planned, remove=["memory://d/a"], add=[data_file(rows=11, region="eu")])
    made = table.update_snapshot().rewrite_files(
        planned, remove=["memory://d/a"], add=[data_file(rows=9, region="eu")], remove_deletes=[deletes.file_path]
    )
    assert made is not None
    assert entries(table, ManifestContent.DELETES) == []


@pytest.mark.parametrize("version", WITH_DELETES)
def test_deletes_that_came_in_between(version: int) -> None:
    table = filled(version)
    planned = Planned.on(table.metadata)
    other = handle(table._committer)
    other.update_snapshot().row_delta(None, deletes=[equality_deletes(region="eu")])
    # An equality delete still reaches the rewritten rows, since they keep the sequence number of the plan.
    made = table.update_snapshot().rewrite_files(
        planned, remove=["memory://d/a"], add=[data_file("memory://d/a2", rows=10, region="eu")]
    )
    assert made is not None
    found = {each.data_file.file_path: each.sequence_number for each in entries(table, ManifestContent.DATA)}
    deletes = entries(table, ManifestContent.DELETES)[0].sequence_number
    assert found["memory://d/a2"] is not None
    assert deletes is not None
    assert found["memory://d/a2"] < deletes


def respecified(table: Table) -> int:
    """The id of a new default spec of the table, by a truncated region instead of a whole one."""
    with table.update_spec() as spec:
        spec.remove_field("region")
        spec.add_field("truncate(1, region)")
    return table.spec().spec_id


def moved(spec_id: int, rows: int = 10) -> DataFile:
    """The rows of a file in eu, in a file of the new spec."""
    return data_file("memory://d/moved", rows, "e", spec_id=spec_id)


@pytest.mark.parametrize("version", WITH_DELETES)
def test_rows_that_change_their_spec_must_not_escape_an_equality_delete(version: int) -> None:
    table = filled(version)
    spec_id = respecified(table)
    planned = Planned.on(table.metadata)
    handle(table._committer).update_snapshot().row_delta(None, deletes=[equality_deletes(region="eu")])
    with pytest.raises(ValidationError, match="not delete the same rows"):
        table.update_snapshot().rewrite_files(planned, remove=["memory://d/a"], add=[moved(spec_id)])
    with pytest.raises(ValidationError, match="not delete the same rows"):
        table.update_snapshot().rewrite_files(
            planned, remove=["memory://d/a", "memory://d/b"], add=[data_file(rows=10, region="eu"), moved(spec_id)]
        )
    assert len(live_paths(table.refresh())) == 3
    again = Planned.on(table.metadata)
    assert table.update_snapshot().rewrite_files(again, remove=["memory://d/a"], add=[moved(spec_id, 9)]) is not None


@pytest.mark.parametrize("version", WITH_DELETES)
def test_rows_must_not_move_to_where_an_equality_delete_would_reach_them(version: int) -> None:
    table = filled(version)
    spec_id = respecified(table)
    table.update_snapshot().fast_append([data_file("memory://d/e", 10, "e", spec_id=spec_id)])
    planned = Planned.on(table.metadata)
    other = handle(table._committer)
    other.update_snapshot().row_delta(None, deletes=[equality_deletes(region="e", spec_id=spec_id)])
    for replaced, rows in ((["memory://d/a"], 10), (["memory://d/a", "memory://d/e"], 20)):
        with pytest.raises(ValidationError, match="not delete the same rows"):
            table.update_snapshot().rewrite_files(planned, remove=replaced, add=[moved(spec_id, rows)])
    assert len(live_paths(table.refresh())) == 4
    # The delete is of a partition that these rows neither leave nor come to.
    elsewhere = data_file("memory://d/elsewhere", 10, "u", spec_id=spec_id)
    assert table.update_snapshot().rewrite_files(planned, remove=["memory://d/a"], add=[elsewhere]) is not None


@pytest.mark.parametrize("version", WITH_DELETES)
def test_rows_that_change_their_partition_must_not_escape_an_equality_delete(version: int) -> None:
    table = filled(version)
    planned = Planned.on(table.metadata)
    other = handle(table._committer)
    for region in ("eu", "us"):
        other.update_snapshot().row_delta(None, deletes=[equality_deletes(region=region)])
        with pytest.raises(ValidationError, match="not delete the same rows"):
            table.update_snapshot().rewrite_files(
                planned, remove=["memory://d/a"], add=[data_file(rows=10, region="us")]
            )
        planned = Planned.on(table.refresh().metadata)
    assert len(live_paths(table)) == 3


@pytest.mark.parametrize("version", WITH_DELETES)
def test_equality_deletes_without_a_partition_reach_rows_wherever_they_go(version: int) -> None:
    table, _ = new_table(version)
    table.update_snapshot().fast_append([data_file("memory://d/a", 10)])
    with table.update_spec() as spec:
        spec.add_field("region")
    planned = Planned.on(table.metadata)
    handle(table._committer).update_snapshot().row_delta(None, deletes=[equality_deletes()])
    made = table.update_snapshot().rewrite_files(
        planned, remove=["memory://d/a"], add=[data_file("memory://d/eu", 10, "eu", spec_id=table.spec().spec_id)]
    )
    assert made is not None
    numbers = {each.data_file.file_path: each.sequence_number for each in entries(table, ManifestContent.DATA)}
    assert numbers == {"memory://d/eu": 1}


@pytest.mark.parametrize("version", WITH_DELETES)
def test_rows_that_are_all_deleted_go_nowhere(version: int) -> None:
    table = filled(version)
    table.update_snapshot().row_delta(None, deletes=[equality_deletes(region="eu")])
    planned = Planned.on(table.metadata)
    handle(table._committer).update_snapshot().row_delta(None, deletes=[equality_deletes(region="eu")])
    assert table.update_snapshot().rewrite_files(planned, remove=["memory://d/a"]) is not None
    assert live_paths(table) == ["memory://d/b", "memory://d/c"]


@pytest.mark.parametrize("version", WITH_DELETES)
def test_rows_must_not_lose_the_key_of_an_equality_delete(version: int) -> None:
    table = filled(version)
    with table.update_schema() as schema:
        schema.add_column("key", LongType())
    key = table.schema().find_field("key").field_id
    planned = Planned.on(table.metadata)
    other = handle(table._committer)
    other.update_snapshot().row_delta(None, deletes=[equality_deletes(ids=(1, key), region="eu")])
    new = data_file("memory://d/a2", 10, "eu")
    behind = handle(table._committer)
    with other.update_schema() as schema:
        schema.delete_column("key")
    # Who knows the schema of now has written without the column; who does not has written it.
    with pytest.raises(ValidationError, match="not delete the same rows"):
        table.refresh().update_snapshot().rewrite_files(planned, remove=["memory://d/a"], add=[new])
    assert behind.update_snapshot().rewrite_files(planned, remove=["memory://d/a"], add=[new]) is not None


@pytest.mark.parametrize("version", WITH_DELETES)
def test_a_key_that_came_later_is_missing_before_and_after(version: int) -> None:
    table = filled(version)
    planned = Planned.on(table.metadata)
    other = handle(table._committer)
    with other.update_schema() as schema:
        schema.add_column("key", LongType())
    key = other.schema().find_field("key").field_id
    other.update_snapshot().row_delta(None, deletes=[equality_deletes(ids=(key,), region="eu")])
    new = data_file("memory://d/a2", 10, "eu")
    assert table.update_snapshot().rewrite_files(planned, remove=["memory://d/a"], add=[new]) is not None


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_rewriting_manifests_changes_no_entry_but_its_status(version: int) -> None:
    table, _ = new_table(version, BY_REGION)
    for number in range(6):
        table.update_snapshot().fast_append([data_file(rows=number + 1, region="us" if number % 2 else "eu")])
    before = {each.data_file.file_path: each for each in entries(table)}
    made = table.update_snapshot().rewrite_manifests()
    assert made is not None
    assert made.summary is not None
    assert made.operation == "replace"
    assert len(manifests(table)) == 1
    assert (made.summary["manifests-replaced"], made.summary["entries-processed"]) == ("6", "6")
    assert made.summary["total-records"] == "21"
    after = {each.data_file.file_path: each for each in entries(table)}
    assert after.keys() == before.keys()
    for path, each in after.items():
        assert each.status is EntryStatus.EXISTING
        assert each.data_file == before[path].data_file
        assert each.snapshot_id == before[path].snapshot_id
        assert each.sequence_number == before[path].sequence_number
        assert each.file_sequence_number == before[path].file_sequence_number
    regions = [each.data_file.partition for each in entries(table)]
    assert regions == sorted(regions)
    assert table.update_snapshot().rewrite_manifests() is None


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_manifests_that_others_add_meanwhile_are_kept(version: int) -> None:
    table = filled(version)
    other = handle(table._committer)
    with table.transaction() as tx:
        tx.update_snapshot().rewrite_manifests()
        other.update_snapshot().fast_append([data_file("memory://d/later", 1, "eu")])
    assert live_paths(table) == ["memory://d/a", "memory://d/b", "memory://d/c", "memory://d/later"]
    assert len(manifests(table)) == 2
