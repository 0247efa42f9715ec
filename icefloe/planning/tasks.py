"""What a plan consists of: data files with the deletes that apply to them and what is left to ask of their rows.

Work of even size comes of them by splits at the offsets that the writer of a file noted, packed into bins.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields, make_dataclass, replace
from itertools import pairwise, starmap
from typing import Any, Protocol, TypedDict, Unpack

from icefloe import errors, expressions as ex, manifests as mf
from icefloe.planning.options import ScanOptions
from icefloe.planning.packing import pack
from icefloe.schema import Value

_SPLITTABLE = frozenset(("parquet", "orc", "avro"))


TaskFields = tuple[mf.DataFile, tuple[mf.DataFile, ...], ex.Expression, int]
"""File, deletes, residual and sequence number."""


class TaskSource(Protocol):
    """Files in columns, which knows what the task of each row holds."""

    def task_at(self, row: int) -> TaskFields:
        """The fields of the task of a row."""


class TaskChanges(TypedDict, total=False):
    """Other values of some fields of a task."""

    file: mf.DataFile
    deletes: tuple[mf.DataFile, ...]
    residual: ex.Expression
    sequence_number: int
    start: int
    length: int | None


@dataclass(frozen=True, slots=True)
class FileScanTask:
    """A data file to read, or a byte range of one.

    `deletes` are all that apply to the file: at most one deletion vector, or position delete files; and equality delete
    files. `residual` is bound to the schema of the scan, and true where the partition decides. Metrics of the files are
    left out, unless the scan was asked to keep them.
    """

    file: mf.DataFile
    deletes: tuple[mf.DataFile, ...]
    residual: ex.Expression
    sequence_number: int
    """The data sequence number of the file; -1 in the plan of a service, which does not carry it."""
    start: int = 0
    length: int | None = None
    """Bytes of the file from `start`; None is all of them."""

    def replace(self, **changes: Unpack[TaskChanges]) -> "FileScanTask":
        """The same task with other values of some fields."""
        return replace(self, **changes)

    @property
    def spec_id(self) -> int:
        """The partition spec that the file was written with."""
        return self.file.spec_id

    @property
    def partition(self) -> tuple[Value, ...]:
        """The values of the file's partition, in the order of its spec."""
        return self.file.partition

    @property
    def first_row_id(self) -> int | None:
        """The id of the file's first row, if its rows have ids."""
        return self.file.first_row_id

    @property
    def known_sequence_number(self) -> int:
        """The data sequence number, for those who cannot do without it."""
        if self.sequence_number < 0:
            raise errors.StateError(
                f"the plan of a service does not say the sequence number of {self.file.file_path}; plan the scan here"
            )
        return self.sequence_number

    @property
    def is_whole_file(self) -> bool:
        """Whether all rows of the file are meant."""
        return self.start == 0 and (self.length is None or self.length >= self.file.file_size_in_bytes)

    @property
    def deletion_vector(self) -> mf.DataFile | None:
        """The deletion vector of the file."""
        return next((file for file in self.deletes if file.is_deletion_vector), None)

    @property
    def position_deletes(self) -> tuple[mf.DataFile, ...]:
        """The position delete files that may name rows of the file."""
        return tuple(
            file
            for file in self.deletes
            if file.content is mf.FileContent.POSITION_DELETES and not file.is_deletion_vector
        )

    @property
    def equality_deletes(self) -> tuple[mf.DataFile, ...]:
        """The equality delete files that may match rows of the file."""
        return tuple(file for file in self.deletes if file.content is mf.FileContent.EQUALITY_DELETES)

    @property
    def data_bytes(self) -> int:
        """Bytes of the data file that are meant."""
        return self.file.file_size_in_bytes - self.start if self.length is None else self.length

    @property
    def size_bytes(self) -> int:
        """Bytes to read: the part of the file, and all of its deletes."""
        return self.data_bytes + sum(map(stored_bytes, self.deletes))


class PlannedTask(FileScanTask):
    """A task as plans give it out: a row of a batch, whose fields are made when the first of them is asked for.

    Making one costs a tenth of making the task and its file, which is most of what a plan of many files takes.
    """

    __slots__ = ("_fields", "_row", "_source")

    start = 0
    length = None

    def __init__(self, source: TaskSource, row: int) -> None:
        self._source: TaskSource | None = source
        self._row = row

    # Plain stores for the lines above: the fields of a task have no setter here.
    __setattr__ = object.__setattr__
    __delattr__ = object.__delattr__

    def _made(self) -> TaskFields:
        """The fields, made once; then the task no longer holds on to its batch."""
        source = self._source
        if source is not None:
            # Another thread may be here too, and make the same.
            self._fields = source.task_at(self._row)
            self._source = None
        return self._fields

    @property
    def file(self) -> mf.DataFile:
        """The data file."""
        return self._made()[0]

    @property
    def deletes(self) -> tuple[mf.DataFile, ...]:
        """All deletes that apply to the file."""
        return self._made()[1]

    @property
    def residual(self) -> ex.Expression:
        """What is left to ask of the rows."""
        return self._made()[2]

    @property
    def sequence_number(self) -> int:
        """The data sequence number of the file."""
        return self._made()[3]

    def replace(self, **changes: Unpack[TaskChanges]) -> FileScanTask:
        """A plain task with other values of some fields."""
        return FileScanTask(*self._made()).replace(**changes)

    def __eq__(self, other: object) -> bool:
        return self.replace() == (other.replace() if isinstance(other, PlannedTask) else other)

    def __hash__(self) -> int:
        return hash(self.replace())

    def __repr__(self) -> str:
        return repr(self.replace())

    def __reduce__(self) -> tuple[type[FileScanTask], TaskFields]:
        return FileScanTask, self._made()


def made_tasks(tasks: Iterable[TaskFields]) -> Iterator[FileScanTask]:
    """Plain tasks of these fields, for whole files; several times as fast as by the class itself (see `file_values`)."""
    task: Any
    for task in starmap(_OPEN_TASK, tasks):
        task.__class__ = FileScanTask
        yield task


_OPEN_TASK: Any = make_dataclass(
    "OpenScanTask",
    [(each.name, Any, field(default=each.default)) for each in fields(FileScanTask)],
    slots=True,
)


@dataclass(frozen=True, slots=True)
class CombinedScanTask:
    """Tasks that are worth one worker."""

    tasks: tuple[FileScanTask, ...]

    @property
    def size_bytes(self) -> int:
        """Bytes to read."""
        return sum(task.size_bytes for task in self.tasks)


def stored_bytes(file: mf.DataFile) -> int:
    """What a file takes to read: for a deletion vector its blob alone."""
    size = file.content_size_in_bytes
    return file.file_size_in_bytes if size is None or not file.is_deletion_vector else size


def split_task(task: FileScanTask, split_size: int) -> Iterator[FileScanTask]:
    """The task as byte ranges that together are all of it: one for each offset of the file, or of a fixed size.

    A range stands for the row groups, stripes or blocks that start in it.
    """
    size = task.file.file_size_in_bytes
    if task.file.file_format not in _SPLITTABLE or not task.is_whole_file:
        yield task
        return
    offsets = task.file.split_offsets
    if offsets and all(low < high for low, high in pairwise(offsets)) and offsets[0] >= 0 and offsets[-1] < size:
        starts = [0, *offsets[1:]]
    else:
        starts = list(range(0, size, split_size))
    if len(starts) < 2:
        yield task
        return
    for start, end in zip(starts, [*starts[1:], size], strict=True):
        yield task.replace(start=start, length=end - start)


def cut_task(task: FileScanTask, parts: int) -> list[FileScanTask]:
    """The task as up to so many neighbouring byte ranges, each with about as many row groups, stripes or blocks."""
    splits = list(split_task(task, max(1, -(-task.file.file_size_in_bytes // parts))))
    count = min(parts, len(splits))
    bounds = [len(splits) * number // count for number in range(count + 1)]
    if count < 2:
        return [task]
    starts = [splits[first].start for first in bounds[:-1]]
    ends = [*starts[1:], task.file.file_size_in_bytes]
    return [task.replace(start=start, length=end - start) for start, end in zip(starts, ends, strict=True)]


def pack_tasks(tasks: Iterable[FileScanTask], options: ScanOptions) -> Iterator[CombinedScanTask]:
    """The tasks, split and put together to the target size; bins come out as soon as they can be full no more."""
    splits = (split for task in tasks for split in split_task(task, options.split_size))
    packed = pack(
        splits,
        lambda split: _weight(split, options.split_open_file_cost),
        options.split_size,
        lookback=options.split_lookback,
        largest_first=True,
    )
    return map(_combined, packed)


def _combined(tasks: list[FileScanTask]) -> CombinedScanTask:
    """One task, with neighbouring ranges of one file joined."""
    joined = [tasks[0]]
    for task in tasks[1:]:
        last = joined[-1]
        if task.file is last.file and last.length is not None and last.start + last.length == task.start:
            joined[-1] = last.replace(length=last.length + task.data_bytes)
        else:
            joined.append(task)
    return CombinedScanTask(tuple(joined))


def _weight(task: FileScanTask, open_file_cost: int) -> int:
    """Bytes to read, but at least what it costs to open the files."""
    return max(task.size_bytes, (1 + len(task.deletes)) * open_file_cost)
