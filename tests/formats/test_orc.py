"""ORC files: what is written is read again by field id, with ids and types as attributes, and right metrics."""

import io
import json
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.orc as orc
import pytest
from hypothesis import given, strategies as st
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io.pyarrow import PyArrowFileIO, _task_to_record_batches
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.schema import Schema as PeerSchema
from pyiceberg.table import FileScanTask

from icefloe.errors import (
    CorruptFileError,
    IncompatibleChangeError,
    InvalidPropertyError,
    InvalidSchemaError,
    InvalidValueError,
)
from icefloe.formats.array_metrics import MetricsCollector
from icefloe.formats.file_writing import WrittenFile
from icefloe.formats.metrics import metrics_modes
from icefloe.formats.orc.reader import OrcFileReader
from icefloe.formats.orc.writer import OrcFileWriter
from icefloe.schema import Schema, create_name_mapping, reserved, schema_to_json, select, types
from icefloe.versions import ALL_VERSIONS
from tests.formats.rows import VARIANTS, arrow_table, contents, tables_of
from tests.strategies import schemas


def finished(table: Any, schema: Schema, properties: dict[str, str] | None = None) -> tuple[bytes, WrittenFile]:
    sink = io.BytesIO()
    writer = OrcFileWriter(sink, schema, properties)
    for batch in table.to_batches(max_chunksize=5):
        writer.write(batch)
    done = writer.close()
    return sink.getvalue(), done


def read(data: bytes, wanted: Schema, **options: Any) -> Any:
    reader = OrcFileReader(io.BytesIO(data), "memory:x.orc", wanted, **options)
    batches = list(reader.batches())
    return pa.Table.from_batches(batches) if batches else None


def storable(schema: Schema) -> bool:
    try:
        OrcFileWriter(io.BytesIO(), schema)
    except InvalidSchemaError:
        return False
    return True


def test_empty_and_null_lists_and_maps_of_uuids() -> None:
    """pyarrow cannot copy an empty array of extension types inside of others."""
    pair = types.StructType(types.NestedField(3, "u", types.UUIDType()))
    schema = Schema(
        types.NestedField(1, "l", types.ListType(2, pair, False)),
        types.NestedField(4, "m", types.MapType(5, types.StringType(), 6, types.UUIDType(), False)),
    )
    cases: list[list[dict[str, Any]]] = [
        [{"l": None, "m": None}],
        [{"l": [], "m": []}, {"l": None, "m": None}],
        [{"l": [None], "m": None}],
    ]
    for rows in cases:
        table = arrow_table(schema, rows)
        content, _ = finished(table, schema)
        assert contents(read(content, schema)) == contents(table)


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_what_is_written_is_read_again(version: int) -> None:
    @given(st.data())
    def check(data: st.DataObject) -> None:
        schema = data.draw(schemas(version).filter(storable))
        table = data.draw(tables_of(schema))
        content, done = finished(table, schema)
        assert done.file_size_in_bytes == len(content)
        assert done.metrics.record_count == table.num_rows
        collector = MetricsCollector(schema, metrics_modes(schema, {}))
        collector.add(table)
        assert done.metrics == collector.metrics()
        found = read(content, schema)
        if table.num_rows == 0:
            assert found is None
            assert OrcFileReader(io.BytesIO(content), "x", schema).file_schema.fields
        else:
            found.validate(full=True)
            assert found.schema.equals(table.schema, check_metadata=True)
            assert contents(found) == contents(table)

    check()


EVERYTHING = Schema(
    types.NestedField(1, "id", types.LongType(), True),
    types.NestedField(2, "tags", types.ListType(3, types.StringType(), False)),
    types.NestedField(4, "props", types.MapType(5, types.StringType(), 6, types.IntegerType(), False)),
    types.NestedField(
        7,
        "place",
        types.StructType(
            types.NestedField(8, "zip", types.StringType()), types.NestedField(9, "doc", types.VariantType())
        ),
    ),
    types.NestedField(10, "doc", types.VariantType()),
    types.NestedField(11, "nothing", types.UnknownType()),
    types.NestedField(12, "where", types.GeometryType("EPSG:3857")),
    types.NestedField(13, "time", types.TimeType()),
    types.NestedField(14, "uuid", types.UUIDType()),
    types.NestedField(15, "code", types.FixedType(3)),
    types.NestedField(16, "ts", types.TimestampType()),
    types.NestedField(17, "tz", types.TimestamptzType()),
    types.NestedField(18, "nano", types.TimestampNanoType()),
    types.NestedField(19, "price", types.DecimalType(9, 2)),
)
ROWS = [
    {
        "id": i,
        "tags": ["a", None][: i % 3],
        "props": [("k", i)],
        "place": {"zip": str(i), "doc": VARIANTS[i % 4]},
        "doc": VARIANTS[(i + 1) % 4],
        "nothing": None,
        "where": None,
        "time": i,
        "uuid": UUID(int=i).bytes,
        "code": b"abc",
        "ts": -i,
        "tz": i,
        "nano": i,
        "price": Decimal(i),
    }
    for i in range(10)
]


@given(st.lists(st.none() | st.sampled_from([None, *VARIANTS]), min_size=1, max_size=12))
def test_nulls_among_variants_in_structs(values: list[Any]) -> None:
    inner = types.StructType(
        types.NestedField(3, "v", types.VariantType()),
        types.NestedField(4, "s", types.StructType(types.NestedField(5, "x", types.LongType()))),
    )
    schema = Schema(
        types.NestedField(1, "p", inner), types.NestedField(6, "l", types.ListType(7, types.VariantType(), False))
    )
    rows = [
        {
            "p": None if place % 4 == 3 else {"v": value, "s": None if value is None else {"x": place}},
            "l": None if place % 5 == 4 else [value, None],
        }
        for place, value in enumerate(values)
    ]
    table = arrow_table(schema, rows)
    content, _ = finished(table, schema)
    assert contents(read(content, schema)) == contents(table)


def test_nulls_in_nested_columns_over_many_small_batches() -> None:
    """More rows than pyarrow's writer takes at a time, in slices, of everything that has parts."""
    schema = Schema(
        types.NestedField(
            1,
            "p",
            types.StructType(
                types.NestedField(2, "x", types.LongType()), types.NestedField(3, "v", types.VariantType())
            ),
        ),
        types.NestedField(
            4, "l", types.ListType(5, types.StructType(types.NestedField(6, "y", types.StringType())), False)
        ),
        types.NestedField(
            7, "m", types.MapType(8, types.StringType(), 9, types.ListType(10, types.LongType(), False), False)
        ),
        types.NestedField(11, "v", types.VariantType()),
    )
    rows: list[dict[str, Any]] = [
        {
            "p": None if i % 3 == 0 else {"x": None if i % 5 == 0 else i, "v": None if i % 7 == 0 else VARIANTS[i % 4]},
            "l": None if i % 4 == 0 else [None if j % 2 else {"y": str(i)} for j in range(i % 3)],
            "m": None if i % 6 == 0 else [(str(j), None if j % 2 else [i, None]) for j in range(i % 3)],
            "v": None if i % 2 == 0 else VARIANTS[i % 4],
        }
        for i in range(5000)
    ]
    table = arrow_table(schema, rows)
    for chunk in (5000, 1700, 333):
        sink = io.BytesIO()
        writer = OrcFileWriter(sink, schema)
        for batch in table.to_batches(max_chunksize=chunk):
            writer.write(batch)
        writer.close()
        assert contents(read(sink.getvalue(), schema)) == contents(table)


def test_ids_and_types_are_attributes_at_every_level() -> None:
    content, _ = finished(arrow_table(EVERYTHING, ROWS), EVERYTHING)
    file = orc.ORCFile(io.BytesIO(content))
    schema = file.schema

    def about(field: Any) -> dict[str, str]:
        return {
            key.decode().removeprefix("iceberg."): value.decode()
            for key, value in field.metadata.items()
            if key != b"iceberg.required"
        }

    assert about(schema.field("id")) == {"id": "1", "long-type": "LONG"}
    assert schema.field("id").metadata[b"iceberg.required"] == b"true"
    assert schema.field("ts").metadata[b"iceberg.required"] == b"false"
    assert about(schema.field("tags").type.value_field) == {"id": "3"}
    assert about(schema.field("props").type.key_field) == {"id": "5"}
    assert about(schema.field("props").type.item_field) == {"id": "6"}
    assert about(schema.field("place").type.field("doc")) == {"id": "9", "struct-type": "VARIANT"}
    assert about(schema.field("where")) == {"id": "12", "binary-type": "GEOMETRY"}
    assert about(schema.field("time")) == {"id": "13", "long-type": "TIME"}
    assert about(schema.field("uuid")) == {"id": "14", "binary-type": "UUID"}
    assert about(schema.field("code")) == {"id": "15", "binary-type": "FIXED", "length": "3"}
    assert about(schema.field("ts")) == {"id": "16", "timestamp-unit": "MICROS"}
    assert about(schema.field("nano")) == {"id": "18", "timestamp-unit": "NANOS"}
    assert (str(schema.field("ts").type), str(schema.field("tz").type)) == ("timestamp[ns]", "timestamp[ns, tz=UTC]")
    assert "nothing" not in schema.names
    assert json.loads(file.metadata[b"iceberg.schema"])["type"] == "struct"
    assert file.read().column("price").to_pylist() == [Decimal(i) for i in range(10)]


def test_pyiceberg_reads_what_is_written(tmp_path: Path) -> None:
    schema = select(EVERYTHING, ["id", "tags", "props", "place.zip", "ts", "tz", "price"])
    content, _ = finished(arrow_table(schema, [{f.name: row[f.name] for f in schema.fields} for row in ROWS]), schema)
    location = tmp_path / "x.orc"
    location.write_bytes(content)
    theirs = PeerSchema.model_validate(schema_to_json(schema))
    entry = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=str(location),
        file_format=FileFormat.ORC,
        record_count=10,
        file_size_in_bytes=len(content),
        spec_id=0,
    )
    selected = {
        i
        for i, field in schema.fields_by_id.items()
        if not isinstance(field.field_type, types.ListType | types.MapType)
    }
    batches = _task_to_record_batches(
        PyArrowFileIO(), FileScanTask(entry), AlwaysTrue(), theirs, theirs, selected, None, True
    )
    assert contents(pa.Table.from_batches(batches)) == contents(read(content, schema))


def test_columns_are_found_by_id_under_new_names_and_places() -> None:
    content, _ = finished(arrow_table(EVERYTHING, ROWS), EVERYTHING)
    later = Schema(
        types.NestedField(19, "cost", types.DecimalType(18, 2)),
        types.NestedField(
            7,
            "address",
            types.StructType(
                types.NestedField(20, "street", types.StringType()), types.NestedField(8, "code", types.StringType())
            ),
        ),
        types.NestedField(1, "key", types.LongType(), True),
        types.NestedField(21, "added", types.IntegerType(), True, None, 5, 5),
        types.NestedField(22, "region", types.StringType()),
    )
    found = read(content, later, constants={22: "eu"})
    assert found.column("address").to_pylist() == [{"street": None, "code": str(i)} for i in range(10)]
    assert found.column("key").to_pylist() == list(range(10))
    assert found.column("cost").to_pylist() == [Decimal(i) for i in range(10)]
    assert found.column("added").to_pylist() == [5] * 10
    assert found.column("region").to_pylist() == ["eu"] * 10
    assert found.schema.names == [field.name for field in later.fields]


@given(st.data())
def test_any_part_of_the_columns_can_be_read(data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from(sorted(EVERYTHING.ids_by_name)), min_size=1))
    wanted = select(EVERYTHING, [name for name in names if "key" not in name] or ["id"])
    content, _ = finished(arrow_table(EVERYTHING, ROWS), EVERYTHING)
    whole = read(content, EVERYTHING)
    part = read(content, wanted)
    for field in wanted.fields:
        if field == EVERYTHING.fields_by_id[field.field_id]:
            assert contents(part.select([field.name])) == contents(whole.select([field.name]))


def test_names_with_dots_are_names() -> None:
    schema = Schema(
        types.NestedField(1, "a.b", types.LongType()),
        types.NestedField(2, "a", types.StructType(types.NestedField(3, "c", types.LongType()))),
    )
    content, _ = finished(arrow_table(schema, [{"a.b": 1, "a": {"c": 2}}]), schema)
    assert read(content, Schema(schema.fields[0])).to_pylist() == [{"a.b": 1}]
    assert read(content, Schema(schema.fields[1])).to_pylist() == [{"a": {"c": 2}}]


def test_a_struct_of_missing_fields_is_null_where_the_file_says_so() -> None:
    schema = Schema(types.NestedField(1, "p", types.StructType(types.NestedField(2, "x", types.IntegerType()))))
    content, _ = finished(arrow_table(schema, [{"p": {"x": 1}}, {"p": None}]), schema)
    later = Schema(
        types.NestedField(1, "p", types.StructType(types.NestedField(3, "y", types.IntegerType(), False, None, 0, 0)))
    )
    assert read(content, later).to_pylist() == [{"p": {"y": 0}}, {"p": None}]


def test_positions_and_constants_need_no_column() -> None:
    content, _ = finished(arrow_table(EVERYTHING, ROWS), EVERYTHING)
    wanted = Schema(reserved.POS, types.NestedField(30, "region", types.StringType()))
    found = read(content, wanted, constants={30: "eu"})
    assert found.column("_pos").to_pylist() == list(range(10))
    assert found.column("region").to_pylist() == ["eu"] * 10


ONE = Schema(types.NestedField(1, "id", types.LongType(), True))


def test_splits_cover_every_row_once_with_its_position() -> None:
    sink = io.BytesIO()
    writer = OrcFileWriter(sink, ONE, {"write.orc.stripe-size-bytes": "65536"})
    values = [(i * 6364136223846793005 + 1442695040888963407) % 2**62 for i in range(100_000)]
    for start in range(0, 100_000, 1000):
        writer.write(pa.table({"id": values[start : start + 1000]}))
        assert writer.bytes_written >= len(sink.getvalue())
    done = writer.close()
    assert len(done.split_offsets) > 3
    assert done.split_offsets[0] == 3
    reader = OrcFileReader(io.BytesIO(sink.getvalue()), "x", Schema(*ONE.fields, reserved.POS))
    size, found, splits = done.file_size_in_bytes, [], 0
    for start in range(0, size, size // 5 + 1):
        batches = list(reader.batches(split=(start, size // 5 + 1), batch_rows=100))
        splits += bool(batches)
        found += [(row["_pos"], row["id"]) for batch in batches for row in batch.to_pylist()]
    assert found == list(enumerate(values))
    assert splits > 3


@pytest.mark.parametrize(
    ("codec", "stored"),
    [
        ("zlib", "ZLIB"),
        ("zstd", "ZSTD"),
        ("snappy", "SNAPPY"),
        ("lz4", "LZ4"),
        ("none", "UNCOMPRESSED"),
        (None, "ZLIB"),
    ],
)
def test_compression_by_property(codec: str | None, stored: str) -> None:
    properties = {} if codec is None else {"write.orc.compression-codec": codec}
    sink = io.BytesIO()
    writer = OrcFileWriter(sink, ONE, properties, metadata={"note": "x" * 300_000})
    writer.write(pa.table({"id": [1]}))
    assert writer.close().split_offsets == (3,)
    file = orc.ORCFile(io.BytesIO(sink.getvalue()))
    assert file.compression == stored
    assert file.metadata[b"note"] == b"x" * 300_000
    reader = OrcFileReader(io.BytesIO(sink.getvalue()), "x", ONE)
    assert [batch.to_pylist() for batch in reader.batches()] == [[{"id": 1}]]


def test_settings_that_mean_nothing_are_refused() -> None:
    with pytest.raises(InvalidPropertyError, match="'zip'; it must be one of"):
        OrcFileWriter(io.BytesIO(), ONE, {"write.orc.compression-codec": "zip"})


def test_null_in_a_required_field_is_refused_at_every_level() -> None:
    schema = Schema(types.NestedField(1, "p", types.StructType(types.NestedField(2, "x", types.IntegerType(), True))))
    loose = pa.struct([pa.field("x", pa.int32())])
    writer = OrcFileWriter(io.BytesIO(), schema)
    writer.write(pa.table({"p": pa.array([{"x": 1}, None], loose)}))
    with pytest.raises(InvalidValueError, match=r"'p\.x'|'p'"):
        writer.write(pa.table({"p": pa.array([{"x": None}], loose)}))


FAR = Schema(types.NestedField(1, "ts", types.TimestampType()))


SECONDS = (
    st.integers(-62_135_596_800, 253_402_300_799) | st.integers(-9_223_372_036, 9_223_372_035) | st.integers(-3, 3)
)
FRACTIONS = st.sampled_from([0, 1, 999, 1000, 500_000, 999_000, 999_999]) | st.integers(0, 999_999)
MICROS = st.none() | st.builds(lambda whole, part: whole * 1_000_000 + part, SECONDS, FRACTIONS)


@given(st.data(), st.sampled_from(["none", "zlib", "zstd", "snappy", "lz4"]))
def test_timestamps_of_all_years_at_every_level(data: st.DataObject, codec: str) -> None:
    schema = Schema(
        types.NestedField(1, "ts", types.TimestampType()),
        types.NestedField(
            2,
            "p",
            types.StructType(
                types.NestedField(3, "s", types.StringType()), types.NestedField(4, "tz", types.TimestamptzType())
            ),
        ),
        types.NestedField(5, "l", types.ListType(6, types.TimestampType(), False)),
        types.NestedField(7, "m", types.MapType(8, types.TimestampType(), 9, types.TimestamptzType(), False)),
        types.NestedField(10, "nano", types.TimestampNanoType()),
    )
    row = st.fixed_dictionaries(
        {
            "ts": MICROS,
            "p": st.none() | st.fixed_dictionaries({"s": st.just("x"), "tz": MICROS}),
            "l": st.none() | st.lists(MICROS, max_size=3),
            "m": st.none() | st.lists(st.tuples(MICROS.filter(lambda key: key is not None), MICROS), max_size=2),
            "nano": st.none() | st.integers(-(2**63), 2**63 - 1),
        }
    )
    table = arrow_table(schema, data.draw(st.lists(row, min_size=1, max_size=10)))
    content, _ = finished(table, schema, {"write.orc.compression-codec": codec})
    assert contents(read(content, schema)) == contents(table)


@pytest.mark.parametrize("version", ["0.11", "0.12"])
def test_many_far_timestamps_in_all_encodings_of_numbers(version: str) -> None:
    """Runs, steps, noise and noise with outliers, over several stripes, in both versions of the run-length encoding."""
    far = 200_000_000_000 * 1_000_000
    random = [(i * 6364136223846793005 + 1442695040888963407) % 2**40 for i in range(20_000)]
    micros = [
        *(far + 5 for _ in range(3000)),
        *(far + i for i in range(5000)),
        *(far + 3 * i * 1_000_000 + 999_999 - i for i in range(3000)),
        *(far + number % 1_000_000 for number in random),
        *(far + (number % 7 if number % 50 else number % 1_000_000) for number in random),
        *(-number for number in random),
    ]
    sink = io.BytesIO()
    table = pa.table({"ts": pa.array(micros, pa.int64()).cast(pa.timestamp("us"))})
    writer = orc.ORCWriter(sink, file_version=version, stripe_size=65536)
    for batch in table.to_batches(max_chunksize=4000):
        writer.write(pa.Table.from_batches([batch]))
    writer.close()
    assert orc.ORCFile(io.BytesIO(sink.getvalue())).nstripes > 1
    found = read(sink.getvalue(), FAR, mapping=create_name_mapping(FAR))
    assert found.column("ts").cast(pa.int64()).to_pylist() == micros


def test_far_timestamps_do_not_fit_nanoseconds() -> None:
    sink = io.BytesIO()
    field = pa.field("ts", pa.timestamp("us"), True, {"iceberg.id": "1", "iceberg.timestamp-unit": "NANOS"})
    orc.write_table(pa.Table.from_arrays([pa.array([2**53], field.type)], schema=pa.schema([field])), sink)
    assert read(sink.getvalue(), Schema(types.NestedField(1, "ts", types.TimestampNanoType()))) is not None
    sink = io.BytesIO()
    orc.write_table(pa.Table.from_arrays([pa.array([2**56], field.type)], schema=pa.schema([field])), sink)
    with pytest.raises(InvalidValueError, match=r"memory:x\.orc: a timestamp is outside of the range"):
        read(sink.getvalue(), Schema(types.NestedField(1, "ts", types.TimestampNanoType())))


def test_nanoseconds_are_cut_downwards() -> None:
    sink = io.BytesIO()
    orc.write_table(pa.table({"ts": pa.array([-1, -1000, -1001, 1999, None], pa.timestamp("ns"))}), sink)
    found = read(sink.getvalue(), FAR, mapping=create_name_mapping(FAR))
    assert found.column("ts").cast(pa.int64()).to_pylist() == [-1, -1, -2, 1, None]


def test_files_of_other_writers_by_name_mapping() -> None:
    wanted = Schema(
        types.NestedField(1, "small", types.IntegerType()),
        types.NestedField(2, "time", types.TimeType()),
        types.NestedField(3, "uuid", types.UUIDType()),
        types.NestedField(4, "code", types.FixedType(3)),
        types.NestedField(5, "raw", types.BinaryType()),
        types.NestedField(
            6, "tags", types.ListType(7, types.StructType(types.NestedField(8, "x", types.LongType())), False)
        ),
        types.NestedField(9, "props", types.MapType(10, types.StringType(), 11, types.UUIDType(), False)),
        types.NestedField(12, "added", types.StringType()),
    )
    table = pa.table(
        {
            "small": pa.array([1, 2], pa.int8()),
            "time": pa.array([5, 6], pa.int64()),
            "uuid": pa.array([UUID(int=1).bytes, None], pa.binary()),
            "code": pa.array([b"abc", b"xyz"], pa.binary()),
            "raw": pa.array([b"", None], pa.binary()),
            "tags": pa.array([[{"x": 1}], None], pa.list_(pa.struct([("x", pa.int64())]))),
            "props": pa.array([[("k", UUID(int=2).bytes)], []], pa.map_(pa.string(), pa.binary())),
            "unknown": pa.array([1, 2]),
        }
    )
    sink = io.BytesIO()
    orc.write_table(table, sink)
    assert contents(read(sink.getvalue(), wanted, mapping=create_name_mapping(wanted))) == [
        {
            "small": 1,
            "time": 5,
            "uuid": UUID(int=1).bytes,
            "code": b"abc",
            "raw": b"",
            "tags": [{"x": 1}],
            "props": [["k", UUID(int=2).bytes]],
            "added": None,
        },
        {
            "small": 2,
            "time": 6,
            "uuid": None,
            "code": b"xyz",
            "raw": None,
            "tags": None,
            "props": [],
            "added": None,
        },
    ]
    assert (
        read(sink.getvalue(), Schema(types.NestedField(1, "small", types.IntegerType()))).to_pylist()
        == [{"small": None}] * 2
    )


def test_a_fixed_of_another_length_is_damage() -> None:
    wanted = Schema(types.NestedField(4, "code", types.FixedType(3)))
    sink = io.BytesIO()
    orc.write_table(pa.table({"code": pa.array([b"abcd"], pa.binary())}), sink)
    with pytest.raises(CorruptFileError, match=r"memory:x\.orc"):
        read(sink.getvalue(), wanted, mapping=create_name_mapping(wanted))


def test_a_union_is_no_column() -> None:
    union = pa.UnionArray.from_sparse(pa.array([0, 1], pa.int8()), [pa.array([1, 2]), pa.array(["a", "b"])])
    sink = io.BytesIO()
    pair = pa.StructArray.from_arrays([union, pa.array([3, 4])], names=["u", "x"])
    orc.write_table(pa.table({"u": union, "id": [1, 2], "p": pair}), sink)
    wanted = Schema(
        types.NestedField(1, "u", types.StringType()),
        types.NestedField(2, "id", types.LongType()),
        types.NestedField(3, "p", types.StructType(types.NestedField(4, "x", types.LongType()))),
    )
    mapping = create_name_mapping(wanted)
    with pytest.raises(IncompatibleChangeError, match="column 'u' is of an ORC type that no table has"):
        read(sink.getvalue(), wanted, mapping=mapping)
    found = read(sink.getvalue(), Schema(*wanted.fields[1:]), mapping=mapping).to_pylist()
    assert found == [{"id": 1, "p": {"x": 3}}, {"id": 2, "p": {"x": 4}}]


@given(st.data())
def test_cut_files_give_our_errors(data: st.DataObject) -> None:
    schema = Schema(
        types.NestedField(1, "id", types.LongType(), True),
        types.NestedField(2, "s", types.StringType()),
        types.NestedField(3, "l", types.ListType(4, types.FixedType(3), False)),
    )
    codec = data.draw(st.sampled_from(["none", "zlib", "zstd"]))
    rows = [{"id": i, "s": "x" * i, "l": [b"abc", None]} for i in range(20)]
    content, _ = finished(arrow_table(schema, rows), schema, {"write.orc.compression-codec": codec})
    # Only cut, not changed: ORC has no checksums, and over some changed bytes pyarrow ends the process.
    damaged = content[: data.draw(st.integers(0, len(content) - 1))] + data.draw(st.binary(max_size=3))
    with pytest.raises(CorruptFileError, match=r"memory:bad\.orc"):
        OrcFileReader(io.BytesIO(damaged), "memory:bad.orc", schema)


def test_other_files_are_no_orc_files() -> None:
    for content in (b"", b"ORC", b"PAR1" * 10, bytes(100)):
        with pytest.raises(CorruptFileError, match="memory:x"):
            read(content, ONE)
