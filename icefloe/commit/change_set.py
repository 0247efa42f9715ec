"""Several changes, one commit: each is prepared on what the ones before it leave, and nothing is visible before the end."""

from collections.abc import Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from icefloe import errors, manifests as mf, metadata as md, planning
from icefloe.commit.change import Change, PreparedChanges, Timing, Workbench
from icefloe.commit.committer import Committer, CurrentState, TableState, check_same_table
from icefloe.commit.outcome import Committed, Outcome, result_of
from icefloe.commit.retry import CommitLoop
from icefloe.metadata import updates as up
from icefloe.storage import Storage


@dataclass(eq=False, repr=False)
class ChangeSet:
    """Changes of one table that are collected, and committed together or not at all.

    A change is prepared at once, so that bad input is told where it is given, and prepared again on newer metadata only
    when another writer was faster.
    """

    base: TableState
    _committer: Committer
    _changes: PreparedChanges
    _timing: Timing
    _reporter: planning.Reporter
    _handle: CurrentState
    """The handle that moves to the state that is committed."""
    _is_open: bool = True

    @property
    def _bench(self) -> Workbench:
        return self._changes.bench

    @property
    def table_metadata(self) -> md.TableMetadata:
        """What the table will be: the base with all changes so far, whose files are there to be read."""
        self._bench.settle()
        return self._changes.applied.metadata

    @property
    def storage(self) -> Storage:
        """Where the table's files are."""
        return self._committer.storage

    @property
    def row_files(self) -> list[mf.DataFile]:
        """Data and delete files of the changes; who writes one puts it here, so that it goes if the commit does not happen."""
        return self._bench.row_files

    def add(self, change: Change) -> md.Snapshot | None:
        """One more change, prepared on what those before it leave: the snapshot that it makes, if any.

        It is the snapshot as it will be if no other writer is faster.
        """
        self._check_open()
        known = frozenset(self._bench.first_parents)
        try:
            prepared = self._changes.add(change)
        except errors.LocationNotFoundError:
            # The base may have expired with its files, which says nothing about the table as it is now.
            for snapshot_id in self._bench.first_parents.keys() - known:
                del self._bench.first_parents[snapshot_id]
            if not self.rebase():
                raise
            prepared = self._changes.add(change)
        # Not from the metadata: to ask for that is to wait for all files that it names.
        added = (update.snapshot for update in prepared.updates if isinstance(update, up.AddSnapshotUpdate))
        return next((snapshot for snapshot in added if snapshot.snapshot_id in change.snapshot_ids), None)

    def rebase(self) -> bool:
        """Take the newest state as the base, and prepare all changes on that; whether the table had moved on.

        Nothing that was read from the base counts any more, but by what the changes say of it (see `Planned`).
        """
        self._check_open()
        self._bench.settle()
        newest = self._committer.load()
        check_same_table(self.base.metadata, newest.metadata, self._committer.name)
        if newest.metadata_location is None or newest.metadata_location == self.base.metadata_location:
            return False
        self._bench.attempt += 1
        self._changes = self._changes.on(newest.metadata)
        self.base = newest
        return True

    def discard(self, files: Iterable[mf.DataFile]) -> None:
        """Delete files of rows that no change needs any more."""
        self._bench.discard(file.file_path for file in files)

    def abandon(self) -> None:
        """Give it up: nothing was sent to the catalog, so that its files can go."""
        if self._is_open:
            self._bench.discard_all()
            self._changes = PreparedChanges(self.base.metadata, self._bench)

    def close(self) -> None:
        """Take no more changes: they are about to be committed, and only whoever does that knows what happened."""
        self._check_open()
        self._is_open = False

    def commit(self) -> Committed:
        """Commit all changes, or fail as a whole: what was committed."""
        return result_of(self.try_commit(), self._committer.name)

    def try_commit(self) -> Outcome:
        """The same, with the outcome as a value instead of an error; the table handle moves to the new state."""
        self.close()
        outcome = CommitLoop(self.base, self._changes, self._committer, self._timing, self._reporter).run()
        if isinstance(outcome, Committed):
            self._handle.state = outcome.state
        return outcome

    def as_committed(self, planned: md.Snapshot | None) -> md.Snapshot | None:
        """A planned snapshot as it is in the table, once the changes are committed."""
        if planned is None or self._is_open:
            return planned
        # After a concurrent commit it has another parent and sequence number than planned.
        return self._handle.state.metadata.snapshot_by_id(planned.snapshot_id)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            if self._is_open:
                result_of(self.try_commit(), self._committer.name)
        elif issubclass(kind, Exception):
            self.abandon()

    def _check_open(self) -> None:
        if not self._is_open:
            raise errors.InvalidInputError("the transaction has ended; start another one")
