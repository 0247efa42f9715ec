"""Schemas and partition specs that nothing needs any more leave the table's metadata."""

from dataclasses import dataclass

from icefloe.commit.change import Prepared
from icefloe.commit.view import manifests_of
from icefloe.commit.workbench import Workbench
from icefloe.metadata.requirements import AssertCurrentSchemaId, AssertDefaultSpecId, AssertRefSnapshotId
from icefloe.metadata.table import TableMetadata
from icefloe.metadata.updates import RemovePartitionSpecsUpdate, RemoveSchemasUpdate, TableUpdate


@dataclass(frozen=True)
class CleanMetadata:
    """Drops what no snapshot names: schemas by the snapshots' ids, specs by those of their manifests."""

    @property
    def snapshot_ids(self) -> tuple[int, ...]:
        """None: no snapshot is made."""
        return ()

    def prepare(self, metadata: TableMetadata, bench: Workbench, /) -> Prepared:
        """The updates; no branch, tag or default may move meanwhile, since what it moves to may need what goes."""
        specs = {metadata.default_spec_id}
        schemas: set[int | None] = {metadata.current_schema_id}
        for snapshot in metadata.snapshots:
            schemas.add(snapshot.schema_id)
            specs.update(each.partition_spec_id for each in manifests_of(snapshot, metadata, bench))
        unused_specs = tuple(each for each in metadata.specs_by_id if each not in specs)
        unused_schemas = tuple(each for each in metadata.schemas_by_id if each not in schemas)
        updates: list[TableUpdate] = []
        if unused_specs:
            updates.append(RemovePartitionSpecsUpdate(unused_specs))
        if unused_schemas:
            updates.append(RemoveSchemasUpdate(unused_schemas))
        if not updates:
            return Prepared()
        unmoved = (AssertRefSnapshotId(name, ref.snapshot_id) for name, ref in metadata.refs.items())
        return Prepared(
            tuple(updates),
            (
                *unmoved,
                AssertCurrentSchemaId(metadata.current_schema_id),
                AssertDefaultSpecId(metadata.default_spec_id),
            ),
        )
