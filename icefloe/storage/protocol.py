"""The one small protocol that every store implements, and its values."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Protocol, Self

import pyarrow as pa

from icefloe.errors import StorageError
from icefloe.storage.locations import Location


@dataclass(frozen=True, slots=True)
class FileInfo:
    """A stored file: its location, size and modification time."""

    location: str
    size: int
    modified_ms: int
    """Milliseconds since 1970 in UTC."""


@dataclass(frozen=True, slots=True)
class Tail:
    """The last bytes of a file, and the size of the whole."""

    data: bytes
    size: int


@dataclass(frozen=True, slots=True)
class DeleteFailure:
    """A file that could not be deleted, and why."""

    location: str
    error: StorageError


class OutputStream(ABC):
    """A file that is being written: nothing is at its location before `close`, and nothing ever after `abort`.

    Leaving a `with` block by an exception aborts, and so does dropping the stream without closing it.
    """

    def __init__(self, location: Location) -> None:
        self._location = location
        self._size = 0
        self._closed = False
        self._failed = False

    @abstractmethod
    def _append(self, data: memoryview) -> None:
        """Take more bytes."""

    @abstractmethod
    def _publish(self) -> None:
        """Make the file appear, whole and durable; called at most once."""

    @abstractmethod
    def _drop(self) -> None:
        """Forget the bytes; called at most once, and never after `_publish`."""

    @property
    def closed(self) -> bool:
        """Whether the file was published or dropped."""
        return self._closed

    def write(self, data: bytes | bytearray | memoryview | pa.Buffer, /) -> int:
        """Append the bytes of any buffer; a failure aborts."""
        if self._closed:
            raise StorageError(str(self._location), "is closed for writing")
        try:
            view = memoryview(data)
            # Arrow buffers are of signed bytes, which not every writer takes.
            view = view if view.format == "B" and view.ndim == 1 else view.cast("B")
            self._append(view)
        except BaseException:
            self._failed = True
            self.abort()
            raise
        self._size += view.nbytes
        return view.nbytes

    def tell(self) -> int:
        """How many bytes were written."""
        return self._size

    def flush(self) -> None:  # noqa: B027 - nothing to override
        """Nothing: bytes count when the file is closed."""

    def close(self) -> None:
        """Publish the file, whole and durable."""
        if self._failed:
            raise StorageError(str(self._location), "was dropped because a write to it failed")
        if not self._closed:
            self._closed = True
            self._publish()

    def abort(self) -> None:
        """Drop what was written."""
        if not self._closed:
            self._closed = True
            self._drop()

    def readable(self) -> bool:
        """False."""
        return False

    def writable(self) -> bool:
        """True."""
        return True

    def seekable(self) -> bool:
        """False: bytes are appended."""
        return False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, error_class: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error_class is None:
            self.close()
        else:
            self.abort()

    def __del__(self) -> None:
        # Not set when the constructor failed.
        if not getattr(self, "_closed", True):
            self.abort()


class Input(Protocol):
    """A file that is being read: one of pyarrow's own, or a `RangedInput`."""

    def read(self, length: int = -1, /) -> bytes:
        """The next bytes; all remaining ones if no length is given."""

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """Move to a position from the start (0), from here (1) or from the end (2)."""

    def tell(self) -> int:
        """The position of the next read."""

    def size(self) -> int:
        """The size of the file."""

    def close(self) -> None:
        """Release what the reader holds."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...


class Files(Protocol):
    """The files of one store: one bucket, container or name node, or the local disk."""

    def read(self, location: Location, limit: int) -> bytes:
        """The whole file; an error, before it is read, if it is longer than the limit."""

    def read_range(self, location: Location, offset: int, length: int) -> bytes:
        """Exactly these bytes; an error if the file has fewer."""
        return self.read_ranges(location, [(offset, length)])[0]

    def read_ranges(self, location: Location, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Several (offset, length) ranges of one file, in the requested order."""

    def read_tail(self, location: Location, length: int) -> Tail:
        """The last bytes, or the whole file if it is shorter, with the file's size."""

    def write(self, location: Location, data: bytes) -> None:
        """Store the bytes atomically, replacing an existing file."""

    def create_exclusive(self, location: Location, data: bytes) -> None:
        """Store the bytes atomically if no file exists, else LocationExistsError."""

    def supports_exclusive_create(self, location: Location) -> bool:
        """Whether `create_exclusive` is reliable here."""

    def delete(self, locations: Iterable[Location]) -> Iterator[DeleteFailure]:
        """Delete files; a missing file is not an error."""

    def list_prefix(self, location: Location) -> Iterator[FileInfo]:
        """Every file beneath the location, taken as a folder, in no particular order."""

    def list_files(self, location: Location) -> Iterator[FileInfo]:
        """Every file directly in the location, taken as a folder, in no particular order."""

    def list_folders(self, location: Location) -> Iterator[str]:
        """The names of the folders directly beneath the location, in no particular order."""

    def make_folder(self, location: Location) -> None:
        """Create an empty folder; an existing one is not an error. Without folders, a marker file is written into it."""
        self.write(_marked(location), b"")

    def remove_folder(self, location: Location) -> None:
        """Remove an empty folder; one that is not empty or does not exist is left alone."""
        for failure in self.delete([_marked(location)]):
            raise failure.error

    def stat(self, location: Location) -> FileInfo:
        """Size and time of one file, or LocationNotFoundError."""

    def open_input(self, location: Location, size: int | None) -> Input:
        """A seekable reader that pyarrow accepts; giving the size saves a request on some stores."""

    def open_output(self, location: Location) -> OutputStream:
        """A writer that pyarrow accepts."""


FOLDER_MARK = ".icefloe-folder"
"""The file that keeps an empty folder alive where folders are only parts of names."""


def _marked(location: Location) -> Location:
    """The file that marks a folder."""
    return replace(location, path=f"{location.path.rstrip('/')}/{FOLDER_MARK}")


def check_range(location: Location, offset: int, length: int) -> None:
    """Refuse a range that no file can have."""
    if offset < 0 or length < 0:
        raise StorageError(str(location), f"has no {length} bytes from {offset}; both must be 0 or more")


def check_length(location: Location, length: int, limit: int) -> None:
    """Refuse to read a whole file that is longer than the limit."""
    if length > limit:
        raise StorageError(
            str(location),
            f"is not read: it has {length} bytes, and files that are read whole may have {limit}"
            " (read.limits.file-bytes)",
        )


def check_parts(location: Location, ranges: Sequence[tuple[int, int]], parts: Sequence[bytes]) -> None:
    """Fail if the file ends before one of the ranges, so that what was read of it is too short."""
    for (offset, length), data in zip(ranges, parts, strict=True):
        if len(data) < length:
            raise short_read(location, offset, length, len(data))


def short_read(location: Location, offset: int, length: int, got: int) -> StorageError:
    """The error for a file that ends before the range does."""
    return StorageError(str(location), f"ends early: {length} bytes from {offset} were requested, {got} are there")
