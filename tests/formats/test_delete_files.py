"""Delete files: positions and keys come back as they were written, in every format, and delete the rows that they name."""

import io
import os
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st
from pyiceberg.io.pyarrow import PyArrowFileIO, _read_deletes
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat

from icefloe.errors import (
    CorruptFileError,
    InvalidPropertyError,
    InvalidSchemaError,
    InvalidValueError,
    UnsupportedVersionError,
)
from icefloe.formats.deletion_vectors import DeletionVector
from icefloe.formats.equality_deletes import check_equality_ids, equality_delete_writer, read_equality_deletes
from icefloe.formats.equality_keys import EqualityKeys, key_columns
from icefloe.formats.file_formats import DATA_FORMATS, delete_file_properties, reader_of, writer_of
from icefloe.formats.position_deletes import (
    POSITION_DELETE_SCHEMA,
    WrittenPositionDeletes,
    read_position_deletes,
    write_position_deletes,
)
from icefloe.schema import Schema, decode, schema_to_arrow, types
from icefloe.storage import identity
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.formats.rows import arrow_table, contents, tables_of

POSITION_VERSIONS = [version for version in ALL_VERSIONS if allows(version, Feature.NEW_POSITION_DELETE_FILES)]
DELETE_VERSIONS = [version for version in ALL_VERSIONS if allows(version, Feature.DELETE_FILES)]
PATH_ID, POS_ID = (field.field_id for field in POSITION_DELETE_SCHEMA.fields)


def written(
    deletes: dict[str, Any], file_format: str = "parquet", **options: Any
) -> tuple[bytes, WrittenPositionDeletes]:
    sink = io.BytesIO()
    done = write_position_deletes(sink, deletes, POSITION_VERSIONS[0], file_format, **options)
    return sink.getvalue(), done


DELETES = st.dictionaries(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6).filter(
        lambda each: identity(each) == each
    ),
    st.sets(st.integers(0, 2**40), min_size=1, max_size=8).map(list),
    min_size=1,
    max_size=4,
)


@pytest.mark.parametrize("file_format", DATA_FORMATS)
@given(deletes=DELETES)
def test_positions_come_back_by_data_file(file_format: str, deletes: dict[str, list[int]]) -> None:
    content, done = written(deletes, file_format)
    found = read_position_deletes(io.BytesIO(content), "x", file_format)
    assert {path: list(vector) for path, vector in found.items()} == {p: sorted(d) for p, d in deletes.items()}
    for path, positions in deletes.items():
        one = read_position_deletes(io.BytesIO(content), "x", file_format, data_file=path)
        assert {p: list(vector) for p, vector in one.items()} == {path: sorted(positions)}
    assert read_position_deletes(io.BytesIO(content), "x", file_format, data_file="another") == {}
    assert done.referenced_data_file == (next(iter(deletes)) if len(deletes) == 1 else None)
    assert done.file.metrics.record_count == sum(map(len, deletes.values()))
    paths = sorted(path.encode() for path in deletes)
    assert done.file.metrics.lower_bounds[PATH_ID] == paths[0]
    assert done.file.metrics.upper_bounds[PATH_ID] == paths[-1]
    assert decode(done.file.metrics.lower_bounds[POS_ID], types.LongType()) == min(min(d) for d in deletes.values())


@pytest.mark.parametrize("file_format", DATA_FORMATS)
def test_rows_are_sorted_by_path_then_position(file_format: str) -> None:
    content, _ = written({"s3://b": [5, 1, 5], "s3://a": np.array([9, 0]), "s3://c": DeletionVector()}, file_format)
    reader = reader_of(file_format)(io.BytesIO(content), "x", POSITION_DELETE_SCHEMA)
    rows = [tuple(row.values()) for batch in reader.batches() for row in batch.to_pylist()]
    assert rows == [("s3://a", 0), ("s3://a", 9), ("s3://b", 1), ("s3://b", 5)]


def test_long_paths_keep_whole_bounds() -> None:
    path = "s3://bucket/" + "x" * 300 + ".parquet"
    for file_format in DATA_FORMATS:
        _, done = written({path: [1]}, file_format)
        assert done.file.metrics.lower_bounds[PATH_ID] == done.file.metrics.upper_bounds[PATH_ID] == path.encode()


def test_ids_and_metadata_of_a_parquet_file() -> None:
    content, _ = written({"a": [1]})
    file = pq.ParquetFile(io.BytesIO(content))
    assert f"required binary field_id={PATH_ID} file_path (String);" in str(file.schema)
    assert f"required int64 field_id={POS_ID} pos;" in str(file.schema)
    assert file.metadata.metadata[b"delete-type"] == b"position"


@pytest.mark.parametrize("file_format", ["parquet", "orc"])
def test_pyiceberg_reads_our_positions(tmp_path: Path, file_format: str) -> None:
    deletes = {"s3://bucket/a.parquet": [3, 1], "s3://bucket/b.parquet": [7]}
    content, done = written(deletes, file_format)
    location = tmp_path / f"deletes.{file_format}"
    location.write_bytes(content)
    entry = DataFile.from_args(
        content=DataFileContent.POSITION_DELETES,
        file_path=str(location),
        file_format=FileFormat(file_format.upper()),
        record_count=done.file.metrics.record_count,
        file_size_in_bytes=len(content),
    )
    found = _read_deletes(PyArrowFileIO(), entry)
    assert {path: sorted(positions.to_pylist()) for path, positions in found.items()} == {
        path: sorted(positions) for path, positions in deletes.items()
    }


@pytest.mark.parametrize("version", sorted(set(ALL_VERSIONS) - set(POSITION_VERSIONS)))
def test_versions_without_new_position_deletes_refuse_them(version: int) -> None:
    with pytest.raises(UnsupportedVersionError, match="a new position delete file needs"):
        write_position_deletes(io.BytesIO(), {"a": [1]}, version)


@pytest.mark.parametrize(
    ("deletes", "message"),
    [({"a": [-1]}, "deletes of a: position -1"), ({}, "no positions"), ({"a": []}, "no positions")],
)
def test_positions_that_are_none_are_refused(deletes: dict[str, list[int]], message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        written(deletes)


def test_unsorted_files_of_others_are_read() -> None:
    table = arrow_table(POSITION_DELETE_SCHEMA, [{"file_path": p, "pos": i} for i, p in enumerate("abababba")])
    sink = io.BytesIO()
    writer = writer_of("parquet")(sink, POSITION_DELETE_SCHEMA)
    writer.write(table)
    writer.close()
    found = read_position_deletes(io.BytesIO(sink.getvalue()), "x")
    assert {path: list(vector) for path, vector in found.items()} == {"a": [0, 2, 4, 7], "b": [1, 3, 5, 6]}


@pytest.mark.parametrize(
    ("rows", "message"), [([("a", -5)], "position -5"), ([("a", None)], "no pos"), ([(None, 1)], "no file_path")]
)
def test_delete_files_of_nonsense_are_damage(rows: list[Any], message: str) -> None:
    target = pa.schema([field.with_nullable(True) for field in schema_to_arrow(POSITION_DELETE_SCHEMA)])
    table = pa.Table.from_pylist([{"file_path": path, "pos": pos} for path, pos in rows], schema=target)
    sink = io.BytesIO()
    pq.write_table(table, sink)
    with pytest.raises(CorruptFileError, match=rf"memory:d: .*{message}"):
        read_position_deletes(io.BytesIO(sink.getvalue()), "memory:d")


def test_one_data_file_needs_few_row_groups() -> None:
    deletes = {f"s3://bucket/{i:03}.parquet": np.arange(0, 4000, 3) for i in range(40)}
    content, _ = written(deletes, properties={"write.delete.parquet.row-group-size-bytes": "10000"})
    groups = pq.ParquetFile(io.BytesIO(content)).metadata.num_row_groups
    assert groups > 5
    found = read_position_deletes(io.BytesIO(content), "x", data_file="s3://bucket/020.parquet")
    assert [vector.cardinality for vector in found.values()] == [1334]
    damaged = bytearray(content)
    damaged[4:40] = os.urandom(36)  # the first row group is not looked at
    again = read_position_deletes(io.BytesIO(bytes(damaged)), "x", data_file="s3://bucket/020.parquet")
    assert again == found


def test_settings_of_delete_files_stand_in_for_those_of_data_files() -> None:
    settings = {"write.orc.compression-codec": "zstd", "write.delete.orc.compression-codec": "none"}
    content, _ = written({"a": [1]}, "orc", properties=settings)
    assert orc.ORCFile(io.BytesIO(content)).compression == "UNCOMPRESSED"
    assert delete_file_properties(None) == {}
    with pytest.raises(InvalidPropertyError, match="'puffin' does not hold rows"):
        written({"a": [1]}, "puffin")


TABLE = Schema(
    types.NestedField(1, "id", types.LongType(), True),
    types.NestedField(2, "category", types.StringType()),
    types.NestedField(3, "price", types.DoubleType()),
    types.NestedField(4, "tags", types.ListType(5, types.StringType(), False)),
    types.NestedField(
        6,
        "place",
        types.StructType(
            types.NestedField(7, "zip", types.IntegerType()), types.NestedField(8, "code", types.UUIDType())
        ),
    ),
    types.NestedField(9, "day", types.DateType()),
    types.NestedField(10, "cost", types.DecimalType(9, 2)),
    types.NestedField(11, "flag", types.BooleanType()),
    types.NestedField(12, "ts", types.TimestampType()),
    types.NestedField(13, "nothing", types.UnknownType()),
)


@pytest.mark.parametrize(
    ("field_ids", "message"),
    [
        ([], "at least one column"),
        ([99], "id 99 is not in the schema"),
        ([3], "'price' is of type double; it must be primitive"),
        ([4], "'tags' is of type list"),
        ([5], "'tags.element' is inside the list or map 'tags'"),
        ([6], "'place' is of type struct"),
    ],
)
def test_columns_that_rows_cannot_be_deleted_by(field_ids: list[int], message: str) -> None:
    with pytest.raises(InvalidSchemaError, match=message):
        check_equality_ids(TABLE, field_ids)


def test_optional_columns_and_those_of_optional_structs_are_fine() -> None:
    assert check_equality_ids(TABLE, [8, 2, 1, 2]) == (1, 2, 8)


def keys_written(
    rows: list[dict[str, Any]], field_ids: list[int], file_format: str, version: int, **more: Any
) -> bytes:
    sink = io.BytesIO()
    writer = equality_delete_writer(sink, TABLE, field_ids, version, file_format, **more)
    writer.write(arrow_table(writer.schema, rows))
    assert writer.bytes_written > 0
    assert writer.close().metrics.record_count == len(rows)
    return sink.getvalue()


@pytest.mark.parametrize("version", DELETE_VERSIONS)
@pytest.mark.parametrize("file_format", DATA_FORMATS)
def test_keys_come_back(file_format: str, version: int) -> None:
    rows: list[dict[str, Any]] = [
        {"id": 4, "category": None, "place": None},
        {"id": 5, "category": "x", "place": {"zip": 7}},
    ]
    content = keys_written(rows, [1, 2, 7], file_format, version)
    keys = read_equality_deletes(io.BytesIO(content), "x", TABLE, [7, 1], file_format)
    assert keys.to_pylist() == [{"1": 4, "7": None}, {"1": 5, "7": 7}]
    with pytest.raises(CorruptFileError, match="memory:k: it lacks the columns of its equality field ids 9"):
        read_equality_deletes(io.BytesIO(content), "memory:k", TABLE, [1, 9], file_format)


def test_metadata_of_equality_deletes() -> None:
    content = keys_written([{"id": 4, "category": None}], [2, 1], "parquet", DELETE_VERSIONS[0])
    metadata = pq.ParquetFile(io.BytesIO(content)).metadata.metadata
    assert (metadata[b"delete-type"], metadata[b"delete-field-ids"]) == (b"equality", b"1, 2")


def test_keys_of_dropped_and_required_columns_are_read() -> None:
    dropped = Schema(
        types.NestedField(1, "id", types.LongType(), True), types.NestedField(40, "gone", types.StringType(), True)
    )
    sink = io.BytesIO()
    writer = equality_delete_writer(sink, dropped, [40], DELETE_VERSIONS[0])
    writer.write(pa.table({"gone": ["x"]}))
    writer.close()
    assert read_equality_deletes(io.BytesIO(sink.getvalue()), "x", dropped, [40]).to_pylist() == [{"40": "x"}]


@pytest.mark.parametrize("version", sorted(set(ALL_VERSIONS) - set(DELETE_VERSIONS)))
def test_versions_without_delete_files_refuse_them(version: int) -> None:
    with pytest.raises(UnsupportedVersionError, match="an equality delete file needs delete files"):
        equality_delete_writer(io.BytesIO(), TABLE, [1], version)


KEYED = Schema(*(field for field in TABLE.fields if field.field_id not in (3, 4)))
KEY_IDS = (1, 2, 7, 8, 9, 10, 11, 12, 13)
SMALL_ROWS = st.fixed_dictionaries(
    {
        "id": st.sampled_from([-(2**63), 0, 1, 2]),
        "category": st.sampled_from([None, "", "a", "b"]),
        "place": st.none()
        | st.fixed_dictionaries(
            {
                "zip": st.sampled_from([None, 0, 7]),
                "code": st.sampled_from([None, UUID(int=0).bytes, UUID(int=1).bytes]),
            }
        ),
        "day": st.sampled_from([None, -1, 0]),
        "cost": st.sampled_from([None, Decimal("0.00"), Decimal("1.50")]),
        "flag": st.sampled_from([None, True, False]),
        "ts": st.sampled_from([None, 0, 2**60]),
        "nothing": st.none(),
    }
)


@given(
    st.lists(SMALL_ROWS, max_size=20),
    st.lists(SMALL_ROWS, max_size=6),
    st.sets(st.sampled_from(KEY_IDS), min_size=1),
    st.booleans(),
)
def test_the_mask_is_the_naive_comparison(
    rows: list[dict[str, Any]], keys: list[dict[str, Any]], field_ids: set[int], chosen: bool
) -> None:
    ids = sorted(field_ids)
    batch, key_rows = arrow_table(KEYED, rows), arrow_table(KEYED, keys + (rows[:3] if chosen else []))
    flat = [tuple(row.values()) for row in contents(key_columns(batch, ids))]
    wanted = [tuple(row.values()) for row in contents(key_columns(key_rows, ids))]
    mask = EqualityKeys(key_columns(key_rows, ids), ids).mask(batch)
    assert mask.tolist() == [row in wanted for row in flat]
    if rows:
        small = EqualityKeys(key_rows, ids)
        parts = [small.mask(part) for part in batch.to_batches(max_chunksize=3)]
        assert np.concatenate(parts).tolist() == mask.tolist()


@given(st.data())
def test_random_tables_against_their_own_rows(data: st.DataObject) -> None:
    table = data.draw(tables_of(KEYED))
    ids = sorted(data.draw(st.sets(st.sampled_from(KEY_IDS), min_size=1)))
    assert EqualityKeys(table, ids).mask(table).all()
    assert not EqualityKeys(table.slice(0, 0), ids).mask(table).any()


_EDGES = {pa.int32(): 1 << 31, pa.int64(): 1 << 63}


@pytest.mark.parametrize("kind", _EDGES, ids=str)
@given(st.data())
def test_numbers_near_the_ends_of_their_type_are_told_apart(kind: Any, data: st.DataObject) -> None:
    end = _EDGES[kind]
    near = st.sampled_from([-end, -3, end - 4]).flatmap(lambda base: st.integers(base, base + 3))
    # Keys close together are looked up in a table, others are searched.
    keys, values = data.draw(st.lists(near, min_size=1)), data.draw(st.lists(near, min_size=1))
    column = pa.schema([pa.field("n", kind, metadata={"PARQUET:field_id": "1"})])
    found = EqualityKeys(pa.table([pa.array(keys, kind)], column), [1]).mask(pa.table([pa.array(values, kind)], column))
    assert found.tolist() == [value in keys for value in values]


def test_the_example_of_the_spec() -> None:
    rows = [(1, "a"), (2, None), (3, "b"), (4, None)]
    schema = Schema(types.NestedField(1, "id", types.LongType()), types.NestedField(2, "category", types.StringType()))
    table = arrow_table(schema, [{"id": i, "category": c} for i, c in rows])
    keys = arrow_table(schema, [{"id": 4, "category": None}])
    assert EqualityKeys(keys, [1, 2]).mask(table).tolist() == [False, False, False, True]
    assert EqualityKeys(keys, [2]).mask(table).tolist() == [False, True, False, True]


def test_columns_are_known_by_id_and_promoted() -> None:
    old = Schema(types.NestedField(1, "id", types.IntegerType()), types.NestedField(2, "cost", types.DecimalType(5, 2)))
    new = Schema(types.NestedField(2, "id", types.DecimalType(9, 2)), types.NestedField(1, "key", types.LongType()))
    keys = arrow_table(old, [{"id": 7, "cost": Decimal("1.50")}])
    rows = arrow_table(new, [{"key": 7, "id": Decimal("1.50")}, {"key": 2**40, "id": Decimal("1.50")}])
    assert EqualityKeys(keys, [1, 2]).mask(rows).tolist() == [True, False]


def test_what_cannot_be_compared_is_refused() -> None:
    table = arrow_table(TABLE, [])
    with pytest.raises(InvalidValueError, match="no column with field id 77; key columns must be read"):
        EqualityKeys(table, [77]).mask(table)
    with pytest.raises(InvalidValueError, match="field id 3 is double"):
        EqualityKeys(table, [3]).mask(table)
    with pytest.raises(InvalidValueError, match="at least one column"):
        EqualityKeys(table, []).mask(table)
    words = arrow_table(Schema(types.NestedField(1, "id", types.StringType())), [{"id": "x"}])
    with pytest.raises(InvalidValueError, match="keys of string cannot be compared to rows of int64"):
        EqualityKeys(words, [1]).mask(table)
