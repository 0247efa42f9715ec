"""Conversion of equality deletes: the rows that they delete are deleted by position, and the equality deletes go.

An equality delete may go once every live data file that it reaches was compared with it: those of the plan, and none that came
since with an older sequence number, such as the result of a compaction that began before the delete.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from icefloe.commit import (
    DeleteReplacement,
    Parent,
    Planned,
    ReplaceDeletes,
    SnapshotChange,
    Target,
    Unneeded,
    nothing_unneeded,
    target_of,
)
from icefloe.data import default_workers
from icefloe.expressions import Expression
from icefloe.maintenance.deletes import options as opt
from icefloe.maintenance.deletes.commits import again_if_upgraded, discard_unused, in_commits
from icefloe.maintenance.deletes.equality_matching import MatchedGroup, MatchKeys
from icefloe.maintenance.deletes.equality_plan import Conversion, is_in, plan_conversion
from icefloe.maintenance.deletes.equality_reach import EqualityReach
from icefloe.maintenance.deletes.writing import check_writable
from icefloe.maintenance.engines import MaintenanceEngine, in_rounds
from icefloe.maintenance.maintained_table import MaintainedTable
from icefloe.maintenance.options import Options
from icefloe.maintenance.rewrite.file_sizes import MAX_GROUP_FILES
from icefloe.manifests import WITHOUT_METRICS, ManifestColumns, ManifestContent, wanted
from icefloe.progress import Listener, Stage, silent

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
    _run: "_Run" = field(repr=False, compare=False)

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
        return ConvertedDeletes() if self.conversion is None else self._run(self.conversion)


def plan_equality_conversion(
    table: MaintainedTable,
    engine: MaintenanceEngine,
    where: str | Expression | None = None,
    options: Options | None = None,
    *,
    branch: str | None = None,
    progress: Listener = silent,
    snapshot_properties: Mapping[str, str] | None = None,
) -> ConversionPlan:
    """What a conversion would do now."""
    chosen = options or {}
    check_writable(table.metadata)
    most_files = MAX_GROUP_FILES.of(chosen) if MAX_GROUP_FILES.key in chosen else _FILES_OF_A_GROUP
    conversion = plan_conversion(table, where, branch, most_files)
    target = target_of(table.metadata, branch, snapshot_properties)
    return ConversionPlan(conversion, _Run(table, engine, chosen, target, progress))


def convert_equality_deletes(
    table: MaintainedTable,
    engine: MaintenanceEngine,
    where: str | Expression | None = None,
    options: Options | None = None,
    *,
    branch: str | None = None,
    progress: Listener = silent,
    snapshot_properties: Mapping[str, str] | None = None,
) -> ConvertedDeletes:
    """Convert equality deletes of a branch; planned anew if the table is upgraded meanwhile, and takes other files then."""
    return again_if_upgraded(
        table,
        lambda: plan_equality_conversion(
            table, engine, where, options, branch=branch, progress=progress, snapshot_properties=snapshot_properties
        ).run(),
    )


class _Coverage:
    """Which of the converted equality deletes are not needed any more, on any snapshot after the planned one."""

    def __init__(self, conversion: Conversion) -> None:
        self._conversion = conversion
        self.kept: tuple[str, ...] = ()

    def unneeded(self, parent: Parent) -> Sequence[ManifestColumns]:
        """Those that reach no data file but those that they were compared with."""
        parts = _still_live(parent, self._conversion.chosen)
        reach = EqualityReach(parent.metadata, parts)
        columns = wanted("file_path", field_ids=reach.field_ids)
        for manifest in parent.manifests(ManifestContent.DATA) if parts else ():
            # A manifest of the plan holds the files of the plan.
            if manifest.manifest_path not in self._conversion.manifests:
                data = parent.read(manifest, columns)
                data = data.filter(data.is_live)
                reach.add(data.filter(~is_in(data.column("file_path"), self._conversion.covered)))
        masks = np.split(reach.is_needed, np.cumsum([len(part) for part in parts])[:-1]) if parts else []
        split = list(zip(parts, masks, strict=True))
        self.kept = tuple(path for part, mask in split for path in part.filter(mask).column("file_path").to_pylist())
        return [left for left in (part.filter(~mask) for part, mask in split) if len(left)]


def _still_live(parent: Parent, parts: Sequence[ManifestColumns]) -> list[ManifestColumns]:
    """The delete files of the parts that the snapshot still has."""
    live: set[str] = set()
    for manifest in parent.manifests(ManifestContent.DELETES):
        columns = parent.read(manifest, WITHOUT_METRICS)
        live.update(columns.filter(columns.is_live).column("file_path").to_pylist())
    masks = [np.array([path in live for path in part.column("file_path").to_pylist()], bool) for part in parts]
    left = (part.filter(mask) for part, mask in zip(parts, masks, strict=True))
    return [part for part in left if len(part)]


@dataclass(frozen=True, slots=True)
class _Run:
    table: MaintainedTable
    engine: MaintenanceEngine
    options: Options
    target: Target
    progress: Listener

    def __call__(self, plan: Conversion) -> ConvertedDeletes:
        """Compare, write and commit; batch by batch if the caller wants that, and the equality deletes go with the last."""
        workers = max(1, default_workers() // max(1, len(plan.groups)))
        work = MatchKeys(self.table.metadata, self.table.storage, opt.KEY_MEMORY.of(self.options), workers)
        stage = Stage("compare", max(len(plan.groups), 1), self.progress)
        coverage = _Coverage(plan)
        result, planned = ConvertedDeletes(), plan.snapshot_id
        batches = in_commits(plan.groups, self.options)
        for number, groups in enumerate(batches):
            with self.table.transaction() as tx:
                done = []
                at_once = opt.CONCURRENT_GROUPS.of(self.options) or max(len(groups), 1)
                for matched in in_rounds(self.engine, work, groups, at_once):
                    tx.row_files.extend(matched.written)
                    done.append(matched)
                    stage.step()
                is_last = number == len(batches) - 1
                replacement = _replacement(done, planned, coverage.unneeded if is_last else None)
                tx.add(SnapshotChange(ReplaceDeletes(replacement.decide), self.target))
                made = tx.commit().snapshot_ids
            discard_unused(self.table.storage, [file for matched in done for file in matched.written], replacement)
            result = _added(result, replacement, done, made)
            # What was committed so far must still be there when the equality deletes go.
            planned = made[0] if made else planned
        kept = (*plan.kept, *((path, _CAME_LATER) for path in coverage.kept))
        return replace(result, kept_equality_delete_files_count=len(kept), kept=kept)


def _replacement(done: Sequence[MatchedGroup], planned: int, unneeded: Unneeded | None) -> DeleteReplacement:
    return DeleteReplacement(
        Planned(planned),
        vectors=[vector for matched in done for vector in matched.vectors],
        positions=[file for matched in done for file in matched.positions],
        emptied=[file for matched in done for file in matched.emptied],
        unneeded=unneeded or nothing_unneeded,
    )


def _added(
    result: ConvertedDeletes, replacement: DeleteReplacement, done: Sequence[MatchedGroup], made: tuple[int, ...]
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
