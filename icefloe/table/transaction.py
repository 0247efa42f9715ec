"""Several changes of one table in one commit, under the names by which the handle offers each alone."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import TYPE_CHECKING, Self

from icefloe.commit import ChangeSet, Committed, Expire, Outcome, SendUpdates, SetLocation, StatisticsChange, result_of
from icefloe.metadata import Snapshot, TableMetadata, updates as up
from icefloe.rows import Branch, RowOperations
from icefloe.table.changes import TableChanges

if TYPE_CHECKING:
    from icefloe.table.handle import Table


class Transaction(ChangeSet, TableChanges):
    """Changes that are committed together, all or none; the table is not touched before.

    Leaving the `with` block commits; leaving it by an error discards everything.

    >>> with table.transaction() as tx, tx.update_schema() as update:
    ...     changed = update.rename_column("total", "amount")
    >>> table.schema().column_names
    ('id', 'region', 'amount')
    """

    def __init__(self, table: "Table") -> None:
        super().__init__(
            table._state, table._committer, caches=table._caches, timing=table._timing, reporter=table._reporter
        )
        self._table = table

    def rows(self, branch: str | None = None, snapshot_properties: Mapping[str, str] | None = None) -> RowOperations:
        """Changes of rows: append, overwrite, delete, upsert; each call is one snapshot of the commit."""
        return RowOperations(Branch.on(self, self._table.scan, branch, snapshot_properties))

    def update_location(self, location: str) -> Self:
        """Move the base location for new files."""
        self.add(SetLocation(location))
        return self

    def update_statistics(self, change: StatisticsChange) -> Self:
        """Set and remove statistics files."""
        self.add(change)
        return self

    def expire_snapshots(self, expire: Expire) -> Self:
        """Drop old snapshots from the metadata; no file is deleted."""
        self.add(expire)
        return self

    def apply_updates(self, *updates: up.TableUpdate) -> Self:
        """Any metadata updates, as they are."""
        self.add(SendUpdates(updates))
        return self

    def commit_transaction(self) -> "Table":
        """Commit all changes, or fail as a whole."""
        self.commit()
        return self._table

    def commit(self) -> Committed:
        """The same, with what was committed."""
        return result_of(self.try_commit(), self._committer.name)

    def try_commit(self) -> Outcome:
        """The same, with the outcome as a value instead of an error; the table handle moves to the new state."""
        outcome = self._send()
        if isinstance(outcome, Committed):
            self._table._state = outcome.state
        return outcome

    def run(self, change: Callable[[Self], Snapshot | None]) -> Snapshot | None:
        """Make a change and commit: its snapshot as it was committed, as another writer may have been faster."""
        with self:
            planned = change(self)
        return None if planned is None else self._table.metadata.snapshot_by_id(planned.snapshot_id)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            if self._is_open:
                self.commit()
        elif issubclass(kind, Exception):
            self.abandon()

    def _begin(self) -> AbstractContextManager[Self]:
        return nullcontext(self)

    def _change(self, change: Callable[[Self], Snapshot | None]) -> Snapshot | None:
        return change(self)

    @property
    def _planned_on(self) -> TableMetadata:
        return self.table_metadata
