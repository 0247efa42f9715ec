"""Readable metrics are the metrics of each column as values of its type, however the manifest holds them."""

import struct
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from icefloe.inspect import Inspect
from icefloe.inspect.readable_metrics import bound_column, readable_metrics, readable_metrics_field
from icefloe.manifests import DataFile, Metric, MetricColumns
from icefloe.manifests.metrics import map_type
from icefloe.schema import GeoPoint, Schema, encode_bound, type_to_arrow, types
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.planning.tables import SyntheticTable

UUID = uuid.UUID(int=5)
VALUES: list[tuple[types.IcebergType, Any, Any]] = [
    (types.BooleanType(), True, True),
    (types.IntegerType(), -7, -7),
    (types.LongType(), 2**40, 2**40),
    (types.FloatType(), 1.5, 1.5),
    (types.DoubleType(), -0.25, -0.25),
    (types.DecimalType(20, 3), Decimal("-12.345"), Decimal("-12.345")),
    (types.DateType(), 3, 3),
    (types.TimeType(), 61_000_000, 61_000_000),
    (types.TimestampType(), 5, 5),
    (types.TimestamptzType(), 6, 6),
    (types.TimestampNanoType(), 7, 7),
    (types.TimestamptzNanoType(), 8, 8),
    (types.StringType(), "é", "é"),
    (types.UUIDType(), UUID, UUID),
    (types.FixedType(3), b"abc", b"abc"),
    (types.BinaryType(), b"\x00\xff", b"\x00\xff"),
    (types.GeometryType(), GeoPoint(1.0, 2.0), struct.pack("<BI2d", 1, 1, 1.0, 2.0)),
    (types.GeometryType(), GeoPoint(1.0, 2.0, 3.0), struct.pack("<BI3d", 1, 1001, 1.0, 2.0, 3.0)),
    (types.GeographyType(), GeoPoint(1.0, 2.0, None, 4.0), struct.pack("<BI3d", 1, 2001, 1.0, 2.0, 4.0)),
    (types.GeographyType(), GeoPoint(1.0, 2.0, 3.0, 4.0), struct.pack("<BI4d", 1, 3001, 1.0, 2.0, 3.0, 4.0)),
]


def _shown(column: Any) -> list[Any]:
    if pa.types.is_temporal(column.type):
        column = column.cast(pa.int32()) if pa.types.is_date(column.type) else column.cast(pa.int64())
    found: list[Any] = column.to_pylist()
    return found


@pytest.mark.parametrize(("kind", "value", "expected"), VALUES, ids=lambda each: str(each))
def test_bounds_are_values_of_the_type(kind: types.IcebergType, value: Any, expected: Any) -> None:
    target = type_to_arrow(kind)
    found = bound_column(pa.array([encode_bound(value, kind), None]), kind, target)
    assert found.type == target
    assert _shown(found) == [expected, None]


def test_bounds_that_are_none_are_null_and_harm_no_other() -> None:
    stored = pa.array([b"\x01", struct.pack("<q", 9), None, struct.pack("<i", 4)])
    assert bound_column(stored, types.LongType(), pa.int64()).to_pylist() == [None, 9, None, 4]
    assert bound_column(pa.array([b"\xff\xfe", b"a"]), types.StringType(), pa.string()).to_pylist() == [None, "a"]
    assert bound_column(pa.array([b"12"]), types.GeometryType(), pa.binary()).to_pylist() == [None]


def test_bounds_of_fixed_that_were_cut_stay_bounds() -> None:
    found = bound_column(pa.array([b"ab", None, b"abcd"]), types.FixedType(4), pa.binary(4))
    assert found.to_pylist() == [b"ab\0\0", None, b"abcd"]


SCHEMA = Schema(
    types.NestedField(1, "b", types.LongType()),
    types.NestedField(
        2,
        "a",
        types.StructType(
            types.NestedField(3, "x", types.IntegerType()), types.NestedField(4, "y", types.UnknownType())
        ),
    ),
    types.NestedField(5, "list", types.ListType(6, types.StringType())),
    types.NestedField(7, "map", types.MapType(8, types.StringType(), 9, types.DoubleType())),
    types.NestedField(10, "open", types.VariantType()),
    types.NestedField(11, "d.t", types.DateType()),
)


def test_every_primitive_column_is_there_by_its_full_name() -> None:
    field = readable_metrics_field(SCHEMA, iter(range(100, 1000)).__next__)
    assert isinstance(field.field_type, types.StructType)
    names = [each.name for each in field.field_type.fields]
    assert names == ["a.x", "a.y", "b", "d.t", "list.element", "map.key", "map.value"]
    assert type_to_arrow(field.field_type, ids=False).field("a.y").type.field("lower_bound").type == pa.null()


counts = st.dictionaries(st.sampled_from([1, 3, 6, 8, 9, 77]), st.integers(0, 9), max_size=6)


@given(maps=st.lists(st.none() | counts, max_size=6), skipped=st.integers(0, 3), same=st.booleans())
def test_maps_become_columns(maps: list[dict[int, int] | None], skipped: int, same: bool) -> None:
    given_maps = [maps[0]] * len(maps) if same and maps else maps
    pairs = [None if each is None else list(each.items()) for each in given_maps]
    stored = pa.array([[(1, 5)]] * skipped + pairs, map_type(Metric.VALUE_COUNTS)).slice(skipped)
    field = readable_metrics_field(SCHEMA, iter(range(100, 1000)).__next__)
    assert isinstance(field.field_type, types.StructType)
    metrics = MetricColumns(len(stored), {Metric.VALUE_COUNTS: stored})
    found = readable_metrics(metrics, field.field_type, type_to_arrow(field.field_type, ids=False), SCHEMA)
    found.validate(full=True)
    for row, expected in zip(found.to_pylist(), given_maps, strict=True):
        assert {name: each["value_count"] for name, each in row.items()} == {
            name: (expected or {}).get(SCHEMA.ids_by_name[name]) for name in row
        }


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_metrics_of_all_types_come_back(version: int) -> None:
    known = [each for each in VALUES[:16] if "ns" not in str(each[0]) or allows(version, Feature.NANOSECOND_TIMESTAMPS)]
    schema = Schema(*(types.NestedField(place, f"c{place:02d}", kind) for place, (kind, _, _) in enumerate(known, 1)))
    bounds = {place: encode_bound(value, kind) for place, (kind, value, _) in enumerate(known, 1)}
    table = SyntheticTable(schema, version)
    file = DataFile(
        table.path(), "parquet", 3, 100, value_counts=dict.fromkeys(bounds, 3), lower_bounds=bounds, upper_bounds=bounds
    )
    table.add(file)
    found = Inspect(table.metadata, table.storage).files().column("readable_metrics").combine_chunks()
    for place, (kind, _, expected) in enumerate(known, 1):
        column = found.field(f"c{place:02d}")
        assert _shown(column.field("lower_bound")) == [expected], kind
        assert _shown(column.field("upper_bound")) == [expected], kind
        assert column.field("value_count").to_pylist() == [3]
        assert column.field("column_size").to_pylist() == [None]


@pytest.mark.parametrize("version", [version for version in ALL_VERSIONS if allows(version, Feature.UNKNOWN_TYPE)])
def test_odd_columns_do_no_harm(version: int) -> None:
    table = SyntheticTable(SCHEMA, version)
    ids = table.schema.ids_by_name
    counts_by_id = {ids["b"]: 3, ids["list.element"]: 9}
    table.add(DataFile(table.path(), "orc", 3, 100, value_counts=counts_by_id, null_value_counts={ids["d.t"]: 2}))
    shown = Inspect(table.metadata, table.storage)
    [row] = shown.files(selected_fields=("file_format", "readable_metrics")).to_pylist()
    assert row["file_format"] == "ORC"
    assert row["readable_metrics"]["d.t"]["null_value_count"] == 2
    assert row["readable_metrics"]["b"]["value_count"] == 3
    assert shown.files(row_filter="readable_metrics.d.t.null_value_count = 2").num_rows == 1
    assert shown.files(selected_fields=("readable_metrics.list.element.value_count",)).num_rows == 1


def test_a_table_without_columns_that_have_metrics() -> None:
    table = SyntheticTable(Schema(types.NestedField(1, "v", types.VariantType())), 3)
    table.add(DataFile(table.path(), "parquet", 3, 100))
    assert Inspect(table.metadata, table.storage).files().column("readable_metrics").to_pylist() == [{}]
