"""What Spark's optimizer learns of a table from its statistics file: how many rows, and distinct values of columns.

Spark asks a relation for no more than its size, unless it is one of a catalog; so the relation gets the entry of a catalog that
has these numbers. They count only where the cost-based optimizer, or the statistics of plans, are switched on.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession

from icefloe.formats.theta_codec import THETA_BLOB
from icefloe.inspect import distinct_count
from icefloe.metadata import TableMetadata, summary as totals
from icefloe.schema import NestedField
from icefloe.spark.gateway import Gateway
from icefloe.spark.scan_statistics import ScanStatistics
from icefloe.spark.spark_sessions import is_on

REPORT = "spark.sql.iceberg.report-column-stats"
"""Java's setting: whether the optimizer is told of distinct values."""

_USERS = ("spark.sql.cbo.enabled", "spark.sql.cbo.planStats.enabled")
_CATALOG = "org.apache.spark.sql.catalyst.catalog"
_VERSION = "2"
"""Of the text form of a column's statistics; values are written as they are."""
_REQUIRED_ARGUMENTS = 4
_STATISTICS_ARGUMENT = 12


@dataclass(frozen=True, slots=True)
class TableCounts:
    """The rows of a snapshot, and distinct values by field id."""

    rows: int
    distinct: Mapping[int, int]


def counts_of(metadata: TableMetadata, snapshot_id: int, spark: SparkSession) -> TableCounts | None:
    """What is known of a snapshot, if the session's optimizer makes use of it; None if not, or if nothing is known."""
    file = next((file for file in metadata.statistics if file.snapshot_id == snapshot_id), None)
    summary = metadata.snapshot(snapshot_id).summary
    rows = None if summary is None else summary.get(totals.TOTAL_RECORDS)
    if file is None or rows is None or not rows.isdigit():
        return None
    counts = {
        blob.fields[0]: count
        for blob in file.blob_metadata
        if blob.blob_type == THETA_BLOB and (count := distinct_count(blob.properties.get("ndv"))) is not None
    }
    is_used = any(is_on(spark, key, "false") for key in _USERS) and is_on(spark, REPORT, "true")
    return TableCounts(int(rows), counts) if counts and is_used else None


def with_counts(
    gateway: Gateway, relation: JavaObject, name: str, counts: TableCounts, columns: Mapping[str, NestedField]
) -> JavaObject:
    """The plan of a relation that knows the counts; `columns` are those that it has, by name."""
    statistics = {
        column: _column(gateway, counts.distinct[field.field_id], field.required)
        for column, field in columns.items()
        if field.field_id in counts.distinct
    }
    table = _catalog_table(gateway, name, relation.schema(), _statistics(gateway, counts.rows, statistics))
    companion = getattr(gateway.jvm.org.apache.spark.sql.execution.datasources, "LogicalRelation$")
    return getattr(companion, "MODULE$").apply(relation, table)


def catalog_entry(
    gateway: Gateway,
    name: str,
    found: ScanStatistics,
    columns: Mapping[str, NestedField],
    distinct: Mapping[int, int],
) -> JavaObject:
    """The entry of a catalog for the files that are left of a scan; `distinct` are the distinct values of the table."""
    told = found.columns.items() if is_on(gateway.spark, REPORT, "true") else ()
    texts = {
        column: one.texts(columns[column], found.rows, distinct.get(columns[column].field_id)) for column, one in told
    }
    known = {column: _parsed(gateway, text) for column, text in texts.items() if text is not None}
    schema = gateway.jvm.org.apache.spark.sql.types.StructType()
    return _catalog_table(gateway, name, schema, _statistics(gateway, found.rows, known))


def _statistics(gateway: Gateway, count: int, columns: Mapping[str, JavaObject]) -> JavaObject:
    # py4j turns Scala's numbers into Python's, so that they never leave the JVM here.
    rows = _column(gateway, count, False).distinctCount()
    size = gateway.jvm.scala.jdk.javaapi.CollectionConverters.asJava(rows.toList())
    arguments = gateway.jvm.java.util.ArrayList(size)
    arguments.add(rows)
    arguments.add(gateway.map(dict(columns)))
    [constructor] = gateway.load_class(f"{_CATALOG}.CatalogStatistics").getConstructors()
    return constructor.newInstance(arguments.toArray())


def _column(gateway: Gateway, distinct: int, required: bool) -> JavaObject:
    """A column's statistics; a required column has no nulls."""
    return _parsed(gateway, {"distinctCount": str(distinct)} | ({"nullCount": "0"} if required else {}))


def _parsed(gateway: Gateway, texts: Mapping[str, str]) -> JavaObject:
    """A column's statistics, made of their text form."""
    named = {"c.version": _VERSION, **{f"c.{key}": text for key, text in texts.items()}}
    catalog = gateway.jvm.org.apache.spark.sql.catalyst.catalog
    return catalog.CatalogColumnStat.fromMap("t", "c", gateway.map(named)).get()


def _catalog_table(gateway: Gateway, name: str, schema: JavaObject, statistics: JavaObject) -> JavaObject:
    """An entry of a catalog with nothing but a name, a schema and statistics; its other fields differ between Sparks."""
    catalyst = gateway.jvm.org.apache.spark.sql.catalyst
    catalog = catalyst.catalog
    [constructor] = gateway.load_class(f"{_CATALOG}.CatalogTable").getConstructors()
    defaults = range(_REQUIRED_ARGUMENTS + 1, constructor.getParameterCount() + 1)
    arguments = [
        catalyst.TableIdentifier(name),
        catalog.CatalogTableType.EXTERNAL(),
        catalog.CatalogStorageFormat.empty(),
        schema,
        *(getattr(catalog.CatalogTable, f"apply$default${number}")() for number in defaults),
    ]
    arguments[_STATISTICS_ARGUMENT] = gateway.jvm.scala.Option.apply(statistics)
    return catalog.CatalogTable(*arguments)
