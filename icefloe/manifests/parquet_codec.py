"""Manifests in Parquet, as the Java library writes them for v4 tables: the same columns by field id."""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from icefloe import errors, metadata as md
from icefloe.avro import variant_parts
from icefloe.encryption import FileKey
from icefloe.formats.parquet.encryption import decryption
from icefloe.manifests import entry_codec as ec
from icefloe.manifests.arrow_values import partition_columns
from icefloe.manifests.columns import ManifestColumns, decoded_columns
from icefloe.manifests.content_stats_codec import metrics_of_members
from icefloe.manifests.metrics import MetricColumns, map_type
from icefloe.manifests.values import Metric
from icefloe.schema import IcebergType, StructType, schema_from_arrow

_FIELD_ID = b"PARQUET:field_id"


def decode_parquet_manifest(
    data: bytes | memoryview,
    location: str,
    wanted: ec.Wanted,
    partition_type: StructType | None,
    spec_id: int,
    limits: md.Limits = md.DEFAULT_LIMITS,
    key: FileKey | None = None,
) -> ManifestColumns:
    """The entries of a Parquet manifest as the file holds them."""
    if key is not None and key.file_length not in (None, len(memoryview(data))):
        raise errors.CorruptFileError(location, f"it is encrypted and has not the {key.file_length} bytes of its key")
    try:
        options = {} if key is None else {"decryption_properties": decryption(key)}
        file = pq.ParquetFile(pa.BufferReader(pa.py_buffer(data)), **options)
        check_room(file.metadata, len(memoryview(data)), location, limits)
        table = file.read(columns=_paths(file.schema_arrow, wanted), use_threads=False).combine_chunks()
        return _assemble(table, wanted, partition_type, spec_id, location)
    except (pa.ArrowException, OSError, MemoryError, ArithmeticError, LookupError, TypeError, ValueError) as error:
        # Errors of ours about values are ValueErrors, too.
        raise errors.CorruptFileError(location, f"it cannot be read as a Parquet manifest: {error}") from error


def check_room(footer: pq.FileMetaData, length: int, location: str, limits: md.Limits) -> None:
    """Fail if what the footer announces is more than the file may take in memory."""
    groups = [footer.row_group(index) for index in range(footer.num_row_groups)]
    rows = sum(max(0, group.num_rows) for group in groups)
    if max(rows * 8 * footer.num_columns, sum(group.total_byte_size for group in groups)) > limits.allowed(length):
        raise errors.CorruptFileError(location, limits.refusal(length))


def field_id_of(field: pa.Field) -> int | None:
    """The field id of a column."""
    text = (field.metadata or {}).get(_FIELD_ID, b"")
    return int(text) if text.isdigit() else None


def _paths(schema: pa.Schema, wanted: ec.Wanted) -> list[str]:
    """The columns to read: whole top-level fields, and within the file only what is asked for."""
    inner = {ec.FILE_COLUMNS[name] for name in (wanted.columns | ec.ALWAYS) & ec.FILE_COLUMNS.keys()}
    if wanted.partition:
        inner.add(ec.PARTITION_ID)
    if wanted.metrics:
        inner |= {ec.METRIC_IDS[metric] for metric in wanted.metrics & ec.METRIC_IDS.keys()} | {ec.CONTENT_STATS_ID}
    paths = [field.name for field in schema if field_id_of(field) in ec.ENTRY_COLUMNS.values()]
    for field in schema:
        if field_id_of(field) == ec.DATA_FILE_ID and pa.types.is_struct(field.type):
            paths += [f"{field.name}.{child.name}" for child in field.type if field_id_of(child) in inner]
    return paths


def children_of(column: pa.StructArray) -> Iterator[tuple[int, pa.Field, pa.Array]]:
    """Fields of a struct column with their ids; null where the struct is."""
    for index, field in enumerate(column.type):
        field_id = field_id_of(field)
        if field_id is not None:
            yield field_id, field, pc.struct_field(column, [index])


def _assemble(
    table: pa.Table, wanted: ec.Wanted, partition_type: StructType | None, spec_id: int, location: str
) -> ManifestColumns:
    by_id = {
        field_id_of(field): whole_column(column) for field, column in zip(table.schema, table.columns, strict=True)
    }
    names = {field_id: name for name, field_id in (ec.ENTRY_COLUMNS | ec.FILE_COLUMNS).items()}
    data_file = by_id.pop(ec.DATA_FILE_ID, None)
    if data_file is None:
        raise errors.InvalidInputError("it has no files and no status")
    columns = {names[field_id]: column for field_id, column in by_id.items() if field_id in names}
    partition: dict[int, tuple[pa.Array, IcebergType]] = {}
    maps, spread = {}, {}
    metric_ids = {field_id: metric for metric, field_id in ec.METRIC_IDS.items()}
    for field_id, _, column in children_of(data_file):
        if field_id in names:
            columns[names[field_id]] = column
        elif field_id == ec.PARTITION_ID:
            partition = {child: (values, type_of(field)) for child, field, values in children_of(column)}
        elif field_id in metric_ids:
            maps[metric_ids[field_id]] = column.cast(map_type(metric_ids[field_id]))
        elif field_id == ec.CONTENT_STATS_ID:
            spread = stats_of(column, wanted)
    columns = decoded_columns(columns, len(table), location)
    header = {key.decode(): value.decode() for key, value in (table.schema.metadata or {}).items()}
    struct, values = partition_columns(partition, partition_type, header)
    metrics = MetricColumns(len(table), maps, spread)
    return ManifestColumns(len(table), columns, struct, values, metrics, spec_id, location, header)


def whole_column(column: pa.ChunkedArray) -> pa.Array:
    """The column as one array."""
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, column.type)


def type_of(field: pa.Field) -> IcebergType:
    """The type of a column."""
    return schema_from_arrow(pa.schema([field])).fields[0].field_type


def stats_of(column: pa.StructArray, wanted: ec.Wanted) -> dict[tuple[Metric, int], pa.Array]:
    """The wanted metrics in a column of content stats."""
    only = None if wanted.field_ids is None else {ec.stats_base_id(field_id) for field_id in wanted.field_ids}
    members: dict[int, pa.Array] = {}
    types: dict[int, IcebergType | None] = {}
    for base, _, struct in children_of(column):
        if only is not None and base not in only:
            continue
        for member, field, values in children_of(struct):
            if pa.types.is_struct(field.type) and {"metadata", "value"} == {part.name for part in field.type}:
                parts = (pc.struct_field(values, name) for name in ("metadata", "value"))
                members.update(zip(variant_parts(member), parts, strict=True))
            elif pa.types.is_struct(field.type):
                members.update({axis: numbers for axis, _, numbers in children_of(values)})
            else:
                members[member], types[member] = values, type_of(field)
    return metrics_of_members(members, types)
