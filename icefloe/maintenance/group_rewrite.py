"""How the rows of one group become new files in this process: streamed, deletes applied, row ids kept.

A group is cut into parts of about one new file each, along row groups where a file is larger. Where rows have an order, the
rows of a part, or of the whole group under `sort`, are sorted first.
"""

from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field

import pyarrow as pa

from icefloe.data import FileForm, ReadContext, TableWriter, default_workers, read_in_order, read_task
from icefloe.maintenance.file_sizes import FileSizes
from icefloe.maintenance.strategies import Strategy
from icefloe.manifests import DataFile
from icefloe.metadata import TableMetadata
from icefloe.parallel import in_order
from icefloe.partitioning import PartitionSpec
from icefloe.planning import FileScanTask, pack, split_task
from icefloe.schema import Schema, reserved
from icefloe.storage import Storage
from icefloe.versions import Feature, allows

_READ_AHEAD = 64 << 20


@dataclass(frozen=True, slots=True)
class GroupRewrite:
    """All that an engine needs to rewrite one group. `written` gets every file that is whole, for whoever must clean up."""

    metadata: TableMetadata
    storage: Storage
    tasks: tuple[FileScanTask, ...]
    spec: PartitionSpec
    strategy: Strategy
    sizes: FileSizes
    expected_files: int
    unique: str
    """What no other group of any run has in the names of its files."""
    description: str = ""
    groups_at_once: int = 1
    written: list[DataFile] = field(default_factory=list)

    @property
    def has_lineage(self) -> bool:
        """Whether rows have ids, which they keep."""
        return allows(self.metadata.format_version, Feature.ROW_LINEAGE)

    @property
    def columns(self) -> Schema:
        """What is read, and written: the table's columns of today, and those of row lineage."""
        lineage = reserved.ROW_LINEAGE_COLUMNS if self.has_lineage else ()
        return Schema(*self.metadata.schema().fields, *lineage)

    @property
    def size_in_bytes(self) -> int:
        """What is read, without deletes."""
        return sum(task.file.file_size_in_bytes for task in self.tasks)

    @property
    def form(self) -> FileForm:
        """What new files are like."""
        order = None if self.strategy.order is None else self.strategy.order.stored
        return FileForm(self.spec, order, is_arranged=self.strategy.is_sort, target_bytes=self.sizes.write_maximum)


@dataclass(frozen=True, slots=True)
class RewrittenGroup:
    """The new files of a group, and how many rows were read of the old ones."""

    files: tuple[DataFile, ...]
    rows: int


def rewrite_group(work: GroupRewrite) -> RewrittenGroup:
    """Rewrite a group by threads of this process."""
    context = ReadContext(work.metadata, work.storage)
    workers = max(1, default_workers() // work.groups_at_once)
    parts = list(enumerate(_parts(work)))
    at_once = min(len(parts), workers)

    def write(part: tuple[int, list[FileScanTask]]) -> RewrittenGroup:
        number, tasks = part
        batches = _rows(tasks, work, context, max(1, workers // at_once))
        return _write(batches, work, f"{work.unique}-{number:05d}", max(1, workers // at_once))

    with closing(in_order(write, parts, at_once, "icefloe-rewrite")) as done:
        written = list(done)
    return RewrittenGroup(tuple(file for part in written for file in part.files), sum(part.rows for part in written))


def _parts(work: GroupRewrite) -> Iterable[list[FileScanTask]]:
    """The tasks in runs of about one new file each."""
    size = work.sizes.split_size(work.size_in_bytes)
    splits = (split for task in work.tasks for split in _splits(task, size))
    return pack(splits, lambda split: split.data_bytes, size)


def _splits(task: FileScanTask, size: int) -> Iterator[FileScanTask]:
    return split_task(task, size) if task.file.file_size_in_bytes > size else iter((task,))


def _rows(
    tasks: Iterable[FileScanTask], work: GroupRewrite, context: ReadContext, workers: int
) -> Generator[pa.RecordBatch, None, None]:
    return read_in_order(tasks, lambda task: read_task(task, work.columns, context), workers, _READ_AHEAD)


def _write(
    batches: Generator[pa.RecordBatch, None, None], work: GroupRewrite, unique: str, workers: int
) -> RewrittenGroup:
    rows = 0
    with (
        closing(batches),
        TableWriter(
            work.metadata,
            work.storage,
            lineage=work.has_lineage,
            workers=workers,
            written=work.written,
            unique=unique,
            form=work.form,
        ) as writer,
    ):
        for batch in batches:
            rows += batch.num_rows
            writer.write(pa.Table.from_batches([batch]))
        return RewrittenGroup(tuple(writer.close()), rows)
