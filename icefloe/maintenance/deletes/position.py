"""Rewrite of position deletes: fewer and larger files, vectors in place of files, Puffin files without dead vectors.

Rows stay as they are, so that data that comes, goes or is deleted meanwhile is no conflict: what is committed is decided on the
newest snapshot.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from icefloe.commit import DeleteReplacement, Planned, ReplaceDeletes, SnapshotChange, Target, target_of
from icefloe.expressions import Expression
from icefloe.maintenance.deletes import options as opt
from icefloe.maintenance.deletes.commits import again_if_upgraded, discard_unused, in_commits
from icefloe.maintenance.deletes.position_plan import DeleteGroup, PositionRewrite, plan_position_rewrite
from icefloe.maintenance.deletes.position_rewriting import RewritePositions, RewrittenDeletes
from icefloe.maintenance.deletes.writing import check_writable
from icefloe.maintenance.engines import MaintenanceEngine, in_rounds
from icefloe.maintenance.maintained_table import MaintainedTable
from icefloe.maintenance.options import Options
from icefloe.manifests import DataFile
from icefloe.progress import Listener, Stage, silent


@dataclass(frozen=True, slots=True)
class RewrittenPositionDeletes:
    """What a rewrite did, as Java counts: each vector is one delete file, and its size is that of its blob."""

    rewritten_delete_files_count: int = 0
    added_delete_files_count: int = 0
    rewritten_bytes_count: int = 0
    added_bytes_count: int = 0
    skipped_delete_files_count: int = field(default=0, kw_only=True)
    """Delete files that others replaced or removed meanwhile, or that were to be rewritten together with such."""
    snapshot_ids: tuple[int, ...] = field(default=(), kw_only=True)


@dataclass(frozen=True, slots=True)
class PositionDeletesPlan:
    """Position deletes that are worth a rewrite, in groups; nothing is written before `run`."""

    rewrite: PositionRewrite | None = field(repr=False)
    _run: "_Run" = field(repr=False, compare=False)

    @property
    def groups(self) -> tuple[DeleteGroup, ...]:
        """The groups in the order in which they are rewritten."""
        return () if self.rewrite is None else self.rewrite.groups

    def __str__(self) -> str:
        files, size = sum(len(group.files) for group in self.groups), sum(group.size for group in self.groups)
        return f"rewrite {files} position deletes of {size} bytes in {len(self.groups)} groups"

    def to_json(self) -> str:
        """The plan as JSON: the snapshot, and the delete files of each group, vectors with their offsets."""
        groups = [
            [{"path": each.file.file_path, "offset": each.file.content_offset} for each in group.files]
            for group in self.groups
        ]
        return json.dumps({"snapshot-id": self.rewrite.snapshot_id if self.rewrite else None, "groups": groups})

    def run(self) -> RewrittenPositionDeletes:
        """Rewrite these, and nothing else."""
        return RewrittenPositionDeletes() if self.rewrite is None else self._run(self.rewrite)


def plan_position_deletes(
    table: MaintainedTable,
    engine: MaintenanceEngine,
    options: Options | None = None,
    where: str | Expression | None = None,
    *,
    branch: str | None = None,
    progress: Listener = silent,
    snapshot_properties: Mapping[str, str] | None = None,
) -> PositionDeletesPlan:
    """What a rewrite would do now."""
    check_writable(table.metadata)
    rewrite = plan_position_rewrite(table, where, options or {}, branch)
    target = target_of(table.metadata, branch, snapshot_properties)
    return PositionDeletesPlan(rewrite, _Run(table, engine, options or {}, target, progress))


def rewrite_position_delete_files(
    table: MaintainedTable,
    engine: MaintenanceEngine,
    options: Options | None = None,
    where: str | Expression | None = None,
    *,
    branch: str | None = None,
    progress: Listener = silent,
    snapshot_properties: Mapping[str, str] | None = None,
) -> RewrittenPositionDeletes:
    """Rewrite position deletes of a branch; planned anew if the table is upgraded meanwhile."""
    return again_if_upgraded(
        table,
        lambda: plan_position_deletes(
            table, engine, options, where, branch=branch, progress=progress, snapshot_properties=snapshot_properties
        ).run(),
    )


@dataclass(frozen=True, slots=True)
class _Run:
    table: MaintainedTable
    engine: MaintenanceEngine
    options: Options
    target: Target
    progress: Listener

    def __call__(self, plan: PositionRewrite) -> RewrittenPositionDeletes:
        """Write and commit; batch by batch if the caller wants that."""
        work = RewritePositions(self.table.metadata, self.table.storage, plan.sizes)
        stage = Stage("rewrite", len(plan.groups), self.progress)
        result = RewrittenPositionDeletes()
        for groups in in_commits(plan.groups, self.options):
            with self.table.transaction() as tx:
                done = []
                at_once = opt.CONCURRENT_GROUPS.of(self.options) or max(len(groups), 1)
                for rewritten in in_rounds(self.engine, work, groups, at_once):
                    tx.row_files.extend(rewritten.written)
                    done.append(rewritten)
                    stage.step()
                replacement = _replacement(done, plan.snapshot_id)
                tx.add(SnapshotChange(ReplaceDeletes(replacement.decide), self.target))
                made = tx.commit().snapshot_ids
            discard_unused(self.table.storage, [file for each in done for file in each.written], replacement)
            result = _added(result, replacement, groups, made)
        return result


def _replacement(done: Sequence[RewrittenDeletes], planned: int) -> DeleteReplacement:
    return DeleteReplacement(
        Planned(planned),
        vectors=[vector for each in done for vector in each.vectors],
        swaps=[swap for each in done for swap in each.swaps],
        remove=[file for each in done for file in each.remove],
    )


def _added(
    result: RewrittenPositionDeletes,
    replacement: DeleteReplacement,
    groups: Sequence[DeleteGroup],
    made: tuple[int, ...],
) -> RewrittenPositionDeletes:
    """The result with what one commit did."""
    replaced = replacement.done
    planned = sum(len(group.files) for group in groups)
    return RewrittenPositionDeletes(
        result.rewritten_delete_files_count + len(replaced.removed),
        result.added_delete_files_count + len(replaced.added),
        result.rewritten_bytes_count + sum(map(_size, replaced.removed)),
        result.added_bytes_count + sum(map(_size, replaced.added)),
        skipped_delete_files_count=result.skipped_delete_files_count + max(planned - len(replaced.removed), 0),
        snapshot_ids=(*result.snapshot_ids, *made),
    )


def _size(file: DataFile) -> int:
    return file.content_size_in_bytes or file.file_size_in_bytes
