"""How rows become a Parquet file: ids at every level, the table's settings, and the metrics of what was written."""

import math
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from icefloe import errors, properties as props
from icefloe.formats.array_metrics import SIZED_TYPES, MetricsCollector
from icefloe.formats.arrow_types import conform, geo_schema, has_geo, is_plain_geography
from icefloe.formats.field_ids import check_written_ids
from icefloe.formats.file_writing import JUST_WRITTEN, FileWriter, HoldingSink, Sink, WrittenFile
from icefloe.formats.metrics import COUNTS, leaves
from icefloe.formats.parquet.chunks import LEAST_BYTES, ParquetChunksWriter, encoding_threads
from icefloe.formats.parquet.dictionaries import dictionary_columns
from icefloe.formats.parquet.encryption import encryption, keyed_sink
from icefloe.formats.parquet.footer import VARIANT_ANNOTATION, annotate, geography_annotation
from icefloe.formats.parquet.metrics import parquet_metrics, split_offsets
from icefloe.formats.parquet.variants import VariantShredder
from icefloe.schema import Schema, file_schema_from_arrow, schema_to_arrow, types

_CODECS = {
    "zstd": "zstd",
    "gzip": "gzip",
    "snappy": "snappy",
    "lz4": "lz4_raw",
    "lz4_raw": "lz4_raw",
    "brotli": "brotli",
    "none": "none",
    "uncompressed": "none",
}
_BLOOM_FPP_PREFIX = "write.parquet.bloom-filter-fpp.column."
_BLOOM_NDV_PREFIX = "write.parquet.bloom-filter-ndv.column."
_MAX_GROUP_ROWS = 1024 * 1024 * 8
_GROUP_MEMORY_BYTES = 32 << 20
"""Where a table does not say how large its row groups are, one also ends when its rows take this much memory.

So that rows that shrink a lot do not wait by the gigabyte, and are encoded while the next ones are read.
"""


class ParquetFileWriter(FileWriter):
    """Writes one row group at a time.

    Batches may come in any sizes: rows are gathered until a row group of `write.parquet.row-group-size-bytes` is full.
    """

    def _open(self, sink: Sink) -> None:
        arrow_schema = schema_to_arrow(self.schema)
        sink, self._key = keyed_sink(sink)
        self._has_geo = has_geo(self.schema)
        self._arrow_schema = geo_schema(self.schema, arrow_schema) if self._has_geo else arrow_schema
        self._shredder = VariantShredder(self.schema, self._properties)
        self._options = self._writer_options()
        self._group_bytes = props.PARQUET_ROW_GROUP_SIZE_BYTES.of(self._properties)
        is_said = props.PARQUET_ROW_GROUP_SIZE_BYTES.key in self._properties
        self._group_memory = math.inf if is_said else _GROUP_MEMORY_BYTES
        self._sink = HoldingSink(sink)
        self._writer: ParquetChunksWriter | _PlainWriter | None = None
        # What a footer does not tell, see parquet_metrics.
        blind = (types.FloatType, types.DoubleType, *SIZED_TYPES)
        self._seen = MetricsCollector(
            self.schema,
            {
                field.field_id: mode if isinstance(field.field_type, types.GeographyType) else COUNTS
                for field, _ in leaves(self.schema)
                if isinstance(field.field_type, blind) and (mode := self._modes[field.field_id]).counts
            },
        )
        self._waiting: list[pa.Table] = []
        self._waiting_bytes = 0
        self._raw_bytes = 0

    @property
    def bytes_written(self) -> int:
        return self._sink.written + int(self._waiting_bytes * self._shrinking())

    def settle(self) -> None:
        """End the first row group: before it, nothing is known of how rows shrink."""
        if not self._raw_bytes:
            self._flush()

    def write(self, batch: pa.RecordBatch | pa.Table) -> None:
        batch = conform(batch, self.schema)
        if not batch.num_rows:
            return
        self._seen.add(batch)
        self._waiting.append(batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch]))
        self._waiting_bytes += batch.nbytes
        if self._groups_waiting() >= 1:
            self._flush()

    def close(self) -> WrittenFile:
        """Write what waits and the footer, and say what the file holds. The sink is left open."""
        self._flush()
        writer = self._writer or self._begin(None)
        self._sink.hold()
        footer = writer.close()
        check_written_ids(file_schema_from_arrow(footer.schema.to_arrow_schema()), self.schema, JUST_WRITTEN)
        annotations = _annotations(self.schema)
        self._sink.release(lambda tail: annotate(tail, annotations, self._key))
        metrics = parquet_metrics(footer, self.schema, self._modes, self._seen.metrics(), file_schema=self.schema)
        return WrittenFile(metrics, split_offsets(footer), self._sink.written)

    def _flush(self) -> None:
        if not self._waiting:
            return
        table = pa.concat_tables(self._waiting)
        if self._has_geo:
            table = table.cast(self._arrow_schema)
        table = self._shredder.shredded(table)
        writer = self._writer or self._begin(table)
        # The first row group tells how much the data shrinks; before it, rows are cut by their size in memory.
        groups = max(1, round(self._groups_waiting()))
        rows = min(_MAX_GROUP_ROWS, -(-table.num_rows // groups))
        writer.write_table(table, row_group_size=rows)
        self._raw_bytes += self._waiting_bytes
        self._waiting, self._waiting_bytes = [], 0

    def _begin(self, first: pa.Table | None) -> "ParquetChunksWriter | _PlainWriter":
        """Begin the file, now that there are rows to choose its encodings by."""
        dictionaries = [] if first is None else dictionary_columns(first, self._properties)
        options = self._options | {"use_dictionary": dictionaries or False}
        kind = ParquetChunksWriter if self._is_shared(first) else _PlainWriter
        self._writer = kind(self._sink, self._shredder.file_schema(self._arrow_schema), options)
        self._writer.add_key_value_metadata(self._metadata)
        return self._writer

    def _writer_options(self) -> dict[str, Any]:
        codec, name = self._codec(props.PARQUET_COMPRESSION, _CODECS)
        properties = self._properties
        options: dict[str, Any] = {
            "compression": name,
            "store_schema": False,
            "store_decimal_as_integer": True,
            "write_page_index": True,
            "data_page_size": props.PARQUET_PAGE_SIZE_BYTES.of(properties),
            "max_rows_per_page": props.PARQUET_PAGE_ROW_LIMIT.of(properties),
            "dictionary_pagesize_limit": props.PARQUET_DICT_SIZE_BYTES.of(properties),
        }
        if codec in ("zstd", "gzip", "brotli") and props.PARQUET_COMPRESSION_LEVEL.of(properties) is not None:
            options["compression_level"] = props.property_as_int(properties, props.PARQUET_COMPRESSION_LEVEL.key, 0)
        blooms = _bloom_filters(properties, self.schema)
        if self._key is not None:
            # pyarrow cannot encrypt Bloom filters, and in clear they would tell of values: there are none.
            options["encryption_properties"] = encryption(self._key)
        elif blooms:
            options["bloom_filter_options"] = blooms
        return options

    def _is_shared(self, first: pa.Table | None) -> bool:
        """Whether the columns of the file are encoded by several threads."""
        if first is None or first.nbytes < LEAST_BYTES or "bloom_filter_options" in self._options:
            return False
        if self._key is not None:
            # Encrypted parts are bound to their place in one file, and cannot be put together.
            return False
        return first.num_columns > 1 and encoding_threads() > 1

    def _groups_waiting(self) -> float:
        """How many row groups the rows that wait make."""
        waiting = self._waiting_bytes
        return max(waiting * self._shrinking() / self._group_bytes, waiting / self._group_memory)

    def _shrinking(self) -> float:
        """Bytes in the file per byte in memory, as far as this file shows."""
        return self._sink.written / self._raw_bytes if self._raw_bytes else 1.0


class _PlainWriter(pq.ParquetWriter):  # type: ignore[misc]  # pyarrow is not typed
    """The writer of pyarrow, which tells the metadata of the file at its end."""

    def __init__(self, sink: HoldingSink, schema: pa.Schema, options: Mapping[str, Any]) -> None:
        super().__init__(sink, schema, **options)

    def close(self) -> pq.FileMetaData:
        """Write the footer."""
        super().close()
        return self.writer.metadata


def _annotations(schema: Schema) -> dict[int, bytes]:
    """What pyarrow leaves to us, by field id."""
    annotations: dict[int, bytes] = {}
    for field_id, field in schema.fields_by_id.items():
        if isinstance(field.field_type, types.VariantType):
            annotations[field_id] = VARIANT_ANNOTATION
        elif isinstance(field.field_type, types.GeographyType) and is_plain_geography(field.field_type):
            annotations[field_id] = geography_annotation(field.field_type)
    return annotations


def _bloom_filters(properties: Mapping[str, str], schema: Schema) -> dict[str, dict[str, float]]:
    """Settings of the Bloom filters by the path of the column in the file."""
    filters: dict[str, dict[str, float]] = {}
    prefix = props.PARQUET_BLOOM_FILTER_COLUMN_PREFIX
    for key in properties:
        if not key.startswith(prefix) or not props.property_as_bool(properties, key, False):
            continue
        name = key.removeprefix(prefix)
        if schema.find_id(name) is None:
            raise errors.InvalidPropertyError(
                f"property {key!r} names no column; columns are {', '.join(schema.column_names)}"
            )
        filters[name] = {"fpp": props.property_as_float(properties, _BLOOM_FPP_PREFIX + name, 0.01)}
        if _BLOOM_NDV_PREFIX + name in properties:
            filters[name]["ndv"] = props.property_as_int(properties, _BLOOM_NDV_PREFIX + name, 0, at_least=1)
    return filters
