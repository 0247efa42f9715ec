"""Statistics of columns as rows: one for each blob that a statistics file has, from the table's metadata alone."""

from collections.abc import Iterator

import pyarrow as pa

from icefloe.inspect.request import Row
from icefloe.metadata import StatisticsFile, TableMetadata

_SCHEMA = pa.schema(
    [
        pa.field("snapshot_id", pa.int64(), nullable=False),
        pa.field("statistics_path", pa.string(), nullable=False),
        pa.field("file_size_in_bytes", pa.int64(), nullable=False),
        pa.field("blob_type", pa.string(), nullable=False),
        pa.field("blob_snapshot_id", pa.int64(), nullable=False),
        pa.field("blob_sequence_number", pa.int64(), nullable=False),
        pa.field("field_ids", pa.list_(pa.int32()), nullable=False),
        pa.field("columns", pa.list_(pa.string()), nullable=False),
        pa.field("distinct_count", pa.int64()),
        pa.field("properties", pa.map_(pa.string(), pa.string()), nullable=False),
    ]
)


def statistics_table(metadata: TableMetadata) -> pa.Table:
    """A row for each blob; columns have the names that they have now, or had last."""
    rows = [row for file in metadata.statistics for row in _rows(metadata, file)]
    return pa.Table.from_pylist(rows, _SCHEMA)


def _rows(metadata: TableMetadata, file: StatisticsFile) -> Iterator[Row]:
    for blob in file.blob_metadata:
        yield {
            "snapshot_id": file.snapshot_id,
            "statistics_path": metadata.resolve(file.statistics_path),
            "file_size_in_bytes": file.file_size_in_bytes,
            "blob_type": blob.blob_type,
            "blob_snapshot_id": blob.snapshot_id,
            "blob_sequence_number": blob.sequence_number,
            "field_ids": blob.fields,
            "columns": [_name(metadata, field_id) for field_id in blob.fields],
            "distinct_count": distinct_count(blob.properties.get("ndv")),
            "properties": list(blob.properties.items()),
        }


def _name(metadata: TableMetadata, field_id: int) -> str | None:
    schemas = (metadata.schema(), *metadata.schemas_newest_first)
    names = (schema.names_by_id.get(field_id) for schema in schemas)
    return next((name for name in names if name is not None), None)


def distinct_count(text: str | None) -> int | None:
    """What the property `ndv` of a blob says; None if it is not there, or is no number."""
    return int(text) if text is not None and text.isascii() and text.isdigit() else None
