"""Scans and commits as events of OpenLineage, by its own client: what they say, where they go, and that nothing fails of them."""

import json
import logging
import pickle
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from openlineage.client.naming import dataset as naming

import icefloe
from icefloe.catalog.lineage import reporter as lineage
from icefloe.catalog.lineage.datasets import dataset_name
from icefloe.errors import CommitFailed, InvalidPropertyError
from icefloe.table import Table
from tests.commit.tables import data_file, fail_at, new_table, timing

ROWS = pa.table({"id": [1, 2, 3], "tags": [["a"], [], None]})


def properties_of(file: Path, **others: str) -> dict[str, str]:
    return {
        "type": "sql",
        "uri": f"sqlite:///{file.parent / 'catalog.db'}",
        "warehouse": str(file.parent / "lake"),
        "metrics-reporter-impl": "openlineage",
        "openlineage.job-namespace": "tests",
        "openlineage.job-name": f"job-{uuid.uuid4()}",
        "openlineage.transport.type": "file",
        "openlineage.transport.log_file_path": str(file),
        "openlineage.transport.append": "true",
        **others,
    }


def sent(properties: dict[str, str]) -> None:
    """Wait until what is under way has left."""
    assert lineage._lineage_of(lineage.lineage_settings(properties))._queue.close()


def events_of(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def kinds_of(events: list[dict[str, Any]]) -> list[tuple[str, int, int]]:
    return [(event["eventType"], len(event["inputs"]), len(event["outputs"])) for event in events]


@pytest.mark.parametrize(
    ("location", "rule"),
    [
        ("s3://lake/shop/orders", naming.S3("lake", "shop/orders")),
        ("s3a://lake/shop/orders/", naming.S3("lake", "shop/orders")),
        ("gs://lake/shop/orders", naming.GCS("lake", "shop/orders")),
        ("abfss://c@acc.dfs.core.windows.net/shop/orders", naming.ABFSS("c", "acc", "/shop/orders")),
        ("wasbs://c@acc.dfs.core.windows.net/shop/orders", naming.WASBS("c", "acc", "shop/orders")),
        ("hdfs://name:8020/shop/orders", naming.HDFS("name", "8020", "/shop/orders")),
        ("file:///lake/shop/orders", naming.LocalFileSystem("/lake/shop/orders")),
        ("file:/lake/shop/orders", naming.LocalFileSystem("/lake/shop/orders")),
        ("/lake/shop/orders", naming.LocalFileSystem("/lake/shop/orders")),
    ],
)
def test_tables_are_named_by_the_rules_of_openlineage(location: str, rule: naming.DatasetNaming) -> None:
    assert dataset_name(location) == (rule.get_namespace(), rule.get_name())


def test_a_program_is_a_run_whose_inputs_are_scans_and_whose_outputs_are_commits(tmp_path: Path) -> None:
    file = tmp_path / "events"
    properties = properties_of(file)
    with icefloe.load_catalog("lake", **properties) as catalog:
        catalog.create_namespace("shop")
        orders = catalog.create_table("shop.orders", "id bigint NOT NULL COMMENT 'the key', tags array<string>")
        snapshot = orders.append(ROWS)
        assert orders.scan("id > 1", ("id",)).to_arrow().num_rows == 2
        changes = orders.scan_changes().to_arrow()
        assert changes.num_rows == 3
        sent(properties)
        lineage._lineage_of(lineage.lineage_settings(properties))._end(lineage.os.getpid())
    events = events_of(file)
    kinds = kinds_of(events)
    assert kinds[:3] == [("START", 0, 0), ("RUNNING", 0, 1), ("RUNNING", 1, 0)]
    # Changes are planned in several steps, each of which reports what it read.
    assert set(kinds[3:-1]) == {("RUNNING", 1, 0)}
    assert kinds[-1] == ("COMPLETE", 0, 0)
    assert len({event["run"]["runId"] for event in events}) == 1
    assert {(event["job"]["namespace"], event["job"]["name"]) for event in events} == {
        ("tests", properties["openlineage.job-name"])
    }
    written, read = events[1]["outputs"][0], events[2]["inputs"][0]
    assert snapshot is not None
    assert (written["namespace"], written["name"]) == (read["namespace"], read["name"])
    assert written["namespace"] == "file"
    assert written["name"] == str(orders.location()).removeprefix("file://")
    assert written["outputFacets"]["outputStatistics"]["rowCount"] == 3
    size = sum(orders.inspect.files().column("file_size_in_bytes").to_pylist())
    assert written["outputFacets"]["outputStatistics"]["size"] == size
    assert read["inputFacets"]["inputStatistics"]["size"] == size
    assert read["inputFacets"]["inputStatistics"]["fileCount"] == 1
    facets = read["facets"]
    assert facets["version"]["datasetVersion"] == str(snapshot.snapshot_id)
    assert facets["symlinks"]["identifiers"] == [
        {"namespace": properties["uri"], "name": "shop.orders", "type": "TABLE"}
    ]
    assert [(field["name"], field["type"]) for field in facets["schema"]["fields"]] == [
        ("id", "long"),
        ("tags", "array"),
    ]
    assert facets["schema"]["fields"][0]["description"] == "the key"
    assert facets["schema"]["fields"][1]["fields"][0]["name"] == "_element"


def test_each_operation_can_be_a_run_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "events"
    properties = properties_of(file, **{"openlineage.run": "operation", "openlineage.job-name": "etl"})
    with icefloe.load_catalog("lake", **properties) as catalog:
        catalog.create_namespace("shop")
        orders = catalog.create_table("shop.orders", "id bigint, tags array<string>")
        orders.append(ROWS)
        orders.set_properties({"a": "b"})
        sent(properties)
    events = events_of(file)
    assert [(event["eventType"], event["job"]["name"]) for event in events] == [
        ("START", "etl.append.lake.shop.orders"),
        ("COMPLETE", "etl.append.lake.shop.orders"),
        ("START", "etl.alter.lake.shop.orders"),
        ("COMPLETE", "etl.alter.lake.shop.orders"),
    ]
    assert events[0]["run"]["runId"] == events[1]["run"]["runId"] != events[2]["run"]["runId"]
    assert events[3]["outputs"][0]["facets"]["lifecycleStateChange"]["lifecycleStateChange"] == "ALTER"


def test_a_commit_that_did_not_happen_fails_its_run(tmp_path: Path) -> None:
    file = tmp_path / "events"
    properties = properties_of(file, **{"openlineage.run": "operation"})
    _, committer = new_table(2)
    committer.fault = fail_at("before swap", CommitFailed("no luck with s3://user:secret@lake"), 100)
    reporter = lineage.OpenLineageReporter("lake", properties)
    table = Table(("db", "t"), committer.load(), committer, timing=timing(), reporter=reporter)
    with pytest.raises(CommitFailed):
        table.update_snapshot().fast_append([data_file("memory://d/a", 10)])
    sent(properties)
    start, failed = events_of(file)
    assert (start["eventType"], failed["eventType"]) == ("START", "FAIL")
    assert "no luck" in failed["run"]["facets"]["errorMessage"]["message"]
    assert "secret" not in file.read_text()
    assert failed["outputs"] == []


PROGRAM = """
import icefloe, json, sys, threading
import pyarrow as pa
from icefloe.catalog.report_queue import ReportQueue

def work_late(queue, work=ReportQueue._work):
    threading.main_thread().join()
    work(queue)

if sys.argv[2] == "late":
    ReportQueue._work = work_late
catalog = icefloe.load_catalog("lake", **json.loads(sys.argv[1]))
catalog.create_namespace("shop")
catalog.create_table("shop.orders", "id bigint").append(pa.table({"id": [1]}))
raise SystemError("the program broke")
"""


@pytest.mark.parametrize("sending", ["at once", "late"])
def test_a_program_that_fails_is_a_run_that_fails_and_knows_its_parent(
    sending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if nothing has been sent when the program ends."""
    file, parent = tmp_path / "events", str(uuid.uuid4())
    monkeypatch.setenv("OPENLINEAGE_PARENT_ID", f"airflow/dag.task/{parent}")
    command = [sys.executable, "-c", PROGRAM, json.dumps(properties_of(file)), sending]
    ended = subprocess.run(command, stderr=subprocess.PIPE)
    assert ended.returncode == 1, ended.stderr
    events = events_of(file)
    assert kinds_of(events) == [("START", 0, 0), ("RUNNING", 0, 1), ("FAIL", 0, 0)]
    assert events[-1]["run"]["facets"]["errorMessage"]["message"] == "the program broke"
    assert events[0]["run"]["facets"]["parent"]["run"]["runId"] == parent
    assert events[0]["run"]["facets"]["parent"]["job"] == {"namespace": "airflow", "name": "dag.task", "facets": {}}


class Receiver(BaseHTTPRequestHandler):
    """Takes events as a service does, or refuses them."""

    status = 200
    bodies: ClassVar[list[tuple[str, str | None, dict[str, Any]]]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.bodies.append((self.path, self.headers.get("Authorization"), json.loads(body)))
        self.send_response(self.status)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def service() -> Iterator[HTTPServer]:
    Receiver.bodies, Receiver.status = [], 200
    with HTTPServer(("127.0.0.1", 0), Receiver) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def over_http(service: HTTPServer, folder: Path) -> dict[str, str]:
    given = {key: value for key, value in properties_of(folder / "x").items() if "transport" not in key}
    return given | {
        "openlineage.run": "operation",
        "openlineage.transport.type": "http",
        "openlineage.transport.url": f"http://127.0.0.1:{service.server_port}",
        "openlineage.transport.auth.type": "api_key",
        "openlineage.transport.auth.apiKey": "hidden",
        "openlineage.transport.retry.total": "0",
    }


def test_events_go_to_a_service(service: HTTPServer, tmp_path: Path) -> None:
    properties = over_http(service, tmp_path)
    with icefloe.load_catalog("lake", **properties) as catalog:
        catalog.create_namespace("shop")
        catalog.create_table("shop.orders", "id bigint, tags array<string>").append(ROWS)
        sent(properties)
    assert [(path, key) for path, key, _ in Receiver.bodies] == [("/api/v1/lineage", "Bearer hidden")] * 2
    assert Receiver.bodies[1][2]["outputs"][0]["outputFacets"]["outputStatistics"]["rowCount"] == 3


def test_a_service_that_refuses_disturbs_nothing(
    service: HTTPServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    Receiver.status = 500
    properties = over_http(service, tmp_path)
    with caplog.at_level(logging.WARNING, "icefloe.catalog"), icefloe.load_catalog("lake", **properties) as catalog:
        catalog.create_namespace("shop")
        orders = catalog.create_table("shop.orders", "id bigint, tags array<string>")
        orders.append(ROWS)
        assert orders.scan().to_arrow().num_rows == 3
        sent(properties)
    assert "a report of table lake.shop.orders was not sent" in caplog.text


def test_a_reporter_can_be_pickled(tmp_path: Path) -> None:
    properties = properties_of(tmp_path / "events")
    reporter = pickle.loads(pickle.dumps(lineage.OpenLineageReporter("lake", properties)))
    assert (reporter._catalog, reporter._properties) == ("lake", properties)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"openlineage.run": "thread"}, "'process' or 'operation'"),
        ({"openlineage.job": "x"}, "not an OpenLineage property"),
        ({"openlineage.transport.type": "no-such"}, "openlineage.transport"),
        ({"openlineage.transport.type.x": "y"}, "already has a value"),
    ],
)
def test_settings_that_cannot_be_are_refused(tmp_path: Path, given: dict[str, str], words: str) -> None:
    with (
        icefloe.load_catalog("lake", **properties_of(tmp_path / "events", **given)) as catalog,
        pytest.raises(InvalidPropertyError, match=words),
    ):
        _ = catalog.reporter


def test_a_file_of_the_working_directory_names_no_transport(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENLINEAGE_CONFIG", raising=False)
    (tmp_path / "openlineage.yml").write_text("transport: {type: evil.Transport}")
    with (
        icefloe.load_catalog("lake", **properties_of(tmp_path / "events")) as catalog,
        pytest.raises(InvalidPropertyError, match="OPENLINEAGE_CONFIG"),
    ):
        _ = catalog.reporter
