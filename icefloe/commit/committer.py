"""What a catalog must be able to do for one table, so that commits need to know nothing else of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from icefloe.metadata.requirements import TableRequirement
from icefloe.metadata.table import TableMetadata
from icefloe.metadata.updates import TableUpdate
from icefloe.storage.storage import Storage


@dataclass(frozen=True, slots=True)
class TableState:
    """What a table is, as a catalog holds it; only one that is not created yet has no metadata location."""

    metadata: TableMetadata
    metadata_location: str | None


class Committer(Protocol):
    """One table in one catalog."""

    @property
    def storage(self) -> Storage:
        """Where the table's files are."""

    @property
    def name(self) -> str:
        """The table's full name, for messages."""

    def load(self) -> TableState:
        """The newest state, read from the catalog now."""

    def commit(
        self, base: TableState, requirements: Sequence[TableRequirement], updates: Sequence[TableUpdate]
    ) -> TableState:
        """Change the table in one conditional step, once, and say what it is then.

        CommitFailed says for certain that nothing happened, because a requirement does not hold or another writer was
        faster. CommitStateUnknown says that the outcome is not known. Any error of another kind, raised before the swap,
        is about the input. See `swap` for the part that is the same in every catalog.
        """
