"""How our own writer makes data files on Spark's executors: for types, formats and stores that Spark's writer does not support.

Each task writes the rows that it gets as they come, in Arrow, and sends back what files it made. Driver and executors share
nothing but the installed package and the store. What tasks leave that were run twice, or on an executor that died, is swept
when the job is done. On Spark Connect there is no way to the expressions that spread rows, so each task writes files of the
partitions that its rows fall in.
"""

import pickle
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from icefloe import properties as props
from icefloe.data import TableWriter, WriteRequest, data_folder, write_data_files
from icefloe.errors import InvalidValueError
from icefloe.manifests import DataFile
from icefloe.metadata import TableMetadata
from icefloe.schema import Schema, types
from icefloe.spark.distribution import distribute, distribution_of, partition_columns
from icefloe.spark.gateway import Gateway
from icefloe.spark.shaping import marked, shape_frame
from icefloe.spark.spark_sessions import is_classic
from icefloe.spark.write_folder import keep_only, new_folder, removed_on_error, swept_by_name
from icefloe.storage import Storage, parse_location

_GATHERED_ROWS = 1 << 19
_GATHERED_BYTES = 64 << 20
_CONVERTED = (types.UUIDType, types.TimeType, types.TimestampNanoType, types.TimestamptzNanoType)


def write_through_arrow(frame: DataFrame, request: WriteRequest) -> list[DataFile]:
    """Write the frame as data files of the table. On an error, no file is left behind."""
    metadata, storage = request.metadata, request.storage
    shaped = shape_frame(frame, metadata.schema(), lists_as_they_are=True)
    if parse_location(data_folder(metadata)).scheme == "memory":
        # Such files only exist in this process, so no executor could write them.
        rows = as_rows(_collected(shaped, metadata.schema()), metadata.schema())
        return write_data_files(rows, metadata, storage, written=request.written)
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
            files += _run(spread, WriteTask(without_history(metadata), storage, mark))
    else:
        folder = new_folder(metadata)
        own = replace(metadata, properties={**metadata.properties, props.DATA_PATH.key: folder})
        with removed_on_error(frame.sparkSession, storage, folder):
            files = _run(spread, WriteTask(without_history(own), storage))
            keep_only(storage, folder, (file.file_path for file in files))
    request.written.extend(files)
    return files


def _run(frame: DataFrame, task: "WriteTask") -> list[DataFile]:
    results = _by_place(frame).mapInArrow(task, "files binary").collect()
    return [file for row in results for file in pickle.loads(row[0])]


def _by_place(frame: DataFrame) -> DataFrame:
    """The frame with other names: `mapInArrow` takes one with dots or backticks for a path, and our task goes by position."""
    return frame.toDF(*(f"c{index}" for index in range(len(frame.columns))))


def _collected(frame: DataFrame, schema: Schema) -> Any:
    """All rows here.

    Spark's own way casts what it gets to the type that it has, at which PyArrow fails for NULL in place of a variant or of a
    struct with required fields.
    """
    if not any(
        field.required or isinstance(field.field_type, types.VariantType) for field in types.walk_fields(schema.fields)
    ):
        return frame.toArrow()
    results = _by_place(frame).mapInArrow(_streams, "rows binary").collect()
    batches = [batch for row in results for batch in pa.ipc.open_stream(row[0])]
    return pa.Table.from_batches(batches) if batches else frame.limit(0).toArrow()


def _streams(batches: Iterator[Any]) -> Iterator[Any]:
    """Each batch as the bytes of a stream."""
    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        yield pa.RecordBatch.from_pydict({"rows": pa.array([sink.getvalue().to_pybytes()], pa.binary())})


def without_history(metadata: TableMetadata) -> TableMetadata:
    """What a writer needs of a table, however long its history is."""
    return replace(
        metadata,
        current_snapshot_id=None,
        snapshots=(),
        snapshot_log=(),
        metadata_log=(),
        refs={},
        statistics=(),
        partition_statistics=(),
    )


@dataclass(frozen=True)
class WriteTask:
    """What each task runs: rows in, one row with the pickled data files out. All files have the mark in their names."""

    metadata: TableMetadata
    storage: Storage
    mark: str = ""

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Write the batches of one task."""
        files = self._write(batches)
        yield pa.RecordBatch.from_pydict({"files": pa.array([pickle.dumps(files)], pa.binary())})

    def _write(self, batches: Iterator[Any]) -> list[DataFile]:
        written: list[DataFile] = []
        schema = self.metadata.schema()
        unique = "-".join(part for part in (self.mark, str(uuid.uuid4())) if part)
        try:
            with TableWriter(self.metadata, self.storage, workers=1, written=written, unique=unique) as writer:
                for table in _gathered(batches):
                    writer.write(as_rows(table, schema))
                return writer.close()
        except BaseException as problem:
            self.storage.delete(file.file_path for file in written)
            raise _told(problem) from problem


def _told(problem: BaseException) -> BaseException:
    """The error with its sentence marked, so that the driver finds it in what Spark makes of it."""
    return InvalidValueError(marked(str(problem))) if isinstance(problem, InvalidValueError) else problem


def _gathered(batches: Iterator[Any]) -> Iterator[Any]:
    """Spark's batches are small; many together cost less."""
    waiting: list[Any] = []
    rows = size = 0
    for batch in batches:
        waiting.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= _GATHERED_ROWS or size >= _GATHERED_BYTES:
            yield pa.Table.from_batches(waiting)
            waiting, rows, size = [], 0, 0
    if waiting:
        yield pa.Table.from_batches(waiting)


def as_rows(table: Any, schema: Schema) -> Any:
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


def _converted(array: Any, field_type: types.IcebergType) -> Any:
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
            return pa.StructArray.from_arrays(children, names=names, mask=_nulls(array))
        case types.ListType():
            lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
            return pa.ListArray.from_arrays(
                _offsets(lengths), _converted(array.flatten(), field_type.element_type), mask=_nulls(array)
            )
        case types.MapType():
            whole = array.take(pa.array(np.arange(len(array))))
            return pa.MapArray.from_arrays(
                whole.offsets,
                _converted(whole.keys, field_type.key_type),
                _converted(whole.items, field_type.value_type),
                mask=_nulls(array),
            )
        case _:
            raise AssertionError(f"values of type {field_type} are those of Arrow")


def _uuids(texts: Any) -> Any:
    """Valid texts of uuids as 16 bytes each, all at once."""
    digits = pc.fill_null(pc.replace_substring(texts, "-", ""), "0" * 32)
    joined = "".join(digits.to_pylist())
    stored = pa.Array.from_buffers(pa.binary(16), len(texts), [None, pa.py_buffer(bytes.fromhex(joined))])
    if texts.null_count:
        stored = pc.if_else(texts.is_valid(), stored, pa.scalar(None, pa.binary(16)))
    return stored


def _offsets(lengths: Any) -> Any:
    ends = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=ends[1:])
    return pa.array(ends)


def _nulls(array: Any) -> Any:
    return pc.is_null(array) if array.null_count else None
