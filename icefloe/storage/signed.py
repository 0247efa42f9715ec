"""Reading and writing the files of a bucket whose every request is signed by a catalog, so that no key ever comes here.

The same promises as those of other object stores: no request is spent on what another brings anyway, and an exclusive create
is one conditional PUT that is sent once.
"""

import itertools
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar
from xml.etree.ElementTree import ParseError

import pyarrow as pa

from icefloe import errors
from icefloe.parallel import in_order
from icefloe.storage import protocol, s3_codec as s3
from icefloe.storage.buckets import PART_SIZE
from icefloe.storage.locations import Location
from icefloe.storage.objects import (
    DELETE_BATCH,
    DELETE_THREADS,
    LARGEST_SINGLE_PUT,
    UPLOADS_AT_ONCE,
    check_key,
    probe_beside,
)
from icefloe.storage.properties import whole_number
from icefloe.storage.protocol import DeleteFailure, FileInfo, Files, OutputStream, Tail
from icefloe.storage.s3 import SMALLEST_PART, address_of, encryption
from icefloe.storage.s3_http import Answer, Call, SignedRequests
from icefloe.storage.signing import Sign
from icefloe.storage.streams import RangedInput, open_ranged

T = TypeVar("T")

_RANGES_AT_ONCE = 8


def open_signed_bucket(bucket: str, properties: Mapping[str, str], sign: Sign) -> "SignedFiles":
    """The files of a bucket; nothing is sent yet."""
    config = encryption(properties)
    if "sse_customer_key_base64" in config or config.get("server_side_encryption") == "sse-c":
        raise errors.InvalidPropertyError(
            "s3.sse.type custom: keys of one's own do not go with remote signing; s3 and kms do"
        )
    address = address_of(bucket, properties)
    return SignedFiles(
        SignedRequests(address, properties, sign),
        s3.encryption_headers(config),
        whole_number(properties, "s3.multipart.part-size-bytes", PART_SIZE, SMALLEST_PART),
        address.is_amazon,
    )


class SignedFiles(Files):
    """The files of one bucket."""

    def __init__(
        self, requests: SignedRequests, write_headers: Mapping[str, str], part_size: int, known_conditional: bool
    ) -> None:
        self._requests = requests
        self._write_headers = write_headers
        self._part_size = part_size
        self._lock = threading.Lock()
        self._conditional: bool | None = True if known_conditional else None

    def read(self, location: Location, limit: int) -> bytes:
        answer = self._ask(Call(location, "GET", _key(location), longest=limit))
        protocol.check_length(location, len(answer.body), limit)
        return answer.body

    def read_ranges(self, location: Location, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        for offset, length in ranges:
            protocol.check_range(location, offset, length)
        parts = list(in_order(lambda part: self._range(location, *part), ranges, _RANGES_AT_ONCE))
        protocol.check_parts(location, ranges, parts)
        return parts

    def _range(self, location: Location, offset: int, length: int) -> bytes:
        if length == 0:
            return b""
        call = Call(location, "GET", _key(location), headers=s3.byte_range(offset, length))
        answer = self._requests.send(call)
        if answer.status == 416:
            raise protocol.short_read(location, offset, length, 0)
        _check(call, answer)
        # A store that knows no ranges sends all.
        return answer.body if answer.status == 206 else answer.body[offset : offset + length]

    def read_tail(self, location: Location, length: int) -> Tail:
        protocol.check_range(location, 0, length)
        if length == 0:
            return Tail(b"", self.stat(location).size)
        call = Call(location, "GET", _key(location), headers=s3.last_bytes(length))
        answer = self._requests.send(call)
        if answer.status == 416:
            # A file of no bytes has no last ones.
            return Tail(b"", self.stat(location).size)
        _check(call, answer)
        size = s3.whole_size(answer.headers)
        return Tail(answer.body[-length:], len(answer.body) if size is None else size)

    def write(self, location: Location, data: bytes) -> None:
        if len(data) > LARGEST_SINGLE_PUT:
            with self.open_output(location) as output:
                output.write(data)
            return
        self._ask(Call(location, "PUT", _key(location), headers=self._write_headers, body=data))

    def create_exclusive(self, location: Location, data: bytes) -> None:
        if not self.supports_exclusive_create(location):
            raise errors.StorageError(
                str(location), "cannot be created exclusively: the store ignores conditional writes (If-None-Match)"
            )
        self._create(location, data)

    def _create(self, location: Location, data: bytes) -> None:
        headers = {**self._write_headers, **s3.ONLY_IF_ABSENT}
        call = Call(location, "PUT", _key(location), headers=headers, body=data, is_sent_once=True)
        answer = self._requests.send(call)
        if answer.status in (409, 412):
            raise errors.LocationExistsError(str(location), "already exists")
        _check(call, answer)

    def supports_exclusive_create(self, location: Location) -> bool:
        """Whether the store honours conditional writes; an unknown store is probed once, beside the location."""
        with self._lock:
            known = self._conditional
        if known is None:
            known = self._try_conditional(probe_beside(location))
            with self._lock:
                self._conditional = known
        return known

    def _try_conditional(self, probe: Location) -> bool:
        try:
            self._create(probe, b"1")
            with suppress(errors.LocationExistsError):
                self._create(probe, b"2")
                return False
            return True
        finally:
            for _ in self.delete([probe]):
                pass

    def delete(self, locations: Iterable[Location]) -> Iterator[DeleteFailure]:
        """Delete files, many in one request; a missing file is not an error."""
        rest = iter(locations)
        while batch := list(itertools.islice(rest, DELETE_BATCH)):
            by_key = {location.key: location for location in batch if _is_plain(location)}
            single = batch if len(by_key) < 2 else [one for one in batch if by_key.get(one.key) is not one]
            if len(by_key) > 1:
                yield from self._delete_together(by_key)
            yield from [failure for failure in in_order(self._delete_one, single, DELETE_THREADS) if failure]

    def _delete_together(self, by_key: Mapping[str, Location]) -> list[DeleteFailure]:
        body = s3.encode_deletion(by_key)
        data = body.encode()
        some = next(iter(by_key.values()))
        call = Call(some, "POST", "", s3.DELETE_MANY, s3.deletion_headers(data), data, body)
        try:
            failures = s3.decode_failures(self._ask(call).body)
        except (errors.StorageError, ParseError):
            # It does not say which, so every file is deleted by itself.
            return [failure for failure in in_order(self._delete_one, by_key.values(), DELETE_THREADS) if failure]
        return [
            DeleteFailure(str(by_key[key]), errors.StorageError(str(by_key[key]), problem))
            for key, problem in failures.items()
            if key in by_key and not problem.startswith(s3.NO_SUCH_KEY)
        ]

    def _delete_one(self, location: Location) -> DeleteFailure | None:
        try:
            self._ask(Call(location, "DELETE", _key(location)))
        except errors.LocationNotFoundError:
            return None
        except errors.StorageError as error:
            return DeleteFailure(str(location), error)
        except errors.IcefloeError as error:
            return DeleteFailure(str(location), errors.StorageError(str(location), str(error)))
        return None

    def list_prefix(self, location: Location) -> Iterator[FileInfo]:
        for page in self._pages(location, deep=True):
            yield from _infos(location, page)

    def list_files(self, location: Location) -> Iterator[FileInfo]:
        for page in self._pages(location, deep=False):
            yield from _infos(location, page)

    def list_folders(self, location: Location) -> Iterator[str]:
        for page in self._pages(location, deep=False):
            for prefix in page.prefixes:
                yield prefix.rstrip("/").rpartition("/")[2]

    def _pages(self, location: Location, *, deep: bool) -> Iterator[s3.Listing]:
        folder = f"{location.key.removesuffix('/')}/"
        token: str | None = None
        while True:
            query = s3.list_query("" if folder == "/" else folder, deep=deep, token=token)
            answer = self._ask(Call(location, "GET", "", query))
            page = _decoded(location, s3.decode_listing, answer.body, "holds a file whose name cannot be listed")
            yield page
            token = page.token
            if token is None:
                return

    def stat(self, location: Location) -> FileInfo:
        headers = self._ask(Call(location, "HEAD", _key(location))).headers
        return FileInfo(str(location), s3.whole_size(headers) or 0, s3.modified_ms(headers))

    def open_input(self, location: Location, size: int | None) -> pa.NativeFile | RangedInput:
        return open_ranged(self, location, size)

    def open_output(self, location: Location) -> OutputStream:
        _key(location)
        return _SignedOutput(location, self._ask, self._write_headers, self._part_size)

    def _ask(self, call: Call) -> Answer:
        answer = self._requests.send(call)
        _check(call, answer)
        return answer


class _SignedOutput(OutputStream):
    """One PUT, or an upload of several parts if there are more bytes than one part has."""

    def __init__(
        self, location: Location, ask: Callable[[Call], Answer], headers: Mapping[str, str], part_size: int
    ) -> None:
        super().__init__(location)
        self._ask = ask
        self._headers = headers
        self._part_size = part_size
        self._buffer = bytearray()
        self._upload: str | None = None
        self._pool: ThreadPoolExecutor | None = None
        self._parts: list[Future[str]] = []

    def _append(self, data: memoryview) -> None:
        self._buffer += data
        while len(self._buffer) >= self._part_size:
            part = bytes(self._buffer[: self._part_size])
            del self._buffer[: self._part_size]
            self._send_part(part)

    def _send_part(self, data: bytes) -> None:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(UPLOADS_AT_ONCE, thread_name_prefix="icefloe-upload")
            answer = self._ask(Call(self._location, "POST", self._location.key, s3.NEW_UPLOAD, self._headers))
            self._upload = _decoded(self._location, s3.decode_upload, answer.body, "has an upload without an id")
        if len(self._parts) >= UPLOADS_AT_ONCE:
            # No more than so many are in memory, and a failure is told early.
            self._parts[-UPLOADS_AT_ONCE].result()
        self._parts.append(self._pool.submit(self._put_part, len(self._parts) + 1, data))

    def _put_part(self, number: int, data: bytes) -> str:
        assert self._upload is not None
        query = s3.part_query(self._upload, number)
        return s3.tag(self._ask(Call(self._location, "PUT", self._location.key, query, body=data)).headers)

    def _publish(self) -> None:
        key = self._location.key
        if self._pool is None:
            self._ask(Call(self._location, "PUT", key, headers=self._headers, body=bytes(self._buffer)))
            return
        try:
            if self._buffer:
                self._send_part(bytes(self._buffer))
            body = s3.encode_parts([part.result() for part in self._parts])
            assert self._upload is not None
            call = Call(self._location, "POST", key, s3.upload_query(self._upload), body=body)
            # An upload may fail after the status is sent.
            _check(call, self._ask(call), in_body=True)
        except BaseException:
            self._drop()
            raise
        self._pool.shutdown()

    def _drop(self) -> None:
        self._buffer.clear()
        if self._pool is None:
            return
        self._pool.shutdown(wait=True, cancel_futures=True)
        if self._upload is not None:
            with suppress(errors.StorageError):
                self._ask(Call(self._location, "DELETE", self._location.key, s3.upload_query(self._upload)))


def _check(call: Call, answer: Answer, *, in_body: bool = False) -> None:
    """Fail if the store did not do what it was asked for."""
    code, message = s3.decode_problem(answer.body) if in_body or answer.status >= 300 else ("", "")
    if answer.status < 300 and not code:
        return
    location = str(call.location)
    if answer.status == 404:
        missing = code == s3.NO_SUCH_BUCKET
        raise errors.LocationNotFoundError(location, "has no such bucket" if missing else "does not exist")
    problem = f"{call.method} was answered with {answer.status} {code}: {message}".rstrip(": ")
    if answer.status in (401, 403):
        raise errors.StorageError(
            location, f"the store refused access, though the catalog signed the request: {problem}"
        )
    raise errors.StorageError(location, problem)


def _decoded(location: Location, decode: Callable[[bytes], T], body: bytes, problem: str) -> T:
    try:
        return decode(body)
    except (ParseError, ValueError) as error:
        raise errors.StorageError(str(location), f"{problem}: {error}") from None


def _key(location: Location) -> str:
    check_key(location, location.key, empty_names=True)
    return location.key


def _is_plain(location: Location) -> bool:
    try:
        return s3.fits_xml(_key(location))
    except errors.IcefloeError:
        return False


def _infos(location: Location, page: s3.Listing) -> Iterator[FileInfo]:
    for entry in page.entries:
        # A marker of a folder is no file.
        if not entry.key.endswith("/"):
            yield FileInfo(f"{location.root}/{entry.key}", entry.size, entry.modified_ms)
