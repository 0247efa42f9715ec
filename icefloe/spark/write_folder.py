"""What a write leaves in the store: the files of its result, and nothing of tasks that failed or were run twice.

All files of a write go to a folder of its own, or have its mark in their names. A task on an executor that was cut off, but
lives, may write on for a moment after that was swept: such a file is nobody's, and the removal of orphans finds it.
"""

import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress

from py4j.java_gateway import JavaObject
from pyspark import SparkContext
from pyspark.sql import SparkSession

from icefloe import errors, manifests as mf, metadata as md
from icefloe.data import data_folder
from icefloe.spark.spark_sessions import is_classic
from icefloe.storage import Storage, possible_identity

_WAIT_SECONDS = 20
_POLL_SECONDS = 0.1


def new_folder(metadata: md.TableMetadata) -> str:
    """A folder under the table's data that no other write has."""
    return f"{data_folder(metadata)}/{uuid.uuid4()}"


@contextmanager
def removed_on_error(spark: SparkSession, storage: Storage, folder: str) -> Iterator[None]:
    """What runs inside may fail or be interrupted: its jobs are then stopped, and the folder is removed.

    Other tasks of a failed job may still run for a moment, so the folder waits for them.
    """
    with _stopped_on_error(spark, lambda: remove_folder(storage, folder)):
        yield


@contextmanager
def swept_by_name(spark: SparkSession, storage: Storage, folder: str, mark: str) -> Iterator[list[mf.DataFile]]:
    """The same for a write whose files lie among those of others, in any folder beneath this one: they have a mark in their names.

    The list is for the files that are part of the write's result. All others are looked for, which takes a listing of all
    files, only if the write fails or if Spark ran some of its tasks again.
    """
    result: list[mf.DataFile] = []
    with _stopped_on_error(spark, lambda: _remove_others(storage, folder, (), mark)) as tag:
        yield result
        if _has_run_again(spark, tag):
            _remove_others(storage, folder, (file.file_path for file in result), mark)


@contextmanager
def _stopped_on_error(spark: SparkSession, remove: Callable[[], None]) -> Iterator[str]:
    tag = f"icefloe-write-{uuid.uuid4()}"
    context = spark.sparkContext if is_classic(spark) else None
    if context is not None:
        context.addJobTag(tag)
    try:
        yield tag
    except BaseException:
        if context is not None:
            _stop_jobs(context, tag)
        # The write's own error matters more than one of cleaning up after it.
        with suppress(errors.IcefloeError):
            remove()
        raise
    finally:
        if context is not None:
            with suppress(Exception):
                context.removeJobTag(tag)


def _stop_jobs(context: SparkContext, tag: str) -> None:
    """Stop the jobs and wait for their tasks, if there still is a JVM to ask: the write's own error matters more."""
    with suppress(Exception):
        context.cancelJobsWithTag(tag)
        tracker = context._jsc.sc().statusTracker()
        end = time.monotonic() + _WAIT_SECONDS
        while any(stage.numActiveTasks() for stage in _stages(tracker, tag)) and time.monotonic() < end:
            time.sleep(_POLL_SECONDS)


def _has_run_again(spark: SparkSession, tag: str) -> bool:
    """Whether tasks of the jobs were run more than once; on Spark Connect there is nobody to ask."""
    if not is_classic(spark):
        return False
    speculates = spark.sparkContext.getConf().get("spark.speculation", "false") == "true"
    stages = _stages(spark.sparkContext._jsc.sc().statusTracker(), tag)
    return speculates or any(stage.numFailedTasks() or stage.currentAttemptId() for stage in stages)


def _stages(tracker: JavaObject, tag: str) -> Iterator[JavaObject]:
    jobs = (tracker.getJobInfo(job) for job in tracker.getJobIdsForTag(tag))
    stages = (tracker.getStageInfo(stage) for job in jobs if job.isDefined() for stage in job.get().stageIds())
    return (stage.get() for stage in stages if stage.isDefined())


def remove_folder(storage: Storage, folder: str) -> None:
    """Delete all that is beneath a folder, and the folders."""
    storage.delete([info.location for info in storage.list_prefix(folder)])
    for name in list(storage.list_folders(folder)):
        remove_folder(storage, f"{folder}/{name}")
    storage.remove_folder(folder)


def keep_only(storage: Storage, folder: str, result: Sequence[str]) -> None:
    """Delete what is beneath a folder but for these files: tasks that were run twice may have written more."""
    if result:
        _remove_others(storage, folder, result)
    else:
        remove_folder(storage, folder)


def _remove_others(storage: Storage, folder: str, result: Iterable[str], mark: str = "") -> None:
    """Delete files beneath a folder that have the mark in their names and are not part of the result."""
    identities = set(map(possible_identity, result))
    locations = (info.location for info in storage.list_prefix(folder))
    marked = (location for location in locations if mark in location.rpartition("/")[2])
    storage.delete([location for location in marked if possible_identity(location) not in identities])
