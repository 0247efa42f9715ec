"""How rows are spread over the tasks of a write, and ordered in them: `write.distribution-mode` and the table's sort order.

Without a mode, sorted tables get `range`, partitioned ones `hash`, all others `none`, as in the Java library. Rows are moved by
Spark's rebalancing: adaptive execution then joins small parts and splits large ones.
"""

from dataclasses import dataclass
from typing import Any

from pyspark.sql import (
    Column,
    DataFrame,
    functions as F,  # noqa: N812  # its usual name
    types as spark_types,
)

from icefloe import properties as props
from icefloe.metadata import TableMetadata
from icefloe.partitioning import NullOrder, SortDirection, SortField, SortOrder, transforms as tr
from icefloe.schema import DoubleType, FloatType, IcebergType, Schema, UnknownType
from icefloe.spark.gateway import Gateway
from icefloe.spark.partition_columns import source_column
from icefloe.spark.transforms import transform_column

FANOUT = "write.spark.fanout.enabled"
_MOVED_PER_STORED = 3
"""Bytes that are moved for one byte in a Parquet file, about; too many make larger parts, which are cut by rows again."""


@dataclass(frozen=True)
class Distribution:
    """The mode of a write after all rules; `order` has only keys that rows can be sorted by."""

    mode: str
    order: SortOrder
    fanout: bool

    @property
    def is_sorted(self) -> bool:
        """Whether rows of a file are in the table's order."""
        return bool(self.order.fields)


def distribution_of(metadata: TableMetadata) -> Distribution:
    """What the table's properties, spec and order ask for."""
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
    frame: DataFrame,
    metadata: TableMetadata,
    distribution: Distribution,
    partition: list[str],
    *,
    sort: bool = True,
) -> DataFrame:
    """The shaped frame, spread and, unless the writer itself sorts, sorted; `partition` names the partition columns."""
    gateway = Gateway(frame.sparkSession)
    keys = [F.col(name).asc_nulls_first() for name in partition]
    order = sort_keys(gateway, distribution.order, metadata.schema())
    if distribution.mode == "hash" and keys:
        frame = _rebalanced(gateway, frame, keys, metadata, by_hash=True)
    elif distribution.mode == "range" and (keys or order):
        frame = _rebalanced(gateway, frame, [*keys, *order], metadata, by_hash=False)
    return frame.sortWithinPartitions(*keys, *order) if order and sort else frame


def sort_keys(gateway: Gateway, order: SortOrder, schema: Schema) -> list[Column]:
    """The table's sort order as columns of a shaped frame."""
    return [
        _directed(_sort_key(gateway, field, schema), field)
        for field in order.fields
        if not isinstance(schema.find_type(field.source_id), UnknownType)
    ]


def _rebalanced(
    gateway: Gateway, frame: DataFrame, keys: list[Column], metadata: TableMetadata, *, by_hash: bool
) -> DataFrame:
    # A sort by the keys resolves them; the sort itself is not used.
    sort_orders = frame.sortWithinPartitions(*keys)._jdf.queryExecution().analyzed().order()
    orders = [sort_orders.apply(index) for index in range(sort_orders.size())]
    target = props.WRITE_TARGET_FILE_SIZE_BYTES.of(metadata.properties)
    advised = min(target * _MOVED_PER_STORED, 2**62)
    # A small number would come back from Python as an Integer, so the Long is created and wrapped in the JVM.
    boxed = gateway.jvm.java.util.stream.LongStream.range(advised, advised + 1).boxed().findFirst()
    plan = gateway.jvm.org.apache.spark.sql.catalyst.plans.logical.RebalancePartitions(
        gateway.seq(order.child() if by_hash else order for order in orders),
        frame._jdf.queryExecution().analyzed(),
        gateway.jvm.scala.Option.empty(),
        gateway.jvm.scala.jdk.javaapi.OptionConverters.toScala(boxed),
    )
    session = frame._jdf.sparkSession()
    return DataFrame(gateway.jvm.org.apache.spark.sql.classic.Dataset.ofRows(session, plan), frame.sparkSession)


def _sort_key(gateway: Gateway, field: SortField, schema: Schema) -> Column:
    field_type = schema.find_type(field.source_id)
    key = transform_column(gateway, field.transform, source_column(field.source_id, schema), field_type)
    return _total_order(gateway, key, field.transform.result_type(field_type))


def _total_order(gateway: Gateway, key: Column, field_type: IcebergType) -> Column:
    """Floats as numbers in the spec's order, in which -0.0 is below 0.0 (spec: Sorting); other keys as they are."""
    if isinstance(field_type, FloatType):
        return _signed(gateway.static_invoke("java.lang.Float", "floatToRawIntBits", _INT, key), 31, 2**31 - 1)
    if isinstance(field_type, DoubleType):
        return _signed(gateway.static_invoke("java.lang.Double", "doubleToRawLongBits", _LONG, key), 63, 2**63 - 1)
    return key


def _signed(bits: Column, shift: int, mask: int) -> Column:
    return bits.bitwiseXOR(F.shiftright(bits, shift).bitwiseAND(F.lit(mask)))


def _directed(key: Column, field: SortField) -> Column:
    first = field.null_order is NullOrder.NULLS_FIRST
    if field.direction is SortDirection.ASC:
        return key.asc_nulls_first() if first else key.asc_nulls_last()
    return key.desc_nulls_first() if first else key.desc_nulls_last()


_INT: Any = spark_types.IntegerType()
_LONG: Any = spark_types.LongType()
