"""The one retry loop: what is tried again, how an outcome is determined, and when written files may be deleted.

A commit happened, certainly did not, or nobody knows: three types, so that none is taken for another. Only a lost race is
tried again. Before that, and before anything is deleted, the table is read back and searched for our own snapshots: a commit
that seemed lost may have happened. What is neither certain is unknown, and deletes nothing.
"""

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from icefloe import properties as props
from icefloe.commit.change import Prepared, Workbench
from icefloe.commit.committer import Committer, TableState, check_committed, check_same_table
from icefloe.errors import (
    CommitFailed,
    CommitStateUnknown,
    IcefloeError,
    InvalidInputError,
    InvalidPropertyError,
    LocationNotFoundError,
    StaleBaseError,
    StateError,
)
from icefloe.metadata import TableMetadata, apply_all, summary as totals, updates as up


@dataclass(frozen=True, slots=True)
class Committed:
    """It happened; `state` holds it, and maybe later commits of others. `base` is what it was prepared on."""

    state: TableState
    snapshot_ids: tuple[int, ...] = ()
    attempts: int = 1
    base: TableState | None = None


@dataclass(frozen=True, slots=True)
class Rejected:
    """It certainly did not happen. `cleaned` says whether the files that were written for it are deleted."""

    error: Exception
    attempts: int = 1
    cleaned: bool = False


@dataclass(frozen=True, slots=True)
class Unknown:
    """It may have happened or not, now or a moment later; every file written for it is kept."""

    error: Exception
    attempts: int = 1


Outcome = Committed | Rejected | Unknown


def _clock_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class Timing:
    """Where waiting and the time come from; tests put their own here."""

    sleep: Callable[[float], None] = time.sleep
    clock_ms: Callable[[], int] = _clock_ms
    jitter: Callable[[], float] = field(default_factory=lambda: random.SystemRandom().random)


@dataclass(frozen=True, slots=True)
class Backoff:
    """How often and how long to wait between attempts, in milliseconds."""

    retries: int
    min_wait_ms: int
    max_wait_ms: int
    total_timeout_ms: int

    def wait_ms(self, attempt: int, jitter: float) -> float:
        """How long to wait after the attempt of that number, from 1 on: twice as long each time, less a random part."""
        longest = min(self.min_wait_ms * 2.0 ** min(attempt - 1, 60), max(self.max_wait_ms, self.min_wait_ms))
        return longest * (0.5 + 0.5 * jitter)


def commit_backoff(properties: props.Properties) -> Backoff:
    """What a table says about trying a commit again."""
    return Backoff(
        props.COMMIT_NUM_RETRIES.of(properties),
        props.COMMIT_MIN_WAIT_MS.of(properties),
        props.COMMIT_MAX_WAIT_MS.of(properties),
        props.COMMIT_TOTAL_TIMEOUT_MS.of(properties),
    )


def status_backoff(properties: props.Properties) -> Backoff:
    """What a table says about reading it back after a commit whose outcome is not known."""
    return Backoff(
        props.COMMIT_STATUS_NUM_RETRIES.of(properties),
        props.COMMIT_STATUS_MIN_WAIT_MS.of(properties),
        props.COMMIT_STATUS_MAX_WAIT_MS.of(properties),
        props.COMMIT_STATUS_TOTAL_TIMEOUT_MS.of(properties),
    )


def _readable(read: Callable[[props.Properties], Backoff], properties: props.Properties) -> Backoff:
    """The same, or the defaults if another writer stored nonsense: a table must not become uncommittable by that."""
    try:
        return read(properties)
    except InvalidPropertyError:
        return read({})


Attempt = Callable[[TableState], Prepared]
"""Makes the commit anew on a state of the table."""


@dataclass(slots=True)
class _Tried:
    """One attempt: the state that it is made on, and what was prepared on that."""

    state: TableState
    prepared: Prepared | None = None

    @property
    def updates(self) -> tuple[up.TableUpdate, ...]:
        """What was to be sent."""
        return () if self.prepared is None else self.prepared.updates


class CommitLoop:
    """One commit, tried until it is committed, rejected or unknown."""

    def __init__(
        self,
        committer: Committer,
        bench: Workbench,
        attempt: Attempt,
        snapshot_ids: Callable[[], Sequence[int]],
        timing: Timing,
    ) -> None:
        self._committer = committer
        self._bench = bench
        self._attempt = attempt
        self._snapshot_ids = snapshot_ids
        self._timing = timing

    def run(self, base: TableState, first: Prepared | None = None) -> Outcome:
        """The outcome of the commit; `first` is what was prepared on `base` already."""
        backoff = _readable(commit_backoff, base.metadata.properties)
        started = self._timing.clock_ms()
        state, attempts, lost = base, 1, 0
        tried = _Tried(state, first)
        while True:
            ended = self._once(tried, attempts)
            if not isinstance(ended, CommitFailed):
                return ended
            # To be behind at first is no lost race: nothing was sent, and there is nothing to wait for.
            is_behind = attempts == 1 and isinstance(ended, StaleBaseError)
            if not is_behind:
                lost += 1
                waited = self._timing.clock_ms() - started
                if lost > backoff.retries or waited >= backoff.total_timeout_ms:
                    return self._rejected(tried, ended, attempts, tried.updates)
                self._timing.sleep(backoff.wait_ms(lost, self._timing.jitter()) / 1000)
            try:
                # Another attempt may read what this one wrote.
                self._bench.settle()
                state = self._committer.load()
                check_same_table(base.metadata, state.metadata, self._committer.name)
            except IcefloeError as error:
                return self._rejected(tried, error, attempts)
            if not is_behind and self._is_there(state, tried.updates):
                return self._committed(state, attempts, tried)
            attempts += 1
            self._bench.attempt += 1
            tried = _Tried(state)

    def _once(self, tried: _Tried, attempts: int) -> Outcome | CommitFailed:
        """One attempt: the changes prepared, unless they are already, and sent."""
        state = tried.state
        try:
            prepared = tried.prepared = self._attempt(state) if tried.prepared is None else tried.prepared
        except LocationNotFoundError as error:
            # Others may have deleted what this state names, after they had made another one.
            return self._again(tried, error) or self._rejected(tried, error, attempts)
        except IcefloeError as error:
            return self._rejected(tried, error, attempts)
        if not prepared.updates:
            return Committed(state, (), attempts, state)
        try:
            done = self._committer.commit(state, prepared.requirements, prepared.updates, self._bench.settle)
            done = check_committed(done, prepared.updates, self._committer.name)
        except CommitFailed as error:
            return error
        except (InvalidInputError, StateError) as error:
            # What is wrong on newer metadata may be right when it is prepared on that.
            return self._again(tried, error) or self._rejected(tried, error, attempts, tried.updates)
        except Exception as error:  # noqa: BLE001 - whatever cannot be classified is unknown, and found out below
            if self._bench.failure is not None:
                # There is no swap without all files, so that nothing can have happened.
                return self._rejected(tried, error, attempts)
            return self._find_out(tried, error, attempts)
        return self._committed(done, attempts, tried)

    def _again(self, tried: _Tried, error: IcefloeError) -> CommitFailed | None:
        """The error as one of a lost race, if the table is not what was prepared on any more."""
        try:
            found = self._committer.load()
            check_same_table(tried.state.metadata, found.metadata, self._committer.name)
        except Exception:  # noqa: BLE001 - the first error says more
            return None
        if found.metadata_location is None or found.metadata_location == tried.state.metadata_location:
            return None
        failed = CommitFailed(f"{self._committer.name} has changed since the commit was prepared: {error}")
        failed.__cause__ = error
        return failed

    def _find_out(self, tried: _Tried, error: Exception, attempts: int) -> Outcome:
        """Read the table back until our commit is seen in it; not to see it proves nothing, as it may still arrive."""
        base = tried.state.metadata
        backoff = _readable(status_backoff, base.properties)
        started = self._timing.clock_ms()
        for check in range(1, backoff.retries + 2):
            try:
                found = self._committer.load()
                check_same_table(base, found.metadata, self._committer.name)
                if self._is_there(found, tried.updates):
                    return self._committed(found, attempts, tried)
            except Exception as problem:  # noqa: BLE001 - as long as nothing can be read, nothing is known
                error.add_note(f"reading {self._committer.name} back failed: {problem}")
            if check > backoff.retries or self._timing.clock_ms() - started >= backoff.total_timeout_ms:
                break
            self._timing.sleep(backoff.wait_ms(check, self._timing.jitter()) / 1000)
        return Unknown(error, attempts)

    def _is_there(self, found: TableState, updates: Sequence[up.TableUpdate]) -> bool:
        """Whether the commit is in the table: by its snapshots, or, without any, if doing it again would change nothing."""
        if found.metadata_location is None:
            # Not created yet: that is what is to be committed, not what the catalog holds.
            return False
        metadata, made = found.metadata, self._snapshot_ids()
        if made:
            return any(is_in_history(each, metadata) for each in made)
        try:
            return bool(updates) and apply_all(metadata, updates, metadata.last_updated_ms) is metadata
        except IcefloeError:
            return False

    def _committed(self, state: TableState, attempts: int, tried: _Tried) -> Committed:
        return Committed(state, tuple(self._snapshot_ids()), attempts, tried.state)

    def _rejected(self, tried: _Tried, error: Exception, attempts: int, sent: Sequence[up.TableUpdate] = ()) -> Outcome:
        """Delete what was written, but only if the table can be read and our commit is nowhere in it."""
        if not self._bench.written and not sent:
            return Rejected(error, attempts, self._bench.discard_all())
        try:
            found = self._committer.load()
            check_same_table(tried.state.metadata, found.metadata, self._committer.name)
        except Exception as problem:  # noqa: BLE001 - without proof nothing is deleted, whatever went wrong
            error.add_note(
                f"the files of this commit are kept, as {self._committer.name} cannot be read back: {problem}"
            )
            return Rejected(error, attempts, False)
        if self._is_there(found, sent):
            return self._committed(found, attempts, tried)
        return Rejected(error, attempts, self._bench.discard_all())


def is_in_history(snapshot_id: int, metadata: TableMetadata) -> bool:
    """Whether a snapshot is or ever was in the table, by all that its metadata tells."""
    return (
        snapshot_id in metadata.snapshots_by_id
        or any(entry.snapshot_id == snapshot_id for entry in metadata.snapshot_log)
        or any(ref.snapshot_id == snapshot_id for ref in metadata.refs.values())
        or any(each.parent_snapshot_id == snapshot_id for each in metadata.snapshots)
        or any(
            each.summary is not None and each.summary.get(totals.SOURCE_SNAPSHOT_ID) == str(snapshot_id)
            for each in metadata.snapshots
        )
    )


def result_of(outcome: Outcome, name: str) -> Committed:
    """The outcome if the commit happened, else its error."""
    match outcome:
        case Committed():
            return outcome
        case Rejected(error):
            raise error
        case Unknown(CommitStateUnknown() as error):
            raise error
        case Unknown(error):
            raise CommitStateUnknown(
                f"whether the commit to {name} happened is not known: {error}; its files are kept, look at the table"
            ) from error
