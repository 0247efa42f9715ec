"""Statistics of partitions: the same counts as the entries of manifests one by one, whole and from an earlier file."""

import logging
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from icefloe import Table, load_catalog
from icefloe.commit import StatisticsChange
from icefloe.errors import NoSuchSnapshotError, StateError
from icefloe.inspect import partition_statistics as stats
from icefloe.manifests import FileContent, SnapshotManifests
from icefloe.metadata import Snapshot
from icefloe.schema import types
from icefloe.sql.procedures import call
from icefloe.verification import silent
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.maintenance.histories import STEPS, History, new_table, some_rows, steps
from tests.maintenance.test_expire_snapshots import FUTURE, on_disk
from tests.spark.reading import delete_equal

Counts = dict[tuple[int, str], dict[str, int | None]]
_NAMES = {
    FileContent.DATA: (stats.DATA_RECORDS, stats.DATA_FILES),
    FileContent.POSITION_DELETES: (stats.POSITION_DELETE_RECORDS, stats.POSITION_DELETE_FILES),
    FileContent.EQUALITY_DELETES: (stats.EQUALITY_DELETE_RECORDS, stats.EQUALITY_DELETE_FILES),
}


def one_by_one(table: Table, snapshot: Snapshot) -> Counts:
    """The counts of each partition, from one live file after the other."""
    metadata = table.metadata
    source = SnapshotManifests(metadata, table.storage.read)
    counts: Counts = defaultdict(lambda: dict.fromkeys(stats.COUNTS, 0))
    for manifest in source.of(snapshot):
        columns = source.entries(manifest, partition_type=metadata.partition_type(manifest.partition_spec_id))
        for file in columns.filter(columns.is_live).files():
            fields = metadata.spec(manifest.partition_spec_id).fields
            values = {field.field_id: value for field, value in zip(fields, file.partition, strict=True)}
            row: Any = counts[manifest.partition_spec_id, key_of(values)]
            records, files = _NAMES[file.content]
            row[records] += file.record_count
            row[stats.VECTORS if file.is_deletion_vector else files] += 1
            row[stats.DATA_BYTES] += file.file_size_in_bytes if file.content is FileContent.DATA else 0
    return dict(counts)


def key_of(values: dict[int, Any]) -> str:
    return repr(sorted((field_id, value) for field_id, value in values.items() if value is not None))


def stored(table: Table, snapshot: Snapshot | None = None) -> Counts:
    """The same as the file of a snapshot has it."""
    rows = table.inspect.partition_statistics(None if snapshot is None else snapshot.snapshot_id)
    ids = {field.name: field.field_id for field in stats.statistics_partition_type(table.metadata).fields}
    internal = rows.column(stats.PARTITION_COLUMN).combine_chunks().flatten()
    columns = [each.cast(pa.int32()) if pa.types.is_date(each.type) else each for each in internal]
    partitions = [
        dict(zip(ids.values(), values, strict=True)) for values in zip(*map(pa.Array.to_pylist, columns), strict=True)
    ]
    return {
        (row[stats.SPEC_ID], key_of(partition)): {name: row[name] for name in stats.COUNTS}
        for row, partition in zip(rows.to_pylist(), partitions, strict=True)
    }


def current(table: Table) -> Snapshot:
    snapshot = table.current_snapshot()
    assert snapshot is not None
    return snapshot


def partitioned(folder: Path, version: int, *fields: tuple[str, str], **properties: str) -> Table:
    table = new_table(folder, version)
    table.set_properties(properties)
    with table.update_spec() as spec:
        for column, transform in fields:
            spec.add_field(column, transform)
    return table


@pytest.mark.parametrize("version", ALL_VERSIONS)
@settings(max_examples=settings().max_examples // 10, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_counts_are_those_of_the_files(
    version: int, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whole or carried on, and over every change of spec, schema and version."""
    history = History(new_table(tmp_path_factory.mktemp("partitions"), version))
    table = history.table
    history.step("partition", data.draw(st.integers(0, 3)))
    history.step("append", 0)
    table.maintenance.compute_partition_stats()
    for _ in range(data.draw(st.integers(1, 3))):
        for name, number in data.draw(steps(*(name for name in STEPS if name != "stage"), min_size=1, max_size=4)):
            history.step(name, number)
        snapshot = current(table)
        expected = one_by_one(table, snapshot)
        has_file = any(file.snapshot_id == snapshot.snapshot_id for file in table.partition_statistics())
        done = table.maintenance.compute_partition_stats()
        assert (done.partition_statistics_file is None) == (not expected), history.steps
        assert stored(table) == expected, history.steps
        if expected and not has_file:
            assert done.counted_from is not None, history.steps
    assert table.verify(level="data", progress=silent).ok


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_columns_of_each_version(version: int, tmp_path: Path) -> None:
    table = partitioned(tmp_path, version, ("name", "identity"))
    table.append(some_rows(table, 0))
    done = table.maintenance.compute_partition_stats()
    [entry] = table.partition_statistics()
    assert table.metadata.resolve(entry.statistics_path) == done.partition_statistics_file
    content = table.storage.read(str(done.partition_statistics_file))
    assert entry.file_size_in_bytes == len(content)
    has_vectors = allows(version, Feature.DELETION_VECTORS)
    written = pq.read_table(pa.BufferReader(content))
    ids = [int(field.metadata[b"PARQUET:field_id"]) for field in written.schema]
    assert ids == [*range(1, 13), *([13] if has_vectors else [])]
    required = {1, 2, 3, 4, 5} | ({6, 7, 8, 9, 13} if has_vectors else set())
    assert {number for number, field in zip(ids, written.schema, strict=True) if not field.nullable} == required
    names = [row["partition"]["name"] for row in written.to_pylist()]
    assert names == [None, *sorted(name for name in names if name is not None)]


@pytest.mark.parametrize("file_format", ["avro", "orc"])
def test_other_formats(file_format: str, tmp_path: Path) -> None:
    table = partitioned(tmp_path, 3, ("name", "identity"), ("k", "bucket[2]"), **{"write.format.default": file_format})
    for first in (0, 4):
        table.append(some_rows(table, first))
        done = table.maintenance.compute_partition_stats()
        assert str(done.partition_statistics_file).endswith(f".{file_format}")
        assert stored(table) == one_by_one(table, current(table))
    assert done.counted_from is not None


@pytest.mark.parametrize("version", [2, 3])
def test_replaced_and_dropped_fields(version: int, tmp_path: Path) -> None:
    """[J #17915]: the field that goes is not the last one; rows of old specs are removed afterwards."""
    table = partitioned(tmp_path, version, ("k", "bucket[3]"), ("name", "identity"))
    table.append(some_rows(table, 0, 12))
    table.maintenance.compute_partition_stats()
    with table.update_spec() as spec:
        spec.remove_field("k_bucket_3")
        spec.add_field("k", "bucket[5]")
    table.append(some_rows(table, 12, 12))
    table.delete("k < 4")
    assert table.maintenance.compute_partition_stats().counted_from is not None
    assert stored(table) == one_by_one(table, current(table))
    with table.update_spec() as spec:
        spec.remove_field("name")
    table.append(some_rows(table, 24, 12))
    table.delete("k > 8 and k < 20")
    assert table.maintenance.compute_partition_stats().counted_from is not None
    assert stored(table) == one_by_one(table, current(table))


def test_counted_from_scratch_after_evolution(tmp_path: Path) -> None:
    """[J #12168]: one tuple in two specs, and a field that a spec lacks beside one that is null."""
    table = partitioned(tmp_path, 2, ("name", "identity"))
    table.append(pa.table({"k": [1, 2], "name": ["foo", "bar"]}))
    with table.update_spec() as spec:
        spec.add_field("day", "identity")
    table.append(pa.table({"k": [3, 4], "name": ["foo", "foo"], "day": pa.array([None, 1], pa.date32())}))
    assert table.maintenance.compute_partition_stats().partitions == 4
    assert stored(table) == one_by_one(table, current(table))


def test_files_removed_by_several_snapshots(tmp_path: Path) -> None:
    """[J #13155]: entries of removed files are only in the manifests of the snapshot that removed them."""
    table = partitioned(tmp_path, 2, ("name", "identity"))
    table.set_properties({"write.delete.mode": "copy-on-write"})
    table.append(some_rows(table, 0, 12))
    table.append(some_rows(table, 20, 6))
    table.maintenance.compute_partition_stats()
    for name in ("a", "b"):
        table.delete(f"name = '{name}'")
    table.append(some_rows(table, 40, 1))
    done = table.maintenance.compute_partition_stats()
    assert done.counted_from is not None
    assert stored(table) == one_by_one(table, current(table))
    table.delete("k >= 0")
    gone = table.maintenance.compute_partition_stats()
    assert gone.partition_statistics_file is None


def test_dropped_source_column(tmp_path: Path) -> None:
    """Partitions stay apart by a field whose column is gone."""
    table = partitioned(tmp_path, 3, ("name", "identity"), ("k", "bucket[2]"))
    table.append(some_rows(table, 0, 12))
    table.maintenance.compute_partition_stats()
    with table.update_spec() as spec:
        spec.remove_field("name")
    with table.update_schema() as schema:
        schema.delete_column("name")
    table.append(some_rows(table, 12, 6))
    assert table.maintenance.compute_partition_stats().counted_from is not None
    expected = one_by_one_with_dropped(table)
    assert stored(table) == expected
    assert len(expected) > 6


def one_by_one_with_dropped(table: Table) -> Counts:
    """With the types of partition fields from the first schema, which has all columns."""
    metadata = table.metadata.evolve(current_schema_id=table.metadata.schemas[0].schema_id)
    return one_by_one(type("Handle", (), {"metadata": metadata, "storage": table.storage})(), current(table))


def test_upgrade_and_promotion(tmp_path: Path) -> None:
    table = partitioned(tmp_path, 2)
    with table.update_schema() as schema:
        schema.add_column("n", types.IntegerType())
    with table.update_spec() as spec:
        spec.add_field("n", "identity")
    table.append(pa.table({"k": [1, 2, 3], "n": pa.array([1, 1, None], pa.int32())}))
    table.delete("k = 1")
    table.maintenance.compute_partition_stats()
    table.upgrade_format_version(3)
    with table.update_schema() as schema:
        schema.update_column("n", types.LongType())
    table.append(pa.table({"k": [4, 5], "n": [1, 2**40]}))
    table.delete("k = 4")
    assert table.maintenance.compute_partition_stats().counted_from is not None
    assert stored(table) == one_by_one(table, current(table))


def left_of(table: Table) -> dict[str | None, int | None]:
    rows = table.inspect.partition_statistics().to_pylist()
    return {row["partition"]["name"]: row["total_record_count"] for row in rows}


def test_rows_that_are_left(tmp_path: Path) -> None:
    """Known where nothing but deletion vectors deletes."""
    rows = pa.table({"k": range(6), "name": ["a", "a", "a", "b", "b", "b"]})
    vectors = partitioned(tmp_path, 3, ("name", "identity"))
    vectors.append(rows)
    vectors.delete("k in (0, 1, 3)")
    vectors.maintenance.compute_partition_stats()
    assert left_of(vectors) == {"a": 1, "b": 2}
    positions = partitioned(tmp_path, 2, ("name", "identity"))
    positions.append(rows)
    positions.delete("k = 0")
    positions.maintenance.compute_partition_stats()
    assert left_of(positions) == {"a": None, "b": 3}
    everywhere = new_table(tmp_path, 3)
    everywhere.append(rows)
    with everywhere.update_spec() as spec:
        spec.add_field("name", "identity")
    everywhere.append(rows)
    everywhere.maintenance.compute_partition_stats()
    assert left_of(everywhere) == {None: 6, "a": 3, "b": 3}
    with everywhere.update_spec() as spec:
        spec.remove_field("name")
    delete_equal(everywhere, {"k": [1]})
    everywhere.maintenance.compute_partition_stats()
    assert set(left_of(everywhere).values()) == {None}


def test_doubtful_files_are_not_carried_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    table = partitioned(tmp_path, 2, ("name", "identity"))
    table.append(some_rows(table, 0))
    first = table.maintenance.compute_partition_stats()
    [entry] = table.partition_statistics()
    table.append(some_rows(table, 3))
    location = str(first.partition_statistics_file)
    good = table.storage.read(location)
    rows = pq.read_table(pa.BufferReader(good))
    position = rows.schema.get_field_index("data_record_count")
    more = rows.set_column(position, rows.schema.field(position), pa.array([7] * rows.num_rows))
    for changed, why in (
        (None, "does not exist"),
        (b"PAR1 no more", "arquet"),
        (parquet_bytes(more), "the manifest list says"),
        (parquet_bytes(pa.concat_tables([rows, rows])), "two rows for one partition"),
        (parquet_bytes(rows.slice(1)), "the manifest list says"),
    ):
        if changed is None:
            table.storage.delete([location])
        else:
            table.storage.write(location, changed)
            with table.transaction() as tx:
                tx.update_statistics(
                    StatisticsChange(set_partition_files=(replace(entry, file_size_in_bytes=len(changed)),))
                )
        with caplog.at_level(logging.WARNING):
            done = table.maintenance.compute_partition_stats()
        assert done.counted_from is None
        assert stored(table) == one_by_one(table, current(table))
        assert "from scratch" in caplog.text
        assert why in caplog.text
        caplog.clear()
        with table.transaction() as tx:
            tx.update_statistics(StatisticsChange(remove_partition_for=(current(table).snapshot_id,)))


def parquet_bytes(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink)
    return bytes(sink.getvalue())


def test_a_gap_in_the_history(tmp_path: Path) -> None:
    table = partitioned(tmp_path, 2, ("name", "identity"))
    for first in (0, 3, 6):
        table.append(some_rows(table, first))
        if first == 0:
            table.maintenance.compute_partition_stats()
            table.manage_snapshots().create_tag("start").commit()
    table.maintenance.expire_snapshots(older_than=FUTURE, retain_last=1)
    assert len(table.snapshots()) == 2
    assert table.maintenance.compute_partition_stats().counted_from is None
    assert stored(table) == one_by_one(table, current(table))


def test_files_of_other_branches_are_not_carried_on(tmp_path: Path) -> None:
    table = partitioned(tmp_path, 2, ("name", "identity"))
    table.append(some_rows(table, 0))
    table.manage_snapshots().create_branch("audit").commit()
    table.append(some_rows(table, 3), branch="audit")
    side = table.snapshot_by_name("audit")
    assert side is not None
    table.maintenance.compute_partition_stats(side.snapshot_id)
    assert stored(table, side) == one_by_one(table, side)
    table.append(some_rows(table, 6))
    assert table.maintenance.compute_partition_stats().counted_from is None
    assert stored(table) == one_by_one(table, current(table))


def test_a_second_run_does_nothing(tmp_path: Path) -> None:
    table = partitioned(tmp_path, 2, ("name", "identity"))
    table.append(some_rows(table, 0))
    first = table.maintenance.compute_partition_stats()
    location = table.metadata_location
    again = table.maintenance.compute_partition_stats()
    assert again.partition_statistics_file == first.partition_statistics_file
    assert table.refresh().metadata_location == location


def test_empty_tables_and_bad_input(tmp_path: Path) -> None:
    table = new_table(tmp_path, 2)
    with pytest.raises(StateError, match="never had a partition field"):
        table.maintenance.compute_partition_stats()
    with table.update_spec() as spec:
        spec.add_field("name", "identity")
    assert table.maintenance.compute_partition_stats().partition_statistics_file is None
    assert table.inspect.partition_statistics().num_rows == 0
    with pytest.raises(NoSuchSnapshotError):
        table.maintenance.compute_partition_stats(7)


def test_no_file_stays_of_a_commit_that_failed(tmp_path: Path) -> None:
    table = partitioned(tmp_path, 2, ("name", "identity"))
    for first in (0, 3):
        table.append(some_rows(table, first))
    old = table.snapshots()[0].snapshot_id
    catalog = load_catalog(
        "lake", type="sql", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path / "files")
    )
    catalog.load_table(table.name()).maintenance.expire_snapshots(older_than=FUTURE, delete_files=False)
    with pytest.raises(NoSuchSnapshotError):
        table.maintenance.compute_partition_stats(old)
    assert not [path for path in on_disk(table) if "partition-stats" in path]


def test_procedure(tmp_path: Path) -> None:
    table = partitioned(tmp_path, 2, ("name", "identity"))
    catalog = load_catalog(
        "lake", type="sql", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path / "files")
    )
    name = ".".join(table.name())
    assert call(catalog, "compute_partition_stats", [name]).num_rows == 0
    table.append(some_rows(table, 0))
    rows = call(catalog, "compute_partition_stats", [name, current(table).snapshot_id]).to_pylist()
    assert rows == [
        {"partition_statistics_file": file.statistics_path} for file in table.refresh().partition_statistics()
    ]
