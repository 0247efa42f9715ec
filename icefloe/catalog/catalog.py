"""Decides what a user can ask of any catalog: namespaces, tables and views by name.

What is the same everywhere is here; how names are kept, and how one metadata file replaces another, is in
`memory`, `sql` and `hadoop`.
"""

import uuid
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Self

from icefloe import commit as cm, errors, metadata as md, planning
from icefloe.catalog import table_files
from icefloe.catalog.committers import CatalogCommitter, StagedCommitter
from icefloe.catalog.definitions import (
    SchemaLike,
    TableDefinition,
    TableDescription,
    define_table,
    described_by,
    read_schema,
)
from icefloe.catalog.identifiers import Identifier, Name, parse_identifier, show
from icefloe.catalog.importing import Import, fill, in_place_of, snapshot_of, stage
from icefloe.catalog.namespaces import NamespaceOperations
from icefloe.catalog.replacement import ReplaceTable
from icefloe.catalog.reporters import reporter_of
from icefloe.catalog.seals import check_has_kms
from icefloe.catalog.transactions import CatalogTransaction
from icefloe.catalog.undropping import UndropOperations
from icefloe.catalog.views import View, ViewDescription, Views
from icefloe.data import ForeignTable
from icefloe.formats.file_formats import PARQUET
from icefloe.metadata import updates as up
from icefloe.progress import Listener
from icefloe.storage import Storage, absolute_location
from icefloe.table import Table, Transaction

if TYPE_CHECKING:
    from icefloe.maintenance import DeletedReachableFiles, LostTable

_TABLE_DEFAULT = "table-default."
_TABLE_OVERRIDE = "table-override."


class Catalog(NamespaceOperations, UndropOperations):
    """Names for tables and views, and the one atomic step that changes what a name stands for.

    Threads may share it, and a pickle carries its name and properties. Close it when it is no longer needed, or use it in
    a `with` block.

    >>> with icefloe.load_catalog("lake", type="memory", warehouse="memory://docs/lake") as lake:
    ...     lake.create_namespace("shop")
    ...     orders = lake.create_table("shop.orders", "id bigint, region string, ts timestamp")
    ...     lake.list_tables("shop")
    [('shop', 'orders')]
    """

    def __init__(self, name: str, properties: Mapping[str, str]) -> None:
        super().__init__(name)
        self._properties = dict(properties)
        self._warehouse = table_files.warehouse_of(name, properties)
        self._storage = Storage(table_files.storage_properties(properties), keyring=table_files.keyring_of(properties))

    @property
    def properties(self) -> Mapping[str, str]:
        """The properties that it was loaded with, including credentials; read only."""
        return MappingProxyType(self._properties)

    @property
    def storage(self) -> Storage:
        """Where the files of its tables are."""
        return self._storage

    @property
    def warehouse(self) -> str | None:
        """Where tables go that are created without a location."""
        return self._warehouse

    @cached_property
    def reporter(self) -> planning.Reporter:
        """Where reports of scans and commits go: to the log, or where `metrics-reporter-impl` says."""
        return reporter_of(self._name, self._properties)

    def close(self) -> None:
        """Give back connections; the catalog opens new ones if it is used again."""

    # Tables

    @described_by(TableDescription)
    def create_table(self, table: TableDescription) -> Table:
        """Create a table.

        Args:
            identifier: the name, as text like `"shop.orders"` or as its levels, `("shop", "orders")`; its namespace exists.
            schema: a DDL text, an icefloe `Schema`, a `pyarrow.Schema` or a Spark `StructType`. All ids are assigned afresh.
            location: where the table's files go; by default below the namespace's location or the catalog's `warehouse`.
            partition_spec: a `PartitionSpec`, or texts like `"days(ts)"`, `"bucket(16, id)"` and `"region"`.
            sort_order: a `SortOrder`, or texts like `"region"` and `"ts desc nulls last"`.
            properties: the table's properties; `format-version` among them is the version of the format.

        >>> table = catalog.create_table(
        ...     "shop.sales", "id bigint, ts timestamp", partition_spec=["days(ts)"], properties={"format-version": "3"}
        ... )
        >>> table.format_version, table.spec().fields[0].name
        (3, 'ts_day')
        """
        return self._create(table)

    @described_by(TableDescription)
    def create_table_if_not_exists(self, table: TableDescription) -> Table:
        """Create a table, or load the existing one of that name, whatever its schema."""
        try:
            return self._create(table)
        except errors.TableAlreadyExistsError:
            return self.load_table(table.identifier)

    @described_by(TableDescription)
    def create_table_transaction(self, table: TableDescription) -> Transaction:
        """A transaction that creates the table when it is committed, with all that was added to it before."""
        return self._stage_create(table)

    @described_by(TableDescription)
    def replace_table_transaction(self, table: TableDescription) -> Transaction:
        """A transaction that gives an existing table another definition and no rows; UUID and history stay."""
        return self._stage_replace(table)

    @described_by(TableDescription)
    def create_or_replace_table_transaction(self, table: TableDescription) -> Transaction:
        """A transaction that creates the table, or replaces the existing one of that name."""
        return self._stage(table)

    @described_by(TableDescription)
    def replace_table(self, table: TableDescription) -> Table:
        """Give an existing table another definition and no rows; its UUID and history stay."""
        return self._stage_replace(table).commit_transaction()

    @described_by(TableDescription)
    def create_or_replace_table(self, table: TableDescription) -> Table:
        """Create the table, or replace the existing one of that name."""
        return self._stage(table).commit_transaction()

    def transaction(self) -> CatalogTransaction:
        """Changes of several tables, one commit.

        SQL and memory catalogs can do that, and REST catalogs whose server has `POST /v1/{prefix}/transactions/commit`.

        >>> with catalog.transaction() as tx:
        ...     deleted = tx.table("shop.orders").delete("id = 1")
        """
        return CatalogTransaction(self)

    def load_table(self, identifier: Name) -> Table:
        """The table of that name, as it is now; `NoSuchTableError` if there is none.

        >>> catalog.load_table("shop.orders").name()
        ('shop', 'orders')
        """
        parsed = parse_identifier(identifier)
        return self._handle(parsed, self._existing_table(parsed))

    def table_exists(self, identifier: Name) -> bool:
        """Whether there is a table of that name."""
        return self._has_table(parse_identifier(identifier))

    def list_tables(self, namespace: Name) -> list[Identifier]:
        """The tables in a namespace, in order."""
        return sorted(self._table_names(self._existing_namespace(namespace)))

    def rename_table(self, source: Name, target: Name) -> Table:
        """Give a table another name, in its namespace or another; its files stay where they are.

        >>> catalog.rename_table("shop.orders", "shop.old_orders").name()
        ('shop', 'old_orders')
        """
        old, new = parse_identifier(source), parse_identifier(target)
        self._check_name(new)
        if not self._has_table(old):
            raise self._no_table(old)
        if old != new:
            self._require_namespace(new[:-1])
            self._check_free(new)
            self._rename_table(old, new)
        return self.load_table(new)

    def drop_table(self, identifier: Name) -> None:
        """Drop a table's name; its files stay, unless the catalog knows tables by nothing but their files."""
        parsed = parse_identifier(identifier)
        if not self._drop_table(parsed, None):
            raise self._no_table(parsed)

    def purge_table(self, identifier: Name) -> None:
        """Drop a table and delete every file that any of its snapshots needs, as far as it lies in the table's locations.

        What is to be deleted is collected first: if that fails, or if the table says `gc.enabled=false`, nothing happens.
        """
        from icefloe.catalog.purging import purge

        purge(self, parse_identifier(identifier))

    def delete_reachable_files(self, metadata_location: str) -> "DeletedReachableFiles":
        """Delete all files that a metadata file leads to, as far as they lie in the table's locations, and it last.

        Args:
            metadata_location: the metadata file of a table that no catalog has any more, such as one that was dropped.

        With `gc.enabled=false` in it, or with a file that cannot be read, nothing is deleted, and it is an error; so it is for
        a table that this catalog has: `purge_table` drops it first.
        """
        from icefloe.catalog.purging import delete_reachable

        return delete_reachable(self, metadata_location)

    def register_table(self, identifier: Name, metadata_location: str, overwrite: bool = False) -> Table:
        """Give a name to a table that exists as a metadata file.

        Args:
            identifier: the name that it gets.
            metadata_location: the location of its metadata file, as in `table.metadata_location`.
            overwrite: whether the name may be in use; it then stands for this table.
        """
        parsed = parse_identifier(identifier)
        self._check_name(parsed)
        self._require_namespace(parsed[:-1])
        location = absolute_location(metadata_location)
        metadata = table_files.read_table_metadata(self.storage, location)
        current = self._table_state(parsed) if overwrite else None
        if current is None:
            self._check_free(parsed)
        state = cm.TableState(metadata, location)
        self._register_table(parsed, state, current)
        return self._handle(parsed, state)

    def find_lost_table(self, location: str, progress: Listener | None = None) -> "LostTable":
        """Look under a table's location for its newest metadata file, when the catalog's entry of it is lost; change nothing.

        Args:
            location: where the table's files are.
            progress: called for each step of the check that its files are there.

        Returns:
            The evidence, to be shown, and the file as `metadata_location`, for `register_table`.
        """
        from icefloe.maintenance import find_lost_table

        return find_lost_table(self._storage, location, progress)

    def snapshot(
        self,
        source: str | ForeignTable,
        identifier: Name,
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
        *,
        file_format: str = PARQUET,
        schema: SchemaLike | None = None,
        parallelism: int | None = None,
        ignore_missing_files: bool = False,
    ) -> Table:
        """A new table with the rows of files that are there already, which stay what they are: it never deletes them.

        Args:
            source: a folder of files, with `name=value` folders for partitions.
            identifier: the name of the new table.
            location: where its own files go; neither in the folder of the source nor around it.
            properties: its properties; `gc.enabled=false` and `snapshot=true` are set in any case.
            file_format: the format of the files.
            schema: the columns of all files and folders; without it they are looked up in the files.
            parallelism: how many files are looked at at a time.
            ignore_missing_files: whether folders of partitions may be missing.
        """
        foreign = self._foreign(source, file_format, schema)
        request = Import(foreign, identifier, location, properties or {}, parallelism, ignore_missing_files)
        return snapshot_of(self, request)

    def migrate(
        self,
        source: str,
        identifier: Name,
        properties: Mapping[str, str] | None = None,
        *,
        file_format: str = PARQUET,
        schema: SchemaLike | None = None,
        parallelism: int | None = None,
        ignore_missing_files: bool = False,
    ) -> Table:
        """A new table in a folder of files that are there already, which are its own from then on.

        The arguments are those of `snapshot`. Nobody must write to the folder any more but through the table.
        """
        foreign = self._foreign(source, file_format, schema)
        request = Import(foreign, identifier, None, properties or {}, parallelism, ignore_missing_files)
        chosen = in_place_of(request)
        return fill(stage(self, chosen), chosen)

    # Views, under the names that PyIceberg has for them

    @property
    def views(self) -> Views:
        """The views: `catalog.views.create(...)`, `catalog.views.load(...)` and so on."""
        return Views(self)

    @described_by(ViewDescription)
    def create_view(self, view: ViewDescription) -> View:
        """Create a view: `views.create`."""
        return self.views._create(view)

    def load_view(self, identifier: Name) -> View:
        """The view of that name, as it is now: `views.load`."""
        return self.views.load(identifier)

    def view_exists(self, identifier: Name) -> bool:
        """Whether there is a view of that name: `views.exists`."""
        return self.views.exists(identifier)

    def list_views(self, namespace: Name) -> list[Identifier]:
        """The views in a namespace, in order: `views.list`."""
        return self.views.list(namespace)

    def drop_view(self, identifier: Name) -> None:
        """Drop a view; its files stay: `views.drop`."""
        self.views.drop(identifier)

    # What each catalog does in its own way

    @abstractmethod
    def _has_table(self, identifier: Identifier) -> bool: ...

    @abstractmethod
    def _table_state(self, identifier: Identifier) -> cm.TableState | None:
        """What the table is now; None if there is none of that name."""

    @abstractmethod
    def _create_table(self, identifier: Identifier, metadata: md.TableMetadata) -> cm.TableState:
        """Bring a table into being, in one step; AlreadyExistsError if the name is taken."""

    @abstractmethod
    def _register_table(self, identifier: Identifier, state: cm.TableState, current: cm.TableState | None) -> None: ...

    @abstractmethod
    def _rename_table(self, source: Identifier, target: Identifier) -> None: ...

    @abstractmethod
    def _drop_table(self, identifier: Identifier, state: cm.TableState | None) -> bool:
        """Drop the name, if it stands for that state, or for any; whether it did."""

    @abstractmethod
    def _committer(self, identifier: Identifier) -> CatalogCommitter:
        """The table of that name, as commits see it."""

    def _commit_tables(self, parts: Sequence[cm.Part]) -> list[cm.TableState]:  # noqa: ARG002 - refused
        """One attempt to change several tables in one step: see `Committer.commit`."""
        raise errors.UnsupportedOperationError(
            f"catalog {self._name!r} cannot commit to several tables atomically; commit to each table separately"
        )

    _sees_every_commit = False
    """Whether a commit that was prepared on a state that another one has replaced is refused in any case."""

    def _metadata_locations(self) -> Iterator[tuple[Identifier, str]]:
        """Every table of the catalog, and where its metadata file is."""
        namespaces = list(self._child_namespaces(()))
        while namespaces:
            namespace = namespaces.pop()
            namespaces += self._child_namespaces(namespace)
            for identifier in self._table_names(namespace):
                location = self._metadata_location(identifier)
                if location is not None:
                    yield identifier, location

    def _metadata_location(self, identifier: Identifier) -> str | None:
        """Where the metadata file of a table is; None if it is gone by now."""
        state = self._table_state(identifier)
        return None if state is None else state.metadata_location

    def _view_names(self, namespace: Identifier) -> set[Identifier]:
        return set(self.views.list(namespace))

    def _default_location(self, identifier: Identifier) -> str:
        """Where a new table of that name goes."""
        folder = self._default_folder(identifier[:-1])
        if folder is None:
            raise errors.InvalidLocationError(
                f"{show(identifier)} needs a location: catalog {self._name!r} has no `warehouse` to put it in"
            )
        return table_files.new_location(folder, identifier[-1], self._properties, self.storage)

    def _default_folder(self, namespace: Identifier) -> str | None:
        """Where the tables of a namespace go; None if nothing says so."""
        home = self._load_namespace(namespace).get("location")
        return table_files.namespace_folder(self._warehouse, namespace) if home is None else absolute_location(home)

    def _given_location(self, identifier: Identifier, location: str) -> str:  # noqa: ARG002 - hadoop looks at the name
        return md.strip_trailing_slash(absolute_location(location))

    def _check_free(self, identifier: Identifier) -> None:
        """Fail if the name is in use."""
        if self._has_table(identifier):
            raise errors.TableAlreadyExistsError(f"table {show(identifier)} already exists in catalog {self._name!r}")

    def _no_table(self, identifier: Identifier) -> errors.NoSuchTableError:
        return errors.NoSuchTableError(f"no table {show(identifier)} in catalog {self._name!r}")

    # Steps that several operations share

    def _foreign(self, source: str | ForeignTable, file_format: str, schema: SchemaLike | None) -> ForeignTable:
        if isinstance(source, ForeignTable):
            return source
        columns = None if schema is None else read_schema(schema)
        return ForeignTable(md.strip_trailing_slash(absolute_location(source)), file_format, schema=columns)

    def _location_of(self, identifier: Identifier, location: str | None) -> str:
        return self._default_location(identifier) if location is None else self._given_location(identifier, location)

    def _free_name(self, identifier: Name, noun: str = "table") -> Identifier:
        parsed = parse_identifier(identifier, noun)
        self._check_name(parsed)
        self._require_namespace(parsed[:-1])
        self._check_free(parsed)
        return parsed

    def _existing_table(self, identifier: Identifier) -> cm.TableState:
        state = self._table_state(identifier)
        if state is None:
            raise self._no_table(identifier)
        return state

    def _handle(self, identifier: Identifier, state: cm.TableState) -> Table:
        return Table(identifier, state, self._committer(identifier), reporter=self.reporter)

    def _create(self, table: TableDescription) -> Table:
        identifier = self._free_name(table.identifier)
        return self._handle(identifier, self._create_table(identifier, self._checked_metadata(identifier, table)))

    def _stage(self, table: TableDescription) -> Transaction:
        return self._stage_replace(table) if self.table_exists(table.identifier) else self._stage_create(table)

    def _stage_create(self, table: TableDescription) -> Transaction:
        identifier = self._free_name(table.identifier)
        metadata = self._checked_metadata(identifier, table)
        committer = StagedCommitter(self, identifier, metadata)
        handle = Table(identifier, cm.TableState(metadata, None), committer, reporter=self.reporter)
        # It says nothing that the staged metadata lacks, but there is something to commit.
        return handle.transaction().apply_updates(up.AssignUUIDUpdate(str(metadata.table_uuid)))

    def _stage_replace(self, table: TableDescription) -> Transaction:
        definition = self._define(table)
        handle = self.load_table(table.identifier)
        location = None if table.location is None else self._given_location(handle.name(), table.location)
        transaction = handle.transaction()
        transaction.add(ReplaceTable(definition, location))
        return transaction

    def _new_metadata(self, identifier: Identifier, table: TableDescription) -> md.TableMetadata:
        definition = self._define(table)
        return definition.new_metadata(self._location_of(identifier, table.location), str(uuid.uuid4()), cm.now_ms())

    def _checked_metadata(self, identifier: Identifier, table: TableDescription) -> md.TableMetadata:
        """The same, if this catalog can write to such a table."""
        metadata = self._new_metadata(identifier, table)
        check_has_kms(metadata, self._storage.keyring is not None, show(identifier))
        return metadata

    def _define(self, table: TableDescription) -> TableDefinition:
        return define_table(table, self._prefixed(_TABLE_DEFAULT), self._prefixed(_TABLE_OVERRIDE))

    def _prefixed(self, prefix: str) -> dict[str, str]:
        """Table properties that the catalog's own set or enforce, as in the Java library."""
        return {key.removeprefix(prefix): value for key, value in self._properties.items() if key.startswith(prefix)}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._name!r}, warehouse={self._warehouse!r})"
