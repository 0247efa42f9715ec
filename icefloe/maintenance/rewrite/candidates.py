"""Which files of a snapshot a rewrite takes, and in which groups, from the columns of its manifests alone.

Files are taken in the order of (data sequence number, path), so that the plan of a snapshot is always the same; they are
grouped by their own (spec, partition).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.expressions import AlwaysTrue, Expression, Mask
from icefloe.maintenance.options import Options
from icefloe.maintenance.rewrite.file_sizes import FileSizes
from icefloe.maintenance.rewrite.options import DELETE_FILE_THRESHOLD, DELETE_RATIO_THRESHOLD, REWRITE_OLD_SPECS
from icefloe.manifests import DataFile, FileContent
from icefloe.planning import Numbers, ScanBatch, TableScan, parsed_filter, single_file_deletes
from icefloe.schema import Value

_COLUMNS = pa.schema(
    {"path": pa.string(), "number": pa.int64(), "size": pa.int64(), "rows": pa.int64(), "partition": pa.int64()}
    | {"due": pa.bool_()}
)


@dataclass(frozen=True, slots=True)
class FileGroup:
    """Files of one partition that are rewritten together."""

    spec_id: int
    partition: tuple[Value, ...]
    files: tuple[str, ...]
    sizes: tuple[int, ...]
    rows: tuple[int, ...]

    @property
    def size_in_bytes(self) -> int:
        """The bytes of all of them."""
        return sum(self.sizes)

    def first(self, count: int) -> "FileGroup":
        """The same with so many of its files at most."""
        return replace(self, files=self.files[:count], sizes=self.sizes[:count], rows=self.rows[:count])


@dataclass(frozen=True, slots=True)
class Choice:
    """What makes a file a candidate."""

    sizes: FileSizes
    output_spec_id: int
    old_specs: bool
    most_deletes: int
    most_deleted: float

    @staticmethod
    def of(options: Options, sizes: FileSizes, output_spec_id: int) -> "Choice":
        """What the options say."""
        return Choice(
            sizes,
            output_spec_id,
            REWRITE_OLD_SPECS.of(options),
            DELETE_FILE_THRESHOLD.of(options),
            DELETE_RATIO_THRESHOLD.of(options),
        )


@dataclass(slots=True, eq=False)
class _Partitions:
    """The partitions of files so far, numbered."""

    numbers: dict[object, int] = field(default_factory=dict)
    values: list[tuple[int, tuple[Value, ...]]] = field(default_factory=list)

    def of(self, batch: ScanBatch) -> Numbers:
        """The number of each file's partition."""
        numbers = []
        for key, values in zip(batch.groups.keys(), batch.groups.tuples, strict=True):
            if key not in self.numbers:
                self.numbers[key] = len(self.values)
                self.values.append((batch.files.spec_id, values))
            numbers.append(self.numbers[key])
        return np.array(numbers, np.int64)[batch.groups.of]


def file_groups(scan: TableScan, where: str | Expression | None, choice: Choice) -> list[FileGroup]:
    """The groups that are worth a rewrite; `where` takes files that may hold a matching row, and takes them whole.

    The filter chooses files only: by it a plan would leave out deletes of the other rows of a file.
    """
    chosen = None if isinstance(parsed_filter(where), AlwaysTrue) else _paths(replace(scan, row_filter=where))
    partitions = _Partitions()
    parts = [_candidates(batch, scan, choice, chosen, partitions) for batch in _batches(scan)]
    files = pa.concat_tables([_COLUMNS.empty_table(), *parts])
    files = files.sort_by([("number", "ascending"), ("path", "ascending")])
    return list(_grouped(files, partitions, choice.sizes))


def _batches(scan: TableScan) -> Iterator[ScanBatch]:
    plan = scan.plan()
    if plan is not None:
        with plan:
            yield from plan


def _paths(scan: TableScan) -> pa.Array:
    parts = [batch.files.column("file_path") for batch in _batches(scan)]
    return pa.concat_arrays(parts) if parts else pa.array([], pa.string())


def _candidates(
    batch: ScanBatch, scan: TableScan, choice: Choice, chosen: pa.Array | None, partitions: _Partitions
) -> pa.Table:
    files = batch.files
    sizes = files.column("file_size_in_bytes").to_numpy(zero_copy_only=False).astype(np.int64)
    due = _has_many_deletes(batch, scan, choice)
    if choice.old_specs and files.spec_id != choice.output_spec_id:
        due |= True
    taken = due | choice.sizes.misfits(sizes) | choice.sizes.rewrite_all
    if chosen is not None:
        taken &= np.asarray(pc.is_in(files.column("file_path"), value_set=chosen))
    columns = [
        files.column("file_path").cast(pa.string()),
        pc.fill_null(files.column("sequence_number"), 0),
        pa.array(sizes),
        files.column("record_count"),
        pa.array(partitions.of(batch)),
        pa.array(due),
    ]
    return pa.table(columns, schema=_COLUMNS).filter(pa.array(taken))


def _has_many_deletes(batch: ScanBatch, scan: TableScan, choice: Choice) -> Mask:
    """Which files have too many deletes, or too many rows that are known to be deleted."""
    rows = batch.files.column("record_count").to_numpy(zero_copy_only=False)
    if batch.deletes is None:
        return np.zeros(len(batch), np.bool_)
    if (of_vectors := batch.rows_of_vectors) is not None:
        count, deleted = (of_vectors >= 0).astype(np.int64), np.maximum(of_vectors, 0)
    else:
        single = single_file_deletes(scan) if any(map(_names_none, _all_of(batch.deletes))) else frozenset()
        count = np.array([len(deletes) for deletes in batch.deletes], np.int64)
        deleted = np.array([_known_deleted(deletes, single) for deletes in batch.deletes], np.int64)
    deleted = np.minimum(deleted, rows)
    ratio = np.divide(deleted, rows, out=np.zeros(len(rows)), where=rows > 0)
    has_many = (count >= choice.most_deletes) | (ratio >= choice.most_deleted)
    return np.asarray((count > 0) & has_many)


def _all_of(deletes: Sequence[tuple[DataFile, ...]]) -> Iterator[DataFile]:
    return (file for files in deletes for file in files)


def _names_none(file: DataFile) -> bool:
    return file.content is FileContent.POSITION_DELETES and file.referenced_data_file is None


def _known_deleted(deletes: Sequence[DataFile], single: frozenset[str]) -> int:
    """How many rows are deleted by what is about this file alone."""
    positions = (file for file in deletes if file.content is FileContent.POSITION_DELETES)
    return sum(
        file.record_count for file in positions if file.referenced_data_file is not None or file.file_path in single
    )


def _grouped(files: pa.Table, partitions: _Partitions, sizes: FileSizes) -> Iterator[FileGroup]:
    """The groups, in the order of their first files."""
    of, due = files.column("partition").to_numpy(), files.column("due").to_numpy()
    size, rows = files.column("size").to_numpy(), files.column("rows").to_numpy()
    by_partition: dict[int, list[int]] = {}
    for row, number in enumerate(of.tolist()):
        by_partition.setdefault(number, []).append(row)
    groups = [
        group
        for members in by_partition.values()
        for group in sizes.groups(members, lambda row: int(size[row]), lambda row: bool(due[row]))
    ]
    paths = files.column("path")
    for group in sorted(groups):
        spec_id, values = partitions.values[of[group[0]]]
        names = tuple(paths.take(pa.array(group)).to_pylist())
        yield FileGroup(spec_id, values, names, tuple(size[group].tolist()), tuple(rows[group].tolist()))
