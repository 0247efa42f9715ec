"""What maintenance needs of a table: its state, its store and a way to commit."""

from contextlib import AbstractContextManager
from typing import Protocol, Self

from icefloe.commit import ChangeSet
from icefloe.metadata import TableMetadata
from icefloe.storage import Storage


class MaintainedTable(Protocol):
    """A handle of a table."""

    def name(self) -> tuple[str, ...]:
        """Its identifier."""

    @property
    def metadata(self) -> TableMetadata:
        """The metadata as the handle knows it."""

    @property
    def storage(self) -> Storage:
        """Where its files are."""

    def refresh(self) -> Self:
        """The same handle at the newest state."""

    def transaction(self) -> AbstractContextManager[ChangeSet]:
        """Changes that are committed together, when the block ends at the latest."""
