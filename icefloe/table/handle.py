"""The handle of a table that users hold: what it is now, and the ways to change it. It joins rooms and holds no rule."""

import datetime as dt
import html
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Self

from icefloe import commit as cm, errors, expressions as ex, metadata as md, partitioning as pt, planning
from icefloe.inspect import Inspect
from icefloe.maintenance import Maintenance, StorageLayout, TableHealth
from icefloe.schema import Schema
from icefloe.storage import Storage
from icefloe.table.changes import TableChanges
from icefloe.table.diff import TableDiff, diff_of
from icefloe.table.scan import ChangesScan, DataScan
from icefloe.table.transaction import Transaction
from icefloe.verification import Listener, VerificationReport, verify

if TYPE_CHECKING:
    import polars as pl


class Table(TableChanges):
    """A table of a catalog, as it was when it was loaded, last refreshed, or last changed through this handle.

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
        self._state = state
        self._committer = committer
        self._caches = caches or cm.Caches()
        self._timing = timing or cm.Timing()
        self._reporter = reporter or planning.LoggingReporter()
        self._planner = planner

    def __repr__(self) -> str:
        return errors.without_credentials(f"Table({'.'.join(self._identifier)}, {self._state.metadata_location})")

    def _repr_html_(self) -> str:
        """The table in a notebook: what it is, and its columns."""
        head = f"{'.'.join(self._identifier)}, format v{self.format_version}, {self.location()}"
        return f"<p>{html.escape(errors.without_credentials(head))}</p>{self.schema()._repr_html_()}"

    def __getstate__(self) -> dict[str, object]:
        """All but what belongs to this process: a pickle is the handle in its state, and as secret as that of its catalog."""
        return {name: value for name, value in vars(self).items() if name not in ("_caches", "_timing")}

    def __setstate__(self, state: dict[str, object]) -> None:
        vars(self).update(state, _caches=cm.Caches(), _timing=cm.Timing())

    # -- what it is

    def name(self) -> tuple[str, ...]:
        """The identifier: the levels of its namespace and its own name."""
        return self._identifier

    @property
    def state(self) -> cm.TableState:
        """The metadata and where it is stored."""
        return self._state

    @property
    def metadata(self) -> md.TableMetadata:
        """All that the table's metadata says."""
        return self._state.metadata

    @property
    def metadata_location(self) -> str | None:
        """Where the metadata is stored."""
        return self._state.metadata_location

    @property
    def storage(self) -> Storage:
        """Where the table's files are."""
        return self._committer.storage

    @property
    def properties(self) -> Mapping[str, str]:
        """The table's properties."""
        return self.metadata.properties

    @property
    def format_version(self) -> int:
        """The version of the table format."""
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
        """The snapshot of that id, if there is one."""
        return self.metadata.snapshot_by_id(snapshot_id)

    def snapshot_by_name(self, name: str) -> md.Snapshot | None:
        """The snapshot of a branch or tag, if there is such a ref."""
        return self.metadata.snapshot_by_name(name)

    def snapshot_as_of_timestamp(self, timestamp_ms: int) -> md.Snapshot:
        """The snapshot that was current at that time."""
        return self.metadata.snapshot_as_of(timestamp_ms)

    def refs(self) -> dict[str, md.SnapshotRef]:
        """Branches and tags by name."""
        return dict(self.metadata.refs)

    def history(self) -> list[md.SnapshotLogEntry]:
        """The snapshots that became current, each with the time."""
        return list(self.metadata.snapshot_log)

    def statistics(self) -> list[md.StatisticsFile]:
        """The statistics files."""
        return list(self.metadata.statistics)

    def partition_statistics(self) -> list[md.PartitionStatisticsFile]:
        """The partition statistics files."""
        return list(self.metadata.partition_statistics)

    @property
    def maintenance(self) -> Maintenance:
        """Maintenance procedures: `table.maintenance.expire_snapshots(...)`."""
        return Maintenance(self)

    @property
    def surroundings(self) -> cm.Surroundings | None:
        """What is known of the catalog that the table is in."""
        return self._committer if isinstance(self._committer, cm.Surroundings) else None

    def refresh(self) -> Self:
        """Move this handle to the newest state; an error if another table has the name by now."""
        newest = self._committer.load()
        cm.check_same_table(self.metadata, newest.metadata, ".".join(self._identifier))
        if newest.metadata_location is None or newest.metadata_location != self._state.metadata_location:
            # A metadata file never changes: what is known of the same one stays, with all that was derived from it.
            self._state = newest
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
        """A scan of one snapshot: rows by a filter, columns by name. Nothing is read until its rows are requested.

        Args:
            row_filter: SQL text such as `"ts >= '2026-01-01' and region in ('eu', 'us')"`, or an expression.
            selected_fields: columns by name, nested ones with dots; metadata columns such as `_file` may follow `"*"`, and
                values inside of variants, such as `doc:a.b::long`, do so in rows of Arrow.
            case_sensitive: whether names are compared by case.
            snapshot_id: the snapshot to read, in place of the current one.
            options: options of planning (docs/scans.md).
            limit: the number of rows at most.
            ref: the branch or tag to read.
            as_of: read what was current at this time, in milliseconds or as a datetime with a zone.

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
        """All rows as a stream for any library of Arrow's PyCapsule interface; each call scans the handle's state anew."""
        return self.scan().__arrow_c_stream__(requested_schema)

    def to_polars(self) -> "pl.LazyFrame":
        """All rows as a lazy query of polars, which reads what it needs: `scan().to_polars_lazy()`."""
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
        """Rows inserted and deleted after one snapshot (from the first on without it) and up to another.

        Args:
            from_snapshot_id: the snapshot after which changes begin.
            to_snapshot_id: the last snapshot; without it the newest one of the branch.
            row_filter: which rows are wanted.
            selected_fields: the columns that are shown, and compared.
            case_sensitive: whether names of columns are.
            options: options of planning (docs/scans.md).
            branch: the branch that the snapshots are of.
            identifier_columns: show a delete and an insert of equal values there as an update, as `with_updates` does.
            net_changes: show only what is left of all changes of the range, as `with_net_changes` does.

        A row that a commit only moves to another file is no change. `scan_changes(...).with_updates()` shows a delete and an
        insert of one row as an update, by identifier fields or row ids.
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
        """What is different between two snapshots: columns, files, and rows.

        Args:
            before: a snapshot id, or the name of a branch or tag; None is the state before the first commit.
            after: the same; the current snapshot by default.
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
    ) -> VerificationReport:
        """Check that all parts of the table fit together, and change nothing.

        One snapshot by id, branch or tag; without one, all that the table has (`snapshots="all"`), or those of branches
        and tags (`"refs"`). `level` is the depth: `metadata`, `files`, `footers` or `data`; for the last two, `sample`
        is the fraction of the files to open. Files under `locations` count like those under the table's own.
        """
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

    def health(self, branch: str | None = None, *, progress: Listener | None = None) -> TableHealth:
        """What the table needs, as `table.maintenance.health()` says it: read from manifests alone."""
        return self.maintenance.health(branch, progress=progress)

    def storage_layout(self, *, progress: Listener | None = None) -> StorageLayout:
        """What the table's files take, as `table.maintenance.storage_layout()` says it."""
        return self.maintenance.storage_layout(progress=progress)

    @property
    def inspect(self) -> Inspect:
        """The metadata tables: `table.inspect.files()`, `table.inspect.partitions()` and so on."""
        return Inspect(self.metadata, self.storage, self.metadata_location)

    # -- how it changes

    def transaction(self) -> Transaction:
        """Several changes, one commit.

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

    def _as_committed(self, planned: md.Snapshot | None) -> md.Snapshot | None:
        # Another writer may have been faster: then it has another parent and other numbers than planned.
        return None if planned is None else self.metadata.snapshot_by_id(planned.snapshot_id)
