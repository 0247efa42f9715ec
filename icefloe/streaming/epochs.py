"""Which micro-batches of a streaming query are in a table, so that each is committed once, however often it is run.

A commit notes the query and the number of the batch in the snapshot's summary, under the Java library's keys, and in a table
property, which outlives the snapshot. Both are looked at in every attempt to commit.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from icefloe.commit import Prepared, Workbench
from icefloe.errors import AlreadyCommittedError, InvalidInputError
from icefloe.metadata import MAIN_BRANCH, Snapshot, TableMetadata, updates as up

QUERY_ID = "spark.sql.streaming.queryId"
EPOCH_ID = "spark.sql.streaming.epochId"
PROPERTY = "icefloe.streaming."
"""Behind it is the id of a query: the number of its newest batch, its snapshot and the time of that, between colons."""
MOST_NOTES = 100
"""Of how many queries a table keeps notes: those that wrote last. Every new checkpoint is a query of its own."""


@dataclass(frozen=True, slots=True)
class StreamBatch:
    """A micro-batch of a streaming query: batches of one query have rising numbers, and a batch is the same when it is run again."""

    query_id: str
    number: int

    def __post_init__(self) -> None:
        query_id: object = self.query_id
        number: object = self.number
        if not isinstance(query_id, str) or not query_id.strip():
            raise InvalidInputError(f"the id of a query is {query_id!r}; it must be a text")
        if isinstance(number, bool) or not isinstance(number, int) or number < 0:
            raise InvalidInputError(f"the number of a batch is {number!r}; it must be a whole number, 0 or more")

    @property
    def summary(self) -> dict[str, str]:
        """The properties of its snapshot."""
        return {QUERY_ID: self.query_id, EPOCH_ID: str(self.number)}

    def is_in(self, metadata: TableMetadata, branch: str | None, own: frozenset[int] = frozenset()) -> bool:
        """Whether this batch, or a later one of the query, is in a branch; `own` are snapshots that do not count."""
        newest = newest_batch(metadata, branch, self.query_id, own)
        return newest is not None and newest >= self.number


def newest_batch(
    metadata: TableMetadata, branch: str | None, query_id: str, own: frozenset[int] = frozenset()
) -> int | None:
    """The number of the newest batch of a query that is in a branch, or in `main` if the first change is to create it."""
    head = metadata.snapshot_of_ref(branch if branch in metadata.refs else None)
    if head is None:
        return None
    ids = set()
    for snapshot in metadata.ancestors(head.snapshot_id):
        ids.add(snapshot.snapshot_id)
        summary = {} if snapshot.summary is None else snapshot.summary.properties
        if (
            snapshot.snapshot_id not in own
            and summary.get(QUERY_ID) == query_id
            and summary.get(EPOCH_ID, "").isdigit()
        ):
            return int(summary[EPOCH_ID])
    if snapshot.parent_snapshot_id is None:
        # Nothing of the history has expired, so a batch that is not in it was rolled back.
        return None
    number, snapshot_id, _ = _note(metadata.properties.get(_key(query_id, branch), ""))
    if number is None or snapshot_id in own:
        return None
    # One that is there, but not in the branch, was rolled back; one that is not there has expired.
    was_rolled_back = snapshot_id in metadata.snapshots_by_id and snapshot_id not in ids
    return None if was_rolled_back else number


class CommitOnce:
    """A change beside that of the rows: the commit fails with AlreadyCommittedError if the batch is in the table already."""

    def __init__(self, batch: StreamBatch, branch: str | None = None) -> None:
        self._batch = batch
        self._branch = branch

    @property
    def snapshot_ids(self) -> tuple[int, ...]:
        """None of its own."""
        return ()

    def prepare(self, metadata: TableMetadata, bench: Workbench) -> Prepared:
        """The note of the batch, for the snapshot that the changes before this one lead to."""
        check_not_in(self._batch, metadata, self._branch, frozenset(bench.first_parents))
        head = metadata.snapshot_of_ref(self._branch)
        if head is None or head.snapshot_id not in bench.first_parents:
            return Prepared()
        key = _key(self._batch.query_id, self._branch)
        note = f"{self._batch.number}:{head.snapshot_id}:{head.timestamp_ms}"
        old = _oldest(metadata, key)
        forget = (up.RemovePropertiesUpdate(old),) if old else ()
        return Prepared((up.SetPropertiesUpdate({key: note}), *forget))


def check_not_in(
    batch: StreamBatch, metadata: TableMetadata, branch: str | None, own: frozenset[int] = frozenset()
) -> None:
    """Fail if the batch is in the branch."""
    if batch.is_in(metadata, branch, own):
        raise AlreadyCommittedError(
            f"batch {batch.number} of query {batch.query_id} is in the table already; nothing was committed"
        )


class Transaction(Protocol):
    """A transaction that rows are changed in."""

    @property
    def table_metadata(self) -> TableMetadata:
        """The table as its changes so far leave it."""

    def add(self, change: CommitOnce, /) -> object:
        """One more change."""


Tx = TypeVar("Tx", bound=Transaction)


def once(
    batch: StreamBatch | None, branch: str | None, change: Callable[[Tx], Snapshot | None]
) -> Callable[[Tx], Snapshot | None]:
    """A change of rows that is made if the batch is not in the branch, and notes the batch; without a batch as it is."""
    if batch is None:
        return change

    def run(tx: Tx) -> Snapshot | None:
        check_not_in(batch, tx.table_metadata, branch)
        snapshot = change(tx)
        if snapshot is not None:
            tx.add(CommitOnce(batch, branch))
        return snapshot

    return run


def _note(text: str) -> tuple[int | None, int, int]:
    """The number of a batch, None if the text is no note, its snapshot, and the time of that, 0 where it is not said."""
    parts = text.split(":")
    if not 2 <= len(parts) <= 3 or not all(map(str.isdigit, parts)):
        return None, 0, 0
    number, snapshot_id, *time = map(int, parts)
    return number, snapshot_id, time[0] if time else 0


def _oldest(metadata: TableMetadata, key: str) -> tuple[str, ...]:
    """The notes that are too many once there is one under the key."""
    notes = [
        (_note(value)[2], name)
        for name, value in metadata.properties.items()
        if name.startswith(PROPERTY) and name != key
    ]
    return tuple(name for _, name in sorted(notes)[: max(0, len(notes) + 1 - MOST_NOTES)])


def _key(query_id: str, branch: str | None) -> str:
    return f"{PROPERTY}{query_id}" if branch in (None, MAIN_BRANCH) else f"{PROPERTY}{query_id}@{branch}"
