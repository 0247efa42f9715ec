"""How executors read a table with Arrow: tasks are sent to them, and the rows come back as Spark's Arrow batches.

It reads every format and every store that plain Python reads, on any kind of Spark session. Its files are chosen when the
DataFrame is created, by the filter and the columns of the scan.
"""

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, functions as F, types as spark_types  # noqa: N812  # its usual name

from icefloe.data import ReadContext, read_task
from icefloe.planning import CombinedScanTask, TableScan
from icefloe.schema import Schema, types
from icefloe.spark.types import TypeMapping, user_schema
from icefloe.spark.user_side import quoted_name, to_user

_UUID_BYTES = 16
_DASHES_AFTER = (4, 6, 8, 10)
_HEX = np.frombuffer("".join(f"{byte:02x}" for byte in range(256)).encode(), np.uint8).reshape(256, 2)


@dataclass(frozen=True, slots=True)
class ReadTasks:
    """What an executor does: from pickled tasks to Arrow batches as Spark has them."""

    context: ReadContext
    wanted: Schema
    mapping: TypeMapping

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            for content in batch.column("task").to_pylist():
                combined: CombinedScanTask = pickle.loads(content)
                for task in combined.tasks:
                    for rows in read_task(task, self.wanted, self.context):
                        yield shown_batch(rows, self.wanted, self.mapping)


def arrow_frame(spark: Any, scan: TableScan, mapping: TypeMapping) -> DataFrame:
    """The rows of a scan, read by executors with Arrow."""
    wanted = scan.projection()
    # Geometries travel as bytes, and become Spark's own afterwards.
    plain = replace(mapping, geo=False)
    sent = [(pickle.dumps(task),) for task in scan.plan_tasks()]
    tasks = spark.createDataFrame(
        sent, spark_types.StructType([spark_types.StructField("task", spark_types.BinaryType())])
    )
    if len(sent) > 1:
        tasks = tasks.repartition(len(sent))
    read = ReadTasks(ReadContext(scan.metadata, scan.storage), wanted, plain)
    stored = without_unknown(wanted)
    rows = tasks.mapInArrow(read, nullable(user_schema(stored, plain)))
    shown = {field.name: field for field in user_schema(wanted, mapping).fields}
    by_id = {field.field_id: field for field in stored.fields}
    columns = []
    for field in wanted.fields:
        given = by_id.get(field.field_id)
        column = F.lit(None) if given is None else F.col(quoted_name(field.name))
        if given is not None and mapping.geo and _has_geo(field.field_type):
            column = to_user(column, _as_read(given.field_type), field.field_type, mapping)
        columns.append(column.alias(field.name, metadata=dict(shown[field.name].metadata)))
    result = rows.select(*columns)
    return result if scan.limit is None else result.limit(scan.limit)


def shown_batch(batch: Any, schema: Schema, mapping: TypeMapping) -> Any:
    """A batch in the Arrow types that stand for Spark's."""
    names, arrays = [], []
    for index, field in enumerate(schema.fields):
        if not isinstance(field.field_type, types.UnknownType):
            names.append(field.name)
            arrays.append(_shown(batch.column(index), field.field_type, mapping))
    return pa.RecordBatch.from_arrays(arrays, names)


def _shown(array: Any, field_type: types.IcebergType, mapping: TypeMapping) -> Any:
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


def _struct(array: Any, struct: types.StructType, mapping: TypeMapping) -> Any:
    kept = [
        (field, array.field(index))
        for index, field in enumerate(struct)
        if not isinstance(field.field_type, types.UnknownType)
    ]
    if array.offset:
        kept = [(field, array.field(field.name)) for field, _ in kept]
    arrays = [_shown(inner, field.field_type, mapping) for field, inner in kept]
    fields = [pa.field(field.name, inner.type) for (field, _), inner in zip(kept, arrays, strict=True)]
    return pa.StructArray.from_arrays(arrays, fields=fields, mask=_mask(array))


def _variant(array: Any) -> Any:
    """Spark recognises a variant by a mark in its metadata."""
    fields = [pa.field("value", pa.binary(), False), pa.field("metadata", pa.binary(), False, {b"variant": b"true"})]
    return pa.StructArray.from_arrays([array.field("value"), array.field("metadata")], fields=fields, mask=_mask(array))


def _mask(array: Any) -> Any:
    return pc.is_null(array) if array.null_count else None


def uuid_texts(array: Any) -> Any:
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
        case types.StructType():
            return types.StructType(*(replace(field, field_type=_as_read(field.field_type)) for field in field_type))
        case types.ListType():
            return replace(field_type, element_type=_as_read(field_type.element_type))
        case types.MapType():
            return replace(
                field_type, key_type=_as_read(field_type.key_type), value_type=_as_read(field_type.value_type)
            )
        case _:
            return field_type


def _has_geo(field_type: types.IcebergType) -> bool:
    match field_type:
        case types.GeometryType() | types.GeographyType():
            return True
        case types.StructType() | types.ListType() | types.MapType():
            return any(_has_geo(field.field_type) for field in field_type.fields)
        case _:
            return False


def without_unknown(schema: Schema) -> Schema:
    """The columns that have values: those of type unknown are not stored."""
    return Schema(*(_known(field) for field in schema.fields if not isinstance(field.field_type, types.UnknownType)))


def _known(field: types.NestedField) -> types.NestedField:
    field_type = field.field_type
    if isinstance(field_type, types.StructType):
        kept = [_known(inner) for inner in field_type if not isinstance(inner.field_type, types.UnknownType)]
        return replace(field, field_type=types.StructType(*kept))
    return field


def nullable(struct: Any) -> Any:
    """All fields nullable, as in Arrow: Spark checks the executors' batches against the schema."""
    return spark_types.StructType(
        [spark_types.StructField(field.name, field.dataType, True) for field in struct.fields]
    )
