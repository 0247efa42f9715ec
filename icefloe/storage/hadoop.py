"""Reading and writing files of HDFS, through pyarrow.

pyarrow's HDFS can neither create exclusively nor rename over a file, so exclusive creates are refused here: such a
store cannot be the commit point of a table.
"""

import os
import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TypeVar
from uuid import uuid4

import pyarrow as pa
from pyarrow import fs

from icefloe.errors import InvalidPropertyError, LocationNotFoundError, NotInstalledError, StorageError
from icefloe.storage import protocol
from icefloe.storage.locations import Location
from icefloe.storage.properties import whole_number
from icefloe.storage.protocol import DeleteFailure, FileInfo, Files, OutputStream, Tail

T = TypeVar("T")


def open_name_node(authority: str, properties: Mapping[str, str]) -> "ArrowFiles":
    """The files of the name node in the location, or of `hdfs.host` if the location names none."""
    host, _, port = authority.partition(":")
    if port and not port.isdigit():
        raise InvalidPropertyError(f"name node {authority!r}; host or host:port is expected")
    host = host or properties.get("hdfs.host") or "default"
    number = int(port) if port else whole_number(properties, "hdfs.port", 0)
    try:
        system = fs.HadoopFileSystem(
            host,
            number,
            user=properties.get("hdfs.user"),
            kerb_ticket=properties.get("hdfs.kerberos_ticket"),
        )
    except OSError as error:
        if "libhdfs" in str(error) or "libjvm" in str(error):
            raise NotInstalledError(
                "hdfs: locations need Hadoop's native library and Java: set HADOOP_HOME, JAVA_HOME, "
                "ARROW_LIBHDFS_DIR and CLASSPATH (`hadoop classpath --glob`)"
            ) from error
        raise StorageError(f"hdfs://{authority}", f"the name node cannot be reached: {error}") from error
    return ArrowFiles(system)


class ArrowFiles(Files):
    """The files of a pyarrow file system."""

    def __init__(self, system: fs.FileSystem) -> None:
        self._system = system

    def read(self, location: Location, limit: int) -> bytes:
        def action() -> bytes:
            with self._system.open_input_file(location.path) as file:
                protocol.check_length(location, int(file.size()), limit)
                return bytes(file.read())

        return _attempt(location, action)

    def read_ranges(self, location: Location, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        for offset, length in ranges:
            protocol.check_range(location, offset, length)

        def action() -> list[bytes]:
            with self._system.open_input_file(location.path) as file:
                # Memory is allocated for the requested length, so it must not exceed the file's.
                size = int(file.size())
                return [bytes(file.read_at(max(0, min(length, size - at)), min(at, size))) for at, length in ranges]

        parts = _attempt(location, action)
        protocol.check_parts(location, ranges, parts)
        return parts

    def read_tail(self, location: Location, length: int) -> Tail:
        protocol.check_range(location, 0, length)

        def action() -> Tail:
            with self._system.open_input_file(location.path) as file:
                size = int(file.size())
                start = max(0, size - length)
                return Tail(bytes(file.read_at(size - start, start)), size)

        return _attempt(location, action)

    def write(self, location: Location, data: bytes) -> None:
        with self.open_output(location) as output:
            output.write(data)

    def create_exclusive(self, location: Location, data: bytes) -> None:  # noqa: ARG002 - refused whatever the bytes
        """Refused: nothing here prevents two writers from both succeeding."""
        raise StorageError(
            str(location), "cannot be created exclusively: pyarrow's HDFS has no such operation; use a catalog"
        )

    def supports_exclusive_create(self, location: Location) -> bool:  # noqa: ARG002 - the protocol asks per location
        return False

    def delete(self, locations: Iterable[Location]) -> Iterator[DeleteFailure]:
        for location in locations:
            path = location.path
            try:
                _attempt(location, lambda path=path: self._system.delete_file(path))  # type: ignore[misc]  # lambda default
            except StorageError as error:
                if self._exists(path):
                    yield DeleteFailure(str(location), error)

    def _exists(self, path: str) -> bool:
        try:
            return bool(self._system.get_file_info(path).type != fs.FileType.NotFound)
        except OSError:
            return True

    def list_prefix(self, location: Location) -> Iterator[FileInfo]:
        folders = [location.path] if self._look(location).type == fs.FileType.Directory else []
        while folders:
            folder = Location(location.scheme, location.authority, folders.pop(), location.root)
            selector = fs.FileSelector(folder.path, allow_not_found=True)
            for info in _attempt(folder, lambda selector=selector: self._system.get_file_info(selector)):  # type: ignore[misc]  # lambda default
                if info.type == fs.FileType.Directory:
                    folders.append(info.path)
                elif info.type == fs.FileType.File:
                    yield _info(f"{location.root}{info.path}", info)

    def list_files(self, location: Location) -> Iterator[FileInfo]:
        inside = (info for info in self._inside(location) if info.type == fs.FileType.File)
        return (_info(f"{location.root}{info.path}", info) for info in inside)

    def list_folders(self, location: Location) -> Iterator[str]:
        return (info.base_name for info in self._inside(location) if info.type == fs.FileType.Directory)

    def _inside(self, location: Location) -> list[fs.FileInfo]:
        if self._look(location).type != fs.FileType.Directory:
            return []
        selector = fs.FileSelector(location.path, allow_not_found=True)
        return list(_attempt(location, lambda: self._system.get_file_info(selector)))

    def make_folder(self, location: Location) -> None:
        _attempt(location, lambda: self._system.create_dir(location.path, recursive=True))

    def remove_folder(self, location: Location) -> None:
        # Between the look and the removal a file could appear, and be lost; pyarrow has no removal of empty ones only.
        if self._look(location).type == fs.FileType.Directory and not self._inside(location):
            _attempt(location, lambda: self._system.delete_dir(location.path))

    def stat(self, location: Location) -> FileInfo:
        info = self._look(location)
        if info.type != fs.FileType.File:
            raise LocationNotFoundError(str(location), "does not exist")
        return _info(str(location), info)

    def open_input(self, location: Location, size: int | None) -> pa.NativeFile:  # noqa: ARG002 - the name node knows the size
        return _attempt(location, lambda: self._system.open_input_file(location.path))

    def open_output(self, location: Location) -> OutputStream:
        return _ArrowOutput(self._system, location)

    def _look(self, location: Location) -> fs.FileInfo:
        return _attempt(location, lambda: self._system.get_file_info(location.path))


class _ArrowOutput(OutputStream):
    def __init__(self, system: fs.FileSystem, location: Location) -> None:
        self._system = system
        folder = posixpath.dirname(location.path)
        self._temporary = posixpath.join(folder, f".icefloe-{uuid4().hex}.tmp")
        _attempt(location, lambda: system.create_dir(folder, recursive=True))
        self._file = _attempt(location, lambda: system.open_output_stream(self._temporary))
        super().__init__(location)

    def _append(self, data: memoryview) -> None:
        _attempt(self._location, lambda: self._file.write(data))

    def _publish(self) -> None:
        path = self._location.path
        try:
            _attempt(self._location, self._file.close)
            if self._system.get_file_info(path).type == fs.FileType.File:
                # HDFS does not rename over a file.
                _attempt(self._location, lambda: self._system.delete_file(path))
            _attempt(self._location, lambda: self._system.move(self._temporary, path))
        except StorageError:
            self._drop()
            raise

    def _drop(self) -> None:
        with suppress(OSError):
            self._file.close()
        with suppress(OSError):
            self._system.delete_file(self._temporary)


def _info(location: str, info: fs.FileInfo) -> FileInfo:
    return FileInfo(location, info.size, info.mtime_ns // 1_000_000)


def _attempt(location: Location, action: Callable[[], T]) -> T:
    try:
        return action()
    except FileNotFoundError as error:
        raise LocationNotFoundError(str(location), "does not exist") from error
    except OSError as error:
        problem = os.strerror(error.errno) if error.errno else str(error)
        raise StorageError(str(location), problem) from error
