"""Repairs: a real table is broken in one way, the plan says so with evidence, the repair is done, and `verify` is content."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icefloe.commit import TableState
from icefloe.errors import InvalidInputError
from icefloe.formats.deletion_vectors import DeletionVector
from icefloe.maintenance import RepairKind, RepairPlan
from icefloe.maintenance.deletes.writing import DeleteWriter
from icefloe.manifests import ManifestContent, ManifestEntry
from icefloe.metadata import PartitionStatisticsFile, encode_metadata_file, tag
from icefloe.schema.binary import encode
from icefloe.schema.types import LongType
from icefloe.table import Table
from icefloe.verification import silent
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.commit.tables import data_file, handle, new_table
from tests.maintenance.rewriting import V3_ON
from tests.verification.tables import Damaged, create, filled, rows

DATA, DELETES = ManifestContent.DATA, ManifestContent.DELETES
WITH_DELETES = [each for each in ALL_VERSIONS if allows(each, Feature.DELETE_FILES)]
ALL_IDS = set(range(20))
pytestmark = pytest.mark.commits_wrong_files


def ids(table: Table) -> list[int]:
    return sorted(table.scan().to_arrow()["id"].to_pylist())


def plan_of(table: Table) -> tuple[Table, RepairPlan]:
    """A handle that remembers nothing, and its plan."""
    other = handle(table._committer)
    return other, other.maintenance.repair(progress=silent)


def deleted(version: int) -> set[int]:
    return {12, 13} if allows(version, Feature.DELETE_FILES) else set()


@dataclass(frozen=True)
class Broken:
    """How a table is broken, and what comes of it: the kind, the rows that are there after the repair."""

    kind: RepairKind
    do: Callable[[Damaged], object]
    versions: tuple[int, ...] = tuple(ALL_VERSIONS)
    lost: frozenset[int] = frozenset()
    revived: frozenset[int] = frozenset()


def _lose_data_file(damaged: Damaged) -> None:
    damaged.storage.delete([damaged.data_file(1).file_path])


def _lose_delete_file(damaged: Damaged) -> None:
    damaged.storage.delete([damaged.file(DELETES).file_path])


def _wrong_bounds(damaged: Damaged) -> None:
    damaged.change_file(DATA, lambda file: replace(file, lower_bounds={**file.lower_bounds, 1: encode(19, LongType())}))


def _wrong_row_count(damaged: Damaged) -> None:
    damaged.change_file(DATA, lambda file: replace(file, record_count=file.record_count + 3))


def _wrong_length(damaged: Damaged) -> None:
    damaged.change_file(DATA, lambda file: replace(file, file_size_in_bytes=file.file_size_in_bytes + 1))


def _wrong_counts(damaged: Damaged) -> None:
    first = damaged.manifests()[0]
    damaged.change_list(
        lambda each: replace(each, deleted_rows_count=(each.deleted_rows_count or 0) + 1) if each == first else each
    )


def _wrong_summary(damaged: Damaged) -> None:
    first = damaged.manifests(DATA)[0]
    assert first.partitions is not None
    narrow = replace(first.partitions[0], upper_bound=b"eu")
    damaged.change_list(lambda each: replace(each, partitions=(narrow,)) if each == first else each)


def _moved(damaged: Damaged) -> None:
    path = damaged.data_file().file_path
    damaged.storage.write(f"{damaged.metadata.location}/trash/{path.rpartition('/')[2]}", damaged.storage.read(path))
    damaged.storage.delete([path])


def _lose_list(damaged: Damaged) -> None:
    damaged.storage.delete([damaged.list_location()])


def _lose_manifest(damaged: Damaged) -> None:
    damaged.storage.delete([damaged.manifests()[0].manifest_path])


def _twice(damaged: Damaged) -> None:
    damaged.change_entries(damaged.manifests(DATA)[0], lambda entries: [*entries, entries[0]])


NEWEST = frozenset(range(10, 20))
ODD_NEWEST = frozenset({11, 13, 15, 17, 19})
BROKEN = {
    "a data file is lost": Broken(RepairKind.MISSING_DATA_FILES, _lose_data_file, lost=ODD_NEWEST),
    "a data file was moved": Broken(RepairKind.RESTORE_FILES, _moved),
    "wrong bounds": Broken(RepairKind.FILE_METRICS, _wrong_bounds),
    "a wrong number of rows": Broken(RepairKind.FILE_METRICS, _wrong_row_count),
    "a wrong length": Broken(RepairKind.FILE_METRICS, _wrong_length),
    "wrong counts": Broken(RepairKind.MANIFEST_COUNTS, _wrong_counts),
    "a wrong summary": Broken(RepairKind.MANIFEST_COUNTS, _wrong_summary),
    "an entry twice": Broken(RepairKind.DUPLICATE_ENTRIES, _twice),
    "a manifest is lost": Broken(RepairKind.MISSING_MANIFESTS, _lose_manifest),
    "a manifest list is lost": Broken(RepairKind.MISSING_MANIFESTS, _lose_list),
    "a delete file is lost": Broken(
        RepairKind.MISSING_DELETE_FILES, _lose_delete_file, tuple(WITH_DELETES), revived=frozenset({12, 13})
    ),
}
FAST = (2, 3)
CASES = [
    pytest.param(name, version, id=f"{name}, v{version}", marks=() if version in FAST else pytest.mark.slow)
    for name, broken in BROKEN.items()
    for version in broken.versions
]


@pytest.mark.parametrize(("name", "version"), CASES)
def test_what_is_broken_is_repaired(name: str, version: int) -> None:
    broken, table = BROKEN[name], filled(version)
    damaged = Damaged.of(table)
    broken.do(damaged)
    stored = {each.location for each in table.storage.list_prefix(str(table.location()))}
    other, plan = plan_of(table)
    assert broken.kind in plan.kinds, plan
    assert json.dumps(plan.to_json())
    evidence = next(each.evidence for each in plan.proposals if each.kind is broken.kind)
    assert all(evidence), "a repair has its reasons"
    head = other.metadata.current_snapshot_id
    if broken.kind.changes_rows:
        report = plan.apply()
        assert broken.kind in {each.kind for each in report.not_accepted}
        assert not report.after.ok
        _, plan = plan_of(table)
    report = plan.apply(accept=[broken.kind], progress=silent)
    assert not report.failed, report
    assert report.after.ok, report
    assert report.tag is not None
    assert other.refresh().metadata.refs[report.tag].snapshot_id == head or broken.kind.changes_rows
    assert stored <= {each.location for each in table.storage.list_prefix(str(table.location()))}, "nothing is deleted"
    fresh = handle(table._committer)
    if broken.kind is RepairKind.MISSING_MANIFESTS:
        assert set(ids(fresh)) <= ALL_IDS
        assert len(ids(fresh)) >= 10
    else:
        # In v2 each partition has a delete file of its own, later one file has the vectors of both.
        revived = broken.revived - ({13} if version == 2 else set())
        expected = ALL_IDS - deleted(version) - broken.lost | revived
        assert set(ids(fresh)) == expected
        assert len(ids(fresh)) == len(expected)
    assert fresh.maintenance.repair(progress=silent).kinds == ()
    fresh.append(rows(100, 101))
    assert fresh.verify(ref="main", level="data", progress=silent).ok


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_a_table_that_is_whole_needs_nothing(version: int) -> None:
    table, plan = plan_of(filled(version))
    assert plan.kinds == ()
    assert plan.refused == ()
    assert str(plan) == "nothing to repair"
    before = table.metadata_location
    report = plan.apply(progress=silent)
    assert report.tag is None
    assert table.refresh().metadata_location == before


def test_totals_are_counted() -> None:
    table = filled(2)
    damaged = Damaged.of(table)
    # A manifest loses an entry, and nobody tells the summary.
    damaged.change_entries(damaged.manifests(DATA)[0], lambda entries: entries[:1])
    _, plan = plan_of(table)
    assert RepairKind.SUMMARY_TOTALS in plan.kinds
    report = plan.apply(accept=RepairKind, progress=silent)
    assert report.after.ok, report
    fresh = handle(table._committer)
    current = fresh.current_snapshot()
    assert current is not None
    assert current.summary is not None
    assert current.summary["total-data-files"] == "3"
    assert RepairKind.SUMMARY_TOTALS not in fresh.maintenance.repair(progress=silent).kinds


@pytest.mark.parametrize("version", [3, 4])
def test_rows_without_ids_are_not_given_those_of_others(version: int) -> None:
    table = filled(version)
    Damaged.of(table).change_file(DATA, lambda file: replace(file, record_count=file.record_count - 1))
    _, plan = plan_of(table)
    assert RepairKind.FILE_METRICS not in plan.kinds
    assert any("would share ids" in each for each in plan.refused)


def test_entries_that_differ_are_left_to_people() -> None:
    table = filled(2)
    damaged = Damaged.of(table)

    def doubled(entries: list) -> list:  # type: ignore[type-arg]  # as the helper has them
        file = replace(entries[0].data_file, partition=("us",))
        return [*entries, replace(entries[0], data_file=file)]

    damaged.change_entries(damaged.manifests(DATA)[0], doubled)
    _, plan = plan_of(table)
    assert RepairKind.DUPLICATE_ENTRIES not in plan.kinds
    assert any("resolve it manually" in each for each in plan.refused)


def test_a_file_that_came_back_is_not_removed() -> None:
    table = filled(2)
    damaged = Damaged.of(table)
    path = damaged.data_file().file_path
    content = table.storage.read(path)
    table.storage.delete([path])
    _, plan = plan_of(table)
    table.storage.write(path, content)
    report = plan.apply(accept=["missing-data-files"], progress=silent)
    assert report.after.ok
    assert set(ids(handle(table._committer))) == ALL_IDS - {12, 13}


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_refs_and_statistics_of_no_snapshot_are_dropped(version: int) -> None:
    table, committer = new_table(version)
    table.update_snapshot().fast_append([data_file()])
    place = f"{table.location()}/metadata/stats.parquet"
    table.storage.write(place, b"12345")
    damaged = table.metadata.evolve(
        refs={**table.metadata.refs, "lost": tag(17)}, partition_statistics=(PartitionStatisticsFile(17, place, 5),)
    )
    committer._state = TableState(damaged, committer._state.metadata_location)
    other = handle(committer)
    plan = other.maintenance.repair(level="metadata", progress=silent)
    assert plan.kinds == (RepairKind.REFS,)
    report = plan.apply(progress=silent)
    assert report.after.ok, report
    assert set(other.refresh().metadata.refs) == {"main", report.tag}
    assert other.metadata.partition_statistics == ()
    assert table.storage.exists(place)


def _damage(table: Table, **changes: int) -> Table:
    """A handle of a table whose metadata says something else."""
    committer = table._committer
    state = committer.load()
    committer._catalog._storage.write(  # type: ignore[attr-defined]  # a catalog in memory
        state.metadata_location, encode_metadata_file(state.metadata.evolve(**changes))
    )
    return handle(committer)


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_ids_that_are_too_low_are_raised(version: int) -> None:
    table = filled(version)
    has_row_ids = allows(version, Feature.ROW_LINEAGE)
    was = table.metadata
    low = {"last_column_id": 1, "last_partition_id": 999} | ({"next_row_id": 10} if has_row_ids else {})
    other = _damage(table, **low)
    before = ids(other)
    assert not other.verify(level="data", progress=silent).ok
    plan = other.maintenance.repair(progress=silent)
    assert plan.kinds == (RepairKind.METADATA_IDS,)
    assert plan.refused == ()
    report = plan.apply(progress=silent)
    assert report.after.ok, report
    now = other.refresh().metadata
    assert (now.last_column_id, now.last_partition_id) == (was.last_column_id, was.last_partition_id)
    assert now.next_row_id >= was.next_row_id
    with other.update_schema() as schema:
        schema.add_column("more", "string")
    assert other.schema().find_field("more").field_id == was.last_column_id + 1
    other.append(rows(100, 101).append_column("more", [["a", "b"]]))
    assert ids(other) == [*before, 100, 101]
    assert other.verify(level="data", progress=silent).ok


@pytest.mark.parametrize("version", V3_ON)
def test_two_vectors_become_one(version: int) -> None:
    table = filled(version)
    damaged = Damaged.of(table)
    newest = damaged.manifests(DELETES)[0]
    (data,) = [task.file for task in table.scan().plan_files() if 12 in stored_ids(table, task.file.file_path)]
    # Somebody else has deleted row 14 of the same file, and did not look at the vector that was there.
    writer = DeleteWriter(table.metadata, table.storage, "rival")
    [rival] = writer.vectors([(data, DeletionVector.from_positions([2]))])

    def doubled(entries: list[ManifestEntry]) -> list[ManifestEntry]:
        return [*entries, replace(entries[0], data_file=rival)]

    damaged.change_entries(newest, doubled)
    _, plan = plan_of(table)
    assert RepairKind.TWO_VECTORS in plan.kinds, plan
    assert "all together delete 2" in plan.proposals[0].evidence[0]
    assert not plan.apply(progress=silent).after.ok, "it changes rows"
    _, plan = plan_of(table)
    report = plan.apply(accept=["two-vectors"], progress=silent)
    assert not report.failed, report
    assert report.after.ok, report
    fresh = handle(table._committer)
    assert set(ids(fresh)) == ALL_IDS - {12, 13, 14}
    assert fresh.maintenance.repair(progress=silent).kinds == ()


def stored_ids(table: Table, path: str) -> list[int]:
    """The rows of a file, deleted ones among them."""
    read: list[int] = pq.read_table(pa.BufferReader(table.storage.read(path)))["id"].to_pylist()
    return read


@pytest.mark.parametrize(
    ("version", "content"), [*((each, DATA) for each in ALL_VERSIONS), *((each, DELETES) for each in WITH_DELETES)]
)
def test_a_manifest_whose_entries_are_known_elsewhere_is_rebuilt(version: int, content: ManifestContent) -> None:
    table = filled(version)
    table.delete("id in (2, 3)")
    table.maintenance.rewrite_manifests()
    before = lineage_of(table)
    damaged = Damaged.of(table)
    [lost] = damaged.manifests(content)
    damaged.storage.delete([lost.manifest_path])
    other, plan = plan_of(table)
    assert plan.kinds == (RepairKind.REBUILT_MANIFESTS,), plan
    assert "are known from other manifests" in plan.proposals[0].evidence[0]
    report = plan.apply(progress=silent)
    assert report.after.ok, report
    assert lineage_of(handle(table._committer)) == before
    assert other.refresh().maintenance.repair(progress=silent).kinds == ()


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_files_that_a_manifest_added_are_known_from_those_that_took_them_over(version: int) -> None:
    table = create(version)
    table.append(rows(*range(10)))
    table.manage_snapshots().create_branch("old").commit()
    [lost] = Damaged.of(table).manifests()
    table.append(rows(*range(10, 20)))
    table.maintenance.rewrite_manifests()
    table.storage.delete([lost.manifest_path])
    other = handle(table._committer)
    plan = other.maintenance.repair(branch="old", progress=silent)
    assert plan.kinds == (RepairKind.REBUILT_MANIFESTS,), plan
    assert plan.apply(progress=silent).after.ok
    assert sorted(handle(table._committer).scan(ref="old").to_arrow()["id"].to_pylist()) == list(range(10))


def test_a_manifest_is_not_rebuilt_if_the_numbers_do_not_add_up() -> None:
    table = filled(2)
    table.maintenance.rewrite_manifests()
    damaged = Damaged.of(table)
    [lost] = damaged.manifests(DATA)
    rows_more = (lost.existing_rows_count or 0) + 1
    damaged.change_list(lambda each: replace(each, existing_rows_count=rows_more) if each == lost else each)
    damaged.storage.delete([lost.manifest_path])
    _, plan = plan_of(table)
    assert plan.kinds == (RepairKind.MISSING_MANIFESTS,)
    assert any("are 21, of which other manifests know 20" in each for each in plan.proposals[0].evidence)


def lineage_of(table: Table) -> list[tuple[object, ...]]:
    names = ("id", *(("_row_id",) if allows(table.format_version, Feature.ROW_LINEAGE) else ()))
    read = table.scan(selected_fields=names).to_arrow().to_pylist()
    return sorted(tuple(row[name] for name in names) for row in read)


def test_names_of_kinds_are_checked() -> None:
    _, plan = plan_of(filled(2))
    with pytest.raises(
        InvalidInputError, match="accept contains the unknown kind 'everything'; kinds are restore-files"
    ):
        plan.apply(accept=["everything"])
