"""What maintenance asks of a table: its state, its files, and ways to change it."""

from contextlib import AbstractContextManager
from typing import Protocol, Self

from icefloe import commit as cm, manifests as mf, metadata as md
from icefloe.storage import Storage


class Changes(AbstractContextManager["Changes"], Protocol):
    """Changes of a table that are committed together."""

    base: cm.TableState

    @property
    def table_metadata(self) -> md.TableMetadata:
        """What the table will be."""

    def add(self, change: cm.Change, /) -> object:
        """One more change."""

    def commit(self) -> cm.Committed:
        """Commit all changes, or fail as a whole."""

    def try_commit(self) -> cm.Outcome:
        """The same, with the outcome as a value instead of an error."""

    def abandon(self) -> None:
        """Give it up."""

    @property
    def row_files(self) -> list[mf.DataFile]:
        """Data and delete files that are written for the changes; they go if the commit does not happen."""


class MaintainedTable(Protocol):
    """A handle of a table."""

    def name(self) -> tuple[str, ...]:
        """Its identifier."""

    @property
    def metadata(self) -> md.TableMetadata:
        """The metadata as the handle knows it."""

    @property
    def metadata_location(self) -> str | None:
        """Where that is stored."""

    @property
    def storage(self) -> Storage:
        """Where its files are."""

    @property
    def surroundings(self) -> cm.Surroundings | None:
        """What is known of its catalog."""

    def refresh(self) -> Self:
        """The same handle at the newest state."""

    def transaction(self) -> Changes:
        """Changes that are committed together, when the block ends at the latest."""


class OfTable:
    """Procedures of one table."""

    def __init__(self, table: MaintainedTable) -> None:
        self._table = table
