"""Which deletion vector stays for a data file: exactly one, which holds all that was ever deleted (spec: Deletion Vectors).

A new vector replaces the one that is there, with all of its positions. If that one came after the operation was planned,
both must have deleted different rows: then they are merged, else one row would have been changed twice.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe import errors, manifests as mf, metadata as md
from icefloe.commit.added import first_repeated, vector_mask
from icefloe.commit.change import Workbench
from icefloe.commit.named_files import LocatedFile, blob_key
from icefloe.commit.parent import Parent
from icefloe.commit.partitions import PartitionSet, normal_paths
from icefloe.formats.deletion_vector_codec import read_vector, write_deletion_vectors
from icefloe.formats.deletion_vectors import DeletionVector
from icefloe.formats.file_formats import DATA_FORMATS, reader_of
from icefloe.schema import Schema, reserved
from icefloe.storage import Storage, identities, identity


@dataclass(frozen=True, slots=True)
class LiveDeletes:
    """Entries of position deletes that are live for some data files, by the normal form of the data file's path.

    `shared` are position delete files that are about more than one data file, or do not say.
    """

    vectors: Mapping[str, mf.ManifestEntry]
    of_one_file: Mapping[str, Sequence[mf.ManifestEntry]]
    shared: Sequence[mf.ManifestEntry]


def live_deletes(parent: Parent, files: Mapping[str, LocatedFile], snapshot: md.Snapshot | None) -> LiveDeletes:
    """The vectors and position deletes of these data files in a snapshot; two vectors for one file are an error."""
    paths = pa.array(list(files), pa.string())
    vectors: dict[str, mf.ManifestEntry] = {}
    single: dict[str, list[mf.ManifestEntry]] = {}
    shared: list[mf.ManifestEntry] = []
    partitions = {(located.spec_id, located.partition) for located in files.values()}
    for columns in _delete_entries(parent, snapshot, {located.spec_id for located in files.values()}):
        about = columns.column("referenced_data_file")
        concerned = pc.or_(pc.is_null(about), pc.is_in(identities(about), value_set=paths))
        for entry in columns.filter(pc.and_(position_mask(columns), concerned)).entries():
            file = entry.data_file
            path = None if file.referenced_data_file is None else identity(file.referenced_data_file)
            if path is None:
                if (file.spec_id, file.partition) in partitions:
                    shared.append(entry)
            elif not file.is_deletion_vector:
                single.setdefault(path, []).append(entry)
            elif path in vectors:
                both = f"{blob_key(vectors[path].data_file)} and {blob_key(file)}"
                raise errors.ValidationError(
                    f"data file {path!r} has two deletion vectors, {both}; only one is allowed"
                )
            else:
                vectors[path] = entry
    return LiveDeletes(vectors, single, shared)


def _delete_entries(parent: Parent, snapshot: md.Snapshot | None, spec_ids: set[int]) -> Iterable[mf.ManifestColumns]:
    for manifest in parent.manifests_of(snapshot):
        is_delete = manifest.content is mf.ManifestContent.DELETES and manifest.has_live_files
        if is_delete and manifest.partition_spec_id in spec_ids:
            columns = parent.read(manifest, mf.WITHOUT_METRICS)
            yield columns.filter(columns.is_live)


def load_vector(storage: Storage, file: mf.DataFile, row_count: int | None = None) -> DeletionVector:
    """The vector that an entry of a manifest stands for, checked against the entry."""
    if file.content_offset is None or file.content_size_in_bytes is None:
        raise errors.InvalidInputError(f"deletion vector {file.file_path!r} has no offset or size in its file")
    return read_vector(
        mf.range_reader(file, storage),
        file.content_offset,
        file.content_size_in_bytes,
        file.file_path,
        cardinality=file.record_count,
        row_count=row_count,
    )


@dataclass(frozen=True, slots=True)
class VectorPlan:
    """The vectors that a commit adds: stored ones that stay as they are, and those to be written."""

    unchanged: tuple[mf.DataFile, ...]
    written: Mapping[str, DeletionVector]


def merge_with_live(
    parent: Parent,
    stored: Mapping[str, Sequence[mf.DataFile]],
    new: Mapping[str, DeletionVector],
    files: Mapping[str, LocatedFile],
    now: LiveDeletes,
    others: LiveDeletes,
    planned: LiveDeletes,
) -> VectorPlan:
    """One vector for each data file, with all that is deleted in it.

    `stored` are vectors that are written already, `new` those that are not; `now` is what the parent snapshot has,
    `others` what other commits have left, and `planned` what they had left when the operation was planned.
    """
    unchanged: list[mf.DataFile] = []
    written: dict[str, DeletionVector] = {}
    for path in dict.fromkeys((*stored, *new)):
        own_files, located = stored.get(path, ()), files[path]
        lone = own_files[0] if len(own_files) == 1 and path not in new else None
        own = new.get(path, DeletionVector(()))
        own.check_rows(located.record_count)
        current = now.vectors.get(path)
        older = _older_positions(parent, path, located, now)
        if lone is not None and current is None and not older and lone.record_count <= located.record_count:
            unchanged.append(lone)
            continue
        for file in own_files:
            own = own | load_vector(parent.bench.storage, file, located.record_count)
        merged = own | older
        if current is not None:
            _check_disjoint(parent, path, own, others.vectors.get(path), planned.vectors.get(path))
            merged = merged | load_vector(parent.bench.storage, current.data_file, located.record_count)
        if not merged:
            raise errors.InvalidInputError(f"the deletion vector of {path!r} deletes nothing; leave it out")
        if lone is not None and merged.cardinality == lone.record_count:
            unchanged.append(lone)
        else:
            written[path] = merged
    return VectorPlan(tuple(unchanged), written)


def _check_disjoint(
    parent: Parent, path: str, own: DeletionVector, current: mf.ManifestEntry | None, seen: mf.ManifestEntry | None
) -> None:
    if current is None or (seen is not None and blob_key(seen.data_file) == blob_key(current.data_file)):
        return
    others = load_vector(parent.bench.storage, current.data_file)
    before = DeletionVector(()) if seen is None else load_vector(parent.bench.storage, seen.data_file)
    ours = np.setdiff1d(own.positions(), before.positions(), assume_unique=True)
    theirs = np.setdiff1d(others.positions(), before.positions(), assume_unique=True)
    both = np.intersect1d(ours, theirs, assume_unique=True)
    if len(both):
        raise errors.ValidationError(
            f"row {both[0]} of data file {path!r} and {len(both) - 1} more were also deleted by another commit;"
            " plan the operation again"
        )


def _older_positions(parent: Parent, path: str, located: LocatedFile, now: LiveDeletes) -> DeletionVector:
    """What position delete files of the time before vectors delete in the data file; a vector hides them from then on."""
    older = DeletionVector(())
    if path in now.vectors or located.sequence_number is None:
        return older
    for entry in (*now.of_one_file.get(path, ()), *now.shared):
        file = entry.data_file
        same = (file.spec_id, file.partition) == (located.spec_id, located.partition)
        if same and (entry.sequence_number or 0) >= located.sequence_number:
            older = older | positions_by_file(parent.bench, file).get(path, DeletionVector(()))
    return older


def write_vectors(
    parent: Parent, vectors: Mapping[str, DeletionVector], files: Mapping[str, LocatedFile]
) -> tuple[mf.DataFile, ...]:
    """The vectors in a new Puffin file, as delete files of the partitions of their data files, spelled as the table does."""
    if not vectors:
        return ()
    spelled = {files[path].path: files[path] for path in vectors}
    named = {files[path].path: vector for path, vector in vectors.items()}
    data, blobs = write_deletion_vectors(named, parent.metadata.writes_relative_to)
    location = parent.bench.vectors_name(parent.metadata)
    stored, key_metadata = mf.sealed_file(data, parent.metadata)
    parent.bench.write(location, stored)
    return tuple(
        mf.DataFile(
            file_path=location,
            file_format="puffin",
            record_count=blob.cardinality,
            file_size_in_bytes=len(stored),
            key_metadata=key_metadata,
            content=mf.FileContent.POSITION_DELETES,
            spec_id=spelled[blob.referenced_data_file].spec_id,
            partition=spelled[blob.referenced_data_file].partition,
            referenced_data_file=blob.referenced_data_file,
            content_offset=blob.offset,
            content_size_in_bytes=blob.length,
        )
        for blob in blobs
    )


def in_place_of(file: mf.DataFile, located: LocatedFile) -> mf.DataFile:
    """A given vector, which must be of the partition of its data file, and names it as the table does."""
    if (file.spec_id, file.partition) != (located.spec_id, located.partition):
        raise errors.InvalidInputError(
            f"the deletion vector of {located.path!r} has spec {file.spec_id} and partition {file.partition}; its data file"
            f" has spec {located.spec_id} and partition {located.partition}"
        )
    return replace(file, referenced_data_file=located.path)


def check_one_for_each(
    parent: Parent, manifests: Iterable[mf.ManifestFile], new: Sequence[mf.ManifestColumns], *, anywhere: bool = False
) -> None:
    """Fail if a data file would have two vectors: the last look at what is about to be committed.

    Only the data files of the new vectors are looked at, in their partitions; with `anywhere`, all data files.
    """
    if not new:
        return
    partitions = PartitionSet.of(new)
    paths = normal_paths(new, "referenced_data_file")
    live = list(new)
    for manifest in manifests:
        is_delete = manifest.content is mf.ManifestContent.DELETES and manifest.has_live_files
        if is_delete and (anywhere or partitions.may_be_in(manifest)):
            columns = parent.read(manifest, mf.WITHOUT_METRICS)
            concerned = pc.is_in(normal_paths([columns], "referenced_data_file"), value_set=paths)
            live.append(columns.filter(pc.and_(columns.is_live, pc.or_(concerned, anywhere))))
    repeated = first_repeated(vector_paths(live))
    if repeated is not None:
        raise errors.ValidationError(
            f"data file {repeated[0]!r} would have more than one deletion vector after this commit"
        )


def check_not_revived(removed: Iterable[mf.ManifestColumns], settled: Collection[str]) -> None:
    """Fail if a vector goes whose data file stays without a new one: deleted rows would come back.

    `settled` are the data files, by normal path, that go or get a new vector.
    """
    for path in vector_paths(removed).to_pylist():
        if path not in settled:
            raise errors.ValidationError(
                f"the deletion vector of {path!r} is removed without a new one, but the file stays; its deleted rows"
                " would come back"
            )


def vector_paths(groups: Iterable[mf.ManifestColumns]) -> pa.Array:
    """The data files that vectors among these entries are about, by the normal form of their paths."""
    return normal_paths((columns.filter(vector_mask(columns)) for columns in groups), "referenced_data_file")


def position_mask(columns: mf.ManifestColumns) -> pa.Array:
    """Which entries delete rows by position, vectors among them."""
    return pc.equal(columns.column("content"), int(mf.FileContent.POSITION_DELETES))


_POSITIONS = Schema(reserved.DELETE_FILE_PATH, reserved.DELETE_FILE_POS)


# -- position delete files, read when a vector is to take their place


def positions_by_file(bench: Workbench, deletes: mf.DataFile) -> dict[str, DeletionVector]:
    """All positions that a file deletes, by the normal form of the data file's path; it is read once in a commit."""
    return bench.remember(("position deletes", deletes.file_path), lambda: _read(bench, deletes))


def _read(bench: Workbench, deletes: mf.DataFile) -> dict[str, DeletionVector]:
    if deletes.file_format not in DATA_FORMATS:
        raise errors.InvalidInputError(
            f"position delete file {deletes.file_path!r} has format {deletes.file_format!r}; it must be one of"
            f" {', '.join(DATA_FORMATS)}"
        )
    vectors: dict[str, DeletionVector] = {}
    with mf.open_file(deletes, bench.storage) as source:
        for batch in reader_of(deletes.file_format)(source, deletes.file_path, _POSITIONS).batches():
            paths, positions = identities(batch.column(0)), batch.column(1)
            for path in pc.unique(paths).to_pylist():
                vector = DeletionVector.from_positions(positions.filter(pc.equal(paths, path)))
                vectors[path] = vectors[path] | vector if path in vectors else vector
    return vectors
