"""What a scan gives: Arrow tables and streams, or only a number of rows."""

import os
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing

import numpy as np
import pyarrow as pa

from icefloe import errors, expressions as ex, manifests as mf, metadata as md, planning
from icefloe.data.extracts import Shown, shown_fields
from icefloe.data.in_order import in_pieces, read_in_order
from icefloe.data.task_reader import ReadContext, read_task
from icefloe.progress import Listener, watched
from icefloe.schema import Schema, reserved, schema_to_arrow
from icefloe.storage import Storage

READ_AHEAD_BYTES = 256 << 20
"""How much of a stream waits in memory for the one who reads it."""

_MOST_WORKERS = 8


def read_tasks(
    tasks: Iterable[planning.FileScanTask],
    schema: Schema,
    metadata: md.TableMetadata,
    storage: Storage,
    *,
    limit: int | None = None,
    workers: int | None = None,
    read_ahead_bytes: int | None = READ_AHEAD_BYTES,
    snapshot_id: int | None = None,
    shown: Shown | None = None,
) -> Iterator[pa.RecordBatch]:
    """Record batches of the columns of `schema`, in the order of the tasks, read by several threads; `shown` stands behind them.

    The residual of each task is applied to its rows. Files and threads are closed with the iterator. Errors of files name
    the snapshot, if its id is given.
    """
    if limit is not None and limit < 0:
        raise errors.InvalidValueError(f"limit is {limit}; it must be 0 or more")
    if limit == 0:
        return
    context = ReadContext(metadata, storage)

    def read(task: planning.FileScanTask) -> Iterator[pa.RecordBatch]:
        try:
            yield from read_task(task, schema, context, shown)
        except (errors.CorruptFileError, errors.StorageError) as error:
            if snapshot_id is None:
                raise
            raise mf.error_of_snapshot(error, snapshot_id) from error

    count = default_workers() if workers is None else workers
    left = limit
    # With a limit, the first file may be all that is needed.
    pieces = in_pieces(tasks, count) if limit is None else tasks
    with closing(read_in_order(pieces, read, count, read_ahead_bytes)) as batches:
        for batch in batches:
            if left is not None:
                batch = batch.slice(0, left)
                left -= batch.num_rows
            yield batch
            if left == 0:
                return


def read_pieces(
    tasks: Iterable[planning.FileScanTask], read: Callable[[planning.FileScanTask], Iterator[pa.RecordBatch]]
) -> Generator[pa.RecordBatch, None, None]:
    """What `read` gives for the tasks, in their order, from several threads; large files are read in parts."""
    workers = default_workers()
    return read_in_order(in_pieces(tasks, workers), read, workers, READ_AHEAD_BYTES)


def default_workers() -> int:
    """How many threads read or write files: more than processors, as they wait for stores too."""
    return min(_MOST_WORKERS, 2 * (os.cpu_count() or 1))


def to_arrow(scan: planning.TableScan, progress: Listener | None = None) -> pa.Table:
    """All rows of the scan as a table, in the order of the plan."""
    batches = _batches(scan, _watched(scan, progress), scan.table_columns(), None, shown=scan.extracted)
    return pa.Table.from_batches(list(batches), schema=_arrow_schema(scan))


def to_arrow_batch_reader(
    scan: planning.TableScan, *, workers: int | None = None, read_ahead_bytes: int = READ_AHEAD_BYTES
) -> pa.RecordBatchReader:
    """The rows as a stream: nothing is read before it is asked, and little ahead of that."""
    batches = _batches(scan, scan.plan_files(), scan.table_columns(), read_ahead_bytes, workers, scan.extracted)
    return pa.RecordBatchReader.from_batches(_arrow_schema(scan), batches)


def _arrow_schema(scan: planning.TableScan) -> pa.Schema:
    schema = schema_to_arrow(scan.table_columns())
    return pa.schema([*schema, *shown_fields(scan.extracted)], schema.metadata)


def _watched(scan: planning.TableScan, progress: Listener | None) -> Iterable[planning.FileScanTask]:
    # With a limit, the plan ends early, and nobody knows where.
    return scan.plan_files() if scan.limit is not None else watched("files", scan.plan_files(), progress)


def count(scan: planning.TableScan, progress: Listener | None = None) -> int:
    """How many rows the scan has: from metadata where that is exact, and by reading the other files only."""
    total = 0
    tasks = _watched(scan, progress)
    context = ReadContext(scan.metadata, scan.file_storage)

    def unknown() -> Iterator[planning.FileScanTask]:
        nonlocal total
        for task in tasks:
            known = known_count(task, context)
            if known is None:
                yield task
            else:
                total += known
            if scan.limit is not None and total >= scan.limit:
                return

    for batch in _batches(scan, unknown(), Schema(reserved.POS), READ_AHEAD_BYTES):
        total += batch.num_rows
    return total if scan.limit is None else min(total, scan.limit)


def _batches(
    scan: planning.TableScan,
    tasks: Iterable[planning.FileScanTask],
    columns: Schema,
    read_ahead_bytes: int | None,
    workers: int | None = None,
    shown: Shown | None = None,
) -> Iterator[pa.RecordBatch]:
    snapshot = scan.snapshot()
    return read_tasks(
        tasks,
        columns,
        scan.metadata,
        scan.file_storage,
        limit=scan.limit,
        workers=workers,
        read_ahead_bytes=read_ahead_bytes,
        snapshot_id=None if snapshot is None else snapshot.snapshot_id,
        shown=shown,
    )


def known_count(task: planning.FileScanTask, context: ReadContext) -> int | None:
    """How many rows the task has, if its data file need not be read for that; delete files are, where they must be."""
    if isinstance(task.residual, ex.AlwaysFalse):
        return 0
    if not (task.is_whole_file and isinstance(task.residual, ex.AlwaysTrue)) or task.equality_deletes:
        return None
    return rows_not_deleted_by_position(task, context)


def rows_not_deleted_by_position(task: planning.FileScanTask, context: ReadContext) -> int:
    """How many rows of the task's file neither its deletion vector nor position delete files delete."""
    rows = task.file.record_count
    if task.deletion_vector is not None:
        return rows - task.deletion_vector.record_count
    if not task.position_deletes:
        return rows
    # Delete files of others may name positions beyond the end of the file.
    return rows - int(np.count_nonzero(context.deletes.positions(task).positions() < rows))
