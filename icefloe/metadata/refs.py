"""What a branch or tag is: a name for a snapshot, with rules for how long to keep it (spec: Snapshot References)."""

from dataclasses import dataclass
from enum import StrEnum

from icefloe.errors import InvalidMetadataError

MAIN_BRANCH = "main"
"""The branch whose head is the table's current snapshot. It never expires."""


class SnapshotRefType(StrEnum):
    """Whether a ref moves with commits or stays where it is."""

    BRANCH = "branch"
    TAG = "tag"


@dataclass(frozen=True, slots=True)
class SnapshotRef:
    """A branch or tag; retention that is not set here is taken from the table's properties."""

    snapshot_id: int
    ref_type: SnapshotRefType
    min_snapshots_to_keep: int | None = None
    max_snapshot_age_ms: int | None = None
    max_ref_age_ms: int | None = None

    def __post_init__(self) -> None:
        for what, value, branches_only in (
            ("minimum of snapshots to keep", self.min_snapshots_to_keep, True),
            ("maximum age of snapshots", self.max_snapshot_age_ms, True),
            ("maximum age of the ref", self.max_ref_age_ms, False),
        ):
            if value is not None and value < 1:
                raise InvalidMetadataError(f"the {what} of a {self.ref_type} is {value}; it must be positive")
            if value is not None and branches_only and self.ref_type is SnapshotRefType.TAG:
                raise InvalidMetadataError(f"a tag has a {what}, {value}; only branches may have one")

    @property
    def is_branch(self) -> bool:
        """Whether commits may move it."""
        return self.ref_type is SnapshotRefType.BRANCH

    @property
    def is_tag(self) -> bool:
        """Whether it stays at its snapshot."""
        return self.ref_type is SnapshotRefType.TAG


def branch(snapshot_id: int) -> SnapshotRef:
    """A branch with the table's retention."""
    return SnapshotRef(snapshot_id, SnapshotRefType.BRANCH)


def tag(snapshot_id: int) -> SnapshotRef:
    """A tag with the table's retention."""
    return SnapshotRef(snapshot_id, SnapshotRefType.TAG)
