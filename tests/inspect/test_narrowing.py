"""Metadata tables at the edges: which snapshots, what is not read at all, odd specs and schemas, and errors."""

import datetime as dt
import threading
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from icefloe.errors import (
    CorruptFileError,
    InvalidInputError,
    InvalidPartitionSpecError,
    NoSuchColumnError,
    NoSuchSnapshotError,
    StorageError,
)
from icefloe.inspect import TABLE_NAMES, Inspect
from icefloe.inspect.schemas import table_partition_type
from icefloe.metadata import Snapshot, apply_all, branch, updates as up
from icefloe.metadata.refs import tag
from icefloe.partitioning import PartitionField, PartitionSpec, parse_partition_spec, transforms as tr
from icefloe.schema import NestedField, Schema
from icefloe.schema.types import IntegerType, LongType, StringType
from icefloe.storage import Storage
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.planning.tables import SyntheticTable

ID = NestedField(1, "id", LongType(), required=True)
NAME = NestedField(2, "name", StringType())
SCHEMA = Schema(ID, NAME)
BY_ID = parse_partition_spec("id", SCHEMA)
WITH_DELETES = [version for version in ALL_VERSIONS if allows(version, Feature.DELETE_FILES)]
STATIC = ("history", "metadata_log_entries", "snapshots", "refs")


class CountingStorage(Storage):
    """Remembers what is read, and what is being read at the same time."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []
        self._lock = threading.Lock()

    def read(self, location: str) -> bytes:
        with self._lock:
            self.seen.append(location)
        return super().read(location)

    def manifests(self) -> int:
        return sum(place.endswith("-m0.avro") for place in self.seen)


def row(number: int, name: str | None = None) -> dict[int, Any]:
    return {1: number, 2: name}


def inspect(table: SyntheticTable, storage: Storage | None = None) -> Inspect:
    return Inspect(table.metadata, storage or table.storage, f"{table.location}/metadata/v9.metadata.json")


def made(version: int, count: int = 4, spec: PartitionSpec = BY_ID) -> SyntheticTable:
    """A table of one file, manifest and snapshot for each number."""
    table = SyntheticTable(SCHEMA, version, spec)
    for number in range(count):
        table.add(table.data([row(number, f"n{number}")] * (number + 1)))
    return table


# -- snapshots


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_a_snapshot_is_chosen_by_id_ref_or_time(version: int) -> None:
    table = made(version)
    ids = [snapshot.snapshot_id for snapshot in table.metadata.snapshots]
    refs = [up.SetSnapshotRefUpdate("old", tag(ids[0])), up.SetSnapshotRefUpdate("side", branch(ids[1]))]
    table.metadata = apply_all(table.metadata, refs, table.clock)
    shown = inspect(table)
    moment = table.metadata.snapshots[2].timestamp_ms
    for name in ("files", "data_files", "entries", "manifests", "partitions"):
        read = getattr(shown, name)
        assert read().num_rows == 4, name
        assert read(ids[1]).num_rows == 2, name
        assert read(ref="old").num_rows == 1, name
        assert read(ref="side").num_rows == 2, name
        assert read(as_of=moment).num_rows == 3, name
        assert read(as_of=dt.datetime.fromtimestamp(moment / 1000, dt.UTC)).num_rows == 3, name
        assert shown.scan(name, ids[2]).to_arrow().num_rows == 3, name
    assert shown.delete_files(ids[1]).num_rows == 0
    assert shown.position_deletes(ids[1]).num_rows == 0
    assert shown.all_files().num_rows == 4
    assert shown.all_manifests().num_rows == 1 + 2 + 3 + 4
    assert sorted(shown.refs().column("type").to_pylist()) == ["BRANCH", "BRANCH", "TAG"]


def test_only_tables_of_one_snapshot_travel() -> None:
    shown = inspect(made(2, 1))
    for name in TABLE_NAMES:
        if name in STATIC or name.startswith("all_"):
            with pytest.raises(InvalidInputError, match="not of one snapshot"):
                shown.scan(name, ref="main")
    with pytest.raises(NoSuchSnapshotError, match="no snapshot 5"):
        shown.files(5)
    with pytest.raises(NoSuchSnapshotError, match="gone"):
        shown.partitions(ref="gone")
    with pytest.raises(InvalidInputError, match="one snapshot"):
        shown.files(5, ref="main")


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_a_table_without_a_snapshot_is_empty(version: int) -> None:
    shown = inspect(SyntheticTable(SCHEMA, version, BY_ID))
    for name in TABLE_NAMES:
        found = getattr(shown, name)()
        assert found.num_rows == (name == "metadata_log_entries"), name
        assert found.schema == shown.scan(name).to_arrow_batch_reader().schema
    table = SyntheticTable(SCHEMA, version, BY_ID)
    table.add()
    for name in TABLE_NAMES:
        found = getattr(inspect(table), name)()
        assert found.num_rows == (name in STATIC), name


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_snapshots_that_are_gone_leave_nulls(version: int) -> None:
    table = made(version, 2)
    first = table.metadata.snapshots[0].snapshot_id
    table.metadata = apply_all(table.metadata, [up.RemoveSnapshotsUpdate((first,))], table.clock)
    rows = inspect(table).partitions().to_pylist()
    assert [(each["partition"], each["spec_id"], each["last_updated_at"] is None) for each in rows] == [
        ({"id": 1}, 0, False),
        ({"id": 0}, 0, True),
    ]
    assert inspect(table).all_files().num_rows == 2
    assert inspect(table).history().column("is_current_ancestor").to_pylist() == [True]


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_branches_that_are_no_ancestors_are_told_apart(version: int) -> None:
    table = made(version, 3)
    second = table.metadata.snapshots[1].snapshot_id
    back = [up.SetSnapshotRefUpdate("main", branch(second))]
    table.metadata = apply_all(table.metadata, back, table.clock + 1)
    found = inspect(table).history().to_pylist()
    assert [each["is_current_ancestor"] for each in found] == [True, True, False, True]
    assert [each["snapshot_id"] for each in found][-1] == second
    assert found[0]["made_current_at"] == dt.datetime.fromtimestamp(
        table.metadata.snapshot_log[0].timestamp_ms / 1000, dt.UTC
    )
    log = inspect(table).metadata_log_entries().to_pylist()
    assert log[-1]["latest_snapshot_id"] == second
    assert log[-1]["file"].endswith("v9.metadata.json")
    snapshots = inspect(table).snapshots(selected_fields=("operation", "parent_id")).to_pylist()
    assert [each["operation"] for each in snapshots] == ["append"] * 3
    assert snapshots[0]["parent_id"] is None


# -- what is not read


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_manifests_that_cannot_match_are_not_read(version: int) -> None:
    table = made(version)
    for read, text, rows, manifests in (
        ("files", "partition.id = 2", 1, 1),
        ("files", "partition.id > 1 and record_count > 3", 1, 2),
        ("files", "partition.id is null", 0, 0),
        ("files", "content = 1", 0, 0),
        ("files", "spec_id = 0 and partition.id in (0, 3)", 2, 2),
        ("files", "not partition.id < 2", 2, 2),
        ("delete_files", "record_count > 0", 0, 0),
        ("entries", "data_file.partition.id = 2", 1, 1),
        ("entries", "data_file.content > 0", 0, 0),
        ("all_entries", "data_file.spec_id > 0", 0, 0),
        ("partitions", "partition.id >= 2 and file_count = 1", 2, 2),
        ("all_files", "partition.id = 1", 1, 1),
    ):
        storage = CountingStorage()
        found = getattr(inspect(table, storage), read)(row_filter=text)
        assert (found.num_rows, storage.manifests()) == (rows, manifests), (read, text)


def test_manifest_lists_that_cannot_match_are_not_read() -> None:
    table = made(2)
    storage = CountingStorage()
    wanted = table.metadata.snapshots[1].snapshot_id
    found = inspect(table, storage).all_manifests(row_filter=f"reference_snapshot_id = {wanted}")
    assert set(found.column("reference_snapshot_id").to_pylist()) == {wanted}
    assert found.num_rows == 2
    assert len(storage.seen) == 1
    assert inspect(table).all_manifests(row_filter="length < 0").num_rows == 0


def test_columns_can_be_parts_of_structs() -> None:
    table = made(3)
    names = ("file_path", "readable_metrics.name.lower_bound", "readable_metrics.id.value_count")
    found = inspect(table).files(selected_fields=names, row_filter="readable_metrics.id.upper_bound >= 2")
    assert sorted(each["readable_metrics"]["name"]["lower_bound"] for each in found.to_pylist()) == ["n2", "n3"]
    assert found.schema.field("readable_metrics").type == pa.struct(
        {"id": pa.struct({"value_count": pa.int64()}), "name": pa.struct({"lower_bound": pa.string()})}
    )
    entries = inspect(table).entries(selected_fields=("data_file.record_count", "status"))
    assert sorted(entries.to_pylist(), key=lambda each: each["data_file"]["record_count"]) == [
        {"status": 1, "data_file": {"record_count": number}} for number in (1, 2, 3, 4)
    ]
    partitions = inspect(table).partitions(None, "RECORD_COUNT > 3", False, selected_fields=("partition.id",))
    assert partitions.to_pylist() == [{"partition": {"id": 3}}]
    manifests = inspect(table).manifests(selected_fields=("added_data_files_count",))
    assert manifests.to_pylist() == [{"added_data_files_count": 1}] * 4


def test_streams_read_little_ahead() -> None:
    table = made(2, 20)
    storage = CountingStorage()
    stream = inspect(table, storage).scan("files", options={"planning.workers": "2"}).to_arrow_batch_reader()
    assert storage.seen == []
    assert stream.read_next_batch().num_rows == 1
    assert storage.manifests() <= 2 * 2 + 2
    assert sum(batch.num_rows for batch in stream) == 19
    for name in TABLE_NAMES:
        shown = inspect(table)
        assert shown.scan(name).to_arrow_batch_reader().read_all() == getattr(shown, name)(), name


# -- specs and schemas


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_the_partition_column_is_of_all_specs(version: int) -> None:
    table = made(version, 2)
    later = parse_partition_spec("bucket(4, name)", SCHEMA)
    if allows(version, Feature.PARTITION_FIELD_IDS):
        table.evolve_spec(later)
    else:
        gone = PartitionField(1, 1000, tr.VoidTransform(), "id_gone")
        table.evolve_spec(PartitionSpec(gone, PartitionField(2, 1001, later.fields[0].transform, "name_bucket")))
    table.add(table.data([row(7, "x")]))
    rows = inspect(table).files().to_pylist()
    newest = "id" if allows(version, Feature.PARTITION_FIELD_IDS) else "id_gone"
    bucket = table.partition_of(row(7, "x"))[-1]
    assert [each["partition"] for each in rows] == [
        {newest: number, "name_bucket": found} for number, found in ((None, bucket), (1, None), (0, None))
    ]
    assert [each["spec_id"] for each in rows] == [1, 0, 0]
    assert sorted(inspect(table).partitions().column("spec_id").to_pylist()) == [0, 0, 1]
    found = inspect(table).files(row_filter="partition.name_bucket is not null")
    assert found.num_rows == 1


@pytest.mark.parametrize("version", WITH_DELETES)
def test_a_missing_field_is_another_partition_than_a_null_one(version: int) -> None:
    table = SyntheticTable(SCHEMA, version)
    table.add(table.data([row(1)]))
    table.evolve_spec(parse_partition_spec("name", SCHEMA))
    table.add(table.data([row(2)]), table.data([row(3)]))
    found = inspect(table).partitions().to_pylist()
    assert [(each["partition"], each["spec_id"], each["file_count"]) for each in found] == [
        ({"name": None}, 1, 2),
        ({"name": None}, 0, 1),
    ]


@pytest.mark.parametrize("version", WITH_DELETES)
def test_fields_of_dropped_columns_are_left_out(version: int) -> None:
    both = parse_partition_spec(["id", "name"], SCHEMA)
    table = SyntheticTable(SCHEMA, version, both)
    table.add(table.data([row(1, "a")]), table.data([row(1, "b")]))
    table.evolve_spec(parse_partition_spec("id", SCHEMA))
    table.evolve_schema(Schema(ID))
    shown = inspect(table)
    assert [field.name for field in table_partition_type(table.metadata).fields] == ["id"]
    assert shown.files().column("partition").to_pylist() == [{"id": 1}] * 2
    assert shown.partitions().column("file_count").to_pylist() == [2]
    assert shown.manifests().num_rows == 1
    assert shown.files(row_filter="partition.id = 1").num_rows == 2
    assert shown.files(row_filter="partition.id = 2").num_rows == 0
    assert "name" not in shown.files().schema.field("readable_metrics").type.names


@pytest.mark.parametrize("version", WITH_DELETES)
def test_two_fields_of_one_name_are_both_there(version: int) -> None:
    table = made(version, 1, PartitionSpec(PartitionField(1, 1000, tr.IdentityTransform(), "p")))
    table.evolve_spec(PartitionSpec(PartitionField(2, 1001, tr.IdentityTransform(), "p")))
    assert [field.name for field in table_partition_type(table.metadata).fields] == ["p_1000", "p"]
    table.add(table.data([row(5, "five")]))
    assert inspect(table).files().column("partition").to_pylist() == [
        {"p_1000": None, "p": "five"},
        {"p_1000": 0, "p": None},
    ]


@pytest.mark.parametrize("version", WITH_DELETES)
def test_partition_values_of_unknown_transforms_are_shown(version: int) -> None:
    spec = PartitionSpec(PartitionField(1, 1000, tr.UnknownTransform("zorder"), "z"))
    table = SyntheticTable(SCHEMA, version, spec)
    file = replace(made(version, 0).data([]), file_path=table.path(), partition=("7",))
    table.add(file)
    assert inspect(table).files().column("partition").to_pylist() == [{"z": "7"}]


def test_v1_fields_that_share_an_id_have_no_partition_type() -> None:
    table = made(1, 1)
    table.evolve_spec(parse_partition_spec("name", SCHEMA))
    with pytest.raises(InvalidPartitionSpecError, match="one id"):
        inspect(table).files()
    assert inspect(table).manifests().num_rows == 1


def test_v1_manifests_without_counts_are_counted() -> None:
    table = made(1, 2)
    listed = table.metadata.snapshots[-1]
    places = tuple(each.manifest_path for each in table.manifests)
    inline = Snapshot(
        listed.snapshot_id, listed.timestamp_ms, None, listed.summary, listed.parent_snapshot_id, manifests=places
    )
    table.metadata = replace(table.metadata, snapshots=(table.metadata.snapshots[0], inline))
    found = inspect(table).manifests().to_pylist()
    assert [each["added_data_files_count"] for each in found] == [1, 1]
    assert [each["partition_summaries"] for each in found] == [[], []]
    every = inspect(table).all_manifests(row_filter="partition_summaries is null").to_pylist()
    assert [each["reference_snapshot_id"] for each in every] == [listed.snapshot_id] * 2
    assert inspect(table).files().num_rows == 2
    assert inspect(table).snapshots().column("manifest_list").to_pylist()[-1] is None


# -- errors


def test_questions_that_make_no_sense_are_refused() -> None:
    shown = inspect(made(2, 1))
    with pytest.raises(InvalidInputError, match="no metadata table 'file'"):
        shown.scan("file")
    with pytest.raises(NoSuchColumnError, match="sizes"):
        shown.files(selected_fields=("sizes",))
    with pytest.raises(NoSuchColumnError, match="sizes"):
        shown.files(row_filter="sizes > 3")
    with pytest.raises(InvalidInputError, match="tuple of names"):
        shown.files(selected_fields="file_path")
    with pytest.raises(NoSuchColumnError):
        shown.files(row_filter="File_Path is null")
    assert shown.files(row_filter="File_Path is null", case_sensitive=False).num_rows == 0


@pytest.mark.parametrize("name", ["files", "entries", "partitions", "all_files"])
def test_broken_manifests_are_named_with_their_snapshot(name: str) -> None:
    table = made(2, 2)
    newest = str(table.metadata.current_snapshot_id)
    place = table.manifests[0].manifest_path
    content = table.storage.read(place)
    table.storage.delete([place])
    table.storage.write(place, content[:-5])
    with pytest.raises(CorruptFileError, match=newest) as broken:
        getattr(inspect(table), name)()
    assert broken.value.location == place
    table.storage.delete([place])
    with pytest.raises(StorageError, match=newest) as missing:
        getattr(inspect(table), name)()
    assert missing.value.location == place


def test_types_of_partitions_follow_promotions() -> None:
    narrow = Schema(NestedField(1, "id", IntegerType(), required=True), NAME)
    table = SyntheticTable(narrow, 2, parse_partition_spec("id", narrow))
    table.add(table.data([row(1, "a")]))
    table.evolve_schema(SCHEMA)
    table.add(table.data([row(2**40, "b")]))
    found = inspect(table).files()
    assert found.schema.field("partition").type.field("id").type == pa.int64()
    assert sorted(each["id"] for each in found.column("partition").to_pylist()) == [1, 2**40]
    assert inspect(table).files(row_filter="partition.id = 1").num_rows == 1
    bounds = found.column("readable_metrics").to_pylist()
    assert sorted(each["id"]["lower_bound"] for each in bounds) == [1, 2**40]
