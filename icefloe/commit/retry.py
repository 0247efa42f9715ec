"""The one retry loop: what is tried again, how an outcome is determined, and when written files may be deleted.

A commit happened, certainly did not, or nobody knows: three types, so that none is taken for another. Only a lost race is
tried again. Before that, and before anything is deleted, the table is read back and searched for our own snapshots: a commit
that seemed lost may have happened. What is neither certain is unknown, and deletes nothing.
"""

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from icefloe import errors, properties as props
from icefloe.commit.change import Prepared, PreparedChanges, Workbench
from icefloe.commit.committer import Committer, TableState, check_committed, check_same_table
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


def now_ms() -> int:
    """Milliseconds since 1970 in UTC."""
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class Timing:
    """Where waiting and the time come from; tests put their own here."""

    sleep: Callable[[float], None] = time.sleep
    clock_ms: Callable[[], int] = now_ms
    jitter: Callable[[], float] = field(default_factory=lambda: random.SystemRandom().random)


COMMIT_SETTINGS = (
    props.COMMIT_NUM_RETRIES,
    props.COMMIT_MIN_WAIT_MS,
    props.COMMIT_MAX_WAIT_MS,
    props.COMMIT_TOTAL_TIMEOUT_MS,
)
"""About trying a commit again."""
STATUS_SETTINGS = (
    props.COMMIT_STATUS_NUM_RETRIES,
    props.COMMIT_STATUS_MIN_WAIT_MS,
    props.COMMIT_STATUS_MAX_WAIT_MS,
    props.COMMIT_STATUS_TOTAL_TIMEOUT_MS,
)
"""About reading a table back after a commit whose outcome is not known."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """How often and how long to wait between attempts, in milliseconds."""

    retries: int
    min_wait_ms: int
    max_wait_ms: int
    total_timeout_ms: int

    @staticmethod
    def of(properties: props.Properties, settings: Sequence[props.Property[int]]) -> "Backoff":
        """What a table says, or the defaults if another writer stored nonsense: that must not end all commits to it."""
        try:
            return Backoff(*(setting.of(properties) for setting in settings))
        except errors.InvalidPropertyError:
            return Backoff.of({}, settings)

    def wait_ms(self, attempt: int, jitter: float) -> float:
        """How long to wait after the attempt of that number, from 1 on: twice as long each time, less a random part."""
        longest = min(self.min_wait_ms * 2.0 ** min(attempt - 1, 60), max(self.max_wait_ms, self.min_wait_ms))
        return longest * (0.5 + 0.5 * jitter)


@dataclass(slots=True)
class _Attempt:
    """One attempt: its number, the state that it is made on, and what was prepared on that."""

    number: int
    state: TableState
    prepared: Prepared | None = None

    @property
    def updates(self) -> tuple[up.TableUpdate, ...]:
        """What was to be sent."""
        return () if self.prepared is None else self.prepared.updates


class CommitLoop:
    """One commit, tried until it is committed, rejected or unknown."""

    def __init__(self, committer: Committer, bench: Workbench, changes: PreparedChanges, timing: Timing) -> None:
        self._committer = committer
        self._bench = bench
        self._changes = changes
        self._timing = timing

    def run(self, base: TableState) -> Outcome:
        """The outcome of the commit, which was prepared on `base`."""
        backoff = Backoff.of(base.metadata.properties, COMMIT_SETTINGS)
        started = self._timing.clock_ms()
        lost = 0
        attempt = _Attempt(1, base, self._changes.combined())
        while True:
            ended = self._once(attempt)
            if not isinstance(ended, errors.CommitFailed):
                return ended
            # To be behind at first is no lost race: nothing was sent, and there is nothing to wait for.
            is_behind = attempt.number == 1 and isinstance(ended, errors.StaleBaseError)
            if not is_behind:
                lost += 1
                waited = self._timing.clock_ms() - started
                if lost > backoff.retries or waited >= backoff.total_timeout_ms:
                    return self._rejected(attempt, ended, attempt.updates)
                self._timing.sleep(backoff.wait_ms(lost, self._timing.jitter()) / 1000)
            try:
                # Another attempt may read what this one wrote.
                self._bench.settle()
                state = self._load(base)
            except errors.IcefloeError as error:
                return self._rejected(attempt, error)
            if not is_behind and self._holds(state, attempt.updates):
                return self._committed(state, attempt)
            self._bench.attempt += 1
            attempt = _Attempt(attempt.number + 1, state)

    def _once(self, attempt: _Attempt) -> Outcome | errors.CommitFailed:
        """One attempt: the changes prepared, unless they are already, and sent."""
        state = attempt.state
        try:
            if attempt.prepared is None:
                attempt.prepared = self._changes.on(state.metadata).combined()
        except errors.LocationNotFoundError as error:
            # Others may have deleted what this state names, after they had made another one.
            return self._again(attempt, error) or self._rejected(attempt, error)
        except errors.IcefloeError as error:
            return self._rejected(attempt, error)
        if not attempt.updates:
            return Committed(state, (), attempt.number, state)
        try:
            done = self._committer.commit(state, attempt.prepared, self._bench.settle)
            return self._committed(check_committed(done, attempt.updates, self._committer.name), attempt)
        except errors.CommitFailed as error:
            return error
        except (errors.InvalidInputError, errors.StateError) as error:
            # What is wrong on newer metadata may be right when it is prepared on that.
            return self._again(attempt, error) or self._rejected(attempt, error, attempt.updates)
        except Exception as error:  # noqa: BLE001 - whatever cannot be classified is unknown, and looked into below
            if self._bench.failure is not None:
                # There is no swap without all files, so that nothing can have happened.
                return self._rejected(attempt, error)
            return self._look_for(attempt, error)

    def _load(self, base: TableState) -> TableState:
        """The newest state of the same table."""
        state = self._committer.load()
        check_same_table(base.metadata, state.metadata, self._committer.name)
        return state

    def _again(self, attempt: _Attempt, error: errors.IcefloeError) -> errors.CommitFailed | None:
        """The error as one of a lost race, if the table is not what was prepared on any more."""
        try:
            location = self._load(attempt.state).metadata_location
        except Exception:  # noqa: BLE001 - the first error says more
            return None
        if location is None or location == attempt.state.metadata_location:
            return None
        failed = errors.CommitFailed(f"{self._committer.name} has changed since the commit was prepared: {error}")
        failed.__cause__ = error
        return failed

    def _look_for(self, attempt: _Attempt, error: Exception) -> Outcome:
        """Read the table back until our commit is seen in it; not to see it proves nothing, as it may still arrive."""
        backoff = Backoff.of(attempt.state.metadata.properties, STATUS_SETTINGS)
        started = self._timing.clock_ms()
        for check in range(1, backoff.retries + 2):
            try:
                state = self._load(attempt.state)
                if self._holds(state, attempt.updates):
                    return self._committed(state, attempt)
            except Exception as problem:  # noqa: BLE001 - as long as nothing can be read, nothing is known
                error.add_note(f"reading {self._committer.name} back failed: {problem}")
            if check > backoff.retries or self._timing.clock_ms() - started >= backoff.total_timeout_ms:
                break
            self._timing.sleep(backoff.wait_ms(check, self._timing.jitter()) / 1000)
        return Unknown(error, attempt.number)

    def _holds(self, state: TableState, updates: Sequence[up.TableUpdate]) -> bool:
        """Whether the commit is in the table: by its snapshots, or, without any, if doing it again would change nothing."""
        if state.metadata_location is None:
            # Not created yet: that is what is to be committed, not what the catalog holds.
            return False
        metadata = state.metadata
        if snapshot_ids := self._changes.snapshot_ids:
            return any(_is_in_history(snapshot_id, metadata) for snapshot_id in snapshot_ids)
        try:
            return bool(updates) and apply_all(metadata, updates, metadata.last_updated_ms) is metadata
        except errors.IcefloeError:
            return False

    def _committed(self, state: TableState, attempt: _Attempt) -> Committed:
        return Committed(state, self._changes.snapshot_ids, attempt.number, attempt.state)

    def _rejected(self, attempt: _Attempt, error: Exception, sent: Sequence[up.TableUpdate] = ()) -> Outcome:
        """Delete what was written, but only if the table can be read and our commit is nowhere in it."""
        if self._bench.written or sent:
            try:
                state = self._load(attempt.state)
            except Exception as problem:  # noqa: BLE001 - without proof nothing is deleted, whatever went wrong
                error.add_note(
                    f"the files of this commit are kept, as {self._committer.name} cannot be read back: {problem}"
                )
                return Rejected(error, attempt.number, False)
            if self._holds(state, sent):
                return self._committed(state, attempt)
        return Rejected(error, attempt.number, self._bench.discard_all())


def _is_in_history(snapshot_id: int, metadata: TableMetadata) -> bool:
    """Whether a snapshot is or ever was in the table, by all that its metadata tells."""
    return (
        snapshot_id in metadata.snapshots_by_id
        or any(entry.snapshot_id == snapshot_id for entry in metadata.snapshot_log)
        or any(ref.snapshot_id == snapshot_id for ref in metadata.refs.values())
        or any(
            snapshot.parent_snapshot_id == snapshot_id
            or (snapshot.summary is not None and snapshot.summary.get(totals.SOURCE_SNAPSHOT_ID) == str(snapshot_id))
            for snapshot in metadata.snapshots
        )
    )


def result_of(outcome: Outcome, name: str) -> Committed:
    """The outcome if the commit happened, else its error."""
    match outcome:
        case Committed():
            return outcome
        case Rejected(error):
            raise error
        case Unknown(errors.CommitStateUnknown() as error):
            raise error
        case Unknown(error):
            raise errors.CommitStateUnknown(
                f"whether the commit to {name} happened is not known: {error}; its files are kept, look at the table"
            ) from error
