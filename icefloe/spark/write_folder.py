"""The folder of one write: all of its files go there, and what is not part of its result is removed from there."""

import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from icefloe.data.locations import data_folder
from icefloe.metadata.table import TableMetadata
from icefloe.spark.reading import is_classic
from icefloe.storage import Storage

_WAIT_SECONDS = 20
_POLL_SECONDS = 0.1


def new_folder(metadata: TableMetadata) -> str:
    """A folder under the table's data that no other write has."""
    return f"{data_folder(metadata)}/{uuid.uuid4()}"


@contextmanager
def removed_on_error(spark: Any, storage: Storage, folder: str) -> Iterator[None]:
    """What runs inside may fail or be interrupted: its jobs are then stopped, and the folder is removed.

    Other tasks of a failed job may still run for a moment, so the folder waits for them.
    """
    tag = f"icefloe-write-{uuid.uuid4()}"
    context = spark.sparkContext if is_classic(spark) else None
    if context is not None:
        context.addJobTag(tag)
    try:
        yield
    except BaseException:
        if context is not None:
            _stop_jobs(context, tag)
        remove_folder(storage, folder)
        raise
    finally:
        if context is not None:
            with suppress(Exception):
                context.removeJobTag(tag)


def _stop_jobs(context: Any, tag: str) -> None:
    """Stop the jobs and wait for their tasks, as far as there still is a JVM to ask: the write's own error matters more."""
    with suppress(Exception):
        context.cancelJobsWithTag(tag)
        tracker = context._jsc.sc().statusTracker()
        end = time.monotonic() + _WAIT_SECONDS
        while _running_tasks(tracker, tag) and time.monotonic() < end:
            time.sleep(_POLL_SECONDS)


def _running_tasks(tracker: Any, tag: str) -> int:
    jobs = (tracker.getJobInfo(job) for job in tracker.getJobIdsForTag(tag))
    stages = (tracker.getStageInfo(stage) for job in jobs if job.isDefined() for stage in job.get().stageIds())
    return sum(stage.get().numActiveTasks() for stage in stages if stage.isDefined())


def remove_folder(storage: Storage, folder: str) -> None:
    """Delete all that is beneath a folder, and the folders."""
    storage.delete([info.location for info in storage.list_prefix(folder)])
    for name in list(storage.list_folders(folder)):
        remove_folder(storage, f"{folder}/{name}")
    storage.remove_folder(folder)


def keep_only(storage: Storage, folder: str, kept: Iterable[str]) -> None:
    """Delete what is beneath a folder but for these files: tasks that were run twice may have written more."""
    wanted = set(kept)
    if not wanted:
        remove_folder(storage, folder)
        return
    storage.delete([info.location for info in storage.list_prefix(folder) if info.location not in wanted])
