"""Statistics files in table metadata: their locations and contents (spec: Table Statistics)."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class BlobMetadata:
    """One blob of a statistics file: its type, the snapshot that it describes, and the columns."""

    blob_type: str
    snapshot_id: int
    sequence_number: int
    fields: tuple[int, ...]
    properties: Mapping[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class StatisticsFile:
    """A Puffin file with statistics of one snapshot; readers may ignore it."""

    snapshot_id: int
    statistics_path: str
    file_size_in_bytes: int
    file_footer_size_in_bytes: int
    blob_metadata: tuple[BlobMetadata, ...] = ()
    key_metadata: bytes | None = None


@dataclass(frozen=True, slots=True)
class PartitionStatisticsFile:
    """A file with counts per partition of one snapshot."""

    snapshot_id: int
    statistics_path: str
    file_size_in_bytes: int
