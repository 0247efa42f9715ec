"""Which version allows which columns."""

import math

import pytest
from hypothesis import given, strategies as st

from icefloe.errors import InvalidSchemaError, UnsupportedVersionError
from icefloe.schema import MAX_COLUMN_ID, Schema, check_schema_for_version, types
from icefloe.versions import ALL_VERSIONS
from tests.strategies import schemas

NEW_TYPES = [
    types.TimestampNanoType(),
    types.TimestamptzNanoType(),
    types.VariantType(),
    types.UnknownType(),
    types.GeometryType(),
    types.GeographyType(),
]


@pytest.mark.parametrize("version", ALL_VERSIONS)
@pytest.mark.parametrize("kind", NEW_TYPES, ids=str)
def test_types_of_v3(version: int, kind: types.IcebergType) -> None:
    flat = Schema(types.NestedField(1, "c", kind))
    nested = Schema(types.NestedField(1, "c", types.ListType(2, kind, False)))
    for schema, name in ((flat, "'c'"), (nested, "'c.element'")):
        if version >= 3:
            check_schema_for_version(schema, version)
        else:
            with pytest.raises(UnsupportedVersionError, match=name):
                check_schema_for_version(schema, version)


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_initial_defaults_need_v3(version: int) -> None:
    schema = Schema(types.NestedField(1, "c", types.IntegerType(), initial_default=5, write_default=5))
    if version >= 3:
        check_schema_for_version(schema, version)
    else:
        with pytest.raises(UnsupportedVersionError, match="initial default of column 'c'"):
            check_schema_for_version(schema, version)


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_a_write_default_alone_harms_no_reader(version: int) -> None:
    check_schema_for_version(Schema(types.NestedField(1, "c", types.IntegerType(), write_default=5)), version)


@pytest.mark.parametrize(
    "kind", [types.VariantType(), types.UnknownType(), types.GeometryType(), types.GeographyType()], ids=str
)
def test_types_whose_defaults_are_null(kind: types.IcebergType) -> None:
    with pytest.raises(InvalidSchemaError, match="only null is allowed"):
        check_schema_for_version(Schema(types.NestedField(1, "c", kind, write_default=b"")), 3)


@pytest.mark.parametrize("kind", [types.FloatType(), types.DoubleType()], ids=str)
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_defaults_are_finite(kind: types.IcebergType, value: float) -> None:
    with pytest.raises(InvalidSchemaError, match="finite"):
        check_schema_for_version(Schema(types.NestedField(1, "c", kind, write_default=value)), 3)


def test_a_struct_default_is_null_or_empty() -> None:
    kind = types.StructType(types.NestedField(2, "x", types.IntegerType(), initial_default=0))
    check_schema_for_version(Schema(types.NestedField(1, "p", kind, initial_default=())), 3)
    check_schema_for_version(Schema(types.NestedField(1, "p", kind)), 3)
    with pytest.raises(InvalidSchemaError, match="empty struct"):
        check_schema_for_version(Schema(types.NestedField(1, "p", kind, initial_default=((2, 1),))), 3)


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_reserved_ids(version: int) -> None:
    check_schema_for_version(Schema(types.NestedField(MAX_COLUMN_ID, "c", types.LongType())), version)
    with pytest.raises(InvalidSchemaError, match="reserved"):
        check_schema_for_version(Schema(types.NestedField(MAX_COLUMN_ID + 1, "c", types.LongType())), version)


@given(st.data(), st.sampled_from(ALL_VERSIONS))
def test_schemas_made_for_a_version_pass(data: st.DataObject, version: int) -> None:
    check_schema_for_version(data.draw(schemas(version)), version)
