"""The run of a rewrite: groups go to an engine, several at once, and their new files into commits; what failed is told.

Without partial progress it is all or nothing: one commit at the end, and none if a group fails.
"""

import time
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass

from icefloe.errors import IncompleteRewriteError, StateError
from icefloe.maintenance.deletes.dangling import remove_dangling_deletes
from icefloe.maintenance.engines import MaintenanceEngine
from icefloe.maintenance.files.ownership import delete_quietly
from icefloe.maintenance.rewrite.commits import Commits, WrittenGroup
from icefloe.maintenance.rewrite.groups import GroupRewrite
from icefloe.maintenance.rewrite.job import RewriteGroup, RewriteJob, lacks_row_ids
from icefloe.maintenance.rewrite.options import (
    CONCURRENT_GROUPS,
    MAX_COMMITS,
    MAX_FAILED_COMMITS,
    PARTIAL_PROGRESS,
    REMOVE_DANGLING,
)
from icefloe.maintenance.rewrite.result import GroupOutcome, GroupResult, RewriteResult
from icefloe.maintenance.rewrite.traces import RUN, Trace, sweep_killed_runs, traced
from icefloe.metadata import TableMetadata
from icefloe.planning import FileScanTask, TableScan
from icefloe.verification import Listener, Stage, listener_or_bar


def run_rewrite(plan: RewriteJob, engine: MaintenanceEngine, progress: Listener | None = None) -> RewriteResult:
    """Rewrite the groups of a plan and commit them; what killed runs have left is deleted first."""
    sweep_killed_runs(plan.table)
    if not plan.groups:
        return RewriteResult()
    with traced(plan.table, str(uuid.uuid4())) as trace:
        return _Run(plan, engine, progress, trace).result()


@dataclass(frozen=True, slots=True)
class _Failed:
    """A group whose files could not be written."""

    group: RewriteGroup
    error: Exception
    seconds: float


class _Run:
    def __init__(self, plan: RewriteJob, engine: MaintenanceEngine, progress: Listener | None, trace: Trace) -> None:
        self._plan = plan
        self._engine = engine
        self._metadata = plan.table.metadata
        self._run = trace.run
        self._started = time.monotonic()
        self._is_partial = PARTIAL_PROGRESS.of(plan.options)
        self._at_once = min(CONCURRENT_GROUPS.of(plan.options), len(plan.groups))
        self._stage = Stage("rewrite", len(plan.groups), listener_or_bar(progress))
        self._commits = Commits(plan.table, plan, self._metadata, trace)
        self._strategy = plan.arrangement(self._metadata)
        self._tasks = tasks_of(plan, self._metadata)

    def result(self) -> RewriteResult:
        """Do it all."""
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
        if REMOVE_DANGLING.of(self._plan.options):
            self._remove_dangling()
        return self._checked(self._made())

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

    def _work(self, group: RewriteGroup, tasks: tuple[FileScanTask, ...]) -> GroupRewrite:
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
        )

    def _give_up(self, futures: Sequence[Future[WrittenGroup | _Failed]], pool: ThreadPoolExecutor) -> None:
        """Stop, and delete what was written and is in no commit that may have happened."""
        pool.shutdown(wait=True, cancel_futures=True)
        settled = {result.number for result in self._commits.results}
        left = [future.result() for future in futures if future.done() and not future.cancelled()]
        unsent = [done for done in left if isinstance(done, WrittenGroup) and done.group.number not in settled]
        self._commits.discard(unsent, "of a rewrite that was given up")

    def _remove_dangling(self) -> None:
        """One more commit, without the deletes that had rows in the replaced files alone."""
        properties = {**self._plan.snapshot_properties, RUN: self._run}
        removed = remove_dangling_deletes(self._plan.table, self._plan.branch, snapshot_properties=properties)
        self._commits.removed_deletes += removed.removed_delete_files_count

    def _made(self) -> RewriteResult:
        commits = self._commits
        seconds = time.monotonic() - self._started
        return RewriteResult.of(
            commits.results, commits.removed_deletes, tuple(commits.snapshot_ids), self._run, seconds
        )

    def _checked(self, result: RewriteResult) -> RewriteResult:
        """The result, unless more commits failed than the caller allows."""
        limit = MAX_FAILED_COMMITS.of(self._plan.options)
        most = MAX_COMMITS.of(self._plan.options) if limit is None else limit
        if self._commits.failed > most:
            raise IncompleteRewriteError(
                f"{self._commits.failed} commits of the rewrite failed, more than"
                f" {MAX_FAILED_COMMITS.key!r} allows, {most}; what was committed stays\n{result}",
                result,
            )
        return result


def _failed(group: RewriteGroup, outcome: GroupOutcome, error: Exception, seconds: float) -> GroupResult:
    files, size = len(group.files), group.size_in_bytes
    return GroupResult(group.number, group.partition, outcome, files, size, reason=str(error), seconds=seconds)


def tasks_of(plan: RewriteJob, metadata: TableMetadata) -> dict[str, FileScanTask]:
    """The planned files by path, each with all deletes that apply to it; an error if one is not in the planned snapshot."""
    if plan.snapshot_id is None or metadata.snapshot_by_id(plan.snapshot_id) is None:
        raise StateError(f"snapshot {plan.snapshot_id} of the plan is not in the table any more; plan the rewrite anew")
    wanted = {path for group in plan.groups for path in group.files}
    scan = TableScan(metadata, plan.table.storage, snapshot_id=plan.snapshot_id)
    tasks = {path: task for path, task in _all_tasks(scan) if path in wanted}
    if missing := wanted - tasks.keys():
        raise StateError(
            f"{len(missing)} files of the plan are not in snapshot {plan.snapshot_id}, such as {min(missing)}; plan anew"
        )
    return tasks


def _all_tasks(scan: TableScan) -> Iterator[tuple[str, FileScanTask]]:
    plan = scan.plan()
    if plan is None:
        return
    with plan:
        for batch in plan:
            yield from zip(batch.files.column("file_path").to_pylist(), batch.tasks(), strict=True)
