"""How schemas, partition specs, sort orders and the format version of a table change; every function returns new metadata."""

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial

from icefloe import errors, partitioning as pt
from icefloe.metadata.creation import INITIAL_SCHEMA_ID, INITIAL_SPEC_ID, checked_location
from icefloe.metadata.locations import qualify
from icefloe.metadata.snapshot import Snapshot
from icefloe.metadata.table import OfSnapshot, TableMetadata
from icefloe.partitioning import transforms as tr
from icefloe.schema import Schema, check_schema_for_version
from icefloe.versions import Feature, allows, check_version


def upgrade(metadata: TableMetadata, version: int) -> TableMetadata:
    """The table in a newer format version (spec: Appendix E)."""
    check_version(version, "format version")
    if version < metadata.format_version:
        raise errors.UnsupportedVersionError(
            f"a v{metadata.format_version} table cannot go back to v{version}; format versions only go up"
        )
    if version == metadata.format_version:
        return metadata
    becomes_relative = allows(version, Feature.RELATIVE_PATHS) and not allows(
        metadata.format_version, Feature.RELATIVE_PATHS
    )
    upgraded = metadata.evolve(format_version=version)
    return _with_absolute_paths(upgraded) if becomes_relative else upgraded


def add_schema(metadata: TableMetadata, schema: Schema) -> tuple[TableMetadata, int]:
    """The table with the schema, and the schema's id there; equal columns are not added twice."""
    check_schema_for_version(schema, metadata.format_version)
    last_column_id = max(metadata.last_column_id, schema.highest_field_id)
    for known in metadata.schemas:
        if known.same_columns(schema):
            return metadata.changed(last_column_id=last_column_id), known.schema_id
    new_id = max((known.schema_id for known in metadata.schemas), default=INITIAL_SCHEMA_ID - 1) + 1
    added = (*metadata.schemas, schema.with_id(new_id))
    return metadata.evolve(schemas=added, last_column_id=last_column_id), new_id


def set_current_schema(metadata: TableMetadata, schema_id: int) -> TableMetadata:
    """The table with another current schema."""
    metadata.schema(schema_id)  # it must exist
    return metadata.changed(current_schema_id=schema_id)


def remove_schemas(metadata: TableMetadata, schema_ids: Collection[int]) -> TableMetadata:
    """The table without these schemas."""
    if metadata.current_schema_id in schema_ids:
        raise errors.IncompatibleChangeError(
            f"schema {metadata.current_schema_id} is the current one and cannot be removed"
        )
    remaining = tuple(schema for schema in metadata.schemas if schema.schema_id not in schema_ids)
    return metadata.changed(schemas=remaining)


def add_spec(metadata: TableMetadata, spec: pt.PartitionSpec) -> tuple[TableMetadata, int]:
    """The table with the partition spec, and the spec's id there; equal fields are not added twice."""
    for known in metadata.partition_specs:
        if known.equivalent(spec):
            highest = max(metadata.last_partition_id, known.last_field_id)
            return metadata.changed(last_partition_id=highest), known.spec_id
    pt.check_spec(spec, metadata.schema())
    _check_field_ids(metadata, spec)
    new_id = max((known.spec_id for known in metadata.partition_specs), default=INITIAL_SPEC_ID - 1) + 1
    added = (*metadata.partition_specs, spec.with_id(new_id))
    last_partition_id = max(metadata.last_partition_id, spec.last_field_id)
    return metadata.evolve(partition_specs=added, last_partition_id=last_partition_id), new_id


def set_default_spec(metadata: TableMetadata, spec_id: int) -> TableMetadata:
    """The table with another default partition spec."""
    metadata.spec(spec_id)  # it must exist
    return metadata.changed(default_spec_id=spec_id)


def remove_specs(metadata: TableMetadata, spec_ids: Collection[int]) -> TableMetadata:
    """The table without these partition specs."""
    if metadata.default_spec_id in spec_ids:
        raise errors.IncompatibleChangeError(
            f"partition spec {metadata.default_spec_id} is the default one and cannot be removed"
        )
    remaining = tuple(spec for spec in metadata.partition_specs if spec.spec_id not in spec_ids)
    return metadata.changed(partition_specs=remaining)


def add_sort_order(metadata: TableMetadata, order: pt.SortOrder) -> tuple[TableMetadata, int]:
    """The table with the sort order, and the order's id there; equal fields are not added twice."""
    for known in metadata.sort_orders:
        if known.same_order(order):
            return metadata, known.order_id
    pt.check_order(order, metadata.schema())
    highest = max((known.order_id for known in metadata.sort_orders), default=pt.FIRST_ORDER_ID - 1)
    new_id = pt.UNSORTED.order_id if order.is_unsorted else max(highest + 1, pt.FIRST_ORDER_ID)
    return metadata.evolve(sort_orders=(*metadata.sort_orders, order.with_id(new_id))), new_id


def set_default_sort_order(metadata: TableMetadata, order_id: int) -> TableMetadata:
    """The table with another default sort order."""
    metadata.sort_order(order_id)  # it must exist
    return metadata.changed(default_sort_order_id=order_id)


def _check_field_ids(metadata: TableMetadata, spec: pt.PartitionSpec) -> None:
    ids = [field.field_id for field in spec.fields]
    if not allows(metadata.format_version, Feature.PARTITION_FIELD_IDS):
        # v1 readers number the fields of a spec themselves, so the ids must be what they will come to.
        expected = list(range(pt.FIRST_PARTITION_FIELD_ID, pt.FIRST_PARTITION_FIELD_ID + len(ids)))
        if ids != expected:
            raise errors.InvalidPartitionSpecError(
                f"the partition field ids of a v1 table are {ids}; they must be {expected}"
            )
        return
    known: dict[int, list[pt.PartitionField]] = {}
    for other in metadata.partition_specs:
        for field in other.fields:
            known.setdefault(field.field_id, []).append(field)
    for field in spec.fields:
        namesakes = known.get(field.field_id, ())
        if namesakes and not any(_is_same_field(field, other) for other in namesakes):
            raise errors.InvalidPartitionSpecError(
                f"partition field id {field.field_id} of {field.name!r} belongs to {namesakes[0]}; a new field needs a new id,"
                f" above {metadata.last_partition_id}"
            )


def _is_same_field(one: pt.PartitionField, other: pt.PartitionField) -> bool:
    """Whether the fields may share an id: the same values, or one of them is the void replacement of the other."""
    void = isinstance(one.transform, tr.VoidTransform) or isinstance(other.transform, tr.VoidTransform)
    return one.same_values(other) or (void and one.source_ids == other.source_ids)


def _with_absolute_paths(metadata: TableMetadata) -> TableMetadata:
    """Locations without a scheme would become relative with the upgrade; they get the table location's scheme."""
    location = checked_location(metadata.location, metadata.format_version)
    if location is None:
        return metadata
    return with_paths(metadata, partial(qualify, location)).evolve(location=location)


def with_paths(metadata: TableMetadata, change: Callable[[str], str]) -> TableMetadata:
    """The table with every path in its metadata changed; files and what is in them are not touched."""

    def snapshot_with(snapshot: Snapshot) -> Snapshot:
        if snapshot.manifest_list is not None:
            path = change(snapshot.manifest_list)
            return snapshot if path == snapshot.manifest_list else replace(snapshot, manifest_list=path)
        return replace(snapshot, manifests=tuple(map(change, snapshot.manifests or ())))

    def file_with(file: OfSnapshot) -> OfSnapshot:
        return replace(file, statistics_path=change(file.statistics_path))

    return metadata.evolve(
        snapshots=tuple(map(snapshot_with, metadata.snapshots)),
        statistics=tuple([file_with(file) for file in metadata.statistics]),
        partition_statistics=tuple([file_with(file) for file in metadata.partition_statistics]),
        metadata_log=tuple(
            replace(entry, metadata_file=change(entry.metadata_file)) for entry in metadata.metadata_log
        ),
    )
