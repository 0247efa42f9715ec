"""How Spark's own Parquet writer makes data files of a table: where, with which settings, and what its footers say.

The files of a write go to a folder of its own. Spark's committer shows them there only when the whole job is done, so a failed
or repeated task leaves nothing; if the job fails, the folder is removed. Settings are made in a clone of the user's session,
which shares its temporary views and is thrown away.
"""

from collections.abc import Iterator
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from icefloe import properties as props
from icefloe.data import WriteRequest, data_file_of, data_folder
from icefloe.formats.arrow_types import stored_schema
from icefloe.formats.field_ids import check_written_ids
from icefloe.formats.metrics import metrics_modes
from icefloe.formats.parquet.metrics import parquet_metrics, split_offsets
from icefloe.formats.written_file import WrittenFile
from icefloe.manifests import DataFile
from icefloe.metadata import TableMetadata
from icefloe.parallel import in_order
from icefloe.schema import file_schema_from_arrow, types
from icefloe.spark.distribution import Distribution, distribute, distribution_of
from icefloe.spark.file_sizes import rows_per_file
from icefloe.spark.gateway import Gateway
from icefloe.spark.id_format import write_parquet
from icefloe.spark.partition_columns import PartitionColumns, partition_columns
from icefloe.spark.shaping import shape_frame
from icefloe.spark.types import file_schema, mapping_of
from icefloe.spark.write_folder import keep_only, new_folder, removed_on_error
from icefloe.storage import FileInfo, names_below, parse_location

_TYPES = (
    types.BooleanType,
    types.IntegerType,
    types.LongType,
    types.FloatType,
    types.DoubleType,
    types.DecimalType,
    types.DateType,
    types.TimestampType,
    types.TimestamptzType,
    types.StringType,
    types.BinaryType,
    types.VariantType,
    types.StructType,
)
_CODECS = {
    "zstd": "zstd",
    "gzip": "gzip",
    "snappy": "snappy",
    "lz4": "lz4_raw",
    "lz4_raw": "lz4_raw",
    "none": "none",
    "uncompressed": "none",
}
_READERS = 8
_ADAPTS = "spark.sql.adaptive.enabled"
_PARTS = "spark.sql.shuffle.partitions"
_FEWEST_PARTS = "spark.sql.adaptive.coalescePartitions.minPartitionNum"
_HASHED_A_CORE = 16
_MOST_HASHED = 256
"""Large clusters are set up for large shuffles; beyond this many parts that is left to them."""
_JOINED_A_CORE = 4
_OPEN_FILES = 100
"""How many files a task of a fanout write holds open before it sorts the rest of its rows."""


def why_not_native(spark: SparkSession, metadata: TableMetadata) -> str | None:
    """Why Spark's own writer cannot write the table; None if it can."""
    if props.WRITE_FORMAT.of(metadata.properties) != "parquet":
        return f"files are to be {props.WRITE_FORMAT.of(metadata.properties)}"
    if props.PARQUET_COMPRESSION.of(metadata.properties).lower() not in _CODECS:
        return f"Spark has no codec {props.PARQUET_COMPRESSION.of(metadata.properties)!r}"
    if props.OBJECT_STORAGE_ENABLED.of(metadata.properties):
        return f"{props.OBJECT_STORAGE_ENABLED.key} spreads files over folders"
    schema = metadata.schema()
    for field_id, field in schema.fields_by_id.items():
        is_top_unknown = isinstance(field.field_type, types.UnknownType) and field_id not in schema.parents
        if not isinstance(field.field_type, _TYPES) and not is_top_unknown:
            return f"Spark's writer has no form for column {schema.names_by_id[field_id]!r} of type {field.field_type}"
    if not stored_schema(schema).fields:
        return "no column is stored"
    return _why_not_reached(spark, data_folder(metadata))


def _why_not_reached(spark: SparkSession, location: str) -> str | None:
    parsed = parse_location(location)
    scheme = parsed.root.partition(":")[0] if ":" in parsed.root else "file"
    if scheme == "memory":
        return "files in memory are those of this process"
    gateway = Gateway(spark)
    conf = spark._jsparkSession.sessionState().newHadoopConf()
    try:
        gateway.jvm.org.apache.hadoop.fs.FileSystem.getFileSystemClass(scheme, conf)
    except Exception:  # noqa: BLE001  # whatever it says: there is no class that could read or write there
        return f"Spark's Hadoop has no file system for {scheme}"
    return None


def write_natively(frame: DataFrame, request: WriteRequest) -> list[DataFile]:
    """Write the frame as data files of the table. On an error, no file is left behind."""
    metadata = request.metadata
    settings = _settings(metadata) | _parts(frame.sparkSession, metadata)
    shaped = _in_session(shape_frame(frame, metadata.schema()), settings)
    kept = stored_schema(metadata.schema())
    if len(kept) < len(metadata.schema()):
        shaped = shaped.drop(*(field.name for field in metadata.schema() if field.field_id not in kept.fields_by_id))
    distribution = distribution_of(metadata)
    columns = partition_columns(metadata)
    gateway = Gateway(shaped.sparkSession)
    folder = new_folder(metadata)
    options = _options(metadata.properties)
    written = file_schema(kept, mapping_of(frame.sparkSession))

    def write(part: DataFrame, folder_name: str, partition: list[str]) -> None:
        write_parquet(gateway, part, folder_name, options, partition, written)

    with removed_on_error(frame.sparkSession, request.storage, folder):
        most = rows_per_file(shaped, request, distribution.mode, lambda part, place: write(part, place, []), folder)
        if most is not None:
            options["maxRecordsPerFile"] = str(most)
        spread = distribute(columns.add(shaped, gateway), metadata, distribution, columns.written)
        write(spread, folder, columns.written)
        return _data_files(folder, columns, distribution, request)


def _settings(metadata: TableMetadata) -> dict[str, str]:
    """Settings that Spark's writer only takes from its session."""
    fanout = distribution_of(metadata).fanout
    shreds = props.PARQUET_SHRED_VARIANTS.of(metadata.properties)
    # The writer of shredded variants takes its schema from the query alone, whose field ids that rule of the optimizer drops.
    whole = {"spark.sql.variant.pushVariantIntoScan": "false"} if shreds else {}
    return whole | {
        "spark.sql.caseSensitive": "true",
        "spark.sql.maxConcurrentOutputFileWriters": str(_OPEN_FILES if fanout else 0),
        "spark.sql.optimizer.plannedWrite.enabled": str(not fanout).lower(),
        "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
        "spark.sql.parquet.fieldId.write.enabled": "true",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.parquet.writeLegacyFormat": "false",
        "spark.sql.variant.writeShredding.enabled": str(shreds).lower(),
    }


def _parts(spark: SparkSession, metadata: TableMetadata) -> dict[str, str]:
    """Into how many parts rows are hashed, and into how many adaptive execution joins these.

    As many as keep all processors busy to the end, with fewer rows for each to sort. All rows of a partition are in one
    part, so that there are no more files for it than with few parts. What is written may be a query with exchanges of its
    own, to which the same numbers apply.
    """
    if distribution_of(metadata).mode != "hash" or spark.conf.get(_ADAPTS, "true").lower() != "true":
        return {}
    cores = spark.sparkContext.defaultParallelism
    settings = {_PARTS: str(max(int(spark.conf.get(_PARTS, "200")), min(_HASHED_A_CORE * cores, _MOST_HASHED)))}
    if spark.conf.get(_FEWEST_PARTS, None) is None:
        settings[_FEWEST_PARTS] = str(_JOINED_A_CORE * cores)
    return settings


def _in_session(frame: DataFrame, settings: dict[str, str]) -> DataFrame:
    """The same plan in a clone of the session with other settings."""
    session = frame.sparkSession
    clone = session._jsparkSession.cloneSession()
    for key, value in settings.items():
        clone.conf().set(key, value)
    gateway = Gateway(session)
    plan = frame._jdf.queryExecution().analyzed()
    dataset = gateway.jvm.org.apache.spark.sql.classic.Dataset.ofRows(clone, plan)
    return DataFrame(dataset, SparkSession(session.sparkContext, clone))


def _options(properties: props.Properties) -> dict[str, str]:
    """Options that Spark's writer only takes from the write."""
    codec = props.PARQUET_COMPRESSION.of(properties).lower()
    options = {
        "compression": _CODECS[codec],
        "parquet.block.size": str(props.PARQUET_ROW_GROUP_SIZE_BYTES.of(properties)),
        "parquet.page.size": str(props.PARQUET_PAGE_SIZE_BYTES.of(properties)),
        "parquet.page.row.count.limit": str(props.PARQUET_PAGE_ROW_LIMIT.of(properties)),
        "parquet.dictionary.page.size": str(props.PARQUET_DICT_SIZE_BYTES.of(properties)),
        "parquet.bloom.filter.max.bytes": str(props.PARQUET_BLOOM_FILTER_MAX_BYTES.of(properties)),
        "mapreduce.fileoutputcommitter.algorithm.version": "1",
        "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
        # Local files without a checksum file beside each of them, which nobody would delete.
        "fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
        "fs.file.impl.disable.cache": "true",
        "maxRecordsPerFile": "0",
    }
    level = props.PARQUET_COMPRESSION_LEVEL.of(properties)
    if level is not None and codec == "zstd":
        options["parquet.compression.codec.zstd.level"] = level
    if level is not None and codec == "gzip":
        options["zlib.compress.level"] = level
    return options | dict(_bloom_filters(properties))


def _bloom_filters(properties: props.Properties) -> Iterator[tuple[str, str]]:
    settings = {
        props.PARQUET_BLOOM_FILTER_COLUMN_PREFIX: "parquet.bloom.filter.enabled",
        "write.parquet.bloom-filter-fpp.column.": "parquet.bloom.filter.fpp",
        "write.parquet.bloom-filter-ndv.column.": "parquet.bloom.filter.expected.ndv",
    }
    for key, value in properties.items():
        for prefix, name in settings.items():
            if key.startswith(prefix):
                yield f"{name}#{key.removeprefix(prefix)}", value


def _data_files(
    folder: str, columns: PartitionColumns, distribution: Distribution, request: WriteRequest
) -> list[DataFile]:
    """The files of the folder, which is listed once; their footers are read side by side."""
    metadata, storage = request.metadata, request.storage
    schema = stored_schema(metadata.schema())
    modes = metrics_modes(schema, metadata.properties, distribution.order)
    order_id = distribution.order.order_id if distribution.is_sorted else None
    infos = sorted(storage.list_prefix(folder), key=lambda info: info.location)
    own = [info for info in infos if not info.location.rpartition("/")[2].startswith((".", "_"))]

    def read(info: FileInfo) -> DataFile:
        footer = pq.read_metadata(storage.open_input(info.location, size=info.size))
        check_written_ids(file_schema_from_arrow(footer.schema.to_arrow_schema()), schema, info.location)
        metrics = parquet_metrics(footer, schema, modes, file_schema=schema)
        inner = names_below(folder, info.location)[:-1]
        partition: Any = columns.partition(inner, info.location, storage) if footer.num_rows else ()
        return data_file_of(
            WrittenFile(metrics, split_offsets(footer), info.size),
            info.location,
            "parquet",
            spec_id=metadata.default_spec_id,
            partition=partition,
            sort_order_id=order_id,
        )

    files = list(in_order(read, own, _READERS, "icefloe-footers"))
    kept = [file for file in files if file.record_count]
    if len(kept) < len(infos):
        keep_only(storage, folder, (file.file_path for file in kept))
    request.written.extend(kept)
    return kept
