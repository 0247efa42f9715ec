"""Decides what a user can ask of any catalog about tables that were dropped: whether it keeps them, and to have one back."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from icefloe import errors
from icefloe.catalog.identifiers import Name
from icefloe.table import Table

if TYPE_CHECKING:
    from icefloe.rest.dropped_codec import DroppedTable

_NOT_KEPT = "this catalog keeps no dropped tables; one whose files are there comes back by `register_table`"


class UndropOperations:
    """What catalogs say that keep no dropped tables; those behind a REST server ask it."""

    def dropped_tables(self) -> "list[DroppedTable]":
        """The dropped tables that can be had back, the newest first; an error if this catalog keeps none."""
        raise errors.UnsupportedOperationError(_NOT_KEPT)

    def undrop_table(self, dropped: "str | Sequence[str] | DroppedTable", identifier: Name | None = None) -> Table:  # noqa: ARG002 - of those that can
        """Have a dropped table back, where the catalog keeps such: icefloe's server does, with `undrop-hold`.

        Args:
            dropped: one of `dropped_tables()`, or the name that it had, which means the one that was dropped last.
            identifier: another name for it.
        """
        raise errors.UnsupportedOperationError(_NOT_KEPT)
