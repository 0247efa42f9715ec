"""Scans that a REST server plans: how long it is waited for, how its tasks are fetched, and when a plan is cancelled.

Rows are the same as if the manifests were read here. Sequence numbers are not part of the protocol, so that scans which need
them are planned here all the same, and so are all scans of a server that plans none.
"""

import logging
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Protocol

from icefloe import errors, properties as props, rest
from icefloe.catalog.rest.remote_scans import RemoteScan, remote_scan, why_planned_here
from icefloe.parallel import in_order
from icefloe.planning import FileScanTask, ServicePlanner, TableScan, counted_tasks
from icefloe.rest import paths
from icefloe.storage import Storage, StorageCredential

logger = logging.getLogger("icefloe.planning")

_FIRST_WAIT_SECONDS = 1.0
_LONGEST_WAIT_SECONDS = 60.0
_FIVE_MINUTES_MS = 300_000
_TEN_POLLS = 10


class PlanServer(Protocol):
    """The server of one table. It can be pickled if the tables of its catalog are to be."""

    @property
    def about(self) -> str:
        """The table, for messages."""

    def has(self, endpoint: rest.Endpoint) -> bool:
        """Whether the server has the endpoint."""

    def ask(self, endpoint: rest.Endpoint, body: bytes | None = None, **names: str) -> bytes:
        """The body of a good answer; any other is an error."""

    def storage(self, credentials: Sequence[StorageCredential], plan_id: str | None) -> Storage:
        """The storage of the table with credentials that are for the files of a plan."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a plan is waited for."""

    seconds: float = _FIVE_MINUTES_MS / 1000
    polls: int = _TEN_POLLS
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic

    @staticmethod
    def of(properties: Mapping[str, str]) -> "Patience":
        """What the properties of a catalog say."""
        milliseconds = props.property_as_int(properties, rest.plans_codec.POLL_TIMEOUT_MS, _FIVE_MINUTES_MS, at_least=1)
        polls = props.property_as_int(properties, rest.plans_codec.POLL_RETRIES, _TEN_POLLS, at_least=0)
        return Patience(milliseconds / 1000, polls)


def planner_of(server: PlanServer, properties: Mapping[str, str], config: Mapping[str, str]) -> "RestPlanner | None":
    """The planner of a table, by its configuration, else by the properties of the catalog; None plans by the manifests."""
    key = rest.config_codec.SCAN_PLANNING_MODE
    text = config.get(key) or properties.get(key) or rest.PlanMode.CLIENT
    try:
        mode = rest.PlanMode(text.strip().lower())
    except ValueError:
        raise errors.InvalidPropertyError(
            f"{key!r} is {text!r}; it must be one of {', '.join(rest.PlanMode)}"
        ) from None
    if mode is rest.PlanMode.CLIENT:
        return None
    if not server.has(paths.PLAN_SCAN):
        logger.warning("%s: %r is %r, but the server plans no scans; they are planned here", server.about, key, text)
        return None
    return RestPlanner(server, Patience.of(properties))


@dataclass(frozen=True, slots=True)
class RestPlanner(ServicePlanner):
    """Has the scans of one table planned by its server."""

    server: PlanServer
    patience: Patience = field(default_factory=Patience)

    def plan_files(self, scan: TableScan) -> Generator[FileScanTask, None, None]:
        """The tasks of the server's plan, as a stream; closing it cancels what is left of the plan."""
        snapshot = scan.snapshot()
        if snapshot is None or scan.limit == 0:
            return _nothing()
        reason = why_planned_here(scan)
        if reason is not None:
            return self._here(scan, reason)
        asked = remote_scan(scan, snapshot)
        try:
            result = self._result(paths.PLAN_SCAN, asked, rest.encode_plan_request(asked.request))
        except errors.UnsupportedOperationError as error:
            return self._here(scan, str(error))
        plan_id = result.plan_id
        result = self._awaited(result, asked)
        if result.credentials:
            scan.lend(self.server.storage(result.credentials, plan_id))
        return counted_tasks(scan, self._tasks(result.tasks, plan_id, asked, scan.settings.workers))

    def _here(self, scan: TableScan, reason: str) -> Generator[FileScanTask, None, None]:
        logger.info("%s: a scan is planned here: %s", self.server.about, reason)
        plan = scan.plan()
        return _nothing() if plan is None else plan.tasks()

    def _awaited(self, result: rest.PlanningResult, asked: RemoteScan) -> rest.PlanningResult:
        """The plan when it is complete; one that failed, was cancelled or takes too long is an error."""
        plan_id, patience = result.plan_id, self.patience
        wait, end, polls = _FIRST_WAIT_SECONDS, patience.clock() + patience.seconds, 0
        try:
            while result.status is rest.PlanStatus.SUBMITTED:
                if plan_id is None:
                    raise errors.ServiceUnavailableError(
                        f"{self.server.about}: the server is planning the scan but returned no plan id"
                    )
                if polls >= patience.polls or patience.clock() + wait > end:
                    raise errors.ServiceUnavailableError(
                        f"{self.server.about}: the server did not finish planning the scan within {patience.seconds:g} s and {polls} polls;"
                        f" raise {rest.plans_codec.POLL_TIMEOUT_MS} or {rest.plans_codec.POLL_RETRIES}, or set"
                        f" {rest.config_codec.SCAN_PLANNING_MODE}={rest.PlanMode.CLIENT}"
                    )
                patience.sleep(wait)
                wait, polls = min(2 * wait, _LONGEST_WAIT_SECONDS), polls + 1
                result = self._result(paths.FETCH_PLAN, asked, plan_id=plan_id)
        except BaseException:
            self._cancel(plan_id)
            raise
        if result.status is rest.PlanStatus.FAILED and result.error is not None:
            error = result.error
            raise rest.error_for(
                error.status,
                rest.encode_error(error),
                rest.Context.PLAN,
                f"{self.server.about}: planning the scan failed",
            )
        if result.status is not rest.PlanStatus.COMPLETED:
            raise errors.StateError(f"{self.server.about}: the plan of the scan is {result.status}")
        return result

    def _result(
        self, endpoint: rest.Endpoint, asked: RemoteScan, body: bytes | None = None, **names: str
    ) -> rest.PlanningResult:
        return rest.decode_planning_result(self.server.ask(endpoint, body, **names), asked.context)

    def _tasks(
        self, tasks: rest.ScanTasks, plan_id: str | None, asked: RemoteScan, workers: int
    ) -> Generator[FileScanTask, None, None]:
        """All tasks: those that came with the plan, and those that it has plan tasks for, fetched by several threads."""
        is_complete = False
        try:
            yield from map(asked.own, tasks.file_scan_tasks)
            yield from self._further(tasks.plan_tasks, asked, workers)
            is_complete = True
        finally:
            if not is_complete:
                self._cancel(plan_id)

    def _further(
        self, plan_tasks: Sequence[str], asked: RemoteScan, workers: int
    ) -> Generator[FileScanTask, None, None]:
        known: set[str] = set()

        def fetched(plan_task: str) -> rest.ScanTasks:
            body = self.server.ask(paths.FETCH_TASKS, rest.encode_plan_task(plan_task))
            return rest.decode_scan_tasks(body, asked.context)

        while plan_tasks:
            if not known.isdisjoint(plan_tasks):
                raise errors.ServiceUnavailableError(f"{self.server.about}: the server repeats plan tasks")
            known.update(plan_tasks)
            following: list[str] = []
            with closing(in_order(fetched, plan_tasks, workers, "icefloe-rest-plan")) as answers:
                for tasks in answers:
                    following += tasks.plan_tasks
                    yield from map(asked.own, tasks.file_scan_tasks)
            plan_tasks = following

    def _cancel(self, plan_id: str | None) -> None:
        """Tell the server that the plan is not wanted any more; it forgets it some day anyhow."""
        if plan_id is None or not self.server.has(paths.CANCEL_PLAN):
            return
        try:
            self.server.ask(paths.CANCEL_PLAN, plan_id=plan_id)
        except errors.IcefloeError as error:
            logger.debug("%s: a plan was not cancelled: %s", self.server.about, error)


def _nothing() -> Generator[FileScanTask, None, None]:
    yield from ()
