"""How several tasks are read at once while their batches come out in order, with a bound on what waits in memory."""

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

import pyarrow as pa

from icefloe.formats.file_formats import PARQUET
from icefloe.formats.file_reading import DEFAULT_BATCH_ROWS
from icefloe.planning import FileScanTask, cut_task

Task = TypeVar("Task")
TASKS_PER_WORKER = 2
"""How many tasks are started for each thread, so that one is never out of work while another's batches are taken."""
LEAST_ROWS = 2 * DEFAULT_BATCH_ROWS
"""A file with fewer rows is read by one thread: to open it once more would take as long."""


class _Channel:
    """The batches of one task, on the way from the thread that reads to the one that asks."""

    def __init__(self, limit: int | None) -> None:
        self._limit = limit
        self._batches: deque[pa.RecordBatch] = deque()
        self._bytes = 0
        self._is_finished = False
        self._is_closed = False
        self._error: BaseException | None = None
        self._changed = threading.Condition()

    def put(self, batch: pa.RecordBatch) -> bool:
        """Hand over a batch, when there is room; False if nobody wants any more."""
        size = batch.nbytes

        def may_go_on() -> bool:
            # One batch is always let in, however large it is.
            has_room = not self._batches or self._limit is None or self._bytes + size <= self._limit
            return self._is_closed or has_room

        with self._changed:
            self._changed.wait_for(may_go_on)
            if self._is_closed:
                return False
            self._batches.append(batch)
            self._bytes += size
            self._changed.notify_all()
            return True

    def finish(self, error: BaseException | None = None) -> None:
        """Say that no more batches come, and why, if that is not the end of the task."""
        with self._changed:
            self._is_finished = True
            self._error = error
            self._changed.notify_all()

    def close(self) -> None:
        """Say that no more batches are wanted."""
        with self._changed:
            self._is_closed = True
            self._batches.clear()
            self._changed.notify_all()

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._batches or self._is_finished)
                if not self._batches:
                    break
                batch = self._batches.popleft()
                self._bytes -= batch.nbytes
                self._changed.notify_all()
            yield batch
        if self._error is not None:
            raise self._error


def read_in_order(
    tasks: Iterable[Task],
    read: Callable[[Task], Iterator[pa.RecordBatch]],
    workers: int,
    ahead_bytes: int | None = None,
) -> Generator[pa.RecordBatch, None, None]:
    """The batches of all tasks, those of one task after those of the one before; read by several threads.

    Tasks are taken as they are needed. No more than about `ahead_bytes` of batches wait; None sets no bound. When the
    iterator is closed or fails, all threads have ended and all files are closed before it returns.
    """
    source = iter(tasks)
    if workers <= 1:
        try:
            for task in source:
                yield from read(task)
        finally:
            close_iterator(source)
        return
    window = workers * TASKS_PER_WORKER
    limit = None if ahead_bytes is None else max(1, ahead_bytes // window)
    channels: deque[_Channel] = deque()
    pool = ThreadPoolExecutor(workers, thread_name_prefix="icefloe-read")
    try:
        while True:
            for task in islice(source, window - len(channels)):
                channels.append(_Channel(limit))
                pool.submit(_run, read, task, channels[-1])
            if not channels:
                return
            yield from channels[0]
            channels.popleft()
    finally:
        for channel in channels:
            channel.close()
        pool.shutdown(wait=True, cancel_futures=True)
        close_iterator(source)


def _run(read: Callable[[Task], Iterator[pa.RecordBatch]], task: Task, channel: _Channel) -> None:
    try:
        batches = read(task)
        try:
            for batch in batches:
                if not channel.put(batch):
                    break
        finally:
            close_iterator(batches)
    except BaseException as error:  # noqa: BLE001 - raised again in the thread that asks
        channel.finish(error)
    else:
        channel.finish()


def in_pieces(tasks: Iterable[FileScanTask], workers: int) -> Generator[FileScanTask, None, None]:
    """The tasks in their order, large ones cut at row groups if there are fewer files than threads; no file is opened more
    often than there are threads."""
    source = iter(tasks)
    try:
        first = list(islice(source, workers))
        parts = workers // len(first) if first else 1
        for task in first:
            is_cut = parts > 1 and task.file.file_format == PARQUET and task.file.record_count >= LEAST_ROWS
            yield from cut_task(task, parts) if is_cut else (task,)
        yield from source
    finally:
        close_iterator(source)


def close_iterator(iterator: Iterator[object]) -> None:
    """Close a generator now rather than when it is collected, which may be late; other iterators have nothing to close."""
    close = getattr(iterator, "close", None)
    if close is not None:
        close()
