"""Changes of what a table is made of: schema, partition spec, sort order, properties, location, format version, statistics.

Schema, spec and order are planned on the ones that the table had; if another writer changed them first, the change is
refused, never bent (spec: Commit Conflict Resolution and Retry).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from icefloe import errors, metadata as md, properties as props
from icefloe.commit.change import Change, Prepared, Workbench
from icefloe.commit.reliance import requirements_for
from icefloe.metadata import requirements as req, updates as up
from icefloe.partitioning import PartitionSpec, PartitionSpecUpdate, SortOrder, SortOrderUpdate, transforms as tr
from icefloe.schema import Schema, SchemaUpdate, format_name_mapping, parse_name_mapping, update_name_mapping
from icefloe.storage import Storage
from icefloe.versions import check_version


@dataclass(frozen=True)
class SetSchema(Change):
    """Make a schema that was planned on `planned` the current one."""

    schema: Schema
    planned: md.TableMetadata = field(repr=False)

    def prepare(self, metadata: md.TableMetadata, _: Workbench, /) -> Prepared:
        """The schema added and made current; nothing when it is already."""
        _check_same("schema", metadata.schema(), self.planned.schema())
        _check_same("last column id", metadata.last_column_id, self.planned.last_column_id)
        if self.schema.same_columns(metadata.schema()):
            return Prepared()
        self._check_new_uses(metadata)
        self._check_new_names(metadata)
        return Prepared((up.AddSchemaUpdate(self.schema), up.SetCurrentSchemaUpdate(), *self._mapping(metadata)))

    def _check_new_uses(self, metadata: md.TableMetadata) -> None:
        """No partition spec or sort order has begun to use a column that this change drops or gives another type."""
        for field_id in sorted(_used_columns(metadata) - _used_columns(self.planned)):
            before, after = (each.fields_by_id.get(field_id) for each in (self.planned.schema(), self.schema))
            if before is not None and (after is None or after.field_type != before.field_type):
                raise errors.ValidationError(
                    f"column {before.name!r} is used by a partition spec or sort order that another commit added since this change"
                    " was planned; load the table and plan it again"
                )

    def _check_new_names(self, metadata: md.TableMetadata) -> None:
        """No column comes to have the name of a partition field of another column: Java Iceberg would not open the table."""
        for spec in metadata.partition_specs:
            for field_ in spec.fields:
                column_id = self.schema.find_id(field_.name)
                sources = [each for each in field_.source_ids if each in self.schema.fields_by_id]
                is_new = column_id is not None and column_id != metadata.schema().find_id(field_.name)
                if is_new and sources and column_id not in sources:
                    raise errors.IncompatibleChangeError(
                        f"a column cannot be named {field_.name!r}: that is a partition field of column"
                        f" {self.schema.names_by_id[sources[0]]!r} in spec {spec.spec_id}; choose another name"
                    )

    def _mapping(self, metadata: md.TableMetadata) -> Iterator[up.TableUpdate]:
        """A name mapping goes along: files without ids may come with the new names, too."""
        text = props.NAME_MAPPING.of(metadata.properties)
        if text is None:
            return
        mapping = parse_name_mapping(text)
        updated = update_name_mapping(mapping, metadata.schema(), self.schema)
        if updated != mapping:
            yield up.SetPropertiesUpdate({props.NAME_MAPPING.key: format_name_mapping(updated)})


@dataclass(frozen=True)
class SetSpec(Change):
    """Make a partition spec that was planned on `planned` the default one."""

    spec: PartitionSpec
    planned: md.TableMetadata = field(repr=False)

    def prepare(self, metadata: md.TableMetadata, _: Workbench, /) -> Prepared:
        """The spec added and made the default; nothing when it is already."""
        _check_same("default partition spec", metadata.spec(), self.planned.spec())
        _check_same("last partition id", metadata.last_partition_id, self.planned.last_partition_id)
        if self.spec.equivalent(metadata.spec()):
            return Prepared()
        # By its fields, not by its id: others may have removed specs meanwhile, and given ids again.
        known = next((each for each in metadata.partition_specs if each.equivalent(self.spec)), None)
        if known is not None:
            return Prepared((up.SetDefaultSpecUpdate(known.spec_id),))
        return Prepared((up.AddPartitionSpecUpdate(self.spec), up.SetDefaultSpecUpdate()))


@dataclass(frozen=True)
class SetSortOrder(Change):
    """Make a sort order that was planned on `planned` the default one."""

    order: SortOrder
    planned: md.TableMetadata = field(repr=False)

    def prepare(self, metadata: md.TableMetadata, _: Workbench, /) -> Prepared:
        """The order added and made the default; nothing when it is already."""
        _check_same("default sort order", metadata.sort_order(), self.planned.sort_order())
        # An order says columns by id: of another schema, it may mean other columns.
        schema = (req.AssertCurrentSchemaId(metadata.current_schema_id),)
        if self.order.same_order(metadata.sort_order()):
            return Prepared()
        known = next((each for each in metadata.sort_orders if each.same_order(self.order)), None)
        if known is not None:
            return Prepared((up.SetDefaultSortOrderUpdate(known.order_id),), schema)
        return Prepared((up.AddSortOrderUpdate(self.order), up.SetDefaultSortOrderUpdate()), schema)


@dataclass(frozen=True)
class SetProperties(Change):
    """Set some properties and remove others; it applies to any state of the table."""

    updates: Mapping[str, str] = field(default_factory=dict)
    removals: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if both := sorted(self.updates.keys() & set(self.removals)):
            raise errors.InvalidPropertyError(f"property {both[0]!r} is both set and removed in one change")
        props.refuse_reserved((*self.updates, *self.removals))
        check_properties(self.updates)
        props.refuse_misspelt(self.updates)

    def prepare(self, metadata: md.TableMetadata, _: Workbench, /) -> Prepared:
        """What is not so already."""
        updates: list[up.TableUpdate] = []
        changed = {key: value for key, value in self.updates.items() if metadata.properties.get(key) != value}
        if changed:
            updates.append(up.SetPropertiesUpdate(changed))
        if removed := tuple(key for key in self.removals if key in metadata.properties):
            updates.append(up.RemovePropertiesUpdate(removed))
        return Prepared(tuple(updates))


@dataclass(frozen=True)
class GiveNameMapping(Change):
    """Let the table have the name mapping that files without field ids were read by."""

    mapping: str

    def prepare(self, metadata: md.TableMetadata, _: Workbench, /) -> Prepared:
        """The mapping, if there is none; another one, that came by another commit, is neither replaced nor relied on."""
        text = props.NAME_MAPPING.of(metadata.properties)
        if text is None:
            return Prepared((up.SetPropertiesUpdate({props.NAME_MAPPING.key: self.mapping}),))
        if not parse_name_mapping(text).holds(parse_name_mapping(self.mapping)):
            raise errors.ValidationError(
                "the name mapping of the table was changed by another commit since the files were read with it; load the table"
                " and plan again"
            )
        return Prepared()


@dataclass(frozen=True)
class SetLocation(Change):
    """Move the base location for new files; paths that are relative to it must lead to files there."""

    location: str

    def prepare(self, metadata: md.TableMetadata, bench: Workbench, /) -> Prepared:
        """The new location, unless it is that already."""
        if metadata.location == self.location:
            return Prepared()
        check_relative_files(metadata, self.location, bench.storage)
        return Prepared((up.SetLocationUpdate(self.location),))


def check_relative_files(metadata: md.TableMetadata, location: str, storage: Storage) -> None:
    """Refuse a new location at which branches and tags would not find their manifest lists, as relative paths move with it."""
    if metadata.relative_to is None:
        return
    for name, ref in metadata.refs.items():
        path = metadata.snapshots_by_id[ref.snapshot_id].manifest_list
        if path is not None and not md.is_absolute(path):
            moved = md.resolve_location(location, path)
            if not storage.exists(moved):
                raise errors.StateError(
                    f"the paths of this v{metadata.format_version} table are relative to its location {metadata.location}, and"
                    f" {name!r} would need {moved}, which does not exist; copy the table's files to {location} first"
                )


@dataclass(frozen=True)
class UpgradeFormatVersion(Change):
    """Upgrade the table to a format version; one that has it already, by another writer too, stays."""

    version: int

    def __post_init__(self) -> None:
        check_version(self.version, "format version")

    def prepare(self, metadata: md.TableMetadata, _: Workbench, /) -> Prepared:
        """The upgrade; a version below the table's is an error of the metadata."""
        if metadata.format_version == self.version:
            return Prepared()
        return Prepared((up.UpgradeFormatVersionUpdate(self.version),))


class SendUpdates(Change):
    """Updates to be sent as they are. They are never changed, so they are refused where they would mean something else:
    if anything that they rely on is not as it was when they were made.
    """

    def __init__(self, updates: Sequence[up.TableUpdate]) -> None:
        self._updates = tuple(updates)
        self._base: md.TableMetadata | None = None

    def prepare(self, metadata: md.TableMetadata, _: Workbench, /) -> Prepared:
        """The updates."""
        if self._base is None:
            self._base = metadata
        try:
            req.check_all(requirements_for(self._base, self._updates), metadata)
        except errors.CommitFailed as error:
            raise errors.ValidationError(f"the updates were made for another state of the table: {error}") from error
        removals = (each.snapshot_ids for each in self._updates if isinstance(each, up.RemoveSnapshotsUpdate))
        removed = {snapshot_id for snapshot_ids in removals for snapshot_id in snapshot_ids}
        for name, ref in metadata.refs.items():
            if name not in self._base.refs and ref.snapshot_id in removed:
                raise errors.ValidationError(f"snapshot {ref.snapshot_id} cannot be removed: {name!r} now refers to it")
        return Prepared(self._updates)


def _used_columns(metadata: md.TableMetadata) -> set[int]:
    """The columns that specs and the sort order are made of."""
    partitioning = {source for spec in metadata.partition_specs for field in spec.fields for source in field.source_ids}
    return partitioning | {source for field in metadata.sort_order().fields for source in field.source_ids}


def schema_update(metadata: md.TableMetadata, **options: bool) -> SchemaUpdate:
    """The evolution of the current schema, with what its rules must know of the table."""
    keeps_values = (tr.IdentityTransform, tr.VoidTransform)
    bound = {
        source
        for spec in metadata.partition_specs
        for each in spec.fields
        if not isinstance(each.transform, keeps_values)
        for source in each.source_ids
    }
    # A void field may outlive its source column: it has no values of it.
    used = [each for each in metadata.spec().fields if not isinstance(each.transform, tr.VoidTransform)]
    return SchemaUpdate(
        metadata.schema(),
        metadata.last_column_id,
        metadata.format_version,
        partition_source_ids=[source for each in used for source in each.source_ids],
        sort_source_ids=[source for each in metadata.sort_order().fields for source in each.source_ids],
        type_bound_source_ids=bound,
        **options,
    )


def spec_update(metadata: md.TableMetadata, *, case_sensitive: bool = True) -> PartitionSpecUpdate:
    """The evolution of the default partition spec."""
    return PartitionSpecUpdate(
        metadata.spec(),
        metadata.partition_specs,
        metadata.schema(),
        metadata.format_version,
        metadata.last_partition_id,
        case_sensitive=case_sensitive,
    )


def sort_order_update(metadata: md.TableMetadata, *, case_sensitive: bool = True) -> SortOrderUpdate:
    """A new sort order."""
    return SortOrderUpdate(metadata.sort_orders, metadata.schema(), case_sensitive=case_sensitive)


def check_properties(properties: Mapping[str, str]) -> None:
    """Fail on a property that is not text, or a known one whose value means nothing: it would break every later commit."""
    text_check(properties, "property")
    for known in vars(props).values():
        if isinstance(known, props.Property):
            known.of(properties)


def text_check(properties: Mapping[object, object] | Mapping[str, str], what: str) -> None:
    """Fail unless all keys and values are text that can be stored."""
    for key, value in properties.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise errors.InvalidPropertyError(f"{what} {key!r} is {value!r}; keys and values must be strings")
        try:
            _ = key.encode(), value.encode()
        except UnicodeEncodeError as error:
            raise errors.InvalidPropertyError(
                f"{what} {key!r} is {value!r}, which UTF-8 cannot encode: {error.reason}"
            ) from None


def _check_same(what: str, current: object, planned: object) -> None:
    if current != planned:
        raise errors.ValidationError(
            f"the table's {what} was changed by another commit since this change was planned; load the table and plan it again"
        )


@dataclass(frozen=True)
class StatisticsChange(Change):
    """Statistics files set and removed; a file can only be set for a snapshot that the table has."""

    set_files: tuple[md.StatisticsFile, ...] = ()
    set_partition_files: tuple[md.PartitionStatisticsFile, ...] = ()
    remove_for: tuple[int, ...] = ()
    remove_partition_for: tuple[int, ...] = ()

    def prepare(self, metadata: md.TableMetadata, _: Workbench, /) -> Prepared:
        """What is not so already."""
        for file in self.set_files:
            metadata.snapshot(file.snapshot_id)
        for partition_file in self.set_partition_files:
            metadata.snapshot(partition_file.snapshot_id)
        files, partition_files = metadata.statistics, metadata.partition_statistics
        new = [file for file in self.set_files if file not in files]
        new_partition = [file for file in self.set_partition_files if file not in partition_files]
        old = {file.snapshot_id for file in files}.intersection(self.remove_for)
        old_partition = {file.snapshot_id for file in partition_files}.intersection(self.remove_partition_for)
        return Prepared(
            (
                *map(up.SetStatisticsUpdate, new),
                *map(up.SetPartitionStatisticsUpdate, new_partition),
                *map(up.RemoveStatisticsUpdate, sorted(old)),
                *map(up.RemovePartitionStatisticsUpdate, sorted(old_partition)),
            )
        )
