"""Which rows of data files a change is about: the positions of live rows that match a predicate."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from icefloe.data.in_order import read_in_order
from icefloe.data.pieces import in_pieces
from icefloe.data.scanning import default_workers, known_count, rows_of
from icefloe.data.task_reader import ReadContext, read_task
from icefloe.errors import InvalidInputError
from icefloe.expressions import AlwaysTrue, Expression
from icefloe.formats.deletion_vectors import DeletionVector
from icefloe.planning import FileScanTask
from icefloe.schema import Schema, reserved


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


@dataclass(frozen=True, slots=True)
class _Positions:
    """The matching rows of a file, or of a part of one."""

    task: FileScanTask
    positions: npt.NDArray[np.int64]

    @property
    def nbytes(self) -> int:
        return self.positions.nbytes


def find_matching_rows(
    tasks: Iterable[FileScanTask],
    context: ReadContext,
    predicate: Expression | None = None,
    *,
    workers: int | None = None,
) -> Iterator[MatchedRows]:
    """The live rows that match the bound predicate, file by file in the order of the tasks; files without any are left out.

    Without a predicate, the residual of each task says which rows are meant. Nothing is read of a file all of whose rows
    are meant, but for its deletes.
    """

    def search(task: FileScanTask) -> Iterator[_Positions]:
        positions = _positions(task if predicate is None else replace(task, residual=predicate), context)
        if len(positions):
            yield _Positions(task, positions)

    def joined(task: FileScanTask, parts: list[_Positions]) -> MatchedRows:
        positions = np.concatenate([part.positions for part in parts])
        return matched_rows(task, DeletionVector.from_positions(positions), context)

    yield from search_files(tasks, search, joined, workers)


class Part(Protocol):
    """What a search found in a file, or in a part of one."""

    @property
    def task(self) -> FileScanTask:
        """What was searched."""
        ...

    @property
    def nbytes(self) -> int:
        """About how much memory it takes."""
        ...


Found = TypeVar("Found", bound=Part)
Joined = TypeVar("Joined")


def search_files(
    tasks: Iterable[FileScanTask],
    search: Callable[[FileScanTask], Iterator[Found]],
    joined: Callable[[FileScanTask, list[Found]], Joined],
    workers: int | None = None,
) -> Iterator[Joined]:
    """What a search finds in each file, in the order of the tasks; several are searched at once, or parts of a large one."""
    count = default_workers() if workers is None else workers
    with closing(read_in_order(in_pieces((_whole(task) for task in tasks), count), search, count)) as parts:
        for _, found in groupby(parts, key=lambda part: part.task.file.file_path):
            of_file = list(found)
            yield joined(replace(of_file[0].task, start=0, length=None), of_file)


def _positions(task: FileScanTask, context: ReadContext) -> npt.NDArray[np.int64]:
    if isinstance(task.residual, AlwaysTrue) and not task.equality_deletes:
        # Known without the file: its first part stands for all of it.
        gone = context.deletes.positions(task).mask(0, task.file.record_count if task.start == 0 else 0)
        return np.flatnonzero(~gone)
    parts = [batch.column(0).to_numpy() for batch in read_task(task, Schema(reserved.POS), context)]
    return np.concatenate([np.empty(0, np.int64), *parts])


def _whole(task: FileScanTask) -> FileScanTask:
    if not task.is_whole_file:
        raise InvalidInputError(
            f"{task.file.file_path} is split; rows are deleted by tasks of whole files, as `plan_files` gives them"
        )
    return task


def matched_rows(task: FileScanTask, positions: DeletionVector, context: ReadContext) -> MatchedRows:
    """The rows at these positions of a task's file, with what is known of the others."""
    live = known_count(replace(task, residual=AlwaysTrue()), context)
    return MatchedRows(task, positions, rows_of(context.deletes.positions(task), task.file.record_count), live)


def positions_mask(positions: DeletionVector, batch: Any) -> npt.NDArray[np.bool_]:
    """Which rows of a batch with `_pos` are at these positions."""
    found = batch.column(reserved.POS.name).to_numpy()
    first = int(found[0])
    is_there: npt.NDArray[np.bool_] = positions.mask(first, int(found[-1]) + 1)[found - first]
    return is_there
