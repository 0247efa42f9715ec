"""How many rows make a file of the target size: from what the table holds already, or from a small part of the rows.

Spark's writer begins another file only by the number of rows. The table's own files tell how many bytes a row takes; a table
without any learns it from the first rows, if they can be had without running a whole job first.
"""

import re
from collections.abc import Callable

import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from icefloe import properties as props
from icefloe.data import WriteRequest
from icefloe.metadata import MAIN_BRANCH, TableMetadata, summary as totals
from icefloe.spark.write_folder import remove_folder

_SAMPLED_ROWS = 200_000
_LEAST_ROWS = 10_000
"""Enough rows to tell the size of one; in fewer, the overhead of small files would hide it."""
_COSTLY = re.compile(
    r"\b(Aggregate|Join|Sort|Window|Distinct|Deduplicate|Repartition|RepartitionByExpression|RebalancePartitions|Expand"
    r"|MapInArrow|MapInPandas|FlatMapGroups\w*|Except|Intersect|GlobalLimit|Sample|BatchEvalPython|ArrowEvalPython"
    r"|PythonUDF|UDF|LogicalRDD|ExternalRDD|MapPartitions\w*|AttachDistributedSequence|WithCTE)\b"
)
"""Nodes after which the first rows may cost as much as all of them, or whose rows may differ when run twice."""


def rows_per_file(
    frame: DataFrame,
    request: WriteRequest,
    mode: str,
    write: Callable[[DataFrame, str], None],
    folder: str,
) -> int | None:
    """The most rows of a file, or None where nothing is known, or where files will be smaller anyway."""
    target = props.WRITE_TARGET_FILE_SIZE_BYTES.of(request.metadata.properties)
    size = row_bytes(request.metadata)
    if size is None and _may_exceed(frame, target, mode):
        size = _sampled(frame, request, write, f"{folder}/sample")
    return None if size is None else max(1, int(target / size))


def row_bytes(metadata: TableMetadata) -> float | None:
    """Bytes that a row of the table takes in its files, by the summary of its newest snapshot."""
    ref = metadata.refs.get(MAIN_BRANCH)
    snapshot = None if ref is None else metadata.snapshot_by_id(ref.snapshot_id)
    if snapshot is None or snapshot.summary is None:
        return None
    rows, size = (_number(snapshot.summary.get(key)) for key in (totals.TOTAL_RECORDS, totals.TOTAL_FILES_SIZE))
    return size / rows if rows >= _LEAST_ROWS and size else None


def _number(text: str | None) -> int:
    return int(text) if text is not None and text.isdigit() else 0


def _may_exceed(frame: DataFrame, target: int, mode: str) -> bool:
    """Whether a task might get more rows than fill a file, by Spark's estimate of their total size."""
    execution = frame._jdf.queryExecution()
    optimized = execution.optimizedPlan()
    if _COSTLY.search(execution.analyzed().toString()) or _COSTLY.search(optimized.toString()):
        return False
    total = int(str(optimized.stats().sizeInBytes()))
    tasks = 1 if mode != "none" else max(1, frame.sparkSession.sparkContext.defaultParallelism)
    return total / tasks > target


def _sampled(
    frame: DataFrame, request: WriteRequest, write: Callable[[DataFrame, str], None], folder: str
) -> float | None:
    try:
        # One task that stops after the rows, where `limit` alone would take as many of every task.
        write(frame.coalesce(1).limit(_SAMPLED_ROWS), folder)
        sizes = [
            (info.size, pq.read_metadata(request.storage.open_input(info.location, size=info.size)).num_rows)
            for info in request.storage.list_prefix(folder)
            if info.location.endswith(".parquet")
        ]
    finally:
        remove_folder(request.storage, folder)
    rows = sum(count for _, count in sizes)
    return sum(size for size, _ in sizes) / rows if rows >= _LEAST_ROWS else None
