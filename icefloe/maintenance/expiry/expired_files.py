"""What an expiry did, and what one would do: values that can be shown, saved and, for a plan, run."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field

from icefloe.maintenance.expiry.unneeded import KINDS

MOST_LOCATIONS = 20_000
"""How many files a plan names."""


@dataclass(frozen=True, slots=True)
class ExpiredFiles:
    """What an expiry deleted, or would have: the counts of Java's procedure, and the snapshots."""

    snapshot_ids: tuple[int, ...] = ()
    deleted_data_files_count: int = 0
    deleted_position_delete_files_count: int = 0
    deleted_equality_delete_files_count: int = 0
    deleted_manifest_files_count: int = 0
    deleted_manifest_lists_count: int = 0
    deleted_statistics_files_count: int = 0
    refs: tuple[str, ...] = field(default=(), kw_only=True)
    """Branches and tags that expired themselves."""
    deleted_bytes: int = field(default=0, kw_only=True)
    """The size of the deleted files."""
    left_alone: tuple[str, ...] = field(default=(), kw_only=True)
    """Files that nothing needs any more, and that are not deleted: they lie outside of the table's locations. At most 1,000."""
    failed: tuple[str, ...] = field(default=(), kw_only=True)
    """Files that could not be deleted, at most 1,000; the next expiry tries again."""
    held_back: tuple[int, ...] = field(default=(), kw_only=True)
    """Snapshots that are gone, and whose files a later expiry deletes, once the time of grace is over."""
    problem: str | None = field(default=None, kw_only=True)
    """Why no file was deleted, although snapshots are gone: their files stay behind until the next expiry."""

    @property
    def counts(self) -> tuple[int, ...]:
        """The counts of files, in the order of Java's procedure."""
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
    """What an expiry would do now: which snapshots and refs leave, and how many files nothing would need any more."""

    snapshot_ids: tuple[int, ...]
    refs: tuple[tuple[str, int], ...]
    """Branches and tags that expire, each with its snapshot."""
    counts: tuple[int, ...]
    """How many files would be deleted, in the order of Java's procedure."""
    bytes: int
    """Their size."""
    locations: tuple[str, ...]
    """Which files, at most 20,000."""
    _expire: Callable[["ExpiryPlan"], ExpiredFiles] = field(repr=False, compare=False)

    def run(self) -> ExpiredFiles:
        """Drop exactly these snapshots and refs; an error if one of them is needed by now. Files are looked for anew."""
        return self._expire(self)

    def to_json(self) -> str:
        """The plan as a JSON document."""
        files = dict(zip(KINDS, self.counts, strict=True))
        document = {"snapshot-ids": self.snapshot_ids, "refs": dict(self.refs), "files": files, "bytes": self.bytes}
        return json.dumps(document | {"locations": self.locations}, indent=2)

    def __str__(self) -> str:
        files = ", ".join(
            f"{count} {kind.replace('_', ' ')}" for kind, count in zip(KINDS, self.counts, strict=True) if count
        )
        refs = f", {len(self.refs)} refs ({', '.join(name for name, _ in self.refs)})" if self.refs else ""
        return f"{len(self.snapshot_ids)} snapshots{refs} would expire; files to delete: {files or 'none'}; {self.bytes:,} bytes"
