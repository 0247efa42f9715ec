"""How the rows of one group become new files in this process: streamed, deletes applied, row ids kept.

A group is cut into parts of about one new file each, along row groups where a file is larger. Where rows have an order, the
rows of a part, or of the whole group under `sort`, are sorted first.
"""

from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import islice

import pyarrow as pa

from icefloe import manifests as mf, metadata as md, parallel, partitioning as pt, planning
from icefloe.data import (
    FileForm,
    KeyMaker,
    OrderKeys,
    ReadContext,
    TableWriter,
    default_workers,
    read_in_order,
    read_task,
    sorted_batches,
)
from icefloe.maintenance.rewrite.file_sizes import FileSizes
from icefloe.maintenance.rewrite.strategies import Strategy
from icefloe.schema import Schema, reserved, schema_to_arrow
from icefloe.storage import Storage
from icefloe.versions import Feature, allows

_READ_AHEAD = 64 << 20
_SAMPLED_FILES = 32
_SAMPLED_ROWS = 1 << 17
"""Enough rows to tell which values are usual."""


@dataclass(frozen=True, slots=True)
class GroupRewrite:
    """All that an engine needs to rewrite one group. `written` gets every file that is whole, for whoever must clean up."""

    metadata: md.TableMetadata
    storage: Storage
    snapshot_id: int
    """The snapshot that the tasks are of."""
    tasks: tuple[planning.FileScanTask, ...]
    spec: pt.PartitionSpec
    strategy: Strategy
    sizes: FileSizes
    expected_files: int
    unique: str
    """What no other group of any run has in the names of its files."""
    description: str = ""
    groups_at_once: int = 1
    written: list[mf.DataFile] = field(default_factory=list)

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
    def live_rows(self) -> int:
        """How many rows the group has at most: without those that deletion vectors delete."""
        vectors = (task.deletion_vector for task in self.tasks)
        deleted = sum(vector.record_count for vector in vectors if vector is not None)
        return sum(task.file.record_count for task in self.tasks) - deleted

    @property
    def form(self) -> FileForm:
        """What new files are like, whose rows come as they should be in them."""
        order = None if self.strategy.order is None else self.strategy.order.stored
        return FileForm(self.spec, order, is_arranged=True, target_bytes=self.sizes.write_maximum)

    def labelled(self, files: Iterable[mf.DataFile]) -> tuple[mf.DataFile, ...]:
        """New files with the order that the table knows them to have; one that it does not know is none."""
        if self.strategy.order is None:
            return tuple(files)
        stored = self.strategy.order.stored
        order_id = None if stored.is_unsorted else stored.order_id
        return tuple(replace(file, sort_order_id=order_id) for file in files)


@dataclass(frozen=True, slots=True)
class RewrittenGroup:
    """The new files of a group, and how many rows were read of the old ones."""

    files: tuple[mf.DataFile, ...]
    rows: int


def rewrite_group(work: GroupRewrite) -> RewrittenGroup:
    """Rewrite a group by threads of this process."""
    context = ReadContext(work.metadata, work.storage)
    workers = max(1, default_workers() // work.groups_at_once)
    keys = _keys(work, context)
    parts = list(enumerate(_parts(work)))
    at_once = min(len(parts), workers)
    own_workers = max(1, workers // max(1, at_once))

    def write(part: tuple[int, list[planning.FileScanTask]]) -> RewrittenGroup:
        number, tasks = part
        batches = read_in_order(tasks, lambda task: read_task(task, work.columns, context), own_workers, _READ_AHEAD)
        with closing(batches), closing(batches if keys is None else sorted_batches(batches, keys)) as arranged:
            return _write(arranged, work, f"{work.unique}-{number:05d}", own_workers)

    with closing(parallel.in_order(write, parts, at_once, "icefloe-rewrite")) as done:
        written = list(done)
    return RewrittenGroup(
        work.labelled(file for part in written for file in part.files), sum(part.rows for part in written)
    )


def _parts(work: GroupRewrite) -> Iterable[list[planning.FileScanTask]]:
    """The tasks in runs of about one new file each; all together if their rows are sorted over the whole group."""
    if work.strategy.is_sort:
        return [list(work.tasks)]
    size = work.sizes.split_size(work.size_in_bytes)
    splits = (split for task in work.tasks for split in _splits(task, size))
    return planning.pack(splits, lambda split: split.data_bytes, size)


def _splits(task: planning.FileScanTask, size: int) -> Iterator[planning.FileScanTask]:
    return planning.split_task(task, size) if task.file.file_size_in_bytes > size else iter((task,))


# -- the order of rows


def _keys(work: GroupRewrite, context: ReadContext) -> KeyMaker | None:
    """What rows are sorted by: their new partitions first, if they move; None leaves them as they come."""
    schema = work.metadata.schema()
    fields = work.spec.fields if work.moves_rows else ()
    makers: list[KeyMaker] = []
    if fields:
        makers.append(
            OrderKeys(pt.SortOrder(*(pt.SortField(each.source_id, each.transform) for each in fields)), schema)
        )
    order = work.strategy.order
    if order is not None:
        makers.append(order.keys(_sample(work, context) if order.needs_sample else None))
    elif not (own := work.form.order_of(work.metadata)).is_unsorted:
        makers.append(OrderKeys(own, schema))
    return (lambda rows: [key for maker in makers for key in maker(rows)]) if makers else None


def _sample(work: GroupRewrite, context: ReadContext) -> pa.Table:
    """Some rows of some files, as many of each."""
    step = -(-len(work.tasks) // _SAMPLED_FILES)
    rows = [schema_to_arrow(work.columns).empty_table()]
    for task in work.tasks[::step]:
        with closing(read_in_order([task], lambda task: read_task(task, work.columns, context), 1)) as batches:
            for batch in islice(batches, 1):
                every = max(1, batch.num_rows * min(len(work.tasks), _SAMPLED_FILES) // _SAMPLED_ROWS)
                rows.append(pa.Table.from_batches([batch]).take(pa.array(range(0, batch.num_rows, every))))
    return pa.concat_tables(rows)


# -- new files


def _write(batches: Iterable[pa.RecordBatch], work: GroupRewrite, unique: str, workers: int) -> RewrittenGroup:
    """Write rows as they come; of a sorted group as many to each file, so that all files are of about one size."""
    most = max(1, -(-work.live_rows // work.expected_files)) if work.strategy.is_sort else None
    files: list[mf.DataFile] = []
    total = 0
    for number, pieces in enumerate(_runs(batches, most)):
        with TableWriter(
            work.metadata,
            work.storage,
            lineage=work.has_lineage,
            workers=workers,
            written=work.written,
            unique=f"{unique}-{number:05d}",
            form=work.form,
        ) as writer:
            for piece in pieces:
                total += piece.num_rows
                writer.write(pa.Table.from_batches([piece]))
            files += writer.close()
    return RewrittenGroup(tuple(files), total)


def _runs(batches: Iterable[pa.RecordBatch], most: int | None) -> Iterator[Iterator[pa.RecordBatch]]:
    """The rows in runs of so many; each run must be used up before the next. None makes one run of all."""
    source = iter(batches)
    rest = next(source, None)

    def run() -> Iterator[pa.RecordBatch]:
        nonlocal rest
        left = most
        while rest is not None and left != 0:
            piece = rest if left is None else rest.slice(0, left)
            left = None if left is None else left - piece.num_rows
            rest = rest.slice(piece.num_rows) if piece.num_rows < rest.num_rows else next(source, None)
            yield piece

    while rest is not None:
        yield run()
