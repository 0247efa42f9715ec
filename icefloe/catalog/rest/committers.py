"""How commits see one table of a REST catalog: updates and requirements go to the server, files to the storage that it named."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from icefloe import commit as cm, errors, metadata as md
from icefloe.catalog.committers import CatalogCommitter
from icefloe.catalog.identifiers import Identifier
from icefloe.catalog.rest.named_updates import named_updates
from icefloe.metadata import requirements as req, updates as up
from icefloe.rest import Context, TableCommit
from icefloe.storage import Storage

if TYPE_CHECKING:
    from icefloe.catalog.rest.catalog import RestCatalog


class RestCommitter(CatalogCommitter):
    """One table of a REST catalog, as commits see it."""

    def __init__(
        self, catalog: "RestCatalog", identifier: Identifier, config: Mapping[str, str], storage: Storage
    ) -> None:
        super().__init__(catalog, identifier)
        self._rest = catalog
        self._config = dict(config)
        self._storage = storage

    @property
    def storage(self) -> Storage:
        """Where the table's files are, as the server said."""
        return self._storage

    def load(self) -> cm.TableState:
        """The newest state."""
        return self._rest._state(self._identifier, self._config)

    def metadata_location(self) -> str | None:
        """Where the table's metadata file is now; None if the table is gone."""
        try:
            return self.load().metadata_location
        except errors.NoSuchTableError:
            return None

    def commit(self, base: cm.TableState, prepared: cm.Prepared, before_swap: cm.BeforeSwap) -> cm.TableState:
        """One attempt to change the table, by its requirements: see `Committer.commit`."""
        before_swap()
        return self._rest._commit(self.request_for(base, prepared), self._config, Context.TABLE_COMMIT)

    def request_for(self, base: cm.TableState, prepared: cm.Prepared) -> TableCommit:
        """What is sent to the server; StaleBaseError if the table is not at its base any more.

        No requirement can say all that updates rely on: that of a new head of a branch takes with it how long the branch
        is kept. So there is a look at the table right before, which costs little where the server has entity tags.
        """
        updates = named_updates(base.metadata, prepared.updates)
        self._check_base(base)
        return TableCommit(updates, prepared.requirements, self._identifier)

    def _check_base(self, base: cm.TableState) -> None:
        try:
            current = self.load().metadata_location
        except errors.ServiceUnavailableError as error:
            raise errors.CommitFailed(
                f"the commit to {self.name} was not started; nothing was changed: {error}"
            ) from error
        if current != base.metadata_location:
            raise errors.StaleBaseError(cm.stale(self.name, base.metadata_location, str(current)))


class StagedRestCommitter(RestCommitter):
    """The committer of a table that its first commit creates, with all that is in that commit."""

    def __init__(
        self,
        catalog: "RestCatalog",
        identifier: Identifier,
        config: Mapping[str, str],
        storage: Storage,
        staged: md.TableMetadata,
    ) -> None:
        super().__init__(catalog, identifier, config, storage)
        self._staged = staged
        self._created = False

    def load(self) -> cm.TableState:
        """What has the name now, or the table as it is staged if nothing has."""
        try:
            return super().load()
        except errors.NoSuchTableError:
            if self._created:
                raise
            return cm.TableState(self._staged, None)

    def commit(self, base: cm.TableState, prepared: cm.Prepared, before_swap: cm.BeforeSwap) -> cm.TableState:
        """Create the table; later commits are those of any table."""
        if self._created or base.metadata_location is not None:
            return super().commit(base, prepared, before_swap)
        before_swap()
        state = self._rest._commit(self.request_for(base, prepared), self._config, Context.CREATE_COMMIT)
        self._created = True
        return state

    def request_for(self, base: cm.TableState, prepared: cm.Prepared) -> TableCommit:
        """What creates the table, or changes it once it is there."""
        if self._created or base.metadata_location is not None:
            return super().request_for(base, prepared)
        first = tuple(creation_updates(self._staged))
        more = named_updates(base.metadata, prepared.updates)
        updates = (*first, *(update for update in more if update != first[0]))
        return TableCommit(updates, (req.AssertCreate(),), self._identifier)


def request_of(part: cm.Part) -> TableCommit:
    """What is sent for one table of a commit to several."""
    assert isinstance(part.committer, RestCommitter), "tables of REST catalogs have such committers"
    return part.committer.request_for(part.base, part.prepared)


def creation_updates(metadata: md.TableMetadata) -> Iterator[up.TableUpdate]:
    """What makes a table without snapshots out of nothing, in the order in which the Java library sends it."""
    yield up.AssignUUIDUpdate(str(metadata.table_uuid))
    yield up.UpgradeFormatVersionUpdate(metadata.format_version)
    yield up.AddSchemaUpdate(metadata.schema())
    yield up.SetCurrentSchemaUpdate()
    yield up.AddPartitionSpecUpdate(metadata.spec())
    yield up.SetDefaultSpecUpdate()
    yield up.AddSortOrderUpdate(metadata.sort_order())
    yield up.SetDefaultSortOrderUpdate()
    if metadata.location is not None:
        yield up.SetLocationUpdate(metadata.location)
    if metadata.properties:
        yield up.SetPropertiesUpdate(dict(metadata.properties))
