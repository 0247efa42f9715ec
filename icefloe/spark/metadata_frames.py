"""Metadata tables as DataFrames: rows are read when a query runs, only those columns and manifests that it needs.

Spark asks a relation of ours (icefloe/spark/jvm/lazy_rows.java) for the rows. Without Java, columns and filters do not reach them.
"""

import logging
from dataclasses import replace

from py4j.java_gateway import JavaObject
from pyspark.sql import DataFrame, SparkSession

from icefloe.inspect import MetadataScan
from icefloe.schema import schema_to_arrow, types
from icefloe.spark.gateway import Gateway, Returned, items
from icefloe.spark.jvm import door
from icefloe.spark.metadata_rows import rows_frame, whole_frame
from icefloe.spark.metadata_types import spark_schema
from icefloe.spark.predicates import table_filter

logger = logging.getLogger("icefloe.spark")

_ROW_BYTES = 500
"""About what a row of a metadata table takes, of all columns."""
_FEW_ROWS = 2000
_TOTALS = ("total-data-files", "total-delete-files")


def metadata_frame(spark: SparkSession, scan: MetadataScan, name: str) -> DataFrame:
    """The rows of a metadata table; `name` is what plans show."""
    entry = door.entry(spark, "lazy_rows")
    if entry is None:
        return whole_frame(spark, scan)
    gateway = Gateway(spark).callbacks()
    schema = spark_schema(schema_to_arrow(scan.schema, ids=False))
    version = f"{scan.metadata.table_uuid}, {scan.metadata_location}, {scan.metadata.last_updated_ms}"
    key = f"icefloe {name} of {version}, {scan.snapshot_id}, {scan.ref}, {scan.as_of}"
    plan = entry.plan(spark._jsparkSession, gateway.type(schema), key, _size(scan), LazyRows(spark, scan))
    return gateway.frame_of(plan)


def _size(scan: MetadataScan) -> int:
    """What Spark takes a metadata table for, so that small ones are broadcast in joins, and large ones are not."""
    snapshot = scan.metadata.current_snapshot()
    summary = {} if snapshot is None or snapshot.summary is None else snapshot.summary.properties
    totals = [summary.get(name, "") for name in _TOTALS]
    return _ROW_BYTES * max(_FEW_ROWS, *(int(total) for total in totals if total.isdigit()), 1)


class LazyRows:
    """What Spark calls when a query runs: a function from columns and filters to rows."""

    def __init__(self, spark: SparkSession, scan: MetadataScan) -> None:
        self._spark = spark
        self._scan = scan
        self._returned = Returned()

    def apply(self, columns: JavaObject, filters: JavaObject) -> JavaObject:
        """The rows that may match, which Spark filters again, as an RDD."""
        try:
            names = [str(column.name()) for column in items(columns)]
            fields = {field.name: field for field in self._scan.schema.fields}
            where = table_filter(items(filters), fields)
            cheap = next(name for name, field in fields.items() if isinstance(field.field_type, types.PrimitiveType))
            scan = replace(self._scan, selected_fields=names or [cheap], row_filter=where)
            frame = rows_frame(self._spark, scan, names)
            return self._returned(frame._jdf.queryExecution().toRdd())
        except Exception:
            logger.exception("reading of the metadata table %s failed", self._scan.name)
            raise

    class Java:
        """What py4j makes of it."""

        implements = ("java.util.function.BiFunction",)
