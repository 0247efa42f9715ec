"""Scan planning over HTTP, on the server and by the client that people use: rows, hostile bodies, and who may have a plan."""

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from icefloe import load_catalog
from icefloe.catalog import Catalog
from icefloe.catalog.rest.planner import RestPlanner
from icefloe.errors import NoSuchTableError
from icefloe.server.planning.pages import Part
from icefloe.server.planning.tokens_codec import plan_task_of, read_plan_id
from icefloe.server.settings import ServerSettings
from icefloe.table import Table
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.server.auth.whole_server import OPEN, SECRET, whole_server
from tests.server.running import Client, serving

PLAN, TASKS = "namespaces/ns/tables/t/plan", "namespaces/ns/tables/t/tasks"


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    folder = tmp_path_factory.mktemp("lake")
    uri = f"sqlite:///{folder}/lake.db"
    with serving({"lake": load_catalog("lake", type="sql", uri=uri, warehouse=str(folder))}) as running:
        running.done("POST", "namespaces", {"namespace": ["ns"]})
        running.create()
        yield running


@pytest.fixture
def rest(lake: Client) -> Iterator[Catalog]:
    catalog = load_catalog("rest", type="rest", uri=lake.url, **{"scan-planning-mode": "server"})
    yield catalog
    catalog.close()


def test_the_server_announces_it(lake: Client) -> None:
    announced = lake.http.get(f"{lake.url}/v1/config").json()["endpoints"]
    table = "/v1/{prefix}/namespaces/{namespace}/tables/{table}"
    for endpoint in (f"POST {table}/plan", f"GET {table}/plan/{{plan-id}}", f"DELETE {table}/plan/{{plan-id}}"):
        assert endpoint in announced
    assert f"POST {table}/tasks" in announced


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_a_client_has_its_scans_planned(lake: Client, rest: Catalog, version: int) -> None:
    table = rest.create_table(
        f"ns.rows{version}",
        "id BIGINT, region STRING, at TIMESTAMP, price DECIMAL(9, 2)",
        partition_spec=["region"],
        properties={"format-version": str(version), "write.delete.mode": "merge-on-read"},
    )
    assert isinstance(table.scan().planner, RestPlanner)
    assert table.scan().to_arrow().num_rows == 0
    for start in (0, 10):
        ids = list(range(start, start + 10))
        prices = pa.array([Decimal(number) for number in ids], pa.decimal128(9, 2))
        times = pa.array(ids, pa.timestamp("us"))
        table.append(pa.table({"id": ids, "region": ["eu", "us"] * 5, "at": times, "price": prices}))
    if allows(version, Feature.DELETE_FILES):
        table.delete("id = 4")
    local = load_catalog("rest", type="rest", uri=lake.url).load_table(table.name())
    assert local.scan().planner is None
    for text in ("", "id > 7", "region = 'us'", "at < TIMESTAMP '1970-01-01 00:00:00.000009'", "price in (3, 12.00)"):
        remote = table.scan(text)
        assert sorted(remote.to_arrow().column("id").to_pylist()) == sorted(
            local.scan(text).to_arrow().column("id").to_pylist()
        )
        assert remote.report is None
        assert remote.count() == local.scan(text).count()
    first = table.metadata.snapshots[0].snapshot_id
    assert table.scan(snapshot_id=first).count() == 10


def test_pages_and_plans_in_the_background(tmp_path: Path) -> None:
    lake = load_catalog("lake", type="sql", uri=f"sqlite:///{tmp_path}/lake.db", warehouse=str(tmp_path))
    lake.create_namespace("ns")
    table = lake.create_table("ns.t", "id BIGINT", properties={"write.delete.mode": "merge-on-read"})
    for number in range(6):
        table.append(pa.table({"id": [number, number + 10, number + 20]}))
    table.delete("id = 13")
    settings = ServerSettings(plan_page_files=2, plan_wait=timedelta(0))
    with serving({"lake": lake}, settings) as server:
        rest = load_catalog("rest", type="rest", uri=server.url, **{"scan-planning-mode": "server"})
        scan = rest.load_table("ns.t").scan("id < 25")
        assert sorted(scan.to_arrow().column("id").to_pylist()) == sorted(
            table.scan("id < 25").to_arrow().column("id").to_pylist()
        )
        counts = server.http.get(f"{server.url}/metrics").text
        assert re.search(r'requests_total\{operation="POST [^"]*/tasks",status="200"\} 3.0', counts)
        rest.close()


def test_a_table_that_goes_while_it_is_planned(lake: Client, rest: Catalog) -> None:
    table: Table = rest.create_table("ns.gone", "id BIGINT")
    table.append(pa.table({"id": [1]}))
    rest.drop_table("ns.gone")
    with pytest.raises(NoSuchTableError):
        list(table.scan().plan_files())


def test_a_plan_on_the_wire(lake: Client) -> None:
    plan = lake.done("POST", PLAN, {"filter": {"type": "lt", "term": "id", "value": 2}})
    assert plan["status"] == "completed"
    assert plan["file-scan-tasks"] == []
    assert lake.done("GET", f"{PLAN}/{plan['plan-id']}")["status"] == "completed"
    lake.done("DELETE", f"{PLAN}/{plan['plan-id']}")


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "java_type"),
    [
        ("POST", "namespaces/ns/tables/none/plan", {}, 404, "NoSuchTableException"),
        ("POST", "namespaces/none/tables/t/plan", {}, 404, "NoSuchTableException"),
        ("POST", "namespaces/ns/tables/none/tasks", {"plan-task": "x"}, 404, "NoSuchTableException"),
        ("GET", "namespaces/ns/tables/none/plan/x", None, 404, "NoSuchTableException"),
        ("GET", f"{PLAN}/x", None, 404, "NoSuchPlanIdException"),
        ("GET", f"{PLAN}/..%2f..%2fx", None, 404, "NoSuchPlanIdException"),
        ("DELETE", f"{PLAN}/x", None, 404, "NoSuchPlanIdException"),
        ("POST", TASKS, {"plan-task": "x"}, 404, "NoSuchPlanTaskException"),
        ("POST", TASKS, {}, 400, "IllegalArgumentException"),
        ("POST", PLAN, b"", 400, "IllegalArgumentException"),
        ("POST", PLAN, b"null", 400, "IllegalArgumentException"),
        ("POST", PLAN, {"filter": None}, 400, "IllegalArgumentException"),
        ("POST", PLAN, {"filter": "id > 5"}, 400, "IllegalArgumentException"),
        ("POST", PLAN, {"filter": {"type": "gt", "term": "id"}}, 400, "IllegalArgumentException"),
        ("POST", PLAN, {"filter": {"type": "gt", "term": "lost", "value": 1}}, 400, "ValidationException"),
        ("POST", PLAN, {"snapshot-id": 1}, 400, "ValidationException"),
        ("POST", PLAN, {"snapshot-id": 1, "start-snapshot-id": 2, "end-snapshot-id": 3}, 400, None),
        ("POST", PLAN, {"select": ["lost"]}, 400, "ValidationException"),
        ("POST", PLAN, b'{"filter":' + b'{"type":"not","child":' * 2000, 400, None),
        ("POST", PLAN, b'{"filter":' + b'{"type":"not","child":' * 900 + b"true" + b"}" * 901, 400, None),
        ("POST", PLAN, "\ufeff{}".encode(), 400, None),
    ],
)
def test_what_is_refused(lake: Client, method: str, path: str, body: Any, status: int, java_type: str | None) -> None:
    answer = lake.ask(method, path, body)
    assert answer.status_code == status, answer.text
    error = json.loads(answer.content)["error"]
    assert error["code"] == status
    assert java_type in (None, error["type"])


def test_a_plan_gives_no_rights(tmp_path: Path) -> None:
    with whole_server(tmp_path) as server:
        for namespace in (OPEN, SECRET):
            server.catalog.load_table((namespace, "t")).append(pa.table({"id": [1]}))
        secret, public = (f"/v1/lake/namespaces/{namespace}/tables/t" for namespace in (SECRET, OPEN))
        plan = server.ask("admin", "POST", f"{secret}/plan", {}).json
        assert len(plan["file-scan-tasks"]) == 1
        scan = read_plan_id(plan["plan-id"]).scan
        assert scan is not None
        task = {"plan-task": plan_task_of(scan, Part(0, 1))}
        assert len(server.ask("admin", "POST", f"{secret}/tasks", task).json["file-scan-tasks"]) == 1
        for who, path, status in (
            ("reader", secret, 404),
            ("reader", public, 404),
            ("nobody", secret, 404),
            (None, secret, 401),
        ):
            assert server.ask(who, "POST", f"{path}/tasks", task).status == status
            assert server.ask(who, "GET", f"{path}/plan/{plan['plan-id']}").status == status
        assert server.ask("reader", "POST", f"{public}/plan", {}).status == 200
        assert server.ask("reader", "POST", f"{secret}/plan", {}).status == 404
