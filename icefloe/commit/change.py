"""What every operation of this room is: a value that turns a table's metadata into updates and requirements, at a workbench.

The workbench holds the files that a commit writes, what its attempts share, and the caches of the table's handle.
"""

import os
import threading
import uuid
from collections.abc import Callable, Hashable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from icefloe import properties as props
from icefloe.commit.path_index import PathIndex
from icefloe.errors import InvalidLocationError
from icefloe.manifests import DataFile, ManifestCache
from icefloe.metadata import TableMetadata, is_absolute, requirements as req, updates as up
from icefloe.storage import Storage

Kept = TypeVar("Kept")

_MOST_WRITERS = 8


@dataclass(frozen=True, slots=True)
class Caches:
    """What one handle of a table remembers of files that never change; never shared between credentials."""

    manifests: ManifestCache = field(default_factory=ManifestCache)
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
        self.row_files: list[DataFile] = []
        """The files of rows, data and deletes, that were written for this commit; not by this."""
        self._manifests = 0
        self._vectors = 0
        self._written: dict[str, None] = {}
        self._memory: dict[Hashable, Any] = {}
        self._lock = threading.Lock()
        self._pending: dict[str, Future[None]] = {}
        self._failure: BaseException | None = None

    @property
    def failure(self) -> BaseException | None:
        """Why a file could not be written, once that was waited for; nothing can be committed from then on."""
        return self._failure

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
        if self._failure is not None:
            raise self._failure

    def _finish(self) -> None:
        """Wait for what is being written, and remember the first error."""
        with self._lock:
            pending, self._pending = self._pending, {}
        for error in [each.exception() for each in pending.values()]:
            self._failure = self._failure or error

    def discard(self, locations: Iterable[str]) -> bool:
        """Delete files of this commit; whether all of them are gone. It never fails: files may stay behind."""
        known = {*self._written, *(each.file_path for each in self.row_files)}
        own = [location for location in locations if location in known]
        # A file that is still being written would be there after its deletion.
        self._finish()
        try:
            failures = {failure.location for failure in self.storage.delete(own)}
        except Exception:  # noqa: BLE001 - the outcome of the commit stands, whatever happens to leftovers
            return False
        gone = set(own) - failures
        for location in gone:
            self._written.pop(location, None)
        # The list stays the same: writers may hold it.
        self.row_files[:] = [each for each in self.row_files if each.file_path not in gone]
        return not failures

    def discard_all(self) -> bool:
        """The same for every file that was written for this commit, by this or by the writers of rows."""
        return self.discard((*self._written, *(each.file_path for each in self.row_files)))

    def remember(self, key: Hashable, make: Callable[[], Kept]) -> Kept:
        """What was made under the key in an earlier attempt, or what `make` gives now."""
        if key not in self._memory:
            self._memory[key] = make()
        found: Kept = self._memory[key]
        return found

    def manifest_names(self, metadata: TableMetadata) -> Iterator[str]:
        """Locations for new manifests, without end."""
        while True:
            with self._lock:
                number, self._manifests = self._manifests, self._manifests + 1
            yield f"{metadata_folder(metadata)}/{self.commit_uuid}-m{number}.avro"

    def list_name(self, metadata: TableMetadata, snapshot_id: int) -> str:
        """The location of the manifest list of this attempt."""
        return f"{metadata_folder(metadata)}/snap-{snapshot_id}-{self.attempt}-{self.commit_uuid}.avro"

    def vectors_name(self, metadata: TableMetadata) -> str:
        """A location for a new file of deletion vectors."""
        with self._lock:
            number, self._vectors = self._vectors, self._vectors + 1
        return f"{table_location(metadata)}/data/{self.commit_uuid}-deletes-{number}.puffin"


_pool: tuple[int, ThreadPoolExecutor] | None = None


def _writers() -> ThreadPoolExecutor:
    """The threads that write files, for all commits of the process: on a busy machine one takes long to start.

    Those that are idle wait for nothing but work. A process that was forked off has none of them, and makes its own. There
    is no lock that a fork could leave closed: two threads may each make a pool, and one of these ends with its work.
    """
    global _pool
    found = _pool
    if found is None or found[0] != os.getpid():
        found = _pool = os.getpid(), ThreadPoolExecutor(_MOST_WRITERS, thread_name_prefix="icefloe-commit")
    return found[1]


def table_location(metadata: TableMetadata) -> str:
    """Where the table's files go; metadata that leaves it to the catalog must have been completed by that."""
    if metadata.location is None:
        raise InvalidLocationError(
            "the table's metadata has no location, so there is no place for new files; the catalog must supply one"
        )
    return metadata.location


def metadata_folder(metadata: TableMetadata) -> str:
    """Where manifests, manifest lists and metadata files go (spec: Appendix F, Path Construction)."""
    wanted = props.METADATA_PATH.of(metadata.properties)
    if wanted is None:
        return f"{table_location(metadata)}/metadata"
    path = wanted.rstrip("/")
    # A path of a file system without a scheme is a place of its own, too.
    return path if is_absolute(path) or path.startswith("/") else f"{table_location(metadata)}/{path}"


@dataclass(frozen=True, slots=True)
class Prepared:
    """What a change does to the metadata that it was prepared on.

    `requirements` are those that the updates do not imply by themselves (see `metadata.requirements_for`).
    """

    updates: tuple[up.TableUpdate, ...] = ()
    requirements: tuple[req.TableRequirement, ...] = ()


class Change(Protocol):
    """An intention. It may be prepared many times, on newer and newer metadata: once for each attempt to commit it."""

    def prepare(self, metadata: TableMetadata, bench: Workbench, /) -> Prepared:
        """What to do to this metadata; files that are needed are written."""

    @property
    def snapshot_ids(self) -> tuple[int, ...]:
        """The ids of the snapshots that it has made up for itself; the same in every attempt."""
