"""PyIceberg and DuckDB read our manifests and lists, and we read PyIceberg's."""

from pathlib import Path
from typing import Any

import duckdb
import duckdb_extension_avro
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import (
    DataFile as PeerDataFile,
    DataFileContent,
    FileFormat,
    ManifestEntry as PeerEntry,
    ManifestEntryStatus,
    read_manifest_list as peer_read_list,
    write_manifest as peer_write,
    write_manifest_list as peer_write_list,
)
from pyiceberg.partitioning import PartitionField as PeerPartitionField, PartitionSpec as PeerSpec
from pyiceberg.schema import Schema as PeerSchema
from pyiceberg.transforms import DayTransform as PeerDay, IdentityTransform as PeerIdentity
from pyiceberg.typedef import Record
from pyiceberg.types import (
    LongType as PeerLong,
    NestedField as PeerField,
    StringType as PeerString,
    TimestampType as PeerTimestamp,
)

from icefloe.manifests import (
    DataFile,
    EntryStatus,
    FileContent,
    ManifestContent,
    ManifestEntry,
    ManifestFormat,
    StatsForm,
    encode_manifest_list,
    read_manifest,
    read_manifest_list,
    wanted,
    write_manifest,
)
from icefloe.partitioning import parse_partition_spec
from icefloe.schema import NestedField, Schema
from icefloe.schema.binary import encode
from icefloe.schema.types import LongType, StringType, TimestampType
from icefloe.versions import ALL_VERSIONS, Feature, allows

SCHEMA = Schema(
    NestedField(1, "id", LongType()), NestedField(2, "name", StringType()), NestedField(3, "ts", TimestampType())
)
SPEC = parse_partition_spec(["days(ts)", "name"], SCHEMA)
PEER_SCHEMA = PeerSchema(
    PeerField(1, "id", PeerLong()), PeerField(2, "name", PeerString()), PeerField(3, "ts", PeerTimestamp())
)
PEER_SPEC = PeerSpec(
    PeerPartitionField(3, 1000, PeerDay(), "ts_day"), PeerPartitionField(2, 1001, PeerIdentity(), "name")
)
METRICS: dict[str, Any] = {
    "column_sizes": {1: 80, 2: 90},
    "value_counts": {1: 10, 2: 10},
    "null_value_counts": {1: 0, 2: 1},
    "nan_value_counts": {},
    "lower_bounds": {1: encode(-5, LongType()), 2: "ä".encode()},
    "upper_bounds": {1: encode(2**40, LongType()), 2: b"z"},
}


def rows_for(version: int) -> list[ManifestEntry]:
    common: dict[str, Any] = {"split_offsets": (4, 100), "sort_order_id": 0, **METRICS}
    first = DataFile("s3://b/1", "parquet", 10, 100, partition=(20_000, "é"), **common)
    second = DataFile("s3://b/2", "avro", 20, 200, partition=(None, None), key_metadata=b"\x00k")
    third = DataFile("s3://b/3", "orc", 30, 300, partition=(-1, ""))
    numbers = (3, 4) if allows(version, Feature.SEQUENCE_NUMBERS) else (None, None)
    return [
        ManifestEntry(EntryStatus.ADDED, first, 77),
        ManifestEntry(EntryStatus.EXISTING, second, 55, *numbers),
        ManifestEntry(EntryStatus.DELETED, third, 77, *numbers),
    ]


def store(folder: Path) -> Any:
    return lambda location, data: Path(location).write_bytes(data)


def read(location: str) -> bytes:
    return Path(location.removeprefix("file://")).read_bytes()


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_pyiceberg_reads_our_manifests_and_lists(version: int, tmp_path: Path) -> None:
    rows = rows_for(version)
    form = ManifestFormat(version, SCHEMA, SPEC, 77, stats=StatsForm.MAPS)
    manifest = write_manifest(rows, form, str(tmp_path / "m.avro"), store(tmp_path))
    is_numbered = allows(version, Feature.SEQUENCE_NUMBERS)
    data = encode_manifest_list(
        [manifest],
        version,
        snapshot_id=77,
        parent_snapshot_id=None,
        sequence_number=9 if is_numbered else 0,
        first_row_id=0 if allows(version, Feature.ROW_LINEAGE) else None,
    ).data
    (tmp_path / "l.avro").write_bytes(data)
    io = PyArrowFileIO()
    (found,) = peer_read_list(io.new_input(str(tmp_path / "l.avro")))
    assert found.manifest_path == manifest.manifest_path
    assert (found.added_files_count, found.existing_files_count, found.deleted_files_count) == (1, 1, 1)
    assert (found.added_rows_count, found.existing_rows_count, found.deleted_rows_count) == (10, 20, 30)
    if is_numbered:
        assert (found.sequence_number, found.min_sequence_number) == (9, 3)
    assert manifest.partitions is not None
    for peer, summary in zip(found.partitions, manifest.partitions, strict=True):
        assert peer.contains_null == summary.contains_null
        assert (peer.lower_bound, peer.upper_bound) == (summary.lower_bound, summary.upper_bound)
    entries = found.fetch_manifest_entry(io, discard_deleted=False)
    (list_row,) = read_manifest_list(str(tmp_path / "l.avro"), read)
    own = list(read_manifest(list_row, read, partition_type=form.partition_type).entries())
    assert len(entries) == len(own) == 3
    for theirs, ours in zip(entries, own, strict=True):
        file, mine = theirs.data_file, ours.data_file
        assert (int(theirs.status), theirs.snapshot_id) == (ours.status, ours.snapshot_id)
        assert (theirs.sequence_number, theirs.file_sequence_number) == (
            ours.sequence_number,
            ours.file_sequence_number,
        )
        assert (file.file_path, file.file_format.value.lower()) == (mine.file_path, mine.file_format)
        assert tuple(file.partition) == mine.partition
        assert (file.record_count, file.file_size_in_bytes) == (mine.record_count, mine.file_size_in_bytes)
        for name in METRICS:
            assert (getattr(file, name) or {}) == getattr(mine, name)
        assert file.key_metadata == mine.key_metadata
        assert (file.split_offsets and tuple(file.split_offsets)) == mine.split_offsets
        assert file.sort_order_id == mine.sort_order_id


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("codec", ["null", "deflate", "zstandard"])
def test_we_read_pyiceberg_s_manifests_and_lists(version: Any, codec: Any, tmp_path: Path) -> None:
    io = PyArrowFileIO()
    output = io.new_output(str(tmp_path / "m.avro"))
    with peer_write(version, PEER_SPEC, PEER_SCHEMA, output, 77, codec) as writer:
        for i in range(5):
            file = PeerDataFile.from_args(
                content=DataFileContent.DATA,
                file_path=f"s3://b/{i}",
                file_format=FileFormat.PARQUET,
                partition=Record(20_000 + i, None if i == 3 else f"n{i}"),
                record_count=10 + i,
                file_size_in_bytes=100,
                **METRICS,
                split_offsets=[4],
                sort_order_id=0,
            )
            writer.add_entry(PeerEntry.from_args(status=ManifestEntryStatus.ADDED, snapshot_id=77, data_file=file))
    with peer_write_list(version, io.new_output(str(tmp_path / "l.avro")), 77, None, 9, codec) as lists:
        lists.add_manifests([writer.to_manifest_file()])
    (manifest,) = read_manifest_list(str(tmp_path / "l.avro"), read)
    assert (manifest.added_files_count, manifest.added_rows_count) == (5, 60)
    assert manifest.content is ManifestContent.DATA
    assert manifest.sequence_number == (9 if version == 2 else 0)
    assert manifest.partitions is not None
    assert [summary.contains_null for summary in manifest.partitions] == [False, True]
    kind = ManifestFormat(2, SCHEMA, SPEC, 1).partition_type
    columns = read_manifest(manifest, read, partition_type=kind)
    found = list(columns.entries())
    number = 9 if version == 2 else 0
    assert [entry.sequence_number for entry in found] == [number] * 5
    assert found[3].data_file == DataFile(
        "s3://b/3",
        "parquet",
        13,
        100,
        FileContent.DATA,
        0,
        (20_003, None),
        **METRICS,
        split_offsets=(4,),
        sort_order_id=0,
    )
    few = read_manifest(manifest, read, wanted("file_path", field_ids=[1]), partition_type=kind)
    bounds = few.upper_bounds(1, LongType())
    assert bounds is not None
    assert bounds.to_pylist() == [2**40] * 5


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_duckdb_s_avro_reader_reads_our_manifests(version: int, tmp_path: Path) -> None:
    rows = rows_for(version)
    form = ManifestFormat(version, SCHEMA, SPEC, 77, stats=StatsForm.MAPS)
    write_manifest(rows, form, str(tmp_path / "m.avro"), store(tmp_path))
    (extension,) = Path(duckdb_extension_avro.__file__).parent.rglob("avro.duckdb_extension")
    connection = duckdb.connect()
    connection.execute(f"load '{extension}'")
    query = f"select status, data_file.file_path, data_file.record_count from read_avro('{tmp_path / 'm.avro'}')"
    assert connection.execute(query).fetchall() == [(1, "s3://b/1", 10), (0, "s3://b/2", 20), (2, "s3://b/3", 30)]


def test_columns_feed_the_evaluation_of_predicates(tmp_path: Path) -> None:
    from icefloe.expressions import bind, parse_expression
    from icefloe.expressions.statistics import might_match

    rows = [
        ManifestEntry(
            EntryStatus.ADDED,
            DataFile(
                f"s3://b/{i}",
                "parquet",
                10,
                1,
                partition=(i, "a"),
                value_counts={1: 10},
                null_value_counts={1: 0},
                lower_bounds={1: encode(10 * i, LongType())},
                upper_bounds={1: encode(10 * i + 9, LongType())},
            ),
        )
        for i in range(10)
    ]
    manifest = write_manifest(rows, ManifestFormat(2, SCHEMA, SPEC, 1), str(tmp_path / "m"), store(tmp_path))
    columns = read_manifest(manifest, read, wanted("file_path", field_ids=[1]))
    mask = might_match(bind(parse_expression("id >= 35 and id < 50"), SCHEMA), columns)
    assert pa.array(mask).to_pylist() == [i in (3, 4) for i in range(10)]
    kept = columns.filter(mask)
    assert [file.file_path for file in kept.files()] == ["s3://b/3", "s3://b/4"]
    assert pc.sum(kept.record_counts).as_py() == 20
