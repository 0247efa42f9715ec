"""Parquet files: what is written is read again, by field id, with ids and annotations at every level, and right metrics."""

import gc
import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st

from icefloe.errors import (
    CorruptFileError,
    InvalidInputError,
    InvalidPropertyError,
    InvalidSchemaError,
    InvalidValueError,
    StorageError,
)
from icefloe.expressions import bind, mask, parse_expression
from icefloe.formats.array_metrics import MetricsCollector
from icefloe.formats.file_writing import WrittenFile
from icefloe.formats.metrics import leaves, metrics_modes
from icefloe.formats.parquet.metrics import row_group_filter
from icefloe.formats.parquet.reader import ParquetFileReader
from icefloe.formats.parquet.writer import ParquetFileWriter
from icefloe.schema import Schema, parse_ddl, reserved, select, types
from icefloe.versions import ALL_VERSIONS
from tests.formats.rows import VARIANTS, arrow_table, contents, tables_of
from tests.strategies import FILTER_SCHEMA, predicates, schemas, wkb_points


def finished(table: Any, schema: Schema, properties: dict[str, str] | None = None) -> tuple[bytes, WrittenFile]:
    sink = io.BytesIO()
    writer = ParquetFileWriter(sink, schema, properties)
    for batch in table.to_batches(max_chunksize=5):
        writer.write(batch)
    done = writer.close()
    return sink.getvalue(), done


def read(data: bytes, wanted: Schema, **options: Any) -> Any:
    reader = ParquetFileReader(io.BytesIO(data), "memory:x.parquet", wanted, **options)
    batches = list(reader.batches())
    return pa.Table.from_batches(batches) if batches else None


def storable(schema: Schema) -> bool:
    """Whether a file can hold the schema at all: something but unknown in each struct, list and map."""
    try:
        ParquetFileWriter(io.BytesIO(), schema)
    except InvalidSchemaError:
        return False
    return True


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_what_is_written_is_read_again(version: int) -> None:
    @given(st.data())
    def check(data: st.DataObject) -> None:
        schema = data.draw(schemas(version).filter(storable))
        table = data.draw(tables_of(schema))
        content, done = finished(table, schema)
        assert done.file_size_in_bytes == len(content)
        assert done.metrics.record_count == table.num_rows
        found = read(content, schema)
        if table.num_rows == 0:
            assert found is None
        else:
            assert found.schema.equals(table.schema, check_metadata=True)
            assert contents(found) == contents(table)

    check()


@given(st.data())
def test_metrics_of_the_footer_are_those_of_the_values(data: st.DataObject) -> None:
    schema = data.draw(schemas().filter(storable))
    table = data.draw(tables_of(schema))
    _, done = finished(table, schema)
    collector = MetricsCollector(schema, metrics_modes(schema, {}))
    collector.add(table)
    naive = collector.metrics()
    assert done.metrics.record_count == naive.record_count
    if table.num_rows:
        assert done.metrics.value_counts == naive.value_counts
        assert done.metrics.null_value_counts == naive.null_value_counts
        assert done.metrics.nan_value_counts == naive.nan_value_counts
        assert _without_geo(done.metrics.lower_bounds, schema) == _without_geo(naive.lower_bounds, schema)
        assert _without_geo(done.metrics.upper_bounds, schema) == _without_geo(naive.upper_bounds, schema)


def _without_geo(bounds: Any, schema: Schema) -> dict[int, bytes]:
    """Boxes may be left out by one of the two, never differ."""
    geo = types.GeometryType | types.GeographyType
    return {i: bound for i, bound in bounds.items() if not isinstance(schema.fields_by_id[i].field_type, geo)}


@given(st.lists(st.none() | wkb_points(), min_size=1, max_size=5))
def test_boxes_of_points_from_the_footer(points: list[bytes | None]) -> None:
    for kind in (types.GeometryType(), types.GeographyType()):
        schema = Schema(types.NestedField(1, "g", kind))
        table = arrow_table(schema, [{"g": point} for point in points])
        _, done = finished(table, schema)
        collector = MetricsCollector(schema, metrics_modes(schema, {}))
        collector.add(table)
        for ours, naive in zip(
            (done.metrics.lower_bounds, done.metrics.upper_bounds),
            (collector.metrics().lower_bounds, collector.metrics().upper_bounds),
            strict=True,
        ):
            assert ours == naive or ours == {}


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
    }
    for i in range(10)
]


def test_ids_and_annotations_at_every_level() -> None:
    content, _ = finished(arrow_table(EVERYTHING, ROWS), EVERYTHING)
    text = str(pq.ParquetFile(io.BytesIO(content)).schema)
    for line in (
        "required int64 field_id=1 id;",
        "optional binary field_id=3 element (String);",
        "required binary field_id=5 key (String);",
        "optional int32 field_id=6 value;",
        "optional group field_id=9 doc (Variant(1)) {",
        "optional group field_id=10 doc (Variant(1)) {",
        "optional binary field_id=12 where (Geometry(crs=EPSG:3857));",
    ):
        assert line in text
    assert "nothing" not in text


def test_columns_are_found_by_id_under_new_names_and_places() -> None:
    content, _ = finished(arrow_table(EVERYTHING, ROWS), EVERYTHING)
    later = Schema(
        types.NestedField(12, "shape", types.GeometryType("EPSG:3857")),
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
    assert found.column("added").to_pylist() == [5] * 10
    assert found.column("region").to_pylist() == ["eu"] * 10
    assert found.schema.names == [field.name for field in later.fields]


def test_a_struct_of_missing_fields_is_null_where_the_file_says_so() -> None:
    schema = Schema(types.NestedField(1, "p", types.StructType(types.NestedField(2, "x", types.IntegerType()))))
    content, _ = finished(arrow_table(schema, [{"p": {"x": 1}}, {"p": None}]), schema)
    later = Schema(
        types.NestedField(1, "p", types.StructType(types.NestedField(3, "y", types.IntegerType(), False, None, 0, 0)))
    )
    assert read(content, later).to_pylist() == [{"p": {"y": 0}}, {"p": None}]


def test_null_lists_and_maps_of_uuids_under_new_names() -> None:
    """pyarrow cannot copy an empty array of extension types inside of others."""
    pair = types.StructType(types.NestedField(3, "u", types.UUIDType()))
    schema = Schema(types.NestedField(1, "l", types.ListType(2, pair, False)))
    later = Schema(
        types.NestedField(
            1, "l", types.ListType(2, types.StructType(types.NestedField(3, "v", types.UUIDType())), False)
        )
    )
    content, _ = finished(arrow_table(schema, [{"l": None}, {"l": []}]), schema)
    assert read(content, later).to_pylist() == [{"l": None}, {"l": []}]
    other = types.StructType(types.NestedField(13, "u", types.UUIDType()))
    schema = Schema(types.NestedField(4, "m", types.MapType(5, types.StringType(), 6, other, False)))
    later = Schema(
        types.NestedField(
            4,
            "m",
            types.MapType(
                5, types.StringType(), 6, types.StructType(types.NestedField(13, "v", types.UUIDType())), False
            ),
        )
    )
    content, _ = finished(arrow_table(schema, [{"m": None}, {"m": []}]), schema)
    assert read(content, later).to_pylist() == [{"m": None}, {"m": []}]


@pytest.mark.parametrize("unit", ["us", "ns"])
def test_the_table_says_whether_timestamps_are_instants(unit: str) -> None:
    """Others write all of them as instants, or none."""
    numbers = pa.array([-1, 0, None, 1 << 52], pa.int64())
    suffix = "" if unit == "us" else "_ns"
    for zone, wanted in (("UTC", f"timestamp{suffix}"), (None, f"timestamptz{suffix}")):
        field = pa.field("t", pa.timestamp(unit, zone), metadata={"PARQUET:field_id": "1"})
        sink = io.BytesIO()
        pq.write_table(pa.Table.from_arrays([numbers.cast(field.type)], schema=pa.schema([field])), sink)
        found = read(sink.getvalue(), parse_ddl(f"t {wanted}")).column("t")
        assert found.type == pa.timestamp(unit, None if zone else "UTC")
        assert found.cast(pa.int64()).to_pylist() == numbers.to_pylist()


def test_only_the_wanted_columns_are_read() -> None:
    content, _ = finished(arrow_table(EVERYTHING, ROWS), EVERYTHING)
    wanted = select(EVERYTHING, ["place.zip"])
    reader = ParquetFileReader(io.BytesIO(content), "x", wanted)
    assert len(reader._columns) == 1
    assert [row["place"]["zip"] for batch in reader.batches() for row in batch.to_pylist()] == [
        str(i) for i in range(10)
    ]


def test_positions_and_constants_need_no_column() -> None:
    content, _ = finished(arrow_table(EVERYTHING, ROWS), EVERYTHING)
    wanted = Schema(reserved.POS, types.NestedField(30, "region", types.StringType()))
    found = read(content, wanted, constants={30: "eu"})
    assert found.column("_pos").to_pylist() == list(range(10))
    assert found.column("region").to_pylist() == ["eu"] * 10


def test_splits_cover_every_row_once_with_its_position() -> None:
    schema = Schema(types.NestedField(1, "id", types.LongType(), True))
    sink = io.BytesIO()
    writer = ParquetFileWriter(sink, schema, {"write.parquet.row-group-size-bytes": "2000"})
    for start in range(0, 5000, 250):
        writer.write(arrow_table(schema, [{"id": (i * 7919) % 10007} for i in range(start, start + 250)]))
    done = writer.close()
    assert len(done.split_offsets) > 3
    reader = ParquetFileReader(io.BytesIO(sink.getvalue()), "x", Schema(*schema.fields, reserved.POS))
    size, found = done.file_size_in_bytes, []
    for start in range(0, size, size // 7 + 1):
        for batch in reader.batches(split=(start, size // 7 + 1), batch_rows=100):
            found += [(row["_pos"], row["id"]) for row in batch.to_pylist()]
    assert found == [(i, (i * 7919) % 10007) for i in range(5000)]


def test_row_groups_that_cannot_match_are_left_out() -> None:
    schema = Schema(types.NestedField(1, "id", types.LongType(), True))
    content, _ = finished(arrow_table(schema, [{"id": i} for i in range(10)]), schema)
    reader = ParquetFileReader(io.BytesIO(content), "x", schema)
    assert list(reader.batches(row_groups=lambda footer, _: [False] * footer.num_row_groups)) == []


@pytest.mark.parametrize("codec", ["zstd", "gzip", "snappy", "lz4", "brotli", "uncompressed"])
def test_compression_by_property(codec: str) -> None:
    schema = Schema(types.NestedField(1, "id", types.LongType(), True))
    content, _ = finished(arrow_table(schema, [{"id": 1}]), schema, {"write.parquet.compression-codec": codec})
    chunk = pq.ParquetFile(io.BytesIO(content)).metadata.row_group(0).column(0)
    assert chunk.compression.lower() in (codec, {"uncompressed": "uncompressed", "lz4": "lz4_raw"}.get(codec))
    assert read(content, schema).num_rows == 1


def test_zstd_is_the_default_and_bloom_filters_are_by_property() -> None:
    schema = Schema(types.NestedField(1, "id", types.LongType(), True), types.NestedField(2, "b", types.LongType()))
    properties = {
        "write.parquet.bloom-filter-enabled.column.id": "true",
        "write.parquet.bloom-filter-fpp.column.id": "0.05",
    }
    content, _ = finished(arrow_table(schema, [{"id": 1, "b": 2}]), schema, properties)
    first, second = (pq.ParquetFile(io.BytesIO(content)).metadata.row_group(0).column(i) for i in range(2))
    assert first.compression == "ZSTD"
    assert first.bloom_filter_offset is not None
    assert second.bloom_filter_offset is None


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"write.parquet.compression-codec": "zip"}, "'zip'; it must be one of"),
        ({"write.parquet.row-group-size-bytes": "big"}, "'big'"),
        ({"write.metadata.metrics.default": "some"}, "'some'; it must be none, counts"),
        ({"write.parquet.bloom-filter-enabled.column.nope": "true"}, "names no column"),
    ],
)
def test_settings_that_mean_nothing_are_refused(properties: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidPropertyError, match=message):
        ParquetFileWriter(io.BytesIO(), Schema(types.NestedField(1, "id", types.LongType())), properties)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (pa.table({"other": [1]}), "lacks the columns 'id'"),
        (pa.table({"id": [1, None]}), "required column 'id' has 1 nulls"),
        (pa.table({"id": ["x"]}), "cannot be stored as int64"),
    ],
)
def test_rows_that_do_not_fit_are_refused_by_column(table: Any, message: str) -> None:
    writer = ParquetFileWriter(io.BytesIO(), Schema(types.NestedField(1, "id", types.LongType(), True)))
    with pytest.raises(InvalidValueError, match=message):
        writer.write(table)


def test_a_table_of_unknown_alone_cannot_be_stored() -> None:
    with pytest.raises(InvalidSchemaError, match="only columns of type unknown, which are not stored"):
        ParquetFileWriter(io.BytesIO(), Schema(types.NestedField(1, "n", types.UnknownType())))


@given(st.data())
def test_damaged_files_give_our_errors(data: st.DataObject) -> None:
    schema = Schema(types.NestedField(1, "id", types.LongType(), True), types.NestedField(2, "s", types.StringType()))
    content, _ = finished(arrow_table(schema, [{"id": i, "s": "x" * i} for i in range(20)]), schema)
    damaged = bytearray(content[: data.draw(st.integers(0, len(content)))])
    for _ in range(data.draw(st.integers(0, 3))):
        if damaged:
            damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    try:
        for batch in ParquetFileReader(io.BytesIO(bytes(damaged)), "memory:bad.parquet", schema).batches():
            assert batch.num_columns == 2
    except CorruptFileError as error:
        assert "memory:bad.parquet" in str(error)  # noqa: PT017  # an intact file is fine too
    except InvalidInputError:
        pass
    assert leaves(schema)


TEXTS = Schema(types.NestedField(1, "text", types.StringType()), types.NestedField(2, "data", types.BinaryType()))
_NAMES = pa.array([None if i % 7 == 0 else f"name {i % 5}" for i in range(3000)])
REPEATED = pa.table({"text": _NAMES, "data": _NAMES.cast(pa.binary())})


@pytest.mark.parametrize("large", [False, True])
def test_texts_that_repeat_may_be_given_as_dictionaries(large: bool) -> None:
    rows = REPEATED.cast(pa.schema([("text", pa.large_string()), ("data", pa.large_binary())])) if large else REPEATED
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_arrays(rows.columns, schema=_with_ids(rows.schema)), sink, row_group_size=1000)
    found = read(sink.getvalue(), TEXTS)
    assert found.schema.types == [pa.string(), pa.binary()]
    assert found.to_pydict() == REPEATED.to_pydict()
    found = read(sink.getvalue(), TEXTS, may_be_encoded=True)
    assert large or all(map(pa.types.is_dictionary, found.schema.types))
    assert found.to_pydict() == REPEATED.to_pydict()


def test_texts_that_do_not_repeat_are_given_as_they_are() -> None:
    rows = pa.table({"text": [f"name {i}" for i in range(3000)], "data": [b"%d" % i for i in range(3000)]})
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_arrays(rows.columns, schema=_with_ids(rows.schema)), sink)
    found = read(sink.getvalue(), TEXTS, may_be_encoded=True)
    assert found.schema.types == [pa.string(), pa.binary()]
    assert found.to_pydict() == rows.to_pydict()


def test_a_writer_that_is_not_known_may_have_a_value_twice_in_a_dictionary() -> None:
    content = _of_three_values()
    assert read(content, LETTERS, may_be_encoded=True)["letter"].type == pa.dictionary(pa.int32(), pa.string())
    at = content.index(b"\x01\x00\x00\x00b")
    content = content[: at + 4] + b"a" + content[at + 5 :]
    content = content.replace(b"parquet-cpp-arrow", b"parquet-of-others")
    assert read(content, LETTERS, may_be_encoded=True)["letter"].to_pylist() == ["a", "a", *["c"] * 998]


@pytest.mark.parametrize("may_be_encoded", [False, True])
def test_values_beyond_a_dictionary_are_damage(may_be_encoded: bool) -> None:
    content = _of_three_values()
    # After a group of eight, the rest is one value so many times, in the two bits that three values take.
    run = bytes([(2 * 992) % 128 | 128, 2 * 992 // 128])
    at = content.index(run + b"\x02")
    damaged = content[: at + 2] + b"\x03" + content[at + 3 :]
    with pytest.raises(CorruptFileError, match=r"bad.parquet.*number 3 of a dictionary of 3"):
        list(ParquetFileReader(io.BytesIO(damaged), "bad.parquet", LETTERS, may_be_encoded=may_be_encoded).batches())


LETTERS = Schema(types.NestedField(1, "letter", types.StringType(), required=True))


def _of_three_values() -> bytes:
    sink = io.BytesIO()
    schema = _with_ids(pa.schema([pa.field("letter", pa.string(), False)]))
    rows = pa.Table.from_arrays([pa.array(["a", "b", *["c"] * 998])], schema=schema)
    pq.write_table(rows, sink, compression="none", write_statistics=False)
    return sink.getvalue()


def _with_ids(schema: Any) -> Any:
    fields = [field.with_metadata({"PARQUET:field_id": str(i)}) for i, field in enumerate(schema, 1)]
    return pa.schema(fields)


@given(st.data())
def test_row_groups_with_matching_rows_are_never_left_out(data: st.DataObject) -> None:
    schema = FILTER_SCHEMA
    predicate = bind(data.draw(predicates()), schema)
    table = data.draw(tables_of(schema, max_rows=20))
    sink = io.BytesIO()
    writer = ParquetFileWriter(sink, schema, {"write.parquet.row-group-size-bytes": "1"})
    for batch in table.to_batches(max_chunksize=4):
        writer.write(batch)
    writer.close()
    reader = ParquetFileReader(io.BytesIO(sink.getvalue()), "x", Schema(*schema.fields, reserved.POS))
    kept = list(reader.batches(row_groups=row_group_filter(predicate, schema)))
    found = [position for batch in kept for position in batch.filter(mask(predicate, batch)).column("_pos").to_pylist()]
    assert found == [
        p for batch in reader.batches() for p in batch.filter(mask(predicate, batch)).column("_pos").to_pylist()
    ]


def test_row_groups_out_of_range_are_left_out() -> None:
    schema = Schema(types.NestedField(1, "id", types.LongType(), True))
    sink = io.BytesIO()
    writer = ParquetFileWriter(sink, schema, {"write.parquet.row-group-size-bytes": "1"})
    for start in range(0, 100, 10):
        writer.write(arrow_table(schema, [{"id": i} for i in range(start, start + 10)]))
    writer.close()
    reader = ParquetFileReader(io.BytesIO(sink.getvalue()), "x", schema)
    chosen = row_group_filter(bind(parse_expression("id >= 35 and id < 45"), schema), schema)
    kept = [batch.column("id").to_pylist() for batch in reader.batches(row_groups=chosen)]
    assert [number for numbers in kept for number in numbers] == list(range(35, 45))


class FullDisk:
    """A sink with room for so many bytes."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.writes_after_the_end = 0

    def write(self, data: bytes) -> None:
        if self.room < 0:
            self.writes_after_the_end += 1
        self.room -= len(data)
        if self.room < 0:
            raise StorageError("memory:full", "no space left")


@pytest.mark.parametrize("room", [0, 10, 300])
def test_a_sink_that_fails_gets_nothing_more(room: int) -> None:
    schema = Schema(types.NestedField(1, "id", types.LongType(), True))
    sink = FullDisk(room)

    def write() -> None:
        writer = ParquetFileWriter(sink, schema)
        for _ in range(3):
            writer.write(arrow_table(schema, [{"id": i} for i in range(100)]))
        writer.close()

    with pytest.raises(StorageError, match="no space left"):
        write()
    gc.collect()
    assert sink.writes_after_the_end == 0
