"""What a scan gives: Arrow tables and streams, frames of other libraries, or only a number of rows."""

import os
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from functools import partial
from importlib import import_module
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from icefloe.data.in_order import in_pieces, read_in_order
from icefloe.data.task_reader import ReadContext, read_task
from icefloe.errors import CorruptFileError, InvalidValueError, NotInstalledError, StorageError
from icefloe.expressions import AlwaysFalse, AlwaysTrue
from icefloe.manifests import error_of_snapshot
from icefloe.metadata import TableMetadata
from icefloe.planning import FileScanTask, TableScan
from icefloe.schema import Schema, reserved, schema_to_arrow
from icefloe.storage import Storage

READ_AHEAD_BYTES = 256 << 20
"""How much of a stream waits in memory for the one who reads it."""

_MOST_WORKERS = 8


class Scan(Protocol):
    """What is read: files that hold the rows, and the columns that are wanted of them."""

    @property
    def metadata(self) -> TableMetadata:
        """The table."""
        ...

    @property
    def storage(self) -> Storage:
        """Where its files are."""
        ...

    @property
    def limit(self) -> int | None:
        """The most rows to give."""
        ...

    def projection(self) -> Schema:
        """The wanted columns."""
        ...

    def plan_files(self) -> Iterable[FileScanTask]:
        """The files, with the deletes that apply to them."""
        ...


def read_tasks(
    tasks: Iterable[FileScanTask],
    schema: Schema,
    metadata: TableMetadata,
    storage: Storage,
    *,
    limit: int | None = None,
    workers: int | None = None,
    read_ahead_bytes: int | None = READ_AHEAD_BYTES,
    snapshot_id: int | None = None,
) -> Iterator[Any]:
    """Record batches of the columns of `schema`, in the order of the tasks, read by several threads.

    The residual of each task is applied to its rows. Files and threads are closed with the iterator. Errors of files name
    the snapshot, if its id is given.
    """
    if limit is not None and limit < 0:
        raise InvalidValueError(f"limit is {limit}; it must be 0 or more")
    if limit == 0:
        return
    read = partial(_read, wanted=schema, context=ReadContext(metadata, storage), snapshot_id=snapshot_id)
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
    tasks: Iterable[FileScanTask], read: Callable[[FileScanTask], Iterator[pa.RecordBatch]]
) -> Generator[pa.RecordBatch]:
    """What `read` gives for the tasks, in their order, from several threads; large files are read in parts."""
    workers = default_workers()
    return read_in_order(in_pieces(tasks, workers), read, workers, READ_AHEAD_BYTES)


def _read(task: FileScanTask, wanted: Schema, context: ReadContext, snapshot_id: int | None) -> Iterator[Any]:
    try:
        yield from read_task(task, wanted, context)
    except (CorruptFileError, StorageError) as error:
        if snapshot_id is None:
            raise
        raise error_of_snapshot(error, snapshot_id) from error


def _snapshot_id(scan: Scan) -> int | None:
    """The snapshot that is read, if it is one."""
    snapshot = scan.snapshot() if isinstance(scan, TableScan) else None
    return None if snapshot is None else snapshot.snapshot_id


def default_workers() -> int:
    """How many threads read or write files: more than processors, as they wait for stores too."""
    return min(_MOST_WORKERS, 2 * (os.cpu_count() or 1))


def to_arrow(scan: Scan, *, workers: int | None = None) -> Any:
    """All rows of the scan as a `pyarrow.Table`, in the order of the plan."""
    schema = scan.projection()
    batches = read_tasks(
        scan.plan_files(),
        schema,
        scan.metadata,
        scan.storage,
        limit=scan.limit,
        workers=workers,
        read_ahead_bytes=None,
        snapshot_id=_snapshot_id(scan),
    )
    return pa.Table.from_batches(list(batches), schema=schema_to_arrow(schema))


def to_arrow_batch_reader(scan: Scan, *, workers: int | None = None, read_ahead_bytes: int = READ_AHEAD_BYTES) -> Any:
    """The rows as a stream, a `pyarrow.RecordBatchReader`: nothing is read before it is asked, and little ahead of that."""
    schema = scan.projection()
    batches = read_tasks(
        scan.plan_files(),
        schema,
        scan.metadata,
        scan.storage,
        limit=scan.limit,
        workers=workers,
        read_ahead_bytes=read_ahead_bytes,
        snapshot_id=_snapshot_id(scan),
    )
    return pa.RecordBatchReader.from_batches(schema_to_arrow(schema), batches)


def to_pandas(scan: Scan, **options: Any) -> Any:
    """All rows as a `pandas.DataFrame`; options are those of `pyarrow.Table.to_pandas`."""
    _installed("pandas")
    return to_arrow(scan).to_pandas(**options)


def to_polars(scan: Scan) -> Any:
    """All rows as a `polars.DataFrame`."""
    return _installed("polars").from_arrow(to_arrow(scan))


def to_duckdb(scan: Scan, name: str, connection: Any = None) -> Any:
    """All rows as a view of that name in a DuckDB connection, in a new one if none is given; the connection."""
    found = _installed("duckdb").connect() if connection is None else connection
    found.register(name, to_arrow(scan))
    return found


def count(scan: Scan, *, workers: int | None = None) -> int:
    """How many rows the scan has: from metadata where that is exact, and by reading the other files only."""
    total = 0
    context = ReadContext(scan.metadata, scan.storage)

    def unknown() -> Iterator[FileScanTask]:
        nonlocal total
        for task in scan.plan_files():
            known = known_count(task, context)
            if known is None:
                yield task
            else:
                total += known
            if scan.limit is not None and total >= scan.limit:
                return

    batches = read_tasks(
        unknown(),
        Schema(reserved.POS),
        scan.metadata,
        scan.storage,
        limit=scan.limit,
        workers=workers,
        snapshot_id=_snapshot_id(scan),
    )
    for batch in batches:
        total += batch.num_rows
    return total if scan.limit is None else min(total, scan.limit)


def known_count(task: FileScanTask, context: ReadContext) -> int | None:
    """How many rows the task has, if its data file need not be read for that; delete files are, where they must be."""
    if isinstance(task.residual, AlwaysFalse):
        return 0
    if not (task.is_whole_file and isinstance(task.residual, AlwaysTrue)) or task.equality_deletes:
        return None
    return rows_not_deleted_by_position(task, context)


def rows_not_deleted_by_position(task: FileScanTask, context: ReadContext) -> int:
    """How many rows of the task's file neither its deletion vector nor position delete files delete."""
    rows = task.file.record_count
    if task.deletion_vector is not None:
        return rows - task.deletion_vector.record_count
    if not task.position_deletes:
        return rows
    # Delete files of others may name positions beyond the end of the file.
    return rows - int(np.count_nonzero(context.deletes.positions(task).positions() < rows))


def _installed(package: str) -> Any:
    try:
        return import_module(package)
    except ImportError:
        raise NotInstalledError(
            f"{package} is not installed; `pip install {package}` makes this work, `to_arrow` works without it"
        ) from None
