"""The same schemas in PyIceberg: JSON, fresh ids and name mappings agree."""

import json

from hypothesis import given, settings
from pyiceberg.schema import Schema as PeerSchema, assign_fresh_schema_ids
from pyiceberg.table.name_mapping import create_mapping_from_schema, parse_mapping_from_json as parse_peer_mapping

from icefloe.schema import (
    Schema,
    assign_fresh_ids,
    create_name_mapping,
    format_name_mapping,
    parse_name_mapping,
    schema_from_json,
    schema_to_json,
    select,
)
from tests.strategies import schemas


def to_peer(schema: Schema) -> PeerSchema:
    return PeerSchema.model_validate_json(json.dumps(schema_to_json(schema)))


def from_peer(schema: PeerSchema) -> Schema:
    return schema_from_json(json.loads(schema.model_dump_json()))


@given(schemas(2))
def test_json(schema: Schema) -> None:
    peer = to_peer(schema)
    assert from_peer(peer) == schema
    assert {name: peer.find_field(name).field_id for name in schema.column_names} == {
        name: schema.find_field(name).field_id for name in schema.column_names
    }


@given(schemas(2))
def test_fresh_ids(schema: Schema) -> None:
    assert from_peer(assign_fresh_schema_ids(to_peer(schema))).fields == assign_fresh_ids(schema).fields


@given(schemas(2))
def test_name_mapping(schema: Schema) -> None:
    mapping = create_name_mapping(schema)
    peer = create_mapping_from_schema(to_peer(schema))
    assert parse_name_mapping(peer.model_dump_json()) == mapping
    assert parse_peer_mapping(format_name_mapping(mapping)) == peer


@settings(max_examples=25)
@given(schemas(2))
def test_select(schema: Schema) -> None:
    peer = to_peer(schema)
    for name in schema.column_names:
        if not name.endswith((".key", ".value", ".element")) and ".key." not in name:
            assert from_peer(peer.select(name)).fields == select(schema, [name]).fields
