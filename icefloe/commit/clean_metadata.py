"""Schemas and partition specs that nothing needs any more leave the table's metadata."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

import pyarrow.compute as pc

from icefloe.commit.change import Prepared
from icefloe.commit.parent import manifests_of, read_entries
from icefloe.commit.workbench import Workbench
from icefloe.manifests import WITHOUT_METRICS, ManifestContent, ManifestFile
from icefloe.metadata import TableMetadata, requirements as req, updates as up
from icefloe.partitioning import transforms as tr
from icefloe.schema import UnknownType


@dataclass(frozen=True)
class CleanMetadata:
    """Drops what nothing needs: specs that no manifest is of, and schemas that neither a snapshot names nor a column needs.

    A spec and an equality delete file name columns by their ids, and may outlive them: the last schema that says what such
    a column was stays with them, as values could not be read without its type.
    """

    @property
    def snapshot_ids(self) -> tuple[int, ...]:
        """None: no snapshot is made."""
        return ()

    def prepare(self, metadata: TableMetadata, bench: Workbench, /) -> Prepared:
        """The updates; no branch, tag or default may move meanwhile, since what it moves to may need what goes."""
        specs = {metadata.default_spec_id}
        schemas: set[int | None] = {metadata.current_schema_id}
        manifests: set[ManifestFile] = set()
        for snapshot in metadata.snapshots:
            schemas.add(snapshot.schema_id)
            manifests.update(manifests_of(snapshot, metadata, bench))
        specs.update(each.partition_spec_id for each in manifests)
        unused_specs = tuple(each for each in metadata.specs_by_id if each not in specs)
        unused_schemas = tuple(each for each in metadata.schemas_by_id if each not in schemas)
        if unused_schemas:
            fields = (each for spec_id in specs for each in metadata.spec(spec_id).fields)
            needed = {each.source_id for each in fields if _has_type_of_column(each.transform)}
            needed |= _equality_ids(manifests, metadata, bench)
            telling = _last_schemas(needed, metadata, schemas)
            unused_schemas = tuple(each for each in unused_schemas if each not in telling)
        updates: list[up.TableUpdate] = []
        if unused_specs:
            updates.append(up.RemovePartitionSpecsUpdate(unused_specs))
        if unused_schemas:
            updates.append(up.RemoveSchemasUpdate(unused_schemas))
        if not updates:
            return Prepared()
        unmoved = (req.AssertRefSnapshotId(name, ref.snapshot_id) for name, ref in metadata.refs.items())
        return Prepared(
            tuple(updates),
            (
                *unmoved,
                req.AssertCurrentSchemaId(metadata.current_schema_id),
                req.AssertDefaultSpecId(metadata.default_spec_id),
            ),
        )


def _has_type_of_column(transform: tr.Transform) -> bool:
    """Whether the type of the values is that of the column; void has no values."""
    is_void = isinstance(transform, tr.VoidTransform)
    return not is_void and isinstance(transform.result_type(UnknownType()), UnknownType)


def _equality_ids(manifests: Iterable[ManifestFile], metadata: TableMetadata, bench: Workbench) -> set[int]:
    """The columns that live equality delete files compare."""
    found: set[int] = set()
    for manifest in manifests:
        if manifest.content is ManifestContent.DELETES and manifest.has_live_files:
            columns = read_entries(manifest, metadata, bench, WITHOUT_METRICS)
            lists = columns.filter(columns.is_live).column("equality_ids")
            found.update(pc.unique(pc.list_flatten(lists)).to_pylist())
    return found


def _last_schemas(field_ids: Iterable[int], metadata: TableMetadata, kept: Collection[int | None]) -> set[int]:
    """The newest schema of each of the columns that none of the kept ones has."""
    found: set[int] = set()
    for field_id in field_ids:
        having = [each.schema_id for each in metadata.schemas_newest_first if field_id in each.fields_by_id]
        if having and not any(each in kept or each in found for each in having):
            found.add(having[0])
    return found
