"""How the rows of one group become new files in this process: streamed, deletes applied, row ids kept.

A group is cut into parts of about one new file each, along row groups where a file is larger. Where rows have an order, the
rows of a part, or of the whole group under `sort`, are sorted first.
"""

from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace

import pyarrow as pa

from icefloe.data import FileForm, ReadContext, TableWriter, default_workers, read_in_order, read_task
from icefloe.maintenance.file_sizes import FileSizes
from icefloe.maintenance.strategies import ColumnOrder, Strategy
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
    snapshot_id: int
    """The snapshot that the tasks are of."""
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
    def moves_rows(self) -> bool:
        """Whether rows go to another spec than that of their files."""
        return any(task.spec_id != self.spec.spec_id for task in self.tasks)

    @property
    def form(self) -> FileForm:
        """What new files are like."""
        order = self.strategy.order
        sorting = order.order if isinstance(order, ColumnOrder) else None
        return FileForm(self.spec, sorting, target_bytes=self.sizes.write_maximum)

    def labelled(self, files: Iterable[DataFile]) -> tuple[DataFile, ...]:
        """New files with the order that the table knows them to have; one that it does not know is none."""
        if self.strategy.order is None:
            return tuple(files)
        stored = self.strategy.order.stored
        order_id = None if stored.is_unsorted else stored.order_id
        return tuple(replace(file, sort_order_id=order_id) for file in files)


@dataclass(frozen=True, slots=True)
class RewrittenGroup:
    """The new files of a group, and how many rows were read of the old ones."""

    files: tuple[DataFile, ...]
    rows: int | None
    """None if the engine did not count them."""


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
    return RewrittenGroup(
        work.labelled(file for part in written for file in part.files), sum(part.rows or 0 for part in written)
    )


def _parts(work: GroupRewrite) -> Iterable[list[FileScanTask]]:
    """The tasks in runs of about one new file each; all together if their rows are sorted over the whole group."""
    if work.strategy.is_sort:
        return [list(work.tasks)]
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
