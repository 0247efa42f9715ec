"""A scan of one snapshot: an immutable description of rows and columns to read."""

import datetime as dt
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from typing import Protocol, Self

import pyarrow.compute as pc

from icefloe import errors, expressions as ex, manifests as mf, metadata as md, partitioning as pt
from icefloe.planning.delete_files import WANTED_OF_DELETES, scopes_of
from icefloe.planning.options import ScanOptions, scan_options
from icefloe.planning.plan import Plan, PlanRequest, Progress, Spread
from icefloe.planning.reading import ManifestSource
from icefloe.planning.report import LoggingReporter, Reporter, ScanReport
from icefloe.planning.tasks import CombinedScanTask, FileScanTask, pack_tasks
from icefloe.schema import NestedField, Schema, reserved, select
from icefloe.storage import Storage

ALL_COLUMNS = ("*",)
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


class Planner(Protocol):
    """Finds the files of a scan: from manifests, or by asking a service."""

    def plan_files(self, scan: "TableScan") -> Generator[FileScanTask, None, None]:
        """Yield a task for each data file that may contain matching rows; close the generator to stop early."""


class ServicePlanner:
    """Base class of planners that ask a service. Their tasks have no sequence numbers; manifests may be inaccessible."""


@dataclass(frozen=True)
class TableScan:
    """What to read from a table: a row filter, column names, and a snapshot by at most one of id, ref and time.

    `limit` is the number of rows needed: a plan may stop early, but never returns fewer rows if there are more.
    `options` are those of `planning.options`, and `read.split.*` to override the table's properties.
    """

    metadata: md.TableMetadata
    storage: Storage
    row_filter: str | ex.Expression | None = ""
    selected_fields: tuple[str, ...] = ALL_COLUMNS
    snapshot_id: int | None = None
    ref: str | None = None
    as_of: int | dt.datetime | None = None
    limit: int | None = None
    case_sensitive: bool = True
    options: Mapping[str, str] = field(default_factory=dict, hash=False)
    cache: mf.ManifestCache | None = field(default=None, compare=False, repr=False)
    reporter: Reporter = field(default_factory=LoggingReporter, compare=False, repr=False)
    keep_metrics: bool = False
    whole_files: bool = False
    """Whether all rows of the planned files will be read: tasks then have all deletes of their files, not only those that
    affect matching rows. Rewrites of files need this."""
    planner: Planner | None = field(default=None, compare=False, repr=False)
    """None to plan from the manifests of the snapshot."""
    spread: Spread | None = field(default=None, compare=False, repr=False)
    """Where manifests may be pruned in place of this process; not pickled."""
    table_name: str = field(default="", compare=False, repr=False)
    """Table name for reports."""
    _newest: list[Progress] = field(default_factory=list, init=False, compare=False, repr=False)
    """Progress of the latest plan, if any; the plan itself is not kept, so that it closes with its reader."""
    _lent: list[Storage] = field(default_factory=list, init=False, compare=False, repr=False)
    """Storage provided with the latest plan of a service, if any."""

    def __post_init__(self) -> None:
        check_names(self.selected_fields, "a scan")
        object.__setattr__(self, "selected_fields", tuple(self.selected_fields))
        limit: object = self.limit
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
            raise errors.InvalidInputError(f"limit must be a non-negative integer, not {limit!r}")

    def __reduce__(self) -> tuple[object, ...]:
        # Threads and cached manifests are not pickled.
        own = (each.name for each in fields(self) if each.init and each.name not in ("cache", "spread"))
        state = {name: getattr(self, name) for name in own}
        return partial(type(self), **state), ()

    # -- refined copies

    def filter(self, row_filter: str | ex.Expression) -> Self:
        """Return a scan that also applies this filter."""
        return replace(self, row_filter=parsed_filter(self.row_filter) & parsed_filter(row_filter))

    def select(self, *names: str) -> Self:
        """Return a scan of these columns only, among those selected before."""
        if "*" in self.selected_fields:
            metadata = [name for name in self.selected_fields if name != "*" and name not in names]
            return replace(self, selected_fields=(*names, *metadata) if "*" in names else names)
        kept = self.selected_fields if "*" in names else tuple(name for name in self.selected_fields if name in names)
        return replace(self, selected_fields=kept)

    def use_ref(self, name: str) -> Self:
        """Return a scan of a branch or tag."""
        return replace(self, ref=name)._checked()

    def use_snapshot(self, snapshot_id: int) -> Self:
        """Return a scan of the snapshot with an id."""
        return replace(self, snapshot_id=snapshot_id)._checked()

    def as_of_time(self, moment: int | dt.datetime) -> Self:
        """Return a scan of the snapshot that was current at a time, in epoch milliseconds or as a datetime with a time zone."""
        return replace(self, as_of=moment)._checked()

    def with_limit(self, limit: int | None) -> Self:
        """Return a scan with a row limit."""
        return replace(self, limit=limit)

    def with_case_sensitive(self, case_sensitive: bool = True) -> Self:
        """Return a scan with case-sensitive or case-insensitive column names."""
        return replace(self, case_sensitive=case_sensitive)

    def with_option(self, key: str, value: str) -> Self:
        """Return a scan with an option set."""
        return replace(self, options={**self.options, key: value})

    def with_metrics(self) -> Self:
        """Return a scan whose tasks include the metrics of all columns of their data files."""
        return replace(self, keep_metrics=True)

    def _checked(self) -> Self:
        self.snapshot()
        return self

    # -- snapshot and columns

    def snapshot(self) -> md.Snapshot | None:
        """Return the snapshot to read; None if the table has none."""
        return self._snapshot

    @cached_property
    def _snapshot(self) -> md.Snapshot | None:
        return choose_snapshot(self.metadata, self.snapshot_id, self.ref, self.as_of)

    @cached_property
    def schema(self) -> Schema:
        """Return the full schema of the scan."""
        is_past = self.snapshot_id is not None or self.as_of is not None
        return schema_of_scan(self.metadata, self.snapshot(), self.ref, is_past)

    @cached_property
    def bound_filter(self) -> ex.Expression:
        """The row filter, bound to the schema."""
        return ex.bind(parsed_filter(self.row_filter), self.schema, self.case_sensitive)

    def projection(self) -> Schema:
        """Return the selected columns in schema order, followed by the selected metadata columns.

        Raises an error if the scan selects values inside variants: these are not table columns, and available only in Arrow rows.
        """
        if self.extracted:
            raise errors.InvalidInputError(
                f"{next(iter(self.extracted))!r} is inside a variant, which can be selected only for Arrow rows "
                "(to_arrow and similar methods); on Spark use variant_get in the query"
            )
        return self.table_columns()

    @cached_property
    def extracted(self) -> dict[str, ex.BoundExtract]:
        """Return selected values inside variants, such as `doc:a.b::int`, by the selecting text."""
        others = [name for name in self.selected_fields if name != "*" and self._metadata_column(name) is None]
        terms = {
            name: term
            for name in others
            if self.schema.find_id(name, self.case_sensitive) is None and (term := ex.parse_extract(name)) is not None
        }
        return {name: ex.bind_extract(term, self.schema, self.case_sensitive) for name, term in terms.items()}

    def table_columns(self) -> Schema:
        """Return the selected table columns like `projection`, but without an error if values are `extracted`."""
        metadata = {
            name: column for name in self.selected_fields if (column := self._metadata_column(name)) is not None
        }
        names = [name for name in self.selected_fields if name not in metadata and name not in self.extracted]
        try:
            own = select(self.schema, names, self.case_sensitive)
        except errors.NoSuchColumnError as error:
            raise errors.NoSuchColumnError(
                f"{error}; metadata columns are {', '.join(reserved.METADATA_COLUMN_NAMES)}"
            ) from None
        if not metadata:
            return own
        fields = (*own.fields, *metadata.values())
        return Schema(*fields, schema_id=own.schema_id, identifier_field_ids=own.identifier_field_ids)

    def _metadata_column(self, name: str) -> NestedField | None:
        if name not in reserved.METADATA_COLUMN_NAMES or self.schema.find_id(name) is not None:
            return None
        older = self.metadata.schemas_newest_first
        return reserved.metadata_column(
            name, pt.unified_partition_type(self.metadata.partition_specs, self.schema, *older)
        )

    # -- the plan

    @cached_property
    def settings(self) -> ScanOptions:
        """Return the parsed and validated options."""
        return scan_options(self.options, self.metadata.properties)

    def plan_files(self) -> Generator[FileScanTask, None, None]:
        """Yield a task for each data file that may contain matching rows; close the generator to stop early."""
        if self.planner is not None:
            return self.planner.plan_files(self)
        plan = self.plan()
        return _nothing() if plan is None else plan.tasks()

    def plan_tasks(self) -> Iterator[CombinedScanTask]:
        """Yield balanced tasks: files split and combined according to `read.split.*`."""
        return pack_tasks(self.plan_files(), self.settings)

    @property
    def is_planned_elsewhere(self) -> bool:
        """Whether a service plans this scan, from manifests that may be inaccessible to this client."""
        return isinstance(self.planner, ServicePlanner)

    @property
    def file_storage(self) -> Storage:
        """Return the storage for the files of the latest plan: a service may issue credentials for just these files."""
        return self._lent[0] if self._lent else self.storage

    def lend(self, storage: Storage) -> None:
        """Set the storage for the files of the latest plan; called by planners."""
        self._lent[:] = [storage]

    def plan(self, metrics_of: tuple[int, ...] = ()) -> Plan | None:
        """Plan from manifests, in columnar batches with the metrics of some fields; None if there is no snapshot."""
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
            whole_files=self.whole_files,
            limit=self.limit,
            metrics_of=metrics_of,
            spread=self.spread,
        )
        columns = (*self.table_columns().column_names, *self.extracted)
        self._newest[:] = [Progress(request, columns, self.reporter, self.table_name)]
        return Plan(self._newest[0])

    @property
    def report(self) -> ScanReport | None:
        """Return the report of the latest plan so far; None before the first plan."""
        return self._newest[0].report() if self._newest else None


def plan_entries(
    scan: TableScan,
    snapshot: md.Snapshot,
    manifests: Sequence[mf.ManifestFile],
    entries: Callable[[mf.ManifestColumns], ex.Mask],
    *,
    with_deletes: bool = True,
) -> Plan:
    """Plan a scan over selected entries of manifests of a snapshot."""
    source = ManifestSource(scan.metadata, scan.storage, snapshot.snapshot_id, scan.schema, scan.cache)
    request = PlanRequest(
        source, scan.bound_filter, scan.settings, lambda: manifests, entries, with_deletes=with_deletes
    )
    return Plan(Progress(request, scan.projection().column_names, scan.reporter, scan.table_name))


def single_file_deletes(scan: TableScan) -> frozenset[str]:
    """Return the paths of live delete files that apply to a single data file, also judged by their bounds."""
    snapshot = scan.snapshot()
    if snapshot is None:
        return frozenset()
    source = ManifestSource(scan.metadata, scan.storage, snapshot.snapshot_id, scan.schema, scan.cache)
    paths: set[str] = set()
    for manifest in source.manifests(snapshot):
        if manifest.content is mf.ManifestContent.DELETES:
            columns = source.read(manifest, WANTED_OF_DELETES)
            is_single = pc.and_(columns.is_live, scopes_of(columns).is_valid())
            paths.update(columns.column("file_path").filter(is_single).to_pylist())
    return frozenset(paths)


def _nothing() -> Generator[FileScanTask, None, None]:
    yield from ()


def parsed_filter(row_filter: str | ex.Expression | None) -> ex.Expression:
    """Parse a filter given by a user; none, or an empty text, matches every row."""
    is_blank = isinstance(row_filter, str) and not row_filter.strip()
    return ex.AlwaysTrue() if is_blank else ex.as_expression(row_filter)


def check_names(names: object, what: str) -> None:
    """Raise an error unless these are column names."""
    if isinstance(names, str) or not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise errors.InvalidInputError(f"the columns of {what} must be a tuple of names, not {names!r}")


def choose_snapshot(
    metadata: md.TableMetadata, snapshot_id: int | None, ref: str | None, as_of: int | dt.datetime | None
) -> md.Snapshot | None:
    """Return the snapshot selected by at most one of id, ref and time; by default the current one.

    None if the table or `main` is empty.
    """
    choices = {"snapshot id": snapshot_id, "ref": ref, "time": as_of}
    named = [what for what, value in choices.items() if value is not None]
    if len(named) > 1:
        raise errors.InvalidInputError(f"a scan reads one snapshot; give only one of {' and '.join(named)}")
    if snapshot_id is not None:
        return metadata.snapshot(snapshot_id)
    if as_of is not None:
        return metadata.snapshot_as_of(milliseconds(as_of))
    return metadata.snapshot_of_ref(ref)


def schema_of_scan(metadata: md.TableMetadata, snapshot: md.Snapshot | None, ref: str | None, is_past: bool) -> Schema:
    """Return the schema of the rows: the current one, or for time travel (by id, time or tag) that of the snapshot."""
    if ref is not None and ref != md.MAIN_BRANCH and ref in metadata.refs:
        is_past = metadata.refs[ref].is_tag
    if not is_past or snapshot is None or snapshot.schema_id is None:
        return metadata.schema()
    return metadata.schema(snapshot.schema_id)


def milliseconds(as_of: int | dt.datetime) -> int:
    """Convert a time given by a user to milliseconds since the epoch."""
    if isinstance(as_of, dt.datetime):
        if as_of.tzinfo is None:
            raise errors.InvalidInputError(f"the time {as_of.isoformat()} has no time zone; add one, such as UTC")
        return (as_of - _EPOCH) // dt.timedelta(milliseconds=1)
    if isinstance(as_of, bool) or not isinstance(as_of, int):
        raise errors.InvalidInputError(f"{as_of!r} is not a time; give milliseconds since the epoch or a datetime")
    return as_of
