"""Maintenance as jobs of a Spark session, on classic Spark and on Spark Connect."""

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import SparkSession
from pyspark.sql.types import BinaryType, StructType

import icefloe.spark.maintenance.curves  # noqa: F401 - for its effect: orders along curves
from icefloe.maintenance import GroupRewrite, Item, Result, RewrittenGroup
from icefloe.spark.maintenance.rewriting import FrameEngine, rewrite_group_on_spark
from icefloe.spark.spark_sessions import is_classic

_SENT = StructType().add("item", BinaryType())
_RESULT_PARTS = 8
"""Parts in which results come here."""
_TASKS = 64
"""Tasks of a job at most for items whose work nobody knows: enough to even out long ones on a small cluster."""


@dataclass(frozen=True)
class _Work(Generic[Item, Result]):
    """What a task does: from pickled items to pickled results."""

    function: Callable[[Item], Result]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for item in batch.column("item").to_pylist():
                done = cloudpickle.dumps(self.function(cloudpickle.loads(item)))
                yield pa.record_batch({"item": pa.array([done], pa.binary())})


def _packed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Each batch as one value, so that it travels in columns."""
    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        yield pa.record_batch({"item": pa.array([sink.getvalue().to_pybytes()], pa.binary())})


@dataclass(frozen=True)
class SparkMaintenance:
    """A session that runs maintenance."""

    spark: SparkSession
    rows: FrameEngine
    """What reads and writes rows in it."""

    @property
    def cores(self) -> int:
        """The cores of all executors; Spark Connect does not tell."""
        return self.spark.sparkContext.defaultParallelism if is_classic(self.spark) else sys.maxsize

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """The results in any order; few of them are here at a time."""
        sent = [(cloudpickle.dumps(item),) for item in items]
        if not sent:
            return
        tasks = min(len(sent), _TASKS)
        done = self.spark.createDataFrame(sent, _SENT).repartition(tasks).mapInArrow(_Work(function), _SENT)
        # An iterator runs its own partitions one after the other; those before an exchange run all at once.
        for row in done.repartition(min(tasks, _RESULT_PARTS)).toLocalIterator():
            yield cloudpickle.loads(bytes(row[0]))

    def rows_of_view(self, name: str, *columns: str) -> Iterator[pa.RecordBatch]:
        """Columns of a view or table of the session, batch by batch."""
        frame = self.spark.table(name).select(*columns)
        for row in frame.mapInArrow(_packed, _SENT).toLocalIterator():
            yield from pa.ipc.open_stream(bytes(row[0]))

    def rewrite(self, work: GroupRewrite) -> RewrittenGroup:
        """One job, with the group's description."""
        return rewrite_group_on_spark(self.spark, self.rows, work)
