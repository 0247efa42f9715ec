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
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

import obstore
import pyarrow as pa
from obstore import exceptions as refused

from icefloe.errors import IcefloeError, InvalidLocationError, LocationExistsError, LocationNotFoundError, StorageError
from icefloe.parallel import in_order
from icefloe.storage import protocol
from icefloe.storage.locations import Location
from icefloe.storage.properties import redacted
from icefloe.storage.protocol import DeleteFailure, FileInfo, Files, OutputStream, Tail
from icefloe.storage.streams import SMALL_FILE, TAIL_LENGTH, RangedInput

if TYPE_CHECKING:
    from obstore import ObjectMeta, WritableFile
    from obstore.store import AzureStore, ClientConfig, GCSStore, RetryConfig, S3Store

    RemoteStore = S3Store | GCSStore | AzureStore

T = TypeVar("T")

PART_SIZE = 16 << 20
_LARGEST_SINGLE_PUT = 64 << 20
_LARGEST_SMALL_FILE = 64 << 20
_DELETE_BATCH = 1000
_DELETE_THREADS = 16
_UPLOADS_AT_ONCE = 6
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


@dataclass(frozen=True, slots=True)
class Bucket:
    """How one bucket or container is reached, and what its store is known to do."""

    open_store: "Callable[[bool, str | None], RemoteStore]" = field(repr=False)
    """Opens it: with or without retries, rooted in a folder or in the bucket itself."""
    secrets: tuple[str, ...] = field(repr=False)
    known_conditional: bool
    """Whether conditional writes are known to be kept; else they are tried out once."""
    advice: str
    """What to look at when the store refuses us."""
    part_size: int = PART_SIZE
    reaches_empty_names: bool = False
    """Whether `a//b` can be reached by rooting a store in the folder `a/`."""


def client_options(
    allow_http: bool,
    connect: timedelta = timedelta(seconds=10),
    read: timedelta = timedelta(seconds=60),
    proxy: str | None = None,
) -> "ClientConfig":
    """Timeouts for connecting and for silence; the whole request may take longer, since files may be large."""
    options: ClientConfig = {
        "connect_timeout": connect,
        "read_timeout": read,
        "timeout": max(timedelta(seconds=300), read),
        "allow_http": allow_http,
    }
    if proxy:
        options["proxy_url"] = proxy
    return options


def retry_options(retries: int, first_wait_ms: int = 100, longest_wait_ms: int = 20_000) -> "RetryConfig":
    """Retries with growing waits, for at most two minutes."""
    return {
        "max_retries": retries,
        "retry_timeout": timedelta(minutes=2),
        "backoff": {
            "init_backoff": timedelta(milliseconds=first_wait_ms),
            "max_backoff": timedelta(milliseconds=max(first_wait_ms, longest_wait_ms)),
            "base": 2,
        },
    }


class ObjectFiles(Files):
    """The files of one bucket or container."""

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket
        self._lock = threading.Lock()
        self._stores: dict[tuple[bool, str | None], RemoteStore] = {}
        self._conditional: bool | None = True if bucket.known_conditional else None

    def read(self, location: Location, limit: int) -> bytes:
        store, key = self._resolve(location)
        answer = self._attempt(location, lambda: obstore.get(store, key))
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
            self._attempt(location, lambda: obstore.get_ranges(store, key, starts=starts, lengths=lengths, coalesce=0))
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
        try:
            answer = obstore.get(store, key, options={"range": {"suffix": length}})
            return Tail(bytes(answer.bytes()), answer.meta["size"])
        except refused.NotSupportedError:
            pass  # Azure has no such request.
        except _OBSTORE_ERRORS as error:
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
        parts = len(data) > _LARGEST_SINGLE_PUT
        size = self._bucket.part_size
        self._attempt(location, lambda: obstore.put(store, key, data, use_multipart=parts, chunk_size=size))

    def create_exclusive(self, location: Location, data: bytes) -> None:
        store, key = self._resolve(location, retrying=False)
        if not self.supports_exclusive_create(location):
            raise StorageError(
                str(location), "cannot be created exclusively: the store ignores conditional writes (If-None-Match)"
            )
        self._attempt(location, lambda: obstore.put(store, key, data, mode="create"))

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
        folder = location.path[: location.path.rindex("/")]
        probe = Location(location.scheme, location.authority, f"{folder}/.icefloe-probe-{uuid4().hex}", location.root)
        store, key = self._resolve(probe, retrying=False)
        try:
            obstore.put(store, key, b"1", mode="create")
            with suppress(refused.AlreadyExistsError, refused.PreconditionError):
                obstore.put(store, key, b"2", mode="create")
                return False
            return True
        except refused.NotSupportedError:
            return False
        except _OBSTORE_ERRORS as error:
            failure = self._translated(probe, error)
        finally:
            with suppress(*_OBSTORE_ERRORS):
                obstore.delete(store, key)
        raise failure

    def delete(self, locations: Iterable[Location]) -> Iterator[DeleteFailure]:
        """Delete files, many in one request where the store can; a missing file is not an error."""
        rest = iter(locations)
        while batch := list(itertools.islice(rest, _DELETE_BATCH)):
            if not self._deleted_together(batch):
                # One request does not say what failed, so every file is deleted by itself.
                yield from [failure for failure in in_order(self._delete_one, batch, _DELETE_THREADS) if failure]

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
            self._attempt(location, lambda: obstore.delete(store, key))
        except LocationNotFoundError:
            return None
        except StorageError as error:
            return DeleteFailure(str(location), error)
        except InvalidLocationError as error:
            return DeleteFailure(str(location), StorageError(str(location), str(error)))
        return None

    def list_prefix(self, location: Location) -> Iterator[FileInfo]:
        store, folder = self._folder(location)
        stream = self._attempt(location, lambda: obstore.list(store, folder or None, chunk_size=1000))
        while chunk := self._attempt(location, lambda: next(stream, None)):
            for entry in chunk:
                # A marker of the folder itself comes back under the folder's name.
                if entry["path"] != folder:
                    yield _info(f"{location.root}/{entry['path']}", entry)

    def list_files(self, location: Location) -> Iterator[FileInfo]:
        store, folder = self._folder(location)
        listing = self._attempt(location, lambda: obstore.list_with_delimiter(store, folder or None))
        for entry in listing["objects"]:
            if entry["path"] != folder:
                yield _info(f"{location.root}/{entry['path']}", entry)

    def list_folders(self, location: Location) -> Iterator[str]:
        """The names of the folders directly beneath the location, without listing what is in them."""
        store, folder = self._folder(location)
        listing = self._attempt(location, lambda: obstore.list_with_delimiter(store, folder or None))
        for prefix in listing["common_prefixes"]:
            yield prefix.rstrip("/").rpartition("/")[2]

    def stat(self, location: Location) -> FileInfo:
        store, key = self._resolve(location)
        return _info(str(location), self._attempt(location, lambda: obstore.head(store, key)))

    def open_input(self, location: Location, size: int | None) -> pa.NativeFile | RangedInput:
        """A reader that requests only what is read; a small file is read whole, in one request."""
        if size is None:
            tail = self.read_tail(location, TAIL_LENGTH)
            if len(tail.data) == tail.size:
                return pa.BufferReader(tail.data)
            return RangedInput(self, location, tail.size, tail)
        if size <= SMALL_FILE:
            # What is recorded of the size may be wrong, but not by any amount.
            return pa.BufferReader(self.read(location, _LARGEST_SMALL_FILE))
        return RangedInput(self, location, size, None)

    def open_output(self, location: Location) -> OutputStream:
        store, key = self._resolve(location)
        size = self._bucket.part_size
        writer = self._attempt(
            location,
            lambda: obstore.open_writer(store, key, buffer_size=size, max_concurrency=_UPLOADS_AT_ONCE),
        )
        return _ObjectOutput(location, writer, self._attempt)

    def _resolve(self, location: Location, *, retrying: bool = True) -> "tuple[RemoteStore, str]":
        key = location.key
        _check_key(location, key, empty_names=self._bucket.reaches_empty_names)
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
            _check_key(location, folder, empty_names=False)
        _Threads.check(location)
        return self._store(True, None), folder

    def _store(self, retrying: bool, folder: str | None) -> "RemoteStore":
        with self._lock:
            store = self._stores.get((retrying, folder))
            if store is None:
                store = self._stores[retrying, folder] = self._bucket.open_store(retrying, folder)
            return store

    def _attempt(self, location: Location, action: Callable[[], T]) -> T:
        try:
            return action()
        except _OBSTORE_ERRORS as error:
            failure = self._translated(location, error)
        # Raised here, so that the original, whose text may hold credentials, does not hang on it.
        raise failure

    def _translated(self, location: Location, error: Exception) -> Exception:
        text = redacted(str(error).split("\n\nDebug source")[0], self._bucket.secrets).strip()
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


def _check_key(location: Location, key: str, *, empty_names: bool) -> None:
    if not key or key.endswith("/"):
        raise InvalidLocationError(f"location {str(location)!r} names a folder, not a file")
    names = key.split("/")
    if "." in names or ".." in names:
        raise InvalidLocationError(f"location {str(location)!r} has a `.` or `..`, which object stores do not support")
    if "" in names and not empty_names:
        raise InvalidLocationError(f"location {str(location)!r} has an empty name (`//`), which cannot be reached here")


def _info(location: str, entry: "ObjectMeta") -> FileInfo:
    return FileInfo(location, entry["size"], round(entry["last_modified"].timestamp() * 1000))
