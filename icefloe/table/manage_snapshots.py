"""Changes of branches, tags and the current snapshot, in one commit for a whole `with` block."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Self

from icefloe.commit import Change, ChangeSet, CherryPick, CreateBranch, Retention, refs
from icefloe.metadata import MAIN_BRANCH, SnapshotRefType


class ManageSnapshots:
    """Collects changes of branches, tags and the current snapshot, and commits them together on `commit` or `with` exit."""

    def __init__(self, begin: Callable[[], AbstractContextManager[ChangeSet]]) -> None:
        self._begin = begin
        self._changes: list[Change] = []

    def create_branch(
        self,
        branch_name: str,
        snapshot_id: int | None = None,
        max_ref_age_ms: int | None = None,
        max_snapshot_age_ms: int | None = None,
        min_snapshots_to_keep: int | None = None,
    ) -> Self:
        """Create a branch, by default at the current snapshot; in an empty table, at a new empty snapshot."""
        retention = Retention(min_snapshots_to_keep, max_snapshot_age_ms, max_ref_age_ms)
        return self._add(CreateBranch(branch_name, snapshot_id, retention))

    def create_tag(self, tag_name: str, snapshot_id: int | None = None, max_ref_age_ms: int | None = None) -> Self:
        """Create a tag, by default at the current snapshot."""
        retention = Retention(max_ref_age_ms=max_ref_age_ms)
        return self._add(refs.create_ref(tag_name, SnapshotRefType.TAG, snapshot_id, retention))

    def replace_branch(self, branch_name: str, snapshot_id: int) -> Self:
        """Move a branch to any snapshot."""
        return self._add(refs.replace_ref(branch_name, SnapshotRefType.BRANCH, snapshot_id))

    def replace_tag(self, tag_name: str, snapshot_id: int) -> Self:
        """Move a tag to any snapshot."""
        return self._add(refs.replace_ref(tag_name, SnapshotRefType.TAG, snapshot_id))

    def remove_branch(self, branch_name: str) -> Self:
        """Drop a branch."""
        return self._add(refs.remove_ref(branch_name, SnapshotRefType.BRANCH))

    def remove_tag(self, tag_name: str) -> Self:
        """Drop a tag."""
        return self._add(refs.remove_ref(tag_name, SnapshotRefType.TAG))

    def rename_branch(self, branch_name: str, new_name: str) -> Self:
        """Rename a branch."""
        return self._add(refs.rename_branch(branch_name, new_name))

    def fast_forward(self, branch_name: str, to: str) -> Self:
        """Fast-forward a branch to the head of a branch that descends from it."""
        return self._add(refs.fast_forward(branch_name, to))

    def set_retention(
        self,
        name: str,
        max_ref_age_ms: int | None = None,
        max_snapshot_age_ms: int | None = None,
        min_snapshots_to_keep: int | None = None,
    ) -> Self:
        """Set the retention of a branch or tag, and of a branch's snapshots."""
        return self._add(
            refs.set_retention(name, Retention(min_snapshots_to_keep, max_snapshot_age_ms, max_ref_age_ms))
        )

    def set_current_snapshot(self, snapshot_id: int) -> Self:
        """Make any snapshot the current one."""
        return self._add(refs.set_current_snapshot(snapshot_id))

    def rollback_to_snapshot(self, snapshot_id: int) -> Self:
        """Roll `main` back to one of its ancestors."""
        return self._add(refs.rollback_to_snapshot(snapshot_id))

    def rollback_to_timestamp(self, timestamp_ms: int) -> Self:
        """Roll `main` back to its latest snapshot before a point in time."""
        return self._add(refs.rollback_to_timestamp(timestamp_ms))

    def cherrypick(self, snapshot_id: int, branch_name: str = MAIN_BRANCH) -> Self:
        """Apply the changes of a snapshot to a branch; this publishes a staged snapshot."""
        return self._add(CherryPick(snapshot_id, branch_name))

    def commit(self) -> None:
        """Commit the collected changes."""
        changes, self._changes = self._changes, []
        if changes:
            with self._begin() as change_set:
                for change in changes:
                    change_set.add(change)

    def _add(self, change: Change) -> Self:
        self._changes.append(change)
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.commit()
