"""Which rows of data files a change concerns, by file and position, and the other rows of these files."""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import groupby
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icefloe import errors, expressions as ex, parallel, planning
from icefloe.data import ReadContext, default_workers, in_pieces, read_pieces, read_task, rows_not_deleted_by_position
from icefloe.formats.deletion_vectors import DeletionVector
from icefloe.schema import Schema, reserved
from icefloe.versions import Feature, allows

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class MatchedRows:
    """The live rows of one data file that a change concerns, by their positions."""

    task: planning.FileScanTask
    positions: DeletionVector
    context: ReadContext = field(compare=False, repr=False)

    @property
    def path(self) -> str:
        """The path of the file."""
        return self.task.file.file_path

    @property
    def is_whole_file(self) -> bool:
        """Whether no live row is left in the file."""
        return self.positions.cardinality == rows_not_deleted_by_position(self.task, self.context)


def find_matching_rows(tasks: Iterable[planning.FileScanTask], context: ReadContext) -> Iterator[MatchedRows]:
    """The live rows that match the residuals of their tasks, in the order of the tasks; files without any are left out.

    Where all rows of a file match, nothing but its deletes is read.
    """

    def search(task: planning.FileScanTask) -> npt.NDArray[np.int64] | None:
        positions = _positions(task, context)
        return positions if len(positions) else None

    for task, parts in search_files(tasks, search):
        yield MatchedRows(task, DeletionVector.from_positions(np.concatenate(parts)), context)


def search_files(
    tasks: Iterable[planning.FileScanTask], search: Callable[[planning.FileScanTask], Result | None]
) -> Iterator[tuple[planning.FileScanTask, list[Result]]]:
    """The results of a search by file, in the order of the tasks; several files, or parts of a large one, are searched at once."""
    workers = default_workers()

    def of_task(task: planning.FileScanTask) -> tuple[planning.FileScanTask, Result | None]:
        return task, search(task)

    with (
        closing(in_pieces(map(_whole, tasks), workers)) as pieces,
        closing(parallel.in_order(of_task, pieces, workers, "icefloe-search")) as parts,
    ):
        for _, of_file in groupby(parts, key=lambda part: part[0].file.file_path):
            pairs = [(task, result) for task, result in of_file if result is not None]
            if pairs:
                yield pairs[0][0].replace(start=0, length=None), [result for _, result in pairs]


def remaining_rows(matches: Sequence[MatchedRows], context: ReadContext) -> Generator[pa.RecordBatch]:
    """All other live rows of the matched files, with the columns of row lineage where rows have ids."""
    metadata = context.metadata
    lineage = reserved.ROW_LINEAGE_COLUMNS if allows(metadata.format_version, Feature.ROW_LINEAGE) else ()
    columns = Schema(*metadata.schema().fields, *lineage, reserved.POS)
    by_path = {match.path: match.positions for match in matches}

    def rest(task: planning.FileScanTask) -> Iterator[pa.RecordBatch]:
        for batch in read_task(task, columns, context):
            others = batch.filter(pa.array(~_mask(by_path[task.file.file_path], batch)))
            if others.num_rows:
                yield others.drop_columns([reserved.POS.name])

    partly = (match.task.replace(residual=ex.AlwaysTrue()) for match in matches if not match.is_whole_file)
    return read_pieces(partly, rest)


def _positions(task: planning.FileScanTask, context: ReadContext) -> npt.NDArray[np.int64]:
    if isinstance(task.residual, ex.AlwaysTrue) and not task.equality_deletes:
        # Known without the file: its first part stands for all of it.
        deleted = context.deletes.positions(task).mask(0, task.file.record_count if task.start == 0 else 0)
        return np.flatnonzero(~deleted)
    parts = [batch.column(0).to_numpy() for batch in read_task(task, Schema(reserved.POS), context)]
    return np.concatenate([np.empty(0, np.int64), *parts])


def _whole(task: planning.FileScanTask) -> planning.FileScanTask:
    if not task.is_whole_file:
        raise errors.InvalidInputError(
            f"{task.file.file_path} is split; deleting rows requires tasks of whole files, as returned by `plan_files`"
        )
    return task


def _mask(positions: DeletionVector, batch: pa.RecordBatch) -> npt.NDArray[np.bool_]:
    """Which rows of a batch with `_pos` are at these positions."""
    own = batch.column(reserved.POS.name).to_numpy()
    first = int(own[0])
    is_there: npt.NDArray[np.bool_] = positions.mask(first, int(own[-1]) + 1)[own - first]
    return is_there
