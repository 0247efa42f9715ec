"""Avro files: what is written is read again by field id, by others too, and files of other writers are understood."""

import io
import json
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import duckdb
import duckdb_extension_avro
import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from icefloe.avro import avro_schema_of, decimal_width, open_container, zigzag
from icefloe.errors import (
    CorruptFileError,
    IncompatibleChangeError,
    InvalidInputError,
    InvalidPropertyError,
    InvalidSchemaError,
    InvalidValueError,
)
from icefloe.formats.array_metrics import MetricsCollector
from icefloe.formats.avro_encoding import varints
from icefloe.formats.avro_reader import AvroFileReader
from icefloe.formats.avro_writer import AvroFileWriter
from icefloe.formats.file_writing import WrittenFile
from icefloe.formats.metrics import metrics_modes
from icefloe.schema import NameMapping, Schema, create_name_mapping, reserved, select, types
from icefloe.schema.name_mapping import MappedField
from icefloe.versions import ALL_VERSIONS
from tests.avro.kernel_choice import compiled_kernels, plain_kernels
from tests.formats.rows import VARIANTS, arrow_table, contents, tables_of
from tests.strategies import schemas


def finished(table: Any, schema: Schema, properties: dict[str, str] | None = None) -> tuple[bytes, WrittenFile]:
    sink = io.BytesIO()
    writer = AvroFileWriter(sink, schema, properties)
    for batch in table.to_batches(max_chunksize=5):
        writer.write(batch)
    done = writer.close()
    return sink.getvalue(), done


def read(data: bytes, wanted: Schema, **options: Any) -> Any:
    reader = AvroFileReader(io.BytesIO(data), "memory:x.avro", wanted, **options)
    batches = list(reader.batches())
    return pa.Table.from_batches(batches) if batches else None


def storable(schema: Schema) -> bool:
    try:
        AvroFileWriter(io.BytesIO(), schema)
    except InvalidSchemaError:
        return False
    return True


def foreign(schema: dict[str, Any], rows: list[dict[str, Any]], codec: str = "null", interval: int = 16000) -> bytes:
    """A file as another writer makes it."""
    sink = io.BytesIO()
    fastavro.writer(sink, schema, rows, codec=codec, sync_interval=interval)
    return sink.getvalue()


def record(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": "row", "fields": list(fields)}


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
        assert done.metrics.column_sizes == {}
        found = read(content, schema)
        if table.num_rows == 0:
            assert found is None
        else:
            found.validate(full=True)
            assert found.schema.equals(table.schema, check_metadata=True)
            assert contents(found) == contents(table)

    check()


@given(st.data())
def test_others_read_what_is_written(data: st.DataObject) -> None:
    schema = data.draw(schemas().filter(storable))
    table = data.draw(tables_of(schema))
    content, done = finished(table, schema)
    reader = fastavro.reader(io.BytesIO(content))
    assert json.loads(reader.metadata["iceberg.schema"])["type"] == "struct"
    names = fastavro.parse_schema(reader.writer_schema)
    assert len(names["fields"]) <= len(schema.fields)  # type: ignore[call-overload, index]  # a record
    # fastavro makes datetime objects of timestamps, which do not reach every year: it is told to leave them.
    plain = _without_logical(reader.writer_schema)
    assert sum(1 for _ in fastavro.reader(io.BytesIO(_with_schema(content, plain)))) == table.num_rows
    collector = MetricsCollector(schema, metrics_modes(schema, {}))
    collector.add(table)
    assert done.metrics == collector.metrics()


def _without_logical(schema: Any) -> Any:
    match schema:
        case dict():
            return {key: _without_logical(inner) for key, inner in schema.items() if key != "logicalType"}
        case list():
            return [_without_logical(inner) for inner in schema]
        case _:
            return schema


def _with_schema(content: bytes, schema: Any) -> bytes:
    """The blocks of a file below a header with another schema."""
    sync = content[-16:]
    head_end = content.index(sync) + 16 if content.count(sync) > 1 else len(content)
    entries = {b"avro.schema": json.dumps(schema).encode(), b"avro.codec": b"deflate"}
    head = b"Obj\x01" + zigzag(len(entries))
    for key, value in entries.items():
        head += zigzag(len(key)) + key + zigzag(len(value)) + value
    return head + zigzag(0) + sync + content[head_end:]


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_numbers_of_any_length(numbers: list[int]) -> None:
    found = varints(pa.array(numbers, pa.int64()).to_numpy())
    assert found.to_pylist() == [zigzag(number) for number in numbers]


@pytest.mark.parametrize(("precision", "width"), [(1, 1), (2, 1), (3, 2), (9, 4), (18, 8), (19, 9), (38, 16)])
def test_decimals_take_the_fewest_bytes(precision: int, width: int) -> None:
    assert decimal_width(precision) == width


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
    types.NestedField(12, "by day", types.MapType(13, types.DateType(), 14, types.UUIDType(), True), False, "per day"),
    types.NestedField(15, "1st", types.TimestamptzType()),
    types.NestedField(16, "price", types.DecimalType(9, 2), False, None, Decimal("1.50"), Decimal("1.50")),
    types.NestedField(17, "other", types.DecimalType(9, 2)),
    types.NestedField(18, "nano", types.TimestampNanoType()),
)
ROWS = [
    {
        "id": i,
        "tags": ["a", None][: i % 3],
        "props": [("k", i)],
        "place": {"zip": str(i), "doc": VARIANTS[i % 4]},
        "doc": VARIANTS[(i + 1) % 4],
        "nothing": None,
        "by day": [(i, UUID(int=i).bytes)],
        "1st": i,
        "price": None if i % 2 else Decimal(i),
        "other": Decimal(-i),
        "nano": i,
    }
    for i in range(10)
]


def test_the_schema_is_the_one_that_the_spec_draws() -> None:
    fields = {field["field-id"]: field for field in avro_schema_of(Schema(*EVERYTHING.fields[:5]))["fields"]}
    assert fields[1] == {"name": "id", "type": "long", "field-id": 1}
    assert fields[2]["type"] == ["null", {"type": "array", "items": ["null", "string"], "element-id": 3}]
    assert fields[2]["default"] is None
    assert fields[4]["type"][1] == {"type": "map", "values": ["null", "int"], "key-id": 5, "value-id": 6}
    assert fields[7]["type"][1]["name"] == "r7"
    assert fields[10]["type"][1]["logicalType"] == "variant"
    assert [part["name"] for part in fields[10]["type"][1]["fields"]] == ["metadata", "value"]
    fields = {field["field-id"]: field for field in avro_schema_of(Schema(*EVERYTHING.fields[6:]))["fields"]}
    by_day = fields[12]
    assert (by_day["name"], by_day["iceberg-field-name"], by_day["doc"]) == ("by_x20day", "by day", "per day")
    array = by_day["type"][1]
    assert (array["type"], array["logicalType"], array["items"]["name"]) == ("array", "map", "k13_v14")
    assert [(each["name"], each["field-id"]) for each in array["items"]["fields"]] == [("key", 13), ("value", 14)]
    assert array["items"]["fields"][1]["type"] == {
        "type": "fixed",
        "size": 16,
        "logicalType": "uuid",
        "name": "uuid_fixed",
    }
    assert fields[15]["name"] == "_1st"
    assert fields[15]["type"][1] == {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": True}
    assert fields[16]["type"][1] == "null"
    assert fields[16]["default"] == "\x00\x00\x00\x96"
    assert fields[17]["type"] == ["null", "decimal_9_2"]
    assert fields[18]["type"][1] == {"type": "long", "logicalType": "timestamp-nanos", "adjust-to-utc": False}


def test_names_that_avro_makes_the_same_stay_two_columns() -> None:
    schema = Schema(
        types.NestedField(1, "a b", types.LongType()),
        types.NestedField(2, "a_x20b", types.LongType()),
        types.NestedField(3, "ä", types.LongType()),
    )
    table = arrow_table(schema, [{"a b": 1, "a_x20b": 2, "ä": 3}])
    content, _ = finished(table, schema)
    assert read(content, schema).to_pylist() == table.to_pylist()
    [row] = fastavro.reader(io.BytesIO(content))
    assert row == {"a_x20b_1": 1, "a_x20b": 2, "_xE4": 3}


def test_columns_are_found_by_id_under_new_names_and_places() -> None:
    content, _ = finished(arrow_table(EVERYTHING, ROWS), EVERYTHING)
    later = Schema(
        types.NestedField(16, "cost", types.DecimalType(18, 2)),
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
    assert found.column("cost").to_pylist() == [None if i % 2 else Decimal(i) for i in range(10)]
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


@pytest.mark.parametrize("columns", [ONE, Schema(*ONE.fields, reserved.POS)])
@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_splits_cover_every_row_once(columns: Schema, codec: str) -> None:
    document = record({"name": "id", "type": "long", "field-id": 1})
    content = foreign(document, [{"id": (i * 7919) % 10007} for i in range(5000)], codec, interval=500)
    reader = AvroFileReader(io.BytesIO(content), "x", columns)
    size, found, splits = len(content), [], 0
    for start in range(0, size, size // 7 + 1):
        batches = list(reader.batches(split=(start, size // 7 + 1), batch_rows=100))
        splits += bool(batches)
        assert all(batch.num_rows <= 100 for batch in batches)
        found += [tuple(row.values()) for batch in batches for row in batch.to_pylist()]
    assert splits == 7
    values = [(i * 7919) % 10007 for i in range(5000)]
    assert found == ([(value, i) for i, value in enumerate(values)] if len(columns) == 2 else [(v,) for v in values])


def test_large_files_have_many_blocks_and_honest_sizes() -> None:
    sink = io.BytesIO()
    writer = AvroFileWriter(sink, ONE, {"write.avro.compression-codec": "uncompressed"})
    for start in range(0, 500_000, 50_000):
        writer.write(pa.table({"id": range(start, start + 50_000)}))
        assert abs(writer.bytes_written - len(sink.getvalue())) < 1 << 18
    done = writer.close()
    assert done.file_size_in_bytes == len(sink.getvalue())
    blocks = list(fastavro.block_reader(io.BytesIO(sink.getvalue())))
    assert len(blocks) > 4
    assert sum(block.num_records for block in blocks) == 500_000
    found = read(sink.getvalue(), Schema(*ONE.fields, reserved.POS))
    assert found.column("id").to_pylist() == found.column("_pos").to_pylist() == list(range(500_000))


@pytest.mark.parametrize(
    ("codec", "stored"),
    [("gzip", "deflate"), ("zstd", "zstandard"), ("snappy", "snappy"), ("uncompressed", "null"), (None, "deflate")],
)
def test_compression_by_property(codec: str | None, stored: str) -> None:
    properties = {} if codec is None else {"write.avro.compression-codec": codec}
    content, _ = finished(arrow_table(ONE, [{"id": 1}]), ONE, properties)
    assert open_container(content, "x").header.codec == stored
    assert read(content, ONE).to_pylist() == [{"id": 1}]
    if stored in ("deflate", "null"):  # fastavro needs more packages for the others
        assert list(fastavro.reader(io.BytesIO(content))) == [{"id": 1}]


@pytest.fixture(scope="module")
def duck() -> Any:
    [extension] = Path(str(duckdb_extension_avro.__file__)).parent.rglob("*.duckdb_extension")
    connection = duckdb.connect(":memory:", config={"allow_unsigned_extensions": "true"})
    connection.execute(f"LOAD '{extension}'")
    yield connection
    connection.close()


@pytest.mark.parametrize("codec", ["gzip", "snappy", "uncompressed"])  # it does not know zstd
def test_duckdb_reads_what_is_written(duck: Any, tmp_path: Path, codec: str) -> None:
    schema = select(EVERYTHING, ["id", "tags", "props", "place.zip", "other", "1st"])
    rows = [{field.name: row[field.name] for field in schema.fields} for row in ROWS]
    content, _ = finished(arrow_table(schema, rows), schema, {"write.avro.compression-codec": codec})
    (tmp_path / "x.avro").write_bytes(content)
    found = duck.execute(
        f"select id, len(tags), props['k'], place.zip, other, epoch_us(_1st) from read_avro('{tmp_path}/x.avro')"
    ).fetchall()
    assert found == [(i, i % 3, i, str(i), Decimal(-i), i) for i in range(10)]


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"write.avro.compression-codec": "zip"}, "'zip'; it must be one of"),
        ({"write.avro.compression-level": "99"}, "is 99; gzip takes 0 to 9"),
    ],
)
def test_settings_that_mean_nothing_are_refused(properties: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidPropertyError, match=message):
        AvroFileWriter(io.BytesIO(), ONE, properties)


def test_null_in_a_required_field_is_refused_at_every_level() -> None:
    schema = Schema(types.NestedField(1, "p", types.StructType(types.NestedField(2, "x", types.IntegerType(), True))))
    loose = pa.struct([pa.field("x", pa.int32())])
    writer = AvroFileWriter(io.BytesIO(), schema)
    writer.write(pa.table({"p": pa.array([{"x": 1}, None], loose)}))
    with pytest.raises(InvalidValueError, match=r"'x'|'p'"):
        writer.write(pa.table({"p": pa.array([{"x": None}], loose)}))


FOREIGN = record(
    {"name": "ms", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    {"name": "us", "type": [{"type": "long", "logicalType": "timestamp-micros"}, "null"]},
    {"name": "local", "type": {"type": "long", "logicalType": "local-timestamp-millis"}},
    {"name": "time", "type": ["null", {"type": "int", "logicalType": "time-millis"}]},
    {"name": "uuid", "type": {"type": "string", "logicalType": "uuid"}},
    {"name": "dec", "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 2}]},
    {"name": "suit", "type": {"type": "enum", "name": "suit", "symbols": ["spades", "hearts"]}},
    {"name": "point", "type": {"type": "record", "name": "p", "fields": [{"name": "x", "type": "int"}]}},
    {"name": "points", "type": {"type": "array", "items": "p"}},
    {"name": "named", "type": {"type": "map", "values": "p"}},
    {"name": "odd", "type": ["null", "string", "long"]},
    {"name": "wide", "type": {"type": "fixed", "name": "w", "size": 20, "logicalType": "decimal", "precision": 5}},
)
FOREIGN_ROWS: list[dict[str, Any]] = [
    {
        "ms": 1_500,
        "us": None if i % 2 else 7,
        "local": -1,
        "time": None if i % 2 else 3,
        "uuid": str(UUID(int=5)),
        "dec": None if i % 2 else Decimal("-12.50") if i else Decimal("123456789012345678.90"),
        "suit": "hearts",
        "point": {"x": i},
        "points": [{"x": 1}, {"x": 2}],
        "named": {"a": {"x": 9}},
        "odd": 5 if i % 2 else "five",
        "wide": Decimal(-7),
    }
    for i in range(4)
]
WANTED = Schema(
    types.NestedField(1, "ms", types.TimestamptzType()),
    types.NestedField(2, "us", types.TimestamptzType()),
    types.NestedField(3, "local", types.TimestampType()),
    types.NestedField(4, "time", types.TimeType()),
    types.NestedField(5, "uuid", types.UUIDType()),
    types.NestedField(6, "dec", types.DecimalType(20, 2)),
    types.NestedField(7, "suit", types.StringType()),
    types.NestedField(
        8, "points", types.ListType(9, types.StructType(types.NestedField(10, "x", types.IntegerType())), True)
    ),
    types.NestedField(
        11,
        "named",
        types.MapType(
            12, types.StringType(), 13, types.StructType(types.NestedField(14, "x", types.IntegerType())), True
        ),
    ),
    types.NestedField(15, "wide", types.DecimalType(5, 0)),
)


def test_files_of_other_writers_by_name_mapping() -> None:
    rows = contents(read(foreign(FOREIGN, FOREIGN_ROWS), WANTED, mapping=create_name_mapping(WANTED)))
    assert rows[0] == {
        "ms": 1_500_000,
        "us": 7,
        "local": -1000,
        "time": 3000,
        "uuid": UUID(int=5).bytes,
        "dec": Decimal("123456789012345678.90"),
        "suit": "hearts",
        "points": [{"x": 1}, {"x": 2}],
        "named": [["a", {"x": 9}]],
        "wide": Decimal(-7),
    }
    assert (rows[1]["us"], rows[1]["time"], rows[1]["dec"]) == (None, None, None)
    assert rows[2]["dec"] == Decimal("-12.50")


def test_a_named_type_may_be_left_out_where_it_is_defined() -> None:
    wanted = select(WANTED, ["points"])
    rows = read(foreign(FOREIGN, FOREIGN_ROWS), wanted, mapping=create_name_mapping(wanted)).to_pylist()
    assert rows == [{"points": [{"x": 1}, {"x": 2}]}] * 4


def test_a_union_of_several_types_is_no_column() -> None:
    mapping = NameMapping((MappedField(1, ("odd",)),))
    wanted = Schema(types.NestedField(1, "odd", types.StringType()))
    with pytest.raises(IncompatibleChangeError, match=r"memory:x\.avro: column 'odd' is a union of several"):
        read(foreign(FOREIGN, FOREIGN_ROWS), wanted, mapping=mapping)


def test_without_ids_and_mapping_nothing_is_guessed() -> None:
    wanted = Schema(types.NestedField(7, "suit", types.StringType()))
    assert read(foreign(FOREIGN, FOREIGN_ROWS), wanted).to_pylist() == [{"suit": None}] * 4


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("long", "its rows are not Avro records"),
        (record({"name": "a", "type": "row"}), "holds itself"),
        (record({"name": "a", "type": {"type": "array", "items": "null"}}), "items take no bytes"),
        (record({"name": "a", "type": "nope"}), "'nope' is unknown"),
        (record({"name": "a"}), "is not a type"),
        ({"type": "record", "name": "x"}, "no list of fields"),
        (record({"name": "a", "type": {"type": "fixed", "name": "f", "size": -1}}), "has the size -1"),
    ],
)
def test_schemas_that_no_table_has(document: Any, message: str) -> None:
    content, _ = finished(arrow_table(ONE, [{"id": 1}]), ONE)
    with pytest.raises(CorruptFileError, match=message):
        read(_with_schema(content, document), ONE)


@given(st.data())
def test_damaged_files_give_our_errors(data: st.DataObject) -> None:
    schema = Schema(
        types.NestedField(1, "id", types.LongType(), True),
        types.NestedField(2, "s", types.StringType()),
        types.NestedField(3, "l", types.ListType(4, types.FixedType(3), False)),
        types.NestedField(5, "b", types.BinaryType()),
        types.NestedField(6, "d", types.DecimalType(5, 2)),
    )
    codec = data.draw(st.sampled_from(["uncompressed", "gzip", "zstd", "snappy"]))
    rows = [
        {"id": i, "s": "x" * i, "l": [b"abc", None], "b": None if i % 2 else b"y", "d": Decimal(1)} for i in range(20)
    ]
    content, _ = finished(arrow_table(schema, rows), schema, {"write.avro.compression-codec": codec})
    damaged = bytearray(content[: data.draw(st.integers(0, len(content)) | st.just(len(content)))])
    body = content.index(content[-16:])
    for _ in range(data.draw(st.integers(0, 3))):
        if damaged:
            low = body if body < len(damaged) and data.draw(st.booleans()) else 0
            damaged[data.draw(st.integers(low, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    with compiled_kernels():
        compiled = _outcome(bytes(damaged), schema)
    with plain_kernels():
        assert _outcome(bytes(damaged), schema) == compiled


def _outcome(content: bytes, schema: Schema) -> Any:
    """What is read, or why not."""
    found = []
    try:
        for batch in AvroFileReader(io.BytesIO(content), "memory:bad.avro", schema).batches():
            batch.validate(full=True)
            assert batch.num_columns == 5
            found.append(batch)
    except CorruptFileError as error:
        assert "memory:bad.avro" in str(error)  # noqa: PT017  # an intact file is fine too
        return str(error)
    except (InvalidInputError, IncompatibleChangeError, LookupError) as error:
        return str(error)
    return found


@given(st.data())
def test_compiled_and_plain_code_read_the_same(data: st.DataObject) -> None:
    schema = data.draw(schemas().filter(storable))
    table = data.draw(tables_of(schema))
    content, _ = finished(table, schema)
    with compiled_kernels():
        compiled = read(content, schema)
    with plain_kernels():
        plain = read(content, schema)
    assert (plain is None and compiled is None) or contents(plain) == contents(compiled) == contents(table)


NESTED = record(
    {
        "name": "a",
        "field-id": 1,
        "type": [
            "null",
            {"type": "array", "element-id": 2, "items": ["null", {"type": "array", "element-id": 3, "items": "long"}]},
        ],
    },
    {
        "name": "m",
        "field-id": 4,
        "type": {
            "type": "map",
            "key-id": 5,
            "value-id": 6,
            "values": {"type": "array", "element-id": 7, "items": ["string", "null"]},
        },
    },
)
NESTED_SCHEMA = Schema(
    types.NestedField(1, "a", types.ListType(2, types.ListType(3, types.LongType(), True), False)),
    types.NestedField(4, "m", types.MapType(5, types.StringType(), 6, types.ListType(7, types.StringType(), False))),
)


@pytest.mark.parametrize("kernels", [compiled_kernels, plain_kernels])
def test_lists_within_lists(kernels: Any) -> None:
    rows: list[dict[str, Any]] = [
        {"a": [[1, 2], None, [], [3]], "m": {"x": ["a", None], "y": []}},
        {"a": None, "m": {}},
        {"a": [], "m": {"z": ["b"]}},
        {"a": [[4]] * 3000, "m": {"k": ["c"] * 5000}},
    ]
    with kernels():
        found = contents(read(foreign(NESTED, rows), NESTED_SCHEMA))
    assert found == [{"a": row["a"], "m": [[key, value] for key, value in row["m"].items()]} for row in rows]
