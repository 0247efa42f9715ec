"""Runs `maintain`: all due steps in order, each on the latest state, with a report of the results."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import StrEnum
from typing import ClassVar

from icefloe import commit as cm, errors, properties as props
from icefloe.maintenance.care.health import TableHealth, health
from icefloe.maintenance.care.lease import Lease
from icefloe.maintenance.care.policy import Decision, MaintenancePolicy, Step, choose_groups, decide, overlapping
from icefloe.maintenance.deletes.dangling import remove_dangling_deletes
from icefloe.maintenance.deletes.equality import convert_equality_deletes
from icefloe.maintenance.deletes.position import rewrite_position_delete_files
from icefloe.maintenance.deletes.request import DeletesRequest
from icefloe.maintenance.engines import engine_of
from icefloe.maintenance.expiry.expire_snapshots import ExpiryRequest, expire_snapshots
from icefloe.maintenance.maintained_table import MaintainedTable
from icefloe.maintenance.manifests import rewrite_manifests
from icefloe.maintenance.options import Options
from icefloe.maintenance.orphans.orphan_files import OrphanRequest, remove_orphan_files
from icefloe.maintenance.rewrite.file_sizes import REWRITE_ALL
from icefloe.maintenance.rewrite.job import RewriteGroup
from icefloe.maintenance.rewrite.options import PARTIAL_PROGRESS
from icefloe.maintenance.rewrite.plan import RewritePlan, RewriteRequest, plan_rewrite
from icefloe.maintenance.rewrite.result import RewriteResult, joined
from icefloe.maintenance.rewrite.run import run_rewrite
from icefloe.maintenance.statistics.table import compute_table_stats
from icefloe.progress import Listener, listener_or_bar
from icefloe.schema import JSON

_ORPHAN_AGE_MS = 3 * 86_400_000
_GROUPS_AT_A_TIME = 4
"""Number of file groups that a run with a time limit rewrites between checks of the clock."""


class StepOutcome(StrEnum):
    """How a step ended."""

    DONE = "done"
    NOT_DUE = "not due"
    NO_TIME = "no time"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class StepReport:
    """One step: reason, result, cost and remaining work."""

    step: Step
    outcome: StepOutcome
    reason: str
    """Why the step is due or not."""
    result: object | None = None
    """Result of the procedure."""
    seconds: float = 0.0
    bytes: int = 0
    """Bytes of rewritten files."""
    left: tuple[str, ...] = ()
    """Work that was left out, and why."""
    error: str | None = None

    def __str__(self) -> str:
        cost = f" in {self.seconds:.1f} s" if self.outcome is StepOutcome.DONE else ""
        text = f"{self.step}: {self.outcome}{cost}: {self.reason}"
        text += "" if self.error is None else f"\n  failed: {self.error}"
        return "\n".join([text, *(f"  left: {each}" for each in self.left)])


@dataclass(frozen=True)
class MaintenanceReport:
    """Report of a run: all steps, and the table's health before and after."""

    run: str
    steps: tuple[StepReport, ...]
    before: TableHealth = field(repr=False)
    after: TableHealth = field(repr=False)

    @property
    def exit_code(self) -> int:
        """Exit code for a command: 0 if everything due was done, 1 if a step failed."""
        return int(any(each.outcome is StepOutcome.FAILED for each in self.steps))

    def __str__(self) -> str:
        return "\n".join(["before:", str(self.before), *map(str, self.steps), "after:", str(self.after)])

    def to_json(self) -> JSON:
        """Return the report as JSON."""
        return {
            "run": self.run,
            "steps": [
                {
                    "step": str(each.step),
                    "outcome": str(each.outcome),
                    "reason": each.reason,
                    "result": None if each.result is None else str(each.result),
                    "seconds": each.seconds,
                    "bytes": each.bytes,
                    "left": list(each.left),
                    "error": each.error,
                }
                for each in self.steps
            ],
        }


@dataclass(frozen=True)
class MaintenancePlan:
    """The due steps according to the table's health; `run` runs each on the latest state of the table."""

    decisions: tuple[Decision, ...]
    health: TableHealth = field(repr=False)
    policy: MaintenancePolicy
    budget: int
    """Maximum bytes of data files to rewrite."""
    _table: MaintainedTable = field(repr=False, compare=False)

    def __str__(self) -> str:
        return "\n".join([str(self.health), *map(str, self.decisions)])

    def to_json(self) -> JSON:
        """Return the plan as JSON."""
        return {
            "budget": self.budget,
            "steps": [{"step": str(each.step), "due": each.is_due, "reason": each.reason} for each in self.decisions],
        }

    def run(
        self, engine: object | None = None, progress: Listener | None = None, max_time: timedelta | None = None
    ) -> MaintenanceReport:
        """Run the due steps; a failed step does not prevent the others.

        Args:
            engine: what runs the heavy part: None for this process, `"spark"` or a Spark session.
            progress: called for each step of the procedures.
            max_time: time limit after which no step and no part of a rewrite is started; running work is finished.
        """
        engine_of(engine)
        given: object = max_time
        if given is not None and not (isinstance(given, timedelta) and given > timedelta(0)):
            raise errors.InvalidInputError(
                f"max_time must be a positive duration, such as timedelta(minutes=30), not {max_time!r}"
            )
        end = None if max_time is None else time.monotonic() + max_time.total_seconds()
        lease = Lease.take(self._table.storage, self._table.metadata)
        try:
            return _Run(self, lease, engine, listener_or_bar(progress), end).report()
        finally:
            lease.release()


def plan_maintenance(
    table: MaintainedTable,
    policy: MaintenancePolicy | Mapping[str, object] | None = None,
    budget: int | None = None,
    progress: Listener | None = None,
) -> MaintenancePlan:
    """Plan the maintenance of the latest state of a table."""
    metadata = table.refresh().metadata
    chosen = policy if isinstance(policy, MaintenancePolicy) else MaintenancePolicy.of(metadata.properties, policy)
    if not chosen.enabled:
        raise errors.StateError(f"maintenance of the table is disabled by {props.MAINTENANCE_ENABLED.key}")
    given: object = budget
    if budget is not None and (not isinstance(given, int) or given < 0):
        raise errors.InvalidInputError(f"budget must be a non-negative number of bytes, not {budget!r}")
    now = health(table, progress=progress)
    decisions = decide(now, chosen)
    return MaintenancePlan(decisions, now, chosen, chosen.max_bytes if budget is None else budget, _table=table)


@dataclass(slots=True)
class _Run:
    """A run in progress."""

    plan: MaintenancePlan
    lease: Lease
    engine: object | None
    listener: Listener
    end: float | None
    """Time after which nothing is started."""
    spent: int = 0

    @property
    def is_over(self) -> bool:
        """Whether the time limit is reached."""
        return self.end is not None and time.monotonic() >= self.end

    def report(self) -> MaintenanceReport:
        steps = tuple(self._steps())
        return MaintenanceReport(self.lease.run, steps, self.plan.health, health(self._table))

    @property
    def _table(self) -> MaintainedTable:
        return self.plan._table

    @property
    def _summary(self) -> dict[str, str]:
        return {"icefloe.maintain-run": self.lease.run}

    def _steps(self) -> Iterator[StepReport]:
        for decision in self.plan.decisions:
            if not decision.is_due:
                yield StepReport(decision.step, StepOutcome.NOT_DUE, decision.reason)
                continue
            if self.is_over:
                yield StepReport(decision.step, StepOutcome.NO_TIME, decision.reason)
                continue
            self.lease.refresh()
            start = time.monotonic()
            try:
                self._table.refresh()
                done = self._work[decision.step](self)
            except errors.IcefloeError as error:
                done = StepReport(decision.step, StepOutcome.FAILED, "", error=str(error))
            yield replace(done, reason=decision.reason + done.reason, seconds=time.monotonic() - start)

    def _compact(self) -> StepReport:
        return self._rewrite(Step.COMPACT, self._rewriting({PARTIAL_PROGRESS.key: "true"}))

    def _sort(self) -> StepReport:
        options = {PARTIAL_PROGRESS.key: "true", REWRITE_ALL.key: "true"}
        return self._rewrite(Step.SORT, self._rewriting(options, "sort"))

    def _rewriting(self, options: Options, strategy: str | None = None) -> RewriteRequest:
        return RewriteRequest(self._table, strategy, options=options, snapshot_properties=self._summary)

    def _rewrite(self, step: Step, request: RewriteRequest) -> StepReport:
        plan = plan_rewrite(request)
        if not plan.groups:
            return StepReport(step, StepOutcome.NOT_DUE, "; too few in any partition to rewrite")
        now, policy = health(self._table), self.plan.policy
        only = overlapping(now, policy) if step is Step.SORT else None
        chosen = choose_groups(plan.groups, now, policy, self.plan.budget - self.spent, only)
        if not chosen.groups:
            return StepReport(step, StepOutcome.DONE, "", left=chosen.left)
        result, done = self._rewrite_groups(plan, chosen.groups, request)
        spent = sum(group.size_in_bytes for group in chosen.groups[:done])
        self.spent += spent
        late = len(chosen.groups) - done
        failed = result.failed_data_files_count
        return StepReport(
            step,
            StepOutcome.FAILED if failed else StepOutcome.DONE,
            "",
            result,
            bytes=spent,
            left=(*chosen.left, *([f"{late} file groups: out of time"] if late else ())),
            error=f"{failed} files could not be rewritten" if failed else None,
        )

    def _rewrite_groups(
        self, plan: RewritePlan, groups: tuple[RewriteGroup, ...], request: RewriteRequest
    ) -> tuple[RewriteResult, int]:
        """Rewrite groups within the time limit; return how many."""
        portion = len(groups) if self.end is None else _GROUPS_AT_A_TIME
        results: list[RewriteResult] = []
        done = 0
        while done < len(groups) and not (done and self.is_over):
            part = replace(plan, groups=groups[done : done + portion])
            self.lease.refresh()
            results.append(run_rewrite(part, engine_of(self.engine), self.listener, request.again))
            done += len(part.groups)
        return joined(results), done

    def _dangling(self) -> StepReport:
        result = remove_dangling_deletes(self._table, snapshot_properties=self._summary)
        return StepReport(Step.DANGLING_DELETES, StepOutcome.DONE, "", result)

    @property
    def _deletes(self) -> DeletesRequest:
        engine, summary = engine_of(self.engine), self._summary
        return DeletesRequest(self._table, engine, progress=self.listener, snapshot_properties=summary)

    def _convert(self) -> StepReport:
        result = convert_equality_deletes(self._deletes)
        return StepReport(Step.CONVERT, StepOutcome.DONE, "", result)

    def _positions(self) -> StepReport:
        result = rewrite_position_delete_files(self._deletes)
        return StepReport(Step.POSITION_DELETES, StepOutcome.DONE, "", result)

    def _orphans(self) -> StepReport:
        request = OrphanRequest(cm.now_ms() - _ORPHAN_AGE_MS, engine_of(self.engine), self.listener)
        return StepReport(Step.ORPHANS, StepOutcome.DONE, "", remove_orphan_files(self._table, request))

    def _manifests(self) -> StepReport:
        result = rewrite_manifests(self._table, cm.ManifestChoice(), None, self._summary, self.listener)
        return StepReport(Step.MANIFESTS, StepOutcome.DONE, "", result)

    def _expire(self) -> StepReport:
        request = ExpiryRequest(cm.Expire(None, None, ()), engine=engine_of(self.engine), listener=self.listener)
        result = expire_snapshots(self._table, request)
        return StepReport(Step.EXPIRE, StepOutcome.DONE, "", result, left=(result.problem,) if result.problem else ())

    def _statistics(self) -> StepReport:
        result = compute_table_stats(self._table, engine=self.engine, progress=self.listener)
        return StepReport(Step.STATISTICS, StepOutcome.DONE, "", result)

    _work: ClassVar[Mapping[Step, Callable[["_Run"], StepReport]]] = {
        Step.CONVERT: _convert,
        Step.COMPACT: _compact,
        Step.SORT: _sort,
        Step.DANGLING_DELETES: _dangling,
        Step.POSITION_DELETES: _positions,
        Step.MANIFESTS: _manifests,
        Step.EXPIRE: _expire,
        Step.STATISTICS: _statistics,
        Step.ORPHANS: _orphans,
    }
