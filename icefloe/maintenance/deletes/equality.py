"""Conversion of equality deletes: the rows that they delete are deleted by position, and the equality deletes go.

An equality delete may go once every live data file that it reaches was compared with it: those of the plan, and none that came
since with an older sequence number, such as the result of a compaction that began before the delete.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe import commit as cm, expressions as ex, manifests as mf, metadata as md, planning
from icefloe.data import default_workers
from icefloe.maintenance.branches import branch_head
from icefloe.maintenance.deletes import options as opt
from icefloe.maintenance.deletes.commits import discard_unused, in_commits
from icefloe.maintenance.deletes.equality_matching import MatchedGroup, MatchGroup, MatchKeys, group_tasks
from icefloe.maintenance.deletes.equality_reach import EqualityReach
from icefloe.maintenance.deletes.folded_keys import KeySet
from icefloe.maintenance.deletes.request import DeletesRequest
from icefloe.maintenance.maintained_table import MaintainedTable
from icefloe.maintenance.rewrite.file_sizes import MAX_GROUP_FILES
from icefloe.progress import Stage
from icefloe.storage import identities

_ABOUT_ALL = "it holds in all partitions, and only some were chosen"


@dataclass(frozen=True, slots=True, eq=False)
class Conversion:
    """Equality deletes to be converted, and all data files that they may concern in one snapshot."""

    snapshot_id: int
    chosen: tuple[mf.ManifestColumns, ...]
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
    table: MaintainedTable, where: str | ex.Expression | None, branch: str | None, most_files: int
) -> Conversion | None:
    """What there is to convert in a branch now; None if there is nothing."""
    metadata, head = table.metadata, branch_head(table.metadata, branch)
    rows = None if where is None else cm.RowFilter.of(planning.parsed_filter(where), metadata)
    if head is None:
        return None
    parent = cm.Parent(metadata, cm.Workbench(table.storage, cm.Caches(), cm.now_ms), head)
    live = [part for part in _equality_deletes(parent) if len(part)]
    if not live:
        return None
    chosen, kept = _choose(live, metadata, rows)
    key_sets, number_of = _key_sets(chosen, metadata)
    scan = planning.TableScan(metadata, table.storage, ref=branch)
    tasks = list(_concerned(scan, number_of))
    tasks.sort(key=lambda each: each[1])
    paths = identities(pa.array([task.file.file_path for task, _ in tasks], pa.string()))
    groups = tuple(group_tasks(tasks, key_sets, most_files))
    manifests = frozenset(each.manifest_path for each in parent.manifests(mf.ManifestContent.DATA))
    return Conversion(head.snapshot_id, tuple(chosen), kept, groups, paths, manifests)


def _equality_deletes(parent: cm.Parent) -> Iterator[mf.ManifestColumns]:
    for manifest in parent.manifests(mf.ManifestContent.DELETES):
        columns = parent.read(manifest, planning.WANTED_OF_DELETES)
        is_equality = pc.equal(columns.column("content"), int(mf.FileContent.EQUALITY_DELETES))
        yield columns.filter(pc.and_(columns.is_live, is_equality))


def _choose(
    parts: Sequence[mf.ManifestColumns], metadata: md.TableMetadata, rows: cm.RowFilter | None
) -> tuple[list[mf.ManifestColumns], tuple[tuple[str, str], ...]]:
    """The deletes of the partitions that may hold rows of the predicate; whole scopes only."""
    if rows is None:
        return list(parts), ()
    chosen: list[mf.ManifestColumns] = []
    kept: list[tuple[str, str]] = []
    for part in parts:
        if metadata.spec(part.spec_id).is_unpartitioned:
            kept += [(path, _ABOUT_ALL) for path in part.column("file_path").to_pylist()]
        else:
            chosen.append(part.filter(rows.may_hold(part)))
    return [part for part in chosen if len(part)], tuple(kept)


def _key_sets(parts: Sequence[mf.ManifestColumns], metadata: md.TableMetadata) -> tuple[list[KeySet], dict[str, int]]:
    """The deletes by scope and key columns, and the number of the set that each is in, by its path."""
    members: dict[tuple[planning.PartitionKey | None, tuple[int, ...]], list[tuple[mf.DataFile, int]]] = {}
    for part in parts:
        groups = planning.group_partitions(part)
        is_global = metadata.spec(part.spec_id).is_unpartitioned
        scopes: list[planning.PartitionKey] | list[None] = [None] * len(groups) if is_global else groups.keys()
        plain = replace(part, metrics=mf.MetricColumns(len(part)))
        numbers = planning.sequence_numbers(part).tolist()
        for file, number, group in zip(plain.files(), numbers, groups.of.tolist(), strict=True):
            ids = tuple(sorted(file.equality_ids or ()))
            members.setdefault((scopes[group], ids), []).append((file, number))
    sets = [KeySet(ids, tuple(files)) for (_, ids), files in members.items()]
    return sets, {file.file_path: index for index, keys in enumerate(sets) for file, _ in keys.files}


def _concerned(
    scan: planning.TableScan, number_of: dict[str, int]
) -> Iterator[tuple[planning.FileScanTask, tuple[int, ...]]]:
    """The tasks of data files that some of the deletes may concern, with the numbers of their sets of keys."""
    for task in scan.plan_files():
        numbers = {number_of[file.file_path] for file in task.equality_deletes if file.file_path in number_of}
        if numbers:
            by_position = tuple(file for file in task.deletes if file.content is mf.FileContent.POSITION_DELETES)
            yield task.replace(deletes=by_position), tuple(sorted(numbers))


def is_in(paths: pa.Array, values: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which of some paths, in any spelling, are among those in their normal form."""
    return np.asarray(pc.is_in(identities(paths), value_set=values).to_numpy(zero_copy_only=False))


_CAME_LATER = "a data file that came meanwhile needs it"
_FILES_OF_A_GROUP = 500


@dataclass(frozen=True, slots=True)
class ConvertedDeletes:
    """What a conversion did; the first two are Java's."""

    converted_equality_delete_files_count: int = 0
    added_position_delete_files_count: int = 0
    removed_data_files_count: int = 0
    rewritten_rows_count: int = 0
    """Rows that are deleted by position now, and were only deleted by equality before."""
    kept_equality_delete_files_count: int = 0
    kept: tuple[tuple[str, str], ...] = field(default=(), kw_only=True)
    """Equality deletes that stay, with the reason."""
    snapshot_ids: tuple[int, ...] = field(default=(), kw_only=True)


@dataclass(frozen=True, slots=True)
class ConversionPlan:
    """Equality deletes and the data files to compare them with; nothing is read or written before `run`."""

    conversion: Conversion | None = field(repr=False)
    _request: DeletesRequest = field(repr=False, compare=False)

    def __str__(self) -> str:
        if self.conversion is None:
            return "no equality deletes to convert"
        files = len(self.conversion.covered)
        return f"convert {self.conversion.deletes} equality delete files, by the keys of {files} data files"

    def to_json(self) -> str:
        """The plan as JSON: the snapshot, the equality delete files, and the data files."""
        plan = self.conversion
        if plan is None:
            return json.dumps({"snapshot-id": None, "equality-deletes": [], "data-files": []})
        deletes = [path for part in plan.chosen for path in part.column("file_path").to_pylist()]
        data = [task.file.file_path for group in plan.groups for task in group.tasks]
        return json.dumps({"snapshot-id": plan.snapshot_id, "equality-deletes": deletes, "data-files": data})

    def run(self) -> ConvertedDeletes:
        """Convert these, and nothing else."""
        return ConvertedDeletes() if self.conversion is None else _run(self._request, self.conversion)


def plan_equality_conversion(request: DeletesRequest) -> ConversionPlan:
    """What a conversion would do now."""
    request.table.refresh()
    options = request.options
    most_files = MAX_GROUP_FILES.of(options) if MAX_GROUP_FILES.key in options else _FILES_OF_A_GROUP
    return ConversionPlan(plan_conversion(request.table, request.where, request.branch, most_files), request)


def convert_equality_deletes(request: DeletesRequest) -> ConvertedDeletes:
    """Convert equality deletes of a branch; planned anew if the table is upgraded meanwhile, and takes other files then."""
    return request.again_if_upgraded(lambda: plan_equality_conversion(request).run())


class _Coverage:
    """Which of the converted equality deletes are not needed any more, on any snapshot after the planned one."""

    def __init__(self, conversion: Conversion) -> None:
        self._conversion = conversion
        self.kept: tuple[str, ...] = ()

    def unneeded(self, parent: cm.Parent) -> Sequence[mf.ManifestColumns]:
        """Those that reach no data file but those that they were compared with."""
        parts = _still_live(parent, self._conversion.chosen)
        reach = EqualityReach(parent.metadata, parts)
        columns = mf.wanted("file_path", field_ids=reach.field_ids)
        for manifest in parent.manifests(mf.ManifestContent.DATA) if parts else ():
            # A manifest of the plan holds the files of the plan.
            if manifest.manifest_path not in self._conversion.manifests:
                data = parent.read(manifest, columns)
                data = data.filter(data.is_live)
                reach.add(data.filter(~is_in(data.column("file_path"), self._conversion.covered)))
        masks = np.split(reach.is_needed, np.cumsum([len(part) for part in parts])[:-1]) if parts else []
        split = list(zip(parts, masks, strict=True))
        self.kept = tuple(path for part, mask in split for path in part.filter(mask).column("file_path").to_pylist())
        return [left for left in (part.filter(~mask) for part, mask in split) if len(left)]


def _still_live(parent: cm.Parent, parts: Sequence[mf.ManifestColumns]) -> list[mf.ManifestColumns]:
    """The delete files of the parts that the snapshot still has."""
    live: set[str] = set()
    for manifest in parent.manifests(mf.ManifestContent.DELETES):
        columns = parent.read(manifest, mf.WITHOUT_METRICS)
        live.update(columns.filter(columns.is_live).column("file_path").to_pylist())
    masks = [np.array([path in live for path in part.column("file_path").to_pylist()], bool) for part in parts]
    left = (part.filter(mask) for part, mask in zip(parts, masks, strict=True))
    return [part for part in left if len(part)]


def _run(request: DeletesRequest, plan: Conversion) -> ConvertedDeletes:
    """Compare, write and commit; batch by batch if the caller wants that, and the equality deletes go with the last."""
    table, target = request.table, request.target
    workers = max(1, default_workers() // max(1, len(plan.groups)))
    work = MatchKeys(table.metadata, table.storage, opt.KEY_MEMORY.of(request.options), workers)
    stage = Stage("compare", max(len(plan.groups), 1), request.progress)
    coverage = _Coverage(plan)
    result, planned = ConvertedDeletes(), plan.snapshot_id
    batches = in_commits(plan.groups, request.options)
    for number, groups in enumerate(batches):
        with table.transaction() as tx:
            done = []
            for matched in request.map(work, groups, stage):
                tx.row_files.extend(matched.written)
                done.append(matched)
            is_last = number == len(batches) - 1
            replacement = _replacement(done, planned, coverage.unneeded if is_last else None)
            tx.add(cm.SnapshotChange(cm.ReplaceDeletes(replacement.decide), target))
            made = tx.commit().snapshot_ids
        discard_unused(table.storage, [file for matched in done for file in matched.written], replacement)
        result = _added(result, replacement, done, made)
        # What was committed so far must still be there when the equality deletes go.
        planned = made[0] if made else planned
    kept = (*plan.kept, *((path, _CAME_LATER) for path in coverage.kept))
    return replace(result, kept_equality_delete_files_count=len(kept), kept=kept)


def _replacement(done: Sequence[MatchedGroup], planned: int, unneeded: cm.Unneeded | None) -> cm.DeleteReplacement:
    return cm.DeleteReplacement(
        cm.Planned(planned),
        vectors=[vector for matched in done for vector in matched.vectors],
        positions=[file for matched in done for file in matched.positions],
        emptied=[file for matched in done for file in matched.emptied],
        unneeded=unneeded or cm.nothing_unneeded,
    )


def _added(
    result: ConvertedDeletes, replacement: cm.DeleteReplacement, done: Sequence[MatchedGroup], made: tuple[int, ...]
) -> ConvertedDeletes:
    """The result with what one commit did."""
    replaced = replacement.done
    return ConvertedDeletes(
        result.converted_equality_delete_files_count + sum(map(len, replaced.unneeded)),
        result.added_position_delete_files_count + len(replaced.added),
        result.removed_data_files_count + len(replaced.removed_data),
        result.rewritten_rows_count + sum(matched.rows for matched in done),
        snapshot_ids=(*result.snapshot_ids, *made),
    )
