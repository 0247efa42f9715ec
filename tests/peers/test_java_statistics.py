"""Statistics side by side with Java Iceberg: the same bytes in sketches, the same rows in partition statistics."""

import uuid

import pyarrow as pa
import pytest

from icefloe import Table
from icefloe.commit import StatisticsChange
from icefloe.metadata.table import BlobMetadata
from icefloe.schema import NestedField, Schema, types
from icefloe.versions import Feature, allows
from tests.peers.java import JAVA_VERSIONS
from tests.peers.lake import Lake
from tests.peers.test_java_writes import COLUMNS, ROWS
from tests.puffin_files import decode_puffin

Rows = dict[str, dict[str, object]]
Stored = tuple[tuple[BlobMetadata, ...], dict[int, bytes]]


def stored(table: Table) -> Stored:
    """What the newest statistics file says of its blobs, and the blobs by field."""
    current = table.refresh().metadata.current_snapshot_id
    [file] = [file for file in table.statistics() if file.snapshot_id == current]
    footer, blobs = decode_puffin(table.storage.read(file.statistics_path), file.statistics_path)
    assert file.file_footer_size_in_bytes == footer.size
    return file.blob_metadata, {blob.fields[0]: data for blob, data in zip(footer.blobs, blobs, strict=True)}


def both(lake: Lake, table: Table, arguments: str = "", columns: list[str] | None = None) -> tuple[Stored, Stored]:
    """What Java stores, and what we store."""
    lake.java.sql(f"CALL peers.system.compute_table_stats(table => '{'.'.join(table.name())}'{arguments})")
    theirs = stored(table)
    table.maintenance.compute_table_stats(columns=columns)
    return theirs, stored(table)


def test_sketches(lake: Lake) -> None:
    name, there = lake.made_by_java(JAVA_VERSIONS[-1], COLUMNS, mode="merge-on-read")
    lake.java.sql(f"INSERT INTO {there} VALUES {', '.join(ROWS)}, (3{', null' * 14})")
    lake.java.sql(
        f"INSERT INTO {there} (id, n, name, price, place) SELECT id % 4093 + 10, id % 7, concat('n', id % 4095), id % 11,"
        f" named_struct('zip', concat('z', id % 5), 'at', null) FROM range(4096)"
    )
    lake.java.sql(f"DELETE FROM {there} WHERE id = 3")
    table = lake.sql_catalog.load_table(name)
    theirs, ours = both(lake, table)
    assert ours == theirs
    theirs, ours = both(lake, table, ", columns => array('place.zip', 'place.at.x')", ["place.zip", "place.at.x"])
    assert ours == theirs
    lake.java.sql(f"INSERT INTO {there} (id) SELECT id + 100000 FROM range(60000)")
    (about_theirs, _), (about_ours, _) = both(lake, table, ", columns => array('id')", ["id"])
    estimates = [int(blob.properties["ndv"]) for blob in (*about_theirs, *about_ours)]
    assert all(abs(estimate - 64_096) < 0.05 * 64_096 for estimate in estimates)


def test_uuids_are_sketched_by_their_bytes(lake: Lake) -> None:
    """Java sketches their text, since that is what Spark has; the spec asks for the 16 bytes."""
    table = lake.create(JAVA_VERSIONS[-1], Schema(NestedField(1, "u", types.UUIDType())))
    values = [uuid.UUID(int=number).bytes for number in range(5)]
    table.append(pa.table({"u": pa.array(values, pa.binary(16)).cast(pa.uuid())}))
    (about_theirs, theirs), (about_ours, ours) = both(lake, table)
    assert about_ours == about_theirs
    assert ours != theirs


# -- partitions


def rows_of_file(table: Table) -> Rows:
    """The rows of the current snapshot's file, by spec and partition; without the column that Java leaves null."""
    rows = table.refresh().inspect.partition_statistics().to_pylist()
    return {
        f"{row['spec_id']} {sorted(row['partition'].items())}": {
            name: value for name, value in row.items() if name not in ("partition", "total_record_count")
        }
        for row in rows
        if row["data_file_count"] or row["position_delete_file_count"] or row["dv_count"]
    }


def counted_by_both(lake: Lake, table: Table, keep_ours: bool) -> tuple[Rows, Rows]:
    """What Java and we make of the same earlier file, Java's or ours; one of both files stays."""
    lake.java.sql(f"CALL peers.system.compute_partition_stats(table => '{'.'.join(table.name())}')")
    theirs, current = rows_of_file(table), table.metadata.current_snapshot_id
    [entry] = [file for file in table.partition_statistics() if file.snapshot_id == current]
    with table.transaction() as tx:
        tx.update_statistics(StatisticsChange(remove_partition_for=(entry.snapshot_id,)))
    has_earlier = bool(table.partition_statistics())
    done = table.maintenance.compute_partition_stats()
    assert (done.counted_from is not None) == has_earlier
    ours = rows_of_file(table)
    if not keep_ours:
        with table.transaction() as tx:
            tx.update_statistics(StatisticsChange(set_partition_files=(entry,)))
    return theirs, ours


@pytest.mark.parametrize("version", [version for version in JAVA_VERSIONS if allows(version, Feature.DELETE_FILES)])
def test_partitions(lake: Lake, version: int) -> None:
    """The same rows from scratch, and carried on from each other's files, after changes of the spec."""
    name, there = lake.made_by_java(
        version, "id BIGINT, name STRING, day DATE", "PARTITIONED BY (name, bucket(3, id))", "merge-on-read"
    )
    table = lake.sql_catalog.load_table(name)
    for number, statement in enumerate(
        (
            "INSERT INTO {0} SELECT id, concat('n', id % 2), DATE'2026-01-01' FROM range(12)",
            "DELETE FROM {0} WHERE id IN (1, 2, 3)",
            "ALTER TABLE {0} ADD PARTITION FIELD day",
            "ALTER TABLE {0} RENAME COLUMN name TO label",
            "ALTER TABLE {0} DROP PARTITION FIELD day",
        )
    ):
        lake.java.sql(statement.format(there))
        if statement.startswith("ALTER"):
            lake.java.sql(f"INSERT INTO {there} SELECT id, 'x', null FROM range(3)")
            lake.java.sql(f"DELETE FROM {there} WHERE id = {number}")
        theirs, ours = counted_by_both(lake, table, keep_ours=number % 2 == 0)
        assert ours == theirs, statement
    # A field before others goes: Java takes values of one field for those of another, or counts below zero [J #17915].
    lake.java.sql(f"ALTER TABLE {there} DROP PARTITION FIELD name")
    lake.java.sql(f"INSERT INTO {there} SELECT id, 'x', null FROM range(3)")
    lake.java.sql(f"INSERT INTO {there} SELECT id, 'y', null FROM range(3)")
    counted_by_both(lake, table, keep_ours=True)
    lake.java.sql(f"DELETE FROM {there} WHERE id = 0")
    lake.java.sql(f"INSERT INTO {there} SELECT id, 'z', null FROM range(5)")
    theirs, ours = counted_by_both(lake, table, keep_ours=True)
    assert ours != theirs
    with table.transaction() as tx:
        ids = tuple(file.snapshot_id for file in table.partition_statistics())
        tx.update_statistics(StatisticsChange(remove_partition_for=ids))
    from_scratch, ours_from_scratch = counted_by_both(lake, table, keep_ours=True)
    assert ours == ours_from_scratch == from_scratch
    assert table.verify(level="data").clean
