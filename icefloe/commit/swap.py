"""What the metadata is that a commit swaps in: the same for every catalog, and pure."""

from collections.abc import Sequence

from icefloe.commit.committer import TableState
from icefloe.errors import CommitFailed, CommitStateUnknown
from icefloe.metadata import TableMetadata, apply_all, requirements as req, updates as up, with_previous
from icefloe.storage import identity


def next_state(
    base: TableState | None,
    requirements: Sequence[req.TableRequirement],
    updates: Sequence[up.TableUpdate],
    now_ms: int,
) -> TableMetadata:
    """The metadata after the updates, with the base's file in its metadata log; `base` is what the catalog holds now.

    Without a base the updates create the table. The base's own metadata comes back when nothing changes: there is
    nothing to write then. CommitFailed when a requirement does not hold.
    """
    metadata = None if base is None else base.metadata
    req.check_all(requirements, metadata)
    changed = apply_all(metadata, updates, now_ms)
    if base is None or changed is base.metadata or base.metadata_location is None:
        return changed
    return with_previous(changed, base.metadata, base.metadata_location)


def superseded_metadata_files(base: TableState | None, changed: TableMetadata) -> tuple[str, ...]:
    """The metadata files that fell out of the log with this commit; to be deleted after it, if the table asks for that."""
    if base is None:
        return ()
    kept = {identity(entry.metadata_file) for entry in changed.metadata_log}
    return tuple(e.metadata_file for e in base.metadata.metadata_log if identity(e.metadata_file) not in kept)


def stale(name: str, base: str | None, found: str) -> str:
    """What to say when a table is not at the state that a commit was prepared on."""
    return f"{name} is at {found}, and the commit was prepared on {base}; it must be prepared again"


def check_same_table(base: TableMetadata, found: TableMetadata, name: str) -> None:
    """Fail if the name stands for another table now: its UUID differs (spec: Table Metadata Fields)."""
    if base.table_uuid is not None and (found.table_uuid or "").lower() != base.table_uuid.lower():
        raise CommitFailed(
            f"{name} is another table now: its UUID is {found.table_uuid}, and was {base.table_uuid}; load it again"
        )


def check_committed(state: TableState, updates: Sequence[up.TableUpdate], name: str) -> TableState:
    """The state that a catalog says it committed, if it holds every snapshot that was sent."""
    for update in updates:
        if (
            isinstance(update, up.AddSnapshotUpdate)
            and update.snapshot.snapshot_id not in state.metadata.snapshots_by_id
            and not _removed_again(update, updates)
        ):
            raise CommitStateUnknown(
                f"the catalog reports a commit to {name}, but its metadata lacks the new snapshot"
                f" {update.snapshot.snapshot_id}; no file was deleted"
            )
    return state


def _removed_again(added: up.AddSnapshotUpdate, updates: Sequence[up.TableUpdate]) -> bool:
    return any(
        isinstance(each, up.RemoveSnapshotsUpdate) and added.snapshot.snapshot_id in each.snapshot_ids
        for each in updates
    )
