"""How Spark's own Parquet writer makes data files of a table: where, with which settings, and what its footers say.

The files of a write go to a folder of its own. Spark's committer shows them there only when the whole job is done, so a failed
or repeated task leaves nothing; if the job fails, the folder is removed. Settings are made in a clone of the user's session,
which shares its temporary views and is thrown away.

Spark's writer begins another file only by the number of rows. The table's own files tell how many bytes a row takes; a table
without any learns it from the first rows, if they can be had without running a whole job first.

It takes the ids of columns from the metadata of the optimized query's output, and rules of Spark's optimizer drop that, as
when a variant goes through a scan. So the schema gets its ids where the writer is made.
"""

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import pyarrow.parquet as pq
from py4j.java_gateway import JavaMember, JavaObject
from pyspark.sql import DataFrame, SparkSession, types as spark_types

from icefloe import errors, manifests as mf, metadata as md, parallel, properties as props
from icefloe.data import WriteRequest, data_file_of
from icefloe.formats.arrow_types import stored_schema
from icefloe.formats.field_ids import check_written_ids
from icefloe.formats.file_writing import WrittenFile
from icefloe.formats.metrics import metrics_modes
from icefloe.formats.parquet.metrics import parquet_metrics, split_offsets
from icefloe.metadata import summary as totals
from icefloe.schema import file_schema_from_arrow
from icefloe.spark.distribution import Distribution, PartitionColumns, distribute, distribution_of, partition_columns
from icefloe.spark.gateway import Gateway, Returned, analyzed, items
from icefloe.spark.jvm import door
from icefloe.spark.micro_batch import MicroBatch
from icefloe.spark.row_positions import FILE, POS, Gathered, take_in
from icefloe.spark.shape_writes import with_shapes
from icefloe.spark.shaping import is_shaped, shape_frame
from icefloe.spark.spark_sessions import held_clone, is_on
from icefloe.spark.types import FIELD_ID, file_schema, mapping_of
from icefloe.spark.write_folder import keep_only, new_folder, remove_folder, removed_on_error
from icefloe.storage import FileInfo, Storage, names_below

CODECS = {
    "zstd": "zstd",
    "gzip": "gzip",
    "snappy": "snappy",
    "lz4": "lz4_raw",
    "lz4_raw": "lz4_raw",
    "none": "none",
    "uncompressed": "none",
}
_READERS = 8
_PLACES = "_places-"
"""How the names of files begin that say where rows were, beside the files of the rows."""
_ADAPTS = "spark.sql.adaptive.enabled"
_PARTS = "spark.sql.shuffle.partitions"
_FEWEST_PARTS = "spark.sql.adaptive.coalescePartitions.minPartitionNum"
_HASHED_A_CORE = 16
_MOST_HASHED = 256
"""Large clusters are configured for large shuffles, so more parts than this are left to their settings."""
_JOINED_A_CORE = 4
_OPEN_FILES = 100
"""How many files a task of a fanout write holds open before it sorts the rest of its rows."""
_OPEN_SPREAD = 16
"""How many partitions there may be for which a task opens files at once where each is in one task."""
_INFERS_SHREDDING = "spark.sql.variant.inferShreddingSchema"
_SAMPLED_ROWS = 200_000
_LEAST_ROWS = 10_000
"""Enough rows to tell the size of one; in fewer, the overhead of small files would hide it."""
_COSTLY = re.compile(
    r"\b(Aggregate|Join|Sort|Window|Distinct|Deduplicate|Repartition|RepartitionByExpression|RebalancePartitions|Expand"
    r"|MapInArrow|MapInPandas|FlatMapGroups\w*|Except|Intersect|GlobalLimit|Sample|BatchEvalPython|ArrowEvalPython"
    r"|PythonUDF|UDF|LogicalRDD|ExternalRDD|MapPartitions\w*|AttachDistributedSequence|WithCTE)\b"
)
"""Nodes after which the first rows may cost as much as all of them, or whose rows may differ when run twice."""


def write_natively(frame: DataFrame, request: WriteRequest, places: Gathered | None = None) -> list[mf.DataFile]:
    """Write the frame as data files of the table. On an error, no file is left behind.

    With `places`, the frame also has the files and positions where its rows were, which are noted there.
    """
    metadata = request.metadata
    distribution = distribution_of(metadata)
    writes = door.entry(frame.sparkSession, "file_writes")
    if writes is not None and places is None and isinstance(frame, MicroBatch) and _fits(frame, metadata, distribution):
        return _write_planned(writes, frame, request, distribution)
    settings = _settings(metadata, distribution) | _parts(frame.sparkSession, distribution)
    noted = () if places is None else (FILE, POS)
    columns = partition_columns(metadata)
    # Classes that tasks need are those of a session when it is cloned, so they are asked for first.
    placing = door.entry(frame.sparkSession, "row_changes", in_tasks=True) if noted else None
    few = None if writes is None or noted else _few_partitions(frame.sparkSession, columns, distribution)
    session = held_clone(frame.sparkSession, settings)
    if isinstance(frame, MicroBatch):
        frame.planned_in(session)
    shaped = door.in_session(shape_frame(frame, metadata.schema(), more=noted), session)
    stored = stored_schema(metadata.schema())
    if len(stored) < len(metadata.schema()):
        shaped = shaped.drop(*(field.name for field in metadata.schema() if field.field_id not in stored.fields_by_id))
    gateway = Gateway(shaped.sparkSession)
    folder = new_folder(metadata)
    options = _options(metadata.properties)
    schema = file_schema(stored, mapping_of(frame.sparkSession))

    def write(part: DataFrame, part_folder: str, partition: Sequence[str] = ()) -> None:
        chosen = few if partition else None
        inner = None if placing is None else placing.placing()
        if chosen is not None:
            inner = chosen.entry.byPartition(chosen.counts, int(options["maxRecordsPerFile"]))
        inner = with_shapes(frame.sparkSession, stored, inner)
        if writes is None:
            id_format = IdFormat(gateway, schema, inner, len(noted))
            _write_parquet(gateway, part, part_folder, options, partition, id_format)
            return
        taken = len(noted) if chosen is None else len(partition)
        given = options if chosen is None else options | {"maxRecordsPerFile": "0"}
        folders = partition if chosen is None else ()
        with_ids = writes.withIds(schema.json(), inner or writes.parquet(), taken)
        writes.insert(part._jdf, part_folder, gateway.map(given), "\0".join(folders), with_ids)

    with removed_on_error(frame.sparkSession, request.storage, folder):
        most = _rows_per_file(shaped, request, distribution.mode, write, folder)
        if most is not None:
            options["maxRecordsPerFile"] = str(most)
        spread = distribute(columns.add(shaped, gateway), metadata, distribution, columns.written)
        write(spread, folder, columns.written)
        return _data_files(folder, columns, distribution, request, places)


class _FewPartitions(NamedTuple):
    """A writer that holds a file open for each partition, and the numbers of values by which it knows them."""

    entry: JavaObject
    counts: str


def _few_partitions(
    spark: SparkSession, columns: PartitionColumns, distribution: Distribution
) -> _FewPartitions | None:
    """How a write opens all files that it may need, so that it need not sort; None if they may be too many."""
    most = _OPEN_FILES if distribution.fanout else _OPEN_SPREAD if _is_spread(distribution) else 0
    counts = columns.counts() if most else None
    if counts is None or math.prod(counts) > most:
        return None
    entry = door.entry(spark, "partition_files", in_tasks=True)
    return None if entry is None else _FewPartitions(entry, " ".join(map(str, counts)))


def _is_spread(distribution: Distribution) -> bool:
    """Whether a task gets all rows of its partitions, which are few, and in any order."""
    return distribution.mode == "hash" and not distribution.is_sorted


def _fits(batch: MicroBatch, metadata: md.TableMetadata, distribution: Distribution) -> bool:
    """Whether the rows of a micro-batch are written as they come: not cast, moved or sorted."""
    comes_as_it_is = metadata.spec().is_unpartitioned and distribution.mode == "none" and not distribution.is_sorted
    return comes_as_it_is and is_shaped(batch.schema, metadata.schema(), mapping_of(batch.sparkSession))


def _write_planned(
    writes: JavaObject, batch: MicroBatch, request: WriteRequest, distribution: Distribution
) -> list[mf.DataFile]:
    """Write a micro-batch by the physical plan that its query made: a query over its rows would copy each of them."""
    metadata = request.metadata
    session = held_clone(batch.sparkSession, _settings(metadata, distribution))
    folder, options, gateway = new_folder(metadata), _options(metadata.properties), Gateway(session)
    schema = file_schema(metadata.schema(), mapping_of(batch.sparkSession))
    size = _row_bytes(metadata)
    if size is not None:
        options["maxRecordsPerFile"] = str(_most_rows(request, size))
    with removed_on_error(session, request.storage, folder):
        with_ids = writes.withIds(schema.json(), writes.parquet(), 0)
        writes.write(batch.dataset, session._jsparkSession, folder, gateway.map(options), with_ids)
        return _data_files(folder, partition_columns(metadata), distribution, request)


def _settings(metadata: md.TableMetadata, distribution: Distribution) -> dict[str, str]:
    """Settings that Spark's writer only takes from its session."""
    fanout = distribution.fanout
    shreds = props.PARQUET_SHRED_VARIANTS.of(metadata.properties)
    # The writer of shredded variants takes its schema from the query alone, whose field ids that rule of the optimizer drops.
    whole = {"spark.sql.variant.pushVariantIntoScan": "false", _INFERS_SHREDDING: "true"} if shreds else {}
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


def _parts(spark: SparkSession, distribution: Distribution) -> dict[str, str]:
    """Into how many parts rows are hashed, and into how many adaptive execution joins these.

    As many as keep all processors busy to the end, with fewer rows for each to sort. All rows of a partition are in one
    part, so that there are no more files for it than with few parts. What is written may be a query with exchanges of its
    own, to which the same numbers apply.
    """
    if distribution.mode != "hash" or not is_on(spark, _ADAPTS, "true"):
        return {}
    cores = spark.sparkContext.defaultParallelism
    settings = {_PARTS: str(max(int(spark.conf.get(_PARTS, "200")), min(_HASHED_A_CORE * cores, _MOST_HASHED)))}
    if spark.conf.get(_FEWEST_PARTS, None) is None:
        settings[_FEWEST_PARTS] = str(_JOINED_A_CORE * cores)
    return settings


def _options(properties: props.Properties) -> dict[str, str]:
    """Options that Spark's writer only takes from the write."""
    codec = props.PARQUET_COMPRESSION.of(properties).lower()
    options = {
        "compression": CODECS[codec],
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
    folder: str,
    columns: PartitionColumns,
    distribution: Distribution,
    request: WriteRequest,
    places: Gathered | None = None,
) -> list[mf.DataFile]:
    """The files of the folder, which is listed once; their footers are read in parallel."""
    metadata, storage = request.metadata, request.storage
    schema = stored_schema(metadata.schema())
    modes = metrics_modes(schema, metadata.properties, distribution.order)
    order_id = distribution.order.order_id if distribution.is_sorted else None
    infos = sorted(storage.list_prefix(folder), key=lambda info: info.location)
    if places is not None:
        _take_in(places, infos, storage)
    visible = [info for info in infos if not info.location.rpartition("/")[2].startswith((".", "_"))]

    def read(info: FileInfo) -> mf.DataFile:
        footer = pq.read_metadata(storage.open_input(info.location, size=info.size))
        check_written_ids(file_schema_from_arrow(footer.schema.to_arrow_schema()), schema, info.location)
        metrics = parquet_metrics(footer, schema, modes, file_schema=schema)
        folders = names_below(folder, info.location)[:-1]
        partition = columns.partition(folders, info.location, storage) if footer.num_rows else ()
        return data_file_of(
            WrittenFile(metrics, split_offsets(footer), info.size),
            info.location,
            "parquet",
            spec_id=metadata.default_spec_id,
            partition=partition,
            sort_order_id=order_id,
        )

    files = [file for file in parallel.in_order(read, visible, _READERS, "icefloe-footers") if file.record_count]
    if len(files) < len(infos):
        keep_only(storage, folder, [file.file_path for file in files])
    request.written.extend(files)
    return files


def _take_in(places: Gathered, infos: Sequence[FileInfo], storage: Storage) -> None:
    """Take in where rows were, by the files that tasks wrote of it beside those of rows, which are removed with all others."""
    for info in infos:
        if info.location.rpartition("/")[2].startswith(_PLACES):
            with storage.open_input(info.location, size=info.size) as content:
                take_in(places, content.read())


# -- how many rows make a file of the target size


def _rows_per_file(
    frame: DataFrame, request: WriteRequest, mode: str, write: Callable[[DataFrame, str], None], folder: str
) -> int | None:
    """The most rows of a file; None if that is unknown, or if files will be smaller anyway."""
    target = props.WRITE_TARGET_FILE_SIZE_BYTES.of(request.metadata.properties)
    size = _row_bytes(request.metadata)
    if size is None and _may_exceed(frame, target, mode):
        size = _sampled(frame, request, write, f"{folder}/sample")
    return None if size is None else _most_rows(request, size)


def _most_rows(request: WriteRequest, size: float) -> int:
    """How many rows of a size fill a file."""
    return max(1, int(props.WRITE_TARGET_FILE_SIZE_BYTES.of(request.metadata.properties) / size))


def _row_bytes(metadata: md.TableMetadata) -> float | None:
    """Bytes that a row of the table takes in its files, by the summary of its newest snapshot."""
    ref = metadata.refs.get(md.MAIN_BRANCH)
    snapshot = None if ref is None else metadata.snapshot_by_id(ref.snapshot_id)
    if snapshot is None or snapshot.summary is None:
        return None
    rows, size = (_number(snapshot.summary.get(key)) for key in (totals.TOTAL_RECORDS, totals.TOTAL_FILES_SIZE))
    return size / rows if rows >= _LEAST_ROWS and size else None


def _number(text: str | None) -> int:
    return int(text) if text is not None and text.isdigit() else 0


def _may_exceed(frame: DataFrame, target: int, mode: str) -> bool:
    """Whether a task might get more rows than fill a file, by Spark's estimate of their total size."""
    execution = frame._jdf.queryExecution()
    if _COSTLY.search(execution.analyzed().toString()):
        return False
    optimized = execution.optimizedPlan()
    if _COSTLY.search(optimized.toString()):
        return False
    total = int(str(optimized.stats().sizeInBytes()))
    tasks = 1 if mode != "none" else max(1, frame.sparkSession.sparkContext.defaultParallelism)
    return total / tasks > target


def _sampled(
    frame: DataFrame, request: WriteRequest, write: Callable[[DataFrame, str], None], folder: str
) -> float | None:
    try:
        # One task that stops after the rows, where `limit` alone would take as many of every task.
        write(frame.coalesce(1).limit(_SAMPLED_ROWS), folder)
        sizes = [
            (info.size, pq.read_metadata(request.storage.open_input(info.location, size=info.size)).num_rows)
            for info in request.storage.list_prefix(folder)
            if info.location.endswith(".parquet")
        ]
    finally:
        remove_folder(request.storage, folder)
    rows = sum(count for _, count in sizes)
    return sum(size for size, _ in sizes) / rows if rows >= _LEAST_ROWS else None


# -- field ids


def _write_parquet(
    gateway: Gateway,
    frame: DataFrame,
    folder: str,
    options: Mapping[str, str],
    partition: Sequence[str],
    id_format: "IdFormat",
) -> None:
    """Write the frame's rows as Parquet files to a folder; columns that the format has no field for must be the partition's."""
    jvm = gateway.callbacks().jvm
    sql = jvm.org.apache.spark.sql
    plan = analyzed(frame)
    by_name = {column.name(): column for column in items(plan.output())}
    command = sql.execution.datasources.InsertIntoHadoopFsRelationCommand(
        jvm.org.apache.hadoop.fs.Path(folder),
        gateway.map({}),
        False,
        gateway.seq(by_name[name] for name in partition),
        gateway.none(),
        id_format,
        gateway.map(options),
        plan,
        sql.SaveMode.Append,
        gateway.none(),
        gateway.none(),
        gateway.seq(by_name),
    )
    sql.classic.Dataset.ofRows(gateway.spark._jsparkSession, command)


class IdFormat:
    """Spark's Parquet format, except that it writes the ids of a schema: a `FileFormat` for writing only."""

    def __init__(
        self, gateway: Gateway, schema: spark_types.StructType, inner: JavaObject | None = None, noted: int = 0
    ) -> None:
        """`inner` takes the last columns of a query for itself, as many as `noted`; Spark's own format does if it is None."""
        self._gateway = gateway
        self._schema = schema
        self._noted = noted
        parquet = gateway.jvm.org.apache.spark.sql.execution.datasources.parquet
        self._parquet = parquet.ParquetFileFormat() if inner is None else inner
        self._returned = Returned()

    # -- what Spark calls, by its names

    def prepareWrite(  # noqa: N802  # Spark's name
        self, session: JavaObject, job: JavaObject, options: JavaObject, schema: JavaObject
    ) -> JavaObject:
        """The factory of writers for files of these columns."""
        of_query = spark_types.StructType.fromJson(json.loads(schema.json()))
        stored = spark_types.StructType(of_query.fields[: len(of_query) - self._noted])
        written = self._gateway.type(with_ids(stored, self._schema, ""))
        return self._returned(self._parquet.prepareWrite(session, job, options, written))

    def __getattr__(self, name: str) -> JavaMember:
        """All else as Parquet has it: which types and names of columns it writes."""
        if name not in ("supportDataType", "supportFieldName", "allowDuplicatedColumnNames"):
            raise AttributeError(name)
        return getattr(self._parquet, name)

    def toString(self) -> str:  # noqa: N802  # Java's name
        """What plans show."""
        return "Parquet"

    def hashCode(self) -> int:  # noqa: N802  # Java's name
        """By identity."""
        return id(self) & 0x7FFFFFFF

    def equals(self, other: object) -> bool:
        """Whether it is this one."""
        return other is self

    class Java:
        """What py4j makes of it."""

        implements = ("org.apache.spark.sql.execution.datasources.FileFormat",)


def with_ids(of_query: spark_types.StructType, of_table: spark_types.StructType, around: str) -> spark_types.StructType:
    """The query's struct with the ids of the table's, field by field; the names must be the same.

    Nullability is the table's as well: values of required fields were checked when they were shaped.
    """
    if of_query.names != of_table.names:
        raise errors.StateError(
            f"Spark would write the fields {', '.join(of_query.names)} of {around or 'the table'}, which has"
            f" {', '.join(of_table.names)}"
        )
    return spark_types.StructType(
        [
            spark_types.StructField(
                field.name,
                with_ids(field.dataType, own.dataType, f"{around}.{field.name}" if around else field.name)
                if isinstance(field.dataType, spark_types.StructType)
                and isinstance(own.dataType, spark_types.StructType)
                else field.dataType,
                own.nullable,
                {FIELD_ID: own.metadata[FIELD_ID]},
            )
            for field, own in zip(of_query.fields, of_table.fields, strict=True)
        ]
    )
