"""Which rows of data files a change is about: the positions of live rows that match a predicate."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from icefloe.data.in_order import read_in_order
from icefloe.data.scanning import default_workers, known_count
from icefloe.data.task_reader import ReadContext, read_task
from icefloe.errors import InvalidInputError
from icefloe.expressions import AlwaysTrue, Expression
from icefloe.formats.deletion_vectors import DeletionVector
from icefloe.metadata.table import TableMetadata
from icefloe.planning.tasks import FileScanTask
from icefloe.schema.reserved import POS
from icefloe.schema.schema import Schema
from icefloe.storage import Storage


@dataclass(frozen=True, slots=True)
class MatchedRows:
    """The rows of one data file that a change is about.

    `positions` are those of the matching rows that were live; `before` are those that were deleted by position already.
    """

    task: FileScanTask
    positions: DeletionVector
    before: DeletionVector
    live_rows: int | None
    """How many rows of the file were live; None where that is not known, as equality deletes apply."""

    @property
    def nbytes(self) -> int:
        """About how much memory it takes, for those who read ahead."""
        return 8 * (self.positions.cardinality + self.before.cardinality)

    @property
    def is_whole_file(self) -> bool:
        """Whether no live row is left in the file."""
        rows = self.live_rows if self.live_rows is not None else self.task.file.record_count - self.before.cardinality
        return self.positions.cardinality == rows


def find_matching_rows(
    tasks: Iterable[FileScanTask],
    metadata: TableMetadata,
    storage: Storage,
    predicate: Expression | None = None,
    *,
    workers: int | None = None,
) -> Iterator[MatchedRows]:
    """The live rows that match the bound predicate, file by file in the order of the tasks; files without any are left out.

    Without a predicate, the residual of each task says which rows are meant. Nothing is read of a file all of whose rows
    are meant, but for its deletes.
    """
    context = ReadContext(metadata, storage)

    def search(task: FileScanTask) -> Iterator[Any]:
        meant = task if predicate is None else replace(task, residual=predicate)
        positions = _positions(meant, context)
        if positions:
            yield matched_rows(task, positions, context)

    yield from search_files(tasks, search, workers)


def search_files(
    tasks: Iterable[FileScanTask], search: Callable[[FileScanTask], Iterator[Any]], workers: int | None = None
) -> Iterator[Any]:
    """What a search finds in each file, in the order of the tasks; several are searched at once."""
    count = default_workers() if workers is None else workers
    found = read_in_order((_whole(task) for task in tasks), search, count)
    try:
        yield from found
    finally:
        found.close()  # type: ignore[attr-defined]  # a generator


def _positions(task: FileScanTask, context: ReadContext) -> DeletionVector:
    if isinstance(task.residual, AlwaysTrue) and not task.equality_deletes:
        gone = context.deletes.positions(task)
        return DeletionVector.from_positions(np.flatnonzero(~gone.mask(0, task.file.record_count)))
    parts = [batch.column(0).to_numpy() for batch in read_task(task, Schema(POS), context)]
    return DeletionVector.from_positions(np.concatenate([np.empty(0, np.int64), *parts]))


def _whole(task: FileScanTask) -> FileScanTask:
    if not task.is_whole_file:
        raise InvalidInputError(
            f"{task.file.file_path} is split; rows are deleted by tasks of whole files, as `plan_files` gives them"
        )
    return task


def matched_rows(task: FileScanTask, positions: DeletionVector, context: ReadContext) -> MatchedRows:
    """The rows at these positions of a task's file, with what is known of the others."""
    live = known_count(replace(task, residual=AlwaysTrue()), context)
    return MatchedRows(task, positions, _rows_of(context.deletes.positions(task), task.file.record_count), live)


def positions_mask(positions: DeletionVector, batch: Any) -> npt.NDArray[np.bool_]:
    """Which rows of a batch with `_pos` are at these positions."""
    found = batch.column(POS.name).to_numpy()
    first = int(found[0])
    is_there: npt.NDArray[np.bool_] = positions.mask(first, int(found[-1]) + 1)[found - first]
    return is_there


def _rows_of(deleted: DeletionVector, rows: int) -> DeletionVector:
    """The positions that are rows of the file: delete files of others may name more, a new vector must not."""
    if deleted.highest is None or deleted.highest < rows:
        return deleted
    positions = deleted.positions()
    return DeletionVector.from_positions(positions[positions < rows])
