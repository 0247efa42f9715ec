"""Which rows tell what values the rows of a group have: every so many of some row groups, which are chosen at random."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

import pyarrow as pa

from icefloe import planning
from icefloe.data import ReadContext, read_task
from icefloe.schema import Schema, schema_to_arrow

Tasks = Sequence[planning.FileScanTask]

_SPLITS = 64
_SPLIT_BYTES = 64 << 20
_ROWS = 1 << 17
"""Enough rows to tell which values are usual."""


@dataclass(frozen=True, slots=True)
class Sample:
    """How rows of a group are sampled; any of its tasks can be read by itself."""

    context: ReadContext
    columns: Schema
    every: int

    @staticmethod
    def of(tasks: Tasks, context: ReadContext, columns: Schema) -> "tuple[Sample, Tasks]":
        """The sample of a group of tasks, and what is to be read for it: the same each time."""
        splits = list(splits_of(tasks, _SPLIT_BYTES))
        chosen = splits if len(splits) <= _SPLITS else Random(7).sample(splits, _SPLITS)
        rows = sum(task.file.record_count * task.data_bytes // max(1, task.file.file_size_in_bytes) for task in chosen)
        return Sample(context, columns, max(1, rows // _ROWS)), chosen

    def read(self, tasks: Tasks) -> pa.Table:
        """The rows of some of the tasks."""
        rows = [schema_to_arrow(self.columns).empty_table()]
        start = 0
        for task in tasks:
            for batch in read_task(task, self.columns, self.context):
                rows.append(
                    pa.Table.from_batches([batch]).take(pa.array(range(start, batch.num_rows, self.every), pa.int64()))
                )
                start = (start - batch.num_rows) % self.every
        return pa.concat_tables(rows)


def splits_of(tasks: Tasks, size: int) -> Iterator[planning.FileScanTask]:
    """The tasks, those of larger files cut along their row groups."""
    for task in tasks:
        yield from planning.split_task(task, size) if task.file.file_size_in_bytes > size else (task,)
