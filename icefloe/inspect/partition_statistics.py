"""The rows of partition statistics files: their columns per format version, and how files of any writer are read.

Spec: Partition Statistics File. The partition is a struct of the fields of all specs, by field id.
"""

import pyarrow as pa
import pyarrow.compute as pc

from icefloe import errors, metadata as md, partitioning as pt
from icefloe.formats.file_formats import reader_of
from icefloe.schema import NestedField, Schema, StructType, schema_to_arrow, types
from icefloe.storage import Storage
from icefloe.versions import Feature, allows

PARTITION_COLUMN = "partition"
SPEC_ID = "spec_id"
DATA_RECORDS, DATA_FILES, DATA_BYTES = "data_record_count", "data_file_count", "total_data_file_size_in_bytes"
POSITION_DELETE_RECORDS, POSITION_DELETE_FILES = "position_delete_record_count", "position_delete_file_count"
VECTORS = "dv_count"
EQUALITY_DELETE_RECORDS, EQUALITY_DELETE_FILES = "equality_delete_record_count", "equality_delete_file_count"
TOTAL_RECORDS = "total_record_count"
UPDATED_AT, UPDATED_BY = "last_updated_at", "last_updated_snapshot_id"

_INT, _LONG = types.IntegerType(), types.LongType()
_ALWAYS_REQUIRED: tuple[tuple[int, str, types.PrimitiveType], ...] = (
    (2, SPEC_ID, _INT),
    (3, DATA_RECORDS, _LONG),
    (4, DATA_FILES, _INT),
    (5, DATA_BYTES, _LONG),
)
_DELETES: tuple[tuple[int, str, types.PrimitiveType], ...] = (
    (6, POSITION_DELETE_RECORDS, _LONG),
    (7, POSITION_DELETE_FILES, _INT),
    (8, EQUALITY_DELETE_RECORDS, _LONG),
    (9, EQUALITY_DELETE_FILES, _INT),
)
_OPTIONAL: tuple[tuple[int, str, types.PrimitiveType], ...] = (
    (10, TOTAL_RECORDS, _LONG),
    (11, UPDATED_AT, _LONG),
    (12, UPDATED_BY, _LONG),
)
_VECTOR_COUNT = NestedField(13, VECTORS, _INT, True, initial_default=0, write_default=0)
COUNTS = (
    DATA_RECORDS,
    DATA_FILES,
    DATA_BYTES,
    POSITION_DELETE_RECORDS,
    POSITION_DELETE_FILES,
    VECTORS,
    EQUALITY_DELETE_RECORDS,
    EQUALITY_DELETE_FILES,
)
"""The columns that are sums over files."""


def statistics_partition_type(metadata: md.TableMetadata) -> StructType:
    """The fields of all specs, those of dropped columns too; a field whose type nobody knows any more is left out."""
    unified = pt.unified_partition_type(metadata.partition_specs, metadata.schema(), *metadata.schemas_newest_first)
    return StructType(*(field for field in unified.fields if not isinstance(field.field_type, types.UnknownType)))


def partition_statistics_schema(metadata: md.TableMetadata, partition: StructType) -> Schema:
    """The columns of a file, as tables of this version write it."""
    has_vectors = allows(metadata.format_version, Feature.DELETION_VECTORS)
    return Schema(
        NestedField(1, PARTITION_COLUMN, partition, True),
        *(NestedField(*column, True) for column in _ALWAYS_REQUIRED),
        *(NestedField(*column, has_vectors) for column in _DELETES),
        *(NestedField(*column) for column in _OPTIONAL),
        *((_VECTOR_COUNT,) if has_vectors else ()),
    )


def read_partition_statistics(
    metadata: md.TableMetadata, file: md.PartitionStatisticsFile, storage: Storage
) -> tuple[pa.Table, Schema]:
    """The rows of a file of any version in today's partition type, counts without nulls; and the file's own schema."""
    location = metadata.resolve(file.statistics_path)
    wanted = readable_schema(statistics_partition_type(metadata))
    with storage.open_input(location, size=file.file_size_in_bytes) as source:
        reader = reader_of(_format_of(location))(source, location, wanted)
        table = pa.Table.from_batches(list(reader.batches()), schema_to_arrow(wanted))
    table = table.cast(schema_to_arrow(wanted, ids=False))
    for name in COUNTS:
        position = table.schema.get_field_index(name)
        table = table.set_column(position, table.schema.field(name), pc.fill_null(table.column(name), 0))
    return table, reader.file_schema


def partition_statistics_table(metadata: md.TableMetadata, snapshot: md.Snapshot | None, storage: Storage) -> pa.Table:
    """The rows of the file of a snapshot; none if it has no file."""
    for file in metadata.partition_statistics:
        if snapshot is not None and file.snapshot_id == snapshot.snapshot_id:
            rows, _ = read_partition_statistics(metadata, file, storage)
            return rows
    return schema_to_arrow(readable_schema(statistics_partition_type(metadata)), ids=False).empty_table()


def readable_schema(partition: StructType) -> Schema:
    """The columns of all versions; what some version may leave out is optional."""
    return Schema(
        NestedField(1, PARTITION_COLUMN, partition, True),
        *(NestedField(*column, True) for column in _ALWAYS_REQUIRED),
        *(NestedField(*column) for column in _DELETES),
        *(NestedField(*column) for column in _OPTIONAL),
        NestedField(_VECTOR_COUNT.field_id, VECTORS, _INT),
    )


def _format_of(location: str) -> str:
    _, dot, extension = location.rpartition(".")
    if not dot or extension.lower() not in ("parquet", "avro", "orc"):
        raise errors.CorruptFileError(location, "its name does not say the format of a partition statistics file")
    return extension
