"""Which engine reads a scan on Spark: Spark's own Parquet reader wherever that gives the same rows, and Arrow elsewhere."""

from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame

from icefloe import properties as props
from icefloe.errors import InvalidPropertyError, StateError
from icefloe.planning import TableScan
from icefloe.schema import Schema, reserved, types
from icefloe.spark.arrow_read import arrow_frame
from icefloe.spark.gateway import Gateway, is_at_least
from icefloe.spark.inner_names import inner_columns
from icefloe.spark.native_read import ROW_INDEX, NativeScan
from icefloe.spark.scan_plan import SnapshotShape, shape_of
from icefloe.spark.types import mapping_of

READ_ENGINE = "read.engine"
_READS_SHREDDED = "spark.sql.variant.allowReadingShredded"
FIRST_WITH_VARIANT_MARKS = (4, 1)
"""The first Spark whose Parquet library knows variants and geometries."""
FIRST_WITH_NESTED_IDS = (4, 1)
"""The first Spark that finds the types of fields inside of structs by field id, and knows when a struct is null without them."""
NATIVE = "native"
ARROW = "arrow"


def read_scan(spark: Any, scan: TableScan, name: str | None = None) -> DataFrame:
    """The rows of a scan as a lazy DataFrame; `read.engine` of its options, or of the table, chooses the reader."""
    native = native_scan(spark, scan, name)
    return arrow_frame(spark, scan, mapping_of(spark)) if native is None else native.frame()


def native_scan(spark: Any, scan: TableScan, name: str | None = None) -> NativeScan | None:
    """The scan with Spark's own reader; None if Arrow must read it."""
    asked = scan.options.get(READ_ENGINE) or scan.metadata.properties.get(READ_ENGINE)
    if asked not in (None, NATIVE, ARROW):
        raise InvalidPropertyError(f"option {READ_ENGINE!r} is {asked!r}; it must be {NATIVE} or {ARROW}")
    if asked == ARROW or not is_classic(spark):
        if asked == NATIVE:
            raise StateError("Spark Connect has no JVM at hand, which the native engine needs; leave out read.engine")
        return None
    gateway = Gateway(spark)
    shape = shape_of(scan)
    obstacle = why_not_native(gateway, scan, shape)
    if obstacle is None:
        return NativeScan(gateway, scan, shape, name or str(scan.metadata.table_uuid), mapping_of(spark))
    if asked == NATIVE:
        raise StateError(f"Spark's own reader cannot read this: {obstacle}; the arrow engine can")
    return None


def is_classic(spark: Any) -> bool:
    """Whether the session has a JVM that Python can reach."""
    return getattr(spark, "_jsparkSession", None) is not None if not _is_connect(spark) else False


def _is_connect(spark: Any) -> bool:
    return ".connect." in type(spark).__module__


def why_not_native(gateway: Gateway, scan: TableScan, shape: SnapshotShape) -> str | None:
    """What Spark's own reader would not read as the spec says; None if nothing."""
    others = sorted(shape.formats - {"parquet"})
    if others:
        return f"it has files of format {', '.join(others)}"
    if shape.has_encrypted_files:
        return "it has encrypted files"
    if props.NAME_MAPPING.of(scan.metadata.properties) is not None:
        return "it has a name mapping, so some files may have no field ids"
    if shape.key_deletes and any(field.field_id == reserved.DELETED.field_id for field in scan.projection().fields):
        return "_deleted is selected, and rows are deleted by equality"
    if (key := _dropped_inside(scan, shape)) is not None:
        return f"rows are deleted by field {key}, which was dropped from a struct that is still there"
    if any(field.name.lower() == ROW_INDEX for schema in scan.metadata.schemas for field in schema.fields):
        return f"a column is or was called {ROW_INDEX}, which is what Spark's reader calls the positions of rows"
    if (default := _strange_default(scan.schema)) is not None:
        return f"the initial default of {default!r} is not of a column at the top"
    if (promoted := _promoted_to_nanos(scan)) is not None:
        return f"column {promoted!r} was a date and is a timestamp of nanoseconds"
    if (strange := _unknown_type(gateway, scan)) is not None:
        return f"files may have columns of type {strange}, at which the Parquet library of Spark {gateway.spark.version} fails"
    if (shredded := _perhaps_shredded(gateway, scan)) is not None:
        return f"column {shredded!r} may be shredded, and {_READS_SHREDDED} is false"
    if (nested := _changed_inside(gateway, scan)) is not None:
        return f"fields of column {nested!r} were added or renamed, which Spark {gateway.spark.version} reads by name"
    return _unknown_store(gateway, scan)


def _changed_inside(gateway: Gateway, scan: TableScan) -> str | None:
    """A nested column that Spark 4.0 may read wrongly: it knows the types of fields inside by their names in a file, and takes
    a struct of which a file has none of the fields asked for to be null."""
    if is_at_least(gateway.spark, FIRST_WITH_NESTED_IDS):
        return None
    inside = {field.field_id: field for field in inner_columns(scan.schema.fields, scan.metadata).fields}
    for column in scan.schema.fields:
        if isinstance(column.field_type, types.NestedType) and (
            inside[column.field_id] != column or _has_grown(column, scan)
        ):
            return column.name
    return None


def _has_grown(column: types.NestedField, scan: TableScan) -> bool:
    """Whether a struct in the column was there before one of its fields."""
    return any(
        field.field_id not in schema.fields_by_id and scan.schema.parents.get(field.field_id) in schema.fields_by_id
        for schema in scan.metadata.schemas
        for field in types.walk_fields([column])
    )


def _unknown_type(gateway: Gateway, scan: TableScan) -> str | None:
    """A type of some column, even a dropped one, whose mark in a file Parquet's library before 1.16 cannot read past."""
    if is_at_least(gateway.spark, FIRST_WITH_VARIANT_MARKS):
        return None
    for schema in scan.metadata.schemas:
        for field in types.walk_fields(schema.fields):
            if isinstance(field.field_type, types.VariantType | types.GeometryType | types.GeographyType):
                return str(field.field_type)
    return None


def _perhaps_shredded(gateway: Gateway, scan: TableScan) -> str | None:
    """A variant, if the session forbids Spark to read one whose fields are columns of a file."""
    for field in types.walk_fields(scan.schema.fields):
        if isinstance(field.field_type, types.VariantType):
            is_read = str(gateway.spark.conf.get(_READS_SHREDDED)).lower() == "true"
            return None if is_read else scan.schema.names_by_id[field.field_id]
    return None


def _dropped_inside(scan: TableScan, shape: SnapshotShape) -> int | None:
    for field_id in {key for group in shape.key_deletes for key in group.field_ids}:
        if field_id not in scan.schema.fields_by_id and any(
            field_id in schema.parents for schema in scan.metadata.schemas
        ):
            return field_id
    return None


def _strange_default(schema: Schema) -> str | None:
    top = {field.field_id for field in schema.fields}
    for field in types.walk_fields(schema.fields):
        if field.initial_default is not None and (
            field.field_id not in top or isinstance(field.field_type, types.NestedType)
        ):
            return schema.names_by_id[field.field_id]
    return None


def _promoted_to_nanos(scan: TableScan) -> str | None:
    nanos = [field for field in types.walk_fields(scan.schema.fields) if _is_nanos(field)]
    for field in nanos:
        for schema in scan.metadata.schemas:
            before = schema.fields_by_id.get(field.field_id)
            if before is not None and isinstance(before.field_type, types.DateType):
                return scan.schema.names_by_id[field.field_id]
    return None


def _is_nanos(field: types.NestedField) -> bool:
    return isinstance(field.field_type, types.TimestampNanoType | types.TimestamptzNanoType)


def _unknown_store(gateway: Gateway, scan: TableScan) -> str | None:
    """Whether Spark's Hadoop knows the scheme of the table's files."""
    location = scan.metadata.location or ""
    scheme, colon, _ = location.partition(":")
    if not colon or "/" in scheme:
        return None
    if scheme in _KNOWN_TO_ALL:
        return None
    configuration = gateway.spark._jsparkSession.sessionState().newHadoopConf()
    try:
        gateway.jvm.org.apache.hadoop.fs.FileSystem.getFileSystemClass(scheme, configuration)
    except Py4JError:
        return f"Spark's Hadoop knows no file system for {scheme}:"
    return None


_KNOWN_TO_ALL = {"file", "hdfs"}
"""Part of every Hadoop."""
