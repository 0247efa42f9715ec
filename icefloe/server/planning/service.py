"""Plans of scans for clients: at once if they are quick, else in the background, where they can be fetched or cancelled.

Nothing is kept for a plan that was answered. One that takes longer is kept in memory for some minutes; another replica, or
this one after a restart, that is asked for it plans it again, since its id says what is planned.
"""

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from functools import partial

from icefloe.bounded_cache import BoundedCache
from icefloe.errors import IcefloeError, NoSuchObjectError, NoSuchPlanError, ServiceUnavailableError
from icefloe.manifests import ManifestCache
from icefloe.planning import DeleteIndex
from icefloe.rest import (
    PlanningResult,
    PlanStatus,
    PlanTableScanRequest,
    ScanTasks,
    StorageCredential,
    encode_result_of,
    encode_scan_tasks,
    problem_of,
)
from icefloe.server.planning.pages import Cancelled, Page, Part, first_page, page_of, parts_from
from icefloe.server.planning.scans import PinnedScan, PlannedTable, PreparedScan, pin, prepare
from icefloe.server.planning.tokens_codec import (
    no_such_task,
    plan_id_of,
    plan_task_of,
    read_plan_id,
    read_plan_task,
)

logger = logging.getLogger("icefloe.server")

_DELETES_KEPT = 1_000_000
_LONGEST_PART_LIST = 4 << 20
"""Characters of all plan tasks in one answer."""


@dataclass(frozen=True, slots=True)
class PlanningSettings:
    """How much a server does for a plan at a time."""

    page_files: int = 2000
    """Files in one answer."""
    most_parts: int = 1000
    """Plan tasks in one answer."""
    wait_seconds: float = 5.0
    """How long a client waits for its plan before it goes on in the background."""
    keep_seconds: float = 600.0
    """How long a plan in the background is kept."""
    most_plans: int = 64
    """How many plans may be under way or kept."""
    workers: int = 4
    """How many plans are made at a time."""


@dataclass(slots=True)
class _Running:
    """A plan under way, or one that is done and waits to be fetched."""

    work: "Future[bytes]"
    is_cancelled: threading.Event
    started: float = field(default_factory=time.monotonic)


class PlanningService:
    """Plans scans. Threads share it; one for each process of a server."""

    def __init__(self, settings: PlanningSettings | None = None, cache: ManifestCache | None = None) -> None:
        self._settings = settings or PlanningSettings()
        self._cache = cache or ManifestCache()
        self._deletes: BoundedCache[str, DeleteIndex] = BoundedCache(
            _DELETES_KEPT, lambda index: index.size, keeps_newest=True
        )
        """The deletes of the scans that were planned last: every page of a scan needs them."""
        self._pool = ThreadPoolExecutor(self._settings.workers, thread_name_prefix="icefloe-plan")
        self._plans: OrderedDict[str, _Running] = OrderedDict()
        self._lock = threading.Lock()

    def plan(
        self, table: PlannedTable, request: PlanTableScanRequest, credentials: Sequence[StorageCredential] = ()
    ) -> bytes:
        """The body of the answer to a request to plan a scan; what is wrong with the request is an error."""
        scan = self._prepared(pin(table, request), table)
        plan_id = plan_id_of(scan.pinned)
        running = self._start(plan_id, scan)
        can_be_fetched = read_plan_id(plan_id).scan is not None
        wait([running.work], self._patience() if can_be_fetched else None)
        if not running.work.done():
            return encode_result_of(PlanningResult(PlanStatus.SUBMITTED, plan_id), b"")
        with self._lock:
            self._plans.pop(plan_id, None)
        result = PlanningResult(PlanStatus.COMPLETED, plan_id, credentials=tuple(credentials))
        return encode_result_of(result, running.work.result())

    def fetch(self, table: PlannedTable, plan_id: str, credentials: Sequence[StorageCredential] = ()) -> bytes:
        """The body of the answer to a request for a plan that was submitted."""
        running = self._found(table, plan_id)
        if running.is_cancelled.is_set():
            return encode_result_of(PlanningResult(PlanStatus.CANCELLED), b"")
        if not running.work.done():
            return encode_result_of(PlanningResult(PlanStatus.SUBMITTED), b"")
        try:
            tasks = running.work.result()
        except Exception as error:
            if not isinstance(error, IcefloeError):
                logger.exception("a plan of table %s failed", table.identity)
            return encode_result_of(PlanningResult(PlanStatus.FAILED, error=problem_of(error)), b"")
        return encode_result_of(PlanningResult(PlanStatus.COMPLETED, credentials=tuple(credentials)), tasks)

    def cancel(self, table: PlannedTable, plan_id: str) -> None:
        """End a plan, if it is still under way here."""
        self._described(table, plan_id)
        with self._lock:
            running = self._plans.get(plan_id)
        if running is not None:
            running.is_cancelled.set()
            running.work.cancel()

    def tasks(self, table: PlannedTable, plan_task: str) -> bytes:
        """The body of the answer to a request for the tasks behind a plan task."""
        pinned, part = read_plan_task(plan_task)
        if pinned.table != table.identity:
            no_such_task(plan_task)
        try:
            scan = self._prepared(pinned, table)
        except NoSuchObjectError:
            # The snapshot or the schema is gone.
            no_such_task(plan_task)
        if part.is_rest:
            page = Page(parts=parts_from(scan, part.first, self._settings.page_files, self._most_parts(scan)))
        else:
            page = page_of(scan, part, self._settings.page_files, lambda: None)
        return _encoded(scan, page)

    def close(self) -> None:
        """End all plans."""
        with self._lock:
            for running in self._plans.values():
                running.is_cancelled.set()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _prepared(self, pinned: PinnedScan, table: PlannedTable) -> PreparedScan:
        scan = prepare(pinned, table, self._cache)
        if scan.plan is None:
            return scan
        key = plan_task_of(pinned, Part(0))
        return replace(scan, plan=replace(scan.plan, share_deletes=partial(self._deletes.load, key)))

    # -- plans under way

    def _start(self, plan_id: str, scan: PreparedScan) -> _Running:
        is_cancelled = threading.Event()

        def check() -> None:
            if is_cancelled.is_set():
                raise Cancelled

        def work() -> bytes:
            check()
            page = first_page(scan, self._settings.page_files, self._most_parts(scan), check)
            return _encoded(scan, page)

        with self._lock:
            self._forget_old()
            if len(self._plans) >= self._settings.most_plans:
                raise ServiceUnavailableError(f"{len(self._plans)} plans are under way; ask again later")
            running = self._plans[plan_id] = _Running(self._pool.submit(work), is_cancelled)
        return running

    def _forget_old(self) -> None:
        """Let go of plans that nobody fetched, and, to make room, of the oldest ones that are done."""
        oldest = time.monotonic() - self._settings.keep_seconds
        for plan_id, running in list(self._plans.items()):
            is_full = len(self._plans) >= self._settings.most_plans
            if running.started < oldest or (is_full and running.work.done()):
                running.is_cancelled.set()
                del self._plans[plan_id]

    def _found(self, table: PlannedTable, plan_id: str) -> _Running:
        pinned = self._described(table, plan_id)
        with self._lock:
            running = self._plans.get(plan_id)
        if running is not None:
            return running
        if pinned is None:
            raise NoSuchPlanError(f"there is no plan {plan_id!r:.100}")
        running = self._start(plan_id, self._prepared(pinned, table))
        wait([running.work], self._patience())
        return running

    def _patience(self) -> float:
        """How long a thread may wait for a plan; not at all while others wait already, since there are other requests."""
        with self._lock:
            busy = sum(not running.work.done() for running in self._plans.values())
        return self._settings.wait_seconds if busy <= 2 * self._settings.workers else 0.0

    def _described(self, table: PlannedTable, plan_id: str) -> PinnedScan | None:
        said = read_plan_id(plan_id)
        if said.table != table.identity:
            raise NoSuchPlanError(f"there is no plan {plan_id!r:.100} of this table")
        return said.scan

    def _most_parts(self, scan: PreparedScan) -> int:
        """Every part holds the whole request, so long requests get fewer of them."""
        length = len(plan_task_of(scan.pinned, Part(0)))
        return max(1, min(self._settings.most_parts, _LONGEST_PART_LIST // length))


def _encoded(scan: PreparedScan, page: Page) -> bytes:
    plan_tasks = tuple(plan_task_of(scan.pinned, part) for part in page.parts)
    return encode_scan_tasks(ScanTasks(page.tasks, plan_tasks), scan.context)
