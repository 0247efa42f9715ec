"""Several changes of one table in one commit, under the names by which the handle offers each alone."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Self

from icefloe import commit as cm
from icefloe.metadata import Snapshot, TableMetadata, updates as up
from icefloe.progress import Listener, Stage, silent
from icefloe.rows import Branch, RowOperations
from icefloe.table.changes import TableChanges

if TYPE_CHECKING:
    from icefloe.table.handle import Table


class Transaction(cm.ChangeSet, TableChanges):
    """Changes that are committed together, all or none; the table is not touched before.

    Leaving the `with` block commits; leaving it by an error discards everything.

    >>> with table.transaction() as tx, tx.update_schema() as update:
    ...     changed = update.rename_column("total", "amount")
    >>> table.schema().column_names
    ('id', 'region', 'amount')
    """

    def __init__(self, table: "Table") -> None:
        bench = cm.Workbench(table.storage, table._caches, table._timing.clock_ms)
        changes = cm.PreparedChanges(table.metadata, bench)
        super().__init__(table.state, table._committer, changes, table._timing, table._reporter, table._handle)
        self._table = table

    def rows(
        self,
        branch: str | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        progress: Listener | None = None,
    ) -> RowOperations:
        """Changes of rows: append, overwrite, delete, upsert; each call is one snapshot of the commit."""
        metadata = self.table_metadata
        target = cm.target_of(metadata, branch, snapshot_properties)
        listener = progress or silent
        return RowOperations(Branch(self, metadata, target, self._table.scan, listener, Stage("rows", None, listener)))

    def update_location(self, location: str) -> Self:
        """Move the base location for new files."""
        self.add(cm.SetLocation(location))
        return self

    def update_statistics(self, change: cm.StatisticsChange) -> Self:
        """Set and remove statistics files."""
        self.add(change)
        return self

    def expire_snapshots(self, expire: cm.Expire) -> Self:
        """Drop old snapshots from the metadata; no file is deleted."""
        self.add(expire)
        return self

    def apply_updates(self, *updates: up.TableUpdate) -> Self:
        """Any metadata updates, as they are."""
        self.add(cm.SendUpdates(updates))
        return self

    def commit_transaction(self) -> "Table":
        """Commit all changes, or fail as a whole."""
        self.commit()
        return self._table

    def run(self, change: Callable[[Self], Snapshot | None]) -> Snapshot | None:
        """Make a change and commit: its snapshot as it was committed, as another writer may have been faster."""
        with self:
            planned = change(self)
        return self.as_committed(planned)

    def _begin(self) -> AbstractContextManager[Self]:
        return nullcontext(self)

    @property
    def _planned_on(self) -> TableMetadata:
        return self.table_metadata
