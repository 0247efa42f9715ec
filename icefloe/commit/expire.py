"""Expiry, as far as metadata goes: which snapshots, refs, schemas and specs leave the table; no file is deleted here.

What may be deleted afterwards is what was reachable before and is not any more, by metadata read after the commit.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

import pyarrow.compute as pc

from icefloe import errors, manifests as mf, metadata as md, properties as props
from icefloe.commit.change import Change, Prepared, Workbench
from icefloe.commit.parent import Parent
from icefloe.encryption import unneeded_keys
from icefloe.metadata import requirements as req, updates as up
from icefloe.partitioning import transforms as tr
from icefloe.schema import types


@dataclass(frozen=True)
class Expire(Change):
    """Snapshots leave that are older than `older_than_ms` and that no ref keeps, and those that are named.

    Without a time, the table's own retention decides. `retain_last` is how many of each branch stay in any case. Snapshots
    that no remaining branch reaches stay until they are older than the time, too: staged ones, those before the snapshot of a
    tag, and those of a branch or tag that expires itself.
    """

    older_than_ms: int | None = None
    retain_last: int | None = None
    snapshot_ids_to_expire: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.retain_last is not None and self.retain_last < 1:
            raise errors.InvalidInputError(f"retain_last is {self.retain_last}; it must be 1 or more")

    def prepare(self, metadata: md.TableMetadata, bench: Workbench, /) -> Prepared:
        """The refs and snapshots to drop; every branch and tag must stay where it is until then."""
        check_collectable(metadata)
        return _dropping(metadata, *self._expired(metadata, bench.clock_ms()))

    def _expired(self, metadata: md.TableMetadata, now_ms: int) -> tuple[tuple[str, ...], tuple[int, ...]]:
        rules = md.retention_defaults(metadata.properties)
        if self.older_than_ms is not None:
            # Negative for a time to come, so that it is times that are compared.
            rules = replace(rules, max_snapshot_age_ms=now_ms - self.older_than_ms)
        if self.retain_last is not None:
            rules = replace(rules, min_snapshots_to_keep=self.retain_last)
        named = self._named(metadata)
        if named and self.older_than_ms is None and self.retain_last is None:
            return (), named
        refs = md.expired_refs(metadata, now_ms, rules)
        loose = md.unreferenced_snapshots(metadata, now_ms, rules)
        by_age = [
            snapshot_id
            for snapshot_id in md.expired_snapshots(metadata, now_ms, rules)
            if snapshot_id not in loose
            or now_ms - metadata.snapshot(snapshot_id).timestamp_ms > rules.max_snapshot_age_ms
        ]
        return refs, tuple(dict.fromkeys((*by_age, *named)))

    def _named(self, metadata: md.TableMetadata) -> tuple[int, ...]:
        heads = {ref.snapshot_id: name for name, ref in metadata.refs.items()}
        for snapshot_id in self.snapshot_ids_to_expire:
            if snapshot_id in heads:
                raise errors.ValidationError(
                    f"snapshot {snapshot_id} cannot be expired: {heads[snapshot_id]!r} refers to it"
                )
        return tuple(each for each in self.snapshot_ids_to_expire if each in metadata.snapshots_by_id)


@dataclass(frozen=True)
class DropSnapshots(Change):
    """Exactly these snapshots leave, and these refs, as they were planned; what is gone already is none of our business."""

    snapshot_ids_to_drop: tuple[int, ...]
    refs: tuple[tuple[str, int], ...] = ()
    """Branches and tags, each with the snapshot that it was at."""

    def prepare(self, metadata: md.TableMetadata, bench: Workbench, /) -> Prepared:  # noqa: ARG002 - no clock is needed
        """The refs and snapshots to drop; a ref that moved, or a new one at a snapshot that is to go, is an error."""
        check_collectable(metadata)
        planned = dict(self.refs)
        doomed = set(self.snapshot_ids_to_drop)
        for name, ref in metadata.refs.items():
            if ref.snapshot_id in doomed if name not in planned else ref.snapshot_id != planned[name]:
                raise errors.ValidationError(
                    f"{name!r} now refers to snapshot {ref.snapshot_id}, so the plan to expire snapshots is no longer"
                    " valid; create a new one"
                )
        refs = tuple(name for name in planned if name in metadata.refs)
        return _dropping(metadata, refs, tuple(each for each in doomed if each in metadata.snapshots_by_id))


@dataclass(frozen=True)
class CleanMetadata(Change):
    """Drops what nothing needs: specs that no manifest is of, and schemas that neither a snapshot names nor a column needs.

    A spec and an equality delete file name columns by their ids, and may outlive them: the last schema that says what such
    a column was stays with them, as values could not be read without its type.
    """

    def prepare(self, metadata: md.TableMetadata, bench: Workbench, /) -> Prepared:
        """The updates; no branch, tag or default may move meanwhile, since what it moves to may need what goes."""
        specs = {metadata.default_spec_id}
        schemas: set[int | None] = {metadata.current_schema_id}
        parent = Parent(metadata, bench)
        manifests: set[mf.ManifestFile] = set()
        for snapshot in metadata.snapshots:
            schemas.add(snapshot.schema_id)
            manifests.update(parent.manifests_of(snapshot))
        specs.update(manifest.partition_spec_id for manifest in manifests)
        unused_specs = tuple(spec_id for spec_id in metadata.specs_by_id if spec_id not in specs)
        unused_schemas = tuple(schema_id for schema_id in metadata.schemas_by_id if schema_id not in schemas)
        if unused_schemas:
            fields = (field for spec_id in specs for field in metadata.spec(spec_id).fields)
            needed = {field.source_id for field in fields if _has_type_of_column(field.transform)}
            needed |= _equality_ids(parent, manifests)
            schemas |= _last_schemas(needed, metadata, schemas)
            unused_schemas = tuple(schema_id for schema_id in unused_schemas if schema_id not in schemas)
        updates: list[up.TableUpdate] = []
        if unused_specs:
            updates.append(up.RemovePartitionSpecsUpdate(unused_specs))
        if unused_schemas:
            updates.append(up.RemoveSchemasUpdate(unused_schemas))
        if not updates:
            return Prepared()
        schema, spec = metadata.current_schema_id, metadata.default_spec_id
        unmoved = (*_unmoved(metadata), req.AssertCurrentSchemaId(schema), req.AssertDefaultSpecId(spec))
        return Prepared(tuple(updates), unmoved)


def check_collectable(metadata: md.TableMetadata) -> None:
    """Refuse to delete files of a table that says that they may be used elsewhere."""
    if not props.GC_ENABLED.of(metadata.properties):
        raise errors.InvalidPropertyError(
            f"property {props.GC_ENABLED.key!r} is false: files of this table may be used elsewhere"
        )


def _dropping(metadata: md.TableMetadata, refs: Iterable[str], snapshot_ids: tuple[int, ...]) -> Prepared:
    updates: list[up.TableUpdate] = [up.RemoveSnapshotRefUpdate(name) for name in refs]
    if snapshot_ids:
        updates.append(up.RemoveSnapshotsUpdate(snapshot_ids))
        # The keys of their manifest lists open nothing any more.
        updates += map(up.RemoveEncryptionKeyUpdate, unneeded_keys(metadata, snapshot_ids))
    return Prepared(tuple(updates), _unmoved(metadata)) if updates else Prepared()


def _unmoved(metadata: md.TableMetadata) -> tuple[req.TableRequirement, ...]:
    return tuple(req.AssertRefSnapshotId(name, ref.snapshot_id) for name, ref in metadata.refs.items())


def _has_type_of_column(transform: tr.Transform) -> bool:
    """Whether the type of the values is that of the column; void has no values."""
    is_void = isinstance(transform, tr.VoidTransform)
    return not is_void and isinstance(transform.result_type(types.UnknownType()), types.UnknownType)


def _equality_ids(parent: Parent, manifests: Iterable[mf.ManifestFile]) -> set[int]:
    """The columns that live equality delete files compare."""
    field_ids: set[int] = set()
    for manifest in manifests:
        if manifest.content is mf.ManifestContent.DELETES and manifest.has_live_files:
            columns = parent.read(manifest, mf.WITHOUT_METRICS)
            lists = columns.filter(columns.is_live).column("equality_ids")
            field_ids.update(pc.unique(pc.list_flatten(lists)).to_pylist())
    return field_ids


def _last_schemas(field_ids: Iterable[int], metadata: md.TableMetadata, used: Collection[int | None]) -> set[int]:
    """The newest schema of each of the columns that none of the used ones has."""
    newest: set[int] = set()
    for field_id in field_ids:
        having = [schema.schema_id for schema in metadata.schemas_newest_first if field_id in schema.fields_by_id]
        if having and not any(schema_id in used or schema_id in newest for schema_id in having):
            newest.add(having[0])
    return newest
