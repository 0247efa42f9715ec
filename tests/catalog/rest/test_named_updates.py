"""Updates as they are sent: what is new has the id that it will have, and what is known is named by its id."""

from icefloe.catalog.rest.named_updates import named_updates
from icefloe.metadata import new_table_metadata, updates as up
from icefloe.partitioning import parse_partition_spec, parse_sort_order
from icefloe.schema import parse_ddl

BASE = new_table_metadata(parse_ddl("id bigint, name string"), location="memory://named/t", uuid="u", timestamp_ms=1)


def test_what_is_new_has_its_id() -> None:
    schema = BASE.schema()
    wider = parse_ddl("id bigint, name string, more int")
    added = (
        up.AddSchemaUpdate(wider),
        up.SetCurrentSchemaUpdate(),
        up.AddPartitionSpecUpdate(parse_partition_spec(["bucket(4, id)"], schema)),
        up.SetDefaultSpecUpdate(),
        up.AddSortOrderUpdate(parse_sort_order(["name"], schema)),
        up.SetDefaultSortOrderUpdate(),
    )
    sent = named_updates(BASE, added)
    assert [type(update) for update in sent] == [type(update) for update in added]
    assert isinstance(sent[0], up.AddSchemaUpdate)
    assert isinstance(sent[2], up.AddPartitionSpecUpdate)
    assert isinstance(sent[4], up.AddSortOrderUpdate)
    assert (sent[0].schema.schema_id, sent[2].spec.spec_id, sent[4].sort_order.order_id) == (1, 1, 1)
    assert (sent[1], sent[3], sent[5]) == (added[1], added[3], added[5])


def test_what_is_known_is_named() -> None:
    updates = (up.AddSchemaUpdate(BASE.schema()), up.SetCurrentSchemaUpdate())
    assert named_updates(BASE, updates) == (up.SetCurrentSchemaUpdate(BASE.current_schema_id),)
