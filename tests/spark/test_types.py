"""Schemas go to Spark and come back; what Spark cannot say is marked."""

from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from pyspark.sql import types as T  # noqa: N812  # as PySpark's own documentation has it

from icefloe.catalog import load_catalog
from icefloe.errors import InvalidSchemaError, InvalidTypeError
from icefloe.schema import Schema, assign_fresh_ids, types
from icefloe.spark.types import EXACT_TYPE, TypeMapping, file_schema, schema_from_spark, user_schema
from tests.spark.conftest import SPARK
from tests.strategies import schemas

# Spark has types of its own for times and geometries from 4.1 on.
OWN = (False, True) if SPARK >= (4, 1) else (False,)
MAPPINGS = [TypeMapping(time, geo) for time in OWN for geo in OWN]


@pytest.mark.parametrize("mapping", MAPPINGS)
@pytest.mark.parametrize(
    "kind",
    [
        *types.PLAIN_TYPES.values(),
        types.DecimalType(9, 2),
        types.FixedType(7),
        types.GeometryType(),
        types.GeometryType("EPSG:12345"),
        types.GeographyType(),
        types.GeographyType("OGC:CRS84", "karney"),
        types.StructType(types.NestedField(2, "u", types.UUIDType(), True, "a doc")),
    ],
    ids=str,
)
def test_columns_come_back(kind: types.IcebergType, mapping: TypeMapping) -> None:
    schema = Schema(types.NestedField(1, "c", kind, False, "what it is"))
    assert schema_from_spark(user_schema(schema, mapping)) == schema


@given(schemas())
def test_any_schema_goes_to_spark(schema: Schema) -> None:
    shown = user_schema(schema)
    back = schema_from_spark(shown)
    assert [field.name for field in back.fields] == [field.name for field in schema.fields]
    assert user_schema(back).simpleString() == shown.simpleString()
    assert [field.name for field in file_schema(schema)] == [
        field.name for field in schema.fields if str(field.field_type) != "unknown"
    ]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (types.BooleanType(), True),
        (types.IntegerType(), -5),
        (types.LongType(), 1 << 40),
        (types.FloatType(), 1.5),
        (types.DoubleType(), float("inf")),
        (types.DecimalType(9, 2), Decimal("-1.50")),
        (types.DateType(), 20_000),
        (types.TimeType(), 3_600_000_001),
        (types.TimestampType(), 1_700_000_000_000_001),
        (types.TimestamptzType(), -1),
        (types.TimestampNanoType(), 1_700_000_000_000_000_001),
        (types.StringType(), 'it\'s \\ "so"\n'),
        (types.UUIDType(), UUID(int=7)),
        (types.FixedType(2), b"\x00\xff"),
        (types.BinaryType(), b"'"),
    ],
    ids=lambda each: str(each) if isinstance(each, types.IcebergType) else "",
)
def test_defaults_come_back_and_spark_reads_them(spark: Any, kind: types.IcebergType, value: Any) -> None:
    schema = Schema(types.NestedField(1, "c", kind, False, None, value, value))
    assert schema_from_spark(user_schema(schema)) == schema
    for side in (user_schema(schema), file_schema(schema)):
        [field] = side.fields
        found = spark.sql(f"SELECT {field.metadata['EXISTS_DEFAULT']} AS c").schema["c"].dataType
        assert found == field.dataType


def test_nested_types_get_fresh_ids_in_the_usual_order() -> None:
    struct = T.StructType(
        [
            T.StructField("m", T.MapType(T.StringType(), T.ArrayType(T.ShortType(), False)), False),
            T.StructField("s", T.StructType([T.StructField("x", T.VarcharType(3))])),
        ]
    )
    expected = Schema(
        types.NestedField(
            1,
            "m",
            types.MapType(3, types.StringType(), 4, types.ListType(5, types.IntegerType(), True), value_required=False),
            required=True,
        ),
        types.NestedField(2, "s", types.StructType(types.NestedField(6, "x", types.StringType()))),
    )
    assert schema_from_spark(struct) == assign_fresh_ids(expected)


def test_columns_of_one_field_get_ids_of_their_own() -> None:
    struct = user_schema(
        Schema(types.NestedField(5, "a", types.StructType(types.NestedField(7, "x", types.IntegerType())), True))
    )
    twice = T.StructType([*struct.fields, T.StructField("b", struct["a"].dataType, False, struct["a"].metadata)])
    inside = (
        types.StructType(types.NestedField(3, "x", types.IntegerType())),
        types.StructType(types.NestedField(4, "x", types.IntegerType())),
    )
    expected = Schema(types.NestedField(1, "a", inside[0], True), types.NestedField(2, "b", inside[1], True))
    assert schema_from_spark(twice) == expected
    assert schema_from_spark(struct).highest_field_id == 7


def test_a_mark_that_no_longer_fits_is_not_believed() -> None:
    struct = T.StructType([T.StructField("c", T.DateType(), True, {EXACT_TYPE: "uuid"})])
    assert schema_from_spark(struct).find_type("c") == types.DateType()


def test_what_has_no_type_is_named() -> None:
    inner = T.StructType([T.StructField("length", T.DayTimeIntervalType())])
    with pytest.raises(InvalidTypeError, match=r"'trip.length'.*interval"):
        schema_from_spark(T.StructType([T.StructField("trip", inner)]))
    with pytest.raises(InvalidSchemaError, match="StructType"):
        schema_from_spark("a int")
    with pytest.raises(InvalidSchemaError, match=r"'c'.*current_date"):
        schema_from_spark(T.StructType([T.StructField("c", T.DateType(), True, {"CURRENT_DEFAULT": "current_date()"})]))


def test_a_table_is_created_from_a_struct() -> None:
    catalog = load_catalog("lake", type="memory")
    catalog.create_namespace("db")
    struct = T.StructType([T.StructField("id", T.LongType(), False), T.StructField("name", T.StringType())])
    expected = Schema(
        types.NestedField(1, "id", types.LongType(), True), types.NestedField(2, "name", types.StringType())
    )
    assert catalog.create_table("db.t", struct).schema() == expected
    with pytest.raises(InvalidSchemaError, match="StructType"):
        catalog.create_table("db.u", T.LongType())
