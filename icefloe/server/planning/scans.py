"""Which scan a request over REST asks for, pinned to a snapshot and a schema, so that every replica plans the same at any time."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from icefloe.errors import InvalidInputError
from icefloe.expressions import bind, expression_from_json
from icefloe.manifests import DataFile, ManifestCache, Metric
from icefloe.metadata import TableMetadata
from icefloe.planning import FileScanTask, IncrementalAppendScan, ManifestSource, PlanRequest, scan_options
from icefloe.rest import PlanTableScanRequest, TaskContext, task_context
from icefloe.schema import Schema, reserved
from icefloe.storage import Storage


@dataclass(frozen=True, slots=True)
class PlannedTable:
    """What planning needs of a table."""

    metadata: TableMetadata
    storage: Storage

    @property
    def identity(self) -> str:
        """What distinguishes it from all other tables, whatever their names are."""
        uuid = self.metadata.table_uuid
        return str(self.metadata.location if uuid is None else uuid)


@dataclass(frozen=True, slots=True)
class PinnedScan:
    """A request whose snapshots are all named, and the schema that it is about."""

    table: str
    """The identity of the table."""
    request: PlanTableScanRequest
    schema_id: int


@dataclass(frozen=True, slots=True)
class PreparedScan:
    """A scan that can be planned."""

    pinned: PinnedScan
    plan: PlanRequest | None
    """None if there is nothing to read."""
    context: TaskContext
    stats_ids: frozenset[int]
    """The columns whose metrics are wanted."""

    def shown(self, task: FileScanTask) -> FileScanTask:
        """A task as it is sent: with metrics of the wanted columns."""
        return task.replace(file=_with_metrics(task.file, self.stats_ids)) if self.stats_ids else task


def pin(table: PlannedTable, request: PlanTableScanRequest) -> PinnedScan:
    """The scan of a request; the newest snapshot, and the schema of now, are named in it."""
    metadata = table.metadata
    if request.min_rows_requested is not None and request.min_rows_requested < 0:
        raise InvalidInputError(f"{request.min_rows_requested} rows are requested; it must be 0 or more")
    last = request.end_snapshot_id if request.is_incremental else request.snapshot_id
    snapshot = metadata.current_snapshot() if last is None else metadata.snapshot(last)
    schema_id = metadata.current_schema_id
    if request.use_snapshot_schema and snapshot is not None and snapshot.schema_id is not None:
        schema_id = snapshot.schema_id
    if not request.is_incremental and snapshot is not None:
        request = replace(request, snapshot_id=snapshot.snapshot_id)
    return PinnedScan(table.identity, request, schema_id)


def prepare(pinned: PinnedScan, table: PlannedTable, cache: ManifestCache | None = None) -> PreparedScan:
    """The scan, with its filter read and bound, and its names checked."""
    metadata, request = table.metadata, pinned.request
    schema = metadata.schema(pinned.schema_id)
    row_filter = expression_from_json(request.filter, schema, request.case_sensitive)
    bound = bind(row_filter, schema, request.case_sensitive)
    _check_selected(request.select or (), schema, request.case_sensitive)
    stats = frozenset(schema.find_field(name, request.case_sensitive).field_id for name in request.stats_fields or ())
    plan: PlanRequest | None = None
    if request.is_incremental:
        plan = IncrementalAppendScan(
            metadata.evolve(current_schema_id=pinned.schema_id),
            table.storage,
            request.start_snapshot_id,
            request.end_snapshot_id,
            row_filter,
            case_sensitive=request.case_sensitive,
            cache=cache,
        ).request()
    elif request.snapshot_id is not None:
        snapshot = metadata.snapshot(request.snapshot_id)
        source = ManifestSource(metadata, table.storage, snapshot.snapshot_id, schema, cache)
        options = scan_options({}, metadata.properties)
        plan = PlanRequest(source, bound, options, lambda: source.manifests(snapshot))
    if plan is not None:
        plan = replace(plan, keep_metrics=bool(stats), limit=request.min_rows_requested)
    return PreparedScan(pinned, plan, task_context(metadata, schema, bound, request.case_sensitive), stats)


def _check_selected(names: Iterable[str], schema: Schema, case_sensitive: bool) -> None:
    """Fail unless the columns exist; metadata columns and what is in them may be selected, too."""
    for name in names:
        if name.partition(".")[0] not in reserved.METADATA_COLUMN_NAMES:
            schema.find_field(name, case_sensitive)


def _with_metrics(file: DataFile, field_ids: frozenset[int]) -> DataFile:
    metrics: dict[str, Any] = {
        metric.value: {key: value for key, value in getattr(file, metric.value).items() if key in field_ids}
        for metric in Metric
    }
    return replace(file, **metrics)
