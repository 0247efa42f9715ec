"""Updates of snapshots, refs, logs, statistics and keys: what each one changes, and what is refused."""

from dataclasses import replace

import pytest

from icefloe.errors import (
    AlreadyExistsError,
    CommitFailed,
    InvalidInputError,
    InvalidMetadataError,
    NoSuchSnapshotError,
    UnsupportedVersionError,
)
from icefloe.metadata import (
    MAIN_BRANCH,
    PartitionStatisticsFile,
    SnapshotLogEntry,
    SnapshotRef,
    SnapshotRefType,
    StatisticsFile,
    branch,
    updates as up,
)
from icefloe.metadata.apply import apply, apply_all
from icefloe.metadata.codec import metadata_from_json, metadata_to_json
from icefloe.metadata.refs import tag
from icefloe.metadata.snapshot import MetadataLogEntry
from icefloe.metadata.table import EncryptedKey
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.metadata.tables import CREATED_MS, NOW_MS, append, commit, new_table, next_snapshot

versions = pytest.mark.parametrize("version", ALL_VERSIONS)
numbered_versions = pytest.mark.parametrize(
    "version", [each for each in ALL_VERSIONS if allows(each, Feature.SEQUENCE_NUMBERS)]
)
lineage_versions = pytest.mark.parametrize(
    "version", [each for each in ALL_VERSIONS if allows(each, Feature.ROW_LINEAGE)]
)


@versions
def test_an_append(version: int) -> None:
    metadata = append(append(new_table(version), 1), 2)
    assert metadata.current_snapshot_id == 2
    assert metadata.refs == {MAIN_BRANCH: branch(2)}
    assert [each.snapshot_id for each in metadata.ancestors(2)] == [2, 1]
    assert metadata.snapshot_log == (SnapshotLogEntry(1, CREATED_MS + 1), SnapshotLogEntry(2, CREATED_MS + 2))
    numbered = allows(version, Feature.SEQUENCE_NUMBERS)
    assert metadata.last_sequence_number == (2 if numbered else 0)
    assert metadata.next_row_id == (20 if allows(version, Feature.ROW_LINEAGE) else 0)
    assert metadata.snapshots_by_id == {1: metadata.snapshots[0], 2: metadata.snapshots[1]}


@versions
def test_a_snapshot_that_no_branch_points_to(version: int) -> None:
    metadata = append(new_table(version), 1)
    staged = commit(metadata, up.AddSnapshotUpdate(next_snapshot(metadata, 2, 1)))
    assert staged.current_snapshot_id == 1
    assert staged.snapshot_log == metadata.snapshot_log
    assert staged.next_row_id == (20 if allows(version, Feature.ROW_LINEAGE) else 0)


@versions
def test_a_snapshot_id_is_taken(version: int) -> None:
    metadata = append(new_table(version), 1)
    with pytest.raises(AlreadyExistsError, match="snapshot 1 "):
        commit(metadata, up.AddSnapshotUpdate(next_snapshot(metadata, 1, 1)))


@numbered_versions
def test_a_sequence_number_that_was_overtaken(version: int) -> None:
    metadata = append(append(new_table(version), 1), 2)
    late = replace(next_snapshot(metadata, 3, 1), sequence_number=2)
    with pytest.raises(CommitFailed, match="sequence number 2"):
        commit(metadata, up.AddSnapshotUpdate(late))
    rootless = replace(late, parent_snapshot_id=None)
    assert commit(metadata, up.AddSnapshotUpdate(rootless)).last_sequence_number == 2


def test_v1_has_no_sequence_numbers() -> None:
    metadata = new_table(1)
    with pytest.raises(UnsupportedVersionError, match="sequence numbers"):
        commit(metadata, up.AddSnapshotUpdate(replace(next_snapshot(metadata, 1), sequence_number=1)))


@lineage_versions
def test_row_ids_are_not_given_twice(version: int) -> None:
    metadata = append(new_table(version), 1)
    late = replace(next_snapshot(metadata, 2, 1), first_row_id=5)
    with pytest.raises(CommitFailed, match="first row id 5"):
        commit(metadata, up.AddSnapshotUpdate(late))
    ahead = replace(late, first_row_id=100)
    assert commit(metadata, up.AddSnapshotUpdate(ahead)).next_row_id == 110
    with pytest.raises(InvalidMetadataError, match="no first row id"):
        commit(metadata, up.AddSnapshotUpdate(replace(late, first_row_id=None, added_rows=None)))


@versions
def test_a_snapshot_has_the_form_of_its_version(version: int) -> None:
    metadata = new_table(version)
    good = next_snapshot(metadata, 1)
    inline = replace(good, manifest_list=None, manifests=("s3://a/m.avro",))
    for snapshot, allowed in (
        (good, True),
        (inline, allows(version, Feature.INLINE_MANIFESTS)),
        (replace(good, summary=None), not allows(version, Feature.SNAPSHOT_SUMMARY_REQUIRED)),
        (replace(good, key_id="k"), allows(version, Feature.ENCRYPTION_KEYS)),
        (replace(good, first_row_id=0, added_rows=1), allows(version, Feature.ROW_LINEAGE)),
        (replace(good, snapshot_id=-5), False),
    ):
        if allowed:
            assert commit(metadata, up.AddSnapshotUpdate(snapshot)).snapshots == (snapshot,)
        else:
            with pytest.raises(InvalidInputError, match="snapshot"):
                commit(metadata, up.AddSnapshotUpdate(snapshot))


@versions
def test_branches_and_tags(version: int) -> None:
    metadata = append(append(new_table(version), 1), 2)
    metadata = commit(metadata, up.SetSnapshotRefUpdate("b", branch(1)), up.SetSnapshotRefUpdate("t", tag(2)))
    assert metadata.refs == {MAIN_BRANCH: branch(2), "b": branch(1), "t": tag(2)}
    metadata = append(metadata, 3, "b")
    assert metadata.current_snapshot_id == 2
    assert [each.snapshot_id for each in metadata.ancestors(3)] == [3, 1]
    assert commit(metadata, up.RemoveSnapshotRefUpdate("b")).refs == {MAIN_BRANCH: branch(2), "t": tag(2)}
    with pytest.raises(NoSuchSnapshotError, match="99"):
        commit(metadata, up.SetSnapshotRefUpdate("b", branch(99)))
    with pytest.raises(InvalidMetadataError, match="'main'"):
        commit(metadata, up.SetSnapshotRefUpdate(MAIN_BRANCH, tag(1)))


@versions
def test_a_rollback_is_logged_with_its_own_time(version: int) -> None:
    metadata = commit(append(append(new_table(version), 1), 2), up.SetSnapshotRefUpdate(MAIN_BRANCH, branch(1)))
    assert metadata.current_snapshot_id == 1
    assert metadata.snapshot_log[-1] == SnapshotLogEntry(1, NOW_MS)
    assert metadata.snapshot_as_of(NOW_MS).snapshot_id == 1
    assert metadata.snapshot_as_of(NOW_MS - 1).snapshot_id == 2


@versions
def test_clocks_that_differ_do_not_turn_the_logs_around(version: int) -> None:
    """Java reads no metadata whose logs go back by more than a minute."""
    metadata = append(new_table(version), 1)
    head_ms = metadata.snapshot_log[-1].timestamp_ms
    for behind_ms, logged_ms in ((60_000, head_ms - 60_000), (60_001, head_ms)):
        late = next_snapshot(metadata, 2, 1, timestamp_ms=head_ms - behind_ms)
        updates = (up.AddSnapshotUpdate(late), up.SetSnapshotRefUpdate(MAIN_BRANCH, branch(2)))
        changed = commit(metadata, *updates, now_ms=late.timestamp_ms)
        assert changed.snapshot_log[-1] == SnapshotLogEntry(2, logged_ms)
        assert changed.snapshots[-1] == late
    long_ago = commit(metadata, up.SetPropertiesUpdate({"a": "b"}), now_ms=5)
    assert long_ago.last_updated_ms == metadata.last_updated_ms


@versions
def test_other_retention_of_main_is_no_change_of_the_current_snapshot(version: int) -> None:
    metadata = append(new_table(version), 1)
    kept = SnapshotRef(1, SnapshotRefType.BRANCH, min_snapshots_to_keep=5)
    changed = commit(metadata, up.SetSnapshotRefUpdate(MAIN_BRANCH, kept))
    assert changed.refs == {MAIN_BRANCH: kept}
    assert changed.snapshot_log == metadata.snapshot_log
    assert metadata_from_json(metadata_to_json(changed)) == changed


@versions
def test_what_was_current_inside_of_a_commit_only_is_not_logged(version: int) -> None:
    metadata = append(new_table(version), 1)
    first = next_snapshot(metadata, 2, 1)
    middle = apply(metadata, up.AddSnapshotUpdate(first), timestamp_ms=NOW_MS)
    second = next_snapshot(middle, 3, 2)
    done = commit(
        metadata,
        up.AddSnapshotUpdate(first),
        up.SetSnapshotRefUpdate(MAIN_BRANCH, branch(2)),
        up.AddSnapshotUpdate(second),
        up.SetSnapshotRefUpdate(MAIN_BRANCH, branch(3)),
    )
    assert [entry.snapshot_id for entry in done.snapshot_log] == [1, 3]
    assert [each.snapshot_id for each in done.snapshots] == [1, 2, 3]


@versions
def test_without_main_nothing_is_current(version: int) -> None:
    metadata = commit(append(new_table(version), 1), up.RemoveSnapshotRefUpdate(MAIN_BRANCH))
    assert metadata.current_snapshot() is None
    assert metadata.refs == {}
    assert metadata_from_json(metadata_to_json(metadata)) == metadata


@versions
def test_removed_snapshots_take_what_hangs_on_them(version: int) -> None:
    metadata = new_table(version)
    for snapshot_id in (1, 2, 3, 4):
        metadata = append(metadata, snapshot_id)
    metadata = commit(
        metadata,
        up.SetSnapshotRefUpdate("old", tag(2)),
        up.SetStatisticsUpdate(StatisticsFile(2, "s3://a/2.puffin", 10, 5)),
        up.SetStatisticsUpdate(StatisticsFile(3, "s3://a/3.puffin", 10, 5)),
        up.SetPartitionStatisticsUpdate(PartitionStatisticsFile(2, "s3://a/2.parquet", 10)),
    )
    removed = commit(metadata, up.RemoveSnapshotsUpdate((2, 99)))
    assert [each.snapshot_id for each in removed.snapshots] == [1, 3, 4]
    assert removed.refs == {MAIN_BRANCH: branch(4)}
    assert [each.snapshot_id for each in removed.statistics] == [3]
    assert removed.partition_statistics == ()
    # 1 was current before 2; with 2 gone the log may not tell that it was until 3 came.
    assert [entry.snapshot_id for entry in removed.snapshot_log] == [3, 4]
    assert removed.snapshots_by_id.keys() == {1, 3, 4}
    assert removed.next_row_id == metadata.next_row_id
    assert commit(metadata, up.RemoveSnapshotsUpdate((4,))).current_snapshot_id is None


def test_statistics_are_one_a_snapshot() -> None:
    first, second = StatisticsFile(1, "s3://a/1.puffin", 10, 5), StatisticsFile(1, "s3://a/2.puffin", 10, 5)
    metadata = commit(new_table(2), up.SetStatisticsUpdate(first), up.SetStatisticsUpdate(second))
    assert metadata.statistics == (second,)
    assert commit(metadata, up.RemoveStatisticsUpdate(1)).statistics == ()
    mine, yours = PartitionStatisticsFile(1, "s3://a/1", 10), PartitionStatisticsFile(1, "s3://a/2", 10)
    metadata = commit(new_table(2), up.SetPartitionStatisticsUpdate(mine), up.SetPartitionStatisticsUpdate(yours))
    assert metadata.partition_statistics == (yours,)
    assert commit(metadata, up.RemovePartitionStatisticsUpdate(1)).partition_statistics == ()


@versions
def test_encryption_keys(version: int) -> None:
    metadata = new_table(version)
    key = EncryptedKey("k", b"\x01", "master", {"KEY_TIMESTAMP": "1"})
    if not allows(version, Feature.ENCRYPTION_KEYS):
        with pytest.raises(UnsupportedVersionError, match="'k'"):
            commit(metadata, up.AddEncryptionKeyUpdate(key))
        return
    added = commit(
        metadata, up.AddEncryptionKeyUpdate(key), up.AddEncryptionKeyUpdate(replace(key, encrypted_by_id=None))
    )
    assert added.encryption_keys == (key,)
    assert commit(added, up.RemoveEncryptionKeyUpdate("k")).encryption_keys == ()


def test_the_metadata_log_is_bounded() -> None:
    limit = "write.metadata.previous-versions-max"
    metadata = new_table(2).evolve(properties={limit: "3"})
    for number in range(5):
        update = up.SetPropertiesUpdate({"n": str(number)})
        metadata = apply_all(metadata, [update], NOW_MS + number, f"s3://t/{number}.metadata.json")
    assert metadata.metadata_log == (
        MetadataLogEntry("s3://t/2.metadata.json", NOW_MS + 1),
        MetadataLogEntry("s3://t/3.metadata.json", NOW_MS + 2),
        MetadataLogEntry("s3://t/4.metadata.json", NOW_MS + 3),
    )
    few = apply_all(metadata, [up.SetPropertiesUpdate({limit: "2"})], NOW_MS, "s3://t/5.metadata.json")
    assert len(few.metadata_log) == 2
    none = apply_all(metadata, [up.SetPropertiesUpdate({limit: "-1"})], NOW_MS, "s3://t/5.metadata.json")
    assert len(none.metadata_log) == 1


def test_many_snapshots_are_added_in_time_that_grows_with_their_number() -> None:
    """Counts what is looked at, not seconds: the lookup table of a big table is carried over, never built again."""
    metadata = new_table(3).evolve(snapshots=tuple(next_snapshot(new_table(3), each) for each in range(1, 2_000)))
    index = metadata.snapshots_by_id
    added = apply(metadata, up.AddSnapshotUpdate(next_snapshot(metadata, 5_000)), timestamp_ms=NOW_MS)
    assert added.__dict__["snapshots_by_id"] == {**index, 5_000: added.snapshots[-1]}
    moved = apply(added, up.SetSnapshotRefUpdate(MAIN_BRANCH, branch(5_000)), timestamp_ms=NOW_MS)
    assert moved.snapshots_by_id is added.snapshots_by_id
    assert metadata.snapshots_by_id is index
    assert 5_000 not in index
