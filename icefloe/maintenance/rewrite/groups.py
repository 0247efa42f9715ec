"""How the rows of one group become new files in this process: streamed, deletes applied, row ids kept.

A group is cut into parts of about one new file each, along row groups where a file is larger. Where rows have an order, the
rows of a part, or of the whole group under `sort`, are sorted first.
"""

from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace

import pyarrow as pa

from icefloe import manifests as mf, metadata as md, parallel, partitioning as pt, planning
from icefloe.data import (
    FileForm,
    KeyMaker,
    OrderKeys,
    ReadContext,
    SortKey,
    TableWriter,
    WriteRequest,
    default_workers,
    read_in_order,
    read_task,
    sorted_batches,
)
from icefloe.maintenance.rewrite.file_sizes import FileSizes
from icefloe.maintenance.rewrite.sampling import Sample, Tasks, splits_of
from icefloe.maintenance.rewrite.strategies import Strategy
from icefloe.schema import Schema, reserved
from icefloe.storage import Storage
from icefloe.versions import Feature, allows

_READ_AHEAD = 64 << 20


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
    ranges_per_file: int = 1
    """In how many ranges, one after the other, an engine of many tasks sorts the rows of a file."""
    written: list[mf.DataFile] = field(default_factory=list)

    @property
    def has_lineage(self) -> bool:
        """Whether rows have ids, which they keep."""
        return allows(self.metadata.format_version, Feature.ROW_LINEAGE)

    @property
    def context(self) -> ReadContext:
        """What reads its files."""
        return ReadContext(self.metadata, self.storage)

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
    def is_ranged(self) -> bool:
        """Whether a file gets rows of any of the old ones."""
        return self.strategy.is_sort or self.moves_rows

    @property
    def live_rows(self) -> int:
        """How many rows the group has at most: without those that deletion vectors delete."""
        vectors = (task.deletion_vector for task in self.tasks)
        deleted = sum(vector.record_count for vector in vectors if vector is not None)
        return sum(task.file.record_count for task in self.tasks) - deleted

    @property
    def rows_per_file(self) -> int | None:
        """The most rows of a file of a sorted group, so that all files are of about one size."""
        return max(1, -(-self.live_rows // self.expected_files)) if self.strategy.is_sort else None

    @property
    def key_columns(self) -> frozenset[str]:
        """The columns of the table that a row's place in the group is told by."""
        schema, order = self.metadata.schema(), self.strategy.order
        ids = [each.source_id for each in self.spec.fields] if self.moves_rows else []
        own = self.form.order_of(self.metadata)
        ids += [each.source_id for each in own.fields] if order is None else order.source_ids
        tops = (schema.ancestors(field_id)[-1:] or (schema.find_field(field_id),) for field_id in ids)
        return frozenset(top.name for (top,) in tops)

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
    workers = max(1, default_workers() // work.groups_at_once)
    keys = order_keys(work)
    parts = list(enumerate(parts_of(work)))
    at_once = min(len(parts), workers)
    own_workers = max(1, workers // max(1, at_once))

    def write(part: tuple[int, list[planning.FileScanTask]]) -> RewrittenGroup:
        number, tasks = part
        return rewrite_part(work, tasks, keys, f"{work.unique}-{number:05d}", own_workers)

    with closing(parallel.in_order(write, parts, at_once, "icefloe-rewrite")) as done:
        written = list(done)
    return joined(work, written)


def joined(work: GroupRewrite, parts: Iterable[RewrittenGroup]) -> RewrittenGroup:
    """The whole group, of its parts."""
    written = list(parts)
    return RewrittenGroup(
        work.labelled(file for part in written for file in part.files), sum(part.rows for part in written)
    )


def rewrite_part(
    work: GroupRewrite, tasks: Tasks, keys: KeyMaker | None, unique: str, workers: int = 1
) -> RewrittenGroup:
    """Stream the rows of some tasks to files of their own; sorted if there are keys."""
    batches = read_rows(work, tasks, workers)
    with closing(batches), closing(batches if keys is None else sorted_batches(batches, keys)) as arranged:
        return write_rows(arranged, work, unique, workers, work.rows_per_file)


def read_rows(work: GroupRewrite, tasks: Tasks, workers: int = 1) -> Generator[pa.RecordBatch, None, None]:
    """The rows of tasks, with their ids, without those that are deleted."""
    columns, context = work.columns, work.context
    return read_in_order(tasks, lambda task: read_task(task, columns, context), workers, _READ_AHEAD)


def parts_of(work: GroupRewrite) -> list[list[planning.FileScanTask]]:
    """The tasks in runs of about one new file each; all together if their rows are sorted over the whole group."""
    if work.strategy.is_sort:
        return [list(work.tasks)]
    size = work.sizes.split_size(work.size_in_bytes)
    return list(planning.pack(splits_of(work.tasks, size), lambda split: split.data_bytes, size))


# -- the order of rows


@dataclass(frozen=True, slots=True)
class JoinedKeys:
    """The keys of several makers, one after the other. A `KeyMaker`."""

    makers: tuple[KeyMaker, ...]

    def __call__(self, rows: pa.Table) -> list[SortKey]:
        """The keys of the rows."""
        return [key for maker in self.makers for key in maker(rows)]


def order_keys(work: GroupRewrite, rows: pa.Table | None = None) -> KeyMaker | None:
    """What rows are sorted by: their new partitions first, if they move; None leaves them as they come.

    `rows` are a sample of them, if there is one.
    """
    schema = work.metadata.schema()
    makers: list[KeyMaker] = []
    if work.moves_rows and work.spec.fields:
        makers.append(OrderKeys(_by_partition(work.spec), schema))
    order = work.strategy.order
    if order is not None:
        makers.append(order.keys(_sampled(work) if order.needs_sample and rows is None else rows))
    elif not (own := work.form.order_of(work.metadata)).is_unsorted:
        makers.append(OrderKeys(own, schema))
    return JoinedKeys(tuple(makers)) if makers else None


def _by_partition(spec: pt.PartitionSpec) -> pt.SortOrder:
    return pt.SortOrder(*(pt.SortField(each.source_id, each.transform) for each in spec.fields))


def _sampled(work: GroupRewrite) -> pa.Table:
    sample, tasks = sample_of(work)
    return sample.read(tasks)


def sample_of(work: GroupRewrite) -> tuple[Sample, Tasks]:
    """The sample of the columns that keys are made of, and what is to be read for it."""
    columns = Schema(*(field for field in work.columns.fields if field.name in work.key_columns))
    return Sample.of(work.tasks, work.context, columns)


# -- new files


def write_rows(
    batches: Iterable[pa.RecordBatch], work: GroupRewrite, unique: str, workers: int, most: int | None = None
) -> RewrittenGroup:
    """Write rows as they come, at most so many to a file."""
    files: list[mf.DataFile] = []
    total = 0
    request = WriteRequest(work.metadata, work.storage, work.written, work.has_lineage, work.form)
    for number, pieces in enumerate(_runs(batches, most)):
        with TableWriter(request, workers=workers, unique=f"{unique}-{number:05d}") as writer:
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
