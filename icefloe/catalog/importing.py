"""Tables of Iceberg made of files that are there already: beside the table that they are of, or in its place."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from icefloe import errors, metadata as md, properties as props
from icefloe.catalog.identifiers import Name
from icefloe.data import ForeignTable, inferred_schema
from icefloe.metadata import summary as totals
from icefloe.partitioning import PartitionField, PartitionSpec, transforms as tr
from icefloe.schema import Schema, create_name_mapping, format_name_mapping
from icefloe.storage import Storage, absolute_location, is_beneath, same_location
from icefloe.table import Table, Transaction

if TYPE_CHECKING:
    from icefloe.catalog.catalog import Catalog

MIGRATING = "icefloe.migrating"
"""The property of a source that is being migrated."""
_NOT_COPIED = (MIGRATING, "path", "transient_lastDdlTime", "serialization.format", "location")
"""Properties of a table of Spark that say nothing of its rows."""
_PATHS = tuple(
    known.key for known in (props.DATA_PATH, props.METADATA_PATH, props.OBJECT_STORAGE_PATH, props.FOLDER_STORAGE_PATH)
)
_FIRST_PARTITION_ID = 1000
SNAPSHOT = {props.GC_ENABLED.key: "false", "snapshot": "true"}
"""What marks a table whose files are those of another."""
MIGRATED = {"migrated": "true"}


@dataclass(frozen=True, slots=True)
class Import:
    """A table to be made of the files of another."""

    source: ForeignTable
    identifier: Name
    location: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    workers: int | None = None
    ignores_missing: bool = False

    def __post_init__(self) -> None:
        if self.workers is not None and self.workers < 1:
            raise errors.InvalidInputError(f"parallelism is {self.workers}; it must be 1 or more")


def snapshot_of(catalog: "Catalog", request: Import) -> Table:
    """A new table with the rows of another, whose files it never deletes; the other stays what it is."""
    copied = {key: text for key, text in _copied(request.source).items() if key not in _PATHS}
    transaction = stage(catalog, replace(request, properties={**copied, **request.properties, **SNAPSHOT}))
    _check_apart(request.source, transaction.table_metadata)
    return fill(transaction, request)


def stage(catalog: "Catalog", request: Import) -> Transaction:
    """The table with the columns and partitions of the source, and a name mapping; nobody sees it before it is committed."""
    schema, spec = _columns(request.source, catalog.storage)
    transaction = catalog.create_table_transaction(
        request.identifier, schema, request.location, spec, properties=dict(request.properties)
    )
    mapping = format_name_mapping(create_name_mapping(transaction.table_metadata.schema()))
    return transaction.set_properties({props.NAME_MAPPING.key: mapping})


def fill(transaction: Transaction, request: Import) -> Table:
    """Commit the table with all files of the source; nothing is left if that fails."""
    with transaction:
        if not request.ignores_missing:
            request.source.check_folders(transaction.storage)
        transaction.add_files(request.source.files(transaction.storage), workers=request.workers)
        return transaction.commit_transaction()


def in_place_of(request: Import) -> Import:
    """The request for a table in the place of its source, with all that it has to say."""
    properties = {**_copied(request.source), **request.properties, **MIGRATED}
    return replace(request, location=request.source.location, properties=properties)


def imported_files(table: Table) -> int:
    """How many files the table has."""
    snapshot = table.current_snapshot()
    summary = None if snapshot is None else snapshot.summary
    return 0 if summary is None else int(summary.properties.get(totals.TOTAL_DATA_FILES, 0))


def _copied(source: ForeignTable) -> dict[str, str]:
    return {key: text for key, text in source.properties.items() if key not in _NOT_COPIED}


def _columns(source: ForeignTable, storage: Storage) -> tuple[Schema, PartitionSpec]:
    files = source.files(storage)
    names = source.columns_of_partitions(files)
    schema = inferred_schema(files, names, storage) if source.schema is None else source.schema
    if not schema.fields:
        raise errors.InvalidInputError(f"{source.location} has no files to infer columns from; give a schema")
    fields = [
        PartitionField(schema.find_field(name).field_id, _FIRST_PARTITION_ID + index, tr.IdentityTransform(), name)
        for index, name in enumerate(names)
    ]
    return schema, PartitionSpec(*fields)


def _check_apart(source: ForeignTable, metadata: md.TableMetadata) -> None:
    """The files of both must not lie in one folder: whoever cleans up one table would take those of the other."""
    own = absolute_location(str(metadata.location))
    for location in (source.location, *(partition.location for partition in source.partitions or ())):
        theirs = absolute_location(location)
        if same_location(own, theirs) or is_beneath(own, theirs) or is_beneath(theirs, own):
            raise errors.InvalidInputError(
                f"a snapshot at {own} would share a folder with the files of its source, {theirs}; give another location"
            )
