"""Which equality deletes a conversion takes, which data files it compares with them, and in which groups."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.commit import Caches, Parent, RowFilter, Workbench, now_ms
from icefloe.expressions import Expression
from icefloe.maintenance.branches import branch_head
from icefloe.maintenance.deletes.equality_matching import MatchGroup, group_tasks
from icefloe.maintenance.deletes.folded_keys import KeySet
from icefloe.maintenance.maintained_table import MaintainedTable
from icefloe.manifests import DataFile, FileContent, ManifestColumns, ManifestContent, MetricColumns
from icefloe.metadata import TableMetadata
from icefloe.planning import (
    WANTED_OF_DELETES,
    FileScanTask,
    PartitionKey,
    TableScan,
    group_partitions,
    parsed_filter,
    sequence_numbers,
)
from icefloe.storage import identities

_ABOUT_ALL = "it holds in all partitions, and only some were chosen"


@dataclass(frozen=True, slots=True, eq=False)
class Conversion:
    """Equality deletes to be converted, and all data files that they may concern in one snapshot."""

    snapshot_id: int
    chosen: tuple[ManifestColumns, ...]
    """The equality deletes, with their metrics."""
    kept: tuple[tuple[str, str], ...]
    """Those that are left out, with the reason."""
    groups: tuple[MatchGroup, ...]
    covered: pa.Array
    """The data files of all groups, by the normal form of their paths."""
    manifests: frozenset[str]
    """The data manifests of the snapshot."""

    @property
    def deletes(self) -> int:
        """How many equality delete files are to be converted."""
        return sum(map(len, self.chosen))


def plan_conversion(
    table: MaintainedTable, where: str | Expression | None, branch: str | None, most_files: int
) -> Conversion | None:
    """What there is to convert in a branch now; None if there is nothing."""
    metadata, head = table.metadata, branch_head(table.metadata, branch)
    if head is None:
        return None
    parent = Parent(metadata, Workbench(table.storage, Caches(), now_ms), head)
    live = [part for part in _equality_deletes(parent) if len(part)]
    if not live:
        return None
    chosen, kept = _choose(live, metadata, where)
    key_sets, number_of = _key_sets(chosen, metadata)
    scan = TableScan(metadata, table.storage, ref=branch)
    tasks = list(_concerned(scan, number_of))
    tasks.sort(key=lambda each: each[1])
    paths = identities(pa.array([task.file.file_path for task, _ in tasks], pa.string()))
    groups = tuple(group_tasks(tasks, key_sets, most_files))
    manifests = frozenset(each.manifest_path for each in parent.manifests(ManifestContent.DATA))
    return Conversion(head.snapshot_id, tuple(chosen), kept, groups, paths, manifests)


def _equality_deletes(parent: Parent) -> Iterator[ManifestColumns]:
    for manifest in parent.manifests(ManifestContent.DELETES):
        columns = parent.read(manifest, WANTED_OF_DELETES)
        is_equality = pc.equal(columns.column("content"), int(FileContent.EQUALITY_DELETES))
        yield columns.filter(pc.and_(columns.is_live, is_equality))


def _choose(
    parts: Sequence[ManifestColumns], metadata: TableMetadata, where: str | Expression | None
) -> tuple[list[ManifestColumns], tuple[tuple[str, str], ...]]:
    """The deletes of the partitions that may hold rows of the predicate; whole scopes only."""
    if where is None:
        return list(parts), ()
    rows = RowFilter.of(parsed_filter(where), metadata)
    chosen: list[ManifestColumns] = []
    kept: list[tuple[str, str]] = []
    for part in parts:
        if metadata.spec(part.spec_id).is_unpartitioned:
            kept += [(path, _ABOUT_ALL) for path in part.column("file_path").to_pylist()]
        else:
            chosen.append(part.filter(rows.may_hold(part)))
    return [part for part in chosen if len(part)], tuple(kept)


def _key_sets(parts: Sequence[ManifestColumns], metadata: TableMetadata) -> tuple[list[KeySet], dict[str, int]]:
    """The deletes by scope and key columns, and the number of the set that each is in, by its path."""
    members: dict[tuple[PartitionKey | None, tuple[int, ...]], list[tuple[DataFile, int]]] = {}
    for part in parts:
        groups = group_partitions(part)
        is_global = metadata.spec(part.spec_id).is_unpartitioned
        scopes: list[PartitionKey] | list[None] = [None] * len(groups) if is_global else groups.keys()
        plain = replace(part, metrics=MetricColumns(len(part)))
        numbers = sequence_numbers(part).tolist()
        for file, number, group in zip(plain.files(), numbers, groups.of.tolist(), strict=True):
            ids = tuple(sorted(file.equality_ids or ()))
            members.setdefault((scopes[group], ids), []).append((file, number))
    sets = [KeySet(ids, tuple(files)) for (_, ids), files in members.items()]
    return sets, {file.file_path: index for index, keys in enumerate(sets) for file, _ in keys.files}


def _concerned(scan: TableScan, number_of: dict[str, int]) -> Iterator[tuple[FileScanTask, tuple[int, ...]]]:
    """The tasks of data files that some of the deletes may concern, with the numbers of their sets of keys."""
    for task in scan.plan_files():
        numbers = {number_of[file.file_path] for file in task.equality_deletes if file.file_path in number_of}
        if numbers:
            by_position = tuple(file for file in task.deletes if file.content is FileContent.POSITION_DELETES)
            yield task.replace(deletes=by_position), tuple(sorted(numbers))


def is_in(paths: pa.Array, values: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which of some paths, in any spelling, are among those in their normal form."""
    return np.asarray(pc.is_in(identities(paths), value_set=values).to_numpy(zero_copy_only=False))
