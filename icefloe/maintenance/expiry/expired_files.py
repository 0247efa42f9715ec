"""Result and plan of an expiry."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field

from icefloe.maintenance.expiry.unneeded import KINDS

MOST_LOCATIONS = 20_000
"""Maximum number of files listed in a plan."""


@dataclass(frozen=True, slots=True)
class ExpiredFiles:
    """Result of an expiry: the counts of Java's procedure, and the expired snapshots."""

    snapshot_ids: tuple[int, ...] = ()
    deleted_data_files_count: int = 0
    deleted_position_delete_files_count: int = 0
    deleted_equality_delete_files_count: int = 0
    deleted_manifest_files_count: int = 0
    deleted_manifest_lists_count: int = 0
    deleted_statistics_files_count: int = 0
    refs: tuple[str, ...] = field(default=(), kw_only=True)
    """Expired branches and tags."""
    deleted_bytes: int = field(default=0, kw_only=True)
    """Total size of the deleted files."""
    left_alone: tuple[str, ...] = field(default=(), kw_only=True)
    """Unreferenced files that were kept because they are outside the table's locations; at most 1,000."""
    failed: tuple[str, ...] = field(default=(), kw_only=True)
    """Files that could not be deleted, at most 1,000; the next expiry tries again."""
    held_back: tuple[int, ...] = field(default=(), kw_only=True)
    """Expired snapshots whose files a later expiry deletes, after the grace period."""
    problem: str | None = field(default=None, kw_only=True)
    """Why no files were deleted although snapshots expired; the next expiry tries again."""

    @property
    def counts(self) -> tuple[int, ...]:
        """Return the file counts in the order of Java's procedure."""
        return (
            self.deleted_data_files_count,
            self.deleted_position_delete_files_count,
            self.deleted_equality_delete_files_count,
            self.deleted_manifest_files_count,
            self.deleted_manifest_lists_count,
            self.deleted_statistics_files_count,
        )


@dataclass(frozen=True, slots=True)
class ExpiryPlan:
    """Plan of an expiry: snapshots and refs to expire, and files to delete."""

    snapshot_ids: tuple[int, ...]
    refs: tuple[tuple[str, int], ...]
    """Branches and tags to expire, with their snapshots."""
    counts: tuple[int, ...]
    """Number of files to delete, in the order of Java's procedure."""
    bytes: int
    """Total size of the files to delete."""
    locations: tuple[str, ...]
    """The files to delete; at most 20,000."""
    _expire: Callable[["ExpiryPlan"], ExpiredFiles] = field(repr=False, compare=False)

    def run(self) -> ExpiredFiles:
        """Expire exactly these snapshots and refs; fails if one of them is needed now. Files are determined again."""
        return self._expire(self)

    def to_json(self) -> str:
        """Return the plan as JSON."""
        files = dict(zip(KINDS, self.counts, strict=True))
        document = {"snapshot-ids": self.snapshot_ids, "refs": dict(self.refs), "files": files, "bytes": self.bytes}
        return json.dumps(document | {"locations": self.locations}, indent=2)

    def __str__(self) -> str:
        files = ", ".join(
            f"{count} {kind.replace('_', ' ')}" for kind, count in zip(KINDS, self.counts, strict=True) if count
        )
        refs = f", {len(self.refs)} refs ({', '.join(name for name, _ in self.refs)})" if self.refs else ""
        return f"{len(self.snapshot_ids)} snapshots{refs} would expire; files to delete: {files or 'none'}; {self.bytes:,} bytes"
