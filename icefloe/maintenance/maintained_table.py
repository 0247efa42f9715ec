"""Protocols for tables as maintenance uses them."""

from contextlib import AbstractContextManager
from typing import Protocol, Self

from icefloe import commit as cm, manifests as mf, metadata as md
from icefloe.storage import Storage


class Changes(AbstractContextManager["Changes"], Protocol):
    """Changes of a table that are committed together."""

    base: cm.TableState

    @property
    def table_metadata(self) -> md.TableMetadata:
        """Return the metadata with all changes so far."""

    def add(self, change: cm.Change, /) -> object:
        """Add a change."""

    def commit(self) -> cm.Committed:
        """Commit all changes, or fail as a whole."""

    def try_commit(self) -> cm.Outcome:
        """Commit all changes, with the outcome as a value instead of an error."""

    def abandon(self) -> None:
        """Discard all changes."""

    @property
    def row_files(self) -> list[mf.DataFile]:
        """Data and delete files written for the changes; deleted if they are not committed."""


class MaintainedTable(Protocol):
    """A table handle."""

    def name(self) -> tuple[str, ...]:
        """Return the identifier."""

    @property
    def metadata(self) -> md.TableMetadata:
        """The metadata of the handle's state."""

    @property
    def metadata_location(self) -> str | None:
        """Location of the metadata file."""

    @property
    def storage(self) -> Storage:
        """The storage that holds the table's files."""

    @property
    def surroundings(self) -> cm.Surroundings | None:
        """The catalog context, if known."""

    def refresh(self) -> Self:
        """Refresh the handle to the latest state."""

    def transaction(self) -> Changes:
        """Start changes that are committed together, at the latest on `with` exit."""


class OfTable:
    """Procedures of one table."""

    def __init__(self, table: MaintainedTable) -> None:
        self._table = table
