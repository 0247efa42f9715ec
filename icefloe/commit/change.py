"""What every operation of this room is: a value that turns a table's metadata into updates and requirements, at a workbench.

The workbench holds the files that a commit writes, what its attempts share, and the caches of the table's handle.
"""

import os
import random
import threading
import time
import uuid
from collections.abc import Callable, Hashable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count
from typing import Protocol, TypeVar, cast

from icefloe import errors, manifests as mf, metadata as md, properties as props
from icefloe.commit.path_index import PathIndex
from icefloe.commit.reliance import requirements_for
from icefloe.metadata import requirements as req, updates as up
from icefloe.storage import Storage

T = TypeVar("T")

_MOST_WRITERS = 8


def now_ms() -> int:
    """Milliseconds since 1970 in UTC."""
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class Timing:
    """Where waiting and the time come from; tests put their own here."""

    sleep: Callable[[float], None] = time.sleep
    clock_ms: Callable[[], int] = now_ms
    jitter: Callable[[], float] = field(default_factory=lambda: random.SystemRandom().random)


@dataclass(frozen=True, slots=True)
class Caches:
    """What one handle of a table remembers of files that never change; never shared between credentials.

    Handles that one session of Spark loads by one catalog share the manifests.
    """

    manifests: mf.ManifestCache = field(default_factory=mf.ManifestCache)
    paths: PathIndex = field(default_factory=PathIndex)


class Workbench:
    """The files of one commit, over all its attempts, and what its changes keep for the next attempt.

    Nothing here deletes: whoever knows how the commit ended says `discard`.
    """

    def __init__(self, storage: Storage, caches: Caches, clock_ms: Callable[[], int]) -> None:
        self.storage = storage
        self.caches = caches
        self.clock_ms = clock_ms
        self.commit_uuid = str(uuid.uuid4())
        self.attempt = 1
        self.first_parents: dict[int, int | None] = {}
        """The snapshots that this commit makes, each with its parent in the first attempt."""
        self.row_files: list[mf.DataFile] = []
        """The files of rows, data and deletes, that were written for this commit; not by this."""
        self.has_merged_own = False
        """Whether manifests of this commit were merged with others before it, so that no snapshot names them."""
        self.failure: BaseException | None = None
        """Why a file could not be written, once that was waited for; nothing can be committed from then on."""
        self._manifest_numbers = count()
        self._vector_numbers = count()
        self._written: dict[str, None] = {}
        self._memory: dict[Hashable, object] = {}
        self._lock = threading.Lock()
        self._pending: dict[str, Future[None]] = {}

    @property
    def written(self) -> tuple[str, ...]:
        """The locations of all files that this wrote, in order."""
        return tuple(self._written)

    def write(self, location: str, data: bytes) -> None:
        """Begin to write a file of this commit; it counts as written even if that fails halfway."""
        with self._lock:
            self._written[location] = None
            self._pending[location] = _writers().submit(self.storage.write, location, data)

    def read(self, location: str) -> bytes:
        """The bytes at a location, also if this commit is still writing them."""
        pending = self._pending.get(location)
        if pending is not None:
            pending.result()
        return self.storage.read(location)

    def settle(self) -> None:
        """Wait until every file is written, whole and durable. A failure is final: what was made relies on the file."""
        self._finish()
        if self.failure is not None:
            raise self.failure

    def _finish(self) -> None:
        """Wait for what is being written, and remember the first error."""
        with self._lock:
            pending, self._pending = self._pending, {}
        for error in [writing.exception() for writing in pending.values()]:
            self.failure = self.failure or error

    def discard(self, locations: Iterable[str]) -> bool:
        """Delete files of this commit; whether all of them are gone. It never fails: files may stay behind."""
        known = set(self._own())
        own = [location for location in locations if location in known]
        # A file that is still being written would be there after its deletion.
        self._finish()
        try:
            failures = {failure.location for failure in self.storage.delete(own)}
        except Exception:  # noqa: BLE001 - the outcome of the commit stands, whatever happens to leftovers
            return False
        deleted = set(own) - failures
        for location in deleted:
            self._written.pop(location, None)
        # The list stays the same: writers may hold it.
        self.row_files[:] = [file for file in self.row_files if file.file_path not in deleted]
        return not failures

    def discard_all(self) -> bool:
        """The same for every file that was written for this commit, by this or by the writers of rows."""
        return self.discard(self._own())

    def _own(self) -> tuple[str, ...]:
        return (*self._written, *(file.file_path for file in self.row_files))

    def remember(self, key: Hashable, make: Callable[[], T]) -> T:
        """What was made under the key in an earlier attempt, or what `make` returns now."""
        if key not in self._memory:
            self._memory[key] = make()
        return cast(T, self._memory[key])

    def manifest_names(self, metadata: md.TableMetadata, container: str = props.AVRO) -> Iterator[str]:
        """Locations for new manifests, without end; the Java library finds their format by the name."""
        stem = f"{md.metadata_folder(metadata)}/{self.commit_uuid}-m"
        return (f"{stem}{number}.{container}" for number in self._manifest_numbers)

    def list_name(self, metadata: md.TableMetadata, snapshot_id: int) -> str:
        """The location of the manifest list of this attempt."""
        return f"{md.metadata_folder(metadata)}/snap-{snapshot_id}-{self.attempt}-{self.commit_uuid}.avro"

    def vectors_name(self, metadata: md.TableMetadata) -> str:
        """A location for a new file of deletion vectors."""
        return f"{md.table_location(metadata)}/data/{self.commit_uuid}-deletes-{next(self._vector_numbers)}.puffin"


_pool: tuple[int, ThreadPoolExecutor] | None = None


def _writers() -> ThreadPoolExecutor:
    """The threads that write files, for all commits of the process: on a busy machine one takes long to start.

    Those that are idle wait for nothing but work. A process that was forked off has none of them, and makes its own. There
    is no lock that a fork could leave closed: two threads may each make a pool, and one of these ends with its work.
    """
    global _pool
    pool = _pool
    if pool is None or pool[0] != os.getpid():
        pool = _pool = os.getpid(), ThreadPoolExecutor(_MOST_WRITERS, thread_name_prefix="icefloe-commit")
    return pool[1]


@dataclass(frozen=True, slots=True)
class Prepared:
    """What a change does to the metadata that it was prepared on.

    `requirements` are those that the updates do not imply by themselves (see `requirements_for`).
    """

    updates: tuple[up.TableUpdate, ...] = ()
    requirements: tuple[req.TableRequirement, ...] = ()


class Change(Protocol):
    """An intention. It may be prepared many times, on newer and newer metadata: once for each attempt to commit it."""

    def prepare(self, metadata: md.TableMetadata, bench: Workbench, /) -> Prepared:
        """What to do to this metadata; files that are needed are written."""

    @property
    def snapshot_ids(self) -> tuple[int, ...]:
        """The ids of the snapshots that it makes, the same in every attempt; most changes make none."""
        return ()


class PreparedChanges:
    """The changes of one commit, each prepared on what those before it leave."""

    def __init__(self, base: md.TableMetadata, bench: Workbench, changes: Iterable[Change] = ()) -> None:
        self._base = base
        self._applied = md.Applied(base)
        self._pending: tuple[up.TableUpdate, ...] = ()
        self.bench = bench
        self._changes: list[Change] = []
        self._updates: list[up.TableUpdate] = []
        self._requirements: list[req.TableRequirement] = []
        for change in changes:
            self.add(change)

    @property
    def applied(self) -> md.Applied:
        """What the changes leave. The last snapshot is applied when somebody asks: most commits have only that one."""
        pending, self._pending = self._pending, ()
        self._applied = self._step(self._applied, pending)
        return self._applied

    @property
    def snapshot_ids(self) -> tuple[int, ...]:
        """The ids of the snapshots that the changes make."""
        return tuple(snapshot_id for change in self._changes for snapshot_id in change.snapshot_ids)

    def on(self, base: md.TableMetadata) -> "PreparedChanges":
        """The same changes, prepared on another state of the table."""
        return PreparedChanges(base, self.bench, self._changes)

    def add(self, change: Change) -> Prepared:
        """Prepare one more change."""
        # Files of the changes before may be read, while those of the last one may still be on their way in `commit`.
        self.bench.settle()
        prepared = change.prepare(self.applied.metadata, self.bench)
        if change.snapshot_ids:
            self._pending = prepared.updates
        else:
            md.check_codable(prepared.updates)
            self._applied = self._step(self._applied, prepared.updates)
        self._changes.append(change)
        self._updates += prepared.updates
        self._requirements += requirements_for(self._base, prepared.updates)
        self._requirements += filter(self._is_about_base, prepared.requirements)
        return prepared

    def _step(self, applied: md.Applied, updates: Iterable[up.TableUpdate]) -> md.Applied:
        for update in updates:
            applied = md.step(applied, update, self.bench.clock_ms())
        return applied

    @property
    def combined(self) -> Prepared:
        """All updates in order, with what they rely on in the base, not in what earlier ones of them leave."""
        return Prepared(tuple(self._updates), tuple(dict.fromkeys(self._requirements)))

    def _is_about_base(self, requirement: req.TableRequirement) -> bool:
        """What an earlier change of the same commit brings about is no condition for the base."""
        try:
            requirement.check(self._base)
        except errors.CommitFailed:
            return False
        return True
