"""What a catalog must be able to do for one table, and what is checked of that in every catalog."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from icefloe.commit.change import Prepared
from icefloe.errors import CommitFailed, CommitStateUnknown
from icefloe.metadata import TableMetadata, updates as up
from icefloe.storage import Storage


@dataclass(frozen=True, slots=True)
class TableState:
    """What a table is, as a catalog holds it; only one that is not created yet has no metadata location."""

    metadata: TableMetadata
    metadata_location: str | None


@dataclass(slots=True)
class CurrentState:
    """The state of a table handle: that of its last load, refresh or commit."""

    state: TableState


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

    def commit(self, base: TableState, prepared: Prepared, before_swap: BeforeSwap) -> TableState:
        """Change the table in one conditional step, once, and say what it is then.

        The updates were prepared on `base`, and mean what they say there only: a catalog that can tell that the table
        moved on since raises StaleBaseError, whatever the requirements say, and the changes are prepared again. One that
        cannot, as it takes nothing but updates and requirements, has the requirements alone to go by: so these say all
        that can be said by them.

        `before_swap` is called once all else is ready: the catalog may write its own part of the commit while the files of
        the commit are still being written. If it fails, there is no swap, and its error is passed on as it is.

        CommitFailed says for certain that nothing happened, because a requirement does not hold or another writer was
        faster. CommitStateUnknown says that the outcome is not known. Any error of another kind, raised before the swap,
        is about the input. What updates and requirements mean is said by `metadata.apply_all`, the same for every catalog.
        """


@runtime_checkable
class Surroundings(Protocol):
    """What a committer may know of its catalog besides."""

    @property
    def sees_every_commit(self) -> bool:
        """Whether a commit that was prepared on a state that another one has replaced is refused in any case."""

    @property
    def warehouse(self) -> str | None:
        """Where tables go that are created without a location."""

    def metadata_location(self) -> str | None:
        """Where the table's metadata file is now, by one small request; None if the table is gone."""

    def other_tables(self) -> Iterable[tuple[str, str]]:
        """All other tables of the catalog: their names, and where their metadata files are."""


def stale(name: str, base: str | None, current: str) -> str:
    """What to say when a table is not at the state that a commit was prepared on."""
    return f"{name} is at {current}, and the commit was prepared on {base}; it must be prepared again"


def check_same_table(base: TableMetadata, current: TableMetadata, name: str) -> None:
    """Fail if the name stands for another table now: its UUID differs (spec: Table Metadata Fields)."""
    if base.table_uuid is not None and (current.table_uuid or "").lower() != base.table_uuid.lower():
        raise CommitFailed(
            f"{name} is a different table now: its UUID is {current.table_uuid} and was {base.table_uuid}; load it again"
        )


def check_committed(state: TableState, updates: Sequence[up.TableUpdate], name: str) -> TableState:
    """The state that a catalog says it committed, if it holds every snapshot that was sent and not removed again."""
    missing = {update.snapshot.snapshot_id for update in updates if isinstance(update, up.AddSnapshotUpdate)}
    missing -= state.metadata.snapshots_by_id.keys()
    missing.difference_update(*(each.snapshot_ids for each in updates if isinstance(each, up.RemoveSnapshotsUpdate)))
    if missing:
        raise CommitStateUnknown(
            f"the catalog reported a commit to {name}, but its metadata lacks the new snapshot {min(missing)};"
            " no file was deleted"
        )
    return state
