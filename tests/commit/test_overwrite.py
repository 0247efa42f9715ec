"""Overwrites, deletes and replacements of partitions: which files leave, and what the snapshot says of it."""

import pytest

from icefloe.commit import Planned
from icefloe.errors import InvalidInputError, ValidationError
from icefloe.manifests import EntryStatus, ManifestContent
from icefloe.table import Table
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.commit.tables import (
    BY_REGION,
    data_file,
    entries,
    live_paths,
    manifests,
    new_table,
    position_deletes,
)


def filled(version: int) -> Table:
    """Two partitions, three files with known bounds of `id`, in two commits."""
    table, _ = new_table(version, BY_REGION)
    table.update_snapshot().fast_append(
        [data_file("memory://d/eu1", 10, "eu", (1, 10)), data_file("memory://d/us1", 20, "us", (1, 20))]
    )
    table.update_snapshot().fast_append([data_file("memory://d/eu2", 5, "eu", (11, 15))])
    return table


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_a_delete_by_partition_or_by_bounds_removes_whole_files(version: int) -> None:
    table = filled(version)
    made = table.update_snapshot().delete("region = 'us'")
    assert made is not None
    assert made.summary is not None
    assert made.operation == "delete"
    assert live_paths(table) == ["memory://d/eu1", "memory://d/eu2"]
    assert made.summary["deleted-data-files"] == "1"
    assert made.summary["deleted-records"] == "20"
    assert made.summary["total-records"] == "15"
    assert made.summary["removed-files-size"] == "2000"
    assert made.summary["changed-partition-count"] == "1"
    assert table.update_snapshot().delete("region = 'eu' and id > 10") is not None
    assert live_paths(table) == ["memory://d/eu1"]
    before = table.metadata
    assert table.update_snapshot().delete("id > 1000") is None
    assert table.metadata == before


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_what_stays_keeps_its_numbers_and_what_goes_is_told(version: int) -> None:
    table = filled(version)
    before = {each.data_file.file_path: each for each in entries(table)}
    made = table.update_snapshot().delete("region = 'us'")
    assert made is not None
    after = {each.data_file.file_path: each for each in entries(table, live=False)}
    gone, kept = after["memory://d/us1"], after["memory://d/eu1"]
    assert (gone.status, gone.snapshot_id) == (EntryStatus.DELETED, made.snapshot_id)
    assert gone.sequence_number == before["memory://d/us1"].sequence_number
    assert gone.data_file.first_row_id == before["memory://d/us1"].data_file.first_row_id
    assert (kept.status, kept.snapshot_id) == (EntryStatus.EXISTING, before["memory://d/eu1"].snapshot_id)
    assert kept.sequence_number == before["memory://d/eu1"].sequence_number
    assert kept.data_file == before["memory://d/eu1"].data_file
    # The manifest without a file to remove is the same one as before, not a copy.
    assert after["memory://d/eu2"] == before["memory://d/eu2"]


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_a_file_that_matches_partly_is_an_error_unless_it_is_named(version: int) -> None:
    table = filled(version)
    before = table.metadata
    with pytest.raises(ValidationError, match="memory://d/eu1"):
        table.update_snapshot().delete("region = 'eu' and id > 5")
    assert table.refresh().metadata == before
    rest = data_file("memory://d/eu1-rest", 5, "eu", (1, 5))
    made = table.update_snapshot().overwrite(
        Planned.on(table.metadata).reading("region = 'eu' and id > 5"),
        add=[rest],
        remove=["memory://d/eu1", "memory://d/eu2"],
    )
    assert made is not None
    assert made.operation == "overwrite"
    assert live_paths(table) == ["memory://d/eu1-rest", "memory://d/us1"]


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_an_overwrite_by_filter_puts_new_files_in_place_of_matching_ones(version: int) -> None:
    table = filled(version)
    made = table.update_snapshot().overwrite(
        None, row_filter="region = 'eu'", add=[data_file("memory://d/eu3", 7, "eu")]
    )
    assert made is not None
    assert made.summary is not None
    assert made.operation == "overwrite"
    assert made.summary["total-records"] == "27"
    assert live_paths(table) == ["memory://d/eu3", "memory://d/us1"]
    with pytest.raises(ValidationError, match="do not match"):
        table.update_snapshot().overwrite(
            None, row_filter="region = 'eu'", add=[data_file(region="us")], check_added_match=True
        )
    everything = table.update_snapshot().overwrite(None, row_filter=True)
    assert everything is not None
    assert everything.operation == "delete"
    assert live_paths(table) == []


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_removing_a_named_file_needs_it_to_be_there(version: int) -> None:
    table = filled(version)
    planned = Planned.on(table.metadata)
    with pytest.raises(InvalidInputError, match="planned on"):
        table.update_snapshot().overwrite(None, remove=["memory://d/eu1"])
    with pytest.raises(ValidationError, match="memory://d/nowhere"):
        table.update_snapshot().delete_files(["memory://d/eu1", "memory://d/nowhere"], planned)
    made = table.update_snapshot().delete_files(["memory://d/eu1"], planned)
    assert made is not None
    assert live_paths(table) == ["memory://d/eu2", "memory://d/us1"]
    with pytest.raises(ValidationError, match="not in the table"):
        table.update_snapshot().delete_files(["memory://d/eu1"], planned)


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_replacing_partitions_leaves_the_others(version: int) -> None:
    table = filled(version)
    made = table.update_snapshot().replace_partitions([data_file("memory://d/eu9", 1, "eu")], None)
    assert made is not None
    assert made.summary is not None
    assert made.summary["replace-partitions"] == "true"
    assert made.operation == "overwrite"
    assert live_paths(table) == ["memory://d/eu9", "memory://d/us1"]
    nulls = table.update_snapshot().replace_partitions([data_file("memory://d/null", 1, partitioned=True)], None)
    assert nulls is not None
    assert live_paths(table) == ["memory://d/eu9", "memory://d/null", "memory://d/us1"]
    with pytest.raises(InvalidInputError, match="no files"):
        table.update_snapshot().replace_partitions([], None)


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_replacing_the_partitions_of_a_table_without_any_replaces_all(version: int) -> None:
    table, _ = new_table(version)
    table.update_snapshot().fast_append([data_file(), data_file()])
    table.update_snapshot().replace_partitions([data_file("memory://d/all")], None)
    assert live_paths(table) == ["memory://d/all"]


@pytest.mark.parametrize("version", [each for each in ALL_VERSIONS if allows(each, Feature.NEW_POSITION_DELETE_FILES)])
def test_deletes_of_one_file_go_with_it(version: int) -> None:
    table = filled(version)
    planned = Planned.on(table.metadata)
    table.update_snapshot().row_delta(
        planned,
        deletes=[
            position_deletes(region="us", referenced_data_file="memory://d/us1", path="memory://d/us1-deletes"),
            position_deletes(region="eu", referenced_data_file="memory://d/eu1", path="memory://d/eu1-deletes"),
        ],
    )
    made = table.update_snapshot().delete("region = 'us'")
    assert made is not None
    assert made.summary is not None
    left = [each.data_file.file_path for each in entries(table, ManifestContent.DELETES)]
    assert left == ["memory://d/eu1-deletes"]
    assert made.summary["removed-position-delete-files"] == "1"
    assert made.summary["total-position-deletes"] == "1"
    assert {each.content for each in manifests(table)} == {ManifestContent.DATA, ManifestContent.DELETES}
