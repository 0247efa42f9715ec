"""A scan of one snapshot: which rows and columns are wanted, as a value that is refined by copies."""

import datetime as dt
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Protocol, Self

from icefloe.errors import InvalidInputError, NoSuchColumnError
from icefloe.expressions import AlwaysTrue, Expression, as_expression, bind
from icefloe.manifests import ManifestCache
from icefloe.metadata import Snapshot, TableMetadata
from icefloe.partitioning import unified_partition_type
from icefloe.planning.options import ScanOptions, scan_options
from icefloe.planning.plan import Plan, PlanRequest, Progress
from icefloe.planning.reading import ManifestSource
from icefloe.planning.report import LoggingReporter, Reporter, ScanReport
from icefloe.planning.selection import choose_snapshot, schema_of_scan
from icefloe.planning.tasks import CombinedScanTask, FileScanTask, pack_tasks
from icefloe.schema import NestedField, Schema, reserved, select
from icefloe.storage import Storage

ALL_COLUMNS = ("*",)


class Planner(Protocol):
    """What finds the files of a scan: this library in the manifests, or a service that knows the table."""

    def plan_files(self, scan: "TableScan") -> Generator[FileScanTask, None, None]:
        """A task for each data file that may hold a wanted row, as they are found; closing it ends the work."""


class LocalPlanner:
    """Reads the manifests of the snapshot."""

    def plan_files(self, scan: "TableScan") -> Generator[FileScanTask, None, None]:
        """A task for each data file that may hold a wanted row."""
        plan = scan.plan()
        return _nothing() if plan is None else plan.tasks()


@dataclass(frozen=True)
class TableScan:
    """What to read of a table: rows by a filter, columns by name, a snapshot by at most one of id, ref and time.

    `limit` is how many rows are enough: a plan may stop early for it, but never gives fewer if there are more.
    `options` are those of `planning.options`, and `read.split.*` over the table's own.
    """

    metadata: TableMetadata
    storage: Storage
    row_filter: str | Expression | None = ""
    selected_fields: tuple[str, ...] = ALL_COLUMNS
    snapshot_id: int | None = None
    ref: str | None = None
    as_of: int | dt.datetime | None = None
    limit: int | None = None
    case_sensitive: bool = True
    options: Mapping[str, str] = field(default_factory=dict, hash=False)
    cache: ManifestCache | None = field(default=None, compare=False, repr=False)
    reporter: Reporter = field(default_factory=LoggingReporter, compare=False, repr=False)
    keep_metrics: bool = False
    planner: Planner = field(default_factory=LocalPlanner, compare=False, repr=False)

    def __post_init__(self) -> None:
        names: object = self.selected_fields
        if (
            not isinstance(names, Sequence)
            or isinstance(names, str)
            or not all(isinstance(each, str) for each in names)
        ):
            raise InvalidInputError(f"the columns of a scan are {names!r}; give a tuple of names")
        object.__setattr__(self, "selected_fields", tuple(names))
        limit: object = self.limit
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
            raise InvalidInputError(f"the limit of a scan is {limit!r}; it must be a whole number, 0 or more")

    def __getstate__(self) -> dict[str, Any]:
        # Neither threads nor cached manifests go along.
        return {each.name: None if each.name == "cache" else getattr(self, each.name) for each in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    # -- refined copies

    def filter(self, row_filter: str | Expression) -> Self:
        """Only rows that match this too."""
        return replace(self, row_filter=_parsed(self.row_filter) & _parsed(row_filter))

    def select(self, *names: str) -> Self:
        """Only these columns; of columns that were selected before, only those among them."""
        if "*" in self.selected_fields:
            metadata = [name for name in self.selected_fields if name != "*" and name not in names]
            return replace(self, selected_fields=(*names, *metadata) if "*" in names else names)
        kept = self.selected_fields if "*" in names else tuple(name for name in self.selected_fields if name in names)
        return replace(self, selected_fields=kept)

    def use_ref(self, name: str) -> Self:
        """The snapshot of a branch or tag."""
        return self._at(ref=name)

    def use_snapshot(self, snapshot_id: int) -> Self:
        """The snapshot of that id."""
        return self._at(snapshot_id=snapshot_id)

    def as_of_time(self, moment: int | dt.datetime) -> Self:
        """The snapshot that was current at that time, in milliseconds since 1970 or as a datetime with a zone."""
        return self._at(as_of=moment)

    def with_limit(self, limit: int | None) -> Self:
        """So many rows are enough."""
        return replace(self, limit=limit)

    def with_case_sensitive(self, case_sensitive: bool = True) -> Self:
        """Whether names of columns must match in case."""
        return replace(self, case_sensitive=case_sensitive)

    def with_option(self, key: str, value: str) -> Self:
        """One option set."""
        return replace(self, options={**self.options, key: value})

    def with_metrics(self) -> Self:
        """Tasks with the metrics of all columns of their data files."""
        return replace(self, keep_metrics=True)

    def _at(self, **place: Any) -> Self:
        changed = replace(self, **place)
        changed.snapshot()
        return changed

    # -- what is read

    def snapshot(self) -> Snapshot | None:
        """The snapshot that is read; None of a table without any."""
        return choose_snapshot(self.metadata, self.snapshot_id, self.ref, self.as_of)

    @cached_property
    def schema(self) -> Schema:
        """All columns that rows of the snapshot have."""
        is_past = self.snapshot_id is not None or self.as_of is not None
        return schema_of_scan(self.metadata, self.snapshot(), self.ref, is_past)

    @cached_property
    def bound_filter(self) -> Expression:
        """The row filter, bound to the schema."""
        return bind(_parsed(self.row_filter), self.schema, self.case_sensitive)

    def projection(self) -> Schema:
        """The columns that are read, in the schema's order, and the metadata columns that are selected, in theirs."""
        names = [name for name in self.selected_fields if self._metadata_column(name) is None]
        extra = [name for name in self.selected_fields if self._metadata_column(name) is not None]
        try:
            own = select(self.schema, names, self.case_sensitive)
        except NoSuchColumnError as error:
            raise NoSuchColumnError(
                f"{error}; metadata columns are {', '.join(reserved.METADATA_COLUMN_NAMES)}"
            ) from None
        columns = [column for name in dict.fromkeys(extra) if (column := self._metadata_column(name)) is not None]
        if not columns:
            return own
        return Schema(*own.fields, *columns, schema_id=own.schema_id, identifier_field_ids=own.identifier_field_ids)

    def _metadata_column(self, name: str) -> NestedField | None:
        if name not in reserved.METADATA_COLUMN_NAMES or self.schema.find_id(name) is not None:
            return None
        older = self.metadata.schemas_newest_first
        return reserved.metadata_column(
            name, unified_partition_type(self.metadata.partition_specs, self.schema, *older)
        )

    # -- the plan

    @cached_property
    def settings(self) -> ScanOptions:
        """The options, read and checked."""
        return scan_options(self.options, self.metadata.properties)

    def plan_files(self) -> Generator[FileScanTask, None, None]:
        """A task for each data file that may hold a wanted row, as they are found; close it to stop early."""
        return self.planner.plan_files(self)

    def plan_tasks(self) -> Iterator[CombinedScanTask]:
        """Work of even size: files split and put together by `read.split.*`."""
        return pack_tasks(self.plan_files(), self.settings)

    def plan(self) -> Plan | None:
        """The plan in columns, as batches, by the manifests; None if there is no snapshot."""
        snapshot = self.snapshot()
        if snapshot is None:
            return None
        source = ManifestSource(self.metadata, self.storage, snapshot.snapshot_id, self.schema, self.cache)
        request = PlanRequest(
            source,
            self.bound_filter,
            self.settings,
            lambda: source.manifests(snapshot),
            keep_metrics=self.keep_metrics,
            limit=self.limit,
        )
        progress = Progress(request, self.projection().column_names, self.reporter)
        # The plan itself is not kept, so that one that nobody holds any more is closed.
        self.__dict__["_progress"] = progress
        return Plan(progress)

    @property
    def report(self) -> ScanReport | None:
        """What the newest plan of this scan did so far; None before the first."""
        found: Progress | None = self.__dict__.get("_progress")
        return None if found is None else found.report()


def _parsed(row_filter: str | Expression | None) -> Expression:
    if isinstance(row_filter, str) and not row_filter.strip():
        return AlwaysTrue()
    return as_expression(row_filter)


def _nothing() -> Generator[FileScanTask, None, None]:
    yield from ()
