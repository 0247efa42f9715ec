"""`memory:` locations: files of this process, shared by everyone in it."""

import io
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from icefloe.errors import InvalidLocationError, LocationExistsError, LocationNotFoundError
from icefloe.storage.locations import Location
from icefloe.storage.protocol import (
    DeleteFailure,
    FileInfo,
    OutputStream,
    Tail,
    check_length,
    check_range,
    marked,
    short_read,
)


@dataclass(frozen=True, slots=True)
class _Stored:
    data: bytes
    modified_ms: int


_LOCK = threading.Lock()
# By authority and path, for the process, as a disk is: a copy or a pickle of a Storage sees the same files.
_FILES: dict[str, dict[str, _Stored]] = defaultdict(dict)


class MemoryFiles:
    """The files in memory under one authority."""

    def read(self, location: Location, limit: int) -> bytes:
        """The whole file."""
        data = self._stored(location).data
        check_length(location, len(data), limit)
        return data

    def read_range(self, location: Location, offset: int, length: int) -> bytes:
        """Exactly these bytes; an error if the file has fewer."""
        check_range(location, offset, length)
        data = self._stored(location).data[offset : offset + length]
        if len(data) < length:
            raise short_read(location, offset, length, len(data))
        return data

    def read_ranges(self, location: Location, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Several (offset, length) ranges of one file, in the requested order."""
        self._stored(location)
        return [self.read_range(location, offset, length) for offset, length in ranges]

    def read_tail(self, location: Location, length: int) -> Tail:
        """The last bytes, or the whole file if it is shorter, with the file's size."""
        check_range(location, 0, length)
        data = self._stored(location).data
        return Tail(data[max(0, len(data) - length) :], len(data))

    def write(self, location: Location, data: bytes) -> None:
        """Store the bytes atomically, replacing an existing file."""
        _check_name(location)
        with _LOCK:
            _FILES[location.authority][location.path] = _Stored(bytes(data), time.time_ns() // 1_000_000)

    def create_exclusive(self, location: Location, data: bytes) -> None:
        """Store the bytes atomically if no file exists, else LocationExistsError."""
        _check_name(location)
        with _LOCK:
            files = _FILES[location.authority]
            if location.path in files:
                raise LocationExistsError(str(location), "already exists")
            files[location.path] = _Stored(bytes(data), time.time_ns() // 1_000_000)

    def supports_exclusive_create(self, location: Location) -> bool:  # noqa: ARG002 - the protocol asks per location
        """True: a lock guards the files."""
        return True

    def delete(self, locations: Iterable[Location]) -> Iterator[DeleteFailure]:
        """Delete files; a missing file is not an error."""
        for location in locations:
            with _LOCK:
                _FILES[location.authority].pop(location.path, None)
        yield from ()

    def list_prefix(self, location: Location) -> Iterator[FileInfo]:
        """Every file beneath the location, taken as a folder."""
        folder = location.path if location.path.endswith("/") else f"{location.path}/"
        with _LOCK:
            files = [(path, file) for path, file in _FILES[location.authority].items() if path.startswith(folder)]
        for path, file in files:
            yield FileInfo(f"{location.root}{path}", len(file.data), file.modified_ms)

    def list_folders(self, location: Location) -> Iterator[str]:
        """The names of the folders directly beneath the location."""
        start = len(location.path.rstrip("/")) + 1
        below = (info.location.removeprefix(location.root)[start:] for info in self.list_prefix(location))
        yield from {rest.partition("/")[0] for rest in below if "/" in rest}

    def make_folder(self, location: Location) -> None:
        """Create a folder by writing a marker file into it."""
        self.write(marked(location), b"")

    def remove_folder(self, location: Location) -> None:
        """Remove an empty folder."""
        list(self.delete([marked(location)]))

    def stat(self, location: Location) -> FileInfo:
        """Size and time of one file, or LocationNotFoundError."""
        file = self._stored(location)
        return FileInfo(str(location), len(file.data), file.modified_ms)

    def open_input(self, location: Location, size: int | None) -> Any:  # noqa: ARG002 - nothing to save here
        """A reader over the stored bytes themselves."""
        return pa.BufferReader(self._stored(location).data)

    def open_output(self, location: Location) -> OutputStream:
        """A writer whose file appears when it is closed."""
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
