"""Decides what a server may ask of a catalog besides what users may: pointers alone, metadata as it is, several tables at once.

Nothing here changes how a catalog commits: these are the steps that its own operations are made of.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from icefloe import commit as cm, errors, metadata as md
from icefloe.catalog import table_files
from icefloe.catalog.catalog import Catalog
from icefloe.catalog.committers import CatalogCommitter
from icefloe.catalog.definitions import TableDescription
from icefloe.catalog.identifiers import Identifier, show
from icefloe.catalog.pointers import NOT_COMMITTED, PointerCatalog, PointerSwap, RefusedAlongsideError
from icefloe.catalog.rest.catalog import RestCatalog
from icefloe.catalog.seals import Seal
from icefloe.catalog.sql import SqlCatalog
from icefloe.catalog.sql_database import Alongside, Database
from icefloe.catalog.views import View
from icefloe.commit import delete_quietly
from icefloe.maintenance import delete_contents, reachable_contents
from icefloe.metadata import updates as up
from icefloe.storage import absolute_location, is_beneath, parse_location

_SUFFIX = re.compile(r"-[0-9a-f]{32}")
"""What a default location ends with that was in use already."""


@dataclass(frozen=True, slots=True)
class TableChange:
    """One table of a commit to several: updates that were prepared on `base`, or the metadata of a new table."""

    identifier: Identifier
    base: cm.TableState | None
    prepared: cm.Prepared = field(default_factory=cm.Prepared)
    created: md.TableMetadata | None = None


@dataclass(frozen=True, slots=True)
class _Written:
    """A metadata file of such a commit, which is not the table's yet."""

    change: TableChange
    metadata: md.TableMetadata
    location: str
    seal: Seal | None = None


class ServedCatalog:
    """A catalog as a server sees it; names are tuples of levels, and are checked as those of users."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog

    @property
    def database(self) -> Database | None:
        """The database of names; None of a catalog that has none."""
        return self.catalog._database if isinstance(self.catalog, SqlCatalog) else None

    @property
    def takes_changes(self) -> bool:
        """Whether a server changes it; one that is itself behind a server is changed there."""
        return not isinstance(self.catalog, RestCatalog)

    @property
    def changes_several(self) -> bool:
        """Whether several tables can be changed in one step."""
        return isinstance(self.catalog, PointerCatalog)

    @property
    def keeps_views(self) -> bool:
        """Whether it has views at all."""
        if not isinstance(self.catalog, PointerCatalog):
            return type(self.catalog).views is not Catalog.views
        try:
            self.catalog._view_pointers.check_kept()
        except errors.InvalidInputError:
            return False
        return True

    @contextmanager
    def alongside(self, more: Alongside) -> Iterator[None]:
        """In this block, a change of names does more in its transaction; a catalog without a database cannot."""
        database = self.database
        if database is None:
            raise errors.UnsupportedOperationError(
                f"catalog {self.catalog.name!r} does not store its names in a database"
            )
        with database.alongside(more):
            yield

    # Tables

    def table_location(self, identifier: Identifier) -> str | None:
        """Where the metadata of a table is, by one small question; None if there is no such table."""
        return self.catalog._metadata_location(identifier)

    def table_locations(self, identifiers: Collection[Identifier]) -> Mapping[Identifier, str]:
        """The same for several tables, by one question if there is a database; those that are not there are left out."""
        if isinstance(self.catalog, SqlCatalog):
            pointers = self.catalog._table_pointers.located_all(identifiers)
            for pointer in pointers.values():
                self.catalog._seals.keep(pointer.location, pointer.seal)
            return {identifier: pointer.location for identifier, pointer in pointers.items()}
        locations = {identifier: self.table_location(identifier) for identifier in identifiers}
        return {identifier: location for identifier, location in locations.items() if location is not None}

    def namespace_folder(self, namespace: Identifier) -> str | None:
        """Where the tables of a namespace are by default, by its name alone; None without a warehouse."""
        return table_files.namespace_folder(self.catalog._warehouse, namespace)

    def committer(self, identifier: Identifier) -> CatalogCommitter:
        """One table, for commits."""
        return self.catalog._committer(identifier)

    def read_table(self, location: str) -> md.TableMetadata:
        """The metadata in a file."""
        if isinstance(self.catalog, PointerCatalog):
            return self.catalog._read_table(location)
        return table_files.read_table_metadata(self.catalog.storage, location)

    def new_metadata(self, table: TableDescription) -> md.TableMetadata:
        """The metadata of a table that is not there yet, and is not created by this."""
        return self.catalog._new_metadata(self.catalog._free_name(table.identifier), table)

    def create_table(self, identifier: Identifier, metadata: md.TableMetadata) -> cm.TableState:
        """Create a table with that metadata."""
        return self.catalog._create_table(self.catalog._free_name(identifier), metadata)

    def drop_table(self, identifier: Identifier, location: str) -> bool:
        """Drop a table if its metadata is at that location; whether it was. A table that cannot be read can be dropped."""
        if isinstance(self.catalog, PointerCatalog):
            return self.catalog._table_pointers.remove(identifier, location)
        return self.catalog._drop_table(identifier, cm.TableState(self.read_table(location), location))

    def is_own_place(self, identifier: Identifier, location: str) -> bool:
        """Whether a location is one that the catalog chooses for a table of that name."""
        folder = self.catalog._default_folder(identifier[:-1])
        if folder is None:
            return False
        absolute, own = absolute_location(location), f"{folder.rstrip('/')}/{table_files.folder_name(identifier[-1])}"
        suffix = absolute.rstrip("/").removeprefix(own)
        return absolute.startswith(own) and (not suffix or _SUFFIX.fullmatch(suffix) is not None)

    def is_in_own_place(self, identifier: Identifier, location: str) -> bool:
        """Whether a location is inside of one that the catalog chooses for a table of that name."""
        folder = self.catalog._default_folder(identifier[:-1])
        try:
            if folder is None or not is_beneath(folder, location):
                return False
        except errors.InvalidLocationError:
            return False
        around = parse_location(folder)
        first = parse_location(location).path.removeprefix(f"{around.path.rstrip('/')}/").partition("/")[0]
        return self.is_own_place(identifier, f"{folder.rstrip('/')}/{first}")

    def check_purgeable(self, state: cm.TableState) -> None:
        """Fail if the files of a table may belong to others, too."""
        table_files.check_purgeable((str(state.metadata_location),), state.metadata)

    def purge_files(self, state: cm.TableState) -> Callable[[], None]:
        """What deletes the files of a table once it is dropped; they are collected now, so that a failure is told before."""
        storage, location = self.catalog.storage, str(state.metadata_location)
        self.check_purgeable(state)
        contents = reachable_contents(state.metadata, location, storage)
        return lambda: _nothing(delete_contents(contents, state.metadata, location, storage))

    def commit_all(self, changes: Sequence[TableChange]) -> list[cm.TableState]:
        """Change several tables in one step: all, or none (CommitFailed), or nobody knows (CommitStateUnknown)."""
        catalog = self.catalog
        if not isinstance(catalog, PointerCatalog):
            raise errors.UnsupportedOperationError(
                f"catalog {catalog.name!r} cannot commit to several tables atomically; commit to each table separately"
            )
        written: list[_Written] = []
        unchanged: dict[Identifier, cm.TableState] = {}
        try:
            for change in changes:
                metadata = self._next(catalog, change)
                if change.base is not None and metadata is change.base.metadata:
                    unchanged[change.identifier] = change.base
                    continue
                previous = None if change.base is None else change.base.metadata_location
                location, seal = table_files.write_sealed_metadata(catalog.storage, metadata, previous)
                written.append(_Written(change, metadata, location, seal))
        except Exception as error:
            delete_quietly(catalog.storage, [each.location for each in written], NOT_COMMITTED)
            if isinstance(error, errors.StorageError | errors.CorruptFileError):
                raise errors.CommitFailed(f"the commit was not started; nothing was changed: {error}") from error
            raise
        if written:
            _swap_all(catalog, written)
        done = {each.change.identifier: cm.TableState(each.metadata, each.location) for each in written} | unchanged
        return [done[change.identifier] for change in changes]

    def _next(self, catalog: PointerCatalog, change: TableChange) -> md.TableMetadata:
        if change.base is None:
            assert change.created is not None, "a change has a base, or creates"
            catalog._check_free(change.identifier)
            return change.created
        current = self.table_location(change.identifier)
        if current is None:
            raise catalog._no_table(change.identifier)
        if current != change.base.metadata_location:
            raise errors.StaleBaseError(cm.stale(show(change.identifier), change.base.metadata_location, current))
        base, prepared = change.base, change.prepared
        return md.apply_all(base.metadata, prepared.updates, cm.now_ms(), base.metadata_location, prepared.requirements)

    # Views

    def view_location(self, identifier: Identifier) -> str | None:
        """Where the metadata of a view is; None if there is no such view."""
        if isinstance(self.catalog, PointerCatalog):
            return self.catalog._view_pointers.find(identifier)
        view = self.catalog.views._find(identifier)
        return None if view is None else view.metadata_location

    def read_view(self, location: str) -> md.ViewMetadata:
        """The metadata in a file of a view."""
        return table_files.read_view_metadata(self.catalog.storage, location)

    def create_view(self, identifier: Identifier, updates: Sequence[up.ViewUpdate], location: str | None) -> View:
        """Create a view by its updates, at that location or the default one."""
        catalog = self.catalog
        free = catalog._free_name(identifier, "view")
        placed = up.SetLocationUpdate(catalog._location_of(free, location))
        return catalog.views._store_new(free, md.apply_view_all(None, [placed, *updates], cm.now_ms()))

    def change_view(
        self, identifier: Identifier, updates: Sequence[up.ViewUpdate], check: Callable[[View], None]
    ) -> View:
        """Change a view as often as it takes, as long as it passes the check."""
        return self.catalog.views._change(identifier, updates, check)

    def register_view(self, identifier: Identifier, metadata_location: str) -> View:
        """Give a name to a view that exists as a metadata file."""
        catalog = self.catalog
        free = catalog._free_name(identifier, "view")
        location = absolute_location(metadata_location)
        metadata = self.read_view(location)
        if not isinstance(catalog, PointerCatalog):
            raise errors.UnsupportedOperationError(f"catalog {catalog.name!r} does not support registering views")
        catalog._view_pointers.check_kept()
        if not catalog._view_pointers.insert(free, location):
            raise catalog._taken(free)
        return View(free, metadata, location)

    # Names

    def namespace_exists(self, namespace: Identifier) -> bool:
        """Whether the namespace exists."""
        return self.catalog.namespace_exists(namespace)

    def register_again(self, identifier: Identifier, metadata_location: str) -> None:
        """Give a dropped table its name back, if that is free, whatever its files are like."""
        catalog = self.catalog
        free = catalog._free_name(identifier)
        if not isinstance(catalog, PointerCatalog) or not catalog._insert_as_it_is(free, metadata_location):
            raise errors.TableAlreadyExistsError(f"table {show(free)} already exists in catalog {catalog.name!r}")


def _nothing(_: object) -> None:
    return None


def _swap_all(catalog: PointerCatalog, written: Sequence[_Written]) -> None:
    """Let new files have their names, all in one step. What is not proven to be unneeded stays."""
    pointers, locations = catalog._table_pointers, [each.location for each in written]
    swaps = [PointerSwap(each.change.identifier, _expected(each.change), each.location, each.seal) for each in written]
    name = ", ".join(show((catalog.name, *each.change.identifier)) for each in written)
    try:
        done = pointers.swap_all(swaps)
    except errors.CommitStateUnknown:
        if not _are_seen(catalog, swaps):
            raise
        done = True
    except errors.StorageError as error:
        delete_quietly(catalog.storage, locations, NOT_COMMITTED)
        raise errors.CommitFailed(f"{name} were not changed: {error}") from error
    except (errors.InvalidInputError, errors.StateError, RefusedAlongsideError):
        # What refused it did so in the transaction, which was rolled back. After any other error nobody knows, and files stay.
        delete_quietly(catalog.storage, locations, NOT_COMMITTED)
        raise
    if not done and not _are_seen(catalog, swaps):
        for each in written:
            catalog._lost.setdefault(each.change.identifier, []).append((each.metadata.table_uuid, each.location))
        raise errors.CommitFailed(f"{name} were not changed: another writer committed first")
    for each in written:
        catalog._seals.keep(each.location, each.seal)
        if each.change.base is not None:
            table_files.delete_superseded(catalog.storage, each.change.base, each.metadata)


def _expected(change: TableChange) -> str | None:
    return None if change.base is None else change.base.metadata_location


def _are_seen(catalog: PointerCatalog, swaps: Sequence[PointerSwap]) -> bool:
    """Whether all names stand for the new files, so that the step was done."""
    return all(catalog._table_pointers.seen(each.identifier) == each.location for each in swaps)
