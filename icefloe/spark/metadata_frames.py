"""Metadata tables as DataFrames: rows are read when a query runs, only those columns and manifests that it needs.

Spark asks a relation of ours (icefloe/spark/jvm/lazy_rows.java) for the rows. Without Java, all rows are read at once.
"""

import logging
from dataclasses import replace

import pyarrow as pa
from py4j.java_gateway import JavaObject
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from icefloe.inspect import MetadataScan
from icefloe.schema import schema_to_arrow, types
from icefloe.spark.gateway import Gateway, Returned, items
from icefloe.spark.jvm import door
from icefloe.spark.predicates import table_filter

logger = logging.getLogger("icefloe.spark")

_SIZE = 1 << 20
"""What Spark takes a metadata table for: small enough to be broadcast."""


def metadata_frame(spark: SparkSession, scan: MetadataScan, name: str) -> DataFrame:
    """The rows of a metadata table; `name` is what plans show."""
    entry = door.entry(spark, "lazy_rows")
    if entry is None:
        return _frame(spark, scan.to_arrow())
    gateway = Gateway(spark).callbacks()
    schema = from_arrow_schema(schema_to_arrow(scan.schema, ids=False), prefer_timestamp_ntz=True)
    version = f"{scan.metadata.table_uuid}, {scan.metadata_location}, {scan.metadata.last_updated_ms}"
    key = f"icefloe {name} of {version}, {scan.snapshot_id}, {scan.ref}, {scan.as_of}"
    plan = entry.plan(spark._jsparkSession, gateway.type(schema), key, _SIZE, LazyRows(spark, scan))
    return gateway.frame_of(plan)


def _frame(spark: SparkSession, rows: pa.Table) -> DataFrame:
    # Left to itself, PySpark takes times without a zone for times in that of the session, some of which do not exist.
    schema = from_arrow_schema(rows.schema, prefer_timestamp_ntz=True)
    # It cannot infer the type of a column without chunks.
    return spark.createDataFrame(rows if rows.num_rows else rows.schema.empty_table(), schema)


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
            rows = replace(self._scan, selected_fields=names or [cheap], row_filter=where).to_arrow()
            frame = _frame(self._spark, rows.select(names)) if names else self._spark.range(rows.num_rows).select()
            return self._returned(frame._jdf.queryExecution().toRdd())
        except Exception:
            logger.exception("reading of the metadata table %s failed", self._scan.name)
            raise

    class Java:
        """What py4j makes of it."""

        implements = ("java.util.function.BiFunction",)
