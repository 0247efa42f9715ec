"""Scan planning on the wire: requests, results and tasks come back as they were, and nonsense is refused."""

import json
import random
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, note, settings, strategies as st

from icefloe.errors import InvalidExpressionError, InvalidInputError, InvalidMetadataError, NoSuchColumnError
from icefloe.expressions import AlwaysTrue, EqualTo, GreaterThan, bind, expression_to_term_json
from icefloe.manifests import UNASSIGNED_SEQUENCE_NUMBER
from icefloe.planning import FileScanTask, TableScan
from icefloe.rest import Problem, plans_codec as plans
from icefloe.rest.plans_codec import PlanningResult, PlanStatus, PlanTableScanRequest, ScanTasks, StorageCredential
from icefloe.schema import StructType
from icefloe.versions import ALL_VERSIONS
from tests.planning.histories import histories, random_predicate
from tests.planning.tables import SyntheticTable
from tests.rest.test_content_files import PLAIN
from tests.strategies import FILTER_SCHEMA, expressions

IDS = st.none() | st.integers(-(2**63), 2**63 - 1)
NAMES = st.none() | st.lists(st.text(max_size=5), max_size=3).map(tuple)
CONTEXT = plans.TaskContext({0: StructType()}, FILTER_SCHEMA, AlwaysTrue())
TASK: dict[str, Any] = {"data-file": PLAIN, "residual-filter": True}
POSITIONS = {**PLAIN, "content": "position-deletes"}


def without_numbers(tasks: Iterable[FileScanTask]) -> list[FileScanTask]:
    """The tasks as the wire carries them: without sequence numbers."""
    return [task.replace(sequence_number=UNASSIGNED_SEQUENCE_NUMBER) for task in tasks]


def scan_tasks(*documents: dict[str, Any], **more: Any) -> ScanTasks:
    body = json.dumps({"file-scan-tasks": list(documents), **more}).encode()
    return plans.decode_scan_tasks(body, CONTEXT)


@st.composite
def requests(draw: st.DrawFn) -> PlanTableScanRequest:
    """Requests of all kinds."""
    snapshot_id = draw(IDS)
    is_range = snapshot_id is None and draw(st.booleans())
    try:
        row_filter = expression_to_term_json(bind(draw(expressions()), FILTER_SCHEMA))
    except InvalidExpressionError:
        row_filter = True
    return PlanTableScanRequest(
        snapshot_id,
        draw(st.integers(0, 9)) if is_range else None,
        draw(st.integers(0, 9)) if is_range else None,
        draw(NAMES),
        row_filter,
        draw(IDS),
        draw(st.booleans()),
        draw(st.booleans()),
        draw(NAMES),
    )


@settings(max_examples=50)
@given(requests())
def test_a_request_comes_back_as_it_was(request: PlanTableScanRequest) -> None:
    assert plans.decode_plan_request(plans.encode_plan_request(request)) == request


def test_what_a_request_leaves_out() -> None:
    assert plans.decode_plan_request(b"{}") == PlanTableScanRequest()
    assert plans.decode_plan_request(b'{"select": null, "case-sensitive": null}') == PlanTableScanRequest()
    assert json.loads(plans.encode_plan_request(PlanTableScanRequest())) == {
        "case-sensitive": True,
        "use-snapshot-schema": False,
    }


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ('{"filter": null}', "`filter` is null"),
        ('{"snapshot-id": 1, "start-snapshot-id": 2, "end-snapshot-id": 3}', "give `snapshot-id`, or both"),
        ('{"start-snapshot-id": 2}', "give `snapshot-id`, or both"),
        ('{"end-snapshot-id": 2}', "give `snapshot-id`, or both"),
        ('{"snapshot-id": "x"}', "`snapshot-id`"),
        ('{"select": "id"}', "`select`"),
        ("[]", "expected `object`"),
        ("{", "is not JSON"),
        ("", "is not JSON"),
        ('{"filter":' + "[" * 100_000, "nested too deeply|is not JSON"),
    ],
)
def test_requests_that_are_refused(body: str, problem: str) -> None:
    with pytest.raises(InvalidMetadataError, match=problem):
        plans.decode_plan_request(body.encode())


@pytest.mark.parametrize("version", ALL_VERSIONS)
@settings(max_examples=8)
@given(data=st.data())
def test_tasks_of_any_table_come_back_as_they_were(version: int, data: st.DataObject) -> None:
    table: SyntheticTable = data.draw(histories(version)).table
    predicate = random_predicate(random.Random(data.draw(st.integers(0, 2**32))), table.schema)
    note(str(predicate))
    scan = TableScan(table.metadata, table.storage, predicate, options={"planning.workers": "1"})
    scan = scan.with_metrics() if data.draw(st.booleans()) else scan
    try:
        expression_to_term_json(scan.bound_filter)
    except InvalidExpressionError:
        # JSON has no infinities.
        return
    context = plans.task_context(table.metadata, scan.schema, scan.bound_filter)
    tasks = ScanTasks(tuple(without_numbers(scan.plan_files())), tuple(data.draw(st.lists(st.text(), max_size=2))))
    body = plans.encode_scan_tasks(tasks, context)
    assert repr(plans.decode_scan_tasks(body, context)) == repr(tasks)
    deletes = json.loads(body).get("delete-files", [])
    assert len({(each["file-path"], each.get("content-offset")) for each in deletes}) == len(deletes)
    result = PlanningResult(PlanStatus.COMPLETED, "7", tasks, (StorageCredential("s3://b", {"k": "v"}),))
    assert repr(plans.decode_planning_result(plans.encode_planning_result(result, context), context)) == repr(result)


@pytest.mark.parametrize("status", [PlanStatus.SUBMITTED, PlanStatus.CANCELLED, PlanStatus.FAILED])
def test_only_completed_plans_have_tasks(status: PlanStatus) -> None:
    error = Problem(500, "X", "no") if status is PlanStatus.FAILED else None
    result = PlanningResult(status, "a-plan", error=error)
    body = plans.encode_planning_result(result, CONTEXT)
    assert "file-scan-tasks" not in json.loads(body)
    assert plans.decode_planning_result(body, CONTEXT) == result


def test_credentials_are_not_shown() -> None:
    assert "hunter2" not in repr(StorageCredential("s3://b", {"s3.secret-access-key": "hunter2"}))


def test_what_a_task_leaves_out() -> None:
    context = plans.TaskContext({0: StructType()}, FILTER_SCHEMA, bind(EqualTo("id", 5), FILTER_SCHEMA))
    body = json.dumps({"file-scan-tasks": [{"data-file": PLAIN}, TASK], "plan-tasks": None}).encode()
    whole, told = plans.decode_scan_tasks(body, context).file_scan_tasks
    assert whole.residual == context.row_filter
    assert told.residual == AlwaysTrue()
    assert whole.deletes == ()
    vector = {**POSITIONS, "file-format": "puffin", "content-offset": 4, "content-size-in-bytes": 9}
    tasks = scan_tasks({**TASK, "delete-file-references": [0]}, **{"delete-files": [vector]})
    [task] = tasks.file_scan_tasks
    assert task.deletion_vector is not None
    assert task.deletion_vector.referenced_data_file == PLAIN["file-path"]
    other = {**vector, "referenced-data-file": "s3://bucket/other.parquet"}
    with pytest.raises(
        InvalidMetadataError, match=r"the deletion vector of s3://bucket/other.parquet to s3://bucket/a"
    ):
        scan_tasks({**TASK, "delete-file-references": [0]}, **{"delete-files": [other]})


def test_a_residual_may_have_the_newer_form() -> None:
    newer = {"type": "gt", "left": {"type": "reference", "id": 3}, "right": 5}
    [task] = scan_tasks({**TASK, "residual-filter": newer}).file_scan_tasks
    assert task.residual == bind(GreaterThan("id", 5), FILTER_SCHEMA)


@pytest.mark.parametrize(
    ("change", "more", "problem"),
    [
        ({"data-file": POSITIONS}, {}, "is a delete file"),
        ({"data-file": None}, {}, "data-file"),
        ({}, {"delete-files": [PLAIN]}, "a data file among `delete-files`"),
        ({"delete-file-references": [0]}, {}, "`delete-files` has 0 files"),
        ({"delete-file-references": [-1]}, {"delete-files": [POSITIONS]}, "`delete-files` has 1 files"),
        ({"residual-filter": None}, {}, "is not a predicate"),
        ({"residual-filter": {"type": "eq", "term": "lost", "value": 1}}, {}, "lost"),
        ({"residual-filter": {"type": "sounds-like", "term": "id", "value": 1}}, {}, "sounds-like"),
    ],
)
def test_tasks_that_are_refused(change: dict[str, Any], more: dict[str, Any], problem: str) -> None:
    with pytest.raises((InvalidInputError, NoSuchColumnError), match=problem):
        scan_tasks({**TASK, **change}, **more)


def test_a_status_must_be_known() -> None:
    with pytest.raises(InvalidMetadataError, match="`status` is 'done'; it must be one of completed"):
        plans.decode_planning_result(b'{"status": "done"}', CONTEXT)
    with pytest.raises(InvalidMetadataError, match="`status` is ''"):
        plans.decode_planning_result(b"{}", CONTEXT)


@pytest.mark.parametrize("body", [b"{}", b'{"plan-task": 5}', b"[]", b"null"])
def test_a_plan_task_is_a_text(body: bytes) -> None:
    assert plans.decode_plan_task(plans.encode_plan_task("a b")) == "a b"
    with pytest.raises(InvalidMetadataError):
        plans.decode_plan_task(body)
