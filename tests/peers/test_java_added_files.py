"""Files that others wrote: Java Iceberg reads tables that we added them to, and adds the same ones itself."""

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from icefloe.sql.procedures import call
from tests.peers.lake import SQL, Lake

COLUMNS = "id long, name string, at timestamptz, price decimal(9,2), tags list<string>, p int"
SPARKS = "id bigint, name string, at timestamp, price decimal(9,2), tags array<string>, p int"


def folder(home: Path) -> Path:
    """A folder as Spark or Hive have it: partitions by name, a null among them, and the oldest kind of timestamps."""
    for i, value in enumerate(("1", "2", "__HIVE_DEFAULT_PARTITION__")):
        place = home / f"p={value}"
        place.mkdir(parents=True)
        rows = {
            "id": pa.array([10 * i, 10 * i + 1], pa.int64()),
            "name": ["é", None],
            "at": pa.array([dt.datetime(2024, 1, 31, 3, 4, 5, i), None], pa.timestamp("us")),
            "price": pa.array([None, 1], pa.decimal128(9, 2)),
            "tags": pa.array([["x", None], []], pa.list_(pa.string())),
        }
        pq.write_table(pa.table(rows), place / "part.parquet", use_deprecated_int96_timestamps=True)
    return home


def test_java_reads_files_that_were_added(lake: Lake, tmp_path: Path) -> None:
    home = folder(tmp_path / "in")
    table = lake.create(2, COLUMNS, partition_spec=["p"])
    source = f"parquet.`{home}`"
    name = ".".join(table.name())
    (done,) = call(lake.sql_catalog, "add_files", (name, source)).to_pylist()
    table.refresh()
    assert len(lake.same(table)) == 6
    there = lake.java.rows(f"SELECT id FROM {lake.their_name(table)} WHERE p = 2 AND id > 10")
    assert [each["id"] for each in there] == [11]
    theirs, shown = lake.made_by_java(2, SPARKS, "PARTITIONED BY (p)")
    (there_done,) = lake.java.rows(f"CALL {SQL}.system.add_files('{theirs}', '{source}')")
    # Java does not count partitions where it adds whole manifests.
    assert there_done == {**done, "changed_partition_count": None}
    assert done["changed_partition_count"] == 3
    assert lake.java.rows(f"SELECT count(*) AS n FROM {shown}") == [{"n": 6}]
    assert len(lake.same(lake.sql_catalog.load_table(theirs))) == 6
