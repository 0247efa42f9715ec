"""One group of a rewrite as one job of Spark: which session runs it, how its rows are spread, and what its files are called.

Without an order no row is shuffled: each task reads about what one new file should hold. With one, rows are ranged over as
many tasks as files are expected, exactly, which needs a session without adaptive execution. What reads and writes the rows,
Spark itself or Arrow, is the same as for any other scan and write.
"""

import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

from pyspark.sql import DataFrame, SparkSession

from icefloe import manifests as mf, metadata as md, planning, properties as props
from icefloe.data import ReadContext, WriteRequest, data_folder, rows_not_deleted_by_position
from icefloe.maintenance import ColumnOrder, GroupRewrite, RewrittenGroup, RowOrder
from icefloe.partitioning import UNSORTED, SortOrder
from icefloe.schema import reserved
from icefloe.spark.spark_sessions import clone_with, is_classic

JOB_GROUP = "REWRITE-DATA-FILES"
_LINEAGE = tuple(field.name for field in reserved.ROW_LINEAGE_COLUMNS)

Arrange: TypeAlias = Callable[[DataFrame, RowOrder, int], DataFrame]
"""Spreads the rows of a group over so many tasks, and sorts them in each."""
ARRANGED: dict[type, Arrange] = {}
"""How rows get an order that is not one of columns, by its type."""


class FrameEngine(Protocol):
    """What reads and writes frames."""

    def scan(self, scan: planning.TableScan, session: SparkSession) -> DataFrame:
        """The rows of a scan."""

    def write(self, data: DataFrame, request: WriteRequest) -> list[mf.DataFile]:
        """Write rows as data files; on an error, none is left."""


@dataclass(frozen=True)
class _TasksOfGroup:
    """Plans a scan as the tasks of a group, with all deletes that apply to them."""

    tasks: tuple[planning.FileScanTask, ...]

    def plan_files(self, scan: planning.TableScan) -> Generator[planning.FileScanTask, None, None]:  # noqa: ARG002 - these, whatever it is
        """The tasks."""
        yield from self.tasks


def rewrite_group_on_spark(spark: SparkSession, rows: FrameEngine, work: GroupRewrite) -> RewrittenGroup:
    """Rewrite a group as a job of the session."""
    with _described(spark, work.description):
        session = _session(spark, work)
        frame = _spread(rows.scan(_scan(work, work.tasks), session), work)
        request = WriteRequest(_written_as(work), work.storage, work.written, lineage=work.has_lineage)
        files = rows.write(frame, request)
        return RewrittenGroup(work.labelled(files), _live_rows(rows, work, session))


def _session(spark: SparkSession, work: GroupRewrite) -> SparkSession:
    """A clone of the session in which a job has as many tasks as files are expected; Spark Connect has none."""
    if not is_classic(spark):
        return spark
    settings = {
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.files.maxPartitionBytes": str(_split_size(work)),
        "spark.sql.files.openCostInBytes": "0",
        "spark.sql.files.minPartitionNum": "1",
        "spark.sql.shuffle.partitions": str(work.expected_files),
    }
    return clone_with(spark, settings)


def _split_size(work: GroupRewrite) -> int:
    return work.sizes.split_size(work.size_in_bytes)


def _scan(work: GroupRewrite, tasks: tuple[planning.FileScanTask, ...]) -> planning.TableScan:
    """The rows of tasks of the group under the table's schema of today."""
    snapshot = {md.MAIN_BRANCH: md.branch(work.snapshot_id)}
    metadata = replace(work.metadata, current_snapshot_id=work.snapshot_id, refs=snapshot)
    return planning.TableScan(
        metadata,
        work.storage,
        selected_fields=(*planning.ALL_COLUMNS, *(_LINEAGE if work.has_lineage else ())),
        options={"read.split.target-size": str(_split_size(work)), "read.split.open-file-cost": "0"},
        planner=_TasksOfGroup(tasks),
    )


def _spread(frame: DataFrame, work: GroupRewrite) -> DataFrame:
    """The frame, arranged here if the writer does not do it by the table's settings."""
    order = work.strategy.order
    if order is not None and not isinstance(order, ColumnOrder):
        return ARRANGED[type(order)](frame, order, work.expected_files)
    has_mixed_deletes = len({(bool(task.equality_deletes), bool(task.deletes)) for task in work.tasks}) > 1
    if order is None and has_mixed_deletes and not work.moves_rows:
        # Files with deletes are read by tasks of their own, which would each write a file.
        return frame.coalesce(work.expected_files)
    return frame


def _written_as(work: GroupRewrite) -> md.TableMetadata:
    """The table as the writer should see it: with the spec, order, distribution and size of the new files."""
    order = work.strategy.order
    sorting = work.metadata.sort_order() if order is None else UNSORTED
    if isinstance(order, ColumnOrder):
        sorting = order.order
    is_ranged = isinstance(order, ColumnOrder) or (order is None and work.moves_rows)
    properties = {
        **work.metadata.properties,
        props.WRITE_TARGET_FILE_SIZE_BYTES.key: str(work.sizes.write_maximum),
        props.DISTRIBUTION_MODE.key: "range" if is_ranged else "none",
    }
    if not props.OBJECT_STORAGE_ENABLED.of(properties):
        # So that files of a run that was killed can be told from all others.
        properties[props.DATA_PATH.key] = f"{data_folder(work.metadata)}/{work.unique}"
    orders, order_id = _with_order(work.metadata, sorting)
    return replace(
        work.metadata,
        default_spec_id=work.spec.spec_id,
        sort_orders=orders,
        default_sort_order_id=order_id,
        properties=properties,
    )


def _with_order(metadata: md.TableMetadata, order: SortOrder) -> tuple[tuple[SortOrder, ...], int]:
    """The orders of the table with this one among them, and its id."""
    known = next((each for each in metadata.sort_orders if each.same_order(order)), None)
    if known is not None:
        return metadata.sort_orders, known.order_id
    own = order.with_id(max((each.order_id for each in metadata.sort_orders), default=0) + 1)
    return (*metadata.sort_orders, own), own.order_id


def _live_rows(rows: FrameEngine, work: GroupRewrite, session: SparkSession) -> int:
    """How many rows the group has; files with equality deletes are read for that, as far as their keys go."""
    context = ReadContext(work.metadata, work.storage)
    compared = tuple(task for task in work.tasks if task.equality_deletes)
    known = sum(rows_not_deleted_by_position(task, context) for task in work.tasks if not task.equality_deletes)
    return known + (rows.scan(_scan(work, compared), session).count() if compared else 0)


@contextmanager
def _described(spark: SparkSession, description: str) -> Iterator[None]:
    """Name the jobs of this thread in Spark's UI."""
    if not is_classic(spark):
        yield
        return
    context = spark.sparkContext
    context.setJobGroup(f"{JOB_GROUP}-{threading.get_ident()}", description)
    try:
        yield
    finally:
        for key in ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel"):
            context._jsc.sc().setLocalProperty(key, None)
