"""Fresh ids: dense, in the order of the other implementations, or the ones that a base schema has."""

from hypothesis import given
from hypothesis import strategies as st

from icefloe.schema.ids import assign_fresh_ids
from icefloe.schema.schema import Schema
from icefloe.schema.types import IntegerType, ListType, LongType, MapType, NestedField, StringType, StructType
from tests.strategies import schemas


def point(first: int) -> StructType:
    return StructType(NestedField(first, "x", IntegerType()), NestedField(first + 1, "y", IntegerType()))


def test_a_struct_is_numbered_before_what_is_in_it() -> None:
    schema = Schema(
        NestedField(90, "p", point(91)),
        NestedField(80, "l", ListType(81, point(82))),
        NestedField(70, "m", MapType(71, point(72), 74, point(75))),
        NestedField(60, "id", LongType(), True),
        schema_id=4,
        identifier_field_ids=[60],
    )
    assert assign_fresh_ids(schema, 1) == Schema(
        NestedField(1, "p", point(5)),
        NestedField(2, "l", ListType(7, point(8))),
        NestedField(3, "m", MapType(10, point(12), 11, point(14))),
        NestedField(4, "id", LongType(), True),
        schema_id=4,
        identifier_field_ids=[4],
    )


def test_ids_of_a_base_are_kept_by_full_name() -> None:
    base = Schema(NestedField(5, "p", point(8)), NestedField(6, "gone", StringType()))
    schema = Schema(
        NestedField(1, "new", StringType()),
        NestedField(2, "p", StructType(NestedField(3, "y", LongType()), NestedField(4, "z", LongType()))),
    )
    assert assign_fresh_ids(schema, 10, base) == Schema(
        NestedField(10, "new", StringType()),
        NestedField(5, "p", StructType(NestedField(9, "y", LongType()), NestedField(11, "z", LongType()))),
    )


def test_defaults_follow_their_fields() -> None:
    kind = ListType(7, StructType(NestedField(8, "x", IntegerType())))
    mapped = MapType(10, StringType(), 11, StructType(NestedField(12, "x", IntegerType())))
    schema = Schema(
        NestedField(6, "l", kind, initial_default=(((8, 1),), ((8, None),))),
        NestedField(9, "m", mapped, write_default=(("k", ((12, 3),)),)),
    )
    fresh = assign_fresh_ids(schema, 1)
    assert fresh.fields[0].initial_default == (((4, 1),), ((4, None),))
    assert fresh.fields[1].write_default == (("k", ((7, 3),)),)


@given(schemas(), st.integers(1, 1000))
def test_fresh_ids_are_dense_and_change_nothing_else(schema: Schema, first: int) -> None:
    fresh = assign_fresh_ids(schema, first)
    count = len(schema.fields_by_id)
    assert sorted(fresh.fields_by_id) == list(range(first, first + count))
    assert fresh.column_names == schema.column_names
    assert assign_fresh_ids(fresh, 1, schema) == schema
    names = dict(zip(schema.fields_by_id, fresh.fields_by_id, strict=True))
    for old, new in names.items():
        before, after = schema.fields_by_id[old], fresh.fields_by_id[new]
        assert (before.name, before.required, before.doc) == (after.name, after.required, after.doc)
        assert type(before.field_type) is type(after.field_type)
