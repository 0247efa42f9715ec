"""Reading and writing the files of an object store, and the meaning of its errors, through obstore.

No request is spent on what the response to another brings anyway: a whole file is one GET, a footer one GET
of the last bytes. An exclusive create is one conditional PUT that is never retried: after a lost response a
retry would see our own file and take it for another's.
"""

import itertools
import os
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

import obstore
import pyarrow as pa
from obstore import exceptions as refused

from icefloe.errors import IcefloeError, InvalidLocationError, LocationExistsError, LocationNotFoundError, StorageError
from icefloe.parallel import in_order
from icefloe.storage import protocol
from icefloe.storage.buckets import Bucket
from icefloe.storage.locations import Location
from icefloe.storage.properties import redacted
from icefloe.storage.protocol import DeleteFailure, FileInfo, Files, OutputStream, Tail
from icefloe.storage.streams import RangedInput, open_ranged
from icefloe.storage.vended import StorageCredential

if TYPE_CHECKING:
    from obstore import ListStream, ObjectMeta, WritableFile

    from icefloe.storage.buckets import RemoteStore

T = TypeVar("T")

LARGEST_SINGLE_PUT = 64 << 20
DELETE_BATCH = 1000
DELETE_THREADS = 16
UPLOADS_AT_ONCE = 6
_LONGEST_PROBLEM = 500
_SIGNS_OF_TOO_FAST = (
    "SlowDown",
    "TooManyRequests",
    "ServiceUnavailable",
    "RequestLimitExceeded",
    "reduce your request rate",
)
_WAITS_WHEN_TOO_FAST = (0.2, 0.8, 3.2)
"""Seconds between attempts to delete many files that the store refused as too many."""
_SIGNS_OF_NO_IDENTITY = ("/latest/api/token", "169.254.", "metadata.google", "redirect", "credential")
_OBSTORE_ERRORS = (refused.BaseError, OSError, ValueError)
_REFUSALS = (refused.PermissionDeniedError, refused.UnauthenticatedError)
_SIGNS_OF_REFUSAL = ("401 Unauthorized", "403 Forbidden")
"""How a listing says so, whose errors have no type of their own."""


class _Threads:
    """Whether obstore's threads run in this process; they do not survive a fork, and waiting for them would hang."""

    started = False
    lost = False

    @classmethod
    def after_fork(cls) -> None:
        cls.lost = cls.lost or cls.started

    @classmethod
    def check(cls, location: Location) -> None:
        if cls.lost:
            raise StorageError(
                str(location),
                "cannot be reached: this process was forked from one that had used object stores; "
                "start processes by `spawn` or `forkserver`",
            )
        cls.started = True


os.register_at_fork(after_in_child=_Threads.after_fork)


class ObjectFiles(Files):
    """The files of one bucket or container."""

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket
        self._lock = threading.Lock()
        self._stores: dict[tuple[bool, str | None], RemoteStore] = {}
        self._conditional: bool | None = True if bucket.known_conditional else None

    def read(self, location: Location, limit: int) -> bytes:
        store, key = self._resolve(location)
        answer = self._request(location, lambda: obstore.get(store, key))
        protocol.check_length(location, answer.meta["size"], limit)
        return self._attempt(location, lambda: bytes(answer.bytes()))

    def read_ranges(self, location: Location, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        store, key = self._resolve(location)
        for offset, length in ranges:
            protocol.check_range(location, offset, length)
        non_empty = [(offset, length) for offset, length in ranges if length]
        if not non_empty:
            return [b""] * len(ranges)
        starts, lengths = zip(*non_empty, strict=True)
        parts = iter(
            self._request(location, lambda: obstore.get_ranges(store, key, starts=starts, lengths=lengths, coalesce=0))
        )
        results = [bytes(next(parts)) if length else b"" for _, length in ranges]
        protocol.check_parts(location, ranges, results)
        return results

    def read_tail(self, location: Location, length: int) -> Tail:
        protocol.check_range(location, 0, length)
        if length == 0:
            return Tail(b"", self.stat(location).size)
        store, key = self._resolve(location)
        failure: Exception | None = None
        used = self._credential()
        try:
            answer = obstore.get(store, key, options={"range": {"suffix": length}})
            return Tail(bytes(answer.bytes()), answer.meta["size"])
        except refused.NotSupportedError:
            pass  # Azure has no such request.
        except _OBSTORE_ERRORS as error:
            if self._is_worth_another(error, used):
                return self.read_tail(location, length)
            failure = self._translated(location, error)
        size = self.stat(location).size if failure is None else self._size_if_empty(location, failure)
        start = max(0, size - length)
        return Tail(self.read_range(location, start, size - start), size)

    def _size_if_empty(self, location: Location, failure: Exception) -> int:
        # A file of no bytes has no last ones, which stores answer with errors of several kinds.
        if type(failure) is StorageError:
            with suppress(StorageError):
                if self.stat(location).size == 0:
                    return 0
        raise failure

    def write(self, location: Location, data: bytes) -> None:
        store, key = self._resolve(location)
        parts = len(data) > LARGEST_SINGLE_PUT
        size = self._bucket.part_size
        self._request(location, lambda: obstore.put(store, key, data, use_multipart=parts, chunk_size=size))

    def create_exclusive(self, location: Location, data: bytes) -> None:
        store, key = self._resolve(location, retrying=False)
        if not self.supports_exclusive_create(location):
            raise StorageError(
                str(location), "cannot be created exclusively: the store ignores conditional writes (If-None-Match)"
            )
        self._request(location, lambda: obstore.put(store, key, data, mode="create"))

    def supports_exclusive_create(self, location: Location) -> bool:
        """Whether the store honours conditional writes; an unknown store is probed once, beside the location."""
        with self._lock:
            known = self._conditional
        if known is None:
            known = self._try_conditional(location)
            with self._lock:
                self._conditional = known
        return known

    def _try_conditional(self, location: Location) -> bool:
        probe = probe_beside(location)
        store, key = self._resolve(probe, retrying=False)

        def is_kept() -> bool:
            try:
                obstore.put(store, key, b"1", mode="create")
                with suppress(refused.AlreadyExistsError, refused.PreconditionError):
                    obstore.put(store, key, b"2", mode="create")
                    return False
                return True
            except refused.NotSupportedError:
                return False
            finally:
                with suppress(*_OBSTORE_ERRORS):
                    obstore.delete(store, key)

        return self._request(probe, is_kept)

    def delete(self, locations: Iterable[Location]) -> Iterator[DeleteFailure]:
        """Delete files, many in one request where the store can; a missing file is not an error."""
        rest = iter(locations)
        while batch := list(itertools.islice(rest, DELETE_BATCH)):
            if not self._deleted_together(batch):
                # One request does not say what failed, so every file is deleted by itself.
                yield from [failure for failure in in_order(self._delete_one, batch, DELETE_THREADS) if failure]

    def _deleted_together(self, batch: Sequence[Location]) -> bool:
        try:
            targets = [self._resolve(location) for location in batch]
        except IcefloeError:
            return False
        stores = {id(store): store for store, _ in targets}
        if len(stores) > 1 or len(batch) == 1:
            return False
        keys = [key for _, key in targets]
        for wait in (*_WAITS_WHEN_TOO_FAST, None):
            try:
                obstore.delete(targets[0][0], keys)
            except _OBSTORE_ERRORS as error:
                # A store that answers for each key by itself cannot be told by its client that we are too fast.
                if wait is None or not any(sign in str(error) for sign in _SIGNS_OF_TOO_FAST):
                    return False
                time.sleep(wait * (0.5 + random.random()))
            else:
                return True
        return False

    def _delete_one(self, location: Location) -> DeleteFailure | None:
        try:
            store, key = self._resolve(location)
            self._request(location, lambda: obstore.delete(store, key))
        except LocationNotFoundError:
            return None
        except StorageError as error:
            return DeleteFailure(str(location), error)
        except IcefloeError as error:
            return DeleteFailure(str(location), StorageError(str(location), str(error)))
        return None

    def list_prefix(self, location: Location) -> Iterator[FileInfo]:
        store, folder = self._folder(location)

        def begun() -> "tuple[ListStream[Sequence[ObjectMeta]], Sequence[ObjectMeta] | None]":
            stream = obstore.list(store, folder or None, chunk_size=1000)
            return stream, next(stream, None)

        stream, chunk = self._request(location, begun)
        while chunk:
            for entry in chunk:
                # A marker of the folder itself comes back under the folder's name.
                if entry["path"] != folder:
                    yield _info(f"{location.root}/{entry['path']}", entry)
            chunk = self._attempt(location, lambda: next(stream, None))

    def list_files(self, location: Location) -> Iterator[FileInfo]:
        store, folder = self._folder(location)
        listing = self._request(location, lambda: obstore.list_with_delimiter(store, folder or None))
        for entry in listing["objects"]:
            if entry["path"] != folder:
                yield _info(f"{location.root}/{entry['path']}", entry)

    def list_folders(self, location: Location) -> Iterator[str]:
        """The names of the folders directly beneath the location, without listing what is in them."""
        store, folder = self._folder(location)
        listing = self._request(location, lambda: obstore.list_with_delimiter(store, folder or None))
        for prefix in listing["common_prefixes"]:
            yield prefix.rstrip("/").rpartition("/")[2]

    def stat(self, location: Location) -> FileInfo:
        store, key = self._resolve(location)
        return _info(str(location), self._request(location, lambda: obstore.head(store, key)))

    def open_input(self, location: Location, size: int | None) -> pa.NativeFile | RangedInput:
        return open_ranged(self, location, size)

    def open_output(self, location: Location) -> OutputStream:
        store, key = self._resolve(location)
        size = self._bucket.part_size
        writer = self._request(
            location,
            lambda: obstore.open_writer(store, key, buffer_size=size, max_concurrency=UPLOADS_AT_ONCE),
        )
        return _ObjectOutput(location, writer, self._attempt)

    def _resolve(self, location: Location, *, retrying: bool = True) -> "tuple[RemoteStore, str]":
        key = location.key
        check_key(location, key, empty_names=self._bucket.reaches_empty_names)
        _Threads.check(location)
        folder, empty, name = key.rpartition("//")
        if empty:
            return self._store(retrying, f"{folder}/"), name
        if key.startswith("/"):
            return self._store(retrying, ""), key[1:]
        return self._store(retrying, None), key

    def _folder(self, location: Location) -> "tuple[RemoteStore, str]":
        folder = location.key.removesuffix("/")
        if folder:
            check_key(location, folder, empty_names=False)
        _Threads.check(location)
        return self._store(True, None), folder

    def _store(self, retrying: bool, folder: str | None) -> "RemoteStore":
        with self._lock:
            store = self._stores.get((retrying, folder))
            if store is None:
                store = self._stores[retrying, folder] = self._bucket.open_store(retrying, folder)
            return store

    def _request(self, location: Location, action: Callable[[], T]) -> T:
        """What the store answers; it is asked once more if it refused credentials that a newer one can take the place of."""
        used = self._credential()
        try:
            return action()
        except _OBSTORE_ERRORS as error:
            again = self._is_worth_another(error, used)
            failure = None if again else self._translated(location, error)
        if failure is None:
            return self._attempt(location, action)
        raise failure

    def _credential(self) -> StorageCredential | None:
        """The credential of now, asked for here, so that a catalog that refuses a new one is told by its own error."""
        return None if self._bucket.grant is None else self._bucket.grant.used()

    def _is_worth_another(self, error: Exception, used: StorageCredential | None) -> bool:
        grant = self._bucket.grant
        if grant is None:
            return False
        is_refused = isinstance(error, _REFUSALS) or any(sign in str(error) for sign in _SIGNS_OF_REFUSAL)
        return is_refused and grant.after_refusal(used)

    def _attempt(self, location: Location, action: Callable[[], T]) -> T:
        try:
            return action()
        except _OBSTORE_ERRORS as error:
            failure = self._translated(location, error)
        # Raised here, so that the original, whose text may hold credentials, does not hang on it.
        raise failure

    def _translated(self, location: Location, error: Exception) -> Exception:
        grant = self._bucket.grant
        secrets = (*self._bucket.secrets, *(() if grant is None else grant.credentials.secrets()))
        text = redacted(str(error).split("\n\nDebug source")[0], secrets).strip()
        text = text if len(text) <= _LONGEST_PROBLEM else f"{text[:_LONGEST_PROBLEM]}..."
        match error:
            case FileNotFoundError():
                missing = "NoSuchBucket" in text or "ContainerNotFound" in text
                return LocationNotFoundError(str(location), "has no such bucket" if missing else "does not exist")
            case refused.AlreadyExistsError() | refused.PreconditionError():
                return LocationExistsError(str(location), "already exists")
            case refused.PermissionDeniedError() | refused.UnauthenticatedError():
                return StorageError(str(location), f"the store refused access ({self._bucket.advice}): {text}")
            case refused.InvalidPathError():
                return StorageError(str(location), f"holds a file whose name cannot be listed: {text}")
            case ValueError():
                return InvalidLocationError(f"location {str(location)!r} is not one for an object store: {text}")
            case _ if any(sign in text.lower() for sign in _SIGNS_OF_NO_IDENTITY):
                return StorageError(str(location), f"the store could not be reached ({self._bucket.advice}): {text}")
            case _:
                return StorageError(str(location), text)


class _ObjectOutput(OutputStream):
    def __init__(
        self, location: Location, writer: "WritableFile", attempt: Callable[[Location, Callable[[], Any]], Any]
    ) -> None:
        super().__init__(location)
        self._writer = writer
        self._attempt = attempt

    def _append(self, data: memoryview) -> None:
        self._attempt(self._location, lambda: self._writer.write(data))

    def _publish(self) -> None:
        self._attempt(self._location, self._writer.close)

    def _drop(self) -> None:
        # The writer has no abort of its own, but leaving it by an exception cancels the upload.
        stop = StorageError(str(self._location), "writing was given up")
        with suppress(*_OBSTORE_ERRORS):
            self._writer.__exit__(StorageError, stop, None)


def check_key(location: Location, key: str, *, empty_names: bool) -> None:
    """Refuse a key that names no file."""
    if not key or key.endswith("/"):
        raise InvalidLocationError(f"location {str(location)!r} names a folder, not a file")
    names = key.split("/")
    if "." in names or ".." in names:
        raise InvalidLocationError(f"location {str(location)!r} has a `.` or `..`, which object stores do not support")
    if "" in names and not empty_names:
        raise InvalidLocationError(f"location {str(location)!r} has an empty name (`//`), which cannot be reached here")


def probe_beside(location: Location) -> Location:
    """A name beside the location that nobody else has, to try out what the store does."""
    folder = location.path[: location.path.rindex("/")]
    return Location(location.scheme, location.authority, f"{folder}/.icefloe-probe-{uuid4().hex}", location.root)


def _info(location: str, entry: "ObjectMeta") -> FileInfo:
    return FileInfo(location, entry["size"], round(entry["last_modified"].timestamp() * 1000))
