"""Schemas as text: round trips, Spark's spellings, and errors that say where."""

import datetime as dt
import math
import uuid
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, strategies as st

from icefloe.errors import InvalidInputError, InvalidSchemaError, InvalidTypeError
from icefloe.schema import Schema, assign_fresh_ids, format_ddl, parse_ddl, types
from tests.strategies import primitive_types, schemas, values_of


def test_a_whole_definition() -> None:
    text = (
        "id long not null, tags list<string>, addr struct<zip: string not null comment 'it''s'>,"
        " m map<string, int not null>, price decimal(9, 2) default 1.50 comment 'x'"
    )
    schema = Schema(
        types.NestedField(1, "id", types.LongType(), True),
        types.NestedField(2, "tags", types.ListType(6, types.StringType(), False)),
        types.NestedField(3, "addr", types.StructType(types.NestedField(7, "zip", types.StringType(), True, "it's"))),
        types.NestedField(4, "m", types.MapType(8, types.StringType(), 9, types.IntegerType(), True)),
        types.NestedField(5, "price", types.DecimalType(9, 2), False, "x", None, Decimal("1.50")),
    )
    assert parse_ddl(text) == schema
    assert format_ddl(schema) == text


@given(schemas())
def test_round_trip(schema: Schema) -> None:
    assert parse_ddl(format_ddl(schema)).fields == assign_fresh_ids(schema).fields


def is_finite(value: Any) -> bool:
    return not isinstance(value, float) or math.isfinite(value)


@given(st.data())
def test_defaults_round_trip(data: st.DataObject) -> None:
    no_default = types.UnknownType | types.GeometryType | types.GeographyType
    kind = data.draw(primitive_types().filter(lambda kind: not isinstance(kind, no_default)))
    field = types.NestedField(1, "c", kind, write_default=data.draw(values_of(kind).filter(is_finite)))
    assert repr(parse_ddl(format_ddl(Schema(field))).fields[0]) == repr(field)  # by text, because -0.0 is 0.0


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("BIGINT", types.LongType()),
        ("Integer", types.IntegerType()),
        ("tinyint", types.IntegerType()),
        ("smallint", types.IntegerType()),
        ("real", types.FloatType()),
        ("bool", types.BooleanType()),
        ("timestamp", types.TimestampType()),
        ("timestamp_ntz", types.TimestampType()),
        ("timestamptz", types.TimestamptzType()),
        ("timestamp_ltz", types.TimestamptzType()),
        ("varchar(20)", types.StringType()),
        ("char( 3 )", types.StringType()),
        ("text", types.StringType()),
        ("decimal", types.DecimalType(10, 0)),
        ("numeric(7)", types.DecimalType(7, 0)),
        ("dec( 7 , 2 )", types.DecimalType(7, 2)),
        ("fixed[16]", types.FixedType(16)),
        ("fixed(16)", types.FixedType(16)),
        ("void", types.UnknownType()),
        ("geometry", types.GeometryType()),
        ("geometry(EPSG:3857)", types.GeometryType("EPSG:3857")),
        ("geography(OGC:CRS84, karney)", types.GeographyType("OGC:CRS84", "karney")),
        ("array<array<int>>", types.ListType(2, types.ListType(3, types.IntegerType(), False), False)),
        ("ARRAY < INT NOT NULL >", types.ListType(2, types.IntegerType(), True)),
        ("struct<>", types.StructType()),
        ("struct<a int, `b c`: int>", types.StructType(types.NestedField(2, "a", types.IntegerType()), types.NestedField(3, "b c", types.IntegerType()))),
    ],
)  # fmt: skip
def test_spellings(text: str, kind: types.IcebergType) -> None:
    assert parse_ddl(f"c {text}").find_type("c") == kind
    assert parse_ddl(f"c: {text} NULL").find_type("c") == kind


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("long default -7", -7),
        ("double default 1e3", 1000.0),
        ("boolean default TRUE", True),
        ("string default 'a''b'", "a'b"),
        ('string default "a\'b"', "a'b"),
        ("date default '2020-01-02'", (dt.date(2020, 1, 2) - dt.date(1970, 1, 1)).days),
        ("date default date '1970-01-02'", 1),
        ("timestamp default timestamp '1970-01-01T00:00:01'", 1_000_000),
        ("binary default X'0aFF'", b"\n\xff"),
        ("uuid default '00000000-0000-0000-0000-000000000001'", uuid.UUID(int=1)),
        ("struct<a: int default 3> default {}", ()),
        ("long default null", None),
    ],
)
def test_defaults(text: str, value: Any) -> None:
    field = parse_ddl(f"c {text} not null").fields[0]
    assert repr(field.write_default) == repr(value)
    assert field.initial_default is None
    assert field.required


def test_names() -> None:
    schema = parse_ddl("`a b` int, `tick``s` int, not int, größe int, 2nd int, `x.y` int")
    assert [field.name for field in schema] == ["a b", "tick`s", "not", "größe", "2nd", "x.y"]
    assert parse_ddl(format_ddl(schema)) == schema


def test_nothing() -> None:
    assert parse_ddl("  ") == Schema()
    assert format_ddl(Schema()) == ""


@pytest.mark.parametrize(
    ("text", "position", "problem"),
    [
        ("a int,", 7, "column name"),
        ("a", 2, "type should be here"),
        ("a int b", 7, "comma"),
        ("a intt", 3, "unknown type"),
        ("a list<int", 11, "'>' should be here"),
        ("a list int", 8, "'<' should be here"),
        ("a map<int>", 10, "',' should be here"),
        ("a struct<b: int, >", 18, "column name"),
        ("a decimal(39,2)", 3, "precision"),
        ("a decimal(3,2,1)", 3, "unknown type"),
        ("a decimal(9", 12, "missing"),
        ("a fixed", 3, "unknown type"),
        ("a int(3)", 3, "unknown type"),
        ("a int not", 10, "follow `not`"),
        ("a int not null not null", 24, "twice"),
        ("a int default", 14, "default value"),
        ("a int default x", 15, "default value"),
        ("a int default 'x'", 15, "default of column 'a'"),
        ("a int default 3000000000", 15, "default of column 'a'"),
        ("a string default b", 18, "default value"),
        ("a string default X'00'", 18, "bytes"),
        ("a int default {}", 15, "not a struct"),
        ("a int comment 3", 15, "quoted string"),
        ("a list<int comment 'x'>", 12, "no comment"),
        ("a int; b int", 6, "begins nothing"),
        ("a int comment 'x", 15, "begins nothing"),
        ("`` int", 1, "column name"),
        ("a interval", 3, "unknown type"),
    ],
)
def test_errors_say_where(text: str, position: int, problem: str) -> None:
    with pytest.raises((InvalidSchemaError, InvalidTypeError)) as caught:
        parse_ddl(text)
    assert f"character {position}," in str(caught.value)
    assert problem in str(caught.value)


def test_other_errors() -> None:
    with pytest.raises(InvalidSchemaError, match="two fields are named 'a'"):
        parse_ddl("a int, a int")
    with pytest.raises(InvalidSchemaError, match="finite"):
        parse_ddl("a double default NaN")
    with pytest.raises(InvalidSchemaError, match="not 3"):
        parse_ddl(3)  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(InvalidSchemaError, match="too deeply"):
        parse_ddl("a " + "list<" * 50_000 + "int" + ">" * 50_000)


PIECES = ("a", "int", "list", "<", ">", ",", "(", ")", "9", "not", "null", "default", "'x'", "`", ":", "{")


@given(st.text(max_size=30) | st.lists(st.sampled_from(PIECES), max_size=8).map(" ".join))
def test_any_text_gives_a_schema_or_our_error(text: str) -> None:
    try:
        schema = parse_ddl(text)
    except InvalidInputError as problem:
        assert str(problem)  # noqa: PT017 - any text may be right
    else:
        assert parse_ddl(format_ddl(schema)) == schema
