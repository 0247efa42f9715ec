"""How many files are deleted: in batches, several at a time, those that others lead to first; what fails is told, and changes nothing.

The order is that of the files: all batches of one group are through before the next one begins, so that whoever is stopped in
between leaves the way to all that is left.
"""

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.commit import Ownership, note_foreign
from icefloe.errors import InvalidInputError
from icefloe.maintenance.engines import MaintenanceEngine, Threads, in_rounds
from icefloe.maintenance.expiry.unneeded import KINDS, MANIFEST
from icefloe.maintenance.files.spool import Spool
from icefloe.progress import Listener, Progress
from icefloe.storage import Storage

LOG = logging.getLogger(__name__)

BATCH = 1_000
"""What one request to S3 can delete."""
MOST_NAMED = 1_000
"""How many locations a result names that were not deleted."""
_BATCHES_AT_ONCE = 4
_FEW = 1_000_000
"""Files below which this process deletes sooner than a job of an engine: a thousand requests at most."""


@dataclass(frozen=True, slots=True)
class DeleteSettings:
    """Who deletes, how much of it at a time, and who is told."""

    storage: Storage
    engine: MaintenanceEngine
    listener: Listener
    max_concurrent: int | None = None

    def __post_init__(self) -> None:
        if self.max_concurrent is not None and self.max_concurrent < 1:
            raise InvalidInputError(f"max_concurrent_deletes is {self.max_concurrent}; it must be 1 or more")

    def engine_for(self, files: int) -> MaintenanceEngine:
        """Who deletes so many files: a few are not worth a job."""
        if isinstance(self.engine, Threads) or files < _FEW:
            return Threads(self.max_concurrent or _BATCHES_AT_ONCE)
        return self.engine

    @property
    def a_round(self) -> int:
        """How many batches an engine gets at a time."""
        return self.max_concurrent or 16 * _BATCHES_AT_ONCE


@dataclass(slots=True)
class Deletions:
    """What was deleted, and what was not."""

    counts: list[int] = field(default_factory=lambda: [0] * len(KINDS))
    """Deleted files by kind."""
    size: int = 0
    """Bytes of them, as far as known."""
    failed: list[str] = field(default_factory=list)
    failed_count: int = 0
    foreign: list[str] = field(default_factory=list)
    foreign_count: int = 0

    def add(self, other: "Deletions") -> None:
        """What somebody else deleted."""
        self.counts = [one + more for one, more in zip(self.counts, other.counts, strict=True)]
        self.size += other.size
        self.failed_count += other.failed_count
        self.foreign_count += other.foreign_count
        self.failed = [*self.failed, *other.failed][:MOST_NAMED]
        self.foreign = [*self.foreign, *other.foreign][:MOST_NAMED]


def delete_files(files: Spool, ownership: Ownership, settings: DeleteSettings, why: str) -> Deletions:
    """Delete the files that are the table's own."""
    done = Deletions()
    engine = settings.engine_for(len(files))
    handled = 0
    for _, group in groupby(_batches(files), key=_rank):
        work = partial(delete_batch, settings.storage, ownership, why)
        for batch in in_rounds(engine, work, group, settings.a_round):
            done.add(batch)
            handled += sum(batch.counts) + batch.failed_count + batch.foreign_count
            settings.listener(Progress("delete", handled, len(files)))
    note_foreign(done.foreign, why)
    return done


def _batches(files: Spool) -> Iterator[pa.RecordBatch]:
    """Batches of full size, each of files that may go at the same time."""
    for _, group in groupby(files.batches(), key=_rank):
        yield from resized(group)


def _rank(files: pa.RecordBatch) -> int:
    """The place of files in the order of deletion: those that are read by rows go together."""
    kind: int = files["kind"][0].as_py()
    return max(kind, MANIFEST - 1)


def resized(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of 1,000, but for the last."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        if rows >= BATCH:
            whole = pa.Table.from_batches(waiting).combine_chunks()
            full = rows // BATCH * BATCH
            yield from whole.slice(0, full).to_batches(BATCH)
            waiting, rows = whole.slice(full).to_batches(), rows - full
    if rows:
        yield from pa.Table.from_batches(waiting).combine_chunks().to_batches()


def delete_batch(storage: Storage, ownership: Ownership, why: str, files: pa.RecordBatch) -> Deletions:
    """Delete some files that are the table's own."""
    is_own = ownership.mask(files["location"])
    foreign = files.filter(pc.invert(is_own))["location"].to_pylist()
    own = files.filter(is_own)
    failures = failures_of(storage, own["location"].to_pylist())
    for location, problem in failures.items():
        LOG.warning("a file that is %s stays behind: %s: %s", why, location, problem)
    is_deleted = np.array([location not in failures for location in own["location"].to_pylist()], bool)
    kinds = own["kind"].to_numpy()[is_deleted]
    return Deletions(
        np.bincount(kinds, minlength=len(KINDS)).tolist(),
        int(own["size"].to_numpy()[is_deleted].sum()),
        list(failures)[:MOST_NAMED],
        len(failures),
        foreign,
        len(foreign),
    )


def failures_of(storage: Storage, locations: list[str]) -> dict[str, str]:
    """Delete files; those that stayed, and why."""
    try:
        return {failure.location: str(failure.error) for failure in storage.delete(locations)}
    except Exception as error:  # noqa: BLE001 - what was decided before stands, whatever happens to leftovers
        return dict.fromkeys(locations, str(error))
