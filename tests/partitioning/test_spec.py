"""Partition specs: rules, types, equivalence, and specs from texts."""

import contextlib
import pickle
from typing import Any

import pytest
from hypothesis import given, strategies as st

from icefloe.errors import IcefloeError, InvalidPartitionSpecError, InvalidTransformError, NoSuchColumnError
from icefloe.partitioning import (
    UNPARTITIONED,
    PartitionField,
    PartitionSpec,
    check_spec,
    parse_partition_spec,
    parse_term,
    partition_type,
    rebind_spec,
    transforms as tr,
    unified_partition_type,
)
from icefloe.partitioning.spec import build_spec, default_field_name, has_sequential_ids, id_for_spec
from icefloe.partitioning.terms import Term, column_name
from icefloe.schema import Schema, assign_fresh_ids, types
from tests.strategies import partition_specs, schemas

SCHEMA = Schema(
    types.NestedField(1, "id", types.LongType(), required=True),
    types.NestedField(2, "ts", types.TimestampType()),
    types.NestedField(3, "region", types.StringType()),
    types.NestedField(
        4,
        "addr",
        types.StructType(
            types.NestedField(5, "zip", types.StringType()), types.NestedField(6, "no", types.IntegerType())
        ),
    ),
    types.NestedField(7, "tags", types.ListType(8, types.StringType())),
    types.NestedField(
        9,
        "props",
        types.MapType(10, types.StringType(), 11, types.StructType(types.NestedField(12, "deep", types.StringType()))),
    ),
    types.NestedField(13, "doc", types.VariantType()),
    types.NestedField(14, "a b", types.StringType()),
    types.NestedField(15, "7", types.IntegerType()),
)


def identity(source_id: int, name: str, field_id: int = 1000) -> PartitionField:
    return PartitionField(source_id, field_id, tr.IdentityTransform(), name)


def test_a_field_has_one_source_or_several() -> None:
    one = PartitionField(source_id=3, field_id=1000, transform=tr.IdentityTransform(), name="region")
    several = PartitionField((3, 1), 1000, tr.UnknownTransform("zorder"), "z")
    assert (one.source_id, one.source_ids) == (3, (3,))
    assert (several.source_id, several.source_ids) == (3, (3, 1))
    with pytest.raises(InvalidPartitionSpecError, match="no source column"):
        PartitionField((), 1000, tr.IdentityTransform(), "x")


def test_a_spec_of_void_fields_is_unpartitioned() -> None:
    assert UNPARTITIONED.is_unpartitioned
    assert PartitionSpec(PartitionField(1, 1000, tr.VoidTransform(), "x")).is_unpartitioned
    assert not PartitionSpec(identity(1, "id")).is_unpartitioned
    assert (UNPARTITIONED.last_field_id, PartitionSpec(identity(1, "id", 1007)).last_field_id) == (999, 1007)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ([identity(99, "x")], "source column 99 is not in the schema"),
        ([identity(4, "x")], "must be primitive"),
        ([identity(13, "x")], "must be primitive"),
        ([identity(8, "x")], "inside the list or map 'tags'"),
        ([identity(12, "x")], "inside the list or map"),
        ([PartitionField(3, 1000, tr.DayTransform(), "x")], "does not support columns of type string"),
        ([PartitionField(2, 1000, tr.TruncateTransform(4), "x")], "does not support columns of type timestamp"),
        ([identity(1, "id"), identity(3, "id", 1001)], "two partition fields are named 'id'"),
        ([identity(1, "id"), identity(3, "region")], "two partition fields have the id 1000"),
        ([identity(1, "")], "empty name"),
        ([identity(1, "region")], "has the name of a column that is not its source"),
        ([PartitionField(1, 1000, tr.BucketTransform(4), "id")], "only an identity partition may"),
        ([PartitionField(1, 1000, tr.BucketTransform(4), "region")], "only an identity partition may"),
        ([identity(1, "id"), identity(1, "id2", 1001)], "same source and transform"),
        ([PartitionField((1, 3), 1000, tr.BucketTransform(4), "x")], "takes one source column"),
    ],
    ids=lambda item: item if isinstance(item, str) else "",
)
def test_broken_specs_are_refused(fields: list[PartitionField], problem: str) -> None:
    with pytest.raises(InvalidPartitionSpecError, match=problem):
        check_spec(PartitionSpec(*fields), SCHEMA)


@pytest.mark.parametrize(
    "fields",
    [
        [],
        [identity(1, "id"), identity(5, "addr.zip", 1001)],
        [identity(1, "other")],
        [PartitionField(1, 1000, tr.BucketTransform(4), "a"), PartitionField(1, 1001, tr.BucketTransform(8), "b")],
        [PartitionField(1, 1000, tr.VoidTransform(), "id"), PartitionField(1, 1001, tr.VoidTransform(), "id_1001")],
        [PartitionField(99, 1000, tr.VoidTransform(), "gone")],
        [PartitionField(2, 1000, tr.YearTransform(), "y"), PartitionField(2, 1001, tr.DayTransform(), "d")],
        [PartitionField((1, 3), 1000, tr.UnknownTransform("zorder"), "z")],
    ],
)
def test_good_specs_pass(fields: list[PartitionField]) -> None:
    check_spec(PartitionSpec(*fields), SCHEMA)


def test_a_new_table_has_one_unit_of_time_per_column() -> None:
    day, hour = PartitionField(2, 1000, tr.DayTransform(), "d"), PartitionField(2, 1001, tr.HourTransform(), "h")
    with pytest.raises(InvalidPartitionSpecError, match="both units of time"):
        build_spec(day, hour, schema=SCHEMA)
    assert build_spec(day, schema=SCHEMA, spec_id=3) == PartitionSpec(day, spec_id=3)


def test_the_partition_type() -> None:
    spec = PartitionSpec(
        PartitionField(2, 1000, tr.DayTransform(), "ts_day"),
        PartitionField(3, 1003, tr.BucketTransform(4), "b"),
        identity(3, "region", 1001),
    )
    assert partition_type(spec, SCHEMA) == types.StructType(
        types.NestedField(1000, "ts_day", types.DateType()),
        types.NestedField(1003, "b", types.IntegerType()),
        types.NestedField(1001, "region", types.StringType()),
    )


def test_the_type_over_a_dropped_column_comes_from_an_older_schema_or_the_transform() -> None:
    spec = PartitionSpec(
        identity(3, "region"),
        PartitionField(3, 1001, tr.BucketTransform(4), "b"),
        PartitionField(3, 1002, tr.VoidTransform(), "v"),
        PartitionField((1, 3), 1003, tr.UnknownTransform("zorder"), "z"),
    )
    now = Schema(SCHEMA.fields[0])
    kinds = [field.field_type for field in partition_type(spec, now).fields]
    assert kinds == [types.UnknownType(), types.IntegerType(), types.UnknownType(), types.StringType()]
    kinds = [field.field_type for field in partition_type(spec, now, SCHEMA).fields]
    assert kinds == [types.StringType(), types.IntegerType(), types.StringType(), types.StringType()]


def test_the_unified_type_has_all_fields_by_id_with_their_newest_names() -> None:
    specs = [
        PartitionSpec(PartitionField(2, 1001, tr.DayTransform(), "old"), identity(3, "region", 1000), spec_id=0),
        PartitionSpec(PartitionField(2, 1001, tr.DayTransform(), "new"), spec_id=2),
        PartitionSpec(PartitionField(3, 1000, tr.VoidTransform(), "region_1000"), spec_id=1),
    ]
    expected = types.StructType(
        types.NestedField(1000, "region_1000", types.StringType()), types.NestedField(1001, "new", types.DateType())
    )
    assert unified_partition_type(specs, SCHEMA) == expected
    assert unified_partition_type(reversed(specs), SCHEMA) == expected
    assert unified_partition_type([], SCHEMA) == types.StructType()


def test_a_void_field_takes_its_unified_type_from_what_it_was() -> None:
    specs = [
        PartitionSpec(PartitionField(2, 1000, tr.YearTransform(), "y"), spec_id=0),
        PartitionSpec(PartitionField(2, 1000, tr.VoidTransform(), "y"), spec_id=1),
    ]
    assert unified_partition_type(specs, SCHEMA) == types.StructType(types.NestedField(1000, "y", types.IntegerType()))


def test_one_id_for_two_things_has_no_unified_type() -> None:
    specs = [PartitionSpec(identity(1, "id")), PartitionSpec(identity(3, "region"), spec_id=1)]
    with pytest.raises(InvalidPartitionSpecError, match="have one id but differ"):
        unified_partition_type(specs, SCHEMA)


def test_equivalence_ignores_ids_only() -> None:
    base = PartitionSpec(identity(1, "id"), identity(3, "region", 1001))
    assert base.equivalent(PartitionSpec(identity(1, "id", 7), identity(3, "region", 8), spec_id=9))
    for other in (
        PartitionSpec(identity(3, "region"), identity(1, "id")),
        PartitionSpec(identity(1, "id")),
        PartitionSpec(identity(1, "id"), identity(3, "region2")),
        PartitionSpec(identity(1, "id"), PartitionField(3, 1001, tr.BucketTransform(2), "region")),
        PartitionSpec(identity(1, "id"), identity(2, "region")),
    ):
        assert not base.equivalent(other)


def test_ids_for_specs() -> None:
    specs = [PartitionSpec(identity(1, "id"), spec_id=3), PartitionSpec(spec_id=0)]
    assert id_for_spec(PartitionSpec(identity(1, "id", 1009)), specs) == 3
    assert id_for_spec(PartitionSpec(identity(3, "region")), specs) == 4
    assert id_for_spec(UNPARTITIONED, []) == 0
    assert has_sequential_ids(PartitionSpec(identity(1, "a"), identity(2, "b", 1001)))
    assert not has_sequential_ids(PartitionSpec(identity(1, "a"), identity(2, "b", 1002)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("days(ts)", PartitionField(2, 1000, tr.DayTransform(), "ts_day")),
        ("day(ts)", PartitionField(2, 1000, tr.DayTransform(), "ts_day")),
        ("DATE( ts )", PartitionField(2, 1000, tr.DayTransform(), "ts_day")),
        ("years(ts)", PartitionField(2, 1000, tr.YearTransform(), "ts_year")),
        ("month(ts)", PartitionField(2, 1000, tr.MonthTransform(), "ts_month")),
        ("Hours (ts)", PartitionField(2, 1000, tr.HourTransform(), "ts_hour")),
        ("date_hour(ts)", PartitionField(2, 1000, tr.HourTransform(), "ts_hour")),
        ("bucket(16, id)", PartitionField(1, 1000, tr.BucketTransform(16), "id_bucket")),
        ("bucket(id, 16)", PartitionField(1, 1000, tr.BucketTransform(16), "id_bucket")),
        ("truncate(4, region)", PartitionField(3, 1000, tr.TruncateTransform(4), "region_trunc")),
        ("truncate(region, 4)", PartitionField(3, 1000, tr.TruncateTransform(4), "region_trunc")),
        ("region", identity(3, "region")),
        ("identity(region)", identity(3, "region")),
        ("void(region)", PartitionField(3, 1000, tr.VoidTransform(), "region_null")),
        ("addr.zip", identity(5, "addr.zip")),
        ("bucket(4, addr.zip)", PartitionField(5, 1000, tr.BucketTransform(4), "addr.zip_bucket")),
        ("bucket(4, `addr`.`zip`)", PartitionField(5, 1000, tr.BucketTransform(4), "addr.zip_bucket")),
        ("`a b`", identity(14, "a b")),
        ("a b", identity(14, "a b")),
        ("bucket(2, `a b`)", PartitionField(14, 1000, tr.BucketTransform(2), "a b_bucket")),
        ("bucket(2, 7)", PartitionField(15, 1000, tr.BucketTransform(2), "7_bucket")),
        ("bucket(16, id) as shard", PartitionField(1, 1000, tr.BucketTransform(16), "shard")),
        ("region AS `my region`", identity(3, "my region")),
    ],
)
def test_specs_from_texts(text: str, expected: PartitionField) -> None:
    assert parse_partition_spec([text], SCHEMA) == PartitionSpec(expected)
    assert parse_partition_spec(text, SCHEMA, spec_id=4).spec_id == 4


def test_texts_are_numbered_from_1000() -> None:
    spec = parse_partition_spec(["days(ts)", "bucket(16, id)", "region"], SCHEMA)
    assert [field.field_id for field in spec] == [1000, 1001, 1002]
    assert parse_partition_spec([], SCHEMA) == UNPARTITIONED
    assert parse_partition_spec(["REGION"], SCHEMA, case_sensitive=False).fields[0].name == "region"


@pytest.mark.parametrize(
    ("texts", "error", "problem"),
    [
        (["nope"], NoSuchColumnError, "no column named 'nope'"),
        (["REGION"], NoSuchColumnError, "no column named 'REGION'"),
        (["bucket(16)"], InvalidTransformError, r"must be bucket\(number, column\)"),
        (["bucket(id, region)"], InvalidTransformError, r"must be bucket\(number, column\)"),
        (["bucket(0, id)"], InvalidTransformError, "whole number between 1"),
        (["bucket(1, 2, id)"], InvalidTransformError, r"must be bucket\(number, column\)"),
        (["days(ts, id)"], InvalidTransformError, "takes one column"),
        (["days()"], InvalidTransformError, "takes one column"),
        (["days(region)"], InvalidTransformError, "does not support columns of type string"),
        (["zorder(id)"], InvalidTransformError, "'zorder' in .* is unknown"),
        ([""], InvalidTransformError, "is not a column or a transform"),
        ([None], InvalidTransformError, "is not a column or a transform"),
        ([7], InvalidTransformError, "is not a column or a transform"),
        (["`region"], InvalidTransformError, "is not a column name"),
        (["`a``region`x"], InvalidTransformError, "is not a column name"),
        (["region", "region"], InvalidPartitionSpecError, "two partition fields are named"),
        (["days(ts)", "hours(ts)"], InvalidPartitionSpecError, "units of time"),
        (["tags.element"], InvalidPartitionSpecError, "inside the list or map"),
    ],
)
def test_bad_texts_are_refused(texts: Any, error: type[IcefloeError], problem: str) -> None:
    with pytest.raises(error, match=problem):
        parse_partition_spec(texts, SCHEMA)


@given(st.text(max_size=20))
def test_any_text_is_a_term_or_our_error(text: str) -> None:
    with contextlib.suppress(InvalidTransformError):
        assert isinstance(parse_term(text), Term)


@pytest.mark.parametrize("text", ["region", "day(ts)", "bucket(16, id)", "truncate(4, addr.zip)", "void(id)"])
def test_terms_are_written_as_they_are_read(text: str) -> None:
    assert str(parse_term(text)) == text


def test_backquotes_hold_any_name() -> None:
    assert column_name("`a``b`.`c d`") == "a`b.c d"
    assert column_name(" x.y ") == "x.y"


@pytest.mark.parametrize(
    ("transform", "name"),
    [
        (tr.IdentityTransform(), "c"),
        (tr.BucketTransform(4), "c_bucket"),
        (tr.TruncateTransform(4), "c_trunc"),
        (tr.HourTransform(), "c_hour"),
        (tr.VoidTransform(), "c_null"),
    ],
    ids=str,
)
def test_default_names(transform: tr.Transform, name: str) -> None:
    assert default_field_name(transform, "c") == name


def test_an_unknown_transform_has_no_default_name() -> None:
    with pytest.raises(InvalidPartitionSpecError, match="needs a name"):
        default_field_name(tr.UnknownTransform("zorder"), "c")


@given(schemas().flatmap(lambda schema: st.tuples(st.just(schema), partition_specs(schema))))
def test_specs_over_any_schema(pair: tuple[Schema, PartitionSpec]) -> None:
    schema, spec = pair
    check_spec(spec, schema)
    assert pickle.loads(pickle.dumps(spec)) == spec
    kind = partition_type(spec, schema)
    assert [(f.field_id, f.name, f.required) for f in kind.fields] == [(f.field_id, f.name, False) for f in spec.fields]
    assert set(unified_partition_type([spec], schema).fields) == set(kind.fields)
    fresh = assign_fresh_ids(schema, 100)
    rebound = rebind_spec(spec, schema, fresh)
    for old, new in zip(spec.fields, rebound.fields, strict=True):
        assert schema.names_by_id[old.source_id] == fresh.names_by_id[new.source_id]
        assert (old.transform, old.name) == (new.transform, new.name)
    assert has_sequential_ids(rebound)
