"""Which store serves a location, and with which properties: the only way to files."""

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from icefloe import errors, metadata as md
from icefloe.encryption import Keyring
from icefloe.storage.local import LocalFiles
from icefloe.storage.locations import Location, parse_location
from icefloe.storage.memory import MemoryFiles
from icefloe.storage.properties import checked_properties, shown_properties
from icefloe.storage.protocol import DeleteFailure, FileInfo, Files, Input, OutputStream, Tail
from icefloe.storage.signing import Sign, signs_remotely
from icefloe.storage.vended import Grant, StorageCredential, VendedCredentials, with_credential


class Storage:
    """Files anywhere, by location, with the settings and credentials of these properties alone.

    Threads may share it. A pickle carries the properties, credentials among them, and no connections. Where a catalog vends
    `credentials` for some locations, those are used there, and refreshed before they expire. With `sign`, which asks a
    catalog to sign a request, files of S3 are reached without keys where `s3.remote-signing-enabled` says so. The `keyring`
    has the keys of encrypted tables; it stays in this process, where tables are planned and committed.
    """

    def __init__(
        self,
        properties: Mapping[str, object] | None = None,
        credentials: VendedCredentials | None = None,
        sign: Sign | None = None,
        keyring: Keyring | None = None,
    ) -> None:
        self._properties = checked_properties(properties)
        self._credentials = credentials
        self._sign = sign
        self.keyring = keyring
        """What opens the manifest lists of encrypted tables, if the catalog names a KMS."""
        self.limits = md.Limits.of(self._properties)
        """How much may be read of what others wrote."""
        self._files: dict[tuple[str, str, str | None], Files] = {}
        self._lock = threading.Lock()

    @property
    def properties(self) -> Mapping[str, str]:
        """The properties of this storage, read only."""
        return MappingProxyType(self._properties)

    def vended(self, location: str) -> StorageCredential | None:
        """The credential that a catalog vended for a location, good for now; None if it vended none."""
        return None if self._credentials is None else self._credentials.find(parse_location(location))

    def is_divided(self, location: str) -> bool:
        """Whether a catalog vended different credentials for parts of the bucket of a location."""
        return self._credentials is not None and self._credentials.divide(parse_location(location))

    def is_signed(self, location: str) -> bool:
        """Whether a catalog signs the requests for a location."""
        return self._sign is not None and parse_location(location).scheme == "s3" and signs_remotely(self._properties)

    def read(self, location: str) -> bytes:
        """The whole file, in one request; one that is longer than `read.limits.file-bytes` is refused."""
        files, parsed = self._resolve(location)
        return files.read(parsed, self.limits.file_bytes)

    def read_range(self, location: str, offset: int, length: int) -> bytes:
        """Exactly these bytes, in one request; an error if the file has fewer."""
        files, parsed = self._resolve(location)
        return files.read_range(parsed, offset, length)

    def read_ranges(self, location: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Several (offset, length) ranges of one file, in parallel, in the requested order."""
        files, parsed = self._resolve(location)
        return files.read_ranges(parsed, ranges)

    def read_tail(self, location: str, length: int) -> Tail:
        """The last bytes, or the whole file if it is shorter, with the file's size, in one request."""
        files, parsed = self._resolve(location)
        return files.read_tail(parsed, length)

    def write(self, location: str, data: bytes) -> None:
        """Store the bytes atomically, replacing an existing file."""
        files, parsed = self._resolve(location)
        files.write(parsed, data)

    def create_exclusive(self, location: str, data: bytes) -> None:
        """Store the bytes atomically if no file exists, else LocationExistsError.

        Of all callers for one location exactly one succeeds. LocationExistsError and NothingStoredError guarantee that
        this call stored nothing; after any other error that is unknown, and the location must be read to find out.
        """
        files, parsed = self._resolve(location)
        files.create_exclusive(parsed, data)

    def supports_exclusive_create(self, location: str) -> bool:
        """Whether `create_exclusive` is reliable there; an unknown store is probed once."""
        files, parsed = self._resolve(location)
        return files.supports_exclusive_create(parsed)

    def delete(self, locations: Iterable[str]) -> list[DeleteFailure]:
        """Delete files and report those that could not be; a missing file is not an error."""
        groups: dict[int, tuple[Files, list[Location]]] = {}
        for location in locations:
            files, parsed = self._resolve(location)
            groups.setdefault(id(files), (files, []))[1].append(parsed)
        return [failure for files, group in groups.values() for failure in files.delete(group)]

    def list_prefix(self, location: str) -> Iterator[FileInfo]:
        """Every file beneath the location, taken as a folder, as a stream in no particular order."""
        files, parsed = self._resolve(location)
        return files.list_prefix(parsed)

    def list_files(self, location: str) -> Iterator[FileInfo]:
        """Every file directly in the location, taken as a folder, in no particular order."""
        files, parsed = self._resolve(location)
        return files.list_files(parsed)

    def list_folders(self, location: str) -> Iterator[str]:
        """The names of the folders directly beneath the location, in no particular order; none if it is not there."""
        files, parsed = self._resolve(location)
        return files.list_folders(parsed)

    def make_folder(self, location: str) -> None:
        """Create an empty folder; an existing one is not an error.

        Where folders are only parts of names, a file named FOLDER_MARK keeps it alive.
        """
        files, parsed = self._resolve(location)
        files.make_folder(parsed)

    def remove_folder(self, location: str) -> None:
        """Remove an empty folder; one that is not empty or does not exist is left alone."""
        files, parsed = self._resolve(location)
        files.remove_folder(parsed)

    def stat(self, location: str) -> FileInfo:
        """Size and time of one file, or LocationNotFoundError."""
        files, parsed = self._resolve(location)
        return files.stat(parsed)

    def exists(self, location: str) -> bool:
        """Whether a file exists; a folder is not a file."""
        try:
            self.stat(location)
        except errors.LocationNotFoundError:
            return False
        return True

    def open_input(self, location: str, *, size: int | None = None) -> Input:
        """A seekable reader for pyarrow; giving the size saves a request on some stores."""
        files, parsed = self._resolve(location)
        return files.open_input(parsed, size)

    def open_output(self, location: str) -> OutputStream:
        """A writer for pyarrow: the file appears, whole, when it is closed, and never if it is aborted."""
        files, parsed = self._resolve(location)
        return files.open_output(parsed)

    def _resolve(self, location: str) -> tuple[Files, Location]:
        parsed = parse_location(location)
        credential = None if self._credentials is None else self._credentials.find(parsed)
        place = (parsed.scheme, parsed.authority, None if credential is None else credential.prefix)
        with self._lock:
            files = self._files.get(place)
            if files is None:
                files = self._files[place] = self._open(parsed, credential)
        return files, parsed

    def _open(self, location: Location, credential: StorageCredential | None) -> Files:
        properties, grant = self._properties, None
        if self._credentials is not None and credential is not None:
            properties = with_credential(properties, credential.config)
            grant = Grant(self._properties, self._credentials, location)
        match location.scheme:
            case "file":
                return LocalFiles()
            case "memory":
                return MemoryFiles()
            case _:
                from icefloe.storage.remote import open_remote

                return open_remote(location, properties, grant, self._sign)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Storage) and self._state() == other._state()

    def __hash__(self) -> int:
        return hash((frozenset(self._properties.items()), self._credentials))

    def __reduce__(self) -> tuple[type["Storage"], tuple[object, ...]]:
        return Storage, self._state()

    def _state(self) -> tuple[object, ...]:
        return self._properties, self._credentials, self._sign

    def __repr__(self) -> str:
        vended = "" if self._credentials is None else f", {self._credentials}"
        return f"Storage({shown_properties(self._properties)}{vended})"
