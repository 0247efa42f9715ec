"""Which position deletes are rewritten, and in which groups: by spec and partition, as delete files of two specs never mix.

In versions without vectors files are chosen by their sizes. Where the table has vectors, every position delete file is to become
vectors, and Puffin files are chosen that hold mostly vectors that nothing needs, or that are many and small.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe import commit as cm, manifests as mf, properties as props
from icefloe.expressions import Expression
from icefloe.maintenance.branches import branch_head
from icefloe.maintenance.deletes.equality_reach import rows_by_group
from icefloe.maintenance.deletes.options import PUFFIN_LIVE_RATIO
from icefloe.maintenance.maintained_table import MaintainedTable
from icefloe.maintenance.options import Options
from icefloe.maintenance.rewrite.file_sizes import FileSizes
from icefloe.maintenance.rewrite.options import JOB_ORDER, MAX_FILES
from icefloe.planning import PartitionKey, group_partitions, pack, parsed_filter, sequence_numbers
from icefloe.schema import Value
from icefloe.storage import identities
from icefloe.versions import Feature, allows

_PUFFIN_OVERHEAD = 190
"""What a footer says of one vector, about, without the path of its data file."""


@dataclass(frozen=True, slots=True)
class NumberedDeletes:
    """A delete file with its sequence number."""

    file: mf.DataFile
    sequence_number: int

    @property
    def size(self) -> int:
        """Its bytes; of a vector those of its blob."""
        return self.file.content_size_in_bytes or self.file.file_size_in_bytes


@dataclass(frozen=True, slots=True, eq=False)
class LiveFiles:
    """The data files of one partition whose rows position delete files may delete, in columns."""

    paths: tuple[pa.Array, ...] = ()
    record_counts: tuple[pa.Array, ...] = ()
    sequence_numbers: tuple[pa.Array, ...] = ()

    def and_more(self, data: mf.ManifestColumns) -> "LiveFiles":
        """The same with those of one more manifest."""
        return LiveFiles(
            (*self.paths, data.column("file_path")),
            (*self.record_counts, data.column("record_count")),
            (*self.sequence_numbers, data.column("sequence_number")),
        )

    def __iter__(self) -> Iterator[tuple[str, int, int]]:
        for columns in zip(self.paths, self.record_counts, self.sequence_numbers, strict=True):
            yield from zip(*(column.to_pylist() for column in columns), strict=True)


@dataclass(frozen=True, slots=True, eq=False)
class PartitionDeletes:
    """Position delete files of one partition, and the data files that they may be about."""

    spec_id: int
    partition: tuple[Value, ...]
    deletes: tuple[NumberedDeletes, ...]
    data: LiveFiles


@dataclass(frozen=True, slots=True, eq=False)
class DeleteGroup:
    """One unit of work: position delete files of some partitions, or vectors to be copied to another Puffin file."""

    partitions: tuple[PartitionDeletes, ...] = ()
    vectors: tuple[NumberedDeletes, ...] = ()

    @property
    def files(self) -> tuple[NumberedDeletes, ...]:
        """All delete files of it."""
        return (*(each for part in self.partitions for each in part.deletes), *self.vectors)

    @property
    def size(self) -> int:
        """Their bytes."""
        return sum(each.size for each in self.files)


@dataclass(frozen=True, slots=True, eq=False)
class PositionRewrite:
    """The groups of a rewrite, planned on one snapshot."""

    snapshot_id: int
    groups: tuple[DeleteGroup, ...]
    sizes: FileSizes


def plan_position_rewrite(
    table: MaintainedTable, where: str | Expression | None, options: Options, branch: str | None = None
) -> PositionRewrite | None:
    """What there is to rewrite in a branch now; None if there is nothing."""
    metadata, head = table.metadata, branch_head(table.metadata, branch)
    sizes = FileSizes.of(options, props.WRITE_DELETE_TARGET_FILE_SIZE_BYTES.of(metadata.properties))
    rows = None if where is None else cm.RowFilter.of(parsed_filter(where), metadata)
    if head is None:
        return None
    parent = cm.Parent(metadata, cm.Workbench(table.storage, cm.Caches(), cm.now_ms), head)
    parts = list(_position_deletes(parent))
    chosen = parts if rows is None else [part.filter(rows.may_hold(part)) for part in parts]
    files = [part.filter(pc.invert(cm.vector_mask(part))) for part in chosen]
    groups = _file_groups(parent, files, parts, sizes)
    vectors = [part.filter(cm.vector_mask(part)) for part in parts]
    named = {path for part in chosen for path in part.filter(cm.vector_mask(part)).column("file_path").to_pylist()}
    groups += _puffin_groups(vectors, named, sizes, PUFFIN_LIVE_RATIO.of(options))
    ordered = _limited(_ordered(groups, JOB_ORDER.of(options)), MAX_FILES.of(options))
    return PositionRewrite(head.snapshot_id, tuple(ordered), sizes) if groups else None


def _position_deletes(parent: cm.Parent) -> Iterator[mf.ManifestColumns]:
    for manifest in parent.manifests(mf.ManifestContent.DELETES):
        columns = parent.read(manifest, mf.WITHOUT_METRICS)
        is_position = pc.equal(columns.column("content"), int(mf.FileContent.POSITION_DELETES))
        part = columns.filter(pc.and_(columns.is_live, is_position))
        if len(part):
            yield part


# -- position delete files


def _file_groups(
    parent: cm.Parent, files: Sequence[mf.ManifestColumns], parts: Sequence[mf.ManifestColumns], sizes: FileSizes
) -> list[DeleteGroup]:
    by_partition = _by_partition(files)
    has_vectors = allows(parent.metadata.format_version, Feature.DELETION_VECTORS)
    if not has_vectors:
        by_partition = {key: chosen for key, own in by_partition.items() if (chosen := _misfits(own, sizes))}
    if not by_partition:
        return []
    live = _live_files(parent, files, by_partition, cm.vector_paths(parts) if has_vectors else None)
    whole = {
        key: PartitionDeletes(own[0].file.spec_id, own[0].file.partition, tuple(own), live.get(key, LiveFiles()))
        for key, own in by_partition.items()
    }
    if has_vectors:
        # All deletes of a data file become one vector, so that a partition is never divided.
        packed = pack(whole.values(), lambda part: sum(each.size for each in part.deletes), sizes.target)
        return [DeleteGroup(tuple(members)) for members in packed]
    return [DeleteGroup((part,)) for members in whole.values() for part in _by_size(members, sizes)]


def _by_size(part: PartitionDeletes, sizes: FileSizes) -> Iterator[PartitionDeletes]:
    """The delete files of a partition that go together."""
    files = part.deletes
    for group in sizes.groups(range(len(files)), lambda number: files[number].size):
        yield replace(part, deletes=tuple(files[number] for number in group))


def _by_partition(parts: Sequence[mf.ManifestColumns]) -> dict[PartitionKey, list[NumberedDeletes]]:
    by_partition: dict[PartitionKey, list[NumberedDeletes]] = {}
    for part in parts:
        for key, rows in rows_by_group(group_partitions(part)) if len(part) else ():
            members = part.take(pa.array(rows))
            numbered = zip(members.files(), sequence_numbers(members).tolist(), strict=True)
            by_partition.setdefault(key, []).extend(NumberedDeletes(file, number) for file, number in numbered)
    return by_partition


def _misfits(files: list[NumberedDeletes], sizes: FileSizes) -> list[NumberedDeletes]:
    if sizes.rewrite_all:
        return files
    chosen = sizes.misfits(np.array([each.size for each in files], np.int64))
    return [each for each, is_chosen in zip(files, chosen.tolist(), strict=True) if is_chosen]


def _live_files(
    parent: cm.Parent, files: Sequence[mf.ManifestColumns], keys: Iterable[PartitionKey], with_vector: pa.Array | None
) -> dict[PartitionKey, LiveFiles]:
    """The data files of these partitions, without those that have a vector, which stands for all other deletes."""
    partitions, searched = cm.PartitionSet.of(files), set(keys)
    live: dict[PartitionKey, LiveFiles] = {}
    for manifest in parent.manifests(mf.ManifestContent.DATA):
        if not partitions.may_be_in(manifest):
            continue
        data = parent.read(manifest, mf.wanted("file_path", "record_count"))
        data = data.filter(data.is_live)
        if with_vector is not None:
            data = data.filter(pc.invert(pc.is_in(identities(data.column("file_path")), value_set=with_vector)))
        for key, rows in rows_by_group(group_partitions(data)) if len(data) else ():
            if key in searched:
                live[key] = live.get(key, LiveFiles()).and_more(data.take(pa.array(rows)))
    return live


# -- Puffin files


def _puffin_groups(
    parts: Sequence[mf.ManifestColumns], named: set[str], sizes: FileSizes, live_ratio: float
) -> list[DeleteGroup]:
    """Vectors whose Puffin files are worth writing anew."""
    by_path: dict[str, list[NumberedDeletes]] = {}
    for part in parts:
        for file, number in zip(part.files(), sequence_numbers(part).tolist(), strict=True):
            if file.file_path in named:
                by_path.setdefault(file.file_path, []).append(NumberedDeletes(file, number))
    paths = list(by_path)
    own = [sum(map(_expected_size, by_path[path])) for path in paths]
    stored = [by_path[path][0].file.file_size_in_bytes for path in paths]
    bloated = {i for i in range(len(paths)) if own[i] < live_ratio * stored[i]}
    small = [i for i in range(len(paths)) if sizes.rewrite_all or i in bloated or stored[i] < sizes.minimum]
    chosen = sizes.groups(small, lambda i: own[i])
    # A file of mostly dead vectors is reason enough, but not for others that are well.
    chosen.append(sorted(bloated - {i for group in chosen for i in group}))
    return [
        DeleteGroup(vectors=tuple(each for i in packed for each in by_path[paths[i]]))
        for group in chosen
        for packed in pack(group, lambda i: own[i], sizes.target)
    ]


def _expected_size(vector: NumberedDeletes) -> int:
    """What a vector takes in a Puffin file, with what the footer says of it."""
    return vector.size + _PUFFIN_OVERHEAD + len(vector.file.referenced_data_file or "")


# -- order


def _ordered(groups: list[DeleteGroup], order: str) -> list[DeleteGroup]:
    what, _, direction = order.partition("-")
    if not direction:
        return groups
    weight = (lambda group: group.size) if what == "bytes" else (lambda group: len(group.files))
    return sorted(groups, key=weight, reverse=direction == "desc")


def _limited(groups: Iterable[DeleteGroup], most_files: int | None) -> Iterator[DeleteGroup]:
    """The first groups, as many as have no more files than that; a group is never divided."""
    left = most_files
    for group in groups:
        if left is not None and len(group.files) > left:
            return
        left = None if left is None else left - len(group.files)
        yield group
