"""What a snapshot is: the state of a table after one commit, and the logs of what was current when (spec: Snapshots)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from icefloe.errors import InvalidMetadataError

INITIAL_SEQUENCE_NUMBER = 0
"""The sequence number of everything in a v1 table, and of a table without snapshots."""


class Operation(StrEnum):
    """The kind of change that produced a snapshot."""

    APPEND = "append"
    """Only data files were added."""
    REPLACE = "replace"
    """Files were added and removed, and the rows are the same."""
    OVERWRITE = "overwrite"
    """Data was overwritten logically."""
    DELETE = "delete"
    """Data files were removed, or delete files were added."""


@dataclass(frozen=True, slots=True)
class Summary:
    """The operation of a snapshot, with counts and other properties as text.

    `operation` is an `Operation`, or the bare text if another writer put something unknown there.
    """

    operation: str
    properties: Mapping[str, str] = field(default_factory=dict, hash=False)

    def __getitem__(self, key: str) -> str:
        return self.properties[key]

    def get(self, key: str, default: str | None = None) -> str | None:
        """The value of that key, or the default."""
        return self.properties.get(key, default)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of a table at one time: its manifests and its parent.

    `manifest_list` is the location as stored (in v4 it may be relative). `manifests` holds the locations of a v1 snapshot
    that was written without a list; exactly one of both is set. `first_row_id` and `added_rows` are set from v3 on.
    """

    snapshot_id: int
    timestamp_ms: int
    manifest_list: str | None = None
    summary: Summary | None = None
    parent_snapshot_id: int | None = None
    sequence_number: int = INITIAL_SEQUENCE_NUMBER
    schema_id: int | None = None
    first_row_id: int | None = None
    added_rows: int | None = None
    key_id: str | None = None
    manifests: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if (self.manifest_list is None) is (self.manifests is None):
            which = "neither" if self.manifests is None else "both"
            raise InvalidMetadataError(
                f"snapshot {self.snapshot_id} has {which} of a manifest list and inline manifests; it must have one of them"
            )
        if self.first_row_id is None and self.added_rows is None:
            return
        for what, value in (("first row id", self.first_row_id), ("added rows", self.added_rows)):
            if value is not None and value < 0:
                raise InvalidMetadataError(
                    f"snapshot {self.snapshot_id} has the {what} {value}; it must not be negative"
                )
        if self.first_row_id is not None and self.added_rows is None:
            raise InvalidMetadataError(
                f"snapshot {self.snapshot_id} has a first row id but no number of added rows; it must have both"
            )

    @property
    def operation(self) -> str | None:
        """The operation that produced the snapshot, if it was recorded."""
        return None if self.summary is None else self.summary.operation


@dataclass(frozen=True, slots=True)
class SnapshotLogEntry:
    """From this time on, the snapshot was the current one."""

    snapshot_id: int
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class MetadataLogEntry:
    """A metadata file that was the table's before, and when it was written."""

    metadata_file: str
    timestamp_ms: int
