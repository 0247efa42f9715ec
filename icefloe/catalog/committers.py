"""How commits see one table of a catalog: its newest state, and one attempt to change it."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING

from icefloe import commit as cm, errors, metadata as md
from icefloe.catalog.identifiers import Identifier, show
from icefloe.storage import Storage

if TYPE_CHECKING:
    from icefloe.catalog.catalog import Catalog


class CatalogCommitter(ABC):
    """One table of a catalog, as commits see it."""

    def __init__(self, catalog: "Catalog", identifier: Identifier) -> None:
        self._catalog = catalog
        self._identifier = identifier

    @property
    def storage(self) -> Storage:
        """Where the table's files are."""
        return self._catalog.storage

    @property
    def identifier(self) -> Identifier:
        """The table's name in its catalog."""
        return self._identifier

    @property
    def name(self) -> str:
        """The table's full name."""
        return show((self._catalog.name, *self._identifier))

    @property
    def sees_every_commit(self) -> bool:
        """Whether a commit that was prepared on a state that another one has replaced is refused in any case."""
        return self._catalog._sees_every_commit

    @property
    def warehouse(self) -> str | None:
        """Where tables go that are created without a location."""
        return self._catalog.warehouse

    def metadata_location(self) -> str | None:
        """Where the table's metadata file is now; None if the table is gone."""
        return self._catalog._metadata_location(self._identifier)

    def other_tables(self) -> Iterator[tuple[str, str]]:
        """All other tables of the catalog: their names, and where their metadata files are."""
        for identifier, location in self._catalog._metadata_locations():
            if identifier != self._identifier:
                yield show((self._catalog.name, *identifier)), location

    def load(self) -> cm.TableState:
        """The newest state."""
        return self._catalog._existing_table(self._identifier)

    @abstractmethod
    def commit(self, base: cm.TableState, prepared: cm.Prepared, before_swap: cm.BeforeSwap) -> cm.TableState:
        """One attempt to change the table: see `Committer.commit`."""


class StagedCommitter(CatalogCommitter):
    """The committer of a table that its first commit creates, with all that is in that commit."""

    def __init__(self, catalog: "Catalog", identifier: Identifier, staged: md.TableMetadata) -> None:
        super().__init__(catalog, identifier)
        self._staged = staged
        self._created = False

    def load(self) -> cm.TableState:
        """What has the name now, or the table as it is staged if nothing has."""
        if self._created:
            return self._catalog._committer(self._identifier).load()
        return self._catalog._table_state(self._identifier) or cm.TableState(self._staged, None)

    def commit(self, base: cm.TableState, prepared: cm.Prepared, before_swap: cm.BeforeSwap) -> cm.TableState:
        """Create the table; later commits are those of any table."""
        if self._created or base.metadata_location is not None:
            return self._catalog._committer(self._identifier).commit(base, prepared, before_swap)
        metadata = md.apply_all(
            base.metadata, prepared.updates, cm.now_ms(), base.metadata_location, prepared.requirements
        )
        before_swap()
        try:
            state = self._catalog._create_table(self._identifier, metadata)
        except errors.StorageError as error:
            raise errors.CommitFailed(f"{self.name} was not created; nothing was changed: {error}") from error
        self._created = True
        return state


def identifier_of(committer: cm.Committer) -> Identifier:
    """The name of the table of a committer of a catalog."""
    assert isinstance(committer, CatalogCommitter), "tables of catalogs have such committers"
    return committer.identifier
