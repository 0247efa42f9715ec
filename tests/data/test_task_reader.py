"""One task becomes batches: columns by id, constants, deletes, metadata columns, formats."""

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icefloe.data import data_file_of
from icefloe.data.scanning import read_tasks, to_arrow
from icefloe.encryption import FileKey, encode_key_metadata
from icefloe.errors import CorruptFileError, LocationNotFoundError, NoSuchColumnError
from icefloe.formats.file_formats import DATA_FORMATS, writer_of
from icefloe.manifests import DataFile
from icefloe.metadata import TableMetadata
from icefloe.partitioning import parse_partition_spec, unified_partition_type
from icefloe.planning import FileScanTask
from icefloe.schema import Schema, parse_ddl, reserved, types
from icefloe.storage import Storage, parse_location
from icefloe.storage.locations import Location
from icefloe.storage.memory import MemoryFiles
from icefloe.storage.streams import RangedInput
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.data.tables import PlannedScan, RowTable, numbers, rows_of

SCHEMA = Schema(
    types.NestedField(1, "id", types.LongType(), required=True),
    types.NestedField(2, "region", types.StringType()),
    types.NestedField(
        3,
        "place",
        types.StructType(
            types.NestedField(4, "zip", types.IntegerType()), types.NestedField(5, "town", types.StringType())
        ),
    ),
)
ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3, 4], pa.int64()),
        "region": pa.array(["eu", "eu", None, "us"]),
        "place": pa.array([{"zip": 1, "town": "a"}, None, {"zip": None, "town": "c"}, {"zip": 4, "town": "d"}]),
    },
    schema=pa.schema(
        [
            ("id", pa.int64()),
            ("region", pa.string()),
            ("place", pa.struct([("zip", pa.int32()), ("town", pa.string())])),
        ]
    ),
)
WITH_DELETES = [version for version in ALL_VERSIONS if allows(version, Feature.DELETE_FILES)]
WITH_VECTORS = [version for version in ALL_VERSIONS if allows(version, Feature.DELETION_VECTORS)]
WITH_LINEAGE = [version for version in ALL_VERSIONS if allows(version, Feature.ROW_LINEAGE)]


def write_file(table: RowTable, rows: Any, schema: Schema, file_format: str = "parquet", **fields: Any) -> DataFile:
    """A data file of other columns than those that the table has now."""
    location = f"{table.location}/data/{uuid.uuid4()}.{file_format}"
    with table.storage.open_output(location) as sink:
        writer = writer_of(file_format)(sink, schema)
        writer.write(rows)
        done = writer.close()
    return data_file_of(done, location, file_format, **fields)


def evolved(metadata: TableMetadata, *fields: types.NestedField) -> TableMetadata:
    """The table with another schema, the older ones kept."""
    schema = Schema(*fields, schema_id=len(metadata.schemas))
    return metadata.evolve(
        schemas=(*metadata.schemas, schema), current_schema_id=schema.schema_id, last_column_id=schema.highest_field_id
    )


@pytest.mark.parametrize("file_format", DATA_FORMATS)
@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_all_formats_give_the_same_rows(version: int, file_format: str) -> None:
    table = RowTable(SCHEMA, version, properties={"write.format.default": file_format})
    (file,) = table.append(ROWS)
    assert file.file_format == file_format
    assert file.file_path.endswith(f".{file_format}")
    assert rows_of(table.read()) == rows_of(ROWS)
    assert rows_of(table.read("place.zip >= 1 and region is not null", "id")) == [{"id": 1}, {"id": 4}]


@pytest.mark.parametrize("file_format", DATA_FORMATS)
@pytest.mark.parametrize("version", WITH_DELETES)
def test_deletes_of_all_kinds_apply_to_all_formats(version: int, file_format: str) -> None:
    table = RowTable(SCHEMA, version, properties={"write.format.default": file_format})
    (file,) = table.append(ROWS)
    table.delete_positions({file.file_path: [0]})
    table.commit([table.equality_file(ROWS.slice(2, 1), (2,), file_format=file_format)])
    assert rows_of(table.read(None, "id")) == [{"id": 2}, {"id": 4}]
    assert rows_of(table.read("id > 2", "region")) == [{"region": "us"}]


def test_a_filter_column_is_read_and_dropped() -> None:
    table = RowTable(SCHEMA, 2)
    table.append(ROWS)
    found = table.read("place.zip = 4", "id")
    assert found.schema.names == ["id"]
    assert rows_of(found) == [{"id": 4}]


@pytest.mark.parametrize("version", WITH_DELETES)
def test_filters_of_texts_that_repeat_know_deletes_and_changed_columns(version: int) -> None:
    schema = parse_ddl("id bigint, region string, note string")
    table = RowTable(schema, version)
    regions = ["eu", "us", None, "apac", "eu "]
    ids = range(4000)
    rows = {"id": ids, "region": [regions[i % 5] for i in ids], "note": [f"note {i % 3}" for i in ids]}
    (file,) = table.append(
        pa.table(rows, pa.schema([("id", pa.int64()), ("region", pa.string()), ("note", pa.string())]))
    )
    id_field, region, note = table.schema.fields
    place = replace(region, name="place")
    table.metadata = evolved(table.metadata, note, place, id_field, types.NestedField(9, "region", types.StringType()))
    table.delete_positions({file.file_path: range(0, 4000, 2)})

    def expected(numbers: Iterator[int]) -> list[dict[str, Any]]:
        return [{"place": rows["region"][i], "note": rows["note"][i]} for i in numbers]

    us = expected(i for i in ids if i % 2 and i % 5 == 1)
    assert rows_of(table.read("place = 'us'", "place", "note")) == us
    assert rows_of(table.read("place = 'us' and region is null", "place", "note")) == us
    missing = expected(i for i in ids if i % 2 and i % 5 == 2 and i % 3 < 2)
    assert rows_of(table.read("place is null and note < 'note 2'", "place", "note")) == missing
    found = table.read("not place like 'e%' and note = 'note 1'", "id", "_pos")
    assert found["id"].to_pylist() == [i for i in ids if i % 2 and i % 5 not in (0, 2, 4) and i % 3 == 1]
    assert found["_pos"].equals(found["id"])
    table.commit([table.equality_file(pa.table({"place": ["us"]}), (region.field_id,))])
    assert rows_of(table.read("place = 'us'", "note")) == []
    assert rows_of(table.read("place is null and note < 'note 2'", "place", "note")) == missing


def test_a_struct_is_cut_to_what_is_wanted_though_the_filter_needs_more() -> None:
    table = RowTable(SCHEMA, 2)
    table.append(ROWS)
    place = SCHEMA.find_field("place")
    wanted = Schema(replace(place, field_type=types.StructType(SCHEMA.find_field("place.town"))))
    tasks = table.tasks(table.bound("place.zip = 4 or place is null"))
    scan = PlannedScan(table.metadata, table.storage, columns=wanted, tasks=tasks)
    assert rows_of(to_arrow(scan)) == [{"place": None}, {"place": {"town": "d"}}]


def test_identity_partition_values_stand_in_for_columns_that_a_file_lacks() -> None:
    table = RowTable(SCHEMA, 2, parse_partition_spec(["region"], SCHEMA))
    bare = Schema(SCHEMA.fields[0])
    table.commit([write_file(table, numbers(7), bare, partition=("eu",))])
    table.commit([write_file(table, numbers(8), bare, partition=(None,))])
    assert rows_of(table.read(None, "id", "region")) == [{"id": 7, "region": "eu"}, {"id": 8, "region": None}]
    assert rows_of(table.read("region = 'eu'", "id")) == [{"id": 7}]


def test_a_name_mapping_gives_ids_to_files_that_have_none() -> None:
    mapping = '[{"field-id": 1, "names": ["old_id"]}, {"field-id": 2, "names": ["region"]}]'
    table = RowTable(SCHEMA, 2, properties={"schema.name-mapping.default": mapping})
    location = f"{table.location}/data/imported.parquet"
    with table.storage.open_output(location) as sink:
        pq.write_table(pa.table({"old_id": [5], "region": ["eu"], "id": [9]}), sink)
    size = table.storage.stat(location).size
    table.commit([DataFile(location, "parquet", 1, size)])
    assert rows_of(table.read("id = 5")) == [{"id": 5, "region": "eu", "place": None}]


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_metadata_columns(version: int) -> None:
    table = RowTable(SCHEMA, version, parse_partition_spec(["region", "bucket(4, id)"], SCHEMA))
    table.append(ROWS.slice(0, 1))
    partition = reserved.partition_column(unified_partition_type(table.metadata.partition_specs, SCHEMA))
    names = ("_spec_id", "_file", "_pos", "_deleted")
    wanted = Schema(partition, *table.columns(*names).fields)
    (row,) = rows_of(to_arrow(PlannedScan(table.metadata, table.storage, columns=wanted, tasks=table.tasks())))
    file = table.data[0].file
    assert row == {
        "_partition": {"region": "eu", "id_bucket": file.partition[1]},
        "_spec_id": 0,
        "_file": file.file_path,
        "_pos": 0,
        "_deleted": False,
    }


def test_partition_fields_that_a_spec_lacks_are_null() -> None:
    table = RowTable(SCHEMA, 2)
    table.append(ROWS.slice(0, 1))
    newer = parse_partition_spec(["region"], SCHEMA, spec_id=1)
    table.metadata = table.metadata.evolve(partition_specs=(*table.metadata.partition_specs, newer), default_spec_id=1)
    table.append(ROWS.slice(3, 1))
    partition = reserved.partition_column(unified_partition_type(table.metadata.partition_specs, SCHEMA))
    rows = rows_of(to_arrow(PlannedScan(table.metadata, table.storage, columns=Schema(partition), tasks=table.tasks())))
    assert rows == [{"_partition": {"region": None}}, {"_partition": {"region": "us"}}]


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_a_table_of_no_partition_has_empty_partitions(version: int) -> None:
    table = RowTable(SCHEMA, version)
    table.append(ROWS)
    wanted = Schema(reserved.partition_column(types.StructType()))
    rows = to_arrow(PlannedScan(table.metadata, table.storage, columns=wanted, tasks=table.tasks()))
    assert rows_of(rows) == [{"_partition": {}}] * 4


@pytest.mark.parametrize("version", WITH_LINEAGE)
@pytest.mark.parametrize(
    ("first_row_id", "stored", "expected"),
    [
        (100, False, [(100, 7), (101, 7), (102, 7)]),
        (100, True, [(55, 3), (101, 7), (102, 4)]),
        (None, False, [(None, None)] * 3),
        (None, True, [(None, None)] * 3),
    ],
)
def test_row_lineage_is_stored_or_inherited(
    version: int, first_row_id: int | None, stored: bool, expected: list[tuple[int | None, int | None]]
) -> None:
    table = RowTable(Schema(SCHEMA.fields[0]), version)
    rows = numbers(1, 2, 3)
    columns = table.schema
    if stored:
        columns = Schema(*columns.fields, *reserved.ROW_LINEAGE_COLUMNS)
        rows = rows.append_column("_row_id", pa.array([55, None, None], pa.int64()))
        rows = rows.append_column("_last_updated_sequence_number", pa.array([3, None, 4], pa.int64()))
    file = write_file(table, rows, columns, first_row_id=first_row_id)
    wanted = Schema(*reserved.ROW_LINEAGE_COLUMNS)
    task = FileScanTask(file, (), table.tasks()[0].residual if table.data else table.bound("true"), 7)
    found = rows_of(pa.Table.from_batches(read_tasks([task], wanted, table.metadata, table.storage)))
    assert [(row["_row_id"], row["_last_updated_sequence_number"]) for row in found] == expected


@pytest.mark.parametrize("version", WITH_LINEAGE)
def test_row_ids_count_deleted_rows_and_rows_that_a_filter_drops(version: int) -> None:
    table = RowTable(Schema(SCHEMA.fields[0]), version)
    (file,) = table.append(numbers(10, 11, 12, 13))
    table.delete_positions({file.file_path: [1]})
    assert rows_of(table.read("id > 10", "_row_id")) == [{"_row_id": 2}, {"_row_id": 3}]


@pytest.mark.parametrize("version", WITH_DELETES)
def test_equality_deletes_know_null_and_columns_of_structs(version: int) -> None:
    table = RowTable(SCHEMA, version)
    table.append(ROWS)
    keys = pa.table({"id": [0], "region": [None], "place": [None]}, schema=ROWS.schema)
    table.commit([table.equality_file(keys, (4,))])
    assert rows_of(table.read(None, "id")) == [{"id": 1}, {"id": 4}], "a null struct is a null leaf"


@pytest.mark.parametrize("version", WITH_DELETES)
def test_equality_deletes_by_a_column_that_was_dropped_and_whose_name_is_used_again(version: int) -> None:
    table = RowTable(SCHEMA, version)
    table.append(ROWS)
    table.commit([table.equality_file(ROWS.slice(0, 1), (2,))])
    table.metadata = evolved(table.metadata, SCHEMA.fields[0], types.NestedField(9, "region", types.LongType()))
    assert rows_of(table.read()) == [{"id": 3, "region": None}, {"id": 4, "region": None}]
    assert rows_of(table.read("region is null", "id")) == [{"id": 3}, {"id": 4}]


@pytest.mark.parametrize("version", WITH_DELETES)
def test_equality_deletes_by_a_column_that_the_file_is_older_than(version: int) -> None:
    added = types.NestedField(9, "kind", types.StringType())
    table = RowTable(SCHEMA, version)
    table.append(ROWS)
    table.metadata = evolved(table.metadata, *SCHEMA.fields, added)
    newer = ROWS.append_column("kind", pa.array(["a", None, "b", "a"]))
    table.append(newer)
    table.commit([table.equality_file(newer.slice(1, 1), (9,))])
    assert [row["kind"] for row in rows_of(table.read(None, "id", "kind"))] == ["a", "b", "a"]


def test_an_equality_delete_by_a_column_of_no_schema_is_an_error() -> None:
    table = RowTable(SCHEMA, 2)
    table.append(ROWS)
    table.commit([replace(table.equality_file(ROWS.slice(0, 1), (2,)), equality_ids=(77,))])
    with pytest.raises(NoSuchColumnError, match="77"):
        table.read()


@pytest.mark.parametrize("version", WITH_VECTORS)
def test_a_vector_stands_for_older_position_deletes(version: int) -> None:
    table = RowTable(SCHEMA, version)
    (file,) = table.append(ROWS)
    (positions,) = table.delete_positions({file.file_path: [0]}, as_vectors=False)
    (vector,) = table.delete_positions({file.file_path: [3]})
    task = table.tasks()[0].replace(deletes=(positions, vector))
    batches = read_tasks([task], table.columns("id"), table.metadata, table.storage)
    assert [row for batch in batches for row in batch.column(0).to_pylist()] == [1, 2, 3]


@pytest.mark.parametrize("version", WITH_VECTORS)
@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"record_count": 2}, "positions, not 2"),
        ({"referenced_data_file": "memory://tables/other.parquet"}, "other.parquet"),
        ({"content_offset": None}, "does not say where"),
        ({"content_offset": 5}, "length"),
    ],
)
def test_a_vector_that_is_not_what_its_manifest_says_is_refused(
    version: int, changes: dict[str, Any], problem: str
) -> None:
    table = RowTable(SCHEMA, version)
    (file,) = table.append(ROWS)
    (vector,) = table.delete_positions({file.file_path: [3]})
    task = table.tasks()[0].replace(deletes=(replace(vector, **changes),))
    with pytest.raises(CorruptFileError, match=problem):
        list(read_tasks([task], table.columns("id"), table.metadata, table.storage))


@pytest.mark.parametrize("version", WITH_VECTORS)
def test_a_vector_beyond_the_rows_of_its_file_is_refused(version: int) -> None:
    table = RowTable(SCHEMA, version)
    (file,) = table.append(ROWS)
    table.delete_positions({file.file_path: [3]})
    task = table.tasks()[0]
    task = task.replace(file=replace(task.file, record_count=3))
    with pytest.raises(CorruptFileError, match="position 3"):
        list(read_tasks([task], table.columns("id"), table.metadata, table.storage))


class CountingStorage(Storage):
    """Counts how often each file is opened."""

    def __init__(self) -> None:
        super().__init__()
        self.opened: dict[str, int] = {}

    def open_input(self, location: str, *, size: int | None = None) -> Any:
        self.opened[location] = self.opened.get(location, 0) + 1
        return super().open_input(location, size=size)


def test_delete_files_of_several_tasks_are_read_once() -> None:
    storage = CountingStorage()
    table = RowTable(SCHEMA, 2, storage=storage)
    files = [file for i in range(6) for file in table.append(ROWS.slice(i % 4, 1))]
    (shared,) = table.delete_positions({file.file_path: [0] for file in files[:3]})
    keys = table.equality_file(ROWS.slice(3, 1), (1,))
    table.commit([keys])
    storage.opened.clear()
    assert [row["id"] for row in rows_of(table.read(None, "id"))] == [1, 2]
    assert storage.opened[shared.file_path] == 1
    assert storage.opened[keys.file_path] == 1


def test_position_deletes_for_files_that_are_gone_do_no_harm() -> None:
    table = RowTable(SCHEMA, 2)
    first, second = [table.append(ROWS)[0] for _ in range(2)]
    table.delete_positions({first.file_path: [0], second.file_path: [1]})
    table.remove([first])
    table.storage.delete([first.file_path])
    assert [row["id"] for row in rows_of(table.read(None, "id"))] == [1, 3, 4]


def test_a_missing_or_cut_file_is_named() -> None:
    table = RowTable(SCHEMA, 2)
    (file,) = table.append(ROWS)
    content = table.storage.read(file.file_path)
    table.storage.write(file.file_path, content[:-30])
    with pytest.raises(CorruptFileError, match=file.file_path):
        table.read()
    table.storage.delete([file.file_path])
    with pytest.raises(LocationNotFoundError, match=file.file_path):
        table.read()


def test_an_encrypted_file_is_not_taken_for_plain_bytes() -> None:
    table = RowTable(SCHEMA, 3)
    (file,) = table.append(ROWS)
    key = FileKey.new(16).of_length(file.file_size_in_bytes)
    for metadata, problem in ((b"key", "key metadata"), (encode_key_metadata(key), "Parquet")):
        task = table.tasks()[0].replace(file=replace(file, key_metadata=metadata))
        with pytest.raises(CorruptFileError, match=problem):
            list(read_tasks([task], table.columns("id"), table.metadata, table.storage))


def test_time_travel_reads_and_filters_by_the_names_of_then() -> None:
    table = RowTable(SCHEMA, 2)
    table.append(ROWS)
    old = table.schema
    renamed = types.NestedField(
        3,
        "address",
        types.StructType(
            types.NestedField(4, "zip", types.IntegerType()), types.NestedField(5, "town", types.StringType())
        ),
    )
    bound = table.bound("place.zip = 4")
    table.metadata = evolved(table.metadata, types.NestedField(1, "key", types.LongType(), True), renamed)
    scan = PlannedScan(
        table.metadata, table.storage, columns=Schema(old.fields[0], schema_id=0), tasks=table.tasks(bound)
    )
    assert rows_of(to_arrow(scan)) == [{"id": 4}]
    assert rows_of(table.read("address.zip = 4", "key")) == [{"key": 4}]


def test_only_metadata_columns_may_be_wanted() -> None:
    table = RowTable(parse_ddl("id bigint"), 2)
    table.append(numbers(1, 2, 3))
    assert rows_of(table.read(None, "_spec_id")) == [{"_spec_id": 0}] * 3


def test_row_groups_that_cannot_match_are_not_read() -> None:
    table = RowTable(parse_ddl("id bigint"), 2, properties={"write.parquet.row-group-size-bytes": "1"})
    batches: Iterator[Any] = (numbers(*range(start, start + 10)) for start in range(0, 100, 10))
    (file,) = table.append(batches)
    assert len(file.split_offsets or ()) > 1
    tasks = table.tasks(table.bound("id = 55"))
    (batch,) = read_tasks(tasks, table.columns("id", "_pos"), table.metadata, table.storage)
    assert batch.to_pylist() == [{"id": 55, "_pos": 55}]


class CountedFiles(MemoryFiles):
    """Files whose ranges are counted as they are asked for."""

    def __init__(self, requests: list[tuple[int, int]]) -> None:
        self.requests = requests

    def read_ranges(self, location: Location, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        self.requests.extend(ranges)
        return super().read_ranges(location, ranges)


class RemoteStorage(Storage):
    """Files that are read by requests for ranges."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[tuple[int, int]] = []

    def open_input(self, location: str, *, size: int | None = None) -> Any:
        return RangedInput(CountedFiles(self.requests), parse_location(location), size or 0, None)


def test_the_columns_of_a_remote_row_group_are_asked_for_at_once_and_no_others() -> None:
    storage = RemoteStorage()
    schema = parse_ddl("a bigint, b bigint, c bigint, d bigint")
    options = {"write.parquet.compression-codec": "none", "write.parquet.dict-size-bytes": "1"}
    table = RowTable(schema, 2, properties=options, storage=storage)
    values = np.random.default_rng(7).integers(0, 2**62, 200_000)
    table.append(pa.table(dict.fromkeys("abcd", values)))
    size = table.data[0].file.file_size_in_bytes
    assert table.read(None, "a", "c").column("c").to_pylist() == values.tolist()
    assert len(storage.requests) == 3, "the end of the file and two columns"
    assert sum(length for _, length in storage.requests) < 0.6 * size
