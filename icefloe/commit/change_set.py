"""Several changes, one commit: each is prepared on what the ones before it leave, and nothing is visible before the end."""

from collections.abc import Iterable

from icefloe.commit.change import Caches, Change, PreparedChanges, Workbench
from icefloe.commit.committer import Committer, TableState, check_same_table
from icefloe.commit.parent import Parent
from icefloe.commit.partitions import normal_paths
from icefloe.commit.report import report_commit
from icefloe.commit.retry import CommitLoop, Committed, Outcome, Timing
from icefloe.errors import InvalidInputError, LocationNotFoundError
from icefloe.manifests import WITHOUT_METRICS, DataFile, FileContent, ManifestContent
from icefloe.metadata import Snapshot, TableMetadata, updates as up
from icefloe.planning import LoggingReporter, Reporter
from icefloe.storage import Storage, identity
from icefloe.versions import Feature, allows


class ChangeSet:
    """Changes of one table that are collected, and committed together or not at all.

    A change is prepared at once, so that bad input is told where it is given, and prepared again on newer metadata only
    when another writer was faster.
    """

    def __init__(
        self,
        base: TableState,
        committer: Committer,
        *,
        caches: Caches | None = None,
        timing: Timing | None = None,
        reporter: Reporter | None = None,
    ) -> None:
        self.base = base
        self._committer = committer
        self._timing = timing or Timing()
        self._reporter = reporter or LoggingReporter()
        self._bench = Workbench(committer.storage, caches or Caches(), self._timing.clock_ms)
        self._changes = PreparedChanges(base.metadata, self._bench)
        self._is_open = True

    @property
    def table_metadata(self) -> TableMetadata:
        """What the table will be: the base with all changes so far, whose files are there to be read."""
        self._bench.settle()
        return self._changes.applied.metadata

    @property
    def storage(self) -> Storage:
        """Where the table's files are."""
        return self._committer.storage

    @property
    def row_files(self) -> list[DataFile]:
        """Data and delete files of the changes; who writes one puts it here, so that it goes if the commit does not happen."""
        return self._bench.row_files

    def add(self, change: Change) -> Snapshot | None:
        """One more change, prepared on what those before it leave: the snapshot that it makes, if any.

        It is the snapshot as it will be if no other writer is faster.
        """
        self._check_open()
        known = frozenset(self._bench.first_parents)
        try:
            prepared = self._changes.add(change)
        except LocationNotFoundError:
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

    def _send(self) -> Outcome:
        """Commit all changes, or none; how that ended."""
        self._check_open()
        # From here on only the loop knows what happened, even if it is torn away from us.
        self._is_open = False
        started = self._timing.clock_ms()
        outcome = CommitLoop(self._committer, self._bench, self._changes, self._timing).run(self.base)
        seconds = (self._timing.clock_ms() - started) / 1000
        if isinstance(outcome, Committed):
            self._bench.discard(_leftovers(outcome, self._bench))
        report_commit(outcome, self.base.metadata, self._committer.name, seconds, self._reporter)
        return outcome

    def discard(self, files: Iterable[DataFile]) -> None:
        """Delete files of rows that no change needs any more."""
        self._bench.discard(file.file_path for file in files)

    def abandon(self) -> None:
        """Give it up: nothing was sent to the catalog, so that its files can go."""
        if self._is_open:
            self._bench.discard_all()
            self._changes = PreparedChanges(self.base.metadata, self._bench)

    def _check_open(self) -> None:
        if not self._is_open:
            raise InvalidInputError("the transaction is over; begin another one")


def _leftovers(outcome: Committed, bench: Workbench) -> set[str]:
    """The files that were written for a commit that happened, and that none of its snapshots names; none if in doubt.

    Manifests and manifest lists are left over by failed attempts; position delete files if the table was upgraded
    meanwhile, and has taken what they hold as deletion vectors.
    """
    metadata = outcome.state.metadata
    leftovers = {path for path in bench.written if path.endswith(".avro")} if bench.attempt > 1 else set()
    positions: dict[str, str] = {}
    if not allows(metadata.format_version, Feature.NEW_POSITION_DELETE_FILES):
        deletes = (file for file in bench.row_files if file.content is FileContent.POSITION_DELETES)
        positions = {identity(file.file_path): file.file_path for file in deletes if not file.is_deletion_vector}
    if not leftovers and not positions:
        return set()
    parent = Parent(metadata, bench)
    try:
        for snapshot in map(metadata.snapshot, outcome.snapshot_ids):
            if snapshot.manifest_list is None:
                return set()
            leftovers.discard(metadata.resolve(snapshot.manifest_list))
            for manifest in parent.manifests_of(snapshot):
                leftovers.discard(manifest.manifest_path)
                # A transaction may delete rows first and upgrade the table then: what is named stays.
                if positions and manifest.content is ManifestContent.DELETES:
                    named = normal_paths([parent.read(manifest, WITHOUT_METRICS)])
                    for path in positions.keys() & set(named.to_pylist()):
                        del positions[path]
    except Exception:  # noqa: BLE001 - the commit happened; what cannot be read only keeps leftovers alive
        return set()
    return leftovers.union(positions.values())
