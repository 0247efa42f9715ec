"""Data becomes data files: grouped, sorted, rolled, named, in parallel; and after an error nothing half written is left."""

import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, reject, settings, strategies as st

from icefloe.data import TableWriter, WriteRequest, data_folder, group_rows, write_data_files, writing
from icefloe.data.arranging import sort_rows
from icefloe.data.locations import NewLocations, entropy_folders
from icefloe.data.scanning import to_arrow
from icefloe.errors import (
    InvalidInputError,
    InvalidLocationError,
    InvalidPartitionSpecError,
    InvalidValueError,
    StorageError,
    UnsupportedVersionError,
)
from icefloe.manifests import DataFile
from icefloe.partitioning import (
    UNPARTITIONED,
    PartitionField,
    PartitionSpec,
    parse_partition_spec,
    parse_sort_order,
    transforms as tr,
)
from icefloe.planning import TableScan
from icefloe.schema import Schema, parse_ddl
from icefloe.storage import OutputStream, Storage
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.data.tables import RowTable, is_storable, numbers
from tests.formats.rows import contents, tables_of
from tests.own_threads import OwnThreads
from tests.peers.tables import HandmadeTable
from tests.shared_rows import rows_of
from tests.strategies import partition_specs, schemas, sort_orders

SCHEMA = parse_ddl("id bigint, region string, ratio double")
FEWER = settings(max_examples=settings().max_examples // 2)


def rows(*ids: int, region: str | None = "eu") -> Any:
    return rows_of(*ids, region=region)


@pytest.mark.parametrize("version", ALL_VERSIONS)
@FEWER
@given(st.data())
def test_random_rows_under_random_specs_and_orders_are_read_back(version: int, data: st.DataObject) -> None:
    schema = data.draw(schemas(version).filter(is_storable))
    spec, order = data.draw(partition_specs(schema)), data.draw(sort_orders(schema))
    table = RowTable(schema, version, spec.with_id(0), order)
    written = data.draw(tables_of(schema))
    try:
        table.append(written.to_reader(max_chunksize=data.draw(st.integers(1, 12))))
    except InvalidInputError:
        reject()  # a transform has no value so close to the end of a type
    found = table.read()
    assert found.schema.equals(written.schema, check_metadata=True)
    assert sorted(map(repr, contents(found))) == sorted(map(repr, contents(written)))
    assert sum(each.file.record_count for each in table.data) == written.num_rows


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_a_scan_of_a_table_reads_what_was_written(version: int, tmp_path: Path) -> None:
    table = HandmadeTable(tmp_path, SCHEMA, version, parse_partition_spec(["region"], SCHEMA))
    data = pa.concat_tables([rows(1, 2), rows(3, region="us"), rows(4, 5, region=None)])
    table.commit(write_data_files(data, WriteRequest(table.metadata, table.storage)))
    scan = TableScan(table.metadata, table.storage, "id > 1 and region = 'eu' or id = 5", ("id", "_row_id"))
    lineage = allows(version, Feature.ROW_LINEAGE)
    assert to_arrow(scan).to_pylist() == [
        {"id": 2, "_row_id": 1 if lineage else None},
        {"id": 5, "_row_id": 4 if lineage else None},
    ]


# --- groups and order -------------------------------------------------------------------------------------------------


def test_rows_are_grouped_in_their_order() -> None:
    spec = parse_partition_spec(["region", "truncate(10, id)"], SCHEMA)
    data = pa.table({"id": [11, 1, 2, 12, 3], "region": ["eu", "us", "us", "eu", None], "ratio": [None] * 5})
    found = [(partition, group.column("id").to_pylist()) for partition, group in group_rows(data, spec, SCHEMA)]
    assert found == [(("eu", 10), [11, 12]), (("us", 0), [1, 2]), ((None, 0), [3])]
    assert [group.num_rows for _, group in group_rows(data, UNPARTITIONED, SCHEMA)] == [5]
    assert not list(group_rows(data.slice(0, 0), spec, SCHEMA))


def test_text_that_is_no_utf_8_has_no_partition() -> None:
    raw = pa.array([b"\xff\xffx"])
    broken = pa.Array.from_buffers(pa.string(), 1, raw.buffers())
    spec = parse_partition_spec(["truncate(2, region)"], SCHEMA)
    data = pa.table({"id": [1], "region": broken, "ratio": [1.0]})
    with pytest.raises(InvalidValueError, match=r"'region' has a value that truncate\[2\] cannot take: .*UTF-?8"):
        list(group_rows(data, spec, SCHEMA))


def test_nan_is_one_partition_and_the_zeros_are_two() -> None:
    table = RowTable(SCHEMA, 2, parse_partition_spec(["ratio"], SCHEMA))
    batches = [pa.record_batch({"ratio": [float("nan"), 0.0, -0.0]}) for _ in range(3)]
    files = table.append(batches)
    assert sorted(repr(file.partition[0]) for file in files) == ["-0.0", "0.0", "nan"]
    assert [file.record_count for file in files] == [3, 3, 3]


NEGATIVE_NAN = struct.unpack("d", struct.pack("Q", 0xFFF8000000000000))[0]
FLOATS = [NEGATIVE_NAN, float("-inf"), -1.5, -0.0, 0.0, 2.0, float("inf"), float("nan")]


@pytest.mark.parametrize("text", ["ratio asc", "ratio desc"])
@pytest.mark.parametrize("nulls", ["first", "last"])
def test_floats_and_nulls_are_sorted_as_the_spec_says(text: str, nulls: str) -> None:
    order = parse_sort_order([f"{text} nulls {nulls}"], SCHEMA)
    mixed = [FLOATS[i] for i in (3, 7, 0, 5, 1, 6, 4, 2)]
    data = pa.table({"id": range(10), "region": ["a"] * 10, "ratio": pa.array([None, *mixed, None], pa.float64())})
    found = sort_rows(data, order, SCHEMA).column("ratio").to_pylist()
    present = FLOATS if text.endswith("asc") else FLOATS[::-1]
    expected = [None, None, *present] if nulls == "first" else [*present, None, None]
    assert [bits(value) for value in found] == [bits(value) for value in expected]


def bits(value: float | None) -> bytes | None:
    return None if value is None else struct.pack("d", value)


def test_equal_rows_stay_in_order_and_transforms_are_applied() -> None:
    order = parse_sort_order(["truncate(10, id) desc", "region nulls last"], SCHEMA)
    data = pa.table({"id": [1, 25, 2, 21, 3], "region": ["b", None, "a", "z", "b"], "ratio": pa.nulls(5, pa.float64())})
    assert sort_rows(data, order, SCHEMA).column("id").to_pylist() == [21, 25, 2, 1, 3]


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_files_of_a_sorted_table_are_sorted(version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "SORTED_RUN_BYTES", 400)
    table = RowTable(SCHEMA, version, order=parse_sort_order(["id desc"], SCHEMA))
    files = table.append([rows(*range(start, start + 10)) for start in range(0, 100, 10)])
    assert len(files) > 1
    for task in table.tasks():
        assert task.file.sort_order_id == 1
    by_file: dict[str, list[int]] = {}
    for row in table.read(None, "id", "_file").to_pylist():
        by_file.setdefault(row["_file"], []).append(row["id"])
    assert all(ids == sorted(ids, reverse=True) for ids in by_file.values())
    assert sorted(i for ids in by_file.values() for i in ids) == list(range(100))


# --- files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("file_format", ["parquet", "avro", "orc"])
def test_files_are_closed_at_the_target_size(file_format: str) -> None:
    properties = {
        "write.target-file-size-bytes": "20000",
        "write.format.default": file_format,
        "write.parquet.row-group-size-bytes": "5000",
    }
    table = RowTable(SCHEMA, 2, properties=properties)
    files = table.append(rows(*range(start, start + 1000)) for start in range(0, 20_000, 1000))
    assert len(files) > 1
    assert all(file.file_size_in_bytes == table.storage.stat(file.file_path).size for file in files)
    assert table.read(None, "id").column("id").to_pylist() == list(range(20_000))


def test_large_tables_are_written_as_several_files_at_once() -> None:
    table = RowTable(SCHEMA, 2, properties={"write.target-file-size-bytes": "50000"})
    files = table.append(rows(*range(20_000)), workers=4)
    assert len(files) >= 4
    assert table.read(None, "id").column("id").to_pylist() == list(range(20_000))


def test_files_of_partitions_without_rows_for_long_are_closed_when_many_are_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(writing, "OPEN_BYTES", 2000)
    monkeypatch.setattr(writing, "_GATHERED_BYTES", 1)
    table = RowTable(SCHEMA, 2, parse_partition_spec(["region"], SCHEMA))
    batches = [rows(*range(i * 10, i * 10 + 10), region=f"r{i % 8}") for i in range(32)]
    files = table.append(batches)
    assert len(files) > 8
    assert sorted(table.read().column("id").to_pylist()) == list(range(320))


def test_rows_that_wait_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "WAITING_BYTES", 1)
    monkeypatch.setattr(writing, "_GATHERED_BYTES", 1)
    table = RowTable(SCHEMA, 2, parse_partition_spec(["region"], SCHEMA))
    table.append([rows(i, region=f"r{i % 3}") for i in range(30)])
    assert sorted(table.read().column("id").to_pylist()) == list(range(30))


def test_what_a_data_file_says(tmp_path: Path) -> None:
    table = RowTable(SCHEMA, 2, parse_partition_spec(["region"], SCHEMA), location=tmp_path.as_uri())
    (file,) = table.append(rows(3, 5))
    name = r"/data/region=eu/00000-[0-9a-f-]{36}\.parquet"
    assert re.fullmatch(re.escape(tmp_path.as_uri()) + name, file.file_path)
    assert (file.record_count, file.spec_id, file.partition, file.sort_order_id) == (2, 0, ("eu",), None)
    assert file.lower_bounds[1] == (3).to_bytes(8, "little")
    assert file.upper_bounds[1] == (5).to_bytes(8, "little")
    assert file.null_value_counts[3] == 2
    assert file.split_offsets == (4,)
    assert file.first_row_id is None


@pytest.mark.parametrize("data", [rows(), [], rows().to_reader()], ids=["table", "list", "reader"])
def test_nothing_to_write_gives_no_files(data: Any) -> None:
    table = RowTable(SCHEMA, 2)
    assert table.append(data) == []
    assert not list(table.storage.list_prefix(table.location))


@pytest.mark.parametrize("version", [version for version in ALL_VERSIONS if allows(version, Feature.ROW_LINEAGE)])
def test_row_ids_are_carried(version: int) -> None:
    table = RowTable(parse_ddl("id bigint"), version)
    carried = numbers(1, 2).append_column("_row_id", pa.array([50, None], pa.int64()))
    table.append(carried, lineage=True)
    found = table.lineage().to_pylist()
    assert [row["_row_id"] for row in found] == [50, 1]
    with pytest.raises(InvalidValueError, match="_row_id"):
        table.append(carried)


def test_row_ids_are_refused_where_tables_have_none() -> None:
    with pytest.raises(UnsupportedVersionError, match="row lineage"):
        RowTable(SCHEMA, 2).append(rows(1), lineage=True)


# --- places -----------------------------------------------------------------------------------------------------------


def test_the_folder_of_data_files() -> None:
    table = RowTable(SCHEMA, 2, properties={"write.data.path": "memory://elsewhere/files/"})
    assert data_folder(table.metadata) == "memory://elsewhere/files"
    (file,) = table.append(rows(1))
    assert file.file_path.startswith("memory://elsewhere/files/00000-")
    bare = RowTable(SCHEMA, 4).metadata
    assert data_folder(bare.evolve(properties={"write.data.path": "other"})) == f"{bare.location}/other"
    with pytest.raises(InvalidLocationError, match="no location"):
        data_folder(bare.evolve(location=None))


@pytest.mark.parametrize(
    ("path", "folders"),
    [
        ("a", "0101/0110/1001/10110010"),
        ("b", "1110/0111/1110/00000011"),
        ("c", "0010/1101/0110/01011111"),
        ("d", "1001/0001/0100/01110011"),
    ],
)
def test_object_storage_hashes_are_those_of_other_engines(path: str, folders: str) -> None:
    assert entropy_folders(path) == folders


@pytest.mark.parametrize(
    ("partitioned", "data_path", "pattern"),
    [
        ("true", None, r"{location}/data/([01]{{4}}/){{3}}[01]{{8}}/region=eu/00000-u\.parquet"),
        ("false", None, r"{location}/data/([01]{{4}}/){{3}}[01]{{8}}-00000-u\.parquet"),
        ("true", "memory://other", r"memory://other/([01]{{4}}/){{3}}[01]{{8}}/{context}/region=eu/00000-u\.parquet"),
    ],
)
def test_object_storage_locations(partitioned: str, data_path: str | None, pattern: str) -> None:
    properties = {"write.object-storage.enabled": "true", "write.object-storage.partitioned-paths": partitioned}
    properties |= {} if data_path is None else {"write.data.path": data_path}
    spec = parse_partition_spec(["region"], SCHEMA)
    table = RowTable(SCHEMA, 2, spec, properties=properties)
    found = NewLocations(table.metadata, "u").next(spec, ("eu",), "parquet")
    context = "/".join(table.location.split("/")[-2:])
    assert re.fullmatch(pattern.format(location=table.location, context=context), found)


# --- errors -----------------------------------------------------------------------------------------------------------


def test_after_an_error_nothing_half_written_is_left_and_whole_files_are_told(
    tmp_path: Path, own_threads: OwnThreads
) -> None:
    properties = {"write.target-file-size-bytes": "1"}
    table = RowTable(SCHEMA, 2, properties=properties, location=tmp_path.as_uri())

    def data() -> Iterator[Any]:
        yield rows(1, 2, 3)
        yield rows(4)
        raise InvalidValueError("the source failed")

    written: list[DataFile] = []
    with pytest.raises(InvalidValueError, match="the source failed"):
        write_data_files(data(), WriteRequest(table.metadata, table.storage, written), workers=2)
    left = {str(path) for path in tmp_path.rglob("*") if path.is_file()}
    assert left == {file.file_path.removeprefix("file://") for file in written}
    assert not own_threads("icefloe-write")


class FullStorage(Storage):
    """A store that fails after some bytes."""

    def __init__(self, room: int) -> None:
        super().__init__()
        self.room = room

    def open_output(self, location: str) -> OutputStream:
        stream, append = super().open_output(location), None
        append = stream._append

        def limited(data: memoryview) -> None:
            self.room -= data.nbytes
            if self.room < 0:
                raise StorageError(location, "no space left")
            append(data)

        stream._append = limited  # type: ignore[method-assign]  # the fault to show
        return stream


@pytest.mark.parametrize("room", [0, 100, 3000])
def test_a_store_that_fails_is_told_and_its_files_are_dropped(
    room: int, tmp_path: Path, own_threads: OwnThreads
) -> None:
    storage = FullStorage(room)
    table = RowTable(SCHEMA, 2, parse_partition_spec(["region"], SCHEMA), location=tmp_path.as_uri(), storage=storage)
    written: list[DataFile] = []
    batches = [rows(*range(50), region=f"r{i}") for i in range(20)]
    with pytest.raises(StorageError, match="no space left"):
        write_data_files(batches, WriteRequest(table.metadata, table.storage, written))
    left = {str(path) for path in tmp_path.rglob("*") if path.is_file()}
    assert left == {file.file_path.removeprefix("file://") for file in written}
    assert not own_threads("icefloe-write")


def test_a_writer_that_is_left_without_close_drops_its_files(tmp_path: Path, own_threads: OwnThreads) -> None:
    table = RowTable(SCHEMA, 2, location=tmp_path.as_uri())
    with TableWriter(WriteRequest(table.metadata, table.storage)) as writer:
        writer.write(rows(1))
    assert not writer.written
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not own_threads("icefloe-write")


def test_data_that_does_not_fit_leaves_no_threads(own_threads: OwnThreads) -> None:
    with pytest.raises(InvalidValueError, match="more"):
        RowTable(SCHEMA, 2).append(pa.table({"more": [1]}))
    assert not own_threads("icefloe-write")


def test_tables_that_must_not_be_written_are_refused() -> None:
    spec = PartitionSpec(PartitionField(1, 1000, tr.UnknownTransform("zorder"), "z"))
    with pytest.raises(InvalidPartitionSpecError, match="is unknown"):
        RowTable(SCHEMA, 2, spec).append(rows(1))
    gone = PartitionSpec(PartitionField(77, 1000, tr.IdentityTransform(), "gone"))
    with pytest.raises(InvalidPartitionSpecError, match="not in the schema"):
        RowTable(SCHEMA, 2, gone).append(rows(1))


def test_a_schema_of_today_is_written_whatever_came_before() -> None:
    table = RowTable(SCHEMA, 2)
    table.append(rows(1))
    newer = Schema(SCHEMA.fields[0], schema_id=1)
    table.metadata = table.metadata.evolve(schemas=(*table.metadata.schemas, newer), current_schema_id=1)
    table.append(numbers(2))
    assert table.read().to_pylist() == [{"id": 1}, {"id": 2}]
