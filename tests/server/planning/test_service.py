"""The planning service: what requests mean, pages, plans in the background, cancelled ones, and texts of others."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from icefloe.errors import (
    IcefloeError,
    InvalidInputError,
    NoSuchColumnError,
    NoSuchPlanError,
    NoSuchPlanTaskError,
    NoSuchSnapshotError,
    ServiceUnavailableError,
)
from icefloe.manifests import ManifestContent, encode_manifest_list
from icefloe.metadata import apply_all, updates as up
from icefloe.partitioning import parse_partition_spec
from icefloe.rest import PlanTableScanRequest, decode_plan_request
from icefloe.schema import NestedField, Schema
from icefloe.schema.types import LongType, StringType
from icefloe.server.planning import PlannedTable, PlanningService, PlanningSettings
from icefloe.server.planning.pages import Part
from icefloe.server.planning.tokens_codec import read_plan_task
from icefloe.storage import Storage
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.planning.tables import SyntheticTable

SCHEMA = Schema(NestedField(1, "id", LongType(), required=True), NestedField(2, "region", StringType()))
RENAMED = Schema(NestedField(1, "number", LongType(), required=True), NestedField(2, "region", StringType()))
BY_REGION = parse_partition_spec(["region"], SCHEMA)


def row(number: int, region: str = "eu") -> dict[int, Any]:
    return {1: number, 2: region}


def request(**fields: Any) -> PlanTableScanRequest:
    return decode_plan_request(json.dumps({key.replace("_", "-"): value for key, value in fields.items()}).encode())


class Client:
    """Asks a service, and follows plan tasks."""

    def __init__(self, service: PlanningService, table: SyntheticTable, storage: Storage | None = None) -> None:
        self.service = service
        self.table = PlannedTable(table.metadata, storage or table.storage)
        self.answers: list[dict[str, Any]] = []

    def plan(self, **fields: Any) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self.service.plan(self.table, request(**fields)))
        return answer

    def fetch(self, plan_id: str) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self.service.fetch(self.table, plan_id))
        return answer

    def files(self, **fields: Any) -> list[str]:
        """The paths of all files of a plan, in the order of its pages."""
        self.answers = [self.plan(**fields)]
        waiting = list(self.answers[0].get("plan-tasks", []))
        found = paths(self.answers[0])
        while waiting:
            answer = json.loads(self.service.tasks(self.table, waiting.pop(0)))
            self.answers.append(answer)
            waiting[:0] = answer.get("plan-tasks", [])
            found += paths(answer)
        return found


def paths(answer: dict[str, Any]) -> list[str]:
    return [task["data-file"]["file-path"] for task in answer["file-scan-tasks"]]


@pytest.fixture
def serve() -> Iterator[Callable[..., PlanningService]]:
    """Makes services with other settings."""
    made: list[PlanningService] = []

    def make(**settings: Any) -> PlanningService:
        made.append(PlanningService(PlanningSettings(**settings)))
        return made[-1]

    yield make
    for service in made:
        service.close()


@pytest.fixture
def service(serve: Callable[..., PlanningService]) -> PlanningService:
    return serve()


# -- what requests mean


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_a_small_plan_is_answered_at_once(version: int, service: PlanningService) -> None:
    table = SyntheticTable(SCHEMA, version, BY_REGION)
    eu, us = table.data([row(1)]), table.data([row(5, "us"), row(7, "us")])
    table.add(eu, us)
    answer = Client(service, table).plan(filter={"type": "gt", "term": "id", "value": 6})
    assert answer["status"] == "completed"
    assert answer["plan-id"]
    [task] = answer["file-scan-tasks"]
    assert task["data-file"]["file-path"] == us.file_path
    assert task["data-file"]["partition"] == ["us"]
    assert task["residual-filter"] == {"type": "gt", "term": "id", "value": 6}
    assert "value-counts" not in task["data-file"]
    assert "delete-files" not in answer
    assert "plan-tasks" not in answer
    [task] = Client(service, table).plan(filter={"type": "eq", "term": "region", "value": "us"})["file-scan-tasks"]
    assert task["residual-filter"] is True


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_deletes_are_told_once(version: int, service: PlanningService) -> None:
    table = SyntheticTable(SCHEMA, version)
    files = [table.data([row(1), row(2)]) for _ in range(3)]
    table.add(*files)
    if not allows(version, Feature.DELETE_FILES):
        return
    table.add(table.equality((1,), [(1,)], 0), operation="delete")
    if allows(version, Feature.DELETION_VECTORS):
        vector = table.vector(files[0], [0])
        # Vectors of several files are in one Puffin file.
        other = replace(table.vector(files[1], [0]), file_path=vector.file_path, content_offset=99)
        table.add(vector, other, operation="delete")
    answer = Client(service, table).plan()
    expected = 3 if allows(version, Feature.DELETION_VECTORS) else 1
    assert len(answer["delete-files"]) == expected
    used = [task["delete-file-references"] for task in answer["file-scan-tasks"]]
    assert {number for numbers in used for number in numbers} == set(range(expected))


def test_snapshots_and_their_schemas(service: PlanningService) -> None:
    table = SyntheticTable(SCHEMA, 2)
    first = table.add(table.data([row(1)]))
    table.add(table.data([row(2)]))
    table.evolve_schema(RENAMED)
    client = Client(service, table)
    assert len(client.files()) == 2
    assert len(client.files(snapshot_id=first)) == 1
    old, new = ({"type": "gt", "term": name, "value": 0} for name in ("id", "number"))
    assert len(client.files(snapshot_id=first, use_snapshot_schema=True, filter=old, select=["id"])) == 1
    assert len(client.files(snapshot_id=first, filter=new, select=["number", "_file", "_partition.region"])) == 1
    for wrong in ({"filter": old}, {"select": ["id"]}, {"stats_fields": ["id"]}, {"snapshot_id": first, "filter": old}):
        with pytest.raises(NoSuchColumnError, match="id"):
            client.plan(**wrong)
    with pytest.raises(NoSuchSnapshotError):
        client.plan(snapshot_id=1)
    with pytest.raises(NoSuchColumnError):
        client.plan(filter={"type": "is-null", "term": "REGION"})
    assert len(client.files(filter={"type": "not-null", "term": "REGION"}, case_sensitive=False)) == 2


def test_a_table_without_snapshots_has_no_files(service: PlanningService) -> None:
    client = Client(service, SyntheticTable(SCHEMA, 2))
    assert client.plan(filter=True)["file-scan-tasks"] == []
    with pytest.raises(InvalidInputError):
        client.plan(filter={"type": "gt", "term": "id", "value": "x"})


def test_what_was_appended_after_a_snapshot(service: PlanningService) -> None:
    table = SyntheticTable(SCHEMA, 2)
    files = [table.data([row(number)]) for number in range(4)]
    ids = [table.add(file) for file in files]
    table.add(table.equality((1,), [(2,)], 0), operation="delete")
    client = Client(service, table)
    answer = client.plan(start_snapshot_id=ids[0], end_snapshot_id=ids[2])
    assert sorted(paths(answer)) == [files[1].file_path, files[2].file_path]
    assert "delete-files" not in answer
    assert client.files(start_snapshot_id=ids[3], end_snapshot_id=ids[3]) == []
    with pytest.raises(IcefloeError, match="not an ancestor"):
        client.plan(start_snapshot_id=ids[2], end_snapshot_id=ids[0])


def test_what_was_appended_in_pages(serve: Callable[..., PlanningService]) -> None:
    table = SyntheticTable(SCHEMA, 3)
    first = table.add(table.data([row(0)]))
    files = [[table.data([row(number)]) for number in range(3)] for _ in range(3)]
    last = [table.add(*some) for some in files][-1]
    table.add(table.data([row(9)]))
    for page_files in (1, 2, 4):
        client = Client(serve(page_files=page_files), table)
        found = client.files(start_snapshot_id=first, end_snapshot_id=last)
        assert sorted(found) == sorted(file.file_path for some in files for file in some)
        assert len(client.answers) > 2


def test_metrics_of_chosen_columns(service: PlanningService) -> None:
    table = SyntheticTable(SCHEMA, 2)
    table.add(table.data([row(1)]))
    [task] = Client(service, table).plan(stats_fields=["region"])["file-scan-tasks"]
    assert task["data-file"]["value-counts"] == {"keys": [2], "values": [1]}
    assert task["data-file"]["lower-bounds"] == {"keys": [2], "values": [b"eu".hex().upper()]}


def test_as_many_rows_as_are_enough(serve: Callable[..., PlanningService]) -> None:
    table = SyntheticTable(SCHEMA, 2)
    for _ in range(4):
        table.add(*(table.data([row(1), row(2)]) for _ in range(3)))
    client = Client(serve(page_files=5), table)
    assert len(client.files(min_rows_requested=3)) == 2
    assert len(client.files(min_rows_requested=0)) == 0
    # More files than a page holds: the hint is of no use then.
    assert len(client.files(min_rows_requested=100)) == 12
    with pytest.raises(InvalidInputError, match="-1 rows are requested"):
        client.plan(min_rows_requested=-1)


# -- pages


@pytest.mark.parametrize("page_files", [1, 2, 3, 7, 100])
@pytest.mark.parametrize("most_parts", [1, 2, 100])
@pytest.mark.parametrize("counted", [True, False])
def test_pages_together_are_the_plan(
    page_files: int, most_parts: int, counted: bool, serve: Callable[..., PlanningService]
) -> None:
    table = SyntheticTable(SCHEMA, 2 if counted else 1)
    for size in (1, 5, 2, 2, 7):
        table.add(*(table.data([row(number)]) for number in range(size)))
    if not counted:
        # Manifest lists of old tables do not say how many files there are.
        unknown = [replace(each, added_files_count=None, existing_files_count=None) for each in table.manifests]
        snapshot = table.metadata.current_snapshot()
        assert snapshot is not None
        data = encode_manifest_list(unknown, 1, snapshot_id=snapshot.snapshot_id, parent_snapshot_id=None).data
        location = f"{snapshot.manifest_list}.old"
        table.storage.write(location, data)
        table.metadata = table.metadata.evolve(snapshots=(replace(snapshot, manifest_list=location),))
    client = Client(serve(page_files=page_files, most_parts=most_parts), table)
    found = client.files()
    assert sorted(found) == sorted(each.data_file.file_path for each in table.live())
    assert len(found) == 17
    for answer in client.answers:
        assert len(paths(answer)) <= page_files
        assert len(answer.get("plan-tasks", [])) <= most_parts + 1
    if page_files == 100 and counted:
        assert len(client.answers) == 1


def test_manifests_that_the_filter_rules_out_make_no_pages(serve: Callable[..., PlanningService]) -> None:
    table = SyntheticTable(SCHEMA, 2, BY_REGION)
    for region in ("a", "b", "c", "b"):
        table.add(*(table.data([row(number, region)]) for number in range(3)))
    client = Client(serve(page_files=3), table)
    assert len(client.files(filter={"type": "eq", "term": "region", "value": "b"})) == 6
    assert len(client.answers[0]["plan-tasks"]) == 2
    assert all(paths(answer) for answer in client.answers[1:])


def test_long_filters_make_fewer_parts(serve: Callable[..., PlanningService], monkeypatch: pytest.MonkeyPatch) -> None:
    table = SyntheticTable(SCHEMA, 2)
    for number in range(8):
        table.add(table.data([row(number)]))
    monkeypatch.setattr("icefloe.server.planning.service._LONGEST_PART_LIST", 3000)
    client = Client(serve(page_files=1), table)
    wanted = {"type": "in", "term": "id", "values": [number * 7919 % 100_003 for number in range(300)] + list(range(8))}
    assert len(client.files(filter=wanted)) == 8
    assert len(client.answers[0]["plan-tasks"]) <= 3


def test_pages_share_the_deletes_of_their_scan(serve: Callable[..., PlanningService]) -> None:
    table = SyntheticTable(SCHEMA, 2)
    for number in range(3):
        table.add(table.data([row(number)]))
    table.add(table.equality((1,), [(2,)], 0), operation="delete")
    client = Client(serve(page_files=1), table)
    first, *others = client.plan()["plan-tasks"]
    client.service.tasks(client.table, first)
    client.service._cache.clear()
    table.storage.delete([each.manifest_path for each in table.manifests if each.content is ManifestContent.DELETES])
    answers = [json.loads(client.service.tasks(client.table, task)) for task in others]
    assert sum(len(answer.get("delete-files", [])) for answer in answers) <= 1
    with pytest.raises(IcefloeError):
        client.files(filter={"type": "lt", "term": "id", "value": 9})


def test_any_replica_serves_a_part(serve: Callable[..., PlanningService]) -> None:
    table = SyntheticTable(SCHEMA, 2)
    for number in range(3):
        table.add(table.data([row(number), row(number + 10)]))
    one, other = (Client(serve(page_files=1), table) for _ in range(2))
    tasks = one.plan()["plan-tasks"]
    table.add(table.data([row(9)]))
    table.evolve_schema(RENAMED)
    newer = Client(other.service, table)
    found = [path for task in tasks for path in paths(json.loads(newer.service.tasks(newer.table, task)))]
    assert len(set(found)) == 3
    # The names of columns are those of the plan.
    plan_task = one.plan(filter={"type": "eq", "term": "id", "value": 0})["plan-tasks"][-1]
    body = json.loads(newer.service.tasks(newer.table, plan_task))
    assert [task["residual-filter"] for task in body["file-scan-tasks"]] == [{"type": "eq", "term": "id", "value": 0}]


def test_texts_of_others_are_no_plan_tasks(serve: Callable[..., PlanningService]) -> None:
    table, other = SyntheticTable(SCHEMA, 2), SyntheticTable(SCHEMA, 2)
    for number in range(3):
        table.add(table.data([row(number)]))
        other.add(other.data([row(number)]))
    client = Client(serve(page_files=1), table)
    answer = client.plan()
    task = answer["plan-tasks"][0]
    assert read_plan_task(task)[1] == Part(0, 1)
    for text in (
        "",
        "x",
        "ä",
        task[:-2],
        task + "AAAA",
        "A" + task[1:],
        answer["plan-id"],
        "A" * 5_000_000,
        "====",
        "AAAA" * 9,
    ):
        with pytest.raises(NoSuchPlanTaskError, match="there is no plan task"):
            client.service.tasks(client.table, text)
    with pytest.raises(NoSuchPlanTaskError):
        client.service.tasks(PlannedTable(other.metadata, other.storage), task)
    for text in ("", "x", task, answer["plan-id"][:-3], "A" * 2000):
        with pytest.raises(NoSuchPlanError):
            client.service.fetch(client.table, text)
        with pytest.raises(NoSuchPlanError):
            client.service.cancel(client.table, text)
    with pytest.raises(NoSuchPlanError, match="of this table"):
        client.service.fetch(PlannedTable(other.metadata, other.storage), answer["plan-id"])
    current = table.metadata.current_snapshot_id or 0
    table.add(table.data([row(9)]))
    gone = apply_all(table.metadata, [up.RemoveSnapshotsUpdate((current,))], 9)
    with pytest.raises(NoSuchPlanTaskError):
        client.service.tasks(PlannedTable(gone, table.storage), task)


# -- plans in the background


class SlowStorage(Storage):
    """Reads nothing until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.go = threading.Event()
        self.reads = 0

    def read(self, location: str) -> bytes:
        self.reads += 1
        assert self.go.wait(30)
        return super().read(location)


def until(done: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not done():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.fixture
def slow() -> Iterator[SlowStorage]:
    storage = SlowStorage()
    yield storage
    storage.go.set()


@pytest.fixture
def one_file() -> SyntheticTable:
    table = SyntheticTable(SCHEMA, 2)
    table.add(table.data([row(1)]))
    return table


def test_a_slow_plan_goes_on_in_the_background(
    serve: Callable[..., PlanningService], slow: SlowStorage, one_file: SyntheticTable
) -> None:
    client = Client(serve(wait_seconds=0.01), one_file, slow)
    answer = client.plan()
    assert set(answer) == {"status", "plan-id"}
    assert answer["status"] == "submitted"
    assert client.fetch(answer["plan-id"]) == {"status": "submitted"}
    slow.go.set()
    until(lambda: client.fetch(answer["plan-id"])["status"] == "completed")
    for _ in range(2):
        fetched = client.fetch(answer["plan-id"])
        assert len(paths(fetched)) == 1
        assert "plan-id" not in fetched
    # Another replica plans it again.
    assert len(paths(Client(serve(), one_file).fetch(answer["plan-id"]))) == 1


def test_a_plan_can_be_cancelled(
    serve: Callable[..., PlanningService], slow: SlowStorage, one_file: SyntheticTable
) -> None:
    client = Client(serve(wait_seconds=0.01, workers=1), one_file, slow)
    running, queued = (client.plan()["plan-id"] for _ in range(2))
    for plan_id in (running, queued):
        client.service.cancel(client.table, plan_id)
        assert client.fetch(plan_id) == {"status": "cancelled"}
    slow.go.set()
    assert client.fetch(running) == {"status": "cancelled"}
    done = Client(serve(), one_file)
    done.service.cancel(done.table, done.plan()["plan-id"])


def test_a_plan_that_fails_in_the_background(serve: Callable[..., PlanningService], slow: SlowStorage) -> None:
    table = SyntheticTable(SCHEMA, 2)
    table.add(table.data([row(1)]))
    table.storage.delete([table.manifests[0].manifest_path])
    client = Client(serve(wait_seconds=0.01), table, slow)
    plan_id = client.plan()["plan-id"]
    slow.go.set()
    until(lambda: client.fetch(plan_id)["status"] == "failed")
    answer = client.fetch(plan_id)
    assert set(answer) == {"status", "error"}
    assert answer["error"]["code"] == 404
    with pytest.raises(IcefloeError):
        Client(serve(), table).plan()


def test_few_plans_are_under_way(
    serve: Callable[..., PlanningService], slow: SlowStorage, one_file: SyntheticTable
) -> None:
    client = Client(serve(wait_seconds=0.01, most_plans=2), one_file, slow)
    first, second = client.plan()["plan-id"], client.plan()["plan-id"]
    with pytest.raises(ServiceUnavailableError, match="2 plans are under way"):
        client.plan()
    slow.go.set()
    until(lambda: all(client.fetch(plan_id)["status"] == "completed" for plan_id in (first, second)))
    # Those that are done make room, and can be fetched all the same.
    until(lambda: client.plan()["status"] == "completed")
    until(lambda: client.fetch(first)["status"] == "completed")


def test_a_plan_is_not_kept_for_ever(
    serve: Callable[..., PlanningService], slow: SlowStorage, one_file: SyntheticTable
) -> None:
    client = Client(serve(wait_seconds=0.01, keep_seconds=0.0, most_plans=2), one_file, slow)
    plans = [client.plan()["status"] for _ in range(4)]
    assert plans == ["submitted"] * 4


def test_a_plan_whose_id_would_be_too_long_is_waited_for(
    serve: Callable[..., PlanningService], slow: SlowStorage, one_file: SyntheticTable
) -> None:
    client = Client(serve(wait_seconds=0.01), one_file, slow)
    wanted = {"type": "in", "term": "id", "values": [number * 7919 % 100_003 for number in range(2000)]}
    threading.Timer(0.3, slow.go.set).start()
    answer = client.plan(filter=wanted)
    assert answer["status"] == "completed"
    assert len(answer["plan-id"]) < 500
    client.service.cancel(client.table, answer["plan-id"])
    with pytest.raises(NoSuchPlanError):
        client.fetch(answer["plan-id"])
