"""What a rewrite of data files did: Java's counts first, then every group with its outcome and the reason."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum


class GroupOutcome(StrEnum):
    """How it went with a group."""

    COMMITTED = "committed"
    WRITE_FAILED = "write failed"
    """Its new files could not be written; nothing of them is left."""
    COMMIT_FAILED = "commit failed"
    """Another writer changed its files, or the catalog refused; its new files are deleted."""
    UNKNOWN = "unknown"
    """Nobody knows whether its commit happened; its new files are kept."""
    NOT_NEEDED = "not needed"
    """Another commit changed its files, and nothing is left to rewrite in its partition."""


@dataclass(frozen=True, slots=True)
class GroupResult:
    """One group, and what became of it."""

    number: int
    partition: str
    outcome: GroupOutcome
    rewritten_files: int
    rewritten_bytes: int
    added_files: int = 0
    added_bytes: int = 0
    snapshot_id: int | None = None
    reason: str | None = None
    seconds: float = 0.0

    def __str__(self) -> str:
        why = "" if self.reason is None else f": {self.reason}"
        files = f"{self.rewritten_files} files to {self.added_files}"
        return f"group {self.number} ({self.partition or 'the table'}): {files}, {self.outcome}{why}"


@dataclass(frozen=True, slots=True)
class RewriteResult:
    """The counts of Java's procedure, in its order, and more.

    Counts are of what was committed; `failed_data_files_count` has the files of groups that could not be written and of
    those that could not be committed.
    """

    rewritten_data_files_count: int = 0
    added_data_files_count: int = 0
    rewritten_bytes_count: int = 0
    """Bytes of the files that were replaced."""
    failed_data_files_count: int = 0
    removed_delete_files_count: int = 0
    snapshot_ids: tuple[int, ...] = ()
    groups: tuple[GroupResult, ...] = ()
    run: str | None = None
    """The name of the run in summaries and file names; None if there was nothing to do."""
    seconds: float = 0.0

    def __str__(self) -> str:
        head = (
            f"{self.rewritten_data_files_count} data files rewritten to {self.added_data_files_count},"
            f" {self.failed_data_files_count} failed, {self.removed_delete_files_count} delete files removed"
        )
        return "\n".join([head, *map(str, self.groups)])

    @property
    def counts(self) -> tuple[int, int, int, int, int]:
        """The columns of Java's procedure."""
        return (
            self.rewritten_data_files_count,
            self.added_data_files_count,
            self.rewritten_bytes_count,
            self.failed_data_files_count,
            self.removed_delete_files_count,
        )

    @staticmethod
    def of(
        groups: Iterable[GroupResult], removed_deletes: int, snapshot_ids: tuple[int, ...], run: str, seconds: float
    ) -> "RewriteResult":
        """The counts of some groups."""
        ordered = tuple(sorted(groups, key=lambda group: group.number))
        done = [group for group in ordered if group.outcome is GroupOutcome.COMMITTED]
        settled = (GroupOutcome.COMMITTED, GroupOutcome.NOT_NEEDED)
        failed = [group for group in ordered if group.outcome not in settled]
        return RewriteResult(
            sum(group.rewritten_files for group in done),
            sum(group.added_files for group in done),
            sum(group.rewritten_bytes for group in done),
            sum(group.rewritten_files for group in failed),
            removed_deletes,
            snapshot_ids,
            ordered,
            run,
            seconds,
        )


def joined(results: Sequence[RewriteResult]) -> RewriteResult:
    """What several rewrites, at least one, came to."""
    return RewriteResult.of(
        (group for each in results for group in each.groups),
        sum(each.removed_delete_files_count for each in results),
        tuple(snapshot for each in results for snapshot in each.snapshot_ids),
        str(results[0].run),
        sum(each.seconds for each in results),
    )
