"""Which deletion vector stays for a data file: exactly one, which holds all that was ever deleted (spec: Deletion Vectors).

A new vector replaces the one that is there, with all of its positions. If that one came after the operation was planned,
both must have deleted different rows: then they are merged, else one row would have been changed twice.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.commit.added import vector_mask
from icefloe.commit.change import Workbench
from icefloe.commit.named_files import LocatedFile
from icefloe.commit.parent import Parent, manifests_of, read_entries
from icefloe.errors import InvalidInputError, ValidationError
from icefloe.formats.avro_reader import AvroFileReader
from icefloe.formats.deletion_vector_codec import read_vector, write_deletion_vectors
from icefloe.formats.deletion_vectors import DeletionVector
from icefloe.formats.orc.reader import OrcFileReader
from icefloe.formats.parquet.reader import ParquetFileReader
from icefloe.manifests import WITHOUT_METRICS, DataFile, FileContent, ManifestColumns, ManifestContent, ManifestFile
from icefloe.metadata import Snapshot
from icefloe.schema import Schema, reserved
from icefloe.storage import Storage, identity
from icefloe.storage.identities import identities


@dataclass(frozen=True, slots=True)
class StoredDelete:
    """A delete file that is live for a data file, and its data sequence number."""

    file: DataFile
    sequence_number: int

    @property
    def place(self) -> tuple[str, int | None]:
        """What tells it from other vectors."""
        return identity(self.file.file_path), self.file.content_offset


@dataclass(frozen=True, slots=True)
class LiveDeletes:
    """Deletes by position that are live for some data files, by the normal form of the data file's path.

    `shared` are position delete files that are about more than one data file, or do not say.
    """

    vectors: Mapping[str, StoredDelete]
    of_one_file: Mapping[str, tuple[StoredDelete, ...]]
    shared: tuple[StoredDelete, ...]


def live_deletes(parent: Parent, files: Mapping[str, LocatedFile], snapshot: Snapshot | None) -> LiveDeletes:
    """The vectors and position deletes of these data files in a snapshot; two vectors for one file are an error."""
    paths = pa.array(list(files), pa.string())
    vectors: dict[str, StoredDelete] = {}
    single: dict[str, list[StoredDelete]] = {}
    shared: list[StoredDelete] = []
    partitions = {(each.spec_id, each.partition) for each in files.values()}
    for columns in _delete_entries(parent, snapshot, {each.spec_id for each in files.values()}):
        about = columns.column("referenced_data_file")
        is_position = pc.equal(columns.column("content"), int(FileContent.POSITION_DELETES))
        concerned = pc.and_(is_position, pc.or_(pc.is_null(about), pc.is_in(identities(about), value_set=paths)))
        for entry in columns.filter(concerned).entries():
            file, found = entry.data_file, StoredDelete(entry.data_file, entry.sequence_number or 0)
            path = None if file.referenced_data_file is None else identity(file.referenced_data_file)
            if path is None:
                if (file.spec_id, file.partition) in partitions:
                    shared.append(found)
            elif not file.is_deletion_vector:
                single.setdefault(path, []).append(found)
            elif path in vectors:
                raise ValidationError(
                    f"data file {path!r} has two deletion vectors, {vectors[path].place} and {found.place}; it may have one"
                )
            else:
                vectors[path] = found
    return LiveDeletes(vectors, {path: tuple(each) for path, each in single.items()}, tuple(shared))


def _delete_entries(parent: Parent, snapshot: Snapshot | None, spec_ids: set[int]) -> Iterable[ManifestColumns]:
    manifests: Iterable[ManifestFile] = (
        () if snapshot is None else manifests_of(snapshot, parent.metadata, parent.bench)
    )
    for manifest in manifests:
        is_wanted = manifest.content is ManifestContent.DELETES and manifest.has_live_files
        if is_wanted and manifest.partition_spec_id in spec_ids:
            columns = read_entries(manifest, parent.metadata, parent.bench, WITHOUT_METRICS)
            yield columns.filter(columns.is_live)


def load_vector(storage: Storage, file: DataFile, row_count: int | None = None) -> DeletionVector:
    """The vector that an entry of a manifest stands for, checked against the entry."""
    if file.content_offset is None or file.content_size_in_bytes is None:
        raise InvalidInputError(f"deletion vector {file.file_path!r} does not say where in the file it is")

    def read_range(offset: int, length: int) -> bytes:
        return storage.read_range(file.file_path, offset, length)

    return read_vector(
        read_range,
        file.content_offset,
        file.content_size_in_bytes,
        file.file_path,
        cardinality=file.record_count,
        row_count=row_count,
    )


@dataclass(frozen=True, slots=True)
class VectorPlan:
    """The vectors that a commit adds: those given that can stay as they are, and those to be written."""

    kept: tuple[DataFile, ...]
    written: Mapping[str, DeletionVector]


def merge_with_live(
    parent: Parent,
    given: Mapping[str, Sequence[DataFile]],
    made: Mapping[str, DeletionVector],
    files: Mapping[str, LocatedFile],
    now: LiveDeletes,
    others: LiveDeletes,
    planned: LiveDeletes,
) -> VectorPlan:
    """One vector for each data file, with all that is deleted in it.

    `given` are vectors that are written already, `made` those that are not; `now` is what the parent snapshot has,
    `others` what other commits have left, and `planned` what they had left when the operation was planned.
    """
    kept: list[DataFile] = []
    written: dict[str, DeletionVector] = {}
    for path in dict.fromkeys((*given, *made)):
        stored, located = given.get(path, ()), files[path]
        own = DeletionVector(())
        if path in made:
            made[path].check_rows(located.record_count)
            own = own | made[path]
        current = now.vectors.get(path)
        older = _older_positions(parent, path, located, now)
        is_simple = path not in made and len(stored) == 1 and current is None and not older
        if is_simple and stored[0].record_count <= located.record_count:
            kept.append(stored[0])
            continue
        for file in stored:
            own = own | load_vector(parent.bench.storage, file, located.record_count)
        merged = own | older
        if current is not None:
            _check_disjoint(parent, path, own, others.vectors.get(path), planned.vectors.get(path))
            merged = merged | load_vector(parent.bench.storage, current.file, located.record_count)
        if not merged:
            raise InvalidInputError(f"the deletion vector of {path!r} deletes nothing; leave it out")
        if path not in made and len(stored) == 1 and merged.cardinality == stored[0].record_count:
            kept.append(stored[0])
        else:
            written[path] = merged
    return VectorPlan(tuple(kept), written)


def _check_disjoint(
    parent: Parent, path: str, own: DeletionVector, current: StoredDelete | None, seen: StoredDelete | None
) -> None:
    if current is None or (seen is not None and seen.place == current.place):
        return
    there = load_vector(parent.bench.storage, current.file)
    before = DeletionVector(()) if seen is None else load_vector(parent.bench.storage, seen.file)
    ours = np.setdiff1d(own.positions(), before.positions(), assume_unique=True)
    theirs = np.setdiff1d(there.positions(), before.positions(), assume_unique=True)
    both = np.intersect1d(ours, theirs, assume_unique=True)
    if len(both):
        raise ValidationError(
            f"row {both[0]} of data file {path!r} was deleted by another commit, too, with {len(both) - 1} more;"
            " plan the operation anew"
        )


def _older_positions(parent: Parent, path: str, located: LocatedFile, now: LiveDeletes) -> DeletionVector:
    """What position delete files of the time before vectors delete in the data file; a vector hides them from then on."""
    if path in now.vectors:
        return DeletionVector(())
    found = DeletionVector(())
    for each in (*now.of_one_file.get(path, ()), *now.shared):
        same = (each.file.spec_id, each.file.partition) == (located.spec_id, located.partition)
        if same and located.sequence_number is not None and each.sequence_number >= located.sequence_number:
            found = found | positions_in(parent.bench, each.file, path)
    return found


def write_vectors(
    parent: Parent, vectors: Mapping[str, DeletionVector], files: Mapping[str, LocatedFile]
) -> tuple[DataFile, ...]:
    """The vectors in a new Puffin file, as delete files of the partitions of their data files, spelled as the table does."""
    if not vectors:
        return ()
    spelled = {files[path].path: files[path] for path in vectors}
    data, stored = write_deletion_vectors({files[path].path: vector for path, vector in vectors.items()})
    location = parent.bench.vectors_name(parent.metadata)
    parent.bench.write(location, data)
    return tuple(
        DataFile(
            file_path=location,
            file_format="puffin",
            record_count=each.cardinality,
            file_size_in_bytes=len(data),
            content=FileContent.POSITION_DELETES,
            spec_id=spelled[each.referenced_data_file].spec_id,
            partition=spelled[each.referenced_data_file].partition,
            referenced_data_file=each.referenced_data_file,
            content_offset=each.offset,
            content_size_in_bytes=each.length,
        )
        for each in stored
    )


def in_place_of(file: DataFile, located: LocatedFile) -> DataFile:
    """A given vector, which must be of the partition of its data file, and names it as the table does."""
    if (file.spec_id, file.partition) != (located.spec_id, located.partition):
        raise InvalidInputError(
            f"the deletion vector of {located.path!r} is of spec {file.spec_id} and partition {file.partition}; its data file"
            f" is of spec {located.spec_id} and partition {located.partition}"
        )
    return replace(file, referenced_data_file=located.path)


def check_one_for_each(groups: Iterable[ManifestColumns]) -> None:
    """Fail if a data file has two vectors among these live entries: the last look at what is about to be committed."""
    paths = [columns.column("referenced_data_file").filter(vector_mask(columns)) for columns in groups]
    every = identities(pa.concat_arrays(paths)) if paths else pa.array([], pa.string())
    if len(pc.unique(every)) == len(every):
        return
    counted = pc.value_counts(every)
    path = counted.field("values").filter(pc.greater(counted.field("counts"), 1))[0].as_py()
    raise ValidationError(f"data file {path!r} would have more than one deletion vector after this commit")


def check_not_revived(removed: Iterable[ManifestColumns], gone: Iterable[str], renewed: Iterable[str]) -> None:
    """Fail if a vector goes whose data file stays without a new one: deleted rows would come back.

    `gone` and `renewed` are paths in their normal form.
    """
    settled = {*gone, *renewed}
    for columns in removed:
        about = columns.column("referenced_data_file").filter(vector_mask(columns))
        for path in identities(about).to_pylist():
            if path not in settled:
                raise ValidationError(
                    f"the deletion vector of {path!r} is removed, but the file stays and gets no other; its deleted rows"
                    " would come back"
                )


_POSITIONS = Schema(reserved.DELETE_FILE_PATH, reserved.DELETE_FILE_POS)
_READERS: dict[str, type[ParquetFileReader] | type[AvroFileReader] | type[OrcFileReader]] = {
    "parquet": ParquetFileReader,
    "avro": AvroFileReader,
    "orc": OrcFileReader,
}


def positions_in(bench: Workbench, deletes: DataFile, path: str) -> DeletionVector:
    """The positions that the file deletes in the data file of that path, in its normal form; each file is read once in a commit."""
    return positions_by_file(bench, deletes).get(path, DeletionVector(()))


def positions_by_file(bench: Workbench, deletes: DataFile) -> dict[str, DeletionVector]:
    """All positions that the file deletes, by the normal form of the data file's path."""
    return bench.remember(("position deletes", deletes.file_path), lambda: _read(bench, deletes))


def _read(bench: Workbench, deletes: DataFile) -> dict[str, DeletionVector]:
    reader = _READERS.get(deletes.file_format)
    if reader is None:
        known = ", ".join(_READERS)
        raise InvalidInputError(
            f"position delete file {deletes.file_path!r} is of format {deletes.file_format!r}; it must be one of {known}"
        )
    found: dict[str, DeletionVector] = {}
    with bench.storage.open_input(deletes.file_path, size=deletes.file_size_in_bytes) as source:
        for batch in reader(source, deletes.file_path, _POSITIONS).batches():
            paths, positions = identities(batch.column(0)), batch.column(1)
            for path in pc.unique(paths).to_pylist():
                vector = DeletionVector.from_positions(positions.filter(pc.equal(paths, path)))
                found[path] = found[path] | vector if path in found else vector
    return found
