"""Decides which store answers for a location, and with which properties: the one door to files."""

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from icefloe.errors import LocationNotFoundError
from icefloe.metadata.limits import Limits
from icefloe.storage import azure, gcs, hadoop, s3
from icefloe.storage.local import LocalFiles
from icefloe.storage.locations import Location, parse_location
from icefloe.storage.memory import MemoryFiles
from icefloe.storage.objects import ObjectFiles
from icefloe.storage.properties import checked_properties, shown_properties
from icefloe.storage.protocol import DeleteFailure, FileInfo, Files, OutputStream, Tail


class Storage:
    """Files anywhere, by location, with the settings and credentials of these properties alone.

    Threads may share it. A pickle carries the properties, credentials among them, and no connections.
    """

    def __init__(self, properties: Mapping[str, object] | None = None) -> None:
        self._properties = checked_properties(properties)
        self.limits = Limits.of(self._properties)
        """How much may be read of what others wrote."""
        self._files: dict[tuple[str, str], Files] = {}
        self._lock = threading.Lock()

    @property
    def properties(self) -> Mapping[str, str]:
        """The properties it was made with, read only."""
        return MappingProxyType(self._properties)

    def read(self, location: str) -> bytes:
        """The whole file, in one request; one that is longer than `read.limits.file-bytes` is refused."""
        files, place = self._place(location)
        return files.read(place, self.limits.file_bytes)

    def read_range(self, location: str, offset: int, length: int) -> bytes:
        """Exactly these bytes, in one request; an error when the file has fewer."""
        files, place = self._place(location)
        return files.read_range(place, offset, length)

    def read_ranges(self, location: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Several (offset, length) ranges of one file, side by side, in the order asked for."""
        files, place = self._place(location)
        return files.read_ranges(place, ranges)

    def read_tail(self, location: str, length: int) -> Tail:
        """The last bytes, all of them when the file is shorter, with the file's size, in one request."""
        files, place = self._place(location)
        return files.read_tail(place, length)

    def write(self, location: str, data: bytes) -> None:
        """Store the bytes in one step, in place of what was there."""
        files, place = self._place(location)
        files.write(place, data)

    def create_exclusive(self, location: str, data: bytes) -> None:
        """Store the bytes in one step if nothing is there, else LocationExistsError.

        Of all callers for one location exactly one succeeds. LocationExistsError and NothingStoredError say for certain that
        this call stored nothing; after any other error that is not known, and the location has to be read to find out.
        """
        files, place = self._place(location)
        files.create_exclusive(place, data)

    def supports_exclusive_create(self, location: str) -> bool:
        """Whether `create_exclusive` can keep its word there; a store that is not known is tried out, once."""
        files, place = self._place(location)
        return files.supports_exclusive_create(place)

    def delete(self, locations: Iterable[str]) -> list[DeleteFailure]:
        """Delete files and report those that could not be; one that is not there is no failure."""
        groups: dict[int, tuple[Files, list[Location]]] = {}
        for location in locations:
            files, place = self._place(location)
            groups.setdefault(id(files), (files, []))[1].append(place)
        return [failure for files, places in groups.values() for failure in files.delete(places)]

    def list_prefix(self, location: str) -> Iterator[FileInfo]:
        """Every file beneath the location, which counts as a folder, as a stream in no order."""
        files, place = self._place(location)
        return files.list_prefix(place)

    def list_folders(self, location: str) -> Iterator[str]:
        """The names of the folders directly beneath the location, in no order; none if it is not there."""
        files, place = self._place(location)
        return files.list_folders(place)

    def make_folder(self, location: str) -> None:
        """Let there be a folder, though nothing is in it; one that is there is no failure.

        Where folders are only parts of names, a file named FOLDER_MARK keeps it alive.
        """
        files, place = self._place(location)
        files.make_folder(place)

    def remove_folder(self, location: str) -> None:
        """Let an empty folder be no more; one that is not empty, or not there, stays as it is."""
        files, place = self._place(location)
        files.remove_folder(place)

    def stat(self, location: str) -> FileInfo:
        """Size and time of one file, or LocationNotFoundError."""
        files, place = self._place(location)
        return files.stat(place)

    def exists(self, location: str) -> bool:
        """Whether a file is there; a folder is none."""
        try:
            self.stat(location)
        except LocationNotFoundError:
            return False
        return True

    def open_input(self, location: str, *, size: int | None = None) -> Any:
        """A seekable reader for pyarrow; telling the size saves a request on some stores."""
        files, place = self._place(location)
        return files.open_input(place, size)

    def open_output(self, location: str) -> OutputStream:
        """A writer for pyarrow: the file appears, whole, when it is closed, and never if it is aborted."""
        files, place = self._place(location)
        return files.open_output(place)

    def _place(self, location: str) -> tuple[Files, Location]:
        place = parse_location(location)
        with self._lock:
            files = self._files.get((place.scheme, place.authority))
            if files is None:
                files = self._files[place.scheme, place.authority] = self._open(place)
        return files, place

    def _open(self, place: Location) -> Files:
        match place.scheme:
            case "file":
                return LocalFiles()
            case "memory":
                return MemoryFiles()
            case "s3":
                return ObjectFiles(s3.open_bucket(place.authority, self._properties))
            case "gs":
                return ObjectFiles(gcs.open_bucket(place.authority, self._properties))
            case "abfs":
                return ObjectFiles(azure.open_container(place.authority, self._properties))
            case "hdfs":
                return hadoop.open_name_node(place.authority, self._properties)
            case _:
                raise AssertionError(f"scheme {place.scheme!r} is parsed but has no store")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Storage) and self._properties == other._properties

    def __hash__(self) -> int:
        return hash(frozenset(self._properties.items()))

    def __reduce__(self) -> tuple[type["Storage"], tuple[dict[str, str]]]:
        return Storage, (self._properties,)

    def __repr__(self) -> str:
        return f"Storage({shown_properties(self._properties)})"
