"""The bodies of scan planning over REST, both ways: what is to be planned, how far a plan is, and its tasks.

Filters are written in the older, term-based form, the only one that the Java library has; both are read. A file scan task
names its delete files by their places in a list beside it, in which each of them is once: a deletion vector by its file and
its place in there.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import msgspec

from icefloe.errors import InvalidInputError, InvalidMetadataError
from icefloe.expressions import Expression, bind, expression_from_json, expression_to_term_json
from icefloe.manifests import UNASSIGNED_SEQUENCE_NUMBER, DataFile, FileContent
from icefloe.metadata import TableMetadata
from icefloe.metadata.wire_codec import Int, Long, WireStruct, present, read_wire
from icefloe.planning import FileScanTask
from icefloe.rest.config_codec import SCAN_PLANNING_MODE
from icefloe.rest.content_files_codec import (
    ContentFileWire,
    PartitionTypes,
    content_file_from_wire,
    content_file_to_json,
    partition_types,
)
from icefloe.rest.errors_codec import ErrorWire, Problem, error_to_json, problem_from_wire
from icefloe.rest.tables_codec import CredentialWire, StorageCredential, credentials_from_wires, credentials_to_json
from icefloe.schema import JSON, Schema
from icefloe.storage import identity

POLL_TIMEOUT_MS = "rest-scan-planning.poll-timeout-ms"
POLL_RETRIES = "rest-scan-planning.poll-num-retries"


class PlanMode(StrEnum):
    """Who plans the scans of a table."""

    CLIENT = "client"
    SERVER = "server"


class PlanStatus(StrEnum):
    """How far a plan is."""

    COMPLETED = "completed"
    SUBMITTED = "submitted"
    CANCELLED = "cancelled"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class PlanTableScanRequest:
    """Which scan is to be planned: of one snapshot, or of what was appended after one and up to another."""

    snapshot_id: int | None = None
    start_snapshot_id: int | None = None
    """Exclusive."""
    end_snapshot_id: int | None = None
    """Inclusive."""
    select: tuple[str, ...] | None = None
    filter: object = True
    """The predicate as JSON: what its constants mean is up to the schema."""
    min_rows_requested: int | None = None
    case_sensitive: bool = True
    use_snapshot_schema: bool = False
    stats_fields: tuple[str, ...] | None = None

    @property
    def is_incremental(self) -> bool:
        """Whether it is about a range of snapshots."""
        return self.start_snapshot_id is not None or self.end_snapshot_id is not None


@dataclass(frozen=True, slots=True)
class ScanTasks:
    """Some tasks of a plan: files to read, and opaque texts that stand for further ones."""

    file_scan_tasks: tuple[FileScanTask, ...] = ()
    plan_tasks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PlanningResult:
    """What a server says of a plan."""

    status: PlanStatus
    plan_id: str | None = None
    tasks: ScanTasks = ScanTasks()
    """None unless it is completed."""
    credentials: tuple[StorageCredential, ...] = ()
    error: Problem | None = None
    """Why it failed."""


@dataclass(frozen=True, slots=True)
class TaskContext:
    """What is needed to read tasks, or to write them: the table's partitions, the schema and filter of the scan."""

    partitions: PartitionTypes
    schema: Schema
    row_filter: Expression
    """Bound to the schema; it counts for tasks that come without a residual."""
    case_sensitive: bool = True


def task_context(
    metadata: TableMetadata, schema: Schema, row_filter: Expression, case_sensitive: bool = True
) -> TaskContext:
    """The context of a scan with this schema and bound filter."""
    return TaskContext(partition_types(metadata, schema), schema, row_filter, case_sensitive)


# -- requests


class _RequestWire(WireStruct):
    snapshot_id: Long | None = None
    start_snapshot_id: Long | None = None
    end_snapshot_id: Long | None = None
    select: list[str] | None = None
    filter: Any = msgspec.UNSET
    min_rows_requested: Long | None = None
    case_sensitive: bool | None = None
    use_snapshot_schema: bool | None = None
    stats_fields: list[str] | None = None


class _PlanTaskWire(WireStruct):
    plan_task: str


def encode_plan_request(request: PlanTableScanRequest) -> bytes:
    """The body of a request to plan a scan."""
    return msgspec.json.encode(
        {
            **present("snapshot-id", request.snapshot_id),
            **present("start-snapshot-id", request.start_snapshot_id),
            **present("end-snapshot-id", request.end_snapshot_id),
            **present("select", request.select),
            **({} if request.filter is True else {"filter": request.filter}),
            "case-sensitive": request.case_sensitive,
            "use-snapshot-schema": request.use_snapshot_schema,
            **present("stats-fields", request.stats_fields),
            **present("min-rows-requested", request.min_rows_requested),
        }
    )


def decode_plan_request(body: bytes) -> PlanTableScanRequest:
    """What such a body says; a filter of null is an error, so that no scan becomes wider than it was meant to be."""
    wire = read_wire(body, _RequestWire, "the scan to be planned")
    if wire.filter is None:
        raise InvalidMetadataError("the scan to be planned: `filter` is null; leave it out, or give a predicate")
    is_range = wire.start_snapshot_id is not None and wire.end_snapshot_id is not None
    is_part_of_range = wire.start_snapshot_id is not None or wire.end_snapshot_id is not None
    if is_part_of_range and (not is_range or wire.snapshot_id is not None):
        raise InvalidMetadataError(
            "the scan to be planned: give `snapshot-id`, or both `start-snapshot-id` and `end-snapshot-id`, or none of them"
        )
    return PlanTableScanRequest(
        wire.snapshot_id,
        wire.start_snapshot_id,
        wire.end_snapshot_id,
        None if wire.select is None else tuple(wire.select),
        True if wire.filter is msgspec.UNSET else wire.filter,
        wire.min_rows_requested,
        True if wire.case_sensitive is None else wire.case_sensitive,
        bool(wire.use_snapshot_schema),
        None if wire.stats_fields is None else tuple(wire.stats_fields),
    )


def encode_plan_task(plan_task: str) -> bytes:
    """The body of a request for the tasks behind a plan task."""
    return msgspec.json.encode({"plan-task": plan_task})


def decode_plan_task(body: bytes) -> str:
    """What such a body says."""
    return read_wire(body, _PlanTaskWire, "the request for scan tasks").plan_task


# -- results


class _TaskWire(WireStruct):
    data_file: ContentFileWire
    delete_file_references: list[Int] | None = None
    residual_filter: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class _TasksWire(WireStruct):
    plan_tasks: list[str] | None = None
    file_scan_tasks: list[_TaskWire] | None = None
    delete_files: list[ContentFileWire] | None = None


class _ResultWire(_TasksWire):
    status: str = ""
    plan_id: str | None = None
    storage_credentials: list[CredentialWire] | None = None
    error: ErrorWire | None = None


def encode_planning_result(result: PlanningResult, context: TaskContext) -> bytes:
    """The body of the answer to a request to plan a scan, or to fetch a plan."""
    return encode_result_of(result, encode_scan_tasks(result.tasks, context))


def encode_result_of(result: PlanningResult, tasks: bytes) -> bytes:
    """The same, with tasks that were encoded before."""
    document: JSON = {"status": result.status.value, **present("plan-id", result.plan_id)}
    if result.error is not None:
        document["error"] = error_to_json(result.error)
    if result.credentials:
        document["storage-credentials"] = credentials_to_json(result.credentials)
    body = msgspec.json.encode(document)
    return body[:-1] + b"," + tasks[1:] if result.status is PlanStatus.COMPLETED else body


def decode_planning_result(body: bytes, context: TaskContext) -> PlanningResult:
    """What such a body says."""
    what = "the plan of a scan"
    wire = read_wire(body, _ResultWire, what)
    try:
        status = PlanStatus(wire.status.lower())
    except ValueError:
        raise InvalidMetadataError(
            f"{what}: `status` is {wire.status!r:.100}; it must be one of {', '.join(PlanStatus)}"
        ) from None
    return PlanningResult(
        status,
        wire.plan_id,
        _tasks_from_wire(wire, context, what) if status is PlanStatus.COMPLETED else ScanTasks(),
        credentials_from_wires(wire.storage_credentials or ()),
        None if wire.error is None else problem_from_wire(wire.error),
    )


def encode_scan_tasks(tasks: ScanTasks, context: TaskContext) -> bytes:
    """The body of the answer to a request for the tasks behind a plan task."""
    return msgspec.json.encode(_tasks_to_json(tasks, context))


def decode_scan_tasks(body: bytes, context: TaskContext) -> ScanTasks:
    """What such a body says."""
    what = "the tasks of a scan"
    return _tasks_from_wire(read_wire(body, _TasksWire, what), context, what)


def _tasks_to_json(tasks: ScanTasks, context: TaskContext) -> JSON:
    delete_files: dict[tuple[str, int | None], tuple[int, DataFile]] = {}
    residuals: dict[int, object] = {}
    documents = []
    for task in tasks.file_scan_tasks:
        document: JSON = {"data-file": content_file_to_json(task.file, context.partitions)}
        references = [delete_files.setdefault(_name(each), (len(delete_files), each))[0] for each in task.deletes]
        if references:
            document["delete-file-references"] = references
        residual = task.residual
        if id(residual) not in residuals:
            # Few distinct ones are shared by all tasks, which keep them alive.
            residuals[id(residual)] = expression_to_term_json(residual)
        document["residual-filter"] = residuals[id(residual)]
        documents.append(document)
    result: JSON = {"plan-tasks": tasks.plan_tasks} if tasks.plan_tasks else {}
    if delete_files:
        result["delete-files"] = [content_file_to_json(file, context.partitions) for _, file in delete_files.values()]
    return {**result, "file-scan-tasks": documents}


def _name(file: DataFile) -> tuple[str, int | None]:
    """What distinguishes delete files."""
    return file.file_path, file.content_offset


def _tasks_from_wire(wire: _TasksWire, context: TaskContext, what: str) -> ScanTasks:
    residuals: dict[bytes, Expression] = {}
    try:
        deletes = [content_file_from_wire(each, context.partitions) for each in wire.delete_files or ()]
        if any(file.content is FileContent.DATA for file in deletes):
            raise InvalidMetadataError("there is a data file among `delete-files`")
        tasks = tuple(_task_from_wire(each, deletes, context, residuals) for each in wire.file_scan_tasks or ())
    except InvalidInputError as problem:
        raise InvalidMetadataError(f"{what}: {problem}") from None
    return ScanTasks(tasks, tuple(wire.plan_tasks or ()))


def _task_from_wire(
    wire: _TaskWire, deletes: Sequence[DataFile], context: TaskContext, residuals: dict[bytes, Expression]
) -> FileScanTask:
    file = content_file_from_wire(wire.data_file, context.partitions)
    if file.content is not FileContent.DATA:
        raise InvalidMetadataError(f"the `data-file` {file.file_path!r:.200} of a task is a delete file")
    references = wire.delete_file_references or ()
    if any(not 0 <= index < len(deletes) for index in references):
        raise InvalidMetadataError(
            f"`delete-file-references` are {references!r:.200}, but `delete-files` has {len(deletes)} files"
        )
    own = tuple(_of_data_file(deletes[index], file) for index in dict.fromkeys(references))
    return FileScanTask(file, own, _residual(wire, context, residuals), UNASSIGNED_SEQUENCE_NUMBER)


def _of_data_file(delete_file: DataFile, file: DataFile) -> DataFile:
    """A delete file of a task; which data file a deletion vector is about need not be written, but must not be another one."""
    if not delete_file.is_deletion_vector:
        return delete_file
    target = delete_file.referenced_data_file
    if target is None:
        return replace(delete_file, referenced_data_file=file.file_path)
    if identity(target) != identity(file.file_path):
        raise InvalidMetadataError(
            f"the server gives the deletion vector of {target} to {file.file_path}, as Java's does before 1.12 when a file has"
            f" several vectors; set {SCAN_PLANNING_MODE}={PlanMode.CLIENT}"
        )
    return delete_file


def _residual(wire: _TaskWire, context: TaskContext, residuals: dict[bytes, Expression]) -> Expression:
    if wire.residual_filter is msgspec.UNSET:
        return context.row_filter
    text = bytes(wire.residual_filter)
    if text not in residuals:
        document = read_wire(text, object, "`residual-filter`")
        residual = expression_from_json(document, context.schema, context.case_sensitive)
        residuals[text] = bind(residual, context.schema, context.case_sensitive)
    return residuals[text]
