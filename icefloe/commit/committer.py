"""What a catalog must be able to do for one table, so that commits need to know nothing else of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from icefloe.metadata import TableMetadata, requirements as req, updates as up
from icefloe.storage import Storage


@dataclass(frozen=True, slots=True)
class TableState:
    """What a table is, as a catalog holds it; only one that is not created yet has no metadata location."""

    metadata: TableMetadata
    metadata_location: str | None


BeforeSwap = Callable[[], None]
"""Waits until all files that a commit refers to are written, whole and durable, or says why they are not."""


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
        self,
        base: TableState,
        requirements: Sequence[req.TableRequirement],
        updates: Sequence[up.TableUpdate],
        before_swap: BeforeSwap,
    ) -> TableState:
        """Change the table in one conditional step, once, and say what it is then.

        The updates were prepared on `base`, and mean what they say there only: a catalog that can tell that the table
        moved on since raises StaleBaseError, whatever the requirements say, and the changes are prepared again. One that
        cannot, as it takes nothing but updates and requirements, has the requirements alone to go by: so these say all
        that can be said by them.

        `before_swap` is called once all else is ready: the catalog may write its own part of the commit while the files of
        the commit are still being written. If it fails, there is no swap, and its error is passed on as it is.

        CommitFailed says for certain that nothing happened, because a requirement does not hold or another writer was
        faster. CommitStateUnknown says that the outcome is not known. Any error of another kind, raised before the swap,
        is about the input. See `swap` for the part that is the same in every catalog.
        """
