"""Rows along a curve on Spark: ranged over tasks and sorted by a key, which is all that comes from Python.

Only the columns of the curve go through Python, where this version of Spark can do that; the others stay with Spark.
"""

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import Column, DataFrame, functions
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from icefloe.maintenance import SAMPLE_ROWS, ByteKeys, CurveOrder, RankKeys, RowOrder
from icefloe.spark.maintenance.rewriting import ARRANGED

_KEY = "icefloe curve key"


def along_curve(frame: DataFrame, order: RowOrder, tasks: int) -> DataFrame:
    """The rows in so many tasks, each of which has a part of the curve."""
    assert isinstance(order, CurveOrder)
    keys = order.keys(_sample(frame, order) if order.needs_sample else None)
    keyed = _with_key(frame, order, keys)
    return keyed.repartitionByRange(tasks, _KEY).sortWithinPartitions(_KEY).drop(_KEY)


def _sample(frame: DataFrame, order: CurveOrder) -> pa.Table:
    """Rows that are chosen at random, by one job."""
    columns = frame.select(*map(_quoted, order.top_columns))
    return columns.orderBy(functions.rand(7)).limit(SAMPLE_ROWS).toArrow()


def _with_key(frame: DataFrame, order: CurveOrder, keys: ByteKeys | RankKeys) -> DataFrame:
    key_type = BinaryType() if isinstance(keys, ByteKeys) else LongType()
    names = list(order.top_columns)

    def key_of(*columns: pa.Array) -> pa.Array:
        made = keys.of(pa.table(list(columns), names=names))
        return made.cast(pa.binary()) if isinstance(keys, ByteKeys) else made

    if hasattr(functions, "arrow_udf"):
        return frame.withColumn(_KEY, functions.arrow_udf(key_of, key_type)(*map(_quoted, names)))

    def keyed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            key = key_of(*(batch.column(name) for name in names))
            yield batch.append_column(_KEY, key)

    return frame.mapInArrow(keyed, StructType([*frame.schema.fields, StructField(_KEY, key_type)]))


def _quoted(name: str) -> Column:
    return functions.col("`" + name.replace("`", "``") + "`")


ARRANGED[CurveOrder] = along_curve
