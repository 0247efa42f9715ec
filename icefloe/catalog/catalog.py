"""Decides what a user can ask of any catalog: namespaces, tables and views by name.

What is the same everywhere is here; how names are kept, and how one metadata file takes the place of another, is in
`memory`, `sql` and `hadoop`.
"""

import uuid
from abc import abstractmethod
from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType, TracebackType
from typing import Self

from icefloe.catalog.clock import now_ms
from icefloe.catalog.definitions import (
    OrderLike,
    SchemaLike,
    SpecLike,
    TableDefinition,
    checked_table_properties,
    define_table,
)
from icefloe.catalog.identifiers import Identifier, Name, parse_identifier, show
from icefloe.catalog.locations import namespace_folder, new_location, storage_properties, warehouse_of
from icefloe.catalog.metadata_files import read_table_metadata
from icefloe.catalog.namespaces import NamespaceOperations
from icefloe.catalog.purge import check_purgeable, delete_reachable
from icefloe.catalog.staging import CreateTable, ReplaceTable, StagedCommitter
from icefloe.catalog.views import ViewOperations
from icefloe.commit import Committer, TableState
from icefloe.errors import (
    CommitFailed,
    InvalidLocationError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from icefloe.maintenance import Ownership, reachable_files
from icefloe.metadata import TableMetadata, strip_trailing_slash
from icefloe.planning import LOGGING, Reporter, reporter_named
from icefloe.storage import Storage, absolute_location
from icefloe.table import Table, Transaction

_TABLE_DEFAULT = "table-default."
_TABLE_OVERRIDE = "table-override."
_REPORTER = "metrics-reporter-impl"
_PURGE_ATTEMPTS = 5


class Catalog(NamespaceOperations, ViewOperations):
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
        self._warehouse = warehouse_of(name, properties)
        self._storage = Storage(storage_properties(properties))

    @property
    def properties(self) -> Mapping[str, str]:
        """What it was made with, credentials among them, read only."""
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
    def reporter(self) -> Reporter:
        """Where reports of scans and commits go: to the log, or where `metrics-reporter-impl` says."""
        return reporter_named(self._properties.get(_REPORTER, LOGGING))

    def close(self) -> None:
        """Give back connections; the catalog opens new ones if it is used again."""

    # Tables

    def create_table(
        self,
        identifier: Name,
        schema: SchemaLike,
        location: str | None = None,
        partition_spec: SpecLike = None,
        sort_order: OrderLike = None,
        properties: Mapping[str, object] | None = None,
    ) -> Table:
        """Create a table.

        Args:
            identifier: the name, as text like `"shop.orders"` or as its levels, `("shop", "orders")`; its namespace exists.
            schema: a DDL text, an icefloe `Schema`, a `pyarrow.Schema` or a Spark `StructType`. All ids are given afresh.
            location: where the table's files go; else below the namespace's location or the catalog's `warehouse`.
            partition_spec: a `PartitionSpec`, or texts like `"days(ts)"`, `"bucket(16, id)"` and `"region"`.
            sort_order: a `SortOrder`, or texts like `"region"` and `"ts desc nulls last"`.
            properties: the table's properties; `format-version` among them says which version of the format it has.

        >>> table = catalog.create_table(
        ...     "shop.sales", "id bigint, ts timestamp", partition_spec=["days(ts)"], properties={"format-version": "3"}
        ... )
        >>> table.format_version, table.spec().fields[0].name
        (3, 'ts_day')
        """
        wanted = self._free_name(identifier)
        definition = self._define(schema, partition_spec, sort_order, properties)
        return self._handle(wanted, self._create_table(wanted, self._new_metadata(wanted, definition, location)))

    def create_table_if_not_exists(
        self,
        identifier: Name,
        schema: SchemaLike,
        location: str | None = None,
        partition_spec: SpecLike = None,
        sort_order: OrderLike = None,
        properties: Mapping[str, object] | None = None,
    ) -> Table:
        """Create a table, or load the one that has the name, whatever its schema."""
        try:
            return self.create_table(identifier, schema, location, partition_spec, sort_order, properties)
        except TableAlreadyExistsError:
            return self.load_table(identifier)

    def create_table_transaction(
        self,
        identifier: Name,
        schema: SchemaLike,
        location: str | None = None,
        partition_spec: SpecLike = None,
        sort_order: OrderLike = None,
        properties: Mapping[str, object] | None = None,
    ) -> Transaction:
        """A transaction at whose commit the table comes into being, with all that was added to it before."""
        wanted = self._free_name(identifier)
        definition = self._define(schema, partition_spec, sort_order, properties)
        return self._staged_create(wanted, self._new_metadata(wanted, definition, location))

    def replace_table_transaction(
        self,
        identifier: Name,
        schema: SchemaLike,
        location: str | None = None,
        partition_spec: SpecLike = None,
        sort_order: OrderLike = None,
        properties: Mapping[str, object] | None = None,
    ) -> Transaction:
        """A transaction that gives an existing table another definition and no rows; UUID and history stay."""
        definition = self._define(schema, partition_spec, sort_order, properties)
        return self._staged_replace(self.load_table(identifier), definition, location)

    def create_or_replace_table_transaction(
        self,
        identifier: Name,
        schema: SchemaLike,
        location: str | None = None,
        partition_spec: SpecLike = None,
        sort_order: OrderLike = None,
        properties: Mapping[str, object] | None = None,
    ) -> Transaction:
        """The one of both that fits what is there now."""
        arguments = (identifier, schema, location, partition_spec, sort_order, properties)
        if self.table_exists(identifier):
            return self.replace_table_transaction(*arguments)
        return self.create_table_transaction(*arguments)

    def replace_table(
        self,
        identifier: Name,
        schema: SchemaLike,
        location: str | None = None,
        partition_spec: SpecLike = None,
        sort_order: OrderLike = None,
        properties: Mapping[str, object] | None = None,
    ) -> Table:
        """Give an existing table another definition and no rows; its UUID and history stay."""
        arguments = (identifier, schema, location, partition_spec, sort_order, properties)
        return self.replace_table_transaction(*arguments).commit_transaction()

    def create_or_replace_table(
        self,
        identifier: Name,
        schema: SchemaLike,
        location: str | None = None,
        partition_spec: SpecLike = None,
        sort_order: OrderLike = None,
        properties: Mapping[str, object] | None = None,
    ) -> Table:
        """Create the table, or replace the one that has the name."""
        arguments = (identifier, schema, location, partition_spec, sort_order, properties)
        return self.create_or_replace_table_transaction(*arguments).commit_transaction()

    def load_table(self, identifier: Name) -> Table:
        """The table of that name, as it is now; `NoSuchTableError` if there is none.

        >>> catalog.load_table("shop.orders").name()
        ('shop', 'orders')
        """
        wanted = parse_identifier(identifier)
        return self._handle(wanted, self._existing_table(wanted))

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
        wanted = parse_identifier(identifier)
        if not self._drop_table(wanted, None):
            raise self._no_table(wanted)

    def purge_table(self, identifier: Name) -> None:
        """Drop a table and delete every file that any of its snapshots needs, as far as it lies in the table's locations.

        What is to be deleted is found out first: if that fails, or if the table says `gc.enabled=false`, nothing happens.
        """
        wanted = parse_identifier(identifier)
        for _ in range(_PURGE_ATTEMPTS):
            state = self._existing_table(wanted)
            check_purgeable(state.metadata, show(wanted))
            files = reachable_files(state.metadata, state.metadata_location, self._storage)
            if self._drop_table(wanted, state):
                delete_reachable(files, Ownership.of(state.metadata, state.metadata_location), self._storage)
                return
        raise CommitFailed(f"table {show(wanted)} changes too fast to be purged; nothing was dropped or deleted")

    def register_table(self, identifier: Name, metadata_location: str, overwrite: bool = False) -> Table:
        """Give a name to a table that exists as a metadata file.

        Args:
            identifier: the name that it gets.
            metadata_location: where its metadata file is, as `table.metadata_location` says it.
            overwrite: whether the name may be in use; it then stands for this table.
        """
        wanted = parse_identifier(identifier)
        self._check_name(wanted)
        self._require_namespace(wanted[:-1])
        location = absolute_location(metadata_location)
        metadata = read_table_metadata(self._storage, location)
        current = self._table_state(wanted) if overwrite else None
        if current is None:
            self._check_free(wanted)
        state = TableState(metadata, location)
        self._register_table(wanted, state, current)
        return self._handle(wanted, state)

    # What each catalog does in its own way

    @abstractmethod
    def _has_table(self, identifier: Identifier) -> bool: ...

    @abstractmethod
    def _table_state(self, identifier: Identifier) -> TableState | None:
        """What the table is now; None if there is none of that name."""

    @abstractmethod
    def _create_table(self, identifier: Identifier, metadata: TableMetadata) -> TableState:
        """Bring a table into being, in one step; AlreadyExistsError if the name is taken."""

    @abstractmethod
    def _register_table(self, identifier: Identifier, state: TableState, current: TableState | None) -> None: ...

    @abstractmethod
    def _rename_table(self, source: Identifier, target: Identifier) -> None: ...

    @abstractmethod
    def _drop_table(self, identifier: Identifier, state: TableState | None) -> bool:
        """Drop the name, if it stands for that state, or for any; whether it did."""

    @abstractmethod
    def _committer(self, identifier: Identifier) -> Committer: ...

    def _default_location(self, identifier: Identifier) -> str:
        """Where a new table of that name goes."""
        home = self._load_namespace(identifier[:-1]).get("location")
        folder = namespace_folder(self._warehouse, identifier[:-1]) if home is None else absolute_location(home)
        if folder is None:
            raise InvalidLocationError(
                f"{show(identifier)} needs a location: catalog {self._name!r} has no `warehouse` to put it in"
            )
        return new_location(folder, identifier[-1], self._properties, self._storage)

    def _check_free(self, identifier: Identifier) -> None:
        """Fail if the name is in use."""
        if self._has_table(identifier):
            raise TableAlreadyExistsError(f"table {show(identifier)} already exists in catalog {self._name!r}")

    def _no_table(self, identifier: Identifier) -> NoSuchTableError:
        return NoSuchTableError(f"no table {show(identifier)} in catalog {self._name!r}")

    # Steps that several operations share

    def _free_name(self, identifier: Name, what: str = "table") -> Identifier:
        wanted = parse_identifier(identifier, what)
        self._check_name(wanted)
        self._require_namespace(wanted[:-1])
        self._check_free(wanted)
        return wanted

    def _existing_table(self, identifier: Identifier) -> TableState:
        state = self._table_state(identifier)
        if state is None:
            raise self._no_table(identifier)
        return state

    def _handle(self, identifier: Identifier, state: TableState) -> Table:
        return Table(identifier, state, self._committer(identifier), reporter=self.reporter)

    def _define(
        self, schema: SchemaLike, spec: SpecLike, order: OrderLike, properties: Mapping[str, object] | None
    ) -> TableDefinition:
        given = checked_table_properties(properties)
        return define_table(
            schema, spec, order, {**self._prefixed(_TABLE_DEFAULT), **given, **self._prefixed(_TABLE_OVERRIDE)}
        )

    def _prefixed(self, prefix: str) -> dict[str, str]:
        """Table properties that the catalog's own set or enforce, as in the Java library."""
        return {key.removeprefix(prefix): value for key, value in self._properties.items() if key.startswith(prefix)}

    def _new_metadata(self, identifier: Identifier, definition: TableDefinition, location: str | None) -> TableMetadata:
        place = self._default_location(identifier) if location is None else self._given_location(identifier, location)
        return definition.new_metadata(place, str(uuid.uuid4()), now_ms())

    def _given_location(self, identifier: Identifier, location: str) -> str:  # noqa: ARG002 - hadoop looks at the name
        return strip_trailing_slash(absolute_location(location))

    def _staged_create(self, identifier: Identifier, metadata: TableMetadata) -> Transaction:
        usual = self._committer(identifier)
        committer = StagedCommitter(identifier, metadata, usual, self._table_state, self._create_table, now_ms)
        table = Table(identifier, TableState(metadata, None), committer, reporter=self.reporter)
        transaction = table.transaction()
        transaction.add(CreateTable(metadata))
        return transaction

    def _staged_replace(self, table: Table, definition: TableDefinition, location: str | None) -> Transaction:
        place = None if location is None else self._given_location(table.name(), location)
        transaction = table.transaction()
        transaction.add(ReplaceTable(definition, place))
        return transaction

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._name!r}, warehouse={self._warehouse!r})"
