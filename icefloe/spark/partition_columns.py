"""How partition values travel through Spark's writer: as columns that name folders, one value of each in every file.

The columns are made of the partition values, the data columns stay in the files. A folder's name must tell values apart on
any file system, null from empty text, and be short: numbers stand as they are, floats as their bits, text and bytes in hex;
those too long for a folder's name stand as a digest, and the value is read from the file.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import (
    Column,
    DataFrame,
    functions as F,  # noqa: N812  # its usual name
    types as spark_types,
)

from icefloe.errors import CorruptFileError
from icefloe.manifests import to_internal
from icefloe.metadata import TableMetadata
from icefloe.partitioning import PartitionField, transforms as tr
from icefloe.schema import Schema, coerce, types
from icefloe.spark.gateway import Gateway
from icefloe.spark.transforms import count_of, transform_column
from icefloe.spark.types import TypeMapping
from icefloe.storage import Storage

_INT, _LONG = spark_types.IntegerType(), spark_types.LongType()
_NULL = "__HIVE_DEFAULT_PARTITION__"
"""How Spark names the folder of null."""
_LONGEST = 100
"""Bytes of a value whose hex may be part of a folder's name; file systems allow names of 255."""


@dataclass(frozen=True)
class PartitionColumns:
    """The columns of a write that name its folders; `names` has None where a partition value is null in every row."""

    metadata: TableMetadata
    names: tuple[str | None, ...]

    @property
    def written(self) -> list[str]:
        """The names of the columns."""
        return [name for name in self.names if name is not None]

    def add(self, frame: DataFrame, gateway: Gateway) -> DataFrame:
        """The shaped frame with the columns behind its own."""
        schema = self.metadata.schema()
        columns = {}
        for field, name in zip(self.metadata.spec().fields, self.names, strict=True):
            if name is not None:
                source_type = schema.find_type(field.source_id)
                values = transform_column(gateway, field.transform, source_column(field.source_id, schema), source_type)
                columns[name] = _encoded(gateway, values, field.transform.result_type(source_type))
        return frame.withColumns(columns) if columns else frame

    def partition(self, folders: Sequence[str], location: str, storage: Storage) -> tuple[Any, ...]:
        """The partition tuple of a file that lies in these folders."""
        texts = dict(folder.partition("=")[::2] for folder in folders)
        schema = self.metadata.schema()
        return tuple(
            None if name is None else self._value(texts.get(name), field, schema, location, storage)
            for field, name in zip(self.metadata.spec().fields, self.names, strict=True)
        )

    def _value(self, text: str | None, field: PartitionField, schema: Schema, location: str, storage: Storage) -> Any:
        if text is None:
            raise CorruptFileError(location, f"it was written outside of a folder of partition field {field.name!r}")
        source_type = schema.find_type(field.source_id)
        if text.startswith("h"):
            names = [schema.fields_by_id[field.source_id].name]
            names[:0] = [ancestor.name for ancestor in reversed(schema.ancestors(field.source_id))]
            return field.transform.apply(_first_value(names, source_type, location, storage), source_type)
        return _decoded(text, field.transform.result_type(source_type))


def partition_columns(metadata: TableMetadata) -> PartitionColumns:
    """The columns for a table's spec, with names that no column of the table has."""
    schema = metadata.schema()
    prefix = "p"
    while any(field.name.lower().startswith(prefix) for field in schema.fields):
        prefix += "_"
    return PartitionColumns(
        metadata,
        tuple(
            None if _is_null(field, schema) else f"{prefix}{index}"
            for index, field in enumerate(metadata.spec().fields)
        ),
    )


def source_column(field_id: int, schema: Schema) -> Column:
    """A column of a shaped frame, at the top or nested in structs."""
    along = [schema.fields_by_id[field_id], *schema.ancestors(field_id)]
    top, *below = [field.name for field in reversed(along)]
    column = F.col(f"`{top.replace('`', '``')}`")
    for name in below:
        column = column.getField(name)
    return column


def _is_null(field: PartitionField, schema: Schema) -> bool:
    return isinstance(field.transform, tr.VoidTransform) or isinstance(
        schema.find_type(field.source_id), types.UnknownType
    )


def _encoded(gateway: Gateway, column: Column, field_type: types.IcebergType) -> Column:
    match field_type:
        case types.StringType() | types.BinaryType():
            short = F.concat(F.lit("v"), F.hex(column))
            long = F.concat(F.lit("h"), F.sha2(column.cast("binary"), 256))
            return F.when(F.octet_length(column) <= F.lit(_LONGEST), short).when(column.isNotNull(), long)
        case types.BooleanType():
            return column.cast("int")
        case types.FloatType():
            return gateway.static_invoke("java.lang.Float", "floatToRawIntBits", _INT, column)
        case types.DoubleType():
            return gateway.static_invoke("java.lang.Double", "doubleToRawLongBits", _LONG, column)
        case types.DecimalType():
            return column.cast("string")
        case _:
            return count_of(gateway, column, field_type, TypeMapping())


def _decoded(text: str, field_type: types.IcebergType) -> Any:
    if text == _NULL:
        return None
    match field_type:
        case types.StringType():
            return bytes.fromhex(text[1:]).decode()
        case types.BinaryType():
            return bytes.fromhex(text[1:])
        case types.BooleanType():
            return text == "1"
        case types.FloatType():
            return struct.unpack("<f", struct.pack("<i", int(text)))[0]
        case types.DoubleType():
            return struct.unpack("<d", struct.pack("<q", int(text)))[0]
        case types.DecimalType():
            return coerce(Decimal(text), field_type)
        case _:
            return int(text)


def _first_value(names: list[str], field_type: types.IcebergType, location: str, storage: Storage) -> Any:
    """The value of a column in the first row of a file; its partition value is that of all rows."""
    file = pq.ParquetFile(storage.open_input(location))
    batch = next(file.iter_batches(batch_size=1, columns=[".".join(names)]))
    array = batch.column(0)
    for name in names[1:]:
        array = array.field(name)
    return to_internal(array, field_type)[0]
