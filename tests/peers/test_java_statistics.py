"""Statistics side by side with Java Iceberg: the same bytes in sketches, the same rows in partition statistics."""

from icefloe import Table
from icefloe.metadata.table import BlobMetadata
from tests.peers.java import JAVA_VERSIONS
from tests.peers.lake import Lake
from tests.peers.test_java_writes import COLUMNS, ROWS, cell
from tests.puffin_files import decode_puffin

Stored = tuple[tuple[BlobMetadata, ...], dict[int, bytes]]


def stored(table: Table) -> Stored:
    """What the newest statistics file says of its blobs, and the blobs by field."""
    file = table.refresh().statistics()[-1]
    footer, blobs = decode_puffin(table.storage.read(file.statistics_path), file.statistics_path)
    assert file.file_footer_size_in_bytes == footer.size
    return file.blob_metadata, {blob.fields[0]: data for blob, data in zip(footer.blobs, blobs, strict=True)}


def both(lake: Lake, table: Table, arguments: str = "", columns: list[str] | None = None) -> tuple[Stored, Stored]:
    """What Java stores, and what we store."""
    lake.java.sql(f"CALL peers.system.compute_table_stats(table => '{'.'.join(table.name())}'{arguments})")
    theirs = stored(table)
    table.maintenance.compute_table_stats(columns=columns)
    return theirs, stored(table)


@cell("sketches of distinct values: bytes of all types, nulls, empty texts; deletes and nested columns")
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
