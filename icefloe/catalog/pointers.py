"""Decides how a catalog commits that keeps, for each name, the location of a metadata file: write, then swap the pointer.

A subclass keeps names and pointers. Each of its steps is conditional and tells what it did; a step that fails in a way that
leaves it open whether it happened raises CommitStateUnknown, and then no file is deleted here; a StorageError says for
certain that it did not.
"""

from abc import abstractmethod
from collections.abc import Sequence
from enum import Enum

from icefloe.catalog.catalog import Catalog
from icefloe.catalog.clock import now_ms
from icefloe.catalog.identifiers import Identifier, show
from icefloe.catalog.metadata_files import (
    delete_superseded,
    read_table_metadata,
    read_view_metadata,
    write_table_metadata,
    write_view_metadata,
)
from icefloe.catalog.views import View
from icefloe.commit import BeforeSwap, Committer, TableState, next_state, stale
from icefloe.errors import (
    AlreadyExistsError,
    CommitFailed,
    CommitStateUnknown,
    CorruptFileError,
    InvalidInputError,
    NoSuchTableError,
    StaleBaseError,
    StorageError,
    TableAlreadyExistsError,
    ViewAlreadyExistsError,
)
from icefloe.maintenance import delete_quietly
from icefloe.metadata import TableMetadata, ViewMetadata, requirements as req, updates as up
from icefloe.storage import Storage


class Kind(Enum):
    """What a name stands for; tables and views share their names."""

    TABLE = "TABLE"
    VIEW = "VIEW"


class PointerCatalog(Catalog):
    """A catalog that keeps a metadata location for each name."""

    @abstractmethod
    def _pointer(self, kind: Kind, identifier: Identifier) -> str | None:
        """The metadata location of the name; None if it stands for nothing of that kind."""

    @abstractmethod
    def _insert_pointer(self, kind: Kind, identifier: Identifier, location: str) -> bool:
        """Take a name that is free; whether it was."""

    @abstractmethod
    def _swap_pointer(self, kind: Kind, identifier: Identifier, expected: str, location: str) -> bool:
        """Set another location if the present one is the expected one, in one conditional step; whether it was."""

    @abstractmethod
    def _remove_pointer(self, kind: Kind, identifier: Identifier, expected: str | None) -> bool:
        """Free a name, if it has the expected location, or whatever it has; whether it did."""

    @abstractmethod
    def _move_pointer(self, kind: Kind, source: Identifier, target: Identifier) -> bool:
        """Give a name another one, which must be free (AlreadyExistsError); whether there was such a name."""

    @abstractmethod
    def _names(self, kind: Kind, namespace: Identifier) -> set[Identifier]:
        """The names in a namespace."""

    def _has_table(self, identifier: Identifier) -> bool:
        return self._pointer(Kind.TABLE, identifier) is not None

    def _table_names(self, namespace: Identifier) -> set[Identifier]:
        return self._names(Kind.TABLE, namespace)

    def _has_view(self, identifier: Identifier) -> bool:
        return self._pointer(Kind.VIEW, identifier) is not None

    def _view_names(self, namespace: Identifier) -> set[Identifier]:
        return self._names(Kind.VIEW, namespace)

    def _table_state(self, identifier: Identifier) -> TableState | None:
        location = self._pointer(Kind.TABLE, identifier)
        return None if location is None else TableState(read_table_metadata(self._storage, location), location)

    def _create_table(self, identifier: Identifier, metadata: TableMetadata) -> TableState:
        location = write_table_metadata(self._storage, metadata, None)
        self._insert(Kind.TABLE, identifier, location)
        return TableState(metadata, location)

    def _insert(self, kind: Kind, identifier: Identifier, location: str) -> None:
        """Let a new file have the name, or delete the file again if it is certain that it does not."""
        try:
            done = self._insert_pointer(kind, identifier, location)
        except CommitStateUnknown:
            # The name may be ours all the same; to find it free proves nothing, as our step may still arrive.
            found = self._seen(kind, identifier)
            if found is None:
                raise
            done = found == location
        except (StorageError, InvalidInputError):
            delete_quietly(self._storage, [location], "of a name that was not taken")
            raise
        # A request may have been sent twice by something on the way: then the name is ours.
        if not done and self._seen(kind, identifier) != location:
            delete_quietly(self._storage, [location], "of a name that was taken")
            raise self._taken(identifier)

    def _swap(self, kind: Kind, identifier: Identifier, expected: str, location: str) -> bool:
        """Let a new file take the place of the expected one; whether it did.

        If it did not, the file stays until it is proven that nobody needs it: a request may have been sent twice by
        something on the way, and another writer may have built on the first of both. It is deleted where an error says
        for certain that nothing happened.
        """
        try:
            return self._swap_pointer(kind, identifier, expected, location) or self._seen(kind, identifier) == location
        except CommitStateUnknown:
            if self._seen(kind, identifier) != location:
                raise
            return True
        except StorageError as error:
            delete_quietly(self._storage, [location], "of a commit that did not happen")
            raise self._not_changed(kind, identifier, f"nothing happened: {error}") from error
        except InvalidInputError:
            delete_quietly(self._storage, [location], "of a commit that did not happen")
            raise

    def _not_changed(self, kind: Kind, identifier: Identifier, problem: str) -> CommitFailed:
        return CommitFailed(f"{kind.name.lower()} {show((self._name, *identifier))} was not changed; {problem}")

    def _seen(self, kind: Kind, identifier: Identifier) -> str | None:
        """The pointer as far as it can be read, after a step whose outcome is open."""
        try:
            return self._pointer(kind, identifier)
        except StorageError:
            return None

    def _taken(self, identifier: Identifier) -> AlreadyExistsError:
        if self._pointer(Kind.VIEW, identifier) is not None:
            return ViewAlreadyExistsError(f"{show(identifier)} is a view in catalog {self._name!r}")
        return TableAlreadyExistsError(f"table {show(identifier)} already exists in catalog {self._name!r}")

    def _check_free(self, identifier: Identifier) -> None:
        if self._pointer(Kind.TABLE, identifier) is not None or self._pointer(Kind.VIEW, identifier) is not None:
            raise self._taken(identifier)

    def _no_table(self, identifier: Identifier) -> NoSuchTableError:
        if self._pointer(Kind.VIEW, identifier) is not None:
            return NoSuchTableError(f"{show(identifier)} is a view, not a table, in catalog {self._name!r}")
        return super()._no_table(identifier)

    def _register_table(self, identifier: Identifier, state: TableState, current: TableState | None) -> None:
        location = str(state.metadata_location)
        if current is None:
            if not self._insert_pointer(Kind.TABLE, identifier, location):
                raise self._taken(identifier)
        elif location != current.metadata_location and not self._swap_pointer(
            Kind.TABLE, identifier, str(current.metadata_location), location
        ):
            raise CommitFailed(f"table {show(identifier)} changed while it was registered anew; nothing was done")

    def _rename_table(self, source: Identifier, target: Identifier) -> None:
        if not self._move_pointer(Kind.TABLE, source, target):
            raise self._no_table(source)

    def _drop_table(self, identifier: Identifier, state: TableState | None) -> bool:
        expected = None if state is None else state.metadata_location
        return self._remove_pointer(Kind.TABLE, identifier, expected)

    def _committer(self, identifier: Identifier) -> Committer:
        return PointerCommitter(self, identifier)

    def _find_view(self, identifier: Identifier) -> View | None:
        location = self._pointer(Kind.VIEW, identifier)
        return None if location is None else View(identifier, read_view_metadata(self._storage, location), location)

    def _create_view(self, identifier: Identifier, view: ViewMetadata) -> View:
        location = write_view_metadata(self._storage, view, None)
        self._insert(Kind.VIEW, identifier, location)
        return View(identifier, view, location)

    def _swap_view(self, base: View, changed: ViewMetadata) -> View:
        try:
            location = write_view_metadata(self._storage, changed, base.metadata_location)
        except StorageError as error:
            raise CommitFailed(
                f"the commit to view {show(base.identifier)} was not begun, and nothing happened: {error}"
            ) from error
        if not self._swap(Kind.VIEW, base.identifier, base.metadata_location, location):
            # Later versions of a view do not need the files of earlier ones.
            delete_quietly(self._storage, [location], "of a commit that did not happen")
            raise self._not_changed(Kind.VIEW, base.identifier, _faster(base.metadata_location))
        return View(base.identifier, changed, location)

    def _rename_view(self, source: Identifier, target: Identifier) -> bool:
        return self._move_pointer(Kind.VIEW, source, target)

    def _drop_view(self, identifier: Identifier) -> bool:
        return self._remove_pointer(Kind.VIEW, identifier, None)


class PointerCommitter:
    """One table of a catalog that keeps pointers."""

    def __init__(self, catalog: PointerCatalog, identifier: Identifier) -> None:
        self._catalog = catalog
        self._identifier = identifier
        self._lost: list[str] = []
        """Metadata files of lost races, until the table is read again and shows that it does not need them."""

    @property
    def storage(self) -> Storage:
        """Where the table's files are."""
        return self._catalog.storage

    @property
    def name(self) -> str:
        """The table's full name."""
        return show((self._catalog.name, *self._identifier))

    def load(self) -> TableState:
        """The newest state."""
        state = self._catalog._existing_table(self._identifier)
        lost, self._lost = self._lost, []
        needed = {state.metadata_location, *(each.metadata_file for each in state.metadata.metadata_log)}
        if leftovers := [each for each in lost if each not in needed]:
            delete_quietly(self.storage, leftovers, "of a commit that did not happen")
        return state

    def commit(
        self,
        base: TableState,
        requirements: Sequence[req.TableRequirement],
        updates: Sequence[up.TableUpdate],
        before_swap: BeforeSwap,
    ) -> TableState:
        """One attempt to change the table: see `Committer.commit`.

        The metadata is written beside the files that it names, and the swap waits for all of them.
        """
        try:
            self._check_unmoved(base)
            changed = next_state(base, requirements, updates, now_ms())
            if changed is base.metadata:
                return base
            location = write_table_metadata(self.storage, changed, base.metadata_location)
        except (StorageError, CorruptFileError) as error:
            raise CommitFailed(f"the commit to {self.name} was not begun, and nothing happened: {error}") from error
        try:
            before_swap()
        except Exception:
            delete_quietly(self.storage, [location], "of a commit that did not happen")
            raise
        if not self._catalog._swap(Kind.TABLE, self._identifier, str(base.metadata_location), location):
            self._lost.append(location)
            raise self._catalog._not_changed(Kind.TABLE, self._identifier, _faster(base.metadata_location))
        delete_superseded(self.storage, base, changed)
        return TableState(changed, location)

    def _check_unmoved(self, base: TableState) -> None:
        """Fail unless the catalog holds the base; metadata files never change, so that it is not read again."""
        location = self._catalog._pointer(Kind.TABLE, self._identifier)
        if location is None:
            raise self._catalog._no_table(self._identifier)
        if location != base.metadata_location:
            raise StaleBaseError(stale(self.name, base.metadata_location, location))


def _faster(expected: str | None) -> str:
    return f"another writer was faster: it is no longer at {expected}"
