"""Row deltas: deletes by position and by equality, one vector for each data file, and what may go wrong with them."""

import io
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icefloe.commit import Isolation, Planned
from icefloe.commit.vectors import load_vector
from icefloe.errors import (
    InvalidInputError,
    InvalidSchemaError,
    InvalidValueError,
    UnsupportedVersionError,
    ValidationError,
)
from icefloe.formats.deletion_vector_codec import write_deletion_vectors
from icefloe.formats.deletion_vectors import DeletionVector
from icefloe.manifests import DataFile, FileContent, ManifestContent
from icefloe.table import Table
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.commit.tables import (
    BY_REGION,
    data_file,
    entries,
    equality_deletes,
    handle,
    live_paths,
    new_table,
    position_deletes,
)

WITH_VECTORS = [each for each in ALL_VERSIONS if allows(each, Feature.DELETION_VECTORS)]
WITH_DELETES = [each for each in ALL_VERSIONS if allows(each, Feature.DELETE_FILES)]


def filled(version: int) -> Table:
    """Two files of ten rows, in one partition."""
    table, _ = new_table(version, BY_REGION)
    table.update_snapshot().fast_append([data_file("memory://d/a", 10, "eu"), data_file("memory://d/b", 10, "eu")])
    return table


def vectors(table: Table) -> dict[str, list[int]]:
    """The live vectors, read from their files; two for one data file are an error."""
    found: dict[str, list[int]] = {}
    for each in entries(table, ManifestContent.DELETES):
        if each.data_file.is_deletion_vector:
            path = str(each.data_file.referenced_data_file)
            assert path not in found
            found[path] = load_vector(table.storage, each.data_file).positions().tolist()
    return found


def stored_vectors(
    table: Table, positions: dict[str, list[int]], name: str = "v", region: str = "eu"
) -> list[DataFile]:
    """Vectors that a writer has put into a file before the commit."""
    data, places = write_deletion_vectors(
        {path: DeletionVector.from_positions(each) for path, each in positions.items()}
    )
    location = f"{table.location()}/data/{name}.puffin"
    table.storage.write(location, data)
    return [
        DataFile(
            location,
            "puffin",
            each.cardinality,
            len(data),
            FileContent.POSITION_DELETES,
            partition=(region,),
            referenced_data_file=each.referenced_data_file,
            content_offset=each.offset,
            content_size_in_bytes=each.length,
        )
        for each in places
    ]


@pytest.mark.parametrize("version", WITH_VECTORS)
def test_a_second_vector_takes_the_place_of_the_first_and_holds_its_rows(version: int) -> None:
    table = filled(version)
    first = table.update_snapshot().row_delta(Planned.on(table.metadata), vectors={"memory://d/a": [1, 2]})
    assert first is not None
    assert first.summary is not None
    assert first.operation == "delete"
    assert (first.summary["added-dvs"], first.summary["added-position-deletes"]) == ("1", "2")
    second = table.update_snapshot().row_delta(
        Planned.on(table.metadata),
        vectors={"memory://d/a": [5], "memory://d/b": [0]},
        add=[data_file(rows=2, region="eu")],
    )
    assert second is not None
    assert second.summary is not None
    assert second.operation == "overwrite"
    assert vectors(table) == {"memory://d/a": [1, 2, 5], "memory://d/b": [0]}
    assert (second.summary["added-dvs"], second.summary["removed-dvs"]) == ("2", "1")
    assert second.summary["total-position-deletes"] == "4"
    assert second.summary["total-delete-files"] == "2"
    added = [each for each in entries(table, ManifestContent.DELETES) if each.snapshot_id == second.snapshot_id]
    assert {each.sequence_number for each in added} == {second.sequence_number}


@pytest.mark.parametrize("version", WITH_VECTORS)
def test_vectors_that_are_stored_already_are_kept_if_they_hold_all(version: int) -> None:
    table = filled(version)
    given = stored_vectors(table, {"memory://d/a": [3], "memory://d/b": [4]})
    table.update_snapshot().row_delta(Planned.on(table.metadata), deletes=given)
    assert vectors(table) == {"memory://d/a": [3], "memory://d/b": [4]}
    whole = stored_vectors(table, {"memory://d/a": [3, 7]}, "whole")
    table.update_snapshot().row_delta(Planned.on(table.metadata), deletes=whole)
    assert {each.data_file.file_path for each in entries(table, ManifestContent.DELETES)} == {
        given[0].file_path,
        whole[0].file_path,
    }
    part = stored_vectors(table, {"memory://d/a": [9]}, "part")
    table.update_snapshot().row_delta(Planned.on(table.metadata), deletes=part)
    assert vectors(table) == {"memory://d/a": [3, 7, 9], "memory://d/b": [4]}
    both = [*stored_vectors(table, {"memory://d/b": [1]}, "one"), *stored_vectors(table, {"memory://d/b": [2]}, "two")]
    table.update_snapshot().row_delta(Planned.on(table.metadata), deletes=both)
    assert vectors(table)["memory://d/b"] == [1, 2, 4]


@pytest.mark.parametrize("version", WITH_VECTORS)
@pytest.mark.parametrize("isolation", list(Isolation))
def test_concurrent_deletes_of_different_rows_of_one_file_are_merged(version: int, isolation: Isolation) -> None:
    table = filled(version)
    other = handle(table._committer)
    planned = Planned.on(table.metadata, isolation=isolation)
    other.update_snapshot().row_delta(planned, vectors={"memory://d/a": [1]})
    table.update_snapshot().row_delta(planned, vectors={"memory://d/a": [2]})
    assert vectors(table) == {"memory://d/a": [1, 2]}
    with pytest.raises(ValidationError, match="row 2"):
        other.update_snapshot().row_delta(planned, vectors={"memory://d/a": [2, 3]})
    assert vectors(table.refresh()) == {"memory://d/a": [1, 2]}


@pytest.mark.parametrize("version", WITH_VECTORS)
def test_rows_that_both_saw_as_deleted_are_no_conflict(version: int) -> None:
    table = filled(version)
    table.update_snapshot().row_delta(Planned.on(table.metadata), vectors={"memory://d/a": [0]})
    other = handle(table._committer)
    planned = Planned.on(table.metadata)
    other.update_snapshot().row_delta(planned, vectors={"memory://d/a": [0, 1]})
    table.update_snapshot().row_delta(planned, vectors={"memory://d/a": [0, 2]})
    assert vectors(table) == {"memory://d/a": [0, 1, 2]}


@pytest.mark.parametrize("version", WITH_VECTORS)
def test_a_vector_goes_with_its_data_file(version: int) -> None:
    table = filled(version)
    planned = Planned.on(table.metadata)
    table.update_snapshot().row_delta(planned, vectors={"memory://d/a": [0], "memory://d/b": [0]})
    made = table.update_snapshot().delete_files(["memory://d/a"], Planned.on(table.metadata))
    assert made is not None
    assert made.summary is not None
    assert vectors(table) == {"memory://d/b": [0]}
    assert made.summary["removed-dvs"] == "1"
    assert made.summary["total-position-deletes"] == "1"


@pytest.mark.parametrize("version", WITH_VECTORS)
def test_vectors_that_do_not_fit_are_refused(version: int) -> None:
    table = filled(version)
    planned = Planned.on(table.metadata)
    delta = table.update_snapshot().row_delta
    with pytest.raises(InvalidValueError, match="position 10"):
        delta(planned, vectors={"memory://d/a": [10]})
    with pytest.raises(ValidationError, match="memory://d/nowhere"):
        delta(planned, vectors={"memory://d/nowhere": [1]})
    with pytest.raises(InvalidInputError, match="partition"):
        delta(planned, deletes=stored_vectors(table, {"memory://d/a": [1]}, "other", "us"))
    with pytest.raises(ValidationError, match="cannot be removed in the same commit"):
        delta(planned, vectors={"memory://d/a": [1]}, remove=["memory://d/a"])
    with pytest.raises(InvalidInputError, match="planned on is not given"):
        delta(None, vectors={"memory://d/a": [1]})
    with pytest.raises(InvalidInputError, match="deletes nothing"):
        delta(planned, vectors={"memory://d/a": []})
    with pytest.raises(InvalidInputError, match="position delete file"):
        delta(planned, deletes=[position_deletes(region="eu")])
    lost = replace(stored_vectors(table, {"memory://d/a": [1]}, "lost")[0], referenced_data_file=None)
    with pytest.raises(InvalidInputError, match="which data file it applies to"):
        delta(planned, deletes=[lost])
    assert vectors(table.refresh()) == {}


@pytest.mark.parametrize("version", [each for each in ALL_VERSIONS if each not in WITH_DELETES])
def test_versions_without_deletes_take_none(version: int) -> None:
    table = filled(version)
    for bad in (equality_deletes(region="eu"), position_deletes(region="eu")):
        with pytest.raises(UnsupportedVersionError, match="delete files"):
            table.update_snapshot().row_delta(Planned.on(table.metadata), deletes=[bad])
    with pytest.raises(UnsupportedVersionError, match="deletion vectors"):
        table.update_snapshot().row_delta(Planned.on(table.metadata), vectors={"memory://d/a": [1]})


@pytest.mark.parametrize("version", WITH_DELETES)
def test_equality_deletes_name_columns_of_the_table(version: int) -> None:
    table = filled(version)
    made = table.update_snapshot().row_delta(
        None, add=[data_file(region="eu")], deletes=[equality_deletes(3, region="eu")]
    )
    assert made is not None
    assert made.summary is not None
    assert made.summary["added-equality-deletes"] == "3"
    assert made.operation == "overwrite"
    with pytest.raises(InvalidSchemaError, match="column 77"):
        table.update_snapshot().row_delta(None, deletes=[equality_deletes(ids=(77,), region="eu")])
    with pytest.raises(InvalidSchemaError, match="price"):
        table.update_snapshot().row_delta(None, deletes=[equality_deletes(ids=(3,), region="eu")])
    with pytest.raises(InvalidInputError):
        table.update_snapshot().row_delta(None, deletes=[equality_deletes(ids=(), region="eu")])


@pytest.mark.parametrize("version", [each for each in WITH_DELETES if each not in WITH_VECTORS])
def test_position_delete_files_are_about_files_that_are_there(version: int) -> None:
    table = filled(version)
    planned = Planned.on(table.metadata)
    with pytest.raises(ValidationError, match="memory://d/nowhere"):
        table.update_snapshot().row_delta(
            planned, deletes=[position_deletes(region="eu", referenced_data_file="memory://d/nowhere")]
        )
    with pytest.raises(ValidationError, match="memory://d/nowhere"):
        table.update_snapshot().row_delta(
            planned, deletes=[position_deletes(region="eu")], referenced=["memory://d/nowhere"]
        )
    with pytest.raises(InvalidInputError, match="planned on is not given"):
        table.update_snapshot().row_delta(None, deletes=[position_deletes(region="eu")])
    with pytest.raises(InvalidInputError, match="deletion vector"):
        table.update_snapshot().row_delta(planned, deletes=stored_vectors(table, {"memory://d/a": [1]}))
    made = table.update_snapshot().row_delta(
        planned, deletes=[position_deletes(4, region="eu")], referenced=["memory://d/a"]
    )
    assert made is not None
    assert made.summary is not None
    assert made.summary["added-position-delete-files"] == "1"


@pytest.mark.parametrize("target", WITH_VECTORS)
def test_the_first_vector_after_an_upgrade_holds_what_position_deletes_deleted(target: int) -> None:
    table = filled(2)
    paths = ["memory://d/a", "memory://d/a", "memory://d/b"]
    shared = write_positions(table, "shared", paths, [1, 2, 3])
    single = write_positions(table, "single", ["memory://d/a"], [7])
    single = replace(single, referenced_data_file="memory://d/a")
    table.update_snapshot().row_delta(
        Planned.on(table.metadata), deletes=[shared, single], referenced=["memory://d/a", "memory://d/b"]
    )
    table.upgrade_format_version(target)
    table.update_snapshot().row_delta(Planned.on(table.metadata), vectors={"memory://d/a": [9]})
    assert vectors(table) == {"memory://d/a": [1, 2, 7, 9]}
    # The one about both files stays, for the file without a vector; the other is of no use any more.
    left = [
        each.data_file.file_path
        for each in entries(table, ManifestContent.DELETES)
        if not each.data_file.is_deletion_vector
    ]
    assert left == [shared.file_path]


def write_positions(table: Table, name: str, paths: list[str], positions: list[int]) -> DataFile:
    """A real position delete file."""
    schema = pa.schema(
        [
            pa.field("file_path", pa.string(), False, {"PARQUET:field_id": "2147483546"}),
            pa.field("pos", pa.int64(), False, {"PARQUET:field_id": "2147483545"}),
        ]
    )
    sink = io.BytesIO()
    pq.write_table(pa.table({"file_path": paths, "pos": positions}, schema=schema), sink)
    location = f"{table.location()}/data/{name}.parquet"
    table.storage.write(location, sink.getvalue())
    return DataFile(
        location, "parquet", len(paths), len(sink.getvalue()), FileContent.POSITION_DELETES, partition=("eu",)
    )


@pytest.mark.parametrize("target", WITH_VECTORS)
def test_position_deletes_become_vectors_if_the_table_is_upgraded_in_between(target: int) -> None:
    table = filled(2)
    other = handle(table._committer)
    positions = write_positions(table, "stale", ["memory://d/a", "memory://d/a", "memory://d/b"], [3, 5, 0])
    with table.transaction() as tx:
        tx.update_snapshot().row_delta(
            Planned.on(table.metadata, isolation=Isolation.SNAPSHOT),
            add=[data_file("memory://d/c", 1, "eu")],
            deletes=[positions, equality_deletes(region="eu")],
        )
        other.upgrade_format_version(target)
        other.update_snapshot().fast_append([data_file(region="us")])
        other.update_snapshot().row_delta(Planned.on(other.metadata), vectors={"memory://d/a": [7]})
    assert len(live_paths(table)) == 4
    assert vectors(table) == {"memory://d/a": [3, 5, 7], "memory://d/b": [0]}
    deletes = [each.data_file.content for each in entries(table, ManifestContent.DELETES)]
    assert deletes.count(FileContent.EQUALITY_DELETES) == 1
    assert len(deletes) == 3


@pytest.mark.parametrize("target", WITH_VECTORS)
def test_rewritten_position_deletes_are_refused_if_the_table_is_upgraded_in_between(target: int) -> None:
    table = filled(2)
    old = position_deletes(region="eu", referenced_data_file="memory://d/a")
    table.update_snapshot().row_delta(Planned.on(table.metadata), deletes=[old])
    other = handle(table._committer)
    with table.transaction() as tx:
        tx.update_snapshot().rewrite_files(
            Planned.on(table.metadata), remove_deletes=[old], add_deletes=[replace(old, file_path="memory://d/new")]
        )
        other.upgrade_format_version(target)
        with pytest.raises(ValidationError, match="deletion vectors instead; plan it again"):
            tx.commit_transaction()
    assert [each.data_file for each in entries(table.refresh(), ManifestContent.DELETES)] == [old]


@pytest.mark.parametrize("version", WITH_VECTORS)
def test_one_vector_of_a_file_goes_and_the_others_stay(version: int) -> None:
    table = filled(version)
    given = stored_vectors(table, {"memory://d/a": [3], "memory://d/b": [4]})
    table.update_snapshot().row_delta(Planned.on(table.metadata), deletes=given)
    planned = Planned.on(table.metadata)
    with pytest.raises(ValidationError, match="would come back"):
        table.update_snapshot().row_delta(planned, remove_deletes=[given[0]])
    with pytest.raises(InvalidInputError, match="possibly of other data files"):
        table.update_snapshot().row_delta(planned, remove=["memory://d/a"], remove_deletes=[given[0].file_path])
    with pytest.raises(ValidationError, match="would come back"):
        table.update_snapshot().rewrite_files(planned, remove_deletes=[given[0]])
    lost = replace(given[0], content_offset=1)
    with pytest.raises(ValidationError, match="not in the table"):
        table.update_snapshot().row_delta(planned, remove_deletes=[lost], vectors={"memory://d/a": [5]})
    table.update_snapshot().row_delta(planned, remove_deletes=[given[0]], vectors={"memory://d/a": [5]})
    assert vectors(table) == {"memory://d/a": [3, 5], "memory://d/b": [4]}
    table.update_snapshot().row_delta(
        Planned.on(table.metadata).reading("region = 'eu'"), remove=["memory://d/b"], remove_deletes=[given[1]]
    )
    assert vectors(table) == {"memory://d/a": [3, 5]}
    moved = stored_vectors(table, {"memory://d/a": [3, 5]}, "moved")
    old = [each.data_file for each in entries(table, ManifestContent.DELETES)]
    made = table.update_snapshot().rewrite_files(Planned.on(table.metadata), remove_deletes=old, add_deletes=moved)
    assert made is not None
    assert made.operation == "replace"
    assert vectors(table) == {"memory://d/a": [3, 5]}


@pytest.mark.parametrize("version", WITH_VECTORS)
def test_a_collection_of_files_is_not_a_text(version: int) -> None:
    table = filled(version)
    planned = Planned.on(table.metadata)
    with pytest.raises(InvalidInputError, match="not a collection"):
        table.update_snapshot().delete_files("memory://d/a", planned)
    with pytest.raises(InvalidInputError, match="not a collection"):
        table.update_snapshot().fast_append(5)  # type: ignore[arg-type]  # what the test is about
    with pytest.raises(InvalidInputError, match="not a base for an operation"):
        table.update_snapshot().delete_files(["memory://d/a"], 7)  # type: ignore[arg-type]  # what the test is about
    assert len(live_paths(table.refresh())) == 2


@pytest.mark.parametrize("version", [each for each in WITH_DELETES if each not in WITH_VECTORS])
def test_position_deletes_that_do_not_name_their_files_mind_rewrites_of_the_partition(version: int) -> None:
    table = filled(version)
    planned = Planned.on(table.metadata).reading("region = 'eu'")
    other = handle(table._committer)
    other.update_snapshot().fast_append([data_file("memory://d/us", 10, "us")])
    other.update_snapshot().rewrite_files(
        Planned.on(other.metadata), remove=["memory://d/us"], add=[data_file("memory://d/us2", 10, "us")]
    )
    delta = table.update_snapshot().row_delta
    assert delta(planned, deletes=[position_deletes(region="eu")]) is not None
    planned = Planned.on(table.metadata).reading("region = 'eu'")
    other.refresh().update_snapshot().rewrite_files(
        Planned.on(other.metadata), remove=["memory://d/a"], add=[data_file("memory://d/a2", 9, "eu")]
    )
    with pytest.raises(ValidationError, match="was removed by another commit"):
        delta(planned, deletes=[position_deletes(region="eu")])
    assert delta(planned, deletes=[position_deletes(region="eu")], referenced=["memory://d/b"])


@pytest.mark.parametrize("version", [each for each in WITH_DELETES if each not in WITH_VECTORS])
def test_position_deletes_that_do_not_name_their_files_mind_updates_of_the_partition(version: int) -> None:
    table = filled(version)
    planned = Planned.on(table.metadata, isolation=Isolation.SNAPSHOT)
    other = handle(table._committer)
    delta = table.update_snapshot().row_delta
    other.update_snapshot().row_delta(planned, deletes=[position_deletes(region="eu")])
    # Two deletes may meet; an update may not meet a delete.
    assert delta(planned, deletes=[position_deletes(region="eu")]) is not None
    with pytest.raises(ValidationError, match="was added by another commit"):
        delta(planned, deletes=[position_deletes(region="eu")], add=[data_file(region="eu")])
    planned = Planned.on(table.metadata, isolation=Isolation.SNAPSHOT)
    other.refresh().update_snapshot().row_delta(
        planned, deletes=[position_deletes(region="eu")], add=[data_file(region="eu")]
    )
    with pytest.raises(ValidationError, match="was added by another commit"):
        delta(planned, deletes=[position_deletes(region="eu")])
    assert delta(planned, deletes=[position_deletes(region="us")]) is not None
