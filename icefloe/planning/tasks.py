"""What a plan consists of: a data file, or a part of one, with the deletes that apply to it and what is left to ask of its rows."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from icefloe.expressions import AlwaysTrue, Expression
from icefloe.manifests import DataFile, FileContent


class TaskSource(Protocol):
    """Files in columns, which knows what the task of each row holds."""

    def task_at(self, row: int) -> tuple[DataFile, tuple[DataFile, ...], Expression, int]:
        """File, deletes, residual and sequence number."""


class _Origin:
    """Where a task comes from that was not looked at yet: a row of a batch."""

    __slots__ = ("_row", "_source")

    _source: TaskSource | None
    _row: int


@dataclass(frozen=True, slots=True)
class FileScanTask(_Origin):
    """A data file to read, or a byte range of one.

    `deletes` are all that apply to the file: at most one deletion vector, or position delete files; and equality delete
    files. `residual` is bound to the schema of the scan, and true where the partition decides. Metrics of the files are
    left out, unless the scan was asked to keep them.
    """

    file: DataFile
    deletes: tuple[DataFile, ...]
    residual: Expression
    sequence_number: int
    """The data sequence number of the file."""
    start: int = 0
    length: int | None = None
    """Bytes of the file from `start`; None is all of them."""

    @property
    def spec_id(self) -> int:
        """The partition spec that the file was written with."""
        return self.file.spec_id

    @property
    def partition(self) -> tuple[Any, ...]:
        """The values of the file's partition, in the order of its spec."""
        return self.file.partition

    @property
    def first_row_id(self) -> int | None:
        """The id of the file's first row, if its rows have ids."""
        return self.file.first_row_id

    @property
    def is_whole_file(self) -> bool:
        """Whether all rows of the file are meant."""
        return self.start == 0 and (self.length is None or self.length >= self.file.file_size_in_bytes)

    @property
    def is_exact(self) -> bool:
        """Whether the rows of the task are all rows of the file: nothing deleted and nothing left to ask."""
        return self.is_whole_file and not self.deletes and isinstance(self.residual, AlwaysTrue)

    @property
    def deletion_vector(self) -> DataFile | None:
        """The deletion vector of the file."""
        return next((file for file in self.deletes if file.is_deletion_vector), None)

    @property
    def position_deletes(self) -> tuple[DataFile, ...]:
        """The position delete files that may name rows of the file."""
        return tuple(
            file
            for file in self.deletes
            if file.content is FileContent.POSITION_DELETES and not file.is_deletion_vector
        )

    @property
    def equality_deletes(self) -> tuple[DataFile, ...]:
        """The equality delete files that may match rows of the file."""
        return tuple(file for file in self.deletes if file.content is FileContent.EQUALITY_DELETES)

    @property
    def data_bytes(self) -> int:
        """Bytes of the data file that are meant."""
        return self.file.file_size_in_bytes - self.start if self.length is None else self.length

    @property
    def size_bytes(self) -> int:
        """Bytes to read: the part of the file, and all of its deletes."""
        return self.data_bytes + sum(map(stored_bytes, self.deletes))


def _filled(task: FileScanTask) -> FileScanTask:
    """The same object with its fields in place, no longer tied to the batch that it comes from."""
    source = task._source
    # Another thread may have been here first.
    if source is not None:
        file, deletes, residual, sequence_number = source.task_at(task._row)
        _store_file(task, file)
        _store_deletes(task, deletes)
        _store_residual(task, residual)
        _store_sequence_number(task, sequence_number)
        _store_start(task, 0)
        _store_length(task, None)
        _store_class(task, FileScanTask)
        _store_source(task, None)
    return task


def _store(name: str, of: type[Any]) -> Callable[[FileScanTask, Any], None]:
    """How a field is set that is frozen for everybody else."""
    found: Callable[[FileScanTask, Any], None] = getattr(of, name).__set__
    return found


_store_file = _store("file", FileScanTask)
_store_deletes = _store("deletes", FileScanTask)
_store_residual = _store("residual", FileScanTask)
_store_sequence_number = _store("sequence_number", FileScanTask)
_store_start = _store("start", FileScanTask)
_store_length = _store("length", FileScanTask)
_store_source = _store("_source", _Origin)
_store_class: Callable[[FileScanTask, Any], None] = object.__dict__["__class__"].__set__


def _field(name: str) -> Any:
    return property(lambda task: getattr(_filled(task), name))


class PlannedTask(FileScanTask):
    """A task as plans give it out: it names a row of a batch, and turns into a plain task when something is asked of it.

    Making one costs a tenth of making the task and its file, which is most of what a plan of many files takes.
    """

    __slots__ = ()

    def __init__(self, source: TaskSource, row: int) -> None:
        self._source = source
        self._row = row

    # Plain stores for the two lines above, which takes both of these; the fields themselves have no setter here.
    __setattr__ = object.__setattr__
    __delattr__ = object.__delattr__

    file = _field("file")
    deletes = _field("deletes")
    residual = _field("residual")
    sequence_number = _field("sequence_number")
    start = _field("start")
    length = _field("length")

    def __eq__(self, other: object) -> bool:
        return _filled(self) == (_filled(other) if isinstance(other, PlannedTask) else other)

    def __hash__(self) -> int:
        return hash(_filled(self))

    def __repr__(self) -> str:
        return repr(_filled(self))

    def __reduce__(self) -> Any:
        return _filled(self).__reduce_ex__(2)


@dataclass(frozen=True, slots=True)
class CombinedScanTask:
    """Tasks that are worth one worker."""

    tasks: tuple[FileScanTask, ...]

    @property
    def size_bytes(self) -> int:
        """Bytes to read."""
        return sum(task.size_bytes for task in self.tasks)


def stored_bytes(file: DataFile) -> int:
    """What a file takes to read: for a deletion vector its blob alone."""
    size = file.content_size_in_bytes
    return file.file_size_in_bytes if size is None or not file.is_deletion_vector else size


def exact_count(tasks: Iterable[FileScanTask]) -> int | None:
    """How many rows the tasks have, if that is known without reading them."""
    total = 0
    for task in tasks:
        if not task.is_exact:
            return None
        total += task.file.record_count
    return total
