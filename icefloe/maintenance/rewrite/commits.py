"""How rewritten groups are committed: in as many commits as the caller allows, each with one snapshot for each change of specs.

What came meanwhile may stop a group; under partial progress the others of its commit are then committed one by one. Files of
a group are deleted only when its commit certainly did not happen.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from icefloe.commit import Committed, Planned, RewriteFiles, SnapshotChange, Target, Unknown, delete_quietly, target_of
from icefloe.errors import CommitStateUnknown, IcefloeError, ValidationError
from icefloe.maintenance.maintained_table import MaintainedTable
from icefloe.maintenance.rewrite.groups import RewrittenGroup
from icefloe.maintenance.rewrite.job import RewriteGroup, RewriteJob, lacks_row_ids
from icefloe.maintenance.rewrite.options import STARTING_NUMBER
from icefloe.maintenance.rewrite.result import GroupOutcome, GroupResult
from icefloe.maintenance.rewrite.traces import GROUP, RUN, Trace
from icefloe.manifests import DataFile
from icefloe.metadata import TableMetadata, summary as totals


@dataclass(frozen=True, slots=True)
class WrittenGroup:
    """A group whose new files are there."""

    group: RewriteGroup
    new: RewrittenGroup
    replaced: tuple[DataFile, ...]
    seconds: float = 0.0

    @property
    def specs(self) -> frozenset[int]:
        """The specs that its rows were in or are in."""
        return frozenset((self.group.spec_id, *(file.spec_id for file in self.new.files)))

    def result(
        self, outcome: GroupOutcome, snapshot_id: int | None = None, error: Exception | None = None
    ) -> GroupResult:
        """What became of it."""
        is_done = outcome is GroupOutcome.COMMITTED
        return GroupResult(
            self.group.number,
            self.group.partition,
            outcome,
            len(self.group.files),
            self.group.size_in_bytes,
            len(self.new.files) if is_done else 0,
            sum(file.file_size_in_bytes for file in self.new.files) if is_done else 0,
            snapshot_id,
            None if error is None else str(error),
            self.seconds,
        )


@dataclass(slots=True)
class Commits:
    """The commits of one run. One thread calls it."""

    table: MaintainedTable
    plan: RewriteJob
    written_for: TableMetadata
    trace: Trace
    results: list[GroupResult] = field(default_factory=list)
    snapshot_ids: list[int] = field(default_factory=list)
    removed_deletes: int = 0
    sent: set[int] = field(default_factory=set)
    """The numbers of groups that a commit was tried for: whoever gives up does not know what became of them."""
    failed: int = 0
    """How many commits of several groups, or of one, did not happen as a whole."""
    lost: list[RewriteGroup] = field(default_factory=list)
    """The groups that another commit kept from being committed; all else is as it was for them."""
    lost_commits: int = 0
    """How many of the commits that failed did so for that alone."""

    def commit(self, groups: Sequence[WrittenGroup], *, one_by_one: bool) -> Exception | None:
        """Commit groups together; if that is refused, maybe each by itself. The error, if some of them is not committed."""
        error = self._try(groups)
        if error is None:
            return None
        unsettled, lost = len(self.results), len(self.lost)
        if one_by_one and len(groups) > 1 and not isinstance(error, _Uncertain):
            errors = [self._settle([group], self._try([group])) for group in groups]
            error = next((each for each in errors if each is not None), None)
        else:
            self._settle(groups, error)
        if error is not None:
            self.failed += 1
            not_done = sum(result.outcome is not GroupOutcome.COMMITTED for result in self.results[unsettled:])
            self.lost_commits += len(self.lost) - lost == not_done
        return error

    def discard(self, groups: Sequence[WrittenGroup], why: str) -> None:
        """Delete the new files of groups that were never sent."""
        paths = [file.file_path for group in groups for file in group.new.files]
        delete_quietly(self.table.storage, paths, why)

    def _settle(self, groups: Sequence[WrittenGroup], error: Exception | None) -> Exception | None:
        """Note that groups are not committed, and delete their files if that is certain."""
        if error is None:
            return None
        outcome = GroupOutcome.COMMIT_FAILED
        if isinstance(error, _Uncertain):
            error = error.error
            outcome = GroupOutcome.UNKNOWN if isinstance(error, CommitStateUnknown) else outcome
        else:
            self.discard(groups, "of a rewrite that was not committed")
            self.lost += [written.group for written in groups if isinstance(error, ValidationError)]
        self.results += [group.result(outcome, error=error) for group in groups]
        return error

    def _try(self, groups: Sequence[WrittenGroup]) -> Exception | None:
        changes = [SnapshotChange(*change) for change in self._changes(groups)]
        self.sent |= {written.group.number for written in groups}
        try:
            self.trace.check()
            with self.table.transaction() as transaction:
                for change in changes:
                    transaction.add(change)
                outcome = transaction.try_commit()
        except IcefloeError as error:
            # What cannot be prepared was not sent.
            return error
        if isinstance(outcome, Committed):
            self._note(groups, [change.snapshot_ids for change in changes])
            return None
        if isinstance(outcome, Unknown):
            return _Uncertain(_unknown(outcome.error))
        return outcome.error if outcome.cleaned else _Uncertain(outcome.error)

    def _changes(self, groups: Sequence[WrittenGroup]) -> Iterator[tuple[RewriteFiles, Target]]:
        for members in _by_specs(groups, self.written_for, self.plan.snapshot_id):
            numbers = ",".join(str(written.group.number) for written in members)
            properties: Mapping[str, str] = {**self.plan.snapshot_properties, RUN: self.trace.run, GROUP: numbers}
            yield (
                RewriteFiles(
                    self.written_for,
                    Planned(self.plan.snapshot_id),
                    remove=[file for written in members for file in written.replaced],
                    add=[file for written in members for file in written.new.files],
                    check_duplicates=False,
                    keeps_number=STARTING_NUMBER.of(self.plan.options),
                    live_rows=sum(written.new.rows for written in members),
                ),
                target_of(self.table.metadata, self.plan.branch, properties),
            )

    def _note(self, groups: Sequence[WrittenGroup], ids: Sequence[tuple[int, ...]]) -> None:
        of_groups = _by_specs(groups, self.written_for, self.plan.snapshot_id)
        for members, (snapshot_id,) in zip(of_groups, ids, strict=True):
            self.snapshot_ids.append(snapshot_id)
            self.results += [written.result(GroupOutcome.COMMITTED, snapshot_id) for written in members]
            snapshot = self.table.metadata.snapshot_by_id(snapshot_id)
            if snapshot is not None and snapshot.summary is not None:
                self.removed_deletes += int(snapshot.summary.get(totals.REMOVED_DELETE_FILES) or 0)


class _Uncertain(Exception):
    """Wraps an error after which files must stay."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


def _unknown(error: Exception) -> CommitStateUnknown:
    if isinstance(error, CommitStateUnknown):
        return error
    return CommitStateUnknown(f"whether the commit of a rewrite happened is not known: {error}; its files are kept")


def _by_specs(
    groups: Sequence[WrittenGroup], metadata: TableMetadata, snapshot_id: int | None
) -> list[list[WrittenGroup]]:
    """Groups whose rows stay in one spec, apart from others: equality deletes of a spec are clear about those alone."""
    if lacks_row_ids(metadata, snapshot_id):
        return [list(groups)]
    parts: dict[frozenset[int], list[WrittenGroup]] = {}
    for group in groups:
        parts.setdefault(group.specs, []).append(group)
    return list(parts.values())
