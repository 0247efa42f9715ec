"""How rewritten groups are committed: in as many commits as the caller allows, each with one snapshot for each change of specs.

What came meanwhile may stop a group; under partial progress the others of its commit are then committed one by one. Files of
a group are deleted only when its commit certainly did not happen.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from icefloe.commit import Committed, Planned, RewriteFiles, SnapshotChange, Target, Unknown, target_of
from icefloe.errors import CommitStateUnknown, IcefloeError
from icefloe.maintenance.files.ownership import delete_quietly
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
    failed: int = 0
    """How many commits of several groups, or of one, did not happen as a whole."""

    def commit(self, groups: Sequence[WrittenGroup], *, one_by_one: bool) -> Exception | None:
        """Commit groups together; if that is refused, maybe each by itself. The error, if some of them is not committed."""
        error = self._try(groups)
        if error is None:
            return None
        if one_by_one and len(groups) > 1 and not isinstance(error, _Uncertain):
            errors = [self._settle([group], self._try([group])) for group in groups]
            error = next((each for each in errors if each is not None), None)
        else:
            self._settle(groups, error)
        self.failed += error is not None
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
        self.results += [group.result(outcome, error=error) for group in groups]
        return error

    def _try(self, groups: Sequence[WrittenGroup]) -> Exception | None:
        changes = [SnapshotChange(*change) for change in self._changes(groups)]
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
                    live_rows=_rows_read(members),
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


def _rows_read(groups: Sequence[WrittenGroup]) -> int | None:
    """How many rows were read of all of them, if that is known."""
    rows = [written.new.rows for written in groups]
    return None if None in rows else sum(count for count in rows if count is not None)


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
