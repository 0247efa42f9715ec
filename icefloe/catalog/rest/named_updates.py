"""Decides how updates are sent: what a table has already is named by its id, not added again.

Here an update that adds a schema, spec or order that the table has stands for that one, and "the one added last" is that one.
Java's servers take nothing for added then, and refuse. What is new goes with the id that it will have: Nessie takes it for the
one that has its id otherwise, and refuses.
"""

from collections.abc import Iterator, Sequence

from icefloe.metadata import Applied, TableMetadata, step, updates as up


def named_updates(base: TableMetadata, updates: Sequence[up.TableUpdate]) -> tuple[up.TableUpdate, ...]:
    """The updates of a commit, which was prepared on the base, as any server understands them."""
    if not any(
        isinstance(each, up.AddSchemaUpdate | up.AddPartitionSpecUpdate | up.AddSortOrderUpdate) for each in updates
    ):
        return tuple(updates)
    return tuple(_named(base, updates))


def _named(base: TableMetadata, updates: Sequence[up.TableUpdate]) -> Iterator[up.TableUpdate]:
    applied = Applied(base)
    for update in updates:
        before = applied.metadata
        # The time is of no account: what is made here is thrown away.
        applied = step(applied, update, before.last_updated_ms)
        match update:
            case up.AddSchemaUpdate() if len(applied.metadata.schemas) > len(before.schemas):
                yield up.AddSchemaUpdate(applied.metadata.schemas[-1])
            case up.AddPartitionSpecUpdate() if len(applied.metadata.partition_specs) > len(before.partition_specs):
                yield up.AddPartitionSpecUpdate(applied.metadata.partition_specs[-1])
            case up.AddSortOrderUpdate() if len(applied.metadata.sort_orders) > len(before.sort_orders):
                yield up.AddSortOrderUpdate(applied.metadata.sort_orders[-1])
            case up.AddSchemaUpdate() | up.AddPartitionSpecUpdate() | up.AddSortOrderUpdate():
                if applied.metadata is not before:
                    yield update
            case up.SetCurrentSchemaUpdate(up.LAST_ADDED) if applied.metadata.current_schema_id in base.schemas_by_id:
                yield up.SetCurrentSchemaUpdate(applied.metadata.current_schema_id)
            case up.SetDefaultSpecUpdate(up.LAST_ADDED) if applied.metadata.default_spec_id in base.specs_by_id:
                yield up.SetDefaultSpecUpdate(applied.metadata.default_spec_id)
            case up.SetDefaultSortOrderUpdate(up.LAST_ADDED) if (
                applied.metadata.default_sort_order_id in base.sort_orders_by_id
            ):
                yield up.SetDefaultSortOrderUpdate(applied.metadata.default_sort_order_id)
            case _:
                yield update
