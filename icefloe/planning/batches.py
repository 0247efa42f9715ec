"""The files of a plan in columns, manifest by manifest, and the tasks that are made of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, repeat

import numpy as np

from icefloe import expressions as ex, manifests as mf
from icefloe.planning.file_values import data_files
from icefloe.planning.partitions import Numbers, PartitionGroups
from icefloe.planning.pruning import Survivors, sequence_numbers
from icefloe.planning.tasks import FileScanTask, PlannedTask, TaskFields, made_tasks, stored_bytes
from icefloe.planning.vector_deletes import VectorDeletes

_ROWS_AT_ONCE = 1024
"""How many rows leave Arrow at a time."""
_ROWS_UNTIL_A_LOOK = 16 * _ROWS_AT_ONCE
"""After how many rows there are some again that tell whether they are asked."""


@dataclass(frozen=True, slots=True, eq=False)
class ScanBatch:
    """Some files of a plan: `files` in columns, with the deletes and the residual of each.

    `deletes` is None when there are none at all. Files are made of columns when tasks are asked for theirs, which takes more
    time than the plan itself; whoever can use columns should.
    """

    files: mf.ManifestColumns
    groups: PartitionGroups
    residuals: tuple[ex.Expression, ...]
    residual_of: Numbers
    deletes: Sequence[tuple[mf.DataFile, ...]] | None = None
    keep_metrics: bool = False
    """Whether the metrics of all columns are decoded, and wanted in tasks."""
    _recent: "_RecentTasks" = field(default_factory=lambda: _RecentTasks(), init=False, repr=False)

    def __len__(self) -> int:
        return len(self.files)

    @property
    def without_residual(self) -> int:
        """How many files have only rows that are sure to match."""
        return int(self._needs_no_look[self.residual_of].sum())

    @property
    def deletes_and_bytes(self) -> tuple[int, int]:
        """How many deletes apply to the files, and their bytes; one that applies to two files counts twice."""
        if self.deletes is None:
            return 0, 0
        if isinstance(self.deletes, VectorDeletes):
            return self.deletes.total, self.deletes.total_bytes
        sizes = [stored_bytes(file) for deletes in self.deletes for file in deletes]
        return len(sizes), sum(sizes)

    @property
    def rows_of_vectors(self) -> Numbers | None:
        """How many rows of each file a vector deletes, -1 without one; None if there are other deletes, too."""
        return self.deletes.deleted_rows if isinstance(self.deletes, VectorDeletes) else None

    def tasks(self) -> Iterator[FileScanTask]:
        """The tasks, one for each file; their fields are made when something is asked of them.

        While most tasks are asked, those that follow are made whole, which takes half as long.
        """
        return chain.from_iterable(map(self._tasks_from, range(0, len(self), _ROWS_AT_ONCE)))

    def _tasks_from(self, start: int) -> Iterator[FileScanTask]:
        if start % _ROWS_UNTIL_A_LOOK and self._recent.asked > _ROWS_AT_ONCE // 2:
            return made_tasks(self._fields(start, _ROWS_AT_ONCE))
        self._recent.asked = 0
        return map(PlannedTask, repeat(self), range(start, min(start + _ROWS_AT_ONCE, len(self))))

    def task_at(self, row: int) -> TaskFields:
        """What the task of a file holds; made for many files at once where they are asked for one after the other."""
        self._recent.asked += 1
        block, index = divmod(row, _ROWS_AT_ONCE)
        tasks = self._recent.blocks.get(block)
        if tasks is None:
            if not self._recent.is_due(block):
                return next(self._fields(row, 1))
            tasks = self._recent.keep(block, list(self._fields(block * _ROWS_AT_ONCE, _ROWS_AT_ONCE)))
        return tasks[index]

    def first(self, count: int) -> "ScanBatch":
        """The first files alone, so that no others are made with them."""
        if count >= len(self):
            return self
        return replace(
            self,
            files=self.files.slice(0, count),
            groups=self.groups.at(np.arange(count)),
            residual_of=self.residual_of[:count],
            deletes=None if self.deletes is None else self.deletes[:count],
        )

    def rows_until(self, limit: int) -> tuple[int, int]:
        """How many files are enough for `limit` rows, counting those that need no look at rows, and the rows of those."""
        is_exact = self._needs_no_look[self.residual_of]
        if self.deletes is not None:
            is_exact &= ~_has_deletes(self.deletes)
        rows = np.cumsum(np.where(is_exact, self.files.column("record_count").to_numpy(zero_copy_only=False), 0))
        enough = min(int(np.searchsorted(rows, limit)) + 1, len(self))
        return enough, int(rows[enough - 1])

    @property
    def _needs_no_look(self) -> ex.Mask:
        return np.array([isinstance(residual, ex.AlwaysTrue) for residual in self.residuals], bool)

    def _fields(self, start: int, count: int) -> Iterator[TaskFields]:
        files = self.files.slice(start, count)
        rows = slice(start, start + len(files))
        values = files.files() if self.keep_metrics else data_files(files, self.groups.of[rows], self.groups.tuples)
        residuals = map(self.residuals.__getitem__, self.residual_of[rows].tolist())
        deletes = repeat(()) if self.deletes is None else self.deletes[rows]
        return zip(values, deletes, residuals, sequence_numbers(files).tolist(), strict=False)


class _RecentTasks:
    """The fields of tasks that were made last. Few are kept: many values that stay alive cost more than making them."""

    __slots__ = ("asked", "blocks", "missed", "newest")

    def __init__(self) -> None:
        self.asked = 0
        self.blocks: dict[int, list[TaskFields]] = {}
        self.newest = -1
        self.missed = -1

    def is_due(self, block: int) -> bool:
        """Whether a block comes after the last one, or is asked for again; else rows are asked for here and there."""
        is_due = block in (self.newest + 1, self.missed)
        self.missed = block
        return is_due

    def keep(self, block: int, tasks: list[TaskFields]) -> list[TaskFields]:
        """Keep a block, and the one before it for those who are a little behind."""
        for old in [number for number in list(self.blocks) if number != self.newest]:
            self.blocks.pop(old, None)
        self.blocks[block] = tasks
        self.newest = block
        return tasks


def batch_of(
    survivors: Survivors,
    deletes: Sequence[tuple[mf.DataFile, ...]] | None,
    keep_metrics: bool = False,
    some_metrics: bool = False,
) -> ScanBatch:
    """Files that survived, with their deletes; metrics have done their work, unless someone wants them, or some of them."""
    files = survivors.files
    if not keep_metrics and not some_metrics:
        files = replace(files, metrics=mf.MetricColumns(len(files)))
    return ScanBatch(files, survivors.groups, survivors.residuals, survivors.residual_of, deletes, keep_metrics)


def _has_deletes(deletes: Sequence[tuple[mf.DataFile, ...]]) -> ex.Mask:
    if isinstance(deletes, VectorDeletes):
        return deletes.exists
    return np.fromiter(map(bool, deletes), bool, len(deletes))
