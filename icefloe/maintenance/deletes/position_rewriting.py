"""A group of position deletes written anew: as fewer position delete files, as vectors, or in another Puffin file.

One unit of work for any engine: it takes values, writes files, and answers with the entries of these. Rows about data files that
are gone, or that have a vector, are dropped. A position beyond the end of its data file is an error.
"""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass

from icefloe import properties as props
from icefloe.commit import FileSwap, NewVector
from icefloe.data import open_file
from icefloe.errors import CorruptFileError
from icefloe.formats.deletion_vectors import DeletionVector
from icefloe.formats.position_deletes import read_position_deletes
from icefloe.maintenance.deletes.position_plan import DeleteGroup, NumberedDeletes, PartitionDeletes
from icefloe.maintenance.deletes.writing import DeleteWriter
from icefloe.maintenance.rewrite.file_sizes import FileSizes
from icefloe.manifests import DataFile
from icefloe.metadata import TableMetadata, relativize
from icefloe.storage import Storage, identity
from icefloe.versions import Feature, allows

Deleted = tuple[DataFile, DeletionVector]


@dataclass(frozen=True, slots=True)
class RewrittenDeletes:
    """What was written for a group, and what that replaces."""

    swaps: tuple[FileSwap, ...] = ()
    vectors: tuple[NewVector, ...] = ()
    remove: tuple[DataFile, ...] = ()

    @property
    def written(self) -> tuple[DataFile, ...]:
        """The new delete files."""
        return (*(file for swap in self.swaps for file in swap.new), *(vector.file for vector in self.vectors))


@dataclass(frozen=True, slots=True)
class RewritePositions:
    """Writes groups of position deletes anew."""

    metadata: TableMetadata
    storage: Storage
    sizes: FileSizes

    def __call__(self, group: DeleteGroup) -> RewrittenDeletes:
        """One group, written."""
        writer = DeleteWriter(self.metadata, self.storage, str(uuid.uuid4()))
        if group.vectors:
            copies = writer.copies([vector.file for vector in group.vectors])
            pairs = zip(group.vectors, copies, strict=True)
            return RewrittenDeletes(tuple(FileSwap((old.file,), (new,), old.sequence_number) for old, new in pairs))
        if allows(self.metadata.format_version, Feature.DELETION_VECTORS):
            deleted = [each for part in group.partitions for each in self._deleted(part)]
            new = tuple(map(NewVector, writer.vectors(deleted)))
            return RewrittenDeletes(vectors=new, remove=tuple(each.file for each in group.files))
        return RewrittenDeletes(tuple(self._swap(part, writer) for part in group.partitions))

    def _swap(self, part: PartitionDeletes, writer: DeleteWriter) -> FileSwap:
        new = tuple(writer.positions(rows) for rows in self._files(part, list(self._deleted(part))))
        highest = max(each.sequence_number for each in part.deletes)
        return FileSwap(tuple(each.file for each in part.deletes), new, highest)

    def _deleted(self, part: PartitionDeletes) -> Iterator[Deleted]:
        """The rows of live data files that the files of a partition delete, by data file."""
        live = {name: file for file in part.data for name in self._names(file[0])}
        vectors: dict[str, DeletionVector] = {}
        for deletes in part.deletes:
            for name, vector in self._read(deletes).items():
                if name in live and deletes.sequence_number >= live[name][2]:
                    path, rows, _ = live[name]
                    if vector.highest is not None and vector.highest >= rows:
                        problem = f"it deletes row {vector.highest} of {path!r}, which has {rows} rows"
                        raise CorruptFileError(deletes.file.file_path, problem)
                    vectors[path] = vectors[path] | vector if path in vectors else vector
        counts = {path: rows for path, rows, _ in part.data if path in vectors}
        for path in sorted(vectors):
            yield DataFile(path, "", counts[path], 0, spec_id=part.spec_id, partition=part.partition), vectors[path]

    def _names(self, path: str) -> set[str]:
        """How a position delete file may name a data file."""
        return {identity(path), identity(relativize(self.metadata.relative_to, path))}

    def _read(self, deletes: NumberedDeletes) -> dict[str, DeletionVector]:
        with open_file(deletes.file, self.storage) as source:
            return read_position_deletes(source, deletes.file.file_path, deletes.file.file_format)

    def _files(self, part: PartitionDeletes, deleted: list[Deleted]) -> Iterator[list[Deleted]]:
        """The rows of each new file: those of one data file, or of as many as make a file of the target size."""
        if props.DELETE_GRANULARITY.of(self.metadata.properties) == "file":
            yield from ([each] for each in deleted)
            return
        rows = sum(vector.cardinality for _, vector in deleted)
        before = sum(each.file.record_count for each in part.deletes)
        size = sum(each.size for each in part.deletes) * rows // max(before, 1)
        most = -(-rows // self.sizes.expected_files(size)) if rows else 0
        packed: list[Deleted] = []
        count = 0
        for each in deleted:
            if packed and count + each[1].cardinality > most:
                yield packed
                packed, count = [], 0
            packed.append(each)
            count += each[1].cardinality
        if packed:
            yield packed
