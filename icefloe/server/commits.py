"""Decides how commits of clients are carried out: requirements on the newest metadata, tried again when others are faster.

The rules of a commit are those of the rooms `metadata` and `catalog`; here they are put in order, and told in the words that
clients look for. Whether a commit happened is never guessed: CommitFailed says for certain that it did not, and
CommitStateUnknown that nobody knows.
"""

import random
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from icefloe import errors
from icefloe.catalog import Identifier, ServedCatalog, TableChange
from icefloe.commit import Prepared, TableState, now_ms
from icefloe.metadata import TableMetadata, ViewMetadata, apply_all, requirements as req, updates as up
from icefloe.rest import errors_codec as words
from icefloe.rest.tables_codec import TableCommit
from icefloe.server.stopwatch import Stopwatch
from icefloe.server.warehouses import Warehouse

_LONGEST_WAIT_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Committing:
    """Commits to the tables of one warehouse."""

    warehouse: Warehouse
    attempts: int
    watch: Stopwatch = field(default_factory=Stopwatch)

    @property
    def served(self) -> ServedCatalog:
        """The catalog of the warehouse."""
        return self.warehouse.served

    def commit(self, identifier: Identifier, commit: TableCommit) -> TableState:
        """Change one table, or create it; the table as it is then."""
        if creates(commit):
            self._check_free(identifier)
            return self.warehouse.remember(self.served.create_table(identifier, new_table(commit)))
        for attempt in range(1, self.attempts + 1):
            with self.watch.part("read"):
                state = self.current(identifier, is_first=attempt == 1)
            if is_done(state.metadata, commit.updates):
                return state
            with self.watch.part("apply"):
                prepared = prepare(state.metadata, commit)
            try:
                done = self._once(identifier, state, prepared)
            except errors.CommitFailed:
                if attempt == self.attempts:
                    raise
                wait(attempt)
            else:
                return self.warehouse.remember(done)
        raise AssertionError("the last attempt returns or raises")

    def _once(self, identifier: Identifier, state: TableState, prepared: Prepared) -> TableState:
        """One attempt: the metadata file is written, and then the pointer is swapped; the client wrote all other files."""
        began, written = time.perf_counter(), 0.0

        def before_swap() -> None:
            nonlocal written
            written = time.perf_counter()
            self.watch.add("write", written - began)

        try:
            return self.served.committer(identifier).commit(state, prepared, before_swap)
        finally:
            if written:
                self.watch.add("swap", time.perf_counter() - written)

    def commit_all(self, commits: Sequence[tuple[Identifier, TableCommit]]) -> list[TableState]:
        """Change several tables in one step, or none of them."""
        for attempt in range(1, self.attempts + 1):
            changes = [self._change(identifier, commit, attempt == 1) for identifier, commit in commits]
            try:
                done = self.served.commit_all(changes)
            except errors.CommitFailed:
                if attempt == self.attempts:
                    raise
                wait(attempt)
            else:
                return [self.warehouse.remember(state) for state in done]
        raise AssertionError("the last attempt returns or raises")

    def current(self, identifier: Identifier, is_first: bool = True) -> TableState:
        """What a table is now; after a lost race with its files, so that those of the race can go."""
        if not is_first:
            return self.warehouse.remember(self.served.committer(identifier).load())
        location = self.served.table_location(identifier)
        if location is None:
            raise words.no_table(identifier)
        return self.warehouse.state_at(location)

    def _check_free(self, identifier: Identifier) -> None:
        if self.served.table_location(identifier) is not None:
            raise errors.CommitFailed(words.requirement_text(req.AssertCreate(), None))

    def _change(self, identifier: Identifier, commit: TableCommit, is_first: bool) -> TableChange:
        if creates(commit):
            if not self.served.namespace_exists(identifier[:-1]):
                raise words.no_namespace(identifier[:-1])
            self._check_free(identifier)
            return TableChange(identifier, None, created=new_table(commit))
        state = self.current(identifier, is_first)
        if is_done(state.metadata, commit.updates):
            return TableChange(identifier, state)
        return TableChange(identifier, state, prepare(state.metadata, commit))


def creates(commit: TableCommit) -> bool:
    """Whether a commit creates its table; it can have no other requirement then."""
    if req.AssertCreate() not in commit.requirements:
        return False
    if len(commit.requirements) > 1:
        raise errors.InvalidInputError("Invalid create requirements: assert-create cannot come with other requirements")
    return True


def new_table(commit: TableCommit) -> TableMetadata:
    """The table that the updates of a commit create.

    Some clients, DuckDB among them, name the current schema last, and specs and orders are bound to it before that.
    """
    schemas = (up.AssignUUIDUpdate, up.UpgradeFormatVersionUpdate, up.AddSchemaUpdate, up.SetCurrentSchemaUpdate)
    ordered = sorted(commit.updates, key=lambda update: not isinstance(update, schemas))
    return apply_all(None, ordered, now_ms())


def prepare(metadata: TableMetadata, commit: TableCommit) -> Prepared:
    """The commit on this metadata, if its requirements hold and its updates can be made."""
    check_requirements(commit.requirements, metadata)
    try:
        apply_all(metadata, commit.updates, now_ms())
    except errors.CommitFailed as error:
        # A snapshot that was made before others came: its numbers are taken.
        raise errors.CommitFailed(f"Validation failed, please retry: {error}") from error
    except errors.AlreadyExistsError as error:
        raise errors.ValidationError(str(error)) from error
    return Prepared(commit.updates, commit.requirements)


def check_requirements(requirements: Iterable[req.Requirement], state: TableMetadata | ViewMetadata) -> None:
    """Fail at the first requirement that does not hold, in the words that clients look for."""
    for requirement in requirements:
        try:
            requirement.check(state)
        except errors.CommitFailed as error:
            raise errors.CommitFailed(words.requirement_text(requirement, state)) from error


def is_done(metadata: TableMetadata, updates: Sequence[up.TableUpdate]) -> bool:
    """Whether the table has all snapshots that a commit adds, so that the commit happened before, and is sent once more.

    Ids of snapshots are random, and their manifest lists are written for them alone. To call this a lost race would make
    the client delete the files of its own commit.
    """
    added = [update.snapshot for update in updates if isinstance(update, up.AddSnapshotUpdate)]
    known = [metadata.snapshots_by_id.get(snapshot.snapshot_id) for snapshot in added]
    return bool(added) and all(
        other is not None and other.manifest_list == snapshot.manifest_list
        for snapshot, other in zip(added, known, strict=True)
    )


def wait(attempt: int) -> None:
    """Let others go first for a moment."""
    longest = min(_LONGEST_WAIT_SECONDS, 0.005 * 2**attempt)
    time.sleep(random.SystemRandom().uniform(0, longest))
