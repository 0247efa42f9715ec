"""Where the rows of a metadata table are made: in this process if they are few, by tasks that read manifests if they are many.

Rows are read here until they are too many, so that what a filter leaves of a large table makes no jobs. Tasks need icefloe,
and files that they can reach; they never get keys of encrypted tables.
"""

import pickle
from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession

from icefloe.inspect import MetadataPart, MetadataRequest, MetadataScan
from icefloe.spark.metadata_types import shown_rows, spark_schema, task_schema
from icefloe.spark.spark_sessions import is_classic
from icefloe.spark.task_abilities import reaches_manifests, tasks_know_us

FEW_BYTES = 32 << 20
"""How much is read in this process at most, in the form of Arrow."""
FEW_FILES = 2_000_000
"""How many files are looked at in this process at most."""

_BATCH_BYTES = 4 << 20
_BATCH_ROWS = 1 << 16
_QUIET = {
    # Otherwise Spark makes rows of all batches in the driver, and sends these with its tasks.
    "spark.sql.execution.arrow.localRelationThreshold": "0b",
    # A batch is a task.
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(_BATCH_ROWS),
}

_SENDERS: MutableMapping[SparkContext, SparkSession] = WeakKeyDictionary()
"""A session of ours for each Spark, whose settings are for the batches that are handed over."""


def rows_frame(spark: SparkSession, scan: MetadataScan, names: Sequence[str]) -> DataFrame:
    """The rows of a scan as a frame of the columns `names`, or of none: then they only count."""
    parts = _parts(scan)
    if not names and not _is_left_to_tasks(spark, parts):
        return spark.range(_count(scan)).select()
    rows = _rows_here(spark, scan, parts) if names else None
    frame = _spread(spark, scan, parts) if rows is None else plain_frame(_sender(spark), rows)
    return frame.select(*[f"`{name}`" for name in names])


def whole_frame(spark: SparkSession, scan: MetadataScan) -> DataFrame:
    """All rows of a scan as a frame of the session itself, where Spark cannot ask for some of them later."""
    parts = _parts(scan) if is_classic(spark) else []
    rows = _rows_here(spark, scan, parts)
    return _spread(spark, scan, parts) if rows is None else plain_frame(spark, rows)


def plain_frame(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """Rows that are here as a frame."""
    return spark.createDataFrame(shown_rows(rows), spark_schema(rows.schema))


def _count(scan: MetadataScan) -> int:
    with scan.to_arrow_batch_reader() as reader:
        return sum(batch.num_rows for batch in reader)


def _parts(scan: MetadataScan) -> list[MetadataPart]:
    """What tasks can read of a scan; none if it has no parts, or if they are not for tasks."""
    return scan.parts() if reaches_manifests(scan.metadata) else []


def _is_left_to_tasks(spark: SparkSession, parts: Sequence[MetadataPart]) -> bool:
    return sum(part.files for part in parts) > FEW_FILES and tasks_know_us(spark)


def _rows_here(spark: SparkSession, scan: MetadataScan, parts: Sequence[MetadataPart]) -> pa.Table | None:
    """All rows; None if they are too many, and tasks can read them."""
    if not parts:
        return scan.to_arrow()
    rows = None if _is_left_to_tasks(spark, parts) else _few_rows(scan)
    return rows if rows is not None or tasks_know_us(spark) else scan.to_arrow()


def _few_rows(scan: MetadataScan) -> pa.Table | None:
    """All rows, or None if they are too many."""
    batches, size = [], 0
    with scan.to_arrow_batch_reader() as reader:
        for batch in reader:
            size += batch.nbytes
            if size > FEW_BYTES:
                return None
            batches.append(batch)
        return pa.Table.from_batches(batches, reader.schema)


def _sender(spark: SparkSession) -> SparkSession:
    sender = _SENDERS.get(spark.sparkContext)
    if sender is None:
        sender = _SENDERS[spark.sparkContext] = spark.newSession()
        for key, value in _QUIET.items():
            sender.conf.set(key, value)
    return sender


# -- tasks


def _spread(spark: SparkSession, scan: MetadataScan, parts: Sequence[MetadataPart]) -> DataFrame:
    """The rows as tasks read them, one for each part."""
    request = replace(scan, cache=None).request()
    shown = spark_schema(request.arrow_schema)
    read = _PartRows(request, tuple(map(pickle.dumps, parts)), task_schema(shown))
    return spark.range(0, len(parts), 1, max(1, len(parts))).mapInArrow(read, shown)


@dataclass(frozen=True)
class _PartRows:
    """What a task does: from the numbers of parts to their rows."""

    request: MetadataRequest
    parts: tuple[bytes, ...]
    schema: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                part: MetadataPart = pickle.loads(self.parts[number])
                for rows in part.rows(self.request):
                    yield from self._pieces(rows)

    def _pieces(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The rows in Spark's types, few at a time: all of a manifest may be more than an executor has room for."""
        rows = shown_rows(pa.Table.from_batches([batch]))
        step = max(1, min(_BATCH_ROWS, rows.num_rows * _BATCH_BYTES // max(1, rows.nbytes)))
        for start in range(0, rows.num_rows, step):
            yield from rows.slice(start, step).cast(self.schema).combine_chunks().to_batches()
