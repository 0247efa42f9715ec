"""Scans that Arrow reads, planned when a query runs: by the columns that it asks for, and by its filters.

Spark asks a relation of ours (icefloe/spark/jvm/lazy_rows.java) for the rows, and filters them again.
"""

import logging
from dataclasses import replace

from py4j.java_gateway import JavaObject
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField, StructType

from icefloe.planning import ALL_COLUMNS, TableScan
from icefloe.schema import types
from icefloe.spark.arrow_engine import arrow_frame
from icefloe.spark.gateway import Gateway, Returned, items
from icefloe.spark.jvm import door
from icefloe.spark.native_read import total_size
from icefloe.spark.predicates import table_filter
from icefloe.spark.types import TypeMapping, user_schema
from icefloe.spark.user_side import quoted_name

logger = logging.getLogger("icefloe.spark")


def lazy_arrow_frame(spark: SparkSession, scan: TableScan, name: str, mapping: TypeMapping) -> DataFrame:
    """The rows of a scan, read by executors with Arrow; planned at once where Java classes of ours are not in use."""
    is_plain = scan.limit is None and scan.planner is None and not scan.whole_files
    entry = door.entry(spark, "lazy_rows") if is_plain else None
    if entry is None:
        return arrow_frame(spark, scan, mapping)
    gateway = Gateway(spark).callbacks()
    shown = user_schema(scan.projection(), mapping)
    schema = StructType([StructField(field.name, field.dataType, True, field.metadata) for field in shown.fields])
    snapshot = scan.snapshot()
    size = 0 if snapshot is None else total_size(snapshot)
    plan = entry.plan(
        spark._jsparkSession, gateway.type(schema), _key(scan, name), size, LazyRows(spark, scan, mapping)
    )
    return gateway.frame_of(plan)


def _key(scan: TableScan, name: str) -> str:
    """What is equal for scans of equal rows."""
    snapshot = scan.snapshot()
    chosen = None if snapshot is None else snapshot.snapshot_id
    columns = [field.name for field in scan.projection().fields]
    state = f"{scan.metadata.table_uuid}, {scan.metadata.last_updated_ms}, {chosen}, {scan.schema.schema_id}"
    return f"icefloe {name} of {state}, {columns}, {scan.bound_filter}"


class LazyRows:
    """What Spark calls when a query runs: a function from columns and filters to rows."""

    def __init__(self, spark: SparkSession, scan: TableScan, mapping: TypeMapping) -> None:
        self._spark = spark
        self._scan = scan
        self._mapping = mapping
        self._returned = Returned()

    def apply(self, columns: JavaObject, filters: JavaObject) -> JavaObject:
        """The rows that may match, which Spark filters again, as an RDD."""
        try:
            names = [str(column.name()) for column in items(columns)]
            fields = {field.name: field for field in self._scan.schema.fields}
            scan = self._scan.filter(table_filter(items(filters), fields))
            if scan.selected_fields == ALL_COLUMNS:
                scan = replace(scan, selected_fields=tuple(names or _cheapest(fields)))
            frame = arrow_frame(self._spark, scan, self._mapping).select(*map(quoted_name, names))
            return self._returned(frame._jdf.queryExecution().toRdd())
        except Exception:
            logger.exception("planning of %s failed", self._scan.table_name)
            raise

    class Java:
        """What py4j makes of it."""

        implements = ("java.util.function.BiFunction",)


def _cheapest(fields: dict[str, types.NestedField]) -> list[str]:
    """A column by which rows can be counted; all of them if none is simple."""
    simple = (name for name, field in fields.items() if isinstance(field.field_type, types.PrimitiveType))
    return [first] if (first := next(simple, None)) is not None else list(fields)
