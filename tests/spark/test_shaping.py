"""What a DataFrame must be like to go into a table: told by names and types before a job, by values in it."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import types as spark_types
from pyspark.sql.types import StructField

from icefloe.catalog import Catalog, load_catalog
from icefloe.errors import InvalidValueError
from icefloe.schema import Schema, parse_ddl, types
from icefloe.spark.column_names import schema_to_merge
from icefloe.spark.shaping import error_in, shape_frame


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    found = load_catalog("test", type="memory", warehouse=str(tmp_path / "warehouse"))
    found.create_namespace("db")
    return found


REFUSED = [
    ("id bigint", "id string", "column 'id' is string in the data; the table has long, which is bigint in Spark"),
    ("id int", "id double", "column 'id' is double in the data; the table has int"),
    ("s string", "s int", "column 's' is int in the data; the table has string"),
    ("ts timestamp", "ts timestamp", "the table has timestamp, which is timestamp_ntz in Spark"),
    ("ts timestamptz", "ts timestamp_ntz", "the table has timestamptz, which is timestamp in Spark"),
    ("d date", "d timestamp", "column 'd' is timestamp in the data; the table has date"),
    ("l list<int>", "l int", "column 'l' is int in the data; the table has list<int>"),
    ("l list<int>", "l array<string>", "column 'l.element' is string in the data; the table has int"),
    ("m map<string, int>", "m map<int, int>", "column 'm.key' is int in the data; the table has string"),
    ("st struct<a: int>", "st struct<a: string>", "column 'st.a' is string in the data; the table has int"),
    ("st struct<a: int>", "st struct<a: int, b: int>", "columns that the table lacks: 'st.b'; the table has 'st.a'"),
    ("id bigint", "id bigint, other int", "columns that the table lacks: 'other'; the table has 'id'"),
    ("id bigint", "id bigint, ID bigint", "more than one column named 'ID'"),
    ("id bigint not null, s string", "s string", "lacks the required column 'id' of type long"),
    ("st struct<a: int not null>", "st struct<>", "lacks the required column 'st.a' of type int"),
    ("id bigint not null", "id void", "required column 'id' is only null"),
    ("u uuid", "u int", "column 'u' is int in the data; the table has uuid, which is string in Spark"),
    ("f fixed[4]", "f string", "column 'f' is string in the data; the table has fixed"),
]


@pytest.mark.parametrize(("table", "frame", "sentence"), REFUSED)
def test_what_types_and_names_tell_is_told_before_a_job(spark: Any, table: str, frame: str, sentence: str) -> None:
    with pytest.raises(InvalidValueError) as caught:
        shape_frame(spark.createDataFrame([], frame), parse_ddl(table))
    assert sentence in str(caught.value)


VALUES: list[tuple[str, str, list[Any], str]] = [
    ("c int", "c bigint", [2**31], "column 'c': a value of type bigint is no int"),
    ("c float", "c double", [0.1], "column 'c': a value of type double is no float"),
    ("c decimal(5, 2)", "c decimal(38, 18)", [Decimal("1.005")], "is no decimal(5, 2)"),
    ("c decimal(5, 2)", "c bigint", [1000], "is no decimal(5, 2)"),
    ("c uuid", "c string", ["f79c3e09"], "column 'c': a value of type string is no uuid: it must look like"),
    ("c fixed[3]", "c binary", [b"abcd"], "is no fixed[3]: it must have 3 bytes"),
    ("c time", "c bigint", [-1], "column 'c': a value of type bigint is no time"),
    ("c int not null", "c int", [None], "required column 'c' of type int has null in the data"),
    ("c struct<a: int not null>", "c struct<a: int>", [(None,)], "required column 'c.a' of type int has null"),
]


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_what_only_values_tell_fails_the_job_with_a_sentence(spark: Any, ansi: str) -> None:
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        # The mode means something for numbers alone.
        for table, frame, values, sentence in VALUES if ansi == "false" else VALUES[:4]:
            shaped = shape_frame(spark.createDataFrame([(value,) for value in values], frame), parse_ddl(table))
            with pytest.raises(Exception, match="icefloe<<") as caught:
                shaped.collect()
            found = error_in(caught.value)
            assert found is not None
            assert sentence in str(found)
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)


def test_what_fits_is_taken(spark: Any) -> None:
    schema = parse_ddl(
        "a bigint, b double, c decimal(9, 3), d timestamp, e uuid, f fixed[2], g time, h int, i float, j string,"
        " k struct<x: bigint, y: string>, l list<bigint>, m timestamp_ns, n uuid"
    )
    frame = (
        spark.createDataFrame(
            [
                (
                    1,
                    2,
                    Decimal("1.500"),
                    3,
                    "F79C3E09-677C-4BBD-A479-3F349CB785E7",
                    b"ab",
                    5,
                    7,
                    0.5,
                    "j",
                    ("y",),
                    [1],
                    b"\0" * 16,
                )
            ],
            "a tinyint, b int, c decimal(38,18), days int, E string, f binary, g bigint, h bigint, i double, j string,"
            " k struct<Y: string>, l array<int>, n binary",
        )
        .selectExpr("*", "date_from_unix_date(days) d", "timestamp_ntz'1970-01-01 00:00:01' m")
        .drop("days")
    )
    shaped = shape_frame(frame, schema)
    row = shaped.selectExpr("*", "unix_date(cast(d as date)) days").collect()[0]
    assert (row.a, row.b, row.c, row.days, row.h, row.i) == (1, 2.0, Decimal("1.500"), 3, 7, 0.5)
    assert row.e == "f79c3e09-677c-4bbd-a479-3f349cb785e7"
    assert row.n == "00000000-0000-0000-0000-000000000000"
    assert (row.k.x, row.k.y, row.l, row.m) == (None, "y", [1], 10**9)
    assert shaped.schema["k"].metadata == {"parquet.field.id": schema.find_field("k").field_id}
    assert shaped.schema["k"].dataType["x"].metadata == {"parquet.field.id": schema.find_field("k.x").field_id}


def test_columns_are_found_by_name_with_dots_and_quotes_in_any_order(spark: Any) -> None:
    schema = Schema(
        types.NestedField(1, "a.b", types.IntegerType()),
        types.NestedField(2, "`", types.StringType()),
        types.NestedField(3, "c", types.LongType()),
    )
    struct = spark_types.StructType(
        [
            StructField("c", spark_types.LongType()),
            StructField("`", spark_types.StringType()),
            StructField("a.b", spark_types.IntegerType()),
        ]
    )
    shaped = shape_frame(spark.createDataFrame([(3, "q", 1)], struct), schema)
    assert tuple(shaped.collect()[0]) == (1, "q", 3)
    assert shaped.columns == ["a.b", "`", "c"]


def test_missing_columns_get_their_write_defaults(spark: Any) -> None:
    inner = types.StructType(
        types.NestedField(4, "x", types.IntegerType(), write_default=9), types.NestedField(5, "y", types.StringType())
    )
    schema = Schema(
        types.NestedField(1, "a", types.LongType()),
        types.NestedField(2, "b", types.StringType(), required=True, write_default="it's"),
        types.NestedField(3, "c", inner, write_default=()),
        types.NestedField(6, "d", types.LongType()),
    )
    row = shape_frame(spark.range(1).toDF("a"), schema).collect()[0]
    assert (row.a, row.b, row.c.x, row.c.y, row.d) == (0, "it's", 9, None, None)


def test_what_a_frame_adds_to_a_schema(spark: Any) -> None:
    schema = parse_ddl("id int not null, st struct<a: int>, u uuid, l list<int>")
    same = spark.createDataFrame([], "ID int, st struct<a: int>, u string")
    assert schema_to_merge(same, schema, 3) is None
    wider = spark.createDataFrame([], "id bigint, st struct<a: int, b: string>, u string, new double")
    found = schema_to_merge(wider, schema, 3)
    assert found is not None
    assert found.find_field("id").field_type == types.LongType()
    assert found.find_field("id").required
    assert found.find_field("st.b").field_type == types.StringType()
    assert str(found.find_type("u")) == "uuid"
    assert found.find_field("new").optional
