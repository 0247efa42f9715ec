"""What updates rely on in the metadata that they were prepared on, as requirements of their commit."""

from collections.abc import Iterator, Sequence

from icefloe import metadata as md
from icefloe.metadata import requirements as req, updates as up


def requirements_for(
    base: md.TableMetadata | None, updates: Sequence[up.TableUpdate]
) -> tuple[req.TableRequirement, ...]:
    """The requirements of updates built on `base`; without a base they create the table."""
    if base is None:
        return (req.AssertCreate(),)
    return _distinct(_identity(base), (requirement for update in updates for requirement in _relied_on(base, update)))


def _identity(base: md.TableMetadata) -> Iterator[req.TableRequirement]:
    # Only v1 tables may lack a UUID.
    if base.table_uuid is not None:
        yield req.AssertTableUUID(base.table_uuid)


def _assigned_ids(base: md.TableMetadata, update: up.TableUpdate) -> Iterator[req.TableRequirement]:
    match update:
        case up.AddSchemaUpdate():
            yield req.AssertLastAssignedFieldId(base.last_column_id)
        case up.AddPartitionSpecUpdate():
            yield req.AssertLastAssignedPartitionId(base.last_partition_id)
        case _:
            pass


def _relied_on(base: md.TableMetadata, update: up.TableUpdate) -> Iterator[req.TableRequirement]:
    match update:
        case up.SetSnapshotRefUpdate(name, _):
            ref = base.refs.get(name)
            yield req.AssertRefSnapshotId(name, None if ref is None else ref.snapshot_id)
        case up.SetCurrentSchemaUpdate():
            yield req.AssertCurrentSchemaId(base.current_schema_id)
        case up.SetDefaultSpecUpdate():
            yield req.AssertDefaultSpecId(base.default_spec_id)
        case up.SetDefaultSortOrderUpdate():
            yield req.AssertDefaultSortOrderId(base.default_sort_order_id)
        case up.RemoveSnapshotRefUpdate(name):
            ref = base.refs.get(name)
            yield req.AssertRefSnapshotId(name, None if ref is None else ref.snapshot_id)
        case up.RemoveSnapshotsUpdate():
            # A ref to one of them would go with it. Of refs that come in between, no requirement can tell.
            for name, ref in base.refs.items():
                yield req.AssertRefSnapshotId(name, ref.snapshot_id)
        case up.RemoveSchemasUpdate():
            yield req.AssertCurrentSchemaId(base.current_schema_id)
            yield from _branches(base)
        case up.RemovePartitionSpecsUpdate():
            yield req.AssertDefaultSpecId(base.default_spec_id)
            yield from _branches(base)
        case _:
            yield from _assigned_ids(base, update)


def _branches(base: md.TableMetadata) -> Iterator[req.TableRequirement]:
    """No branch moved, so no new snapshot needs what is removed."""
    for name, ref in base.refs.items():
        if ref.is_branch and name != md.MAIN_BRANCH:
            yield req.AssertRefSnapshotId(name, ref.snapshot_id)


def _distinct(*parts: Iterator[req.TableRequirement]) -> tuple[req.TableRequirement, ...]:
    return tuple(dict.fromkeys(requirement for part in parts for requirement in part))
