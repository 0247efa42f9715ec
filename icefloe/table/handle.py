"""The table handle: the state of a table and the ways to read and change it."""

import datetime as dt
import html
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Self

from icefloe import (
    commit as cm,
    errors,
    expressions as ex,
    manifests as mf,
    metadata as md,
    partitioning as pt,
    planning,
)
from icefloe.inspect import Inspect
from icefloe.progress import Listener
from icefloe.schema import Schema
from icefloe.storage import Storage
from icefloe.table.changes import TableChanges
from icefloe.table.diff import TableDiff, diff_of
from icefloe.table.scan import ChangesScan, DataScan
from icefloe.table.transaction import Transaction

if TYPE_CHECKING:
    import polars as pl

    # What keeps tables healthy is large, and most programs never ask for it: it is imported where it is used.
    from icefloe.maintenance import Maintenance, StorageLayout, TableHealth
    from icefloe.verification import VerificationReport


class Table(TableChanges):
    """A table of a catalog, in the state of the last load, refresh or change through this handle.

    >>> table.scan("total > 15").count()
    2
    >>> snapshot = table.delete("region = 'us'")
    >>> table.scan().to_arrow().column("id").to_pylist()
    [1, 3]
    """

    def __init__(
        self,
        identifier: tuple[str, ...],
        state: cm.TableState,
        committer: cm.Committer,
        *,
        caches: cm.Caches | None = None,
        timing: cm.Timing | None = None,
        reporter: planning.Reporter | None = None,
        planner: planning.Planner | None = None,
    ) -> None:
        self._identifier = tuple(identifier)
        self._handle = cm.CurrentState(state)
        self._committer = committer
        self._caches = caches or cm.Caches()
        self._timing = timing or cm.Timing()
        self._reporter = reporter or planning.LoggingReporter()
        self._planner = planner

    def _share(self, manifests: mf.ManifestCache) -> Self:
        """Read manifests by way of a cache that other handles have, too, unless each must show that it has the table's keys."""
        if not mf.is_encrypted(self.metadata):
            self._caches = cm.Caches(manifests)
        return self

    def __repr__(self) -> str:
        return errors.without_credentials(
            f"Table({'.'.join(self._identifier)}, {self._handle.state.metadata_location})"
        )

    def _repr_html_(self) -> str:
        """Return a summary and the columns as HTML, for notebooks."""
        head = f"{'.'.join(self._identifier)}, format v{self.format_version}, {self.location()}"
        return f"<p>{html.escape(errors.without_credentials(head))}</p>{self.schema()._repr_html_()}"

    def __getstate__(self) -> dict[str, object]:
        """Return the state without process-local parts: a pickle holds the handle, and the same secrets as its catalog's."""
        return {name: value for name, value in vars(self).items() if name not in ("_caches", "_timing")}

    def __setstate__(self, state: dict[str, object]) -> None:
        vars(self).update(state, _caches=cm.Caches(), _timing=cm.Timing())

    # -- state

    def name(self) -> tuple[str, ...]:
        """Return the identifier: the levels of the namespace and the table name."""
        return self._identifier

    @property
    def state(self) -> cm.TableState:
        """The metadata and its location."""
        return self._handle.state

    @property
    def metadata(self) -> md.TableMetadata:
        """The table metadata."""
        return self._handle.state.metadata

    @property
    def metadata_location(self) -> str | None:
        """Location of the metadata file."""
        return self._handle.state.metadata_location

    @property
    def storage(self) -> Storage:
        """The storage that holds the table's files."""
        return self._committer.storage

    @property
    def properties(self) -> Mapping[str, str]:
        """The table's properties."""
        return self.metadata.properties

    @property
    def format_version(self) -> int:
        """The format version."""
        return self.metadata.format_version

    def location(self) -> str | None:
        """The base location of the table's files."""
        return self.metadata.location

    def schema(self) -> Schema:
        """The current schema."""
        return self.metadata.schema()

    def schemas(self) -> dict[int, Schema]:
        """All schemas by id."""
        return dict(self.metadata.schemas_by_id)

    def spec(self) -> pt.PartitionSpec:
        """The partition spec of new data."""
        return self.metadata.spec()

    def specs(self) -> dict[int, pt.PartitionSpec]:
        """All partition specs by id."""
        return dict(self.metadata.specs_by_id)

    def sort_order(self) -> pt.SortOrder:
        """The sort order of new data."""
        return self.metadata.sort_order()

    def sort_orders(self) -> dict[int, pt.SortOrder]:
        """All sort orders by id."""
        return dict(self.metadata.sort_orders_by_id)

    def snapshots(self) -> list[md.Snapshot]:
        """All snapshots, oldest first."""
        return list(self.metadata.snapshots)

    def current_snapshot(self) -> md.Snapshot | None:
        """The head of `main`; None in a table without commits."""
        return self.metadata.current_snapshot()

    def snapshot_by_id(self, snapshot_id: int) -> md.Snapshot | None:
        """Return the snapshot with an id, if there is one."""
        return self.metadata.snapshot_by_id(snapshot_id)

    def snapshot_by_name(self, name: str) -> md.Snapshot | None:
        """Return the snapshot of a branch or tag, if it exists."""
        return self.metadata.snapshot_by_name(name)

    def snapshot_as_of_timestamp(self, timestamp_ms: int) -> md.Snapshot:
        """Return the snapshot that was current at a point in time."""
        return self.metadata.snapshot_as_of(timestamp_ms)

    def refs(self) -> dict[str, md.SnapshotRef]:
        """Branches and tags by name."""
        return dict(self.metadata.refs)

    def history(self) -> list[md.SnapshotLogEntry]:
        """Return the snapshot log: when each snapshot became current."""
        return list(self.metadata.snapshot_log)

    def statistics(self) -> list[md.StatisticsFile]:
        """The statistics files."""
        return list(self.metadata.statistics)

    def partition_statistics(self) -> list[md.PartitionStatisticsFile]:
        """The partition statistics files."""
        return list(self.metadata.partition_statistics)

    @property
    def maintenance(self) -> "Maintenance":
        """Maintenance procedures: `table.maintenance.expire_snapshots(...)`."""
        from icefloe.maintenance import Maintenance

        return Maintenance(self)

    @property
    def surroundings(self) -> cm.Surroundings | None:
        """The catalog context of the table, if known."""
        return self._committer if isinstance(self._committer, cm.Surroundings) else None

    def refresh(self) -> Self:
        """Refresh this handle to the latest state; fails if the name now refers to another table."""
        newest = self._committer.load()
        cm.check_same_table(self.metadata, newest.metadata, ".".join(self._identifier))
        if newest.metadata_location is None or newest.metadata_location != self._handle.state.metadata_location:
            # Metadata files are immutable: if the location is the same, keep the parsed metadata and what was derived from it.
            self._handle.state = newest
        return self

    def scan(
        self,
        row_filter: str | ex.Expression | None = None,
        selected_fields: Sequence[str] = ("*",),
        case_sensitive: bool = True,
        snapshot_id: int | None = None,
        options: Mapping[str, str] | None = None,
        limit: int | None = None,
        *,
        ref: str | None = None,
        as_of: int | dt.datetime | None = None,
    ) -> DataScan:
        """Return a scan of one snapshot with an optional filter and column selection; nothing is read until rows are requested.

        Args:
            row_filter: SQL text such as `"ts >= '2026-01-01' and region in ('eu', 'us')"`, or an expression.
            selected_fields: column names, with dots for nested ones; metadata columns such as `_file` may follow `"*"`, and
                so may values inside variants, such as `doc:a.b::long`, if the rows are read as Arrow.
            case_sensitive: whether column names are case-sensitive.
            snapshot_id: the snapshot to read instead of the current one.
            options: planning options (docs/scans.md).
            limit: the maximum number of rows.
            ref: the branch or tag to read.
            as_of: read the snapshot that was current at this time, in milliseconds or as a datetime with a time zone.

        >>> table.scan("total >= 20", selected_fields=("id", "total"), limit=1).to_arrow().to_pylist()
        [{'id': 2, 'total': 20.0}]
        """
        return DataScan(
            self.metadata,
            self.storage,
            row_filter,
            tuple(selected_fields),
            snapshot_id,
            ref,
            as_of,
            limit,
            case_sensitive,
            options or {},
            cache=self._caches.manifests,
            reporter=self._reporter,
            planner=self._planner,
            table_name=self._committer.name,
        )

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Export all rows through Arrow's PyCapsule interface; each call starts a new scan of the handle's state."""
        return self.scan().__arrow_c_stream__(requested_schema)

    def to_polars(self) -> "pl.LazyFrame":
        """Return all rows as a Polars LazyFrame that reads only what it needs: `scan().to_polars_lazy()`."""
        return self.scan().to_polars_lazy()

    def scan_changes(
        self,
        from_snapshot_id: int | None = None,
        to_snapshot_id: int | None = None,
        row_filter: str | ex.Expression | None = None,
        selected_fields: Sequence[str] = ("*",),
        case_sensitive: bool = True,
        options: Mapping[str, str] | None = None,
        *,
        branch: str | None = None,
        identifier_columns: Sequence[str] = (),
        net_changes: bool = False,
    ) -> ChangesScan:
        """Scan the rows inserted and deleted after one snapshot (from the first if omitted) up to another.

        Args:
            from_snapshot_id: the snapshot after which changes start (exclusive).
            to_snapshot_id: the last snapshot (inclusive); by default the head of the branch.
            row_filter: return only changes of matching rows.
            selected_fields: the columns to return and compare.
            case_sensitive: whether column names are case-sensitive.
            options: planning options (docs/scans.md).
            branch: the branch of the snapshots.
            identifier_columns: key columns, by which a delete and an insert become an update, as with `with_updates`.
            net_changes: return only the net effect of all changes, as with `with_net_changes`.

        A row that a commit only moves to another file is not a change. `scan_changes(...).with_updates()` shows a delete and
        an insert of the same row as an update, by identifier fields or row ids.
        """
        scan = ChangesScan(
            self.metadata,
            self.storage,
            from_snapshot_id,
            to_snapshot_id,
            row_filter,
            tuple(selected_fields),
            branch,
            case_sensitive,
            options or {},
            cache=self._caches.manifests,
            reporter=self._reporter,
            table_name=self._committer.name,
        )
        scan = scan.with_net_changes() if net_changes else scan
        return scan.with_updates(identifier_columns) if identifier_columns else scan

    def diff(self, before: int | str | None, after: int | str | None = md.MAIN_BRANCH) -> TableDiff:
        """Compare two snapshots: columns, files and rows.

        Args:
            before: a snapshot id, or the name of a branch or tag; None stands for the state before the first commit.
            after: likewise; the current snapshot by default.
        """

        def chosen(named: int | str | None) -> md.Snapshot | None:
            if named is None:
                return None
            return self.metadata.snapshot(named) if isinstance(named, int) else self.metadata.snapshot_of_ref(named)

        def changes(start: int | None, end: int, row_filter: str | None) -> ChangesScan:
            return self.scan_changes(start, end, row_filter)

        return diff_of(self.metadata, self.inspect, chosen(before), chosen(after), changes)

    def verify(
        self,
        snapshot_id: int | None = None,
        ref: str | None = None,
        *,
        snapshots: str = "all",
        level: str = "footers",
        sample: float = 1.0,
        locations: Sequence[str] = (),
        workers: int | None = None,
        progress: Listener | None = None,
    ) -> "VerificationReport":
        """Check the table for consistency, without changing anything.

        Checks one snapshot by id, branch or tag, or otherwise all snapshots (`snapshots="all"`) or those of branches and
        tags (`"refs"`). `level` is `metadata`, `files`, `footers` or `data`; for the last two, `sample` is the fraction of
        files to open. Files under `locations` are treated like those under the table's own location.
        """
        from icefloe.verification import verify

        return verify(
            self.metadata,
            self.storage,
            self.metadata_location,
            snapshot_id=snapshot_id,
            ref=ref,
            snapshots=snapshots,
            level=level,
            sample=sample,
            locations=locations,
            workers=workers,
            progress=progress,
        )

    def health(self, branch: str | None = None, *, progress: Listener | None = None) -> "TableHealth":
        """Return the health of the table, computed from manifests alone: `table.maintenance.health()`."""
        return self.maintenance.health(branch, progress=progress)

    def storage_layout(self, *, progress: Listener | None = None) -> "StorageLayout":
        """Return the storage used by the table's files: `table.maintenance.storage_layout()`."""
        return self.maintenance.storage_layout(progress=progress)

    @property
    def inspect(self) -> Inspect:
        """The metadata tables: `table.inspect.files()`, `table.inspect.partitions()` and so on."""
        return Inspect(self.metadata, self.storage, self.metadata_location, self._caches.manifests)

    # -- changes

    def transaction(self) -> Transaction:
        """Start a transaction: several changes in one commit.

        >>> with table.transaction() as tx:
        ...     deleted = tx.delete("id = 1")
        ...     added = tx.append(pa.table({"id": [5], "region": ["us"], "total": [50.0]}))
        >>> sorted(table.scan().to_arrow().column("id").to_pylist())
        [2, 3, 5]
        """
        return Transaction(self)

    _begin = transaction

    @property
    def _planned_on(self) -> md.TableMetadata:
        return self.metadata
