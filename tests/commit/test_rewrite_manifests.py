"""Manifests written anew: in one commit, of the right size, in order, and left alone when they are good already."""

import secrets
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from icefloe.commit import Planned
from icefloe.commit.entry_spool import EntrySpool, RankedEntries
from icefloe.commit.manifest_groups import ManifestChoice, is_clustered
from icefloe.commit.producer import SnapshotChange
from icefloe.commit.rewrite_manifests import RewriteManifests
from icefloe.errors import InvalidInputError
from icefloe.manifests import (
    DataFile,
    EntryStatus,
    ManifestColumns,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
    PartitionFieldSummary,
    columns_of,
    read_manifest,
    summarize,
)
from icefloe.manifests.arrow_values import from_internal
from icefloe.partitioning import parse_partition_spec
from icefloe.progress import Progress
from icefloe.schema import types
from icefloe.table import Table
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.commit.tables import (
    BY_REGION,
    SCHEMA,
    data_file,
    entries,
    equality_deletes,
    handle,
    live_paths,
    manifests,
    new_table,
)

REGIONS = ("eu", "us", None, "asia")
BY_TWO = parse_partition_spec(["region", "bucket(4, id)"], SCHEMA)
WITH_DELETES = [each for each in ALL_VERSIONS if allows(each, Feature.DELETE_FILES)]


def facts(table: Table, content: ManifestContent = ManifestContent.DATA) -> dict[str, ManifestEntry]:
    """All that is known of live files, whatever manifest they are in."""
    return {
        each.data_file.file_path: replace(each, status=EntryStatus.EXISTING)
        for each in entries(table, content)
        if each.is_live
    }


def many_files(start: int, end: int, regions: int = len(REGIONS)) -> list[DataFile]:
    """Files whose names cannot be compressed, so that manifests have a size."""
    return [
        data_file(
            f"memory://d/{secrets.token_hex(64)}.parquet",
            region=REGIONS[number % regions],
            ids=(number, number),
            partitioned=True,
        )
        for number in range(start, end)
    ]


def commits(table: Table) -> int:
    return len(table.metadata.snapshots)


def with_target(version: int, target: int = 20_000) -> Table:
    properties = {"commit.manifest.target-size-bytes": str(target), "commit.manifest-merge.enabled": "false"}
    return new_table(version, BY_REGION, properties)[0]


@pytest.mark.parametrize("version", WITH_DELETES)
def test_data_and_deletes_are_one_commit(version: int) -> None:
    table, _ = new_table(version, BY_REGION)
    for region in ("us", "eu", "us"):
        table.update_snapshot().fast_append([data_file(region=region)])
        table.update_snapshot().row_delta(None, deletes=[equality_deletes(region=region)])
    before = [facts(table, content) for content in ManifestContent]
    count = commits(table)
    made = table.update_snapshot().rewrite_manifests()
    assert made is not None
    assert commits(table) == count + 1
    assert made.summary is not None
    assert made.summary["manifests-replaced"] == "6"
    assert made.summary["manifests-created"] == "2"
    assert [facts(table, content) for content in ManifestContent] == before
    assert table.update_snapshot().rewrite_manifests() is None


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_a_manifest_that_is_too_large_is_split(version: int) -> None:
    table = with_target(version, 10**7)
    table.update_snapshot().fast_append(many_files(0, 1500, 3))
    [one] = manifests(table)
    table.set_properties({"commit.manifest.target-size-bytes": str(one.manifest_length // 3)})
    before = facts(table)
    assert table.update_snapshot().rewrite_manifests() is not None
    assert facts(table) == before
    sizes = [each.manifest_length for each in manifests(table)]
    assert len(sizes) >= 3
    assert max(sizes) <= 1.2 * one.manifest_length / 3
    assert table.update_snapshot().rewrite_manifests() is None


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_partitions_that_are_spread_are_brought_together(version: int) -> None:
    table = with_target(version, 10**7)
    for start in range(0, 1000, 250):
        table.update_snapshot().fast_append(many_files(start, start + 250))
    total = sum(each.manifest_length for each in manifests(table))
    table.set_properties({"commit.manifest.target-size-bytes": str(total // 3)})
    before = facts(table)
    told: list[Progress] = []
    made = table.maintenance.rewrite_manifests(progress=told.append)
    assert (told[-1].stage, told[-1].done, told[-1].total) == ("manifests", 4, 4)
    assert made.rewritten_manifests_count == 4
    assert facts(table) == before
    members = [{each.data_file.partition for each in entries_of(table, manifest)} for manifest in manifests(table)]
    assert len(members) >= 3
    assert sum(map(len, members)) <= 4 + len(members) - 1, "only partitions at the ends may be in two manifests"
    assert table.maintenance.rewrite_manifests().counts == (0, 0)
    # One more that overlaps with others brings all of them back to order.
    table.update_snapshot().fast_append([data_file(region="asia"), data_file(region="us")])
    plan = table.maintenance.rewrite_manifests(dry_run=True)
    assert "spread over several manifests" in str(plan)


def entries_of(table: Table, manifest: ManifestFile) -> list[ManifestEntry]:
    columns = read_manifest(
        manifest,
        table.storage.read,
        partition_type=table.metadata.partition_type(manifest.partition_spec_id),
        table_location=table.metadata.relative_to,
    )
    return list(columns.entries())


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_sort_by_other_fields_first(version: int) -> None:
    table, _ = new_table(version, BY_TWO)
    for number in range(8):
        file = data_file(region="us" if number % 2 else "eu")
        table.update_snapshot().fast_append([replace(file, partition=(file.partition[0], number % 4))])
    name = BY_TWO.fields[1].name
    assert table.maintenance.rewrite_manifests(sort_by=[name]).counts == (8, 1)
    partitions = [each.data_file.partition for each in entries(table)]
    assert partitions == sorted(partitions, key=lambda each: (each[1], each[0]))
    with pytest.raises(
        InvalidInputError, match="sort_by names 'nothing', which is not a partition field; fields are region"
    ):
        table.maintenance.rewrite_manifests(sort_by=["nothing"])
    wrong: list[str] | str
    for wrong in ([], "region"):
        with pytest.raises(InvalidInputError, match="must be a list"):
            table.maintenance.rewrite_manifests(sort_by=wrong)
    with pytest.raises(InvalidInputError, match="spec_id is 5; the table has 0"):
        table.maintenance.rewrite_manifests(5)


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_one_spec_or_all(version: int) -> None:
    table, _ = new_table(version, BY_REGION)
    for _ in range(2):
        table.update_snapshot().fast_append([data_file(region="eu")])
    with table.update_spec() as spec:
        spec.remove_field("region")
    for _ in range(2):
        table.update_snapshot().fast_append(
            [data_file(spec_id=table.spec().spec_id, partition=(None,) * len(table.spec().fields))]
        )
    before = facts(table)
    assert table.maintenance.rewrite_manifests(0).counts == (2, 1)
    assert len(manifests(table)) == 3
    assert table.maintenance.rewrite_manifests().counts == (2, 1)
    assert facts(table) == before


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_a_manifest_of_deleted_entries_that_goes_is_no_error(version: int) -> None:
    # apache/iceberg 3744
    table, _ = new_table(version, BY_REGION)
    for name in ("a", "b", "c"):
        table.update_snapshot().fast_append([data_file(f"memory://d/{name}", region="eu")])
    table.update_snapshot().delete_files(["memory://d/a"], Planned.on(table.metadata))
    other = handle(table._committer)
    with table.transaction() as tx:
        tx.update_snapshot().rewrite_manifests()
        other.update_snapshot().fast_append([data_file("memory://d/later", region="eu")])
    assert live_paths(table) == ["memory://d/b", "memory://d/c", "memory://d/later"]


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_entries_that_do_not_fit_into_memory_wait_on_disk(version: int) -> None:
    table = with_target(version, 10**7)
    for start in range(0, 200, 50):
        table.update_snapshot().fast_append(many_files(start, start + 50))
    before = facts(table)
    change = SnapshotChange(RewriteManifests(memory=1000))
    with table.transaction() as tx:
        tx.add(change)
    assert facts(table) == before
    assert len(manifests(table)) == 1
    order = [each.data_file.partition[0] for each in entries(table)]
    assert order == sorted(order, key=lambda region: (region is None, region or ""))


def ranked(table: Table, count: int) -> RankedEntries:
    struct = table.metadata.partition_type(0)
    made = [
        ManifestEntry(
            EntryStatus.EXISTING, data_file(region=REGIONS[number % 4], ids=(number, number), partitioned=True), 1, 2, 3
        )
        for number in range(count)
    ]
    return RankedEntries(columns_of(made, struct), np.arange(count))


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4)), max_size=8), st.integers(0, 5000))
def test_what_waits_comes_back(parts: list[tuple[int, int]], budget: int) -> None:
    table, _ = new_table(2, BY_REGION)
    put: dict[int, list[RankedEntries]] = {}
    with EntrySpool(budget) as spool:
        for number, count in parts:
            part = ranked(table, count)
            put.setdefault(number, []).append(part)
            spool.add(number, part)
        for number in range(3):
            taken = spool.take(number)
            assert [_values(part.columns) for part in taken] == [_values(part.columns) for part in put.get(number, [])]
            assert [part.ranks.tolist() for part in taken] == [part.ranks.tolist() for part in put.get(number, [])]
            assert spool.take(number) == []


def _values(columns: ManifestColumns) -> list[ManifestEntry]:
    return list(columns.entries())


def manifest_of(*summaries: PartitionFieldSummary) -> ManifestFile:
    return ManifestFile("memory://m", 100, 0, 1, added_files_count=1, partitions=summaries)


@given(
    st.lists(st.tuples(st.none() | st.integers(0, 5), st.none() | st.integers(0, 5)), min_size=1, max_size=12),
    st.data(),
)
def test_entries_in_order_are_clustered_however_they_are_cut(
    rows: list[tuple[int | None, int | None]], data: st.DataObject
) -> None:
    def key(row: tuple[int | None, int | None]) -> tuple[tuple[bool, int], ...]:
        return tuple((value is None, value or 0) for value in row)

    rows.sort(key=key)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=4)))
    parts = [rows[start:end] for start, end in zip([0, *cuts], [*cuts, len(rows)], strict=True) if start < end]
    made = [
        manifest_of(
            *(summarize(from_internal([row[at] for row in part], types.LongType()), types.LongType()) for at in (0, 1))
        )
        for part in parts
    ]
    fields = [(0, types.LongType()), (1, types.LongType())]
    assert is_clustered(data.draw(st.permutations(made)), fields)


def test_ranges_that_overlap_are_not_clustered() -> None:
    def of(*values: int | None) -> PartitionFieldSummary:
        return summarize(from_internal(list(values), types.LongType()), types.LongType())

    fields = [(0, types.LongType()), (1, types.LongType())]
    one = of(1)
    assert not is_clustered([manifest_of(of(1, 3), one), manifest_of(of(2, 4), one)], fields)
    assert not is_clustered([manifest_of(of(1, None), one), manifest_of(of(2, 4), one)], fields)
    assert not is_clustered([manifest_of(one, of(1, 3)), manifest_of(one, of(2, 4))], fields)
    assert is_clustered([manifest_of(one, of(1, 2)), manifest_of(one, of(2, 4))], fields)
    assert not is_clustered([replace(manifest_of(), partitions=None)] * 2, fields)
    assert is_clustered([replace(manifest_of(), partitions=None)] * 2, [])


def test_names_come_before_the_rest_of_the_spec() -> None:
    assert ManifestChoice(sort_by=(BY_TWO.fields[1].name,)).positions(BY_TWO) == [1, 0]
    assert ManifestChoice().positions(BY_TWO) == [0, 1]
