"""Expiry of snapshots and their files: files reachable before the commit but not from metadata read after it.

"Before" is the state that the commit was prepared on, not that of the handle. Nothing after the commit raises an error:
files that cannot be proven unneeded are kept and logged, and the next expiry tries again.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import Enum

import numpy as np
import pyarrow.compute as pc

from icefloe import commit as cm, errors, metadata as md
from icefloe.commit import Ownership
from icefloe.maintenance.engines import MaintenanceEngine, Threads
from icefloe.maintenance.expiry.expired_files import MOST_LOCATIONS, ExpiredFiles, ExpiryPlan
from icefloe.maintenance.expiry.intent import ExpiryIntent, intents_of, new_location
from icefloe.maintenance.expiry.unneeded import KINDS, Departure, Search, unneeded_files
from icefloe.maintenance.files.deleting import DeleteSettings, Deletions, delete_files
from icefloe.maintenance.maintained_table import Changes, MaintainedTable
from icefloe.progress import Listener, silent
from icefloe.storage import Storage

LOG = logging.getLogger(__name__)

_ATTEMPTS = 3
_WHY = "no longer referenced by any snapshot"
GRACE_MS = 300_000
"""Grace period for files of snapshots that were on no branch, where the catalog cannot detect that a commit restores them."""


class Cleanup(Enum):
    """Which files are deleted after snapshots expire."""

    ALL = "all"
    """All files that are no longer referenced."""
    METADATA = "metadata"
    """Manifests, manifest lists and statistics; data and delete files are kept."""
    NONE = "none"
    """Nothing."""


@dataclass(frozen=True, slots=True)
class ExpiryRequest:
    """What to expire, and how."""

    change: cm.Expire | cm.DropSnapshots
    clean_metadata: bool = False
    cleanup: Cleanup = Cleanup.ALL
    engine: MaintenanceEngine = field(default_factory=Threads)
    max_concurrent_deletes: int | None = None
    listener: Listener = silent
    grace_ms: int | None = None
    """Grace period for files of snapshots that were on no branch; None: depends on the catalog."""

    def deleting(self, storage: Storage) -> DeleteSettings:
        """Return how to delete files."""
        return DeleteSettings(storage, self.engine, self.listener, self.max_concurrent_deletes)

    def search(self, storage: Storage, with_content: bool) -> Search:
        """Return how to search for files."""
        return Search(storage, self.engine, self.listener, with_content)

    def grace_of(self, table: MaintainedTable) -> int:
        """Return the grace period in milliseconds."""
        if self.grace_ms is not None:
            return self.grace_ms
        return 0 if table.surroundings and table.surroundings.sees_every_commit else GRACE_MS


def expire_snapshots(table: MaintainedTable, request: ExpiryRequest) -> ExpiredFiles:
    """Expire snapshots and, on request, metadata that only they use; then delete their files.

    Also deletes files left over by earlier expiries that were killed.
    """
    request.deleting(table.storage)
    done, intent = _commit(table, request)
    before, after = (done.base or done.state).metadata, done.state.metadata
    expired = _gone(before, after)
    refs = tuple(name for name in before.refs if name not in after.refs) if expired else ()
    result = ExpiredFiles(expired, refs=refs)
    if request.cleanup is Cleanup.NONE:
        return result
    held = _held_back(before, expired, request.grace_of(table))
    deletions = Deletions()
    try:
        if intent is not None:
            deletions.add(_delete_unneeded(table, before, expired, held, request))
            _settle(intent, deletions, held, request.grace_of(table), table.storage)
        deletions.add(_finish_others(table, request, intent))
    except Exception as error:  # noqa: BLE001 - the commit succeeded, whatever happens to files
        LOG.warning("files of %d expired snapshots were not deleted: %s", len(expired), error)
        return replace(_with_counts(result, deletions), held_back=held, problem=str(error))
    return replace(_with_counts(result, deletions), held_back=held)


def plan_expiry(table: MaintainedTable, request: ExpiryRequest) -> ExpiryPlan:
    """Plan an expiry on the current state, without changing anything."""
    changes = _changes(table, request)
    before, after = changes.base.metadata, changes.table_metadata
    changes.abandon()
    expired = _gone(before, after)
    counts, size, locations = np.zeros(len(KINDS), np.int64), 0, list[str]()
    if request.cleanup is not Cleanup.NONE and expired:
        departure = Departure(before, after, expired)
        ownership = Ownership.of(after, None, before)
        with unneeded_files(departure, request.search(table.storage, request.cleanup is Cleanup.ALL)) as files:
            for batch in files.batches():
                own = batch.filter(ownership.mask(batch["location"]))
                counts += np.bincount(own["kind"], minlength=len(KINDS))
                size += pc.sum(own["size"]).as_py() or 0
                locations += own["location"].slice(0, MOST_LOCATIONS - len(locations)).to_pylist()
    refs = tuple((name, ref.snapshot_id) for name, ref in before.refs.items() if name not in after.refs)

    def run(plan: ExpiryPlan) -> ExpiredFiles:
        return expire_snapshots(table, replace(request, change=cm.DropSnapshots(plan.snapshot_ids, plan.refs)))

    return ExpiryPlan(expired, refs, tuple(counts.tolist()), size, tuple(locations), run)


def _changes(table: MaintainedTable, request: ExpiryRequest) -> Changes:
    changes = table.transaction()
    changes.add(request.change)
    if request.clean_metadata:
        changes.add(cm.CleanMetadata())
    return changes


def _gone(before: md.TableMetadata, after: md.TableMetadata) -> tuple[int, ...]:
    left = after.snapshots_by_id
    return tuple(snapshot.snapshot_id for snapshot in before.snapshots if snapshot.snapshot_id not in left)


def _commit(table: MaintainedTable, request: ExpiryRequest) -> tuple[cm.Committed, ExpiryIntent | None]:
    """Commit the expiry; the intent says what to delete next, and is kept if the outcome is unknown."""
    changes = _changes(table, request)
    intent = _intent(changes, request)
    if intent is not None:
        intent.write(table.storage)
    try:
        with changes:
            done = changes.commit()
    except errors.CommitStateUnknown:
        raise
    except Exception:
        if intent is not None:
            intent.remove(table.storage)
        raise
    return done, intent and _of_base(intent, done, table.storage)


def _intent(changes: Changes, request: ExpiryRequest) -> ExpiryIntent | None:
    expired = _gone(changes.base.metadata, changes.table_metadata)
    location = changes.base.metadata_location
    if not expired or location is None or request.cleanup is Cleanup.NONE:
        return None
    with_content = request.cleanup is Cleanup.ALL
    return ExpiryIntent(new_location(changes.base.metadata), location, expired, with_content, cm.now_ms())


def _of_base(intent: ExpiryIntent, done: cm.Committed, storage: Storage) -> ExpiryIntent:
    """Return the intent as committed: after a conflict the commit may have been prepared again on another state."""
    if done.base is None or done.base.metadata_location in (None, intent.metadata_location):
        return intent
    expired = _gone(done.base.metadata, done.state.metadata)
    actual = replace(intent, metadata_location=str(done.base.metadata_location), snapshot_ids=expired)
    actual.write(storage)
    return actual


def _held_back(before: md.TableMetadata, expired: Iterable[int], grace_ms: int) -> tuple[int, ...]:
    """Return the snapshots that a concurrent commit could still restore: those that were on no branch or tag."""
    if grace_ms <= 0:
        return ()
    reached = {ancestor.snapshot_id for ref in before.refs.values() for ancestor in before.ancestors(ref.snapshot_id)}
    return tuple(snapshot_id for snapshot_id in expired if snapshot_id not in reached)


def _delete_unneeded(
    table: MaintainedTable,
    before: md.TableMetadata,
    expired: Iterable[int],
    held: tuple[int, ...],
    request: ExpiryRequest,
    *,
    with_content: bool | None = None,
    attempts: int = _ATTEMPTS,
) -> Deletions:
    """Delete what the current state of the table no longer needs."""
    # There may be concurrent commits, so read again what is still needed (FAILURES, rule 8).
    after = table.refresh().metadata
    leaving = tuple(each for each in expired if each not in after.snapshots_by_id and each not in held)
    all_files = request.cleanup is Cleanup.ALL if with_content is None else with_content
    try:
        files = unneeded_files(Departure(before, after, leaving, held), request.search(table.storage, all_files))
    except errors.LocationNotFoundError:
        # Missing files may belong to snapshots that expired since the table was read, and that others delete.
        if attempts == 1:
            raise
        return _delete_unneeded(table, before, expired, held, request, with_content=with_content, attempts=attempts - 1)
    with files:
        return delete_files(files, Ownership.of(after, None, before), request.deleting(table.storage), _WHY)


def _settle(intent: ExpiryIntent, deletions: Deletions, held: tuple[int, ...], grace_ms: int, storage: Storage) -> None:
    """Remove the intent if everything is done, otherwise keep it for the next expiry."""
    if held:
        replace(intent, snapshot_ids=held, not_before_ms=cm.now_ms() + grace_ms).write(storage)
    elif not deletions.failed_count:
        intent.remove(storage)


def _finish_others(table: MaintainedTable, request: ExpiryRequest, own: ExpiryIntent | None) -> Deletions:
    """Delete what earlier expiries announced but did not delete."""
    deletions = Deletions()
    for intent in list(intents_of(table.metadata, table.storage)):
        if own is None or intent.location != own.location:
            deletions.add(_finish(table, request, intent))
    return deletions


def _finish(table: MaintainedTable, request: ExpiryRequest, intent: ExpiryIntent) -> Deletions:
    known, now = table.metadata.snapshots_by_id, cm.now_ms()
    is_committed = any(snapshot_id not in known for snapshot_id in intent.snapshot_ids)
    if now < intent.not_before_ms or not (is_committed or intent.is_lost(now)):
        return Deletions()
    before = intent.before(table.metadata, table.storage) if is_committed else None
    if before is None:
        intent.remove(table.storage)
        return Deletions()
    expired = [each for each in intent.snapshot_ids if each in before.snapshots_by_id]
    deletions = _delete_unneeded(table, before, expired, (), request, with_content=intent.with_content)
    if not deletions.failed_count:
        intent.remove(table.storage)
    return deletions


def _with_counts(result: ExpiredFiles, deletions: Deletions) -> ExpiredFiles:
    return replace(
        ExpiredFiles(result.snapshot_ids, *deletions.counts, refs=result.refs),
        deleted_bytes=deletions.size,
        left_alone=tuple(deletions.foreign),
        failed=tuple(deletions.failed),
    )
