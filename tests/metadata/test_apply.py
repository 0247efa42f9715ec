"""Updates applied to tables: what each one changes, what is refused, and that nothing else changes."""

from copy import deepcopy
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icefloe.errors import (
    AlreadyExistsError,
    CommitFailed,
    IncompatibleChangeError,
    InvalidInputError,
    InvalidLocationError,
    InvalidMetadataError,
    InvalidPartitionSpecError,
    InvalidPropertyError,
    NoSuchObjectError,
    NoSuchSnapshotError,
    UnsupportedVersionError,
)
from icefloe.metadata import (
    LAST_ADDED,
    MAIN_BRANCH,
    AddEncryptionKeyUpdate,
    AddPartitionSpecUpdate,
    AddSchemaUpdate,
    AddSnapshotUpdate,
    AddSortOrderUpdate,
    AssignUUIDUpdate,
    EncryptedKey,
    MetadataLogEntry,
    PartitionStatisticsFile,
    RemoveEncryptionKeyUpdate,
    RemovePartitionSpecsUpdate,
    RemovePartitionStatisticsUpdate,
    RemovePropertiesUpdate,
    RemoveSchemasUpdate,
    RemoveSnapshotRefUpdate,
    RemoveSnapshotsUpdate,
    RemoveStatisticsUpdate,
    SetCurrentSchemaUpdate,
    SetCurrentViewVersionUpdate,
    SetDefaultSortOrderUpdate,
    SetDefaultSpecUpdate,
    SetLocationUpdate,
    SetPartitionStatisticsUpdate,
    SetPropertiesUpdate,
    SetSnapshotRefUpdate,
    SetStatisticsUpdate,
    Snapshot,
    SnapshotLogEntry,
    SnapshotRef,
    SnapshotRefType,
    StatisticsFile,
    TableMetadata,
    TableUpdate,
    UpgradeFormatVersionUpdate,
    apply,
    apply_all,
    branch,
    metadata_from_json,
    metadata_to_json,
    tag,
    with_previous,
)
from icefloe.partitioning.sorting import UNSORTED, parse_sort_order
from icefloe.partitioning.spec import UNPARTITIONED, PartitionField, PartitionSpec, parse_partition_spec
from icefloe.partitioning.transforms import BucketTransform, IdentityTransform, VoidTransform
from icefloe.schema.schema import Schema
from icefloe.schema.types import LongType, NestedField, StringType, VariantType
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.metadata.tables import BY_DAY, CREATED_MS, SCHEMA, UUID, new_table, next_snapshot
from tests.strategies import new_tables, partition_specs, schemas, sort_orders, table_metadata

NOW_MS = CREATED_MS + 1_000_000

versions = pytest.mark.parametrize("version", ALL_VERSIONS)
numbered_versions = pytest.mark.parametrize(
    "version", [each for each in ALL_VERSIONS if allows(each, Feature.SEQUENCE_NUMBERS)]
)
lineage_versions = pytest.mark.parametrize(
    "version", [each for each in ALL_VERSIONS if allows(each, Feature.ROW_LINEAGE)]
)


def commit(metadata: TableMetadata, *updates: TableUpdate, now_ms: int = NOW_MS) -> TableMetadata:
    return apply_all(metadata, updates, now_ms)


def append(metadata: TableMetadata, snapshot_id: int, name: str = MAIN_BRANCH) -> TableMetadata:
    head = metadata.snapshot_by_name(name)
    snapshot = next_snapshot(metadata, snapshot_id, None if head is None else head.snapshot_id)
    return commit(metadata, AddSnapshotUpdate(snapshot), SetSnapshotRefUpdate(name, branch(snapshot_id)))


# --- the whole table -------------------------------------------------------------------------------------------------


@versions
def test_a_table_is_created_by_updates(version: int) -> None:
    base = new_table(version, BY_DAY, parse_sort_order(["id desc"], SCHEMA))
    created = apply_all(
        None,
        [
            AssignUUIDUpdate(UUID),
            UpgradeFormatVersionUpdate(version),
            AddSchemaUpdate(base.schema()),
            SetCurrentSchemaUpdate(LAST_ADDED),
            AddPartitionSpecUpdate(base.spec()),
            SetDefaultSpecUpdate(LAST_ADDED),
            AddSortOrderUpdate(base.sort_order()),
            SetDefaultSortOrderUpdate(LAST_ADDED),
            SetLocationUpdate("s3://bucket/db/table/"),
            SetPropertiesUpdate({"owner": "me"}),
        ],
        CREATED_MS,
    )
    assert created == base


@pytest.mark.parametrize("dropped", range(4))
def test_a_table_needs_all_its_parts(dropped: int) -> None:
    base = new_table(2)
    parts: list[list[TableUpdate]] = [
        [
            AddSchemaUpdate(base.schema()),
            SetCurrentSchemaUpdate(),
            AddPartitionSpecUpdate(base.spec()),
            SetDefaultSpecUpdate(),
        ],
        [AddSortOrderUpdate(UNSORTED), SetDefaultSortOrderUpdate()],
        [AssignUUIDUpdate(UUID)],
        [SetLocationUpdate("s3://b/t")],
    ]
    del parts[dropped]
    with pytest.raises(
        (InvalidMetadataError, NoSuchObjectError), match=r"schema|partition spec|sort order|UUID|location"
    ):
        apply_all(None, [each for part in parts for each in part], CREATED_MS)


@versions
def test_updates_that_change_nothing_give_the_same_object(version: int) -> None:
    metadata = append(new_table(version), 1)
    updates: list[TableUpdate] = [
        AssignUUIDUpdate(UUID.upper()),
        UpgradeFormatVersionUpdate(version),
        AddSchemaUpdate(metadata.schema()),
        SetCurrentSchemaUpdate(metadata.current_schema_id),
        AddPartitionSpecUpdate(metadata.spec()),
        SetDefaultSpecUpdate(),
        AddSortOrderUpdate(UNSORTED),
        SetDefaultSortOrderUpdate(0),
        SetLocationUpdate("s3://bucket/db/table"),
        SetPropertiesUpdate({"owner": "me"}),
        RemovePropertiesUpdate(("absent",)),
        SetSnapshotRefUpdate(MAIN_BRANCH, branch(1)),
        RemoveSnapshotRefUpdate("absent"),
        RemoveSnapshotsUpdate((99,)),
        RemoveStatisticsUpdate(99),
        RemovePartitionStatisticsUpdate(99),
        RemoveSchemasUpdate((99,)),
        RemovePartitionSpecsUpdate((99,)),
        RemoveEncryptionKeyUpdate("absent"),
    ]
    assert apply_all(metadata, updates, NOW_MS) is metadata
    for update in updates:
        if not isinstance(update, SetDefaultSpecUpdate):
            assert apply(metadata, update, timestamp_ms=NOW_MS) is metadata


@versions
def test_a_commit_sets_the_time(version: int) -> None:
    assert commit(new_table(version), SetPropertiesUpdate({"a": "b"})).last_updated_ms == NOW_MS


def test_the_uuid_never_changes() -> None:
    with pytest.raises(IncompatibleChangeError, match="UUID"):
        commit(new_table(2), AssignUUIDUpdate("other"))


def test_updates_of_views_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="SetCurrentViewVersionUpdate"):
        apply(new_table(2), SetCurrentViewVersionUpdate(), timestamp_ms=NOW_MS)  # type: ignore[arg-type]  # the point


@versions
@pytest.mark.parametrize("target", ALL_VERSIONS)
def test_upgrade(version: int, target: int) -> None:
    metadata = append(new_table(version), 1)
    if target < version:
        with pytest.raises(UnsupportedVersionError, match=f"v{version} table cannot go back to v{target}"):
            commit(metadata, UpgradeFormatVersionUpdate(target))
        return
    upgraded = commit(metadata, UpgradeFormatVersionUpdate(target))
    assert upgraded.format_version == target
    assert upgraded.snapshots == metadata.snapshots
    assert upgraded.next_row_id == metadata.next_row_id
    assert metadata_from_json(metadata_to_json(upgraded)) == upgraded
    assert append(upgraded, 2).current_snapshot_id == 2


def test_upgrade_to_what_does_not_exist() -> None:
    with pytest.raises(UnsupportedVersionError, match="5"):
        commit(new_table(2), UpgradeFormatVersionUpdate(5))


def test_upgrade_of_v1_needs_a_uuid() -> None:
    metadata = new_table(1).evolve(table_uuid=None)
    with pytest.raises(InvalidMetadataError, match="UUID"):
        commit(metadata, UpgradeFormatVersionUpdate(2))
    assert commit(metadata, UpgradeFormatVersionUpdate(2), AssignUUIDUpdate(UUID)).table_uuid == UUID


def test_upgrade_to_relative_paths_keeps_what_paths_mean() -> None:
    metadata = append(new_table(3), 1).evolve(location="hdfs://host:8020/db/t/")
    snapshot = replace(metadata.snapshots[0], manifest_list="/db/t/metadata/snap.avro")
    old = metadata.evolve(
        snapshots=(
            snapshot,
            replace(snapshot, snapshot_id=2, manifest_list=None, manifests=("/m.avro", "s3://b/n.avro")),
        ),
        metadata_log=(MetadataLogEntry("/db/t/metadata/v1.metadata.json", 1),),
        statistics=(StatisticsFile(1, "/db/t/s.puffin", 1, 1),),
        partition_statistics=(PartitionStatisticsFile(1, "/db/t/p.parquet", 1),),
    )
    new = commit(old, UpgradeFormatVersionUpdate(4))
    assert new.location == "hdfs://host:8020/db/t"
    assert new.snapshots[0].manifest_list == "hdfs://host:8020/db/t/metadata/snap.avro"
    assert new.snapshots[1].manifests == ("hdfs://host:8020/m.avro", "s3://b/n.avro")
    assert new.metadata_log[0].metadata_file == "hdfs://host:8020/db/t/metadata/v1.metadata.json"
    assert new.statistics[0].statistics_path == "hdfs://host:8020/db/t/s.puffin"
    assert new.partition_statistics[0].statistics_path == "hdfs://host:8020/db/t/p.parquet"
    with pytest.raises(InvalidLocationError, match="scheme"):
        commit(old.evolve(location="/db/t"), UpgradeFormatVersionUpdate(4))


@versions
def test_locations(version: int) -> None:
    metadata = new_table(version)
    assert commit(metadata, SetLocationUpdate("s3://other/t/")).location == "s3://other/t"
    with pytest.raises(InvalidLocationError, match="location"):
        commit(metadata, SetLocationUpdate(""))
    if allows(version, Feature.OPTIONAL_LOCATION):
        with pytest.raises(InvalidLocationError, match="absolute"):
            commit(metadata, SetLocationUpdate("/other/t"))
    else:
        assert commit(metadata, SetLocationUpdate("/other/t")).location == "/other/t"


def test_properties() -> None:
    metadata = commit(new_table(2), SetPropertiesUpdate({"a": "1", "owner": "you"}))
    assert metadata.properties == {"owner": "you", "a": "1"}
    assert commit(metadata, RemovePropertiesUpdate(("owner",))).properties == {"a": "1"}


@pytest.mark.parametrize("key", ["format-version", "uuid", "current-schema", "snapshot-count"])
def test_reserved_properties_are_refused(key: str) -> None:
    with pytest.raises(InvalidPropertyError, match=key):
        commit(new_table(2), SetPropertiesUpdate({key: "1"}))


# --- schemas, specs, orders ------------------------------------------------------------------------------------------

WIDER = Schema(*SCHEMA.fields, NestedField(7, "extra", StringType()))


@versions
def test_schemas(version: int) -> None:
    metadata = commit(new_table(version), AddSchemaUpdate(WIDER), SetCurrentSchemaUpdate())
    assert metadata.current_schema_id == 1
    assert metadata.schema() == WIDER.with_id(1)
    assert metadata.last_column_id == 7
    back = commit(metadata, AddSchemaUpdate(SCHEMA.with_id(9)), SetCurrentSchemaUpdate())
    assert back.schemas == metadata.schemas
    assert back.current_schema_id == 0
    assert back.last_column_id == 7
    assert commit(back, RemoveSchemasUpdate((1,))).schemas == back.schemas[:1]
    third = commit(back, RemoveSchemasUpdate((1,)), AddSchemaUpdate(WIDER)).schemas[-1]
    assert third.schema_id == 1
    with pytest.raises(IncompatibleChangeError, match="schema 0 is the current"):
        commit(back, RemoveSchemasUpdate((0, 1)))
    with pytest.raises(NoSuchObjectError, match="no schema with id 5"):
        commit(back, SetCurrentSchemaUpdate(5))


@versions
def test_a_schema_must_suit_the_version(version: int) -> None:
    variant = Schema(*SCHEMA.fields, NestedField(4, "v", VariantType()))
    if allows(version, Feature.VARIANT):
        assert commit(new_table(version), AddSchemaUpdate(variant)).last_column_id == 4
    else:
        with pytest.raises(UnsupportedVersionError, match="variant"):
            commit(new_table(version), AddSchemaUpdate(variant))


@pytest.mark.parametrize("update", [SetCurrentSchemaUpdate(), SetDefaultSpecUpdate(), SetDefaultSortOrderUpdate()])
def test_the_last_added_must_have_been_added(update: TableUpdate) -> None:
    with pytest.raises(InvalidInputError, match="added last"):
        commit(new_table(2), update)


def test_the_last_added_is_one_that_was_there_before() -> None:
    metadata = commit(new_table(2), AddSchemaUpdate(WIDER), AddSchemaUpdate(SCHEMA), SetCurrentSchemaUpdate())
    assert metadata.current_schema_id == 0


@versions
def test_the_default_spec_must_fit_the_current_schema(version: int) -> None:
    metadata = new_table(version, BY_DAY)
    narrow = Schema(SCHEMA.fields[0])
    with pytest.raises(IncompatibleChangeError, match="'day'"):
        commit(metadata, AddSchemaUpdate(narrow), SetCurrentSchemaUpdate())
    void = PartitionSpec(PartitionField(2, 1000, VoidTransform(), "day"))
    fits = commit(
        metadata,
        AddPartitionSpecUpdate(void),
        SetDefaultSpecUpdate(),
        AddSchemaUpdate(narrow),
        SetCurrentSchemaUpdate(),
    )
    assert fits.spec().is_unpartitioned


@versions
def test_the_default_order_must_fit_the_current_schema(version: int) -> None:
    metadata = new_table(version, order=parse_sort_order(["name"], SCHEMA))
    with pytest.raises(InvalidInputError, match="3 is not in the schema"):
        commit(metadata, AddSchemaUpdate(Schema(SCHEMA.fields[0])), SetCurrentSchemaUpdate())


@versions
def test_specs(version: int) -> None:
    metadata = commit(new_table(version), AddPartitionSpecUpdate(BY_DAY), SetDefaultSpecUpdate())
    assert metadata.spec() == BY_DAY.with_id(1)
    assert metadata.last_partition_id == 1000
    renumbered = PartitionSpec(PartitionField(2, 1005, IdentityTransform(), "day"), spec_id=8)
    again = commit(metadata, AddPartitionSpecUpdate(renumbered), SetDefaultSpecUpdate())
    assert again is metadata
    back = commit(metadata, SetDefaultSpecUpdate(0))
    assert back.spec().is_unpartitioned
    assert commit(back, RemovePartitionSpecsUpdate((1,))).partition_specs == (UNPARTITIONED,)
    with pytest.raises(IncompatibleChangeError, match="partition spec 0 is the default"):
        commit(back, RemovePartitionSpecsUpdate((0,)))
    with pytest.raises(NoSuchObjectError, match="no partition spec with id 5"):
        commit(back, SetDefaultSpecUpdate(5))
    with pytest.raises(InvalidPartitionSpecError, match="not in the schema"):
        commit(back, AddPartitionSpecUpdate(PartitionSpec(PartitionField(77, 1001, IdentityTransform(), "gone"))))


@versions
def test_partition_field_ids_are_not_given_twice(version: int) -> None:
    metadata = new_table(version, BY_DAY)
    other = PartitionSpec(PartitionField(1, 1000, BucketTransform(4), "id_bucket"))
    fresh = PartitionSpec(PartitionField(1, 1001, BucketTransform(4), "id_bucket"))
    both = parse_partition_spec(["day", "bucket(4, id)"], SCHEMA)
    assert commit(metadata, AddPartitionSpecUpdate(both)).last_partition_id == 1001
    if allows(version, Feature.PARTITION_FIELD_IDS):
        with pytest.raises(InvalidPartitionSpecError, match="1000"):
            commit(metadata, AddPartitionSpecUpdate(other))
        assert commit(metadata, AddPartitionSpecUpdate(fresh)).last_partition_id == 1001
    else:
        with pytest.raises(InvalidPartitionSpecError, match="1001"):
            commit(metadata, AddPartitionSpecUpdate(fresh))


@versions
def test_sort_orders(version: int) -> None:
    by_id, by_name = parse_sort_order(["id"], SCHEMA), parse_sort_order(["name"], SCHEMA)
    metadata = commit(new_table(version), AddSortOrderUpdate(by_id), SetDefaultSortOrderUpdate())
    assert metadata.default_sort_order_id == 1
    metadata = commit(metadata, AddSortOrderUpdate(by_name), AddSortOrderUpdate(by_id), SetDefaultSortOrderUpdate())
    assert [each.order_id for each in metadata.sort_orders] == [0, 1, 2]
    assert metadata.sort_order() == by_id
    assert commit(metadata, AddSortOrderUpdate(UNSORTED), SetDefaultSortOrderUpdate()).sort_order().is_unsorted
    with pytest.raises(NoSuchObjectError, match="no sort order with id 5"):
        commit(metadata, SetDefaultSortOrderUpdate(5))


def test_unsorted_keeps_id_0_when_it_comes_later() -> None:
    metadata = new_table(2, order=parse_sort_order(["id"], SCHEMA))
    assert [each.order_id for each in metadata.sort_orders] == [1]
    metadata = commit(metadata, AddSortOrderUpdate(UNSORTED), SetDefaultSortOrderUpdate())
    assert [each.order_id for each in metadata.sort_orders] == [1, 0]
    assert metadata.default_sort_order_id == 0


# --- snapshots and refs ----------------------------------------------------------------------------------------------


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
    staged = commit(metadata, AddSnapshotUpdate(next_snapshot(metadata, 2, 1)))
    assert staged.current_snapshot_id == 1
    assert staged.snapshot_log == metadata.snapshot_log
    assert staged.next_row_id == (20 if allows(version, Feature.ROW_LINEAGE) else 0)


@versions
def test_a_snapshot_id_is_taken(version: int) -> None:
    metadata = append(new_table(version), 1)
    with pytest.raises(AlreadyExistsError, match="snapshot 1 "):
        commit(metadata, AddSnapshotUpdate(next_snapshot(metadata, 1, 1)))


@numbered_versions
def test_a_sequence_number_that_was_overtaken(version: int) -> None:
    metadata = append(append(new_table(version), 1), 2)
    late = replace(next_snapshot(metadata, 3, 1), sequence_number=2)
    with pytest.raises(CommitFailed, match="sequence number 2"):
        commit(metadata, AddSnapshotUpdate(late))
    rootless = replace(late, parent_snapshot_id=None)
    assert commit(metadata, AddSnapshotUpdate(rootless)).last_sequence_number == 2


def test_v1_has_no_sequence_numbers() -> None:
    metadata = new_table(1)
    with pytest.raises(UnsupportedVersionError, match="sequence numbers"):
        commit(metadata, AddSnapshotUpdate(replace(next_snapshot(metadata, 1), sequence_number=1)))


@lineage_versions
def test_row_ids_are_not_given_twice(version: int) -> None:
    metadata = append(new_table(version), 1)
    late = replace(next_snapshot(metadata, 2, 1), first_row_id=5)
    with pytest.raises(CommitFailed, match="first row id 5"):
        commit(metadata, AddSnapshotUpdate(late))
    ahead = replace(late, first_row_id=100)
    assert commit(metadata, AddSnapshotUpdate(ahead)).next_row_id == 110
    with pytest.raises(InvalidMetadataError, match="no first row id"):
        commit(metadata, AddSnapshotUpdate(replace(late, first_row_id=None, added_rows=None)))


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
            assert commit(metadata, AddSnapshotUpdate(snapshot)).snapshots == (snapshot,)
        else:
            with pytest.raises(InvalidInputError, match="snapshot"):
                commit(metadata, AddSnapshotUpdate(snapshot))


@versions
def test_branches_and_tags(version: int) -> None:
    metadata = append(append(new_table(version), 1), 2)
    metadata = commit(metadata, SetSnapshotRefUpdate("b", branch(1)), SetSnapshotRefUpdate("t", tag(2)))
    assert metadata.refs == {MAIN_BRANCH: branch(2), "b": branch(1), "t": tag(2)}
    metadata = append(metadata, 3, "b")
    assert metadata.current_snapshot_id == 2
    assert [each.snapshot_id for each in metadata.ancestors(3)] == [3, 1]
    assert commit(metadata, RemoveSnapshotRefUpdate("b")).refs == {MAIN_BRANCH: branch(2), "t": tag(2)}
    with pytest.raises(NoSuchSnapshotError, match="99"):
        commit(metadata, SetSnapshotRefUpdate("b", branch(99)))
    with pytest.raises(InvalidMetadataError, match="'main'"):
        commit(metadata, SetSnapshotRefUpdate(MAIN_BRANCH, tag(1)))


@versions
def test_a_rollback_is_logged_with_its_own_time(version: int) -> None:
    metadata = commit(append(append(new_table(version), 1), 2), SetSnapshotRefUpdate(MAIN_BRANCH, branch(1)))
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
        updates = (AddSnapshotUpdate(late), SetSnapshotRefUpdate(MAIN_BRANCH, branch(2)))
        changed = commit(metadata, *updates, now_ms=late.timestamp_ms)
        assert changed.snapshot_log[-1] == SnapshotLogEntry(2, logged_ms)
        assert changed.snapshots[-1] == late
    long_ago = commit(metadata, SetPropertiesUpdate({"a": "b"}), now_ms=5)
    assert long_ago.last_updated_ms == metadata.last_updated_ms


@versions
def test_other_retention_of_main_is_no_change_of_the_current_snapshot(version: int) -> None:
    metadata = append(new_table(version), 1)
    kept = SnapshotRef(1, SnapshotRefType.BRANCH, min_snapshots_to_keep=5)
    changed = commit(metadata, SetSnapshotRefUpdate(MAIN_BRANCH, kept))
    assert changed.refs == {MAIN_BRANCH: kept}
    assert changed.snapshot_log == metadata.snapshot_log
    assert metadata_from_json(metadata_to_json(changed)) == changed


@versions
def test_what_was_current_inside_of_a_commit_only_is_not_logged(version: int) -> None:
    metadata = append(new_table(version), 1)
    first = next_snapshot(metadata, 2, 1)
    middle = apply(metadata, AddSnapshotUpdate(first), timestamp_ms=NOW_MS)
    second = next_snapshot(middle, 3, 2)
    done = commit(
        metadata,
        AddSnapshotUpdate(first),
        SetSnapshotRefUpdate(MAIN_BRANCH, branch(2)),
        AddSnapshotUpdate(second),
        SetSnapshotRefUpdate(MAIN_BRANCH, branch(3)),
    )
    assert [entry.snapshot_id for entry in done.snapshot_log] == [1, 3]
    assert [each.snapshot_id for each in done.snapshots] == [1, 2, 3]


@versions
def test_without_main_nothing_is_current(version: int) -> None:
    metadata = commit(append(new_table(version), 1), RemoveSnapshotRefUpdate(MAIN_BRANCH))
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
        SetSnapshotRefUpdate("old", tag(2)),
        SetStatisticsUpdate(StatisticsFile(2, "s3://a/2.puffin", 10, 5)),
        SetStatisticsUpdate(StatisticsFile(3, "s3://a/3.puffin", 10, 5)),
        SetPartitionStatisticsUpdate(PartitionStatisticsFile(2, "s3://a/2.parquet", 10)),
    )
    removed = commit(metadata, RemoveSnapshotsUpdate((2, 99)))
    assert [each.snapshot_id for each in removed.snapshots] == [1, 3, 4]
    assert removed.refs == {MAIN_BRANCH: branch(4)}
    assert [each.snapshot_id for each in removed.statistics] == [3]
    assert removed.partition_statistics == ()
    # 1 was current before 2; with 2 gone the log may not tell that it was until 3 came.
    assert [entry.snapshot_id for entry in removed.snapshot_log] == [3, 4]
    assert removed.snapshots_by_id.keys() == {1, 3, 4}
    assert removed.next_row_id == metadata.next_row_id
    assert commit(metadata, RemoveSnapshotsUpdate((4,))).current_snapshot_id is None


def test_statistics_are_one_a_snapshot() -> None:
    first, second = StatisticsFile(1, "s3://a/1.puffin", 10, 5), StatisticsFile(1, "s3://a/2.puffin", 10, 5)
    metadata = commit(new_table(2), SetStatisticsUpdate(first), SetStatisticsUpdate(second))
    assert metadata.statistics == (second,)
    assert commit(metadata, RemoveStatisticsUpdate(1)).statistics == ()
    mine, yours = PartitionStatisticsFile(1, "s3://a/1", 10), PartitionStatisticsFile(1, "s3://a/2", 10)
    metadata = commit(new_table(2), SetPartitionStatisticsUpdate(mine), SetPartitionStatisticsUpdate(yours))
    assert metadata.partition_statistics == (yours,)
    assert commit(metadata, RemovePartitionStatisticsUpdate(1)).partition_statistics == ()


@versions
def test_encryption_keys(version: int) -> None:
    metadata = new_table(version)
    key = EncryptedKey("k", b"\x01", "master", {"KEY_TIMESTAMP": "1"})
    if not allows(version, Feature.ENCRYPTION_KEYS):
        with pytest.raises(UnsupportedVersionError, match="'k'"):
            commit(metadata, AddEncryptionKeyUpdate(key))
        return
    added = commit(metadata, AddEncryptionKeyUpdate(key), AddEncryptionKeyUpdate(replace(key, encrypted_by_id=None)))
    assert added.encryption_keys == (key,)
    assert commit(added, RemoveEncryptionKeyUpdate("k")).encryption_keys == ()


def test_the_metadata_log_is_bounded() -> None:
    metadata = new_table(2)
    for number in range(5):
        changed = commit(metadata, SetPropertiesUpdate({"n": str(number)}), now_ms=NOW_MS + number)
        metadata = with_previous(changed, metadata, f"s3://t/{number}.metadata.json", max_entries=3)
    assert metadata.metadata_log == (
        MetadataLogEntry("s3://t/2.metadata.json", NOW_MS + 1),
        MetadataLogEntry("s3://t/3.metadata.json", NOW_MS + 2),
        MetadataLogEntry("s3://t/4.metadata.json", NOW_MS + 3),
    )
    few = commit(metadata, SetPropertiesUpdate({"write.metadata.previous-versions-max": "2"}))
    assert len(with_previous(few, metadata, "s3://t/5.metadata.json").metadata_log) == 2
    none = commit(metadata, SetPropertiesUpdate({"write.metadata.previous-versions-max": "-1"}))
    assert len(with_previous(none, metadata, "s3://t/5.metadata.json").metadata_log) == 1


def test_many_snapshots_are_added_in_time_that_grows_with_their_number() -> None:
    """Counts what is looked at, not seconds: the lookup table of a big table is carried over, never built again."""
    metadata = new_table(3).evolve(snapshots=tuple(next_snapshot(new_table(3), each) for each in range(1, 2_000)))
    index = metadata.snapshots_by_id
    added = apply(metadata, AddSnapshotUpdate(next_snapshot(metadata, 5_000)), timestamp_ms=NOW_MS)
    assert added.__dict__["snapshots_by_id"] == {**index, 5_000: added.snapshots[-1]}
    moved = apply(added, SetSnapshotRefUpdate(MAIN_BRANCH, branch(5_000)), timestamp_ms=NOW_MS)
    assert moved.snapshots_by_id is added.snapshots_by_id
    assert metadata.snapshots_by_id is index
    assert 5_000 not in index


# --- any sequence of legal updates -----------------------------------------------------------------------------------


@st.composite
def legal_updates(draw: st.DrawFn, metadata: TableMetadata) -> tuple[TableUpdate, ...]:
    """The updates of one commit that the table must accept."""
    version = metadata.format_version
    ids = [each.snapshot_id for each in metadata.snapshots]
    kinds = ["properties", "schema", "spec", "order", "append", "upgrade", "removal"]
    kinds += ["ref", "rollback", "expire", "statistics"] if ids else []
    match draw(st.sampled_from(kinds)):
        case "properties":
            key = draw(st.sampled_from(("a", "b", "owner")))
            return (SetPropertiesUpdate({key: "x"}),) if draw(st.booleans()) else (RemovePropertiesUpdate((key,)),)
        case "schema":
            extra = NestedField(metadata.last_column_id + 1, f"c{metadata.last_column_id + 1}", LongType())
            return AddSchemaUpdate(Schema(*metadata.schema().fields, extra)), SetCurrentSchemaUpdate()
        case "spec":
            first = metadata.last_partition_id + 1 if allows(version, Feature.PARTITION_FIELD_IDS) else 1000
            return AddPartitionSpecUpdate(
                draw(partition_specs(metadata.schema(), first_id=first))
            ), SetDefaultSpecUpdate()
        case "order":
            return AddSortOrderUpdate(draw(sort_orders(metadata.schema()))), SetDefaultSortOrderUpdate()
        case "append":
            snapshot = _fresh_snapshot(draw, metadata)
            name = draw(st.sampled_from((MAIN_BRANCH, "b")))
            return AddSnapshotUpdate(snapshot), SetSnapshotRefUpdate(name, branch(snapshot.snapshot_id))
        case "upgrade":
            return (UpgradeFormatVersionUpdate(draw(st.integers(version, ALL_VERSIONS[-1]))),)
        case "removal":
            schemas_left = [each.schema_id for each in metadata.schemas if each.schema_id != metadata.current_schema_id]
            specs_left = [each.spec_id for each in metadata.partition_specs if each.spec_id != metadata.default_spec_id]
            return RemoveSchemasUpdate(tuple(schemas_left)), RemovePartitionSpecsUpdate(tuple(specs_left))
        case "ref":
            return (SetSnapshotRefUpdate("t", tag(draw(st.sampled_from(ids)))),)
        case "rollback":
            return (SetSnapshotRefUpdate(MAIN_BRANCH, branch(draw(st.sampled_from(ids)))),)
        case "expire":
            return (RemoveSnapshotsUpdate(tuple(draw(st.lists(st.sampled_from(ids), max_size=2)))),)
        case _:
            return (SetStatisticsUpdate(StatisticsFile(draw(st.sampled_from(ids)), "s3://a/x.puffin", 1, 1)),)


def _fresh_snapshot(draw: st.DrawFn, metadata: TableMetadata) -> Snapshot:
    used = set(metadata.snapshots_by_id)
    snapshot_id = draw(st.integers(1, 1_000_000).filter(lambda each: each not in used))
    parent = draw(st.sampled_from([None, *used])) if used else None
    return next_snapshot(metadata, snapshot_id, parent, draw(st.integers(0, 50)))


def check_invariants(metadata: TableMetadata) -> None:
    for ids in (
        [each.schema_id for each in metadata.schemas],
        [each.spec_id for each in metadata.partition_specs],
        [each.order_id for each in metadata.sort_orders],
        [each.snapshot_id for each in metadata.snapshots],
        [each.snapshot_id for each in metadata.statistics],
    ):
        assert len(set(ids)) == len(ids)
    metadata.schema(), metadata.spec(), metadata.sort_order()
    assert metadata.last_column_id >= max(each.highest_field_id for each in metadata.schemas)
    assert metadata.last_partition_id >= max(each.last_field_id for each in metadata.partition_specs)
    assert all(ref.snapshot_id in metadata.snapshots_by_id for ref in metadata.refs.values())
    main = metadata.refs.get(MAIN_BRANCH)
    assert metadata.current_snapshot_id == (None if main is None else main.snapshot_id)
    assert all(entry.snapshot_id in metadata.snapshots_by_id for entry in metadata.snapshot_log)
    if metadata.current_snapshot_id is not None:
        assert metadata.snapshot_log[-1].snapshot_id == metadata.current_snapshot_id
    assert metadata.snapshots_by_id == {each.snapshot_id: each for each in metadata.snapshots}
    assert metadata_from_json(metadata_to_json(metadata)) == metadata


@versions
@given(data=st.data())
def test_legal_updates_keep_a_table_whole(version: int, data: st.DataObject) -> None:
    metadata = data.draw(new_tables(version)).evolve(location="s3://bucket/db/table")
    for position in range(data.draw(st.integers(1, 8))):
        updates = data.draw(legal_updates(metadata))
        before = deepcopy(metadata)
        after = apply_all(metadata, updates, NOW_MS + position)
        assert metadata == before
        check_invariants(after)
        assert after.next_row_id >= metadata.next_row_id
        assert after.last_sequence_number >= metadata.last_sequence_number
        assert after.last_column_id >= metadata.last_column_id
        assert after.last_partition_id >= metadata.last_partition_id
        assert after.format_version >= metadata.format_version
        metadata = after


@versions
@settings(max_examples=25)
@given(data=st.data())
def test_apply_never_changes_its_input(version: int, data: st.DataObject) -> None:
    metadata = data.draw(table_metadata(version))
    before = deepcopy(metadata)
    schema = data.draw(schemas(version))
    for update in (
        AddSchemaUpdate(schema),
        SetPropertiesUpdate({"x": "y"}),
        RemovePropertiesUpdate(tuple(metadata.properties)),
        RemoveSnapshotsUpdate(tuple(metadata.snapshots_by_id)),
        RemoveSnapshotRefUpdate(MAIN_BRANCH),
        AddSnapshotUpdate(next_snapshot(metadata, 2**62))
        if 2**62 not in metadata.snapshots_by_id
        else AssignUUIDUpdate(metadata.table_uuid or ""),
        *(SetSnapshotRefUpdate("new", tag(each.snapshot_id)) for each in metadata.snapshots),
    ):
        apply(metadata, update, timestamp_ms=NOW_MS)
        assert metadata == before
