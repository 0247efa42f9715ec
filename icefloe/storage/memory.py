"""`memory:` locations: files of this process, shared by everyone in it."""

import io
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from icefloe.errors import InvalidLocationError, LocationExistsError, LocationNotFoundError
from icefloe.storage import protocol
from icefloe.storage.locations import Location
from icefloe.storage.protocol import DeleteFailure, FileInfo, Files, OutputStream, Tail


@dataclass(frozen=True, slots=True)
class _Stored:
    data: bytes
    modified_ms: int


_LOCK = threading.Lock()
# By authority and path, for the process, as a disk is: a copy or a pickle of a Storage sees the same files.
_FILES: dict[str, dict[str, _Stored]] = defaultdict(dict)


class MemoryFiles(Files):
    """The files in memory under one authority."""

    def read(self, location: Location, limit: int) -> bytes:
        data = self._stored(location).data
        protocol.check_length(location, len(data), limit)
        return data

    def read_ranges(self, location: Location, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        for offset, length in ranges:
            protocol.check_range(location, offset, length)
        data = self._stored(location).data
        parts = [data[offset : offset + length] for offset, length in ranges]
        protocol.check_parts(location, ranges, parts)
        return parts

    def read_tail(self, location: Location, length: int) -> Tail:
        protocol.check_range(location, 0, length)
        data = self._stored(location).data
        return Tail(data[max(0, len(data) - length) :], len(data))

    def write(self, location: Location, data: bytes) -> None:
        _check_name(location)
        with _LOCK:
            _FILES[location.authority][location.path] = _Stored(bytes(data), time.time_ns() // 1_000_000)

    def create_exclusive(self, location: Location, data: bytes) -> None:
        _check_name(location)
        with _LOCK:
            files = _FILES[location.authority]
            if location.path in files:
                raise LocationExistsError(str(location), "already exists")
            files[location.path] = _Stored(bytes(data), time.time_ns() // 1_000_000)

    def supports_exclusive_create(self, location: Location) -> bool:  # noqa: ARG002 - the protocol asks per location
        return True

    def delete(self, locations: Iterable[Location]) -> Iterator[DeleteFailure]:
        for location in locations:
            with _LOCK:
                _FILES[location.authority].pop(location.path, None)
        yield from ()

    def list_prefix(self, location: Location) -> Iterator[FileInfo]:
        folder = location.path if location.path.endswith("/") else f"{location.path}/"
        with _LOCK:
            files = [(path, file) for path, file in _FILES[location.authority].items() if path.startswith(folder)]
        for path, file in files:
            yield FileInfo(f"{location.root}{path}", len(file.data), file.modified_ms)

    def list_files(self, location: Location) -> Iterator[FileInfo]:
        start = len(location.root) + len(location.path.rstrip("/")) + 1
        return (info for info in self.list_prefix(location) if "/" not in info.location[start:])

    def list_folders(self, location: Location) -> Iterator[str]:
        start = len(location.path.rstrip("/")) + 1
        below = (info.location.removeprefix(location.root)[start:] for info in self.list_prefix(location))
        yield from {rest.partition("/")[0] for rest in below if "/" in rest}

    def stat(self, location: Location) -> FileInfo:
        file = self._stored(location)
        return FileInfo(str(location), len(file.data), file.modified_ms)

    def open_input(self, location: Location, size: int | None) -> pa.NativeFile:  # noqa: ARG002 - nothing to save here
        return pa.BufferReader(self._stored(location).data)

    def open_output(self, location: Location) -> OutputStream:
        _check_name(location)
        return _MemoryOutput(self, location)

    def _stored(self, location: Location) -> _Stored:
        with _LOCK:
            file = _FILES[location.authority].get(location.path)
        if file is None:
            raise LocationNotFoundError(str(location), "does not exist")
        return file


class _MemoryOutput(OutputStream):
    def __init__(self, files: MemoryFiles, location: Location) -> None:
        super().__init__(location)
        self._files = files
        self._buffer = io.BytesIO()

    def _append(self, data: memoryview) -> None:
        self._buffer.write(data)

    def _publish(self) -> None:
        self._files.write(self._location, self._buffer.getvalue())
        self._buffer.close()

    def _drop(self) -> None:
        self._buffer.close()


def _check_name(location: Location) -> None:
    if location.path.endswith("/"):
        raise InvalidLocationError(f"location {str(location)!r} names a folder, not a file")
