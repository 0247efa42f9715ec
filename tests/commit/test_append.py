"""Appends: what a snapshot of them is, in every version."""

import pytest

from icefloe.errors import InvalidInputError, InvalidPartitionSpecError, InvalidValueError, ValidationError
from icefloe.manifests import EntryStatus, ManifestContent, ManifestEntry, SnapshotManifests, columns_of
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
    stored,
)


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_snapshots_of_appends_follow_each_other(version: int) -> None:
    table, _ = new_table(version, BY_REGION)
    first = table.update_snapshot().fast_append(
        [data_file("memory://d/a", 10, "eu"), data_file("memory://d/b", 5, "us")]
    )
    second = table.update_snapshot().fast_append([data_file("memory://d/c", 7, "eu")])
    assert first is not None
    assert second is not None
    assert (first.parent_snapshot_id, second.parent_snapshot_id) == (None, first.snapshot_id)
    assert table.current_snapshot() == second
    assert [each.snapshot_id for each in table.history()] == [first.snapshot_id, second.snapshot_id]
    numbered = allows(version, Feature.SEQUENCE_NUMBERS)
    assert (first.sequence_number, second.sequence_number) == ((1, 2) if numbered else (0, 0))
    if allows(version, Feature.ROW_LINEAGE):
        assert (first.first_row_id, first.added_rows) == (0, 15)
        assert (second.first_row_id, second.added_rows) == (15, 7)
        assert table.metadata.next_row_id == 22
        ids = {each.data_file.file_path: each.data_file.first_row_id for each in entries(table)}
        assert ids == {"memory://d/a": 0, "memory://d/b": 10, "memory://d/c": 15}
    else:
        assert first.first_row_id is None
    assert live_paths(table) == ["memory://d/a", "memory://d/b", "memory://d/c"]
    assert first.schema_id == table.schema().schema_id


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_the_summary_counts_what_was_added_and_the_totals(version: int) -> None:
    table, _ = new_table(version, BY_REGION)
    table.update_snapshot().fast_append([data_file(rows=10, region="eu"), data_file(rows=5, region="us")])
    made = table.update_snapshot(snapshot_properties={"who": "me"}).fast_append([data_file(rows=7, region="eu")])
    assert made is not None
    assert made.summary is not None
    assert made.summary.operation == "append"
    assert dict(made.summary.properties) == {
        "who": "me",
        "added-data-files": "1",
        "added-records": "7",
        "added-files-size": "700",
        "changed-partition-count": "1",
        "manifests-created": "1",
        "manifests-kept": "1",
        "manifests-replaced": "0",
        "total-data-files": "3",
        "total-delete-files": "0",
        "total-records": "22",
        "total-files-size": "2200",
        "total-position-deletes": "0",
        "total-equality-deletes": "0",
    }


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_files_have_the_names_that_other_engines_give(version: int) -> None:
    table, _ = new_table(version)
    made = table.update_snapshot().fast_append([data_file()])
    assert made is not None
    names = sorted(each.rsplit("/", 1)[1] for each in stored(table))
    assert len(names) == 2
    uuid = names[0].removesuffix("-m0.avro")
    assert names == [f"{uuid}-m0.avro", f"snap-{made.snapshot_id}-1-{uuid}.avro"]
    relative = allows(version, Feature.RELATIVE_PATHS)
    assert made.manifest_list is not None
    assert made.manifest_list.startswith("metadata/snap-" if relative else f"{table.location()}/metadata/snap-")


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_columns_are_taken_like_values(version: int) -> None:
    table, _ = new_table(version, BY_REGION)
    files = [data_file(rows=n, region="eu", ids=(n, n + 9)) for n in range(1, 4)]
    source, _ = new_table(version, BY_REGION)
    source.update_snapshot().fast_append(files)
    kind = source.metadata.partition_type(0)
    table.update_snapshot().fast_append(columns_of((ManifestEntry(EntryStatus.ADDED, each) for each in files), kind))
    assert [each.data_file for each in entries(table)] == [each.data_file for each in entries(source)]


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_a_file_twice_is_an_error_in_one_commit_and_across_commits(version: int) -> None:
    table, _ = new_table(version, BY_REGION)
    with pytest.raises(InvalidInputError, match="added 2 times in one commit"):
        table.update_snapshot().fast_append(
            [data_file("memory://d/a", region="eu"), data_file("memory://d/a", region="us")]
        )
    table.update_snapshot().fast_append([data_file("memory://d/a", region="eu")])
    before = table.metadata
    with pytest.raises(ValidationError, match="already in the table"):
        table.update_snapshot().fast_append([data_file("memory://d/a", region="eu")])
    assert table.refresh().metadata == before
    table.update_snapshot().fast_append([data_file("memory://d/b", region="us")], check_duplicates=False)
    assert live_paths(table) == ["memory://d/a", "memory://d/b"]


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_files_that_do_not_fit_are_refused_and_nothing_changes(version: int) -> None:
    table, committer = new_table(version, BY_REGION)
    for bad, error in (
        (data_file(), InvalidInputError),
        (data_file(region="eu", spec_id=7), InvalidPartitionSpecError),
        (data_file(partition=(5,)), InvalidValueError),
        (data_file(region="eu", rows=-1), InvalidInputError),
        (equality_deletes(region="eu"), InvalidInputError),
        (data_file(region="eu", value_counts={1: 1, 4: 1}), InvalidInputError),
        (data_file(region="eu", lower_bounds={0: b""}), InvalidInputError),
    ):
        with pytest.raises(error):
            table.update_snapshot().fast_append([bad])
    with pytest.raises(InvalidInputError, match="not a DataFile"):
        table.update_snapshot().fast_append(["memory://d/a"])  # type: ignore[arg-type]  # what the test is about
    assert committer.swaps == 0
    assert stored(table) == set()


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_a_small_append_reads_one_list_and_nothing_when_the_last_commit_was_its_own(version: int) -> None:
    table, committer = new_table(version)
    for _ in range(3):
        table.update_snapshot().fast_append([data_file()])
    reads: list[str] = []
    read = committer.storage.read

    def counted(location: str) -> bytes:
        reads.append(location)
        return read(location)

    committer.storage.read = counted  # type: ignore[method-assign]  # to count
    table.update_snapshot().fast_append([data_file()], check_duplicates=False)
    assert reads == []
    handle(committer).update_snapshot().fast_append([data_file()], check_duplicates=False)
    assert len(reads) == 1
    assert "/snap-" in reads[0]


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_merge_append_merges_when_there_are_enough_and_keeps_all_numbers(version: int) -> None:
    table, _ = new_table(version, BY_REGION, {"commit.manifest.min-count-to-merge": "4"})
    for number in range(3):
        table.update_snapshot().merge_append([data_file(f"memory://d/{number}", region="eu")])
    assert len(manifests(table)) == 3
    before = {each.data_file.file_path: each for each in entries(table)}
    made = table.update_snapshot().merge_append([data_file("memory://d/3", region="us")])
    assert made is not None
    assert made.summary is not None
    assert len(manifests(table)) == 1
    assert made.summary["manifests-replaced"] == "3"
    after = {each.data_file.file_path: each for each in entries(table)}
    for path, entry in before.items():
        found = after[path]
        assert found.status is EntryStatus.EXISTING
        assert found.snapshot_id == entry.snapshot_id
        assert found.sequence_number == entry.sequence_number
        assert found.file_sequence_number == entry.file_sequence_number
        assert found.data_file.first_row_id == entry.data_file.first_row_id
    assert after["memory://d/3"].status is EntryStatus.ADDED
    assert after["memory://d/3"].sequence_number == made.sequence_number
    starts = [each.data_file.first_row_id for each in after.values()]
    if allows(version, Feature.ROW_LINEAGE):
        assert len(set(starts)) == 4
        assert table.metadata.next_row_id >= max(start for start in starts if start is not None) + 10


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_a_manifest_that_was_merged_in_its_own_commit_is_not_left_behind(version: int) -> None:
    table, _ = new_table(version, BY_REGION, {"commit.manifest.min-count-to-merge": "2"})
    table.update_snapshot().fast_append([data_file("memory://d/0", region="eu")])
    old = {manifest.manifest_path for manifest in manifests(table)}
    with table.transaction() as tx:
        tx.update_snapshot().merge_append([data_file("memory://d/1", region="us")])
        tx.update_snapshot().merge_append([data_file("memory://d/2", region="us")])
    of_commit = [table.metadata.snapshots[-2], table.metadata.snapshots[-1]]
    source = SnapshotManifests(table.metadata, table.storage.read, table.storage.limits)
    named = old | {manifest.manifest_path for snapshot in of_commit for manifest in source.of(snapshot)}
    stored = {info.location for info in table.storage.list_prefix(f"{table.location()}/metadata")}
    assert {location for location in stored if location.endswith(".avro") and "/snap-" not in location} == named
    assert {entry.data_file.file_path for entry in entries(table)} == {f"memory://d/{number}" for number in range(3)}


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_appends_go_to_branches_and_to_no_branch(version: int) -> None:
    table, _ = new_table(version)
    first = table.update_snapshot().fast_append([data_file("memory://d/a")])
    table.update_snapshot(branch="audit").fast_append([data_file("memory://d/b")])
    staged = table.update_snapshot(stage_only=True).fast_append([data_file("memory://d/c")])
    assert first is not None
    assert staged is not None
    assert table.current_snapshot() == first
    assert live_paths(table, table.refs()["audit"].snapshot_id) == ["memory://d/a", "memory://d/b"]
    assert live_paths(table, staged.snapshot_id) == ["memory://d/a", "memory://d/c"]
    assert staged.snapshot_id not in {each.snapshot_id for each in table.refs().values()}
    if allows(version, Feature.SEQUENCE_NUMBERS):
        assert [each.sequence_number for each in table.snapshots()] == [1, 2, 3]
    assert all(each.content is ManifestContent.DATA for each in manifests(table))
