"""The files of a plan in columns, manifest by manifest, and the tasks that are made of them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, make_dataclass, replace
from itertools import pairwise, repeat
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from icefloe.expressions import AlwaysTrue, Expression
from icefloe.manifests import DataFile, FileContent, ManifestColumns, Metric, MetricColumns
from icefloe.planning.partitions import Numbers, PartitionGroups
from icefloe.planning.pruning import Survivors, sequence_numbers
from icefloe.planning.tasks import FileScanTask, PlannedTask

_ROWS_AT_ONCE = 1024
"""How many rows leave Arrow at a time."""

TaskFields = tuple[DataFile, tuple[DataFile, ...], Expression, int]

_NO_METRICS: dict[int, Any] = {}


@dataclass(frozen=True, slots=True, eq=False)
class ScanBatch:
    """Some files of a plan: `files` in columns, with the deletes and the residual of each.

    `deletes` is None when there are none at all. Files are made of columns when tasks are asked for theirs, which takes more
    time than the plan itself; whoever can use columns should.
    """

    files: ManifestColumns
    groups: PartitionGroups
    residuals: tuple[Expression, ...]
    residual_of: Numbers
    deletes: Sequence[tuple[DataFile, ...]] | None = None
    keep_metrics: bool = False
    """Whether the metrics of all columns are decoded, and wanted in tasks."""
    _made: dict[int, list[TaskFields]] = field(default_factory=dict, init=False, repr=False)

    def __len__(self) -> int:
        return len(self.files)

    @property
    def sequence_numbers(self) -> Numbers:
        """The data sequence number of each file."""
        return sequence_numbers(self.files)

    @property
    def without_residual(self) -> int:
        """How many files have only rows that are sure to match."""
        return int(self._needs_no_look[self.residual_of].sum())

    def tasks(self) -> Iterator[FileScanTask]:
        """The tasks, one for each file; their fields are made when something is asked of them."""
        return map(PlannedTask, repeat(self), range(len(self)))

    def task_at(self, row: int) -> TaskFields:
        """What the task of a file holds; made for many files at once, since neighbours are mostly asked for next."""
        block, place = divmod(row, _ROWS_AT_ONCE)
        made = self._made.get(block)
        if made is None:
            made = self._made[block] = list(self._fields(block * _ROWS_AT_ONCE))
        return made[place]

    def rows_until(self, limit: int) -> tuple[int, int]:
        """How many files are enough for `limit` rows, counting those that need no look at rows, and the rows of those."""
        is_exact = self._needs_no_look[self.residual_of]
        if self.deletes is not None:
            is_exact &= np.fromiter((not each for each in self.deletes), bool, len(self))
        rows = np.cumsum(np.where(is_exact, self.files.column("record_count").to_numpy(zero_copy_only=False), 0))
        enough = min(int(np.searchsorted(rows, limit)) + 1, len(self))
        return enough, int(rows[enough - 1])

    @property
    def _needs_no_look(self) -> npt.NDArray[np.bool_]:
        return np.array([isinstance(each, AlwaysTrue) for each in self.residuals], bool)

    def _fields(self, start: int) -> Iterator[TaskFields]:
        files = self.files.slice(start, _ROWS_AT_ONCE)
        rows = slice(start, start + len(files))
        made = files.files() if self.keep_metrics else data_files(files, self.groups.of[rows], self.groups.tuples)
        residuals = map(self.residuals.__getitem__, self.residual_of[rows].tolist())
        deletes = repeat(()) if self.deletes is None else self.deletes[rows]
        return zip(made, deletes, residuals, sequence_numbers(files).tolist(), strict=False)


def batch_of(found: Survivors, deletes: Sequence[tuple[DataFile, ...]] | None, keep_metrics: bool = False) -> ScanBatch:
    """Files that survived, with their deletes; metrics have done their work, unless someone wants them."""
    files = found.files if keep_metrics else replace(found.files, metrics=MetricColumns(len(found.files)))
    return ScanBatch(files, found.groups, found.residuals, found.residual_of, deletes, keep_metrics)


def data_files(files: ManifestColumns, group_of: Numbers, tuples: Sequence[tuple[Any, ...]]) -> Iterator[DataFile]:
    """The files of all entries, without metrics; `group_of` says which of the partition tuples is that of each."""
    none = repeat(_NO_METRICS)
    return _made_files(
        _values(files, "file_path"),
        _mapped(files, "file_format", str.lower, ""),
        _values(files, "record_count"),
        _values(files, "file_size_in_bytes"),
        _mapped(files, "content", FileContent, FileContent.DATA),
        repeat(files.spec_id),
        map(tuples.__getitem__, group_of.tolist()),
        *(none for _ in Metric),
        _values(files, "key_metadata"),
        _tuples(files, "split_offsets"),
        _tuples(files, "equality_ids"),
        _values(files, "sort_order_id"),
        _values(files, "first_row_id"),
        _values(files, "referenced_data_file"),
        _values(files, "content_offset"),
        _values(files, "content_size_in_bytes"),
    )


def _values(files: ManifestColumns, name: str) -> Iterable[Any]:
    column = files.columns.get(name)
    if column is None or column.null_count == len(column):
        return repeat(None, len(files))
    found: list[Any] = column.to_pylist()
    return found


def _mapped(files: ManifestColumns, name: str, change: Callable[[Any], Any], missing: Any = None) -> Iterable[Any]:
    """The values of a column, each of them changed; the same ones once."""
    column = files.columns.get(name)
    if column is None or column.null_count == len(column):
        return repeat(missing, len(files))
    encoded = column.dictionary_encode(null_encoding="encode")
    changed = [missing if each is None else change(each) for each in encoded.dictionary.to_pylist()]
    return map(changed.__getitem__, encoded.indices.to_pylist())


def _tuples(files: ManifestColumns, name: str) -> Iterable[Any]:
    """The values of a column of lists."""
    column = files.columns.get(name)
    if column is None or column.null_count == len(column):
        return repeat(None, len(files))
    if column.null_count:
        return (None if each is None else tuple(each) for each in column.to_pylist())
    # Without a Python list for each, which the garbage collector would have to look after.
    ends = np.cumsum(pc.list_value_length(column).to_numpy()).tolist()
    numbers = column.flatten().to_pylist()
    return (tuple(numbers[start:end]) for start, end in pairwise([0, *ends]))


def _made_files(*fields_in_order: Iterable[Any]) -> Iterator[DataFile]:
    """Files from columns of their fields, several times as fast as by the class itself.

    Frozen values set each field by a call. The same fields in a class that is not frozen are plain stores, and its values
    may become those of the frozen one, since both have the same slots.
    """
    made: Any
    for made in map(_OPEN_FILE, *fields_in_order):
        made.__class__ = DataFile
        yield made


_OPEN_FILE: Any = make_dataclass("OpenDataFile", [each.name for each in fields(DataFile)], slots=True)
