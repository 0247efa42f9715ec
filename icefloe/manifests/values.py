"""What a snapshot holds, as values: data and delete files, their entries in a manifest, and manifests in a list.

These are made for the few rows that someone wants to hold; whole manifests stay in columns (`ManifestColumns`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum

from icefloe.schema import Value

UNASSIGNED_SEQUENCE_NUMBER = -1
"""What a manifest carries until a commit gives it the snapshot's sequence number."""

UNKNOWN_SIZE = -1
"""The size of a file that no manifest tells: those of deletion vectors in root manifests (a preview of v4)."""


class FileContent(IntEnum):
    """What the rows of a file mean."""

    DATA = 0
    POSITION_DELETES = 1
    EQUALITY_DELETES = 2


class EntryStatus(IntEnum):
    """What a manifest says about a file; DELETED is information only."""

    EXISTING = 0
    ADDED = 1
    DELETED = 2


class ManifestContent(IntEnum):
    """Which kind of files a manifest holds."""

    DATA = 0
    DELETES = 1


class Metric(Enum):
    """A statistic that is kept for each column of a file; the value names the map that holds it.

    The last two have no map in manifests: only the content stats of v4 keep them (`MAP_METRICS` are the others).
    """

    COLUMN_SIZES = "column_sizes"
    VALUE_COUNTS = "value_counts"
    NULL_VALUE_COUNTS = "null_value_counts"
    NAN_VALUE_COUNTS = "nan_value_counts"
    LOWER_BOUNDS = "lower_bounds"
    UPPER_BOUNDS = "upper_bounds"
    TIGHT_BOUNDS = "tight_bounds"
    AVG_VALUE_SIZES = "avg_value_sizes"

    @property
    def is_bound(self) -> bool:
        """Whether its values are bytes."""
        return self in (Metric.LOWER_BOUNDS, Metric.UPPER_BOUNDS)


MAP_METRICS: tuple[Metric, ...] = tuple(
    metric for metric in Metric if metric not in (Metric.TIGHT_BOUNDS, Metric.AVG_VALUE_SIZES)
)
"""The metrics that manifests of every version can hold."""


@dataclass(frozen=True, slots=True)
class DataFile:
    """A data or delete file (spec: Data File Fields). Metrics are by field id, bounds in binary form; missing is unknown.

    `partition` holds one internal value for each field of the spec, in its order. `tight_bounds` says of columns whether
    both bounds are values of the file (1) or may be beyond them (0), and `avg_value_sizes` how many bytes a value has;
    only v4 tables keep these, so that files are equal without them.
    """

    file_path: str
    file_format: str
    record_count: int
    file_size_in_bytes: int
    content: FileContent = FileContent.DATA
    spec_id: int = 0
    partition: tuple[Value, ...] = ()
    column_sizes: Mapping[int, int] = field(default_factory=dict, hash=False)
    value_counts: Mapping[int, int] = field(default_factory=dict, hash=False)
    null_value_counts: Mapping[int, int] = field(default_factory=dict, hash=False)
    nan_value_counts: Mapping[int, int] = field(default_factory=dict, hash=False)
    lower_bounds: Mapping[int, bytes] = field(default_factory=dict, hash=False)
    upper_bounds: Mapping[int, bytes] = field(default_factory=dict, hash=False)
    key_metadata: bytes | None = field(default=None, repr=False)
    split_offsets: tuple[int, ...] | None = None
    equality_ids: tuple[int, ...] | None = None
    sort_order_id: int | None = None
    first_row_id: int | None = None
    referenced_data_file: str | None = None
    content_offset: int | None = None
    content_size_in_bytes: int | None = None
    tight_bounds: Mapping[int, int] = field(default_factory=dict, hash=False, compare=False)
    avg_value_sizes: Mapping[int, int] = field(default_factory=dict, hash=False, compare=False)

    @property
    def is_deletion_vector(self) -> bool:
        """Whether it is one blob of a Puffin file."""
        return self.content is FileContent.POSITION_DELETES and self.file_format == "puffin"


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    """A file and what a snapshot did with it; numbers that are None are inherited (spec: Sequence Number Inheritance)."""

    status: EntryStatus
    data_file: DataFile
    snapshot_id: int | None = None
    sequence_number: int | None = None
    file_sequence_number: int | None = None

    @property
    def is_live(self) -> bool:
        """Whether the file is part of the snapshot."""
        return self.status is not EntryStatus.DELETED


@dataclass(frozen=True, slots=True)
class PartitionFieldSummary:
    """What the values of one partition field are like in a whole manifest; bounds are in binary form."""

    contains_null: bool
    contains_nan: bool | None = None
    lower_bound: bytes | None = None
    upper_bound: bytes | None = None


@dataclass(frozen=True, slots=True)
class ManifestFile:
    """A manifest as a manifest list names it (spec: Manifest Lists). Counts that are None are not known."""

    manifest_path: str
    manifest_length: int
    partition_spec_id: int
    added_snapshot_id: int
    content: ManifestContent = ManifestContent.DATA
    sequence_number: int = 0
    min_sequence_number: int = 0
    added_files_count: int | None = None
    existing_files_count: int | None = None
    deleted_files_count: int | None = None
    added_rows_count: int | None = None
    existing_rows_count: int | None = None
    deleted_rows_count: int | None = None
    partitions: tuple[PartitionFieldSummary, ...] | None = None
    key_metadata: bytes | None = field(default=None, repr=False)
    first_row_id: int | None = None

    @property
    def has_added_files(self) -> bool:
        """Whether it may hold ADDED entries; an unknown count means yes."""
        return self.added_files_count != 0

    @property
    def has_existing_files(self) -> bool:
        """Whether it may hold EXISTING entries; an unknown count means yes."""
        return self.existing_files_count != 0

    @property
    def has_deleted_files(self) -> bool:
        """Whether it may hold DELETED entries; an unknown count means yes."""
        return self.deleted_files_count != 0

    @property
    def has_live_files(self) -> bool:
        """Whether it may hold files that are part of the snapshot."""
        return self.has_added_files or self.has_existing_files
