"""Whether the files of a snapshot fit together, and its snapshots: none twice, deletes in reach, row ids, and totals."""

import threading
from array import array
from collections.abc import Callable, Sequence
from contextlib import suppress

import numpy as np
from pyroaring import BitMap64

from icefloe import errors, manifests as mf, metadata as md, parallel, planning
from icefloe.data import ReadContext, read_task
from icefloe.metadata import summary as keys
from icefloe.schema import Schema, reserved
from icefloe.verification.codes import Code, Level
from icefloe.verification.digest import UNKNOWN, Digest, FileKind, Mask, Numbers
from icefloe.verification.subject import Subject
from icefloe.versions import Feature, allows

PathOf = Callable[[int, int], str]
"""The path of a file from the number of its manifest and its index in it."""

_HIGHEST = np.iinfo(np.int64).max


class SnapshotCheck:
    """One snapshot and its live files."""

    def __init__(self, subject: Subject, snapshot: md.Snapshot, files: Digest, path_of: PathOf) -> None:
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
        path_of = _path_in(files, self._path_of)
        self._subject.findings.add_each(code, is_wrong, message, path_of, self._snapshot.snapshot_id)

    def _paths(self) -> None:
        """A path is live once, whatever the file is; of several vectors in one file, each offset."""
        self._each(Code.PATH_TWICE, self._files, _repeated(self._files.name), "it is in the snapshot more than once")

    def _vectors(self) -> None:
        vectors = self._files.of(FileKind.VECTOR)
        is_other = _repeated(vectors.target) & (vectors.target != 0) & ~_repeated(vectors.name)
        self._each(Code.VECTOR_TWICE, vectors, is_other, "its data file has another deletion vector already")

    def _reach(self) -> None:
        is_scoped = (self._deletes.target != 0) & (self._deletes.kind != FileKind.EQUALITY_DELETES)
        self._reach_of_scoped(self._deletes.take(is_scoped))
        others = self._deletes.take(~is_scoped)
        oldest_of = _looked_up(others.partition, *_oldest(self._data), _HIGHEST)
        is_equality = others.kind == FileKind.EQUALITY_DELETES
        anywhere = self._data.sequence_number.min(initial=_HIGHEST)
        oldest_of = np.where(is_equality & others.is_global, anywhere, oldest_of)
        # An equality delete is about older files only, a position delete about files of its own commit too.
        reaches = np.where(is_equality, oldest_of < others.sequence_number, oldest_of <= others.sequence_number)
        self._each(Code.DELETE_DANGLING, others, ~reaches, "no data file is in reach of these deletes")

    def _reach_of_scoped(self, deletes: Digest) -> None:
        order = np.argsort(self._data.path, kind="stable")
        rows = _looked_up(deletes.target, self._data.path[order], order, UNKNOWN)
        is_live = rows != UNKNOWN
        about = "the data file that it is about"
        self._each(Code.DELETE_DANGLING, deletes, ~is_live, f"{about} is not in the snapshot")
        if not len(self._data):
            return
        is_elsewhere = is_live & (self._data.partition[rows] != deletes.partition)
        self._each(Code.DELETE_PARTITION, deletes, is_elsewhere, f"it is in another partition than {about}")
        is_older = is_live & (deletes.sequence_number < self._data.sequence_number[rows])
        is_vector = deletes.kind == FileKind.VECTOR
        self._each(Code.DELETE_SEQUENCE, deletes, is_older & is_vector, f"it is older than {about}")
        self._each(Code.DELETE_DANGLING, deletes, is_older & ~is_vector, f"{about} is newer than it")

    def _row_ids(self) -> None:
        metadata = self._subject.metadata
        if self._snapshot.first_row_id is None or not allows(metadata.format_version, Feature.ROW_LINEAGE):
            return
        is_missing = self._data.first_row_id == UNKNOWN
        self._each(Code.ROW_IDS, self._data, is_missing, "its rows have no ids")
        is_late = ~is_missing & (self._data.first_row_id + self._data.rows > metadata.next_row_id)
        message = f"its rows have ids that are not below {metadata.next_row_id}, the next one"
        self._each(Code.ROW_IDS, self._data, is_late, message)

    def _totals(self) -> None:
        if self._snapshot.summary is None:
            return
        files, data, deletes = self._files, self._data, self._deletes
        positions = files.of(FileKind.POSITION_DELETES, FileKind.VECTOR)
        totals = {
            keys.TOTAL_DATA_FILES: {len(data)},
            keys.TOTAL_RECORDS: {int(data.rows.sum())},
            keys.TOTAL_DELETE_FILES: {len(deletes)},
            keys.TOTAL_POSITION_DELETES: {int(positions.rows.sum())},
            keys.TOTAL_EQUALITY_DELETES: {int(files.of(FileKind.EQUALITY_DELETES).rows.sum())},
            # Writers differ in what they take for the size of a deletion vector: its own, or that of its file.
            keys.TOTAL_FILES_SIZE: {int(files.size.sum()), int(files.file_size.sum())},
        }
        wrong = []
        for key, counts in totals.items():
            text = self._snapshot.summary.get(key)
            if text is not None and text not in {str(count) for count in counts}:
                wrong.append(f"{key} is {text} and should be {min(counts)}")
        if wrong:
            self._subject.findings.add(Code.SUMMARY_TOTALS, ", ".join(wrong), None, self._snapshot.snapshot_id)


def _path_in(files: Digest, path_of: PathOf) -> Callable[[int], str]:
    return lambda index: path_of(int(files.manifest[index]), int(files.index[index]))


def _repeated(numbers: Numbers) -> Mask:
    """Whether each number came before."""
    is_repeated = np.ones(len(numbers), bool)
    is_repeated[np.unique(numbers, return_index=True)[1]] = False
    return is_repeated


def _looked_up(searched: Numbers, keys: Numbers, values: Numbers, missing: int) -> Numbers:
    """The value of each number that is searched for; the keys are in order."""
    if not len(keys):
        return np.full(len(searched), missing)
    at = np.minimum(np.searchsorted(keys, searched), len(keys) - 1)
    return np.where(keys[at] == searched, values[at], missing)


def _oldest(data: Digest) -> tuple[Numbers, Numbers]:
    """The partitions of data files, ascending, and the smallest sequence number in each."""
    order = np.lexsort((data.sequence_number, data.partition))
    partitions, first = np.unique(data.partition[order], return_index=True)
    return partitions, data.sequence_number[order][first]


def check_row_ids(subject: Subject, files: Digest, path_of: PathOf) -> None:
    """Ranges of row ids belong to one file each, over all snapshots."""
    data = files.of(FileKind.DATA)
    data = data.take((data.first_row_id != UNKNOWN) & (data.rows > 0))
    if not len(data):
        return
    data = data.take(np.lexsort((data.path, data.first_row_id)))
    ends = data.first_row_id + data.rows
    highest = np.maximum.accumulate(ends)
    overlaps = np.zeros(len(data), bool)
    is_same = (data.first_row_id[1:] == data.first_row_id[:-1]) & (data.path[1:] == data.path[:-1])
    overlaps[1:] = (data.first_row_id[1:] < highest[:-1]) & ~is_same

    def message(index: int) -> str:
        first, last = data.first_row_id[index], ends[index] - 1
        return f"its rows have the ids from {first} to {last}; another file has some of them too"

    subject.findings.add_each(Code.ROW_IDS, overlaps, message, _path_in(data, path_of))


def check_added_again(subject: Subject, files: Digest, manifests: Sequence[mf.ManifestFile], path_of: PathOf) -> None:
    """A file is added by one snapshot of a line of descent; branches that took over the same commit may each add it."""
    added = files.take(files.is_added)
    if not len(added):
        return
    owners = np.array([manifest.added_snapshot_id for manifest in manifests], np.int64)
    by = owners[added.manifest]
    order = np.lexsort((by, added.name))
    added, by = added.take(order), by[order]
    is_again = np.zeros(len(added), bool)
    is_again[1:] = (added.name[1:] == added.name[:-1]) & (by[1:] != by[:-1])
    known: dict[tuple[int, int], bool] = {}
    for at in np.flatnonzero(is_again).tolist():
        pair = (int(by[at - 1]), int(by[at]))
        if pair not in known:
            metadata = subject.metadata
            known[pair] = metadata.is_ancestor(*pair) or metadata.is_ancestor(*reversed(pair))
        if known[pair]:
            message = f"snapshots {pair[0]} and {pair[1]} both added it"
            subject.findings.add(Code.PATH_ADDED_AGAIN, message, _path_in(added, path_of)(at))


def check_ids_of_rows(subject: Subject) -> None:
    """Check the snapshot that was asked for, or the heads of all branches and tags: the others share their files."""
    metadata = subject.metadata
    if not allows(metadata.format_version, Feature.ROW_LINEAGE):
        return
    if not subject.level.includes(Level.DATA) or subject.sample < 1:
        return
    heads = {ref.snapshot_id for ref in metadata.refs.values()} | {metadata.current_snapshot_id}
    for snapshot in subject.snapshots:
        if snapshot.first_row_id is not None and (not subject.is_whole or snapshot.snapshot_id in heads):
            _RowIds(subject, snapshot).run()


class _RowIds:
    """The ids of one snapshot's rows. A bitmap of runs holds them: ids mostly follow each other."""

    def __init__(self, subject: Subject, snapshot: md.Snapshot) -> None:
        self._subject = subject
        self._snapshot = snapshot
        self._context = ReadContext(subject.metadata, subject.storage)
        self._seen = BitMap64()
        self._lock = threading.Lock()

    def run(self) -> None:
        subject = self._subject
        scan = planning.TableScan(subject.metadata, subject.storage, snapshot_id=self._snapshot.snapshot_id)
        # What cannot be planned or read was reported when that file or manifest was checked.
        with suppress(errors.IcefloeError):
            parallel.for_each(self._check, scan.plan_files(), subject.workers, "icefloe-verify")

    def _check(self, task: planning.FileScanTask) -> None:
        for batch in read_task(task, Schema(reserved.ROW_ID), self._context):
            ids = batch.column(0).drop_null().to_numpy()
            problem = self._problem(ids)
            if problem is not None:
                self._subject.findings.add(Code.ROW_IDS, problem, task.file.file_path, self._snapshot.snapshot_id)
                return

    def _problem(self, ids: Numbers) -> str | None:
        limit = self._subject.metadata.next_row_id
        if len(ids) and not 0 <= ids.min() <= ids.max() < limit:
            wrong = ids.max() if ids.max() >= limit else ids.min()
            return f"a row has the id {wrong}; ids are from 0 up to {limit - 1}"
        distinct = BitMap64(array("Q", np.ascontiguousarray(ids, np.uint64).tobytes()))
        if len(distinct) != len(ids):
            return f"{len(ids) - len(distinct)} of its rows have the id of another one"
        with self._lock:
            shared = self._seen & distinct
            self._seen |= distinct
            self._seen.run_optimize()
        return f"rows of other files have ids of its rows, such as {shared.min()}" if shared else None
