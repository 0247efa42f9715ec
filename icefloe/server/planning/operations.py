"""What the server does at the endpoints of scan planning: it hands requests to the planning service, and its answers back."""

from icefloe.rest import decode_plan_request, decode_plan_task, paths
from icefloe.server.auth.protocols import Privilege
from icefloe.server.calls import NOTHING, TABLE, Answer, Call, Operation
from icefloe.server.planning.scans import PlannedTable
from icefloe.server.planning.service import PlanningService
from icefloe.server.table_operations import pointer
from icefloe.storage import StorageCredential


class PlanOperations:
    """Plans of scans, and what is asked about them; whoever may read a table may have its scans planned."""

    def __init__(self, service: PlanningService) -> None:
        self._service = service

    def operations(self) -> tuple[Operation, ...]:
        """What a server with scan planning does besides."""
        read = Privilege.READ
        return (
            Operation(paths.PLAN_SCAN, self._plan, read, TABLE),
            Operation(paths.FETCH_PLAN, self._fetch, read, TABLE),
            Operation(paths.CANCEL_PLAN, self._cancel, read, TABLE),
            Operation(paths.FETCH_TASKS, self._tasks, read, TABLE),
        )

    def close(self) -> None:
        """End all plans."""
        self._service.close()

    def _plan(self, call: Call) -> Answer:
        with call.watch.part("decode"):
            request = decode_plan_request(call.body)
        table = _table(call)
        credentials = _credentials(call, table)
        with call.watch.part("plan"):
            return Answer(self._service.plan(table, request, credentials))

    def _fetch(self, call: Call) -> Answer:
        table = _table(call)
        credentials = _credentials(call, table)
        with call.watch.part("plan"):
            return Answer(self._service.fetch(table, call.plan_id, credentials))

    def _cancel(self, call: Call) -> Answer:
        self._service.cancel(_table(call), call.plan_id)
        return NOTHING

    def _tasks(self, call: Call) -> Answer:
        with call.watch.part("decode"):
            plan_task = decode_plan_task(call.body)
        table = _table(call)
        with call.watch.part("plan"):
            return Answer(self._service.tasks(table, plan_task))


def _table(call: Call) -> PlannedTable:
    state = call.warehouse.state_at(pointer(call))
    return PlannedTable(state.metadata, call.served.catalog.storage)


def _credentials(call: Call, table: PlannedTable) -> tuple[StorageCredential, ...]:
    with call.watch.part("access"):
        return call.access.surplus(call, call.identifier, table.metadata).credentials
