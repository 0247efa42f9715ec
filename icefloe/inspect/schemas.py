"""The columns of the metadata tables: names, types, order, ids and nullability are those of the Java library."""

from collections.abc import Callable, Iterator
from itertools import count

from icefloe import errors, manifests as mf, metadata as md, partitioning as pt
from icefloe.inspect.readable_metrics import readable_metrics_field
from icefloe.schema import Schema, reserved, types
from icefloe.versions import Feature, allows

_BOOL, _INT, _LONG, _TEXT, _BYTES = (
    types.BooleanType(),
    types.IntegerType(),
    types.LongType(),
    types.StringType(),
    types.BinaryType(),
)
_MOMENT = types.TimestamptzType()
_CONTENT_OFFSET_ID, _CONTENT_SIZE_ID = 2147483641, 2147483640


def _required(field_id: int, name: str, field_type: types.IcebergType) -> types.NestedField:
    return types.NestedField(field_id, name, field_type, True)


HISTORY = Schema(
    _required(1, "made_current_at", _MOMENT),
    _required(2, "snapshot_id", _LONG),
    types.NestedField(3, "parent_id", _LONG),
    _required(4, "is_current_ancestor", _BOOL),
)
METADATA_LOG_ENTRIES = Schema(
    _required(1, "timestamp", _MOMENT),
    _required(2, "file", _TEXT),
    types.NestedField(3, "latest_snapshot_id", _LONG),
    types.NestedField(4, "latest_schema_id", _INT),
    types.NestedField(5, "latest_sequence_number", _LONG),
)
SNAPSHOTS = Schema(
    _required(1, "committed_at", _MOMENT),
    _required(2, "snapshot_id", _LONG),
    types.NestedField(3, "parent_id", _LONG),
    types.NestedField(4, "operation", _TEXT),
    types.NestedField(5, "manifest_list", _TEXT),
    types.NestedField(6, "summary", types.MapType(7, _TEXT, 8, _TEXT)),
)
REFS = Schema(
    _required(1, "name", _TEXT),
    _required(2, "type", _TEXT),
    _required(3, "snapshot_id", _LONG),
    types.NestedField(4, "max_reference_age_in_ms", _LONG),
    types.NestedField(5, "min_snapshots_to_keep", _INT),
    types.NestedField(6, "max_snapshot_age_in_ms", _LONG),
)


def _manifest_fields(is_all: bool) -> Iterator[types.NestedField]:
    """What is optional in the one table is required in the other; Java has it so."""
    summary = types.StructType(
        _required(10, "contains_null", _BOOL),
        types.NestedField(11, "contains_nan", _BOOL, is_all),
        types.NestedField(12, "lower_bound", _TEXT),
        types.NestedField(13, "upper_bound", _TEXT),
    )
    yield _required(14, "content", _INT)
    yield _required(1, "path", _TEXT)
    yield _required(2, "length", _LONG)
    yield types.NestedField(3, "partition_spec_id", _INT, not is_all)
    yield types.NestedField(4, "added_snapshot_id", _LONG, not is_all)
    for index, name in enumerate(("added", "existing", "deleted")):
        yield types.NestedField(5 + index, f"{name}_data_files_count", _INT, not is_all)
    for index, name in enumerate(("added", "existing", "deleted")):
        yield _required(15 + index, f"{name}_delete_files_count", _INT)
    yield types.NestedField(8, "partition_summaries", types.ListType(9, summary), not is_all)


MANIFESTS = Schema(*_manifest_fields(is_all=False))
ALL_MANIFESTS = Schema(
    *_manifest_fields(is_all=True),
    _required(18, "reference_snapshot_id", _LONG),
    types.NestedField(19, "key_metadata", _BYTES),
)


def table_partition_type(metadata: md.TableMetadata) -> types.StructType:
    """The fields of all specs, as far as the current schema has their columns, ordered by id, with their newest names."""
    schema = metadata.schema()
    specs = [
        pt.PartitionSpec(
            *(field for field in spec.fields if schema.fields_by_id.keys() >= {*field.source_ids}),
            spec_id=spec.spec_id,
        )
        for spec in metadata.partition_specs
    ]
    return pt.unified_partition_type(specs, schema)


def _with_metrics(fields: Iterator[types.NestedField], metadata: md.TableMetadata) -> Schema:
    own = Schema(*fields)
    return Schema(*own.fields, readable_metrics_field(metadata.schema(), count(own.highest_field_id + 1).__next__))


def _file_fields(partition: types.StructType) -> Iterator[types.NestedField]:
    """Empty structs are not supported everywhere, so tables without partitions lack the column."""
    yield mf.column_field("content")
    yield mf.column_field("file_path", required=True)
    yield mf.column_field("file_format", required=True)
    yield types.NestedField(141, "spec_id", _INT)
    if partition.fields:
        yield _required(mf.PARTITION_ID, "partition", partition)
    yield mf.column_field("record_count", required=True)
    yield mf.column_field("file_size_in_bytes", required=True)
    yield from map(mf.metric_field, mf.MAP_METRICS)
    for name in ("key_metadata", "split_offsets", "equality_ids", "sort_order_id"):
        yield mf.column_field(name)
    for name in ("first_row_id", "referenced_data_file", "content_offset", "content_size_in_bytes"):
        yield mf.column_field(name)


def _entry_fields(partition: types.StructType) -> Iterator[types.NestedField]:
    for name in mf.ENTRY_COLUMNS:
        yield mf.column_field(name, required=name == "status")
    yield _required(mf.DATA_FILE_ID, "data_file", types.StructType(*_file_fields(partition)))


def _partition_fields(partition: types.StructType) -> Iterator[types.NestedField]:
    if partition.fields:
        yield _required(1, "partition", partition)
        yield _required(4, "spec_id", _INT)
    yield _required(2, "record_count", _LONG)
    yield _required(3, "file_count", _INT)
    yield _required(11, "total_data_file_size_in_bytes", _LONG)
    yield _required(5, "position_delete_record_count", _LONG)
    yield _required(6, "position_delete_file_count", _INT)
    yield _required(7, "equality_delete_record_count", _LONG)
    yield _required(8, "equality_delete_file_count", _INT)
    yield types.NestedField(9, "last_updated_at", _MOMENT)
    yield types.NestedField(10, "last_updated_snapshot_id", _LONG)


def _position_delete_fields(partition: types.StructType, metadata: md.TableMetadata) -> Iterator[types.NestedField]:
    yield _required(reserved.DELETE_FILE_PATH.field_id, reserved.DELETE_FILE_PATH.name, _TEXT)
    yield _required(reserved.DELETE_FILE_POS.field_id, reserved.DELETE_FILE_POS.name, _LONG)
    row = reserved.deleted_row_column(metadata.schema().as_struct)
    yield types.NestedField(row.field_id, row.name, row.field_type)
    if partition.fields:
        # The columns of the row keep their ids, so the partition fields must have others than these.
        used = {field.field_id for schema in metadata.schemas for field in types.walk_fields(schema.fields)}
        free = (number for number in count(1) if number not in used)
        moved = (types.NestedField(next(free), field.name, field.field_type) for field in partition.fields)
        yield _required(reserved.PARTITION_ID, "partition", types.StructType(*moved))
    yield _required(reserved.SPEC_ID.field_id, "spec_id", _INT)
    yield _required(reserved.FILE.field_id, "delete_file_path", _TEXT)
    if allows(metadata.format_version, Feature.DELETION_VECTORS):
        yield types.NestedField(_CONTENT_OFFSET_ID, "content_offset", _LONG)
        yield types.NestedField(_CONTENT_SIZE_ID, "content_size_in_bytes", _LONG)


def _files(metadata: md.TableMetadata) -> Schema:
    return _with_metrics(_file_fields(table_partition_type(metadata)), metadata)


def _entries(metadata: md.TableMetadata) -> Schema:
    return _with_metrics(_entry_fields(table_partition_type(metadata)), metadata)


_SCHEMAS: dict[str, Callable[[md.TableMetadata], Schema]] = {
    "entries": _entries,
    "files": _files,
    "data_files": _files,
    "delete_files": _files,
    "history": lambda _: HISTORY,
    "metadata_log_entries": lambda _: METADATA_LOG_ENTRIES,
    "snapshots": lambda _: SNAPSHOTS,
    "refs": lambda _: REFS,
    "manifests": lambda _: MANIFESTS,
    "partitions": lambda metadata: Schema(*_partition_fields(table_partition_type(metadata))),
    "all_data_files": _files,
    "all_delete_files": _files,
    "all_files": _files,
    "all_manifests": lambda _: ALL_MANIFESTS,
    "all_entries": _entries,
    "position_deletes": lambda metadata: Schema(*_position_delete_fields(table_partition_type(metadata), metadata)),
}
TABLE_NAMES = tuple(_SCHEMAS)
"""Every metadata table."""


def metadata_table_schema(name: str, metadata: md.TableMetadata) -> Schema:
    """The columns of a metadata table, which may depend on the specs and the current schema of the table."""
    if name not in _SCHEMAS:
        raise errors.InvalidInputError(f"there is no metadata table {name!r}; there are: {', '.join(TABLE_NAMES)}")
    return _SCHEMAS[name](metadata)
