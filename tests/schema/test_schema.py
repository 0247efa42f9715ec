"""Schemas: lookup by id and name, and what no schema may be."""

import pickle

import pytest
from hypothesis import given

from icefloe.errors import InvalidSchemaError, NoSuchColumnError
from icefloe.schema import Schema, parse_ddl, types
from tests.strategies import schemas

POINT = types.StructType(
    types.NestedField(3, "x", types.IntegerType(), True), types.NestedField(4, "y", types.IntegerType())
)
SCHEMA = Schema(
    types.NestedField(1, "id", types.LongType(), True),
    types.NestedField(2, "place", POINT, True),
    types.NestedField(5, "steps", types.ListType(6, types.StructType(types.NestedField(7, "n", types.IntegerType())), False)),
    types.NestedField(8, "props", types.MapType(9, types.StructType(types.NestedField(10, "k", types.IntegerType())), 11,
                                    types.StructType(types.NestedField(12, "v", types.StringType())))),
    types.NestedField(13, "deep", types.ListType(14, types.ListType(15, types.StructType(types.NestedField(16, "z", types.IntegerType()))))),
    schema_id=2,
    identifier_field_ids=[3, 1, 3],
)  # fmt: skip


def test_names() -> None:
    assert SCHEMA.column_names == (
        "id",
        "place",
        "place.x",
        "place.y",
        "steps",
        "steps.element",
        "steps.element.n",
        "props",
        "props.key",
        "props.key.k",
        "props.value",
        "props.value.v",
        "deep",
        "deep.element",
        "deep.element.element",
        "deep.element.element.z",
    )
    assert SCHEMA.find_column_name(7) == "steps.element.n"
    assert SCHEMA.find_column_name(99) is None


@pytest.mark.parametrize(
    ("name", "field_id"),
    [
        ("place.x", 3),
        ("steps.n", 7),
        ("steps.element.n", 7),
        ("props.v", 12),
        ("props.key.k", 10),
        ("deep.element.z", 16),
    ],
)
def test_find(name: str, field_id: int) -> None:
    assert SCHEMA.find_field(name).field_id == field_id
    assert SCHEMA.find_field(field_id).field_id == field_id
    assert SCHEMA.find_id(name.upper(), case_sensitive=False) == field_id
    assert SCHEMA.find_id(name.upper()) is None
    assert SCHEMA.find_type(name) == SCHEMA.find_field(field_id).field_type


@pytest.mark.parametrize("missing", ["nope", "place.z", "props.k", "deep.z", "", 99, -1])
def test_missing(missing: str | int) -> None:
    with pytest.raises(NoSuchColumnError, match="columns are id, place"):
        SCHEMA.find_field(missing)


def test_ambiguous_case() -> None:
    schema = Schema(types.NestedField(1, "a", types.LongType()), types.NestedField(2, "A", types.LongType()))
    assert schema.find_id("A") == 2
    with pytest.raises(NoSuchColumnError, match="ambiguous"):
        schema.find_id("a", case_sensitive=False)


def test_relations() -> None:
    assert [field.name for field in SCHEMA.ancestors(16)] == ["element", "element", "deep"]
    assert SCHEMA.ancestors(1) == ()
    assert SCHEMA.highest_field_id == 16
    assert SCHEMA.identifier_field_ids == (1, 3)
    assert SCHEMA.identifier_field_names == ("id", "place.x")
    assert Schema().highest_field_id == 0
    assert len(SCHEMA) == 5
    assert SCHEMA.as_struct.fields == SCHEMA.fields


def test_identity() -> None:
    assert SCHEMA.with_id(7).schema_id == 7
    assert SCHEMA.with_id(7) != SCHEMA
    assert SCHEMA.with_id(7).same_columns(SCHEMA)
    assert not Schema(*SCHEMA.fields).same_columns(SCHEMA)
    assert hash(SCHEMA) == hash(pickle.loads(pickle.dumps(SCHEMA)))


@given(schemas())
def test_schemas_survive_pickling_and_find_every_field(schema: Schema) -> None:
    assert len(schema.column_names) == len(list(types.walk_fields(schema.fields)))  # fills the lookup tables first
    assert pickle.loads(pickle.dumps(schema)) == schema
    for field_id, name in schema.names_by_id.items():
        assert schema.find_field(name) == schema.fields_by_id[field_id]
    for child, parent in schema.parents.items():
        assert schema.names_by_id[child].startswith(f"{schema.names_by_id[parent]}.")


def test_text() -> None:
    assert str(parse_ddl("a int not null, b string comment 'x'")) == (
        "table {\n  1: a: required int\n  2: b: optional string (x)\n}"
    )


def test_duplicates() -> None:
    with pytest.raises(InvalidSchemaError, match="field id 1 is used by both 'a' and 'element'"):
        Schema(types.NestedField(1, "a", types.ListType(1, types.LongType())))
    with pytest.raises(InvalidSchemaError, match="two fields are named 'a'"):
        Schema(types.NestedField(1, "a", types.LongType()), types.NestedField(2, "a", types.LongType()))
    inner = types.StructType(types.NestedField(2, "a", types.LongType()), types.NestedField(3, "a", types.LongType()))
    with pytest.raises(InvalidSchemaError, match="in struct 'element'"):
        Schema(types.NestedField(1, "l", types.ListType(4, inner)))


def test_dotted_names_must_not_mean_two_fields() -> None:
    inner = types.StructType(types.NestedField(2, "b", types.LongType()))
    with pytest.raises(InvalidSchemaError, match=r"'a\.b'"):
        Schema(types.NestedField(1, "a", inner), types.NestedField(3, "a.b", types.LongType()))
    assert (
        Schema(types.NestedField(1, "a.b", inner), types.NestedField(3, "a", types.LongType()))
        .find_field("a.b.b")
        .field_id
        == 2
    )


def test_a_field_that_is_called_like_an_element() -> None:
    schema = Schema(
        types.NestedField(
            1, "l", types.ListType(2, types.StructType(types.NestedField(3, "element", types.LongType())))
        )
    )
    assert schema.find_field("l.element").field_id == 2
    assert schema.find_field("l.element.element").field_id == 3


def test_names_and_nulls() -> None:
    with pytest.raises(InvalidSchemaError, match="empty name"):
        Schema(types.NestedField(1, "", types.LongType()))
    with pytest.raises(InvalidSchemaError, match="must be optional"):
        Schema(types.NestedField(1, "u", types.UnknownType(), True))


@pytest.mark.parametrize(
    ("field", "message"),
    [
        (types.NestedField(1, "a", types.LongType()), "optional"),
        (types.NestedField(1, "a", types.FloatType(), True), "float"),
        (types.NestedField(1, "a", types.DoubleType(), True), "double"),
        (types.NestedField(1, "a", types.VariantType(), True), "variant"),
        (types.NestedField(1, "a", types.StructType(), True), "struct"),
    ],
)
def test_identifier_fields(field: types.NestedField, message: str) -> None:
    with pytest.raises(InvalidSchemaError, match=message):
        Schema(field, identifier_field_ids=[1])


@pytest.mark.parametrize(
    ("kind", "required"),
    [
        (types.StructType(types.NestedField(2, "b", types.LongType(), True)), False),
        (types.ListType(3, types.StructType(types.NestedField(2, "b", types.LongType(), True))), True),
        (
            types.MapType(3, types.LongType(), 4, types.StructType(types.NestedField(2, "b", types.LongType(), True))),
            True,
        ),
        (types.MapType(2, types.LongType(), 4, types.LongType()), True),
    ],
    ids=str,
)
def test_identifier_fields_inside_of_others(kind: types.IcebergType, required: bool) -> None:
    with pytest.raises(InvalidSchemaError, match="identifier field"):
        Schema(types.NestedField(1, "a", kind, required), identifier_field_ids=[2])


def test_identifier_fields_that_are_not_there() -> None:
    with pytest.raises(InvalidSchemaError, match="99"):
        Schema(identifier_field_ids=[99])
