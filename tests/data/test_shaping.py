"""Incoming data becomes rows of the table by name, without loss, with what is missing filled in."""

import datetime as dt
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from icefloe.data import incoming_tables, shape_table
from icefloe.errors import InvalidValueError
from icefloe.schema import Schema, parse_ddl, schema_to_arrow, types
from tests.data.tables import is_storable
from tests.formats.rows import contents, tables_of
from tests.strategies import schemas

NOON = dt.datetime(2024, 1, 31, 12, tzinfo=dt.UTC)


def shaped(values: Any, arrow_type: Any, kind: str | types.IcebergType) -> Any:
    """One column given in an Arrow type, as a column of the table's type."""
    schema = parse_ddl(f"c {kind}") if isinstance(kind, str) else Schema(types.NestedField(1, "c", kind))
    found = shape_table(pa.table({"c": pa.array(values, arrow_type)}), schema)
    assert found.schema.equals(schema_to_arrow(schema), check_metadata=True)
    return found.column("c").to_pylist()


@given(st.data())
def test_rows_in_the_types_of_the_table_stay_as_they_are(data: st.DataObject) -> None:
    schema = data.draw(schemas().filter(is_storable))
    table = data.draw(tables_of(schema))
    found = shape_table(table, schema)
    assert found.schema.equals(table.schema, check_metadata=True)
    assert contents(found) == contents(table)


@given(st.data())
def test_order_of_columns_and_metadata_of_fields_mean_nothing(data: st.DataObject) -> None:
    schema = data.draw(schemas().filter(is_storable))
    table = data.draw(tables_of(schema))
    names = data.draw(st.permutations(table.schema.names))
    bare = pa.table([table.column(name) for name in names], names=names)
    assert contents(shape_table(bare, schema)) == contents(table)


@pytest.mark.parametrize(
    ("values", "given_type", "kind", "expected"),
    [
        ([1, None], pa.int8(), "int", [1, None]),
        ([1, 2], pa.uint64(), "int", [1, 2]),
        ([2**40], pa.int64(), "bigint", [2**40]),
        ([1, 2], pa.int32(), "double", [1.0, 2.0]),
        ([0.5, float("inf")], pa.float64(), "float", [0.5, float("inf")]),
        ([Decimal("1.5")], pa.decimal128(4, 1), "decimal(9, 2)", [Decimal("1.50")]),
        ([Decimal("1.50")], pa.decimal256(40, 2), "decimal(9, 2)", [Decimal("1.50")]),
        ([7], pa.int64(), "decimal(21, 2)", [Decimal("7.00")]),
        (["a", None], pa.large_string(), "string", ["a", None]),
        (["a", "b", "a"], pa.dictionary(pa.int8(), pa.string()), "string", ["a", "b", "a"]),
        (["a"], pa.string_view(), "string", ["a"]),
        ([b"ab"], pa.large_binary(), "binary", [b"ab"]),
        ([dt.date(2024, 1, 31)], pa.date64(), "date", [dt.date(2024, 1, 31)]),
        ([dt.date(2024, 1, 31)], pa.date32(), "timestamp_ntz", [dt.datetime(2024, 1, 31)]),
        ([dt.time(1, 2, 3)], pa.time32("s"), "time", [dt.time(1, 2, 3)]),
        ([1_000], pa.timestamp("ns"), "timestamp_ntz", [dt.datetime(1970, 1, 1, microsecond=1)]),
        ([NOON], pa.timestamp("ms", "Europe/Berlin"), "timestamptz", [NOON]),
        ([None, None], pa.null(), "int", [None, None]),
    ],
)
def test_values_that_fit_are_taken(values: list[Any], given_type: Any, kind: str, expected: list[Any]) -> None:
    assert shaped(values, given_type, kind) == expected


@pytest.mark.parametrize(
    ("values", "given_type", "kind"),
    [
        ([2**31], pa.int64(), "int"),
        ([-1.5], pa.float64(), "int"),
        ([0.1], pa.float64(), "float"),
        ([2**53 + 1], pa.int64(), "double"),
        ([Decimal("1.555")], pa.decimal128(9, 3), "decimal(9, 2)"),
        ([Decimal("99999999.00")], pa.decimal128(12, 2), "decimal(9, 2)"),
        ([1_001], pa.timestamp("ns"), "timestamp_ntz"),
        ([1], pa.timestamp("us"), "timestamptz"),
        ([1], pa.timestamp("us", "UTC"), "timestamp_ntz"),
        (["1"], pa.string(), "int"),
        ([1], pa.int32(), "string"),
        ([True], pa.bool_(), "int"),
        ([b"abc"], pa.binary(), "fixed[4]"),
        ([[1]], pa.list_(pa.int32()), "int"),
        ([1], pa.int32(), "array<int>"),
        ([{"a": 1}], pa.struct([("a", pa.int32())]), "map<string, int>"),
    ],
)
def test_values_that_would_change_are_refused(values: list[Any], given_type: Any, kind: str) -> None:
    with pytest.raises(InvalidValueError, match="'c'"):
        shaped(values, given_type, kind)


def test_nanoseconds_and_uuids() -> None:
    number = uuid.uuid4()
    assert shaped([number.bytes, None], pa.binary(16), types.UUIDType()) == [number, None]
    schema = Schema(types.NestedField(1, "c", types.TimestampNanoType()))
    found = shape_table(pa.table({"c": pa.array([1], pa.timestamp("us"))}), schema)
    assert found.column("c").cast(pa.int64()).to_pylist() == [1000]


POINT = types.StructType(
    types.NestedField(2, "x", types.LongType(), required=True, initial_default=0, write_default=5),
    types.NestedField(3, "y", types.LongType(), write_default=7),
)


def test_what_is_missing_gets_its_write_default() -> None:
    schema = Schema(
        types.NestedField(1, "point", POINT, write_default=()),
        types.NestedField(4, "name", types.StringType(), required=True, initial_default="old", write_default="new"),
        types.NestedField(5, "note", types.StringType()),
        types.NestedField(6, "bare", types.StructType(types.NestedField(7, "z", types.LongType(), write_default=1))),
    )
    found = shape_table(pa.table({"note": ["a", None]}), schema)
    row = {"point": {"x": 5, "y": 7}, "name": "new", "bare": None}
    assert found.to_pylist() == [row | {"note": "a"}, row | {"note": None}]


def test_what_is_missing_in_structs_lists_and_maps_is_filled_where_they_are_there() -> None:
    schema = Schema(
        types.NestedField(1, "point", POINT),
        types.NestedField(
            8, "points", types.ListType(9, types.StructType(*(_moved(each, 10) for each in POINT)), False)
        ),
        types.NestedField(
            20,
            "named",
            types.MapType(21, types.StringType(), 22, types.StructType(*(_moved(each, 30) for each in POINT))),
        ),
    )
    given_type = pa.struct([("y", pa.int32())])
    table = pa.table(
        {
            "point": pa.array([{"y": 1}, None], given_type),
            "points": pa.array([[{"y": None}, None], None], pa.large_list(given_type)),
            "named": pa.array([[("a", {"y": 2})], None], pa.map_(pa.string(), given_type)),
        }
    )
    found = shape_table(table.slice(0, 2), schema)
    assert found.to_pylist() == [
        {"point": {"x": 5, "y": 1}, "points": [{"x": 5, "y": None}, None], "named": [("a", {"x": 5, "y": 2})]},
        {"point": None, "points": None, "named": None},
    ]
    assert shape_table(table.slice(1, 1), schema).to_pylist() == found.to_pylist()[1:]


def _moved(field: types.NestedField, by: int) -> types.NestedField:
    return types.NestedField(
        field.field_id + by,
        field.name,
        field.field_type,
        field.required,
        None,
        field.initial_default,
        field.write_default,
    )


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        (pa.table({"id": [1], "more": [2], "Id": [3]}), "'more', 'Id'"),
        (pa.table({"id": [1], "place": [{"zip": 1, "town": "a"}]}), r"'place\.town'"),
        (pa.table({"place": [{"zip": 1}]}), "lacks the required column 'id'"),
        (pa.table({"id": pa.array([1, None], pa.int64())}), "required column 'id' has 1 nulls"),
        (pa.table({"id": [1], "place": [{"zip": None}]}), r"required column 'place\.zip' has 1 nulls"),
        (pa.table([pa.array([1]), pa.array([2])], names=["id", "id"]), "more than one column named 'id'"),
        (pa.table({"id": [1], "place": pa.array([{}], pa.struct([]))}), r"lacks the required column 'place\.zip'"),
        (pa.table({"id": [1], "tags": [[None]]}), r"required column 'tags\.element' has 1 nulls"),
    ],
)
def test_data_that_does_not_fit_is_refused_by_name(table: Any, problem: str) -> None:
    schema = Schema(
        types.NestedField(1, "id", types.LongType(), required=True),
        types.NestedField(2, "place", types.StructType(types.NestedField(3, "zip", types.LongType(), required=True))),
        types.NestedField(4, "tags", types.ListType(5, types.StringType(), element_required=True)),
    )
    with pytest.raises(InvalidValueError, match=problem):
        shape_table(table, schema)


def test_nulls_below_null_structs_are_none() -> None:
    schema = Schema(
        types.NestedField(1, "place", types.StructType(types.NestedField(2, "zip", types.LongType(), required=True)))
    )
    given_rows = pa.StructArray.from_arrays(
        [pa.array([1, None], pa.int64())], names=["zip"], mask=pa.array([False, True])
    )
    found = shape_table(pa.table({"place": given_rows}), schema)
    assert found.to_pylist() == [{"place": {"zip": 1}}, {"place": None}]
    assert found.column("place").chunk(0).field(0).null_count == 0


def test_a_variant_is_metadata_and_value() -> None:
    schema = Schema(types.NestedField(1, "doc", types.VariantType()))
    good = {"metadata": b"\x01\x00\x00", "value": b"\x0c\x07"}
    assert shape_table(pa.table({"doc": [good]}), schema).to_pylist() == [{"doc": good}]
    with pytest.raises(InvalidValueError, match="variant"):
        shape_table(pa.table({"doc": [1]}), schema)


# --- what may be given ------------------------------------------------------------------------------------------------

ROWS = pa.table({"id": [1, 2, 3]})


class Stream:
    """What other libraries export."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return ROWS.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize(
    "data",
    [
        ROWS,
        ROWS.to_batches()[0],
        ROWS.to_reader(max_chunksize=1),
        ROWS.to_batches(max_chunksize=2),
        (batch for batch in ROWS.to_batches()),
        [ROWS.slice(0, 1), ROWS.slice(1)],
        Stream(),
    ],
    ids=["table", "batch", "reader", "list", "generator", "tables", "stream"],
)
def test_arrow_data_in_all_its_forms(data: Any) -> None:
    assert pa.concat_tables(incoming_tables(data)).equals(ROWS)


@pytest.mark.parametrize("data", [None, 5, "rows", {"id": [1]}, [{"id": 1}], [1]])
def test_other_data_is_refused(data: Any) -> None:
    with pytest.raises(InvalidValueError, match="give a pyarrow Table"):
        list(incoming_tables(data))


def test_bytes_below_null_structs_are_no_shapes() -> None:
    schema = parse_ddl("s struct<g: geometry>")
    inner = pa.array([b"", b"\x01"], pa.binary())
    values = pa.StructArray.from_arrays([inner], ["g"], mask=pa.array([True, True]))
    assert shape_table(pa.table({"s": values}), schema)["s"].null_count == 2
    with pytest.raises(InvalidValueError, match=r"column 's.g', row 0"):
        shape_table(pa.table({"s": pa.StructArray.from_arrays([inner], ["g"])}), schema)
