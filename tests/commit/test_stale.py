"""Changes that were prepared on a state that is no longer the newest: what is prepared again, what comes back, what is refused.

The committer of most tests here is told nothing but updates and requirements, as a REST catalog is: it takes them on whatever
the table is by now. `Strict` can tell that the base moved, as catalogs that keep pointers can.
"""

from collections.abc import Callable

import pyarrow as pa
import pytest

from icefloe import load_catalog
from icefloe.commit import BeforeSwap, Committed, Expire, Planned, Prepared, TableState
from icefloe.errors import CommitFailed, InvalidInputError, LocationNotFoundError, StaleBaseError, ValidationError
from icefloe.metadata import updates as up
from icefloe.partitioning import PartitionField, PartitionSpec, transforms as tr
from icefloe.schema.types import LongType, StringType
from icefloe.table import Table
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.commit.tables import (
    BY_REGION,
    Clock,
    MemoryCommitter,
    data_file,
    entries,
    handle,
    live_paths,
    manifests,
    new_table,
    stored,
)

VOID = PartitionSpec(PartitionField(2, 1000, tr.VoidTransform(), "nothing"))
FUTURE = 32_503_680_000_000

every_version = pytest.mark.parametrize("version", ALL_VERSIONS)


class Strict(MemoryCommitter):
    """One that refuses whatever was not prepared on the newest state; others are faster as many times as `moves` says."""

    def __init__(self, other: MemoryCommitter) -> None:
        super().__init__(other.load().metadata, other.storage)
        self._state, self.swaps = other.load(), other.swaps
        self.moves = 0

    def commit(self, base: TableState, prepared: Prepared, before_swap: BeforeSwap) -> TableState:
        if self.moves:
            left, self.moves = self.moves - 1, 0
            handle(self).set_properties({f"moved.{left}": "yes"})
            self.moves = left
        if base.metadata_location != self._state.metadata_location:
            raise StaleBaseError("moved on")
        return super().commit(base, prepared, before_swap)


def strict(version: int, **properties: str) -> tuple[Table, Strict, Clock]:
    """A table with one commit and a handle that is behind."""
    named = {key.replace("__", ".").replace("_", "-"): value for key, value in properties.items()}
    first, committer = new_table(version, properties=named)
    first.update_snapshot().fast_append([data_file("memory://d/first")])
    catalog, clock = Strict(committer), Clock()
    behind = handle(catalog, clock)
    handle(catalog).update_snapshot().fast_append([data_file("memory://d/second")])
    return behind, catalog, clock


@every_version
def test_to_be_behind_is_no_lost_race(version: int) -> None:
    behind, _, clock = strict(version, commit__retry__num_retries="0")
    before = stored(behind)
    tx = behind.transaction()
    promised = tx.update_snapshot().fast_append([data_file("memory://d/third")])
    outcome = tx.try_commit()
    assert isinstance(outcome, Committed)
    assert promised is not None
    assert outcome.snapshot_ids == (promised.snapshot_id,)
    assert (outcome.attempts, clock.sleeps) == (2, [])
    assert outcome.base is not None
    assert len(outcome.base.metadata.snapshots) == 2
    assert live_paths(behind) == ["memory://d/first", "memory://d/second", "memory://d/third"]
    # A manifest and a list: those of the first attempt are gone.
    assert len(stored(behind) - before) == 2


def test_to_be_behind_again_is_a_lost_race() -> None:
    behind, catalog, clock = strict(2, commit__retry__num_retries="2")
    catalog.moves = 2
    behind.update_snapshot().fast_append([data_file("memory://d/third")])
    assert len(clock.sleeps) == 1
    assert sum(key.startswith("moved.") for key in behind.properties) == 2
    behind, catalog, clock = strict(2, commit__retry__num_retries="1")
    catalog.moves = 5
    with pytest.raises(CommitFailed, match="moved on"):
        behind.update_snapshot().fast_append([data_file("memory://d/third")])
    assert live_paths(behind.refresh()) == ["memory://d/first", "memory://d/second"]


def cleaned(table: Table) -> None:
    """Drop what no file needs: every spec and schema but those of now."""
    metadata = table.refresh().metadata
    used = {each.partition_spec_id for each in manifests(table)} | {metadata.default_spec_id}
    schemas = {each.schema_id for each in metadata.snapshots} | {metadata.current_schema_id}
    updates: list[up.TableUpdate] = []
    if specs := tuple(each for each in metadata.specs_by_id if each not in used):
        updates.append(up.RemovePartitionSpecsUpdate(specs))
    if gone := tuple(each for each in metadata.schemas_by_id if each not in schemas):
        updates.append(up.RemoveSchemasUpdate(gone))
    table.transaction().apply_updates(*updates).commit_transaction()


def spec_to(table: Table, *terms: str) -> None:
    """Make these the partition fields of new data."""
    with table.update_spec() as update:
        for each in table.refresh().spec().fields:
            if str(each.transform) != "void":
                update.remove_field(each.name)
        for term in terms:
            update.add_field(term)


@every_version
@pytest.mark.parametrize("name", ["append", "overwrite", "replace partitions"])
def test_a_spec_that_was_cleaned_away_comes_back_with_files_that_need_it(version: int, name: str) -> None:
    table, committer = new_table(version, BY_REGION)
    writer, other = handle(committer), handle(committer)
    lost = writer.spec()
    spec_to(other)
    cleaned(other)
    # The id may be that of another spec by now.
    spec_to(other, "bucket(4, id)")
    assert not any(each.equivalent(lost) for each in other.refresh().specs().values())
    file, update = data_file(region="eu"), writer.update_snapshot()
    if name == "append":
        update.merge_append([file])
    elif name == "overwrite":
        update.overwrite(None, add=[file], row_filter="region = 'eu'")
    else:
        update.replace_partitions([file], None)
    assert [each.data_file.partition for each in entries(table.refresh())] == [("eu",)]
    (manifest,) = manifests(table)
    assert table.specs()[manifest.partition_spec_id].equivalent(lost)
    assert "bucket[4]" in {str(each.transform) for each in table.spec().fields}


@pytest.mark.parametrize("version", [each for each in ALL_VERSIONS if allows(each, Feature.DROPPING_PARTITION_FIELDS)])
def test_a_spec_that_cannot_come_back_is_a_clear_refusal(version: int) -> None:
    table, committer = new_table(version, BY_REGION)
    writer, other = handle(committer), handle(committer)
    spec_to(other)
    with other.refresh().update_schema() as update:
        update.delete_column("region")
    cleaned(other)
    before = stored(table)
    with pytest.raises(ValidationError, match="write the files again"):
        writer.update_snapshot().fast_append([data_file(region="eu")])
    assert stored(table) == before
    assert table.refresh().snapshots() == []


@every_version
def test_files_of_a_spec_of_the_same_commit_follow_its_id(version: int) -> None:
    _, committer = new_table(version, BY_REGION)
    catalog = Strict(committer)
    table, other = handle(catalog), handle(catalog)
    with table.transaction() as tx:
        with tx.update_spec() as update:
            update.add_field("bucket(4, id)")
        spec_id = tx.table_metadata.default_spec_id
        tx.update_snapshot().fast_append([data_file(partition=("eu", 1), spec_id=spec_id)])
        # A spec that another writer adds takes the id; the default, and the last id of partition fields, are what they were.
        other.transaction().apply_updates(up.AddPartitionSpecUpdate(VOID)).commit_transaction()
        assert spec_id in other.specs()
    (manifest,) = manifests(table)
    assert manifest.partition_spec_id == table.spec().spec_id == spec_id + 1
    assert [each.data_file.partition for each in entries(table)] == [("eu", 1)]


@every_version
def test_a_snapshot_never_names_a_schema_that_was_cleaned_away(version: int) -> None:
    table, committer = new_table(version)
    writer, other = handle(committer), handle(committer)
    with other.update_schema() as update:
        update.add_column("more", LongType())
    cleaned(other)
    writer.update_snapshot().fast_append([data_file()])
    writer.update_snapshot(stage_only=True).fast_append([data_file()])
    for snapshot in table.refresh().snapshots():
        assert snapshot.schema_id in table.schemas()


@every_version
@pytest.mark.parametrize("branch", ["main", "new"])
def test_staged_and_first_snapshots_of_branches_are_built_on_what_is_there(version: int, branch: str) -> None:
    table, committer = new_table(version)
    table.update_snapshot().fast_append([data_file("memory://d/a")])
    writer, other = handle(committer), handle(committer)
    tx = writer.transaction()
    tx.update_snapshot(branch, stage_only=branch == "main").fast_append([data_file("memory://d/b")])
    other.update_snapshot().fast_append([data_file("memory://d/c")])
    # What the first attempt was built on is gone, with its list of manifests.
    other.transaction().expire_snapshots(Expire(FUTURE, 1)).commit_transaction()
    made = tx.commit_transaction().snapshots()[-1]
    assert made.parent_snapshot_id == other.metadata.current_snapshot_id
    assert live_paths(writer, made.snapshot_id) == ["memory://d/a", "memory://d/b", "memory://d/c"]


@every_version
def test_a_base_that_has_expired_is_replaced_by_the_newest(version: int) -> None:
    table, committer = new_table(version)
    table.update_snapshot().fast_append([data_file("memory://d/a")])
    writer, other = handle(committer), handle(committer)
    other.update_snapshot().fast_append([data_file("memory://d/b")])
    expired = str(writer.metadata.snapshots[0].manifest_list)
    other.transaction().expire_snapshots(Expire(FUTURE, 1)).commit_transaction()
    place = next(each for each in stored(table) if each.endswith(expired.rsplit("/", 1)[1]))
    other.storage.delete([place])
    with writer.transaction() as tx:
        tx.set_properties({"a": "b"})
        tx.update_snapshot().fast_append([data_file("memory://d/c")])
        # Planned on a snapshot of the same commit, which was built on the newest one in the end.
        tx.update_snapshot().delete_files(["memory://d/b"], Planned.on(tx.table_metadata))
    assert writer.properties["a"] == "b"
    assert live_paths(writer) == ["memory://d/a", "memory://d/c"]
    assert handle(committer).metadata == writer.metadata


@every_version
def test_partitions_are_replaced_though_the_base_has_expired(version: int) -> None:
    catalog = load_catalog("stale", type="memory")
    catalog.create_namespace("db")
    table = catalog.create_table(
        "db.t", "id BIGINT, p STRING", partition_spec=["p"], properties={"format-version": str(version)}
    )
    table.append(pa.table({"id": [1, 2], "p": ["a", "b"]}))
    behind, reader = catalog.load_table("db.t"), catalog.load_table("db.t")
    table.append(pa.table({"id": [3], "p": ["b"]}))
    table.maintenance.expire_snapshots(older_than=FUTURE, retain_last=1)
    behind.dynamic_partition_overwrite(pa.table({"id": [4], "p": ["a"]}))
    assert sorted(behind.scan().to_arrow()["id"].to_pylist()) == [2, 3, 4]
    # What is known to have come into the partition since counts, gap or not.
    table.refresh().append(pa.table({"id": [5], "p": ["a"]}))
    with pytest.raises(ValidationError, match="was added"):
        reader.dynamic_partition_overwrite(pa.table({"id": [6], "p": ["a"]}))
    assert sorted(table.refresh().scan().to_arrow()["id"].to_pylist()) == [2, 3, 4, 5]


def test_a_missing_file_of_the_newest_state_is_told() -> None:
    table, committer = new_table(2)
    table.update_snapshot().fast_append([data_file()])
    writer = handle(committer)
    writer.storage.delete([str(writer.metadata.snapshots[0].manifest_list)])
    with pytest.raises(LocationNotFoundError):
        writer.update_snapshot().fast_append([data_file()])


@pytest.mark.parametrize("version", ALL_VERSIONS[:-1])
def test_what_is_wrong_after_an_upgrade_is_prepared_again(version: int) -> None:
    table, committer = new_table(version)
    writer, other = handle(committer), handle(committer)
    other.upgrade_format_version(version + 1)
    writer.update_snapshot().fast_append([data_file()])
    (snapshot,) = table.refresh().snapshots()
    assert (snapshot.first_row_id is not None) is allows(version + 1, Feature.ROW_LINEAGE)


@pytest.mark.parametrize("merge", [False, True])
@every_version
def test_files_stay_where_they_are_when_the_table_moves(version: int, merge: bool) -> None:
    """From v4 on their paths are relative to the table's location where they can be."""
    table, committer = new_table(version, properties={"commit.manifest.min-count-to-merge": "2"})
    catalog = Strict(committer)
    writer, other = handle(catalog), handle(catalog)
    file = data_file(f"{table.location()}/data/a")
    with writer.transaction() as tx:
        if merge:
            tx.update_snapshot().merge_append([file])
        else:
            tx.update_snapshot().fast_append([file])
        other.transaction().update_location("memory://elsewhere/t").commit_transaction()
    assert writer.location() == "memory://elsewhere/t"
    assert live_paths(writer) == [file.file_path]


def test_what_is_wrong_in_itself_is_not_tried_again() -> None:
    table, committer = new_table(2)
    clock = Clock()
    writer = handle(committer, clock)
    handle(committer).set_properties({"a": "b"})
    with pytest.raises(InvalidInputError, match="format versions only go up"):
        writer.upgrade_format_version(1)
    assert clock.sleeps == []
    assert table.refresh().properties == {"a": "b"}


@every_version
def test_updates_as_they_are_are_refused_where_they_would_mean_something_else(version: int) -> None:
    table, committer = new_table(version)
    table.update_snapshot().fast_append([data_file()])
    table.update_snapshot().fast_append([data_file()])
    old = table.snapshots()[0].snapshot_id
    removal = up.RemoveSnapshotsUpdate((old,))
    catalog = Strict(committer)
    changes: list[Callable[[Table], object]] = [
        lambda other: other.manage_snapshots().create_tag("audit", old).commit(),
        lambda other: other.update_snapshot().fast_append([data_file()]),
    ]
    for change in changes:
        behind = handle(catalog)
        change(handle(catalog))
        with pytest.raises(ValidationError, match=r"'audit' now refers to it|another state of the table"):
            behind.transaction().apply_updates(removal).commit_transaction()
        assert old in handle(catalog).metadata.snapshots_by_id
    behind = handle(catalog)
    handle(catalog).set_properties({"a": "b"})
    behind.transaction().apply_updates(up.SetPropertiesUpdate({"c": "d"})).commit_transaction()
    assert behind.properties.items() >= {"a": "b", "c": "d"}.items()


@pytest.mark.parametrize("kind", ["spec", "order"])
def test_a_column_that_others_came_to_use_is_not_changed_behind_their_back(kind: str) -> None:
    _, committer = new_table(3)
    catalog = Strict(committer)
    with handle(catalog).update_schema() as update:
        update.add_column("day", StringType())
    behind, other = handle(catalog), handle(catalog)
    if kind == "spec":
        with other.update_spec() as spec:
            spec.add_field("truncate(4, day)")
    else:
        with other.update_sort_order() as order:
            order.asc("day")
    with pytest.raises(ValidationError, match="'day' is used by"), behind.update_schema() as update:
        update.delete_column("day")
    with behind.update_schema() as update:
        update.add_column("night", StringType())
    assert [each.name for each in behind.schema().fields][-2:] == ["day", "night"]


def test_a_branch_that_others_removed_is_not_made_anew() -> None:
    table, committer = new_table(2)
    table.update_snapshot().fast_append([data_file("memory://d/a")])
    table.manage_snapshots().create_branch("side").commit()
    behind = handle(committer)
    table.update_snapshot().fast_append([data_file("memory://d/b")])
    table.manage_snapshots().remove_branch("side").commit()
    with pytest.raises(ValidationError, match="'side' was removed by another commit"):
        behind.update_snapshot("side").fast_append([data_file("memory://d/c")])
    assert set(table.refresh().refs()) == {"main"}
