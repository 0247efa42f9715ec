"""Schema JSON: both ways for every schema, and our own error for every wrong document."""

import json
import math
from typing import Any

import pytest
from hypothesis import given, strategies as st

from icefloe.errors import InvalidInputError, InvalidSchemaError, InvalidTypeError
from icefloe.schema import Schema, schema_from_json, schema_to_json, type_from_json, type_to_json, types
from tests.golden import golden
from tests.strategies import primitive_types, schemas, values_of

FULL = {
    "type": "struct",
    "schema-id": 3,
    "identifier-field-ids": [1],
    "fields": [
        {"id": 1, "name": "id", "required": True, "type": "long", "doc": "key"},
        {
            "id": 2,
            "name": "tags",
            "required": False,
            "type": {"type": "list", "element-id": 3, "element": "string", "element-required": True},
        },
        {
            "id": 4,
            "name": "props",
            "required": False,
            "type": {
                "type": "map",
                "key-id": 5,
                "key": "string",
                "value-id": 6,
                "value": {
                    "type": "struct",
                    "fields": [
                        {
                            "id": 7,
                            "name": "n",
                            "required": True,
                            "type": "int",
                            "initial-default": 1,
                            "write-default": 2,
                        }
                    ],
                },
                "value-required": False,
            },
        },
        {"id": 8, "name": "anything", "required": False, "type": "variant"},
    ],
}

FULL_SCHEMA = Schema(
    types.NestedField(1, "id", types.LongType(), True, "key"),
    types.NestedField(2, "tags", types.ListType(3, types.StringType(), True)),
    types.NestedField(
        4,
        "props",
        types.MapType(
            5,
            types.StringType(),
            6,
            types.StructType(types.NestedField(7, "n", types.IntegerType(), True, initial_default=1, write_default=2)),
            False,
        ),
    ),
    types.NestedField(8, "anything", types.VariantType()),
    schema_id=3,
    identifier_field_ids=[1],
)


def test_document_and_schema_are_the_same_thing() -> None:
    assert schema_from_json(FULL) == FULL_SCHEMA
    assert schema_to_json(FULL_SCHEMA) == FULL
    assert json.loads(json.dumps(schema_to_json(FULL_SCHEMA))) == FULL


@given(schemas())
def test_round_trip(schema: Schema) -> None:
    assert schema_from_json(json.loads(json.dumps(schema_to_json(schema)))) == schema


@given(st.data())
def test_defaults_round_trip(data: st.DataObject) -> None:
    kind = data.draw(
        primitive_types().filter(
            lambda t: not isinstance(t, types.UnknownType | types.GeometryType | types.GeographyType)
        )
    )
    value = data.draw(values_of(kind).filter(lambda value: not isinstance(value, float) or math.isfinite(value)))
    field = types.NestedField(1, "c", kind, initial_default=value, write_default=value)
    back = schema_from_json(json.loads(json.dumps(schema_to_json(Schema(field)))))
    assert repr(back.fields[0]) == repr(field)  # by text, because -0.0 is 0.0


def test_schema_id_and_identifiers_may_be_missing() -> None:
    schema = schema_from_json({"type": "struct", "fields": []})
    assert schema == Schema(schema_id=0)
    assert schema_from_json({"type": "struct", "schema-id": None, "fields": [], "identifier-field-ids": None}) == schema


@pytest.mark.parametrize("text", ["decimal(9,2)", "decimal(9, 2)", "decimal( 9 , 2 )", " decimal(9,2) "])
def test_white_space_in_parameters(text: str) -> None:
    assert type_from_json(text) == types.DecimalType(9, 2)


@pytest.mark.parametrize("text", ["geography", "geography(OGC:CRS84,spherical)", "geography(OGC:CRS84, spherical)"])
def test_spellings_of_geography(text: str) -> None:
    assert type_from_json(text) == types.GeographyType()
    assert type_to_json(types.GeographyType()) == "geography(OGC:CRS84, spherical)"


def test_empty_struct_default() -> None:
    inner = {"type": "struct", "fields": [{"id": 2, "name": "x", "required": True, "type": "int"}]}
    document = {
        "type": "struct",
        "schema-id": 0,
        "fields": [{"id": 1, "name": "p", "required": False, "type": inner, "initial-default": {}}],
    }
    schema = schema_from_json(document)
    assert schema.fields[0].initial_default == ()
    assert schema_to_json(schema) == document


def test_unknown_keys_are_ignored() -> None:
    assert schema_from_json(FULL | {"x-vendor": 1}) == FULL_SCHEMA


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"id": "1"}, "c: id is '1'"),
        ({"id": True}, "c: id is True"),
        ({"id": None}, "c: id is missing"),
        ({"id": 2**31}, "c: id is 2147483648"),
        ({"id": -1}, "c: id is -1"),
        ({"id": 1.0}, "c: id is 1.0"),
        ({"name": None}, "name of a field of a struct is missing"),
        ({"name": 5}, "name of a field of a struct is 5"),
        ({"required": None}, "c: required is missing"),
        ({"required": 1}, "c: required is 1"),
        ({"doc": 7}, "c: doc is 7"),
        ({"type": None}, "c: type is missing"),
        ({"type": 7}, "c: type is 7"),
        ({"type": ["long"]}, "c: type is"),
        ({"type": {}}, "c: type is missing"),
        ({"type": {"type": "strukt"}}, "c: type is 'strukt'"),
        ({"type": {"type": "struct"}}, "c: fields is missing"),
        ({"type": {"type": "struct", "fields": "id"}}, "c: fields is 'id'"),
        ({"type": {"type": "struct", "fields": [3]}}, "a field of c is 3"),
        ({"type": {"type": "list", "element": "int", "element-required": True}}, "c: element-id is missing"),
        ({"type": {"type": "list", "element-id": 2, "element-required": True}}, "c.element: type is missing"),
        ({"type": {"type": "list", "element-id": 2, "element": "int"}}, "c: element-required is missing"),
        (
            {"type": {"type": "map", "key-id": 2, "key": "int", "value-id": 3, "value": 0, "value-required": True}},
            "c.value: type is 0",
        ),
        ({"initial-default": "x"}, "c: initial-default: "),
        ({"write-default": {}}, "c: write-default: "),
    ],
)
def test_wrong_fields_are_named(change: dict[str, Any], message: str) -> None:
    field = {"id": 1, "name": "c", "required": False, "type": "long"} | change
    with pytest.raises(InvalidSchemaError) as caught:
        schema_from_json({"type": "struct", "fields": [field]})
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "name", ["", "text", "decimal(39,2)", "decimal(9)", "fixed[0]", "fixed(3)", "geography(a, b)", "decimal(2,3)"]
)
def test_unknown_types_are_named(name: str) -> None:
    inner = {"type": "struct", "fields": [{"id": 2, "name": "b", "required": True, "type": name}]}
    with pytest.raises(InvalidTypeError, match=r"^a\.b: "):
        schema_from_json({"type": "struct", "fields": [{"id": 1, "name": "a", "required": True, "type": inner}]})


@pytest.mark.parametrize(
    "document",
    [
        None,
        [],
        "struct",
        3,
        {},
        {"type": "list", "element-id": 1, "element": "int", "element-required": True},
        {"type": "struct"},
        {"type": "struct", "fields": {}},
        {"type": "struct", "fields": [], "schema-id": "0"},
        {"type": "struct", "fields": [], "schema-id": True},
        {"type": "struct", "fields": [], "identifier-field-ids": 1},
        {"type": "struct", "fields": [], "identifier-field-ids": ["1"]},
        {"type": "struct", "fields": [], "identifier-field-ids": [1]},
    ],
)
def test_wrong_schemas(document: object) -> None:
    with pytest.raises(InvalidSchemaError):
        schema_from_json(document)


def test_what_was_right_once_does_not_make_its_like_right() -> None:
    field = {"id": 1, "name": "a", "required": True, "type": "int"}
    assert schema_from_json({"type": "struct", "fields": [field]}).fields == (
        types.NestedField(1, "a", types.IntegerType(), True),
    )
    for change in ({"id": True}, {"id": 1.0}, {"required": 1}, {"required": 1.0}):
        with pytest.raises(InvalidSchemaError):
            schema_from_json({"type": "struct", "fields": [field | change]})


def test_duplicate_ids_are_refused() -> None:
    field = {"id": 1, "name": "a", "required": True, "type": "int"}
    with pytest.raises(InvalidSchemaError, match="field id 1 is used by both 'a' and 'b'"):
        schema_from_json({"type": "struct", "fields": [field, field | {"name": "b"}]})


def test_a_bottomless_document_is_refused() -> None:
    kind: Any = "int"
    for depth in range(20_000):
        kind = {"type": "list", "element-id": depth, "element": kind, "element-required": True}
    with pytest.raises(InvalidSchemaError, match="too deeply"):
        schema_from_json({"type": "struct", "fields": [{"id": 99999, "name": "a", "required": True, "type": kind}]})


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@given(st.data())
def test_any_damage_gives_our_error_or_a_schema(data: st.DataObject) -> None:
    document = json.loads(json.dumps(FULL))
    places = list(_places(document))
    holder, key = data.draw(st.sampled_from(places))
    holder[key] = data.draw(JSON_VALUES)
    try:
        schema_from_json(document)
    except InvalidInputError as problem:
        assert str(problem)  # noqa: PT017 - a document may still be right after the damage


def _places(document: Any) -> Any:
    for key, value in document.items() if isinstance(document, dict) else enumerate(document):
        yield document, key
        if isinstance(value, dict | list):
            yield from _places(value)


@pytest.mark.parametrize("name", ["TableMetadataV2Valid.json", "TableMetadataV1Valid.json"])
def test_golden_metadata(name: str) -> None:
    document = json.loads((golden("table-metadata") / name).read_text())
    for each in document.get("schemas", [document["schema"]] if "schema" in document else []):
        schema = schema_from_json(each)
        assert schema_from_json(schema_to_json(schema)) == schema
        assert [field.name for field in schema] == [field["name"] for field in each["fields"]]
