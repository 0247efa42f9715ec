"""Changes between snapshots as a frame: read by executors with Arrow, compared by Spark, by the rules of `icefloe.data.changes`."""

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, Window, WindowSpec, functions as F, types as spark_types  # noqa: N812  # its usual name

from icefloe.data import (
    CHANGE_COLUMNS,
    ReadContext,
    by_ordinal,
    compared_columns,
    read_change,
    several_rows,
    shown_columns,
)
from icefloe.errors import InvalidInputError
from icefloe.metadata import TableMetadata
from icefloe.planning import ChangelogScan, ChangelogScanTask, ChangeType
from icefloe.schema import Schema, reserved
from icefloe.spark.arrow_engine import frame_of_tasks, shown_batch
from icefloe.spark.types import TypeMapping, mapping_of
from icefloe.spark.user_side import quoted_name
from icefloe.versions import Feature, allows

_TYPE, _ORDINAL, _ = (field.name for field in CHANGE_COLUMNS)
_ROW = "icefloe row"
"""The column by which rows are compared, while they are."""


def fields_to_show(metadata: TableMetadata, row_ids: bool) -> tuple[str, ...]:
    """The columns to select of a table: all, and on wish the ids of rows, if it has them."""
    if not row_ids:
        return ("*",)
    if not allows(metadata.format_version, Feature.ROW_LINEAGE):
        raise InvalidInputError(
            f"rows of a table of format version {metadata.format_version} have no ids; they begin with version 3"
        )
    return ("*", reserved.ROW_ID.name)


def read_changes(spark: SparkSession, scan: ChangelogScan) -> DataFrame:
    """The changes as a lazy frame; its files are chosen now."""
    names = [field.name for field in shown_columns(scan).fields] + [field.name for field in CHANGE_COLUMNS]
    shown = [F.col(quoted_name(name)) for name in names]
    if scan.is_net:
        return _net(_frame(spark, scan, scan.plan_files())).select(*shown)
    plain: list[ChangelogScanTask] = []
    mixed: list[ChangelogScanTask] = []
    for tasks, is_mixed in by_ordinal(scan.plan_files()):
        (mixed if is_mixed else plain).extend(tasks)
    if not mixed:
        return _frame(spark, scan, plain).select(*shown)
    compared = _compared(_frame(spark, scan, mixed), scan).select(*shown)
    return compared.union(_frame(spark, scan, plain).select(*shown)) if plain else compared


@dataclass(frozen=True, slots=True)
class _ReadChanges:
    """What an executor does: from pickled tasks to Arrow batches as Spark has them."""

    context: ReadContext
    columns: Schema
    projection: Schema
    mapping: TypeMapping

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for content in batch.column("task").to_pylist():
                for rows in read_change(pickle.loads(content), self.columns, self.context):
                    yield shown_batch(rows, self.projection, self.mapping)


def _frame(spark: SparkSession, scan: ChangelogScan, tasks: Iterable[ChangelogScanTask]) -> DataFrame:
    """The rows of tasks as they are, before anything is compared."""
    columns, mapping = compared_columns(scan), mapping_of(spark)
    projection = Schema(*columns.fields, *CHANGE_COLUMNS)
    read = _ReadChanges(ReadContext(scan.metadata, scan.storage), columns, projection, replace(mapping, geo=False))
    return frame_of_tasks(spark, tasks, read, projection, mapping)


def _compared(changes: DataFrame, scan: ChangelogScan) -> DataFrame:
    left = _without_carryovers(changes)
    names = scan.identifier() if scan.pairs_updates else ()
    return _with_pairs(left, names) if names else left


def _without_carryovers(changes: DataFrame) -> DataFrame:
    """Deletes and inserts without those of equal rows of one snapshot that cancel each other."""
    inserted, deleted = _counts(Window.partitionBy(_ORDINAL, _ROW))
    rank = F.row_number().over(Window.partitionBy(_ORDINAL, _ROW, _TYPE).orderBy(F.lit(0)))
    marked = _with_row(changes).withColumn("icefloe excess", rank - F.least(inserted, deleted))
    return marked.where(F.col("icefloe excess") > 0)


def _with_pairs(changes: DataFrame, names: Sequence[str]) -> DataFrame:
    keys = [_comparable(F.col(quoted_name(name)), changes.schema[name].dataType) for name in names]
    inserted, deleted = _counts(Window.partitionBy(_ORDINAL, *keys))
    is_paired = (inserted > 0) & (deleted > 0)
    if tuple(names) == (reserved.ROW_ID.name,):
        # Rows from before the table had ids are none of each other's.
        is_paired = is_paired & F.col(reserved.ROW_ID.name).isNotNull()
    pair_type = (
        F.when(inserted + deleted > 2, F.raise_error(F.lit(str(several_rows(names)))).cast("string"))
        .when(F.col(_TYPE) == ChangeType.DELETE, F.lit(str(ChangeType.UPDATE_BEFORE)))
        .otherwise(F.lit(str(ChangeType.UPDATE_AFTER)))
    )
    return changes.withColumn(_TYPE, F.when(is_paired, pair_type).otherwise(F.col(_TYPE)))


def _net(changes: DataFrame) -> DataFrame:
    """What is left when equal rows of opposite changes cancel each other, later ones against the last before them."""
    row = Window.partitionBy(_ROW)
    step = F.when(F.col(_TYPE) == ChangeType.INSERT, 1).otherwise(-1)
    ordered = row.orderBy(_ORDINAL, _TYPE, "icefloe number")
    until_now = ordered.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    from_now = ordered.rowsBetween(Window.currentRow, Window.unboundedFollowing)
    steps = (
        _with_row(changes)
        .withColumn("icefloe number", F.monotonically_increasing_id())
        .withColumn("icefloe step", step)
        .withColumn("icefloe total", F.signum(F.sum("icefloe step").over(row)))
        .withColumn("icefloe height", F.col("icefloe total") * F.sum("icefloe step").over(until_now))
        .withColumn("icefloe lowest", F.min("icefloe height").over(from_now))
    )
    is_unmatched = (F.col("icefloe step") == F.col("icefloe total")) & (F.col("icefloe height") > 0)
    return steps.where(is_unmatched & (F.col("icefloe lowest") >= F.col("icefloe height")))


def _counts(window: WindowSpec) -> tuple[Column, Column]:
    """How many inserts and how many deletes there are."""
    of_type = (F.count(F.when(F.col(_TYPE) == change, 1)) for change in (ChangeType.INSERT, ChangeType.DELETE))
    inserted, deleted = (count.over(window) for count in of_type)
    return inserted, deleted


def _with_row(changes: DataFrame) -> DataFrame:
    """The changes with a column that is equal for equal rows."""
    of_change = {field.name for field in CHANGE_COLUMNS}
    columns = [
        _comparable(F.col(quoted_name(field.name)), field.dataType)
        for field in changes.schema.fields
        if field.name not in of_change
    ]
    return changes.withColumn(_ROW, F.struct(*(column.alias(f"c{i}") for i, column in enumerate(columns))))


def _comparable(column: Column, data_type: spark_types.DataType) -> Column:
    """A value that Spark can group by, equal for equal values: 0.0 is not -0.0, and maps are equal in any order."""
    match data_type:
        case spark_types.FloatType() | spark_types.DoubleType():
            return F.struct(column.alias("c0"), F.when(column == 0, column.cast("string")).alias("c1"))
        case spark_types.StructType():
            inner = [_comparable(column[field.name], field.dataType) for field in data_type.fields]
            whole = F.struct(*(each.alias(f"c{i}") for i, each in enumerate(inner)))
            return F.when(column.isNotNull(), whole)
        case spark_types.ArrayType():
            return F.transform(column, lambda item: _comparable(item, data_type.elementType))
        case spark_types.MapType():
            return F.array_sort(F.transform(F.map_entries(column), lambda entry: _entry(entry, data_type)))
        case spark_types.VariantType():
            return F.struct(F.to_json(column).alias("c0"), F.schema_of_variant(column).alias("c1"))
        case _ if data_type.typeName().startswith(("geometry", "geography")):
            return F.st_asbinary(column)
        case _:
            return column


def _entry(entry: Column, data_type: spark_types.MapType) -> Column:
    key, value = _comparable(entry["key"], data_type.keyType), _comparable(entry["value"], data_type.valueType)
    return F.struct(key.alias("c0"), value.alias("c1"))
