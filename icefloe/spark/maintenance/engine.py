"""Maintenance as jobs of a Spark session, on classic Spark and on Spark Connect."""

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import SparkSession

from icefloe.maintenance import GroupRewrite, Item, Result, RewrittenGroup
from icefloe.spark.maintenance.rewriting import rewrite_group_on_spark
from icefloe.spark.maintenance.spreading import ITEM, RESULT, as_row, as_stream, frame_of_items, received
from icefloe.spark.spark_sessions import is_classic

_RESULT_PARTS = 8
"""Parts in which results come here."""
_TASKS = 64
"""Tasks of a job at most for items whose work nobody knows: enough to even out long ones on a small cluster."""


@dataclass(frozen=True)
class _Work(Generic[Item, Result]):
    """What a task does: from items to results."""

    function: Callable[[Item], Result]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for item in received(batches):
            yield as_row(self.function(item))


def _packed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Each batch as one value."""
    for batch in batches:
        yield pa.record_batch({ITEM: pa.array([as_stream(batch)], pa.binary())})


@dataclass(frozen=True)
class SparkMaintenance:
    """A session that runs maintenance."""

    spark: SparkSession

    @property
    def cores(self) -> int:
        """The cores of all executors; Spark Connect does not tell."""
        return self.spark.sparkContext.defaultParallelism if is_classic(self.spark) else sys.maxsize

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """The results in any order; few of them are here at a time."""
        sent = list(items)
        if not sent:
            return
        done = frame_of_items(self.spark, sent, _TASKS).mapInArrow(_Work(function), RESULT)
        # An iterator runs its own partitions one after the other; those before an exchange run all at once.
        for row in done.repartition(min(len(sent), _RESULT_PARTS)).toLocalIterator():
            yield cloudpickle.loads(bytes(row[0]))

    def rows_of_view(self, name: str, *columns: str) -> Iterator[pa.RecordBatch]:
        """Columns of a view or table of the session, batch by batch."""
        frame = self.spark.table(name).select(*columns)
        for row in frame.mapInArrow(_packed, RESULT).toLocalIterator():
            yield from pa.ipc.open_stream(bytes(row[0]))

    def rewrite(self, work: GroupRewrite) -> RewrittenGroup:
        """One job, or a few, with the group's description."""
        return rewrite_group_on_spark(self.spark, work, self.cores)
