"""Decides how a catalog behind a REST server does what every catalog does: the server keeps names, checks and commits."""

import os
import threading
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from urllib.parse import unquote

from icefloe import commit as cm, errors, metadata as md, properties as props, rest
from icefloe.catalog.catalog import Catalog
from icefloe.catalog.definitions import TableDescription
from icefloe.catalog.identifiers import Identifier, Name, parse_identifier, parse_namespace, show
from icefloe.catalog.namespaces import namespace_properties
from icefloe.catalog.rest.auth import shown_url, table_session
from icefloe.catalog.rest.committers import RestCommitter, StagedRestCommitter, creation_updates, request_of
from icefloe.catalog.rest.connected import Connected
from icefloe.catalog.rest.history import ReferencedMetadata
from icefloe.catalog.rest.http import RestClient
from icefloe.catalog.rest.plan_server import TablePlanServer
from icefloe.catalog.rest.planner import planner_of
from icefloe.catalog.rest.reporting import RestReporter
from icefloe.catalog.rest.session import RestSession, checked_settings
from icefloe.catalog.rest.table_storage import table_storage
from icefloe.catalog.rest.tables import RestTables
from icefloe.catalog.rest.views import RestViews
from icefloe.catalog.seals import check_has_kms
from icefloe.catalog.table_files import check_purgeable
from icefloe.catalog.views import Views
from icefloe.encryption import KMS_PREFIXES, Keyring
from icefloe.metadata import requirements as req, updates as up
from icefloe.planning import Reporter
from icefloe.rest import paths
from icefloe.rest.dropped_codec import DroppedTable
from icefloe.storage import Storage, absolute_location
from icefloe.table import Table, Transaction

_SOMEWHERE = "memory://nowhere/table"
_REPORTS = "rest-metrics-reporting-enabled"


class RestCatalog(Catalog):
    """A catalog behind a server that speaks Iceberg's REST protocol.

    It connects when it is first used. Processes that were forked off, and pickles, make connections of their own.
    """

    def __init__(self, name: str, properties: Mapping[str, str], timing: cm.Timing | None = None) -> None:
        # What a server calls a warehouse is a name, not a location.
        super().__init__(name, {key: value for key, value in properties.items() if key != rest.config_codec.WAREHOUSE})
        self._properties = dict(properties)
        self._timing = timing
        checked_settings(name, properties)
        self._lock = threading.Lock()
        self._open: Connected | None = None

    def __reduce__(self) -> tuple[type["RestCatalog"], tuple[str, dict[str, str]]]:
        return RestCatalog, (self._name, self._properties)

    @property
    def _keyring(self) -> Keyring | None:
        """The keys of encrypted tables, by what the user says alone."""
        return self._storage.keyring

    def _without_keys(self) -> "RestCatalog":
        """The same for other processes, which get the keys of files and must not reach the KMS."""
        kept = {key: value for key, value in self._properties.items() if not key.startswith(KMS_PREFIXES)}
        return self if len(kept) == len(self._properties) else RestCatalog(self._name, kept)

    def __repr__(self) -> str:
        return f"RestCatalog({self._name!r}, uri={shown_url(self._properties.get('uri', ''))!r})"

    @property
    def storage(self) -> Storage:
        """Where files are by the properties of the catalog alone; a table's own is `table.storage`."""
        return self._connected.storage

    @property
    def views(self) -> Views:
        """The views: `catalog.views.create(...)`, `catalog.views.load(...)` and so on."""
        return RestViews(self)

    def close(self) -> None:
        """Give back connections; the catalog opens new ones if it is used again."""
        with self._lock:
            known, self._open = self._open, None
        if known is not None and known.process == os.getpid():
            known.close()

    @property
    def _connected(self) -> Connected:
        known = self._open
        if known is not None and known.process == os.getpid():
            return known
        with self._lock:
            if self._open is None or self._open.process != os.getpid():
                session = RestSession.connect(self._name, self._properties, self._timing)
                self._open = Connected(session, self._keyring)
            return self._open

    @property
    def _tables(self) -> RestTables:
        return self._connected.tables

    @property
    def _merged(self) -> Mapping[str, str]:
        """The properties of the client with what the server sets."""
        return self._connected.session.properties

    def _prefixed(self, prefix: str) -> dict[str, str]:
        return {key.removeprefix(prefix): value for key, value in self._merged.items() if key.startswith(prefix)}

    # Namespaces

    def create_namespace(self, namespace: Name, properties: Mapping[str, object] | None = None) -> None:
        """Create a namespace; whether those around it must exist is the server's to say."""
        parsed = parse_namespace(namespace)
        self._check_name((*parsed, ""))
        self._create_namespace(parsed, namespace_properties(properties))

    def drop_namespace(self, namespace: Name) -> None:
        """Drop an empty namespace."""
        parsed = parse_namespace(namespace)
        try:
            if not self._connected.namespaces.drop(parsed):
                raise self._no_namespace(parsed)
        except errors.NamespaceNotEmptyError:
            self._check_empty(parsed)
            raise

    def _check_name(self, identifier: Identifier) -> None:
        separator = unquote(self._connected.session.separator)
        for part in identifier[:-1]:
            if separator in part:
                raise errors.InvalidInputError(
                    f"namespace {show(identifier[:-1])} has the part {part!r}; the server reserves {separator!r} as the separator of parts"
                )

    def _existing_namespace(self, namespace: Name) -> Identifier:
        # The server says so when it is asked about something in it.
        return parse_namespace(namespace)

    def _namespace_exists(self, namespace: Identifier) -> bool:
        return self._connected.namespaces.exists(namespace)

    def _create_namespace(self, namespace: Identifier, properties: dict[str, str]) -> None:
        try:
            self._connected.namespaces.create(namespace, properties)
        except errors.NamespaceAlreadyExistsError as error:
            raise self._namespace_taken(namespace) from error

    def _drop_namespace(self, namespace: Identifier) -> None:
        self.drop_namespace(namespace)

    def _child_namespaces(self, parent: Identifier) -> set[Identifier]:
        with self._known_namespace(parent):
            return self._connected.namespaces.children(parent)

    def _load_namespace(self, namespace: Identifier) -> dict[str, str]:
        with self._known_namespace(namespace):
            return self._connected.namespaces.properties(namespace)

    def _change_namespace(
        self, namespace: Identifier, removals: frozenset[str], updates: dict[str, str]
    ) -> Collection[str]:
        change = rest.PropertiesChange(tuple(sorted(removals)), updates)
        with self._known_namespace(namespace):
            return self._connected.namespaces.change(namespace, change).removed

    @contextmanager
    def _known_namespace(self, namespace: Identifier) -> Iterator[None]:
        """Says in the words of all catalogs that there is no such namespace."""
        try:
            yield
        except errors.NoSuchNamespaceError as error:
            raise self._no_namespace(namespace) from error

    # Tables

    def load_table(self, identifier: Name) -> Table:
        """The table of that name, as it is now; `NoSuchTableError` if there is none."""
        parsed = parse_identifier(identifier)
        mode = props.property_as_choice(
            self._merged,
            rest.config_codec.SNAPSHOT_LOADING_MODE,
            rest.ALL_SNAPSHOTS,
            (rest.ALL_SNAPSHOTS, rest.REFERENCED_SNAPSHOTS),
        )
        loaded = self._load(parsed, mode)
        if mode == rest.REFERENCED_SNAPSHOTS:
            loaded = replace(loaded, metadata=ReferencedMetadata.of(loaded.metadata, partial(self._whole, parsed)))
        return self._table(parsed, loaded)

    def rename_table(self, source: Name, target: Name) -> Table:
        """Give a table another name, in its namespace or another; its files stay where they are."""
        old, new = parse_identifier(source), parse_identifier(target)
        self._check_name(new)
        if old != new:
            self._rename_table(old, new)
        return self.load_table(new)

    def purge_table(self, identifier: Name) -> None:
        """Drop a table; the server deletes its files. With `gc.enabled=false`, nothing happens, and it is an error."""
        parsed = parse_identifier(identifier)
        check_purgeable(parsed, self._existing_table(parsed).metadata)
        if not self._tables.drop(parsed, purge=True):
            raise self._no_table(parsed)

    def dropped_tables(self) -> list[DroppedTable]:
        """The dropped tables that can be had back, the newest first; an error if this catalog keeps none."""
        return self._tables.dropped()

    def undrop_table(self, dropped: Name | DroppedTable, identifier: Name | None = None) -> Table:
        """Have a dropped table back.

        Args:
            dropped: one of `dropped_tables()`, or the name that it had, which means the one that was dropped last.
            identifier: another name for it.
        """
        table = dropped if isinstance(dropped, DroppedTable) else self._last_dropped(parse_identifier(dropped))
        name = table.identifier if identifier is None else self._new_name(identifier)
        with self._free(name):
            self._tables.undrop(table, None if identifier is None else name)
        return self.load_table(name)

    def _last_dropped(self, identifier: Identifier) -> DroppedTable:
        for table in self.dropped_tables():
            if table.identifier == identifier:
                return table
        raise errors.NoSuchTableError(f"catalog {self._name!r} has no dropped table {show(identifier)}")

    def register_table(self, identifier: Name, metadata_location: str, overwrite: bool = False) -> Table:
        """Give a name to a table that exists as a metadata file, which the server reads.

        Args:
            identifier: the name that it gets.
            metadata_location: the location of its metadata file, as in `table.metadata_location`.
            overwrite: whether the name may be in use; it then stands for this table.
        """
        parsed = self._new_name(identifier)
        return self._table(parsed, self._register(parsed, absolute_location(metadata_location), overwrite))

    def _create(self, table: TableDescription) -> Table:
        identifier = self._new_name(table.identifier)
        return self._table(identifier, self._send_new(identifier, table, is_staged=False))

    def _stage_create(self, table: TableDescription) -> Transaction:
        identifier = self._new_name(table.identifier)
        staged = self._send_new(identifier, table, is_staged=True)
        metadata, surplus = staged.metadata, staged.surplus
        storage = self._storage_of(identifier, staged)
        committer = StagedRestCommitter(self, identifier, surplus.config, storage, metadata)
        handle = Table(identifier, cm.TableState(metadata, None), committer, reporter=self._reporter_of(identifier))
        # It says nothing that the staged metadata lacks, but there is something to commit.
        return handle.transaction().apply_updates(up.AssignUUIDUpdate(str(metadata.table_uuid)))

    def _send_new(self, identifier: Identifier, table: TableDescription, *, is_staged: bool) -> rest.LoadedTable:
        definition = self._define(table)
        location = None if table.location is None else self._given_location(identifier, table.location)
        # What no table can be is told as in every catalog, before the server is asked.
        planned = definition.new_metadata(location or _SOMEWHERE, str(uuid.uuid4()), cm.now_ms())
        check_has_kms(planned, self._keyring is not None, show(identifier))
        properties = dict(definition.properties)
        if definition.format_version is not None:
            properties[props.FORMAT_VERSION] = str(definition.format_version)
        new = rest.NewTable(
            identifier[-1], definition.schema, location, definition.spec, definition.order, properties, is_staged
        )
        with self._free(identifier):
            return self._tables.create(identifier, new)

    def _register(self, identifier: Identifier, metadata_location: str, overwrite: bool) -> rest.LoadedTable:
        with self._free(identifier):
            return self._tables.register(identifier, metadata_location, overwrite)

    def _new_name(self, identifier: Name, noun: str = "table") -> Identifier:
        parsed = parse_identifier(identifier, noun)
        self._check_name(parsed)
        return parsed

    @contextmanager
    def _free(self, identifier: Identifier) -> Iterator[None]:
        """Says in the words of all catalogs that a name is taken, or that there is no such namespace."""
        try:
            yield
        except errors.AlreadyExistsError as error:
            raise self._taken(identifier) from error
        except errors.NoSuchNamespaceError as error:
            raise self._no_namespace(identifier[:-1]) from error

    def _is_view(self, identifier: Identifier) -> bool:
        """Whether a name is that of a view; whoever may not know that is told no more than there was to say."""
        try:
            return self.views._has(identifier)
        except errors.IcefloeError:
            return False

    def _taken(self, identifier: Identifier) -> errors.AlreadyExistsError:
        if self._is_view(identifier):
            return errors.ViewAlreadyExistsError(f"{show(identifier)} is a view in catalog {self._name!r}")
        return errors.TableAlreadyExistsError(f"table {show(identifier)} already exists in catalog {self._name!r}")

    def _check_free(self, identifier: Identifier) -> None:
        if self._has_table(identifier) or self.views._has(identifier):
            raise self._taken(identifier)

    def _no_table(self, identifier: Identifier) -> errors.NoSuchTableError:
        if self._is_view(identifier):
            return errors.NoSuchTableError(f"{show(identifier)} is a view, not a table, in catalog {self._name!r}")
        return super()._no_table(identifier)

    def _table(self, identifier: Identifier, loaded: rest.LoadedTable) -> Table:
        storage = self._storage_of(identifier, loaded)
        committer = RestCommitter(self, identifier, loaded.surplus.config, storage)
        state = cm.TableState(loaded.metadata, loaded.metadata_location)
        planner = planner_of(TablePlanServer.of(self, identifier, loaded), self._merged, loaded.surplus.config)
        return Table(identifier, state, committer, reporter=self._reporter_of(identifier), planner=planner)

    def _storage_of(self, identifier: Identifier, loaded: rest.LoadedTable) -> Storage:
        return table_storage(self, identifier, loaded)

    def _reporter_of(self, identifier: Identifier) -> Reporter:
        wants = props.property_as_bool(self._merged, _REPORTS, True)
        if not wants or not self._connected.session.has(paths.REPORT_METRICS):
            return self.reporter
        return RestReporter(self, identifier, self.reporter)

    def _send_report(self, identifier: Identifier, body: bytes) -> None:
        self._connected.reports.put(show(identifier), (identifier, body))

    def _load(
        self, identifier: Identifier, snapshots: str = rest.ALL_SNAPSHOTS, config: Mapping[str, str] | None = None
    ) -> rest.LoadedTable:
        try:
            return self._tables.load(identifier, snapshots, self._client(config))
        except errors.NoSuchObjectError as error:
            raise self._no_table(identifier) from error

    def _client(self, config: Mapping[str, str] | None) -> RestClient | None:
        """In whose name requests about a table are made, if its configuration says so."""
        session = self._connected.session
        own = session.auth if config is None else table_session(session.auth, config)
        return None if own is session.auth else session.client.with_auth(own)

    def _state(self, identifier: Identifier, config: Mapping[str, str] | None = None) -> cm.TableState:
        loaded = self._load(identifier, config=config)
        return cm.TableState(loaded.metadata, loaded.metadata_location)

    def _whole(self, identifier: Identifier) -> md.TableMetadata:
        """The newest metadata of a table, with all its snapshots."""
        return self._state(identifier).metadata

    def _commit(self, commit: rest.TableCommit, config: Mapping[str, str], context: rest.Context) -> cm.TableState:
        identifier = commit.identifier or ()
        done = self._tables.commit(identifier, commit, self._client(config), context)
        return cm.TableState(done.metadata, done.metadata_location)

    # What the steps that all catalogs share ask for

    def _has_table(self, identifier: Identifier) -> bool:
        return self._tables.exists(identifier)

    def _table_names(self, namespace: Identifier) -> set[Identifier]:
        with self._known_namespace(namespace):
            return self._tables.names(namespace)

    def _table_state(self, identifier: Identifier) -> cm.TableState | None:
        try:
            return self._state(identifier)
        except errors.NoSuchTableError:
            return None

    def _create_table(self, identifier: Identifier, metadata: md.TableMetadata) -> cm.TableState:
        commit = rest.TableCommit(tuple(creation_updates(metadata)), (req.AssertCreate(),), identifier)
        with self._free(identifier):
            return self._commit(commit, {}, rest.Context.CREATE_COMMIT)

    def _register_table(self, identifier: Identifier, state: cm.TableState, current: cm.TableState | None) -> None:
        self._register(identifier, str(state.metadata_location), overwrite=current is not None)

    def _rename_table(self, source: Identifier, target: Identifier) -> None:
        try:
            self._tables.rename(source, target)
        except errors.AlreadyExistsError as error:
            raise self._taken(target) from error
        except errors.NoSuchNamespaceError as error:
            raise self._no_namespace(target[:-1]) from error
        except errors.NoSuchTableError as error:
            raise self._no_table(source) from error

    def _drop_table(self, identifier: Identifier, state: cm.TableState | None) -> bool:  # noqa: ARG002 - the server knows
        return self._tables.drop(identifier)

    def _commit_tables(self, parts: Sequence[cm.Part]) -> list[cm.TableState]:
        self._tables.commit_all(tuple(request_of(part) for part in parts))
        # The answer says no more than that it is done.
        return [part.committer.load() for part in parts]

    def _committer(self, identifier: Identifier) -> RestCommitter:
        return RestCommitter(self, identifier, {}, self.storage)
