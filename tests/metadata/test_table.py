"""Table metadata as a value: lookups, creation, time travel, and what expires."""

import pickle

import pytest
from hypothesis import given, strategies as st

from icefloe.errors import (
    InvalidInputError,
    InvalidLocationError,
    InvalidMetadataError,
    InvalidPropertyError,
    NoSuchObjectError,
    NoSuchSnapshotError,
    UnsupportedVersionError,
)
from icefloe.metadata import (
    MAIN_BRANCH,
    Snapshot,
    SnapshotLogEntry,
    SnapshotRef,
    SnapshotRefType,
    TableMetadata,
    branch,
    expired_refs,
    expired_snapshots,
    new_table_metadata,
    retention_defaults,
    unreferenced_snapshots,
)
from icefloe.metadata.codec import metadata_from_json, metadata_to_json
from icefloe.metadata.refs import tag
from icefloe.metadata.retention import RetentionDefaults
from icefloe.partitioning import parse_partition_spec, parse_sort_order
from icefloe.schema import Schema, types
from icefloe.versions import ALL_VERSIONS, DEFAULT_VERSION, Feature, allows
from tests.metadata.tables import CREATED_MS, SCHEMA, UUID, new_table, next_snapshot
from tests.strategies import new_tables, table_metadata

versions = pytest.mark.parametrize("version", ALL_VERSIONS)


def chain(*times_ms: int, parents: dict[int, int | None] | None = None) -> TableMetadata:
    """A table with snapshots 1, 2, ... of these times, each the parent of the next unless told otherwise."""
    metadata = new_table(2)
    snapshots = []
    for number, time_ms in enumerate(times_ms, start=1):
        parent = (parents or {}).get(number, number - 1 or None)
        snapshots.append(next_snapshot(metadata, number, parent, timestamp_ms=time_ms))
    return metadata.evolve(
        snapshots=tuple(snapshots),
        current_snapshot_id=len(times_ms),
        refs={MAIN_BRANCH: branch(len(times_ms))},
        snapshot_log=tuple(SnapshotLogEntry(each.snapshot_id, each.timestamp_ms) for each in snapshots),
    )


@versions
def test_paths_are_resolved_where_they_may_be_relative(version: int) -> None:
    metadata = new_table(version)
    assert metadata.resolve("s3://b/elsewhere") == "s3://b/elsewhere"
    if not allows(version, Feature.RELATIVE_PATHS):
        assert metadata.relative_to is None
        assert metadata.resolve("metadata/a.avro") == "metadata/a.avro"
        return
    assert metadata.relative_to == metadata.location
    assert metadata.resolve("metadata/a.avro") == f"{metadata.location}/metadata/a.avro"
    nowhere = metadata.evolve(location=None)
    assert nowhere.resolve("s3://b/elsewhere") == "s3://b/elsewhere"
    with pytest.raises(InvalidLocationError, match="no table location"):
        nowhere.resolve("metadata/a.avro")


@versions
def test_lost_columns_are_looked_for_in_newer_schemas_first(version: int) -> None:
    old, newer = (
        Schema(types.NestedField(1, "a", kind, False), schema_id=number)
        for number, kind in enumerate((types.IntegerType(), types.LongType()))
    )
    current = Schema(types.NestedField(2, "b", types.StringType(), False), schema_id=2)
    base = new_table_metadata(
        old,
        parse_partition_spec(["a"], old),
        location="s3://b/t",
        format_version=version,
        uuid=UUID,
        timestamp_ms=CREATED_MS,
    )
    assert base.schemas_newest_first == base.schemas
    metadata = base.evolve(schemas=(newer, current, old), current_schema_id=2)
    assert metadata.schemas_newest_first == (current, newer, old)
    assert [each.field_type for each in metadata.partition_type(0).fields] == [types.LongType()]
    with pytest.raises(NoSuchObjectError, match="no partition spec with id 9"):
        metadata.partition_type(9)


# --- creation --------------------------------------------------------------------------------------------------------


@versions
def test_ids_of_a_new_table_are_fresh(version: int) -> None:
    schema = Schema(
        types.NestedField(70, "list", types.ListType(80, types.StringType()), False),
        types.NestedField(60, "who", types.StructType(types.NestedField(50, "id", types.LongType(), True)), True),
        types.NestedField(40, "key", types.LongType(), True),
        schema_id=5,
        identifier_field_ids=[50, 40],
    )
    metadata = new_table_metadata(
        schema,
        parse_partition_spec(["bucket(8, who.id)", "key"], schema, spec_id=9),
        parse_sort_order(["key", "who.id desc"], schema, order_id=9),
        "s3://bucket/table/",
        {"a": "b"},
        version,
        uuid=UUID,
        timestamp_ms=CREATED_MS,
    )
    fresh = metadata.schema()
    assert (fresh.schema_id, metadata.last_column_id) == (0, 5)
    assert {name: field_id for field_id, name in fresh.names_by_id.items()} == {
        "list": 1,
        "who": 2,
        "key": 3,
        "list.element": 4,
        "who.id": 5,
    }
    assert fresh.identifier_field_names == ("key", "who.id")
    assert [(each.source_id, each.field_id) for each in metadata.spec().fields] == [(5, 1000), (3, 1001)]
    assert (metadata.default_spec_id, metadata.last_partition_id) == (0, 1001)
    assert [each.source_id for each in metadata.sort_order().fields] == [3, 5]
    assert metadata.default_sort_order_id == 1
    assert (metadata.location, metadata.properties) == ("s3://bucket/table", {"a": "b"})
    assert (metadata.table_uuid, metadata.last_updated_ms, metadata.format_version) == (UUID, CREATED_MS, version)
    assert metadata.current_snapshot() is None
    assert (metadata.last_sequence_number, metadata.next_row_id) == (0, 0)


def test_the_defaults_of_a_new_table() -> None:
    metadata = new_table_metadata(SCHEMA, location="s3://b/t", uuid=UUID, timestamp_ms=1)
    assert metadata.format_version == DEFAULT_VERSION
    assert metadata.last_partition_id == 999
    assert metadata.spec().is_unpartitioned
    assert metadata.default_sort_order_id == 0


@versions
def test_what_a_new_table_may_not_have(version: int) -> None:
    def create(schema: Schema = SCHEMA, location: str | None = "s3://b/t", **properties: str) -> TableMetadata:
        settings = {key.replace("__", ".").replace("_", "-"): value for key, value in properties.items()}
        return new_table_metadata(
            schema, location=location, properties=settings, format_version=version, uuid=UUID, timestamp_ms=1
        )

    with pytest.raises(InvalidPropertyError, match="format-version"):
        create(format_version="2")
    with pytest.raises(InvalidPropertyError, match=r"commit\.retry\.num-retries"):
        create(commit__retry__num_retries="-1")
    if allows(version, Feature.ENCRYPTION_KEYS):
        assert create(encryption__key_id="k").properties == {"encryption.key-id": "k"}
    else:
        with pytest.raises(UnsupportedVersionError, match=r"encryption\.key-id"):
            create(encryption__key_id="k")
    if not allows(version, Feature.VARIANT):
        with pytest.raises(UnsupportedVersionError, match="variant"):
            create(Schema(types.NestedField(1, "v", types.VariantType())))
    if allows(version, Feature.OPTIONAL_LOCATION):
        assert create(location=None).location is None
        with pytest.raises(InvalidLocationError, match="scheme"):
            create(location="relative/path")
    else:
        assert create(location="/local/path").location == "/local/path"
        with pytest.raises(InvalidLocationError, match="location"):
            create(location=None)


@pytest.mark.parametrize("version", [0, 5, -1, True, "2", None])
def test_versions_that_do_not_exist(version: object) -> None:
    with pytest.raises(UnsupportedVersionError, match="not supported"):
        new_table_metadata(SCHEMA, location="s3://b/t", format_version=version, uuid=UUID, timestamp_ms=1)  # type: ignore[arg-type]  # the point


@versions
@given(data=st.data())
def test_a_new_table_is_a_good_table(version: int, data: st.DataObject) -> None:
    metadata = data.draw(new_tables(version))
    assert metadata_from_json(metadata_to_json(metadata)) == metadata
    assert sorted(metadata.schema().fields_by_id) == list(range(1, metadata.last_column_id + 1))


# --- lookups ---------------------------------------------------------------------------------------------------------


@versions
@given(data=st.data())
def test_lookups(version: int, data: st.DataObject) -> None:
    metadata = data.draw(table_metadata(version))
    for schema in metadata.schemas:
        assert metadata.schema(schema.schema_id) is schema
    for snapshot in metadata.snapshots:
        assert metadata.snapshot_by_id(snapshot.snapshot_id) is snapshot
    for name, ref in metadata.refs.items():
        found = metadata.snapshot_by_name(name)
        assert found is not None
        assert found.snapshot_id == ref.snapshot_id
        assert metadata.snapshot_of_ref(name) is found
    copied = pickle.loads(pickle.dumps(metadata))
    assert copied == metadata
    assert "snapshots_by_id" not in copied.__dict__
    assert hash(metadata) == hash(copied)


def test_what_is_not_there() -> None:
    metadata = chain(10)
    for lookup in (metadata.schema, metadata.spec, metadata.sort_order):
        with pytest.raises(NoSuchObjectError, match="77"):
            lookup(77)
    with pytest.raises(NoSuchSnapshotError, match="77"):
        metadata.snapshot(77)
    assert metadata.snapshot_by_id(77) is None
    assert metadata.snapshot_by_name("b") is None
    with pytest.raises(NoSuchSnapshotError, match=r"'b'.*main"):
        metadata.snapshot_of_ref("b")
    assert new_table(2).snapshot_of_ref() is None
    assert new_table(2).snapshot_of_ref(MAIN_BRANCH) is None


def test_the_next_sequence_number() -> None:
    assert [new_table(version).next_sequence_number for version in ALL_VERSIONS] == [0, 1, 1, 1]


def test_ancestors() -> None:
    metadata = chain(10, 20, 30, 40, parents={3: 1, 4: 3})
    assert [each.snapshot_id for each in metadata.ancestors(4)] == [4, 3, 1]
    assert [each.snapshot_id for each in metadata.ancestors(2)] == [2, 1]
    assert list(metadata.ancestors(77)) == []
    assert metadata.is_ancestor(1, 4)
    assert metadata.is_ancestor(4, 4)
    assert not metadata.is_ancestor(2, 4)
    expired = metadata.evolve(snapshots=metadata.snapshots[1:])
    assert [each.snapshot_id for each in expired.ancestors(4)] == [4, 3]
    ring = chain(10, 20, parents={1: 2})
    assert [each.snapshot_id for each in ring.ancestors(2)] == [2, 1]


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 20)), max_size=8), st.integers(-1, 22))
def test_time_travel_does_not_need_a_sorted_log(log: list[tuple[int, int]], timestamp_ms: int) -> None:
    metadata = chain(1, 2, 3, 4).evolve(snapshot_log=tuple(SnapshotLogEntry(*entry) for entry in log))
    past = [(time_ms, position, number) for position, (number, time_ms) in enumerate(log) if time_ms <= timestamp_ms]
    if past:
        assert metadata.snapshot_as_of(timestamp_ms).snapshot_id == max(past)[2]
    else:
        with pytest.raises(NoSuchSnapshotError, match=str(timestamp_ms)):
            metadata.snapshot_as_of(timestamp_ms)


def test_time_travel_to_what_has_expired() -> None:
    metadata = chain(10, 20)
    with pytest.raises(NoSuchSnapshotError, match="no snapshot 1"):
        metadata.evolve(snapshots=metadata.snapshots[1:]).snapshot_as_of(15)


# --- values ----------------------------------------------------------------------------------------------------------


def test_a_snapshot_has_manifests_in_one_way() -> None:
    with pytest.raises(InvalidMetadataError, match="neither"):
        Snapshot(1, 1)
    with pytest.raises(InvalidMetadataError, match="both"):
        Snapshot(1, 1, "s3://a/l.avro", manifests=())


@pytest.mark.parametrize(
    "arguments",
    [
        (SnapshotRefType.BRANCH, 0),
        (SnapshotRefType.BRANCH, None, 0),
        (SnapshotRefType.BRANCH, None, None, -1),
        (SnapshotRefType.TAG, 1),
        (SnapshotRefType.TAG, None, 1),
        (SnapshotRefType.TAG, None, None, 0),
    ],
)
def test_retention_that_means_nothing(arguments: tuple[SnapshotRefType, int | None]) -> None:
    with pytest.raises(InvalidMetadataError, match=r"positive|only branches"):
        SnapshotRef(1, *arguments)


# --- retention -------------------------------------------------------------------------------------------------------

RULES = RetentionDefaults(max_snapshot_age_ms=100, min_snapshots_to_keep=1, max_ref_age_ms=1000)


def test_old_snapshots_expire() -> None:
    metadata = chain(0, 50, 100, 150)
    assert expired_snapshots(metadata, 150, RULES) == (1,)
    assert expired_snapshots(metadata, 151, RULES) == (1, 2)
    assert expired_snapshots(metadata, 10_000, RULES) == (1, 2, 3)
    kept = SnapshotRef(4, SnapshotRefType.BRANCH, min_snapshots_to_keep=3)
    assert expired_snapshots(metadata.evolve(refs={MAIN_BRANCH: kept}), 10_000, RULES) == (1,)
    young = SnapshotRef(4, SnapshotRefType.BRANCH, max_snapshot_age_ms=9_900)
    assert expired_snapshots(metadata.evolve(refs={MAIN_BRANCH: young}), 10_000, RULES) == (1, 2)


def test_the_walk_stops_at_the_first_that_expires() -> None:
    """Clocks differ: an ancestor may be younger than its child, and expires with it all the same (spec: step 4)."""
    metadata = chain(900, 0, 1000)
    assert expired_snapshots(metadata, 1000, RULES) == (1, 2)


def test_refs_keep_snapshots_until_they_expire() -> None:
    metadata = chain(0, 50, 100, 150)
    metadata = metadata.evolve(
        refs={
            **metadata.refs,
            "t": tag(1),
            "b": SnapshotRef(2, SnapshotRefType.BRANCH, max_ref_age_ms=10_000),
        }
    )
    assert expired_refs(metadata, 1000, RULES) == ()
    assert expired_snapshots(metadata, 1000, RULES) == (3,)
    assert expired_refs(metadata, 1001, RULES) == ("t",)
    assert expired_snapshots(metadata, 1001, RULES) == (1, 3)
    assert expired_refs(metadata, 10_051, RULES) == ("t", "b")
    assert expired_snapshots(metadata, 10_051, RULES) == (1, 2, 3)


def test_main_never_expires() -> None:
    main = SnapshotRef(1, SnapshotRefType.BRANCH, max_ref_age_ms=1)
    metadata = chain(0).evolve(refs={MAIN_BRANCH: main})
    assert expired_refs(metadata, 10**15) == ()
    assert expired_snapshots(metadata, 10**15) == ()


def test_snapshots_without_a_ref() -> None:
    metadata = chain(0, 50, 100, parents={3: 1})
    assert unreferenced_snapshots(metadata, 100, RULES) == {2}
    assert expired_snapshots(metadata, 100, RULES) == (2,)
    assert unreferenced_snapshots(metadata.evolve(refs={"a": tag(2), "b": branch(2)}), 100, RULES) == {3}
    assert unreferenced_snapshots(metadata.evolve(refs={"a": tag(2)}), 100, RULES) == {1, 3}
    expiring = metadata.evolve(refs={**metadata.refs, "a": tag(2), "b": branch(2)})
    assert unreferenced_snapshots(expiring, 1050, RULES) == set()
    assert unreferenced_snapshots(expiring, 1051, RULES) == {2}


def test_retention_is_a_property_of_the_table() -> None:
    assert retention_defaults({}) == RetentionDefaults(432_000_000, 1, 2**63 - 1)
    settings = {
        "history.expire.max-snapshot-age-ms": "5",
        "history.expire.min-snapshots-to-keep": "6",
        "history.expire.max-ref-age-ms": "7",
    }
    assert retention_defaults(settings) == RetentionDefaults(5, 6, 7)
    metadata = chain(0, 50).evolve(properties=settings)
    assert expired_snapshots(metadata, 10_000) == ()
    assert expired_snapshots(metadata.evolve(properties={}), 10**15) == (1,)
    with pytest.raises(InvalidInputError, match="min-snapshots-to-keep"):
        retention_defaults({"history.expire.min-snapshots-to-keep": "0"})


@given(st.data())
def test_what_is_retained(data: st.DataObject) -> None:
    metadata = data.draw(table_metadata(2))
    now_ms = data.draw(st.integers(0, 2**42))
    gone = set(expired_snapshots(metadata, now_ms, RULES))
    for name, ref in metadata.refs.items():
        if name not in expired_refs(metadata, now_ms, RULES):
            assert ref.snapshot_id not in gone
    assert unreferenced_snapshots(metadata, now_ms, RULES) <= gone
    assert MAIN_BRANCH not in expired_refs(metadata, now_ms, RULES)
