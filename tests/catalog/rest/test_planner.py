"""Scans that a server plans, seen by the client: what it asks, waits for, fetches and cancels, and what it plans itself."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import pyarrow as pa
import pytest

from icefloe import load_catalog
from icefloe.catalog.rest.planner import Patience, RestPlanner, planner_of
from icefloe.catalog.rest.remote_scans import remote_scan
from icefloe.errors import (
    ForbiddenError,
    IcefloeError,
    InvalidMetadataError,
    InvalidPropertyError,
    NoSuchPlanTaskError,
    ServiceUnavailableError,
    StateError,
    UnsupportedOperationError,
)
from icefloe.expressions import AlwaysTrue, EqualTo, Literal, bind
from icefloe.metadata import Snapshot
from icefloe.planning import TableScan
from icefloe.rest import Endpoint, paths
from icefloe.schema import types
from icefloe.server.planning import PlanningService, PlanningSettings
from icefloe.storage import Storage, StorageCredential
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.planning.tables import SyntheticTable
from tests.rest.test_content_files import PLAIN
from tests.server.planning.serving import ENDPOINTS, served
from tests.server.planning.test_service import RENAMED, SCHEMA, row
from tests.strategies import FILTER_SCHEMA

TASK = {"data-file": PLAIN, "residual-filter": True}
DONE = {"status": "completed", "plan-id": "p", "file-scan-tasks": [TASK]}


@dataclass
class Scripted:
    """A server that answers what it was told to, in turn."""

    answers: list[Any]
    endpoints: Sequence[Endpoint] = ENDPOINTS
    about: str = "table db.t"
    asked: list[tuple[str, Any]] = field(default_factory=list)

    def has(self, endpoint: Endpoint) -> bool:
        return endpoint in self.endpoints

    def ask(self, endpoint: Endpoint, body: bytes | None = None, **names: str) -> bytes:
        self.asked.append((endpoint.method, names or json.loads(body or b"{}")))
        if endpoint == paths.CANCEL_PLAN:
            return b""
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return json.dumps(answer).encode()

    def storage(self, credentials: Sequence[StorageCredential], plan_id: str | None) -> Storage:
        return Storage({"plan": str(plan_id), "prefix": credentials[0].prefix})


@pytest.fixture(scope="module")
def service() -> Iterator[PlanningService]:
    made = PlanningService(PlanningSettings(page_files=2))
    yield made
    made.close()


@pytest.fixture
def table() -> SyntheticTable:
    table = SyntheticTable(SCHEMA, 2)
    for number in range(5):
        table.add(table.data([row(number), row(number + 100)]))
    return table


def scan(table: SyntheticTable, planner: RestPlanner | None = None, **more: Any) -> TableScan:
    return TableScan(table.metadata, table.storage, planner=planner, **more)


def scripted(table: SyntheticTable, *answers: Any, **more: Any) -> tuple[Scripted, TableScan, list[float]]:
    """A server with these answers, a scan that it plans, and how long the client slept."""
    slept: list[float] = []
    server = Scripted(list(answers), **more)
    patience = Patience(sleep=slept.append, clock=lambda: sum(slept))
    return server, scan(table, RestPlanner(server, patience)), slept


# -- what is asked


def test_what_a_server_is_asked(table: SyntheticTable) -> None:
    server, asked, _ = scripted(table, DONE)
    asked = replace(asked, row_filter="id > 5 and region = 'eu'", selected_fields=("id", "_file"), limit=7)
    assert [task.file.file_path for task in asked.plan_files()] == [PLAIN["file-path"]]
    [(method, body)] = server.asked
    assert method == "POST"
    assert body == {
        "snapshot-id": table.metadata.current_snapshot_id,
        "select": ["id"],
        "filter": {
            "type": "and",
            "left": {"type": "gt", "term": "id", "value": 5},
            "right": {"type": "eq", "term": "region", "value": "eu"},
        },
        "case-sensitive": True,
        "use-snapshot-schema": True,
        "min-rows-requested": 7,
    }


def test_which_schema_a_server_is_asked_for(table: SyntheticTable) -> None:
    first = table.metadata.snapshots[0].snapshot_id
    table.evolve_schema(RENAMED)

    def asked(**more: Any) -> tuple[Any, Any]:
        wanted = scan(table, **more)
        snapshot = wanted.snapshot()
        assert isinstance(snapshot, Snapshot)
        request = remote_scan(wanted, snapshot).request
        return request.use_snapshot_schema, request.filter

    assert asked(row_filter="number = 1") == (False, {"type": "eq", "term": "number", "value": 1})
    assert asked(row_filter="id = 1", snapshot_id=first) == (True, {"type": "eq", "term": "id", "value": 1})
    assert asked(row_filter="NUMBER = 1", case_sensitive=False)[1] == {"type": "eq", "term": "number", "value": 1}


@pytest.mark.parametrize(
    ("text", "sent", "kept"),
    [
        ("score < 1.5", True, False),
        ("blob = X'00'", False, True),
        ("code in (X'616263', X'616264')", False, True),
        ("id = 1 and blob = X'00'", True, True),
        ("id = 1 or blob = X'00'", False, True),
    ],
)
def test_the_server_gets_what_it_can_read_of_a_filter(text: str, sent: bool, kept: bool) -> None:
    table = SyntheticTable(FILTER_SCHEMA, 3)
    table.add(table.data([]))
    wanted = scan(table, row_filter=text, limit=3)
    snapshot = wanted.snapshot()
    assert snapshot is not None
    remote = remote_scan(wanted, snapshot)
    assert (remote.request.filter is not True) == sent
    assert (remote.kept != AlwaysTrue()) == kept
    assert remote.request.min_rows_requested == (None if kept else 3)


def test_infinities_are_asked_of_the_rows(table: SyntheticTable) -> None:
    wide = SyntheticTable(FILTER_SCHEMA, 3)
    wide.add(wide.data([]))
    infinite = EqualTo("score", Literal(float("inf"), types.DoubleType()))
    server, asked, _ = scripted(wide, {**DONE, "file-scan-tasks": [{**TASK, "residual-filter": False}, TASK]})
    first, second = replace(asked, row_filter=infinite).plan_files()
    assert "filter" not in server.asked[0][1]
    assert second.residual == bind(infinite, FILTER_SCHEMA)
    assert first.residual != second.residual


# -- tasks


@pytest.mark.parametrize("workers", ["1", "4"])
def test_pages_are_fetched_as_a_stream(table: SyntheticTable, service: PlanningService, workers: str) -> None:
    own = scan(table, row_filter="id > 2", options={"planning.workers": workers})
    server = served(own, service)
    planned = list(replace(own, planner=RestPlanner(server)).plan_files())
    assert [task.file for task in planned] == [task.file for task in own.plan_files()]
    assert [task.residual for task in planned] == [task.residual for task in own.plan_files()]
    assert sum(endpoint == paths.FETCH_TASKS for endpoint, _ in server.asked) == 3
    assert paths.CANCEL_PLAN not in [endpoint for endpoint, _ in server.asked]
    combined = replace(own, planner=RestPlanner(served(own, service))).plan_tasks()
    assert sum(len(each.tasks) for each in combined) == len(planned)


def test_a_plan_that_is_left_is_cancelled(table: SyntheticTable, service: PlanningService) -> None:
    own = scan(table, options={"planning.workers": "1"})
    server = served(own, service)
    tasks = replace(own, planner=RestPlanner(server)).plan_files()
    assert len(list(islice(tasks, 2))) == 2
    tasks.close()
    assert [endpoint for endpoint, _ in server.asked][-1] == paths.CANCEL_PLAN
    silent = replace(served(own, service), endpoints=tuple(set(ENDPOINTS) - {paths.CANCEL_PLAN}))
    tasks = replace(own, planner=RestPlanner(silent)).plan_files()
    next(tasks)
    tasks.close()
    assert paths.CANCEL_PLAN not in [endpoint for endpoint, _ in silent.asked]


def test_a_task_that_is_gone_is_an_error(table: SyntheticTable) -> None:
    plan = {**DONE, "plan-tasks": ["a", "b"]}
    server, asked, _ = scripted(table, plan, {"plan-tasks": [], "file-scan-tasks": [TASK]}, NoSuchPlanTaskError("gone"))
    tasks = replace(asked, options={"planning.workers": "1"}).plan_files()
    assert len(list(islice(tasks, 2))) == 2
    with pytest.raises(NoSuchPlanTaskError, match="gone"):
        next(tasks)
    assert server.asked[-1] == ("DELETE", {"plan_id": "p"})


def test_tasks_that_lead_in_a_circle(table: SyntheticTable) -> None:
    _, asked, _ = scripted(table, {**DONE, "plan-tasks": ["a"]}, {"plan-tasks": ["a"]})
    with pytest.raises(ServiceUnavailableError, match="repeats plan tasks"):
        list(asked.plan_files())


def test_deletes_of_other_specs_and_nonsense(table: SyntheticTable) -> None:
    _, asked, _ = scripted(table, {**DONE, "file-scan-tasks": [{"data-file": {**PLAIN, "spec-id": 7}}]})
    with pytest.raises(InvalidMetadataError, match="`spec-id` is 7"):
        list(asked.plan_files())


# -- plans that take their time


def test_a_plan_is_waited_for(table: SyntheticTable) -> None:
    busy = {"status": "submitted", "plan-id": "p"}
    server, asked, slept = scripted(table, busy, *[{"status": "submitted"}] * 7, DONE)
    assert len(list(asked.plan_files())) == 1
    assert slept == [1, 2, 4, 8, 16, 32, 60, 60]
    assert server.asked[1:] == [("GET", {"plan_id": "p"})] * 8


@pytest.mark.parametrize(("patience", "polls"), [({"seconds": 10.0}, 3), ({"polls": 2}, 2), ({"polls": 0}, 0), ({}, 9)])
def test_a_plan_is_not_waited_for_for_ever(table: SyntheticTable, patience: dict[str, Any], polls: int) -> None:
    server, asked, slept = scripted(table, {"status": "submitted", "plan-id": "p"}, *[{"status": "submitted"}] * 20)
    planner = asked.planner
    assert isinstance(planner, RestPlanner)
    asked = replace(asked, planner=replace(planner, patience=replace(planner.patience, **patience)))
    with pytest.raises(ServiceUnavailableError, match=f"and {polls} polls; raise rest-scan-planning.poll-timeout-ms"):
        asked.plan_files()
    assert len(slept) == polls
    assert server.asked[-1] == ("DELETE", {"plan_id": "p"})


@pytest.mark.parametrize(
    ("answers", "error", "problem"),
    [
        ([{"status": "failed", "error": {"message": "no", "type": "X", "code": 500}}], ServiceUnavailableError, "no"),
        ([{"status": "failed", "error": {"message": "no", "type": "X", "code": 403}}], ForbiddenError, "no"),
        ([{"status": "failed"}], StateError, "the plan of the scan is failed"),
        ([{"status": "cancelled"}], StateError, "the plan of the scan is cancelled"),
        ([{"status": "submitted"}], ServiceUnavailableError, "returned no plan id"),
        ([{"status": "submitted", "plan-id": "p"}, {"status": "cancelled"}], StateError, "is cancelled"),
        ([{"status": "submitted", "plan-id": "p"}, ForbiddenError("you")], ForbiddenError, "you"),
        ([{"status": "odd"}], InvalidMetadataError, "'odd'"),
        ([ServiceUnavailableError("down")], ServiceUnavailableError, "down"),
    ],
)
def test_plans_that_fail(table: SyntheticTable, answers: list[Any], error: type[IcefloeError], problem: str) -> None:
    _, asked, _ = scripted(table, *answers)
    with pytest.raises(error, match=problem):
        list(asked.plan_files())


def test_how_long_is_up_to_the_catalog() -> None:
    assert Patience.of({}).seconds == 300
    assert Patience.of({}).polls == 10
    patience = Patience.of({"rest-scan-planning.poll-timeout-ms": "1500", "rest-scan-planning.poll-num-retries": "3"})
    assert (patience.seconds, patience.polls) == (1.5, 3)
    with pytest.raises(InvalidPropertyError):
        Patience.of({"rest-scan-planning.poll-timeout-ms": "0"})


# -- who plans


def test_who_plans_is_up_to_server_and_client(caplog: pytest.LogCaptureFixture) -> None:
    server, none = Scripted([]), Scripted([], endpoints=())
    mode = "scan-planning-mode"
    assert planner_of(server, {}, {}) is None
    assert planner_of(server, {mode: "server"}, {mode: "client"}) is None
    for properties, config in (({mode: "server"}, {}), ({mode: "client"}, {mode: "SERVER"})):
        assert isinstance(planner_of(server, properties, config), RestPlanner)
    assert planner_of(none, {mode: "server"}, {}) is None
    assert "the server plans no scans" in caplog.text
    with pytest.raises(InvalidPropertyError, match="must be one of client, server"):
        planner_of(server, {mode: "both"}, {})


def test_some_scans_are_planned_here(table: SyntheticTable, caplog: pytest.LogCaptureFixture) -> None:
    server, asked, _ = scripted(table)
    for wanted in (
        replace(asked, whole_files=True),
        replace(asked, selected_fields=("id", "_last_updated_sequence_number")),
    ):
        assert [task.sequence_number for task in wanted.plan_files()] == [5, 4, 3, 2, 1]
        assert wanted.report is not None
    assert server.asked == []
    assert list(replace(asked, limit=0).plan_files()) == []
    assert list(replace(asked, metadata=SyntheticTable(SCHEMA, 2).metadata).plan_files()) == []
    server, asked, _ = scripted(table, UnsupportedOperationError("not this one"))
    with caplog.at_level("INFO", "icefloe.planning"):
        assert len(list(asked.plan_files())) == 5
    assert "planned here: not this one" in caplog.text


def test_what_a_plan_does_not_say_is_an_error_to_ask_for(table: SyntheticTable) -> None:
    _, asked, _ = scripted(table, DONE)
    [task] = asked.plan_files()
    assert task.sequence_number == -1
    with pytest.raises(StateError, match="does not say the sequence number"):
        _ = task.known_sequence_number


def test_credentials_of_a_plan_are_for_its_files(table: SyntheticTable) -> None:
    credentials = [{"prefix": "memory://", "config": {"token": "secret"}}]
    _, asked, _ = scripted(table, {**DONE, "storage-credentials": credentials})
    assert asked.file_storage is table.storage
    asked.plan_files().close()
    assert dict(asked.file_storage.properties) == {"plan": "p", "prefix": "memory://"}
    assert asked.storage is table.storage


# -- rows


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_rows_are_the_same(version: int, service: PlanningService) -> None:
    catalog = load_catalog("plans", type="memory")
    catalog.create_namespace("db")
    table = catalog.create_table(
        "db.t",
        "id BIGINT, region STRING, blob BINARY",
        partition_spec=["region"],
        properties={"format-version": str(version), "write.delete.mode": "merge-on-read"},
    )
    for start in (0, 10, 20):
        rows = {
            "id": list(range(start, start + 10)),
            "region": ["eu", "us"] * 5,
            "blob": [bytes([number]) for number in range(10)],
        }
        table.append(pa.table(rows))
        if allows(version, Feature.DELETE_FILES):
            table.delete(f"id = {start + 3}")
    columns = ("id", "region", "blob", *(("_row_id", "_last_updated_sequence_number") if version >= 3 else ()))
    for row_filter in ("", "id > 4 and region = 'eu'", "blob < X'05'", "id in (1, 3, 12) or region = 'us'"):
        for names in (columns[:3], columns, ("*",)):
            local = table.scan(row_filter, names)
            remote = replace(local, planner=RestPlanner(served(local, service)))
            assert _rows(remote.to_arrow()) == _rows(local.to_arrow())
            assert remote.count() == local.count()
    assert table.scan(limit=3).count() == 3
    limited = replace(table.scan(limit=3), planner=RestPlanner(served(table.scan(), service)))
    assert limited.to_arrow().num_rows == 3


def _rows(shown: pa.Table) -> list[Any]:
    return sorted(shown.to_pylist(), key=str)
