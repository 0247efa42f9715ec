"""Several tables, one commit: the retry loop of one of them leads, and what it sends is the changes of all.

A catalog that takes part changes all tables in one step or none. What such a commit came to is read from the table that leads,
and checked in the others before any file of theirs is deleted: a server may have broken its word.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from icefloe import errors
from icefloe.commit.change import Prepared
from icefloe.commit.change_set import ChangeSet
from icefloe.commit.committer import BeforeSwap, Committer, TableState, check_committed, check_same_table
from icefloe.commit.outcome import Committed, Outcome, Rejected, Unknown
from icefloe.commit.report import report_commit
from icefloe.commit.retry import CommitLoop, holds, leftovers
from icefloe.storage import Storage


@dataclass(frozen=True, slots=True)
class Part:
    """One table of a commit to several: what was prepared, and on which state."""

    committer: Committer
    base: TableState
    prepared: Prepared


SendAll = Callable[[Sequence[Part]], Sequence[TableState]]
"""Changes all tables in one step, once: see `Committer.commit`."""


class _Member:
    """A table that follows the one that leads."""

    def __init__(self, changes: ChangeSet) -> None:
        self.set = changes
        self.committer = changes._committer
        self.bench = changes._bench
        self.state = changes.base
        self.prepared = changes._changes.combined
        self.done: TableState | None = None

    def renew(self) -> None:
        """Prepare the changes on the newest state of the table, if it is another one by now."""
        newest = self._newest()
        if newest.metadata_location == self.state.metadata_location:
            return
        self.bench.settle()
        self.bench.attempt += 1
        self.state, self.prepared = newest, self.set._changes.on(newest.metadata).combined

    def holds(self) -> TableState | None:
        """The state of the table, if the commit is in it."""
        newest = self._newest()
        return newest if holds(newest, self.set._changes.snapshot_ids, self.prepared.updates) else None

    def _newest(self) -> TableState:
        newest = self.committer.load()
        check_same_table(self.state.metadata, newest.metadata, self.committer.name)
        return newest


class _Leader:
    """The committer of the table that leads, whose commits are those of all tables."""

    def __init__(self, changes: ChangeSet, members: Sequence[_Member], send: SendAll) -> None:
        self._committer = changes._committer
        self._bench = changes._bench
        self._members = members
        self._send = send
        self._attempts = 0

    @property
    def storage(self) -> Storage:
        """Where the table's files are."""
        return self._committer.storage

    @property
    def name(self) -> str:
        """The table's full name."""
        return self._committer.name

    def load(self) -> TableState:
        """The newest state of the table."""
        return self._committer.load()

    def commit(self, base: TableState, prepared: Prepared, before_swap: BeforeSwap) -> TableState:
        """One attempt to change all tables."""
        self._renew()
        before_swap()
        self._settle()
        parts = [Part(each.committer, each.state, each.prepared) for each in self._members]
        first, *others = self._send([Part(self._committer, base, prepared), *parts])
        for member, state in zip(self._members, others, strict=True):
            member.done = check_committed(state, member.prepared.updates, member.committer.name)
        return first

    def _renew(self) -> None:
        self._attempts += 1
        if self._attempts == 1:
            return
        try:
            for member in self._members:
                member.renew()
        except (errors.StorageError, errors.ServiceUnavailableError) as error:
            raise errors.CommitFailed(f"the commit was not started; nothing was changed: {error}") from error

    def _settle(self) -> None:
        for member in self._members:
            try:
                member.bench.settle()
            except Exception as error:
                # Without all files of all tables there is no commit of any.
                self._bench.failure = error
                raise


def commit_together(sets: Sequence[ChangeSet], send: SendAll) -> list[Outcome]:
    """Commit the changes of several tables in one step; how that ended, for each of them."""
    changed = [each for each in sets if each._changes.combined.updates]
    # Snapshots tell best whether a commit happened.
    leader = next((each for each in changed if each._changes.snapshot_ids), changed[0] if changed else None)
    for each in sets:
        each.close()
    if leader is None:
        return [Committed(each.base, (), 1, each.base) for each in sets]
    members = [_Member(each) for each in changed if each is not leader]
    committer = _Leader(leader, members, send)
    outcome = CommitLoop(leader.base, leader._changes, committer, leader._timing, leader._reporter).run()
    outcomes: dict[int, Outcome] = {id(each.set): _outcome(each, outcome) for each in members}
    if any(isinstance(each, Unknown) for each in outcomes.values()) and not isinstance(outcome, Unknown):
        outcome = Unknown(_split(committer.name, outcomes.values()), outcome.attempts)
    outcomes[id(leader)] = outcome
    for member in members:
        report_commit(
            outcomes[id(member.set)], member.set.base.metadata, member.committer.name, 0.0, member.set._reporter
        )
    return [outcomes.get(id(each), Committed(each.base, (), 1, each.base)) for each in sets]


def _outcome(member: _Member, of_leader: Outcome) -> Outcome:
    """What became of a member, by what became of the leader and by what its own table says."""
    if isinstance(of_leader, Unknown):
        return of_leader
    # Without snapshots, what looks like the commit may be the work of others, and no file depends on it.
    needs_reading = isinstance(of_leader, Committed) or bool(member.set._changes.snapshot_ids)
    try:
        state = member.done or (member.holds() if needs_reading else None)
    except Exception as problem:  # noqa: BLE001 - as long as nothing can be read, nothing is known
        if isinstance(of_leader, Rejected):
            # Nothing was done, but here nothing proves it, as when the name of a new table is another's: its files stay.
            return Rejected(of_leader.error, of_leader.attempts, False)
        return Unknown(_unread(member, of_leader, problem), of_leader.attempts)
    if isinstance(of_leader, Committed):
        if state is None:
            return Unknown(errors.CommitStateUnknown(f"{member.committer.name} lacks the commit"), of_leader.attempts)
        outcome = Committed(state, member.set._changes.snapshot_ids, of_leader.attempts, member.state)
        member.bench.discard(leftovers(outcome, member.bench))
        return outcome
    if state is not None:
        return Unknown(errors.CommitStateUnknown(f"{member.committer.name} has the commit"), of_leader.attempts)
    return Rejected(of_leader.error, of_leader.attempts, of_leader.cleaned and member.bench.discard_all())


def _unread(member: _Member, of_leader: Outcome, problem: Exception) -> errors.CommitStateUnknown:
    return errors.CommitStateUnknown(
        f"{member.committer.name} cannot be read back after a commit that was {type(of_leader).__name__.lower()}: {problem}"
    )


def _split(name: str, outcomes: Iterable[Outcome]) -> errors.CommitStateUnknown:
    problems = [str(each.error) for each in outcomes if isinstance(each, Unknown)]
    return errors.CommitStateUnknown(
        f"not all tables say the same of the commit that {name} leads: {'; '.join(problems)}"
    )
