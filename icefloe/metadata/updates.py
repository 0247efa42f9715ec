"""Every change of a table or view as a value: the parts of a commit (REST: TableUpdate, ViewUpdate)."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from icefloe.metadata.refs import SnapshotRef
from icefloe.metadata.snapshot import Snapshot
from icefloe.metadata.table import EncryptedKey, PartitionStatisticsFile, StatisticsFile
from icefloe.metadata.view import ViewVersion
from icefloe.partitioning import PartitionSpec, SortOrder
from icefloe.schema import Schema

LAST_ADDED = -1
"""Instead of the id of a schema, spec, order or view version: the one that the same commit added last."""


@dataclass(frozen=True, slots=True)
class AssignUUIDUpdate:
    """Give a new table or view its UUID."""

    uuid: str


@dataclass(frozen=True, slots=True)
class UpgradeFormatVersionUpdate:
    """Move a table to a newer format version; there is no way back."""

    format_version: int


@dataclass(frozen=True, slots=True)
class AddSchemaUpdate:
    """Add a schema; one with the same columns is reused."""

    schema: Schema


@dataclass(frozen=True, slots=True)
class SetCurrentSchemaUpdate:
    """Make a schema the current one."""

    schema_id: int = LAST_ADDED


@dataclass(frozen=True, slots=True)
class AddPartitionSpecUpdate:
    """Add a partition spec; one with the same fields is reused."""

    spec: PartitionSpec


@dataclass(frozen=True, slots=True)
class SetDefaultSpecUpdate:
    """Make a partition spec the one for new data."""

    spec_id: int = LAST_ADDED


@dataclass(frozen=True, slots=True)
class AddSortOrderUpdate:
    """Add a sort order; one with the same fields is reused."""

    sort_order: SortOrder


@dataclass(frozen=True, slots=True)
class SetDefaultSortOrderUpdate:
    """Make a sort order the one for new data."""

    sort_order_id: int = LAST_ADDED


@dataclass(frozen=True, slots=True)
class AddSnapshotUpdate:
    """Add a snapshot, without moving a branch to it."""

    snapshot: Snapshot


@dataclass(frozen=True, slots=True)
class SetSnapshotRefUpdate:
    """Create or move a branch or tag; `main` makes the snapshot current."""

    ref_name: str
    ref: SnapshotRef


@dataclass(frozen=True, slots=True)
class RemoveSnapshotsUpdate:
    """Drop snapshots, with their statistics and the refs that point to them."""

    snapshot_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RemoveSnapshotRefUpdate:
    """Drop a branch or tag."""

    ref_name: str


@dataclass(frozen=True, slots=True)
class SetLocationUpdate:
    """Set the base location."""

    location: str


@dataclass(frozen=True, slots=True)
class SetPropertiesUpdate:
    """Set properties."""

    updates: Mapping[str, str] = field(hash=False)


@dataclass(frozen=True, slots=True)
class RemovePropertiesUpdate:
    """Drop properties."""

    removals: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SetStatisticsUpdate:
    """Set the statistics file of a snapshot."""

    statistics: StatisticsFile


@dataclass(frozen=True, slots=True)
class RemoveStatisticsUpdate:
    """Drop the statistics file of a snapshot."""

    snapshot_id: int


@dataclass(frozen=True, slots=True)
class SetPartitionStatisticsUpdate:
    """Set the partition statistics file of a snapshot."""

    partition_statistics: PartitionStatisticsFile


@dataclass(frozen=True, slots=True)
class RemovePartitionStatisticsUpdate:
    """Drop the partition statistics file of a snapshot."""

    snapshot_id: int


@dataclass(frozen=True, slots=True)
class RemovePartitionSpecsUpdate:
    """Drop partition specs that no file needs; never the default one."""

    spec_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RemoveSchemasUpdate:
    """Drop schemas that no snapshot needs; never the current one."""

    schema_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AddEncryptionKeyUpdate:
    """Add an encryption key; one of the same id stays."""

    encryption_key: EncryptedKey


@dataclass(frozen=True, slots=True)
class RemoveEncryptionKeyUpdate:
    """Drop an encryption key."""

    key_id: str


@dataclass(frozen=True, slots=True)
class AddViewVersionUpdate:
    """Add a version of a view; one that behaves the same is reused."""

    view_version: ViewVersion


@dataclass(frozen=True, slots=True)
class SetCurrentViewVersionUpdate:
    """Make a version of a view the current one."""

    view_version_id: int = LAST_ADDED


CommonUpdate = (
    AssignUUIDUpdate
    | UpgradeFormatVersionUpdate
    | AddSchemaUpdate
    | SetLocationUpdate
    | SetPropertiesUpdate
    | RemovePropertiesUpdate
)
"""What may happen to both tables and views."""

TableUpdate = (
    CommonUpdate
    | SetCurrentSchemaUpdate
    | AddPartitionSpecUpdate
    | SetDefaultSpecUpdate
    | AddSortOrderUpdate
    | SetDefaultSortOrderUpdate
    | AddSnapshotUpdate
    | SetSnapshotRefUpdate
    | RemoveSnapshotsUpdate
    | RemoveSnapshotRefUpdate
    | SetStatisticsUpdate
    | RemoveStatisticsUpdate
    | SetPartitionStatisticsUpdate
    | RemovePartitionStatisticsUpdate
    | RemovePartitionSpecsUpdate
    | RemoveSchemasUpdate
    | AddEncryptionKeyUpdate
    | RemoveEncryptionKeyUpdate
)
"""Every change of a table."""

ViewUpdate = CommonUpdate | AddViewVersionUpdate | SetCurrentViewVersionUpdate
"""Every change of a view."""

Update = TableUpdate | ViewUpdate
"""Every change of either."""
