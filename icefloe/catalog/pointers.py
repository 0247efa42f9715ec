"""Decides how a catalog commits that keeps, for each name, the location of a metadata file: write, then swap the pointer."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from icefloe import commit as cm, errors, metadata as md, properties as props
from icefloe.catalog import table_files
from icefloe.catalog.catalog import Catalog
from icefloe.catalog.committers import CatalogCommitter, identifier_of
from icefloe.catalog.identifiers import Identifier, show
from icefloe.catalog.seals import KnownSeals, Seal, seal_of
from icefloe.catalog.views import View, Views
from icefloe.commit import delete_quietly
from icefloe.storage import Storage

TABLE, VIEW = "table", "view"
"""What a name can stand for; tables and views share their names."""

NOT_COMMITTED = "of a commit that did not happen"
"""Why a file is deleted."""


class RefusedAlongsideError(Exception):
    """What was to be done in the transaction of a change refuses it; nothing happened."""


@dataclass(frozen=True, slots=True)
class PointerSwap:
    """A name is to stand for another metadata file than the expected one; None: the name must be free."""

    identifier: Identifier
    expected: str | None
    location: str
    seal: Seal | None = None
    """What is kept of the new file, if the table is encrypted."""


@dataclass(frozen=True, slots=True)
class Pointer:
    """What a name stands for: a metadata file, and what is kept of it if its table is encrypted."""

    location: str
    seal: Seal | None = None


class Pointers(ABC):
    """The metadata locations of all tables of a catalog, or of all its views, by name.

    Each step is conditional and tells what it did. A step that fails in a way that leaves it open whether it happened raises
    CommitStateUnknown, and then no file is deleted here; a StorageError says for certain that it did not.
    """

    def __init__(self, catalog: str, noun: str) -> None:
        self._catalog = catalog
        self._noun = noun

    @abstractmethod
    def find(self, identifier: Identifier) -> str | None:
        """The metadata location of the name; None if it has none here."""

    def located(self, identifier: Identifier) -> Pointer | None:
        """The same, and what is kept of the file, by one question."""
        location = self.find(identifier)
        return None if location is None else Pointer(location)

    def check_kept(self) -> None:  # noqa: B027 - most catalogs keep both
        """Fail if the catalog keeps no such names."""

    @abstractmethod
    def insert(self, identifier: Identifier, location: str, seal: Seal | None = None) -> bool:
        """Take a name that is free; whether it was. What is kept of the file is part of the same step."""

    @abstractmethod
    def swap(self, identifier: Identifier, expected: str, location: str, seal: Seal | None = None) -> bool:
        """Set another location if the present one is the expected one, in one conditional step; whether it was."""

    @abstractmethod
    def remove(self, identifier: Identifier, expected: str | None = None) -> bool:
        """Free a name, if it has the expected location, or whatever it has; whether it did."""

    @abstractmethod
    def move(self, source: Identifier, target: Identifier) -> bool:
        """Give a name another one, which must be free (AlreadyExistsError); whether there was such a name."""

    @abstractmethod
    def names(self, namespace: Identifier) -> set[Identifier]:
        """The names in a namespace."""

    @abstractmethod
    def swap_all(self, swaps: Sequence[PointerSwap]) -> bool:
        """Several swaps in one step, all or none; whether all names were as expected, and all were done."""

    def take(self, identifier: Identifier, location: str, storage: Storage, seal: Seal | None = None) -> bool:
        """Let a new file have a name that is free; whether it was. If the file certainly does not have it, it is deleted."""
        try:
            done = self.insert(identifier, location, **_sealed(seal))
        except errors.CommitStateUnknown:
            # The name may be ours all the same; to find it free proves nothing, as our step may still arrive.
            seen = self.seen(identifier)
            if seen is None:
                raise
            done = seen == location
        except (errors.StorageError, errors.InvalidInputError, errors.EncryptionError, RefusedAlongsideError):
            delete_quietly(storage, [location], "of a name that was not taken")
            raise
        # A request may have been sent twice by something on the way: then the name is ours.
        if done or self.seen(identifier) == location:
            return True
        delete_quietly(storage, [location], "of a name that was taken")
        return False

    def replace(
        self, identifier: Identifier, expected: str, location: str, storage: Storage, seal: Seal | None = None
    ) -> bool:
        """Let a new file replace the expected one; whether it did.

        If it did not, the file stays until it is proven that nobody needs it: a request may have been sent twice by
        something on the way, and another writer may have built on the first of both. It is deleted where an error says
        for certain that nothing happened.
        """
        try:
            done = self.swap(identifier, expected, location, **_sealed(seal))
            return done or self.seen(identifier) == location
        except errors.CommitStateUnknown:
            if self.seen(identifier) != location:
                raise
            return True
        except errors.StorageError as error:
            delete_quietly(storage, [location], NOT_COMMITTED)
            raise self.not_changed(identifier, f"nothing was changed: {error}") from error
        except (errors.InvalidInputError, errors.EncryptionError, RefusedAlongsideError):
            delete_quietly(storage, [location], NOT_COMMITTED)
            raise

    def lost(self, identifier: Identifier, expected: str) -> errors.CommitFailed:
        """The error of a lost race."""
        return self.not_changed(identifier, f"another writer committed first: it is no longer at {expected}")

    def not_changed(self, identifier: Identifier, problem: str) -> errors.CommitFailed:
        """The error of a swap that certainly did not happen."""
        return errors.CommitFailed(f"{self._noun} {show((self._catalog, *identifier))} was not changed; {problem}")

    def seen(self, identifier: Identifier) -> str | None:
        """The pointer as far as it can be read, after a step whose outcome is open."""
        try:
            return self.find(identifier)
        except errors.StorageError:
            return None


def _sealed(seal: Seal | None) -> dict[str, Seal]:
    """The argument for tables that are encrypted: most are not, and many pointers know none."""
    return {} if seal is None else {"seal": seal}


class PointerCatalog(Catalog):
    """A catalog that keeps a metadata location for each name."""

    _table_pointers: Pointers
    _view_pointers: Pointers
    _sees_every_commit = True

    def __init__(self, name: str, properties: Mapping[str, str]) -> None:
        super().__init__(name, properties)
        self._seals = KnownSeals()
        self._read_metadata = table_files.ReadMetadata()
        self._lost: dict[Identifier, list[tuple[str | None, str]]] = {}
        """Metadata files of lost races with the id of their table, until it is read again and shows that it needs none."""

    @property
    def views(self) -> Views:
        """The views: `catalog.views.create(...)`, `catalog.views.load(...)` and so on."""
        return PointerViews(self, self._view_pointers)

    def _has_table(self, identifier: Identifier) -> bool:
        return self._table_pointers.find(identifier) is not None

    def _metadata_location(self, identifier: Identifier) -> str | None:
        pointer = self._table_pointers.located(identifier)
        if pointer is None:
            return None
        self._seals.keep(pointer.location, pointer.seal)
        return pointer.location

    def _read_table(self, location: str) -> md.TableMetadata:
        """The metadata in a file that a name of this catalog stands for, checked against what is kept of it."""
        return self._read_metadata.read(self._storage, location, self._seals.of(location))

    def _table_names(self, namespace: Identifier) -> set[Identifier]:
        return self._table_pointers.names(namespace)

    def _table_state(self, identifier: Identifier) -> cm.TableState | None:
        location = self._metadata_location(identifier)
        return None if location is None else cm.TableState(self._read_table(location), location)

    def _create_table(self, identifier: Identifier, metadata: md.TableMetadata) -> cm.TableState:
        location, seal = table_files.write_sealed_metadata(self._storage, metadata, None)
        if not self._table_pointers.take(identifier, location, self._storage, seal):
            raise self._taken(identifier)
        self._seals.keep(location, seal)
        return cm.TableState(metadata, location)

    def _taken(self, identifier: Identifier) -> errors.AlreadyExistsError:
        if self._view_pointers.find(identifier) is not None:
            return errors.ViewAlreadyExistsError(f"{show(identifier)} is a view in catalog {self._name!r}")
        return errors.TableAlreadyExistsError(f"table {show(identifier)} already exists in catalog {self._name!r}")

    def _check_free(self, identifier: Identifier) -> None:
        if self._has_table(identifier) or self._view_pointers.find(identifier) is not None:
            raise self._taken(identifier)

    def _no_table(self, identifier: Identifier) -> errors.NoSuchTableError:
        if self._view_pointers.find(identifier) is not None:
            return errors.NoSuchTableError(f"{show(identifier)} is a view, not a table, in catalog {self._name!r}")
        return super()._no_table(identifier)

    def _register_table(self, identifier: Identifier, state: cm.TableState, current: cm.TableState | None) -> None:
        location = str(state.metadata_location)
        # What is registered is trusted from now on.
        seal = table_files.seal_of_file(self._storage, location)
        if current is not None and seal_of(current.metadata, b"") is not None:
            props.check_encryption_stays(current.metadata.properties, state.metadata.properties, is_new=False)
        if current is None:
            if not self._table_pointers.insert(identifier, location, **_sealed(seal)):
                raise self._taken(identifier)
        elif location != current.metadata_location and not self._table_pointers.swap(
            identifier, str(current.metadata_location), location, **_sealed(seal)
        ):
            raise errors.CommitFailed(
                f"table {show(identifier)} was changed while it was being registered again; nothing was done"
            )

    def _insert_as_it_is(self, identifier: Identifier, location: str) -> bool:
        """Let a file have a name that is free, whatever it is like; whether it was."""
        try:
            seal = table_files.seal_of_file(self._storage, location)
        except (errors.CorruptFileError, errors.StorageError, errors.InvalidInputError):
            # Without a seal it is refused once it can be read, if it is encrypted.
            seal = None
        return self._table_pointers.insert(identifier, location, **_sealed(seal))

    def _rename_table(self, source: Identifier, target: Identifier) -> None:
        if not self._table_pointers.move(source, target):
            raise self._no_table(source)

    def _drop_table(self, identifier: Identifier, state: cm.TableState | None) -> bool:
        return self._table_pointers.remove(identifier, None if state is None else state.metadata_location)

    def _committer(self, identifier: Identifier) -> "PointerCommitter":
        return PointerCommitter(self, identifier)

    def _commit_tables(self, parts: Sequence[cm.Part]) -> list[cm.TableState]:
        # What a server may ask of a catalog is made of the catalogs here.
        from icefloe.catalog.serving import ServedCatalog, TableChange

        def change(part: cm.Part) -> TableChange:
            identifier = identifier_of(part.committer)
            if part.base.metadata_location is None:
                prepared = part.prepared
                created = md.apply_all(
                    part.base.metadata, prepared.updates, cm.now_ms(), requirements=prepared.requirements
                )
                return TableChange(identifier, None, created=created)
            return TableChange(identifier, part.base, part.prepared)

        return ServedCatalog(self).commit_all([change(part) for part in parts])


class PointerCommitter(CatalogCommitter):
    """One table of such a catalog, as commits see it."""

    _catalog: PointerCatalog

    def load(self) -> cm.TableState:
        """The newest state; what lost races left of this table is deleted, if that shows that it needs none of it."""
        # Before the table is read: a race that is lost later may concern a newer state.
        lost = self._catalog._lost.pop(self._identifier, [])
        state = super().load()
        logged = (state.metadata.resolve(entry.metadata_file) for entry in state.metadata.metadata_log)
        needed = {state.metadata_location, *logged}
        # Another table may have the name by now: it says nothing about these files.
        own = [location for table_uuid, location in lost if table_uuid == state.metadata.table_uuid]
        if leftovers := [location for location in own if location not in needed]:
            delete_quietly(self.storage, leftovers, NOT_COMMITTED)
        return state

    def commit(self, base: cm.TableState, prepared: cm.Prepared, before_swap: cm.BeforeSwap) -> cm.TableState:
        """One attempt to change the table: see `Committer.commit`.

        The metadata is written beside the files that it names, and the swap waits for all of them.
        """
        catalog, identifier, expected = self._catalog, self._identifier, str(base.metadata_location)
        pointers = catalog._table_pointers
        try:
            # Metadata files never change, so that the base is not read again.
            current = pointers.find(identifier)
            if current is None:
                raise catalog._no_table(identifier)
            if current != base.metadata_location:
                raise errors.StaleBaseError(cm.stale(self.name, base.metadata_location, current))
            changed = md.apply_all(
                base.metadata, prepared.updates, cm.now_ms(), base.metadata_location, prepared.requirements
            )
            if changed is base.metadata:
                return base
            location, seal = table_files.write_sealed_metadata(self.storage, changed, expected)
        except (errors.StorageError, errors.CorruptFileError) as error:
            raise errors.CommitFailed(
                f"the commit to {self.name} was not started; nothing was changed: {error}"
            ) from error
        try:
            before_swap()
        except Exception:
            delete_quietly(self.storage, [location], NOT_COMMITTED)
            raise
        if not pointers.replace(identifier, expected, location, self.storage, seal):
            catalog._lost.setdefault(identifier, []).append((changed.table_uuid, location))
            raise pointers.lost(identifier, expected)
        catalog._seals.keep(location, seal)
        table_files.delete_superseded(self.storage, base, changed)
        return cm.TableState(changed, location)


class PointerViews(Views):
    """The views of a catalog that keeps a metadata location for each."""

    def __init__(self, catalog: PointerCatalog, pointers: Pointers) -> None:
        super().__init__(catalog)
        self._storage = catalog.storage
        self._pointers = pointers
        self._taken = catalog._taken

    def _has(self, identifier: Identifier) -> bool:
        return self._pointers.find(identifier) is not None

    def _find(self, identifier: Identifier) -> View | None:
        location = self._pointers.find(identifier)
        if location is None:
            return None
        return View(identifier, table_files.read_view_metadata(self._storage, location), location)

    def _names(self, namespace: Identifier) -> set[Identifier]:
        return self._pointers.names(namespace)

    def _store_new(self, identifier: Identifier, view: md.ViewMetadata) -> View:
        self._pointers.check_kept()
        location = table_files.write_view_metadata(self._storage, view, None)
        if not self._pointers.take(identifier, location, self._storage):
            raise self._taken(identifier)
        return View(identifier, view, location)

    def _swap(self, base: View, changed: md.ViewMetadata) -> View:
        try:
            location = table_files.write_view_metadata(self._storage, changed, base.metadata_location)
        except errors.StorageError as error:
            raise errors.CommitFailed(
                f"the commit to view {show(base.identifier)} was not started; nothing was changed: {error}"
            ) from error
        if not self._pointers.replace(base.identifier, base.metadata_location, location, self._storage):
            # Later versions of a view do not need the files of earlier ones.
            delete_quietly(self._storage, [location], NOT_COMMITTED)
            raise self._pointers.lost(base.identifier, base.metadata_location)
        return View(base.identifier, changed, location)

    def _move(self, source: Identifier, target: Identifier) -> bool:
        return self._pointers.move(source, target)

    def _remove(self, identifier: Identifier) -> bool:
        return self._pointers.remove(identifier)
