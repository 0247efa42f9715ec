"""When one file is read by several threads: where there are fewer files than threads, large ones are cut at their row groups."""

from collections.abc import Iterable, Iterator
from itertools import islice

from icefloe.data.in_order import close_iterator
from icefloe.formats.file_reading import DEFAULT_BATCH_ROWS
from icefloe.planning import FileScanTask, cut_task

LEAST_ROWS = 2 * DEFAULT_BATCH_ROWS
"""A file with fewer rows is read by one thread: to open it once more would take as long."""
_PARQUET = "parquet"


def in_pieces(tasks: Iterable[FileScanTask], workers: int) -> Iterator[FileScanTask]:
    """The tasks in their order, the large ones cut if the threads would not all have a file; no file is opened more often than
    there are threads."""
    source = iter(tasks)
    try:
        first = list(islice(source, workers))
        parts = workers // len(first) if first else 1
        for task in first:
            is_cut = parts > 1 and task.file.file_format == _PARQUET and task.file.record_count >= LEAST_ROWS
            yield from cut_task(task, parts) if is_cut else (task,)
        yield from source
    finally:
        close_iterator(source)
