"""Which rows of data files a change is about: the positions of live rows that match a predicate or have one of many keys."""

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
from icefloe.formats.equality_keys import EqualityKeys
from icefloe.metadata.table import TableMetadata
from icefloe.planning.tasks import FileScanTask
from icefloe.schema.projection import select_ids
from icefloe.schema.reserved import POS
from icefloe.schema.schema import Schema
from icefloe.storage import Storage

RowTest = Callable[[Any], npt.NDArray[np.bool_]]


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
        yield _found(task, _positions(meant, context), context)

    yield from _search(tasks, search, workers)


def find_rows_with_keys(
    tasks: Iterable[FileScanTask],
    metadata: TableMetadata,
    storage: Storage,
    keys: Any,
    field_ids: Iterable[int],
    *,
    workers: int | None = None,
) -> Iterator[MatchedRows]:
    """The live rows that have one of the keys, a table with the columns of these field ids; null equals null.

    Like `find_matching_rows` for the rows that an upsert replaces. The residuals of the tasks hold too.
    """
    context = ReadContext(metadata, storage)
    ids = tuple(field_ids)
    wanted = Schema(*select_ids(metadata.schema(), ids).fields, POS)
    test = EqualityKeys(keys, ids).mask

    def search(task: FileScanTask) -> Iterator[Any]:
        parts = [batch.column(POS.name).to_numpy()[test(batch)] for batch in read_task(_whole(task), wanted, context)]
        yield _found(task, DeletionVector.from_positions(np.concatenate([np.empty(0, np.int64), *parts])), context)

    yield from _search(tasks, search, workers)


def _search(
    tasks: Iterable[FileScanTask], search: Callable[[FileScanTask], Iterator[Any]], workers: int | None
) -> Iterator[MatchedRows]:
    count = default_workers() if workers is None else workers
    found = read_in_order(tasks, search, count)
    try:
        for matched in found:
            if matched.positions:
                yield matched
    finally:
        found.close()  # type: ignore[attr-defined]  # a generator


def _positions(task: FileScanTask, context: ReadContext) -> DeletionVector:
    task = _whole(task)
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


def _found(task: FileScanTask, positions: DeletionVector, context: ReadContext) -> MatchedRows:
    if not positions:
        return MatchedRows(task, positions, DeletionVector(), None)
    live = known_count(replace(task, residual=AlwaysTrue()), context)
    return MatchedRows(task, positions, _rows_of(context.deletes.positions(task), task.file.record_count), live)


def _rows_of(deleted: DeletionVector, rows: int) -> DeletionVector:
    """The positions that are rows of the file: delete files of others may name more, a new vector must not."""
    if deleted.highest is None or deleted.highest < rows:
        return deleted
    positions = deleted.positions()
    return DeletionVector.from_positions(positions[positions < rows])
