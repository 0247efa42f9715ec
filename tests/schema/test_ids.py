"""Fresh ids: dense, in the order of the other implementations, or the ones that a base schema has."""

from hypothesis import given, strategies as st

from icefloe.schema import Schema, assign_fresh_ids, types
from tests.strategies import schemas


def point(first: int) -> types.StructType:
    return types.StructType(
        types.NestedField(first, "x", types.IntegerType()), types.NestedField(first + 1, "y", types.IntegerType())
    )


def test_a_struct_is_numbered_before_what_is_in_it() -> None:
    schema = Schema(
        types.NestedField(90, "p", point(91)),
        types.NestedField(80, "l", types.ListType(81, point(82))),
        types.NestedField(70, "m", types.MapType(71, point(72), 74, point(75))),
        types.NestedField(60, "id", types.LongType(), True),
        schema_id=4,
        identifier_field_ids=[60],
    )
    assert assign_fresh_ids(schema, 1) == Schema(
        types.NestedField(1, "p", point(5)),
        types.NestedField(2, "l", types.ListType(7, point(8))),
        types.NestedField(3, "m", types.MapType(10, point(12), 11, point(14))),
        types.NestedField(4, "id", types.LongType(), True),
        schema_id=4,
        identifier_field_ids=[4],
    )


def test_ids_of_a_base_are_kept_by_full_name() -> None:
    base = Schema(types.NestedField(5, "p", point(8)), types.NestedField(6, "gone", types.StringType()))
    schema = Schema(
        types.NestedField(1, "new", types.StringType()),
        types.NestedField(
            2,
            "p",
            types.StructType(types.NestedField(3, "y", types.LongType()), types.NestedField(4, "z", types.LongType())),
        ),
    )
    assert assign_fresh_ids(schema, 10, base) == Schema(
        types.NestedField(10, "new", types.StringType()),
        types.NestedField(
            5,
            "p",
            types.StructType(types.NestedField(9, "y", types.LongType()), types.NestedField(11, "z", types.LongType())),
        ),
    )


def test_defaults_follow_their_fields() -> None:
    kind = types.ListType(7, types.StructType(types.NestedField(8, "x", types.IntegerType())))
    mapped = types.MapType(
        10, types.StringType(), 11, types.StructType(types.NestedField(12, "x", types.IntegerType()))
    )
    schema = Schema(
        types.NestedField(6, "l", kind, initial_default=(((8, 1),), ((8, None),))),
        types.NestedField(9, "m", mapped, write_default=(("k", ((12, 3),)),)),
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
