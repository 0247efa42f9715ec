"""The metadata of a table after updates: one pure function for a single update, one for a whole commit.

`apply_all` is a whole commit: ids that mean "the one just added", the rules that hold at the end, the time, and the metadata log. Its input
is never changed, and is returned itself if the updates change nothing.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Never

from icefloe import errors, properties as props
from icefloe.metadata import apply_snapshots as snapshots, apply_structure as structure, updates as up
from icefloe.metadata.creation import checked_location
from icefloe.metadata.refs import MAIN_BRANCH
from icefloe.metadata.requirements import TableRequirement
from icefloe.metadata.snapshot import MetadataLogEntry
from icefloe.metadata.table import TableMetadata
from icefloe.metadata.unknown_codec import names_of
from icefloe.partitioning import NO_PARTITION_FIELD_ID, PartitionField, PartitionSpec, check_order, transforms as tr
from icefloe.schema import Schema
from icefloe.versions import DEFAULT_VERSION, Feature, allows, check_version

_NOT_SET = -1

_LoneUpdate = (
    up.AssignUUIDUpdate
    | up.UpgradeFormatVersionUpdate
    | up.SetLocationUpdate
    | up.SetPropertiesUpdate
    | up.RemovePropertiesUpdate
    | up.RemoveSchemasUpdate
    | up.RemovePartitionSpecsUpdate
    | up.RemoveSnapshotsUpdate
    | up.RemoveSnapshotRefUpdate
    | up.SetStatisticsUpdate
    | up.RemoveStatisticsUpdate
    | up.SetPartitionStatisticsUpdate
    | up.RemovePartitionStatisticsUpdate
    | up.AddEncryptionKeyUpdate
    | up.RemoveEncryptionKeyUpdate
)


@dataclass(frozen=True, slots=True)
class Applied:
    """Metadata in the middle of a commit, with what the commit added so far."""

    metadata: TableMetadata
    last_schema_id: int | None = None
    last_spec_id: int | None = None
    last_order_id: int | None = None
    added_snapshot_ids: frozenset[int] = frozenset()


def apply(metadata: TableMetadata, update: up.TableUpdate, *, timestamp_ms: int) -> TableMetadata:
    """The metadata after one update; the rules for the end of a commit are left to `finish`."""
    return step(Applied(metadata), update, timestamp_ms).metadata


def apply_all(
    base: TableMetadata | None,
    updates: Sequence[up.TableUpdate],
    now_ms: int,
    base_location: str | None = None,
    requirements: Iterable[TableRequirement] = (),
) -> TableMetadata:
    """The metadata after all updates of a commit; without a base they create the table.

    The file of the base becomes the newest entry of the metadata log, which keeps only the newest ones. CommitFailed when a
    requirement does not hold in the base.
    """
    for requirement in requirements:
        requirement.check(base)
    if base is not None:
        base.check_changeable()
    applied = Applied(_nothing(updates) if base is None else base)
    for update in updates:
        applied = step(applied, update, now_ms)
    if applied.metadata is base:
        return base
    finished = finish(applied, now_ms)
    if finished.is_for_java:
        # What was written before is absolute from now on, too; what is in the files stays as it is.
        finished = structure.with_paths(finished, finished.resolve).evolve(location_of_catalog=False)
    if base is None or base_location is None:
        return finished
    log = (*finished.metadata_log, MetadataLogEntry(finished.stored_path(base_location), base.last_updated_ms))
    limit = props.METADATA_PREVIOUS_VERSIONS_MAX.of(finished.properties)
    return finished.evolve(metadata_log=log[-max(1, limit) :])


def finish(applied: Applied, now_ms: int) -> TableMetadata:
    """The metadata at the end of a commit: checked as a whole, with its time."""
    metadata = applied.metadata
    _check_complete(metadata)
    _check_default_spec(metadata.spec(), metadata.schema())
    check_order(metadata.sort_order(), metadata.schema())
    # A snapshot that was current only within the commit was never current for any reader.
    passing = applied.added_snapshot_ids - {metadata.current_snapshot_id}
    log = metadata.snapshot_log
    if passing and any(entry.snapshot_id in passing for entry in log):
        log = tuple(entry for entry in log if entry.snapshot_id not in passing)
    before_ms = max(metadata.last_updated_ms, log[-1].timestamp_ms if log else 0)
    return metadata.evolve(snapshot_log=log, last_updated_ms=snapshots.not_long_before(before_ms, now_ms))


def _check_nothing_lost(metadata: TableMetadata, kind: str, part_id: int) -> None:
    """Fail if the part that a new one takes the place of has fields that are not known here: the new one would lack them."""
    if names := names_of(metadata.unknown_parts.get((kind, part_id))):
        raise errors.StateError(
            f"the current {'schema' if kind == 'schemas' else 'partition spec'} has {', '.join(sorted(names))}, of a newer v4 text "
            "than is known here, which a changed one would lose; change it with an engine that knows them"
        )


def step(applied: Applied, update: up.TableUpdate, now_ms: int) -> Applied:
    """The state after one more update of a commit."""
    metadata = applied.metadata
    match update:
        case up.AddSchemaUpdate(schema):
            changed, schema_id = structure.add_schema(metadata, schema)
            if len(changed.schemas) > len(metadata.schemas):
                _check_nothing_lost(metadata, "schemas", metadata.current_schema_id)
            return replace(applied, metadata=changed, last_schema_id=schema_id)
        case up.AddPartitionSpecUpdate(spec):
            changed, spec_id = structure.add_spec(metadata, spec)
            if len(changed.partition_specs) > len(metadata.partition_specs):
                _check_nothing_lost(metadata, "partition-specs", metadata.default_spec_id)
            return replace(applied, metadata=changed, last_spec_id=spec_id)
        case up.AddSortOrderUpdate(order):
            changed, order_id = structure.add_sort_order(metadata, order)
            return replace(applied, metadata=changed, last_order_id=order_id)
        case up.SetCurrentSchemaUpdate(requested_id):
            schema_id = _added(requested_id, applied.last_schema_id, "schema")
            return replace(applied, metadata=structure.set_current_schema(metadata, schema_id))
        case up.SetDefaultSpecUpdate(requested_id):
            spec_id = _added(requested_id, applied.last_spec_id, "partition spec")
            return replace(applied, metadata=structure.set_default_spec(metadata, spec_id))
        case up.SetDefaultSortOrderUpdate(requested_id):
            order_id = _added(requested_id, applied.last_order_id, "sort order")
            return replace(applied, metadata=structure.set_default_sort_order(metadata, order_id))
        case up.AddSnapshotUpdate(snapshot):
            added = applied.added_snapshot_ids | {snapshot.snapshot_id}
            return replace(applied, metadata=snapshots.add_snapshot(metadata, snapshot), added_snapshot_ids=added)
        case up.SetSnapshotRefUpdate(name, ref):
            changed_ms = _changed_ms(applied, ref.snapshot_id, now_ms)
            return replace(applied, metadata=snapshots.set_ref(metadata, name, ref, changed_ms))
        case _:
            return replace(applied, metadata=_alone(metadata, update))


def _alone(metadata: TableMetadata, update: _LoneUpdate) -> TableMetadata:
    """The metadata after an update that does not depend on the rest of the commit."""
    match update:
        case up.AssignUUIDUpdate(uuid):
            return _assign_uuid(metadata, uuid)
        case up.UpgradeFormatVersionUpdate(version):
            return structure.upgrade(metadata, version)
        case up.SetLocationUpdate(location):
            stored = checked_location(location, metadata.format_version)
            return metadata.changed(location=stored, location_of_catalog=False)
        case up.SetPropertiesUpdate(updates):
            props.refuse_reserved(updates)
            return _with_properties(metadata, {**metadata.properties, **updates})
        case up.RemovePropertiesUpdate(removals):
            remaining = {key: value for key, value in metadata.properties.items() if key not in removals}
            return _with_properties(metadata, remaining)
        case up.RemoveSchemasUpdate(schema_ids):
            return structure.remove_schemas(metadata, schema_ids)
        case up.RemovePartitionSpecsUpdate(spec_ids):
            return structure.remove_specs(metadata, spec_ids)
        case up.RemoveSnapshotsUpdate(snapshot_ids):
            return snapshots.remove_snapshots(metadata, snapshot_ids)
        case up.RemoveSnapshotRefUpdate(name):
            return snapshots.remove_ref(metadata, name)
        case up.SetStatisticsUpdate(statistics):
            return snapshots.set_statistics(metadata, statistics)
        case up.RemoveStatisticsUpdate(snapshot_id):
            return snapshots.remove_statistics(metadata, snapshot_id)
        case up.SetPartitionStatisticsUpdate(partition_statistics):
            return snapshots.set_partition_statistics(metadata, partition_statistics)
        case up.RemovePartitionStatisticsUpdate(snapshot_id):
            return snapshots.remove_partition_statistics(metadata, snapshot_id)
        case up.AddEncryptionKeyUpdate(key):
            return snapshots.add_encryption_key(metadata, key)
        case up.RemoveEncryptionKeyUpdate(key_id):
            return snapshots.remove_encryption_key(metadata, key_id)
        case _:
            raise _foreign(update)


def _with_properties(metadata: TableMetadata, properties: dict[str, str]) -> TableMetadata:
    is_new = not metadata.snapshots
    props.check_encryption_stays(metadata.properties, properties, is_new=is_new)
    changed = metadata.changed(properties=properties)
    if changed is not metadata:
        props.check_encryption(properties, metadata.format_version)
    return changed


def _foreign(update: Never) -> errors.InvalidInputError:
    """For view updates from outside; the type checker proves that no table update ends here."""
    return errors.InvalidInputError(f"{type(update).__name__} is not a change of a table")


def _nothing(updates: Iterable[up.TableUpdate]) -> TableMetadata:
    """An empty table; its version is the one that the commit sets, so that v1 can be created too."""
    versions = [update.format_version for update in updates if isinstance(update, up.UpgradeFormatVersionUpdate)]
    return TableMetadata(
        format_version=check_version(versions[0], "format version") if versions else DEFAULT_VERSION,
        table_uuid=None,
        location=None,
        last_updated_ms=0,
        last_column_id=0,
        schemas=(),
        current_schema_id=_NOT_SET,
        partition_specs=(),
        default_spec_id=_NOT_SET,
        last_partition_id=NO_PARTITION_FIELD_ID,
        sort_orders=(),
        default_sort_order_id=_NOT_SET,
    )


def _added(requested_id: int, last: int | None, what: str) -> int:
    if requested_id != up.LAST_ADDED:
        return requested_id
    if last is None:
        raise errors.InvalidInputError(f"the {what} added last is requested, but this commit adds no {what}")
    return last


def _changed_ms(applied: Applied, snapshot_id: int, now_ms: int) -> int:
    """When the current snapshot changes: at the time of a new snapshot, or now for a rollback."""
    if snapshot_id not in applied.added_snapshot_ids:
        return now_ms
    return applied.metadata.snapshot(snapshot_id).timestamp_ms


def _assign_uuid(metadata: TableMetadata, uuid: str) -> TableMetadata:
    if metadata.table_uuid is None:
        return metadata.evolve(table_uuid=uuid)
    if metadata.table_uuid.lower() != uuid.lower():
        raise errors.IncompatibleChangeError(
            f"the table's UUID is {metadata.table_uuid}; it cannot become {uuid}, since it never changes"
        )
    return metadata


def _check_complete(metadata: TableMetadata) -> None:
    version = metadata.format_version
    missing = [
        what
        for what, is_present in (
            ("a UUID", metadata.table_uuid is not None or not allows(version, Feature.TABLE_UUID_REQUIRED)),
            ("a location", metadata.location is not None or allows(version, Feature.OPTIONAL_LOCATION)),
            ("a current schema", metadata.current_schema_id in metadata.schemas_by_id),
            ("a default partition spec", metadata.default_spec_id in metadata.specs_by_id),
            ("a default sort order", metadata.default_sort_order_id in metadata.sort_orders_by_id),
        )
        if not is_present
    ]
    if missing:
        raise errors.InvalidMetadataError(
            f"after the updates the v{version} table has no {missing[0].split(' ', 1)[1]}"
        )
    if (metadata.refs.get(MAIN_BRANCH) is None) is not (metadata.current_snapshot_id is None):
        raise errors.InvalidMetadataError(
            f"the current snapshot is {metadata.current_snapshot_id}, but {MAIN_BRANCH!r} is {metadata.refs.get(MAIN_BRANCH)}"
        )


def _check_default_spec(spec: PartitionSpec, schema: Schema) -> None:
    """The default spec must still fit the current schema after columns changed."""
    for field in spec.fields:
        if not isinstance(field.transform, tr.VoidTransform):
            _check_partition_source(field, schema)


def _check_partition_source(field: PartitionField, schema: Schema) -> None:
    for source_id in field.source_ids:
        source = schema.fields_by_id.get(source_id)
        if source is None:
            raise errors.IncompatibleChangeError(
                f"partition field {field.name!r} needs column {source_id}, which the current schema lacks;"
                " change the partition spec first"
            )
        if not field.transform.can_transform(source.field_type):
            raise errors.IncompatibleChangeError(
                f"partition field {field.name!r} is {field.transform} of column {source.name!r},"
                f" which does not support the current type of the column, {source.field_type}"
            )
