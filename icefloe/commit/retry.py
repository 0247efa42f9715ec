"""The one retry loop: what is tried again, how an outcome is determined, and when written files may be deleted.

Only a lost race is tried again. Before that, and before anything is deleted, the table is read back and searched for our own
snapshots: a commit that seemed lost may have happened. What is neither certain is unknown, and deletes nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from icefloe import errors, manifests as mf, metadata as md, planning, properties as props
from icefloe.commit.change import Prepared, PreparedChanges, Timing, Workbench
from icefloe.commit.committer import Committer, TableState, check_committed, check_same_table
from icefloe.commit.outcome import Committed, Outcome, Rejected, Unknown
from icefloe.commit.parent import Parent
from icefloe.commit.partitions import normal_paths
from icefloe.commit.report import report_commit
from icefloe.metadata import summary as totals, updates as up
from icefloe.storage import identity
from icefloe.versions import Feature, allows

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
    lost: int = 0
    """How many races were lost before."""

    @property
    def updates(self) -> tuple[up.TableUpdate, ...]:
        """What was to be sent."""
        return () if self.prepared is None else self.prepared.updates


class CommitLoop:
    """The commit of a set of changes, tried until it is committed, rejected or unknown."""

    def __init__(
        self,
        base: TableState,
        changes: PreparedChanges,
        committer: Committer,
        timing: Timing,
        reporter: planning.Reporter,
    ) -> None:
        self._base = base
        self._committer = committer
        self._bench = changes.bench
        self._changes = changes
        self._timing = timing
        self._reporter = reporter
        self._started_ms = self._timing.clock_ms()

    def run(self) -> Outcome:
        """How the commit ended, which was prepared on the base. It is reported, and what failed attempts left is deleted."""
        outcome: Outcome | _Attempt = _Attempt(1, self._base, self._changes.combined)
        while isinstance(outcome, _Attempt):
            attempt, ended = outcome, self._once(outcome)
            outcome = self._after_failure(attempt, ended) if isinstance(ended, errors.CommitFailed) else ended
        seconds = (self._timing.clock_ms() - self._started_ms) / 1000
        if isinstance(outcome, Committed):
            self._bench.discard(leftovers(outcome, self._bench))
        report_commit(outcome, self._base.metadata, self._committer.name, seconds, self._reporter)
        return outcome

    def _after_failure(self, attempt: _Attempt, failed: errors.CommitFailed) -> "Outcome | _Attempt":
        """What follows on a lost race: another attempt after a while, unless the commit happened all the same, or it is enough."""
        # To be behind at first is no lost race: nothing was sent, and there is nothing to wait for.
        is_behind = attempt.number == 1 and isinstance(failed, errors.StaleBaseError)
        lost = attempt.lost + (not is_behind)
        if not is_behind:
            backoff = Backoff.of(self._base.metadata.properties, COMMIT_SETTINGS)
            waited = self._timing.clock_ms() - self._started_ms
            if lost > backoff.retries or waited >= backoff.total_timeout_ms:
                return self._rejected(attempt, failed, attempt.updates)
            self._timing.sleep(backoff.wait_ms(lost, self._timing.jitter()) / 1000)
        try:
            # Another attempt may read what this one wrote.
            self._bench.settle()
            state = self._load(self._base)
        except errors.IcefloeError as error:
            return self._rejected(attempt, error)
        if not is_behind and self._holds(state, attempt.updates):
            return self._committed(state, attempt)
        self._bench.attempt += 1
        return _Attempt(attempt.number + 1, state, lost=lost)

    def _once(self, attempt: _Attempt) -> Outcome | errors.CommitFailed:
        """One attempt: the changes prepared, unless they are already, and sent."""
        state = attempt.state
        try:
            if attempt.prepared is None:
                attempt.prepared = self._changes.on(state.metadata).combined
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
        except (errors.NotAuthorizedError, errors.ForbiddenError) as error:
            return self._rejected(attempt, error, attempt.updates)
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
        return holds(state, self._changes.snapshot_ids, updates)

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


def holds(state: TableState, snapshot_ids: Sequence[int], updates: Sequence[up.TableUpdate]) -> bool:
    """Whether a commit is in the table: by its snapshots, or, without any, if doing it again would change nothing."""
    if state.metadata_location is None:
        # Not created yet: that is what is to be committed, not what the catalog holds.
        return False
    metadata = state.metadata
    if snapshot_ids:
        return any(_is_in_history(snapshot_id, metadata) for snapshot_id in snapshot_ids)
    try:
        return bool(updates) and md.apply_all(metadata, updates, metadata.last_updated_ms) is metadata
    except errors.IcefloeError:
        return False


def leftovers(outcome: Committed, bench: Workbench) -> set[str]:
    """The files that were written for a commit that happened, and that none of its snapshots names; none if in doubt.

    Manifests and manifest lists are left over by failed attempts, and manifests by merges; position delete files if the table was upgraded
    meanwhile, and has taken what they hold as deletion vectors.
    """
    metadata = outcome.state.metadata
    may_be_left = bench.attempt > 1 or bench.has_merged_own
    left = {path for path in bench.written if path.endswith(".avro")} if may_be_left else set()
    positions: dict[str, str] = {}
    if not allows(metadata.format_version, Feature.NEW_POSITION_DELETE_FILES):
        deletes = (file for file in bench.row_files if file.content is mf.FileContent.POSITION_DELETES)
        positions = {identity(file.file_path): file.file_path for file in deletes if not file.is_deletion_vector}
    if not left and not positions:
        return set()
    parent = Parent(metadata, bench)
    try:
        for snapshot in map(metadata.snapshot, outcome.snapshot_ids):
            if snapshot.manifest_list is None:
                return set()
            left.discard(metadata.resolve(snapshot.manifest_list))
            for manifest in parent.manifests_of(snapshot):
                left.discard(manifest.manifest_path)
                # A transaction may delete rows first and upgrade the table then: what is named stays.
                if positions and manifest.content is mf.ManifestContent.DELETES:
                    named = normal_paths([parent.read(manifest, mf.WITHOUT_METRICS)])
                    for path in positions.keys() & set(named.to_pylist()):
                        del positions[path]
    except Exception:  # noqa: BLE001 - the commit happened; what cannot be read only keeps leftovers alive
        return set()
    return left.union(positions.values())


def _is_in_history(snapshot_id: int, metadata: md.TableMetadata) -> bool:
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
