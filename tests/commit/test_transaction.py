"""Transactions: several changes, one commit, nothing visible before; and changes of schema, spec, order and properties."""

import pyarrow as pa
import pytest

from icefloe.commit import Caches, Expire, Isolation, Planned, StatisticsChange, Workbench
from icefloe.commit.vectors import load_vector
from icefloe.errors import (
    IcefloeError,
    IncompatibleChangeError,
    InvalidInputError,
    InvalidPropertyError,
    NoSuchSnapshotError,
    UnsupportedVersionError,
    ValidationError,
)
from icefloe.manifests import DataFile, ManifestContent
from icefloe.metadata import PartitionStatisticsFile, StatisticsFile, updates as up
from icefloe.schema import NestedField, Schema
from icefloe.schema.types import IntegerType, LongType, StringType
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.commit.tables import (
    BY_REGION,
    data_file,
    entries,
    equality_deletes,
    handle,
    live_paths,
    lose_race,
    manifests,
    new_table,
    stored,
)


@pytest.mark.parametrize("version", ALL_VERSIONS)
@pytest.mark.parametrize("races", [0, 1, 2])
def test_many_changes_are_one_commit(version: int, races: int) -> None:
    table, committer = new_table(version)
    observer = handle(committer)
    committer.fault = lose_race(races)
    with table.transaction() as tx:
        tx.set_properties(owner="me")
        with tx.update_schema() as update:
            update.add_column("note", StringType())
        tx.update_snapshot().fast_append([data_file("memory://d/a", 10), data_file("memory://d/b", 5)])
        tx.update_snapshot().fast_append([data_file("memory://d/c", 3)])
        tx.update_snapshot().delete_files(["memory://d/b"], Planned.on(tx.table_metadata))
        tx.manage_snapshots().create_tag("done").commit()
        assert observer.refresh().metadata.snapshots == ()
        assert "note" not in observer.schema().ids_by_name
        assert table.metadata.snapshots == ()
    assert committer.swaps == 1
    assert live_paths(table) == ["memory://d/a", "memory://d/c"]
    assert len(table.snapshots()) == 3
    assert [each.snapshot_id for each in table.history()] == [table.snapshots()[2].snapshot_id]
    assert table.refs()["done"].snapshot_id == table.snapshots()[2].snapshot_id
    assert table.properties["owner"] == "me"
    assert "note" in table.schema().ids_by_name
    assert {each.schema_id for each in table.snapshots()} == {table.schema().schema_id}
    totals = [each.summary["total-records"] for each in table.snapshots() if each.summary is not None]
    assert totals == ["15", "18", "13"]
    if allows(version, Feature.SEQUENCE_NUMBERS):
        assert [each.sequence_number for each in table.snapshots()] == [1, 2, 3]
        found = {each.data_file.file_path: each.sequence_number for each in entries(table)}
        assert found == {"memory://d/a": 1, "memory://d/c": 2}
    if allows(version, Feature.ROW_LINEAGE):
        ids = {each.data_file.file_path: each.data_file.first_row_id for each in entries(table)}
        assert ids == {"memory://d/a": 0, "memory://d/c": 15}
    assert observer.refresh().metadata == table.metadata


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_a_retry_in_the_middle_of_others_keeps_all_numbers_right(version: int) -> None:
    table, committer = new_table(version)
    other = handle(committer)
    with table.transaction() as tx:
        tx.update_snapshot().fast_append([data_file("memory://d/a", 10), data_file("memory://d/b", 5)])
        planned = Planned.on(tx.table_metadata, isolation=Isolation.SNAPSHOT)
        tx.update_snapshot().delete_files(["memory://d/b"], planned)
        other.update_snapshot().fast_append([data_file("memory://d/other", 7)])
        tx.commit_transaction()
    assert live_paths(table) == ["memory://d/a", "memory://d/other"]
    found = {each.data_file.file_path: each for each in entries(table)}
    if allows(version, Feature.SEQUENCE_NUMBERS):
        assert (found["memory://d/other"].sequence_number, found["memory://d/a"].sequence_number) == (1, 2)
    if allows(version, Feature.ROW_LINEAGE):
        assert found["memory://d/other"].data_file.first_row_id == 0
        assert found["memory://d/a"].data_file.first_row_id == 7
    assert len(table.history()) == 2


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_a_transaction_that_fails_leaves_nothing(version: int) -> None:
    table, committer = new_table(version)

    def work() -> None:
        with table.transaction() as tx:
            tx.update_snapshot().fast_append([data_file()])
            assert tx.table_metadata.current_snapshot() is not None
            assert len(stored(table)) == 2
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work()
    assert stored(table) == set()
    assert committer.swaps == 0
    with table.transaction() as tx:
        pass
    assert committer.swaps == 0
    with pytest.raises(InvalidInputError, match="has ended"):
        tx.set_properties(a="b")


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_the_schema_changes_unless_another_changed_it(version: int) -> None:
    table, committer = new_table(version)
    other = handle(committer)
    with table.update_schema() as update:
        update.add_column("a", StringType())
    with pytest.raises(ValidationError, match="schema was changed"), other.update_schema() as update:
        update.add_column("b", StringType())
    assert "b" not in table.refresh().schema().ids_by_name
    with other.refresh().update_schema() as update:
        update.add_column("b", StringType())
    # A commit of another kind in between is no conflict.
    with table.refresh().update_schema() as update:
        update.rename_column("b", "c")
        other.update_snapshot().fast_append([data_file()])
    assert table.schema().ids_by_name["c"] == table.metadata.last_column_id
    before = table.metadata
    with table.update_schema() as update:
        pass
    assert table.metadata is before


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_spec_and_sort_order_change(version: int) -> None:
    table, committer = new_table(version, BY_REGION)
    other = handle(committer)
    table.update_snapshot().fast_append([data_file("memory://d/old", region="eu")])
    with table.update_spec() as update:
        update.add_field("id", "bucket[4]", "shard")
    with pytest.raises(ValidationError, match="partition spec was changed"), other.update_spec() as update:
        update.add_field("price")
    with table.update_sort_order() as order:
        order.desc("id")
    assert [each.name for each in table.spec().fields] == ["region", "shard"]
    assert table.sort_order().fields[0].source_id == 1
    spec_id = table.spec().spec_id
    table.update_snapshot().fast_append([data_file("memory://d/new", spec_id=spec_id, partition=("eu", 3))])
    assert {each.partition_spec_id for each in manifests(table)} == {0, spec_id}
    with pytest.raises(InvalidInputError, match="not in a bucket"):
        table.update_snapshot().fast_append([data_file(spec_id=spec_id, partition=("eu", 4))])
    made = table.update_snapshot().delete("region = 'eu'")
    assert made is not None
    assert made.summary is not None
    assert made.summary["changed-partition-count"] == "2"
    assert live_paths(table) == []


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_properties(version: int) -> None:
    table, committer = new_table(version)
    other = handle(committer)
    table.set_properties({"a": "1", "b": "2"})
    other.set_properties({"c": "3"})
    assert dict(other.properties) == {"a": "1", "b": "2", "c": "3"}
    table.refresh().remove_properties("a", "nothing")
    assert dict(table.properties) == {"b": "2", "c": "3"}
    before = table.metadata
    for bad in ({"format-version": "3"}, {"uuid": "x"}, {"commit.retry.num-retries": "x"}, {"n": 5}, {4: "x"}):
        with pytest.raises(InvalidPropertyError):
            table.set_properties(bad)  # type: ignore[arg-type]  # what the test is about
    assert table.refresh().metadata == before
    with pytest.raises(InvalidPropertyError, match="computed"):
        table.update_snapshot(snapshot_properties={"added-records": "5"}).fast_append([data_file()])
    assert stored(table) == set()


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_tables_are_upgraded_and_go_on(version: int) -> None:
    table, _ = new_table(version, BY_REGION)
    table.update_snapshot().fast_append([data_file("memory://d/0", 10, "eu"), data_file("memory://d/1", 5, "us")])
    for target in ALL_VERSIONS:
        if target < version:
            with pytest.raises((IncompatibleChangeError, UnsupportedVersionError, InvalidInputError)):
                table.upgrade_format_version(target)
            continue
        table.upgrade_format_version(target)
        assert table.format_version == target
        table.update_snapshot().fast_append([data_file(f"memory://d/v{target}", 1, "eu")])
        with pytest.raises(UnsupportedVersionError):
            table.upgrade_format_version(9)
    assert len(live_paths(table)) == 2 + len(ALL_VERSIONS) - version + 1
    ids = [each.data_file.first_row_id for each in entries(table)]
    assert None not in ids
    assert len(set(ids)) == len(ids)
    table.update_snapshot().delete("region = 'us'")
    assert len(live_paths(table)) == 1 + len(ALL_VERSIONS) - version + 1


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_statistics_are_set_and_removed(version: int) -> None:
    table, _ = new_table(version)
    made = table.update_snapshot().fast_append([data_file()])
    assert made is not None
    file = StatisticsFile(made.snapshot_id, "memory://s/1", 10, 5)
    partitions = PartitionStatisticsFile(made.snapshot_id, "memory://s/2", 10)
    with table.transaction() as tx:
        tx.update_statistics(StatisticsChange((file,), (partitions,)))
    assert table.statistics() == [file]
    assert table.partition_statistics() == [partitions]
    with pytest.raises(NoSuchSnapshotError), table.transaction() as tx:
        tx.update_statistics(StatisticsChange((StatisticsFile(4711, "memory://s/1", 10, 5),)))
    with table.transaction() as tx:
        tx.update_statistics(StatisticsChange(remove_for=(made.snapshot_id,), remove_partition_for=(made.snapshot_id,)))
    assert table.statistics() == []
    assert table.partition_statistics() == []


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_old_snapshots_expire_in_metadata_alone(version: int) -> None:
    table, _ = new_table(version)
    for _ in range(4):
        table.update_snapshot().fast_append([data_file()])
    first, second, third, last = table.snapshots()
    table.manage_snapshots().create_tag("keep", second.snapshot_id).commit()
    files = stored(table)
    with table.transaction() as tx:
        tx.expire_snapshots(Expire(older_than_ms=last.timestamp_ms + 10, retain_last=1))
    assert [each.snapshot_id for each in table.snapshots()] == [second.snapshot_id, last.snapshot_id]
    assert stored(table) == files
    assert len(live_paths(table)) == 4
    with pytest.raises(ValidationError, match="keep"), table.transaction() as tx:
        tx.expire_snapshots(Expire(snapshot_ids_to_expire=(second.snapshot_id,)))
    with pytest.raises(InvalidInputError):
        Expire(retain_last=0)
    assert first.snapshot_id not in table.metadata.snapshots_by_id
    assert third.snapshot_id not in table.metadata.snapshots_by_id
    # What was planned on an expired snapshot cannot be checked any more.
    with pytest.raises(ValidationError, match="cannot be determined"):
        table.update_snapshot().overwrite(
            Planned(first.snapshot_id).reading("id = 1"), row_filter="id = 1", add=[data_file(rows=1)]
        )
    table.set_properties({"gc.enabled": "false"})
    with pytest.raises(InvalidPropertyError, match=r"gc\.enabled"), table.transaction() as tx:
        tx.expire_snapshots(Expire())


@pytest.mark.parametrize("version", ALL_VERSIONS)
@pytest.mark.parametrize("leading", ["tag", "expiring branch", "expiring tag"])
def test_young_snapshots_stay_when_only_a_tag_or_an_expiring_ref_leads_to_them(version: int, leading: str) -> None:
    table, _ = new_table(version)
    table.update_snapshot().fast_append([data_file()])
    table.manage_snapshots().create_branch("side").commit()
    for _ in range(2):
        table.update_snapshot(branch="side").fast_append([data_file()])
    table.update_snapshot().fast_append([data_file()])
    first, young, younger, last = table.snapshots()
    if leading == "expiring branch":
        table.manage_snapshots().set_retention("side", max_ref_age_ms=1).commit()
    else:
        age = 1 if leading == "expiring tag" else None
        table.manage_snapshots().create_tag("t", younger.snapshot_id, age).remove_branch("side").commit()
    with table.transaction() as tx:
        tx.expire_snapshots(Expire(older_than_ms=young.timestamp_ms))
    assert table.snapshots() == [young, younger, last]
    assert set(table.refs()) == ({"main", "t"} if leading == "tag" else {"main"})
    with table.transaction() as tx:
        tx.expire_snapshots(Expire(older_than_ms=young.timestamp_ms + 1))
    assert table.snapshots() == [younger, last]
    with table.transaction() as tx:
        tx.expire_snapshots(Expire(older_than_ms=last.timestamp_ms))
    assert table.snapshots() == ([younger, last] if leading == "tag" else [last])
    assert first not in table.snapshots()


def test_a_type_is_not_promoted_under_a_partition_that_it_would_change() -> None:
    table, _ = new_table(3, BY_REGION)
    with pytest.raises(IncompatibleChangeError), table.update_schema() as update:
        update.delete_column("region")
    with pytest.raises(IncompatibleChangeError), table.update_schema() as update:
        update.update_column("id", IntegerType())


VECTORS = [each for each in ALL_VERSIONS if allows(each, Feature.DELETION_VECTORS)]


@pytest.mark.parametrize("version", VECTORS)
def test_a_plan_on_a_snapshot_of_the_same_commit_still_minds_what_others_do(version: int) -> None:
    table, committer = new_table(version)
    table.update_snapshot().fast_append([data_file("memory://d/a", 10)])
    other = handle(committer)
    planned = Planned.on(other.metadata)

    def work() -> None:
        with table.transaction() as tx:
            tx.update_snapshot().fast_append([data_file("memory://d/b", 10)])
            tx.update_snapshot().delete_files(
                ["memory://d/a"], Planned.on(tx.table_metadata, isolation=Isolation.SNAPSHOT)
            )
            other.update_snapshot().row_delta(planned, vectors={"memory://d/a": [1]})

    with pytest.raises(ValidationError, match="for a data file that this commit removes"):
        work()
    assert live_paths(table.refresh()) == ["memory://d/a"]


@pytest.mark.parametrize("version", VECTORS)
@pytest.mark.parametrize("row", [1, 2, 5])
def test_rows_are_deleted_twice_in_one_commit_while_others_delete_some(version: int, row: int) -> None:
    table, committer = new_table(version)
    table.update_snapshot().fast_append([data_file("memory://d/a", 10)])
    other = handle(committer)
    planned = Planned.on(other.metadata)

    def work() -> None:
        with table.transaction() as tx:
            tx.update_snapshot().row_delta(Planned.on(tx.table_metadata), vectors={"memory://d/a": [1]})
            tx.update_snapshot().row_delta(Planned.on(tx.table_metadata), vectors={"memory://d/a": [1, 2]})
            other.update_snapshot().row_delta(planned, vectors={"memory://d/a": [row]})

    if row == 5:
        work()
    else:
        with pytest.raises(ValidationError, match=f"row {row} "):
            work()
    (vector,) = entries(table.refresh(), ManifestContent.DELETES)
    found = load_vector(table.storage, vector.data_file).positions().tolist()
    assert found == ([1, 2, 5] if row == 5 else [row])


@pytest.mark.parametrize("version", [each for each in ALL_VERSIONS if allows(each, Feature.DELETE_FILES)])
def test_a_rewrite_of_files_of_the_same_commit_minds_new_equality_deletes(version: int) -> None:
    table, committer = new_table(version)
    table.update_snapshot().fast_append([data_file("memory://d/a", 10)])
    other = handle(committer)

    def work(*deletes: DataFile) -> None:
        with table.transaction() as tx:
            tx.update_snapshot().fast_append([data_file("memory://d/b", 10)])
            tx.update_snapshot().rewrite_files(
                Planned.on(tx.table_metadata),
                remove=["memory://d/a", "memory://d/b"],
                add=[data_file("memory://d/ab", 20)],
            )
            other.update_snapshot().row_delta(None, add=[data_file("memory://d/c", 1)], deletes=deletes)

    with pytest.raises(ValidationError, match="for a data file that this commit removes"):
        work(equality_deletes())
    assert live_paths(table.refresh()) == ["memory://d/a", "memory://d/c"]
    other.update_snapshot().delete_files(["memory://d/c"], Planned.on(other.metadata))
    table.refresh()
    work()
    assert live_paths(table) == ["memory://d/ab", "memory://d/c"]
    rewritten = next(each for each in entries(table) if each.data_file.file_path == "memory://d/ab")
    assert rewritten.sequence_number == table.snapshots()[-2].sequence_number


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_a_column_cannot_have_the_name_of_a_partition_field_of_another(version: int) -> None:
    table, _ = new_table(version, spec=BY_REGION)
    with table.update_schema() as update:
        update.rename_column("region", "place")
    with (
        pytest.raises(IncompatibleChangeError, match="'region': that is a partition field of column 'place'"),
        table.update_schema() as update,
    ):
        update.add_column("region", StringType())
    with table.update_schema() as update:
        update.rename_column("place", "region")


@pytest.mark.parametrize("version", ALL_VERSIONS)
@pytest.mark.parametrize("file_format", ["avro", "parquet"])
def test_a_lost_race_deletes_no_file_of_rows(version: int, file_format: str) -> None:
    table, committer = new_table(version, properties={"write.format.default": file_format})
    before = stored(table)
    committer.fault = lose_race(1)
    with table.transaction() as tx:
        tx.append(pa.table({"id": pa.array([1, 2, 3])}))
        written = [each.file_path for each in tx.row_files]
    assert live_paths(table) == written
    assert table.scan().to_arrow()["id"].to_pylist() == [1, 2, 3]
    # The list of the lost attempt is gone; the rows, a manifest and the list of the second one are there.
    assert len(stored(table) - before) == 3


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_what_is_given_up_leaves_no_file_of_rows(version: int) -> None:
    table, _ = new_table(version)
    before = stored(table)
    tx = table.transaction()
    tx.append(pa.table({"id": pa.array([1, 2, 3])}))
    assert len(stored(table) - before) >= 1
    tx.abandon()
    assert stored(table) == before
    assert tx.row_files == []


def test_a_block_whose_whole_is_refused_before_it_is_sent_leaves_no_file() -> None:
    table, committer = new_table(2)
    with table.update_sort_order() as order:
        order.asc("id")
    before = stored(table)
    sent = committer.swaps
    without_the_sorted_column = Schema(NestedField(9, "other", LongType(), required=False))
    tx = table.transaction()
    with pytest.raises(IcefloeError, match="sort"), tx:  # noqa: PT012  # the end of the block is what fails
        tx.append(pa.table({"id": pa.array([1, 2, 3])}))
        tx.apply_updates(up.AddSchemaUpdate(without_the_sorted_column), up.SetCurrentSchemaUpdate())
    assert committer.swaps == sent
    assert stored(table) == before


def test_a_file_that_could_not_be_written_is_remembered_when_others_are_deleted() -> None:
    table, committer = new_table(2)
    bench = Workbench(committer.storage, Caches(), lambda: 0)
    bench.write(f"{table.location()}/metadata", b"")
    bench.write("nowhere://a/file", b"")
    bench.discard([f"{table.location()}/metadata"])
    with pytest.raises(IcefloeError):
        bench.settle()
    assert bench.failure is not None
