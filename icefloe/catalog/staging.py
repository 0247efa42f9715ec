"""Decides how a transaction can begin with a table that is not there yet, or that is to become another one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from icefloe.catalog.definitions import TableDefinition
from icefloe.catalog.identifiers import Identifier
from icefloe.catalog.replacement import replacement_updates
from icefloe.commit import BeforeSwap, Committer, Prepared, TableState, Workbench, next_state
from icefloe.errors import CommitFailed, StorageError, ValidationError
from icefloe.metadata import MAIN_BRANCH, TableMetadata, requirements as req, updates as up
from icefloe.storage import Storage


@dataclass(frozen=True, slots=True)
class CreateTable:
    """The change that a new table is: it says nothing that the staged metadata lacks, but there is something to commit."""

    staged: TableMetadata

    @property
    def snapshot_ids(self) -> tuple[int, ...]:
        """None: a table begins without snapshots."""
        return ()

    def prepare(self, metadata: TableMetadata, bench: Workbench) -> Prepared:  # noqa: ARG002 - the same whatever is there
        """The identity of the new table."""
        return Prepared((up.AssignUUIDUpdate(str(self.staged.table_uuid)),))


class ReplaceTable:
    """The change by which a table gets another definition and no rows.

    Rows may come in the same commit, written with the ids that columns and partition fields got at first: if those would get
    others on newer metadata, it is refused.
    """

    def __init__(self, definition: TableDefinition, location: str | None) -> None:
        self._definition = definition
        self._location = location
        self._structure: tuple[up.TableUpdate, ...] | None = None

    @property
    def snapshot_ids(self) -> tuple[int, ...]:
        """None: what the table held stays in its history."""
        return ()

    def prepare(self, metadata: TableMetadata, bench: Workbench) -> Prepared:
        """The updates for the table as it is then; rows that come meanwhile are to be replaced too."""
        main = metadata.refs.get(MAIN_BRANCH)
        same_rows = req.AssertRefSnapshotId(MAIN_BRANCH, None if main is None else main.snapshot_id)
        updates = replacement_updates(metadata, self._definition, self._location)
        structure = tuple(each for each in updates if isinstance(each, up.AddSchemaUpdate | up.AddPartitionSpecUpdate))
        if self._structure is None or not bench.first_parents:
            self._structure = structure
        if structure != self._structure:
            raise ValidationError(
                "columns or partition fields of the table were changed by another commit since it was to be replaced, so that"
                " those of the new one would get other ids; begin anew"
            )
        return Prepared(updates, (same_rows,))


class StagedCommitter:
    """The committer of a table that its first commit creates, with all that is in that commit."""

    def __init__(
        self,
        identifier: Identifier,
        staged: TableMetadata,
        committer: Committer,
        find: Callable[[Identifier], TableState | None],
        create: Callable[[Identifier, TableMetadata], TableState],
        clock_ms: Callable[[], int],
    ) -> None:
        self._staged = staged
        self._committer = committer
        self._find = find
        self._create = create
        self._identifier = identifier
        self._clock_ms = clock_ms
        self._created = False

    @property
    def storage(self) -> Storage:
        """Where the table's files go."""
        return self._committer.storage

    @property
    def name(self) -> str:
        """The table's full name."""
        return self._committer.name

    def load(self) -> TableState:
        """What has the name now, or the table as it is staged if nothing has."""
        if self._created:
            return self._committer.load()
        return self._find(self._identifier) or TableState(self._staged, None)

    def commit(
        self,
        base: TableState,
        requirements: Sequence[req.TableRequirement],
        updates: Sequence[up.TableUpdate],
        before_swap: BeforeSwap,
    ) -> TableState:
        """Create the table; later commits are those of any table."""
        if self._created or base.metadata_location is not None:
            return self._committer.commit(base, requirements, updates, before_swap)
        metadata = next_state(base, requirements, updates, self._clock_ms())
        before_swap()
        try:
            state = self._create(self._identifier, metadata)
        except StorageError as error:
            raise CommitFailed(f"{self.name} was not created, and nothing happened: {error}") from error
        self._created = True
        return state
