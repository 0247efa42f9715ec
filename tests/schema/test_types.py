"""Types as values: their names, parameters and equality."""

import pickle

import pytest
from hypothesis import given

from icefloe.errors import InvalidTypeError
from icefloe.schema import IcebergType, NestedField, StructType
from icefloe.schema.types import (
    PLAIN_TYPES,
    DecimalType,
    FixedType,
    GeographyType,
    GeometryType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    PrimitiveType,
    StringType,
    VariantType,
    parse_type,
    walk_fields,
)
from icefloe.versions import Feature
from tests.strategies import primitive_types, types


@given(primitive_types())
def test_a_type_is_read_from_its_name(kind: PrimitiveType) -> None:
    assert parse_type(str(kind)) == kind
    assert parse_type(f"  {kind} ") == kind


@given(types())
def test_types_are_hashable_and_picklable(kind: IcebergType) -> None:
    assert pickle.loads(pickle.dumps(kind)) == kind
    assert hash(pickle.loads(pickle.dumps(kind))) == hash(kind)
    assert repr(kind)


def test_every_plain_type_is_there() -> None:
    assert " ".join(PLAIN_TYPES) == (
        "unknown boolean int long float double date time timestamp timestamptz timestamp_ns timestamptz_ns"
        " string uuid binary variant"
    )


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("LONG", LongType()),
        ("decimal(38,38)", DecimalType(38, 38)),
        ("DECIMAL( 9 ,2 )", DecimalType(9, 2)),
        ("fixed[ 7 ]", FixedType(7)),
        ("geometry", GeometryType()),
        ("Geometry ( EPSG:3857 )", GeometryType("EPSG:3857")),
        ("geometry()", GeometryType()),
        ("geography", GeographyType()),
        ("geography(srid:4326)", GeographyType("srid:4326")),
        ("geography(srid:4326,Karney)", GeographyType("srid:4326", "karney")),
        ("variant", VariantType()),
    ],
)
def test_spellings(text: str, kind: IcebergType) -> None:
    assert parse_type(text) == kind


@pytest.mark.parametrize(
    "text",
    ["", "integer", "decimal", "decimal(0,0)", "decimal(39,0)", "decimal(9,10)", "decimal(9,-1)", "fixed", "fixed[0]",
     "fixed[-1]", "fixed[" + "9" * 5000 + "]", "fixed[1]x", "geometry(a, b)", "geography(a, bent)", "geography(a", "struct",
     "list", "timestamp_tz"],
)  # fmt: skip
def test_what_is_no_type(text: str) -> None:
    with pytest.raises(InvalidTypeError):
        parse_type(text)


@pytest.mark.parametrize("crs", ["", " a", "a,b", "a(b)"])
def test_bad_reference_systems(crs: str) -> None:
    with pytest.raises(InvalidTypeError):
        GeometryType(crs)
    with pytest.raises(InvalidTypeError):
        GeographyType(crs)


def test_versions_of_types() -> None:
    assert GeometryType().feature is GeographyType().feature is Feature.GEO_TYPES
    assert VariantType().feature is Feature.VARIANT
    assert parse_type("unknown").feature is Feature.UNKNOWN_TYPE
    assert parse_type("timestamptz_ns").feature is Feature.NANOSECOND_TIMESTAMPS
    assert LongType().feature is None
    assert not isinstance(VariantType(), PrimitiveType)


def test_nested_types_show_their_fields() -> None:
    inner = StructType(NestedField(4, "x", IntegerType(), True, "the x"))
    kind = MapType(2, StringType(), 3, ListType(5, inner, False), True)
    assert [field.name for field in kind.fields] == ["key", "value"]
    assert [field.required for field in kind.fields] == [True, True]
    assert kind.value_field.field_type == ListType(5, inner, False)
    assert str(kind) == "map<string, list<struct<4: x: required int (the x)>>>"
    assert list(inner) == list(inner.fields)
    assert len(inner) == 1
    assert [field.field_id for field in walk_fields([NestedField(1, "m", kind)])] == [1, 2, 3, 5, 4]


def test_fields() -> None:
    field = NestedField(1, "a", LongType())
    assert field.optional
    assert not field.required
    assert str(field) == "1: a: optional long"
    assert hash(field) == hash(NestedField(1, "a", LongType()))
