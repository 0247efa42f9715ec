"""Name mappings: their JSON, lookup, growth with the schema, and their use on files without ids."""

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given

from icefloe.errors import InvalidInputError, InvalidSchemaError
from icefloe.schema import (
    NameMapping,
    Schema,
    SchemaUpdate,
    apply_name_mapping,
    create_name_mapping,
    file_schema_from_arrow,
    format_name_mapping,
    parse_ddl,
    parse_name_mapping,
    schema_to_arrow,
    types,
    update_name_mapping,
)
from icefloe.schema.name_mapping import MappedField, name_mapping_from_json, name_mapping_to_json
from tests.strategies import schemas

# The example of the spec, Appendix C.
SPEC_TEXT = """[ { "field-id": 1, "names": ["id", "record_id"] },
   { "field-id": 2, "names": ["data"] },
   { "field-id": 3, "names": ["location"], "fields": [
       { "field-id": 4, "names": ["latitude", "lat"] },
       { "field-id": 5, "names": ["longitude", "long"] }
     ] } ]"""
SPEC = NameMapping(
    (
        MappedField(1, ("id", "record_id")),
        MappedField(2, ("data",)),
        MappedField(
            3, ("location",), (MappedField(4, ("latitude", "lat")), MappedField(5, ("longitude", "long")))
        ),
    )
)  # fmt: skip


def find(mapping: NameMapping, path: list[str]) -> MappedField | None:
    """The mapping of the column at this path, one name per level, if there is one."""
    fields, mapped = mapping.fields, None
    for name in path:
        mapped = next((field for field in fields if name in field.names), None)
        if mapped is None:
            return None
        fields = mapped.fields
    return mapped


def find_id(mapping: NameMapping, path: list[str]) -> int | None:
    mapped = find(mapping, path)
    return None if mapped is None else mapped.field_id


def test_json() -> None:
    assert parse_name_mapping(SPEC_TEXT) == SPEC
    assert name_mapping_to_json(SPEC) == json.loads(SPEC_TEXT)
    assert parse_name_mapping(format_name_mapping(SPEC)) == SPEC


def test_entries_without_id_or_names() -> None:
    mapping = name_mapping_from_json([{"names": ["extra"]}, {"field-id": 1, "names": []}, {"field-id": 2}])
    assert mapping.fields == (MappedField(None, ("extra",)), MappedField(1, ()), MappedField(2, ()))
    assert name_mapping_to_json(mapping)[0] == {"names": ["extra"]}
    assert find(mapping, ["extra"]) == MappedField(None, ("extra",))
    assert find_id(mapping, ["extra"]) is None


def test_find() -> None:
    assert find_id(SPEC, ["record_id"]) == 1
    assert find_id(SPEC, ["location", "lat"]) == 4
    assert find_id(SPEC, ["location.lat"]) is None
    assert find_id(SPEC, ["location", "altitude"]) is None
    assert find_id(SPEC, ["data", "x"]) is None
    assert find(SPEC, []) is None
    assert find_id(parse_name_mapping('[{"field-id": 9, "names": ["a.b"]}]'), ["a.b"]) == 9


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "{}",
        "null",
        "[1]",
        "[null]",
        '[{"field-id": "1", "names": []}]',
        '[{"field-id": true, "names": []}]',
        '[{"field-id": -1, "names": []}]',
        '[{"field-id": 1.5, "names": []}]',
        '[{"field-id": 1, "names": "id"}]',
        '[{"field-id": 1, "names": [1]}]',
        '[{"field-id": 1, "names": null}]',
        '[{"field-id": 1, "names": ["a"], "fields": {}}]',
        '[{"field-id": 1, "names": ["a"], "fields": [3]}]',
        '[{"field-id": 1, "names": ["a"]}, {"field-id": 1, "names": ["b"]}]',
        '[{"field-id": 1, "names": ["a"]}, {"field-id": 2, "names": ["a"]}]',
        '[{"field-id": 1, "names": ["a"], "fields": [{"field-id": 1, "names": ["b"]}]}]',
        "[" * 100_000,
    ],
)
def test_bad_json(text: str) -> None:
    with pytest.raises(InvalidSchemaError):
        parse_name_mapping(text)


@pytest.mark.parametrize("value", [None, 3, b"[]x", object()])
def test_bad_input(value: Any) -> None:
    with pytest.raises(InvalidInputError):
        parse_name_mapping(value)


@given(schemas())
def test_a_mapping_of_a_schema_gives_its_ids_to_a_file_without(schema: Schema) -> None:
    mapping = create_name_mapping(schema)
    assert parse_name_mapping(format_name_mapping(mapping)) == mapping
    for field_id in schema.fields_by_id:
        path = [field.name for field in reversed(schema.ancestors(field_id))] + [schema.fields_by_id[field_id].name]
        assert find_id(mapping, path) == field_id
    bare = file_schema_from_arrow(schema_to_arrow(schema, ids=False))
    assert max(bare.fields_by_id) < 0
    assert apply_name_mapping(bare, mapping).fields == schema.fields


def test_columns_that_the_mapping_lacks_stay_without_an_id() -> None:
    arrow = pa.schema(
        [("id", pa.int32()), ("else", pa.list_(pa.int32())), ("location", pa.struct([("lat", pa.int32())]))]
    )
    schema = apply_name_mapping(file_schema_from_arrow(arrow), SPEC)
    assert (schema.find_field("id").field_id, schema.find_field("location.lat").field_id) == (1, 4)
    assert schema.find_field("else").field_id < 0
    assert schema.find_field("else.element").field_id < 0


def test_ids_of_the_file_are_not_overruled() -> None:
    file = Schema(
        types.NestedField(7, "id", types.IntegerType()),
        types.NestedField(2, "x", types.ListType(-1, types.IntegerType())),
        types.NestedField(-2, "data", types.StringType()),
        types.NestedField(-3, "location", types.StringType()),
    )
    mapped = apply_name_mapping(file, SPEC)
    assert [field.field_id for field in mapped] == [7, 2, -2, 3]


BEFORE = parse_ddl("id long, location struct<lat: double, lon: double>, tags list<struct<t: string>>")


def after(change: SchemaUpdate) -> NameMapping:
    return update_name_mapping(create_name_mapping(BEFORE), BEFORE, change.apply())


def test_a_rename_adds_a_name() -> None:
    change = SchemaUpdate(BEFORE).rename_column("id", "key").rename_column("location.lat", "latitude")
    mapping = after(change.rename_column("tags.t", "tag"))
    assert find(mapping, ["id"]) == find(mapping, ["key"]) == MappedField(1, ("id", "key"))
    assert find_id(mapping, ["location", "latitude"]) == find_id(mapping, ["location", "lat"]) == 4
    assert find_id(mapping, ["tags", "element", "tag"]) == BEFORE.find_field("tags.t").field_id


def test_an_addition_is_mapped_with_all_in_it() -> None:
    change = (
        SchemaUpdate(BEFORE)
        .add_column("p", types.ListType(1, parse_ddl("q int").as_struct))
        .add_column("tags.n", types.LongType())
    )
    new = change.apply()
    mapping = after(change)
    assert find_id(mapping, ["p", "element", "q"]) == new.find_field("p.element.q").field_id
    assert find_id(mapping, ["tags", "element", "n"]) == new.find_field("tags.element.n").field_id


def test_a_name_belongs_to_the_field_that_got_it_last() -> None:
    change = SchemaUpdate(BEFORE).delete_column("id").add_column("id", types.StringType())
    mapping = after(change)
    assert find_id(mapping, ["id"]) == change.last_column_id
    assert MappedField(1, ()) in mapping.fields
    swap = SchemaUpdate(BEFORE).rename_column("location.lat", "lon").rename_column("location.lon", "lat")
    assert find_id(after(swap), ["location", "lon"]) == BEFORE.find_field("location.lat").field_id
    assert find_id(after(swap), ["location", "lat"]) == BEFORE.find_field("location.lon").field_id


def test_dropped_fields_keep_their_names_and_moves_change_nothing() -> None:
    same = create_name_mapping(BEFORE)
    assert after(SchemaUpdate(BEFORE).delete_column("id").move_first("tags").set_doc("tags", "d")) == same


def test_a_mapping_without_the_parent_is_left_alone() -> None:
    mapping = NameMapping((MappedField(None, ("x",)), MappedField(1, ("id",))))
    new = SchemaUpdate(BEFORE).add_column("location.alt", types.LongType()).rename_column("tags", "x").apply()
    assert update_name_mapping(mapping, BEFORE, new) == mapping
