"""The files of a plan in columns, manifest by manifest, and the tasks that are made of them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, make_dataclass, replace
from typing import Any, TypeVar

import numpy as np

from icefloe.expressions import AlwaysTrue, Expression
from icefloe.manifests import DataFile, FileContent, ManifestColumns, MetricColumns
from icefloe.planning.partitions import Numbers, PartitionGroups
from icefloe.planning.pruning import Survivors, sequence_numbers
from icefloe.planning.tasks import FileScanTask

Made = TypeVar("Made")

TASKS_AT_ONCE = 2048
"""How many tasks are made before the first of them is given out."""

_NO_METRICS: dict[int, Any] = {}


@dataclass(frozen=True, slots=True, eq=False)
class ScanBatch:
    """Some files of a plan: `files` in columns, with the deletes and the residual of each.

    `deletes` is None when there are none at all. Making tasks of them is what most of the time of a large plan goes to;
    whoever can use columns should.
    """

    files: ManifestColumns
    groups: PartitionGroups
    residuals: tuple[Expression, ...]
    residual_of: Numbers
    deletes: Sequence[tuple[DataFile, ...]] | None = None
    keep_metrics: bool = False
    """Whether the metrics of all columns are decoded, and wanted in tasks."""

    def __len__(self) -> int:
        return len(self.files)

    @property
    def sequence_numbers(self) -> Numbers:
        """The data sequence number of each file."""
        return sequence_numbers(self.files)

    @property
    def without_residual(self) -> int:
        """How many files have only rows that are sure to match."""
        every = np.array([isinstance(each, AlwaysTrue) for each in self.residuals], bool)
        return int(every[self.residual_of].sum())

    def tasks(self) -> Iterator[FileScanTask]:
        """The tasks, one for each file."""
        for start in range(0, len(self), TASKS_AT_ONCE):
            yield from self._tasks(start, min(TASKS_AT_ONCE, len(self) - start))

    def _tasks(self, start: int, count: int) -> Iterator[FileScanTask]:
        files = self.files.slice(start, count)
        group_of = self.groups.of[start : start + count]
        made = files.files() if self.keep_metrics else data_files(files, group_of, self.groups.tuples)
        residual_of = self.residual_of[start : start + count].tolist()
        numbers = self.sequence_numbers[start : start + count].tolist()
        deletes = [()] * count if self.deletes is None else self.deletes[start : start + count]
        for file, number, residual, applied in zip(made, numbers, residual_of, deletes, strict=True):
            yield _task(file, applied, self.residuals[residual], number, 0, None)


def batch_of(found: Survivors, deletes: Sequence[tuple[DataFile, ...]] | None, keep_metrics: bool = False) -> ScanBatch:
    """Files that survived, with their deletes; metrics have done their work, unless someone wants them."""
    files = found.files if keep_metrics else replace(found.files, metrics=MetricColumns(len(found.files)))
    return ScanBatch(files, found.groups, found.residuals, found.residual_of, deletes, keep_metrics)


def data_files(files: ManifestColumns, group_of: Numbers, tuples: Sequence[tuple[Any, ...]]) -> Iterator[DataFile]:
    """The files of all entries, without metrics; `group_of` says which of the partition tuples is that of each."""
    partitions = map(tuples.__getitem__, group_of.tolist())
    formats: dict[str | None, str] = {}
    contents = {int(each): each for each in FileContent}
    rows = zip(
        _values(files, "file_path"),
        _values(files, "file_format"),
        _values(files, "record_count"),
        _values(files, "file_size_in_bytes"),
        _values(files, "content"),
        partitions,
        _values(files, "key_metadata"),
        _values(files, "split_offsets"),
        _values(files, "equality_ids"),
        _values(files, "sort_order_id"),
        _values(files, "first_row_id"),
        _values(files, "referenced_data_file"),
        _values(files, "content_offset"),
        _values(files, "content_size_in_bytes"),
        strict=True,
    )
    spec_id, none = files.spec_id, _NO_METRICS
    for path, kind, count, size, content, partition, key, offsets, ids, order, first, about, at, length in rows:
        if kind not in formats:
            formats[kind] = (kind or "").lower()
        yield _file(
            path or "",
            formats[kind],
            count,
            size or 0,
            contents[content],
            spec_id,
            partition,
            none,
            none,
            none,
            none,
            none,
            none,
            key,
            None if offsets is None else tuple(offsets),
            None if ids is None else tuple(ids),
            order,
            first,
            about,
            at,
            length,
        )


def _values(files: ManifestColumns, name: str) -> list[Any]:
    column = files.columns.get(name)
    if column is None or column.null_count == len(column):
        return [None] * len(files)
    found: list[Any] = column.to_pylist()
    return found


def _opened(kind: type[Made]) -> Callable[..., Made]:
    """A constructor of a frozen value that takes every field by position, several times as fast as the class itself.

    Frozen values set each field by a call. The same fields in a value that is not frozen are plain stores, and such a value
    may become one of the frozen class, since both have the same slots.
    """
    open_kind: Any = make_dataclass(f"Open{kind.__name__}", [each.name for each in fields(kind)], slots=True)  # type: ignore[arg-type]  # a dataclass

    def make(*values: Any) -> Made:
        made = open_kind(*values)
        made.__class__ = kind
        return made  # type: ignore[no-any-return]  # it is one now

    return make


_file = _opened(DataFile)
_task = _opened(FileScanTask)
