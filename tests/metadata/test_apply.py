"""Updates of a table as a whole: creation, upgrades, location, properties; and any sequence of legal updates."""

from copy import deepcopy
from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

from icefloe.errors import (
    IncompatibleChangeError,
    InvalidInputError,
    InvalidLocationError,
    InvalidMetadataError,
    InvalidPropertyError,
    NoSuchObjectError,
    UnsupportedVersionError,
)
from icefloe.metadata import (
    MAIN_BRANCH,
    PartitionStatisticsFile,
    Snapshot,
    StatisticsFile,
    TableMetadata,
    apply_all,
    branch,
    updates as up,
)
from icefloe.metadata.apply import apply
from icefloe.metadata.codec import metadata_from_json, metadata_to_json
from icefloe.metadata.refs import tag
from icefloe.metadata.snapshot import MetadataLogEntry
from icefloe.partitioning import UNSORTED, parse_sort_order
from icefloe.schema import NestedField, Schema
from icefloe.schema.types import LongType
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.metadata.tables import BY_DAY, CREATED_MS, NOW_MS, SCHEMA, UUID, append, commit, new_table, next_snapshot
from tests.strategies import new_tables, partition_specs, schemas, sort_orders, table_metadata

versions = pytest.mark.parametrize("version", ALL_VERSIONS)


@versions
def test_a_table_is_created_by_updates(version: int) -> None:
    base = new_table(version, BY_DAY, parse_sort_order(["id desc"], SCHEMA))
    created = apply_all(
        None,
        [
            up.AssignUUIDUpdate(UUID),
            up.UpgradeFormatVersionUpdate(version),
            up.AddSchemaUpdate(base.schema()),
            up.SetCurrentSchemaUpdate(up.LAST_ADDED),
            up.AddPartitionSpecUpdate(base.spec()),
            up.SetDefaultSpecUpdate(up.LAST_ADDED),
            up.AddSortOrderUpdate(base.sort_order()),
            up.SetDefaultSortOrderUpdate(up.LAST_ADDED),
            up.SetLocationUpdate("s3://bucket/db/table/"),
            up.SetPropertiesUpdate({"owner": "me"}),
        ],
        CREATED_MS,
    )
    assert created == base


@pytest.mark.parametrize("dropped", range(4))
def test_a_table_needs_all_its_parts(dropped: int) -> None:
    base = new_table(2)
    parts: list[list[up.TableUpdate]] = [
        [
            up.AddSchemaUpdate(base.schema()),
            up.SetCurrentSchemaUpdate(),
            up.AddPartitionSpecUpdate(base.spec()),
            up.SetDefaultSpecUpdate(),
        ],
        [up.AddSortOrderUpdate(UNSORTED), up.SetDefaultSortOrderUpdate()],
        [up.AssignUUIDUpdate(UUID)],
        [up.SetLocationUpdate("s3://b/t")],
    ]
    del parts[dropped]
    with pytest.raises(
        (InvalidMetadataError, NoSuchObjectError), match=r"schema|partition spec|sort order|UUID|location"
    ):
        apply_all(None, [each for part in parts for each in part], CREATED_MS)


@versions
def test_updates_that_change_nothing_give_the_same_object(version: int) -> None:
    metadata = append(new_table(version), 1)
    updates: list[up.TableUpdate] = [
        up.AssignUUIDUpdate(UUID.upper()),
        up.UpgradeFormatVersionUpdate(version),
        up.AddSchemaUpdate(metadata.schema()),
        up.SetCurrentSchemaUpdate(metadata.current_schema_id),
        up.AddPartitionSpecUpdate(metadata.spec()),
        up.SetDefaultSpecUpdate(),
        up.AddSortOrderUpdate(UNSORTED),
        up.SetDefaultSortOrderUpdate(0),
        up.SetLocationUpdate("s3://bucket/db/table"),
        up.SetPropertiesUpdate({"owner": "me"}),
        up.RemovePropertiesUpdate(("absent",)),
        up.SetSnapshotRefUpdate(MAIN_BRANCH, branch(1)),
        up.RemoveSnapshotRefUpdate("absent"),
        up.RemoveSnapshotsUpdate((99,)),
        up.RemoveStatisticsUpdate(99),
        up.RemovePartitionStatisticsUpdate(99),
        up.RemoveSchemasUpdate((99,)),
        up.RemovePartitionSpecsUpdate((99,)),
        up.RemoveEncryptionKeyUpdate("absent"),
    ]
    assert apply_all(metadata, updates, NOW_MS) is metadata
    for update in updates:
        if not isinstance(update, up.SetDefaultSpecUpdate):
            assert apply(metadata, update, timestamp_ms=NOW_MS) is metadata


@versions
def test_a_commit_sets_the_time(version: int) -> None:
    assert commit(new_table(version), up.SetPropertiesUpdate({"a": "b"})).last_updated_ms == NOW_MS


def test_the_uuid_never_changes() -> None:
    with pytest.raises(IncompatibleChangeError, match="UUID"):
        commit(new_table(2), up.AssignUUIDUpdate("other"))


def test_updates_of_views_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="SetCurrentViewVersionUpdate"):
        apply(new_table(2), up.SetCurrentViewVersionUpdate(), timestamp_ms=NOW_MS)  # type: ignore[arg-type]  # the point


@versions
@pytest.mark.parametrize("target", ALL_VERSIONS)
def test_upgrade(version: int, target: int) -> None:
    metadata = append(new_table(version), 1)
    if target < version:
        with pytest.raises(UnsupportedVersionError, match=f"v{version} table cannot go back to v{target}"):
            commit(metadata, up.UpgradeFormatVersionUpdate(target))
        return
    upgraded = commit(metadata, up.UpgradeFormatVersionUpdate(target))
    assert upgraded.format_version == target
    assert upgraded.snapshots == metadata.snapshots
    assert upgraded.next_row_id == metadata.next_row_id
    assert metadata_from_json(metadata_to_json(upgraded)) == upgraded
    assert append(upgraded, 2).current_snapshot_id == 2


def test_upgrade_to_what_does_not_exist() -> None:
    with pytest.raises(UnsupportedVersionError, match="5"):
        commit(new_table(2), up.UpgradeFormatVersionUpdate(5))


def test_upgrade_of_v1_needs_a_uuid() -> None:
    metadata = new_table(1).evolve(table_uuid=None)
    with pytest.raises(InvalidMetadataError, match="UUID"):
        commit(metadata, up.UpgradeFormatVersionUpdate(2))
    assert commit(metadata, up.UpgradeFormatVersionUpdate(2), up.AssignUUIDUpdate(UUID)).table_uuid == UUID


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
    new = commit(old, up.UpgradeFormatVersionUpdate(4))
    assert new.location == "hdfs://host:8020/db/t"
    assert new.snapshots[0].manifest_list == "hdfs://host:8020/db/t/metadata/snap.avro"
    assert new.snapshots[1].manifests == ("hdfs://host:8020/m.avro", "s3://b/n.avro")
    assert new.metadata_log[0].metadata_file == "hdfs://host:8020/db/t/metadata/v1.metadata.json"
    assert new.statistics[0].statistics_path == "hdfs://host:8020/db/t/s.puffin"
    assert new.partition_statistics[0].statistics_path == "hdfs://host:8020/db/t/p.parquet"
    with pytest.raises(InvalidLocationError, match="scheme"):
        commit(old.evolve(location="/db/t"), up.UpgradeFormatVersionUpdate(4))


@versions
def test_locations(version: int) -> None:
    metadata = new_table(version)
    assert commit(metadata, up.SetLocationUpdate("s3://other/t/")).location == "s3://other/t"
    with pytest.raises(InvalidLocationError, match="location"):
        commit(metadata, up.SetLocationUpdate(""))
    if allows(version, Feature.OPTIONAL_LOCATION):
        with pytest.raises(InvalidLocationError, match="absolute"):
            commit(metadata, up.SetLocationUpdate("/other/t"))
    else:
        assert commit(metadata, up.SetLocationUpdate("/other/t")).location == "/other/t"


def test_properties() -> None:
    metadata = commit(new_table(2), up.SetPropertiesUpdate({"a": "1", "owner": "you"}))
    assert metadata.properties == {"owner": "you", "a": "1"}
    assert commit(metadata, up.RemovePropertiesUpdate(("owner",))).properties == {"a": "1"}


@pytest.mark.parametrize("key", ["format-version", "uuid", "current-schema", "snapshot-count"])
def test_reserved_properties_are_refused(key: str) -> None:
    with pytest.raises(InvalidPropertyError, match=key):
        commit(new_table(2), up.SetPropertiesUpdate({key: "1"}))


@st.composite
def legal_updates(draw: st.DrawFn, metadata: TableMetadata) -> tuple[up.TableUpdate, ...]:
    """The updates of one commit that the table must accept."""
    version = metadata.format_version
    ids = [each.snapshot_id for each in metadata.snapshots]
    kinds = ["properties", "schema", "spec", "order", "append", "upgrade", "removal"]
    kinds += ["ref", "rollback", "expire", "statistics"] if ids else []
    match draw(st.sampled_from(kinds)):
        case "properties":
            key = draw(st.sampled_from(("a", "b", "owner")))
            return (
                (up.SetPropertiesUpdate({key: "x"}),) if draw(st.booleans()) else (up.RemovePropertiesUpdate((key,)),)
            )
        case "schema":
            extra = NestedField(metadata.last_column_id + 1, f"c{metadata.last_column_id + 1}", LongType())
            return up.AddSchemaUpdate(Schema(*metadata.schema().fields, extra)), up.SetCurrentSchemaUpdate()
        case "spec":
            first = metadata.last_partition_id + 1 if allows(version, Feature.PARTITION_FIELD_IDS) else 1000
            return up.AddPartitionSpecUpdate(
                draw(partition_specs(metadata.schema(), first_id=first))
            ), up.SetDefaultSpecUpdate()
        case "order":
            return up.AddSortOrderUpdate(draw(sort_orders(metadata.schema()))), up.SetDefaultSortOrderUpdate()
        case "append":
            snapshot = _fresh_snapshot(draw, metadata)
            name = draw(st.sampled_from((MAIN_BRANCH, "b")))
            return up.AddSnapshotUpdate(snapshot), up.SetSnapshotRefUpdate(name, branch(snapshot.snapshot_id))
        case "upgrade":
            return (up.UpgradeFormatVersionUpdate(draw(st.integers(version, ALL_VERSIONS[-1]))),)
        case "removal":
            schemas_left = [each.schema_id for each in metadata.schemas if each.schema_id != metadata.current_schema_id]
            specs_left = [each.spec_id for each in metadata.partition_specs if each.spec_id != metadata.default_spec_id]
            return up.RemoveSchemasUpdate(tuple(schemas_left)), up.RemovePartitionSpecsUpdate(tuple(specs_left))
        case "ref":
            return (up.SetSnapshotRefUpdate("t", tag(draw(st.sampled_from(ids)))),)
        case "rollback":
            return (up.SetSnapshotRefUpdate(MAIN_BRANCH, branch(draw(st.sampled_from(ids)))),)
        case "expire":
            return (up.RemoveSnapshotsUpdate(tuple(draw(st.lists(st.sampled_from(ids), max_size=2)))),)
        case _:
            return (up.SetStatisticsUpdate(StatisticsFile(draw(st.sampled_from(ids)), "s3://a/x.puffin", 1, 1)),)


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
        up.AddSchemaUpdate(schema),
        up.SetPropertiesUpdate({"x": "y"}),
        up.RemovePropertiesUpdate(tuple(metadata.properties)),
        up.RemoveSnapshotsUpdate(tuple(metadata.snapshots_by_id)),
        up.RemoveSnapshotRefUpdate(MAIN_BRANCH),
        up.AddSnapshotUpdate(next_snapshot(metadata, 2**62))
        if 2**62 not in metadata.snapshots_by_id
        else up.AssignUUIDUpdate(metadata.table_uuid or ""),
        *(up.SetSnapshotRefUpdate("new", tag(each.snapshot_id)) for each in metadata.snapshots),
    ):
        apply(metadata, update, timestamp_ms=NOW_MS)
        assert metadata == before
