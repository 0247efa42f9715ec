"""How rows are spread over the tasks and folders of a write, and ordered in them.

`write.distribution-mode` and the table's sort order say how. Without a mode, sorted tables get `range`, partitioned ones
`hash`, all others `none`, as in the Java library. Rows are moved by Spark's rebalancing: adaptive execution then joins small
parts and splits large ones.

Partition values travel through Spark's writer as columns that name folders, one value of each in every file. The columns are
made of the partition values, the data columns stay in the files. A folder's name must distinguish values on any file system,
null from empty text, and be short: numbers stand as they are, floats as their bits, text and bytes in hex; those too long for
a folder's name stand as a digest, and the value is read from the file.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce

import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, functions as F, types as spark_types  # noqa: N812  # its usual name

from icefloe import errors, manifests as mf, metadata as md, properties as props
from icefloe.partitioning import (
    NullOrder,
    PartitionField,
    SortDirection,
    SortField,
    SortOrder,
    check_writable,
    transforms as tr,
)
from icefloe.schema import Schema, Value, coerce, types
from icefloe.spark.gateway import Gateway, analyzed, items
from icefloe.spark.transforms import count_of, transform_column
from icefloe.spark.types import TypeMapping
from icefloe.spark.user_side import quoted_name
from icefloe.storage import Storage

FANOUT = "write.spark.fanout.enabled"
_MOVED_PER_STORED = 3
"""About how many bytes are moved for a byte in a Parquet file; an estimate too high gives larger parts, which are split by rows."""
_NULL = "__HIVE_DEFAULT_PARTITION__"
"""How Spark names the folder of null."""
_LONGEST = 100
"""Bytes of a value whose hex may be part of a folder's name; file systems allow names of 255."""


@dataclass(frozen=True)
class Distribution:
    """The mode of a write once all rules are applied; `order` has only keys that rows can be sorted by."""

    mode: str
    order: SortOrder
    fanout: bool

    @property
    def is_sorted(self) -> bool:
        """Whether rows of a file are in the table's order."""
        return bool(self.order.fields)


def distribution_of(metadata: md.TableMetadata) -> Distribution:
    """What the table's properties, spec and order ask for."""
    check_writable(metadata.spec())
    order = metadata.sort_order()
    if any(isinstance(field.transform, tr.UnknownTransform) for field in order.fields):
        order = SortOrder()
    is_partitioned = not metadata.spec().is_unpartitioned
    mode = props.DISTRIBUTION_MODE.of(metadata.properties)
    if mode is None:
        mode = "range" if order.fields else "hash" if is_partitioned else "none"
    if not is_partitioned and (mode == "hash" or not order.fields):
        mode = "none"
    return Distribution(mode, order, props.property_as_bool(metadata.properties, FANOUT, False))


def distribute(
    frame: DataFrame, metadata: md.TableMetadata, distribution: Distribution, partition: list[str], *, sort: bool = True
) -> DataFrame:
    """The shaped frame, spread and, unless the writer itself sorts, sorted; `partition` names the partition columns."""
    gateway = Gateway(frame.sparkSession)
    keys = [F.col(name).asc_nulls_first() for name in partition]
    schema = metadata.schema()
    order = [
        _sort_key(gateway, field, schema)
        for field in distribution.order.fields
        if not isinstance(schema.find_type(field.source_id), types.UnknownType)
    ]
    if distribution.mode == "hash" and keys:
        frame = _rebalanced(gateway, frame, keys, metadata, by_hash=True)
    elif distribution.mode == "range" and (keys or order):
        frame = _rebalanced(gateway, frame, [*keys, *order], metadata, by_hash=False)
    return frame.sortWithinPartitions(*keys, *order) if order and sort else frame


def _rebalanced(
    gateway: Gateway, frame: DataFrame, keys: list[Column], metadata: md.TableMetadata, *, by_hash: bool
) -> DataFrame:
    # A sort by the keys resolves them; the sort itself is not used.
    orders = items(analyzed(frame.sortWithinPartitions(*keys)).order())
    target = props.WRITE_TARGET_FILE_SIZE_BYTES.of(metadata.properties)
    advised = min(target * _MOVED_PER_STORED, 2**62)
    # A small number would come back from Python as an Integer, so the Long is created and wrapped in the JVM.
    boxed = gateway.jvm.java.util.stream.LongStream.range(advised, advised + 1).boxed().findFirst()
    plan = gateway.jvm.org.apache.spark.sql.catalyst.plans.logical.RebalancePartitions(
        gateway.seq(order.child() if by_hash else order for order in orders),
        analyzed(frame),
        gateway.none(),
        gateway.jvm.scala.jdk.javaapi.OptionConverters.toScala(boxed),
    )
    return gateway.frame_of(plan)


def _sort_key(gateway: Gateway, field: SortField, schema: Schema) -> Column:
    """A key in the spec's order, in which -0.0 is below 0.0 (spec: Sorting)."""
    field_type = schema.find_type(field.source_id)
    key = transform_column(gateway, field.transform, _source_column(field.source_id, schema), field_type)
    result_type = field.transform.result_type(field_type)
    if isinstance(result_type, types.FloatType | types.DoubleType):
        bits, size = _raw_bits(gateway, key, result_type), 31 if isinstance(result_type, types.FloatType) else 63
        key = bits.bitwiseXOR(F.shiftright(bits, size).bitwiseAND(F.lit(2**size - 1)))
    first = field.null_order is NullOrder.NULLS_FIRST
    if field.direction is SortDirection.ASC:
        return key.asc_nulls_first() if first else key.asc_nulls_last()
    return key.desc_nulls_first() if first else key.desc_nulls_last()


def _raw_bits(gateway: Gateway, column: Column, field_type: types.FloatType | types.DoubleType) -> Column:
    if isinstance(field_type, types.FloatType):
        return gateway.static_invoke("java.lang.Float", "floatToRawIntBits", spark_types.IntegerType(), column)
    return gateway.static_invoke("java.lang.Double", "doubleToRawLongBits", spark_types.LongType(), column)


# -- folders of partitions


@dataclass(frozen=True)
class PartitionColumns:
    """The columns of a write that name its folders; `names` has None where a partition value is null in every row."""

    metadata: md.TableMetadata
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
                values = transform_column(
                    gateway, field.transform, _source_column(field.source_id, schema), source_type
                )
                columns[name] = _encoded(gateway, values, field.transform.result_type(source_type))
        return frame.withColumns(columns) if columns else frame

    def counts(self) -> list[int] | None:
        """How many values each written column has besides null, if those are the numbers from zero on; None if they are others."""
        schema = self.metadata.schema()
        written = [
            field for field, name in zip(self.metadata.spec().fields, self.names, strict=True) if name is not None
        ]
        counts = [_count_of_values(field.transform, schema.find_type(field.source_id)) for field in written]
        known = [count for count in counts if count is not None]
        return known if known and len(known) == len(counts) else None

    def partition(self, folders: Sequence[str], location: str, storage: Storage) -> tuple[Value | None, ...]:
        """The partition tuple of a file that lies in these folders."""
        texts = dict(folder.partition("=")[::2] for folder in folders)
        schema = self.metadata.schema()
        return tuple(
            None if name is None else self._value(texts.get(name), field, schema, location, storage)
            for field, name in zip(self.metadata.spec().fields, self.names, strict=True)
        )

    def _value(
        self, text: str | None, field: PartitionField, schema: Schema, location: str, storage: Storage
    ) -> Value | None:
        if text is None:
            raise errors.CorruptFileError(
                location, f"it was written outside of a folder of partition field {field.name!r}"
            )
        source_type = schema.find_type(field.source_id)
        if text.startswith("h"):
            value = _first_value(_path(field.source_id, schema), source_type, location, storage)
            return field.transform.apply(value, source_type)
        return _decoded(text, field.transform.result_type(source_type))


def partition_columns(metadata: md.TableMetadata) -> PartitionColumns:
    """The columns for a table's spec, with names that no column of the table has."""
    schema = metadata.schema()
    prefix = "p"
    while any(field.name.lower().startswith(prefix) for field in schema.fields):
        prefix += "_"
    names = (
        None
        if isinstance(field.transform, tr.VoidTransform)
        or isinstance(schema.find_type(field.source_id), types.UnknownType)
        else f"{prefix}{index}"
        for index, field in enumerate(metadata.spec().fields)
    )
    return PartitionColumns(metadata, tuple(names))


def _count_of_values(transform: tr.Transform, source_type: types.IcebergType) -> int | None:
    match transform:
        case tr.BucketTransform():
            return transform.num_buckets
        case tr.IdentityTransform() if isinstance(source_type, types.BooleanType):
            return 2
        case _:
            return None


def _path(field_id: int, schema: Schema) -> list[str]:
    """The names of a field and of those around it, the column first."""
    return [field.name for field in (*reversed(schema.ancestors(field_id)), schema.fields_by_id[field_id])]


def _source_column(field_id: int, schema: Schema) -> Column:
    """A column of a shaped frame, at the top or nested in structs."""
    name, *inner = _path(field_id, schema)
    return reduce(Column.getField, inner, F.col(quoted_name(name)))


def _encoded(gateway: Gateway, column: Column, field_type: types.IcebergType) -> Column:
    match field_type:
        case types.StringType() | types.BinaryType():
            short = F.concat(F.lit("v"), F.hex(column))
            long = F.concat(F.lit("h"), F.sha2(column.cast("binary"), 256))
            return F.when(F.octet_length(column) <= F.lit(_LONGEST), short).when(column.isNotNull(), long)
        case types.BooleanType():
            return column.cast("int")
        case types.FloatType() | types.DoubleType():
            return _raw_bits(gateway, column, field_type)
        case types.DecimalType():
            return column.cast("string")
        case _:
            return count_of(gateway, column, field_type, TypeMapping())


def _decoded(text: str, field_type: types.IcebergType) -> Value | None:
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


def _first_value(names: list[str], field_type: types.IcebergType, location: str, storage: Storage) -> Value | None:
    """The value of a column in the first row of a file, whose rows all have the same partition value."""
    file = pq.ParquetFile(storage.open_input(location))
    batch = next(file.iter_batches(batch_size=1, columns=[".".join(names)]))
    array = batch.column(0)
    for name in names[1:]:
        array = array.field(name)
    return mf.to_internal(array, field_type)[0]
