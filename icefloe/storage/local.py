"""Reading files of the local disk, and writing them: whole, durable and atomically.

A file is written under a temporary name in its own folder, flushed to the disk, and then given its name by
`rename` or, for an exclusive create, by `link`. A crash leaves at most a file whose name starts with TEMPORARY.
"""

import errno
import io
import os
import stat as modes
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import BinaryIO
from uuid import uuid4

import pyarrow as pa

from icefloe.errors import LocationExistsError, LocationNotFoundError, NothingStoredError, StorageError
from icefloe.storage import protocol
from icefloe.storage.locations import Location, parse_location

TEMPORARY = ".icefloe-"
"""How names of unfinished files start."""

_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_NOT_REMOVED = frozenset({errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT, errno.ENOTDIR})
_BUFFER = 1 << 20
_SMALL_BUFFER = 4096


class LocalFiles(protocol.Files):
    """The files of the local disk."""

    def read(self, location: Location, limit: int) -> bytes:
        with _translating(location), _open(location) as file:
            size = os.fstat(file.fileno()).st_size
            protocol.check_length(location, size, limit)
            return _range(location, file, 0, size)

    def read_ranges(self, location: Location, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        with _translating(location), _open(location) as file:
            return [_range(location, file, offset, length) for offset, length in ranges]

    def read_tail(self, location: Location, length: int) -> protocol.Tail:
        protocol.check_range(location, 0, length)
        with _translating(location), _open(location) as file:
            size = os.fstat(file.fileno()).st_size
            start = max(0, size - length)
            return protocol.Tail(_range(location, file, start, size - start), size)

    def write(self, location: Location, data: bytes) -> None:
        with LocalOutput(location, size=len(data)) as output:
            output.write(data)

    def create_exclusive(self, location: Location, data: bytes) -> None:
        if os.path.lexists(location.path):
            # Only saves the work of losing; the link below decides.
            raise LocationExistsError(str(location), "already exists")
        with LocalOutput(location, exclusive=True, size=len(data)) as output:
            output.write(data)

    def supports_exclusive_create(self, location: Location) -> bool:  # noqa: ARG002 - the protocol asks per location
        """Whether the system has hard links; a file system without them refuses on use."""
        return hasattr(os, "link")

    def delete(self, locations: Iterable[Location]) -> Iterator[protocol.DeleteFailure]:
        for location in locations:
            try:
                os.unlink(location.path)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                yield protocol.DeleteFailure(str(location), _translated(location, error))

    def list_prefix(self, location: Location) -> Iterator[protocol.FileInfo]:
        """Every file beneath the folder; links to other folders are not followed."""
        folders = [location.path]
        while folders:
            folder = folders.pop()
            try:
                with os.scandir(folder) as entries:
                    for entry in entries:
                        if entry.is_dir(follow_symlinks=False):
                            folders.append(entry.path)
                        elif entry.is_file() and (info := _listed(location, entry)):
                            yield info
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                raise _translated(Location("file", "", folder, location.root), error) from error

    def list_files(self, location: Location) -> Iterator[protocol.FileInfo]:
        with (
            _translating(location),
            suppress(FileNotFoundError, NotADirectoryError),
            os.scandir(location.path) as entries,
        ):
            for entry in entries:
                if entry.is_file() and (info := _listed(location, entry)):
                    yield info

    def list_folders(self, location: Location) -> Iterator[str]:
        with (
            _translating(location),
            suppress(FileNotFoundError, NotADirectoryError),
            os.scandir(location.path) as entries,
        ):
            yield from [entry.name for entry in entries if entry.is_dir()]

    def make_folder(self, location: Location) -> None:
        with _translating(location):
            _make_folder(location.path)

    def remove_folder(self, location: Location) -> None:
        try:
            os.rmdir(location.path)
        except OSError as error:
            if error.errno not in _NOT_REMOVED:
                raise _translated(location, error) from error

    def stat(self, location: Location) -> protocol.FileInfo:
        with _translating(location):
            status = os.stat(location.path)
        if not modes.S_ISREG(status.st_mode):
            raise LocationNotFoundError(str(location), "is not a file")
        return protocol.FileInfo(str(location), status.st_size, status.st_mtime_ns // 1_000_000)

    def open_input(self, location: Location, size: int | None) -> pa.NativeFile:  # noqa: ARG002 - the system knows the size
        with _translating(location):
            _check_regular(location, os.stat(location.path))
            return pa.OSFile(location.path, "rb")

    def open_output(self, location: Location) -> protocol.OutputStream:
        return LocalOutput(location)


class LocalOutput(protocol.OutputStream):
    """A local file that is being written under a temporary name; `size` is its final size, if known."""

    def __init__(self, location: Location, *, exclusive: bool = False, size: int | None = None) -> None:
        self._exclusive = exclusive
        self._folder = os.path.dirname(location.path)
        self._temporary = os.path.join(self._folder, f"{TEMPORARY}{uuid4().hex}.tmp")
        with _translating(location):
            _make_folder(self._folder)
            # 0666 less the umask, as any file; the name is new, so no one else's file is opened.
            # What comes in one piece needs no large buffer, which takes longer to set up than a small file to write.
            buffer = _BUFFER if size is None else _SMALL_BUFFER
            self._file: BinaryIO = open(self._temporary, "xb", buffering=buffer)  # noqa: SIM115 - closed below
        super().__init__(location)

    def _append(self, data: memoryview) -> None:
        with _translating(self._location):
            self._file.write(data)

    def _publish(self) -> None:
        try:
            with _translating(self._location):
                with self._file as file:
                    file.flush()
                    os.fsync(file.fileno())
                if self._exclusive:
                    self._link()
                else:
                    os.replace(self._temporary, self._location.path)
                    self._temporary = ""
                _sync_folder(self._folder)
        finally:
            # Renamed, there is nothing to remove.
            if self._temporary:
                with suppress(OSError):
                    os.unlink(self._temporary)

    def _link(self) -> None:
        try:
            os.link(self._temporary, self._location.path)
        except FileExistsError:
            # Over NFS the answer to a link that worked may be lost and the repeated call fail: two names tell.
            if os.stat(self._temporary).st_nlink != 2:
                raise
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            problem = "cannot be created exclusively: its file system has no hard links"
            raise StorageError(str(self._location), problem) from error

    def _drop(self) -> None:
        # Closing writes out what is buffered, which may fail on a full disk; the file goes anyway.
        with suppress(OSError):
            self._file.close()
        with suppress(OSError):
            os.unlink(self._temporary)


def _open(location: Location) -> io.FileIO:
    """The file, open for reading; a folder, pipe or device is refused, and never blocks."""
    handle = os.open(location.path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0))
    try:
        _check_regular(location, os.fstat(handle))
        return open(handle, "rb", buffering=0)
    except BaseException:
        os.close(handle)
        raise


def check_regular(locations: Iterable[str]) -> None:
    """Fail if one of the locations is a local pipe, socket, device or folder, before a reader blocks on it forever.

    Locations of other stores are skipped. A missing file may exist elsewhere: its reader will report it.
    """
    for location in locations:
        if not location.startswith(("/", "file:")):
            continue
        try:
            status = os.stat(_local_path(location))
        except OSError:
            continue
        except ValueError as error:
            raise StorageError(location, f"cannot be the path of a file: {error}") from None
        if not modes.S_ISREG(status.st_mode):
            _check_regular(parse_location(location), status)


def _local_path(location: str) -> str:
    # There may be many locations, and most are written in one of these two ways.
    if location.startswith("file:///"):
        return location[7:]
    return location if location[:1] == "/" != location[1:2] else parse_location(location).path


def _check_regular(location: Location, status: os.stat_result) -> None:
    if modes.S_ISDIR(status.st_mode):
        raise StorageError(str(location), "is a folder, not a file")
    if not modes.S_ISREG(status.st_mode):
        raise StorageError(str(location), "is not a file but a pipe, socket or device, which are not read")


def _range(location: Location, file: io.FileIO, offset: int, length: int) -> bytes:
    protocol.check_range(location, offset, length)
    # The length is also allocated in memory, so the file must be checked first.
    there = max(0, os.fstat(file.fileno()).st_size - offset)
    if length > there:
        raise protocol.short_read(location, offset, length, there)
    data = os.pread(file.fileno(), length, offset) if length else b""
    while len(data) < length:
        more = os.pread(file.fileno(), length - len(data), offset + len(data))
        if not more:
            raise protocol.short_read(location, offset, length, len(data))
        data += more
    return data


def _listed(location: Location, entry: "os.DirEntry[str]") -> protocol.FileInfo | None:
    try:
        status = entry.stat()
    except FileNotFoundError:
        return None
    return protocol.FileInfo(f"{location.root}{entry.path}", status.st_size, status.st_mtime_ns // 1_000_000)


def _make_folder(folder: str) -> None:
    missing = []
    while not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    for path in reversed(missing):
        with suppress(FileExistsError):
            os.mkdir(path)
        _sync_folder(os.path.dirname(path))


def _sync_folder(folder: str) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _translating(location: Location) -> Iterator[None]:
    try:
        yield
    except StorageError:
        raise
    except OSError as error:
        raise _translated(location, error) from error


def _translated(location: Location, error: OSError) -> StorageError:
    match error:
        case FileNotFoundError():
            return LocationNotFoundError(str(location), "does not exist")
        case FileExistsError():
            return LocationExistsError(str(location), "already exists")
        case NotADirectoryError():
            return LocationNotFoundError(str(location), "does not exist: a part of its path is a file")
        case IsADirectoryError():
            return StorageError(str(location), "is a folder, not a file")
        case _:
            # A file gets its name last, and in one step: a disk that is full refused that step, or one before it.
            error_class = NothingStoredError if error.errno in _FULL else StorageError
            return error_class(str(location), error.strerror or str(error))
