"""How executors read and write a table with Arrow, for types, formats and stores that Spark's own code does not support.

Tasks of a scan are sent to the executors, and the rows come back as Spark's Arrow batches. Its files are chosen when the
DataFrame is created, by the filter and the columns of the scan.

Each task of a write writes the rows that it gets as they come, and sends back which files it wrote. Driver and executors share
nothing but the installed package and the store. What tasks leave that were run twice, or on an executor that died, is swept
when the job is done. On Spark Connect there is no way to the expressions that spread rows, so each task writes files of the
partitions that its rows fall in.
"""

import pickle
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession, functions as F, types as spark_types  # noqa: N812  # its usual name

from icefloe import errors, manifests as mf, metadata as md, planning, properties as props
from icefloe.data import ReadContext, TableWriter, WriteRequest, data_folder, read_task, write_data_files
from icefloe.formats.file_schema import with_fields
from icefloe.schema import Schema, types
from icefloe.spark.distribution import distribute, distribution_of, partition_columns
from icefloe.spark.gateway import Gateway
from icefloe.spark.shaping import marked, shape_frame
from icefloe.spark.spark_sessions import is_classic
from icefloe.spark.types import TypeMapping, user_schema
from icefloe.spark.user_side import quoted_name, to_user
from icefloe.spark.write_folder import keep_only, new_folder, removed_on_error, swept_by_name
from icefloe.storage import Storage, parse_location

_GATHERED_ROWS = 1 << 19
_GATHERED_BYTES = 64 << 20
_CONVERTED = (types.UUIDType, types.TimeType, types.TimestampNanoType, types.TimestamptzNanoType)
_UUID_BYTES = 16
_DASHES_AFTER = (4, 6, 8, 10)
_HEX = np.frombuffer("".join(f"{byte:02x}" for byte in range(256)).encode(), np.uint8).reshape(256, 2)


@dataclass(frozen=True, slots=True)
class ReadTasks:
    """What an executor does: from pickled tasks to Arrow batches as Spark has them."""

    context: ReadContext
    projection: Schema
    mapping: TypeMapping

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for content in batch.column("task").to_pylist():
                yield from shown_batches(pickle.loads(content), self.projection, self.context, self.mapping)


def shown_batches(
    combined: planning.CombinedScanTask, projection: Schema, context: ReadContext, mapping: TypeMapping
) -> Iterator[pa.RecordBatch]:
    """The rows of a task in the Arrow types that stand for Spark's."""
    for task in combined.tasks:
        for batch in read_task(task, projection, context):
            yield shown_batch(batch, projection, mapping)


def shown_batch(batch: pa.RecordBatch, projection: Schema, mapping: TypeMapping) -> pa.RecordBatch:
    """The rows of a batch in the Arrow types that stand for Spark's, without columns that have no values."""
    fields = [
        (index, field)
        for index, field in enumerate(projection.fields)
        if not isinstance(field.field_type, types.UnknownType)
    ]
    arrays = [_shown(batch.column(index), field.field_type, mapping) for index, field in fields]
    return pa.RecordBatch.from_arrays(arrays, [field.name for _, field in fields])


def arrow_frame(spark: SparkSession, scan: planning.TableScan, mapping: TypeMapping) -> DataFrame:
    """The rows of a scan, read by executors with Arrow."""
    # Geometries travel as bytes, and become Spark's own afterwards.
    tasks = scan.plan_tasks()
    read = ReadTasks(ReadContext(scan.metadata, scan.file_storage), scan.projection(), replace(mapping, geo=False))
    rows = frame_of_tasks(spark, tasks, read, scan.projection(), mapping)
    return rows if scan.limit is None else rows.limit(scan.limit)


TaskReader = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""What an executor does with batches of pickled tasks."""


def frame_of_tasks(
    spark: SparkSession, tasks: Iterable[object], read: TaskReader, projection: Schema, mapping: TypeMapping
) -> DataFrame:
    """The rows of tasks, each read by an executor, which shows geometries as bytes and leaves out columns without values."""
    sent = [(pickle.dumps(task),) for task in tasks]
    frame = spark.createDataFrame(sent, spark_types.StructType().add("task", spark_types.BinaryType()))
    if len(sent) > 1:
        frame = frame.repartition(len(sent))
    stored = without_unknown(projection)
    rows = frame.mapInArrow(read, nullable(user_schema(stored, replace(mapping, geo=False))))
    stored_types = {field.field_id: field.field_type for field in stored.fields}
    columns = []
    for field, shown in zip(projection.fields, user_schema(projection, mapping).fields, strict=True):
        stored_type = stored_types.get(field.field_id)
        column = F.lit(None) if stored_type is None else F.col(quoted_name(field.name))
        if stored_type is not None and mapping.geo and _has_geo(field.field_type):
            column = to_user(column, _as_read(stored_type), field.field_type, mapping)
        columns.append(column.alias(field.name, metadata=dict(shown.metadata)))
    return rows.select(*columns)


def _shown(array: pa.Array, field_type: types.IcebergType, mapping: TypeMapping) -> pa.Array:
    match field_type:
        case types.UUIDType():
            return uuid_texts(array.storage if isinstance(array, pa.ExtensionArray) else array)
        case types.FixedType():
            return array.cast(pa.binary())
        case types.TimeType():
            return array.cast(pa.time64("ns")) if mapping.time else array.cast(pa.int64())
        case types.TimestampNanoType() | types.TimestamptzNanoType():
            return array.cast(pa.int64())
        case types.VariantType():
            return _variant(array)
        case types.StructType():
            return _struct(array, field_type, mapping)
        case types.ListType():
            values = _shown(array.values, field_type.element_type, mapping)
            return pa.ListArray.from_arrays(array.offsets, values, mask=_mask(array))
        case types.MapType():
            keys = _shown(array.keys, field_type.key_type, mapping)
            items = _shown(array.items, field_type.value_type, mapping)
            return pa.MapArray.from_arrays(array.offsets, keys, items, mask=_mask(array))
        case _:
            return array


def _struct(array: pa.StructArray, struct: types.StructType, mapping: TypeMapping) -> pa.StructArray:
    children = [
        (field.name, _shown(array.field(index), field.field_type, mapping))
        for index, field in enumerate(struct)
        if not isinstance(field.field_type, types.UnknownType)
    ]
    fields = [pa.field(name, child.type) for name, child in children]
    return pa.StructArray.from_arrays([child for _, child in children], fields=fields, mask=_mask(array))


def _variant(array: pa.StructArray) -> pa.StructArray:
    """Spark recognises a variant by a mark in its metadata."""
    fields = [pa.field("value", pa.binary(), False), pa.field("metadata", pa.binary(), False, {b"variant": b"true"})]
    return pa.StructArray.from_arrays([array.field("value"), array.field("metadata")], fields=fields, mask=_mask(array))


def _mask(array: pa.Array) -> pa.BooleanArray | None:
    return pc.is_null(array) if array.null_count else None


def uuid_texts(array: pa.FixedSizeBinaryArray) -> pa.StringArray:
    """The texts of UUIDs of 16 bytes each."""
    count = len(array)
    filled = pc.fill_null(array, b"\0" * _UUID_BYTES) if array.null_count else array
    raw = np.frombuffer(b"".join(filled.to_pylist()), np.uint8).reshape(count, _UUID_BYTES)
    texts = np.full((count, 2 * _UUID_BYTES + len(_DASHES_AFTER)), ord("-"), np.uint8)
    position = 0
    for byte in range(_UUID_BYTES):
        position += byte in _DASHES_AFTER
        texts[:, position : position + 2] = _HEX[raw[:, byte]]
        position += 2
    offsets = np.arange(count + 1, dtype=np.int32) * texts.shape[1]
    validity = None if not array.null_count else pc.is_valid(array).buffers()[1]
    return pa.StringArray.from_buffers(
        count, pa.py_buffer(offsets), pa.py_buffer(texts.tobytes()), validity, array.null_count
    )


def _as_read(field_type: types.IcebergType) -> types.IcebergType:
    """The type of the rows as read, in which a uuid is already text and needs no conversion."""
    match field_type:
        case types.UUIDType():
            return types.LongType()
        case types.NestedType():
            fields = [replace(field, field_type=_as_read(field.field_type)) for field in field_type.fields]
            return with_fields(field_type, fields)
        case _:
            return field_type


def _has_geo(field_type: types.IcebergType) -> bool:
    match field_type:
        case types.GeometryType() | types.GeographyType():
            return True
        case types.NestedType():
            return any(_has_geo(field.field_type) for field in field_type.fields)
        case _:
            return False


def without_unknown(schema: Schema) -> Schema:
    """The columns that have values: those of type unknown are not stored."""
    return Schema(*_known_fields(schema.fields))


def _known(field: types.NestedField) -> types.NestedField:
    if not isinstance(field.field_type, types.StructType):
        return field
    return replace(field, field_type=types.StructType(*_known_fields(field.field_type.fields)))


def _known_fields(fields: Iterable[types.NestedField]) -> Iterator[types.NestedField]:
    return (_known(field) for field in fields if not isinstance(field.field_type, types.UnknownType))


def nullable(struct: spark_types.StructType) -> spark_types.StructType:
    """All fields nullable, as in Arrow: Spark checks the executors' batches against the schema."""
    return spark_types.StructType(
        [spark_types.StructField(field.name, field.dataType, True) for field in struct.fields]
    )


# -- writing


def write_through_arrow(frame: DataFrame, request: WriteRequest) -> list[mf.DataFile]:
    """Write the frame as data files of the table. On an error, no file is left behind."""
    metadata, storage = request.metadata, request.storage
    shaped = shape_frame(frame, metadata.schema(), lists_as_they_are=True)
    if parse_location(data_folder(metadata)).scheme == "memory":
        # Such files only exist in this process, so no executor could write them.
        rows = _as_rows(_collected(shaped, metadata.schema()), metadata.schema())
        return write_data_files(rows, WriteRequest(metadata, storage, request.written))
    columns = partition_columns(metadata)
    distribution = distribution_of(metadata)
    spread = shaped
    if distribution.mode != "none" and is_classic(shaped.sparkSession):
        added = columns.add(shaped, Gateway(shaped.sparkSession))
        # Each file is one sorted run by the writer itself, so that Spark only has to spread the rows.
        spread = distribute(added, metadata, distribution, columns.written, sort=False).drop(*columns.written)
    if props.OBJECT_STORAGE_ENABLED.of(metadata.properties):
        mark = str(uuid.uuid4())
        with swept_by_name(frame.sparkSession, storage, data_folder(metadata), mark) as files:
            files += _run(spread, WriteTask(metadata.without_history(), storage, mark))
    else:
        folder = new_folder(metadata)
        own = replace(metadata, properties={**metadata.properties, props.DATA_PATH.key: folder})
        with removed_on_error(frame.sparkSession, storage, folder):
            files = _run(spread, WriteTask(own.without_history(), storage))
            keep_only(storage, folder, [file.file_path for file in files])
    request.written.extend(files)
    return files


def _run(frame: DataFrame, task: "WriteTask") -> list[mf.DataFile]:
    results = _numbered(frame).mapInArrow(task, "files binary").collect()
    return [file for row in results for file in pickle.loads(row[0])]


def _numbered(frame: DataFrame) -> DataFrame:
    """The frame with other names: `mapInArrow` takes one with dots or backticks for a path, and our task goes by position."""
    return frame.toDF(*(f"c{index}" for index in range(len(frame.columns))))


def _collected(frame: DataFrame, schema: Schema) -> pa.Table:
    """All rows here.

    Spark's own way casts what it gets to the type that it has, at which PyArrow fails for NULL in place of a variant or of a
    struct with required fields.
    """
    if not any(
        field.required or isinstance(field.field_type, types.VariantType) for field in types.walk_fields(schema.fields)
    ):
        return frame.toArrow()
    results = _numbered(frame).mapInArrow(_streams, "rows binary").collect()
    batches = [batch for row in results for batch in pa.ipc.open_stream(row[0])]
    return pa.Table.from_batches(batches) if batches else frame.limit(0).toArrow()


def _streams(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Each batch as the bytes of a stream."""
    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        yield pa.RecordBatch.from_pydict({"rows": pa.array([sink.getvalue().to_pybytes()], pa.binary())})


@dataclass(frozen=True)
class WriteTask:
    """What each task runs: rows in, one row with the pickled data files out. All files have the mark in their names."""

    metadata: md.TableMetadata
    storage: Storage
    mark: str = ""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write the batches of one task."""
        files = self._write(batches)
        yield pa.RecordBatch.from_pydict({"files": pa.array([pickle.dumps(files)], pa.binary())})

    def _write(self, batches: Iterator[pa.RecordBatch]) -> list[mf.DataFile]:
        written: list[mf.DataFile] = []
        schema = self.metadata.schema()
        unique = "-".join(part for part in (self.mark, str(uuid.uuid4())) if part)
        try:
            request = WriteRequest(self.metadata, self.storage, written)
            with TableWriter(request, workers=1, unique=unique) as writer:
                for table in _gathered(batches):
                    writer.write(_as_rows(table, schema))
                return writer.close()
        except BaseException as problem:
            self.storage.delete(file.file_path for file in written)
            if isinstance(problem, errors.InvalidValueError):
                # So that the driver recognizes it in what Spark makes of it.
                raise errors.InvalidValueError(marked(str(problem))) from problem
            raise


def _gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Spark's batches are small; many together cost less."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        waiting.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= _GATHERED_ROWS or size >= _GATHERED_BYTES:
            yield pa.Table.from_batches(waiting)
            waiting, rows, size = [], 0, 0
    if waiting:
        yield pa.Table.from_batches(waiting)


def _as_rows(table: pa.Table, schema: Schema) -> pa.Table:
    """A table of a shaped frame with Arrow's own types where Spark has none: uuid, time, nanoseconds."""
    columns = {}
    for field, column in zip(schema.fields, table.columns, strict=True):
        if not _is_converted(field.field_type):
            columns[field.name] = column
        else:
            chunks = [_converted(chunk, field.field_type) for chunk in column.chunks]
            columns[field.name] = pa.chunked_array(chunks, chunks[0].type) if chunks else column
    return pa.table(columns)


def _is_converted(field_type: types.IcebergType) -> bool:
    if isinstance(field_type, types.NestedType):
        return any(isinstance(field.field_type, _CONVERTED) for field in types.walk_fields(field_type.fields))
    return isinstance(field_type, _CONVERTED)


def _converted(array: pa.Array, field_type: types.IcebergType) -> pa.Array:
    if not _is_converted(field_type):
        return array
    match field_type:
        case types.UUIDType():
            return _uuids(array)
        case types.TimestampNanoType():
            return array.view(pa.timestamp("ns"))
        case types.TimestamptzNanoType():
            return array.view(pa.timestamp("ns", "UTC"))
        case types.TimeType():
            is_number = pa.types.is_int64(array.type)
            return array.view(pa.time64("us")) if is_number else array.cast(pa.time64("us"))
        case types.StructType():
            names = [field.name for field in array.type]
            children = [
                _converted(array.field(index), field.field_type) for index, field in enumerate(field_type.fields)
            ]
            return pa.StructArray.from_arrays(children, names=names, mask=_mask(array))
        case types.ListType():
            lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
            offsets = pa.array(np.concatenate(([0], np.cumsum(lengths))), pa.int32())
            values = _converted(array.flatten(), field_type.element_type)
            return pa.ListArray.from_arrays(offsets, values, mask=_mask(array))
        case types.MapType():
            whole = array.take(pa.array(np.arange(len(array))))
            return pa.MapArray.from_arrays(
                whole.offsets,
                _converted(whole.keys, field_type.key_type),
                _converted(whole.items, field_type.value_type),
                mask=_mask(array),
            )
        case _:
            raise AssertionError(f"values of type {field_type} are those of Arrow")


def _uuids(texts: pa.StringArray) -> pa.FixedSizeBinaryArray:
    """Valid texts of uuids as 16 bytes each, all at once."""
    digits = pc.fill_null(pc.replace_substring(texts, "-", ""), "0" * 32)
    joined = "".join(digits.to_pylist())
    stored = pa.Array.from_buffers(pa.binary(16), len(texts), [None, pa.py_buffer(bytes.fromhex(joined))])
    if texts.null_count:
        stored = pc.if_else(texts.is_valid(), stored, pa.scalar(None, pa.binary(16)))
    return stored
