"""How items reach the tasks of a job: which task gets which of them is known beforehand, on classic Spark and on Connect."""

from collections.abc import Iterable, Iterator
from itertools import count
from typing import Any

import mmh3
import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BinaryType, IntegerType, StructType

LABEL = "task"
ITEM = "item"
SENT = StructType().add(LABEL, IntegerType()).add(ITEM, BinaryType())
RESULT = StructType().add(ITEM, BinaryType())
_SPARKS_SEED = 42


def labels(tasks: int) -> list[int]:
    """A number for each task that Spark's hash sends to it, so that no two of them share one."""
    by_task: dict[int, int] = {}
    for number in count():
        by_task.setdefault(mmh3.hash(number.to_bytes(4, "little"), _SPARKS_SEED, signed=True) % tasks, number)
        if len(by_task) == tasks:
            return [by_task[task] for task in range(tasks)]
    raise AssertionError("unreachable")


def spread(frame: DataFrame, tasks: int) -> DataFrame:
    """The rows by their labels, those of one label in one task."""
    return frame.repartition(tasks, LABEL)


def frame_of_items(spark: SparkSession, items: Iterable[object], most_tasks: int | None = None) -> DataFrame:
    """The items, dealt to as many tasks as there are, or to so many."""
    sent = [cloudpickle.dumps(item) for item in items]
    tasks = max(1, min(len(sent), most_tasks or len(sent)))
    of_task = labels(tasks)
    rows = [(of_task[number % tasks], item) for number, item in enumerate(sent)]
    return spread(spark.createDataFrame(rows, SENT), tasks)


def received(batches: Iterable[pa.RecordBatch]) -> Iterator[Any]:
    """The items that a task gets."""
    for batch in batches:
        for item in batch.column(ITEM):
            yield cloudpickle.loads(item.as_buffer())


def as_row(value: object) -> pa.RecordBatch:
    """A result as a row that goes to whoever asked."""
    return pa.record_batch({ITEM: pa.array([cloudpickle.dumps(value)], pa.binary())})


def as_stream(rows: pa.Table | pa.RecordBatch) -> bytes:
    """Rows as the bytes of a stream, so that they travel in columns."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write(rows)
    return bytes(sink.getvalue())
