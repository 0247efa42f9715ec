"""Whether the files of one snapshot fit together: none twice, each delete with a file to delete from, ids, and totals."""

from collections.abc import Callable

import numpy as np

from icefloe.metadata import Snapshot, summary as keys
from icefloe.verification.codes import Code
from icefloe.verification.digest import UNKNOWN, Digest, FileKind, Mask, Numbers
from icefloe.verification.subject import Subject
from icefloe.versions import Feature, allows

PathOf = Callable[[int, int], str]
"""The path of a file from the number of its manifest and its place in it."""

_HIGHEST = np.iinfo(np.int64).max


class SnapshotCheck:
    """One snapshot and its live files."""

    def __init__(self, subject: Subject, snapshot: Snapshot, files: Digest, path_of: PathOf) -> None:
        self._subject = subject
        self._snapshot = snapshot
        self._files = files
        self._path_of = path_of
        self._data = files.of(FileKind.DATA)
        self._deletes = files.of(FileKind.POSITION_DELETES, FileKind.EQUALITY_DELETES, FileKind.VECTOR)

    def run(self) -> None:
        """Check everything."""
        self._paths()
        self._vectors()
        self._reach()
        self._row_ids()
        self._totals()

    def _each(self, code: Code, files: Digest, is_wrong: Mask, message: str) -> None:
        for at in np.flatnonzero(is_wrong).tolist():
            if self._subject.findings.is_full(code):
                self._subject.findings.count(code, 1)
                continue
            path = self._path_of(int(files.manifest[at]), int(files.place[at]))
            self._subject.findings.add(code, message, path, self._snapshot.snapshot_id)

    def _paths(self) -> None:
        """A path is live once, whatever the file is; of several vectors in one file, each place."""
        self._each(Code.PATH_TWICE, self._files, repeated(self._files.name), "it is in the snapshot more than once")

    def _vectors(self) -> None:
        vectors = self._files.of(FileKind.VECTOR)
        is_other = repeated(vectors.target) & (vectors.target != 0) & ~repeated(vectors.name)
        self._each(Code.VECTOR_TWICE, vectors, is_other, "its data file has another deletion vector already")

    def _reach(self) -> None:
        scoped = self._deletes.take((self._deletes.target != 0) & (self._deletes.kind != FileKind.EQUALITY_DELETES))
        self._reach_of_scoped(scoped)
        others = self._deletes.take((self._deletes.target == 0) | (self._deletes.kind == FileKind.EQUALITY_DELETES))
        partitions, oldest = _oldest(self._data)
        at = np.searchsorted(partitions, others.partition)
        found = np.zeros(len(others), bool)
        if len(partitions):
            near = np.minimum(at, len(partitions) - 1)
            found = partitions[near] == others.partition
            oldest_of = np.where(found, oldest[near], _HIGHEST)
        else:
            oldest_of = np.full(len(others), _HIGHEST)
        is_equality = others.kind == FileKind.EQUALITY_DELETES
        anywhere = self._data.sequence_number.min(initial=_HIGHEST)
        oldest_of = np.where(is_equality & others.is_global, anywhere, oldest_of)
        # An equality delete is about older files only, a position delete about files of its own commit too.
        reaches = np.where(is_equality, oldest_of < others.sequence_number, oldest_of <= others.sequence_number)
        self._each(Code.DELETE_DANGLING, others, ~reaches, "no data file is in reach of these deletes")

    def _reach_of_scoped(self, deletes: Digest) -> None:
        order = np.argsort(self._data.path, kind="stable")
        paths = self._data.path[order]
        at = np.minimum(np.searchsorted(paths, deletes.target), max(len(paths) - 1, 0))
        is_there = paths[at] == deletes.target if len(paths) else np.zeros(len(deletes), bool)
        self._each(Code.DELETE_DANGLING, deletes, ~is_there, "the data file that it is about is not in the snapshot")
        if not len(paths):
            return
        rows = order[at]
        is_elsewhere = is_there & (self._data.partition[rows] != deletes.partition)
        self._each(
            Code.DELETE_PARTITION,
            deletes,
            is_elsewhere,
            "it is in another partition than the data file that it is about",
        )
        is_older = is_there & (deletes.sequence_number < self._data.sequence_number[rows])
        is_vector = deletes.kind == FileKind.VECTOR
        self._each(
            Code.DELETE_SEQUENCE, deletes, is_older & is_vector, "it is older than the data file that it is about"
        )
        self._each(
            Code.DELETE_DANGLING, deletes, is_older & ~is_vector, "the data file that it is about is newer than it"
        )

    def _row_ids(self) -> None:
        metadata = self._subject.metadata
        if self._snapshot.first_row_id is None or not allows(metadata.format_version, Feature.ROW_LINEAGE):
            return
        is_missing = self._data.first_row_id == UNKNOWN
        self._each(Code.ROW_IDS, self._data, is_missing, "its rows have no ids")
        is_late = ~is_missing & (self._data.first_row_id + self._data.rows > metadata.next_row_id)
        self._each(
            Code.ROW_IDS,
            self._data,
            is_late,
            f"its rows have ids that are not below {metadata.next_row_id}, the next one",
        )

    def _totals(self) -> None:
        if self._snapshot.summary is None:
            return
        files, data, deletes = self._files, self._data, self._deletes
        positions = files.of(FileKind.POSITION_DELETES, FileKind.VECTOR)
        found = {
            keys.TOTAL_DATA_FILES: {len(data)},
            keys.TOTAL_RECORDS: {int(data.rows.sum())},
            keys.TOTAL_DELETE_FILES: {len(deletes)},
            keys.TOTAL_POSITION_DELETES: {int(positions.rows.sum())},
            keys.TOTAL_EQUALITY_DELETES: {int(files.of(FileKind.EQUALITY_DELETES).rows.sum())},
            # Writers differ in what they take for the size of a deletion vector: its own, or that of its file.
            keys.TOTAL_FILES_SIZE: {int(files.size.sum()), int(files.file_size.sum())},
        }
        wrong = {}
        for key, counts in found.items():
            text = self._snapshot.summary.get(key)
            if text is not None and text not in {str(count) for count in counts}:
                wrong[key] = f"{key} is {text} and should be {min(counts)}"
        if wrong:
            self._subject.findings.add(Code.SUMMARY_TOTALS, ", ".join(wrong.values()), None, self._snapshot.snapshot_id)


def repeated(numbers: Numbers) -> Mask:
    """Whether each number came before."""
    found = np.ones(len(numbers), bool)
    found[np.unique(numbers, return_index=True)[1]] = False
    return found


def _oldest(data: Digest) -> tuple[Numbers, Numbers]:
    """The partitions of data files, ascending, and the smallest sequence number in each."""
    order = np.lexsort((data.sequence_number, data.partition))
    partitions, first = np.unique(data.partition[order], return_index=True)
    return partitions, data.sequence_number[order][first]
