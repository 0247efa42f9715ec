"""Rows that others deleted while their files were rewritten: they are found again in the new files, and deleted there.

A row keeps its id when it is written anew (spec: Row Lineage). So the rows that a vector deleted since the plan, or that went
with their whole file, are looked for among the ids of the new files, and vectors for these go into the same commit. What
cannot be found exactly once is a conflict: rows without ids, and new files that do not keep them. So are files that others
removed or rewrote as a whole, if new files would consist of their dead rows to a good part.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe import errors, manifests as mf, metadata as md, parallel, planning
from icefloe.commit import vectors as dv
from icefloe.commit.added import vector_mask
from icefloe.commit.named_files import NamedFiles, locate
from icefloe.commit.parent import Parent
from icefloe.commit.partitions import Mask, as_mask, normal_paths
from icefloe.data import ReadContext, read_task
from icefloe.formats.deletion_vectors import DeletionVector
from icefloe.formats.file_formats import reader_of
from icefloe.schema import Schema, reserved
from icefloe.storage import Storage, identity

Numbers = npt.NDArray[np.int64]

_READERS = 8
_MOST_DEAD = 0.3
"""Which part of the new rows may be of files that are gone; above it, a file with deletes is worth another rewrite."""
_IDS_AND_POSITIONS = Schema(reserved.ROW_ID, reserved.POS)
_IDS = Schema(reserved.ROW_ID)


@dataclass(frozen=True, slots=True, eq=False)
class DeletedSince:
    """What others deleted of replaced files since a snapshot: rows by new vectors, and whole files.

    The vectors are keyed by the normal form of the data files' paths.
    """

    planned: md.Snapshot
    vectors: Mapping[str, mf.DataFile]
    gone: Sequence[mf.ManifestColumns]

    def __bool__(self) -> bool:
        return bool(self.vectors) or any(map(len, self.gone))

    @property
    def gone_paths(self) -> frozenset[str]:
        """The normal form of the paths of the files that are gone."""
        return frozenset(normal_paths(self.gone).to_pylist())

    @property
    def key(self) -> tuple[object, ...]:
        """What distinguishes it from what another attempt sees."""
        blobs = ((file.file_path, file.content_offset) for file in self.vectors.values())
        return frozenset(blobs), self.gone_paths

    def check_worth(self, added: int) -> None:
        """Fail if so many new rows are for a good part of files that are gone."""
        dead = rows_of(self.gone)
        if dead > _MOST_DEAD * added:
            raise errors.ValidationError(
                f"data file {min(self.gone_paths)!r} cannot be replaced: another commit removed or rewrote it; {dead} of"
                f" the {added} new rows come from such files; plan the rewrite again"
            )

    def delete_again(self, parent: Parent, added: Sequence[mf.ManifestColumns]) -> tuple[mf.DataFile, ...]:
        """Vectors for the new files, which delete the same rows there."""
        positions = _find(self._row_ids(parent), added, parent.bench.storage)
        located = locate(parent, positions, None, added)
        return dv.write_vectors(parent, positions, {path: located[path] for path in positions})

    def _row_ids(self, parent: Parent) -> Numbers:
        """The ids of the rows that were live in the plan and are not any more, ascending."""
        storage = parent.bench.storage
        paths = pa.array([*self.vectors, *self.gone_paths], pa.string())
        tasks = planning.tasks_of_files(paths, self.planned, parent.metadata, storage, parent.bench.caches.manifests)
        self._check_planned(paths, tasks)
        read = partial(_deleted_ids, self.vectors, ReadContext(parent.metadata, storage))
        with closing(parallel.in_order(read, tasks, _READERS, "icefloe-row-ids")) as parts:
            return np.sort(np.concatenate([np.empty(0, np.int64), *parts]))

    def _check_planned(self, paths: pa.Array, tasks: Sequence[planning.FileScanTask]) -> None:
        unread = set(paths.to_pylist()).difference(identity(task.file.file_path) for task in tasks)
        if unread:
            raise errors.ValidationError(
                f"data file {min(unread)!r} is replaced, but is not in snapshot {self.planned.snapshot_id}, from which it was"
                " read; plan the rewrite again"
            )


def rows_of(groups: Iterable[mf.ManifestColumns]) -> int:
    """How many rows the files have together."""
    return sum(int(pc.sum(columns.column("record_count"), min_count=0).as_py()) for columns in groups)


def new_vectors(parent: Parent, files: Sequence[mf.ManifestColumns], number: int) -> dict[str, mf.DataFile]:
    """The live vectors of data files that came after a sequence number, by the normal form of the data file's path."""
    named = NamedFiles.of(files, parent.metadata)
    manifests = [each for each in parent.manifests(mf.ManifestContent.DELETES) if _may_be_newer(each, number)]
    return {
        identity(str(file.referenced_data_file)): file
        for manifest in manifests
        if named.may_be_in(manifest)
        for file in _newer(parent.read(manifest, mf.WITHOUT_METRICS), named, number).files()
    }


def _may_be_newer(manifest: mf.ManifestFile, number: int) -> bool:
    # Manifests of the same commit have no number yet.
    return manifest.sequence_number < 0 or manifest.sequence_number > number


def _newer(columns: mf.ManifestColumns, named: NamedFiles, number: int) -> mf.ManifestColumns:
    is_newer = pc.fill_null(pc.greater(columns.column("file_sequence_number"), number), True)
    vectors = pc.and_(pc.and_(columns.is_live, vector_mask(columns)), is_newer)
    return columns.filter(as_mask(vectors) & named.mask(columns, "referenced_data_file"))


# -- the ids of deleted rows, in the files that held them


def _deleted_ids(vectors: Mapping[str, mf.DataFile], context: ReadContext, task: planning.FileScanTask) -> Numbers:
    """The ids of those rows of a task that its vector of now deletes, or of all of them if there is none."""
    entry = vectors.get(identity(task.file.file_path))
    vector = None if entry is None else dv.load_vector(context.storage, entry, task.file.record_count)
    parts = [np.empty(0, np.int64)]
    for batch in read_task(task, _IDS_AND_POSITIONS, context):
        ids, positions = batch.columns
        deleted = ids if vector is None else ids.filter(pa.array(_is_deleted(vector, positions.to_numpy())))
        if deleted.null_count:
            raise errors.ValidationError(
                f"rows of data file {task.file.file_path!r}, which this commit replaces, were deleted by another commit,"
                " and have no row ids to find them by in the new files; plan it again"
            )
        parts.append(deleted.to_numpy())
    return np.concatenate(parts)


def _is_deleted(vector: DeletionVector, positions: Numbers) -> Mask:
    first = int(positions[0])
    return vector.mask(first, int(positions[-1]) + 1)[positions - first]


# -- where they are in the new files


def _find(ids: Numbers, added: Sequence[mf.ManifestColumns], storage: Storage) -> dict[str, DeletionVector]:
    """The positions of the rows with these ids by the normal form of the files' paths; each must be there once."""
    if not len(ids):
        return {}
    files = [file for columns in added for file in _may_hold(columns, ids).files()]
    positions: dict[str, DeletionVector] = {}
    counts = np.zeros(len(ids), np.int64)
    with closing(parallel.in_order(partial(_positions, ids, storage), files, _READERS, "icefloe-row-ids")) as parts:
        for file, (rows, indices) in zip(files, parts, strict=True):
            np.add.at(counts, indices, 1)
            if len(rows):
                positions[identity(file.file_path)] = DeletionVector.from_positions(rows)
    if (counts != 1).any():
        number = int(np.flatnonzero(counts != 1)[0])
        raise errors.ValidationError(
            f"the row with id {ids[number]} was deleted by another commit and occurs {counts[number]} times in the new files of"
            " this one instead of once; plan it again, and write new files with row ids"
        )
    return positions


def _may_hold(columns: mf.ManifestColumns, ids: Numbers) -> mf.ManifestColumns:
    """The files that may have one of the ids, as far as their statistics tell."""
    field = reserved.ROW_ID
    bounds = (
        columns.lower_bounds(field.field_id, field.field_type),
        columns.upper_bounds(field.field_id, field.field_type),
    )
    lower, upper = (None if each is None else pc.cast(each, pa.int64()) for each in bounds)
    if lower is None or upper is None:
        return columns
    known = as_mask(pc.and_(pc.is_valid(lower), pc.is_valid(upper)))
    first = np.searchsorted(ids, pc.fill_null(lower, 0).to_numpy())
    past = np.searchsorted(ids, pc.fill_null(upper, 0).to_numpy(), side="right")
    return columns.filter(~known | (first < past))


def _positions(ids: Numbers, storage: Storage, file: mf.DataFile) -> tuple[Numbers, Numbers]:
    """At which rows a new file has one of the ids, and which of them."""
    rows, indices, start = [np.empty(0, np.int64)], [np.empty(0, np.int64)], 0
    for stored in _stored_ids(file, storage):
        numbers = pc.fill_null(stored, -1).to_numpy()
        index = np.minimum(np.searchsorted(ids, numbers), len(ids) - 1)
        at = np.flatnonzero(ids[index] == numbers)
        rows.append(at + start)
        indices.append(index[at])
        start += len(numbers)
    return np.concatenate(rows), np.concatenate(indices)


def _stored_ids(file: mf.DataFile, storage: Storage) -> Iterator[pa.Array]:
    with mf.open_file(file, storage) as source:
        for batch in reader_of(file.file_format)(source, file.file_path, _IDS).batches():
            yield batch.column(0)
