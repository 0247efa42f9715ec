"""The planning service as the server of a table, without HTTP in between."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from icefloe.planning import TableScan
from icefloe.rest import Endpoint, decode_plan_request, decode_plan_task, paths
from icefloe.server.planning import PlannedTable, PlanningService
from icefloe.storage import Storage, StorageCredential

ENDPOINTS = (paths.PLAN_SCAN, paths.FETCH_PLAN, paths.CANCEL_PLAN, paths.FETCH_TASKS)
"""All of scan planning."""


@dataclass
class ServedTable:
    """Asks the service as a client would; `asked` is what it was asked."""

    service: PlanningService
    table: PlannedTable
    endpoints: Sequence[Endpoint] = ENDPOINTS
    about: str = "table db.t"
    asked: list[tuple[Endpoint, bytes | None]] = field(default_factory=list)
    credentials: Sequence[StorageCredential] = ()

    def has(self, endpoint: Endpoint) -> bool:
        return endpoint in self.endpoints

    def ask(self, endpoint: Endpoint, body: bytes | None = None, **names: str) -> bytes:
        self.asked.append((endpoint, body))
        if endpoint == paths.PLAN_SCAN:
            return self.service.plan(self.table, decode_plan_request(body or b""), self.credentials)
        if endpoint == paths.FETCH_PLAN:
            return self.service.fetch(self.table, names["plan_id"], self.credentials)
        if endpoint == paths.FETCH_TASKS:
            return self.service.tasks(self.table, decode_plan_task(body or b""))
        assert endpoint == paths.CANCEL_PLAN
        self.service.cancel(self.table, names["plan_id"])
        return b""

    def storage(self, credentials: Sequence[StorageCredential], plan_id: str | None) -> Storage:
        return Storage({"plan": str(plan_id), **{each.prefix: str(each.config) for each in credentials}})


def served(scan: TableScan, service: PlanningService) -> ServedTable:
    """The table of a scan."""
    return ServedTable(service, PlannedTable(scan.metadata, scan.storage))
