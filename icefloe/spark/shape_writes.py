"""Which shapes Spark's own Parquet writer can write, and how it is made to.

Rows come to it with shapes as bytes, and they stay the bytes that they are. What a class of ours adds is in Java: the type of
the column, the box of each row group, and that nothing but whole ISO WKB is written. Spark's own type for geometries does not
do: its writer writes other bytes than it was given (little-endian ones, and without what follows a shape's end), refuses shapes
that tables may have (open rings, infinite coordinates, lines of one point), and knows few coordinate systems.

Geographies are left to our writer: their boxes must cover great circles, which is computed nowhere in Java.
"""

from base64 import b64encode

from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession

from icefloe.schema import EWKB_HINT, Schema, types
from icefloe.spark.gateway import Gateway, is_at_least
from icefloe.spark.jvm import door

FIRST_WITH_SHAPES = (4, 1)
"""The first Spark whose Parquet library knows geometries."""


def why_no_shapes(spark: SparkSession) -> str | None:
    """Why the writer of a classic session cannot write geometries; None if it can."""
    if not is_at_least(spark, FIRST_WITH_SHAPES):
        return f"the Parquet library of Spark {spark.version} knows no geometries"
    if _entry(spark) is None:
        return "geometries reach Spark's writer through Java classes of ours, which are not in use"
    return None


def with_shapes(spark: SparkSession, schema: Schema, inner: JavaObject | None) -> JavaObject | None:
    """A Parquet format that also writes the geometries of a schema; `inner`, where None is Spark's own, if it has none."""
    columns = [
        ":".join((str(field_id), _encoded(f"column {schema.names_by_id[field_id]!r}"), _crs(field.field_type)))
        for field_id, field in schema.fields_by_id.items()
        if isinstance(field.field_type, types.GeometryType)
    ]
    if not columns:
        return inner
    entry = _entry(spark)
    if entry is None:
        raise AssertionError("without the Java classes, our own writer writes geometries")
    parquet = Gateway(spark).jvm.org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat
    return entry.shapes(parquet() if inner is None else inner, ",".join(columns), EWKB_HINT)


def _entry(spark: SparkSession) -> JavaObject | None:
    return door.entry(spark, "shape_writes", in_tasks=True)


def _crs(field_type: types.GeometryType) -> str:
    """The CRS, unless it is the default, which files do not name."""
    return "" if field_type.crs == types.DEFAULT_CRS else _encoded(field_type.crs)


def _encoded(text: str) -> str:
    return b64encode(text.encode()).decode()
