"""What a table is at one moment: its schemas, specs, orders, snapshots, refs and settings (spec: Table Metadata)."""

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, TypeVar

from icefloe import properties as props
from icefloe.errors import InvalidLocationError, NoSuchObjectError, NoSuchSnapshotError, StateError
from icefloe.metadata.locations import relativize, resolve_location
from icefloe.metadata.refs import MAIN_BRANCH, SnapshotRef
from icefloe.metadata.snapshot import INITIAL_SEQUENCE_NUMBER, MetadataLogEntry, Snapshot, SnapshotLogEntry
from icefloe.partitioning import PartitionSpec, SortOrder, partition_type
from icefloe.schema import Schema, StructType
from icefloe.versions import Feature, allows

Item = TypeVar("Item")
OfSnapshot = TypeVar("OfSnapshot", "StatisticsFile", "PartitionStatisticsFile")

_INDEXES = {
    "schemas_by_id": "schemas",
    "schemas_newest_first": "schemas",
    "specs_by_id": "partition_specs",
    "sort_orders_by_id": "sort_orders",
    "snapshots_by_id": "snapshots",
}


ROOT_MANIFEST = "root-manifest"
"""The field of snapshots of the proposal #16025 for v4."""


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


@dataclass(frozen=True, slots=True)
class EncryptedKey:
    """A key-encryption key or the key metadata of a manifest list, itself encrypted by the key that `encrypted_by_id` names."""

    key_id: str
    encrypted_key_metadata: bytes
    encrypted_by_id: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class TableMetadata:
    """One version of a table. A change creates a new one: see `metadata.apply`.

    `table_uuid` may be None in v1, `location` from v4 on. `next_row_id` is 0 before v3. Locations are as stored: from v4
    on they may be relative (see `metadata.locations`). Not slotted, so that the lookup tables are built once, on first
    use.
    """

    format_version: int
    table_uuid: str | None
    location: str | None
    last_updated_ms: int
    last_column_id: int
    schemas: tuple[Schema, ...]
    current_schema_id: int
    partition_specs: tuple[PartitionSpec, ...]
    default_spec_id: int
    last_partition_id: int
    sort_orders: tuple[SortOrder, ...]
    default_sort_order_id: int
    last_sequence_number: int = INITIAL_SEQUENCE_NUMBER
    properties: Mapping[str, str] = field(default_factory=dict, hash=False)
    current_snapshot_id: int | None = None
    snapshots: tuple[Snapshot, ...] = ()
    snapshot_log: tuple[SnapshotLogEntry, ...] = ()
    metadata_log: tuple[MetadataLogEntry, ...] = ()
    refs: Mapping[str, SnapshotRef] = field(default_factory=dict, hash=False)
    statistics: tuple[StatisticsFile, ...] = ()
    partition_statistics: tuple[PartitionStatisticsFile, ...] = ()
    next_row_id: int = 0
    encryption_keys: tuple[EncryptedKey, ...] = ()
    location_of_catalog: bool = False
    """Whether the metadata file names no location, so that the catalog supplied it."""
    unknown_fields: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """Fields of the metadata file that mean nothing here, as JSON; commits carry them on."""
    unknown_snapshot_fields: Mapping[int, Mapping[str, Any]] = field(default_factory=dict, hash=False)
    """The same of snapshots, by their ids."""
    unknown_parts: Mapping[tuple[str, Hashable], Any] = field(default_factory=dict, hash=False)
    """The same inside of schemas, specs, sort orders and refs, as `unknown_codec` has it."""

    def __getstate__(self) -> dict[str, object]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)

    def evolve(self, **changes: Any) -> "TableMetadata":
        """The same metadata with other values in these fields; lookup tables of what stays are kept."""
        changed = replace(self, **changes)
        for index, source in _INDEXES.items():
            if index in self.__dict__ and getattr(changed, source) is getattr(self, source):
                changed.__dict__[index] = self.__dict__[index]
        return changed

    def changed(self, **changes: object) -> "TableMetadata":
        """The same metadata with other values in these fields; this metadata itself if it has those values already."""
        is_same = all(getattr(self, name) == value for name, value in changes.items())
        return self if is_same else self.evolve(**changes)

    def has_root_manifest(self, snapshot: Snapshot) -> bool:
        """Whether a snapshot has a root manifest in place of a manifest list; only previews of v4 have."""
        return ROOT_MANIFEST in self.unknown_snapshot_fields.get(snapshot.snapshot_id, ())

    def check_changeable(self) -> None:
        """Fail if neither the table nor its files may be changed from here."""
        if any(map(self.has_root_manifest, self.snapshots)):
            raise StateError(
                "the table has root manifests, of the proposal #16025 for v4: they are read here, and nothing is changed in such a table"
            )

    def without_history(self) -> "TableMetadata":
        """What readers and writers of files need of the table, however long its history is."""
        return self.evolve(
            current_snapshot_id=None,
            snapshots=(),
            snapshot_log=(),
            metadata_log=(),
            refs={},
            statistics=(),
            partition_statistics=(),
            unknown_snapshot_fields={},
        )

    @cached_property
    def schemas_by_id(self) -> dict[int, Schema]:
        """The schemas by their ids."""
        return {schema.schema_id: schema for schema in self.schemas}

    @cached_property
    def schemas_newest_first(self) -> tuple[Schema, ...]:
        """The schemas from the highest id down: where to look for a column that the current one lacks."""
        return tuple(sorted(self.schemas, key=lambda schema: schema.schema_id, reverse=True))

    @cached_property
    def specs_by_id(self) -> dict[int, PartitionSpec]:
        """The partition specs by their ids."""
        return {spec.spec_id: spec for spec in self.partition_specs}

    @cached_property
    def sort_orders_by_id(self) -> dict[int, SortOrder]:
        """The sort orders by their ids."""
        return {order.order_id: order for order in self.sort_orders}

    @cached_property
    def snapshots_by_id(self) -> dict[int, Snapshot]:
        """The snapshots by their ids."""
        return {snapshot.snapshot_id: snapshot for snapshot in self.snapshots}

    @property
    def next_sequence_number(self) -> int:
        """The sequence number of the next snapshot; in v1 all are 0."""
        numbered = allows(self.format_version, Feature.SEQUENCE_NUMBERS)
        return self.last_sequence_number + 1 if numbered else INITIAL_SEQUENCE_NUMBER

    @property
    def relative_to(self) -> str | None:
        """The location that relative paths in the metadata stand on; None in versions without such paths."""
        return self.location if allows(self.format_version, Feature.RELATIVE_PATHS) else None

    @property
    def writes_relative_to(self) -> str | None:
        """The location that new paths are written relative to; None where they are written as locations."""
        return None if self.is_for_java else self.relative_to

    @property
    def is_for_java(self) -> bool:
        """Whether a v4 table is written in the form that Java 1.12 reads: with locations, and with statistics as maps."""
        return allows(self.format_version, Feature.RELATIVE_PATHS) and props.V4_COMPAT.of(self.properties) is not None

    def resolve(self, path: str) -> str:
        """The location that a path in the metadata stands for."""
        return resolve_location(self.location, path) if allows(self.format_version, Feature.RELATIVE_PATHS) else path

    def stored_path(self, location: str) -> str:
        """The form in which the metadata stores the location of a new file."""
        return relativize(self.writes_relative_to, location)

    def located(self, metadata_file: str) -> "TableMetadata":
        """The metadata of a file; if it names no table location, that is the folder in which its folder `metadata` is."""
        if self.location is not None:
            return self
        folder = metadata_file.rpartition("/")[0]
        if not folder.endswith("/metadata"):
            raise InvalidLocationError(
                f"{metadata_file} names no table location, and is not in a folder `metadata`, from which it could be derived"
            )
        return self.evolve(location=folder.removesuffix("/metadata"), location_of_catalog=True)

    def schema(self, schema_id: int | None = None) -> Schema:
        """The current schema, or the one of that id."""
        return by_id(self.schemas_by_id, self.current_schema_id if schema_id is None else schema_id, "schema")

    def spec(self, spec_id: int | None = None) -> PartitionSpec:
        """The default partition spec, or the one of that id."""
        return by_id(self.specs_by_id, self.default_spec_id if spec_id is None else spec_id, "partition spec")

    def partition_type(self, spec_id: int) -> StructType:
        """The type of the partition tuple of a spec; columns that the current schema lost are of the newest that had them."""
        return partition_type(self.spec(spec_id), self.schema(), *self.schemas_newest_first)

    def sort_order(self, order_id: int | None = None) -> SortOrder:
        """The default sort order, or the one of that id."""
        return by_id(self.sort_orders_by_id, self.default_sort_order_id if order_id is None else order_id, "sort order")

    def snapshot_by_id(self, snapshot_id: int) -> Snapshot | None:
        """The snapshot of that id, if the table has it."""
        return self.snapshots_by_id.get(snapshot_id)

    def snapshot(self, snapshot_id: int) -> Snapshot:
        """The snapshot of that id; an error if there is none."""
        snapshot = self.snapshots_by_id.get(snapshot_id)
        if snapshot is None:
            raise NoSuchSnapshotError(f"no snapshot {snapshot_id}; the table has {len(self.snapshots)} snapshots")
        return snapshot

    def current_snapshot(self) -> Snapshot | None:
        """The head of `main`; None in a table without commits."""
        return None if self.current_snapshot_id is None else self.snapshot(self.current_snapshot_id)

    def snapshot_by_name(self, name: str) -> Snapshot | None:
        """The snapshot that a branch or tag points to, if there is such a ref."""
        ref = self.refs.get(name)
        return None if ref is None else self.snapshot(ref.snapshot_id)

    def snapshot_of_ref(self, name: str | None = None) -> Snapshot | None:
        """The snapshot of a branch or tag that must exist; `main`, the default, may be empty."""
        if name is None or name == MAIN_BRANCH:
            return self.current_snapshot()
        if name not in self.refs:
            known = ", ".join(sorted(self.refs)) or "none"
            raise NoSuchSnapshotError(f"no branch or tag named {name!r}; there are: {known}")
        return self.snapshot_by_name(name)

    def snapshot_as_of(self, timestamp_ms: int) -> Snapshot:
        """The snapshot that was current at that time, by the snapshot log (spec: Appendix F, Point in Time Reads).

        The log need not be sorted, since clocks of committers differ. The latest entry not after the time counts.
        """
        latest: SnapshotLogEntry | None = None
        for entry in self.snapshot_log:
            if entry.timestamp_ms <= timestamp_ms and (latest is None or entry.timestamp_ms >= latest.timestamp_ms):
                latest = entry
        if latest is None:
            first = min((entry.timestamp_ms for entry in self.snapshot_log), default=None)
            since = "is empty" if first is None else f"starts at {first}"
            raise NoSuchSnapshotError(f"no snapshot was current at {timestamp_ms} ms; the snapshot log {since}")
        return self.snapshot(latest.snapshot_id)

    def ancestors(self, snapshot_id: int) -> Iterator[Snapshot]:
        """The snapshot and those before it by parent links, newest first, as far as the table still has them."""
        seen: set[int] = set()
        current = self.snapshots_by_id.get(snapshot_id)
        while current is not None and current.snapshot_id not in seen:
            seen.add(current.snapshot_id)
            yield current
            parent = current.parent_snapshot_id
            current = None if parent is None else self.snapshots_by_id.get(parent)

    def is_ancestor(self, snapshot_id: int, of: int) -> bool:
        """Whether one snapshot is another, or came before it by parent links."""
        return any(ancestor.snapshot_id == snapshot_id for ancestor in self.ancestors(of))


def by_id(items: Mapping[int, Item], item_id: int, what: str) -> Item:
    """The item of that id, or an error that lists the ids."""
    if item_id not in items:
        raise NoSuchObjectError(f"no {what} with id {item_id}; ids are {', '.join(map(str, items)) or 'none'}")
    return items[item_id]
