"""One group of a rewrite as jobs of Spark: how its rows are spread over tasks, which read and write them by Arrow.

Without an order no row is moved: each task reads about what one new file should hold, and writes it. With one, and where rows
go to other partitions, tasks read the files and cut their rows into ranges of keys, which a sample of them gives. The pieces go
through Spark's shuffle as they are in memory; then each task sorts and writes what one new file should hold.
"""

import threading
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession

from icefloe import commit as cm, maintenance as mt, manifests as mf, planning
from icefloe.data import KeyMaker, data_folder
from icefloe.spark.maintenance.spreading import (
    LABEL,
    RESULT,
    as_row,
    as_stream,
    frame_of_items,
    labels,
    received,
    spread,
)
from icefloe.spark.spark_sessions import clone_with, is_classic
from icefloe.spark.write_folder import swept_by_name
from icefloe.storage import parse_location

JOB_GROUP = "REWRITE-DATA-FILES"
_ARROW_PIECES = pa.schema({LABEL: pa.int32(), "range": pa.int32(), "rows_read": pa.int64(), "piece": pa.binary()})
_PIECES = f"{LABEL} INT, range INT, rows_read BIGINT, piece BINARY"
_LEAST_READ, _MOST_READ = 4 << 20, 64 << 20
"""Bytes of files that a task reads."""
_TASKS_A_CORE = 3
_SAMPLING_TASKS = 8
_SETTINGS = {
    # Each job has the tasks that it was given.
    "spark.sql.adaptive.enabled": "false",
    # Pieces of rows are large.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "4",
}


def rewrite_group_on_spark(spark: SparkSession, work: mt.GroupRewrite, cores: int) -> mt.RewrittenGroup:
    """Rewrite a group as jobs of the session."""
    folder = data_folder(work.metadata)
    if parse_location(folder).scheme == "memory":
        # Such files only exist in this process.
        return mt.rewrite_group(work)
    light = replace(work, metadata=work.metadata.without_history())
    with _described(spark, work.description), swept_by_name(spark, work.storage, folder, work.unique) as files:
        session = clone_with(spark, _SETTINGS) if is_classic(spark) else spark
        group = _ranged(session, light, cores) if work.is_ranged else _in_parts(session, light)
        files += group.files
        work.written.extend(group.files)
        return group


def _in_parts(spark: SparkSession, work: mt.GroupRewrite) -> mt.RewrittenGroup:
    """Each part is a task."""
    task = _PartTask(replace(work, tasks=()), mt.order_keys(work))
    return _joined(work, frame_of_items(spark, enumerate(mt.parts_of(work))).mapInArrow(task, RESULT))


def _ranged(spark: SparkSession, work: mt.GroupRewrite, cores: int) -> mt.RewrittenGroup:
    """Rows are cut into ranges where they are read, and each range is a task."""
    sample, chosen = mt.sample_of(work)
    several = [chosen[first::_SAMPLING_TASKS] for first in range(min(_SAMPLING_TASKS, len(chosen)))]
    sampled = frame_of_items(spark, several).mapInArrow(_SampleTask(sample), RESULT)
    ranged = mt.RangedRewrite.of_sample(work, pa.concat_tables(_results(sampled)))
    ranged = replace(ranged, work=replace(work, tasks=()))
    read = frame_of_items(spark, _read_parts(work, cores))
    pieces = _shuffled(read.mapInArrow(_CutTask(ranged, tuple(labels(ranged.files))), _PIECES), ranged.files)
    return _joined(work, pieces.mapInArrow(_RangeTask(ranged), RESULT))


def _shuffled(pieces: DataFrame, tasks: int) -> DataFrame:
    return spread(pieces, tasks)


def _read_parts(work: mt.GroupRewrite, cores: int) -> list[list[planning.FileScanTask]]:
    """What each task reads: some of it for each core, but neither little nor much."""
    size = min(max(work.size_in_bytes // (cores * _TASKS_A_CORE), _LEAST_READ), _MOST_READ)
    return list(planning.pack(mt.splits_of(work.tasks, size), lambda split: split.data_bytes, size))


def _results(frame: DataFrame) -> list[Any]:
    return [cloudpickle.loads(bytes(row[0])) for row in frame.collect()]


def _joined(work: mt.GroupRewrite, frame: DataFrame) -> mt.RewrittenGroup:
    """The group of its numbered parts, in their order."""
    return mt.joined(work, (part for _, part in sorted(_results(frame), key=lambda result: result[0])))


# -- what tasks do


@dataclass(frozen=True)
class _PartTask:
    """Rewrites parts of a group, each by itself."""

    work: mt.GroupRewrite
    keys: KeyMaker | None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number, tasks in received(batches):
            with _own(self.work, number) as (work, unique):
                part = mt.rewrite_part(work, tasks, self.keys, unique)
            yield as_row((number, part))


@dataclass(frozen=True)
class _SampleTask:
    """Reads parts of a sample."""

    sample: mt.Sample

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for tasks in received(batches):
            yield as_row(self.sample.read(tasks))


@dataclass(frozen=True)
class _CutTask:
    """Reads files, and cuts their rows into pieces; at the end it tells how many rows there were."""

    ranged: mt.RangedRewrite
    labels: tuple[int, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        total = 0
        for tasks in received(batches):
            for number, rows in self.ranged.cut(tasks):
                total += rows.num_rows
                yield self._row(number, 0, as_stream(rows))
        yield self._row(0, total, None)

    def _row(self, number: int, rows_read: int, piece: bytes | None) -> pa.RecordBatch:
        label = self.labels[self.ranged.file_of(number)]
        columns = ([label], [number], [rows_read], [piece])
        return pa.record_batch(
            [pa.array(column, each.type) for column, each in zip(columns, _ARROW_PIECES, strict=True)], _ARROW_PIECES
        )


@dataclass(frozen=True)
class _RangeTask:
    """Sorts and writes the pieces of one file; how many rows were read comes with some of them."""

    ranged: mt.RangedRewrite

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        received = _Received()
        pieces = received.pieces(batches)
        first = next(pieces, None)
        files: tuple[mf.DataFile, ...] = ()
        number = 0
        if first is not None:
            number = self.ranged.file_of(first[0])
            with _own(self.ranged.work, number) as (work, unique):
                files = replace(self.ranged, work=work).write(chain([first], pieces), unique).files
        yield as_row((number, mt.RewrittenGroup(files, received.rows_read)))


@dataclass(slots=True)
class _Received:
    """What reaches a task that writes."""

    rows_read: int = 0

    def pieces(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.Table]]:
        """The pieces of rows, with the numbers of their ranges."""
        for batch in batches:
            self.rows_read += sum(batch.column("rows_read").to_pylist())
            for number, piece in zip(batch.column("range").to_pylist(), batch.column("piece"), strict=True):
                if piece.is_valid:
                    yield number, pa.ipc.open_stream(piece.as_buffer()).read_all()


@contextmanager
def _own(work: mt.GroupRewrite, number: int) -> Iterator[tuple[mt.GroupRewrite, str]]:
    """The group for one try of one task, and a part of names that no other try has; if it fails, its files go."""
    own = replace(work, written=[])
    try:
        yield own, f"{work.unique}-{number:05d}-{uuid.uuid4().hex[:8]}"
    except BaseException:
        cm.delete_quietly(work.storage, [file.file_path for file in own.written], "of a task that failed")
        raise


@contextmanager
def _described(spark: SparkSession, description: str) -> Iterator[None]:
    """Name the jobs of this thread in Spark's UI."""
    if not is_classic(spark):
        yield
        return
    context = spark.sparkContext
    context.setJobGroup(f"{JOB_GROUP}-{threading.get_ident()}", description)
    try:
        yield
    finally:
        for key in ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel"):
            context._jsc.sc().setLocalProperty(key, None)
