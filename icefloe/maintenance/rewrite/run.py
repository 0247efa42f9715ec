"""The run of a rewrite: groups go to an engine, several at once, and their new files into commits; what failed is told.

Without partial progress it is all or nothing: one commit at the end, and none if a group fails. Groups that lost to another
commit are planned anew on its state and tried again, if the caller knows how to plan them.
"""

import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from typing import TypeAlias

from icefloe import errors, metadata as md, planning
from icefloe.commit import delete_quietly
from icefloe.maintenance.deletes.dangling import remove_dangling_deletes
from icefloe.maintenance.engines import MaintenanceEngine
from icefloe.maintenance.rewrite.commits import Commits, WrittenGroup
from icefloe.maintenance.rewrite.groups import GroupRewrite
from icefloe.maintenance.rewrite.job import RewriteGroup, RewriteJob, lacks_row_ids
from icefloe.maintenance.rewrite.options import (
    CONCURRENT_GROUPS,
    MAX_COMMITS,
    MAX_FAILED_COMMITS,
    PARTIAL_PROGRESS,
    REMOVE_DANGLING,
    SHUFFLE_PARTITIONS,
)
from icefloe.maintenance.rewrite.result import GroupOutcome, GroupResult, RewriteResult
from icefloe.maintenance.rewrite.traces import RUN, Trace, sweep_killed_runs, traced
from icefloe.verification import Listener, Stage, listener_or_bar

_TRIES = 3
"""How often a group is tried at most."""

Again: TypeAlias = Callable[[Sequence[RewriteGroup], int], RewriteJob]
"""Plans anew what groups were about, on the newest state of the table; the numbers of the new ones begin at one that is given."""


def run_rewrite(
    plan: RewriteJob, engine: MaintenanceEngine, progress: Listener | None = None, again: Again | None = None
) -> RewriteResult:
    """Rewrite the groups of a plan and commit them; what killed runs have left is deleted first."""
    sweep_killed_runs(plan.table)
    if not plan.groups:
        return RewriteResult()
    with traced(plan.table, str(uuid.uuid4())) as trace:
        return _Tries(plan, engine, listener_or_bar(progress), trace, again).result()


@dataclass(slots=True)
class _Tries:
    """One run: the planned groups, and again those that lost to other commits."""

    plan: RewriteJob
    engine: MaintenanceEngine
    progress: Listener
    trace: Trace
    again: Again | None
    results: list[GroupResult] = field(default_factory=list)
    snapshot_ids: list[int] = field(default_factory=list)
    removed_deletes: int = 0
    failed: int = 0

    def result(self) -> RewriteResult:
        """Do it all."""
        started = time.monotonic()
        plan, tries = self.plan, _TRIES if self.again else 1
        while plan.groups:
            tries -= 1
            lost = self._try(plan, is_last=tries == 0)
            if not lost or self.again is None:
                break
            plan = self._anew(lost, self.again, max(group.number for group in plan.groups) + 1)
        if REMOVE_DANGLING.of(self.plan.options):
            self._remove_dangling()
        seconds = time.monotonic() - started
        return self._checked(
            RewriteResult.of(self.results, self.removed_deletes, tuple(self.snapshot_ids), self.trace.run, seconds)
        )

    def _try(self, plan: RewriteJob, *, is_last: bool) -> Sequence[RewriteGroup]:
        """Try all groups of a plan; those that lost to another commit and may be tried again."""
        run = _Run(plan, self.engine, self.progress, self.trace)
        try:
            commits = run.commits_of_all()
        except errors.ValidationError:
            # All or nothing: other groups were well, but are not committed either.
            if is_last:
                raise
            return plan.groups
        lost = [] if is_last else commits.lost
        numbers = {group.number for group in lost}
        self.results += [result for result in commits.results if result.number not in numbers]
        self.snapshot_ids += commits.snapshot_ids
        self.removed_deletes += commits.removed_deletes
        self.failed += commits.failed - (0 if is_last else commits.lost_commits)
        return lost

    def _anew(self, lost: Sequence[RewriteGroup], again: Again, first_number: int) -> RewriteJob:
        plan = again(lost, first_number)
        left = {(group.spec_id, group.partition) for group in plan.groups}
        self.results += [
            GroupResult(group.number, group.partition, GroupOutcome.NOT_NEEDED, len(group.files), group.size_in_bytes)
            for group in lost
            if (group.spec_id, group.partition) not in left
        ]
        return plan

    def _remove_dangling(self) -> None:
        """One more commit, without the deletes that had rows in the replaced files alone."""
        properties = {**self.plan.snapshot_properties, RUN: self.trace.run}
        removed = remove_dangling_deletes(self.plan.table, self.plan.branch, snapshot_properties=properties)
        self.removed_deletes += removed.removed_delete_files_count

    def _checked(self, result: RewriteResult) -> RewriteResult:
        """The result, unless more commits failed than the caller allows."""
        limit = MAX_FAILED_COMMITS.of(self.plan.options)
        most = MAX_COMMITS.of(self.plan.options) if limit is None else limit
        if self.failed > most:
            raise errors.IncompleteRewriteError(
                f"{self.failed} commits of the rewrite failed, more than"
                f" {MAX_FAILED_COMMITS.key!r} allows, {most}; what was committed stays\n{result}",
                result,
            )
        return result


@dataclass(frozen=True, slots=True)
class _Failed:
    """A group whose files could not be written."""

    group: RewriteGroup
    error: Exception
    seconds: float


class _Run:
    def __init__(self, plan: RewriteJob, engine: MaintenanceEngine, progress: Listener, trace: Trace) -> None:
        self._plan = plan
        self._engine = engine
        self._metadata = plan.table.metadata
        self._run = trace.run
        self._is_partial = PARTIAL_PROGRESS.of(plan.options)
        self._at_once = min(CONCURRENT_GROUPS.of(plan.options), len(plan.groups))
        self._stage = Stage("rewrite", len(plan.groups), progress)
        self._commits = Commits(plan.table, plan, self._metadata, trace)
        self._strategy = plan.arrangement(self._metadata)
        self._tasks = tasks_of(plan, self._metadata)

    def commits_of_all(self) -> Commits:
        """Write and commit all groups."""
        waiting: list[WrittenGroup] = []
        pool = ThreadPoolExecutor(self._at_once, thread_name_prefix="icefloe-groups")
        futures = [pool.submit(self._write, group) for group in self._plan.groups]
        try:
            for done in as_completed(futures):
                self._take(done.result(), waiting)
            if waiting:
                self._commit(waiting)
        except Exception:
            self._give_up(futures, pool)
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
        return self._commits

    def _take(self, done: WrittenGroup | _Failed, waiting: list[WrittenGroup]) -> None:
        """One group is written, or not; commit those that are enough for a commit."""
        self._stage.step()
        if isinstance(done, _Failed):
            if not self._is_partial:
                raise done.error
            self._commits.results.append(_failed(done.group, GroupOutcome.WRITE_FAILED, done.error, done.seconds))
            return
        waiting.append(done)
        if self._is_partial and len(waiting) >= self._groups_per_commit:
            self._commit(waiting)

    @property
    def _groups_per_commit(self) -> int:
        if lacks_row_ids(self._metadata, self._plan.snapshot_id):
            return len(self._plan.groups)
        return -(-len(self._plan.groups) // MAX_COMMITS.of(self._plan.options))

    def _commit(self, waiting: list[WrittenGroup]) -> None:
        groups, waiting[:] = sorted(waiting, key=lambda written: written.group.number), []
        error = self._commits.commit(groups, one_by_one=self._is_partial)
        if error is not None and not self._is_partial:
            raise error

    def _write(self, group: RewriteGroup) -> WrittenGroup | _Failed:
        started = time.monotonic()
        tasks = tuple(self._tasks[path] for path in group.files)
        work = self._work(group, tasks)
        try:
            new = self._engine.rewrite(work)
        except Exception as error:  # noqa: BLE001 - what became of a group is told of that group
            delete_quietly(work.storage, [file.file_path for file in work.written], "of a group that was not rewritten")
            return _Failed(group, error, time.monotonic() - started)
        return WrittenGroup(group, new, tuple(task.file for task in tasks), time.monotonic() - started)

    def _work(self, group: RewriteGroup, tasks: tuple[planning.FileScanTask, ...]) -> GroupRewrite:
        total = len(self._plan.groups)
        name = ".".join(self._plan.table.name())
        how = "sort" if self._strategy.is_sort else "binpack"
        return GroupRewrite(
            self._metadata,
            self._plan.table.storage,
            self._plan.snapshot_id or 0,
            tasks,
            self._plan.output_spec(self._metadata),
            self._strategy,
            self._plan.sizes,
            group.expected_files,
            f"{self._run}-{group.number:05d}",
            f"Rewriting {len(tasks)} files ({how}, file group {group.number}/{total}, {group.partition or '-'}) in {name}",
            self._at_once,
            SHUFFLE_PARTITIONS.of(self._plan.options),
        )

    def _give_up(self, futures: Sequence[Future[WrittenGroup | _Failed]], pool: ThreadPoolExecutor) -> None:
        """Stop, and delete what was written and that no commit was tried for."""
        pool.shutdown(wait=True, cancel_futures=True)
        left = [future.result() for future in futures if future.done() and not future.cancelled()]
        unsent = [
            done for done in left if isinstance(done, WrittenGroup) and done.group.number not in self._commits.sent
        ]
        self._commits.discard(unsent, "of a rewrite that was given up")


def _failed(group: RewriteGroup, outcome: GroupOutcome, error: Exception, seconds: float) -> GroupResult:
    files, size = len(group.files), group.size_in_bytes
    return GroupResult(group.number, group.partition, outcome, files, size, reason=str(error), seconds=seconds)


def tasks_of(plan: RewriteJob, metadata: md.TableMetadata) -> dict[str, planning.FileScanTask]:
    """The planned files by path, each with all deletes that apply to it; an error if one is not in the planned snapshot."""
    if plan.snapshot_id is None or metadata.snapshot_by_id(plan.snapshot_id) is None:
        raise errors.StateError(
            f"snapshot {plan.snapshot_id} of the plan is not in the table any more; plan the rewrite anew"
        )
    wanted = {path for group in plan.groups for path in group.files}
    scan = planning.TableScan(metadata, plan.table.storage, snapshot_id=plan.snapshot_id)
    tasks = {path: task for path, task in _all_tasks(scan) if path in wanted}
    if missing := wanted - tasks.keys():
        raise errors.StateError(
            f"{len(missing)} files of the plan are not in snapshot {plan.snapshot_id}, such as {min(missing)}; plan anew"
        )
    return tasks


def _all_tasks(scan: planning.TableScan) -> Iterator[tuple[str, planning.FileScanTask]]:
    plan = scan.plan()
    if plan is None:
        return
    with plan:
        for batch in plan:
            yield from zip(batch.files.column("file_path").to_pylist(), batch.tasks(), strict=True)
