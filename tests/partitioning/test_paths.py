"""Partition tuples as paths and back."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, strategies as st

from icefloe.errors import InvalidPartitionSpecError, InvalidValueError
from icefloe.partitioning import (
    PartitionField,
    PartitionSpec,
    parse_partition_spec,
    partition_path,
    partition_values,
    split_hive_path,
    transforms as tr,
)
from icefloe.schema import Schema, coerce, types
from tests.strategies import partition_sources, schemas, transforms_of, values_of

SCHEMA = Schema(
    types.NestedField(1, "id", types.LongType()),
    types.NestedField(2, "ts", types.TimestampType()),
    types.NestedField(3, "region", types.StringType()),
    types.NestedField(4, "data", types.BinaryType()),
    types.NestedField(5, "odd name/=?", types.StringType()),
    types.NestedField(6, "price", types.DecimalType(9, 2)),
)


def parse_path(path: str, spec: PartitionSpec, schema: Schema) -> tuple[Any, ...]:
    """The tuple of a path written by `partition_path`, in which a `+` is a space."""
    return partition_values(split_hive_path(path.replace("+", "%20")), spec, schema)


@pytest.mark.parametrize(
    ("terms", "values", "path"),
    [
        ([], (), ""),
        (["days(ts)", "region"], (19753, "eu"), "ts_day=2024-01-31/region=eu"),
        (["region"], (None,), "region=null"),
        (["region"], ("",), "region="),
        (["region"], ("a/b c+d=e%~*ü",), "region=a%2Fb+c%2Bd%3De%25%7E*%C3%BC"),
        (["`odd name/=?`"], ("x",), "odd+name%2F%3D%3F=x"),
        (["hours(ts)"], (-1,), "ts_hour=1969-12-31-23"),
        (["months(ts)"], (648,), "ts_month=2024-01"),
        (["years(ts)"], (54,), "ts_year=2024"),
        (["bucket(16, id)", "data"], (7, b"\x00\x01\x02\x03"), "id_bucket=7/data=AAECAw%3D%3D"),
        (["void(id)"], (None,), "id_null=null"),
        (["ts"], (1512123175038194,), "ts=2017-12-01T10%3A12%3A55.038194"),
        (["price"], (Decimal("-1.50"),), "price=-1.50"),
    ],
)
def test_paths_are_those_of_the_java_library(terms: list[str], values: tuple[Any, ...], path: str) -> None:
    spec = parse_partition_spec(terms, SCHEMA)
    assert partition_path(spec, values, SCHEMA) == path
    assert parse_path(path, spec, SCHEMA) == values
    assert parse_path(f"s3://bucket/x/{path}/file.parquet", spec, SCHEMA) == values


def test_a_tuple_has_a_value_for_every_field() -> None:
    spec = parse_partition_spec(["days(ts)", "region"], SCHEMA)
    with pytest.raises(InvalidPartitionSpecError, match="has 1 values; the spec has 2 fields"):
        partition_path(spec, (1,), SCHEMA)


def test_directories_of_hive() -> None:
    spec = parse_partition_spec(["region", "id"], SCHEMA)
    texts = split_hive_path("data/id=7/region=a+b%2Fc")
    assert partition_values(texts, spec, SCHEMA) == ("a+b/c", 7)
    texts = split_hive_path("region=__HIVE_DEFAULT_PARTITION__/id=__HIVE_DEFAULT_PARTITION__")
    assert partition_values(texts, spec, SCHEMA) == (None, None)
    assert split_hive_path("warehouse/a=1/=x/b=2=3/part.parquet") == {"a": "1", "b": "2=3"}


@pytest.mark.parametrize(
    ("terms", "path", "problem"),
    [
        (["region", "id"], "region=eu", "no value for partition field 'id' among region"),
        (["id"], "", "no value for partition field 'id' among none"),
        (["id"], "id=x", "partition field 'id': 'x' is not a value of type long"),
        (["id"], "id=1/id=2", "two values for 'id'"),
        (["region"], "region=%FF", "is not UTF-8"),
        (["days(ts)"], "ts_day=2024-02-30", "partition field 'ts_day'"),
        (["days(ts)"], "ts_day=today", "written as 2024-01-31"),
        (["months(ts)"], "ts_month=2024-13", "written as 2024-01"),
        (["years(ts)"], "ts_year=20x4", "written as 2024"),
        (["hours(ts)"], "ts_hour=2024-01-31-24", "written as 2024-01-31-07"),
        (["bucket(4, id)"], "id_bucket=4", "not one of 4 buckets"),
        (["bucket(4, id)"], "id_bucket=-1", "not one of 4 buckets"),
        (["void(id)"], "id_null=1", "is not null"),
        (["data"], "data=a", "is not base64"),
    ],
)
def test_bad_paths_are_refused(terms: list[str], path: str, problem: str) -> None:
    with pytest.raises(InvalidValueError, match=problem):
        parse_path(path, parse_partition_spec(terms, SCHEMA), SCHEMA)


@given(st.data())
def test_every_tuple_comes_back_from_its_path(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    fields: list[PartitionField] = []
    expected: list[Any] = []
    for source in partition_sources(schema):
        kind = source.field_type
        transform = data.draw(transforms_of(kind))
        name = f"{len(fields)} {data.draw(st.text(st.characters(codec='utf-8'), max_size=4))}"
        value = data.draw(st.one_of(st.none(), results(transform, kind)))
        fields.append(PartitionField(source.field_id, 1000 + len(fields), transform, name))
        # The string "null" and a null look alike in a path.
        expected.append(None if value == "null" else value)
    spec = PartitionSpec(*fields)
    path = partition_path(spec, expected, schema)
    assert repr(parse_path(path, spec, schema)) == repr(tuple(expected))
    assert len(path.split("/")) == max(1, len(fields))


def results(transform: Any, kind: types.IcebergType) -> st.SearchStrategy[Any]:
    """Partition values that the transform makes of values of the type."""

    def apply(value: Any) -> Any:
        try:
            return transform.apply(value, kind)
        except InvalidValueError:
            return None

    return values_of(kind).map(apply)


def test_identity_dates_of_any_year() -> None:
    from icefloe.schema.types import DateType

    schema = Schema(types.NestedField(1, "d", DateType()))
    spec = PartitionSpec(PartitionField(1, 1000, tr.IdentityTransform(), "d"))
    for days in (coerce("0044-03-15", DateType()), -800_000, 3_000_000, -(2**31), 2**31 - 1):
        assert parse_path(partition_path(spec, (days,), schema), spec, schema) == (days,)
