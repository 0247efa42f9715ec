"""Tables that others wrote, odd input, and many writers at once."""

import threading
from dataclasses import replace
from typing import Any

import pytest

from icefloe import properties as props
from icefloe.commit import Isolation, Planned, TableState
from icefloe.errors import InvalidInputError, InvalidPropertyError, ValidationError
from icefloe.manifests import ManifestContent
from icefloe.metadata import Snapshot
from icefloe.partitioning import parse_partition_spec
from icefloe.schema import Schema, types
from icefloe.schema.binary import encode
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.commit.tables import (
    BY_REGION,
    data_file,
    entries,
    handle,
    live_paths,
    manifests,
    new_table,
)


@pytest.mark.parametrize("target", ALL_VERSIONS)
def test_a_v1_snapshot_without_a_manifest_list_is_built_upon(target: int) -> None:
    table, committer = new_table(1, BY_REGION)
    table.update_snapshot().fast_append([data_file("memory://d/a", 10, "eu"), data_file("memory://d/b", 5, "us")])
    old = table.metadata.snapshots[0]
    inline = Snapshot(
        old.snapshot_id,
        old.timestamp_ms,
        manifests=tuple(each.manifest_path for each in manifests(table)),
        schema_id=old.schema_id,
    )
    committer._state = TableState(table.metadata.evolve(snapshots=(inline,)), table.metadata_location)
    other = handle(committer)
    if target > 1:
        other.upgrade_format_version(target)
    made = other.update_snapshot().fast_append([data_file("memory://d/c", 2, "eu")])
    assert made is not None
    assert made.summary is not None
    assert live_paths(other) == ["memory://d/a", "memory://d/b", "memory://d/c"]
    # Nobody knows what the totals were, so that none are told.
    assert "total-records" not in made.summary.properties
    other.update_snapshot().delete("region = 'us'")
    assert live_paths(other) == ["memory://d/a", "memory://d/c"]
    if allows(target, Feature.ROW_LINEAGE):
        assert None not in [each.data_file.first_row_id for each in entries(other)]


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_a_file_whose_bounds_do_not_fit_its_partition_is_refused(version: int) -> None:
    schema = Schema(
        types.NestedField(1, "id", types.LongType()),
        types.NestedField(2, "region", types.StringType()),
        types.NestedField(3, "at", types.TimestampType()),
        types.NestedField(4, "day", types.DateType()),
    )
    spec = parse_partition_spec(["region", "days(at)", "truncate(10, id)"], schema)
    table, _ = new_table(version, spec, schema=schema)
    day = 86_400_000_000
    good: dict[str, Any] = {
        "value_counts": {1: 10, 2: 10, 3: 10},
        "lower_bounds": {1: encode(20, types.LongType()), 2: b"eu", 3: encode(5 * day + 7, types.TimestampType())},
        "upper_bounds": {1: encode(29, types.LongType()), 2: b"eu", 3: encode(6 * day - 1, types.TimestampType())},
    }
    table.update_snapshot().fast_append([data_file(partition=("eu", 5, 20), **good)])
    for bad in (("us", 5, 20), ("eu", 4, 20), ("eu", 6, 20), ("eu", 5, 30), ("eu", 5, 10), (None, 5, 20)):
        with pytest.raises(InvalidInputError, match="not in its partition"):
            table.update_snapshot().fast_append([data_file(partition=bad, **good)])
    assert len(live_paths(table.refresh())) == 1


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_threads_append_and_nothing_is_lost(version: int) -> None:
    table, committer = new_table(version, properties={"commit.retry.num-retries": "200"})
    errors: list[Exception] = []

    def work(writer: int) -> None:
        own = handle(committer)
        for number in range(6):
            try:
                own.update_snapshot().fast_append([data_file(f"memory://d/{writer}-{number}", 3)])
            except Exception as error:  # noqa: BLE001 - told below
                errors.append(error)

    threads = [threading.Thread(target=work, args=(writer,)) for writer in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    table.refresh()
    assert len(live_paths(table)) == 24
    assert len(table.snapshots()) == 24
    current = table.current_snapshot()
    assert current is not None
    assert len(list(table.metadata.ancestors(current.snapshot_id))) == 24
    assert current.summary is not None
    assert current.summary["total-records"] == "72"
    if allows(version, Feature.ROW_LINEAGE):
        assert table.metadata.next_row_id == 72


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_a_plan_on_a_snapshot_that_was_rolled_back_is_refused(version: int) -> None:
    table, _ = new_table(version, BY_REGION)
    first = table.update_snapshot().fast_append([data_file("memory://d/a", region="eu")])
    table.update_snapshot().fast_append([data_file("memory://d/b", region="us")])
    planned = Planned.on(table.metadata)
    assert first is not None
    table.manage_snapshots().rollback_to_snapshot(first.snapshot_id).commit()
    with pytest.raises(ValidationError, match="cannot be determined"):
        table.update_snapshot().delete_files(["memory://d/a"], planned)
    with pytest.raises(ValidationError, match="cannot be determined"):
        table.update_snapshot().replace_partitions([data_file(region="eu")], planned)
    if allows(version, Feature.DELETION_VECTORS):
        with pytest.raises(ValidationError, match="cannot be determined"):
            table.update_snapshot().row_delta(planned, vectors={"memory://d/a": [1]})


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_what_was_planned_on_an_empty_table_minds_what_came(version: int) -> None:
    table, committer = new_table(version, BY_REGION)
    planned = Planned.on(table.metadata)
    assert planned.snapshot_id is None
    handle(committer).update_snapshot().fast_append([data_file("memory://d/a", region="eu")])
    with pytest.raises(ValidationError, match="may affect"):
        table.update_snapshot().replace_partitions([data_file(region="eu")], planned)
    table.update_snapshot().replace_partitions([data_file(region="us")], planned)
    relaxed = replace(planned, isolation=Isolation.SNAPSHOT)
    table.update_snapshot().replace_partitions([data_file("memory://d/b", region="eu")], relaxed)
    assert "memory://d/a" not in live_paths(table)


def test_the_isolation_of_a_command_is_a_property_of_the_table() -> None:
    table, _ = new_table(2, properties={"write.delete.isolation-level": "snapshot"})
    assert Isolation.of(table.metadata, props.DELETE_ISOLATION_LEVEL) is Isolation.SNAPSHOT
    with pytest.raises(InvalidPropertyError):
        table.set_properties({"write.delete.isolation-level": "none"})


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_summaries_of_partitions_are_written_up_to_the_limit(version: int) -> None:
    table, _ = new_table(version, BY_REGION, {"write.summary.partition-limit": "2"})
    made = table.update_snapshot().fast_append([data_file(rows=1, region="a/b"), data_file(rows=2, region="c")])
    assert made is not None
    assert made.summary is not None
    assert made.summary["partition-summaries-included"] == "true"
    assert made.summary["partitions.region=c"] == "added-data-files=1,added-records=2,added-files-size=200"
    assert made.summary["partitions.region=a%2Fb"].startswith("added-data-files=1")
    three = table.update_snapshot().fast_append([data_file(region=each) for each in "xyz"])
    assert three is not None
    assert three.summary is not None
    assert "partition-summaries-included" not in three.summary.properties


@pytest.mark.parametrize("version", [each for each in ALL_VERSIONS if allows(each, Feature.DELETION_VECTORS)])
def test_delete_manifests_are_merged_and_rewritten_too(version: int) -> None:
    table, _ = new_table(version, BY_REGION, {"commit.manifest.min-count-to-merge": "3"})
    table.update_snapshot().fast_append([data_file(f"memory://d/{n}", 10, "eu") for n in range(6)])
    for number in range(6):
        table.update_snapshot().row_delta(Planned.on(table.metadata), vectors={f"memory://d/{number}": [number]})
    kinds = [each.content for each in manifests(table)]
    assert kinds.count(ManifestContent.DELETES) < 6
    deletes = entries(table, ManifestContent.DELETES)
    assert len(deletes) == 6
    table.update_snapshot().rewrite_manifests(ManifestContent.DELETES)
    after = {each.data_file.referenced_data_file: each for each in entries(table, ManifestContent.DELETES)}
    for each in deletes:
        found = after[each.data_file.referenced_data_file]
        assert found.data_file == each.data_file
        assert found.sequence_number == each.sequence_number
        assert found.data_file.first_row_id is None


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_metadata_and_manifests_go_where_the_table_says(version: int) -> None:
    table, _ = new_table(version, properties={"write.metadata.path": "memory://elsewhere/meta/"})
    made = table.update_snapshot().fast_append([data_file()])
    assert made is not None
    assert str(made.manifest_list).startswith("memory://elsewhere/meta/snap-")
    assert all(each.manifest_path.startswith("memory://elsewhere/meta/") for each in manifests(table))
    assert len(live_paths(table)) == 1
