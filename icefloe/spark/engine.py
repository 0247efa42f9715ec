"""Which code reads and writes a table on Spark: Spark's own Parquet reader and writer wherever that gives the same rows
and files, and Arrow elsewhere."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from icefloe import expressions as ex, properties as props
from icefloe.data import WriteRequest, data_folder
from icefloe.errors import InvalidPropertyError, StateError
from icefloe.expressions import Expression
from icefloe.formats.arrow_types import stored_schema
from icefloe.manifests import DataFile, ManifestColumns, is_encrypted
from icefloe.metadata import TableMetadata
from icefloe.planning import ChangelogScan, Planner, TableScan
from icefloe.rows import Branch, MatchedRows
from icefloe.schema import Schema, reserved, types
from icefloe.spark.arrow_engine import arrow_frame, write_through_arrow
from icefloe.spark.changes import read_changes
from icefloe.spark.gateway import Gateway, is_at_least
from icefloe.spark.hadoop_access import is_short_lived, is_vended, why_not_by_hadoop
from icefloe.spark.inner_names import inner_columns
from icefloe.spark.jvm import door
from icefloe.spark.lazy_arrow import lazy_arrow_frame
from icefloe.spark.maintenance.engine import SparkMaintenance
from icefloe.spark.native_read import ROW_INDEX, NativeScan, takes_keys
from icefloe.spark.native_write import CODECS, write_natively
from icefloe.spark.row_positions import Gathered, gathered
from icefloe.spark.scan_plan import SnapshotShape, shape_of, shape_of_entries
from icefloe.spark.shape_writes import why_no_shapes
from icefloe.spark.shaping import SIMPLE_TYPES, error_in
from icefloe.spark.spark_sessions import is_classic, is_on
from icefloe.spark.spread_plans import spread_of
from icefloe.spark.types import mapping_for, mapping_of, schema_from_spark
from icefloe.storage import parse_location

READ_ENGINE = "read.engine"
NATIVE = "native"
ARROW = "arrow"
_READS_SHREDDED = "spark.sql.variant.allowReadingShredded"
FIRST_WITH_VARIANT_MARKS = (4, 1)
"""The first Spark whose Parquet library knows variants and geometries."""
FIRST_WITH_NESTED_IDS = (4, 1)
"""The first Spark that finds the types of fields inside of structs by field id, and knows without them when a struct is null."""
_KNOWN_TO_ALL = ("file", "hdfs")
"""Schemes that every Hadoop knows."""
_WRITTEN_TYPES = (*SIMPLE_TYPES, types.VariantType, types.GeometryType, types.StructType)


def with_lineage(schema: Schema) -> Schema:
    """The schema with the columns of row lineage, for whoever writes rows that have ids already."""
    return Schema(
        *schema.fields,
        *reserved.ROW_LINEAGE_COLUMNS,
        schema_id=schema.schema_id,
        identifier_field_ids=schema.identifier_field_ids,
    )


@dataclass(frozen=True)
class SparkEngine:
    """DataFrames of a Spark session: written by Spark's own writer where it can, else by ours on the executors."""

    places: Gathered | None = None
    """Takes in where the rows of a write were, which are columns of its frame then; see `notes_places`."""

    def accepts(self, data: object) -> bool:
        """Whether the data is a Spark DataFrame."""
        return isinstance(data, DataFrame)

    def find(self, chosen: DataFrame, branch: Branch, row_filter: Expression) -> list[MatchedRows]:
        """The rows of a frame by file and position; they must all match the filter."""
        return branch.located(gathered(chosen).chosen, row_filter)

    def write(self, data: DataFrame, request: WriteRequest) -> list[DataFile]:
        """Write the frame as data files of the table. On an error, no file is left behind."""
        if request.lineage:
            metadata = request.metadata
            others = (schema for schema in metadata.schemas if schema.schema_id != metadata.current_schema_id)
            widened = replace(metadata, schemas=(*others, with_lineage(metadata.schema())))
            request = replace(request, metadata=widened)
        try:
            if _writes_natively(data.sparkSession, request):
                return write_natively(data, request, self.places)
            return write_through_arrow(data, request)
        except (PySparkException, Py4JJavaError) as problem:
            error = error_in(problem)
            if error is None:
                raise
            raise error from problem

    def scan(self, scan: TableScan, session: SparkSession) -> DataFrame:
        """The rows of a scan as a lazy DataFrame."""
        return read_scan(session, scan)

    def changes(self, scan: ChangelogScan, session: SparkSession) -> DataFrame:
        """The changes between snapshots as a lazy DataFrame."""
        return read_changes(session, scan)

    def read_schema(self, schema: object) -> Schema:
        """The schema that a `StructType` means."""
        return schema_from_spark(schema)

    def maintenance(self, session: SparkSession | None) -> SparkMaintenance:
        """Maintenance as jobs of a session, or of the active one."""
        active = session or SparkSession.getActiveSession()
        if active is None:
            raise StateError("no Spark session is active; pass one as engine=")
        return SparkMaintenance(active)


def _writes_natively(spark: SparkSession, request: WriteRequest) -> bool:
    by_hadoop = is_classic(spark) and not is_vended(request.storage, request.metadata)
    return by_hadoop and why_not_written(spark, request.metadata) is None


def notes_places(spark: SparkSession, request: WriteRequest) -> bool:
    """Whether a write can note where rows were before."""
    return _writes_natively(spark, request) and door.entry(spark, "row_changes", in_tasks=True) is not None


def read_scan(spark: SparkSession, scan: TableScan, name: str | None = None) -> DataFrame:
    """The rows of a scan as a lazy DataFrame; `read.engine` of its options, or of the table, chooses the reader."""
    spread = spread_of(spark, scan) if is_classic(spark) else None
    scan = scan if spread is None else replace(scan, spread=spread)
    native = native_scan(spark, scan, name)
    if native is not None:
        return native.frame()
    if is_classic(spark) and _unknown_type(Gateway(spark), scan) is not None:
        return lazy_arrow_frame(spark, scan, name or str(scan.metadata.table_uuid), mapping_of(spark))
    return arrow_frame(spark, scan, mapping_of(spark))


def native_scan(
    spark: SparkSession, scan: TableScan, name: str | None = None, shape: SnapshotShape | None = None
) -> NativeScan | None:
    """The scan with Spark's own reader; None if Arrow must read it. `shape` is that of the snapshot, if it is known."""
    engine = scan.options.get(READ_ENGINE) or scan.metadata.properties.get(READ_ENGINE)
    if engine not in (None, NATIVE, ARROW):
        raise InvalidPropertyError(f"option {READ_ENGINE!r} is {engine!r}; it must be {NATIVE} or {ARROW}")
    if engine == ARROW or not is_classic(spark):
        if engine == NATIVE:
            raise StateError("Spark Connect has no JVM at hand, which the native engine needs; leave out read.engine")
        return None
    gateway = Gateway(spark)
    shape = shape_of(scan) if shape is None else shape
    obstacle = _why_not_read(gateway, scan, shape)
    if obstacle is None and engine != NATIVE and is_short_lived(scan.storage, scan.metadata):
        # Spark's own reader could not refresh them.
        return None
    if shape is not None and obstacle is None:
        mapping = mapping_for(spark, (scan.schema, *scan.metadata.schemas))
        return NativeScan(gateway, scan, shape, name or str(scan.metadata.table_uuid), mapping)
    if engine == NATIVE:
        raise StateError(f"Spark's own reader cannot read this: {obstacle}; the arrow engine can")
    return None


def clean_native_scan(
    spark: SparkSession, scan: TableScan, planner: Planner, entries: Iterable[ManifestColumns], name: str
) -> NativeScan | None:
    """The files of a table that a planner chooses, and that no delete concerns, with Spark's own reader; None if Arrow must
    read them. `entries` are those of the files, and `name` tells them from other choices."""
    native = native_scan(spark, scan, name, shape_of_entries(entries))
    return None if native is None else replace(native, scan=replace(scan, planner=planner))


def why_not_written(spark: SparkSession, metadata: TableMetadata) -> str | None:
    """Why Spark's own writer cannot write the table; None if it can.

    It writes geometries, of any CRS, where Java classes of ours are in use that check and annotate them; never geographies.
    """
    if is_encrypted(metadata):
        return "the table is encrypted, and Spark's writer has no way to its keys"
    if props.WRITE_FORMAT.of(metadata.properties) != "parquet":
        return f"files are to be {props.WRITE_FORMAT.of(metadata.properties)}"
    if props.PARQUET_COMPRESSION.of(metadata.properties).lower() not in CODECS:
        return f"Spark has no codec {props.PARQUET_COMPRESSION.of(metadata.properties)!r}"
    if props.OBJECT_STORAGE_ENABLED.of(metadata.properties):
        return f"{props.OBJECT_STORAGE_ENABLED.key} spreads files over folders"
    schema = metadata.schema()
    for field_id, field in schema.fields_by_id.items():
        is_top_unknown = isinstance(field.field_type, types.UnknownType) and field_id not in schema.parents
        if not isinstance(field.field_type, _WRITTEN_TYPES) and not is_top_unknown:
            return f"Spark's writer has no form for column {schema.names_by_id[field_id]!r} of type {field.field_type}"
    if not stored_schema(schema).fields:
        return "no column is stored"
    if (refusal := _shapes_refused(spark, schema)) is not None:
        return refusal
    root = parse_location(data_folder(metadata)).root
    scheme = root.partition(":")[0] if ":" in root else "file"
    if scheme == "memory":
        return "files in memory are those of this process"
    return _unknown_store(Gateway(spark), scheme)


def _shapes_refused(spark: SparkSession, schema: Schema) -> str | None:
    """A sentence if the table has geometries that Spark's writer would not write as they are."""
    for field_id, field in schema.fields_by_id.items():
        if isinstance(field.field_type, types.GeometryType):
            refusal = why_no_shapes(spark)
            return None if refusal is None else f"column {schema.names_by_id[field_id]!r} is a geometry: {refusal}"
    return None


def _why_not_read(gateway: Gateway, scan: TableScan, shape: SnapshotShape | None) -> str | None:
    """What Spark's own reader would not read as the spec says; None if nothing."""
    if is_encrypted(scan.metadata) and not takes_keys(gateway.spark):
        return (
            "the table is encrypted, and keys reach Spark's reader through Java classes of ours, which are not in use"
        )
    if shape is None:
        return "a service plans the scan, and rows may be deleted by equality"
    others = sorted(shape.formats - {"parquet"})
    if others:
        return f"it has files of format {', '.join(others)}"
    if shape.has_encrypted_files and not is_encrypted(scan.metadata):
        return "it has encrypted files"
    if props.NAME_MAPPING.of(scan.metadata.properties) is not None:
        return "it has a name mapping, so some files may have no field ids"
    if shape.key_deletes and any(field.field_id == reserved.DELETED.field_id for field in scan.projection().fields):
        return "_deleted is selected, and rows are deleted by equality"
    if (key := _dropped_inside(scan, shape)) is not None:
        return f"rows are deleted by field {key}, which was dropped from a struct that is still there"
    if any(field.name.lower() == ROW_INDEX for schema in scan.metadata.schemas for field in schema.fields):
        return f"a column is or was called {ROW_INDEX}, which is what Spark's reader calls the positions of rows"
    if (default := _nested_default(scan.schema)) is not None:
        return f"the initial default of {default!r} is not of a column at the top"
    if (promoted := _promoted_to_nanos(scan)) is not None:
        return f"column {promoted!r} was a date and is a timestamp of nanoseconds"
    if (unknown := _unknown_type(gateway, scan)) is not None:
        return f"files may have columns of type {unknown}, at which the Parquet library of Spark {gateway.spark.version} fails"
    if any(isinstance(test.term, ex.BoundExtract) for test in ex.predicates(scan.bound_filter)):
        return "its filter is about what is in variants, which Spark casts by rules of its own"
    if (shredded := _perhaps_shredded(gateway, scan)) is not None:
        return f"column {shredded!r} may be shredded, and {_READS_SHREDDED} is false"
    if (nested := _changed_inside(gateway, scan)) is not None:
        return f"fields of column {nested!r} were added or renamed, which Spark {gateway.spark.version} reads by name"
    if (refusal := why_not_by_hadoop(scan.storage, scan.metadata)) is not None:
        return refusal
    if is_vended(scan.storage, scan.metadata):
        return _unknown_store(gateway, "s3a")
    scheme, colon, _ = (scan.metadata.location or "").partition(":")
    return _unknown_store(gateway, scheme if colon and "/" not in scheme else "file")


def _unknown_store(gateway: Gateway, scheme: str) -> str | None:
    """A sentence if Spark's Hadoop knows no file system for a scheme."""
    if scheme in _KNOWN_TO_ALL:
        return None
    configuration = gateway.spark._jsparkSession.sessionState().newHadoopConf()
    try:
        gateway.jvm.org.apache.hadoop.fs.FileSystem.getFileSystemClass(scheme, configuration)
    except (Py4JError, PySparkException):
        return f"Spark's Hadoop knows no file system for {scheme}:"
    return None


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
    """Whether a struct in the column is older than one of its fields."""
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
            return None if is_on(gateway.spark, _READS_SHREDDED) else scan.schema.names_by_id[field.field_id]
    return None


def _dropped_inside(scan: TableScan, shape: SnapshotShape) -> int | None:
    for field_id in {key for group in shape.key_deletes for key in group.field_ids}:
        if field_id not in scan.schema.fields_by_id and any(
            field_id in schema.parents for schema in scan.metadata.schemas
        ):
            return field_id
    return None


def _nested_default(schema: Schema) -> str | None:
    for field in types.walk_fields(schema.fields):
        if field.initial_default is not None and (
            field.field_id in schema.parents or isinstance(field.field_type, types.NestedType)
        ):
            return schema.names_by_id[field.field_id]
    return None


def _promoted_to_nanos(scan: TableScan) -> str | None:
    for field in types.walk_fields(scan.schema.fields):
        if isinstance(field.field_type, types.TimestampNanoType | types.TimestamptzNanoType):
            earlier = (schema.fields_by_id.get(field.field_id) for schema in scan.metadata.schemas)
            if any(before is not None and isinstance(before.field_type, types.DateType) for before in earlier):
                return scan.schema.names_by_id[field.field_id]
    return None
