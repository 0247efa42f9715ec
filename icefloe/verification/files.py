"""Whether the files that manifests and metadata name exist with their recorded length, and hold what is said of them."""

import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

import numpy as np

from icefloe import errors, manifests as mf, metadata as md
from icefloe.formats.deletion_vector_codec import read_vector
from icefloe.formats.position_deletes import read_position_deletes
from icefloe.formats.puffin.files import read_footer
from icefloe.storage import Storage, identity
from icefloe.verification.codes import Code, Level
from icefloe.verification.contents import Contents
from icefloe.verification.digest import Digest, FileKind, HashTable
from icefloe.verification.subject import Subject


@dataclass(frozen=True, slots=True)
class StoredFile:
    """One file in storage, and the entries about it: several if it holds deletion vectors."""

    entries: tuple[mf.DataFile, ...]
    snapshot_id: int
    looks_inside: bool


def stored_files(
    entries: Iterable[mf.DataFile], looks_inside: Sequence[bool], snapshot_id: int
) -> Iterator[StoredFile]:
    """The entries of a manifest by the file that they are in."""
    together: dict[tuple[str, int], tuple[list[mf.DataFile], bool]] = {}
    for file, looks in zip(entries, looks_inside, strict=True):
        if file.is_deletion_vector:
            together.setdefault((file.file_path, file.file_size_in_bytes), ([], looks))[0].append(file)
        else:
            yield StoredFile((file,), snapshot_id, looks)
    for vectors, looks in together.values():
        yield StoredFile(tuple(vectors), snapshot_id, looks)


class FileCheck:
    """Asks storage for files, and looks into them; threads share it."""

    def __init__(self, subject: Subject, files: Digest) -> None:
        self._subject = subject
        data = files.of(FileKind.DATA)
        self._rows = HashTable(data.path, data.rows)
        self._contents = Contents(subject)
        self._lengths = listed_lengths(subject.storage, (), 0)
        self._lock = threading.Lock()
        self.done: Counter[str] = Counter()

    def expect(self, files: int) -> None:
        """So many files will be asked for: if they are many, folders are listed first."""
        if files >= WORTH_IT:
            self._lengths = listed_lengths(self._subject.storage, self._subject.folders, files)

    def check(self, stored: StoredFile) -> None:
        """Check one file."""
        first = stored.entries[0]
        is_told = not first.is_deletion_vector or first.file_size_in_bytes != mf.UNKNOWN_SIZE
        length = first.file_size_in_bytes if is_told else None
        if not self.check_stored(first.file_path, length, stored.snapshot_id):
            return
        if not (self._subject.level.includes(Level.FOOTERS) and stored.looks_inside):
            return
        try:
            if first.is_deletion_vector:
                self._check_vectors(stored)
            else:
                self._check_rows(first, stored.snapshot_id)
        except errors.IcefloeError as error:
            self._subject.findings.add(Code.FILE_UNREADABLE, _problem(error), first.file_path, stored.snapshot_id)
        self._count("footers", 1)

    def check_stored(
        self, location: str, length: int | None, snapshot_id: int | None = None, missing: Code = Code.FILE_MISSING
    ) -> bool:
        """Whether a file exists with that length."""
        self._count("files", 1)
        listed = self._lengths.get(location)
        if listed is not None and length in (None, listed):
            return True
        findings = self._subject.findings
        try:
            size = self._subject.storage.stat(location).size
        except errors.LocationNotFoundError:
            findings.add(missing, "nothing is stored there", location, snapshot_id)
            return False
        except errors.IcefloeError as error:
            findings.add(Code.FILE_UNREADABLE, f"it cannot be looked at: {error}", location, snapshot_id)
            return False
        if length is not None and size != length:
            findings.add(Code.FILE_LENGTH, f"it has {size} bytes, not {length} as recorded", location, snapshot_id)
            return False
        return True

    def check_statistics(self, file: md.StatisticsFile, location: str) -> None:
        """Whether a statistics file has its footer; one whose key others keep in their own way is not looked into."""
        subject = self._subject
        try:
            read_range, length = mf.statistics_reader(subject.metadata, file, subject.storage)
            if read_range is not None:
                read_footer(read_range, length, location, footer_size=file.file_footer_size_in_bytes)
        except errors.IcefloeError as error:
            subject.findings.add(Code.FILE_UNREADABLE, _problem(error), location, file.snapshot_id)
        self._count("footers", 1)

    def _check_rows(self, file: mf.DataFile, snapshot_id: int) -> None:
        problems, rows = self._contents.problems(file, snapshot_id)
        self._count("rows", rows)
        for code, message in problems:
            self._subject.findings.add(code, message, file.file_path, snapshot_id)
        if file.content is mf.FileContent.POSITION_DELETES and self._subject.level.includes(Level.DATA):
            self._check_positions(file, snapshot_id)

    def _check_positions(self, file: mf.DataFile, snapshot_id: int) -> None:
        with mf.open_file(file, self._subject.storage) as source:
            positions = read_position_deletes(source, file.file_path, file.file_format)
        is_reaching = False
        for path, vector in positions.items():
            rows = self._rows.get(identity(self._subject.resolved(path)))
            is_reaching |= rows is not None
            if rows is not None and vector.highest is not None and vector.highest >= rows:
                message = f"it deletes position {vector.highest} of {path}, which has {rows} rows"
                self._subject.findings.add(Code.DELETE_POSITIONS, message, file.file_path, snapshot_id)
        if positions and not is_reaching:
            message = "none of the data files that it names is in the table"
            self._subject.findings.add(Code.DELETE_DANGLING, message, file.file_path, snapshot_id)

    def _check_vectors(self, stored: StoredFile) -> None:
        location, size = stored.entries[0].file_path, mf.plain_size(stored.entries[0], self._subject.storage)
        read_range = mf.range_reader(stored.entries[0], self._subject.storage)
        blobs = {(blob.offset, blob.length) for blob in read_footer(read_range, size, location).blobs}
        for vector in stored.entries:
            offset, length = vector.content_offset, vector.content_size_in_bytes
            if offset is None or length is None or vector.referenced_data_file is None:
                continue  # said when the entries were checked
            problem = None
            if (offset, length) not in blobs:
                problem = f"no blob of {length} bytes is at {offset}, where its manifest says that the vector is"
            else:
                rows = self._rows.get(identity(vector.referenced_data_file))
                try:
                    read_vector(read_range, offset, length, location, cardinality=vector.record_count, row_count=rows)
                except errors.CorruptFileError as error:
                    problem = error.problem
            if problem is not None:
                message = f"the deletion vector of {vector.referenced_data_file}: {problem}"
                self._subject.findings.add(Code.VECTOR_CONTENT, message, location, stored.snapshot_id)

    def _count(self, what: str, more: int) -> None:
        with self._lock:
            self.done[what] += more


def _problem(error: errors.IcefloeError) -> str:
    return str(getattr(error, "problem", error))


# -- a listing of the table's folders: a store is asked only for the files that it leaves open


WORTH_IT = 1000
"""A listing has about so many files in one answer: for fewer, asking for each one is as cheap."""

_MOST_LISTED = 4
"""A folder may hold much more than the table: beyond so many times its files, listing would cost more than it saves."""


def listed_lengths(storage: Storage, folders: Sequence[str], files: int) -> HashTable:
    """The lengths of files in the folders. That one is missing here says nothing."""
    pairs = np.array(list(islice(_lengths(storage, folders), _MOST_LISTED * files)), np.int64).reshape(-1, 2)
    return HashTable(pairs[:, 0], pairs[:, 1])


def _lengths(storage: Storage, folders: Sequence[str]) -> Iterator[tuple[int, int]]:
    for folder in folders:
        # One that is inside of another is listed with it.
        if any(other != folder and folder.startswith(other) for other in folders):
            continue
        with suppress(errors.IcefloeError):
            for file in storage.list_prefix(folder):
                yield hash(file.location), file.size
