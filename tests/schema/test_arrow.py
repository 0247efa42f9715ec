"""Arrow schemas: round trips with ids at every level, widening of what Arrow has more of, refusal of the rest."""

import io
import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given

from icefloe.errors import InvalidSchemaError, InvalidTypeError
from icefloe.schema import (
    Schema,
    field_to_arrow,
    file_schema_from_arrow,
    schema_from_arrow,
    schema_to_arrow,
    type_from_arrow,
    type_to_arrow,
    types,
)
from tests.strategies import schemas

ID = "PARQUET:field_id"


@given(schemas())
def test_round_trip(schema: Schema) -> None:
    assert schema_from_arrow(schema_to_arrow(schema)).fields == schema.fields
    assert file_schema_from_arrow(schema_to_arrow(schema)).fields == schema.fields


@given(schemas())
def test_without_ids_only_the_ids_differ(schema: Schema) -> None:
    back = schema_from_arrow(schema_to_arrow(schema, ids=False))
    assert back.column_names == schema.column_names
    assert sorted(back.fields_by_id) == list(range(1, len(schema.fields_by_id) + 1))
    for field_id, name in schema.names_by_id.items():
        before, after = schema.fields_by_id[field_id], back.find_field(name)
        assert (before.required, before.doc, type(before.field_type)) == (
            after.required,
            after.doc,
            type(after.field_type),
        )


@given(schemas())
def test_round_trip_through_an_ipc_stream(schema: Schema) -> None:
    arrow = schema_to_arrow(schema)
    back = pa.ipc.read_schema(arrow.serialize())
    assert schema_from_arrow(back).fields == schema.fields


def test_ids_are_at_every_level() -> None:
    inner = types.StructType(types.NestedField(7, "x", types.IntegerType(), True, "the x"))
    schema = Schema(
        types.NestedField(1, "l", types.ListType(2, types.StringType(), False), True),
        types.NestedField(3, "m", types.MapType(4, types.StringType(), 5, inner, True)),
    )
    arrow = schema_to_arrow(schema)
    listed, mapped = arrow.field("l").type, arrow.field("m").type
    assert arrow.field("l").metadata == {b"PARQUET:field_id": b"1"}
    assert not arrow.field("l").nullable
    assert listed.value_field.metadata == {b"PARQUET:field_id": b"2"}
    assert listed.value_field.name == "element"
    assert listed.value_field.nullable
    assert mapped.key_field.metadata == {b"PARQUET:field_id": b"4"}
    assert mapped.item_field.metadata == {b"PARQUET:field_id": b"5"}
    assert not mapped.item_field.nullable
    assert mapped.item_field.type.field("x").metadata == {b"PARQUET:field_id": b"7", b"doc": b"the x"}
    assert schema_to_arrow(schema, ids=False).field("l").metadata is None


def test_parquet_files_keep_ids_and_types() -> None:
    kinds: list[types.IcebergType] = [
        types.IntegerType(),
        types.StringType(),
        types.UUIDType(),
        types.TimestamptzType(),
        types.TimestampNanoType(),
        types.DecimalType(20, 3),
    ]
    kinds += [
        types.FixedType(5),
        types.TimeType(),
        types.DateType(),
        types.VariantType(),
        types.GeographyType("EPSG:4326", "karney"),
    ]
    fields = [types.NestedField(100 + i, f"c{i}", kind, doc=f"doc {i}") for i, kind in enumerate(kinds)]
    fields.append(
        types.NestedField(
            200, "l", types.ListType(201, types.MapType(202, types.StringType(), 203, types.LongType(), False), False)
        )
    )
    schema = Schema(*fields)
    arrow = schema_to_arrow(schema)
    sink = io.BytesIO()
    pq.write_table(arrow.empty_table(), sink)
    back = pq.read_schema(io.BytesIO(sink.getvalue()))
    assert file_schema_from_arrow(back).fields == schema.fields


@pytest.mark.parametrize(
    ("arrow", "kind"),
    [
        (pa.int8(), types.IntegerType()),
        (pa.int16(), types.IntegerType()),
        (pa.uint8(), types.IntegerType()),
        (pa.uint16(), types.IntegerType()),
        (pa.uint32(), types.LongType()),
        (pa.float16(), types.FloatType()),
        (pa.float64(), types.DoubleType()),
        (pa.large_string(), types.StringType()),
        (pa.string_view(), types.StringType()),
        (pa.large_binary(), types.BinaryType()),
        (pa.binary_view(), types.BinaryType()),
        (pa.binary(16), types.FixedType(16)),
        (pa.uuid(), types.UUIDType()),
        (pa.json_(), types.StringType()),
        (pa.date64(), types.DateType()),
        (pa.time32("s"), types.TimeType()),
        (pa.time32("ms"), types.TimeType()),
        (pa.timestamp("s"), types.TimestampType()),
        (pa.timestamp("ms", "Europe/Berlin"), types.TimestamptzType()),
        (pa.timestamp("us", "+02:00"), types.TimestamptzType()),
        (pa.timestamp("ns"), types.TimestampNanoType()),
        (pa.timestamp("ns", "UTC"), types.TimestamptzNanoType()),
        (pa.decimal32(7, 2), types.DecimalType(7, 2)),
        (pa.decimal64(12, 2), types.DecimalType(12, 2)),
        (pa.decimal256(38, 2), types.DecimalType(38, 2)),
        (pa.null(), types.UnknownType()),
        (pa.bool_(), types.BooleanType()),
        (pa.dictionary(pa.int8(), pa.large_string()), types.StringType()),
        (pa.run_end_encoded(pa.int32(), pa.int64()), types.LongType()),
        (pa.list_(pa.int32()), types.ListType(1, types.IntegerType(), False)),
        (pa.large_list(pa.int32()), types.ListType(1, types.IntegerType(), False)),
        (pa.list_(pa.int32(), 3), types.ListType(1, types.IntegerType(), False)),
        (pa.list_view(pa.field("x", pa.int32(), False)), types.ListType(1, types.IntegerType(), True)),
        (pa.large_list_view(pa.int32()), types.ListType(1, types.IntegerType(), False)),
        (pa.map_(pa.string(), pa.int32()), types.MapType(1, types.StringType(), 2, types.IntegerType(), False)),
        (pa.struct([("a", pa.int8())]), types.StructType(types.NestedField(1, "a", types.IntegerType()))),
        (pa.struct([]), types.StructType()),
    ],
    ids=str,
)
def test_what_is_read(arrow: pa.DataType, kind: types.IcebergType) -> None:
    assert type_from_arrow(arrow) == kind
    assert schema_from_arrow(pa.schema([("c", arrow)])).find_type("c").__class__ is kind.__class__


def test_nanoseconds_may_be_read_as_microseconds() -> None:
    arrow = pa.schema([("a", pa.timestamp("ns")), ("b", pa.list_(pa.timestamp("ns", "UTC")))])
    schema = schema_from_arrow(arrow, downcast_ns_timestamp_to_us=True)
    assert schema.find_type("a") == types.TimestampType()
    assert schema.find_type("b.element") == types.TimestamptzType()
    assert type_from_arrow(pa.timestamp("ns"), downcast_ns_timestamp_to_us=True) == types.TimestampType()


@pytest.mark.parametrize(
    ("arrow", "message"),
    [
        (pa.uint64(), "cast it to int64"),
        (pa.time64("ns"), "time64"),
        (pa.duration("s"), "duration"),
        (pa.month_day_nano_interval(), "interval"),
        (pa.decimal256(39, 2), "decimal256"),
        (pa.decimal128(5, -2), "scale -2"),
        (pa.decimal128(5, 7), "scale 7"),
        (pa.binary(0), "fixed_size_binary"),
        (pa.sparse_union([pa.field("x", pa.int8())]), "union"),
        (pa.bool8(), "arrow.bool8"),
        (pa.opaque(pa.string(), "t", "v"), "arrow.opaque"),
    ],
    ids=str,
)
def test_what_is_refused_is_named(arrow: pa.DataType, message: str) -> None:
    with pytest.raises(InvalidTypeError, match=r"column 's\.c\.element'") as caught:
        schema_from_arrow(pa.schema([("s", pa.struct([("c", pa.list_(arrow))]))]))
    assert message in str(caught.value)


def test_partial_ids_are_not_used_for_users_data() -> None:
    arrow = pa.schema([pa.field("a", pa.int32(), metadata={ID: "7"}), pa.field("b", pa.int32())])
    assert [field.field_id for field in schema_from_arrow(arrow)] == [1, 2]


def test_columns_of_files_without_ids_match_nothing() -> None:
    arrow = pa.schema(
        [
            pa.field("a", pa.list_(pa.int32()), metadata={ID: "7"}),
            pa.field("b", pa.int32()),
            pa.field("c", pa.int32(), metadata={ID: "-1"}),
        ]
    )
    schema = file_schema_from_arrow(arrow)
    assert schema.find_field("a").field_id == 7
    others = {schema.find_field(name).field_id for name in ("a.element", "b", "c")}
    assert len(others) == 3
    assert max(others) < 0


@pytest.mark.parametrize("text", ["x", "", "1.5"])
def test_bad_ids(text: str) -> None:
    with pytest.raises(InvalidSchemaError, match="column 'a'"):
        schema_from_arrow(pa.schema([pa.field("a", pa.int32(), metadata={ID: text})]))


@pytest.mark.parametrize("value", [None, {}, [], "a int", pa.int32(), 3])
def test_what_is_no_arrow_schema(value: Any) -> None:
    with pytest.raises(InvalidSchemaError, match=r"pyarrow\.Schema"):
        schema_from_arrow(value)


def test_duplicate_ids() -> None:
    field = pa.field("a", pa.int32(), metadata={ID: "3"})
    with pytest.raises(InvalidSchemaError, match="field id 3"):
        schema_from_arrow(pa.schema([field, field.with_name("b")]))


def geo(content: Any, storage: pa.DataType = None) -> pa.Schema:
    text = content if isinstance(content, str) else json.dumps(content)
    metadata = {"ARROW:extension:name": "geoarrow.wkb", "ARROW:extension:metadata": text}
    return pa.schema([pa.field("g", storage or pa.binary(), metadata=metadata)])


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ("", types.GeometryType()),
        ({}, types.GeometryType()),
        ({"crs": "EPSG:3857"}, types.GeometryType("EPSG:3857")),
        ({"crs": {"id": {"authority": "EPSG", "code": 3857}}}, types.GeometryType("EPSG:3857")),
        ({"edges": "planar"}, types.GeometryType()),
        ({"edges": "vincenty", "crs": "OGC:CRS84"}, types.GeographyType("OGC:CRS84", "vincenty")),
    ],
)
def test_geoarrow_metadata(content: Any, kind: types.IcebergType) -> None:
    assert schema_from_arrow(geo(content)).find_type("g") == kind
    assert schema_from_arrow(geo(content, pa.large_binary())).find_type("g") == kind


@pytest.mark.parametrize("content", ["{", [], {"edges": "bent"}, {"edges": 3}, {"crs": {"name": "x"}}, {"crs": "a,b"}])
def test_bad_geoarrow_metadata(content: Any) -> None:
    with pytest.raises(InvalidTypeError, match="column 'g'"):
        schema_from_arrow(geo(content))


def test_marks_on_the_wrong_storage() -> None:
    with pytest.raises(InvalidTypeError, match="WKB is binary"):
        schema_from_arrow(geo({}, pa.int32()))
    mark = {"ARROW:extension:name": "arrow.parquet.variant"}
    with pytest.raises(InvalidTypeError, match="variant is a struct"):
        schema_from_arrow(pa.schema([pa.field("v", pa.binary(), metadata=mark)]))


class WkbType(pa.ExtensionType):  # type: ignore[misc]  # pyarrow has no types
    def __init__(self) -> None:
        super().__init__(pa.binary(), "geoarrow.wkb")

    def __arrow_ext_serialize__(self) -> bytes:
        return b'{"crs": "EPSG:4326", "edges": "spherical"}'


def test_true_extension_types_are_understood() -> None:
    assert schema_from_arrow(pa.schema([("g", WkbType())])).find_type("g") == types.GeographyType("EPSG:4326")


def test_single_types_and_fields() -> None:
    assert type_to_arrow(types.DecimalType(9, 2)) == pa.decimal128(9, 2)
    assert type_to_arrow(types.FixedType(3)) == pa.binary(3)
    assert field_to_arrow(types.NestedField(4, "a", types.TimeType(), True)).equals(
        pa.field("a", pa.time64("us"), False, {ID: "4"}), check_metadata=True
    )
    assert not field_to_arrow(types.NestedField(4, "a", types.TimeType()), ids=False).metadata
