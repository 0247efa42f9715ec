"""What is to be checked, and how: a table's metadata and storage, the snapshots that were asked for, and how deep to go."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from icefloe import errors, metadata as md, planning, properties as props
from icefloe.progress import Listener
from icefloe.schema import NestedField, Schema
from icefloe.storage import Storage, parse_location
from icefloe.verification.codes import Level
from icefloe.verification.report import Findings

ALL_SNAPSHOTS, SNAPSHOTS_OF_REFS = "all", "refs"


@dataclass(frozen=True)
class Subject:
    """A check that is under way. Not slotted, for what is made once, when first asked for."""

    metadata: md.TableMetadata
    metadata_location: str | None
    storage: Storage
    snapshots: tuple[md.Snapshot, ...]
    is_whole: bool
    """Whether the table was asked for, and not one snapshot of it."""
    level: Level
    sample: float
    locations: tuple[str, ...]
    workers: int
    findings: Findings
    listener: Listener

    def source(self, snapshot_id: int) -> planning.ManifestSource:
        """Where manifests of a snapshot are read from."""
        return planning.ManifestSource(self.metadata, self.storage, snapshot_id, self._schema_of(snapshot_id))

    def resolved(self, location: str) -> str:
        """Where a file of the metadata is."""
        return self.metadata.resolve(location)

    def columns_of(self, snapshot_id: int) -> Schema:
        """All columns that the table has or had, as files of a snapshot have them.

        They are optional, and a dropped one has another name if its own is taken. A table that was replaced may have another
        type under an id than it had before: so the snapshot's own schema comes first, and then those before it.
        """
        own = self._schema_of(snapshot_id)
        if own.schema_id not in self._columns:
            self._columns[own.schema_id] = self._all_columns(own)
        return self._columns[own.schema_id]

    @cached_property
    def _columns(self) -> dict[int, Schema]:
        return {}

    def _schema_of(self, snapshot_id: int) -> Schema:
        schemas, snapshot = self.metadata.schemas_by_id, self.metadata.snapshot_by_id(snapshot_id)
        current = schemas.get(self.metadata.current_schema_id, self.metadata.schemas_newest_first[0])
        # Snapshots of v1 need not say in which schema they are.
        return current if snapshot is None or snapshot.schema_id is None else schemas.get(snapshot.schema_id, current)

    def _all_columns(self, own: Schema) -> Schema:
        columns: dict[int, NestedField] = {}
        names: set[str] = set()
        known: set[int] = set()
        newest_first = self.metadata.schemas_newest_first
        older = (schema for schema in newest_first if schema.schema_id < own.schema_id)
        newer = (schema for schema in reversed(newest_first) if schema.schema_id > own.schema_id)
        for schema in (own, *older, *newer):
            for field in schema.fields:
                inner = Schema(field).fields_by_id.keys()
                if field.field_id in columns or inner & known:
                    continue
                name = field.name
                while name in names:
                    name = f"{name} ({field.field_id})"
                names.add(name)
                known |= inner
                columns[field.field_id] = replace(field, name=name, required=False)
        return Schema(*columns.values())

    @cached_property
    def column_ids(self) -> frozenset[int]:
        """The ids of all fields of all schemas."""
        return frozenset(field_id for schema in self.metadata.schemas for field_id in schema.fields_by_id)

    @cached_property
    def folders(self) -> tuple[str, ...]:
        """Where files of the table may be: its location, those that it had as far as the log tells, and those registered."""
        metadata = self.metadata
        configured = (props.DATA_PATH.of(metadata.properties), props.METADATA_PATH.of(metadata.properties))
        roots = [metadata.location, *self.locations]
        roots += [md.resolve_location(metadata.location, path) for path in configured if path is not None]
        logged = [entry.metadata_file for entry in metadata.metadata_log]
        if self.metadata_location is not None:
            logged.append(self.metadata_location)
        folders = [self.resolved(path).rpartition("/")[0] for path in logged]
        # A metadata file that is elsewhere says nothing of where the table is.
        roots += [folder.removesuffix("/metadata") for folder in folders if folder.endswith("/metadata")]
        return tuple(dict.fromkeys(f"{md.strip_trailing_slash(root)}/" for root in roots if root))

    @cached_property
    def _parsed_folders(self) -> tuple[tuple[str, str, str], ...]:
        return tuple(_parts(each) for each in self.folders)

    def is_inside(self, location: str) -> bool:
        """Whether a file is where files of the table may be; schemes of one store count as one."""
        if location.startswith(self.folders):
            return True
        scheme, authority, path = _parts(location)
        return any((scheme, authority) == each[:2] and path.startswith(each[2]) for each in self._parsed_folders)


def _parts(location: str) -> tuple[str, str, str]:
    try:
        parsed = parse_location(location)
    except errors.InvalidLocationError:
        return "", "", location
    return parsed.scheme, parsed.authority, parsed.path


def choose_snapshots(
    metadata: md.TableMetadata, snapshot_id: int | None, ref: str | None, snapshots: str
) -> tuple[tuple[md.Snapshot, ...], bool]:
    """The snapshots to check, and whether they stand for the whole table."""
    if snapshot_id is not None and ref is not None:
        raise errors.InvalidInputError(f"a snapshot id {snapshot_id} and a ref {ref!r} are given; give one of them")
    if snapshot_id is not None:
        return (metadata.snapshot(snapshot_id),), False
    if ref is not None:
        head = metadata.snapshot_of_ref(ref)
        return (() if head is None else (head,)), False
    if snapshots == ALL_SNAPSHOTS:
        return metadata.snapshots, True
    if snapshots != SNAPSHOTS_OF_REFS:
        raise errors.InvalidInputError(
            f"snapshots is {snapshots!r}; it must be {ALL_SNAPSHOTS!r} or {SNAPSHOTS_OF_REFS!r}, those of branches and tags"
        )
    heads = {ref.snapshot_id for ref in metadata.refs.values()} | {metadata.current_snapshot_id}
    return tuple(snapshot for snapshot in metadata.snapshots if snapshot.snapshot_id in heads), True


def check_sample(sample: object) -> float:
    """The part of the files to look into, if it is one."""
    if isinstance(sample, bool) or not isinstance(sample, int | float) or not 0 <= sample <= 1:
        raise errors.InvalidInputError(f"the sample is {sample!r}; it must be a number from 0 to 1, 1 for all files")
    return float(sample)


def check_level(level: object) -> Level:
    """The level of that name."""
    try:
        return Level(str(level))
    except ValueError:
        raise errors.InvalidInputError(f"unknown level {level!r}; levels are {', '.join(Level)}") from None


def check_locations(locations: Sequence[str]) -> tuple[str, ...]:
    """Locations beside the table's own."""
    if isinstance(locations, str) or not all(isinstance(location, str) for location in locations):
        raise errors.InvalidInputError(f"locations are {locations!r}; give a list of texts")
    return tuple(locations)
